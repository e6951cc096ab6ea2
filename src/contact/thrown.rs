//! Solutions of a step that are none of the motion.
//!
//! Gaps at the end of a step are nonlinear in the velocities: a rod that turns by almost a right angle closes them again, and Newton's method
//! may come to velocities that are hundreds of times too large and solve the equations. Impulses `J` of contacts, limits, friction and joints
//! do no positive work on the velocities that they lead to, `J . V+ <= 0`, so that with `V` those that forces alone lead to
//!
//! ```text
//! V+ . M (V+ - V) <= 0,    hence    T(V+) <= T(V).
//! ```
//!
//! Rows that turn within the step, and overlaps that are pushed out, change that by parts of these energies. A solution with a multiple of
//! them is refused like a start that was not solved.

use super::{Element, Failed, Layout, NewtonSystem, Solver, View};
use crate::dynamics::StepFailure;
use crate::mechanism::vec3;

/// Multiple of the kinetic energy that forces alone lead to which a solution must not exceed. A turn of a radian per step may double it if the
/// law is `chord`; solutions that are none have hundreds of times as much.
const MOST: f64 = 4.0;

/// Kinetic energy of velocities, six per body, J, and the body with most of it.
fn kinetic(w: &View, v: &[f64]) -> (f64, usize) {
    let (mut sum, mut most) = (0.0, (0.0, 0));
    for (b, body) in w.model.bodies.iter().enumerate() {
        let (linear, omega) = (vec3(v, 6 * b), vec3(v, 6 * b + 3));
        let own = 0.5 * (body.mass * linear.norm_squared() + omega.dot(&(body.inertia * omega)));
        sum += own;
        if own > most.0 {
            most = (own, b);
        }
    }
    (sum, most.1)
}

impl Layout {
    /// Energy of the velocities that push overlaps out, J.
    fn pushes(&self, elements: &[Element], h: f64) -> f64 {
        let each = elements.iter().zip(&self.slots).filter(|(e, _)| e.law.gap);
        let own = each.map(|(e, s)| 0.5 * s.mass * (e.here.gap.min(0.0) / h).powi(2));
        own.sum()
    }
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Fails if the solution at hand is none of the motion; what bounces has velocities of its own before the step.
    pub(super) fn refuse_thrown(&mut self) -> Result<(), Failed> {
        let view = self.step.view();
        if self.layout.elastic || !view.at.steps() {
            return Ok(());
        }
        let h = view.at.h();
        let (after, body) = kinetic(&view, view.trial);
        let pushes = self.layout.pushes(&self.step.contacts().elements, h);
        // what forces add is computed only if they would have to add much
        let is_in_play = |energy: f64| after <= MOST * (energy + pushes);
        if is_in_play(kinetic(&view, view.before).0) || is_in_play(self.energy_of_forces()) {
            return Ok(());
        }
        Err(Failed {
            failure: StepFailure::Energy,
            row: 6 * body,
            residual: after,
        })
    }

    /// Kinetic energy that forces alone lead to, J. The solution stays at hand.
    fn energy_of_forces(&mut self) -> f64 {
        let contacts = self.step.contacts_mut();
        let mut free = std::mem::take(&mut contacts.spare);
        let mut solution = std::mem::take(&mut contacts.last);
        solution.copy_from_slice(self.step.trial());
        self.step.begin(&mut free);
        let (energy, _) = kinetic(&self.step.view(), &free);
        self.step.trial().copy_from_slice(&solution);
        self.step.moved();
        let contacts = self.step.contacts_mut();
        (contacts.spare, contacts.last) = (free, solution);
        self.step.evaluate();
        energy
    }
}
