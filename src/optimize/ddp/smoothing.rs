//! Derivatives through contact, relaxed at first.
//!
//! A contact that is not made, or friction that is not overcome, has no derivative to speak of: a box that sticks does
//! not tell that one should push harder. On a larger parameter `kappa` of the central path (see
//! [`crate::dynamics::Differentiable::smoothing`]) it does. A solve then goes through levels
//!
//! ```text
//! kappa = start, factor start, factor^2 start, ... >= end, 0
//! ```
//!
//! each from where the one before ended; 0 is the step's own parameter, and levels that are not above it are left out. What
//! is made smaller is the objective of steps with hard contact at every level: a model of relaxed derivatives only
//! proposes, a rollout decides. A level ends where
//! - its model predicts little more, or
//! - several steps in a row gain hardly anything of what it predicted, or
//! - no step that it proposes makes progress.
//!
//! Steps along kinks crawl, as where a foot begins to slide. Where several in a row gain hardly anything, the penalty of
//! the constraints grows while much is violated; the level ends if not. With the steps' own derivatives, where all is
//! kept and the objective rests, the solve ends: there it is stationary.
//!
//! Where the minimum lies on many kinks, as where a limb hits its stops again and again, steps on hard contact crawl from
//! the start. With [`Smoothing::forward`] the steps themselves are on the level's central path, and their derivatives are
//! exact: each level is a smooth problem, whose minimum tends to one of hard contact as in an interior-point method. The
//! last level is that of hard contact all the same, and only what it finds is a result. Where relaxed derivatives end with
//! constraints that stay violated, as before a contact that jumps from knot to knot, the levels are gone through once more
//! with softened steps.
//!
//! What a solve finds depends on where it starts. A level about the square of the velocity that contact gives or takes
//! within a step shows what contact could do; one far below shows nothing, and the solve stays where it is.

use super::engine::Engine;
use super::saved::Globalization;
use super::{Rounds, UNBOUNDED};
use crate::dynamics::{Observe, StepError};
use crate::optimize::lq::{FIRST_TOLERANCE, PENALTY_GROWTH};
use crate::optimize::{SolveState, Status};
use argmin::core::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rounding of a level, relative: far above that of its few products, far below the distance of two levels.
const LEVEL_ROUNDING: f64 = 1e-9;

/// Parameters of the central path that derivatives through contact are taken at, one after the other, before the
/// step's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Smoothing {
    /// The first, m^2/s^2.
    pub start: f64,
    /// None is below it, m^2/s^2.
    pub end: f64,
    /// Each is so much of the one before, below 1.
    pub factor: f64,
    /// The steps are softened, too, not their derivatives alone relaxed: objective and violation are those of softened
    /// contact until the last level. `end` is then best near the steps' own parameter. Systems that cannot soften their
    /// steps (see [`crate::dynamics::Step::soften`]) relax derivatives alone.
    pub forward: bool,
}

impl Default for Smoothing {
    fn default() -> Self {
        Self {
            start: 1e-1,
            end: 1e-5,
            factor: 0.1,
            forward: false,
        }
    }
}

impl Smoothing {
    /// Do the levels fall?
    pub fn is_valid(&self) -> bool {
        let positive = [self.start, self.end, self.factor];
        positive.iter().all(|v| *v > 0.0 && v.is_finite())
            && self.factor < 1.0
            && self.start >= self.end
    }

    /// The level after this one; steps that are softened though they were not to be are so down to their own parameter.
    fn below(&self, level: f64, forward: bool) -> f64 {
        let next = level * self.factor;
        let end = if self.forward == forward {
            self.end
        } else {
            0.0
        };
        // rounding must not cost the last level
        if next >= end * (1.0 - LEVEL_ROUNDING) {
            next
        } else {
            0.0
        }
    }
}

// Where no reason is given beside what a constant trades, its value is conventional, not derived.

/// Relative predicted reduction at which a level ends: its minimum is only where the next one starts.
const LEVEL_OPTIMALITY: f64 = 1e-3;
/// Violation that a level leaves to the next at most, in the constraints' units, for the same reason.
const LEVEL_VIOLATION: f64 = 1e-2;
/// Growth of the penalty within the levels, at which constraints are left to harder contact: half the decades of the whole
/// solve's, so that some remain.
const MAX_PENALTY_GROWTH_OF_LEVELS: f64 = 1e6;
/// Ratio of gain to predicted reduction below which a relaxed step is poor, as of trust regions (Nocedal and Wright,
/// section 4.1, there a quarter); part of the merit below which the gain of any step through contact is.
const MIN_GAIN_RATIO: f64 = 0.1;
const MIN_GAIN_THROUGH_CONTACT: f64 = 1e-4;
/// How many poor steps in a row a level may make, and the steps' own derivatives, behind which no level follows. Softened
/// steps have their own derivatives and no kinks, so that slow ones may still lead somewhere: with 4 to 8, kicks of a ball
/// (problems/ball_kick.toml and others like it) were left unsolved now and then, with 12 to 24 none was.
const MAX_SLOW_STEPS: u32 = 4;
const MAX_SLOW_STEPS_UNRELAXED: u32 = 12;
const MAX_SLOW_STEPS_SOFT: u32 = 16;
/// Part of the violation that a round of poor steps on hard contact may leave, and how many rounds in a row may leave more,
/// with larger multipliers and penalties: then contact is to be softened. With 3 and 5 the hopper's jump was softened that
/// was about to land.
const MAX_LEFT_VIOLATION: f64 = 0.9;
const MAX_SLOW_ROUNDS: u32 = 8;
/// Relative change of the objective by which steps may differ that rest: a tenth of [`MIN_GAIN_THROUGH_CONTACT`].
const AT_REST: f64 = 1e-5;
/// Why a solve ends that rests where contact changes.
const ON_KINK: &str =
    "it rests where contact changes: steps no longer gain what derivatives promise";
/// Policies that a level may try in vain for one step; the next level may know a better one.
const MAX_POLICIES: u32 = 4;

impl Rounds {
    /// Predicted reduction that a round may end at.
    pub(super) fn least_optimality<D: Observe>(&self, e: &Engine<D>) -> f64 {
        if e.is_relaxed() {
            self.options.optimality.max(LEVEL_OPTIMALITY)
        } else {
            self.options.optimality
        }
    }

    /// Violation that a level leaves to the next. On softened steps it falls with the distance at which contacts carry a
    /// force, as the square root of the level: what they leave, hard steps must mend, which can only crawl.
    pub(super) fn level_violation<D: Observe>(&self, e: &Engine<D>) -> f64 {
        let part = match self.options.smoothing {
            Some(s) if e.is_soft() => (e.level / s.start).sqrt(),
            _ => 1.0,
        };
        self.options.tolerance.max(part * LEVEL_VIOLATION)
    }

    /// Is there nothing more to be had from the present level?
    pub(super) fn level_is_done<D: Observe>(
        &self,
        e: &Engine<D>,
        violation: f64,
        optimality: f64,
    ) -> bool {
        let l = &e.lagrangian;
        let solved = violation <= self.level_violation(e) && optimality <= self.least_optimality(e);
        e.is_relaxed()
            && (solved
                || violation > self.options.tolerance
                    && l.penalty > MAX_PENALTY_GROWTH_OF_LEVELS * l.first_penalty)
    }

    /// Steps along kinks crawl: goes on with a heavier penalty while much is violated, else with the next level.
    pub(super) fn on_slow_progress<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<(), Error> {
        e.search.slow_steps = 0;
        let (violation, most) = (e.path.violation(&e.problem), self.level_violation(e));
        if e.path.has_gaps || violation <= self.options.tolerance {
            if e.is_relaxed() {
                return self.next_level(e, state);
            }
            if self.join_anyhow(e, state)? {
                return Ok(());
            }
            self.end_at_kink(e, state);
            return Ok(());
        }
        let l = &mut e.lagrangian;
        if violation > most && l.penalty <= MAX_PENALTY_GROWTH_OF_LEVELS * l.first_penalty {
            // multipliers would be those of no minimum
            l.penalty *= PENALTY_GROWTH;
            self.tolerance = self.options.optimality.max(FIRST_TOLERANCE);
            e.model.secant.reset();
            e.update_model()?;
            if !e.find_policy() {
                state.end(Status::Diverged, UNBOUNDED);
            }
        } else if e.is_relaxed() {
            self.next_level(e, state)?;
        } else {
            let fell = violation <= MAX_LEFT_VIOLATION * self.last_violation;
            e.search.slow_rounds = if fell { 0 } else { e.search.slow_rounds + 1 };
            if e.search.slow_rounds >= MAX_SLOW_ROUNDS && self.soften(e, state)? {
                return Ok(());
            }
            let before = self.tolerance;
            self.finish_round(e, state, f64::INFINITY)?;
            self.tolerance = before;
        }
        Ok(())
    }

    /// Steps on hard contact led to where constraints stay violated: goes through the levels once more with softened steps,
    /// from where it is. False where they were softened before or cannot be, and where some path kept the constraints.
    pub(super) fn soften<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<bool, Error> {
        let Some(smoothing) = self.options.smoothing else {
            return Ok(false);
        };
        e.search.slow_rounds = 0;
        if e.forward
            || e.model.certificate.kappa == 0.0
            || self.has_feasible(state)
            || !e.dynamics.soften(&mut e.work, 0.0)
        {
            return Ok(false);
        }
        e.forward = true;
        if e.follow_level(smoothing.start).is_err() {
            e.forward = false;
            e.set_level(e.level);
            return Ok(false);
        }
        e.lagrangian.restart();
        self.start_level(e, state)?;
        Ok(true)
    }

    /// On a kink, as between sticking and sliding, derivatives predict what no step gains: where the last ones kept all
    /// constraints and did not change the objective, the solve has ended.
    fn end_at_kink<D: Observe>(&self, e: &mut Engine<D>, state: &mut SolveState) {
        let now = e.path.evaluation.objective;
        let last = state
            .history
            .iter()
            .rev()
            .take(MAX_SLOW_STEPS_UNRELAXED as usize);
        let rests = last.clone().count() == MAX_SLOW_STEPS_UNRELAXED as usize
            && last.clone().all(|i| {
                i.smoothing == 0.0
                    && i.violation <= self.options.tolerance
                    && (i.objective - now).abs() <= AT_REST * now.abs()
            });
        if rests && !e.path.has_gaps {
            e.predicts_at_most(f64::INFINITY);
            let limit = self.options.optimality;
            let optimal = self.optimality(e) <= limit && self.complementarity(e) <= limit;
            if optimal {
                state.end(Status::Converged, "");
            } else {
                self.end_at_rest(e, state, ON_KINK);
            }
        }
    }

    /// Goes on with the derivatives of the next level.
    pub(super) fn next_level<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<(), Error> {
        let smoothing = self.options.smoothing;
        let next = smoothing.map_or(0.0, |s| s.below(e.level, e.forward));
        // steps that cannot be softened so may still be made hard
        let followed = e.follow_level(next).or_else(|error| match next {
            0.0 => Err(error),
            _ => e.follow_level(0.0),
        });
        if let Err(error) = followed {
            // the best on hard steps stays
            state.end(Status::Diverged, error.to_string());
            return Ok(());
        }
        self.start_level(e, state)
    }

    fn start_level<D: Observe>(
        &mut self,
        e: &mut Engine<D>,
        state: &mut SolveState,
    ) -> Result<(), Error> {
        self.tolerance = self.options.optimality.max(FIRST_TOLERANCE);
        self.last_violation = f64::INFINITY;
        if !e.restart()? {
            state.end(Status::Diverged, UNBOUNDED);
        }
        Ok(())
    }
}

impl<D: Observe> Engine<'_, D> {
    /// Is contact others than that of hard steps, in derivatives at least?
    pub fn is_relaxed(&self) -> bool {
        self.level > 0.0
    }

    /// Are the steps themselves softened?
    pub fn is_soft(&self) -> bool {
        self.forward && self.is_relaxed()
    }

    /// Steps and derivatives to come are those of a level.
    pub fn set_level(&mut self, level: f64) {
        self.level = level;
        let (steps, derivatives) = if self.forward {
            (level, 0.0)
        } else {
            (0.0, level)
        };
        let workers = self.workers.iter_mut().map(|w| &mut w.work);
        for w in workers.chain([&mut self.work]) {
            self.dynamics.soften(w, steps);
            self.dynamics.smoothing(w, derivatives);
        }
    }

    /// Is the level not above the steps' own parameter, as the model at it has shown?
    pub fn is_below_path(&self) -> bool {
        self.is_relaxed() && self.model.certificate.kappa > self.level
    }

    /// The path on steps of another level: under feedback it stays near.
    ///
    /// # Errors
    /// The step that failed; the path is as it was.
    pub fn follow_level(&mut self, level: f64) -> Result<(), StepError> {
        let before = self.level;
        self.set_level(level);
        if self.forward {
            self.roll(0.0).inspect_err(|_| self.set_level(before))?;
            std::mem::swap(&mut self.path, &mut self.trial);
        }
        Ok(())
    }

    /// Makes model and policy of the level; false where there is no policy.
    fn restart(&mut self) -> Result<bool, Error> {
        self.search = Globalization {
            regularization: self.search.regularization,
            gap_weight: self.search.gap_weight,
            joined: self.search.joined,
            ..Globalization::default()
        };
        self.model.secant.reset();
        self.update_model()?;
        if self.is_below_path() {
            self.follow_level(0.0)?;
            return self.restart();
        }
        Ok(self.find_policy())
    }

    /// Notes what a step gained of what was predicted, and of the merit.
    pub(super) fn compare_gain(&mut self, gain: f64, merit: f64) {
        let poor = self.is_relaxed()
            && !self.forward
            && gain < MIN_GAIN_RATIO * self.predicted_reduction();
        let little =
            self.model.certificate.kappa > 0.0 && gain < MIN_GAIN_THROUGH_CONTACT * merit.abs();
        let count = self.search.slow_steps + 1;
        self.search.slow_steps = if poor || little { count } else { 0 };
    }

    /// Does the present level lead nowhere?
    pub(super) fn is_slow(&self) -> bool {
        let patience = if self.is_soft() {
            MAX_SLOW_STEPS_SOFT
        } else if self.is_relaxed() {
            MAX_SLOW_STEPS
        } else {
            MAX_SLOW_STEPS_UNRELAXED
        };
        self.search.slow_steps >= patience
    }

    /// Have so many policies failed that another level is to be tried?
    pub(super) fn policies_are_exhausted(&self, tries: u32) -> bool {
        self.is_relaxed() && tries >= MAX_POLICIES
    }
}
