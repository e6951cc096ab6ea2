//! The pivoted alternative: faer's sparse LU on the scalars of the same matrix, and the oracle of the tests.

use faer::dyn_stack::{MemStack, StackReq};
use faer::sparse::linalg::LuError;
use faer::sparse::linalg::lu::{LuRef, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMat};
use faer::{Conj, MatMut, Par};

use super::{Symbolic, largest};
use std::mem::MaybeUninit;

/// A solve has failed when the last correction is still this large beside the solution: refinement does not converge.
const DIVERGED: f64 = 1e-3;
/// No further refinement when the correction is this small beside the solution.
const CONVERGED: f64 = 1e-12;
const SWEEPS: usize = 4;

/// Why the pivoted factorization gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FallbackError {
    /// The matrix or the right-hand side has an entry that is not finite.
    #[error("the matrix or the right-hand side has an entry that is infinite or not a number")]
    NotFinite,
    /// No pivot, or solutions that refinement cannot improve: singular to working precision.
    #[error(
        "the matrix is singular to working precision (refinement corrects its solutions by {correction:.1e})"
    )]
    Singular {
        /// Size of the last correction beside the solution.
        correction: f64,
    },
    /// Solve before a successful factorization.
    #[error("no factorization yet")]
    NotFactored,
    /// faer reports an error of another kind: memory or index range.
    #[error("sparse LU: {0}")]
    Other(String),
}

/// Sparse LU with partial pivoting over all rows. The symbolic part is made once and serves every factorization.
///
/// faer reports no error for a singular matrix, so every solve is refined and judged by its correction: it must shrink.
/// It runs on the calling thread only, because parallel faer changes the last bits.
#[derive(Clone, Debug)]
pub struct Fallback {
    pattern: SymbolicSparseColMat<usize>,
    /// Scalars of the matrix, in column order, with places of the value array; those that repeat add.
    source: Vec<(usize, usize)>,
    scalars: Vec<f64>,
    symbolic: SymbolicLu<usize>,
    numeric: NumericLu<usize, f64>,
    factored: bool,
    /// What faer works in, enough for factors and solves, and a vector, a solution and a correction.
    scratch: Vec<MaybeUninit<u8>>,
    trial: Vec<f64>,
    solution: Vec<f64>,
    correction: Vec<f64>,
}

impl Fallback {
    /// Scalar pattern and symbolic factorization of `symbolic`'s matrix, without its fill.
    ///
    /// # Errors
    /// faer's, when memory or index range do not suffice.
    pub fn new(symbolic: &Symbolic) -> Result<Self, FallbackError> {
        let mut columns = vec![Vec::new(); symbolic.dim()];
        for (row, col, slot) in symbolic.original_blocks() {
            let size = symbolic.size(row);
            for j in 0..symbolic.size(col) {
                let scalars = (0..size).map(|i| (symbolic.offset(row) + i, slot + j * size + i));
                columns[symbolic.offset(col) + j].extend(scalars);
            }
        }
        Self::of_columns(columns)
    }

    /// The same of a symmetric matrix of which one triangle is listed; places that repeat add.
    ///
    /// # Errors
    /// As for [`Fallback::new`].
    pub fn of_symmetric(dim: usize, triangle: &[(usize, usize)]) -> Result<Self, FallbackError> {
        let mut columns = vec![Vec::new(); dim];
        for (at, &(i, j)) in triangle.iter().enumerate() {
            columns[j].push((i, at));
            if i != j {
                columns[i].push((j, at));
            }
        }
        Self::of_columns(columns)
    }

    /// Of rows with places of the value array.
    fn of_columns(columns: Vec<Vec<(usize, usize)>>) -> Result<Self, FallbackError> {
        let dim = columns.len();
        let mut starts = vec![0];
        let mut rows = Vec::new();
        let mut source = Vec::new();
        for mut column in columns {
            column.sort_unstable();
            let first = rows.len();
            for (row, at) in column {
                if rows[first..].last() != Some(&row) {
                    rows.push(row);
                }
                source.push((rows.len() - 1, at));
            }
            starts.push(rows.len());
        }
        let pattern = SymbolicSparseColMat::new_checked(dim, dim, starts, None, rows);
        let lu = factorize_symbolic_lu(pattern.as_ref(), Default::default())
            .map_err(|e| FallbackError::Other(e.to_string()))?;
        let scalars = vec![0.0; pattern.row_idx().len()];
        let need = StackReq::any_of(&[
            lu.factorize_numeric_lu_scratch::<f64>(Par::Seq, Default::default()),
            lu.solve_in_place_scratch::<f64>(1, Par::Seq),
            lu.solve_transpose_in_place_scratch::<f64>(1, Par::Seq),
        ]);
        let vector = vec![0.0; dim];
        Ok(Self {
            scratch: memory(need)?,
            trial: vector.clone(),
            solution: vector.clone(),
            correction: vector,
            pattern,
            source,
            scalars,
            symbolic: lu,
            numeric: NumericLu::new(),
            factored: false,
        })
    }

    /// Factors the unfactored `values` of `symbolic`, the one this was made from, and tries the factors on a vector.
    ///
    /// # Errors
    /// A matrix that is not finite or singular to working precision.
    pub fn factor(&mut self, symbolic: &Symbolic, values: &[f64]) -> Result<(), FallbackError> {
        assert_eq!(
            values.len(),
            symbolic.values_len(),
            "length of the value array"
        );
        self.factor_values(values)
    }

    /// [`Fallback::factor`] of values as they were listed.
    ///
    /// # Errors
    /// As for [`Fallback::factor`].
    pub fn factor_values(&mut self, values: &[f64]) -> Result<(), FallbackError> {
        self.factored = false;
        self.scalars.fill(0.0);
        for &(scalar, source) in &self.source {
            self.scalars[scalar] += values[source];
        }
        if !self.scalars.iter().all(|s| s.is_finite()) {
            return Err(FallbackError::NotFinite);
        }
        if self.pattern.ncols() > 0 {
            let matrix = SparseColMatRef::new(self.pattern.as_ref(), &self.scalars);
            let stack = MemStack::new(&mut self.scratch);
            self.symbolic
                .factorize_numeric_lu(
                    &mut self.numeric,
                    matrix,
                    Par::Seq,
                    stack,
                    Default::default(),
                )
                .map_err(|error| match error {
                    LuError::SymbolicSingular { .. } => FallbackError::Singular {
                        correction: f64::INFINITY,
                    },
                    LuError::Generic(other) => FallbackError::Other(other.to_string()),
                })?;
        }
        self.factored = true;
        // No pattern of signs and sizes that the range of a singular matrix would contain by accident.
        let mut trial = std::mem::take(&mut self.trial);
        for (i, v) in trial.iter_mut().enumerate() {
            *v = 1.0 + (1.7 * i as f64).sin();
        }
        let solved = self.solve(&mut trial);
        self.trial = trial;
        self.factored = solved.is_ok();
        solved
    }

    /// b <- A^-1 b, refined until the correction no longer matters.
    ///
    /// # Errors
    /// A right-hand side that is not finite; a correction that does not shrink.
    pub fn solve(&mut self, b: &mut [f64]) -> Result<(), FallbackError> {
        self.refined::<false>(b)
    }

    /// b <- A'^-1 b, refined until the correction no longer matters.
    ///
    /// # Errors
    /// As for [`Fallback::solve`].
    pub fn solve_transposed(&mut self, b: &mut [f64]) -> Result<(), FallbackError> {
        self.refined::<true>(b)
    }

    fn refined<const TRANSPOSED: bool>(&mut self, b: &mut [f64]) -> Result<(), FallbackError> {
        assert_eq!(
            b.len(),
            self.pattern.ncols(),
            "length of the right-hand side"
        );
        if !self.factored {
            return Err(FallbackError::NotFactored);
        }
        if !b.iter().all(|b| b.is_finite()) {
            return Err(FallbackError::NotFinite);
        }
        if b.is_empty() {
            return Ok(());
        }
        let mut x = std::mem::take(&mut self.solution);
        let mut step = std::mem::take(&mut self.correction);
        x.copy_from_slice(b);
        self.substitute::<TRANSPOSED>(&mut x);
        let mut correction = f64::INFINITY;
        for _ in 0..SWEEPS {
            step.copy_from_slice(b);
            self.subtract::<TRANSPOSED>(&x, &mut step);
            self.substitute::<TRANSPOSED>(&mut step);
            x.iter_mut().zip(&step).for_each(|(x, d)| *x += d);
            let (step, solution) = (largest(&step), largest(&x));
            correction = if step == 0.0 { 0.0 } else { step / solution };
            if correction < CONVERGED {
                break;
            }
        }
        let converges = correction < DIVERGED;
        if converges {
            b.copy_from_slice(&x);
        }
        (self.solution, self.correction) = (x, step);
        if converges {
            Ok(())
        } else {
            Err(FallbackError::Singular { correction })
        }
    }

    /// y -= A x, or A'x.
    fn subtract<const TRANSPOSED: bool>(&self, x: &[f64], y: &mut [f64]) {
        for (column, &x_column) in x.iter().enumerate() {
            let range = self.pattern.col_range(column);
            let rows = &self.pattern.row_idx()[range.clone()];
            for (&row, &a) in rows.iter().zip(&self.scalars[range]) {
                if TRANSPOSED {
                    y[column] -= a * x[row];
                } else {
                    y[row] -= a * x_column;
                }
            }
        }
    }

    fn substitute<const TRANSPOSED: bool>(&mut self, b: &mut [f64]) {
        let dim = b.len();
        let lu = LuRef::new_unchecked(&self.symbolic, &self.numeric);
        let b = MatMut::from_column_major_slice_mut(b, dim, 1);
        let stack = MemStack::new(&mut self.scratch);
        if TRANSPOSED {
            lu.solve_transpose_in_place_with_conj(Conj::No, b, Par::Seq, stack);
        } else {
            lu.solve_in_place_with_conj(Conj::No, b, Par::Seq, stack);
        }
    }
}

/// So much, however it is aligned.
fn memory(need: StackReq) -> Result<Vec<MaybeUninit<u8>>, FallbackError> {
    let bytes = need.unaligned_bytes_required();
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(bytes)
        .map_err(|_| FallbackError::Other("out of memory".into()))?;
    memory.resize(bytes, MaybeUninit::uninit());
    Ok(memory)
}
