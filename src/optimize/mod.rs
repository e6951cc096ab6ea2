//! How a trajectory is found: one driver on argmin's executor ([`Solve`]) for every [`Method`]; all know only
//! [`crate::control`] and the seam.
//!
//! # The methods compared
//!
#![doc = include_str!("../../docs/methods.md")]

mod augmented;
mod bound_multipliers;
pub mod checkpoint;
pub mod ddp;
pub mod direct;
mod driver;
mod infeasibility;
pub mod learn;
pub mod levenberg_marquardt;
mod lq;
mod method;
pub mod nlp;
mod reduced;
mod rounds;
mod scale;
pub mod shooting;
mod state;
pub mod unconstrained;

pub use augmented::Covariance;
pub use checkpoint::{Checkpoint, Checkpoints};
pub use ddp::receding::{self, RecedingHorizon};
pub use driver::{Limits, Solve, solve};
pub use method::{Method, Options};
pub use reduced::Reduced;
pub use state::{Best, SolveState};

use crate::control::{LinearFeedback, Problem};
use crate::dynamics::Frame;
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use serde::{Deserialize, Deserializer, Serialize};

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Violation and optimality are below their tolerances.
    Converged,
    /// The constraints hold, and no further descent was found, but optimality is above its tolerance: it rests on a kink,
    /// or steps no longer gain what the model predicts.
    Stationary,
    /// The limit of iterations was reached.
    MaxIterations,
    /// The constraints cannot be met near the iterate: within the bounds of all decisions their linearization cannot, or the
    /// iterate is a stationary point of their violation.
    Infeasible,
    /// No step makes progress towards the constraints, or the trajectory cannot be simulated.
    Diverged,
    /// Stopped from outside; the best iterate is kept.
    Interrupted,
    /// A learner made the iterations that it was given; what it found is the best of them, and no more is known of it.
    Completed,
}

impl Status {
    /// Is there a solution: the constraints hold, and nothing better was found near it? Or is all done that a learner was
    /// asked for, which cannot say so much?
    pub fn is_solved(self) -> bool {
        matches!(self, Self::Converged | Self::Stationary | Self::Completed)
    }

    /// As in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Stationary => "stationary",
            Self::MaxIterations => "max_iterations",
            Self::Infeasible => "infeasible",
            Self::Diverged => "diverged",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
        }
    }
}

/// What may help a solve that found no solution, or not the best, for those to put in words who know where it is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// To go on from its checkpoint ([`Checkpoints::resume`]).
    Resume,
    /// Differential dynamic programming with [`ddp::Smoothing`] from this start, m^2/s^2.
    Smoothing {
        /// [`ddp::Smoothing::start`].
        start: f64,
    },
    /// Other [`ddp::Smoothing`], or none: what is found on kinks depends on it.
    OtherSmoothing,
}

/// One iteration of an optimizer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number, from 0 (the guess).
    pub iteration: u64,
    /// Without penalties; of learners that of the best so far.
    #[serde(deserialize_with = "number")]
    pub objective: f64,
    /// Largest violation of any constraint or bound; of learners that of the best so far.
    #[serde(deserialize_with = "number")]
    pub violation: f64,
    /// Reduction that the method's model still predicts, relative to the objective and half the penalty times the square of
    /// the violation, or of the tolerance. Infinite of learners, which have no model.
    #[serde(deserialize_with = "number")]
    pub optimality: f64,
    /// Length of the step taken; of `cmaes` and `search` the width, or the length, of the draw.
    #[serde(deserialize_with = "number")]
    pub step_length: f64,
    /// Penalty weight of the augmented Lagrangian.
    #[serde(deserialize_with = "number")]
    pub regularization: f64,
    /// Central path's parameter that derivatives through contact were taken at, m^2/s^2; 0: that of the steps.
    #[serde(default)]
    pub smoothing: f64,
    /// Were the steps softened to it, too? In files 1 or 0, as all of a row are numbers.
    #[serde(default, with = "digit")]
    pub softened: bool,
    /// Of learners: mean of the objective, without penalties, over the iteration's rollouts that did not fail.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Of learners: the iteration's rollouts that failed.
    #[serde(default)]
    pub failures: Option<u64>,
    /// Of learners: rollouts so far.
    #[serde(default)]
    pub rollouts: Option<u64>,
    /// Of `policy-gradient`: mean of the norms of the iteration's gradients, before any was clipped.
    #[serde(default)]
    pub gradient_mean: Option<f64>,
    /// Of `policy-gradient`: the largest of them.
    #[serde(default)]
    pub gradient_largest: Option<f64>,
    /// Of `policy-gradient`: how many of them were clipped.
    #[serde(default)]
    pub clipped: Option<u64>,
    /// Of `direct`: the error of complementarity of bounds and their multipliers, the larger one of which and of the gradient's is
    /// `optimality`.
    #[serde(default)]
    pub complementarity: Option<f64>,
}

impl Iteration {
    /// Nothing could be evaluated.
    fn unknown() -> Self {
        Self {
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            optimality: f64::INFINITY,
            ..Self::default()
        }
    }
}

/// What a solve found.
#[derive(Clone, Debug)]
pub struct Solution {
    /// How it ended.
    pub status: Status,
    /// Why, in words, unless it converged.
    pub reason: String,
    /// What may help, where something is known to.
    pub remedy: Option<Remedy>,
    /// What of the problem was left out or replaced, in words.
    pub remarks: Vec<String>,
    /// The best trajectory; its `p` are the parameters found.
    pub trajectory: Trajectory,
    /// Objective without penalties.
    pub objective: f64,
    /// Largest violation of a constraint or bound.
    pub violation: f64,
    /// Relative reduction that the method's model still predicts.
    pub optimality: f64,
    /// Central path's parameter of the derivatives that this and the gains were computed with, m^2/s^2; 0: that of the
    /// steps.
    pub smoothing: f64,
    /// Iterations.
    pub iterations: u64,
    /// Steps simulated.
    pub step_evaluations: u64,
    /// Reverse sweeps, or linearizations along the whole trajectory.
    pub gradient_evaluations: u64,
    /// Feedback around the trajectory, where the method finds one.
    pub gains: Option<Gains>,
    /// How well the parameters are determined, where `levenberg-marquardt` found them from residuals.
    pub covariance: Option<Covariance>,
    /// One entry an iteration, the guess first.
    pub history: Vec<Iteration>,
    /// Of learners: rollouts that failed, by the way they did.
    pub failed: Vec<learn::Failed>,
}

impl Solution {
    /// The feedback around the trajectory as a policy, for a [`crate::control::ClosedLoop`] of the system that was
    /// solved; `None` where the method finds none.
    pub fn feedback(&self) -> Option<LinearFeedback> {
        let Gains { feedback, frames } = self.gains.clone()?;
        LinearFeedback::new(self.trajectory.clone(), feedback, frames).ok()
    }

    /// The bound that each parameter of the problem solved ended at; `None` inside, and where it is no decision.
    pub fn parameters_at_bounds(&self, problem: &Problem) -> Vec<Option<Bound>> {
        bounds_reached(problem, &self.trajectory.p)
    }
}

/// The bound that each of these parameters is at, as [`Solution::parameters_at_bounds`].
fn bounds_reached(problem: &Problem, parameters: &[f64]) -> Vec<Option<Bound>> {
    let at = |(p, (l, u)): (&f64, &(f64, f64))| {
        let size = |bound: f64| AT_BOUND * scale::extent(bound, (*l, *u));
        let rests = |bound: f64, away: f64| bound.is_finite() && away <= size(bound);
        match (l < u, rests(*l, p - l), rests(*u, u - p)) {
            (true, true, _) => Some(Bound::Lower),
            (true, _, true) => Some(Bound::Upper),
            _ => None,
        }
    };
    let parameters = parameters.iter().zip(&problem.parameter_bounds);
    parameters.map(at).collect()
}

/// A bound of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The smallest value allowed.
    Lower,
    /// The largest.
    Upper,
}

impl Bound {
    /// As in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Upper => "upper",
        }
    }
}

/// Distance from a bound, relative to the range, or to the bound's size where the other side is open, from which on a
/// parameter rests there: decisions that approach it from inside stop a little before.
const AT_BOUND: f64 = 1e-6;

/// Linear feedback around a trajectory: `u = u_k + K_k d`, with `d` the change of the joint chart that leads from the
/// trajectory's state to the present one ([`crate::dynamics::Charts::difference`]).
#[derive(Clone, Debug)]
pub struct Gains {
    /// `K_k`, nu x ndx, one a step; rows of controls at a bound are zero.
    pub feedback: Vec<DMatrix<f64>>,
    /// The frames of the states that it refers to; one in all where they are the identity.
    pub frames: Vec<Frame>,
}

impl Gains {
    /// The frame at knot `k`.
    pub fn frame(&self, k: usize) -> &Frame {
        &self.frames[k.min(self.frames.len() - 1)]
    }
}

/// Truth as a number.
mod digit {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &bool, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8((*value).into())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
        Ok(u8::deserialize(d)? != 0)
    }
}

/// JSON writes a number that is not finite as `null`. Those that are kept are infinite: what could not be evaluated.
fn number<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
}
