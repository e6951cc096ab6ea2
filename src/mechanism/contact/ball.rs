//! A ball of one body on a point, segment or box of another: what all pairs of colliders come down to.
//!
//! With the ball's centre at `z` in the other body's frame, `q(z)` the nearest point of the other's core, `m(z)` the
//! outward normal there, radii `r1` of the ball and `r2` about the core: `phi = m.(z - q) - r1 - r2`; the common point is
//! the middle of the gap, `(z + q + m (r2 - r1))/2`; the normal from the ball to the other body is `-m`.

use super::frame::TouchSlope;
use super::nearest::{Ball, Nearest, On};
use super::{Collider, Surface, Touch, sphere_box, sphere_capsule, sphere_hull, sphere_sphere};
use crate::spatial::{Mat3, Pose, Vec3, times_skew};

impl Surface {
    #[inline]
    fn nearest(&self, y: &Vec3) -> Nearest {
        match self {
            Self::Point | Self::Sphere(_) => sphere_sphere::nearest(y),
            Self::Capsule { length, .. } => sphere_capsule::nearest(*length, y),
            Self::Box(edges) => sphere_box::nearest(edges, y),
            Self::Hull(hull) => sphere_hull::nearest(&hull.polytope, y),
            Self::Cylinder { .. } => {
                unreachable!("the description refuses cylinders between bodies")
            }
        }
    }
}

impl Collider {
    /// Of the plane of a face.
    fn nearest_on_face(&self, face: usize, y: &Vec3) -> Nearest {
        let solid = self.solid().expect("only polytopes have faces");
        let face = &solid.of.faces[face];
        let m = face.normal;
        Nearest {
            point: y - m * m.dot(&(y - solid.local(face.top))),
            normal: m,
            follows: Mat3::identity() - m * m.transpose(),
            curvature: 0.0,
        }
    }

    /// Radius about what a ball is nearest to.
    #[inline]
    fn radius_about(&self, on: On) -> f64 {
        match on {
            On::Surface => self.surface.radius(),
            On::Face(_) | On::Place => 0.0,
        }
    }
}

/// What a ball is nearest to.
type Other<'a> = (&'a Collider, On);

/// Where the ball's centre is in the other body's frame, and what is nearest to it in the collider's.
#[inline]
fn meet(ball: &Ball, (on, part): Other, a: &Pose, b: &Pose) -> (Vec3, Nearest) {
    let z = b.r.tr_mul(&(a.point(&ball.centre) - b.x));
    let y = on.orientation.tr_mul(&(z - on.position));
    let near = match part {
        On::Surface => on.surface.nearest(&y),
        On::Face(face) => on.nearest_on_face(face, &y),
        On::Place => sphere_sphere::nearest(&y),
    };
    (z, near)
}

/// The ball's body is the parent.
#[inline]
pub(super) fn touch(ball: &Ball, (on, part): Other, a: &Pose, b: &Pose) -> Touch {
    let radius = on.radius_about(part);
    match (part, &on.surface) {
        (On::Place, _) | (On::Surface, Surface::Point | Surface::Sphere(_)) => {
            return sphere_sphere::touch(ball, (on, radius), a, b);
        }
        _ => {}
    }
    let (z, near) = meet(ball, (on, part), a, b);
    let q = on.position + on.orientation * near.point;
    let m = on.orientation * near.normal;
    Touch {
        gap: m.dot(&(z - q)) - ball.radius - radius,
        normal: -(b.r * m),
        point: b.point(&((z + q + m * (radius - ball.radius)) * 0.5)),
    }
}

/// The ball's body is the parent.
pub(super) fn slope(ball: &Ball, (on, part): Other, a: &Pose, b: &Pose) -> TouchSlope {
    let (z, near) = meet(ball, (on, part), a, b);
    let turn = &on.orientation;
    let (q, m) = (on.position + turn * near.point, turn * near.normal);
    let spread = on.radius_about(part) - ball.radius;
    // dz = R_b'(ds - dx_b) + [z] dphi_b; dq = F dz, dm = (1 - m m')(1 - F) dz / |z - q|
    let q_by = turn * near.follows * turn.transpose();
    let one = Mat3::identity();
    let m_by = (one - m * m.transpose()) * (one - q_by) * near.curvature;
    let c_by = (one + q_by + m_by * spread) * 0.5;
    let c = (z + q + m * spread) * 0.5;
    let (normal, point) = (b.r * m_by, b.r * c_by);
    let (by_dx, point_by_dx) = (normal * b.r.transpose(), point * b.r.transpose());
    let arm = times_skew(&a.r, &ball.centre);
    TouchSlope {
        normal: [
            (-by_dx, by_dx * arm),
            (by_dx, times_skew(&b.r, &m) - times_skew(&normal, &z)),
        ],
        point: [
            (point_by_dx, -(point_by_dx * arm)),
            (
                one - point_by_dx,
                times_skew(&point, &z) - times_skew(&b.r, &c),
            ),
        ],
    }
}

/// How the nearest point of the core moves, world frame, when the collider's size along `axis` grows.
pub(super) fn by_size(
    ball: &Ball,
    (on, part): Other,
    axis: usize,
    (a, b): (&Pose, &Pose),
) -> Option<Vec3> {
    if let On::Place = part {
        return None;
    }
    let (_, near) = meet(ball, (on, part), a, b);
    // of a box or a capsule: what does not follow along an axis is at its end
    let moves = near.follows[(axis, axis)] == 0.0;
    let side = match part {
        On::Face(_) => near.normal[axis],
        _ => near.point[axis],
    };
    moves.then(|| b.r * on.orientation.column(axis) * 0.5_f64.copysign(side))
}
