//! A ball, and the point of another body's core that is nearest to its center.

use super::Surface;
use crate::spatial::{Mat3, Vec3};

/// A ball on a body: its center from the center of mass, body frame, and its radius, m.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ball {
    pub center: Vec3,
    pub radius: f64,
}

/// The point of a core nearest to a ball's center, collider frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nearest {
    pub point: Vec3,
    /// Outward unit normal.
    pub normal: Vec3,
    /// How the point follows the center.
    pub follows: Mat3,
    /// `1/|z - q|` where the normal turns as the center moves; zero where it does not.
    pub curvature: f64,
    /// About the point, m.
    pub radius: f64,
}

/// What of another collider a ball is nearest to.
#[derive(Clone, Copy, Debug)]
pub(super) enum On {
    /// All of it.
    Surface,
    /// The plane of a face.
    Face(usize),
    /// An edge, to its ends.
    Edge(usize),
    /// A triangle of a height field.
    Triangle(usize),
    /// Its plane.
    Plane(usize),
    /// A plane through an edge or a corner of one, by their number and its normal.
    Tilted(usize, [i16; 2]),
    /// Its place, a point.
    Place,
}

/// A matrix that keeps what is along the axes told.
#[inline]
pub(super) fn along(axes: [bool; 3]) -> Mat3 {
    Mat3::from_diagonal(&Vec3::from(axes.map(|a| f64::from(u8::from(a)))))
}

/// Distance below which two points have no direction, m.
pub(super) const COINCIDENT: f64 = 1e-12;

/// The direction from `q` to `y`, and the inverse of their distance; where they coincide, `other` and zero.
#[inline]
pub(super) fn apart(y: &Vec3, q: &Vec3, other: Vec3) -> (Vec3, f64) {
    let d = y - q;
    let length = d.norm();
    if length > COINCIDENT {
        (d / length, 1.0 / length)
    } else {
        (other, 0.0)
    }
}

impl Surface {
    /// Radius about the core, m.
    #[inline]
    pub(super) fn radius(&self) -> f64 {
        match self {
            Self::Point | Self::Box(_) | Self::Hull(_) | Self::Heights(_) => 0.0,
            Self::Sphere(radius) | Self::Capsule { radius, .. } | Self::Cylinder { radius, .. } => {
                *radius
            }
        }
    }
}
