//! Two colliders of two bodies: which features meet, and the one path from any of them to a touch.

use super::capsule_capsule::{self, SLOTS};
use super::crossing::{Crossing, Line};
use super::frame::TouchSlope;
use super::manifold::{self, Manifold, Meeting, PLACES};
use super::nearest::{Ball, On};
use super::polytope::Solid;
use super::{Collider, Surface, Touch, ball};
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
}

/// Do the surfaces meet, the first as the parent's? Points on points have nothing to overlap.
pub(crate) fn is_supported(first: &Surface, second: &Surface) -> bool {
    use Surface::{Box, Capsule, Hull, Point, Sphere};
    match first {
        Point | Sphere(_) => matches!(second, Sphere(_) | Capsule { .. } | Box(_) | Hull(_)),
        Capsule { .. } => matches!(second, Capsule { .. }),
        Box(_) | Hull(_) => matches!(second, Box(_) | Hull(_)),
        Surface::Cylinder { .. } => false,
    }
}

/// Names of the places of two polytopes.
const NUMBERED: [&str; PLACES] = [" 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8", " 9"];

/// The slots of a supported pair: what tells the first and the second apart, and the arms from the centres of mass, body
/// frames.
pub(crate) fn slots(of: Sides) -> Vec<([&'static str; 2], [Vec3; 2])> {
    let middle = [of.0.position, of.1.position];
    match (&of.0.surface, &of.1.surface) {
        (Surface::Capsule { .. }, Surface::Capsule { .. }) => {
            let ends = |c: &Collider| [-1.0, 1.0].map(|along| c.ball(along).centre);
            let ([a, b], [c, d]) = (ends(of.0), ends(of.1));
            vec![
                ([" -", ""], [a, middle[1]]),
                ([" +", ""], [b, middle[1]]),
                (["", " -"], [middle[0], c]),
                (["", " +"], [middle[0], d]),
                ([" across", ""], middle),
            ]
        }
        _ if is_searched(of) => NUMBERED.map(|n| (["", n], middle)).to_vec(),
        _ => vec![(["", ""], middle)],
    }
}

/// Must what meets be searched for?
#[inline]
pub(super) fn is_searched(of: Sides) -> bool {
    let is_polytope = |c: &Collider| matches!(c.surface, Surface::Box(_) | Surface::Hull(_));
    is_polytope(of.0) && is_polytope(of.1)
}

/// What meets at a configuration.
pub(super) fn search(of: Sides, poses: Poses) -> Option<Manifold> {
    let solids = (of.0.solid()?, of.1.solid()?);
    Some(manifold::search((&solids.0, &solids.1), poses))
}

fn slot(of: Sides, (feature, meeting): (usize, &Meeting), poses: Poses) -> Slot {
    let polytope = |side: usize| {
        let c = [of.0, of.1][side];
        c.solid().expect("only polytopes have vertices and edges")
    };
    let at_place = Slot::Ball {
        side: 0,
        ball: Ball {
            centre: of.0.position,
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
            _ => Slot::Ball {
                side: 0,
                ball: of.0.ball(0.0),
                on: On::Surface,
            },
        },
        Meeting::Apart => at_place,
        Meeting::Vertex { side, vertex, face } => Slot::Ball {
            side,
            ball: Ball {
                centre: polytope(side).vertex(vertex),
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

/// Is the gap one between points fixed on the bodies, whatever their radii?
pub(super) fn has_radii(meeting: &Meeting) -> bool {
    matches!(meeting, Meeting::Surfaces)
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
    let (side, ball, on) = match slot(of, what, poses) {
        Slot::Ball { side, ball, on } => (side, ball, on),
        Slot::Crossing(_) => {
            // of two axes without ends; edges move with an end
            let Meeting::Edges { edges, .. } = what.1 else {
                return None;
            };
            let solid = own.solid()?;
            let end = solid.of.edges[edges[changed]].ends[0];
            return Some(pose.r * own.orientation * solid.vertex_by_size(end, axis));
        }
    };
    if side != changed {
        let (other, (p, q)) = roles(side, of, poses);
        return ball::by_size(&ball, (other, on), axis, (p, q));
    }
    match *what.1 {
        Meeting::Vertex { vertex, .. } => {
            let solid = own.solid()?;
            Some(pose.r * own.orientation * solid.vertex_by_size(vertex, axis))
        }
        Meeting::Surfaces => {
            let arm = own.orientation.tr_mul(&(ball.centre - own.position));
            let moves = arm[axis] != 0.0;
            moves.then(|| pose.r * own.orientation.column(axis) * 0.5_f64.copysign(arm[axis]))
        }
        _ => None,
    }
}
