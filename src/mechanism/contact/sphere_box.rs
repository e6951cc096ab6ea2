//! Balls and points on a box of another body: the distance to the box, negative with the centre inside, less the radius.
//!
//! Outside it is once continuously differentiable; inside, where the nearest face changes, it has a kink.

use super::ball::{Nearest, apart};
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
            follows: [0, 1, 2].map(|i| i != face),
            curvature: 0.0,
        };
    }
    let (normal, curvature) = apart(y, &point, Vec3::x());
    Nearest {
        point,
        normal,
        follows: [0, 1, 2].map(|i| slack[i] > 0.0),
        curvature,
    }
}
