//! Balls and points on a capsule of another body: the distance to its segment, less both radii.

use super::nearest::{Nearest, along, apart};
use crate::spatial::Vec3;

/// Of the segment of a capsule; with the center on it the normal is along x.
#[inline]
pub(super) fn nearest((radius, length): (f64, f64), y: &Vec3) -> Nearest {
    let half = 0.5 * length;
    let point = Vec3::new(0.0, 0.0, y.z.clamp(-half, half));
    let (normal, curvature) = apart(y, &point, Vec3::x());
    Nearest {
        point,
        normal,
        follows: along([false, false, y.z.abs() < half]),
        curvature,
        radius,
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{CAPSULE, POINT, SPHERE, check, plain, two};
    use crate::spatial::{Pose, Quat, Vec3};

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, SPHERE, CAPSULE), 2);
        check(&two(3, CAPSULE, POINT), 4);
    }

    #[test]
    fn the_distance_is_that_to_the_segment_less_the_radii() {
        let m = plain(two(1, SPHERE, CAPSULE));
        let at = |x: Vec3| Pose::new(x, Quat::identity());
        let touch = |x| m.touch(&m.contacts[0], &[at(x), at(Vec3::zeros())]);
        let t = touch(Vec3::new(0.5, 0.0, 0.2));
        assert!((t.gap - 0.27).abs() < 1e-15);
        assert!((t.normal + Vec3::x()).norm() < 1e-15);
        assert!((t.point - Vec3::new(0.1 + 0.135, 0.0, 0.2)).norm() < 1e-15);
        let t = touch(Vec3::new(0.3, 0.0, 0.35 + 0.4));
        assert!((t.gap - 0.27).abs() < 1e-15);
        let t = touch(Vec3::new(0.0, 0.0, 0.1));
        assert_eq!(t.gap, -0.23);
        assert!(t.normal.z == 0.0 && t.normal.norm() == 1.0);
    }
}
