//! Linear feedback on quantities, scheduled by the knot.

use super::policy::{Policy, PolicyError, PolicyRows};
use crate::dynamics::{Knot, QuantityId, StepError};
use nalgebra::DMatrix;

/// Linear feedback on quantities `s` along a plan, `u = u_k + K_k (s - s_k)`. Behind its end the plan's last
/// controls hold on, without feedback.
#[derive(Clone, Debug)]
pub struct Schedule {
    sees: Vec<QuantityId>,
    knots: Vec<ScheduleKnot>,
    open: usize,
}

/// The plan at a knot.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleKnot {
    /// Controls `u_k`.
    pub controls: Vec<f64>,
    /// What the quantities are there, `s_k`.
    pub seen: Vec<f64>,
    /// `K_k`, a row for each control.
    pub gains: DMatrix<f64>,
}

impl Schedule {
    /// On quantities; with `feed_forward` so many open controls are added.
    ///
    /// # Errors
    /// When there is no knot, or the sizes differ.
    pub fn new(
        sees: Vec<QuantityId>,
        knots: Vec<ScheduleKnot>,
        feed_forward: bool,
    ) -> Result<Self, PolicyError> {
        let Some(first) = knots.first() else {
            return Err(PolicyError(
                "a schedule has no knots; give one a step".into(),
            ));
        };
        let nu = first.controls.len();
        let fits = |k: &ScheduleKnot| {
            let sizes = (k.controls.len(), k.seen.len(), k.gains.shape());
            sizes == (nu, sees.len(), (nu, sees.len()))
        };
        match knots.iter().position(|k| !fits(k)) {
            Some(k) => Err(PolicyError(format!(
                "knot {k} of a schedule has other sizes than {nu} controls by {} quantities",
                sees.len()
            ))),
            None => Ok(Self {
                open: if feed_forward { nu } else { 0 },
                sees,
                knots,
            }),
        }
    }

    fn knot(&self, at: &Knot) -> &ScheduleKnot {
        &self.knots[at.k.min(self.knots.len() - 1)]
    }

    fn has_ended(&self, at: &Knot) -> bool {
        at.k >= self.knots.len()
    }
}

impl Policy for Schedule {
    fn sees(&self) -> &[QuantityId] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        _: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let k = self.knot(at);
        out.copy_from_slice(&k.controls);
        super::add(out, 1.0, open.iter());
        if self.has_ended(at) {
            return Ok(());
        }
        for (column, (s, plan)) in k.gains.column_iter().zip(seen.iter().zip(&k.seen)) {
            super::add(out, s - plan, column.iter());
        }
        Ok(())
    }

    fn differentiate(
        &self,
        at: &Knot,
        _: &[f64],
        _: &[f64],
        _: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        by.open.fill_with_identity();
        if !self.has_ended(at) {
            by.seen += &self.knot(at).gains;
        }
        Ok(())
    }
}
