//! Work of contacts, limits and joint friction, and how deep anything sinks.

use super::super::assembly::dot;
use super::super::{Maximal, Work};
use super::{Local, UNKNOWNS};
use crate::dynamics::StepError;
use crate::mechanism::Mechanism;

/// Work done at a knot, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ContactWork {
    /// By friction.
    pub friction: f64,
    /// Along normals: by impacts.
    pub impacts: f64,
}

impl std::ops::AddAssign for ContactWork {
    fn add_assign(&mut self, other: Self) {
        self.friction += other.friction;
        self.impacts += other.impacts;
    }
}

impl Maximal {
    /// Work of the contacts at the knot that was read last, before and after the instant of the read-out: an impulse `J`
    /// works `J . (v + v')/2` on velocities that it changes from `v` to `v'`. `y` holds the unknowns of the step from the
    /// knot, empty at the end.
    pub(crate) fn contact_work(&self, w: &Work, y: &[f64]) -> [ContactWork; 2] {
        let mut out = [ContactWork::default(); 2];
        let dim = self.symbolic.dim();
        for (i, (e, slot)) in w
            .contacts
            .elements
            .iter()
            .zip(&self.contacts.slots)
            .enumerate()
        {
            let rate = |row, v: &[f64]| dot(v, slot.parent, slot.child, row);
            let mean = |row, a: &[f64], b: &[f64]| 0.5 * slot.mass * (rate(row, a) + rate(row, b));
            let read = if w.contacts.idle {
                Local::default()
            } else {
                e.local
            };
            let mut add = |half: usize, g: f64, b: [f64; 2], from: &[f64], to: &[f64]| {
                out[half] += ContactWork {
                    friction: (0..2).map(|k| b[k] * mean(&e.tangents[k], from, to)).sum(),
                    impacts: if e.law.gap {
                        g * mean(&e.normal, from, to)
                    } else {
                        0.0
                    },
                };
            };
            add(0, read.g, read.b, &w.before, &w.trial);
            if let Some(own) = y.get(dim + UNKNOWNS * i..dim + UNKNOWNS * (i + 1)) {
                let b = [own[3] - read.b[0], own[4] - read.b[1]];
                add(1, own[1] - read.g, b, &w.trial, y);
            }
        }
        out
    }

    /// Deepest overlap of any two surfaces at a state, m; zero where all gaps are open. Surfaces are where the mechanism
    /// as built has them; see [`Maximal::penetration_with`].
    pub fn penetration(&self, x: &[f64]) -> f64 {
        self.deepest(&self.mechanism, x)
    }

    /// The same for the parameters `p`, which may move surfaces and change their sizes.
    ///
    /// # Errors
    /// When the parameters have no meaning.
    pub fn penetration_with(&self, p: &[f64], x: &[f64], w: &mut Work) -> Result<f64, StepError> {
        self.apply(p, w)?;
        Ok(self.deepest(&w.model, x))
    }

    /// The contact that overlaps most at a state, and by how much, m.
    pub fn overlap(&self, x: &[f64]) -> Option<(&str, f64)> {
        let poses = self.poses(x);
        let each = self.mechanism.contacts.iter();
        let each = each.map(|c| (c.name.as_str(), -self.mechanism.touch(c, &poses).gap));
        each.filter(|(_, depth)| *depth > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn deepest(&self, m: &Mechanism, x: &[f64]) -> f64 {
        let poses = self.poses(x);
        let each = m.contacts.iter().map(|c| m.touch(c, &poses).gap);
        each.fold(0.0, |deepest, gap| f64::max(deepest, -gap))
    }
}
