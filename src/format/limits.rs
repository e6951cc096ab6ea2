//! What limits and friction of joints exert, for a recording.

use super::output::Channels;
use super::recording::{Group, Interval};
use crate::mechanism::{KnotData, Mechanism, Quantity};

/// Efforts over the step that ends at a knot, for every coordinate with limits or friction.
pub(super) struct Efforts {
    forces: Vec<Quantity>,
    /// Of the step from the knot last seen.
    last: Vec<Option<f64>>,
    values: Vec<Vec<Option<f64>>>,
}

impl Efforts {
    pub fn new(m: &Mechanism) -> Self {
        let of = |(joint, direction): (usize, usize)| {
            let d = &m.joints[joint].directions[direction];
            let limit = Quantity::LimitForce { joint, direction };
            let friction = Quantity::JointFriction { joint, direction };
            [
                d.is_limited().then_some(limit),
                (d.friction > 0.0).then_some(friction),
            ]
        };
        let forces: Vec<Quantity> = m.coordinates().flat_map(of).flatten().collect();
        Self {
            // no step ends at the first knot
            last: vec![None; forces.len()],
            values: vec![vec![]; forces.len()],
            forces,
        }
    }

    /// Sees the next knot, which is kept or not.
    pub fn see(&mut self, data: &KnotData, kept: bool) {
        for ((force, last), values) in self.forces.iter().zip(&mut self.last).zip(&mut self.values)
        {
            if kept {
                values.push(*last);
            }
            *last = (!data.reactions.is_empty()).then(|| force.value(data));
        }
    }

    /// Adds a channel for each, at the knot where the step ends.
    pub fn add_to(self, channels: &mut Channels, m: &Mechanism) {
        for (force, values) in self.forces.iter().zip(self.values) {
            let (name, unit) = force.name(m);
            // friction is no larger than what moves against it
            let (group, most) = match *force {
                Quantity::JointFriction { joint, direction } => {
                    let most = m.joints[joint].directions[direction].friction;
                    (Group::JointFriction, Some(most))
                }
                _ => (Group::LimitForce, None),
            };
            let channel = channels.add(name, &unit, group, values.into_iter());
            (channel.lower, channel.upper) = (most.map(|f| -f), most);
            channel.interval = Some(Interval::Before);
        }
    }
}
