//! [`super::RotationLaw::Chord`]: the velocity is twice the vector part of the turn, by the interval.

use crate::spatial::{Mat3, Quat, Vec3, skew};
use nalgebra::Quaternion;

/// `sqrt(1 - h^2 w'w/4)`, the scalar part of the rotation increment; not a number outside its domain.
#[inline(always)]
pub fn increment_scalar(w: &Vec3, h: f64) -> f64 {
    (1.0 - 0.25 * h * h * w.norm_squared()).sqrt()
}

/// The rotation over an interval: `(s, h w/2)` with `s` from [`increment_scalar`] (physics: 000, section 3).
#[inline(always)]
pub fn increment(w: &Vec3, h: f64, s: f64) -> Quat {
    Quat::new_unchecked(Quaternion::from_parts(s, w * (0.5 * h)))
}

/// `K = dphi+/dw = h (s I + h^2/4 w w'/s - h/2 [w]x)`: how the angular velocity turns the end of the interval.
#[inline(always)]
pub(super) fn jacobian(w: &Vec3, h: f64, s: f64) -> Mat3 {
    (w * w.transpose() * (0.25 * h * h / s) - skew(w) * (0.5 * h) + Mat3::identity() * s) * h
}

/// `K' t` without forming `K`.
#[inline(always)]
pub(super) fn jacobian_transposed(w: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
    (t * s + w * (0.25 * h * h * w.dot(t) / s) + w.cross(t) * (0.5 * h)) * h
}

/// Discrete angular momentum `p(w) = s J w + h/2 w x J w`, body frame; with `-h` it is the momentum at the
/// interval's end, `p-`.
#[inline(always)]
pub(super) fn momentum(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    momentum_of(&(inertia * w), w, h, s)
}

/// The same by `J w`.
#[inline(always)]
pub(super) fn momentum_of(jw: &Vec3, w: &Vec3, h: f64, s: f64) -> Vec3 {
    jw * s + w.cross(jw) * (0.5 * h)
}

/// `dp/dw` of [`momentum`].
#[inline(always)]
pub(super) fn momentum_jacobian(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
    let jw = inertia * w;
    inertia * s - jw * w.transpose() * (0.25 * h * h / s)
        + (skew(w) * inertia - skew(&jw)) * (0.5 * h)
}

/// `(dp/dw)' t` without forming it.
#[inline(always)]
pub(super) fn momentum_jacobian_transposed(
    w: &Vec3,
    inertia: &Mat3,
    h: f64,
    s: f64,
    t: &Vec3,
) -> Vec3 {
    let jw = inertia * w;
    inertia * (t * s + t.cross(w) * (0.5 * h)) - w * (0.25 * h * h / s * jw.dot(t))
        + jw.cross(t) * (0.5 * h)
}

/// `dp/dh` of [`momentum`] (for `p-` call with `-h` and change the sign).
pub(super) fn momentum_rate(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let jw = inertia * w;
    jw * (-0.25 * h * w.norm_squared() / s) + w.cross(&jw) * 0.5
}
