//! `min 1/2 x'Hx + g'x` within bounds, by projected Newton steps (Tassa, Mansard, Todorov, *Control-Limited
//! Differential Dynamic Programming*, ICRA 2014).

use super::dense::{cholesky, cholesky_solve, dot, quadratic_form};

/// Part of the slope's prediction that a projected step must keep, and by what it is shortened until it does (as Tassa et al.).
const SUFFICIENT_DECREASE: f64 = 0.1;
const CONTRACTION: f64 = 0.6;
/// Shortened so often a step is 1e-9 of what it was.
const SHORTENINGS: usize = 40;
/// Changes of the clamped variables, and how many more for each of them: a few settle it, and none may cycle for ever by
/// rounding.
const ROUNDS: usize = 20;
const ROUNDS_EACH: usize = 10;

/// Memory of the solver.
#[derive(Clone, Debug)]
pub struct BoxQp {
    /// Indices of the variables not clamped by a bound at the solution.
    pub free: Vec<usize>,
    /// Cholesky's factor of their part of `H`.
    factor: Vec<f64>,
    clamped: Vec<usize>,
    gradient: Vec<f64>,
    step: Vec<f64>,
    trial: Vec<f64>,
    rest: Vec<f64>,
}

/// Bounds of `x`.
pub type Bounds<'a> = (&'a [f64], &'a [f64]);

impl BoxQp {
    pub fn new(n: usize) -> Self {
        Self {
            free: Vec::with_capacity(n),
            clamped: Vec::with_capacity(n),
            factor: vec![0.0; n * n],
            gradient: vec![0.0; n],
            step: vec![0.0; n],
            trial: vec![0.0; n],
            rest: vec![0.0; n],
        }
    }

    /// Leaves the solution in `x`, which is the guess on entry; false where `H` is not positive definite.
    pub fn solve(&mut self, h: &[f64], g: &[f64], (lower, upper): Bounds, x: &mut [f64]) -> bool {
        let n = g.len();
        for ((x, l), u) in x.iter_mut().zip(lower).zip(upper) {
            *x = x.max(*l).min(*u);
        }
        // each round changes the set of clamped variables or ends; cycling is excluded by descent
        for _ in 0..ROUNDS + ROUNDS_EACH * n {
            self.gradient.copy_from_slice(g);
            super::dense::gemv(n, h, x, &mut self.gradient);
            self.free.clear();
            self.clamped.clear();
            for i in 0..n {
                let clamped = (x[i] <= lower[i] && self.gradient[i] >= 0.0)
                    || (x[i] >= upper[i] && self.gradient[i] <= 0.0);
                let set = if clamped {
                    &mut self.clamped
                } else {
                    &mut self.free
                };
                set.push(i);
            }
            if self.free.is_empty() {
                return true;
            }
            if !self.newton_step(h, n) {
                return false;
            }
            let inside = self
                .free
                .iter()
                .zip(&self.step)
                .all(|(&i, s)| (lower[i]..=upper[i]).contains(&(x[i] + s)));
            if inside {
                // exact on these variables; done if no clamped one wants to leave
                self.free
                    .iter()
                    .zip(&self.step)
                    .for_each(|(&i, s)| x[i] += s);
                self.gradient.copy_from_slice(g);
                super::dense::gemv(n, h, x, &mut self.gradient);
                let stays = |&i: &usize| {
                    (x[i] <= lower[i] && self.gradient[i] >= 0.0)
                        || (x[i] >= upper[i] && self.gradient[i] <= 0.0)
                };
                if self.clamped.iter().all(stays) {
                    return true;
                }
            } else if !self.projected_search(h, g, (lower, upper), x) {
                return true;
            }
        }
        true
    }

    /// Newton's step on the free variables.
    fn newton_step(&mut self, h: &[f64], n: usize) -> bool {
        let m = self.free.len();
        for (j, &fj) in self.free.iter().enumerate() {
            for (i, &fi) in self.free.iter().enumerate() {
                self.factor[i + j * m] = h[fi + fj * n];
            }
            self.step[j] = -self.gradient[fj];
        }
        let ok = cholesky(m, &mut self.factor[..m * m]);
        if ok {
            cholesky_solve(m, &self.factor, &mut self.step[..m]);
        }
        ok
    }

    /// Shortens the projected step until it descends; false if it never does.
    fn projected_search(
        &mut self,
        h: &[f64],
        g: &[f64],
        (lower, upper): Bounds,
        x: &mut [f64],
    ) -> bool {
        let mut length = 1.0;
        for _ in 0..SHORTENINGS {
            self.trial.copy_from_slice(x);
            for (&i, s) in self.free.iter().zip(&self.step) {
                self.trial[i] = (x[i] + length * s).max(lower[i]).min(upper[i]);
            }
            // change of the value: gradient d + 1/2 d'Hd, without cancellation
            for ((r, t), x) in self.rest.iter_mut().zip(&self.trial).zip(x.iter()) {
                *r = t - x;
            }
            self.gradient.copy_from_slice(g);
            super::dense::gemv(g.len(), h, x, &mut self.gradient);
            let slope = dot(&self.gradient, &self.rest);
            let change = slope + 0.5 * quadratic_form(h, &self.rest);
            if slope < 0.0 && change <= SUFFICIENT_DECREASE * slope {
                x.copy_from_slice(&self.trial);
                return true;
            }
            length *= CONTRACTION;
        }
        false
    }

    /// Solves `H_ff y = b_f` in place for the free variables, zero for the others.
    pub fn solve_free(&mut self, b: &mut [f64]) {
        let m = self.free.len();
        for (s, &i) in self.step.iter_mut().zip(&self.free) {
            *s = b[i];
        }
        cholesky_solve(m, &self.factor, &mut self.step[..m]);
        b.fill(0.0);
        for (s, &i) in self.step.iter().zip(&self.free) {
            b[i] = *s;
        }
    }
}
