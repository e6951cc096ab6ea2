//! The augmented Lagrangian of a problem as a function of its controls and free parameters, simulated.
//!
//! To the terms of the constraints (see [`Lagrangian`]) come those of the bounds,
//!
//! ```text
//! + sum_i ( max(0, m_i + b g_i)^2 - m_i^2 ) / (2 b)
//! ```
//!
//! with `g` how far each decision is beyond its bound. The decisions are the controls, knot by knot, and behind them the
//! free parameters, all scaled: by half their range where they have one, parameters otherwise by their size. Gradient and
//! Gauss-Newton curvature are those of the linear-quadratic model along the path; `H` by all controls is full and, where
//! the system is unstable, hopelessly conditioned: Riccati's recursion solves with it knot by knot, and yields the
//! feedback that keeps the system near a linear prediction.

use super::bound_multipliers::BoundMultipliers;
use super::checkpoint::{Multipliers, Point};
use super::lq::{
    Hinges, Lagrangian, Model, Path, Policy, Riccati, Scratch, Worker, dense, within_reach, workers,
};
use super::scale::Scale;
use super::{SolveState, infeasibility};
use crate::control::Problem;
use crate::dynamics::{Observe, StepError};
use crate::rollout::{RolloutStats, Trajectory};
use nalgebra::DVector;

/// A vector of scaled decisions.
pub(super) type Param = DVector<f64>;

/// Penalty of the bounds in multiples of the median curvature by a control: a decision at its bound gives by a tenth of
/// what it would beyond. Conventional: larger, the problem is worse conditioned; smaller, it takes more rounds.
const BOUND_PENALTY: f64 = 10.0;
/// A parameter whose curvature would carry it by more than a hundred times its range or size has none. Conventional: less
/// than a range would cut off Newton's own steps.
const FLAT: f64 = 1e-2;

/// A point with its value and path.
struct Iterate {
    decisions: Param,
    value: f64,
    path: Path,
}

pub(super) struct Augmented<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    /// What each scaled decision stands for.
    scale: Vec<Scale>,
    pub lagrangian: Lagrangian,
    bound_multipliers: BoundMultipliers,
    pub model: Model,
    riccati: Riccati,
    policy: Policy,
    /// Relative to the curvature of each decision.
    damping: f64,
    /// Slopes of the last solve, and derivatives of the parameters by what stands for them.
    slopes: Vec<f64>,
    by_scale: Vec<f64>,
    by_bounds: Vec<f64>,
    scratch: Scratch,
    work: D::Work,
    workers: Vec<Worker<D::Work>>,
    /// The present point; its value is infinite where it cannot be simulated.
    current: Iterate,
    /// Beside it, not yet accepted.
    trial: Iterate,
    /// At the present point; the model is then of it, too.
    gradient: Option<Param>,
    /// Is the model of the present point, be it of another function?
    linearized: bool,
    /// Is the model that with its kinks? It is of the present point.
    has_kinks: bool,
    hinges: Option<Hinges>,
    /// Where the model was made, while the function stays.
    modelled: Option<Param>,
    pub failed: Option<StepError>,
    /// Steps of the last [`Augmented::roll`].
    rolled: usize,
    pub steps: u64,
    pub sweeps: u64,
}

impl<'a, D: Observe> Augmented<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, penalty: f64) -> Self {
        let mut work = dynamics.work();
        let path = Path::new(dynamics, problem, &mut work);
        let model = match problem.guess.is_empty() {
            true => Model::of_parameters(dynamics, problem),
            false => Model::new(dynamics, problem),
        };
        let half = |&(l, u): &(f64, f64)| {
            let w = 0.5 * (u - l);
            // a fixed control has no range
            if w.is_finite() && w > 0.0 { w } else { 1.0 }
        };
        let each = problem.with_bounds(&problem.guess);
        let ranges: Vec<_> = each.map(|(_, b)| (*b, half(b))).collect();
        let mut scale: Vec<Scale> = ranges.iter().map(|(_, s)| Scale::Free(*s)).collect();
        let parameter =
            |&i: &usize| Scale::of_parameter(problem.parameter_bounds[i], problem.parameters[i]);
        scale.extend(model.free.iter().map(parameter));
        let n = scale.len();
        let mut bounds: Vec<_> = ranges.iter().map(|((l, u), s)| (l / s, u / s)).collect();
        bounds.resize(n, (f64::NEG_INFINITY, f64::INFINITY));
        let current = Iterate {
            decisions: DVector::from_element(n, f64::NAN),
            value: f64::INFINITY,
            path: path.clone(),
        };
        Self {
            dynamics,
            problem,
            lagrangian: Lagrangian::new(problem, &path.evaluation, penalty),
            bound_multipliers: BoundMultipliers {
                lower: vec![0.0; n],
                upper: vec![0.0; n],
                penalty: 1.0,
                bounds,
            },
            riccati: Riccati::new(&model.sizes),
            policy: Policy::new(&model.sizes),
            damping: 0.0,
            slopes: vec![0.0; model.l.len()],
            by_scale: vec![0.0; model.sizes.q],
            by_bounds: vec![0.0; model.sizes.q],
            scratch: Scratch::new(&model.sizes),
            workers: workers(dynamics, problem, &model.sizes),
            model,
            work,
            trial: Iterate {
                decisions: current.decisions.clone(),
                value: f64::INFINITY,
                path,
            },
            current,
            scale,
            gradient: None,
            linearized: false,
            has_kinks: false,
            hinges: None,
            modelled: None,
            failed: None,
            rolled: 0,
            steps: 0,
            sweeps: 0,
        }
    }

    /// The present point.
    pub fn decisions(&self) -> &Param {
        &self.current.decisions
    }

    /// The function there.
    pub fn value(&self) -> f64 {
        self.current.value
    }

    /// The path there.
    pub fn path(&self) -> &Path {
        &self.current.path
    }

    /// The problem's guess as scaled decisions.
    pub fn guess(&self) -> Param {
        self.scaled(&self.problem.guess, &self.problem.parameters)
    }

    /// Controls and parameters as scaled decisions.
    fn scaled(&self, controls: &[f64], parameters: &[f64]) -> Param {
        let free = self.model.free.iter().map(|&i| &parameters[i]);
        let all = controls.iter().chain(free).zip(&self.scale);
        DVector::from_iterator(self.scale.len(), all.map(|(v, s)| s.inverse(*v)))
    }

    /// Weight of the constraints.
    pub fn penalty(&self) -> f64 {
        self.lagrangian.penalty
    }

    /// Multipliers and penalties.
    pub fn multipliers(&self) -> Multipliers {
        Multipliers {
            lower: self.bound_multipliers.lower.clone(),
            upper: self.bound_multipliers.upper.clone(),
            bound_penalty: self.bound_multipliers.penalty,
            ..self.lagrangian.to_checkpoint()
        }
    }

    /// A point to keep: the scaled decisions `v`, unscaled.
    pub fn point(&self, v: &Param) -> Point {
        let values = v.iter().zip(&self.scale).map(|(v, s)| s.value(*v));
        let mut unscaled: Vec<f64> = values.collect();
        let free = unscaled.split_off(self.problem.guess.len());
        let mut parameters = self.problem.parameters.clone();
        for (&i, v) in self.model.free.iter().zip(free) {
            parameters[i] = v;
        }
        Point {
            controls: unscaled,
            parameters,
            states: vec![],
        }
    }

    /// The scaled decisions of a point that was kept.
    pub fn decisions_of(&self, point: &Point) -> Param {
        self.scaled(&point.controls, &point.parameters)
    }

    /// Goes on with multipliers and penalties that were kept, from the scaled decisions `v`.
    pub fn restore(&mut self, kept: &Multipliers, v: &Param) {
        self.lagrangian.restore(kept);
        let p = &mut self.bound_multipliers;
        if kept.lower.len() == p.lower.len() && kept.upper.len() == p.upper.len() {
            p.lower.copy_from_slice(&kept.lower);
            p.upper.copy_from_slice(&kept.upper);
        }
        p.penalty = kept.bound_penalty;
        self.roll(v);
    }

    /// Simulates and evaluates at the scaled decisions `v`.
    pub fn roll(&mut self, v: &Param) {
        self.current.decisions.copy_from(v);
        let before = self.steps;
        self.failed = self.try_step(&DVector::zeros(v.len()), &[], 0.0).err();
        self.rolled = (self.steps - before) as usize;
        self.accept();
    }

    /// Goes to the scaled decisions `v`, without simulating anew where it stands or where it stood before.
    /// The function there.
    pub fn visit(&mut self, v: &Param) -> f64 {
        if self.current.decisions == *v {
            return self.current.value;
        }
        if self.trial.decisions == *v && self.trial.value.is_finite() {
            self.accept();
            self.failed = None;
            // of multipliers that may have changed since
            self.current.value = self.value_of(&self.current);
            return self.current.value;
        }
        let before = self.current.decisions.clone();
        self.roll(v);
        self.trial.decisions = before;
        self.current.value
    }

    /// Simulates and evaluates a step of `length` along the change `d` of the scaled decisions, into the trial. Where
    /// the system leaves its `response` to `d` the feedback of the curvature leads it back; without a response the step
    /// is `d` itself.
    pub fn try_step(&mut self, d: &Param, response: &[f64], length: f64) -> Result<f64, StepError> {
        let (trial, old, scale) = (&mut self.trial, &self.current.path.trajectory, &self.scale);
        let (n, m, controls) = (
            self.model.sizes.n,
            self.model.sizes.m,
            self.problem.guess.len(),
        );
        trial.value = f64::INFINITY;
        trial.decisions.copy_from(&self.current.decisions);
        trial.decisions.axpy(length, d, 1.0);
        let t = &mut trial.path.trajectory;
        for ((&i, v), s) in self
            .model
            .free
            .iter()
            .zip(trial.decisions.iter().skip(controls))
            .zip(&scale[controls..])
        {
            t.p[i] = s.value(*v);
        }
        trial.path.retime(self.problem);
        let t = &mut trial.path.trajectory;
        let x0 = self.problem.start(self.dynamics, &t.p, &mut self.work)?;
        t.x[..x0.len()].copy_from_slice(&x0);
        let (model, policy, dynamics) = (&self.model, &self.policy, self.dynamics);
        let knots = &self.current.path.knots;
        let at = trial.decisions.as_mut_slice();
        let (mut change, mut answer) = (vec![0.0; n], vec![0.0; m]);
        let mut stats = RolloutStats::default();
        let rolled = t.roll_under(dynamics, &mut self.work, &mut stats, |knot, x, _, w, u| {
            let k = knot.k;
            let own = &mut at[k * m..(k + 1) * m];
            if let Some(predicted) = response.get(k * n..(k + 1) * n).filter(|p| !p.is_empty()) {
                let frame = model.frame(k);
                dynamics.difference(&knots[k], old.state(k), &old.p, frame, x, w, &mut change);
                let both = change.iter_mut().zip(predicted);
                both.for_each(|(c, p)| *c -= length * p);
                answer.fill(0.0);
                dense::gemv(m, &policy.feedback(k)[..m * n], &change, &mut answer);
                for ((v, a), s) in own.iter_mut().zip(&answer).zip(&scale[k * m..]) {
                    *v += a / s.slope(*v);
                }
            }
            for ((u, v), s) in u.iter_mut().zip(own).zip(&scale[k * m..]) {
                *u = s.value(*v);
            }
            Ok(())
        });
        self.steps += stats.steps as u64;
        rolled?;
        let path = &mut self.trial.path;
        path.evaluate_shared(self.dynamics, self.problem, &mut self.workers)?;
        self.trial.value = self.value_of(&self.trial);
        Ok(self.trial.value)
    }

    /// Makes the trial the present point.
    pub fn accept(&mut self) {
        std::mem::swap(&mut self.current, &mut self.trial);
        (self.gradient, self.hinges, self.linearized) = (None, None, false);
    }

    /// Goes from the scaled decisions `from` by the change `d`, where the feedback of the curvature at `from` leads back what
    /// leaves the response to `d`, see [`Augmented::try_step`]; `None` where that cannot be simulated.
    ///
    /// # Errors
    /// When a step from there cannot be linearized.
    pub fn retract(&mut self, from: &Param, d: &Param) -> Result<Option<Param>, StepError> {
        self.visit(from);
        if self.modelled.as_ref() != Some(from) {
            self.gradient()?;
        }
        let response = self.response(d);
        if self.try_step(d, &response, 1.0).is_err() {
            return Ok(None);
        }
        self.accept();
        Ok(Some(self.current.decisions.clone()))
    }

    /// The function changed: computes the value anew.
    fn reevaluate(&mut self) {
        (self.gradient, self.modelled) = (None, None);
        // the map of the parameters bends as the function presses
        self.hinges = None;
        self.current.value = self.value_of(&self.current);
    }

    fn value_of(&self, r: &Iterate) -> f64 {
        let value = self.lagrangian.value(&r.path) + self.bound_multipliers.value(&r.decisions);
        if value.is_finite() {
            value
        } else {
            f64::INFINITY
        }
    }

    /// The gradient at the present point, with the model there; the last answer while the point stays.
    ///
    /// # Errors
    /// When a step cannot be linearized.
    pub fn gradient(&mut self) -> Result<Param, StepError> {
        if let Some(g) = &self.gradient {
            return Ok(g.clone());
        }
        self.linearize()?;
        let controls = self.problem.guess.len();
        let mut g = DVector::zeros(self.scale.len());
        let (of_controls, of_parameters) = g.as_mut_slice().split_at_mut(controls);
        self.model.gradient(of_controls, of_parameters);
        let (s, m, width) = (
            self.model.sizes.s(),
            self.model.sizes.m,
            self.model.sizes.w(),
        );
        for (i, (v, s_i)) in self.current.decisions.iter().zip(&self.scale).enumerate() {
            let slope = s_i.slope(*v);
            let (lower, upper) = self.bound_multipliers.estimates(i, *v);
            let acts = lower > 0.0 || upper > 0.0;
            let own = if acts {
                self.bound_multipliers.penalty
            } else {
                0.0
            };
            if i < controls {
                let (k, j) = (i / m, s + i % m);
                self.model.h[k * width * width + j * width + j] += own / (slope * slope);
            } else {
                // where a bound presses the map bends, and nothing else does
                let j = i - controls;
                self.by_scale[j] = slope;
                self.by_bounds[j] = own + (g[i] * s_i.second_derivative(*v)).max(0.0);
            }
            g[i] = slope * g[i] + upper - lower;
        }
        self.gradient = Some(g.clone());
        self.modelled = Some(self.current.decisions.clone());
        self.damp(0.0);
        // scales what damping there is to come, and tells the curvature of each control
        self.newton(&DVector::zeros(self.scale.len()));
        // a parameter without curvature, as under costs that are linear, would step without end: so much that its own step
        // is one, which vanishes with the gradient
        let own = self.riccati.of_parameters.iter();
        let by = &g.as_slice()[controls..];
        for ((curved, own), g) in self.by_bounds.iter_mut().zip(own).zip(by) {
            if *own < FLAT * g.abs() {
                *curved += g.abs() - own;
            }
        }
        Ok(g)
    }

    /// Makes the model at the present point; where it was of another function there, from the same derivatives.
    fn linearize(&mut self) -> Result<(), StepError> {
        let (of, path) = ((self.dynamics, self.problem), &mut self.current.path);
        let (lagrangian, workers) = (&self.lagrangian, &mut self.workers);
        if self.linearized {
            return self.model.reweigh(of, lagrangian, path, workers);
        }
        self.sweeps += 1;
        self.model.build(of.0, of.1, lagrangian, path, workers)?;
        self.linearized = true;
        Ok(())
    }

    /// Bounds of the scaled decisions; infinite where there is none.
    pub fn bounds(&self) -> (Param, Param) {
        let each = self.bound_multipliers.bounds.iter().zip(&self.scale);
        let both = each.map(|(own, scale)| scale.bounds().unwrap_or(*own));
        let (lower, upper): (Vec<f64>, Vec<f64>) = both.unzip();
        (lower.into(), upper.into())
    }

    /// Largest violation at the present point.
    pub fn violation(&self) -> f64 {
        self.current.path.violation(self.problem)
    }

    /// The constraint violated most at the present point, by more than `tolerance`.
    pub fn worst(&self, tolerance: f64) -> Option<usize> {
        let e = &self.current.path.evaluation;
        self.problem.worst(e, tolerance).map(|(i, _)| i)
    }

    /// Its name, and since which iteration it is the worst.
    pub fn worst_since(&self, state: &SolveState) -> Option<(String, u64)> {
        infeasibility::worst(self.dynamics, self.problem, state)
    }

    /// Names what is violated by more than `tolerance` at the present point, and by how much.
    pub fn violated(&self, tolerance: f64) -> String {
        let path = &self.current.path;
        path.violated(self.dynamics, self.problem, tolerance)
    }

    /// Names the violated constraints that no decision changes to first order.
    pub fn without_gradient(&mut self, tolerance: f64) -> Vec<String> {
        self.model.without_gradient(
            self.dynamics,
            self.problem,
            &self.current.path,
            tolerance,
            &mut self.workers,
        )
    }

    /// See [`within_reach`].
    pub fn within_reach(&self) -> f64 {
        let path = &self.current.path;
        within_reach(self.dynamics, self.problem, &self.lagrangian, path)
    }

    /// What gains are compared with: the function without what multipliers add.
    pub fn size(&self, tolerance: f64) -> f64 {
        let violation = self.violation().max(tolerance);
        let objective = self.current.path.evaluation.objective.abs();
        objective + 0.5 * self.penalty() * violation * violation
    }

    /// Reduction that the curvature still predicts, `1/2 g' H^-1 g`, or the model with its kinks, relative to the size of the
    /// function: the measure of optimality. Independent of units and scaling.
    pub fn optimality(&mut self, tolerance: f64) -> Result<f64, StepError> {
        if self.has_kinks {
            let promise = self.promise(0.0)?;
            // what is not of numbers is no optimum
            let predicted = promise.map_or(f64::INFINITY, |p| p.gain);
            return Ok(predicted / self.size(tolerance));
        }
        let gradient = self.gradient()?;
        // damping hides what is promised
        let damping = std::mem::replace(&mut self.damping, 0.0);
        let predicted = 0.5 * gradient.dot(&self.newton(&gradient));
        self.damping = damping;
        Ok(predicted / self.size(tolerance))
    }

    /// Complementarity of inequalities and bounds, the sum of multiplier times slack, relative to the size of the function.
    pub fn complementarity(&self, tolerance: f64) -> f64 {
        let mut sum = self.lagrangian.complementarity(&self.current.path);
        for (i, v) in self.current.decisions.iter().enumerate() {
            let (l, u) = self.bound_multipliers.bounds[i];
            for (multiplier, room) in <[_; 2]>::from(self.bound_multipliers.estimates(i, *v))
                .into_iter()
                .zip([v - l, u - v])
                .filter(|(multiplier, _)| *multiplier > 0.0)
            {
                sum += multiplier * room.max(0.0);
            }
        }
        sum / self.size(tolerance)
    }

    /// How far the controls are beyond their bounds.
    pub fn beyond_bounds(&self) -> f64 {
        let controls = self.problem.with_bounds(&self.current.path.trajectory.u);
        controls.fold(0.0, |most, (u, (l, h))| most.max(l - u).max(u - h))
    }

    /// First-order update of the multipliers, then penalties times `growth`.
    pub fn update(&mut self, growth: f64) {
        self.lagrangian.update(&self.current.path, growth);
        self.bound_multipliers
            .update(&self.current.decisions, growth);
        self.reevaluate();
    }

    /// Sets the scale of the penalties, of the bounds' by the curvature of the objective, at the present point.
    pub fn calibrate(&mut self) -> Result<(), StepError> {
        self.lagrangian
            .scale_penalty(self.problem, &self.current.path.evaluation);
        self.reevaluate();
        self.gradient()?;
        let own = self.riccati.diagonal.iter().zip(&self.scale);
        let mut diagonal: Vec<f64> = own.map(|(d, s)| d * s.slope(0.0).powi(2)).collect();
        diagonal.sort_by(f64::total_cmp);
        if let Some(median) = diagonal.get(diagonal.len() / 2).filter(|m| **m > 0.0) {
            self.bound_multipliers.penalty = BOUND_PENALTY * median;
        }
        self.reevaluate();
        Ok(())
    }

    /// The present point's trajectory, as far as it was simulated.
    pub fn reached(&self) -> Trajectory {
        let mut reached = self.current.path.trajectory.clone();
        if self.failed.is_some() {
            reached.truncate(self.rolled);
        }
        reached
    }

    /// The trajectory of a point, if it can be simulated.
    pub fn simulated(&mut self, point: &Point) -> Option<Trajectory> {
        point.simulated(self.dynamics, self.problem, &mut self.work)
    }

    /// Names what is violated by more than `tolerance` along a trajectory.
    pub fn violated_along(&mut self, t: &Trajectory, tolerance: f64) -> Result<String, StepError> {
        if t.steps() < self.problem.intervals.len() {
            return Ok(String::new());
        }
        let mut e = self.problem.evaluation();
        self.problem
            .evaluate(self.dynamics, t, &mut self.work, &mut e)?;
        let list = self.problem.violated(self.dynamics, &e, t, tolerance);
        Ok(list.join(", "))
    }
}

mod covariance;
mod curvature;
mod kinks;
mod residuals;

pub use covariance::Covariance;
pub(super) use kinks::Promise;
pub(super) use residuals::squares;

#[cfg(test)]
mod language_tests;
#[cfg(test)]
mod tests;
