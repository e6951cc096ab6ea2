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
/// So many candidates are kept up to date with every pivot and may be the next one; those behind take the pivots found
/// among these at once.
const WINDOW: usize = 24;

/// What was eliminated in a front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// First of its variables, and how many: those eliminated, then the others.
    index: usize,
    size: usize,
    pub(super) pivots: usize,
    /// How many could have been eliminated.
    pub(super) candidates: usize,
    /// First of its columns in `lower`, each `size` long, and of its pivots in `diagonal`.
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
    candidates: usize,
    /// End of the candidates that are up to date; the others have taken the first `updated` pivots.
    window: usize,
    updated: usize,
}

impl Square<'_> {
    fn at(&self, i: usize, j: usize) -> f64 {
        self.a[i.min(j) * self.size + i.max(j)]
    }

    /// Largest entry of a column among the rows from `from` on, but for the diagonal and row `but`; and the largest of
    /// the window with its row.
    fn largest(&self, column: usize, from: usize, but: usize) -> (f64, f64, usize) {
        let (mut all, mut best, mut row) = (0.0_f64, 0.0_f64, usize::MAX);
        for i in from..column {
            let value = self.a[i * self.size + column].abs();
            if i != but && value > best {
                (best, row) = (value, i);
            }
        }
        let own = &self.a[column * self.size..(column + 1) * self.size];
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
        let (a, b, n) = (a.min(b), a.max(b), self.size);
        for j in 0..a {
            self.a.swap(j * n + a, j * n + b);
        }
        self.a.swap(a * n + a, b * n + b);
        for i in a + 1..b {
            self.a.swap(a * n + i, i * n + b);
        }
        for i in b + 1..n {
            self.a.swap(a * n + i, b * n + i);
        }
    }

    /// A pivot that passes the test of Duff and Reid: growth of the rest is at most `1/threshold`.
    fn find(
        &self,
        from: usize,
        threshold: f64,
        variables: &[usize],
        scale: &[f64],
    ) -> Option<Pivot> {
        let bound = 1.0 / threshold;
        for c in from..self.window {
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
        let n = self.size;
        let (done, rest) = self.a.split_at_mut(next * n);
        for (j, column) in rest
            .chunks_exact_mut(n)
            .enumerate()
            .take(self.window - next)
        {
            let j = next + j;
            for (p, scaled) in (k..next).zip(scaled.chunks_exact(n)) {
                let weight = scaled[j];
                if weight == 0.0 {
                    continue;
                }
                let lower = &done[p * n + j..(p + 1) * n];
                for (c, l) in column[j..].iter_mut().zip(lower) {
                    *c -= weight * l;
                }
            }
        }
    }

    /// Takes more candidates into the window, after they have taken the pivots before `k`; or says that there are none.
    fn move_on(&mut self, k: usize, scaled: &[f64]) -> bool {
        if self.window == self.candidates {
            return false;
        }
        let pivots = (self.updated, k);
        subtract(
            self.a,
            self.size,
            (self.window, self.candidates),
            pivots,
            scaled,
        );
        self.updated = k;
        self.window = self.candidates.min(self.window + WINDOW);
        true
    }
}

/// Subtracts from columns `first` to `end` what the pivots `from` to `to` take.
fn subtract(
    square: &mut [f64],
    size: usize,
    (first, end): (usize, usize),
    (from, to): (usize, usize),
    scaled: &[f64],
) {
    let (columns, pivots) = (end - first, to - from);
    if columns == 0 || pivots == 0 {
        return;
    }
    let (done, rest) = square.split_at_mut(first * size);
    let done = &done[from * size..to * size];
    let scaled = &scaled[from * size..to * size];
    if columns * (size - first) * pivots >= LARGE {
        let lower = MatRef::from_column_major_slice(done, size, pivots);
        let scaled = MatRef::from_column_major_slice(scaled, size, pivots);
        let scaled = scaled.subrows(first, columns).transpose();
        let mut to =
            MatMut::from_column_major_slice_mut(&mut rest[..columns * size], size, columns);
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
            to.subrows_mut(end, size - end),
            Accum::Add,
            lower.subrows(end, size - end),
            scaled,
            -1.0,
            Par::Seq,
        );
        return;
    }
    for (j, column) in rest.chunks_exact_mut(size).enumerate().take(columns) {
        let j = first + j;
        for (lower, scaled) in done.chunks_exact(size).zip(scaled.chunks_exact(size)) {
            let weight = scaled[j];
            if weight == 0.0 {
                continue;
            }
            for (c, l) in column[j..].iter_mut().zip(&lower[j..]) {
                *c -= weight * l;
            }
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
        let diagonal = self.diagonal.len();
        let mut s = Square {
            a: square,
            size,
            candidates,
            window: candidates.min(WINDOW),
            updated: 0,
        };
        self.scaled.clear();
        self.scaled.resize(size * candidates, 0.0);
        let mut k = 0;
        while k < candidates {
            let pivot = match s.find(k, threshold, variables, scale) {
                Some(pivot) => pivot,
                None if s.move_on(k, &self.scaled) => continue,
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
            let scaled = &mut self.scaled[k * size..next * size];
            match pivot {
                Pivot::Zero(_) => {
                    s.a[k * size + k..(k + 1) * size].fill(0.0);
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
                    let column = &mut s.a[k * size..(k + 1) * size];
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
                    let (first, second) = s.a[k * size..(k + 2) * size].split_at_mut(size);
                    let (scaled_first, scaled_second) = scaled.split_at_mut(size);
                    for i in next..size {
                        let (x, y) = (first[i], second[i]);
                        (scaled_first[i], scaled_second[i]) = (x, y);
                        first[i] = ia * x + ib * y;
                        second[i] = ib * x + ic * y;
                    }
                    (first[k], first[k + 1], second[k + 1]) = (1.0, 0.0, 1.0);
                    self.diagonal.extend_from_slice(&[ia, ib, ic, 0.0]);
                }
            }
            s.update(k, next, &self.scaled[k * size..]);
            k = next;
        }
        let lower = self.lower.len();
        self.lower.extend_from_slice(&square[..k * size]);
        subtract(square, size, (candidates, size), (0, k), &self.scaled);
        Panel {
            index,
            size,
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
        let columns = self.lower[p.lower..].chunks_exact(p.size);
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
            let column = &self.lower[p.lower + k * p.size..p.lower + (k + 1) * p.size];
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
