//! A knot's second derivatives, by central differences of its gradient.

use super::knot::{Here, Local, Part, Shared};
use crate::dynamics::{Observe, StepError};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Which columns are differenced together, and what they tell.
pub struct Curved {
    /// Places of the lower triangle that may differ from zero.
    pub lower: Vec<(usize, usize)>,
    groups: Vec<Group>,
}

/// Columns of one colour.
#[derive(Default)]
struct Group {
    columns: Vec<usize>,
    reads: Vec<Read>,
}

/// What a component of the difference tells of an entry.
struct Read {
    row: usize,
    column: usize,
    entry: usize,
}

impl Curved {
    /// From the rows of each column of a symmetric pattern.
    pub fn new(columns: &[Vec<usize>]) -> Self {
        let near: Vec<BTreeSet<usize>> = (columns.iter())
            .map(|rows| rows.iter().copied().collect())
            .collect();
        let colours = colours(&near);
        let count = colours.iter().flatten().max().map_or(0, |c| c + 1);
        let mut groups: Vec<Group> = (0..count).map(|_| Group::default()).collect();
        for (column, colour) in colours.iter().enumerate() {
            if let Some(c) = colour {
                groups[*c].columns.push(column);
            }
        }
        // of a row that no other column of the colour has
        let tells = |column: usize, row: usize| {
            let mut same = near[row].iter().filter(|i| colours[**i] == colours[column]);
            colours[column].filter(|_| same.all(|i| *i == column))
        };
        let mut lower = vec![];
        for (j, rows) in near.iter().enumerate() {
            for &i in rows.range(j..) {
                for (column, row) in [(j, i), (i, j)] {
                    if let Some(colour) = tells(column, row) {
                        groups[colour].reads.push(Read {
                            row,
                            column,
                            entry: lower.len(),
                        });
                        break;
                    }
                }
                lower.push((i, j));
            }
        }
        Self { lower, groups }
    }

    /// The entries at a point.
    pub fn find<D: Observe>(
        &self,
        shared: &Shared<D>,
        here: &Here,
        (l, w): (&mut Local, &mut D::Work),
        part: &Part,
        (other, by): (&mut [f64], &mut [f64]),
        out: &mut [f64],
    ) -> Result<(), StepError> {
        out.fill(0.0);
        for group in &self.groups {
            let both = (&mut *other, &mut *by);
            shared.curvature(here, l, w, part, &group.columns, both)?;
            for r in &group.reads {
                let change = 2.0 * shared.change(l, r.column);
                out[r.entry] = by[r.row] / change;
            }
        }
        Ok(())
    }
}

/// Colours of columns such that of every entry of a symmetric matrix one of its two columns is the only one of its colour in
/// that row: a star colouring, greedily, those with most entries first (Gebremedhin, Tarafdar, Manne and Pothen 2007,
/// algorithm 4.1). A column that all others share tells its row, so that these need not be kept apart by it. Columns that
/// have nothing among themselves, as those of impulses, have none and are told by the others.
fn colours(near: &[BTreeSet<usize>]) -> Vec<Option<usize>> {
    let n = near.len();
    let mut order: Vec<usize> = (0..n).filter(|i| !near[*i].is_empty()).collect();
    order.sort_by_key(|i| near[*i].len());
    let mut left_out = vec![false; n];
    for &i in &order {
        left_out[i] = near[i].iter().all(|j| *j != i && !left_out[*j]);
    }
    order.retain(|i| !left_out[*i]);
    order.sort_by_key(|i| Reverse(near[*i].len()));
    let mut out: Vec<Option<usize>> = vec![None; n];
    // how often a column sees each colour
    let mut seen = vec![vec![0; n]; n];
    for &i in &order {
        let mut taken = BTreeSet::new();
        for &j in near[i].iter().filter(|j| **j != i) {
            taken.extend(out[j]);
            for &k in near[j].iter().filter(|k| **k != i && **k != j) {
                // a path of four, i, j, k and one more of the colour of j, must not have two colours only
                let is_open = out[j].is_none_or(|colour| seen[k][colour] > 1);
                taken.extend(out[k].filter(|_| is_open));
            }
        }
        let c = (0..).find(|c| !taken.contains(c)).unwrap_or_default();
        out[i] = Some(c);
        for &j in &near[i] {
            seen[j][c] += usize::from(j != i);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Curved;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// What the groups tell of a symmetric matrix: each product with the sum of a group's columns.
    fn read(c: &Curved, matrix: &[Vec<f64>]) -> Vec<f64> {
        let mut out = vec![f64::NAN; c.lower.len()];
        for group in &c.groups {
            for r in &group.reads {
                assert!(group.columns.contains(&r.column));
                let sum = group.columns.iter().map(|j| matrix[r.row][*j]).sum();
                assert!(out[r.entry].is_nan(), "an entry is told once");
                out[r.entry] = sum;
            }
        }
        out
    }

    #[test]
    fn every_entry_is_told_once_and_as_it_is() {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(0);
        for n in 1..40 {
            let share = random.random_range(0.0..0.4);
            let mut matrix = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in 0..=i {
                    // the first is an arrow's head
                    if j == 0 || random.random_bool(share) {
                        let value = random.random_range(1.0..2.0);
                        (matrix[i][j], matrix[j][i]) = (value, value);
                    }
                }
            }
            let columns: Vec<Vec<usize>> = (matrix.iter())
                .map(|row| (0..n).filter(|i| row[*i] != 0.0).collect())
                .collect();
            let c = Curved::new(&columns);
            let expected: Vec<f64> = c.lower.iter().map(|(i, j)| matrix[*i][*j]).collect();
            assert_eq!(read(&c, &matrix), expected);
        }
    }

    #[test]
    fn what_all_share_keeps_nobody_apart() {
        // an arrow: its head, and all others together
        let mut columns: Vec<Vec<usize>> = (1..20).map(|i| vec![0, i]).collect();
        columns.insert(0, (0..20).collect());
        assert_eq!(Curved::new(&columns).groups.len(), 2);
    }
}
