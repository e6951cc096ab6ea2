//! Reactions of contacts, limits and joint friction among the unknowns of the step.

use super::{Layout, Source, UNKNOWNS};
use crate::mechanism::Mechanism;

/// What exerts a reaction.
pub(crate) enum Reacts {
    /// A contact, along its normal (0) or a tangent (1, 2).
    Contact(usize, usize),
    /// A limit of the `i`th coordinate.
    Limit(usize),
    /// Friction of the `i`th coordinate.
    Friction(usize),
}

impl Layout {
    /// Index among the unknowns, what exerts it, and what turns the scaled impulse into N s or N m s.
    pub(crate) fn reactions(&self, m: &Mechanism, mut each: impl FnMut(usize, Reacts, f64)) {
        let before = |j: usize| -> usize { m.joints[..j].iter().map(|j| j.directions.len()).sum() };
        for (element, slot) in self.slots.iter().enumerate() {
            let first = self.rows + UNKNOWNS * element;
            match slot.source {
                Source::Contact(c) => {
                    // of s, g, psi, b
                    for (component, i) in [1, 3, 4].into_iter().enumerate() {
                        each(first + i, Reacts::Contact(c, component), slot.mass);
                    }
                }
                Source::Limit(j, i, upper) => {
                    let sign = if upper { -1.0 } else { 1.0 };
                    each(first + 1, Reacts::Limit(before(j) + i), sign * slot.mass);
                }
                Source::Friction(j, i) => {
                    each(first + 3, Reacts::Friction(before(j) + i), slot.mass);
                }
            }
        }
    }
}
