//! The methods there are, and their settings.

use super::learn::{self, ars, cmaes, gradient, mppi, search};
use super::unconstrained::{self, Solver};
use super::{ddp, direct, levenberg_marquardt, shooting};
use crate::control::Problem;
use crate::dynamics::Observe;

/// Names and titles, in the order of [`Method`].
const TABLE: [(&str, &str); 16] = [
    ("ddp", "differential dynamic programming"),
    ("shooting", "single shooting"),
    ("multiple-shooting", "multiple shooting"),
    ("levenberg-marquardt", "Levenberg and Marquardt's method"),
    ("lbfgs", "L-BFGS"),
    ("newton-cg", "Newton-CG"),
    ("trust-region", "a trust region (Steihaug)"),
    ("gauss-newton", "Gauss-Newton"),
    ("nelder-mead", "Nelder-Mead"),
    ("particle-swarm", "a particle swarm"),
    ("search", "random local search"),
    ("ars", "augmented random search"),
    ("cmaes", "covariance matrix adaptation"),
    ("mppi", "model predictive path integral control"),
    ("policy-gradient", "gradients of the policy"),
    ("direct", "direct transcription"),
];

/// A way to solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Differential dynamic programming, see [`ddp`].
    Ddp,
    /// Single shooting, see [`shooting`].
    Shooting,
    /// Multiple shooting, see [`ddp::Options::segments`].
    MultipleShooting,
    /// Levenberg and Marquardt's method, see [`levenberg_marquardt`].
    LevenbergMarquardt,
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
    /// Random local search, see [`search`].
    Search,
    /// Augmented random search, see [`ars`].
    Ars,
    /// Covariance matrix adaptation, see [`cmaes`].
    Cmaes,
    /// Model predictive path integral control, see [`mppi`].
    Mppi,
    /// Back-propagation through the closed loop, see [`gradient`].
    PolicyGradient,
    /// Direct transcription, see [`direct`].
    Direct,
}

impl Method {
    /// All of them; the first is the one that is taken by default.
    pub const ALL: [Self; 16] = [
        Self::Ddp,
        Self::Shooting,
        Self::MultipleShooting,
        Self::LevenbergMarquardt,
        Self::Lbfgs,
        Self::NewtonCg,
        Self::TrustRegion,
        Self::GaussNewton,
        Self::NelderMead,
        Self::ParticleSwarm,
        Self::Search,
        Self::Ars,
        Self::Cmaes,
        Self::Mppi,
        Self::PolicyGradient,
        Self::Direct,
    ];

    /// As in files and on the command line.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].0
    }

    /// For people.
    pub fn title(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The method of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }

    /// The names of [`Method::ALL`].
    pub fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }

    /// What [`super::Iteration::optimality`] and [`super::Iteration::regularization`] are, in words.
    pub fn measures(self) -> (&'static str, &'static str) {
        match self {
            Self::Direct => ("error of optimality", "shift"),
            _ => ("promised gain", "penalty"),
        }
    }

    /// Does it start from states that need not follow from the controls?
    pub fn takes_states(self) -> bool {
        matches!(self, Self::Ddp | Self::MultipleShooting | Self::Direct)
    }

    /// Does it learn from rollouts, see [`super::learn`], and end when its budget is spent?
    pub fn is_learner(self) -> bool {
        matches!(
            self,
            Self::Search | Self::Ars | Self::Cmaes | Self::Mppi | Self::PolicyGradient
        )
    }

    /// Which of argmin's solvers it is, if it is one.
    pub fn argmin_solver(self) -> Option<Solver> {
        match self {
            Self::Ddp | Self::Shooting | Self::MultipleShooting | Self::LevenbergMarquardt => None,
            Self::Direct => None,
            Self::Search | Self::Ars | Self::Cmaes | Self::Mppi | Self::PolicyGradient => None,
            Self::Lbfgs => Some(Solver::Lbfgs),
            Self::NewtonCg => Some(Solver::NewtonCg),
            Self::TrustRegion => Some(Solver::TrustRegion),
            Self::GaussNewton => Some(Solver::GaussNewton),
            Self::NelderMead => Some(Solver::NelderMead),
            Self::ParticleSwarm => Some(Solver::ParticleSwarm),
        }
    }

    /// Its settings as they are by default.
    pub fn options(self) -> Options {
        match self {
            Self::Ddp => ddp::Options::default().into(),
            Self::Shooting => shooting::Options::default().into(),
            Self::MultipleShooting => ddp::Options::multiple_shooting().into(),
            Self::LevenbergMarquardt => levenberg_marquardt::Options::default().into(),
            Self::Search => search::Options::default().into(),
            Self::Ars => ars::Options::default().into(),
            Self::Cmaes => cmaes::Options::default().into(),
            Self::Mppi => mppi::Options::default().into(),
            Self::PolicyGradient => gradient::Options::default().into(),
            Self::Direct => direct::Options::default().into(),
            Self::Lbfgs => unconstrained::Options::of(Solver::Lbfgs).into(),
            Self::NewtonCg => unconstrained::Options::of(Solver::NewtonCg).into(),
            Self::TrustRegion => unconstrained::Options::of(Solver::TrustRegion).into(),
            Self::GaussNewton => unconstrained::Options::of(Solver::GaussNewton).into(),
            Self::NelderMead => unconstrained::Options::of(Solver::NelderMead).into(),
            Self::ParticleSwarm => unconstrained::Options::of(Solver::ParticleSwarm).into(),
        }
    }
}

/// A method with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Options {
    /// Of [`Method::Ddp`] and [`Method::MultipleShooting`].
    Ddp(ddp::Options),
    /// Of [`Method::Shooting`].
    Shooting(shooting::Options),
    /// Of [`Method::LevenbergMarquardt`].
    LevenbergMarquardt(levenberg_marquardt::Options),
    /// Of [`Method::Search`].
    Search(search::Options),
    /// Of [`Method::Ars`].
    Ars(ars::Options),
    /// Of [`Method::Cmaes`].
    Cmaes(cmaes::Options),
    /// Of [`Method::Mppi`].
    Mppi(mppi::Options),
    /// Of [`Method::PolicyGradient`].
    PolicyGradient(gradient::Options),
    /// Of argmin's solvers.
    Unconstrained(unconstrained::Options),
    /// Of [`Method::Direct`].
    Direct(direct::Options),
}

impl Options {
    /// Whose settings they are.
    pub fn method(&self) -> Method {
        match self {
            Self::Ddp(o) => o.method(),
            Self::Shooting(_) => Method::Shooting,
            Self::LevenbergMarquardt(_) => Method::LevenbergMarquardt,
            Self::Search(_) => Method::Search,
            Self::Ars(_) => Method::Ars,
            Self::Cmaes(_) => Method::Cmaes,
            Self::Mppi(_) => Method::Mppi,
            Self::PolicyGradient(_) => Method::PolicyGradient,
            Self::Unconstrained(o) => o.solver.method(),
            Self::Direct(_) => Method::Direct,
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
            Self::LevenbergMarquardt(o) => (o.tolerance, o.optimality, o.penalty, None),
            Self::Search(o) => return o.check(),
            Self::Ars(o) => return o.check(),
            Self::Cmaes(o) => return o.check(),
            Self::Mppi(o) => return o.check(),
            Self::PolicyGradient(o) => return o.check(),
            Self::Direct(o) => return o.check(),
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
        if let Self::LevenbergMarquardt(o) = self
            && !(0.0..=levenberg_marquardt::MOST_DAMPING).contains(&o.damping)
        {
            return Err(format!(
                "damping is {}; expected a number from 0 to {:.0e}",
                o.damping,
                levenberg_marquardt::MOST_DAMPING
            ));
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

    /// What all learners have; none of other methods.
    pub fn learning(&self) -> Option<&learn::Settings> {
        match self {
            Self::Search(o) => Some(&o.settings),
            Self::Ars(o) => Some(&o.settings),
            Self::Cmaes(o) => Some(&o.settings),
            Self::Mppi(o) => Some(&o.settings),
            Self::PolicyGradient(o) => Some(&o.settings),
            Self::Ddp(_) | Self::Shooting(_) | Self::LevenbergMarquardt(_) => None,
            Self::Unconstrained(_) | Self::Direct(_) => None,
        }
    }

    /// Can the method take the problem with these settings?
    ///
    /// # Errors
    /// Why not, and what does.
    pub fn fits<D: Observe>(&self, dynamics: &D, problem: &Problem) -> Result<(), String> {
        if problem.episodes.is_some() && !self.method().is_learner() {
            let learners = Method::ALL.into_iter().filter(|m| m.is_learner());
            let learners: Vec<&str> = learners.map(Method::name).collect();
            return Err(format!(
                "it solves for one trajectory, and the problem has episodes; take one of `{}`, or leave the episodes out",
                learners.join("`, `")
            ));
        }
        match self {
            Self::Unconstrained(o) => o.fits(dynamics, problem),
            Self::LevenbergMarquardt(o) => o.fits(problem),
            Self::Direct(_) => dynamics.check_equations().map_err(|e| {
                format!("it is made of the step's equations, unsolved: {e}, or take another method")
            }),
            _ => self.learning().map_or(Ok(()), |s| s.fits(problem)),
        }
    }

    /// Iterations that a run may take; learners, all runs that are gone on with.
    pub fn max_iterations(&self) -> u64 {
        match self {
            Self::Ddp(o) => o.max_iterations,
            Self::Shooting(o) => o.max_iterations,
            Self::LevenbergMarquardt(o) => o.max_iterations,
            Self::Search(o) => o.settings.max_iterations,
            Self::Ars(o) => o.settings.max_iterations,
            Self::Cmaes(o) => o.settings.max_iterations,
            Self::Mppi(o) => o.settings.max_iterations,
            Self::PolicyGradient(o) => o.settings.max_iterations,
            Self::Unconstrained(o) => o.max_iterations,
            Self::Direct(o) => o.nlp.max_iterations as u64,
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

impl From<levenberg_marquardt::Options> for Options {
    fn from(options: levenberg_marquardt::Options) -> Self {
        Self::LevenbergMarquardt(options)
    }
}

impl From<search::Options> for Options {
    fn from(options: search::Options) -> Self {
        Self::Search(options)
    }
}

impl From<ars::Options> for Options {
    fn from(options: ars::Options) -> Self {
        Self::Ars(options)
    }
}

impl From<cmaes::Options> for Options {
    fn from(options: cmaes::Options) -> Self {
        Self::Cmaes(options)
    }
}

impl From<mppi::Options> for Options {
    fn from(options: mppi::Options) -> Self {
        Self::Mppi(options)
    }
}

impl From<gradient::Options> for Options {
    fn from(options: gradient::Options) -> Self {
        Self::PolicyGradient(options)
    }
}

impl From<direct::Options> for Options {
    fn from(options: direct::Options) -> Self {
        Self::Direct(options)
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
            if method.is_learner() || method == Method::Direct {
                continue;
            }
            for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                let fields: [fn(&mut Options, f64); 3] = [
                    |o, v| match o {
                        Options::Ddp(o) => o.tolerance = v,
                        Options::Shooting(o) => o.tolerance = v,
                        Options::LevenbergMarquardt(o) => o.tolerance = v,
                        Options::Unconstrained(o) => o.tolerance = v,
                        _ => (),
                    },
                    |o, v| match o {
                        Options::Ddp(o) => o.optimality = v,
                        Options::Shooting(o) => o.optimality = v,
                        Options::LevenbergMarquardt(o) => o.optimality = v,
                        Options::Unconstrained(o) => o.optimality = v,
                        _ => (),
                    },
                    |o, v| match o {
                        Options::Ddp(o) => o.penalty = v,
                        Options::Shooting(o) => o.penalty = v,
                        Options::LevenbergMarquardt(o) => o.penalty = v,
                        Options::Unconstrained(o) => o.penalty = v,
                        _ => (),
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
    fn settings_of_learners_without_a_meaning_are_refused() {
        let said = |o: Options| o.check().expect_err("no meaning");
        let settings = learn::Settings {
            splines: Some(1),
            ..learn::Settings::default()
        };
        let cases: [(Options, &str); 9] = [
            (
                search::Options {
                    settings,
                    ..search::Options::default()
                }
                .into(),
                "splines is 1; expected at least 2",
            ),
            (
                search::Options {
                    sigma: 0.0,
                    ..search::Options::default()
                }
                .into(),
                "sigma is 0; expected a positive number",
            ),
            (
                ars::Options {
                    directions: 0,
                    ..ars::Options::default()
                }
                .into(),
                "directions is 0; expected at least 1",
            ),
            (
                ars::Options {
                    top: 25,
                    ..ars::Options::default()
                }
                .into(),
                "top is 25, more than the 24 directions; expected at most 24",
            ),
            (
                ars::Options {
                    step: f64::NAN,
                    ..ars::Options::default()
                }
                .into(),
                "step is NaN; expected a positive number",
            ),
            (
                cmaes::Options {
                    population: Some(3),
                    ..cmaes::Options::default()
                }
                .into(),
                "population is 3; expected at least 4",
            ),
            (
                cmaes::Options {
                    sigma: -1.0,
                    ..cmaes::Options::default()
                }
                .into(),
                "sigma is -1; expected a positive number",
            ),
            (
                mppi::Options {
                    population: 1,
                    ..mppi::Options::default()
                }
                .into(),
                "population is 1; expected at least 2",
            ),
            (
                mppi::Options {
                    temperature: f64::INFINITY,
                    ..mppi::Options::default()
                }
                .into(),
                "temperature is inf; expected a positive number",
            ),
        ];
        for (options, expected) in cases {
            assert_eq!(said(options), expected);
        }
    }

    #[test]
    fn settings_are_of_their_method() {
        for (i, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, i);
            assert_eq!(method.options().method(), method);
        }
    }
}
