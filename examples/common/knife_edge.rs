//! A knife edge, as a user writes it.

use least_action::mechanism::{Hessian, Jacobian, Part, VelocityConstraint};
use least_action::spatial::{Pose, Vec3, skew};

/// A knife edge along x of the body's frame: its center of mass does not move along y, `(R e_y)' v = 0`, m/s.
#[derive(Clone, Copy, Debug)]
pub struct KnifeEdge;

impl VelocityConstraint for KnifeEdge {
    fn bodies(&self) -> usize {
        1
    }

    fn rows(&self) -> usize {
        1
    }

    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        out.add(0, 0, &(poses[0].r * Vec3::y()), &Vec3::zeros());
    }

    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        // d(R e) = -R [e] dphi
        let turn = poses[0].r * skew(&Vec3::y()) * -lambda[0];
        out.add((0, Part::Linear), (0, Part::Angular), &turn);
    }
}
