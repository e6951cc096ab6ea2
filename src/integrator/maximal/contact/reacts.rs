//! Reactions of contacts and limits among the unknowns of the step.

use super::super::Maximal;
use super::{Source, UNKNOWNS};

/// What exerts a reaction.
pub(in super::super) enum Reacts {
    /// A contact, along its normal (0) or a tangent (1, 2).
    Contact(usize, usize),
    /// A limit of the `i`th coordinate.
    Limit(usize),
}

impl Maximal {
    /// Index among the unknowns, what exerts it, and what turns the scaled impulse into N s or N m s.
    pub(in super::super) fn contact_reactions(&self, mut each: impl FnMut(usize, Reacts, f64)) {
        let joints = &self.mechanism.joints;
        for (element, slot) in self.contacts.slots.iter().enumerate() {
            let first = self.symbolic.dim() + UNKNOWNS * element;
            match slot.source {
                Source::Touch(c) => {
                    // of s, g, psi, b
                    for (component, i) in [1, 3, 4].into_iter().enumerate() {
                        each(first + i, Reacts::Contact(c, component), slot.mass);
                    }
                }
                Source::Limit(j, i, upper) => {
                    let before: usize = joints[..j].iter().map(|j| j.directions.len()).sum();
                    let sign = if upper { -1.0 } else { 1.0 };
                    each(first + 1, Reacts::Limit(before + i), sign * slot.mass);
                }
                Source::Rub(..) => {}
            }
        }
    }
}
