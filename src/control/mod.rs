//! What is wanted of a trajectory: costs, constraints, bounds, parameters. Knows only the seam.
//!
//! The objective is the sum of `weight/2 (quantity - target)^2`, or of another [`Form`] of the distance from the target,
//! multiplied by the share of the knot ([`Quadrature`]) for costs along the way, taken once for those at the end or at one
//! knot. Intervals may be decisions ([`Duration`]).

mod check;
mod closed_loop;
mod cost;
mod disturbed;
mod environment;
mod episodes;
mod extended;
mod layout;
mod network;
mod objective;
mod policy;
mod scenarios;
mod schedule;
mod tracking;

pub use check::{ProblemError, ProblemPart};
pub use closed_loop::{ClosedLoop, ClosedLoopWork};
pub use cost::{Constraint, Cost, Form, Quadrature, Relation, Share, Term, When};
pub use disturbed::Disturbed;
pub use environment::{Adjoints, Environment, Episode, Outcome, Pulled};
pub use episodes::{Distribution, Draw, Drawn, End, Ended, Episodes};
pub use extended::{Extended, ExtendedWork, Formula, StartNumber, Sum, times};
pub use layout::{Evaluation, Layout, Stage, Timing};
pub use network::{Input, Network};
pub use objective::{Batch, Objective, ObjectiveGradient, ObjectiveWork, Point};
pub use policy::{
    Law, LinearFeedback, Loop, Open, Pd, Planned, Policy, PolicyError, PolicyRows, Signal,
};

pub use scenarios::{Scenarios, ScenariosError, ScenariosWork};
pub use schedule::{Schedule, ScheduleKnot};
pub use tracking::{Reference, Track, Tracking, Tunable};

use crate::dynamics::{Dynamics, Inputs, Knot, Observe, Start, StepError, stop_requested};
use crate::rollout::{Sweep, Trajectory};
use nalgebra::{DMatrix, DVectorView};

/// Half the square of a guess's violation, at least, that scales the penalty: a guess that all but meets its constraints
/// says nothing of their weight. And the largest scale, and the smallest.
const LEAST_SQUARE: f64 = 1e-2;
const MOST_SCALE: f64 = 1e6;

/// A trajectory wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Lengths of the intervals, s.
    pub intervals: Vec<f64>,
    /// Parts of the horizon whose durations are parameters; their intervals above say in what proportions they share them.
    pub durations: Vec<Duration>,
    /// The state at the start, `nx`, as one that is met in motion. Without one it follows from coordinates and rates.
    pub state: Option<Vec<f64>>,
    /// Length of the interval that the velocities at the start are of, s: of the one before it where the start is a knot of a
    /// motion that went on before, 0 where they are those of the instant. Beside a first interval whose duration is a
    /// parameter that of a start from coordinates and rates keeps its proportion to it.
    pub before: f64,
    /// Coordinates at the start; see [`crate::dynamics::Step::initial`].
    pub coordinates: Vec<f64>,
    /// Their rates, of the instant or of the interval before.
    pub rates: Vec<f64>,
    /// Costs.
    pub costs: Vec<Cost>,
    /// Constraints.
    pub constraints: Vec<Constraint>,
    /// What varies of targets and limits, a number a knot each.
    pub profiles: Vec<Vec<f64>>,
    /// Smallest and largest value of each control; infinite where there is none.
    pub bounds: Vec<(f64, f64)>,
    /// Parameters to start from.
    pub parameters: Vec<f64>,
    /// Smallest and largest value of each parameter; where they are the same it is not a decision.
    pub parameter_bounds: Vec<(f64, f64)>,
    /// Controls to start from, `nu` a knot.
    pub guess: Vec<f64>,
    /// States to start from, `nx` a knot, the last included; they need not follow from the controls. Empty: those that
    /// do. Methods that simulate from the start ignore it.
    pub guess_states: Vec<f64>,
    /// The rollouts that learners learn from, where these are not one from the start. Other methods refuse them.
    pub episodes: Option<Episodes>,
}

/// A part of the horizon whose duration is a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// Its first interval.
    pub first: usize,
    /// The interval behind its last one.
    pub end: usize,
    /// The parameter, s.
    pub parameter: usize,
}

impl Problem {
    /// A problem without costs or constraints: rest at the given coordinates, controls zero, parameters as built.
    pub fn new<D: Dynamics>(dynamics: &D, intervals: Vec<f64>, coordinates: Vec<f64>) -> Self {
        let dims = dynamics.dims();
        let parameters: Vec<f64> = dynamics.parameters().iter().map(|p| p.value).collect();
        Self {
            rates: vec![0.0; coordinates.len()],
            coordinates,
            costs: vec![],
            constraints: vec![],
            profiles: vec![],
            durations: vec![],
            state: None,
            before: 0.0,
            bounds: vec![(f64::NEG_INFINITY, f64::INFINITY); dims.nu],
            parameter_bounds: parameters.iter().map(|p| (*p, *p)).collect(),
            parameters,
            guess: vec![0.0; intervals.len() * dims.nu],
            guess_states: vec![],
            episodes: None,
            intervals,
        }
    }

    /// The state at the start with the parameters `p`, those of the problem also where the system knows the first of them alone.
    ///
    /// # Errors
    /// As [`crate::dynamics::Step::initial`].
    pub fn start<D: Dynamics>(
        &self,
        dynamics: &D,
        p: &[f64],
        w: &mut D::Work,
    ) -> Result<Vec<f64>, StepError> {
        let mut x = vec![0.0; dynamics.dims().nx];
        self.start_from(dynamics, self.coordinates_and_rates(), p, w, &mut x)?;
        Ok(x)
    }

    /// [`Problem::coordinates`] and [`Problem::rates`].
    fn coordinates_and_rates(&self) -> [&[f64]; 2] {
        [&self.coordinates, &self.rates]
    }

    /// The state at the start, of other coordinates and rates.
    fn start_from<D: Dynamics>(
        &self,
        dynamics: &D,
        [q, rates]: [&[f64]; 2],
        p: &[f64],
        w: &mut D::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        if let Some(state) = &self.state {
            x.copy_from_slice(state);
            return Ok(());
        }
        // of a problem's parameters a system by itself knows the first alone
        let own = p.get(..dynamics.dims().np).unwrap_or(p);
        dynamics.initial(&self.start_in(q, rates, p), own, w, x)
    }

    /// Derivative of the state at the start by the parameters, nf x np.
    ///
    /// # Errors
    /// As [`crate::dynamics::Step::initial_by_parameters`].
    pub fn start_by_parameters<D: Dynamics>(
        &self,
        dynamics: &D,
        p: &[f64],
        w: &mut D::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.start_from_by_parameters(dynamics, self.coordinates_and_rates(), p, w)
    }

    fn start_from_by_parameters<D: Dynamics>(
        &self,
        dynamics: &D,
        [q, rates]: [&[f64]; 2],
        p: &[f64],
        w: &mut D::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        if self.state.is_some() {
            let d = dynamics.dims();
            return Ok(DMatrix::zeros(d.nf, d.np));
        }
        let start = self.start_in(q, rates, p);
        let mut by = dynamics.initial_by_parameters(&start, p, w)?;
        if let Some(t) = self.timing_before() {
            let by_start = dynamics.initial_by_coordinates(&start, p, w)?;
            let mut own = by.column_mut(t.parameter);
            own.axpy(t.share, &by_start.column(2 * q.len()), 1.0);
        }
        Ok(by)
    }

    fn start_in<'s>(&self, coordinates: &'s [f64], rates: &'s [f64], p: &[f64]) -> Start<'s> {
        Start {
            coordinates,
            rates,
            before: self.interval_before(p),
        }
    }

    /// [`Problem::before`] with the parameters `p`.
    fn interval_before(&self, p: &[f64]) -> f64 {
        let timing = self.timing_before();
        timing.map_or(self.before, |t| p[t.parameter] * t.share)
    }

    /// What sets that interval, if a parameter does.
    fn timing_before(&self) -> Option<Timing> {
        if self.before == 0.0 || self.state.is_some() {
            return None;
        }
        let first = self.timing().first().copied().flatten()?;
        let share = first.share * self.before / self.intervals[0];
        Some(Timing { share, ..first })
    }

    /// Derivative of the swept function by every parameter, the start and the intervals that follow from them included.
    ///
    /// # Errors
    /// As [`Problem::start_by_parameters`].
    pub fn by_parameters<D: Dynamics>(
        &self,
        dynamics: &D,
        p: &[f64],
        sweep: &Sweep,
        w: &mut D::Work,
    ) -> Result<Vec<f64>, StepError> {
        self.by_parameters_from(dynamics, self.coordinates_and_rates(), p, sweep, w)
    }

    fn by_parameters_from<D: Dynamics>(
        &self,
        dynamics: &D,
        from: [&[f64]; 2],
        p: &[f64],
        sweep: &Sweep,
        w: &mut D::Work,
    ) -> Result<Vec<f64>, StepError> {
        let start = self.start_from_by_parameters(dynamics, from, p, w)?;
        let x0 = DVectorView::from_slice(&sweep.x0, sweep.x0.len());
        let through = start.tr_mul(&x0);
        let mut out: Vec<f64> = sweep.p.iter().zip(&through).map(|(a, b)| a + b).collect();
        self.intervals_by_parameters(&sweep.intervals, sweep.before, &mut out);
        Ok(out)
    }

    /// What sets the length of each interval; empty where all are fixed.
    fn timing(&self) -> Vec<Option<Timing>> {
        if self.durations.is_empty() {
            return vec![];
        }
        let mut out = vec![None; self.intervals.len()];
        let n = self.intervals.len();
        // others are refused by `check`
        for d in self
            .durations
            .iter()
            .filter(|d| d.first < d.end && d.end <= n)
        {
            let all: f64 = self.intervals[d.first..d.end].iter().sum();
            for (timing, h) in out[d.first..d.end]
                .iter_mut()
                .zip(&self.intervals[d.first..])
            {
                *timing = Some(Timing {
                    parameter: d.parameter,
                    share: h / all,
                });
            }
        }
        out
    }

    /// Sets the intervals that are parts of durations as the trajectory's parameters have them, and the one before.
    pub fn set_intervals(&self, t: &mut Trajectory) {
        t.before = self.interval_before(&t.p);
        let (p, intervals) = (&t.p, &mut t.intervals);
        for d in &self.durations {
            let own = d.first..d.end;
            let all: f64 = self.intervals[own.clone()].iter().sum();
            for (to, h) in intervals[own.clone()].iter_mut().zip(&self.intervals[own]) {
                *to = p[d.parameter] * (h / all);
            }
        }
    }

    /// Adds what derivatives by the intervals, and by the one before the first, come to by the parameters.
    fn intervals_by_parameters(&self, by: &[f64], before: f64, out: &mut [f64]) {
        if let Some(t) = self.timing_before() {
            out[t.parameter] += t.share * before;
        }
        for (timing, by) in self.timing().iter().zip(by) {
            if let Some(t) = timing {
                out[t.parameter] += t.share * by;
            }
        }
    }

    /// What a cost contributes at a knot, and the same before it is multiplied by the knot's share.
    pub fn cost_at(&self, i: usize, at: &Knot, quantity: f64) -> (Term, f64) {
        let c = &self.costs[i];
        let distance = quantity - self.target(c, at.k);
        let (value, slope, curvature) = c.form.at(c.weight, distance);
        let scale = c.share(at).weight;
        let term = Term {
            value: scale * value,
            slope: scale * slope,
            curvature: scale * curvature,
        };
        (term, value)
    }

    /// What a cost wants its quantity to be at knot `k`.
    pub fn target(&self, cost: &Cost, k: usize) -> f64 {
        cost.target + self.profile(cost.profile, k)
    }

    /// What a constraint compares its quantity with at knot `k`.
    pub fn limit(&self, constraint: &Constraint, k: usize) -> f64 {
        constraint.value + self.profile(constraint.profile, k)
    }

    fn profile(&self, profile: Option<usize>, k: usize) -> f64 {
        profile.map_or(0.0, |i| self.profiles[i][k])
    }

    /// `c` of a constraint at knot `k`: it says `c = 0`, or `c <= 0` for the inequalities.
    pub fn constraint_at(&self, constraint: &Constraint, k: usize, quantity: f64) -> f64 {
        constraint.sign() * (quantity - self.limit(constraint, k))
    }

    /// Indices of the parameters that are decisions.
    pub fn free_parameters(&self) -> Vec<usize> {
        let bounds = self.parameter_bounds.iter().enumerate();
        bounds.filter(|(_, (l, u))| l < u).map(|(i, _)| i).collect()
    }

    /// Evaluates along a trajectory.
    ///
    /// # Errors
    /// When a quantity cannot be observed, or a stop is requested; the objective is then infinite.
    pub fn evaluate<D: Observe>(
        &self,
        dynamics: &D,
        t: &Trajectory,
        w: &mut D::Work,
        out: &mut Evaluation,
    ) -> Result<(), StepError> {
        self.evaluate_until(dynamics, t, None, w, out)
    }

    /// Evaluates along an episode, which may have ended.
    fn evaluate_until<D: Observe>(
        &self,
        dynamics: &D,
        t: &Trajectory,
        ended: Option<Ended>,
        w: &mut D::Work,
        out: &mut Evaluation,
    ) -> Result<(), StepError> {
        out.objective = f64::INFINITY;
        out.ended = ended;
        let mut objective = 0.0;
        let mut at = t.knot(0);
        let knots = ended.map_or(t.steps() + 1, |e| e.knot);
        for _ in 0..knots {
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            objective = self.evaluate_at(dynamics, t, &at, objective, w, out)?;
            at = t.knot_after(&at);
        }
        let last = out.layout.constraints(knots - 1).end;
        out.constraints[last..].fill(0.0);
        out.objective = objective + self.end_cost(t, ended);
        Ok(())
    }

    /// What an episode costs that has ended before its horizon did.
    fn end_cost(&self, t: &Trajectory, ended: Option<Ended>) -> f64 {
        let Some((e, end)) = ended.and_then(|e| Some((e, self.ends().get(e.end)?))) else {
            return 0.0;
        };
        end.cost + end.rest * t.intervals[e.knot..].iter().sum::<f64>()
    }

    /// Evaluates at one knot, and adds the costs there.
    fn evaluate_at<D: Observe>(
        &self,
        dynamics: &D,
        t: &Trajectory,
        at: &Knot,
        sum: f64,
        w: &mut D::Work,
        out: &mut Evaluation,
    ) -> Result<f64, StepError> {
        let which = &out.layout.stage(at.k).which;
        let values = &mut out.values[out.layout.values(at.k)];
        if !which.is_empty() {
            dynamics.observe(&t.knot_point(at), which, w, values)?;
        }
        Ok(self.count_at(at, sum, out))
    }

    /// Counts along a trajectory whose quantities were observed, as [`Problem::evaluate`] where it also observes them.
    pub(crate) fn count(&self, t: &Trajectory, out: &mut Evaluation) {
        out.ended = None;
        let (mut objective, mut at) = (0.0, t.knot(0));
        for _ in 0..=t.steps() {
            objective = self.count_at(&at, objective, out);
            at = t.knot_after(&at);
        }
        out.objective = objective;
    }

    /// Adds the costs at one knot whose quantities were observed, and evaluates the constraints there.
    fn count_at(&self, at: &Knot, mut sum: f64, out: &mut Evaluation) -> f64 {
        let k = at.k;
        let stage = out.layout.stage(k);
        let values = &out.values[out.layout.values(k)];
        for &(i, place) in &stage.costs {
            sum += self.cost_at(i, at, values[place]).0.value;
        }
        let first = out.layout.constraints(k).start;
        for (j, &(i, place)) in stage.constraints.iter().enumerate() {
            out.constraints[first + j] = self.constraint_at(&self.constraints[i], k, values[place]);
        }
        sum
    }

    /// Adjoints at a knot of `objective + sum multiplier_i constraint_i`; for [`crate::rollout::Sweep::run`]. `y` are
    /// those of the unknowns of the step from the knot.
    ///
    /// # Errors
    /// When a quantity cannot be observed.
    #[expect(
        clippy::too_many_arguments,
        reason = "the sweep's callback and the multipliers"
    )]
    pub fn pull<D: Observe>(
        &self,
        dynamics: &D,
        t: &Trajectory,
        multipliers: &[f64],
        evaluation: &mut Evaluation,
        at: &Knot,
        w: &mut D::Work,
        out: &mut Inputs,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        let e = evaluation;
        let stage = e.layout.stage(at.k);
        let is_behind = e.ended.is_some_and(|ended| at.k >= ended.knot);
        if stage.which.is_empty() || is_behind {
            return Ok(());
        }
        let values = &mut e.values[e.layout.values(at.k)];
        let adjoint = &mut e.adjoint[..stage.which.len()];
        adjoint.fill(0.0);
        let seen = t.knot_point(at);
        let mut observed = dynamics.observe(&seen, &stage.which, w, values)?;
        for &(i, place) in &stage.costs {
            let (term, density) = self.cost_at(i, at, observed.values()[place]);
            adjoint[place] += term.slope;
            let share = self.costs[i].share(at);
            out.h_prev += share.by_h_prev * density;
            out.h += share.by_h * density;
        }
        if !multipliers.is_empty() {
            let own = &multipliers[e.layout.constraints(at.k)];
            for (&(i, place), m) in stage.constraints.iter().zip(own) {
                adjoint[place] += self.constraints[i].sign() * m;
            }
        }
        observed.pull(adjoint, out, y);
        Ok(())
    }

    /// Controls, knot after knot, each with its bounds.
    pub fn with_bounds<'a>(
        &'a self,
        u: &'a [f64],
    ) -> impl Iterator<Item = (&'a f64, &'a (f64, f64))> {
        let knots = u.chunks(self.bounds.len().max(1));
        knots.flat_map(|u| u.iter().zip(&self.bounds))
    }

    /// Largest violation of a constraint, or of a bound of controls or parameters.
    pub fn violation(&self, evaluation: &Evaluation, u: &[f64], p: &[f64]) -> f64 {
        let outside = |m: f64, (v, (l, h)): (&f64, &(f64, f64))| m.max(l - v).max(v - h);
        let bounds = self.with_bounds(u).fold(0.0, outside);
        let bounds = p.iter().zip(&self.parameter_bounds).fold(bounds, outside);
        let layout = &evaluation.layout;
        (0..layout.knots()).fold(bounds, |m, k| {
            let values = &evaluation.constraints[layout.constraints(k)];
            let stage = layout.stage(k).constraints.iter();
            stage.zip(values).fold(m, |m, ((i, _), c)| {
                m.max(self.constraints[*i].violation(*c))
            })
        })
    }

    /// Sum of the squares of the constraints' violations, of all at all of their knots; bounds are not among them.
    pub fn violation_squared(&self, evaluation: &Evaluation) -> f64 {
        let knots = 0..evaluation.layout.knots();
        knots.fold(0.0, |sum, k| self.violation_squared_at(evaluation, k, sum))
    }

    /// Adds those of the constraints at one knot.
    fn violation_squared_at(&self, evaluation: &Evaluation, k: usize, sum: f64) -> f64 {
        let layout = &evaluation.layout;
        let values = &evaluation.constraints[layout.constraints(k)];
        let all = layout.stage(k).constraints.iter().zip(values);
        all.fold(sum, |sum, ((i, _), c)| {
            sum + self.constraints[*i].violation(*c).powi(2)
        })
    }

    /// The objective by half the square of the violation, both at a guess: a penalty in its multiples has the objective's
    /// size, whatever the units. `None` where that says nothing.
    pub fn penalty_scale(&self, guess: &Evaluation) -> Option<f64> {
        Self::penalty_scale_of(guess.objective, self.violation_squared(guess))
    }

    /// [`Problem::penalty_scale`] of an objective and the square of the violation.
    pub(crate) fn penalty_scale_of(objective: f64, square: f64) -> Option<f64> {
        let scale = objective.abs() / (0.5 * square).max(LEAST_SQUARE);
        (scale > 0.0 && scale.is_finite()).then(|| scale.clamp(1.0 / MOST_SCALE, MOST_SCALE))
    }

    /// The place of the constraint that is violated most, by more than `tolerance`, and the knot where it is.
    pub fn worst(&self, evaluation: &Evaluation, tolerance: f64) -> Option<(usize, usize)> {
        let (layout, mut most) = (&evaluation.layout, tolerance);
        let mut worst = None;
        for k in 0..layout.knots() {
            let values = &evaluation.constraints[layout.constraints(k)];
            for (&(i, _), c) in layout.stage(k).constraints.iter().zip(values) {
                let violation = self.constraints[i].violation(*c);
                if violation > most {
                    (most, worst) = (violation, Some((i, k)));
                }
            }
        }
        worst
    }

    /// Says in words what is violated by more than `tolerance`, and by how much.
    pub fn violated<D: Observe>(
        &self,
        dynamics: &D,
        evaluation: &Evaluation,
        t: &Trajectory,
        tolerance: f64,
    ) -> Vec<String> {
        let names = dynamics.quantities();
        let layout = &evaluation.layout;
        let mut list = vec![];
        for (i, c) in self.constraints.iter().enumerate() {
            // of a constraint along the way the worst knot
            let mut worst = (tolerance, 0);
            for k in 0..layout.knots() {
                let values = &evaluation.constraints[layout.constraints(k)];
                let own = layout.stage(k).constraints.iter().zip(values);
                for (_, v) in own.filter(|((of, _), _)| *of == i) {
                    if c.violation(*v) > worst.0 {
                        worst = (c.violation(*v), k);
                    }
                }
            }
            if worst.0 > tolerance {
                let place = match (c.when, worst.1) {
                    (When::End, _) => "at the end".to_owned(),
                    (_, k) => format!("at knot {k}"),
                };
                let name = names.get(c.quantity.index()).map_or("", |n| &n.0);
                list.push(format!(
                    "{name} {} {} {place} by {:.3e}",
                    c.relation,
                    self.limit(c, worst.1),
                    worst.0
                ));
            }
        }
        let outside = |m: f64, (v, (l, h)): (&f64, &(f64, f64))| m.max(l - v).max(v - h);
        let controls = self.with_bounds(&t.u).fold(0.0, outside);
        if controls > tolerance {
            list.push(format!("the bounds of the controls by {controls:.3e}"));
        }
        let parameters = t.p.iter().zip(&self.parameter_bounds).fold(0.0, outside);
        if parameters > tolerance {
            list.push(format!("the bounds of the parameters by {parameters:.3e}"));
        }
        list
    }
}

fn add<'a>(to: &mut [f64], scale: f64, from: impl Iterator<Item = &'a f64>) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += scale * f);
}

fn dot<'a>(a: impl Iterator<Item = &'a f64>, b: &[f64]) -> f64 {
    a.zip(b).map(|(a, b)| a * b).sum()
}
