//! How fast bodies spin about the normals of what they slide on.
//!
//! A step's friction goes with the mean of the sliding velocities at both of its ends, `1/2 (B(z) + B(z+)) V+`. A point that turns about the
//! normal by `a` within the step slides along a direction that is `a/2` ahead, and its torque is `cos(a/2)` of what it should be.
//! Rotation laws that are exact for spins let bodies turn by radians within a step; where they slide the step has to be finer.

use super::{Contact, Pair, Surface};
use crate::mechanism::Mechanism;
use crate::spatial::{COARSE_TURN, Pose, RotationLaw, Vec3};

/// Gap at the next knot below which a contact may hold, in parts of its distance from the center of mass.
const NEAR: f64 = 1e-3;
/// Sine of the angle at a body's center between its spin and a contact above which the contact goes around: the tip of a top stays.
const AROUND: f64 = 0.1;

impl Mechanism {
    /// Fastest spin about the normal of a contact with friction that may hold until the next knot: the body and its rate, rad/s. Those
    /// count that turn by more than [`COARSE_TURN`] in an interval `h` and whose rotation law does not take that for its chord. `motion`
    /// has the velocity of a body's center of mass and its angular velocity, world frame. A ball's contact does not go around with it.
    pub(crate) fn spin_on_contacts(
        &self,
        poses: &[Pose],
        h: f64,
        motion: impl Fn(usize) -> (Vec3, Vec3),
    ) -> (usize, f64) {
        let is_fast = |b: usize| {
            !matches!(self.bodies[b].rotation, RotationLaw::Chord)
                && motion(b).1.norm() * h > COARSE_TURN
        };
        if self.contacts.is_empty() || !(0..self.bodies.len()).any(is_fast) {
            return (0, 0.0);
        }
        let goes_around = |c: &Contact, b: usize| {
            let is_ball = |i: usize| {
                let own = &self.colliders[i];
                own.body == Some(b) && matches!(own.surface, Surface::Sphere(_))
            };
            is_fast(b)
                && !match c.pair {
                    Pair::Ground { collider, .. } => is_ball(collider),
                    Pair::Between { first, second, .. } => is_ball(first) || is_ball(second),
                }
        };
        let mut most = (0, 0.0);
        for c in self.contacts.iter().filter(|c| self.friction(c) > 0.0) {
            let ends = [c.parent, Some(c.child)];
            if !ends.into_iter().flatten().any(|b| goes_around(c, b)) {
                continue;
            }
            let touch = self.touch(c, poses);
            let [from, to] = ends.map(|b| {
                b.map_or_else(Vec3::zeros, |b| {
                    let (v, w) = motion(b);
                    v + w.cross(&(touch.point - poses[b].x))
                })
            });
            let gap = touch.gap + h * touch.normal.dot(&(to - from));
            for b in ends.into_iter().flatten().filter(|b| goes_around(c, *b)) {
                let (w, arm) = (motion(b).1, touch.point - poses[b].x);
                let across = w.cross(&arm).norm() / w.norm();
                let spin = w.dot(&touch.normal).abs();
                if gap < NEAR * arm.norm() && across > AROUND * arm.norm() && spin > most.1 {
                    most = (b, spin);
                }
            }
        }
        most
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
