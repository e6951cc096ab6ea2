//! Colliders on half-spaces.
//!
//! Points, spheres, ends of capsules and corners of boxes are balls of radius `r` (0 for points) about a point `p` of the
//! body: `phi = n . (x + R p) - r - offset`, touching at `x + R p - r n`.

use super::frame::TouchSlope;
use super::{Collider, HalfSpace, Surface, Touch};
use crate::spatial::{Mat3, Pose, Vec3, times_skew};

/// Centre, body frame, and radius of the ball a feature is.
fn ball(c: &Collider, feature: usize) -> (Vec3, f64) {
    let side = |bit: usize| if feature >> bit & 1 == 1 { 0.5 } else { -0.5 };
    let (at, radius) = match c.surface {
        Surface::Point => (Vec3::zeros(), 0.0),
        Surface::Sphere(r) => (Vec3::zeros(), r),
        Surface::Capsule { radius, length } => (Vec3::new(0.0, 0.0, side(0) * length), radius),
        Surface::Box([a, b, d]) => (Vec3::new(side(0) * a, side(1) * b, side(2) * d), 0.0),
        Surface::Cylinder { .. } => unimplemented!(),
    };
    (c.position + c.orientation * at, radius)
}

impl Collider {
    /// The parts that may touch a half-space: what tells them apart, and the arm of each from the centre of mass, body
    /// frame.
    pub(crate) fn features(&self) -> Vec<(String, Vec3)> {
        let signs = |n: usize, f: usize| {
            let sign = |bit: usize| if f >> bit & 1 == 1 { '+' } else { '-' };
            (0..n).map(sign).collect::<String>()
        };
        let (count, bits) = match self.surface {
            Surface::Point | Surface::Sphere(_) => (1, 0),
            Surface::Capsule { .. } => (2, 1),
            Surface::Box(_) => (8, 3),
            Surface::Cylinder { .. } => unimplemented!(),
        };
        (0..count)
            .map(|f| (signs(bits, f), ball(self, f).0))
            .collect()
    }
}

pub(super) fn touch(ground: &HalfSpace, c: &Collider, feature: usize, b: &Pose) -> Touch {
    let (p, r) = ball(c, feature);
    let centre = b.point(&p);
    Touch {
        gap: ground.normal.dot(&centre) - r - ground.offset,
        normal: ground.normal,
        point: centre - ground.normal * r,
    }
}

pub(super) fn slope(_ground: &HalfSpace, c: &Collider, feature: usize, b: &Pose) -> TouchSlope {
    let (p, _) = ball(c, feature);
    let mut out = TouchSlope::default();
    out.point[1] = (Mat3::identity(), -times_skew(&b.r, &p));
    out
}
