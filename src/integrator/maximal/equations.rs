//! The step's equations, unsolved, from the same assembly as the step and its derivatives.

use super::assembly::vec3;
use super::{Maximal, Work};
use crate::dynamics::{Equations, Inputs, KnotPoint, Outputs, StepError, StepFailure, Structure};
use crate::spatial::{Pose, Vec3, increment_jacobian};
use nalgebra::Quaternion;

impl Maximal {
    /// Everything at the knot and at the unknowns given, the matrix assembled but not factored.
    fn unsolved(&self, at: &KnotPoint, w: &mut Work) -> Result<(), StepError> {
        if !self.contacts.is_empty() {
            return Err(self.failure(StepFailure::Unsupported, w, self.symbolic.dim(), f64::NAN));
        }
        self.apply(at.p, w)?;
        self.prepare(at.at.step(), at.x, at.u, w)?;
        w.newton.trial.copy_from_slice(at.y);
        self.evaluate(w);
        Ok(())
    }

    /// Bodies that something ties together, and the rows of its constraint.
    fn ties(&self) -> Vec<(Vec<usize>, std::ops::Range<usize>)> {
        let m = &self.mechanism;
        let pair =
            |parent: Option<usize>, child: usize| parent.into_iter().chain([child]).collect();
        let mut out: Vec<(Vec<usize>, _)> = vec![];
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let rows = s.map_or(0..0, |s| s.offset..s.offset + j.rows());
            out.push((pair(j.parent, j.child), rows));
        }
        out.extend(m.springs.iter().map(|s| (pair(s.parent, s.child), 0..0)));
        let driven = m.actuators.iter().map(|a| m.driven(a));
        out.extend(driven.map(|(parent, child)| (pair(parent, child), 0..0)));
        out.extend(self.elements.ties(m));
        out
    }
}

impl Equations for Maximal {
    fn structure(&self) -> Structure {
        let (d, n) = (self.dims(), self.body_count());
        let ties = self.ties();
        // rows that see a body's configuration or velocity: bodies tied to it, and what constrains it
        let mut seen: Vec<Vec<usize>> = (0..n).map(|b| (6 * b..6 * b + 6).collect()).collect();
        for (bodies, rows) in &ties {
            for &b in bodies {
                seen[b].extend(bodies.iter().flat_map(|o| 6 * o..6 * o + 6));
                seen[b].extend(rows.clone());
            }
        }
        let ending = |b: usize| d.ny + 6 * b..d.ny + 6 * b + 6;
        let velocity = |b: usize| d.ny + 6 * (n + b)..d.ny + 6 * (n + b) + 6;
        let mut columns: Vec<Vec<usize>> = vec![vec![]; d.nf + d.nu + d.np + d.ny + 2];
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

    fn residual(&self, at: &KnotPoint, w: &mut Work, r: &mut [f64]) -> Result<(), StepError> {
        self.unsolved(at, w)?;
        r.copy_from_slice(&w.newton.residual);
        Ok(())
    }

    fn advance(&self, at: &KnotPoint, w: &mut Work, next: &mut [f64]) -> Result<(), StepError> {
        self.unsolved(at, w)?;
        self.write_next(w, next);
        Ok(())
    }

    fn derivatives(
        &self,
        at: &KnotPoint,
        toward: Option<&[f64]>,
        structure: &Structure,
        w: &mut Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.unsolved_matrix(at, w)?;
        let turns = self.turns(w, toward);
        let (d, n) = (self.dims(), 6 * self.body_count());
        let mut product = vec![0.0; d.ny + d.nf];
        let (mut inputs, mut unknowns) = (d.inputs(), vec![0.0; d.ny]);
        let mut through = vec![0.0; d.ny];
        for (g, group) in structure.groups().iter().enumerate() {
            inputs.clear();
            unknowns.fill(0.0);
            for &column in group {
                match self.column(column) {
                    Column::State(i) => inputs.x[i] = 1.0,
                    Column::Control(i) => inputs.u[i] = 1.0,
                    Column::Parameter(i) => inputs.p[i] = 1.0,
                    Column::Unknown(i) => unknowns[i] = 1.0,
                    Column::Before => inputs.h_prev = 1.0,
                    Column::After => inputs.h = 1.0,
                }
            }
            let (rows, next) = product.split_at_mut(d.ny);
            self.change(w, &inputs, rows);
            let matrix = Self::unregularized(w);
            self.symbolic.multiply(matrix, &unknowns, &mut through);
            rows.iter_mut().zip(&through).for_each(|(r, t)| *r += t);
            self.change_of_next(w, &unknowns, next, n);
            for (b, turn) in turns.iter().enumerate() {
                let own = &mut next[6 * b + 3..6 * b + 6];
                let seen = turned(turn, &Vec3::from_column_slice(own));
                own.copy_from_slice(seen.as_slice());
            }
            structure.take(g, &product, values);
        }
        Ok(())
    }

    fn pull_equations(
        &self,
        at: &KnotPoint,
        toward: Option<&[f64]>,
        adjoint: &Outputs,
        w: &mut Work,
        out: &mut Inputs,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        self.unsolved_matrix(at, w)?;
        let mut seen = std::mem::take(&mut w.adjoint.seen);
        seen.x.clone_from(&adjoint.x);
        seen.y.clear();
        seen.y.resize(adjoint.y.len(), 0.0);
        for (b, turn) in self.turns(w, toward).iter().enumerate() {
            let own = &mut seen.x[6 * b + 3..6 * b + 6];
            // the transpose of `turned`
            let back = turned(&turn.conjugate(), &Vec3::from_column_slice(own));
            own.copy_from_slice(back.as_slice());
        }
        self.pull_unsolved(w, &seen, &adjoint.y, out, y);
        w.adjoint.seen = seen;
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

impl Maximal {
    /// The matrix without the regularization of redundant rows.
    pub(super) fn unregularized(w: &Work) -> &[f64] {
        if w.model.may_be_redundant() {
            &w.matrix.original
        } else {
            &w.matrix.values
        }
    }

    /// [`Maximal::unsolved`] with the matrix.
    fn unsolved_matrix(&self, at: &KnotPoint, w: &mut Work) -> Result<(), StepError> {
        self.unsolved(at, w)?;
        self.assemble(w);
        self.turn_elements(w);
        w.adjoint.coupled = false;
        Ok(())
    }

    /// Turns of the bodies from a state to the end of the interval; none where there is no such state.
    fn turns(&self, w: &Work, toward: Option<&[f64]>) -> Vec<Quaternion<f64>> {
        let Some(x) = toward else { return vec![] };
        let turn = |(x, pose): (&[f64], &Pose)| {
            let q = Quaternion::new(x[3], x[4], x[5], x[6]);
            let turn = q.conjugate() * pose.q.into_inner();
            if turn.w < 0.0 { -turn } else { turn }
        };
        x.chunks_exact(13).zip(&w.end.poses).map(turn).collect()
    }

    /// Sets the unwound angles of a state near another one.
    fn follow_windings(&self, from: &[f64], x: &mut [f64]) {
        if self.windings.is_empty() {
            return;
        }
        let (poses, m) = (self.poses_of(x), &self.mechanism);
        let angles = &mut x[13 * self.body_count()..];
        let before = &from[13 * self.body_count()..];
        for ((angle, before), &(joint, i)) in angles.iter_mut().zip(before).zip(&self.windings) {
            let j = &m.joints[joint];
            let (a, b) = m.ends(j, &poses);
            *angle = j.coordinate(i, &j.relative(a, b), *before);
        }
    }
}

/// What a column of the derivatives belongs to.
enum Column {
    State(usize),
    Control(usize),
    Parameter(usize),
    Unknown(usize),
    Before,
    After,
}

impl Maximal {
    fn column(&self, column: usize) -> Column {
        let d = self.dims();
        let mut left = column;
        for (size, kind) in [
            (d.nf, Column::State as fn(usize) -> Column),
            (d.nu, Column::Control),
            (d.np, Column::Parameter),
        ] {
            if left < size {
                return kind(left);
            }
            left -= size;
        }
        match left.checked_sub(d.ny) {
            None => Column::Unknown(left),
            Some(0) => Column::Before,
            Some(_) => Column::After,
        }
    }

    /// Change of the next state by that of its configuration left by [`Maximal::change`] and by the unknowns'.
    pub(super) fn change_of_next(&self, w: &Work, dy: &[f64], next: &mut [f64], n: usize) {
        let h = w.knot.at.h();
        for b in 0..self.body_count() {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            let (dv, dw) = (vec3(dy, 6 * b), vec3(dy, 6 * b + 3));
            let x = vec3(&w.adjoint.zplus, 6 * b) + dv * h;
            let phi = vec3(&w.adjoint.zplus, 6 * b + 3)
                + increment_jacobian(&omega, h, w.end.scalar[b]) * dw;
            next[6 * b..6 * b + 3].copy_from_slice(x.as_slice());
            next[6 * b + 3..6 * b + 6].copy_from_slice(phi.as_slice());
        }
        next[n..].copy_from_slice(&dy[..n]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        assert_close, derivative, difference, displaced, named, situation, systems,
    };
    use crate::dynamics::{Equations, KnotPoint};
    use crate::integrator::composed::tests::pulls_are_products;
    use crate::mechanism::samples::Source;

    /// The unsolved equations, at unknowns that do not solve them: every entry that the structure leaves out is zero, every
    /// other as differences have it.
    #[test]
    fn the_equations_have_their_derivatives() {
        for (s, x) in systems() {
            let (d, n) = (s.dims(), s.body_count());
            let (at, x, u, mut y) = situation(&s, &x, false);
            let mut r = Source::new(21);
            y.iter_mut().for_each(|y| *y += 0.05 * r.unit());
            let seen = |at, x: &[f64], u: &[f64], p: &[f64], y: &[f64]| {
                let seen = KnotPoint { at, x, u, p, y };
                let (mut w, mut out, mut next) = (s.work(), vec![0.0; d.ny], x.to_vec());
                s.residual(&seen, &mut w, &mut out).expect("a state");
                s.advance(&seen, &mut w, &mut next).expect("a state");
                (out, next)
            };
            let p = &s.nominal;
            let (_, next) = seen(at, &x, &u, p, &y);
            let structure = s.structure();
            let mut values = vec![0.0; structure.entries().len()];
            let here = KnotPoint {
                at,
                x: &x,
                u: &u,
                p,
                y: &y,
            };
            s.derivatives(&here, None, &structure, &mut s.work(), &mut values)
                .expect("a state");
            pulls_are_products(&s, &here, &structure);
            // far fewer products than columns
            assert!(structure.groups().len() <= 24 * n + d.nu + d.np + 12);
            let times = d.nf + d.nu + d.np + d.ny;
            let mut dense = nalgebra::DMatrix::zeros(d.ny + d.nf, times + 2);
            for (value, &place) in values.iter().zip(structure.entries()) {
                dense[place] = *value;
            }
            for i in 0..dense.ncols() {
                let by = |e: f64| {
                    let (mut c, mut u, mut p, mut y) =
                        (vec![0.0; d.nf], u.clone(), p.clone(), y.clone());
                    let mut at = at;
                    match i {
                        i if i == times => at.h_prev += e,
                        i if i == times + 1 => at.h += e,
                        i if i < d.nf => c[i] = e,
                        i if i < d.nf + d.nu => u[i - d.nf] += e,
                        i if i < d.nf + d.nu + d.np => p[i - d.nf - d.nu] += e,
                        i => y[i - d.nf - d.nu - d.np] += e,
                    }
                    let (mut all, to) = seen(at, &displaced(&s, &x, &c), &u, &p, &y);
                    all.extend(difference(&s, &next, &to));
                    all
                };
                let column: Vec<f64> = dense.column(i).iter().copied().collect();
                let what = format!("column {i} ({})", named(&s, i, d.nf + d.nu));
                assert_close(&column, &derivative(1e-4, by), 2e-7, &what);
            }
        }
    }

    /// Moves and separations are inverse to each other, and derivatives toward a state are those of the separation from it.
    #[test]
    fn separations_take_back_moves() {
        for (s, x) in systems() {
            let (d, mut r) = (s.dims(), Source::new(5));
            let (move_, mut to, mut back) = (r.vector(d.nf, 0.4), x.clone(), vec![0.0; d.nf]);
            assert!(s.displace(&x, &move_, &mut to));
            s.separation(&x, &to, &mut back);
            assert_close(&back, &move_, 1e-12, "the way back");
            assert!(!s.displace(&x, &vec![2.5; d.nf], &mut to.clone()));
            let (at, x, u, y) = situation(&s, &x, false);
            let structure = s.structure();
            let mut values = vec![0.0; structure.entries().len()];
            let (x, u, p) = (&x[..], &u[..], &s.nominal[..]);
            let mut w = s.work();
            let here = KnotPoint { at, x, u, p, y: &y };
            s.derivatives(&here, Some(&to), &structure, &mut w, &mut values)
                .expect("a state");
            let change = r.vector(d.ny, 0.1);
            let numeric = derivative(1e-4, |e| {
                let y: Vec<f64> = y.iter().zip(&change).map(|(y, c)| y + e * c).collect();
                let (mut next, mut out) = (x.to_vec(), vec![0.0; d.nf]);
                let moved = KnotPoint { at, x, u, p, y: &y };
                s.advance(&moved, &mut s.work(), &mut next)
                    .expect("a state");
                s.separation(&to, &next, &mut out);
                out
            });
            let mut exact = vec![0.0; d.nf];
            let first = d.nf + d.nu + d.np;
            for (value, &(row, column)) in values.iter().zip(structure.entries()) {
                if row >= d.ny && (first..first + d.ny).contains(&column) {
                    exact[row - d.ny] += value * change[column - first];
                }
            }
            assert_close(&exact, &numeric, 1e-7, "toward a state");
        }
    }
}
