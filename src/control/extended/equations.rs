//! The equations of an extended system: the system's own, and what the sums grow by.

use super::{Extended, term};
use crate::control::add;
use crate::dynamics::{
    Column, ContactUnknowns, Equations, Inputs, Knot, KnotPoint, Observe, Outputs, SolvedStep,
    Step, StepError, Structure, UnsolvedStep,
};

/// The step of which a point is the start; its end is not looked at.
fn step<'a>(at: &KnotPoint<'a>) -> SolvedStep<'a> {
    SolvedStep {
        at: at.at,
        x: at.x,
        u: at.u,
        p: at.p,
        y: at.y,
        next: &[],
    }
}

impl<D: Observe> Extended<D> {
    /// The system's own step.
    fn own<'a>(&self, at: &UnsolvedStep<'a>) -> UnsolvedStep<'a> {
        UnsolvedStep {
            start: self.knot_point(&at.start),
            end: at.end.map(|e| e.part(0..self.inner.nx)),
        }
    }
}

impl<D: Observe> Equations for Extended<D> {
    fn check_equations(&self) -> Result<(), String> {
        self.system.check_equations()
    }

    /// A sum may depend on all there is.
    fn structure(&self, has_end: bool) -> Structure {
        let (inner, d) = (self.inner, self.dims());
        let sums = d.ny + inner.nf..d.ny + d.nf;
        let mut columns = vec![sums.collect::<Vec<usize>>(); Column::End(0).place(&d)];
        columns.resize(Column::count(&d), vec![]);
        for &(row, column) in self.system.structure(has_end).entries() {
            columns[Column::at(&inner, column).place(&d)].push(row);
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        let (x, sums) = x.split_at(self.inner.nx);
        let (d, changes) = d.split_at(self.inner.nf);
        let (out, moved) = out.split_at_mut(self.inner.nx);
        for ((m, s), c) in moved.iter_mut().zip(sums).zip(changes) {
            *m = s + c;
        }
        self.system.displace(x, d, out)
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        let n = self.inner.nx;
        let ((x, sums), (to, then)) = (x.split_at(n), to.split_at(n));
        let (out, apart) = out.split_at_mut(self.inner.nf);
        for ((a, s), t) in apart.iter_mut().zip(sums).zip(then) {
            *a = t - s;
        }
        self.system.separation(x, to, out);
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        let (nx, nf) = (self.inner.nx, self.inner.nf);
        self.system
            .pull_separation(&x[..nx], &to[..nx], &mut adjoint[..nf]);
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        self.system.copies()
    }

    fn stays(&self, at: &Knot) -> Vec<usize> {
        let mut out = self.system.stays(at);
        let is_due = |i: &usize| self.due(at).any(|(sum, ..)| sum == *i);
        let idle = (0..self.sums.len()).filter(|i| !is_due(i));
        out.extend(idle.map(|i| self.inner.nf + i));
        out
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        self.system.contact_unknowns()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        self.system.domain(h)
    }

    fn set_central_path(&self, w: &mut Self::Work, kappa: f64) {
        self.system.set_central_path(&mut w.system, kappa);
    }

    fn center(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        self.system.center(&self.own(at), &mut w.system, y)
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        self.system.residual(&self.own(at), &mut w.system, r)
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        let (next, sums) = next.split_at_mut(self.inner.nx);
        self.system
            .advance(&self.knot_point(at), &mut w.system, next)?;
        sums.copy_from_slice(&at.x[self.inner.nx..]);
        self.look_at_terms(at, w)?;
        for (i, t, share) in self.due(&at.at) {
            sums[i] += share.weight * term(t, self.seen(&w.table, &at.at)).0;
        }
        Ok(())
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.differentiate_sums(&step(&at.start), w)?;
        let (inner, d) = (self.inner, self.dims());
        let (own, all) = w.part.of(&self.system, at.end.is_some());
        self.system
            .derivatives(&self.own(at), own, &mut w.system, all)?;
        w.part.spread(structure, values, |column| {
            Column::at(&inner, column).place(&d)
        });
        let mut put = |row: usize, column: Column, value: f64| {
            structure.add(values, (row, column.place(&d)), value);
        };
        for (i, (by, y)) in w.growth.iter().enumerate() {
            let row = d.ny + inner.nf + i;
            let state: fn(usize) -> Column = Column::State;
            let lists = [
                (&by.x, state),
                (&by.u, Column::Control),
                (&by.p, Column::Parameter),
                (y, Column::Unknown),
            ];
            for (list, kind) in lists {
                for (j, by) in list.iter().enumerate() {
                    put(row, kind(j), *by);
                }
            }
            put(row, Column::State(inner.nf + i), 1.0);
            put(row, Column::Before, by.h_prev);
            put(row, Column::After, by.h);
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
        let (own, sums) = adjoint.x.split_at(self.inner.nf);
        w.outputs.x.copy_from_slice(own);
        w.outputs.y.copy_from_slice(&adjoint.y);
        let (here, nf) = (self.own(at), self.inner.nf);
        w.inputs.clear();
        let (system, outputs, inputs) = (&mut w.system, &w.outputs, &mut w.inputs);
        self.system
            .pull_equations(&here, outputs, system, inputs, y, &mut end[..nf])?;
        end[nf..].fill(0.0);
        out.clear();
        self.add_inner(&w.inputs, out);
        self.look_at_terms(&at.start, w)?;
        for (i, t, share) in self.due(&at.start.at) {
            let (value, slope) = term(t, self.seen(&w.table, &at.start.at));
            w.adjoint[t.quantity.index()] += sums[i] * share.weight * slope;
            out.h_prev += sums[i] * share.by_h_prev * value;
            out.h += sums[i] * share.by_h * value;
        }
        self.pull_table(&at.start, w, out, y);
        add(&mut out.x[nf..], 1.0, sums.iter());
        Ok(())
    }
}
