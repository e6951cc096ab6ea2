//! Points fixed on the rims of cylinders, and the contacts of which they may be exchanged within a step. Vertices of hulls that have many are
//! exchanged in the same way, on half-spaces ([`corners`]) and on faces, and so are vertices, faces and edges of other polytopes ([`Unheld`]).
//!
//! A step that leaves one of them below what it meets is solved again with it as a contact ([`exchange`](crate::contact)).

use super::between;
use super::corners;
use super::half_space;
use super::heights::FACETS;
use super::manifold;
use super::meeting::{Meeting, Part, SLOTS};
use super::sweep::{Sweep, half_thickness};
use super::unheld::Unheld;
use super::{Ahead, Collider, Contact, Pair, Search, Surface};
use crate::mechanism::Mechanism;
use crate::spatial::Pose;

/// The lowest vertex of a hull of many that is above a face of the other, as it would be held, and its gap. Those deeper than half of the
/// thinner solid are on another side.
fn lowest_corner(
    of: (&Collider, &Collider),
    (side, face): (usize, usize),
    poses: (&Pose, &Pose),
) -> Option<(Meeting, f64)> {
    let (colliders, poses) = ([of.0, of.1], [poses.0, poses.1]);
    let (c, on) = (colliders[side], colliders[1 - side]);
    let (own, other) = (c.solid()?, on.solid()?);
    let (turn, place) = manifold::relative(&other, &own, (poses[1 - side], poses[side]));
    let n = other.of.faces[face].normal;
    let up = turn.tr_mul(&n);
    let level = n.dot(&(place - other.local(other.of.faces[face].top)));
    let deepest = -half_thickness(of.0).min(half_thickness(of.1));
    let (mut lowest, mut vertex) = (0.0, None);
    for v in 0..own.of.points.len() {
        let p = own.local(v);
        let gap = up.dot(&p) + level;
        if gap < lowest && gap > deepest && other.is_above(face, &(turn * p + place)) {
            (lowest, vertex) = (gap, Some(v));
        }
    }
    let vertex = vertex?;
    Some((Meeting::Vertex { side, vertex, face }, lowest))
}

/// A face of the other that a vertex of a hull of many is held on.
fn corner_on_face(of: (&Collider, &Collider), held: &Meeting) -> Option<(usize, usize)> {
    match *held {
        Meeting::Vertex { side, face, .. } => [of.0, of.1][side].by_lowest.then_some((side, face)),
        _ => None,
    }
}

/// May vertices of a hull be exchanged on faces of the other?
fn has_corners(of: (&Collider, &Collider)) -> bool {
    (of.0.by_lowest || of.1.by_lowest) && of.0.solid().is_some() && of.1.solid().is_some()
}

/// Of what is held of two solids without rims, the lowest vertex on a face, deeper than `below` it, that is not held yet.
fn lowest_of(
    of: (&Collider, &Collider),
    taken: &[Meeting; SLOTS],
    poses: (&Pose, &Pose),
    below: f64,
) -> Option<Meeting> {
    let mut last = None;
    let (mut deepest, mut lowest) = (-below, None);
    for held in taken {
        let on = corner_on_face(of, held);
        if on.is_none() || on == last {
            continue;
        }
        last = on;
        if let Some((point, gap)) = on.and_then(|face| lowest_corner(of, face, poses))
            && gap < deepest
            && !taken.contains(&point)
        {
            (deepest, lowest) = (gap, Some(point));
        }
    }
    lowest
}

/// Is it a place of two whole bodies whose overlaps are known, not of a ball or a corner of one on a height field?
fn is_whole(of: (&Collider, &Collider), feature: usize) -> bool {
    between::is_exchanged(of) && between::ball_on_field(of, feature).is_none()
}

impl Mechanism {
    /// Contacts of which points of rims may be exchanged within a step: those of every cylinder's end with every half-space, of every hull
    /// of many vertices with every half-space and with what has faces, those of every ball with every height field, and of every pair of
    /// cylinders and what has faces.
    pub(crate) fn rims(&self) -> Vec<Vec<usize>> {
        let group = |c: &Contact| match c.pair {
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => {
                let own = &self.colliders[collider];
                let end = half_space::end(own, feature).or(own.by_lowest.then_some(0));
                end.map(|end| (0, half_space, collider, end))
            }
            Pair::Between {
                first,
                second,
                feature,
            } => {
                let of = (&self.colliders[first], &self.colliders[second]);
                if between::ball_on_field(of, feature).is_some() {
                    return Some((2, first, second, feature / FACETS));
                }
                let is_ball = between::capsule_ends(of).contains(&feature);
                (!is_ball && (between::is_exchanged(of) || has_corners(of)))
                    .then_some((1, first, second, 0))
            }
        };
        let of = |c: &Contact| group(c).map(|g| (g, c.parent, c.child));
        let mut groups: Vec<_> = self.contacts.iter().filter_map(of).collect();
        groups.sort_unstable();
        groups.dedup();
        let members = |g| {
            let all = self.contacts.iter().enumerate();
            let own = all.filter(|(_, c)| of(c) == Some(g)).map(|(i, _)| i);
            own.collect::<Vec<_>>()
        };
        groups.into_iter().map(members).collect()
    }

    /// A point of a rim, or a vertex, that is lower than what it meets by more than `below` (m) and is not held among the contacts of a
    /// group, of which `c` is one; [`Meeting::Apart`] if bodies come to overlap and nothing would hold them.
    pub(crate) fn lower_point(
        &self,
        c: &Contact,
        held: &mut dyn Iterator<Item = Meeting>,
        (now, poses): (&[Pose], &[Pose]),
        below: f64,
    ) -> Option<Meeting> {
        match c.pair {
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => {
                let own = (&self.colliders[collider], feature);
                let ground = &self.half_spaces[half_space];
                if let Some((lowest, gap)) = corners::lowest(ground, own.0, &poses[c.child]) {
                    let mut is_held = false;
                    for held in held {
                        is_held |= held == lowest;
                    }
                    return (gap < -below && !is_held).then_some(lowest);
                }
                let (lowest, gap) = half_space::lowest_point(ground, own, &poses[c.child])?;
                let (mut is_flat, mut is_held) = (false, false);
                for held in held {
                    is_flat |= matches!(held, Meeting::OnRim(_));
                    is_held |= held == lowest;
                }
                (gap < -below && is_flat && !is_held).then_some(lowest)
            }
            Pair::Between {
                first,
                second,
                feature,
            } => {
                let (of, end) = self.sides((first, second), poses);
                let (_, now) = self.sides((first, second), now);
                let mut taken = [Meeting::Apart; SLOTS];
                for (taken, held) in taken.iter_mut().zip(held) {
                    *taken = held;
                }
                if let (Surface::Heights(heights), Some(ball)) =
                    (&of.0.surface, between::ball_on_field(of, feature))
                {
                    return heights.sunk(of.0, &ball, &taken, ([now, end], below));
                }
                match between::is_exchanged(of) {
                    true => Unheld::find(of, taken, (now, end), below),
                    false => lowest_of(of, &taken, end, below),
                }
            }
        }
    }

    /// Do the bodies of a contact overlap by more than `below` (m)? Of those whose depth is not known it is not asked.
    pub(crate) fn overlaps(&self, c: &Contact, poses: &[Pose], below: f64) -> bool {
        self.depth(c, poses).is_none_or(|depth| depth > below)
    }

    /// How deep two cylinders or polytopes overlap, m: at a place where their gap is negative one may be below the other, but beside it.
    pub(super) fn depth(&self, c: &Contact, poses: &[Pose]) -> Option<f64> {
        let ((first, second), feature) = c.pair.between()?;
        let (of, poses) = self.sides((first, second), poses);
        is_whole(of, feature).then(|| Unheld::depth(of, poses))
    }

    /// What holds two whole bodies at a knot that touch, and that nothing of `held` holds.
    pub(crate) fn touching(
        &self,
        c: &Contact,
        held: impl Iterator<Item = Meeting>,
        poses: &[Pose],
    ) -> Option<Meeting> {
        let (pair, feature) = c.pair.between()?;
        let (of, at) = self.sides(pair, poses);
        let mut taken = [Meeting::Apart; SLOTS];
        for (taken, held) in taken.iter_mut().zip(held) {
            *taken = held;
        }
        is_whole(of, feature)
            .then(|| Unheld::touching(of, taken, at))
            .flatten()
    }

    /// Will what is held of a contact be below the other body by more than `below` (m) at the next knot, if the bodies go on as before,
    /// though they do not overlap by so much? It is beside the other body then. Fast bodies may have passed through each other instead.
    pub(crate) fn is_beside(
        &self,
        c: &Contact,
        held: &Meeting,
        (poses, ahead): (&[Pose], &Ahead),
        below: f64,
        last: &mut Search,
    ) -> bool {
        let Some((pair, feature)) = c.pair.between().filter(|_| *held != Meeting::Apart) else {
            return false;
        };
        let (of, at) = self.sides(pair, poses);
        if !is_whole(of, feature) {
            return false;
        }
        let next = [(of.0.body, at.0), (of.1.body, at.1)].map(|(body, pose)| ahead.of(body, pose));
        let next = (&next[0], &next[1]);
        if between::touch(of, (feature, held), next).gap >= -below
            || Sweep::new(of, at, ahead).is_fast()
        {
            return false;
        }
        let depth = match last.depth {
            Some((known, depth)) if known == pair => depth,
            _ => last.depth.insert((pair, Unheld::depth(of, next))).1,
        };
        depth <= below
    }

    /// Has a contact the parts that are to be held of it? A solver that varies a step's unknowns may vary the numbers of them, too.
    pub(crate) fn has_parts(&self, c: &Contact, held: &Meeting) -> bool {
        let count = |c: &Collider| {
            c.solid().map_or([0; 3], |s| {
                [s.of.points.len(), s.of.faces.len(), s.of.edges.len()]
            })
        };
        let (first, second) = match c.pair {
            Pair::Ground { collider, .. } => {
                let points = count(&self.colliders[collider])[0];
                return !matches!(*held, Meeting::Corner(v) if v >= points);
            }
            Pair::Between { first, second, .. } => (first, second),
        };
        let counts = [first, second].map(|i| count(&self.colliders[i]));
        let has = |part: &Part, n: [usize; 3]| match *part {
            Part::Vertex(k) => k < n[0],
            Part::Face(k) => k < n[1],
            Part::Edge(k) => k < n[2],
            _ => true,
        };
        if let Surface::Heights(heights) = &self.colliders[first].surface {
            return match *held {
                Meeting::Triangle(t) | Meeting::Plane(t) => t < heights.triangle_count(),
                Meeting::Tilted(number, _) => heights.has_feature(number),
                Meeting::Apart => true,
                Meeting::Parts([p, q]) => heights.has_part(p) && has(&q, counts[1]),
                _ => false,
            };
        }
        match *held {
            Meeting::Vertex { side, vertex, face } => {
                side < 2 && vertex < counts[side][0] && face < counts[1 - side][1]
            }
            Meeting::RimOnFace { side, face, .. } => {
                side < 2 && face < counts[1 - usize::from(side)][1]
            }
            Meeting::Edges { edges: [a, b], .. } => a < counts[0][2] && b < counts[1][2],
            Meeting::Parts(parts) => parts.iter().zip(counts).all(|(p, n)| has(p, n)),
            Meeting::Corner(_) => false,
            _ => true,
        }
    }

    /// May something be held in place of what is held of a contact? Of solids without rims a vertex takes the place of another on the same
    /// face alone: what else holds them is not searched for within a step.
    pub(crate) fn may_replace(&self, c: &Contact, old: &Meeting, new: &Meeting) -> bool {
        let Pair::Between { first, second, .. } = c.pair else {
            return true;
        };
        let of = (&self.colliders[first], &self.colliders[second]);
        matches!(of.0.surface, Surface::Heights(_))
            || *old == Meeting::Apart
            || between::is_exchanged(of)
            || corner_on_face(of, old) == corner_on_face(of, new)
    }
}
