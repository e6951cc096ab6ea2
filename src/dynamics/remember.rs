//! A system whose state remembers the control before, so that the change of a control is something to observe.

use super::frame::blocks;
use super::{
    Certificate, Charts, Differentiable, Dims, Frame, Inputs, Knot, KnotPoint, LinearModel,
    Observe, Outputs, Parameter, Part, QuantityId, SolvedStep, Start, Step, StepError, StepStats,
    Stored,
};
use nalgebra::DMatrix;

mod equations;
#[cfg(test)]
mod tests;

/// A system with the control of the knot before as part of its state: `(x_k, u_(k-1))`, and behind the system's own
/// quantities the rates of all controls,
///
/// ```text
/// (u_k - u_(k-1)) / h_(k-1)      [unit of the control / s]
/// ```
///
/// zero at the first knot, which has no interval before it. Both charts have `nu` more numbers at their end. The step
/// itself, its unknowns and its parameters are the system's. Optimizers solve with it as with any other system;
/// [`crate::rollout::Trajectory::of_system`] then takes the system's own trajectory out of theirs.
#[derive(Debug)]
pub struct Remember<D> {
    system: D,
    controls: Vec<(String, String)>,
    own: usize,
}

/// Memory of [`Remember`].
#[derive(Debug)]
pub struct RememberWork<W> {
    system: W,
    inputs: Inputs,
    outputs: Outputs,
    model: LinearModel,
    part: Part,
    /// The system's quantities among those asked for, their values or adjoints, and their places.
    which: Vec<QuantityId>,
    values: Vec<f64>,
    places: Vec<usize>,
}

impl<W> RememberWork<W> {
    /// The system's own memory.
    pub fn system(&mut self) -> &mut W {
        &mut self.system
    }
}

impl<D: Observe> Remember<D> {
    /// Takes a system, or what points to one; `controls` are their names and units.
    pub fn new(system: D, controls: Vec<(String, String)>) -> Self {
        Self {
            own: system.quantities().len(),
            system,
            controls,
        }
    }

    /// The system that remembers nothing.
    pub fn system(&self) -> &D {
        &self.system
    }

    /// The rates' control of a quantity, if it is one.
    fn rate(&self, quantity: QuantityId) -> Option<usize> {
        quantity.index().checked_sub(self.own)
    }

    /// The system's own part of a frame.
    fn inner(frame: &Frame) -> &Frame {
        match frame {
            Frame::Parts(parts) => parts.first().unwrap_or(frame),
            whole => whole,
        }
    }

    /// Takes the system's own quantities out of a list.
    fn split(&self, which: &[QuantityId], w: &mut RememberWork<D::Work>) {
        w.which.clear();
        w.places.clear();
        for (place, quantity) in which.iter().enumerate() {
            if quantity.index() < self.own {
                w.which.push(*quantity);
                w.places.push(place);
            }
        }
        w.values.clear();
        w.values.resize(w.which.len(), 0.0);
    }

    fn knot_point<'s>(&self, seen: &KnotPoint<'s>) -> KnotPoint<'s> {
        KnotPoint {
            x: &seen.x[..self.system.dims().nx],
            ..*seen
        }
    }
}

impl<D: Observe> Step for Remember<D> {
    type Work = RememberWork<D::Work>;

    fn dims(&self) -> Dims {
        let d = self.system.dims();
        Dims {
            nx: d.nx + d.nu,
            nf: d.nf + d.nu,
            ndx: d.ndx + d.nu,
            ..d
        }
    }

    fn work(&self) -> Self::Work {
        let d = self.system.dims();
        RememberWork {
            system: self.system.work(),
            inputs: d.inputs(),
            outputs: d.outputs(),
            model: LinearModel::new(&d),
            part: Part::default(),
            which: Vec::with_capacity(self.own),
            values: Vec::with_capacity(self.own),
            places: Vec::with_capacity(self.own),
        }
    }

    fn controls(&self) -> Vec<(String, String)> {
        self.controls.clone()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.system.parameters()
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let (x, before) = x.split_at_mut(self.system.dims().nx);
        before.fill(0.0);
        self.system.initial(start, p, &mut w.system, x)
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let own = self.system.initial_by_parameters(start, p, &mut w.system)?;
        Ok(own.resize_vertically(self.dims().nf, 0.0))
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let own = self
            .system
            .initial_by_coordinates(start, p, &mut w.system)?;
        Ok(own.resize_vertically(self.dims().nf, 0.0))
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        let n = self.system.dims().nx;
        let (next, before) = next.split_at_mut(n);
        before.copy_from_slice(u);
        self.system.step(at, &x[..n], u, p, &mut w.system, next, y)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        self.system.soften(&mut w.system, kappa)
    }
}

impl<D: Observe> Remember<D> {
    /// The system's own part of a step.
    fn solved<'s>(&self, at: &SolvedStep<'s>) -> SolvedStep<'s> {
        let n = self.system.dims().nx;
        SolvedStep {
            x: &at.x[..n],
            next: &at.next[..n],
            ..*at
        }
    }
}

impl<D: Observe> Differentiable for Remember<D> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.system.linearize_in(&self.solved(at), &mut w.system)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        self.system.smoothing(&mut w.system, kappa);
    }

    fn kept(&self) -> usize {
        self.system.kept()
    }

    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        self.system.keep_in(&w.system, kept)
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError> {
        self.system
            .restore_in(&self.solved(at), kept, &mut w.system)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        let n = self.system.dims().nf;
        let own = &mut w.inputs;
        own.x.copy_from_slice(&d.x[..n]);
        own.u.copy_from_slice(&d.u);
        own.p.copy_from_slice(&d.p);
        (own.h_prev, own.h) = (d.h_prev, d.h);
        self.system.push_in(&mut w.system, own, &mut w.outputs);
        out.x[..n].copy_from_slice(&w.outputs.x);
        out.x[n..].copy_from_slice(&d.u);
        out.y.copy_from_slice(&w.outputs.y);
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        let n = self.system.dims().nf;
        w.outputs.x.copy_from_slice(&adjoint.x[..n]);
        w.outputs.y.copy_from_slice(&adjoint.y);
        w.inputs.clear();
        self.system
            .pull_in(&mut w.system, &w.outputs, &mut w.inputs);
        out.clear();
        out.add(&w.inputs);
        for (u, before) in out.u.iter_mut().zip(&adjoint.x[n..]) {
            *u += before;
        }
    }
}

impl<D: Observe> Charts for Remember<D> {
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        let d = self.system.dims();
        let (x, previous) = (&x[..d.nx], previous.map(Self::inner));
        out.fill_parts(2, |i, part| {
            if i == 0 {
                let w = &mut w.system;
                return self.system.frame_in(at, x, p, previous, w, part);
            }
            *part = Frame::Identity(d.nu);
            Ok(())
        })
    }

    fn has_identity_frames(&self) -> bool {
        self.system.has_identity_frames()
    }

    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        let d = self.system.dims();
        let (own, before) = out.split_at_mut(d.nf);
        before.fill(0.0);
        self.system.by_interval(at, &x[..d.nx], own);
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
        let dims = self.system.dims();
        let (own, before) = out.split_at_mut(dims.nx);
        for ((o, x), d) in before.iter_mut().zip(&x[dims.nx..]).zip(&d[dims.ndx..]) {
            *o = x + d;
        }
        let (x, d) = (&x[..dims.nx], &d[..dims.ndx]);
        let frame = Self::inner(frame);
        self.system.retract(at, x, p, frame, d, &mut w.system, own)
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
        let dims = self.system.dims();
        let (own, before) = out.split_at_mut(dims.ndx);
        for ((o, x), to) in before.iter_mut().zip(&x[dims.nx..]).zip(&to[dims.nx..]) {
            *o = to - x;
        }
        let (x, to) = (&x[..dims.nx], &to[..dims.nx]);
        let frame = Self::inner(frame);
        self.system
            .difference(at, x, p, frame, to, &mut w.system, own);
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
        let d = self.system.dims();
        let (x, to, frame) = (&x[..d.nx], &to[..d.nx], Self::inner(frame));
        let own = self
            .system
            .difference_by(at, x, p, frame, to, &mut w.system)?;
        Ok(blocks([own, DMatrix::identity(d.nu, d.nu)].into_iter()))
    }

    fn linear_model_in(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        let d = self.system.dims();
        let (from, to) = (Self::inner(from), Self::inner(to));
        self.system
            .linear_model_in(&mut w.system, from, to, &mut w.model);
        out.a.fill(0.0);
        out.b.fill(0.0);
        out.p.fill(0.0);
        out.a.view_mut((0, 0), (d.ndx, d.ndx)).copy_from(&w.model.a);
        out.b.view_mut((0, 0), (d.ndx, d.nu)).copy_from(&w.model.b);
        out.b
            .view_mut((d.ndx, 0), (d.nu, d.nu))
            .fill_with_identity();
        out.p.view_mut((0, 0), (d.ndx, d.np)).copy_from(&w.model.p);
    }
}

impl<D: Observe> Observe for Remember<D> {
    fn quantities(&self) -> Vec<(String, String)> {
        let rates = self.controls.iter().map(|(name, unit)| {
            let unit = if unit == "1" {
                "1/s".into()
            } else {
                format!("{unit}/s")
            };
            (format!("{name} rate"), unit)
        });
        self.system.quantities().into_iter().chain(rates).collect()
    }

    fn needs_unknowns(&self, quantity: QuantityId) -> bool {
        quantity.index() < self.own && self.system.needs_unknowns(quantity)
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.split(which, w);
        if !w.which.is_empty() {
            let own = self.knot_point(seen);
            self.system
                .observe_in(&own, &w.which, &mut w.system, &mut w.values)?;
        }
        for (place, value) in w.places.iter().zip(&w.values) {
            out[*place] = *value;
        }
        let (h, before) = (seen.at.h_prev, &seen.x[self.system.dims().nx..]);
        for (quantity, out) in which.iter().zip(out) {
            if let Some(i) = self.rate(*quantity) {
                *out = if h != 0.0 {
                    (seen.u[i] - before[i]) / h
                } else {
                    0.0
                };
            }
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        self.split(which, w);
        if !w.which.is_empty() {
            for (value, place) in w.values.iter_mut().zip(&w.places) {
                *value = adjoint[*place];
            }
            w.inputs.clear();
            let own = self.knot_point(seen);
            self.system
                .observe_pull_in(&own, &w.which, &mut w.system, &w.values, &mut w.inputs, y);
            out.add(&w.inputs);
        }
        let dims = self.system.dims();
        let (h, before) = (seen.at.h_prev, &seen.x[dims.nx..]);
        for (quantity, g) in which.iter().zip(adjoint) {
            if let Some(i) = self.rate(*quantity).filter(|_| h != 0.0) {
                out.u[i] += g / h;
                out.x[dims.nf + i] -= g / h;
                out.h_prev -= g * (seen.u[i] - before[i]) / (h * h);
            }
        }
    }
}

impl<D: Observe + Stored> Stored for Remember<D> {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        let d = self.system.dims();
        stored[d.nx..].copy_from_slice(&free[d.nf..]);
        let (own, x, free) = (&mut stored[..d.nx], &x[..d.nx], &free[..d.nf]);
        self.system.stored_push(x, free, own);
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        let d = self.system.dims();
        stored[d.nx..].copy_from_slice(&free[d.nf..]);
        let (own, x, free) = (&mut stored[..d.nx], &x[..d.nx], &free[..d.nf]);
        self.system.stored_pull(x, free, own);
    }
}
