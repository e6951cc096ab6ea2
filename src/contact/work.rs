//! Work of contacts, limits and joint friction.

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
    /// Is there a blow among the unknowns of a step?
    pub(crate) fn has_blow(&self, y: &[f64]) -> bool {
        !y.is_empty() && y[self.blows()].chunks_exact(BLOW).any(|b| b[0] != 0.0)
    }

    /// Adds the wrenches of what a blow at the knot that was read last does to the bodies' rows.
    pub(crate) fn exert_blow(&self, memory: &Memory, y: &[f64], rows: &mut [f64]) {
        let each = memory.elements.iter().zip(&self.slots);
        for ((e, slot), blow) in each.zip(y[self.blows()].chunks_exact(BLOW)) {
            let read = memory.read_of(e);
            for (i, row) in e.rows().into_iter().enumerate() {
                let size = slot.mass * (blow[1 + i] - read[i]);
                add_wrench(rows, slot.parent, slot.child, row, size);
            }
        }
    }

    /// Work of the contacts at the knot that was read last, before and after the instant of the read-out: an impulse `J`
    /// works `J . (v + v')/2` on velocities that it changes from `v` to `v'`. `y` holds the unknowns of the step from the
    /// knot, empty at the end; `change` is what a blow there changes of the velocities at the knot, which have two values
    /// then: its work is the difference of the two energies.
    ///
    /// How simultaneous impulses share what they do to each other is not determined. Where a blow would turn the slip that
    /// friction then stops, that mean has friction drive what it only holds back; as friction never gives energy, what it
    /// would give is counted as spent by the blows of the same instant, up to all that they spend.
    pub(crate) fn work(
        &self,
        w: &View,
        memory: &Memory,
        y: &[f64],
        change: Option<&[f64]>,
    ) -> [ContactWork; 2] {
        // before the read-out, of a blow, and after
        let mut parts = [ContactWork::default(); 3];
        // of the contacts whose friction would give energy
        let mut given = [0.0; 3];
        let own = |i: usize| y.get(self.rows + UNKNOWNS * i..self.rows + UNKNOWNS * (i + 1));
        for (i, (e, slot)) in memory.elements.iter().zip(&self.slots).enumerate() {
            let rate = |row: &Row, v: &[f64]| dot(v, slot.parent, slot.child, row);
            let rows = e.rows();
            let read = memory.read_of(e);
            let mut add = |part: usize, impulse: [f64; 3], mean: &dyn Fn(&Row) -> f64| {
                let [normal, first, second] =
                    [0, 1, 2].map(|k| slot.mass * impulse[k] * mean(rows[k]));
                let friction = first + second;
                given[part] += friction.max(0.0);
                parts[part] += ContactWork {
                    friction,
                    impacts: normal,
                };
            };
            add(0, read, &|row| {
                0.5 * (rate(row, w.before) + rate(row, w.trial))
            });
            let Some(own) = own(i) else { continue };
            let after = IMPULSES.map(|place| own[place]);
            let Some(change) = change else {
                let rest = std::array::from_fn(|k| after[k] - read[k]);
                add(2, rest, &|row| 0.5 * (rate(row, w.trial) + rate(row, y)));
                continue;
            };
            let blow = self.blows().start + BLOW * i + 1;
            let of_blow = std::array::from_fn(|k| y[blow + k] - read[k]);
            add(1, of_blow, &|row| {
                rate(row, w.trial) + 0.5 * rate(row, change)
            });
            let behind = |row: &Row| rate(row, w.trial) + rate(row, change);
            add(2, after, &|row| 0.5 * (behind(row) + rate(row, y)));
        }
        for (work, given) in parts.iter_mut().zip(given) {
            let spent = given.min(-work.impacts).max(0.0);
            work.friction -= spent;
            work.impacts += spent;
        }
        let [before, mut after, step] = parts;
        after += step;
        [before, after]
    }
}

impl Memory {
    /// The impulses of an element in the read-out.
    fn read_of(&self, e: &Element) -> [f64; 3] {
        if self.idle {
            [0.0; 3]
        } else {
            e.local.impulses()
        }
    }
}
