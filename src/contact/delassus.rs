//! The impulses of contacts as unknowns of their own, for a step that solves without contacts by itself.
//!
//! As in [`super::extended`], stiff contacts would take the digits of light bodies beside them, and impulses that follow from velocities
//! would be off by rounding times `g/s`. With the factors of the matrix `A` without contacts, the impulses `p` solve a system of their own,
//!
//! ```text
//! p + Q A^-1 W p = Q A^-1 r,    V = A^-1 (r - W p)
//! ```
//!
//! where `W = m_c [N; B]'` are their wrenches and `Q` the answers of the contacts to velocities. Each row is divided by its stiffness.

use super::assembly::along;
use super::cone::Linear;
use super::{Element, Layout, Memory, Slot};
use crate::block::small::{decompose, solve_small};

/// The system of the impulses, three for each element.
#[derive(Clone, Debug, Default)]
pub(super) struct Delassus {
    lu: Vec<f64>,
    order: Vec<usize>,
    spare: Vec<f64>,
    pub(super) impulses: Vec<f64>,
    /// A right-hand side of the step, and its solution.
    rows: Vec<f64>,
    change: Vec<f64>,
}

impl Element {
    /// What the rows of its impulses are multiplied with: stiff ones are divided by their stiffness.
    fn softening(l: &Linear) -> [f64; 3] {
        let soft = |stiffness: f64| 1.0 / stiffness.abs().max(1.0);
        let slide = |i: usize| l.slide[i][0].abs().max(l.slide[i][1].abs());
        [soft(l.normal), soft(slide(0)), soft(slide(1))]
    }

    /// The impulses `Q v` that answer to velocities, by rows of their system.
    fn answers(&self, l: &Linear, slot: &Slot, v: &[f64]) -> [f64; 3] {
        let by = |row| along(v, slot.parent, slot.child, row);
        let eta = [0, 1].map(|i| by(&self.slide_by_velocity[i]));
        let slide = |i: usize| l.slide[i][0] * eta[0] + l.slide[i][1] * eta[1];
        let scale = Self::softening(l);
        [
            scale[0] * l.normal * by(&self.by_velocity),
            scale[1] * slide(0),
            scale[2] * slide(1),
        ]
    }
}

impl Layout {
    /// Factors the system of the impulses; `solve` applies `A^-1` to the rows of a step. Is it regular?
    pub(crate) fn factor_impulses(
        &self,
        memory: &mut Memory,
        mut solve: impl FnMut(&[f64], &mut [f64]),
    ) -> bool {
        let mut d = memory.delassus.take().unwrap_or_default();
        let (n, dim) = (3 * memory.elements.len(), memory.delta.len());
        d.lu.resize(n * n, 0.0);
        d.order.resize(n, 0);
        d.spare.resize(n, 0.0);
        d.impulses.resize(n, 0.0);
        d.rows.resize(dim, 0.0);
        d.change.resize(dim, 0.0);
        let none = Linear::default();
        let law = |e: &Element| if memory.idle { none } else { e.linear };
        for (c, column) in d.lu.chunks_exact_mut(n.max(1)).enumerate() {
            let (e, slot) = (&memory.elements[c / 3], &self.slots[c / 3]);
            let mut unit = [0.0; 3];
            unit[c % 3] = 1.0;
            d.rows.fill(0.0);
            e.add_impulses(slot, unit, 1.0, &mut d.rows);
            solve(&d.rows, &mut d.change);
            let each = memory.elements.iter().zip(&self.slots);
            for ((other, slot), to) in each.zip(column.chunks_exact_mut(3)) {
                to.copy_from_slice(&other.answers(&law(other), slot, &d.change));
            }
            let l = law(e);
            let scale = Element::softening(&l);
            column[c] += scale[c % 3];
            if c % 3 == 0 {
                column[c + 1] -= scale[1] * l.drag[0];
                column[c + 2] -= scale[2] * l.drag[1];
            }
        }
        let is_regular = decompose(&mut d.lu, &mut d.order);
        memory.delassus = Some(d);
        is_regular
    }

    /// Solves with them, and with `solve`; the impulses are kept for [`Memory::collect`].
    pub(crate) fn solve_impulses(
        &self,
        memory: &mut Memory,
        rhs: &[f64],
        out: &mut [f64],
        mut solve: impl FnMut(&[f64], &mut [f64]),
    ) {
        solve(rhs, out);
        let Some(d) = &mut memory.delassus else {
            return;
        };
        let none = Linear::default();
        let each = memory.elements.iter().zip(&self.slots);
        for ((e, slot), to) in each.zip(d.impulses.chunks_exact_mut(3)) {
            let l = if memory.idle { &none } else { &e.linear };
            to.copy_from_slice(&e.answers(l, slot, out));
        }
        solve_small(&d.lu, &d.order, &mut d.spare, &mut d.impulses);
        d.rows.copy_from_slice(rhs);
        let each = memory.elements.iter().zip(&self.slots);
        for ((e, slot), p) in each.zip(d.impulses.chunks_exact(3)) {
            e.add_impulses(slot, [p[0], p[1], p[2]], -1.0, &mut d.rows);
        }
        solve(&d.rows, out);
    }
}
