//! The method under the driver: an iteration of the program's solver at a time.

use super::engine::{End, Engine, Saved};
use super::{Options, guess, resimulated};
use crate::control::Problem;
use crate::dynamics::{Observe, stop_requested};
use crate::optimize::checkpoint::{Checkpoint, Incumbent, Multipliers, Point};
use crate::optimize::driver::{Algorithm, Found};
use crate::optimize::nlp;
use crate::optimize::{Iteration, Method, SolveState, Status, ddp};
use crate::rollout::{RolloutStats, Trajectory};
use argmin::core::Error;

/// Farthest that a step of hard contact from a plan's knot and impulses may end from the plan, m, rad and their rates.
const RESIMULATED: f64 = 1e-6;

/// The method.
pub(in crate::optimize) struct Direct<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    options: Options,
    /// The guess, as far as it was simulated.
    reached: Trajectory,
    /// None before it has begun.
    engine: Option<Engine<'a, D>>,
    /// Rows of the solver's history that are noted.
    noted: usize,
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
            engine: None,
            noted: 0,
            steps: 0,
            models: 0,
        }
    }

    /// The program at a guess.
    fn engine(&self, guess: Trajectory) -> Result<Engine<'a, D>, End> {
        Engine::new(self.dynamics, self.problem, guess, self.options)
    }

    /// Begins, at what was kept or at the guess.
    fn start(&mut self, from: Option<&Checkpoint>) -> Result<(), End> {
        let fails = |e| {
            let reason = format!("the start does not exist: {e}");
            (nlp::Status::Undefined, reason)
        };
        let guess = guess(self.dynamics, self.problem, &self.options).map_err(fails)?;
        self.reach(&guess);
        let mut engine = self.engine(guess.clone())?;
        if let Some(c) = from {
            let kept = c.own::<Saved>();
            let restored = kept.map(|k| engine.restore(k)).transpose()?;
            if restored != Some(true) {
                // its point alone
                engine = self.engine(self.at(guess, &c.point))?;
            }
        }
        self.engine = Some(engine);
        Ok(())
    }

    /// A guess moved to a point that was kept.
    fn at(&self, mut guess: Trajectory, point: &Point) -> Trajectory {
        guess.u.copy_from_slice(&point.controls);
        guess.p.copy_from_slice(&point.parameters);
        if point.states.len() == guess.x.len() {
            guess.x.copy_from_slice(&point.states);
        }
        self.problem.set_intervals(&guess.p, &mut guess.intervals);
        guess
    }

    /// Notes the rows that are new; the last is of the iterate.
    fn note(&mut self, state: &mut SolveState) {
        let Some(e) = &self.engine else { return };
        let rows: Vec<Iteration> =
            (e.solver.history[self.noted..].iter().map(|r| e.row(r))).collect();
        self.noted = e.solver.history.len();
        if let Some((last, before)) = rows.split_last() {
            before.iter().for_each(|r| state.note(None, r.clone()));
            let is_plan = last.violation <= self.options.nlp.violation && !last.softened;
            state.record(&e.trajectory(), last.clone(), is_plan);
        }
    }

    /// Ends, or goes on with the next stage, if nothing is left to do in this one.
    fn settle(&mut self, made: Result<(), End>, state: &mut SolveState) {
        let Some(e) = &mut self.engine else { return };
        let mut end = made.err();
        while let Some((status, reason)) = end.take().or_else(|| e.solver.ended(&mut e.program)) {
            use nlp::Status::{Converged, MaxIterations, Stalled};
            if e.is_last() || !matches!(status, Converged | MaxIterations | Stalled) {
                return self.end((status, reason), state);
            }
            end = e.next_stage().err();
            // its first row is of the point before
            self.noted = 1;
        }
    }

    /// Ends.
    fn end(&mut self, end: End, state: &mut SolveState) {
        let (mut status, mut reason) = told(end);
        let plan = self.engine.as_ref();
        let plan = plan.map(|e| (e.trajectory(), e.program.has_contacts()));
        if let (Status::Converged, Some((plan, has_contacts))) = (status, plan) {
            let leaves = match self.rolled(&plan) {
                Some((_, row, _)) if row.violation <= self.options.nlp.violation => None,
                Some((.., violated)) => Some(format!("leave {violated}")),
                None => Some("cannot be simulated to the end".into()),
            };
            if let Some(leaves) = leaves {
                reason = format!(
                    "it is the plan: simulated from the start its controls alone {leaves}; with its feedback they hold it"
                );
                // frozen modes keep no friction cone: whether what is found is contact's law, its steps show
                let apart = match has_contacts {
                    true => resimulated(self.dynamics, &plan),
                    false => 0.0,
                };
                if apart > RESIMULATED {
                    status = Status::Diverged;
                    reason = format!(
                        "steps from the plan's knots and impulses end up to {apart:.1e} away from it, and its controls alone {leaves}; another seed may find one that hard contact follows"
                    );
                }
            }
        }
        state.end(status, reason);
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
            None => self.note(state),
            Some(c) => {
                self.noted = 1;
                (self.steps, self.models) = (c.step_evaluations, c.gradient_evaluations);
                state.iterate = self.engine.as_ref().map(Engine::trajectory);
            }
        }
        self.settle(Ok(()), state);
        Ok(())
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let Some(e) = &mut self.engine else {
            return Ok(());
        };
        let before = e.save();
        let made = e.solver.advance(&mut e.program, &mut |_| true);
        self.models += 1;
        if stop_requested() {
            // as if it had not begun
            let history = e.solver.history[..self.noted].to_vec();
            if let Some(kept) = before {
                e.undo(kept);
            }
            e.solver.history = history;
            state.end(Status::Interrupted, "");
            return Ok(());
        }
        self.note(state);
        self.settle(made, state);
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
        let Some(e) = &self.engine else {
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
            own: Checkpoint::owned(e.save()),
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
        let gains = match (&self.engine, row.violation <= tolerance && !hurried) {
            (Some(e), true) => {
                let y = e.program.of_constraints(&e.solver.multipliers().rows);
                let guess = guess(self.dynamics, self.problem, &self.options)?;
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
