//! What is solved at a knot: the step over the interval after it, or the velocities there.

use super::{Knot, KnotPoint};

/// What is solved at a knot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    /// The step over an interval of this length, s. It is negative in the backward steps of a composition, never zero.
    Step(f64),
    /// The velocities at the knot itself, from which a step over an interval of this length follows, s: what meets there is what
    /// meets in that step.
    Readout(f64),
}

/// A knot, and what is solved there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    /// s
    pub t: f64,
    /// Length of the interval before the knot, s; 0 at the start.
    pub h_prev: f64,
    /// What is solved.
    pub stage: Stage,
}

impl Place {
    /// Length of the interval of which forces at the knot have half their impulse after it, s: none in a read-out.
    pub fn h(&self) -> f64 {
        match self.stage {
            Stage::Step(h) => h,
            Stage::Readout(_) => 0.0,
        }
    }

    /// Weight of a force at the knot, s: `(h- + h)/2`.
    pub fn half(&self) -> f64 {
        0.5 * (self.h_prev + self.h())
    }

    /// What rows of constraints move by at unit velocity: the interval of a step, s; of a read-out they are velocities themselves.
    pub fn scale(&self) -> f64 {
        match self.stage {
            Stage::Step(h) => h,
            Stage::Readout(_) => 1.0,
        }
    }

    /// Is the interval after the knot stepped over?
    pub fn steps(&self) -> bool {
        matches!(self.stage, Stage::Step(_))
    }

    /// Length of the interval before the knot, s; none at the start.
    pub fn before(&self) -> Option<f64> {
        (self.h_prev != 0.0).then_some(self.h_prev)
    }
}

impl Knot {
    /// Length of the interval before the knot, s; none at the start.
    pub fn before(&self) -> Option<f64> {
        (self.h_prev != 0.0).then_some(self.h_prev)
    }

    /// Length of the interval after the knot, s; none at the end.
    pub fn after(&self) -> Option<f64> {
        (self.h != 0.0).then_some(self.h)
    }

    /// The step from the knot.
    pub(crate) fn step(&self) -> Place {
        self.at(Stage::Step(self.h))
    }

    /// The read-out of the velocities at the knot. Where no interval follows, or it is not known, it is as long as the one before.
    pub(crate) fn readout(&self) -> Place {
        self.at(Stage::Readout(self.after().unwrap_or(self.h_prev)))
    }

    fn at(&self, stage: Stage) -> Place {
        Place {
            t: self.t,
            h_prev: self.h_prev,
            stage,
        }
    }
}

impl KnotPoint<'_> {
    /// The read-out of the velocities there. The step from there is known by its unknowns: that of a knot whose step is yet to be
    /// made, in parts of any number, takes the interval before for the one after.
    pub(crate) fn readout(&self) -> Place {
        let h = if self.y.is_empty() { 0.0 } else { self.at.h };
        Knot { h, ..self.at }.readout()
    }
}
