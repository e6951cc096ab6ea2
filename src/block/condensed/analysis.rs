//! What of a pattern is kept, and how the rest is expressed by it.

use super::rectangle::eliminate;
use super::{Block, Condensed, Determined, Entry, Pair, Seen, Symmetric};
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

/// A number for some of many indices, emptied at once.
struct Numbers {
    round: usize,
    of: Vec<(usize, usize)>,
}

impl Numbers {
    fn new(size: usize) -> Self {
        Self {
            round: 1,
            of: vec![(0, 0); size],
        }
    }

    fn clear(&mut self) {
        self.round += 1;
    }

    fn set(&mut self, i: usize, number: usize) {
        self.of[i] = (self.round, number);
    }

    fn get(&self, i: usize) -> Option<usize> {
        let (round, number) = self.of[i];
        (round == self.round).then_some(number)
    }

    /// Numbers from 0 for these instead of those that there were.
    fn count(&mut self, all: &[usize]) {
        self.clear();
        for (number, i) in all.iter().enumerate() {
            self.set(*i, number);
        }
    }
}

/// Entries in the rows that blocks may determine something by: sources and columns.
type Rows = Vec<Vec<(usize, usize)>>;

/// The block with the rows of `zero` that are independent at these values.
fn independent(
    block: &Determined,
    row_of: &Rows,
    values: &[f64],
    column: &mut Numbers,
) -> Option<Determined> {
    let (m, n) = (block.zero.len(), block.among.len());
    if n == 0 {
        return None;
    }
    column.count(&block.among);
    let mut a = vec![0.0; m * n];
    for (i, row) in block.zero.iter().zip(a.chunks_exact_mut(n)) {
        for (source, j) in &row_of[*i] {
            if let Some(j) = column.get(*j) {
                row[j] += values[*source];
            }
        }
    }
    let mut rows: Vec<usize> = (0..m).collect();
    let mut columns: Vec<usize> = (0..n).collect();
    let orders = (&mut rows[..], &mut columns[..]);
    let rank = eliminate(&mut a, (m, n, n), INDEPENDENT, orders, &mut vec![]);
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
    row_of: &Rows,
    values: &[f64],
) -> (Vec<Option<Role>>, Vec<Determined>) {
    const ZERO: usize = 0;
    const AMONG: usize = 1;
    let mut roles: Vec<Option<Role>> = vec![None; row_of.len()];
    // seen from a block that is not theirs
    let mut locked = vec![false; row_of.len()];
    let mut accepted = vec![];
    let mut own = Numbers::new(row_of.len());
    for block in blocks {
        let Some(block) = independent(block, row_of, values, &mut own) else {
            continue;
        };
        own.clear();
        block.among.iter().for_each(|i| own.set(*i, AMONG));
        block.zero.iter().for_each(|i| own.set(*i, ZERO));
        let mut members = block.among.iter().chain(&block.zero);
        let is_free = members.all(|i| roles[*i].is_none() && !locked[*i]);
        let seen = || block.zero.iter().flat_map(|i| &row_of[*i]);
        let is_zero = seen().all(|(_, j)| match own.get(*j) {
            Some(role) => role == AMONG,
            None => !matches!(roles[*j], Some(Role::Zero(..))),
        });
        if !is_free || !is_zero {
            continue;
        }
        for (_, j) in seen() {
            locked[*j] |= roles[*j].is_none() && own.get(*j).is_none();
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
    /// If an entry or a group is out of range, or there are more entries than 32 bits count.
    pub fn new(
        entries: &[(usize, usize)],
        values: &[f64],
        blocks: &[Determined],
        group: &[usize],
    ) -> Option<Self> {
        let dim = group.len();
        let mut is_row = vec![false; dim];
        (blocks.iter().flat_map(|b| &b.zero)).for_each(|i| is_row[*i] = true);
        let mut row_of = vec![vec![]; dim];
        for (source, &(i, j)) in entries.iter().enumerate() {
            if i != j && is_row[i] {
                row_of[i].push((source, j));
            }
            if i != j && is_row[j] {
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
        let free = accepted.iter().map(|b| b.among.len() - b.zero.len());
        let narrow = kept.len() + free.sum::<usize>();
        let mut seen = Expressed {
            column: Numbers::new(narrow),
            known: Numbers::new(accepted.len()),
            places: vec![],
        };
        let mut all: Vec<Block> = vec![];
        for block in accepted {
            let first = groups.len();
            groups.resize(first + block.among.len() - block.zero.len(), block.stage);
            let own = first..groups.len();
            let block = seen.block(block, own, &roles, &all, &row_of);
            all.push(block);
        }
        let mut out = Self {
            determined: all.iter().map(|b| b.zero.len()).sum(),
            blocks: all,
            entries: entries.len(),
            kept,
            plain: vec![],
            own: vec![],
            product: vec![],
            diagonal: vec![],
            multiplied: vec![],
            shifts: vec![0.0; dim],
            judged: vec![],
            judged_own: vec![],
            scale_between: vec![0.0; narrow],
            scale: vec![0.0; narrow],
            places: vec![],
            between: vec![],
            reduced: vec![],
            inner: Symmetric::new(&[], &[]),
            wide: vec![],
            narrow: vec![],
            peaks: vec![],
            particular: vec![0.0; dim],
            rest: vec![0.0; dim],
            small: vec![0.0; narrow],
        };
        let pattern = out.pair(entries, &roles, seen);
        out.multiplied.reserve_exact(out.product.len());
        out.between = vec![0.0; pattern.len()];
        out.reduced = vec![0.0; pattern.len()];
        out.inner = Symmetric::new(&pattern, &without_gaps(groups));
        Some(out)
    }

    /// Sorts the entries by what they are between; the pattern of the smaller matrix.
    fn pair(
        &mut self,
        entries: &[(usize, usize)],
        roles: &[Role],
        mut seen: Expressed,
    ) -> Vec<(usize, usize)> {
        // what is asked to have a place in the smaller matrix
        let (mut between, mut own) = (vec![], vec![]);
        let mut of_block: Vec<Vec<(Role, Entry)>> = vec![vec![]; self.blocks.len()];
        for (source, &(i, j)) in entries.iter().enumerate() {
            for role in [roles[i], roles[j]] {
                if let Role::Kept(place) = role {
                    let judged = if i == j {
                        &mut self.judged_own
                    } else {
                        &mut self.judged
                    };
                    judged.push((source, place));
                }
            }
            let (first, entry) = match (roles[i], roles[j]) {
                (Role::Zero(..), _) | (_, Role::Zero(..)) => continue,
                (Role::Kept(a), Role::Kept(b)) => {
                    let (list, places) = if i == j {
                        (&mut self.own, &mut own)
                    } else {
                        (&mut self.plain, &mut between)
                    };
                    list.push((source, 0));
                    places.push((a, b));
                    (None, None)
                }
                (Role::Among(b, r), Role::Among(a, _)) if i == j && a == b => {
                    self.blocks[b].own.push((source, r));
                    (None, None)
                }
                (Role::Among(b, r), other @ Role::Kept(_))
                | (other @ Role::Kept(_), Role::Among(b, r)) => (Some(b), Some((r, other))),
                (Role::Among(a, r), Role::Among(b, s)) if a <= b => {
                    (Some(a), Some((r, Role::Among(b, s))))
                }
                (Role::Among(a, r), Role::Among(b, s)) => (Some(b), Some((s, Role::Among(a, r)))),
            };
            if i == j {
                self.diagonal.push((source, i));
            } else {
                self.product.push(entry_of(source, i, j));
            }
            if let (Some(first), Some((row, other))) = (first, entry) {
                let column = match other {
                    Role::Kept(place) | Role::Among(_, place) | Role::Zero(_, place) => place,
                };
                of_block[first].push((other, entry_of(source, row, column)));
            }
        }
        let mut asked = between;
        asked.append(&mut own);
        for (b, own) in of_block.iter().enumerate() {
            self.reach(b, own, &mut seen, &mut asked);
        }
        self.places = seen.places;
        let (places, pattern) = place(&asked, self.small.len());
        let lists = self.plain.iter_mut().chain(&mut self.own);
        let count = lists
            .zip(&places)
            .map(|((_, to), place)| *to = *place as usize)
            .count();
        let first = self.places.len();
        for block in &mut self.blocks {
            block.places += first - count;
            block.own_places += first - count;
        }
        self.places.extend_from_slice(&places[count..]);
        pattern
    }

    /// What the entries of a block lead to, and the places that it asks for.
    fn reach(
        &mut self,
        b: usize,
        entries: &[(Role, Entry)],
        seen: &mut Expressed,
        asked: &mut Vec<(usize, usize)>,
    ) {
        let mut reach = vec![];
        let mut pairs: Vec<Pair> = vec![];
        let mut own_pairs = Pair {
            other: None,
            entries: vec![],
        };
        seen.column.clear();
        seen.known.clear();
        let mut add = |i: usize, column: &mut Numbers| {
            column.get(i).unwrap_or_else(|| {
                reach.push(i);
                column.set(i, reach.len() - 1);
                reach.len() - 1
            })
        };
        for &(other, entry) in entries {
            match other {
                Role::Kept(i) => own_pairs.entries.push(Entry {
                    column: add(i, &mut seen.column) as u32,
                    ..entry
                }),
                Role::Among(other, _) | Role::Zero(other, _) => {
                    let at = seen.known.get(other).unwrap_or_else(|| {
                        let first = seen.places.len();
                        let columns = &self.blocks[other].columns;
                        let places = columns.iter().map(|i| add(*i, &mut seen.column) as u32);
                        seen.places.extend(places);
                        pairs.push(Pair {
                            other: Some((other, first)),
                            entries: vec![],
                        });
                        seen.known.set(other, pairs.len() - 1);
                        pairs.len() - 1
                    });
                    pairs[at].entries.push(entry);
                }
            }
        }
        if !own_pairs.entries.is_empty() {
            pairs.push(own_pairs);
        }
        let block = &mut self.blocks[b];
        block.places = asked.len();
        for i in &block.columns {
            for j in &reach {
                if i == j {
                    block.twice.push(asked.len() - block.places);
                }
                asked.push((*i, *j));
            }
        }
        block.own_places = asked.len();
        if !block.own.is_empty() {
            for (p, i) in block.columns.iter().enumerate() {
                asked.extend(block.columns[..=p].iter().map(|j| (*i, *j)));
            }
        }
        (block.reach, block.pairs) = (reach, pairs);
    }
}

fn entry_of(source: usize, row: usize, column: usize) -> Entry {
    assert!(
        source <= u32::MAX as usize,
        "more entries than 32 bits count"
    );
    Entry {
        source: source as u32,
        row: row as u32,
        column: column as u32,
    }
}

/// The places of one triangle that are asked for, each once, and which one each request has got.
fn place(asked: &[(usize, usize)], dim: usize) -> (Vec<u32>, Vec<(usize, usize)>) {
    let mut start = vec![0; dim + 1];
    for (i, j) in asked {
        start[*i.max(j) + 1] += 1;
    }
    for i in 0..dim {
        start[i + 1] += start[i];
    }
    let mut next = start.clone();
    let mut sorted = vec![0; asked.len()];
    for (request, (i, j)) in asked.iter().enumerate() {
        let next = &mut next[*i.max(j)];
        sorted[*next] = request;
        *next += 1;
    }
    let mut known = Numbers::new(dim);
    let mut pattern = vec![];
    let mut out = vec![0; asked.len()];
    for i in 0..dim {
        known.clear();
        for &request in &sorted[start[i]..start[i + 1]] {
            let j = asked[request].0.min(asked[request].1);
            let place = known.get(j).unwrap_or_else(|| {
                pattern.push((i, j));
                known.set(j, pattern.len() - 1);
                pattern.len() - 1
            });
            out[request] = place as u32;
        }
    }
    (out, pattern)
}

/// What is needed to express blocks in terms of the unknowns of the smaller matrix.
struct Expressed {
    /// Of these, in what is looked at; and of blocks, the first of their places.
    column: Numbers,
    known: Numbers,
    places: Vec<u32>,
}

impl Expressed {
    /// A block with what it sees.
    fn block(
        &mut self,
        block: Determined,
        own: Range<usize>,
        roles: &[Role],
        before: &[Block],
        row_of: &Rows,
    ) -> Block {
        let free = own.len();
        let Determined { zero, among, .. } = block;
        let seen = || {
            zero.iter()
                .enumerate()
                .flat_map(|(r, i)| row_of[*i].iter().map(move |(source, j)| (*source, r, *j)))
        };
        let (mut inside, mut others) = (vec![], vec![]);
        self.known.clear();
        for (source, r, n) in seen() {
            match roles[n] {
                Role::Among(b, c) if b == before.len() => inside.push((source, r, c)),
                Role::Among(b, _) => {
                    if self.known.get(b).is_none() {
                        self.known.set(b, 0);
                        others.extend_from_slice(&before[b].columns);
                    }
                }
                Role::Kept(slot) => others.push(slot),
                Role::Zero(..) => {}
            }
        }
        others.sort_unstable();
        others.dedup();
        let columns: Vec<usize> = own.chain(others).collect();
        self.column.count(&columns);
        self.known.clear();
        let mut outside = vec![];
        for (source, r, n) in seen() {
            let column = |slot: &usize| self.column.get(*slot).expect("a column of those seen");
            let how = match roles[n] {
                Role::Among(b, _) if b == before.len() => continue,
                Role::Among(b, row) => {
                    let first = self.known.get(b).unwrap_or(self.places.len());
                    if first == self.places.len() {
                        self.known.set(b, first);
                        let places = before[b].columns.iter().map(|c| column(c) as u32);
                        self.places.extend(places);
                    }
                    Seen::Row(b, row, first)
                }
                Role::Kept(slot) => Seen::Kept(column(&slot)),
                Role::Zero(..) => unreachable!("members of `zero` see none of others: `assign`"),
            };
            outside.push((source, r, n, how));
        }
        let (m, na) = (zero.len(), among.len());
        Block {
            factors: vec![0.0; m * (na + columns.len() - free)],
            basis: vec![0.0; na * columns.len()],
            rows: vec![],
            order: vec![],
            inside,
            seen: Vec::with_capacity(outside.len()),
            outside,
            zero,
            among,
            columns,
            reach: vec![],
            pairs: vec![],
            own: vec![],
            places: 0,
            own_places: 0,
            twice: vec![],
        }
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
