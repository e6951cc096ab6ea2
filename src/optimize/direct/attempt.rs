//! One start of the method, from its guess to its end.

use super::engine::{End, Engine, Saved};
use super::{Options, guess};
use crate::control::Problem;
use crate::dynamics::{Observe, stop_requested};
use crate::optimize::{Iteration, nlp};
use crate::rollout::Trajectory;
use serde::{Deserialize, Serialize};

/// A guess with contacts that has not met the constraints of the first, softest level after so many iterations, or takes so many
/// at one of the others, leads nowhere, and is drawn again, so many times. Of a biped's stride those that lead to a gait need some
/// 12 and 15, few of the others ever arrive.
const SOON: usize = 20;
const AT_A_LEVEL: usize = 30;
const DRAWS: u64 = 5;
/// Apart from the seeds of other starts.
const NEXT_DRAW: u64 = 0x9E37_79B9_7F4A_7C15;

/// The guess of a seed.
pub fn drawn<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    options: &Options,
) -> Result<Trajectory, End> {
    guess(dynamics, problem, options).map_err(|e| {
        let reason = format!("the start does not exist: {e}");
        (nlp::Status::Undefined, reason)
    })
}

/// A start of the method.
pub struct Attempt<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    /// With the seed of its first guess.
    options: Options,
    pub engine: Engine<'a, D>,
    /// Guesses that led nowhere.
    given_up: u64,
    /// How it ended, once it has.
    pub ended: Option<End>,
    /// Of all its stages.
    pub rows: Vec<Iteration>,
    /// Rows of the solver's history that are among these.
    noted: usize,
}

/// One that was kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    engine: Saved,
    given_up: u64,
    ended: Option<End>,
    rows: Vec<Iteration>,
}

impl<'a, D: Observe> Attempt<'a, D> {
    pub fn new(
        dynamics: &'a D,
        problem: &'a Problem,
        options: Options,
        guess: Trajectory,
    ) -> Result<Self, End> {
        let mut out = Self {
            engine: Engine::new(dynamics, problem, guess, options)?,
            dynamics,
            problem,
            options,
            given_up: 0,
            ended: None,
            rows: vec![],
            noted: 0,
        };
        out.note();
        out.settle(Ok(()));
        Ok(out)
    }

    /// Notes the rows that are new.
    fn note(&mut self) {
        let e = &self.engine;
        let new = e.solver.history[self.noted..].iter();
        self.rows.extend(new.map(|r| e.row(r)));
        self.noted = e.solver.history.len();
    }

    /// An iteration, if it has not ended.
    pub fn advance(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let before = self.engine.save();
        let e = &mut self.engine;
        let made = e.solver.advance(&mut e.program, &mut |_| true);
        if stop_requested() {
            // as if it had not begun
            if let Some(kept) = before {
                self.engine.undo(kept);
                self.noted = 1;
            }
            return;
        }
        self.note();
        self.settle(made);
        self.draw_again();
    }

    /// Begins anew from another guess, where one that was drawn leads nowhere.
    fn draw_again(&mut self) {
        let is_drawn = self.problem.guess_states.is_empty() && self.options.noise > 0.0;
        let leads_nowhere = match &self.ended {
            None => self.engine.is_late(SOON, AT_A_LEVEL),
            Some((status, _)) => self.engine.is_first() && *status == nlp::Status::Infeasible,
        };
        if !(is_drawn && leads_nowhere && self.given_up < DRAWS) {
            return;
        }
        let draw = NEXT_DRAW.wrapping_mul(self.given_up + 1);
        let options = Options {
            seed: self.options.seed.wrapping_add(draw),
            ..self.options
        };
        let guess = drawn(self.dynamics, self.problem, &options);
        let engine = guess.and_then(|g| Engine::new(self.dynamics, self.problem, g, options));
        if let Ok(engine) = engine {
            self.engine = engine;
            self.given_up += 1;
            (self.noted, self.ended) = (0, None);
            self.note();
            self.settle(Ok(()));
        }
    }

    /// Ends, or goes on with the next stage, if nothing is left to do in this one.
    fn settle(&mut self, made: Result<(), End>) {
        let e = &mut self.engine;
        let mut end = made.err();
        while let Some((status, reason)) = end.take().or_else(|| e.solver.ended(&mut e.program)) {
            use nlp::Status::{Converged, MaxIterations, Stalled};
            if e.is_last() || !matches!(status, Converged | MaxIterations | Stalled) {
                let gave_up = status == MaxIterations && e.gives_up();
                self.ended = Some(match gave_up {
                    true => (Stalled, format!("with what contacts do frozen, {reason}")),
                    false => (status, reason),
                });
                return;
            }
            end = e.next_stage().err();
            // its first row is of the point before
            self.noted = 1;
        }
    }

    /// Where it stands.
    pub fn save(&self) -> Option<Kept> {
        Some(Kept {
            engine: self.engine.save()?,
            given_up: self.given_up,
            ended: self.ended.clone(),
            rows: self.rows.clone(),
        })
    }

    /// Stands where that was; false where it is not of this program.
    pub fn restore(&mut self, kept: Kept) -> Result<bool, End> {
        if !self.engine.restore(kept.engine)? {
            return Ok(false);
        }
        self.noted = 1;
        (self.ended, self.rows, self.given_up) = (kept.ended, kept.rows, kept.given_up);
        if self.ended.is_none() {
            self.settle(Ok(()));
        }
        Ok(true)
    }
}
