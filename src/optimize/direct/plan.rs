//! Where everything of a transcription lies, and what each knot computes.

use super::curved::Curved;
use super::knot::{Here, Local, Part, Shared};
use super::probe;
use crate::control::{Layout, Problem, Timing};
use crate::dynamics::{Column, Dims, Knot, Observe, StepError, Structure};
use crate::rollout::Trajectory;

/// What threads share.
pub struct Plan<'a, D> {
    pub dynamics: &'a D,
    pub problem: &'a Problem,
    pub layout: Layout,
    pub dims: Dims,
    pub free: Vec<usize>,
    pub structure: Structure,
    /// The guess, then the states of the last accepted iterate.
    pub trajectory: Trajectory,
    pub knots: Vec<Knot>,
    /// Is the start decided by parameters?
    pub start_moves: bool,
    /// What the next state is made of.
    pub next: Next,
    /// The unknowns that components of each state copy, where the state's moves begin.
    pub copied: Vec<f64>,
    /// Entries of the equations of every knot with a step.
    pub entries: Vec<Vec<Entry>>,
    pub kinds: Vec<Kind>,
    /// Which of them each knot is of.
    pub kind_of: Vec<usize>,
    /// First variable and first row of every knot; then those behind the last one.
    pub first: Vec<(usize, usize)>,
    /// [`Shared::held`]
    pub held: Vec<Option<f64>>,
}

/// Components of a state: copies of the unknowns of the step before are no variables of their own.
pub struct Next {
    /// The unknown that each is a copy of, or its place among those that are none.
    of: Vec<Result<usize, usize>>,
    /// Those that are none.
    own: Vec<usize>,
}

impl Next {
    pub fn new(nf: usize, copies: &[(usize, usize)]) -> Self {
        let mut of = vec![Err(0); nf];
        copies.iter().for_each(|(i, unknown)| of[*i] = Ok(*unknown));
        let mut own = vec![];
        for (i, of) in of.iter_mut().enumerate() {
            if let Err(place) = of {
                *place = own.len();
                own.push(i);
            }
        }
        Self { of, own }
    }

    /// Components that have rows and variables.
    pub fn own(&self) -> &[usize] {
        &self.own
    }

    /// Components that are copies, with the unknowns.
    pub fn copies(&self) -> impl Iterator<Item = (usize, usize)> {
        let of = self.of.iter().enumerate();
        of.filter_map(|(i, of)| Some((i, of.ok()?)))
    }
}

/// An entry of the equations' Jacobian: the place in their structure, a factor, the row among the knot's, and the variable.
#[derive(Clone, Copy)]
pub struct Entry {
    pub source: usize,
    pub factor: f64,
    pub row: usize,
    pub variable: usize,
}

/// How the Hessian of knots that ask for the same is found: that of the equations, and that of quantities.
pub struct Kind {
    pub equations: Curved,
    pub quantities: Curved,
}

impl Kind {
    /// Places of the lower triangle; those that both parts have are there twice.
    pub fn lower(&self) -> impl Iterator<Item = &(usize, usize)> {
        self.equations.lower.iter().chain(&self.quantities.lower)
    }
}

/// Memory of a knot.
pub struct Memory {
    pub local: Local,
    pub rows: Vec<f64>,
    pub gradient: Vec<f64>,
    pub jacobian: Vec<f64>,
    pub hessian: Vec<f64>,
    pub by: Vec<f64>,
    /// Multipliers of all components of the gap; zero where there are no rows.
    pub gap: Vec<f64>,
    pub objective: f64,
    pub failed: Option<StepError>,
}

impl<D: Observe> Plan<'_, D> {
    pub fn memory(&self, k: usize, widest: usize) -> Memory {
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
            jacobian: vec![0.0; constraints * self.shared().own(has_step)],
            hessian: vec![0.0; kind.lower().count()],
            by: vec![0.0; width],
            gap: vec![0.0; self.dims.nf],
            objective: 0.0,
            failed: None,
        }
    }

    pub fn steps(&self) -> usize {
        self.knots.len() - 1
    }

    /// The interval behind a knot, where it is not found.
    pub fn fixed_interval(&self, k: usize) -> Option<f64> {
        let mut found = self.problem.durations.iter();
        let is_fixed = !found.any(|d| (d.first..d.end).contains(&k));
        is_fixed.then(|| self.knots[k].h)
    }

    /// The intervals before and after a knot, where neither is found.
    pub fn fixed_intervals(&self, k: usize) -> Option<[f64; 2]> {
        let before = match k {
            0 => self.knots[0].h_prev,
            _ => self.fixed_interval(k - 1)?,
        };
        Some([before, self.fixed_interval(k)?])
    }

    /// Rows of the separation of the next state from a step's end.
    pub fn gaps(&self, k: usize) -> usize {
        if k < self.steps() {
            self.next.own.len()
        } else {
            0
        }
    }

    /// First of the parameters among the variables.
    pub fn parameters(&self) -> usize {
        self.first[self.knots.len()].0
    }

    /// Patterns of the Hessian: knots that ask for the same share one.
    pub fn find_kinds(&mut self, widest: usize, w: &mut D::Work) {
        let mut known = vec![];
        for k in 0..=self.steps() {
            let timed = |timing: Option<Timing>| timing.map(|t| t.parameter);
            let own = (
                std::ptr::from_ref(self.layout.stage(k)),
                [
                    timed(self.layout.timing_before(k)),
                    timed(self.layout.timing(k)),
                ],
                // quantities at the start do not look back
                [k < self.steps(), self.knots[k].before().is_some()],
                self.dynamics.stays(&self.knots[k]),
            );
            let kind = known.iter().position(|o| *o == own).unwrap_or_else(|| {
                known.push(own);
                let mut local = Local::new(&self.dims, widest, k < self.steps());
                local.p.copy_from_slice(&self.trajectory.p);
                self.fill(k, &[], &mut local);
                let (shared, here) = (self.shared(), self.here(k));
                let [equations, quantities] = probe::curved(&shared, &here, &local, w);
                self.kinds.push(Kind {
                    equations,
                    quantities,
                });
                self.kinds.len() - 1
            });
            self.kind_of.push(kind);
        }
    }

    pub fn shared(&self) -> Shared<'_, D> {
        Shared {
            dynamics: self.dynamics,
            problem: self.problem,
            layout: &self.layout,
            dims: self.dims,
            free: &self.free,
            next: self.next.own(),
            held: &self.held,
            structure: &self.structure,
        }
    }

    pub fn here(&self, k: usize) -> Here<'_> {
        Here {
            at: self.knots[k],
            x: self.trajectory.state(k),
            next: (k < self.steps()).then(|| self.trajectory.state(k + 1)),
        }
    }

    /// Variables that move the state of a knot.
    pub fn moves(&self, k: usize) -> usize {
        match k {
            0 => self.dims.nf,
            _ => self.next.own.len(),
        }
    }

    /// First variable of the control of a step.
    pub fn control(&self, k: usize) -> usize {
        self.first[k].0 + self.moves(k)
    }

    /// First variable of the unknowns of a step.
    pub fn unknowns(&self, k: usize) -> usize {
        self.control(k) + self.dims.nu
    }

    /// The variable that moves a component of a knot's state.
    pub fn mover(&self, k: usize, i: usize) -> usize {
        match self.next.of[i] {
            _ if k == 0 => i,
            Err(place) => self.first[k].0 + place,
            Ok(unknown) => self.unknowns(k - 1) + unknown,
        }
    }

    /// The variable of a knot's own one. The last knot sees the control of the last step.
    pub fn variable(&self, k: usize, own: usize) -> usize {
        let d = &self.dims;
        let last = k.min(self.steps().saturating_sub(1));
        let ny = if k < self.steps() { d.ny } else { 0 };
        match own.checked_sub(d.nf) {
            None => self.mover(k, own),
            Some(u) if u < d.nu => self.control(last) + u,
            Some(y) if y < d.nu + ny => self.control(k) + y,
            Some(rest) => match (rest - d.nu - ny).checked_sub(self.free.len()) {
                None => self.parameters() + rest - d.nu - ny,
                Some(end) => self.mover(k + 1, end),
            },
        }
    }

    /// How far a knot's state is moved.
    pub fn fill_moves(&self, k: usize, x: &[f64], out: &mut [f64]) {
        for (i, d) in out.iter_mut().enumerate() {
            *d = x[self.mover(k, i)];
        }
        if k > 0 {
            let base = &self.copied[(k - 1) * self.dims.ny..];
            self.next.copies().for_each(|(i, y)| out[i] -= base[y]);
        }
    }

    /// Local variables from all of them; from the guess where there are none.
    pub fn fill(&self, k: usize, x: &[f64], l: &mut Local) {
        let d = &self.dims;
        let t = &self.trajectory;
        let last = k.min(self.steps().saturating_sub(1));
        if x.is_empty() {
            l.u.copy_from_slice(t.control(last));
            let ny = l.y.len();
            l.y.copy_from_slice(&t.y[k * d.ny..][..ny]);
            return;
        }
        self.fill_moves(k, x, &mut l.d);
        if k < self.steps() {
            self.fill_moves(k + 1, x, &mut l.end);
        }
        l.u.copy_from_slice(&x[self.control(last)..][..d.nu]);
        if k < self.steps() {
            l.y.copy_from_slice(&x[self.unknowns(k)..][..d.ny]);
        }
        self.decide(x, &mut l.p);
    }

    /// The decided parameters of variables; a little beyond their bounds, as the method widens them, they are at these.
    fn decide(&self, x: &[f64], p: &mut [f64]) {
        for (j, &i) in self.free.iter().enumerate() {
            let (lower, upper) = self.problem.parameter_bounds[i];
            p[i] = x[self.parameters() + j].max(lower).min(upper);
        }
    }

    /// The trajectory of variables, those of the last accepted iterate where moves are zero.
    pub fn trajectory_at(&self, x: &[f64]) -> Trajectory {
        let mut t = self.trajectory.clone();
        let d = &self.dims;
        let mut by = vec![0.0; d.nf];
        for k in 0..=self.steps() {
            self.fill_moves(k, x, &mut by);
            let (state, moved) = (self.trajectory.state(k), &mut t.x[k * d.nx..(k + 1) * d.nx]);
            self.dynamics.displace(state, &by, moved);
            if k < self.steps() {
                let own = &x[self.control(k)..];
                t.u[k * d.nu..(k + 1) * d.nu].copy_from_slice(&own[..d.nu]);
                t.y[k * d.ny..(k + 1) * d.ny].copy_from_slice(&own[d.nu..d.nu + d.ny]);
            }
        }
        self.decide(x, &mut t.p);
        self.problem.set_intervals(&mut t);
        t
    }

    /// Moves the knots to the times that the parameters give them.
    pub fn retime(&mut self, x: &[f64]) {
        if self.problem.durations.is_empty() {
            return;
        }
        let mut p = std::mem::take(&mut self.trajectory.p);
        self.decide(x, &mut p);
        self.trajectory.p = p;
        let t = &mut self.trajectory;
        self.problem.set_intervals(t);
        for k in 0..self.knots.len() {
            self.knots[k] = match k {
                0 => t.knot(0),
                _ => t.knot_after(&self.knots[k - 1]),
            };
        }
    }

    pub fn decided(&self, x: &[f64]) -> Vec<f64> {
        let mut p = self.trajectory.p.clone();
        self.decide(x, &mut p);
        p
    }

    /// [`Plan::entries`] of a step.
    pub fn equation_entries(&self, k: usize) -> Vec<Entry> {
        let d = self.dims;
        let times: Vec<(usize, f64, f64)> = self.shared().times(k).collect();
        let stays = self.dynamics.stays(&self.knots[k]);
        let mut out = vec![];
        for (source, &(row, column)) in self.structure.entries().iter().enumerate() {
            let is_idle = row
                .checked_sub(d.ny)
                .is_some_and(|i| stays.contains(&i) && column != i);
            if is_idle {
                continue;
            }
            let row = match row.checked_sub(d.ny) {
                None => row,
                Some(i) => match self.next.of[i] {
                    Err(place) => d.ny + place,
                    Ok(_) => continue,
                },
            };
            let mut put = |factor: f64, variable: usize| {
                out.push(Entry {
                    source,
                    factor,
                    row,
                    variable,
                });
            };
            match Column::at(&d, column) {
                Column::State(_) | Column::Control(_) => put(1.0, self.variable(k, column)),
                Column::Parameter(i) => {
                    let place = self.free.iter().position(|p| *p == i);
                    place
                        .into_iter()
                        .for_each(|j| put(1.0, self.parameters() + j));
                }
                Column::Unknown(i) => put(1.0, self.unknowns(k) + i),
                Column::End(i) => put(1.0, self.mover(k + 1, i)),
                at => {
                    for (j, before, after) in &times {
                        let is_before = at == Column::Before;
                        let factor = if is_before { *before } else { *after };
                        if factor != 0.0 {
                            put(factor, self.parameters() + j);
                        }
                    }
                }
            }
        }
        out
    }

    pub fn curve_knot(
        &self,
        k: usize,
        m: &mut Memory,
        w: &mut D::Work,
        objective: f64,
        y: &[f64],
    ) -> Result<(), StepError> {
        let (shared, here) = (self.shared(), self.here(k));
        let own = &y[self.first[k].1..self.first[k + 1].1];
        let (residual, rest) = own.split_at(if k < self.steps() { self.dims.ny } else { 0 });
        let (of_gap, constraints) = rest.split_at(self.gaps(k));
        for (i, y) in self.next.own.iter().zip(of_gap) {
            m.gap[*i] = *y;
        }
        let kind = &self.kinds[self.kind_of[k]];
        let (of_equations, of_quantities) = m.hessian.split_at_mut(kind.equations.lower.len());
        let (l, both) = (&mut m.local, (&mut m.gradient[..], &mut m.by[..]));
        if here.next.is_some() {
            let gap = &m.gap;
            let part = Part::Equations { residual, gap };
            kind.equations
                .find(&shared, &here, (l, w), &part, both, of_equations)?;
        }
        let part = Part::Quantities {
            objective,
            constraints,
            by_squares: false,
        };
        let (l, both) = (&mut m.local, (&mut m.gradient[..], &mut m.by[..]));
        kind.quantities
            .find(&shared, &here, (l, w), &part, both, of_quantities)
    }
}
