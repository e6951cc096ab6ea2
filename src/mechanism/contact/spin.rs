//! How fast contacts go around on bodies: by their spin about the normal, and around rims.
//!
//! A step's friction goes with the mean of the sliding velocities at both of its ends, `1/2 (B(z) + B(z+)) V+`. A point that turns about the
//! normal by `a` within the step slides along a direction that is `a/2` ahead, and its torque is `cos(a/2)` of what it should be.
//! Rotation laws that are exact for spins let bodies turn by radians within a step; where they slide the step has to be finer.
//!
//! The axis of a coin that rolls in a circle precesses about the normal, and the lowest point of its rim goes around the normal with it. A rim that
//! may come to lie flat is held at fixed points: the step has to be finer if the lowest point goes far within it, however slow the coin turns.

use super::{Collider, Pair, Surface};
use crate::mechanism::Mechanism;
use crate::spatial::{Pose, RotationLaw, Vec3};

/// Largest angle by which a contact may go around a body in a step, rad. At this angle friction still has 98.5 % of its torque. Above 0.4 rad, a rolling
/// rim was treated as one that an impact turns flat, and stopped.
pub const COARSE_SPIN: f64 = 0.35;
/// Gap at the next knot below which a contact may hold, in parts of its distance from the center of mass.
const NEAR: f64 = 1e-3;
/// Sine of the angle at a body's center between its spin and a contact above which the contact goes around: the tip of a top stays.
const AROUND: f64 = 0.1;
/// Sine of the tilt above which a rim has a lowest point: a coin that lies flat has none, and the precession of its trembling is no motion. Coins
/// tilted by 0.03 rad roll on.
const TILTED: f64 = 1e-2;

impl Mechanism {
    /// Fastest rate at which a contact with friction that may hold until the next knot goes around on a body: the body and the rate,
    /// rad/s. It is the spin about the normal of bodies that turn by more than [`COARSE_SPIN`] in an interval `h` and whose rotation law
    /// does not take that for its chord, or the rate of the lowest point of a cylinder's rim, of the cylinder's axis `e` about the
    /// normal `n`: `(w.n - (w.e) (e.n)) / (1 - (e.n)^2)`. `motion` has the velocity of a body's center of mass and its angular
    /// velocity, world frame. A ball's contact does not go around with it.
    pub(crate) fn spin_on_contacts(
        &self,
        poses: &[Pose],
        h: f64,
        motion: impl Fn(usize) -> (Vec3, Vec3),
    ) -> (usize, f64) {
        let is_fast = |b: usize| {
            !matches!(self.bodies[b].rotation, RotationLaw::Chord)
                && motion(b).1.norm() * h > COARSE_SPIN
        };
        let mut most = (0, 0.0);
        for c in self.contacts.iter().filter(|c| self.friction(c) > 0.0) {
            let colliders = match c.pair {
                Pair::Ground { collider, .. } => [None, Some(collider)],
                Pair::Between { first, second, .. } => [Some(first), Some(second)],
            };
            let colliders = colliders.map(|i| i.map(|i| &self.colliders[i]));
            let is_ball = |own: &Collider| matches!(own.surface, Surface::Sphere(_));
            // of a rolling ball's contact no direction is kept
            let may_spin = !colliders.into_iter().flatten().any(is_ball);
            let is_rim = |own: &Collider| matches!(own.surface, Surface::Cylinder { .. });
            let owners = colliders.into_iter().flatten();
            let mut going = owners
                .filter_map(|own| Some((own, own.body?)))
                .filter(|&(own, b)| is_rim(own) || may_spin && is_fast(b))
                .peekable();
            if going.peek().is_none() {
                continue;
            }
            let touch = self.touch(c, poses);
            let [from, to] = [c.parent, Some(c.child)].map(|b| {
                b.map_or_else(Vec3::zeros, |b| {
                    let (v, w) = motion(b);
                    v + w.cross(&(touch.point - poses[b].x))
                })
            });
            let gap = touch.gap + h * touch.normal.dot(&(to - from));
            for (own, b) in going {
                let (w, arm) = (motion(b).1, touch.point - poses[b].x);
                if gap >= NEAR * arm.norm() {
                    continue;
                }
                let mut rate = 0.0;
                if may_spin && is_fast(b) && w.cross(&arm).norm() > AROUND * w.norm() * arm.norm() {
                    rate = w.dot(&touch.normal).abs();
                }
                if is_rim(own) {
                    let axis = poses[b].r * own.orientation.column(2);
                    rate = rate.max(rim_rate(&axis, &touch.normal, &w));
                }
                if rate > most.1 {
                    most = (b, rate);
                }
            }
        }
        most
    }
}

/// Rate at which the lowest point of a rim goes around the normal, rad/s.
fn rim_rate(axis: &Vec3, normal: &Vec3, w: &Vec3) -> f64 {
    let along = axis.dot(normal);
    let tilt = 1.0 - along * along;
    match tilt > TILTED * TILTED {
        true => ((w.dot(normal) - w.dot(axis) * along) / tilt).abs(),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{BOX, SPHERE};
    use crate::mechanism::{
        BodySpec, ContactSpec, HalfSpaceSpec, Hull, MechanismBuilder, Rotation, Surface,
    };
    use crate::spatial::{Pose, Vec3, exp};

    /// What is flat and spins about the normal counts if it is near; a ball, what rolls, and the tip of a top do not.
    #[test]
    fn what_goes_around_on_a_plane_is_found() {
        let can = Surface::Cylinder {
            radius: 0.3,
            length: 0.5,
        };
        let tip = [
            [0.0, 0.0, -0.2],
            [0.1, 0.0, 0.1],
            [-0.1, 0.1, 0.1],
            [-0.1, -0.1, 0.1],
        ];
        let top = Surface::Hull(Hull::new(&tip).expect("it spans a volume"));
        let (up, level) = (Vec3::z() * 200.0, Vec3::x() * 200.0);
        // its sine is 0.28
        let tilted = Vec3::x() * 0.28_f64.asin();
        let axis = exp(&tilted) * Vec3::z();
        let coin = can.clone();
        let (upright, lying) = (Vec3::zeros(), Vec3::y() * std::f64::consts::FRAC_PI_2);
        for (shape, turned, height, spin, found) in [
            (BOX, upright, 0.1, up, 200.0),
            (BOX, upright, 0.1, Vec3::z() * 20.0, 0.0),
            (BOX, upright, 0.2, up, 0.0),
            (SPHERE, upright, 0.13, up, 0.0),
            (can.clone(), upright, 0.25, up, 200.0),
            (can.clone(), upright, 0.25, level, 0.0),
            // a wheel that rolls, and one that is turned about what it stands on
            (can.clone(), lying, 0.3, level, 0.0),
            (can, lying, 0.3, up, 200.0),
            (top, upright, 0.2, up, 0.0),
            // a tilted rim goes around with its axis, and not with the spin about it
            (
                coin.clone(),
                tilted,
                0.25 * 0.96 + 0.3 * 0.28,
                Vec3::z() * 20.0,
                20.0,
            ),
            (coin, tilted, 0.25 * 0.96 + 0.3 * 0.28, axis * 20.0, 0.0),
        ] {
            let body = BodySpec::new(1.0)
                .inertia([0.1; 3])
                .rotation(Rotation::Ball)
                .free()
                .contact("all", ContactSpec::new(0.5).shape(shape));
            let m = MechanismBuilder::new()
                .body("a", body)
                .half_space("ground", HalfSpaceSpec::default());
            let m = m.build().expect("valid");
            let poses = [Pose::new(Vec3::z() * height, exp(&turned))];
            let (_, spun) = m.spin_on_contacts(&poses, 0.01, |_| (Vec3::zeros(), spin));
            assert!((spun - found).abs() < 1e-9, "{height} {spin}: {spun}");
        }
    }
}
