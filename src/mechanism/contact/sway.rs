//! How bodies move against each other until the next knot, and what may come to lie flat so.

use super::Touch;
use crate::spatial::Vec3;

/// Sine of the tilt below which an end is flat on what it is to meet: ten times [`SMOOTH`](super::ring::SMOOTH), above which the
/// support point is on the rim. And of how many turns of a step: in one the lowest point may come to the other side, at up to
/// twice the tilt where a blow doubles the rate.
pub(super) const FLAT: f64 = 1e-3;
const TILTS: f64 = 2.0;
/// And the largest such sine, as that of the angle between axes below which they may come to be parallel: at more there is a third of
/// a right angle left, and what turns by that in a step is met as it lies at the knot.
pub(super) const LYING: f64 = 0.5;
/// Gap below which a rim is held at the knot, in parts of the body's size: the blow has been. What falls at
/// 1 m/s is so near at one knot of a hundred, at 10 ms and 10 cm.
const HELD: f64 = 1e-3;

/// Part of a body's speed below which the point that is met rolls. The velocity of an interval is that of its middle, and the point at the
/// knot moves by half of the turn of the interval times that speed: 0.2 at 0.4 rad a step.
const ROLLS: f64 = 0.25;

/// How a body moves against another until the next knot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sway {
    /// rad, world frame.
    pub turn: Vec3,
    /// In parts of the smaller's size, by which a blow may turn it, world frame.
    pub moved: Vec3,
    /// Of the point of the body that is at the world's origin, m, and the smaller's size, m.
    pub origin: Vec3,
    pub size: f64,
}

impl Sway {
    /// Sine of the tilt of an axis from what it is to meet below which it may come to lie along it.
    pub fn flat(&self, axis: &Vec3) -> f64 {
        // spin about the axis does not tilt
        let tilts = self.turn.cross(axis).norm() + self.moved.norm();
        (FLAT + TILTS * tilts).min(LYING)
    }

    /// The same of the axis of a rim and what it meets. If it is held there and rolls, a blow turns it by no more than the point moves: a coin that
    /// rolls in a circle stays tilted.
    pub fn flat_at(&self, axis: &Vec3, touch: &Touch) -> f64 {
        let moved = (self.origin + self.turn.cross(&touch.point)).norm() / self.size;
        if touch.gap >= HELD * self.size || moved >= ROLLS * self.moved.norm() {
            return self.flat(axis);
        }
        (FLAT + TILTS * (self.turn.cross(axis).norm() + moved)).min(LYING)
    }

    /// Sine of the angle of an axis to a line of the other body below which they may come to be parallel.
    pub fn parallel(&self, axis: &Vec3) -> f64 {
        (super::ahead::TURNS * self.turn.cross(axis).norm()).min(LYING)
    }
}
