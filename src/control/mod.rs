//! What is wanted of a trajectory: costs, constraints, bounds, parameters. Knows only the seam.
//!
//! The objective is the sum of `weight/2 (quantity - target)^2` (or `weight (quantity - target)`), multiplied by the knot's interval for costs along the
//! way, taken once for those at the end or at one knot.

mod check;
mod closed_loop;
mod objective;
mod policy;

pub use check::{ProblemError, ProblemPart};
pub use closed_loop::{ClosedLoop, ClosedLoopWork};
pub use objective::{Batch, Objective, ObjectiveGradient, ObjectiveWork, Point};
pub use policy::{Law, LinearFeedback, Loop, Pd, Planned, Policy, PolicyError, PolicyRows, Signal};

use crate::dynamics::{Dynamics, Inputs, Knot, Observe, QuantityId, StepError, stop_requested};
use crate::rollout::{Sweep, Trajectory};
use nalgebra::DVectorView;

/// Distance from its target at which a linear cost's curvature, the quantity's own, is taken no larger.
const AT_TARGET: f64 = 1e-9;
/// Half the square of a guess's violation, at least, that scales the penalty: a guess that all but meets its constraints
/// says nothing of their weight. And the largest scale, and the smallest.
const LEAST_SQUARE: f64 = 1e-2;
const MOST_SCALE: f64 = 1e6;

/// Where along the trajectory a cost or a constraint holds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At every knot but the last.
    Running,
    /// At the last knot.
    End,
    /// At one knot, counted from 0.
    Knot(usize),
    /// From one knot to another, both included.
    Range(usize, usize),
}

impl When {
    /// Does it hold at knot `k` of a trajectory of `n` steps?
    pub fn holds(self, k: usize, n: usize) -> bool {
        match self {
            Self::Running => k < n,
            Self::End => k == n,
            Self::Knot(at) => k == at,
            Self::Range(first, last) => (first..=last).contains(&k),
        }
    }

    /// Is a cost multiplied by the interval behind its knot? (At the last knot there is none.)
    pub fn is_along(self) -> bool {
        matches!(self, Self::Running | Self::Range(..))
    }
}

/// How a cost grows with the distance of its quantity from the target.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `weight/2 (quantity - target)^2`
    #[default]
    Square,
    /// `weight (quantity - target)`, for what cannot fall below its target, such as an energy.
    Linear,
}

/// A cost on a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Which of the system's quantities.
    pub quantity: QuantityId,
    /// In the quantity's unit.
    pub target: f64,
    /// Not negative.
    pub weight: f64,
    /// Where.
    pub when: When,
    /// Square or linear.
    pub form: Form,
}

impl Cost {
    /// `weight/2 (quantity - target)^2`
    pub fn square(quantity: QuantityId, target: f64, weight: f64, when: When) -> Self {
        Self {
            quantity,
            target,
            weight,
            when,
            form: Form::Square,
        }
    }

    /// Value, slope and Gauss-Newton curvature by the quantity, at a knot with the interval `h` behind it. A linear cost
    /// is the square of a root, whose Gauss-Newton curvature is `weight / (2 distance)`.
    pub fn at(&self, quantity: f64, h: f64) -> (f64, f64, f64) {
        let (value, slope, curvature) = self.density(quantity);
        let scale = if self.when.is_along() { h } else { 1.0 };
        (scale * value, scale * slope, scale * curvature)
    }

    fn density(&self, quantity: f64) -> (f64, f64, f64) {
        let (w, d) = (self.weight, quantity - self.target);
        match self.form {
            Form::Square => (0.5 * w * d * d, w * d, w),
            // the quantity's own slope vanishes at the target with the root
            Form::Linear => (w * d, w, w / (2.0 * d.abs().max(AT_TARGET))),
        }
    }
}

/// How a quantity compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// `quantity = value`
    Equal,
    /// `quantity <= value`
    Less,
    /// `quantity >= value`
    Greater,
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::Less => "<=",
            Self::Greater => ">=",
        })
    }
}

/// A quantity held at, below or above a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// Which of the system's quantities.
    pub quantity: QuantityId,
    /// Equal, less or greater.
    pub relation: Relation,
    /// In the quantity's unit.
    pub value: f64,
    /// Where.
    pub when: When,
}

impl Constraint {
    /// `c` such that the constraint says `c = 0`, or `c <= 0` for the inequalities.
    pub fn value_at(&self, quantity: f64) -> f64 {
        self.sign() * (quantity - self.value)
    }

    /// `dc / d quantity`.
    pub fn sign(&self) -> f64 {
        match self.relation {
            Relation::Greater => -1.0,
            _ => 1.0,
        }
    }

    /// How far `c` is from being allowed.
    pub fn violation(&self, c: f64) -> f64 {
        match self.relation {
            Relation::Equal => c.abs(),
            _ => c.max(0.0),
        }
    }
}

/// A trajectory wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Lengths of the intervals, s.
    pub intervals: Vec<f64>,
    /// Coordinates at the start; see [`crate::dynamics::Step::initial`].
    pub coordinates: Vec<f64>,
    /// Their rates.
    pub rates: Vec<f64>,
    /// Costs.
    pub costs: Vec<Cost>,
    /// Constraints.
    pub constraints: Vec<Constraint>,
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
}

/// What is asked at a knot: the quantities to observe, and where costs and constraints find theirs among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Quantities, ascending.
    pub which: Vec<QuantityId>,
    /// Index of a cost, place in `which`.
    pub costs: Vec<(usize, usize)>,
    /// Index of a constraint, place in `which`.
    pub constraints: Vec<(usize, usize)>,
}

/// The stages of a problem: most knots share one.
#[derive(Clone, Debug)]
pub struct Layout {
    stages: Vec<Stage>,
    stage_of: Vec<usize>,
    first_value: Vec<usize>,
    first_constraint: Vec<usize>,
}

impl Layout {
    /// Number of knots.
    pub fn knots(&self) -> usize {
        self.stage_of.len()
    }

    /// What is asked at knot `k`.
    pub fn stage(&self, k: usize) -> &Stage {
        &self.stages[self.stage_of[k]]
    }

    /// Places of knot `k`'s observed quantities in [`Evaluation::values`].
    pub fn values(&self, k: usize) -> std::ops::Range<usize> {
        self.first_value[k]..self.first_value[k + 1]
    }

    /// Places of knot `k`'s constraints in [`Evaluation::constraints`].
    pub fn constraints(&self, k: usize) -> std::ops::Range<usize> {
        self.first_constraint[k]..self.first_constraint[k + 1]
    }
}

/// Values of a problem's functions along a trajectory.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Which values belong to which knot.
    pub layout: Layout,
    /// Observed quantities, knot by knot.
    pub values: Vec<f64>,
    /// The objective.
    pub objective: f64,
    /// Each constraint at each of its knots, as [`Constraint::value_at`].
    pub constraints: Vec<f64>,
    adjoint: Vec<f64>,
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
            bounds: vec![(f64::NEG_INFINITY, f64::INFINITY); dims.nu],
            parameter_bounds: parameters.iter().map(|p| (*p, *p)).collect(),
            parameters,
            guess: vec![0.0; intervals.len() * dims.nu],
            guess_states: vec![],
            intervals,
        }
    }

    /// The state at the start with the parameters `p`.
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
        dynamics.initial(&self.coordinates, &self.rates, p, w, &mut x)?;
        Ok(x)
    }

    /// Derivative of the swept function by every parameter, the start that follows from them included.
    ///
    /// # Errors
    /// As [`crate::dynamics::Step::initial_by_parameters`].
    pub fn by_parameters<D: Dynamics>(
        &self,
        dynamics: &D,
        p: &[f64],
        sweep: &Sweep,
        w: &mut D::Work,
    ) -> Result<Vec<f64>, StepError> {
        let start = dynamics.initial_by_parameters(&self.coordinates, &self.rates, p, w)?;
        let x0 = DVectorView::from_slice(&sweep.x0, sweep.x0.len());
        let through = start.tr_mul(&x0);
        Ok(sweep.p.iter().zip(&through).map(|(a, b)| a + b).collect())
    }

    /// Indices of the parameters that are decisions.
    pub fn free_parameters(&self) -> Vec<usize> {
        let bounds = self.parameter_bounds.iter().enumerate();
        bounds.filter(|(_, (l, u))| l < u).map(|(i, _)| i).collect()
    }

    /// What is asked at each knot.
    pub fn layout(&self) -> Layout {
        let n = self.intervals.len();
        let mut out = Layout {
            stages: vec![],
            stage_of: vec![],
            first_value: vec![0],
            first_constraint: vec![0],
        };
        for k in 0..=n {
            let costs = self.costs.iter().enumerate();
            let costs = costs
                .filter(|(_, c)| c.when.holds(k, n) && (k < n || !c.when.is_along()))
                .map(|(i, c)| (i, c.quantity));
            let constraints = self.constraints.iter().enumerate();
            let constraints = constraints
                .filter(|(_, c)| c.when.holds(k, n))
                .map(|(i, c)| (i, c.quantity));
            let both = costs.clone().chain(constraints.clone());
            let mut which: Vec<QuantityId> = both.map(|(_, q)| q).collect();
            which.sort_unstable();
            which.dedup();
            let place = |(i, q)| (i, which.partition_point(|w| *w < q));
            let stage = Stage {
                costs: costs.map(place).collect(),
                constraints: constraints.map(place).collect(),
                which,
            };
            out.first_value.push(out.first_value[k] + stage.which.len());
            out.first_constraint
                .push(out.first_constraint[k] + stage.constraints.len());
            let known = out.stages.iter().rposition(|s| *s == stage);
            out.stage_of.push(known.unwrap_or(out.stages.len()));
            if known.is_none() {
                out.stages.push(stage);
            }
        }
        out
    }

    /// Memory for evaluations.
    pub fn evaluation(&self) -> Evaluation {
        let layout = self.layout();
        let widest = layout.stages.iter().map(|s| s.which.len()).max();
        let last = layout.knots();
        Evaluation {
            values: vec![0.0; layout.first_value[last]],
            adjoint: vec![0.0; widest.unwrap_or(0)],
            objective: f64::INFINITY,
            constraints: vec![0.0; layout.first_constraint[last]],
            layout,
        }
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
        out.objective = f64::INFINITY;
        let mut objective = 0.0;
        let mut at = t.knot(0);
        for k in 0..=t.steps() {
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            let stage = out.layout.stage(k);
            let values = &mut out.values[out.layout.values(k)];
            if !stage.which.is_empty() {
                dynamics.observe(&t.knot_point(&at), &stage.which, w, values)?;
            }
            for &(i, place) in &stage.costs {
                objective += self.costs[i].at(values[place], at.h).0;
            }
            let first = out.layout.constraints(k).start;
            for (j, &(i, place)) in stage.constraints.iter().enumerate() {
                out.constraints[first + j] = self.constraints[i].value_at(values[place]);
            }
            at = t.knot_after(&at);
        }
        out.objective = objective;
        Ok(())
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
        if stage.which.is_empty() {
            return Ok(());
        }
        let values = &mut e.values[e.layout.values(at.k)];
        let adjoint = &mut e.adjoint[..stage.which.len()];
        adjoint.fill(0.0);
        let seen = t.knot_point(at);
        let mut observed = dynamics.observe(&seen, &stage.which, w, values)?;
        for &(i, place) in &stage.costs {
            let (c, value) = (&self.costs[i], observed.values()[place]);
            adjoint[place] += c.at(value, at.h).1;
            if c.when.is_along() {
                out.h += c.density(value).0;
            }
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
        let layout = &evaluation.layout;
        let mut square = 0.0;
        for k in 0..layout.knots() {
            let values = &evaluation.constraints[layout.constraints(k)];
            for ((i, _), c) in layout.stage(k).constraints.iter().zip(values) {
                square += self.constraints[*i].violation(*c).powi(2);
            }
        }
        square
    }

    /// The objective by half the square of the violation, both at a guess: a penalty in its multiples has the objective's
    /// size, whatever the units. `None` where that says nothing.
    pub fn penalty_scale(&self, guess: &Evaluation) -> Option<f64> {
        let square = self.violation_squared(guess);
        let scale = guess.objective.abs() / (0.5 * square).max(LEAST_SQUARE);
        (scale > 0.0 && scale.is_finite()).then(|| scale.clamp(1.0 / MOST_SCALE, MOST_SCALE))
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
                    c.relation, c.value, worst.0
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
