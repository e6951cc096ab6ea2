//! Derivatives of a split step: those of its pieces, with the instants at which they end.
//!
//! With `q` the derivative of the gap that closes behind a piece by what goes into the piece, `d tau = -(q . d)/(q . h)`
//! of a change `d` with the length held; it then is a change of the length, and of the interval before the piece behind.

use super::{Aligned, AlignedWork, Strikes, open_again};
use crate::dynamics::{Certificate, Inputs, Knot, KnotPoint, Outputs, SolvedStep, StepError};

impl<S: Strikes> Aligned<S> {
    /// Shows the pieces of a solved step as solved steps of the inner integrator; their ends, before they are settled, are in
    /// `w.between`.
    pub(super) fn pieces(
        &self,
        seen: &KnotPoint,
        w: &mut AlignedWork<S::Work>,
        mut each: impl FnMut(usize, &SolvedStep, &mut AlignedWork<S::Work>) -> Result<(), StepError>,
    ) -> Result<usize, StepError> {
        let (n, first) = (self.count(seen.y), self.first(seen));
        let mut at = first.at;
        // taken out, so that the memory can be shown with them
        let mut between = std::mem::take(&mut w.between);
        let mut done = Ok(n);
        for i in 0..n {
            at.h = seen.y[self.length(i)];
            let (before, after) = between.split_at_mut(i);
            let next = &mut after[0];
            let here = KnotPoint {
                at,
                x: before.last().map_or(first.x, |x| x),
                y: self.slot(seen.y, i),
                ..first
            };
            let shown = self.inner.advance(&here, &mut w.own, next).and_then(|()| {
                let solved = SolvedStep {
                    at,
                    x: here.x,
                    u: here.u,
                    p: here.p,
                    y: here.y,
                    next,
                };
                each(i, &solved, w)
            });
            if let Err(e) = shown {
                done = Err(e);
                break;
            }
            at = Knot {
                k: at.k,
                t: at.t + at.h,
                h_prev: at.h,
                h: 0.0,
            };
        }
        w.between = between;
        done
    }

    /// Settles the end of a step again, in the memory chosen; leaves the state in `w.between`.
    pub(super) fn settle_again(
        &self,
        seen: &KnotPoint,
        w: &mut AlignedWork<S::Work>,
        memory: fn(&mut AlignedWork<S::Work>) -> &mut S::Work,
    ) -> Result<(), StepError> {
        let n = self.count(seen.y);
        self.inner.told(self.slot(seen.y, n - 1), &mut w.how);
        open_again(&mut w.how);
        let how = std::mem::take(&mut w.how);
        let mut between = std::mem::take(&mut w.between);
        let (before, after) = between.split_at_mut(n);
        let end = KnotPoint {
            at: self.end(&seen.at, seen.y[self.length(n - 1)]),
            x: &before[n - 1],
            y: &[],
            ..*seen
        };
        let done = self.inner.settle(&end, &how, memory(w), &mut after[0]);
        (w.how, w.between) = (how, between);
        done
    }

    /// Memory of one more linearization.
    fn further(&self, w: &AlignedWork<S::Work>) -> S::Work {
        let mut part = self.inner.work();
        self.inner.smoothing(&mut part, w.smoothing);
        self.inner.soften(&mut part, w.softness);
        if w.certified {
            self.inner.certify(&mut part);
        }
        part
    }

    pub(super) fn linearize_pieces(
        &self,
        at: &SolvedStep,
        w: &mut AlignedWork<S::Work>,
    ) -> Result<Certificate, StepError> {
        let n = self.count(at.y);
        while w.parts.len() < n {
            let part = self.further(w);
            w.parts.push(part);
        }
        w.linearized = n;
        let mut worst: Option<Certificate> = None;
        self.pieces(&at.start(), w, |i, solved, w| {
            let part = &mut w.parts[i];
            let own = self.inner.linearize_in(solved, part)?;
            worst = Some(worst.map_or(own, |w| w.and(&own)));
            w.lengths[i] = solved.at.h;
            if i + 1 < n {
                let (inputs, outputs) = (&mut w.inputs, &mut w.outputs);
                inputs.clear();
                let struck = at.y[self.struck(i)] as usize;
                self.inner.gap_by(part, struck, inputs);
                outputs.x.copy_from_slice(&inputs.x);
                outputs.y.fill(0.0);
                let closing = &mut w.closing[i];
                self.inner.pull_in(part, outputs, closing);
                closing
                    .p
                    .iter_mut()
                    .zip(&inputs.p)
                    .for_each(|(c, p)| *c += p);
            }
            Ok(())
        })?;
        if w.settled.is_none() {
            w.settled = Some(self.further(w));
        }
        self.settle_again(&at.start(), w, |w| match &mut w.settled {
            Some(own) => own,
            None => &mut w.own,
        })?;
        if let Some(own) = &mut w.settled {
            self.inner.linearize_settled(own);
        }
        Ok(worst.unwrap_or_default())
    }

    pub(super) fn push_pieces(&self, w: &mut AlignedWork<S::Work>, d: &Inputs, out: &mut Outputs) {
        let (n, ny) = (w.linearized, self.inner_dims.ny);
        let (inputs, outputs) = (&mut w.inputs, &mut w.outputs);
        inputs.clone_from(d);
        inputs.h_prev = 0.0;
        out.y.fill(0.0);
        let mut rest = d.h;
        for (i, part) in w.parts[..n].iter_mut().enumerate() {
            inputs.h = rest;
            if i + 1 < n {
                let q = &w.closing[i];
                inputs.h = -(dot(&q.x, &inputs.x)
                    + dot(&q.u, &inputs.u)
                    + dot(&q.p, &inputs.p)
                    + q.h_prev * inputs.h_prev)
                    / q.h;
            }
            self.inner.push_in(part, inputs, outputs);
            out.y[ny * i..ny * (i + 1)].copy_from_slice(&outputs.y);
            out.y[self.length(i)] = inputs.h;
            rest -= inputs.h;
            inputs.h_prev = inputs.h;
            inputs.x.copy_from_slice(&outputs.x);
        }
        if let Some(own) = &mut w.settled {
            inputs.h = 0.0;
            self.inner.push_settled(own, inputs, outputs);
            out.x.copy_from_slice(&outputs.x);
        }
    }

    pub(super) fn pull_pieces(
        &self,
        w: &mut AlignedWork<S::Work>,
        adjoint: &Outputs,
        out: &mut Inputs,
    ) {
        let (n, ny) = (w.linearized, self.inner_dims.ny);
        let (inputs, outputs) = (&mut w.inputs, &mut w.outputs);
        out.clear();
        outputs.x.copy_from_slice(&adjoint.x);
        // adjoint of a piece's length as the interval before what follows
        let mut before = 0.0;
        if let Some(own) = &mut w.settled {
            self.inner
                .pull_settled(own, &adjoint.x, &mut w.spare, inputs);
            take(inputs, &mut outputs.x, out);
            before = inputs.h_prev;
        }
        for (i, part) in w.parts[..n].iter_mut().enumerate().rev() {
            outputs.y.copy_from_slice(&adjoint.y[ny * i..ny * (i + 1)]);
            self.inner.pull_in(part, outputs, inputs);
            let length = inputs.h + adjoint.y[self.length(i)] + before;
            if i + 1 == n {
                // what the instants leave of the interval
                out.h = length;
            } else {
                let (q, length) = (&w.closing[i], length - out.h);
                let scale = -length / q.h;
                let add = |out: &mut [f64], by: &[f64]| {
                    out.iter_mut().zip(by).for_each(|(o, q)| *o += scale * q);
                };
                add(&mut inputs.x, &q.x);
                add(&mut inputs.u, &q.u);
                add(&mut inputs.p, &q.p);
                inputs.h_prev += scale * q.h_prev;
            }
            before = inputs.h_prev;
            take(inputs, &mut outputs.x, out);
        }
        out.x.copy_from_slice(&outputs.x);
    }
}

/// Adjoints of a piece's inputs: of its state on to the one before, of controls and parameters to the step's.
fn take(inputs: &Inputs, x: &mut [f64], out: &mut Inputs) {
    x.copy_from_slice(&inputs.x);
    out.u.iter_mut().zip(&inputs.u).for_each(|(o, d)| *o += d);
    out.p.iter_mut().zip(&inputs.p).for_each(|(o, d)| *o += d);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
