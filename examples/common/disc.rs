//! A thin disc that rolls on a plane, as a user writes it.

use least_action::mechanism::{Hessian, HolonomicConstraint, Jacobian, Part, VelocityConstraint};
use least_action::spatial::{Mat3, Pose, Vec3, skew};

/// A thin disc of the given radius, m, whose axis is z of its body, on the plane z = 0.
///
/// With `d` the axis in the world, `u = z - (z'd) d` points up in the disc's plane, `s = |u|` is the sine of the tilt
/// of the axis, and the disc touches the plane at `x + r`, `r = -radius u / s`. It must not lie flat.
#[derive(Clone, Copy, Debug)]
pub struct Disc {
    pub radius: f64,
}

/// Where the disc touches the plane, and how that turns with the disc.
struct Touch {
    /// From the center, world frame, m.
    r: Vec3,
    /// `dr/dphi`
    turn: Mat3,
    /// `s` and `ds/dphi`
    sine: f64,
    sine_turn: Vec3,
    /// `d/dphi` of the last.
    sine_hessian: Mat3,
}

impl Disc {
    fn touch(&self, pose: &Pose) -> Touch {
        let z = Vec3::z();
        let d = pose.r * z;
        let c = d.z;
        let u = z - d * c;
        let s = u.norm();
        // d(d) = -R [e_z] dphi, dc = z'd(d), ds = -c dc / s
        let d_turn = -pose.r * skew(&z);
        let c_turn = d_turn.tr_mul(&z);
        let u_turn = -(d * c_turn.transpose()) - d_turn * c;
        let sine_turn = c_turn * (-c / s);
        let turn = (u_turn / s - u * sine_turn.transpose() / (s * s)) * -self.radius;
        // dc = e_z x (R'z) . dphi, and d(R'z) = [R'z] dphi; -c/s changes by -dc/s^3
        let c_hessian = skew(&z) * skew(&pose.r.tr_mul(&z));
        let sine_hessian = c_hessian * (-c / s) - c_turn * c_turn.transpose() / (s * s * s);
        Touch {
            r: u * (-self.radius / s),
            turn,
            sine: s,
            sine_turn,
            sine_hessian,
        }
    }
}

/// The disc touches the plane: `z'x - radius s = 0`, m.
impl HolonomicConstraint for Disc {
    fn bodies(&self) -> usize {
        1
    }

    fn rows(&self) -> usize {
        1
    }

    fn value(&self, poses: &[Pose], g: &mut [f64]) {
        g[0] = poses[0].x.z - self.radius * self.touch(&poses[0]).sine;
    }

    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        let turn = self.touch(&poses[0]).sine_turn;
        out.add(0, 0, &Vec3::z(), &(turn * -self.radius));
    }

    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        let block = self.touch(&poses[0]).sine_hessian * (-self.radius * lambda[0]);
        out.add((0, Part::Angular), (0, Part::Angular), &block);
    }
}

/// The point of the disc that touches does not slip along x and y of the plane, m/s:
/// `e'v + (R'(r x e))'w = 0`. The height's rate is left to the holonomic constraint.
#[derive(Clone, Copy, Debug)]
pub struct NoSlip(pub Disc);

impl VelocityConstraint for NoSlip {
    fn bodies(&self) -> usize {
        1
    }

    fn rows(&self) -> usize {
        2
    }

    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        let r = self.0.touch(&poses[0]).r;
        for (row, e) in [Vec3::x(), Vec3::y()].iter().enumerate() {
            out.add(row, 0, e, &poses[0].r.tr_mul(&r.cross(e)));
        }
    }

    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        let touch = self.0.touch(&poses[0]);
        let f = Vec3::new(lambda[0], lambda[1], 0.0);
        let torque = poses[0].r.tr_mul(&touch.r.cross(&f));
        // d(R'y) = [R'y] dphi, d(r x f) = -[f] dr
        let block = skew(&torque) - poses[0].r.transpose() * skew(&f) * touch.turn;
        out.add((0, Part::Angular), (0, Part::Angular), &block);
    }
}
