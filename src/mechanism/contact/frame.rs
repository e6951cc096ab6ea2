//! From the normal and the point of a contact to its wrenches and their derivatives, for all pairs alike.

use super::Touch;
use crate::mechanism::wrench::six;
use crate::mechanism::{Coupling, Row, Vec6};
use crate::spatial::{Mat3, Pose, Vec3, skew};

/// Derivatives of the normal and the point by the displacements `(dx, dphi)` of parent and child.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TouchSlope {
    /// By `dx` and by `dphi`, of the parent, then of the child.
    pub normal: [(Mat3, Mat3); 2],
    /// The same of the point.
    pub point: [(Mat3, Mat3); 2],
}

impl TouchSlope {
    /// With the point a part of the gap away from the middle, where `touch` has it: `c + part g n`.
    pub fn shifted(mut self, part: f64, touch: &Touch, (a, b): (&Pose, &Pose)) -> Self {
        let Touch { gap, normal, point } = touch;
        let ends = self.point.iter_mut().zip(&self.normal);
        for (((by_dx, by_dphi), (n_by_dx, n_by_dphi)), (sign, pose)) in
            ends.zip([(-part, a), (part, b)])
        {
            let torque = pose.r.tr_mul(&(point - pose.x).cross(normal));
            *by_dx += normal * normal.transpose() * sign + n_by_dx * (part * gap);
            *by_dphi += normal * torque.transpose() * sign + n_by_dphi * (part * gap);
        }
        self
    }
}

/// What the tangents of a normal are made from. Where the frames of two configurations are compared, those of both are made
/// from that of the first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrameAxis {
    /// The first tangent is that axis made normal to it.
    First(Vec3),
    /// The second tangent is.
    Second(Vec3),
}

/// A normal whose cosine with an axis is larger leaves too little of the axis for a tangent.
const ALONG: f64 = 0.6;
/// Of an axis along the normal less than this is left: rounding.
const NOTHING: f64 = 1e-12;

impl FrameAxis {
    /// Of a normal. In a plane, `across` which nothing moves, the second tangent points out of it at any normal: of one that
    /// turns from a face to an edge each tangent stays what it is.
    pub(super) fn new(n: &Vec3, across: Option<Vec3>) -> Self {
        match across {
            Some(e) if n.dot(&e).abs() < ALONG => Self::Second(e),
            _ if n.x.abs() < ALONG => Self::First(Vec3::x()),
            _ => Self::First(Vec3::y()),
        }
    }

    /// A unit vector normal to `n` made from the axis, the axis, and by what it was divided. A normal that has come to lie
    /// along the axis, as that of a ball that goes around a box's edge in one step, takes the next axis.
    fn project(&self, n: &Vec3) -> (Vec3, Vec3, f64) {
        let (Self::First(axis) | Self::Second(axis)) = self;
        let along = |axis: Vec3| {
            let t = axis - n * n.dot(&axis);
            let length = t.norm();
            (t / length, axis, length)
        };
        let first = along(*axis);
        if first.2 > NOTHING {
            return first;
        }
        along(Vec3::new(axis.z, axis.x, axis.y))
    }

    /// Two unit vectors that make a right-handed frame with the normal.
    fn tangents(&self, n: &Vec3) -> [Vec3; 2] {
        let (t, ..) = self.project(n);
        match self {
            Self::First(_) => [t, n.cross(&t)],
            Self::Second(_) => [t.cross(n), t],
        }
    }

    /// Derivatives of the two tangents by the normal.
    fn tangents_by_normal(&self, n: &Vec3) -> [Mat3; 2] {
        let (t, axis, length) = self.project(n);
        let raw = -(Mat3::identity() * n.dot(&axis) + n * axis.transpose());
        let by = (Mat3::identity() - t * t.transpose()) * raw / length;
        match self {
            Self::First(_) => [by, skew(n) * by - skew(&t)],
            Self::Second(_) => [skew(&t) - skew(n) * by, by],
        }
    }
}

/// The wrench of a unit force along `e` on the child at the point, and of its opposite on the parent.
#[inline(always)]
fn row(e: &Vec3, point: &Vec3, a: &Pose, b: &Pose) -> Row {
    Row {
        force: *e,
        parent_torque: -a.r.tr_mul(&(point - a.x).cross(e)),
        child_torque: b.r.tr_mul(&(point - b.x).cross(e)),
    }
}

/// The gap's derivative by the displacements of both bodies, and the wrench of a unit normal force.
pub(crate) fn normal_row(t: &Touch, a: &Pose, b: &Pose) -> Row {
    row(&t.normal, &t.point, a, b)
}

/// The same along the two tangents.
pub(crate) fn friction_rows(t: &Touch, axis: FrameAxis, a: &Pose, b: &Pose) -> [Row; 2] {
    let [first, second] = axis.tangents(&t.normal);
    [row(&first, &t.point, a, b), row(&second, &t.point, a, b)]
}

/// Changes of the rows along the normal and the tangents by a change of the contact at the same poses.
pub(crate) fn touch_change(
    touch: &Touch,
    change: &Touch,
    axis: FrameAxis,
    (a, b): (&Pose, &Pose),
) -> [Row; 3] {
    let [t1, t2] = axis.tangents(&touch.normal);
    let [d1, d2] = axis.tangents_by_normal(&touch.normal);
    let dn = change.normal;
    [(touch.normal, dn), (t1, d1 * dn), (t2, d2 * dn)].map(|(e, de)| {
        let moved = row(&de, &touch.point, a, b);
        let couple = change.point.cross(&e);
        Row {
            force: moved.force,
            parent_torque: moved.parent_torque - a.r.tr_mul(&couple),
            child_torque: moved.child_torque + b.r.tr_mul(&couple),
        }
    })
}

/// Derivatives of the rates along those of the normal (0) and the tangents (1, 2) that are asked for (the rows times six velocities
/// `v` of each body, which are held) by the displacements of parent and child, none of the world. With the spins `W` in the world, `r` the arms of the point, `u` the
/// velocity of the child at it less that of the parent, and a direction `e`,
///
/// ```text
/// d(e . u) = u . de + (e x (W_b - W_a)) . dc - (e x W_b) . dx_b + (w_b x R_b'(r_b x e)) . dphi_b + ... of the parent
/// ```
pub(crate) fn rate_derivatives<const N: usize>(
    asked: [usize; N],
    (touch, axis): (&Touch, FrameAxis),
    slope: &TouchSlope,
    (a, b): (&Pose, &Pose),
    v: &[f64],
    (parent, child): (Option<usize>, usize),
) -> [[Vec6; 2]; N] {
    let motion = |body: Option<usize>| {
        let v = body.map_or_else(Vec6::zeros, |b| six(v, b));
        let part = |i| Vec3::new(v[i], v[i + 1], v[i + 2]);
        (part(0), part(3))
    };
    let ((va, wa), (vb, wb)) = (motion(parent), motion(Some(child)));
    let (spin_a, spin_b) = (a.r * wa, b.r * wb);
    let u = vb + spin_b.cross(&(touch.point - b.x)) - va - spin_a.cross(&(touch.point - a.x));
    let apart = spin_b - spin_a;
    let [t1, t2] = axis.tangents(&touch.normal);
    let [d1, d2] = axis.tangents_by_normal(&touch.normal);
    let along = [(touch.normal, u), (t1, d1.tr_mul(&u)), (t2, d2.tr_mul(&u))];
    asked.map(|i| {
        let (e, turning) = along[i];
        let row = row(&e, &touch.point, a, b);
        let across = e.cross(&apart);
        let by = |side: usize, own: (Vec3, Vec3)| {
            let ((nx, nphi), (cx, cphi)) = (&slope.normal[side], &slope.point[side]);
            let x = nx.tr_mul(&turning) + cx.tr_mul(&across) + own.0;
            let phi = nphi.tr_mul(&turning) + cphi.tr_mul(&across) + own.1;
            Vec6::new(x.x, x.y, x.z, phi.x, phi.y, phi.z)
        };
        let of_parent = || by(0, (e.cross(&spin_a), wa.cross(&row.parent_torque)));
        [
            parent.map_or_else(Vec6::zeros, |_| of_parent()),
            by(1, (spin_b.cross(&e), wb.cross(&row.child_torque))),
        ]
    })
}

/// The derivative of the wrenches of a force with components `f` (normal, two tangents), added to `out`; `ground` where
/// the parent is the world.
pub(crate) fn wrench_derivative(
    (touch, axis): (&Touch, FrameAxis),
    slope: &TouchSlope,
    f: &Vec3,
    ground: bool,
    (a, b): (&Pose, &Pose),
    out: &mut Coupling,
) {
    let [t1, t2] = axis.tangents(&touch.normal);
    let force = touch.normal * f.x + t1 * f.y + t2 * f.z;
    let [d1, d2] = axis.tangents_by_normal(&touch.normal);
    let turning = Mat3::identity() * f.x + d1 * f.y + d2 * f.z;
    let cross = skew(&force);
    // side: 0 the parent, 1 the child; on the body whose pose is `on`, the force's sign, by the displacement of `side`
    let by = |side: usize, part: usize| {
        let pick = |p: &(Mat3, Mat3)| if part == 0 { p.0 } else { p.1 };
        let force = turning * pick(&slope.normal[side]);
        (force, pick(&slope.point[side]))
    };
    let mut add = |on: usize, side: usize| {
        let (pose, sign) = if on == 0 { (a, -1.0) } else { (b, 1.0) };
        let arm = skew(&(touch.point - pose.x));
        let block = match (on, side) {
            (0, 0) => &mut out.aa,
            (0, _) => &mut out.ab,
            (_, 0) => &mut out.ba,
            _ => &mut out.bb,
        };
        for part in 0..2 {
            let (df, mut dc) = by(side, part);
            if on == side && part == 0 {
                dc -= Mat3::identity();
            }
            let mut torque = pose.r.tr_mul(&(arm * df - cross * dc));
            if on == side && part == 1 {
                // the torque's components turn with the body
                let local = pose.r.tr_mul(&(touch.point - pose.x).cross(&force));
                torque += skew(&local);
            }
            block.add(0, 3 * part, &(df * sign));
            block.add(3, 3 * part, &(torque * sign));
        }
    };
    add(1, 1);
    if !ground {
        add(0, 0);
        add(0, 1);
        add(1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::FrameAxis;
    use crate::mechanism::contact::samples::difference;
    use crate::mechanism::samples::Source;
    use crate::spatial::Vec3;

    #[test]
    fn the_tangent_frame_is_right_handed_and_its_derivatives_match_differences() {
        let s = &mut Source::new(1);
        for i in 0..100 {
            let n = s.vec3().normalize();
            let across = (i % 2 == 1).then(|| s.vec3().normalize());
            let axis = FrameAxis::new(&n, across);
            let [t1, t2] = axis.tangents(&n);
            assert!((t1.cross(&t2) - n).norm() < 1e-15);
            assert!(t1.dot(&n).abs() < 1e-15 && (t1.norm() - 1.0).abs() < 1e-15);
            // along a change that keeps the normal's length
            let d = n.cross(&s.vec3());
            let by = difference(1e-4, |e| {
                let [a, b] = axis.tangents(&(n + d * e).normalize());
                [a.x, a.y, a.z, b.x, b.y, b.z]
            });
            let own = axis.tangents_by_normal(&n).map(|m| m * d);
            for k in 0..6 {
                assert!((own[k / 3][k % 3] - by[k]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn in_a_plane_the_second_tangent_points_out_of_it_at_any_normal() {
        for across in [Vec3::x(), Vec3::y(), Vec3::z()] {
            let first = Vec3::new(across.y, across.z, across.x);
            for i in 0..16 {
                let (sin, cos) = (f64::from(i) * std::f64::consts::TAU / 16.0).sin_cos();
                let n = first * cos + across.cross(&first) * sin;
                let [t, s] = FrameAxis::new(&n, Some(across)).tangents(&n);
                assert!((s - across).norm() < 1e-15 && t.dot(&across).abs() < 1e-15);
            }
        }
    }

    /// From the top of a box to its side within a step, where the axis of the first frame is the normal of the second.
    #[test]
    fn a_normal_along_the_axis_has_a_frame() {
        let axis = FrameAxis::new(&Vec3::z(), None);
        for n in [Vec3::x(), -Vec3::x()] {
            let [t, s] = axis.tangents(&n);
            assert!((t.cross(&s) - n).norm() < 1e-15 && t.dot(&n).abs() < 1e-15);
            let by = axis.tangents_by_normal(&n);
            assert!(by.iter().all(|m| m.iter().all(|v| v.is_finite())));
        }
    }
}
