//! A joint's own coordinates over an interval: how a change of its rates moves where it ends, and the way back.
//!
//! Over an interval `h` (negative where it lies before the knot) a joint turns by `e = (s, h/2 w)`, `r+ = e r`. Changes of `r`
//! and of `r+` by turns `eta`, `eta + h rho` from the left change `w` by
//!
//! ```text
//! dw = C rho + eta x w - w dh/h,     C a = s a + h/2 a x w
//! ```
//!
//! which needs no division by `h`, so that it serves for rates of the instant, too. Of two free rotations the third component of
//! every turn follows from the other two, at either end by the rotation there.

use super::Node;
use super::kinematics::{third, third_change, turn};
use super::work::AtKnot;
use crate::mechanism::{Joint, Relative, displaced_over};
use crate::spatial::{Mat3, Quat, Vec3, increment, increment_scalar, left_log_jacobian, log, skew};

/// Along the free rotations of a joint, a matrix in the upper left corner for each.
#[derive(Clone, Copy)]
pub(super) struct Local {
    /// `dw` by `rho`, and its inverse; by the turn at the knot.
    pub by_end: Mat3,
    pub inverse: Mat3,
    pub by_knot: Mat3,
    /// Displacement along damped directions by both; its rate if there is no interval.
    pub damped_by_end: Mat3,
    pub damped_by_knot: Mat3,
    pub omega: Vec3,
}

impl Local {
    pub const NONE: Self = {
        let none = Mat3::new(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        Self {
            by_end: none,
            inverse: none,
            by_knot: none,
            damped_by_end: none,
            damped_by_knot: none,
            omega: Vec3::new(0.0, 0.0, 0.0),
        }
    };

    /// Of a joint with these rates over an interval.
    pub fn new(j: &Joint, node: &Node, relative: &Quat, rates: &[f64], h: f64) -> Self {
        let mut out = Self::NONE;
        out.update(j, node, relative, rates, h);
        out
    }

    /// The same of what was made of the same joint: what its kind leaves zero, and displacements where nothing dampens, are not
    /// touched.
    #[inline(always)]
    pub fn update(&mut self, j: &Joint, node: &Node, relative: &Quat, rates: &[f64], h: f64) {
        match node.turns {
            0 => {}
            1 => {
                let rate = rates[node.slides];
                let scalar = increment_scalar(&Vec3::new(rate, 0.0, 0.0), h);
                self.omega.x = rate;
                self.by_end.m11 = scalar;
                self.inverse.m11 = 1.0 / scalar;
                self.damped_by_end.m11 = displaced_over(h);
            }
            3 if !j.has_dampers() => {
                let omega = turn(j, node, relative, rates);
                let (s, u) = (increment_scalar(&omega, h), omega * (0.5 * h));
                // s^2 + u'u = 1
                let (diagonal, across) = (Mat3::from_diagonal_element(s), skew(&u));
                self.omega = omega;
                self.by_end = diagonal - across;
                self.inverse = diagonal + across + (u / s) * u.transpose();
                self.by_knot = -skew(&omega);
            }
            _ => self.update_turns(j, node, relative, rates, h),
        }
    }

    #[inline(never)]
    fn update_turns(&mut self, j: &Joint, node: &Node, relative: &Quat, rates: &[f64], h: f64) {
        let omega = turn(j, node, relative, rates);
        let scalar = increment_scalar(&omega, h);
        let inc = increment(&omega, h, scalar);
        let end = inc * relative;
        let along = |a: &Vec3| a * scalar + a.cross(&omega) * (0.5 * h);
        let by_log = j.has_dampers().then(|| left_log_jacobian(&log(&inc)));
        let turns = &j.directions[node.slides..];
        for (c, by) in turns.iter().enumerate() {
            let knot = by.unit + third(j, node, relative, &by.unit);
            let at_end = by.unit + third(j, node, &end, &by.unit);
            let drift = third_drift(j, node, relative, &omega, h, &by.unit);
            let ends = along(&at_end);
            let starts = along(&drift) + knot.cross(&omega);
            for (r, d) in turns.iter().enumerate() {
                self.by_end[(r, c)] = d.unit.dot(&ends);
                self.by_knot[(r, c)] = d.unit.dot(&starts);
            }
            let Some(by_log) = by_log else { continue };
            let (ends, starts) = match h {
                0.0 => (at_end, drift + knot.cross(&omega)),
                _ => (
                    by_log * at_end * h,
                    by_log * (drift * h + knot - inc * knot),
                ),
            };
            for (r, d) in turns.iter().enumerate() {
                self.damped_by_end[(r, c)] = d.unit.dot(&ends);
                self.damped_by_knot[(r, c)] = d.unit.dot(&starts);
            }
        }
        for (r, d) in turns.iter().enumerate() {
            self.omega[r] = d.unit.dot(&omega);
        }
        let mut square = self.by_end;
        (turns.len()..3).for_each(|i| square[(i, i)] = 1.0);
        // singular only at half a turn, which the domain excludes
        self.inverse = square.try_inverse().unwrap_or_else(Mat3::zeros);
    }

    /// Change of the rates by `rho`, the change at the knot, and `dh/h`; rotations alone.
    pub fn rates(&self, rho: &Vec3, knot: &Vec3, longer: f64) -> Vec3 {
        self.by_end * rho + self.by_knot * knot - self.omega * longer
    }

    /// The way back.
    pub fn ends(&self, rates: &Vec3, knot: &Vec3, longer: f64) -> Vec3 {
        self.inverse * (rates + self.omega * longer - self.by_knot * knot)
    }

    /// The transpose of [`Local::rates`], of so many rotations: by `rho`, the knot, and `dh/h`.
    #[inline(always)]
    pub fn rates_transposed(&self, turns: usize, rates: &Vec3) -> (Vec3, Vec3, f64) {
        if turns == 1 {
            // nothing but the first numbers, and none by the knot
            let rho = self.by_end.m11 * rates.x;
            return (
                Vec3::new(rho, 0.0, 0.0),
                Vec3::zeros(),
                -self.omega.x * rates.x,
            );
        }
        let (rho, knot) = (self.by_end.tr_mul(rates), self.by_knot.tr_mul(rates));
        (rho, knot, -self.omega.dot(rates))
    }

    /// The transpose of [`Local::ends`], of so many rotations: by the rates, the knot, and `dh/h`.
    #[inline(always)]
    pub fn ends_transposed(&self, turns: usize, rho: &Vec3) -> (Vec3, Vec3, f64) {
        if turns == 1 {
            let rate = self.inverse.m11 * rho.x;
            return (
                Vec3::new(rate, 0.0, 0.0),
                Vec3::zeros(),
                self.omega.x * rate,
            );
        }
        let rates = self.inverse.tr_mul(rho);
        (rates, -self.by_knot.tr_mul(&rates), self.omega.dot(&rates))
    }
}

/// How the third component of a turn along `unit` changes over an interval, by the interval.
pub(super) fn third_drift(
    j: &Joint,
    node: &Node,
    relative: &Quat,
    omega: &Vec3,
    h: f64,
    unit: &Vec3,
) -> Vec3 {
    let (w, v) = (relative.w, relative.imag());
    let shrinks = -0.25 * h * omega.norm_squared() / (1.0 + increment_scalar(omega, h));
    let dw = shrinks * w - 0.5 * omega.dot(&v);
    let dv = v * shrinks + (omega * w + omega.cross(&v)) * 0.5;
    third_change(j, node, relative, unit, (dw, &dv), w + h * dw)
}

/// How the third component of a turn along `unit` changes when the joint turns by `eta`.
pub(super) fn third_by_turn(
    j: &Joint,
    node: &Node,
    relative: &Quat,
    unit: &Vec3,
    eta: &Vec3,
) -> Vec3 {
    let (w, v) = (relative.w, relative.imag());
    let by = (-0.5 * eta.dot(&v), &((eta * w + eta.cross(&v)) * 0.5));
    third_change(j, node, relative, unit, by, w)
}

/// Effort of the springs along each free direction of a joint, and its derivative by the coordinates at the knot.
pub(super) fn spring_efforts(
    j: &Joint,
    node: &Node,
    k: &AtKnot,
    (positions, winding): (&[f64], f64),
    mut each: impl FnMut(usize, f64),
) {
    let mut arm = j.parent_anchor;
    for (d, c) in j.directions[..node.slides].iter().zip(positions) {
        arm += d.unit * *c;
    }
    let relative = Relative { arm, r: k.relative };
    let (force, torque) = j.spring_force(&relative, winding);
    for (i, d) in j.directions.iter().enumerate() {
        let effort = if i < node.slides {
            d.unit.dot(&force)
        } else {
            (d.unit + third(j, node, &k.relative, &d.unit)).dot(&torque)
        };
        each(i, effort);
    }
}

/// Derivative of the efforts of springs on rotations by turns at the knot.
pub(super) fn spring_derivative(j: &Joint, node: &Node, k: &AtKnot) -> Mat3 {
    let mut out = Mat3::zeros();
    let turns = &j.directions[node.slides..];
    if node.turns == 1 {
        out.m11 = -turns[0].stiffness;
        return out;
    }
    let relative = Relative {
        arm: j.parent_anchor,
        r: k.relative,
    };
    let Some(by_turn) = j.spring_torque_derivative(&relative) else {
        return out;
    };
    let (_, torque) = j.spring_force(&relative, 0.0);
    let along = |unit: &Vec3| unit + third(j, node, &k.relative, unit);
    for (c, by) in turns.iter().enumerate() {
        let eta = along(&by.unit);
        let change = by_turn * eta;
        for (r, d) in turns.iter().enumerate() {
            out[(r, c)] = along(&d.unit).dot(&change)
                + third_by_turn(j, node, &k.relative, &d.unit, &eta).dot(&torque);
        }
    }
    out
}
