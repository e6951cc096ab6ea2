//! Balls and points on a cylinder of another body: the distance to the cylinder, negative with the center inside, less the
//! radius.
//!
//! Beside the cylinder it is the distance to the axis less the cylinder's radius, above an end that to its plane, else that
//! to the rim. Outside it is once continuously differentiable; inside, where the nearest surface changes, it has a kink.

use super::nearest::{Nearest, along, apart};
use crate::spatial::Vec3;

/// Of the cylinder; on the axis the direction from it is along x.
pub(super) fn nearest((radius, length): (f64, f64), y: &Vec3) -> Nearest {
    let (half, flat) = (0.5 * length, Vec3::new(y.x, y.y, 0.0));
    let (out, turn) = apart(&flat, &Vec3::zeros(), Vec3::x());
    let beyond = [flat.norm() - radius, y.z.abs() - half];
    let end = half.copysign(y.z);
    if beyond[0] > 0.0 && beyond[1] > 0.0 {
        let point = out * radius + Vec3::z() * end;
        let (normal, curvature) = apart(y, &point, out);
        let across = Vec3::z().cross(&out);
        return Nearest {
            point,
            normal,
            follows: across * across.transpose() * (radius * turn),
            curvature,
            radius: 0.0,
        };
    }
    if beyond[0] > beyond[1] {
        return Nearest {
            point: Vec3::new(0.0, 0.0, y.z),
            normal: out,
            follows: along([false, false, true]),
            curvature: turn,
            radius,
        };
    }
    Nearest {
        point: flat + Vec3::z() * end,
        normal: Vec3::z() * 1.0_f64.copysign(y.z),
        follows: along([true, true, false]),
        curvature: 0.0,
        radius: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{CYLINDER, POINT, SPHERE, check, plain, two};
    use crate::spatial::{Pose, Quat, Vec3};

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, SPHERE, CYLINDER), 2);
        check(&two(3, CYLINDER, POINT), 4);
    }

    #[test]
    fn the_distance_is_that_to_side_end_and_rim() {
        let m = plain(two(1, SPHERE, CYLINDER));
        let at = |x: Vec3| Pose::new(x, Quat::identity());
        let touch = |x| m.touch(&m.contacts[0], &[at(x), at(Vec3::zeros())]);
        let side = touch(Vec3::new(0.0, 0.6, 0.2));
        assert!((side.gap - 0.17).abs() < 1e-15);
        assert!((side.normal + Vec3::y()).norm() < 1e-15);
        assert!((side.point - Vec3::new(0.0, 0.3 + 0.085, 0.2)).norm() < 1e-15);
        let end = touch(Vec3::new(0.2, 0.1, -0.5));
        assert!((end.gap - 0.12).abs() < 1e-15);
        assert_eq!(end.normal, Vec3::z());
        let rim = touch(Vec3::new(0.6, 0.0, 0.25 + 0.4));
        assert!((rim.gap - 0.37).abs() < 1e-15);
        assert!((rim.normal + Vec3::new(0.6, 0.0, 0.8)).norm() < 1e-15);
        // inside, to the nearer surface
        assert!((touch(Vec3::new(0.25, 0.0, 0.1)).gap + 0.05 + 0.13).abs() < 1e-15);
        assert!((touch(Vec3::new(0.1, 0.0, 0.22)).gap + 0.03 + 0.13).abs() < 1e-15);
    }
}
