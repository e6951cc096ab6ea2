//! [`RotationLaw::Ball`] and [`RotationLaw::Spin`]: the velocity is the rotation vector by the interval.

use super::{RotationLaw, SMALL_SQUARE, chord};
use crate::spatial::{Mat3, Quat, Vec3, skew, skew_times};
use nalgebra::Quaternion;

/// `S = sin(x/2)/x` and `S2 = (cos(x/2)/2 - S)/x^2`, by `x^2` and `s = cos(x/2)`: of `(s, h S w)`, `dS/dh = h w'w S2`.
pub(super) fn sines(square: f64, s: f64) -> (f64, f64) {
    if square < SMALL_SQUARE {
        let sinc = 0.5 - square * (1.0 / 48.0 - square / 3840.0);
        return (
            sinc,
            -1.0 / 24.0 + square * (1.0 / 960.0 - square / 107_520.0),
        );
    }
    let x = square.sqrt();
    let sinc = (0.5 * x).sin() / x;
    (sinc, (0.5 * s - sinc) / square)
}

/// `Jr(r)`, by the squared length of `r` and the scalar part of its turn: the rotation vector's rate turns the end.
pub(super) fn right_jacobian(r: &Vec3, s: f64) -> Mat3 {
    let square = r.norm_squared();
    let (sinc, _) = sines(square, s);
    let second = if square < SMALL_SQUARE {
        1.0 / 6.0 - square * (1.0 / 120.0 - square / 5040.0)
    } else {
        (1.0 - 2.0 * sinc * s) / square
    };
    let across = skew(r);
    Mat3::identity() - across * (2.0 * sinc * sinc) + across * across * second
}

/// Part of a moment up to which the others of a ball differ from it by the rounding of its turns.
const ROUNDING: f64 = 1e-14;

/// `k = asin|e| / |e|` and `b = (1 - k s)/|e|^2` of the turn `(s, e)`, whose rotation vector is `2 k e`.
fn log_parts(s: f64, e: &Vec3) -> (f64, f64) {
    let square = e.norm_squared();
    if square < SMALL_SQUARE && s > 0.0 {
        let k = 1.0 + square * (1.0 / 6.0 + square * 3.0 / 40.0);
        return (k, 1.0 / 3.0 + square * (2.0 / 15.0 + square * 8.0 / 105.0));
    }
    let sine = square.sqrt();
    let k = sine.atan2(s) / sine;
    (k, (1.0 - k * s) / square)
}

/// The rotation vector's derivative by a turn of the end from the left, `Jl^-1 = k s I - k [e]x + b e e'`, times a vector; its
/// transpose is that of `-e`.
pub(super) fn log_by_end(s: f64, e: &Vec3, phi: &Vec3) -> Vec3 {
    let (k, b) = log_parts(s, e);
    phi * (k * s) - e.cross(phi) * k + e * (b * e.dot(phi))
}

/// What a law takes exactly of an inertia of a ball, if that is all but rounding.
fn all_of_ball(law: &RotationLaw, (c, rest): &(f64, Mat3)) -> bool {
    matches!(law, RotationLaw::Ball) && rest.amax() <= ROUNDING * c.abs()
}

/// What of an inertia a law takes as a chord does.
pub(super) fn remainder(law: &RotationLaw, inertia: &Mat3) -> (f64, Mat3) {
    match law {
        RotationLaw::Chord | RotationLaw::Free(_) => (0.0, *inertia),
        RotationLaw::Ball => {
            let c = inertia.trace() / 3.0;
            (c, inertia - Mat3::from_diagonal_element(c))
        }
        RotationLaw::Spin(n) => {
            let c = n.dot(&(inertia * n));
            (c, inertia - n * n.transpose() * c)
        }
    }
}

/// The twist of a turn about an axis, and what its momentum points along.
struct Twist {
    /// `n'e`.
    along: f64,
    /// `s^2 + (n'e)^2`.
    square: f64,
    /// `psi`.
    angle: f64,
    /// `psi / (h n'w)` where the turn is about the axis: `psi / (2 n'e)`.
    stretch: f64,
    /// `s^2 n + (n'e) e + s e x n`.
    toward: Vec3,
}

impl Twist {
    fn new(n: &Vec3, s: f64, e: &Vec3) -> Self {
        let along = n.dot(e);
        let square = s * s + along * along;
        let slope = along / s;
        let stretch = if s > 0.0 && slope * slope < SMALL_SQUARE {
            (1.0 - slope * slope * (1.0 / 3.0 - slope * slope / 5.0)) / s
        } else {
            along.atan2(s) / along
        };
        Self {
            along,
            square,
            angle: 2.0 * along * stretch,
            stretch,
            toward: n * (s * s) + e * along + e.cross(n) * s,
        }
    }
}

/// `h dp/de` and `h dp/ds` without what [`RotationLaw::Ball`] has exact.
fn by_turn(law: &RotationLaw, inertia: &Mat3, s: f64, e: &Vec3) -> (Mat3, Vec3) {
    let (c, rest) = remainder(law, inertia);
    let a = rest * e;
    let by_e = (rest * s + skew_times(e, &rest) - skew(&a)) * 2.0;
    let by_s = a * 2.0;
    let RotationLaw::Spin(n) = law else {
        return (by_e, by_s);
    };
    let t = Twist::new(n, s, e);
    let (size, slope) = (c * t.angle / t.square, 2.0 * c / (t.square * t.square));
    (
        by_e + (e * n.transpose() + Mat3::from_diagonal_element(t.along) - skew(n) * s) * size
            + t.toward * n.transpose() * (slope * (s - t.angle * t.along)),
        by_s + (n * (2.0 * s) + e.cross(n)) * size - t.toward * (slope * (t.along + t.angle * s)),
    )
}

/// Of the laws other than [`RotationLaw::Chord`], with `omega` twice the vector part of the turn by the interval.
#[inline(never)]
pub(super) fn momentum(law: &RotationLaw, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let parts = remainder(law, inertia);
    if all_of_ball(law, &parts) {
        return rotation_velocity(omega, h, s) * parts.0;
    }
    let (c, rest) = parts;
    let p = chord::momentum(omega, &rest, h, s);
    match law {
        RotationLaw::Spin(n) => {
            let t = Twist::new(n, s, &(omega * (0.5 * h)));
            p + t.toward * (c * t.stretch * n.dot(omega) / t.square)
        }
        _ => p + rotation_velocity(omega, h, s) * c,
    }
}

#[inline(never)]
pub(super) fn momentum_jacobian(
    law: &RotationLaw,
    w: &Vec3,
    inertia: &Mat3,
    h: f64,
    s: f64,
) -> Mat3 {
    let parts = remainder(law, inertia);
    if all_of_ball(law, &parts) {
        return Mat3::from_diagonal_element(parts.0);
    }
    let r = w * h;
    let (sinc, bend) = sines(r.norm_squared(), s);
    let e = r * sinc;
    let (by_e, by_s) = by_turn(law, inertia, s, &e);
    let out = by_e * (Mat3::from_diagonal_element(sinc) + r * r.transpose() * bend)
        - by_s * e.transpose() * 0.5;
    match law {
        RotationLaw::Ball => out + Mat3::from_diagonal_element(parts.0),
        _ => out,
    }
}

#[inline(never)]
pub(super) fn momentum_rate(law: &RotationLaw, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let square = w.norm_squared();
    let (sinc, bend) = sines(h * h * square, s);
    let (omega, e) = (w * (2.0 * sinc), w * (h * sinc));
    // of s, e, and omega by h
    let (ds, de, domega) = (
        -0.5 * w.dot(&e),
        w * (0.5 * s),
        w * (2.0 * h * square * bend),
    );
    let (c, rest) = remainder(law, inertia);
    let (a, da) = (rest * omega, rest * domega);
    let out = a * ds + da * s + de.cross(&a) + e.cross(&da);
    let RotationLaw::Spin(n) = law else {
        return out;
    };
    let t = Twist::new(n, s, &e);
    let rate = t.stretch * n.dot(&omega);
    // d psi/dh = n'w/D
    let drate = if h == 0.0 {
        0.0
    } else {
        (n.dot(w) / t.square - rate) / h
    };
    let along = n.dot(&de);
    let dsquare = 2.0 * (s * ds + t.along * along);
    let dtoward = n * (2.0 * s * ds) + e * along + de * t.along + e.cross(n) * ds + de.cross(n) * s;
    out + (t.toward * (drate - rate * dsquare / t.square) + dtoward * rate) * (c / t.square)
}

#[inline(never)]
pub(super) fn turn_jacobian(
    law: &RotationLaw,
    omega: &Vec3,
    inertia: &Mat3,
    h: f64,
    s: f64,
) -> Mat3 {
    let e = omega * (0.5 * h);
    let parts = remainder(law, inertia);
    let of_ball = || {
        let (k, b) = log_parts(s, &e);
        (Mat3::from_diagonal_element(k * s) - skew(&e) * k + e * e.transpose() * b) * parts.0
    };
    if all_of_ball(law, &parts) {
        return of_ball();
    }
    let (by_e, by_s) = by_turn(law, inertia, s, &e);
    // a turn phi of the end from the left changes e by (s phi + phi x e)/2 and s by -e'phi/2
    let out = (by_e * (Mat3::from_diagonal_element(s) - skew(&e)) - by_s * e.transpose()) * 0.5;
    match law {
        RotationLaw::Ball => out + of_ball(),
        _ => out,
    }
}

/// The rotation vector by the interval, of twice the vector part of the turn by it.
#[inline(never)]
pub(super) fn rotation_velocity(omega: &Vec3, h: f64, s: f64) -> Vec3 {
    omega * log_parts(s, &(omega * (0.5 * h))).0
}

/// Scalar part of the turn by `w` over `h`.
#[inline(never)]
pub(super) fn scalar(w: &Vec3, h: f64) -> f64 {
    let turn = h.abs() * w.norm();
    if turn < std::f64::consts::PI {
        (0.5 * turn).cos()
    } else {
        f64::NAN
    }
}

#[inline(never)]
pub(super) fn increment(w: &Vec3, h: f64, s: f64) -> Quat {
    let r = w * h;
    Quat::new_unchecked(Quaternion::from_parts(s, r * sines(r.norm_squared(), s).0))
}

#[inline(never)]
pub(super) fn jacobian(w: &Vec3, h: f64, s: f64) -> Mat3 {
    right_jacobian(&(w * h), s) * h
}
