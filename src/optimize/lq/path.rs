//! An iterate: a trajectory whose states need not follow from each other, and what it is worth.

use super::knot::Worker;
use crate::control::{Evaluation, Problem};
use crate::dynamics::{
    Knot, Observe, SolvedStep, StepError, StepFailure, Stoppable, stop_requested,
};
use crate::rollout::{RolloutStats, Trajectory};
use rayon::prelude::*;

/// A trajectory with gaps: the step from state `k` ends at `ends[k]`, which need not be state `k + 1`.
#[derive(Clone, Debug)]
pub struct Path {
    pub trajectory: Trajectory,
    /// The last included; they move with durations that are decisions.
    pub knots: Vec<Knot>,
    /// Where the steps end, `nx` each; only kept while there are gaps.
    pub ends: Vec<f64>,
    pub has_gaps: bool,
    /// Sum over the knots of the largest number of each gap, joint chart.
    pub gap: f64,
    pub evaluation: Evaluation,
    nx: usize,
}

impl Path {
    pub fn new<D: Observe>(dynamics: &D, problem: &Problem, w: &mut D::Work) -> Self {
        // a start that does not exist shows when it is simulated
        let x0 = problem
            .start(dynamics, &problem.parameters, w)
            .unwrap_or_else(|_| vec![f64::NAN; dynamics.dims().nx]);
        let mut trajectory = Trajectory::new(dynamics, problem.intervals.clone(), &x0);
        trajectory.p.copy_from_slice(&problem.parameters);
        problem.set_intervals(&mut trajectory);
        let nx = dynamics.dims().nx;
        Self {
            knots: knots(&trajectory),
            ends: vec![0.0; trajectory.steps() * nx],
            has_gaps: false,
            gap: 0.0,
            evaluation: problem.evaluation(),
            trajectory,
            nx,
        }
    }

    /// Sets the intervals that follow from the trajectory's parameters.
    pub fn retime(&mut self, problem: &Problem) {
        if problem.durations.is_empty() {
            return;
        }
        let t = &mut self.trajectory;
        problem.set_intervals(t);
        self.renew_knots();
    }

    /// Moves the first knot to a time, with the interval before it.
    pub fn begin_at(&mut self, time: f64, before: f64) {
        (self.trajectory.time, self.trajectory.before) = (time, before);
        self.renew_knots();
    }

    fn renew_knots(&mut self) {
        let t = &self.trajectory;
        for k in 0..t.steps() {
            self.knots[k] = match k {
                0 => t.knot(0),
                _ => t.knot_after(&self.knots[k - 1]),
            };
        }
        if let Some(k) = t.steps().checked_sub(1) {
            self.knots[k + 1] = t.knot_after(&self.knots[k]);
        }
    }

    /// Where the step from knot `k` ends.
    pub fn end(&self, k: usize) -> &[f64] {
        if self.has_gaps {
            &self.ends[k * self.nx..(k + 1) * self.nx]
        } else {
            self.trajectory.state(k + 1)
        }
    }

    /// The step from a knot, solved.
    pub fn solved(&self, at: &Knot) -> SolvedStep<'_> {
        SolvedStep {
            next: self.end(at.k),
            ..self.trajectory.solved(at)
        }
    }

    /// Simulates from the first state.
    pub fn roll<D: Observe>(&mut self, dynamics: &D, w: &mut D::Work) -> Result<(), StepError> {
        self.simulate(dynamics, &[], w, &mut RolloutStats::default())
            .map(|_| ())
    }

    /// Steps from every state given, which leaves gaps. A state from which no step leads on is left out: the motion from the state before
    /// goes on there. If it cannot, or none is given, the path is simulated from the first, which `stats` counts.
    /// Returns why states were left out, in the order of their times.
    pub fn simulate<D: Observe>(
        &mut self,
        dynamics: &D,
        states: &[f64],
        w: &mut D::Work,
        stats: &mut RolloutStats,
    ) -> Result<Vec<StepError>, StepError> {
        let mut left_out = vec![];
        if !states.is_empty() {
            let nx = self.nx;
            self.trajectory.x[nx..].copy_from_slice(&states[nx..]);
            self.has_gaps = true;
            if self.step_from_each(dynamics, w, &mut left_out)? {
                return Ok(left_out);
            }
        }
        self.has_gaps = false;
        self.trajectory.roll(dynamics, w, stats)?;
        Ok(left_out)
    }

    /// False if neither a state given nor the motion before it leads on.
    fn step_from_each<D: Observe>(
        &mut self,
        dynamics: &D,
        w: &mut D::Work,
        left_out: &mut Vec<StepError>,
    ) -> Result<bool, StepError> {
        let (dims, nx) = (dynamics.dims(), self.nx);
        let t = &mut self.trajectory;
        for at in &self.knots[..t.steps()] {
            let k = at.k;
            let x = &mut t.x[k * nx..(k + 1) * nx];
            let y = &mut t.y[k * dims.ny..(k + 1) * dims.ny];
            y.fill(0.0);
            let u = &t.u[k * dims.nu..(k + 1) * dims.nu];
            let (before, end) = self.ends[..(k + 1) * nx].split_at_mut(k * nx);
            let Err(e) = dynamics.step(at, x, u, &t.p, w, end, y) else {
                continue;
            };
            if e.failure == StepFailure::Stopped {
                return Err(e);
            }
            left_out.push(e);
            let Some(reached) = k.checked_sub(1).map(|k| &before[k * nx..]) else {
                return Ok(false);
            };
            x.copy_from_slice(reached);
            y.fill(0.0);
            match dynamics.step(at, x, u, &t.p, w, end, y) {
                Ok(_) => (),
                Err(e) if e.failure == StepFailure::Stopped => return Err(e),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    pub fn evaluate<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        w: &mut D::Work,
    ) -> Result<(), StepError> {
        problem.evaluate(dynamics, &self.trajectory, w, &mut self.evaluation)
    }

    /// The same with the knots shared among several threads: the same bits. Of several failures it is the first along the path.
    pub fn evaluate_shared<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        workers: &mut [Worker<D::Work>],
    ) -> Result<(), StepError> {
        if let [only] = workers {
            return self.evaluate(dynamics, problem, &mut only.work);
        }
        let e = &mut self.evaluation;
        e.objective = f64::INFINITY;
        let (t, layout, stoppable) = (&self.trajectory, &e.layout, Stoppable::here());
        let see = |knots: &[Knot], mut values: &mut [f64], work: &mut D::Work| {
            for at in knots {
                if stop_requested() {
                    return Err(StepError::stopped(at.t));
                }
                let which = &layout.stage(at.k).which;
                let (own, rest) = values.split_at_mut(which.len());
                values = rest;
                if !which.is_empty() {
                    dynamics.observe(&t.knot_point(at), which, work, own)?;
                }
            }
            Ok(())
        };
        let (mut parts, mut rest) = (vec![], &mut e.values[..]);
        for knots in self.knots.chunks(self.knots.len().div_ceil(workers.len())) {
            let counts = knots.iter().map(|at| layout.values(at.k).len());
            let (own, after) = rest.split_at_mut(counts.sum());
            parts.push((knots, own));
            rest = after;
        }
        let seen: Vec<Result<(), StepError>> = (parts.into_par_iter().zip(workers))
            .map(|((knots, own), w)| stoppable.run(|| see(knots, own, &mut w.work)))
            .collect();
        seen.into_iter().collect::<Result<(), _>>()?;
        problem.count(&self.trajectory, &mut self.evaluation);
        Ok(())
    }

    /// Largest violation of a constraint or bound, in the units of constraints, controls and parameters.
    pub fn violation(&self, problem: &Problem) -> f64 {
        let t = &self.trajectory;
        problem.violation(&self.evaluation, &t.u, &t.p)
    }

    /// Names what is violated by more than `tolerance`, and by how much.
    pub fn violated<D: Observe>(&self, dynamics: &D, problem: &Problem, tolerance: f64) -> String {
        let mut list = problem.violated(dynamics, &self.evaluation, &self.trajectory, tolerance);
        if self.has_gaps {
            list.push(format!("gaps between the states of {:.3e}", self.gap));
        }
        list.join(", ")
    }
}

/// The knots of a trajectory, the last included.
fn knots(t: &Trajectory) -> Vec<Knot> {
    let mut knots = vec![t.knot(0)];
    for k in 0..t.steps() {
        knots.push(t.knot_after(&knots[k]));
    }
    knots
}
