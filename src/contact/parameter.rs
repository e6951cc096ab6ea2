//! How contacts, limits and joint friction depend on the mechanism's numbers.

use super::cone::Law;
use super::pyramid::Facets;
use super::{Element, Layout, Memory, Slot, Source, View};
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
        let i = match slot.source {
            Source::Contact(i) => i,
            Source::Friction(j, i) | Source::Limit(j, i, _) => {
                for field in &m.parameters[parameter].fields {
                    self.by_joint_number((w, memory), slot, *field, &mut emit);
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
        if self.bounces(w, (e, slot)).is_some() {
            // the gap's rate is less by restitution (-N v-)
            let approach = -dot(w.before, slot.parent, slot.child, &e.normal);
            let restitution = m.restitution_by(contact, fields);
            emit(Entry::Inflow(0), -restitution * approach);
        }
        for field in fields {
            self.by_touch_parameter((w, memory), (e, slot), *field, &mut emit);
        }
    }

    /// A limit moves its gap; friction bounds its impulse, over half of both intervals.
    fn by_joint_number(
        &self,
        (w, memory): (&View, &Memory),
        slot: &Slot,
        field: Field,
        emit: &mut impl FnMut(Entry, f64),
    ) {
        match (slot.source, field) {
            (Source::Friction(j, i), Field::JointFriction(of)) if of == (j, i) => {
                let half = w.at.half();
                emit(Entry::Inflow(4), half / slot.mass);
            }
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
        if e.law.frictional || !m.parameters.iter().any(raised) {
            return None;
        }
        let unit = Law {
            frictional: true,
            mu: 1.0,
            ..e.law
        };
        let kappa = memory.kappa.max(memory.smoothing);
        let eta = [0, 1].map(|i| dot(w.trial, slot.parent, slot.child, &e.tangents[i]));
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
        let moved = |poses: &[Pose]| {
            let (a, b) = w.model.ends(joint, poses);
            match field {
                Field::ParentAnchor(of, k) if of == j => Some(-d.unit[k]),
                Field::ChildAnchor(of, k) if of == j => Some(
                    d.unit
                        .dot(&joint.arm_by_child_anchor(&Vec3::ith(k, 1.0), a, b)),
                ),
                _ => None,
            }
        };
        let (Some(here), Some(next)) = (moved(w.poses), moved(w.next)) else {
            return;
        };
        let (a, b) = w.model.ends(joint, w.poses);
        let row = if let Field::ChildAnchor(_, k) = field {
            let unit = Vec3::ith(k, 1.0);
            Row {
                force: Vec3::zeros(),
                parent_torque: d.unit.cross(&joint.arm_by_child_anchor(&unit, a, b)),
                child_torque: unit.cross(&b.r.tr_mul(&(a.r * d.unit))),
            }
        } else {
            Row::ZERO
        } * sign;
        let rate = dot(w.trial, slot.parent, slot.child, &row);
        let l = &e.local;
        let impulse = if e.law.gap {
            let by = match w.at.stage {
                Stage::Step(h) => sign * next / h,
                Stage::Readout => sign * here / memory.interval + rate,
            };
            emit(Entry::Inflow(0), by);
            l.g
        } else {
            emit(Entry::Inflow(1), rate);
            l.b[0]
        };
        emit_row(&row, -slot.mass * impulse, slot, emit);
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
        let Some(here) = m.touch_by(contact, &e.held, w.poses, field) else {
            return;
        };
        let (p, c) = (slot.parent, slot.child);
        let (a, b) = (m.pose(w.poses, p), &w.poses[c]);
        // rows of unit forces change with the normal and the point
        let changes = touch_change(&e.here, &here, a, b);
        match w.at.stage {
            Stage::Step(h) => {
                if let Some(next) = m.touch_by(contact, &e.held, w.next, field) {
                    emit(Entry::Inflow(0), (next.gap - e.left * here.gap) / h);
                }
                if let Some(restitution) = self.bounces(w, (e, slot)) {
                    let approach = -dot(w.before, p, c, &changes[0]);
                    emit(Entry::Inflow(0), -(here.gap / h + restitution * approach));
                }
            }
            Stage::Readout => {
                let turned = dot(w.trial, p, c, &changes[0]);
                emit(Entry::Inflow(0), here.gap / memory.interval + turned);
            }
        }
        if e.law.frictional {
            for i in 0..2 {
                emit(Entry::Inflow(1 + i), dot(w.trial, p, c, &changes[1 + i]));
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
