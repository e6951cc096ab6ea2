//! Quantities that few numbers of a state, or one control, tell alone: they are read there, without evaluating a knot.

use super::mechanical::Mechanical;
use crate::dynamics::KnotPoint;
use crate::mechanism::Quantity;

/// A quantity that few numbers tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Its value.
    pub value: f64,
    /// What tells it.
    pub of: ReadFrom,
    /// Its derivatives by that and by what follows it, zero where nothing does.
    pub slopes: [f64; 3],
    /// By the interval before the knot.
    pub by_h_prev: f64,
}

/// The number that tells a quantity, or the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// Of the state, by its place in the free chart.
    State(usize),
    /// A control.
    Control(usize),
}

/// The quantity at a knot, where it can be read so.
pub(super) fn reading<S: Mechanical>(
    system: &S,
    seen: &KnotPoint,
    quantity: &Quantity,
) -> Option<Reading> {
    let read = match *quantity {
        Quantity::Control(i) => Some(Reading {
            value: seen.u[i],
            of: ReadFrom::Control(i),
            slopes: [1.0, 0.0, 0.0],
            by_h_prev: 0.0,
        }),
        _ => system.reading(seen, quantity),
    };
    // what is no state is for the system to say
    read.filter(|r| r.value.is_finite())
}
