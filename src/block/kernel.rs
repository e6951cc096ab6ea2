//! Dense kernels on small column-major blocks.
//!
//! Every kernel exists twice: compiled for each size up to 6, where the loops over rows unroll and the
//! accumulators stay in registers, and once for sizes known only at run time. Blocks are packed (leading dimension =
//! number of rows). The columns of a right operand may be any number, so one call serves one right-hand side or many.

// The indices are those of the formulas.
#![allow(clippy::needless_range_loop)]

/// The largest block size: kernels keep one column of a block on the stack.
pub(super) const MAX_SIZE: usize = 64;

/// A pivot below this fraction of the terms it was computed from is rounding error; see [`invert`].
pub(super) const PIVOT_TOLERANCE: f64 = 1e-14;

/// Runs `$fixed` with the constant `$N` equal to `$size`, or `$any` when the size has no kernel of its own.
macro_rules! by_size {
    ($size:expr, $N:ident => $fixed:expr, _ => $any:expr) => {
        match $size {
            1 => by_size!(@ $N = 1, $fixed),
            2 => by_size!(@ $N = 2, $fixed),
            3 => by_size!(@ $N = 3, $fixed),
            4 => by_size!(@ $N = 4, $fixed),
            5 => by_size!(@ $N = 5, $fixed),
            6 => by_size!(@ $N = 6, $fixed),
            _ => $any,
        }
    };
    (@ $N:ident = $n:literal, $fixed:expr) => {{
        const $N: usize = $n;
        $fixed
    }};
}

/// C -= A B with A (m x k), or C -= A' B with A (k x m) if `TRANSPOSED`; B (k x n), C (m x n).
///
/// The number n of columns follows from the lengths; `ONE` promises that it is 1.
#[inline(always)]
pub(super) fn subtract_product<const TRANSPOSED: bool, const ONE: bool>(
    m: usize,
    k: usize,
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
) {
    by_size!(k, K => by_size!(m, M => product::<M, K, TRANSPOSED, ONE>(a, b, c), _ => product_any::<TRANSPOSED>(m, k, a, b, c)),
        _ => product_any::<TRANSPOSED>(m, k, a, b, c))
}

/// B <- D B, or D' B if `TRANSPOSED`, with D (size x size) and B (size x n).
#[inline(always)]
pub(super) fn apply<const TRANSPOSED: bool, const ONE: bool>(
    size: usize,
    d: &[f64],
    b: &mut [f64],
) {
    by_size!(size, N => apply_fixed::<N, TRANSPOSED, ONE>(d, b), _ => apply_any::<TRANSPOSED>(size, d, b))
}

/// Copies the rows from `offset` on of every column (length `stride`) of B into the panel (n x columns).
pub(super) fn gather(n: usize, b: &[f64], stride: usize, offset: usize, panel: &mut [f64]) {
    for (panel, b) in panel.chunks_exact_mut(n).zip(b.chunks_exact(stride)) {
        copy(n, &b[offset..], panel);
    }
}

/// The way back of [`gather`].
pub(super) fn scatter(n: usize, panel: &[f64], b: &mut [f64], stride: usize, offset: usize) {
    for (panel, b) in panel.chunks_exact(n).zip(b.chunks_exact_mut(stride)) {
        copy(n, panel, &mut b[offset..]);
    }
}

/// The first n scalars.
#[inline(always)]
fn copy(n: usize, from: &[f64], to: &mut [f64]) {
    by_size!(n, N => to[..N].copy_from_slice(&from[..N]), _ => to[..n].copy_from_slice(&from[..n]))
}

/// peak_i <- max(peak_i, |D_ii|): the scale against which [`invert`] judges cancellation.
#[inline]
pub(super) fn raise_peaks(d: &[f64], peak: &mut [f64]) {
    by_size!(peak.len(), N => {
        let (d, peak) = (block::<N, N>(d), peak.first_chunk_mut::<N>().expect(WHOLE));
        for k in 0..N {
            peak[k] = larger(peak[k], d[k][k].abs());
        }
    }, _ => {
        let n = peak.len();
        for (peak, d) in peak.iter_mut().zip(d.iter().step_by(n + 1)) {
            *peak = larger(*peak, d.abs());
        }
    })
}

/// D <- D^-1 (n x n, n = length of `peak`) by Gauss-Jordan elimination with partial pivoting.
///
/// `peak` holds the largest |D_ii| each diagonal entry had before earlier eliminations changed it. The error is the
/// ratio 1 / sum_i peak_i |D^-1_ii|, when it is below [`PIVOT_TOLERANCE`] (0 for a vanishing or non-finite pivot).
///
/// Why this ratio: 1/D^-1_ii is the last pivot that elimination with i last would meet, so for the (nearly) definite
/// blocks of mechanics it is the part of D_ii that cancellation has left, and 1e-16 means that nothing but rounding is
/// left. It does not change when rows and columns are rescaled (mass 1 beside inertia 1e-12: ratio 1, not 1e-12), and a
/// constraint regularized by 1e-8 relative shows 1e-8. A test against the block's largest entry has neither property.
/// What it cannot see is a block whose whole diagonal vanishes; refinement's correction shows those.
#[inline]
pub(super) fn invert(d: &mut [f64], peak: &[f64]) -> Result<(), f64> {
    by_size!(peak.len(), N => invert_fixed::<N>(d, peak), _ => invert_any(d, peak))
}

/// `max` that compiles to one instruction; false comparisons (NaN) keep `a`.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The M x K block stored in `a`.
#[inline(always)]
fn block<const M: usize, const K: usize>(a: &[f64]) -> &[[f64; M]; K] {
    a.as_chunks().0.first_chunk().expect(WHOLE)
}

/// Why the slices that reach a kernel always have the length it needs.
const WHOLE: &str = "the tape gives each kernel whole blocks";

/// Calls `column` with each column of B and C, or with the only one.
///
/// The empty `black_box` generates no instruction. It keeps the compiler from filling its two-lane registers with the
/// same row of two columns instead of two rows of one column, which takes twice the instructions.
#[inline(always)]
fn for_columns<const M: usize, const K: usize, const ONE: bool>(
    b: &[f64],
    c: &mut [f64],
    column: impl Fn(&[f64; K], &mut [f64; M]),
) {
    if ONE {
        return column(
            b.first_chunk().expect(WHOLE),
            c.first_chunk_mut().expect(WHOLE),
        );
    }
    for (b, c) in b.as_chunks().0.iter().zip(c.as_chunks_mut().0) {
        column(b, c);
        std::hint::black_box(());
    }
}

/// [`for_columns`] in place.
#[inline(always)]
fn for_each_column<const N: usize, const ONE: bool>(b: &mut [f64], column: impl Fn(&mut [f64; N])) {
    if ONE {
        return column(b.first_chunk_mut().expect(WHOLE));
    }
    for b in b.as_chunks_mut().0 {
        column(b);
        std::hint::black_box(());
    }
}

#[inline(always)]
fn product<const M: usize, const K: usize, const TRANSPOSED: bool, const ONE: bool>(
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
) {
    if TRANSPOSED {
        let a = block::<K, M>(a);
        for_columns::<M, K, ONE>(b, c, |b, c| *c = subtract(*c, b, |i, k| a[i][k]));
    } else {
        let a = block::<M, K>(a);
        for_columns::<M, K, ONE>(b, c, |b, c| *c = subtract(*c, b, |i, k| a[k][i]));
    }
}

#[inline(always)]
fn apply_fixed<const N: usize, const TRANSPOSED: bool, const ONE: bool>(d: &[f64], b: &mut [f64]) {
    let d = block::<N, N>(d);
    let entry = |i: usize, k: usize| if TRANSPOSED { d[i][k] } else { d[k][i] };
    for_each_column::<N, ONE>(b, |b| *b = combine(b, entry));
}

/// sum_k a(i, k) b_k, even and odd k apart: two short chains of additions instead of a long one, since each solve of a
/// chain waits for the one before.
#[inline(always)]
fn combine<const M: usize, const K: usize>(
    b: &[f64; K],
    a: impl Fn(usize, usize) -> f64,
) -> [f64; M] {
    let mut even: [f64; M] = std::array::from_fn(|i| a(i, 0) * b[0]);
    if K == 1 {
        return even;
    }
    let mut odd: [f64; M] = std::array::from_fn(|i| a(i, 1) * b[1]);
    for k in 2..K {
        let sum = if k % 2 == 0 { &mut even } else { &mut odd };
        for i in 0..M {
            sum[i] += a(i, k) * b[k];
        }
    }
    std::array::from_fn(|i| even[i] + odd[i])
}

#[inline(always)]
fn subtract<const M: usize, const K: usize>(
    c: [f64; M],
    b: &[f64; K],
    a: impl Fn(usize, usize) -> f64,
) -> [f64; M] {
    let sum: [f64; M] = combine(b, a);
    std::array::from_fn(|i| c[i] - sum[i])
}

fn product_any<const TRANSPOSED: bool>(m: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    for (c, b) in c.chunks_exact_mut(m).zip(b.chunks_exact(k)) {
        for (j, &b) in b.iter().enumerate() {
            for (i, c) in c.iter_mut().enumerate() {
                *c -= if TRANSPOSED {
                    a[i * k + j]
                } else {
                    a[j * m + i]
                } * b;
            }
        }
    }
}

fn apply_any<const TRANSPOSED: bool>(n: usize, d: &[f64], b: &mut [f64]) {
    for b in b.chunks_exact_mut(n) {
        let mut minus = [0.0; MAX_SIZE];
        product_any::<TRANSPOSED>(n, n, d, b, &mut minus[..n]);
        b.iter_mut().zip(minus).for_each(|(b, x)| *b = -x);
    }
}

fn invert_fixed<const N: usize>(d: &mut [f64], peak: &[f64]) -> Result<(), f64> {
    let d: &mut [[f64; N]; N] = d.as_chunks_mut().0.first_chunk_mut().expect(WHOLE);
    let mut scale: [f64; N] = *peak.first_chunk().expect(WHOLE);
    for k in 0..N {
        scale[k] = larger(scale[k], d[k][k].abs());
    }
    let mut rows = [0; N];
    macro_rules! steps {
        ($($k:literal)*) => { $(if $k < N { rows[$k] = gauss_jordan_step::<N, $k>(d); })* };
    }
    steps!(0 1 2 3 4 5);
    // (P A)^-1 = A^-1 P^-1: undo the row exchanges as column exchanges, last first.
    for k in (0..N).rev() {
        if rows[k] != k {
            d.swap(k, rows[k]);
        }
    }
    let mut growth = 0.0;
    for k in 0..N {
        growth += scale[k] * d[k][k].abs();
    }
    accept(growth)
}

/// Brings the largest entry of column K at or below the diagonal to the diagonal, eliminates the column from all other
/// rows, and puts column K of the inverse so far in its place. Returns the row the pivot came from. A pivot that is zero or
/// not finite leaves a diagonal that is not finite.
#[inline(never)]
fn gauss_jordan_step<const N: usize, const K: usize>(a: &mut [[f64; N]; N]) -> usize {
    let mut largest = a[K][K].abs();
    for i in K + 1..N {
        largest = larger(largest, a[K][i].abs());
    }
    let row = if a[K][K].abs() == largest {
        K
    } else {
        bring_up(a, K)
    };
    let inverse = reciprocal(a[K][K]);
    let pivot_column = a[K];
    for j in 0..N {
        if j != K {
            let factor = a[j][K] * inverse;
            for i in 0..N {
                a[j][i] -= pivot_column[i] * factor;
            }
            a[j][K] = factor;
        }
    }
    for i in 0..N {
        a[K][i] = pivot_column[i] * -inverse;
    }
    a[K][K] = inverse;
    row
}

/// Exchanges row k with the one below it that has the largest entry in column k.
#[inline(never)]
fn bring_up<const N: usize>(a: &mut [[f64; N]; N], k: usize) -> usize {
    let row = pivot_row(&a[k], k);
    a.iter_mut().for_each(|column| column.swap(k, row));
    row
}

fn invert_any(d: &mut [f64], peak: &[f64]) -> Result<(), f64> {
    let n = peak.len();
    let mut scale = [0.0; MAX_SIZE];
    scale[..n].copy_from_slice(peak);
    raise_peaks(d, &mut scale[..n]);
    let mut swaps = [0; MAX_SIZE];
    let mut pivot_column = [0.0; MAX_SIZE];
    let pivot_column = &mut pivot_column[..n];
    for k in 0..n {
        let row = pivot_row(&d[k * n..][..n], k);
        swaps[k] = row;
        d.chunks_exact_mut(n).for_each(|column| column.swap(k, row));
        let inverse = reciprocal(d[k * n + k]);
        pivot_column.copy_from_slice(&d[k * n..][..n]);
        pivot_column[k] = -1.0;
        for (j, column) in d.chunks_exact_mut(n).enumerate() {
            let factor = if j == k { inverse } else { column[k] * inverse };
            if j == k {
                column.fill(0.0);
            } else {
                column[k] = 0.0;
            }
            column
                .iter_mut()
                .zip(&*pivot_column)
                .for_each(|(c, p)| *c -= p * factor);
        }
    }
    for k in (0..n).rev() {
        for i in 0..n {
            d.swap(k * n + i, swaps[k] * n + i);
        }
    }
    accept((0..n).map(|k| scale[k] * d[k * n + k].abs()).sum())
}

/// The row of the largest entry of `column` at or below the diagonal.
fn pivot_row(column: &[f64], k: usize) -> usize {
    let mut row = k;
    for i in k + 1..column.len() {
        if column[i].abs() > column[row].abs() {
            row = i;
        }
    }
    row
}

/// 1/x, and NaN where a plain reciprocal would hide that x was infinite.
#[inline(always)]
fn reciprocal(x: f64) -> f64 {
    if x.abs() < f64::INFINITY {
        1.0 / x
    } else {
        f64::NAN
    }
}

#[inline(always)]
fn accept(growth: f64) -> Result<(), f64> {
    if growth < 1.0 / PIVOT_TOLERANCE {
        Ok(())
    } else {
        Err(if growth.is_finite() {
            1.0 / growth
        } else {
            0.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Random;
    use super::*;

    /// D D^-1 = 1, judged entry by entry.
    fn error(d: &[f64], inverse: &[f64], n: usize) -> f64 {
        let mut identity = d.to_vec();
        product_any::<false>(n, n, d, inverse, {
            identity.fill(0.0);
            (0..n).for_each(|i| identity[i * (n + 1)] = 1.0);
            &mut identity
        });
        identity.iter().fold(0.0, |a, b| larger(a, b.abs()))
    }

    #[test]
    fn inverses_of_every_size() {
        let random = &mut Random(1);
        for n in 1..=9 {
            for _ in 0..20 {
                let d = random.vector(n * n);
                let mut inverse = d.clone();
                invert(&mut inverse, &vec![0.0; n]).unwrap();
                let size = inverse.iter().fold(0.0, |a, b| larger(a, b.abs()));
                assert!(error(&d, &inverse, n) < 1e-14 * size * n as f64, "size {n}");
            }
            // A cyclic permutation, whose diagonal vanishes: every pivot but the last comes from another row.
            let mut cycle = vec![0.0; n * n];
            (0..n).for_each(|j| cycle[j * n + (j + 1) % n] = 2.0);
            let mut inverse = cycle.clone();
            invert(&mut inverse, &vec![0.0; n]).unwrap();
            assert_eq!(error(&cycle, &inverse, n), 0.0);
        }
    }

    #[test]
    fn peaks_are_sizes_whatever_the_sign() {
        for n in [1, 3, 6, 7, 11] {
            let mut d = vec![0.0; n * n];
            (0..n).for_each(|i| d[i * (n + 1)] = [-3.0, 2.0][i % 2]);
            let mut peak = vec![2.5; n];
            raise_peaks(&d, &mut peak);
            let expected: Vec<f64> = (0..n).map(|i| [3.0, 2.5][i % 2]).collect();
            assert_eq!(peak, expected);
        }
    }

    #[test]
    fn the_ratio_is_what_cancellation_has_left() {
        for n in [2, 8] {
            let near = |left: f64| {
                let mut d = vec![0.0; n * n];
                (0..n).for_each(|i| d[i * (n + 1)] = 1.0);
                (d[1], d[n], d[n + 1]) = (1.0, 1.0, 1.0 + left);
                d
            };
            assert_eq!(invert(&mut near(1e-12), &vec![0.0; n]), Ok(()));
            let ratio = invert(&mut near(1e-15), &vec![0.0; n]).unwrap_err();
            assert!(ratio > 1e-16 && ratio < 1e-14, "{ratio:e}");
            assert_eq!(invert(&mut near(0.0), &vec![0.0; n]), Err(0.0));
            // The same entry, after cancellation from 1e3 and by itself.
            let mut peak = vec![0.0; n];
            peak[0] = 1e3;
            let tiny = |size: f64| {
                let mut d = near(1.0);
                d.iter_mut().for_each(|d| *d *= size);
                d
            };
            assert!(invert(&mut tiny(1e-12), &peak).is_err());
            assert_eq!(invert(&mut tiny(1e-12), &vec![0.0; n]), Ok(()));
        }
    }
}
