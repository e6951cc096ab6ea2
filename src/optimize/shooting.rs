//! Single shooting: controls and free parameters are the unknowns, the states follow by simulation, gradients by the
//! reverse sweep.
//!
//! Constraints at any knot and bounds enter by an augmented Lagrangian. Each round of it is minimized by Newton's method
//! with the Gauss-Newton curvature, which L-BFGS corrects by what the exact gradients showed on the way; between rounds
//! the multipliers move, and the penalty grows where the violation did not fall to a quarter.
//!
//! Sensitivities of a swing-up span many orders of magnitude: along a straight line of controls the states soon leave
//! their linear prediction, costs and constraints at the end with them, and only tiny steps are accepted. A trial is
//! therefore simulated with the curvature's own feedback `K_k` about the prediction,
//!
//! ```text
//! u_k = u_ref + a d_k + K_k (dx_k - a s_k)
//! ```
//!
//! with `d` the direction, `s` the response of the states to it, `dx` the change found, `a` the length. To first order
//! nothing changes, and what is found are controls again, where the next gradient is taken.

pub use super::Solution;
use super::augmented::{Augmented, Param};
use super::checkpoint::{Checkpoint, Checkpoints, Incumbent};
use super::{Iteration, IterationState, Status};
use crate::control::Problem;
use crate::dynamics::Observe;
use argmin::core::observers::{Observe as Observer, ObserverMode};
use argmin::core::{
    Error, Executor, KV, Problem as Counted, Solver, State, TerminationReason, TerminationStatus,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// What the curvature still promises to gain, relative to the objective: `1/2 g' H^-1 g / |J|`.
    pub optimality: f64,
    /// Iterations of all rounds; a solve that goes on may make as many again.
    pub max_iterations: u64,
    /// Pairs that L-BFGS remembers.
    pub memory: usize,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess.
    pub penalty: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 5000,
            memory: 10,
            penalty: 0.1,
        }
    }
}

/// The state argmin's executor keeps and observers see.
pub type ShootingState = IterationState;

/// What argmin is given.
pub struct Handle<'a, D: Observe> {
    function: Augmented<'a, D>,
    stop: &'a AtomicBool,
}

/// Pairs of changes of the decisions and of the gradient: what L-BFGS knows of the curvature that Gauss and Newton's
/// lacks.
struct Memory {
    most: usize,
    pairs: VecDeque<(Param, Param)>,
}

impl Memory {
    /// Learns from a step `s` and the change `y` of the gradient, where they tell of the curvature: not where the step
    /// is `bent`, the function not convex, or both far from the Gauss-Newton curvature `along` the step.
    fn learn(&mut self, s: Param, y: Param, along: f64, bent: f64) {
        let ratio = s.dot(&y) / along;
        if !(bent < 0.01 && (0.01..100.0).contains(&ratio)) {
            return self.pairs.clear();
        }
        self.pairs.push_back((s, y));
        if self.pairs.len() > self.most {
            self.pairs.pop_front();
        }
    }

    /// The quasi-Newton direction of descent (Nocedal and Wright, algorithm 7.4); `newton` applies the inverse that it
    /// starts from.
    fn direction(&self, g: &Param, newton: impl Fn(&Param) -> Param) -> Param {
        let mut q = -g;
        let mut along = Vec::with_capacity(self.pairs.len());
        for (s, y) in self.pairs.iter().rev() {
            let a = s.dot(&q) / s.dot(y);
            q.axpy(-a, y, 1.0);
            along.push(a);
        }
        let mut d = newton(&q);
        for ((s, y), a) in self.pairs.iter().zip(along.into_iter().rev()) {
            d.axpy(a - y.dot(&d) / s.dot(y), s, 1.0);
        }
        d
    }
}

/// The argmin solver: L-BFGS iterations with rounds of multiplier updates between them.
pub struct Shooting<'c> {
    options: Options,
    checkpoints: Checkpoints<'c>,
    memory: Memory,
    /// Of the curvature.
    damping: f64,
    /// Line searches in a row that gained nothing.
    stuck: u32,
    /// Optimality asked of the round.
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

/// What a checkpoint keeps of this method alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The iterate as it is searched: unscaled and scaled again it may differ by rounding.
    decisions: Vec<f64>,
    pairs: Vec<(Vec<f64>, Vec<f64>)>,
    damping: f64,
    stuck: u32,
    first_penalty: f64,
}

/// How a line search ended.
enum Search {
    /// With this length, and with a gain beyond rounding or not.
    Moved(f64, bool),
    Failed,
    Interrupted,
}

/// As the command line and checkpoints call it.
pub const NAME: &str = "shooting";

impl<'c> Shooting<'c> {
    /// With the given settings.
    pub fn new(options: Options, checkpoints: Checkpoints<'c>) -> Self {
        Self {
            memory: Memory {
                most: options.memory,
                pairs: VecDeque::new(),
            },
            options,
            checkpoints,
            damping: 0.0,
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
            smoothing: 0.0,
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
        let of = |v: &Param| v.as_slice().to_vec();
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
                smoothing: 0.0,
            }),
            multipliers: p.multipliers().clone(),
            round_tolerance: self.round_tolerance,
            last_violation: self
                .last_violation
                .is_finite()
                .then_some(self.last_violation),
            step_evaluations: p.steps,
            gradient_evaluations: p.sweeps,
            history: self.history.clone(),
            ddp: None,
            shooting: self.iterate.as_ref().map(|v| Kept {
                decisions: of(v),
                pairs: self
                    .memory
                    .pairs
                    .iter()
                    .map(|(s, y)| (of(s), of(y)))
                    .collect(),
                damping: self.damping,
                stuck: self.stuck,
                first_penalty: p.first_penalty,
            }),
        }
    }

    /// Goes on where a solve stood; `false` if it had converged.
    fn resume<D: Observe>(&mut self, c: Checkpoint, p: &mut Augmented<D>) -> bool {
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
        let mut v = p.decisions_of(&c.point);
        p.first_penalty = c.multipliers.penalty;
        let n = v.len();
        if let Some(kept) = c.shooting.filter(|k| k.decisions.len() == n) {
            v.copy_from_slice(&kept.decisions);
            let pairs = kept.pairs.into_iter();
            self.memory.pairs = pairs
                .filter(|(s, y)| s.len() == n && y.len() == n)
                .map(|(s, y)| (s.into(), y.into()))
                .collect();
            (self.damping, self.stuck) = (kept.damping, kept.stuck);
            p.first_penalty = kept.first_penalty;
        }
        self.iterate = Some(v.clone());
        if converged {
            (p.steps, p.sweeps) = (c.step_evaluations, c.gradient_evaluations);
            self.status = Some((Status::Converged, String::new()));
            return false;
        }
        p.restore(&c.multipliers, &v);
        true
    }

    /// The end of a round: converged, infeasible, or new multipliers and penalties.
    fn finish_round<D: Observe>(&mut self, p: &mut Augmented<D>, violation: f64, optimality: f64) {
        let o = &self.options;
        if violation <= o.tolerance && optimality <= o.optimality && p.gap() <= o.optimality {
            self.status = Some((Status::Converged, String::new()));
            return;
        }
        if violation > o.tolerance && p.penalty() > 1e10 * p.first_penalty {
            let reason = format!(
                "these stay violated although the penalty grew to {:.0e}: {}; are they within reach?",
                p.penalty(),
                p.violated(o.tolerance)
            );
            self.status = Some((Status::Infeasible, reason));
            return;
        }
        let slow = violation > 0.25 * self.last_violation && violation > o.tolerance;
        p.update(if slow { 10.0 } else { 1.0 });
        if slow {
            self.memory.pairs.clear();
        }
        self.last_violation = violation;
        self.round_tolerance = (self.round_tolerance * 0.1).max(o.optimality);
    }

    /// Decides after an iteration.
    fn decide<D: Observe>(&mut self, p: &mut Augmented<D>, optimality: f64, gained: bool) {
        let violation = p.violation();
        if optimality <= self.round_tolerance {
            self.stuck = 0;
            return self.finish_round(p, violation, optimality);
        }
        if gained {
            self.stuck = 0;
            return;
        }
        // no gain: first without memory and with damping, then as far as this round gets
        self.stuck += 1;
        self.memory.pairs.clear();
        self.damping = (10.0 * self.damping).max(1e-3);
        match self.stuck {
            1..8 => (),
            8..16 => self.finish_round(p, violation, optimality),
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
                    Status::Diverged
                } else {
                    Status::Stationary
                };
                self.status = Some((status, reason));
            }
        }
    }

    /// Searches along the quasi-Newton direction, and moves.
    fn search<D: Observe>(&mut self, handle: &mut Handle<D>) -> Result<Search, Error> {
        let p = &mut handle.function;
        let gradient = p.gradient()?;
        if self.damping > 0.0 {
            p.damp(self.damping);
        }
        let mut d = self.memory.direction(&gradient, |q| p.newton(q));
        if gradient.dot(&d) >= 0.0 {
            self.memory.pairs.clear();
            d = -p.newton(&gradient);
        }
        let slope = gradient.dot(&d);
        let response = p.response(&d);
        let old = p.value;
        let rounding = 1e-14 * old.abs();
        let mut length = 1.0;
        while length > SHORTEST {
            if handle.stop.load(Ordering::Relaxed) {
                return Ok(Search::Interrupted);
            }
            // what cannot be simulated is too far
            let value = p.try_out(&d, &response, length).unwrap_or(f64::INFINITY);
            if value <= old + FAIR * length * slope + rounding {
                let before = p.at.clone();
                // where feedback bent the step the two gradients differ by more than the curvature along it
                p.accept();
                let s = &p.at - before;
                let bent = p.square(&(&s - &d * length)) / (length * length * slope.abs());
                let (y, along) = (p.gradient()? - gradient, p.square(&s));
                self.memory.learn(s, y, along, bent);
                if length > 0.3 {
                    self.damping *= 0.2;
                    if self.damping < 1e-6 {
                        self.damping = 0.0;
                    }
                } else if length < 0.1 {
                    self.damping = (4.0 * self.damping).max(1e-3);
                }
                return Ok(Search::Moved(length, p.value < old - rounding));
            }
            length *= 0.5;
        }
        Ok(Search::Failed)
    }

    fn interrupted(&mut self) {
        self.status = Some((Status::Interrupted, String::new()));
    }
}

/// Part of the slope's promise that a step must keep.
const FAIR: f64 = 1e-4;

/// Length below which a line search has failed.
const SHORTEST: f64 = 1e-4;

fn missing() -> Error {
    Error::msg("argmin has taken the problem away")
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
        let p = &mut problem.problem.as_mut().ok_or_else(missing)?.function;
        let resumed = self.checkpoints.resume.take();
        let counts = resumed
            .as_ref()
            .map(|c| (c.step_evaluations, c.gradient_evaluations));
        match resumed {
            None => p.roll(&p.guess()),
            Some(c) => {
                if !self.resume(c, p) {
                    return Ok((state.param(p.guess()), None));
                }
            }
        }
        if let Some(e) = &p.failed {
            let reason = format!("the guess cannot be simulated: {e}");
            self.status = Some((Status::Diverged, reason));
            return Ok((state.param(p.guess()), None));
        }
        if counts.is_none() {
            p.calibrate()?;
        }
        p.gradient()?;
        p.curve()?;
        let optimality = p.promise(self.options.tolerance)?;
        let kv = match counts {
            None => Some(self.record(p, optimality, 0.0)),
            Some(counts) => {
                // to stand where it stood is no progress
                (p.steps, p.sweeps) = counts;
                None
            }
        };
        Ok((state.param(p.at.clone()).cost(p.value), kv))
    }

    fn next_iter(
        &mut self,
        problem: &mut Counted<Handle<'_, D>>,
        state: ShootingState,
    ) -> Result<(ShootingState, Option<KV>), Error> {
        let handle = problem.problem.as_mut().ok_or_else(missing)?;
        let (length, gained) = match self.search(handle)? {
            Search::Interrupted => {
                self.interrupted();
                return Ok((state, None));
            }
            Search::Moved(length, gained) => (length, gained),
            Search::Failed => (0.0, false),
        };
        let p = &mut handle.function;
        p.gradient()?;
        p.curve()?;
        let optimality = p.promise(self.options.tolerance)?;
        let penalty = p.multipliers().clone();
        self.decide(p, optimality, gained);
        let kv = self.record(p, optimality, length);
        p.gradient()?;
        if penalty != *p.multipliers() {
            p.curve()?;
        }
        if self.checkpoints.are_due() {
            let now = self.checkpoint(p);
            self.checkpoints.keep(now);
        }
        Ok((state.param(p.at.clone()).cost(p.value), Some(kv)))
    }

    fn terminate(&mut self, state: &ShootingState) -> TerminationStatus {
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
    observer: impl Observer<ShootingState> + 'static,
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
    observer: impl Observer<ShootingState> + 'static,
    stop: &AtomicBool,
) -> Result<Solution, Error> {
    problem.check(dynamics)?;
    if let Some(c) = &checkpoints.resume {
        c.fits(NAME, problem)
            .map_err(|e| Error::msg(format!("the checkpoint does not fit: {e}")))?;
    }
    let handle = Handle {
        function: Augmented::new(dynamics, problem, options.penalty),
        stop,
    };
    let result = Executor::new(handle, Shooting::new(options, checkpoints))
        .configure(|state| state.max_iters(u64::MAX))
        .timer(false)
        .ctrlc(false)
        .add_observer(observer, ObserverMode::Always)
        .run()?;
    let mut solver = result.solver;
    let mut p = result.problem.problem.ok_or_else(missing)?.function;
    let last = solver.checkpoint(&p);
    solver.checkpoints.keep(last);
    let (status, mut reason) = solver.status.unwrap_or((Status::Diverged, String::new()));
    let best = solver.best.unwrap_or_else(|| Best {
        decisions: p.guess(),
        violation: f64::INFINITY,
        objective: f64::INFINITY,
        optimality: f64::INFINITY,
    });
    let (step_evaluations, gradient_evaluations) = (p.steps, p.sweeps);
    p.settle(&best.decisions);
    let violated = p.violated(solver.options.tolerance);
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
        gains: None,
        trajectory: p.trajectory,
        objective: best.objective,
        violation: best.violation,
        optimality: best.optimality,
        smoothing: 0.0,
        iterations: solver.history.len().saturating_sub(1) as u64,
        step_evaluations,
        gradient_evaluations,
        history: solver.history,
    })
}
