//! The equations of a system that remembers: the system's own, and `before+ = u`.

use super::Remember;
use crate::dynamics::{
    Column, ContactUnknowns, Equations, Inputs, Knot, KnotPoint, Observe, Outputs, Step, StepError,
    Structure, UnsolvedStep,
};

impl<D: Observe> Remember<D> {
    /// The system's own step.
    fn within<'a>(&self, at: &UnsolvedStep<'a>) -> UnsolvedStep<'a> {
        UnsolvedStep {
            start: self.knot_point(&at.start),
            end: at.end.map(|e| e.part(0..self.system.dims().nx)),
        }
    }
}

impl<D: Observe> Equations for Remember<D> {
    fn check_equations(&self) -> Result<(), String> {
        self.system.check_equations()
    }

    fn structure(&self, has_end: bool) -> Structure {
        let (inner, d) = (self.system.dims(), self.dims());
        let mut columns = vec![vec![]; Column::count(&d)];
        for &(row, column) in self.system.structure(has_end).entries() {
            columns[Column::at(&inner, column).place(&d)].push(row);
        }
        for i in 0..d.nu {
            columns[Column::Control(i).place(&d)].push(d.ny + inner.nf + i);
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        let inner = self.system.dims();
        let (x, before) = x.split_at(inner.nx);
        let (d, changes) = d.split_at(inner.nf);
        let (out, moved) = out.split_at_mut(inner.nx);
        for ((m, b), c) in moved.iter_mut().zip(before).zip(changes) {
            *m = b + c;
        }
        self.system.displace(x, d, out)
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        let inner = self.system.dims();
        let ((x, before), (to, then)) = (x.split_at(inner.nx), to.split_at(inner.nx));
        let (out, apart) = out.split_at_mut(inner.nf);
        for ((a, b), t) in apart.iter_mut().zip(before).zip(then) {
            *a = t - b;
        }
        self.system.separation(x, to, out);
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        let inner = self.system.dims();
        let (x, to) = (&x[..inner.nx], &to[..inner.nx]);
        self.system.pull_separation(x, to, &mut adjoint[..inner.nf]);
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        self.system.copies()
    }

    fn stays(&self, at: &Knot) -> Vec<usize> {
        self.system.stays(at)
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
        self.system.center(&self.within(at), &mut w.system, y)
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        self.system.residual(&self.within(at), &mut w.system, r)
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        let (next, before) = next.split_at_mut(self.system.dims().nx);
        before.copy_from_slice(at.u);
        self.system
            .advance(&self.knot_point(at), &mut w.system, next)
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        let (inner, d) = (self.system.dims(), self.dims());
        let (own, all) = w.part.of(&self.system, at.end.is_some());
        self.system
            .derivatives(&self.within(at), own, &mut w.system, all)?;
        w.part.spread(structure, values, |column| {
            Column::at(&inner, column).place(&d)
        });
        for i in 0..d.nu {
            let place = (d.ny + inner.nf + i, Column::Control(i).place(&d));
            structure.add(values, place, 1.0);
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
        let inner = self.system.dims();
        let (own, before) = adjoint.x.split_at(inner.nf);
        w.outputs.x.copy_from_slice(own);
        w.outputs.y.copy_from_slice(&adjoint.y);
        let at = self.within(at);
        let (system, outputs, inputs) = (&mut w.system, &w.outputs, &mut w.inputs);
        self.system
            .pull_equations(&at, outputs, system, inputs, y, &mut end[..inner.nf])?;
        end[inner.nf..].fill(0.0);
        out.clear();
        out.x[..inner.nf].copy_from_slice(&inputs.x);
        for ((u, own), b) in out.u.iter_mut().zip(&inputs.u).zip(before) {
            *u = own + b;
        }
        out.p.copy_from_slice(&inputs.p);
        (out.h_prev, out.h) = (inputs.h_prev, inputs.h);
        Ok(())
    }
}
