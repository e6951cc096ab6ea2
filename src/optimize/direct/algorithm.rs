//! The method under the driver: an iteration of the program's solver at a time.

use super::attempt::{Attempt, Kept, drawn};
use super::engine::{End, Engine};
use super::{Options, Resimulated, resimulated};
use crate::control::Problem;
use crate::dynamics::{Observe, StepError, stop_requested};
use crate::optimize::checkpoint::{Checkpoint, Incumbent, Multipliers, Point};
use crate::optimize::driver::{Algorithm, Found};
use crate::optimize::nlp;
use crate::optimize::{Iteration, Method, SolveState, Status, ddp};
use crate::rollout::{RolloutStats, Trajectory};
use argmin::core::Error;
use rayon::prelude::*;

/// Farthest that a step of hard contact from a plan's knot and impulses may end from the plan, m and rad, and the deepest that it
/// may end in what it touches, m or rad. Steps end a little before hard contact on the central path: what swings at the margin
/// of 1e-5 m feels what `[contact] kappa`, gravity and an interval's square come to by that, 2e-6 m/s or 1e-7 m at 1e-9 m/s and
/// 0.05 s (a biped's light shank turns by 6e-6 rad/s, 1e-7 rad).
const RESIMULATED: Resimulated = Resimulated {
    apart: 1e-6,
    overlap: 1e-9,
};

/// The method.
pub(in crate::optimize) struct Direct<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    options: Options,
    /// The guess, as far as it was simulated.
    reached: Trajectory,
    /// From each of the starts; none before they have begun.
    attempts: Vec<Attempt<'a, D>>,
    /// The one that is told of: the first that has not ended, then the best.
    leading: usize,
    steps: u64,
    models: u64,
}

impl<'a, D: Observe> Direct<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, options: Options) -> Self {
        let x0 = vec![0.0; dynamics.dims().nx];
        let mut reached = Trajectory::new(dynamics, problem.intervals.clone(), &x0);
        reached.truncate(0);
        Self {
            dynamics,
            problem,
            options,
            reached,
            attempts: vec![],
            leading: 0,
            steps: 0,
            models: 0,
        }
    }

    /// What one of the starts is made with.
    fn options(&self, i: usize) -> Options {
        Options {
            seed: self.options.seed.wrapping_add(i as u64),
            ..self.options
        }
    }

    /// Begins, at what was kept or at the guess.
    fn start(&mut self, from: Option<&Checkpoint>) -> Result<(), End> {
        let (dynamics, problem) = (self.dynamics, self.problem);
        self.reach(&drawn(dynamics, problem, &self.options)?);
        let kept = from.and_then(Checkpoint::own::<Vec<Kept>>);
        let mut kept = kept.unwrap_or_default().into_iter();
        for i in 0..self.options.starts {
            let options = self.options(i);
            let mut attempt = Attempt::new(dynamics, problem, options, None)?;
            if let Some(c) = from {
                let restored = kept.next().map(|k| attempt.restore(k)).transpose()?;
                if restored != Some(true) && i == 0 {
                    // its point alone
                    let guess = self.at(drawn(dynamics, problem, &options)?, &c.point);
                    attempt = Attempt::new(dynamics, problem, options, Some(guess))?;
                }
            }
            self.attempts.push(attempt);
        }
        Ok(())
    }

    fn engine(&self) -> Option<&Engine<'a, D>> {
        self.attempts.get(self.leading).map(|a| &a.engine)
    }

    /// A guess moved to a point that was kept.
    fn at(&self, mut guess: Trajectory, point: &Point) -> Trajectory {
        guess.u.copy_from_slice(&point.controls);
        guess.p.copy_from_slice(&point.parameters);
        if point.states.len() == guess.x.len() {
            guess.x.copy_from_slice(&point.states);
        }
        self.problem.set_intervals(&mut guess);
        guess
    }

    /// Notes rows of the one that is told of, those behind the first ones; the last is of its iterate.
    fn note(&self, first: usize, state: &mut SolveState) {
        let Some(a) = self.attempts.get(self.leading) else {
            return;
        };
        if let Some((last, before)) = a.rows[first..].split_last() {
            before.iter().for_each(|r| state.note(None, r.clone()));
            let is_plan = last.violation <= self.options.nlp.violation && !last.softened;
            state.record(&a.engine.trajectory(), last.clone(), is_plan);
        }
    }

    /// Turns to another start where the one that is told of has ended; ends where all have.
    fn turn(&mut self, state: &mut SolveState) {
        let ended = |a: &Attempt<D>| a.ended.is_some();
        if !self.attempts.get(self.leading).is_some_and(ended) {
            return;
        }
        if let Some(next) = self.attempts.iter().position(|a| !ended(a)) {
            self.leading = next;
            return;
        }
        let (best, spread) = self.best();
        self.leading = best;
        let Some(end) = self.attempts[best].ended.clone() else {
            return;
        };
        let (status, reason) = self.verdict(end);
        let parts = [spread, reason];
        let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        state.end(status, parts.join("; "));
        if status == Status::Converged || self.attempts.len() > 1 {
            // what was noted on the way is of others, too; and steps were seen to follow what converged, not what was within
            // the tolerance on its way
            state.history.clear();
            state.best = None;
            self.note(0, state);
        }
    }

    /// The start that ended best, and in words how all of several did.
    fn best(&self) -> (usize, String) {
        let solved = |a: &Attempt<D>| matches!(a.ended, Some((nlp::Status::Converged, _)));
        let value = |a: &Attempt<D>| {
            a.engine
                .solver
                .history
                .last()
                .map_or(f64::NAN, |r| r.objective)
        };
        let each = self.attempts.iter().enumerate();
        let mut found: Vec<(f64, usize)> =
            (each.filter(|(_, a)| solved(a)).map(|(i, a)| (value(a), i))).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = self.attempts.len();
        let spread = match (&found[..], count) {
            (_, 1) => String::new(),
            ([], _) => format!("none of {count} starts converged; of the first:"),
            ([first, .., last], _) => format!(
                "{} of {count} starts converged, from {:.6} (seed {}) to {:.6}, median {:.6}",
                found.len(),
                first.0,
                self.options.seed.wrapping_add(first.1 as u64),
                last.0,
                found[found.len() / 2].0
            ),
            ([one], _) => {
                let seed = self.options.seed.wrapping_add(one.1 as u64);
                format!("1 of {count} starts converged (seed {seed})")
            }
        };
        (found.first().map_or(0, |f| f.1), spread)
    }

    /// How it ended, once what was found is simulated.
    fn verdict(&mut self, end: End) -> (Status, String) {
        let (mut status, mut reason) = told(end);
        let plan = self.engine();
        let plan = plan.map(|e| (e.trajectory(), e.program.has_contacts()));
        if let (Status::Converged, Some((plan, has_contacts))) = (status, plan) {
            let leaves = match self.rolled(&plan) {
                Some((_, row, _)) if row.violation <= self.options.nlp.violation => None,
                Some((.., violated)) => Some(format!("leave {violated}")),
                None => Some("cannot be simulated to the end".into()),
            };
            if let Some(leaves) = leaves {
                reason = format!(
                    "it is the plan: simulated from the start its controls alone {leaves}; steps from its own knots follow it"
                );
                // whether what is found is contact's law, its steps show
                let parts = match has_contacts {
                    true => parts_with(resimulated(self.dynamics, &plan)),
                    false => None,
                };
                if let Some(parts) = parts {
                    status = Status::Diverged;
                    reason = format!(
                        "{parts}, and its controls alone {leaves}; another seed may find one that hard contact follows"
                    );
                }
            }
        }
        (status, reason)
    }

    /// Simulates the guess, as far as that goes.
    fn reach(&mut self, guess: &Trajectory) {
        let (mut t, mut stats) = (guess.clone(), RolloutStats::default());
        let rolled = t.roll(self.dynamics, &mut self.dynamics.work(), &mut stats);
        self.steps += stats.steps as u64;
        if rolled.is_err() {
            t.truncate(stats.steps);
        }
        self.reached = t;
    }

    /// The controls of a plan as hard steps have them, with what that is worth.
    fn rolled(&mut self, plan: &Trajectory) -> Option<(Trajectory, Iteration, String)> {
        let mut w = self.dynamics.work();
        let start = self.problem.start(self.dynamics, &plan.p, &mut w).ok()?;
        let mut t = plan.clone();
        t.x[..start.len()].copy_from_slice(&start);
        let mut stats = RolloutStats::default();
        let rolled = t.roll(self.dynamics, &mut w, &mut stats);
        self.steps += stats.steps as u64;
        rolled.ok()?;
        let mut e = self.problem.evaluation();
        (self.problem.evaluate(self.dynamics, &t, &mut w, &mut e)).ok()?;
        let row = Iteration {
            objective: e.objective,
            violation: self.problem.violation(&e, &t.u, &t.p),
            ..Iteration::unknown()
        };
        let tolerance = self.options.nlp.violation;
        let violated = self.problem.violated(self.dynamics, &e, &t, tolerance);
        Some((t, row, violated.join(", ")))
    }
}

/// Where steps do not follow a plan, in words.
fn parts_with(steps: Result<Resimulated, StepError>) -> Option<String> {
    let most = RESIMULATED;
    match steps {
        Err(e) => Some(format!("from a knot of the plan {e}")),
        Ok(s) if s.apart > most.apart => Some(format!(
            "steps from the plan's knots and impulses end up to {:.1e} away from it",
            s.apart
        )),
        Ok(s) if s.overlap > most.overlap => Some(format!(
            "steps from the plan's knots and impulses end up to {:.1e} in what they touch",
            s.overlap
        )),
        Ok(_) => None,
    }
}

/// How the program's solver ended, as all methods say it.
fn told((status, reason): End) -> (Status, String) {
    let status = match status {
        nlp::Status::Converged => Status::Converged,
        nlp::Status::Infeasible => Status::Infeasible,
        nlp::Status::MaxIterations => Status::MaxIterations,
        nlp::Status::Stopped => Status::Interrupted,
        nlp::Status::Stalled | nlp::Status::Diverged | nlp::Status::Undefined => Status::Diverged,
    };
    (status, reason)
}

impl<D: Observe> Algorithm for Direct<'_, D> {
    fn method(&self) -> Method {
        Method::Direct
    }

    fn tolerances(&self) -> (f64, f64) {
        (self.options.nlp.violation, self.options.nlp.tolerance)
    }

    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error> {
        if state.ended.is_some() {
            return Ok(());
        }
        if stop_requested() {
            state.end(Status::Interrupted, "");
            return Ok(());
        }
        if let Err(end) = self.start(from.as_ref()) {
            let (status, reason) = told(end);
            state.end(status, reason);
            return Ok(());
        }
        match from {
            None => self.note(0, state),
            Some(c) => {
                (self.steps, self.models) = (c.step_evaluations, c.gradient_evaluations);
                state.iterate = self.engine().map(Engine::trajectory);
            }
        }
        self.turn(state);
        Ok(())
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let running = self.attempts.iter().filter(|a| a.ended.is_none());
        self.models += running.count() as u64;
        let noted = self.attempts.get(self.leading).map_or(0, |a| a.rows.len());
        self.attempts.par_iter_mut().for_each(Attempt::advance);
        self.note(noted, state);
        if stop_requested() {
            state.end(Status::Interrupted, "");
            return Ok(());
        }
        self.turn(state);
        Ok(())
    }

    fn counts(&self) -> (u64, u64) {
        (self.steps, self.models)
    }

    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        let point = &kept.point;
        point.simulated(self.dynamics, self.problem, &mut self.dynamics.work())
    }

    fn checkpoint(&self) -> Checkpoint {
        let Some(e) = self.engine() else {
            return Checkpoint::default();
        };
        let t = e.trajectory();
        Checkpoint {
            point: Point {
                controls: t.u,
                parameters: t.p,
                states: t.x,
            },
            multipliers: Multipliers {
                constraints: e.program.of_constraints(&e.solver.multipliers().rows),
                penalty: 1.0,
                ..Multipliers::default()
            },
            own: Checkpoint::owned(
                self.attempts
                    .iter()
                    .map(Attempt::save)
                    .collect::<Option<Vec<Kept>>>(),
            ),
            ..Checkpoint::default()
        }
    }

    /// The controls as hard steps have them, where these keep all constraints; else the plan, whose steps keep the
    /// equations to the tolerance. Where they do not, the controls again, so that what is returned was simulated.
    fn finish(&mut self, state: &SolveState, hurried: bool) -> Result<Found, Error> {
        let tolerance = self.options.nlp.violation;
        let best = state
            .best
            .as_ref()
            .map(|b| (b.trajectory.clone(), b.row.clone()));
        let plan = best.as_ref().map(|(t, _)| t).or(state.iterate.as_ref());
        let rolled = plan.cloned().and_then(|t| self.rolled(&t));
        let (trajectory, row, violated) = match (best, rolled) {
            (Some((_, of_plan)), Some((t, row, _))) if row.violation <= tolerance => {
                let optimality = of_plan.optimality;
                (t, Iteration { optimality, ..row }, String::new())
            }
            (Some((t, row)), _) => (t, row, String::new()),
            (None, Some(rolled)) => rolled,
            (None, None) => {
                let reached = self.reached.clone();
                let all = reached.steps() == self.problem.intervals.len();
                let rolled = if all { self.rolled(&reached) } else { None };
                rolled.unwrap_or_else(|| (reached, Iteration::unknown(), String::new()))
            }
        };
        let gains = match (self.engine(), row.violation <= tolerance && !hurried) {
            (Some(e), true) => {
                let y = e.program.of_constraints(&e.solver.multipliers().rows);
                let guess = super::guess(self.dynamics, self.problem, &self.options)?;
                // a plan without feedback is a plan all the same
                ddp::feedback(self.dynamics, self.problem, &guess, &trajectory, &y)
                    .ok()
                    .flatten()
            }
            _ => None,
        };
        Ok(Found {
            trajectory,
            row,
            gains,
            covariance: None,
            violated,
        })
    }
}
