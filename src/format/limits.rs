//! What limits of joints exert, for a recording.

use super::output::Channels;
use super::recording::{Group, Interval};
use crate::mechanism::{Known, Mechanism, Quantity};

/// Forces over the step that ends at a knot, for every coordinate with limits.
pub(super) struct LimitForces {
    forces: Vec<Quantity>,
    /// Of the step from the knot last seen.
    last: Vec<Option<f64>>,
    values: Vec<Vec<Option<f64>>>,
}

impl LimitForces {
    pub fn new(m: &Mechanism) -> Self {
        let limited = m
            .coordinates()
            .filter(|&(j, i)| m.joints[j].directions[i].is_limited());
        let forces: Vec<Quantity> = limited
            .map(|(joint, direction)| Quantity::LimitForce { joint, direction })
            .collect();
        Self {
            // no step ends at the first knot
            last: vec![None; forces.len()],
            values: vec![vec![]; forces.len()],
            forces,
        }
    }

    /// Sees the next knot, which is kept or not.
    pub fn see(&mut self, known: &Known, kept: bool) {
        for ((force, last), values) in self.forces.iter().zip(&mut self.last).zip(&mut self.values)
        {
            if kept {
                values.push(*last);
            }
            *last = (!known.reactions.is_empty()).then(|| force.value(known));
        }
    }

    /// Adds a channel for each, at the knot where the limit is reached.
    pub fn add_to(self, channels: &mut Channels, m: &Mechanism) {
        for (force, values) in self.forces.iter().zip(self.values) {
            let (name, unit) = force.name(m);
            let channel = channels.add(name, &unit, Group::LimitForce, values.into_iter());
            channel.interval = Some(Interval::Before);
        }
    }
}
