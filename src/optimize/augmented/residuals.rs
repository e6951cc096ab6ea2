//! The function as half a sum of squares, where it is one.

use super::{Augmented, Param};
use crate::control::{Form, Problem};
use crate::dynamics::{Knot, Observe, StepError};
use crate::optimize::lq::Times;
use nalgebra::DMatrix;

/// Are all costs squares?
///
/// # Errors
/// Which is not, in words.
pub(in crate::optimize) fn squares<D: Observe>(
    dynamics: &D,
    problem: &Problem,
) -> Result<(), String> {
    let Some(i) = problem.costs.iter().position(|c| c.form != Form::Square) else {
        return Ok(());
    };
    let (names, of) = (dynamics.quantities(), problem.costs[i].quantity.index());
    let name = names.get(of).map_or("", |n| &n.0);
    Err(format!(
        "cost {i}, of {name}, is no square, and what is not a sum of squares has no residuals"
    ))
}

/// What a residual is: a factor times a quantity at a knot plus something, by its place there.
struct Row {
    factor: f64,
    place: usize,
    /// By the intervals before and behind the knot, through its share.
    by_intervals: [f64; 2],
}

impl<D: Observe> Augmented<'_, D> {
    /// The residuals `r` at the present point, with `1/2 |r|^2 = L + 1/(2 r) sum l^2 + 1/(2 b) sum m^2`, constant for the
    /// multipliers: knot by knot `sqrt(weight h) (q - target)` of its costs (without `h` where they count once) and
    /// `(l + r c) / sqrt(r)` of its constraints, inequalities not below zero; then `(m + b g) / sqrt(b)`, not below zero, of
    /// every finite bound of the decisions, the lower before the upper. Costs are taken for squares, see [`squares`].
    pub fn residuals(&self) -> Param {
        let (path, lagrangian) = (&self.current.path, &self.lagrangian);
        let (layout, root) = (&path.evaluation.layout, lagrangian.penalty.sqrt());
        let mut out = vec![];
        for at in &path.knots {
            let stage = layout.stage(at.k);
            let values = &path.evaluation.values[layout.values(at.k)];
            for &(i, place) in &stage.costs {
                let (term, _) = self.problem.cost_at(i, at, values[place]);
                // of a square: the slope is the curvature times the distance
                let weighted = term.curvature > 0.0;
                out.push(if weighted {
                    term.slope / term.curvature.sqrt()
                } else {
                    0.0
                });
            }
            for i in layout.constraints(at.k) {
                out.push(lagrangian.estimate(i, path.evaluation.constraints[i]) / root);
            }
        }
        let (bounds, root) = (
            &self.bound_multipliers,
            self.bound_multipliers.penalty.sqrt(),
        );
        for (i, v) in self.current.decisions.iter().enumerate() {
            let (lower, upper) = bounds.estimates(i, *v);
            let (l, u) = bounds.bounds[i];
            out.extend(l.is_finite().then_some(lower / root));
            out.extend(u.is_finite().then_some(upper / root));
        }
        Param::from_vec(out)
    }

    /// Derivatives of [`Augmented::residuals`], as many rows, by the scaled decisions.
    ///
    /// # Errors
    /// When a step cannot be linearized.
    pub fn jacobian(&mut self) -> Result<DMatrix<f64>, StepError> {
        // the model is then of the present point
        self.gradient()?;
        let (rows, at_knot) = self.rows()?;
        let (n, width, m) = (self.scale.len(), self.model.sizes.w(), self.model.sizes.m);
        let controls = self.problem.guess.len();
        let height = self.residuals().len();
        let mut out = DMatrix::zeros(height, n);
        let (model, scale) = (&self.model, &self.scale);
        let mut dp = vec![0.0; model.sizes.q];
        for (j, mut column) in out.column_iter_mut().enumerate() {
            dp.fill(0.0);
            if j >= controls {
                dp[j - controls] = self.by_scale[j - controls];
            }
            let control = |k: usize, _: &[f64], u: &mut [f64]| {
                u.fill(0.0);
                if j < controls && j / m == k {
                    u[j % m] = scale[j].slope(0.0);
                }
            };
            model.linear_rollout(&dp, &mut self.scratch, control, |k, w| {
                for i in at_knot[k]..at_knot[k + 1] {
                    let row = &rows[i * width..(i + 1) * width];
                    column[i] = row.iter().zip(w).map(|(r, w)| r * w).sum();
                }
            });
        }
        let (bounds, root) = (
            &self.bound_multipliers,
            self.bound_multipliers.penalty.sqrt(),
        );
        let mut row = at_knot.last().copied().unwrap_or(0);
        for (i, v) in self.current.decisions.iter().enumerate() {
            let (lower, upper) = bounds.estimates(i, *v);
            let (l, u) = bounds.bounds[i];
            for (estimate, sign) in [(lower, -root), (upper, root)]
                .into_iter()
                .zip([l, u])
                .filter_map(|(side, bound)| bound.is_finite().then_some(side))
            {
                if estimate > 0.0 {
                    out[(row, i)] = sign;
                }
                row += 1;
            }
        }
        Ok(out)
    }

    /// The residuals at a knot, as functions of its quantities.
    fn rows_at(&self, at: &Knot) -> Vec<Row> {
        let (path, lagrangian) = (&self.current.path, &self.lagrangian);
        let layout = &path.evaluation.layout;
        let stage = layout.stage(at.k);
        let values = &path.evaluation.values[layout.values(at.k)];
        let costs = stage.costs.iter().map(|&(i, place)| {
            let (term, _) = self.problem.cost_at(i, at, values[place]);
            let factor = term.curvature.sqrt();
            let share = self.problem.costs[i].share(at);
            let root = match factor > 0.0 && share.weight > 0.0 {
                true => term.slope / factor / (2.0 * share.weight),
                false => 0.0,
            };
            Row {
                factor,
                place,
                by_intervals: [share.by_h_prev, share.by_h].map(|by| by * root),
            }
        });
        let own = layout.constraints(at.k).zip(&stage.constraints);
        let constraints = own.map(|(j, &(i, place))| {
            let estimate = lagrangian.estimate(j, path.evaluation.constraints[j]);
            let acts = estimate > 0.0 || lagrangian.is_equality(j);
            let root = if acts { lagrangian.penalty.sqrt() } else { 0.0 };
            Row {
                factor: self.problem.constraints[i].sign() * root,
                place,
                by_intervals: [0.0; 2],
            }
        });
        costs.chain(constraints).collect()
    }

    /// Rows of the residuals of the knots by `w`, and the first of each knot of the model, with their number at the end.
    fn rows(&mut self) -> Result<(Vec<f64>, Vec<usize>), StepError> {
        let knots = self.current.path.knots.iter();
        let all: Vec<Vec<Row>> = knots.map(|at| self.rows_at(at)).collect();
        let (dynamics, path) = (self.dynamics, &self.current.path);
        let n = self.model.sizes.n;
        let (layout, free) = (&path.evaluation.layout, &self.model.free);
        let mut rows = vec![];
        let mut add = |of: &Row, by: &[f64], times: &Times| {
            let first = rows.len();
            rows.extend(by.iter().map(|r| of.factor * r));
            let [by_h_prev, by_h] = of.by_intervals;
            for (j, before, after) in times.each() {
                rows[first + n + j] += by_h_prev * before + by_h * after;
            }
        };
        if !self.model.has_stages() {
            for (k, all) in all.iter().enumerate() {
                let times = Times::at(layout, free, k);
                for row in all {
                    let by = self.model.row_by_parameters(layout, k, row.place);
                    add(row, by, &times);
                }
            }
            return Ok((rows, vec![0, all.iter().map(Vec::len).sum()]));
        }
        let (t, identity) = (&path.trajectory, dynamics.has_identity_frames());
        let mut first = vec![0];
        for (at, all) in path.knots.iter().zip(&all) {
            first.push(first[at.k] + all.len());
            if all.is_empty() {
                continue;
            }
            let which = &layout.stage(at.k).which;
            let mut values = vec![0.0; which.len()];
            let worker = &mut self.workers[0];
            let (work, local) = (&mut worker.work, &mut worker.local);
            local.observe(dynamics, t, at, which, work, &mut values)?;
            let frame = self.model.frame(at.k);
            let times = Times::at(layout, free, at.k);
            local.follow_interval(dynamics, at, t.state(at.k), frame, &times);
            if at.k < self.model.sizes.steps {
                let mut linear = dynamics.linearize(&path.solved(at), work)?;
                local.eliminate_unknowns(dynamics, which, &mut linear);
            }
            for row in all {
                local.row_by_stage((which.len(), row.place), frame, identity, free, &times);
                add(row, &local.row, &times);
            }
        }
        Ok((rows, first))
    }
}
