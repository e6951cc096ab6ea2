//! Saddle points made smaller by what their rows determine: the null-space method, block by block (Benzi, Golub and Liesen,
//! 2005, section 6).
//!
//! Let `K` be symmetric, and `B` a set of indices with `K_BB = 0` whose rows `K_BA x_A + K_BN x_N = b_B` see no fewer
//! indices `A`, and perhaps others, `N`. As many of `x_A` as there are rows follow from the rest: with pivots chosen from
//! all of `K_BA = [G F]`, `x_dep = G^-1 (b_B - F x_free - K_BN x_N)`. So `x = T w + p` with fewer unknowns `w`, which solve
//! `T'KT w = T'(b - K p)`; and the rows of what was determined tell `x_B`.
//!
//! What this saves are the fronts: eliminated one after the other with pivots on the diagonal, the same indices would make
//! neighbours of all that they touch, though the inverse of `[H G'; G 0]` has a zero block.

use super::symmetric::{Inertia, Symmetric};
use std::collections::HashMap;
use std::ops::Range;

/// Pivots of `K_BA` below this part of its largest entry determine nothing.
const SINGULAR: f64 = 1e-9;
/// Where rows are chosen once and for all, they are farther from that.
const INDEPENDENT: f64 = 1e-4;

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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Kept(usize),
    Among(usize, usize),
    Zero(usize, usize),
}

impl Block {
    fn free(&self) -> usize {
        self.among.len() - self.zero.len()
    }

    /// Numbers in a row of the factors, and in a row of the basis.
    fn widths(&self) -> (usize, usize) {
        (self.zero.len() + self.columns.len(), self.columns.len())
    }

    fn basis(&self, row: usize) -> &[f64] {
        let width = self.columns.len();
        &self.basis[row * width..(row + 1) * width]
    }

    /// Pivots, factors and the basis, of what lies in `factors`; false where its rows do not determine as many.
    fn factor(&mut self) -> bool {
        let (m, na) = (self.zero.len(), self.among.len());
        let (width, columns) = self.widths();
        self.rows.clear();
        self.rows.extend(0..m);
        self.order.clear();
        self.order.extend(0..na);
        let a = &mut self.factors;
        if eliminate(a, (m, na, width), SINGULAR, &mut self.rows, &mut self.order) < m {
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
    fn solve(&self, b: &[f64], out: &mut Vec<f64>) {
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
    fn solve_transposed(&self, b: &mut [f64]) {
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

fn subtract(to: &mut [f64], factor: f64, of: &[f64]) {
    for (to, of) in to.iter_mut().zip(of) {
        *to -= factor * of;
    }
}

fn add(to: &mut [f64], factor: f64, of: &[f64]) {
    subtract(to, -factor, of);
}

/// `L\U` of the first `n` of `width` columns of `m` rows, the rest multiplied by `L^-1`; pivots are the largest entries
/// left. How many there are above `tolerance` times the first one.
fn eliminate(
    a: &mut [f64],
    (m, n, width): (usize, usize, usize),
    tolerance: f64,
    rows: &mut [usize],
    columns: &mut [usize],
) -> usize {
    let mut first = 0.0;
    for k in 0..m {
        let mut best = (0.0, k, k);
        for (i, row) in a.chunks_exact(width).enumerate().skip(k) {
            for (j, value) in row[..n].iter().enumerate().skip(k) {
                if value.abs() > best.0 {
                    best = (value.abs(), i, j);
                }
            }
        }
        let (size, i, j) = best;
        if k == 0 {
            first = size;
        }
        if size.is_nan() || size <= tolerance * first {
            return k;
        }
        rows.swap(k, i);
        columns.swap(k, j);
        for row in a.chunks_exact_mut(width) {
            row.swap(k, j);
        }
        let (above, below) = a.split_at_mut((k + 1) * width);
        let own = &mut above[k * width..];
        if i > k {
            own.swap_with_slice(&mut below[(i - k - 1) * width..(i - k) * width]);
        }
        for row in below.chunks_exact_mut(width) {
            if row[k] != 0.0 {
                row[k] /= own[k];
                let factor = row[k];
                subtract(&mut row[k + 1..], factor, &own[k + 1..]);
            }
        }
    }
    m
}

/// Places in `reduced`, found while the pattern is.
#[derive(Default)]
struct Places {
    of: HashMap<(usize, usize), usize>,
    entries: Vec<(usize, usize)>,
}

impl Places {
    fn find(&mut self, i: usize, j: usize) -> usize {
        let (i, j) = (i.max(j), i.min(j));
        *self.of.entry((i, j)).or_insert_with(|| {
            self.entries.push((i, j));
            self.entries.len() - 1
        })
    }
}

/// The block with the rows of `zero` that are independent at these values.
fn independent(
    block: &Determined,
    row_of: &[Vec<(usize, usize)>],
    values: &[f64],
) -> Option<Determined> {
    let column: HashMap<usize, usize> = (block.among.iter().copied().zip(0..)).collect();
    let (m, n) = (block.zero.len(), block.among.len());
    if n == 0 {
        return None;
    }
    let mut a = vec![0.0; m * n];
    for (i, row) in block.zero.iter().zip(a.chunks_exact_mut(n)) {
        for (source, j) in &row_of[*i] {
            if let Some(j) = column.get(j) {
                row[*j] += values[*source];
            }
        }
    }
    let mut rows: Vec<usize> = (0..m).collect();
    let mut columns: Vec<usize> = (0..n).collect();
    let rank = eliminate(&mut a, (m, n, n), INDEPENDENT, &mut rows, &mut columns);
    rows.truncate(rank);
    rows.sort_unstable();
    (rank > 0).then(|| Determined {
        zero: rows.into_iter().map(|r| block.zero[r]).collect(),
        among: block.among.clone(),
        stage: block.stage,
    })
}

/// What each index is to the blocks, and these, without those that are not what is asked for.
fn assign(
    blocks: &[Determined],
    row_of: &[Vec<(usize, usize)>],
    values: &[f64],
) -> (Vec<Option<Role>>, Vec<Determined>) {
    let mut roles: Vec<Option<Role>> = vec![None; row_of.len()];
    // seen from a block that is not theirs
    let mut locked = vec![false; row_of.len()];
    let mut accepted = vec![];
    for block in blocks {
        let Some(block) = independent(block, row_of, values) else {
            continue;
        };
        let own: HashMap<usize, bool> = (block.among.iter().map(|i| (*i, true)))
            .chain(block.zero.iter().map(|i| (*i, false)))
            .collect();
        let is_free = own.keys().all(|i| roles[*i].is_none() && !locked[*i]);
        let seen = || block.zero.iter().flat_map(|i| &row_of[*i]);
        let is_zero = seen().all(|(_, j)| match own.get(j) {
            Some(is_among) => *is_among,
            None => !matches!(roles[*j], Some(Role::Zero(..))),
        });
        if !is_free || !is_zero {
            continue;
        }
        for (_, j) in seen() {
            locked[*j] |= roles[*j].is_none() && !own.contains_key(j);
        }
        let b = accepted.len();
        for (r, i) in block.zero.iter().enumerate() {
            roles[*i] = Some(Role::Zero(b, r));
        }
        for (r, i) in block.among.iter().enumerate() {
            roles[*i] = Some(Role::Among(b, r));
        }
        accepted.push(block);
    }
    (roles, accepted)
}

impl Condensed {
    /// Analyses a pattern as [`Symmetric::new`] does. Of every block those rows are taken that are independent at `values`,
    /// and blocks are left out that are not what is asked for: a member of `zero` sees members of `among`, members of
    /// `among` of blocks before it, and what belongs to no block. `group` is that of [`Symmetric::new`], where it does not
    /// belong to a block. None where no block is left.
    ///
    /// # Panics
    /// If an entry or a group is out of range.
    pub fn new(
        entries: &[(usize, usize)],
        values: &[f64],
        blocks: &[Determined],
        group: &[usize],
    ) -> Option<Self> {
        let mut row_of = vec![vec![]; group.len()];
        for (source, &(i, j)) in entries.iter().enumerate() {
            if i != j {
                row_of[i].push((source, j));
                row_of[j].push((source, i));
            }
        }
        let (roles, accepted) = assign(blocks, &row_of, values);
        if accepted.is_empty() {
            return None;
        }
        let (mut kept, mut groups) = (vec![], vec![]);
        let roles: Vec<Role> = (roles.into_iter().enumerate())
            .map(|(i, role)| {
                role.unwrap_or_else(|| {
                    kept.push(i);
                    groups.push(group[i]);
                    Role::Kept(kept.len() - 1)
                })
            })
            .collect();
        let mut places = vec![];
        let mut all: Vec<Block> = vec![];
        for block in accepted {
            let first = groups.len();
            groups.resize(
                first + block.among.len() - block.zero.len(),
                group[block.among[0]],
            );
            all.push(expressed(
                block,
                first..groups.len(),
                &roles,
                &all,
                &row_of,
                &mut places,
            ));
        }
        let mut out = Self {
            determined: all.iter().map(|b| b.zero.len()).sum(),
            blocks: all,
            kept,
            plain: vec![],
            pairs: vec![],
            product: vec![],
            places,
            values: vec![0.0; entries.len()],
            reduced: vec![],
            inner: Symmetric::new(&[], &[]),
            wide: vec![],
            narrow: vec![],
            particular: vec![0.0; group.len()],
            rest: vec![0.0; group.len()],
            small: vec![0.0; groups.len()],
        };
        let pattern = out.pair(entries, &roles);
        out.reduced = vec![0.0; pattern.len()];
        out.inner = Symmetric::new(&pattern, &without_gaps(groups));
        Some(out)
    }

    /// Sorts the entries by what they are between; the pattern of the smaller matrix.
    fn pair(&mut self, entries: &[(usize, usize)], roles: &[Role]) -> Vec<(usize, usize)> {
        let mut found = Places::default();
        let mut pair_of: HashMap<(usize, Other), usize> = HashMap::new();
        for (source, &(i, j)) in entries.iter().enumerate() {
            let (first, second, own) = match (roles[i], roles[j]) {
                (Role::Zero(..), _) | (_, Role::Zero(..)) => continue,
                (Role::Kept(a), Role::Kept(b)) => {
                    self.plain.push((source, found.find(a, b)));
                    self.product.push((source, i, j));
                    continue;
                }
                (Role::Among(b, r), Role::Kept(a)) | (Role::Kept(a), Role::Among(b, r)) => {
                    (b, Other::Kept(a), (source, r, 0))
                }
                (Role::Among(a, r), Role::Among(b, s)) if a <= b => {
                    (a, Other::Block(b), (source, r, s))
                }
                (Role::Among(a, r), Role::Among(b, s)) => (b, Other::Block(a), (source, s, r)),
            };
            self.product.push((source, i, j));
            let pairs = &mut self.pairs;
            let at = *pair_of.entry((first, second)).or_insert_with(|| {
                pairs.push(Pair {
                    first,
                    second,
                    entries: vec![],
                    places: 0,
                });
                pairs.len() - 1
            });
            pairs[at].entries.push(own);
        }
        for pair in &mut self.pairs {
            pair.places = self.places.len();
            let second = match &pair.second {
                Other::Kept(slot) => std::slice::from_ref(slot),
                Other::Block(b) => &self.blocks[*b].columns[..],
            };
            for p in &self.blocks[pair.first].columns {
                (self.places).extend(second.iter().map(|q| found.find(*p, *q)));
            }
        }
        found.entries
    }

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
        let mut inertia = self.inner.factor(&self.reduced, threshold)?;
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

/// A block with what it sees, in terms of the unknowns of the smaller matrix.
fn expressed(
    block: Determined,
    own: Range<usize>,
    roles: &[Role],
    before: &[Block],
    row_of: &[Vec<(usize, usize)>],
    places: &mut Vec<usize>,
) -> Block {
    let free = own.len();
    let Determined { zero, among, .. } = block;
    let place: HashMap<usize, usize> = (among.iter().copied().zip(0..)).collect();
    let (mut inside, mut seen) = (vec![], vec![]);
    for (r, i) in zero.iter().enumerate() {
        for &(source, j) in &row_of[*i] {
            match place.get(&j) {
                Some(c) => inside.push((source, r, *c)),
                None => seen.push((source, r, j)),
            }
        }
    }
    let mut others: Vec<usize> = (seen.iter())
        .flat_map(|(_, _, n)| match roles[*n] {
            Role::Kept(slot) => vec![slot],
            Role::Among(b, _) => before[b].columns.clone(),
            Role::Zero(..) => vec![],
        })
        .collect();
    others.sort_unstable();
    others.dedup();
    let columns: Vec<usize> = own.chain(others).collect();
    let column: HashMap<usize, usize> = (columns.iter().copied().zip(0..)).collect();
    let mut known = HashMap::new();
    let outside = seen.into_iter().map(|(source, r, n)| {
        let how = match roles[n] {
            Role::Among(b, row) => Seen::Row(
                b,
                row,
                *known.entry(b).or_insert_with(|| {
                    places.extend(before[b].columns.iter().map(|c| column[c]));
                    places.len() - before[b].columns.len()
                }),
            ),
            Role::Kept(slot) | Role::Zero(slot, _) => Seen::Kept(column[&slot]),
        };
        (source, r, n, how)
    });
    let outside = outside.collect();
    let (m, na) = (zero.len(), among.len());
    Block {
        factors: vec![0.0; m * (na + columns.len() - free)],
        basis: vec![0.0; na * columns.len()],
        rows: vec![],
        order: vec![],
        inside,
        outside,
        zero,
        among,
        columns,
    }
}

/// The same groups, numbered from 0 without gaps.
fn without_gaps(mut groups: Vec<usize>) -> Vec<usize> {
    let mut known: Vec<usize> = groups.clone();
    known.sort_unstable();
    known.dedup();
    for g in &mut groups {
        *g = known.partition_point(|k| k < g);
    }
    groups
}

#[cfg(test)]
mod tests;
