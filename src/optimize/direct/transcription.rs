//! A problem as a nonlinear program.

use super::knot::{Here, Local, Shared, Weights};
use super::probe;
use crate::control::{Layout, Problem, Relation};
use crate::dynamics::{Dims, Equations, Knot, Observe, StepError, Structure, stop_requested};
use crate::optimize::nlp::{Program, Undefined};
use crate::rollout::Trajectory;
use rayon::prelude::*;

/// The program of a problem. Its variables are, knot by knot, the move of the state (free chart), the control and the
/// unknowns of the step; behind them the parameters that are decided. Its rows are the start (where parameters decide it),
/// then knot by knot the step's residual, the separation of the next state from the step's end, and the constraints.
pub struct Transcription<'a, D: Observe + Equations> {
    plan: Plan<'a, D>,
    memory: Vec<Memory>,
    workers: Vec<D::Work>,
}

/// Length of the moves, in parts of the derivative, by which the start's separation is differentiated.
const MOVE: f64 = 1e-5;

/// What threads share.
struct Plan<'a, D> {
    dynamics: &'a D,
    problem: &'a Problem,
    layout: Layout,
    dims: Dims,
    free: Vec<usize>,
    structure: Structure,
    /// The guess, then the states of the last accepted iterate.
    trajectory: Trajectory,
    knots: Vec<Knot>,
    /// Is the start decided by parameters?
    start_moves: bool,
    kinds: Vec<Kind>,
    /// Which of them each knot is of.
    kind_of: Vec<usize>,
    /// First variable and first row of every knot; then those behind the last one.
    first: Vec<(usize, usize)>,
}

/// The pattern of the Hessian of knots that ask for the same.
struct Kind {
    curved: Structure,
    /// Its lower triangle, with the places of both halves in the pattern.
    lower: Vec<(usize, usize, [usize; 2])>,
}

impl Kind {
    fn new(curved: Structure) -> Self {
        let entries = curved.entries();
        let of = |row, column| entries.iter().position(|e| *e == (row, column));
        let lower = entries.iter().enumerate().filter(|(_, (i, j))| i >= j);
        let lower = lower.map(|(at, &(i, j))| (i, j, [at, of(j, i).unwrap_or(at)]));
        Self {
            lower: lower.collect(),
            curved,
        }
    }
}

/// Memory of a knot.
struct Memory {
    local: Local,
    rows: Vec<f64>,
    gradient: Vec<f64>,
    jacobian: Vec<f64>,
    hessian: Vec<f64>,
    by: Vec<f64>,
    curved: Vec<f64>,
    objective: f64,
    failed: Option<StepError>,
}

impl<'a, D: Observe + Equations> Transcription<'a, D> {
    /// Of a problem from a guess.
    ///
    /// # Errors
    /// Where the start does not exist.
    pub fn new(
        dynamics: &'a D,
        problem: &'a Problem,
        guess: Trajectory,
    ) -> Result<Self, StepError> {
        let (dims, layout) = (dynamics.dims(), problem.layout());
        let free = problem.free_parameters();
        let mut work = dynamics.work();
        let by = problem.start_by_parameters(dynamics, &guess.p, &mut work)?;
        let start_moves = free.iter().any(|i| by.column(*i).iter().any(|b| *b != 0.0));
        let n = guess.steps();
        let mut knots = vec![guess.knot(0)];
        for k in 0..n {
            knots.push(guess.knot_after(&knots[k]));
        }
        let widest = (0..=n).map(|k| layout.stage(k).which.len()).max();
        let mut first = vec![(0, if start_moves { dims.nf } else { 0 })];
        for k in 0..=n {
            let (v, r) = first[k];
            let constraints = layout.stage(k).constraints.len();
            first.push(if k < n {
                let rows = dims.ny + dims.nf + constraints;
                (v + dims.nf + dims.nu + dims.ny, r + rows)
            } else {
                (v + dims.nf, r + constraints)
            });
        }
        let mut plan = Plan {
            structure: dynamics.structure(),
            dynamics,
            problem,
            layout,
            dims,
            free,
            trajectory: guess,
            knots,
            start_moves,
            kinds: vec![],
            kind_of: vec![],
            first,
        };
        plan.find_kinds(widest.unwrap_or(0), &mut work);
        let threads = rayon::current_num_threads().clamp(1, n.max(1));
        Ok(Self {
            memory: (0..=n)
                .map(|k| plan.memory(k, widest.unwrap_or(0)))
                .collect(),
            workers: (0..threads).map(|_| dynamics.work()).collect(),
            plan,
        })
    }

    /// Lets every knot do something, shared among threads; the first failure along the path.
    fn each(
        &mut self,
        x: &[f64],
        work: impl Fn(&Plan<D>, usize, &mut Memory, &mut D::Work) -> Result<(), StepError> + Sync,
    ) -> Result<(), Undefined> {
        if stop_requested() {
            return Err(Undefined("a stop was requested".into()));
        }
        self.plan.retime(x);
        let (plan, memory) = (&self.plan, &mut self.memory);
        let size = memory.len().div_ceil(self.workers.len());
        let parts = memory.par_chunks_mut(size).zip(&mut self.workers);
        parts.enumerate().for_each(|(part, (memory, w))| {
            for (k, m) in memory.iter_mut().enumerate() {
                let k = part * size + k;
                plan.fill(k, x, &mut m.local);
                m.failed = work(plan, k, m, w).err();
            }
        });
        let failed = memory.iter_mut().find_map(|m| m.failed.take());
        failed.map_or(Ok(()), |e| Err(Undefined(e.to_string())))
    }

    /// The trajectory of variables, those of the last accepted iterate where moves are zero.
    pub fn trajectory(&self, x: &[f64]) -> Trajectory {
        self.plan.trajectory_at(x)
    }

    /// Separation of the first state from the start, and its derivative by the decided parameters.
    fn start_at(&mut self, x: &[f64]) -> Result<(Vec<f64>, Vec<f64>), Undefined> {
        let (plan, w) = (&self.plan, &mut self.workers[0]);
        let p = plan.decided(x);
        let failed = |e: StepError| Undefined(e.to_string());
        let x0 = plan.problem.start(plan.dynamics, &p, w).map_err(failed)?;
        let by = plan.problem.start_by_parameters(plan.dynamics, &p, w);
        let by = by.map_err(failed)?;
        let mut apart = vec![0.0; plan.dims.nf];
        let first = plan.trajectory.state(0);
        plan.dynamics.separation(first, &x0, &mut apart);
        // how the separation follows the start: by moves of the start
        let mut moved = x0.clone();
        let mut columns = vec![];
        for &i in &plan.free {
            let mut column = vec![0.0; plan.dims.nf];
            let mut side = |sign: f64, column: &mut [f64]| {
                let change: Vec<f64> = by.column(i).iter().map(|b| sign * MOVE * b).collect();
                plan.dynamics.displace(&x0, &change, &mut moved);
                let mut apart = vec![0.0; plan.dims.nf];
                plan.dynamics.separation(first, &moved, &mut apart);
                for (c, a) in column.iter_mut().zip(&apart) {
                    *c += sign * a / (2.0 * MOVE);
                }
            };
            side(1.0, &mut column);
            side(-1.0, &mut column);
            columns.extend(column);
        }
        Ok((apart, columns))
    }
}

impl<D: Observe + Equations> Plan<'_, D> {
    fn memory(&self, k: usize, widest: usize) -> Memory {
        let has_step = k < self.steps();
        let width = self.shared().width(has_step);
        let constraints = self.layout.stage(k).constraints.len();
        let kind = &self.kinds[self.kind_of[k]];
        let mut local = Local::new(&self.dims, widest, has_step);
        local.p.copy_from_slice(&self.trajectory.p);
        Memory {
            local,
            rows: vec![0.0; self.first[k + 1].1 - self.first[k].1],
            gradient: vec![0.0; width],
            jacobian: vec![0.0; constraints * width],
            hessian: vec![0.0; kind.lower.len()],
            by: vec![0.0; width],
            curved: vec![0.0; kind.curved.entries().len()],
            objective: 0.0,
            failed: None,
        }
    }

    fn steps(&self) -> usize {
        self.knots.len() - 1
    }

    /// First of the parameters among the variables.
    fn parameters(&self) -> usize {
        self.first[self.knots.len()].0
    }

    /// Patterns of the Hessian: knots that ask for the same share one.
    fn find_kinds(&mut self, widest: usize, w: &mut D::Work) {
        let mut known: Vec<(*const crate::control::Stage, [Option<usize>; 2], bool)> = vec![];
        for k in 0..=self.steps() {
            let timed = |k: Option<usize>| Some(self.layout.timing(k?)?.parameter);
            let own = (
                std::ptr::from_ref(self.layout.stage(k)),
                [timed(k.checked_sub(1)), timed(Some(k))],
                k < self.steps(),
            );
            let kind = known.iter().position(|o| *o == own).unwrap_or_else(|| {
                known.push(own);
                let mut local = Local::new(&self.dims, widest, k < self.steps());
                local.p.copy_from_slice(&self.trajectory.p);
                self.fill(k, &[], &mut local);
                let found = probe::curved(&self.shared(), &self.here(k), &local, w);
                self.kinds.push(Kind::new(found));
                self.kinds.len() - 1
            });
            self.kind_of.push(kind);
        }
    }

    fn shared(&self) -> Shared<'_, D> {
        Shared {
            dynamics: self.dynamics,
            problem: self.problem,
            layout: &self.layout,
            dims: self.dims,
            free: &self.free,
            structure: &self.structure,
        }
    }

    fn here(&self, k: usize) -> Here<'_> {
        Here {
            at: self.knots[k],
            x: self.trajectory.state(k),
            next: (k < self.steps()).then(|| self.trajectory.state(k + 1)),
        }
    }

    /// The variable of a knot's own one. The last knot sees the control of the last step.
    fn variable(&self, k: usize, own: usize) -> usize {
        let (d, first) = (&self.dims, self.first[k].0);
        if k < self.steps() {
            let width = d.nf + d.nu + d.ny;
            return match own.checked_sub(width) {
                None => first + own,
                Some(p) => self.parameters() + p,
            };
        }
        match own.checked_sub(d.nf) {
            None => first + own,
            Some(u) if u < d.nu => self.first[k.saturating_sub(1)].0 + d.nf + u,
            Some(rest) => self.parameters() + rest - d.nu,
        }
    }

    /// Local variables from all of them; from the guess where there are none.
    fn fill(&self, k: usize, x: &[f64], l: &mut Local) {
        let d = &self.dims;
        let t = &self.trajectory;
        let last = k.min(self.steps().saturating_sub(1));
        if x.is_empty() {
            l.u.copy_from_slice(t.control(last));
            let ny = l.y.len();
            l.y.copy_from_slice(&t.y[k * d.ny..][..ny]);
            return;
        }
        let first = self.first[k].0;
        l.d.copy_from_slice(&x[first..first + d.nf]);
        let u = self.first[last].0 + d.nf;
        l.u.copy_from_slice(&x[u..u + d.nu]);
        let y = first + d.nf + d.nu;
        let ny = l.y.len();
        l.y.copy_from_slice(&x[y.min(x.len() - ny)..][..ny]);
        for (j, &i) in self.free.iter().enumerate() {
            l.p[i] = x[self.parameters() + j];
        }
    }

    /// The trajectory of variables, those of the last accepted iterate where moves are zero.
    fn trajectory_at(&self, x: &[f64]) -> Trajectory {
        let mut t = self.trajectory.clone();
        let d = &self.dims;
        for k in 0..=self.steps() {
            let first = self.first[k].0;
            let state = self.trajectory.state(k);
            let moved = &mut t.x[k * d.nx..(k + 1) * d.nx];
            self.dynamics
                .displace(state, &x[first..first + d.nf], moved);
            if k < self.steps() {
                let own = &x[first + d.nf..];
                t.u[k * d.nu..(k + 1) * d.nu].copy_from_slice(&own[..d.nu]);
                t.y[k * d.ny..(k + 1) * d.ny].copy_from_slice(&own[d.nu..d.nu + d.ny]);
            }
        }
        for (j, &i) in self.free.iter().enumerate() {
            t.p[i] = x[self.parameters() + j];
        }
        self.problem.set_intervals(&t.p, &mut t.intervals);
        t
    }

    /// Moves the knots to the times that the parameters give them.
    fn retime(&mut self, x: &[f64]) {
        if self.problem.durations.is_empty() {
            return;
        }
        for (j, &i) in self.free.iter().enumerate() {
            self.trajectory.p[i] = x[self.parameters() + j];
        }
        let t = &mut self.trajectory;
        self.problem.set_intervals(&t.p, &mut t.intervals);
        for k in 0..self.knots.len() {
            self.knots[k] = match k {
                0 => t.knot(0),
                _ => t.knot_after(&self.knots[k - 1]),
            };
        }
    }

    fn decided(&self, x: &[f64]) -> Vec<f64> {
        let mut p = self.trajectory.p.clone();
        for (j, &i) in self.free.iter().enumerate() {
            p[i] = x[self.parameters() + j];
        }
        p
    }
}

impl<D: Observe + Equations> Program for Transcription<'_, D> {
    fn variables(&self) -> usize {
        self.plan.parameters() + self.plan.free.len()
    }

    fn rows(&self) -> usize {
        self.plan.first[self.plan.knots.len()].1
    }

    fn start(&self) -> Vec<f64> {
        let (d, t) = (&self.plan.dims, &self.plan.trajectory);
        let mut x = vec![0.0; self.variables()];
        for k in 0..self.plan.steps() {
            let own = &mut x[self.plan.first[k].0 + d.nf..];
            own[..d.nu].copy_from_slice(t.control(k));
            own[d.nu..d.nu + d.ny].copy_from_slice(&t.y[k * d.ny..(k + 1) * d.ny]);
        }
        for (j, &i) in self.plan.free.iter().enumerate() {
            x[self.plan.parameters() + j] = t.p[i];
        }
        x
    }

    fn bounds(&self) -> Vec<(f64, f64)> {
        let open = (f64::NEG_INFINITY, f64::INFINITY);
        let mut out = vec![open; self.variables()];
        if !self.plan.start_moves {
            out[..self.plan.dims.nf].fill((0.0, 0.0));
        }
        for k in 0..self.plan.steps() {
            let own = &mut out[self.plan.first[k].0 + self.plan.dims.nf..];
            own[..self.plan.dims.nu].copy_from_slice(&self.plan.problem.bounds);
        }
        let first = self.plan.parameters();
        for (to, &i) in out[first..].iter_mut().zip(&self.plan.free) {
            *to = self.plan.problem.parameter_bounds[i];
        }
        out
    }

    fn row_bounds(&self) -> Vec<(f64, f64)> {
        let mut out = vec![(0.0, 0.0); self.rows()];
        for k in 0..=self.plan.steps() {
            let constraints = &self.plan.layout.stage(k).constraints;
            let first = self.plan.first[k + 1].1 - constraints.len();
            for (to, (i, _)) in out[first..].iter_mut().zip(constraints) {
                if self.plan.problem.constraints[*i].relation != Relation::Equal {
                    to.0 = f64::NEG_INFINITY;
                }
            }
        }
        out
    }

    fn jacobian(&self) -> Vec<(usize, usize)> {
        let d = &self.plan.dims;
        let mut out = vec![];
        if self.plan.start_moves {
            out.extend((0..d.nf).map(|i| (i, i)));
            let first = self.plan.parameters();
            out.extend(
                (0..self.plan.free.len()).flat_map(|j| (0..d.nf).map(move |i| (i, first + j))),
            );
        }
        for k in 0..=self.plan.steps() {
            let row = self.plan.first[k].1;
            if k < self.plan.steps() {
                out.extend(
                    self.plan
                        .equation_entries(k)
                        .map(|(_, _, r, v)| (row + r, v)),
                );
                let next = self.plan.first[k + 1].0;
                out.extend((0..d.nf).map(|i| (row + d.ny + i, next + i)));
            }
            let count = self.plan.layout.stage(k).constraints.len();
            let own = self.plan.first[k + 1].1 - count;
            let width = self.memory[k].gradient.len();
            out.extend(
                (0..count)
                    .flat_map(|c| (0..width).map(move |i| (own + c, self.plan.variable(k, i)))),
            );
        }
        out
    }

    fn hessian(&self) -> Vec<(usize, usize)> {
        let plan = &self.plan;
        let of = |k: usize| {
            let places = plan.kinds[plan.kind_of[k]].lower.iter();
            places.map(move |(i, j, _)| (plan.variable(k, *i), plan.variable(k, *j)))
        };
        (0..=plan.steps()).flat_map(of).collect()
    }

    fn evaluate(&mut self, x: &[f64], rows: &mut [f64]) -> Result<f64, Undefined> {
        self.each(x, |s, k, m, w| {
            m.objective = s
                .shared()
                .evaluate(&s.here(k), &mut m.local, w, &mut m.rows)?;
            Ok(())
        })?;
        for (m, (_, first)) in self.memory.iter().zip(&self.plan.first) {
            rows[*first..first + m.rows.len()].copy_from_slice(&m.rows);
        }
        let d = self.plan.dims;
        for k in 0..self.plan.steps() {
            let (row, next) = (self.plan.first[k].1 + d.ny, self.plan.first[k + 1].0);
            for i in 0..d.nf {
                rows[row + i] -= x[next + i];
            }
        }
        if self.plan.start_moves {
            let (apart, _) = self.start_at(x)?;
            for i in 0..d.nf {
                rows[i] = apart[i] - x[i];
            }
        }
        Ok(self.memory.iter().map(|m| m.objective).sum())
    }

    fn differentiate(
        &mut self,
        x: &[f64],
        gradient: &mut [f64],
        jacobian: &mut [f64],
    ) -> Result<(), Undefined> {
        self.each(x, |s, k, m, w| {
            let (shared, here) = (s.shared(), s.here(k));
            let weights = Weights {
                objective: 1.0,
                residual: &[],
                gap: &[],
                constraints: &[],
                by_squares: false,
            };
            shared.gradient(&here, &mut m.local, w, &weights, &mut m.gradient)?;
            shared.constraint_rows(&here, &mut m.local, w, &mut m.jacobian)?;
            if here.next.is_some() {
                shared.linearize(&here, &mut m.local, w)?;
            }
            Ok(())
        })?;
        gradient.fill(0.0);
        for (k, m) in self.memory.iter().enumerate() {
            for (i, g) in m.gradient.iter().enumerate() {
                gradient[self.plan.variable(k, i)] += g;
            }
        }
        let d = self.plan.dims;
        let mut place = 0;
        let mut put = |value: f64| {
            jacobian[place] = value;
            place += 1;
        };
        if self.plan.start_moves {
            let (_, by) = self.start_at(x)?;
            (0..d.nf).for_each(|_| put(-1.0));
            by.into_iter().for_each(&mut put);
        }
        for (k, m) in self.memory.iter().enumerate() {
            if k < self.plan.steps() {
                let values = m.local.equations();
                for (source, factor, _, _) in self.plan.equation_entries(k) {
                    put(factor * values[source]);
                }
                (0..d.nf).for_each(|_| put(-1.0));
            }
            m.jacobian.iter().copied().for_each(&mut put);
        }
        Ok(())
    }

    fn curve(
        &mut self,
        x: &[f64],
        weight: f64,
        y: &[f64],
        hessian: &mut [f64],
    ) -> Result<(), Undefined> {
        self.each(x, |s, k, m, w| s.curve_knot(k, m, w, weight, y))?;
        let mut first = 0;
        for m in &self.memory {
            hessian[first..first + m.hessian.len()].copy_from_slice(&m.hessian);
            first += m.hessian.len();
        }
        Ok(())
    }

    fn accept(&mut self, x: &mut [f64]) -> bool {
        let d = self.plan.dims;
        let mut to = vec![0.0; d.nx];
        for k in 0..=self.plan.steps() {
            let first = self.plan.first[k].0;
            let own = &mut x[first..first + d.nf];
            let state = &mut self.plan.trajectory.x[k * d.nx..(k + 1) * d.nx];
            if self.plan.dynamics.displace(state, own, &mut to) {
                state.copy_from_slice(&to);
                own.fill(0.0);
            }
        }
        true
    }

    fn row_name(&self, i: usize) -> String {
        if i < self.plan.first[0].1 {
            return "the start".into();
        }
        let k = self.plan.first.partition_point(|(_, r)| *r <= i) - 1;
        let t = self.plan.knots[k].t;
        let own = i - self.plan.first[k].1;
        let d = &self.plan.dims;
        let equations = if k < self.plan.steps() {
            d.ny + d.nf
        } else {
            0
        };
        match own.checked_sub(equations) {
            Some(c) => {
                let (constraint, _) = self.plan.layout.stage(k).constraints[c];
                let quantity = self.plan.problem.constraints[constraint].quantity;
                let name = &self.plan.dynamics.quantities()[quantity.index()].0;
                format!("the constraint of `{name}` at {t:.3} s")
            }
            None if own < d.ny => format!("the step's equation {own} at {t:.3} s"),
            None => format!("the gap between knots at {t:.3} s"),
        }
    }

    fn variable_name(&self, i: usize) -> String {
        match i.checked_sub(self.plan.parameters()) {
            Some(j) => {
                let p = &self.plan.dynamics.parameters()[self.plan.free[j]];
                format!("parameter `{}`", p.name)
            }
            None => {
                let k = self.plan.first.partition_point(|(v, _)| *v <= i) - 1;
                format!("variable {} of knot {k}", i - self.plan.first[k].0)
            }
        }
    }
}

impl<D: Observe + Equations> Plan<'_, D> {
    /// Entries of the equations of a step by what is decided: the place in the structure, a factor, the row among the
    /// knot's, and the variable.
    fn equation_entries(&self, k: usize) -> impl Iterator<Item = (usize, f64, usize, usize)> {
        let d = self.dims;
        let first = self.first[k].0;
        let (parameters, unknowns) = (d.nf + d.nu, d.nf + d.nu + d.np);
        let times: Vec<(usize, f64, f64)> = self.shared().times(k).collect();
        let entries = self.structure.entries().iter().enumerate();
        entries.flat_map(move |(source, &(row, column))| {
            let mut out = [None; 2];
            if column < parameters {
                out[0] = Some((1.0, first + column));
            } else if column < unknowns {
                let place = self.free.iter().position(|p| *p == column - parameters);
                out[0] = place.map(|j| (1.0, self.parameters() + j));
            } else if column < unknowns + d.ny {
                out[0] = Some((1.0, first + column - d.np));
            } else {
                let is_before = column == unknowns + d.ny;
                for (to, (j, before, after)) in out.iter_mut().zip(&times) {
                    let factor = if is_before { *before } else { *after };
                    *to = (factor != 0.0).then_some((factor, self.parameters() + j));
                }
            }
            let found = out.into_iter().flatten();
            found.map(move |(factor, variable)| (source, factor, row, variable))
        })
    }

    fn curve_knot(
        &self,
        k: usize,
        m: &mut Memory,
        w: &mut D::Work,
        weight: f64,
        y: &[f64],
    ) -> Result<(), StepError> {
        let (shared, here, d) = (self.shared(), self.here(k), &self.dims);
        let own = &y[self.first[k].1..self.first[k + 1].1];
        let (residual, rest) = own.split_at(if k < self.steps() { d.ny } else { 0 });
        let (gap, constraints) = rest.split_at(if k < self.steps() { d.nf } else { 0 });
        let weights = Weights {
            objective: weight,
            residual,
            gap,
            constraints,
            by_squares: false,
        };
        let kind = &self.kinds[self.kind_of[k]];
        for (g, group) in kind.curved.groups().iter().enumerate() {
            let base = (&mut m.gradient[..], &mut m.by[..]);
            shared.curvature(&here, &mut m.local, w, &weights, group, base)?;
            kind.curved.take(g, &m.by, &mut m.curved);
        }
        for (value, (_, column)) in m.curved.iter_mut().zip(kind.curved.entries()) {
            *value /= 2.0 * shared.change(&mut m.local, *column);
        }
        // both triangles tell the same
        for (to, (_, _, [a, b])) in m.hessian.iter_mut().zip(&kind.lower) {
            *to = 0.5 * (m.curved[*a] + m.curved[*b]);
        }
        Ok(())
    }
}
