//! A ball of one body on a point, segment or box of another: what all pairs of colliders come down to.
//!
//! With the ball's center at `z` in the other body's frame, `q(z)` the nearest point of the other's core, `m(z)` the
//! outward normal there, radii `r1` of the ball and `r2` about the core: `phi = m.(z - q) - r1 - r2`; the common point is
//! the middle of the gap, `(z + q + m (r2 - r1))/2`; the normal from the ball to the other body is `-m`.

use super::frame::TouchSlope;
use super::heights::Heights;
use super::nearest::{Ball, Nearest, On, apart};
use super::{
    Collider, Surface, Touch, sphere_box, sphere_capsule, sphere_cylinder, sphere_hull,
    sphere_sphere,
};
use crate::spatial::{Mat3, Pose, Vec3, times_skew};

impl Surface {
    #[inline]
    fn nearest(&self, y: &Vec3) -> Nearest {
        match self {
            Self::Point => sphere_sphere::nearest(0.0, y),
            Self::Sphere(radius) => sphere_sphere::nearest(*radius, y),
            Self::Capsule { radius, length } => sphere_capsule::nearest((*radius, *length), y),
            Self::Box(edges) => sphere_box::nearest(edges, y),
            Self::Hull(hull) => sphere_hull::nearest(&hull.polytope, y),
            Self::Heights(_) => unreachable!("a height field is met by its triangles"),
            Self::Cylinder { radius, length } => sphere_cylinder::nearest((*radius, *length), y),
        }
    }
}

impl Collider {
    fn heights(&self) -> &Heights {
        match &self.surface {
            Surface::Heights(heights) => heights,
            _ => unreachable!("triangles are found on height fields alone"),
        }
    }

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
            radius: 0.0,
        }
    }

    /// Of an edge.
    fn nearest_on_edge(&self, edge: usize, y: &Vec3) -> Nearest {
        let solid = self.solid().expect("only polytopes have edges");
        let (a, u, length) = solid.local_edge(edge);
        let along = u.dot(&(y - a));
        let point = a + u * along.clamp(0.0, length);
        let (normal, curvature) = apart(y, &point, Vec3::x());
        let inside = along > 0.0 && along < length;
        let follows = if inside {
            u * u.transpose()
        } else {
            Mat3::zeros()
        };
        Nearest {
            point,
            normal,
            follows,
            curvature,
            radius: 0.0,
        }
    }
}

/// What a ball is nearest to.
type Other<'a> = (&'a Collider, On);

/// Where the ball's center is in the other body's frame, and what is nearest to it in the collider's.
#[inline]
fn meet(ball: &Ball, (on, part): Other, a: &Pose, b: &Pose) -> (Vec3, Nearest) {
    let z = b.r.tr_mul(&(a.point(&ball.center) - b.x));
    let y = on.orientation.tr_mul(&(z - on.position));
    let near = match part {
        On::Surface => on.surface.nearest(&y),
        On::Face(face) => on.nearest_on_face(face, &y),
        On::Edge(edge) => on.nearest_on_edge(edge, &y),
        On::Triangle(t) => on.heights().nearest_on_triangle(t, &y),
        On::Plane(t) => on.heights().nearest_on_plane(t, &y),
        On::Tilted(number, by) => on.heights().nearest_on_tilted(number, by, &y),
        On::Place => sphere_sphere::nearest(0.0, &y),
    };
    (z, near)
}

/// The ball's body is the parent.
#[inline]
pub(super) fn touch(ball: &Ball, (on, part): Other, a: &Pose, b: &Pose) -> Touch {
    match (part, &on.surface) {
        (On::Place, _) | (On::Surface, Surface::Point) => {
            return sphere_sphere::touch(ball, (on, 0.0), a, b);
        }
        (On::Surface, Surface::Sphere(radius)) => {
            return sphere_sphere::touch(ball, (on, *radius), a, b);
        }
        _ => {}
    }
    let (z, near) = meet(ball, (on, part), a, b);
    let q = on.position + on.orientation * near.point;
    let (m, radius) = (on.orientation * near.normal, near.radius);
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
    let spread = near.radius - ball.radius;
    // dz = R_b'(ds - dx_b) + [z] dphi_b; dq = F dz, dm = (1 - m m')(1 - F) dz / |z - q|
    let q_by = turn * near.follows * turn.transpose();
    let one = Mat3::identity();
    let m_by = (one - m * m.transpose()) * (one - q_by) * near.curvature;
    let c_by = (one + q_by + m_by * spread) * 0.5;
    let c = (z + q + m * spread) * 0.5;
    let (normal, point) = (b.r * m_by, b.r * c_by);
    let (by_dx, point_by_dx) = (normal * b.r.transpose(), point * b.r.transpose());
    let arm = times_skew(&a.r, &ball.center);
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

/// What a larger radius of what a ball is on does.
pub(super) enum Grown {
    /// It is nearer.
    Radius,
    /// The nearest point moves, world frame.
    Moved(Vec3),
    /// Nothing: above the end of a cylinder.
    Still,
}

/// How the other collider's radius changes the distance.
pub(super) fn by_radius(ball: &Ball, (on, part): Other, (a, b): (&Pose, &Pose)) -> Grown {
    let (Surface::Cylinder { .. }, On::Surface) = (&on.surface, part) else {
        return Grown::Radius;
    };
    let (_, near) = meet(ball, (on, part), a, b);
    if near.radius > 0.0 {
        return Grown::Radius;
    }
    if near.curvature == 0.0 {
        return Grown::Still;
    }
    let out = Vec3::new(near.point.x, near.point.y, 0.0).normalize();
    Grown::Moved(b.r * on.orientation * out)
}
