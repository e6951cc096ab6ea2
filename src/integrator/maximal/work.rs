//! The memory of a step, by what its parts are of.

use super::blow::Blow;
use super::mechanical::Observation;
use super::{elements, jacobian};
use crate::block::Fallback;
use crate::contact;
use crate::dynamics::Place;
use crate::integrator::swing::Turning;
use crate::mechanism::{Coupling, Mechanism, Relative, Row};
use crate::spatial::{Mat3, Pose};

/// Memory of one thread: matrices, factors and everything computed at a knot.
pub struct Work {
    /// The mechanism with the parameters of the last call.
    pub(super) model: Mechanism,
    pub(super) parameters: Vec<f64>,
    pub(super) inverse_inertia: Vec<Mat3>,
    pub(super) knot: AtKnot,
    pub(super) end: AtEnd,
    pub(super) newton: Newton,
    pub(super) matrix: Matrix,
    pub(super) adjoint: Adjoints,
    pub(super) observation: Observation,
    pub(super) elements: elements::Memory,
    pub(super) contacts: contact::Memory,
    /// Where something bounces.
    pub(super) blow: Option<Box<Blow>>,
    /// The contacts' own rows.
    pub(super) contacts_left: Vec<f64>,
    /// The dampers' values while an estimate of the fastest swing scales them.
    pub(super) dampings: Vec<f64>,
    pub(super) turning: Turning,
    /// Memory of the linear model of trees, once asked for.
    pub(super) jacobian: Option<Box<jacobian::Jacobian>>,
}

/// What is known at the knot before anything is solved.
pub(super) struct AtKnot {
    pub at: Place,
    pub poses: Vec<Pose>,
    /// Velocities and angular velocities of the interval before, six per body.
    pub before: Vec<f64>,
    /// Scalar parts of its rotation increments.
    pub scalar: Vec<f64>,
    pub winding: Vec<f64>,
    pub relative: Vec<Relative>,
    /// Rows of all joints.
    pub rows: Vec<Row>,
    /// Forces and torques, six per body.
    pub force: Vec<f64>,
    /// Old momenta plus the impulses that do not depend on the unknowns.
    pub base: Vec<f64>,
    pub damping: Vec<DampedState>,
    /// Controls as they come, as actuators can exert them, and the derivative of these by those.
    pub commanded: Vec<f64>,
    pub control: Vec<f64>,
    pub control_slope: Vec<f64>,
    pub control_rows: Vec<Row>,
}

/// What the velocities last evaluated lead to at the end of the interval.
pub(super) struct AtEnd {
    pub poses: Vec<Pose>,
    /// Scalar parts of the rotation increments of the interval.
    pub scalar: Vec<f64>,
    pub relative: Vec<Relative>,
    /// Rows of all joints, as last assembled.
    pub rows: Vec<Row>,
    /// Poses where the end is a variable of its own.
    pub given: Vec<Pose>,
}

/// Unknowns (six velocities per body, then impulses) of Newton's method.
pub(super) struct Newton {
    /// The last iterate.
    pub y: Vec<f64>,
    /// The unknowns that are evaluated; the solution in the end.
    pub trial: Vec<f64>,
    pub residual: Vec<f64>,
    pub delta: Vec<f64>,
    /// Of refinement.
    pub scratch: Vec<f64>,
    /// A solution that is compared with another.
    pub kept: Vec<f64>,
    /// Does the step end near a flat position of a loop?
    pub ends_flat: bool,
}

/// The step's matrix.
pub(super) struct Matrix {
    /// The factors; before, the matrix.
    pub values: Vec<f64>,
    /// The matrix as assembled, without the regularization, where it is kept for refinement.
    pub original: Vec<f64>,
    /// Each joint row's own `G M^-1 G'` at the knot, and the regularization of redundant rows: so much times `h` times that, of the
    /// sign of `h` as the Schur complement `h G M^-1 G'` is.
    pub own: Vec<f64>,
    pub regularization: f64,
    /// How far joints give way; see [`super::singular`].
    pub softness: f64,
    /// General factors, once they were needed, and whether they are those of the matrix.
    pub fallback: Option<Box<Fallback>>,
    pub uses_fallback: bool,
}

/// What pushes and pulls through the step compute.
pub(super) struct Adjoints {
    /// Multipliers of the residual, or its change.
    pub mu: Vec<f64>,
    /// Of the configurations at the knots after and before, six per body.
    pub zplus: Vec<f64>,
    pub zminus: Vec<f64>,
    /// Derivatives of wrenches by the configuration at the knot, once a push has asked for them.
    pub couplings: Vec<Coupling>,
    pub coupled: bool,
    /// Largest relative residual of the adjoint solves since it was asked for.
    pub certificate: Option<f64>,
    /// Adjoint of the next state where it is seen from another one.
    pub next: Vec<f64>,
    /// Adjoint of the residual, as far as it is not taken at the end.
    pub residual: Vec<f64>,
}

impl Work {
    /// Asks for the residuals of the adjoint solves to be computed from here on, which costs a product each.
    pub fn certify(&mut self) {
        self.adjoint.certificate = Some(0.0);
    }

    /// Largest relative residual `|K' mu - rhs| / |rhs|` of the adjoint solves since [`Work::certify`].
    pub fn linear_residual(&self) -> Option<f64> {
        self.adjoint.certificate
    }
}

/// A damper at a knot.
#[derive(Clone, Copy, Debug)]
pub(super) struct DampedState {
    /// Its unit impulse.
    pub wrench: Row,
    /// Displacement over the interval before.
    pub before: f64,
    /// Displacement over the interval after, and its derivatives by the configurations at its end and at the knot. In a read-out: the rate
    /// at the knot, and its derivatives by velocities and by the configuration.
    pub after: f64,
    pub after_end: Row,
    pub after_start: Row,
    pub before_end: Row,
    pub before_start: Row,
}

impl DampedState {
    pub(super) const EMPTY: Self = Self {
        wrench: Row::ZERO,
        before: 0.0,
        after: 0.0,
        after_end: Row::ZERO,
        after_start: Row::ZERO,
        before_end: Row::ZERO,
        before_start: Row::ZERO,
    };
}
