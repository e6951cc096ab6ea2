//! What decisions are worth: the objective with a penalty for what is violated, by rollouts over threads.

use super::decisions::Decisions;
use crate::control::{Objective, ObjectiveWork, Point, Problem, ProblemError};
use crate::dynamics::{Observe, StepError, StepFailure, Stoppable};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
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
    /// Sum of the squares of violations.
    square: f64,
    /// Steps made.
    pub steps: u64,
    /// Why there is no value.
    pub failure: Option<StepError>,
}

/// A rollout's gradient by the decisions.
pub(super) struct Slope {
    pub by: Vec<f64>,
    /// Steps made.
    pub steps: u64,
    /// Why there is none.
    pub failure: Option<StepError>,
}

impl Return {
    fn failed(e: StepError, steps: u64) -> Self {
        Self {
            value: f64::INFINITY,
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            square: f64::INFINITY,
            steps,
            failure: Some(e),
        }
    }
}

/// Rollouts of a problem.
pub(super) struct Returns<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    objective: Objective<&'a D, &'a Problem>,
    /// Of half the square of the violation.
    weight: f64,
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
    /// With gradients truncated and relaxed as told.
    pub fn new(
        dynamics: &'a D,
        problem: &'a Problem,
        (window, smoothing): (Option<NonZeroUsize>, f64),
    ) -> Result<Self, ProblemError> {
        let objective = Objective::new(dynamics, problem)?;
        Ok(Self {
            dynamics,
            problem,
            objective: objective.with_window(window).with_smoothing(smoothing),
            weight: 0.0,
            pool: Mutex::new(vec![]),
        })
    }

    /// The weight of half the square of the violation.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Weighs violations.
    pub fn weigh(&mut self, weight: f64) {
        self.weight = weight;
        self.objective = self.objective.clone().with_penalty(weight);
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

    /// The value of a point: of its rollout, or the mean over the problem's episodes.
    fn evaluate(&self, m: &mut Memory<D::Work>) -> Return {
        let Some(episodes) = &self.problem.episodes else {
            m.point.seed = None;
            return self.rollout(m);
        };
        let mut all = Return {
            value: 0.0,
            objective: 0.0,
            violation: 0.0,
            square: 0.0,
            steps: 0,
            failure: None,
        };
        for seed in episodes.seeds() {
            m.point.seed = Some(seed);
            let one = self.rollout(m);
            all.steps += one.steps;
            if let Some(e) = one.failure {
                return Return::failed(e, all.steps);
            }
            all.value += one.value;
            all.objective += one.objective;
            all.square += one.square;
            all.violation = all.violation.max(one.violation);
        }
        let n = episodes.count as f64;
        [&mut all.value, &mut all.objective, &mut all.square]
            .into_iter()
            .for_each(|sum| *sum /= n);
        all
    }

    fn rollout(&self, m: &mut Memory<D::Work>) -> Return {
        let made = self.objective.value(&m.point, &mut m.work);
        let steps = m.work.stats().steps as u64;
        let value = match made {
            Ok(value) => value,
            Err(e) => return Return::failed(e, steps),
        };
        let (e, t) = (m.work.evaluation(), m.work.trajectory());
        let problem = self.problem;
        // a comparison with what is not a number would hide it
        if !(value.is_finite() && e.constraints.iter().all(|c| c.is_finite())) {
            return Return::failed(not_finite("the objective", t), steps);
        }
        Return {
            value,
            objective: e.objective,
            // what is drawn is no decision
            violation: problem.violation(e, &t.u, &m.point.parameters),
            square: problem.violation_squared(e),
            steps,
            failure: None,
        }
    }

    /// The trajectory that is told of a point that was evaluated: of episodes that from the problem's own start, as far as it
    /// goes, since what it does behind their ends says nothing of them.
    ///
    /// # Errors
    /// When a stop is requested.
    fn told(&self, m: &mut Memory<D::Work>) -> Result<Trajectory, StepError> {
        let mut reached = usize::MAX;
        if self.problem.episodes.is_some() {
            m.point.seed = None;
            match self.objective.whole(&m.point, &mut m.work) {
                Err(e) if e.failure == StepFailure::Stopped => return Err(e),
                Err(_) => reached = m.work.stats().steps,
                Ok(_) => (),
            }
        }
        let mut told = m.work.trajectory().clone();
        if reached < told.steps() {
            told.truncate(reached);
        }
        Ok(told)
    }

    /// The start, from which the weight of the penalty follows where `relative` gives it; with its trajectory, as far as
    /// it goes.
    pub fn start(&mut self, decisions: &Decisions, relative: f64) -> (Return, Trajectory) {
        let problem = self.problem;
        self.weigh(relative);
        let (mut first, trajectory) = self.with(|m| {
            decisions.put(&decisions.start, problem, &mut m.point);
            let mut first = self.evaluate(m);
            if first.failure.is_none() {
                match self.told(m) {
                    Ok(told) => return (first, told),
                    Err(e) => first = Return::failed(e, first.steps),
                }
            }
            let mut trajectory = m.work.trajectory().clone();
            trajectory.truncate(m.work.stats().steps);
            (first, trajectory)
        });
        if first.failure.is_some() {
            return (first, trajectory);
        }
        let scale = Problem::penalty_scale_of(first.objective, first.square).unwrap_or(1.0);
        self.weigh(relative * scale);
        first.value = first.objective + 0.5 * self.weight * first.square;
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
                stoppable.run(|| {
                    let found = self.evaluate(m);
                    if found.value < least {
                        match self.told(m) {
                            Ok(told) => keep(&front, found.value, i, told),
                            Err(e) => return Return::failed(e, found.steps),
                        }
                    }
                    found
                })
            })
        };
        // rollouts differ in length: each is a piece of work of its own
        let each = (0..columns.ncols()).into_par_iter().with_max_len(1);
        each.map(one).collect_into_vec(out);
        let front = front.into_inner().unwrap_or_else(PoisonError::into_inner);
        front.map(|(_, i, t)| (i, t))
    }

    /// Gradients at decisions, one a column, of each of its episodes, over the threads of the current rayon pool: column by
    /// column. The same bits whatever the number of threads.
    pub fn gradients(
        &self,
        decisions: &Decisions,
        columns: &DMatrix<f64>,
        seeds: &[Option<u64>],
        out: &mut Vec<Slope>,
    ) {
        let (problem, n) = (self.problem, columns.nrows());
        let stoppable = Stoppable::here();
        let one = |i: usize| {
            let (column, seed) = (i / seeds.len(), seeds[i % seeds.len()]);
            let column = &columns.as_slice()[column * n..(column + 1) * n];
            self.with(|m| {
                decisions.put(column, problem, &mut m.point);
                m.point.seed = seed;
                let made =
                    stoppable.run(|| self.objective.value_and_gradient(&m.point, &mut m.work));
                let steps = m.work.stats().steps as u64;
                let failed = |e| Slope {
                    by: vec![],
                    steps,
                    failure: Some(e),
                };
                let gradient = match made {
                    Ok(gradient) => gradient,
                    Err(e) => return failed(e),
                };
                let mut by = vec![0.0; n];
                decisions.pull(column, problem, &gradient, &mut by);
                if !by.iter().all(|v| v.is_finite()) {
                    return failed(not_finite("the gradient", m.work.trajectory()));
                }
                Slope {
                    by,
                    steps,
                    failure: None,
                }
            })
        };
        let each = (0..columns.ncols() * seeds.len()).into_par_iter();
        each.with_max_len(1).map(one).collect_into_vec(out);
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

fn not_finite(what: &str, t: &Trajectory) -> StepError {
    StepError {
        failure: StepFailure::NotFinite,
        element: what.into(),
        time: t.intervals.iter().sum(),
        residual: f64::INFINITY,
        message: "it, or a constraint, is not finite".into(),
    }
}

/// Keeps a trajectory if it is better than the one kept, or as good and earlier.
fn keep(front: &Mutex<Front>, value: f64, i: usize, t: Trajectory) {
    let mut front = lock(front);
    let better = |(least, first, _): &(f64, usize, Trajectory)| {
        value < *least || (value == *least && i < *first)
    };
    if front.as_ref().is_none_or(better) {
        *front = Some((value, i, t));
    }
}
