//! A problem as a nonlinear program.

use super::contacts::Contacts;
use super::knot::Part;
use super::plan::{Memory, Next, Plan};
use super::start::{Start, unit_weights};
use crate::block::Determined;
use crate::control::{Constraint, Problem, Relation, When};
use crate::dynamics::{
    End, Equations, Knot, KnotPoint, Observe, StepError, UnsolvedStep, stop_requested,
};
use crate::optimize::nlp::{Program, Undefined};
use crate::rollout::Trajectory;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The program of a problem. Its variables are, knot by knot, the move of the state (free chart), the control and the
/// unknowns of the step; behind them the parameters that are decided. Its rows are the start (where parameters decide it),
/// then knot by knot the step's residual, the separation of the next state from the step's end, and the constraints; behind
/// these what keeps friction in its cones.
pub struct Transcription<'a, D: Observe> {
    plan: Plan<'a, D>,
    memory: Vec<Memory>,
    workers: Vec<D::Work>,
    contacts: Contacts,
}

/// Variables of knots that a thread has at least: for fewer, waking it takes longer than they do (a cart-pole's hundred knots have
/// 700, a biped's 25 have 6000).
const LEAST_SHARE: usize = 1000;

/// Where a program's variables are seen from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    states: Vec<f64>,
    copied: Vec<f64>,
}

impl<'a, D: Observe> Transcription<'a, D> {
    /// Of a problem from a guess.
    ///
    /// # Errors
    /// Where the start does not exist.
    pub fn new(
        dynamics: &'a D,
        problem: &'a Problem,
        mut guess: Trajectory,
    ) -> Result<Self, StepError> {
        let (dims, layout) = (dynamics.dims(), problem.layout());
        let next = Next::new(dims.nf, &dynamics.copies());
        let free = problem.free_parameters();
        let mut work = dynamics.work();
        let by = problem.start_by_parameters(dynamics, &guess.p, &mut work)?;
        let start_moves = free.iter().any(|i| by.column(*i).iter().any(|b| *b != 0.0));
        let n = guess.steps();
        let mut knots = vec![guess.knot(0)];
        for k in 0..n {
            knots.push(guess.knot_after(&knots[k]));
        }
        copy(dynamics, &next, &knots, &mut guess, &mut work)?;
        let widest = (0..=n).map(|k| layout.stage(k).which.len()).max();
        let mut first = vec![(0, if start_moves { dims.nf } else { 0 })];
        for k in 0..=n {
            let (v, r) = first[k];
            let constraints = layout.stage(k).constraints.len();
            let moves = if k == 0 { dims.nf } else { next.own().len() };
            first.push(if k < n {
                let rows = dims.ny + next.own().len() + constraints;
                (v + moves + dims.nu + dims.ny, r + rows)
            } else {
                (v + moves, r + constraints)
            });
        }
        let held = problem.costs.iter().map(|cost| {
            let holds = |c: &&Constraint| {
                let both_end = c.when == When::End && cost.when == When::End;
                both_end && c.relation == Relation::Equal && c.quantity == cost.quantity
            };
            let c = problem.constraints.iter().find(holds)?;
            Some(problem.limit(c, n))
        });
        let mut plan = Plan {
            structure: dynamics.structure(true),
            dynamics,
            problem,
            layout,
            dims,
            free,
            next,
            copied: guess.y.clone(),
            entries: vec![],
            held: held.collect(),
            trajectory: guess,
            knots,
            start_moves,
            kinds: vec![],
            kind_of: vec![],
            first,
        };
        plan.entries = (0..n).map(|k| plan.equation_entries(k)).collect();
        plan.find_kinds(widest.unwrap_or(0), &mut work);
        let shares = plan.shared().width(n > 0) * n / LEAST_SHARE;
        let threads = rayon::current_num_threads().clamp(1, shares.max(1));
        Ok(Self {
            memory: (0..=n)
                .map(|k| plan.memory(k, widest.unwrap_or(0)))
                .collect(),
            workers: (0..threads).map(|_| dynamics.work()).collect(),
            contacts: Contacts::new(dynamics.contact_unknowns()),
            plan,
        })
    }

    /// Are there contacts?
    pub(super) fn has_contacts(&self) -> bool {
        self.contacts.any()
    }

    /// The rows of contacts are those of the central path at a parameter (m^2/s^2), or of hard contact where it is zero.
    /// Velocities read at knots are those of contacts as soft as that, or as `read`.
    pub(super) fn set_central_path(&mut self, kappa: f64, read: f64) {
        for w in &mut self.workers {
            self.plan.dynamics.set_central_path(w, kappa);
            self.plan.dynamics.soften(w, kappa.max(read));
        }
    }

    /// Puts the guess's unknowns of contacts onto the central path.
    ///
    /// # Errors
    /// A state at which they cannot be evaluated.
    pub(super) fn center(&mut self) -> Result<(), StepError> {
        let (plan, w) = (&mut self.plan, &mut self.workers[0]);
        let ny = plan.dims.ny;
        for k in 0..plan.steps() {
            let mut y = plan.trajectory.y[k * ny..(k + 1) * ny].to_vec();
            let t = &plan.trajectory;
            let (from, state) = (t.state(k + 1), t.state(k + 1));
            let step = UnsolvedStep {
                start: KnotPoint {
                    at: plan.knots[k],
                    x: t.state(k),
                    u: t.control(k),
                    p: &t.p,
                    y: &t.y[k * ny..(k + 1) * ny],
                },
                end: Some(End { from, state }),
            };
            plan.dynamics.center(&step, w, &mut y)?;
            plan.trajectory.y[k * ny..(k + 1) * ny].copy_from_slice(&y);
        }
        plan.copied.clone_from(&plan.trajectory.y);
        Ok(())
    }

    /// The first row of a step's facets.
    fn facets(&self, k: usize) -> usize {
        self.behind() + k * self.contacts.facets().len()
    }

    /// The first row behind those of knots.
    fn behind(&self) -> usize {
        self.plan.first[self.plan.knots.len()].1
    }

    /// Starts from these variables from here on.
    pub(super) fn restart(&mut self, x: &[f64]) {
        self.plan.trajectory = self.plan.trajectory_at(x);
        self.plan.copied.clone_from(&self.plan.trajectory.y);
    }

    /// Freezes what contacts do in these variables, on the central path at `kappa`; what is open stays open by a margin (m).
    pub(super) fn freeze(&mut self, x: &[f64], kappa: f64, margin: f64) {
        let plan = &self.plan;
        let each = (0..plan.steps()).map(|k| &x[plan.unknowns(k)..][..plan.dims.ny]);
        let intervals = &plan.trajectory_at(x).intervals;
        self.contacts.freeze(each, intervals, kappa, margin);
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
        let some = |(part, (memory, w)): (usize, (&mut [Memory], &mut D::Work))| {
            for (k, m) in memory.iter_mut().enumerate() {
                let k = part * size + k;
                plan.fill(k, x, &mut m.local);
                m.failed = work(plan, k, m, w).err();
            }
        };
        match &mut self.workers[..] {
            [w] => some((0, (memory, w))),
            workers => {
                let parts = memory.par_chunks_mut(size).zip(workers);
                parts.enumerate().for_each(some);
            }
        }
        let failed = memory.iter_mut().find_map(|m| m.failed.take());
        failed.map_or(Ok(()), |e| Err(Undefined(e.to_string())))
    }

    /// The trajectory of variables, those of the last accepted iterate where moves are zero.
    pub fn trajectory(&self, x: &[f64]) -> Trajectory {
        self.plan.trajectory_at(x)
    }

    /// What decides where its variables are seen from.
    pub(super) fn save(&self) -> Saved {
        Saved {
            states: self.plan.trajectory.x.clone(),
            copied: self.plan.copied.clone(),
        }
    }

    /// Sees its variables from where they were kept; false where they are not of its kind.
    pub(super) fn restore(&mut self, kept: Saved) -> bool {
        let plan = &mut self.plan;
        let sizes = |s: &Saved| (s.states.len(), s.copied.len());
        if sizes(&kept) != (plan.trajectory.x.len(), plan.copied.len()) {
            return false;
        }
        (plan.trajectory.x, plan.copied) = (kept.states, kept.copied);
        true
    }

    /// The multipliers of the problem's constraints among those of all rows, knot by knot.
    pub(super) fn of_constraints(&self, rows: &[f64]) -> Vec<f64> {
        let plan = &self.plan;
        let own = |k: usize| {
            let count = plan.layout.stage(k).constraints.len();
            &rows[plan.first[k + 1].1 - count..plan.first[k + 1].1]
        };
        (0..=plan.steps()).flat_map(own).copied().collect()
    }
}

impl<D: Observe> Program for Transcription<'_, D> {
    fn variables(&self) -> usize {
        self.plan.parameters() + self.plan.free.len()
    }

    fn rows(&self) -> usize {
        self.facets(self.plan.steps())
    }

    fn start(&self) -> Vec<f64> {
        let (d, t) = (&self.plan.dims, &self.plan.trajectory);
        let mut x = vec![0.0; self.variables()];
        for k in 0..self.plan.steps() {
            let own = &mut x[self.plan.control(k)..];
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
            let own = &mut out[self.plan.control(k)..];
            own[..self.plan.dims.nu].copy_from_slice(&self.plan.problem.bounds);
            let own = &mut out[self.plan.unknowns(k)..];
            if let Some(h) = self.plan.fixed_interval(k).filter(|_| self.contacts.any()) {
                // an impulse may turn what is light as far as it likes
                for (i, size) in self.plan.dynamics.domain(h) {
                    own[i] = (-size, size);
                }
            }
            self.contacts.bound(k, self.plan.fixed_intervals(k), own);
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
            if k < self.plan.steps() {
                self.contacts.free(k, &mut out[self.plan.first[k].1..]);
            }
            let constraints = &self.plan.layout.stage(k).constraints;
            let first = self.plan.first[k + 1].1 - constraints.len();
            for (to, (i, _)) in out[first..].iter_mut().zip(constraints) {
                if self.plan.problem.constraints[*i].relation != Relation::Equal {
                    to.0 = f64::NEG_INFINITY;
                }
            }
        }
        for k in 0..self.plan.steps() {
            self.contacts.bound_facets(k, &mut out[self.facets(k)..]);
        }
        out
    }

    fn jacobian(&self) -> Vec<(usize, usize)> {
        let d = &self.plan.dims;
        let mut out = vec![];
        if self.plan.start_moves {
            out.extend((0..d.nf).map(|i| (i, i)));
            let first = self.plan.parameters();
            let decided = 0..self.plan.free.len();
            out.extend((0..d.nf).flat_map(|i| decided.clone().map(move |j| (i, first + j))));
        }
        for k in 0..=self.plan.steps() {
            let row = self.plan.first[k].1;
            if k < self.plan.steps() {
                let entries = self.plan.entries[k].iter();
                out.extend(entries.map(|e| (row + e.row, e.variable)));
                let next = self.plan.first[k + 1].0;
                out.extend((0..self.plan.gaps(k)).map(|i| (row + d.ny + i, next + i)));
            }
            let count = self.plan.layout.stage(k).constraints.len();
            let own = self.plan.first[k + 1].1 - count;
            let width = self.plan.shared().own(k < self.plan.steps());
            out.extend(
                (0..count)
                    .flat_map(|c| (0..width).map(move |i| (own + c, self.plan.variable(k, i)))),
            );
        }
        for k in 0..self.plan.steps() {
            let (row, unknowns) = (self.facets(k), self.plan.unknowns(k));
            for (i, f) in self.contacts.facets().iter().enumerate() {
                out.extend(f.slopes().map(|(y, _)| (row + i, unknowns + y)));
            }
        }
        out
    }

    fn hessian(&self) -> Vec<(usize, usize)> {
        let plan = &self.plan;
        let of = |k: usize| {
            let places = plan.kinds[plan.kind_of[k]].lower();
            places.map(move |(i, j)| (plan.variable(k, *i), plan.variable(k, *j)))
        };
        let knots = (0..=plan.steps()).flat_map(of);
        let first = plan.parameters();
        let start = Start(plan).lower().map(|(i, j)| (first + i, first + j));
        knots.chain(start).collect()
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
            for i in 0..self.plan.gaps(k) {
                rows[row + i] -= x[next + i];
            }
        }
        if self.plan.start_moves {
            let p = self.plan.decided(x);
            let apart = Start(&self.plan).apart(&p, &mut self.workers[0]);
            let apart = apart.map_err(undefined)?;
            for i in 0..d.nf {
                rows[i] = apart[i] - x[i];
            }
        }
        for k in 0..self.plan.steps() {
            let (to, y) = (&mut rows[self.facets(k)..], &x[self.plan.unknowns(k)..]);
            for (to, f) in to.iter_mut().zip(self.contacts.facets()) {
                *to = f.at(y);
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
            let cost = Part::Quantities {
                objective: 1.0,
                constraints: &[],
                by_squares: false,
            };
            shared.gradient(&here, &mut m.local, w, &cost, &mut m.gradient)?;
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
            let p = self.plan.decided(x);
            let by = Start(&self.plan).slopes(&p, unit_weights(d.nf), &mut self.workers[0]);
            (0..d.nf).for_each(|_| put(-1.0));
            by.map_err(undefined)?.into_iter().for_each(&mut put);
        }
        for (k, m) in self.memory.iter().enumerate() {
            if k < self.plan.steps() {
                let values = m.local.equations();
                for e in &self.plan.entries[k] {
                    put(e.factor * values[e.source]);
                }
                (0..self.plan.gaps(k)).for_each(|_| put(-1.0));
            }
            m.jacobian.iter().copied().for_each(&mut put);
        }
        for _ in 0..self.plan.steps() {
            for f in self.contacts.facets() {
                f.slopes().iter().for_each(|(_, slope)| put(*slope));
            }
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
        if self.plan.start_moves {
            let (p, w) = (self.plan.decided(x), &mut self.workers[0]);
            let curved =
                Start(&self.plan).curve(&p, &y[..self.plan.dims.nf], w, &mut hessian[first..]);
            curved.map_err(undefined)?;
        }
        Ok(())
    }

    fn accept(&mut self, x: &mut [f64], y: &mut [f64]) -> bool {
        let plan = &mut self.plan;
        let d = plan.dims;
        let (mut to, mut by) = (vec![0.0; d.nx], vec![0.0; d.nf]);
        for k in 0..=plan.steps() {
            plan.fill_moves(k, x, &mut by);
            let state = &mut plan.trajectory.x[k * d.nx..(k + 1) * d.nx];
            if !plan.dynamics.displace(state, &by, &mut to) {
                continue;
            }
            // what was separated from the state that was is now from the one that is
            by.fill(0.0);
            let first = match k {
                0 => 0,
                _ => plan.first[k - 1].1 + d.ny,
            };
            let rows = match k {
                0 if !plan.start_moves => 0..0,
                0 => 0..d.nf,
                _ => 0..plan.next.own().len(),
            };
            let component = |i: usize| if k == 0 { i } else { plan.next.own()[i] };
            rows.clone().for_each(|i| by[component(i)] = y[first + i]);
            plan.dynamics.pull_separation(state, &to, &mut by);
            rows.for_each(|i| y[first + i] = by[component(i)]);
            state.copy_from_slice(&to);
            x[plan.first[k].0..][..plan.moves(k)].fill(0.0);
            if let Some(before) = k.checked_sub(1) {
                let y = &x[plan.unknowns(before)..][..d.ny];
                plan.copied[before * d.ny..k * d.ny].copy_from_slice(y);
            }
        }
        true
    }

    fn determined(&self) -> Vec<Determined> {
        self.plan.determined(&self.contacts)
    }

    fn row_name(&self, i: usize) -> String {
        if i < self.plan.first[0].1 {
            return "the start".into();
        }
        if let Some(facet) = i.checked_sub(self.behind()) {
            let k = facet / self.contacts.facets().len();
            return format!("a friction cone at {:.3} s", self.plan.knots[k].t);
        }
        let k = self.plan.first.partition_point(|(_, r)| *r <= i) - 1;
        let t = self.plan.knots[k].t;
        let own = i - self.plan.first[k].1;
        let d = &self.plan.dims;
        let equations = if k < self.plan.steps() {
            d.ny + self.plan.gaps(k)
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

fn undefined(e: StepError) -> Undefined {
    Undefined(e.to_string())
}

/// Makes unknowns of a guess what the states that copy them have.
fn copy<D: Equations>(
    dynamics: &D,
    next: &Next,
    knots: &[Knot],
    guess: &mut Trajectory,
    w: &mut D::Work,
) -> Result<(), StepError> {
    let d = dynamics.dims();
    let (mut end, mut apart) = (guess.state(0).to_vec(), vec![0.0; d.nf]);
    for (k, at) in knots[..knots.len() - 1].iter().enumerate() {
        let (at, y) = (*at, &guess.y[k * d.ny..(k + 1) * d.ny]);
        let (x, u, p) = (guess.state(k), guess.control(k), &guess.p[..]);
        dynamics.advance(&KnotPoint { at, x, u, p, y }, w, &mut end)?;
        dynamics.separation(&end, guess.state(k + 1), &mut apart);
        for (i, unknown) in next.copies() {
            guess.y[k * d.ny + unknown] += apart[i];
        }
    }
    Ok(())
}
