//! A policy whose controls are disturbed.

use super::policy::{Planned, Policy, PolicyRows};
use crate::dynamics::{Knot, Parameter, QuantityId, StepError};

/// A policy to whose controls something is added, knot by knot, that it does not know of: `u_k = policy + d_k`.
#[derive(Clone, Debug)]
pub struct Disturbed<P> {
    policy: P,
    /// As many numbers a knot as there are controls.
    disturbance: Vec<f64>,
    controls: usize,
}

impl<P: Policy> Disturbed<P> {
    /// Adds `disturbance`, `controls` numbers (N or N m) for each time step; behind the last they hold on.
    pub fn new(policy: P, disturbance: Vec<f64>, controls: usize) -> Self {
        Self {
            policy,
            disturbance,
            controls,
        }
    }

    fn at(&self, k: usize) -> &[f64] {
        let mut knots = self.disturbance.chunks_exact(self.controls.max(1));
        let last = knots.len().saturating_sub(1);
        knots.nth(k.min(last)).unwrap_or(&[])
    }
}

impl<P: Policy> Policy for Disturbed<P> {
    fn sees(&self) -> &[QuantityId] {
        self.policy.sees()
    }

    fn compares(&self) -> usize {
        self.policy.compares()
    }

    fn planned(&self, at: &Knot) -> Option<Planned<'_>> {
        self.policy.planned(at)
    }

    fn open(&self) -> usize {
        self.policy.open()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.policy.parameters()
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.policy.act(at, seen, open, own, out)?;
        for (u, d) in out.iter_mut().zip(self.at(at.k)) {
            *u += d;
        }
        Ok(())
    }

    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        self.policy.differentiate(at, seen, open, own, by)
    }
}
