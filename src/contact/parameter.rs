//! How contacts, limits and joint friction depend on the mechanism's numbers.

use super::cone::Law;
use super::pyramid::Facets;
use super::{Element, Layout, Memory, NOWHERE, Slot, Source, View};
use crate::dynamics::Stage;
use crate::mechanism::{Field, NamedParameter, Row, dot, touch_change};
use crate::spatial::{Pose, Vec3};

impl Layout {
    /// Calls `emit` with what a parameter changes of an element: inflows, and entries of the bodies' rows.
    pub(super) fn by_parameter(
        &self,
        (w, memory): (&View, &Memory),
        (e, index): (&Element, usize),
        parameter: usize,
        mut emit: impl FnMut(Entry, f64),
    ) {
        let (m, slot) = (w.model, &self.slots[index]);
        if e.bounces && !w.at.steps() {
            let by = self.restitution_by(m, slot, &m.parameters[parameter].fields);
            let rate = dot(w.before, slot.parent, slot.child, &e.normal);
            emit(Entry::Inflow(0), by * rate);
        }
        let i = match slot.source {
            Source::Contact(i) => i,
            Source::Friction(j, i) | Source::Limit(j, i, _) => {
                for field in &m.parameters[parameter].fields {
                    self.by_joint_number((w, memory), (e, slot), *field, &mut emit);
                    self.by_anchor((w, memory), (e, slot), (j, i), *field, &mut emit);
                }
                return;
            }
        };
        let contact = &m.contacts[i];
        let fields = &m.parameters[parameter].fields;
        let mu = m.friction_by(contact, fields);
        if mu != 0.0 {
            emit(Entry::Inflow(4), mu * e.local.g);
        }
        for field in fields {
            self.by_touch_parameter((w, memory), (e, slot), *field, &mut emit);
        }
    }

    /// A limit moves its gap; friction bounds its impulse, over half of both intervals.
    fn by_joint_number(
        &self,
        (w, memory): (&View, &Memory),
        (e, slot): (&Element, &Slot),
        field: Field,
        emit: &mut impl FnMut(Entry, f64),
    ) {
        match (slot.source, field) {
            (Source::Friction(j, i), Field::JointFriction(of)) if of == (j, i) => {
                let half = w.at.half();
                emit(Entry::Inflow(4), half / slot.mass);
            }
            // a blow asks for the rate alone
            (Source::Limit(..), _) if e.bounces => {}
            (Source::Limit(j, i, true), Field::UpperLimit(of)) if of == (j, i) => {
                emit(Entry::Inflow(0), 1.0 / memory.interval);
            }
            (Source::Limit(j, i, false), Field::LowerLimit(of)) if of == (j, i) => {
                emit(Entry::Inflow(0), -1.0 / memory.interval);
            }
            _ => {}
        }
    }

    /// Response of a contact's friction to its bound where the coefficient is zero and a parameter raises it. On the
    /// central path the impulse is `-mu g eta/psi` only once `mu g` is well above `kappa/|eta|`, and its derivative at
    /// zero vanishes; what is of use is Coulomb's one-sided derivative, `-g eta/|eta|`, with `|eta|` rounded as the path
    /// rounds it at a coefficient of one: nothing where the contact rests.
    fn onset(&self, w: &View, memory: &Memory, (e, slot): (&Element, &Slot)) -> Option<[f64; 2]> {
        let Source::Contact(i) = slot.source else {
            return None;
        };
        let (m, l) = (w.model, &e.local);
        let raised = |p: &NamedParameter| m.friction_by(&m.contacts[i], &p.fields) != 0.0;
        // what is about to bounce has no impulse yet
        if e.law.frictional || !e.law.gap || !m.parameters.iter().any(raised) {
            return None;
        }
        let unit = Law {
            frictional: true,
            mu: 1.0,
            ..e.law
        };
        let kappa = memory.kappa.max(memory.smoothing);
        let rows = self.sliding_rows(w, (e, slot));
        let eta = rows.map(|row| dot(w.trial, slot.parent, slot.child, &row));
        let (mut at, mut facets) = (unit.start(l.s, l.g, eta, kappa), Facets::ZERO);
        let mut bound = at.g;
        if let Some(pyramid) = &self.pyramid {
            pyramid.start(&unit, &mut at, &mut facets, kappa);
            // all impulses add up to the bound; the largest is the reciprocal of a difference that lost its digits
            bound = facets.at.b.iter().sum::<f64>() + kappa / at.psi;
        }
        Some(at.b.map(|b| b / bound))
    }

    /// What friction of zero answers to a parameter that raises it.
    pub(super) fn respond_onsets(&self, w: &View, memory: &mut Memory) {
        if memory.idle || w.model.parameters.is_empty() {
            return;
        }
        for (i, slot) in self.slots.iter().enumerate() {
            if let Some(b) = self.onset(w, memory, (&memory.elements[i], slot)) {
                memory.elements[i].response.raise(b);
            }
        }
    }

    /// Anchors move the lever arms of a slide's friction and limits, and its coordinate.
    fn by_anchor(
        &self,
        (w, memory): (&View, &Memory),
        (e, slot): (&Element, &Slot),
        (j, i): (usize, usize),
        field: Field,
        emit: &mut impl FnMut(Entry, f64),
    ) {
        let joint = &w.model.joints[j];
        let d = &joint.directions[i];
        if d.freedom.turns() {
            return;
        }
        let upper = slot.source == Source::Limit(j, i, true);
        let sign = if upper { -1.0 } else { 1.0 };
        let moved =
            |poses: &[Pose]| joint.coordinate_by_anchor((j, i), field, w.model.ends(joint, poses));
        let (Some(here), Some(next)) = (moved(w.poses), moved(w.next)) else {
            return;
        };
        let row = |poses: &[Pose]| {
            let Field::ChildAnchor(_, k) = field else {
                return Row::ZERO;
            };
            let (a, b) = w.model.ends(joint, poses);
            let unit = Vec3::ith(k, 1.0);
            let row = Row {
                force: Vec3::zeros(),
                parent_torque: d.unit.cross(&joint.arm_by_child_anchor(&unit, a, b)),
                child_torque: unit.cross(&b.r.tr_mul(&(a.r * d.unit))),
            };
            row * sign
        };
        let rate = |row: &Row| dot(w.trial, slot.parent, slot.child, row);
        let (turned, ended) = (row(w.poses), row(w.next));
        let l = &e.local;
        let impulse = if e.law.gap {
            let by = match w.at.stage {
                Stage::Step(h) => sign * next / h,
                Stage::Readout(_) if e.bounces => {
                    let before = dot(w.before, slot.parent, slot.child, &turned);
                    rate(&turned) + e.restitution * before
                }
                Stage::Readout(_) => sign * here / memory.interval + rate(&turned),
            };
            emit(Entry::Inflow(0), by);
            l.g
        } else {
            let slide = match w.at.stage {
                Stage::Step(_) => 0.5 * (rate(&turned) + rate(&ended)),
                Stage::Readout(_) => rate(&turned),
            };
            emit(Entry::Inflow(1), slide);
            l.b[0]
        };
        emit_row(&turned, -slot.mass * impulse, slot, emit);
    }

    fn by_touch_parameter(
        &self,
        (w, memory): (&View, &Memory),
        (e, slot): (&Element, &Slot),
        field: Field,
        emit: &mut impl FnMut(Entry, f64),
    ) {
        let Source::Contact(i) = slot.source else {
            return;
        };
        let m = w.model;
        let contact = &m.contacts[i];
        let at = |poses| m.touch_by(contact, &e.held, poses, field);
        let (here, next) = match w.at.stage {
            Stage::Step(_) => (at(w.poses), at(w.next)),
            Stage::Readout(_) => (at(w.poses), None),
        };
        if here.is_none() && next.is_none() {
            return;
        }
        let (here, next) = (here.unwrap_or(NOWHERE), next.unwrap_or(NOWHERE));
        let (p, c) = (slot.parent, slot.child);
        let (a, b) = (m.pose(w.poses, p), &w.poses[c]);
        // rows of unit forces change with the normal and the point
        let axis = contact.frame_axis(&e.here);
        let changes = touch_change(&e.here, &here, axis, (a, b));
        let mut slides = [changes[1], changes[2]];
        match w.at.stage {
            Stage::Step(h) => {
                emit(Entry::Inflow(0), (next.gap - e.left * here.gap) / h);
                let ends = (m.pose(w.next, p), &w.next[c]);
                let [_, t, s] = touch_change(&e.next, &next, axis, ends);
                slides = [(slides[0] + t) * 0.5, (slides[1] + s) * 0.5];
            }
            Stage::Readout(_) => {
                let turned = dot(w.trial, p, c, &changes[0]);
                let kept = if e.bounces {
                    e.restitution * dot(w.before, p, c, &changes[0])
                } else {
                    here.gap / memory.interval
                };
                emit(Entry::Inflow(0), kept + turned);
            }
        }
        if e.law.frictional {
            for (i, row) in slides.iter().enumerate() {
                emit(Entry::Inflow(1 + i), dot(w.trial, p, c, row));
            }
        }
        let l = &e.local;
        for (row, size) in changes.iter().zip([l.g, l.b[0], l.b[1]]) {
            emit_row(row, -slot.mass * size, slot, emit);
        }
    }
}

/// A wrench among the bodies' rows.
fn emit_row(row: &Row, size: f64, slot: &Slot, emit: &mut impl FnMut(Entry, f64)) {
    for (i, x) in row.child().iter().enumerate() {
        emit(Entry::Residual(6 * slot.child, i), size * x);
    }
    if let Some(p) = slot.parent {
        for (i, x) in row.parent().iter().enumerate() {
            emit(Entry::Residual(6 * p, i), size * x);
        }
    }
}

/// What of an element a parameter changes.
pub(super) enum Entry {
    Inflow(usize),
    /// Body's first row, and which of its six.
    Residual(usize, usize),
}
