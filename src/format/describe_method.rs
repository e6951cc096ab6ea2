//! The description of how a problem is solved.

use super::forms::forms;
use crate::optimize::learn::Decide;
use crate::optimize::{
    Method, Options, ddp, direct, levenberg_marquardt, nlp, shooting, unconstrained,
};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// How a problem is solved; what is left out has the method's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MethodSpec {
    /// `ddp`, `shooting`, `multiple-shooting`, `levenberg-marquardt` or `direct`; one of argmin's solvers: `lbfgs`, `newton-cg`, `trust-region`, `gauss-newton`, `nelder-mead`,
    /// `particle-swarm`; or a learner: `search`, `ars`, `cmaes`, `mppi` or `policy-gradient`.
    #[serde(default = "ddp")]
    pub name: String,
    /// Largest violation of a constraint or a bound, in their units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// What the curvature still promises to gain, relative to the objective; of `direct` the largest error of the conditions
    /// of optimality, scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimality: Option<f64>,
    /// Iterations at most of a run; of learners in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess. Of learners it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<f64>,
    /// Of `shooting`, `lbfgs` and `direct` with `curvature = "l-bfgs"`: pairs of steps and gradients that are remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// Of `multiple-shooting`: parts of the horizon, each of which is simulated from a state that is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<usize>,
    /// Of `levenberg-marquardt`: first damping, relative to the costs' curvature by each decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// Of `ddp` and `multiple-shooting`: derivatives through contact are relaxed at first, and with `forward` the steps, too, from one parameter of
    /// the central path to the next, before they are those of hard contact. They are so from the beginning where this is
    /// `false`. Of `policy-gradient` they are relaxed to one parameter, m^2/s^2, where it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<SmoothingSpec>,
    /// Of learners: whether controls, free parameters or both are decided; whatever there is by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<Decide>,
    /// Of learners: controls are cubic splines through so many knots each over the horizon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub splines: Option<usize>,
    /// Of learners and of `direct`: of the random numbers; `--seed` replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Of learners: standard deviation of the (first) noise, in units of half of a decision's range between its bounds, or
    /// of its size; of `search` in the decision's own unit; of `policy-gradient` what perturbs the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Of `direct`: standard deviation of what is added to the coordinates (m, rad) of a guess that is the start at every
    /// knot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// Of `direct`: what is taken for the Hessian of the Lagrangian.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curvature: Option<nlp::Curvature>,
    /// Of `direct`: how many such guesses to start from, of as many seeds; the best is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<usize>,
    /// Of `cmaes` and `mppi`: rollouts an iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<usize>,
    /// Of `ars`: directions an iteration, two rollouts each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directions: Option<usize>,
    /// Of `ars`: how many of the directions move the mean, the best; half of them by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<usize>,
    /// Of `ars` and `policy-gradient`: length of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Of `mppi`: relative to the standard deviation of the values; the smaller, the more the best alone count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Of `policy-gradient`: episodes an iteration, from fresh seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Of `policy-gradient`: steps after which gradients are truncated; the whole horizon by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<NonZeroUsize>,
    /// Of `policy-gradient`: iterations without a new best after which it goes back to the best, and on by half steps; never unless
    /// told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<NonZeroUsize>,
    /// Of `policy-gradient`: largest norm of a rollout's gradient, in multiples of the median of its batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Of `policy-gradient`: perturbed decisions that the gradient is the mean at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
}

/// Whether derivatives through contact are relaxed at first, and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum SmoothingSpec {
    /// As by default, or not at all.
    Switch(bool),
    /// At one level, m^2/s^2.
    Level(f64),
    /// By these levels.
    Levels(ddp::Smoothing),
}
forms!(SmoothingSpec, "a table such as { start = 1e-1 }, a number, or false", number Level, table Levels, switch Switch);

fn ddp() -> String {
    Method::ALL[0].name().into()
}

impl Default for MethodSpec {
    fn default() -> Self {
        Self {
            name: ddp(),
            tolerance: None,
            optimality: None,
            max_iterations: None,
            memory: None,
            penalty: None,
            segments: None,
            damping: None,
            smoothing: None,
            decide: None,
            splines: None,
            seed: None,
            sigma: None,
            noise: None,
            curvature: None,
            starts: None,
            population: None,
            directions: None,
            top: None,
            step: None,
            temperature: None,
            batch: None,
            window: None,
            patience: None,
            clip: None,
            samples: None,
        }
    }
}

impl MethodSpec {
    /// Settings of a method.
    pub fn of(&self, method: Method) -> Options {
        match method {
            Method::Ddp => self.ddp().into(),
            Method::MultipleShooting => self.multiple_shooting().into(),
            Method::Shooting => self.shooting().into(),
            Method::LevenbergMarquardt => self.levenberg_marquardt().into(),
            Method::Search => self.search().into(),
            Method::Ars => self.ars().into(),
            Method::Cmaes => self.cmaes().into(),
            Method::Mppi => self.mppi().into(),
            Method::PolicyGradient => self.policy_gradient().into(),
            Method::Direct => self.direct().into(),
            Method::Lbfgs => self.unconstrained(unconstrained::Solver::Lbfgs).into(),
            Method::NewtonCg => self.unconstrained(unconstrained::Solver::NewtonCg).into(),
            Method::TrustRegion => self
                .unconstrained(unconstrained::Solver::TrustRegion)
                .into(),
            Method::GaussNewton => self
                .unconstrained(unconstrained::Solver::GaussNewton)
                .into(),
            Method::NelderMead => self.unconstrained(unconstrained::Solver::NelderMead).into(),
            Method::ParticleSwarm => self
                .unconstrained(unconstrained::Solver::ParticleSwarm)
                .into(),
        }
    }

    /// What is set that is no setting of a method, and whose it is.
    pub fn foreign(&self, method: Method) -> Vec<(&'static str, Vec<Method>)> {
        use Method::{
            Ars, Cmaes, Ddp, Direct, Lbfgs, LevenbergMarquardt, Mppi, MultipleShooting,
            ParticleSwarm, PolicyGradient, Shooting,
        };
        let learners = || Method::ALL.into_iter().filter(|m| m.is_learner());
        let others = || Method::ALL.into_iter().filter(|m| !m.is_learner());
        let owned: [(&str, Vec<Method>, bool); 23] = [
            ("optimality", others().collect(), self.optimality.is_some()),
            (
                "memory",
                vec![Shooting, Lbfgs, Direct],
                self.memory.is_some(),
            ),
            ("segments", vec![MultipleShooting], self.segments.is_some()),
            ("damping", vec![LevenbergMarquardt], self.damping.is_some()),
            (
                "smoothing",
                vec![Ddp, MultipleShooting, PolicyGradient],
                self.smoothing.is_some(),
            ),
            ("decide", learners().collect(), self.decide.is_some()),
            ("splines", learners().collect(), self.splines.is_some()),
            (
                "seed",
                learners().chain([ParticleSwarm, Direct]).collect(),
                self.seed.is_some(),
            ),
            ("sigma", learners().collect(), self.sigma.is_some()),
            ("noise", vec![Direct], self.noise.is_some()),
            ("curvature", vec![Direct], self.curvature.is_some()),
            ("starts", vec![Direct], self.starts.is_some()),
            (
                "penalty",
                Method::ALL.into_iter().filter(|m| *m != Direct).collect(),
                self.penalty.is_some(),
            ),
            (
                "population",
                vec![Cmaes, Mppi, ParticleSwarm],
                self.population.is_some(),
            ),
            ("directions", vec![Ars], self.directions.is_some()),
            ("top", vec![Ars], self.top.is_some()),
            ("step", vec![Ars, PolicyGradient], self.step.is_some()),
            ("temperature", vec![Mppi], self.temperature.is_some()),
            ("batch", vec![PolicyGradient], self.batch.is_some()),
            ("window", vec![PolicyGradient], self.window.is_some()),
            ("patience", vec![PolicyGradient], self.patience.is_some()),
            ("clip", vec![PolicyGradient], self.clip.is_some()),
            ("samples", vec![PolicyGradient], self.samples.is_some()),
        ];
        owned
            .into_iter()
            .filter(|(_, owners, set)| *set && !owners.contains(&method))
            .map(|(field, owners, _)| (field, owners))
            .collect()
    }

    /// Settings of differential dynamic programming.
    pub fn ddp(&self) -> ddp::Options {
        let default = ddp::Options::default();
        ddp::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            penalty: self.penalty.unwrap_or(default.penalty),
            smoothing: match self.smoothing {
                None | Some(SmoothingSpec::Switch(true)) => default.smoothing,
                Some(SmoothingSpec::Switch(false)) => None,
                Some(SmoothingSpec::Levels(levels)) => Some(levels),
                Some(SmoothingSpec::Level(level)) => Some(ddp::Smoothing {
                    start: level,
                    end: level,
                    ..ddp::Smoothing::default()
                }),
            },
            ..default
        }
    }

    /// Settings of multiple shooting.
    pub fn multiple_shooting(&self) -> ddp::Options {
        let default = ddp::Options::multiple_shooting();
        ddp::Options {
            segments: self
                .segments
                .and_then(NonZeroUsize::new)
                .or(default.segments),
            ..self.ddp()
        }
    }

    /// Settings of direct transcription.
    pub fn direct(&self) -> direct::Options {
        let default = direct::Options::default();
        direct::Options {
            nlp: nlp::Options {
                violation: self.tolerance.unwrap_or(default.nlp.violation),
                tolerance: self.optimality.unwrap_or(default.nlp.tolerance),
                max_iterations: self
                    .max_iterations
                    .map_or(default.nlp.max_iterations, |n| n as usize),
                curvature: self.curvature.unwrap_or(default.nlp.curvature),
                memory: self.memory.unwrap_or(default.nlp.memory),
                ..default.nlp
            },
            noise: self.noise.unwrap_or(default.noise),
            seed: self.seed.unwrap_or(default.seed),
            starts: self.starts.unwrap_or(default.starts),
            ..default
        }
    }

    /// Settings of single shooting.
    pub fn shooting(&self) -> shooting::Options {
        let default = shooting::Options::default();
        shooting::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            memory: self.memory.unwrap_or(default.memory),
            penalty: self.penalty.unwrap_or(default.penalty),
        }
    }

    /// Settings of Levenberg and Marquardt's method.
    pub fn levenberg_marquardt(&self) -> levenberg_marquardt::Options {
        let default = levenberg_marquardt::Options::default();
        levenberg_marquardt::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            penalty: self.penalty.unwrap_or(default.penalty),
            damping: self.damping.unwrap_or(default.damping),
        }
    }

    /// Settings of one of argmin's solvers.
    pub fn unconstrained(&self, solver: unconstrained::Solver) -> unconstrained::Options {
        let default = unconstrained::Options::of(solver);
        unconstrained::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            penalty: self.penalty.unwrap_or(default.penalty),
            memory: self.memory.unwrap_or(default.memory),
            seed: self.seed.unwrap_or(default.seed),
            population: self.population.unwrap_or(default.population),
            ..default
        }
    }
}
