//! The model of one knot: every knot by itself, so that threads can share them.

use super::lagrangian::Lagrangian;
use super::model::Sizes;
use super::secant;
use crate::control::{Layout, Problem, Timing};
use crate::dynamics::{
    Certificate, Frame, Inputs, Knot, LinearModel, Linearization, Observe, Outputs, QuantityId,
    Rows, SolvedStep, StepError, Stoppable, stop_requested,
};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;

/// What one thread needs to model a knot.
pub struct Worker<W> {
    pub work: W,
    pub local: Local,
}

/// What it needs beside the system's own memory.
pub struct Local {
    linear: LinearModel,
    /// By number of rows.
    pub rows: Vec<Option<Rows>>,
    /// By `w`.
    pub row: Vec<f64>,
    adjoint: Outputs,
    inputs: Inputs,
    /// Of each quantity of a stage.
    weights: Vec<Weight>,
    /// What a longer interval before the knot does to its state, beside what the joint chart tells.
    drift: Vec<f64>,
    joint: Vec<f64>,
}

/// What costs and constraints weigh a quantity with.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    curvature: f64,
    slope: f64,
    /// The slope of its costs before their shares, times the derivatives of these by both intervals.
    by_h_prev: f64,
    by_h: f64,
}

/// What the intervals that meet at a knot change by with the durations that are free parameters: their place among these,
/// and the part of the duration that the interval is.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    before: Option<(usize, f64)>,
    after: Option<(usize, f64)>,
}

impl Times {
    pub fn at(layout: &Layout, free: &[usize], k: usize) -> Self {
        let of = |timing: Option<Timing>| {
            let timing = timing?;
            let place = free.iter().position(|p| *p == timing.parameter)?;
            Some((place, timing.share))
        };
        Self {
            before: of(layout.timing_before(k)),
            after: of(layout.timing(k)),
        }
    }

    /// Each duration with the derivatives of both intervals by it.
    pub fn each(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let (first, second) = match (self.before, self.after) {
            (Some((i, before)), Some((j, after))) if i == j => (Some((i, before, after)), None),
            (before, after) => (
                before.map(|(i, share)| (i, share, 0.0)),
                after.map(|(i, share)| (i, 0.0, share)),
            ),
        };
        first.into_iter().chain(second)
    }
}

/// Steps times unknowns of a step from which on knots are shared among threads: waking these takes some tens of
/// microseconds, which so many unknowns take to linearize.
const WORTH_THREADS: usize = 1000;
/// Unknowns that a coordinate or a rate counts for at least: where a step has few of them it takes as much work to make them few.
const UNKNOWNS_OF_STATE: usize = 5;

/// As many workers as are worth their while for a model of these sizes; what they make does not depend on their number.
pub fn workers<D: Observe>(dynamics: &D, problem: &Problem, sizes: &Sizes) -> Vec<Worker<D::Work>> {
    let dims = dynamics.dims();
    let unknowns = match dims.ny {
        0 => 0,
        ny => ny.max(UNKNOWNS_OF_STATE * dims.ndx),
    };
    let steps = problem.intervals.len();
    let count = if steps * unknowns < WORTH_THREADS {
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
    let one = |_| Worker {
        work: dynamics.work(),
        local: Local {
            linear: LinearModel::new(&dims),
            weights: Vec::with_capacity(rows.len()),
            rows: rows.clone(),
            row: vec![0.0; sizes.w()],
            adjoint: dims.outputs(),
            inputs: dims.inputs(),
            drift: vec![0.0; dims.nf],
            joint: vec![0.0; dims.ndx],
        },
    };
    (0..count).map(one).collect()
}

/// What the knots are modelled along.
pub struct Linearizer<'a, D> {
    pub dynamics: &'a D,
    pub problem: &'a Problem,
    pub lagrangian: &'a Lagrangian,
    pub knots: &'a [Knot],
    pub layout: &'a Layout,
    pub trajectory: &'a Trajectory,
    /// Where steps end, while there are gaps.
    pub ends: Option<&'a [f64]>,
    pub sizes: Sizes,
    pub frames: &'a [Frame],
    pub identity: bool,
    pub free: &'a [usize],
    pub learning: bool,
}

/// What knots are modelled into, one after the other.
pub struct Slots<'a> {
    /// The first.
    pub k: usize,
    pub f: &'a mut [f64],
    pub gap: &'a mut [f64],
    pub l: &'a mut [f64],
    pub h: &'a mut [f64],
    pub values: &'a mut [f64],
    /// Of the secant: differences of gradients.
    pub y: &'a mut [f64],
    /// Of all quantities, by `w`; those of the model before on entry.
    pub rows: &'a mut [f64],
}

impl<'a> Slots<'a> {
    /// Cuts off those before knot `k`.
    fn cut(self, k: usize, sizes: &Sizes, layout: &Layout, learning: bool) -> (Self, Self) {
        let (w, knots) = (sizes.w(), k - self.k);
        let steps = k.min(sizes.steps) - self.k.min(sizes.steps);
        let count = layout.values(k - 1).end - layout.values(self.k).start;
        let learnt = if learning { w } else { 0 };
        let (f, f_rest) = self.f.split_at_mut(steps * sizes.n * w);
        let (gap, gap_rest) = self.gap.split_at_mut(steps * sizes.n);
        let (l, l_rest) = self.l.split_at_mut(knots * w);
        let (h, h_rest) = self.h.split_at_mut(knots * w * w);
        let (values, values_rest) = self.values.split_at_mut(count);
        let (y, y_rest) = self.y.split_at_mut(knots * learnt);
        let (rows, rows_rest) = self.rows.split_at_mut(count * w);
        let own = Slots {
            f,
            gap,
            l,
            h,
            values,
            y,
            rows,
            ..self
        };
        let rest = Slots {
            k,
            f: f_rest,
            gap: gap_rest,
            l: l_rest,
            h: h_rest,
            values: values_rest,
            y: y_rest,
            rows: rows_rest,
        };
        (own, rest)
    }
}

impl<D: Observe> Linearizer<'_, D> {
    /// Cuts off what knots before `k` are modelled into.
    pub fn cut<'a>(&self, slots: Slots<'a>, k: usize) -> (Slots<'a>, Slots<'a>) {
        slots.cut(k, &self.sizes, self.layout, self.learning)
    }

    /// Models the knots of `slots` up to `end`, shared among the workers; tells how good the derivatives are. Of several
    /// failures it is the first along the path. One worker allocates nothing.
    pub fn model_all(
        &self,
        mut slots: Slots,
        end: usize,
        workers: &mut [Worker<D::Work>],
        stoppable: Stoppable,
    ) -> Result<Certificate, StepError> {
        if let [worker] = workers {
            return stoppable.run(|| {
                let mut all = Certificate::default();
                for k in slots.k..end {
                    let (mut own, rest) = self.cut(slots, k + 1);
                    slots = rest;
                    all = all.and(&self.model(&mut own, worker)?);
                }
                Ok(all)
            });
        }
        let count = workers.len();
        let (first, second) = workers.split_at_mut(count / 2);
        let middle = slots.k + ((end - slots.k) * first.len()).div_ceil(count);
        let (before, behind) = self.cut(slots, middle);
        let (before, behind) = rayon::join(
            || self.model_all(before, middle, first, stoppable),
            || self.model_all(behind, end, second, stoppable),
        );
        Ok(before?.and(&behind?))
    }

    /// Models the first knot; tells how good the derivatives of its step are.
    fn model(&self, slot: &mut Slots, w: &mut Worker<D::Work>) -> Result<Certificate, StepError> {
        let (k, t) = (slot.k, self.trajectory);
        let at = &self.knots[k];
        if stop_requested() {
            return Err(StepError::stopped(at.t));
        }
        let which = &self.layout.stage(k).which;
        let Worker { work, local } = w;
        local.observe(self.dynamics, t, at, which, work, slot.values)?;
        let times = Times::at(self.layout, self.free, k);
        local.follow_interval(self.dynamics, at, t.state(k), self.frame(k), &times);
        if k == self.sizes.steps {
            self.accumulate(slot, local, &times, None);
            return Ok(Certificate::default());
        }
        let nx = t.state(0).len();
        let end = match self.ends {
            Some(ends) => &ends[k * nx..(k + 1) * nx],
            None => t.state(k + 1),
        };
        let solved = SolvedStep {
            next: end,
            ..t.solved(at)
        };
        let mut linear = self.dynamics.linearize(&solved, work)?;
        let certificate = linear.certificate();
        local.eliminate_unknowns(self.dynamics, which, &mut linear);
        self.accumulate(slot, local, &times, None);
        let (from, to) = (self.frame(k), self.frame(k + 1));
        linear.linear_model(from, to, &mut local.linear);
        let moved: Vec<(usize, Vec<f64>)> = times
            .each()
            .map(|(j, before, after)| (j, local.moved_by_intervals(&mut linear, to, before, after)))
            .collect();
        if self.ends.is_some() {
            let after = &self.knots[k + 1];
            let state = t.state(k + 1);
            self.dynamics
                .difference(after, state, &t.p, to, end, work, slot.gap);
        }
        self.store(slot.f, &local.linear);
        for (j, column) in moved {
            let n = self.sizes.n;
            let own = &mut slot.f[(n + j) * n..(n + j + 1) * n];
            own.iter_mut().zip(&column).for_each(|(f, c)| *f += c);
        }
        Ok(certificate)
    }

    fn frame(&self, k: usize) -> &Frame {
        &self.frames[if self.identity { 0 } else { k }]
    }

    /// Adds costs and constraints of a knot to `l` and `h`: by the rows of the knot's quantities last observed, or by
    /// those given.
    pub fn accumulate(
        &self,
        slot: &mut Slots,
        w: &mut Local,
        times: &Times,
        given: Option<&[f64]>,
    ) {
        let (k, values) = (slot.k, &*slot.values);
        let stage = self.layout.stage(k);
        let count = stage.which.len();
        w.weights.clear();
        w.weights.resize(count, Weight::default());
        let n = self.sizes.n;
        let size = self.sizes.w();
        for &(i, place) in &stage.costs {
            let (term, density) = self.problem.cost_at(i, &self.knots[k], values[place]);
            let own = &mut w.weights[place];
            own.curvature += term.curvature;
            own.slope += term.slope;
            // what a cost comes to changes with its share; of a square the root bends with it as well
            let share = self.problem.costs[i].share(&self.knots[k]);
            let is_square = density > 0.0 && share.weight > 0.0;
            if is_square {
                own.by_h_prev += term.slope / share.weight * share.by_h_prev;
                own.by_h += term.slope / share.weight * share.by_h;
            }
            for (j, before, after) in times.each() {
                let of_share = share.by_h_prev * before + share.by_h * after;
                slot.l[n + j] += density * of_share;
                for (i, before, after) in times.each().filter(|_| is_square) {
                    let other = share.by_h_prev * before + share.by_h * after;
                    slot.h[(n + j) * size + n + i] +=
                        density / (2.0 * share.weight) * of_share * other;
                }
            }
        }
        let first = self.layout.constraints(k).start;
        for (j, &(i, place)) in stage.constraints.iter().enumerate() {
            let c = &self.problem.constraints[i];
            let estimate = self
                .lagrangian
                .estimate(first + j, self.problem.constraint_at(c, k, values[place]));
            if estimate > 0.0 || self.lagrangian.is_equality(first + j) {
                w.weights[place].curvature += self.lagrangian.penalty;
                w.weights[place].slope += c.sign() * estimate;
            }
        }
        for i in 0..count {
            let Weight {
                curvature: weight,
                slope,
                by_h_prev,
                by_h,
            } = w.weights[i];
            match given {
                Some(rows) => w.row.copy_from_slice(&rows[i * size..(i + 1) * size]),
                None => w.row_by_stage((count, i), self.frame(k), self.identity, self.free, times),
            }
            for (j, before, after) in times.each() {
                let scale = 0.5 * (by_h_prev * before + by_h * after);
                for (column, r) in w.row.iter().enumerate().filter(|(_, r)| **r != 0.0) {
                    slot.h[column * size + n + j] += scale * r;
                    slot.h[(n + j) * size + column] += scale * r;
                }
            }
            if given.is_none() {
                let kept = &mut slot.rows[i * size..(i + 1) * size];
                if self.learning {
                    secant::add_row_difference(slot.y, kept, slope, &w.row);
                }
                kept.copy_from_slice(&w.row);
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

impl Local {
    /// Values and rows of the quantities at a knot, at state, control and parameters held apart.
    pub fn observe<D: Observe>(
        &mut self,
        dynamics: &D,
        t: &Trajectory,
        at: &Knot,
        which: &[QuantityId],
        work: &mut D::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        let Some(rows) = self.rows[which.len()]
            .as_mut()
            .filter(|_| !which.is_empty())
        else {
            return Ok(());
        };
        let seen = t.knot_point(at);
        dynamics.observe(&seen, which, work, values)?.rows(rows);
        Ok(())
    }

    /// What is seen of the unknowns depends on state, control and parameters through the step just linearized.
    pub fn eliminate_unknowns<D: Observe>(
        &mut self,
        dynamics: &D,
        which: &[QuantityId],
        linear: &mut Linearization<D>,
    ) {
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
            rows.h_prev[i] += self.inputs.h_prev;
            rows.h[i] += self.inputs.h;
        }
    }

    /// What a longer interval before the knot does to its state at given numbers of the joint chart, as far as durations
    /// that are free change it.
    pub fn follow_interval<D: Observe>(
        &mut self,
        dynamics: &D,
        at: &Knot,
        x: &[f64],
        frame: &Frame,
        times: &Times,
    ) {
        if times.before.is_none() {
            return;
        }
        dynamics.by_interval(at, x, &mut self.drift);
        // less what the chart tells
        let own = &mut self.inputs.x;
        own.copy_from_slice(&self.drift);
        frame.project_into(own, &mut self.joint);
        frame.embed_into(&mut self.joint, own);
        for (d, own) in self.drift.iter_mut().zip(own) {
            *d -= *own;
        }
    }

    /// What the step just linearized does, in the joint chart, where the intervals before and after its knot change so.
    fn moved_by_intervals<D: Observe>(
        &mut self,
        linear: &mut Linearization<D>,
        to: &Frame,
        before: f64,
        after: f64,
    ) -> Vec<f64> {
        self.inputs.clear();
        for (x, drift) in self.inputs.x.iter_mut().zip(&self.drift) {
            *x = if before == 0.0 { 0.0 } else { before * drift };
        }
        (self.inputs.h_prev, self.inputs.h) = (before, after);
        linear.push(&self.inputs, &mut self.adjoint);
        to.project_into(&mut self.adjoint.x, &mut self.joint);
        self.joint.clone()
    }

    /// Row `i` of the stage with `count` rows, by `w`.
    pub fn row_by_stage(
        &mut self,
        (count, i): (usize, usize),
        frame: &Frame,
        identity: bool,
        free: &[usize],
        times: &Times,
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
        for (j, before, after) in times.each() {
            let mut by = rows.h[i] * after;
            if before != 0.0 {
                let drifts = self.drift.iter().enumerate();
                let through: f64 = drifts.map(|(x, d)| of(&rows.x, x) * d).sum();
                by += (rows.h_prev[i] + through) * before;
            }
            self.row[n + j] += by;
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
