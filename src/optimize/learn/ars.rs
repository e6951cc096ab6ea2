//! Augmented random search, version V1-t (Mania, Guy, Recht, "Simple random search of static policies is competitive for
//! reinforcement learning", NeurIPS 2018, algorithm 1): `N` directions `d_k` of standard normal noise are tried on both
//! sides of the mean `m`, and the best `b` of them, by the better of their two sides, move it,
//!
//! ```text
//! m <- m + alpha / (b s) sum_k (r(m + nu d_k) - r(m - nu d_k)) d_k
//! ```
//!
//! with `s` the standard deviation of the `2 b` returns used. A rollout that failed counts as the worst of its iteration
//! that did not. The mean itself is simulated, too, as the algorithm is judged by it.

use super::decisions::{Decisions, Unit};
use super::{
    Learner, LearnerOptions, Random, Settings, are_good, at_least, decisions, positive, range,
    standard_deviation,
};
use crate::optimize::Method;
use nalgebra::DMatrix;
use serde::Deserialize;
use serde_json::{Value, json};

/// Settings. Lengths are in units of half of a decision's range between its bounds, or of its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What all learners have.
    pub settings: Settings,
    /// Directions an iteration, `N`; each is two rollouts.
    pub directions: usize,
    /// How many of them move the mean, `b`.
    pub top: usize,
    /// Length of a step, `alpha`.
    pub step: f64,
    /// Standard deviation of the noise, `nu`.
    pub sigma: f64,
}

impl Default for Options {
    /// Step and noise are those of the paper's `HalfCheetah`, the other sizes conventional; the number of directions keeps two threads
    /// busy with the rollout of the mean beside theirs.
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            directions: 24,
            top: 12,
            step: 0.02,
            sigma: 0.03,
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
        at_least("directions", self.directions, 1)?;
        at_least("top", self.top, 1)?;
        if self.top > self.directions {
            let (top, all) = (self.top, self.directions);
            return Err(format!(
                "top is {top}, more than the {all} directions; expected at most {all}"
            ));
        }
        positive("step", self.step)?;
        positive("sigma", self.sigma)
    }
}

impl LearnerOptions for Options {
    const METHOD: Method = Method::Ars;
    const UNIT: Unit = Unit::Size;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn learner(&self, decisions: &Decisions) -> Box<dyn Learner> {
        let n = decisions.len();
        Box::new(Ars {
            options: *self,
            lower: decisions.lower.clone(),
            upper: decisions.upper.clone(),
            mean: decisions.start.clone(),
            noise: DMatrix::zeros(n, self.directions),
            draws: DMatrix::zeros(n, 2 * self.directions + 1),
            order: vec![],
            values: vec![],
        })
    }
}

struct Ars {
    options: Options,
    lower: Vec<f64>,
    upper: Vec<f64>,
    mean: Vec<f64>,
    /// Directions, one a column.
    noise: DMatrix<f64>,
    /// The mean, then the two sides of each direction.
    draws: DMatrix<f64>,
    order: Vec<usize>,
    values: Vec<f64>,
}

/// The columns of the two sides of direction `k`.
fn sides(k: usize) -> (usize, usize) {
    (2 * k + 1, 2 * k + 2)
}

impl Learner for Ars {
    fn ask(&mut self, random: &mut Random) -> &DMatrix<f64> {
        random.fill(self.noise.as_mut_slice());
        self.draws.column_mut(0).copy_from_slice(&self.mean);
        for (k, noise) in self.noise.column_iter().enumerate() {
            let (plus, minus) = sides(k);
            for (column, nu) in [(plus, self.options.sigma), (minus, -self.options.sigma)] {
                let mut draw = self.draws.column_mut(column);
                for (v, (m, d)) in draw.iter_mut().zip(self.mean.iter().zip(&noise)) {
                    *v = m + nu * d;
                }
                decisions::clamp(draw.as_mut_slice(), &self.lower, &self.upper);
            }
        }
        &self.draws
    }

    fn tell(&mut self, values: &[f64]) -> f64 {
        let Some((_, worst)) = range(&values[1..]) else {
            return 0.0;
        };
        self.values.clear();
        self.values.extend(values.iter().map(|v| v.min(worst)));
        let v = &self.values;
        let better = |k: &usize| {
            let (plus, minus) = sides(*k);
            v[plus].min(v[minus])
        };
        self.order.clear();
        self.order.extend(0..self.options.directions);
        // stable: of equals the first
        self.order.sort_by(|a, b| better(a).total_cmp(&better(b)));
        let top = &self.order[..self.options.top];
        let used = top.iter().flat_map(|&k| {
            let (plus, minus) = sides(k);
            [v[plus], v[minus]]
        });
        let deviation = standard_deviation(used);
        if deviation <= 0.0 {
            return 0.0;
        }
        let size = self.options.step / (self.options.top as f64 * deviation);
        for &k in top {
            let (plus, minus) = sides(k);
            let length = size * (v[minus] - v[plus]);
            for (m, d) in self.mean.iter_mut().zip(&self.noise.column(k)) {
                *m += length * d;
            }
        }
        decisions::clamp(&mut self.mean, &self.lower, &self.upper);
        let before = self.draws.column(0);
        let change = self.mean.iter().zip(&before).map(|(a, b)| (a - b).powi(2));
        change.sum::<f64>().sqrt()
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

    fn ars(n: usize, options: Options) -> Ars {
        Ars {
            options,
            lower: vec![f64::NEG_INFINITY; n],
            upper: vec![f64::INFINITY; n],
            mean: vec![1.0; n],
            noise: DMatrix::zeros(n, options.directions),
            draws: DMatrix::zeros(n, 2 * options.directions + 1),
            order: vec![],
            values: vec![],
        }
    }

    /// Of a linear function with slope g every direction shows g d exactly: the mean moves by the formula.
    #[test]
    fn the_mean_moves_by_the_formula() {
        let options = Options {
            directions: 3,
            top: 2,
            step: 0.5,
            sigma: 0.1,
            ..Options::default()
        };
        let (mut a, mut random) = (ars(2, options), Random::new(3));
        let g = [2.0, -1.0];
        let draws = a.ask(&mut random).clone();
        let values: Vec<f64> = draws
            .column_iter()
            .map(|x| g[0] * x[0] + g[1] * x[1])
            .collect();
        let noise = a.noise.clone();
        a.tell(&values);
        let slope = |k: usize| g[0] * noise[(0, k)] + g[1] * noise[(1, k)];
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| slope(*b).abs().total_cmp(&slope(*a).abs()));
        let at = 2.0 * 1.0 - 1.0;
        let mut used = vec![];
        for k in &order[..2] {
            used.extend([at + 0.1 * slope(*k), at - 0.1 * slope(*k)]);
        }
        let mean = used.iter().sum::<f64>() / 4.0;
        let s = (used.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
        for i in 0..2 {
            let moved: f64 = order[..2]
                .iter()
                .map(|&k| -0.5 / (2.0 * s) * 0.2 * slope(k) * noise[(i, k)])
                .sum();
            assert!((a.mean[i] - 1.0 - moved).abs() < 1e-12);
        }
    }

    /// What fails is as bad as the worst that does not; where all fail nothing is learnt.
    #[test]
    fn failures_are_the_worst() {
        let options = Options {
            directions: 2,
            top: 2,
            ..Options::default()
        };
        let told = |values: &[f64]| {
            let (mut a, mut random) = (ars(3, options), Random::new(3));
            a.ask(&mut random);
            a.tell(values);
            a.mean
        };
        let inf = f64::INFINITY;
        assert_eq!(
            told(&[1.0, 0.5, inf, 2.0, 1.5]),
            told(&[1.0, 0.5, 2.0, 2.0, 1.5])
        );
        assert_eq!(told(&[inf; 5]), [1.0; 3]);
    }
}
