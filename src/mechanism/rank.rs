//! Linear equations whose rank may be less than their size, as those of loops are.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::{ComputeSvdVectors::Thin, svd, svd_scratch};
use faer::{MatMut, MatRef, Par};
use nalgebra::allocator::Allocator;
use nalgebra::{DMatrix, DVector, DefaultAllocator, Dim, Dyn, Matrix, OMatrix, Storage};

/// Singular values below this part of the largest count as zero. Loops are closed to 1e-11 m or rad, which is what a
/// dependent row keeps of itself; a hundred times that is taken for dependent still.
pub(crate) const RANK: f64 = 1e-9;

/// `a = u diag(singular_values) v_t`, the singular values descending, as many as the smaller side has.
pub(crate) struct Decomposition {
    pub u: DMatrix<f64>,
    pub singular_values: DVector<f64>,
    pub v_t: DMatrix<f64>,
}

/// Singular values and vectors; `None` for an empty matrix, and for one that is not finite, on which the iteration would
/// never end. By faer: that of nalgebra 0.34 loses up to half of all digits where a row nearly depends on others, as the
/// test below shows.
pub(crate) fn decompose(a: DMatrix<f64>) -> Option<Decomposition> {
    let (rows, columns) = a.shape();
    let size = rows.min(columns);
    if size == 0 || !a.iter().all(|a| a.is_finite()) {
        return None;
    }
    let mut singular_values = DVector::zeros(size);
    let (mut u, mut v) = (DMatrix::zeros(rows, size), DMatrix::zeros(columns, size));
    let need = svd_scratch::<f64>(rows, columns, Thin, Thin, Par::Seq, Default::default());
    let mut memory = MemBuffer::try_new(need).ok()?;
    svd(
        MatRef::from_column_major_slice(a.as_slice(), rows, columns),
        DiagMut::from_slice_mut(singular_values.as_mut_slice()),
        Some(MatMut::from_column_major_slice_mut(
            u.as_mut_slice(),
            rows,
            size,
        )),
        Some(MatMut::from_column_major_slice_mut(
            v.as_mut_slice(),
            columns,
            size,
        )),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    )
    .ok()?;
    Some(Decomposition {
        u,
        singular_values,
        v_t: v.transpose(),
    })
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
    let mut along = svd.u.tr_mul(b);
    for (mut row, s) in along.row_iter_mut().zip(&svd.singular_values) {
        row *= if *s > floor { 1.0 / s } else { 0.0 };
    }
    Some(svd.v_t.tr_mul(&along))
}

#[cfg(test)]
mod tests {
    use super::{decompose, least_squares};
    use nalgebra::{DMatrix, DVector};

    #[test]
    fn dependent_rows_are_met_by_the_smallest_solution() {
        let a = DMatrix::from_row_slice(2, 3, &[1.0, 1.0, 0.0, 2.0, 2.0, 1e-13]);
        let x = least_squares(a.clone(), &DVector::from_vec(vec![1.0, 2.0])).expect("finite");
        assert!((x - DVector::from_vec(vec![0.5, 0.5, 0.0])).amax() < 1e-12);
        assert!(least_squares(a * f64::NAN, &DVector::zeros(2)).is_none());
    }

    /// A row that depends on another one but for `e`: nalgebra 0.34 is wrong here by up to 1e-2.
    #[test]
    fn nearly_dependent_rows_are_decomposed_to_rounding() {
        for exponent in 0..17 {
            let e = 10.0_f64.powi(-exponent);
            for a in [
                DMatrix::from_row_slice(2, 3, &[1.0, 1.0, 0.0, 2.0, 2.0, e]),
                DMatrix::from_row_slice(3, 2, &[1.0, 2.0, 1.0, 2.0, 0.0, e]),
                DMatrix::from_row_slice(3, 3, &[1.0, 1.0, 0.0, 2.0, 2.0, e, 0.3, 0.0, 1.0]),
            ] {
                let d = decompose(a.clone()).expect("finite");
                let again = &d.u * DMatrix::from_diagonal(&d.singular_values) * &d.v_t;
                assert!((again - &a).amax() < 1e-14, "{e:e}: {a}");
                assert!(
                    (d.v_t.clone() * d.v_t.transpose()
                        - DMatrix::identity(d.v_t.nrows(), d.v_t.nrows()))
                    .amax()
                        < 1e-14
                );
            }
        }
    }
}
