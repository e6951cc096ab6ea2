//! The core of the second-order methods, once: an iterate with its value ([`Path`]), the augmented Lagrangian of its
//! constraints, the linear-quadratic model along it, Riccati's recursion, and the line search.

mod box_qp;
pub mod dense;
mod hinges;
mod knot;
mod lagrangian;
mod line_search;
mod model;
mod path;
mod reach;
mod riccati;
mod secant;
mod sensitivity;

pub use hinges::{Hinges, Weights};
pub use knot::{Times, Worker, workers};
pub use lagrangian::{FIRST_TOLERANCE, Lagrangian, PENALTY_GROWTH, SLOW, TOLERANCE_REDUCTION};
pub use line_search::{Line, LineSearch, MAX_CONTRACTION, ROUNDING};
pub use model::{Model, Scratch, Sizes};
pub use path::Path;
pub use reach::within_reach;
pub use riccati::{Decisions, Policy, Regularization, Riccati, ScaledParameters};
pub use sensitivity::{Along, Sensitivities};

/// A constraint has no gradient if, to first order, all decisions over their whole ranges change it by less than this
/// part of its violation. Contact that is open by a centimetre and more gives 1e-5 and less.
pub const NO_GRADIENT: f64 = 1e-3;

#[cfg(test)]
mod hinges_tests;
