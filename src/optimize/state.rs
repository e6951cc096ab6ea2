//! Where a solve stands: the state that argmin's executor keeps and observers see, the same for every method here.

use super::{Iteration, Remedy, Status};
use crate::rollout::Trajectory;
use argmin::core::{KV, Problem, State, TerminationReason, TerminationStatus};
use std::collections::HashMap;
use std::time::Duration;

/// The best iterate: feasible ones before infeasible ones, then by objective or violation.
#[derive(Clone, Debug)]
pub struct Best {
    /// With the parameters found.
    pub trajectory: Trajectory,
    /// What it is worth.
    pub row: Iteration,
}

/// Part of the objective by which an iterate before was better that is worth telling: far more than what a tolerance of the
/// violation makes of it. Conventional.
const WORTH_TELLING: f64 = 1e-3;

/// Is an iterate worth more than another one? One of softened steps is not, however good it looks.
pub(super) fn is_better(new: &Iteration, old: &Iteration, tolerance: f64) -> bool {
    if new.softened != old.softened {
        return old.softened;
    }
    let value = |i: &Iteration| (i.objective, i.violation);
    if new.smoothing < old.smoothing && (new.softened || value(new) == value(old)) {
        return true;
    }
    match (new.violation <= tolerance, old.violation <= tolerance) {
        (true, true) => new.objective < old.objective,
        (a, b) if a != b => a,
        _ => new.violation < old.violation,
    }
}

/// The state of a solve. Observers read its fields.
#[derive(Clone, Debug, Default)]
pub struct SolveState {
    /// One entry an iteration, the guess first; with those of the runs before where one goes on.
    pub history: Vec<Iteration>,
    /// The trajectory last reached; its states need not follow from each other while gaps are closed.
    pub iterate: Option<Trajectory>,
    /// The best so far, of those that can be simulated.
    pub best: Option<Best>,
    /// How the method ended, once it has, and why.
    pub ended: Option<(Status, String)>,
    /// What may help, where something is known to.
    pub remedy: Option<Remedy>,
    /// What of the problem was left out or replaced, in words.
    pub remarks: Vec<String>,
    /// Largest violation of what counts as feasible.
    pub tolerance: f64,
    /// The place of the constraint that is violated most, and since which iteration of this run it is.
    pub worst: Option<(usize, u64)>,
    iterations: u64,
    most: u64,
    best_at: u64,
    counts: HashMap<String, u64>,
    time: Option<Duration>,
    termination: TerminationStatus,
}

impl SolveState {
    /// The last iteration: objective, violation, optimality, step length, penalty, smoothing.
    pub fn last(&self) -> Option<&Iteration> {
        self.history.last()
    }

    /// Before the guess is evaluated.
    pub(super) fn limited(self, tolerance: f64, most: u64) -> Self {
        Self {
            tolerance,
            most,
            ..self
        }
    }

    /// The method ends.
    pub(super) fn end(&mut self, status: Status, reason: impl Into<String>) {
        self.ended = Some((status, reason.into()));
    }

    /// Notes which constraint is violated most at the iterate that is recorded next.
    pub(super) fn watch(&mut self, worst: Option<usize>) {
        if self.worst.map(|(i, _)| i) != worst {
            self.worst = worst.map(|i| (i, self.history.len() as u64));
        }
    }

    /// Notes an iterate, which is a candidate for the best if it `is_simulated`.
    pub(super) fn record(&mut self, t: &Trajectory, row: Iteration, is_simulated: bool) {
        let row = Iteration {
            iteration: self.history.len() as u64,
            ..row
        };
        let converged = matches!(self.ended, Some((Status::Converged, _)));
        let worse = |b: &Best| is_better(&row, &b.row, self.tolerance);
        if let (true, Some(b), Some((_, reason))) = (converged, &self.best, &mut self.ended)
            && b.row.violation <= self.tolerance
            && b.row.softened == row.softened
            && row.objective - b.row.objective > WORTH_TELLING * row.objective.abs()
        {
            *reason = format!(
                "on its way from there it left {:.6}, where all constraints held as well",
                b.row.objective
            );
        }
        if is_simulated && (converged || self.best.as_ref().is_none_or(worse)) {
            match &mut self.best {
                Some(b) => {
                    b.trajectory.clone_from(t);
                    b.row.clone_from(&row);
                }
                none => {
                    *none = Some(Best {
                        trajectory: t.clone(),
                        row: row.clone(),
                    });
                }
            }
            self.best_at = self.iterations;
        }
        match &mut self.iterate {
            Some(i) => i.clone_from(t),
            none => *none = Some(t.clone()),
        }
        self.history.push(row);
    }

    /// Notes an iteration of a method that judges by itself which iterate is the best: the one given, if there is a new
    /// one. The iterate is the best so far.
    pub(super) fn note(&mut self, best: Option<Trajectory>, row: Iteration) {
        let row = Iteration {
            iteration: self.history.len() as u64,
            ..row
        };
        if let Some(t) = best {
            self.iterate = Some(t.clone());
            self.best = Some(Best {
                trajectory: t,
                row: row.clone(),
            });
            self.best_at = self.iterations;
        }
        self.history.push(row);
    }

    /// Does the best so far keep all constraints, on hard steps?
    pub(super) fn has_feasible(&self) -> bool {
        let feasible = |b: &Best| !b.row.softened && b.row.violation <= self.tolerance;
        self.best.as_ref().is_some_and(feasible)
    }

    /// The last iteration for observers that know names only.
    pub(super) fn named(&self) -> Option<KV> {
        let row = self.last()?;
        Some(argmin::kv!(
            "objective" => row.objective;
            "violation" => row.violation;
            "optimality" => row.optimality;
            "step_length" => row.step_length;
            "regularization" => row.regularization;
            "smoothing" => row.smoothing;
        ))
    }
}

impl State for SolveState {
    type Param = Trajectory;
    type Float = f64;

    fn new() -> Self {
        Self {
            most: u64::MAX,
            ..Self::default()
        }
    }

    /// Methods choose the best by `SolveState::record`.
    fn update(&mut self) {}

    fn get_param(&self) -> Option<&Trajectory> {
        self.iterate.as_ref()
    }

    fn get_best_param(&self) -> Option<&Trajectory> {
        self.best.as_ref().map(|b| &b.trajectory)
    }

    fn get_max_iters(&self) -> u64 {
        self.most
    }

    fn increment_iter(&mut self) {
        self.iterations += 1;
    }

    fn get_iter(&self) -> u64 {
        self.iterations
    }

    fn get_cost(&self) -> f64 {
        self.last().map_or(f64::INFINITY, |i| i.objective)
    }

    fn get_best_cost(&self) -> f64 {
        let best = self.best.as_ref();
        best.map_or(f64::INFINITY, |b| b.row.objective)
    }

    fn get_target_cost(&self) -> f64 {
        f64::NEG_INFINITY
    }

    fn func_counts<O>(&mut self, problem: &Problem<O>) {
        for (name, count) in &problem.counts {
            self.counts.insert((*name).to_owned(), *count);
        }
    }

    fn get_func_counts(&self) -> &HashMap<String, u64> {
        &self.counts
    }

    fn time(&mut self, time: Option<Duration>) -> &mut Self {
        self.time = time;
        self
    }

    fn get_time(&self) -> Option<Duration> {
        self.time
    }

    fn get_last_best_iter(&self) -> u64 {
        self.best_at
    }

    fn is_best(&self) -> bool {
        self.best_at == self.iterations
    }

    fn terminate_with(self, reason: TerminationReason) -> Self {
        Self {
            termination: TerminationStatus::Terminated(reason),
            ..self
        }
    }

    fn get_termination_status(&self) -> &TerminationStatus {
        &self.termination
    }

    fn get_termination_reason(&self) -> Option<&TerminationReason> {
        match &self.termination {
            TerminationStatus::Terminated(reason) => Some(reason),
            TerminationStatus::NotTerminated => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What softened steps are worth says nothing of hard ones, however good it looks.
    #[test]
    fn hard_steps_come_before_softened_ones() {
        let row = |objective, violation, smoothing, softened| Iteration {
            objective,
            violation,
            smoothing,
            softened,
            ..Iteration::default()
        };
        let hard = row(1.0, 1e-3, 0.0, false);
        let soft = row(0.5, 0.0, 0.1, true);
        let beats = |new: Iteration, old: &Iteration| is_better(&new, old, 1e-6);
        assert!(!beats(row(0.5, 0.0, 0.1, true), &hard));
        assert!(beats(row(2.0, 0.0, 0.1, false), &hard));
        assert!(!beats(row(0.5, 2e-3, 0.0, false), &hard));
        assert!(beats(row(9.0, 1.0, 0.1, false), &soft));
        assert!(beats(row(0.6, 0.0, 0.01, true), &soft));
    }
}
