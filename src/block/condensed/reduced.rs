//! `T'KT`, of what blocks express by it.
//!
//! With every entry of one triangle counted once, `K` is `L + D + L'`, and `T'KT = M + M' + T'DT` with `M = T'LT`. Of `M` a
//! block makes `T_A' W` at once, where `W` is what the entries of its members are of `T`.

use super::rectangle::add;
use super::{Block, Condensed};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// Products of so many multiplications and more go through faer's kernels, which take some hundred operations to set up.
const LARGE: usize = 3000;

/// `C = A'B`, row by row, of `A` with `n` and `B` with `width` columns.
fn multiply_transposed((a, n): (&[f64], usize), (b, width): (&[f64], usize), c: &mut Vec<f64>) {
    c.clear();
    c.resize(n * width, 0.0);
    let rows = a.len() / n;
    if rows * n * width >= LARGE {
        let a = MatRef::from_row_major_slice(a, rows, n);
        let b = MatRef::from_row_major_slice(b, rows, width);
        let c = MatMut::from_row_major_slice_mut(c, n, width);
        matmul(c, Accum::Replace, a.transpose(), b, 1.0, Par::Seq);
        return;
    }
    for (a, b) in a.chunks_exact(n).zip(b.chunks_exact(width)) {
        for (to, factor) in c.chunks_exact_mut(width).zip(a) {
            if *factor != 0.0 {
                add(to, *factor, b);
            }
        }
    }
}

impl Block {
    /// `W`
    fn widen(&self, all: &[Block], values: &[f64], places: &[u32], wide: &mut Vec<f64>) {
        let width = self.reach.len();
        wide.clear();
        wide.resize(self.among.len() * width, 0.0);
        for pair in &self.pairs {
            let other = pair.other.map(|(b, first)| {
                let columns = all[b].columns.len();
                (&all[b].basis, columns, &places[first..first + columns])
            });
            for e in &pair.entries {
                let value = values[e.source as usize];
                if value == 0.0 {
                    continue;
                }
                let (row, column) = (e.row as usize, e.column as usize);
                let row = &mut wide[row * width..(row + 1) * width];
                match other {
                    None => row[column] += value,
                    Some((basis, columns, places)) => {
                        let of = &basis[column * columns..(column + 1) * columns];
                        for (x, place) in of.iter().zip(places) {
                            row[*place as usize] += value * x;
                        }
                    }
                }
            }
        }
    }
}

impl Condensed {
    /// What entries of two indices make of `T'KT`.
    pub(super) fn reduce(&mut self, values: &[f64]) {
        let to = &mut self.between;
        to.fill(0.0);
        for (source, place) in &self.plain {
            to[*place] += values[*source];
        }
        for block in &self.blocks {
            let (columns, width) = (block.columns.len(), block.reach.len());
            if columns == 0 || width == 0 {
                continue;
            }
            block.widen(&self.blocks, values, &self.places, &mut self.wide);
            let (a, b) = ((&block.basis[..], columns), (&self.wide[..], width));
            multiply_transposed(a, b, &mut self.narrow);
            let places = &self.places[block.places..];
            for (value, place) in self.narrow.iter().zip(places) {
                to[*place as usize] += value;
            }
            for i in &block.twice {
                to[places[*i] as usize] += self.narrow[*i];
            }
        }
    }

    /// What own entries make of it in addition.
    pub(super) fn shift(&mut self, values: &[f64]) {
        let to = &mut self.reduced;
        to.copy_from_slice(&self.between);
        for (source, place) in &self.own {
            to[*place] += values[*source];
        }
        for block in &self.blocks {
            let columns = block.columns.len();
            let sums = &mut self.narrow;
            sums.clear();
            sums.resize(columns * columns, 0.0);
            let mut is_shifted = false;
            for (r, i) in block.among.iter().enumerate() {
                let own = self.shifts[*i];
                if own == 0.0 || columns == 0 {
                    continue;
                }
                is_shifted = true;
                let row = block.basis(r);
                for (p, (factor, to)) in row.iter().zip(sums.chunks_exact_mut(columns)).enumerate()
                {
                    if *factor != 0.0 {
                        add(&mut to[..=p], own * factor, &row[..=p]);
                    }
                }
            }
            if !is_shifted {
                continue;
            }
            let mut places = self.places[block.own_places..].iter();
            for (p, sums) in sums.chunks_exact(columns).enumerate() {
                for (value, place) in sums[..=p].iter().zip(&mut places) {
                    to[*place as usize] += value;
                }
            }
        }
    }
}
