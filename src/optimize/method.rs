//! The methods there are, and their settings.

use super::unconstrained::{self, Solver};
use super::{ddp, shooting};
use crate::control::Problem;
use crate::dynamics::Observe;

/// Names, with titles of the methods that there are, in the order of [`Method`]; behind them those of methods to come.
const TABLE: [(&str, Option<&str>); 15] = [
    ("ddp", Some("differential dynamic programming")),
    ("shooting", Some("single shooting")),
    ("lbfgs", Some("L-BFGS")),
    ("newton-cg", Some("Newton-CG")),
    ("trust-region", Some("a trust region (Steihaug)")),
    ("gauss-newton", Some("Gauss-Newton")),
    ("nelder-mead", Some("Nelder-Mead")),
    ("particle-swarm", Some("a particle swarm")),
    ("multiple-shooting", None),
    ("direct", None),
    ("levenberg-marquardt", None),
    ("search", None),
    ("ars", None),
    ("cmaes", None),
    ("mppi", None),
];

/// A way to solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Differential dynamic programming, see [`ddp`].
    Ddp,
    /// Single shooting, see [`shooting`].
    Shooting,
    /// argmin's L-BFGS, see [`unconstrained`].
    Lbfgs,
    /// argmin's Newton-CG, see [`unconstrained`].
    NewtonCg,
    /// argmin's trust region, see [`unconstrained`].
    TrustRegion,
    /// argmin's Gauss-Newton method, see [`unconstrained`].
    GaussNewton,
    /// argmin's simplex, see [`unconstrained`].
    NelderMead,
    /// argmin's particle swarm, see [`unconstrained`].
    ParticleSwarm,
}

impl Method {
    /// All of them; the first is the one that is taken unless told.
    pub const ALL: [Self; 8] = [
        Self::Ddp,
        Self::Shooting,
        Self::Lbfgs,
        Self::NewtonCg,
        Self::TrustRegion,
        Self::GaussNewton,
        Self::NelderMead,
        Self::ParticleSwarm,
    ];

    /// As in files and on the command line.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].0
    }

    /// For people.
    pub fn title(self) -> &'static str {
        TABLE[self as usize].1.unwrap_or(self.name())
    }

    /// The method of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }

    /// The names of [`Method::ALL`].
    pub fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }

    /// These, and the names that are kept for methods to come.
    pub fn known_names() -> impl Iterator<Item = &'static str> + Clone {
        TABLE.iter().map(|(name, _)| *name)
    }

    /// Does it start from states that need not follow from the controls?
    pub fn takes_states(self) -> bool {
        self == Self::Ddp
    }

    /// Which of argmin's solvers it is, if it is one.
    pub fn argmin_solver(self) -> Option<Solver> {
        match self {
            Self::Ddp | Self::Shooting => None,
            Self::Lbfgs => Some(Solver::Lbfgs),
            Self::NewtonCg => Some(Solver::NewtonCg),
            Self::TrustRegion => Some(Solver::TrustRegion),
            Self::GaussNewton => Some(Solver::GaussNewton),
            Self::NelderMead => Some(Solver::NelderMead),
            Self::ParticleSwarm => Some(Solver::ParticleSwarm),
        }
    }

    /// Its settings as they are unless told.
    pub fn options(self) -> Options {
        match self.argmin_solver() {
            Some(solver) => unconstrained::Options::of(solver).into(),
            None if self == Self::Shooting => shooting::Options::default().into(),
            None => ddp::Options::default().into(),
        }
    }
}

/// A method with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Options {
    /// Of [`Method::Ddp`].
    Ddp(ddp::Options),
    /// Of [`Method::Shooting`].
    Shooting(shooting::Options),
    /// Of argmin's solvers.
    Unconstrained(unconstrained::Options),
}

impl Options {
    /// Whose settings they are.
    pub fn method(&self) -> Method {
        match self {
            Self::Ddp(_) => Method::Ddp,
            Self::Shooting(_) => Method::Shooting,
            Self::Unconstrained(o) => o.solver.method(),
        }
    }

    /// Are they settings that a solve can end with?
    ///
    /// # Errors
    /// Which is not, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let (tolerance, optimality, penalty, smoothing) = match self {
            Self::Ddp(o) => (o.tolerance, o.optimality, o.penalty, o.smoothing),
            Self::Shooting(o) => (o.tolerance, o.optimality, o.penalty, None),
            Self::Unconstrained(o) => (o.tolerance, o.optimality, o.penalty, None),
        };
        let named = [
            ("tolerance", tolerance),
            ("optimality", optimality),
            ("penalty", penalty),
        ];
        for (name, value) in named {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("{name} is {value}; expected a positive number"));
            }
        }
        if let Self::Unconstrained(o) = self {
            for (name, value) in [("memory", o.memory), ("population", o.population)] {
                if value == 0 {
                    return Err(format!("{name} is 0; expected at least 1"));
                }
            }
        }
        match smoothing.filter(|s| !s.is_valid()) {
            None => Ok(()),
            Some(s) => Err(format!(
                "smoothing goes from {} to {} by the factor {}; expected positive numbers, the end not above the start, the factor below 1",
                s.start, s.end, s.factor
            )),
        }
    }

    /// Can the method take the problem?
    ///
    /// # Errors
    /// Why not, and what does.
    pub fn fits<D: Observe>(&self, dynamics: &D, problem: &Problem) -> Result<(), String> {
        match self {
            Self::Ddp(_) | Self::Shooting(_) => Ok(()),
            Self::Unconstrained(o) => o.fits(dynamics, problem),
        }
    }

    /// Iterations that a run may take.
    pub fn max_iterations(&self) -> u64 {
        match self {
            Self::Ddp(o) => o.max_iterations,
            Self::Shooting(o) => o.max_iterations,
            Self::Unconstrained(o) => o.max_iterations,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Method::ALL[0].options()
    }
}

impl From<ddp::Options> for Options {
    fn from(options: ddp::Options) -> Self {
        Self::Ddp(options)
    }
}

impl From<shooting::Options> for Options {
    fn from(options: shooting::Options) -> Self {
        Self::Shooting(options)
    }
}

impl From<unconstrained::Options> for Options {
    fn from(options: unconstrained::Options) -> Self {
        Self::Unconstrained(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddp::Smoothing;

    #[test]
    fn settings_without_a_meaning_are_refused() {
        for method in Method::ALL {
            assert_eq!(method.options().check(), Ok(()));
            for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                let fields: [fn(&mut Options, f64); 3] = [
                    |o, v| match o {
                        Options::Ddp(o) => o.tolerance = v,
                        Options::Shooting(o) => o.tolerance = v,
                        Options::Unconstrained(o) => o.tolerance = v,
                    },
                    |o, v| match o {
                        Options::Ddp(o) => o.optimality = v,
                        Options::Shooting(o) => o.optimality = v,
                        Options::Unconstrained(o) => o.optimality = v,
                    },
                    |o, v| match o {
                        Options::Ddp(o) => o.penalty = v,
                        Options::Shooting(o) => o.penalty = v,
                        Options::Unconstrained(o) => o.penalty = v,
                    },
                ];
                for (set, name) in fields.iter().zip(["tolerance", "optimality", "penalty"]) {
                    let mut options = method.options();
                    set(&mut options, wrong);
                    let said = options.check().expect_err(name);
                    assert!(said.starts_with(&format!("{name} is {wrong}")), "{said}");
                    assert!(said.contains("expected a positive number"), "{said}");
                }
            }
        }
        let levels = |start: f64, end: f64, factor: f64| {
            let smoothing = Smoothing {
                start,
                end,
                factor,
                ..Smoothing::default()
            };
            Options::from(ddp::Options {
                smoothing: Some(smoothing),
                ..ddp::Options::default()
            })
            .check()
        };
        assert_eq!(levels(1e-1, 1e-1, 0.5), Ok(()));
        for (start, end, factor) in [
            (1e-3, 1e-2, 0.1),
            (1e-1, 1e-5, 1.0),
            (1e-1, 0.0, 0.1),
            (f64::NAN, 1e-5, 0.1),
            (1e-1, 1e-5, -0.1),
        ] {
            let said = levels(start, end, factor).expect_err("no levels");
            assert!(said.contains("smoothing goes from"), "{said}");
        }
    }

    #[test]
    fn the_table_begins_with_the_methods_that_there_are() {
        for (method, (_, title)) in Method::ALL.into_iter().zip(TABLE) {
            assert_eq!(Some(method.title()), title);
            assert_eq!(method.options().method(), method);
        }
        assert!(TABLE[Method::ALL.len()..].iter().all(|m| m.1.is_none()));
    }
}
