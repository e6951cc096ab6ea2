//! Where two polytopes may touch: what the search at a knot finds, and what is held until the next.
//!
//! The distance of a vertex from a solid is no gap for boxes that rest on each other: its normal turns about where the
//! vertex is above an edge. Here a gap is that of a vertex from the plane of a face, or of two straight lines along edges,
//! both smooth everywhere, and the search tells which of them there are: the face farthest from the other solid (of all
//! separating planes that are faces'), the face of the other that is turned to it, and the second clipped to the outline of
//! the first (Sutherland and Hodgman, Reentrant polygon clipping, 1974). A corner of what is left is a vertex of the second
//! above the first face, or a vertex of the first below the second, or two edges that cross. None of these gaps is negative
//! where the solids are apart: at its place the other solid would be inside. Where two edges separate the solids better
//! than any face, they are added (the separating axes of convex polytopes are normals of faces and products of edges:
//! Gottschalk, Separating axis theorem, 1996).
//!
//! Which face separates the solids is asked at the knot, and what is above it at the poses that the bodies would have at the
//! next if they went on as before: a gap is one at the end of the step.
//!
//! Vertices up to `PARALLEL` of an edge's length outside count as inside: so no two edges cross closer to parallel than
//! that, and boxes exactly above each other meet in four corners.

use super::Collider;
use super::corners;
use super::edges::{edge_gap, separating_edges};
use super::meeting::{Meeting, OUTLINE, SLOTS};
use super::plane::Plane;
use super::polytope::{CORNERS, Face, Solid};
use super::seam::Closed;
use super::sweep::Sweep;
use crate::spatial::{Mat3, Pose, Vec3};

/// Sine of the angle between edges below which they do not cross, and part of its length by which an edge may stick out.
/// The error of where a body is held is that part of its size.
pub(super) const PARALLEL: f64 = 1e-4;

/// Part of the solids' size by which one face, or a face beside two edges, is preferred: what decides between nearly equal
/// planes must not be rounding, and any of them will do.
const PREFERRED: f64 = 1e-3;

/// Part of the thickness of the thinner solid below a face at which a place is no longer open, but that of another side.
const OPEN: f64 = 0.5;

/// How deep solids may overlap and still count as touching, m: what solids that lie level to each other differ by.
pub(super) const TOUCHING: f64 = 1e-6;

/// What a search found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manifold {
    pub places: [Meeting; SLOTS],
}

impl Manifold {
    /// Nothing.
    pub const APART: Self = Self {
        places: [Meeting::Apart; SLOTS],
    };
}

/// Another solid in the frame of one: `R`, `t`.
pub(super) type Relative = (Mat3, Vec3);

fn inverse((r, t): &Relative) -> Relative {
    (r.transpose(), -r.tr_mul(t))
}

/// A vertex of a solid in the frame that it is placed in.
#[inline]
fn placed(s: &Solid, (r, t): &Relative, vertex: usize) -> Vec3 {
    r * s.local(vertex) + t
}

/// How far a face of `a` keeps `b` away.
fn apart_by(a: &Solid, b: &Solid, at: &Relative, face: usize) -> f64 {
    Plane::new(a, at, face).apart(b).0
}

/// From where to where a solid reaches along a direction of the other's frame.
fn reach_of<'a>(b: &'a Solid, at: &'a Relative) -> impl Fn(&Vec3) -> [f64; 2] + 'a {
    |u| {
        let heights = (0..b.of.points.len()).map(|v| u.dot(&placed(b, at, v)));
        heights.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], h| {
            [low.min(h), high.max(h)]
        })
    }
}

/// The face of `a` farthest from `b`, and how far, of those that are not closed. Not all vertices of `b` are compared with a face
/// below which one is that is known to be low.
fn separating_face(a: &Solid, b: &Solid, at: &Relative, closed: (Closed, Closed)) -> (usize, f64) {
    let (mut best, mut low) = ((0, f64::NEG_INFINITY), 0);
    for face in 0..a.of.faces.len() {
        let plane = Plane::new(a, at, face);
        if plane.height(b, low) <= best.1 {
            continue;
        }
        let (apart, lowest) = plane.apart(b);
        if apart > best.1 && !is_closed((a, b), at, &a.of.faces[face].normal, closed) {
            (best, low) = ((face, apart), lowest);
        }
    }
    best
}

/// Is a direction out of `a`, in its frame, closed by a seam of either?
#[inline]
pub(super) fn is_closed(
    (a, b): (&Solid, &Solid),
    at: &Relative,
    n: &Vec3,
    (own, other): (Closed, Closed),
) -> bool {
    !own.is_empty() && own.blocks(a, n) || !other.is_empty() && other.blocks(b, &-at.0.tr_mul(n))
}

/// What a corner of a clipped outline is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// A vertex of the face that is clipped.
    Own(usize),
    /// A vertex of the face that clips.
    Other(usize),
    /// An edge of the first and one of the second.
    Both(usize, usize),
}

/// A corner of the outline, and what runs from it to the next: an edge of the face clipped, or side `k` of the other.
#[derive(Clone, Copy, Debug)]
struct Corner {
    at: Vec3,
    origin: Origin,
    follows: Result<usize, usize>,
}

/// Corners in turn.
struct Outline {
    corners: [Corner; 2 * CORNERS],
    len: usize,
}

impl Outline {
    fn empty() -> Self {
        Self {
            corners: [Corner {
                at: Vec3::zeros(),
                origin: Origin::Own(0),
                follows: Ok(0),
            }; 2 * CORNERS],
            len: 0,
        }
    }

    fn push(&mut self, corner: Corner) {
        if let Some(place) = self.corners.get_mut(self.len) {
            *place = corner;
            self.len += 1;
        }
    }

    fn all(&self) -> &[Corner] {
        &self.corners[..self.len]
    }

    /// The face of `b` in the frame of `a`.
    fn of(b: &Solid, at: &Relative, face: &Face) -> Self {
        let mut out = Self::empty();
        for (v, e) in face.corners.iter().zip(&face.edges) {
            out.push(Corner {
                at: placed(b, at, *v),
                origin: Origin::Own(*v),
                follows: Ok(*e),
            });
        }
        out
    }

    /// What is within side `k` of a face of `a`, corners up to `slack` beyond it included.
    fn clip(&self, (a, face): (&Solid, &Face), k: usize, slack: f64, out: &mut Self) {
        let n = face.corners.len();
        let [p, q] = [k, (k + 1) % n].map(|i| a.local(face.corners[i]));
        let inward = face.normal.cross(&(q - p)).normalize();
        let depth = |c: &Corner| inward.dot(&(c.at - p)) + slack;
        out.len = 0;
        for (i, c) in self.all().iter().enumerate() {
            let next = self.all().get(i + 1).unwrap_or(&self.corners[0]);
            let (from, to) = (depth(c), depth(next));
            if from >= 0.0 {
                out.push(*c);
            }
            if (from < 0.0) == (to < 0.0) {
                continue;
            }
            // a corner that just sticks out is where its edge crosses the side
            if from.max(to) < 2.0 * slack {
                if from >= 0.0 {
                    out.corners[out.len - 1].follows = Err(k);
                }
                continue;
            }
            let origin = match c.follows {
                Ok(edge) => Origin::Both(face.edges[k], edge),
                // sides are clipped by in turn: the vertex between them
                Err(other) if (other + 1) % n == k => Origin::Other(face.corners[k]),
                Err(_) => Origin::Other(face.corners[(k + 1) % n]),
            };
            out.push(Corner {
                at: c.at + (next.at - c.at) * (from / (from - to)),
                origin,
                follows: if from >= 0.0 { Err(k) } else { c.follows },
            });
        }
    }
}

/// The corners of what a face of `b` and a face of `a` have in common, seen along the normal of the second, and what they
/// are; none deeper than half the size of `a` below it.
fn outline(a: &Solid, b: &Solid, at: &Relative, face: usize) -> (Outline, usize) {
    let face = &a.of.faces[face];
    let n = at.0.tr_mul(&face.normal);
    let turned = |f: usize| b.of.faces[f].normal.dot(&n);
    let mut other = 0;
    for f in 1..b.of.faces.len() {
        if turned(f) < turned(other) {
            other = f;
        }
    }
    let of = &b.of.faces[other];
    let longest = (of.edges.iter()).fold(0.0_f64, |m, e| m.max(b.local_edge(*e).2));
    let (mut left, mut spare) = (Outline::of(b, at, of), Outline::empty());
    for k in 0..face.corners.len() {
        let (from, to) = match k % 2 {
            0 => (&left, &mut spare),
            _ => (&spare, &mut left),
        };
        from.clip((a, face), k, PARALLEL * longest, to);
    }
    let left = if face.corners.len().is_multiple_of(2) {
        left
    } else {
        spare
    };
    (left, other)
}

/// Are two colliders, which reach so far about their places, so far apart that they cannot meet within a step in which they move
/// so far against each other?
pub(super) fn is_far(
    (p, q): (f64, f64),
    (a, b): (&Collider, &Collider),
    (x, y): (&Pose, &Pose),
    moved: f64,
) -> bool {
    let more = (moved - (p + q)).max(0.0);
    (y.point(&b.position) - x.point(&a.position)).norm() > 2.0 * (p + q) + more
}

/// The face that keeps two solids farthest apart, of the second if the first is true.
fn separating(
    a: &Solid,
    b: &Solid,
    (at, back): (&Relative, &Relative),
    closed: (Closed, Closed),
) -> (bool, usize) {
    let first = separating_face(a, b, at, closed);
    let second = separating_face(b, a, back, (closed.1, closed.0));
    let swapped = second.1 > first.1 + PREFERRED * a.reach().min(b.reach());
    (swapped, if swapped { second.0 } else { first.0 })
}

/// A face that keeps two solids apart now and ahead, if one does: they pass.
fn passing(
    a: &Solid,
    b: &Solid,
    here: (&Relative, &Relative),
    there: (&Relative, &Relative),
    closed: (Closed, Closed),
) -> Option<(bool, usize)> {
    let best = |a: &Solid, b: &Solid, here: &Relative, there: &Relative, closed| {
        let (mut best, mut low) = ((0, -TOUCHING), 0);
        for face in 0..a.of.faces.len() {
            let plane = Plane::new(a, here, face);
            if plane.height(b, low) <= best.1 {
                continue;
            }
            let (now, lowest) = plane.apart(b);
            low = lowest;
            let apart = now.min(apart_by(a, b, there, face));
            if apart > best.1 && !is_closed((a, b), here, &a.of.faces[face].normal, closed) {
                best = (face, apart);
            }
        }
        best
    };
    let first = best(a, b, here.0, there.0, closed);
    let second = best(b, a, here.1, there.1, (closed.1, closed.0));
    let swapped = second.1 > first.1 + PREFERRED * a.reach().min(b.reach());
    let (face, apart) = if swapped { second } else { first };
    (apart > -TOUCHING).then_some((swapped, face))
}

/// How deep the other solid is below that face.
fn below(
    a: &Solid,
    b: &Solid,
    (swapped, face): (bool, usize),
    (at, back): (&Relative, &Relative),
) -> f64 {
    if swapped {
        -apart_by(b, a, back, face)
    } else {
        -apart_by(a, b, at, face)
    }
}

/// Another solid in the frame of one.
pub(super) fn relative(a: &Solid, b: &Solid, (p, q): (&Pose, &Pose)) -> Relative {
    let turn = a.orientation.transpose() * p.r.transpose();
    let span = turn * (q.point(&b.position) - p.point(&a.position));
    (turn * q.r * b.orientation, span)
}

/// What of the first and the second meets: of the planes that keep them apart now, and at the places where they will be
/// about at the end of a step. What moves past an edge so is not held by the plane of the face beside it, and what moves
/// over one is. Two edges that separate the solids better than a face are asked for where these are their own.
pub(super) fn search(
    (a, b): (&Solid, &Solid),
    now: (&Pose, &Pose),
    ahead: (&Pose, &Pose),
    sweep: &Sweep,
    separate: bool,
) -> Manifold {
    let mut found = Manifold::APART;
    let (ra, rb) = (a.reach(), b.reach());
    let size = ra.min(rb);
    let (mut here, mut at) = (relative(a, b, now), relative(a, b, ahead));
    let (mut from_here, mut back) = (inverse(&here), inverse(&at));
    let closed = (
        Closed::new(
            a,
            size,
            |face| apart_by(a, b, &here, face),
            reach_of(b, &here),
        ),
        Closed::new(
            b,
            size,
            |face| apart_by(b, a, &from_here, face),
            reach_of(a, &from_here),
        ),
    );
    let (mut swapped, mut face) = separating(a, b, (&here, &from_here), closed);
    if below(a, b, (swapped, face), (&at, &back)) > TOUCHING
        && let Some(level) = passing(a, b, (&here, &from_here), (&at, &back), closed)
    {
        (swapped, face) = level;
    }
    let deep = OPEN * sweep.thickness();
    let knot = here;
    // how far the best plane keeps them apart at the knot
    let mut level = -below(a, b, (swapped, face), (&here, &from_here));
    let by_faces = level > -TOUCHING;
    if !by_faces && let Some((.., by)) = separating_edges(a, b, &here, closed, (level, |_, _| true))
    {
        level = level.max(by);
    }
    // rest is among the velocities that a gap allows which is not negative at the knot: it adds no energy
    let allows_rest = |edges, against| {
        edge_gap((a, b), &knot, (edges, against)).is_none_or(|gap| gap > level.min(0.0) - TOUCHING)
    };
    if below(a, b, (swapped, face), (&at, &back)) > deep || (!by_faces && sweep.is_fast()) {
        (here, at) = match sweep.first() {
            None => (at, at),
            Some(([p, q], _)) => {
                let first = relative(a, b, (&p, &q));
                (first, first)
            }
        };
        (from_here, back) = (inverse(&here), inverse(&at));
        (swapped, face) = separating(a, b, (&here, &from_here), closed);
    }
    let common = |at: &Relative, back: &Relative| {
        if swapped {
            outline(b, a, back, face)
        } else {
            outline(a, b, at, face)
        }
    };
    let (mut left, mut other) = common(&at, &back);
    if left.len == 0 {
        // they may not go on as before
        (at, back) = (here, from_here);
        (left, other) = common(&at, &back);
    }
    let (own, at_own) = if swapped { (b, &back) } else { (a, &at) };
    let clipped = if swapped { a } else { b };
    let side = usize::from(swapped);
    let meeting = |c: &Corner| match c.origin {
        Origin::Own(vertex) => Meeting::Vertex {
            side: 1 - side,
            vertex,
            face,
        },
        Origin::Other(vertex) => Meeting::Vertex {
            side,
            vertex,
            face: other,
        },
        Origin::Both(e, o) => {
            let n = own.of.faces[face].normal;
            let (u, v) = (own.local_edge(e).1, at_own.0 * clipped.local_edge(o).1);
            // out of the face, and turned about once more where that is the second's
            Meeting::Edges {
                edges: if swapped { [o, e] } else { [e, o] },
                against: u.cross(&v).dot(&n) < 0.0,
            }
        }
    };
    let n = own.of.faces[face].normal;
    let level = n.dot(&own.local(own.of.faces[face].top));
    let apart = (0..clipped.of.points.len())
        .map(|v| n.dot(&placed(clipped, at_own, v)) - level)
        .fold(f64::INFINITY, f64::min);
    let mut chosen = [false; 2 * CORNERS];
    let corners = left.all();
    let height = |c: &Corner| n.dot(&c.at) - level;
    // what is that deep is on the other side
    let open = |c: &Corner| height(c) > -deep;
    let mut count = 0;
    while count < OUTLINE {
        // the lowest, then those farthest from the ones chosen
        let score = |i: usize| {
            let from = corners.iter().zip(&chosen).filter(|(_, taken)| **taken);
            let least = from.map(|(c, _)| (c.at - corners[i].at).norm());
            least
                .reduce(f64::min)
                .unwrap_or_else(|| -height(&corners[i]))
        };
        let free = (0..corners.len()).filter(|i| !chosen[*i] && open(&corners[*i]));
        let better = |best: Option<usize>, i: usize| match best {
            Some(best) if score(i) <= score(best) + PREFERRED * size => Some(best),
            _ => Some(i),
        };
        let Some(next) = free.fold(None, better) else {
            break;
        };
        chosen[next] = true;
        count += 1;
    }
    // each at a place of the vertex that it is nearest to: as bodies slide past each other corners come and go, and those that
    // stay keep their places
    let vertices = &clipped.of.faces[other].corners;
    let each = (OUTLINE / vertices.len()).max(1);
    let taken = corners.iter().zip(&chosen).filter(|(_, taken)| **taken);
    for (corner, _) in taken {
        let from = |k: &usize| (placed(clipped, at_own, vertices[*k]) - corner.at).norm_squared();
        let near = (0..vertices.len()).min_by(|i, j| from(i).total_cmp(&from(j)));
        let first = each * near.unwrap_or(0) % OUTLINE;
        let free = |place: &usize| found.places[*place] == Meeting::Apart;
        let place = (first..OUTLINE).chain(0..first).find(free);
        found.places[place.expect("no more are chosen than there are places")] = meeting(corner);
    }
    if clipped.is_fine {
        // the corners of one small face leave places free
        let at_knot = if swapped { &inverse(&knot) } else { &knot };
        let turned = |is_now, up: &Vec3| (if is_now { at_knot } else { at_own }).0.tr_mul(up);
        let chosen = corners::choose(clipped, &n, turned);
        let held = |vertex| {
            let at = placed(clipped, at_own, vertex);
            let is_open = n.dot(&at) - level > -deep && own.is_above(face, &at);
            is_open.then_some(Meeting::Vertex {
                side: 1 - side,
                vertex,
                face,
            })
        };
        corners::place(&mut found.places, chosen, held);
    }
    if separate
        && let Some((edges, against, _)) =
            separating_edges(a, b, &at, closed, (apart - PREFERRED * size, allows_rest))
    {
        let edges = Meeting::Edges { edges, against };
        let known = &found.places[..OUTLINE];
        if !known.contains(&edges) {
            found.places[OUTLINE] = edges;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::contact::Ahead;
    use crate::mechanism::contact::samples::{BOX, check, hull, plain, two};
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Mechanism, Surface};
    use crate::spatial::exp;

    const CUBE: Surface = Surface::Box([0.2; 3]);

    fn touches(m: &Mechanism, poses: &[Pose; 2]) -> Vec<(Meeting, crate::mechanism::Touch)> {
        let each = m.contacts.iter();
        each.map(|c| (m.meeting(c, poses, &Ahead::NONE), m.touch(c, poses)))
            .filter(|(held, _)| *held != Meeting::Apart)
            .collect()
    }

    fn least(m: &Mechanism, poses: &[Pose; 2]) -> f64 {
        let gaps = m.contacts.iter().map(|c| m.touch(c, poses).gap);
        gaps.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, BOX, BOX), 2);
        check(&two(3, BOX, hull()), 4);
        check(&two(5, hull(), hull()), 6);
    }

    #[test]
    fn boxes_exactly_above_each_other_meet_in_four_corners() {
        let m = plain(two(1, CUBE, CUBE));
        for (turn, offset) in [
            (0.0, Vec3::zeros()),
            (std::f64::consts::FRAC_PI_2, Vec3::zeros()),
            (1e-6, Vec3::new(-1e-7, 2e-7, 0.0)),
            (0.0, Vec3::new(0.02, 0.0, 0.0)),
            (0.0, Vec3::new(0.02, -0.03, 0.0)),
        ] {
            let height = Vec3::z() * 0.2001;
            let above = Pose::new(height + offset, exp(&(Vec3::z() * turn)));
            let found = touches(&m, &[Pose::identity(), above]);
            assert_eq!(found.len(), 4, "{found:?}");
            let corner = Vec3::new(0.1, 0.1, 0.0);
            for (held, t) in &found {
                assert!((t.gap - 1e-4).abs() < 1e-12, "{held:?} {t:?}");
                assert!((t.normal - Vec3::z()).norm() < 1e-9);
                let inside = t.point - offset * 0.5;
                let expected = corner - offset.abs() * 0.5;
                assert!((inside.x.abs() - expected.x).abs() < 1e-6);
                assert!((inside.y.abs() - expected.y).abs() < 1e-6);
            }
        }
        // an eighth of a turn: eight crossings of edges
        let above = Pose::new(Vec3::z() * 0.2001, exp(&(Vec3::z() * 0.6)));
        let found = touches(&m, &[Pose::identity(), above]);
        assert_eq!(found.len(), 8);
        let edges = |held: &Meeting| matches!(held, Meeting::Edges { .. });
        assert!(
            found
                .iter()
                .all(|(held, t)| edges(held) && (t.gap - 1e-4).abs() < 1e-12)
        );
    }

    /// Boxes are apart if and only if a direction separates them: face normals and products of edges, all tried.
    #[test]
    fn gaps_are_negative_only_where_boxes_overlap() {
        let m = plain(two(1, BOX, BOX));
        let half = Vec3::new(0.3, 0.175, 0.1);
        let s = &mut Source::new(7);
        let (mut apart, mut over, mut edges) = (0, 0, 0);
        for _ in 0..4000 {
            let poses = [s.pose(), s.pose()].map(|p| Pose::new(p.x * 0.35, p.q));
            let [a, b] = poses;
            let mut axes: Vec<Vec3> = (0..3)
                .flat_map(|k| [a.r.column(k).into(), b.r.column(k).into()])
                .collect();
            for i in 0..9 {
                let n: Vec3 = a.r.column(i / 3).cross(&b.r.column(i % 3));
                if n.norm() > 1e-6 {
                    axes.push(n.normalize());
                }
            }
            let support = |p: &Pose, n: &Vec3| p.r.tr_mul(n).abs().dot(&half);
            let by = |n: &Vec3| n.dot(&(b.x - a.x)).abs() - support(&a, n) - support(&b, n);
            let most = axes.iter().map(by).fold(f64::NEG_INFINITY, f64::max);
            let found = least(&m, &poses);
            if most > 0.0 {
                apart += 1;
                assert!(found >= 0.0, "apart by {most}, gap {found}");
            } else if most > -0.02 {
                over += 1;
                // as deep as the overlap along the best direction, at least
                assert!(found <= 0.9 * most + 1e-12, "overlap {most}, gap {found}");
            }
            let crossing = |(held, t): &(Meeting, crate::mechanism::Touch)| {
                matches!(held, Meeting::Edges { .. }) && (t.gap - most).abs() < 1e-12
            };
            edges += usize::from(touches(&m, &poses).iter().any(crossing));
        }
        assert!(
            apart > 500 && over > 100 && edges > 100,
            "{apart} {over} {edges}"
        );
    }
}
