//! The objective as a function of controls, parameters and start: its value and gradient, alone and in batches.

use super::{Evaluation, Problem, ProblemError};
use crate::dynamics::{Certificate, Observe, StepError, StepFailure, Stoppable, Stored};
use crate::rollout::{RolloutStats, Sweep, Trajectory};
use rayon::prelude::*;
use std::borrow::Borrow;

/// The objective of a problem with the states simulated away: a function of controls, parameters and the state at the
/// start. Constraints and bounds are no part of it. System and problem are owned, borrowed or shared.
///
/// ```
/// use least_action::control::{Cost, Objective, Problem, When};
/// use least_action::dynamics::{Explicit, Observe, Real, Smooth};
///
/// /// x+ = x + h u
/// struct Integrator;
///
/// impl Smooth for Integrator {
///     fn states(&self) -> usize { 1 }
///     fn controls(&self) -> usize { 1 }
///
///     fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
///         next[0] = x[0] + h * u[0];
///     }
/// }
///
/// let system = Explicit::new(Integrator);
/// let mut problem = Problem::new(&system, vec![0.5; 2], vec![1.0]);
/// problem.rates.clear();
/// let x = system.quantity("x0").ok_or("no quantity `x0`")?;
/// problem.costs = vec![Cost::square(x, 0.0, 1.0, When::End)];
/// let objective = Objective::new(&system, &problem)?;
/// let mut work = objective.work();
/// let g = objective.value_and_gradient(&objective.guess(), &mut work)?;
/// assert_eq!((g.objective, &g.controls[..]), (0.5, &[0.5, 0.5][..])); // x^2/2 at x = 1
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Objective<D, P = Problem> {
    system: D,
    problem: P,
}

/// Where an [`Objective`] is evaluated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Controls, `nu` a step.
    pub controls: Vec<f64>,
    /// Parameters, `np`.
    pub parameters: Vec<f64>,
    /// State at the start, `nx`; without one it follows from the problem's coordinates and the parameters.
    pub start: Option<Vec<f64>>,
}

/// An objective and its gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveGradient {
    /// The objective.
    pub objective: f64,
    /// By the controls, `nu` a step.
    pub controls: Vec<f64>,
    /// By the parameters, the start that follows from them included, unless [`Point::start`] was given.
    pub parameters: Vec<f64>,
    /// State at the start, `nx`.
    pub start: Vec<f64>,
    /// By the state at the start, in the free chart (`nf`).
    pub by_start: Vec<f64>,
    /// By the intervals.
    pub intervals: Vec<f64>,
    /// The worst of the steps' linearizations.
    pub certificate: Certificate,
}

/// Memory of an [`Objective`], for one thread.
#[derive(Debug)]
pub struct ObjectiveWork<W> {
    system: W,
    trajectory: Trajectory,
    evaluation: Evaluation,
    sweep: Sweep,
    stats: RolloutStats,
}

impl<W> ObjectiveWork<W> {
    /// The trajectory last evaluated.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// The values of the problem's functions along it.
    pub fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// What its rollout cost.
    pub fn stats(&self) -> &RolloutStats {
        &self.stats
    }

    /// The system's own memory.
    pub fn system(&mut self) -> &mut W {
        &mut self.system
    }
}

/// Results of a batch, in the order of its points.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    /// Of each point its result, or the step that failed.
    pub results: Vec<Result<T, StepError>>,
}

impl<T> Batch<T> {
    /// How many points failed.
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|r| r.is_err()).count()
    }

    /// What failed: each kind of failure with its number and the first point that failed so, in the order of these.
    pub fn failures(&self) -> Vec<(StepFailure, usize, usize)> {
        let mut out: Vec<(StepFailure, usize, usize)> = vec![];
        for (i, r) in self.results.iter().enumerate() {
            let Err(e) = r else { continue };
            match out.iter_mut().find(|(kind, ..)| *kind == e.failure) {
                Some((_, count, _)) => *count += 1,
                None => out.push((e.failure, 1, i)),
            }
        }
        out
    }

    /// The results that are there, with the number of their point.
    pub fn succeeded(&self) -> impl Iterator<Item = (usize, &T)> {
        let all = self.results.iter().enumerate();
        all.filter_map(|(i, r)| r.as_ref().ok().map(|r| (i, r)))
    }
}

impl<D: Observe, P: Borrow<Problem>> Objective<D, P> {
    /// Of a problem that fits the system.
    ///
    /// # Errors
    /// As [`Problem::check`].
    pub fn new(system: D, problem: P) -> Result<Self, ProblemError> {
        problem.borrow().check(&system)?;
        Ok(Self { system, problem })
    }

    /// The system.
    pub fn system(&self) -> &D {
        &self.system
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        self.problem.borrow()
    }

    /// The problem's own guess.
    pub fn guess(&self) -> Point {
        Point {
            controls: self.problem().guess.clone(),
            parameters: self.problem().parameters.clone(),
            start: None,
        }
    }

    /// Memory for one thread.
    pub fn work(&self) -> ObjectiveWork<D::Work> {
        let (system, problem) = (&self.system, self.problem());
        let x0 = vec![0.0; system.dims().nx];
        let mut trajectory = Trajectory::new(system, problem.intervals.clone(), &x0);
        trajectory.before = problem.before;
        ObjectiveWork {
            system: system.work(),
            evaluation: problem.evaluation(),
            sweep: Sweep::new(system, &trajectory),
            trajectory,
            stats: RolloutStats::default(),
        }
    }

    /// The objective.
    ///
    /// # Errors
    /// When a list of the point has another length than the system's, there is no such start, or a step fails.
    pub fn value(&self, at: &Point, w: &mut ObjectiveWork<D::Work>) -> Result<f64, StepError> {
        let (d, problem) = (self.system.dims(), self.problem());
        // where there is no start no step was made
        w.stats = RolloutStats::default();
        let t = &mut w.trajectory;
        take(
            "controls",
            &mut t.u[..problem.intervals.len() * d.nu],
            &at.controls,
        )?;
        take("parameters", &mut t.p, &at.parameters)?;
        problem.set_intervals(&t.p, &mut t.intervals);
        match &at.start {
            Some(x0) => take("start", &mut t.x[..d.nx], x0)?,
            None => {
                let x0 = problem.start(&self.system, &at.parameters, &mut w.system)?;
                t.x[..d.nx].copy_from_slice(&x0);
            }
        }
        t.roll(&self.system, &mut w.system, &mut w.stats)?;
        problem.evaluate(&self.system, t, &mut w.system, &mut w.evaluation)?;
        Ok(w.evaluation.objective)
    }

    /// The objective and its gradient: a rollout, a reverse sweep.
    ///
    /// # Errors
    /// As [`Objective::value`], and when a step's matrix is singular.
    pub fn value_and_gradient(
        &self,
        at: &Point,
        w: &mut ObjectiveWork<D::Work>,
    ) -> Result<ObjectiveGradient, StepError> {
        let objective = self.value(at, w)?;
        let (system, problem) = (&self.system, self.problem());
        let (t, e, sweep) = (&w.trajectory, &mut w.evaluation, &mut w.sweep);
        sweep.run(system, t, &mut w.system, |at, w, out, y| {
            problem.pull(system, t, &[], e, at, w, out, y)
        })?;
        let parameters = match at.start {
            Some(_) => {
                let mut held = sweep.p.clone();
                problem.intervals_by_parameters(&sweep.intervals, &mut held);
                held
            }
            None => problem.by_parameters(system, &t.p, sweep, &mut w.system)?,
        };
        let steps = problem.intervals.len();
        Ok(ObjectiveGradient {
            objective,
            controls: sweep.u[..steps * system.dims().nu].to_vec(),
            parameters,
            start: t.state(0).to_vec(),
            by_start: sweep.x0.clone(),
            intervals: sweep.intervals.clone(),
            certificate: sweep.certificate,
        })
    }

    /// [`Objective::value`] at many points, over the threads of the current rayon pool. Each is the same bits whatever
    /// the number of threads.
    pub fn values(&self, points: &[Point]) -> Batch<f64>
    where
        P: Sync,
    {
        self.batch(points, |at, w| self.value(at, w))
    }

    /// [`Objective::value_and_gradient`] at many points, over the threads of the current rayon pool. Each is the same
    /// bits whatever the number of threads.
    pub fn values_and_gradients(&self, points: &[Point]) -> Batch<ObjectiveGradient>
    where
        P: Sync,
    {
        self.batch(points, |at, w| self.value_and_gradient(at, w))
    }

    fn batch<T: Send>(
        &self,
        points: &[Point],
        of: impl Fn(&Point, &mut ObjectiveWork<D::Work>) -> Result<T, StepError> + Sync,
    ) -> Batch<T>
    where
        P: Sync,
    {
        let (each, stoppable) = (points.par_iter(), Stoppable::here());
        let one = |w: &mut ObjectiveWork<D::Work>, at| stoppable.run(|| of(at, w));
        Batch {
            results: each.map_init(|| self.work(), one).collect(),
        }
    }
}

impl<D: Observe + Stored, P: Borrow<Problem>> Objective<D, P> {
    /// A gradient by the stored numbers of the state at the start (`nx`).
    pub fn by_stored_start(&self, g: &ObjectiveGradient) -> Vec<f64> {
        let mut out = vec![0.0; g.start.len()];
        self.system.stored_pull(&g.start, &g.by_start, &mut out);
        out
    }
}

/// Copies a list that has the right length.
fn take(what: &str, to: &mut [f64], from: &[f64]) -> Result<(), StepError> {
    if to.len() != from.len() {
        let (got, n) = (from.len(), to.len());
        return Err(StepError::of_size(what, format!("{got} numbers; give {n}")));
    }
    to.copy_from_slice(from);
    Ok(())
}
