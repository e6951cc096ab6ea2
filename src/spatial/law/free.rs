//! [`super::RotationLaw::Free`]: a body in flight, by its principal axes.
//!
//! The kinetic energy `m'J^-1 m/2` of the momentum `m`, body frame, is that of a ball of the middle moment `J_j`, and two more
//! terms along the other principal axes,
//!
//! ```text
//! m'm/(2 J_j) + kappa m_k^2/2 + eps m_i^2/2,    kappa = 1/J_k - 1/J_j,   eps = 1/J_i - 1/J_j,   |eps| <= |kappa|.
//! ```
//!
//! Each term alone is a rotation that is known in closed form. The first commutes with both others, so that the step is their
//! symmetric composition, with `R_k(g)` a rotation by `g` about the axis `k`, and `m = J w` that in the middle of the interval:
//!
//! ```text
//! gamma = (h/2) kappa m_k
//! P1 = R_k(gamma) m,    alpha = (h/2) eps P1_i,   p+ = R_i(alpha) P1
//! P2 = R_k(-gamma) m,   beta  = (h/2) eps P2_i,   p- = R_i(-beta) P2
//! F  = R_i(alpha) R_k(gamma) exp(h m/J_j) R_k(gamma) R_i(beta)
//! ```
//!
//! `F(-h)` is the inverse of `F(h)`, `p-` is `p+` of `-h`, and `F p- = p+`: the spatial momentum stays. If two moments are equal
//! (`eps = 0`), and for spins about any principal axis, this is the exact motion, for turns of any size.

use super::exact::right_jacobian;
use crate::spatial::{Mat3, Quat, Vec3, exp, log};
use nalgebra::Quaternion;

/// Newton's iterations from a turn to its velocity. Up to 2.5 rad six are enough for any moments that were tried; more than twenty
/// are taken only where there is no solution.
const ITERATIONS: usize = 20;
/// Halvings of one of its corrections before it gives up.
const HALVINGS: usize = 10;
/// Turn, rad, by which a velocity that Newton's method leaves may miss its own: a thousand times rounding.
const MISS: f64 = 1e-13;

/// `h sqrt(|eps kappa|) |m|` from which on steps are coarse about any axis. At 2 the composition is unstable: with `theta = h eps m`
/// and `sigma = h kappa m`, a small tumbling of a spin about `i` is multiplied in each step by a matrix of determinant 1 and trace
/// `2 cos(theta) - sigma sin(theta)`, which falls below -2 about there. At half of that, the nutation's frequency is off by about
/// 4 %, as that of a leapfrog step.
const SWING: f64 = 1.0;

/// The principal axes and moments of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeLaw {
    i: Vec3,
    k: Vec3,
    /// `J_i, J_j, J_k`; `J_j` lies between the others.
    moments: [f64; 3],
    /// `1/J_i - 1/J_j`.
    eps: f64,
    /// `1/J_k - 1/J_j`.
    kappa: f64,
}

/// A step, factor by factor.
struct Parts {
    h: f64,
    m: Vec3,
    by_k: Quat,
    spin: Quat,
    first: Vec3,
    second: Vec3,
    /// `R_i(alpha)`.
    end: Quat,
    /// `R_i(beta)`.
    start: Quat,
}

/// The rotation by an angle about a unit axis.
fn about(axis: &Vec3, angle: f64) -> Quat {
    let (sine, cosine) = (0.5 * angle).sin_cos();
    Quat::new_unchecked(Quaternion::from_parts(cosine, axis * sine))
}

impl FreeLaw {
    /// Of an inertia about the center of mass, body frame; none if a number is not finite, or a principal moment not positive.
    pub fn new(inertia: &Mat3) -> Option<Self> {
        // the search for its axes would not end
        if !inertia.iter().all(|v| v.is_finite()) {
            return None;
        }
        let eigen = inertia.symmetric_eigen();
        let value = |c: usize| eigen.eigenvalues[c];
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
        let [small, middle, large] = order;
        if value(small) <= 0.0 {
            return None;
        }
        let inverse = |c: usize| 1.0 / value(c);
        // the middle moment goes with the one whose inverse is nearer
        let near_small = inverse(small) - inverse(middle) <= inverse(middle) - inverse(large);
        let (i, k) = if near_small {
            (small, large)
        } else {
            (large, small)
        };
        let axis = |c: usize| eigen.eigenvectors.column(c).normalize();
        Some(Self {
            i: axis(i),
            k: axis(k),
            moments: [value(i), value(middle), value(k)],
            eps: inverse(i) - inverse(middle),
            kappa: inverse(k) - inverse(middle),
        })
    }

    /// The law of axes turned by `r`.
    pub(super) fn turned(&self, r: &Mat3) -> Self {
        Self {
            i: r * self.i,
            k: r * self.k,
            ..*self
        }
    }

    /// `J w`.
    fn times(&self, w: &Vec3) -> Vec3 {
        let [i, j, k] = self.moments;
        w * j + self.i * ((i - j) * self.i.dot(w)) + self.k * ((k - j) * self.k.dot(w))
    }

    /// `J^-1 m`.
    fn over(&self, m: &Vec3) -> Vec3 {
        m / self.moments[1]
            + self.i * (self.eps * self.i.dot(m))
            + self.k * (self.kappa * self.k.dot(m))
    }

    fn parts(&self, w: &Vec3, h: f64) -> Parts {
        let (m, half) = (self.times(w), 0.5 * h);
        let by_k = about(&self.k, half * self.kappa * self.k.dot(&m));
        let (first, second) = (by_k * m, by_k.inverse_transform_vector(&m));
        Parts {
            h,
            by_k,
            spin: exp(&(m * (h / self.moments[1]))),
            end: about(&self.i, half * self.eps * self.i.dot(&first)),
            start: about(&self.i, half * self.eps * self.i.dot(&second)),
            m,
            first,
            second,
        }
    }

    /// Changes of `p+`, and of the turn from the right, by changes of `m` and `h`: the chain rule, factor by factor.
    fn change(&self, of: &Parts, dm: &Vec3, dh: f64) -> (Vec3, Vec3) {
        let (half, middle) = (0.5 * of.h, self.moments[1]);
        let dgamma = self.kappa * (half * self.k.dot(dm) + 0.5 * dh * self.k.dot(&of.m));
        let across = self.k.cross(&of.m) * dgamma;
        let dfirst = of.by_k * (dm + across);
        let dsecond = of.by_k.inverse_transform_vector(&(dm - across));
        let angle =
            |d: &Vec3, p: &Vec3| self.eps * (half * self.i.dot(d) + 0.5 * dh * self.i.dot(p));
        let (dalpha, dbeta) = (angle(&dfirst, &of.first), angle(&dsecond, &of.second));
        let dp = of.end * (dfirst + self.i.cross(&of.first) * dalpha);
        let r = of.m * (of.h / middle);
        let spins = right_jacobian(&r, (0.5 * r.norm()).cos()) * dm * of.h + of.m * dh;
        let about_k = self.k * dgamma;
        let mut phi = of.by_k.inverse_transform_vector(&(self.i * dalpha)) + about_k;
        phi = of.spin.inverse_transform_vector(&phi) + spins / middle;
        phi = of.by_k.inverse_transform_vector(&phi) + about_k;
        (dp, of.start.inverse_transform_vector(&phi) + self.i * dbeta)
    }

    /// `dp+/dw` and `K = dphi/dw`.
    fn jacobians(&self, of: &Parts) -> (Mat3, Mat3) {
        let columns =
            [Vec3::x(), Vec3::y(), Vec3::z()].map(|unit| self.change(of, &self.times(&unit), 0.0));
        (
            Mat3::from_columns(&columns.map(|c| c.0)),
            Mat3::from_columns(&columns.map(|c| c.1)),
        )
    }

    #[inline(never)]
    pub(super) fn increment(&self, w: &Vec3, h: f64) -> Quat {
        let p = self.parts(w, h);
        let q = p.end * p.by_k * p.spin * p.by_k * p.start;
        // five factors; one Newton step on the norm keeps their rounding from adding up
        let q = q.into_inner();
        Quat::new_unchecked(q * (1.5 - 0.5 * q.norm_squared()))
    }

    #[inline(never)]
    pub(super) fn jacobian(&self, w: &Vec3, h: f64) -> Mat3 {
        self.jacobians(&self.parts(w, h)).1
    }

    /// By the interval, of the turn's end.
    #[inline(never)]
    pub(super) fn end_rate(&self, w: &Vec3, h: f64) -> Vec3 {
        self.change(&self.parts(w, h), &Vec3::zeros(), 1.0).1
    }

    #[inline(never)]
    pub(super) fn momentum(&self, w: &Vec3, h: f64) -> Vec3 {
        let p = self.parts(w, h);
        p.end * p.first
    }

    #[inline(never)]
    pub(super) fn momentum_jacobian(&self, w: &Vec3, h: f64) -> Mat3 {
        self.jacobians(&self.parts(w, h)).0
    }

    #[inline(never)]
    pub(super) fn momentum_rate(&self, w: &Vec3, h: f64) -> Vec3 {
        self.change(&self.parts(w, h), &Vec3::zeros(), 1.0).0
    }

    /// The velocity over `h` that begins with the momentum `p`: there is one for every momentum, since `p+` keeps `P1_i` and `P1`
    /// keeps `m_k`.
    pub(crate) fn velocity_of_momentum(&self, p: &Vec3, h: f64) -> Vec3 {
        let half = 0.5 * h;
        let first = about(&self.i, -half * self.eps * self.i.dot(p)) * p;
        self.over(&(about(&self.k, -half * self.kappa * self.k.dot(&first)) * first))
    }

    /// The velocity that turns by `turn` over `h`, by Newton's method from `near`, or else from the rotation vector by the interval.
    /// From the latter it finds turns of up to 2.5 rad of any body; not a number where it finds none.
    #[inline(never)]
    pub(super) fn velocity(&self, turn: &Quat, h: f64, near: Option<&Vec3>) -> Vec3 {
        let miss = |w: &Vec3| log(&(self.increment(w, h).inverse() * turn));
        let mut w = near.map_or_else(|| log(turn) / h, |w| *w);
        let mut left = miss(&w);
        for _ in 0..ITERATIONS {
            let step = self.jacobian(&w, h).lu().solve(&left);
            let Some(step) = step.filter(|_| left.norm() > 0.0) else {
                break;
            };
            let mut length = 1.0;
            let better = (0..HALVINGS).find_map(|_| {
                let trial = w + step * length;
                let own = miss(&trial);
                length *= 0.5;
                (own.norm() < left.norm()).then_some((trial, own))
            });
            // at rounding nothing is better
            let Some(better) = better else { break };
            (w, left) = better;
        }
        if left.norm() < MISS {
            w
        } else {
            Vec3::repeat(f64::NAN)
        }
    }

    /// The turn by which a chord has about the same relative error. Only the terms of `m_i` and `m_k` do not commute, and neither
    /// matters while the body spins about a principal axis: it is `h sqrt(|eps kappa| a b)` of the two largest components `a`, `b` of
    /// `m`. (Of J = (1, 2, 3) it gives the error after twenty steps within a factor of ten.) From [`SWING`] on it is
    /// `h sqrt(|eps kappa|) |m|`, whatever the axis.
    pub(super) fn chord_turn(&self, w: &Vec3, h: f64) -> f64 {
        let m = self.times(w);
        let scale = h.abs() * (self.eps * self.kappa).abs().sqrt();
        let swing = scale * m.norm();
        if swing > SWING {
            return swing;
        }
        let (i, k) = (self.i.dot(&m), self.k.dot(&m));
        let j = self.i.cross(&self.k).dot(&m);
        let most = (i * j).abs().max((j * k).abs()).max((k * i).abs());
        scale * most.sqrt()
    }
}

/// By twice the vector part of the turn by the interval, as joint coordinates have it.
impl FreeLaw {
    fn turn(omega: &Vec3, h: f64, s: f64) -> Quat {
        Quat::new_unchecked(Quaternion::from_parts(s, omega * (0.5 * h)))
    }

    pub(super) fn chord_velocity(&self, w: &Vec3, h: f64) -> Vec3 {
        if h == 0.0 {
            return *w;
        }
        self.increment(w, h).imag() * (2.0 / h)
    }

    pub(super) fn of_chord(&self, omega: &Vec3, h: f64, s: f64) -> Vec3 {
        if h == 0.0 {
            return *omega;
        }
        self.velocity(&Self::turn(omega, h, s), h, None)
    }

    /// By a turn `h phi` of the end from the left, of the velocity.
    pub(super) fn by_end(&self, omega: &Vec3, h: f64, s: f64) -> Mat3 {
        if h == 0.0 {
            return Mat3::identity();
        }
        let turn = Self::turn(omega, h, s);
        let k = self.jacobian(&self.velocity(&turn, h, None), h);
        let inverse = k.try_inverse().unwrap_or_else(|| Mat3::repeat(f64::NAN));
        inverse * turn.inverse().to_rotation_matrix().matrix() * h
    }

    /// The inverse of [`FreeLaw::by_end`].
    pub(super) fn of_end(&self, omega: &Vec3, h: f64, s: f64) -> Mat3 {
        if h == 0.0 {
            return Mat3::identity();
        }
        let turn = Self::turn(omega, h, s);
        let k = self.jacobian(&self.velocity(&turn, h, None), h);
        turn.to_rotation_matrix().matrix() * k / h
    }

    pub(super) fn turn_jacobian(&self, omega: &Vec3, h: f64, s: f64) -> Mat3 {
        self.momentum_jacobian(&self.of_chord(omega, h, s), h) * self.by_end(omega, h, s)
    }
}

#[cfg(test)]
#[path = "free_tests.rs"]
mod tests;
