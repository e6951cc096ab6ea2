//! Rounds of multipliers: what is outside of the minimization of one augmented Lagrangian (Nocedal and Wright, *Numerical
//! Optimization*, 2006, framework 17.3), once for every method that minimizes it over simulated trajectories.

use super::augmented::{Augmented, Param};
use super::checkpoint::Checkpoint;
use super::ddp::Smoothing;
use super::driver::Found;
use super::infeasibility::{Infeasibility, NO_LONGER_FEASIBLE};
use super::lq::{FIRST_TOLERANCE, PENALTY_GROWTH, SLOW, TOLERANCE_REDUCTION};
use super::{Iteration, Method, SolveState, Status};
use crate::dynamics::Observe;
use argmin::core::Error;

/// Minimizations in a row without gain after which a round ends as it is, and the solve. Conventional; where each makes
/// shooting's damping ten times larger, from none it has then grown to 1e4, and to 1e12.
const MAX_FAILURES: u32 = 8;
const MAX_FAILURES_OF_SOLVE: u32 = 16;

/// Growth of the penalty at which constraints that stay violated are given up: ten rounds of [`PENALTY_GROWTH`].
const MAX_PENALTY_GROWTH: f64 = 1e10;

/// Where the rounds stand.
pub(super) struct Rounds {
    /// Largest violation of a constraint or a bound, in their units.
    pub violation: f64,
    /// Largest optimality.
    pub optimality: f64,
    /// Iterations in a row that gained nothing.
    pub failures: u32,
    /// Optimality asked of the round.
    pub tolerance: f64,
    /// Violation at the end of the last round.
    pub last_violation: f64,
    /// Is a round minimized by values alone? Where it ends then shows nothing of what is feasible.
    pub by_values: bool,
    /// The point last recorded; after an interruption others may have been tried.
    pub iterate: Option<Param>,
}

/// What an iteration made of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    /// It gained nothing.
    pub failed: bool,
    /// A round ended: the function is another one.
    pub is_new: bool,
    /// With a larger penalty.
    pub slow: bool,
}

impl Rounds {
    /// Before the first, with the tolerances of violation and optimality.
    pub fn new(violation: f64, optimality: f64) -> Self {
        Self {
            violation,
            optimality,
            failures: 0,
            tolerance: optimality.max(FIRST_TOLERANCE),
            last_violation: f64::INFINITY,
            by_values: false,
            iterate: None,
        }
    }

    /// Evaluates the guess, or what stood at `from` and `resume` has restored, and notes the guess; it ends where neither
    /// can be simulated.
    ///
    /// # Errors
    /// A step on the way.
    pub fn begin<D: Observe>(
        &mut self,
        p: &mut Augmented<D>,
        from: Option<&Checkpoint>,
        state: &mut SolveState,
    ) -> Result<(), Error> {
        if from.is_none() {
            p.roll(&p.guess());
        }
        if let Some(e) = &p.failed {
            let reason = format!("the guess cannot be simulated: {e}");
            state.end(Status::Diverged, reason);
            return Ok(());
        }
        if from.is_none() {
            p.calibrate()?;
        }
        p.gradient()?;
        match from {
            None => {
                let optimality = p.optimality(self.violation)?;
                self.record(p, state, optimality, 0.0);
            }
            // to stand where it stood is no progress
            Some(c) => (p.steps, p.sweeps) = (c.step_evaluations, c.gradient_evaluations),
        }
        Ok(())
    }

    /// Notes the point last rolled out.
    pub fn record<D: Observe>(
        &mut self,
        p: &Augmented<D>,
        state: &mut SolveState,
        optimality: f64,
        step_length: f64,
    ) {
        let row = Iteration {
            objective: p.path().evaluation.objective,
            violation: p.violation(),
            optimality,
            step_length,
            regularization: p.penalty(),
            ..Iteration::default()
        };
        self.iterate = Some(p.decisions().clone());
        let worst = p.worst(self.violation);
        state.watch(worst);
        state.record(&p.path().trajectory, row, true);
    }

    /// Goes on where a solve stood; from its scaled decisions where they were kept, as unscaled and scaled again they may
    /// differ by rounding, and with its first penalty.
    pub fn resume<D: Observe>(
        &mut self,
        c: &Checkpoint,
        kept: Option<(&[f64], f64)>,
        p: &mut Augmented<D>,
    ) {
        self.tolerance = c.round_tolerance.max(self.optimality);
        self.last_violation = c.last_violation.unwrap_or(f64::INFINITY);
        let mut v = p.decisions_of(&c.point);
        let mut first_penalty = c.multipliers.penalty;
        if let Some((decisions, first)) = kept.filter(|(d, _)| d.len() == v.len()) {
            v.copy_from_slice(decisions);
            first_penalty = first;
        }
        self.iterate = Some(v.clone());
        p.restore(&c.multipliers, &v);
        p.lagrangian.first_penalty = first_penalty;
    }

    /// Decides after an iteration that led to the present point; `hopeless` where another one like it cannot do better.
    pub fn decide<D: Observe>(
        &mut self,
        p: &mut Augmented<D>,
        state: &mut SolveState,
        optimality: f64,
        gained: bool,
        hopeless: bool,
    ) -> Decided {
        let violation = p.violation();
        if optimality <= self.tolerance {
            self.failures = 0;
            return self.finish_round(p, state, violation, optimality);
        }
        if gained {
            self.failures = 0;
            return Decided::default();
        }
        self.failures += if hopeless { MAX_FAILURES } else { 1 };
        let decided = match self.failures {
            ..MAX_FAILURES => Decided::default(),
            MAX_FAILURES..MAX_FAILURES_OF_SOLVE => {
                self.finish_round(p, state, violation, optimality)
            }
            _ => {
                let stuck = "no step makes progress any more";
                if state.has_feasible() {
                    let reason = format!("{stuck}; promised gain {optimality:.3e}");
                    state.end(Status::Stationary, reason);
                } else {
                    let violated = p.violated(self.violation);
                    state.end(Status::Diverged, format!("{stuck}; violated: {violated}"));
                }
                Decided::default()
            }
        };
        Decided {
            failed: true,
            ..decided
        }
    }

    /// The end of a round: converged, infeasible, or new multipliers and penalties.
    fn finish_round<D: Observe>(
        &mut self,
        p: &mut Augmented<D>,
        state: &mut SolveState,
        violation: f64,
        optimality: f64,
    ) -> Decided {
        if violation <= self.violation
            && optimality <= self.optimality
            && p.complementarity(self.violation) <= self.optimality
        {
            state.end(Status::Converged, "");
            return Decided::default();
        }
        if violation > self.violation
            && p.penalty() > MAX_PENALTY_GROWTH * p.lagrangian.first_penalty
        {
            if state.has_feasible() {
                state.end(Status::Stationary, NO_LONGER_FEASIBLE);
            } else {
                end_infeasible(p, self, state);
            }
            return Decided::default();
        }
        let slow = violation > SLOW * self.last_violation && violation > self.violation;
        let growth = if slow { PENALTY_GROWTH } else { 1.0 };
        // where the model cannot be made anew nothing is lost but its better guess
        if self.by_values || !p.update_by_model(self.violation, growth).unwrap_or(false) {
            p.update(growth);
        }
        self.last_violation = violation;
        self.tolerance = (self.tolerance * TOLERANCE_REDUCTION).max(self.optimality);
        Decided {
            is_new: true,
            slow,
            failed: false,
        }
    }

    /// The iterate with the multipliers; what is the method's own comes to it.
    pub fn checkpoint<D: Observe>(&self, p: &Augmented<D>) -> Checkpoint {
        let last = self.last_violation;
        Checkpoint {
            point: p.point(self.iterate.as_ref().unwrap_or(&p.guess())),
            multipliers: p.multipliers(),
            round_tolerance: self.tolerance,
            last_violation: last.is_finite().then_some(last),
            ..Checkpoint::default()
        }
    }

    /// Ends at the best iterate.
    ///
    /// # Errors
    /// A quantity that cannot be observed.
    pub fn finish<D: Observe>(
        &self,
        p: &mut Augmented<D>,
        state: &SolveState,
    ) -> Result<Found, Error> {
        let (row, trajectory) = match &state.best {
            Some(best) => (best.row.clone(), best.trajectory.clone()),
            None => {
                let row = Iteration {
                    objective: p.path().evaluation.objective,
                    ..Iteration::unknown()
                };
                (row, p.reached())
            }
        };
        Ok(Found {
            row,
            gains: None,
            covariance: None,
            violated: p.violated_along(&trajectory, self.violation)?,
            trajectory,
        })
    }
}

/// Ends where constraints stay violated.
fn end_infeasible<D: Observe>(p: &mut Augmented<D>, rounds: &Rounds, state: &mut SolveState) {
    let tolerance = rounds.violation;
    if rounds.by_values || p.beyond_bounds() > tolerance {
        // its bounds are penalties as well, which may have lost against the constraints: that nothing is left within them
        // is not shown
        let remedy = match rounds.by_values {
            true => "which follows gradients",
            false => "which never leaves the bounds",
        };
        let reason = format!(
            "the penalty grew to {:.0e}, and these stay violated: {}; scale the costs, or take the method {}, {remedy}",
            p.penalty(),
            p.violated(tolerance),
            Method::Ddp.name()
        );
        return state.end(Status::Diverged, reason);
    }
    let infeasibility = Infeasibility {
        violated: p.violated(tolerance),
        worst: p.worst_since(state),
        without_gradient: p.without_gradient(tolerance),
        penalty: p.penalty(),
        has_decisions: !p.decisions().is_empty(),
        blind: p.model.certificate.kappa > 0.0,
        violation: p.violation(),
        within_reach: p.within_reach(),
        smoothing: Some(Smoothing::default().start),
    };
    infeasibility.end(state);
}
