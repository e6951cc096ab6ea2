//! The rim of a cylinder above a half-space: the support of a circle with axis `a` and radius `r` along the plane's normal `n`, smooth
//! everywhere and exact but where the end is nearly flat.
//!
//! ```text
//! sigma = r e |n| f(q),   q = |rho|^2/(e |n|)^2,   rho = n - a (n.a),   f = q/(1 + q^2)^(1/4)
//! ```
//!
//! The support of the disc is `r |rho|`, and its support point jumps across the disc where that lies flat. `sigma` is below it by
//! `r e/(4 x^3)` at tilts `x e`, which is 3e-12 r at a tilt of 1e-3, and by 0.26 e r at most, at a tilt of half of `e`. Flatter ends
//! are held by points fixed on them. Between bodies, where the normal itself is to be found, circles are rounder
//! ([`ring`](super::ring)).

use crate::spatial::{Mat3, Vec3};

/// `e`, about the tilt in rad at which the point is halfway from the rim to its center. A larger one shows in the gap at a tilt of 1e-3,
/// from which on rims are held by their lowest point. A smaller one needs more iterations where a disc comes down flat.
pub(super) const SMOOTH: f64 = 1e-5;

/// `f`, `f'` and `f''` at `q`, and `f - 2 q f'` with its derivative, without their cancellation.
#[inline]
fn blend(q: f64) -> ([f64; 3], [f64; 2]) {
    let t = 1.0 + q * q;
    let w = 1.0 / t.sqrt().sqrt();
    let share = q * q / t;
    let f = [
        q * w,
        w * (1.0 + 0.5 * q * q) / t,
        -0.25 * w * q * (6.0 + q * q) / (t * t),
    ];
    (f, [-q * w / t, -w / t * (1.0 - 2.5 * share)])
}

/// Of a smoothed circle along a unit normal: `rho` and `q`.
#[inline]
fn tilted(n: &Vec3, a: &Vec3) -> (Vec3, f64) {
    // n - a (n.a) without its cancellation
    let rho = a.cross(&n.cross(a));
    (rho, rho.norm_squared() / (SMOOTH * SMOOTH))
}

/// The support point of a smoothed circle along a unit normal, from its center.
#[inline]
pub(super) fn circle(n: &Vec3, a: &Vec3, r: f64) -> Vec3 {
    let (rho, q) = tilted(n, a);
    let ([_, f1, _], [g, _]) = blend(q);
    rho * (2.0 * r * f1 / SMOOTH) + n * (r * SMOOTH * g)
}

/// How a circle's support point follows the normal and the axis.
pub(super) fn circle_slope(n: &Vec3, a: &Vec3, r: f64) -> (Mat3, Mat3) {
    let (rho, q) = tilted(n, a);
    let ([_, f1, f2], [g, g1]) = blend(q);
    let one = Mat3::identity();
    let e = SMOOTH;
    let v = rho - n * rho.norm_squared();
    let nv = n * v.transpose();
    let across = one - a * a.transpose() - nv - nv.transpose() - n * n.transpose() * (e * e * q);
    let by_n = across * (2.0 * f1 / e)
        + v * v.transpose() * (4.0 * f2 / (e * e * e))
        + (one - n * n.transpose()) * (e * g);
    // drho = -((n.a) 1 + a n') da
    let rho_by = -(one * n.dot(a) + a * n.transpose());
    let q_by = rho_by.tr_mul(&rho) * (2.0 / (e * e));
    let by_a = rho_by * (2.0 * f1 / e) + (rho * (2.0 * f2 / e) + n * (e * g1)) * q_by.transpose();
    (by_n * r, by_a * r)
}
