//! One start of the method, from its guess to its end.

use super::engine::{End, Engine, Saved};
use super::{Options, guess};
use crate::control::Problem;
use crate::dynamics::{Observe, stop_requested};
use crate::optimize::{Iteration, nlp};
use crate::rollout::Trajectory;
use serde::{Deserialize, Serialize};

/// A guess with contacts leads nowhere that has not met the constraints of the first, softest level after so many iterations, or
/// takes more than so many for it, or for one of the others; and is drawn again, so many times. (Constraints of the first level are
/// met to its parameter, 1 in their own units.) Of a biped's stride the twelve of twenty seeds
/// whose first guess leads to a gait need 57 to 99 iterations for the first and 3 to 27 for another; few of the others arrive.
const SOON: usize = 20;
const AT_THE_FIRST: usize = 100;
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

/// At the guess that is drawn after so many others.
fn engine_of_draw<'a, D: Observe>(
    dynamics: &'a D,
    problem: &'a Problem,
    options: Options,
    given_up: u64,
) -> Result<Engine<'a, D>, End> {
    let draw = NEXT_DRAW.wrapping_mul(given_up);
    let options = Options {
        seed: options.seed.wrapping_add(draw),
        ..options
    };
    let guess = drawn(dynamics, problem, &options)?;
    Engine::new(dynamics, problem, guess, options)
}

/// A start of the method.
pub struct Attempt<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    /// With the seed of its first guess.
    options: Options,
    pub engine: Engine<'a, D>,
    /// Was its guess drawn? And how many led nowhere.
    is_drawn: bool,
    given_up: u64,
    /// Iterations of this level, and whether one has met its constraints.
    here: usize,
    has_met: bool,
    /// How it ended, once it has.
    pub ended: Option<End>,
    /// Where it stood before an iteration that was interrupted.
    interrupted: Option<Kept>,
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
    here: usize,
    has_met: bool,
    ended: Option<End>,
    rows: Vec<Iteration>,
}

impl<'a, D: Observe> Attempt<'a, D> {
    /// From a guess, or from one that is drawn.
    pub fn new(
        dynamics: &'a D,
        problem: &'a Problem,
        options: Options,
        guess: Option<Trajectory>,
    ) -> Result<Self, End> {
        let noisy = problem.guess_states.is_empty() && options.noise > 0.0;
        let is_drawn = guess.is_none() && noisy;
        let mut given_up = 0;
        let engine = match guess {
            Some(guess) => Engine::new(dynamics, problem, guess, options)?,
            None => loop {
                match engine_of_draw(dynamics, problem, options, given_up) {
                    // noise may be where nothing is defined
                    Err(_) if is_drawn && given_up < DRAWS && !stop_requested() => given_up += 1,
                    made => break made?,
                }
            },
        };
        let mut out = Self {
            engine,
            dynamics,
            problem,
            options,
            is_drawn,
            given_up,
            here: 0,
            has_met: false,
            ended: None,
            interrupted: None,
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
        let new = &e.solver.history[self.noted..];
        self.here += new.len();
        self.has_met |= new.iter().any(|r| e.holds(r));
        self.rows.extend(new.iter().map(|r| e.row(r)));
        self.noted = e.solver.history.len();
    }

    /// An iteration, if it has not ended.
    pub fn advance(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let before = self.engine.save();
        let (given_up, here, has_met, rows) =
            (self.given_up, self.here, self.has_met, self.rows.len());
        self.iterate();
        if stop_requested() {
            // as if it had not begun: what a stop breaks off on the way fails
            self.ended = None;
            self.rows.truncate(rows);
            self.interrupted = before.map(|engine| Kept {
                engine,
                given_up,
                here,
                has_met,
                ended: None,
                rows: self.rows.clone(),
            });
        }
    }

    /// An iteration, with what begins behind it.
    fn iterate(&mut self) {
        let e = &mut self.engine;
        let made = e.solver.advance(&mut e.program, &mut |_| true);
        self.note();
        self.settle(made);
        while self.leads_nowhere() && self.given_up < DRAWS && !stop_requested() {
            self.given_up += 1;
            // a start that does not exist is none
            if let Ok(engine) = self.draw() {
                self.engine = engine;
                (self.noted, self.ended) = (0, None);
                (self.here, self.has_met) = (0, false);
                self.note();
                self.settle(Ok(()));
            }
        }
    }

    /// At a guess that was drawn, one after others that led nowhere.
    fn draw(&self) -> Result<Engine<'a, D>, End> {
        engine_of_draw(self.dynamics, self.problem, self.options, self.given_up)
    }

    /// Is another guess to be drawn?
    fn leads_nowhere(&self) -> bool {
        use nlp::Status::{Diverged, Infeasible, Undefined};
        self.is_drawn
            && self.engine.is_on_path()
            && match &self.ended {
                Some((status, _)) => matches!(status, Infeasible | Diverged | Undefined),
                None if self.engine.is_first() => {
                    self.here > SOON && !self.has_met || self.here > AT_THE_FIRST
                }
                None => self.here > AT_A_LEVEL,
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
                    true => (
                        Stalled,
                        format!(
                            "{reason} for the contact sequence that was found; take another guess, or the method ddp"
                        ),
                    ),
                    false => (status, reason),
                });
                return;
            }
            end = e.next_stage().err();
            (self.here, self.has_met) = (0, false);
            // its first row is of the point before
            self.noted = 1;
        }
    }

    /// Where it stands.
    pub fn save(&self) -> Option<Kept> {
        if let Some(kept) = &self.interrupted {
            return Some(kept.clone());
        }
        Some(Kept {
            engine: self.engine.save()?,
            given_up: self.given_up,
            here: self.here,
            has_met: self.has_met,
            ended: self.ended.clone(),
            rows: self.rows.clone(),
        })
    }

    /// Stands where that was; false where it is not of this program.
    pub fn restore(&mut self, kept: Kept) -> Result<bool, End> {
        self.given_up = kept.given_up.min(DRAWS);
        if self.given_up > 0 {
            self.engine = self.draw()?;
        }
        if !self.engine.restore(kept.engine)? {
            return Ok(false);
        }
        self.noted = 1;
        (self.here, self.has_met) = (kept.here, kept.has_met);
        (self.ended, self.rows) = (kept.ended, kept.rows);
        if self.ended.is_none() {
            self.settle(Ok(()));
        }
        Ok(true)
    }
}
