//! The linear-quadratic model of a problem along a path.
//!
//! With the changes `w = (dx, dp, du)` of a knot in the joint chart and of the free parameters,
//!
//! ```text
//! dx_(k+1) = F_k w_k + gap_k,    L = sum_k l_k' w_k + 1/2 w_k' H_k w_k + the same at the end,    dx_0 = S dp
//! ```
//!
//! `H` is Gauss and Newton's: of the quantities' squares, not of their curvature. Quantities at the end see the control
//! of the last step, so that `w_N = (dx_N, dp, du_(N-1))`.

use super::backward::Policy;
use super::dense::{dot, gemv, gemv_transposed, quadratic_form};
use super::lagrangian::Lagrangian;
use super::path::Path;
use super::secant::Secant;
use crate::control::Problem;
use crate::dynamics::{
    Dims, Frame, Inputs, Knot, LinearModel, Linearization, Observe, Outputs, Rows, StepError,
};
use nalgebra::DMatrix;

/// Sizes of a stage's matrices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Steps.
    pub steps: usize,
    /// State, joint chart.
    pub n: usize,
    /// Free parameters.
    pub q: usize,
    /// Controls.
    pub m: usize,
}

impl Sizes {
    /// State and parameters.
    pub fn s(&self) -> usize {
        self.n + self.q
    }

    /// State, parameters, and controls.
    pub fn w(&self) -> usize {
        self.n + self.q + self.m
    }
}

/// The model, with the memory to make it.
#[derive(Debug)]
pub(super) struct Model {
    pub sizes: Sizes,
    /// n x w a step.
    pub f: Vec<f64>,
    /// n a step.
    pub gap: Vec<f64>,
    /// w a knot, the last included.
    pub l: Vec<f64>,
    /// w x w a knot, the last included.
    pub h: Vec<f64>,
    /// n x q.
    pub start: Vec<f64>,
    /// What `h` lacks.
    pub secant: Secant,
    /// One a knot; one in all where they are the identity.
    pub frames: Vec<Frame>,
    /// Indices of the free parameters.
    pub free: Vec<usize>,
    /// Largest parameter of the central path that its derivatives used, m^2/s^2.
    pub kappa: f64,
    linear: LinearModel,
    /// By number of rows.
    rows: Vec<Option<Rows>>,
    row: Vec<f64>,
    adjoint: Outputs,
    inputs: Inputs,
    identity: bool,
    /// Weight and gradient of each quantity of a stage.
    weights: Vec<(f64, f64)>,
}

impl Model {
    pub fn new<D: Observe>(dynamics: &D, problem: &Problem, path: &Path) -> Self {
        let dims: Dims = dynamics.dims();
        let free = problem.free_parameters();
        let sizes = Sizes {
            steps: problem.intervals.len(),
            n: dims.ndx,
            q: free.len(),
            m: dims.nu,
        };
        let (w, knots) = (sizes.w(), sizes.steps + 1);
        let layout = &path.evaluation.layout;
        let mut rows: Vec<Option<Rows>> = vec![];
        for k in 0..knots {
            let count = layout.stage(k).which.len();
            rows.resize(rows.len().max(count + 1), None);
            rows[count].get_or_insert_with(|| Rows::new(&dims, count));
        }
        Self {
            sizes,
            f: vec![0.0; sizes.steps * sizes.n * w],
            gap: vec![0.0; sizes.steps * sizes.n],
            l: vec![0.0; knots * w],
            h: vec![0.0; knots * w * w],
            start: vec![0.0; sizes.n * sizes.q],
            secant: Secant::new(&sizes, path.evaluation.values.len()),
            frames: vec![],
            free,
            kappa: 0.0,
            linear: LinearModel::new(&dims),
            weights: Vec::with_capacity(rows.len()),
            rows,
            row: vec![0.0; w],
            adjoint: dims.outputs(),
            inputs: dims.inputs(),
            identity: dynamics.has_identity_frames(),
        }
    }

    /// The frame at knot `k`.
    pub fn frame(&self, k: usize) -> &Frame {
        &self.frames[if self.identity { 0 } else { k }]
    }

    /// Makes the model at a path.
    pub fn build<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        lagrangian: &Lagrangian,
        knots: &[Knot],
        path: &mut Path,
        w: &mut D::Work,
    ) -> Result<(), StepError> {
        let Sizes { steps, n, .. } = self.sizes;
        self.l.fill(0.0);
        self.h.fill(0.0);
        self.kappa = 0.0;
        self.secant.begin(&mut self.f);
        if !self.identity {
            self.frames.clear();
        }
        let t = &path.trajectory;
        if self.frames.is_empty() {
            let first = dynamics.frame(&knots[0], t.state(0), &t.p, None, w)?;
            self.frames.push(first);
        }
        if !self.free.is_empty() {
            let by =
                dynamics.initial_by_parameters(&problem.coordinates, &problem.rates, &t.p, w)?;
            let by = self.frame(0).project() * by;
            for (j, &p) in self.free.iter().enumerate() {
                self.start[j * n..(j + 1) * n].copy_from_slice(by.column(p).as_slice());
            }
        }
        let mut gap = 0.0;
        for at in &knots[..steps] {
            let k = at.k;
            let t = &path.trajectory;
            if !self.identity {
                let next =
                    dynamics.frame(&knots[k + 1], t.state(k + 1), &t.p, self.frames.last(), w)?;
                self.frames.push(next);
            }
            self.observe(dynamics, path, at, w)?;
            let mut linear = dynamics.linearize(&path.solved(at), w)?;
            self.kappa = self.kappa.max(linear.certificate().kappa);
            self.see_unknowns(dynamics, path, k, &mut linear);
            self.accumulate(problem, lagrangian, path, at);
            let (from, to) = match self.identity {
                true => (&self.frames[0], &self.frames[0]),
                false => (&self.frames[k], &self.frames[k + 1]),
            };
            linear.linear_model(from, to, &mut self.linear);
            if path.has_gaps {
                let (t, own) = (&path.trajectory, &mut self.gap[k * n..(k + 1) * n]);
                let after = &knots[k + 1];
                dynamics.difference(after, t.state(k + 1), &t.p, to, path.end(k), w, own);
                gap += own.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            }
            self.store(k);
        }
        if !path.has_gaps {
            self.gap.fill(0.0);
        }
        self.observe(dynamics, path, &knots[steps], w)?;
        self.accumulate(problem, lagrangian, path, &knots[steps]);
        path.gap = gap;
        self.secant.update(&self.sizes, &self.f, &self.l);
        Ok(())
    }

    /// Rows of the quantities at a knot, at state, control and parameters held apart.
    fn observe<D: Observe>(
        &mut self,
        dynamics: &D,
        path: &mut Path,
        at: &Knot,
        w: &mut D::Work,
    ) -> Result<(), StepError> {
        let e = &mut path.evaluation;
        let stage = e.layout.stage(at.k);
        let Some(rows) = &mut self.rows[stage.which.len()] else {
            return Ok(());
        };
        if stage.which.is_empty() {
            return Ok(());
        }
        let seen = path.trajectory.seen(at);
        let values = &mut e.values[e.layout.values(at.k)];
        dynamics.observe(&seen, &stage.which, w, values)?.rows(rows);
        Ok(())
    }

    /// What is seen of the unknowns depends on state, control and parameters through the step just linearized.
    fn see_unknowns<D: Observe>(
        &mut self,
        dynamics: &D,
        path: &Path,
        k: usize,
        linear: &mut Linearization<D>,
    ) {
        let which = &path.evaluation.layout.stage(k).which;
        let Some(rows) = &mut self.rows[which.len()] else {
            return;
        };
        for (i, &q) in which.iter().enumerate() {
            if !dynamics.needs_unknowns(q) {
                continue;
            }
            self.adjoint.x.fill(0.0);
            for (a, y) in self.adjoint.y.iter_mut().zip(rows.y.row(i).iter()) {
                *a = *y;
            }
            linear.pull(&self.adjoint, &mut self.inputs);
            let add = |m: &mut DMatrix<f64>, d: &[f64]| {
                m.row_mut(i).iter_mut().zip(d).for_each(|(m, d)| *m += d);
            };
            add(&mut rows.x, &self.inputs.x);
            add(&mut rows.u, &self.inputs.u);
            add(&mut rows.p, &self.inputs.p);
        }
    }

    /// How far all decisions together change the quantity at `place` of a knot to first order, each over its range, or by
    /// its size where it has none.
    pub fn reach<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        path: &mut Path,
        (at, place): (&Knot, usize),
        w: &mut D::Work,
    ) -> Result<f64, StepError> {
        let Sizes { steps, n, q, m } = self.sizes;
        let (s, width) = (n + q, self.sizes.w());
        self.observe(dynamics, path, at, w)?;
        if at.k < steps {
            let mut linear = dynamics.linearize(&path.solved(at), w)?;
            self.see_unknowns(dynamics, path, at.k, &mut linear);
        }
        let count = path.evaluation.layout.stage(at.k).which.len();
        self.row_by_stage(count, place, at.k);
        let range = |v: f64, (l, u): (f64, f64)| {
            let range = u - l;
            if range.is_finite() {
                range
            } else {
                v.abs().max(1.0)
            }
        };
        let t = &path.trajectory;
        let of_controls = |by: &[f64], k: usize| {
            let all = by.iter().zip(t.control(k)).zip(&problem.bounds);
            all.map(|((g, u), b)| g.abs() * range(*u, *b)).sum::<f64>()
        };
        let mut sum = of_controls(&self.row[s..], at.k);
        let mut adjoint = self.row[..n].to_vec();
        let mut by_parameters = self.row[n..s].to_vec();
        for k in (0..at.k).rev() {
            let mut by = vec![0.0; width];
            gemv_transposed(
                n,
                &self.f[k * n * width..(k + 1) * n * width],
                &adjoint,
                &mut by,
            );
            adjoint.copy_from_slice(&by[..n]);
            by_parameters
                .iter_mut()
                .zip(&by[n..s])
                .for_each(|(p, b)| *p += b);
            sum += of_controls(&by[s..s + m], k);
        }
        gemv_transposed(n, &self.start, &adjoint, &mut by_parameters);
        for (g, &p) in by_parameters.iter().zip(&self.free) {
            sum += g.abs() * range(t.p[p], problem.parameter_bounds[p]);
        }
        Ok(sum)
    }

    /// Row `i` of the stage with `count` rows, by `w`.
    fn row_by_stage(&mut self, count: usize, i: usize, k: usize) {
        let Some(rows) = &self.rows[count] else {
            return;
        };
        let Sizes { n, q, .. } = self.sizes;
        // row i of a matrix with `count` rows
        let of = |m: &'_ DMatrix<f64>, j: usize| m.as_slice()[j * count + i];
        if self.identity {
            for (j, r) in self.row[..n].iter_mut().enumerate() {
                *r = of(&rows.x, j);
            }
        } else {
            let free = &mut self.inputs.x;
            for (j, f) in free.iter_mut().enumerate() {
                *f = of(&rows.x, j);
            }
            self.frames[k].embed_transposed(free, &mut self.row[..n]);
        }
        for (r, &p) in self.row[n..].iter_mut().zip(&self.free) {
            *r = of(&rows.p, p);
        }
        for (j, r) in self.row[n + q..].iter_mut().enumerate() {
            *r = of(&rows.u, j);
        }
    }

    /// Adds costs and constraints of a knot to `l` and `h`.
    fn accumulate(&mut self, problem: &Problem, lagrangian: &Lagrangian, path: &Path, at: &Knot) {
        let e = &path.evaluation;
        let (stage, values) = (e.layout.stage(at.k), &e.values[e.layout.values(at.k)]);
        let count = stage.which.len();
        self.weights.clear();
        self.weights.resize(count, (0.0, 0.0));
        for &(i, place) in &stage.costs {
            let (_, slope, curvature) = problem.costs[i].at(values[place], at.h);
            self.weights[place].0 += curvature;
            self.weights[place].1 += slope;
        }
        let first = e.layout.constraints(at.k).start;
        for (j, &(i, place)) in stage.constraints.iter().enumerate() {
            let c = &problem.constraints[i];
            let force = lagrangian.force(first + j, c.value_at(values[place]));
            if force > 0.0 || lagrangian.is_equality(first + j) {
                self.weights[place].0 += lagrangian.penalty;
                self.weights[place].1 += c.sign() * force;
            }
        }
        let size = self.sizes.w();
        let places = e.layout.values(at.k);
        for i in 0..count {
            let (weight, slope) = self.weights[i];
            self.row_by_stage(count, i, at.k);
            if self.secant.learning {
                self.secant.see(at.k, places.start + i, slope, &self.row);
            }
            if weight == 0.0 && slope == 0.0 {
                continue;
            }
            let l = &mut self.l[at.k * size..(at.k + 1) * size];
            let h = &mut self.h[at.k * size * size..(at.k + 1) * size * size];
            for (j, r) in self.row.iter().enumerate().filter(|(_, r)| **r != 0.0) {
                l[j] += slope * r;
            }
            if let Some(j) = single(&self.row) {
                h[j * size + j] += weight * self.row[j] * self.row[j];
                continue;
            }
            for (column, r) in h.chunks_exact_mut(size).zip(&self.row) {
                let scale = weight * r;
                for (h, r) in column.iter_mut().zip(&self.row) {
                    *h += scale * r;
                }
            }
        }
    }

    /// Keeps the linear model of step `k`.
    fn store(&mut self, k: usize) {
        let Sizes { n, q, .. } = self.sizes;
        let size = self.sizes.w() * n;
        let f = &mut self.f[k * size..(k + 1) * size];
        let (a, rest) = f.split_at_mut(n * n);
        let (p, b) = rest.split_at_mut(n * q);
        a.copy_from_slice(self.linear.a.as_slice());
        b.copy_from_slice(self.linear.b.as_slice());
        for (j, &i) in self.free.iter().enumerate() {
            p[j * n..(j + 1) * n].copy_from_slice(self.linear.p.column(i).as_slice());
        }
    }

    /// First and second derivative of `L` along the model's rollout with the given feedforward and feedback and
    /// change of parameters: `L(a) = L + a d1 + a^2/2 d2`; and the sum of the changes' squares, weighted by the scales
    /// of controls and parameters.
    pub fn along(&self, policy: &Policy, scale: &[f64], scratch: &mut Scratch) -> (f64, f64, f64) {
        let Sizes { steps, n, m, .. } = self.sizes;
        let mut size = 0.0;
        let (s, width) = (self.sizes.s(), self.sizes.w());
        let Scratch { w, next } = scratch;
        w.fill(0.0);
        w[n..s].copy_from_slice(&policy.dp);
        next.fill(0.0);
        gemv(n, &self.start, &policy.dp, next);
        w[..n].copy_from_slice(next);
        let (mut d1, mut d2) = (0.0, 0.0);
        for k in 0..=steps {
            if k < steps {
                let (x, u) = w.split_at_mut(s);
                u.copy_from_slice(&policy.feedforward[k * m..(k + 1) * m]);
                gemv(m, policy.feedback(k), x, u);
            }
            size += scale.iter().zip(&*w).map(|(s, w)| s * w * w).sum::<f64>();
            d1 += dot(&self.l[k * width..(k + 1) * width], w);
            d2 += quadratic_form(&self.h[k * width * width..(k + 1) * width * width], w);
            if self.secant.used {
                d2 += quadratic_form(self.secant.block(k), w);
            }
            if k < steps {
                next.copy_from_slice(&self.gap[k * n..(k + 1) * n]);
                gemv(n, &self.f[k * n * width..(k + 1) * n * width], w, next);
                w[..n].copy_from_slice(next);
            }
        }
        (d1, d2, size)
    }
}

/// The only place that is not zero, as for quantities that are a state or a control.
fn single(row: &[f64]) -> Option<usize> {
    let first = row.iter().position(|r| *r != 0.0)?;
    row[first + 1..].iter().all(|r| *r == 0.0).then_some(first)
}

/// Memory of [`Model::along`].
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    pub w: Vec<f64>,
    pub next: Vec<f64>,
}

impl Scratch {
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            w: vec![0.0; sizes.w()],
            next: vec![0.0; sizes.n],
        }
    }
}
