//! How a mechanism moves: one step of it, and the step's derivatives, behind the traits of [`crate::dynamics`] and
//! [`Mechanical`].
//!
//! | integrator | what it is |
//! |---|---|
//! | [`Maximal`] | variational, six coordinates a body, second order |
//! | [`Minimal`] | the same mechanics of trees, in joint coordinates |
//! | [`Held`] | another one's steps, with controls that are held between knots |
//! | [`Composed`] | another one's steps, composed to order 4 or 6, or so many equal ones for each |
//! | [`Aligned`] | another one's steps, each split at the instants of elastic impacts |
//! | [`Divided`] | another one's steps, each in as many parts as its fastest swings ask for |
//! | [`System`] | any of them, chosen while the program runs |

pub mod aligned;
#[cfg(test)]
mod checks;
mod choice;
pub mod composed;
pub mod divided;
mod external;
mod failure;
pub mod held;
pub mod maximal;
mod mechanical;
pub mod minimal;
mod options;
mod parameter;
mod reading;
mod swing;
mod system;
mod within;

pub use crate::contact::{Cone, ContactOptions, ContactWork, Impacts};
pub use aligned::Aligned;
pub use choice::{Choice, ChoiceError, Substeps};
pub use composed::{Composed, Order};
pub use divided::Divided;
pub use external::{ExternalWork, StepWork};
pub use held::{Controls, Held};
pub use maximal::Maximal;
pub(crate) use mechanical::motions;
pub use mechanical::{MatrixSize, Mechanical, Swing, VelocityChange};
pub use minimal::Minimal;
pub use options::{Options, finer_steps};
pub use reading::{ReadFrom, Reading};
pub use system::{System, SystemWork};
