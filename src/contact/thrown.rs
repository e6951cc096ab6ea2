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
//! What contacts, limits and friction add to the kinetic energy is `J . (V- + V+)/2`, which is then negative, too. Rows that turn within the
//! step, and overlaps that are pushed out, change both by parts of these energies. A solution in which contacts add energy is refused if it has
//! a multiple of `T(V)`, like a start that was not solved. If the step may be made in smaller parts, in which rows turn less, it is refused if
//! contacts add a noticeable part.

use super::{Element, Failed, Layout, NewtonSystem, Solver, View};
use crate::dynamics::StepFailure;
use crate::mechanism::{dot, vec3};

/// Multiple of the kinetic energy that forces alone lead to which a solution must not exceed. A turn of a radian per step may double it if the
/// law is `chord`; solutions that are none have hundreds of times as much.
const MOST: f64 = 4.0;

/// Part of the kinetic energy that contacts may add in a step before smaller parts of it are tried: from drop to drop of bodies without
/// restitution, energy then grows by less than a percent.
const ADDED: f64 = 0.02;
/// The same, of the energy of the changes of velocity by their impulses alone, `m_c g^2/2`: what holds bodies at rest moves by rounding, 1e-8 of
/// it. A body of 21 g that one of 24 kg squeezes out is given 100 of 2800 J.
const PUSHED: f64 = 1e-3;

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
    /// What the impulses add to the kinetic energy, and the energy of what they change the velocities by, J.
    fn added(&self, w: &View, elements: &[Element]) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for (e, slot) in elements.iter().zip(&self.slots) {
            let mean = |row| {
                let along = |v| dot(v, slot.parent, slot.child, row);
                0.5 * (along(w.before) + along(w.trial))
            };
            let rows = [&e.normal, &e.tangents[0], &e.tangents[1]];
            for (impulse, row) in e.local.impulses().into_iter().zip(rows) {
                if impulse != 0.0 {
                    sums[0] += slot.mass * impulse * mean(row);
                    sums[1] += 0.5 * slot.mass * impulse * impulse;
                }
            }
        }
        sums
    }

    /// Energy of the velocities that push overlaps out, and of those that the end of the central path leaves, `sqrt(kappa)`, J. Places that are
    /// below the other body, but beside it, have no impulse.
    fn pushes(&self, w: &View, elements: &[Element], kappa: f64) -> f64 {
        let (h, path) = (w.at.h(), w.model.mass() * kappa);
        let each = elements.iter().zip(&self.slots).filter(|(e, _)| e.law.gap);
        let speed = |e: &Element| (-e.here.gap / h).clamp(0.0, e.local.g.max(0.0));
        let overlaps: f64 = each.map(|(e, s)| 0.5 * s.mass * speed(e).powi(2)).sum();
        overlaps + path
    }
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Fails if the solution at hand, at the end `kappa` of the path, is none of the motion; what bounces has velocities of its own before the
    /// step.
    pub(super) fn refuse_thrown(&mut self, kappa: f64) -> Result<(), Failed> {
        let view = self.step.view();
        if self.layout.elastic || !view.at.steps() {
            return Ok(());
        }
        let (after, body) = kinetic(&view, view.trial);
        let before = kinetic(&view, view.before).0;
        let c = self.step.contacts();
        let pushes = self.layout.pushes(&view, &c.elements, kappa);
        let [added, changed] = self.layout.added(&view, &c.elements);
        if added <= pushes + (ADDED * before.max(after)).max(PUSHED * changed) {
            return Ok(());
        }
        let failed = |failure, residual| {
            Err(Failed {
                failure,
                row: 6 * body,
                residual,
            })
        };
        if c.most < self.layout.options.max_iterations {
            return failed(StepFailure::Budget, self.stats.residual);
        }
        // what forces add is computed only if they would have to add much
        let is_in_play = |energy: f64| after <= MOST * (energy + pushes);
        match is_in_play(before) || is_in_play(self.energy_of_forces()) {
            true => Ok(()),
            false => failed(StepFailure::Energy, after),
        }
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
