//! Charts of systems side by side: those of one after the other.

use super::Scenarios;
use crate::dynamics::{Charts, Frame, Knot, LinearModel, Observe, StepError, blocks};
use nalgebra::DMatrix;

impl<D: Observe> Charts for Scenarios<D> {
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        out.fill_parts(self.systems.len(), |i, part| {
            let (s, d, own) = (&self.systems[i], &self.sizes[i], self.places(i));
            let x = &x[own.x..own.x + d.nx];
            let previous = previous.map(|f| Self::frame_of(f, i));
            s.frame_in(at, x, p, previous, &mut w.each[i].system, part)
        })
    }

    fn has_identity_frames(&self) -> bool {
        self.systems.iter().all(D::has_identity_frames)
    }

    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        for (i, (s, w, n, own)) in self.each(w).enumerate() {
            let (x, d) = (&x[own.x..own.x + n.nx], &d[own.j..own.j + n.ndx]);
            let (frame, out) = (Self::frame_of(frame, i), &mut out[own.x..own.x + n.nx]);
            s.retract(at, x, p, frame, d, &mut w.system, out)?;
        }
        Ok(())
    }

    fn difference(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
        out: &mut [f64],
    ) {
        for (i, (s, w, n, own)) in self.each(w).enumerate() {
            let (x, to) = (&x[own.x..own.x + n.nx], &to[own.x..own.x + n.nx]);
            let (frame, out) = (Self::frame_of(frame, i), &mut out[own.j..own.j + n.ndx]);
            s.difference(at, x, p, frame, to, &mut w.system, out);
        }
    }

    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        for (i, (s, d)) in self.systems.iter().zip(&self.sizes).enumerate() {
            let own = self.places(i);
            let to = &mut out[own.f..own.f + d.nf];
            s.by_interval(at, &x[own.x..own.x + d.nx], to);
        }
    }

    fn difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let mut all = vec![];
        for (i, (s, w, n, own)) in self.each(w).enumerate() {
            let (x, to) = (&x[own.x..own.x + n.nx], &to[own.x..own.x + n.nx]);
            let frame = Self::frame_of(frame, i);
            all.push(s.difference_by(at, x, p, frame, to, &mut w.system)?);
        }
        Ok(blocks(all.into_iter()))
    }

    fn linear_model_in(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        out.a.fill(0.0);
        out.b.fill(0.0);
        for (i, (s, w, n, at)) in self.each(w).enumerate() {
            let (from, to) = (Self::frame_of(from, i), Self::frame_of(to, i));
            s.linear_model_in(&mut w.system, from, to, &mut w.model);
            let j = at.j;
            out.a.view_mut((j, j), (n.ndx, n.ndx)).copy_from(&w.model.a);
            out.b
                .view_mut((j, at.u), (n.ndx, n.nu))
                .copy_from(&w.model.b);
            out.p.rows_mut(j, n.ndx).copy_from(&w.model.p);
        }
    }
}
