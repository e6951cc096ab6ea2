//! How a mechanism moves: one step of it, and the step's derivatives, behind the traits of [`crate::dynamics`] and
//! [`Mechanical`].

mod choice;
pub mod maximal;
mod mechanical;
mod system;

pub use crate::contact::{Cone, ContactOptions, ContactWork};
pub use choice::{Choice, ChoiceError};
pub use maximal::{Maximal, Options};
pub(crate) use mechanical::motions;
pub use mechanical::{MatrixSize, Mechanical, Tally};
pub use system::{System, SystemWork};
