//! What holds a body that overlaps a height field, of its columns, each a triangle with all that is below it ([`column`](super::super::column)).

use super::super::heights::Heights;
use super::super::meeting::{Meeting, Part, SLOTS};
use super::super::{Surface, between, cylinder, manifold};
use super::{EXACT, Poses, Rank, Sides, Unheld};
use crate::spatial::Vec3;
use std::f64::consts::TAU;

/// Vertical planes around a vertical edge of a column of which the best are refined, and up to which angle, rad.
const AROUND: usize = 24;
const TURNS: f64 = 1e-8;

impl<'a> Unheld<'a> {
    /// The same of a body and a height field: of the columns that it overlaps, what holds it best of the one that it is deepest in.
    pub(super) fn find_on_field(
        of: Sides<'a>,
        held: [Meeting; SLOTS],
        (now, end): (Poses<'a>, Poses<'a>),
        (below, closer): (f64, f64),
    ) -> Option<Meeting> {
        let Surface::Heights(field) = &of.0.surface else {
            return None;
        };
        let normals = held.map(|held| {
            let is_held = held != Meeting::Apart;
            is_held.then(|| between::touch(of, (0, &held), end).normal)
        });
        let mut overlaps = false;
        let mut best: Option<(Rank, f64, Meeting)> = None;
        for triangle in field.below_body(of, end) {
            let mut all = Self::new(of, held, (now, end), below);
            (all.column, all.closer) = (Some(triangle), closer);
            if all.is_clearly_apart() || normals.iter().flatten().any(|n| all.separates(n)) {
                continue;
            }
            all.search();
            if all.most > -below || all.beside() > -below {
                continue;
            }
            match all.best {
                // corners of polytopes have places of their own
                Some((.., Meeting::Parts([Part::Face(_), Part::Vertex(_)]))) => {}
                Some((rank, _, found)) => {
                    let is_better = |(than, depth, _): (Rank, f64, Meeting)| {
                        rank < than || rank == than && all.most < depth
                    };
                    if best.is_none_or(is_better) {
                        best = Some((rank, all.most, found));
                    }
                }
                None => {
                    overlaps |= !all.is_on_end()
                        && Self::depth_in_column(of, now, triangle) < EXACT * below;
                }
            }
        }
        let found = best.map(|(_, _, held)| held);
        found.or_else(|| overlaps.then_some(Meeting::Apart))
    }

    /// How deep a body is in a height field, m: no deeper than it is beyond the border.
    pub(super) fn depth_on_field(of: Sides<'a>, now: Poses<'a>) -> f64 {
        let Surface::Heights(field) = &of.0.surface else {
            return f64::NEG_INFINITY;
        };
        let turn = now.0.r * of.0.orientation;
        let origin = now.0.point(&of.0.position);
        let beside = field.sides().map(|(n, reach)| {
            let n = turn * n;
            cylinder::support(of.1, now.1, &-n) + n.dot(&origin) + reach
        });
        let out = beside.into_iter().fold(f64::INFINITY, f64::min);
        let columns = field.below_body(of, now);
        let depths = columns.map(|t| Self::depth_in_column(of, now, t));
        depths.fold(f64::NEG_INFINITY, f64::max).min(out)
    }

    /// How deep a body is in a column of a height field, other than from beside, m.
    fn depth_in_column(of: Sides<'a>, now: Poses<'a>, triangle: usize) -> f64 {
        let mut all = Self::new(of, [Meeting::Apart; SLOTS], (now, now), f64::INFINITY);
        all.column = Some(triangle);
        if all.is_clearly_apart() {
            return f64::NEG_INFINITY;
        }
        all.consider_all();
        if all.most < 0.0 {
            let beside = all.beside();
            if beside > -manifold::TOUCHING {
                return -beside;
            }
        }
        -all.most
    }

    /// Does a side of its column separate the body from it, or a direction that most often does: upward, an axis of the body, that from the place
    /// nearest to its center, or the same across its axis?
    fn is_clearly_apart(&self) -> bool {
        let (Some(triangle), Surface::Heights(field)) = (self.column, &self.of.0.surface) else {
            return false;
        };
        let separates = |n: Vec3| self.apart(&n) > 0.0;
        let sides = field.sides_of_column(triangle);
        if sides.iter().any(|n| separates(self.of_field(n))) {
            return true;
        }
        let (c, pose) = (self.of.1, self.end.1);
        let center = pose.point(&c.position);
        let y = Heights::local(self.of.0, self.end.0, &center);
        let near = self.of_field(&(y - field.nearest_on_triangle(triangle, &y).point));
        let axes = [0, 1, 2].map(|k| pose.r * c.orientation.column(k));
        let across = near - axes[2] * axes[2].dot(&near);
        separates(self.of_field(&Vec3::z()))
            || [near, across]
                .iter()
                .any(|n| n.try_normalize(0.0).is_some_and(separates))
            || axes.iter().any(|n| separates(*n) || separates(-n))
    }

    /// How far a vertical plane separates them, m: it touches a side or a vertical edge of the column.
    fn beside(&self) -> f64 {
        let (Some(triangle), Some(field)) = (self.column, self.field()) else {
            return f64::NEG_INFINITY;
        };
        let sides = field.sides_of_column(triangle).into_iter();
        let sides = sides.map(|n| self.apart(&self.of_field(&n)));
        let at = |angle: f64| {
            let (sin, cos) = angle.sin_cos();
            self.apart(&self.of_field(&Vec3::new(cos, sin, 0.0)))
        };
        let part = TAU / AROUND as f64;
        let samples: [f64; AROUND] = std::array::from_fn(|k| at(k as f64 * part));
        let is_most = |k: &usize| {
            let beside = [
                samples[(k + 1) % AROUND],
                samples[(k + AROUND - 1) % AROUND],
            ];
            samples[*k] >= beside[0].max(beside[1])
        };
        let edges = (0..AROUND).filter(is_most).map(|k| {
            let (mut low, mut high) = (k as f64 * part - part, k as f64 * part + part);
            while high - low > TURNS {
                let [p, q] = [low + (high - low) / 3.0, high - (high - low) / 3.0];
                if at(p) > at(q) { high = q } else { low = p }
            }
            at(0.5 * (low + high))
        });
        sides.chain(edges).fold(f64::NEG_INFINITY, f64::max)
    }

    pub(super) fn field(&self) -> Option<&'a Heights> {
        match &self.of.0.surface {
            Surface::Heights(field) => Some(field),
            _ => None,
        }
    }

    /// A direction of the first collider, world frame.
    fn of_field(&self, n: &Vec3) -> Vec3 {
        self.end.0.r * (self.of.0.orientation * n)
    }

    /// Do the ends of a capsule overlap the ground? They have places of their own.
    fn is_on_end(&self) -> bool {
        let (Some(field), Surface::Capsule { radius, .. }) = (self.field(), &self.of.1.surface)
        else {
            return false;
        };
        self.ends_of_capsule().iter().any(|y| {
            let nearest = field.nearest_triangle(y, *radius);
            nearest.is_some_and(|(_, gap, _)| gap < -self.below)
        })
    }

    /// Middles of the ends of a capsule, field frame.
    fn ends_of_capsule(&self) -> [Vec3; 2] {
        [-1.0, 1.0].map(|end| {
            let place = self.end.1.point(&self.of.1.ball(end).center);
            Heights::local(self.of.0, self.end.0, &place)
        })
    }

    /// The side of a capsule on a column, and the normals of the column and of the capsule's ends.
    pub(super) fn consider_capsule(&mut self, field: &Heights, triangle: usize) {
        let face = Heights::normal(&field.corners(triangle));
        let ends = self.ends_of_capsule();
        let ends = ends.map(|y| field.nearest_on_triangle(triangle, &y).normal);
        for n in ends.into_iter().chain([face]) {
            let n = self.of_field(&n);
            self.most = self.most.max(self.apart(&n));
        }
        for p in field.parts(triangle) {
            if self.is_apart() {
                return;
            }
            self.consider_pairs(p);
        }
    }

    /// Vertices, edges and faces of a polytope on a column.
    pub(super) fn consider_polytope(&mut self, triangle: usize) {
        let (Surface::Heights(field), Some(solid)) = (&self.of.0.surface, self.of.1.solid()) else {
            return;
        };
        for p in field.parts(triangle) {
            let (count, part): (usize, fn(usize) -> Part) = match p {
                Part::Face(_) => (solid.of.points.len(), Part::Vertex),
                Part::Edge(_) => (solid.of.edges.len(), Part::Edge),
                _ => (solid.of.faces.len(), Part::Face),
            };
            for k in 0..count {
                if self.is_apart() {
                    return;
                }
                self.consider(Meeting::Parts([p, part(k)]));
            }
        }
    }
}
