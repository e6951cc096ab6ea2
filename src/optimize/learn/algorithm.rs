//! Any learner as a method of the driver: rollouts, the best so far, progress, checkpoints and the end.

use super::decisions::Decisions;
use super::value::{self, Failed, Return, Returns, Slope};
use super::{Learner, LearnerOptions, Random, Settings, Watched};
use crate::control::{Point, Problem};
use crate::dynamics::{Observe, StepError, StepFailure};
use crate::optimize::checkpoint::{self, Checkpoint, Incumbent, Multipliers};
use crate::optimize::driver::{Algorithm, Found};
use crate::optimize::{Iteration, Method, SolveState, Status};
use crate::rollout::Trajectory;
use argmin::core::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The learner whose settings these are.
///
/// # Errors
/// When there is nothing for it to decide.
pub(in crate::optimize) fn algorithm<'a, D: Observe, O: LearnerOptions>(
    dynamics: &'a D,
    problem: &'a Problem,
    options: &O,
) -> Result<Box<dyn Algorithm + 'a>, Error> {
    let settings = *options.settings();
    settings.fits(problem).map_err(Error::msg)?;
    let decisions = Decisions::new(problem, &settings, O::UNIT);
    Ok(Box::new(Learning {
        learner: options.learner(&decisions),
        returns: Returns::new(dynamics, problem, options.derivatives())?,
        method: O::METHOD,
        manner: options.manner(),
        smoothing: options.derivatives().1,
        problem,
        standing: Standing {
            random: Random::new(settings.seed),
            best: None,
            rollouts: 0,
            failed: vec![],
        },
        settings,
        decisions,
        steps: 0,
        gradients: 0,
        slopes: vec![],
        found: vec![],
        values: vec![],
        reached: None,
    }))
}

/// A learner on a problem.
struct Learning<'a, D: Observe> {
    method: Method,
    /// How it goes about, in words.
    manner: String,
    /// What its gradients are relaxed to.
    smoothing: f64,
    problem: &'a Problem,
    settings: Settings,
    decisions: Decisions,
    returns: Returns<'a, D>,
    learner: Box<dyn Learner>,
    standing: Standing,
    /// Steps simulated.
    steps: u64,
    /// Gradients computed.
    gradients: u64,
    /// Of the last iteration.
    slopes: Vec<Slope>,
    found: Vec<Return>,
    values: Vec<f64>,
    /// Where the guess leads, as far as it can be simulated.
    reached: Option<Trajectory>,
}

/// What decides beside the learner what comes next, and what is told of rollouts.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Standing {
    random: Random,
    /// The best so far.
    best: Option<Best>,
    /// Rollouts made.
    rollouts: u64,
    /// Those that failed.
    failed: Vec<Failed>,
}

/// What the best so far is worth.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Best {
    /// With the penalty.
    value: f64,
    objective: f64,
    violation: f64,
}

/// What a checkpoint keeps of a learner.
#[derive(Serialize, Deserialize)]
struct Saved {
    standing: Standing,
    learner: Value,
}

impl<D: Observe> Learning<'_, D> {
    fn is_stop(e: &StepError) -> bool {
        e.failure == StepFailure::Stopped
    }

    /// Takes note of rollouts: counts, failures, the best of them, and the row of the history.
    fn note(
        &mut self,
        state: &mut SolveState,
        best: Option<(usize, Trajectory)>,
        moved: f64,
        watched: Option<Watched>,
    ) {
        let s = &mut self.standing;
        let episodes = self.problem.episodes.as_ref().map_or(1, |e| e.count);
        s.rollouts += (self.slopes.len() + self.found.len() * episodes) as u64;
        self.gradients += self.slopes.len() as u64;
        self.steps += self.slopes.iter().map(|r| r.steps).sum::<u64>();
        self.steps += self.found.iter().map(|r| r.steps).sum::<u64>();
        let of_gradients = self.slopes.iter().filter_map(|r| r.failure.as_ref());
        let failures = of_gradients.chain(self.found.iter().filter_map(|r| r.failure.as_ref()));
        let mut failed = 0;
        for e in failures {
            value::count(&mut s.failed, e);
            failed += 1;
        }
        if let Some((i, _)) = &best {
            let r = &self.found[*i];
            s.best = Some(Best {
                value: r.value,
                objective: r.objective,
                violation: r.violation,
            });
        }
        let good = || self.found.iter().filter(|r| r.failure.is_none());
        let count = good().count();
        let mean = good().map(|r| r.objective).sum::<f64>() / count as f64;
        let (objective, violation) = s.best.map_or((f64::INFINITY, f64::INFINITY), |b| {
            (b.objective, b.violation)
        });
        let row = Iteration {
            objective,
            violation,
            // it has no model that could promise anything
            optimality: f64::INFINITY,
            step_length: moved,
            regularization: self.returns.weight(),
            smoothing: self.smoothing,
            mean: (count > 0).then_some(mean),
            failures: Some(failed),
            gradient_mean: watched.map(|w| w.mean),
            gradient_largest: watched.map(|w| w.largest),
            clipped: watched.map(|w| w.clipped),
            rollouts: Some(s.rollouts),
            ..Iteration::default()
        };
        state.note(best.map(|(_, t)| t), row);
    }

    /// Gives the learner the gradients that it asks for.
    fn descend(&mut self) -> Option<Watched> {
        self.slopes.clear();
        let random = &mut self.standing.random;
        let asked = self.learner.ask_gradients(random)?;
        let seeds: Vec<Option<u64>> = match &self.problem.episodes {
            Some(_) => (0..asked.episodes).map(|_| Some(random.seed())).collect(),
            None => vec![None],
        };
        let (columns, slopes) = (asked.decisions, &mut self.slopes);
        self.returns
            .gradients(&self.decisions, columns, &seeds, slopes);
        let good = |s: &'_ Slope| s.failure.is_none();
        let found: Vec<Option<&[f64]>> = (self.slopes.iter())
            .map(|s| good(s).then_some(&s.by[..]))
            .collect();
        self.learner.tell_gradients(&found)
    }

    /// The value below which there is a new best.
    fn least(&self) -> f64 {
        self.standing.best.map_or(f64::INFINITY, |b| b.value)
    }

    /// Goes on where a solve stood. What another version, or another number of decisions, kept of the learner is left: it starts anew
    /// where that stood.
    fn resume(&mut self, c: &Checkpoint) {
        self.steps = c.step_evaluations;
        self.gradients = c.gradient_evaluations;
        self.returns.weigh(c.multipliers.penalty);
        let kept = c.own::<Saved>();
        if let Some(kept) = &kept {
            self.standing = kept.standing.clone();
        }
        if kept.is_none_or(|k| !self.learner.restore(&k.learner)) {
            let p = &c.point;
            let center = self.decisions.of(&p.controls, &p.parameters);
            self.learner.restart(&center);
            self.learner.tell_start(self.least());
        }
    }
}

impl<D: Observe> Algorithm for Learning<'_, D> {
    fn method(&self) -> Method {
        self.method
    }

    fn tolerances(&self) -> (f64, f64) {
        (self.settings.tolerance, 0.0)
    }

    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error> {
        if let Some(c) = &from {
            self.resume(c);
            return Ok(());
        }
        let (first, trajectory) = self.returns.start(&self.decisions, self.settings.penalty);
        if first.failure.as_ref().is_some_and(Self::is_stop) {
            self.reached = Some(trajectory);
            state.end(Status::Interrupted, "");
            return Ok(());
        }
        self.learner.tell_start(first.value);
        let simulated = first.failure.is_none();
        self.found = vec![first];
        let best = simulated.then(|| (0, trajectory.clone()));
        self.reached = Some(trajectory);
        self.note(state, best, 0.0, None);
        Ok(())
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let before = self.standing.random.clone();
        let least = self.least();
        let watched = self.descend();
        let columns = self.learner.ask(&mut self.standing.random);
        let best = self
            .returns
            .batch(&self.decisions, columns, least, &mut self.found);
        let failures = self.found.iter().filter_map(|r| r.failure.as_ref());
        let slopes = self.slopes.iter().filter_map(|r| r.failure.as_ref());
        if failures.chain(slopes).any(Self::is_stop) {
            // as if it had not begun
            self.standing.random = before;
            state.end(Status::Interrupted, "");
            return Ok(());
        }
        self.values.clear();
        self.values.extend(self.found.iter().map(|r| r.value));
        let moved = self.learner.tell(&self.values);
        self.note(state, best, moved, watched);
        Ok(())
    }

    fn counts(&self) -> (u64, u64) {
        (self.steps, self.gradients)
    }

    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        self.returns.simulated(&kept.point)
    }

    fn checkpoint(&self) -> Checkpoint {
        let mut point = Point {
            controls: self.problem.guess.clone(),
            parameters: self.problem.parameters.clone(),
            start: None,
            seed: None,
        };
        self.decisions
            .put(self.learner.center(), self.problem, &mut point);
        Checkpoint {
            point: checkpoint::Point {
                controls: point.controls,
                parameters: point.parameters,
                states: vec![],
            },
            multipliers: Multipliers {
                constraints: vec![0.0; self.problem.evaluation().constraints.len()],
                penalty: self.returns.weight(),
                ..Multipliers::default()
            },
            own: Checkpoint::owned(Some(Saved {
                standing: self.standing.clone(),
                learner: self.learner.keep(),
            })),
            ..Checkpoint::default()
        }
    }

    fn budget(&self) -> Option<u64> {
        Some(self.settings.max_iterations)
    }

    fn manner(&self) -> &str {
        &self.manner
    }

    fn failed(&self) -> (&[Failed], u64) {
        (&self.standing.failed, self.standing.rollouts)
    }

    fn finish(&mut self, state: &SolveState, _: bool) -> Result<Found, Error> {
        let (row, trajectory) = match (&state.best, &self.reached) {
            (Some(best), _) => (best.row.clone(), best.trajectory.clone()),
            (None, Some(reached)) => (Iteration::unknown(), reached.clone()),
            (None, None) => (
                Iteration::unknown(),
                self.returns.start(&self.decisions, self.settings.penalty).1,
            ),
        };
        let tolerance = self.settings.tolerance;
        let violated = match self.problem.episodes {
            None => self.returns.violated(&trajectory, tolerance)?,
            // the trajectory is none of theirs
            Some(_) if row.violation <= tolerance => String::new(),
            Some(_) => format!(
                "constraints in the episodes, by up to {:.3e}",
                row.violation
            ),
        };
        Ok(Found {
            row,
            gains: None,
            covariance: None,
            violated,
            trajectory,
        })
    }
}
