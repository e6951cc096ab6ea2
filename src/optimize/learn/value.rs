//! What decisions are worth: the objective with a penalty for what is violated, by rollouts over threads.

use super::decisions::Decisions;
use crate::control::{Objective, ObjectiveWork, Point, Problem, ProblemError};
use crate::dynamics::{Observe, StepError, StepFailure, Stoppable};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rollouts that failed in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// How: [`StepFailure::name`].
    pub kind: String,
    /// How many.
    pub count: u64,
    /// What the first of them said.
    pub first: String,
}

/// Counts a failure among those before.
pub(super) fn count(failed: &mut Vec<Failed>, e: &StepError) {
    let kind = e.failure.name();
    match failed.iter_mut().find(|f| f.kind == kind) {
        Some(f) => f.count += 1,
        None => failed.push(Failed {
            kind: kind.into(),
            count: 1,
            first: e.to_string(),
        }),
    }
}

/// How many failed, in words; nothing where none did.
pub(in crate::optimize) fn told(failed: &[Failed], rollouts: u64) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let all: u64 = failed.iter().map(|f| f.count).sum();
    let kinds: Vec<String> = failed
        .iter()
        .map(|f| format!("{} {} (first: {})", f.count, f.kind, f.first))
        .collect();
    format!("{all} of {rollouts} rollouts failed: {}", kinds.join(", "))
}

/// What a rollout is worth.
#[derive(Clone, Debug)]
pub(super) struct Return {
    /// The objective with the penalty, infinite where the rollout failed.
    pub value: f64,
    /// Without the penalty.
    pub objective: f64,
    /// Largest violation.
    pub violation: f64,
    /// Steps made.
    pub steps: u64,
    /// Why there is no value.
    pub failure: Option<StepError>,
}

/// Rollouts of a problem.
pub(super) struct Returns<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    objective: Objective<&'a D, &'a Problem>,
    /// Of half the square of the violation.
    pub weight: f64,
    pool: Mutex<Vec<Memory<D::Work>>>,
}

/// What a thread needs for a rollout.
struct Memory<W> {
    work: ObjectiveWork<W>,
    point: Point,
}

/// A lock that outlives a panic: what it guards is written whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The best of a batch: its value, its number, and where it leads.
type Front = Option<(f64, usize, Trajectory)>;

impl<'a, D: Observe> Returns<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem) -> Result<Self, ProblemError> {
        Ok(Self {
            dynamics,
            problem,
            objective: Objective::new(dynamics, problem)?,
            weight: 1.0,
            pool: Mutex::new(vec![]),
        })
    }

    /// Does something with memory of its own.
    fn with<T>(&self, of: impl FnOnce(&mut Memory<D::Work>) -> T) -> T {
        let kept = lock(&self.pool).pop();
        let mut memory = kept.unwrap_or_else(|| Memory {
            work: self.objective.work(),
            point: self.objective.guess(),
        });
        let out = of(&mut memory);
        lock(&self.pool).push(memory);
        out
    }

    fn evaluate(&self, m: &mut Memory<D::Work>) -> Return {
        let made = self.objective.value(&m.point, &mut m.work);
        let steps = m.work.stats().steps as u64;
        let failed = |e: StepError| Return {
            value: f64::INFINITY,
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            steps,
            failure: Some(e),
        };
        let objective = match made {
            Ok(objective) => objective,
            Err(e) => return failed(e),
        };
        let (e, t) = (m.work.evaluation(), m.work.trajectory());
        let problem = self.problem;
        let value = objective + 0.5 * self.weight * problem.violation_squared(e);
        // a comparison with what is not a number would hide it
        if !(value.is_finite() && e.constraints.iter().all(|c| c.is_finite())) {
            return failed(StepError {
                failure: StepFailure::NotFinite,
                element: "the objective".into(),
                time: t.intervals.iter().sum(),
                residual: f64::INFINITY,
                message: "it, or a constraint, is not finite".into(),
            });
        }
        Return {
            value,
            objective,
            violation: problem.violation(e, &t.u, &t.p),
            steps,
            failure: None,
        }
    }

    /// The start, from which the weight of the penalty follows where `relative` gives it; with its trajectory, as far as
    /// it goes.
    pub fn start(&mut self, decisions: &Decisions, relative: f64) -> (Return, Trajectory) {
        let problem = self.problem;
        self.weight = relative;
        let (mut first, (scale, square), trajectory) = self.with(|m| {
            decisions.put(&decisions.start, problem, &mut m.point);
            let first = self.evaluate(m);
            let scale = problem.penalty_scale(m.work.evaluation());
            let scale = scale.filter(|_| first.failure.is_none()).unwrap_or(1.0);
            let mut trajectory = m.work.trajectory().clone();
            if first.failure.is_some() {
                trajectory.truncate(m.work.stats().steps);
            }
            let square = problem.violation_squared(m.work.evaluation());
            (first, (scale, square), trajectory)
        });
        self.weight = relative * scale;
        if first.failure.is_none() {
            first.value = first.objective + 0.5 * self.weight * square;
        }
        (first, trajectory)
    }

    /// Decisions, one a column, simulated over the threads of the current rayon pool; the trajectory of the best, the
    /// first of equals, if it is below `least`. The same bits whatever the number of threads.
    pub fn batch(
        &self,
        decisions: &Decisions,
        columns: &DMatrix<f64>,
        least: f64,
        out: &mut Vec<Return>,
    ) -> Option<(usize, Trajectory)> {
        let (problem, n) = (self.problem, columns.nrows());
        let stoppable = Stoppable::here();
        let front: Mutex<Front> = Mutex::new(None);
        let one = |i: usize| {
            let column = &columns.as_slice()[i * n..(i + 1) * n];
            self.with(|m| {
                decisions.put(column, problem, &mut m.point);
                let found = stoppable.run(|| self.evaluate(m));
                if found.value < least {
                    keep(&front, found.value, i, m.work.trajectory());
                }
                found
            })
        };
        // rollouts differ in length: each is a piece of work of its own
        let each = (0..columns.ncols()).into_par_iter().with_max_len(1);
        each.map(one).collect_into_vec(out);
        let front = front.into_inner().unwrap_or_else(PoisonError::into_inner);
        front.map(|(_, i, t)| (i, t))
    }

    /// The trajectory of a point that was kept.
    pub fn simulated(&self, point: &crate::optimize::checkpoint::Point) -> Option<Trajectory> {
        self.with(|m| point.simulated(self.dynamics, self.problem, m.work.system()))
    }

    /// Names what is violated by more than `tolerance` along a trajectory.
    pub fn violated(&self, t: &Trajectory, tolerance: f64) -> Result<String, StepError> {
        let (problem, dynamics) = (self.problem, self.dynamics);
        if t.steps() < problem.intervals.len() {
            return Ok(String::new());
        }
        let mut e = problem.evaluation();
        self.with(|m| problem.evaluate(dynamics, t, m.work.system(), &mut e))?;
        Ok(problem.violated(dynamics, &e, t, tolerance).join(", "))
    }
}

/// Keeps a trajectory if it is better than the one kept, or as good and earlier.
fn keep(front: &Mutex<Front>, value: f64, i: usize, t: &Trajectory) {
    match &mut *lock(front) {
        Some((least, first, kept)) => {
            if value < *least || (value == *least && i < *first) {
                (*least, *first) = (value, i);
                kept.clone_from(t);
            }
        }
        none => *none = Some((value, i, t.clone())),
    }
}
