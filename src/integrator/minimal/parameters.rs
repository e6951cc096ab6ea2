//! What a parameter changes of the residual.

use super::Minimal;
use super::derivative::{SIDES, damping};
use super::forces::each_end;
use super::kinematics::third;
use super::work::{Moved, Work};
use crate::dynamics::Knot;
use crate::mechanism::{Drive, Field, Freedom, Mechanism, Relative, Spring};
use crate::spatial::{Mat3, Pose, RotationLaw, Vec3, log, right_log_jacobian};

/// A change of the residual per unit of a parameter.
pub(super) enum Effect {
    /// Of a body's wrench, by its node: force and torque, world axes.
    Body(usize, Vec3, Vec3),
    /// Along a free direction.
    Joint(usize, f64),
    /// Of an arm at the knot, which turns with what it is fixed to: node, and whether it is the second of its arms.
    Arm(usize, usize, Vec3),
}

impl Minimal {
    /// Calls `emit` with every effect of a parameter, where bodies move as `past` and `trial` tell.
    pub(super) fn by_parameter(
        &self,
        w: &Work,
        at: &Knot,
        (past, trial): (&[Moved], &[Moved]),
        index: usize,
        mut emit: impl FnMut(Effect),
    ) {
        for field in &w.model.parameters[index].fields {
            self.by_field(w, at, (past, trial), *field, &mut emit);
        }
    }

    fn by_field(
        &self,
        w: &Work,
        at: &Knot,
        (past, trial): (&[Moved], &[Moved]),
        field: Field,
        emit: &mut impl FnMut(Effect),
    ) {
        let (m, half) = (&w.model, 0.5 * (at.h_prev + at.h));
        let zero = Vec3::zeros();
        match field {
            Field::Mass(b) => {
                let n = self.node_of[b];
                let none = (&Mat3::zeros(), &RotationLaw::Chord);
                let of = |to: &Moved, h| self.lagrangian.momentum(1.0, none, to, h);
                let (after, before) = (of(&trial[n], at.h), of(&past[n], -at.h_prev));
                let force = after.0 - before.0 - m.gravity * half;
                emit(Effect::Body(n, force, after.1 - before.1));
            }
            Field::Inertia(b, i, k) => {
                let mut unit = Mat3::zeros();
                (unit[(i, k)], unit[(k, i)]) = (1.0, 1.0);
                let (n, r) = (self.node_of[b], &w.poses[b].r);
                let unit = r * unit * r.transpose();
                // linear in the inertia
                let law = m.bodies[b].rotation.turned(r);
                let unit = (&unit, &law);
                let of = |to: &Moved, h| self.lagrangian.momentum(0.0, unit, to, h).1;
                let change = of(&trial[n], at.h) - of(&past[n], -at.h_prev);
                emit(Effect::Body(n, zero, change));
            }
            Field::Gravity(k) => {
                for (n, knot) in w.knot.iter().enumerate() {
                    emit(Effect::Body(n, Vec3::ith(k, -half * knot.mass), zero));
                }
            }
            Field::Stiffness((j, i)) => {
                let stretch = self.stretch(w, j, i);
                self.by_effort(w, (j, i), half * stretch, emit);
            }
            Field::Rest((j, i)) => {
                let k = m.joints[j].directions[i].stiffness;
                self.by_effort(w, (j, i), -half * k, emit);
            }
            Field::Damping((j, i)) => {
                let n = self.node_of_joint[j];
                let (node, k) = (&self.nodes[n], &w.knot[n]);
                let mut moved = 0.0;
                for side in SIDES {
                    let (rates, h) = [(&w.before, -at.h_prev), (&w.rates, at.h)][side];
                    let along = self.displacements(m, node, k, rates, h);
                    moved += damping(node.damper, at, side).0 * along[i];
                }
                emit(Effect::Joint(node.first + i, moved));
            }
            Field::ParentAnchor(j, _) | Field::ChildAnchor(j, _) => {
                let n = self.node_of_joint[j];
                if let Some((side, along)) = self.by_anchor(m, &w.poses, n, field) {
                    emit(Effect::Arm(n, side, along));
                }
            }
            Field::SpringStiffness(s) => {
                let (s, a, b) = self.spring_ends(w, s);
                let row = s.length_row(a, b) * (half * (s.length(a, b) - s.rest));
                self.by_wrench(w, (s.parent, s.child), &row, emit);
            }
            Field::SpringRest(s) => {
                let (s, a, b) = self.spring_ends(w, s);
                let row = s.length_row(a, b) * (-half * s.stiffness);
                self.by_wrench(w, (s.parent, s.child), &row, emit);
            }
            Field::SpringParentAnchor(s, k) | Field::SpringChildAnchor(s, k) => {
                let parent = matches!(field, Field::SpringParentAnchor(..));
                let e = Vec3::ith(k, 1.0);
                let damps = self.by_line_anchor(w, (s, &e, parent), at, (past, trial));
                let (s, a, b) = self.spring_ends(w, s);
                let row = s.wrench_by_anchor(&e, parent, -half, 0.0, a, b);
                self.by_wrench(w, (s.parent, s.child), &(row + damps), emit);
            }
            Field::SpringDamping(s) => self.by_line_damping(w, s, emit),
            Field::Gain(i) => {
                self.by_actuator(w, i, -half * w.controls[i].1 * w.commanded[i], emit);
            }
            Field::LowerEffort(i) | Field::UpperEffort(i) => {
                let upper = matches!(field, Field::UpperEffort(_));
                let by = m.actuators[i].effort_by_limit(w.commanded[i], upper, w.relaxed);
                self.by_actuator(w, i, -half * by, emit);
            }
            // of the impulse along the leader; the rest is of the followers, which are lifted
            Field::GearRatio(g) => {
                let leader = self.gears.ties[g].leader;
                emit(Effect::Joint(leader, w.geared.impulses[g]));
            }
            Field::GearOffset(_) => {}
            // what has them is refused, or the contact module's
            Field::JointFriction(_)
            | Field::LimitRestitution(_)
            | Field::LowerLimit(_)
            | Field::UpperLimit(_)
            | Field::ContactFriction(_)
            | Field::ContactRestitution(_)
            | Field::ContactRadius(_)
            | Field::ContactLength(_)
            | Field::ContactEdge(..)
            | Field::ContactPosition(..)
            | Field::HalfSpaceFriction(_)
            | Field::PairFriction(_)
            | Field::HalfSpaceOffset(_) => {}
        }
    }

    /// Which arm of a joint an anchor of it moves, and by what, world axes.
    pub(super) fn by_anchor(
        &self,
        m: &Mechanism,
        poses: &[Pose],
        node: usize,
        field: Field,
    ) -> Option<(usize, Vec3)> {
        let (joint, reversed) = (self.nodes[node].joint, self.nodes[node].reversed);
        let j = &m.joints[joint];
        match field {
            Field::ParentAnchor(of, k) if of == joint => {
                let unit = Vec3::ith(k, 1.0);
                let along = j.parent.map_or(unit, |p| poses[p].r * unit);
                Some(if reversed { (1, -along) } else { (0, along) })
            }
            Field::ChildAnchor(of, k) if of == joint => {
                let along = poses[j.child].r * Vec3::ith(k, 1.0);
                Some(if reversed { (0, along) } else { (1, -along) })
            }
            _ => None,
        }
    }

    /// How far the spring of a joint's direction is stretched.
    fn stretch(&self, w: &Work, joint: usize, direction: usize) -> f64 {
        let n = self.node_of_joint[joint];
        let (node, j) = (&self.nodes[n], &w.model.joints[joint]);
        let d = &j.directions[direction];
        let rest = d.rest;
        if d.freedom != Freedom::Turn {
            return w.positions[node.place + direction] - rest;
        }
        let relative = Relative {
            arm: j.parent_anchor,
            r: w.knot[n].relative,
        };
        j.coordinate(direction, &relative, 0.0) - rest
    }

    /// The torque of a joint's springs on several rotations by a parameter of theirs.
    pub(super) fn spring_torque_by(&self, w: &Work, node: usize, field: Field) -> Vec3 {
        let joint = self.nodes[node].joint;
        let (j, relative) = (&w.model.joints[joint], &w.knot[node].relative);
        let along = |i: usize, size: f64| match j.directions[i].freedom {
            Freedom::Turn => right_log_jacobian(&log(relative)) * j.directions[i].unit * size,
            _ => Vec3::zeros(),
        };
        match field {
            Field::Stiffness((of, i)) if of == joint => along(i, -self.stretch(w, joint, i)),
            Field::Rest((of, i)) if of == joint => along(i, j.directions[i].stiffness),
            _ => Vec3::zeros(),
        }
    }

    /// A change of the residual along a joint's coordinate.
    fn by_effort(
        &self,
        w: &Work,
        (joint, direction): (usize, usize),
        size: f64,
        emit: &mut impl FnMut(Effect),
    ) {
        let n = self.node_of_joint[joint];
        let (node, j) = (&self.nodes[n], &w.model.joints[joint]);
        let d = &j.directions[direction];
        if d.freedom != Freedom::Turn {
            return emit(Effect::Joint(node.first + direction, size));
        }
        let relative = &w.knot[n].relative;
        let torque = right_log_jacobian(&log(relative)) * d.unit;
        for (r, other) in j.directions.iter().enumerate().skip(node.slides) {
            let along = other.unit + third(j, node, relative, &other.unit);
            emit(Effect::Joint(node.first + r, size * along.dot(&torque)));
        }
    }

    fn by_wrench(
        &self,
        w: &Work,
        ends: (Option<usize>, usize),
        row: &crate::mechanism::Row,
        emit: &mut impl FnMut(Effect),
    ) {
        each_end(self, &w.poses, ends, row, |n, f, t| {
            emit(Effect::Body(n, f, t))
        });
    }

    /// The wrench of a unit effort of an actuator.
    fn by_actuator(&self, w: &Work, i: usize, size: f64, emit: &mut impl FnMut(Effect)) {
        let m = &w.model;
        let a = &m.actuators[i];
        if let Drive::Joint { joint, direction } = a.drive {
            return emit(Effect::Joint(self.driven_direction(joint, direction), size));
        }
        let (parent, child) = m.driven(a);
        let ends = (m.pose(&w.poses, parent), &w.poses[child]);
        let row = a.unit_row(&m.joints, ends) * size;
        self.by_wrench(w, (parent, child), &row, emit);
    }

    fn spring_ends<'a>(&self, w: &'a Work, s: usize) -> (&'a Spring, &'a Pose, &'a Pose) {
        let s = &w.model.springs[s];
        (s, w.model.pose(&w.poses, s.parent), &w.poses[s.child])
    }
}
