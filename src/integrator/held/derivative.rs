//! Derivatives of a step with held controls: those of the inner step, and of the mean control.

use super::{Held, HeldWork};
use crate::dynamics::{Certificate, Differentiable, Inputs, Outputs, SolvedStep, StepError};
use crate::integrator::mechanical::Mechanical;

impl<S: Mechanical> Held<S> {
    /// Adds to the adjoints of this system's inputs those of the inner system's, where `w.inputs.u` is the adjoint of the mean
    /// control.
    pub(super) fn add_adjoints(&self, w: &HeldWork<S::Work>, out: &mut Inputs) {
        let HeldWork { inputs, mean, .. } = w;
        let (x, previous) = out.x.split_at_mut(self.inner_dims.nf);
        x.iter_mut().zip(&inputs.x).for_each(|(o, i)| *o += i);
        out.p.iter_mut().zip(&inputs.p).for_each(|(o, i)| *o += i);
        out.h_prev += inputs.h_prev;
        out.h += inputs.h;
        for (i, g) in inputs.u.iter().enumerate() {
            previous[i] += g * mean.by_previous[i];
            out.u[i] += g * mean.by_next[i];
            out.h_prev += g * mean.by_h_prev[i];
            out.h += g * mean.by_h[i];
        }
        for (by, &(p, i, _)) in mean.by_limit.iter().zip(&self.limits) {
            out.p[p] += by * inputs.u[i];
        }
    }
}

impl<S: Mechanical> Differentiable for Held<S> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.differentiate(&at.start(), w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner.linearize_in(&self.solved(at, mean), own)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        w.relaxed = kappa;
        self.inner.smoothing(&mut w.own, kappa);
    }

    fn kept(&self) -> usize {
        self.inner.kept()
    }

    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        self.inner.keep_in(&w.own, kept)
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError> {
        self.differentiate(&at.start(), w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner.restore_in(&self.solved(at, mean), kept, own)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        let HeldWork {
            own,
            mean,
            inputs,
            outputs,
            ..
        } = w;
        let (x, previous) = d.x.split_at(self.inner_dims.nf);
        inputs.x.copy_from_slice(x);
        inputs.p.copy_from_slice(&d.p);
        (inputs.h_prev, inputs.h) = (d.h_prev, d.h);
        for (i, u) in inputs.u.iter_mut().enumerate() {
            *u = mean.by_previous[i] * previous[i]
                + mean.by_next[i] * d.u[i]
                + mean.by_h_prev[i] * d.h_prev
                + mean.by_h[i] * d.h;
        }
        for (by, &(p, i, _)) in mean.by_limit.iter().zip(&self.limits) {
            inputs.u[i] += by * d.p[p];
        }
        self.inner.push_in(own, inputs, outputs);
        let (x, next) = out.x.split_at_mut(self.inner_dims.nf);
        x.copy_from_slice(&outputs.x);
        next.copy_from_slice(&d.u);
        out.y.copy_from_slice(&outputs.y);
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        let HeldWork {
            own,
            inputs,
            outputs,
            ..
        } = w;
        let (x, next) = adjoint.x.split_at(self.inner_dims.nf);
        outputs.x.copy_from_slice(x);
        outputs.y.copy_from_slice(&adjoint.y);
        inputs.clear();
        self.inner.pull_in(own, outputs, inputs);
        out.clear();
        out.u.copy_from_slice(next);
        self.add_adjoints(w, out);
    }
}
