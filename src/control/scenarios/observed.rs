//! What is seen of systems side by side: the quantities of one after the other.

use super::{Scenarios, add_own};
use crate::dynamics::{Inputs, KnotPoint, Observe, QuantityId, Rows, StepError, Stored};
use nalgebra::DMatrix;

impl<D: Observe> Observe for Scenarios<D> {
    fn quantities(&self) -> Vec<(String, String)> {
        self.listed(|s| s.quantities())
    }

    fn needs_unknowns(&self, quantity: QuantityId) -> bool {
        let (i, own) = self.owner(quantity);
        self.systems[i].needs_unknowns(own)
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        for own in &mut w.each {
            own.which.clear();
        }
        w.places.clear();
        for q in which {
            let (i, own) = self.owner(*q);
            w.places.push((i, w.each[i].which.len()));
            w.each[i].which.push(own);
        }
        for (i, (s, w, d, at)) in self.each(w).enumerate() {
            w.values.resize(w.which.len(), 0.0);
            if !w.which.is_empty() {
                let seen = Self::seen(&d, at, seen);
                s.observe_in(&seen, &w.which, &mut w.system, &mut w.values)
                    .map_err(self.named(i))?;
            }
        }
        for (o, (i, place)) in out.iter_mut().zip(&w.places) {
            *o = w.each[*i].values[*place];
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        seen: &KnotPoint,
        _which: &[QuantityId],
        w: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        for ((i, place), a) in w.places.iter().zip(adjoint) {
            w.each[*i].values[*place] = *a;
        }
        for (s, w, d, at) in self.each(w) {
            if w.which.is_empty() {
                continue;
            }
            let own = Self::seen(&d, at, seen);
            w.inputs.clear();
            let y = if y.is_empty() {
                &mut []
            } else {
                &mut y[at.y..at.y + d.ny]
            };
            s.observe_pull_in(&own, &w.which, &mut w.system, &w.values, &mut w.inputs, y);
            add_own(&w.inputs, &d, at, out);
        }
    }

    fn observe_rows_in(
        &self,
        seen: &KnotPoint,
        _which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut Rows,
    ) {
        for m in [&mut out.x, &mut out.u, &mut out.p, &mut out.y] {
            m.fill(0.0);
        }
        for (s, w, d, at) in self.each(w) {
            if w.which.is_empty() {
                continue;
            }
            if w.rows.x.nrows() != w.which.len() {
                w.rows = Rows::new(&d, w.which.len());
            }
            let own = Self::seen(&d, at, seen);
            s.observe_rows_in(&own, &w.which, &mut w.system, &mut w.rows);
        }
        for (row, (i, place)) in w.places.iter().enumerate() {
            let (i, rows) = (*i, &w.each[*i].rows);
            let (d, at) = (self.sizes[i], self.places(i));
            let copy = |to: &mut DMatrix<f64>, first: usize, from: &DMatrix<f64>| {
                for j in 0..from.ncols() {
                    to[(row, first + j)] = from[(*place, j)];
                }
            };
            copy(&mut out.x, at.f, &rows.x);
            copy(&mut out.u, at.u, &rows.u);
            copy(&mut out.p, 0, &rows.p);
            if out.y.ncols() >= at.y + d.ny {
                copy(&mut out.y, at.y, &rows.y);
            }
            (out.h_prev[row], out.h[row]) = (rows.h_prev[*place], rows.h[*place]);
        }
    }
}

impl<D: Observe + Stored> Stored for Scenarios<D> {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let at = self.places(i);
            let (x, free) = (&x[at.x..at.x + d.nx], &free[at.f..at.f + d.nf]);
            s.stored_push(x, free, &mut stored[at.x..at.x + d.nx]);
        }
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let at = self.places(i);
            let (x, free) = (&x[at.x..at.x + d.nx], &free[at.f..at.f + d.nf]);
            s.stored_pull(x, free, &mut stored[at.x..at.x + d.nx]);
        }
    }
}
