//! A program as the method sees it: scaled, with slacks, its bounds widened.

use super::{Curvature, Options, Program, Undefined, largest};

/// Scaling, bounds and patterns of a program. Variables are those of the program, behind them a slack for every row that
/// is no equation.
pub struct Model {
    /// Variables and rows of the program.
    pub n: usize,
    pub m: usize,
    /// The slack of every row.
    pub slack: Vec<Option<usize>>,
    /// What equations say, scaled.
    target: Vec<f64>,
    /// Of variables and slacks, scaled and widened.
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    /// Bounds as the program has them.
    pub bounds: Vec<(f64, f64)>,
    /// Which variables are held.
    pub held: Vec<bool>,
    /// Factors of the objective and the rows.
    pub weight: f64,
    pub row_weights: Vec<f64>,
    pub jacobian: Vec<(usize, usize)>,
    /// Empty where it is learnt on the way.
    pub hessian: Vec<(usize, usize)>,
    pub curvature: Curvature,
    scaled: Vec<f64>,
}

/// Values at a point.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Scaled.
    pub objective: f64,
    /// `c - target` or `c - s`, scaled.
    pub rows: Vec<f64>,
}

impl Values {
    /// The violation as the filter takes it.
    pub fn violation(&self) -> f64 {
        self.rows.iter().map(|c| c.abs()).sum()
    }
}

/// Derivatives at a point, scaled.
#[derive(Clone, Debug, Default)]
pub struct Derivatives {
    pub gradient: Vec<f64>,
    pub jacobian: Vec<f64>,
}

/// Bounds are widened by at least this part of their size.
const ROUNDING: f64 = 100.0 * f64::EPSILON;
/// No gradient is scaled to less than this part.
const LEAST_WEIGHT: f64 = 1e-8;

impl Model {
    pub fn new(program: &dyn Program, options: &Options) -> Self {
        let (n, m) = (program.variables(), program.rows());
        let bounds = program.bounds();
        let mut slack = vec![None; m];
        let mut next = n;
        for (slack, (a, b)) in slack.iter_mut().zip(program.row_bounds()) {
            if a != b {
                *slack = Some(next);
                next += 1;
            }
        }
        let held: Vec<bool> = bounds.iter().map(|(l, u)| l == u).collect();
        let mut out = Self {
            n,
            m,
            slack,
            target: vec![0.0; m],
            lower: vec![f64::NEG_INFINITY; next],
            upper: vec![f64::INFINITY; next],
            weight: 1.0,
            row_weights: vec![1.0; m],
            jacobian: program.jacobian(),
            hessian: match options.curvature {
                Curvature::LimitedMemory => vec![],
                _ => program.hessian(),
            },
            curvature: options.curvature,
            scaled: vec![0.0; m],
            held,
            bounds,
        };
        for (i, (l, u)) in out.bounds.iter().enumerate() {
            if !out.held[i] {
                (out.lower[i], out.upper[i]) = widened((*l, *u), options.widening);
            }
        }
        out.bound_rows(program, options);
        out
    }

    /// A bound that lies on the wrong side of the other one.
    pub fn empty(&self, program: &dyn Program) -> Option<String> {
        let is_empty = |(l, u): &(f64, f64)| l > u || l.is_nan() || u.is_nan();
        let of =
            |name: String, (l, u): (f64, f64)| format!("{name} has no value between {l} and {u}");
        let variable = self.bounds.iter().position(is_empty);
        let rows = program.row_bounds();
        let row = rows.iter().position(is_empty);
        let variable = variable.map(|i| of(program.variable_name(i), self.bounds[i]));
        variable.or_else(|| row.map(|i| of(program.row_name(i), rows[i])))
    }

    /// Bounds of slacks and what equations say, for the rows' scaling.
    fn bound_rows(&mut self, program: &dyn Program, options: &Options) {
        let all = program.row_bounds();
        for (i, (a, b)) in all.into_iter().enumerate() {
            let w = self.row_weights[i];
            match self.slack[i] {
                Some(s) => {
                    let (l, u) = widened((a, b), options.widening);
                    (self.lower[s], self.upper[s]) = (w * l, w * u);
                }
                None => self.target[i] = w * a,
            }
        }
    }

    /// Scales objective and rows by their gradients at a point.
    pub fn scale(
        &mut self,
        program: &mut dyn Program,
        x: &[f64],
        options: &Options,
    ) -> Result<(), Undefined> {
        let mut d = self.derivatives();
        self.differentiate(program, x, &mut d)?;
        let weight = |largest: f64| {
            let weight = options.largest_gradient / largest;
            if weight < 1.0 {
                weight.max(LEAST_WEIGHT)
            } else {
                1.0
            }
        };
        let mut rows = vec![0.0_f64; self.m];
        for (value, (row, i)) in d.jacobian.iter().zip(&self.jacobian) {
            if !self.held[*i] {
                rows[*row] = rows[*row].max(value.abs());
            }
        }
        self.weight = weight(largest(&d.gradient));
        self.row_weights = rows.into_iter().map(weight).collect();
        self.bound_rows(program, options);
        Ok(())
    }

    /// Memory for derivatives.
    pub fn derivatives(&self) -> Derivatives {
        Derivatives {
            gradient: vec![0.0; self.n],
            jacobian: vec![0.0; self.jacobian.len()],
        }
    }

    /// Values at variables and slacks.
    pub fn evaluate(
        &self,
        program: &mut dyn Program,
        w: &[f64],
        out: &mut Values,
    ) -> Result<(), Undefined> {
        out.rows.resize(self.m, 0.0);
        let objective = program.evaluate(&w[..self.n], &mut out.rows)?;
        out.objective = self.weight * objective;
        for (i, c) in out.rows.iter_mut().enumerate() {
            *c = *c * self.row_weights[i] - self.slack[i].map_or(self.target[i], |s| w[s]);
        }
        if out.objective.is_finite() && out.rows.iter().all(|c| c.is_finite()) {
            return Ok(());
        }
        Err(Undefined("a value is not a finite number".into()))
    }

    /// Derivatives; those by what is held are zero.
    pub fn differentiate(
        &self,
        program: &mut dyn Program,
        w: &[f64],
        out: &mut Derivatives,
    ) -> Result<(), Undefined> {
        program.differentiate(&w[..self.n], &mut out.gradient, &mut out.jacobian)?;
        for (g, held) in out.gradient.iter_mut().zip(&self.held) {
            *g = if *held { 0.0 } else { *g * self.weight };
        }
        for (value, (row, i)) in out.jacobian.iter_mut().zip(&self.jacobian) {
            *value = if self.held[*i] {
                0.0
            } else {
                *value * self.row_weights[*row]
            };
        }
        if out
            .gradient
            .iter()
            .chain(&out.jacobian)
            .all(|v| v.is_finite())
        {
            return Ok(());
        }
        Err(Undefined("a derivative is not a finite number".into()))
    }

    /// Entries of the Hessian of the Lagrangian, whose multipliers are scaled.
    pub fn curve(
        &mut self,
        program: &mut dyn Program,
        w: &[f64],
        y: &[f64],
        out: &mut [f64],
    ) -> Result<(), Undefined> {
        if self.hessian.is_empty() {
            return Ok(());
        }
        for ((s, y), weight) in self.scaled.iter_mut().zip(y).zip(&self.row_weights) {
            *s = match self.curvature {
                Curvature::GaussNewton => 0.0,
                _ => y * weight,
            };
        }
        program.curve(&w[..self.n], self.weight, &self.scaled, out)?;
        for (value, (i, j)) in out.iter_mut().zip(&self.hessian) {
            if self.held[*i] || self.held[*j] {
                *value = 0.0;
            }
        }
        if out.iter().all(|v| v.is_finite()) {
            return Ok(());
        }
        Err(Undefined(
            "a second derivative is not a finite number".into(),
        ))
    }

    /// [`Program::accept`] with multipliers of the scaled rows.
    pub fn accept(&self, program: &mut dyn Program, x: &mut [f64], y: &mut [f64]) -> bool {
        let weights = &self.row_weights;
        y.iter_mut().zip(weights).for_each(|(y, w)| *y *= w);
        let accepted = program.accept(x, y);
        y.iter_mut().zip(weights).for_each(|(y, w)| *y /= w);
        accepted
    }

    /// Adds `J' y` of variables and slacks.
    pub fn add_pull(&self, jacobian: &[f64], y: &[f64], out: &mut [f64]) {
        for (value, (row, i)) in jacobian.iter().zip(&self.jacobian) {
            out[*i] += value * y[*row];
        }
        for (slack, y) in self.slack.iter().zip(y) {
            if let Some(s) = slack {
                out[*s] -= y;
            }
        }
    }

    /// Largest violation of a row, unscaled, and which it is.
    pub fn worst(&self, rows: &[f64]) -> (f64, Option<usize>) {
        let mut out = (0.0, None);
        for (i, (c, w)) in rows.iter().zip(&self.row_weights).enumerate() {
            if c.abs() / w > out.0 {
                out = (c.abs() / w, Some(i));
            }
        }
        out
    }

    /// Distance from the lower and the upper bound, never less than rounding makes it.
    pub fn gaps(&self, w: &[f64], i: usize) -> (f64, f64) {
        let (l, u) = (self.lower[i], self.upper[i]);
        let least = |bound: f64| f64::EPSILON * bound.abs().max(1e-4);
        ((w[i] - l).max(least(l)), (u - w[i]).max(least(u)))
    }

    /// Puts a point inside all bounds.
    pub fn push_inside(&self, w: &mut [f64], push: f64) {
        for (i, w) in w.iter_mut().enumerate() {
            if self.held.get(i) == Some(&true) {
                *w = self.bounds[i].0;
                continue;
            }
            let (l, u) = (self.lower[i], self.upper[i]);
            let part = push * (u - l);
            if l.is_finite() {
                *w = w.max(l + (push * l.abs().max(1.0)).min(part));
            }
            if u.is_finite() {
                *w = w.min(u - (push * u.abs().max(1.0)).min(part));
            }
        }
    }
}

/// Bounds so far apart that there is an inside, whatever their size.
fn widened((l, u): (f64, f64), by: f64) -> (f64, f64) {
    let by_size = |bound: f64| by.max(ROUNDING * bound.abs());
    let is_finite = |bound: f64| bound.is_finite() && by > 0.0;
    (
        if is_finite(l) { l - by_size(l) } else { l },
        if is_finite(u) { u + by_size(u) } else { u },
    )
}
