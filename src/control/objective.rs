//! The objective as a function of controls, parameters and start: its value and gradient, alone and in batches.

use super::{Ended, Episodes, Evaluation, Problem, ProblemError};
use crate::dynamics::{
    Certificate, Knot, KnotPoint, Observe, QuantityId, StepError, StepFailure, Stoppable, Stored,
};
use crate::rollout::{RolloutStats, Sweep, Trajectory};
use rayon::prelude::*;
use std::borrow::Borrow;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// The objective of a problem with the states simulated away: a function of controls, parameters and the state at the
/// start. Constraints are part of it only by a penalty ([`Objective::with_penalty`]), bounds are none. System and problem are owned, borrowed or shared.
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
///
/// Of a problem with [`Episodes`](super::Episodes) it breaks off where one of their conditions ends the rollout, which then
/// costs what it says; the episode of a seed is that of [`Point::seed`].
#[derive(Clone, Debug)]
pub struct Objective<D, P = Problem> {
    system: D,
    problem: P,
    penalty: f64,
    window: Option<NonZeroUsize>,
    smoothing: f64,
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
    /// The episode whose start and parameters are drawn from this seed, where the problem has episodes; without one it
    /// starts as the problem says.
    pub seed: Option<u64>,
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
    pub(super) system: W,
    pub(super) trajectory: Trajectory,
    pub(super) evaluation: Evaluation,
    pub(super) sweep: Sweep,
    stats: RolloutStats,
    /// Coordinates and rates at the start.
    from: [Vec<f64>; 2],
    /// The quantities that may end an episode, and their values.
    watched: (Vec<QuantityId>, Vec<f64>),
    pub(super) multipliers: Vec<f64>,
}

impl<W> ObjectiveWork<W> {
    /// Where the episode last evaluated ended before its horizon did.
    pub fn ended(&self) -> Option<Ended> {
        self.evaluation.ended
    }

    /// Simulates until an episode ends; where it did.
    fn roll<D: Observe<Work = W>>(
        &mut self,
        system: &D,
        problem: &Problem,
    ) -> Result<Option<Ended>, StepError> {
        let (t, watched) = (&mut self.trajectory, &mut self.watched);
        let Some(episodes) = problem.episodes.as_ref().filter(|e| !e.ends.is_empty()) else {
            t.roll(system, &mut self.system, &mut self.stats)?;
            return Ok(None);
        };
        let mut found = None;
        t.roll_until(system, &mut self.system, &mut self.stats, |seen, w| {
            found = ended(system, episodes, seen, watched, w)?;
            Ok(match found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            })
        })?;
        Ok(found)
    }

    /// Does an episode end at a knot reached?
    pub(super) fn ends<D: Observe<Work = W>>(
        &mut self,
        system: &D,
        problem: &Problem,
        at: &Knot,
    ) -> Result<Option<Ended>, StepError> {
        let Some(episodes) = problem.episodes.as_ref().filter(|e| !e.ends.is_empty()) else {
            return Ok(None);
        };
        let seen = self.trajectory.reached(at);
        ended(system, episodes, &seen, &mut self.watched, &mut self.system)
    }

    /// The trajectory last evaluated; of an episode that ended what lies behind its end is of others.
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
        Ok(Self {
            system,
            problem,
            penalty: 0.0,
            window: None,
            smoothing: 0.0,
        })
    }

    /// Adds `weight/2` times the sum of the squares of the constraints' violations to values and gradients.
    #[must_use]
    pub fn with_penalty(self, penalty: f64) -> Self {
        Self { penalty, ..self }
    }

    /// Truncates gradients to windows of so many steps ([`Sweep::run_over`]): each starts from the state that was reached
    /// as if it were given.
    #[must_use]
    pub fn with_window(self, window: Option<NonZeroUsize>) -> Self {
        Self { window, ..self }
    }

    /// Takes gradients through contacts on the central path at `kappa`, m^2/s^2 (0: that of the steps, which makes them
    /// exact); see [`Differentiable::smoothing`](crate::dynamics::Differentiable::smoothing). Memory made before does not.
    #[must_use]
    pub fn with_smoothing(self, smoothing: f64) -> Self {
        Self { smoothing, ..self }
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
            seed: None,
        }
    }

    /// Memory for one thread.
    pub fn work(&self) -> ObjectiveWork<D::Work> {
        let (system, problem) = (&self.system, self.problem());
        let x0 = vec![0.0; system.dims().nx];
        let trajectory = Trajectory::new(system, problem.intervals.clone(), &x0);
        let evaluation = problem.evaluation();
        let watched: Vec<QuantityId> = problem.ends().iter().map(|e| e.quantity).collect();
        let mut work = system.work();
        system.smoothing(&mut work, self.smoothing);
        ObjectiveWork {
            system: work,
            sweep: Sweep::new(system, &trajectory),
            trajectory,
            stats: RolloutStats::default(),
            from: [problem.coordinates.clone(), problem.rates.clone()],
            watched: (watched.clone(), vec![0.0; watched.len()]),
            multipliers: vec![0.0; evaluation.constraints.len()],
            evaluation,
        }
    }

    /// The objective.
    ///
    /// # Errors
    /// When a list of the point has another length than the system's, there is no such start, or a step fails.
    pub fn value(&self, at: &Point, w: &mut ObjectiveWork<D::Work>) -> Result<f64, StepError> {
        self.begin(at, w)?;
        let (system, problem) = (&self.system, self.problem());
        let ended = w.roll(system, problem)?;
        let (t, e) = (&w.trajectory, &mut w.evaluation);
        problem.evaluate_until(system, t, ended, &mut w.system, e)?;
        Ok(self.penalized(e.objective, || problem.violation_squared(e)))
    }

    /// The trajectory from a point to the end of the horizon, whatever ends episodes before.
    ///
    /// # Errors
    /// As [`Objective::value`].
    pub fn whole<'w>(
        &self,
        at: &Point,
        w: &'w mut ObjectiveWork<D::Work>,
    ) -> Result<&'w Trajectory, StepError> {
        self.begin(at, w)?;
        w.trajectory
            .roll(&self.system, &mut w.system, &mut w.stats)?;
        Ok(&w.trajectory)
    }

    /// The part of one knot in the objective, along the trajectory that is there.
    pub(super) fn value_at(
        &self,
        at: &Knot,
        w: &mut ObjectiveWork<D::Work>,
    ) -> Result<f64, StepError> {
        let (problem, t, e) = (self.problem(), &w.trajectory, &mut w.evaluation);
        let costs = problem.evaluate_at(&self.system, t, at, 0.0, &mut w.system, e)?;
        Ok(self.penalized(costs, || problem.violation_squared_at(e, at.k, 0.0)))
    }

    /// What violations cost, added.
    fn penalized(&self, objective: f64, square: impl FnOnce() -> f64) -> f64 {
        match self.penalty > 0.0 {
            true => objective + 0.5 * self.penalty * square(),
            false => objective,
        }
    }

    /// Sets where a rollout starts and what acts on the way.
    pub(super) fn begin(
        &self,
        at: &Point,
        w: &mut ObjectiveWork<D::Work>,
    ) -> Result<(), StepError> {
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
        let [q, rates] = &mut w.from;
        q.copy_from_slice(&problem.coordinates);
        rates.copy_from_slice(&problem.rates);
        if let (Some(seed), Some(episodes)) = (at.seed, &problem.episodes) {
            episodes.draw(seed, q, rates, &mut t.p);
        }
        problem.set_intervals(t);
        match &at.start {
            Some(x0) => take("start", &mut t.x[..d.nx], x0),
            None => {
                let (from, x) = ([&q[..], &rates[..]], &mut t.x[..d.nx]);
                problem.start_from(&self.system, from, &t.p, &mut w.system, x)
            }
        }
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
        let multipliers = self.multipliers(w);
        let (t, e, sweep) = (&w.trajectory, &mut w.evaluation, &mut w.sweep);
        let (ended, steps) = (e.ended, problem.intervals.len());
        let made = 0..ended.map_or(steps, |e| e.knot);
        let multipliers = &w.multipliers[..multipliers];
        sweep.run_over(
            system,
            t,
            made,
            self.window,
            &mut w.system,
            |at, w, out, y| problem.pull(system, t, multipliers, e, at, w, out, y),
        )?;
        if let Some(ended) = ended {
            // what is left of the horizon
            let rest = problem.ends()[ended.end].rest;
            let left = sweep.intervals[ended.knot..].iter_mut();
            left.for_each(|by| *by += rest);
        }
        let parameters = match at.start {
            Some(_) => {
                let mut held = sweep.p.clone();
                problem.intervals_by_parameters(&sweep.intervals, sweep.before, &mut held);
                held
            }
            None => {
                let [q, rates] = &w.from;
                problem.by_parameters_from(system, [q, rates], &t.p, sweep, &mut w.system)?
            }
        };
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

    /// Sets the constraints' multipliers that the penalty comes to; how many there are of them, none where it is none.
    pub(super) fn multipliers(&self, w: &mut ObjectiveWork<D::Work>) -> usize {
        if self.penalty <= 0.0 {
            return 0;
        }
        let (problem, e) = (self.problem(), &w.evaluation);
        for k in 0..e.layout.knots() {
            let own = e.layout.constraints(k);
            let stage = e.layout.stage(k).constraints.iter();
            for ((i, _), place) in stage.zip(own) {
                let slope = problem.constraints[*i].violation_slope(e.constraints[place]);
                w.multipliers[place] = self.penalty * slope;
            }
        }
        w.multipliers.len()
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

/// Does an episode end here?
fn ended<D: Observe>(
    system: &D,
    episodes: &Episodes,
    seen: &KnotPoint,
    (which, values): &mut (Vec<QuantityId>, Vec<f64>),
    w: &mut D::Work,
) -> Result<Option<Ended>, StepError> {
    system.observe_in(seen, which, w, values)?;
    let knot = seen.at.k;
    Ok(episodes.ended(values).map(|end| Ended { knot, end }))
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
