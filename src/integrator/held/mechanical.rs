//! The mechanical interface of a system with held controls: that of the inner system, read out with the previous control.

use super::{Held, HeldWork};
use crate::contact::{KnotWork, Loads};
use crate::dynamics::{Frame, Inputs, Knot, KnotPoint, StepError};
use crate::integrator::external::ExternalWork;
use crate::integrator::mechanical::{MatrixSize, Mechanical, Swing, VelocityChange, observable};
use crate::integrator::reading::{ReadFrom, Reading};
use crate::mechanism::{
    Adjoint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Quantity,
};
use crate::spatial::Pose;
use nalgebra::DMatrix;

impl<S: Mechanical> Held<S> {
    /// A state before which no control acted.
    fn without_previous(&self, mut x: Vec<f64>) -> Vec<f64> {
        x.resize(self.dims.nx, 0.0);
        x
    }
}

impl<S: Mechanical> Mechanical for Held<S> {
    fn mechanism(&self) -> &Mechanism {
        self.inner.mechanism()
    }

    fn mobility(&self) -> Mobility {
        self.inner.mobility()
    }

    fn outputs(&self) -> &[Quantity] {
        self.inner.outputs()
    }

    fn with_outputs(self, outputs: Vec<Quantity>) -> Self {
        Self {
            inner: Box::new(self.inner.with_outputs(outputs)),
            ..self
        }
    }

    fn holding(self, q: &[f64], preferred: &[bool]) -> Self {
        Self {
            inner: Box::new(self.inner.holding(q, preferred)),
            ..self
        }
    }

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        Ok(Self::new(self.inner.rebuilt(mechanism, q)?))
    }

    fn mechanism_with<'a>(
        &'a self,
        p: &[f64],
        w: &'a mut Self::Work,
    ) -> Result<&'a Mechanism, StepError> {
        self.inner.mechanism_with(p, &mut w.own)
    }

    fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
        Ok(self.without_previous(self.inner.start(q, rates, held)?))
    }

    fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        self.without_previous(self.inner.state_after(self.split(x).0, poses, q, h))
    }

    fn poses(&self, x: &[f64]) -> Vec<Pose> {
        self.inner.poses(self.split(x).0)
    }

    fn interval_velocities(&self, x: &[f64], h: f64) -> Vec<Motion> {
        self.inner.interval_velocities(self.split(x).0, h)
    }

    fn last_share(&self) -> f64 {
        self.inner.last_share()
    }

    fn longest_share(&self) -> f64 {
        self.inner.longest_share()
    }

    fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
        self.inner.winding_angle(self.split(x).0, joint)
    }

    fn evaluate_knot(
        &self,
        seen: &KnotPoint,
        needs: Needs,
        w: &mut Self::Work,
    ) -> Result<(), StepError> {
        self.differentiate(seen, w)?;
        self.inner
            .evaluate_knot(&self.read(seen), needs, &mut w.own)
    }

    /// Its controls are the mean controls.
    fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a Self::Work) -> KnotData<'a> {
        KnotData {
            controls: &w.mean.value,
            ..self.inner.knot_data(&self.read(seen), &w.own)
        }
    }

    fn reading(&self, seen: &KnotPoint, quantity: &Quantity) -> Option<Reading> {
        if let Quantity::PreviousControl(i) = *quantity {
            return Some(Reading {
                value: self.split(seen.x).1[i],
                of: ReadFrom::State(self.inner_dims.nf + i),
                slopes: [1.0, 0.0, 0.0],
                by_h_prev: 0.0,
            });
        }
        self.inner.reading(&self.read(seen), quantity)
    }

    fn joint_rate(&self, quantity: &Quantity, w: &Self::Work) -> Option<(usize, f64)> {
        self.inner.joint_rate(quantity, &w.own)
    }

    fn adjoint<'a>(&self, w: &'a mut Self::Work) -> &'a mut Adjoint {
        self.inner.adjoint(&mut w.own)
    }

    fn pull_knot(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        adjoint: &Adjoint,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        w.inputs.clear();
        let HeldWork { own, inputs, .. } = w;
        self.inner
            .pull_knot(&self.read(seen), own, adjoint, inputs, y);
        // the read-out is one with the previous control; what looks at controls looks at the mean
        let previous = &mut out.x[self.inner_dims.nf..];
        for ((u, g), to) in inputs.u.iter_mut().zip(&adjoint.controls).zip(previous) {
            *to += *u - g;
            *u = *g;
        }
        self.add_adjoints(w, out);
    }

    fn contact_work(
        &self,
        seen: &KnotPoint,
        loads: &mut Loads,
        w: &mut Self::Work,
    ) -> Result<Option<KnotWork>, StepError> {
        (self.inner).contact_work(&self.read(seen), loads, &mut w.own)
    }

    fn work_within(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        self.average(seen, w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner
            .work_within(&self.stepped(seen, mean), own, external)
    }

    fn gave_way(&self, seen: &KnotPoint, w: &mut Self::Work) -> Result<bool, StepError> {
        self.average(seen, w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner.gave_way(&self.stepped(seen, mean), own)
    }

    fn holds_controls(&self) -> bool {
        true
    }

    fn previous_controls(&self) -> Option<std::ops::Range<usize>> {
        Some(self.inner_dims.nx..self.dims.nx)
    }

    fn parts_after(&self, y: &[f64]) -> usize {
        self.inner.parts_after(y)
    }

    fn tensions(&self) -> usize {
        self.inner.tensions()
    }

    fn write_tensions(&self, at: &Knot, w: &mut Self::Work, out: &mut [f64]) {
        self.inner.write_tensions(at, &mut w.own, out);
    }

    fn limit_iterations(&self, w: &mut Self::Work, most: usize) {
        self.inner.limit_iterations(&mut w.own, most);
    }

    fn swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut Self::Work,
    ) -> Result<Swing, StepError> {
        self.average(seen, w)?;
        let HeldWork { own, mean, .. } = w;
        self.inner
            .swing(&self.stepped(seen, mean), weight, above, own)
    }

    fn add_velocity_changes(
        &self,
        w: &Self::Work,
        groups: &[usize],
        out: &mut [VelocityChange],
    ) -> bool {
        self.inner.add_velocity_changes(&w.own, groups, out)
    }

    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        self.inner.tangents(Self::inner_frame(frame))
    }

    fn chart_coordinates(&self) -> Option<&[usize]> {
        self.inner.chart_coordinates()
    }

    fn certify(&self, w: &mut Self::Work) {
        self.inner.certify(&mut w.own);
    }

    fn linear_residual(&self, w: &Self::Work) -> Option<f64> {
        self.inner.linear_residual(&w.own)
    }

    fn matrix(&self) -> MatrixSize {
        self.inner.matrix()
    }
}

observable!(Held<S>, S: Mechanical);
