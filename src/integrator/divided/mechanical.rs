//! The mechanical face of divided steps: that of the inner integrator at the knot, with the parts that meet there.

use super::{Divided, DividedWork};
use crate::contact::{KnotWork, Loads};
use crate::dynamics::{Frame, Inputs, KnotPoint, StepError};
use crate::integrator::external::ExternalWork;
use crate::integrator::mechanical::{MatrixSize, Mechanical, Swing, observable};
use crate::integrator::within::mechanics_within;
use crate::mechanism::{
    Adjoint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Quantity,
};
use crate::spatial::Pose;
use nalgebra::DMatrix;

impl<S: Mechanical> Divided<S> {
    /// A state with velocities of the whole interval before.
    pub(super) fn whole(&self, mut x: Vec<f64>) -> Vec<f64> {
        x.push(1.0);
        x
    }

    /// Share of the step before the knot that its last part was.
    fn part_of(&self, x: &[f64]) -> f64 {
        self.split(x).1
    }
}

impl<S: Mechanical> Mechanical for Divided<S> {
    mechanics_within!();

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        Ok(Self::new(self.inner.rebuilt(mechanism, q)?))
    }

    fn last_share(&self) -> f64 {
        self.inner.last_share()
    }

    fn longest_share(&self) -> f64 {
        self.inner.longest_share()
    }

    fn parts_after(&self, y: &[f64]) -> usize {
        self.count(y)
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

    fn work_within(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        if self.count(seen.y) == 1 {
            return self
                .inner
                .work_within(&self.first(seen), &mut w.own, external);
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
        let DividedWork { own, guess, .. } = w;
        let y = match seen.y.is_empty() {
            true => &[],
            false => {
                self.before(seen.y, guess);
                &guess[..]
            }
        };
        let before = KnotPoint {
            at: Self::part(&seen.at, share, 1, 0),
            x,
            y,
            ..*seen
        };
        let weight = match seen.y.is_empty() {
            true => weight,
            false => self.weight(seen.y),
        };
        self.inner.swing(&before, weight, above, own)
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
}

observable!(Divided<S>, S: Mechanical);
