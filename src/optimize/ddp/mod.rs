//! Differential dynamic programming (Mayne 1966; Jacobson and Mayne 1970): a feedback policy from the linear-quadratic
//! model along a trajectory, rolled out through the dynamics themselves.
//!
//! - **Model.** With `w = (dx, dp, du)` in the joint chart, `dx+ = F w + gap`; costs `weight/2 (q - target)^2` give the
//!   curvature `weight C'C` (Gauss and Newton), `C` the row of the quantity. What that lacks is learnt by symmetric
//!   rank-one updates of one block a knot and used where it helps (see `lq/secant.rs`).
//! - **Backward pass.** Riccati's recursion over `(dx, dp)`; the parameters are solved for at the start, within their
//!   bounds. Bounds of the controls hold exactly, by a projected Newton method at every knot (Tassa, Mansard, Todorov,
//!   ICRA 2014); feedback of a control at its bound is zero.
//! - **Rollouts.** `u' = u + a k + K (x' - x, a dp)`, clamped. States given as a guess need not follow from each other:
//!   the gaps between them shrink by `1 - a` (Giftthaler et al., IROS 2018; Mastalli et al., ICRA 2020) and are weighed
//!   in the merit by a multiple that makes every step a descent.
//! - **Globalization.** A step is taken if it gains a twentieth of what the model predicts; else a shorter one is tried,
//!   as short as the curvature observed suggests. Where no length does, changes of states and controls are weighed (Levenberg and
//!   Marquardt), each by its mean curvature, and as much as the curvature observed along the failed step tells. With the states
//!   weighed, feedback keeps unstable paths together however large the weight. Where whole steps gain more than
//!   predicted, up to twice their length is tried.
//! - **Constraints** other than bounds of controls and parameters enter by an augmented Lagrangian. Once the violation
//!   is small, the penalty is raised so far that the remaining steps are Newton's projections on the active constraints
//!   in the metric of the curvature, with bounds held: violations of 1e-9 and below cost few iterations.
//! - **Segments.** Where the states at some knots are decisions of their own ([`Options::segments`], the method
//!   `multiple-shooting`), they go where the linear model leads, each segment is rolled out from its own, and gaps are as above.
//!   Once they are small, or where no step makes progress with them, the segments are joined and the rest is as without.
//! - **Contact.** Derivatives may be relaxed at first and become those of hard contact, and the steps with them (see
//!   [`Smoothing`]); objective and violation of a solution always are those of steps with hard contact.

mod engine;
pub mod receding;
mod roll;
mod saved;
mod smoothing;

use super::checkpoint::{Checkpoint, Incumbent};
use super::driver::{Algorithm, Found};
use super::infeasibility::{Infeasibility, NO_LONGER_FEASIBLE, STATIONARY, worst};
use super::lq::{FIRST_TOLERANCE, PENALTY_GROWTH, SLOW, TOLERANCE_REDUCTION, within_reach};
use super::state::{Best, is_better};
use super::{Gains, Iteration, Method, Remedy, SolveState, Status};
use crate::control::Problem;
use crate::dynamics::{Certificate, Observe, stop_requested, unstopped};
use crate::rollout::Trajectory;
use argmin::core::Error;
pub(super) use engine::feedback;
use engine::{Attempt, Engine};
use saved::Saved;
pub use smoothing::Smoothing;
use std::borrow::Cow;
use std::num::NonZeroUsize;

// Where no reason is given beside what a constant trades, its value is conventional, not derived.

/// Growth of the penalty at which constraints that stay violated are given up: four times by [`PROJECTION_GROWTH`].
const MAX_PENALTY_GROWTH: f64 = 1e12;
/// Part of the guess's objective that counts as nothing, where an objective vanishes at its minimum: optimality could not
/// be relative to zero.
const OBJECTIVE_FLOOR: f64 = 1e-12;
/// Failures in a row to make a step up to which rounds still end where it stands: new multipliers may free it.
const MAX_FAILURES: u32 = 8;
/// By what a solve that smoothing did not help is advised to raise it: one level of the default's factor.
const HIGHER: f64 = 10.0;
/// Up to where, m^2/s^2: contact is smooth over some metres a second then, and more of it shows nothing else.
const HIGHEST: f64 = 10.0;

/// Segments of multiple shooting by default. From the guesses of the four swing-ups, the arm, the quadrotor and the five-bar's turn
/// 2, 5, 20, 50 and 1000 of them solve all, in 0.7 to 2 times the iterations of none; 10 leave the acrobot unsolved.
const SEGMENTS: NonZeroUsize = NonZeroUsize::new(20).unwrap();

/// Sum over the segments of the largest number of each gap, in the units of the states, from which on segments are joined: feedback
/// bridges it, and curvature is learnt behind it. At 1e-6 the acrobot, the quadrotor and minimum time took two times the
/// iterations and more, at 1e-1 no more.
const JOINED_GAP: f64 = 1e-2;

/// Length of a step behind which they are: gaps behind a short one are small by themselves. As a short one is for
/// regularization.
const JOINED_LENGTH: f64 = 0.1;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// Reduction that the model still predicts, relative to the objective and half the penalty times the square of the
    /// violation, or of the tolerance.
    pub optimality: f64,
    /// Iterations of all rounds.
    pub max_iterations: u64,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess.
    pub penalty: f64,
    /// Derivatives through contact are relaxed at first, as by default, or the steps themselves; derivatives are those of
    /// the step from the beginning where this is `None`. Systems without contact are solved the same either way.
    pub smoothing: Option<Smoothing>,
    /// Parts of the horizon, each of which is simulated from a state that is decided: multiple shooting; more than there are
    /// steps are one a step. Where this is `None` all of it is simulated from the start.
    pub segments: Option<NonZeroUsize>,
}

impl Options {
    /// Multiple shooting, as it is by default.
    pub fn multiple_shooting() -> Self {
        Self {
            segments: Some(SEGMENTS),
            ..Self::default()
        }
    }

    /// Whose settings they are.
    pub(super) fn method(&self) -> Method {
        match self.segments {
            Some(_) => Method::MultipleShooting,
            None => Method::Ddp,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 1000,
            penalty: 0.1,
            smoothing: Some(Smoothing::default()),
            segments: None,
        }
    }
}

/// The method: an iterate with its model, and the rounds of multipliers around it.
pub(super) struct Ddp<'a, D: Observe> {
    engine: Engine<'a, D>,
    rounds: Rounds,
}

/// Rounds of multipliers and penalty, each of which minimizes an augmented Lagrangian.
struct Rounds {
    options: Options,
    /// Predicted reduction at which the present one ends.
    tolerance: f64,
    /// Violation at the end of the one before.
    last_violation: f64,
    /// The guess on hard steps, where softened ones begin: what they lead to may be worse.
    guess: Option<Best>,
}

impl<'a, D: Observe> Ddp<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, options: Options) -> Self {
        Self {
            engine: Engine::new(dynamics, Cow::Borrowed(problem), &options),
            rounds: Rounds {
                tolerance: options.optimality.max(FIRST_TOLERANCE),
                last_violation: f64::INFINITY,
                guess: None,
                options,
            },
        }
    }
}

impl Rounds {
    fn optimality<D: Observe>(&self, e: &Engine<D>) -> f64 {
        e.attainable_reduction().abs() / self.size(e)
    }

    fn complementarity<D: Observe>(&self, e: &Engine<D>) -> f64 {
        e.lagrangian.complementarity(&e.path) / self.size(e)
    }

    /// What a predicted reduction is compared with.
    fn size<D: Observe>(&self, e: &Engine<D>) -> f64 {
        let violation = e.path.violation(&e.problem).max(self.options.tolerance);
        let constrained = !e.path.evaluation.constraints.is_empty();
        let penalty = if constrained {
            e.lagrangian.penalty
        } else {
            0.0
        };
        e.path.evaluation.objective.abs()
            + 0.5 * penalty * violation * violation
            + OBJECTIVE_FLOOR * e.first_objective.abs()
            + f64::MIN_POSITIVE
    }

    /// Notes the path; only what can be simulated is a result.
    fn record<D: Observe>(
        &self,
        e: &Engine<D>,
        state: &mut SolveState,
        optimality: f64,
        step_length: f64,
    ) {
        let row = Iteration {
            objective: e.path.evaluation.objective,
            violation: e.path.violation(&e.problem).max(e.path.gap),
            optimality,
            step_length,
            regularization: e.lagrangian.penalty,
            smoothing: e.level,
            softened: e.is_soft(),
            ..Iteration::default()
        };
        let worst = e.problem.worst(&e.path.evaluation, self.options.tolerance);
        state.watch(worst.map(|(i, _)| i));
        state.record(&e.path.trajectory, row, !e.path.has_gaps);
    }

    /// What a path of softened steps is worth on hard ones: only these are a result.
    fn on_hard_contact<D: Observe>(&self, e: &mut Engine<D>, soft: Iteration) -> Option<Iteration> {
        let made = e.follow_level(0.0).and_then(|()| e.update_model());
        if made.is_err() || !e.find_policy() {
            return None;
        }
        Some(Iteration {
            objective: e.path.evaluation.objective,
            violation: e.path.violation(&e.problem),
            optimality: self.optimality(e),
            smoothing: 0.0,
            softened: false,
            ..soft
        })
    }

    /// Ends rounds as long as the path is their minimum; returns the optimality reached.
    fn finish_rounds<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<f64, Error> {
        loop {
            if stop_requested() || !e.path.evaluation.objective.is_finite() {
                return Ok(f64::INFINITY);
            }
            let enough = self.tolerance * self.size(e);
            // a model whose rounding predicts a loss is none of a minimum: rounds would not end
            let ended = !e.path.has_gaps
                && e.predicts_at_most(enough)
                && e.attainable_reduction() >= -enough;
            let optimality = self.optimality(e);
            if !ended || !self.finish_round(e, state, optimality)? {
                return Ok(optimality);
            }
        }
    }

    /// Converged, infeasible, or a new round with new multipliers and penalty: then true.
    fn finish_round<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
        optimality: f64,
    ) -> Result<bool, Error> {
        let (violation, o) = (e.path.violation(&e.problem), &self.options);
        if self.level_is_done(e, violation, optimality) {
            self.next_level(e, state)?;
            return Ok(state.ended.is_none());
        }
        let complementarity = self.complementarity(e);
        let optimal = optimality <= o.optimality && complementarity <= o.optimality;
        if !e.is_relaxed() && violation <= o.tolerance && optimal {
            state.end(Status::Converged, "");
            return Ok(false);
        }
        let penalty = e.lagrangian.penalty;
        if violation > o.tolerance && penalty > MAX_PENALTY_GROWTH * e.lagrangian.first_penalty {
            if self.soften(e, state)? {
                return Ok(state.ended.is_none());
            }
            if self.has_feasible(state) {
                self.end_at_rest(e, state, NO_LONGER_FEASIBLE);
            } else {
                self.end_infeasible(e, state);
            }
            return Ok(false);
        }
        let growth = if violation <= o.tolerance && optimality <= o.optimality {
            // only multipliers of inequalities with room are left, which fall by the penalty times that
            if complementarity > o.optimality {
                PENALTY_GROWTH
            } else {
                1.0
            }
        } else if violation <= o.tolerance {
            1.0
        } else if violation <= PROJECTION_VIOLATION
            && self.tolerance <= o.optimality
            && !e.is_relaxed()
        {
            PROJECTION_GROWTH
        } else if violation > SLOW * self.last_violation {
            PENALTY_GROWTH
        } else {
            1.0
        };
        self.last_violation = violation;
        self.tolerance = (self.tolerance * TOLERANCE_REDUCTION).max(self.least_optimality(e));
        if !e.path.evaluation.constraints.is_empty() {
            e.lagrangian.update(&e.path, growth);
            e.reweigh_model()?;
            if !e.find_policy() {
                state.end(Status::Diverged, UNBOUNDED);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does some path keep all constraints, on hard steps?
    pub(super) fn has_feasible(&self, state: &SolveState) -> bool {
        let of_guess = |g: &Best| g.row.violation <= self.options.tolerance;
        state.has_feasible() || self.guess.as_ref().is_some_and(of_guess)
    }

    /// Ends where constraints stay violated.
    fn end_infeasible<D: Observe>(&self, e: &mut Engine<D>, state: &mut SolveState) {
        let tolerance = self.options.tolerance;
        let start = Smoothing::default().start;
        let Certificate {
            kappa, has_gaps, ..
        } = e.model.certificate;
        let infeasibility = Infeasibility {
            violated: e.path.violated(e.dynamics, &e.problem, tolerance),
            worst: worst(e.dynamics, &e.problem, state),
            without_gradient: e.model.without_gradient(
                e.dynamics,
                &e.problem,
                &e.path,
                tolerance,
                &mut e.workers,
            ),
            penalty: e.lagrangian.penalty,
            has_decisions: e.model.sizes.m + e.model.sizes.q > 0,
            // friction in joints acts everywhere, and smoothing saw past what it holds
            blind: kappa > 0.0 && (has_gaps || self.options.smoothing.is_none()),
            violation: e.path.violation(&e.problem),
            within_reach: within_reach(e.dynamics, &e.problem, &e.lagrangian, &e.path),
            smoothing: match self.options.smoothing {
                None => Some(start),
                Some(s) => Some(HIGHER * s.start).filter(|higher| *higher <= HIGHEST),
            },
        };
        infeasibility.end(state);
    }

    /// Takes a step, of the length returned, or goes on to where one can be made; nothing if asked to stop.
    fn advance<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<Option<f64>, Error> {
        let mark = e.mark();
        match e.improve() {
            Attempt::Stopped => {
                e.return_to_mark(mark);
                state.end(Status::Interrupted, "");
                return Ok(None);
            }
            Attempt::Moved(taken) => {
                if e.search.steps_without_gain == 0 {
                    e.search.failures = 0;
                }
                let updated = e.update_model();
                if updated.is_err() && stop_requested() {
                    e.step_back();
                    e.return_to_mark(mark);
                    state.end(Status::Interrupted, "");
                    return Ok(None);
                }
                // what is learnt of a step is not unlearnt: from here on the iteration ends in one piece
                return unstopped(|| {
                    // where there are no derivatives there is no way on
                    if updated.is_err() {
                        e.undo_step()?;
                    }
                    let found = e.find_policy();
                    if !found {
                        e.policy.forget();
                    }
                    let meet = e.path.gap <= JOINED_GAP && taken >= JOINED_LENGTH;
                    if e.path.has_gaps && found && meet && e.join()? {
                        return Ok(Some(taken));
                    }
                    if !(found || self.join_anyhow(e, state)?) {
                        state.end(Status::Diverged, UNBOUNDED);
                    } else if e.is_slow() {
                        self.on_slow_progress(e, state)?;
                    }
                    Ok(Some(taken))
                });
            }
            Attempt::Failed => unstopped(|| self.after_failure(e, state))?,
        }
        Ok(Some(0.0))
    }

    /// Segments that lead nowhere are joined where they are, or at the best path that was simulated.
    fn join_anyhow<D: Observe>(
        &self,
        e: &mut Engine<D>,
        state: &SolveState,
    ) -> Result<bool, Error> {
        if !e.has_segments() {
            return Ok(false);
        }
        if e.join()? {
            return Ok(true);
        }
        let Some(Best { trajectory, row }) = &state.best else {
            return Ok(false);
        };
        e.search.joined = true;
        // hard steps are the same at every level of the derivatives
        let (level, soft) = match e.is_soft() || row.softened {
            true => (row.smoothing, row.softened),
            false => (e.level, false),
        };
        Ok(e.return_to(trajectory, level, soft, false)?)
    }

    /// No step makes progress: the round has got as far as it can, or all of it has.
    fn after_failure<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<(), Error> {
        if self.join_anyhow(e, state)? {
            return Ok(());
        }
        if e.is_soft() && e.path.violation(&e.problem) > self.level_violation(e) {
            let optimality = self.optimality(e);
            self.finish_round(e, state, optimality)?;
            return Ok(());
        }
        if e.is_relaxed() {
            return self.next_level(e, state);
        }
        e.search.failures += 1;
        e.predicts_at_most(f64::INFINITY);
        let (violation, optimality) = (e.path.violation(&e.problem), self.optimality(e));
        let constrained = !e.path.evaluation.constraints.is_empty();
        if constrained && !e.path.has_gaps && e.search.failures < MAX_FAILURES {
            self.finish_round(e, state, optimality)?;
            return Ok(());
        }
        let reason = format!("no step makes progress any more; promised gain {optimality:.3e}");
        let has_feasible = self.has_feasible(state);
        if violation > self.options.tolerance && self.soften(e, state)? {
            return Ok(());
        }
        if violation > self.options.tolerance && !has_feasible {
            let weight = 0.5 * e.lagrangian.penalty * violation * violation;
            let stationary = optimality <= STATIONARY && !e.path.has_gaps;
            if stationary && weight >= (1.0 - STATIONARY) * self.size(e) {
                self.end_infeasible(e, state);
            } else {
                let tolerance = self.options.tolerance;
                let violated = e.path.violated(e.dynamics, &e.problem, tolerance);
                let reason = format!(
                    "{reason}; violated: {violated}; try another guess, or scale the costs"
                );
                state.end(Status::Diverged, reason);
            }
        } else if e.path.has_gaps && !has_feasible {
            let reason = format!(
                "{reason}; the states do not follow from each other yet; try another guess, or scale the costs"
            );
            state.end(Status::Diverged, reason);
        } else {
            self.end_at_rest(e, state, reason);
        }
        Ok(())
    }

    /// Ends where constraints hold and nothing better is found; of contact other levels may find it.
    fn end_at_rest<D: Observe>(
        &self,
        e: &Engine<D>,
        state: &mut SolveState,
        reason: impl Into<String>,
    ) {
        let touches = e.model.certificate.kappa > 0.0;
        state.remedy = touches.then_some(Remedy::OtherSmoothing);
        state.end(Status::Stationary, reason);
    }
}

/// Violation from which on the penalty grows by [`PROJECTION_GROWTH`] a round, if the round is otherwise optimal: steps are
/// projections then, which need no exact multipliers. Too early or too much, and curved constraints shorten the steps.
const PROJECTION_VIOLATION: f64 = 1e-2;
const PROJECTION_GROWTH: f64 = 1e3;

const ONLY_SOFTENED: &str = "hard steps, which cannot be made where softened ones lead";
const UNBOUNDED: &str = "the curvature is not positive definite however it is regularized; take a smaller time step, another guess or another penalty";

impl<D: Observe> Algorithm for Ddp<'_, D> {
    fn method(&self) -> Method {
        self.rounds.options.method()
    }

    fn tolerances(&self) -> (f64, f64) {
        let o = &self.rounds.options;
        (o.tolerance, o.optimality)
    }

    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error> {
        let (e, rounds) = (&mut self.engine, &mut self.rounds);
        let kept: Option<Saved> = from.as_ref().and_then(Checkpoint::own);
        let goes_on = match e.start(from.as_ref(), kept.as_ref()) {
            Ok(goes_on) => goes_on,
            Err(reason) => {
                state.end(Status::Diverged, reason);
                return Ok(());
            }
        };
        state.remarks.extend(e.guess_remark());
        if state.ended.is_some() {
            return Ok(());
        }
        if let Some(c) = from.as_ref().filter(|_| goes_on) {
            rounds.tolerance = c.round_tolerance.max(rounds.options.optimality);
            rounds.last_violation = c.last_violation.unwrap_or(f64::INFINITY);
            // between two iterations all is planned; what had ended may not have by other tolerances
            if !c.has_ended() {
                return Ok(());
            }
        }
        if from.is_none() && e.is_soft() {
            rounds.guess = e.guess_on_hard_steps();
        }
        if !e.find_policy() {
            state.end(Status::Diverged, UNBOUNDED);
        }
        let optimality = unstopped(|| rounds.finish_rounds(e, state))?;
        // the guess is in the history already of what goes on
        if from.is_none() {
            rounds.record(e, state, optimality, 0.0);
        }
        Ok(())
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let (e, rounds) = (&mut self.engine, &mut self.rounds);
        let advanced = rounds.advance(e, state).and_then(|length| {
            let optimality = match (length, &state.ended) {
                (Some(_), None) => unstopped(|| rounds.finish_rounds(e, state))?,
                _ => rounds.optimality(e),
            };
            Ok((length, optimality))
        });
        let (length, optimality) = match advanced {
            Ok((Some(length), optimality)) => (length, optimality),
            Ok((None, _)) => return Ok(()),
            Err(f) => {
                state.end(Status::Diverged, f.to_string());
                (0.0, rounds.optimality(e))
            }
        };
        rounds.record(e, state, optimality, length);
        Ok(())
    }

    fn counts(&self) -> (u64, u64) {
        (self.engine.steps, self.engine.models)
    }

    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        self.engine.simulated(kept)
    }

    fn checkpoint(&self) -> Checkpoint {
        let last = self.rounds.last_violation;
        Checkpoint {
            round_tolerance: self.rounds.tolerance,
            last_violation: last.is_finite().then_some(last),
            ..self.engine.checkpoint()
        }
    }

    fn finish(&mut self, state: &SolveState, hurried: bool) -> Result<Found, Error> {
        let e = &mut self.engine;
        let (mut row, mut has_policy) = (Iteration::unknown(), false);
        let mut violated = None;
        let tolerance = self.rounds.options.tolerance;
        // what was on its way may be better simulated than what was before it
        let closed = e.closed().filter(|c| {
            let of_best = state.best.as_ref();
            of_best.is_none_or(|b| is_better(&c.row, &b.row, tolerance))
        });
        if let Some(best) = closed.as_ref().or(state.best.as_ref()) {
            // what is found on soft steps is worth what hard ones say
            let hurried = hurried && !best.row.softened;
            let level = best.row.smoothing;
            has_policy = e.return_to(&best.trajectory, level, best.row.softened, hurried)?;
            row = best.row.clone();
            if has_policy && closed.is_some() {
                row.optimality = self.rounds.optimality(e);
            }
            if best.row.softened {
                let hard = self.rounds.on_hard_contact(e, row);
                if hard.is_none() {
                    (has_policy, violated) = (false, Some(ONLY_SOFTENED.into()));
                }
                row = hard.unwrap_or_else(Iteration::unknown);
            }
        } else if !e.path.has_gaps {
            row.objective = e.path.evaluation.objective;
        }
        let converged = matches!(state.ended, Some((Status::Converged, _)));
        if let Some(guess) = &self.rounds.guess
            && !converged
            && is_better(&guess.row, &row, tolerance)
        {
            // softened steps led nowhere better
            has_policy = e.return_to(&guess.trajectory, 0.0, false, hurried)?;
            row = guess.row.clone();
            if has_policy {
                row.optimality = self.rounds.optimality(e);
            }
            violated = None;
        }
        Ok(Found {
            row,
            gains: has_policy.then(|| e.gains()),
            covariance: None,
            violated: violated
                .unwrap_or_else(|| e.path.violated(e.dynamics, &e.problem, tolerance)),
            trajectory: e.path.trajectory.clone(),
        })
    }
}
