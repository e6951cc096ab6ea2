//! The augmented Lagrangian of a problem as a function of its controls and free parameters, simulated and
//! differentiated by a sweep.
//!
//! ```text
//! L = J + sum_i ( l_i c_i + rho/2 c_i^2 ) + sum_j ( max(0, l_j + rho c_j)^2 - l_j^2 ) / (2 rho)
//!       + sum_j ( max(0, m_j + b g_j)^2 - m_j^2 ) / (2 b)
//! ```
//!
//! with `c_i` the equalities, `c_j` the inequalities and `g` the bounds of the decisions (Nocedal and Wright, Numerical
//! Optimization, 2006, chapter 17). The decisions are the controls, knot by knot, and behind them the free parameters,
//! all scaled: by half their range where they have one, parameters otherwise by their size.

use super::checkpoint::{Multipliers, Point};
use super::curvature::{Curvature, Weights};
use super::scale::Scale;
use crate::control::{Evaluation, Problem, Relation};
use crate::dynamics::{Observe, StepError};
use crate::rollout::{RolloutStats, Sweep, Trajectory};
use nalgebra::DVector;

/// A vector of scaled decisions.
pub(super) type Param = DVector<f64>;

/// Multipliers with their penalties, and the bounds of the scaled decisions.
struct Lagrangian {
    multipliers: Multipliers,
    bounds: Vec<(f64, f64)>,
}

impl Lagrangian {
    /// `m + b g` of both bounds of the scaled decision `i`; a bound acts where it is positive.
    fn pressure(&self, i: usize, v: f64) -> (f64, f64) {
        let (l, u) = self.bounds[i];
        let m = &self.multipliers;
        let b = m.bound_penalty;
        (
            (m.lower[i] + b * (l - v)).max(0.0),
            (m.upper[i] + b * (v - u)).max(0.0),
        )
    }
}

/// Is each constraint at each of its knots an equality?
fn relations(problem: &Problem, evaluation: &Evaluation) -> Vec<bool> {
    let layout = &evaluation.layout;
    (0..layout.knots())
        .flat_map(|k| &layout.stage(k).constraints)
        .map(|(i, _)| problem.constraints[*i].relation == Relation::Equal)
        .collect()
}

pub(super) struct Augmented<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    /// The parameters that are decisions.
    free: Vec<usize>,
    /// What each scaled decision stands for.
    scale: Vec<Scale>,
    lagrangian: Lagrangian,
    curvature: Option<Curvature>,
    work: D::Work,
    pub trajectory: Trajectory,
    sweep: Sweep,
    pub evaluation: Evaluation,
    trial: Trial,
    forces: Vec<f64>,
    /// Is each constraint an equality?
    relations: Vec<bool>,
    /// What the constraints' penalty was in the first round.
    pub first_penalty: f64,
    /// The point that the trajectory belongs to, and its value; infinite where it cannot be simulated.
    pub at: Param,
    pub value: f64,
    gradient: Option<Param>,
    /// The last gradient by the free parameters themselves.
    raw: Vec<f64>,
    pub failed: Option<StepError>,
    pub steps: u64,
    pub sweeps: u64,
}

/// A point beside the present one, not yet accepted.
struct Trial {
    at: Param,
    value: f64,
    trajectory: Trajectory,
    evaluation: Evaluation,
}

impl<'a, D: Observe> Augmented<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, penalty: f64) -> Self {
        let mut work = dynamics.work();
        // a start that does not exist shows when it is simulated
        let x0 = problem
            .start(dynamics, &problem.parameters, &mut work)
            .unwrap_or_else(|_| vec![f64::NAN; dynamics.dims().nx]);
        let mut trajectory = Trajectory::new(dynamics, problem.intervals.clone(), &x0);
        trajectory.p.copy_from_slice(&problem.parameters);
        let evaluation = problem.evaluation();
        let count = evaluation.constraints.len();
        let free = problem.free_parameters();
        let half = |&(l, u): &(f64, f64), else_by: f64| {
            let w = 0.5 * (u - l);
            if w.is_finite() { w } else { else_by }
        };
        let each = problem.with_bounds(&problem.guess);
        let ranges: Vec<_> = each.map(|(_, b)| (*b, half(b, 1.0))).collect();
        let mut scale: Vec<Scale> = ranges.iter().map(|(_, s)| Scale::Free(*s)).collect();
        scale.extend(
            free.iter()
                .map(|&i| Scale::of_parameter(problem.parameter_bounds[i], problem.parameters[i])),
        );
        let n = scale.len();
        let mut bounds: Vec<_> = ranges.iter().map(|((l, u), s)| (l / s, u / s)).collect();
        bounds.resize(n, (f64::NEG_INFINITY, f64::INFINITY));
        Self {
            dynamics,
            problem,
            free,
            lagrangian: Lagrangian {
                multipliers: Multipliers::new(count, n, penalty),
                bounds,
            },
            scale,
            curvature: None,
            trial: Trial {
                at: DVector::from_element(n, f64::NAN),
                value: f64::INFINITY,
                trajectory: trajectory.clone(),
                evaluation: evaluation.clone(),
            },
            work,
            sweep: Sweep::new(dynamics, &trajectory),
            trajectory,
            relations: relations(problem, &evaluation),
            evaluation,
            forces: vec![0.0; count],
            at: DVector::from_element(n, f64::NAN),
            value: f64::NAN,
            gradient: None,
            raw: vec![0.0; n - problem.guess.len()],
            first_penalty: penalty,
            failed: None,
            steps: 0,
            sweeps: 0,
        }
    }

    /// The problem's guess as scaled decisions.
    pub fn guess(&self) -> Param {
        self.scaled(&self.problem.guess, &self.problem.parameters)
    }

    /// Controls and parameters as scaled decisions.
    fn scaled(&self, controls: &[f64], parameters: &[f64]) -> Param {
        let free = self.free.iter().map(|&i| &parameters[i]);
        let all = controls.iter().chain(free).zip(&self.scale);
        DVector::from_iterator(self.scale.len(), all.map(|(v, s)| s.inverse(*v)))
    }

    /// Weight of the constraints.
    pub fn penalty(&self) -> f64 {
        self.lagrangian.multipliers.penalty
    }

    /// Multipliers and penalties.
    pub fn multipliers(&self) -> &Multipliers {
        &self.lagrangian.multipliers
    }

    /// A point to keep: the scaled decisions `v`, unscaled.
    pub fn point(&self, v: &Param) -> Point {
        let mut unscaled: Vec<f64> = v
            .iter()
            .zip(&self.scale)
            .map(|(v, s)| s.value(*v))
            .collect();
        let free = unscaled.split_off(self.problem.guess.len());
        let mut parameters = self.problem.parameters.clone();
        for (&i, v) in self.free.iter().zip(free) {
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
    pub fn restore(&mut self, multipliers: &Multipliers, v: &Param) {
        self.lagrangian.multipliers = multipliers.clone();
        self.roll(v);
        self.forget();
    }

    /// Simulates and evaluates at the scaled decisions `v`.
    pub fn roll(&mut self, v: &Param) {
        self.at.copy_from(v);
        self.failed = self.try_out(&DVector::zeros(v.len()), &[], 0.0).err();
        self.accept();
    }

    /// Simulates and evaluates a step of `length` along the change `d` of the scaled decisions, into the trial. Where
    /// the system leaves its `response` to `d` the feedback of the curvature leads it back; without a response the step
    /// is `d` itself.
    pub fn try_out(
        &mut self,
        d: &Param,
        response: &[DVector<f64>],
        length: f64,
    ) -> Result<f64, StepError> {
        let (trial, old, scale) = (&mut self.trial, &self.trajectory, &self.scale);
        let (m, controls) = (self.dynamics.dims().nu, self.problem.guess.len());
        trial.value = f64::INFINITY;
        trial.at.copy_from(&self.at);
        trial.at.axpy(length, d, 1.0);
        let t = &mut trial.trajectory;
        for ((&i, v), s) in self
            .free
            .iter()
            .zip(trial.at.iter().skip(controls))
            .zip(&scale[controls..])
        {
            t.p[i] = s.value(*v);
        }
        let x0 = self.problem.start(self.dynamics, &t.p, &mut self.work)?;
        t.x[..x0.len()].copy_from_slice(&x0);
        let (curvature, dynamics, at) = (&self.curvature, self.dynamics, &mut trial.at);
        let mut change = DVector::zeros(dynamics.dims().ndx);
        let mut stats = RolloutStats::default();
        let rolled = t.roll_under(dynamics, &mut self.work, &mut stats, |knot, x, _, w, u| {
            let k = knot.k;
            let mut own = at.rows_mut(k * m, m);
            if let (Some(predicted), Some(c)) = (response.get(k), curvature) {
                let (frame, gain) = c.feedback(k);
                let change_of = change.as_mut_slice();
                dynamics.difference(knot, old.state(k), &old.p, frame, x, w, change_of);
                change.axpy(-length, predicted, 1.0);
                own.gemv(1.0, &gain, &change, 1.0);
            }
            for ((u, v), s) in u.iter_mut().zip(&own).zip(&scale[k * m..]) {
                *u = s.value(*v);
            }
        });
        self.steps += stats.steps as u64;
        rolled?;
        let trial = &mut self.trial;
        self.problem.evaluate(
            self.dynamics,
            &trial.trajectory,
            &mut self.work,
            &mut trial.evaluation,
        )?;
        let trial = &self.trial;
        self.trial.value = self.value_of(&trial.at, &trial.evaluation);
        Ok(self.trial.value)
    }

    /// Makes the trial the present point.
    pub fn accept(&mut self) {
        let trial = &mut self.trial;
        std::mem::swap(&mut self.at, &mut trial.at);
        std::mem::swap(&mut self.trajectory, &mut trial.trajectory);
        std::mem::swap(&mut self.evaluation, &mut trial.evaluation);
        self.value = trial.value;
        self.gradient = None;
    }

    /// The function changed: computes the value anew.
    fn forget(&mut self) {
        self.gradient = None;
        self.value = self.value_of(&self.at, &self.evaluation);
    }

    fn value_of(&self, at: &Param, evaluation: &Evaluation) -> f64 {
        let m = &self.lagrangian.multipliers;
        let mut value = evaluation.objective;
        for (i, l) in m.constraints.iter().enumerate() {
            let force = self.force_of(i, evaluation);
            value += (force * force - l * l) / (2.0 * m.penalty);
        }
        for (i, v) in at.iter().enumerate() {
            let (lower, upper) = self.lagrangian.pressure(i, *v);
            let squares =
                lower * lower - m.lower[i] * m.lower[i] + upper * upper - m.upper[i] * m.upper[i];
            value += squares / (2.0 * m.bound_penalty);
        }
        if value.is_finite() {
            value
        } else {
            f64::INFINITY
        }
    }

    /// Multiplier of constraint `i` as its penalty changes it: `l + rho c`, not negative for inequalities.
    fn force(&self, i: usize) -> f64 {
        self.force_of(i, &self.evaluation)
    }

    fn force_of(&self, i: usize, evaluation: &Evaluation) -> f64 {
        let m = &self.lagrangian.multipliers;
        let force = m.constraints[i] + m.penalty * evaluation.constraints[i];
        if self.relations[i] {
            force
        } else {
            force.max(0.0)
        }
    }

    /// Gradient by the scaled decisions at the point last simulated.
    pub fn gradient(&mut self) -> Result<Param, StepError> {
        if let Some(g) = &self.gradient {
            return Ok(g.clone());
        }
        for i in 0..self.forces.len() {
            self.forces[i] = self.force(i);
        }
        self.sweeps += 1;
        let (problem, dynamics, trajectory) = (self.problem, self.dynamics, &self.trajectory);
        let (forces, evaluation) = (&self.forces, &mut self.evaluation);
        self.sweep
            .run(dynamics, trajectory, &mut self.work, |at, w, out, y| {
                problem.pull(dynamics, trajectory, forces, evaluation, at, w, out, y)
            })?;
        let by_parameters = if self.free.is_empty() {
            vec![]
        } else {
            problem.by_parameters(dynamics, &trajectory.p, &self.sweep, &mut self.work)?
        };
        let by_controls = &self.sweep.u[..problem.guess.len()];
        let free = self.free.iter().map(|&i| &by_parameters[i]);
        for (raw, g) in self.raw.iter_mut().zip(free.clone()) {
            *raw = *g;
        }
        let slopes = self.scale.iter().zip(&self.at).map(|(s, v)| s.slope(*v));
        let all = by_controls.iter().chain(free).zip(slopes);
        let mut g = DVector::from_iterator(self.scale.len(), all.map(|(g, s)| g * s));
        for (i, v) in self.at.iter().enumerate() {
            let (lower, upper) = self.lagrangian.pressure(i, *v);
            g[i] += upper - lower;
        }
        self.gradient = Some(g.clone());
        Ok(g)
    }

    /// Largest violation at the point last simulated, in the units of constraints, controls and parameters.
    pub fn violation(&self) -> f64 {
        self.problem
            .violation(&self.evaluation, &self.trajectory.u, &self.trajectory.p)
    }

    /// Names what is violated by more than `tolerance` at the point last simulated, and by how much.
    pub fn violated(&self, tolerance: f64) -> String {
        self.problem
            .violated(self.dynamics, &self.evaluation, &self.trajectory, tolerance)
            .join(", ")
    }

    /// What the curvature still promises to gain, `1/2 g' H^-1 g`, relative to the size of the function: the measure of
    /// optimality. Independent of units and scaling.
    pub fn promise(&mut self, tolerance: f64) -> Result<f64, StepError> {
        let gradient = self.gradient()?;
        let promised = 0.5 * gradient.dot(&self.newton(&gradient));
        let violation = self.violation().max(tolerance);
        let size = self.evaluation.objective.abs() + 0.5 * self.penalty() * violation * violation;
        Ok(promised / size)
    }

    /// What inequalities and bounds with a multiplier still hold back although there is room, relative to the size of
    /// the objective: zero where multiplier and room exclude each other, as at an optimum.
    pub fn gap(&self) -> f64 {
        let constraints = self.evaluation.constraints.iter().enumerate();
        let inequalities = constraints.filter(|(i, _)| !self.relations[*i]);
        let mut held = inequalities.fold(0.0, |sum, (i, c)| sum + self.force(i) * (-c).max(0.0));
        for (i, v) in self.at.iter().enumerate() {
            let (l, u) = self.lagrangian.bounds[i];
            for (pressure, room) in <[_; 2]>::from(self.lagrangian.pressure(i, *v))
                .into_iter()
                .zip([v - l, u - v])
                .filter(|(pressure, _)| *pressure > 0.0)
            {
                held += pressure * room.max(0.0);
            }
        }
        held / self.evaluation.objective.abs().max(f64::MIN_POSITIVE)
    }

    /// First-order update of the multipliers, then penalties times `growth`.
    pub fn update(&mut self, growth: f64) {
        for i in 0..self.forces.len() {
            self.lagrangian.multipliers.constraints[i] = self.force(i);
        }
        let a = &mut self.lagrangian;
        for (i, v) in self.at.iter().enumerate() {
            let (lower, upper) = a.pressure(i, *v);
            (a.multipliers.lower[i], a.multipliers.upper[i]) = (lower, upper);
        }
        a.multipliers.penalty *= growth;
        a.multipliers.bound_penalty *= growth;
        self.forget();
    }

    /// Sets the scale of the penalties, of the bounds' by the curvature of the objective, at the point last simulated.
    pub fn calibrate(&mut self) -> Result<(), StepError> {
        if let Some(scale) = self.problem.penalty_scale(&self.evaluation) {
            self.lagrangian.multipliers.penalty *= scale;
        }
        self.first_penalty = self.lagrangian.multipliers.penalty;
        self.forget();
        self.curve()?;
        let mut diagonal = self.curvature.as_ref().map_or(vec![], Curvature::diagonal);
        diagonal.sort_by(f64::total_cmp);
        if let Some(median) = diagonal.get(diagonal.len() / 2).filter(|m| **m > 0.0) {
            self.lagrangian.multipliers.bound_penalty = 10.0 * median;
        }
        self.forget();
        Ok(())
    }

    /// Computes the Gauss-Newton curvature at the present point, and factors it.
    pub fn curve(&mut self) -> Result<(), StepError> {
        let acts = |i: usize| self.relations[i] || self.force(i) > 0.0;
        let constraints: Vec<f64> = (0..self.forces.len())
            .map(|i| if acts(i) { self.penalty() } else { 0.0 })
            .collect();
        let decisions = self.scale.iter().zip(&self.at);
        let slopes: Vec<f64> = decisions.clone().map(|(s, v)| s.slope(*v)).collect();
        let mut own = vec![0.0; self.at.len()];
        for (i, (s, v)) in decisions.enumerate() {
            let (lower, upper) = self.lagrangian.pressure(i, *v);
            if lower > 0.0 || upper > 0.0 {
                own[i] = self.lagrangian.multipliers.bound_penalty;
            }
            // where a bound presses the map bends, and nothing else does
            if let Some(j) = i.checked_sub(self.problem.guess.len()) {
                own[i] += (self.raw[j] * s.bend(*v)).max(0.0);
            }
        }
        let weights = Weights {
            constraints: &constraints,
            slopes: &slopes,
            own: &own,
        };
        self.curvature = Some(Curvature::new(
            self.dynamics,
            self.problem,
            &self.trajectory,
            &weights,
            &mut self.work,
        )?);
        Ok(())
    }

    /// Factors the curvature with another damping.
    pub fn damp(&mut self, damping: f64) {
        if let Some(c) = &mut self.curvature {
            c.factor(damping);
        }
    }

    /// `d' H d` with the curvature last computed.
    pub fn square(&self, d: &Param) -> f64 {
        self.curvature.as_ref().map_or(0.0, |c| c.square(d))
    }

    /// `H^-1 g` with the curvature `H` last factored.
    pub fn newton(&self, g: &Param) -> Param {
        self.curvature
            .as_ref()
            .map_or_else(|| g.clone(), |c| c.solve(g))
    }

    /// What a change of the decisions does to the states, to first order.
    pub fn response(&self, d: &Param) -> Vec<DVector<f64>> {
        self.curvature.as_ref().map_or(vec![], |c| c.response(d))
    }

    /// The guess, as far as it can be simulated.
    pub fn reached(&mut self) -> Trajectory {
        let before = self.steps;
        self.roll(&self.guess());
        let mut reached = self.trajectory.clone();
        if self.failed.is_some() {
            reached.truncate((self.steps - before) as usize);
        }
        reached
    }

    /// The trajectory of a point, if it can be simulated.
    pub fn simulated(&mut self, point: &Point) -> Option<Trajectory> {
        let start = self
            .problem
            .start(self.dynamics, &point.parameters, &mut self.work);
        let mut t = Trajectory::new(self.dynamics, self.problem.intervals.clone(), &start.ok()?);
        t.u.copy_from_slice(&point.controls);
        t.p.copy_from_slice(&point.parameters);
        let rolled = t.roll(self.dynamics, &mut self.work, &mut RolloutStats::default());
        rolled.is_ok().then_some(t)
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
