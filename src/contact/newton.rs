//! What contacts need of a step, and what the step fails with.

use super::Memory;
use crate::dynamics::{Place, StepFailure};
use crate::mechanism::{Mechanism, Relative};
use crate::spatial::Pose;

/// Where the bodies are and how they move: at the knot, and at the velocities last evaluated.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub model: &'a Mechanism,
    pub at: Place,
    /// Configurations at the knot, and at its successor.
    pub poses: &'a [Pose],
    pub next: &'a [Pose],
    /// Scalar parts of the rotation increments of the interval.
    pub scalar: &'a [f64],
    /// Relative poses of all joints at the knot.
    pub relative: &'a [Relative],
    /// Unwound angles, and the index among them of each joint's.
    pub windings: (&'a [Option<usize>], &'a [f64]),
    /// Velocities of the interval before, six per body.
    pub before: &'a [f64],
    /// The step's unknowns last evaluated: six velocities per body first.
    pub trial: &'a [f64],
}

impl View<'_> {
    /// The joint's unwound angle at the knot, else 0.
    pub fn winding(&self, joint: usize) -> f64 {
        let (of, angles) = self.windings;
        of[joint].map_or(0.0, |i| angles[i])
    }
}

/// Why an iteration ended without a solution, and the row of the step to blame; elements count behind the step's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub failure: StepFailure,
    pub row: usize,
    pub residual: f64,
}

impl Failed {
    /// Is another attempt at the step to be made? Not where this one used up what a step may take.
    pub fn may_retry(&self) -> bool {
        !matches!(self.failure, StepFailure::Budget | StepFailure::Stopped)
    }

    /// What to report where the iterations were used up after an attempt failed: that one says why more were needed.
    pub fn after(self, attempt: Option<Self>) -> Self {
        match (self.failure, attempt) {
            (StepFailure::Budget, Some(first)) => match first.failure {
                StepFailure::Domain => first,
                _ => Self {
                    failure: StepFailure::Budget,
                    ..first
                },
            },
            _ => self,
        }
    }
}

/// A step whose equations contacts are part of: it calls [`super::Layout::prepare`], [`super::Layout::evaluate`] and
/// [`super::Layout::assemble`] within its own, is solved by [`super::Solver`], and changes by the solutions of
/// [`super::Layout::solve_linearized`]. Where the blocks of the matrix fail, [`super::Layout::factor`] and [`Memory::solve`]
/// stand in for its factors.
///
/// Its unknowns are six velocities of every body, then what else it has; its rows likewise. The unknowns of contacts are
/// eliminated into the blocks of their bodies and kept in [`Memory`]. Where velocities of bodies follow from other unknowns,
/// these are behind them, and rows of bodies are brought to those of these.
pub(crate) trait NewtonSystem {
    /// The step as last evaluated.
    fn view(&self) -> View<'_>;

    /// What is computed for the contacts.
    fn contacts(&self) -> &Memory;

    /// The same, to be changed.
    fn contacts_mut(&mut self) -> &mut Memory;

    /// The unknowns.
    fn trial(&mut self) -> &mut [f64];

    /// The unknowns have been moved: what follows from others is brought to them, not finite where it lies outside the domain.
    fn moved(&mut self) {}

    /// Writes unknowns that forces alone lead to, or those of the state if they lead outside the domain; do they stay inside?
    fn begin(&mut self, out: &mut [f64]) -> bool;

    /// The same where forces alone would tear joints apart: velocities that joints allow to first order, without contacts. False where
    /// [`NewtonSystem::begin`] has joints in it, or there are none.
    fn begin_jointly(&mut self, _out: &mut [f64]) -> bool {
        false
    }

    /// Writes the unknowns of a step, its velocities being those of the state where they are not given, as zeros; are they given?
    fn begin_at(&mut self, y: &[f64], out: &mut [f64]) -> bool;

    /// The residual of all rows at the unknowns last evaluated.
    fn residual(&self) -> &[f64];

    /// Its largest entries as velocities, m/s, with their rows: of those that impulses enter, and of constraints.
    fn worst(&self) -> [(f64, usize); 2];

    /// Computes it; returns the largest entry, its row, and the floor that rounding sets to it.
    fn evaluate(&mut self) -> (f64, usize, f64);

    /// Assembles the matrix; with `keep` so that [`NewtonSystem::solve`] can be refined on it without contacts.
    fn assemble(&mut self, keep: bool);

    /// Factors it; block by block, or with pivots where `pivots` are asked for or a block is singular.
    fn factor(&mut self, pivots: Option<usize>) -> Result<(), Failed>;

    /// Solves with the factors, or with their transpose, unrefined; not finite where they fail.
    fn solve(&mut self, rhs: &[f64], out: &mut [f64], transposed: bool);

    /// Had the last factorization pivots?
    fn has_pivots(&self) -> bool;

    /// Takes the product with the matrix without contacts, which was kept, or with its transpose, from rows.
    fn leave(&self, x: &[f64], rows: &mut [f64], transposed: bool);

    /// Brings what wrenches of contacts left in rows of bodies to where residuals are measured, or what is dual to velocities.
    fn settle(&self, _rows: &mut [f64], _transposed: bool) {}
}
