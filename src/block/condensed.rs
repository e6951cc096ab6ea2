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
mod reduced;

use super::symmetric::{Inertia, Symmetric};

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
    /// How many entries the pattern has.
    entries: usize,
    /// The index of every unknown that is kept.
    kept: Vec<usize>,
    /// Entries with both indices kept: the source and the place in `reduced`; those of one index apart.
    plain: Vec<(usize, usize)>,
    own: Vec<(usize, usize)>,
    /// Entries with no index in `B` and two indices; and own entries of indices that are not in `B`.
    product: Vec<Entry>,
    diagonal: Vec<(usize, usize)>,
    /// What of these is not zero, and the sums of the others, by index.
    multiplied: Vec<(u32, u32, f64)>,
    shifts: Vec<f64>,
    /// Entries of what is kept, and where it is: what is left of a row is judged by what the row was.
    judged: Vec<(usize, usize)>,
    judged_own: Vec<(usize, usize)>,
    /// Of those with two indices, and of all.
    scale_between: Vec<f64>,
    scale: Vec<f64>,
    /// Where in `reduced`, or among the columns of a block, numbers are added.
    places: Vec<u32>,
    /// `T'KT` but for what own entries make of it, and all of it.
    between: Vec<f64>,
    reduced: Vec<f64>,
    inner: Symmetric,
    determined: usize,
    // memory
    wide: Vec<f64>,
    narrow: Vec<f64>,
    peaks: Vec<f64>,
    particular: Vec<f64>,
    rest: Vec<f64>,
    small: Vec<f64>,
}

/// An entry of the matrix: its place in the caller's list of values, row and column.
#[derive(Clone, Copy, Debug)]
struct Entry {
    source: u32,
    row: u32,
    column: u32,
}

#[derive(Clone, Debug)]
struct Block {
    zero: Vec<usize>,
    among: Vec<usize>,
    /// Unknowns of the smaller matrix that its members depend on; the first are its own.
    columns: Vec<usize>,
    /// Entries of `K_BA`: source, row, column.
    inside: Vec<(usize, usize, usize)>,
    /// Entries of `K_BN`: source, row, index, and how that is expressed; and their values.
    outside: Vec<(usize, usize, usize, Seen)>,
    seen: Vec<f64>,
    /// `[L\U, U^-1 L^-1 F, U^-1 L^-1 K_BN T_N]`, row by row; rows and columns of `A` in the order of the pivots.
    factors: Vec<f64>,
    rows: Vec<usize>,
    order: Vec<usize>,
    /// `T_A`, row by row.
    basis: Vec<f64>,
    /// Unknowns of the smaller matrix that entries of its members lead to, and these entries: each one is in the list of
    /// one of its two blocks.
    reach: Vec<usize>,
    pairs: Vec<Pair>,
    /// Own entries of its members: source and row.
    own: Vec<(usize, usize)>,
    /// Where in `places` those in `reduced` start: for each column all of `reach`, and for each column those up to itself.
    places: usize,
    own_places: usize,
    /// Of the former, those on the diagonal.
    twice: Vec<usize>,
}

/// What a block sees of an index outside.
#[derive(Clone, Debug)]
enum Seen {
    /// It is kept, as that column of the block.
    Kept(usize),
    /// It is a row of an earlier block; the places of whose columns start there in `Condensed::places`.
    Row(usize, usize, usize),
}

/// Entries between the members of a block and those of another one, or of itself, or unknowns that are kept.
#[derive(Clone, Debug)]
struct Pair {
    /// The other block, and where in `places` those of its columns in `reach` start.
    other: Option<(usize, usize)>,
    /// The row, and the row of the other block, or the place in `reach`.
    entries: Vec<Entry>,
}

impl Condensed {
    /// Factors the matrix with these values; as [`Symmetric::factor`]. None also where a block does not determine what it
    /// did.
    ///
    /// # Panics
    /// If the values are not as many as the entries.
    pub fn factor(&mut self, values: &[f64], threshold: f64) -> Option<Inertia> {
        assert_eq!(values.len(), self.entries, "one value an entry");
        for b in 0..self.blocks.len() {
            let (before, rest) = self.blocks.split_at_mut(b);
            let block = &mut rest[0];
            block.assemble(before, values, &self.places);
            if !block.factor(&mut self.peaks) {
                return None;
            }
        }
        self.multiplied.clear();
        for e in &self.product {
            let value = values[e.source as usize];
            if value != 0.0 {
                self.multiplied.push((e.row, e.column, value));
            }
        }
        self.reduce(values);
        self.scale_between.fill(0.0);
        for (source, place) in &self.judged {
            self.scale_between[*place] = self.scale_between[*place].max(values[*source].abs());
        }
        self.factor_shifted(values, threshold)
    }

    /// [`Condensed::factor`] where nothing but own entries of indices has changed since the last one that was not None.
    pub fn factor_shifted(&mut self, values: &[f64], threshold: f64) -> Option<Inertia> {
        self.shifts.fill(0.0);
        for (source, i) in &self.diagonal {
            self.shifts[*i] += values[*source];
        }
        self.shift(values);
        self.scale.copy_from_slice(&self.scale_between);
        for (source, place) in &self.judged_own {
            self.scale[*place] = self.scale[*place].max(values[*source].abs());
        }
        let least = &self.scale;
        let mut inertia = (self.inner).factor_beside(&self.reduced, least, threshold)?;
        inertia.positive += self.determined;
        inertia.negative += self.determined;
        Some(inertia)
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
            multiplied,
            shifts,
            ..
        } = self;
        // what the rows of the blocks ask of what they determine, with all that is free at zero
        particular.fill(0.0);
        for block in &self.blocks {
            wide.clear();
            wide.extend(block.zero.iter().map(|i| b[*i]));
            for ((_, r, n, _), value) in block.outside.iter().zip(&block.seen) {
                wide[*r] -= value * particular[*n];
            }
            block.solve(wide, narrow);
            for (x, i) in narrow.iter().zip(&block.order) {
                particular[block.among[*i]] = *x;
            }
        }
        rest.copy_from_slice(b);
        multiply((multiplied, shifts), particular, rest);
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
        multiply((multiplied, shifts), b, rest);
        for block in self.blocks.iter().rev() {
            let m = block.zero.len();
            narrow.clear();
            narrow.extend(block.order[..m].iter().map(|i| rest[block.among[*i]]));
            block.solve_transposed(narrow);
            for (x, r) in narrow.iter().zip(&block.rows) {
                b[block.zero[*r]] = *x;
            }
            for ((_, r, n, _), value) in block.outside.iter().zip(&block.seen) {
                rest[*n] -= value * b[block.zero[*r]];
            }
        }
    }

    /// Indices whose own entry is not used: it is taken as zero.
    pub fn without_diagonal(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().flat_map(|b| b.zero.iter().copied())
    }
}

/// `to -= K x` of these entries: those of two indices, and own ones.
fn multiply((between, own): (&[(u32, u32, f64)], &[f64]), x: &[f64], to: &mut [f64]) {
    for ((to, x), own) in to.iter_mut().zip(x).zip(own) {
        *to -= own * x;
    }
    for &(i, j, value) in between {
        let (i, j) = (i as usize, j as usize);
        to[i] -= value * x[j];
        to[j] -= value * x[i];
    }
}

#[cfg(test)]
mod tests;
