//! The equations of a step with held controls: the inner step's with the mean control, and `previous+ = u`.

use super::{Held, HeldWork, Mean};
use crate::dynamics::{
    Column, ContactUnknowns, Equations, Inputs, Knot, KnotPoint, Outputs, StepError, Structure,
    UnsolvedStep,
};
use crate::integrator::mechanical::Mechanical;

impl<S: Mechanical> Held<S> {
    /// The inner step.
    fn unsolved<'a>(&self, at: &UnsolvedStep<'a>, mean: &'a Mean) -> UnsolvedStep<'a> {
        UnsolvedStep {
            start: self.stepped(&at.start, mean),
            end: at.end.map(|e| e.part(0..self.inner_dims.nx)),
        }
    }

    /// Columns of this system that a column of the inner control has a part in.
    fn columns_of_control(&self, i: usize) -> impl Iterator<Item = usize> {
        let d = self.dims;
        let fixed = [
            Column::State(self.inner_dims.nf + i),
            Column::Control(i),
            Column::Before,
            Column::After,
        ];
        let limits = self.limits.iter().filter(move |l| l.1 == i);
        fixed
            .into_iter()
            .chain(limits.map(|l| Column::Parameter(l.0)))
            .map(move |c| c.place(&d))
    }
}

impl<S: Mechanical> Equations for Held<S> {
    fn check_equations(&self) -> Result<(), String> {
        self.inner.check_equations()
    }

    fn structure(&self, has_end: bool) -> Structure {
        let (inner, d) = (self.inner_dims, self.dims);
        let mut columns = vec![vec![]; Column::count(&d)];
        for &(row, column) in self.inner.structure(has_end).entries() {
            match Column::at(&inner, column) {
                Column::Control(i) => {
                    for place in self.columns_of_control(i) {
                        columns[place].push(row);
                    }
                }
                other => columns[other.place(&d)].push(row),
            }
        }
        for i in 0..d.nu {
            columns[Column::Control(i).place(&d)].push(d.ny + inner.nf + i);
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        let ((x, previous), (d, changes)) = (self.split(x), d.split_at(self.inner_dims.nf));
        let (out, moved) = out.split_at_mut(self.inner_dims.nx);
        for ((m, u), c) in moved.iter_mut().zip(previous).zip(changes) {
            *m = u + c;
        }
        self.inner.displace(x, d, out)
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        let ((x, previous), (to, other)) = (self.split(x), self.split(to));
        let (out, apart) = out.split_at_mut(self.inner_dims.nf);
        for ((a, u), to) in apart.iter_mut().zip(previous).zip(other) {
            *a = to - u;
        }
        self.inner.separation(x, to, out);
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        let (x, to) = (self.split(x).0, self.split(to).0);
        self.inner
            .pull_separation(x, to, &mut adjoint[..self.inner_dims.nf]);
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        self.inner.copies()
    }

    fn stays(&self, at: &Knot) -> Vec<usize> {
        self.inner.stays(at)
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        self.inner.contact_unknowns()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        self.inner.domain(h)
    }

    fn set_central_path(&self, w: &mut Self::Work, kappa: f64) {
        self.inner.set_central_path(&mut w.own, kappa);
    }

    fn center(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        self.average(&at.start, w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner.center(&self.unsolved(at, mean), own, y)
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        self.average(&at.start, w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner.residual(&self.unsolved(at, mean), own, r)
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        self.average(at, w)?;
        let (next, previous) = next.split_at_mut(self.inner_dims.nx);
        previous.copy_from_slice(at.u);
        let HeldWork { own, mean, .. } = w;
        self.inner.advance(&self.stepped(at, mean), own, next)
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.differentiate(&at.start, w)?;
        let (inner, d) = (self.inner_dims, self.dims);
        let HeldWork {
            own, mean, part, ..
        } = w;
        let (entries, all) = part.of(&*self.inner, at.end.is_some());
        self.inner
            .derivatives(&self.unsolved(at, mean), entries, own, all)?;
        part.spread(structure, values, |column| {
            Column::at(&inner, column).place(&d)
        });
        // what the inner control does comes from the mean of two controls
        for (row, column, by) in part.entries() {
            let Column::Control(i) = Column::at(&inner, column) else {
                continue;
            };
            let mut add = |column: Column, share: f64| {
                structure.add(values, (row, column.place(&d)), share * by);
            };
            // the value is there already
            add(Column::Control(i), mean.by_next[i] - 1.0);
            add(Column::State(inner.nf + i), mean.by_previous[i]);
            add(Column::Before, mean.by_h_prev[i]);
            add(Column::After, mean.by_h[i]);
            for (share, &(p, own, _)) in mean.by_limit.iter().zip(&self.limits) {
                if own == i {
                    add(Column::Parameter(p), *share);
                }
            }
        }
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
        self.differentiate(&at.start, w)?;
        let HeldWork {
            own,
            mean,
            inputs,
            outputs,
            ..
        } = w;
        let (x, next) = adjoint.x.split_at(self.inner_dims.nf);
        outputs.x.copy_from_slice(x);
        outputs.y.copy_from_slice(&adjoint.y);
        let (end, other) = end.split_at_mut(self.inner_dims.nf);
        other.fill(0.0);
        let inner = self.unsolved(at, mean);
        self.inner
            .pull_equations(&inner, outputs, own, inputs, y, end)?;
        out.clear();
        out.u.copy_from_slice(next);
        self.add_adjoints(w, out);
        Ok(())
    }
}
