//! `K_BA`: pivots from all of it, factors, and the basis of what it leaves free.

use super::{Block, Seen};

/// Pivots below this part of the largest entry determine nothing: solutions would keep less than half of their digits, and
/// what is left of `T'KT` loses twice as many.
const SINGULAR: f64 = 1e-6;

impl Block {
    pub(super) fn free(&self) -> usize {
        self.among.len() - self.zero.len()
    }

    /// Numbers in a row of the factors, and in a row of the basis.
    pub(super) fn widths(&self) -> (usize, usize) {
        (self.zero.len() + self.columns.len(), self.columns.len())
    }

    pub(super) fn basis(&self, row: usize) -> &[f64] {
        let width = self.columns.len();
        &self.basis[row * width..(row + 1) * width]
    }

    /// `[K_BA, K_BN T_N]`, with the bases of the blocks before.
    pub(super) fn assemble(&mut self, before: &[Self], values: &[f64], places: &[u32]) {
        let (width, _) = self.widths();
        let (na, free) = (self.among.len(), self.free());
        self.factors.fill(0.0);
        for &(source, r, c) in &self.inside {
            self.factors[r * width + c] += values[source];
        }
        self.seen.clear();
        for (source, r, _, seen) in &self.outside {
            let value = values[*source];
            self.seen.push(value);
            if value == 0.0 {
                continue;
            }
            let row = &mut self.factors[r * width + na..(r + 1) * width];
            match *seen {
                Seen::Kept(column) => row[column - free] += value,
                Seen::Row(other, at, first) => {
                    let of = before[other].basis(at);
                    for (x, place) in of.iter().zip(&places[first..]) {
                        row[*place as usize - free] += value * x;
                    }
                }
            }
        }
    }

    /// Pivots, factors and the basis, of what lies in `factors`; false where its rows do not determine as many.
    pub(super) fn factor(&mut self, peaks: &mut Vec<f64>) -> bool {
        let (m, na) = (self.zero.len(), self.among.len());
        let (width, columns) = self.widths();
        self.rows.clear();
        self.rows.extend(0..m);
        self.order.clear();
        self.order.extend(0..na);
        let a = &mut self.factors;
        let rank = eliminate(
            a,
            (m, na, width),
            SINGULAR,
            (&mut self.rows, &mut self.order),
            peaks,
        );
        if rank < m {
            return false;
        }
        for i in (0..m).rev() {
            let (own, below) = a[i * width..].split_at_mut(width);
            for (k, row) in (i + 1..m).zip(below.chunks_exact(width)) {
                let factor = own[k];
                if factor != 0.0 {
                    subtract(&mut own[m..], factor, &row[m..]);
                }
            }
            let pivot = own[i];
            own[m..].iter_mut().for_each(|x| *x /= pivot);
        }
        self.basis.fill(0.0);
        for (i, &to) in self.order.iter().enumerate() {
            let row = &mut self.basis[to * columns..(to + 1) * columns];
            match i.checked_sub(m) {
                Some(free) => row[free] = 1.0,
                None => {
                    let own = &a[i * width + m..(i + 1) * width];
                    row.iter_mut().zip(own).for_each(|(b, x)| *b = -x);
                }
            }
        }
        true
    }

    /// `G^-1 b` in the order of the pivots; `b` is in that of `zero`.
    pub(super) fn solve(&self, b: &[f64], out: &mut Vec<f64>) {
        let (m, (width, _)) = (self.zero.len(), self.widths());
        out.clear();
        out.extend(self.rows.iter().map(|r| b[*r]));
        for i in 0..m {
            let row = &self.factors[i * width..i * width + i];
            let taken: f64 = row.iter().zip(&out[..i]).map(|(l, x)| l * x).sum();
            out[i] -= taken;
        }
        for i in (0..m).rev() {
            let row = &self.factors[i * width..i * width + m];
            let taken: f64 = (row[i + 1..].iter().zip(&out[i + 1..]))
                .map(|(u, x)| u * x)
                .sum();
            out[i] = (out[i] - taken) / row[i];
        }
    }

    /// `G'^-1 b` in place, `b` in the order of the pivots; the result is in that of [`Block::rows`].
    pub(super) fn solve_transposed(&self, b: &mut [f64]) {
        let (m, (width, _)) = (self.zero.len(), self.widths());
        for i in 0..m {
            let row = &self.factors[i * width..i * width + m];
            b[i] /= row[i];
            let x = b[i];
            subtract(&mut b[i + 1..], x, &row[i + 1..]);
        }
        for i in (0..m).rev() {
            let row = &self.factors[i * width..i * width + i];
            let x = b[i];
            subtract(&mut b[..i], x, row);
        }
    }
}

pub(super) fn subtract(to: &mut [f64], factor: f64, of: &[f64]) {
    for (to, of) in to.iter_mut().zip(of) {
        *to -= factor * of;
    }
}

pub(super) fn add(to: &mut [f64], factor: f64, of: &[f64]) {
    subtract(to, -factor, of);
}

/// The largest absolute value, in lanes that compare side by side; numbers that are none count as zero.
fn peak(row: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [0.0; 4];
    let (whole, rest) = row.as_chunks::<4>();
    for values in whole {
        for (lane, x) in lanes.iter_mut().zip(values) {
            *lane = larger(*lane, x.abs());
        }
    }
    let all = lanes.into_iter().chain(rest.iter().map(|x| x.abs()));
    all.fold(0.0, larger)
}

/// `L\U` of the first `n` of `width` columns of `m` rows, the rest multiplied by `L^-1`; pivots are the largest entries
/// left. How many there are above `tolerance` times the first one. `peaks` is memory: the largest entries of the rows, found
/// anew where a row has changed.
pub(super) fn eliminate(
    a: &mut [f64],
    (m, n, width): (usize, usize, usize),
    tolerance: f64,
    (rows, columns): (&mut [usize], &mut [usize]),
    peaks: &mut Vec<f64>,
) -> usize {
    peaks.clear();
    peaks.extend(a.chunks_exact(width).map(|row| peak(&row[..n])));
    let mut first = 0.0;
    for k in 0..m {
        let mut best = (0.0, k);
        for (i, size) in peaks.iter().enumerate().skip(k) {
            if *size > best.0 {
                best = (*size, i);
            }
        }
        let (size, i) = best;
        if k == 0 {
            first = size;
        }
        if size <= tolerance * first {
            return k;
        }
        let own = &a[i * width + k..i * width + n];
        let j = k + own.iter().position(|x| x.abs() == size).unwrap_or(0);
        rows.swap(k, i);
        peaks.swap(k, i);
        if j > k {
            columns.swap(k, j);
            for row in a.chunks_exact_mut(width) {
                row.swap(k, j);
            }
        }
        let (above, below) = a.split_at_mut((k + 1) * width);
        let own = &mut above[k * width..];
        if i > k {
            own.swap_with_slice(&mut below[(i - k - 1) * width..(i - k) * width]);
        }
        for (row, peaks) in below.chunks_exact_mut(width).zip(&mut peaks[k + 1..]) {
            if row[k] != 0.0 {
                row[k] /= own[k];
                let factor = row[k];
                subtract(&mut row[k + 1..], factor, &own[k + 1..]);
                *peaks = peak(&row[k + 1..n]);
            }
        }
    }
    m
}
