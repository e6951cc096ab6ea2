//! What splits steps where something strikes asks of the integrator.

use super::{Maximal, Work};
use crate::contact::{Gap, Told, Touching};
use crate::dynamics::{Inputs, KnotPoint, Outputs, StepError, StepStats};
use crate::integrator::aligned::Strikes;
use std::ops::Range;

impl Strikes for Maximal {
    fn has_impacts(&self) -> bool {
        !self.contacts.blows().is_empty()
    }

    fn elements(&self) -> usize {
        self.contacts.len()
    }

    fn at_rest(
        &self,
        seen: &KnotPoint,
        w: &mut Work,
        how: &mut [Touching],
    ) -> Result<(), StepError> {
        self.apply(seen.p, w)?;
        how.fill(Touching::Open);
        self.contacts.tell(&w.model, &mut w.contacts, how);
        self.prepare(seen.at.step(), seen.x, seen.u, w)?;
        self.contacts.at_rest(&self.view(w), &w.contacts, how);
        Ok(())
    }

    fn would_rest(&self, w: &Work, element: usize, approach: f64, interval: f64) -> bool {
        self.contacts
            .would_rest(&w.model, element, approach, interval)
    }

    fn step_told(
        &self,
        seen: &KnotPoint,
        told: &Told,
        w: &mut Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.apply(seen.p, w)?;
        self.solve_told(seen, told, w, next, y)
    }

    fn places(&self) -> Range<usize> {
        self.contacts.rim_points()
    }

    fn place_of(&self, w: &Work, element: usize) -> f64 {
        self.contacts.place(&w.contacts, element)
    }

    fn told(&self, y: &[f64], how: &mut [Touching]) {
        self.contacts.told(y, how);
    }

    fn gap_of(&self, w: &Work, element: usize) -> Gap {
        self.contacts.gap(&self.view(w), &w.contacts, element)
    }

    fn gap_by(&self, w: &Work, element: usize, out: &mut Inputs) {
        self.contacts
            .gap_by(&self.view(w), &w.contacts, element, out);
    }

    fn settle(
        &self,
        seen: &KnotPoint,
        how: &[Touching],
        w: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.apply(seen.p, w)?;
        self.contacts.tell(&w.model, &mut w.contacts, how);
        self.readout(seen.at.readout(), (seen.x, seen.u, &[]), w)?;
        self.with_velocities(seen.x, w, out);
        Ok(())
    }

    fn linearize_settled(&self, w: &mut Work) {
        w.adjoint.coupled = false;
        self.turn_elements(w);
        self.linearize_readout(w);
    }

    fn push_settled(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        let n = 6 * self.body_count();
        self.push_step(w, d, out);
        let (poses, velocities) = out.x.split_at_mut(n);
        poses.copy_from_slice(&d.x[..n]);
        velocities.copy_from_slice(&out.y[..n]);
    }

    fn pull_settled(&self, w: &mut Work, adjoint: &[f64], spare: &mut Outputs, out: &mut Inputs) {
        let (poses, velocities) = adjoint.split_at(6 * self.body_count());
        spare.x.fill(0.0);
        spare.y.fill(0.0);
        spare.y[..velocities.len()].copy_from_slice(velocities);
        self.pull_step(w, spare, out);
        out.x.iter_mut().zip(poses).for_each(|(o, a)| *o += a);
    }
}
