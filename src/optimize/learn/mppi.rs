//! Model predictive path integral control as a trajectory optimizer (Williams, Wagener, Goldfain, Drews, Rehg, Boots,
//! Theodorou, "Information theoretic MPC for model-based reinforcement learning", ICRA 2017, algorithm 2, on the whole
//! horizon instead of a receding one): `K` draws about the mean `m`, and the mean moves to their weighted mean,
//!
//! ```text
//! m <- sum_k w_k x_k,   w_k ~ exp(-(S_k - min S) / (lambda s)),   x_k = m + sigma n_k
//! ```
//!
//! with `S_k` the value of a draw, `n_k` standard normal noise and `lambda` the temperature, here relative to the standard
//! deviation `s` of the values, so that it has no unit. Draws are moved to the bounds before they are simulated and
//! averaged. The cost of controls is that of the problem. The first draw is the mean itself.

use super::decisions::{Decisions, Unit};
use super::{
    Learner, LearnerOptions, Random, Settings, are_good, at_least, decisions, positive, range,
    standard_deviation,
};
use crate::optimize::Method;
use nalgebra::DMatrix;
use serde::Deserialize;
use serde_json::{Value, json};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What all learners have.
    pub settings: Settings,
    /// Draws an iteration, `K`, the mean among them.
    pub population: usize,
    /// Standard deviation of the noise, in units of half of a decision's range between its bounds, or of its size.
    pub sigma: f64,
    /// `lambda`: the smaller, the more the best draws alone count.
    pub temperature: f64,
}

impl Default for Options {
    /// Conventional.
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            population: 64,
            sigma: 0.2,
            temperature: 0.25,
        }
    }
}

impl Options {
    /// Are they settings that a solve can end with?
    ///
    /// # Errors
    /// Which is not, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        self.settings.check()?;
        at_least("population", self.population, MIN_POPULATION)?;
        positive("sigma", self.sigma)?;
        positive("temperature", self.temperature)
    }
}

/// The mean, and something beside it.
const MIN_POPULATION: usize = 2;

impl LearnerOptions for Options {
    const METHOD: Method = Method::Mppi;
    const UNIT: Unit = Unit::Size;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn learner(&self, decisions: &Decisions) -> Box<dyn Learner> {
        Box::new(Mppi {
            options: *self,
            lower: decisions.lower.clone(),
            upper: decisions.upper.clone(),
            mean: decisions.start.clone(),
            draws: DMatrix::zeros(decisions.len(), self.population),
        })
    }
}

struct Mppi {
    options: Options,
    lower: Vec<f64>,
    upper: Vec<f64>,
    mean: Vec<f64>,
    /// The mean, then draws about it.
    draws: DMatrix<f64>,
}

impl Learner for Mppi {
    fn ask(&mut self, random: &mut Random) -> &DMatrix<f64> {
        for (k, mut draw) in self.draws.column_iter_mut().enumerate() {
            if k == 0 {
                draw.copy_from_slice(&self.mean);
                continue;
            }
            let draw = draw.as_mut_slice();
            random.fill(draw);
            for (v, m) in draw.iter_mut().zip(&self.mean) {
                *v = m + self.options.sigma * *v;
            }
            decisions::clamp(draw, &self.lower, &self.upper);
        }
        &self.draws
    }

    fn tell(&mut self, values: &[f64]) -> f64 {
        let Some((least, _)) = range(values) else {
            return 0.0;
        };
        let finite = values.iter().copied().filter(|v| v.is_finite());
        let temperature = self.options.temperature * standard_deviation(finite);
        // where all are equal all count the same
        let weight = |v: f64| match v - least {
            distance if distance <= 0.0 => 1.0,
            distance => (-distance / temperature).exp(),
        };
        let sum: f64 = values.iter().map(|v| weight(*v)).sum();
        self.mean.fill(0.0);
        for (draw, value) in self.draws.column_iter().zip(values) {
            let w = weight(*value) / sum;
            for (m, v) in self.mean.iter_mut().zip(&draw) {
                *m += w * v;
            }
        }
        // rounding alone leaves the bounds
        decisions::clamp(&mut self.mean, &self.lower, &self.upper);
        let before = self.draws.column(0);
        let change = self.mean.iter().zip(&before);
        change.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    fn center(&self) -> &[f64] {
        &self.mean
    }

    fn keep(&self) -> Value {
        json!(self.mean)
    }

    fn restore(&mut self, kept: &Value) -> bool {
        let kept = Vec::deserialize(kept).ok();
        match kept.filter(|k: &Vec<f64>| are_good(k, self.mean.len())) {
            Some(mean) => {
                self.mean = mean;
                true
            }
            None => false,
        }
    }

    fn restart(&mut self, center: &[f64]) {
        self.mean.copy_from_slice(center);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mppi(population: usize) -> Mppi {
        Mppi {
            options: Options {
                population,
                ..Options::default()
            },
            lower: vec![-1.0; 3],
            upper: vec![1.0; 3],
            mean: vec![0.5; 3],
            draws: DMatrix::zeros(3, population),
        }
    }

    #[test]
    fn the_mean_is_weighted() {
        let (mut m, mut random) = (mppi(4), Random::new(1));
        let draws = m.ask(&mut random).clone();
        assert_eq!(draws.column(0).as_slice(), [0.5; 3]);
        m.tell(&[2.0, 1.0, f64::INFINITY, 3.0]);
        let spread = 0.25 * (2.0_f64 / 3.0).sqrt();
        let w = [(-1.0 / spread).exp(), 1.0, 0.0, (-2.0 / spread).exp()];
        let sum: f64 = w.iter().sum();
        for i in 0..3 {
            let expected: f64 = (0..4).map(|k| w[k] / sum * draws[(i, k)]).sum();
            assert!((m.mean[i] - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn equal_values_and_failures_alone_are_no_division_by_zero() {
        let (mut m, mut random) = (mppi(4), Random::new(1));
        let draws = m.ask(&mut random).clone();
        m.tell(&[7.0; 4]);
        let mean = draws.row(0).sum() / 4.0;
        assert!((m.mean[0] - mean).abs() < 1e-15);
        m.ask(&mut random);
        let before = m.mean.clone();
        assert_eq!(m.tell(&[f64::INFINITY; 4]), 0.0);
        assert_eq!(m.mean, before);
    }
}
