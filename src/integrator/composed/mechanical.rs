//! The mechanical face of a composition: that of the inner integrator at the knot, with the sub-intervals that meet there.

use super::{Composed, ComposedWork};
use crate::contact::ContactWork;
use crate::dynamics::{Frame, Inputs, KnotPoint, StepError};
use crate::integrator::mechanical::{ExternalWork, MatrixSize, Mechanical, Swing, observable};
use crate::mechanism::{
    Adjoint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Quantity,
};
use crate::spatial::Pose;
use nalgebra::DMatrix;

impl<S: Mechanical> Mechanical for Composed<S> {
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
        Self::new(self.inner.rebuilt(mechanism, q)?, self.order)
    }

    fn mechanism_with<'a>(
        &'a self,
        p: &[f64],
        w: &'a mut Self::Work,
    ) -> Result<&'a Mechanism, StepError> {
        self.inner.mechanism_with(p, &mut w.own)
    }

    fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
        self.inner.start(q, rates, held)
    }

    /// With the mean velocities of the whole interval.
    fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        self.inner.state_after(x, poses, q, h)
    }

    fn poses(&self, x: &[f64]) -> Vec<Pose> {
        self.inner.poses(x)
    }

    fn interval_velocities(&self, x: &[f64]) -> Vec<Motion> {
        self.inner.interval_velocities(x)
    }

    fn last_share(&self) -> f64 {
        self.shares[self.shares.len() - 1] * self.inner.last_share()
    }

    fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
        self.inner.winding_angle(x, joint)
    }

    fn evaluate_knot(
        &self,
        seen: &KnotPoint,
        needs: Needs,
        w: &mut Self::Work,
    ) -> Result<(), StepError> {
        self.inner
            .evaluate_knot(&self.first(seen), needs, &mut w.own)
    }

    fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a Self::Work) -> KnotData<'a> {
        self.inner.knot_data(&self.first(seen), &w.own)
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
        let ComposedWork { own, inputs, .. } = w;
        inputs.clear();
        let mine = self.inner_dims.ny.min(y.len());
        let first = self.first(seen);
        self.inner
            .pull_knot(&first, own, adjoint, inputs, &mut y[..mine]);
        inputs.h_prev *= self.shares[self.shares.len() - 1];
        inputs.h *= self.shares[0];
        out.add(inputs);
    }

    fn contact_work(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
    ) -> Result<[ContactWork; 2], StepError> {
        self.inner.contact_work(&self.first(seen), &mut w.own)
    }

    fn work_within(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        let ComposedWork { own, between, .. } = w;
        self.visit(seen, own, between, |i, here, w| {
            if i > 0 {
                self.inner.work_at(here, w, external)?;
            }
            self.inner.work_within(here, w, external)
        })
    }

    /// Of the last stage: the others' gaps are closed by those behind.
    fn gave_way(&self, seen: &KnotPoint, w: &mut Self::Work) -> Result<bool, StepError> {
        let (ComposedWork { own, between, .. }, mut last) = (w, false);
        self.visit(seen, own, between, |_, here, w| {
            last = self.inner.gave_way(here, w)?;
            Ok(())
        })?;
        Ok(last)
    }

    fn swing(
        &self,
        seen: &KnotPoint,
        _: f64,
        above: f64,
        w: &mut Self::Work,
    ) -> Result<Swing, StepError> {
        let before = KnotPoint {
            at: self.knot(&seen.at),
            y: self.unknowns(seen.y, self.shares.len() - 1),
            ..*seen
        };
        // of the longest part
        let longest = self.shares.iter().fold(0.0_f64, |m, s| m.max(s.abs()));
        // where the last part starts, it and the one before it meet
        let last = self.stage(&seen.at, self.shares.len() - 1);
        let share = 0.5 * (last.h_prev + last.h) / seen.at.h;
        let weight = share * seen.at.before().unwrap_or(seen.at.h);
        let found = self
            .inner
            .swing(&before, weight, above / longest, &mut w.own)?;
        Ok(Swing {
            rate: longest * found.rate,
            bound: longest * found.bound,
            ..found
        })
    }

    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        self.inner.tangents(frame)
    }

    fn certify(&self, w: &mut Self::Work) {
        for w in w.stages.iter_mut().chain([&mut w.own]) {
            self.inner.certify(w);
        }
    }

    fn linear_residual(&self, w: &Self::Work) -> Option<f64> {
        let each = w.stages.iter().chain([&w.own]);
        each.filter_map(|w| self.inner.linear_residual(w))
            .reduce(f64::max)
    }

    fn matrix(&self) -> MatrixSize {
        self.inner.matrix()
    }
}

observable!(Composed<S>, S: Mechanical);
