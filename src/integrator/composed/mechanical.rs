//! The mechanical face of a composition: that of the inner integrator at the knot, with the sub-intervals that meet there.

use super::{Composed, ComposedWork};
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

impl<S: Mechanical> Composed<S> {
    /// With the mean velocities of the whole interval.
    fn whole(&self, x: Vec<f64>) -> Vec<f64> {
        x
    }

    /// Share of a step that its last part is.
    fn part_of(&self, _: &[f64]) -> f64 {
        self.shares[self.shares.len() - 1]
    }
}

impl<S: Mechanical> Mechanical for Composed<S> {
    mechanics_within!();

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        Self::new(self.inner.rebuilt(mechanism, q)?, self.order)
    }

    fn last_share(&self) -> f64 {
        self.shares[self.shares.len() - 1] * self.inner.last_share()
    }

    fn longest_share(&self) -> f64 {
        let longest = self.shares.iter().fold(0.0_f64, |m, s| m.max(s.abs()));
        longest * self.inner.longest_share()
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
            at: self.stage(&seen.at, 0),
            y: self.unknowns(seen.y, self.shares.len() - 1),
            ..*seen
        };
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
            turn: longest * found.turn,
            spin: (found.spin.0, longest * found.spin.1),
            ..found
        })
    }

    fn limit_iterations(&self, w: &mut Self::Work, most: usize) {
        for w in w.stages.iter_mut().chain([&mut w.own]) {
            self.inner.limit_iterations(w, most);
        }
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
}

observable!(Composed<S>, S: Mechanical);
