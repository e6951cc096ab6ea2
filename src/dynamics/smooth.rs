//! Dynamics written as formulas: a user gives one step, its derivatives follow by automatic differentiation.

use super::{
    Certificate, Charts, Column, Differentiable, Dims, Dual, Equations, Frame, Inputs, Knot,
    KnotPoint, LinearModel, Observe, Outputs, Parameter, QuantityId, Real, Rows, SolvedStep, Start,
    Step, StepError, StepFailure, StepStats, Stored, Structure, UnsolvedStep,
};
use nalgebra::DMatrix;

/// A discrete-time system `x+ = f(t, h, x, u, p)` given by smooth formulas, generic over the number so that
/// [`Explicit`] can differentiate them.
///
/// ```
/// use least_action::dynamics::{Explicit, Real, Smooth};
///
/// /// 1 kg at 1 m, semi-implicit Euler: x = (angle from hanging, its rate), u = torque.
/// struct Pendulum;
///
/// impl Smooth for Pendulum {
///     fn states(&self) -> usize { 2 }
///     fn controls(&self) -> usize { 1 }
///
///     fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
///         let acceleration = u[0] - x[0].sin() * 9.81;
///         next[1] = x[1] + h * acceleration;
///         next[0] = x[0] + h * next[1];
///     }
/// }
///
/// let dynamics = Explicit::new(Pendulum); // a `Dynamics` and `Observe`, ready for rollouts and optimizers
/// # use least_action::dynamics::Step;
/// # use least_action::rollout::{RolloutStats, Trajectory};
/// let mut t = Trajectory::new(&dynamics, vec![0.01; 100], &[1.0, 0.0]);
/// t.roll(&dynamics, &mut dynamics.work(), &mut RolloutStats::default())?;
/// assert!((t.state(100)[0] + 0.97).abs() < 0.05);
/// # Ok::<(), least_action::dynamics::StepError>(())
/// ```
pub trait Smooth: Sync {
    /// Numbers of a state.
    fn states(&self) -> usize;

    /// Controls.
    fn controls(&self) -> usize;

    /// Name, unit and value of the parameters.
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }

    /// The state `next` after the interval `h`, s, from `x` at time `t`, s, with the control `u` and parameters `p`.
    fn step<T: Real>(&self, t: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]);

    /// The state at the start, from coordinates `q` and their rates; by default one after the other.
    fn initial<T: Real>(&self, q: &[T], rates: &[T], p: &[T], x: &mut [T]) {
        let _ = p;
        for (x, v) in x.iter_mut().zip(q.iter().chain(rates)) {
            *x = *v;
        }
    }

    /// Name and unit of a state.
    fn state_name(&self, i: usize) -> (String, String) {
        (format!("x{i}"), "1".into())
    }

    /// Name and unit of a control.
    fn control_name(&self, i: usize) -> (String, String) {
        (format!("u{i}"), "1".into())
    }

    /// Name and unit of what can be observed beside states and controls.
    fn outputs(&self) -> Vec<(String, String)> {
        vec![]
    }

    /// Values of [`Smooth::outputs`].
    fn observe<T: Real>(&self, t: f64, x: &[T], u: &[T], p: &[T], out: &mut [T]) {
        let _ = (t, x, u, p, out);
    }
}

/// Makes a [`Smooth`] system a [`Dynamics`](super::Dynamics) with exact derivatives. Its joint chart is the identity. Quantities are
/// every state, then every control, then the outputs.
#[derive(Clone, Debug)]
pub struct Explicit<S> {
    system: S,
    dims: Dims,
    outputs: usize,
}

impl<S: Smooth> Explicit<S> {
    /// Takes a system.
    pub fn new(system: S) -> Self {
        let nx = system.states();
        Self {
            dims: Dims {
                nx,
                nf: nx,
                ndx: nx,
                nu: system.controls(),
                np: system.parameters().len(),
                ny: 0,
            },
            outputs: system.outputs().len(),
            system,
        }
    }

    /// The system.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// The quantity that is control `i`; states are first.
    pub fn control_quantity(&self, i: usize) -> QuantityId {
        QuantityId::new(self.dims.nx + i)
    }

    /// The quantity that is output `i`.
    pub fn output_quantity(&self, i: usize) -> QuantityId {
        QuantityId::new(self.dims.nx + self.dims.nu + i)
    }

    /// `values` (inputs x, u, p, h in a row) as numbers with derivatives, chunk by chunk, through `formula`.
    fn differentiate<const N: usize>(
        &self,
        lanes: &mut Lanes<N>,
        values: [&[f64]; 4],
        formula: impl Fn(&[Dual<f64, N>], &mut [Dual<f64, N>]),
        jacobian: &mut DMatrix<f64>,
    ) {
        let (columns, rows) = (jacobian.ncols(), jacobian.nrows());
        let all = values.iter().flat_map(|v| v.iter());
        for (i, v) in lanes.inputs.iter_mut().zip(all) {
            *i = Dual::constant(*v);
        }
        for first in (0..columns).step_by(N) {
            let width = N.min(columns - first);
            for lane in 0..width {
                lanes.inputs[first + lane].by[lane] = 1.0;
            }
            formula(&lanes.inputs, &mut lanes.outputs[..rows]);
            for lane in 0..width {
                lanes.inputs[first + lane].by[lane] = 0.0;
            }
            let columns = &mut jacobian.as_mut_slice()[first * rows..(first + width) * rows];
            for (i, o) in lanes.outputs[..rows].iter().enumerate() {
                for (lane, by) in o.by[..width].iter().enumerate() {
                    columns[lane * rows + i] = *by;
                }
            }
        }
    }

    /// Derivative of the start by one of coordinates, rates and parameters.
    fn start_by(&self, values: [&[f64]; 3], by: usize) -> DMatrix<f64> {
        let mut out = DMatrix::zeros(self.dims.nf, values[by].len());
        let mut x = vec![Dual::<f64, 1>::constant(0.0); self.dims.nx];
        for (i, mut column) in out.column_iter_mut().enumerate() {
            let lift = |of: usize| -> Vec<_> {
                let number = |(j, v): (usize, &f64)| match (of, j) == (by, i) {
                    true => Dual::variable(*v, 0),
                    false => Dual::constant(*v),
                };
                values[of].iter().enumerate().map(number).collect()
            };
            self.system.initial(&lift(0), &lift(1), &lift(2), &mut x);
            column.iter_mut().zip(&x).for_each(|(c, x)| *c = x.by[0]);
        }
        out
    }

    fn by_inputs<const N: usize>(
        &self,
        lanes: &mut Lanes<N>,
        at: &SolvedStep,
        jacobian: &mut DMatrix<f64>,
    ) {
        let (nx, nu) = (self.dims.nx, self.dims.nu);
        let h = [at.at.h];
        let step = |inputs: &[Dual<f64, N>], next: &mut [Dual<f64, N>]| {
            let (x, rest) = inputs.split_at(nx);
            let (u, rest) = rest.split_at(nu);
            let (p, h) = rest.split_at(rest.len() - 1);
            self.system.step(at.at.t, h[0], x, u, p, next);
        };
        self.differentiate(lanes, [at.x, at.u, at.p, &h], step, jacobian);
    }

    fn outputs_by_inputs<const N: usize>(
        &self,
        lanes: &mut Lanes<N>,
        seen: &KnotPoint,
        jacobian: &mut DMatrix<f64>,
    ) {
        let (nx, nu, np) = (self.dims.nx, self.dims.nu, self.dims.np);
        let observe = |inputs: &[Dual<f64, N>], out: &mut [Dual<f64, N>]| {
            let (x, rest) = inputs.split_at(nx);
            let (u, rest) = rest.split_at(nu);
            self.system.observe(seen.at.t, x, u, &rest[..np], out);
        };
        self.differentiate(lanes, [seen.x, seen.u, seen.p, &[]], observe, jacobian);
    }

    /// Derivatives of the outputs at what is seen, if any of them is among `which`.
    fn differentiate_outputs(&self, seen: &KnotPoint, which: &[QuantityId], w: &mut SmoothWork) {
        if which.iter().all(|q| *q < self.output_quantity(0)) {
            return;
        }
        let jacobian = &mut w.observed;
        match &mut w.chunk {
            Chunk::Two(l) => self.outputs_by_inputs(l, seen, jacobian),
            Chunk::Four(l) => self.outputs_by_inputs(l, seen, jacobian),
            Chunk::Six(l) => self.outputs_by_inputs(l, seen, jacobian),
            Chunk::Eight(l) => self.outputs_by_inputs(l, seen, jacobian),
        }
    }
}

/// Inputs and outputs of a formula with derivatives in `N` directions.
#[derive(Debug)]
struct Lanes<const N: usize> {
    inputs: Vec<Dual<f64, N>>,
    outputs: Vec<Dual<f64, N>>,
}

impl<const N: usize> Lanes<N> {
    fn new(inputs: usize, outputs: usize) -> Self {
        let zeros = |n| vec![Dual::constant(0.0); n];
        Self {
            inputs: zeros(inputs),
            outputs: zeros(outputs),
        }
    }
}

/// As many directions at once as there are inputs, eight at most.
#[derive(Debug)]
enum Chunk {
    Two(Lanes<2>),
    Four(Lanes<4>),
    Six(Lanes<6>),
    Eight(Lanes<8>),
}

/// Memory of an [`Explicit`] system.
#[derive(Debug)]
pub struct SmoothWork {
    chunk: Chunk,
    /// Derivatives of the step last linearized by x, u, p, h.
    jacobian: DMatrix<f64>,
    /// Derivatives of the outputs by x, u, p.
    observed: DMatrix<f64>,
    outputs: Vec<f64>,
}

impl<S: Smooth> Step for Explicit<S> {
    type Work = SmoothWork;

    fn dims(&self) -> Dims {
        self.dims
    }

    fn work(&self) -> SmoothWork {
        let d = &self.dims;
        let inputs = d.nx + d.nu + d.np + 1;
        let outputs = d.nx.max(self.outputs);
        SmoothWork {
            chunk: match inputs {
                0..=2 => Chunk::Two(Lanes::new(inputs, outputs)),
                3..=4 => Chunk::Four(Lanes::new(inputs, outputs)),
                5..=6 => Chunk::Six(Lanes::new(inputs, outputs)),
                _ => Chunk::Eight(Lanes::new(inputs, outputs)),
            },
            jacobian: DMatrix::zeros(d.nx, inputs),
            observed: DMatrix::zeros(self.outputs, inputs - 1),
            outputs: vec![0.0; self.outputs],
        }
    }

    fn controls(&self) -> Vec<(String, String)> {
        let names = (0..self.dims.nu).map(|i| self.system.control_name(i));
        names.collect()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.system.parameters()
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        _w: &mut SmoothWork,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        // so that numbers left out are found
        x.fill(f64::NAN);
        self.system.initial(start.coordinates, start.rates, p, x);
        finite(x, 0.0, "initial")
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        _w: &mut SmoothWork,
    ) -> Result<DMatrix<f64>, StepError> {
        Ok(self.start_by([start.coordinates, start.rates, p], 2))
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        _w: &mut SmoothWork,
    ) -> Result<DMatrix<f64>, StepError> {
        let (q, rates) = (start.coordinates, start.rates);
        let rest = self.start_by([q, rates, p], 1);
        let mut by = self.start_by([q, rates, p], 0);
        // rates are rates, of whatever interval
        by = by.resize_horizontally(q.len() + rates.len() + 1, 0.0);
        by.columns_mut(q.len(), rates.len()).copy_from(&rest);
        Ok(by)
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        _w: &mut SmoothWork,
        next: &mut [f64],
        _y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.system.step(at.t, at.h, x, u, p, next);
        finite(next, at.t, "step")?;
        Ok(StepStats::default())
    }

    fn soften(&self, _: &mut SmoothWork, _: f64) -> bool {
        false
    }
}

impl<S: Smooth> Differentiable for Explicit<S> {
    crate::without!(smoothing, keeping);

    fn linearize_in(&self, at: &SolvedStep, w: &mut SmoothWork) -> Result<Certificate, StepError> {
        let jacobian = &mut w.jacobian;
        match &mut w.chunk {
            Chunk::Two(l) => self.by_inputs(l, at, jacobian),
            Chunk::Four(l) => self.by_inputs(l, at, jacobian),
            Chunk::Six(l) => self.by_inputs(l, at, jacobian),
            Chunk::Eight(l) => self.by_inputs(l, at, jacobian),
        }
        finite(jacobian.as_slice(), at.at.t, "the derivatives of the step")?;
        Ok(Certificate::default())
    }

    fn push_in(&self, w: &mut SmoothWork, d: &Inputs, out: &mut Outputs) {
        let h = [d.h];
        let all = [&d.x, &d.u, &d.p, &h[..]].into_iter().flatten();
        out.x.fill(0.0);
        for (column, d) in w.jacobian.column_iter().zip(all) {
            for (o, c) in out.x.iter_mut().zip(column.iter()) {
                *o += c * d;
            }
        }
    }

    fn pull_in(&self, w: &mut SmoothWork, adjoint: &Outputs, out: &mut Inputs) {
        let mut h = [0.0];
        let all = [&mut out.x[..], &mut out.u, &mut out.p, &mut h];
        let all = all.into_iter().flatten();
        for (column, o) in w.jacobian.column_iter().zip(all) {
            *o = column.iter().zip(&adjoint.x).map(|(c, a)| c * a).sum();
        }
        (out.h_prev, out.h) = (0.0, h[0]);
    }
}

impl<S: Smooth> Charts for Explicit<S> {
    crate::without!(charts);

    fn linear_model_in(&self, w: &mut SmoothWork, _: &Frame, _: &Frame, out: &mut LinearModel) {
        let (nx, nu) = (self.dims.nx, self.dims.nu);
        let all = w.jacobian.as_slice();
        let (a, rest) = all.split_at(nx * nx);
        let (b, rest) = rest.split_at(nx * nu);
        out.a.as_mut_slice().copy_from_slice(a);
        out.b.as_mut_slice().copy_from_slice(b);
        let p = out.p.as_mut_slice();
        p.copy_from_slice(&rest[..p.len()]);
    }
}

/// The free chart is the stored numbers.
impl<S: Smooth> Stored for Explicit<S> {
    fn stored_push(&self, _: &[f64], free: &[f64], stored: &mut [f64]) {
        stored.copy_from_slice(free);
    }

    fn stored_pull(&self, _: &[f64], free: &[f64], stored: &mut [f64]) {
        stored.copy_from_slice(free);
    }
}

/// Nothing is left unsolved: the next state is a function of what goes in.
impl<S: Smooth> Equations for Explicit<S> {
    fn structure(&self, _has_end: bool) -> Structure {
        let d = self.dims();
        let mut columns: Vec<Vec<usize>> = vec![(0..d.nf).collect(); d.nf + d.nu + d.np];
        // steps do not refer to the interval before
        columns.extend([vec![], (0..d.nf).collect()]);
        columns.resize(Column::count(&d), vec![]);
        Structure::new(d.nf, &columns)
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        let d = self.dims();
        self.linearize_in(&unsolved(&at.start), w)?;
        for (value, &(row, column)) in values.iter_mut().zip(structure.entries()) {
            // the interval before has a column in the structure, not in the Jacobian
            let column = column.min(d.nf + d.nu + d.np);
            *value = w.jacobian[(row, column)];
        }
        Ok(())
    }

    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut Self::Work,
        out: &mut Inputs,
        _y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        end.fill(0.0);
        // the derivatives need no step before them
        self.linearize_in(&unsolved(&at.start), w)?;
        self.pull_in(w, adjoint, out);
        Ok(())
    }
}

/// Nothing of a step is left to solve.
fn unsolved<'a>(at: &KnotPoint<'a>) -> SolvedStep<'a> {
    SolvedStep {
        at: at.at,
        x: at.x,
        u: at.u,
        p: at.p,
        y: &[],
        next: &[],
    }
}

impl<S: Smooth> Observe for Explicit<S> {
    crate::without!(unknowns);

    fn quantities(&self) -> Vec<(String, String)> {
        let states = (0..self.dims.nx).map(|i| self.system.state_name(i));
        let controls = (0..self.dims.nu).map(|i| self.system.control_name(i));
        let outputs = self.system.outputs();
        states.chain(controls).chain(outputs).collect()
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut SmoothWork,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let (nx, first) = (self.dims.nx, self.output_quantity(0).index());
        if which.iter().any(|q| q.index() >= first) {
            let values = &mut w.outputs;
            self.system
                .observe(seen.at.t, seen.x, seen.u, seen.p, values);
            finite(values, seen.at.t, "observe")?;
        }
        for (o, &q) in out.iter_mut().zip(which) {
            *o = match q.index() {
                q if q < nx => seen.x[q],
                q if q < first => seen.u[q - nx],
                q => w.outputs[q - first],
            };
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut SmoothWork,
        adjoint: &[f64],
        out: &mut Inputs,
        _y: &mut [f64],
    ) {
        let (nx, first) = (self.dims.nx, self.output_quantity(0).index());
        self.differentiate_outputs(seen, which, w);
        for (q, a) in which.iter().zip(adjoint) {
            let q = q.index();
            if q < nx {
                out.x[q] += a;
            } else if q < first {
                out.u[q - nx] += a;
            } else {
                let row = w.observed.row(q - first);
                let all = [&mut out.x[..], &mut out.u, &mut out.p];
                for (o, r) in all.into_iter().flatten().zip(row.iter()) {
                    *o += a * r;
                }
            }
        }
    }

    fn observe_rows_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut SmoothWork,
        out: &mut Rows,
    ) {
        let (nx, nu, first) = (self.dims.nx, self.dims.nu, self.output_quantity(0).index());
        self.differentiate_outputs(seen, which, w);
        let Rows {
            x, u, p, h_prev, h, ..
        } = out;
        for m in [&mut *x, &mut *u, &mut *p] {
            m.as_mut_slice().fill(0.0);
        }
        h_prev.fill(0.0);
        h.fill(0.0);
        for (i, q) in which.iter().enumerate() {
            let q = q.index();
            if q < nx {
                x[(i, q)] = 1.0;
            } else if q < first {
                u[(i, q - nx)] = 1.0;
            } else {
                let row = w.observed.row(q - first);
                for (j, r) in row.iter().enumerate() {
                    match j {
                        j if j < nx => x[(i, j)] = *r,
                        j if j < nx + nu => u[(i, j - nx)] = *r,
                        j => p[(i, j - nx - nu)] = *r,
                    }
                }
            }
        }
    }
}

/// Refuses numbers that are not finite.
fn finite(values: &[f64], time: f64, what: &str) -> Result<(), StepError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(i) => Err(StepError {
            failure: StepFailure::NotFinite,
            element: format!("number {i}"),
            time,
            residual: f64::NAN,
            message: format!("{what} gave {}; check the formulas there", values[i]),
        }),
    }
}
