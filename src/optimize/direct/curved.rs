//! A knot's second derivatives, by central differences of its gradient.

use super::knot::{Here, Local, Part, Shared};
use crate::dynamics::{Observe, StepError, Structure};

/// Which columns are differenced together, and what they tell.
pub struct Curved {
    /// Places of the lower triangle that may differ from zero.
    pub lower: Vec<(usize, usize)>,
    groups: Vec<Group>,
}

/// Columns that share no row.
struct Group {
    columns: Vec<usize>,
    reads: Vec<Read>,
}

/// What a component of the difference tells of an entry.
struct Read {
    row: usize,
    column: usize,
    entry: usize,
    /// 1, or half where the other triangle tells the same.
    share: f64,
}

impl Curved {
    /// From the rows of each column of a symmetric pattern. Columns that have nothing among themselves, as those of
    /// impulses, are told by the others.
    pub fn new(columns: &[Vec<usize>]) -> Self {
        let width = columns.len();
        let mut left_out = vec![false; width];
        for (i, rows) in columns.iter().enumerate() {
            left_out[i] = rows.iter().all(|r| *r != i && !left_out[*r]);
        }
        let told: Vec<Vec<usize>> = (columns.iter().zip(&left_out))
            .map(|(rows, out)| if *out { vec![] } else { rows.clone() })
            .collect();
        let mut lower = vec![];
        let mut place = std::collections::HashMap::new();
        for (j, rows) in columns.iter().enumerate() {
            for &i in rows.iter().filter(|i| **i >= j) {
                place.entry((i, j)).or_insert_with(|| {
                    lower.push((i, j));
                    lower.len() - 1
                });
            }
        }
        let groups = Structure::new(width, &told);
        let groups = groups.groups().iter().map(|group| {
            let columns: Vec<usize> = group
                .iter()
                .copied()
                .filter(|c| !told[*c].is_empty())
                .collect();
            let reads = columns.iter().flat_map(|&column| {
                let mut rows = told[column].clone();
                rows.sort_unstable();
                rows.dedup();
                let (place, left_out) = (&place, &left_out);
                rows.into_iter().map(move |row| Read {
                    row,
                    column,
                    entry: place[&(row.max(column), row.min(column))],
                    share: if row == column || left_out[row] {
                        1.0
                    } else {
                        0.5
                    },
                })
            });
            Group {
                reads: reads.collect(),
                columns,
            }
        });
        Self {
            groups: groups.filter(|g| !g.columns.is_empty()).collect(),
            lower,
        }
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

#[cfg(test)]
mod tests {
    use super::Curved;

    #[test]
    fn every_entry_is_told_once() {
        // an arrow with a tail whose end has no diagonal
        let columns = [
            vec![0, 1, 2, 3],
            vec![0, 1],
            vec![0],
            vec![0, 3, 4],
            vec![3],
        ];
        let c = Curved::new(&columns);
        assert_eq!(c.lower.len(), 7);
        let mut told = vec![0.0; c.lower.len()];
        for group in &c.groups {
            assert!(!group.columns.contains(&2) && !group.columns.contains(&4));
            for r in &group.reads {
                told[r.entry] += r.share;
            }
        }
        assert_eq!(told, [1.0; 7]);
    }
}
