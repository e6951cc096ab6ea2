//! The curvature of the function: products with it, Newton's step, and what it makes of the states.

use super::{Augmented, Param};
use crate::dynamics::{Observe, unstopped};
use crate::optimize::lq::{Decisions, Regularization, ScaledParameters, dense};
use nalgebra::DVector;

/// Relative to the curvature of a control: what is added first to one that nothing costs, above rounding, and by how much
/// more it grows, which trades backward passes for accuracy. Conventional.
const FLOOR: f64 = 1e-12;
const FLOOR_GROWTH: f64 = 100.0;

impl<D: Observe> Augmented<'_, D> {
    /// Curvature of the free parameters' own at the present point, which squares of residuals lack: of the map that keeps them
    /// within their bounds, where it presses; of those that have no other, their slope.
    pub fn bend(&self) -> &[f64] {
        &self.by_bounds
    }

    /// What follows is with the curvature of each decision made larger by the factor `1 + damping`.
    pub fn damp(&mut self, damping: f64) {
        self.damping = damping;
    }

    /// `d' H d`.
    pub fn curvature_along(&mut self, d: &Param) -> f64 {
        let (m, controls) = (self.model.sizes.m, self.problem.guess.len());
        let (of_controls, of_parameters) = d.as_slice().split_at(controls);
        let slopes = of_parameters.iter().zip(&self.by_scale);
        let dp: Vec<f64> = slopes.map(|(d, slope)| d * slope).collect();
        let curved = of_parameters.iter().zip(&self.by_bounds);
        let mut sum: f64 = curved.map(|(d, c)| c * d * d).sum();
        let (model, scale) = (&self.model, &self.scale);
        let control = |k: usize, _: &[f64], u: &mut [f64]| {
            let own = of_controls[k * m..(k + 1) * m].iter();
            for ((u, d), s) in u.iter_mut().zip(own).zip(&scale[k * m..]) {
                *u = d * s.slope(0.0);
            }
        };
        model.linear_rollout(&dp, &mut self.scratch, control, |k, w| {
            sum += model.curvature(k, w);
        });
        sum
    }

    /// `H d`, undamped: the model's rollout, then its adjoint sweep of `H_k w_k`.
    pub fn product(&mut self, d: &Param) -> Param {
        let (m, width, controls) = (
            self.model.sizes.m,
            self.model.sizes.w(),
            self.problem.guess.len(),
        );
        let (of_controls, of_parameters) = d.as_slice().split_at(controls);
        let slopes = of_parameters.iter().zip(&self.by_scale);
        let dp: Vec<f64> = slopes.map(|(d, slope)| d * slope).collect();
        let (model, scale) = (&self.model, &self.scale);
        let mut l = vec![0.0; model.l.len()];
        let control = |k: usize, _: &[f64], u: &mut [f64]| {
            let own = of_controls[k * m..(k + 1) * m].iter();
            for ((u, d), s) in u.iter_mut().zip(own).zip(&scale[k * m..]) {
                *u = d * s.slope(0.0);
            }
        };
        model.linear_rollout(&dp, &mut self.scratch, control, |k, w| {
            let h = &model.h[k * width * width..(k + 1) * width * width];
            dense::gemv(width, h, w, &mut l[k * width..(k + 1) * width]);
        });
        let mut out = DVector::zeros(d.len());
        let (by_controls, by_parameters) = out.as_mut_slice().split_at_mut(controls);
        model.adjoint(&l, by_controls, by_parameters);
        for (g, s) in by_controls.iter_mut().zip(scale) {
            *g *= s.slope(0.0);
        }
        let own = self.by_scale.iter().zip(&self.by_bounds).zip(of_parameters);
        for (g, ((slope, curvature), d)) in by_parameters.iter_mut().zip(own) {
            *g = slope * *g + curvature * d;
        }
        out
    }

    /// `H^-1 g`, damped. Where that curvature is not positive definite, with as much more as makes it so.
    pub fn newton(&mut self, g: &Param) -> Param {
        let (s, m, width) = (
            self.model.sizes.s(),
            self.model.sizes.m,
            self.model.sizes.w(),
        );
        let controls = self.problem.guess.len();
        let (of_controls, of_parameters) = g.as_slice().split_at(controls);
        self.slopes.fill(0.0);
        for (i, (g, scale)) in of_controls.iter().zip(&self.scale).enumerate() {
            self.slopes[(i / m) * width + s + i % m] = -g / scale.slope(0.0);
        }
        let parameters: Vec<f64> = of_parameters.iter().map(|g| -g).collect();
        let decisions = Decisions::Scaled(ScaledParameters {
            slopes: &self.by_scale,
            curvature: &self.by_bounds,
            gradient: &parameters,
        });
        let mut by = Regularization {
            own: self.damping,
            ..Regularization::default()
        };
        self.policy.clear();
        // a pass is short, and what is made of a half one would not be the step
        while !unstopped(|| {
            self.riccati
                .run(&self.model, &self.slopes, &decisions, by, &mut self.policy)
        }) {
            by.decisions = (FLOOR_GROWTH * by.decisions).max(FLOOR);
            if !by.decisions.is_finite() {
                // not even numbers
                return g.clone();
            }
            self.policy.clear();
        }
        let mut out = DVector::zeros(g.len());
        let (model, policy, scale) = (&self.model, &self.policy, &self.scale);
        let own = out.as_mut_slice();
        own[controls..].copy_from_slice(&policy.scaled);
        let control = |k: usize, x: &[f64], u: &mut [f64]| {
            u.copy_from_slice(&policy.feedforward[k * m..(k + 1) * m]);
            dense::gemv(m, policy.feedback(k), x, u);
            for (i, u) in u.iter().enumerate() {
                own[k * m + i] = u / scale[k * m + i].slope(0.0);
            }
        };
        model.linear_rollout(&policy.dp, &mut self.scratch, control, |_, _| ());
        out
    }

    /// What a change of the decisions does to the states, to first order, n a step.
    pub fn response(&mut self, d: &Param) -> Vec<f64> {
        let (n, m, controls) = (
            self.model.sizes.n,
            self.model.sizes.m,
            self.problem.guess.len(),
        );
        let slopes = d.iter().skip(controls).zip(&self.by_scale);
        let dp: Vec<f64> = slopes.map(|(d, slope)| d * slope).collect();
        let mut out = Vec::with_capacity(self.current.path.knots.len() * n);
        let (model, scale) = (&self.model, &self.scale);
        let control = |k: usize, _: &[f64], u: &mut [f64]| {
            let own = d.as_slice()[k * m..(k + 1) * m].iter();
            for ((u, d), s) in u.iter_mut().zip(own).zip(&scale[k * m..]) {
                *u = d * s.slope(0.0);
            }
        };
        model.linear_rollout(&dp, &mut self.scratch, control, |_, w| {
            out.extend_from_slice(&w[..n]);
        });
        out
    }
}
