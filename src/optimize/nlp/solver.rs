//! The iterations.

use super::barrier::Parameter;
use super::filter::Filter;
use super::kkt::{Direction, Kkt, name_rows};
use super::model::{Derivatives, Model, Values};
use super::quasi_newton::Pairs;
use super::search::Searched;
use super::{
    Curvature, Multipliers, Options, Program, Row, Solution, Status, Undefined, largest,
    restoration,
};
use crate::dynamics::stop_requested;

/// Multipliers of the rows that least squares makes larger than this are not used.
const LARGEST_MULTIPLIER: f64 = 1e3;
/// Multipliers of bounds are kept within this factor of what the barrier has them be.
const APART: f64 = 1e10;
/// A variable this large has diverged: rounding leaves no part of a unit.
const DIVERGED: f64 = 1e15;
/// Multipliers this large tell that the rows, where they do not hold to the second, cannot be met near here.
const HOPELESS: (f64, f64) = (1e8, 1e-4);
/// Scale of the errors: multipliers of more than this on average are divided out.
const USUAL: f64 = 100.0;
/// Where the errors hold after scaling, the unscaled gradient and complementarity are at most these.
pub const UNSCALED: (f64, f64) = (1.0, 1e-4);
/// A change below this, relative to the variables, is none.
const TINY: f64 = 10.0 * f64::EPSILON;
/// Slope of the barrier function at an open side, in parts of `mu`: keeps variables with one bound from growing without end.
pub const DAMPING: f64 = 1e-5;
/// A restoration within a restoration is none.
const DEEPEST: usize = 1;

/// An iterate with its values.
#[derive(Clone, Debug, Default)]
pub struct Iterate {
    /// Variables and slacks.
    pub w: Vec<f64>,
    pub y: Vec<f64>,
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    pub values: Values,
}

/// A step of all.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub d: Direction,
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
}

/// Errors at an iterate, scaled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    pub gradient: f64,
    pub rows: f64,
    pub complementarity: f64,
}

impl Errors {
    pub fn largest(&self) -> f64 {
        largest(&[self.gradient, self.rows, self.complementarity])
    }
}

pub struct Solver {
    pub model: Model,
    pub options: Options,
    pub depth: usize,
    pub at: Iterate,
    pub trial: Iterate,
    pub d: Derivatives,
    pub hessian: Vec<f64>,
    /// Gradient of the Lagrangian but for the bounds, of variables and slacks.
    pub gradient: Vec<f64>,
    pub kkt: Option<Kkt>,
    pub step: Step,
    pub rhs: Direction,
    pub parameter: Parameter,
    pub filter: Filter,
    /// Largest violation that is looked at, and from which on down steps may be judged by the barrier function.
    pub violations: (f64, f64),
    pub history: Vec<Row>,
    /// What is known of the curvature where it is learnt on the way.
    pub pairs: Option<Pairs>,
    /// Are the factors those of this iteration?
    pub factored: bool,
    pub tiny: usize,
    /// Were multipliers made anew where no step made progress?
    renewed: bool,
    earlier: (usize, usize),
}

impl Solver {
    pub fn new(program: &dyn Program, options: &Options, depth: usize) -> Self {
        let model = Model::new(program, options);
        let d = model.derivatives();
        Self {
            hessian: vec![0.0; model.hessian.len()],
            gradient: vec![0.0; model.lower.len()],
            d,
            at: Iterate::default(),
            trial: Iterate::default(),
            kkt: None,
            step: Step::default(),
            rhs: Direction::default(),
            parameter: Parameter::new(options),
            filter: Filter::default(),
            violations: (f64::INFINITY, 0.0),
            history: vec![],
            pairs: (options.curvature == Curvature::LimitedMemory)
                .then(|| Pairs::new(options.memory)),
            factored: false,
            tiny: 0,
            renewed: false,
            earlier: (0, 0),
            options: *options,
            depth,
            model,
        }
    }

    /// Solves.
    pub fn run(
        mut self,
        program: &mut dyn Program,
        multipliers: Option<&Multipliers>,
        observer: &mut dyn FnMut(&Row) -> bool,
    ) -> Solution {
        let (status, reason) = self.run_from(program, multipliers, observer);
        self.solution(program, status, reason)
    }

    /// Solves, and stays as it ends.
    pub fn run_from(
        &mut self,
        program: &mut dyn Program,
        multipliers: Option<&Multipliers>,
        observer: &mut dyn FnMut(&Row) -> bool,
    ) -> (Status, String) {
        if let Err(end) = self.begin(program, multipliers) {
            return end;
        }
        loop {
            let row = *self.history.last().expect("begun");
            if !observer(&row) {
                return (Status::Stopped, "stopped from outside".into());
            }
            if let Err(end) = self.next(program, observer) {
                return end;
            }
        }
    }

    /// Makes the multipliers of the rows anew; none where they come out larger than `most`.
    pub fn forget_rows(&mut self, most: f64) {
        let mut gradient = self.d.gradient.clone();
        gradient.resize(self.at.w.len(), 0.0);
        for (g, (l, u)) in gradient
            .iter_mut()
            .zip(self.at.lower.iter().zip(&self.at.upper))
        {
            *g += u - l;
        }
        let Some(kkt) = &mut self.kkt else { return };
        let found = kkt.least_squares(&self.model, &self.d, &gradient);
        match found.filter(|y| largest(y) <= most) {
            Some(y) => self.at.y = y,
            None => self.at.y.fill(0.0),
        }
    }

    /// Values and multipliers at the start.
    pub fn begin(
        &mut self,
        program: &mut dyn Program,
        multipliers: Option<&Multipliers>,
    ) -> Result<(), (Status, String)> {
        let (n, wide) = (self.model.n, self.model.lower.len());
        let mut w = program.start();
        w.resize(wide, 0.0);
        self.at = Iterate {
            w,
            y: vec![0.0; self.model.m],
            lower: vec![0.0; wide],
            upper: vec![0.0; wide],
            ..Iterate::default()
        };
        if let Some(empty) = self.model.empty(program) {
            return Err((Status::Infeasible, empty));
        }
        self.model
            .push_inside(&mut self.at.w[..n], self.options.push);
        let undefined = |e: Undefined| {
            let reason = format!("the program has no value at its start: {e}");
            (Status::Undefined, reason)
        };
        let options = self.options;
        (self.model.scale(program, &self.at.w, &options)).map_err(undefined)?;
        let (model, at) = (&mut self.model, &mut self.at);
        let has_bounds = (model.lower.iter().chain(&model.upper)).any(|b| b.is_finite());
        self.parameter
            .fit(model.weight, options.tolerance, has_bounds);
        at.w[n..].fill(0.0);
        at.values.rows.resize(model.m, 0.0);
        at.values.rows.fill(0.0);
        (model.evaluate(program, &at.w, &mut at.values)).map_err(undefined)?;
        for (slack, c) in model.slack.iter().zip(&at.values.rows) {
            if let Some(s) = *slack {
                at.w[s] = *c;
            }
        }
        model.push_inside(&mut at.w, options.push);
        (model.evaluate(program, &at.w, &mut at.values)).map_err(undefined)?;
        (model.differentiate(program, &at.w, &mut self.d)).map_err(undefined)?;
        for i in 0..wide {
            at.lower[i] = f64::from(model.lower[i].is_finite());
            at.upper[i] = f64::from(model.upper[i].is_finite());
        }
        let mut kkt = Kkt::new(program, model, &self.d.jacobian, options.redundancy);
        self.step.d = kkt.direction();
        self.rhs = kkt.direction();
        kkt.low_rank = self.pairs.as_ref().map(Pairs::matrix);
        self.kkt = Some(kkt);
        match multipliers {
            Some(m) => self.take_multipliers(m),
            None => self.forget_rows(LARGEST_MULTIPLIER),
        }
        (self.step.lower, self.step.upper) = (vec![0.0; wide], vec![0.0; wide]);
        self.trial = self.at.clone();
        let violation = self.at.values.violation();
        self.violations = (1e4 * violation.max(1.0), 1e-4 * violation.max(1.0));
        self.note(0.0, 0.0);
        Ok(())
    }

    fn take_multipliers(&mut self, m: &Multipliers) {
        let (model, at) = (&self.model, &mut self.at);
        let weight = model.weight;
        for ((y, given), w) in at.y.iter_mut().zip(&m.rows).zip(&model.row_weights) {
            *y = given * weight / w;
        }
        let mut of_slack = vec![0.0; at.w.len() - model.n];
        for (slack, y) in model.slack.iter().zip(&at.y) {
            if let Some(s) = slack {
                of_slack[s - model.n] = *y;
            }
        }
        let given = |z: &[f64], i: usize| z.get(i).copied().unwrap_or(0.0);
        let least = self.parameter.mu;
        for i in 0..at.w.len() {
            let (below, above) = model.gaps(&at.w, i);
            let (l, u) = match i < model.n {
                true => (given(&m.lower, i) * weight, given(&m.upper, i) * weight),
                // zu - zl = y
                false => (-of_slack[i - model.n], of_slack[i - model.n]),
            };
            if model.lower[i].is_finite() {
                at.lower[i] = l.max(least / below);
            }
            if model.upper[i].is_finite() {
                at.upper[i] = u.max(least / above);
            }
        }
    }

    /// Ends, or makes an iteration.
    pub fn next(
        &mut self,
        program: &mut dyn Program,
        observer: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), (Status, String)> {
        match self.ended(program) {
            Some(end) => Err(end),
            None => self.advance(program, observer),
        }
    }

    /// How it ends, if nothing is left to do here.
    pub fn ended(&mut self, program: &mut dyn Program) -> Option<(Status, String)> {
        self.set_gradient();
        let errors = self.errors(0.0);
        let (x, slacks) = self.at.w.split_at(self.model.n);
        if program.suffices(x, slacks) {
            return Some((Status::Stopped, String::new()));
        }
        if self.is_solved(&errors) {
            return Some((Status::Converged, String::new()));
        }
        if self.made() >= self.options.max_iterations {
            let reason = format!("{} iterations were not enough", self.made());
            return Some((Status::MaxIterations, self.with_rows(program, reason)));
        }
        if largest(&self.at.w) > DIVERGED {
            let reason = "variables grow without end: the program is unbounded";
            return Some((Status::Diverged, reason.into()));
        }
        None
    }

    /// An iteration, or how it ended.
    pub fn advance(
        &mut self,
        program: &mut dyn Program,
        observer: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), (Status, String)> {
        self.iterate(program, observer).map_err(|end| {
            if stop_requested() {
                (Status::Stopped, "a stop was requested".into())
            } else {
                end
            }
        })
    }

    fn iterate(
        &mut self,
        program: &mut dyn Program,
        observer: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), (Status, String)> {
        let (model, at) = (&mut self.model, &self.at);
        let stalled = |reason: String| (Status::Stalled, reason);
        if let Err(e) = model.curve(program, &at.w, &at.y, &mut self.hessian) {
            return Err(stalled(e.to_string()));
        }
        if self.tiny > 0 {
            self.parameter.refuse();
        }
        if largest(&self.at.y) > HOPELESS.0
            && largest(&self.at.values.rows) > HOPELESS.1
            && self.depth < DEEPEST
        {
            return self.restore(program, observer);
        }
        self.set_parameter();
        loop {
            if !self.direction() {
                return self.restore(program, observer);
            }
            let change = self.step.d.w.iter().zip(&self.at.w);
            let change = change.fold(0.0_f64, |l, (d, w)| l.max(d.abs() / (1.0 + w.abs())));
            if change <= TINY && self.at.values.violation() <= self.violations.1 {
                if self.tiny > 1 && self.parameter.is_least() {
                    let reason = "steps are as small as rounding".to_string();
                    return Err(stalled(self.with_rows(program, reason)));
                }
                self.tiny += 1;
                let (primal, dual) = self.largest_steps();
                if self.try_step(program, primal) {
                    self.take(program, primal, dual);
                    return Ok(());
                }
            } else {
                self.tiny = 0;
            }
            match self.search(program) {
                Searched::Accepted(primal, dual) => {
                    self.take(program, primal, dual);
                    return Ok(());
                }
                Searched::Refused if self.parameter.is_free() => {
                    self.parameter.hold(self.average());
                    self.filter.clear();
                    self.settle();
                }
                Searched::Refused => return self.restore(program, observer),
            }
        }
    }

    /// Accepts the trial point, reached by steps of these lengths.
    pub fn take(&mut self, program: &mut dyn Program, primal: f64, dual: f64) {
        let (at, step) = (&mut self.at, &self.step);
        std::mem::swap(&mut at.w, &mut self.trial.w);
        std::mem::swap(&mut at.values, &mut self.trial.values);
        let both = at.w.iter().zip(&self.trial.w).take(self.model.n);
        let learns = self.pairs.is_some();
        let known = learns.then(|| (both.map(|(a, b)| a - b).collect(), self.d.clone()));
        let moved = |to: &mut [f64], d: &[f64], by: f64| {
            to.iter_mut().zip(d).for_each(|(t, d)| *t += by * d);
        };
        moved(&mut at.y, &step.d.y, primal);
        moved(&mut at.lower, &step.lower, dual);
        moved(&mut at.upper, &step.upper, dual);
        self.arrive(program);
        if let Some((moved, before)) = known {
            self.learn(moved, &before);
        }
        self.note(primal, self.regularization());
    }

    /// What follows from being at a new point.
    pub fn arrive(&mut self, program: &mut dyn Program) {
        let n = self.model.n;
        if (self.model).accept(program, &mut self.at.w[..n], &mut self.at.y) {
            // the trial point had them as well
            let _ = (self.model).evaluate(program, &self.at.w, &mut self.at.values);
        }
        let mu = self.parameter.mu;
        for i in 0..self.at.w.len() {
            let (below, above) = self.model.gaps(&self.at.w, i);
            let within = |z: f64, gap: f64| z.clamp(mu / (APART * gap), APART * mu / gap);
            if self.model.lower[i].is_finite() {
                self.at.lower[i] = within(self.at.lower[i], below);
            }
            if self.model.upper[i].is_finite() {
                self.at.upper[i] = within(self.at.upper[i], above);
            }
        }
        if (self.model.differentiate(program, &self.at.w, &mut self.d)).is_err() {
            // no step leads on from here
            self.d.gradient.fill(f64::NAN);
        }
    }

    fn regularization(&self) -> f64 {
        self.kkt
            .as_ref()
            .map_or(0.0, |k| k.regularization.variables)
    }

    /// Iterations so far, restoration included.
    pub fn made(&self) -> usize {
        self.history.len() - 1
    }

    pub fn note(&mut self, step_length: f64, regularization: f64) {
        self.set_gradient();
        let e = self.errors(0.0);
        self.history.push(Row {
            objective: self.at.values.objective / self.model.weight,
            violation: self.model.worst(&self.at.values.rows).0,
            optimality: e.gradient,
            complementarity: e.complementarity,
            mu: self.parameter.mu,
            regularization,
            step_length,
            is_restoring: self.depth > 0,
        });
    }

    /// Gradient of the Lagrangian but for the bounds.
    pub fn set_gradient(&mut self) {
        let n = self.model.n;
        self.gradient[..n].copy_from_slice(&self.d.gradient);
        self.gradient[n..].fill(0.0);
        self.model
            .add_pull(&self.d.jacobian, &self.at.y, &mut self.gradient);
    }

    /// Errors of the conditions of optimality with the barrier's parameter `mu`.
    pub fn errors(&self, mu: f64) -> Errors {
        let (model, at) = (&self.model, &self.at);
        let mut e = Errors {
            rows: largest(&at.values.rows),
            ..Errors::default()
        };
        let (mut sum, mut count) = (0.0, 0);
        for i in 0..at.w.len() {
            if model.held.get(i) == Some(&true) {
                continue;
            }
            let g = self.gradient[i] - at.lower[i] + at.upper[i];
            e.gradient = largest(&[e.gradient, g]);
            let (below, above) = model.gaps(&at.w, i);
            for (z, gap, bound) in [
                (at.lower[i], below, model.lower[i]),
                (at.upper[i], above, model.upper[i]),
            ] {
                if bound.is_finite() {
                    e.complementarity = largest(&[e.complementarity, z * gap - mu]);
                    sum += z;
                    count += 1;
                }
            }
        }
        let y: f64 = at.y.iter().map(|y| y.abs()).sum();
        let mean = |sum: f64, count: usize| (sum / count.max(1) as f64).max(USUAL) / USUAL;
        e.gradient /= mean(y + sum, at.y.len() + count);
        e.complementarity /= mean(sum, count);
        e
    }

    fn is_solved(&self, e: &Errors) -> bool {
        let o = &self.options;
        let weight = self.model.weight;
        e.largest() <= o.tolerance
            && self.model.worst(&self.at.values.rows).0 <= o.violation
            && e.gradient / weight <= UNSCALED.0.max(o.tolerance)
            && e.complementarity / weight <= UNSCALED.1.max(o.tolerance)
    }

    /// Leaves the filter's worst to a program that minimizes the violation.
    fn restore(
        &mut self,
        program: &mut dyn Program,
        observer: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), (Status, String)> {
        if self.depth >= DEEPEST {
            if !std::mem::replace(&mut self.renewed, true) {
                // multipliers may have been the reason
                self.forget_rows(LARGEST_MULTIPLIER);
                self.filter.clear();
                self.note(0.0, 0.0);
                return Ok(());
            }
            let reason = "no step of the restoration makes progress".into();
            return Err((Status::Stalled, reason));
        }
        if self.at.values.violation() <= 1e-2 * self.options.tolerance {
            let reason = "no step from here is acceptable, and the rows hold".into();
            return Err((Status::Stalled, reason));
        }
        restoration::restore(self, program, observer)
    }

    /// A reason with the rows that are worst.
    pub fn with_rows(&self, program: &dyn Program, reason: String) -> String {
        if self.model.worst(&self.at.values.rows).0 <= self.options.violation {
            return reason;
        }
        let named = name_rows(program, &self.at.values.rows, &self.model.row_weights);
        format!("{reason}; left are {named}")
    }

    /// What earlier factors took, of solvers that this one called.
    pub fn count(&mut self, (made, again): (usize, usize)) {
        self.earlier.0 += made;
        self.earlier.1 += again;
    }

    /// Multipliers, unscaled.
    pub fn multipliers(&self) -> Multipliers {
        let (n, weight) = (self.model.n, self.model.weight);
        let both = self.at.y.iter().zip(&self.model.row_weights);
        let of_bounds = |z: &[f64]| z.iter().take(n).map(|z| z / weight).collect();
        Multipliers {
            rows: both.map(|(y, w)| y * w / weight).collect(),
            lower: of_bounds(&self.at.lower),
            upper: of_bounds(&self.at.upper),
        }
    }

    /// What was found.
    pub fn solution(
        self,
        program: &mut dyn Program,
        mut status: Status,
        mut reason: String,
    ) -> Solution {
        let n = self.model.n;
        let mut x = self.at.w[..n].to_vec();
        for (x, (l, u)) in x.iter_mut().zip(&self.model.bounds) {
            *x = x.max(*l).min(*u);
        }
        let mut rows = vec![0.0; self.model.m];
        let objective = program.evaluate(&x, &mut rows);
        let bounds = program.row_bounds();
        let outside = rows
            .iter()
            .zip(&bounds)
            .map(|(c, (a, b))| (a - c).max(c - b).max(0.0));
        let violation = match &objective {
            Ok(_) => outside.fold(0.0, f64::max),
            Err(_) => f64::INFINITY,
        };
        if status == Status::Converged && violation > self.options.violation {
            status = Status::Stalled;
            reason = format!(
                "put back inside their bounds, the variables leave rows by {violation:.3e}"
            );
        }
        let last = self.history.last().copied().unwrap_or_default();
        let made = self.kkt.as_ref().map_or((0, 0), |k| k.factorizations);
        Solution {
            status,
            reason,
            violation,
            objective: objective.unwrap_or(f64::INFINITY),
            multipliers: self.multipliers(),
            optimality: last.optimality.max(last.complementarity),
            iterations: self.history.len().saturating_sub(1),
            factorizations: (made.0 + self.earlier.0, made.1 + self.earlier.1),
            history: self.history,
            x,
        }
    }
}
