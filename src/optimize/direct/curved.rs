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
    /// 1, or half where the other column tells the same and both are needed.
    share: f64,
}

/// What is known of the entries of a square array of second derivatives.
#[derive(Default)]
pub struct Pattern {
    /// Rows of each column that may differ from zero, the same as columns of each row.
    pub near: Vec<BTreeSet<usize>>,
    /// Pairs that differ from their mirror images: gradients along turns of a body do not commute, and the chart's second
    /// derivative is the mean of both.
    pub twisted: BTreeSet<(usize, usize)>,
}

/// Mirror images that differ by more than this share of them are two numbers, unless
const APART: f64 = 1e-4;
/// it is less than this share of the gradient: rounding of differences is some 1e-8 of it.
const ROUNDING: f64 = 1e-7;

impl Pattern {
    pub fn new(width: usize) -> Self {
        Self {
            near: vec![BTreeSet::new(); width],
            twisted: BTreeSet::new(),
        }
    }

    /// Adds what columns at a point show, whose gradient is that; where it is not a number anything is possible.
    pub fn add(&mut self, columns: &[Vec<f64>], gradient: &[f64]) {
        for (j, column) in columns.iter().enumerate() {
            for (i, &value) in column.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                self.near[i].insert(j);
                self.near[j].insert(i);
                let mirrored = columns[i][j];
                let rounding = ROUNDING * gradient[i].abs().max(gradient[j].abs());
                let same = rounding.max(APART * value.abs().max(mirrored.abs()));
                // what is not a number, or infinite, is not known to be the same
                let is_same = value.is_finite() && (value - mirrored).abs() < same;
                if i != j && !is_same {
                    self.twisted.insert((i.min(j), i.max(j)));
                }
            }
        }
    }

    fn is_twisted(&self, i: usize, j: usize) -> bool {
        self.twisted.contains(&(i.min(j), i.max(j)))
    }
}

impl Curved {
    pub fn new(pattern: &Pattern) -> Self {
        let near = &pattern.near;
        let colours = colours(pattern);
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
                let told = [(j, i), (i, j)].into_iter();
                let told = told.filter_map(|(c, r)| Some((tells(c, r)?, c, r)));
                let needed = if pattern.is_twisted(i, j) { 2 } else { 1 };
                for (colour, column, row) in told.take(needed) {
                    groups[colour].reads.push(Read {
                        row,
                        column,
                        entry: lower.len(),
                        share: 1.0 / needed as f64,
                    });
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
                out[r.entry] += r.share * by[r.row] / change;
            }
        }
        Ok(())
    }
}

/// Colours of columns such that of every entry of a symmetric matrix one of its two columns is the only one of its colour in
/// that row: a star colouring, greedily, those with most entries first (Gebremedhin, Tarafdar, Manne and Pothen 2007,
/// algorithm 4.1). A column that all others share tells its row, so that these need not be kept apart by it. Of a twisted pair
/// both columns are. Columns that have nothing among themselves, as those of impulses, have no colour and are told by the
/// others.
fn colours(pattern: &Pattern) -> Vec<Option<usize>> {
    let near = &pattern.near;
    let n = near.len();
    let mut order: Vec<usize> = (0..n).filter(|i| !near[*i].is_empty()).collect();
    order.sort_by_key(|i| near[*i].len());
    let mut left_out = vec![false; n];
    for &i in &order {
        let mut all = near[i].iter();
        left_out[i] = all.all(|&j| j != i && !left_out[j] && !pattern.is_twisted(i, j));
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
                let is_told_twice = pattern.is_twisted(i, j) || pattern.is_twisted(j, k);
                taken.extend(out[k].filter(|_| is_open || is_told_twice));
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
    use super::{Curved, Pattern};
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// What the groups tell of a matrix: each product with the sum of a group's columns.
    fn read(c: &Curved, matrix: &[Vec<f64>]) -> Vec<f64> {
        let mut out = vec![0.0; c.lower.len()];
        for group in &c.groups {
            for r in &group.reads {
                assert!(group.columns.contains(&r.column));
                let sum: f64 = group.columns.iter().map(|j| matrix[r.row][*j]).sum();
                out[r.entry] += r.share * sum;
            }
        }
        out
    }

    #[test]
    fn every_entry_is_told_as_it_is() {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(0);
        for n in 1..40 {
            let share = random.random_range(0.0..0.4);
            let mut matrix = vec![vec![0.0; n]; n];
            let mut pattern = Pattern::default();
            for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                // the first is an arrow's head
                if j == 0 || random.random_bool(share) {
                    let value = random.random_range(1.0..2.0);
                    (matrix[i][j], matrix[j][i]) = (value, value);
                }
                if i != j && random.random_bool(0.3 * share) {
                    matrix[i][j] += 0.5;
                    pattern.twisted.insert((j, i));
                }
            }
            let is_there = |i: usize, j: usize| matrix[i][j] != 0.0 || matrix[j][i] != 0.0;
            pattern.near = (0..n)
                .map(|i| (0..n).filter(|j| is_there(i, *j)).collect())
                .collect();
            let c = Curved::new(&pattern);
            let mean = |(i, j): &(usize, usize)| (matrix[*i][*j] + matrix[*j][*i]) / 2.0;
            let expected: Vec<f64> = c.lower.iter().map(mean).collect();
            assert_eq!(read(&c, &matrix), expected);
        }
    }

    #[test]
    fn what_differs_from_its_mirror_image_is_marked() {
        // a time's column is large, 0 and 1 are turns of a body with a bracket, 2 and 3 the same but for rounding
        let far = 1e8;
        let columns = vec![
            vec![2.0, 0.5, 0.0, 0.0, far],
            vec![0.3, 2.0, 0.0, 0.0, -far],
            vec![0.0, 0.0, 1.0, 0.1 + 1e-9, 1.0],
            vec![0.0, 0.0, 0.1, 1.0, 0.0],
            vec![far * (1.0 + 1e-8), -far, 1.0 + 0.5e-2, 0.0, 1e3 * far],
        ];
        let gradient = [1.0, 1.0, 1.0, 1.0, far];
        let mut pattern = Pattern::new(5);
        pattern.add(&columns, &gradient);
        // the bracket is far below what is rounding of the time's, but not of its own
        assert_eq!(pattern.twisted, [(0, 1)].into());
        assert_eq!(pattern.near[0], [0, 1, 4].into());
        assert_eq!(pattern.near[2], [2, 3, 4].into());
        // nothing is known of a column that has no numbers, and that says nothing of the others
        for unknown in [f64::NAN, f64::INFINITY] {
            let mut columns = columns.clone();
            columns[3].fill(unknown);
            let mut pattern = Pattern::new(5);
            pattern.add(&columns, &gradient);
            assert_eq!(
                pattern.twisted,
                [(0, 1), (0, 3), (1, 3), (2, 3), (3, 4)].into()
            );
            assert_eq!(pattern.near[3].len(), 5);
        }
    }

    #[test]
    fn what_all_share_keeps_nobody_apart() {
        // an arrow: its head, and all others together
        let mut near: Vec<_> = (1..20).map(|i| [0, i].into()).collect();
        near.insert(0, (0..20).collect());
        let pattern = Pattern {
            near,
            ..Pattern::default()
        };
        assert_eq!(Curved::new(&pattern).groups.len(), 2);
    }
}
