//! Dense kernels on small column-major blocks.
//!
//! Every kernel exists twice: compiled for each size up to [`FIXED`], where the loops over rows unroll and the
//! accumulators stay in registers, and once for sizes known only at run time. Blocks are packed (leading dimension =
//! number of rows). The columns of a right operand may be any number, so one call serves one right-hand side or many.

/// Sizes up to this one have kernels of their own.
const FIXED: usize = 6;

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
            FIXED => by_size!(@ $N = 6, $fixed),
            _ => $any,
        }
    };
    (@ $N:ident = $n:literal, $fixed:expr) => {{
        const $N: usize = $n;
        $fixed
    }};
}

/// C -= A B with A (m x k), B (k x n), C (m x n); n follows from the lengths.
#[inline]
pub(super) fn subtract_product(m: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    by_size!(k, K => by_size!(m, M => product::<M, K>(a, b, c), _ => product_any(m, k, a, b, c)),
        _ => product_any(m, k, a, b, c))
}

/// C -= A' B with A (k x m), B (k x n), C (m x n).
#[inline]
pub(super) fn subtract_transposed_product(m: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    by_size!(k, K => by_size!(m, M => transposed_product::<M, K>(a, b, c), _ => transposed_product_any(m, k, a, b, c)),
        _ => transposed_product_any(m, k, a, b, c))
}

/// B <- D B with D (n x n), B (n x any).
#[inline]
pub(super) fn apply(n: usize, d: &[f64], b: &mut [f64]) {
    by_size!(n, N => apply_fixed::<N>(d, b), _ => apply_any(n, d, b))
}

/// B <- D' B with D (n x n), B (n x any).
#[inline]
pub(super) fn apply_transposed(n: usize, d: &[f64], b: &mut [f64]) {
    by_size!(n, N => apply_transposed_fixed::<N>(d, b), _ => apply_transposed_any(n, d, b))
}

/// peak_i <- max(peak_i, |D_ii|): the scale against which [`invert`] judges cancellation.
#[inline]
pub(super) fn raise_peaks(d: &[f64], peak: &mut [f64]) {
    let n = peak.len();
    for (peak, d) in peak.iter_mut().zip(d.iter().step_by(n + 1)) {
        *peak = larger(*peak, d.abs());
    }
}

/// D <- D^-1 (n x n, n = length of `peak`) by Gauss-Jordan elimination with partial pivoting.
///
/// `peak` holds the largest |D_ii| each diagonal entry had before earlier eliminations changed it. The error is the
/// ratio min_i 1 / (peak_i |D^-1_ii|), when it is below [`PIVOT_TOLERANCE`] (0 for a vanishing or non-finite pivot).
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
    a.as_chunks().0.first_chunk().expect("the tape gives each kernel whole blocks")
}

#[inline(never)]
fn product<const M: usize, const K: usize>(a: &[f64], mut b: &[f64], mut c: &mut [f64]) {
    let a = block::<M, K>(a);
    while let (Some((b0, b1)), Some((c0, c1))) = (b.split_first_chunk(), c.split_first_chunk_mut()) {
        product_column(a, b0, c0);
        (b, c) = (b1, c1);
        std::hint::black_box(());
    }
}

/// One column, out of line: straight code, which the compiler turns into pairs of rows. Inlined into a loop it would pair
/// columns instead, at twice the instructions.
#[inline(always)]
fn product_column<const M: usize, const K: usize>(a: &[[f64; M]; K], b: &[f64; K], c: &mut [f64; M]) {
    let mut sum = *c;
    for k in 0..K {
        for i in 0..M {
            sum[i] -= a[k][i] * b[k];
        }
    }
    *c = sum;
}

fn product_any(m: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    for (c, b) in c.chunks_exact_mut(m).zip(b.chunks_exact(k)) {
        for (a, &b) in a.chunks_exact(m).zip(b) {
            c.iter_mut().zip(a).for_each(|(c, a)| *c -= a * b);
        }
    }
}

#[inline(always)]
fn transposed_product<const M: usize, const K: usize>(a: &[f64], mut b: &[f64], mut c: &mut [f64]) {
    let a = block::<K, M>(a);
    while let (Some((b0, b1)), Some((c0, c1))) = (b.split_first_chunk(), c.split_first_chunk_mut()) {
        transposed_product_column(a, b0, c0);
        (b, c) = (b1, c1);
    }
}

#[inline(never)]
fn transposed_product_column<const M: usize, const K: usize>(a: &[[f64; K]; M], b: &[f64; K], c: &mut [f64; M]) {
    for i in 0..M {
        c[i] -= dot(&a[i], b);
    }
}

fn transposed_product_any(m: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    for (c, b) in c.chunks_exact_mut(m).zip(b.chunks_exact(k)) {
        for (c, a) in c.iter_mut().zip(a.chunks_exact(k)) {
            *c -= a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        }
    }
}

/// a'b in two interleaved partial sums, which is the order a two-lane register adds in.
#[inline(always)]
fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    let (pairs, last) = a.as_chunks::<2>();
    let mut sum = [0.0; 2];
    for (a, b) in pairs.iter().zip(b.as_chunks::<2>().0) {
        sum[0] += a[0] * b[0];
        sum[1] += a[1] * b[1];
    }
    let sum = sum[0] + sum[1];
    if last.is_empty() {
        sum
    } else {
        sum + a[N - 1] * b[N - 1]
    }
}

#[inline(always)]
fn apply_fixed<const N: usize>(d: &[f64], mut b: &mut [f64]) {
    let d = block::<N, N>(d);
    while let Some((b0, b1)) = b.split_first_chunk_mut() {
        apply_column(d, b0);
        b = b1;
    }
}

#[inline(never)]
fn apply_column<const N: usize>(d: &[[f64; N]; N], b: &mut [f64; N]) {
    let mut sum = [0.0; N];
    for k in 0..N {
        for i in 0..N {
            sum[i] += d[k][i] * b[k];
        }
    }
    *b = sum;
}

#[inline(always)]
fn apply_transposed_fixed<const N: usize>(d: &[f64], mut b: &mut [f64]) {
    let d = block::<N, N>(d);
    while let Some((b0, b1)) = b.split_first_chunk_mut() {
        apply_transposed_column(d, b0);
        b = b1;
    }
}

#[inline(never)]
fn apply_transposed_column<const N: usize>(d: &[[f64; N]; N], b: &mut [f64; N]) {
    *b = std::array::from_fn(|i| dot(&d[i], b));
}

fn apply_any(n: usize, d: &[f64], b: &mut [f64]) {
    for b in b.chunks_exact_mut(n) {
        let mut sum = [0.0; MAX_SIZE];
        for (d, &b) in d.chunks_exact(n).zip(&*b) {
            sum.iter_mut().zip(d).for_each(|(sum, d)| *sum += d * b);
        }
        b.copy_from_slice(&sum[..n]);
    }
}

fn apply_transposed_any(n: usize, d: &[f64], b: &mut [f64]) {
    for b in b.chunks_exact_mut(n) {
        let mut sum = [0.0; MAX_SIZE];
        for (sum, d) in sum.iter_mut().zip(d.chunks_exact(n)) {
            *sum = d.iter().zip(&*b).map(|(d, b)| d * b).sum();
        }
        b.copy_from_slice(&sum[..n]);
    }
}

fn invert_fixed<const N: usize>(d: &mut [f64], peak: &[f64]) -> Result<(), f64> {
    let d: &mut [[f64; N]; N] = d.as_chunks_mut().0.first_chunk_mut().expect("the tape gives each kernel whole blocks");
    let peak: &[f64; N] = peak.first_chunk().expect("one peak per row");
    let mut scale = [0.0; N];
    for k in 0..N {
        scale[k] = larger(peak[k], d[k][k].abs());
    }
    let mut rows = [0; N];
    macro_rules! steps {
        ($($k:literal)*) => { $(if $k < N { rows[$k] = gauss_jordan_step::<N, $k>(d)?; })* };
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
        growth = larger(growth, scale[k] * d[k][k].abs());
    }
    accept(growth)
}

/// Brings the largest entry of column K at or below the diagonal to the diagonal, eliminates the column from all other
/// rows, and puts column K of the inverse so far in its place. Returns the row the pivot came from.
#[inline(never)]
fn gauss_jordan_step<const N: usize, const K: usize>(a: &mut [[f64; N]; N]) -> Result<usize, f64> {
    let mut largest = 0.0;
    for i in K..N {
        largest = larger(largest, a[K][i].abs());
    }
    let row = if a[K][K].abs() == largest { K } else { bring_up(a, K) };
    let inverse = reciprocal(a[K][K])?;
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
    Ok(row)
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
        let inverse = reciprocal(d[k * n + k])?;
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
    let growth = (0..n)
        .map(|k| scale[k] * d[k * n + k].abs())
        .fold(0.0, larger);
    accept(growth)
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

/// 1/x; the error, for 0, infinity and NaN, is the ratio 0.
#[inline(always)]
fn reciprocal(x: f64) -> Result<f64, f64> {
    let inverse = 1.0 / x;
    if inverse.abs() > 0.0 && inverse.abs() < f64::INFINITY { Ok(inverse) } else { Err(0.0) }
}

#[inline(always)]
fn accept(growth: f64) -> Result<(), f64> {
    if growth < 1.0 / PIVOT_TOLERANCE {
        Ok(())
    } else {
        Err(1.0 / growth)
    }
}
