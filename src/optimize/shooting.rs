//! Single shooting: controls and free parameters are the unknowns, the states follow by simulation, gradients by the
//! reverse sweep.
//!
//! Constraints at any knot and bounds enter by an augmented Lagrangian, each round of which is minimized by argmin's L-BFGS with the line search of More and Thuente. Sensitivities of a swing-up span many orders of
//! magnitude, on which L-BFGS alone takes thousands of iterations; it therefore works in the coordinates `v` of
//! `u = u_ref + L^-T v`, where `L L'` is the Gauss-Newton curvature of the augmented Lagrangian, made anew every
//! [`Options::refresh`] iterations. One argmin iteration is one L-BFGS iteration; between rounds the multipliers move,
//! and the penalty grows where the violation did not fall to a quarter.

pub use super::Solution;
use super::augmented::{Augmented, Param};
use super::checkpoint::{Checkpoint, Checkpoints, Incumbent};
use super::{Iteration, IterationState, Status};
use crate::control::Problem;
use crate::dynamics::Observe;
use argmin::core::observers::{Observe as Observer, ObserverMode};
use argmin::core::{
    CostFunction, Error, Executor, Gradient, KV, Problem as Counted, Solver, State,
    TerminationReason, TerminationStatus,
};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;
use nalgebra::DVector;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// What the curvature still promises to gain, relative to the objective: `1/2 g' H^-1 g / |J|`.
    pub optimality: f64,
    /// L-BFGS iterations of all rounds; a solve that goes on may make as many again.
    pub max_iterations: u64,
    /// Pairs that L-BFGS remembers.
    pub memory: usize,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess.
    pub penalty: f64,
    /// Iterations between two computations of the curvature.
    pub refresh: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 5000,
            memory: 10,
            penalty: 0.1,
            refresh: 3,
        }
    }
}

/// The state argmin's executor keeps and observers see.
pub type ShootingState = IterationState;
type Lbfgs = LBFGS<MoreThuenteLineSearch<Param, Param, f64>, Param, Param, f64>;

#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// What argmin is given; shared, because L-BFGS drops its problem when a line search fails.
pub struct Handle<'a, D: Observe> {
    function: Rc<RefCell<Augmented<'a, D>>>,
    stop: &'a AtomicBool,
}

impl<D: Observe> Clone for Handle<'_, D> {
    fn clone(&self) -> Self {
        Self {
            function: Rc::clone(&self.function),
            stop: self.stop,
        }
    }
}

impl<D: Observe> Handle<'_, D> {
    /// Simulates at the coordinates `v`, unless asked to stop.
    fn roll(&self, v: &Param) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        let mut p = self.function.borrow_mut();
        let decisions = p.coordinates.decisions(v);
        p.roll(&decisions);
        Ok(())
    }
}

impl<D: Observe> CostFunction for Handle<'_, D> {
    type Param = Param;
    type Output = f64;

    fn cost(&self, v: &Param) -> Result<f64, Error> {
        self.roll(v)?;
        Ok(self.function.borrow().value)
    }
}

impl<D: Observe> Gradient for Handle<'_, D> {
    type Param = Param;
    type Gradient = Param;

    fn gradient(&self, v: &Param) -> Result<Param, Error> {
        self.roll(v)?;
        let mut p = self.function.borrow_mut();
        let gradient = p.gradient()?;
        Ok(p.coordinates.gradient(gradient))
    }
}

/// The argmin solver: L-BFGS iterations with rounds of multiplier updates between them.
pub struct Shooting<'c> {
    options: Options,
    checkpoints: Checkpoints<'c>,
    inner: Lbfgs,
    /// Iterations since L-BFGS was restarted.
    since_restart: u64,
    /// Restarts in a row without a step.
    stuck: u32,
    /// Gradient tolerance of the round.
    round_tolerance: f64,
    /// Violation at the end of the last round.
    last_violation: f64,
    /// The point last recorded; after an interruption others may have been tried.
    iterate: Option<Param>,
    best: Option<Best>,
    history: Vec<Iteration>,
    status: Option<(Status, String)>,
}

/// The iterate to keep: feasible ones before infeasible ones, then by objective or violation.
#[derive(Clone, Debug)]
struct Best {
    decisions: Param,
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

/// What is left to do after an iteration.
enum Next {
    Continue,
    Restart,
    Finished,
}

/// As the command line and checkpoints call it.
pub const NAME: &str = "shooting";

impl<'c> Shooting<'c> {
    /// With the given settings.
    pub fn new(options: Options, checkpoints: Checkpoints<'c>) -> Self {
        Self {
            inner: lbfgs(&options),
            options,
            checkpoints,
            since_restart: 0,
            stuck: 0,
            round_tolerance: options.optimality.max(1e-2),
            last_violation: f64::INFINITY,
            iterate: None,
            best: None,
            history: vec![],
            status: None,
        }
    }

    /// Notes the point last rolled out.
    fn record<D: Observe>(&mut self, p: &Augmented<D>, optimality: f64, step_length: f64) -> KV {
        let row = Iteration {
            iteration: self.history.len() as u64,
            objective: p.evaluation.objective,
            violation: p.violation(),
            optimality,
            step_length,
            regularization: p.penalty(),
        };
        self.iterate = Some(p.at.clone());
        let candidate = Best {
            decisions: p.at.clone(),
            violation: row.violation,
            objective: row.objective,
            optimality,
        };
        let converged = matches!(self.status, Some((Status::Converged, _)));
        if converged
            || self
                .best
                .as_ref()
                .is_none_or(|b| candidate.is_better_than(b, self.options.tolerance))
        {
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

    /// Where the solve stands.
    fn checkpoint<D: Observe>(&self, p: &Augmented<D>) -> Checkpoint {
        Checkpoint {
            method: NAME.into(),
            problem: String::new(),
            status: self.status.as_ref().map(|(s, _)| *s),
            point: p.point(self.iterate.as_ref().unwrap_or(&p.guess())),
            best: self.best.as_ref().map(|b| Incumbent {
                point: p.point(&b.decisions),
                objective: b.objective,
                violation: b.violation,
                optimality: b.optimality,
            }),
            multipliers: p.multipliers().clone(),
            round_tolerance: self.round_tolerance,
            last_violation: self
                .last_violation
                .is_finite()
                .then_some(self.last_violation),
            regularization: 0.0,
            step_evaluations: p.steps,
            gradient_evaluations: p.sweeps,
            history: self.history.clone(),
        }
    }

    /// Goes on where a solve stood; `false` if it had converged.
    fn resume<D: Observe>(&mut self, c: Checkpoint, p: &mut Augmented<D>) -> bool {
        (p.steps, p.sweeps) = (c.step_evaluations, c.gradient_evaluations);
        let converged = c.has_converged(self.options.tolerance, self.options.optimality);
        self.best = c.best.map(|b| Best {
            decisions: p.decisions_of(&b.point),
            violation: b.violation,
            objective: b.objective,
            optimality: b.optimality,
        });
        self.round_tolerance = c.round_tolerance.max(self.options.optimality);
        self.last_violation = c.last_violation.unwrap_or(f64::INFINITY);
        self.history = c.history;
        let v = p.decisions_of(&c.point);
        self.iterate = Some(v.clone());
        if converged {
            self.status = Some((Status::Converged, String::new()));
            return false;
        }
        p.restore(&c.multipliers, &v);
        true
    }

    /// The end of a round: converged, infeasible, or new multipliers and penalties.
    fn finish_round<D: Observe>(
        &mut self,
        p: &mut Augmented<D>,
        violation: f64,
        optimality: f64,
    ) -> Next {
        let o = &self.options;
        if violation <= o.tolerance && optimality <= o.optimality && p.gap() <= o.optimality {
            self.status = Some((Status::Converged, String::new()));
            return Next::Finished;
        }
        if p.penalty() > 1e10 * p.first_penalty {
            let reason = format!(
                "these stay violated although the penalty grew to {:.0e}: {}; are they within reach?",
                p.penalty(),
                p.violated(o.tolerance)
            );
            self.status = Some((Status::Infeasible, reason));
            return Next::Finished;
        }
        let slow = violation > 0.25 * self.last_violation && violation > o.tolerance;
        p.update(if slow { 10.0 } else { 1.0 });
        self.last_violation = violation;
        self.round_tolerance = (self.round_tolerance * 0.1).max(o.optimality);
        Next::Restart
    }

    /// Decides after an iteration that reached the point last rolled out.
    fn decide<D: Observe>(&mut self, p: &mut Augmented<D>, optimality: f64, moved: bool) -> Next {
        let violation = p.violation();
        if optimality <= self.round_tolerance {
            self.stuck = 0;
            return self.finish_round(p, violation, optimality);
        }
        if moved {
            self.stuck = 0;
            return if self.since_restart >= self.options.refresh {
                Next::Restart
            } else {
                Next::Continue
            };
        }
        // a failed line search: first with fresh curvature, then as far as this round gets
        self.stuck += 1;
        match self.stuck {
            1 => Next::Restart,
            2..8 => self.finish_round(p, violation, optimality),
            _ => {
                let infeasible = violation > self.options.tolerance;
                let reason = if infeasible {
                    format!(
                        "no step makes progress any more; violated: {}",
                        p.violated(self.options.tolerance)
                    )
                } else {
                    format!("no step makes progress any more; promised gain {optimality:.3e}")
                };
                let status = if infeasible {
                    Status::Infeasible
                } else {
                    Status::Diverged
                };
                self.status = Some((status, reason));
                Next::Finished
            }
        }
    }

    fn interrupted(&mut self) {
        self.status = Some((Status::Interrupted, "stopped from outside".into()));
    }
}

fn lbfgs(options: &Options) -> Lbfgs {
    LBFGS::new(MoreThuenteLineSearch::new(), options.memory)
        .with_tolerance_grad(0.0)
        .and_then(|l| l.with_tolerance_cost(0.0))
        .expect("zero is a valid tolerance: rounds end by their own rules")
}

fn missing() -> Error {
    Error::msg("argmin has taken the problem away")
}

/// A fresh state of L-BFGS at the origin of the coordinates.
fn at_origin<D: Observe>(p: &Handle<D>, old: &ShootingState) -> Result<ShootingState, Error> {
    let v = DVector::zeros(p.function.borrow().at.len());
    let (cost, gradient) = (p.cost(&v)?, p.gradient(&v)?);
    let mut state = ShootingState::new().param(v).cost(cost).gradient(gradient);
    state.iter = old.iter;
    state.max_iters = old.max_iters;
    state.counts.clone_from(&old.counts);
    Ok(state)
}

impl<D: Observe> Solver<Handle<'_, D>, ShootingState> for Shooting<'_> {
    fn name(&self) -> &str {
        "single shooting"
    }

    fn init(
        &mut self,
        problem: &mut Counted<Handle<'_, D>>,
        state: ShootingState,
    ) -> Result<(ShootingState, Option<KV>), Error> {
        let handle = problem.problem.clone().ok_or_else(missing)?;
        let kv;
        {
            let p = &mut *handle.function.borrow_mut();
            let guess = p.guess();
            let resumed = self.checkpoints.resume.take();
            let fresh = resumed.is_none();
            match resumed {
                None => p.roll(&guess),
                Some(c) => {
                    if !self.resume(c, p) {
                        return Ok((state.param(guess), None));
                    }
                }
            }
            if let Some(e) = &p.failed {
                let reason = format!("the guess cannot be simulated: {e}");
                self.status = Some((Status::Diverged, reason));
                return Ok((state.param(guess), None));
            }
            if fresh {
                p.calibrate();
            }
            p.recenter();
            let optimality = p.promise(self.options.tolerance)?;
            kv = if fresh {
                self.record(p, optimality, 0.0)
            } else {
                KV::new()
            };
        }
        match at_origin(&handle, &state) {
            Ok(state) => Ok((state, Some(kv))),
            Err(e) if e.is::<Interrupted>() => {
                self.interrupted();
                Ok((state, Some(kv)))
            }
            Err(e) => Err(e),
        }
    }

    fn next_iter(
        &mut self,
        problem: &mut Counted<Handle<'_, D>>,
        state: ShootingState,
    ) -> Result<(ShootingState, Option<KV>), Error> {
        let before = state.clone();
        let handle = problem.problem.clone().ok_or_else(missing)?;
        let stepped = self.inner.next_iter(problem, state);
        problem.problem.get_or_insert_with(|| handle.clone());
        self.since_restart += 1;
        let (state, moved) = match stepped {
            // L-BFGS reports a failed line search as an end without error
            Ok((s, _)) if !s.terminated() && s.get_cost() < before.get_cost() => (s, true),
            Err(e) if e.is::<Interrupted>() => {
                self.interrupted();
                return Ok((before, None));
            }
            _ => (before.clone(), false),
        };
        let v = state.get_param().cloned().unwrap_or_default();
        // the line search's last trial need not be the point it chose
        if handle.roll(&v).is_err() {
            self.interrupted();
            return Ok((before, None));
        }
        let (next, kv);
        {
            let p = &mut *handle.function.borrow_mut();
            let optimality = p.promise(self.options.tolerance)?;
            let length = before.get_param().map_or(0.0, |b| (&v - b).norm());
            next = self.decide(p, optimality, moved);
            kv = self.record(p, optimality, length);
            if matches!(next, Next::Restart) {
                p.recenter();
            }
            if self.checkpoints.are_due() {
                let now = self.checkpoint(p);
                self.checkpoints.keep(now);
            }
        }
        if matches!(next, Next::Restart) {
            self.inner = lbfgs(&self.options);
            self.since_restart = 0;
            return match at_origin(&handle, &state) {
                Ok(state) => Ok((state, Some(kv))),
                Err(e) if e.is::<Interrupted>() => {
                    self.interrupted();
                    Ok((state, Some(kv)))
                }
                Err(e) => Err(e),
            };
        }
        Ok((state, Some(kv)))
    }

    fn terminate(&mut self, state: &ShootingState) -> TerminationStatus {
        if self.status.is_none() && state.get_iter() >= self.options.max_iterations {
            let reason = format!(
                "{} iterations were not enough; raise max_iterations, or start from another guess",
                self.options.max_iterations
            );
            self.status = Some((Status::MaxIterations, reason));
        }
        let reason = match &self.status {
            None => return TerminationStatus::NotTerminated,
            Some((Status::Converged, _)) => TerminationReason::SolverConverged,
            Some((Status::Interrupted, _)) => TerminationReason::Interrupt,
            Some((Status::MaxIterations, _)) => TerminationReason::MaxItersReached,
            Some((_, why)) => TerminationReason::SolverExit(why.clone()),
        };
        TerminationStatus::Terminated(reason)
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
    let checkpoints = Checkpoints::default();
    solve_from(dynamics, problem, options, checkpoints, observer, stop)
}

/// [`solve`] that is kept on the way, or goes on where an earlier one stood.
///
/// # Errors
/// When a checkpoint to go on from does not fit the problem, and what argmin itself reports.
pub fn solve_from<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    options: Options,
    checkpoints: Checkpoints,
    observer: impl Observer<ShootingState> + 'static,
    stop: &AtomicBool,
) -> Result<Solution, Error> {
    if let Some(c) = &checkpoints.resume {
        c.fits(NAME, problem)
            .map_err(|e| Error::msg(format!("the checkpoint does not fit: {e}")))?;
    }
    let handle = Handle {
        function: Rc::new(RefCell::new(Augmented::new(
            dynamics,
            problem,
            options.penalty,
        ))),
        stop,
    };
    let result = Executor::new(handle.clone(), Shooting::new(options, checkpoints))
        .configure(|state| state.max_iters(u64::MAX))
        .timer(false)
        .ctrlc(false)
        .add_observer(observer, ObserverMode::Always)
        .run()?;
    let mut solver = result.solver;
    drop(result.problem);
    let p = Rc::into_inner(handle.function)
        .ok_or_else(missing)?
        .into_inner();
    let last = solver.checkpoint(&p);
    solver.checkpoints.keep(last);
    let (status, reason) = solver.status.unwrap_or((Status::Diverged, String::new()));
    let best = solver.best.unwrap_or_else(|| Best {
        decisions: p.guess(),
        violation: f64::INFINITY,
        objective: f64::INFINITY,
        optimality: f64::INFINITY,
    });
    let (step_evaluations, gradient_evaluations) = (p.steps, p.sweeps);
    let trajectory = p.into_trajectory(&best.decisions);
    Ok(Solution {
        status,
        reason,
        gains: None,
        trajectory,
        objective: best.objective,
        violation: best.violation,
        optimality: best.optimality,
        iterations: solver.history.len().saturating_sub(1) as u64,
        step_evaluations,
        gradient_evaluations,
        history: solver.history,
    })
}
