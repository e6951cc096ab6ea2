//! Receding-horizon control: a window of fixed length moves along with the system, and at every tick the plan of the window
//! before, shifted, is improved from the state that is met.
//!
//! - **Shift.** Controls, states, feedback and multipliers move by the steps that passed; behind the plan's end its last
//!   control holds on. What is asked at the end stays there.
//! - **Start.** The shifted plan is rolled out from the state that is met, under its own feedback
//!   `u_k + K_k (x' - x_k)`: unstable systems stay near it, which the open loop would leave within a window.
//! - **Iterations.** A fixed number, one by default: a linear-quadratic model, a backward pass, and a line search along
//!   rollouts, as in [`ddp`](super), whose engine it is. The iteration goes on from tick to tick instead of being brought to its
//!   end at each (real-time iteration: Diehl, Bock, Schloeder, *SIAM J. Control Optim.* 43, 2005; Tassa, Erez, Todorov, IROS
//!   2012). Constraints enter by an augmented Lagrangian at a constant penalty, its multipliers updated after every
//!   iteration. Curvature is Gauss and Newton's alone.
//! - **Between ticks** the plan's feedback serves, see [`RecedingHorizon::control`].
//!
//! The work of a tick is bounded: of each iteration one model, and at most as many backward passes and rollouts as
//! regularization and line search have levels. A rollout that cannot be made is a value, see [`Tick::failure`]; what the window
//! leaves free at its end, the last control may drive there, so that rates want a cost at the end.
//!
//! From the third tick on it allocates nothing on trees of joints and users' formulas, as long as states are met at knots of the
//! run ([`Knot::h_prev`] is an interval); frames of loops and at instants, linear models of contacts, steps that fail, and
//! the queue of several threads do allocate. The result does not depend on the number of threads.
//!
//! ```
//! # use least_action::control::{Cost, Problem, When};
//! # use least_action::dynamics::{Explicit, Knot, Observe, Real, Smooth, Step};
//! use least_action::optimize::{RecedingHorizon, receding};
//! # /// x = (angle from hanging, its rate), u = torque.
//! # struct Pendulum;
//! # impl Smooth for Pendulum {
//! #     fn states(&self) -> usize { 2 }
//! #     fn controls(&self) -> usize { 1 }
//! #     fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
//! #         next[1] = x[1] + h * (u[0] - x[0].sin() * 9.81);
//! #         next[0] = x[0] + h * next[1];
//! #     }
//! # }
//! # let system = Explicit::new(Pendulum);
//! # let mut problem = Problem::new(&system, vec![0.05; 20], vec![0.0]);
//! # problem.bounds = vec![(-12.0, 12.0)];
//! # for (name, target, weight, when) in
//! #     [("x0", 3.14, 10.0, When::Running), ("u0", 0.0, 0.01, When::Running), ("x0", 3.14, 10.0, When::End)]
//! # {
//! #     let quantity = system.quantity(name).ok_or("no such quantity")?;
//! #     problem.costs.push(Cost::square(quantity, target, weight, when));
//! # }
//! // the problem's horizon is the window
//! let mut controller = RecedingHorizon::new(&system, problem, receding::Options::default())?;
//! let (mut work, mut x, mut next) = (system.work(), vec![0.0, 0.0], vec![0.0, 0.0]);
//! let mut at = Knot { k: 0, t: 0.0, h_prev: 0.0, h: 0.05 };
//! for _ in 0..80 {
//!     let tick = controller.tick(&at, &x);
//!     assert!(tick.failure.is_none());
//!     let mut u = [0.0];
//!     controller.control(&at, &x, &mut u);
//!     system.step(&at, &x, &u, &[], &mut work, &mut next, &mut [])?; // the system itself, or its simulation
//!     std::mem::swap(&mut x, &mut next);
//!     at = Knot { k: at.k + 1, t: at.t + at.h, h_prev: at.h, h: at.h };
//! }
//! assert!((x[0] - 3.14).abs() < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::Options as DdpOptions;
use super::engine::Engine;
use crate::control::Problem;
use crate::dynamics::{Knot, Observe, StepError};
use crate::optimize::lq::{LineSearch, ROUNDING, dense};
use crate::rollout::{RolloutStats, Trajectory};
use argmin::core::Error;
use nalgebra::DMatrixView;
use std::borrow::Cow;

/// Relative difference of intervals that count as equal: far above the rounding of times, far below what tells.
const SAME_INTERVAL: f64 = 1e-9;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Iterations a tick.
    pub iterations: u64,
    /// Penalty weight of the constraints, relative to the objective by half the square of the violation at the guess.
    pub penalty: f64,
    /// Central path's parameter that derivatives through contact are taken at, m^2/s^2; 0: the steps' own.
    pub smoothing: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            iterations: 1,
            penalty: 0.1,
            smoothing: 0.0,
        }
    }
}

/// What a tick did.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Objective of the window, without penalties; infinite where the plan could not be simulated.
    pub objective: f64,
    /// Largest violation of a constraint or bound of the window.
    pub violation: f64,
    /// Reduction that the model promised before the last step, relative to the objective and half the penalty times the square
    /// of the violation: how far the plan was from the best one.
    pub optimality: f64,
    /// Length of the last step; 0 where none was made: the model promised nothing more, or no length gained what it promised, and
    /// the plan stands.
    pub step_length: f64,
    /// The step that failed, if one did: then the plan before, shifted, goes on, with its feedback.
    pub failure: Option<StepError>,
}

/// A controller whose horizon recedes; see the [module](self).
pub struct RecedingHorizon<'a, D: Observe> {
    engine: Engine<'a, D>,
    options: Options,
    /// What the problem's profiles are cut from, a number a knot of the run; nothing where they stay.
    course: Vec<Vec<f64>>,
    /// Where the window starts; its `k` is of the run.
    at: Knot,
    has_plan: bool,
    change: Vec<f64>,
    /// Change of the joint chart, and of the parameters, which is none.
    s: Vec<f64>,
}

impl<'a, D: Observe> RecedingHorizon<'a, D> {
    /// Of a system and a problem whose horizon is the window; its guess is the first plan, and what it says of the start is
    /// replaced at every tick. A longer first solve is [`super::super::Solve`]'s, or several ticks at the same knot.
    ///
    /// # Errors
    /// When the problem does not fit the system ([`Problem::check`]), its intervals differ or are decisions, or a setting has no
    /// meaning.
    pub fn new(dynamics: &'a D, mut problem: Problem, options: Options) -> Result<Self, Error> {
        let Some(&h) = problem.intervals.first() else {
            return Err(Error::msg("the window has no step; give at least one"));
        };
        // the start is what ticks say; here it only has to be one
        let nx = dynamics.dims().nx;
        (problem.state, problem.before) = (Some(vec![0.0; nx]), 0.0);
        problem.guess_states.clear();
        problem.check(dynamics)?;
        let differ = |other: &f64| (other - h).abs() > SAME_INTERVAL * h;
        if !problem.durations.is_empty() || problem.intervals.iter().any(differ) {
            return Err(Error::msg(
                "a window that is shifted by steps needs equal intervals, and none that is a decision",
            ));
        }
        if problem.episodes.is_some() {
            return Err(Error::msg(
                "a window starts where a tick says, and episodes draw their starts; leave them out",
            ));
        }
        if options.iterations == 0 {
            return Err(Error::msg("iterations is 0; expected at least 1"));
        }
        if !(options.penalty > 0.0 && options.penalty.is_finite()) {
            let got = options.penalty;
            let why = format!("penalty is {got}; expected a positive number");
            return Err(Error::msg(why));
        }
        if !(options.smoothing >= 0.0 && options.smoothing.is_finite()) {
            let got = options.smoothing;
            let why = format!("smoothing is {got}; expected a positive number, or 0");
            return Err(Error::msg(why));
        }
        let of_ddp = DdpOptions {
            penalty: options.penalty,
            smoothing: None,
            ..DdpOptions::default()
        };
        let engine = Engine::new(dynamics, Cow::Owned(problem), &of_ddp);
        let (ndx, s) = (engine.model.sizes.n, engine.model.sizes.s());
        Ok(Self {
            engine,
            options,
            course: vec![],
            at: Knot {
                k: 0,
                t: 0.0,
                h_prev: 0.0,
                h,
            },
            has_plan: false,
            change: vec![0.0; ndx],
            s: vec![0.0; s],
        })
    }

    /// Targets and limits that vary along the whole run: for each of the problem's profiles a number a knot from the run's first
    /// one on, the last of which holds on. Ticks take the window's from them.
    ///
    /// # Errors
    /// When they are not as many as the problem's, one has no number, or one that is not finite.
    pub fn with_profiles(mut self, profiles: Vec<Vec<f64>>) -> Result<Self, Error> {
        let (got, own) = (profiles.len(), self.engine.problem.profiles.len());
        if got != own {
            let why = format!("{got} profiles; give {own}, one for each of the problem");
            return Err(Error::msg(why));
        }
        let is_wrong = |p: &Vec<f64>| p.is_empty() || p.iter().any(|v| !v.is_finite());
        if let Some(i) = profiles.iter().position(is_wrong) {
            let why = format!("profile {i} has no number, or one that is not finite");
            return Err(Error::msg(why));
        }
        self.course = profiles;
        Ok(self)
    }

    /// The window's profile with this place in [`Problem::profiles`], a number a knot, for those who set it before each tick.
    pub fn profile_mut(&mut self, profile: usize) -> &mut [f64] {
        &mut self.engine.problem.to_mut().profiles[profile]
    }

    /// Sets the target of a cost, by its place in the problem.
    pub fn set_target(&mut self, cost: usize, target: f64) {
        self.engine.problem.to_mut().costs[cost].target = target;
    }

    /// Sets the weight of a cost, by its place in the problem.
    pub fn set_weight(&mut self, cost: usize, weight: f64) {
        self.engine.problem.to_mut().costs[cost].weight = weight;
    }

    /// Sets what a constraint compares its quantity with, by its place in the problem.
    pub fn set_limit(&mut self, constraint: usize, value: f64) {
        self.engine.problem.to_mut().constraints[constraint].value = value;
    }

    /// Sets the smallest and largest value of a control, the one not above the other.
    pub fn set_bounds(&mut self, control: usize, bounds: (f64, f64)) {
        self.engine.problem.to_mut().bounds[control] = bounds;
    }

    /// Sets what the model holds a parameter of the system at.
    pub fn set_parameter(&mut self, parameter: usize, value: f64) {
        let problem = self.engine.problem.to_mut();
        problem.parameters[parameter] = value;
        let (lower, upper) = &mut problem.parameter_bounds[parameter];
        if lower == upper {
            (*lower, *upper) = (value, value);
        }
        self.engine.path.trajectory.p[parameter] = value;
    }

    /// Plans from the state `x` that is met at a knot of the run: `at.k` counts the steps from its start, `at.h_prev` is the length
    /// of the interval that the state's velocities are of (0 where they are of the instant), `at.t` the time. The plan is shifted
    /// by the steps since the tick before; at the same knot it is improved further, and one before that starts anew with the last
    /// controls. A state of another length than the system's fails.
    pub fn tick(&mut self, at: &Knot, x: &[f64]) -> Tick {
        let mut tick = Tick {
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            optimality: f64::INFINITY,
            step_length: 0.0,
            failure: None,
        };
        if let Err(failure) = self.meet(at, x).and_then(|()| self.improve(&mut tick)) {
            tick.failure = Some(failure);
            return tick;
        }
        let e = &self.engine;
        tick.objective = e.path.evaluation.objective;
        tick.violation = e.path.violation(&e.problem);
        tick
    }

    /// Moves the window to a knot, and the plan to the state met there.
    fn meet(&mut self, at: &Knot, x: &[f64]) -> Result<(), StepError> {
        let steps = at.k.checked_sub(self.at.k);
        self.has_plan &= steps.is_some();
        let e = &mut self.engine;
        let nx = e.dynamics.dims().nx;
        if x.len() != nx {
            let message = format!("{} numbers; give {nx}", x.len());
            return Err(StepError::of_size("the state", message));
        }
        let passed = steps.unwrap_or(0).min(e.model.sizes.steps);
        // velocities of other intervals cannot be compared with the plan's
        let plan = e.path.knots[passed].h_prev;
        let comparable = is_comparable(e.dynamics, plan, at);
        if self.has_plan && passed > 0 {
            e.shift(passed);
        }
        self.at = *at;
        for path in [&mut e.path, &mut e.trial] {
            path.begin_at(at.t, at.h_prev);
        }
        let problem = e.problem.to_mut();
        if let Some(state) = &mut problem.state {
            state.copy_from_slice(x);
        }
        problem.before = at.h_prev;
        for (own, all) in problem.profiles.iter_mut().zip(&self.course) {
            for (j, own) in own.iter_mut().enumerate() {
                *own = all[(at.k + j).min(all.len() - 1)];
            }
        }
        e.forget_search();
        if self.has_plan {
            e.start_moved = comparable;
            let rolled = e.roll(0.0);
            e.start_moved = false;
            rolled?;
            std::mem::swap(&mut e.path, &mut e.trial);
            return Ok(());
        }
        let t = &mut e.path.trajectory;
        t.x[..nx].copy_from_slice(x);
        t.roll(e.dynamics, &mut e.work, &mut RolloutStats::default())?;
        e.path.evaluate(e.dynamics, &e.problem, &mut e.work)?;
        e.lagrangian.scale_penalty(&e.problem, &e.path.evaluation);
        e.policy.clear();
        self.has_plan = true;
        Ok(())
    }

    /// Makes the iterations of a tick.
    fn improve(&mut self, tick: &mut Tick) -> Result<(), StepError> {
        let e = &mut self.engine;
        if self.options.smoothing > 0.0 {
            e.set_level(self.options.smoothing);
        }
        for _ in 0..self.options.iterations {
            e.model.secant.learning = false;
            e.build()?;
            tick.step_length = 0.0;
            if !e.find_gauss_newton_policy() {
                // what a pass left that was not ended is no feedback
                e.policy.forget();
                e.reset_regularization();
            } else {
                let gain = e.predicted_reduction();
                let violation = e.path.violation(&e.problem);
                let size = e.path.evaluation.objective.abs()
                    + 0.5 * e.lagrangian.penalty * violation * violation;
                tick.optimality = gain.abs() / size.max(f64::MIN_POSITIVE);
                // where nothing is to be gained, a failure to gain it says nothing
                if gain > ROUNDING * e.lagrangian.value(&e.path).abs() {
                    match e.search_along_policy() {
                        LineSearch::Accepted(length, _) => tick.step_length = length,
                        LineSearch::Failed(observed) => e.regularize_to_curvature(observed),
                        LineSearch::Stopped => (),
                    }
                    if e.is_fully_regularized() {
                        e.reset_regularization();
                    }
                } else {
                    // regularization that hides what could be gained has served
                    e.reset_regularization();
                }
            }
            e.lagrangian.update(&e.path, 1.0);
        }
        Ok(())
    }

    /// The control at a knot of the run from the last tick's on, for the state `x` met there: the plan's, and its feedback on the
    /// change from the plan's state, within the bounds. Behind the plan's end, and where velocities are of another interval
    /// than the plan's, it is the plan's control alone; before the first plan, that of the guess.
    pub fn control(&mut self, at: &Knot, x: &[f64], out: &mut [f64]) {
        let e = &mut self.engine;
        let (steps, n) = (e.model.sizes.steps, e.model.sizes.n);
        let j = at.k.saturating_sub(self.at.k);
        let t = &e.path.trajectory;
        out.copy_from_slice(t.control(j));
        let plan = &e.path.knots[j.min(steps)];
        if !self.has_plan || j >= steps || !is_comparable(e.dynamics, plan.h_prev, at) {
            return;
        }
        let frame = e.model.frame(j);
        e.dynamics.difference(
            plan,
            t.state(j),
            &t.p,
            frame,
            x,
            &mut e.work,
            &mut self.change,
        );
        if self.change.iter().all(|c| c.is_finite()) {
            self.s[..n].copy_from_slice(&self.change);
            dense::gemv(out.len(), e.policy.feedback(j), &self.s, out);
        }
        for (u, (l, h)) in out.iter_mut().zip(&e.problem.bounds) {
            *u = u.max(*l).min(*h);
        }
    }

    /// The plan; its first knot is that of the last tick.
    pub fn plan(&self) -> &Trajectory {
        &self.engine.path.trajectory
    }

    /// The plan's feedback `K`, nu x ndx, `k` steps behind the last tick's knot: `u = u_k + K d`, with `d` the change of the joint
    /// chart that leads from the plan's state to the present one; rows of controls at a bound are zero.
    pub fn feedback(&self, k: usize) -> DMatrixView<'_, f64> {
        let sizes = &self.engine.model.sizes;
        let (m, n) = (sizes.m, sizes.n);
        DMatrixView::from_slice(&self.engine.policy.feedback(k)[..m * n], m, n)
    }

    /// The problem of the present window.
    pub fn problem(&self) -> &Problem {
        &self.engine.problem
    }
}

/// Are velocities at a knot of the same interval as the plan's there, so that their states can be compared?
fn is_comparable<D: Observe>(dynamics: &D, plan: f64, at: &Knot) -> bool {
    let same = (at.h_prev - plan).abs() <= SAME_INTERVAL * plan.abs();
    same || dynamics.has_identity_frames()
}

impl<D: Observe> Engine<'_, D> {
    /// The path, its policy and its multipliers become those of the knots so many steps later.
    fn shift(&mut self, passed: usize) {
        let sizes = self.model.sizes;
        let (m, steps) = (sizes.m, sizes.steps);
        let nx = self.dynamics.dims().nx;
        let t = &mut self.path.trajectory;
        t.x.copy_within(passed * nx.., 0);
        for k in steps - passed + 1..=steps {
            t.x.copy_within((k - 1) * nx..k * nx, k * nx);
        }
        let last = (steps - 1) * m;
        t.u.copy_within(passed * m.., 0);
        for k in steps - passed..steps {
            // the last control is where it was
            t.u.copy_within(last..last + m, k * m);
        }
        self.policy.shift(passed, &sizes);
        self.lagrangian.shift(&self.path.evaluation.layout, passed);
        if self.model.frames.len() > steps {
            self.model.frames.rotate_left(passed);
        }
    }

    /// Begins a tick: what steps of the tick before told of their lengths is of another problem.
    fn forget_search(&mut self) {
        self.search.first_length = 1.0;
        (self.search.steps_without_gain, self.search.slow_steps) = (0, 0);
    }
}
