//! Differential dynamic programming (Mayne 1966; Jacobson and Mayne 1970): a feedback policy from the linear-quadratic
//! model along a trajectory, rolled out through the dynamics themselves.
//!
//! - **Model.** With `w = (dx, dp, du)` in the joint chart, `dx+ = F w + gap`; costs `weight/2 (q - target)^2` give the
//!   curvature `weight C'C` (Gauss and Newton), `C` the row of the quantity. What that lacks is learnt by symmetric
//!   rank-one updates of one block a knot and used where it helps (see `secant.rs`).
//! - **Backward pass.** Riccati's recursion over `(dx, dp)`; the parameters are solved for at the start, within their
//!   bounds. Bounds of the controls hold exactly, by a projected Newton method at every knot (Tassa, Mansard, Todorov,
//!   ICRA 2014); feedback of a control at its bound is zero.
//! - **Rollouts.** `u' = u + a k + K (x' - x, a dp)`, clamped. States given as a guess need not follow from each other:
//!   the gaps between them shrink by `1 - a` (Giftthaler et al., IROS 2018; Mastalli et al., ICRA 2020) and are weighed
//!   in the merit by a multiple that makes every step a descent.
//! - **Globalization.** A step is taken if it gains a twentieth of what the model predicts; else a shorter one is tried,
//!   as short as the bend seen suggests. Where no length does, changes of states and controls are weighed (Levenberg and
//!   Marquardt), each by its mean curvature, and as much as the bend seen along the failed step tells. With the states
//!   weighed, feedback keeps unstable paths together however large the weight. Where whole steps gain more than
//!   predicted, up to twice their length is tried.
//! - **Constraints** other than bounds of controls and parameters enter by an augmented Lagrangian. Once the violation
//!   is small, the penalty is raised so far that the remaining steps are Newton's projections on the active constraints
//!   in the metric of the curvature, with bounds held: violations of 1e-9 and below cost few iterations.
//! - **Contact.** Derivatives may be relaxed at first and become those of hard contact, and the steps with them (see
//!   [`Smoothing`]); objective and violation of a solution always are those of steps with hard contact.

mod backward;
mod box_qp;
mod dense;
mod engine;
mod kept;
mod lagrangian;
mod model;
mod path;
mod secant;
mod smoothing;

use super::checkpoint::{Checkpoint, Checkpoints, Incumbent, Point};
use super::{Gains, Iteration, IterationState, Solution, Status};
use crate::control::Problem;
use crate::dynamics::Observe;
use crate::rollout::Trajectory;
use argmin::core::observers::{Observe as Observer, ObserverMode};
use argmin::core::{
    Error, Executor, KV, Problem as Counted, Solver, State, TerminationReason, TerminationStatus,
};
use engine::{Attempt, Engine};
pub use kept::Kept;
pub use smoothing::Smoothing;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

/// Name of the method.
pub const NAME: &str = "ddp";

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// What the model still promises to gain, relative to the objective.
    pub optimality: f64,
    /// Iterations of all rounds.
    pub max_iterations: u64,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess.
    pub penalty: f64,
    /// Derivatives through contact are relaxed at first, as by default, or the steps themselves; derivatives are those of
    /// the step from the beginning where this is `None`. Systems without contact are solved the same either way.
    pub smoothing: Option<Smoothing>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 1000,
            penalty: 0.1,
            smoothing: Some(Smoothing::default()),
        }
    }
}

/// The state argmin's executor keeps and observers see.
pub type DdpState = IterationState;

/// What argmin is given.
pub struct Handle<'a, D: Observe> {
    engine: Engine<'a, D>,
    stop: &'a AtomicBool,
}

/// The argmin solver.
pub struct Ddp<'c, D> {
    options: Options,
    checkpoints: Checkpoints<'c>,
    /// Promised gain at which a round ends.
    round_tolerance: f64,
    /// Violation at the end of the last round.
    last_violation: f64,
    best: Option<Best>,
    history: Vec<Iteration>,
    status: Option<(Status, String)>,
    dynamics: PhantomData<fn(D)>,
}

/// The iterate to keep: feasible ones before infeasible ones, then by objective or violation.
#[derive(Clone, Debug)]
struct Best {
    trajectory: Trajectory,
    row: Iteration,
    /// Of softened steps: worse than any on a lower level.
    soft: bool,
}

impl Best {
    fn is_worse_than(&self, other: &Iteration, tolerance: f64) -> bool {
        let value = |i: &Iteration| (i.objective, i.violation);
        if other.smoothing < self.row.smoothing && (self.soft || value(other) == value(&self.row)) {
            return true;
        }
        match (
            other.violation <= tolerance,
            self.row.violation <= tolerance,
        ) {
            (true, true) => other.objective < self.row.objective,
            (a, b) if a != b => a,
            _ => other.violation < self.row.violation,
        }
    }
}

impl<'c, D: Observe> Ddp<'c, D> {
    /// With the given settings; kept, and gone on with, as the checkpoints say.
    pub fn new(options: Options, checkpoints: Checkpoints<'c>) -> Self {
        Self {
            checkpoints,
            round_tolerance: options.optimality.max(1e-2),
            options,
            last_violation: f64::INFINITY,
            best: None,
            history: vec![],
            status: None,
            dynamics: PhantomData,
        }
    }

    fn optimality(&self, e: &Engine<D>) -> f64 {
        e.promise().abs() / self.size(e)
    }

    /// What a promised gain is compared with.
    fn size(&self, e: &Engine<D>) -> f64 {
        let violation = e.violation().max(self.options.tolerance);
        let constrained = !e.path.evaluation.constraints.is_empty();
        let penalty = if constrained {
            e.lagrangian.penalty
        } else {
            0.0
        };
        e.path.evaluation.objective.abs()
            + 0.5 * penalty * violation * violation
            + 1e-12 * e.first_objective.abs()
            + f64::MIN_POSITIVE
    }

    /// Notes the path.
    fn record(&mut self, e: &Engine<D>, optimality: f64, step_length: f64) -> KV {
        let row = Iteration {
            iteration: self.history.len() as u64,
            objective: e.path.evaluation.objective,
            violation: e.violation().max(e.path.gap),
            optimality,
            step_length,
            regularization: e.lagrangian.penalty,
            smoothing: e.level,
        };
        let converged = matches!(self.status, Some((Status::Converged, _)));
        let worse = |b: &Best| b.is_worse_than(&row, self.options.tolerance);
        // only what can be simulated is a result
        if !e.path.has_gaps && (converged || self.best.as_ref().is_none_or(worse)) {
            if let Some(b) = &mut self.best {
                b.trajectory.clone_from(&e.path.trajectory);
                b.row.clone_from(&row);
                b.soft = e.is_soft();
            } else {
                self.best = Some(Best {
                    trajectory: e.path.trajectory.clone(),
                    row: row.clone(),
                    soft: e.is_soft(),
                });
            }
        }
        let kv = argmin::kv!(
            "objective" => row.objective;
            "violation" => row.violation;
            "optimality" => row.optimality;
            "step_length" => row.step_length;
            "regularization" => row.regularization;
            "smoothing" => row.smoothing;
        );
        self.history.push(row);
        kv
    }

    /// Where the solve stands.
    fn checkpoint(&self, e: &Engine<D>) -> Checkpoint {
        let best = self.best.as_ref().map(|b| Incumbent {
            point: Point {
                controls: b.trajectory.u.clone(),
                parameters: b.trajectory.p.clone(),
                states: vec![],
            },
            objective: b.row.objective,
            violation: b.row.violation,
            optimality: b.row.optimality,
            smoothing: b.row.smoothing,
        });
        Checkpoint {
            status: self.status.as_ref().map(|(s, _)| *s),
            best,
            round_tolerance: self.round_tolerance,
            last_violation: self
                .last_violation
                .is_finite()
                .then_some(self.last_violation),
            history: self.history.clone(),
            ..e.checkpoint()
        }
    }

    /// Takes over where a solve stood. It ended at its best point if it had converged.
    fn go_on(&mut self, c: Checkpoint, e: &mut Engine<D>) {
        if c.has_converged(self.options.tolerance, self.options.optimality) {
            self.status = Some((Status::Converged, String::new()));
        }
        self.round_tolerance = c.round_tolerance.max(self.options.optimality);
        self.last_violation = c.last_violation.unwrap_or(f64::INFINITY);
        self.best = c.best.and_then(|b| {
            Some(Best {
                trajectory: e.simulated(&b.point, b.smoothing)?,
                row: Iteration {
                    objective: b.objective,
                    violation: b.violation,
                    optimality: b.optimality,
                    smoothing: b.smoothing,
                    ..Iteration::default()
                },
                soft: e.forward && b.smoothing > 0.0,
            })
        });
        self.history = c.history;
    }

    /// What a path of softened steps is worth on hard ones: only these are a result.
    fn on_hard(&self, e: &mut Engine<D>, soft: Iteration) -> Iteration {
        let made = e.follow_level(0.0).and_then(|()| e.refresh());
        if made.is_err() || !e.plan() {
            return Iteration {
                objective: f64::INFINITY,
                violation: f64::INFINITY,
                optimality: f64::INFINITY,
                ..soft
            };
        }
        Iteration {
            objective: e.path.evaluation.objective,
            violation: e.violation(),
            optimality: self.optimality(e),
            smoothing: 0.0,
            ..soft
        }
    }

    /// Ends rounds as long as the path is their minimum; returns what is still promised.
    fn finish_rounds(&mut self, e: &mut Engine<D>) -> Result<f64, Error> {
        loop {
            let enough = self.round_tolerance * self.size(e);
            let ended = !e.path.has_gaps && e.promises_at_most(enough);
            let optimality = self.optimality(e);
            if !ended || !self.finish_round(e, optimality)? {
                return Ok(optimality);
            }
        }
    }

    /// Converged, infeasible, or a new round with new multipliers and penalty: then true.
    fn finish_round(&mut self, e: &mut Engine<D>, optimality: f64) -> Result<bool, Error> {
        let (violation, o) = (e.violation(), &self.options);
        if self.level_is_done(e, violation, optimality) {
            self.lower(e)?;
            return Ok(self.status.is_none());
        }
        if !e.is_relaxed() && violation <= o.tolerance && optimality <= o.optimality {
            self.status = Some((Status::Converged, String::new()));
            return Ok(false);
        }
        let penalty = e.lagrangian.penalty;
        if violation > o.tolerance && penalty > 1e12 * e.lagrangian.first_penalty {
            self.status = Some(self.out_of_reach(e));
            return Ok(false);
        }
        let growth = if violation <= o.tolerance {
            1.0
        } else if violation <= PROJECTED && self.round_tolerance <= o.optimality && !e.is_relaxed()
        {
            PROJECTION
        } else if violation > 0.25 * self.last_violation {
            10.0
        } else {
            1.0
        };
        self.last_violation = violation;
        self.round_tolerance = (self.round_tolerance * 0.1).max(self.finest(e));
        if !e.path.evaluation.constraints.is_empty() {
            e.lagrangian.update(&e.path, growth);
            e.refresh()?;
            e.plan();
        }
        Ok(true)
    }

    /// The verdict on constraints that stay violated: out of reach only where their gradients, or the way to where these
    /// vanish, show it.
    fn out_of_reach(&self, e: &mut Engine<D>) -> (Status, String) {
        let tolerance = self.options.tolerance;
        let (penalty, violated) = (e.lagrangian.penalty, e.violated(tolerance));
        let flat = e.without_gradient(tolerance);
        let first = self.history.first().map_or(0.0, |i| i.violation);
        let nothing_to_decide = e.model.sizes.m + e.model.sizes.q == 0;
        let fell = e.model.kappa == 0.0 && e.violation() < (1.0 - STATIONARY) * first;
        if flat.is_empty() || nothing_to_decide || fell {
            let reason = format!(
                "these stay violated although the penalty grew to {penalty:.0e}: {violated}; are they within reach?"
            );
            return (Status::Infeasible, reason);
        }
        let remedy = match (e.model.kappa > 0.0, self.options.smoothing) {
            (false, _) => "start from a guess at which it does".to_owned(),
            (true, None) => "contact that is not made and friction that is not overcome have no derivative: set smoothing in [method], as { start = 1e-1 }, or start from a guess that makes contact".into(),
            (true, Some(s)) => format!(
                "contact that is not made and friction that is not overcome have no derivative: raise smoothing in [method], as {{ start = {:e} }}, or start from a guess that makes contact",
                10.0 * s.start
            ),
        };
        let reason = format!(
            "violated: {violated}; no control or parameter changes {} to first order; {remedy}",
            flat.join(", ")
        );
        (Status::Diverged, reason)
    }

    /// Takes a step, of the length returned, or goes on to where one can be made; nothing if asked to stop.
    fn advance(&mut self, e: &mut Engine<D>, stop: &AtomicBool) -> Result<Option<f64>, Error> {
        match e.improve(stop) {
            Attempt::Stopped => {
                self.status = Some((Status::Interrupted, String::new()));
                return Ok(None);
            }
            Attempt::Moved(taken) => {
                if e.pace.idle == 0 {
                    e.pace.stuck = 0;
                }
                if e.refresh().is_err() {
                    // where there are no derivatives there is no way on
                    e.take_back()?;
                }
                if !e.plan() {
                    self.status = Some((Status::Diverged, UNBOUNDED.into()));
                } else if e.is_poor() {
                    self.hasten(e)?;
                }
                return Ok(Some(taken));
            }
            Attempt::Stuck => self.stuck(e)?,
        }
        Ok(Some(0.0))
    }

    /// No step makes progress: the round has got as far as it can, or all of it has.
    fn stuck(&mut self, e: &mut Engine<D>) -> Result<(), Error> {
        if e.is_relaxed() {
            return self.lower(e);
        }
        e.pace.stuck += 1;
        e.promises_at_most(f64::INFINITY);
        let (violation, optimality) = (e.violation(), self.optimality(e));
        let constrained = !e.path.evaluation.constraints.is_empty();
        if constrained && !e.path.has_gaps && e.pace.stuck < 8 {
            self.finish_round(e, optimality)?;
            return Ok(());
        }
        let stuck = format!("no step makes progress any more; promised gain {optimality:.3e}");
        self.status = Some(if violation > self.options.tolerance {
            let weight = 0.5 * e.lagrangian.penalty * violation * violation;
            if optimality <= STATIONARY && weight >= (1.0 - STATIONARY) * self.size(e) {
                self.out_of_reach(e)
            } else {
                let violated = e.violated(self.options.tolerance);
                let reason =
                    format!("{stuck}; violated: {violated}; try another guess, or scale the costs");
                (Status::Diverged, reason)
            }
        } else if e.path.has_gaps {
            let reason = format!(
                "{stuck}; the states of the guess do not follow from each other yet; try another guess, or scale the costs"
            );
            (Status::Diverged, reason)
        } else {
            (Status::Stationary, stuck)
        });
        Ok(())
    }
}

/// Part of the merit below which what the model promises is nothing: the point is a stationary one, and a violation that
/// fell by less did not fall.
const STATIONARY: f64 = 1e-3;

/// Violation from which on the penalty grows by [`PROJECTION`] a round, if the round is otherwise optimal.
const PROJECTED: f64 = 1e-2;
const PROJECTION: f64 = 1e3;

const UNBOUNDED: &str =
    "the curvature is not positive definite however it is regularized; are all numbers finite?";

fn missing() -> Error {
    Error::msg("argmin has taken the problem away")
}

impl<'a, D: Observe> Solver<Handle<'a, D>, IterationState> for Ddp<'_, D> {
    fn name(&self) -> &str {
        "differential dynamic programming"
    }

    fn init(
        &mut self,
        problem: &mut Counted<Handle<'a, D>>,
        state: IterationState,
    ) -> Result<(IterationState, Option<KV>), Error> {
        let e = &mut problem.problem.as_mut().ok_or_else(missing)?.engine;
        let resumed = self.checkpoints.resume.take();
        if let Err(reason) = e.start(resumed.as_ref()) {
            self.status = Some((Status::Diverged, reason));
            return Ok((e.report(state), None));
        }
        let fresh = resumed.is_none();
        // between two iterations all is planned; what had ended may not have by other tolerances
        let planned = resumed
            .as_ref()
            .is_some_and(|c| c.ddp.is_some() && !c.has_ended());
        if let Some(c) = resumed {
            self.go_on(c, e);
        }
        if planned || self.status.is_some() {
            return Ok((e.report(state), None));
        }
        if !e.plan() {
            self.status = Some((Status::Diverged, UNBOUNDED.into()));
        }
        let optimality = self.finish_rounds(e)?;
        // the guess is in the history already of what goes on
        let kv = fresh.then(|| self.record(e, optimality, 0.0));
        Ok((e.report(state), kv))
    }

    fn next_iter(
        &mut self,
        problem: &mut Counted<Handle<'a, D>>,
        state: IterationState,
    ) -> Result<(IterationState, Option<KV>), Error> {
        let handle = problem.problem.as_mut().ok_or_else(missing)?;
        let e = &mut handle.engine;
        let advanced = self.advance(e, handle.stop).and_then(|length| {
            let optimality = match (length, &self.status) {
                (Some(_), None) => self.finish_rounds(e)?,
                _ => self.optimality(e),
            };
            Ok((length, optimality))
        });
        let (length, optimality) = match advanced {
            Ok((Some(length), optimality)) => (length, optimality),
            Ok((None, _)) => return Ok((state, None)),
            Err(f) => {
                self.status = Some((Status::Diverged, f.to_string()));
                (0.0, self.optimality(e))
            }
        };
        let kv = self.record(e, optimality, length);
        if self.checkpoints.are_due() {
            let now = self.checkpoint(e);
            self.checkpoints.keep(now);
        }
        Ok((e.report(state), Some(kv)))
    }

    fn terminate(&mut self, state: &IterationState) -> TerminationStatus {
        if self.status.is_none() && state.get_iter() >= self.options.max_iterations {
            // what is still open is told of the best iterate, at the end
            self.status = Some((Status::MaxIterations, String::new()));
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
/// When the problem does not fit the system ([`Problem::check`]), and what argmin itself reports; how the solve ended is in [`Solution::status`].
pub fn solve<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    options: Options,
    observer: impl Observer<IterationState> + 'static,
    stop: &AtomicBool,
) -> Result<Solution, Error> {
    let checkpoints = Checkpoints::default();
    solve_from(dynamics, problem, options, checkpoints, observer, stop)
}

/// [`solve`] that is kept on the way, or goes on where an earlier one stood.
///
/// # Errors
/// As [`solve`], and when a checkpoint to go on from does not fit the problem.
pub fn solve_from<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    options: Options,
    checkpoints: Checkpoints,
    observer: impl Observer<IterationState> + 'static,
    stop: &AtomicBool,
) -> Result<Solution, Error> {
    problem.check(dynamics)?;
    if let Some(c) = &checkpoints.resume {
        c.fits(NAME, problem)
            .map_err(|e| Error::msg(format!("the checkpoint does not fit: {e}")))?;
    }
    let handle = Handle {
        engine: Engine::new(dynamics, problem, &options),
        stop,
    };
    let result = Executor::new(handle, Ddp::new(options, checkpoints))
        .configure(|state| state.max_iters(u64::MAX))
        .timer(false)
        .ctrlc(false)
        .add_observer(observer, ObserverMode::Always)
        .run()?;
    let mut solver: Ddp<D> = result.solver;
    let mut engine = result.problem.problem.ok_or_else(missing)?.engine;
    let last = solver.checkpoint(&engine);
    solver.checkpoints.keep(last);
    let (status, mut reason) = solver
        .status
        .take()
        .unwrap_or((Status::Diverged, String::new()));
    let (step_evaluations, gradient_evaluations) = (engine.steps, engine.models);
    let row = match &solver.best {
        Some(best) => {
            engine.return_to(&best.trajectory, best.row.smoothing)?;
            let row = best.row.clone();
            if best.soft {
                solver.on_hard(&mut engine, row)
            } else {
                row
            }
        }
        None => Iteration {
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            optimality: f64::INFINITY,
            ..Iteration::default()
        },
    };
    let violated = engine.violated(solver.options.tolerance);
    match status {
        Status::MaxIterations => {
            reason = super::out_of_iterations(solver.options.max_iterations, &violated);
        }
        Status::Interrupted => reason = super::cut_short("stopped from outside", &violated),
        _ => (),
    }
    Ok(Solution {
        status,
        reason,
        gains: solver.best.is_some().then(|| engine.gains()),
        objective: row.objective,
        violation: row.violation,
        optimality: row.optimality,
        smoothing: row.smoothing,
        trajectory: engine.path.trajectory,
        iterations: solver.history.len().saturating_sub(1) as u64,
        step_evaluations,
        gradient_evaluations,
        history: solver.history,
    })
}
