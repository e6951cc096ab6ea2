//! The mechanical face of split steps: that of the inner integrator at the knot, with the pieces that meet there.

use super::{Aligned, AlignedWork, Strikes};
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

impl<S: Strikes> Aligned<S> {
    /// A state as the inner integrator has it.
    fn whole(&self, x: Vec<f64>) -> Vec<f64> {
        x
    }

    /// All knots are as the first.
    fn part_of(&self, _: &[f64]) -> f64 {
        1.0
    }
}

impl<S: Strikes> Mechanical for Aligned<S> {
    mechanics_within!();

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        Ok(Self::new(self.inner.rebuilt(mechanism, q)?))
    }

    fn last_share(&self) -> f64 {
        0.0
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
        let AlignedWork { own, inputs, .. } = w;
        inputs.clear();
        let mine = self.inner_dims.ny.min(y.len());
        let first = self.first(seen);
        self.inner
            .pull_knot(&first, own, adjoint, inputs, &mut y[..mine]);
        inputs.h_prev = 0.0;
        if !seen.y.is_empty() {
            y[self.length(0)] += std::mem::take(&mut inputs.h);
        }
        out.add(inputs);
    }

    fn work_within(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        let n = self.pieces(seen, w, |i, piece, w| match i {
            0 => Ok(()),
            _ => self.inner.work_at(&piece.start(), &mut w.own, external),
        })?;
        self.settle_again(seen, w, |w| &mut w.own)?;
        let end = KnotPoint {
            at: self.end(&seen.at, seen.y[self.length(n - 1)]),
            x: &w.between[n - 1],
            y: &[],
            ..*seen
        };
        let work = (self.inner).contact_work(&end, &mut external.loads, &mut w.own)?;
        external.add_knot(&self.inner.knot_data(&end, &w.own), seen.u, work);
        Ok(())
    }

    /// Of the last piece: the others' gaps are closed by those behind.
    fn gave_way(&self, seen: &KnotPoint, w: &mut Self::Work) -> Result<bool, StepError> {
        let mut last = false;
        self.pieces(seen, w, |_, piece, w| {
            last = self.inner.gave_way(&piece.start(), &mut w.own)?;
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
        let n = self.count(seen.y) - 1;
        let before = KnotPoint {
            y: self.slot(seen.y, n),
            ..*seen
        };
        // the pieces start anew: forces acted for half of the last
        let last = seen.y.get(self.length(n)).filter(|last| **last != 0.0);
        let weight = last.map_or(weight, |last| 0.5 * last);
        self.inner.swing(&before, weight, above, &mut w.own)
    }

    fn limit_iterations(&self, w: &mut Self::Work, most: usize) {
        for w in w.memories() {
            self.inner.limit_iterations(w, most);
        }
    }

    fn certify(&self, w: &mut Self::Work) {
        w.certified = true;
        for w in w.memories() {
            self.inner.certify(w);
        }
    }

    fn linear_residual(&self, w: &Self::Work) -> Option<f64> {
        let each = w.parts.iter().chain(&w.settled).chain([&w.own]);
        each.filter_map(|w| self.inner.linear_residual(w))
            .reduce(f64::max)
    }
}

observable!(Aligned<S>, S: Strikes);
