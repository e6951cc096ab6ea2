//! What of a pattern is kept, and how the rest is expressed by it.

use super::rectangle::eliminate;
use super::{Block, Condensed, Determined, Other, Pair, Seen, Symmetric};
use std::collections::HashMap;
use std::ops::Range;

/// Rows are chosen once, and are then farther from depending on each other than they have to be ever after
/// ([`super::rectangle`]).
const INDEPENDENT: f64 = 1e-4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Kept(usize),
    Among(usize, usize),
    Zero(usize, usize),
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
    /// `among` of blocks before it, and what belongs to no block. `group` is that of [`Symmetric::new`], of what does not belong
    /// to a block; what blocks leave are groups by their stages. None where no block is left.
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
            groups.resize(first + block.among.len() - block.zero.len(), block.stage);
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
            judged: vec![],
            scale: vec![0.0; groups.len()],
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
            for role in [roles[i], roles[j]] {
                if let Role::Kept(place) = role {
                    self.judged.push((source, place));
                }
            }
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
            Role::Kept(slot) => Seen::Kept(column[&slot]),
            Role::Zero(..) => unreachable!("members of `zero` see none of others: `assign`"),
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
