//! From the normal and the point of a contact to its wrenches and their derivatives, for all pairs alike.

use super::Touch;
use crate::mechanism::{Coupling, Row};
use crate::spatial::{Mat3, Pose, Vec3, skew};

/// Derivatives of the normal and the point by the displacements `(dx, dphi)` of parent and child.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TouchSlope {
    /// By `dx` and by `dphi`, of the parent, then of the child.
    pub normal: [(Mat3, Mat3); 2],
    /// The same of the point.
    pub point: [(Mat3, Mat3); 2],
}

/// A unit vector normal to `n`, and the axis it was made from.
fn first_tangent(n: &Vec3) -> (Vec3, Vec3, f64) {
    let axis = if n.x.abs() < 0.6 {
        Vec3::x()
    } else {
        Vec3::y()
    };
    let t = axis - n * n.dot(&axis);
    let length = t.norm();
    (t / length, axis, length)
}

/// Two unit vectors that make a right-handed frame with the normal.
fn tangents(n: &Vec3) -> [Vec3; 2] {
    let (t, ..) = first_tangent(n);
    [t, n.cross(&t)]
}

/// Derivatives of the two tangents by the normal.
fn tangents_by_normal(n: &Vec3) -> [Mat3; 2] {
    let (t, axis, length) = first_tangent(n);
    let raw = -(Mat3::identity() * n.dot(&axis) + n * axis.transpose());
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
    tangents(&t.normal).map(|e| row(&e, &t.point, a, b))
}

/// Changes of the rows along the normal and the tangents by a change of the contact at the same poses.
pub(crate) fn touch_change(touch: &Touch, change: &Touch, a: &Pose, b: &Pose) -> [Row; 3] {
    let [t1, t2] = tangents(&touch.normal);
    let [d1, d2] = tangents_by_normal(&touch.normal);
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
    let [t1, t2] = tangents(&touch.normal);
    let force = touch.normal * f.x + t1 * f.y + t2 * f.z;
    let [d1, d2] = tangents_by_normal(&touch.normal);
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
    use super::{tangents, tangents_by_normal};
    use crate::mechanism::contact::samples::difference;
    use crate::mechanism::samples::Source;

    #[test]
    fn the_tangent_frame_is_right_handed_and_its_derivatives_match_differences() {
        let s = &mut Source::new(1);
        for _ in 0..50 {
            let n = s.vec3().normalize();
            let [t1, t2] = tangents(&n);
            assert!((t1.cross(&t2) - n).norm() < 1e-15);
            assert!(t1.dot(&n).abs() < 1e-15 && (t1.norm() - 1.0).abs() < 1e-15);
            // along a change that keeps the normal's length
            let d = n.cross(&s.vec3());
            let by = difference(1e-4, |e| {
                let [a, b] = tangents(&(n + d * e).normalize());
                [a.x, a.y, a.z, b.x, b.y, b.z]
            });
            let own = tangents_by_normal(&n).map(|m| m * d);
            for k in 0..6 {
                assert!((own[k / 3][k % 3] - by[k]).abs() < 1e-9);
            }
        }
    }
}
