//! The model of an augmented Lagrangian by a few decisions, with all kinks of its inequalities:
//!
//! ```text
//! m(d) = g'd + 1/2 d'Hd + sum_i ( F_i(d)^2 - F_i(0)^2 ) / (2 r),    F_i(d) = l_i + r (c_i + a_i d)   (inequalities: not below zero)
//! ```
//!
//! Inequalities that hold along a path are thousands, and a step meets hundreds that did not act, or leaves as many that did: a
//! model that holds them as they are would promise what no step keeps. `m` is convex, and quadratic between its kinks. Newton's
//! steps with the curvature of what acts, each as long as is best along it, are at its minimum after finitely many (Li and
//! Swetits, SIAM J. Optim. 3, 1993), and each costs no more than the rows are numbers.

use super::dense::{cholesky, cholesky_solve, dot, gemv, quadratic_form};
use super::lagrangian::PENALTY_GROWTH;

/// Newton's steps: a dozen is much, and none may cycle for ever by rounding.
const MAX_STEPS: usize = 100;
/// Evaluations along one, of which each but a few cuts off kinks; bisection alone would end at rounding.
const MAX_EVALUATIONS: usize = 60;
/// Part of the first slope that is none: a thousand times rounding.
const FLAT: f64 = 1e-12;
/// Relative to the curvature of a decision: what is added first where no curvature is left, above rounding, and by how much
/// more it grows. As for controls that nothing costs.
const FLOOR: f64 = 1e-12;
const FLOOR_GROWTH: f64 = 100.0;
/// Part of all curvature by a decision below which that of costs is rounding.
const UNCURVED: f64 = 1e-12;
/// Rounds of [`Hinges::multipliers`]: with a penalty that grows in each what they leave falls faster than by
/// [`PENALTY_GROWTH`] to the power of their number, unless the rows contradict each other.
const MAX_ROUNDS: usize = 14;

/// The model, but for multipliers and penalty. Of `n` decisions.
#[derive(Clone, Debug, Default)]
pub struct Hinges {
    /// n: gradient of what is no constraint.
    pub g: Vec<f64>,
    /// n x n: its curvature, positive semidefinite.
    pub h: Vec<f64>,
    /// n: that of the costs by each decision.
    pub costs: Vec<f64>,
    /// n each: gradients of the constraints.
    pub rows: Vec<f64>,
    /// Their values.
    pub c: Vec<f64>,
    /// Which of them are equalities.
    pub equal: Vec<bool>,
}

/// Multipliers and penalty.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    pub multipliers: &'a [f64],
    pub penalty: f64,
}

/// A minimizer.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    pub d: Vec<f64>,
    /// `m(0) - m(d)`, without damping.
    pub gain: f64,
}

impl Hinges {
    /// The minimum, with the curvature by each decision that is not of constraints made larger by the factor `1 + damping`: that
    /// of constraints is the penalty's, and damping by it would hold steps along them as it holds those across. Where costs
    /// are not curved it is all there is. `None` where the numbers are none.
    pub fn minimize(&self, by: Weights, damping: f64) -> Option<Minimum> {
        let n = self.g.len();
        let start = self.estimates(by, &vec![0.0; n]);
        let mut damped = self.h.clone();
        let curvature = self.curvature(&self.h, by, &start);
        for (i, costs) in self.costs.iter().enumerate() {
            let own = i * n + i;
            let of_costs = *costs > UNCURVED * curvature[own];
            let by = if of_costs { &self.h } else { &curvature };
            damped[own] += damping * by[own].abs();
        }
        let rows = || self.rows.chunks_exact(n.max(1));
        let (mut d, mut f) = (vec![0.0; n], start.clone());
        let mut first_fall = None;
        for _ in 0..MAX_STEPS {
            let mut smooth = self.g.clone();
            gemv(n, &damped, &d, &mut smooth);
            let mut slope = smooth.clone();
            for (i, row) in rows().enumerate() {
                if self.acts(i, f[i]) {
                    slope.iter_mut().zip(row).for_each(|(s, a)| *s += f[i] * a);
                }
            }
            let step = newton(&self.curvature(&damped, by, &f), &slope)?;
            let fall = -dot(&slope, &step);
            if !fall.is_finite() {
                return None;
            }
            // it goes with the square of the slope
            if fall <= FLAT * FLAT * *first_fall.get_or_insert(fall) {
                break;
            }
            let to = |length: f64| -> Vec<f64> {
                let both = d.iter().zip(&step);
                both.map(|(d, s)| d + length * s).collect()
            };
            let (whole, before) = (to(1.0), f);
            f = self.estimates(by, &whole);
            if (0..f.len()).all(|i| self.acts(i, before[i]) == self.acts(i, f[i])) {
                // exact between the kinks
                d = whole;
                break;
            }
            let along = Along {
                slope: dot(&smooth, &step),
                curvature: quadratic_form(&damped, &step),
                penalty: by.penalty,
                f: &before,
                change: rows().map(|a| by.penalty * dot(a, &step)).collect(),
                equal: &self.equal,
            };
            d = to(along.minimum(fall));
            f = self.estimates(by, &d);
        }
        let hinges = (0..f.len()).map(|i| {
            let [before, after] =
                [start[i], f[i]].map(|f| if self.equal[i] { f } else { f.max(0.0) });
            (after - before) * (after + before)
        });
        let change = dot(&self.g, &d)
            + 0.5 * quadratic_form(&self.h, &d)
            + hinges.sum::<f64>() / (2.0 * by.penalty);
        d.iter()
            .all(|d| d.is_finite())
            .then_some(Minimum { d, gain: -change })
    }

    /// The multipliers of the quadratic program `min g'd + 1/2 d'Hd` under the constraints to first order, which hold and are
    /// complementary to them to `tolerance`: the method of multipliers with a penalty that grows (Rockafellar, Math. Oper.
    /// Res. 1, 1976). `None` where they are not found, as where the constraints contradict each other to first order.
    pub fn multipliers(&self, from: Weights, tolerance: f64) -> Option<Vec<f64>> {
        let (mut own, mut penalty) = (from.multipliers.to_vec(), from.penalty);
        for _ in 0..MAX_ROUNDS {
            let by = Weights {
                multipliers: &own,
                penalty,
            };
            let d = self.minimize(by, 0.0)?.d;
            let mut next = self.estimates(by, &d);
            let mut far: f64 = 0.0;
            for (i, (next, own)) in next.iter_mut().zip(&own).enumerate() {
                *next = if self.equal[i] { *next } else { next.max(0.0) };
                far = far.max((*next - own).abs() / penalty);
            }
            own = next;
            if far <= tolerance {
                return Some(own);
            }
            penalty *= PENALTY_GROWTH;
        }
        None
    }

    /// `l + r (c + A d)`, also where it is below zero.
    fn estimates(&self, by: Weights, d: &[f64]) -> Vec<f64> {
        let each = by.multipliers.iter().zip(&self.c).enumerate();
        let n = d.len();
        each.map(|(i, (l, c))| l + by.penalty * (c + dot(&self.rows[i * n..(i + 1) * n], d)))
            .collect()
    }

    fn acts(&self, i: usize, estimate: f64) -> bool {
        estimate > 0.0 || self.equal[i]
    }

    /// `smooth + r sum a a'` over what acts at the estimates `f`.
    fn curvature(&self, smooth: &[f64], by: Weights, f: &[f64]) -> Vec<f64> {
        let (n, mut out) = (self.g.len(), smooth.to_vec());
        let acting = self.rows.chunks_exact(n.max(1)).enumerate();
        for (_, row) in acting.filter(|(i, _)| self.acts(*i, f[*i])) {
            for (column, a) in out.chunks_exact_mut(n).zip(row) {
                let scale = by.penalty * a;
                column
                    .iter_mut()
                    .zip(row)
                    .for_each(|(h, a)| *h += scale * a);
            }
        }
        out
    }
}

/// `-H^-1 g`; where `H` is not positive definite, with as much more as makes it so.
fn newton(h: &[f64], g: &[f64]) -> Option<Vec<f64>> {
    let n = g.len();
    let mut floor = 0.0;
    loop {
        let mut factor = h.to_vec();
        for own in (0..n).map(|i| i * n + i) {
            let size = h[own].abs();
            factor[own] += floor * if size > 0.0 { size } else { 1.0 };
        }
        if cholesky(n, &mut factor) {
            let mut step: Vec<f64> = g.iter().map(|g| -g).collect();
            cholesky_solve(n, &factor, &mut step);
            return Some(step);
        }
        floor = (FLOOR_GROWTH * floor).max(FLOOR);
        if !floor.is_finite() {
            return None;
        }
    }
}

/// The model along a step.
struct Along<'a> {
    /// Of what is no constraint, at the begin.
    slope: f64,
    curvature: f64,
    penalty: f64,
    /// Estimates at the begin, and how they change.
    f: &'a [f64],
    change: Vec<f64>,
    equal: &'a [bool],
}

impl Along<'_> {
    /// First and second derivative at a length.
    fn at(&self, length: f64) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for ((f, change), equal) in self.f.iter().zip(&self.change).zip(self.equal) {
            let f = f + length * change;
            if f > 0.0 || *equal {
                sums.0 += f * change;
                sums.1 += change * change;
            }
        }
        (
            self.slope + length * self.curvature + sums.0 / self.penalty,
            self.curvature + sums.1 / self.penalty,
        )
    }

    /// Where the slope, which never falls, is zero, from 1 on; `fall` is that at the begin. Newton's steps between what
    /// encloses it.
    fn minimum(&self, fall: f64) -> f64 {
        let (mut low, mut high, mut length) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..MAX_EVALUATIONS {
            let (slope, curvature) = self.at(length);
            if slope.abs() <= FLAT * fall {
                break;
            }
            if slope < 0.0 {
                low = length;
            } else {
                high = length;
            }
            let next = length - slope / curvature;
            length = match next > low && next < high {
                true => next,
                false if high.is_finite() => 0.5 * (low + high),
                false => 2.0 * length,
            };
        }
        length
    }
}
