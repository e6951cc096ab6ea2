//! Held controls (zero-order hold): the control `u_k` acts over the whole interval from knot `k` to knot `k + 1`.
//!
//! The inner step applies the impulse `(h- + h)/2 u` at a knot, where `h-` and `h` are the intervals before and after it. A held
//! control has half of its impulse at either end of its interval, so the impulse at knot `k` is
//!
//! ```text
//! (h- u_(k-1) + h u_k)/2 = (h- + h)/2 w,      w = (h- u_(k-1) + h u_k)/(h- + h)
//! ```
//!
//! The state is `(x_k, u_(k-1))`: the previous control is part of it. The inner system steps with `w`, and its velocities at
//! the knot are read out with `u_(k-1)`, which acted until then. So they do not depend on `u_k`, and a policy may observe them.
//! The map is exact for constant forces, and of second order.
//!
//! - Effort limits cut `u_(k-1)` and `u_k` before they are averaged.
//! - A power of a control at a knot is that of `w`: the mean of the powers before and after the knot, weighted by the intervals.
//!   Its sum by the trapezoidal rule is the sum over the intervals of `h/2 (P(x_k, u_k) + P(x_(k+1), u_k))`.
//! - [`Composed`](super::Composed) and [`Divided`](super::Divided) steps are built around a held system. Each of their parts then holds
//!   the same control, and only the first part sees the previous one.
//! - [`Aligned`](super::Aligned) steps hold the control by themselves, because each one starts from velocities at its knot.

mod derivative;
mod equations;
mod mechanical;
#[cfg(test)]
mod tests;

use super::mechanical::Mechanical;
use crate::dynamics::{
    Charts, Dims, Frame, Inputs, Knot, KnotPoint, LinearModel, Outputs, Parameter, Part,
    SolvedStep, Start, Step, StepError, StepStats, Stored, blocks,
};
use crate::mechanism::{Actuator, Field, Mechanism, Range};
use nalgebra::DMatrix;

/// How a control acts between knots.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Controls {
    /// Constant from its knot to the next (zero-order hold), as a digital controller acts.
    #[default]
    Held,
    /// Linear from knot to knot, and constant over the last interval.
    Linear,
}

/// A system whose controls are held.
#[derive(Debug)]
pub struct Held<S> {
    /// Boxed, so that a type of all integrators can contain itself.
    inner: Box<S>,
    dims: Dims,
    inner_dims: Dims,
    /// Has an actuator effort limits?
    is_limited: bool,
    /// Parameters that the cut efforts depend on: parameter, actuator, and which of its numbers.
    limits: Vec<(usize, usize, Field)>,
}

/// Memory of one thread.
pub struct HeldWork<W> {
    own: W,
    /// The control that acts at the knot.
    mean: Mean,
    /// Central-path parameter of relaxed derivatives; 0 for consistent ones.
    relaxed: f64,
    inputs: Inputs,
    outputs: Outputs,
    model: LinearModel,
    part: Part,
}

/// The mean `w` of the previous and the next control at a knot, with its derivatives.
#[derive(Clone, Debug)]
struct Mean {
    value: Vec<f64>,
    /// By the previous control.
    by_previous: Vec<f64>,
    /// By the next control.
    by_next: Vec<f64>,
    /// By the intervals before and after the knot.
    by_h_prev: Vec<f64>,
    by_h: Vec<f64>,
    /// By the parameters in [`Held::limits`], of their actuators.
    by_limit: Vec<f64>,
}

impl Mean {
    fn new(nu: usize, limits: usize) -> Self {
        let zeros = || vec![0.0; nu];
        Self {
            value: zeros(),
            by_previous: zeros(),
            by_next: zeros(),
            by_h_prev: zeros(),
            by_h: zeros(),
            by_limit: vec![0.0; limits],
        }
    }
}

/// Shares of the previous and the next control at a knot, and the sum of its intervals. At the only knot without an interval
/// the next control acts.
fn shares(at: &Knot) -> (f64, f64, f64) {
    let sum = at.h_prev + at.h;
    if sum == 0.0 {
        return (0.0, 1.0, f64::INFINITY);
    }
    (at.h_prev / sum, at.h / sum, sum)
}

/// Derivative of the control exerted, `cut(gain u)/gain`, by a limit or by the gain.
fn exerted_by(a: &Actuator, field: Field, u: f64, relaxed: f64) -> f64 {
    if a.gain == 0.0 {
        return 0.0;
    }
    let (exerted, slope) = a.exerted(u);
    match field {
        Field::Gain(_) => (slope * u - exerted) / a.gain,
        _ => a.effort_by_limit(u, matches!(field, Field::UpperEffort(_)), relaxed) / a.gain,
    }
}

impl<S: Mechanical> Held<S> {
    /// Holds the controls of a system.
    pub fn new(inner: S) -> Self {
        let d = inner.dims();
        let m = inner.mechanism();
        let mut limits = vec![];
        for (p, tuned) in m.parameters.iter().enumerate() {
            for field in &tuned.fields {
                if let Field::LowerEffort(i) | Field::UpperEffort(i) | Field::Gain(i) = *field
                    && m.actuators[i].effort_limits != Range::OPEN
                {
                    limits.push((p, i, *field));
                }
            }
        }
        Self {
            is_limited: m.actuators.iter().any(|a| a.effort_limits != Range::OPEN),
            limits,
            dims: Dims {
                nx: d.nx + d.nu,
                nf: d.nf + d.nu,
                ndx: d.ndx + d.nu,
                ..d
            },
            inner: Box::new(inner),
            inner_dims: d,
        }
    }

    /// The system whose controls are held.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The inner system's state, and the previous control.
    fn split<'a>(&self, x: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        x.split_at(self.inner_dims.nx)
    }

    /// The inner system's frame.
    fn inner_frame(frame: &Frame) -> &Frame {
        match frame {
            Frame::Parts(parts) => parts.first().unwrap_or(frame),
            whole => whole,
        }
    }

    /// Computes the mean control at a knot, without its derivatives.
    fn average(&self, seen: &KnotPoint, w: &mut HeldWork<S::Work>) -> Result<(), StepError> {
        let (previous, (a, b, _)) = (self.split(seen.x).1, shares(&seen.at));
        let HeldWork { own, mean, .. } = w;
        let pairs = previous.iter().zip(seen.u);
        if !self.is_limited {
            let means = mean.value.iter_mut().zip(pairs);
            means.for_each(|(m, (p, n))| *m = a * p + b * n);
            return Ok(());
        }
        let m: &Mechanism = self.inner.mechanism_with(seen.p, own)?;
        for ((m, actuator), (p, n)) in mean.value.iter_mut().zip(&m.actuators).zip(pairs) {
            *m = a * actuator.exerted(*p).0 + b * actuator.exerted(*n).0;
        }
        Ok(())
    }

    /// Computes the mean control at a knot with its derivatives.
    fn differentiate(&self, seen: &KnotPoint, w: &mut HeldWork<S::Work>) -> Result<(), StepError> {
        let (previous, (a, b, sum)) = (self.split(seen.x).1, shares(&seen.at));
        let HeldWork {
            own, mean, relaxed, ..
        } = w;
        let m: &Mechanism = self.inner.mechanism_with(seen.p, own)?;
        for (i, actuator) in m.actuators.iter().enumerate() {
            let efforts = [previous[i], seen.u[i]].map(|u| {
                let (effort, slope) = actuator.exerted(u);
                let relax = *relaxed > 0.0;
                let slope = if relax {
                    actuator.relaxed_slope(u, *relaxed)
                } else {
                    slope
                };
                (effort, slope)
            });
            let [(p, by_p), (n, by_n)] = efforts;
            let value = a * p + b * n;
            mean.value[i] = value;
            mean.by_previous[i] = a * by_p;
            mean.by_next[i] = b * by_n;
            mean.by_h_prev[i] = (p - value) / sum;
            mean.by_h[i] = (n - value) / sum;
        }
        for (by, &(_, i, field)) in mean.by_limit.iter_mut().zip(&self.limits) {
            let of = |u: f64| exerted_by(&m.actuators[i], field, u, *relaxed);
            *by = a * of(previous[i]) + b * of(seen.u[i]);
        }
        Ok(())
    }

    /// What the inner step sees: the mean control.
    fn stepped<'a>(&self, seen: &KnotPoint<'a>, mean: &'a Mean) -> KnotPoint<'a> {
        KnotPoint {
            x: self.split(seen.x).0,
            u: &mean.value,
            ..*seen
        }
    }

    /// What the inner read-out of velocities at the knot sees: the previous control.
    fn read<'a>(&self, seen: &KnotPoint<'a>) -> KnotPoint<'a> {
        let (x, u) = self.split(seen.x);
        KnotPoint { x, u, ..*seen }
    }

    /// The inner part of a solved step, with the mean control.
    fn solved<'a>(&self, at: &SolvedStep<'a>, mean: &'a Mean) -> SolvedStep<'a> {
        SolvedStep {
            x: self.split(at.x).0,
            u: &mean.value,
            next: self.split(at.next).0,
            ..*at
        }
    }
}

impl<S: Mechanical> Step for Held<S> {
    type Work = HeldWork<S::Work>;

    fn dims(&self) -> Dims {
        self.dims
    }

    fn work(&self) -> Self::Work {
        let d = self.inner_dims;
        HeldWork {
            own: self.inner.work(),
            mean: Mean::new(d.nu, self.limits.len()),
            relaxed: 0.0,
            inputs: d.inputs(),
            outputs: d.outputs(),
            model: LinearModel::new(&d),
            part: Part::default(),
        }
    }

    fn controls(&self) -> Vec<(String, String)> {
        self.inner.controls()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.inner.parameters()
    }

    /// No control acted before the start.
    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let (x, previous) = x.split_at_mut(self.inner_dims.nx);
        previous.fill(0.0);
        self.inner.initial(start, p, &mut w.own, x)
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let by = self.inner.initial_by_parameters(start, p, &mut w.own)?;
        Ok(by.resize_vertically(self.dims.nf, 0.0))
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let by = self.inner.initial_by_coordinates(start, p, &mut w.own)?;
        Ok(by.resize_vertically(self.dims.nf, 0.0))
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
        let seen = KnotPoint {
            at: *at,
            x,
            u,
            p,
            y: &[],
        };
        self.average(&seen, w)?;
        let (next, previous) = next.split_at_mut(self.inner_dims.nx);
        previous.copy_from_slice(u);
        let x = self.split(x).0;
        self.inner
            .step(at, x, &w.mean.value, p, &mut w.own, next, y)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        self.inner.soften(&mut w.own, kappa)
    }
}

impl<S: Mechanical> Charts for Held<S> {
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        let (x, previous) = (self.split(x).0, previous.map(Self::inner_frame));
        out.fill_parts(2, |i, part| {
            if i == 0 {
                return self.inner.frame_in(at, x, p, previous, &mut w.own, part);
            }
            *part = Frame::Identity(self.dims.nu);
            Ok(())
        })
    }

    fn has_identity_frames(&self) -> bool {
        self.inner.has_identity_frames()
    }

    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        let (own, previous) = out.split_at_mut(self.inner_dims.nf);
        previous.fill(0.0);
        self.inner.by_interval(at, self.split(x).0, own);
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
        let ((x, previous), (d, change)) = (self.split(x), d.split_at(self.inner_dims.ndx));
        let (out, moved) = out.split_at_mut(self.inner_dims.nx);
        for ((m, u), d) in moved.iter_mut().zip(previous).zip(change) {
            *m = u + d;
        }
        let frame = Self::inner_frame(frame);
        self.inner.retract(at, x, p, frame, d, &mut w.own, out)
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
        let ((x, previous), (to, other)) = (self.split(x), self.split(to));
        let (out, change) = out.split_at_mut(self.inner_dims.ndx);
        for ((c, u), to) in change.iter_mut().zip(previous).zip(other) {
            *c = to - u;
        }
        let frame = Self::inner_frame(frame);
        self.inner.difference(at, x, p, frame, to, &mut w.own, out);
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
        let (x, to, frame) = (self.split(x).0, self.split(to).0, Self::inner_frame(frame));
        let own = self.inner.difference_by(at, x, p, frame, to, &mut w.own)?;
        let nu = self.dims.nu;
        Ok(blocks([own, DMatrix::identity(nu, nu)].into_iter()))
    }

    fn linear_model_in(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        let HeldWork {
            own, mean, model, ..
        } = w;
        let (from, to) = (Self::inner_frame(from), Self::inner_frame(to));
        self.inner.linear_model_in(own, from, to, model);
        let (ndx, nu) = (self.inner_dims.ndx, self.dims.nu);
        out.a.fill(0.0);
        out.b.fill(0.0);
        out.p.fill(0.0);
        out.a.view_mut((0, 0), (ndx, ndx)).copy_from(&model.a);
        out.p.rows_mut(0, ndx).copy_from(&model.p);
        for i in 0..nu {
            for j in 0..ndx {
                out.a[(j, ndx + i)] = mean.by_previous[i] * model.b[(j, i)];
                out.b[(j, i)] = mean.by_next[i] * model.b[(j, i)];
            }
            out.b[(ndx + i, i)] = 1.0;
        }
        for (by, &(p, i, _)) in mean.by_limit.iter().zip(&self.limits) {
            for j in 0..ndx {
                out.p[(j, p)] += by * model.b[(j, i)];
            }
        }
    }
}

impl<S: Mechanical + Stored> Stored for Held<S> {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        let (free, change) = free.split_at(self.inner_dims.nf);
        let (stored, previous) = stored.split_at_mut(self.inner_dims.nx);
        previous.copy_from_slice(change);
        self.inner.stored_push(self.split(x).0, free, stored);
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        let (free, change) = free.split_at(self.inner_dims.nf);
        let (stored, previous) = stored.split_at_mut(self.inner_dims.nx);
        previous.copy_from_slice(change);
        self.inner.stored_pull(self.split(x).0, free, stored);
    }
}
