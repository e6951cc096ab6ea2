//! [`RotationLaw::Ball`] and [`RotationLaw::Spin`]: the velocity is the rotation vector by the interval.

use super::{RotationLaw, chord};
use crate::spatial::{Mat3, Quat, Vec3, skew, skew_times, times_skew};
use nalgebra::Quaternion;

/// Square of an angle, rad^2, up to which series of this many terms leave less than rounding.
const SERIES_SQUARE: f64 = 1.0;
const TERMS: usize = 8;
/// The same of the slope `tan(x/2)^2`, up to turns by 0.39 rad, and of the series of the arc tangent.
const SERIES_SLOPE: f64 = 0.04;
const ARC_TERMS: usize = 10;

/// Coefficients by `-(x/2)^2` of `cos(x/2)`, and of `S2` of [`sines`] but for its sign.
const SCALAR: [f64; TERMS] = {
    let (mut out, mut i) = ([1.0; TERMS], 1);
    while i < TERMS {
        out[i] = out[i - 1] / ((2 * i) * (2 * i - 1)) as f64;
        i += 1;
    }
    out
};
const BEND: [f64; TERMS] = {
    let (mut out, mut factorial, mut i) = ([0.0; TERMS], 1.0, 0);
    while i < TERMS {
        factorial *= ((2 * i + 2) * (2 * i + 3)) as f64;
        out[i] = 0.25 * (i + 1) as f64 / factorial;
        i += 1;
    }
    out
};
/// Coefficients by `-tan(x/2)^2` of the arc tangent, from the second on.
const ARC: [f64; ARC_TERMS] = {
    let (mut out, mut i) = ([0.0; ARC_TERMS], 0);
    while i < ARC_TERMS {
        out[i] = 1.0 / (2 * i + 3) as f64;
        i += 1;
    }
    out
};

/// A series by powers of `-x`.
#[inline(always)]
fn series<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let each = coefficients.iter().rev();
    each.fold(0.0, |sum, c| c - sum * x)
}

/// `S = sin(x/2)/x` and `S2 = (cos(x/2)/2 - S)/x^2`, by `x^2` and `s = cos(x/2)`: of `(s, h S w)`, `dS/dh = h w'w S2`.
#[inline(always)]
pub(super) fn sines(square: f64, s: f64) -> (f64, f64) {
    if square < SERIES_SQUARE {
        let bend = -series(&BEND, 0.25 * square);
        return (0.5 * s - square * bend, bend);
    }
    let x = square.sqrt();
    let sinc = (0.5 * x).sin() / x;
    (sinc, (0.5 * s - sinc) / square)
}

/// Coefficients of `Jr(r)`, by the squared length of `r` and the scalar part of its turn: `a 1 - b [r] + c r r'`.
#[inline(always)]
fn right_coefficients(r: &Vec3, s: f64) -> (f64, f64, f64) {
    let (sinc, bend) = sines(r.norm_squared(), s);
    let square = sinc * sinc;
    (2.0 * sinc * s, 2.0 * square, square + 2.0 * s * bend)
}

/// `Jr(r)`: the rotation vector's rate turns the end.
#[inline(never)]
pub(super) fn right_jacobian(r: &Vec3, s: f64) -> Mat3 {
    let (a, b, c) = right_coefficients(r, s);
    Mat3::from_diagonal_element(a) - skew(r) * b + r * r.transpose() * c
}

/// Part of a moment up to which the others of a ball differ from it by the rounding of its turns.
const ROUNDING: f64 = 1e-14;

/// `k = asin|e| / |e|` and `b = (1 - k s)/|e|^2` of the turn `(s, e)`, whose rotation vector is `2 k e`, by `|e|^2`.
#[inline(always)]
fn log_parts(s: f64, square: f64) -> (f64, f64) {
    let inverse = 1.0 / s;
    let slope = square * inverse * inverse;
    if s > 0.0 && slope < SERIES_SLOPE {
        let rest = series(&ARC, slope);
        return ((1.0 - slope * rest) * inverse, rest * inverse * inverse);
    }
    let sine = square.sqrt();
    let k = sine.atan2(s) / sine;
    (k, (1.0 - k * s) / square)
}

/// The rotation vector's derivative by a turn of the end from the left, `Jl^-1 = k s I - k [e]x + b e e'`, times a vector; its
/// transpose is that of `-e`.
#[inline(never)]
pub(super) fn log_by_end(s: f64, e: &Vec3, phi: &Vec3) -> Vec3 {
    let (k, b) = log_parts(s, e.norm_squared());
    phi * (k * s) - e.cross(phi) * k + e * (b * e.dot(phi))
}

/// The moment of an inertia whose moments are equal but for rounding.
#[inline(always)]
fn equal_moments(inertia: &Mat3) -> Option<f64> {
    let c = inertia.trace() / 3.0;
    let off = |i, j| inertia[(i, j)].abs();
    let on = |i| (inertia[(i, i)] - c).abs();
    let rest = off(0, 1) + off(0, 2) + off(1, 2) + on(0) + on(1) + on(2);
    (rest <= ROUNDING * c.abs()).then_some(c)
}

/// The same if a law takes all of it exactly.
#[inline(always)]
fn all_of_ball(law: &RotationLaw, inertia: &Mat3) -> Option<f64> {
    match law {
        RotationLaw::Ball => equal_moments(inertia),
        _ => None,
    }
}

/// What of an inertia a law takes as a chord does.
#[inline(always)]
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
    #[inline(always)]
    fn new(n: &Vec3, s: f64, e: &Vec3) -> Self {
        let along = n.dot(e);
        let square = s * s + along * along;
        let stretch = log_parts(s, along * along).0;
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
#[inline(always)]
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
    match law {
        RotationLaw::Spin(n) => {
            let (c, along) = (n.dot(&(inertia * n)), n.dot(omega));
            let rest = inertia * omega - n * (c * along);
            let t = Twist::new(n, s, &(omega * (0.5 * h)));
            chord::momentum_of(&rest, omega, h, s) + t.toward * (c * t.stretch * along / t.square)
        }
        _ => {
            let w = rotation_velocity(omega, h, s);
            if let Some(c) = equal_moments(inertia) {
                return w * c;
            }
            let (c, rest) = remainder(&RotationLaw::Ball, inertia);
            chord::momentum(omega, &rest, h, s) + w * c
        }
    }
}

/// The same by its velocity.
#[inline(never)]
pub(super) fn momentum_of_velocity(
    law: &RotationLaw,
    w: &Vec3,
    inertia: &Mat3,
    h: f64,
    s: f64,
) -> Vec3 {
    if let Some(c) = all_of_ball(law, inertia) {
        return w * c;
    }
    momentum(law, &chord_velocity(w, h, s), inertia, h, s)
}

/// Twice the vector part of the turn by `w`, by the interval.
#[inline(always)]
pub(super) fn chord_velocity(w: &Vec3, h: f64, s: f64) -> Vec3 {
    w * (2.0 * sines(h * h * w.norm_squared(), s).0)
}

#[inline(never)]
pub(super) fn momentum_jacobian(
    law: &RotationLaw,
    w: &Vec3,
    inertia: &Mat3,
    h: f64,
    s: f64,
) -> Mat3 {
    if let Some(c) = all_of_ball(law, inertia) {
        return Mat3::from_diagonal_element(c);
    }
    let r = w * h;
    let (sinc, bend) = sines(r.norm_squared(), s);
    let e = r * sinc;
    let (by_e, by_s) = by_turn(law, inertia, s, &e);
    let out = by_e * sinc + by_e * r * (r * bend).transpose() - by_s * e.transpose() * 0.5;
    match law {
        RotationLaw::Ball => out + Mat3::from_diagonal_element(remainder(law, inertia).0),
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
    let of_ball = |c: f64| {
        let (k, b) = log_parts(s, e.norm_squared());
        Mat3::from_diagonal_element(c * k * s) - skew(&(e * (c * k)))
            + e * (e * (c * b)).transpose()
    };
    if let Some(c) = all_of_ball(law, inertia) {
        return of_ball(c);
    }
    let (by_e, by_s) = by_turn(law, inertia, s, &e);
    // a turn phi of the end from the left changes e by (s phi + phi x e)/2 and s by -e'phi/2
    let out = (by_e * s - times_skew(&by_e, &e) - by_s * e.transpose()) * 0.5;
    match law {
        RotationLaw::Ball => out + of_ball(remainder(law, inertia).0),
        _ => out,
    }
}

/// The rotation vector by the interval, of twice the vector part of the turn by it.
#[inline(never)]
pub(super) fn rotation_velocity(omega: &Vec3, h: f64, s: f64) -> Vec3 {
    omega * log_parts(s, 0.25 * h * h * omega.norm_squared()).0
}

/// Scalar part of the turn by `w` over `h`.
#[inline(never)]
pub(super) fn scalar(w: &Vec3, h: f64) -> f64 {
    let square = h * h * w.norm_squared();
    if square < SERIES_SQUARE {
        series(&SCALAR, 0.25 * square)
    } else if square < std::f64::consts::PI.powi(2) {
        (0.5 * square.sqrt()).cos()
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

/// The transpose, times a vector, without forming it.
#[inline(never)]
pub(super) fn jacobian_transposed(w: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
    let r = w * h;
    let (a, b, c) = right_coefficients(&r, s);
    (t * a + r.cross(t) * b + r * (c * r.dot(t))) * h
}
