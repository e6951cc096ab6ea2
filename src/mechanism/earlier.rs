//! Coordinates an interval ago, of a motion whose displacements since are known.
//!
//! With `c` the coordinates of a joint, `tau` its tangent (that of rates), `D(c', c)` its displacements from `c'` to `c`:
//!
//! ```text
//! D(c', c) = d,     D' dtau' + D dtau = dd,     dtau = T dc
//! ```
//!
//! Slides and angles are differences. Of two or three rotations `D` is `u . log(r r'^-1)`.

use super::{Freedom, Joint, Mechanism, Relative};
use crate::spatial::{Vec3, exp, left_log_jacobian, log, right_log_jacobian};
use nalgebra::{DMatrix, DVector};

/// Displacements that are solved for to this, rad, are solved for to rounding by the iteration behind.
const CLOSE: f64 = 1e-8;
/// It converges quadratically from coordinates less displacements; where it does not, a step turns too far.
const ITERATIONS: usize = 20;

/// The tree an interval ago.
pub(crate) struct Earlier {
    /// Its coordinates.
    pub q: Vec<f64>,
    /// Derivative of its tangent by the tangent of the tree.
    pub by_tangent: DMatrix<f64>,
    /// And by the displacements since.
    pub by_moved: DMatrix<f64>,
}

impl Joint {
    /// The relative turn at unit rate of direction `i`.
    fn turn_at_unit(&self, rel: &Relative, i: usize) -> Vec3 {
        let mut rates = vec![0.0; self.directions.len()];
        rates[i] = 1.0;
        self.relative_motion(rel, &rates).1
    }

    fn turns(&self) -> impl Iterator<Item = usize> + Clone {
        let each = self.directions.iter().enumerate();
        each.filter(|(_, d)| d.freedom == Freedom::Turn)
            .map(|(i, _)| i)
    }

    /// `u_i . by (turn at unit rate j)` for those of several rotations, else the unit matrix.
    fn turned(&self, rel: &Relative, by: impl Fn(&Vec3) -> Vec3) -> DMatrix<f64> {
        let n = self.directions.len();
        let mut out = DMatrix::identity(n, n);
        for j in self.turns() {
            let change = by(&self.turn_at_unit(rel, j));
            for i in self.turns() {
                out[(i, j)] = self.directions[i].unit.dot(&change);
            }
        }
        out
    }

    /// `d tangent / d coordinates`.
    fn tangent_by_coordinates(&self, c: &[f64]) -> Option<DMatrix<f64>> {
        let rel = self.relative_at(c);
        let turned = self.turns().map(|i| self.directions[i].unit * c[i]);
        let by = left_log_jacobian(&turned.sum());
        self.turned(&rel, |turn| by * turn).try_inverse()
    }

    /// The coordinates from which the displacements to `c` are `moved`, with the derivatives of their tangent.
    fn earlier(&self, c: &[f64], moved: &[f64]) -> Option<(Vec<f64>, [DMatrix<f64>; 2])> {
        let rel = self.relative_at(c);
        let mut old: Vec<f64> = c.iter().zip(moved).map(|(c, d)| c - d).collect();
        let mut left = f64::INFINITY;
        for _ in 0..ITERATIONS {
            let from = self.relative_at(&old);
            let since = log(&(rel.r * from.r.conjugate()));
            let by = right_log_jacobian(&since);
            let by_start = self.turned(&from, |turn| -(by * turn));
            let by_start = slides_back(self, by_start).try_inverse()?;
            if left < CLOSE {
                let by = left_log_jacobian(&since);
                let by_end = self.turned(&rel, |turn| by * turn);
                let by_tangent = -&by_start * by_end;
                return Some((old, [by_tangent, by_start]));
            }
            let mut error = DVector::zeros(c.len());
            for i in self.turns() {
                error[i] = moved[i] - self.directions[i].unit.dot(&since);
            }
            left = error.amax();
            let step = by_start * error;
            let (_, turn) = self.relative_motion(&from, step.as_slice());
            let to = log(&(exp(&turn) * from.r));
            for i in self.turns() {
                old[i] = self.directions[i].unit.dot(&to);
            }
        }
        None
    }
}

/// Displacements of slides and angles fall as their start grows.
fn slides_back(j: &Joint, mut by_start: DMatrix<f64>) -> DMatrix<f64> {
    for (i, d) in j.directions.iter().enumerate() {
        if d.freedom != Freedom::Turn {
            by_start[(i, i)] = -1.0;
        }
    }
    by_start
}

impl Mechanism {
    /// `d tangent / d coordinates` of the tree. None where a ball's rotation vector is a whole turn.
    pub(crate) fn tangent_by_coordinates(&self, q: &[f64]) -> Option<DMatrix<f64>> {
        let mut out = DMatrix::zeros(q.len(), q.len());
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let n = j.directions.len();
            let own = j.tangent_by_coordinates(&q[e.first..e.first + n])?;
            out.view_mut((e.first, e.first), (n, n)).copy_from(&own);
        }
        Some(out)
    }

    /// Where the tree was when its coordinates have since been displaced by `moved`. None where that is too far.
    pub(crate) fn earlier(&self, q: &[f64], moved: &[f64]) -> Option<Earlier> {
        let n = q.len();
        let mut out = Earlier {
            q: q.to_vec(),
            by_tangent: DMatrix::zeros(n, n),
            by_moved: DMatrix::zeros(n, n),
        };
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let own = e.first..e.first + j.directions.len();
            let (old, [by_tangent, by_moved]) = j.earlier(&q[own.clone()], &moved[own.clone()])?;
            let place = ((own.start, own.start), by_moved.shape());
            out.by_tangent
                .view_mut(place.0, place.1)
                .copy_from(&by_tangent);
            out.by_moved.view_mut(place.0, place.1).copy_from(&by_moved);
            out.q[own].copy_from_slice(&old);
        }
        Some(out)
    }
}
