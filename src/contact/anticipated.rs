//! Contacts in the read-out of velocities at a knot that are open there.
//!
//! `s = phi(z)/h- + N v` extrapolates the gap along a line. What a ball flies past within a step, the edge of a box or the bend of a height
//! field, may close along that line and stay open in truth: it would turn the velocity at one knot, while the step has no such contact. A
//! contact that is open at the knot has not acted yet. If its line is too far from its gap, it takes no part in the read-out, as what is about
//! to bounce does not, and the step after the knot has all of its impulse.

use super::cone::{Law, Local};
use super::{Element, Failed, Layout, Moment, NewtonSystem, Solver, Source, View};
use crate::mechanism::{ContactPair, vec3};
use crate::spatial::Pose;

/// Gap, m, above which a contact is open. Gaps of what touches are below 1e-9 m, as steps leave them; of what strikes within a step a part
/// of `1e-7 m/(v h)` is smaller.
const OPEN: f64 = 1e-7;
/// The same in parts of the gap that the central path leaves where it acts: parts of the step before had impulses of the same size.
const ON_PATH: f64 = 10.0;
/// Part of the velocity that a contact takes away by which its extrapolated gap may be wrong. Velocities at a knot are between those of the
/// intervals beside it to about that part.
const BENT: f64 = 0.05;

impl Layout {
    /// Is an element a contact that is open at the knot and acts in the read-out, though its gap is not what the read-out takes it for? Of
    /// half-spaces nothing is flown past.
    fn is_bent(&self, w: &View, (i, e): (usize, &Element), (interval, kappa): (f64, f64)) -> bool {
        let acts = e.law.gap && e.local.g > e.local.s;
        if !acts || e.here.gap < OPEN + ON_PATH * interval * kappa / e.local.g {
            return false;
        }
        let slot = &self.slots[i];
        let Source::Contact(contact) = slot.source else {
            return false;
        };
        let contact = &w.model.contacts[contact];
        if let ContactPair::Ground { .. } = contact.pair {
            return false;
        }
        let moved = |body: usize| {
            let v = |at: usize| vec3(w.trial, 6 * body + at) * interval;
            w.poses[body].moved(&v(0), &v(3))
        };
        let parent = slot.parent.map_or_else(Pose::identity, moved);
        let child = moved(slot.child);
        let gap = w.model.touch_at(contact, &e.held, (&parent, &child)).gap;
        gap / interval - e.local.s > BENT * e.local.g
    }

    /// Leaves such elements out; are there any?
    fn leave_out_bent(&self, w: &View, elements: &mut [Element], path: (f64, f64)) -> bool {
        let mut any = false;
        for (i, e) in elements.iter_mut().enumerate() {
            if self.is_bent(w, (i, e), path) {
                e.law = Law {
                    gap: false,
                    frictional: false,
                    ..e.law
                };
                e.local = Local::default();
                any = true;
            }
        }
        any
    }
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Solves a read-out again without contacts that are open at the knot and whose gaps bend.
    pub(super) fn leave_out(&mut self, y: &[f64]) -> Result<(), Failed> {
        if matches!(self.step.contacts().moment, Moment::Blow(_)) {
            return Ok(());
        }
        // each round leaves out one at least
        for _ in 0..self.layout.slots.len() {
            let path = (self.step.contacts().interval, self.step.contacts().kappa);
            let leave_out = |layout: &Layout, w: &View, elements: &mut [Element], _: f64| {
                layout.leave_out_bent(w, elements, path)
            };
            if !self.with_elements(leave_out) {
                return Ok(());
            }
            self.solve_path(y, false)?;
        }
        Ok(())
    }
}
