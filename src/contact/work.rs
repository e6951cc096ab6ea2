//! Work of contacts, limits and joint friction.

use super::{Layout, Local, Memory, UNKNOWNS, View};
use crate::mechanism::dot;

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
    /// Work of the contacts at the knot that was read last, before and after the instant of the read-out: an impulse `J`
    /// works `J . (v + v')/2` on velocities that it changes from `v` to `v'`. `y` holds the unknowns of the step from the
    /// knot, empty at the end.
    ///
    /// How simultaneous impulses share what they do to each other is not determined. Where a blow would turn the slip that
    /// friction then stops, that mean has friction drive what it only holds back; as friction never gives energy, what it
    /// would give is counted as spent by the blows of the same instant, up to all that they spend.
    pub(crate) fn work(&self, w: &View, memory: &Memory, y: &[f64]) -> [ContactWork; 2] {
        let mut out = [ContactWork::default(); 2];
        // of the contacts whose friction would give energy
        let mut given = [0.0; 2];
        let dim = self.rows;
        for (i, (e, slot)) in memory.elements.iter().zip(&self.slots).enumerate() {
            let rate = |row, v: &[f64]| dot(v, slot.parent, slot.child, row);
            let mean = |row, a: &[f64], b: &[f64]| 0.5 * slot.mass * (rate(row, a) + rate(row, b));
            let read = if memory.idle {
                Local::default()
            } else {
                e.local
            };
            let mut add = |half: usize, g: f64, b: [f64; 2], from: &[f64], to: &[f64]| {
                let friction: f64 = (0..2).map(|k| b[k] * mean(&e.tangents[k], from, to)).sum();
                given[half] += friction.max(0.0);
                out[half] += ContactWork {
                    friction,
                    impacts: if e.law.gap {
                        g * mean(&e.normal, from, to)
                    } else {
                        0.0
                    },
                };
            };
            add(0, read.g, read.b, w.before, w.trial);
            if let Some(own) = y.get(dim + UNKNOWNS * i..dim + UNKNOWNS * (i + 1)) {
                let b = [own[3] - read.b[0], own[4] - read.b[1]];
                add(1, own[1] - read.g, b, w.trial, y);
            }
        }
        for (work, given) in out.iter_mut().zip(given) {
            let spent = given.min(-work.impacts).max(0.0);
            work.friction -= spent;
            work.impacts += spent;
        }
        out
    }
}
