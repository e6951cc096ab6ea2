//! The pivots of joints in the elimination, a joint at a time.
//!
//! A stiff contact makes pivots of very different sizes. What is soft is then the difference of large numbers, of which an inverse
//! loses the digits squared: joints of several directions are eliminated by Gauss's method there, the largest pivot first.

use super::Node;
use super::work::{Articulated, Axis};
use crate::spatial::{Mat3, Vec3};
use nalgebra::SMatrix;

/// What a joint with `N` free directions makes of the wrench `(f, t)` of all beyond it: rates along them, and what is left of it.
#[inline(always)]
pub(super) fn give<const N: usize>(
    slides: usize,
    axes: &mut [Axis],
    rows: &[f64],
    inverse: &[f64],
    (f, t): (&mut Vec3, &mut Vec3),
) {
    let (Some(axes), Some(rows)) = (axes.first_chunk_mut::<N>(), rows.first_chunk::<N>()) else {
        return;
    };
    let residual: [f64; N] = std::array::from_fn(|r| {
        let on = if r < slides { &*f } else { &*t };
        axes[r].left.dot(on) + rows[r]
    });
    for (r, axis) in axes.iter_mut().enumerate() {
        let mut rate = 0.0;
        for (c, residual) in residual.iter().enumerate() {
            rate += inverse[c * N + r] * residual;
        }
        axis.rate = rate;
        *f -= axis.wrench.0 * rate;
        *t -= axis.wrench.1 * rate;
    }
}

/// The pivot of a joint, `n x n` by columns, what rates along its directions exert, and what turns and displacements answer, before
/// the pivot's inverse.
#[inline(always)]
pub(super) fn pivot(p: &Articulated, node: &Node, axes: &mut [Axis], pivot: &mut [f64]) {
    for (r, axis) in axes.iter_mut().enumerate() {
        let (wrench, answer) = if r < node.slides {
            ((p.ff * axis.right, p.tf * axis.right), (&p.ff, &p.ft))
        } else {
            ((p.ft * axis.right, p.tt * axis.right), (&p.tf, &p.tt))
        };
        axis.wrench = wrench;
        axis.answer = (answer.0.tr_mul(&axis.left), answer.1.tr_mul(&axis.left));
    }
    let n = axes.len();
    for c in 0..n {
        let (force, torque) = axes[c].wrench;
        for (r, axis) in axes.iter().enumerate() {
            let on = if r < node.slides { &force } else { &torque };
            pivot[c * n + r] = axis.left.dot(on);
        }
    }
}

/// Eliminates a hinge that nothing touches, to whose pivot dampers add `damped`, in one go.
#[inline(always)]
pub(super) fn eliminate_hinge(
    p: &mut Articulated,
    axis: &mut Axis,
    damped: f64,
    inverse: &mut f64,
) -> Result<(), ()> {
    axis.wrench = (p.ft * axis.right, p.tt * axis.right);
    *inverse = 1.0 / (axis.left.dot(&axis.wrench.1) + damped);
    if !inverse.is_finite() {
        return Err(());
    }
    let left = axis.left * *inverse;
    axis.answer = (p.tf.tr_mul(&left), p.tt.tr_mul(&left));
    p.take_off(axis);
    Ok(())
}

/// Of a ball that nothing dampens or touches: its elimination in one go. Its free directions are all turns there are, of orthonormal
/// axes on either side, so that which they are matters to its rates alone.
#[derive(Clone, Copy)]
pub(super) struct Ball {
    /// Is the joint eliminated so?
    pub is_free: bool,
    /// What turns exert: the force, and the inverse of the torque.
    pub ft: Mat3,
    pub inverse: Mat3,
    /// What turn a displacement makes, but for the sign.
    pub answer: Mat3,
    /// What the way inwards leaves for that outwards.
    held: Vec3,
}

impl Ball {
    pub const NONE: Self = Self {
        is_free: false,
        ft: Articulated::ZERO.ft,
        inverse: Articulated::ZERO.tt,
        answer: Articulated::ZERO.tf,
        held: Vec3::new(0.0, 0.0, 0.0),
    };

    /// What is left of `p` is a force by displacements, `p.ff`.
    #[inline(always)]
    pub fn eliminate(&mut self, p: &mut Articulated) -> Result<(), ()> {
        self.inverse = p.tt.try_inverse().ok_or(())?;
        self.ft = p.ft;
        self.answer = self.inverse * p.tf;
        p.ff -= p.ft * self.answer;
        Ok(())
    }

    /// Takes the rates that the residual makes off the wrench `(f, t)` of all beyond; `along` is the residual of the joint itself.
    #[inline(always)]
    pub fn inwards(&mut self, along: &Vec3, (f, t): (&mut Vec3, &mut Vec3)) {
        self.held = self.inverse * (*t + along);
        *f -= self.ft * self.held;
        *t = -along;
    }

    /// Minus the solution, the turn of what it holds where the joint is displaced by `x`.
    #[inline(always)]
    pub fn outwards(&self, x: &Vec3) -> Vec3 {
        -(self.held + self.answer * x)
    }

    #[inline(always)]
    pub fn inwards_transposed(&mut self, along: &Vec3, (f, t): (&mut Vec3, &mut Vec3)) {
        self.held = *t + along;
        *f -= self.answer.tr_mul(&self.held);
        *t = -along;
    }

    #[inline(always)]
    pub fn outwards_transposed(&self, x: &Vec3) -> Vec3 {
        -self.inverse.tr_mul(&(self.held + self.ft.tr_mul(x)))
    }
}

/// Applies the pivot's inverse to the answers.
#[inline(always)]
pub(super) fn scale_answers(axes: &mut [Axis], inverse: &[f64]) {
    if let ([axis], [inverse]) = (&mut *axes, inverse) {
        axis.answer = (axis.answer.0 * *inverse, axis.answer.1 * *inverse);
        return;
    }
    let n = axes.len();
    let mut answers = [(Vec3::zeros(), Vec3::zeros()); 6];
    for (r, out) in answers.iter_mut().enumerate().take(n) {
        for (c, axis) in axes.iter().enumerate() {
            out.0 += axis.answer.0 * inverse[c * n + r];
            out.1 += axis.answer.1 * inverse[c * n + r];
        }
    }
    for (axis, answer) in axes.iter_mut().zip(answers) {
        axis.answer = answer;
    }
}

/// Inverts a pivot in place, `n x n` by columns.
#[inline(always)]
pub(super) fn invert(pivot: &mut [f64], n: usize) -> Result<(), ()> {
    if n == 1 {
        pivot[0] = 1.0 / pivot[0];
        return if pivot[0].is_finite() {
            Ok(())
        } else {
            Err(())
        };
    }
    match n {
        2 => inverse::<2>(pivot),
        3 => inverse::<3>(pivot),
        4 => inverse::<4>(pivot),
        5 => inverse::<5>(pivot),
        _ => inverse::<6>(pivot),
    }
}

fn inverse<const N: usize>(pivot: &mut [f64]) -> Result<(), ()> {
    let m = SMatrix::<f64, N, N>::from_column_slice(pivot);
    pivot.copy_from_slice(m.try_inverse().ok_or(())?.as_slice());
    Ok(())
}

/// Directions of a joint.
const MOST: usize = 6;

/// Eliminates a joint's directions, one behind the other: `lu` is its pivot, `n x n` by columns, and becomes its factors;
/// wrenches and answers become those of what is left at each, by its pivot, and `p` what is left in the end.
#[inline(always)]
pub(super) fn eliminate(
    p: &mut Articulated,
    axes: &mut [Axis],
    lu: &mut [f64],
    order: &mut [u8],
) -> Result<(), ()> {
    let n = axes.len();
    let mut left = [true; MOST];
    for place in order.iter_mut() {
        let each = (0..n).filter(|r| left[*r]);
        let r = each.max_by(|a, b| lu[a * n + a].abs().total_cmp(&lu[b * n + b].abs()));
        let r = r.ok_or(())?;
        (*place, left[r]) = (r as u8, false);
        let by = 1.0 / lu[r * n + r];
        if !by.is_finite() {
            return Err(());
        }
        let (wrench, answer) = (axes[r].wrench, axes[r].answer);
        let scaled = (answer.0 * by, answer.1 * by);
        for c in (0..n).filter(|c| left[*c]) {
            let (down, across) = (lu[r * n + c] * by, lu[c * n + r] * by);
            for k in (0..n).filter(|k| left[*k]) {
                lu[k * n + c] -= down * lu[k * n + r];
            }
            axes[c].answer.0 -= answer.0 * down;
            axes[c].answer.1 -= answer.1 * down;
            axes[c].wrench.0 -= wrench.0 * across;
            axes[c].wrench.1 -= wrench.1 * across;
        }
        for c in (0..n).filter(|c| left[*c]) {
            lu[r * n + c] *= by;
            lu[c * n + r] *= by;
        }
        lu[r * n + r] = by;
        p.ff -= wrench.0 * scaled.0.transpose();
        p.ft -= wrench.0 * scaled.1.transpose();
        p.tf -= wrench.1 * scaled.0.transpose();
        p.tt -= wrench.1 * scaled.1.transpose();
        axes[r].answer = scaled;
        axes[r].wrench = (wrench.0 * by, wrench.1 * by);
    }
    Ok(())
}

/// Factors of [`eliminate`], or their transposes.
pub(super) struct Eliminated<'a> {
    pub lu: &'a [f64],
    pub order: &'a [u8],
    pub transposed: bool,
}

impl Eliminated<'_> {
    /// What of direction `r` goes to `c`, the one of both eliminated later, inwards; `outwards` the other way.
    fn between(&self, r: usize, c: usize, outwards: bool) -> f64 {
        let n = self.order.len();
        if self.transposed == outwards {
            self.lu[r * n + c]
        } else {
            self.lu[c * n + r]
        }
    }

    /// From what is on the directions: what is left on each, and of wrenches `(f, t)` beyond.
    pub fn inwards(&self, axes: &mut [Axis], on: &mut [f64], (f, t): (&mut Vec3, &mut Vec3)) {
        for (k, r) in self.order.iter().map(|r| usize::from(*r)).enumerate() {
            for c in self.order[k + 1..].iter().map(|c| usize::from(*c)) {
                on[c] -= self.between(r, c, false) * on[r];
            }
            let axis = &mut axes[r];
            let by = if self.transposed {
                &axis.answer
            } else {
                &axis.wrench
            };
            *f -= by.0 * on[r];
            *t -= by.1 * on[r];
            axis.rate = on[r] * self.lu[r * self.order.len() + r];
        }
    }

    /// Minus the solution along each direction, nearer to the world being moved by `(x, phi)`.
    pub fn outwards(&self, axes: &[Axis], (x, phi): (&Vec3, &Vec3), out: &mut [f64]) {
        for (k, r) in (self.order.iter().map(|r| usize::from(*r)).enumerate()).rev() {
            let axis = &axes[r];
            let by = if self.transposed {
                &axis.wrench
            } else {
                &axis.answer
            };
            let mut rate = -axis.rate - by.0.dot(x) - by.1.dot(phi);
            for c in self.order[k + 1..].iter().map(|c| usize::from(*c)) {
                rate -= self.between(r, c, true) * out[c];
            }
            out[r] = rate;
        }
    }
}
