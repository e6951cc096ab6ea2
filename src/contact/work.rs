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
    pub(crate) fn work(&self, w: &View, memory: &Memory, y: &[f64]) -> [ContactWork; 2] {
        let mut out = [ContactWork::default(); 2];
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
                out[half] += ContactWork {
                    friction: (0..2).map(|k| b[k] * mean(&e.tangents[k], from, to)).sum(),
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
        out
    }
}
