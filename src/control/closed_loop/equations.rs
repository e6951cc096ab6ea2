//! The equations of a closed loop: the system's own under the policy's controls.

use super::{ClosedLoop, ClosedLoopWork, at_knot};
use crate::control::Policy;
use crate::dynamics::{
    Column, ContactUnknowns, Equations, Inputs, Knot, KnotPoint, Observe, Outputs, Step, StepError,
    Structure, UnsolvedStep,
};

impl<D: Observe, P: Policy> ClosedLoop<D, P> {
    /// The policy at a knot with its derivatives.
    fn respond(&self, at: &KnotPoint, w: &mut ClosedLoopWork<D::Work>) -> Result<(), StepError> {
        self.differentiate(&at_knot(&at.at, at.x, at.u, at.p), w)
    }
}

impl<D: Observe, P: Policy> Equations for ClosedLoop<D, P> {
    fn check_equations(&self) -> Result<(), String> {
        self.dynamics.check_equations()
    }

    fn structure(&self, has_end: bool) -> Structure {
        let (inner, d) = (self.inner, self.dims());
        let mut columns = vec![vec![]; Column::count(&d)];
        // what the controls may depend on
        let (states, parameters) = match self.policy.sees().is_empty() && self.compares == 0 {
            true => (0..0, inner.np..d.np),
            false => (0..d.nf, 0..d.np),
        };
        for &(row, column) in self.dynamics.structure(has_end).entries() {
            match Column::at(&inner, column) {
                Column::Control(i) if self.policy.is_open() => {
                    columns[Column::Control(i).place(&d)].push(row);
                }
                Column::Control(_) => {
                    let all = (states.clone().map(Column::State))
                        .chain(parameters.clone().map(Column::Parameter))
                        .chain((0..d.nu).map(Column::Control))
                        .chain([Column::Before]);
                    all.for_each(|c| columns[c.place(&d)].push(row));
                }
                own => columns[own.place(&d)].push(row),
            }
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        self.dynamics.displace(x, d, out)
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        self.dynamics.separation(x, to, out);
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        self.dynamics.pull_separation(x, to, adjoint);
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        self.dynamics.copies()
    }

    fn stays(&self, at: &Knot) -> Vec<usize> {
        self.dynamics.stays(at)
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        self.dynamics.contact_unknowns()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        self.dynamics.domain(h)
    }

    fn set_central_path(&self, w: &mut Self::Work, kappa: f64) {
        self.dynamics.set_central_path(&mut w.inner, kappa);
    }

    fn center(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        self.act(&at.start, w)?;
        let within = UnsolvedStep {
            start: self.within(&at.start, &w.u, at.start.y),
            ..*at
        };
        self.dynamics.center(&within, &mut w.inner, y)
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        self.act(&at.start, w)?;
        let within = UnsolvedStep {
            start: self.within(&at.start, &w.u, at.start.y),
            ..*at
        };
        self.dynamics.residual(&within, &mut w.inner, r)
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        self.act(at, w)?;
        let within = self.within(at, &w.u, at.y);
        self.dynamics.advance(&within, &mut w.inner, next)
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.respond(&at.start, w)?;
        let (inner, d) = (self.inner, self.dims());
        let within = UnsolvedStep {
            start: self.within(&at.start, &w.u, at.start.y),
            ..*at
        };
        let (own, all) = w.part.of(&self.dynamics, at.end.is_some());
        self.dynamics.derivatives(&within, own, &mut w.inner, all)?;
        if self.policy.is_open() {
            // what the policy has of parameters is nothing: the columns are the system's
            w.part.spread(structure, values, |column| column);
            return Ok(());
        }
        values.fill(0.0);
        let mut add = |row: usize, column: Column, value: f64| {
            structure.add(values, (row, column.place(&d)), value);
        };
        for (row, column, value) in w.part.entries() {
            match Column::at(&inner, column) {
                Column::Control(i) => {
                    let (chain, rows) = (&w.chain[i], &w.rows);
                    let own = rows.own.row(i);
                    let parameters = chain.p.iter().chain(own.iter());
                    for (j, by) in chain.x.iter().enumerate() {
                        add(row, Column::State(j), value * by);
                    }
                    for (j, by) in parameters.enumerate() {
                        add(row, Column::Parameter(j), value * by);
                    }
                    for (j, by) in rows.open.row(i).iter().enumerate() {
                        add(row, Column::Control(j), value * by);
                    }
                    add(row, Column::Before, value * chain.h_prev);
                }
                own => add(row, own, value),
            }
        }
        Ok(())
    }

    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut Self::Work,
        out: &mut Inputs,
        y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        self.respond(&at.start, w)?;
        let within = UnsolvedStep {
            start: self.within(&at.start, &w.u, at.start.y),
            ..*at
        };
        let (system, inputs) = (&mut w.inner, &mut w.inputs);
        self.dynamics
            .pull_equations(&within, adjoint, system, inputs, y, end)?;
        out.clear();
        out.x.copy_from_slice(&inputs.x);
        out.p[..self.inner.np].copy_from_slice(&inputs.p);
        (out.h_prev, out.h) = (inputs.h_prev, inputs.h);
        self.pull_policy(w, out);
        Ok(())
    }
}
