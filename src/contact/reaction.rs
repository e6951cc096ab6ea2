//! Reactions of contacts, limits and joint friction among the unknowns of the step.

use super::{Layout, Source, UNKNOWNS};
use crate::mechanism::{Mechanism, ReactionSource};

impl Layout {
    /// Index among the unknowns, that among [`Mechanism::reactions`], and what turns the scaled impulse into N s or N m s.
    pub(crate) fn reactions(&self, m: &Mechanism, mut each: impl FnMut(usize, usize, f64)) {
        let before = |j: usize| -> usize { m.joints[..j].iter().map(|j| j.directions.len()).sum() };
        for (element, slot) in self.slots.iter().enumerate() {
            let first = self.rows + UNKNOWNS * element;
            match slot.source {
                Source::Contact(c) => {
                    let own = m.reactions(ReactionSource::Contact(c));
                    // of s, g, psi, b
                    for (place, i) in own.zip([1, 3, 4]) {
                        each(first + i, place, slot.mass);
                    }
                }
                Source::Limit(j, i, upper) => {
                    let own = m.reactions(ReactionSource::Limit(before(j) + i));
                    let sign = if upper { -1.0 } else { 1.0 };
                    each(first + 1, own.start, sign * slot.mass);
                }
                Source::Friction(j, i) => {
                    let own = m.reactions(ReactionSource::Friction(before(j) + i));
                    each(first + 3, own.start, slot.mass);
                }
            }
        }
    }
}
