//! How a trajectory is found. Each method is an argmin `Solver`; all know only [`crate::control`] and the seam.

mod augmented;
pub mod checkpoint;
pub mod curvature;
pub mod shooting;

pub use checkpoint::{Checkpoint, Checkpoints};

use serde::{Deserialize, Deserializer, Serialize};

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Violation and optimality are below their tolerances.
    Converged,
    /// The limit of iterations was reached.
    MaxIterations,
    /// The constraints could not be met.
    Infeasible,
    /// No step makes progress, or the trajectory cannot be simulated.
    Diverged,
    /// Stopped from outside; the best iterate is kept.
    Interrupted,
}

impl Status {
    /// As in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxIterations => "max_iterations",
            Self::Infeasible => "infeasible",
            Self::Diverged => "diverged",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One iteration of an optimizer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number, from 0 (the guess).
    pub iteration: u64,
    /// Without penalties.
    #[serde(deserialize_with = "number")]
    pub objective: f64,
    /// Largest violation of any constraint or bound.
    #[serde(deserialize_with = "number")]
    pub violation: f64,
    /// What the method's model still promises to gain, relative to the objective.
    #[serde(deserialize_with = "number")]
    pub optimality: f64,
    /// Length of the step taken.
    #[serde(deserialize_with = "number")]
    pub step_length: f64,
    /// Penalty weight of the augmented Lagrangian.
    #[serde(deserialize_with = "number")]
    pub regularization: f64,
}

/// JSON writes a number that is not finite as `null`.
fn number<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::NAN))
}
