//! A dense front: threshold pivoting among its candidates, and the update of what is left.

use super::Inertia;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::reborrow::ReborrowMut;
use faer::{Accum, MatMut, MatRef, Par};

/// Below this part of what its row held a column is what cancellation has left: zero.
const CANCELLED: f64 = 1e-14;
/// Updates of so many products and more go through faer's kernels, which take some hundred operations to set up.
const LARGE: usize = 6000;
/// So many candidates are kept up to date with every pivot and may be the next one; those behind take all pivots before at
/// once, when their turn comes.
const WINDOW: usize = 8;
/// Numbers that are computed side by side: columns begin at multiples of this.
const LANES: usize = 4;

/// Numbers from the begin of a column of a front to that of the next.
pub(super) fn stride(size: usize) -> usize {
    size.next_multiple_of(LANES)
}

/// What was eliminated in a front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// First of its variables, and how many: those eliminated, then the others.
    index: usize,
    size: usize,
    /// [`stride`]
    stride: usize,
    pub(super) pivots: usize,
    /// How many could have been eliminated.
    pub(super) candidates: usize,
    /// First of its columns in `lower`, each `stride` long, and of its pivots in `diagonal`.
    lower: usize,
    diagonal: usize,
}

/// The factors of all fronts.
#[derive(Clone, Debug, Default)]
pub(super) struct Eliminated {
    pub(super) variables: Vec<usize>,
    pub(super) lower: Vec<f64>,
    /// Two numbers a pivot: of the inverse of `D` the diagonal, and the entry that couples it to the next one.
    pub(super) diagonal: Vec<f64>,
    scaled: Vec<f64>,
}

/// A pivot found.
enum Pivot {
    One(usize),
    Two(usize, usize),
    /// Nothing is left of this column.
    Zero(usize),
}

/// The square of a front, its lower triangle column by column.
struct Square<'a> {
    a: &'a mut [f64],
    size: usize,
    stride: usize,
    candidates: usize,
    /// End of the candidates that are up to date; the others have taken no pivot.
    window: usize,
    /// End of the candidates that were no pivots when they were looked at last.
    refused: usize,
}

impl Square<'_> {
    fn at(&self, i: usize, j: usize) -> f64 {
        self.a[i.min(j) * self.stride + i.max(j)]
    }

    /// Largest entry of a column among the rows from `from` on, but for the diagonal and row `but`; and the largest of
    /// the window with its row.
    fn largest(&self, column: usize, from: usize, but: usize) -> (f64, f64, usize) {
        let (mut all, mut best, mut row) = (0.0_f64, 0.0_f64, usize::MAX);
        for i in from..column {
            let value = self.a[i * self.stride + column].abs();
            if i != but && value > best {
                (best, row) = (value, i);
            }
        }
        let own = &self.a[column * self.stride..][..self.size];
        for (i, value) in own.iter().enumerate().skip(column + 1) {
            if i == but {
                continue;
            }
            if i < self.window {
                if value.abs() > best {
                    (best, row) = (value.abs(), i);
                }
            } else {
                all = all.max(value.abs());
            }
        }
        (all.max(best), best, row)
    }

    /// Exchanges two of the window, with the rows of what is eliminated.
    fn swap(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let (a, b, n) = (a.min(b), a.max(b), self.stride);
        for j in 0..a {
            self.a.swap(j * n + a, j * n + b);
        }
        self.a.swap(a * n + a, b * n + b);
        for i in a + 1..b {
            self.a.swap(a * n + i, i * n + b);
        }
        let (first, second) = self.a.split_at_mut(b * n);
        first[a * n + b + 1..(a + 1) * n].swap_with_slice(&mut second[b + 1..n]);
    }

    /// A pivot that passes the test of Duff and Reid: growth of the rest is at most `1/threshold`.
    fn find(
        &self,
        from: usize,
        threshold: f64,
        variables: &[usize],
        scale: &[f64],
    ) -> Option<Pivot> {
        let from_new = from.max(self.refused);
        if from_new >= self.window {
            return None;
        }
        // the usual case
        if from_new == from {
            let column = &self.a[from * self.stride..][..self.size];
            let (own, others) = (column[from].abs(), peak(&column[from + 1..]));
            if own > CANCELLED * scale[variables[from]] && own >= threshold * others {
                return Some(Pivot::One(from));
            }
        }
        let bound = 1.0 / threshold;
        for c in from_new..self.window {
            let own = self.at(c, c);
            let (others, best, r) = self.largest(c, from, c);
            let negligible = CANCELLED * scale[variables[c]];
            if own.abs().max(others) <= negligible {
                continue;
            }
            if own.abs() > negligible && own.abs() >= threshold * others {
                return Some(Pivot::One(c));
            }
            if best <= negligible {
                continue;
            }
            let partner = self.at(r, r);
            let determinant = own * partner - best * best;
            let size = determinant.abs();
            // the entries of both to the others
            let (mine, _, _) = self.largest(c, from, r);
            let (theirs, _, _) = self.largest(r, from, c);
            let grows =
                (partner.abs() * mine + best * theirs).max(best * mine + own.abs() * theirs);
            if size > CANCELLED * best * best && grows <= bound * size {
                return Some(Pivot::Two(c, r));
            }
        }
        None
    }

    /// A pivot where no further front takes what is left: zero columns, or whatever is largest.
    fn find_last(&self, from: usize, variables: &[usize], scale: &[f64]) -> Pivot {
        let mut worst = (0.0, Pivot::Zero(from));
        for c in from..self.candidates {
            let (others, best, r) = self.largest(c, from, c);
            let own = self.at(c, c).abs();
            let relative = own.max(others) / scale[variables[c]].max(f64::MIN_POSITIVE);
            if relative > CANCELLED && relative > worst.0 {
                let pivot = if own >= best {
                    Pivot::One(c)
                } else {
                    Pivot::Two(c, r)
                };
                worst = (relative, pivot);
            }
        }
        worst.1
    }

    /// Subtracts from the window right of the pivots `k` to `next` what they take; the columns of these hold `L`, and
    /// `scaled` holds `L D` for each.
    fn update(&mut self, k: usize, next: usize, scaled: &[f64]) {
        let n = self.stride;
        let (done, rest) = self.a.split_at_mut(next * n);
        let columns = rest.chunks_exact_mut(n).enumerate();
        for (j, column) in columns.take(self.window - next) {
            let j = next + j;
            // what is above the diagonal is not used
            let first = j - j % LANES;
            let to = &mut column[first..];
            for (lower, scaled) in done[k * n..].chunks_exact(n).zip(scaled.chunks_exact(n)) {
                let weight = scaled[j];
                if weight != 0.0 {
                    subtract_one(to, &lower[first..], weight);
                }
            }
        }
    }

    /// Takes more candidates into the window, after they have taken the pivots before `k`; or says that there are none.
    fn move_on(&mut self, k: usize, scaled: &[f64]) -> bool {
        if self.window == self.candidates {
            return false;
        }
        let end = self.candidates.min(self.window + WINDOW);
        subtract(self.a, self.stride, (self.window, end), k, scaled);
        (self.refused, self.window) = (self.window, end);
        true
    }
}

/// The largest absolute value, side by side; numbers that are none count as zero.
fn peak(row: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut best = [0.0; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for values in whole {
        for (best, x) in best.iter_mut().zip(values) {
            *best = larger(*best, x.abs());
        }
    }
    let all = best.into_iter().chain(rest.iter().map(|x| x.abs()));
    all.fold(0.0, larger)
}

/// `to -= weight lower`. Not inlined: so the compiler knows that nothing overlaps, and computes side by side.
#[inline(never)]
fn subtract_one(to: &mut [f64], lower: &[f64], weight: f64) {
    for (to, l) in to.iter_mut().zip(lower) {
        *to -= weight * l;
    }
}

/// The same of four at once.
#[inline(never)]
fn subtract_four(to: &mut [f64], [a, b, c, d]: [&[f64]; 4], [p, q, r, s]: [f64; 4]) {
    let n = to.len();
    let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
    for i in 0..n {
        to[i] = to[i] - (p * a[i] + q * b[i]) - (r * c[i] + s * d[i]);
    }
}

/// Subtracts from columns `first` to `end` what the first `pivots` take.
fn subtract(
    square: &mut [f64],
    stride: usize,
    (first, end): (usize, usize),
    pivots: usize,
    scaled: &[f64],
) {
    let columns = end - first;
    if columns == 0 || pivots == 0 {
        return;
    }
    let (done, rest) = square.split_at_mut(first * stride);
    let done = &done[..pivots * stride];
    let scaled = &scaled[..pivots * stride];
    if columns * (stride - first) * pivots >= LARGE {
        let lower = MatRef::from_column_major_slice(done, stride, pivots);
        let scaled = MatRef::from_column_major_slice(scaled, stride, pivots);
        let scaled = scaled.subrows(first, columns).transpose();
        let mut to =
            MatMut::from_column_major_slice_mut(&mut rest[..columns * stride], stride, columns);
        triangular::matmul(
            to.rb_mut().subrows_mut(first, columns),
            BlockStructure::TriangularLower,
            Accum::Add,
            lower.subrows(first, columns),
            BlockStructure::Rectangular,
            scaled,
            BlockStructure::Rectangular,
            -1.0,
            Par::Seq,
        );
        matmul(
            to.subrows_mut(end, stride - end),
            Accum::Add,
            lower.subrows(end, stride - end),
            scaled,
            -1.0,
            Par::Seq,
        );
        return;
    }
    let whole = pivots - pivots % 4;
    for (j, column) in rest.chunks_exact_mut(stride).enumerate().take(columns) {
        let j = first + j;
        let above = j - j % LANES;
        let to = &mut column[above..];
        for (lower, scaled) in
            (done[..whole * stride].chunks_exact(4 * stride)).zip(scaled.chunks_exact(4 * stride))
        {
            let of = |p: usize| &lower[p * stride + above..(p + 1) * stride];
            let weights: [f64; 4] = std::array::from_fn(|p| scaled[p * stride + j]);
            subtract_four(to, [of(0), of(1), of(2), of(3)], weights);
        }
        let left = done[whole * stride..].chunks_exact(stride);
        for (lower, scaled) in left.zip(scaled[whole * stride..].chunks_exact(stride)) {
            subtract_one(to, &lower[above..], scaled[j]);
        }
    }
}

impl Eliminated {
    pub(super) fn clear(&mut self) {
        self.variables.clear();
        self.lower.clear();
        self.diagonal.clear();
    }

    /// Eliminates what it can of the candidates of a front; its remainder is left in `square`.
    pub(super) fn factor(
        &mut self,
        square: &mut [f64],
        index: usize,
        (size, candidates): (usize, usize),
        (threshold, is_last): (f64, bool),
        scale: &[f64],
        inertia: &mut Inertia,
    ) -> Panel {
        let variables = &mut self.variables[index..];
        let stride = stride(size);
        let diagonal = self.diagonal.len();
        let mut s = Square {
            a: square,
            size,
            stride,
            candidates,
            window: candidates.min(WINDOW),
            refused: 0,
        };
        // of each pivot, what is behind it is written before it is read
        if self.scaled.len() < stride * candidates {
            self.scaled.resize(stride * candidates, 0.0);
        }
        let mut k = 0;
        let mut is_nothing_left = false;
        while k < candidates {
            let found = if is_nothing_left {
                Some(Pivot::Zero(k))
            } else {
                s.find(k, threshold, variables, scale)
            };
            let pivot = match found {
                Some(pivot) => pivot,
                None if s.move_on(k, &self.scaled) => continue,
                // beside what has come since, they may be
                None if s.refused > k => {
                    s.refused = k;
                    continue;
                }
                None if is_last => s.find_last(k, variables, scale),
                None => break,
            };
            let count = match pivot {
                Pivot::One(c) | Pivot::Zero(c) => {
                    s.swap(k, c);
                    variables.swap(k, c);
                    1
                }
                Pivot::Two(c, r) => {
                    s.swap(k, c);
                    variables.swap(k, c);
                    // where the first swap has taken it
                    let r = if r == k { c } else { r };
                    s.swap(k + 1, r);
                    variables.swap(k + 1, r);
                    2
                }
            };
            let next = k + count;
            let scaled = &mut self.scaled[k * stride..next * stride];
            match pivot {
                Pivot::Zero(_) => {
                    // nor of those behind
                    is_nothing_left = true;
                    s.a[k * stride + k..(k + 1) * stride].fill(0.0);
                    scaled.fill(0.0);
                    self.diagonal.extend_from_slice(&[0.0, 0.0]);
                    inertia.zero += 1;
                }
                Pivot::One(_) => {
                    let d = s.at(k, k);
                    *(if d > 0.0 {
                        &mut inertia.positive
                    } else {
                        &mut inertia.negative
                    }) += 1;
                    let inverse = 1.0 / d;
                    let column = &mut s.a[k * stride..(k + 1) * stride];
                    scaled[next..].copy_from_slice(&column[next..]);
                    column[next..].iter_mut().for_each(|l| *l *= inverse);
                    column[k] = 1.0;
                    self.diagonal.extend_from_slice(&[inverse, 0.0]);
                }
                Pivot::Two(..) => {
                    let (a, b, c) = (s.at(k, k), s.at(k + 1, k), s.at(k + 1, k + 1));
                    let determinant = a * c - b * b;
                    if determinant < 0.0 {
                        inertia.positive += 1;
                        inertia.negative += 1;
                    } else if a + c > 0.0 {
                        inertia.positive += 2;
                    } else {
                        inertia.negative += 2;
                    }
                    let (ia, ib, ic) = (c / determinant, -b / determinant, a / determinant);
                    let (first, second) = s.a[k * stride..(k + 2) * stride].split_at_mut(stride);
                    let (scaled_first, scaled_second) = scaled.split_at_mut(stride);
                    for i in next..stride {
                        let (x, y) = (first[i], second[i]);
                        (scaled_first[i], scaled_second[i]) = (x, y);
                        first[i] = ia * x + ib * y;
                        second[i] = ib * x + ic * y;
                    }
                    (first[k], first[k + 1], second[k + 1]) = (1.0, 0.0, 1.0);
                    self.diagonal.extend_from_slice(&[ia, ib, ic, 0.0]);
                }
            }
            s.update(k, next, &self.scaled[k * stride..]);
            k = next;
        }
        let lower = self.lower.len();
        self.lower.extend_from_slice(&square[..k * stride]);
        subtract(square, stride, (candidates, size), k, &self.scaled);
        Panel {
            index,
            size,
            stride,
            pivots: k,
            candidates,
            lower,
            diagonal,
        }
    }

    /// `b <- L^-1 b` of a front, then its part of `D^-1`.
    pub(super) fn forward(&self, p: &Panel, b: &mut [f64], local: &mut Vec<f64>) {
        let variables = &self.variables[p.index..p.index + p.size];
        local.clear();
        local.extend(variables.iter().map(|v| b[*v]));
        let columns = self.lower[p.lower..].chunks_exact(p.stride);
        for (k, column) in columns.enumerate().take(p.pivots) {
            let value = local[k];
            for (x, l) in local[k + 1..].iter_mut().zip(&column[k + 1..]) {
                *x -= value * l;
            }
        }
        let diagonal = &self.diagonal[p.diagonal..][..2 * p.pivots];
        let mut k = 0;
        while k < p.pivots {
            let (a, b) = (diagonal[2 * k], diagonal[2 * k + 1]);
            if b == 0.0 {
                local[k] *= a;
                k += 1;
            } else {
                let (x, y) = (local[k], local[k + 1]);
                local[k] = a * x + b * y;
                local[k + 1] = b * x + diagonal[2 * k + 2] * y;
                k += 2;
            }
        }
        for (v, x) in variables.iter().zip(local.iter()) {
            b[*v] = *x;
        }
    }

    /// `b <- L'^-1 b` of a front.
    pub(super) fn backward(&self, p: &Panel, b: &mut [f64], local: &mut Vec<f64>) {
        let variables = &self.variables[p.index..p.index + p.size];
        local.clear();
        local.extend(variables.iter().map(|v| b[*v]));
        for k in (0..p.pivots).rev() {
            let column = &self.lower[p.lower + k * p.stride..p.lower + (k + 1) * p.stride];
            let taken: f64 = column[k + 1..]
                .iter()
                .zip(&local[k + 1..])
                .map(|(l, x)| l * x)
                .sum();
            local[k] -= taken;
        }
        for (v, x) in variables.iter().zip(local.iter()).take(p.pivots) {
            b[*v] = *x;
        }
    }
}
