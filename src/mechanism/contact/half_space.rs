//! Colliders on half-spaces.
//!
//! Points, spheres, ends of capsules, corners of boxes, vertices of hulls and points of a cylinder's rims are balls of radius `r` (0 for
//! points) about a point `p` of the body: `phi = n . (x + R p) - r - offset`, touching at `x + R p - r n`.
//!
//! A cylinder has two smoothed rims and four points fixed on each. The lowest point of a rim with centre `c`, axis `a` and
//! radius `r` is `c - r rho/|rho|`, `rho = n - a (n.a)`, which leaps about when the cylinder stands. With
//! `S = sqrt(rho^2 + e^2)` and `k = r/(sqrt(1 + e^2) - e)`,
//!
//! ```text
//! phi = n.c - k (S - e) - offset,     point = c - (k/S) rho + k e (1 - e/S) n
//! ```
//!
//! is the true distance of a cylinder that lies, and that of the rim's centre where it stands; there the fixed points
//! carry it. The points are the support points of a body within the cylinder, no deeper than `e r`.

use super::frame::TouchSlope;
use super::nearest::Ball;
use super::{Collider, HalfSpace, Surface, Touch};
use crate::spatial::{Mat3, Pose, Vec3, times_skew};

/// `e`, about the tilt in rad at which the point is halfway from the rim to its centre.
const SMOOTH: f64 = 1e-4;

/// What of a collider touches.
enum Part {
    Ball(Ball),
    /// A cylinder's: centre and axis, body frame, and radius.
    Rim(Vec3, Vec3, f64),
}

/// Half the size along an axis, with the sign that bit `bit` of the feature has.
#[inline]
fn side(feature: usize, bit: usize) -> f64 {
    if feature >> bit & 1 == 1 { 0.5 } else { -0.5 }
}

/// The place of a cylinder's fixed point on its rim: axis and sign.
fn quarter(feature: usize) -> (usize, f64) {
    (
        feature >> 1 & 1,
        if feature >> 2 & 1 == 1 { 1.0 } else { -1.0 },
    )
}

/// Features of a cylinder: its rims, then eight fixed points.
const RIMS: usize = 2;

#[inline]
fn part(c: &Collider, feature: usize) -> Part {
    let axis = |k: usize| c.orientation.column(k);
    let (centre, radius) = match &c.surface {
        Surface::Point => (c.position, 0.0),
        Surface::Sphere(r) => (c.position, *r),
        Surface::Capsule { radius, length } => {
            (c.position + axis(2) * (side(feature, 0) * length), *radius)
        }
        Surface::Box([p, q, r]) => {
            let corner = axis(0) * (side(feature, 0) * p)
                + axis(1) * (side(feature, 1) * q)
                + axis(2) * (side(feature, 2) * r);
            (c.position + corner, 0.0)
        }
        Surface::Cylinder { radius, length } => {
            let centre = c.position + axis(2) * (side(feature, 0) * length);
            if feature < RIMS {
                return Part::Rim(centre, axis(2).into(), *radius);
            }
            let (k, sign) = quarter(feature - RIMS);
            (centre + axis(k) * (sign * radius), 0.0)
        }
        Surface::Heights(_) => unreachable!("a height field is the world's"),
        Surface::Hull(hull) => (c.position + c.orientation * hull.vertices()[feature], 0.0),
    };
    Part::Ball(Ball { centre, radius })
}

impl Collider {
    /// The parts that may touch a half-space: what tells them apart, and the arm of each from the centre of mass, body
    /// frame.
    pub(crate) fn features(&self) -> Vec<(String, Vec3)> {
        let signs = |n: usize, f: usize| {
            let sign = |bit: usize| if f >> bit & 1 == 1 { '+' } else { '-' };
            (0..n).map(sign).collect::<String>()
        };
        let (count, bits) = match &self.surface {
            Surface::Point | Surface::Sphere(_) => (1, 0),
            Surface::Capsule { .. } => (2, 1),
            Surface::Box(_) => (8, 3),
            Surface::Cylinder { .. } => (10, 1),
            Surface::Hull(hull) => (hull.vertices().len(), 0),
            Surface::Heights(_) => (0, 0),
        };
        (0..count)
            .map(|f| {
                let mut label = signs(bits, f);
                if matches!(self.surface, Surface::Cylinder { .. }) && f >= RIMS {
                    let (k, sign) = quarter(f - RIMS);
                    label.push(if sign > 0.0 { '+' } else { '-' });
                    label.push(['x', 'y'][k]);
                }
                if let Surface::Hull(_) = self.surface {
                    label = (f + 1).to_string();
                }
                let arm = match part(self, f) {
                    Part::Ball(b) => b.centre,
                    Part::Rim(centre, ..) => centre,
                };
                (label, arm)
            })
            .collect()
    }
}

/// A smoothed rim at a configuration: `rho`, `S` and `k`, and the point from the rim's centre.
fn rim(n: &Vec3, a: &Vec3, r: f64) -> (Vec3, f64, f64, Vec3) {
    // n - a (n.a) without its cancellation, which 1/S would magnify
    let rho = a.cross(&n.cross(a));
    let s = (rho.norm_squared() + SMOOTH * SMOOTH).sqrt();
    let k = r / ((1.0 + SMOOTH * SMOOTH).sqrt() - SMOOTH);
    let arm = rho * (-k / s) + n * (k * SMOOTH * (1.0 - SMOOTH / s));
    (rho, s, k, arm)
}

/// The ball that a feature is, where it is one.
pub(super) fn ball(c: &Collider, feature: usize) -> Option<Ball> {
    match part(c, feature) {
        Part::Ball(ball) => Some(ball),
        Part::Rim(..) => None,
    }
}

/// The point of the body whose distance counts, where that is one fixed on it: its arm, body frame.
#[inline]
pub(super) fn arm(c: &Collider, feature: usize) -> Option<Vec3> {
    match part(c, feature) {
        Part::Ball(ball) => Some(ball.centre),
        Part::Rim(..) => None,
    }
}

#[inline]
pub(super) fn touch(ground: &HalfSpace, c: &Collider, feature: usize, b: &Pose) -> Touch {
    let n = ground.normal;
    let point = match part(c, feature) {
        Part::Ball(ball) => b.point(&ball.centre) - n * ball.radius,
        Part::Rim(centre, a, r) => b.point(&centre) + rim(&n, &(b.r * a), r).3,
    };
    Touch {
        gap: n.dot(&point) - ground.offset,
        normal: n,
        point,
    }
}

pub(super) fn slope(ground: &HalfSpace, c: &Collider, feature: usize, b: &Pose) -> TouchSlope {
    let mut out = TouchSlope::default();
    let by_dphi = match part(c, feature) {
        Part::Ball(ball) => -times_skew(&b.r, &ball.centre),
        Part::Rim(centre, axis, r) => {
            let (n, a) = (ground.normal, b.r * axis);
            let (rho, s, k, _) = rim(&n, &a, r);
            // drho = -((n.a) 1 + a n') da
            let rho_by = -(Mat3::identity() * n.dot(&a) + a * n.transpose());
            let s_by = rho_by.tr_mul(&rho) / s;
            let arm_by = rho_by * (-k / s)
                + (rho + n * (SMOOTH * SMOOTH)) * s_by.transpose() * (k / (s * s));
            -times_skew(&b.r, &centre) - arm_by * times_skew(&b.r, &axis)
        }
    };
    out.point[1] = (Mat3::identity(), by_dphi);
    out
}

/// How the point moves when the collider's radius grows, world frame.
pub(super) fn by_radius(ground: &HalfSpace, c: &Collider, feature: usize, b: &Pose) -> Vec3 {
    match part(c, feature) {
        Part::Rim(_, a, _) => rim(&ground.normal, &(b.r * a), 1.0).3,
        Part::Ball(_) if matches!(c.surface, Surface::Cylinder { .. }) => {
            let (k, sign) = quarter(feature - RIMS);
            b.r * c.orientation.column(k) * sign
        }
        Part::Ball(_) => -ground.normal,
    }
}

/// How the point moves when the collider's size along `axis` grows, world frame.
pub(super) fn by_size(c: &Collider, feature: usize, axis: usize, b: &Pose) -> Vec3 {
    let bit = if matches!(c.surface, Surface::Box(_)) {
        axis
    } else {
        0
    };
    b.r * c.orientation.column(axis) * side(feature, bit)
}

#[cfg(test)]
mod tests {
    use super::SMOOTH;
    use crate::mechanism::contact::samples::{
        BOX, CAPSULE, CYLINDER, POINT, SPHERE, check, check_with, grounded, hull, plain,
    };
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Mechanism, Surface};
    use crate::spatial::{Pose, Vec3, exp};

    /// On the plane `z = 0`.
    fn level(shape: Surface) -> Mechanism {
        let mut m = plain(grounded(1, shape));
        (m.half_spaces[0].normal, m.half_spaces[0].offset) = (Vec3::z(), 0.0);
        m
    }

    fn least(m: &Mechanism, pose: Pose) -> f64 {
        let gap = |c| m.touch(c, &[pose]).gap;
        m.contacts.iter().map(gap).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn derivatives_match_differences() {
        for shape in [POINT, SPHERE, CAPSULE, BOX, CYLINDER, hull()] {
            check(&grounded(1, shape), 2);
        }
    }

    #[test]
    fn derivatives_of_a_cylinder_about_to_stand_match_differences() {
        let m = level(CYLINDER);
        let s = &mut Source::new(3);
        for tilt in [0.0, 0.3 * SMOOTH, SMOOTH, 10.0 * SMOOTH] {
            let turn = Vec3::new(tilt, 0.5 * tilt, 0.0);
            let pose = Pose::new(s.vec3() * 0.1, exp(&(Vec3::z() * 0.4)) * exp(&turn));
            for c in &m.contacts {
                check_with(&m, c, &[pose], 1e-2 * SMOOTH);
            }
        }
    }

    #[test]
    fn the_least_distance_is_that_of_the_shape() {
        let s = &mut Source::new(4);
        for _ in 0..100 {
            let pose = s.pose();
            let axis = pose.r.tr_mul(&Vec3::z());
            let z = pose.x.z;
            let flat = axis.x.hypot(axis.y);
            let cases = [
                (POINT, 0.0, 1e-15),
                (SPHERE, 0.13, 1e-15),
                (CAPSULE, 0.1 + 0.35 * axis.z.abs(), 1e-15),
                (BOX, Vec3::new(0.3, 0.175, 0.1).dot(&axis.abs()), 1e-15),
                (CYLINDER, 0.3 * flat + 0.25 * axis.z.abs(), 0.3 * SMOOTH),
            ];
            for (shape, support, tolerance) in cases {
                let gap = least(&level(shape.clone()), pose);
                let error = gap - (z - support);
                assert!(error.abs() < tolerance + 1e-15, "{shape:?} {error}");
            }
        }
    }

    #[test]
    fn a_cylinder_lies_and_stands_exactly() {
        let m = level(Surface::Cylinder {
            radius: 0.3,
            length: 0.5,
        });
        let lying = Pose::new(
            Vec3::z() * 0.7,
            exp(&(Vec3::x() * std::f64::consts::FRAC_PI_2)),
        );
        assert!((least(&m, lying) - 0.4).abs() < 1e-15);
        let standing = Pose::new(Vec3::z() * 0.7, exp(&(Vec3::z() * 0.3)));
        assert!((least(&m, standing) - 0.45).abs() < 1e-15);
        // where it touches the ground on its side, and four points beneath it
        for c in &m.contacts[..2] {
            let p = m.touch(c, &[lying]).point;
            assert!((p - Vec3::new(0.0, p.y, 0.4)).norm() < 1e-15);
        }
        let below = |c: &&crate::mechanism::Contact| m.touch(c, &[standing]).gap < 0.46;
        assert_eq!(m.contacts.iter().filter(below).count(), 5);
    }
}
