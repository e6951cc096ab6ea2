//! From what a file says of a learner to its settings.

use super::problem::{MethodSpec, SmoothingSpec};
use crate::optimize::learn::{Settings, ars, cmaes, gradient, mppi, search};

impl MethodSpec {
    /// Settings of a learner, which have these defaults.
    fn learning(&self, default: Settings) -> Settings {
        Settings {
            decide: self.decide.unwrap_or(default.decide),
            splines: self.splines.or(default.splines),
            penalty: self.penalty.unwrap_or(default.penalty),
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            seed: self.seed.unwrap_or(default.seed),
        }
    }

    /// Settings of random local search.
    pub fn search(&self) -> search::Options {
        let default = search::Options::default();
        search::Options {
            settings: self.learning(default.settings),
            sigma: self.sigma.unwrap_or(default.sigma),
            ..default
        }
    }

    /// Settings of augmented random search.
    pub fn ars(&self) -> ars::Options {
        let default = ars::Options::default();
        let directions = self.directions.unwrap_or(default.directions);
        ars::Options {
            settings: self.learning(default.settings),
            directions,
            top: self.top.unwrap_or(directions.div_ceil(2)),
            step: self.step.unwrap_or(default.step),
            sigma: self.sigma.unwrap_or(default.sigma),
        }
    }

    /// Settings of covariance matrix adaptation.
    pub fn cmaes(&self) -> cmaes::Options {
        let default = cmaes::Options::default();
        cmaes::Options {
            settings: self.learning(default.settings),
            population: self.population.or(default.population),
            sigma: self.sigma.unwrap_or(default.sigma),
        }
    }

    /// Settings of path integral control.
    pub fn mppi(&self) -> mppi::Options {
        let default = mppi::Options::default();
        mppi::Options {
            settings: self.learning(default.settings),
            population: self.population.unwrap_or(default.population),
            sigma: self.sigma.unwrap_or(default.sigma),
            temperature: self.temperature.unwrap_or(default.temperature),
        }
    }

    /// Settings of gradients of policies. Levels of smoothing are another method's: gradients are then exact.
    pub fn policy_gradient(&self) -> gradient::Options {
        let default = gradient::Options::default();
        gradient::Options {
            settings: self.learning(default.settings),
            batch: self.batch.unwrap_or(default.batch),
            window: self.window.or(default.window),
            patience: self.patience.or(default.patience),
            clip: self.clip.unwrap_or(default.clip),
            step: self.step.unwrap_or(default.step),
            smoothing: match self.smoothing {
                Some(SmoothingSpec::Level(level)) => level,
                _ => default.smoothing,
            },
            samples: self.samples.unwrap_or(default.samples),
            sigma: self.sigma.unwrap_or(default.sigma),
        }
    }
}
