//! The Lagrangian's curvature from its gradients on the way: limited-memory BFGS in its compact form (Byrd, Nocedal and
//! Schnabel, Math. Program. 63, 1994, equation 2.17), damped so that it stays positive definite (Powell 1978; Nocedal and
//! Wright 2006, procedure 18.2):
//!
//! ```text
//! B = sigma I - W N^-1 W',   W = [sigma S  Y],   N = | sigma S'S   L |,   L_ij = s_i' y_j for i > j,  D_ii = s_i' y_i
//!                                                    |    L'      -D |
//! ```
//!
//! Systems of steps are solved with `sigma I` and corrected for the rest (Sherman, Morrison and Woodbury).

use super::kkt::Direction;
use super::model::Derivatives;
use super::solver::Solver;
use nalgebra::{DMatrix, DVector, Dyn, LU};
use serde::{Deserialize, Serialize};

/// A change of the gradient along a step is at least this part of what is known of it.
const DAMPED: f64 = 0.2;
/// Range of `sigma`.
const SCALES: (f64, f64) = (1e-8, 1e8);

/// Steps and what they changed of the Lagrangian's gradient, the last ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pairs {
    most: usize,
    steps: Vec<Vec<f64>>,
    changes: Vec<Vec<f64>>,
}

/// `B`, with what a factorization of `sigma I` makes of it.
#[derive(Debug)]
pub struct LowRank {
    pub scale: f64,
    /// `W` and `N`.
    columns: Vec<Vec<f64>>,
    middle: DMatrix<f64>,
    inverse: Option<LU<f64, Dyn, Dyn>>,
    /// `K^-1 W` and `N - W' K^-1 W`, once they are known.
    solved: Vec<Direction>,
    inner: Option<LU<f64, Dyn, Dyn>>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Pairs {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Learns of a step, if it is one.
    pub fn add(&mut self, s: Vec<f64>, mut y: Vec<f64>) {
        let mut expected: Vec<f64> = s.clone();
        let known = self.matrix();
        expected.iter_mut().for_each(|v| *v *= known.scale);
        known.add_product(-1.0, &s, &mut expected);
        let (whole, seen) = (dot(&s, &expected), dot(&s, &y));
        if !(whole > 0.0 && seen.is_finite() && dot(&y, &y).is_finite()) {
            return;
        }
        if seen < DAMPED * whole {
            let share = (1.0 - DAMPED) * whole / (whole - seen);
            for (y, b) in y.iter_mut().zip(&expected) {
                *y = share * *y + (1.0 - share) * b;
            }
        }
        if self.steps.len() == self.most.max(1) {
            self.steps.remove(0);
            self.changes.remove(0);
        }
        self.steps.push(s);
        self.changes.push(y);
    }

    /// `B`.
    pub fn matrix(&self) -> LowRank {
        let (s, y) = (&self.steps, &self.changes);
        let n = s.len();
        let scale = match (s.last(), y.last()) {
            (Some(s), Some(y)) => (dot(s, y) / dot(s, s)).clamp(SCALES.0, SCALES.1),
            _ => 1.0,
        };
        let mut middle = DMatrix::zeros(2 * n, 2 * n);
        for i in 0..n {
            for j in 0..n {
                middle[(i, j)] = scale * dot(&s[i], &s[j]);
                if i > j {
                    middle[(i, n + j)] = dot(&s[i], &y[j]);
                    middle[(n + j, i)] = middle[(i, n + j)];
                }
            }
            middle[(n + i, n + i)] = -dot(&s[i], &y[i]);
        }
        let scaled = s.iter().map(|s| s.iter().map(|v| scale * v).collect());
        LowRank {
            scale,
            columns: scaled.chain(y.iter().cloned()).collect(),
            inverse: (n > 0).then(|| middle.clone().lu()),
            middle,
            solved: vec![],
            inner: None,
        }
    }
}

impl LowRank {
    /// `W' d`
    fn along(&self, d: &[f64]) -> DVector<f64> {
        let each = self.columns.iter().map(|c| dot(c, d));
        DVector::from_iterator(self.columns.len(), each)
    }

    /// Adds `factor W N^-1 W' d`.
    pub fn add_product(&self, factor: f64, d: &[f64], out: &mut [f64]) {
        let along = self.along(d);
        let Some(shares) = self.inverse.as_ref().and_then(|lu| lu.solve(&along)) else {
            return;
        };
        for (c, share) in self.columns.iter().zip(shares.iter()) {
            out.iter_mut()
                .zip(c)
                .for_each(|(o, c)| *o += factor * share * c);
        }
    }

    /// The factorization is another one.
    pub fn forget(&mut self) {
        self.solved.clear();
        self.inner = None;
    }

    /// Makes a solution with `sigma I` one with `B`; `solve` is such a solve.
    pub fn correct(
        &mut self,
        out: &mut Direction,
        mut solve: impl FnMut(&Direction, &mut Direction),
    ) {
        if self.columns.is_empty() {
            return;
        }
        if self.inner.is_none() {
            let mut inner = self.middle.clone();
            for (j, column) in self.columns.iter().enumerate() {
                let mut rhs = Direction {
                    w: vec![0.0; out.w.len()],
                    y: vec![0.0; out.y.len()],
                };
                rhs.w[..column.len()].copy_from_slice(column);
                let mut by = rhs.clone();
                solve(&rhs, &mut by);
                for (i, along) in self.along(&by.w).iter().enumerate() {
                    inner[(i, j)] -= along;
                }
                self.solved.push(by);
            }
            self.inner = Some(inner.lu());
        }
        let along = self.along(&out.w);
        if let Some(shares) = self.inner.as_ref().and_then(|lu| lu.solve(&along)) {
            let each = self.solved.iter().zip(shares.iter());
            each.for_each(|(by, share)| out.add(*share, by));
        }
    }
}

impl Solver {
    /// Learns from the derivatives before a step of the variables, once it has arrived.
    pub fn learn(&mut self, moved: Vec<f64>, before: &Derivatives) {
        let (Some(pairs), Some(kkt)) = (&mut self.pairs, &mut self.kkt) else {
            return;
        };
        let (model, n) = (&self.model, moved.len());
        let gradient = |d: &Derivatives| {
            let mut out = d.gradient.clone();
            out.resize(model.lower.len(), 0.0);
            model.add_pull(&d.jacobian, &self.at.y, &mut out);
            out
        };
        let (old, new) = (gradient(before), gradient(&self.d));
        let change = new.iter().zip(&old).take(n).map(|(a, b)| a - b);
        pairs.add(moved, change.collect());
        kkt.low_rank = Some(pairs.matrix());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// The compact form is what updates one after the other make of `sigma I`, and maps the last step to its change.
    #[test]
    fn it_is_what_updates_make() {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(0);
        let mut pairs = Pairs::new(4);
        for count in 1..7 {
            let mut drawn =
                || -> Vec<f64> { (0..9).map(|_| random.random_range(-1.0..1.0)).collect() };
            let (s, bent) = (drawn(), drawn());
            // now and then curvature is negative
            let sign = if count == 3 { -1.0 } else { 1.0 };
            let y = s.iter().zip(&bent).map(|(s, b)| sign * 3.0 * s + 0.3 * b);
            pairs.add(s.clone(), y.collect());
            let (b, n) = (pairs.matrix(), s.len());
            let mut dense = DMatrix::from_diagonal_element(n, n, b.scale);
            for (s, y) in pairs.steps.iter().zip(&pairs.changes) {
                let (s, y) = (DVector::from_column_slice(s), DVector::from_column_slice(y));
                let along = &dense * &s;
                dense +=
                    &y * y.transpose() / s.dot(&y) - &along * along.transpose() / s.dot(&along);
            }
            let d = drawn();
            let mut found: Vec<f64> = d.iter().map(|v| b.scale * v).collect();
            b.add_product(-1.0, &d, &mut found);
            let expected = &dense * DVector::from_column_slice(&d);
            for (a, b) in found.iter().zip(expected.iter()) {
                assert!((a - b).abs() < 1e-10, "{count}: {a} {b}");
            }
            assert!(dense.symmetric_eigenvalues().min() > 0.0, "{count}");
            assert_eq!(pairs.steps.len(), count.min(4));
        }
    }
}
