//! Which length of a step is acceptable.

use super::Program;
use super::filter::{MARGINS, at_most};
use super::model::Values;
use super::solver::{DAMPING, Solver};

/// A step is judged by the barrier function where its model falls by more than this times the violation, with these powers.
const SWITCH: (f64, f64, f64) = (1.0, 2.3, 1.1);
/// Part of the model's fall that the barrier function has to make.
const FALL: f64 = 1e-4;
/// Shortest step, in parts of the one that could still be acceptable.
const SHORTEST: f64 = 0.05;
/// Second-order corrections at most, and the part by which each has to lessen the violation.
const CORRECTIONS: usize = 4;
const CORRECTED: f64 = 0.99;

/// How a search ended.
pub enum Searched {
    /// The trial point is acceptable; the lengths of the primal and the dual step.
    Accepted(f64, f64),
    /// No length is.
    Refused,
}

impl Solver {
    /// The largest steps, primal and dual, that stay inside all bounds.
    pub fn largest_steps(&self) -> (f64, f64) {
        let part = self.parameter.to_bound();
        let (mut primal, mut dual) = (1.0_f64, 1.0_f64);
        for i in 0..self.at.w.len() {
            let (below, above) = self.model.gaps(&self.at.w, i);
            let d = self.step.d.w[i];
            if self.model.lower[i].is_finite() {
                if d < 0.0 {
                    primal = primal.min(-part * below / d);
                }
                let (z, d) = (self.at.lower[i], self.step.lower[i]);
                if d < 0.0 {
                    dual = dual.min(-part * z / d);
                }
            }
            if self.model.upper[i].is_finite() {
                if d > 0.0 {
                    primal = primal.min(part * above / d);
                }
                let (z, d) = (self.at.upper[i], self.step.upper[i]);
                if d < 0.0 {
                    dual = dual.min(-part * z / d);
                }
            }
        }
        (primal, dual)
    }

    /// Moves the trial point; is there a value?
    pub fn try_step(&mut self, program: &mut dyn Program, length: f64) -> bool {
        let to = self.trial.w.iter_mut().zip(&self.at.w).zip(&self.step.d.w);
        to.for_each(|((t, w), d)| *t = w + length * d);
        self.model
            .evaluate(program, &self.trial.w, &mut self.trial.values)
            .is_ok()
    }

    /// The barrier function.
    pub fn barrier_at(&self, w: &[f64], values: &Values) -> f64 {
        let mut sum = 0.0;
        for i in 0..w.len() {
            let (below, above) = self.model.gaps(w, i);
            match (
                self.model.lower[i].is_finite(),
                self.model.upper[i].is_finite(),
            ) {
                (true, true) => sum -= below.ln() + above.ln(),
                (true, false) => sum += DAMPING * below - below.ln(),
                (false, true) => sum += DAMPING * above - above.ln(),
                (false, false) => {}
            }
        }
        values.objective + self.parameter.mu * sum
    }

    /// Slope of the barrier function along the step.
    fn slope(&self) -> f64 {
        let mu = self.parameter.mu;
        let n = self.model.n;
        (self.step.d.w.iter().enumerate())
            .map(|(i, d)| {
                let own = if i < n { self.d.gradient[i] } else { 0.0 };
                d * (own + mu * self.barrier_slope(i))
            })
            .sum()
    }

    /// Finds an acceptable step.
    pub fn search(&mut self, program: &mut dyn Program) -> Searched {
        let (primal, dual) = self.largest_steps();
        let slope = self.slope();
        let violation = self.at.values.violation();
        let value = self.barrier_at(&self.at.w, &self.at.values);
        let shortest = (SHORTEST * self.shortest(violation, slope)).max(f64::EPSILON);
        let mut length = primal;
        let mut is_first = true;
        while length > shortest || is_first {
            if self.try_step(program, length) {
                let judged = self.judge((violation, value), slope, length);
                if judged {
                    return Searched::Accepted(length, dual);
                }
                let trial = self.trial.values.violation();
                if is_first
                    && trial >= violation
                    && let Some(found) = self.correct(program, (violation, value), slope, length)
                {
                    return Searched::Accepted(found, dual);
                }
            }
            is_first = false;
            length *= 0.5;
        }
        Searched::Refused
    }

    /// The shortest step that one of the conditions can still hold at.
    fn shortest(&self, violation: f64, slope: f64) -> f64 {
        let mut least = MARGINS.0;
        if slope < 0.0 {
            least = least.min(-MARGINS.1 * violation / slope);
            if violation <= self.violations.1 {
                let (delta, by_slope, by_violation) = SWITCH;
                least = least.min(delta * violation.powf(by_violation) / (-slope).powf(by_slope));
            }
        }
        least
    }

    /// Is the trial point, a step of this length, acceptable? Then the filter learns of it.
    fn judge(&mut self, (violation, value): (f64, f64), slope: f64, length: f64) -> bool {
        let trial = self.trial.values.violation();
        let reached = self.barrier_at(&self.trial.w, &self.trial.values);
        if !reached.is_finite()
            || trial > self.violations.0
            || !self.filter.accepts((trial, reached))
        {
            return false;
        }
        let (delta, by_slope, by_violation) = SWITCH;
        let falls =
            slope < 0.0 && length * (-slope).powf(by_slope) > delta * violation.powf(by_violation);
        let by_value = falls && violation <= self.violations.1;
        let enough = at_most(reached - value, FALL * length * slope)
            || reached - value <= FALL * length * slope + 10.0 * f64::EPSILON * value.abs();
        let accepted = if by_value {
            enough
        } else {
            at_most(trial, (1.0 - MARGINS.0) * violation)
                || at_most(reached, value - MARGINS.1 * violation)
        };
        if accepted && !(by_value && enough) {
            self.filter.add((violation, value));
        }
        accepted
    }

    /// Corrects the step by what the rows are at its end; the length of the corrected step that is acceptable.
    fn correct(
        &mut self,
        program: &mut dyn Program,
        from: (f64, f64),
        slope: f64,
        length: f64,
    ) -> Option<f64> {
        let step = self.step.clone();
        let mut rows: Vec<f64> = self.at.values.rows.clone();
        let mut scale = length;
        let mut before = from.0;
        for _ in 0..CORRECTIONS {
            let trial = self.trial.values.violation();
            if trial > CORRECTED * before && before < from.0 {
                break;
            }
            before = trial;
            for (r, c) in rows.iter_mut().zip(&self.trial.values.rows) {
                *r = scale * *r + c;
            }
            self.set_rhs(self.parameter.mu);
            self.rhs
                .y
                .iter_mut()
                .zip(&rows)
                .for_each(|(to, r)| *to = -r);
            let Some(kkt) = &mut self.kkt else { break };
            if !kkt.solve(&self.model, &self.rhs, &mut self.step.d) {
                break;
            }
            let (primal, _) = self.largest_steps();
            scale = primal;
            if !self.try_step(program, primal) {
                break;
            }
            if self.judge(from, slope, length) {
                // multipliers take the step that was not corrected
                let corrected = std::mem::replace(&mut self.step, step);
                self.step.d.w = corrected.d.w;
                return Some(primal);
            }
        }
        self.step = step;
        None
    }
}
