//! How a mechanism moves: one step of it, and the step's derivatives, behind the traits of [`crate::dynamics`] and
//! [`Mechanical`].

mod choice;
pub mod maximal;
mod mechanical;
mod system;

pub use choice::{Choice, ChoiceError};
pub use maximal::{Cone, ContactOptions, Maximal, Options};
pub use mechanical::{ContactWork, MatrixSize, Mechanical, Tally};
pub(crate) use mechanical::motions;
pub use system::{System, SystemWork};
