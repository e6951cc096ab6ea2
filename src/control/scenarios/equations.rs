//! The equations of several systems: those of each, below each other.

use super::{Places, Scenarios};
use crate::dynamics::{
    Column, ContactUnknowns, Dims, Equations, Inputs, Knot, KnotPoint, Observe, Outputs, Step,
    StepError, Structure, UnsolvedStep,
};

/// Where a system's row is among those of all.
fn row_of(own: &Dims, all: &Dims, at: &Places, row: usize) -> usize {
    match row.checked_sub(own.ny) {
        None => at.y + row,
        Some(next) => all.ny + at.f + next,
    }
}

/// Where a system's column is.
fn column_of(own: &Dims, all: &Dims, at: &Places, column: usize) -> usize {
    let moved = match Column::at(own, column) {
        Column::State(i) => Column::State(at.f + i),
        Column::End(i) => Column::End(at.f + i),
        Column::Control(i) => Column::Control(at.u + i),
        Column::Unknown(i) => Column::Unknown(at.y + i),
        shared => shared,
    };
    moved.place(all)
}

impl<D: Observe> Scenarios<D> {
    /// A system's own step.
    fn unsolved<'a>(d: &Dims, own: Places, at: &UnsolvedStep<'a>) -> UnsolvedStep<'a> {
        UnsolvedStep {
            start: Self::seen(d, own, &at.start),
            end: at.end.map(|e| e.part(own.x..own.x + d.nx)),
        }
    }
}

impl<D: Observe> Equations for Scenarios<D> {
    fn check_equations(&self) -> Result<(), String> {
        self.systems.iter().try_for_each(Equations::check_equations)
    }

    fn structure(&self, has_end: bool) -> Structure {
        let all = self.dims();
        let mut columns = vec![vec![]; Column::count(&all)];
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let at = self.places(i);
            for &(row, column) in s.structure(has_end).entries() {
                columns[column_of(d, &all, &at, column)].push(row_of(d, &all, &at, row));
            }
        }
        Structure::new(all.ny + all.nf, &columns)
    }

    fn displace(&self, x: &[f64], change: &[f64], out: &mut [f64]) -> bool {
        let mut moved = true;
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let at = self.places(i);
            let (own, free) = (at.x..at.x + d.nx, at.f..at.f + d.nf);
            moved &= s.displace(&x[own.clone()], &change[free], &mut out[own]);
        }
        moved
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let at = self.places(i);
            let own = at.x..at.x + d.nx;
            s.separation(&x[own.clone()], &to[own], &mut out[at.f..at.f + d.nf]);
        }
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let at = self.places(i);
            let (own, free) = (at.x..at.x + d.nx, at.f..at.f + d.nf);
            s.pull_separation(&x[own.clone()], &to[own], &mut adjoint[free]);
        }
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        let each = self.systems.iter().enumerate();
        each.flat_map(|(i, s)| {
            let at = self.places(i);
            let own = s.copies().into_iter();
            own.map(move |(f, y)| (at.f + f, at.y + y))
        })
        .collect()
    }

    fn stays(&self, at: &Knot) -> Vec<usize> {
        let each = self.systems.iter().enumerate();
        each.flat_map(|(i, s)| s.stays(at).into_iter().map(move |f| self.places(i).f + f))
            .collect()
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        let each = self.systems.iter().enumerate();
        each.flat_map(|(i, s)| {
            let at = self.places(i).y;
            let own = s.contact_unknowns().into_iter();
            own.map(move |c| ContactUnknowns {
                first: at + c.first,
                ..c
            })
        })
        .collect()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        let each = self.systems.iter().enumerate();
        each.flat_map(|(i, s)| {
            let own = s.domain(h).into_iter();
            own.map(move |(y, size)| (self.places(i).y + y, size))
        })
        .collect()
    }

    fn set_central_path(&self, w: &mut Self::Work, kappa: f64) {
        for (s, w, ..) in self.each(w) {
            s.set_central_path(&mut w.system, kappa);
        }
    }

    fn center(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        for (i, (s, w, d, own)) in self.each(w).enumerate() {
            let seen = Self::unsolved(&d, own, at);
            s.center(&seen, &mut w.system, &mut y[own.y..own.y + d.ny])
                .map_err(self.named(i))?;
        }
        Ok(())
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        for (i, (s, w, d, own)) in self.each(w).enumerate() {
            let seen = Self::unsolved(&d, own, at);
            s.residual(&seen, &mut w.system, &mut r[own.y..own.y + d.ny])
                .map_err(self.named(i))?;
        }
        Ok(())
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        for (i, (s, w, d, own)) in self.each(w).enumerate() {
            let seen = Self::seen(&d, own, at);
            s.advance(&seen, &mut w.system, &mut next[own.x..own.x + d.nx])
                .map_err(self.named(i))?;
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
        let all = self.dims();
        values.fill(0.0);
        for (i, (s, w, d, own)) in self.each(w).enumerate() {
            let seen = Self::unsolved(&d, own, at);
            let (structure_of, of) = w.part.of(s, at.end.is_some());
            s.derivatives(&seen, structure_of, &mut w.system, of)
                .map_err(self.named(i))?;
            for (row, column, value) in w.part.entries() {
                let place = (
                    row_of(&d, &all, &own, row),
                    column_of(&d, &all, &own, column),
                );
                structure.add(values, place, value);
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
        out.clear();
        for (i, (s, w, d, own)) in self.each(w).enumerate() {
            let seen = Self::unsolved(&d, own, at);
            (w.outputs.x).copy_from_slice(&adjoint.x[own.f..own.f + d.nf]);
            (w.outputs.y).copy_from_slice(&adjoint.y[own.y..own.y + d.ny]);
            let (system, outputs, inputs) = (&mut w.system, &w.outputs, &mut w.inputs);
            let y = &mut y[own.y..own.y + d.ny];
            let end = &mut end[own.f..own.f + d.nf];
            s.pull_equations(&seen, outputs, system, inputs, y, end)
                .map_err(self.named(i))?;
            out.x[own.f..own.f + d.nf].copy_from_slice(&inputs.x);
            for (to, from) in out.u[own.u..].iter_mut().zip(&inputs.u) {
                *to += from;
            }
            for (to, from) in out.p.iter_mut().zip(&inputs.p) {
                *to += from;
            }
            out.h_prev += inputs.h_prev;
            out.h += inputs.h;
        }
        Ok(())
    }
}
