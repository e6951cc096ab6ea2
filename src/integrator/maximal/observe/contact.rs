//! What happens at a contact: gap, forces, sliding.

use super::super::{Maximal, Work};
use super::{Pulled, add};
use crate::dynamics::{Seen, StepError, StepFailure};
use crate::mechanism::Touch;
use crate::spatial::Vec3;

/// A contact at a knot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contacting {
    /// Gap, normal and point.
    pub touch: Touch,
    /// Normal force and size of friction, N, and both together on the child in the world; none at the last knot.
    pub force: Option<(f64, f64, Vec3)>,
    /// m/s
    pub slip: f64,
}

impl Maximal {
    /// All contacts at a knot, in the order of the mechanism's; as [`super::Output`] tells of each.
    pub(crate) fn contacting(
        &self,
        seen: &Seen,
        w: &mut Work,
    ) -> Result<Vec<Contacting>, StepError> {
        self.apply(seen.p, w)?;
        self.readout(&seen.at, seen.x, seen.u, w)?;
        let acts = !seen.y.is_empty() && seen.at.after().is_some();
        let one = |c: usize| {
            let force = acts.then(|| {
                let [n, a, b] = self.contact_forces(seen, c);
                let along = |tangent| self.contact_tangent(w, c, tangent).1.force;
                let normal = self.contact_normal(w, c).1.force;
                let total = normal * n + along(0) * a + along(1) * b;
                (n, a.hypot(b), total)
            });
            Contacting {
                touch: self.contact_touch(w, c),
                force,
                slip: self.slip(w, c),
            }
        };
        Ok((0..self.mechanism.contacts.len()).map(one).collect())
    }

    /// Half of the intervals that meet at the knot.
    fn share(seen: &Seen) -> f64 {
        0.5 * (seen.at.h_prev + seen.at.h)
    }

    /// Forces of a contact have no value at the last knot.
    pub(super) fn contact_interval(&self, seen: &Seen, contact: usize) -> Result<(), StepError> {
        if !seen.y.is_empty() && seen.at.after().is_some() {
            return Ok(());
        }
        Err(StepError {
            failure: StepFailure::Interval,
            element: self.contact_name(contact),
            time: seen.at.t,
            residual: f64::NAN,
            message: "a contact's force has no value at the last knot, where no interval follows; look at a knot before".into(),
        })
    }

    /// Normal force and the two components of friction, N.
    fn contact_forces(&self, seen: &Seen, contact: usize) -> [f64; 3] {
        let scale = self.contact_mass(contact) / Self::share(seen);
        let y = self.contact_unknowns(seen.y, contact);
        [y[1] * scale, y[3] * scale, y[4] * scale]
    }

    pub(super) fn contact_normal_force(&self, seen: &Seen, contact: usize) -> f64 {
        self.contact_forces(seen, contact)[0]
    }

    pub(super) fn contact_friction(&self, seen: &Seen, contact: usize) -> f64 {
        let [_, a, b] = self.contact_forces(seen, contact);
        a.hypot(b)
    }

    pub(super) fn pull_contact_force(
        &self,
        seen: &Seen,
        (contact, friction): (usize, bool),
        g: f64,
        out: &mut Pulled,
    ) {
        let (share, [normal, a, b]) = (Self::share(seen), self.contact_forces(seen, contact));
        let size = a.hypot(b);
        let value = if friction { size } else { normal };
        let by_interval = 0.5 * g * value / share;
        out.inputs.h -= by_interval;
        out.inputs.h_prev -= by_interval;
        let scale = g * self.contact_mass(contact) / share;
        let own = self.contact_range(contact);
        let y = &mut out.y[own];
        if !friction {
            y[1] += scale;
        } else if size > 0.0 {
            y[3] += scale * a / size;
            y[4] += scale * b / size;
        }
    }

    pub(super) fn pull_gap(&self, w: &Work, contact: usize, g: f64, out: &mut Pulled) {
        let (ends, row) = self.contact_normal(w, contact);
        super::super::assembly::add_wrench(&mut out.inputs.x, ends.0, ends.1, &row, g);
    }

    /// Speed with which the surfaces slide at the knot, m/s.
    pub(super) fn slip(&self, w: &Work, contact: usize) -> f64 {
        let [a, b] = self.sliding(w, contact);
        a.hypot(b)
    }

    pub(super) fn pull_slip(&self, w: &Work, contact: usize, g: f64, out: &mut Pulled) {
        let [a, b] = self.sliding(w, contact);
        let size = a.hypot(b);
        if size == 0.0 {
            return;
        }
        for (i, share) in [a, b].into_iter().enumerate() {
            let scale = g * share / size;
            let (ends, row) = self.contact_tangent(w, contact, i);
            super::super::assembly::add_wrench(out.velocity, ends.0, ends.1, &row, scale);
            let turn = self.contact_turn(w, contact, i);
            for (body, six) in [ends.0, Some(ends.1)].into_iter().zip(turn) {
                if let Some(b) = body {
                    add(
                        &mut out.inputs.x[6 * b..6 * b + 6],
                        (six * scale).as_slice(),
                    );
                }
            }
        }
    }
}
