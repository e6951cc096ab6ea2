//! The barrier's parameter, and the directions that depend on it.

use super::filter::Filter;
use super::kkt::Direction;
use super::solver::{DAMPING, Solver, UNSCALED};
use super::{Barrier, Options};
use serde::{Deserialize, Serialize};

/// How the parameter falls where its problem is solved: to this part, or this power.
const FALL: f64 = 0.2;
const POWER: f64 = 1.5;
/// Its problem is solved to this many times itself.
const SOLVED: f64 = 10.0;
/// Least one, in parts of the tolerance; least of a free one.
const LEAST: f64 = 0.1;
const LEAST_FREE: f64 = 1e-11;
/// The largest free one, times the average complementarity at the start.
const LARGEST: f64 = 1e3;
/// Where a free one gives up, what is held starts with this part of the average complementarity.
const HELD: f64 = 0.8;
/// Centring, in parts of the average complementarity: least and largest.
const CENTRING: (f64, f64) = (1e-6, 100.0);
/// Evaluations of the quality function.
const SECTIONS: usize = 10;
/// Margin of the progress that a free parameter has to make, relative to the error, and the error that it is at most of.
const PROGRESS: (f64, f64) = (1e-5, 1.0);
/// What slacks are divided by, at least.
const LEAST_BARRIER: f64 = 1e-20;
/// Part of the way to a bound that a step leaves.
const TO_BOUND: f64 = 0.99;

/// The parameter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parameter {
    pub mu: f64,
    barrier: Barrier,
    free: bool,
    largest: Option<f64>,
    least: f64,
    /// Objective and violation of the iterates that were made with a free one.
    made: Filter,
    refused: bool,
}

impl Parameter {
    pub fn new(options: &Options) -> Self {
        Self {
            mu: options.start,
            barrier: options.barrier,
            free: options.barrier == Barrier::Adaptive,
            largest: None,
            least: LEAST * options.tolerance,
            made: Filter::default(),
            refused: false,
        }
    }

    /// For an objective that is scaled by `weight`, in a program with bounds or without.
    pub fn fit(&mut self, weight: f64, tolerance: f64, has_bounds: bool) {
        self.least = LEAST * tolerance.min(UNSCALED.1 * weight);
        if !has_bounds {
            // nothing to choose, and a filter that is not emptied in every iteration
            (self.barrier, self.free) = (Barrier::Monotone, false);
        }
    }

    pub fn is_free(&self) -> bool {
        self.free
    }

    pub fn is_least(&self) -> bool {
        self.mu <= self.least || self.free && self.mu <= LEAST_FREE
    }

    /// Ends choosing it freely.
    pub fn hold(&mut self, average: f64) {
        self.free = false;
        let largest = self.largest.unwrap_or(f64::INFINITY);
        self.mu = (HELD * average).clamp(self.least, largest.max(self.least));
    }

    /// The last step was none.
    pub fn refuse(&mut self) {
        self.refused = true;
    }

    /// How much of the way to a bound a step may go.
    pub fn to_bound(&self) -> f64 {
        TO_BOUND.max(1.0 - self.mu)
    }
}

impl Solver {
    /// Average complementarity.
    pub fn average(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0);
        for i in 0..self.at.w.len() {
            let (below, above) = self.model.gaps(&self.at.w, i);
            if self.model.lower[i].is_finite() {
                sum += below * self.at.lower[i];
                count += 1;
            }
            if self.model.upper[i].is_finite() {
                sum += above * self.at.upper[i];
                count += 1;
            }
        }
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }

    /// Chooses the parameter of this iteration and factors its system.
    pub fn set_parameter(&mut self) {
        let average = self.average();
        let largest =
            *(self.parameter.largest).get_or_insert((LARGEST * average).max(self.options.start));
        if self.parameter.barrier == Barrier::Adaptive {
            let error = self.errors(0.0).largest();
            let margin = PROGRESS.0 * error.min(PROGRESS.1);
            let (violation, value) = (self.at.values.violation(), self.at.values.objective);
            let makes_progress = !std::mem::take(&mut self.parameter.refused)
                && (self.parameter.made).accepts((violation + margin, value + margin));
            if makes_progress {
                self.parameter.made.insert((violation, value));
                if !self.parameter.free {
                    self.parameter.free = true;
                    self.filter.clear();
                }
            } else if self.parameter.free {
                self.parameter.hold(average);
                self.filter.clear();
            }
        }
        self.settle();
        if self.parameter.free {
            self.filter.clear();
            if average > 0.0 && self.factor() {
                self.choose(average, largest);
            }
        } else {
            let least = self.parameter.least;
            while self.parameter.mu > least
                && self.errors(self.parameter.mu).largest() <= SOLVED * self.parameter.mu
            {
                let mu = self.parameter.mu;
                self.parameter.mu = (FALL * mu).min(mu.powf(POWER)).max(least);
                self.filter.clear();
            }
        }
    }

    /// What the bounds add to the system.
    pub fn settle(&mut self) {
        let Some(kkt) = &mut self.kkt else { return };
        for i in 0..self.at.w.len() {
            let (below, above) = self.model.gaps(&self.at.w, i);
            let own = self.at.lower[i] / below + self.at.upper[i] / above;
            // the slack of a row without bounds is free
            kkt.barrier[i] = own.max(if i < self.model.n { 0.0 } else { LEAST_BARRIER });
        }
        self.factored = false;
    }

    /// Factors the system, once an iteration.
    pub fn factor(&mut self) -> bool {
        if self.factored {
            return true;
        }
        let Some(kkt) = &mut self.kkt else {
            return false;
        };
        self.factored = kkt.factor(&self.model, &self.hessian, &self.d, self.parameter.mu);
        self.factored
    }

    /// Slope of the barrier by a variable, in parts of `mu`.
    pub fn barrier_slope(&self, i: usize) -> f64 {
        let (below, above) = self.model.gaps(&self.at.w, i);
        match (
            self.model.lower[i].is_finite(),
            self.model.upper[i].is_finite(),
        ) {
            (true, true) => 1.0 / above - 1.0 / below,
            (true, false) => DAMPING - 1.0 / below,
            (false, true) => 1.0 / above - DAMPING,
            (false, false) => 0.0,
        }
    }

    /// The right-hand side with `mu`.
    pub fn set_rhs(&mut self, mu: f64) {
        for i in 0..self.at.w.len() {
            let held = self.model.held.get(i) == Some(&true);
            self.rhs.w[i] = if held {
                0.0
            } else {
                -self.gradient[i] - mu * self.barrier_slope(i)
            };
        }
        for (to, c) in self.rhs.y.iter_mut().zip(&self.at.values.rows) {
            *to = -c;
        }
    }

    /// The direction with the parameter chosen. False where the system cannot be solved.
    pub fn direction(&mut self) -> bool {
        if !self.factor() {
            return false;
        }
        self.set_rhs(self.parameter.mu);
        let Some(kkt) = &mut self.kkt else {
            return false;
        };
        let solved = kkt.solve(&self.model, &self.rhs, &mut self.step.d);
        self.set_dual_step(self.parameter.mu);
        solved && self.step.d.w.iter().all(|d| d.is_finite())
    }

    /// The steps of the bounds' multipliers that go with the direction.
    fn set_dual_step(&mut self, mu: f64) {
        for i in 0..self.at.w.len() {
            let (below, above) = self.model.gaps(&self.at.w, i);
            let d = self.step.d.w[i];
            let (l, u) = (self.at.lower[i], self.at.upper[i]);
            if self.model.lower[i].is_finite() {
                self.step.lower[i] = (mu - l * d) / below - l;
            }
            if self.model.upper[i].is_finite() {
                self.step.upper[i] = (mu + u * d) / above - u;
            }
        }
    }

    /// Takes the parameter with which a full step would leave least of all errors.
    fn choose(&mut self, average: f64, largest: f64) {
        let Some(mut kkt) = self.kkt.take() else {
            return;
        };
        let mut affine = kkt.direction();
        let mut centring = kkt.direction();
        self.set_rhs(0.0);
        let mut solved = kkt.solve(&self.model, &self.rhs, &mut affine);
        for i in 0..self.at.w.len() {
            let held = self.model.held.get(i) == Some(&true);
            self.rhs.w[i] = if held { 0.0 } else { -self.barrier_slope(i) };
        }
        self.rhs.y.fill(0.0);
        solved &= kkt.solve(&self.model, &self.rhs, &mut centring);
        self.kkt = Some(kkt);
        if !solved {
            return;
        }
        let quality = |log: f64, s: &mut Self| s.quality(log.exp(), &affine, &centring);
        let least = LEAST_FREE.max(CENTRING.0 * average).ln();
        let most = (CENTRING.1 * average).min(largest).ln().max(least);
        let middle = average.ln().clamp(least, most);
        // on which side of the average
        let (at, below) = (quality(middle, self), quality(middle - 0.01, self));
        let (mut a, mut b) = if below <= at {
            (least, middle)
        } else {
            (middle, most)
        };
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        let (mut c, mut d) = (b - golden * (b - a), a + golden * (b - a));
        let (mut fc, mut fd) = (quality(c, self), quality(d, self));
        for _ in 0..SECTIONS {
            if fc <= fd {
                (b, d, fd) = (d, c, fc);
                c = b - golden * (b - a);
                fc = quality(c, self);
            } else {
                (a, c, fc) = (c, d, fd);
                d = a + golden * (b - a);
                fd = quality(d, self);
            }
        }
        let mut best = if fc <= fd { (fc, c) } else { (fd, d) };
        for end in [least, middle] {
            let f = quality(end, self);
            if f < best.0 {
                best = (f, end);
            }
        }
        self.parameter.mu = best.1.exp().clamp(LEAST_FREE, largest.max(LEAST_FREE));
    }

    /// What a full step with `mu` would leave, to first order but for complementarity.
    fn quality(&mut self, mu: f64, affine: &Direction, centring: &Direction) -> f64 {
        self.step.d.w.copy_from_slice(&affine.w);
        for (d, c) in self.step.d.w.iter_mut().zip(&centring.w) {
            *d += mu * c;
        }
        self.set_dual_step(mu);
        let before = std::mem::replace(&mut self.parameter.mu, mu);
        let (primal, dual) = self.largest_steps();
        self.parameter.mu = before;
        let (mut gradient, mut products, mut count) = (0.0, 0.0, 0.0);
        for i in 0..self.at.w.len() {
            if self.model.held.get(i) == Some(&true) {
                continue;
            }
            let (l, u) = (self.at.lower[i], self.at.upper[i]);
            gradient += (self.gradient[i] - l + u).powi(2);
            let (below, above) = self.model.gaps(&self.at.w, i);
            let d = primal * self.step.d.w[i];
            if self.model.lower[i].is_finite() {
                products += ((below + d) * (l + dual * self.step.lower[i])).powi(2);
                count += 1.0;
            }
            if self.model.upper[i].is_finite() {
                products += ((above - d) * (u + dual * self.step.upper[i])).powi(2);
                count += 1.0;
            }
        }
        let rows: f64 = self.at.values.rows.iter().map(|c| c * c).sum();
        let (n, m) = (self.at.w.len() as f64, self.at.y.len().max(1) as f64);
        (1.0 - dual).powi(2) * gradient / n + (1.0 - primal).powi(2) * rows / m + products / count
    }
}
