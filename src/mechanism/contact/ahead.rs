//! Where bodies come to until the next knot, and how they turn against each other.

use super::sway::{LYING, Sway};
use crate::spatial::{Pose, Vec3};

/// What bodies may turn against each other in a step, in multiples of what they turned in the one before: an impact turns
/// them faster. Not derived: of 80 falls one has a step without solution with it, as two had with a rule that asks whether edges
/// come to be parallel at twice that turn.
pub(super) const TURNS: f64 = 4.0;

/// Where bodies come to in the interval that follows a knot, if they go on as in the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead<'a> {
    /// Linear and angular, six a body; empty where nothing moves.
    pub velocities: &'a [f64],
    /// Length of the interval, s.
    pub h: f64,
}

impl Ahead<'_> {
    /// They stay.
    pub const NONE: Self = Self {
        velocities: &[],
        h: 0.0,
    };

    /// Linear and angular velocity of a body.
    pub(super) fn motion(&self, body: Option<usize>) -> Option<(Vec3, Vec3)> {
        let six = self.velocities.get(6 * body?..)?.get(..6)?;
        let of = |i: usize| Vec3::from_column_slice(&six[i..i + 3]);
        Some((of(0), of(3)))
    }

    /// Angular velocity of a body against another, world frame.
    pub(super) fn spin(
        &self,
        (a, p): (Option<usize>, &Pose),
        (b, q): (Option<usize>, &Pose),
    ) -> Vec3 {
        let spin = |body, pose: &Pose| {
            let motion = self.motion(body);
            motion.map_or_else(Vec3::zeros, |(_, w)| pose.r * w)
        };
        spin(b, q) - spin(a, p)
    }

    /// May lines of two bodies turn within the interval until they are parallel, where the distance along their common normal jumps
    /// from one side to the other? Neither what the bodies turn together changes the angle, nor the spin of a body about its own line: a
    /// rod that rolls stays at its angle to an edge, however fast it rolls.
    pub(super) fn may_be_parallel(
        &self,
        lines: [Vec3; 2],
        (a, p): (Option<usize>, &Pose),
        (b, q): (Option<usize>, &Pose),
    ) -> bool {
        let turn = |body, pose: &Pose, line: &Vec3| {
            let motion = self.motion(body);
            motion.map_or_else(Vec3::zeros, |(_, w)| {
                let w = pose.r * w;
                w - line * line.dot(&w)
            })
        };
        let across = (turn(b, q, &lines[1]) - turn(a, p, &lines[0])).norm();
        let least = across.min(self.spin((a, p), (b, q)).norm());
        lines[0].cross(&lines[1]).norm() < (TURNS * least * self.h.abs()).min(LYING)
    }

    /// How two bodies move against each other, of which one has a size of so much.
    pub(super) fn sway(
        &self,
        (a, p): (Option<usize>, &Pose),
        (b, q): (Option<usize>, &Pose),
        size: f64,
    ) -> Sway {
        let speed = |body| self.motion(body).map_or_else(Vec3::zeros, |(v, _)| v);
        let at_origin = |body, pose: &Pose| {
            let motion = self.motion(body);
            motion.map_or_else(Vec3::zeros, |(v, w)| v - (pose.r * w).cross(&pose.x))
        };
        Sway {
            turn: self.spin((a, p), (b, q)) * self.h.abs(),
            moved: (speed(b) - speed(a)) * (self.h.abs() / size),
            origin: (at_origin(b, q) - at_origin(a, p)) * self.h.abs(),
            size,
        }
    }

    pub(super) fn of(&self, body: Option<usize>, pose: &Pose) -> Pose {
        self.motion(body)
            .map_or(*pose, |(v, w)| pose.moved(&(v * self.h), &(w * self.h)))
    }
}
