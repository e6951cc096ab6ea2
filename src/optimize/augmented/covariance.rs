//! How well parameters are determined by what they were found from.

use super::Augmented;
use crate::control::{Form, Problem};
use crate::dynamics::{Observe, StepError};
use crate::optimize::bounds_reached;
use crate::optimize::lq::{Along, Sensitivities, Times};
use crate::rollout::Trajectory;
use nalgebra::{DMatrix, DVector, SymmetricEigen};

/// Covariance of parameters that were found by least squares, as it follows from the residuals that are left:
///
/// ```text
/// s^2 Z (Z' A Z)^-1 Z',    A = sum_i a_i a_i',    s^2 = sum_i psi_i^2 / (m - n) / (sum_i psi_i' / m)^2
/// ```
///
/// with `a_i` the derivatives of the m residuals `r_i = sqrt(weight share) (quantity - target)` by the parameters, `psi` the slope of
/// what each adds to the objective (`r` itself for squares; of Huber's form the slope ends at its distance: Huber and Ronchetti,
/// *Robust Statistics*, 2009, equation 7.81), and `Z` the n directions that bounds and constraints leave and the residuals determine. To first order in
/// the residuals, and if weights are inverse to the variances of independent noise, up to a common factor: a target that was
/// interpolated between fewer samples than knots is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariance {
    /// Places of the free parameters among the problem's.
    pub parameters: Vec<usize>,
    /// In their units, as many rows as columns. Zero where a bound holds a parameter; infinite on the diagonal where the residuals
    /// do not determine it.
    pub matrix: DMatrix<f64>,
    /// `m`.
    pub residuals: usize,
    /// `s^2`, variance of a residual.
    pub variance: f64,
}

/// Part of the largest eigenvalue of `A`, scaled to a unit diagonal, below which a direction is not determined: its derivatives, the
/// root of it, are then lost in what the steps' tolerance leaves of theirs.
const RANK: f64 = 1e-12;
/// The same of a constraint's direction.
const CONSTRAINED: f64 = 1e-9;
/// Component in a direction that is not determined from which on a parameter is not, either.
const PART: f64 = 1e-3;

impl Covariance {
    /// Standard deviation of each of [`Covariance::parameters`].
    pub fn standard_deviations(&self) -> impl Iterator<Item = f64> + '_ {
        let diagonal = self.matrix.diagonal();
        (0..diagonal.len()).map(move |i| diagonal[i].sqrt())
    }
}

/// What is summed over the residuals.
struct Sums {
    /// `A`
    information: DMatrix<f64>,
    residuals: usize,
    squares: f64,
    curvature: f64,
    /// Derivatives of the constraints that act.
    acting: Vec<DVector<f64>>,
}

/// The slope and the curvature of half of what a cost comes to as a function of its residual, in which its square's are the residual and
/// one; of what has none, nothing.
fn influence(form: Form, distance: f64, root: f64) -> Option<(f64, f64)> {
    match form {
        Form::Square => Some((root * distance, 1.0)),
        Form::Huber(delta) if distance.abs() <= delta => Some((root * distance, 1.0)),
        Form::Huber(delta) => Some((root * delta * distance.signum(), 0.0)),
        Form::Absolute | Form::Linear => None,
    }
}

impl<D: Observe> Augmented<'_, D> {
    /// The covariance of the parameters at a solution, where they alone were found, from squares or Huber's form of them, and there are
    /// more residuals than parameters.
    ///
    /// # Errors
    /// When a step cannot be linearized.
    pub fn covariance(&mut self, t: &Trajectory) -> Result<Option<Covariance>, StepError> {
        let problem = self.problem;
        let has_law = |form: &Form| influence(*form, 0.0, 1.0).is_some();
        if self.model.has_stages()
            || self.model.free.is_empty()
            || !problem.costs.iter().all(|c| has_law(&c.form))
        {
            return Ok(None);
        }
        let sums = self.information(t)?;
        let bounds = bounds_reached(problem, &t.p);
        let free: Vec<bool> = (self.model.free.iter())
            .map(|p| bounds[*p].is_none())
            .collect();
        Ok(sums.covariance(&free).map(|(matrix, variance)| Covariance {
            parameters: self.model.free.clone(),
            matrix,
            residuals: sums.residuals,
            variance,
        }))
    }

    fn information(&mut self, t: &Trajectory) -> Result<Sums, StepError> {
        let (dynamics, problem): (_, &Problem) = (self.dynamics, self.problem);
        let mut path = self.current.path.clone();
        path.trajectory.clone_from(t);
        path.retime(problem);
        path.evaluate(dynamics, problem, &mut self.work)?;
        let (free, lagrangian) = (&self.model.free, &self.lagrangian);
        let q = free.len();
        let mut sums = Sums {
            information: DMatrix::zeros(q, q),
            residuals: 0,
            squares: 0.0,
            curvature: 0.0,
            acting: vec![],
        };
        let e = &path.evaluation;
        let along = Along::of(dynamics, problem, &path, free);
        let mut own = Sensitivities::new(&dynamics.dims(), free);
        own.run(&along, &mut self.workers, |seen| {
            let stage = e.layout.stage(seen.at.k);
            let row = |place: usize| DVector::from_row_slice(&seen.rows[place * q..][..q]);
            for &(i, place) in &stage.costs {
                let c = &problem.costs[i];
                let share = c.share(seen.at);
                let root = (c.weight * share.weight).sqrt();
                let distance = seen.values[place] - problem.target(c, seen.at.k);
                let Some((slope, curvature)) =
                    influence(c.form, distance, root).filter(|_| root > 0.0)
                else {
                    continue;
                };
                let mut a = root * row(place);
                // the share changes with durations that are found
                let by_share = 0.5 * distance * root / share.weight;
                for (j, before, after) in Times::at(&e.layout, free, seen.at.k).each() {
                    a[j] += by_share * (share.by_h_prev * before + share.by_h * after);
                }
                sums.information.ger(1.0, &a, &a, 1.0);
                sums.residuals += 1;
                sums.squares += slope * slope;
                sums.curvature += curvature;
            }
            let constraints = e.layout.constraints(seen.at.k);
            for (j, &(_, place)) in constraints.zip(&stage.constraints) {
                if lagrangian.is_equality(j) || lagrangian.estimate(j, e.constraints[j]) > 0.0 {
                    sums.acting.push(row(place));
                }
            }
        })?;
        Ok(sums)
    }
}

impl Sums {
    /// The covariance of the parameters, those that are not free held, and the variance of a residual.
    fn covariance(&self, free: &[bool]) -> Option<(DMatrix<f64>, f64)> {
        let q = free.len();
        // in units in which each parameter alone is determined as well as any other
        let scale = DVector::from_fn(q, |i, _| match (free[i], self.information[(i, i)]) {
            (true, a) if a > 0.0 => a.sqrt().recip(),
            (true, _) => 1.0,
            (false, _) => 0.0,
        });
        let z = self.directions(&scale, free);
        let scaled = DMatrix::from_diagonal(&scale);
        let inner = z.tr_mul(&(&scaled * &self.information * &scaled)) * &z;
        let m = self.residuals as f64;
        let bent = self.curvature / m;
        let variance = |found: usize| {
            let left = m - found as f64;
            (left > 0.0 && bent > 0.0).then(|| self.squares / left / (bent * bent))
        };
        if z.ncols() == 0 {
            return Some((DMatrix::zeros(q, q), variance(0)?));
        }
        let eigen = SymmetricEigen::new(inner);
        let largest = eigen.eigenvalues.iter().fold(0.0, |m: f64, v| m.max(*v));
        // what is not determined fits nothing
        let determined = |v: &&f64| **v > RANK * largest;
        let variance = variance(eigen.eigenvalues.iter().filter(determined).count())?;
        let directions = &z * &eigen.eigenvectors;
        let mut out = DMatrix::zeros(q, q);
        let mut open = vec![false; q];
        for (column, value) in directions.column_iter().zip(eigen.eigenvalues.iter()) {
            if *value > RANK * largest {
                let own = column.component_mul(&scale);
                out.ger(variance / value, &own, &own, 1.0);
                continue;
            }
            for (open, part) in open.iter_mut().zip(column.iter()) {
                *open |= part.abs() > PART;
            }
        }
        for i in (0..q).filter(|i| open[*i]) {
            out[(i, i)] = f64::INFINITY;
        }
        Some((out, variance))
    }

    /// Orthonormal columns of the directions, scaled, that keep what is held and the constraints that act.
    fn directions(&self, scale: &DVector<f64>, free: &[bool]) -> DMatrix<f64> {
        let q = free.len();
        let mut against = DMatrix::zeros(q, q);
        for (i, _) in free.iter().enumerate().filter(|(_, free)| !**free) {
            against[(i, i)] = 1.0;
        }
        for c in &self.acting {
            let own = c.component_mul(scale);
            let square = own.norm_squared();
            if square > 0.0 {
                against.ger(1.0 / square, &own, &own, 1.0);
            }
        }
        let eigen = SymmetricEigen::new(against);
        let kept: Vec<_> = (eigen.eigenvectors.column_iter())
            .zip(eigen.eigenvalues.iter())
            .filter(|(_, value)| **value < CONSTRAINED)
            .map(|(column, _)| column.into_owned())
            .collect();
        let mut z = DMatrix::zeros(q, kept.len());
        for (j, column) in kept.iter().enumerate() {
            z.set_column(j, column);
        }
        z
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Constraint, Cost, Duration, Relation, When};
    use crate::dynamics::{Explicit, Parameter, QuantityId, Real, Smooth};
    use crate::optimize::levenberg_marquardt::Options;
    use crate::optimize::{Solution, Solve, Status};

    /// `a + b t`, and a number that does nothing.
    struct Line;

    impl Smooth for Line {
        fn states(&self) -> usize {
            1
        }

        fn controls(&self) -> usize {
            0
        }

        fn parameters(&self) -> Vec<Parameter> {
            let named = ["a", "b", "nothing"].map(|name| Parameter {
                name: name.into(),
                unit: "1".into(),
                value: 0.5,
            });
            named.to_vec()
        }

        fn initial<T: Real>(&self, _: &[T], _: &[T], p: &[T], x: &mut [T]) {
            x[0] = p[0];
        }

        fn step<T: Real>(&self, _: f64, h: T, x: &[T], _: &[T], p: &[T], next: &mut [T]) {
            next[0] = x[0] + h * p[1];
        }
    }

    const H: f64 = 0.1;
    const SAMPLES: [f64; 6] = [0.1, 0.35, 0.4, 0.72, 0.7, 1.02];

    fn fit(change: impl Fn(&mut Problem)) -> Solution {
        fit_to(1e-14, change)
    }

    fn fit_to(optimality: f64, change: impl Fn(&mut Problem)) -> Solution {
        let line = Explicit::new(Line);
        let mut p = Problem::new(&line, vec![H; SAMPLES.len()], vec![]);
        p.rates.clear();
        p.profiles = vec![[&SAMPLES[..], &[0.0]].concat()];
        p.costs = vec![Cost {
            profile: Some(0),
            ..Cost::square(QuantityId::new(0), 0.0, 3.0, When::Running)
        }];
        p.parameter_bounds[..2].fill((f64::NEG_INFINITY, f64::INFINITY));
        change(&mut p);
        // undamped one step finds what is linear
        let options = Options {
            damping: 0.0,
            optimality,
            ..Options::default()
        };
        let solve = Solve::new(&line, &p).with_options(options);
        let s = solve.run().expect("fits");
        assert_eq!(s.status, Status::Converged, "{}", s.reason);
        s
    }

    /// The textbook's regression: sums over times and squares of what is left.
    #[test]
    fn a_line_has_the_covariance_of_the_textbook() {
        let s = fit(|_| ());
        let n = SAMPLES.len() as f64;
        let times: Vec<f64> = (0..SAMPLES.len()).map(|k| H * k as f64).collect();
        let mean = times.iter().sum::<f64>() / n;
        let spread: f64 = times.iter().map(|t| (t - mean).powi(2)).sum();
        let along = times.iter().zip(SAMPLES).map(|(t, y)| (t - mean) * y);
        let slope = along.sum::<f64>() / spread;
        let offset = SAMPLES.iter().sum::<f64>() / n - slope * mean;
        assert!((s.trajectory.p[0] - offset).abs() < 1e-9, "{offset}");
        assert!((s.trajectory.p[1] - slope).abs() < 1e-9, "{slope}");
        let left = times
            .iter()
            .zip(SAMPLES)
            .map(|(t, y)| y - offset - slope * t);
        let variance = left.map(|d| d * d).sum::<f64>() / (n - 2.0);
        let expected = [
            [
                variance * (1.0 / n + mean * mean / spread),
                -variance * mean / spread,
            ],
            [-variance * mean / spread, variance / spread],
        ];
        let c = s.covariance.expect("squares");
        assert_eq!((c.parameters, c.residuals), (vec![0, 1], SAMPLES.len()));
        for (i, row) in expected.iter().enumerate() {
            for (j, e) in row.iter().enumerate() {
                assert!((c.matrix[(i, j)] - e).abs() < 1e-9, "{i} {j}: {e}");
            }
        }
        assert!((c.variance - variance * 3.0 * H).abs() < 1e-9);
    }

    /// What nothing depends on is not determined, and does not spoil what is.
    #[test]
    fn what_is_not_determined_is_said() {
        let alone = fit(|_| ()).covariance.expect("squares");
        let s = fit(|p| p.parameter_bounds[2] = (-1.0, 1.0));
        let c = s.covariance.expect("squares");
        assert_eq!(c.matrix[(2, 2)], f64::INFINITY);
        for (i, j) in [(0, 0), (0, 1), (1, 1)] {
            assert!((c.matrix[(i, j)] - alone.matrix[(i, j)]).abs() < 1e-9);
        }
    }

    /// A bound that holds a parameter takes it from what is found, and so does a constraint.
    #[test]
    fn what_is_held_does_not_vary() {
        let bound = fit(|p| p.parameter_bounds[0] = (0.5, 0.9));
        let c = bound.covariance.expect("squares");
        assert_eq!((c.matrix[(0, 0)], c.matrix[(0, 1)]), (0.0, 0.0));
        assert!(c.matrix[(1, 1)] > 0.0);
        let start = Constraint::new(QuantityId::new(0), Relation::Equal, 0.5, When::Knot(0));
        let held = fit(|p| p.constraints.push(start))
            .covariance
            .expect("squares");
        assert!(held.matrix[(0, 0)].abs() < 1e-12);
        let (a, b) = (held.matrix[(1, 1)], c.matrix[(1, 1)]);
        assert!((a - b).abs() < 1e-4 * b, "{a} {b}");
    }

    /// Where everything is held, by bounds or by constraints, nothing varies.
    #[test]
    fn all_may_be_held() {
        let s = fit(|p| p.parameter_bounds[..2].copy_from_slice(&[(0.5, 0.9), (2.0, 3.0)]));
        let none = |s: Solution| s.covariance.expect("squares").matrix.amax() < 1e-12;
        assert!(none(s));
        let at = |k: usize, x: f64| {
            Constraint::new(QuantityId::new(0), Relation::Equal, x, When::Knot(k))
        };
        assert!(none(fit(|p| p
            .constraints
            .extend([at(0, 0.5), at(5, 0.8)]))));
    }

    /// A longer horizon makes every residual larger: along `x = t` with the horizon T over n knots they are
    /// `sqrt(w T/n) k T/n`, and at the end `sqrt(v) (T - 2)`.
    #[test]
    fn durations_change_the_shares() {
        let (n, w, v) = (SAMPLES.len() as f64, 3.0, 5.0);
        let s = fit(|p| {
            p.profiles.clear();
            p.costs = vec![
                Cost::square(QuantityId::new(0), 0.0, w, When::Running),
                Cost::square(QuantityId::new(0), 2.0, v, When::End),
            ];
            p.parameters = vec![0.0, 1.0, 0.5];
            p.parameter_bounds = vec![(0.0, 0.0), (1.0, 1.0), (0.1, 5.0)];
            p.durations = vec![Duration {
                first: 0,
                end: SAMPLES.len(),
                parameter: 2,
            }];
        });
        let end = s.trajectory.p[2];
        let residual = |k: usize| (w * end / n).sqrt() * k as f64 * end / n;
        let along: f64 = (0..SAMPLES.len()).map(|k| residual(k).powi(2)).sum();
        let information = along * (1.5 / end).powi(2) + v;
        let variance = (along + v * (end - 2.0).powi(2)) / n;
        let c = s.covariance.expect("squares");
        let expected = variance / information;
        assert!(
            (c.matrix[(0, 0)] / expected - 1.0).abs() < 1e-9,
            "{expected}"
        );
    }

    /// Robust costs beyond their distance tell of the noise by their number; of `|d|` there is no such law.
    #[test]
    fn robust_costs_have_the_law_of_theirs() {
        let wide = fit(|p| p.costs[0].form = Form::Huber(10.0));
        let square = fit(|_| ()).covariance.expect("squares");
        assert_eq!(wide.covariance.expect("Huber's"), square);
        let absolute = fit_to(1e-8, |p| p.costs[0].form = Form::Absolute);
        assert!(absolute.covariance.is_none());
    }
}
