//! How a solve starts, and what of it a checkpoint keeps: all that decides the next steps, so that a solve that was
//! stopped goes on as if it had not been.

use super::Smoothing;
use super::engine::Engine;
use crate::dynamics::{Observe, StepError};
use crate::optimize::Iteration;
use crate::optimize::checkpoint::{Checkpoint, Incumbent, Point};
use crate::optimize::lq::Policy;
use crate::optimize::state::Best;
use crate::rollout::{RolloutStats, Trajectory};
use serde::{Deserialize, Serialize};

/// Numbers of learnt curvature that are kept at most, some ten megabytes of text: of larger systems it is learnt anew, and
/// the steps of who goes on differ from those of who was not stopped.
const MOST_LEARNT: usize = 500_000;

/// What a checkpoint keeps of this method alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    globalization: Globalization,
    first_objective: f64,
    first_penalty: f64,
    /// Levels that it goes through.
    pub smoothing: Option<Smoothing>,
    /// Of the derivatives.
    #[serde(default)]
    level: f64,
    /// Are steps softened to it?
    #[serde(default)]
    forward: bool,
    /// Is curvature learnt; is it part of the policy?
    learning: bool,
    used: bool,
    /// The curvature learnt; nothing where none is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<f64>,
    /// Mean curvatures that regularization refers to.
    scale: Vec<f64>,
    policy: Policy,
    /// Where the steps end, and their unknowns, while there are gaps; they follow from the controls else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ends: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unknowns: Vec<f64>,
}

impl Saved {
    /// JSON has no other numbers; what ended with them is not gone on with.
    fn is_finite(&self) -> bool {
        let p = &self.globalization;
        let numbers = [
            p.regularization,
            p.growth,
            p.gap_weight,
            p.slope,
            p.curvature,
            p.damping,
            p.first_length,
            p.suspended_regularization.unwrap_or(0.0),
            self.first_objective,
            self.first_penalty,
            self.level,
        ];
        numbers
            .iter()
            .chain(&self.blocks)
            .chain(&self.scale)
            .chain(self.policy.numbers())
            .chain(&self.ends)
            .chain(&self.unknowns)
            .all(|v| v.is_finite())
    }

    /// Is it of a problem of the engine's sizes?
    fn fits<D: Observe>(&self, e: &Engine<D>) -> bool {
        let (gaps, y) = (&e.path.ends, &e.path.trajectory.y);
        self.policy.is_like(&e.policy)
            && self.scale.len() == e.riccati.scale.len()
            && (self.blocks.is_empty() || self.blocks.len() == e.model.h.len())
            && (!e.path.has_gaps || (self.ends.len(), self.unknowns.len()) == (gaps.len(), y.len()))
    }
}

/// How far and how carefully the next step goes, as the ones before taught.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Globalization {
    /// Relative to the curvature by controls.
    pub regularization: f64,
    pub growth: f64,
    /// Weight of the gaps in the merit.
    pub gap_weight: f64,
    /// `L(a) = L + a d1 + a^2/2 d2` by the model.
    pub slope: f64,
    pub curvature: f64,
    /// Second derivative of what unit regularization adds to the model.
    pub damping: f64,
    /// First length tried.
    pub first_length: f64,
    /// Of the curvature learnt.
    pub secant_backoff: Backoff,
    /// The same for policies without regularization.
    pub unregularized_backoff: Backoff,
    /// Steps in a row that gained no more than rounding.
    pub steps_without_gain: u32,
    /// Failures in a row to make a step.
    pub failures: u32,
    /// Relaxed steps in a row that gained hardly anything of what was predicted.
    #[serde(default)]
    pub slow_steps: u32,
    /// Rounds of them in a row that left nearly all of the violation.
    #[serde(default)]
    pub slow_rounds: u32,
    /// Are the segments of the horizon joined?
    #[serde(default)]
    pub joined: bool,
    /// Regularization to return to, should the policy without it fail.
    pub suspended_regularization: Option<f64>,
}

impl Default for Globalization {
    fn default() -> Self {
        Self {
            regularization: 0.0,
            growth: 1.0,
            gap_weight: 0.0,
            slope: 0.0,
            curvature: 0.0,
            damping: 0.0,
            first_length: 1.0,
            secant_backoff: Backoff::default(),
            unregularized_backoff: Backoff::default(),
            steps_without_gain: 0,
            failures: 0,
            slow_steps: 0,
            slow_rounds: 0,
            joined: false,
            suspended_regularization: None,
        }
    }
}

/// Exponential backoff: what was of no use is tried again ever later, the more often in a row it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Backoff {
    /// Iterations to go without it, and how many they were the last time.
    pause: u32,
    wait: u32,
}

/// Policies between two trials of what keeps failing, at most: a sixteenth of the iterations is lost on it, and a
/// success is found so late.
const MAX_WAIT: u32 = 16;

impl Backoff {
    pub fn is_due(&mut self) -> bool {
        let due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        due
    }

    pub fn failed(&mut self) {
        self.wait = (2 * self.wait).clamp(1, MAX_WAIT);
        self.pause = self.wait;
    }

    pub fn helped(&mut self) {
        self.wait = 0;
    }
}

impl<D: Observe> Engine<'_, D> {
    /// Simulates the guess, or takes over where an earlier solve stood: true if with all that decided its next steps. Where
    /// that went through other levels, its point is a guess for those of now.
    ///
    /// # Errors
    /// In words: what is wrong with it.
    pub fn start(
        &mut self,
        resumed: Option<&Checkpoint>,
        kept: Option<&Saved>,
    ) -> Result<bool, String> {
        let states = resumed.map_or(&self.problem.guess_states, |c| &c.point.states);
        let states = states.clone();
        let has_levels = kept.is_none_or(|k| k.smoothing == self.smoothing);
        let kept = kept.filter(|_| has_levels);
        if let Some(c) = resumed {
            self.path.trajectory.u.copy_from_slice(&c.point.controls);
            self.path.trajectory.p.copy_from_slice(&c.point.parameters);
            self.path.retime(&self.problem);
            if has_levels {
                self.lagrangian.restore(&c.multipliers);
            }
        }
        let (given, nx) = (states.len(), self.dynamics.dims().nx);
        if given != 0 && given != self.path.knots.len() * nx {
            return Err(format!(
                "guess_states holds {given} numbers; it takes {nx} for each of {} knots, or none",
                self.path.knots.len()
            ));
        }
        if let Some(kept) = kept {
            (self.level, self.forward) = (kept.level, kept.forward);
        }
        self.set_level(self.level);
        let failed = |e: StepError| format!("the guess cannot be simulated: {e}");
        self.simulate_guess(&states).map_err(failed)?;
        if let Some(c) = resumed {
            if let Some(kept) = kept {
                if !kept.fits(self) {
                    return Err("the checkpoint's policy is of another problem".into());
                }
                self.restore(kept).map_err(failed)?;
            }
            (self.steps, self.models) = (c.step_evaluations, c.gradient_evaluations);
        }
        Ok(kept.is_some())
    }

    /// Makes what decides the next steps as it was.
    fn restore(&mut self, kept: &Saved) -> Result<(), StepError> {
        if self.path.has_gaps {
            self.path.ends.clone_from(&kept.ends);
            self.path.trajectory.y.clone_from(&kept.unknowns);
            self.path
                .evaluate(self.dynamics, &self.problem, &mut self.work)?;
        }
        self.first_objective = kept.first_objective;
        self.lagrangian.first_penalty = kept.first_penalty;
        self.model.secant.restore(&kept.blocks, kept.learning);
        self.build()?;
        self.model.secant.used = kept.used;
        self.search = kept.globalization;
        self.riccati.scale.clone_from(&kept.scale);
        self.policy.clone_from(&kept.policy);
        Ok(())
    }

    /// What a checkpoint holds of it.
    pub fn checkpoint(&self) -> Checkpoint {
        let (t, secant) = (&self.path.trajectory, &self.model.secant);
        let of_gaps = |v: &Vec<f64>| {
            if self.path.has_gaps {
                v.clone()
            } else {
                vec![]
            }
        };
        let kept = Saved {
            globalization: self.search,
            first_objective: self.first_objective,
            first_penalty: self.lagrangian.first_penalty,
            smoothing: self.smoothing,
            level: self.level,
            forward: self.forward,
            learning: secant.learning,
            used: secant.used,
            blocks: Some(secant.blocks())
                .filter(|b| b.len() <= MOST_LEARNT)
                .map_or(vec![], <[f64]>::to_vec),
            scale: self.riccati.scale.clone(),
            policy: self.policy.clone(),
            ends: of_gaps(&self.path.ends),
            unknowns: of_gaps(&t.y),
        };
        Checkpoint {
            point: Point {
                controls: t.u.clone(),
                parameters: t.p.clone(),
                states: of_gaps(&t.x),
            },
            multipliers: self.lagrangian.to_checkpoint(),
            own: Checkpoint::owned(Some(kept).filter(Saved::is_finite)),
            ..Checkpoint::default()
        }
    }

    /// The trajectory of a point that was kept, on steps as they were there, if it can be simulated.
    pub fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        let now = (self.level, self.forward);
        self.forward = kept.softened;
        self.set_level(kept.smoothing);
        let simulated = kept
            .point
            .simulated(self.dynamics, &self.problem, &mut self.work);
        self.forward = now.1;
        self.set_level(now.0);
        simulated
    }

    /// What the guess of softened steps is worth on hard ones, where it may be a solution already.
    pub fn guess_on_hard_steps(&mut self) -> Option<Best> {
        let now = (self.level, self.forward);
        self.forward = false;
        self.set_level(0.0);
        let (from, to) = (&self.path.trajectory, &mut self.trial.trajectory);
        to.u.clone_from(&from.u);
        to.p.clone_from(&from.p);
        to.intervals.clone_from(&from.intervals);
        self.trial.knots.clone_from(&self.path.knots);
        let (from, to) = (&self.path.trajectory, &mut self.trial.trajectory);
        let start = ..self.dynamics.dims().nx;
        to.x[start].copy_from_slice(&from.x[start]);
        let trial = &mut self.trial;
        let made = trial
            .roll(self.dynamics, &mut self.work)
            .and_then(|()| trial.evaluate(self.dynamics, &self.problem, &mut self.work));
        self.steps += self.problem.intervals.len() as u64;
        self.forward = now.1;
        self.set_level(now.0);
        made.ok()?;
        let row = Iteration {
            objective: self.trial.evaluation.objective,
            violation: self.trial.violation(&self.problem),
            optimality: f64::INFINITY,
            ..Iteration::default()
        };
        let trajectory = self.trial.trajectory.clone();
        Some(Best { trajectory, row })
    }

    /// Which states of the guess are not used, and why.
    pub fn guess_remark(&self) -> Option<String> {
        let (first, last) = (self.left_out.first()?, self.left_out.last()?);
        let (count, all) = (self.left_out.len(), self.path.trajectory.steps());
        Some(match self.path.has_gaps {
            true => format!(
                "states of the guess that are left out because no step leads on from them: {count} of {all}, the first at {:.6} s ({}); the motion from the state before goes on there",
                first.time, first.message
            ),
            false => format!(
                "the states of the guess are left out because neither the one at {:.6} s nor the motion from the state before leads on ({}); the guess is simulated from the start",
                last.time, last.message
            ),
        })
    }

    fn simulate_guess(&mut self, states: &[f64]) -> Result<(), StepError> {
        let p = &self.path.trajectory.p;
        let x0 = self.problem.start(self.dynamics, p, &mut self.work)?;
        self.path.trajectory.x[..x0.len()].copy_from_slice(&x0);
        if !states.is_empty() {
            // states that meet the constraints by themselves say nothing of how hard that is
            self.trial.trajectory.x[..x0.len()].copy_from_slice(&x0);
            self.trial.trajectory.u.clone_from(&self.path.trajectory.u);
            self.trial.trajectory.p.clone_from(&self.path.trajectory.p);
            self.trial.retime(&self.problem);
            let trial = &mut self.trial;
            let simulated = trial
                .roll(self.dynamics, &mut self.work)
                .and_then(|()| trial.evaluate(self.dynamics, &self.problem, &mut self.work));
            if simulated.is_ok() {
                self.lagrangian
                    .scale_penalty(&self.problem, &trial.evaluation);
            }
        }
        let mut stats = RolloutStats::default();
        let simulated = self
            .path
            .simulate(self.dynamics, states, &mut self.work, &mut stats);
        // what is returned of a guess that fails ends where it does
        self.left_out = simulated.inspect_err(|_| self.path.trajectory.truncate(stats.steps))?;
        self.steps += self.problem.intervals.len() as u64;
        self.path
            .evaluate(self.dynamics, &self.problem, &mut self.work)?;
        self.first_objective = self.path.evaluation.objective;
        self.lagrangian
            .scale_penalty(&self.problem, &self.path.evaluation);
        self.update_model()?;
        if self.is_below_path() {
            self.set_level(0.0);
            return self.simulate_guess(states);
        }
        Ok(())
    }
}
