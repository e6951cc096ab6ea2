//! Balls and points on a ball or a point of another body: `phi = |c_b - c_a| - r_a - r_b`.

use super::ball::{Nearest, apart};
use crate::spatial::Vec3;

/// Of the centre; with centre on centre the normal is along x.
#[inline]
pub(super) fn nearest(y: &Vec3) -> Nearest {
    let (normal, curvature) = apart(y, &Vec3::zeros(), Vec3::x());
    Nearest {
        point: Vec3::zeros(),
        normal,
        follows: [false; 3],
        curvature,
    }
}
