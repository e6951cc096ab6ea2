//! Points fixed on the rims of cylinders, and the contacts of which they may be exchanged within a step.
//!
//! A step that leaves one of them below what it meets is solved again with it as a contact ([`exchange`](crate::contact)).

use super::between;
use super::cylinder::half;
use super::half_space;
use super::meeting::{Meeting, SLOTS, TURN};
use super::unheld::Unheld;
use super::{Collider, Contact, Pair};
use crate::mechanism::Mechanism;
use crate::spatial::{Pose, Vec3};
use std::f64::consts::TAU;

/// A point of a cylinder's rim by its angle, in parts of a turn: how far out it is, of radius one, and where, body frame.
pub(super) fn rim_point(c: &Collider, up: bool, part: u16) -> (Vec3, Vec3) {
    let (sin, cos) = (f64::from(part) / f64::from(TURN) * TAU).sin_cos();
    let out = Vec3::new(cos, sin, 0.0);
    let end = Vec3::z() * if up { half(c) } else { -half(c) };
    let at = c.position + c.orientation * (out * c.surface.radius() + end);
    (out, at)
}

impl Mechanism {
    /// Contacts of which points of rims may be exchanged within a step: those of every cylinder's end with every half-space, and of every
    /// pair of a cylinder and what has faces.
    pub(crate) fn rims(&self) -> Vec<Vec<usize>> {
        let group = |c: &Contact| match c.pair {
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => half_space::end(&self.colliders[collider], feature)
                .map(|end| (0, half_space, collider, end)),
            Pair::Between { first, second, .. } => {
                let of = (&self.colliders[first], &self.colliders[second]);
                between::has_rims(of).then_some((1, first, second, 0))
            }
        };
        let of = |c: &Contact| group(c).map(|g| (g, c.parent, c.child));
        let mut groups: Vec<_> = self.contacts.iter().filter_map(of).collect();
        groups.sort_unstable();
        groups.dedup();
        let members = |g| {
            let all = self.contacts.iter().enumerate();
            let own = all.filter(|(_, c)| of(c) == Some(g)).map(|(i, _)| i);
            own.collect::<Vec<_>>()
        };
        groups.into_iter().map(members).collect()
    }

    /// A point of a rim that is lower than what it meets by more than `below` (m) and is not held among the contacts of a group, of which
    /// `c` is one.
    pub(crate) fn lower_point(
        &self,
        c: &Contact,
        held: &mut dyn Iterator<Item = Meeting>,
        (now, poses): (&[Pose], &[Pose]),
        below: f64,
    ) -> Option<Meeting> {
        match c.pair {
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => {
                let own = (&self.colliders[collider], feature);
                let ground = &self.half_spaces[half_space];
                let (lowest, gap) = half_space::lowest_point(ground, own, &poses[c.child])?;
                let (mut is_flat, mut is_held) = (false, false);
                for held in held {
                    is_flat |= matches!(held, Meeting::OnRim(_));
                    is_held |= held == lowest;
                }
                (gap < -below && is_flat && !is_held).then_some(lowest)
            }
            Pair::Between { first, second, .. } => {
                let (of, end) = self.sides((first, second), poses);
                let (_, now) = self.sides((first, second), now);
                let mut taken = [Meeting::Apart; SLOTS];
                for (taken, held) in taken.iter_mut().zip(held) {
                    *taken = held;
                }
                Unheld::find(of, taken, (now, end), below)
            }
        }
    }
}
