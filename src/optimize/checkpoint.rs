//! Where a solve stands, so that it can be kept and gone on with: the same form for every method.

use super::state::Best;
use super::{Iteration, Method, Status};
use crate::control::Problem;
use crate::dynamics::Observe;
use crate::rollout::{RolloutStats, Trajectory};
use argmin::core::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::{Debug, Write};
use std::time::{Duration, Instant};

/// What is decided. Methods that have no such unknowns leave a list empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Knot by knot.
    pub controls: Vec<f64>,
    /// All of them, free or not.
    pub parameters: Vec<f64>,
    /// Knot by knot, of methods whose states do not follow from the controls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<f64>,
}

impl Point {
    /// Its trajectory, if it can be simulated.
    pub(super) fn simulated<D: Observe>(
        &self,
        dynamics: &D,
        problem: &Problem,
        w: &mut D::Work,
    ) -> Option<Trajectory> {
        let start = problem.start(dynamics, &self.parameters, w).ok()?;
        let mut t = Trajectory::new(dynamics, problem.intervals.clone(), &start);
        t.u.copy_from_slice(&self.controls);
        t.p.copy_from_slice(&self.parameters);
        problem.set_intervals(&mut t);
        let rolled = t.roll(dynamics, w, &mut RolloutStats::default());
        rolled.is_ok().then_some(t)
    }
}

/// The best point so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Incumbent {
    /// Where.
    pub point: Point,
    /// Without penalties.
    pub objective: f64,
    /// Largest violation of a constraint or bound.
    pub violation: f64,
    /// As in [`Iteration::optimality`].
    #[serde(deserialize_with = "super::number")]
    pub optimality: f64,
    /// As in [`Iteration::smoothing`].
    #[serde(default)]
    pub smoothing: f64,
    /// As in [`Iteration::softened`].
    #[serde(default)]
    pub softened: bool,
}

impl Incumbent {
    /// With its trajectory, simulated.
    pub(super) fn best(&self, trajectory: Trajectory) -> Best {
        Best {
            trajectory,
            row: Iteration {
                objective: self.objective,
                violation: self.violation,
                optimality: self.optimality,
                smoothing: self.smoothing,
                softened: self.softened,
                ..Iteration::default()
            },
        }
    }
}

/// Multipliers of an augmented Lagrangian and its penalties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Multipliers {
    /// Of each constraint at each of its knots.
    pub constraints: Vec<f64>,
    /// Of the lower bound of each decision, where bounds have multipliers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<f64>,
    /// Of the upper bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upper: Vec<f64>,
    /// Weight of the constraints.
    pub penalty: f64,
    /// Weight of the bounds.
    #[serde(default)]
    pub bound_penalty: f64,
}

/// A solve, kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Name of the method.
    pub method: String,
    /// [`fingerprint`] of what is solved; whoever keeps the checkpoint sets and compares it.
    #[serde(default)]
    pub problem: String,
    /// How the solve ended, if it has.
    #[serde(default)]
    pub status: Option<Status>,
    /// The iterate.
    pub point: Point,
    /// The best so far.
    pub best: Option<Incumbent>,
    /// With penalties.
    pub multipliers: Multipliers,
    /// Optimality that the present round of multipliers asks for.
    pub round_tolerance: f64,
    /// Violation at the end of the round before; `None` in the first.
    pub last_violation: Option<f64>,
    /// Steps simulated so far.
    pub step_evaluations: u64,
    /// Gradients computed so far.
    pub gradient_evaluations: u64,
    /// One entry an iteration, the guess first.
    pub history: Vec<Iteration>,
    /// What else decides the next steps of the method, which alone knows what it means.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub own: Value,
}

impl Checkpoint {
    /// Can `method` go on with it for a problem?
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn fits(&self, method: Method, problem: &Problem) -> Result<(), String> {
        if self.method != method.name() {
            return Err(format!(
                "it is one of the method `{}`, not of `{}`",
                self.method,
                method.name()
            ));
        }
        let decisions = problem.guess.len() + problem.free_parameters().len();
        let constraints = problem.evaluation().constraints.len();
        let points = [Some(&self.point), self.best.as_ref().map(|b| &b.point)];
        let bounds = [&self.multipliers.lower, &self.multipliers.upper];
        let fits = points.into_iter().flatten().all(|p| {
            let all = p.controls.iter().chain(&p.parameters).chain(&p.states);
            p.controls.len() == problem.guess.len()
                && p.parameters.len() == problem.parameters.len()
                && all.into_iter().all(|v| v.is_finite())
        }) && self.multipliers.constraints.len() == constraints
            && self.multipliers.constraints.iter().all(|v| v.is_finite())
            && bounds.iter().all(|b| b.is_empty() || b.len() == decisions)
            && self.multipliers.penalty > 0.0;
        if !fits {
            return Err(format!(
                "its controls, parameters or multipliers are not finite, or not those of a problem with {} controls, {} parameters and {constraints} constraints over all knots",
                problem.guess.len(),
                problem.parameters.len()
            ));
        }
        Ok(())
    }

    /// What a method keeps of itself.
    pub(super) fn owned(kept: Option<impl Serialize>) -> Value {
        serde_json::to_value(kept).unwrap_or_default()
    }

    /// What the method kept of itself; nothing where there is none, or another version wrote it.
    pub(super) fn own<K: DeserializeOwned>(&self) -> Option<K> {
        K::deserialize(&self.own).ok()
    }

    /// Did the solve converge, and to these tolerances?
    pub fn has_converged(&self, tolerance: f64, optimality: f64) -> bool {
        self.status == Some(Status::Converged)
            && self
                .best
                .as_ref()
                .is_some_and(|b| b.violation <= tolerance && b.optimality <= optimality)
    }

    /// Did the solve end by itself, and not because of a limit or a request?
    pub fn has_ended(&self) -> bool {
        !matches!(
            self.status,
            None | Some(Status::MaxIterations | Status::Interrupted | Status::Completed)
        )
    }

    /// Number of iterations so far.
    pub fn iterations(&self) -> u64 {
        self.history.len().saturating_sub(1) as u64
    }
}

/// Keeps a solve; what it fails with ends the solve.
pub type Save<'a> = dyn FnMut(Checkpoint) -> Result<(), Error> + 'a;

/// Where a solve goes on from, and how it is kept. The default starts anew and keeps nothing.
#[derive(Default)]
pub struct Checkpoints<'a> {
    /// Go on from here.
    pub resume: Option<Checkpoint>,
    /// Given the solve at most once per `every`, and when it ends.
    pub save: Option<Box<Save<'a>>>,
    /// Shortest time between two; zero for all.
    pub every: Duration,
    last: Option<Instant>,
    /// Until the next.
    pause: Duration,
}

/// A solve is kept as rarely as makes keeping it at most this share of its time: one part in so many.
const MOST_KEEPING: u32 = 10;

impl<'a> Checkpoints<'a> {
    /// Goes on from `resume` if there is one; gives `save` the solve at most once per `every`, and when it ends.
    pub fn new(
        resume: Option<Checkpoint>,
        every: Duration,
        save: impl FnMut(Checkpoint) -> Result<(), Error> + 'a,
    ) -> Self {
        Self {
            resume,
            save: Some(Box::new(save)),
            every,
            last: None,
            pause: every,
        }
    }

    /// Is it time to keep the solve?
    pub(super) fn are_due(&mut self) -> bool {
        let last = *self.last.get_or_insert_with(Instant::now);
        self.save.is_some() && last.elapsed() >= self.pause
    }

    /// Keeps the solve, if that was asked for.
    ///
    /// # Errors
    /// What it could not be kept for.
    pub(super) fn keep(&mut self, now: impl FnOnce() -> Checkpoint) -> Result<(), Error> {
        if let Some(save) = &mut self.save {
            let start = Instant::now();
            save(now())?;
            if !self.every.is_zero() {
                self.pause = self.every.max(start.elapsed() * MOST_KEEPING);
            }
            self.last = Some(Instant::now());
        }
        Ok(())
    }
}

/// A short text that changes with anything that `of` prints, the same on every machine (64-bit FNV-1a).
pub fn fingerprint(of: &impl Debug) -> String {
    struct Fnv(u64);
    impl Write for Fnv {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            for b in s.bytes() {
                self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // writing to it cannot fail
    let _ = write!(hash, "{of:?}");
    format!("{:016x}", hash.0)
}
