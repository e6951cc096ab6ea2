//! How a mechanism moves: one step of it, and the step's derivatives, behind the traits of [`crate::dynamics`].

pub mod maximal;

pub use maximal::{About, Maximal, Options, Output, Reaction};
