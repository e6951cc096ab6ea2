//! A perspective camera, and where things are in its picture.

use super::view::{TANGENT, View};
use crate::spatial::{Mat3, Vec3};

/// Nearer to the eye than this part of its distance nothing is drawn.
const NEAR: f64 = 0.02;

/// An eye over a picture of some size.
#[derive(Clone, Debug)]
pub(super) struct Camera {
    /// Right, up and towards the eye, rows.
    turn: Mat3,
    pub eye: Vec3,
    /// Pixels per unit of tangent.
    pub focal: f64,
    pub near: f64,
    middle: [f64; 2],
}

impl Camera {
    /// Of a view that shows all of its points, moved by `shift`.
    pub fn new(view: &View, shift: &Vec3, width: usize, height: usize) -> Camera {
        let (target, distance) = view.fit(width as f64 / height as f64);
        let axes = view.axes();
        Camera {
            turn: Mat3::from_rows(&axes.map(|a| a.transpose())),
            eye: target + shift + axes[2] * distance,
            focal: 0.5 * height as f64 / TANGENT,
            near: NEAR * distance,
            middle: [0.5 * width as f64, 0.5 * height as f64],
        }
    }

    /// Right, up, and away from the eye.
    pub fn local(&self, point: &Vec3) -> Vec3 {
        let p = self.turn * (point - self.eye);
        Vec3::new(p.x, p.y, -p.z)
    }

    /// Pixels of what [`Camera::local`] gives, y down.
    pub fn pixel(&self, local: &Vec3) -> [f64; 2] {
        let scale = self.focal / local.z;
        [
            self.middle[0] + local.x * scale,
            self.middle[1] - local.y * scale,
        ]
    }
}
