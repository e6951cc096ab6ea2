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

/// The axis that the tangents of a normal are made from. Where the frames of two configurations are compared, those of
/// both are made from that of the first.
fn axis(n: &Vec3) -> Vec3 {
    if n.x.abs() < 0.6 {
        Vec3::x()
    } else {
        Vec3::y()
    }
}

/// A unit vector normal to `n` made from an axis, and by what it was divided.
fn first_tangent(n: &Vec3, axis: &Vec3) -> (Vec3, f64) {
    let t = axis - n * n.dot(axis);
    let length = t.norm();
    (t / length, length)
}

/// Two unit vectors that make a right-handed frame with the normal.
fn tangents(n: &Vec3, axis: &Vec3) -> [Vec3; 2] {
    let (t, _) = first_tangent(n, axis);
    [t, n.cross(&t)]
}

/// Derivatives of the two tangents by the normal.
fn tangents_by_normal(n: &Vec3, axis: &Vec3) -> [Mat3; 2] {
    let (t, length) = first_tangent(n, axis);
    let raw = -(Mat3::identity() * n.dot(axis) + n * axis.transpose());
    let by = (Mat3::identity() - t * t.transpose()) * raw / length;
    [by, skew(n) * by - skew(&t)]
}

/// The wrench of a unit force along `e` on the child at the point, and of its opposite on the parent.
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
pub(crate) fn friction_rows(t: &Touch, a: &Pose, b: &Pose) -> [Row; 2] {
    friction_rows_beside(t, t, a, b)
}

/// The same in the frame that goes on from that of the contact at another configuration, `first`.
pub(crate) fn friction_rows_beside(t: &Touch, first: &Touch, a: &Pose, b: &Pose) -> [Row; 2] {
    tangents(&t.normal, &axis(&first.normal)).map(|e| row(&e, &t.point, a, b))
}

/// Changes of the rows along the normal and the tangents by a change of the contact at the same poses; the frame goes on
/// from that of `first`.
pub(crate) fn touch_change(
    touch: &Touch,
    change: &Touch,
    first: &Touch,
    (a, b): (&Pose, &Pose),
) -> [Row; 3] {
    let axis = axis(&first.normal);
    let [t1, t2] = tangents(&touch.normal, &axis);
    let [d1, d2] = tangents_by_normal(&touch.normal, &axis);
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

/// Derivatives of the rates along the normal and the tangents (the rows times six velocities `v` of each body, which are
/// held) by the displacements of parent and child. With the spins `W` in the world, `r` the arms of the point, `u` the
/// velocity of the child at it less that of the parent, and a direction `e`,
///
/// ```text
/// d(e . u) = u . de + (e x (W_b - W_a)) . dc - (e x W_b) . dx_b + (w_b x R_b'(r_b x e)) . dphi_b + ... of the parent
/// ```
///
/// The frame goes on from that of `first`.
pub(crate) fn rate_derivatives(
    (touch, first): (&Touch, &Touch),
    slope: &TouchSlope,
    (a, b): (&Pose, &Pose),
    v: &[f64],
    parent: Option<usize>,
    child: usize,
) -> [[Vec6; 2]; 3] {
    let motion = |body: Option<usize>| {
        let v = body.map_or_else(Vec6::zeros, |b| six(v, b));
        let part = |i| Vec3::new(v[i], v[i + 1], v[i + 2]);
        (part(0), part(3))
    };
    let ((va, wa), (vb, wb)) = (motion(parent), motion(Some(child)));
    let (spin_a, spin_b) = (a.r * wa, b.r * wb);
    let u = vb + spin_b.cross(&(touch.point - b.x)) - va - spin_a.cross(&(touch.point - a.x));
    let apart = spin_b - spin_a;
    let axis = axis(&first.normal);
    let [t1, t2] = tangents(&touch.normal, &axis);
    let [d1, d2] = tangents_by_normal(&touch.normal, &axis);
    let along = [(touch.normal, u), (t1, d1.tr_mul(&u)), (t2, d2.tr_mul(&u))];
    along.map(|(e, turning)| {
        let row = row(&e, &touch.point, a, b);
        let across = e.cross(&apart);
        let by = |side: usize, own: (Vec3, Vec3)| {
            let ((nx, nphi), (cx, cphi)) = (&slope.normal[side], &slope.point[side]);
            let x = nx.tr_mul(&turning) + cx.tr_mul(&across) + own.0;
            let phi = nphi.tr_mul(&turning) + cphi.tr_mul(&across) + own.1;
            Vec6::new(x.x, x.y, x.z, phi.x, phi.y, phi.z)
        };
        [
            by(0, (e.cross(&spin_a), wa.cross(&row.parent_torque))),
            by(1, (spin_b.cross(&e), wb.cross(&row.child_torque))),
        ]
    })
}

/// The derivative of the wrenches of a force with components `f` (normal, two tangents), added to `out`; `ground` where
/// the parent is the world.
pub(crate) fn wrench_derivative(
    touch: &Touch,
    slope: &TouchSlope,
    f: &Vec3,
    ground: bool,
    (a, b): (&Pose, &Pose),
    out: &mut Coupling,
) {
    let axis = axis(&touch.normal);
    let [t1, t2] = tangents(&touch.normal, &axis);
    let force = touch.normal * f.x + t1 * f.y + t2 * f.z;
    let [d1, d2] = tangents_by_normal(&touch.normal, &axis);
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
    use super::{axis, tangents, tangents_by_normal};
    use crate::mechanism::contact::samples::difference;
    use crate::mechanism::samples::Source;

    #[test]
    fn the_tangent_frame_is_right_handed_and_its_derivatives_match_differences() {
        let s = &mut Source::new(1);
        for _ in 0..50 {
            let n = s.vec3().normalize();
            let axis = axis(&n);
            let [t1, t2] = tangents(&n, &axis);
            assert!((t1.cross(&t2) - n).norm() < 1e-15);
            assert!(t1.dot(&n).abs() < 1e-15 && (t1.norm() - 1.0).abs() < 1e-15);
            // along a change that keeps the normal's length
            let d = n.cross(&s.vec3());
            let by = difference(1e-4, |e| {
                let [a, b] = tangents(&(n + d * e).normalize(), &axis);
                [a.x, a.y, a.z, b.x, b.y, b.z]
            });
            let own = tangents_by_normal(&n, &axis).map(|m| m * d);
            for k in 0..6 {
                assert!((own[k / 3][k % 3] - by[k]).abs() < 1e-9);
            }
        }
    }
}
