//! Balls and points on a ball of another body: `phi = |c_b - c_a| - r_a - r_b`.

use super::nearest::{Ball, COINCIDENT, Nearest, apart};
use super::{Collider, Touch};
use crate::spatial::{Mat3, Pose, Vec3};

/// Without a turn to the other's frame and back.
#[inline]
pub(super) fn touch(ball: &Ball, (on, radius): (&Collider, f64), a: &Pose, b: &Pose) -> Touch {
    let (p, q) = (a.point(&ball.center), b.point(&on.position));
    let span = q - p;
    let distance = span.norm();
    let normal = if distance > COINCIDENT {
        span / distance
    } else {
        -(b.r * on.orientation.column(0))
    };
    Touch {
        gap: distance - ball.radius - radius,
        normal,
        point: (p + q + normal * (ball.radius - radius)) * 0.5,
    }
}

/// Of the center; with center on center the normal is along x.
#[inline]
pub(super) fn nearest(radius: f64, y: &Vec3) -> Nearest {
    let (normal, curvature) = apart(y, &Vec3::zeros(), Vec3::x());
    Nearest {
        point: Vec3::zeros(),
        normal,
        follows: Mat3::zeros(),
        curvature,
        radius,
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{POINT, SPHERE, check, plain, two};
    use crate::spatial::{Pose, Quat, Vec3};

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, SPHERE, SPHERE), 6);
        check(&two(3, POINT, SPHERE), 7);
    }

    #[test]
    fn the_distance_is_that_of_the_centres_less_the_radii() {
        let m = plain(two(1, POINT, SPHERE));
        let at = |x: Vec3| Pose::new(x, Quat::identity());
        let touch = |x| m.touch(&m.contacts[0], &[at(Vec3::zeros()), at(x)]);
        let t = touch(Vec3::new(0.3, 0.0, 0.4));
        assert!((t.gap - 0.37).abs() < 1e-15);
        assert!((t.normal - Vec3::new(0.6, 0.0, 0.8)).norm() < 1e-15);
        // halfway from the point to the sphere's surface
        assert!((t.point - t.normal * 0.185).norm() < 1e-15);
        let t = touch(Vec3::zeros());
        assert_eq!((t.gap, t.normal.norm()), (-0.13, 1.0));
    }
}
