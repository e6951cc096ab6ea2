//! A problem as learners outside of this crate see it: reset, step, observe, pull back; and batches of episodes.

use super::check::{ProblemError, ProblemPart, refuse};
use super::{Batch, Ended, Objective, ObjectiveWork, Point, Problem};
use crate::dynamics::{Inputs, Knot, KnotPoint, Observe, QuantityId, StepError, Stoppable};
use crate::rollout::Trajectory;
use rayon::prelude::*;
use std::borrow::Borrow;
use std::ops::Range;

/// An [`Objective`] as an environment: what its costs sum up to along an episode is the negative of the rewards, its
/// quantities are observations. Constraints count by [`Objective::with_penalty`], starts and ends are those of
/// [`Problem::episodes`].
///
/// The controls come from outside, step by step, or from a policy that closes the loop within the system
/// ([`super::ClosedLoop`]), whose gains or weights are parameters; then [`Environment::batch`] takes whole episodes at once.
///
/// ```
/// use least_action::control::{Adjoints, Cost, Environment, Objective, Problem, When};
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
/// let x = system.quantity("x0").ok_or("no quantity `x0`")?;
/// let mut problem = Problem::new(&system, vec![0.5; 2], vec![1.0]);
/// problem.rates.clear();
/// problem.costs = vec![Cost::square(x, 0.0, 1.0, When::End)];
/// let environment = Environment::new(Objective::new(&system, &problem)?, vec![x])?;
/// let mut episode = environment.episode();
/// episode.reset(7)?;
/// let mut rewards = vec![];
/// while !episode.is_over() {
///     let u = [-episode.observations()[0]];
///     rewards.push(episode.step(&u)?);
/// }
/// assert_eq!(rewards, [0.0, -0.5 * 0.25 * 0.25]); // -x^2/2 at x = 1/4
/// let by = episode.pull(0..2, &Adjoints { rewards: &[1.0; 2], observations: &[] })?;
/// assert_eq!(by.controls, [-0.25 * 0.5; 2]); // -x h
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Environment<D, P = Problem> {
    objective: Objective<D, P>,
    observations: Vec<QuantityId>,
}

/// An episode on the way, with its memory.
#[derive(Debug)]
pub struct Episode<'a, D: Observe, P = Problem> {
    environment: &'a Environment<D, P>,
    work: ObjectiveWork<D::Work>,
    point: Point,
    /// The knot reached; none before the first reset.
    at: Option<Knot>,
    ended: Option<Ended>,
    observations: Vec<f64>,
    idle: Vec<f64>,
}

/// Adjoints of what a window of an episode gave; an empty list is one of zeros.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adjoints<'a> {
    /// Of the reward of every step.
    pub rewards: &'a [f64],
    /// Of the observations at every knot, the first and the last included.
    pub observations: &'a [f64],
}

/// Adjoints of what a window of an episode took.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulled {
    /// Of the controls of every step, `nu` each.
    pub controls: Vec<f64>,
    /// Of the parameters, the state that the window starts from held.
    pub parameters: Vec<f64>,
    /// Of the state that the window starts from, in the free chart (`nf`).
    pub start: Vec<f64>,
}

/// What an episode came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Sum of the rewards.
    pub reward: f64,
    /// Steps made.
    pub steps: usize,
    /// Where it ended before its horizon did.
    pub ended: Option<Ended>,
}

impl<D: Observe, P: Borrow<Problem>> Environment<D, P> {
    /// With the quantities that are observations. These are seen at a knot before the control there is known, as by a
    /// policy: under no control.
    ///
    /// # Errors
    /// When there is no such quantity, or it is a force of the step that is not made yet.
    pub fn new(
        objective: Objective<D, P>,
        observations: Vec<QuantityId>,
    ) -> Result<Self, ProblemError> {
        let system = objective.system();
        let count = system.quantities().len();
        for q in &observations {
            let place = q.index();
            let why = match (place >= count, place < count && system.needs_unknowns(*q)) {
                (true, _) => {
                    format!("there is no quantity {place}; the system has {count}, counted from 0")
                }
                (_, true) => format!(
                    "quantity {place} is a force of the step from a knot, which is not made where it is observed; give a coordinate, a position or a rate"
                ),
                _ => continue,
            };
            return refuse(ProblemPart::Episodes, format!("observations: {why}"));
        }
        Ok(Self {
            objective,
            observations,
        })
    }

    /// What its rewards are of.
    pub fn objective(&self) -> &Objective<D, P> {
        &self.objective
    }

    /// Memory for one thread; [`Episode::reset`] comes first.
    pub fn episode(&self) -> Episode<'_, D, P> {
        let system = self.objective.system();
        Episode {
            environment: self,
            work: self.objective.work(),
            point: self.objective.guess(),
            at: None,
            ended: None,
            observations: vec![0.0; self.observations.len()],
            idle: vec![0.0; system.dims().nu],
        }
    }

    /// The episodes of these seeds under the controls and parameters of a point, over the threads of the current rayon
    /// pool; no trajectory is kept. Each is the same bits whatever the number of threads.
    pub fn batch(&self, point: &Point, seeds: &[u64]) -> Batch<Outcome>
    where
        P: Sync,
    {
        self.episodes(point, seeds, |outcome, _| outcome)
    }

    /// [`Environment::batch`] with the trajectories, which end where the episodes do.
    pub fn trajectories(&self, point: &Point, seeds: &[u64]) -> Batch<(Outcome, Trajectory)>
    where
        P: Sync,
    {
        self.episodes(point, seeds, |outcome, t| {
            let mut t = t.clone();
            t.truncate(outcome.steps);
            (outcome, t)
        })
    }

    fn episodes<T: Send>(
        &self,
        point: &Point,
        seeds: &[u64],
        of: impl Fn(Outcome, &Trajectory) -> T + Sync,
    ) -> Batch<T>
    where
        P: Sync,
    {
        let stoppable = Stoppable::here();
        let memory = || (self.objective.work(), point.clone());
        let one = |(w, point): &mut (ObjectiveWork<D::Work>, Point), seed: &u64| {
            point.seed = Some(*seed);
            let value = stoppable.run(|| self.objective.value(point, w))?;
            let outcome = Outcome {
                reward: -value,
                steps: w.stats().steps,
                ended: w.ended(),
            };
            Ok(of(outcome, w.trajectory()))
        };
        Batch {
            results: seeds.par_iter().map_init(memory, one).collect(),
        }
    }
}

impl<D: Observe, P: Borrow<Problem>> Episode<'_, D, P> {
    /// Takes other parameters, from the next [`Episode::reset`] on.
    pub fn set_parameters(&mut self, parameters: &[f64]) {
        self.point.parameters.clear();
        self.point.parameters.extend(parameters);
    }

    /// Goes to the start of the episode of a seed.
    ///
    /// # Errors
    /// When there is no such start, parameters are of another number than the system's, or observations have no value.
    pub fn reset(&mut self, seed: u64) -> Result<(), StepError> {
        self.at = None;
        self.ended = None;
        self.point.seed = Some(seed);
        self.environment
            .objective
            .begin(&self.point, &mut self.work)?;
        let at = self.work.trajectory.knot(0);
        self.look(&at)?;
        self.at = Some(at);
        Ok(())
    }

    /// What is observed at the knot reached.
    pub fn observations(&self) -> &[f64] {
        &self.observations
    }

    /// The knot reached; nothing before the first reset.
    pub fn knot(&self) -> Option<Knot> {
        self.at
    }

    /// Is there no further step to make?
    pub fn is_over(&self) -> bool {
        let steps = self.work.trajectory.steps();
        self.ended.is_some() || self.at.is_none_or(|at| at.k == steps)
    }

    /// Where it ended before its horizon did.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// The states reached so far, and what lies behind them of episodes before.
    pub fn trajectory(&self) -> &Trajectory {
        &self.work.trajectory
    }

    /// Makes a step under controls (`nu`), and returns its reward: the negative of what the problem's costs are at the knot
    /// that it starts from; of the last step also at the end, or of what the end of the episode costs.
    ///
    /// # Errors
    /// When the step fails, the episode is over, or there is another number of controls.
    pub fn step(&mut self, controls: &[f64]) -> Result<f64, StepError> {
        let objective = &self.environment.objective;
        let (system, problem) = (objective.system(), objective.problem());
        let over = self.is_over();
        let Some(at) = self.at.filter(|_| !over) else {
            return Err(StepError::of_size(
                "the episode",
                "it is over, or was not begun; reset it".into(),
            ));
        };
        let (w, n) = (&mut self.work, self.idle.len());
        if controls.len() != n {
            let got = controls.len();
            return Err(StepError::of_size(
                "controls",
                format!("{got} numbers; give {n}"),
            ));
        }
        w.trajectory.u[at.k * n..(at.k + 1) * n].copy_from_slice(controls);
        w.trajectory.step(system, &at, &mut w.system)?;
        let next = w.trajectory.knot_after(&at);
        let mut cost = objective.value_at(&at, w)?;
        self.ended = w.ends(system, problem, &next)?;
        if self.ended.is_some() {
            cost += problem.end_cost(&w.trajectory, self.ended);
        } else if next.k == w.trajectory.steps() {
            cost += objective.value_at(&next, w)?;
        }
        self.look(&next)?;
        self.at = Some(next);
        Ok(-cost)
    }

    fn look(&mut self, at: &Knot) -> Result<(), StepError> {
        let Environment {
            objective,
            observations,
        } = self.environment;
        let seen = unforced(&self.work.trajectory, at, &self.idle);
        let (w, out) = (&mut self.work.system, &mut self.observations);
        objective.system().observe_in(&seen, observations, w, out)
    }

    /// Adjoints of the controls, parameters and first state of a window of the steps made, from those of what it gave: a
    /// reverse sweep, exact within the window, however many steps the episode has gone on. Over an episode in windows one
    /// after the other, from the last to the first, the whole derivative follows where each window's adjoint of its
    /// first state goes into the one before; where it does not, it is truncated.
    ///
    /// # Errors
    /// When the window is not of steps made, a list has another length, or a step's matrix is singular.
    pub fn pull(&mut self, window: Range<usize>, of: &Adjoints) -> Result<Pulled, StepError> {
        let Environment {
            objective,
            observations,
        } = self.environment;
        let (system, problem, d) = (
            objective.system(),
            objective.problem(),
            objective.system().dims(),
        );
        let made = self.at.map_or(0, |at| at.k);
        if window.start >= window.end || window.end > made {
            let message = format!(
                "there are no steps {} to {} of {made} made; give a range of these",
                window.start, window.end
            );
            return Err(StepError::of_size("the window", message));
        }
        let (steps, seen) = (window.len(), observations.len());
        let lists = [
            ("adjoints of rewards", of.rewards.len(), steps),
            (
                "adjoints of observations",
                of.observations.len(),
                (steps + 1) * seen,
            ),
        ];
        for (what, got, n) in lists {
            if got != 0 && got != n {
                return Err(StepError::of_size(
                    what,
                    format!("{got} numbers; give {n}, or none"),
                ));
            }
        }
        // a window's controls are those of its steps
        let (w, last) = (&mut self.work, problem.intervals.len());
        w.evaluation.ended = self.ended;
        let multipliers = objective.multipliers(w);
        let (t, e) = (&w.trajectory, &mut w.evaluation);
        let (multipliers, values) = (&w.multipliers[..multipliers], &mut self.observations);
        let (mut by, mut zeros) = (d.inputs(), vec![0.0; d.ny]);
        let idle = &self.idle;
        let local = |at: &Knot, w: &mut D::Work, out: &mut Inputs, y: &mut [f64]| {
            let place = at.k - window.start;
            // costs at the end of the horizon are of the last step
            let of_step = (at.k < window.end || at.k == last).then(|| place.min(steps - 1));
            if let Some(scale) = of_step.and_then(|i| of.rewards.get(i)) {
                problem.pull(system, t, multipliers, e, at, w, out, y)?;
                times(out, -scale);
                y.iter_mut().for_each(|y| *y *= -scale);
            }
            if !of.observations.is_empty() && seen > 0 {
                let adjoint = &of.observations[place * seen..(place + 1) * seen];
                let at = unforced(t, at, idle);
                by.clear();
                system.observe(&at, observations, w, values)?.pull(
                    adjoint,
                    &mut by,
                    &mut zeros[..0],
                );
                by.u.fill(0.0);
                out.add(&by);
            }
            Ok(())
        };
        w.sweep
            .run_over(system, t, window.clone(), None, &mut w.system, local)?;
        // the last look again
        if let Some(at) = self.at {
            self.look(&at)?;
        }
        let sweep = &mut self.work.sweep;
        if let Some(ended) = self.ended.filter(|ended| ended.knot == window.end) {
            // what is left of the horizon is of the last reward
            let last = of.rewards.last().map_or(0.0, |r| -r);
            let rest = last * problem.ends()[ended.end].rest;
            let left = sweep.intervals[ended.knot..].iter_mut();
            left.for_each(|by| *by += rest);
        }
        let mut parameters = sweep.p.clone();
        problem.intervals_by_parameters(&sweep.intervals, sweep.before, &mut parameters);
        Ok(Pulled {
            controls: sweep.u[window.start * d.nu..window.end * d.nu].to_vec(),
            parameters,
            start: sweep.x0.clone(),
        })
    }
}

/// What is seen at a knot before a control is known there.
fn unforced<'a>(t: &'a Trajectory, at: &Knot, idle: &'a [f64]) -> KnotPoint<'a> {
    KnotPoint {
        u: idle,
        ..t.reached(at)
    }
}

/// Multiplies inputs.
fn times(inputs: &mut Inputs, by: f64) {
    let lists = [&mut inputs.x, &mut inputs.u, &mut inputs.p];
    lists.into_iter().flatten().for_each(|v| *v *= by);
    inputs.h_prev *= by;
    inputs.h *= by;
}
