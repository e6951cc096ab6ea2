//! Differential dynamic programming.

mod backward;
mod box_qp;
mod dense;
mod engine;
mod lagrangian;
mod model;
mod path;

use super::{Gains, Iteration, IterationState, Solution, Status};
use crate::control::Problem;
use crate::dynamics::Observe;
use crate::rollout::Trajectory;
use argmin::core::observers::{Observe as Observer, ObserverMode};
use argmin::core::{
    Error, Executor, KV, Problem as Counted, Solver, State, TerminationReason, TerminationStatus,
};
use engine::{Attempt, Engine};
use nalgebra::{DMatrix, DVector};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// What the model still promises to gain, relative to the objective.
    pub optimality: f64,
    /// Iterations of all rounds.
    pub max_iterations: u64,
    /// First penalty weight of the constraints.
    pub penalty: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 1000,
            penalty: 10.0,
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
pub struct Ddp<D> {
    options: Options,
    round_tolerance: f64,
    last_violation: f64,
    stuck: u32,
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
}

impl Best {
    fn is_worse_than(&self, other: &Iteration, tolerance: f64) -> bool {
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

impl<D: Observe> Ddp<D> {
    /// With the given settings.
    pub fn new(options: Options) -> Self {
        Self {
            round_tolerance: options.optimality.max(1e-2),
            options,
            last_violation: f64::INFINITY,
            stuck: 0,
            best: None,
            history: vec![],
            status: None,
            dynamics: PhantomData,
        }
    }

    fn optimality(&self, e: &Engine<D>) -> f64 {
        let violation = e.violation().max(self.options.tolerance);
        let constrained = !e.path.evaluation.constraints.is_empty();
        let penalty = if constrained {
            e.lagrangian.penalty
        } else {
            0.0
        };
        let size = e.path.evaluation.objective.abs()
            + 0.5 * penalty * violation * violation
            + 1e-12 * e.first_objective.abs()
            + f64::MIN_POSITIVE;
        e.promise().abs() / size
    }

    fn record(&mut self, e: &Engine<D>, optimality: f64, step_length: f64) -> KV {
        let row = Iteration {
            iteration: self.history.len() as u64,
            objective: e.path.evaluation.objective,
            violation: e.violation().max(e.path.gap),
            optimality,
            step_length,
            regularization: e.regularization,
        };
        let converged = matches!(self.status, Some((Status::Converged, _)));
        let better = |b: &Best| b.is_worse_than(&row, self.options.tolerance);
        if !e.path.has_gaps && (converged || self.best.as_ref().is_none_or(better)) {
            match &mut self.best {
                Some(b) => {
                    b.trajectory.clone_from(&e.path.trajectory);
                    b.row = row.clone();
                }
                None => {
                    self.best = Some(Best {
                        trajectory: e.path.trajectory.clone(),
                        row: row.clone(),
                    });
                }
            }
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

    /// Ends rounds as long as the path is their minimum: new multipliers need a new model only.
    fn finish_rounds(&mut self, e: &mut Engine<D>) -> Result<f64, Error> {
        loop {
            let optimality = self.optimality(e);
            if e.path.has_gaps || optimality > self.round_tolerance {
                return Ok(optimality);
            }
            let violation = e.violation();
            let o = &self.options;
            if violation <= o.tolerance && optimality <= o.optimality {
                self.status = Some((Status::Converged, String::new()));
                return Ok(optimality);
            }
            if e.lagrangian.penalty > 1e10 * o.penalty {
                let reason = format!(
                    "these stay violated although the penalty grew to {:.0e}: {}; are they within reach?",
                    e.lagrangian.penalty,
                    self.violated(e)
                );
                self.status = Some((Status::Infeasible, reason));
                return Ok(optimality);
            }
            let slow = violation > 0.25 * self.last_violation && violation > o.tolerance;
            let constrained = !e.path.evaluation.constraints.is_empty();
            self.last_violation = violation;
            self.round_tolerance = (self.round_tolerance * 0.1).max(o.optimality);
            if constrained {
                e.lagrangian.update(&e.path, if slow { 10.0 } else { 1.0 });
                e.refresh()?;
                e.plan();
            }
        }
    }

    fn violated(&self, e: &Engine<D>) -> String {
        e.problem
            .violated(
                e.dynamics,
                &e.path.evaluation,
                &e.path.trajectory,
                self.options.tolerance,
            )
            .join(", ")
    }
}

fn missing() -> Error {
    Error::msg("argmin has taken the problem away")
}

impl<'a, D: Observe> Solver<Handle<'a, D>, IterationState> for Ddp<D> {
    fn name(&self) -> &str {
        "differential dynamic programming"
    }

    fn init(
        &mut self,
        problem: &mut Counted<Handle<'a, D>>,
        state: IterationState,
    ) -> Result<(IterationState, Option<KV>), Error> {
        let e = &mut problem.problem.as_mut().ok_or_else(missing)?.engine;
        if let Err(error) = e.start() {
            let reason = format!("the guess cannot be simulated: {error}");
            self.status = Some((Status::Diverged, reason));
            return Ok((state.param(DVector::zeros(0)), None));
        }
        e.plan();
        let optimality = self.finish_rounds(e)?;
        let kv = self.record(e, optimality, 0.0);
        Ok((
            state
                .param(DVector::zeros(0))
                .cost(e.path.evaluation.objective),
            Some(kv),
        ))
    }

    fn next_iter(
        &mut self,
        problem: &mut Counted<Handle<'a, D>>,
        state: IterationState,
    ) -> Result<(IterationState, Option<KV>), Error> {
        let handle = problem.problem.as_mut().ok_or_else(missing)?;
        let stop = handle.stop;
        let e = &mut handle.engine;
        let length = match e.improve(&|| stop.load(Ordering::Relaxed)) {
            Attempt::Stopped => {
                self.status = Some((Status::Interrupted, "stopped from outside".into()));
                return Ok((state, None));
            }
            Attempt::Moved(length) => {
                self.stuck = 0;
                e.refresh()?;
                e.plan();
                length
            }
            Attempt::Stuck => {
                self.stuck += 1;
                let reason = format!(
                    "no step makes progress any more; promised gain {:.3e}",
                    e.promise()
                );
                self.status = Some((Status::Diverged, reason));
                0.0
            }
        };
        let optimality = if self.status.is_none() {
            self.finish_rounds(e)?
        } else {
            self.optimality(e)
        };
        let kv = self.record(e, optimality, length);
        Ok((state.cost(e.path.evaluation.objective), Some(kv)))
    }

    fn terminate(&mut self, state: &IterationState) -> TerminationStatus {
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
    observer: impl Observer<IterationState> + 'static,
    stop: &AtomicBool,
) -> Result<Solution, Error> {
    let handle = Handle {
        engine: Engine::new(dynamics, problem, options.penalty),
        stop,
    };
    let result = Executor::new(handle, Ddp::new(options))
        .configure(|state| state.max_iters(u64::MAX))
        .timer(false)
        .ctrlc(false)
        .add_observer(observer, ObserverMode::Always)
        .run()?;
    let solver: Ddp<D> = result.solver;
    let engine = result.problem.problem.ok_or_else(missing)?.engine;
    let (status, reason) = solver.status.unwrap_or((Status::Diverged, String::new()));
    let best = solver.best.unwrap_or_else(|| Best {
        trajectory: engine.path.trajectory.clone(),
        row: Iteration {
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            optimality: f64::INFINITY,
            ..Iteration::default()
        },
    });
    let sizes = engine.model.sizes;
    let gains = (0..sizes.steps).map(|k| {
        DMatrix::from_column_slice(
            sizes.m,
            sizes.n,
            &engine.policy.feedback(k)[..sizes.m * sizes.n],
        )
    });
    Ok(Solution {
        status,
        reason,
        gains: Some(Gains {
            feedback: gains.collect(),
            frames: vec![],
        }),
        trajectory: best.trajectory,
        objective: best.row.objective,
        violation: best.row.violation,
        optimality: best.row.optimality,
        iterations: solver.history.len().saturating_sub(1) as u64,
        step_evaluations: engine.steps,
        gradient_evaluations: engine.models,
        history: solver.history,
    })
}
