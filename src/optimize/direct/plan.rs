//! Where everything of a transcription lies, and what each knot computes.

use super::knot::{Here, Local, Shared, Weights};
use super::probe;
use crate::control::{Layout, Problem};
use crate::dynamics::{Dims, Equations, Knot, Observe, StepError, Structure};
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
    pub kinds: Vec<Kind>,
    /// Which of them each knot is of.
    pub kind_of: Vec<usize>,
    /// First variable and first row of every knot; then those behind the last one.
    pub first: Vec<(usize, usize)>,
}

/// The pattern of the Hessian of knots that ask for the same.
pub struct Kind {
    pub curved: Structure,
    /// Its lower triangle, with the places of both halves in the pattern.
    pub lower: Vec<(usize, usize, [usize; 2])>,
}

impl Kind {
    pub fn new(curved: Structure) -> Self {
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
pub struct Memory {
    pub local: Local,
    pub rows: Vec<f64>,
    pub gradient: Vec<f64>,
    pub jacobian: Vec<f64>,
    pub hessian: Vec<f64>,
    pub by: Vec<f64>,
    pub curved: Vec<f64>,
    pub objective: f64,
    pub failed: Option<StepError>,
}

impl<D: Observe + Equations> Plan<'_, D> {
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
            jacobian: vec![0.0; constraints * width],
            hessian: vec![0.0; kind.lower.len()],
            by: vec![0.0; width],
            curved: vec![0.0; kind.curved.entries().len()],
            objective: 0.0,
            failed: None,
        }
    }

    pub fn steps(&self) -> usize {
        self.knots.len() - 1
    }

    /// First of the parameters among the variables.
    pub fn parameters(&self) -> usize {
        self.first[self.knots.len()].0
    }

    /// Patterns of the Hessian: knots that ask for the same share one.
    pub fn find_kinds(&mut self, widest: usize, w: &mut D::Work) {
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

    pub fn shared(&self) -> Shared<'_, D> {
        Shared {
            dynamics: self.dynamics,
            problem: self.problem,
            layout: &self.layout,
            dims: self.dims,
            free: &self.free,
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

    /// The variable of a knot's own one. The last knot sees the control of the last step.
    pub fn variable(&self, k: usize, own: usize) -> usize {
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
    pub fn trajectory_at(&self, x: &[f64]) -> Trajectory {
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
    pub fn retime(&mut self, x: &[f64]) {
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

    pub fn decided(&self, x: &[f64]) -> Vec<f64> {
        let mut p = self.trajectory.p.clone();
        for (j, &i) in self.free.iter().enumerate() {
            p[i] = x[self.parameters() + j];
        }
        p
    }

    /// Entries of the equations of a step by what is decided: the place in the structure, a factor, the row among the
    /// knot's, and the variable.
    pub fn equation_entries(&self, k: usize) -> impl Iterator<Item = (usize, f64, usize, usize)> {
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

    pub fn curve_knot(
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
