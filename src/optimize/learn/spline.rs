//! Natural cubic splines as a linear map from the values at knots to those in between.

use nalgebra::{DMatrix, DVector};

/// The matrix that takes values at `knots` knots, evenly spread over `[0, 1]`, to those of the natural cubic spline
/// through them at places `at` in it: its second derivative is continuous, and zero at both ends.
pub(super) fn natural_basis(at: &[f64], knots: usize) -> DMatrix<f64> {
    let n = knots;
    let last = n.saturating_sub(1);
    // second derivatives M in units of the knots' distance: M_(j-1) + 4 M_j + M_(j+1) = 6 (s_(j-1) - 2 s_j + s_(j+1))
    let mut left = DMatrix::identity(n, n);
    let mut right = DMatrix::zeros(n, n);
    for j in 1..last {
        for (i, a, b) in [(j - 1, 1.0, 6.0), (j, 4.0, -12.0), (j + 1, 1.0, 6.0)] {
            left[(j, i)] = a;
            right[(j, i)] = b;
        }
    }
    // strictly diagonally dominant
    let second = left.lu().solve(&right).unwrap_or(DMatrix::zeros(n, n));
    let mut out = DMatrix::zeros(at.len(), n);
    for (k, t) in at.iter().enumerate() {
        let place = (t * last as f64).clamp(0.0, last as f64);
        let j = (place as usize).min(last.saturating_sub(1));
        let b = place - j as f64;
        let a = 1.0 - b;
        let next = (j + 1).min(last);
        out[(k, j)] += a;
        out[(k, next)] += b;
        for i in 0..n {
            out[(k, i)] +=
                ((a * a * a - a) * second[(j, i)] + (b * b * b - b) * second[(next, i)]) / 6.0;
        }
    }
    out
}

/// The values at the knots whose spline is nearest, by the sum of squares, to values at the places of a basis.
pub(super) fn fit(basis: &DMatrix<f64>, values: &DVector<f64>) -> DVector<f64> {
    let normal = basis.tr_mul(basis);
    let right = basis.tr_mul(values);
    // with fewer places than knots some are not determined: the shortest then
    let inverse = normal.pseudo_inverse(NOT_DETERMINED);
    inverse.map_or(DVector::zeros(basis.ncols()), |inverse| inverse * right)
}

/// Singular values of a basis' normal matrix, whose numbers are about one, that are rounding.
const NOT_DETERMINED: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    fn places(n: usize) -> Vec<f64> {
        (0..n).map(|k| k as f64 / (n - 1) as f64).collect()
    }

    #[test]
    fn splines_go_through_their_knots() {
        let values = DVector::from_vec(vec![1.0, -2.0, 0.5, 3.0, 0.0]);
        let at_knots = natural_basis(&places(5), 5) * &values;
        assert!((at_knots - &values).amax() < 1e-14);
        // lines are kept, and only they have no curvature
        let line = DVector::from_fn(5, |i, _| 2.0 - 0.5 * i as f64);
        let along = natural_basis(&places(41), 5) * line;
        let exact = DVector::from_fn(41, |k, _| 2.0 - 0.05 * k as f64);
        assert!((along - exact).amax() < 1e-13);
    }

    /// Slopes and curvatures on either side of a knot agree; at the ends there is no curvature.
    #[test]
    fn splines_are_smooth() {
        let values = DVector::from_vec(vec![1.0, -2.0, 0.5, 3.0, 0.0]);
        let h = 1e-3;
        let curvature = |at: f64| {
            let near = natural_basis(&[at - h, at, at + h], 5) * &values;
            (near[0] - 2.0 * near[1] + near[2]) / (h * h)
        };
        let size = curvature(0.25).abs();
        assert!(size > 10.0);
        for knot in [0.25, 0.5, 0.75] {
            let jump = curvature(knot + h) - curvature(knot - h);
            assert!(jump.abs() < 2e-2 * size, "{jump}");
        }
        for end in [h, 1.0 - h] {
            assert!(curvature(end).abs() < 2e-2 * size);
        }
    }

    #[test]
    fn fits_find_the_knots_again() {
        let basis = natural_basis(&places(30), 6);
        let knots = DVector::from_vec(vec![1.0, -2.0, 0.5, 3.0, 0.0, 4.0]);
        let found = fit(&basis, &(&basis * &knots));
        assert!((found - knots).amax() < 1e-11);
    }
}
