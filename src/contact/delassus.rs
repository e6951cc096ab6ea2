//! The impulses of stiff contacts as unknowns of their own, for a step that solves without these contacts by itself.
//!
//! As in [`super::extended`], stiff contacts would take the digits of light bodies beside them, and impulses that follow from velocities
//! would be off by rounding times `g/s`. With the factors of the matrix `A` without the stiff contacts, their impulses `p` solve a system
//! of their own,
//!
//! ```text
//! (D + Q A^-1 W) p = Q A^-1 r,    V = A^-1 (r - W p)
//! ```
//!
//! where `W = m_c [N; B]'` are their wrenches, `Q` the answers of the contacts to velocities, and `D` is 1 less what friction follows of
//! the normal impulse. Each row is divided by its stiffness. With the transposed matrix,
//!
//! ```text
//! z = A^-T r,    (D + Q A^-1 W)' q = W' z,    V = A^-T (r - Q' q).
//! ```
//!
//! What is not stiff stays with the bodies: a dense system of all contacts that are open would cost the cube of their number.

use super::assembly::along;
use super::cone::Linear;
use super::derivative::add_sides;
use super::{Element, Layout, Memory, Slot};
use crate::block::small::{lu_factor, lu_solve, lu_solve_transposed};
use crate::mechanism::dot;

/// Stiffness of a contact from which its impulses are unknowns: below 1 it adds less to the blocks of its bodies than the mass that its
/// impulses are scaled by, and takes no digits.
const STIFF: f64 = 1.0;

/// The system of the impulses, three for each stiff element.
#[derive(Clone, Debug, Default)]
pub(super) struct Delassus {
    /// The stiff elements.
    stiff: Vec<usize>,
    lu: Vec<f64>,
    order: Vec<usize>,
    spare: Vec<f64>,
    unknowns: Vec<f64>,
    /// What flows into the stiff elements beside velocities, as their rows have it; zero but in a push.
    inflow: Vec<f64>,
    /// Impulses of all elements that go with the last solution; of a transposed one multipliers of what flows into stiff elements.
    pub(super) impulses: Vec<f64>,
    /// A right-hand side of the step, and its solution.
    rows: Vec<f64>,
    change: Vec<f64>,
}

impl Element {
    /// The impulses that answer to velocities, without what friction follows of the normal impulse.
    fn answers(&self, slot: &Slot, v: &[f64]) -> [f64; 3] {
        let by = |row| along(v, slot.parent, slot.child, row);
        let eta = [0, 1].map(|i| by(&self.slide_by_velocity[i]));
        let l = &self.linear;
        let slide = |i: usize| l.slide[i][0] * eta[0] + l.slide[i][1] * eta[1];
        [l.normal * by(&self.by_velocity), slide(0), slide(1)]
    }

    /// The same by rows that are divided by their stiffness.
    fn scaled_answers(&self, slot: &Slot, v: &[f64]) -> [f64; 3] {
        let (own, scales) = (self.answers(slot, v), self.linear.row_scales());
        std::array::from_fn(|i| scales[i] * own[i])
    }

    /// Multipliers of gap and sliding velocity, from those of the rows.
    fn multipliers(&self, q: [f64; 3]) -> [f64; 3] {
        let (l, scales) = (&self.linear, self.linear.row_scales());
        let slide = |i: usize| scales[1] * l.slide[0][i] * q[1] + scales[2] * l.slide[1][i] * q[2];
        [scales[0] * l.normal * q[0], slide(0), slide(1)]
    }

    /// The transpose of [`Element::scaled_answers`]: takes it, of these multipliers, from rows.
    fn take_answers(&self, slot: &Slot, multipliers: [f64; 3], rows: &mut [f64]) {
        let mut take = |row, by: f64| add_sides(rows, slot.parent, slot.child, row, -by);
        take(&self.by_velocity, multipliers[0]);
        take(&self.slide_by_velocity[0], multipliers[1]);
        take(&self.slide_by_velocity[1], multipliers[2]);
    }

    /// What flows in beside velocities in a push, by the rows of the impulses.
    fn scaled_inflow(&self) -> [f64; 3] {
        let (l, scales) = (&self.linear, self.linear.row_scales());
        let [gap, t, s, path, bound] = self.response.inflow;
        let given = self.response.impulse(&[0.0, 0.0, 0.0, path, bound]);
        let slide = |i: usize| l.slide[i][0] * t + l.slide[i][1] * s;
        [
            scales[0] * (given[0] - l.normal * gap),
            scales[1] * (given[1] - l.drag[0] * given[0] - slide(0)),
            scales[2] * (given[2] - l.drag[1] * given[0] - slide(1)),
        ]
    }
}

impl Memory {
    /// Impulses of a stiff element, or its multipliers, that go with the last solution.
    pub(super) fn of_stiff(&self, element: usize) -> Option<[f64; 3]> {
        let d = self.delassus.as_ref()?;
        let own = d.impulses.get(3 * element..3 * element + 3)?;
        self.elements[element]
            .is_unknown
            .then(|| [own[0], own[1], own[2]])
    }
}

impl Layout {
    /// Selects the elements whose impulses become unknowns. [`Layout::add_to`] then leaves them out, until contacts are linearized again.
    pub(crate) fn separate_stiff(&self, memory: &mut Memory) {
        let mut d = memory.delassus.take().unwrap_or_default();
        d.stiff.clear();
        let idle = memory.idle;
        for (i, e) in memory.elements.iter_mut().enumerate() {
            if idle {
                // nothing was linearized
                e.linear = Linear::default();
            }
            e.is_unknown = e.linear.stiffnesses().iter().any(|k| *k > STIFF);
            if e.is_unknown {
                d.stiff.push(i);
            }
        }
        memory.delassus = Some(d);
    }

    /// Factors the system of the impulses; `solve` applies `A^-1` to the rows of a step. Is it regular?
    pub(crate) fn factor_impulses(
        &self,
        memory: &mut Memory,
        mut solve: impl FnMut(&[f64], &mut [f64]),
    ) -> bool {
        let mut d = memory.delassus.take().unwrap_or_default();
        let (n, dim) = (3 * d.stiff.len(), memory.delta.len());
        d.lu.resize(n * n, 0.0);
        d.order.resize(n, 0);
        d.spare.resize(n, 0.0);
        d.unknowns.resize(n, 0.0);
        d.inflow.clear();
        d.inflow.resize(n, 0.0);
        d.impulses.resize(3 * memory.elements.len(), 0.0);
        d.rows.resize(dim, 0.0);
        d.change.resize(dim, 0.0);
        for (c, column) in d.lu.chunks_exact_mut(n.max(1)).enumerate() {
            let (e, slot) = (
                &memory.elements[d.stiff[c / 3]],
                &self.slots[d.stiff[c / 3]],
            );
            let mut unit = [0.0; 3];
            unit[c % 3] = 1.0;
            d.rows.fill(0.0);
            e.add_impulses(slot, unit, 1.0, &mut d.rows);
            solve(&d.rows, &mut d.change);
            for (&i, to) in d.stiff.iter().zip(column.chunks_exact_mut(3)) {
                let own = memory.elements[i].scaled_answers(&self.slots[i], &d.change);
                to.copy_from_slice(&own);
            }
            let (drag, scales) = (e.linear.drag, e.linear.row_scales());
            column[c] += scales[c % 3];
            if c % 3 == 0 {
                column[c + 1] -= scales[1] * drag[0];
                column[c + 2] -= scales[2] * drag[1];
            }
        }
        let is_regular = lu_factor(&mut d.lu, &mut d.order);
        memory.delassus = Some(d);
        is_regular
    }

    /// Takes what flows into stiff elements beside velocities into the solves to come, or nothing.
    pub(super) fn set_inflow(&self, memory: &mut Memory, flows: bool) {
        let Some(d) = &mut memory.delassus else {
            return;
        };
        for (&i, to) in d.stiff.iter().zip(d.inflow.as_chunks_mut::<3>().0) {
            *to = match flows {
                true => memory.elements[i].scaled_inflow(),
                false => [0.0; 3],
            };
        }
    }

    /// Solves with the factors of [`Layout::factor_impulses`], and with `solve`, which applies `A^-1`; [`Memory::collect`] reads the
    /// impulses.
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
        let elements = &memory.elements;
        let each = d.inflow.as_chunks::<3>().0.iter();
        let each = each.zip(d.unknowns.as_chunks_mut::<3>().0);
        for (&i, (inflow, to)) in d.stiff.iter().zip(each) {
            let by = elements[i].scaled_answers(&self.slots[i], out);
            *to = std::array::from_fn(|row| by[row] + inflow[row]);
        }
        lu_solve(&d.lu, &d.order, &mut d.spare, &mut d.unknowns);
        d.rows.copy_from_slice(rhs);
        for (&i, p) in d.stiff.iter().zip(d.unknowns.as_chunks::<3>().0) {
            elements[i].add_impulses(&self.slots[i], *p, -1.0, &mut d.rows);
        }
        solve(&d.rows, out);
        // impulses that are no unknowns follow from velocities
        let each = elements.iter().zip(&self.slots);
        for ((e, slot), to) in each.zip(d.impulses.as_chunks_mut::<3>().0) {
            if !e.is_unknown {
                let [g, t, s] = e.answers(slot, out);
                let drag = e.linear.drag;
                *to = [g, t + drag[0] * g, s + drag[1] * g];
            }
        }
        for (&i, p) in d.stiff.iter().zip(d.unknowns.as_chunks::<3>().0) {
            d.impulses[3 * i..3 * i + 3].copy_from_slice(p);
        }
    }

    /// Solves with the transposed matrix; `solve` applies `A^-T`.
    pub(crate) fn solve_impulses_transposed(
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
        let elements = &memory.elements;
        for (&i, to) in d.stiff.iter().zip(d.unknowns.as_chunks_mut::<3>().0) {
            let slot = &self.slots[i];
            *to =
                (elements[i].rows()).map(|row| slot.mass * dot(out, slot.parent, slot.child, row));
        }
        lu_solve_transposed(&d.lu, &d.order, &mut d.spare, &mut d.unknowns);
        d.rows.copy_from_slice(rhs);
        for (&i, q) in d.stiff.iter().zip(d.unknowns.as_chunks::<3>().0) {
            let multipliers = elements[i].multipliers(*q);
            elements[i].take_answers(&self.slots[i], multipliers, &mut d.rows);
            d.impulses[3 * i..3 * i + 3].copy_from_slice(&multipliers);
        }
        solve(&d.rows, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Memory, Slot, Source};
    use crate::mechanism::samples::Source as Random;
    use crate::mechanism::{Row, Vec6};
    use nalgebra::{DMatrix, DVector};

    /// Bodies of the step, and further unknowns of its own.
    const BODIES: usize = 3;
    const DIM: usize = 6 * BODIES + 2;

    /// Elements with drag and slide between random bodies or the world, of these stiffnesses (of the gap, of sliding).
    fn elements(stiffnesses: &[(f64, f64)], r: &mut Random) -> (Layout, Memory) {
        let each = 0..stiffnesses.len();
        let slots = each.map(|i| Slot {
            source: Source::Contact(i),
            parent: (i % 2 == 0).then_some(i % BODIES),
            child: (i + 1) % BODIES,
            own: [0; 2],
            pair: None,
            mass: 1.5 + r.unit(),
            contrast: 0.0,
        });
        let layout = Layout {
            slots: slots.collect(),
            ..Layout::default()
        };
        let mut memory = layout.memory(DIM, 0);
        let mut row = || Row {
            force: r.vec3(),
            parent_torque: r.vec3(),
            child_torque: r.vec3(),
        };
        for (e, (gap, slide)) in memory.elements.iter_mut().zip(stiffnesses) {
            (e.normal, e.tangents) = (row(), [row(), row()]);
            let by = |row: &Row| [row.parent(), row.child()];
            // rows of velocities at the end are not those of wrenches at the knot
            e.by_velocity = by(&(e.normal + row() * 0.1));
            let turned = e.tangents.map(|t| t + row() * 0.1);
            e.slide_by_velocity = [by(&turned[0]), by(&turned[1])];
            e.linear.normal = *gap;
            e.linear.drag = [0.4, -0.3];
            e.linear.slide = [[*slide, 0.2 * slide], [0.1 * slide, 0.8 * slide]];
        }
        (layout, memory)
    }

    /// Wrenches of an element's impulses, by columns.
    fn wrenches(layout: &Layout, memory: &Memory, i: usize) -> DMatrix<f64> {
        let mut out = DMatrix::zeros(DIM, 3);
        for c in 0..3 {
            let (mut unit, mut rows) = ([0.0; 3], vec![0.0; DIM]);
            unit[c] = 1.0;
            memory.elements[i].add_impulses(&layout.slots[i], unit, 1.0, &mut rows);
            out.set_column(c, &DVector::from_vec(rows));
        }
        out
    }

    /// Its answers to velocities with what friction follows of the normal impulse, by the law itself.
    fn answers(layout: &Layout, memory: &Memory, i: usize) -> DMatrix<f64> {
        let (e, slot) = (&memory.elements[i], &layout.slots[i]);
        let of = |row: &[Vec6; 2]| {
            let mut out = DMatrix::zeros(1, DIM);
            let mut add = |body: usize, six: &Vec6| {
                (0..6).for_each(|k| out[6 * body + k] += six[k]);
            };
            add(slot.child, &row[1]);
            if let Some(p) = slot.parent {
                add(p, &row[0]);
            }
            out
        };
        let l = &e.linear;
        let g = of(&e.by_velocity) * l.normal;
        let eta = [0, 1].map(|k| of(&e.slide_by_velocity[k]));
        let friction =
            |k: usize| &g * l.drag[k] + &eta[0] * l.slide[k][0] + &eta[1] * l.slide[k][1];
        DMatrix::from_fn(3, DIM, |r, c| match r {
            0 => g[c],
            _ => friction(r - 1)[c],
        })
    }

    /// Impulses of stiff contacts as unknowns give what the dense matrix of velocities and all impulses gives, transposed, too.
    #[test]
    fn stiff_impulses_are_those_of_the_dense_matrix() {
        // stiff, soft, open, sliding beside an open gap, no friction
        let all = [(1e8, 1e7), (0.5, 0.2), (1e-9, 0.0), (0.0, 1e5), (3.0, 0.0)];
        for seed in 0..20 {
            let r = &mut Random::new(seed);
            let (layout, mut memory) = elements(&all, r);
            let mut a = DMatrix::from_vec(DIM, DIM, r.vector(DIM * DIM, 0.3));
            (0..DIM).for_each(|i| a[(i, i)] += 4.0);
            layout.separate_stiff(&mut memory);
            let unknown: Vec<_> = memory.elements.iter().map(|e| e.is_unknown).collect();
            assert_eq!(unknown, [true, false, false, true, true]);
            // the larger matrix, of impulses that all are unknowns
            let n = 3 * all.len();
            let mut larger = DMatrix::identity(DIM + n, DIM + n);
            larger.view_mut((0, 0), (DIM, DIM)).copy_from(&a);
            let mut soft = a.clone();
            for (i, is_unknown) in unknown.iter().enumerate() {
                let on = wrenches(&layout, &memory, i);
                let by = answers(&layout, &memory, i);
                larger.view_mut((0, DIM + 3 * i), (DIM, 3)).copy_from(&on);
                larger.view_mut((DIM + 3 * i, 0), (3, DIM)).copy_from(&-&by);
                if !is_unknown {
                    soft += on * by;
                }
            }
            // rows as large as the others, which does not change what is solved for
            for row in DIM..DIM + n {
                let size = larger.row(row).amax();
                larger.row_mut(row).scale_mut(1.0 / size);
            }
            let rhs = DVector::from_vec(r.vector(DIM, 1.0));
            let mut whole = DVector::zeros(DIM + n);
            whole.rows_mut(0, DIM).copy_from(&rhs);
            let expected = larger.clone().full_piv_lu().solve(&whole).expect("regular");
            let transposed = (larger.transpose().full_piv_lu())
                .solve(&whole)
                .expect("regular");
            let by = |m: DMatrix<f64>| {
                let lu = m.full_piv_lu();
                move |rows: &[f64], out: &mut [f64]| {
                    let x = lu.solve(&DVector::from_row_slice(rows)).expect("regular");
                    out.copy_from_slice(x.as_slice());
                }
            };
            let (solve, back) = (by(soft.clone()), by(soft.transpose()));
            assert!(layout.factor_impulses(&mut memory, &solve));
            let mut x = vec![0.0; DIM];
            layout.solve_impulses(&mut memory, rhs.as_slice(), &mut x, &solve);
            let impulses = &memory.delassus.as_ref().expect("factored").impulses;
            for (i, own) in x.iter().chain(impulses).enumerate() {
                let off = (own - expected[i]).abs() / expected.amax();
                assert!(off < 1e-11, "seed {seed}, {i}: {own} {}", expected[i]);
            }
            layout.solve_impulses_transposed(&mut memory, rhs.as_slice(), &mut x, &back);
            for (i, own) in x.iter().enumerate() {
                let off = (own - transposed[i]).abs() / transposed.rows(0, DIM).amax();
                assert!(off < 1e-11, "seed {seed}, transposed {i}: {off:.1e}");
            }
        }
    }
}
