//! Two colliders of two bodies: which features meet, and the one path from any of them to a touch.

use super::ball;
use super::capsule_capsule::{self, SLOTS, Slot};
use super::frame::TouchSlope;
use super::nearest::Ball;
use super::{Collider, Surface, Touch};
use crate::spatial::{Pose, Vec3};

type Sides<'a> = (&'a Collider, &'a Collider);
type Poses<'a> = (&'a Pose, &'a Pose);

/// Do the surfaces meet, the first as the parent's? Points on points have nothing to overlap.
pub(crate) fn is_supported(first: &Surface, second: &Surface) -> bool {
    use Surface::{Box, Capsule, Point, Sphere};
    match first {
        Point | Sphere(_) => matches!(second, Sphere(_) | Capsule { .. } | Box(_)),
        Capsule { .. } => matches!(second, Capsule { .. }),
        _ => false,
    }
}

/// The slots of a supported pair: what tells the first and the second apart, and the arms from the centres of mass, body
/// frames.
pub(crate) fn slots(of: Sides) -> Vec<([&'static str; 2], [Vec3; 2])> {
    let middle = [of.0.position, of.1.position];
    let (Surface::Capsule { .. }, Surface::Capsule { .. }) = (of.0.surface, of.1.surface) else {
        return vec![(["", ""], middle)];
    };
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

fn slot(of: Sides, feature: usize, poses: Poses) -> Slot {
    match (of.0.surface, of.1.surface) {
        (Surface::Capsule { length: l1, .. }, Surface::Capsule { length: l2, .. }) => {
            debug_assert!(feature < SLOTS);
            capsule_capsule::slot(of, (l1, l2), feature, poses)
        }
        _ => Slot::Ball {
            side: 0,
            along: 0.0,
        },
    }
}

/// The ball of a side, the collider it is on, and the poses of both.
fn roles<'a>(
    side: usize,
    along: f64,
    of: Sides<'a>,
    p: Poses<'a>,
) -> (Ball, &'a Collider, Poses<'a>) {
    if side == 0 {
        (of.0.ball(along), of.1, p)
    } else {
        (of.1.ball(along), of.0, (p.1, p.0))
    }
}

pub(super) fn touch(of: Sides, feature: usize, poses: Poses) -> Touch {
    match slot(of, feature, poses) {
        Slot::Crossing(c) => c.touch(of, poses),
        Slot::Ball { side, along } => {
            let (ball, on, (p, q)) = roles(side, along, of, poses);
            let mut t = ball::touch(&ball, on, p, q);
            if side == 1 {
                t.normal = -t.normal;
            }
            t
        }
    }
}

pub(super) fn slope(of: Sides, feature: usize, poses: Poses) -> TouchSlope {
    match slot(of, feature, poses) {
        Slot::Crossing(c) => c.slope(of, poses),
        Slot::Ball { side, along } => {
            let (ball, on, (p, q)) = roles(side, along, of, poses);
            let TouchSlope { normal, point } = ball::slope(&ball, on, p, q);
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

/// How the feature of the collider on `changed` (0 the first, 1 the second) moves, world frame, when the collider's size
/// along `axis` grows.
pub(super) fn by_size(
    of: Sides,
    feature: usize,
    changed: usize,
    axis: usize,
    poses: Poses,
) -> Option<Vec3> {
    let Slot::Ball { side, along } = slot(of, feature, poses) else {
        // of two axes without ends
        return None;
    };
    let (ball, on, (p, q)) = roles(side, along, of, poses);
    if side == changed {
        let own = if side == 0 { of.0 } else { of.1 };
        return (along != 0.0).then(|| p.r * own.orientation.column(2) * (0.5 * along));
    }
    ball::by_size(&ball, on, axis, (p, q))
}
