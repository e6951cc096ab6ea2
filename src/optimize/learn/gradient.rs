//! Gradients of policies: back-propagation through the closed loop, and steps by Adam (Kingma and Ba 2015, algorithm 1).
//!
//! Every iteration simulates a batch of episodes from fresh seeds (or, where the problem has none, its one rollout) and
//! sweeps back over each. The mean `g` of the gradients by the decisions moves them,
//!
//! ```text
//! m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   z <- z - alpha (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + e)
//! ```
//!
//! and where they then are is evaluated on the problem's own seeds, which judge what is best.
//!
//! Gradients of long rollouts explode where the motion is chaotic, or meets contacts: the norm of every rollout's is told,
//! and one above a multiple of the batch's median is clipped to it (Pascanu, Mikolov, Bengio 2013 clip by a number; a
//! multiple needs no unit). `window` truncates them to so many steps ([`crate::rollout::Sweep::run_over`]). Two ways lead
//! through what is not smooth. Relaxed gradients (`smoothing`) are those of contact on the central path; they bias what
//! depends on timing, the more the longer the window is: they are for short ones. Exact ones scatter about the mean slope:
//! with `samples` above one the mean is taken at so many decisions that are perturbed by `sigma`, which is the gradient of
//! the value smoothed by that noise but for its jumps. What was used is told.
//!
//! Where no gradient tells anything, since every rollout failed or every episode ended where nothing led on, it goes back to the best
//! decisions so far, and on from there by steps of half the length. So it does where it is told to after some iterations without a new
//! best: gradients that are biased, or of a motion that falls, lead away from it.

use super::decisions::{Decisions, Unit};
use super::{
    Asked, Learner, LearnerOptions, Random, Settings, Watched, are_good, at_least, decisions,
    positive,
};
use crate::optimize::Method;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZeroUsize;

/// Decay of the means of gradients and of their squares, and what keeps the quotient finite: Adam's own.
const FIRST: f64 = 0.9;
const SECOND: f64 = 0.999;
const LEAST: f64 = 1e-8;
/// Of the length of steps, where they led to what tells nothing.
const SHORTER: f64 = 0.5;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What all learners have.
    pub settings: Settings,
    /// Episodes an iteration; one rollout where the problem has none.
    pub batch: usize,
    /// Steps after which gradients are truncated; the whole horizon without.
    pub window: Option<NonZeroUsize>,
    /// Iterations without a new best after which it goes back to that; never without.
    pub patience: Option<NonZeroUsize>,
    /// Largest norm of a rollout's gradient, in multiples of the median of its batch.
    pub clip: f64,
    /// Length of a step of every decision, `alpha`, in units of half of its range between its bounds, or of its size.
    pub step: f64,
    /// Central path's parameter of derivatives through contact, m^2/s^2; 0: that of the steps, which makes them exact.
    pub smoothing: f64,
    /// Decisions that the gradient is the mean at: perturbed ones, or with 1 those reached themselves.
    pub samples: usize,
    /// Standard deviation of what perturbs them, in units as [`Options::step`].
    pub sigma: f64,
}

impl Default for Options {
    /// Conventional sizes; steps ten times those of the paper, whose networks have thousands of weights.
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            batch: 16,
            window: None,
            patience: None,
            clip: 4.0,
            step: 0.01,
            smoothing: 0.0,
            samples: 1,
            sigma: 0.03,
        }
    }
}

/// Gradients that an iteration asks for at most, by samples or by points; each takes memory of its own. Conventional.
const MOST: usize = 100_000;

impl Options {
    /// Are they settings that a solve can end with?
    ///
    /// # Errors
    /// Which is not, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        self.settings.check()?;
        at_least("batch", self.batch, 1)?;
        at_least("samples", self.samples, 1)?;
        for (name, value) in [("batch", self.batch), ("samples", self.samples)] {
            if value > MOST {
                return Err(format!("{name} is {value}; expected at most {MOST}"));
            }
        }
        positive("clip", self.clip)?;
        positive("step", self.step)?;
        positive("sigma", self.sigma)?;
        match self.smoothing >= 0.0 && self.smoothing.is_finite() {
            true => Ok(()),
            false => Err(format!(
                "smoothing is {}; expected a number that is not negative",
                self.smoothing
            )),
        }
    }
}

impl LearnerOptions for Options {
    const METHOD: Method = Method::PolicyGradient;
    const UNIT: Unit = Unit::Size;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn derivatives(&self) -> (Option<NonZeroUsize>, f64) {
        (self.window, self.smoothing)
    }

    fn manner(&self) -> String {
        let kind = match self.smoothing > 0.0 {
            true => format!("gradients relaxed to {:e} m^2/s^2", self.smoothing),
            false => "exact gradients".into(),
        };
        let over = match self.window {
            Some(n) => format!("over windows of {n} steps"),
            None => "over the whole horizon".into(),
        };
        match self.samples {
            1 => format!("{kind} {over}"),
            n => format!(
                "{kind} {over}, the mean at {n} decisions perturbed by {}",
                self.sigma
            ),
        }
    }

    fn learner(&self, decisions: &Decisions) -> Box<dyn Learner> {
        let n = decisions.len();
        Box::new(Gradient {
            options: *self,
            lower: decisions.lower.clone(),
            upper: decisions.upper.clone(),
            draws: DMatrix::zeros(n, self.samples),
            norms: vec![],
            sum: vec![0.0; n],
            kept: Kept::at(&decisions.start),
            next: Kept::at(&decisions.start),
            column: DMatrix::zeros(n, 1),
        })
    }
}

struct Gradient {
    options: Options,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// Where gradients are wanted, one a column.
    draws: DMatrix<f64>,
    norms: Vec<f64>,
    sum: Vec<f64>,
    kept: Kept,
    /// What is kept once its value is told: an iteration that was interrupted is made again.
    next: Kept,
    column: DMatrix<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    center: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    updates: u32,
    /// Part of [`Options::step`] that steps have.
    pace: f64,
    /// Iterations since the best.
    waited: usize,
    /// The best decisions evaluated, and their value.
    best: Option<(f64, Vec<f64>)>,
}

impl Kept {
    fn at(center: &[f64]) -> Self {
        Self {
            center: center.to_vec(),
            first: vec![0.0; center.len()],
            second: vec![0.0; center.len()],
            updates: 0,
            pace: 1.0,
            waited: 0,
            best: None,
        }
    }

    /// Goes back to the best, where it is not there, to go on more slowly.
    fn go_back(&mut self) {
        if let Some((value, center)) = self.best.clone().filter(|b| b.1 != self.center) {
            *self = Self {
                pace: SHORTER * self.pace,
                best: Some((value, center.clone())),
                ..Self::at(&center)
            };
        }
    }

    fn judge(&mut self, value: f64) {
        let is_better = |best: &(f64, _)| value < best.0;
        self.waited += 1;
        if value.is_finite() && self.best.as_ref().is_none_or(is_better) {
            (self.best, self.waited) = (Some((value, self.center.clone())), 0);
        }
    }

    /// A step of Adam.
    fn step(&mut self, gradient: &[f64], alpha: f64) {
        let alpha = self.pace * alpha;
        self.updates = self.updates.saturating_add(1);
        let t = i32::try_from(self.updates).unwrap_or(i32::MAX);
        let (first, second) = (1.0 - FIRST.powi(t), 1.0 - SECOND.powi(t));
        let means = self.first.iter_mut().zip(&mut self.second);
        for ((z, (m, v)), g) in self.center.iter_mut().zip(means).zip(gradient) {
            *m = FIRST * *m + (1.0 - FIRST) * g;
            *v = SECOND * *v + (1.0 - SECOND) * g * g;
            *z -= alpha * (*m / first) / ((*v / second).sqrt() + LEAST);
        }
    }
}

impl Learner for Gradient {
    fn ask_gradients(&mut self, random: &mut Random) -> Option<Asked<'_>> {
        let draws = self.draws.as_mut_slice();
        match self.options.samples {
            1 => draws.copy_from_slice(&self.kept.center),
            _ => {
                random.fill(draws);
                for draw in draws.chunks_exact_mut(self.kept.center.len()) {
                    for (v, m) in draw.iter_mut().zip(&self.kept.center) {
                        *v = m + self.options.sigma * *v;
                    }
                    decisions::clamp(draw, &self.lower, &self.upper);
                }
            }
        }
        Some(Asked {
            decisions: &self.draws,
            episodes: self.options.batch,
        })
    }

    fn tell_gradients(&mut self, found: &[Option<&[f64]>]) -> Option<Watched> {
        self.next.clone_from(&self.kept);
        self.norms.clear();
        let good = || found.iter().flatten();
        let norm = |g: &&[f64]| g.iter().map(|v| v * v).sum::<f64>().sqrt();
        self.norms.extend(good().map(norm));
        if self.norms.is_empty() {
            self.next.go_back();
            return None;
        }
        let count = self.norms.len();
        self.norms.sort_by(f64::total_cmp);
        // samples that say nothing, as those that fell at once, do not make the others less
        let zeros = self.norms.partition_point(|n| *n == 0.0);
        let telling = &self.norms[zeros..];
        let median = telling.get(telling.len() / 2).copied().unwrap_or(0.0);
        let limit = self.options.clip * median;
        let mut watched = Watched {
            mean: self.norms.iter().sum::<f64>() / count as f64,
            largest: self.norms[count - 1],
            clipped: 0,
        };
        let impatient = (self.options.patience).is_some_and(|most| self.next.waited >= most.get());
        if telling.is_empty() || impatient {
            self.next.go_back();
            return Some(watched);
        }
        self.sum.fill(0.0);
        for g in good() {
            let size = norm(g);
            let scale = match size > limit {
                true => limit / size,
                false => 1.0,
            };
            watched.clipped += u64::from(size > limit);
            let share = scale / count as f64;
            self.sum
                .iter_mut()
                .zip(*g)
                .for_each(|(s, g)| *s += share * g);
        }
        self.next.step(&self.sum, self.options.step);
        decisions::clamp(&mut self.next.center, &self.lower, &self.upper);
        Some(watched)
    }

    fn ask(&mut self, _: &mut Random) -> &DMatrix<f64> {
        self.column
            .as_mut_slice()
            .copy_from_slice(&self.next.center);
        &self.column
    }

    fn tell_start(&mut self, value: f64) {
        self.kept.judge(value);
    }

    fn tell(&mut self, values: &[f64]) -> f64 {
        self.next.judge(values[0]);
        let pairs = self.next.center.iter().zip(&self.kept.center);
        let moved = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        std::mem::swap(&mut self.kept, &mut self.next);
        moved
    }

    fn center(&self) -> &[f64] {
        &self.kept.center
    }

    fn keep(&self) -> Value {
        serde_json::to_value(&self.kept).unwrap_or_default()
    }

    fn restore(&mut self, kept: &Value) -> bool {
        let n = self.kept.center.len();
        let kept = Kept::deserialize(kept).ok();
        let good = |k: &Kept| {
            let best = k.best.as_ref().map(|(_, center)| center);
            [&k.center, &k.first, &k.second]
                .into_iter()
                .chain(best)
                .all(|v| are_good(v, n))
        };
        match kept.filter(good) {
            Some(kept) => {
                self.kept = kept;
                true
            }
            None => false,
        }
    }

    fn restart(&mut self, center: &[f64]) {
        self.kept = Kept::at(center);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learner(n: usize, options: Options) -> Gradient {
        Gradient {
            options,
            lower: vec![-1.0; n],
            upper: vec![f64::INFINITY; n],
            draws: DMatrix::zeros(n, options.samples),
            norms: vec![],
            sum: vec![0.0; n],
            kept: Kept::at(&vec![0.5; n]),
            next: Kept::at(&vec![0.5; n]),
            column: DMatrix::zeros(n, 1),
        }
    }

    /// One iteration: gradients told, the next center asked for and judged.
    fn iterate(l: &mut Gradient, found: &[Option<&[f64]>]) -> Option<Watched> {
        let mut random = Random::new(1);
        l.ask_gradients(&mut random);
        let watched = l.tell_gradients(found);
        l.ask(&mut random);
        l.tell(&[0.0]);
        watched
    }

    /// The first steps of Adam by hand: the first goes `alpha` against the sign of the gradient, whatever its size; bounds hold.
    #[test]
    fn steps_are_adams() {
        let mut l = learner(
            2,
            Options {
                step: 0.1,
                ..Options::default()
            },
        );
        iterate(&mut l, &[Some(&[3.0, -1e-3])]);
        for (z, expected) in l.kept.center.iter().zip([0.4, 0.6]) {
            assert!((z - expected).abs() < 1e-5, "{z}");
        }
        iterate(&mut l, &[Some(&[1.0, -1e-3])]);
        let m = (0.9 * 0.1 * 3.0 + 0.1 * 1.0) / (1.0 - 0.81);
        let v: f64 = (0.999 * 0.001 * 9.0 + 0.001 * 1.0) / (1.0 - 0.999 * 0.999);
        let expected = 0.4 - 0.1 * m / v.sqrt();
        assert!((l.kept.center[0] - expected).abs() < 1e-7);
        for _ in 0..40 {
            iterate(&mut l, &[Some(&[1.0, 0.0])]);
        }
        assert_eq!(l.kept.center[0], -1.0);
    }

    /// Of three rollouts the one that explodes counts as much as four times the middle one; one that failed does not count.
    #[test]
    fn norms_are_watched_and_clipped() {
        let mut l = learner(1, Options::default());
        let watched = iterate(&mut l, &[Some(&[1.0]), None, Some(&[-1e6]), Some(&[2.0])]);
        let watched = watched.expect("gradients");
        assert_eq!((watched.largest, watched.clipped), (1e6, 1));
        assert!((watched.mean - (1e6 + 3.0) / 3.0).abs() < 1e-6);
        assert!((l.sum[0] - (1.0 + 2.0 - 8.0) / 3.0).abs() < 1e-12);
        let before = l.kept.center.clone();
        assert!(iterate(&mut l, &[None, None]).is_none());
        assert_eq!(l.kept.center, before);
    }

    /// Where nothing tells how to go on it goes back to the best, and on by half steps; at the best it stays.
    #[test]
    fn it_goes_back_from_where_nothing_tells() {
        for nothing in [None, Some(&[0.0][..])] {
            let mut l = learner(
                1,
                Options {
                    step: 0.1,
                    ..Options::default()
                },
            );
            l.tell_start(0.0);
            let mut one = |told: Option<&[f64]>, value: f64| {
                l.tell_gradients(&[told]);
                l.ask(&mut Random::new(1));
                l.tell(&[value]);
                l.kept.center[0]
            };
            one(nothing, 0.0);
            assert!((one(Some(&[2.0]), -1.0) - 0.4).abs() < 1e-6);
            assert!(one(Some(&[2.0]), 5.0) < 0.35);
            assert!((one(nothing, -1.0) - 0.4).abs() < 1e-6);
            assert!((one(Some(&[2.0]), 1.0) - 0.35).abs() < 1e-6);
        }
    }

    /// What was not told a value is not kept.
    #[test]
    fn an_iteration_counts_when_it_is_whole() {
        let mut l = learner(
            2,
            Options {
                samples: 3,
                ..Options::default()
            },
        );
        let before = l.keep();
        let mut random = Random::new(4);
        let asked = l.ask_gradients(&mut random).expect("gradients");
        let draws = asked.decisions.clone();
        assert!(draws.iter().all(|v| (-1.0..1.0).contains(v) && *v != 0.5));
        l.tell_gradients(&[Some(&[1.0, 1.0])]);
        l.ask(&mut random);
        assert_eq!(l.keep(), before);
        let again = l.ask_gradients(&mut Random::new(4)).expect("gradients");
        assert_eq!(*again.decisions, draws);
    }
}
