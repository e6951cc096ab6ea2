//! Reactions of contacts, limits and joint friction among the unknowns of the step.

use super::{BLOW, Layout, Source, UNKNOWNS};
use crate::mechanism::{Mechanism, ReactionSource};

impl Layout {
    /// Index among the unknowns, that among [`Mechanism::reactions`], and what turns the scaled impulse into N s or N m s.
    /// A reaction is the sum of what it gets: of the step, and of a blow before.
    pub(crate) fn reactions(&self, m: &Mechanism, mut add: impl FnMut(usize, usize, f64)) {
        let before = |j: usize| -> usize { m.joints[..j].iter().map(|j| j.directions.len()).sum() };
        for (element, slot) in self.slots.iter().enumerate() {
            let first = self.rows + UNKNOWNS * element;
            let blow = self.blows().nth(BLOW * element);
            // of s, g, psi, b the impulses, and where those of a blow are
            let mut each = |i: usize, of_blow: usize, place, scale| {
                add(first + i, place, scale);
                if let Some(blow) = blow {
                    add(blow + of_blow, place, scale);
                }
            };
            match slot.source {
                Source::Contact(c) => {
                    let own = m.reactions(ReactionSource::Contact(c));
                    for (place, (i, of_blow)) in own.zip([(1, 1), (3, 2), (4, 3)]) {
                        each(i, of_blow, place, slot.mass);
                    }
                }
                Source::Limit(j, i, upper) => {
                    let own = m.reactions(ReactionSource::Limit(before(j) + i));
                    let sign = if upper { -1.0 } else { 1.0 };
                    each(1, 1, own.start, sign * slot.mass);
                }
                Source::Friction(j, i) => {
                    let own = m.reactions(ReactionSource::Friction(before(j) + i));
                    each(3, 2, own.start, slot.mass);
                }
            }
        }
    }
}
