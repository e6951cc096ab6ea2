//! A height field as what cylinders, boxes, hulls and sides of capsules meet: columns, each a triangle with all that is below it.
//!
//! A convex body overlaps the ground if and only if it overlaps a column. A column is convex, so normals of two parts tell whether it does
//! ([`unheld`](super::unheld)). The sides of columns are within the ground: they tell which columns a body is beside, but hold
//! nothing. What holds a body is a face, an edge or a vertex of the field, along a normal that these have: ground that rises from
//! an edge takes the normals on its side, so that valleys and edges between level triangles hold nothing. The walls at the border of
//! the field are faces like others.
//!
//! At its knot, a step selects for a cylinder the lowest point of each rim on the triangle below it, on those of its neighbors that rise, and on
//! the triangle that is below it at the knot; if the end may come to lie flat, four points fixed on the rim. All else is exchanged.
//! Corners of boxes and hulls are points with places of their own ([`heights`](super::heights)), and their edges and faces are exchanged.

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

/// Part of an edge's length, or of a cell's if that is shorter, by which a place may be beyond a triangle and still count as within.
const BEYOND: f64 = 1e-4;
/// Sine of the angle by which a normal may lean to the ground beside an edge or a vertex, or below the horizontal: rounding, also of level
/// ground and of walls.
const LEANS: f64 = 1e-6;
/// The number of places that a search at the knot finds for an end: points fixed on its rim, or the lowest point of the rim on each of the
/// triangles beneath it.
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

    /// About the middle of the normals of an edge, field frame: the sum of those of its triangles.
    pub(super) fn out_of_edge(&self, number: usize) -> Vec3 {
        let Feature { corner, along } = Feature::of(number);
        let [i, j] = self.indices(corner);
        let across = self.counts()[1] - 1;
        let lower = |i: usize, j: usize| 2 * (i * across + j);
        let own = (i < self.counts()[0] - 1 && j < across).then(|| lower(i, j) + along[1]);
        let other = match along {
            [1, 1] => Some(lower(i, j)),
            [1, 0] => j.checked_sub(1).map(|j| lower(i, j) + 1),
            _ => i.checked_sub(1).map(|i| lower(i, j)),
        };
        let normal = |t: usize| Self::normal(&self.corners(t));
        own.into_iter().chain(other).map(normal).sum()
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
        // edges of walls are long
        let beyond = |length: f64| BEYOND * length.min(self.reach_of_cell());
        match part {
            Part::Face(t) => {
                let corners = self.corners(t);
                let m = Self::normal(&corners);
                (0..3).all(|k| {
                    let (a, along) = (corners[k], corners[(k + 1) % 3] - corners[k]);
                    let length = along.norm();
                    m.cross(&along).dot(&(y - a)) >= -beyond(length) * length
                })
            }
            Part::Edge(k) => {
                let (from, to) = self.ends(Feature::of(k));
                let (along, length) = (to - from, (to - from).norm());
                let at = along.dot(&(y - from)) / length;
                (-beyond(length)..=length + beyond(length)).contains(&at)
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
        // edges of walls are long: what lies along an edge says nothing of its normals
        let edge = match part {
            Part::Edge(k) => self.line(Feature::of(k)).1,
            _ => None,
        };
        let falls = |[a, b]: &[isize; 2]| {
            let moved = |k: usize, by: isize| {
                let i = at[k].checked_add_signed(by)?;
                (i < self.counts()[k]).then_some(i)
            };
            let (Some(i), Some(j)) = (moved(0, *a), moved(1, *b)) else {
                return true;
            };
            let mut along = self.corner(i, j) - p;
            if let Some(u) = edge {
                along -= u * u.dot(&along);
            }
            n.dot(&along) <= LEANS * along.norm()
        };
        n.z > -LEANS && beside.iter().all(falls)
    }

    /// How far a column reaches along a direction, field frame.
    pub(super) fn reach_of_column(&self, triangle: usize, n: &Vec3) -> f64 {
        let corners = self.corners(triangle);
        let reach = |c: &Vec3| match n.z < 0.0 {
            true => n.dot(&Vec3::new(c.x, c.y, self.corner(0, 0).z)),
            false => n.dot(c),
        };
        corners.iter().map(reach).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Horizontal normals of the sides of a column, field frame.
    pub(super) fn sides_of_column(&self, triangle: usize) -> [Vec3; 3] {
        let corners = self.corners(triangle);
        [0, 1, 2].map(|k| {
            let along = corners[(k + 1) % 3] - corners[k];
            Vec3::new(along.y, -along.x, 0.0).normalize()
        })
    }

    /// Normals of the planes of a column, and a place on each, field frame.
    pub(super) fn planes_of_column(&self, triangle: usize) -> [(Vec3, Vec3); 4] {
        let corners = self.corners(triangle);
        let [p, q, r] = self.sides_of_column(triangle);
        let top = Self::normal(&corners);
        let [a, b, c] = corners;
        [(top, a), (p, a), (q, b), (r, c)]
    }

    /// The triangles of the cells that a body may be above.
    pub(super) fn below_body(&self, of: Sides, poses: Poses) -> impl Iterator<Item = usize> {
        let y = Self::local(of.0, poses.0, &poses.1.point(&of.1.position));
        let reach = cylinder::reach(of.1);
        let [mut i, j] = [0, 1].map(|k| self.cells(k, y[k], reach));
        if y.z - reach > self.top {
            i = 0..0;
        }
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
        let reach = cylinder::reach(of.1);
        // what is held is above the plane at the knot, and within the triangle now or at the next; or it overlaps the triangle already, as a
        // step of fixed length may leave it
        let can_hold = |t: usize, held: &Meeting| {
            let touch = between::touch(of, (0, held), now);
            let then = || between::touch(of, (0, held), next).point;
            let within = |place: &Vec3| self.is_within(Part::Face(t), &local(place));
            match touch.gap > -manifold::TOUCHING {
                true => within(&touch.point) || within(&then()),
                false => touch.gap > -reach && within(&touch.point),
            }
        };
        let mut hold = |place: usize, t: usize, q: Part| {
            let held = on(t, q);
            if can_hold(t, &held) && !places.contains(&held) {
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
                            hold(place, t, tip);
                        }
                    }
                }
                return;
            }
            y = local(&met.touch(next).point);
        }
        for (place, t) in self.below(&y).into_iter().enumerate() {
            if let Meeting::Plane(t) = t {
                hold(place, t, rim);
            }
        }
        // it may not come over an edge
        let lowest = |t: usize| {
            let met = cylinder::meet(of, [Part::Face(t), rim], now, 0.0)?;
            self.triangle_below(&local(&met.touch(now).point))
        };
        let below = self.triangle_below(&y);
        if let Some(t) = below.and_then(lowest) {
            hold(OF_END - 1, t, rim);
        }
        // what overlaps no triangle that its lowest point is on is pushed out of the one below
        let overlaps = |t: &usize| {
            let gap = between::touch(of, (0, &on(*t, rim)), now).gap;
            (-reach..-manifold::TOUCHING).contains(&gap)
        };
        if let Some(t) = below.filter(overlaps)
            && places.iter().all(|held| *held == Meeting::Apart)
        {
            places[0] = on(t, rim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{
        BOX, CAPSULE, CYLINDER, check_held, difference, hull, on_field, rough,
    };
    use super::*;
    use crate::mechanism::contact::{Contact, Pair};
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Field, Mechanism, Surface};
    use crate::spatial::exp;

    const SPACING: [f64; 2] = [0.13, 0.1];
    const BELOW: f64 = 5e-10;

    fn cylinder(radius: f64, length: f64) -> Surface {
        Surface::Cylinder { radius, length }
    }

    /// A coin, a can within a cell, a rod, and one larger than many cells.
    fn shapes() -> [Surface; 4] {
        [
            cylinder(0.15, 0.02),
            cylinder(0.03, 0.06),
            cylinder(0.02, 0.4),
            CYLINDER,
        ]
    }

    fn on(s: &mut Source, shape: Surface, rise: f64) -> Mechanism {
        on_field(shape, rough(s, [14, 14], rise), SPACING, [0.0; 3])
    }

    /// The field and the body, and the index of that.
    fn sides(m: &Mechanism) -> (Sides<'_>, usize) {
        let Pair::Between { first, second, .. } = m.contacts[0].pair else {
            panic!("a body on a field");
        };
        ((&m.colliders[first], &m.colliders[second]), second)
    }

    /// The first contact of the whole body.
    fn whole(m: &Mechanism) -> &Contact {
        &m.contacts[between::first_place(sides(m).0)]
    }

    fn depth(m: &Mechanism, pose: Pose) -> f64 {
        m.depth(whole(m), &[pose]).expect("it is known")
    }

    /// Above the ground, where it is about to touch.
    fn placed(s: &mut Source, m: &Mechanism) -> Pose {
        let q = exp(&(s.vec3() * 3.0));
        let at = Vec3::new(0.8, 0.6, 0.0) + s.vec3() * 0.15;
        let pose = |z: f64| Pose::new(Vec3::new(at.x, at.y, z), q);
        let (mut low, mut high) = (-0.1, 1.5);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if depth(m, pose(middle)) < 0.0 {
                high = middle;
            } else {
                low = middle;
            }
        }
        pose(high)
    }

    /// How deep edges of the field are in the cylinder, or points of its rims below faces, at most, m.
    fn sampled(m: &Mechanism, pose: &Pose) -> f64 {
        let (ground, c) = sides(m).0;
        let (Surface::Heights(field), Surface::Cylinder { radius, length }) =
            (&ground.surface, &c.surface)
        else {
            panic!("a cylinder on a field");
        };
        let world = |y: &Vec3| ground.position + ground.orientation * y;
        let inside = |y: &Vec3| {
            let z = pose.r.tr_mul(&(world(y) - pose.x)) - c.position;
            let z = c.orientation.tr_mul(&z);
            (radius - z.xy().norm()).min(0.5 * length - z.z.abs())
        };
        let mut deepest = f64::NEG_INFINITY;
        for t in field.triangles() {
            for k in 0..3 {
                let (a, b) = (t[k], t[(k + 1) % 3]);
                let at = |share: f64| inside(&(a + (b - a) * share));
                // concave along a line
                let (mut low, mut high) = (0.0, 1.0);
                while high - low > 1e-9 {
                    let third = (high - low) / 3.0;
                    if at(low + third) > at(high - third) {
                        high -= third;
                    } else {
                        low += third;
                    }
                }
                deepest = deepest.max(at(low));
            }
        }
        for (up, part) in (0..1 << 13).flat_map(|k| [(false, 4 * k), (true, 4 * k)]) {
            let place = pose.point(&cylinder::rim_point(c, up, part).1);
            let y = Heights::local(ground, &Pose::identity(), &place);
            if let Some(t) = field.triangle_below(&y) {
                let near = field.nearest_on_plane(t, &y);
                deepest = deepest.max(-near.normal.dot(&(y - near.point)));
            }
        }
        deepest
    }

    /// What overlaps is what samples of the edges of the field and of the rims are in.
    #[test]
    fn cylinders_overlap_where_samples_do() {
        let s = &mut Source::new(7);
        let (mut most, mut asked) = (0.0_f64, [0; 2]);
        for shape in shapes() {
            for rise in [0.03, 0.1] {
                let m = on(s, shape.clone(), rise);
                for _ in 0..12 {
                    let touching = placed(s, &m);
                    for z in [-1e-3, -1e-5, 1e-5, 1e-3] {
                        let pose = Pose::new(touching.x + Vec3::z() * z, touching.q);
                        let (found, expected) = (depth(&m, pose), sampled(&m, &pose));
                        asked[usize::from(z > 0.0)] += 1;
                        // angles of samples are 4e-4 rad off at most
                        let off = 0.3 * 1e-7;
                        assert!(
                            (found > -off) == (expected > -off) || found.abs() < off,
                            "{shape:?} {z} {found} {expected}"
                        );
                        most = most.max(found);
                    }
                }
            }
        }
        assert!(most > 1e-4 && asked[0] == asked[1], "{most} {asked:?}");
    }

    /// What is found is outside at the knot and violated at the end by no more than what is overlapped, and its derivatives by poses and by
    /// numbers of the cylinder are those of differences.
    #[test]
    fn what_is_overlapped_at_the_end_is_found_with_its_derivatives() {
        let s = &mut Source::new(3);
        let mut kinds = [0; 8];
        let (mut all, mut found) = (0, 0);
        for shape in shapes().into_iter().chain([BOX, hull(), CAPSULE]) {
            for rise in [0.03, 0.1] {
                let m = on(s, shape.clone(), rise);
                let c = whole(&m);
                for _ in 0..40 {
                    let touching = placed(s, &m);
                    let end = [Pose::new(touching.x - Vec3::z() * 1e-6, touching.q)];
                    let by = Vec3::z() * 1e-3 + s.vec3() * 2e-4;
                    let now = [end[0].moved(&by, &(s.vec3() * 1e-3))];
                    if depth(&m, now[0]) > 0.0 {
                        continue;
                    }
                    // corners have places of their own
                    let mut corners = m.contacts.iter().filter(|c| m.depth(c, &now).is_none());
                    let sinks = |c: &Contact| {
                        let nothing = &mut std::iter::empty();
                        m.lower_point(c, nothing, (&now, &end), BELOW).is_some()
                    };
                    if corners.any(sinks) {
                        continue;
                    }
                    all += 1;
                    let nothing = &mut std::iter::empty();
                    let held = m.lower_point(c, nothing, (&now, &end), BELOW);
                    let Some(held) = held.filter(|held| *held != Meeting::Apart) else {
                        continue;
                    };
                    found += 1;
                    assert_eq!(Meeting::decoded(held.code()), held);
                    assert!(m.has_parts(c, &held));
                    let [before, after] = [&now, &end].map(|p| m.touch_of(c, &held, p).gap);
                    assert!(before > -manifold::TOUCHING, "{held:?} {before}");
                    assert!(after < 0.0 && after > -2e-6, "{held:?} {after}");
                    let Meeting::Parts(parts) = held else {
                        panic!("{held:?}");
                    };
                    kinds[match parts {
                        [Part::Face(_), Part::Tip(..)] => 0,
                        [Part::Edge(_), Part::Tip(..)] => 1,
                        [Part::Edge(_), Part::Ring(_)] if shape != CAPSULE => 2,
                        [Part::Edge(_), Part::Side | Part::Ring(_)] => 3,
                        [Part::Vertex(_), Part::Side] => 4,
                        [Part::Vertex(_), Part::End(_)] => 5,
                        [Part::Edge(_), Part::Edge(_)] => 6,
                        [Part::Vertex(_), Part::Face(_)] => 7,
                        _ => panic!("{held:?}"),
                    }] += 1;
                    let slope = m.touch_slope(c, &held, &end);
                    let turns = slope.normal[1].0.amax().max(slope.normal[1].1.amax());
                    if turns < 30.0 {
                        check_held(&m, (c, &held), &end, 1e-6);
                        check_numbers(&m, c, &held, &end);
                    }
                }
            }
        }
        println!("{found} of {all}, {kinds:?}");
        // a step in which nothing is found is divided
        assert!(5 * found > 4 * all, "{found} of {all}");
        assert!(kinds.iter().all(|n| *n > 0), "{kinds:?}");
    }

    fn check_numbers(m: &Mechanism, c: &Contact, held: &Meeting, poses: &[Pose]) {
        let of = sides(m).1;
        let edges = [0, 1, 2].map(|k| Field::ContactEdge(of, k));
        let own = [Field::ContactRadius(of), Field::ContactLength(of)];
        for field in own.into_iter().chain(edges) {
            if m.colliders[of].surface.clone().number(field).is_none() {
                continue;
            }
            let by = difference(1e-5, |e| {
                let mut m = m.clone();
                *m.colliders[of].surface.number(field).expect("it has one") += e;
                let t = m.touch_of(c, held, poses);
                [t.gap, t.point.x, t.point.y, t.point.z]
            });
            let own = m.touch_by(c, held, poses, field);
            let own = own.map_or([0.0; 4], |t| [t.gap, t.point.x, t.point.y, t.point.z]);
            for (a, b) in own.iter().zip(by) {
                assert!((a - b).abs() < 1e-6, "{held:?} {field:?}: {own:?} {by:?}");
            }
        }
    }

    /// Level ground and valleys have no edges and vertices that hold, ridges and peaks have the normals between their faces.
    #[test]
    fn edges_have_the_normals_between_their_faces() {
        let ridge = |height: f64| {
            let row = |i: usize| vec![if i == 1 { height } else { 0.0 }; 3];
            let rows: Vec<_> = (0..3).map(row).collect();
            Heights::new(&rows, [1.0, 1.0]).expect("valid")
        };
        // from the middle along y
        let (edge, vertex) = (Part::Edge(4 * 12 + 2), Part::Vertex(12));
        let tilted = |x: f64| Vec3::new(x, 0.0, 1.0).normalize();
        for (height, holds) in [(0.3, [true, true, false]), (-0.3, [false; 3])] {
            let field = ridge(height);
            let has = [0.0, 0.29, 0.31].map(|x| field.has_normal(edge, &tilted(x)));
            assert_eq!(has, holds);
            assert!(!field.has_normal(vertex, &Vec3::new(0.0, 0.1, 1.0)));
        }
        let level = ridge(0.0);
        assert!(level.has_normal(edge, &Vec3::z()) && !level.has_normal(edge, &tilted(0.01)));
        assert!(!level.has_normal(vertex, &tilted(0.01)));
    }
}
