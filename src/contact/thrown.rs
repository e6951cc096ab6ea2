//! Solutions of a step in which contacts add energy.
//!
//! What contacts, limits and friction add to the kinetic energy is `J . (V- + V+)/2`, with their impulses `J` at the knot and the velocities
//! before and after it. They can only take energy, but for rows that turn within the step and overlaps that are pushed out. Where a body turns
//! far, gaps close again, and Newton's method may come to velocities that are many times too large and solve the equations; a light body that a
//! heavy one squeezes out slides along a normal that is not that of the knot. Joints also turn within a step: their impulses do no work on the
//! velocities at the knot, but can on the mean of the velocities before and after it. If the step may be made in smaller parts, in which rows turn less, a
//! solution in which contacts add a noticeable part is refused.

use super::{Element, Failed, Layout, NewtonSystem, Solver, View};
use crate::dynamics::StepFailure;
use crate::mechanism::{dot, vec3};

/// Part of the kinetic energy that contacts may add in a step before smaller parts of it are tried. Of eighteen drops of bodies of 20 g to 30 kg
/// that had gained up to 56 % in a step of 2 to 20 ms, none then gains more than 2.5 %.
const ADDED: f64 = 0.02;
/// The same, of the energy of the changes of velocity by their impulses alone, `m_c g^2/2`: what holds bodies at rest moves by rounding, 1e-8 of
/// it. A body of 21 g that one of 24 kg squeezes out is given 100 of 2800 J.
const PUSHED: f64 = 1e-3;

/// Factor by which the kinetic energy may exceed both that before the step and that of the step without contacts, after a body turned by
/// more than [`TURNED`]. Above it, smaller parts are tried. Coarse steps change an energy by up to a quarter. A box of 9 kg with a ball
/// and a rod on rails, struck at 47 rad/s, turned by 1 rad in a part of 5 ms and had 47 times its energy.
const GAINED: f64 = 1.25;
/// Turn of a body in a step, rad, above which it may have several solutions; with smaller ones steps are nearly linear. The folded legs of
/// a robot of 9 kg turned by 0.1 rad in 2 ms and threw it at four times its energy.
const TURNED: f64 = 0.05;

/// The sum of `m_c kappa` that contacts add at the end of the central path, at most: gaps open by `s` from the knot before on, and to the next.
const PATH: f64 = 2.0;

/// Kinetic energy of velocities, six per body, J.
pub(super) fn kinetic(w: &View, v: &[f64]) -> f64 {
    let each = w.model.bodies.iter().enumerate().map(|(b, body)| {
        let (linear, omega) = (vec3(v, 6 * b), vec3(v, 6 * b + 3));
        0.5 * (body.mass * linear.norm_squared() + omega.dot(&(body.inertia * omega)))
    });
    each.sum()
}

/// Does a body turn by more than [`TURNED`] in the solution at hand?
fn turns_far(w: &View) -> bool {
    let mut bodies = 0..w.model.bodies.len();
    bodies.any(|b| w.at.h().abs() * vec3(w.trial, 6 * b + 3).norm() > TURNED)
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

    /// Energy of the velocities that push overlaps out, and what contacts add at the end of the central path, where `s g = kappa`, J. Places
    /// that are below the other body, but beside it, have no impulse.
    fn pushes(&self, w: &View, elements: &[Element], kappa: f64) -> f64 {
        let h = w.at.h();
        let each = elements.iter().zip(&self.slots).filter(|(e, _)| e.law.gap);
        let speed = |e: &Element| (-e.here.gap / h).clamp(0.0, e.local.g.max(0.0));
        let own = each.map(|(e, s)| s.mass * (0.5 * speed(e).powi(2) + PATH * kappa));
        own.sum()
    }
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Fails if contacts add energy in the solution at hand, at the end `kappa` of the path, and the step may be made in smaller parts.
    pub(super) fn refuse_thrown(&mut self, kappa: f64) -> Result<(), Failed> {
        let may_divide = self.step.view().at.steps() && self.step.contacts().may_divide();
        if !(may_divide && self.adds_energy(kappa)) {
            return Ok(());
        }
        Err(Failed {
            failure: StepFailure::Budget,
            row: 0,
            residual: self.stats.residual,
        })
    }

    /// Do contacts add a noticeable part of the kinetic energy in the solution at hand, at the end `kappa` of the path? Or is the energy far
    /// above that before the step and that without contacts, after a body turned far?
    pub(super) fn adds_energy(&mut self, kappa: f64) -> bool {
        let (view, c) = (self.step.view(), self.step.contacts());
        let pushes = self.layout.pushes(&view, &c.elements, kappa);
        let [added, changed] = self.layout.added(&view, &c.elements);
        let [before, after] = [view.before, view.trial].map(|v| kinetic(&view, v));
        if added > pushes + (PUSHED * changed).max(ADDED * before.max(after)) {
            return true;
        }
        let is_above = |energy: f64| after > GAINED * (energy + pushes);
        is_above(before) && turns_far(&view) && is_above(self.kinetic_without_contacts())
    }

    /// Kinetic energy without contacts, to first order, J; infinite if it is not known. Restores the solution at hand.
    fn kinetic_without_contacts(&mut self) -> f64 {
        self.keep_point();
        let mut start = std::mem::take(&mut self.step.contacts_mut().last);
        let is_known = self.step.begin_jointly(&mut start) || self.step.begin(&mut start);
        let energy = if is_known {
            kinetic(&self.step.view(), &start)
        } else {
            f64::INFINITY
        };
        self.step.contacts_mut().last = start;
        self.return_to_point();
        self.step.evaluate();
        energy
    }
}
