//! From what a file says of a learner to its settings.

use super::problem::MethodSpec;
use crate::optimize::learn::{Settings, ars, cmaes, mppi, search};

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
}
