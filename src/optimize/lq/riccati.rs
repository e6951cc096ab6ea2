//! The backward pass: Riccati's recursion with bounded controls, and the parameters at its end.
//!
//! The value of a knot is quadratic in `s = (dx, dp)`; the parameters' change is carried along the path and solved for
//! at the start.

use super::box_qp::BoxQp;
use super::dense::{dot, gemm, gemv, gemv_transposed, symmetrize, transpose};
use super::model::{Model, Sizes};
use crate::control::Problem;
use crate::dynamics::stop_requested;
use crate::rollout::Trajectory;
use serde::{Deserialize, Serialize};

/// What the backward pass finds: `du = feedforward + feedback (dx, dp)`, and `dp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// m a step.
    pub feedforward: Vec<f64>,
    /// m x s a step.
    feedback: Vec<f64>,
    /// Change of the free parameters.
    pub dp: Vec<f64>,
    /// The same of what stands for them, where something does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaled: Vec<f64>,
    block: usize,
}

impl Policy {
    pub fn new(sizes: &Sizes) -> Self {
        let block = sizes.m * sizes.s();
        Self {
            feedforward: vec![0.0; sizes.steps * sizes.m],
            feedback: vec![0.0; sizes.steps * block],
            dp: vec![0.0; sizes.q],
            scaled: vec![0.0; sizes.q],
            block,
        }
    }

    /// Zeros, from which what a pass finds is the same bits whatever was found before.
    pub fn clear(&mut self) {
        self.feedforward.fill(0.0);
        self.dp.fill(0.0);
    }

    /// Changes nothing, and has no feedback.
    pub fn forget(&mut self) {
        self.clear();
        self.feedback.fill(0.0);
    }

    /// Becomes that of the knots so many steps later; behind its end there is no feedback.
    pub fn shift(&mut self, steps: usize, sizes: &Sizes) {
        let (m, left) = (sizes.m, sizes.steps - steps);
        self.feedforward.copy_within(steps * m.., 0);
        self.feedforward[left * m..].fill(0.0);
        self.feedback.copy_within(steps * self.block.., 0);
        self.feedback[left * self.block..].fill(0.0);
    }

    pub fn feedback(&self, k: usize) -> &[f64] {
        &self.feedback[k * self.block..(k + 1) * self.block]
    }

    /// All that it consists of.
    pub fn numbers(&self) -> impl Iterator<Item = &f64> {
        self.feedforward
            .iter()
            .chain(&self.feedback)
            .chain(&self.dp)
    }

    /// Are both of the same sizes?
    pub fn is_like(&self, other: &Self) -> bool {
        let sizes = |p: &Self| (p.feedforward.len(), p.feedback.len(), p.dp.len(), p.block);
        sizes(self) == sizes(other)
    }
}

/// What the pass chooses.
pub enum Decisions<'a> {
    /// Controls and parameters within the problem's bounds, from those of a trajectory.
    Within(&'a Problem, &'a Trajectory),
    /// Controls and parameters without bounds, parameters by what stands for them.
    Scaled(ScaledParameters<'a>),
}

/// Free parameters as functions of other numbers.
pub struct ScaledParameters<'a> {
    /// Derivative of each parameter by its number.
    pub slopes: &'a [f64],
    /// Curvature by each number itself.
    pub curvature: &'a [f64],
    /// Slope by each number itself, beside that through the parameter.
    pub gradient: &'a [f64],
}

/// What is added to the curvature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regularization {
    /// By states, relative to the mean over the steps.
    pub states: f64,
    /// By controls and parameters, relative to the mean over the steps.
    pub decisions: f64,
    /// By controls and parameters, relative to their own.
    pub own: f64,
}

/// Memory of the pass.
#[derive(Debug)]
pub struct Riccati {
    /// Value: s x s, s.
    vv: Vec<f64>,
    v: Vec<f64>,
    /// w x w, w.
    qq: Vec<f64>,
    q: Vec<f64>,
    /// n x w and its transpose.
    vf: Vec<f64>,
    transposed: Vec<f64>,
    /// m x m, m x s: the controls' block, regularized, and the one that couples them with the rest.
    quu: Vec<f64>,
    qus: Vec<f64>,
    column: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    qp: BoxQp,
    parameter_qp: BoxQp,
    hpp: Vec<f64>,
    gp: Vec<f64>,
    product: Vec<f64>,
    vx_gap: Vec<f64>,
    end: Vec<f64>,
    /// Curvature by each control of each step, of the last pass.
    pub diagonal: Vec<f64>,
    /// Mean curvature by each coordinate, parameter and control, of the last pass without regularization.
    pub scale: Vec<f64>,
    mean: Vec<f64>,
    /// Curvature by each parameter, controls free, of the last pass without regularization.
    pub of_parameters: Vec<f64>,
}

impl Riccati {
    pub fn new(sizes: &Sizes) -> Self {
        let Sizes { n, q, m, .. } = *sizes;
        let (s, w) = (sizes.s(), sizes.w());
        let zeros = |n: usize| vec![0.0; n];
        Self {
            vv: zeros(s * s),
            v: zeros(s),
            qq: zeros(w * w),
            q: zeros(w),
            vf: zeros(n * w),
            transposed: zeros(n * w.max(s)),
            quu: zeros(m * m),
            qus: zeros(m * s),
            column: zeros(m.max(q)),
            lower: zeros(m.max(q)),
            upper: zeros(m.max(q)),
            qp: BoxQp::new(m),
            parameter_qp: BoxQp::new(q),
            hpp: zeros(q * q),
            gp: zeros(q),
            product: zeros(m * s),
            vx_gap: zeros(s),
            end: zeros(w * w),
            diagonal: zeros(sizes.steps * m),
            scale: vec![1.0; w],
            mean: zeros(w),
            of_parameters: zeros(q),
        }
    }

    /// Makes the policy for the slopes `l`, w a knot. False where the regularized curvature is not positive definite, and
    /// where a stop is requested.
    pub fn run(
        &mut self,
        model: &Model,
        l: &[f64],
        decisions: &Decisions,
        by: Regularization,
        policy: &mut Policy,
    ) -> bool {
        let Sizes { steps, n, m, .. } = model.sizes;
        let (s, w) = (model.sizes.s(), model.sizes.w());
        // value at the end: the part by (x, p) of its model; the control's part joins the last step
        self.end.copy_from_slice(&model.h[steps * w * w..]);
        if model.secant.used {
            add(model.secant.block(steps), &mut self.end);
        }
        let end = &self.end;
        for j in 0..s {
            self.vv[j * s..(j + 1) * s].copy_from_slice(&end[j * w..j * w + s]);
        }
        self.v.copy_from_slice(&l[steps * w..steps * w + s]);
        self.mean.fill(0.0);
        for k in (0..steps).rev() {
            if stop_requested() {
                return false;
            }
            self.expand(model, l, k);
            if k + 1 == steps && m > 0 {
                self.add_terminal_control(model, l);
            }
            symmetrize(w, &mut self.qq);
            for i in (0..n).chain(s..w) {
                let own = if i < n {
                    self.vv[i * s + i]
                } else {
                    self.qq[i * w + i]
                };
                self.mean[i] += own.abs() / steps as f64;
                let weight = if i < n { by.states } else { by.decisions };
                self.qq[i * w + i] += weight * self.scale[i];
            }
            for i in 0..m {
                let own = &mut self.qq[(s + i) * w + s + i];
                self.diagonal[k * m + i] = *own;
                *own += by.own * own.abs();
            }
            if !self.minimize(model, decisions, k, policy) {
                return false;
            }
        }
        if by == Regularization::default() {
            for (scale, mean) in self.scale.iter_mut().zip(&self.mean) {
                if *mean > 0.0 && mean.is_finite() {
                    *scale = *mean;
                }
            }
        }
        self.parameters(model, decisions, by, policy)
    }

    /// Q of step `k`: its own model, and the value of the next knot through the step.
    fn expand(&mut self, model: &Model, l: &[f64], k: usize) {
        let Sizes { n, q, .. } = model.sizes;
        let (s, w) = (model.sizes.s(), model.sizes.w());
        let f = &model.f[k * n * w..(k + 1) * n * w];
        self.qq
            .copy_from_slice(&model.h[k * w * w..(k + 1) * w * w]);
        if model.secant.used {
            add(model.secant.block(k), &mut self.qq);
        }
        self.q.copy_from_slice(&l[k * w..(k + 1) * w]);
        // v at the end of the gap
        self.vx_gap.copy_from_slice(&self.v);
        gemv(
            s,
            &self.vv,
            &model.gap[k * n..(k + 1) * n],
            &mut self.vx_gap,
        );
        let (vx, vp) = self.vx_gap.split_at(n);
        gemv_transposed(n, f, vx, &mut self.q);
        for (q, v) in self.q[n..].iter_mut().zip(vp) {
            *q += v;
        }
        // vf = V_x,: (F; 0 I 0)
        self.vf.fill(0.0);
        for j in 0..q {
            self.vf[(n + j) * n..(n + j + 1) * n]
                .copy_from_slice(&self.vv[(n + j) * s..(n + j) * s + n]);
        }
        if q == 0 {
            gemm((n, n, w), &self.vv, f, &mut self.vf);
        } else {
            // V_xx is not contiguous
            for j in 0..n {
                self.transposed[j * n..(j + 1) * n].copy_from_slice(&self.vv[j * s..j * s + n]);
            }
            gemm((n, n, w), &self.transposed[..n * n], f, &mut self.vf);
        }
        transpose(n, w, f, &mut self.transposed);
        gemm((w, n, w), &self.transposed, &self.vf, &mut self.qq);
        // rows of the parameters: V_p,: (F; 0 I 0)
        for i in 0..q {
            let vpx = &self.vv[(n + i) * s..(n + i) * s + n];
            for (j, column) in f.chunks_exact(n.max(1)).enumerate() {
                self.qq[n + i + j * w] += dot(vpx, column);
            }
            for j in 0..q {
                self.qq[n + i + (n + j) * w] += self.vv[n + i + (n + j) * s];
            }
        }
    }

    /// The end's dependence on the last control: `(F; 0 I 0; 0 0 I)' H (..)` less what the value already holds.
    fn add_terminal_control(&mut self, model: &Model, l: &[f64]) {
        let Sizes { steps, n, m, .. } = model.sizes;
        let (s, w) = (model.sizes.s(), model.sizes.w());
        let (l, h) = (&l[steps * w..], &self.end);
        let k = steps - 1;
        let f = &model.f[k * n * w..(k + 1) * n * w];
        let gap = &model.gap[k * n..(k + 1) * n];
        for i in 0..m {
            let column = &h[(s + i) * w..(s + i + 1) * w];
            self.q[s + i] += l[s + i] + dot(&column[..n], gap);
            for (j, fj) in f.chunks_exact(n.max(1)).enumerate() {
                let through = dot(&column[..n], fj) + if j >= n && j < s { column[j] } else { 0.0 };
                self.qq[(s + i) * w + j] += through;
                self.qq[j * w + s + i] += through;
            }
            for j in 0..m {
                self.qq[(s + i) * w + s + j] += column[s + j];
            }
        }
    }

    /// Controls of step `k`, and its value.
    fn minimize(
        &mut self,
        model: &Model,
        decisions: &Decisions,
        k: usize,
        policy: &mut Policy,
    ) -> bool {
        let Sizes { m, .. } = model.sizes;
        let (s, w) = (model.sizes.s(), model.sizes.w());
        for j in 0..s {
            self.qus[j * m..(j + 1) * m].copy_from_slice(&self.qq[j * w + s..(j + 1) * w]);
        }
        for j in 0..m {
            self.quu[j * m..(j + 1) * m]
                .copy_from_slice(&self.qq[(s + j) * w + s..(s + j + 1) * w]);
        }
        self.clear_bounds();
        if let Decisions::Within(problem, t) = decisions {
            let u = &t.u[k * m..(k + 1) * m];
            for (i, (u, (l, h))) in u.iter().zip(&problem.bounds).enumerate() {
                (self.lower[i], self.upper[i]) = (l - u, h - u);
            }
        }
        let feedforward = &mut policy.feedforward[k * m..(k + 1) * m];
        let bounds = (&self.lower[..m], &self.upper[..m]);
        if !self.qp.solve(&self.quu, &self.q[s..], bounds, feedforward) {
            return false;
        }
        let block = m * s;
        let feedback = &mut policy.feedback[k * block..(k + 1) * block];
        for (to, from) in feedback
            .chunks_exact_mut(m.max(1))
            .zip(self.qus.chunks_exact(m.max(1)))
        {
            for (c, f) in self.column.iter_mut().zip(from) {
                *c = -f;
            }
            self.qp.solve_free(&mut self.column[..m]);
            to.copy_from_slice(&self.column[..m]);
        }
        // V = Qss + K'Quu K + K'Qus + Qsu K, v = qs + K'(Quu k + qu) + Qsu k
        self.v.copy_from_slice(&self.q[..s]);
        self.column[..m].copy_from_slice(&self.q[s..]);
        gemv(m, &self.quu, feedforward, &mut self.column);
        gemv_transposed(m, feedback, &self.column[..m], &mut self.v);
        gemv_transposed(m, &self.qus, feedforward, &mut self.v);
        // product = Quu K + Qus
        self.product.copy_from_slice(&self.qus);
        gemm((m, m, s), &self.quu, feedback, &mut self.product);
        for j in 0..s {
            let column = &mut self.vv[j * s..(j + 1) * s];
            column.copy_from_slice(&self.qq[j * w..j * w + s]);
            gemv_transposed(m, feedback, &self.product[j * m..(j + 1) * m], column);
            // Qsu K
            gemv_transposed(m, &self.qus, &feedback[j * m..(j + 1) * m], column);
        }
        symmetrize(s, &mut self.vv);
        true
    }

    /// The parameters, from the value at the start with `dx = S dp`.
    fn parameters(
        &mut self,
        model: &Model,
        decisions: &Decisions,
        by: Regularization,
        policy: &mut Policy,
    ) -> bool {
        let Sizes { n, q, .. } = model.sizes;
        let s = model.sizes.s();
        if q == 0 {
            return true;
        }
        // columns of E = (S; I)
        let lifted = |i: usize, j: usize| match i < n {
            true => model.start[j * n + i],
            false => f64::from(u8::from(i == n + j)),
        };
        for j in 0..q {
            self.gp[j] = (0..s).map(|i| self.v[i] * lifted(i, j)).sum();
            for i in 0..q {
                let mut sum = 0.0;
                for a in 0..s {
                    let through: f64 = (0..s).map(|b| self.vv[a + b * s] * lifted(b, j)).sum();
                    sum += lifted(a, i) * through;
                }
                self.hpp[i + j * q] = sum;
            }
            if let Decisions::Scaled(d) = decisions {
                for i in 0..q {
                    self.hpp[i + j * q] *= d.slopes[i] * d.slopes[j];
                }
                self.hpp[j + j * q] += d.curvature[j];
                self.gp[j] = self.gp[j] * d.slopes[j] + d.gradient[j];
            }
            let own = self.hpp[j + j * q].abs();
            self.of_parameters[j] = self.hpp[j + j * q];
            self.scale[n + j] = if own > 0.0 { own } else { 1.0 };
            self.hpp[j + j * q] += by.decisions * self.scale[n + j] + by.own * own;
        }
        symmetrize(q, &mut self.hpp);
        self.clear_bounds();
        if let Decisions::Within(problem, t) = decisions {
            for (i, &p) in model.free.iter().enumerate() {
                let (l, h) = problem.parameter_bounds[p];
                (self.lower[i], self.upper[i]) = (l - t.p[p], h - t.p[p]);
            }
        }
        let bounds = (&self.lower[..q], &self.upper[..q]);
        if !self
            .parameter_qp
            .solve(&self.hpp, &self.gp, bounds, &mut policy.dp)
        {
            return false;
        }
        if let Decisions::Scaled(d) = decisions {
            policy.scaled.copy_from_slice(&policy.dp);
            let both = policy.dp.iter_mut().zip(d.slopes);
            both.for_each(|(p, slope)| *p *= slope);
        }
        true
    }

    /// No bounds.
    fn clear_bounds(&mut self) {
        self.lower.fill(f64::NEG_INFINITY);
        self.upper.fill(f64::INFINITY);
    }
}

fn add(from: &[f64], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}
