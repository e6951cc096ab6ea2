//! The mechanical face of divided steps: that of the inner integrator at the knot, with the parts that meet there.

use super::{Divided, DividedWork};
use crate::contact::ContactWork;
use crate::dynamics::{Frame, Inputs, KnotPoint, StepError};
use crate::integrator::mechanical::{ExternalWork, MatrixSize, Mechanical, Swing, observable};
use crate::mechanism::{
    Adjoint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Quantity,
};
use crate::spatial::Pose;
use nalgebra::DMatrix;

impl<S: Mechanical> Divided<S> {
    /// A state with velocities of the whole interval before.
    pub(super) fn whole(mut x: Vec<f64>) -> Vec<f64> {
        x.push(1.0);
        x
    }
}

impl<S: Mechanical> Mechanical for Divided<S> {
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
        self.inner.start(q, rates, held).map(Self::whole)
    }

    fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        let (x, _) = self.split(x);
        Self::whole(self.inner.state_after(x, poses, q, h))
    }

    fn poses(&self, x: &[f64]) -> Vec<Pose> {
        self.inner.poses(self.split(x).0)
    }

    fn interval_velocities(&self, x: &[f64]) -> Vec<Motion> {
        self.inner.interval_velocities(self.split(x).0)
    }

    fn parts_after(&self, y: &[f64]) -> usize {
        self.count(y)
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
        let DividedWork { own, inputs, .. } = w;
        inputs.clear();
        let mine = self.inner_dims.ny.min(y.len());
        let (first, share) = (self.first(seen), self.split(seen.x).1);
        self.inner
            .pull_knot(&first, own, adjoint, inputs, &mut y[..mine]);
        inputs.h_prev *= share;
        inputs.h /= self.count(seen.y) as f64;
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
        if self.count(seen.y) == 1 {
            return Ok(());
        }
        self.parts(seen, w, |i, part, own, _| {
            let here = part.start();
            if i > 0 {
                self.inner.work_at(&here, own, external)?;
            }
            self.inner.work_within(&here, own, external)
        })
        .map(|_| ())
    }

    /// Of the last part: the others' gaps are closed by those behind.
    fn gave_way(&self, seen: &KnotPoint, w: &mut Self::Work) -> Result<bool, StepError> {
        let mut last = false;
        self.parts(seen, w, |_, part, own, _| {
            last = self.inner.gave_way(&part.start(), own)?;
            Ok(())
        })?;
        Ok(last)
    }

    fn swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut Self::Work,
    ) -> Result<Swing, StepError> {
        let (x, share) = self.split(seen.x);
        let n = self.inner_dims.ny;
        let before = KnotPoint {
            at: Self::part(&seen.at, share, 1, 0),
            x,
            y: seen.y.get(n..2 * n).unwrap_or(&[]),
            ..*seen
        };
        let weight = match seen.y.is_empty() {
            true => weight,
            false => self.weight(seen.y),
        };
        self.inner.swing(&before, weight, above, &mut w.own)
    }

    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        self.inner.tangents(frame)
    }

    fn certify(&self, w: &mut Self::Work) {
        w.certified = true;
        for w in w.parts.iter_mut().chain([&mut w.own]) {
            self.inner.certify(w);
        }
    }

    fn linear_residual(&self, w: &Self::Work) -> Option<f64> {
        let each = w.parts.iter().chain([&w.own]);
        each.filter_map(|w| self.inner.linear_residual(w))
            .reduce(f64::max)
    }

    fn matrix(&self) -> MatrixSize {
        self.inner.matrix()
    }
}

observable!(Divided<S>, S: Mechanical);
