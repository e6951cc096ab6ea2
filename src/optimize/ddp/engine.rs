//! One iteration of differential dynamic programming: policy, line search along rollouts, model at the new path.

use super::NAME;
use super::backward::{Backward, Policy};
use super::lagrangian::Lagrangian;
use super::model::{Model, Scratch, Sizes};
use super::path::Path;
use super::{Gains, IterationState};
use crate::control::Problem;
use crate::dynamics::{Knot, Observe, StepError};
use crate::optimize::checkpoint::{Checkpoint, Point};
use crate::rollout::{RolloutStats, Trajectory};
use nalgebra::{DMatrix, DVector};
use std::sync::atomic::{AtomicBool, Ordering};

/// Regularization starts here when it is needed, and below it is none.
const SMALLEST: f64 = 1e-9;
const LARGEST: f64 = 1e10;
/// Shortest step tried, and with curvature that was only learnt.
const SHORTEST: f64 = 1e-3;
const SHORTEST_BY_SECANT: f64 = 0.2;
/// Promised gain, relative to the Lagrangian, from which on curvature is learnt.
const NEAR: f64 = 1e-2;
/// Longest step tried.
const LONGEST: f64 = 2.0;
/// Part of the predicted gain that a step must bring.
const FAIR: f64 = 0.05;
/// Gain, relative to the merit, above rounding; and how many steps may do without.
const GAIN: f64 = 1e-12;
const IDLE: u32 = 8;

/// The iterate with everything needed to improve it.
pub(super) struct Engine<'a, D: Observe> {
    pub dynamics: &'a D,
    pub problem: &'a Problem,
    pub work: D::Work,
    pub knots: Vec<Knot>,
    pub path: Path,
    trial: Path,
    pub model: Model,
    backward: Backward,
    pub policy: Policy,
    pub lagrangian: Lagrangian,
    scratch: Scratch,
    dx: Vec<f64>,
    shift: Vec<f64>,
    s: Vec<f64>,
    /// Relative to the curvature by controls.
    regularization: f64,
    growth: f64,
    /// Weight of the gaps in the merit.
    gap_weight: f64,
    /// `L(a) = L + a d1 + a^2/2 d2` by the model.
    slope: f64,
    bend: f64,
    /// Second derivative of what unit regularization adds to the model.
    damping: f64,
    pub steps: u64,
    pub models: u64,
    /// Objective of the guess.
    pub first_objective: f64,
    /// First length tried.
    stretch: f64,
    /// Of the curvature learnt.
    learnt: Trust,
    /// The same for plans without regularization.
    bare: Trust,
    /// Steps in a row that gained no more than rounding.
    pub idle: u32,
    /// Regularization to return to, should the plan without it fail.
    taken_back: Option<f64>,
}

/// Whether to try something again: ever later, the more often in a row it was of no use.
#[derive(Clone, Copy, Debug, Default)]
struct Trust {
    /// Iterations to go without it, and how many they were the last time.
    pause: u32,
    wait: u32,
}

impl Trust {
    fn is_due(&mut self) -> bool {
        let due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        due
    }

    fn failed(&mut self) {
        self.wait = (2 * self.wait).clamp(1, 16);
        self.pause = self.wait;
    }

    fn helped(&mut self) {
        self.wait = 0;
    }
}

/// How an attempt to improve ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Attempt {
    /// A step of this length (1: the model's whole one) was taken.
    Moved(f64),
    /// No regularization gave a step that makes progress.
    Stuck,
    /// Asked to stop.
    Stopped,
}

impl<'a, D: Observe> Engine<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, penalty: f64) -> Self {
        let mut work = dynamics.work();
        let dims = dynamics.dims();
        // a start that does not exist shows when it is simulated
        let x0 = problem
            .start(dynamics, &problem.parameters, &mut work)
            .unwrap_or_else(|_| vec![f64::NAN; dims.nx]);
        let mut path = Path::new(dynamics, problem, &x0);
        let mut knots = vec![path.trajectory.knot(0)];
        for k in 0..problem.intervals.len() {
            knots.push(path.trajectory.knot_after(&knots[k]));
        }
        let controls = problem.guess.iter().zip(problem.bounds.iter().cycle());
        for (u, (g, (l, h))) in path.trajectory.u.iter_mut().zip(controls) {
            *u = g.max(*l).min(*h);
        }
        for (p, (l, h)) in path.trajectory.p.iter_mut().zip(&problem.parameter_bounds) {
            if l < h {
                *p = p.max(*l).min(*h);
            }
        }
        let model = Model::new(dynamics, problem, &path);
        Self {
            lagrangian: Lagrangian::new(problem, &path.evaluation, penalty),
            trial: path.clone(),
            backward: Backward::new(&model.sizes),
            policy: Policy::new(&model.sizes),
            scratch: Scratch::new(&model.sizes),
            dx: vec![0.0; dims.ndx],
            shift: vec![0.0; dims.ndx],
            s: vec![0.0; model.sizes.s()],
            model,
            work,
            knots,
            path,
            dynamics,
            problem,
            regularization: 0.0,
            growth: 1.0,
            gap_weight: 0.0,
            slope: 0.0,
            bend: 0.0,
            damping: 0.0,
            steps: 0,
            models: 0,
            first_objective: 0.0,
            stretch: 1.0,
            learnt: Trust::default(),
            bare: Trust::default(),
            idle: 0,
            taken_back: None,
        }
    }

    /// Simulates the guess, or the point where an earlier solve stood.
    ///
    /// # Errors
    /// In words: what is wrong with it.
    pub fn start(&mut self, resumed: Option<&Checkpoint>) -> Result<(), String> {
        let problem = self.problem;
        let states = resumed.map_or(&problem.guess_states, |c| &c.point.states);
        if let Some(c) = resumed {
            self.path.trajectory.u.copy_from_slice(&c.point.controls);
            self.path.trajectory.p.copy_from_slice(&c.point.parameters);
            self.lagrangian.restore(&c.multipliers);
            self.regularization = c.regularization;
            (self.steps, self.models) = (c.step_evaluations, c.gradient_evaluations);
        }
        let (given, nx) = (states.len(), self.dynamics.dims().nx);
        if given != 0 && given != self.knots.len() * nx {
            return Err(format!(
                "guess_states holds {given} numbers; it takes {nx} for each of {} knots, or none",
                self.knots.len()
            ));
        }
        self.simulate_guess(states)
            .map_err(|e| format!("the guess cannot be simulated: {e}"))
    }

    /// The trajectory of a point, if it can be simulated.
    pub fn simulated(&mut self, point: &Point) -> Option<Trajectory> {
        let start = self
            .problem
            .start(self.dynamics, &point.parameters, &mut self.work);
        let intervals = self.problem.intervals.clone();
        let mut t = Trajectory::new(self.dynamics, intervals, &start.ok()?);
        t.u.copy_from_slice(&point.controls);
        t.p.copy_from_slice(&point.parameters);
        let mut stats = RolloutStats::default();
        let rolled = t.roll(self.dynamics, &mut self.work, &mut stats);
        rolled.is_ok().then_some(t)
    }

    /// What a checkpoint holds of it.
    pub fn checkpoint(&self) -> Checkpoint {
        let t = &self.path.trajectory;
        Checkpoint {
            method: NAME.into(),
            point: Point {
                controls: t.u.clone(),
                parameters: t.p.clone(),
                states: if self.path.has_gaps {
                    t.x.clone()
                } else {
                    vec![]
                },
            },
            multipliers: self.lagrangian.keep(),
            regularization: self.regularization,
            step_evaluations: self.steps,
            gradient_evaluations: self.models,
            ..Checkpoint::default()
        }
    }

    fn simulate_guess(&mut self, states: &[f64]) -> Result<(), StepError> {
        let p = &self.path.trajectory.p;
        let x0 = self.problem.start(self.dynamics, p, &mut self.work)?;
        self.path.trajectory.x[..x0.len()].copy_from_slice(&x0);
        if !states.is_empty() {
            // states that meet the constraints by themselves say nothing of how hard that is
            self.trial.trajectory.x[..x0.len()].copy_from_slice(&x0);
            self.trial.trajectory.u.clone_from(&self.path.trajectory.u);
            self.trial.trajectory.p.clone_from(&self.path.trajectory.p);
            let trial = &mut self.trial;
            let simulated = trial
                .simulate(self.dynamics, &self.knots, &[], &mut self.work)
                .and_then(|()| trial.evaluate(self.dynamics, self.problem, &mut self.work));
            match simulated {
                Ok(()) => self
                    .lagrangian
                    .scale_penalty(self.problem, &trial.evaluation),
                Err(_) => self.trial = self.path.clone(),
            }
        }
        self.path
            .simulate(self.dynamics, &self.knots, states, &mut self.work)?;
        self.steps += self.problem.intervals.len() as u64;
        self.path
            .evaluate(self.dynamics, self.problem, &mut self.work)?;
        self.first_objective = self.path.evaluation.objective;
        self.lagrangian
            .scale_penalty(self.problem, &self.path.evaluation);
        self.refresh()
    }

    /// Model at the path.
    pub fn refresh(&mut self) -> Result<(), StepError> {
        self.models += 1;
        let size = self.lagrangian.value(&self.path).abs();
        self.model.secant.learning = self.promise() < NEAR * size && !self.path.has_gaps;
        self.model.build(
            self.dynamics,
            self.problem,
            &self.lagrangian,
            &self.knots,
            &mut self.path,
            &mut self.work,
        )
    }

    /// Merit of a path.
    fn merit(&self, path: &Path) -> f64 {
        self.lagrangian.value(path) + self.gap_weight * path.gap
    }

    /// More regularization: as much as the bend seen along the last step tells, where one was seen.
    fn match_bend(&mut self, seen: f64) {
        let needed = (seen - self.bend) / self.damping;
        let before = self.regularization;
        self.more_regular();
        if needed.is_finite() && needed > before {
            self.regularization = needed.max(2.0 * before).min(LARGEST);
            self.growth = 1.0;
        }
    }

    fn more_regular(&mut self) {
        self.growth = (self.growth * 2.0).max(2.0);
        self.regularization = (self.regularization * self.growth).max(SMALLEST);
    }

    fn less_regular(&mut self) {
        self.growth = (self.growth / 2.0).min(0.5);
        self.regularization *= self.growth;
        if self.regularization < SMALLEST {
            self.regularization = 0.0;
        }
    }

    /// Runs the backward pass and predicts what its policy gains.
    fn try_plan(&mut self, regularization: f64) -> bool {
        let t = &self.path.trajectory;
        let (model, policy) = (&self.model, &mut self.policy);
        if !self
            .backward
            .run(model, self.problem, t, regularization, policy)
        {
            return false;
        }
        let scale = &self.backward.scale;
        (self.slope, self.bend, self.damping) = model.along(policy, scale, &mut self.scratch);
        true
    }

    /// Policy at the model, with as much regularization as it needs. False where none is enough.
    pub fn plan(&mut self) -> bool {
        let known = self.model.secant.is_known() && self.regularization == 0.0;
        if known && self.learnt.is_due() {
            self.model.secant.used = true;
            if self.try_plan(0.0) && self.slope < 0.0 && self.bend > 0.0 {
                return true;
            }
            self.learnt.failed();
        }
        self.plan_gauss_newton()
    }

    fn plan_gauss_newton(&mut self) -> bool {
        self.model.secant.used = false;
        while !self.try_plan(self.regularization) {
            if self.regularization >= LARGEST {
                return false;
            }
            self.more_regular();
        }
        true
    }

    /// Does the model promise no more than `enough`? Regularization hides what can be gained: the answer is that of a
    /// plan without it, which is kept if it is, and else tried now and then.
    pub fn promises_at_most(&mut self, enough: f64) -> bool {
        if self.promise() > enough {
            return false;
        }
        if self.regularization == 0.0 || self.model.secant.used {
            return true;
        }
        let (regularization, growth) = (self.regularization, self.growth);
        (self.regularization, self.growth) = (0.0, 1.0);
        if !self.plan_gauss_newton() || self.promise() <= enough {
            return true;
        }
        if self.bare.is_due() {
            self.taken_back = Some(regularization);
        } else {
            (self.regularization, self.growth) = (regularization, growth);
            self.plan_gauss_newton();
        }
        false
    }

    /// What the model promises to gain by its whole step.
    pub fn promise(&self) -> f64 {
        -(self.slope + 0.5 * self.bend)
    }

    /// Takes a step, with more regularization until one makes progress.
    pub fn improve(&mut self, stop: &AtomicBool) -> Attempt {
        if self.idle >= IDLE {
            self.idle = 0;
            return Attempt::Stuck;
        }
        loop {
            if self.path.has_gaps {
                // the merit must fall along the step: Nocedal and Wright, (18.36)
                let needed = (self.slope + 0.5 * self.bend.max(0.0)) / (0.5 * self.path.gap);
                if needed.is_finite() {
                    self.gap_weight = self.gap_weight.max(needed);
                }
            }
            let before = self.merit(&self.path);
            let shortest = if self.model.secant.used {
                SHORTEST_BY_SECANT
            } else {
                SHORTEST
            };
            let mut length = if self.path.has_gaps || self.model.secant.used {
                1.0
            } else {
                self.stretch
            };
            let mut seen = f64::INFINITY;
            while length >= shortest {
                if stop.load(Ordering::Relaxed) {
                    return Attempt::Stopped;
                }
                let change = self.change(length, before);
                if self.is_fair(length, change, before) {
                    self.take(length, change, before);
                    return Attempt::Moved(length);
                }
                self.stretch = 1.0;
                seen = self.bend_seen(length, change);
                let best = if seen.is_finite() {
                    -self.merit_slope() / seen
                } else {
                    length
                };
                length = if length > 1.0 {
                    1.0
                } else {
                    best.clamp(shrink(length) * length, 0.5 * length)
                };
            }
            if self.model.secant.used {
                self.learnt.failed();
            } else if let Some(before) = self.taken_back.take() {
                self.bare.failed();
                self.regularization = before;
            } else if self.regularization >= LARGEST {
                return Attempt::Stuck;
            } else {
                self.match_bend(seen);
            }
            if !self.plan_gauss_newton() {
                return Attempt::Stuck;
            }
        }
    }

    /// Slope of the merit along the step.
    fn merit_slope(&self) -> f64 {
        self.slope - self.gap_weight * self.path.gap
    }

    /// How much a step of this length changes the merit; infinite where it cannot be made, as when it is too long.
    fn change(&mut self, length: f64, before: f64) -> f64 {
        let rolled = self.roll(length);
        let change = self.merit(&self.trial) - before;
        match rolled {
            Ok(()) if change.is_finite() => change,
            _ => f64::INFINITY,
        }
    }

    /// Is that a fair part of what the model says?
    fn is_fair(&self, length: f64, change: f64, before: f64) -> bool {
        let predicted = length * self.merit_slope() + 0.5 * length * length * self.bend;
        change <= FAIR * predicted.min(0.0) + 1e-14 * before.abs()
    }

    /// Takes the trial for the path.
    fn take(&mut self, length: f64, change: f64, before: f64) {
        if self.model.secant.learning {
            self.keep_step();
        }
        let bend = self.bend_seen(length, change);
        let smooth = !self.path.has_gaps && self.lagrangian.is_smooth();
        if length >= 1.0 && smooth && change < -1e-10 * before.abs() {
            // where the objective bends less than the model, the next step may be longer; kinks only feign it
            let best = -self.slope / bend;
            self.stretch = if best > 0.0 {
                best.clamp(1.0, LONGEST)
            } else {
                LONGEST
            };
        }
        std::mem::swap(&mut self.path, &mut self.trial);
        let gained = change < -GAIN * before.abs();
        self.idle = if gained { 0 } else { self.idle + 1 };
        if self.taken_back.take().is_some() {
            self.bare.helped();
        }
        if self.model.secant.used {
            self.learnt.helped();
        } else if length >= 0.5 {
            self.less_regular();
        } else if length < 0.1 {
            self.match_bend(bend);
        }
    }

    /// Second derivative of the merit by the length, as a change shows it.
    fn bend_seen(&self, length: f64, change: f64) -> f64 {
        2.0 * (change - length * self.merit_slope()) / (length * length)
    }

    /// The change of every knot from the path to the trial, for the secant.
    fn keep_step(&mut self) {
        let sizes = self.model.sizes;
        let (n, s, w, steps) = (sizes.n, sizes.s(), sizes.w(), sizes.steps);
        let (old, new) = (&self.path.trajectory, &self.trial.trajectory);
        for k in 0..=steps {
            let to = &mut self.model.secant.step[k * w..(k + 1) * w];
            let frame = &self.model.frames[if self.dynamics.has_identity_frames() {
                0
            } else {
                k
            }];
            self.dynamics.difference(
                &self.knots[k],
                old.state(k),
                &old.p,
                frame,
                new.state(k),
                &mut self.work,
                &mut to[..n],
            );
            for (t, &p) in to[n..s].iter_mut().zip(&self.model.free) {
                *t = new.p[p] - old.p[p];
            }
            for ((t, u), o) in to[s..].iter_mut().zip(new.control(k)).zip(old.control(k)) {
                *t = u - o;
            }
        }
    }

    /// Rolls the policy out from the path into the trial: `u + a k + K (x' - x, a dp)`, gaps shrunk by `1 - a`.
    fn roll(&mut self, length: f64) -> Result<(), StepError> {
        let sizes = self.model.sizes;
        let (n, m, steps) = (sizes.n, sizes.m, sizes.steps);
        let nx = self.dynamics.dims().nx;
        let ny = self.dynamics.dims().ny;
        let (old, new) = (&self.path.trajectory, &mut self.trial.trajectory);
        new.p.copy_from_slice(&old.p);
        self.s.fill(0.0);
        for (i, &p) in self.model.free.iter().enumerate() {
            let (l, h) = self.problem.parameter_bounds[p];
            self.s[n + i] = length * self.policy.dp[i];
            new.p[p] = (old.p[p] + self.s[n + i]).max(l).min(h);
        }
        new.x[..nx].copy_from_slice(&old.x[..nx]);
        if sizes.q > 0 {
            let (q, rates) = (&self.problem.coordinates, &self.problem.rates);
            self.dynamics
                .initial(q, rates, &new.p, &mut self.work, &mut new.x[..nx])?;
        }
        let keeps_gaps = self.path.has_gaps && length < 1.0;
        for k in 0..steps {
            let at = &self.knots[k];
            if k > 0 || sizes.q > 0 {
                self.dynamics.difference(
                    at,
                    old.state(k),
                    &old.p,
                    self.model.frame(k),
                    &new.x[k * nx..(k + 1) * nx],
                    &mut self.work,
                    &mut self.dx,
                );
                self.s[..n].copy_from_slice(&self.dx);
            }
            let u = &mut new.u[k * m..(k + 1) * m];
            let feedforward = &self.policy.feedforward[k * m..(k + 1) * m];
            for ((u, o), f) in u.iter_mut().zip(old.control(k)).zip(feedforward) {
                *u = o + length * f;
            }
            super::dense::gemv(m, self.policy.feedback(k), &self.s, u);
            for (u, (l, h)) in u.iter_mut().zip(&self.problem.bounds) {
                *u = u.max(*l).min(*h);
            }
            let (x, next) = new.x[k * nx..].split_at_mut(nx);
            let (before, y) = new.y.split_at_mut(k * ny);
            let y = &mut y[..ny];
            match k {
                0 => y.fill(0.0),
                _ => y.copy_from_slice(&before[(k - 1) * ny..]),
            }
            self.steps += 1;
            let next = &mut next[..nx];
            self.dynamics
                .step(at, x, u, &new.p, &mut self.work, next, y)?;
            if keeps_gaps {
                let end = &mut self.trial.ends[k * nx..(k + 1) * nx];
                end.copy_from_slice(next);
                let gap = &self.model.gap[k * n..(k + 1) * n];
                for (s, g) in self.shift.iter_mut().zip(gap) {
                    *s = -(1.0 - length) * g;
                }
                let after = &self.knots[k + 1];
                let made;
                let frame = if self.dynamics.has_identity_frames() {
                    self.model.frame(k + 1)
                } else {
                    let near = Some(self.model.frame(k + 1));
                    made = self
                        .dynamics
                        .frame(after, end, &new.p, near, &mut self.work)?;
                    &made
                };
                self.dynamics.retract(
                    after,
                    end,
                    &new.p,
                    frame,
                    &self.shift,
                    &mut self.work,
                    next,
                )?;
            }
        }
        self.trial.has_gaps = keeps_gaps;
        self.trial.gap = if keeps_gaps {
            (1.0 - length) * self.path.gap
        } else {
            0.0
        };
        self.trial
            .evaluate(self.dynamics, self.problem, &mut self.work)
    }

    /// Largest violation of a constraint or bound.
    pub fn violation(&self) -> f64 {
        let t = &self.path.trajectory;
        self.problem.violation(&self.path.evaluation, &t.u, &t.p)
    }

    /// Names what is violated by more than `tolerance`, and by how much.
    pub fn violated(&self, tolerance: f64) -> String {
        let (e, t) = (&self.path.evaluation, &self.path.trajectory);
        let list = self.problem.violated(self.dynamics, e, t, tolerance);
        list.join(", ")
    }

    /// The iterate as argmin keeps it: controls, then free parameters, and the merit.
    pub fn report(&self, state: IterationState) -> IterationState {
        let t = &self.path.trajectory;
        let parameters = self.model.free.iter().map(|&i| t.p[i]);
        let all: Vec<f64> = t.u.iter().copied().chain(parameters).collect();
        state
            .param(DVector::from_vec(all))
            .cost(self.merit(&self.path))
    }

    /// Makes model and policy at a trajectory without gaps.
    pub fn return_to(&mut self, t: &Trajectory) -> Result<(), StepError> {
        if *t != self.path.trajectory {
            self.path.trajectory.clone_from(t);
            (self.path.has_gaps, self.path.gap) = (false, 0.0);
            self.path
                .evaluate(self.dynamics, self.problem, &mut self.work)?;
            self.refresh()?;
            self.plan_gauss_newton();
        }
        Ok(())
    }

    /// Feedback by the state.
    pub fn gains(&self) -> Gains {
        let Sizes { steps, n, m, .. } = self.model.sizes;
        let gain = |k| DMatrix::from_column_slice(m, n, &self.policy.feedback(k)[..m * n]);
        Gains {
            feedback: (0..steps).map(gain).collect(),
            frames: self.model.frames.clone(),
        }
    }
}

/// Least part of a step to try next: far from where it ends, what was seen says little.
fn shrink(length: f64) -> f64 {
    if length > 0.2 { 0.5 } else { 0.1 }
}
