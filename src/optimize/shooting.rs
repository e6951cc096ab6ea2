//! Single shooting: the controls are the unknowns, the states follow by simulation, gradients by the reverse sweep.
//!
//! Minimizes `J(u)` subject to `c(u) = 0` and bounds on the controls by an augmented Lagrangian (Nocedal and Wright,
//! Numerical Optimization, 2006, chapter 17):
//!
//! ```text
//! L = s J + sum_i ( l_i c_i + rho/2 c_i^2 ) + sum_j ( max(0, m_j + rho g_j)^2 - m_j^2 ) / (2 rho)
//! ```
//!
//! with `g` the bounds of the scaled controls, each round minimized by argmin's L-BFGS with the line search of More and
//! Thuente. `s` brings the gradient at the guess to one. One argmin iteration is one L-BFGS iteration; between rounds
//! the multipliers move and the penalty grows where the violation did not fall to a quarter.

use super::{Iteration, Status};
use crate::control::{Evaluation, Problem};
use crate::dynamics::{Observe, StepError};
use crate::rollout::{RolloutStats, Sweep, Trajectory};
use argmin::core::observers::{Observe as Observer, ObserverMode};
use argmin::core::{
    CostFunction, Error, Executor, Gradient, IterState, KV, Problem as Counted, Solver, State,
    TerminationReason, TerminationStatus,
};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;
use nalgebra::DVector;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// Largest component of the augmented Lagrangian's gradient, relative to the objective's at the guess.
    pub optimality: f64,
    /// L-BFGS iterations of all rounds.
    pub max_iterations: u64,
    /// Pairs that L-BFGS remembers.
    pub memory: usize,
    /// First penalty weight of the scaled problem.
    pub penalty: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-4,
            max_iterations: 5000,
            memory: 30,
            penalty: 10.0,
        }
    }
}

/// What a solve found.
#[derive(Clone, Debug)]
pub struct Solution {
    /// How it ended.
    pub status: Status,
    /// Why, in words, unless it converged.
    pub reason: String,
    /// The best trajectory.
    pub trajectory: Trajectory,
    /// Objective without penalties.
    pub objective: f64,
    /// Largest violation of a constraint or bound.
    pub violation: f64,
    /// Largest component of the gradient of the augmented Lagrangian.
    pub optimality: f64,
    /// L-BFGS iterations.
    pub iterations: u64,
    /// Steps simulated.
    pub step_evaluations: u64,
    /// Reverse sweeps.
    pub gradient_evaluations: u64,
    /// One entry an iteration, the guess first.
    pub history: Vec<Iteration>,
}

type Param = DVector<f64>;
/// The state argmin's executor keeps and observers see.
pub type ShootingState = IterState<Param, Param, (), (), (), f64>;
type Lbfgs = LBFGS<MoreThuenteLineSearch<Param, Param, f64>, Param, Param, f64>;

/// Multipliers and what they weigh.
#[derive(Clone, Debug)]
struct Lagrangian {
    scale: f64,
    penalty: f64,
    equality: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

/// The augmented Lagrangian as argmin sees it: a function of the scaled controls.
pub struct Augmented<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    /// Width that one unit of the scaled control stands for.
    scale: Vec<f64>,
    lagrangian: Lagrangian,
    inner: RefCell<Inner<D>>,
    stop: &'a AtomicBool,
}

struct Inner<D: Observe> {
    work: D::Work,
    trajectory: Trajectory,
    sweep: Sweep,
    evaluation: Evaluation,
    multipliers: Vec<f64>,
    /// The point of `value`, and of the evaluation, if the rollout succeeded there.
    at: Param,
    value: f64,
    failed: Option<StepError>,
    /// A value that stands for rollouts that fail: clearly worse than the start, yet not so large that the line
    /// search's interpolation breaks down.
    wall: f64,
    steps: u64,
    sweeps: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

impl<'a, D: Observe> Augmented<'a, D> {
    fn new(dynamics: &'a D, problem: &'a Problem, options: &Options, stop: &'a AtomicBool) -> Self {
        let trajectory = Trajectory::new(dynamics, problem.intervals.clone(), &problem.x0);
        let width = |&(l, u): &(f64, f64)| {
            let w = 0.5 * (u - l);
            if w.is_finite() { w } else { 1.0 }
        };
        let n = problem.guess.len();
        Self {
            dynamics,
            problem,
            scale: problem.bounds.iter().map(width).collect(),
            lagrangian: Lagrangian {
                scale: 1.0,
                penalty: options.penalty,
                equality: vec![0.0; problem.constraints.len()],
                lower: vec![0.0; n],
                upper: vec![0.0; n],
            },
            inner: RefCell::new(Inner {
                work: dynamics.work(),
                sweep: Sweep::new(dynamics, &trajectory),
                trajectory,
                evaluation: problem.evaluation(),
                multipliers: vec![0.0; problem.constraints.len()],
                at: DVector::from_element(n, f64::NAN),
                value: f64::NAN,
                failed: None,
                wall: f64::INFINITY,
                steps: 0,
                sweeps: 0,
            }),
            stop,
        }
    }

    fn scaled(&self, u: &[f64]) -> Param {
        DVector::from_iterator(u.len(), u.iter().zip(self.scale.iter().cycle()).map(|(u, s)| u / s))
    }

    /// Violations of the bounds of the scaled control `i`: lower, upper.
    fn bound_violation(&self, i: usize, v: f64) -> (f64, f64) {
        let c = i % self.scale.len();
        let (l, h) = self.problem.bounds[c];
        let s = self.scale[c];
        (l / s - v, v - h / s)
    }

    /// Rolls out and evaluates at `v`, unless that was the last point.
    fn roll(&self, v: &Param) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        if inner.at == *v {
            return Ok(());
        }
        for ((u, v), s) in inner.trajectory.u.iter_mut().zip(v.iter()).zip(self.scale.iter().cycle()) {
            *u = v * s;
        }
        let mut stats = RolloutStats::default();
        let rolled = inner
            .trajectory
            .roll(self.dynamics, &mut inner.work, &mut stats)
            .and_then(|()| {
                self.problem.evaluate(self.dynamics, &inner.trajectory, &mut inner.work, &mut inner.evaluation)
            });
        inner.steps += stats.steps as u64;
        inner.at.copy_from(v);
        inner.failed = rolled.err();
        inner.value = self.value(inner);
        Ok(())
    }

    /// The augmented Lagrangian at the point last rolled out.
    fn value(&self, inner: &Inner<D>) -> f64 {
        if inner.failed.is_some() {
            return inner.wall;
        }
        let a = &self.lagrangian;
        let mut value = a.scale * inner.evaluation.objective;
        for (c, l) in inner.evaluation.constraints.iter().zip(&a.equality) {
            value += l * c + 0.5 * a.penalty * c * c;
        }
        for (i, v) in inner.at.iter().enumerate() {
            let (lower, upper) = self.bound_violation(i, *v);
            for (g, m) in [(lower, a.lower[i]), (upper, a.upper[i])] {
                // a bound that does not exist has g = -inf
                let active = (m + a.penalty * g).max(0.0);
                value += (active * active - m * m) / (2.0 * a.penalty);
            }
        }
        if value.is_finite() { value } else { inner.wall }
    }

    /// Violation at the point last rolled out.
    fn violation(&self, inner: &Inner<D>) -> f64 {
        self.problem.violation(&inner.evaluation.constraints, &inner.trajectory.u)
    }

    /// First-order update of the multipliers.
    fn update_multipliers(&mut self) {
        let inner = self.inner.borrow();
        let rho = self.lagrangian.penalty;
        let mut a = self.lagrangian.clone();
        for (l, c) in a.equality.iter_mut().zip(&inner.evaluation.constraints) {
            *l += rho * c;
        }
        for (i, v) in inner.at.iter().enumerate() {
            let (lower, upper) = self.bound_violation(i, *v);
            a.lower[i] = (a.lower[i] + rho * lower).max(0.0);
            a.upper[i] = (a.upper[i] + rho * upper).max(0.0);
        }
        drop(inner);
        self.lagrangian = a;
        self.forget();
    }

    /// The function changed: values kept are of the old one.
    fn forget(&mut self) {
        let mut inner = self.inner.borrow_mut();
        inner.value = self.value(&inner);
    }
}

impl<D: Observe> CostFunction for Augmented<'_, D> {
    type Param = Param;
    type Output = f64;

    fn cost(&self, v: &Param) -> Result<f64, Error> {
        self.roll(v)?;
        Ok(self.inner.borrow().value)
    }
}

impl<D: Observe> Gradient for Augmented<'_, D> {
    type Param = Param;
    type Gradient = Param;

    fn gradient(&self, v: &Param) -> Result<Param, Error> {
        self.roll(v)?;
        let mut inner = self.inner.borrow_mut();
        let Inner { work, trajectory, sweep, evaluation, multipliers, failed, sweeps, .. } = &mut *inner;
        if failed.is_some() {
            // the wall is flat
            return Ok(DVector::zeros(v.len()));
        }
        let a = &self.lagrangian;
        // the sweep differentiates J + sum multiplier c; both are scaled at the end
        for (m, (l, c)) in multipliers.iter_mut().zip(a.equality.iter().zip(&evaluation.constraints)) {
            *m = (l + a.penalty * c) / a.scale;
        }
        *sweeps += 1;
        sweep.run(self.dynamics, trajectory, work, |_, at, w, out| {
            self.problem.pull(self.dynamics, trajectory, multipliers, evaluation, at, w, out)
        })?;
        let mut gradient = DVector::from_iterator(
            v.len(),
            sweep.u.iter().zip(self.scale.iter().cycle()).map(|(g, s)| g * s * a.scale),
        );
        for (i, v) in v.iter().enumerate() {
            let (lower, upper) = self.bound_violation(i, *v);
            gradient[i] += (a.upper[i] + a.penalty * upper).max(0.0) - (a.lower[i] + a.penalty * lower).max(0.0);
        }
        Ok(gradient)
    }
}

/// The argmin solver: L-BFGS iterations with rounds of multiplier updates between them.
pub struct Shooting {
    options: Options,
    inner: Lbfgs,
    /// Iterations since L-BFGS was restarted.
    since_restart: u64,
    round: u64,
    /// Gradient tolerance of the round.
    round_tolerance: f64,
    last_violation: f64,
    best: Option<Best>,
    history: Vec<Iteration>,
    status: Option<(Status, String)>,
    restarts_in_place: u32,
}

/// The iterate to keep: feasible ones before infeasible ones, then by objective.
#[derive(Clone, Debug)]
struct Best {
    v: Param,
    violation: f64,
    objective: f64,
    optimality: f64,
}

impl Best {
    fn is_better_than(&self, other: &Self, tolerance: f64) -> bool {
        match (self.violation <= tolerance, other.violation <= tolerance) {
            (true, true) => self.objective < other.objective,
            (a, b) if a != b => a,
            _ => self.violation < other.violation,
        }
    }
}

impl Shooting {
    /// With the given settings.
    pub fn new(options: Options) -> Self {
        Self {
            inner: lbfgs(&options),
            options,
            since_restart: 0,
            round: 0,
            round_tolerance: options.optimality.max(1e-2),
            last_violation: f64::INFINITY,
            best: None,
            history: vec![],
            status: None,
            restarts_in_place: 0,
        }
    }

    fn record<D: Observe>(&mut self, p: &Augmented<D>, v: &Param, optimality: f64, step_length: f64) -> KV {
        let inner = p.inner.borrow();
        let row = Iteration {
            iteration: self.history.len() as u64,
            objective: inner.evaluation.objective,
            violation: p.violation(&inner),
            optimality,
            step_length,
            regularization: p.lagrangian.penalty,
        };
        let candidate = Best {
            v: v.clone(),
            violation: row.violation,
            objective: row.objective,
            optimality,
        };
        if self.best.as_ref().is_none_or(|b| candidate.is_better_than(b, self.options.tolerance)) {
            self.best = Some(candidate);
        }
        let kv = argmin::kv!(
            "objective" => row.objective;
            "violation" => row.violation;
            "optimality" => row.optimality;
            "step_length" => row.step_length;
            "regularization" => row.regularization;
        );
        self.history.push(row);
        kv
    }

    fn restart(&mut self) {
        self.inner = lbfgs(&self.options);
        self.since_restart = 0;
    }

    /// The end of a round: converged, or new multipliers.
    fn finish_round<D: Observe>(&mut self, p: &mut Augmented<D>, optimality: f64) {
        let violation = p.violation(&p.inner.borrow());
        let o = &self.options;
        if violation <= o.tolerance && optimality <= o.optimality {
            self.status = Some((Status::Converged, String::new()));
            return;
        }
        if p.lagrangian.penalty > 1e12 {
            self.status = Some((
                Status::Infeasible,
                format!("the violation stays at {violation:.3e} although its penalty grew to {:.0e}", p.lagrangian.penalty),
            ));
            return;
        }
        p.update_multipliers();
        if violation > 0.25 * self.last_violation && violation > o.tolerance {
            p.lagrangian.penalty *= 10.0;
        }
        p.forget();
        self.last_violation = violation;
        self.round += 1;
        self.round_tolerance = (self.round_tolerance * 0.1).max(o.optimality);
        self.restart();
    }
}

fn lbfgs(options: &Options) -> Lbfgs {
    LBFGS::new(MoreThuenteLineSearch::new(), options.memory)
        .with_tolerance_grad(0.0)
        .and_then(|l| l.with_tolerance_cost(0.0))
        .expect("zero is a valid tolerance: rounds end by their own rules")
}

impl<D: Observe> Solver<Augmented<'_, D>, ShootingState> for Shooting {
    fn name(&self) -> &str {
        "single shooting"
    }

    fn init(
        &mut self,
        problem: &mut Counted<Augmented<'_, D>>,
        state: ShootingState,
    ) -> Result<(ShootingState, Option<KV>), Error> {
        let v = state.get_param().cloned().unwrap_or_default();
        let p = problem.problem.as_mut().ok_or_else(|| Error::msg("the problem is missing"))?;
        p.cost(&v)?;
        if let Some(e) = p.inner.borrow().failed.clone() {
            self.status = Some((Status::Diverged, format!("the guess cannot be simulated: {e}")));
            return Ok((state.param(v), None));
        }
        // bring the gradient at the guess to one, so that penalty and tolerances mean the same for every problem
        let equality = std::mem::take(&mut p.lagrangian.penalty);
        p.lagrangian.penalty = f64::MIN_POSITIVE;
        let size = p.gradient(&v)?.amax();
        p.lagrangian.penalty = equality;
        if size > 0.0 && size.is_finite() {
            p.lagrangian.scale = (1.0 / size).clamp(1e-6, 1e6);
        }
        p.forget();
        let value = p.cost(&v)?;
        p.inner.borrow_mut().wall = 10.0 * (1.0 + value.abs());
        let state = state.param(v.clone());
        let (state, _) = self.inner.init(problem, state)?;
        let optimality = state.get_gradient().map_or(f64::NAN, |g| g.amax());
        let p = problem.problem.as_ref().ok_or_else(|| Error::msg("the problem is missing"))?;
        let kv = self.record(p, &v, optimality, 0.0);
        Ok((state, Some(kv)))
    }

    fn next_iter(
        &mut self,
        problem: &mut Counted<Augmented<'_, D>>,
        state: ShootingState,
    ) -> Result<(ShootingState, Option<KV>), Error> {
        let before = state.get_param().cloned().unwrap_or_default();
        let fallback = state.clone();
        let stepped = self.inner.next_iter(problem, state);
        self.since_restart += 1;
        let (mut state, moved) = match stepped {
            // L-BFGS reports a failed line search as an end without error
            Ok((s, _)) if !s.terminated() => (s, true),
            Ok(_) => (fallback, false),
            Err(e) if e.is::<Interrupted>() => {
                self.status = Some((Status::Interrupted, "stopped from outside".into()));
                return Ok((fallback, None));
            }
            Err(_) => (fallback, false),
        };
        let p = problem.problem.as_mut().ok_or_else(|| Error::msg("the problem is missing"))?;
        let v = state.get_param().cloned().unwrap_or_default();
        // the line search's last trial need not be the point it chose
        let (value, gradient) = match p.cost(&v).and_then(|c| Ok((c, p.gradient(&v)?))) {
            Ok(both) => both,
            Err(e) if e.is::<Interrupted>() => {
                self.status = Some((Status::Interrupted, "stopped from outside".into()));
                return Ok((fallback_state(state, v), None));
            }
            Err(e) => return Err(e),
        };
        let optimality = gradient.amax();
        let length = (&v - &before).norm();
        let kv = self.record(p, &v, optimality, length);
        let progress = moved && length > 0.0;
        if progress {
            self.restarts_in_place = 0;
        }
        if optimality <= self.round_tolerance || (!progress && self.since_restart > 1) || (!progress && self.restarts_in_place > 0) {
            let round = self.round;
            self.finish_round(p, optimality);
            if !progress && self.round == round + 1 {
                self.restarts_in_place += 1;
                if self.restarts_in_place > 8 {
                    let violation = p.violation(&p.inner.borrow());
                    let reason = format!("no step makes progress any more; violation {violation:.3e}, gradient {optimality:.3e}");
                    let status = if violation > self.options.tolerance { Status::Infeasible } else { Status::Diverged };
                    self.status = Some((status, reason));
                }
            }
            let value = p.cost(&v)?;
            let gradient = p.gradient(&v)?;
            state = ShootingState::new().param(v).cost(value).gradient(gradient).carry(&state);
        } else if !progress {
            self.restarts_in_place += 1;
            self.restart();
            state = ShootingState::new().param(v).cost(value).gradient(gradient).carry(&state);
        }
        Ok((state, Some(kv)))
    }

    fn terminate(&mut self, state: &ShootingState) -> TerminationStatus {
        if self.status.is_none() && state.get_iter() >= self.options.max_iterations {
            self.status = Some((
                Status::MaxIterations,
                format!("{} iterations were not enough", self.options.max_iterations),
            ));
        }
        match &self.status {
            None => TerminationStatus::NotTerminated,
            Some((Status::Converged, _)) => TerminationStatus::Terminated(TerminationReason::SolverConverged),
            Some((Status::Interrupted, _)) => TerminationStatus::Terminated(TerminationReason::Interrupt),
            Some((Status::MaxIterations, _)) => TerminationStatus::Terminated(TerminationReason::MaxItersReached),
            Some((_, why)) => TerminationStatus::Terminated(TerminationReason::SolverExit(why.clone())),
        }
    }
}

fn fallback_state(state: ShootingState, v: Param) -> ShootingState {
    state.param(v)
}

/// Keeps the count of iterations of an old state in a new one.
trait Carry {
    fn carry(self, old: &Self) -> Self;
}

impl Carry for ShootingState {
    fn carry(mut self, old: &Self) -> Self {
        self.iter = old.iter;
        self.max_iters = old.max_iters;
        self.counts = old.counts.clone();
        self.time = old.time;
        self
    }
}

/// Solves a problem; `observer` sees every iteration, `stop` ends the solve with the best iterate.
///
/// # Errors
/// Only what argmin itself reports; how the solve ended is in [`Solution::status`].
pub fn solve<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    options: Options,
    observer: impl Observer<ShootingState> + 'static,
    stop: &AtomicBool,
) -> Result<Solution, Error> {
    let augmented = Augmented::new(dynamics, problem, &options, stop);
    let guess = augmented.scaled(&problem.guess);
    let result = Executor::new(augmented, Shooting::new(options))
        .configure(|state| state.param(guess.clone()).max_iters(u64::MAX))
        .timer(false)
        .ctrlc(false)
        .add_observer(observer, ObserverMode::Always)
        .run()?;
    let solver = result.solver;
    let p = result.problem.problem.ok_or_else(|| Error::msg("the problem is missing"))?;
    let (status, reason) = solver.status.unwrap_or((Status::Diverged, String::new()));
    let mut inner = p.inner.into_inner();
    let best = solver.best.unwrap_or(Best {
        v: guess,
        violation: f64::INFINITY,
        objective: f64::INFINITY,
        optimality: f64::INFINITY,
    });
    // leave the best iterate's trajectory behind, as far as it can be simulated
    for ((u, v), s) in inner.trajectory.u.iter_mut().zip(best.v.iter()).zip(p.scale.iter().cycle()) {
        *u = v * s;
    }
    let mut stats = RolloutStats::default();
    if inner.trajectory.roll(dynamics, &mut inner.work, &mut stats).is_err() {
        inner.trajectory.truncate(stats.steps);
    }
    Ok(Solution {
        status,
        reason,
        trajectory: inner.trajectory,
        objective: best.objective,
        violation: best.violation,
        optimality: best.optimality,
        iterations: solver.history.len().saturating_sub(1) as u64,
        step_evaluations: inner.steps,
        gradient_evaluations: inner.sweeps,
        history: solver.history,
    })
}
