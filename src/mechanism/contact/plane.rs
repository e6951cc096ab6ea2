//! Planes of faces: how far the vertices of another solid are above one.

use super::manifold::Relative;
use super::polytope::Solid;
use crate::spatial::Vec3;

/// The plane of a face of a solid, seen from another.
pub(super) struct Plane {
    local: Vec3,
    offset: f64,
    top: f64,
}

impl Plane {
    #[inline]
    pub fn new(a: &Solid, at: &Relative, face: usize) -> Self {
        let face = &a.of.faces[face];
        let n = face.normal;
        Self {
            local: at.0.tr_mul(&n),
            offset: n.dot(&at.1),
            top: n.dot(&a.local(face.top)),
        }
    }

    /// How far above it a vertex of the other solid is.
    #[inline]
    pub fn height(&self, b: &Solid, vertex: usize) -> f64 {
        self.local.dot(&b.local(vertex)) + self.offset - self.top
    }

    /// How far above it the other solid is, and its lowest vertex.
    pub fn apart(&self, b: &Solid) -> (f64, usize) {
        let (mut least, mut lowest) = (f64::INFINITY, 0);
        for v in 0..b.of.points.len() {
            let height = self.local.dot(&b.local(v));
            if height < least {
                (least, lowest) = (height, v);
            }
        }
        (least + self.offset - self.top, lowest)
    }
}
