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

use super::dense::{dot, gemv, gemv_transposed, quadratic_form};
use super::knot::{Linearizer, Slots, Times, Worker};
use super::lagrangian::Lagrangian;
use super::path::Path;
use super::riccati::Policy;
use super::secant::Secant;
use super::sensitivity::{Along, Sensitivities};
use crate::control::{Evaluation, Problem};
use crate::dynamics::{
    Certificate, Dims, Frame, Knot, Observe, StepError, Stoppable, stop_requested,
};
use crate::optimize::scale::extent;

/// Sizes of a stage's matrices.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
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

/// The model.
#[derive(Debug)]
pub struct Model {
    pub sizes: Sizes,
    /// n x w a step.
    pub f: Vec<f64>,
    /// n a step.
    pub gap: Vec<f64>,
    /// w a knot, the last included.
    pub l: Vec<f64>,
    /// w x w a knot, the last included.
    pub h: Vec<f64>,
    /// Of all quantities, w each.
    pub(super) rows: Vec<f64>,
    /// n x q.
    pub start: Vec<f64>,
    /// What `h` lacks.
    pub secant: Secant,
    /// One a knot; one in all where they are the identity.
    pub frames: Vec<Frame>,
    /// Indices of the free parameters.
    pub free: Vec<usize>,
    /// Of all its derivatives.
    pub certificate: Certificate,
    identity: bool,
    /// Of a problem without controls.
    pub(super) sensitivities: Option<Sensitivities>,
}

impl Model {
    pub fn new<D: Observe>(dynamics: &D, problem: &Problem) -> Self {
        let dims: Dims = dynamics.dims();
        let sizes = Sizes {
            steps: problem.intervals.len(),
            n: dims.ndx,
            q: problem.free_parameters().len(),
            m: dims.nu,
        };
        Self::with_sizes(dynamics, problem, sizes)
    }

    pub(super) fn with_sizes<D: Observe>(dynamics: &D, problem: &Problem, sizes: Sizes) -> Self {
        let (w, knots) = (sizes.w(), sizes.steps + 1);
        Self {
            sizes,
            f: vec![0.0; sizes.steps * sizes.n * w],
            gap: vec![0.0; sizes.steps * sizes.n],
            l: vec![0.0; knots * w],
            h: vec![0.0; knots * w * w],
            rows: vec![],
            start: vec![0.0; sizes.n * sizes.q],
            secant: Secant::new(sizes),
            frames: vec![],
            free: problem.free_parameters(),
            certificate: Certificate::default(),
            identity: dynamics.has_identity_frames(),
            sensitivities: None,
        }
    }

    /// The frame at knot `k`.
    pub fn frame(&self, k: usize) -> &Frame {
        &self.frames[self.frame_index(k)]
    }

    /// Its place among the frames.
    pub fn frame_index(&self, k: usize) -> usize {
        if self.identity { 0 } else { k }
    }

    /// Makes the model at a path: frames one after the other, then every knot by itself.
    pub fn build<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        lagrangian: &Lagrangian,
        path: &mut Path,
        workers: &mut [Worker<D::Work>],
    ) -> Result<(), StepError> {
        if let Some(mut own) = self.sensitivities.take() {
            let along = Along::of(dynamics, problem, path, &self.free);
            self.rows.clear();
            let run = own.run(&along, workers, |seen| {
                self.rows.extend_from_slice(seen.rows);
            });
            self.sensitivities = Some(own);
            self.certificate = run?;
            return self.reweigh((dynamics, problem), lagrangian, path, workers);
        }
        let n = self.sizes.n;
        self.l.fill(0.0);
        self.h.fill(0.0);
        self.rows
            .resize(path.evaluation.values.len() * self.sizes.w(), 0.0);
        self.secant.begin(&mut self.f);
        self.find_frames(dynamics, problem, path, &mut workers[0].work)?;
        let (all, linearizer) = self.along((dynamics, problem), lagrangian, path);
        let knots = linearizer.knots.len();
        self.certificate = linearizer.model_all(all, knots, workers, Stoppable::here())?;
        path.gap = 0.0;
        if path.has_gaps {
            for own in self.gap.chunks_exact(n.max(1)) {
                path.gap += own.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            }
        } else {
            self.gap.fill(0.0);
        }
        self.secant.update(&self.f, &self.l);
        Ok(())
    }

    /// What knots are modelled into, and along.
    fn along<'a, D: Observe>(
        &'a mut self,
        (dynamics, problem): (&'a D, &'a Problem),
        lagrangian: &'a Lagrangian,
        path: &'a mut Path,
    ) -> (Slots<'a>, Linearizer<'a, D>) {
        let learning = self.secant.learning;
        let Evaluation { layout, values, .. } = &mut path.evaluation;
        let all = Slots {
            k: 0,
            f: &mut self.f,
            gap: &mut self.gap,
            l: &mut self.l,
            h: &mut self.h,
            values,
            y: self.secant.differences(),
            rows: &mut self.rows,
        };
        let linearizer = Linearizer {
            dynamics,
            problem,
            lagrangian,
            knots: &path.knots,
            layout,
            trajectory: &path.trajectory,
            ends: path.has_gaps.then_some(&path.ends[..]),
            sizes: self.sizes,
            frames: &self.frames,
            identity: self.identity,
            free: &self.free,
            learning,
        };
        (all, linearizer)
    }

    /// The model at the same path where multipliers and penalty alone are others: all derivatives stay.
    pub fn reweigh<D: Observe>(
        &mut self,
        of: (&D, &Problem),
        lagrangian: &Lagrangian,
        path: &mut Path,
        workers: &mut [Worker<D::Work>],
    ) -> Result<(), StepError> {
        self.l.fill(0.0);
        self.h.fill(0.0);
        let local = &mut workers[0].local;
        if self.sensitivities.is_some() {
            self.weigh_parameters(of, lagrangian, path, local);
            return Ok(());
        }
        self.secant.stay(&self.f);
        let (mut slots, linearizer) = self.along(of, lagrangian, path);
        for k in 0..linearizer.knots.len() {
            let (mut own, rest) = linearizer.cut(slots, k + 1);
            slots = rest;
            let times = Times::at(linearizer.layout, linearizer.free, k);
            let rows = std::mem::take(&mut own.rows);
            linearizer.accumulate(&mut own, local, &times, Some(rows));
        }
        Ok(())
    }

    /// Frames along the path, and what the parameters do to the start.
    fn find_frames<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        path: &Path,
        w: &mut D::Work,
    ) -> Result<(), StepError> {
        let (n, t, knots) = (self.sizes.n, &path.trajectory, &path.knots);
        let count = if self.identity { 1 } else { knots.len() };
        if !(self.identity && self.frames.len() == 1) {
            self.frames.resize_with(count, Frame::default);
            for at in &knots[..count] {
                if stop_requested() {
                    return Err(StepError::stopped(at.t));
                }
                let (before, own) = self.frames.split_at_mut(at.k);
                dynamics.frame_in(at, t.state(at.k), &t.p, before.last(), w, &mut own[0])?;
            }
        }
        if problem.state.is_some() {
            self.start.fill(0.0);
        } else if !self.free.is_empty() {
            let by = problem.start_by_parameters(dynamics, &t.p, w)?;
            let by = self.frame(0).project() * by;
            for (j, &p) in self.free.iter().enumerate() {
                self.start[j * n..(j + 1) * n].copy_from_slice(by.column(p).as_slice());
            }
        }
        Ok(())
    }

    /// How far all decisions together change the quantity at `place` of a knot to first order, each over its range, or by
    /// its size where it has none.
    fn range_sensitivity<D: Observe>(
        &self,
        dynamics: &D,
        problem: &Problem,
        path: &Path,
        (at, place): (&Knot, usize),
        worker: &mut Worker<D::Work>,
    ) -> Result<f64, StepError> {
        let Sizes { steps, n, q, m } = self.sizes;
        let (s, width) = (n + q, self.sizes.w());
        let t = &path.trajectory;
        let which = &path.evaluation.layout.stage(at.k).which;
        let mut values = vec![0.0; which.len()];
        let Worker { work, local } = worker;
        local.observe(dynamics, t, at, which, work, &mut values)?;
        let frame = self.frame(at.k);
        let times = Times::at(&path.evaluation.layout, &self.free, at.k);
        local.follow_interval(dynamics, at, t.state(at.k), frame, &times);
        if at.k < steps {
            let mut linear = dynamics.linearize(&path.solved(at), work)?;
            local.eliminate_unknowns(dynamics, which, &mut linear);
        }
        local.row_by_stage(
            (which.len(), place),
            frame,
            self.identity,
            &self.free,
            &times,
        );
        let of_controls = |by: &[f64], k: usize| {
            let all = by.iter().zip(t.control(k)).zip(&problem.bounds);
            all.map(|((g, u), b)| g.abs() * extent(*u, *b)).sum::<f64>()
        };
        let mut sum = of_controls(&local.row[s..], at.k);
        let mut adjoint = local.row[..n].to_vec();
        let mut by_parameters = local.row[n..s].to_vec();
        for k in (0..at.k).rev() {
            let mut by = vec![0.0; width];
            let f = &self.f[k * n * width..(k + 1) * n * width];
            gemv_transposed(n, f, &adjoint, &mut by);
            adjoint.copy_from_slice(&by[..n]);
            by_parameters
                .iter_mut()
                .zip(&by[n..s])
                .for_each(|(p, b)| *p += b);
            sum += of_controls(&by[s..s + m], k);
        }
        gemv_transposed(n, &self.start, &adjoint, &mut by_parameters);
        for (g, &p) in by_parameters.iter().zip(&self.free) {
            sum += g.abs() * extent(t.p[p], problem.parameter_bounds[p]);
        }
        Ok(sum)
    }

    /// Names the constraints violated by more than `tolerance` that no decision changes to first order.
    pub fn without_gradient<D: Observe>(
        &self,
        dynamics: &D,
        problem: &Problem,
        path: &Path,
        tolerance: f64,
        workers: &mut [Worker<D::Work>],
    ) -> Vec<String> {
        let (layout, names) = (&path.evaluation.layout, dynamics.quantities());
        let by_parameters = self.range_sensitivities(dynamics, problem, path, workers);
        let mut flat = vec![];
        for at in &path.knots {
            let first = layout.constraints(at.k).start;
            for (j, &(i, place)) in layout.stage(at.k).constraints.iter().enumerate() {
                let c = &problem.constraints[i];
                let violation = c.violation(path.evaluation.constraints[first + j]);
                let name = names.get(c.quantity.index()).map_or("", |n| &n.0);
                if violation <= tolerance || flat.iter().any(|n| n == name) {
                    continue;
                }
                let change = match &by_parameters {
                    Some(all) => Ok(all[layout.values(at.k)][place]),
                    None => {
                        let worker = &mut workers[0];
                        self.range_sensitivity(dynamics, problem, path, (at, place), worker)
                    }
                };
                if change.is_ok_and(|c| c < super::NO_GRADIENT * violation) {
                    flat.push(name.to_owned());
                }
            }
        }
        flat
    }

    /// Derivatives of `L` by the controls, knot by knot, and by the free parameters.
    pub fn gradient(&self, controls: &mut [f64], parameters: &mut [f64]) {
        self.adjoint(&self.l, controls, parameters);
    }

    /// Derivatives of `sum_k l_k' w_k`, w a knot, the last included, by the controls and by the free parameters.
    pub fn adjoint(&self, l: &[f64], controls: &mut [f64], parameters: &mut [f64]) {
        let Sizes { steps, n, m, .. } = self.sizes;
        let (s, width) = (self.sizes.s(), self.sizes.w());
        controls.fill(0.0);
        let end = &l[steps * width..];
        let mut adjoint = end[..n].to_vec();
        parameters.copy_from_slice(&end[n..s]);
        if steps > 0 {
            controls[(steps - 1) * m..].copy_from_slice(&end[s..]);
        }
        let mut by = vec![0.0; width];
        for k in (0..steps).rev() {
            by.copy_from_slice(&l[k * width..(k + 1) * width]);
            let f = &self.f[k * n * width..(k + 1) * n * width];
            gemv_transposed(n, f, &adjoint, &mut by);
            adjoint.copy_from_slice(&by[..n]);
            parameters
                .iter_mut()
                .zip(&by[n..s])
                .for_each(|(p, b)| *p += b);
            let own = controls[k * m..(k + 1) * m].iter_mut();
            own.zip(&by[s..]).for_each(|(u, b)| *u += b);
        }
        gemv_transposed(n, &self.start, &adjoint, parameters);
    }

    /// Walks along the model from a change of the parameters, with controls by the state and the parameters.
    pub fn linear_rollout(
        &self,
        dp: &[f64],
        scratch: &mut Scratch,
        mut control: impl FnMut(usize, &[f64], &mut [f64]),
        mut visit: impl FnMut(usize, &[f64]),
    ) {
        let Sizes { steps, n, .. } = self.sizes;
        let (s, width) = (self.sizes.s(), self.sizes.w());
        let Scratch { w, next } = scratch;
        w.fill(0.0);
        w[n..s].copy_from_slice(dp);
        next.fill(0.0);
        gemv(n, &self.start, dp, next);
        w[..n].copy_from_slice(next);
        for k in 0..=steps {
            if k < steps {
                let (x, u) = w.split_at_mut(s);
                control(k, x, u);
            }
            visit(k, w);
            if k < steps {
                next.copy_from_slice(&self.gap[k * n..(k + 1) * n]);
                gemv(n, &self.f[k * n * width..(k + 1) * n * width], w, next);
                w[..n].copy_from_slice(next);
            }
        }
    }

    /// Walks along the model under a policy, from its change of the parameters.
    pub fn rollout_of(
        &self,
        policy: &Policy,
        scratch: &mut Scratch,
        visit: impl FnMut(usize, &[f64]),
    ) {
        let m = self.sizes.m;
        let control = |k: usize, x: &[f64], u: &mut [f64]| {
            u.copy_from_slice(&policy.feedforward[k * m..(k + 1) * m]);
            gemv(m, policy.feedback(k), x, u);
        };
        self.linear_rollout(&policy.dp, scratch, control, visit);
    }

    /// `w' H w` of a knot.
    pub fn curvature(&self, k: usize, w: &[f64]) -> f64 {
        let size = w.len() * w.len();
        quadratic_form(&self.h[k * size..(k + 1) * size], w)
    }

    /// First and second derivative of `L` along the model's rollout with the given feedforward and feedback and
    /// change of parameters: `L(a) = L + a d1 + a^2/2 d2`; and the sum of the changes' squares, weighted by the scales
    /// of controls and parameters.
    pub fn directional_derivatives(
        &self,
        policy: &Policy,
        scale: &[f64],
        scratch: &mut Scratch,
    ) -> (f64, f64, f64) {
        let width = self.sizes.w();
        let (mut d1, mut d2, mut size) = (0.0, 0.0, 0.0);
        self.rollout_of(policy, scratch, |k, w| {
            size += scale.iter().zip(w).map(|(s, w)| s * w * w).sum::<f64>();
            d1 += dot(&self.l[k * width..(k + 1) * width], w);
            d2 += self.curvature(k, w);
            if self.secant.used {
                d2 += quadratic_form(self.secant.block(k), w);
            }
        });
        (d1, d2, size)
    }
}

/// Memory of [`Model::directional_derivatives`].
#[derive(Clone, Debug)]
pub struct Scratch {
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
