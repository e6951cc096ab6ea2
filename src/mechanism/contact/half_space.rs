//! Colliders on half-spaces.
//!
//! Points, spheres, ends of capsules, corners of boxes, vertices of hulls and points of a cylinder's rims are balls of radius `r` (0 for
//! points) about a point `p` of the body: `phi = n . (x + R p) - r - offset`, touching at `x + R p - r n`.
//!
//! A cylinder touches by the rims of both ends, smoothed as in [`rim`](super::rim). Where an end may come to lie flat within
//! a step, the lowest point of its rim jumps from side to side: then it is held by four points fixed on the rim for that step,
//! among them where it is lowest and will be. If the rim is lower between them at the end of the step, the step is solved again
//! with its lowest point as a fifth ([`exchange`](crate::contact)).
//!
//! Of a hull with many vertices the lowest are contacts, as [`corners`](super::corners) says.

use super::cylinder::half;
use super::frame::TouchSlope;
use super::meeting::{Meeting, TURN};
use super::nearest::Ball;
use super::rim::{circle, circle_slope};
use super::sway::{FLAT, Sway};
use super::{Collider, HalfSpace, Surface, Touch};
use crate::spatial::{Mat3, Pose, Vec3, times_skew};
use std::f64::consts::TAU;

/// What of a collider touches.
enum Part {
    Ball(Ball),
    /// A cylinder's: center and axis, body frame, and radius.
    Rim(Vec3, Vec3, f64),
}

/// Half the size along an axis, with the sign that bit `bit` of the feature has.
#[inline]
fn side(feature: usize, bit: usize) -> f64 {
    if feature >> bit & 1 == 1 { 0.5 } else { -0.5 }
}

/// Where a cylinder's fixed point is on its rim, of radius one, collider frame.
fn quarter(feature: usize, held: &Meeting) -> Vec3 {
    let (turn, out) = match *held {
        Meeting::OnRim(part) => (f64::from(part) / f64::from(TURN), 1.0),
        _ => (0.25 * (feature.saturating_sub(RIMS) >> 1) as f64, WITHIN),
    };
    let (sin, cos) = (turn * TAU).sin_cos();
    Vec3::new(cos, sin, 0.0) * out
}

/// The angle of one of the four points of a rim, parts of a turn: two are where the rim is lowest now (`from`) and will be (`by` further
/// on), which are no further apart than half a turn; the other two where they leave the shortest arcs.
fn angle(place: usize, from: u16, by: u16) -> u16 {
    let [from, by] = [from, by].map(f64::from);
    let left = f64::from(TURN) - by;
    let turn = from
        + match place {
            _ if by == 0.0 => 0.25 * left * place as f64,
            0 => 0.0,
            1 => by,
            // one on either side
            2 if by > 0.5 * left => 0.5 * by,
            3 if by > 0.5 * left => by + 0.5 * left,
            2 => by + left / 3.0,
            _ => by + left * 2.0 / 3.0,
        };
    turn.round() as u16 % TURN
}

/// The angle of the lowest point of a cylinder's rims on a plane with a normal in the collider's frame; none if they are flat.
pub(super) fn lowest(n: &Vec3, flat: f64) -> Option<u16> {
    let part = (-n.y).atan2(-n.x) / TAU * f64::from(TURN);
    let part = part.rem_euclid(f64::from(TURN)).round() as u16 % TURN;
    (n.xy().norm() >= flat).then_some(part)
}

/// The lowest point of an end's rim, as it would be held, and its gap; none of what is no cylinder.
pub(super) fn lowest_point(
    ground: &HalfSpace,
    (c, feature): (&Collider, usize),
    b: &Pose,
) -> Option<(Meeting, f64)> {
    let (center, axis, radius) = rim(c, feature)?;
    let local = c.orientation.tr_mul(&b.r.tr_mul(&ground.normal));
    let tilt = ground.normal.cross(&(b.r * axis)).norm();
    let gap = ground.normal.dot(&b.point(&center)) - ground.offset - radius * tilt;
    let held = lowest(&local, 0.0).map_or(Meeting::Apart, Meeting::OnRim);
    Some((held, gap))
}

/// Part of the radius at which points fixed on a rim count for the mass that they scale impulses by.
const WITHIN: f64 = 0.99;

/// Of them: two points that are no further apart would carry as one.
const NEAR: u16 = TURN / 16;

/// Features of a cylinder: its rims, then eight fixed points; the end is the last bit of each.
const RIMS: usize = 2;

/// The end of a cylinder that a feature is of.
pub(super) fn end(c: &Collider, feature: usize) -> Option<usize> {
    matches!(c.surface, Surface::Cylinder { .. }).then_some(feature % RIMS)
}

#[inline]
fn part(c: &Collider, feature: usize, held: &Meeting) -> Part {
    let axis = |k: usize| c.orientation.column(k);
    let (center, radius) = match &c.surface {
        _ if *held == Meeting::Apart => (c.position, 0.0),
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
            let center = c.position + axis(2) * (side(feature, 0) * length);
            if feature < RIMS && !matches!(held, Meeting::OnRim(_)) {
                return Part::Rim(center, axis(2).into(), *radius);
            }
            let out = c.orientation * quarter(feature, held);
            (center + out * *radius, 0.0)
        }
        Surface::Heights(_) => unreachable!("a height field is the world's"),
        Surface::Hull(hull) => {
            let vertex = match *held {
                Meeting::Corner(vertex) => vertex,
                _ => feature,
            };
            (c.position + c.orientation * hull.vertices()[vertex], 0.0)
        }
    };
    Part::Ball(Ball { center, radius })
}

impl Collider {
    /// The features that may touch a half-space, or the triangles of a height field: the name of each, and its arm from the center of mass
    /// in the body frame.
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
                    label += &(1 + ((f - RIMS) >> 1)).to_string();
                }
                if let Surface::Hull(_) = self.surface {
                    label = (f + 1).to_string();
                }
                let arm = match part(self, f, &Meeting::Surfaces) {
                    Part::Ball(b) => b.center,
                    Part::Rim(center, ..) => center,
                };
                (label, arm)
            })
            .collect()
    }
}

/// What of a cylinder meets a half-space, at the pose of its body now and at the next knot.
pub(super) fn meeting(
    ground: &HalfSpace,
    c: &Collider,
    feature: usize,
    (now, next): (&Pose, &Pose),
    sway: &Sway,
) -> Meeting {
    let n = &ground.normal;
    let local = |pose: &Pose| c.orientation.tr_mul(&pose.r.tr_mul(n));
    let (here, there) = (local(now), local(next));
    let axis = now.r * c.orientation.column(2);
    let end = c.position + c.orientation * (Vec3::z() * -half(c) * here.z.signum());
    let point = now.point(&end) - circle(n, &axis, c.surface.radius());
    let touch = Touch {
        gap: n.dot(&point) - ground.offset,
        normal: *n,
        point,
    };
    let flat = sway.flat_at(&axis, &touch);
    let is_flat = here.xy().norm().min(there.xy().norm()) < flat;
    match (is_flat, feature < RIMS) {
        (true, true) | (false, false) => Meeting::Apart,
        (false, true) => Meeting::Surfaces,
        (true, false) => Meeting::OnRim(fixed_angle((feature - RIMS) >> 1, &here, &there)),
    }
}

/// The angle of one of the four points that hold a rim on a plane, by its normals in the collider's frame now and at the next knot.
pub(super) fn fixed_angle(place: usize, here: &Vec3, there: &Vec3) -> u16 {
    let (first, then) = (lowest(here, FLAT), lowest(there, FLAT));
    let from = first.or(then).unwrap_or(0);
    let then = then.unwrap_or(from);
    let by = (then + TURN - from) % TURN;
    // the shorter way round, from either
    let (from, by) = match (by > TURN / 2, (TURN - by) % TURN) {
        (true, back) => (then, back),
        (false, _) => (from, by),
    };
    match by < NEAR {
        true => angle(place, first.unwrap_or(from), 0),
        false => angle(place, from, by),
    }
}

/// The ball that a feature is, where it is one.
pub(super) fn ball(c: &Collider, feature: usize) -> Option<Ball> {
    match part(c, feature, &Meeting::Surfaces) {
        Part::Ball(ball) => Some(ball),
        Part::Rim(..) => None,
    }
}

/// The rim that a feature is or is fixed on, where that is one: center, axis and radius, body frame.
pub(super) fn rim(c: &Collider, feature: usize) -> Option<(Vec3, Vec3, f64)> {
    if !matches!(c.surface, Surface::Cylinder { .. }) {
        return None;
    }
    match part(c, feature % RIMS, &Meeting::Surfaces) {
        Part::Ball(_) => None,
        Part::Rim(center, axis, radius) => Some((center, axis, radius)),
    }
}

/// How a feature moves, collider frame, when a cylinder's radius grows: that fixed on its rim.
pub(super) fn fixed_by_radius(c: &Collider, feature: usize, held: &Meeting) -> Option<Vec3> {
    let on_rim = feature >= RIMS || matches!(held, Meeting::OnRim(_));
    let is_fixed = matches!(c.surface, Surface::Cylinder { .. }) && on_rim;
    is_fixed.then(|| quarter(feature, held))
}

/// The point of the body whose distance counts, where that is one fixed on it: its arm, body frame.
#[inline]
pub(super) fn arm(c: &Collider, feature: usize, held: &Meeting) -> Option<Vec3> {
    match part(c, feature, held) {
        Part::Ball(ball) => Some(ball.center),
        Part::Rim(..) => None,
    }
}

/// What of the collider: a feature, and what of it is held.
pub(super) type What<'a> = (&'a Collider, usize, &'a Meeting);

#[inline]
pub(super) fn touch(ground: &HalfSpace, (c, feature, held): What, b: &Pose) -> Touch {
    let n = ground.normal;
    let point = match part(c, feature, held) {
        Part::Ball(ball) => b.point(&ball.center) - n * ball.radius,
        Part::Rim(center, a, r) => b.point(&center) - circle(&n, &(b.r * a), r),
    };
    Touch {
        gap: n.dot(&point) - ground.offset,
        normal: n,
        point,
    }
}

pub(super) fn slope(ground: &HalfSpace, (c, feature, held): What, b: &Pose) -> TouchSlope {
    let mut out = TouchSlope::default();
    let by_dphi = match part(c, feature, held) {
        Part::Ball(ball) => -times_skew(&b.r, &ball.center),
        Part::Rim(center, axis, r) => {
            let by = circle_slope(&ground.normal, &(b.r * axis), r).1;
            by * times_skew(&b.r, &axis) - times_skew(&b.r, &center)
        }
    };
    out.point[1] = (Mat3::identity(), by_dphi);
    out
}

/// How the point moves when the collider's radius grows, world frame.
pub(super) fn by_radius(ground: &HalfSpace, (c, feature, held): What, b: &Pose) -> Option<Vec3> {
    if *held == Meeting::Apart {
        return None;
    }
    Some(match part(c, feature, held) {
        Part::Rim(_, a, _) => -circle(&ground.normal, &(b.r * a), 1.0),
        Part::Ball(_) => match fixed_by_radius(c, feature, held) {
            Some(out) => b.r * c.orientation * out,
            None => -ground.normal,
        },
    })
}

/// How the point moves when the collider's size along `axis` grows, world frame.
pub(super) fn by_size((c, feature, held): What, axis: usize, b: &Pose) -> Option<Vec3> {
    let bit = if matches!(c.surface, Surface::Box(_)) {
        axis
    } else {
        0
    };
    (*held != Meeting::Apart).then(|| b.r * c.orientation.column(axis) * side(feature, bit))
}

#[cfg(test)]
mod tests {
    use super::{NEAR, RIMS, Sway, TAU, TURN, quarter};
    use crate::mechanism::contact::rim::SMOOTH;
    use crate::mechanism::contact::samples::{
        BOX, CAPSULE, CYLINDER, POINT, SPHERE, check, check_with, grounded, hull, plain,
    };
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Mechanism, Surface};
    use crate::spatial::{Pose, Quat, Vec3, exp};

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

    /// Whichever way the lowest point goes: half a turn at most is between two points, and both places are among them.
    #[test]
    fn fixed_points_surround_the_rim() {
        let m = level(CYLINDER);
        let c = &m.colliders[0];
        let tilted = |part: u16| {
            let angle = f64::from(part) / f64::from(TURN) * TAU;
            // the normal, seen from the cylinder, away from its lowest point
            let n = Vec3::new(-angle.cos(), -angle.sin(), 5.0).normalize();
            Pose::new(
                Vec3::zeros(),
                Quat::rotation_between(&(c.orientation * n), &Vec3::z()).expect("not opposite"),
            )
        };
        let sway = Sway {
            turn: Vec3::x(),
            moved: Vec3::zeros(),
            origin: Vec3::x(),
            size: 1.0,
        };
        let step = TURN / 64;
        for (from, then) in (0..64).flat_map(|i| (0..64).map(move |k| (step * i, step * k))) {
            let poses = (&tilted(from), &tilted(then));
            let places: Vec<u16> = (0..4)
                .map(|k| {
                    let feature = RIMS + 2 * k;
                    let held = super::meeting(&m.half_spaces[0], c, feature, poses, &sway);
                    let at = quarter(feature, &held);
                    let part = at.y.atan2(at.x) / TAU * f64::from(TURN);
                    part.rem_euclid(f64::from(TURN)).round() as u16 % TURN
                })
                .collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            let arc = |k: usize| (sorted[(k + 1) % 4] + TURN - sorted[k]) % TURN;
            let largest = (0..4).map(arc).max().expect("four");
            assert!(largest <= TURN / 2, "{from} {then}: {places:?}");
            let has = |place: u16, within: u16| {
                let off = |p: &u16| (p + TURN - place) % TURN;
                places.iter().any(|p| off(p).min(TURN - off(p)) <= within)
            };
            assert!(has(from, 1) && has(then, NEAR), "{from} {then}: {places:?}");
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
        assert_eq!(m.contacts.iter().filter(below).count(), 4);
    }
}
