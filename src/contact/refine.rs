//! Derivatives through stiff contacts.
//!
//! Eliminated into the blocks of bodies, a contact of stiffness `g/s` takes the digits of what is beside it, and gives its
//! own impulse with an error of rounding times `g/s`. With `A` the step's matrix without contacts, `S` a contact's response
//! of its impulses `p` to what flows into it, and `ext` what does beside the velocities, the equations of a push and of a
//! pull are
//!
//! ```text
//! r + A dV - m_c [N; B]' p = 0,     p = S ([K N+; B+] dV + ext)
//! A' mu + [K N+; B+]' nu = r,       nu = -m_c S' [N; B] mu
//! ```
//!
//! With `p` and `nu` kept as numbers of their own the first equations have no stiff term: their residual is exact to
//! rounding, and the factors of the eliminated matrix correct it. That the second ones hold only to rounding times `g/s`
//! is a change of `dV` and `mu` in their last digits.

use super::assembly::along;
use super::derivative::add_sides;
use super::{Element, Layout, Memory, NewtonSystem, Slot, View};
use crate::dynamics::Stage;
use crate::mechanism::dot;

/// Sweeps at most: each takes off seven digits for a body on the ground where `g/s` is 1e10, two where bodies touch.
/// With an end of the path that is a hundred times smaller than the default, a sweep takes off none where bodies touch. The residual shows it.
const SWEEPS: usize = 10;
/// No sweep where the residual is this small beside the right-hand side, largest rows, all in the same unit: a few roundings.
/// At 1e-14 a sphere on a box and a limb at its stop kept 100 times larger residuals than a further sweep leaves.
const SMALL: f64 = 1e-15;

/// Which of the two is solved, and its right-hand side without stiff terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `x = -dV`.
    Push,
    /// `x = mu`.
    Pull,
}

impl Element {
    /// `nu` or `p` by a change of `x`.
    fn reply(&self, slot: &Slot, side: Side, x: &[f64]) -> [f64; 3] {
        let (p, c, by) = (slot.parent, slot.child, &self.response);
        match side {
            Side::Pull => by.felt(self.rows().map(|row| -slot.mass * dot(x, p, c, row))),
            Side::Push => by.given(self.flow(slot, x).map(|v| -v)),
        }
    }

    /// What flows in by velocities.
    pub(super) fn flow(&self, slot: &Slot, v: &[f64]) -> [f64; 3] {
        let (p, c) = (slot.parent, slot.child);
        let gap = if self.law.gap {
            along(v, p, c, &self.by_velocity)
        } else {
            0.0
        };
        if self.law.frictional {
            let [t, b] = [0, 1].map(|i| along(v, p, c, &self.slide_by_velocity[i]));
            [gap, t, b]
        } else {
            [gap, 0.0, 0.0]
        }
    }
}

impl Layout {
    /// Do derivatives go through contacts?
    pub(crate) fn answers(&self, memory: &Memory) -> bool {
        !self.is_empty() && !memory.idle
    }

    /// Takes the impulses' changes by what flows in beside velocities from the rows of a push, but for impulses that are unknowns.
    fn push_impulses(&self, memory: &Memory, r: &mut [f64]) {
        let each = memory.elements.iter().zip(&self.slots);
        for (e, slot) in each.filter(|(e, _)| !e.is_unknown) {
            let p = e.response.impulse(&e.response.inflow);
            e.add_impulses(slot, p, -1.0, r);
        }
    }

    /// What `x` leaves of the equations with right-hand side `b`.
    pub(crate) fn leave(
        &self,
        step: &impl NewtonSystem,
        side: Side,
        b: &[f64],
        x: &[f64],
        left: &mut [f64],
    ) {
        left.copy_from_slice(b);
        step.leave(x, left, side == Side::Pull);
        for (e, slot) in step.contacts().elements.iter().zip(&self.slots) {
            let own = e.response.own;
            match side {
                Side::Push => e.add_impulses(slot, own, -1.0, left),
                Side::Pull => self.flow_back(e, slot, own.map(|v| -v), left),
            }
        }
        step.settle(left, side == Side::Pull);
    }

    /// Solves for `x` of the step linearized, of which contacts are part, with right-hand side `b`; of a push that is
    /// without the impulses of contacts. Keeps what contacts answer to it. Returns what is left of the right-hand side, largest
    /// rows, relative.
    pub(crate) fn solve_linearized(
        &self,
        step: &mut impl NewtonSystem,
        side: Side,
        b: &[f64],
        x: &mut [f64],
    ) -> f64 {
        // impulses that are unknowns are those of the solve: by the velocities they would be off by rounding times `g/s`
        let memory = step.contacts_mut();
        let mut left = std::mem::take(&mut memory.rhs);
        let mut more = std::mem::take(&mut memory.more);
        left.copy_from_slice(b);
        if side == Side::Push {
            self.push_impulses(memory, &mut left);
        }
        let transposed = side == Side::Pull;
        self.set_inflow(step.contacts_mut(), side == Side::Push);
        step.solve(&left, x, transposed);
        self.set_inflow(step.contacts_mut(), false);
        let memory = step.contacts_mut();
        for (i, slot) in self.slots.iter().enumerate() {
            let unknown = memory.of_stiff(i);
            let e = &mut memory.elements[i];
            if let Some(own) = unknown {
                e.response.own = own;
                continue;
            }
            e.response.own = match side {
                Side::Pull => e.reply(slot, side, x),
                Side::Push => {
                    let mut inflow = e.response.inflow;
                    let by = e.flow(slot, x);
                    inflow.iter_mut().zip(by).for_each(|(i, v)| *i -= v);
                    e.response.impulse(&inflow)
                }
            };
        }
        let (mut last, whole) = (f64::INFINITY, self.largest(&step.view(), side, b));
        let mut least = f64::NAN;
        for sweep in 0..=SWEEPS {
            self.leave(step, side, b, x, &mut left);
            let now = self.largest(&step.view(), side, &left);
            least = now.min(last);
            if now > last {
                // back: rounding is all that is left
                self.correct(step.contacts_mut(), side, x, &more, -1.0);
                break;
            }
            if sweep == SWEEPS || now <= SMALL * whole || now > 0.5 * last {
                break;
            }
            last = now;
            step.solve(&left, &mut more, transposed);
            self.correct(step.contacts_mut(), side, x, &more, 1.0);
        }
        let memory = step.contacts_mut();
        (memory.rhs, memory.more) = (left, more);
        if whole > 0.0 { least / whole } else { 0.0 }
    }

    /// What contacts answer to a solve.
    pub(crate) fn answered(&self, memory: &Memory) -> Vec<[f64; 3]> {
        memory.elements.iter().map(|e| e.response.own).collect()
    }

    /// Adds what they answered to another: that of the sum of both.
    pub(crate) fn answer_also(&self, memory: &mut Memory, answers: &[[f64; 3]]) {
        for (e, other) in memory.elements.iter_mut().zip(answers) {
            let own = e.response.own.iter_mut();
            own.zip(other).for_each(|(own, other)| *own += other);
        }
    }

    /// Largest row as a velocity, m/s, or of a pull as dual to one. As in the step's own residual, bodies' rows are divided by
    /// mass and radius of gyration, the others by the interval; impulses, to which the others of a pull are dual, by a mass.
    fn largest(&self, w: &View, side: Side, rows: &[f64]) -> f64 {
        let push = side == Side::Push;
        let (bodies, others) = rows.split_at(6 * w.poses.len());
        let unit = match w.at.stage {
            Stage::Step(h) if push => 1.0 / h,
            Stage::Readout(_) if push => 1.0,
            _ => self.lightest,
        };
        let mut most = others.iter().fold(0.0, |m: f64, r| m.max(r.abs() * unit));
        let each = bodies.as_chunks::<6>().0.iter();
        for ((own, body), size) in each.zip(&w.model.bodies).zip(&self.sizes) {
            let unit = if push { 1.0 / body.mass } else { 1.0 };
            for (i, r) in own.iter().enumerate() {
                most = most.max(r.abs() * if i < 3 { unit } else { unit / size });
            }
        }
        most
    }

    fn correct(&self, memory: &mut Memory, side: Side, x: &mut [f64], more: &[f64], sign: f64) {
        x.iter_mut().zip(more).for_each(|(x, d)| *x += sign * d);
        for (i, slot) in self.slots.iter().enumerate() {
            let unknown = memory.of_stiff(i);
            let e = &mut memory.elements[i];
            let more = unknown.unwrap_or_else(|| e.reply(slot, side, more));
            let own = e.response.own.iter_mut();
            own.zip(more).for_each(|(o, m)| *o += sign * m);
        }
    }

    /// Adds the adjoints of the velocities from those of what flows in by them.
    pub(super) fn flow_back(&self, e: &Element, slot: &Slot, by: [f64; 3], out: &mut [f64]) {
        let (p, c) = (slot.parent, slot.child);
        if e.law.gap {
            add_sides(out, p, c, &e.by_velocity, by[0]);
        }
        if e.law.frictional {
            add_sides(out, p, c, &e.slide_by_velocity[0], by[1]);
            add_sides(out, p, c, &e.slide_by_velocity[1], by[2]);
        }
    }
}
