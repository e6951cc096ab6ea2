//! The step's equations, unsolved, from the same assembly as the step and its derivatives.

use super::assembly::vec3;
use super::{Maximal, Work};
use crate::dynamics::{Equations, KnotPoint, StepError, StepFailure, Structure};
use crate::spatial::increment_jacobian;

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
        let mut columns: Vec<Vec<usize>> = vec![vec![]; d.nf + d.nu + d.np + d.ny];
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
        Structure::new(d.ny + d.nf, &columns)
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
        structure: &Structure,
        w: &mut Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.unsolved(at, w)?;
        self.assemble(w);
        self.turn_elements(w);
        w.adjoint.coupled = false;
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
                }
            }
            let (rows, next) = product.split_at_mut(d.ny);
            self.change(w, &inputs, rows);
            // without the regularization of redundant rows
            let matrix = if w.model.may_be_redundant() {
                &w.matrix.original
            } else {
                &w.matrix.values
            };
            self.symbolic.multiply(matrix, &unknowns, &mut through);
            rows.iter_mut().zip(&through).for_each(|(r, t)| *r += t);
            self.change_of_next(w, &unknowns, next, n);
            structure.take(g, &product, values);
        }
        Ok(())
    }
}

/// What a column of the derivatives belongs to.
enum Column {
    State(usize),
    Control(usize),
    Parameter(usize),
    Unknown(usize),
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
        Column::Unknown(left)
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
            let seen = |x: &[f64], u: &[f64], p: &[f64], y: &[f64]| {
                let seen = KnotPoint { at, x, u, p, y };
                let (mut w, mut out, mut next) = (s.work(), vec![0.0; d.ny], x.to_vec());
                s.residual(&seen, &mut w, &mut out).expect("a state");
                s.advance(&seen, &mut w, &mut next).expect("a state");
                (out, next)
            };
            let p = &s.nominal;
            let (_, next) = seen(&x, &u, p, &y);
            let structure = s.structure();
            let mut values = vec![0.0; structure.entries().len()];
            let here = KnotPoint {
                at,
                x: &x,
                u: &u,
                p,
                y: &y,
            };
            s.derivatives(&here, &structure, &mut s.work(), &mut values)
                .expect("a state");
            // far fewer products than columns
            assert!(structure.groups().len() <= 24 * n + d.nu + d.np + 12);
            let mut dense = nalgebra::DMatrix::zeros(d.ny + d.nf, d.nf + d.nu + d.np + d.ny);
            for (value, &place) in values.iter().zip(structure.entries()) {
                dense[place] = *value;
            }
            for i in 0..dense.ncols() {
                let by = |e: f64| {
                    let (mut c, mut u, mut p, mut y) =
                        (vec![0.0; d.nf], u.clone(), p.clone(), y.clone());
                    match i {
                        i if i < d.nf => c[i] = e,
                        i if i < d.nf + d.nu => u[i - d.nf] += e,
                        i if i < d.nf + d.nu + d.np => p[i - d.nf - d.nu] += e,
                        i => y[i - d.nf - d.nu - d.np] += e,
                    }
                    let (mut all, to) = seen(&displaced(&s, &x, &c), &u, &p, &y);
                    all.extend(difference(&s, &next, &to));
                    all
                };
                let column: Vec<f64> = dense.column(i).iter().copied().collect();
                let what = format!("column {i} ({})", named(&s, i, d.nf + d.nu));
                assert_close(&column, &derivative(1e-4, by), 2e-7, &what);
            }
        }
    }
}
