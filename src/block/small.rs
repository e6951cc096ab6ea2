//! LU factors of small dense matrices, stored by columns, with partial pivoting. Nothing here allocates.

/// Replaces a matrix, stored by columns, by its LU factors; `order` becomes the order of its rows. Is it regular?
pub(crate) fn lu_factor(a: &mut [f64], order: &mut [usize]) -> bool {
    let n = order.len();
    order.iter_mut().enumerate().for_each(|(i, o)| *o = i);
    for k in 0..n {
        let size = |r: &usize| a[k * n + r].abs();
        let pivot = (k..n)
            .max_by(|a, b| size(a).total_cmp(&size(b)))
            .unwrap_or(k);
        if !(a[k * n + pivot].abs() > 0.0 && a[k * n + pivot].is_finite()) {
            return false;
        }
        if pivot != k {
            order.swap(k, pivot);
            (0..n).for_each(|c| a.swap(c * n + k, c * n + pivot));
        }
        for r in k + 1..n {
            a[k * n + r] /= a[k * n + k];
            for c in k + 1..n {
                a[c * n + r] -= a[k * n + r] * a[c * n + k];
            }
        }
    }
    true
}

/// Solves with the factors of [`lu_factor`], in place; `spare` is as long as `x`.
pub(crate) fn lu_solve(lu: &[f64], order: &[usize], spare: &mut [f64], x: &mut [f64]) {
    let n = order.len();
    for (to, from) in spare.iter_mut().zip(order) {
        *to = x[*from];
    }
    for r in 0..n {
        let known: f64 = (0..r).map(|c| lu[c * n + r] * spare[c]).sum();
        spare[r] -= known;
    }
    for r in (0..n).rev() {
        let known: f64 = (r + 1..n).map(|c| lu[c * n + r] * spare[c]).sum();
        spare[r] = (spare[r] - known) / lu[r * n + r];
    }
    x[..n].copy_from_slice(spare);
}

/// Solves with the transposed matrix.
pub(crate) fn lu_solve_transposed(lu: &[f64], order: &[usize], spare: &mut [f64], x: &mut [f64]) {
    let n = order.len();
    for r in 0..n {
        let known: f64 = (0..r).map(|c| lu[r * n + c] * x[c]).sum();
        x[r] = (x[r] - known) / lu[r * n + r];
    }
    for r in (0..n).rev() {
        let known: f64 = (r + 1..n).map(|c| lu[r * n + c] * x[c]).sum();
        x[r] -= known;
    }
    for (from, to) in x.iter().zip(order) {
        spare[*to] = *from;
    }
    x[..n].copy_from_slice(spare);
}
