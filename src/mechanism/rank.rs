//! Linear equations whose rank may be less than their size, as those of loops are.

use nalgebra::allocator::Allocator;
use nalgebra::{DMatrix, DefaultAllocator, Dim, Dyn, Matrix, OMatrix, SVD, Storage};

/// Singular values below this part of the largest count as zero. Loops are closed to 1e-11 m or rad, which is what a
/// dependent row keeps of itself; a hundred times that is taken for dependent still.
pub(crate) const RANK: f64 = 1e-9;

/// Singular values and vectors; `None` for an empty matrix, and for one that is not finite, on which the iteration would
/// never end.
pub(crate) fn decompose(a: DMatrix<f64>) -> Option<SVD<f64, Dyn, Dyn>> {
    let sound = !a.is_empty() && a.iter().all(|a| a.is_finite());
    sound.then(|| a.svd(true, true))
}

/// The smallest `x` with the smallest `|a x - b|`, by the rank that `a` has; `None` as [`decompose`].
pub(crate) fn least_squares<C: Dim, S: Storage<f64, Dyn, C>>(
    a: DMatrix<f64>,
    b: &Matrix<f64, Dyn, C, S>,
) -> Option<OMatrix<f64, Dyn, C>>
where
    DefaultAllocator: Allocator<Dyn, C>,
{
    let svd = decompose(a)?;
    let floor = RANK * svd.singular_values.max();
    svd.solve(b, floor).ok()
}

#[cfg(test)]
mod tests {
    use super::least_squares;
    use nalgebra::{DMatrix, DVector};

    #[test]
    fn dependent_rows_are_met_by_the_smallest_solution() {
        let a = DMatrix::from_row_slice(2, 3, &[1.0, 1.0, 0.0, 2.0, 2.0, 1e-13]);
        let x = least_squares(a.clone(), &DVector::from_vec(vec![1.0, 2.0])).expect("finite");
        assert!((x - DVector::from_vec(vec![0.5, 0.5, 0.0])).amax() < 1e-12);
        assert!(least_squares(a * f64::NAN, &DVector::zeros(2)).is_none());
    }
}
