//! The rotation law of a body: what its angular velocity over an interval means, and its discrete angular momentum.
//!
//! Over an interval `h`, negative where it lies before, a body turns from a knot by the unit quaternion `(s, e)`. A law says how
//! its angular velocity `w` gives that turn, and which discrete Lagrangian `L(s, e)` stands for its rotation. With inertia `J`:
//!
//! ```text
//! chord   e = h/2 w                 L = (2/h) e'J e
//! ball    (s, e) = exp(h w)         L = h/2 c w'w + (2/h) e'J_ e,         c = tr J/3,  J_ = J - c 1
//! spin    (s, e) = exp(h w)         L = C psi^2/(2h) + (2/h) e'J_ e,      C = n'J n,   J_ = J - C n n',  psi = 2 atan2(n'e, s)
//! ```
//!
//! `chord` is off by `(h w)^2/6` of a spin. `ball` is exact for equal moments, and `spin` for spins about the axis `n`, which
//! itself follows its chord. All are symplectic and self-adjoint, keep the spatial momentum, and are linear in `J`. The momentum
//! `p` is the derivative of `L` by the turn; with `-h` it is that at the interval's end.

use super::{Mat3, Quat, Vec3, left_log_jacobian, log, right_log_jacobian, skew, skew_times};
use nalgebra::Quaternion;

/// How a body turns over an interval; see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RotationLaw {
    /// The velocity is twice the vector part of the turn, by the interval.
    #[default]
    Chord,
    /// The velocity is the rotation vector by the interval; exact for three equal moments.
    Ball,
    /// The same, exact for spins about this unit axis, body frame.
    Spin(Vec3),
}

/// `(h |w|)^2` of what follows its chord beyond which no step is looked for: at 2 the discrete momentum about a principal axis is
/// largest.
const CHORD_DOMAIN: f64 = 2.0;
/// Largest `h |w|` that a step of it is looked for from, inside that domain.
const CHORD_START: f64 = 1.2;
/// The same of the other laws, whose momenta grow on: at half a turn, `pi`, unwound angles of joints can no longer be told.
const EXACT_DOMAIN: f64 = 9.0;
const EXACT_START: f64 = 2.7;
/// The scalar part of a turn at the bound of that domain, `cos(3/2)`.
const EXACT_SCALAR: f64 = 0.0707;

/// Largest `h w` about an axis of what is planned, without solving steps: a little inside the domain of
/// [`RotationLaw::Chord`], where a principal axis' momentum is within 2 % of its largest, and still grows.
const CHORD_PLANNED: f64 = 1.3;

/// Turn by a step from which on its chord is coarse, rad: the spin is then off by a sixth of the square, 4 %, about as much as an
/// energy error that is worth a warning.
pub const COARSE_TURN: f64 = 0.5;

/// Squares of angles, rad^2, below which series replace quotients: their next terms are below rounding.
const SMALL_SQUARE: f64 = 1e-6;

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
fn increment_jacobian(w: &Vec3, h: f64, s: f64) -> Mat3 {
    (w * w.transpose() * (0.25 * h * h / s) - skew(w) * (0.5 * h) + Mat3::identity() * s) * h
}

/// `K' t` without forming `K`.
#[inline(always)]
fn increment_jacobian_transposed(w: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
    (t * s + w * (0.25 * h * h * w.dot(t) / s) + w.cross(t) * (0.5 * h)) * h
}

/// Discrete angular momentum `p(w) = s J w + h/2 w x J w`, body frame; with `-h` it is the momentum at the
/// interval's end, `p-`.
#[inline(always)]
fn momentum(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let jw = inertia * w;
    jw * s + w.cross(&jw) * (0.5 * h)
}

/// `dp/dw` of [`momentum`].
#[inline(always)]
fn momentum_jacobian(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
    let jw = inertia * w;
    inertia * s - jw * w.transpose() * (0.25 * h * h / s)
        + (skew(w) * inertia - skew(&jw)) * (0.5 * h)
}

/// `(dp/dw)' t` without forming it.
#[inline(always)]
fn momentum_jacobian_transposed(w: &Vec3, inertia: &Mat3, h: f64, s: f64, t: &Vec3) -> Vec3 {
    let jw = inertia * w;
    inertia * (t * s + t.cross(w) * (0.5 * h)) - w * (0.25 * h * h / s * jw.dot(t))
        + jw.cross(t) * (0.5 * h)
}

/// `dp/dh` of [`momentum`] (for `p-` call with `-h` and change the sign).
fn momentum_rate(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let jw = inertia * w;
    jw * (-0.25 * h * w.norm_squared() / s) + w.cross(&jw) * 0.5
}

/// `S = sin(x/2)/x` and `S2 = (cos(x/2)/2 - S)/x^2`, by `x^2` and `s = cos(x/2)`: of `(s, h S w)`, `dS/dh = h w'w S2`.
fn sines(square: f64, s: f64) -> (f64, f64) {
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
fn right_jacobian(r: &Vec3, s: f64) -> Mat3 {
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

/// What of an inertia a law takes as a chord does.
fn remainder(law: &RotationLaw, inertia: &Mat3) -> (f64, Mat3) {
    match law {
        RotationLaw::Chord => (0.0, *inertia),
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
fn exact_momentum(law: &RotationLaw, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let (c, rest) = remainder(law, inertia);
    let p = momentum(omega, &rest, h, s);
    match law {
        RotationLaw::Spin(n) => {
            let t = Twist::new(n, s, &(omega * (0.5 * h)));
            p + t.toward * (c * t.stretch * n.dot(omega) / t.square)
        }
        _ => p + rotation_velocity(omega, h, s) * c,
    }
}

#[inline(never)]
fn exact_momentum_jacobian(law: &RotationLaw, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
    let r = w * h;
    let (sinc, bend) = sines(r.norm_squared(), s);
    let e = r * sinc;
    let (by_e, by_s) = by_turn(law, inertia, s, &e);
    let out = by_e * (Mat3::from_diagonal_element(sinc) + r * r.transpose() * bend)
        - by_s * e.transpose() * 0.5;
    match law {
        RotationLaw::Ball => out + Mat3::from_diagonal_element(remainder(law, inertia).0),
        _ => out,
    }
}

#[inline(never)]
fn exact_momentum_rate(law: &RotationLaw, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
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
fn exact_turn_jacobian(law: &RotationLaw, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
    let e = omega * (0.5 * h);
    let (by_e, by_s) = by_turn(law, inertia, s, &e);
    // a turn phi of the end from the left changes e by (s phi + phi x e)/2 and s by -e'phi/2
    let out = (by_e * (Mat3::from_diagonal_element(s) - skew(&e)) - by_s * e.transpose()) * 0.5;
    match law {
        RotationLaw::Ball => {
            let c = remainder(law, inertia).0;
            out + left_log_jacobian(&(rotation_velocity(omega, h, s) * h)) * c
        }
        _ => out,
    }
}

/// The rotation vector by the interval, of twice the vector part of the turn by it.
#[inline(never)]
fn rotation_velocity(omega: &Vec3, h: f64, s: f64) -> Vec3 {
    let square = 0.25 * h * h * omega.norm_squared();
    if square < SMALL_SQUARE && s > 0.0 {
        return omega * (1.0 + square * (1.0 / 6.0 + square * 3.0 / 40.0));
    }
    let sine = square.sqrt();
    omega * (sine.atan2(s) / sine)
}

impl RotationLaw {
    /// The law about axes turned by `r`.
    #[inline(always)]
    pub fn turned(&self, r: &Mat3) -> Self {
        match self {
            Self::Spin(n) => Self::Spin(r * n),
            other => *other,
        }
    }

    /// Scalar part of the turn by `w` over `h`; not a number where no turn is meant.
    #[inline(always)]
    pub fn scalar(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Chord => increment_scalar(w, h),
            _ => Self::exact_scalar(w, h),
        }
    }

    #[inline(never)]
    fn exact_scalar(w: &Vec3, h: f64) -> f64 {
        let turn = h.abs() * w.norm();
        if turn < std::f64::consts::PI {
            (0.5 * turn).cos()
        } else {
            f64::NAN
        }
    }

    /// The turn, with its scalar part.
    #[inline(always)]
    pub fn increment(&self, w: &Vec3, h: f64, s: f64) -> Quat {
        match self {
            Self::Chord => increment(w, h, s),
            _ => Self::exact_increment(w, h, s),
        }
    }

    #[inline(never)]
    fn exact_increment(w: &Vec3, h: f64, s: f64) -> Quat {
        let r = w * h;
        Quat::new_unchecked(Quaternion::from_parts(s, r * sines(r.norm_squared(), s).0))
    }

    /// The velocity that turns by `turn` over `h`.
    pub fn velocity(&self, turn: &Quat, h: f64) -> Vec3 {
        match self {
            Self::Chord => {
                // the shorter way around
                let sign = if turn.w < 0.0 { -1.0 } else { 1.0 };
                turn.imag() * (2.0 * sign / h)
            }
            _ => log(turn) / h,
        }
    }

    /// Twice the vector part of the turn by `w`, by the interval.
    #[inline(always)]
    pub fn chord_velocity(&self, w: &Vec3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => *w,
            _ => w * (2.0 * sines(h * h * w.norm_squared(), s).0),
        }
    }

    /// The way back.
    #[inline(always)]
    pub fn from_chord(&self, omega: &Vec3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => *omega,
            _ => rotation_velocity(omega, h, s),
        }
    }

    /// `dw` by a turn `h phi` of the interval's end from the left, of the turn by twice its vector part by the interval.
    #[inline(always)]
    pub fn velocity_by_end(&self, omega: &Vec3, h: f64, s: f64, phi: &Vec3) -> Vec3 {
        match self {
            Self::Chord => phi * s - omega.cross(phi) * (0.5 * h),
            _ => left_log_jacobian(&(rotation_velocity(omega, h, s) * h)) * phi,
        }
    }

    /// The transpose.
    #[inline(always)]
    pub fn velocity_by_end_transposed(&self, omega: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
        match self {
            Self::Chord => t * s + omega.cross(t) * (0.5 * h),
            _ => right_log_jacobian(&(rotation_velocity(omega, h, s) * h)) * t,
        }
    }

    /// The inverse of [`RotationLaw::velocity_by_end`]; with `-h` that of its transpose.
    pub fn end_by_velocity(&self, omega: &Vec3, h: f64, s: f64, dw: &Vec3) -> Vec3 {
        match self {
            Self::Chord => {
                let u = omega * (0.5 * h);
                dw * s + u * (u.dot(dw) / s) + u.cross(dw)
            }
            _ => right_jacobian(&(rotation_velocity(omega, h, s) * -h), s) * dw,
        }
    }

    /// `K = dphi+/dw`: how the velocity turns the end of the interval, body frame there.
    #[inline(always)]
    pub fn jacobian(&self, w: &Vec3, h: f64, s: f64) -> Mat3 {
        match self {
            Self::Chord => increment_jacobian(w, h, s),
            _ => Self::exact_jacobian(w, h, s),
        }
    }

    #[inline(never)]
    fn exact_jacobian(w: &Vec3, h: f64, s: f64) -> Mat3 {
        right_jacobian(&(w * h), s) * h
    }

    /// `K' t`.
    #[inline(always)]
    pub fn jacobian_transposed(&self, w: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
        match self {
            Self::Chord => increment_jacobian_transposed(w, h, s, t),
            _ => Self::exact_jacobian(w, h, s).tr_mul(t),
        }
    }

    /// What `w` is to be divided by for the rate of `phi+` by the interval.
    #[inline(always)]
    pub fn end_divisor(&self, s: f64) -> f64 {
        match self {
            Self::Chord => s,
            _ => 1.0,
        }
    }

    /// Discrete angular momentum `p(w)`, body frame; with `-h` it is that at the interval's end, `p-`.
    #[inline(always)]
    pub fn momentum(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => momentum(w, inertia, h, s),
            _ => exact_momentum(self, &self.chord_velocity(w, h, s), inertia, h, s),
        }
    }

    /// The same of a turn by twice its vector part by the interval.
    #[inline(always)]
    pub fn momentum_of_turn(&self, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => momentum(omega, inertia, h, s),
            _ => exact_momentum(self, omega, inertia, h, s),
        }
    }

    /// Its derivative by a turn of the interval's end from the left, times the interval; `None` of [`RotationLaw::Chord`].
    #[inline(always)]
    pub fn turn_jacobian(&self, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Option<Mat3> {
        match self {
            Self::Chord => None,
            _ => Some(exact_turn_jacobian(self, omega, inertia, h, s)),
        }
    }

    /// `dp/dw`.
    #[inline(always)]
    pub fn momentum_jacobian(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
        match self {
            Self::Chord => momentum_jacobian(w, inertia, h, s),
            _ => exact_momentum_jacobian(self, w, inertia, h, s),
        }
    }

    /// `(dp/dw)' t`.
    #[inline(always)]
    pub fn momentum_jacobian_transposed(
        &self,
        w: &Vec3,
        inertia: &Mat3,
        h: f64,
        s: f64,
        t: &Vec3,
    ) -> Vec3 {
        match self {
            Self::Chord => momentum_jacobian_transposed(w, inertia, h, s, t),
            _ => exact_momentum_jacobian(self, w, inertia, h, s).tr_mul(t),
        }
    }

    /// `dp/dh` (for `p-` call with `-h` and change the sign).
    #[inline(always)]
    pub fn momentum_rate(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => momentum_rate(w, inertia, h, s),
            _ => exact_momentum_rate(self, w, inertia, h, s),
        }
    }

    /// Is a step looked for at this `h w`? Not at a NaN.
    #[inline(always)]
    pub(crate) fn contains(&self, w: &Vec3, h: f64) -> bool {
        let square = h * h * w.norm_squared();
        match self {
            Self::Chord => square < CHORD_DOMAIN,
            Self::Ball => square < EXACT_DOMAIN,
            Self::Spin(_) => square < EXACT_DOMAIN && self.chord_turn(w, h).powi(2) < CHORD_DOMAIN,
        }
    }

    /// The same of a turn, with twice its vector part by the interval.
    #[inline(always)]
    pub(crate) fn contains_turn(&self, omega: &Vec3, h: f64, s: f64) -> bool {
        match self {
            Self::Chord => h * h * omega.norm_squared() < CHORD_DOMAIN,
            Self::Ball => s > EXACT_SCALAR,
            Self::Spin(_) => s > EXACT_SCALAR && self.chord_turn(omega, h).powi(2) < CHORD_DOMAIN,
        }
    }

    /// `h w` relative to the largest that a step is looked for from.
    #[inline(always)]
    pub(crate) fn beyond_start(&self, w: &Vec3, h: f64) -> f64 {
        let turn = h.abs() * w.norm();
        match self {
            Self::Chord => turn / CHORD_START,
            Self::Ball => turn / EXACT_START,
            Self::Spin(_) => (turn / EXACT_START).max(self.chord_turn(w, h) / CHORD_START),
        }
    }

    /// Largest `h w` about a unit axis, body frame, of what is planned.
    pub(crate) fn planned(&self, axis: &Vec3) -> f64 {
        match self {
            Self::Chord => CHORD_PLANNED,
            Self::Ball => EXACT_START,
            Self::Spin(_) => {
                let tilt = self.chord_turn(axis, 1.0);
                EXACT_START.min(CHORD_PLANNED / tilt)
            }
        }
    }

    /// The bounds of `h |w|` of steps that are looked for, and of its part across the axis of a spin.
    pub(crate) fn domain(&self) -> (f64, Option<f64>) {
        match self {
            Self::Chord => (CHORD_DOMAIN.sqrt(), None),
            Self::Ball => (EXACT_DOMAIN.sqrt(), None),
            Self::Spin(_) => (EXACT_DOMAIN.sqrt(), Some(CHORD_DOMAIN.sqrt())),
        }
    }

    /// Of a turn by `h w`, what the law takes for its chord: the error of the spin is a sixth of its square.
    #[inline(always)]
    pub fn chord_turn(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Chord => h.abs() * w.norm(),
            Self::Ball => 0.0,
            Self::Spin(n) => h.abs() * w.cross(n).norm(),
        }
    }
}

#[cfg(test)]
mod tests;
