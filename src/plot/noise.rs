//! What of a recording is nothing but rounding.

use super::axis::{drawable, extent};
use crate::format::recording::{Group, Recording};

/// Below this share of what is usual, values are rounding of others.
const ROUNDING: f64 = 1e-9;
/// Below this share of the largest force, limits are not reached: interior-point steps leave a little.
const IDLE: f64 = 1e-6;

/// How large the numbers of a recording are.
pub(super) struct Sizes {
    /// m
    length: f64,
    /// s
    duration: f64,
    /// N
    force: f64,
    /// J
    energy: f64,
}

impl Sizes {
    pub(super) fn new(recording: &Recording) -> Self {
        let r = recording;
        let reach = r.lines.iter().flat_map(|l| &l.points);
        let reach = reach.chain(r.dots.iter().map(|d| &d.point)).flatten();
        let along = |axis: usize| {
            let places = r.poses.iter().flatten().map(|p| p.position[axis]);
            let (low, high) = extent(places.filter_map(drawable)).unwrap_or_default();
            high - low
        };
        let sizes = (0..3)
            .map(along)
            .chain(reach.filter_map(|v| drawable(v.abs())));
        let or_one = |v: f64| if v > 0.0 { v } else { 1.0 };
        let length = or_one(sizes.fold(0.0, f64::max));
        let ends = extent(r.time.iter().copied().filter_map(drawable));
        let largest = |unit: &str, groups: &[Group]| {
            let of = |c: &&_| -> bool {
                let c: &crate::format::recording::Channel = c;
                c.unit == unit && groups.contains(&c.group)
            };
            let values = r.channels.iter().filter(of).flat_map(|c| &c.values);
            let sizes = values.filter_map(|v| v.and_then(drawable)).map(f64::abs);
            sizes.fold(0.0, f64::max)
        };
        let forces = [
            Group::Control,
            Group::ConstraintForce,
            Group::LimitForce,
            Group::JointFriction,
            Group::Contact,
        ];
        Self {
            length,
            duration: or_one(ends.map_or(0.0, |(a, b)| b - a)),
            force: largest("N", &forces).max(largest("N m", &forces) / length),
            energy: largest("J", &[Group::Energy]),
        }
    }

    /// What is nothing to show of a group, in a unit.
    pub(super) fn rounding(&self, group: Group, unit: &str) -> f64 {
        let usual = match unit {
            "m" => self.length,
            "rad" | "" => 1.0,
            "m/s" => self.length / self.duration,
            "rad/s" => 1.0 / self.duration,
            "N" => self.force,
            "N m" => self.force * self.length,
            "J" => self.energy,
            _ => 0.0,
        };
        let share = match group {
            Group::LimitForce | Group::JointFriction => IDLE,
            _ => ROUNDING,
        };
        share * usual
    }
}
