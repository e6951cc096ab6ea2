//! Balls and points on a box of another body: the distance to the box, negative with the center inside, less the radius.
//!
//! Outside it is once continuously differentiable; inside, where the nearest face changes, it has a kink.

use super::nearest::{Nearest, along, apart};
use crate::spatial::Vec3;

/// Of the box; from inside, of the nearest face.
#[inline]
pub(super) fn nearest(edges: &[f64; 3], y: &Vec3) -> Nearest {
    let half = Vec3::from(*edges) * 0.5;
    let mut point = Vec3::from_fn(|i, _| y[i].clamp(-half[i], half[i]));
    let slack = half - y.abs();
    let face = slack.imin();
    // beyond a face alone the normal is that face's to the last digit, and one formula serves both sides of it
    let others = slack.iter().enumerate().all(|(i, s)| i == face || *s > 0.0);
    if others || slack[face] >= 0.0 {
        point[face] = half[face].copysign(y[face]);
        let mut normal = Vec3::zeros();
        normal[face] = 1.0_f64.copysign(y[face]);
        return Nearest {
            point,
            normal,
            follows: along([0, 1, 2].map(|i| i != face)),
            curvature: 0.0,
            radius: 0.0,
        };
    }
    let (normal, curvature) = apart(y, &point, Vec3::x());
    Nearest {
        point,
        normal,
        follows: along([0, 1, 2].map(|i| slack[i] > 0.0)),
        curvature,
        radius: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{BOX, POINT, SPHERE, check, plain, two};
    use crate::spatial::{Pose, Quat, Vec3};

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, SPHERE, BOX), 2);
        check(&two(3, BOX, POINT), 4);
    }

    #[test]
    fn the_distance_is_that_to_face_edge_and_corner() {
        let m = plain(two(1, SPHERE, BOX));
        let at = |x: Vec3| Pose::new(x, Quat::identity());
        let corner = Vec3::new(0.3, 0.175, 0.1);
        let touch = |x: Vec3| m.touch(&m.contacts[0], &[at(x), at(Vec3::zeros())]);
        let face = touch(Vec3::new(0.1, 0.05, 0.5));
        assert!((face.gap - 0.27).abs() < 1e-15);
        assert_eq!(face.normal, -Vec3::z());
        assert!((face.point - Vec3::new(0.1, 0.05, 0.1 + 0.135)).norm() < 1e-15);
        let edge = touch(Vec3::new(corner.x + 0.3, -corner.y - 0.4, 0.02));
        assert!((edge.gap - 0.37).abs() < 1e-15);
        assert!((edge.normal - Vec3::new(-0.6, 0.8, 0.0)).norm() < 1e-15);
        let d = Vec3::new(0.2, 0.3, 0.6);
        assert!((touch(corner + d).gap - 0.57).abs() < 1e-15);
        let inside = touch(Vec3::new(-0.28, 0.01, 0.0));
        assert!((inside.gap + 0.02 + 0.13).abs() < 1e-15);
        assert_eq!(inside.normal, Vec3::x());
        // through a face, the distance goes on
        let gap = |z: f64| touch(Vec3::new(0.05, 0.05, z)).gap;
        assert!((gap(0.1 + 1e-9) - gap(0.1 - 1e-9) - 2e-9).abs() < 1e-15);
        assert!(touch(corner).normal.norm() == 1.0);
    }
}
