//! Small dense kernels on column-major slices: the matrices of a stage are too small for a general library's set-up.

use nalgebra::{DMatrixView, DMatrixViewMut};
use pulp::{Arch, NullaryFnOnce};

/// Products of this many terms and more go through nalgebra's blocked kernel, which allocates: those of stages with more than some
/// thirty numbers. Smaller ones fit into the nearest cache without blocks.
const LARGE: usize = 32_768;
/// Rows of a panel at most: two wide registers of four numbers.
const WIDEST: usize = 8;
/// Terms from which on the machine's wide instructions are worth the few nanoseconds that it takes to choose them.
const WORTH_DISPATCH: usize = 128;
/// A pivot of Cholesky's factorization below this part of the diagonal has cancelled to rounding.
const CANCELLED: f64 = 1e-14;

/// `c += a b` with `a` m x k, `b` k x n. Sums are in the order of `k`, whatever the machine, but in large products, the library's.
pub fn gemm((m, k, n): (usize, usize, usize), a: &[f64], b: &[f64], c: &mut [f64]) {
    let terms = m * k * n;
    if terms == 0 {
        return;
    }
    if m > WIDEST && terms >= LARGE {
        let a = DMatrixView::from_slice(&a[..m * k], m, k);
        let b = DMatrixView::from_slice(&b[..k * n], k, n);
        DMatrixViewMut::from_slice(&mut c[..m * n], m, n).gemm(1.0, &a, &b, 1.0);
    } else if terms >= WORTH_DISPATCH {
        Arch::new().dispatch(Panels { m, k, n, a, b, c });
    } else {
        Panels { m, k, n, a, b, c }.call();
    }
}

/// [`gemm`], panel by panel of rows. Not a closure, which the compiler may leave a function of its own, without wide instructions.
struct Panels<'a> {
    m: usize,
    k: usize,
    n: usize,
    a: &'a [f64],
    b: &'a [f64],
    c: &'a mut [f64],
}

impl NullaryFnOnce for Panels<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Panels { m, k, n, a, b, c } = self;
        let mut first = 0;
        while m - first >= WIDEST {
            panel::<WIDEST>((m, k, n), first, a, b, c);
            first += WIDEST;
        }
        match m - first {
            1 => panel::<1>((m, k, n), first, a, b, c),
            2 => panel::<2>((m, k, n), first, a, b, c),
            3 => panel::<3>((m, k, n), first, a, b, c),
            4 => panel::<4>((m, k, n), first, a, b, c),
            5 => panel::<5>((m, k, n), first, a, b, c),
            6 => panel::<6>((m, k, n), first, a, b, c),
            7 => panel::<7>((m, k, n), first, a, b, c),
            _ => {}
        }
    }
}

/// Rows `first` on, of a number that the compiler knows: their part of a column stays in registers.
#[inline(always)]
fn panel<const R: usize>(
    (m, k, n): (usize, usize, usize),
    first: usize,
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
) {
    for (b, c) in b.chunks_exact(k).zip(c.chunks_exact_mut(m)).take(n) {
        let Some(c) = c[first..].first_chunk_mut::<R>() else {
            return;
        };
        let mut sum = *c;
        for (a, b) in a.chunks_exact(m).zip(b) {
            let Some(a) = a[first..].first_chunk::<R>() else {
                return;
            };
            for (s, a) in sum.iter_mut().zip(a) {
                *s += a * b;
            }
        }
        *c = sum;
    }
}

/// `y += a x` with `a` m x n.
pub fn gemv(m: usize, a: &[f64], x: &[f64], y: &mut [f64]) {
    gemm((m, x.len(), 1), a, x, y);
}

/// `y += a' x` with `a` m x n.
pub fn gemv_transposed(m: usize, a: &[f64], x: &[f64], y: &mut [f64]) {
    match m {
        0 => {}
        1 => by_columns::<1>(a, x, y),
        2 => by_columns::<2>(a, x, y),
        4 => by_columns::<4>(a, x, y),
        6 => by_columns::<6>(a, x, y),
        _ => {
            for (a, y) in a.chunks_exact(m).zip(y) {
                *y += dot(a, x);
            }
        }
    }
}

fn by_columns<const M: usize>(a: &[f64], x: &[f64], y: &mut [f64]) {
    let ((a, _), (x, _)) = (a.as_chunks::<M>(), x.as_chunks::<M>());
    let Some(x) = x.first() else {
        return;
    };
    for (a, y) in a.iter().zip(y) {
        let mut sum = 0.0;
        for (a, x) in a.iter().zip(x) {
            sum += a * x;
        }
        *y += sum;
    }
}

/// `a'`, of `a` m x n.
pub fn transpose(m: usize, n: usize, a: &[f64], out: &mut [f64]) {
    for (j, a) in a.chunks_exact(m.max(1)).enumerate().take(n) {
        for (i, a) in a.iter().enumerate() {
            out[i * n + j] = *a;
        }
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `x' a x` with `a` n x n.
pub fn quadratic_form(a: &[f64], x: &[f64]) -> f64 {
    let n = x.len();
    if n == 0 {
        return 0.0;
    }
    let columns = a.chunks_exact(n).zip(x);
    columns.map(|(a, xi)| xi * dot(a, x)).sum()
}

/// Replaces `a`, n x n, by the mean of itself and its transpose: rounding would build up over many stages.
pub fn symmetrize(n: usize, a: &mut [f64]) {
    for j in 0..n {
        for i in 0..j {
            let mean = 0.5 * (a[i + j * n] + a[j + i * n]);
            a[i + j * n] = mean;
            a[j + i * n] = mean;
        }
    }
}

/// Cholesky's factor in the lower triangle of `a`, n x n; false where it is not clearly positive definite.
pub fn cholesky(n: usize, a: &mut [f64]) -> bool {
    for j in 0..n {
        let before = a[j + j * n];
        let mut pivot = before;
        for k in 0..j {
            pivot -= a[j + k * n] * a[j + k * n];
        }
        // what cancels to rounding is not positive
        if !(pivot > CANCELLED * before.abs() && pivot.is_finite()) {
            return false;
        }
        let root = pivot.sqrt();
        a[j + j * n] = root;
        for i in j + 1..n {
            let mut v = a[i + j * n];
            for k in 0..j {
                v -= a[i + k * n] * a[j + k * n];
            }
            a[i + j * n] = v / root;
        }
    }
    true
}

/// Solves `l l' x = b` in place.
pub fn cholesky_solve(n: usize, l: &[f64], b: &mut [f64]) {
    for i in 0..n {
        let mut v = b[i];
        for k in 0..i {
            v -= l[i + k * n] * b[k];
        }
        b[i] = v / l[i + i * n];
    }
    for i in (0..n).rev() {
        let mut v = b[i];
        for k in i + 1..n {
            v -= l[k + i * n] * b[k];
        }
        b[i] = v / l[i + i * n];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_sums_in_order() {
        let of = |n: usize, by: f64| (0..n).map(|i| (by * i as f64).sin()).collect::<Vec<_>>();
        for m in 1..=20 {
            let (k, n) = (m % 7 + 1, m % 5 + 1);
            let (a, b) = (of(m * k, 0.7), of(k * n, 1.3));
            let mut c = of(m * n, 0.2);
            let mut plain = c.clone();
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                for l in 0..k {
                    plain[i + j * m] += a[i + l * m] * b[l + j * k];
                }
            }
            gemm((m, k, n), &a, &b, &mut c);
            assert_eq!(c, plain, "{m} x {k} x {n}");
        }
    }
}
