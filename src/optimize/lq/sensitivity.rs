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

use super::knot::{Linearizer, Local, Slots, Times, Worker};
use super::lagrangian::Lagrangian;
use super::model::{Model, Sizes};
use super::path::Path;
use crate::control::{Layout, Problem};
use crate::dynamics::{
    Certificate, Dims, Inputs, Knot, Observe, Outputs, Rows, StepError, stop_requested,
};
use crate::optimize::scale::extent;
use crate::rollout::Trajectory;

/// Memory of the sensitivities.
#[derive(Clone, Debug)]
pub struct Sensitivities {
    /// What changes of a step's inputs with each parameter, and of its outputs.
    inputs: Vec<Inputs>,
    outputs: Vec<Outputs>,
    /// Of the quantities of a knot: values, and derivatives by each parameter, quantity after quantity.
    values: Vec<f64>,
    rows: Vec<f64>,
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

impl<'a, D> Along<'a, D> {
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
        Self {
            inputs: free.iter().map(of).collect(),
            outputs: vec![dims.outputs(); free.len()],
            values: vec![],
            rows: vec![],
        }
    }

    /// Carries them along a trajectory, and shows the quantities of every knot.
    pub fn run<D: Observe>(
        &mut self,
        along: &Along<D>,
        worker: &mut Worker<D::Work>,
        mut visit: impl FnMut(&Seen, &mut Local),
    ) -> Result<Certificate, StepError> {
        let (t, steps) = (along.trajectory, along.trajectory.steps());
        let Worker { work, local } = worker;
        let start = along
            .problem
            .start_by_parameters(along.dynamics, &t.p, work)?;
        for (own, p) in self.inputs.iter_mut().zip(along.free) {
            own.x.copy_from_slice(start.column(*p).as_slice());
        }
        let mut certificate = Certificate::default();
        for at in along.knots {
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            let times = Times::at(along.layout, along.free, at.k);
            for own in &mut self.inputs {
                (own.h_prev, own.h) = (0.0, 0.0);
            }
            for (j, before, after) in times.each() {
                (self.inputs[j].h_prev, self.inputs[j].h) = (before, after);
            }
            if at.k < steps {
                let mut linear = along.dynamics.linearize(&t.solved(at), work)?;
                certificate = certificate.and(&linear.certificate());
                for (own, out) in self.inputs.iter().zip(&mut self.outputs) {
                    linear.push(own, out);
                }
            }
            let which = &along.layout.stage(at.k).which;
            self.values.resize(which.len(), 0.0);
            local.observe(along.dynamics, t, at, which, work, &mut self.values)?;
            self.rows.clear();
            self.rows.resize(which.len() * along.free.len(), 0.0);
            if let Some(rows) = local.rows[which.len()].as_ref() {
                self.differentiate(rows, along.free, at.k < steps);
            }
            let seen = Seen {
                at,
                values: &self.values,
                rows: &self.rows,
            };
            visit(&seen, local);
            for (own, out) in self.inputs.iter_mut().zip(&mut self.outputs) {
                std::mem::swap(&mut own.x, &mut out.x);
            }
        }
        Ok(certificate)
    }

    /// The quantities of a knot by the parameters, from their derivatives by all that they see there.
    fn differentiate(&mut self, rows: &Rows, free: &[usize], has_step: bool) {
        let q = free.len();
        for (j, (own, out)) in self.inputs.iter().zip(&self.outputs).enumerate() {
            let by_states = own.x.iter().zip(rows.x.column_iter());
            let unknowns = if has_step { &out.y[..] } else { &[] };
            let by_unknowns = unknowns.iter().zip(rows.y.column_iter());
            for (d, column) in by_states.chain(by_unknowns).filter(|(d, _)| **d != 0.0) {
                for (i, r) in column.iter().enumerate() {
                    self.rows[i * q + j] += r * d;
                }
            }
            let given = rows.p.column(free[j]);
            let intervals = rows.h_prev.iter().zip(&rows.h);
            for (i, (p, (before, after))) in given.iter().zip(intervals).enumerate() {
                self.rows[i * q + j] += p + before * own.h_prev + after * own.h;
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

    /// Makes it at a path.
    pub(super) fn build_by_sensitivities<D: Observe>(
        &mut self,
        sensitivities: &mut Sensitivities,
        (dynamics, problem): (&D, &Problem),
        lagrangian: &Lagrangian,
        path: &Path,
        worker: &mut Worker<D::Work>,
    ) -> Result<(), StepError> {
        self.l.fill(0.0);
        self.h.fill(0.0);
        let along = Along::of(dynamics, problem, path, &self.free);
        let linearizer = Linearizer {
            dynamics,
            problem,
            lagrangian,
            knots: along.knots,
            layout: along.layout,
            trajectory: along.trajectory,
            ends: None,
            sizes: self.sizes,
            frames: &[],
            identity: true,
            free: &self.free,
            learning: false,
        };
        let (l, h) = (&mut self.l, &mut self.h);
        let mut values = vec![];
        self.certificate = sensitivities.run(&along, worker, |seen, local| {
            values.clear();
            values.extend_from_slice(seen.values);
            let mut slot = Slots {
                k: seen.at.k,
                f: &mut [],
                gap: &mut [],
                l: &mut l[..],
                h: &mut h[..],
                values: &mut values,
                y: &mut [],
                rows: &mut [],
            };
            let times = Times::at(along.layout, along.free, seen.at.k);
            linearizer.accumulate(&mut slot, local, &times, Some(seen.rows));
        })?;
        Ok(())
    }

    /// How far all parameters together change each quantity of each knot to first order, each over its range, or by its size
    /// where it has none; nothing where the model has stages, or a step cannot be linearized.
    pub(super) fn range_sensitivities<D: Observe>(
        &self,
        dynamics: &D,
        problem: &Problem,
        path: &Path,
        worker: &mut Worker<D::Work>,
    ) -> Option<Vec<f64>> {
        let mut own = self.sensitivities.clone()?;
        let of = |p: &usize| extent(path.trajectory.p[*p], problem.parameter_bounds[*p]);
        let extents: Vec<f64> = self.free.iter().map(of).collect();
        let mut out = vec![];
        let along = Along::of(dynamics, problem, path, &self.free);
        let change = |row: &[f64]| row.iter().zip(&extents).map(|(r, e)| r.abs() * e).sum();
        let mut see = |seen: &Seen, _: &mut Local| {
            let each = seen.rows.chunks_exact(extents.len().max(1));
            let changes: Vec<f64> = each.map(change).collect();
            out.extend((0..seen.values.len()).map(|i| changes.get(i).copied().unwrap_or(0.0)));
        };
        own.run(&along, worker, &mut see).ok()?;
        Some(out)
    }
}
