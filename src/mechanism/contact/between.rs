//! Two colliders of two bodies: which features meet, and the one path from any of them to a touch.

use super::ball::{self, Grown};
use super::capsule_capsule::{self, SLOTS};
use super::capsule_polytope::{self, ENDS, Roles};
use super::crossing::{Crossing, Line};
use super::cylinder::{self, is_cylinder};
use super::frame::TouchSlope;
use super::half_space;
use super::heights::FACETS;
use super::manifold::{self, Manifold};
use super::meeting::{self, Meeting, OUTLINE, PLACES};
use super::nearest::{Ball, On};
use super::polytope::Solid;
use super::ring::Ring;
use super::seam;
use super::sway::Sway;
use super::sweep::Sweep;
use super::{Collider, Surface, Touch};
use crate::spatial::{Pose, Vec3};

type Sides<'a> = (&'a Collider, &'a Collider);
type Poses<'a> = (&'a Pose, &'a Pose);

/// What a slot between two colliders is at a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// A ball of the first collider (`side` 0) or the second (1) on the other.
    Ball { side: usize, ball: Ball, on: On },
    /// Two axes or edges cross.
    Crossing(Crossing),
    /// A circle on a plane, a line or a circle.
    Ring(Ring),
}

/// Do the surfaces meet, the first as the parent's? Points on points have nothing to overlap; height fields are the world's
/// alone.
pub(crate) fn is_supported(first: &Surface, second: &Surface) -> bool {
    match (first, second) {
        (Surface::Point, Surface::Point) | (_, Surface::Heights(_)) => false,
        (Surface::Heights(_), _) => true,
        _ => edginess(first) <= edginess(second),
    }
}

/// Which side is a capsule where the other is a polytope or a cylinder.
#[inline]
fn capsule(of: Sides) -> Option<usize> {
    let is_capsule = |c: &Collider| matches!(c.surface, Surface::Capsule { .. });
    let has_edges = |c: &Collider| is_polytope(c) || is_cylinder(c);
    match (is_capsule(of.0), is_capsule(of.1)) {
        (true, false) if has_edges(of.1) => Some(0),
        (false, true) if has_edges(of.0) => Some(1),
        _ => None,
    }
}

#[inline]
fn is_polytope(c: &Collider) -> bool {
    matches!(c.surface, Surface::Box(_) | Surface::Hull(_))
}

/// Balls first, then capsules, then what has edges.
#[inline]
fn edginess(of: &Surface) -> u8 {
    match of {
        Surface::Point | Surface::Sphere(_) => 0,
        Surface::Capsule { .. } => 1,
        Surface::Cylinder { .. } | Surface::Box(_) | Surface::Hull(_) | Surface::Heights(_) => 2,
    }
}

/// Names of the places of a capsule and a polytope.
const EDGES: [&str; capsule_polytope::SLOTS] = [" -", " +", " 1", " 2", " 3", " 4"];

/// Names of the places of two polytopes, or of a cylinder on what has edges.
const NUMBERED: [&str; meeting::SLOTS] = [
    " 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8", " 9", " 10", " 11", " 12",
];

/// Is one of the two a cylinder, and the other none of the shapes that are balls?
#[inline]
fn has_cylinder(of: Sides) -> bool {
    let edgy = |c: &Collider| edginess(&c.surface) > 0 && !matches!(c.surface, Surface::Heights(_));
    (is_cylinder(of.0) || is_cylinder(of.1)) && edgy(of.0) && edgy(of.1)
}

/// Is what of the two overlaps at the end of a step searched for along all normals of two parts of theirs ([`unheld`](super::unheld))? Of
/// hulls of many vertices it is the lowest vertex above a face.
#[inline]
pub(super) fn is_exchanged(of: Sides) -> bool {
    let are_polytopes = is_polytope(of.0) && is_polytope(of.1);
    has_cylinder(of) || is_on_field(of) || are_polytopes && !(of.0.by_lowest || of.1.by_lowest)
}

/// Is it a body with edges, rims or a side on a height field?
#[inline]
pub(super) fn is_on_field(of: Sides) -> bool {
    matches!(of.0.surface, Surface::Heights(_)) && edginess(&of.1.surface) > 0
}

/// Places for edges and faces of a polytope, or for the side of a capsule, on ridges and peaks.
fn places_on_ridges(c: &Collider) -> usize {
    match c.surface {
        Surface::Box(_) | Surface::Hull(_) => 8,
        Surface::Capsule { .. } => 4,
        _ => 0,
    }
}

/// Balls of a collider that have places of their own on a height field, the first ones.
fn balls(c: &Collider) -> usize {
    match &c.surface {
        Surface::Point | Surface::Sphere(_) => 1,
        Surface::Capsule { .. } => 2,
        Surface::Box(_) => 8,
        Surface::Hull(hull) => hull.vertices().len(),
        Surface::Cylinder { .. } | Surface::Heights(_) => 0,
    }
}

/// The ball of the second collider that a place on a height field is of; none of places of all of it.
pub(super) fn ball_on_field(of: Sides, feature: usize) -> Option<Ball> {
    let k = feature / FACETS;
    let is_ball = matches!(of.0.surface, Surface::Heights(_)) && k < balls(of.1);
    is_ball.then(|| half_space::ball(of.1, k)).flatten()
}

/// The first place of all of a body on a height field.
pub(super) fn first_place(of: Sides) -> usize {
    FACETS * balls(of.1)
}

/// The features that are the ends of a capsule, balls on all of what has edges.
#[inline]
pub(super) fn capsule_ends(of: Sides) -> std::ops::Range<usize> {
    match capsule(of) {
        Some(_) => 0..ENDS,
        None => 0..0,
    }
}

/// The slots of a supported pair: the names of the features of the first and the second, and their arms from the centers of mass in
/// body frames.
pub(crate) fn slots(of: Sides) -> Vec<([String; 2], [Vec3; 2])> {
    let middle = [of.0.position, of.1.position];
    if let (Surface::Heights(_), false) = (&of.0.surface, is_cylinder(of.1)) {
        let of_feature = |(label, arm): (String, Vec3)| {
            let space = if label.is_empty() { "" } else { " " };
            (1..=FACETS).map(move |k| {
                let names = [String::new(), format!("{space}{label} {k}")];
                (names, [middle[0], arm])
            })
        };
        let own = of.1.features().into_iter().flat_map(of_feature);
        let name = if is_polytope(of.1) { "edge" } else { "side" };
        let count = places_on_ridges(of.1);
        let more = (1..=count).map(|k| ([String::new(), format!(" {name} {k}")], middle));
        return own.chain(more).collect();
    }
    let all = fixed_slots(of, middle);
    let owned = |(names, arms): ([&str; 2], _)| (names.map(str::to_owned), arms);
    all.into_iter().map(owned).collect()
}

/// Those of pairs of convex surfaces.
fn fixed_slots(of: Sides, middle: [Vec3; 2]) -> Vec<([&'static str; 2], [Vec3; 2])> {
    match (&of.0.surface, &of.1.surface) {
        (Surface::Capsule { .. }, Surface::Capsule { .. }) => {
            let ends = |c: &Collider| [-1.0, 1.0].map(|along| c.ball(along).center);
            let ([a, b], [c, d]) = (ends(of.0), ends(of.1));
            vec![
                ([" -", ""], [a, middle[1]]),
                ([" +", ""], [b, middle[1]]),
                (["", " -"], [middle[0], c]),
                (["", " +"], [middle[0], d]),
                ([" across", ""], middle),
            ]
        }
        _ if capsule(of).is_some() => {
            let named = |n| {
                if capsule(of) == Some(0) {
                    [n, ""]
                } else {
                    ["", n]
                }
            };
            EDGES.map(|n| (named(n), middle)).to_vec()
        }
        _ if has_cylinder(of) || is_on_field(of) => NUMBERED.map(|n| (["", n], middle)).to_vec(),
        _ if is_searched(of) => NUMBERED[..PLACES]
            .iter()
            .map(|n| (["", *n], middle))
            .collect(),
        _ => vec![(["", ""], middle)],
    }
}

/// Must what meets be searched for?
#[inline]
pub(super) fn is_searched(of: Sides) -> bool {
    capsule(of).is_some()
        || is_polytope(of.0) && is_polytope(of.1)
        || has_cylinder(of)
        || matches!(of.0.surface, Surface::Heights(_))
}

/// What of a height field meets a ball of the second collider, at the poses now and at the next knot.
pub(super) fn on_heights(of: Sides, feature: usize, ways: [Poses; 2]) -> Option<[Meeting; FACETS]> {
    let Surface::Heights(heights) = &of.0.surface else {
        return None;
    };
    let ball = ball_on_field(of, feature)?;
    Some(heights.search(of.0, &ball, ways))
}

/// What of a polytope with seams a ball of the other meets, where that is not its surface: the ball of a sphere, or an end of a capsule.
pub(super) fn at_seam(
    of: Sides,
    feature: usize,
    now: Poses,
    next: impl Fn() -> [Pose; 2],
) -> Option<Meeting> {
    let colliders = [of.0, of.1];
    let on = colliders.iter().position(|c| !c.seams.is_empty())?;
    let round = colliders[1 - on];
    if edginess(&round.surface) > 1 {
        return None;
    }
    let (part, along) = seam::part(round, feature);
    let next = next();
    let now = [now.0, now.1];
    seam::meeting(
        (&round.ball(along), part),
        (colliders[on], on),
        [[now[1 - on], now[on]], [&next[1 - on], &next[on]]],
    )
}

/// What meets until the next knot, where the bodies will be about at `ahead`, as they move against each other.
pub(super) fn search(
    of: Sides,
    poses: Poses,
    ahead: Poses,
    sway: &Sway,
    sweep: &Sweep,
) -> Option<Manifold> {
    let mut found = Manifold::APART;
    let capsule = capsule(of);
    if capsule.is_some() {
        found.places[..ENDS].fill(Meeting::Surfaces);
    }
    let reach = (cylinder::reach(of.0), cylinder::reach(of.1));
    if manifold::is_far(reach, of, poses, sweep.moved()) {
        return Some(found);
    }
    if (capsule.is_some() || has_cylinder(of))
        && let Some(planes) = sweep.planes()
    {
        return Some(planes);
    }
    if has_cylinder(of) {
        let pair = cylinder::Pair {
            of,
            now: poses,
            next: ahead,
            sway,
            sweep,
        };
        let all = pair.search();
        match capsule {
            Some(_) => found.places[ENDS..capsule_polytope::SLOTS].copy_from_slice(&all[OUTLINE..]),
            None => found.places = all,
        }
        return Some(found);
    }
    let Some(capsule) = capsule else {
        return Some(manifold::search(
            (&of.0.solid()?, &of.1.solid()?),
            poses,
            ahead,
            sweep,
            true,
        ));
    };
    let roles = Roles {
        of: [of.0, of.1],
        poses: [ahead.0, ahead.1],
        capsule,
    };
    let Surface::Capsule { length, .. } = roles.of[capsule].surface else {
        return None;
    };
    let solid = roles.of[1 - capsule].solid()?;
    for (feature, place) in found.places[..ENDS].iter_mut().enumerate() {
        if let Some(held) = at_seam(of, feature, poses, || [*ahead.0, *ahead.1]) {
            *place = held;
        }
    }
    found.places[ENDS..capsule_polytope::SLOTS].copy_from_slice(&roles.search(&solid, length));
    Some(found)
}

fn slot(of: Sides, (feature, meeting): (usize, &Meeting), poses: Poses) -> Slot {
    let polytope = |side: usize| {
        let c = [of.0, of.1][side];
        c.solid().expect("only polytopes have vertices and edges")
    };
    let at_place = Slot::Ball {
        side: 0,
        ball: Ball {
            center: of.0.position,
            radius: 0.0,
        },
        on: On::Place,
    };
    match *meeting {
        Meeting::Surfaces => match (&of.0.surface, &of.1.surface) {
            (Surface::Capsule { length: l1, .. }, Surface::Capsule { length: l2, .. }) => {
                debug_assert!(feature < SLOTS);
                capsule_capsule::slot(of, (*l1, *l2), feature, poses)
            }
            _ => {
                // the rounder on the other, whichever is the parent's
                let side = usize::from(edginess(&of.1.surface) < edginess(&of.0.surface));
                let end = [-1.0, 1.0].get(feature).filter(|_| capsule(of).is_some());
                Slot::Ball {
                    side,
                    ball: [of.0, of.1][side].ball(*end.unwrap_or(&0.0)),
                    on: On::Surface,
                }
            }
        },
        Meeting::Edge(edge) => {
            let capsule = capsule(of).expect("edges alone meet capsules");
            let roles = Roles {
                of: [of.0, of.1],
                poses: [poses.0, poses.1],
                capsule,
            };
            let length = match roles.of[capsule].surface {
                Surface::Capsule { length, .. } => length,
                _ => 0.0,
            };
            let beside = Slot::Ball {
                side: capsule,
                ball: roles.of[capsule].ball(0.0),
                on: On::Edge(edge),
            };
            (roles.slot(&polytope(1 - capsule), edge, length)).unwrap_or(beside)
        }
        Meeting::Apart | Meeting::OnRim(_) | Meeting::Corner(_) => at_place,
        // held axes and edges have turned until they are parallel only in steps that are not solved
        Meeting::Parts(parts) => match cylinder::meet(of, parts, poses, 0.0) {
            Some(cylinder::Met::Crossing(c)) => Slot::Crossing(c),
            Some(cylinder::Met::Ring(r)) => Slot::Ring(r),
            None => at_place,
        },
        Meeting::Triangle(t) | Meeting::Plane(t) | Meeting::Tilted(t, _) => {
            let ball = ball_on_field(of, feature);
            let on = match *meeting {
                Meeting::Plane(_) => On::Plane(t),
                Meeting::Tilted(_, by) => On::Tilted(t, by),
                _ => On::Triangle(t),
            };
            ball.map_or(at_place, |ball| Slot::Ball { side: 1, ball, on })
        }
        Meeting::RimOnFace {
            side,
            up,
            part,
            face,
        } => {
            let side = usize::from(side);
            let ball = Ball {
                center: cylinder::rim_point([of.0, of.1][side], up, part).1,
                radius: 0.0,
            };
            let on = On::Face(face);
            Slot::Ball { side, ball, on }
        }
        Meeting::Vertex { side, vertex, face } => Slot::Ball {
            side,
            ball: Ball {
                center: polytope(side).vertex(vertex),
                radius: 0.0,
            },
            on: On::Face(face),
        },
        Meeting::Edges { edges, against } => {
            let line = |s: Solid, edge: usize| {
                let (point, axis, _) = s.local_edge(edge);
                Line {
                    point: s.position + s.orientation * point,
                    axis: s.orientation * axis,
                    radius: 0.0,
                }
            };
            let lines = [line(polytope(0), edges[0]), line(polytope(1), edges[1])];
            // held edges have turned until they are parallel only in steps that are not solved
            Crossing::new(lines, poses, Some(against), 0.0).map_or(at_place, Slot::Crossing)
        }
    }
}

/// Directions of two lines of which one or both are edges, world frame, where the distance of such is the gap.
pub(super) fn lines(of: Sides, held: &Meeting, (a, b): Poses) -> Option<[Vec3; 2]> {
    match *held {
        Meeting::Parts(parts) => cylinder::lines(of, parts, (a, b)),
        Meeting::Edges { edges, .. } => {
            let axis = |c: &Collider, edge: usize, pose: &Pose| {
                let solid = c.solid()?;
                Some(pose.r * solid.orientation * solid.local_edge(edge).1)
            };
            Some([axis(of.0, edges[0], a)?, axis(of.1, edges[1], b)?])
        }
        _ => None,
    }
}

/// The collider that the ball of a side is on, and the poses of both.
fn roles<'a>(side: usize, of: Sides<'a>, p: Poses<'a>) -> (&'a Collider, Poses<'a>) {
    if side == 0 {
        (of.1, p)
    } else {
        (of.0, (p.1, p.0))
    }
}

pub(super) fn touch(of: Sides, what: (usize, &Meeting), poses: Poses) -> Touch {
    match slot(of, what, poses) {
        Slot::Crossing(c) => c.touch(poses),
        Slot::Ring(r) => r.touch(),
        Slot::Ball { side, ball, on } => {
            let (other, (p, q)) = roles(side, of, poses);
            let mut t = ball::touch(&ball, (other, on), p, q);
            if side == 1 {
                t.normal = -t.normal;
            }
            t
        }
    }
}

pub(super) fn slope(of: Sides, what: (usize, &Meeting), poses: Poses) -> TouchSlope {
    match slot(of, what, poses) {
        Slot::Crossing(c) => c.slope(poses),
        Slot::Ring(r) => r.slope(poses),
        Slot::Ball { side, ball, on } => {
            let (other, (p, q)) = roles(side, of, poses);
            let TouchSlope { normal, point } = ball::slope(&ball, (other, on), p, q);
            if side == 0 {
                return TouchSlope { normal, point };
            }
            let [(a, b), (c, d)] = normal;
            TouchSlope {
                normal: [(-c, -d), (-a, -b)],
                point: [point[1], point[0]],
            }
        }
    }
}

/// What a larger radius of the collider on `changed` does. Vertices and edges of polytopes have none, those of the prism
/// within a cylinder move.
pub(super) fn by_radius(of: Sides, what: (usize, &Meeting), changed: usize, poses: Poses) -> Grown {
    let (own, pose) = ([of.0, of.1][changed], [poses.0, poses.1][changed]);
    let moved = |vertex: usize| match own.solid() {
        Some(solid) if is_cylinder(own) => {
            Grown::Moved(pose.r * own.orientation * solid.vertex_by_radius(vertex))
        }
        _ => Grown::Still,
    };
    let corner = |face: usize| own.solid().map_or(0, |s| s.of.faces[face].top);
    let end = |edge: usize| own.solid().map_or(0, |s| s.of.edges[edge].ends[0]);
    match *what.1 {
        Meeting::Surfaces => match slot(of, what, poses) {
            Slot::Ball { side, ball, on } if side != changed => {
                let (other, (p, q)) = roles(side, of, poses);
                ball::by_radius(&ball, (other, on), (p, q))
            }
            _ => Grown::Radius,
        },
        Meeting::Edge(_) | Meeting::Triangle(_) => Grown::Radius,
        Meeting::Parts(parts) => cylinder::by_radius(of, parts, changed, poses),
        Meeting::Vertex { side, vertex, .. } if side == changed => moved(vertex),
        Meeting::RimOnFace { side, up, part, .. } if usize::from(side) == changed => {
            let out = cylinder::rim_point(own, up, part).0;
            Grown::Moved(pose.r * own.orientation * out)
        }
        Meeting::Vertex { face, .. } | Meeting::RimOnFace { face, .. } => moved(corner(face)),
        Meeting::Edges { edges, .. } => moved(end(edges[changed])),
        Meeting::Plane(_) | Meeting::Tilted(..) if changed == 1 => match slot(of, what, poses) {
            Slot::Ball { ball, .. } if ball.radius > 0.0 => Grown::Radius,
            _ => Grown::Still,
        },
        Meeting::Apart
        | Meeting::Plane(_)
        | Meeting::Tilted(..)
        | Meeting::OnRim(_)
        | Meeting::Corner(_) => Grown::Still,
    }
}

/// How the feature of the collider on `changed` (0 the first, 1 the second) moves, world frame, when the collider's size
/// along `axis` grows.
pub(super) fn by_size(
    of: Sides,
    what: (usize, &Meeting),
    (changed, axis): (usize, usize),
    poses: Poses,
) -> Option<Vec3> {
    let (own, pose) = ([of.0, of.1][changed], [poses.0, poses.1][changed]);
    let moved = |local: Vec3| pose.r * own.orientation * local;
    if let Meeting::Parts(parts) = *what.1 {
        return cylinder::by_size(own, parts[changed], axis).map(moved);
    }
    let (side, ball, on) = match slot(of, what, poses) {
        Slot::Ball { side, ball, on } => (side, ball, on),
        Slot::Ring(_) => return None,
        Slot::Crossing(_) => {
            // of two axes without ends; edges move with an end
            let edge = match *what.1 {
                Meeting::Edges { edges, .. } => edges[changed],
                Meeting::Edge(edge) => edge,
                _ => return None,
            };
            let solid = own.solid()?;
            let end = solid.of.edges[edge].ends[0];
            return Some(moved(solid.vertex_by_size(end, axis)));
        }
    };
    if side != changed {
        let (other, (p, q)) = roles(side, of, poses);
        return ball::by_size(&ball, (other, on), axis, (p, q));
    }
    // an end of a capsule, a corner of a box
    let arm = own.orientation.tr_mul(&(ball.center - own.position))[axis];
    (arm != 0.0).then(|| moved(Vec3::ith(axis, 0.5_f64.copysign(arm))))
}
