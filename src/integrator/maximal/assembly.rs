//! The step's equations: everything known at the knot, the residual at trial unknowns, the matrix, and its solution.
//! Newton's method, the derivatives and the read-out of velocities all use these.

use super::{Damped, DampedElement, DampedState, Maximal, Work};
use crate::block::Fallback;
use crate::contact::Failed;
use crate::dynamics::{Place, Stage, StepError, StepFailure};
use crate::mechanism::{Coupling, Mechanism, Row};
pub(super) use crate::mechanism::{add_wrench, compliance, dot, vec3};
use crate::spatial::{Pose, Quat, Vec3, wide};
use nalgebra::Quaternion;

/// Regularization of redundant rows, relative: far above rounding, and small enough for one sweep of refinement to undo.
pub(super) const REGULARIZATION: f64 = 1e-9;

/// Pose of the thirteen numbers of a body.
#[inline(always)]
pub(super) fn pose(s: &[f64]) -> Pose {
    let q = Quat::new_unchecked(Quaternion::new(s[3], s[4], s[5], s[6]));
    Pose::new(Vec3::new(s[0], s[1], s[2]), q)
}

impl Damped {
    /// Share of the displacement after the knot; in a read-out that of the rate, s.
    pub(super) fn after(&self, at: &Place) -> f64 {
        self.law.after(at.h_prev, at.h())
    }

    /// How that changes with the intervals before and after.
    pub(super) fn after_by_intervals(&self, at: &Place) -> [f64; 2] {
        self.law.after_by_intervals(at.h_prev, at.h())
    }

    /// The rate that is read at a knot, and its derivatives by the configuration and by velocities.
    fn rate(&self, m: &Mechanism, poses: &[Pose], wrench: &Row, y: &[f64]) -> (f64, Row, Row) {
        let (a, b) = (m.pose(poses, self.parent), &poses[self.child]);
        let mut turns = Coupling::default();
        match self.element {
            DampedElement::Joint(j, i) => {
                let (j, unit) = (&m.joints[j], m.joints[j].directions[i].unit);
                j.add_direction_derivative(i, &unit, (a, b), &j.relative(a, b), &mut turns);
            }
            DampedElement::Spring(s) => m.springs[s].add_derivative(0.0, 1.0, a, b, &mut turns),
        }
        let [by_parent, by_child] = turns.transposed_times(y, self.parent, self.child);
        let by_knot = Row {
            force: vec3(by_child.as_slice(), 0),
            parent_torque: vec3(by_parent.as_slice(), 3),
            child_torque: vec3(by_child.as_slice(), 3),
        };
        (dot(y, self.parent, self.child, wrench), by_knot, *wrench)
    }

    /// Displacement from one configuration to another and its derivatives by the one and the other.
    pub(super) fn displacement(
        &self,
        m: &Mechanism,
        from: &[Pose],
        to: &[Pose],
    ) -> (f64, Row, Row) {
        match self.element {
            DampedElement::Joint(j, i) => {
                let j = &m.joints[j];
                let ((a0, b0), (a1, b1)) = (m.ends(j, from), m.ends(j, to));
                let (from, to) = (j.relative(a0, b0), j.relative(a1, b1));
                (
                    j.displacement(i, &from, &to),
                    j.displacement_start_row(i, &from, &to, a0, b0),
                    j.displacement_end_row(i, &from, &to, a1, b1),
                )
            }
            DampedElement::Spring(s) => {
                let s = &m.springs[s];
                let ends = |poses| (m.pose(poses, s.parent), &poses[s.child]);
                let ((a0, b0), (a1, b1)) = (ends(from), ends(to));
                (
                    s.length(a1, b1) - s.length(a0, b0),
                    -s.length_row(a0, b0),
                    s.length_row(a1, b1),
                )
            }
        }
    }

    /// How far from the origin it acts, m: displacements have the rounding of positions.
    fn reach(&self, m: &Mechanism, poses: &[Pose]) -> f64 {
        match self.element {
            DampedElement::Joint(..) => poses[self.child].x.amax(),
            DampedElement::Spring(s) => {
                let s = &m.springs[s];
                let (a, b) = (m.pose(poses, s.parent), &poses[s.child]);
                let ends = [a.point(&s.parent_anchor), b.point(&s.child_anchor)];
                ends.map(|p| p.amax()).into_iter().fold(0.0, f64::max)
            }
        }
    }

    /// N s/m or N m s/rad
    #[inline(always)]
    pub(super) fn damping(&self, m: &Mechanism) -> f64 {
        match self.element {
            DampedElement::Joint(j, i) => m.joints[j].directions[i].damping,
            DampedElement::Spring(s) => m.springs[s].damping,
        }
    }

    /// The unit impulse at the knot.
    fn wrench(&self, m: &Mechanism, poses: &[Pose]) -> Row {
        match self.element {
            DampedElement::Joint(j, i) => {
                let j = &m.joints[j];
                let (a, b) = m.ends(j, poses);
                j.direction_row(i, a, b, &j.relative(a, b))
            }
            DampedElement::Spring(s) => {
                let s = &m.springs[s];
                s.length_row(m.pose(poses, s.parent), &poses[s.child])
            }
        }
    }
}

impl Maximal {
    /// Reads the state alone: poses, and the motion over the interval before.
    pub(super) fn read_state(
        &self,
        at: Place,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
    ) -> Result<(), StepError> {
        let n = self.body_count();
        w.knot.at = at;
        if !self.can_take(&at) {
            return Err(self.failure(StepFailure::Interval, w, 0, f64::NAN));
        }
        if !x.iter().chain(u).all(|v| v.is_finite()) {
            return Err(self.failure(StepFailure::NotFinite, w, 0, f64::NAN));
        }
        w.knot.winding.copy_from_slice(&x[13 * n..]);
        for (b, s) in x.chunks_exact(13).enumerate().take(n) {
            w.knot.poses[b] = pose(s);
            w.knot.before[6 * b..6 * b + 6].copy_from_slice(&s[7..13]);
            let scalar = w.model.bodies[b].rotation.scalar(&vec3(s, 10), at.h_prev);
            if scalar.is_nan() {
                return Err(self.failure(StepFailure::Domain, w, 6 * b + 3, f64::NAN));
            }
            w.knot.scalar[b] = scalar;
        }
        Ok(())
    }

    /// Reads the state and computes everything that does not depend on the unknowns.
    pub(super) fn prepare(
        &self,
        at: Place,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
    ) -> Result<(), StepError> {
        self.read_state(at, x, u, w)?;
        let m = &w.model;
        let relaxed = w.contacts.relaxed();
        for (i, (c, u)) in w.model.actuators.iter().zip(u).enumerate() {
            (w.knot.control[i], w.knot.control_slope[i]) = c.exerted(*u);
            if relaxed > 0.0 {
                w.knot.control_slope[i] = c.relaxed_slope(*u, relaxed);
            }
        }
        w.knot.commanded.copy_from_slice(u);
        let half = at.half();
        for (b, body) in m.bodies.iter().enumerate() {
            let (v, omega) = (vec3(&w.knot.before, 6 * b), vec3(&w.knot.before, 6 * b + 3));
            let f = m.gravity * body.mass;
            w.knot.force[6 * b..6 * b + 3].copy_from_slice(f.as_slice());
            w.knot.force[6 * b + 3..6 * b + 6].fill(0.0);
            let scalar = w.knot.scalar[b];
            let p = (body.rotation).momentum(&omega, &body.inertia, -at.h_prev, scalar);
            let base = &mut w.knot.base[6 * b..6 * b + 6];
            for i in 0..3 {
                base[i] = body.mass * v[i];
                base[i + 3] = p[i];
            }
        }
        for (index, j) in m.joints.iter().enumerate() {
            let (a, b) = m.ends(j, &w.knot.poses);
            let rel = j.relative(a, b);
            w.knot.relative[index] = rel;
            if let Some(s) = &self.slots[index] {
                for i in 0..j.rows() {
                    w.knot.rows[s.first_row + i] = j.row(i, a, b, &rel);
                }
            }
            if j.has_springs() {
                let winding = self.winding_of[index].map_or(0.0, |i| w.knot.winding[i]);
                for row in j.spring_wrench(&rel, winding, a, b) {
                    add_wrench(&mut w.knot.force, j.parent, j.child, &row, 1.0);
                }
            }
        }
        for s in &m.springs {
            let row = s.spring_wrench(m.pose(&w.knot.poses, s.parent), &w.knot.poses[s.child]);
            add_wrench(&mut w.knot.force, s.parent, s.child, &row, 1.0);
        }
        for (i, c) in m.actuators.iter().enumerate() {
            let (parent, child) = m.driven(c);
            w.knot.control_rows[i] = c.row(
                &m.joints,
                (m.pose(&w.knot.poses, parent), &w.knot.poses[child]),
            );
            add_wrench(
                &mut w.knot.force,
                parent,
                child,
                &w.knot.control_rows[i],
                w.knot.control[i],
            );
        }
        self.prepare_elements(w);
        self.prepare_contacts(w);
        for (base, f) in w.knot.base.iter_mut().zip(&w.knot.force) {
            *base += half * f;
        }
        if w.model.may_be_redundant() {
            self.prepare_compliances(w);
        }
        self.prepare_dampers(w);
        Ok(())
    }

    /// Contacts push only one way in time.
    fn can_take(&self, at: &Place) -> bool {
        let steps = match at.stage {
            Stage::Step(h) => h.is_finite() && h != 0.0,
            Stage::Readout(_) => true,
        };
        let forward = at.h_prev >= 0.0 && at.h() >= 0.0;
        steps && at.h_prev.is_finite() && (forward || self.contacts.is_empty())
    }

    /// Dampers' part of the interval before the knot; nothing of the one after it in a read-out.
    fn prepare_dampers(&self, w: &mut Work) {
        if self.damped.is_empty() {
            return;
        }
        // configurations at the knot before, from the velocities
        for b in 0..self.body_count() {
            w.end.poses[b] = Self::pose_before(w, b);
        }
        for (d, state) in self.damped.iter().zip(&mut w.knot.damping) {
            state.wrench = d.wrench(&w.model, &w.knot.poses);
            (state.before, state.before_start, state.before_end) =
                d.displacement(&w.model, &w.end.poses, &w.knot.poses);
            (state.after, state.after_start, state.after_end) = (0.0, Row::ZERO, Row::ZERO);
            let impulse = -d.damping(&w.model) * d.law.before() * state.before;
            add_wrench(&mut w.knot.base, d.parent, d.child, &state.wrench, impulse);
        }
    }

    /// Each joint row's own `G M^-1 G'`, by which redundant rows are regularized. One number for all rows of a joint would be
    /// far too large for some: thin links have small inertias about one axis.
    fn prepare_compliances(&self, w: &mut Work) {
        let m = &w.model;
        w.matrix.regularization = REGULARIZATION;
        w.matrix.softness = 0.0;
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            let own = s.first_row..s.first_row + j.rows();
            let rows = w.knot.rows[own.clone()].iter();
            for (row, out) in rows.zip(&mut w.matrix.own[own]) {
                *out = compliance(m, &w.inverse_inertia, (j.parent, j.child), row);
            }
        }
    }

    /// Where the unknowns `w.newton.trial` lead a body: the scalar part of its turn, and its pose.
    #[inline(always)]
    pub(super) fn led(w: &Work, b: usize, h: f64) -> (f64, Pose) {
        let (v, omega) = (
            vec3(&w.newton.trial, 6 * b),
            vec3(&w.newton.trial, 6 * b + 3),
        );
        let (law, pose) = (&w.model.bodies[b].rotation, &w.knot.poses[b]);
        let s = law.scalar(&omega, h);
        let turned = pose.q * law.increment(&omega, h, s);
        (s, Pose::new(pose.x + v * h, turned))
    }

    /// Everything that products with the transposed derivatives of a step need at the unknowns `w.newton.trial`: as
    /// [`Maximal::evaluate`] and [`Maximal::assemble_bodies`] leave it, without residual, matrix, and the joints' rows where the
    /// interval ends.
    pub(super) fn evaluate_transposed(&self, w: &mut Work) {
        let h = w.knot.at.h();
        for b in 0..self.body_count() {
            (w.end.scalar[b], w.end.poses[b]) = Self::led(w, b, h);
        }
        self.displace_dampers(w);
        self.evaluate_elements(w);
        self.linearize_elements(w);
        self.turn_elements(w);
        self.evaluate_contacts(w);
        w.adjoint.coupled = false;
    }

    /// Displacements of dampers over the interval, or in a read-out the rates of implicit ones.
    fn displace_dampers(&self, w: &mut Work) {
        let (m, at) = (&w.model, &w.knot.at);
        for (d, state) in self.damped.iter().zip(&mut w.knot.damping) {
            let after = match at.stage {
                Stage::Step(_) => d.displacement(m, &w.knot.poses, &w.end.poses),
                Stage::Readout(_) if d.law.is_implicit() => {
                    d.rate(m, &w.knot.poses, &state.wrench, &w.newton.trial)
                }
                Stage::Readout(_) => continue,
            };
            (state.after, state.after_start, state.after_end) = after;
        }
    }

    /// The joints' rows where the interval ends.
    pub(super) fn end_rows(&self, w: &mut Work) {
        for (j, s) in w.model.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            let (a, b) = w.model.ends(j, &w.end.poses);
            let relative = j.relative(a, b);
            for i in 0..j.rows() {
                w.end.rows[s.first_row + i] = j.row(i, a, b, &relative);
            }
        }
    }

    /// Residual at the unknowns `w.newton.trial`. Returns the largest entry, its row, and the floor rounding sets to it.
    pub(super) fn evaluate(&self, w: &mut Work) -> (f64, usize, f64) {
        wide!(self.evaluate_all(w))
    }

    #[inline(always)]
    fn evaluate_all(&self, w: &mut Work) -> (f64, usize, f64) {
        let (m, h, steps) = (&w.model, w.knot.at.h(), w.knot.at.steps());
        let y = &w.newton.trial;
        let softness = w.matrix.softness * w.knot.at.scale();
        let mut scale = 0.0_f64;
        for (b, body) in m.bodies.iter().enumerate() {
            let (v, omega) = (vec3(y, 6 * b), vec3(y, 6 * b + 3));
            let (s, pose) = Self::led(w, b, h);
            (w.end.scalar[b], w.end.poses[b]) = (s, pose);
            let p = body.rotation.momentum(&omega, &body.inertia, h, s);
            let base = &w.knot.base[6 * b..6 * b + 6];
            let r = &mut w.newton.residual[6 * b..6 * b + 6];
            for i in 0..3 {
                r[i] = body.mass * v[i] - base[i];
                r[i + 3] = p[i] - base[i + 3];
                scale = scale.max(base[i].abs()).max(base[i + 3].abs());
            }
        }
        for (index, j) in m.joints.iter().enumerate() {
            let Some(s) = &self.slots[index] else {
                continue;
            };
            let rows = &w.knot.rows[s.first_row..s.first_row + j.rows()];
            let (bodies, joints) = w.newton.residual.split_at_mut(s.offset);
            for (row, lambda) in rows.iter().zip(&y[s.offset..]) {
                add_wrench(bodies, j.parent, j.child, row, -lambda);
                scale = scale.max(lambda.abs());
            }
            let g = &mut joints[..j.rows()];
            if steps {
                let (a, b) = m.ends(j, &w.end.poses);
                let rel = j.relative(a, b);
                j.constraint(&rel, g);
                w.end.relative[index] = rel;
                scale = scale.max(b.x.amax());
            } else {
                for (g, row) in g.iter_mut().zip(rows) {
                    *g = dot(y, j.parent, j.child, row);
                }
            }
            if softness != 0.0 {
                let given = y[s.offset..].iter().zip(&self.compliances[s.first_row..]);
                for (g, (lambda, k)) in g.iter_mut().zip(given) {
                    *g += softness * k * lambda;
                }
            }
        }
        self.displace_dampers(w);
        let m = &w.model;
        for (d, state) in self.damped.iter().zip(&w.knot.damping) {
            let share = d.damping(m) * d.after(&w.knot.at);
            if steps {
                scale = scale.max(share * d.reach(m, &w.end.poses));
            }
            let impulse = share * state.after;
            let rows = &mut w.newton.residual;
            add_wrench(rows, d.parent, d.child, &state.wrench, impulse);
        }
        scale = scale.max(self.evaluate_elements(w));
        self.evaluate_contacts(w);
        let mut worst = (0.0, 0);
        for (i, r) in w.newton.residual.iter().enumerate() {
            // a NaN must win
            if r.abs() > worst.0 || r.is_nan() {
                worst = (r.abs(), i);
            }
        }
        (worst.0, worst.1, 8.0 * f64::EPSILON * scale)
    }

    /// The matrix at the unknowns last evaluated: `[D, -G(z)'; G(z+) dz+/dV, eps]`.
    /// With loops, and where residuals are asked for, `w.matrix.original` keeps it without `eps`.
    pub(super) fn assemble(&self, w: &mut Work) {
        let keep = self.refines(w) || w.adjoint.certificate.is_some();
        self.assemble_and_keep(w, keep);
    }

    /// [`Maximal::assemble`], with the matrix kept in `w.matrix.original` only if it will be needed.
    pub(super) fn assemble_and_keep(&self, w: &mut Work, keep: bool) {
        self.assemble_bodies(w);
        self.assemble_contacts(w, keep);
        let (m, matrix) = (&w.model, &mut w.matrix);
        if matrix.softness != 0.0 {
            let factor = matrix.softness * w.knot.at.scale();
            self.add_to_diagonals(m, factor, &self.compliances, &mut matrix.values);
            self.soften_elements(m, factor, &mut matrix.values);
        }
        if keep {
            matrix.original.copy_from_slice(&matrix.values);
        }
        if m.may_be_redundant() {
            let epsilon = matrix.regularization * w.knot.at.scale();
            self.add_to_diagonals(m, epsilon, &matrix.own, &mut matrix.values);
            self.regularize_elements(w);
        }
    }

    /// Adds so many times each joint row's number to its place on the diagonal.
    pub(super) fn add_to_diagonals(
        &self,
        m: &Mechanism,
        factor: f64,
        rows: &[f64],
        values: &mut [f64],
    ) {
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let (Some(s), n) = (s, j.rows()) else {
                continue;
            };
            for (i, row) in rows[s.first_row..s.first_row + n].iter().enumerate() {
                values[s.diagonal + i * (n + 1)] += factor * row;
            }
        }
    }

    /// The matrix without contacts and without `eps`.
    pub(super) fn assemble_bodies(&self, w: &mut Work) {
        wide!(self.assemble_blocks(w));
    }

    #[inline(always)]
    fn assemble_blocks(&self, w: &mut Work) {
        let (m, h, steps) = (&w.model, w.knot.at.h(), w.knot.at.steps());
        let values = &mut w.matrix.values;
        for zero in &self.zeros {
            values[zero.clone()].fill(0.0);
        }
        for (b, body) in m.bodies.iter().enumerate() {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            let scalar = w.end.scalar[b];
            let d = (body.rotation).momentum_jacobian(&omega, &body.inertia, h, scalar);
            let block = &mut values[self.bodies[b]..self.bodies[b] + 36];
            block.fill(0.0);
            for i in 0..3 {
                block[7 * i] = body.mass;
                block[6 * (i + 3) + 3..6 * (i + 4)].copy_from_slice(d.column(i).as_slice());
            }
        }
        for (index, j) in m.joints.iter().enumerate() {
            let Some(s) = &self.slots[index] else {
                continue;
            };
            let n = j.rows();
            let (a, b) = m.ends(j, if steps { &w.end.poses } else { &w.knot.poses });
            for i in 0..n {
                let row = &w.knot.rows[s.first_row + i];
                write_column(values, s.child.0 + 6 * i, &-row.force, &-row.child_torque);
                if let Some((slot, _)) = s.parent {
                    write_column(values, slot + 6 * i, &row.force, &-row.parent_torque);
                }
                if steps {
                    let row = j.row(i, a, b, &w.end.relative[index]);
                    w.end.rows[s.first_row + i] = row;
                    let at = (s.child.1 + i, n);
                    let ends = (w.newton.trial.as_slice(), w.end.scalar.as_slice(), h);
                    let t = Self::turn(m, ends, j.child, &row.child_torque);
                    write_row(values, at, &(row.force * h), &t);
                    if let (Some((_, slot)), Some(p)) = (s.parent, j.parent) {
                        let t = Self::turn(m, ends, p, &row.parent_torque);
                        write_row(values, (slot + i, n), &(row.force * -h), &t);
                    }
                } else {
                    write_row(values, (s.child.1 + i, n), &row.force, &row.child_torque);
                    if let Some((_, slot)) = s.parent {
                        write_row(values, (slot + i, n), &-row.force, &row.parent_torque);
                    }
                }
            }
        }
        for (d, state) in self.damped.iter().zip(&w.knot.damping) {
            let scale = d.damping(m) * d.after(&w.knot.at);
            let ends = (w.newton.trial.as_slice(), w.end.scalar.as_slice(), h);
            if scale != 0.0 {
                self.assemble_damper(m, d, (state, scale), ends, values);
            }
        }
        self.assemble_elements(w);
    }

    /// `K' t`: a torque row carried from the end of the interval to the angular velocity.
    #[inline(always)]
    fn turn(m: &Mechanism, (y, scalar, h): (&[f64], &[f64], f64), body: usize, t: &Vec3) -> Vec3 {
        let omega = vec3(y, 6 * body + 3);
        (m.bodies[body].rotation).jacobian_transposed(&omega, h, scalar[body], t)
    }

    /// `d wrench (d displacement / dV)'`, up to four blocks.
    fn assemble_damper(
        &self,
        m: &Mechanism,
        d: &Damped,
        (state, scale): (&DampedState, f64),
        ends: (&[f64], &[f64], f64),
        values: &mut [f64],
    ) {
        let (wrench, row) = (&state.wrench, &state.after_end);
        let by_velocity = |body: usize, f: &Vec3, t: &Vec3| {
            // of a read-out the row is that of velocities
            let (t, h) = match ends.2 {
                0.0 => (*t, 1.0),
                h => (Self::turn(m, ends, body, t), h),
            };
            [f.x * h, f.y * h, f.z * h, t.x, t.y, t.z]
        };
        let mut add = |slot: usize, w: &[f64; 6], r: &[f64; 6]| {
            for (k, r) in r.iter().enumerate() {
                for (i, w) in w.iter().enumerate() {
                    values[slot + 6 * k + i] += scale * w * r;
                }
            }
        };
        let on_child: [f64; 6] = wrench.child().into();
        let by_child = by_velocity(d.child, &row.force, &row.child_torque);
        add(self.bodies[d.child], &on_child, &by_child);
        if let (Some(p), Some((pc, cp))) = (d.parent, d.slots) {
            let on_parent: [f64; 6] = wrench.parent().into();
            let by_parent = by_velocity(p, &-row.force, &row.parent_torque);
            add(self.bodies[p], &on_parent, &by_parent);
            add(pc, &on_parent, &by_child);
            add(cp, &on_child, &by_parent);
        }
    }

    /// Factors the assembled matrix; where a pivot block is bad, by the general sparse factorization.
    pub(super) fn factor(&self, w: &mut Work) -> Result<(), StepError> {
        self.try_factor(w).map_err(|f| self.failed(f, w))
    }

    /// The same for who tries again: a failure that is not written out.
    pub(super) fn try_factor(&self, w: &mut Work) -> Result<(), Failed> {
        w.matrix.uses_fallback = false;
        let Err(bad) = self.symbolic.factor(&mut w.matrix.values) else {
            return Ok(());
        };
        // the factors overwrote the matrix: assemble it again
        self.assemble(w);
        self.factor_with_pivots(w, self.symbolic.offset(bad.node))
    }

    /// Factors the matrix as assembled with pivots; `row` is where the blame goes.
    pub(super) fn factor_with_pivots(&self, w: &mut Work, row: usize) -> Result<(), Failed> {
        w.matrix.uses_fallback = true;
        let result = if self.contacts.is_empty() {
            let fallback = match w.matrix.fallback.take() {
                Some(f) => Ok(f),
                None => Fallback::new(&self.symbolic).map(Box::new),
            };
            fallback.and_then(|mut f| {
                let done = f.factor(&self.symbolic, &w.matrix.values);
                w.matrix.fallback = Some(f);
                done
            })
        } else {
            let (memory, values) = (&mut w.contacts, &w.matrix.values);
            self.contacts.factor(memory, &self.symbolic, values)
        };
        result.map_err(|_| Failed {
            failure: StepFailure::Singular,
            row,
            residual: f64::NAN,
        })
    }

    /// Are solutions refined? Loops are regularized, and stiff contacts make the factors lose digits.
    pub(super) fn refines(&self, w: &Work) -> bool {
        w.model.may_be_redundant() || !self.contacts.is_empty()
    }

    /// Solves with the factors, with one refinement sweep on the unregularized matrix where there are loops or contacts.
    pub(super) fn solve(&self, w: &mut Work, b: &[f64], out: &mut [f64], transposed: bool) {
        self.solve_once(w, b, out, transposed);
        if self.refines(w) {
            self.refine(w, b, out, transposed);
        }
    }

    /// [`Maximal::solve`] without the refinement.
    pub(super) fn solve_once(&self, w: &mut Work, b: &[f64], out: &mut [f64], transposed: bool) {
        out.copy_from_slice(b);
        let matrix = &mut w.matrix;
        if matrix.uses_fallback {
            let solved = match &mut matrix.fallback {
                Some(f) if transposed => f.solve_transposed(out),
                Some(f) => f.solve(out),
                None => w.contacts.solve(out, transposed),
            };
            if solved.is_err() {
                // seen by whoever uses the solution: a residual or a gradient that is not finite
                out.fill(f64::NAN);
            }
            return;
        }
        if transposed {
            self.symbolic.solve_transposed(&matrix.values, out);
        } else {
            self.symbolic.solve(&matrix.values, out);
        }
    }

    /// Refines a solution on the matrix kept in `w.matrix.original`.
    pub(super) fn refine(&self, w: &mut Work, b: &[f64], out: &mut [f64], transposed: bool) {
        if !w.matrix.uses_fallback {
            let (original, scratch) = (&w.matrix.original, &mut w.newton.scratch);
            if transposed {
                self.symbolic
                    .refine_transposed(original, &w.matrix.values, b, out, scratch);
            } else {
                self.symbolic
                    .refine(original, &w.matrix.values, b, out, scratch);
            }
        }
    }
}

#[inline(always)]
fn write_column(values: &mut [f64], at: usize, f: &Vec3, t: &Vec3) {
    let column = &mut values[at..at + 6];
    column[..3].copy_from_slice(f.as_slice());
    column[3..].copy_from_slice(t.as_slice());
}

#[inline(always)]
fn write_row(values: &mut [f64], (at, rows): (usize, usize), f: &Vec3, t: &Vec3) {
    let row = &mut values[at..at + 5 * rows + 1];
    for k in 0..3 {
        row[k * rows] = f[k];
        row[(k + 3) * rows] = t[k];
    }
}
