//! The variational integrator in maximal coordinates (Bruedigam et al.; papers 000 and 002).
//!
//! With `h-`, `h` the intervals before and after a knot, the step solves for the velocities `v+, w+` of all bodies and
//! the impulses `lambda` of all joints at once:
//!
//! ```text
//! m (v+ - v-)     - (h- + h)/2 f(z,u)   - Gx(z)' lambda = 0      [N s]
//! p+(w+) - p-(w-) - (h- + h)/2 tau(z,u) - Gq(z)' lambda = 0      [N m s]
//! g(z+) = 0                                                      [m], [half rad]
//! p+-(w) = sqrt(1 - h^2 w'w/4) J w +- (h/2) w x J w
//! ```
//!
//! Forces, torques and `G` are taken at the knot `z`, constraints at its successor `z+`. Dampers give half of an
//! interval's impulse at each of its ends. The same equations with `h = 0`, and `G(z) v+ = 0` in place of `g(z+) = 0`,
//! are the second-order read-out of the velocities at a knot. Intervals may be negative, as the backward steps of a
//! composition are; the step over `-h` takes back that over `h`, where no contact, limit or friction acts. Gears and users' constraints and potentials: see
//! [`crate::mechanism::HolonomicConstraint`] and its siblings.
//!
//! A state stores, per body, position (3), orientation (4, scalar first), velocity (3) and angular velocity (3, body
//! frame) of the interval before, and behind them the unwound angle of every joint that has one.

mod assembly;
mod build;
mod chart;
mod contact;
mod elements;
#[cfg(test)]
mod elements_tests;
mod equations;
mod initial;
mod interval;
mod jacobian;
mod keep;
mod linear;
mod observe;
mod parameter;
mod state;
mod step;
mod stored;
mod tangent;
#[cfg(test)]
mod tests;

pub use contact::{Cone, ContactOptions, ContactWork};
pub(crate) use observe::Contacting;
pub use observe::{About, Output, Reaction};
pub use state::Velocities;

use crate::block::{Fallback, Symbolic};
use crate::dynamics::{
    Certificate, Dims, Frame, Inputs, Knot, LinearModel, Outputs, Parameter, Place, Seen, Solved,
    StepError, StepFailure, StepStats,
};
use crate::mechanism::{Coupling, Mechanism, Mobility, Relative, Row};
use crate::spatial::{Mat3, Pose, Vec3};
use nalgebra::DMatrix;

/// Settings of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest residual that is accepted: N s, N m s, m, half rad. With contacts, limits or friction of joints every row
    /// is measured as a velocity: m/s.
    pub tolerance: f64,
    /// Newton iterations at most; with contacts from each start, before turns of the central path are followed.
    pub max_iterations: usize,
    /// Of contacts, joint limits and joint friction.
    pub contact: ContactOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            max_iterations: 50,
            contact: ContactOptions::default(),
        }
    }
}

/// Where a joint's blocks lie in the matrix.
#[derive(Clone, Copy, Debug)]
struct JointSlots {
    /// First row in the unknowns.
    offset: usize,
    /// First of the joint's rows among all rows.
    first_row: usize,
    diagonal: usize,
    /// (body by joint, joint by body) of the child.
    child: (usize, usize),
    /// The same of the parent.
    parent: Option<(usize, usize)>,
}

/// Something that damps: a direction of a joint, or a spring.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DampedElement {
    Joint(usize, usize),
    Spring(usize),
}

/// A damped coordinate and its blocks.
#[derive(Clone, Copy, Debug)]
struct Damped {
    element: DampedElement,
    parent: Option<usize>,
    child: usize,
    /// Shares of the impulse of the interval before and of the one after that act at a knot.
    shares: (f64, f64),
    /// Blocks of the matrix: parent-child, child-parent.
    slots: Option<(usize, usize)>,
}

/// The maximal-coordinate integrator of one mechanism.
#[derive(Debug)]
pub struct Maximal {
    mechanism: Mechanism,
    mobility: Mobility,
    options: Options,
    outputs: Vec<Output>,
    symbolic: Symbolic,
    /// Diagonal block of each body.
    bodies: Vec<usize>,
    /// Slots of the joints that constrain something; the others have `None`.
    slots: Vec<Option<JointSlots>>,
    /// Stretches of the matrix that assembly does not write: diagonals of joints, fill-in, blocks of dampers.
    zeros: Vec<std::ops::Range<usize>>,
    rows: usize,
    damped: Vec<Damped>,
    /// The dampers of each joint, then of each spring.
    damped_by: Vec<std::ops::Range<usize>>,
    /// Values of the mechanism's parameters as it was built.
    nominal: Vec<f64>,
    /// Coordinates of the tree that stay when loops are closed for other parameters.
    held: Vec<bool>,
    /// Their rates, of which velocity constraints bind some.
    held_rates: Vec<bool>,
    inverse_inertia: Vec<Mat3>,
    /// Joint and direction of every unwound angle.
    windings: Vec<(usize, usize)>,
    /// Index among `windings` of each joint.
    winding_of: Vec<Option<usize>>,
    /// Gears and users' constraints and potentials.
    elements: elements::Layout,
    /// Contacts, limits and friction of joints.
    contacts: contact::Layout,
}

/// Memory of one thread: matrices, factors and everything computed at a knot.
pub struct Work {
    at: Place,
    /// The mechanism with the parameters of the last call.
    model: Mechanism,
    parameters: Vec<f64>,
    inverse_inertia: Vec<Mat3>,
    /// Configurations at the knot and at its successor.
    poses: Vec<Pose>,
    next: Vec<Pose>,
    /// Scalar parts of the rotation increments of the intervals after and before.
    scalar: Vec<f64>,
    scalar_prev: Vec<f64>,
    /// Rows of all joints at the knot, and at its successor as last assembled.
    rows: Vec<Row>,
    rows_next: Vec<Row>,
    relative: Vec<Relative>,
    relative_next: Vec<Relative>,
    /// Forces and torques at the knot, six per body.
    force: Vec<f64>,
    /// Old momenta plus the impulses that do not depend on the unknowns.
    base: Vec<f64>,
    damping: Vec<DampedState>,
    residual: Vec<f64>,
    /// Unknowns, a trial of them, and the Newton step.
    y: Vec<f64>,
    trial: Vec<f64>,
    delta: Vec<f64>,
    scratch: Vec<f64>,
    /// Regularization of the redundant rows, and its size relative to `h` and the rows' compliance.
    epsilon: Vec<f64>,
    regularization: f64,
    /// The matrix as assembled (kept for refinement) and its factors.
    original: Vec<f64>,
    values: Vec<f64>,
    /// Largest relative residual of the adjoint solves since it was asked for.
    certificate: Option<f64>,
    fallback: Option<Box<Fallback>>,
    uses_fallback: bool,
    /// Derivative blocks at the solution, once a push has asked for them.
    coupled: bool,
    couplings: Vec<Coupling>,
    adjoint: Vec<f64>,
    zplus: Vec<f64>,
    zminus: Vec<f64>,
    /// Velocities and angular velocities before the knot, six per body.
    before: Vec<f64>,
    /// Adjoints on their way through the read-out.
    observed: Inputs,
    readout: Outputs,
    winding: Vec<f64>,
    /// Controls as they come, as actuators can exert them, and the derivative of these by those.
    commanded: Vec<f64>,
    control: Vec<f64>,
    control_slope: Vec<f64>,
    control_rows: Vec<Row>,
    elements: elements::Memory,
    contacts: contact::Memory,
    /// Memory of the linear model of trees, once asked for.
    jacobian: Option<Box<jacobian::Jacobian>>,
}

impl Work {
    /// Asks for the residuals of the adjoint solves to be computed from here on, which costs a product each.
    pub fn certify(&mut self) {
        self.certificate = Some(0.0);
    }

    /// Largest relative residual `|K' mu - rhs| / |rhs|` of the adjoint solves since [`Work::certify`].
    pub fn linear_residual(&self) -> Option<f64> {
        self.certificate
    }
}

/// A damper at a knot.
#[derive(Clone, Copy, Debug)]
struct DampedState {
    /// Its unit impulse.
    wrench: Row,
    /// Displacement over the interval before.
    before: f64,
    /// Displacement over the interval after, and its derivative by the configuration at its end.
    after: f64,
    after_end: Row,
    after_start: Row,
    before_end: Row,
    before_start: Row,
}

impl DampedState {
    const ZERO: Row = Row {
        force: Vec3::new(0.0, 0.0, 0.0),
        parent_torque: Vec3::new(0.0, 0.0, 0.0),
        child_torque: Vec3::new(0.0, 0.0, 0.0),
    };
    const EMPTY: Self = Self {
        wrench: Self::ZERO,
        before: 0.0,
        after: 0.0,
        after_end: Self::ZERO,
        after_start: Self::ZERO,
        before_end: Self::ZERO,
        before_start: Self::ZERO,
    };
}

impl Maximal {
    /// Declares what can be observed; costs and constraints refer to these by index.
    pub fn with_outputs(mut self, outputs: Vec<Output>) -> Self {
        self.outputs = outputs;
        self
    }

    /// What moves.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// How it can move.
    pub fn mobility(&self) -> Mobility {
        self.mobility
    }

    /// Settings.
    pub fn options(&self) -> Options {
        self.options
    }

    /// What can be observed.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The graph of the step's matrix.
    pub fn symbolic(&self) -> &Symbolic {
        &self.symbolic
    }

    fn body_count(&self) -> usize {
        self.mechanism.bodies.len()
    }

    fn dims(&self) -> Dims {
        let n = self.body_count();
        Dims {
            nx: 13 * n + self.windings.len(),
            nf: 12 * n,
            ndx: 2 * self.mobility.degrees_of_freedom,
            nu: self.mechanism.actuators.len(),
            np: self.nominal.len(),
            ny: self.symbolic.dim() + self.contacts.unknowns(),
        }
    }

    /// Names the body or joint of an unknown's row.
    fn element(&self, row: usize) -> String {
        if let Some(contact) = row.checked_sub(self.symbolic.dim()) {
            return self.contact_name(contact);
        }
        if row < 6 * self.body_count() {
            return format!("body `{}`", self.mechanism.bodies[row / 6].name);
        }
        if let Some(c) = self.elements.constraint_of(row) {
            let c = &self.mechanism.constraints[c];
            return format!("{} `{}`", c.kind().1, c.name);
        }
        let joint = self
            .slots
            .iter()
            .rposition(|s| s.is_some_and(|s| s.offset <= row))
            .unwrap_or(0);
        format!("joint `{}`", self.mechanism.joints[joint].name)
    }

    fn failure(&self, failure: StepFailure, w: &Work, row: usize, residual: f64) -> StepError {
        let message = match failure {
            StepFailure::Domain => {
                let h = w.at.h().abs().max(w.at.h_prev.abs());
                format!(
                    "the body turns faster than its discrete momentum allows: sqrt(2)/h = {:.3} rad/s over an interval, a spin of 1/h = {:.3} rad/s; take a smaller time step",
                    std::f64::consts::SQRT_2 / h,
                    1.0 / h
                )
            }
            StepFailure::NotConverged => {
                if self.contacts.is_empty() {
                    "Newton's method did not reach the tolerance; take a smaller time step, or check forces and the initial state"
                } else {
                    "the interior-point method for contacts did not reach the tolerance; take a smaller time step, a larger kappa or less friction, or check the initial state for overlaps"
                }
                .into()
            }
            StepFailure::Singular => {
                "the step's matrix is singular; check for massless or over-constrained parts".into()
            }
            StepFailure::Interval if w.at.h().min(w.at.h_prev) < 0.0 => {
                "contacts, limits and friction cannot be stepped backwards: give positive intervals".into()
            }
            StepFailure::Interval => "an interval is zero or not finite; check the time steps".into(),
            StepFailure::Parameter => "a parameter has a value without meaning; give it bounds".into(),
            StepFailure::Frame => tangent::FOREIGN.into(),
            StepFailure::Size => "a list has another length than the system's".into(),
            StepFailure::Unsupported => {
                "contacts, limits and friction have no unsolved equations; use a method that takes solved steps".into()
            }
            StepFailure::Budget => {
                "the iterations that a step may take were used up; raise the budget, or take a smaller time step".into()
            }
            StepFailure::Stopped => "a stop was requested".into(),
            StepFailure::NotFinite => "the state or a control is not a finite number".into(),
        };
        StepError {
            failure,
            element: self.element(row),
            time: w.at.t,
            residual,
            message,
        }
    }
}

impl crate::dynamics::Step for Maximal {
    type Work = Work;

    fn dims(&self) -> Dims {
        Self::dims(self)
    }

    fn work(&self) -> Work {
        Self::work(self)
    }

    fn controls(&self) -> Vec<(String, String)> {
        let actuators = self.mechanism.actuators.iter().enumerate();
        actuators
            .map(|(i, a)| (a.name.clone(), self.control_unit(i).into()))
            .collect()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.named_parameters()
    }

    fn initial(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        self.apply(p, w)?;
        self.initial_at(q, rates, w, x)
    }

    fn initial_by_parameters(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.apply(p, w)?;
        self.initial_jacobian(q, rates, w)
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.apply(p, w)?;
        self.solve_step(at, x, u, w, next, y)
    }

    fn soften(&self, w: &mut Work, kappa: f64) -> bool {
        w.contacts.soften(kappa);
        true
    }
}

impl crate::dynamics::Differentiable for Maximal {
    fn linearize_in(&self, at: &Solved, w: &mut Work) -> Result<Certificate, StepError> {
        self.apply(at.p, w)?;
        self.linearize_at(at, w)
    }

    fn smoothing(&self, w: &mut Work, kappa: f64) {
        w.contacts.relax(kappa);
    }

    fn kept(&self) -> usize {
        self.kept_len()
    }

    fn keep_in(&self, w: &Work, kept: &mut [f64]) -> bool {
        self.keep_linearized(w, kept)
    }

    fn restore_in(&self, at: &Solved, kept: &[f64], w: &mut Work) -> Result<bool, StepError> {
        self.apply(at.p, w)?;
        self.restore_linearized(at, kept, w)
    }

    fn push_in(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        self.push_through(w, d, out);
    }

    fn pull_in(&self, w: &mut Work, adjoint: &Outputs, out: &mut Inputs) {
        self.pull_through(w, adjoint, out);
    }
}

impl crate::dynamics::Charts for Maximal {
    fn frame(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Work,
    ) -> Result<Frame, StepError> {
        self.apply(p, w)?;
        self.frame_at(at, x, previous, &w.model)
    }

    fn has_identity_frames(&self) -> bool {
        false
    }

    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.apply(p, w)?;
        self.retract_at(at, x, frame, d, &w.model, out)
    }

    fn difference(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Work,
        out: &mut [f64],
    ) {
        if self.apply(p, w).is_err() {
            out.fill(f64::NAN);
            return;
        }
        self.difference_at(at, x, frame, &w.model, to, out);
    }

    fn difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Work,
    ) -> Result<nalgebra::DMatrix<f64>, StepError> {
        if w.model.has_loops() {
            return self.loop_difference_by(at, x, frame, to);
        }
        crate::dynamics::difference_by_moves(self, at, x, p, frame, to, w)
    }

    fn linear_model_in(&self, w: &mut Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        if w.model.has_loops()
            || w.uses_fallback
            || !self.elements.is_empty()
            || !self.contacts.is_empty()
        {
            crate::dynamics::model_by_pushes(self, w, from, to, out);
        } else {
            self.tree_model(w, from, out);
        }
    }
}

impl crate::dynamics::Observe for Maximal {
    fn quantities(&self) -> Vec<(String, String)> {
        self.outputs.iter().map(|o| self.output_name(o)).collect()
    }

    fn needs_unknowns(&self, quantity: usize) -> bool {
        let output = self.outputs.get(quantity);
        output.is_some_and(Output::needs_unknowns)
    }

    fn observe_in(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.apply(seen.p, w)?;
        self.observe_at(seen, which, w, out)
    }

    fn observe_pull_in(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        self.observe_pull_at(seen, which, w, adjoint, out, y);
    }
}
