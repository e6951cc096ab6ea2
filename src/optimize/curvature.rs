//! Gauss-Newton curvature of a problem by its controls and free parameters, from the linearized steps in the joint
//! chart.
//!
//! With the changes `s = (dx, dp)` of state and free parameters and `d` of the control,
//!
//! ```text
//! s_(k+1) = F_k (s_k, d_k),    s_0 = S dp,    H = sum_k (s_k, d_k)' H_k (s_k, d_k)
//! ```
//!
//! and `H_k` the squares of the observed quantities' rows by their weights. `H` by all controls is full and, where the
//! system is unstable, hopelessly conditioned; eliminating the controls from the last to the first factors it into
//! blocks of one knot each, and yields the feedback `K_k` that keeps the system near a linear prediction.

use crate::control::Problem;
use crate::dynamics::{Dims, Frame, Knot, LinearModel, Observe, Rows, StepError};
use crate::rollout::Trajectory;
use nalgebra::{Cholesky, DMatrix, DVector, DVectorView, Dyn};

/// Relative to the largest curvature of a control: what is added to those that nothing costs.
const FLOOR: f64 = 1e-12;

/// What the curvature is made of besides the problem.
pub struct Weights<'a> {
    /// Of each constraint at each of its knots; none for zero.
    pub constraints: &'a [f64],
    /// Derivative of every control and free parameter by the decision that stands for it.
    pub slopes: &'a [f64],
    /// Curvature by each decision itself.
    pub own: &'a [f64],
}

/// The curvature, knot by knot.
pub struct Curvature {
    /// State with parameters, parameters, controls.
    sizes: (usize, usize, usize),
    stages: Vec<Stage>,
    /// s x q
    start: DMatrix<f64>,
    /// Of the parameters alone.
    corner: DMatrix<f64>,
    /// Of the blocks: the parameters', the last control's, and so on to the first's.
    factors: Vec<Cholesky<f64, Dyn>>,
}

struct Stage {
    frame: Frame,
    /// s x (s + m)
    f: DMatrix<f64>,
    /// (s + m)^2
    h: DMatrix<f64>,
    /// m x s
    gain: DMatrix<f64>,
}

impl Curvature {
    /// At a trajectory, factored: costs with their weights, constraints with those given.
    ///
    /// # Errors
    /// When a step cannot be linearized or a quantity not observed.
    pub fn new<D: Observe>(
        dynamics: &D,
        problem: &Problem,
        t: &Trajectory,
        weights: &Weights,
        w: &mut D::Work,
    ) -> Result<Self, StepError> {
        let (dims, steps) = (dynamics.dims(), t.steps());
        let free = problem.free_parameters();
        let (n, q, m) = (dims.ndx, free.len(), dims.nu);
        let s = n + q;
        let (of_controls, of_parameters) = weights.slopes.split_at(steps * m);
        let scaled = |mut columns: DMatrix<f64>, slopes: &[f64]| {
            for (mut c, slope) in columns.column_iter_mut().zip(slopes) {
                c *= *slope;
            }
            columns
        };
        let by_parameters = |p: &DMatrix<f64>| scaled(p.select_columns(&free), of_parameters);
        let mut at = t.knot(0);
        let mut frame = dynamics.frame(&at, t.state(0), &t.p, None, w)?;
        let mut start = DMatrix::identity(s, q);
        if q > 0 {
            let by =
                dynamics.initial_by_parameters(&problem.coordinates, &problem.rates, &t.p, w)?;
            start
                .rows_mut(0, n)
                .copy_from(&by_parameters(&(frame.project() * by)));
            start.rows_mut(n, q).fill_with_identity();
        }
        let mut model = LinearModel::new(&dims);
        let layout = problem.layout();
        let mut stages = Vec::with_capacity(steps);
        let mut last: Option<DMatrix<f64>> = None;
        for k in 0..=steps {
            let stage = layout.stage(k);
            // the control at the end is that of the last step
            let slopes = of_controls
                .get(k.min(steps.saturating_sub(1)) * m..)
                .unwrap_or(&[]);
            let mut h = DMatrix::zeros(s + m, s + m);
            if !stage.which.is_empty() {
                let (values, by) = rows(dynamics, &dims, t, &at, &stage.which, w)?;
                let mut row = DMatrix::zeros(values.len(), s + m);
                row.columns_mut(0, n).copy_from(&frame.times_embed(&by.x));
                row.columns_mut(n, q).copy_from(&by_parameters(&by.p));
                row.columns_mut(s, m).copy_from(&scaled(by.u, slopes));
                let curvature = |&(i, place): &(usize, usize)| {
                    let (.., weight) = problem.costs[i].at(values[place], at.h);
                    (place, weight)
                };
                let own = weights
                    .constraints
                    .get(layout.constraints(k))
                    .unwrap_or(&[]);
                let constraints = stage.constraints.iter().map(|&(_, place)| place).zip(own);
                for (place, weight) in stage
                    .costs
                    .iter()
                    .map(curvature)
                    .chain(constraints.map(|(place, weight)| (place, *weight)))
                    .filter(|(_, weight)| *weight > 0.0)
                {
                    let row = row.row(place);
                    h.ger(weight, &row.transpose(), &row.transpose(), 1.0);
                }
            }
            if k == steps {
                last = Some(h);
                break;
            }
            let after = t.knot_after(&at);
            let next = dynamics.frame(&after, t.state(k + 1), &t.p, Some(&frame), w)?;
            dynamics
                .linearize(&t.solved(&at), w)?
                .linear_model(&frame, &next, &mut model);
            let mut f = DMatrix::zeros(s, s + m);
            f.view_mut((0, 0), (n, n)).copy_from(&model.a);
            f.view_mut((0, n), (n, q))
                .copy_from(&by_parameters(&model.p));
            f.view_mut((0, s), (n, m))
                .copy_from(&scaled(model.b.clone(), slopes));
            f.view_mut((n, n), (q, q)).fill_with_identity();
            for (i, own) in weights.own[k * m..(k + 1) * m].iter().enumerate() {
                h[(s + i, s + i)] += own;
            }
            let gain = DMatrix::zeros(m, s);
            stages.push(Stage { frame, f, h, gain });
            (frame, at) = (next, after);
        }
        let mut corner =
            DMatrix::from_diagonal(&DVectorView::from_slice(&weights.own[steps * m..], q));
        if let Some(last) = last {
            match stages.last_mut() {
                // by state and control of the last step
                Some(stage) => {
                    let mut through = DMatrix::zeros(s + m, s + m);
                    through.rows_mut(0, s).copy_from(&stage.f);
                    through.view_mut((s, s), (m, m)).fill_with_identity();
                    stage.h += through.tr_mul(&(last * &through));
                }
                None => corner += start.tr_mul(&(last.view((0, 0), (s, s)) * &start)),
            }
        }
        let mut curvature = Self {
            sizes: (s, q, m),
            factors: Vec::with_capacity(stages.len() + 1),
            stages,
            start,
            corner,
        };
        curvature.factor(0.0);
        Ok(curvature)
    }

    /// Factors it with the diagonals of its blocks made larger by the factor `1 + damping`.
    pub fn factor(&mut self, damping: f64) {
        let (s, _, m) = self.sizes;
        let mut largest = 0.0;
        let mut value = DMatrix::zeros(s, s);
        self.factors.clear();
        for stage in self.stages.iter_mut().rev() {
            let both = &stage.h + stage.f.tr_mul(&(&value * &stage.f));
            let own = both.view((s, s), (m, m)).into_owned();
            let factor = positive(own, damping, &mut largest);
            let cross = both.view((s, 0), (m, s));
            stage.gain.copy_from(&cross);
            factor.solve_mut(&mut stage.gain);
            stage.gain.neg_mut();
            value.copy_from(&both.view((0, 0), (s, s)));
            value.gemm_tr(1.0, &cross, &stage.gain, 1.0);
            value = 0.5 * (&value + value.transpose());
            self.factors.push(factor);
        }
        let corner = &self.corner + self.start.tr_mul(&(&value * &self.start));
        self.factors.push(positive(corner, damping, &mut 0.0));
    }

    /// `H^-1 g`.
    pub fn solve(&self, g: &DVector<f64>) -> DVector<f64> {
        let (s, q, m) = self.sizes;
        let mut out = g.clone();
        let mut adjoint = DVector::zeros(s);
        for ((k, stage), factor) in self.stages.iter().enumerate().rev().zip(&self.factors) {
            let both = stage.f.tr_mul(&adjoint);
            let mut own = out.rows(k * m, m) + both.rows(s, m);
            adjoint.copy_from(&both.rows(0, s));
            adjoint.gemv_tr(1.0, &stage.gain, &own, 1.0);
            factor.solve_mut(&mut own);
            out.rows_mut(k * m, m).copy_from(&own);
        }
        let mut parameters = out.rows_mut(self.stages.len() * m, q);
        parameters.gemv_tr(1.0, &self.start, &adjoint, 1.0);
        if let Some(factor) = self.factors.last() {
            factor.solve_mut(&mut parameters);
        }
        let mut at = &self.start * parameters;
        for (k, stage) in self.stages.iter().enumerate() {
            let mut own = out.rows_mut(k * m, m);
            own.gemv(1.0, &stage.gain, &at, 1.0);
            at = stage.f.columns(0, s) * &at + stage.f.columns(s, m) * &own;
        }
        out
    }

    /// Changes of the state at every knot but the last that a change `d` of the decisions brings about, to first order.
    pub fn response(&self, d: &DVector<f64>) -> Vec<DVector<f64>> {
        let (s, q, m) = self.sizes;
        let n = s - q;
        let mut at = &self.start * d.rows(self.stages.len() * m, q);
        let mut out = Vec::with_capacity(self.stages.len());
        for (k, stage) in self.stages.iter().enumerate() {
            out.push(at.rows(0, n).into_owned());
            at = stage.f.columns(0, s) * &at + stage.f.columns(s, m) * d.rows(k * m, m);
        }
        out
    }

    /// `d' H d`, without floor and damping.
    pub fn square(&self, d: &DVector<f64>) -> f64 {
        let (s, q, m) = self.sizes;
        let p = d.rows(self.stages.len() * m, q);
        let mut sum = p.dot(&(&self.corner * p));
        let mut both = DVector::zeros(s + m);
        both.rows_mut(0, s).copy_from(&(&self.start * p));
        for (k, stage) in self.stages.iter().enumerate() {
            both.rows_mut(s, m).copy_from(&d.rows(k * m, m));
            sum += both.dot(&(&stage.h * &both));
            let next = &stage.f * &both;
            both.rows_mut(0, s).copy_from(&next);
        }
        sum
    }

    /// The joint chart's frame at knot `k`, and what the control answers to a change of the state, m x ndx.
    pub fn feedback(&self, k: usize) -> (&Frame, nalgebra::DMatrixView<'_, f64>) {
        let (s, q, _) = self.sizes;
        let stage = &self.stages[k];
        (&stage.frame, stage.gain.columns(0, s - q))
    }

    /// Curvatures by each control, those after it free, and by the parameters, all controls free.
    pub fn diagonal(&self) -> Vec<f64> {
        let rows = |l: &DMatrix<f64>| l.row_iter().map(|r| r.norm_squared()).collect::<Vec<_>>();
        self.factors.iter().flat_map(|c| rows(&c.l())).collect()
    }
}

/// Factors a block, damped, and with as much on its diagonal as makes it positive: `largest`, that of the diagonals so
/// far, says what is little.
fn positive(mut block: DMatrix<f64>, damping: f64, largest: &mut f64) -> Cholesky<f64, Dyn> {
    for i in 0..block.nrows() {
        *largest = f64::max(*largest, block[(i, i)]);
        block[(i, i)] *= 1.0 + damping;
    }
    let mut floor = FLOOR * largest.max(FLOOR);
    while floor.is_finite() {
        for i in 0..block.nrows() {
            block[(i, i)] += floor;
        }
        if let Some(c) = block.clone().cholesky() {
            return c;
        }
        floor *= 100.0;
    }
    // not even numbers
    Cholesky::new_unchecked(DMatrix::identity(block.nrows(), block.nrows()))
}

/// Values and derivatives of quantities at a knot; those of the step's unknowns become such of what goes into the step.
fn rows<D: Observe>(
    dynamics: &D,
    dims: &Dims,
    t: &Trajectory,
    at: &Knot,
    which: &[usize],
    w: &mut D::Work,
) -> Result<(Vec<f64>, Rows), StepError> {
    let seen = t.seen(at);
    let mut values = vec![0.0; which.len()];
    let mut by = Rows::new(dims, which.len());
    dynamics
        .observe(&seen, which, w, &mut values)?
        .rows(&mut by);
    if at.k == t.steps() || !which.iter().any(|q| dynamics.needs_unknowns(*q)) {
        return Ok((values, by));
    }
    let mut linear = dynamics.linearize(&t.solved(at), w)?;
    let (mut adjoint, mut inputs) = (dims.outputs(), dims.inputs());
    for (i, q) in which.iter().enumerate() {
        if dynamics.needs_unknowns(*q) {
            let own = by.y.row(i);
            adjoint.y.iter_mut().zip(&own).for_each(|(a, b)| *a = *b);
            linear.pull(&adjoint, &mut inputs);
            for (m, d) in [
                (&mut by.x, &inputs.x),
                (&mut by.u, &inputs.u),
                (&mut by.p, &inputs.p),
            ] {
                m.row_mut(i).iter_mut().zip(d).for_each(|(m, d)| *m += d);
            }
        }
    }
    Ok((values, by))
}
