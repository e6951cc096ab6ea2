//! The thirteen numbers of a body as a chart, beside its twelve freedoms.
//!
//! A turn `phi` in the body's frame moves its quaternion by `dq = q (0, phi)/2`, so that `phi = 2 Im(q* dq)`, and an
//! adjoint `g` of the turn is `2 q (0, g)` of the quaternion, which has no part along `q`. Unwound angles follow from
//! the poses; they only say which turn it is.

use super::Maximal;
use crate::dynamics::Stored;
use crate::spatial::Vec3;
use nalgebra::Quaternion;

impl Maximal {
    /// Each body's numbers from its displacement, turn and velocities, the turn as `scale q (0, phi)`.
    fn to_stored(&self, x: &[f64], free: &[f64], stored: &mut [f64], scale: f64) {
        let n = self.body_count();
        stored[13 * n..].fill(0.0);
        for (b, out) in stored[..13 * n].chunks_exact_mut(13).enumerate() {
            let q = &x[13 * b + 3..13 * b + 7];
            let (pose, velocity) = (&free[6 * b..6 * b + 6], &free[6 * (n + b)..6 * (n + b) + 6]);
            let turn = Quaternion::from_imag(Vec3::from_column_slice(&pose[3..]) * scale);
            let turned = Quaternion::new(q[0], q[1], q[2], q[3]) * turn;
            out[..3].copy_from_slice(&pose[..3]);
            out[3..7].copy_from_slice(&[turned.w, turned.i, turned.j, turned.k]);
            out[7..].copy_from_slice(velocity);
        }
    }
}

impl Stored for Maximal {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        self.to_stored(x, free, stored, 0.5);
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        self.to_stored(x, free, stored, 2.0);
    }
}
