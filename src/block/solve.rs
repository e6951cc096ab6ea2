//! Substitution with the factors, products with the matrix, refinement.

use std::ops::Range;

use super::ldu::{Pivot, Rows};
use super::{Symbolic, kernel};
use crate::spatial::wide;

/// Why two mutable borrows of one vector are possible.
const APART: &str = "rows of different nodes do not overlap";

/// Workspace of [`Symbolic::solve_many`].
#[derive(Clone, Debug)]
pub struct Scratch {
    /// One panel (size x columns) per node, in elimination order.
    panels: Vec<f64>,
}

impl Symbolic {
    /// b <- A^-1 b with the factors of A. Allocates nothing.
    ///
    /// # Panics
    /// If a length does not fit, as in every solve below.
    pub fn solve(&self, factored: &[f64], b: &mut [f64]) {
        self.check(factored, b, 1);
        wide!(self.substitute::<false, true>(factored, b, Rows::range));
    }

    /// b <- A'^-1 b with the factors of A. Allocates nothing.
    pub fn solve_transposed(&self, factored: &[f64], b: &mut [f64]) {
        self.check(factored, b, 1);
        wide!(self.substitute::<true, true>(factored, b, Rows::range));
    }

    /// Workspace for up to `columns` right-hand sides at once.
    pub fn scratch(&self, columns: usize) -> Scratch {
        Scratch {
            panels: vec![0.0; self.dim * columns],
        }
    }

    /// B <- A^-1 B for B (dim x columns, column-major). Allocates nothing.
    pub fn solve_many(
        &self,
        factored: &[f64],
        b: &mut [f64],
        columns: usize,
        scratch: &mut Scratch,
    ) {
        self.solve_panels::<false>(factored, b, columns, scratch);
    }

    /// B <- A'^-1 B for B (dim x columns, column-major). Allocates nothing.
    pub fn solve_many_transposed(
        &self,
        factored: &[f64],
        b: &mut [f64],
        columns: usize,
        scratch: &mut Scratch,
    ) {
        self.solve_panels::<true>(factored, b, columns, scratch);
    }

    fn solve_panels<const TRANSPOSED: bool>(
        &self,
        factored: &[f64],
        b: &mut [f64],
        columns: usize,
        s: &mut Scratch,
    ) {
        self.check(factored, b, columns);
        let panels = &mut s.panels[..self.dim * columns];
        for Pivot { rows, .. } in &self.pivots {
            let panel = &mut panels[rows.packed * columns..][..rows.size * columns];
            kernel::gather(rows.size, b, self.dim, rows.natural, panel);
        }
        let at = |rows: Rows| rows.packed * columns..(rows.packed + rows.size) * columns;
        self.substitute::<TRANSPOSED, false>(factored, panels, at);
        for Pivot { rows, .. } in &self.pivots {
            let panel = &panels[rows.packed * columns..][..rows.size * columns];
            kernel::scatter(rows.size, panel, b, self.dim, rows.natural);
        }
    }

    /// Forward and backward substitution on panels (size x columns) that lie `at(rows)`; `ONE` promises one column.
    ///
    /// ```text
    /// A x = b:   y_p = D_p^-1 (b_p - sum A_pq y_q),   x_p = y_p - sum U_pi x_i              (q earlier, i later)
    /// A'x = b:   z_p = b_p - sum U_qp' z_q,           x_p = D_p'^-1 (z_p - sum A_ip' x_i)
    /// ```
    #[inline(always)]
    fn substitute<const TRANSPOSED: bool, const ONE: bool>(
        &self,
        factored: &[f64],
        b: &mut [f64],
        at: impl Fn(Rows) -> Range<usize>,
    ) {
        for p in &self.pivots {
            let (own, size) = (&factored[p.values.clone()], p.rows.size);
            if !TRANSPOSED {
                kernel::apply::<TRANSPOSED, ONE>(size, &own[..size * size], &mut b[at(p.rows)]);
            }
            for i in &self.edges[p.edges.clone()] {
                let [b_p, b_i] = b.get_disjoint_mut([at(p.rows), at(i.rows)]).expect(APART);
                let a = i.outward::<TRANSPOSED>(own, size);
                kernel::subtract_product::<TRANSPOSED, ONE>(i.rows.size, size, a, b_p, b_i);
            }
        }
        for p in self.pivots.iter().rev() {
            let (own, size) = (&factored[p.values.clone()], p.rows.size);
            for i in &self.edges[p.edges.clone()] {
                let [b_p, b_i] = b.get_disjoint_mut([at(p.rows), at(i.rows)]).expect(APART);
                let a = i.inward::<TRANSPOSED>(own, size);
                kernel::subtract_product::<TRANSPOSED, ONE>(size, i.rows.size, a, b_i, b_p);
            }
            if TRANSPOSED {
                kernel::apply::<TRANSPOSED, ONE>(size, &own[..size * size], &mut b[at(p.rows)]);
            }
        }
    }

    /// y = A x with unfactored `values`. Fill blocks are skipped.
    pub fn multiply(&self, values: &[f64], x: &[f64], y: &mut [f64]) {
        y.fill(0.0);
        self.subtract::<false>(values, x, y);
        y.iter_mut().for_each(|y| *y = -*y);
    }

    /// y = A'x with unfactored `values`. Fill blocks are skipped.
    pub fn multiply_transposed(&self, values: &[f64], x: &[f64], y: &mut [f64]) {
        y.fill(0.0);
        self.subtract::<true>(values, x, y);
        y.iter_mut().for_each(|y| *y = -*y);
    }

    /// y -= A x, or A'x.
    fn subtract<const TRANSPOSED: bool>(&self, values: &[f64], x: &[f64], y: &mut [f64]) {
        self.check(values, x, 1);
        self.check(values, y, 1);
        for p in &self.pivots {
            let (own, size) = (&values[p.values.clone()], p.rows.size);
            let (x_p, diagonal) = (&x[p.rows.range()], &own[..size * size]);
            kernel::subtract_product::<TRANSPOSED, true>(
                size,
                size,
                diagonal,
                x_p,
                &mut y[p.rows.range()],
            );
            for i in self.edges[p.edges.clone()].iter().filter(|i| !i.fill) {
                let (x_i, other) = (&x[i.rows.range()], i.rows.size);
                let a = i.outward::<TRANSPOSED>(own, size);
                kernel::subtract_product::<TRANSPOSED, true>(
                    other,
                    size,
                    a,
                    x_p,
                    &mut y[i.rows.range()],
                );
                let a = i.inward::<TRANSPOSED>(own, size);
                kernel::subtract_product::<TRANSPOSED, true>(
                    size,
                    other,
                    a,
                    x_i,
                    &mut y[p.rows.range()],
                );
            }
        }
    }

    /// One sweep of iterative refinement, x += A^-1 (b - A x). `scratch` has length `dim` and holds the correction on
    /// return: its size beside x is the relative error x had, and also the factor by which this sweep reduced it.
    pub fn refine(
        &self,
        original: &[f64],
        factored: &[f64],
        b: &[f64],
        x: &mut [f64],
        scratch: &mut [f64],
    ) {
        scratch.copy_from_slice(b);
        self.subtract::<false>(original, x, scratch);
        self.solve(factored, scratch);
        x.iter_mut().zip(scratch).for_each(|(x, d)| *x += *d);
    }

    /// y <- y - A x, of an unfactored A.
    pub fn subtract_product(&self, original: &[f64], x: &[f64], y: &mut [f64]) {
        self.subtract::<false>(original, x, y);
    }

    /// y <- y - A' x, of an unfactored A.
    pub fn subtract_product_transposed(&self, original: &[f64], x: &[f64], y: &mut [f64]) {
        self.subtract::<true>(original, x, y);
    }

    /// One sweep of iterative refinement of A'x = b; see [`Symbolic::refine`].
    pub fn refine_transposed(
        &self,
        original: &[f64],
        factored: &[f64],
        b: &[f64],
        x: &mut [f64],
        scratch: &mut [f64],
    ) {
        scratch.copy_from_slice(b);
        self.subtract::<true>(original, x, scratch);
        self.solve_transposed(factored, scratch);
        x.iter_mut().zip(scratch).for_each(|(x, d)| *x += *d);
    }

    fn check(&self, values: &[f64], b: &[f64], columns: usize) {
        assert_eq!(values.len(), self.values_len(), "length of the value array");
        assert_eq!(
            b.len(),
            self.dim * columns,
            "length of a right-hand side or solution"
        );
    }
}
