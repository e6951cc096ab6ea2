//! The system of a step: assembled, factored with the right inertia, solved with refinement.

use super::model::{Derivatives, Model};
use super::quasi_newton::LowRank;
use super::{Curvature, Program, largest};
use crate::block::{Condensed, Determined, Fallback, Inertia, Symmetric};
use std::collections::HashSet;

/// A direction, or a right-hand side: of variables and slacks, and of the rows.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub w: Vec<f64>,
    pub y: Vec<f64>,
}

impl Direction {
    fn new(w: usize, y: usize) -> Self {
        Self {
            w: vec![0.0; w],
            y: vec![0.0; y],
        }
    }

    fn largest(&self) -> f64 {
        largest(&[largest(&self.w), largest(&self.y)])
    }

    /// Adds a multiple.
    pub fn add(&mut self, factor: f64, other: &Self) {
        let of = |a: &mut [f64], b: &[f64]| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
        };
        of(&mut self.w, &other.w);
        of(&mut self.y, &other.y);
    }
}

/// What is added to the diagonal, of variables and of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regularization {
    pub variables: f64,
    pub rows: f64,
}

/// The first shift of the variables' diagonal where none was needed before; its growth then and later; its fall from one
/// iteration to the next; its least and largest.
const FIRST: f64 = 1e-4;
const FIRST_GROWTH: f64 = 100.0;
const GROWTH: f64 = 8.0;
const FALL: f64 = 1.0 / 3.0;
const LEAST: f64 = 1e-20;
const LARGEST: f64 = 1e40;
/// Shift of dependent rows, times the fourth root of the barrier's parameter.
const OF_ROWS: f64 = 1e-8;
/// By what that grows where zeros remain, and the largest one.
const ROWS_GROWTH: f64 = 100.0;
const LARGEST_OF_ROWS: f64 = 1e-4;
/// Thresholds of pivots: the first, how it grows where solutions are poor, and the largest.
const PIVOTS: (f64, f64, f64) = (1e-8, 0.75, 1e-2);
/// Refinement ends at this residual, relative to what the solution makes of it; more than the second makes a factorization
/// be made again with larger pivots.
const RESIDUAL: (f64, f64) = (1e-10, 1e-5);
const SWEEPS: usize = 10;

/// The matrix, its factors, and memory.
pub struct Kkt {
    /// Without what equations determine, and as it is; the second is made where the first is singular, or not there.
    condensed: Option<Condensed>,
    whole: Option<Symmetric>,
    /// Of the whole, for systems that none of these solves well; and whether it is in use.
    pivoted: Option<Box<Fallback>>,
    is_pivoted: bool,
    /// What is known of the curvature beside the values.
    pub low_rank: Option<LowRank>,
    pattern: Vec<(usize, usize)>,
    group: Vec<usize>,
    /// What [`Condensed::new`] is made of.
    determined: Vec<Determined>,
    beside: Vec<usize>,
    /// Was the last one condensed, and has no more than the diagonal changed since?
    is_condensed: bool,
    is_current: bool,
    /// Of variables and rows: whose own entry stays zero in a condensed matrix.
    bare: Vec<bool>,
    values: Vec<f64>,
    /// First entries of the diagonal and of the Jacobian.
    diagonal: usize,
    jacobian: usize,
    /// Of pivots, and the last shift that was needed: what decides the next factorization.
    pub threshold: f64,
    pub last: f64,
    pub regularization: Regularization,
    /// Of variables and slacks: what the bounds add.
    pub barrier: Vec<f64>,
    redundancy: f64,
    /// Shift of rows that depend on each other.
    dependent: f64,
    local: Vec<f64>,
    residual: Direction,
    correction: Direction,
    pub factorizations: (usize, usize),
}

/// Groups of each row with the variable that it depends on most, of those that no row before has taken; rows with few
/// variables choose first. What a block determines of is a group.
fn paired(model: &Model, jacobian: &[f64], determined: &[Determined]) -> Vec<usize> {
    let mut of_row = vec![vec![]; model.m];
    for (value, (row, i)) in jacobian.iter().zip(&model.jacobian) {
        if *value != 0.0 {
            of_row[*row].push((value.abs(), *i));
        }
    }
    let mut order: Vec<usize> = (0..model.m).filter(|i| model.slack[*i].is_none()).collect();
    order.sort_by_key(|i| of_row[*i].len());
    let mut group: Vec<Option<usize>> = vec![None; model.n + model.m];
    let mut count = 0;
    // what blocks leave: multipliers and variables of the same
    for block in determined {
        for i in &block.among {
            group[*i] = Some(block.stage);
        }
        count = count.max(block.stage + 1);
    }
    for row in order {
        if group[model.n + row].is_some() {
            continue;
        }
        let free = of_row[row].iter().filter(|(_, i)| group[*i].is_none());
        if let Some((_, i)) = free.max_by(|a, b| a.0.total_cmp(&b.0)) {
            (group[*i], group[model.n + row]) = (Some(count), Some(count));
            count += 1;
        }
    }
    group
        .into_iter()
        .map(|g| {
            g.unwrap_or_else(|| {
                count += 1;
                count - 1
            })
        })
        .collect()
}

/// What the program says that its equations determine, of what is one, has no bounds, and costs no curvature of its own.
fn determined(program: &dyn Program, model: &Model) -> Vec<Determined> {
    let is_open = |i: &usize| match i.checked_sub(model.n) {
        None => model.lower[*i] == f64::NEG_INFINITY && model.upper[*i] == f64::INFINITY,
        Some(row) => model.slack[row].is_none(),
    };
    if model.curvature == Curvature::LimitedMemory {
        // every variable has curvature
        return vec![];
    }
    let mut blocks = program.determined();
    let curved: HashSet<usize> = (model.hessian.iter())
        .filter(|(i, j)| i == j)
        .map(|(i, _)| *i)
        .collect();
    blocks.retain(|b| {
        b.zero.iter().chain(&b.among).all(is_open) && !b.zero.iter().any(|i| curved.contains(i))
    });
    blocks
}

impl Kkt {
    pub fn new(program: &dyn Program, model: &Model, jacobian: &[f64], redundancy: f64) -> Self {
        let (n, m) = (model.n, model.m);
        let mut entries = model.hessian.clone();
        let diagonal = entries.len();
        entries.extend((0..n + m).map(|i| (i, i)));
        let first = entries.len();
        entries.extend(model.jacobian.iter().map(|(row, i)| (n + row, *i)));
        let determined = determined(program, model);
        let group = paired(model, jacobian, &[]);
        let wide = model.lower.len();
        let mut values = vec![0.0; entries.len()];
        values[first..].copy_from_slice(jacobian);
        let of_blocks = paired(model, jacobian, &determined);
        let mut out = Self {
            condensed: None,
            whole: None,
            pivoted: None,
            is_pivoted: false,
            low_rank: None,
            pattern: entries,
            group,
            determined,
            beside: of_blocks,
            is_condensed: false,
            is_current: false,
            bare: vec![false; n + m],
            values,
            diagonal,
            jacobian: first,
            threshold: PIVOTS.0,
            last: 0.0,
            regularization: Regularization::default(),
            barrier: vec![0.0; wide],
            redundancy,
            dependent: OF_ROWS,
            local: vec![0.0; n + m],
            residual: Direction::new(wide, m),
            correction: Direction::new(wide, m),
            factorizations: (0, 0),
        };
        out.condense();
        out
    }

    /// Finds what equations determine at the values that there are.
    fn condense(&mut self) {
        let blocks = (&self.determined, &self.beside);
        self.condensed = Condensed::new(&self.pattern, &self.values, blocks.0, blocks.1);
        self.is_condensed = self.condensed.is_some();
        self.is_current = false;
        self.bare.fill(false);
        if let Some(c) = &self.condensed {
            c.without_diagonal().for_each(|i| self.bare[i] = true);
        }
    }

    /// Memory for a direction.
    pub fn direction(&self) -> Direction {
        self.residual.clone()
    }

    /// Factors with as little regularization as gives as many negative eigenvalues as rows. False where none does.
    pub fn factor(&mut self, model: &Model, hessian: &[f64], d: &Derivatives, mu: f64) -> bool {
        self.values[..self.diagonal].copy_from_slice(hessian);
        self.values[self.jacobian..].copy_from_slice(&d.jacobian);
        self.is_current = false;
        self.dependent = OF_ROWS * mu.powf(0.25);
        self.regularization = Regularization {
            variables: 0.0,
            rows: self.redundancy,
        };
        self.is_condensed = self.condensed.is_some();
        self.regularize(model)
    }

    /// From the regularization that there is.
    fn regularize(&mut self, model: &Model) -> bool {
        let expected = Inertia {
            positive: model.n,
            negative: model.m,
            zero: 0,
        };
        let dependent = self.dependent;
        loop {
            self.set_diagonal(model);
            let found = self.factor_values(model);
            let r = &mut self.regularization;
            match found {
                Some(i) if i == expected => {
                    if r.variables > 0.0 {
                        self.last = r.variables;
                    }
                    return true;
                }
                // rows that depend on each other: as zeros, or as rounding that came out positive
                Some(i)
                    if (i.zero > 0 || i.negative < model.m)
                        && r.rows < dependent
                        && r.variables == 0.0 =>
                {
                    r.rows = dependent;
                }
                _ => {
                    r.variables = match (r.variables, self.last) {
                        (0.0, 0.0) => FIRST,
                        (0.0, last) => (FALL * last).max(LEAST),
                        (now, 0.0) => FIRST_GROWTH * now,
                        (now, _) => GROWTH * now,
                    };
                    if found.is_some_and(|i| i.zero > 0) {
                        r.rows = (ROWS_GROWTH * r.rows).clamp(dependent, LARGEST_OF_ROWS);
                    }
                    if r.variables > LARGEST {
                        return false;
                    }
                }
            }
            self.factorizations.1 += 1;
        }
    }

    /// Factors what is in `values`; as a whole where equations do not determine what they did.
    fn factor_values(&mut self, model: &Model) -> Option<Inertia> {
        self.factorizations.0 += 1;
        self.is_pivoted = false;
        self.low_rank.iter_mut().for_each(LowRank::forget);
        if let (true, Some(c)) = (self.is_condensed, &mut self.condensed) {
            let found = if self.is_current {
                c.factor_shifted(&self.values, self.threshold)
            } else {
                c.factor(&self.values, self.threshold)
            };
            self.is_current = found.is_some();
            if found.is_some() {
                return found;
            }
            // others may be independent where it is now
            self.condense();
            self.set_diagonal(model);
            let again =
                (self.condensed.as_mut()).and_then(|c| c.factor(&self.values, self.threshold));
            self.is_current = again.is_some();
            if again.is_some() {
                return again;
            }
            self.is_condensed = false;
            self.set_diagonal(model);
        }
        let (pattern, group) = (&self.pattern, &self.group);
        let whole = self
            .whole
            .get_or_insert_with(|| Symmetric::new(pattern, group));
        whole.factor(&self.values, self.threshold)
    }

    fn set_diagonal(&mut self, model: &Model) {
        let r = self.regularization;
        let known = self.low_rank.as_ref().map_or(0.0, |l| l.scale);
        let to = &mut self.values[self.diagonal..self.jacobian];
        for ((to, held), barrier) in to.iter_mut().zip(&model.held).zip(&self.barrier) {
            *to = if *held {
                1.0
            } else {
                barrier + r.variables + known
            };
        }
        for (to, slack) in to[model.n..].iter_mut().zip(&model.slack) {
            // what eliminating the slack leaves
            *to = -r.rows - slack.map_or(0.0, |s| 1.0 / (self.barrier[s] + r.variables));
        }
        if self.is_condensed {
            let bare = to.iter_mut().zip(&self.bare);
            bare.filter(|(_, bare)| **bare)
                .for_each(|(to, _)| *to = 0.0);
        }
    }

    /// Factors the whole with pivots from all of it; its inertia stays unknown. False where that is singular, too.
    fn pivot(&mut self) -> bool {
        let (dim, pattern) = (self.local.len(), &self.pattern);
        if self.pivoted.is_none() {
            let made = Fallback::of_symmetric(dim, pattern);
            self.pivoted = made.ok().map(Box::new);
        }
        let values = &self.values;
        let factored = (self.pivoted.as_mut()).map(|p| p.factor_values(values).is_ok());
        self.is_pivoted = factored == Some(true);
        if self.is_pivoted {
            self.low_rank.iter_mut().for_each(LowRank::forget);
        }
        self.is_pivoted
    }

    /// One solve, unrefined: `out = K^-1 rhs`.
    fn solve_once(&mut self, model: &Model, rhs: &Direction, out: &mut Direction) {
        self.solve_values(model, rhs, out);
        if let Some(mut known) = self.low_rank.take() {
            known.correct(out, |rhs, by| self.solve_values(model, rhs, by));
            self.low_rank = Some(known);
        }
    }

    /// The same with what is in `values` alone.
    fn solve_values(&mut self, model: &Model, rhs: &Direction, out: &mut Direction) {
        let shift = self.regularization.variables;
        let (n, local) = (model.n, &mut self.local);
        local[..n].copy_from_slice(&rhs.w[..n]);
        for (i, slack) in model.slack.iter().enumerate() {
            local[n + i] = rhs.y[i] + slack.map_or(0.0, |s| rhs.w[s] / (self.barrier[s] + shift));
        }
        let factors = (&mut self.pivoted, &mut self.condensed, &mut self.whole);
        let is_solved = match (self.is_pivoted, self.is_condensed, factors) {
            (true, _, (Some(pivoted), _, _)) => pivoted.solve(local).is_ok(),
            (false, true, (_, Some(condensed), _)) => {
                condensed.solve(local);
                true
            }
            (false, _, (_, _, Some(whole))) => {
                whole.solve(local);
                true
            }
            // nothing was factored
            _ => false,
        };
        if !is_solved {
            local.fill(f64::NAN);
        }
        out.w[..n].copy_from_slice(&local[..n]);
        out.y.copy_from_slice(&local[n..]);
        for (i, slack) in model.slack.iter().enumerate() {
            if let Some(s) = *slack {
                out.w[s] = (rhs.w[s] + out.y[i]) / (self.barrier[s] + shift);
            }
        }
    }

    /// `rhs - K d`.
    fn residual(&self, model: &Model, rhs: &Direction, d: &Direction, out: &mut Direction) {
        let r = self.regularization;
        for i in 0..out.w.len() {
            let own = match self.values[self.diagonal..self.jacobian].get(i) {
                Some(own) if i < model.n => *own,
                _ => self.barrier[i] + r.variables,
            };
            out.w[i] = rhs.w[i] - own * d.w[i];
        }
        if let Some(known) = &self.low_rank {
            known.add_product(1.0, &d.w[..model.n], &mut out.w[..model.n]);
        }
        for (value, &(i, j)) in self.values.iter().zip(&model.hessian) {
            out.w[i] -= value * d.w[j];
            if i != j {
                out.w[j] -= value * d.w[i];
            }
        }
        for (i, out) in out.y.iter_mut().enumerate() {
            let is_bare = self.is_condensed && self.bare[model.n + i];
            *out = rhs.y[i] + if is_bare { 0.0 } else { r.rows * d.y[i] };
        }
        for (value, &(row, i)) in self.values[self.jacobian..].iter().zip(&model.jacobian) {
            out.w[i] -= value * d.y[row];
            out.y[row] -= value * d.w[i];
        }
        for (row, slack) in model.slack.iter().enumerate() {
            if let Some(s) = *slack {
                out.w[s] += d.y[row];
                out.y[row] += d.w[s];
            }
        }
    }

    /// Solves with refinement; where that does not help, as a whole, then with larger pivots, and with pivots from all of it.
    pub fn solve(&mut self, model: &Model, rhs: &Direction, out: &mut Direction) -> bool {
        loop {
            let ratio = self.refined(model, rhs, out);
            if ratio <= RESIDUAL.1 {
                return true;
            }
            self.factorizations.1 += 1;
            let is_factored = if self.is_condensed {
                // what is determined may be so barely
                self.is_condensed = false;
                self.regularize(model)
            } else if self.threshold < PIVOTS.2 {
                self.threshold = self.threshold.powf(PIVOTS.1).min(PIVOTS.2);
                self.factor_values(model).is_some()
            } else if !self.is_pivoted && self.pivot() {
                true
            } else {
                return ratio.is_finite();
            };
            if !is_factored {
                return false;
            }
        }
    }

    fn refined(&mut self, model: &Model, rhs: &Direction, out: &mut Direction) -> f64 {
        let mut residual = std::mem::take(&mut self.residual);
        let mut correction = std::mem::take(&mut self.correction);
        self.solve_once(model, rhs, out);
        let mut ratio = f64::INFINITY;
        for _ in 0..SWEEPS {
            self.residual(model, rhs, out, &mut residual);
            let size = rhs.largest() + out.largest().min(1e6 * rhs.largest());
            let now = if size == 0.0 {
                0.0
            } else {
                residual.largest() / size
            };
            if now <= RESIDUAL.0 || now >= 0.5 * ratio || now.is_nan() {
                if now > ratio {
                    // the last correction did harm
                    out.add(-1.0, &correction);
                } else {
                    ratio = now;
                }
                if now.is_nan() {
                    ratio = f64::NAN;
                }
                break;
            }
            ratio = now;
            self.solve_once(model, &residual, &mut correction);
            out.add(1.0, &correction);
        }
        (self.residual, self.correction) = (residual, correction);
        ratio
    }

    /// Multipliers of the rows that leave least of `gradient`, by the same pattern: `| I J'; J 0 |`, with zeros in `I` where
    /// equations determine what a variable's multiplier is ([`Condensed`]): there nothing is left.
    pub fn least_squares(
        &mut self,
        model: &Model,
        d: &Derivatives,
        gradient: &[f64],
    ) -> Option<Vec<f64>> {
        let known = self.low_rank.take();
        let found = self.least_squares_of(model, d, gradient);
        self.low_rank = known;
        found
    }

    fn least_squares_of(
        &mut self,
        model: &Model,
        d: &Derivatives,
        gradient: &[f64],
    ) -> Option<Vec<f64>> {
        self.values[..self.diagonal].fill(0.0);
        self.values[self.jacobian..].copy_from_slice(&d.jacobian);
        self.is_current = false;
        self.barrier.fill(1.0);
        self.regularization = Regularization {
            variables: 0.0,
            rows: self.redundancy,
        };
        self.is_condensed = self.condensed.is_some();
        self.set_diagonal(model);
        let mut found = self.factor_values(model)?;
        if found.zero > 0 {
            self.regularization.rows = OF_ROWS;
            self.set_diagonal(model);
            found = self.factor_values(model)?;
        }
        if found.zero > 0 {
            return None;
        }
        let mut rhs = self.direction();
        rhs.w.copy_from_slice(gradient);
        rhs.w.iter_mut().for_each(|g| *g = -*g);
        rhs.y.fill(0.0);
        let mut out = self.direction();
        self.solve(model, &rhs, &mut out).then_some(out.y)
    }
}

/// Names of the worst rows.
pub fn name_rows(program: &dyn Program, rows: &[f64], weights: &[f64]) -> String {
    const NAMED: usize = 3;
    let mut order: Vec<(f64, usize)> = rows
        .iter()
        .zip(weights)
        .map(|(c, w)| c.abs() / w)
        .zip(0..)
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worst = order.iter().take(NAMED).filter(|(c, _)| *c > 0.0);
    let named: Vec<String> = worst
        .map(|(c, i)| format!("{} by {c:.3e}", program.row_name(*i)))
        .collect();
    named.join(", ")
}

#[cfg(test)]
mod tests;
