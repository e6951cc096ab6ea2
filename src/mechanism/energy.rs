//! Energies of a mechanism at a configuration.

use super::{Mechanism, Motion};
use crate::spatial::Pose;

impl Mechanism {
    /// Potential energy of gravity (zero at the world's origin), springs and users' potentials, J. `winding` tells the
    /// unwound angle of a joint that has one.
    pub fn stored_energy(&self, poses: &[Pose], winding: impl Fn(usize) -> f64) -> f64 {
        let bodies = self.bodies.iter().zip(poses);
        let gravity: f64 = bodies.map(|(b, p)| -b.mass * self.gravity.dot(&p.x)).sum();
        let lines = self.springs.iter();
        let lines: f64 = lines
            .map(|s| s.energy(self.pose(poses, s.parent), &poses[s.child]))
            .sum();
        let joints = self.joints.iter().enumerate();
        let joints: f64 = joints
            .filter(|(_, j)| j.has_springs())
            .map(|(i, j)| {
                let (a, b) = self.ends(j, poses);
                j.spring_energy(&j.relative(a, b), winding(i))
            })
            .sum();
        gravity + lines + joints + self.potential_energy(poses)
    }

    /// Kinetic energy `1/2 sum m v'v + w'Jw`, J.
    pub fn kinetic_energy(&self, velocities: &[Motion]) -> f64 {
        let bodies = self.bodies.iter().zip(velocities);
        let twice: f64 = bodies
            .map(|(b, (v, w))| b.mass * v.norm_squared() + w.dot(&(b.inertia * w)))
            .sum();
        0.5 * twice
    }
}
