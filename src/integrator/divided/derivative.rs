//! Derivatives of a divided step: those of its parts, one after another.

use super::{Divided, DividedWork};
use crate::dynamics::{Certificate, Inputs, KnotPoint, Outputs, SolvedStep, StepError};
use crate::integrator::mechanical::Mechanical;

impl<S: Mechanical> Divided<S> {
    /// Solves the parts of a solved step again, from the unknowns of the first, which gives the same to the bit; shows each
    /// as a solved step of the inner integrator.
    pub(super) fn parts(
        &self,
        seen: &KnotPoint,
        w: &mut DividedWork<S::Work>,
        mut each: impl FnMut(usize, &SolvedStep, &mut S::Work, &mut [S::Work]) -> Result<(), StepError>,
    ) -> Result<usize, StepError> {
        let (x, share) = self.split(seen.x);
        let n = self.count(seen.y);
        self.grow(n, w);
        let own_work = &mut w.own;
        for i in 0..n {
            let (before, after) = w.between.split_at_mut(i);
            let (past, own) = w.unknowns.split_at_mut(i);
            let ny = self.inner_dims.ny;
            let (x, next) = (before.last().map_or(x, |x| x), &mut after[0]);
            let y = &mut own[0][..ny];
            let at = Self::part(&seen.at, share, n, i);
            match past.last() {
                None => {
                    y.copy_from_slice(&seen.y[..ny]);
                    let here = KnotPoint { at, x, y, ..*seen };
                    self.inner.advance(&here, own_work, next)?;
                }
                Some(past) => {
                    y.copy_from_slice(&past[..ny]);
                    self.inner.step(&at, x, seen.u, seen.p, own_work, next, y)?;
                }
            }
            let solved = SolvedStep {
                at,
                x,
                u: seen.u,
                p: seen.p,
                y,
                next,
            };
            each(i, &solved, own_work, &mut w.parts)?;
        }
        Ok(n)
    }

    pub(super) fn linearize_parts(
        &self,
        at: &SolvedStep,
        w: &mut DividedWork<S::Work>,
    ) -> Result<Certificate, StepError> {
        while w.parts.len() < self.count(at.y) {
            let mut part = self.inner.work();
            self.inner.smoothing(&mut part, w.smoothing);
            self.inner.soften(&mut part, w.softness);
            if w.certified {
                self.inner.certify(&mut part);
            }
            w.parts.push(part);
        }
        w.share = self.split(at.x).1;
        let mut worst: Option<Certificate> = None;
        w.linearized = self.parts(&at.start(), w, |i, solved, _, parts| {
            let own = self.inner.linearize_in(solved, &mut parts[i])?;
            worst = Some(worst.map_or(own, |w| w.and(&own)));
            Ok(())
        })?;
        Ok(worst.unwrap_or_default())
    }

    pub(super) fn push_parts(&self, w: &mut DividedWork<S::Work>, d: &Inputs, out: &mut Outputs) {
        let (n, ny, share) = (w.linearized, self.inner_dims.ny, w.share);
        let (inputs, outputs) = (&mut w.inputs, &mut w.outputs);
        inputs.x.copy_from_slice(&d.x);
        inputs.u.copy_from_slice(&d.u);
        inputs.p.copy_from_slice(&d.p);
        inputs.h = d.h / n as f64;
        for (i, part) in w.parts[..n].iter_mut().enumerate() {
            inputs.h_prev = if i == 0 { share * d.h_prev } else { inputs.h };
            self.inner.push_in(part, inputs, outputs);
            if i == 0 {
                out.y[..ny].copy_from_slice(&outputs.y);
            }
            inputs.x.copy_from_slice(&outputs.x);
        }
        out.y[ny..2 * ny].copy_from_slice(&outputs.y);
        out.y[2 * ny..].fill(0.0);
        out.y[2 * ny + 1] = match n {
            1 => 0.5 * (share * d.h_prev + d.h),
            _ => d.h / n as f64,
        };
        out.x.copy_from_slice(&inputs.x);
    }

    pub(super) fn pull_parts(
        &self,
        w: &mut DividedWork<S::Work>,
        adjoint: &Outputs,
        out: &mut Inputs,
    ) {
        let (n, ny, share) = (w.linearized, self.inner_dims.ny, w.share);
        let (inputs, outputs) = (&mut w.inputs, &mut w.outputs);
        out.clear();
        let weight = adjoint.y[2 * ny + 1];
        if n == 1 {
            out.h += 0.5 * weight;
            out.h_prev += 0.5 * share * weight;
        } else {
            out.h += weight / n as f64;
        }
        outputs.x.copy_from_slice(&adjoint.x);
        for (i, part) in w.parts[..n].iter_mut().enumerate().rev() {
            outputs.y.fill(0.0);
            let own = [(0, 0), (n - 1, ny)];
            for (_, first) in own.into_iter().filter(|(part, _)| *part == i) {
                let given = &adjoint.y[first..first + ny];
                outputs.y.iter_mut().zip(given).for_each(|(y, a)| *y += a);
            }
            self.inner.pull_in(part, outputs, inputs);
            out.u.iter_mut().zip(&inputs.u).for_each(|(o, d)| *o += d);
            out.p.iter_mut().zip(&inputs.p).for_each(|(o, d)| *o += d);
            out.h += inputs.h / n as f64;
            if i == 0 {
                out.h_prev += share * inputs.h_prev;
            } else {
                out.h += inputs.h_prev / n as f64;
            }
            outputs.x.copy_from_slice(&inputs.x);
        }
        out.x.copy_from_slice(&outputs.x);
    }
}
