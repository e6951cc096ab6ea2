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
//! composition are; the step over `-h` takes back that over `h`, where no contact, limit or friction acts.
//! Gears and users' constraints and potentials: see
//! [`crate::mechanism::HolonomicConstraint`] and its siblings.
//!
//! A state stores, per body, position (3), orientation (4, scalar first), velocity (3) and angular velocity (3, body
//! frame) of the interval before, and behind them the unwound angle of every joint that has one.

mod aligned;
mod assembly;
mod blow;
mod build;
mod chart;
mod contact;
#[cfg(test)]
pub(in crate::integrator) mod contact_tests;
mod elements;
#[cfg(test)]
mod elements_tests;
mod equations;
#[cfg(test)]
mod equations_tests;
mod initial;
mod interval;
mod jacobian;
mod keep;
mod linear;
mod mechanical;
#[cfg(test)]
mod observe_tests;
mod parameter;
mod pull;
mod singular;
mod state;
mod step;
#[cfg(test)]
mod step_tests;
mod stored;
mod swing;
mod tangent;
#[cfg(test)]
pub(in crate::integrator) mod tests;
mod work;

pub use work::Work;

use super::Options;
use super::failure::{explain, explain_contacts};
use crate::block::Symbolic;
use crate::contact::Failed;
use crate::dynamics::{
    Certificate, Dims, Frame, Inputs, Knot, LinearModel, Outputs, Parameter, SolvedStep, Start,
    StepError, StepFailure, StepStats,
};
use crate::mechanism::{DamperLaw, Mechanism, Mobility, Quantity};
use crate::spatial::{Mat3, RotationLaw};
use mechanical::Observation;
use nalgebra::DMatrix;
use work::DampedState;

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
    law: DamperLaw,
    /// Blocks of the matrix: parent-child, child-parent.
    slots: Option<(usize, usize)>,
}

/// The maximal-coordinate integrator of one mechanism.
#[derive(Debug)]
pub struct Maximal {
    mechanism: Mechanism,
    mobility: Mobility,
    options: Options,
    outputs: Vec<Quantity>,
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
    /// `G M^-1 G'` of every joint row as built, by which joints give way at singular positions.
    compliances: Vec<f64>,
    /// Joint and direction of every unwound angle.
    windings: Vec<(usize, usize)>,
    /// Index among `windings` of each joint.
    winding_of: Vec<Option<usize>>,
    /// Gears and users' constraints and potentials.
    elements: elements::Layout,
    /// Contacts, limits and friction of joints.
    contacts: crate::contact::Layout,
}

impl Maximal {
    /// Settings.
    pub fn options(&self) -> Options {
        self.options
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
            return self.contacts.name(&self.mechanism, contact);
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

    fn failed(&self, f: Failed, w: &Work) -> StepError {
        let error = self.failure(f.failure, w, f.row, f.residual);
        if self.contacts.is_empty() {
            return error;
        }
        let contacts = (&self.contacts, &w.contacts);
        let explained = explain_contacts(
            f.failure,
            &self.view(w),
            contacts,
            self.options.finer_steps(),
        );
        match explained {
            Some((body, message)) => StepError {
                element: body.map_or(error.element, |body| self.element(6 * body)),
                message,
                ..error
            },
            None => error,
        }
    }

    fn failure(&self, failure: StepFailure, w: &Work, row: usize, residual: f64) -> StepError {
        let at = &w.knot.at;
        let law = (w.model.bodies.get(row / 6)).map_or(RotationLaw::Chord, |b| b.rotation);
        let intervals = (at.h_prev, at.h());
        let message = explain(
            failure,
            residual,
            intervals,
            (&law, self.options.finer_steps()),
        );
        StepError {
            failure,
            element: self.element(row),
            time: w.knot.at.t,
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
        self.mechanism.controls()
    }

    fn parameters(&self) -> Vec<Parameter> {
        super::parameter::named_parameters(&self.mechanism)
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        self.apply(p, w)?;
        self.initial_at(start, w, x)
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.apply(p, w)?;
        self.initial_jacobian(start, w)
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.apply(p, w)?;
        self.initial_by_start(start, w)
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
    fn linearize_in(&self, at: &SolvedStep, w: &mut Work) -> Result<Certificate, StepError> {
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

    fn restore_in(&self, at: &SolvedStep, kept: &[f64], w: &mut Work) -> Result<bool, StepError> {
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
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Work,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        self.apply(p, w)?;
        if !w.model.has_loops() {
            self.tree_frame(at, x, &w.model, out);
            return Ok(());
        }
        *out = self.loop_frame(at, x, previous, &w.model)?;
        Ok(())
    }

    fn has_identity_frames(&self) -> bool {
        false
    }

    /// The knot before is `back(z, h V)`: with `h V` held it stays where it is.
    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let Some(h) = at.before() else { return };
        let n = 6 * self.body_count();
        for (out, (v, w)) in out[n..].chunks_exact_mut(6).zip(self.velocities_of(x)) {
            for i in 0..3 {
                (out[i], out[3 + i]) = (-v[i] / h, -w[i] / h);
            }
        }
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
            || w.matrix.uses_fallback
            || !self.elements.is_empty()
            || !self.contacts.is_empty()
        {
            crate::dynamics::model_by_pushes(self, w, from, to, out);
        } else {
            self.tree_model(w, from, out);
        }
    }
}
