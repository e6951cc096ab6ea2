//! Random local search as in Bruedigam et al., *Multibody Syst. Dyn.* 2023, section 5.4: one rollout an iteration. The
//! best so far is `b`, the last improvement of it `d`, of unit length, and `n` standard normal noise. The next draw is
//!
//! ```text
//! b + 0.002 n + 0.01 d     after a success, a rollout better than any before
//! b + e n                  after a failure; e = 0.1 at first, times 0.9 a failure, back to 0.1 on success
//! ```
//!
//! The start is the first success, without an improvement. Decisions count in their own units, as the paper's numbers do.
//! It is sequential; several seeds may run side by side, each a solve of its own on a thread of its own.

use super::decisions::{Decisions, Unit};
use super::{Learner, LearnerOptions, Random, Settings, are_good, decisions, positive};
use crate::optimize::Method;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings; the defaults are the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What all learners have; an iteration is an episode.
    pub settings: Settings,
    /// Standard deviation of the noise behind the first failure.
    pub sigma: f64,
    /// What it is multiplied by in every further one.
    pub decay: f64,
    /// Standard deviation of the noise behind a success.
    pub local: f64,
    /// Length of the step along the last improvement.
    pub along: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            settings: Settings {
                max_iterations: 100,
                ..Settings::default()
            },
            sigma: 0.1,
            decay: 0.9,
            local: 0.002,
            along: 0.01,
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
        positive("sigma", self.sigma)?;
        positive("decay", self.decay)?;
        positive("local", self.local)?;
        positive("along", self.along)
    }
}

impl LearnerOptions for Options {
    const METHOD: Method = Method::Search;
    const UNIT: Unit = Unit::One;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn learner(&self, decisions: &Decisions) -> Box<dyn Learner> {
        Box::new(Search {
            options: *self,
            lower: decisions.lower.clone(),
            upper: decisions.upper.clone(),
            draw: DMatrix::zeros(decisions.len(), 1),
            kept: Kept::at(&decisions.start, self.sigma),
        })
    }
}

struct Search {
    options: Options,
    lower: Vec<f64>,
    upper: Vec<f64>,
    draw: DMatrix<f64>,
    kept: Kept,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    best: Vec<f64>,
    /// Of the best; none where nothing could be simulated.
    value: Option<f64>,
    /// The last improvement, of unit length; zero before there is one.
    improvement: Vec<f64>,
    /// Was the last rollout a success?
    succeeded: bool,
    /// Standard deviation of the noise behind a failure.
    sigma: f64,
}

impl Kept {
    fn at(best: &[f64], sigma: f64) -> Self {
        Self {
            best: best.to_vec(),
            value: None,
            improvement: vec![0.0; best.len()],
            succeeded: false,
            sigma,
        }
    }
}

impl Learner for Search {
    fn ask(&mut self, random: &mut Random) -> &DMatrix<f64> {
        let (o, k) = (&self.options, &self.kept);
        let draw = self.draw.as_mut_slice();
        random.fill(draw);
        let (noise, along) = match k.succeeded {
            true => (o.local, o.along),
            false => (k.sigma, 0.0),
        };
        let from = k.best.iter().zip(&k.improvement);
        for (v, (b, d)) in draw.iter_mut().zip(from) {
            *v = b + noise * *v + along * d;
        }
        decisions::clamp(draw, &self.lower, &self.upper);
        &self.draw
    }

    fn tell(&mut self, values: &[f64]) -> f64 {
        let k = &mut self.kept;
        let value = values.first().copied().unwrap_or(f64::INFINITY);
        let draw = self.draw.as_slice();
        let change = || draw.iter().zip(&k.best).map(|(v, b)| v - b);
        let length = change().map(|d| d * d).sum::<f64>().sqrt();
        if value < k.value.unwrap_or(f64::INFINITY) {
            let size = if length > 0.0 { length } else { 1.0 };
            let improvement: Vec<f64> = change().map(|d| d / size).collect();
            k.improvement = improvement;
            k.best.copy_from_slice(draw);
            k.value = Some(value);
            k.succeeded = true;
            k.sigma = self.options.sigma;
        } else {
            if !k.succeeded {
                k.sigma *= self.options.decay;
            }
            k.succeeded = false;
        }
        length
    }

    fn tell_start(&mut self, value: f64) {
        self.kept.value = value.is_finite().then_some(value);
        self.kept.succeeded = value.is_finite();
    }

    fn center(&self) -> &[f64] {
        &self.kept.best
    }

    fn keep(&self) -> Value {
        serde_json::to_value(&self.kept).unwrap_or_default()
    }

    fn restore(&mut self, kept: &Value) -> bool {
        let n = self.kept.best.len();
        let kept = Kept::deserialize(kept).ok();
        let good = |k: &Kept| are_good(&k.best, n) && are_good(&k.improvement, n);
        match kept.filter(good) {
            Some(kept) => {
                self.kept = kept;
                true
            }
            None => false,
        }
    }

    fn restart(&mut self, center: &[f64]) {
        self.kept = Kept::at(center, self.options.sigma);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(n: usize) -> Search {
        let options = Options::default();
        Search {
            options,
            lower: vec![-1.0; n],
            upper: vec![f64::INFINITY; n],
            draw: DMatrix::zeros(n, 1),
            kept: Kept::at(&vec![0.0; n], options.sigma),
        }
    }

    /// The root of the mean square of a draw of many decisions about its center is the noise's width.
    fn width(s: &mut Search, random: &mut Random) -> f64 {
        let (best, along) = (s.kept.best.clone(), s.kept.improvement.clone());
        let step = if s.kept.succeeded {
            s.options.along
        } else {
            0.0
        };
        let draw = s.ask(random);
        let off = draw.iter().zip(best.iter().zip(&along));
        let square: f64 = off.map(|(v, (b, d))| (v - b - step * d).powi(2)).sum();
        (square / best.len() as f64).sqrt()
    }

    /// The paper's rule, draw by draw.
    #[test]
    fn draws_are_those_of_the_paper() {
        let (mut s, mut random) = (search(4000), Random::new(5));
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.05, "{a} {b}");
        s.tell_start(1.0);
        near(width(&mut s, &mut random), 0.002);
        // failures: the first with 0.1, then times 0.9
        s.tell(&[1.0]);
        near(width(&mut s, &mut random), 0.1);
        s.tell(&[f64::INFINITY]);
        near(width(&mut s, &mut random), 0.09);
        s.tell(&[2.0]);
        near(width(&mut s, &mut random), 0.081);
        // a success: on along its direction, of unit length
        let length = s.tell(&[0.5]);
        near(length, 0.081 * 4000_f64.sqrt());
        let size: f64 = s.kept.improvement.iter().map(|d| d * d).sum();
        assert!((size - 1.0).abs() < 1e-12);
        near(width(&mut s, &mut random), 0.002);
        s.tell(&[0.6]);
        near(width(&mut s, &mut random), 0.1);
    }

    #[test]
    fn a_start_that_fails_is_a_failure() {
        let (mut s, mut random) = (search(100), Random::new(5));
        s.tell_start(f64::INFINITY);
        assert!(width(&mut s, &mut random) > 0.05);
        s.tell(&[7.0]);
        assert_eq!(s.kept.value, Some(7.0));
    }

    #[test]
    fn bounds_are_kept() {
        let (mut s, mut random) = (search(50), Random::new(5));
        s.kept.best = vec![-1.0; 50];
        let draw = s.ask(&mut random);
        assert!(draw.iter().all(|v| *v >= -1.0) && draw.iter().any(|v| *v > -1.0));
    }
}
