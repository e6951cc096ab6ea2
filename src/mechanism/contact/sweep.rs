//! Bodies that move far in one step: where they first touch on the way.
//!
//! What meets is searched for at the poses that the bodies reach if they go on as in the interval before. A body that moves by more than
//! its thickness is then on the other side of what it hits. Here the first touch on the way is found by conservative
//! advancement (Mirtich, Impulse-based dynamic simulation, 1996): with the distance `d` along the unit normal `n`, from the
//! first body to the second, the bodies stay apart for the share
//!
//! ```text
//! ds = d / (h (max(0, n . (v_1 - v_2)) + |w_1| r_1 + |w_2| r_2))
//! ```
//!
//! of the step, with the reach `r` of a collider from the center of its body. Polytopes are searched at the poses of the first touch. A
//! round body is held for the step by the plane through the first touch, fixed on the other body: its gap is signed however far
//! the body moves, which the distance from an edge, an axis, or a center is not. Convex bodies on both sides of a plane do not
//! overlap.

use super::ball;
use super::cylinder;
use super::manifold::{self, Manifold};
use super::meeting::{END, Meeting, Part, SLOTS};
use super::nearest::On;
use super::seam;
use super::{Ahead, Collider, Surface};
use crate::spatial::{Pose, Vec3};
use parry3d_f64::math::{Pose3, Vector};
use parry3d_f64::query::details::closest_points_support_map_support_map_with_params as closest;
use parry3d_f64::query::gjk::{GJKResult, VoronoiSimplex};
use parry3d_f64::shape::SupportMap;

pub(super) type Sides<'a> = (&'a Collider, &'a Collider);
pub(super) type Poses<'a> = (&'a Pose, &'a Pose);

/// Part of the smaller half thickness by which bodies may move, and may overlap at the predicted poses, without a sweep. At 1 the axis
/// of a capsule passes an edge, and the distance from that edge has no sign.
const THICKNESS: f64 = 0.75;

/// Part of the smaller half thickness at which bodies touch: less needs more iterations, more lets edges that are not the
/// first decide.
const TOUCHING: f64 = 1e-3;

/// Iterations of the advancement. Straight motion takes two or three; each halves the distance at least where bodies spin.
const ADVANCES: usize = 60;

/// Part of a cylinder's smaller size by which its core is within it: bodies that touch, and overlap by rounding, have a
/// normal.
const WITHIN: f64 = 0.01;

/// Cosine of the angle of a normal from that of a face or an end from which it is that: rounding of the distance, squared.
const ALONG: f64 = 1.0 - 1e-12;

/// The first touch on the way: at these poses, along the unit normal from the first to the second; none of polytopes that touch at the
/// knot.
type First = ([Pose; 2], Option<Vec3>);

/// Two bodies in the interval after a knot, as they would move if they went on as before.
pub(super) struct Sweep<'a> {
    of: Sides<'a>,
    now: Poses<'a>,
    ahead: Ahead<'a>,
    /// Bound on how much a place of one moves against the other, m.
    moved: f64,
    /// The part of it from turns, m.
    turned: f64,
}

/// Half of the least extent, m; of a point none.
pub(super) fn half_thickness(c: &Collider) -> f64 {
    match &c.surface {
        Surface::Point => f64::INFINITY,
        Surface::Sphere(radius) | Surface::Capsule { radius, .. } => *radius,
        Surface::Cylinder { radius, length } => radius.min(0.5 * length),
        Surface::Box(edges) => 0.5 * edges.iter().fold(f64::INFINITY, |m, e| m.min(*e)),
        Surface::Hull(hull) => 0.5 * hull.polytope.thickness,
        Surface::Heights(_) => f64::INFINITY,
    }
}

impl<'a> Sweep<'a> {
    pub fn new(of: Sides<'a>, now: Poses<'a>, ahead: &Ahead<'a>) -> Self {
        let mut sweep = Self {
            of,
            now,
            ahead: *ahead,
            moved: 0.0,
            turned: 0.0,
        };
        let [a, b] = [of.0, of.1].map(|c| sweep.motion(c));
        sweep.turned = (a.1 + b.1) * ahead.h.abs();
        sweep.moved = (b.0 - a.0).norm() * ahead.h.abs() + sweep.turned;
        sweep
    }

    /// Velocity of a collider's body, and how fast turns move places of it at most.
    fn motion(&self, c: &Collider) -> (Vec3, f64) {
        let Some((v, w)) = self.ahead.motion(c.body) else {
            return (Vec3::zeros(), 0.0);
        };
        let own = match c.surface {
            Surface::Point | Surface::Sphere(_) | Surface::Heights(_) => 0.0,
            Surface::Capsule { length, .. } => {
                0.5 * length * w.cross(&c.orientation.column(2)).norm()
            }
            Surface::Cylinder { .. } => {
                cylinder::reach(c) * w.cross(&c.orientation.column(2)).norm()
            }
            Surface::Box(_) | Surface::Hull(_) => cylinder::reach(c) * w.norm(),
        };
        (v, own + w.cross(&c.position).norm())
    }

    /// What bodies may move, and overlap at the predicted poses, without a sweep, m.
    fn limit(&self) -> f64 {
        THICKNESS * half_thickness(self.of.0).min(half_thickness(self.of.1))
    }

    /// How far places of the one move against the other at most, m.
    pub fn moved(&self) -> f64 {
        self.moved
    }

    /// Least extent of the thinner one, m.
    pub fn thickness(&self) -> f64 {
        2.0 * self.limit() / THICKNESS
    }

    /// Do they move so far that they may be on the other side of each other?
    pub fn is_fast(&self) -> bool {
        self.moved > self.limit() && self.moved.is_finite()
    }

    /// Poses after a share of the step.
    fn at(&self, share: f64) -> [Pose; 2] {
        let ahead = Ahead {
            h: self.ahead.h * share,
            ..self.ahead
        };
        [(self.of.0, self.now.0), (self.of.1, self.now.1)].map(|(c, p)| ahead.of(c.body, p))
    }

    /// The first touch on the way; none if they pass.
    pub fn first(&self) -> Option<First> {
        self.first_overlap(0.0)
    }

    /// Where the bodies first overlap so deep, m: no more than the radius about their cores.
    fn first_overlap(&self, depth: f64) -> Option<First> {
        let (h, thickness) = (self.ahead.h, self.limit() / THICKNESS);
        let speed = |c: &Collider| self.ahead.motion(c.body).map_or_else(Vec3::zeros, |m| m.0);
        let nearer = (speed(self.of.0) - speed(self.of.1)) * h;
        let (mut share, mut normal) = (0.0, None);
        for _ in 0..ADVANCES {
            let poses = self.at(share);
            let Some((apart, n)) = distance(self.of, (&poses[0], &poses[1])) else {
                // the first touch was that of the advance before, but for rounding
                return Some((poses, normal));
            };
            let apart = apart + depth;
            if apart < TOUCHING * thickness {
                return Some((poses, Some(n)));
            }
            normal = Some(n);
            let approach = n.dot(&nearer).max(0.0) + self.turned;
            if apart >= approach * (1.0 - share) {
                return None;
            }
            share += apart / approach;
        }
        Some((self.at(share), normal))
    }

    /// Does a face keep the bodies apart now and at the predicted poses?
    fn passes(&self, end: Poses) -> bool {
        let sides = [(self.of.0, self.now.0, 1.0), (self.of.1, self.now.1, -1.0)];
        sides.iter().any(|(c, pose, sign)| {
            let Some(s) = c.solid() else {
                return false;
            };
            s.of.faces.iter().any(|face| {
                let n = pose.r * (s.orientation * face.normal) * *sign;
                let apart = |poses| cylinder::apart(self.of, poses, &n);
                apart(self.now).min(apart(end)) > -manifold::TOUCHING
            })
        })
    }

    /// The side that a plane is fixed on: the body with more edges, if one has.
    fn held(&self) -> usize {
        usize::from(edges(self.of.1) >= edges(self.of.0))
    }

    /// Does the plane of the first touch, fixed on its body, keep the bodies apart at the knot, too? Then rest is among the velocities
    /// that it allows, and it adds no energy. A plane that turns into the other body in between would.
    fn is_apart_now(&self, poses: &[Pose; 2], n: &Vec3) -> bool {
        let side = self.held();
        let now = [self.now.0, self.now.1][side];
        let turned = now.r * poses[side].r.tr_mul(n);
        cylinder::apart(self.of, self.now, &turned) > -manifold::TOUCHING
    }

    /// Planes that hold a round body for the step, where it would overlap the other by more than it may.
    pub fn planes(&self) -> Option<Manifold> {
        if !self.is_fast() {
            return None;
        }
        // what only grazes a corner has a distance of the right sign at the end of the step
        let depth = self.limit().min(about(self.of.0) + about(self.of.1));
        self.first_overlap(depth)?;
        let (poses, n) = self.first()?;
        let end = self.at(1.0);
        let end = (&end[0], &end[1]);
        let holds = |poses: &[Pose; 2], n: &Vec3| {
            cylinder::apart(self.of, end, n) <= -self.limit()
                && self.is_apart_now(poses, n)
                && !seam::is_closed(self.of, self.now, n)
        };
        // what is long and spins may be beyond the plane of the first touch now; it is not beyond that of its nearest place
        let now = || distance(self.of, self.now).map(|(_, n)| ([*self.now.0, *self.now.1], n));
        let first = n.map(|n| (poses, n)).filter(|(p, n)| holds(p, n));
        let (poses, n) = first.or_else(|| now().filter(|(p, n)| holds(p, n)))?;
        if self.passes(end) {
            return None;
        }
        let (a, b) = self.of;
        let side = self.held();
        let (on, round) = ([a, b][side], [a, b][1 - side]);
        let out = if side == 0 { n } else { -n };
        let to_local = |c: &Collider, pose: &Pose, n: &Vec3| {
            c.orientation.tr_mul(&pose.r.tr_mul(n)).normalize()
        };
        let plane = plane(on, &to_local(on, &poses[side], &out));
        let mut found = Manifold::APART;
        let mut hold = |k: usize, part: Part| {
            let mut parts = [plane; 2];
            parts[1 - side] = part;
            found.places[k] = Meeting::Parts(parts);
        };
        match round.surface {
            Surface::Capsule { .. } => {
                hold(0, Part::Ring(-END));
                hold(1, Part::Ring(END));
            }
            Surface::Cylinder { .. } => {
                let down = to_local(round, &poses[1 - side], &-out);
                if down.xy().norm() < super::sway::LYING {
                    // an end that may come to lie flat: points fixed on its rim
                    let solid = round.solid()?;
                    let points = solid.of.points.iter().enumerate();
                    let lower = points.filter(|(_, p)| p.z * down.z > 0.0);
                    for (k, (vertex, _)) in lower.enumerate().take(SLOTS) {
                        hold(k, Part::Vertex(vertex));
                    }
                } else {
                    hold(0, Part::Ring(-END));
                    hold(1, Part::Ring(END));
                }
            }
            _ => hold(0, Part::Ring(0)),
        }
        Some(found)
    }
}

fn edges(c: &Collider) -> u8 {
    match c.surface {
        Surface::Point => 0,
        Surface::Sphere(_) => 1,
        Surface::Capsule { .. } => 2,
        Surface::Cylinder { .. } => 3,
        Surface::Box(_) | Surface::Hull(_) | Surface::Heights(_) => 4,
    }
}

/// The plane of a collider with an outward normal, collider frame: that of a face or an end where it has that normal.
fn plane(c: &Collider, n: &Vec3) -> Part {
    match c.surface {
        Surface::Box(_) | Surface::Hull(_) => {
            let faces = c.solid().map(|s| &s.of.faces);
            let face = faces.and_then(|f| f.iter().position(|f| f.normal.dot(n) > ALONG));
            face.map_or_else(|| Part::tangent(n), Part::Face)
        }
        Surface::Cylinder { .. } if n.z.abs() > ALONG => Part::End(n.z > 0.0),
        _ => Part::tangent(n),
    }
}

/// What is left of a collider without the radius about it, in the world from some origin.
pub(super) struct Core<'a> {
    pub of: &'a Collider,
    pub pose: &'a Pose,
    pub origin: Vec3,
}

/// The radius about the core, m.
pub(super) fn about(c: &Collider) -> f64 {
    match c.surface {
        Surface::Sphere(radius) | Surface::Capsule { radius, .. } => radius,
        Surface::Cylinder { radius, length } => WITHIN * radius.min(0.5 * length),
        _ => 0.0,
    }
}

impl SupportMap for Core<'_> {
    fn local_support_point(&self, direction: Vector) -> Vector {
        let n = Vec3::new(direction.x, direction.y, direction.z);
        let (c, pose) = (self.of, self.pose);
        let local = c.orientation.tr_mul(&pose.r.tr_mul(&n));
        let p = c.position + c.orientation * cylinder::farthest(c, &local, about(c));
        let p = pose.point(&p) - self.origin;
        Vector::new(p.x, p.y, p.z)
    }
}

/// Signed distance and unit normal of a point, or a ball, and a polytope, from the first to the second. A point has no radius: if it
/// rests on a face, the difference of two places has no direction, but the face has a normal.
fn distance_of_ball(of: Sides, poses: Poses) -> Option<(f64, Vec3)> {
    let (sides, poses) = ([of.0, of.1], [poses.0, poses.1]);
    let is_ball = |c: &Collider| matches!(c.surface, Surface::Point | Surface::Sphere(_));
    let ball = sides.iter().position(|c| is_ball(c))?;
    let (round, on) = (sides[ball], sides[1 - ball]);
    if !matches!(on.surface, Surface::Box(_) | Surface::Hull(_)) {
        return None;
    }
    let t = ball::touch(
        &round.ball(0.0),
        (on, On::Surface),
        poses[ball],
        poses[1 - ball],
    );
    Some((t.gap, if ball == 0 { t.normal } else { -t.normal }))
}

/// Distance of two colliders and the unit normal from the first to the second; none where their cores meet.
fn distance(of: Sides, poses: Poses) -> Option<(f64, Vec3)> {
    if let Some(found) = distance_of_ball(of, poses) {
        return Some(found);
    }
    let origin = poses.0.point(&of.0.position);
    let core = |of, pose| Core { of, pose, origin };
    let between = poses.1.point(&of.1.position) - origin;
    let found = closest(
        &Pose3::IDENTITY,
        &core(of.0, poses.0),
        &core(of.1, poses.1),
        f64::MAX,
        &mut VoronoiSimplex::new(),
        Some(Vector::new(between.x, between.y, between.z)),
    );
    let GJKResult::ClosestPoints(p, q, _) = found else {
        return None;
    };
    let span = Vec3::new(q.x - p.x, q.y - p.y, q.z - p.z);
    let apart = span.norm();
    (apart > f64::MIN_POSITIVE).then(|| (apart - about(of.0) - about(of.1), span / apart))
}
