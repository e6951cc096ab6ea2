//! One driver for all methods, on argmin's executor: it holds the limits of iterations and time, the counters, the
//! observers and the checkpoints; a method makes iterations of a [`SolveState`].
//!
//! ```text
//! optimize::solve(&system, &problem)?
//! Solve::new(&system, &problem).with_method(Method::Shooting).with_limits(limits).run()?
//! ```
//!
//! A request to stop ([`crate::dynamics::request_stop`]) is seen between iterations, within them, and by steps that take
//! long. argmin's own Ctrl-C, which serves the first executor of a process only and is not seen within an iteration, is
//! off.

use super::checkpoint::{Checkpoint, Checkpoints, Incumbent, Point};
use super::ddp::Ddp;
use super::direct::Direct;
use super::learn::{self, Failed};
use super::levenberg_marquardt::LevenbergMarquardt;
use super::shooting::Shooting;
use super::unconstrained::Unconstrained;
use super::{Covariance, Gains, Iteration, Method, Options, Remedy, Solution, SolveState, Status};
use crate::control::Problem;
use crate::dynamics::{Observe, stop_requested, unstopped};
use crate::rollout::Trajectory;
use argmin::core::checkpointing::{Checkpoint as Checkpointing, CheckpointingFrequency};
use argmin::core::observers::{Observe as Observer, ObserverMode, Observers};
use argmin::core::{
    Error, Executor, KV, Problem as ArgminProblem, Solver, State, TerminationReason,
    TerminationStatus,
};
use std::cell::RefCell;
use std::time::Duration;

/// A method as the driver sees it.
pub(super) trait Algorithm {
    /// Which it is.
    fn method(&self) -> Method;

    /// Of violation and optimality.
    fn tolerances(&self) -> (f64, f64);

    /// Evaluates the guess and notes it, or takes over where an earlier solve stood; it ends in words where neither can be
    /// done. Where that solve had converged to the tolerances, `state` has ended and nothing is to be planned.
    ///
    /// # Errors
    /// A step on the way.
    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error>;

    /// Makes an iteration and notes it; or none, if it was asked to stop.
    ///
    /// # Errors
    /// A step on the way.
    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error>;

    /// Steps simulated, and gradients or linearizations of whole trajectories.
    fn counts(&self) -> (u64, u64);

    /// The trajectory of a point that was kept, on steps as they were there, if it can be simulated.
    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory>;

    /// The iterate with all that decides the next steps; the driver adds the rest.
    fn checkpoint(&self) -> Checkpoint;

    /// Iterations in all, those of earlier runs included, of a method that cannot tell when it is done: it has completed
    /// when these are made.
    fn budget(&self) -> Option<u64> {
        None
    }

    /// How it went about, in words, where settings leave it a choice that has to be told.
    fn manner(&self) -> &str {
        ""
    }

    /// Rollouts that failed without ending the solve, and how many were made.
    fn failed(&self) -> (&[Failed], u64) {
        (&[], 0)
    }

    /// Ends at the best iterate; `hurried` where somebody waits for it, without what would take long.
    ///
    /// # Errors
    /// A step on the way.
    fn finish(&mut self, state: &SolveState, hurried: bool) -> Result<Found, Error>;
}

/// What a method ends with.
pub(super) struct Found {
    pub trajectory: Trajectory,
    pub row: Iteration,
    pub gains: Option<Gains>,
    pub covariance: Option<Covariance>,
    /// What is violated there, in words.
    pub violated: String,
}

/// When a run ends in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Iterations of this run; those of the method's settings by default. A learner makes no more than its settings leave.
    pub iterations: Option<u64>,
    /// Wall time of this run, looked at after every iteration.
    pub time: Option<Duration>,
}

/// A solve that is set up.
pub struct Solve<'a, D> {
    dynamics: &'a D,
    problem: &'a Problem,
    options: Options,
    limits: Limits,
    checkpoints: Checkpoints<'a>,
    observers: Observers<SolveState>,
}

/// Solves a problem by the method and the settings that are taken by default.
///
/// # Errors
/// As [`Solve::run`]; how the solve ended is in [`Solution::status`].
pub fn solve<D: Observe>(dynamics: &D, problem: &Problem) -> Result<Solution, Error> {
    Solve::new(dynamics, problem).run()
}

impl<'a, D: Observe> Solve<'a, D> {
    /// By the method and the settings that are taken by default.
    pub fn new(dynamics: &'a D, problem: &'a Problem) -> Self {
        Self {
            dynamics,
            problem,
            options: Options::default(),
            limits: Limits::default(),
            checkpoints: Checkpoints::default(),
            observers: Observers::new(),
        }
    }

    /// By a method as it is by default.
    #[must_use]
    pub fn with_method(self, method: Method) -> Self {
        self.with_options(method.options())
    }

    /// By the method whose settings these are.
    #[must_use]
    pub fn with_options(mut self, options: impl Into<Options>) -> Self {
        self.options = options.into();
        self
    }

    /// Shows an observer, argmin's or one's own, every iteration. One that fails ends the solve with its error; one that
    /// has seen enough may [`crate::dynamics::request_stop`].
    #[must_use]
    pub fn with_observer(self, observer: impl Observer<SolveState> + 'static) -> Self {
        self.with_observer_of(observer, ObserverMode::Always)
    }

    /// Shows an observer some iterations.
    #[must_use]
    pub fn with_observer_of(
        mut self,
        observer: impl Observer<SolveState> + 'static,
        mode: ObserverMode,
    ) -> Self {
        self.observers.push(observer, mode);
        self
    }

    /// Ends at limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps the solve on the way, or goes on where an earlier one stood.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoints: Checkpoints<'a>) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// Solves.
    ///
    /// # Errors
    /// When the problem does not fit the system ([`Problem::check`]), settings have no meaning ([`Options::check`]), the
    /// method cannot take the problem ([`Options::fits`]), or the
    /// checkpoint to go on from is of another problem; and what an observer reports. How the solve ended is in
    /// [`Solution::status`].
    pub fn run(self) -> Result<Solution, Error> {
        self.problem.check(self.dynamics)?;
        self.options.check().map_err(Error::msg)?;
        let fits = self.options.fits(self.dynamics, self.problem);
        fits.map_err(Error::msg)?;
        if let Some(c) = &self.checkpoints.resume {
            c.fits(self.options.method(), self.problem)
                .map_err(|e| Error::msg(format!("the checkpoint does not fit: {e}")))?;
        }
        let (dynamics, problem) = (self.dynamics, self.problem);
        let algorithm: Box<dyn Algorithm + '_> = match self.options {
            Options::Ddp(o) => Box::new(Ddp::new(dynamics, problem, o)),
            Options::Shooting(o) => Box::new(Shooting::new(dynamics, problem, o)),
            Options::LevenbergMarquardt(o) => {
                Box::new(LevenbergMarquardt::new(dynamics, problem, o))
            }
            Options::Search(o) => learn::algorithm(dynamics, problem, &o)?,
            Options::Ars(o) => learn::algorithm(dynamics, problem, &o)?,
            Options::Cmaes(o) => learn::algorithm(dynamics, problem, &o)?,
            Options::Mppi(o) => learn::algorithm(dynamics, problem, &o)?,
            Options::PolicyGradient(o) => learn::algorithm(dynamics, problem, &o)?,
            Options::Unconstrained(o) => Box::new(Unconstrained::new(dynamics, problem, o)),
            Options::Direct(o) => Box::new(Direct::new(dynamics, problem, o)),
        };
        let Limits { iterations, time } = self.limits;
        let made = self.checkpoints.resume.as_ref();
        let made = made.map_or(0, Checkpoint::iterations);
        let most = match algorithm.budget() {
            Some(budget) => {
                let left = budget.saturating_sub(made);
                iterations.map_or(left, |i| i.min(left))
            }
            None => iterations.unwrap_or(self.options.max_iterations()),
        };
        let solver = ArgminSolver {
            algorithm,
            checkpoints: RefCell::new(self.checkpoints),
            begun: true,
        };
        drive(solver, self.observers, most, time, problem.intervals.len())
    }
}

/// Runs a method to its end on argmin's executor; the same for every system, and so compiled once.
fn drive(
    solver: ArgminSolver,
    observers: Observers<SolveState>,
    most: u64,
    limit: Option<Duration>,
    steps: usize,
) -> Result<Solution, Error> {
    let (tolerance, _) = solver.algorithm.tolerances();
    let mut executor = Executor::new((), solver)
        .configure(|state: SolveState| state.limited(tolerance, most))
        .timer(false)
        .ctrlc(false)
        .checkpointing(CheckpointSaver);
    if !observers.is_empty() {
        executor = executor.add_observer(observers, ObserverMode::Always);
    }
    if let Some(limit) = limit {
        executor = executor.timeout(limit);
    }
    let result = executor.run()?;
    solution(result.solver, result.state, most, limit, steps)
}

/// What is told of a solve that has ended.
fn solution(
    mut solver: ArgminSolver,
    mut state: SolveState,
    most: u64,
    limit: Option<Duration>,
    problem_steps: usize,
) -> Result<Solution, Error> {
    if state.ended.is_none() {
        let status = match state.get_termination_reason() {
            Some(TerminationReason::MaxItersReached) => at_limit(&*solver.algorithm, &state),
            _ => (Status::Interrupted, String::new()),
        };
        state.end(status.0, status.1);
    }
    solver.keep(&state)?;
    let (step_evaluations, gradient_evaluations) = solver.algorithm.counts();
    let hurried = stop_requested();
    let found = unstopped(|| solver.algorithm.finish(&state, hurried))?;
    let timed_out = state.get_termination_reason() == Some(&TerminationReason::Timeout);
    let (status, reason) = state.ended.unwrap_or((Status::Interrupted, String::new()));
    let remedy = match status {
        Status::MaxIterations | Status::Interrupted | Status::Completed => Some(Remedy::Resume),
        _ => state.remedy,
    };
    let reason = match status {
        Status::MaxIterations => cut_short(
            &format!(
                "{most} iterations were not enough, raise max_iterations or start from another guess"
            ),
            &found.violated,
        ),
        Status::Completed => {
            let budget = state.history.len().saturating_sub(1);
            let spent = cut_short(
                &format!("all {budget} iterations were made"),
                &found.violated,
            );
            match reason.as_str() {
                "" => spent,
                told => format!("{spent}; {told}"),
            }
        }
        Status::Interrupted => {
            let limit = limit.filter(|_| timed_out);
            let why = limit.map_or("stopped from outside".into(), |t| {
                format!("the limit of {} s was reached", t.as_secs_f64())
            });
            match (solver.begun, state.history.is_empty()) {
                (true, _) => cut_short(&why, &found.violated),
                (_, true) => {
                    let (got, all) = (found.trajectory.steps(), problem_steps);
                    format!(
                        "{why} before the first iteration, {got} of {all} steps of the guess simulated; there is nothing to go on from"
                    )
                }
                _ => format!("{why} before the first iteration; the checkpoint is as it was"),
            }
        }
        Status::Diverged | Status::Infeasible
            if !(found.violated.is_empty() || reason.contains(&found.violated)) =>
        {
            format!(
                "{reason}; the best, which is returned, leaves {}",
                found.violated
            )
        }
        _ => reason,
    };
    let Iteration {
        objective,
        violation,
        optimality,
        smoothing,
        ..
    } = found.row;
    Ok(Solution {
        status,
        reason,
        remedy,
        trajectory: found.trajectory,
        objective,
        violation,
        optimality,
        smoothing,
        iterations: state.history.len().saturating_sub(1) as u64,
        step_evaluations,
        gradient_evaluations,
        gains: found.gains,
        covariance: found.covariance,
        remarks: state.remarks,
        history: state.history,
        failed: solver.algorithm.failed().0.to_vec(),
    })
}

/// How a method ends that has made all iterations it may make.
fn at_limit(algorithm: &dyn Algorithm, state: &SolveState) -> (Status, String) {
    let made = state.history.len().saturating_sub(1) as u64;
    match algorithm.budget() {
        Some(budget) if made >= budget => {}
        _ => return (Status::MaxIterations, String::new()),
    }
    let (failed, rollouts) = algorithm.failed();
    let failures = learn::told(failed, rollouts);
    let parts = [algorithm.manner(), &failures];
    let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    let told = parts.join("; ");
    match &state.best {
        Some(_) => (Status::Completed, told),
        // nothing was ever simulated to its end
        None => (Status::Diverged, told),
    }
}

/// Why a solve ended that a limit or a request cut short, and what is still violated.
fn cut_short(why: &str, violated: &str) -> String {
    let open = match violated {
        "" => "all constraints hold".into(),
        list => format!("still violated: {list}"),
    };
    format!("{why}; {open}")
}

/// A method as argmin's solver, with the place where it is kept.
struct ArgminSolver<'c> {
    algorithm: Box<dyn Algorithm + 'c>,
    checkpoints: RefCell<Checkpoints<'c>>,
    /// Does it stand where it can be gone on from? Not where a stop came before it did.
    begun: bool,
}

impl ArgminSolver<'_> {
    /// Keeps the solve, if that was asked for.
    fn keep(&self, state: &SolveState) -> Result<(), Error> {
        if !self.begun {
            return Ok(());
        }
        let kept = || {
            let (step_evaluations, gradient_evaluations) = self.algorithm.counts();
            Checkpoint {
                method: self.algorithm.method().name().into(),
                status: state.ended.as_ref().map(|(s, _)| *s),
                best: state.best.as_ref().map(|b| Incumbent {
                    point: Point {
                        controls: b.trajectory.u.clone(),
                        parameters: b.trajectory.p.clone(),
                        states: vec![],
                    },
                    objective: b.row.objective,
                    violation: b.row.violation,
                    optimality: b.row.optimality,
                    smoothing: b.row.smoothing,
                    softened: b.row.softened,
                }),
                step_evaluations,
                gradient_evaluations,
                history: state.history.clone(),
                ..self.algorithm.checkpoint()
            }
        };
        self.checkpoints.borrow_mut().keep(kept)
    }

    fn count(&self, problem: &mut ArgminProblem<()>) {
        let (steps, gradients) = self.algorithm.counts();
        problem.counts.insert("step_evaluations", steps);
        problem.counts.insert("gradient_evaluations", gradients);
    }

    /// What could not be made because a stop was requested did not fail.
    fn settle(&self, made: Result<(), Error>, state: &mut SolveState) {
        if let Err(e) = made {
            state.end(Status::Diverged, e.to_string());
        }
        if stop_requested() && matches!(state.ended, Some((Status::Diverged, _))) {
            state.end(Status::Interrupted, "");
        }
    }
}

impl Solver<(), SolveState> for ArgminSolver<'_> {
    fn name(&self) -> &str {
        self.algorithm.method().title()
    }

    fn init(
        &mut self,
        problem: &mut ArgminProblem<()>,
        mut state: SolveState,
    ) -> Result<(SolveState, Option<KV>), Error> {
        let from = self.checkpoints.get_mut().resume.take();
        let mut best = None;
        if let Some(c) = &from {
            let (tolerance, optimality) = self.algorithm.tolerances();
            state.history.clone_from(&c.history);
            best.clone_from(&c.best);
            if c.has_converged(tolerance, optimality) {
                state.end(Status::Converged, "");
            }
        }
        let made = self.algorithm.begin(from, &mut state);
        self.settle(made, &mut state);
        self.begun = !matches!(state.ended, Some((Status::Interrupted, _)));
        if let Some(b) = best {
            // what was found before is not lost by a stop
            state.best = unstopped(|| self.algorithm.simulated(&b)).map(|t| b.best(t));
        }
        self.count(problem);
        let named = state.named();
        Ok((state, named))
    }

    fn next_iter(
        &mut self,
        problem: &mut ArgminProblem<()>,
        mut state: SolveState,
    ) -> Result<(SolveState, Option<KV>), Error> {
        let made = self.algorithm.advance(&mut state);
        self.settle(made, &mut state);
        if is_unbounded(&state) {
            state.end(Status::Diverged, UNBOUNDED);
        }
        self.count(problem);
        let named = state.named();
        Ok((state, named))
    }

    fn terminate(&mut self, state: &SolveState) -> TerminationStatus {
        TerminationStatus::Terminated(match &state.ended {
            None if stop_requested() => TerminationReason::Interrupt,
            None => return TerminationStatus::NotTerminated,
            Some((Status::Converged, _)) => TerminationReason::SolverConverged,
            Some((Status::Interrupted, _)) => TerminationReason::Interrupt,
            Some((_, why)) => TerminationReason::SolverExit(why.clone()),
        })
    }
}

/// An objective that fell so far below zero, in multiples of the guess's, is not bounded below: ten orders beyond what
/// any change of units makes of a well-posed one.
const FALLEN: f64 = 1e15;
const UNBOUNDED: &str = "the objective falls without end: it is not bounded below; bound the controls and parameters, or weigh them with squares";

fn is_unbounded(state: &SolveState) -> bool {
    let first = state.history.first().map_or(1.0, |i| i.objective.abs());
    let least = -FALLEN
        * if first.is_finite() {
            first.max(1.0)
        } else {
            1.0
        };
    state.last().is_some_and(|i| i.objective < least)
}

/// argmin's side of the checkpoints: it asks after every iteration. What is gone on from is read before.
struct CheckpointSaver;

impl<'c> Checkpointing<ArgminSolver<'c>, SolveState> for CheckpointSaver {
    fn save(&self, solver: &ArgminSolver<'c>, state: &SolveState) -> Result<(), Error> {
        solver.keep(state)
    }

    fn save_cond(
        &self,
        solver: &ArgminSolver<'c>,
        state: &SolveState,
        _: u64,
    ) -> Result<(), Error> {
        let due = solver.checkpoints.borrow_mut().are_due();
        match due {
            true => solver.keep(state),
            false => Ok(()),
        }
    }

    fn load(&self) -> Result<Option<(ArgminSolver<'c>, SolveState)>, Error> {
        Ok(None)
    }

    fn frequency(&self) -> CheckpointingFrequency {
        CheckpointingFrequency::Always
    }
}
