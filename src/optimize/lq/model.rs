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
use super::lagrangian::Lagrangian;
use super::path::Path;
use super::riccati::Policy;
use super::secant::{self, Secant};
use crate::control::{Evaluation, Layout, Problem};
use crate::dynamics::{
    Dims, Frame, Inputs, Knot, LinearModel, Observe, Outputs, Rows, Solved, StepError,
};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use rayon::prelude::*;

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
    identity: bool,
}

/// What one thread needs to model a knot.
pub struct Worker<W> {
    pub work: W,
    linear: LinearModel,
    /// By number of rows.
    rows: Vec<Option<Rows>>,
    row: Vec<f64>,
    adjoint: Outputs,
    inputs: Inputs,
    /// Weight and gradient of each quantity of a stage.
    weights: Vec<(f64, f64)>,
}

/// Steps times unknowns of a step from which on knots are shared among threads: waking these takes some tens of
/// microseconds, which so many unknowns take to linearize.
const WORTH_THREADS: usize = 1000;

/// As many workers as are worth their while; what they make does not depend on their number.
pub fn workers<D: Observe>(dynamics: &D, problem: &Problem) -> Vec<Worker<D::Work>> {
    let dims = dynamics.dims();
    let steps = problem.intervals.len();
    let count = if steps * dims.ny < WORTH_THREADS {
        1
    } else {
        rayon::current_num_threads().min(steps)
    };
    let layout = problem.layout();
    let mut rows: Vec<Option<Rows>> = vec![];
    for k in 0..layout.knots() {
        let count = layout.stage(k).which.len();
        rows.resize(rows.len().max(count + 1), None);
        rows[count].get_or_insert_with(|| Rows::new(&dims, count));
    }
    let width = dims.ndx + problem.free_parameters().len() + dims.nu;
    let one = |_| Worker {
        work: dynamics.work(),
        linear: LinearModel::new(&dims),
        weights: Vec::with_capacity(rows.len()),
        rows: rows.clone(),
        row: vec![0.0; width],
        adjoint: dims.outputs(),
        inputs: dims.inputs(),
    };
    (0..count).map(one).collect()
}

/// What the knots are modelled along.
struct Along<'a, D> {
    dynamics: &'a D,
    problem: &'a Problem,
    lagrangian: &'a Lagrangian,
    knots: &'a [Knot],
    layout: &'a Layout,
    trajectory: &'a Trajectory,
    /// Where steps end, while there are gaps.
    ends: Option<&'a [f64]>,
    sizes: Sizes,
    frames: &'a [Frame],
    identity: bool,
    free: &'a [usize],
    learning: bool,
}

/// What a knot is modelled into.
struct Slot<'a> {
    k: usize,
    f: &'a mut [f64],
    gap: &'a mut [f64],
    l: &'a mut [f64],
    h: &'a mut [f64],
    values: &'a mut [f64],
    /// Of the secant: differences of gradients, and the rows before.
    y: &'a mut [f64],
    rows: &'a mut [f64],
    kappa: f64,
}

/// Cuts a slice into pieces of these lengths.
fn pieces(
    all: &mut [f64],
    lengths: impl Iterator<Item = usize>,
) -> impl Iterator<Item = &mut [f64]> {
    let mut rest = all;
    lengths.map(move |n| {
        let (own, after) = std::mem::take(&mut rest).split_at_mut(n);
        rest = after;
        own
    })
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
            identity: dynamics.has_identity_frames(),
        }
    }

    /// The frame at knot `k`.
    pub fn frame(&self, k: usize) -> &Frame {
        &self.frames[if self.identity { 0 } else { k }]
    }

    /// Makes the model at a path: frames one after the other, then every knot by itself.
    pub fn build<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        lagrangian: &Lagrangian,
        knots: &[Knot],
        path: &mut Path,
        workers: &mut [Worker<D::Work>],
    ) -> Result<(), StepError> {
        let Sizes { steps, n, .. } = self.sizes;
        let width = self.sizes.w();
        self.l.fill(0.0);
        self.h.fill(0.0);
        self.secant.begin(&mut self.f);
        self.find_frames(dynamics, problem, knots, path, &mut workers[0].work)?;
        let learning = self.secant.learning;
        let (y, rows) = self.secant.memory();
        let Evaluation { layout, values, .. } = &mut path.evaluation;
        let stepped = |size: usize| (0..=steps).map(move |k| if k < steps { size } else { 0 });
        let every = |size: usize| (0..=steps).map(move |_| size);
        let counts = (0..=steps).map(|k| layout.values(k).len());
        let mut all = pieces(&mut self.f, stepped(n * width))
            .zip(pieces(&mut self.gap, stepped(n)))
            .zip(pieces(&mut self.l, every(width)))
            .zip(pieces(&mut self.h, every(width * width)))
            .zip(pieces(values, counts.clone()))
            .zip(pieces(y, every(width)))
            .zip(pieces(rows, counts.map(|c| c * width)))
            .enumerate()
            .map(|(k, ((((((f, gap), l), h), values), y), rows))| Slot {
                k,
                f,
                gap,
                l,
                h,
                values,
                y,
                rows,
                kappa: 0.0,
            })
            .collect::<Vec<_>>();
        let along = Along {
            dynamics,
            problem,
            lagrangian,
            knots,
            layout,
            trajectory: &path.trajectory,
            ends: path.has_gaps.then_some(&path.ends[..]),
            sizes: self.sizes,
            frames: &self.frames,
            identity: self.identity,
            free: &self.free,
            learning,
        };
        let share = all.len().div_ceil(workers.len());
        let made = |(w, slots): (&mut Worker<D::Work>, &mut [Slot])| {
            slots.iter_mut().try_for_each(|s| along.model(s, w))
        };
        if workers.len() == 1 {
            made((&mut workers[0], &mut all))?;
        } else {
            let shares = workers.par_iter_mut().zip(all.par_chunks_mut(share));
            // of several failures the first along the path
            let ends: Vec<Result<(), StepError>> = shares.map(made).collect();
            ends.into_iter().collect::<Result<(), StepError>>()?;
        }
        self.kappa = all.iter().fold(0.0, |m, s| m.max(s.kappa));
        drop(all);
        path.gap = 0.0;
        if path.has_gaps {
            for own in self.gap.chunks_exact(n.max(1)) {
                path.gap += own.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            }
        } else {
            self.gap.fill(0.0);
        }
        self.secant.update(&self.sizes, &self.f, &self.l);
        Ok(())
    }

    /// Frames along the path, and what the parameters do to the start.
    fn find_frames<D: Observe>(
        &mut self,
        dynamics: &D,
        problem: &Problem,
        knots: &[Knot],
        path: &Path,
        w: &mut D::Work,
    ) -> Result<(), StepError> {
        let (n, t) = (self.sizes.n, &path.trajectory);
        let count = if self.identity { 1 } else { knots.len() };
        if !(self.identity && self.frames.len() == 1) {
            self.frames.clear();
            for at in &knots[..count] {
                let frame = dynamics.frame(at, t.state(at.k), &t.p, self.frames.last(), w)?;
                self.frames.push(frame);
            }
        }
        if !self.free.is_empty() {
            let by =
                dynamics.initial_by_parameters(&problem.coordinates, &problem.rates, &t.p, w)?;
            let by = self.frame(0).project() * by;
            for (j, &p) in self.free.iter().enumerate() {
                self.start[j * n..(j + 1) * n].copy_from_slice(by.column(p).as_slice());
            }
        }
        Ok(())
    }

    /// How far all decisions together change the quantity at `place` of a knot to first order, each over its range, or by
    /// its size where it has none.
    fn reach<D: Observe>(
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
        worker.observe(dynamics, t, at, which, &mut values)?;
        if at.k < steps {
            dynamics.linearize(&path.solved(at), &mut worker.work)?;
            worker.see_unknowns(dynamics, which);
        }
        worker.row_by_stage(
            which.len(),
            place,
            self.frame(at.k),
            self.identity,
            &self.free,
        );
        let range = |v: f64, (l, u): (f64, f64)| {
            let range = u - l;
            if range.is_finite() {
                range
            } else {
                v.abs().max(1.0)
            }
        };
        let of_controls = |by: &[f64], k: usize| {
            let all = by.iter().zip(t.control(k)).zip(&problem.bounds);
            all.map(|((g, u), b)| g.abs() * range(*u, *b)).sum::<f64>()
        };
        let mut sum = of_controls(&worker.row[s..], at.k);
        let mut adjoint = worker.row[..n].to_vec();
        let mut by_parameters = worker.row[n..s].to_vec();
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
            sum += g.abs() * range(t.p[p], problem.parameter_bounds[p]);
        }
        Ok(sum)
    }

    /// Names the constraints violated by more than `tolerance` that no decision changes to first order.
    pub fn without_gradient<D: Observe>(
        &self,
        dynamics: &D,
        problem: &Problem,
        knots: &[Knot],
        path: &Path,
        tolerance: f64,
        worker: &mut Worker<D::Work>,
    ) -> Vec<String> {
        let (layout, names) = (&path.evaluation.layout, dynamics.quantities());
        let mut flat = vec![];
        for at in knots {
            let first = layout.constraints(at.k).start;
            for (j, &(i, place)) in layout.stage(at.k).constraints.iter().enumerate() {
                let c = &problem.constraints[i];
                let violation = c.violation(path.evaluation.constraints[first + j]);
                let name = names.get(c.quantity).map_or("", |n| &n.0);
                if violation <= tolerance || flat.iter().any(|n| n == name) {
                    continue;
                }
                let change = self.reach(dynamics, problem, path, (at, place), worker);
                if change.is_ok_and(|c| c < super::NO_GRADIENT * violation) {
                    flat.push(name.to_owned());
                }
            }
        }
        flat
    }

    /// Derivatives of `L` by the controls, knot by knot, and by the free parameters.
    pub fn gradient(&self, controls: &mut [f64], parameters: &mut [f64]) {
        let Sizes { steps, n, m, .. } = self.sizes;
        let (s, width) = (self.sizes.s(), self.sizes.w());
        controls.fill(0.0);
        let end = &self.l[steps * width..];
        let mut adjoint = end[..n].to_vec();
        parameters.copy_from_slice(&end[n..s]);
        if steps > 0 {
            controls[(steps - 1) * m..].copy_from_slice(&end[s..]);
        }
        let mut by = vec![0.0; width];
        for k in (0..steps).rev() {
            by.copy_from_slice(&self.l[k * width..(k + 1) * width]);
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
    pub fn walk(
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

    /// `w' H w` of a knot.
    pub fn square(&self, k: usize, w: &[f64]) -> f64 {
        let size = w.len() * w.len();
        quadratic_form(&self.h[k * size..(k + 1) * size], w)
    }

    /// First and second derivative of `L` along the model's rollout with the given feedforward and feedback and
    /// change of parameters: `L(a) = L + a d1 + a^2/2 d2`; and the sum of the changes' squares, weighted by the scales
    /// of controls and parameters.
    pub fn along(&self, policy: &Policy, scale: &[f64], scratch: &mut Scratch) -> (f64, f64, f64) {
        let (m, width) = (self.sizes.m, self.sizes.w());
        let (mut d1, mut d2, mut size) = (0.0, 0.0, 0.0);
        self.walk(
            &policy.dp,
            scratch,
            |k, x, u| {
                u.copy_from_slice(&policy.feedforward[k * m..(k + 1) * m]);
                gemv(m, policy.feedback(k), x, u);
            },
            |k, w| {
                size += scale.iter().zip(w).map(|(s, w)| s * w * w).sum::<f64>();
                d1 += dot(&self.l[k * width..(k + 1) * width], w);
                d2 += self.square(k, w);
                if self.secant.used {
                    d2 += quadratic_form(self.secant.block(k), w);
                }
            },
        );
        (d1, d2, size)
    }
}

impl<D: Observe> Along<'_, D> {
    /// Models a knot.
    fn model(&self, slot: &mut Slot, w: &mut Worker<D::Work>) -> Result<(), StepError> {
        let (k, t) = (slot.k, self.trajectory);
        let at = &self.knots[k];
        let which = &self.layout.stage(k).which;
        w.observe(self.dynamics, t, at, which, slot.values)?;
        if k == self.sizes.steps {
            self.accumulate(slot, w);
            return Ok(());
        }
        let nx = t.state(0).len();
        let end = match self.ends {
            Some(ends) => &ends[k * nx..(k + 1) * nx],
            None => t.state(k + 1),
        };
        let solved = Solved {
            next: end,
            ..t.solved(at)
        };
        slot.kappa = self.dynamics.linearize(&solved, &mut w.work)?.kappa;
        w.see_unknowns(self.dynamics, which);
        self.accumulate(slot, w);
        let (from, to) = (self.frame(k), self.frame(k + 1));
        self.dynamics
            .linear_model(&mut w.work, from, to, &mut w.linear);
        if self.ends.is_some() {
            let after = &self.knots[k + 1];
            let state = t.state(k + 1);
            self.dynamics
                .difference(after, state, &t.p, to, end, &mut w.work, slot.gap);
        }
        self.store(slot.f, &w.linear);
        Ok(())
    }

    fn frame(&self, k: usize) -> &Frame {
        &self.frames[if self.identity { 0 } else { k }]
    }

    /// Adds costs and constraints of a knot to `l` and `h`.
    fn accumulate(&self, slot: &mut Slot, w: &mut Worker<D::Work>) {
        let (k, values) = (slot.k, &*slot.values);
        let stage = self.layout.stage(k);
        let count = stage.which.len();
        w.weights.clear();
        w.weights.resize(count, (0.0, 0.0));
        for &(i, place) in &stage.costs {
            let (_, slope, curvature) = self.problem.costs[i].at(values[place], self.knots[k].h);
            w.weights[place].0 += curvature;
            w.weights[place].1 += slope;
        }
        let first = self.layout.constraints(k).start;
        for (j, &(i, place)) in stage.constraints.iter().enumerate() {
            let c = &self.problem.constraints[i];
            let force = self.lagrangian.force(first + j, c.value_at(values[place]));
            if force > 0.0 || self.lagrangian.is_equality(first + j) {
                w.weights[place].0 += self.lagrangian.penalty;
                w.weights[place].1 += c.sign() * force;
            }
        }
        let size = self.sizes.w();
        for i in 0..count {
            let (weight, slope) = w.weights[i];
            w.row_by_stage(count, i, self.frame(k), self.identity, self.free);
            if self.learning {
                let old = &mut slot.rows[i * size..(i + 1) * size];
                secant::see(slot.y, old, slope, &w.row);
            }
            if weight == 0.0 && slope == 0.0 {
                continue;
            }
            for (j, r) in w.row.iter().enumerate().filter(|(_, r)| **r != 0.0) {
                slot.l[j] += slope * r;
            }
            if let Some(j) = single(&w.row) {
                slot.h[j * size + j] += weight * w.row[j] * w.row[j];
                continue;
            }
            for (column, r) in slot.h.chunks_exact_mut(size.max(1)).zip(&w.row) {
                let scale = weight * r;
                for (h, r) in column.iter_mut().zip(&w.row) {
                    *h += scale * r;
                }
            }
        }
    }

    /// Keeps the linear model of a step.
    fn store(&self, f: &mut [f64], linear: &LinearModel) {
        let Sizes { n, q, .. } = self.sizes;
        let (a, rest) = f.split_at_mut(n * n);
        let (p, b) = rest.split_at_mut(n * q);
        a.copy_from_slice(linear.a.as_slice());
        b.copy_from_slice(linear.b.as_slice());
        for (j, &i) in self.free.iter().enumerate() {
            p[j * n..(j + 1) * n].copy_from_slice(linear.p.column(i).as_slice());
        }
    }
}

impl<W> Worker<W> {
    /// Values and rows of the quantities at a knot, at state, control and parameters held apart.
    fn observe<D: Observe<Work = W>>(
        &mut self,
        dynamics: &D,
        t: &Trajectory,
        at: &Knot,
        which: &[usize],
        values: &mut [f64],
    ) -> Result<(), StepError> {
        let Some(rows) = self.rows[which.len()]
            .as_mut()
            .filter(|_| !which.is_empty())
        else {
            return Ok(());
        };
        let seen = t.seen(at);
        dynamics.observe(&seen, which, &mut self.work, values)?;
        dynamics.observe_rows(&seen, which, &mut self.work, rows);
        Ok(())
    }

    /// What is seen of the unknowns depends on state, control and parameters through the step just linearized.
    fn see_unknowns<D: Observe<Work = W>>(&mut self, dynamics: &D, which: &[usize]) {
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
            dynamics.pull(&mut self.work, &self.adjoint, &mut self.inputs);
            let add = |m: &mut DMatrix<f64>, d: &[f64]| {
                m.row_mut(i).iter_mut().zip(d).for_each(|(m, d)| *m += d);
            };
            add(&mut rows.x, &self.inputs.x);
            add(&mut rows.u, &self.inputs.u);
            add(&mut rows.p, &self.inputs.p);
        }
    }

    /// Row `i` of the stage with `count` rows, by `w`.
    fn row_by_stage(
        &mut self,
        count: usize,
        i: usize,
        frame: &Frame,
        identity: bool,
        free: &[usize],
    ) {
        let Some(rows) = &self.rows[count] else {
            return;
        };
        // row i of a matrix with `count` rows
        let of = |m: &'_ DMatrix<f64>, j: usize| m.as_slice()[j * count + i];
        let (n, q) = (self.linear.a.nrows(), free.len());
        if identity {
            for (j, r) in self.row[..n].iter_mut().enumerate() {
                *r = of(&rows.x, j);
            }
        } else {
            let by_free = &mut self.inputs.x;
            for (j, f) in by_free.iter_mut().enumerate() {
                *f = of(&rows.x, j);
            }
            frame.embed_transposed(by_free, &mut self.row[..n]);
        }
        for (r, &p) in self.row[n..].iter_mut().zip(free) {
            *r = of(&rows.p, p);
        }
        for (j, r) in self.row[n + q..].iter_mut().enumerate() {
            *r = of(&rows.u, j);
        }
    }
}

/// The only place that is not zero, as for quantities that are a state or a control.
fn single(row: &[f64]) -> Option<usize> {
    let first = row.iter().position(|r| *r != 0.0)?;
    row[first + 1..].iter().all(|r| *r == 0.0).then_some(first)
}

/// Memory of [`Model::along`].
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
