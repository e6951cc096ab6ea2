//! Capsules on boxes and hulls of other bodies, in six slots: each end's ball on all of the other, and four of its edges on
//! the capsule.
//!
//! The distance of a capsule's axis from a polytope is that of an end, or of an edge from the axis; a capsule that lies
//! across a face is held by two edges. Which edges those are is searched for at a knot: the four nearest that are not
//! parallel to the axis, along which its ends or other edges carry it. The distance of two segments is that of the lines
//! where these cross between the ends, else that of the nearest end; it is once continuously differentiable.

use super::between::Slot;
use super::crossing::{Crossing, Line};
use super::meeting::Meeting;
use super::nearest::{Ball, On};
use super::polytope::Solid;
use super::{Collider, Touch, ball};
use crate::spatial::{Pose, Vec3};

/// Edges that may carry a capsule: two cross a face it lies on, and where it lies above a corner another two are as near.
const EDGES: usize = 4;

/// Ends of the capsule, then edges.
pub(super) const ENDS: usize = 2;
pub(super) const SLOTS: usize = ENDS + EDGES;

/// Sine of the angle between axis and edge below which they count as parallel.
const PARALLEL: f64 = 1e-3;

/// A capsule's or a polytope's part, the colliders and the poses, in the order of the pair: `capsule` is 0 or 1.
pub(super) struct Roles<'a> {
    pub of: [&'a Collider; 2],
    pub poses: [&'a Pose; 2],
    pub capsule: usize,
}

impl Roles<'_> {
    fn other(&self) -> usize {
        1 - self.capsule
    }

    fn edge(solid: &Solid, edge: usize) -> (Line, f64) {
        let (point, axis, length) = solid.local_edge(edge);
        let line = Line {
            point: solid.position + solid.orientation * point,
            axis: solid.orientation * axis,
            radius: 0.0,
        };
        (line, length)
    }

    /// What an edge and the capsule are; none where they are parallel.
    pub fn slot(&self, solid: &Solid, edge: usize, length: f64) -> Option<Slot> {
        let (c, o) = (self.capsule, self.other());
        let (line, reach) = Self::edge(solid, edge);
        let mut lines = [line; 2];
        lines[c] = self.of[c].axis();
        let crossing = Crossing::new(lines, (self.poses[0], self.poses[1]), None, PARALLEL)?;
        let (s, t) = (crossing.along[c], crossing.along[o]);
        if s.abs() < 0.5 * length && t > 0.0 && t < reach {
            return Some(Slot::Crossing(crossing));
        }
        // the nearest of the ends of either
        let at = |side: usize, ball: Ball, on: On| {
            let other = 1 - side;
            let gap = ball::touch(
                &ball,
                (self.of[other], on),
                self.poses[side],
                self.poses[other],
            )
            .gap;
            (Slot::Ball { side, ball, on }, gap)
        };
        let end = |along: f64| at(c, self.of[c].ball(along), On::Edge(edge));
        let corner = |v: usize| {
            let ball = Ball {
                center: solid.vertex(v),
                radius: 0.0,
            };
            at(o, ball, On::Surface)
        };
        let [p, q] = solid.of.edges[edge].ends;
        let all = [end(-1.0), end(1.0), corner(p), corner(q)];
        let nearest = all.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        nearest.map(|(slot, _)| slot)
    }

    fn touch(&self, slot: &Slot) -> Touch {
        match slot {
            Slot::Crossing(c) => c.touch((self.poses[0], self.poses[1])),
            Slot::Ring(r) => r.touch(),
            Slot::Ball { side, ball, on } => {
                let other = 1 - side;
                let on = (self.of[other], *on);
                ball::touch(ball, on, self.poses[*side], self.poses[other])
            }
        }
    }

    /// Is a place of the world at a part of an edge that is closed?
    fn is_closed(&self, solid: &Solid, edge: usize, place: &Vec3) -> bool {
        let (c, pose) = (self.of[self.other()], self.poses[self.other()]);
        let body = pose.r.tr_mul(&(place - pose.x));
        let y = c.orientation.tr_mul(&(body - c.position));
        let mut seams = solid.seams.iter().filter(|seam| seam.edge == edge);
        seams.any(|seam| seam.is_at(solid, &y))
    }

    /// The edges nearest to the capsule.
    pub fn search(&self, solid: &Solid, length: f64) -> [Meeting; EDGES] {
        let mut found = [(Meeting::Apart, f64::INFINITY); EDGES];
        for edge in 0..solid.of.edges.len() {
            if solid.buried.contains(&edge) {
                continue;
            }
            let Some(slot) = self.slot(solid, edge, length) else {
                continue;
            };
            let Touch { gap, point, .. } = self.touch(&slot);
            if self.is_closed(solid, edge, &point) {
                continue;
            }
            // sorted by gaps
            if let Some(at) = found.iter().position(|(_, other)| gap < *other) {
                found[at..].rotate_right(1);
                found[at] = (Meeting::Edge(edge), gap);
            }
        }
        found.map(|(meeting, _)| meeting)
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{BOX, CAPSULE, check, hull, plain, two};
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Mechanism, Surface};
    use crate::spatial::{Pose, Vec3, exp};

    fn least(m: &Mechanism, poses: &[Pose; 2]) -> f64 {
        let gaps = m.contacts.iter().map(|c| m.touch(c, poses).gap);
        gaps.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, CAPSULE, BOX), 2);
        check(&two(3, hull(), CAPSULE), 5);
    }

    /// By sampling of the axis.
    #[test]
    fn the_distance_is_that_of_the_axis_less_the_radius() {
        let m = plain(two(1, CAPSULE, BOX));
        let half = Vec3::new(0.3, 0.175, 0.1);
        let s = &mut Source::new(5);
        let mut edges = 0;
        for _ in 0..300 {
            let poses = [s.pose(), s.pose()].map(|p| Pose::new(p.x * 0.4, p.q));
            let mut least_of = f64::INFINITY;
            let n = 2000;
            for i in 0..=n {
                let z = 0.7 * (f64::from(i) / f64::from(n) - 0.5);
                let p = poses[0].point(&(Vec3::z() * z));
                let y = poses[1].r.tr_mul(&(p - poses[1].x));
                let inside = Vec3::from_fn(|k, _| y[k].clamp(-half[k], half[k]));
                least_of = least_of.min((y - inside).norm());
            }
            if least_of == 0.0 {
                continue;
            }
            let found = least(&m, &poses);
            assert!((least_of - 0.1 - found).abs() < 1e-4, "{least_of} {found}");
            let ends = (m.contacts[..2].iter()).map(|c| m.touch(c, &poses).gap);
            edges += usize::from(ends.fold(f64::INFINITY, f64::min) > found + 1e-3);
        }
        assert!(edges > 50, "{edges}");
    }

    #[test]
    fn a_capsule_across_a_box_is_held_by_two_edges() {
        let m = plain(two(1, CAPSULE, Surface::Box([0.3, 0.4, 0.2])));
        let across = Vec3::y() * std::f64::consts::FRAC_PI_2;
        let poses = [
            Pose::new(Vec3::new(0.05, 0.1, 0.2), exp(&across)),
            Pose::identity(),
        ];
        let on: Vec<_> = (m.contacts.iter())
            .map(|c| m.touch(c, &poses))
            .filter(|t| t.gap.abs() < 1e-12)
            .collect();
        assert_eq!(on.len(), 2, "{on:?}");
        for t in on {
            assert!((t.normal + Vec3::z()).norm() < 1e-12);
            assert!((t.point.x.abs() - 0.15).abs() < 1e-12 && (t.point.y - 0.1).abs() < 1e-12);
        }
    }
}
