//! One iteration of differential dynamic programming: policy, line search along rollouts, model at the new path.

use super::saved::Globalization;
use super::{Gains, Options, Smoothing};
use crate::control::Problem;
use crate::dynamics::{Observe, StepError, stop_requested, unstopped};
use crate::optimize::lq::{
    Decisions, Lagrangian, Line, LineSearch, Model, Path, Policy, Regularization, Riccati, Scratch,
    Sizes, Worker, workers,
};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

// Where no reason is given beside what a constant trades, its value is conventional, not derived.

/// Regularization, relative to the mean curvature, starts here when it is needed, and below it is none: smaller, it
/// takes more backward passes to grow.
const MIN_REGULARIZATION: f64 = 1e-9;
/// No step is expected from more: it is 1e-10 of a gradient step (as in Tassa's iLQG).
const MAX_REGULARIZATION: f64 = 1e10;
/// By what the growth of regularization itself grows and falls (Tassa, Erez, Todorov, IROS 2012).
const REGULARIZATION_FACTOR: f64 = 2.0;
/// Shortest step tried (as in Tassa's iLQG).
const MIN_LENGTH: f64 = 1e-3;
/// The same with learnt curvature, which is given up early: a policy without it costs a backward pass, a trial a rollout.
const MIN_LENGTH_BY_SECANT: f64 = 0.2;
/// Longest step tried. A longer one saves iterations where the model bends too much, and costs a rollout where not.
const MAX_LENGTH: f64 = 2.0;
/// Predicted reduction, relative to the Lagrangian, from which on curvature is learnt: earlier it changes too much from
/// path to path to be of use, later Gauss and Newton's has cost iterations.
const LEARN_BELOW: f64 = 1e-2;
/// Length of a step from which on regularization falls, and below which it grows; between, the model is trusted as it is.
const LONG_STEP: f64 = 0.5;
const SHORT_STEP: f64 = 0.1;
/// Gain, relative to the merit, that tells of curvature: ten thousand times [`ROUNDING`](crate::optimize::lq::ROUNDING).
const TELLING_GAIN: f64 = 1e-10;
/// Sufficient decrease: part of the predicted gain that a step must bring. Stricter than the 1e-4 of Nocedal
/// and Wright, section 3.1: steps are Newton's, of which more is expected than of a slope.
const SUFFICIENT_DECREASE: f64 = 0.05;
/// Smallest part of a step to try next (Dennis and Schnabel 1983, algorithm A6.3.1).
const MIN_CONTRACTION: f64 = 0.1;
/// `1 - rho` of Nocedal and Wright, (18.36): the merit then falls by half of what the gaps make it fall, at least.
const GAP_SHARE: f64 = 0.5;
/// Gain, relative to the merit, that is more than rounding, which a hundred times
/// [`ROUNDING`](crate::optimize::lq::ROUNDING) is safely; and how many steps in a row may do without.
const MIN_GAIN: f64 = 1e-12;
const MAX_STEPS_WITHOUT_GAIN: u32 = 8;
/// Time that a model may take after a stop was requested, for the feedback of what was found before.
const PROMPT: Duration = Duration::from_secs(1);

/// The iterate with everything needed to improve it.
pub(super) struct Engine<'a, D: Observe> {
    pub dynamics: &'a D,
    pub problem: Cow<'a, Problem>,
    pub work: D::Work,
    pub path: Path,
    pub trial: Path,
    pub model: Model,
    pub riccati: Riccati,
    /// One a thread, for the model.
    pub workers: Vec<Worker<D::Work>>,
    pub policy: Policy,
    pub lagrangian: Lagrangian,
    pub(super) scratch: Scratch,
    pub(super) dx: Vec<f64>,
    pub(super) shift: Vec<f64>,
    pub(super) s: Vec<f64>,
    /// Parts of the horizon.
    pub(super) segments: usize,
    /// Where the policy leads by the model, n a knot; nothing where the horizon is in one part.
    pub(super) predicted: Vec<f64>,
    pub search: Globalization,
    /// Predicted reduction of a policy without regularization, where the policy is another.
    unregularized: Option<f64>,
    pub steps: u64,
    pub models: u64,
    /// Objective of the guess.
    pub first_objective: f64,
    /// Why states of the guess are not used.
    pub left_out: Vec<StepError>,
    /// The levels that it goes through.
    pub smoothing: Option<Smoothing>,
    /// Central path's parameter of the derivatives, m^2/s^2; 0: the steps' own.
    pub level: f64,
    /// Steps are softened to the level, too.
    pub forward: bool,
    /// Does the path start elsewhere than the problem, where a rollout's policy is to see it?
    pub start_moved: bool,
    /// Time that the last model took; none where the model is not of the path.
    modelled: Option<Duration>,
}

/// What an iteration changes before its model is made: where a stop ends the iteration there, it was not made at all, so
/// that who goes on makes the same.
pub(super) struct Mark {
    search: Globalization,
    used: bool,
    learning: bool,
    policy: Policy,
    scale: Vec<f64>,
}

/// How an attempt to improve ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Attempt {
    /// A step of this length (1: the model's whole one) was taken.
    Moved(f64),
    /// No regularization gave a step that makes progress.
    Failed,
    /// Asked to stop; what it planned on the way is to be undone.
    Stopped,
}

impl<'a, D: Observe> Engine<'a, D> {
    pub fn new(dynamics: &'a D, problem: Cow<'a, Problem>, options: &Options) -> Self {
        let mut work = dynamics.work();
        let forward =
            options.smoothing.is_some_and(|s| s.forward) && dynamics.soften(&mut work, 0.0);
        let mut path = Path::new(dynamics, &problem, &mut work);
        let controls = problem.with_bounds(&problem.guess);
        for (u, (g, (l, h))) in path.trajectory.u.iter_mut().zip(controls) {
            *u = g.max(*l).min(*h);
        }
        for (p, (l, h)) in path.trajectory.p.iter_mut().zip(&problem.parameter_bounds) {
            if l < h {
                *p = p.max(*l).min(*h);
            }
        }
        path.retime(&problem);
        let model = Model::new(dynamics, &problem);
        Self {
            lagrangian: Lagrangian::new(&problem, &path.evaluation, options.penalty),
            trial: path.clone(),
            riccati: Riccati::new(&model.sizes),
            workers: workers(dynamics, &problem, &model.sizes),
            policy: Policy::new(&model.sizes),
            scratch: Scratch::new(&model.sizes),
            dx: vec![0.0; model.sizes.n],
            shift: vec![0.0; model.sizes.n],
            s: vec![0.0; model.sizes.s()],
            segments: options.segments.map_or(1, NonZeroUsize::get),
            predicted: vec![],
            model,
            work,
            path,
            dynamics,
            problem,
            search: Globalization::default(),
            unregularized: None,
            steps: 0,
            models: 0,
            first_objective: 0.0,
            left_out: vec![],
            smoothing: options.smoothing,
            level: options.smoothing.map_or(0.0, |s| s.start),
            forward,
            start_moved: false,
            modelled: None,
        }
    }

    /// What [`Engine::return_to_mark`] needs.
    pub fn mark(&self) -> Mark {
        Mark {
            search: self.search,
            used: self.model.secant.used,
            learning: self.model.secant.learning,
            policy: self.policy.clone(),
            scale: self.riccati.scale.clone(),
        }
    }

    /// Returns to the path before the last step.
    pub fn step_back(&mut self) {
        std::mem::swap(&mut self.path, &mut self.trial);
        self.modelled = None;
    }

    /// Plans as at the mark.
    pub fn return_to_mark(&mut self, mark: Mark) {
        self.search = mark.search;
        self.model.secant.used = mark.used;
        self.model.secant.learning = mark.learning;
        self.policy = mark.policy;
        self.riccati.scale = mark.scale;
    }

    /// Model at the path.
    pub fn update_model(&mut self) -> Result<(), StepError> {
        self.models += 1;
        self.model.secant.learning = self.learns();
        self.build()
    }

    /// Model at the path, of which multipliers and penalty alone changed since it was made.
    pub fn reweigh_model(&mut self) -> Result<(), StepError> {
        let Some(took) = self.modelled.take() else {
            return self.update_model();
        };
        self.model.secant.learning = self.learns();
        self.model.reweigh(
            (self.dynamics, &self.problem),
            &self.lagrangian,
            &mut self.path,
            &mut self.workers,
        )?;
        self.modelled = Some(took);
        Ok(())
    }

    /// Is curvature to be learnt of the next model?
    fn learns(&self) -> bool {
        let size = self.lagrangian.value(&self.path).abs();
        self.predicted_reduction() < LEARN_BELOW * size
            && !(self.path.has_gaps || self.has_segments())
    }

    /// Model at the path, which learns no other than it did.
    pub fn build(&mut self) -> Result<(), StepError> {
        self.modelled = None;
        let start = Instant::now();
        self.model.build(
            self.dynamics,
            &self.problem,
            &self.lagrangian,
            &mut self.path,
            &mut self.workers,
        )?;
        self.modelled = Some(start.elapsed());
        if self.model.certificate.kappa == 0.0 {
            // nothing to relax
            self.set_level(0.0);
        }
        Ok(())
    }

    /// Merit of a path.
    fn merit(&self, path: &Path) -> f64 {
        self.lagrangian.value(path) + self.search.gap_weight * path.gap
    }

    /// More regularization: as much as the curvature observed along the last step tells, where it was observed.
    pub fn regularize_to_curvature(&mut self, observed: f64) {
        let needed = (observed - self.search.curvature) / self.search.damping;
        let before = self.search.regularization;
        self.increase_regularization();
        if needed.is_finite() && needed > before && !self.path.has_gaps {
            self.search.regularization = needed
                .max(REGULARIZATION_FACTOR * before)
                .min(MAX_REGULARIZATION);
            self.search.growth = 1.0;
        }
    }

    fn increase_regularization(&mut self) {
        self.search.growth =
            (self.search.growth * REGULARIZATION_FACTOR).max(REGULARIZATION_FACTOR);
        self.search.regularization =
            (self.search.regularization * self.search.growth).max(MIN_REGULARIZATION);
    }

    /// None of it, as at the beginning.
    pub fn reset_regularization(&mut self) {
        (self.search.regularization, self.search.growth) = (0.0, 1.0);
    }

    /// Is there no more to have?
    pub fn is_fully_regularized(&self) -> bool {
        self.search.regularization >= MAX_REGULARIZATION
    }

    fn decrease_regularization(&mut self) {
        self.search.growth =
            (self.search.growth / REGULARIZATION_FACTOR).min(1.0 / REGULARIZATION_FACTOR);
        self.search.regularization *= self.search.growth;
        if self.search.regularization < MIN_REGULARIZATION {
            self.search.regularization = 0.0;
        }
    }

    /// Runs the backward pass and predicts what its policy gains.
    fn backward_pass(&mut self, regularization: f64) -> bool {
        self.unregularized = None;
        // gaps are closed by changes of the states, which are then not held back
        let of_states = if self.path.has_gaps {
            0.0
        } else {
            regularization
        };
        let by = Regularization {
            states: of_states,
            decisions: regularization,
            own: 0.0,
        };
        let within = Decisions::Within(&self.problem, &self.path.trajectory);
        let (model, policy) = (&self.model, &mut self.policy);
        if !self.riccati.run(model, &model.l, &within, by, policy) {
            return false;
        }
        let scale = &self.riccati.scale;
        (
            self.search.slope,
            self.search.curvature,
            self.search.damping,
        ) = model.directional_derivatives(policy, scale, &mut self.scratch);
        true
    }

    /// Policy at the model, with as much regularization as it needs. False where none is enough.
    pub fn find_policy(&mut self) -> bool {
        let learnt = self.model.secant.is_learnt() && self.search.regularization == 0.0;
        if learnt && self.search.secant_backoff.is_due() {
            self.model.secant.used = true;
            if self.backward_pass(0.0) && self.search.slope < 0.0 && self.search.curvature > 0.0 {
                return true;
            }
            self.search.secant_backoff.failed();
        }
        self.find_gauss_newton_policy()
    }

    pub fn find_gauss_newton_policy(&mut self) -> bool {
        self.model.secant.used = false;
        while !self.backward_pass(self.search.regularization) {
            if self.search.regularization >= MAX_REGULARIZATION || stop_requested() {
                return false;
            }
            self.increase_regularization();
        }
        true
    }

    /// Does the model predict to gain no more than `enough`? Regularization hides what can be gained: the answer is that of a
    /// policy without it, which is kept if it is, and else tried now and then.
    pub fn predicts_at_most(&mut self, enough: f64) -> bool {
        if self.predicted_reduction() > enough {
            return false;
        }
        if self.search.regularization == 0.0 || self.model.secant.used {
            return true;
        }
        let (regularization, growth) = (self.search.regularization, self.search.growth);
        (self.search.regularization, self.search.growth) = (0.0, 1.0);
        // what is no policy because of a stop would promise nothing
        if !unstopped(|| self.find_gauss_newton_policy()) || self.predicted_reduction() <= enough {
            return true;
        }
        let unregularized = self.predicted_reduction();
        if self.search.unregularized_backoff.is_due() {
            self.search.suspended_regularization = Some(regularization);
        } else {
            (self.search.regularization, self.search.growth) = (regularization, growth);
            unstopped(|| self.find_gauss_newton_policy());
        }
        self.unregularized = Some(unregularized);
        false
    }

    /// What can be gained: regularization hides it.
    pub fn attainable_reduction(&self) -> f64 {
        self.unregularized
            .unwrap_or_else(|| self.predicted_reduction())
    }

    /// What the model predicts to gain by its whole step.
    pub fn predicted_reduction(&self) -> f64 {
        -(self.search.slope + 0.5 * self.search.curvature)
    }

    /// Takes a step, with more regularization until one makes progress.
    pub fn improve(&mut self) -> Attempt {
        if self.search.steps_without_gain >= MAX_STEPS_WITHOUT_GAIN {
            self.search.steps_without_gain = 0;
            return Attempt::Failed;
        }
        let globalization = self.search;
        for tries in 1.. {
            let observed = match self.search_along_policy() {
                LineSearch::Accepted(length, _) => return Attempt::Moved(length),
                LineSearch::Failed(curvature) => curvature,
                LineSearch::Stopped => return Attempt::Stopped,
            };
            if self.model.secant.used {
                self.search.secant_backoff.failed();
            } else if let Some(before) = self.search.suspended_regularization.take() {
                self.search.unregularized_backoff.failed();
                self.search.regularization = before;
            } else if self.search.regularization >= MAX_REGULARIZATION {
                return Attempt::Failed;
            } else {
                self.regularize_to_curvature(observed);
            }
            if self.policies_are_exhausted(tries) {
                self.search = globalization;
                return Attempt::Failed;
            }
            if !self.find_gauss_newton_policy() {
                return match stop_requested() {
                    true => Attempt::Stopped,
                    false => Attempt::Failed,
                };
            }
        }
        Attempt::Failed
    }

    /// Takes a step along the policy if one of its lengths makes progress.
    pub fn search_along_policy(&mut self) -> LineSearch {
        if self.path.has_gaps {
            // the merit must fall along the step: Nocedal and Wright, (18.36)
            let needed = (self.search.slope + 0.5 * self.search.curvature.max(0.0))
                / (GAP_SHARE * self.path.gap);
            if needed.is_finite() {
                self.search.gap_weight = self.search.gap_weight.max(needed);
            }
        }
        self.predict();
        let before = self.merit(&self.path);
        let shortest = if self.model.secant.used {
            MIN_LENGTH_BY_SECANT
        } else {
            MIN_LENGTH
        };
        let first = if self.path.has_gaps || self.model.secant.used {
            1.0
        } else {
            self.search.first_length
        };
        let line = self.line(before);
        let found = line.search(first, shortest, |length| self.change(length, before));
        match found {
            LineSearch::Accepted(length, change) => {
                if length < first {
                    self.search.first_length = 1.0;
                }
                self.accept(length, change, before);
            }
            LineSearch::Failed(_) => self.search.first_length = 1.0,
            LineSearch::Stopped => (),
        }
        found
    }

    /// The merit along the step.
    fn line(&self, before: f64) -> Line {
        Line {
            before,
            slope: self.search.slope - self.search.gap_weight * self.path.gap,
            curvature: self.search.curvature,
            sufficient_decrease: SUFFICIENT_DECREASE,
            min_contraction: MIN_CONTRACTION,
        }
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

    /// Takes the trial for the path.
    fn accept(&mut self, length: f64, change: f64, before: f64) {
        if self.model.secant.learning {
            self.keep_step();
        }
        let observed = self.line(before).observed_curvature(length, change);
        let smooth = !self.path.has_gaps && self.lagrangian.is_smooth();
        if length >= 1.0 && smooth && change < -TELLING_GAIN * before.abs() {
            // where the objective bends less than the model, the next step may be longer; kinks only feign it
            let best = -self.search.slope / observed;
            self.search.first_length = if best > 0.0 {
                best.clamp(1.0, MAX_LENGTH)
            } else {
                MAX_LENGTH
            };
        }
        self.compare_gain(-change, before);
        std::mem::swap(&mut self.path, &mut self.trial);
        self.modelled = None;
        let gained = change < -MIN_GAIN * before.abs();
        self.search.steps_without_gain = if gained {
            0
        } else {
            self.search.steps_without_gain + 1
        };
        if self.search.suspended_regularization.take().is_some() {
            self.search.unregularized_backoff.helped();
        }
        if self.model.secant.used {
            self.search.secant_backoff.helped();
        } else if length >= LONG_STEP {
            self.decrease_regularization();
        } else if length < SHORT_STEP {
            self.regularize_to_curvature(observed);
        }
    }

    /// Returns to the path before the last step, for shorter ones.
    pub fn undo_step(&mut self) -> Result<(), StepError> {
        std::mem::swap(&mut self.path, &mut self.trial);
        self.search.steps_without_gain += 1;
        self.regularize_to_curvature(f64::INFINITY);
        self.model.secant.reset();
        self.build()
    }

    /// The change of every knot from the path to the trial, for the secant.
    fn keep_step(&mut self) {
        let sizes = self.model.sizes;
        let (n, s, w, steps) = (sizes.n, sizes.s(), sizes.w(), sizes.steps);
        let (old, new) = (&self.path.trajectory, &self.trial.trajectory);
        for k in 0..=steps {
            let frame = &self.model.frames[self.model.frame_index(k)];
            let to = &mut self.model.secant.step[k * w..(k + 1) * w];
            self.dynamics.difference(
                &self.path.knots[k],
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

    /// Makes model and policy at a trajectory without gaps, with the derivatives of a level. False where that would keep a
    /// request to stop waiting.
    pub fn return_to(
        &mut self,
        t: &Trajectory,
        level: f64,
        soft: bool,
        hurried: bool,
    ) -> Result<bool, StepError> {
        let prompt = self.modelled.is_some_and(|last| last < PROMPT);
        let stays = *t == self.path.trajectory && (level, soft) == (self.level, self.is_soft());
        if stays && self.modelled.is_some() {
            return Ok(true);
        }
        self.forward = soft;
        self.set_level(level);
        self.modelled = None;
        self.path.trajectory.clone_from(t);
        self.path.retime(&self.problem);
        (self.path.has_gaps, self.path.gap) = (false, 0.0);
        self.path
            .evaluate(self.dynamics, &self.problem, &mut self.work)?;
        if hurried && !prompt {
            return Ok(false);
        }
        self.update_model()?;
        self.search.regularization = 0.0;
        Ok(self.find_gauss_newton_policy())
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

/// Feedback about a solution with these multipliers of its constraints, by Gauss and Newton's curvature and the penalty that
/// a solve from `guess` would begin with; none where the curvature is of no use.
pub fn feedback<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    guess: &Trajectory,
    t: &Trajectory,
    multipliers: &[f64],
) -> Result<Option<Gains>, StepError> {
    let mut e = Engine::new(dynamics, Cow::Borrowed(problem), &Options::default());
    e.return_to(guess, 0.0, false, true)?;
    e.lagrangian.scale_penalty(problem, &e.path.evaluation);
    e.lagrangian.multipliers.copy_from_slice(multipliers);
    Ok(e.return_to(t, 0.0, false, false)?.then(|| e.gains()))
}
