//! Saddle points made smaller by what their rows determine: the null-space method, block by block (Benzi, Golub and Liesen,
//! 2005, section 6).
//!
//! Let `K` be symmetric, and `B` a set of indices with `K_BB = 0` whose rows `K_BA x_A + K_BN x_N = b_B` see no fewer
//! indices `A`, and perhaps others, `N`. As many of `x_A` as there are rows follow from the rest: with pivots chosen from
//! all of `K_BA = [G F]`, `x_dep = G^-1 (b_B - F x_free - K_BN x_N)`. So `x = T w + p` with fewer unknowns `w`, which solve
//! `T'KT w = T'(b - K p)`; and the rows of what was determined tell `x_B`. With `K_BB = 0` and `G` regular, the inertia of `K` is
//! that of `T'KT` and as many positive and negative eigenvalues as there are rows (Sylvester's law on the basis that `T` completes).
//!
//! What this saves are the fronts: eliminated one after the other with pivots on the diagonal, the same indices would make
//! neighbours of all that they touch, though the inverse of `[H G'; G 0]` has a zero block.

mod analysis;
mod rectangle;

use super::symmetric::{Inertia, Symmetric};
use rectangle::add;

/// Indices without entries among themselves, and those of which they determine as many.
#[derive(Clone, Debug, PartialEq)]
pub struct Determined {
    /// `B`
    pub zero: Vec<usize>,
    /// `A`, no fewer.
    pub among: Vec<usize>,
    /// What blocks of the same stage leave of `A` is eliminated side by side.
    pub stage: usize,
}

/// A matrix, without what its blocks determine.
#[derive(Clone, Debug)]
pub struct Condensed {
    blocks: Vec<Block>,
    /// The index of every unknown that is kept.
    kept: Vec<usize>,
    /// Entries with both indices kept: the source and the place in `reduced`.
    plain: Vec<(usize, usize)>,
    pairs: Vec<Pair>,
    /// Entries with no index in `B`: the source and the indices.
    product: Vec<(usize, usize, usize)>,
    /// Entries of what is kept, and where it is: what is left of a row is judged by what the row was.
    judged: Vec<(usize, usize)>,
    scale: Vec<f64>,
    places: Vec<usize>,
    values: Vec<f64>,
    reduced: Vec<f64>,
    inner: Symmetric,
    determined: usize,
    // memory
    wide: Vec<f64>,
    narrow: Vec<f64>,
    particular: Vec<f64>,
    rest: Vec<f64>,
    small: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Block {
    zero: Vec<usize>,
    among: Vec<usize>,
    /// Unknowns of the smaller matrix that its members depend on; the first are its own.
    columns: Vec<usize>,
    /// Entries of `K_BA`: source, row, column.
    inside: Vec<(usize, usize, usize)>,
    /// Entries of `K_BN`: source, row, index, and how that is expressed.
    outside: Vec<(usize, usize, usize, Seen)>,
    /// `[L\U, U^-1 L^-1 F, U^-1 L^-1 K_BN T_N]`, row by row; rows and columns of `A` in the order of the pivots.
    factors: Vec<f64>,
    rows: Vec<usize>,
    order: Vec<usize>,
    /// `T_A`, row by row.
    basis: Vec<f64>,
}

/// What a block sees of an index outside.
#[derive(Clone, Debug)]
enum Seen {
    /// It is kept, as that column of the block.
    Kept(usize),
    /// It is a row of an earlier block; the places of whose columns start there in `Condensed::places`.
    Row(usize, usize, usize),
}

/// Entries between two blocks, or between a block and an unknown that is kept.
#[derive(Clone, Debug)]
struct Pair {
    first: usize,
    second: Other,
    /// Source, and rows in both.
    entries: Vec<(usize, usize, usize)>,
    /// Where in `places` those in `reduced` start, for each column of the first all of the second.
    places: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Other {
    Kept(usize),
    Block(usize),
}

impl Condensed {
    /// Factors the matrix with these values; as [`Symmetric::factor`]. None also where a block does not determine what it
    /// did.
    ///
    /// # Panics
    /// If the values are not as many as the entries.
    pub fn factor(&mut self, values: &[f64], threshold: f64) -> Option<Inertia> {
        self.values.copy_from_slice(values);
        for b in 0..self.blocks.len() {
            let (before, rest) = self.blocks.split_at_mut(b);
            let block = &mut rest[0];
            let (width, _) = block.widths();
            let (na, free) = (block.among.len(), block.free());
            block.factors.fill(0.0);
            for &(source, r, c) in &block.inside {
                block.factors[r * width + c] += values[source];
            }
            for (source, r, _, seen) in &block.outside {
                let row = &mut block.factors[r * width + na..(r + 1) * width];
                match *seen {
                    Seen::Kept(column) => row[column - free] += values[*source],
                    Seen::Row(other, at, places) => {
                        let of = before[other].basis(at);
                        for (x, place) in of.iter().zip(&self.places[places..]) {
                            row[place - free] += values[*source] * x;
                        }
                    }
                }
            }
            if !block.factor() {
                return None;
            }
        }
        self.reduce();
        self.scale.fill(0.0);
        for (source, place) in &self.judged {
            self.scale[*place] = self.scale[*place].max(values[*source].abs());
        }
        let least = &self.scale;
        let mut inertia = (self.inner).factor_beside(&self.reduced, least, threshold)?;
        inertia.positive += self.determined;
        inertia.negative += self.determined;
        Some(inertia)
    }

    /// `T'KT`
    fn reduce(&mut self) {
        let values = &self.values;
        self.reduced.fill(0.0);
        for (source, place) in &self.plain {
            self.reduced[*place] += values[*source];
        }
        for pair in &self.pairs {
            let first = &self.blocks[pair.first];
            let (rows, columns) = (first.among.len(), first.columns.len());
            let places = &self.places[pair.places..];
            let b = match pair.second {
                Other::Block(b) => b,
                Other::Kept(slot) => {
                    for (source, r, _) in &pair.entries {
                        let row = first.basis(*r).iter().zip(&first.columns);
                        for ((basis, column), place) in row.zip(places) {
                            let both = if *column == slot { 2.0 } else { 1.0 };
                            self.reduced[*place] += both * values[*source] * basis;
                        }
                    }
                    continue;
                }
            };
            let (second, is_own) = (&self.blocks[b], b == pair.first);
            let width = second.columns.len();
            if columns == 0 || width == 0 {
                continue;
            }
            self.wide.clear();
            self.wide.resize(rows * width, 0.0);
            for &(source, r, s) in &pair.entries {
                let value = values[source];
                add(
                    &mut self.wide[r * width..(r + 1) * width],
                    value,
                    second.basis(s),
                );
                if is_own && r != s {
                    add(
                        &mut self.wide[s * width..(s + 1) * width],
                        value,
                        second.basis(r),
                    );
                }
            }
            self.narrow.clear();
            self.narrow.resize(columns * width, 0.0);
            for (r, row) in self.wide.chunks_exact(width).enumerate() {
                for (to, factor) in self.narrow.chunks_exact_mut(width).zip(first.basis(r)) {
                    if *factor != 0.0 {
                        add(to, *factor, row);
                    }
                }
            }
            let all = self
                .narrow
                .chunks_exact(width)
                .zip(places.chunks_exact(width));
            for (p, (row, places)) in all.enumerate() {
                for (q, (value, place)) in row.iter().zip(places).enumerate() {
                    if is_own {
                        // both triangles are there
                        if q <= p {
                            self.reduced[*place] += value;
                        }
                    } else {
                        let is_diagonal = first.columns[p] == second.columns[q];
                        self.reduced[*place] += if is_diagonal { 2.0 * value } else { *value };
                    }
                }
            }
        }
    }

    /// `x = K^-1 b` in the place of `b`.
    ///
    /// # Panics
    /// If `b` has another length than the matrix.
    pub fn solve(&mut self, b: &mut [f64]) {
        assert_eq!(b.len(), self.particular.len(), "one number an index");
        let Self {
            particular,
            rest,
            narrow,
            wide,
            small,
            values,
            ..
        } = self;
        // what the rows of the blocks ask of what they determine, with all that is free at zero
        particular.fill(0.0);
        for block in &self.blocks {
            wide.clear();
            wide.extend(block.zero.iter().map(|i| b[*i]));
            for (source, r, n, _) in &block.outside {
                wide[*r] -= values[*source] * particular[*n];
            }
            block.solve(wide, narrow);
            for (x, i) in narrow.iter().zip(&block.order) {
                particular[block.among[*i]] = *x;
            }
        }
        rest.copy_from_slice(b);
        multiply(&self.product, values, particular, rest);
        for (to, i) in small.iter_mut().zip(&self.kept) {
            *to = rest[*i];
        }
        small[self.kept.len()..].fill(0.0);
        for block in &self.blocks {
            for (r, i) in block.among.iter().enumerate() {
                for (basis, column) in block.basis(r).iter().zip(&block.columns) {
                    small[*column] += basis * rest[*i];
                }
            }
        }
        self.inner.solve(small);
        rest.copy_from_slice(b);
        for (x, i) in small.iter().zip(&self.kept) {
            b[*i] = *x;
        }
        for block in &self.blocks {
            for (r, i) in block.among.iter().enumerate() {
                let own = block.basis(r).iter().zip(&block.columns);
                b[*i] = particular[*i] + own.map(|(z, column)| z * small[*column]).sum::<f64>();
            }
            block.zero.iter().for_each(|i| b[*i] = 0.0);
        }
        // what the rows of what was determined leave is for the blocks' own
        multiply(&self.product, values, b, rest);
        for block in self.blocks.iter().rev() {
            let m = block.zero.len();
            narrow.clear();
            narrow.extend(block.order[..m].iter().map(|i| rest[block.among[*i]]));
            block.solve_transposed(narrow);
            for (x, r) in narrow.iter().zip(&block.rows) {
                b[block.zero[*r]] = *x;
            }
            for (source, r, n, _) in &block.outside {
                rest[*n] -= values[*source] * b[block.zero[*r]];
            }
        }
    }

    /// Indices whose own entry is not used: it is taken as zero.
    pub fn without_diagonal(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().flat_map(|b| b.zero.iter().copied())
    }
}

/// `to -= K x` of these entries.
fn multiply(product: &[(usize, usize, usize)], values: &[f64], x: &[f64], to: &mut [f64]) {
    for &(source, i, j) in product {
        to[i] -= values[source] * x[j];
        if i != j {
            to[j] -= values[source] * x[i];
        }
    }
}

#[cfg(test)]
mod tests;
