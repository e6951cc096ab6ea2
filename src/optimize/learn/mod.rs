//! Learners: they know of a problem what rollouts return, and all but one no derivatives.
//!
//! Every iteration draws decisions, simulates them in parallel over the threads of the current rayon pool, and learns from
//! their values: the objective with a penalty for what is violated ([`Settings::penalty`]), to be small. A rollout that
//! fails is a value, the worst there is, and counted with its reason ([`Failed`]). Noise is drawn from one seeded
//! generator before rollouts begin, and sums go by index, so that the bits do not depend on the number of threads. A
//! learner does not know how far it is from an optimum: it ends when its budget of iterations is spent
//! ([`super::Status::Completed`]), and goes on with a larger one.
//!
//! | method | what it draws | source |
//! |---|---|---|
//! | [`search`] | one step from the best so far, along the last improvement or anywhere | Bruedigam et al. 2023, section 5.4 |
//! | [`ars`] | pairs on either side of a mean, which moves along their differences | Mania, Guy, Recht 2018 |
//! | [`cmaes`] | a normal distribution that learns its covariance and its width | Hansen 2016 |
//! | [`mppi`] | a normal distribution about a mean, which moves to the weighted mean | Williams et al. 2017 |
//! | [`gradient`] | fresh episodes, whose gradients move the decisions | Kingma, Ba 2015 |
//!
//! Where the problem has [`crate::control::Episodes`], a value is the mean over those of its own seeds, the same for all
//! decisions; the trajectory that is told is the one from the problem's own start, to the end of the horizon.

mod algorithm;
pub mod ars;
pub mod cmaes;
mod decisions;
pub mod gradient;
pub mod mppi;
pub mod search;
mod spline;
mod value;

pub use value::Failed;

pub(super) use algorithm::algorithm;
pub(super) use value::told;

use super::Method;
use crate::control::Problem;
use decisions::{Decisions, Unit};
use nalgebra::DMatrix;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZeroUsize;

/// What a learner decides.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// Controls and free parameters, whatever the problem has of them.
    #[default]
    All,
    /// Controls; parameters stay as they are.
    Controls,
    /// Free parameters; controls stay those of the guess.
    Parameters,
}

impl Decide {
    /// As in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Controls => "controls",
            Self::Parameters => "parameters",
        }
    }
}

/// Settings of every learner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What it decides.
    pub decide: Decide,
    /// Controls are natural cubic splines of time through so many knots each, evenly spread over the horizon; without
    /// them every control of every step is a decision of its own.
    pub splines: Option<usize>,
    /// Weight of `1/2 sum violation^2` that is added to the objective, relative to the objective by half the square of
    /// the violation at the guess ([`Problem::penalty_scale`]).
    pub penalty: f64,
    /// Largest violation of a constraint that counts as none.
    pub tolerance: f64,
    /// Iterations in all, those of a run that is gone on with included.
    pub max_iterations: u64,
    /// Of the random numbers.
    pub seed: u64,
}

impl Default for Settings {
    /// The penalty by what `cmaes` left violated of the pendulum's swing-up by a spline of ten knots: 5e-2 rad with 1e2, 6e-3
    /// with 1e3, 9e-4 with 1e4, 1e-4 with 1e5; `ars` and `mppi`, which go by the size of values, gain nothing beyond 1e4.
    fn default() -> Self {
        Self {
            decide: Decide::All,
            splines: None,
            penalty: 1e4,
            tolerance: 1e-6,
            max_iterations: 200,
            seed: 0,
        }
    }
}

/// Fewest knots that a spline goes through: its ends.
const MIN_KNOTS: usize = 2;

impl Settings {
    /// Are they settings that a solve can end with?
    ///
    /// # Errors
    /// Which is not, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        positive("tolerance", self.tolerance)?;
        positive("penalty", self.penalty)?;
        at_least("splines", self.splines.unwrap_or(MIN_KNOTS), MIN_KNOTS)
    }

    /// Is there something to decide in a problem?
    ///
    /// # Errors
    /// What there is not, and what was expected.
    pub fn fits(&self, problem: &Problem) -> Result<(), String> {
        let (steps, free) = (problem.intervals.len(), problem.free_parameters().len());
        let (no_controls, no_parameters) = (problem.guess.is_empty(), free == 0);
        let nothing = match self.decide {
            Decide::All => (no_controls && no_parameters).then_some("controls or free parameters"),
            Decide::Controls => no_controls.then_some("controls"),
            Decide::Parameters => no_parameters.then_some("free parameters"),
        };
        if let Some(what) = nothing {
            let decide = self.decide.name();
            return Err(format!(
                "decide is `{decide}`, and the problem has no {what}; decide something else"
            ));
        }
        match self.splines {
            Some(_) if self.decide == Decide::Parameters || no_controls => {
                Err("splines are of controls, and none are decided; leave splines out".into())
            }
            Some(n) if n > steps => Err(format!(
                "splines is {n}, more knots than the {steps} time steps; expected at most {steps}"
            )),
            _ => Ok(()),
        }
    }
}

/// Is a setting a positive number?
fn positive(name: &str, value: f64) -> Result<(), String> {
    match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(format!("{name} is {value}; expected a positive number")),
    }
}

/// Is a count large enough?
fn at_least(name: &str, value: usize, least: usize) -> Result<(), String> {
    match value >= least {
        true => Ok(()),
        false => Err(format!("{name} is {value}; expected at least {least}")),
    }
}

/// Settings from which a learner is made.
pub(super) trait LearnerOptions {
    /// Of which method.
    const METHOD: Method;
    /// Of what size decisions are.
    const UNIT: Unit;

    /// What all learners have.
    fn settings(&self) -> &Settings;

    /// After how many steps its gradients are truncated, and to what they are relaxed
    /// ([`crate::control::Objective::with_smoothing`]).
    fn derivatives(&self) -> (Option<NonZeroUsize>, f64) {
        (None, 0.0)
    }

    /// How it went about, in words, where that has to be told.
    fn manner(&self) -> String {
        String::new()
    }

    /// The learner, at the start of the decisions.
    fn learner(&self, decisions: &Decisions) -> Box<dyn Learner>;
}

/// Where a learner wants gradients.
pub(super) struct Asked<'a> {
    /// Decisions, one a column.
    pub decisions: &'a DMatrix<f64>,
    /// Of how many episodes each, where the problem has any.
    pub episodes: usize,
}

/// Norms of gradients, before any was clipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Watched {
    pub mean: f64,
    pub largest: f64,
    /// How many were.
    pub clipped: u64,
}

/// A learner: what it draws, and what it makes of the values found there. All that decides what comes next, but for the
/// generator, is what it keeps.
pub(super) trait Learner {
    /// Draws decisions, one a column. It changes nothing else that is kept, so that a generation that was interrupted
    /// can be drawn again.
    fn ask(&mut self, random: &mut Random) -> &DMatrix<f64>;

    /// Where it wants gradients before it draws decisions; nothing of those that learn from values alone. As [`Learner::ask`]
    /// it changes nothing that is kept.
    fn ask_gradients(&mut self, _: &mut Random) -> Option<Asked<'_>> {
        None
    }

    /// Takes the gradients asked for, by decisions, column by column and of each episode by episode; nothing where the
    /// rollout failed. It keeps nothing of them before the values of the next draw are told. Returns what they were like,
    /// where there was any.
    fn tell_gradients(&mut self, _: &[Option<&[f64]>]) -> Option<Watched> {
        None
    }

    /// Learns from the values of the columns asked for, to be small, infinite where a rollout failed. Returns how far it
    /// went, in its own unit.
    fn tell(&mut self, values: &[f64]) -> f64;

    /// Learns the value of the start.
    fn tell_start(&mut self, _value: f64) {}

    /// Where it stands.
    fn center(&self) -> &[f64];

    /// All that decides what comes next.
    fn keep(&self) -> Value;

    /// Takes over what was kept; false if it does not fit.
    fn restore(&mut self, kept: &Value) -> bool;

    /// Starts anew from other decisions.
    fn restart(&mut self, center: &[f64]);
}

/// The generator of all noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A seed for another generator.
    fn seed(&mut self) -> u64 {
        StandardUniform.sample(&mut self.0)
    }

    /// Standard normal numbers.
    fn fill(&mut self, out: &mut [f64]) {
        for v in out {
            *v = StandardNormal.sample(&mut self.0);
        }
    }
}

/// The smallest and the largest finite value; none where all failed.
fn range(values: &[f64]) -> Option<(f64, f64)> {
    let finite = values.iter().copied().filter(|v| v.is_finite());
    finite.fold(None, |r, v| match r {
        None => Some((v, v)),
        Some((l, h)) => Some((l.min(v), h.max(v))),
    })
}

/// Standard deviation of numbers.
fn standard_deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / n;
    (values.map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// Are these as many finite numbers as expected?
fn are_good(values: &[f64], n: usize) -> bool {
    values.len() == n && values.iter().all(|v| v.is_finite())
}
