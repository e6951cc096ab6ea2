//! A height field as what cylinders meet: columns, each a triangle with all that is below it.
//!
//! A cylinder overlaps the ground if and only if it overlaps a column. A column is convex, so normals of two parts tell whether it does
//! ([`unheld`](super::unheld)). The walls between columns are within the ground: they tell which columns a cylinder is beside, but hold
//! nothing. What holds a cylinder is a face, an edge or a vertex of the field, along a normal that these have: ground that rises from
//! an edge takes the normals on its side, so that valleys and edges between level triangles hold nothing.
//!
//! At its knot, a step selects the lowest point of each rim on the triangle below it, on those of its neighbors that rise, and on the triangle
//! that is below it at the knot; if the end may come to lie flat, four points fixed on the rim. All else is exchanged.

use super::heights::Heights;
use super::manifold::{self, Manifold};
use super::meeting::{END, Meeting, Part};
use super::ring::{Kind, Part as Shape};
use super::sunk::Feature;
use super::sway::Sway;
use super::{Collider, between, cylinder, half_space};
use crate::spatial::{Pose, Vec3};

type Sides<'a> = (&'a Collider, &'a Collider);
type Poses<'a> = (&'a Pose, &'a Pose);

/// Part of an edge's length by which a place may be beyond a triangle and still count as within.
const BEYOND: f64 = 1e-4;
/// Sine of the angle by which a normal may lean to the ground beside an edge or a vertex: rounding, also of level ground.
const LEANS: f64 = 1e-6;
/// Part of the vertical that a normal may be below the horizontal: rounding of walls.
const DOWN: f64 = -1e-12;
/// Places of an end that a search finds: points fixed on its rim, or its lowest on so many triangles.
const OF_END: usize = 4;

impl Heights {
    /// A face, an edge or a vertex, body frame.
    pub(super) fn shape(&self, ground: &Collider, part: Part) -> Shape {
        let placed = |kind, at: Vec3, axis: Vec3| Shape {
            kind,
            at: ground.position + ground.orientation * at,
            axis: ground.orientation * axis,
            about: 0.0,
        };
        match part {
            Part::Face(t) => {
                let corners = self.corners(t);
                placed(Kind::Plane, corners[0], Self::normal(&corners))
            }
            Part::Edge(k) => {
                let (from, along) = self.line(Feature::of(k));
                placed(Kind::Line, from, along.unwrap_or_else(Vec3::z))
            }
            Part::Vertex(k) => placed(Kind::Circle(0.0), self.vertex(k), Vec3::z()),
            _ => unreachable!("a height field has faces, edges and vertices"),
        }
    }

    fn vertex(&self, number: usize) -> Vec3 {
        let [i, j] = self.indices(number);
        self.corner(i, j)
    }

    /// The parts of a triangle: its face, its edges, its vertices.
    pub(super) fn parts(&self, triangle: usize) -> [Part; 7] {
        let [a, b, c] = self.corner_numbers(triangle);
        let edge = |p, q| Part::Edge(self.between(p, q).number());
        [
            Part::Face(triangle),
            edge(a, b),
            edge(b, c),
            edge(c, a),
            Part::Vertex(a),
            Part::Vertex(b),
            Part::Vertex(c),
        ]
    }

    pub(super) fn has_part(&self, part: Part) -> bool {
        let [n, m] = self.counts();
        match part {
            Part::Face(t) => t < self.triangle_count(),
            Part::Edge(k) => k % 4 != 0 && self.has_feature(k),
            Part::Vertex(k) => k < n * m,
            _ => false,
        }
    }

    /// Is a place, field frame, within a part, seen along its normals?
    pub(super) fn is_within(&self, part: Part, y: &Vec3) -> bool {
        match part {
            Part::Face(t) => {
                let corners = self.corners(t);
                let m = Self::normal(&corners);
                (0..3).all(|k| {
                    let (a, along) = (corners[k], corners[(k + 1) % 3] - corners[k]);
                    m.cross(&along).dot(&(y - a)) >= -BEYOND * along.norm_squared()
                })
            }
            Part::Edge(k) => {
                let (from, to) = self.ends(Feature::of(k));
                let along = to - from;
                let share = along.dot(&(y - from)) / along.norm_squared();
                (-BEYOND..=1.0 + BEYOND).contains(&share)
            }
            _ => true,
        }
    }

    /// Has a part a normal, field frame, that is out of all ground beside it?
    pub(super) fn has_normal(&self, part: Part, n: &Vec3) -> bool {
        let (corner, beside): (usize, &[[isize; 2]]) = match part {
            Part::Edge(k) => {
                let of = Feature::of(k);
                let beside: &[_] = match of.along {
                    [1, 0] => &[[1, 1], [0, -1]],
                    [0, 1] => &[[1, 1], [-1, 0]],
                    _ => &[[1, 0], [0, 1]],
                };
                (of.corner, beside)
            }
            Part::Vertex(k) => {
                let around = &[[1, 0], [1, 1], [0, 1], [-1, 0], [-1, -1], [0, -1]];
                (k, around)
            }
            _ => return true,
        };
        let (at, p) = (self.indices(corner), self.vertex(corner));
        let falls = |[a, b]: &[isize; 2]| {
            let moved = |k: usize, by: isize| {
                let i = at[k].checked_add_signed(by)?;
                (i < self.counts()[k]).then_some(i)
            };
            let (Some(i), Some(j)) = (moved(0, *a), moved(1, *b)) else {
                return true;
            };
            let along = self.corner(i, j) - p;
            n.dot(&along) <= LEANS * along.norm()
        };
        n.z > 0.0 && beside.iter().all(falls)
    }

    /// How far a column reaches along a direction, field frame.
    pub(super) fn reach_of_column(&self, triangle: usize, n: &Vec3) -> f64 {
        if n.z < DOWN {
            return f64::INFINITY;
        }
        let along = self.corners(triangle).map(|c| n.dot(&c));
        along.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Horizontal normals of the walls of a column, field frame.
    pub(super) fn walls(&self, triangle: usize) -> [Vec3; 3] {
        let corners = self.corners(triangle);
        [0, 1, 2].map(|k| {
            let along = corners[(k + 1) % 3] - corners[k];
            Vec3::new(along.y, -along.x, 0.0).normalize()
        })
    }

    /// The triangles of the cells that a cylinder may be above.
    pub(super) fn below_cylinder(&self, of: Sides, poses: Poses) -> impl Iterator<Item = usize> {
        let y = Self::local(of.0, poses.0, &poses.1.point(&of.1.position));
        let reach = cylinder::reach(of.1);
        let [i, j] = [0, 1].map(|k| self.cells(k, y[k], reach));
        let across = self.counts()[1] - 1;
        i.flat_map(move |i| j.clone().map(move |j| 2 * (i * across + j)))
            .flat_map(|t| [t, t + 1])
    }

    /// What of it a cylinder meets, at the poses now and at the next knot.
    pub(super) fn search_cylinder(&self, of: Sides, ways: [Poses; 2], sway: &Sway) -> Manifold {
        let mut found = Manifold::APART;
        for (end, places) in found.places.chunks_mut(OF_END).take(2).enumerate() {
            self.search_end(of, end, ways, sway, places);
        }
        found
    }

    fn search_end(
        &self,
        of: Sides,
        end: usize,
        [now, next]: [Poses; 2],
        sway: &Sway,
        places: &mut [Meeting],
    ) {
        let Some((center, ..)) = half_space::rim(of.1, end) else {
            return;
        };
        let rim = Part::Ring([-END, END][end]);
        let local = |place: &Vec3| Self::local(of.0, next.0, place);
        let on = |t: usize, q: Part| Meeting::Parts([Part::Face(t), q]);
        // what is held is above the plane at the knot, and within the triangle now or at the next
        let carries = |t: usize, held: &Meeting| {
            let touch = between::touch(of, (0, held), now);
            let then = || between::touch(of, (0, held), next).point;
            let within = |place: &Vec3| self.is_within(Part::Face(t), &local(place));
            touch.gap > -manifold::TOUCHING && (within(&touch.point) || within(&then()))
        };
        let mut put = |place: usize, t: usize, q: Part| {
            let held = on(t, q);
            if carries(t, &held) && !places.contains(&held) {
                places[place] = held;
            }
        };
        let mut y = local(&next.1.point(&center));
        // what is lowest above one may be above another
        for _ in 0..2 {
            let Some(own) = self.triangle_below(&y) else {
                return;
            };
            let Some(met) = cylinder::meet(of, [Part::Face(own), rim], next, 0.0) else {
                return;
            };
            if met.is_flat(sway, true) {
                let n = met.touch(next).normal;
                let toward = |pose: &Pose| of.1.orientation.tr_mul(&pose.r.tr_mul(&n));
                let (here, there) = (toward(now.1), toward(next.1));
                if (here.z > 0.0) == (end == 0) {
                    for place in 0..OF_END {
                        let part = half_space::fixed_angle(place, &here, &there);
                        let tip = Part::Tip(end == 1, part);
                        let (_, at) = cylinder::rim_point(of.1, end == 1, part);
                        if let Some(t) = self.triangle_below(&local(&next.1.point(&at))) {
                            put(place, t, tip);
                        }
                    }
                }
                return;
            }
            y = local(&met.touch(next).point);
        }
        for (place, t) in self.below(&y).into_iter().enumerate() {
            if let Meeting::Plane(t) = t {
                put(place, t, rim);
            }
        }
        // it may not come over an edge
        let lowest = |t: usize| {
            let met = cylinder::meet(of, [Part::Face(t), rim], now, 0.0)?;
            self.triangle_below(&local(&met.touch(now).point))
        };
        if let Some(t) = self.triangle_below(&y).and_then(lowest) {
            put(OF_END - 1, t, rim);
        }
    }
}
