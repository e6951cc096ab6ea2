//! The rotation law of a body: what its angular velocity over an interval means, and its discrete angular momentum.
//!
//! Over an interval `h`, negative where it lies before, a body turns from a knot by the unit quaternion `(s, e)`. A law says how
//! its angular velocity `w` gives that turn, and which discrete Lagrangian `L(s, e)` stands for its rotation. With inertia `J`:
//!
//! ```text
//! chord   e = h/2 w                 L = (2/h) e'J e
//! ball    (s, e) = exp(h w)         L = h/2 c w'w + (2/h) e'J_ e,         c = tr J/3,  J_ = J - c 1
//! spin    (s, e) = exp(h w)         L = C psi^2/(2h) + (2/h) e'J_ e,      C = n'J n,   J_ = J - C n n',  psi = 2 atan2(n'e, s)
//! free    see [`FreeLaw`]'s module: a composition of rotations about principal axes
//! ```
//!
//! `chord` is off by `(h w)^2/6` of a spin. `ball` is exact for equal moments, and `spin` for spins about the axis `n`, which
//! itself follows its chord. All are symplectic and self-adjoint, and keep the spatial momentum; all but `free` are linear in `J`. The
//! momentum `p` is the derivative of `L` by the turn; with `-h` it is that at the interval's end.

mod chord;
mod exact;
mod free;

pub use chord::{increment, increment_scalar};
pub use free::FreeLaw;

use super::{Mat3, Quat, Vec3, log};
use exact::{right_jacobian, rotation_velocity};

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
    /// The velocity is that of the momentum in the middle; exact for two equal moments, and for spins about a principal axis.
    Free(FreeLaw),
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

/// Turn by a step from which on its chord is coarse, rad: the spin is then off by a sixth of the square, 1 %.
pub const COARSE_TURN: f64 = 0.25;

impl RotationLaw {
    /// The law about axes turned by `r`.
    #[inline(always)]
    pub fn turned(&self, r: &Mat3) -> Self {
        match self {
            Self::Chord => Self::Chord,
            Self::Ball => Self::Ball,
            Self::Spin(n) => Self::Spin(r * n),
            Self::Free(f) => Self::Free(f.turned(r)),
        }
    }

    /// Scalar part of the turn by `w` over `h`; not a number where no turn is meant.
    #[inline(always)]
    pub fn scalar(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Chord => increment_scalar(w, h),
            _ => self.bent_scalar(w, h),
        }
    }

    /// The turn, with its scalar part.
    #[inline(always)]
    pub fn increment(&self, w: &Vec3, h: f64, s: f64) -> Quat {
        match self {
            Self::Chord => increment(w, h, s),
            _ => self.bent_increment(w, h, s),
        }
    }

    /// The velocity that turns by `turn` over `h`, of the one nearest to `near` where there are several ([`RotationLaw::Free`]);
    /// not a number where none is found.
    pub fn velocity(&self, turn: &Quat, h: f64, near: Option<&Vec3>) -> Vec3 {
        match self {
            Self::Chord => {
                // the shorter way around
                let sign = if turn.w < 0.0 { -1.0 } else { 1.0 };
                turn.imag() * (2.0 * sign / h)
            }
            Self::Free(f) => f.velocity(turn, h, near),
            _ => log(turn) / h,
        }
    }

    /// Twice the vector part of the turn by `w`, by the interval.
    #[inline(always)]
    pub fn chord_velocity(&self, w: &Vec3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => *w,
            _ => self.bent_chord_velocity(w, h, s),
        }
    }

    /// The way back.
    #[inline(always)]
    pub fn from_chord(&self, omega: &Vec3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => *omega,
            _ => self.bent_from_chord(omega, h, s),
        }
    }

    /// `dw` by a turn `h phi` of the interval's end from the left, of the turn by twice its vector part by the interval.
    #[inline(always)]
    pub fn velocity_by_end(&self, omega: &Vec3, h: f64, s: f64, phi: &Vec3) -> Vec3 {
        match self {
            Self::Chord => phi * s - omega.cross(phi) * (0.5 * h),
            Self::Free(f) => f.by_end(omega, h, s) * phi,
            _ => exact::log_by_end(s, &(omega * (0.5 * h)), phi),
        }
    }

    /// The transpose.
    #[inline(always)]
    pub fn velocity_by_end_transposed(&self, omega: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
        match self {
            Self::Chord => t * s + omega.cross(t) * (0.5 * h),
            Self::Free(f) => f.by_end(omega, h, s).tr_mul(t),
            _ => exact::log_by_end(s, &(omega * (-0.5 * h)), t),
        }
    }

    /// The inverse of [`RotationLaw::velocity_by_end`].
    pub fn end_by_velocity(&self, omega: &Vec3, h: f64, s: f64, dw: &Vec3) -> Vec3 {
        match self {
            Self::Chord => {
                let u = omega * (0.5 * h);
                dw * s + u * (u.dot(dw) / s) + u.cross(dw)
            }
            Self::Free(f) => f.of_end(omega, h, s) * dw,
            _ => right_jacobian(&(rotation_velocity(omega, h, s) * -h), s) * dw,
        }
    }

    /// The transpose of that inverse.
    pub fn end_by_velocity_transposed(&self, omega: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
        match self {
            Self::Free(f) => f.of_end(omega, h, s).tr_mul(t),
            // of these it is the inverse of `-h`
            _ => self.end_by_velocity(omega, -h, s, t),
        }
    }

    /// `K = dphi+/dw`: how the velocity turns the end of the interval, body frame there.
    #[inline(always)]
    pub fn jacobian(&self, w: &Vec3, h: f64, s: f64) -> Mat3 {
        match self {
            Self::Chord => chord::jacobian(w, h, s),
            _ => self.bent_jacobian(w, h, s),
        }
    }

    /// `K' t`.
    #[inline(always)]
    pub fn jacobian_transposed(&self, w: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
        match self {
            Self::Chord => chord::jacobian_transposed(w, h, s, t),
            Self::Free(f) => f.jacobian(w, h).tr_mul(t),
            _ => exact::jacobian_transposed(w, h, s, t),
        }
    }

    /// How a longer interval at the same `w` turns its end, body frame there: `dphi+/dh dh`.
    #[inline(always)]
    pub fn end_by_interval(&self, w: &Vec3, h: f64, s: f64, dh: f64) -> Vec3 {
        match self {
            Self::Chord => w * (dh / s),
            Self::Free(f) => f.end_rate(w, h) * dh,
            _ => w * dh,
        }
    }

    /// `(dphi+/dh)' t`.
    #[inline(always)]
    pub fn end_by_interval_transposed(&self, w: &Vec3, h: f64, s: f64, t: &Vec3) -> f64 {
        match self {
            Self::Chord => t.dot(w) / s,
            Self::Free(f) => t.dot(&f.end_rate(w, h)),
            _ => t.dot(w),
        }
    }

    /// Discrete angular momentum `p(w)`, body frame; with `-h` it is that at the interval's end, `p-`. [`RotationLaw::Free`] has
    /// the inertia it was made of.
    #[inline(always)]
    pub fn momentum(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => chord::momentum(w, inertia, h, s),
            _ => self.bent_momentum(w, inertia, h, s),
        }
    }

    /// The same of a turn by twice its vector part by the interval.
    #[inline(always)]
    pub fn momentum_of_turn(&self, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => chord::momentum(omega, inertia, h, s),
            _ => self.bent_momentum_of_turn(omega, inertia, h, s),
        }
    }

    /// Its derivative by a turn of the interval's end from the left, times the interval; `None` of [`RotationLaw::Chord`].
    #[inline(always)]
    pub fn turn_jacobian(&self, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Option<Mat3> {
        match self {
            Self::Chord => None,
            Self::Free(f) => Some(f.turn_jacobian(omega, h, s)),
            _ => Some(exact::turn_jacobian(self, omega, inertia, h, s)),
        }
    }

    /// `dp/dw`.
    #[inline(always)]
    pub fn momentum_jacobian(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
        match self {
            Self::Chord => chord::momentum_jacobian(w, inertia, h, s),
            _ => self.bent_momentum_jacobian(w, inertia, h, s),
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
            Self::Chord => chord::momentum_jacobian_transposed(w, inertia, h, s, t),
            _ => self.bent_momentum_jacobian(w, inertia, h, s).tr_mul(t),
        }
    }

    /// `dp/dh` (for `p-` call with `-h` and change the sign).
    #[inline(always)]
    pub fn momentum_rate(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Chord => chord::momentum_rate(w, inertia, h, s),
            Self::Free(f) => f.momentum_rate(w, h),
            _ => exact::momentum_rate(self, w, inertia, h, s),
        }
    }
}

/// The laws whose turn is no chord, out of line: the path of the chord, which most bodies take, stays short.
impl RotationLaw {
    #[inline(never)]
    fn bent_scalar(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Free(f) => f.increment(w, h).w,
            _ => exact::scalar(w, h),
        }
    }

    #[inline(never)]
    fn bent_increment(&self, w: &Vec3, h: f64, s: f64) -> Quat {
        match self {
            Self::Free(f) => f.increment(w, h),
            _ => exact::increment(w, h, s),
        }
    }

    #[inline(never)]
    fn bent_chord_velocity(&self, w: &Vec3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Free(f) => f.chord_velocity(w, h),
            _ => exact::chord_velocity(w, h, s),
        }
    }

    #[inline(never)]
    fn bent_from_chord(&self, omega: &Vec3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Free(f) => f.of_chord(omega, h, s),
            _ => rotation_velocity(omega, h, s),
        }
    }

    #[inline(never)]
    fn bent_jacobian(&self, w: &Vec3, h: f64, s: f64) -> Mat3 {
        match self {
            Self::Free(f) => f.jacobian(w, h),
            _ => exact::jacobian(w, h, s),
        }
    }

    #[inline(never)]
    fn bent_momentum(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Free(f) => f.momentum(w, h),
            _ => exact::momentum_of_velocity(self, w, inertia, h, s),
        }
    }

    #[inline(never)]
    fn bent_momentum_of_turn(&self, omega: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
        match self {
            Self::Free(f) => f.momentum(&f.of_chord(omega, h, s), h),
            _ => exact::momentum(self, omega, inertia, h, s),
        }
    }

    #[inline(never)]
    fn bent_momentum_jacobian(&self, w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
        match self {
            Self::Free(f) => f.momentum_jacobian(w, h),
            _ => exact::momentum_jacobian(self, w, inertia, h, s),
        }
    }
}

/// The same of where steps are looked for.
impl RotationLaw {
    #[inline(never)]
    fn bent_contains(&self, w: &Vec3, h: f64) -> bool {
        let square = h * h * w.norm_squared();
        match self {
            Self::Spin(_) => {
                square < EXACT_DOMAIN && self.bent_chord_turn(w, h).powi(2) < CHORD_DOMAIN
            }
            Self::Free(_) => square.is_finite(),
            _ => square < EXACT_DOMAIN,
        }
    }

    #[inline(never)]
    fn bent_contains_turn(&self, omega: &Vec3, h: f64, s: f64) -> bool {
        let has_chord = matches!(self, Self::Spin(_));
        s > EXACT_SCALAR && (!has_chord || self.bent_chord_turn(omega, h).powi(2) < CHORD_DOMAIN)
    }

    #[inline(never)]
    fn bent_beyond_start(&self, w: &Vec3, h: f64) -> f64 {
        let turn = h.abs() * w.norm() / EXACT_START;
        match self {
            Self::Spin(_) => turn.max(self.bent_chord_turn(w, h) / CHORD_START),
            Self::Free(_) => 0.0,
            _ => turn,
        }
    }

    #[inline(never)]
    fn bent_chord_turn(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Spin(n) => h.abs() * w.cross(n).norm(),
            Self::Free(f) => f.chord_turn(w, h),
            _ => 0.0,
        }
    }
}

/// Where steps are looked for.
impl RotationLaw {
    /// Is a step looked for at this `h w`? Not at a NaN.
    #[inline(always)]
    pub(crate) fn contains(&self, w: &Vec3, h: f64) -> bool {
        match self {
            Self::Chord => h * h * w.norm_squared() < CHORD_DOMAIN,
            _ => self.bent_contains(w, h),
        }
    }

    /// The same of a turn, with twice its vector part by the interval.
    #[inline(always)]
    pub(crate) fn contains_turn(&self, omega: &Vec3, h: f64, s: f64) -> bool {
        match self {
            Self::Chord => h * h * omega.norm_squared() < CHORD_DOMAIN,
            _ => self.bent_contains_turn(omega, h, s),
        }
    }

    /// `h w` relative to the largest that a step is looked for from.
    #[inline(always)]
    pub(crate) fn beyond_start(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Chord => h.abs() * w.norm() / CHORD_START,
            _ => self.bent_beyond_start(w, h),
        }
    }

    /// Largest `h w` about a unit axis, body frame, of what is planned.
    pub(crate) fn planned(&self, axis: &Vec3) -> f64 {
        match self {
            Self::Chord => CHORD_PLANNED,
            // of free bodies there is no bound but that of charts, which take differences of turns
            Self::Ball | Self::Free(_) => EXACT_START,
            Self::Spin(_) => {
                let tilt = self.chord_turn(axis, 1.0);
                EXACT_START.min(CHORD_PLANNED / tilt)
            }
        }
    }

    /// Its name in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chord => "chord",
            Self::Ball => "ball",
            Self::Spin(_) => "spin",
            Self::Free(_) => "free",
        }
    }

    /// The bounds of `h |w|` of steps that are looked for, and of its part across the axis of a spin; none of
    /// [`RotationLaw::Free`].
    pub(crate) fn domain(&self) -> Option<(f64, Option<f64>)> {
        match self {
            Self::Chord => Some((CHORD_DOMAIN.sqrt(), None)),
            Self::Ball => Some((EXACT_DOMAIN.sqrt(), None)),
            Self::Spin(_) => Some((EXACT_DOMAIN.sqrt(), Some(CHORD_DOMAIN.sqrt()))),
            Self::Free(_) => None,
        }
    }

    /// Of a turn by `h w`, what the law takes for its chord: the error of the spin is a sixth of its square.
    #[inline(always)]
    pub fn chord_turn(&self, w: &Vec3, h: f64) -> f64 {
        match self {
            Self::Chord => h.abs() * w.norm(),
            _ => self.bent_chord_turn(w, h),
        }
    }
}

#[cfg(test)]
mod tests;
