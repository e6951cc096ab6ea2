//! Work of contacts, limits and joint friction.

use super::blow::bounced;
use super::{BLOW, Element, IMPULSES, Layout, Memory, UNKNOWNS, View};
use crate::mechanism::{Row, add_wrench, dot};

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

impl Layout {
    /// Adds the wrenches of the contacts' impulses at the knot that was read last to the bodies' rows: of those before the
    /// instant of the read-out, and of those after it. `y` holds the unknowns of the step from the knot, empty at the end.
    pub(crate) fn exert(&self, memory: &Memory, y: &[f64], mut rows: [&mut [f64]; 2]) {
        for (i, (e, slot)) in memory.elements.iter().zip(&self.slots).enumerate() {
            let parts = self.parts(memory, (i, e), y);
            for (rows, part) in rows.iter_mut().zip(parts) {
                for (row, size) in e.rows().into_iter().zip(part) {
                    add_wrench(rows, slot.parent, slot.child, row, slot.mass * size);
                }
            }
        }
    }

    /// Adds the wrenches of the impulses at hand.
    pub(crate) fn add_impulses(&self, memory: &Memory, rows: &mut [f64]) {
        if memory.idle {
            return;
        }
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            for (row, size) in e.rows().into_iter().zip(e.local.impulses()) {
                add_wrench(rows, slot.parent, slot.child, row, slot.mass * size);
            }
        }
    }

    fn has_struck(&self, y: &[f64]) -> bool {
        let mut blows = y.get(self.blows()).unwrap_or(&[]).chunks_exact(BLOW);
        blows.any(|b| bounced(b[0]))
    }

    /// The impulses of an element, normal and tangents, before the instant of the read-out and after it, blows included.
    fn parts(&self, memory: &Memory, (i, e): (usize, &Element), y: &[f64]) -> [[f64; 3]; 2] {
        let read = if memory.idle {
            [0.0; 3]
        } else {
            e.local.impulses()
        };
        if y.is_empty() {
            return [read, [0.0; 3]];
        }
        let own = &y[self.rows + UNKNOWNS * i..];
        let mut all = IMPULSES.map(|place| own[place]);
        if let Some(blow) = y[self.blows()].chunks_exact(BLOW).nth(i) {
            all.iter_mut().zip(&blow[1..]).for_each(|(a, b)| *a += b);
        }
        [read, std::array::from_fn(|k| all[k] - read[k])]
    }

    /// Work of the contacts at the knot that was read last, before and after the instant of the read-out. `changes` are
    /// those of the velocities at the knot by the impulses of [`Layout::exert`], within the joints: impulses `J` that change
    /// them from `v` to `v'` work `J . (v + v')/2` in all, the difference of the two energies. Friction has of it what it
    /// works on the intervals' slip, on that at the knot where there is a blow; impacts have the rest.
    ///
    /// `y` are the unknowns of the step from the knot and `behind` the velocities it leads to, both those of the knot at the end.
    ///
    /// How simultaneous impulses share what they do to each other is not determined. Where a blow would turn the slip that
    /// friction then stops, the mean has friction drive what it only holds back; as friction never gives energy, what it
    /// would give is counted as spent by the blows of the same instant, up to all that they spend.
    pub(crate) fn work(
        &self,
        w: &View,
        memory: &Memory,
        (y, behind): (&[f64], &[f64]),
        changes: [&[f64]; 2],
    ) -> [ContactWork; 2] {
        let mut out = [ContactWork::default(); 2];
        let (mut total, mut given) = ([0.0; 2], [0.0; 2]);
        let struck = self.has_struck(y);
        // those before lead to the velocities that were read, those after start from them
        let shares = [-0.5, 0.5];
        let others = [w.before, behind];
        for (i, (e, slot)) in memory.elements.iter().zip(&self.slots).enumerate() {
            let rate = |row: &Row, v: &[f64]| dot(v, slot.parent, slot.child, row);
            let parts = self.parts(memory, (i, e), y);
            for half in 0..2 {
                let mut friction = 0.0;
                for (k, row) in e.rows().into_iter().enumerate() {
                    let impulse = slot.mass * parts[half][k];
                    let here = rate(row, w.trial);
                    let work = impulse * (here + shares[half] * rate(row, changes[half]));
                    total[half] += work;
                    if k > 0 {
                        friction += if struck && half == 1 {
                            work
                        } else {
                            impulse * 0.5 * (here + rate(row, others[half]))
                        };
                    }
                }
                given[half] += friction.max(0.0);
                out[half].friction += friction;
            }
        }
        for ((work, total), given) in out.iter_mut().zip(total).zip(given) {
            work.impacts = total - work.friction;
            let spent = given.min(-work.impacts).max(0.0);
            work.friction -= spent;
            work.impacts += spent;
        }
        out
    }
}
