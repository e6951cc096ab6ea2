//! Finds the triangle, edge or corner of a height field that a ball or a point overlaps at the end of a step.
//!
//! At its knot, a step selects three triangles that a ball may meet, by the predicted pose. A ball larger than several cells may meet more of
//! them, and impulses may lead it to others. The triangle that it overlaps most at the end of the step becomes a contact, in place of the
//! one with the smallest impulse, and the step is solved again ([`exchange`](crate::contact)).
//!
//! The ball must be outside of a new contact's surface at the knot, or the impulse would throw it. That surface is
//!
//! - the plane of the triangle, if the nearest point is in its interior and the ball is above that plane at the knot;
//! - the triangle, if the nearest point is on its edge or corner and the normal there turns little within the step;
//! - otherwise a plane through the edge or corner. Its normal points from there to the ball's center at the end of the step. If the
//!   ball crosses a ridge within the step, it intersects this plane at the knot. The plane is then rotated about the edge or corner until it is
//!   tangent to the ball at the knot.
//!
//! A point meets the plane of the first triangle that its way goes through.

use super::heights::Heights;
use super::meeting::{Meeting, Part};
use super::nearest::{Ball, Nearest};
use super::{Collider, manifold};
use crate::spatial::{Mat3, Pose, Vec3};
use std::f64::consts::TAU;

type Poses<'a> = (&'a Pose, &'a Pose);

/// Cosine of the angle by which the normal of a triangle's edge or corner may turn within a step in which the triangle is held: impulses act
/// along the normal at the knot, and lose a fiftieth of what they do along the one at the end.
const TURNS: f64 = 0.98;
/// Part of the distance between a ball's center and an edge or corner by which the ball is outside a plane through that at the knot: more than the
/// normal is rounded by when it is stored (4e-4 rad).
const OUTSIDE: f64 = 1e-3;
/// Part of its radius by which a ball that touches an edge may be inside a plane through that, because its normal is rounded.
const ROUNDED: f64 = 1e-6;
/// Triangles that the way of a point is followed through at most.
const CROSSED: usize = 256;
/// Angles of a turn, and directions along an axis of an octahedron, that a stored normal has.
const ANGLES: f64 = 65_536.0;

/// An edge or a corner of the grid: the number of the corner from which it goes on, and where to: nowhere, along x, along y or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feature {
    pub corner: usize,
    pub along: [usize; 2],
}

impl Feature {
    pub fn number(self) -> usize {
        4 * self.corner + self.along[0] + 2 * self.along[1]
    }

    pub fn of(number: usize) -> Self {
        Self {
            corner: number / 4,
            along: [number & 1, number >> 1 & 1],
        }
    }
}

impl Heights {
    /// Where a feature begins and ends.
    pub(super) fn ends(&self, feature: Feature) -> (Vec3, Vec3) {
        let [i, j] = self.indices(feature.corner);
        let [a, b] = feature.along;
        (self.corner(i, j), self.corner(i + a, j + b))
    }

    /// Where a feature begins, and its direction; none of a corner.
    pub(super) fn line(&self, feature: Feature) -> (Vec3, Option<Vec3>) {
        let (from, to) = self.ends(feature);
        let along = feature.along != [0; 2];
        (from, along.then(|| (to - from).normalize()))
    }

    /// The edge between two corners, by their numbers.
    pub(super) fn between(&self, p: usize, q: usize) -> Feature {
        let corner = p.min(q);
        let [from, to] = [corner, p.max(q)].map(|c| self.indices(c));
        Feature {
            corner,
            along: [to[0] - from[0], to[1] - from[1]],
        }
    }

    /// Two directions across an edge, the first the more upward one.
    fn across(u: &Vec3) -> [Vec3; 2] {
        let up = (Vec3::z() - u * u.z).normalize();
        [up, u.cross(&up)]
    }

    /// A plane through an edge or a corner, with its stored normal.
    pub(super) fn nearest_on_tilted(&self, number: usize, by: [i16; 2], y: &Vec3) -> Nearest {
        let (q, along) = self.line(Feature::of(number));
        let n = along.map_or_else(
            || Part::normal(by),
            |u| {
                let [up, side] = Self::across(&u);
                let (sin, cos) = (f64::from(by[0]) / ANGLES * TAU).sin_cos();
                up * cos + side * sin
            },
        );
        Nearest {
            point: y - n * n.dot(&(y - q)),
            normal: n,
            follows: Mat3::identity() - n * n.transpose(),
            curvature: 0.0,
            radius: 0.0,
        }
    }

    /// The plane through an edge or a corner that has about a normal.
    fn tilted(&self, feature: Feature, n: &Vec3) -> Meeting {
        let (_, along) = self.line(feature);
        let by = match along {
            Some(u) => {
                let [up, side] = Self::across(&u);
                let turn = n.dot(&side).atan2(n.dot(&up)) / TAU * ANGLES;
                [(turn.round() as i32) as i16, 0]
            }
            None => match Part::tangent(n) {
                Part::Tangent(by) => by,
                _ => [0; 2],
            },
        };
        Meeting::tilted(feature.number(), by)
    }

    /// Is there an edge or a corner of this number?
    pub(super) fn has_feature(&self, number: usize) -> bool {
        let f = Feature::of(number);
        let [n, m] = self.counts();
        let [i, j] = self.indices(f.corner);
        i + f.along[0] < n && j + f.along[1] < m
    }

    /// The edge or corner of a triangle that is nearest to a place.
    fn feature(&self, triangle: usize, y: &Vec3) -> Feature {
        let numbers = self.corner_numbers(triangle);
        let corners = self.corners(triangle);
        let mut best = (f64::INFINITY, 0, 0.0);
        for k in 0..3 {
            let (a, along) = (corners[k], corners[(k + 1) % 3] - corners[k]);
            let share = (along.dot(&(y - a)) / along.norm_squared()).clamp(0.0, 1.0);
            let distance = (y - a - along * share).norm_squared();
            if distance < best.0 {
                best = (distance, k, share);
            }
        }
        let (_, k, share) = best;
        let (p, q) = (numbers[k], numbers[(k + 1) % 3]);
        if share > 0.0 && share < 1.0 {
            self.between(p, q)
        } else {
            Feature {
                corner: if share > 0.0 { q } else { p },
                along: [0; 2],
            }
        }
    }

    /// What of it a ball or a point overlaps most at the end of a step by more than `below` (m) and does not hold.
    pub(super) fn sunk(
        &self,
        ground: &Collider,
        ball: &Ball,
        held: &[Meeting],
        ([now, end], below): ([Poses; 2], f64),
    ) -> Option<Meeting> {
        let place = |(a, b): Poses| Self::local(ground, a, &b.point(&ball.center));
        let way = [place(now), place(end)];
        let found = if ball.radius > 0.0 {
            self.sunk_ball(way, ball.radius, below)
        } else {
            self.pierced(way, below)
        };
        // a plane that the ball is outside of at the end would hold nothing, and one that it is inside of at the knot, beside the end of an
        // edge, would throw it
        let holds = |found: &Meeting| match *found {
            Meeting::Tilted(number, by) => {
                let [before, after] = way.map(|y| {
                    let near = self.nearest_on_tilted(number, by, &y);
                    near.normal.dot(&(y - near.point)) / ball.radius - 1.0
                });
                before > -ROUNDED && after < 0.0
            }
            _ => true,
        };
        found.filter(|found| !held.contains(found) && found.code() != -1.0 && holds(found))
    }

    /// The triangle nearest to a ball's center that faces it, or by whose back the way out is shortest if the center is below the ground; and
    /// the gap.
    pub(super) fn nearest_triangle(&self, y: &Vec3, radius: f64) -> Option<(usize, f64, Nearest)> {
        let mut found: Option<(usize, f64, Nearest)> = None;
        let across = self.counts()[1] - 1;
        let is_below = self.triangle_below(y).is_some_and(|t| {
            let near = self.nearest_on_plane(t, y);
            near.normal.dot(&(y - near.point)) < 0.0
        });
        for i in self.cells(0, y.x, radius) {
            for j in self.cells(1, y.y, radius) {
                for triangle in [2 * (i * across + j), 2 * (i * across + j) + 1] {
                    let near = self.nearest_on_triangle(triangle, y);
                    let apart = near.normal.dot(&(y - near.point));
                    let nearer = |(_, gap, _): &(_, f64, _)| apart.abs() < (gap + radius).abs();
                    if (apart < 0.0) == is_below && found.as_ref().is_none_or(nearer) {
                        found = Some((triangle, apart - radius, near));
                    }
                }
            }
        }
        found
    }

    fn sunk_ball(&self, [from, to]: [Vec3; 2], radius: f64, below: f64) -> Option<Meeting> {
        let (triangle, gap, near) = self.nearest_triangle(&to, radius)?;
        if gap > -below {
            return None;
        }
        let n = near.normal;
        if near.curvature == 0.0 {
            let [at, ..] = self.corners(triangle);
            if n.dot(&(from - at)) - radius > -manifold::TOUCHING {
                return Some(Meeting::Plane(triangle));
            }
            let feature = self.feature(triangle, &from);
            return Some(self.passed(feature, &from, &n, radius));
        }
        let feature = self.feature(triangle, &to);
        let then = self.nearest_on_triangle(triangle, &from);
        let is_outside = then.normal.dot(&(from - then.point)) - radius > -manifold::TOUCHING;
        if is_outside && then.normal.dot(&n) > TURNS {
            return Some(Meeting::Triangle(triangle));
        }
        Some(self.passed(feature, &from, &n, radius))
    }

    /// The plane through an edge or a corner whose normal is as near to one as the ball is outside at the knot.
    fn passed(&self, feature: Feature, from: &Vec3, n: &Vec3, radius: f64) -> Meeting {
        let (q, along) = self.line(feature);
        let mut d = from - q;
        if let Some(u) = along {
            d -= u * u.dot(&d);
        }
        let distance = d.norm();
        let outside = radius + OUTSIDE * distance;
        if n.dot(&d) > outside || distance == 0.0 {
            return self.tilted(feature, n);
        }
        let d = d / distance;
        let cos = (outside / distance).min(1.0);
        let side = (n - d * n.dot(&d)).try_normalize(f64::EPSILON);
        let normal = d * cos + side.unwrap_or_default() * (1.0 - cos * cos).sqrt();
        self.tilted(feature, &normal)
    }

    /// The plane of what a way goes through first, a wall or a triangle, if it ends below the ground.
    pub(super) fn pierced(&self, [mut from, to]: [Vec3; 2], below: f64) -> Option<Meeting> {
        let depth = |t: usize, y: &Vec3| self.above_plane(t, y);
        let end = self.triangle_below(&to)?;
        if depth(end, &to) > -below {
            return None;
        }
        // where it comes in from beside the field
        if let Some((entry, wall)) = self.entry([&from, &to]) {
            if let Some(wall) = wall {
                return (depth(wall, &to) < -below).then_some(Meeting::Plane(wall));
            }
            from = entry;
        }
        let by = to - from;
        // x, y and their difference in cells: where one is a whole number, the way goes over an edge
        let cells = |y: &Vec3| {
            let [u, v] = self.in_cells(y);
            [u, v, u - v]
        };
        let (start, stop) = (cells(&from), cells(&to));
        let mut share = 0.0;
        for _ in 0..CROSSED {
            let mut next: f64 = 1.0;
            for (a, b) in start.iter().zip(stop) {
                let (at, rate) = (a + (b - a) * share, b - a);
                let line = match rate {
                    r if r > 0.0 => (at + AHEAD).floor() + 1.0,
                    r if r < 0.0 => (at - AHEAD).ceil() - 1.0,
                    _ => continue,
                };
                next = next.min((line - a) / rate);
            }
            let middle = from + by * (0.5 * (share + next));
            if let Some(t) = self.triangle_below(&middle)
                && depth(t, &(from + by * next)) < -below
            {
                return Some(Meeting::Plane(t));
            }
            if next >= 1.0 {
                break;
            }
            share = next;
        }
        // so far away that the way was not followed to its end
        (depth(end, &from) > -manifold::TOUCHING).then_some(Meeting::Plane(end))
    }
}

/// Parts of a cell by which a way is beyond an edge that it was found to go over: rounding.
const AHEAD: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::contact::samples::{
        CAPSULE, POINT, SPHERE, check_held, difference, on_field, rough,
    };
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Field, Mechanism, Surface};
    use crate::spatial::exp;

    const SPACING: [f64; 2] = [0.13, 0.1];
    const BELOW: f64 = 5e-10;

    fn on(shape: Surface, heights: Vec<Vec<f64>>) -> Mechanism {
        on_field(shape, heights, SPACING, [0.0; 3])
    }

    /// What a body that moves from one pose to another overlaps of the field at the end.
    fn sunk(m: &Mechanism, of: usize, way: [&[Pose]; 2]) -> Option<Meeting> {
        let held = &mut std::iter::empty();
        m.lower_point(&m.contacts[of], held, (way[0], way[1]), BELOW)
    }

    /// Planes and triangles that are found leave the ball outside at the knot and are violated at the end by what it overlaps or more. Their
    /// derivatives by poses and by the radius are those of differences.
    #[test]
    fn what_is_overlapped_at_the_end_is_found_with_its_derivatives() {
        let s = &mut Source::new(3);
        let mut kinds = [0; 4];
        for (shape, steep) in [(SPHERE, 0.05), (SPHERE, 0.2), (CAPSULE, 0.1), (POINT, 0.1)] {
            let m = on(shape, rough(s, [14, 14], steep));
            for _ in 0..400 {
                let x = Vec3::new(0.8, 0.6, 0.35) + s.vec3() * 0.2;
                let pose = Pose::new(x, exp(&s.vec3()));
                // from above all peaks: the normals that are found look up
                if x.z < 0.1 + steep {
                    continue;
                }
                let by = (s.vec3() - Vec3::z() * 0.7) * 0.12;
                let way = [[pose], [pose.moved(&by, &(s.vec3() * 0.1))]];
                let is_out = m.contacts.iter().all(|c| m.touch(c, &way[0]).gap > 0.0);
                let starts_out = is_out && sunk(&m, 0, [&way[0], &way[0]]).is_none();
                let Some(held) = sunk(&m, 0, [&way[0], &way[1]]).filter(|_| starts_out) else {
                    continue;
                };
                assert_eq!(Meeting::decoded(held.code()), held);
                assert!(m.has_parts(&m.contacts[0], &held));
                kinds[match held {
                    Meeting::Plane(_) => 0,
                    Meeting::Triangle(_) => 1,
                    Meeting::Tilted(number, _) if number % 4 == 0 => 2,
                    _ => 3,
                }] += 1;
                let c = &m.contacts[0];
                let [now, end] = [0, 1].map(|k| m.touch_of(c, &held, &way[k]).gap);
                assert!(now > -2.0 * manifold::TOUCHING, "{held:?} {now}");
                assert!(end < 0.0, "{held:?} {end}");
                check_held(&m, (c, &held), &way[1], 1e-5);
                let field = Field::ContactRadius(m.colliders.len() - 1);
                let Some(number) = by_radius(&m, &held, &way[1], field) else {
                    continue;
                };
                let by = m.touch_by(c, &held, &way[1], field).expect("a radius");
                let off = (by.gap - number[0]).abs();
                let point = Vec3::new(number[1], number[2], number[3]) - by.point;
                assert!(off + point.norm() < 1e-8, "{held:?} {off} {point}");
            }
        }
        println!("{kinds:?}");
        assert!(kinds.iter().all(|k| *k > 5), "{kinds:?}");
    }

    /// Differences of gap and point by the radius; none of a point.
    fn by_radius(m: &Mechanism, held: &Meeting, poses: &[Pose], field: Field) -> Option<[f64; 4]> {
        let of = m.colliders.len() - 1;
        m.colliders[of].surface.clone().number(field)?;
        Some(difference(1e-3, |e| {
            let mut m = m.clone();
            if let Some(radius) = m.colliders[of].surface.number(field) {
                *radius += e;
            }
            let t = m.touch_of(&m.contacts[0], held, poses);
            [t.gap, t.point.x, t.point.y, t.point.z]
        }))
    }

    /// A ball that is outside of what is found at the end of its step is outside of the edge or corner that it is held on.
    #[test]
    fn planes_through_edges_and_corners_separate() {
        let s = &mut Source::new(9);
        let field = Heights::new(&rough(s, [14, 14], 0.2), SPACING).expect("valid");
        let mut asked = 0;
        for _ in 0..2000 {
            let from = Vec3::new(0.8, 0.6, 0.3) + s.vec3() * 0.2;
            let to = from + s.vec3() * 0.15;
            let radius = 0.04 + 0.05 * s.unit().abs();
            let found = field.sunk_ball([from, to], radius, BELOW);
            let Some(Meeting::Tilted(number, by)) = found else {
                continue;
            };
            asked += 1;
            let (q, along) = field.line(Feature::of(number));
            let n = field.nearest_on_tilted(number, by, &to).normal;
            // an edge is within its plane
            assert!(along.is_none_or(|u| u.dot(&n).abs() < 1e-14));
            // a ball that is outside of the edge or corner at the knot is outside of the plane, but for the rounding of its normal
            let gap = |y: &Vec3| n.dot(&(y - q)) - radius;
            let across = (from - q) - along.map_or_else(Vec3::zeros, |u| u * u.dot(&(from - q)));
            let outside = (across.norm() - radius).min(0.0);
            assert!(gap(&from) > outside - 1e-6 * radius, "{}", gap(&from));
        }
        assert!(asked > 20, "{asked}");
    }
}
