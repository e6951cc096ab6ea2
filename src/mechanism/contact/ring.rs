//! Circles of bodies, rims of cylinders, on a plane, a line or a circle of another body.
//!
//! A part of a body is seen by its support along a unit normal `n`, from the first body to the second. A circle with center
//! `c`, axis `a` and radius `r` has `n.c + sigma(n)`,
//!
//! ```text
//! sigma = r (S - e^2 |n|^2/(2 S)),   S = sqrt(|rho|^2 + e^2 |n|^2),   rho = n - a (n.a)
//! ```
//!
//! that of a convex body around the disc, whose support point leaps nowhere: where the disc lies flat it is its middle. The body is thicker
//! than the disc by `e r/(8 x^3)` at tilts `x e`, which is 8e-10 r at a tilt of 1e-3, and by `e r/2` at most. So what it keeps apart does not
//! overlap. No convex body within the disc comes as near to it: its support would fall short by some `e r` at every tilt.
//! The gap is the largest separation,
//!
//! ```text
//! phi = max over n of   n.d - sigma_1(n) - sigma_2(n) - r_1 - r_2,   d from the first part to the second,
//! ```
//!
//! with `n` that of a plane, normal to a line, or free between two circles, and radii `r_i` about the parts. At the maximum
//! `w = d - dsigma_1 - dsigma_2` is normal to all directions `t` in which `n` may turn, and follows the poses by
//! `(t' Sigma t + w.n) dn = t' dw` with the Hessian `Sigma` of both sigmas.

use super::Touch;
use super::frame::TouchSlope;
use super::sway::Sway;
use crate::spatial::{Mat3, Pose, Vec3, times_skew};
use nalgebra::{Matrix2, Matrix3x2, Vector2};

/// `e`, about the tilt in rad at which the point is halfway from the rim to its center. A larger one shows in the gap at a tilt of 1e-3,
/// from which on rims are held by their lowest point. A smaller one needs more iterations where a disc comes down flat.
pub(super) const SMOOTH: f64 = 5e-5;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Solid below it; its axis is its normal.
    Plane,
    Line,
    /// Of that radius; a point with none.
    Circle(f64),
}

/// A part of a body, body frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub kind: Kind,
    pub at: Vec3,
    /// Unit.
    pub axis: Vec3,
    /// Radius about it, m.
    pub about: f64,
}

/// `sigma/r` of a smoothed circle by `u = |rho|^2` and `m = (e |n|)^2`: its derivatives `u, m` and `uu, um, mm`.
#[inline]
fn blend(u: f64) -> ([f64; 2], [f64; 3]) {
    let m = SMOOTH * SMOOTH;
    let square = u + m;
    let s = square.sqrt();
    let (cube, rest) = (0.25 / (s * square), m / square);
    let first = [0.5 / s + cube * m, cube * m];
    let second = [-1.0 - 1.5 * rest, -1.5 * rest, 1.0 - 1.5 * rest];
    (first, second.map(|x| x * cube))
}

/// Of a circle along a unit normal: `rho`.
#[inline]
fn tilted(n: &Vec3, a: &Vec3) -> Vec3 {
    // n - a (n.a) without its cancellation, which 1/S would magnify
    a.cross(&n.cross(a))
}

/// The support point of a smoothed circle along a unit normal, from its center.
#[inline]
pub(super) fn circle(n: &Vec3, a: &Vec3, r: f64) -> Vec3 {
    let rho = tilted(n, a);
    let ([by_u, by_m], _) = blend(rho.norm_squared());
    (rho * by_u + n * (by_m * SMOOTH * SMOOTH)) * (2.0 * r)
}

/// How a circle's support point follows the normal and the axis.
pub(super) fn circle_slope(n: &Vec3, a: &Vec3, r: f64) -> (Mat3, Mat3) {
    let rho = tilted(n, a);
    let ([u, m], [uu, um, mm]) = blend(rho.norm_squared());
    let one = Mat3::identity();
    let e = n * (SMOOTH * SMOOTH);
    let both = rho * e.transpose();
    let by_n = (one - a * a.transpose()) * u
        + one * (m * SMOOTH * SMOOTH)
        + rho * rho.transpose() * (2.0 * uu)
        + (both + both.transpose()) * (2.0 * um)
        + e * e.transpose() * (2.0 * mm);
    // drho = -((n.a) 1 + a n') da
    let rho_by = -(one * n.dot(a) + a * n.transpose());
    let square_by = rho_by.tr_mul(&rho) * 2.0;
    let by_a = rho_by * u + (rho * uu + e * um) * square_by.transpose();
    (by_n * (2.0 * r), by_a * (2.0 * r))
}

impl Kind {
    /// Support point from its place: of what has no size, the place.
    #[inline]
    fn point(self, n: &Vec3, a: &Vec3) -> Vec3 {
        match self {
            Self::Circle(r) if r > 0.0 => circle(n, a, r),
            _ => Vec3::zeros(),
        }
    }

    fn slope(self, n: &Vec3, a: &Vec3) -> (Mat3, Mat3) {
        match self {
            Self::Circle(r) if r > 0.0 => circle_slope(n, a, r),
            _ => (Mat3::zeros(), Mat3::zeros()),
        }
    }
}

/// Two parts at a configuration, one of them a circle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    parts: [Part; 2],
    /// World frame.
    at: [Vec3; 2],
    axes: [Vec3; 2],
    /// From the first to the second.
    normal: Vec3,
}

/// Directions around a line at which the separation is asked before the best of them is refined.
const AROUND: usize = 16;
/// Iterations of the refinement: bisection alone comes to rounding in as many.
const REFINED: usize = 60;
/// Of the normal, rad: rounding.
const SETTLED: f64 = 1e-15;

impl Ring {
    pub fn new(parts: [Part; 2], (a, b): (&Pose, &Pose)) -> Self {
        let [p, q] = parts;
        let mut ring = Self {
            parts,
            at: [a.point(&p.at), b.point(&q.at)],
            axes: [a.r * p.axis, b.r * q.axis],
            normal: Vec3::zeros(),
        };
        ring.normal = match (p.kind, q.kind) {
            (Kind::Plane, _) => ring.axes[0],
            (_, Kind::Plane) => -ring.axes[1],
            (Kind::Circle(_), Kind::Circle(_)) => ring.between_circles(),
            _ => ring.around_line(),
        };
        ring
    }

    /// The side that is a line, where one is.
    fn line(&self) -> Option<usize> {
        (self.parts.iter()).position(|p| p.kind == Kind::Line)
    }

    /// From the support point of the first to that of the second, along a normal.
    #[inline]
    fn span(&self, n: &Vec3) -> Vec3 {
        let [p, q] = self.support(n);
        q - p
    }

    #[inline]
    fn support(&self, n: &Vec3) -> [Vec3; 2] {
        let of = |side: usize, sign: f64| {
            self.at[side] + self.parts[side].kind.point(n, &self.axes[side]) * sign
        };
        [of(0, 1.0), of(1, -1.0)]
    }

    /// Hessian of both supports.
    fn hessian(&self, n: &Vec3) -> Mat3 {
        let of = |side: usize| self.parts[side].kind.slope(n, &self.axes[side]).0;
        of(0) + of(1)
    }

    fn around_line(&self) -> Vec3 {
        let e = self.axes[self.line().unwrap_or(0)];
        let other = if e.x.abs() < 0.6 {
            Vec3::x()
        } else {
            Vec3::y()
        };
        let first = e.cross(&other).normalize();
        let second = e.cross(&first);
        let at = |angle: f64| {
            let (sin, cos) = angle.sin_cos();
            first * cos + second * sin
        };
        let part = std::f64::consts::TAU / AROUND as f64;
        let best = (0..AROUND)
            .map(|i| {
                let angle = i as f64 * part;
                let n = at(angle);
                (angle, n.dot(&self.span(&n)))
            })
            .fold(
                (0.0, f64::NEG_INFINITY),
                |m, c| if c.1 > m.1 { c } else { m },
            );
        let (mut low, mut high, mut angle) = (best.0 - part, best.0 + part, best.0);
        for _ in 0..REFINED {
            let n = at(angle);
            let (t, w) = (e.cross(&n), self.span(&n));
            let rises = t.dot(&w);
            if rises > 0.0 {
                low = angle;
            } else {
                high = angle;
            }
            let next = angle + rises / (t.dot(&(self.hessian(&n) * t)) + w.dot(&n));
            let next = if next >= low && next <= high {
                next
            } else {
                0.5 * (low + high)
            };
            let step = next - angle;
            angle = next;
            if step.abs() < SETTLED {
                break;
            }
        }
        at(angle)
    }

    fn between_circles(&self) -> Vec3 {
        let d = self.at[1] - self.at[0];
        let [a, b] = self.axes;
        let beside = |a: &Vec3| a.cross(&d.cross(a));
        let starts = [d, beside(&a), beside(&b), a, -a, b, -b];
        let value = |n: &Vec3| n.dot(&self.span(n));
        let size = self.at[0].amax() + self.at[1].amax() + d.norm();
        let unit = starts.map(|n| n.try_normalize(SMOOTH).unwrap_or(a));
        let worth = unit.map(|n| value(&n));
        let mut best = 0;
        for i in 1..unit.len() {
            if worth[i] > worth[best] {
                best = i;
            }
        }
        let (mut n, mut most) = (unit[best], worth[best]);
        for _ in 0..REFINED {
            let basis = free(&n);
            let w = self.span(&n);
            let rises: Vector2<f64> = basis.tr_mul(&w);
            let curved = self.curvature(&n, &basis, &w);
            let by = match curved.cholesky() {
                Some(of) => of.solve(&rises),
                None => rises / w.norm().max(f64::MIN_POSITIVE),
            };
            let turned = |share: f64| (n + basis * (by * share)).normalize();
            let mut share = (0.5 / by.norm()).min(1.0);
            let mut next = turned(share);
            // at the top its rounding decides nothing
            while value(&next) < most - f64::EPSILON * size && share > SMOOTH {
                share *= 0.5;
                next = turned(share);
            }
            let step = (next - n).norm();
            (n, most) = (next, value(&next));
            if step < SETTLED {
                break;
            }
        }
        n
    }

    fn curvature(&self, n: &Vec3, basis: &Matrix3x2<f64>, w: &Vec3) -> Matrix2<f64> {
        basis.tr_mul(&(self.hessian(n) * basis)) + Matrix2::identity() * w.dot(n)
    }

    /// May a circle come to lie flat, its axis along the normal? If it `may_roll`, one that is held and rolls stays tilted.
    pub fn is_flat(&self, sway: &Sway, may_roll: bool) -> bool {
        let of = |side: usize| match self.parts[side].kind {
            Kind::Circle(r) if r > 0.0 => {
                let axis = &self.axes[side];
                let flat = match may_roll {
                    true => sway.flat_at(axis, &self.touch()),
                    false => sway.flat(axis),
                };
                self.normal.cross(axis).norm() < flat
            }
            _ => false,
        };
        of(0) || of(1)
    }

    fn spread(&self) -> f64 {
        0.5 * (self.parts[0].about - self.parts[1].about)
    }

    /// Which of the support points count as the part's own, and half the separation: of a plane or a line the point that faces that of the circle is its.
    fn shares(&self) -> [f64; 2] {
        let own = |side: usize| matches!(self.parts[side].kind, Kind::Circle(_));
        match (own(0), own(1)) {
            (true, false) => [1.0, 0.0],
            (false, _) => [0.0, 1.0],
            _ => [0.5, 0.5],
        }
    }

    pub fn touch(&self) -> Touch {
        let n = self.normal;
        let [p, q] = self.support(&n);
        let [s, t] = self.shares();
        let apart = n.dot(&(q - p));
        Touch {
            gap: apart - self.parts[0].about - self.parts[1].about,
            normal: n,
            point: p * s + q * t + n * (0.5 * (s - t) * apart + self.spread()),
        }
    }

    pub fn slope(&self, (a, b): (&Pose, &Pose)) -> TouchSlope {
        let n = self.normal;
        let w = self.span(&n);
        let [s, t] = self.shares();
        let slopes = [0, 1].map(|side| self.parts[side].kind.slope(&n, &self.axes[side]));
        let hessian = slopes[0].0 + slopes[1].0;
        let apart = n.dot(&w);
        // by the place and the axis of a side
        let by = |side: usize, place: Mat3, axis: Mat3| {
            let sign = [-1.0, 1.0][side];
            let moved = place * sign - slopes[side].1 * axis;
            let normal = match (self.parts[0].kind, self.parts[1].kind) {
                (Kind::Plane, _) | (_, Kind::Plane) => {
                    let own = matches!(self.parts[side].kind, Kind::Plane);
                    axis * (-sign * f64::from(u8::from(own)))
                }
                (Kind::Circle(_), Kind::Circle(_)) => {
                    let basis = free(&n);
                    let by = self.curvature(&n, &basis, &w).try_inverse();
                    basis * (by.unwrap_or_default() * basis.tr_mul(&moved))
                }
                _ => {
                    let line = self.line().unwrap_or(0);
                    let e = self.axes[line];
                    let t = e.cross(&n);
                    let curved = t.dot(&(hessian * t)) + apart;
                    let mut by = moved.tr_mul(&t);
                    let mut follows = Mat3::zeros();
                    if side == line {
                        by += axis.tr_mul(&n) * t.dot(&(hessian * e)) - axis.tr_mul(&t) * w.dot(&e);
                        follows = -e * axis.tr_mul(&n).transpose();
                    }
                    follows + t * by.transpose() / curved
                }
            };
            // dw = moved - hessian dn, of which nothing is along n
            let widens = moved.tr_mul(&n) + normal.tr_mul(&w);
            let own = place + slopes[side].1 * axis * -sign;
            let point = [s, t][side] * own
                + (slopes[0].0 * s - slopes[1].0 * t) * normal
                + n * widens.transpose() * (0.5 * (s - t))
                + normal * (0.5 * (s - t) * apart + self.spread());
            (normal, point)
        };
        let (one, zero) = (Mat3::identity(), Mat3::zeros());
        let turned = |side: usize, pose: &Pose| {
            let part = &self.parts[side];
            let by = [&part.at, &part.axis].map(|p| -times_skew(&pose.r, p));
            (side, by[0], by[1])
        };
        let of = |(side, place, axis)| by(side, place, axis);
        let pairs = [
            [by(0, one, zero), of(turned(0, a))],
            [by(1, one, zero), of(turned(1, b))],
        ];
        TouchSlope {
            normal: pairs.map(|[x, phi]| (x.0, phi.0)),
            point: pairs.map(|[x, phi]| (x.1, phi.1)),
        }
    }

    /// How a side's circle moves along the normal when its radius grows, world frame.
    pub fn by_radius(&self, side: usize) -> Vec3 {
        let sign = [1.0, -1.0][side];
        Kind::Circle(1.0).point(&self.normal, &self.axes[side]) * sign
    }
}

/// Two directions in which a free normal may turn.
fn free(n: &Vec3) -> Matrix3x2<f64> {
    let other = if n.x.abs() < 0.6 {
        Vec3::x()
    } else {
        Vec3::y()
    };
    let first = n.cross(&other).normalize();
    Matrix3x2::from_columns(&[first, n.cross(&first)])
}
