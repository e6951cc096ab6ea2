//! What observers see of a contact.

use super::super::assembly::dot;
use super::super::{Maximal, Work};
use super::UNKNOWNS;
use super::derivative::turned;
use crate::mechanism::{Field, Row, Touch, Vec6, touch_change};
use crate::spatial::Vec3;
use std::ops::Range;

impl Maximal {
    /// Its numbers among the unknowns.
    pub(in super::super) fn contact_range(&self, contact: usize) -> Range<usize> {
        let first = self.symbolic.dim() + UNKNOWNS * contact;
        first..first + UNKNOWNS
    }

    pub(in super::super) fn contact_unknowns<'a>(&self, y: &'a [f64], contact: usize) -> &'a [f64] {
        &y[self.contact_range(contact)]
    }

    /// What turns its scaled impulses into N s.
    pub(in super::super) fn contact_mass(&self, contact: usize) -> f64 {
        self.contacts.slots[contact].mass
    }

    /// Signed distance at the knot, m.
    pub(in super::super) fn contact_gap(&self, w: &Work, contact: usize) -> f64 {
        w.contacts.elements[contact].here.gap
    }

    /// Gap, normal and point at the knot.
    pub(in super::super) fn contact_touch(&self, w: &Work, contact: usize) -> Touch {
        w.contacts.elements[contact].here
    }

    /// Bodies, and the wrench of a unit normal force at the knot.
    pub(in super::super) fn contact_normal(
        &self,
        w: &Work,
        contact: usize,
    ) -> ((Option<usize>, usize), Row) {
        let slot = &self.contacts.slots[contact];
        (
            (slot.parent, slot.child),
            w.contacts.elements[contact].normal,
        )
    }

    /// The same along a tangent.
    pub(in super::super) fn contact_tangent(
        &self,
        w: &Work,
        contact: usize,
        tangent: usize,
    ) -> ((Option<usize>, usize), Row) {
        let slot = &self.contacts.slots[contact];
        let row = w.contacts.elements[contact].tangents[tangent];
        ((slot.parent, slot.child), row)
    }

    /// Sliding velocity along the tangents at the velocities `w.trial`.
    pub(in super::super) fn sliding(&self, w: &Work, contact: usize) -> [f64; 2] {
        let slot = &self.contacts.slots[contact];
        let e = &w.contacts.elements[contact];
        [0, 1].map(|i| dot(&w.trial, slot.parent, slot.child, &e.tangents[i]))
    }

    /// Derivative of the gap by a number of the mechanism.
    pub(in super::super) fn gap_by(&self, w: &Work, contact: usize, field: Field) -> f64 {
        let m = &w.model;
        m.touch_by(&m.contacts[contact], &w.poses, field)
            .map_or(0.0, |t| t.gap)
    }

    /// Derivative of the sliding speed at given velocities.
    pub(in super::super) fn slip_by(&self, w: &Work, contact: usize, field: Field) -> f64 {
        let (m, slot) = (&w.model, &self.contacts.slots[contact]);
        let Some(change) = m.touch_by(&m.contacts[contact], &w.poses, field) else {
            return 0.0;
        };
        let (a, b) = (m.pose(&w.poses, slot.parent), &w.poses[slot.child]);
        let [_, rows @ ..] = touch_change(&w.contacts.elements[contact].here, &change, a, b);
        let slide = self.sliding(w, contact);
        let size = slide[0].hypot(slide[1]);
        if size == 0.0 {
            return 0.0;
        }
        let along = rows.iter().zip(slide);
        along
            .map(|(row, s)| s / size * dot(&w.trial, slot.parent, slot.child, row))
            .sum()
    }

    /// Derivative of a sliding velocity by the configuration, parent and child.
    pub(in super::super) fn contact_turn(
        &self,
        w: &Work,
        contact: usize,
        tangent: usize,
    ) -> [Vec6; 2] {
        let (e, slot) = (&w.contacts.elements[contact], &self.contacts.slots[contact]);
        let c = self.contact_coupling(w, (e, slot), Vec3::ith(1 + tangent, 1.0));
        turned(&c, &w.trial, slot.parent, slot.child)
    }
}
