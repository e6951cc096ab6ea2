//! Sensitivities of a trajectory by a few parameters, carried forward in time: the model of problems without controls.
//!
//! With the step's derivatives `A`, `P`, `T` by state, parameters and intervals the change `S` of the state by the free
//! parameters obeys
//!
//! ```text
//! S_(k+1) = A_k S_k + P_k + T_k dh_k/dp,    S_0 that of the start
//! ```
//!
//! which is one factorization and a solve for each parameter a step. Nothing of a step is kept, so that long trajectories of
//! large mechanisms cost what they take to simulate, times a little more than the number of parameters; a dense model of each
//! step would cost its cube, and memory.

use super::dense::gemv;
use super::knot::{Linearizer, Local, Slots, Times, Worker};
use super::lagrangian::Lagrangian;
use super::model::{Model, Sizes};
use super::path::Path;
use crate::control::{Evaluation, Layout, Problem};
use crate::dynamics::{
    Certificate, Dims, Inputs, Knot, Observe, Outputs, Rows, StepError, Stoppable, stop_requested,
};
use crate::optimize::scale::extent;
use crate::rollout::Trajectory;
use rayon::prelude::*;

/// Knots that are carried along while those before are seen on other threads: their steps take a millisecond, beside which to wake
/// a thread is nothing.
const MOST_AHEAD: usize = 32;
/// Numbers that they come to at most, half a megabyte: large mechanisms go knot by knot, whose steps take as long.
const NUMBERS_AHEAD: usize = 1 << 16;

/// Memory of the sensitivities.
#[derive(Clone, Debug)]
pub struct Sensitivities {
    /// Of the state at the knot to come, by each parameter.
    state: Vec<Vec<f64>>,
    /// Knots that are carried along, and those before, which are seen meanwhile.
    chunks: [Vec<Carried>; 2],
}

/// The sensitivities at a knot.
#[derive(Clone, Debug)]
struct Carried {
    /// What changes of the step's inputs with each parameter, and of its outputs.
    inputs: Vec<Inputs>,
    outputs: Vec<Outputs>,
    /// Of the quantities: values, and derivatives by each parameter, quantity after quantity.
    values: Vec<f64>,
    rows: Vec<f64>,
    /// By one parameter.
    column: Vec<f64>,
}

/// What they are carried along.
pub struct Along<'a, D> {
    pub dynamics: &'a D,
    pub problem: &'a Problem,
    pub knots: &'a [Knot],
    pub layout: &'a Layout,
    pub trajectory: &'a Trajectory,
    pub free: &'a [usize],
}

/// The quantities of a knot.
pub struct Seen<'a> {
    pub at: &'a Knot,
    pub values: &'a [f64],
    /// By the free parameters, quantity after quantity.
    pub rows: &'a [f64],
}

impl Sensitivities {
    pub fn new(dims: &Dims, free: &[usize]) -> Self {
        let of = |p: &usize| {
            let mut inputs = dims.inputs();
            inputs.p[*p] = 1.0;
            inputs
        };
        let one = Carried {
            inputs: free.iter().map(of).collect(),
            outputs: vec![dims.outputs(); free.len()],
            values: vec![],
            rows: vec![],
            column: vec![],
        };
        let each = free.len() * (2 * dims.nf + dims.nu + dims.np + dims.ny);
        let count = (NUMBERS_AHEAD / each.max(1)).clamp(1, MOST_AHEAD);
        Self {
            state: vec![vec![0.0; dims.nf]; free.len()],
            chunks: [vec![one.clone(); count], vec![one; count]],
        }
    }

    /// Carries them along a trajectory, and shows the quantities of every knot, one after the other. One thread carries on, while
    /// others look at the knots behind; what they find does not depend on their number.
    pub fn run<D: Observe>(
        &mut self,
        along: &Along<D>,
        workers: &mut [Worker<D::Work>],
        mut visit: impl FnMut(&Seen),
    ) -> Result<Certificate, StepError> {
        let (first, others) = workers.split_at_mut(1);
        let (first, stoppable) = (&mut first[0], Stoppable::here());
        let (t, problem) = (along.trajectory, along.problem);
        let start = problem.start_by_parameters(along.dynamics, &t.p, &mut first.work)?;
        for (own, p) in self.state.iter_mut().zip(along.free) {
            own.copy_from_slice(start.column(*p).as_slice());
        }
        let state = &mut self.state;
        let [mut ahead, mut behind] = self.chunks.each_mut();
        let mut certificate = Certificate::default();
        let mut before: &[Knot] = &[];
        // after the last there is nothing to carry, and that one to be seen
        for knots in along.knots.chunks(ahead.len()).chain([&[][..]]) {
            let (carried, seen) = if others.is_empty() {
                let carried = along.carry(state, knots, ahead, first);
                (carried, along.see(before, behind, first))
            } else {
                rayon::join(
                    || stoppable.run(|| along.carry(state, knots, ahead, first)),
                    || along.see_shared(before, behind, others, stoppable),
                )
            };
            seen?;
            certificate = certificate.and(&carried?);
            for (at, own) in before.iter().zip(&*behind) {
                visit(&Seen {
                    at,
                    values: &own.values,
                    rows: &own.rows,
                });
            }
            (ahead, behind, before) = (behind, ahead, knots);
        }
        Ok(certificate)
    }
}

impl<'a, D: Observe> Along<'a, D> {
    pub fn of(dynamics: &'a D, problem: &'a Problem, path: &'a Path, free: &'a [usize]) -> Self {
        Self {
            dynamics,
            problem,
            knots: &path.knots,
            layout: &path.evaluation.layout,
            trajectory: &path.trajectory,
            free,
        }
    }

    /// Carries the sensitivities of the state along these knots.
    fn carry(
        &self,
        state: &mut [Vec<f64>],
        knots: &[Knot],
        to: &mut [Carried],
        w: &mut Worker<D::Work>,
    ) -> Result<Certificate, StepError> {
        let mut certificate = Certificate::default();
        for (at, to) in knots.iter().zip(to) {
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            for (own, state) in to.inputs.iter_mut().zip(&*state) {
                own.x.copy_from_slice(state);
                (own.h_prev, own.h) = (0.0, 0.0);
            }
            for (j, before, after) in Times::at(self.layout, self.free, at.k).each() {
                (to.inputs[j].h_prev, to.inputs[j].h) = (before, after);
            }
            if at.k == self.trajectory.steps() {
                continue;
            }
            let solved = self.trajectory.solved(at);
            let mut linear = self.dynamics.linearize(&solved, &mut w.work)?;
            certificate = certificate.and(&linear.certificate());
            for ((own, out), state) in to.inputs.iter().zip(&mut to.outputs).zip(&mut *state) {
                linear.push(own, out);
                state.copy_from_slice(&out.x);
            }
        }
        Ok(certificate)
    }

    /// Looks at the quantities of these knots.
    fn see(
        &self,
        knots: &[Knot],
        carried: &mut [Carried],
        w: &mut Worker<D::Work>,
    ) -> Result<(), StepError> {
        let (t, Worker { work, local }) = (self.trajectory, w);
        for (at, own) in knots.iter().zip(carried) {
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            let which = &self.layout.stage(at.k).which;
            own.values.resize(which.len(), 0.0);
            local.observe(self.dynamics, t, at, which, work, &mut own.values)?;
            own.rows.clear();
            own.rows.resize(which.len() * self.free.len(), 0.0);
            if let Some(rows) = local.rows[which.len()]
                .as_ref()
                .filter(|_| !which.is_empty())
            {
                own.differentiate(rows, self.free, at.k < t.steps());
            }
        }
        Ok(())
    }

    /// The same, shared among several threads; of several failures it is the first along the path.
    fn see_shared(
        &self,
        knots: &[Knot],
        carried: &mut [Carried],
        workers: &mut [Worker<D::Work>],
        stoppable: Stoppable,
    ) -> Result<(), StepError> {
        let each = knots.len().div_ceil(workers.len()).max(1);
        let parts = knots.par_chunks(each).zip(carried.par_chunks_mut(each));
        let seen: Vec<_> = parts
            .zip(workers)
            .map(|((knots, own), w)| stoppable.run(|| self.see(knots, own, w)))
            .collect();
        seen.into_iter().collect()
    }
}

impl Carried {
    /// The quantities of a knot by the parameters, from their derivatives by all that they see there.
    fn differentiate(&mut self, rows: &Rows, free: &[usize], has_step: bool) {
        let (q, count) = (free.len(), self.values.len());
        for (j, (own, out)) in self.inputs.iter().zip(&self.outputs).enumerate() {
            self.column.clear();
            self.column
                .extend_from_slice(rows.p.column(free[j]).as_slice());
            gemv(count, rows.x.as_slice(), &own.x, &mut self.column);
            if has_step {
                gemv(count, rows.y.as_slice(), &out.y, &mut self.column);
            }
            let intervals = rows.h_prev.iter().zip(&rows.h);
            for (i, (d, (before, after))) in self.column.iter().zip(intervals).enumerate() {
                self.rows[i * q + j] = d + before * own.h_prev + after * own.h;
            }
        }
    }
}

impl Model {
    /// Of a problem without controls: one of its parameters alone, with everything between them and what is wanted in it. It
    /// has no stages.
    pub fn of_parameters<D: Observe>(dynamics: &D, problem: &Problem) -> Self {
        let sizes = Sizes {
            steps: 0,
            n: 0,
            q: problem.free_parameters().len(),
            m: 0,
        };
        let mut model = Self::with_sizes(dynamics, problem, sizes);
        model.sensitivities = Some(Sensitivities::new(&dynamics.dims(), &model.free));
        model
    }

    /// Has it the stages of a path, or parameters alone?
    pub fn has_stages(&self) -> bool {
        self.sensitivities.is_none()
    }

    /// Costs and constraints of all knots by the parameters, from the rows kept of their quantities.
    pub(super) fn weigh_parameters<D: Observe>(
        &mut self,
        (dynamics, problem): (&D, &Problem),
        lagrangian: &Lagrangian,
        path: &mut Path,
        local: &mut Local,
    ) {
        let Evaluation { layout, values, .. } = &mut path.evaluation;
        let linearizer = Linearizer {
            dynamics,
            problem,
            lagrangian,
            knots: &path.knots,
            layout,
            trajectory: &path.trajectory,
            ends: None,
            sizes: self.sizes,
            frames: &[],
            identity: true,
            free: &self.free,
            learning: false,
        };
        let width = self.sizes.w();
        for k in 0..path.knots.len() {
            let own = layout.values(k);
            let mut slot = Slots {
                k,
                f: &mut [],
                gap: &mut [],
                l: &mut self.l,
                h: &mut self.h,
                values: &mut values[own.clone()],
                y: &mut [],
                rows: &mut [],
            };
            let times = Times::at(layout, &self.free, k);
            let rows = &self.rows[own.start * width..own.end * width];
            linearizer.accumulate(&mut slot, local, &times, Some(rows));
        }
    }

    /// Derivatives of the quantity at `place` of a knot by the parameters, where it was last made.
    pub fn row_by_parameters(&self, layout: &Layout, k: usize, place: usize) -> &[f64] {
        let (q, at) = (self.sizes.q, layout.values(k).start + place);
        &self.rows[at * q..(at + 1) * q]
    }

    /// How far all parameters together change each quantity of each knot to first order, each over its range, or by its size
    /// where it has none; nothing where the model has stages, or a step cannot be linearized.
    pub(super) fn range_sensitivities<D: Observe>(
        &self,
        dynamics: &D,
        problem: &Problem,
        path: &Path,
        workers: &mut [Worker<D::Work>],
    ) -> Option<Vec<f64>> {
        let mut own = self.sensitivities.clone()?;
        let of = |p: &usize| extent(path.trajectory.p[*p], problem.parameter_bounds[*p]);
        let extents: Vec<f64> = self.free.iter().map(of).collect();
        let mut out = vec![];
        let along = Along::of(dynamics, problem, path, &self.free);
        let change = |row: &[f64]| row.iter().zip(&extents).map(|(r, e)| r.abs() * e).sum();
        let mut see = |seen: &Seen| {
            let each = seen.rows.chunks_exact(extents.len().max(1));
            let changes: Vec<f64> = each.map(change).collect();
            out.extend((0..seen.values.len()).map(|i| changes.get(i).copied().unwrap_or(0.0)));
        };
        own.run(&along, workers, &mut see).ok()?;
        Some(out)
    }
}
