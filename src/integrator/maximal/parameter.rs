//! Parameters: how they are set, and the derivatives of the step and of the start by them.

use super::assembly::{dot, vec3};
use super::{Damped, DampedElement, DampedState, Maximal, Work};
use crate::dynamics::StepError;
use crate::integrator::parameter;
use crate::mechanism::{Drive, Field, Freedom, Row, Spring};
use crate::spatial::{Mat3, Pose, Vec3};

impl Maximal {
    /// Gives the mechanism of a work space the parameters `p`.
    pub(super) fn apply(&self, p: &[f64], w: &mut Work) -> Result<(), StepError> {
        if parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)? {
            for (body, inverse) in w.model.bodies.iter().zip(&mut w.inverse_inertia) {
                let c = body.inertia.cholesky();
                *inverse = c.expect("parameters with others are refused").inverse();
            }
        }
        Ok(())
    }
}

/// What a parameter changes of the step's residual, entry by entry.
impl Maximal {
    /// Adds `scale dr/d(parameter)` to a residual.
    pub(super) fn push_parameter(&self, w: &Work, index: usize, scale: f64, r: &mut [f64]) {
        self.by_parameter(w, index, |i, v| r[i] += scale * v);
    }

    /// `mu' dr/d(parameter)`.
    pub(super) fn pull_parameter(&self, w: &Work, index: usize, mu: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.by_parameter(w, index, |i, v| sum += mu[i] * v);
        sum
    }

    /// Calls `emit` with row and value of every entry of `dr/d(parameter)` at the point last evaluated.
    fn by_parameter(&self, w: &Work, index: usize, mut emit: impl FnMut(usize, f64)) {
        for field in &w.model.parameters[index].fields {
            self.by_field(w, *field, &mut emit);
        }
    }

    fn by_field(&self, w: &Work, field: Field, emit: &mut impl FnMut(usize, f64)) {
        let (m, h, h_prev, half) = (&w.model, w.knot.at.h(), w.knot.at.h_prev, w.knot.at.half());
        match field {
            Field::Mass(b) => {
                let change = vec3(&w.newton.trial, 6 * b) - vec3(&w.knot.before, 6 * b);
                put(emit, 6 * b, &(change - m.gravity * half));
            }
            Field::Inertia(b, i, k) => {
                let mut unit = Mat3::zeros();
                (unit[(i, k)], unit[(k, i)]) = (1.0, 1.0);
                let (omega, old) = (
                    vec3(&w.newton.trial, 6 * b + 3),
                    vec3(&w.knot.before, 6 * b + 3),
                );
                // linear in the inertia
                let law = &m.bodies[b].rotation;
                let change = law.momentum(&omega, &unit, h, w.end.scalar[b])
                    - law.momentum(&old, &unit, -h_prev, w.knot.scalar[b]);
                put(emit, 6 * b + 3, &change);
            }
            Field::Gravity(k) => {
                for (b, body) in m.bodies.iter().enumerate() {
                    emit(6 * b + k, -half * body.mass);
                }
            }
            Field::Stiffness((j, i)) => {
                let (joint, rel) = (&m.joints[j], &w.knot.relative[j]);
                let stretch =
                    joint.coordinate(i, rel, self.winding_in(w, j)) - joint.directions[i].rest;
                self.put_row(w, j, &self.spring_row(w, j, i), half * stretch, emit);
            }
            Field::Rest((j, i)) => {
                let k = m.joints[j].directions[i].stiffness;
                self.put_row(w, j, &self.spring_row(w, j, i), -half * k, emit);
            }
            Field::Damping((j, i)) => {
                self.by_damping(w, DampedElement::Joint(j, i), emit);
            }
            Field::ParentAnchor(j, k) => self.by_parent_anchor(w, j, k, emit),
            Field::ChildAnchor(j, k) => self.by_child_anchor(w, j, k, emit),
            Field::SpringStiffness(s) => {
                let (s, ends) = spring_ends(w, s);
                let row = s.length_row(ends.0, ends.1);
                let stretch = s.length(ends.0, ends.1) - s.rest;
                put_wrench(emit, (s.parent, s.child), &row, half * stretch);
            }
            Field::SpringRest(s) => {
                let (s, ends) = spring_ends(w, s);
                let row = s.length_row(ends.0, ends.1);
                put_wrench(emit, (s.parent, s.child), &row, -half * s.stiffness);
            }
            Field::SpringDamping(s) => self.by_damping(w, DampedElement::Spring(s), emit),
            Field::SpringParentAnchor(s, k) => self.by_spring_anchor(w, s, k, true, emit),
            Field::SpringChildAnchor(s, k) => self.by_spring_anchor(w, s, k, false, emit),
            Field::GearRatio(g) => self.by_gear_ratio(w, g, emit),
            Field::GearOffset(g) => {
                if w.knot.at.steps() {
                    emit(self.elements.offset(g), -1.0);
                }
            }
            Field::Gain(i) => {
                let (parent, child) = m.driven(&m.actuators[i]);
                let ends = (m.pose(&w.knot.poses, parent), &w.knot.poses[child]);
                let row = m.actuators[i].unit_row(&m.joints, ends);
                put_wrench(
                    emit,
                    (parent, child),
                    &row,
                    -half * w.knot.control_slope[i] * w.knot.commanded[i],
                );
            }
            Field::LowerEffort(i) => self.by_effort_limit(w, i, false, emit),
            Field::UpperEffort(i) => self.by_effort_limit(w, i, true, emit),
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

    /// The effort exerted, along the wrench of a unit of it.
    fn by_effort_limit(&self, w: &Work, i: usize, upper: bool, emit: &mut impl FnMut(usize, f64)) {
        let (m, half) = (&w.model, w.knot.at.half());
        let (parent, child) = m.driven(&m.actuators[i]);
        let ends = (m.pose(&w.knot.poses, parent), &w.knot.poses[child]);
        let row = m.actuators[i].unit_row(&m.joints, ends);
        let by = m.actuators[i].effort_by_limit(w.knot.commanded[i], upper, w.contacts.relaxed());
        put_wrench(emit, (parent, child), &row, -half * by);
    }

    pub(super) fn winding_in(&self, w: &Work, joint: usize) -> f64 {
        self.winding_of[joint].map_or(0.0, |i| w.knot.winding[i])
    }

    /// The wrench of a unit force of the spring on a coordinate.
    fn spring_row(&self, w: &Work, joint: usize, direction: usize) -> Row {
        let j = &w.model.joints[joint];
        let (a, b) = w.model.ends(j, &w.knot.poses);
        j.spring_row(direction, a, b, &w.knot.relative[joint])
    }

    fn put_row(
        &self,
        w: &Work,
        j: usize,
        row: &Row,
        scale: f64,
        emit: &mut impl FnMut(usize, f64),
    ) {
        let j = &w.model.joints[j];
        put_wrench(emit, (j.parent, j.child), row, scale);
    }

    /// The dampers that belong to an element, each with its state.
    fn dampers_of<'a>(
        &'a self,
        w: &'a Work,
        element: DampedElement,
    ) -> impl Iterator<Item = (&'a Damped, &'a DampedState)> {
        let own = self.damped.iter().zip(&w.knot.damping);
        own.filter(move |(d, _)| d.element == element)
    }

    fn by_damping(&self, w: &Work, element: DampedElement, emit: &mut impl FnMut(usize, f64)) {
        for (d, state) in self.dampers_of(w, element) {
            let moved = d.law.before() * state.before + d.after(&w.knot.at) * state.after;
            put_wrench(emit, (d.parent, d.child), &state.wrench, moved);
        }
    }

    /// The leader's coordinate enters the gear by `-ratio`: in the wrench of its impulse, in its value at `z+`, or in the
    /// row of the velocities at a knot.
    fn by_gear_ratio(&self, w: &Work, g: usize, emit: &mut impl FnMut(usize, f64)) {
        let m = &w.model;
        let (at, (j, i)) = (self.elements.offset(g), m.gear(g).leader);
        let joint = &m.joints[j];
        let (a, b) = m.ends(joint, &w.knot.poses);
        let row = joint.direction_row(i, a, b, &joint.relative(a, b));
        self.put_row(w, j, &row, w.newton.trial[at], emit);
        let leader = if w.knot.at.steps() {
            let (a, b) = m.ends(joint, &w.end.poses);
            joint.coordinate(i, &joint.relative(a, b), self.winding_in(w, j))
        } else {
            let mut rate = 0.0;
            let mut times = |r: usize, v: f64| rate += v * w.newton.trial[r];
            put_wrench(&mut times, (joint.parent, joint.child), &row, 1.0);
            rate
        };
        emit(at, -leader);
    }

    /// `g = e.(arm - p_a)` and the slides' coordinates likewise; `p_a` is in no wrench.
    fn by_parent_anchor(&self, w: &Work, j: usize, k: usize, emit: &mut impl FnMut(usize, f64)) {
        let joint = &w.model.joints[j];
        let half = w.knot.at.half();
        if w.knot.at.steps() {
            self.close_by_anchor(w, Field::ParentAnchor(j, k), &w.end.poses, emit);
        }
        for (i, d) in joint.directions.iter().enumerate() {
            if d.freedom == Freedom::Slide && d.stiffness != 0.0 {
                let row = self.spring_row(w, j, i);
                self.put_row(w, j, &row, -half * d.stiffness * d.unit[k], emit);
            }
        }
    }

    /// How a joint's rows, at the poses where it has to close, depend on its anchors.
    fn close_by_anchor(
        &self,
        w: &Work,
        field: Field,
        poses: &[Pose],
        emit: &mut impl FnMut(usize, f64),
    ) {
        let (Field::ParentAnchor(j, k) | Field::ChildAnchor(j, k)) = field else {
            return;
        };
        let joint = &w.model.joints[j];
        let Some(s) = &self.slots[j] else { return };
        let arm = match field {
            Field::ChildAnchor(..) => {
                let (a, b) = w.model.ends(joint, poses);
                joint.arm_by_child_anchor(&unit(k), a, b)
            }
            // it is what the arm is compared with
            _ => -unit(k),
        };
        let rows = joint.constrained[..joint.translation_rows].iter();
        rows.enumerate()
            .for_each(|(i, row)| emit(s.offset + i, row.dot(&arm)));
    }

    /// How the joints' rows depend on a parameter where the state `poses` is the end.
    pub(super) fn close_by_parameter(
        &self,
        w: &Work,
        index: usize,
        poses: &[Pose],
        mut emit: impl FnMut(usize, f64),
    ) {
        for field in &w.model.parameters[index].fields {
            self.close_by_anchor(w, *field, poses, &mut emit);
        }
    }

    /// The child's anchor moves by `e`: the arm by `R_a'R_b e`, in constraints, torques, and slides' coordinates.
    fn by_child_anchor(&self, w: &Work, j: usize, k: usize, emit: &mut impl FnMut(usize, f64)) {
        let (m, joint) = (&w.model, &w.model.joints[j]);
        let (steps, half) = (w.knot.at.steps(), w.knot.at.half());
        let (a, b) = m.ends(joint, &w.knot.poses);
        let e = unit(k);
        let arm = joint.arm_by_child_anchor(&e, a, b);
        let after = if steps {
            let (a, b) = m.ends(joint, &w.end.poses);
            self.close_by_anchor(w, Field::ChildAnchor(j, k), &w.end.poses, emit);
            joint.arm_by_child_anchor(&e, a, b)
        } else {
            Vec3::zeros()
        };
        // the force that acts at the anchor, N s in the parent's frame
        let mut force = Vec3::zeros();
        if let Some(s) = &self.slots[j] {
            let rows = joint.constrained[..joint.translation_rows].iter();
            for (i, row) in rows.enumerate() {
                let at = s.offset + i;
                force += row * w.newton.trial[at];
                if !steps {
                    let rate = joint.rate_by_child_anchor(row, &e, (a, b), |body| {
                        vec3(&w.newton.trial, 6 * body + 3)
                    });
                    emit(at, rate);
                }
            }
        }
        for (i, d) in joint.directions.iter().enumerate() {
            if d.freedom != Freedom::Slide {
                continue;
            }
            if d.stiffness != 0.0 {
                let stretch = joint.coordinate(i, &w.knot.relative[j], 0.0) - d.rest;
                force -= d.unit * (half * d.stiffness * stretch);
                let row = self.spring_row(w, j, i);
                self.put_row(w, j, &row, half * d.stiffness * d.unit.dot(&arm), emit);
            }
            for (damper, state) in self.dampers_of(w, DampedElement::Joint(j, i)) {
                let before = {
                    let earlier = |body: usize| Self::pose_before(w, body);
                    let (a, b) = (
                        joint.parent.map_or(Pose::identity(), earlier),
                        earlier(joint.child),
                    );
                    joint.arm_by_child_anchor(&e, &a, &b)
                };
                let (on_before, on_after) = (damper.law.before(), damper.after(&w.knot.at));
                let moved = on_before * state.before + on_after * state.after;
                let by_after = match steps {
                    true => d.unit.dot(&(after - arm)),
                    false => joint.rate_by_child_anchor(&d.unit, &e, (a, b), |body| {
                        vec3(&w.newton.trial, 6 * body + 3)
                    }),
                };
                let change = on_before * d.unit.dot(&(arm - before)) + on_after * by_after;
                force -= d.unit * (d.damping * moved);
                put_wrench(
                    emit,
                    (damper.parent, damper.child),
                    &state.wrench,
                    d.damping * change,
                );
            }
        }
        for (c, u) in m.actuators.iter().zip(&w.knot.control) {
            if let Drive::Joint {
                joint: driven,
                direction,
            } = c.drive
                && driven == j
                && joint.directions[direction].freedom == Freedom::Slide
            {
                force += joint.directions[direction].unit * (half * u * c.gain);
            }
        }
        if let Some(p) = joint.parent {
            put(emit, 6 * p + 3, &-force.cross(&arm));
        }
        put(
            emit,
            6 * joint.child + 3,
            &-e.cross(&b.r.tr_mul(&(a.r * force))),
        );
    }

    fn by_spring_anchor(
        &self,
        w: &Work,
        s: usize,
        k: usize,
        parent: bool,
        emit: &mut impl FnMut(usize, f64),
    ) {
        let half = w.knot.at.half();
        let e = unit(k);
        let mut tension = 0.0;
        for (d, state) in self.dampers_of(w, DampedElement::Spring(s)) {
            let damping = d.damping(&w.model);
            let (spring, (a, b)) = spring_ends(w, s);
            let earlier = |body: usize| Self::pose_before(w, body);
            let (a0, b0) = (
                spring.parent.map_or(Pose::identity(), earlier),
                earlier(spring.child),
            );
            let here = spring.length_by_anchor(&e, parent, a, b);
            let by_before = here - spring.length_by_anchor(&e, parent, &a0, &b0);
            let by_after = if w.knot.at.steps() {
                let (a1, b1) = (
                    w.model.pose(&w.end.poses, spring.parent),
                    &w.end.poses[spring.child],
                );
                spring.length_by_anchor(&e, parent, a1, b1) - here
            } else {
                let row = spring.wrench_by_anchor(&e, parent, 0.0, 1.0, a, b);
                dot(&w.newton.trial, d.parent, d.child, &row)
            };
            let (before, after) = (d.law.before(), d.after(&w.knot.at));
            let change = before * by_before + after * by_after;
            tension -= damping * (before * state.before + after * state.after);
            put_wrench(emit, (d.parent, d.child), &state.wrench, damping * change);
        }
        let (spring, (a, b)) = spring_ends(w, s);
        let row = spring.wrench_by_anchor(&e, parent, half, tension, a, b);
        put_wrench(emit, (spring.parent, spring.child), &row, -1.0);
    }
}

fn spring_ends(w: &Work, s: usize) -> (&Spring, (&Pose, &Pose)) {
    let s = &w.model.springs[s];
    (
        s,
        (
            w.model.pose(&w.knot.poses, s.parent),
            &w.knot.poses[s.child],
        ),
    )
}

fn unit(k: usize) -> Vec3 {
    Vec3::from_fn(|i, _| f64::from(u8::from(i == k)))
}

fn put(emit: &mut impl FnMut(usize, f64), at: usize, v: &Vec3) {
    (0..3).for_each(|i| emit(at + i, v[i]));
}

fn put_wrench(
    emit: &mut impl FnMut(usize, f64),
    (parent, child): (Option<usize>, usize),
    row: &Row,
    scale: f64,
) {
    put(emit, 6 * child, &(row.force * scale));
    put(emit, 6 * child + 3, &(row.child_torque * scale));
    if let Some(p) = parent {
        put(emit, 6 * p, &(row.force * -scale));
        put(emit, 6 * p + 3, &(row.parent_torque * scale));
    }
}
