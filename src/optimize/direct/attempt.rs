//! One start of the method, from its guess to its end.

use super::engine::{End, Engine, Saved};
use crate::dynamics::{Observe, stop_requested};
use crate::optimize::{Iteration, nlp};
use serde::{Deserialize, Serialize};

/// A start of the method.
pub struct Attempt<'a, D: Observe> {
    pub engine: Engine<'a, D>,
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
    ended: Option<End>,
    rows: Vec<Iteration>,
}

impl<'a, D: Observe> Attempt<'a, D> {
    pub fn new(engine: Engine<'a, D>) -> Self {
        let mut out = Self {
            engine,
            ended: None,
            rows: vec![],
            noted: 0,
        };
        out.note();
        out.settle(Ok(()));
        out
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
        (self.ended, self.rows) = (kept.ended, kept.rows);
        if self.ended.is_none() {
            self.settle(Ok(()));
        }
        Ok(true)
    }
}
