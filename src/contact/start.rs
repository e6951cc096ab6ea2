//! Where the interior-point method starts: cold, or from the step before.

use super::{NewtonSystem, Solver, Source};
use crate::mechanism::vec3;
use crate::spatial::Vec3;

/// Products, m^2/s^2, that a warm start has at most, by so many squares of its residual: more is a cold one, which begins
/// at 1. They trade iterations where little changes for those where much does.
const WARMEST: f64 = 10.0;
const WARMTH: f64 = 10.0;

/// Gap by the interval, m/s, below which a contact touches: what gravity closes in a hundredth of a second.
const TOUCHING: f64 = 0.1;
/// Impulse by the contact's mass, m/s, that holds what touches: 5 kg on a foot of 5 g ask for 500 in 0.05 s.
const HOLDING: f64 = 1e3;

/// What a cold start takes its velocities from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cold {
    /// Forces alone.
    Forces,
    /// What joints allow of that, to first order.
    Joints,
    /// The state, with impulses that hold what touches: efforts of a robot that stands would throw its light links far.
    Held,
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Velocities as told; contacts on the central path at `nu`. False where that is no start of its own: joints make no difference, or
    /// nothing touches.
    pub(super) fn cold_start(&mut self, from: Cold, nu: f64) -> bool {
        let mut start = std::mem::take(&mut self.step.contacts_mut().last);
        let mut done = true;
        match from {
            Cold::Forces => {
                self.step.begin(&mut start);
            }
            Cold::Joints => {
                done = self.step.begin_jointly(&mut start);
                if !done {
                    self.step.begin(&mut start);
                }
            }
            Cold::Held => {
                let mut none = std::mem::take(&mut self.step.contacts_mut().spare);
                none.fill(0.0);
                self.step.begin_at(&none, &mut start);
                self.step.contacts_mut().spare = none;
            }
        }
        self.limit_turns(&mut start);
        self.begin_at(start);
        for e in &mut self.step.contacts_mut().elements {
            e.local = super::Local::default();
        }
        // for the gaps and sliding velocities alone
        self.step.evaluate();
        let mut touches = false;
        for (e, sides, slot) in self.step.contacts_mut().each(self.layout) {
            if matches!((from, &slot.source), (Cold::Held, Source::Contact(_))) && e.gap < TOUCHING
            {
                (e.local.g, touches) = (HOLDING, true);
            }
            e.start(sides, nu);
        }
        done && (touches || !matches!(from, Cold::Held))
    }

    /// Velocities and impulses of the step before, evaluated; are they those of a step that is known?
    pub(super) fn begin_before(&mut self, y: &[f64]) -> bool {
        let (rows, contacts) = y.split_at(self.layout.rows);
        let mut start = std::mem::take(&mut self.step.contacts_mut().last);
        // velocities of the step before are those of the state; others are of a step that is known, as that of a plan
        let known = self.step.begin_at(rows, &mut start);
        if !known {
            self.limit_turns(&mut start);
        }
        self.begin_at(start);
        self.step.contacts_mut().read(contacts, self.layout);
        self.step.evaluate();
        known
    }

    /// Velocities and impulses of the step before, as far up the central path as their residual asks for.
    pub(super) fn warm_start(&mut self, y: &[f64], kappa: f64) {
        let known = self.begin_before(y);
        self.warm(known, kappa);
    }

    /// The velocities and impulses at hand, evaluated, as far up the path; are they those of a step that is known?
    pub(super) fn warm(&mut self, known: bool, kappa: f64) {
        let [(mut r, _), _] = self.step.worst();
        let elements = &self.step.contacts().elements;
        for e in elements.iter().filter(|e| e.law.gap) {
            r = r.max(e.gap.min(e.local.g).abs());
        }
        let nu = (WARMTH * r * r).min(WARMEST).max(kappa);
        // unknowns of the step itself, but for the end of the path; what is only near has other gaps and slips
        let is_step = known && nu <= kappa;
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            if is_step {
                e.resume(sides, nu);
            } else {
                e.start(sides, nu);
            }
        }
    }

    /// Would forces alone turn a body farther than a step can?
    pub(super) fn forces_throw(&mut self) -> bool {
        let mut start = std::mem::take(&mut self.step.contacts_mut().last);
        self.step.begin(&mut start);
        let throw = self.limit_turns(&mut start);
        self.step.contacts_mut().last = start;
        throw
    }

    /// Leaves a start inside the domain, as where an interval is longer than the one before; was it outside?
    fn limit_turns(&mut self, start: &mut [f64]) -> bool {
        let mut outside = false;
        let view = self.step.view();
        let (bodies, h) = (view.poses.len(), view.at.h());
        for b in 0..bodies {
            let omega = &mut start[6 * b + 3..6 * b + 6];
            let law = &view.model.bodies[b].rotation;
            let beyond = law.beyond_start(&Vec3::from_column_slice(omega), h);
            if beyond > 1.0 {
                omega.iter_mut().for_each(|o| *o /= beyond);
                outside = true;
            }
        }
        outside
    }

    /// A body that turns too far, if any.
    pub(super) fn outside_domain(&self) -> Option<usize> {
        let view = self.step.view();
        let h = view.at.h();
        // a NaN is outside, too
        (0..view.poses.len()).find(|b| {
            let omega = vec3(view.trial, 6 * b + 3);
            !view.model.bodies[*b].rotation.contains(&omega, h)
        })
    }

    /// Takes the unknowns of a start.
    fn begin_at(&mut self, start: Vec<f64>) {
        self.step.trial().copy_from_slice(&start);
        self.step.contacts_mut().last = start;
        self.step.moved();
    }
}
