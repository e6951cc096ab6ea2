//! Seams: edges of polytopes where another solid of the same body, or of the world, goes on level with one of the faces.
//!
//! Across such an edge nothing reaches the face on its other side, because the neighbor is there. That face and the
//! edge must then not stop what slides over both: a body on the first solid is beside the second, and the face at the seam separates them
//! better than the level one. A direction `n` out of the solid is closed if it leans to a closed face and the solid's
//! support along `n` is on that face alone. Seams are found once, from the mechanism as it is built; parameters that move
//! solids afterwards do not change them.

use super::cylinder;
use super::meeting::{END, Meeting, Part};
use super::nearest::Ball;
use super::polytope::Solid;
use super::{Collider, HalfSpace, Surface};
use crate::spatial::{Pose, Vec3};

/// How much lower the neighbor may be, m: solids that touch within 1e-6 m, and rounding.
pub(super) const FLUSH: f64 = 1.01e-6;

/// Width of a gap to the neighbor that still counts as closed, m. Joints of floors and tracks are about that wide; a ball of 5 cm would sink
/// by 2.5e-6 m into one. What is to fall into such a gap needs it wider.
const GAP: f64 = 1.001e-3;

/// Cosine from which a direction leans to a face: a plane that leans less stops nothing but rounding.
const LEANS: f64 = 1e-6;

/// Part of the smaller solid's reach by which a body may be below the level face and still be above it: ends of
/// cylinders sink in when they come down.
const SUNK: f64 = 0.1;

/// What of the solid's size decides between vertices at the same height.
const LEVEL: f64 = 1e-9;

/// An edge of a polytope, or a part of it, that a neighbor closes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seam {
    pub edge: usize,
    /// From where to where along the edge, from its first end, m; infinite where it is closed up to an end.
    pub part: [f64; 2],
    /// The face that the neighbor goes on.
    pub over: usize,
    /// The other face at the edge.
    pub side: usize,
}

impl Seam {
    /// Is a place of the collider's frame, seen across the edge, at the part that is closed?
    pub(super) fn is_at(&self, s: &Solid, y: &Vec3) -> bool {
        let (end, along, _) = s.local_edge(self.edge);
        (self.part[0]..=self.part[1]).contains(&along.dot(&(y - end)))
    }
}

/// What is solid below planes: their outward normals and heights.
type Planes = Vec<(Vec3, f64)>;

/// The convex parts of a collider that may be neighbors: all of a box or a hull, columns at the border of a height field.
fn parts(c: &Collider) -> Vec<Planes> {
    let placed = |(n, at): (Vec3, Vec3)| {
        let n = c.orientation * n;
        (n, n.dot(&(c.position + c.orientation * at)))
    };
    if let Surface::Heights(field) = &c.surface {
        let columns = field.border().map(|t| field.planes_of_column(t));
        return columns.map(|planes| planes.map(placed).to_vec()).collect();
    }
    let of_solid = |s: Solid| {
        let plane = |face: &super::polytope::Face| (face.normal, s.local(face.top));
        s.of.faces.iter().map(plane).map(placed).collect()
    };
    solid(c).map(of_solid).into_iter().collect()
}

/// A box or a hull.
fn solid(c: &Collider) -> Option<Solid<'_>> {
    c.solid().filter(|_| !cylinder::is_cylinder(c))
}

/// The seams of every collider, and its edges within neighbors. Of colliders and half-spaces, the colliders of other bodies
/// that they meet: one that does not meet all that a solid meets is no neighbor of that.
pub(super) fn seams(
    (colliders, meets): (&[Collider], &[Vec<usize>]),
    (half_spaces, ground_meets): (&[HalfSpace], &[Vec<usize>]),
) -> Vec<(Vec<Seam>, Vec<usize>)> {
    let solids: Vec<Vec<Planes>> = colliders.iter().map(parts).collect();
    let ground: Vec<Planes> = half_spaces
        .iter()
        .map(|h| vec![(h.normal, h.offset)])
        .collect();
    let reach = |c: &Collider| match &c.surface {
        Surface::Heights(field) => field.reach(),
        _ => cylinder::reach(c),
    };
    let reaches: Vec<f64> = colliders.iter().map(reach).collect();
    let of = |(i, c): (usize, &Collider)| {
        let near = |(k, other): &(usize, &Collider)| {
            let far = (other.position - c.position).norm() - reaches[i] - reaches[*k];
            *k != i
                && other.body == c.body
                && !solids[*k].is_empty()
                && far < 2.0 * GAP
                && meets[i].iter().all(|m| meets[*k].contains(m))
        };
        let others = colliders.iter().enumerate().filter(near);
        let holds = |g: &usize| meets[i].iter().all(|m| ground_meets[*g].contains(m));
        let world = (0..ground.len()).filter(|g| c.body.is_none() && holds(g));
        let all: Vec<&[(Vec3, f64)]> = others
            .flat_map(|(k, _)| solids[k].iter().map(|planes| &planes[..]))
            .chain(world.map(|g| &ground[g][..]))
            .collect();
        match solid(c) {
            Some(s) if !all.is_empty() => of_solid(&s, &all),
            _ => (vec![], vec![]),
        }
    };
    colliders.iter().enumerate().map(of).collect()
}

fn of_solid(s: &Solid, others: &[&[(Vec3, f64)]]) -> (Vec<Seam>, Vec<usize>) {
    let (mut found, mut buried) = (vec![], vec![]);
    for (edge, e) in s.of.edges.iter().enumerate() {
        let mut within = 0;
        for [over, side] in [e.faces, [e.faces[1], e.faces[0]]] {
            let [up, out] = [over, side].map(|f| s.orientation * s.of.faces[f].normal);
            let out = (out - up * up.dot(&out)).normalize();
            let along = |by: Vec3| e.ends.map(|v| s.vertex(v) + by);
            // nothing reaches a face that is within a neighbor
            let closed = covered(along(out * GAP), others);
            let above = covered(along((up - out) * GAP), others);
            within += usize::from(closed.contains(&ALL));
            let apart = |p: &[f64; 2], q: &[f64; 2]| p[1] <= q[0] || q[1] <= p[0];
            let open = closed
                .into_iter()
                .filter(|p| above.iter().all(|q| apart(p, q)));
            let (_, _, length) = s.local_edge(edge);
            found.extend(open.map(|shares| Seam {
                edge,
                part: shares.map(|share| share * length),
                over,
                side,
            }));
        }
        if within == 2 {
            buried.push(edge);
        }
    }
    (found, buried)
}

/// All of a segment, as shares of it.
const ALL: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

/// The parts of a segment that are within the solids, but for gaps, as shares of it; infinite up to its ends.
fn covered([p, q]: [Vec3; 2], others: &[&[(Vec3, f64)]]) -> Vec<[f64; 2]> {
    let mut parts: Vec<(f64, f64)> = (others.iter())
        .filter_map(|planes| inside((p, q), planes))
        .collect();
    parts.sort_by(|a, b| a.0.total_cmp(&b.0));
    // neighbors may have gaps between each other, too
    let slack = 2.0 * GAP / (q - p).norm();
    let mut merged: Vec<[f64; 2]> = vec![];
    for (from, to) in parts {
        match merged.last_mut() {
            Some(last) if from <= last[1] + slack => last[1] = last[1].max(to),
            _ => merged.push([from, to]),
        }
    }
    for [from, to] in &mut merged {
        if *from <= slack {
            *from = f64::NEG_INFINITY;
        }
        if *to >= 1.0 - slack {
            *to = f64::INFINITY;
        }
    }
    merged
}

/// The shares of a segment between which it is below all planes.
fn inside((p, q): (Vec3, Vec3), planes: &[(Vec3, f64)]) -> Option<(f64, f64)> {
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    for (n, height) in planes {
        let (a, b) = (n.dot(&p) - height - FLUSH, n.dot(&q) - height - FLUSH);
        if a > 0.0 && b > 0.0 {
            return None;
        }
        if a > 0.0 {
            from = from.max(a / (a - b));
        } else if b > 0.0 {
            to = to.min(a / (a - b));
        }
    }
    (from < to).then_some((from, to))
}

/// Faces of a polytope that nothing reaches, of the first 64: a bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed(u64);

impl Closed {
    /// Those of a solid beside faces that keep the other solid away by `apart`, where `size` is the reach of the smaller solid, and the other
    /// one reaches from where to where along a direction of the first one's frame.
    #[inline]
    pub fn new(
        s: &Solid,
        size: f64,
        apart: impl Fn(usize) -> f64,
        reach: impl Fn(&Vec3) -> [f64; 2],
    ) -> Self {
        let mut bits = 0;
        for seam in s.seams {
            let is_beside = || {
                let (end, along, _) = s.local_edge(seam.edge);
                let [from, to] = reach(&along).map(|at| at - along.dot(&end));
                seam.part == ALL || seam.part[0] - GAP <= from && to <= seam.part[1] + GAP
            };
            if seam.side < 64 && apart(seam.over) >= -SUNK * size && is_beside() {
                bits |= 1 << seam.side;
            }
        }
        Self(bits)
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Is a direction out of the solid, collider frame, closed?
    pub fn blocks(self, s: &Solid, n: &Vec3) -> bool {
        let closed = (0..s.of.faces.len().min(64)).filter(|f| self.0 >> f & 1 == 1);
        closed.into_iter().any(|f| {
            let face = &s.of.faces[f];
            if face.normal.dot(n) <= LEANS {
                return false;
            }
            let height = |v: usize| n.dot(&s.local(v));
            let own = face.corners.iter().map(|v| height(*v));
            let most = own.fold(f64::NEG_INFINITY, f64::max) - LEVEL * s.reach();
            let mut others = (0..s.of.points.len()).filter(|v| !face.corners.contains(v));
            others.all(|v| height(v) < most)
        })
    }
}

/// Is a direction from the first collider to the second closed by a seam of either?
pub(super) fn is_closed(of: (&Collider, &Collider), poses: (&Pose, &Pose), n: &Vec3) -> bool {
    let (colliders, poses_of) = ([of.0, of.1], [poses.0, poses.1]);
    (0..2).any(|side| {
        let (c, pose) = (colliders[side], poses_of[side]);
        let Some(s) = solid(c).filter(|_| !c.seams.is_empty()) else {
            return false;
        };
        let sign = [1.0, -1.0][side];
        let size = cylinder::reach(of.0).min(cylinder::reach(of.1));
        let above = |face: usize| {
            let out = pose.r * s.orientation * s.of.faces[face].normal;
            cylinder::apart(of, poses, &(out * sign))
        };
        let (other, place) = ([of.0, of.1][1 - side], poses_of[1 - side]);
        let reach = |u: &Vec3| {
            let n = pose.r * c.orientation * u;
            let origin = n.dot(&pose.point(&c.position));
            let [up, down] = [n, -n].map(|n| cylinder::support(other, place, &n));
            [-down - origin, up - origin]
        };
        let closed = Closed::new(&s, size, above, reach);
        closed.blocks(&s, &(s.orientation.tr_mul(&pose.r.tr_mul(n)) * sign))
    })
}

/// What of a polytope with seams a ball meets, where that is not its surface: the level plane as far as a seam's gap, and
/// nothing beyond, where the neighbor holds the ball. Which part of the ball's body it is: `part`.
pub(super) fn meeting(
    (ball, part): (&Ball, Part),
    (on, side): (&Collider, usize),
    [now, next]: [[&Pose; 2]; 2],
) -> Option<Meeting> {
    let s = solid(on)?;
    let local = |p: [&Pose; 2]| {
        let z = p[1].r.tr_mul(&(p[0].point(&ball.center) - p[1].x));
        on.orientation.tr_mul(&(z - on.position))
    };
    let (y, then) = (local(now), local(next));
    let mut last = None;
    for seam in &on.seams {
        if last == Some(seam.over) {
            continue;
        }
        last = Some(seam.over);
        let face = &s.of.faces[seam.over];
        let above = |y: &Vec3| face.normal.dot(&(y - s.local(face.top)));
        // an edge that the ball does not come to is no obstacle, and the distance from the solid does not jump where the ball crosses it
        // high above: `direct` sees gaps of bodies in flight
        let is_near = above(&y).min(above(&then)) - ball.radius <= (then - y).norm() + GAP;
        if above(&y) <= 0.0 || !is_near {
            continue;
        }
        let beyond = [y, then].map(|y| beyond(&s, on, seam.over, &y));
        let [Some(here), Some(there)] = beyond else {
            continue;
        };
        if here <= 0.0 && there <= 0.0 {
            continue;
        }
        if here.min(there) > GAP {
            return Some(Meeting::Apart);
        }
        let mut parts = [part; 2];
        parts[side] = Part::Face(seam.over);
        return Some(Meeting::Parts(parts));
    }
    None
}

/// How far a place, collider frame, is beyond the edges of a face, m; none where it is beyond one that is no seam.
fn beyond(s: &Solid, on: &Collider, over: usize, y: &Vec3) -> Option<f64> {
    let face = &s.of.faces[over];
    let n = face.corners.len();
    let mut most = f64::NEG_INFINITY;
    for k in 0..n {
        let [p, q] = [k, (k + 1) % n].map(|i| s.local(face.corners[i]));
        let out = (q - p).cross(&face.normal).normalize();
        let by = out.dot(&(y - p));
        let is_seam =
            |seam: &Seam| seam.over == over && seam.edge == face.edges[k] && seam.is_at(s, y);
        if by > 0.0 && !on.seams.iter().any(is_seam) {
            return None;
        }
        most = most.max(by);
    }
    Some(most)
}

/// The part that an end of a capsule is, or a ball.
pub(super) fn part(round: &Collider, feature: usize) -> (Part, f64) {
    match round.surface {
        Surface::Capsule { .. } if feature == 0 => (Part::Ring(-END), -1.0),
        Surface::Capsule { .. } => (Part::Ring(END), 1.0),
        _ => (Part::Ring(0), 0.0),
    }
}
