//! The step's equations, unsolved, from the same assembly as the step and its derivatives.

use super::assembly::{add_wrench, dot, pose, vec3};
use super::{Maximal, Work};
use crate::contact::{IMPULSES, LAW, Memory, UNKNOWNS, View};
use crate::dynamics::{
    Column, ContactUnknowns, Equations, Inputs, KnotPoint, Outputs, StepError, Structure,
    UnsolvedStep,
};
use crate::mechanism::{Joint, Relative};
use crate::spatial::{Pose, Vec3};
use nalgebra::Quaternion;
use std::ops::Range;

impl Maximal {
    /// Everything at a knot's unknowns.
    fn take_unknowns(&self, at: &KnotPoint, w: &mut Work) -> Result<(), StepError> {
        self.set_unknowns(at, w)?;
        self.evaluate(w);
        Ok(())
    }

    /// Everything at the knot, with its unknowns as they are to be evaluated.
    fn set_unknowns(&self, at: &KnotPoint, w: &mut Work) -> Result<(), StepError> {
        self.apply(at.p, w)?;
        self.prepare(at.at.step(), at.x, at.u, w)?;
        let (core, contacts) = at.y.split_at(w.newton.trial.len());
        w.newton.trial.copy_from_slice(core);
        w.contacts.read(contacts, &self.contacts);
        w.contacts.take_level();
        Ok(())
    }

    /// Lets contacts see the poses at the end of the step, where they have to hold: those given, or where the unknowns lead.
    fn at_end<T>(
        &self,
        w: &mut Work,
        end: Option<&[Pose]>,
        see: impl FnOnce(&View, &mut Memory) -> T,
    ) -> T {
        let mut memory = std::mem::take(&mut w.contacts);
        let mut view = self.view(w);
        if let Some(poses) = end {
            view.next = poses;
        }
        let seen = see(&view, &mut memory);
        w.contacts = memory;
        seen
    }

    /// Poses at the end of the step, where it is a variable; the memory is the caller's until it gives it back.
    fn closing(&self, at: &UnsolvedStep, w: &mut Work) -> Option<Vec<Pose>> {
        let end = at.end?;
        let mut poses = std::mem::take(&mut w.end.given);
        poses.clear();
        let bodies = end.state.chunks_exact(13).take(self.body_count());
        poses.extend(bodies.map(pose));
        Some(poses)
    }

    /// Shows every joint that has rows, with these and the poses of its bodies.
    fn close(
        &self,
        poses: &[Pose],
        w: &Work,
        mut show: impl FnMut(&Joint, Range<usize>, (&Pose, &Pose), &Relative),
    ) {
        for (j, s) in w.model.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            let ends = w.model.ends(j, poses);
            let relative = j.relative(ends.0, ends.1);
            show(j, s.offset..s.offset + j.rows(), ends, &relative);
        }
    }

    /// Bodies that something ties together, and the rows of its constraint.
    fn ties(&self) -> Vec<(Vec<usize>, std::ops::Range<usize>)> {
        let m = &self.mechanism;
        let pair =
            |parent: Option<usize>, child: usize| parent.into_iter().chain([child]).collect();
        let mut out: Vec<(Vec<usize>, _)> = vec![];
        // joints first
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let rows = s.map_or(0..0, |s| s.offset..s.offset + j.rows());
            out.push((pair(j.parent, j.child), rows));
        }
        out.extend(m.springs.iter().map(|s| (pair(s.parent, s.child), 0..0)));
        let driven = m.actuators.iter().map(|a| m.driven(a));
        out.extend(driven.map(|(parent, child)| (pair(parent, child), 0..0)));
        out.extend(self.elements.ties(m));
        let both = |(parent, child): (Option<usize>, usize)| pair(parent, child);
        out.extend(self.contacts.pairs().map(both).map(|bodies| (bodies, 0..0)));
        out
    }
}

impl Equations for Maximal {
    fn check_equations(&self) -> Result<(), String> {
        self.contacts.check_equations(&self.mechanism)
    }

    fn structure(&self, has_end: bool) -> Structure {
        let (d, n) = (self.dims(), self.body_count());
        let ties = self.ties();
        // rows that see a body's configuration or velocity: bodies tied to it, and what constrains it
        let mut seen: Vec<Vec<usize>> = (0..n).map(|b| (6 * b..6 * b + 6).collect()).collect();
        let mut ended = vec![vec![]; n];
        for (i, (bodies, rows)) in ties.iter().enumerate() {
            let is_joint = i < self.mechanism.joints.len();
            for &b in bodies {
                seen[b].extend(bodies.iter().flat_map(|o| 6 * o..6 * o + 6));
                let of_rows = if has_end && is_joint {
                    &mut ended[b]
                } else {
                    &mut seen[b]
                };
                of_rows.extend(rows.clone());
            }
        }
        let ending = |b: usize| d.ny + 6 * b..d.ny + 6 * b + 6;
        let velocity = |b: usize| d.ny + 6 * (n + b)..d.ny + 6 * (n + b) + 6;
        let mut columns: Vec<Vec<usize>> = vec![vec![]; Column::count(&d)];
        for (b, seen) in seen.iter().enumerate() {
            for i in 6 * b..6 * b + 6 {
                columns[i] = seen.iter().copied().chain(ending(b)).collect();
                columns[6 * n + i].clone_from(seen);
                let unknown = &mut columns[d.nf + d.nu + d.np + i];
                unknown.clone_from(seen);
                unknown.extend(ending(b).chain(velocity(b)));
            }
        }
        for (i, a) in self.mechanism.actuators.iter().enumerate() {
            let (parent, child) = self.mechanism.driven(a);
            let bodies = parent.into_iter().chain([child]);
            columns[d.nf + i] = bodies.flat_map(|b| 6 * b..6 * b + 6).collect();
        }
        for column in &mut columns[d.nf + d.nu..d.nf + d.nu + d.np] {
            *column = (0..d.ny).collect();
        }
        for (bodies, rows) in &ties {
            for i in rows.clone() {
                columns[d.nf + d.nu + d.np + i] =
                    bodies.iter().flat_map(|b| 6 * b..6 * b + 6).collect();
            }
        }
        let times = d.nf + d.nu + d.np + d.ny;
        columns[times] = (0..6 * n).collect();
        columns[times + 1] = (0..d.ny + 6 * n).collect();
        for (i, (parent, child)) in self.contacts.pairs().enumerate() {
            let first = self.symbolic.dim() + i * UNKNOWNS;
            let bodies: Vec<usize> = parent.into_iter().chain([child]).collect();
            for &b in &bodies {
                for j in 6 * b..6 * b + 6 {
                    columns[j].extend(first + 2..first + 5);
                    columns[Column::Unknown(j).place(&d)].extend(first + 2..first + 5);
                    if has_end {
                        let end = &mut columns[Column::End(j).place(&d)];
                        end.push(first);
                        end.extend(first + 2..first + 5);
                    } else {
                        columns[j].push(first);
                        columns[Column::Unknown(j).place(&d)].push(first);
                    }
                }
            }
            let on = bodies.iter().flat_map(|b| 6 * b..6 * b + 6);
            let on: Vec<usize> = on.collect();
            for (j, own) in LAW.into_iter().enumerate() {
                let column = &mut columns[Column::Unknown(first + j).place(&d)];
                column.extend(own.iter().map(|row| first + row));
                if IMPULSES.contains(&j) {
                    column.extend(&on);
                }
            }
            columns[times].extend(first..first + UNKNOWNS);
        }
        for place in self.contacts.own_rows() {
            columns[Column::Unknown(place).place(&d)].push(place);
        }
        for (b, rows) in ended.into_iter().enumerate() {
            for i in 6 * b..6 * b + 6 {
                columns[Column::End(i).place(&d)].extend(&rows);
            }
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    /// A turn `phi` in the body's frame is the quaternion `(sqrt(1 - phi'phi/4), phi/2)`, as over an interval.
    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        let n = self.body_count();
        for (b, (x, out)) in x
            .chunks_exact(13)
            .zip(out.chunks_exact_mut(13))
            .enumerate()
            .take(n)
        {
            let (pose, motion) = (&d[6 * b..6 * b + 6], &d[6 * (n + b)..6 * (n + b) + 6]);
            let half = Vec3::from_column_slice(&pose[3..]) * 0.5;
            let rest = 1.0 - half.norm_squared();
            if rest.is_nan() || rest <= 0.0 {
                return false;
            }
            let turn = Quaternion::from_parts(rest.sqrt(), half);
            let turned = (Quaternion::new(x[3], x[4], x[5], x[6]) * turn).normalize();
            (0..3).for_each(|i| out[i] = x[i] + pose[i]);
            out[3..7].copy_from_slice(&[turned.w, turned.i, turned.j, turned.k]);
            (0..6).for_each(|i| out[7 + i] = x[7 + i] + motion[i]);
        }
        self.follow_windings(x, out);
        true
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        let n = self.body_count();
        for (b, (x, to)) in x
            .chunks_exact(13)
            .zip(to.chunks_exact(13))
            .enumerate()
            .take(n)
        {
            let turn = turn_between(x, to).imag() * 2.0;
            (0..3).for_each(|i| out[6 * b + i] = to[i] - x[i]);
            out[6 * b + 3..6 * b + 6].copy_from_slice(turn.as_slice());
            (0..6).for_each(|i| out[6 * (n + b) + i] = to[7 + i] - x[7 + i]);
        }
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        let bodies = x.chunks_exact(13).zip(to.chunks_exact(13));
        for (b, (x, to)) in bodies.enumerate().take(self.body_count()) {
            turn_adjoint(&turn_between(x, to), &mut adjoint[6 * b + 3..6 * b + 6]);
        }
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        let each = self.contacts.places(&self.mechanism);
        each.collect()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        let bodies = self.mechanism.bodies.iter().enumerate();
        bodies
            .flat_map(|(b, body)| {
                let axes = [Vec3::x(), Vec3::y(), Vec3::z()];
                (6 * b + 3..).zip(axes.map(|axis| body.rotation.planned(&axis) / h.abs()))
            })
            .collect()
    }

    fn set_central_path(&self, w: &mut Work, kappa: f64) {
        w.contacts.set_level(kappa);
    }

    fn center(&self, at: &UnsolvedStep, w: &mut Work, y: &mut [f64]) -> Result<(), StepError> {
        self.take_unknowns(&at.start, w)?;
        let own = &mut y[self.symbolic.dim()..];
        let poses = self.closing(at, w);
        self.at_end(w, poses.as_deref(), |view, memory| {
            self.contacts.center(view, memory, own);
        });
        w.end.given = poses.unwrap_or_default();
        Ok(())
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        let n = 6 * self.body_count();
        (0..n).map(|i| (n + i, i)).collect()
    }

    fn residual(&self, at: &UnsolvedStep, w: &mut Work, r: &mut [f64]) -> Result<(), StepError> {
        self.take_unknowns(&at.start, w)?;
        let (r, own) = r.split_at_mut(self.symbolic.dim());
        r.copy_from_slice(&w.newton.residual);
        let poses = self.closing(at, w);
        self.at_end(w, poses.as_deref(), |view, memory| {
            self.contacts.leave_unsolved(view, memory, own);
        });
        if let Some(poses) = &poses {
            self.close(poses, w, |j, rows, _, relative| {
                j.constraint(relative, &mut r[rows]);
            });
        }
        w.end.given = poses.unwrap_or_default();
        Ok(())
    }

    fn advance(&self, at: &KnotPoint, w: &mut Work, next: &mut [f64]) -> Result<(), StepError> {
        self.take_unknowns(at, w)?;
        self.write_next(w, next);
        Ok(())
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.take_unknowns(&at.start, w)?;
        self.assemble_bodies(w);
        self.turn_elements(w);
        w.adjoint.coupled = false;
        let poses = self.closing(at, w);
        self.hold_contacts(w, poses.as_deref());
        let turns: Vec<_> = self.turns(w, at.end.map(|e| e.from)).collect();
        let mut closing = vec![];
        if let Some(poses) = &poses {
            self.close(poses, w, |j, rows, (a, b), relative| {
                closing.extend(
                    rows.enumerate()
                        .map(|(i, row)| (row, j.parent, j.child, j.row(i, a, b, relative))),
                );
            });
        }
        let mut of_end = vec![0.0; 6 * self.body_count()];
        let (d, n) = (self.dims(), 6 * self.body_count());
        let mut product = vec![0.0; d.ny + d.nf];
        let (mut inputs, mut unknowns) = (d.inputs(), vec![0.0; d.ny]);
        let core = self.symbolic.dim();
        let mut through = vec![0.0; core];
        for (g, group) in structure.groups().iter().enumerate() {
            inputs.clear();
            unknowns.fill(0.0);
            of_end.fill(0.0);
            for &column in group {
                match Column::at(&d, column) {
                    Column::State(i) => inputs.x[i] = 1.0,
                    Column::Control(i) => inputs.u[i] = 1.0,
                    Column::Parameter(i) => inputs.p[i] = 1.0,
                    Column::Unknown(i) => unknowns[i] = 1.0,
                    Column::Before => inputs.h_prev = 1.0,
                    Column::After => inputs.h = 1.0,
                    // velocities close nothing
                    Column::End(i) => {
                        if let Some(end) = of_end.get_mut(i) {
                            *end = 1.0;
                        }
                    }
                }
            }
            let (rows, next) = product.split_at_mut(d.ny);
            self.change_bodies(w, &inputs, &mut rows[..core]);
            let (matrix, dy) = (&w.matrix.values, &unknowns[..core]);
            if dy.iter().any(|d| *d != 0.0) {
                self.symbolic.multiply(matrix, dy, &mut through);
                rows.iter_mut().zip(&through).for_each(|(r, t)| *r += t);
            }
            for (row, parent, child, by) in &closing {
                rows[*row] = dot(&of_end, *parent, *child, by);
            }
            if let Some(poses) = &poses {
                for (i, dp) in inputs.p.iter().enumerate().filter(|(_, dp)| **dp != 0.0) {
                    self.close_by_parameter(w, i, poses, |row, by| rows[row] += by * dp);
                }
            }
            self.change_of_next(w, &unknowns, next, n);
            if poses.is_none() {
                of_end.copy_from_slice(&next[..n]);
            }
            let changes = (&of_end[..], unknowns.split_at(core));
            self.at_end(w, poses.as_deref(), |view, memory| {
                let contacts = &self.contacts;
                contacts.push_unsolved(view, memory, &inputs, changes, rows.split_at_mut(core));
            });
            for (b, turn) in turns.iter().enumerate() {
                let own = &mut next[6 * b + 3..6 * b + 6];
                let seen = turned(turn, &Vec3::from_column_slice(own));
                own.copy_from_slice(seen.as_slice());
            }
            structure.take(g, &product, values);
        }
        w.end.given = poses.unwrap_or_default();
        Ok(())
    }

    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut Work,
        out: &mut Inputs,
        y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        self.set_unknowns(&at.start, w)?;
        self.evaluate_transposed(w);
        if at.end.is_none() {
            self.end_rows(w);
        }
        let poses = self.closing(at, w);
        self.hold_contacts(w, poses.as_deref());
        end.fill(0.0);
        let mut residual = std::mem::take(&mut w.adjoint.residual);
        residual.clone_from(&adjoint.y);
        if let Some(poses) = &poses {
            self.close(poses, w, |j, rows, (a, b), relative| {
                for (i, row) in rows.enumerate() {
                    let mu = std::mem::take(&mut residual[row]);
                    add_wrench(end, j.parent, j.child, &j.row(i, a, b, relative), mu);
                }
            });
        }
        let mut next = std::mem::take(&mut w.adjoint.next);
        next.clone_from(&adjoint.x);
        for (b, turn) in self.turns(w, at.end.map(|e| e.from)).enumerate() {
            turn_adjoint(&turn, &mut next[6 * b + 3..6 * b + 6]);
        }
        let core = self.symbolic.dim();
        let (own, rest) = y.split_at_mut(core);
        rest.fill(0.0);
        let mu = residual.split_at(core);
        self.pull_unsolved(w, &next, mu.0, (out, own), |w, zplus, (out, own)| {
            let of_poses = if poses.is_some() { end } else { zplus };
            self.at_end(w, poses.as_deref(), |view, memory| {
                let contacts = &self.contacts;
                contacts.pull_unsolved(view, memory, mu, of_poses, (out, (own, rest)));
            });
        });
        if let Some(poses) = &poses {
            for (i, dp) in out.p.iter_mut().enumerate() {
                self.close_by_parameter(w, i, poses, |row, by| *dp += by * adjoint.y[row]);
            }
        }
        (w.adjoint.next, w.adjoint.residual) = (next, residual);
        w.end.given = poses.unwrap_or_default();
        Ok(())
    }
}

/// The turn from a body's stored numbers to others, the shorter way.
fn turn_between(x: &[f64], to: &[f64]) -> Quaternion<f64> {
    let q = |x: &[f64]| Quaternion::new(x[3], x[4], x[5], x[6]);
    let turn = q(x).conjugate() * q(to);
    if turn.w < 0.0 { -turn } else { turn }
}

/// What a turn `phi` at the end of a turn does to twice the latter's imaginary part.
fn turned(turn: &Quaternion<f64>, phi: &Vec3) -> Vec3 {
    phi * turn.w + turn.imag().cross(phi)
}

/// The transpose of [`turned`], in place.
fn turn_adjoint(turn: &Quaternion<f64>, adjoint: &mut [f64]) {
    let back = turned(&turn.conjugate(), &Vec3::from_column_slice(adjoint));
    adjoint.copy_from_slice(back.as_slice());
}

impl Maximal {
    /// Gaps at the end of the step, and what of contacts is differentiated.
    fn hold_contacts(&self, w: &mut Work, end: Option<&[Pose]>) {
        if self.contacts.is_empty() {
            return;
        }
        let mut left = std::mem::take(&mut w.contacts_left);
        self.at_end(w, end, |view, memory| {
            self.contacts.leave_unsolved(view, memory, &mut left);
            self.contacts.hold(view, memory);
        });
        w.contacts_left = left;
    }

    /// Turns of the bodies from a state to the end of the interval; none where there is no such state.
    fn turns<'a>(
        &self,
        w: &'a Work,
        toward: Option<&'a [f64]>,
    ) -> impl Iterator<Item = Quaternion<f64>> + 'a {
        let turn = |(x, pose): (&[f64], &Pose)| {
            let q = Quaternion::new(x[3], x[4], x[5], x[6]);
            let turn = q.conjugate() * pose.q.into_inner();
            if turn.w < 0.0 { -turn } else { turn }
        };
        let bodies = toward.unwrap_or_default().chunks_exact(13);
        bodies.zip(&w.end.poses).map(turn)
    }

    /// Sets the unwound angles of a state near another one.
    fn follow_windings(&self, from: &[f64], x: &mut [f64]) {
        if self.windings.is_empty() {
            return;
        }
        let (bodies, angles) = x.split_at_mut(13 * self.body_count());
        let before = &from[13 * self.body_count()..];
        let of = |b: usize| pose(&bodies[13 * b..13 * b + 13]);
        for ((angle, before), &(joint, i)) in angles.iter_mut().zip(before).zip(&self.windings) {
            let j = &self.mechanism.joints[joint];
            let (a, b) = (j.parent.map_or(Pose::identity(), of), of(j.child));
            *angle = j.coordinate(i, &j.relative(&a, &b), *before);
        }
    }
}

impl Maximal {
    /// Change of the next state by that of its configuration left by [`Maximal::change`] and by the unknowns'.
    pub(super) fn change_of_next(&self, w: &Work, dy: &[f64], next: &mut [f64], n: usize) {
        let h = w.knot.at.h();
        for b in 0..self.body_count() {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            let law = &w.model.bodies[b].rotation;
            let (dv, dw) = (vec3(dy, 6 * b), vec3(dy, 6 * b + 3));
            let x = vec3(&w.adjoint.zplus, 6 * b) + dv * h;
            let phi =
                vec3(&w.adjoint.zplus, 6 * b + 3) + law.jacobian(&omega, h, w.end.scalar[b]) * dw;
            next[6 * b..6 * b + 3].copy_from_slice(x.as_slice());
            next[6 * b + 3..6 * b + 6].copy_from_slice(phi.as_slice());
        }
        next[n..].copy_from_slice(&dy[..n]);
    }
}
