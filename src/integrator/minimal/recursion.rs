//! Newton's step by the articulated-body recursion.
//!
//! About the joint of a body, `P` is the wrench there by the displacement of the body at the joint: its own and, through their
//! joints, that of all bodies further out. With the joint's free directions `S` at the knot and `S+` at the trial,
//!
//! ```text
//! P <- D + sum over the bodies it holds of X' (P - P S+ (S' P S+ + K)^-1 S' P) X+,
//! ```
//!
//! where `X` shifts from a joint to the next one nearer to the world, `D` is the derivative of the body's momentum, and `K` what
//! dampers add. The residuals go inwards by the same pivots, the rates outwards.

use super::derivative::Linear;
use super::kinematics::{third, turn};
use super::work::{Articulated, AtKnot, Moved, Work};
use super::{Minimal, Node};
use crate::mechanism::Mechanism;
use crate::spatial::{
    Mat3, Quat, Vec3, left_log_jacobian, log, momentum, momentum_jacobian, skew_times, times_skew,
};
use nalgebra::SMatrix;

impl Articulated {
    /// Of a body about its centre, by its displacement over the interval times `1/h`.
    #[inline(always)]
    fn of_body(k: &AtKnot, to: &Moved, h: f64) -> Self {
        let by = momentum_jacobian(&to.omega, &k.inertia, h, to.scalar);
        Self {
            ff: Mat3::from_diagonal_element(k.mass),
            ft: Mat3::zeros(),
            tf: Mat3::zeros(),
            // d omega = (e0 - h/2 [omega]) dphi/h
            tt: by * to.scalar - times_skew(&by, &to.omega) * (0.5 * h),
        }
    }

    /// About a point from which `arms` lead to the one it is about: at the knot for wrenches, at the trial for displacements.
    #[inline(always)]
    fn shift(&mut self, [left, right]: [&Vec3; 2]) {
        self.ft -= times_skew(&self.ff, right);
        self.tt -= times_skew(&self.tf, right);
        self.tf += skew_times(left, &self.ff);
        self.tt += skew_times(left, &self.ft);
    }

    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.ff += other.ff;
        self.ft += other.ft;
        self.tf += other.tf;
        self.tt += other.tt;
    }
}

impl Minimal {
    /// The free directions of the joints at the knot.
    pub(super) fn left_axes(&self, w: &mut Work) {
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            let j = &w.model.joints[node.joint];
            for (i, (d, axis)) in
                (j.directions.iter().zip(&mut w.axes[node.directions()])).enumerate()
            {
                let unit = if i < node.slides {
                    d.unit
                } else {
                    d.unit + third(j, node, &k.relative, &d.unit)
                };
                axis.left = k.joint * unit;
            }
        }
    }

    /// Momenta of the bodies over the interval of the trial less what is known, as wrenches.
    fn bodies(&self, w: &mut Work, h: f64) {
        for ((k, to), out) in w.knot.iter().zip(&w.trial).zip(&mut w.wrenches) {
            let p = momentum(&to.omega, &k.inertia, h, to.scalar);
            *out = (to.velocity * k.mass - k.base.0, p - k.base.1);
        }
    }

    /// Eliminates the joints from the outermost inwards, at the trial.
    pub(super) fn factor(&self, w: &mut Work, h: f64) -> Result<(), usize> {
        let mut inverses = std::mem::take(&mut w.inverses);
        let done = self.eliminate(w, h, &mut inverses);
        w.inverses = inverses;
        done
    }

    fn eliminate(&self, w: &mut Work, h: f64, mut rest: &mut [f64]) -> Result<(), usize> {
        for ((k, to), out) in w.knot.iter().zip(&w.trial).zip(&mut w.articulated) {
            *out = Articulated::of_body(k, to, h);
        }
        // of the outermost first, behind each other
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (k, to) = (&w.knot[i], &w.trial[i]);
            let mut p = w.articulated[i];
            p.shift([&k.arms[1], &to.arms[1]]);
            let n = node.count();
            let (inverse, left) = std::mem::take(&mut rest).split_at_mut(n * n);
            rest = left;
            if n > 0 {
                let near = node.near.map_or(Moved::WORLD, |n| w.trial[n]);
                let j = &w.model.joints[node.joint];
                let own = &w.rates[node.directions()];
                let spin = turn(j, node, &k.relative, own);
                let by = if node.reversed { to } else { &near };
                let relative = Self::turned(&k.relative, &spin, h);
                let axes = &mut w.axes[node.directions()];
                for (i, (d, axis)) in j.directions.iter().zip(axes.iter_mut()).enumerate() {
                    let unit = if i < node.slides {
                        d.unit
                    } else {
                        d.unit + third(j, node, &relative, &d.unit)
                    };
                    let unit = k.joint * unit;
                    axis.right = unit + by.turned(&unit, h) * h;
                    let (a, b) = if i < node.slides {
                        ((p.ff * axis.right, p.tf * axis.right), (&p.ff, &p.ft))
                    } else {
                        ((p.ft * axis.right, p.tt * axis.right), (&p.tf, &p.tt))
                    };
                    axis.wrench = a;
                    axis.answer = (b.0.tr_mul(&axis.left), b.1.tr_mul(&axis.left));
                }
                for c in 0..n {
                    let on = axes[c].wrench;
                    for (r, axis) in axes.iter().enumerate() {
                        let on = if r < node.slides { on.0 } else { on.1 };
                        inverse[c * n + r] = axis.left.dot(&on);
                    }
                }
                if j.has_dampers() {
                    self.add_dampers(w, i, &spin, h, inverse);
                }
                invert(inverse, n).map_err(|()| node.body)?;
                let axes = &mut w.axes[node.directions()];
                // answers by the inverse
                if n == 1 {
                    let a = &mut axes[0];
                    a.answer = (a.answer.0 * inverse[0], a.answer.1 * inverse[0]);
                } else {
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
                if node.near.is_some() {
                    for a in axes.iter() {
                        p.ff -= a.wrench.0 * a.answer.0.transpose();
                        p.ft -= a.wrench.0 * a.answer.1.transpose();
                        p.tf -= a.wrench.1 * a.answer.0.transpose();
                        p.tt -= a.wrench.1 * a.answer.1.transpose();
                    }
                }
            }
            if let Some(near) = node.near {
                p.shift([&k.arms[0], &to.arms[0]]);
                w.articulated[near].add(&p);
            }
        }
        Ok(())
    }

    /// What dampers along a joint's directions add to its pivot: the derivative of their impulses by rates.
    fn add_dampers(&self, w: &Work, i: usize, spin: &Vec3, h: f64, pivot: &mut [f64]) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let (j, n) = (&w.model.joints[node.joint], node.count());
        let by = if node.turns > 1 {
            let inc = Self::turned(&Quat::identity(), spin, h);
            left_log_jacobian(&log(&inc))
        } else {
            Mat3::identity()
        };
        let relative = Self::turned(&k.relative, spin, h);
        for (r, d) in j.directions.iter().enumerate() {
            let scale = d.damping * node.shares.1 * h;
            if r < node.slides {
                pivot[r * n + r] += scale;
                continue;
            }
            for (c, other) in j.directions.iter().enumerate().skip(node.slides) {
                let turn = other.unit + third(j, node, &relative, &other.unit);
                pivot[c * n + r] += scale * d.unit.dot(&(by * turn));
            }
        }
    }

    /// Newton's step of the joints' rates, with the factors at hand, into `w.change`: minus the inverse applied to the residual.
    pub(super) fn solve(&self, w: &mut Work, h: f64) {
        self.bodies(w, h);
        let mut rows = std::mem::take(&mut w.rows);
        for (row, base) in rows.iter_mut().zip(&w.base) {
            *row = -base;
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if w.model.joints[node.joint].has_dampers() {
                self.damp(w, i, h, node.shares.1, &mut rows[node.directions()]);
            }
        }
        self.substitute(w, &rows);
        w.rows = rows;
    }

    /// The residual along free directions; `w.wrenches` are then what the joints exert on what they hold, about themselves.
    pub(super) fn residual_rows(&self, w: &mut Work, h: f64, rows: &mut [f64]) {
        self.bodies(w, h);
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let (f, mut t) = w.wrenches[i];
            t += k.arms[1].cross(&f);
            w.wrenches[i].1 = t;
            for (r, index) in node.directions().enumerate() {
                let on = if r < node.slides { &f } else { &t };
                rows[index] = w.axes[index].left.dot(on) - w.base[index];
            }
            if w.model.joints[node.joint].has_dampers() {
                self.damp(w, i, h, node.shares.1, &mut rows[node.directions()]);
            }
            if let Some(near) = node.near {
                let to = &mut w.wrenches[near];
                to.0 += f;
                to.1 += t + k.arms[0].cross(&f);
            }
        }
    }

    /// Minus the inverse applied to a residual, into `w.change`: of bodies in `w.wrenches`, and along free directions.
    fn substitute(&self, w: &mut Work, rows: &[f64]) {
        let mut place = 0;
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let (mut f, mut t) = w.wrenches[i];
            t += k.arms[1].cross(&f);
            let n = node.count();
            let mut residual = [0.0; 6];
            for (r, index) in node.directions().enumerate() {
                let on = if r < node.slides { &f } else { &t };
                residual[r] = w.axes[index].left.dot(on) + rows[index];
            }
            let inverse = &w.inverses[place..place + n * n];
            place += n * n;
            for (r, axis) in w.axes[node.directions()].iter_mut().enumerate() {
                axis.rate = (0..n).map(|c| inverse[c * n + r] * residual[c]).sum();
                f -= axis.wrench.0 * axis.rate;
                t -= axis.wrench.1 * axis.rate;
            }
            if let Some(near) = node.near {
                let to = &mut w.wrenches[near];
                to.0 += f;
                to.1 += t + k.arms[0].cross(&f);
            }
        }
        // displacements by the interval, of the bodies' centres, in the place of the wrenches
        for (i, node) in self.nodes.iter().enumerate() {
            let to = &w.trial[i];
            let (mut moved, mut turned) =
                node.near.map_or_else(Default::default, |n| w.wrenches[n]);
            moved += turned.cross(&to.arms[0]);
            let (at, spun) = (moved, turned);
            for (r, index) in node.directions().enumerate() {
                let axis = &w.axes[index];
                let rate = -axis.rate - axis.answer.0.dot(&at) - axis.answer.1.dot(&spun);
                w.change[index] = rate;
                if r < node.slides {
                    moved += axis.right * rate;
                } else {
                    turned += axis.right * rate;
                }
            }
            w.wrenches[i] = (moved + turned.cross(&to.arms[1]), turned);
        }
    }

    /// The same of a change of the residual along free directions, `linear.rows`, into `linear.rho[1]`.
    pub(super) fn solve_rows(&self, w: &mut Work, l: &mut Linear) {
        w.wrenches.fill(Default::default());
        self.substitute(w, &l.rows);
        l.rho[1].copy_from_slice(&w.change);
    }

    /// Minus the transposed inverse applied to adjoints of rates of displacement, of bodies in `w.wrenches` and along free
    /// directions in `linear.rho[1]`, into `linear.lambda`: the same recursion with both sides swapped.
    pub(super) fn solve_transposed(&self, w: &mut Work, l: &mut Linear) {
        let mut place = 0;
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let to = &w.trial[i];
            let (mut f, mut t) = w.wrenches[i];
            t += to.arms[1].cross(&f);
            let (at, about) = (f, t);
            for (r, index) in node.directions().enumerate() {
                let axis = &mut w.axes[index];
                let on = if r < node.slides { &at } else { &about };
                axis.rate = l.rho[1][index] + axis.right.dot(on);
                f -= axis.answer.0 * axis.rate;
                t -= axis.answer.1 * axis.rate;
            }
            place += node.count().pow(2);
            if let Some(near) = node.near {
                let wrench = &mut w.wrenches[near];
                wrench.0 += f;
                wrench.1 += t + to.arms[0].cross(&f);
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let k = &w.knot[i];
            let (mut moved, mut turned) =
                node.near.map_or_else(Default::default, |n| w.wrenches[n]);
            moved += turned.cross(&k.arms[0]);
            let n = node.count();
            place -= n * n;
            let inverse = &w.inverses[place..place + n * n];
            let mut left = [0.0; 6];
            for (left, axis) in left.iter_mut().zip(&w.axes[node.directions()]) {
                *left = -axis.rate - axis.wrench.0.dot(&moved) - axis.wrench.1.dot(&turned);
            }
            for (r, index) in node.directions().enumerate() {
                let by: f64 = (0..n).map(|c| inverse[r * n + c] * left[c]).sum();
                l.lambda[index] = by;
                if r < node.slides {
                    moved += w.axes[index].left * by;
                } else {
                    turned += w.axes[index].left * by;
                }
            }
            w.wrenches[i] = (moved + turned.cross(&k.arms[1]), turned);
        }
    }

    /// Adds to the residual of a joint what its dampers take over an interval, `share` of it at the knot.
    pub(super) fn damp(&self, w: &Work, i: usize, h: f64, share: f64, residual: &mut [f64]) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        self.damped(w, node, k, &w.rates, h, |r, damping, along| {
            residual[r] += damping * share * along;
        });
    }

    /// The displacement along each damped direction of a joint over an interval of these rates.
    pub(super) fn damped(
        &self,
        w: &Work,
        node: &Node,
        k: &AtKnot,
        rates: &[f64],
        h: f64,
        mut each: impl FnMut(usize, f64, f64),
    ) {
        let along = self.displacements(&w.model, node, k, rates, h);
        let directions = w.model.joints[node.joint].directions.iter();
        for (r, (d, along)) in directions.zip(along).enumerate() {
            if d.damping != 0.0 {
                each(r, d.damping, along);
            }
        }
    }

    /// The displacement along each free direction of a joint over an interval of these rates.
    pub(super) fn displacements(
        &self,
        m: &Mechanism,
        node: &Node,
        k: &AtKnot,
        rates: &[f64],
        h: f64,
    ) -> [f64; 6] {
        let j = &m.joints[node.joint];
        let own = &rates[node.directions()];
        let turned = if node.turns > 0 {
            let spin = turn(j, node, &k.relative, own);
            log(&Self::turned(&Quat::identity(), &spin, h))
        } else {
            Vec3::zeros()
        };
        let mut out = [0.0; 6];
        for (r, d) in j.directions.iter().enumerate() {
            out[r] = if r < node.slides {
                h * own[r]
            } else {
                d.unit.dot(&turned)
            };
        }
        out
    }
}

/// Inverts a pivot in place, `n x n` by columns.
#[inline(always)]
fn invert(pivot: &mut [f64], n: usize) -> Result<(), ()> {
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
