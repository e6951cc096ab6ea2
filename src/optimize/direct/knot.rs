//! What a knot contributes to the program: its equations, costs and constraints, with their derivatives by its own variables.
//!
//! These are, one after the other: the move of its state (free chart), its control, the unknowns of its step, and the
//! parameters that are decided.

use crate::control::{Layout, Problem, Timing};
use crate::dynamics::{
    Dims, End, Inputs, Knot, KnotPoint, Observe, Outputs, Rows, StepError, Structure, UnsolvedStep,
};

/// Central differences of gradients are over this change of a variable to both sides, relative to its size where that is above
/// 1: rounding (1e-13 of the gradient, as poses are renormalized) over it and the square of it are both below 1e-8. One-sided
/// differences over 1e-7 left so much rounding that the pendulum took 220 iterations instead of 25.
const DIFFERENCE: f64 = 1e-5;

/// What all knots share.
pub struct Shared<'a, D> {
    pub dynamics: &'a D,
    pub problem: &'a Problem,
    pub layout: &'a Layout,
    pub dims: Dims,
    /// The parameters that are decided.
    pub free: &'a [usize],
    /// Components of the next state whose separation has rows.
    pub next: &'a [usize],
    /// What constraints hold the quantities of costs at the end at: those costs are constants, whose slopes would only add
    /// to the constraints' multipliers.
    pub held: &'a [Option<f64>],
    pub structure: &'a Structure,
}

/// A knot's point: its own variables, and the state that its step leads to.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    pub at: Knot,
    /// The state that moves begin at.
    pub x: &'a [f64],
    /// The same of the next knot; none at the end.
    pub next: Option<&'a [f64]>,
}

/// Its own variables.
#[derive(Clone, Debug, Default)]
pub struct Local {
    pub u: Vec<f64>,
    pub y: Vec<f64>,
    pub p: Vec<f64>,
    /// Moves of the state, and of the one that the step leads to.
    pub d: Vec<f64>,
    pub end: Vec<f64>,
    state: Vec<f64>,
    end_state: Vec<f64>,
    next: Vec<f64>,
    apart: Vec<f64>,
    values: Vec<f64>,
    weights: Vec<f64>,
    rows: Option<Rows>,
    adjoint: Outputs,
    inputs: Inputs,
    unknowns: Vec<f64>,
    by_end: Vec<f64>,
    equations: Vec<f64>,
    saved: Vec<f64>,
}

/// A part of the Lagrangian at a knot.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// The step's equations with their multipliers: of the residual, and of all components of the gap.
    Equations { residual: &'a [f64], gap: &'a [f64] },
    /// What is made of quantities.
    Quantities {
        objective: f64,
        constraints: &'a [f64],
        /// Every quantity counts by half its square: for the pattern, which forms that are flat where one looks do not tell.
        by_squares: bool,
    },
}

/// A state that cannot be reached, as an error.
fn too_far(at: &Knot) -> StepError {
    StepError {
        failure: crate::dynamics::StepFailure::Domain,
        element: "the state".into(),
        time: at.t,
        residual: f64::NAN,
        message: "the move is too large for the chart".into(),
    }
}

impl Local {
    pub fn new(dims: &Dims, widest: usize, has_step: bool) -> Self {
        let ny = if has_step { dims.ny } else { 0 };
        Self {
            u: vec![0.0; dims.nu],
            y: vec![0.0; ny],
            p: vec![0.0; dims.np],
            d: vec![0.0; dims.nf],
            end: vec![0.0; if has_step { dims.nf } else { 0 }],
            state: vec![0.0; dims.nx],
            end_state: vec![0.0; dims.nx],
            by_end: vec![0.0; if has_step { dims.nf } else { 0 }],
            next: vec![0.0; dims.nx],
            apart: vec![0.0; dims.nf],
            values: vec![0.0; widest],
            weights: vec![0.0; widest],
            rows: None,
            adjoint: dims.outputs(),
            inputs: dims.inputs(),
            unknowns: vec![0.0; ny],
            equations: vec![],
            saved: vec![],
        }
    }

    /// What [`Shared::linearize`] left.
    pub fn equations(&self) -> &[f64] {
        &self.equations
    }
}

impl<D: Observe> Shared<'_, D> {
    /// Variables of a knot: its own, and behind them moves of the state that the step leads to.
    pub fn width(&self, has_step: bool) -> usize {
        self.own(has_step) + if has_step { self.dims.nf } else { 0 }
    }

    /// Its own.
    pub fn own(&self, has_step: bool) -> usize {
        let d = &self.dims;
        d.nf + d.nu + if has_step { d.ny } else { 0 } + self.free.len()
    }

    /// Moves the state to the local variables, intervals included.
    fn arrive(&self, here: &Here, l: &mut Local) -> Result<Knot, StepError> {
        let at = self.timed(&here.at, &l.p);
        self.move_state(&at, (here.x, &l.d), &mut l.state)?;
        Ok(at)
    }

    /// The same with the state that the step leads to.
    fn arrive_with_end(&self, here: &Here, l: &mut Local) -> Result<Knot, StepError> {
        let at = self.arrive(here, l)?;
        if let Some(next) = here.next {
            self.move_state(&at, (next, &l.end), &mut l.end_state)?;
        }
        Ok(at)
    }

    fn move_state(
        &self,
        at: &Knot,
        (x, d): (&[f64], &[f64]),
        to: &mut [f64],
    ) -> Result<(), StepError> {
        if d.iter().all(|d| *d == 0.0) {
            // as where second derivatives are asked for
            to.copy_from_slice(x);
        } else if !self.dynamics.displace(x, d, to) {
            return Err(too_far(at));
        }
        Ok(())
    }

    /// The knot with the intervals that the parameters give it.
    fn timed(&self, at: &Knot, p: &[f64]) -> Knot {
        let length =
            |timing: Option<Timing>, else_: f64| timing.map_or(else_, |t| p[t.parameter] * t.share);
        Knot {
            h_prev: length(self.layout.timing_before(at.k), at.h_prev),
            h: length(self.layout.timing(at.k), at.h),
            ..*at
        }
    }

    /// Rows of the equations (residual, then gap) and of the constraints; the objective.
    pub fn evaluate(
        &self,
        here: &Here,
        l: &mut Local,
        w: &mut D::Work,
        rows: &mut [f64],
    ) -> Result<f64, StepError> {
        let at = self.arrive_with_end(here, l)?;
        let seen = KnotPoint {
            at,
            x: &l.state,
            u: &l.u,
            p: &l.p,
            y: &l.y,
        };
        let mut first = 0;
        if let Some(next) = here.next {
            let (residual, rest) = rows.split_at_mut(self.dims.ny);
            let end = Some(End {
                from: next,
                state: &l.end_state,
            });
            let step = UnsolvedStep { start: seen, end };
            self.dynamics.residual(&step, w, residual)?;
            self.dynamics.advance(&seen, w, &mut l.next)?;
            self.dynamics.separation(next, &l.next, &mut l.apart);
            for (row, i) in rest.iter_mut().zip(self.next) {
                *row = l.apart[*i];
            }
            first = self.dims.ny + self.next.len();
        }
        let stage = self.layout.stage(at.k);
        let count = stage.which.len();
        if count == 0 {
            return Ok(0.0);
        }
        let values = &mut l.values[..count];
        self.dynamics.observe(&seen, &stage.which, w, values)?;
        for (row, &(i, place)) in rows[first..].iter_mut().zip(&stage.constraints) {
            let c = &self.problem.constraints[i];
            *row = self.problem.constraint_at(c, at.k, values[place]);
        }
        let costs = stage.costs.iter();
        Ok(costs
            .map(|&(i, place)| {
                let quantity = self.held[i].unwrap_or(values[place]);
                self.problem.cost_at(i, &at, quantity).0.value
            })
            .sum())
    }

    /// Gradient of a part of the Lagrangian, by the knot's own variables.
    pub fn gradient(
        &self,
        here: &Here,
        l: &mut Local,
        w: &mut D::Work,
        part: &Part,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let at = match part {
            Part::Equations { .. } => self.arrive_with_end(here, l)?,
            Part::Quantities { .. } => self.arrive(here, l)?,
        };
        let seen = KnotPoint {
            at,
            x: &l.state,
            u: &l.u,
            p: &l.p,
            y: &l.y,
        };
        l.inputs.clear();
        l.unknowns.fill(0.0);
        l.by_end.fill(0.0);
        let stage = self.layout.stage(at.k);
        let count = stage.which.len();
        match *part {
            Part::Equations { residual, gap } => {
                l.adjoint.x.copy_from_slice(gap);
                l.adjoint.y.copy_from_slice(residual);
                let (inputs, unknowns) = (&mut l.inputs, &mut l.unknowns);
                let step = UnsolvedStep {
                    start: seen,
                    end: here.next.map(|from| End {
                        from,
                        state: &l.end_state,
                    }),
                };
                let adjoint = &l.adjoint;
                self.dynamics
                    .pull_equations(&step, adjoint, w, inputs, unknowns, &mut l.by_end)?;
            }
            Part::Quantities { .. } if count == 0 => {}
            Part::Quantities {
                objective,
                constraints,
                by_squares,
            } => {
                let (values, sums) = (&mut l.values[..count], &mut l.weights[..count]);
                let mut observed = self.dynamics.observe(&seen, &stage.which, w, values)?;
                sums.fill(0.0);
                let (mut h_prev, mut h) = (0.0, 0.0);
                for &(i, place) in stage.costs.iter().filter(|(i, _)| self.held[*i].is_none()) {
                    let (term, density) = (self.problem).cost_at(i, &at, observed.values()[place]);
                    sums[place] += objective * term.slope;
                    let share = self.problem.costs[i].share(&at);
                    h_prev += objective * density * share.by_h_prev;
                    h += objective * density * share.by_h;
                }
                for (&(i, place), y) in stage.constraints.iter().zip(constraints) {
                    sums[place] += y * self.problem.constraints[i].sign();
                }
                if by_squares {
                    let values = observed.values().iter();
                    sums.iter_mut().zip(values).for_each(|(s, v)| *s += v);
                }
                observed.pull(sums, &mut l.inputs, &mut l.unknowns);
                l.inputs.h_prev += h_prev;
                l.inputs.h += h;
            }
        }
        self.gather(&at, l, out);
        Ok(())
    }

    /// Adjoints of the inputs by the knot's own variables.
    fn gather(&self, at: &Knot, l: &Local, out: &mut [f64]) {
        let (x, rest) = out.split_at_mut(self.dims.nf);
        let (u, rest) = rest.split_at_mut(self.dims.nu);
        let (y, rest) = rest.split_at_mut(l.unknowns.len());
        let (p, end) = rest.split_at_mut(self.free.len());
        end.copy_from_slice(&l.by_end);
        x.copy_from_slice(&l.inputs.x);
        u.copy_from_slice(&l.inputs.u);
        y.copy_from_slice(&l.unknowns);
        for (to, &i) in p.iter_mut().zip(self.free) {
            *to = l.inputs.p[i];
        }
        for (j, by_h_prev, by_h) in self.times(at.k) {
            p[j] += by_h_prev * l.inputs.h_prev + by_h * l.inputs.h;
        }
    }

    /// The decided parameters that a knot's intervals depend on, with the derivatives of both.
    pub fn times(&self, k: usize) -> impl Iterator<Item = (usize, f64, f64)> {
        let of = |timing: Option<Timing>| {
            let timing = timing?;
            let place = self.free.iter().position(|p| *p == timing.parameter)?;
            Some((place, timing.share))
        };
        let before = of(self.layout.timing_before(k)).map(|(j, s)| (j, s, 0.0));
        let after = of(self.layout.timing(k)).map(|(j, s)| (j, 0.0, s));
        before.into_iter().chain(after)
    }

    /// Entries of the equations, in the order of the structure.
    pub fn linearize(&self, here: &Here, l: &mut Local, w: &mut D::Work) -> Result<(), StepError> {
        let at = self.arrive_with_end(here, l)?;
        let seen = KnotPoint {
            at,
            x: &l.state,
            u: &l.u,
            p: &l.p,
            y: &l.y,
        };
        l.equations.resize(self.structure.entries().len(), 0.0);
        let step = UnsolvedStep {
            start: seen,
            end: here.next.map(|from| End {
                from,
                state: &l.end_state,
            }),
        };
        self.dynamics
            .derivatives(&step, self.structure, w, &mut l.equations)?;
        Ok(())
    }

    /// Rows of the constraints by the knot's own variables, one after the other.
    pub fn constraint_rows(
        &self,
        here: &Here,
        l: &mut Local,
        w: &mut D::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let at = self.arrive(here, l)?;
        let stage = self.layout.stage(at.k);
        let count = stage.which.len();
        if stage.constraints.is_empty() {
            return Ok(());
        }
        let seen = KnotPoint {
            at,
            x: &l.state,
            u: &l.u,
            p: &l.p,
            y: &l.y,
        };
        let rows = l.rows.get_or_insert_with(|| Rows::new(&self.dims, count));
        let values = &mut l.values[..count];
        self.dynamics
            .observe(&seen, &stage.which, w, values)?
            .rows(rows);
        let ny = l.y.len();
        let width = out.len() / stage.constraints.len();
        for (out, &(i, place)) in out.chunks_exact_mut(width).zip(&stage.constraints) {
            let sign = self.problem.constraints[i].sign();
            let d = &self.dims;
            let (x, u, y) = (rows.x.row(place), rows.u.row(place), rows.y.row(place));
            let own = x.iter().chain(u.iter()).chain(y.iter().take(ny));
            for (o, v) in out.iter_mut().zip(own) {
                *o = sign * v;
            }
            let p = &mut out[d.nf + d.nu + ny..];
            for (to, &i) in p.iter_mut().zip(self.free) {
                *to = sign * rows.p[(place, i)];
            }
            for (j, by_h_prev, by_h) in self.times(at.k) {
                p[j] += sign * (by_h_prev * rows.h_prev[place] + by_h * rows.h[place]);
            }
        }
        Ok(())
    }

    /// The variable of that place.
    fn variable<'l>(&self, l: &'l mut Local, i: usize) -> &'l mut f64 {
        let d = &self.dims;
        let first = [d.nf, d.nu, l.y.len()];
        let mut left = i;
        for (size, list) in first.into_iter().zip([&mut l.d, &mut l.u, &mut l.y]) {
            match left.checked_sub(size) {
                None => return &mut list[left],
                Some(rest) => left = rest,
            }
        }
        match left.checked_sub(self.free.len()) {
            None => &mut l.p[self.free[left]],
            Some(i) => &mut l.end[i],
        }
    }

    /// A variable's value, or what is next to it from where it may be changed to both sides: beyond their bounds parameters
    /// need not have a meaning.
    fn within(&self, i: usize, value: f64, unknowns: usize, change: f64) -> f64 {
        let first = self.dims.nf + self.dims.nu + unknowns;
        let parameter = i.checked_sub(first).and_then(|j| self.free.get(j));
        parameter.map_or(value, |p| {
            let (lower, upper) = self.problem.parameter_bounds[*p];
            value.min(upper - change).max(lower + change)
        })
    }

    /// What a variable is changed by, to both sides.
    pub fn change(&self, l: &mut Local, i: usize) -> f64 {
        DIFFERENCE * self.variable(l, i).abs().max(1.0)
    }

    /// Difference of the gradient between several variables changed to both sides, each by [`Shared::change`].
    pub fn curvature(
        &self,
        here: &Here,
        l: &mut Local,
        w: &mut D::Work,
        part: &Part,
        group: &[usize],
        (other, out): (&mut [f64], &mut [f64]),
    ) -> Result<(), StepError> {
        let mut saved = std::mem::take(&mut l.saved);
        saved.clear();
        saved.extend(group.iter().map(|i| *self.variable(l, *i)));
        let mut side = |l: &mut Local, sign: f64, out: &mut [f64]| {
            for (&i, value) in group.iter().zip(&saved) {
                *self.variable(l, i) = *value;
                let change = self.change(l, i);
                *self.variable(l, i) = self.within(i, *value, l.y.len(), change) + sign * change;
            }
            self.gradient(here, l, w, part, out)
        };
        let made = side(l, 1.0, out).and(side(l, -1.0, other));
        for (&i, value) in group.iter().zip(&saved) {
            *self.variable(l, i) = *value;
        }
        l.saved = saved;
        made?;
        for (o, b) in out.iter_mut().zip(other) {
            *o -= *b;
        }
        Ok(())
    }
}
