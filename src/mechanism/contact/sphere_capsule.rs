//! Balls and points on a capsule of another body: the distance to its segment, less both radii.

use super::ball::{Nearest, apart};
use crate::spatial::Vec3;

/// Of the segment of a capsule; with the centre on it the normal is along x.
#[inline]
pub(super) fn nearest(length: f64, y: &Vec3) -> Nearest {
    let half = 0.5 * length;
    let point = Vec3::new(0.0, 0.0, y.z.clamp(-half, half));
    let (normal, curvature) = apart(y, &point, Vec3::x());
    Nearest {
        point,
        normal,
        follows: [false, false, y.z.abs() < half],
        curvature,
    }
}
