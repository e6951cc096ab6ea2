//! What the equations of steps determine, so that the systems of Newton's steps become small: poses up to the joints'
//! freedoms, by the rows of joints; velocities, by the way from one pose to the next; and multipliers of the momentum balances
//! up to as many, as the joints' impulses are free.

use super::contacts::Contacts;
use super::plan::Plan;
use crate::block::Determined;
use crate::dynamics::{Column, Observe};
use std::collections::BTreeSet;

/// Sets that share no member, of what each one sees.
fn apart(
    sets: impl IntoIterator<Item = (usize, Vec<usize>)>,
) -> Vec<(Vec<usize>, BTreeSet<usize>)> {
    let mut out: Vec<(Vec<usize>, BTreeSet<usize>)> = vec![];
    for (one, seen) in sets {
        let (touched, mut rest): (Vec<_>, Vec<_>) =
            (out.into_iter()).partition(|(_, all)| seen.iter().any(|i| all.contains(i)));
        let mut joined = (vec![one], seen.into_iter().collect::<BTreeSet<_>>());
        for (ones, all) in touched {
            joined.0.extend(ones);
            joined.1.extend(all);
        }
        rest.push(joined);
        out = rest;
    }
    out
}

impl<D: Observe> Plan<'_, D> {
    /// [`crate::optimize::nlp::Program::determined`]. By the structure of the equations alone: rows of the residual that see
    /// the end and no state, control or unknown are those of joints; rows of the gap whose unknowns are all copied into the
    /// next state lead from pose to pose; unknowns that are neither copied nor of contacts are impulses of joints.
    pub fn determined(&self, contacts: &Contacts) -> Vec<Determined> {
        let d = &self.dims;
        let mut of_row = vec![vec![]; d.ny + d.nf];
        let mut of_unknown = vec![vec![]; d.ny];
        for &(row, column) in self.structure.entries() {
            let column = Column::at(d, column);
            of_row[row].push(column);
            if let Column::Unknown(i) = column {
                of_unknown[i].push(row);
            }
        }
        let ends = |row: &usize| -> Vec<usize> {
            let ends = of_row[*row].iter().filter_map(|c| match c {
                Column::End(i) => Some(*i),
                _ => None,
            });
            ends.collect()
        };
        let is_of_end = |row: &usize| {
            let is_other = |c: &Column| {
                matches!(
                    c,
                    Column::State(_) | Column::Control(_) | Column::Unknown(_)
                )
            };
            !ends(row).is_empty() && !of_row[*row].iter().any(is_other)
        };
        let copied: BTreeSet<usize> = self.next.copies().map(|(_, unknown)| unknown).collect();
        let closing: Vec<usize> = (0..d.ny).filter(is_of_end).collect();
        let poses = apart(closing.iter().map(|r| (*r, ends(r))));
        let leading = self.next.own().iter().enumerate().filter_map(|(place, i)| {
            let unknowns = of_row[d.ny + i].iter().filter_map(|c| match c {
                Column::Unknown(y) => Some(*y),
                _ => None,
            });
            let unknowns: Vec<usize> = unknowns.collect();
            let is_led = !unknowns.is_empty() && unknowns.iter().all(|y| copied.contains(y));
            is_led.then_some((d.ny + place, unknowns))
        });
        let velocities = apart(leading);
        let is_balance = |r: &usize| *r < d.ny && !is_of_end(r) && !contacts.has_row(*r);
        let impulses = (0..d.ny).filter_map(|y| {
            let is_impulse = !copied.contains(&y) && !contacts.has_row(y);
            let own: Vec<usize> = of_unknown[y]
                .iter()
                .copied()
                .filter(|r| *r < d.ny)
                .collect();
            (is_impulse && own.iter().all(is_balance)).then_some((y, own))
        });
        let balances = apart(impulses);

        let row = |k: usize, r: usize| self.parameters() + self.free.len() + self.first[k].1 + r;
        let mut out = vec![];
        // what others see comes first
        for k in 0..self.steps() {
            out.extend(poses.iter().map(|(zero, among)| Determined {
                zero: zero.iter().map(|r| row(k, *r)).collect(),
                among: among.iter().map(|i| self.mover(k + 1, *i)).collect(),
                stage: k,
            }));
        }
        for k in 0..self.steps() {
            out.extend(velocities.iter().map(|(zero, among)| Determined {
                zero: zero.iter().map(|r| row(k, *r)).collect(),
                among: among.iter().map(|y| self.unknowns(k) + y).collect(),
                stage: k,
            }));
            out.extend(balances.iter().map(|(zero, among)| Determined {
                zero: zero.iter().map(|y| self.unknowns(k) + y).collect(),
                among: among.iter().map(|r| row(k, *r)).collect(),
                stage: k,
            }));
        }
        out
    }
}
