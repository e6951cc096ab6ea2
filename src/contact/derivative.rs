//! Derivatives of the step through its contacts.
//!
//! A contact's unknowns answer to what flows into it: `ext = (phi(z+)/h, eta)`, the path's parameter `kappa` and the
//! friction bound `u0`. Their response `A`, five by five, comes from the law linearized at the solution (`consistent`), or
//! at the same point moved onto the path at a larger `kappa` (`relaxed`): `s - g` and `b - eta` are kept.

use super::assembly::along;
use super::cone::Target;
use super::element::Sides;
use super::parameter::Entry;
use super::{Element, Layout, Local, Memory, Slot, Source, UNKNOWNS, View};
use crate::dynamics::{Inputs, Stage};
use crate::mechanism::{
    Coupling, Mechanism, Row, Touch, Vec6, add_wrench, dot, rate_derivatives, wrench_derivative,
};
use crate::spatial::{Pose, Vec3};

/// What flows into a contact: gap over the interval's length, sliding velocity, `kappa`, `u0`.
const INFLOWS: usize = 5;

/// A contact's linearization for pushes and pulls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response {
    /// Change of `s, g, psi, b` by each inflow.
    by: [[f64; UNKNOWNS]; INFLOWS],
    /// Derivative of the wrench by the configuration at the knot.
    coupling: Coupling,
    /// Derivatives of the rate along the normal and of the sliding velocity by the configuration at the knot, of parent
    /// and child.
    turn: [[Vec6; 2]; 3],
    /// The inflows of the push under way, or their adjoints of the pull.
    pub(super) inflow: [f64; INFLOWS],
    /// The impulses' changes of the push, or the multipliers of the inflows by velocities of the pull.
    pub(super) own: [f64; 3],
}

impl Response {
    /// Friction answers to its bound as given.
    pub(super) fn raise(&mut self, b: [f64; 2]) {
        self.by[4] = [0.0, 0.0, 0.0, b[0], b[1]];
    }

    /// Change of all unknowns by the inflows given.
    fn outcome(&self, inflow: &[f64; INFLOWS]) -> [f64; UNKNOWNS] {
        let mut d = [0.0; UNKNOWNS];
        for (by, x) in self.by.iter().zip(inflow) {
            for (d, by) in d.iter_mut().zip(by) {
                *d += by * x;
            }
        }
        d
    }

    /// Change of `g, b` by the inflows given.
    pub(super) fn impulse(&self, inflow: &[f64; INFLOWS]) -> [f64; 3] {
        let d = self.outcome(inflow);
        [d[1], d[3], d[4]]
    }

    /// The same by velocities alone.
    pub(super) fn given(&self, flow: [f64; 3]) -> [f64; 3] {
        self.impulse(&[flow[0], flow[1], flow[2], 0.0, 0.0])
    }

    /// Multipliers of the inflows by velocities, from what the impulses feel.
    pub(super) fn felt(&self, felt: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| {
            let by = &self.by[i];
            by[1] * felt[0] + by[3] * felt[1] + by[4] * felt[2]
        })
    }
}

fn unknowns(l: &Local) -> [f64; UNKNOWNS] {
    [l.s, l.g, l.psi, l.b[0], l.b[1]]
}

/// `d(wrench)/dz dz` on parent and child.
fn product(k: &Coupling, d: &[f64], parent: Option<usize>, child: usize) -> [Vec6; 2] {
    let six = |b: usize| Vec6::from_column_slice(&d[6 * b..6 * b + 6]);
    let db = six(child);
    let mut out = [k.ab.0 * db, k.bb.0 * db];
    if let Some(p) = parent {
        let da = six(p);
        out[0] += k.aa.0 * da;
        out[1] += k.ba.0 * da;
    }
    out
}

pub(super) fn add_sides(
    v: &mut [f64],
    parent: Option<usize>,
    child: usize,
    row: &[Vec6; 2],
    scale: f64,
) {
    let mut add = |b: usize, r: &Vec6| {
        let own = &mut v[6 * b..6 * b + 6];
        own.iter_mut()
            .zip(r.iter())
            .for_each(|(v, r)| *v += scale * r);
    };
    add(child, &row[1]);
    if let Some(p) = parent {
        add(p, &row[0]);
    }
}

impl Element {
    /// The response of the law as it is linearized.
    fn respond(&mut self, mut sides: Sides) {
        let mut of = |gap, products, bound| {
            let sides = sides.as_mut().map(|(p, f)| (*p, &mut **f));
            unknowns(&self.answer(sides, gap, products, bound))
        };
        let (gap, path, bound) = (of(1.0, 0.0, 0.0), of(0.0, 1.0, 0.0), of(0.0, 0.0, 1.0));
        let none = Target::default();
        let slide = |eta| unknowns(&self.law.recover(&self.linear, &none, 0.0, eta));
        let nothing = [0.0; UNKNOWNS];
        let frictional = |by| if self.law.frictional { by } else { nothing };
        self.response.by = [
            if self.law.gap { gap } else { nothing },
            frictional(slide([1.0, 0.0])),
            frictional(slide([0.0, 1.0])),
            path,
            frictional(bound),
        ];
    }

    pub(super) fn rows(&self) -> [&Row; 3] {
        [&self.normal, &self.tangents[0], &self.tangents[1]]
    }
}

impl Layout {
    /// Largest deviation of a product from the step's parameter, relative; of no account where derivatives are relaxed.
    pub(crate) fn off_centre(&self, c: &Memory) -> f64 {
        if c.idle || c.smoothing > c.kappa {
            return 0.0;
        }
        let each = c.elements.iter().enumerate();
        let off = each.map(|(i, e)| e.products(c.sides(i, self), 0.0, c.kappa).2);
        off.fold(0.0, f64::max) / c.kappa.max(f64::MIN_POSITIVE)
    }

    /// Largest impulse, N s or N m s, by which contacts that rounding left beside their central path are off it: derivatives are
    /// those of a step that is solved but for it.
    pub(crate) fn beside(&self, c: &mut Memory) -> f64 {
        let mut most = 0.0_f64;
        if c.idle || c.smoothing > c.kappa {
            return most;
        }
        let kappa = c.kappa;
        for (e, mut sides, slot) in c.each(self) {
            let own = sides.as_ref().map(|(p, f)| (*p, &**f));
            if e.products(own, 0.0, kappa).2 <= self.options.centred * kappa {
                continue;
            }
            let was = (e.local, sides.as_ref().map(|(_, f)| **f));
            e.recentre(sides.as_mut().map(|(p, f)| (*p, &mut **f)), kappa);
            let (there, here) = (&e.local, &was.0);
            let d = [
                there.g - here.g,
                there.b[0] - here.b[0],
                there.b[1] - here.b[1],
            ];
            most = d.iter().fold(most, |m, d| m.max(slot.mass * d.abs()));
            e.local = was.0;
            if let (Some((_, f)), Some(was)) = (sides, was.1) {
                *f = was;
            }
        }
        most
    }

    /// Moves the contacts onto the central path at a larger parameter, where one is asked for.
    pub(crate) fn relax(&self, c: &mut Memory) {
        if c.smoothing > c.kappa && !c.idle {
            let kappa = c.smoothing;
            for (e, sides, _) in c.each(self) {
                e.recentre(sides, kappa);
            }
        }
    }

    /// Are linearizations those at a larger parameter?
    pub(crate) fn relaxes(&self, c: &Memory) -> bool {
        !self.is_empty() && !c.idle && c.smoothing > c.kappa
    }

    /// The responses at the point that was linearized.
    pub(crate) fn respond(&self, w: &View, memory: &mut Memory) {
        if self.is_empty() {
            return;
        }
        memory.coupled = false;
        let idle = memory.idle;
        for (e, sides, _) in memory.each(self) {
            if idle {
                e.response = Response::default();
            } else {
                e.respond(sides);
            }
        }
        self.respond_onsets(w, memory);
    }

    /// Derivative of an element's wrench for impulses `f` (normal, tangents) by the configuration at the knot.
    pub(super) fn coupling(&self, w: &View, (e, slot): (&Element, &Slot), f: Vec3) -> Coupling {
        let (m, mut out) = (w.model, Coupling::default());
        let (a, b) = (m.pose(w.poses, slot.parent), &w.poses[slot.child]);
        match slot.source {
            Source::Contact(i) => {
                let (c, ground) = (&m.contacts[i], slot.parent.is_none());
                let slope = m.touch_slope(c, &e.held, w.poses);
                let here = (&e.here, c.frame_axis(&e.here));
                wrench_derivative(here, &slope, &f, ground, (a, b), &mut out);
            }
            Source::Friction(j, i) | Source::Limit(j, i, _) => {
                let joint = &m.joints[j];
                let size = match slot.source {
                    Source::Limit(_, _, true) => -f.x,
                    Source::Limit(..) => f.x,
                    _ => f.y,
                };
                let unit = joint.directions[i].unit * size;
                joint.add_direction_derivative(i, &unit, (a, b), &w.relative[j], &mut out);
            }
        }
        out
    }

    /// Derivatives of the rates along those of normal (0) and tangents that are asked for, at velocities `v` by a configuration,
    /// where the contact is `touch`.
    pub(super) fn rates_turn<const N: usize>(
        &self,
        asked: [usize; N],
        m: &Mechanism,
        poses: &[Pose],
        (touch, e): (&Touch, &Element),
        slot: &Slot,
        v: &[f64],
    ) -> [[Vec6; 2]; N] {
        let (a, b) = (m.pose(poses, slot.parent), &poses[slot.child]);
        let (j, i) = match slot.source {
            Source::Contact(i) => {
                let contact = &m.contacts[i];
                let slope = m.touch_slope(contact, &e.held, poses);
                let touch = (touch, contact.frame_axis(&e.here));
                let ends = (slot.parent, slot.child);
                return rate_derivatives(asked, touch, &slope, (a, b), v, ends);
            }
            Source::Friction(j, i) | Source::Limit(j, i, _) => (j, i),
        };
        let (joint, mut coupling) = (&m.joints[j], Coupling::default());
        let sign = match slot.source {
            Source::Limit(_, _, true) => -1.0,
            _ => 1.0,
        };
        let unit = joint.directions[i].unit * sign;
        joint.add_direction_derivative(i, &unit, (a, b), &joint.relative(a, b), &mut coupling);
        let turn = coupling.transposed_times(v, slot.parent, slot.child);
        let own = match slot.source {
            Source::Limit(..) => 0,
            _ => 1,
        };
        asked.map(|i| if i == own { turn } else { [Vec6::zeros(); 2] })
    }

    /// Derivatives of the wrenches and of the rates by the configuration at the knot.
    pub(crate) fn couple(&self, w: &View, memory: &mut Memory) {
        if self.is_empty() || memory.idle || memory.coupled {
            return;
        }
        memory.coupled = true;
        let mut elements = std::mem::take(&mut memory.elements);
        for (e, slot) in elements.iter_mut().zip(&self.slots) {
            let l = &e.local;
            let f = Vec3::new(l.g, l.b[0], l.b[1]) * slot.mass;
            e.response.coupling = self.coupling(w, (e, slot), f);
            let turned = |v| self.rates_turn([0, 1, 2], w.model, w.poses, (&e.here, e), slot, v);
            let mut turn = [[Vec6::zeros(); 2]; 3];
            if e.law.frictional || (e.law.gap && !w.at.steps()) {
                turn = turned(w.trial);
                if w.at.steps() {
                    // the other half is that of the end
                    let slides = turn[1..].iter_mut().flatten();
                    slides.for_each(|by| *by *= 0.5);
                }
            }
            if e.bounces && !w.at.steps() {
                let [before, ..] = turned(w.before);
                let sides = turn[0].iter_mut().zip(before);
                sides.for_each(|(by, before)| *by += before * e.restitution);
            }
            e.response.turn = turn;
        }
        memory.elements = elements;
    }

    /// Adds `dr` of the contacts but for their impulses' changes; `zplus` is the change of the next configuration that does not come through the
    /// velocities. The inflows are kept for [`Layout::push_unknowns`].
    pub(crate) fn push(
        &self,
        w: &View,
        memory: &mut Memory,
        d: &Inputs,
        zplus: &[f64],
        r: &mut [f64],
    ) {
        if self.is_empty() || memory.idle {
            return;
        }
        let mut elements = std::mem::take(&mut memory.elements);
        let by_interval = if memory.takes_coming(w) {
            d.h
        } else {
            d.h_prev
        };
        for (index, (e, slot)) in elements.iter_mut().zip(&self.slots).enumerate() {
            let (p, c) = (slot.parent, slot.child);
            let mut inflow = [0.0; INFLOWS];
            if e.law.gap {
                inflow[0] = self.gap_change(w, (memory.interval, by_interval), (e, slot), d, zplus);
            }
            if e.law.frictional {
                for i in 0..2 {
                    inflow[1 + i] = along(&d.x, p, c, &e.response.turn[1 + i]);
                    if w.at.steps() {
                        inflow[1 + i] += along(zplus, p, c, &e.slide_turn[i]);
                    }
                }
            }
            inflow[3] = memory.path() * by_interval;
            inflow[4] = self.bound_rate(w, slot) * 0.5 * (d.h + d.h_prev);
            for (k, dp) in d.p.iter().enumerate().filter(|(_, dp)| **dp != 0.0) {
                self.by_parameter((w, memory), (e, index), k, |to, value| match to {
                    Entry::Inflow(i) => inflow[i] += value * dp,
                    Entry::Residual(row, i) => r[row + i] += value * dp,
                });
            }
            e.response.inflow = inflow;
            let on = product(&e.response.coupling, &d.x, p, c);
            add_sides(r, p, c, &on, -1.0);
        }
        memory.elements = elements;
    }

    /// Adds what flows in by a change of velocities that is given.
    pub(crate) fn push_flow(&self, memory: &mut Memory, velocities: &[f64]) {
        for (e, slot) in memory.elements.iter_mut().zip(&self.slots) {
            let by = e.flow(slot, velocities);
            let inflow = e.response.inflow.iter_mut();
            inflow.zip(by).for_each(|(i, v)| *i += v);
        }
    }

    /// The transpose: adds the adjoints of velocities, behind [`Layout::pull`].
    pub(crate) fn pull_flow(&self, memory: &Memory, velocities: &mut [f64]) {
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            let (inflow, own) = (e.response.inflow, e.response.own);
            let by = std::array::from_fn(|i| inflow[i] - own[i]);
            self.flow_back(e, slot, by, velocities);
        }
    }

    /// Change of the contacts' own unknowns, once that of the velocities is known and refined.
    pub(crate) fn push_unknowns(&self, memory: &Memory, velocities: &[f64], own: &mut [f64]) {
        let slots = memory.elements.iter().zip(&self.slots);
        for ((e, slot), own) in slots.zip(own.chunks_exact_mut(UNKNOWNS)) {
            let mut inflow = e.response.inflow;
            let by = e.flow(slot, velocities);
            inflow.iter_mut().zip(by).for_each(|(i, v)| *i += v);
            own.copy_from_slice(&e.response.outcome(&inflow));
            [own[1], own[3], own[4]] = e.response.own;
        }
        // the facets of a pyramid add to b; alone they have no derivatives
        own[UNKNOWNS * self.slots.len()..].fill(0.0);
    }

    /// Change of the gap's rate that does not come through the new velocities or parameters; with the length of the interval
    /// that it is over, and the change of that.
    fn gap_change(
        &self,
        w: &View,
        interval: (f64, f64),
        (e, slot): (&Element, &Slot),
        d: &Inputs,
        zplus: &[f64],
    ) -> f64 {
        let (p, c) = (slot.parent, slot.child);
        if let Stage::Step(h) = w.at.stage {
            let mut change =
                dot(zplus, p, c, &e.next_row) / h - (e.next.gap - e.overlap()) * d.h / (h * h);
            if e.left != 0.0 {
                change -= e.left * dot(&d.x, p, c, &e.normal) / h;
            }
            return change;
        }
        let turned = along(&d.x, p, c, &e.response.turn[0]);
        if e.bounces {
            return turned + e.restitution * dot(&d.x[d.x.len() / 2..], p, c, &e.normal);
        }
        let (h, by_interval) = interval;
        turned + dot(&d.x, p, c, &e.normal) / h - e.here.gap * by_interval / (h * h)
    }

    /// Change of the friction bound by the mean interval.
    fn bound_rate(&self, w: &View, slot: &Slot) -> f64 {
        match slot.source {
            Source::Friction(j, i) => w.model.joints[j].directions[i].friction / slot.mass,
            _ => 0.0,
        }
    }

    /// Adds the contacts' share of the adjoint right-hand side, from the adjoints of their unknowns; of a read-out there are none.
    pub(crate) fn pull_unknowns(&self, memory: &mut Memory, own: &[f64], rhs: &mut [f64]) {
        let given = own.chunks_exact(UNKNOWNS);
        let own = given.chain(std::iter::repeat(&[0.0; UNKNOWNS][..]));
        let slots = memory.elements.iter_mut().zip(&self.slots);
        for ((e, slot), own) in slots.zip(own) {
            let of = |by: &[f64; UNKNOWNS]| by.iter().zip(own).map(|(b, y)| b * y).sum::<f64>();
            e.response.inflow = e.response.by.each_ref().map(of);
            let [gap, t, b, ..] = e.response.inflow;
            self.flow_back(e, slot, [gap, t, b], rhs);
        }
    }

    /// Adjoints of the inputs through the contacts: adds to those of the inputs and of the next configuration. `mu` is
    /// the multiplier of `dr`, minus the solution that was refined.
    pub(crate) fn pull(
        &self,
        w: &View,
        memory: &Memory,
        mu: &[f64],
        zplus: &mut [f64],
        out: &mut Inputs,
    ) {
        if memory.idle {
            return;
        }
        let slots = memory.elements.iter().zip(&self.slots);
        for (index, (e, slot)) in slots.enumerate() {
            let (p, c) = (slot.parent, slot.child);
            let on = e.response.coupling.transposed_times(mu, p, c);
            add_sides(&mut out.x, p, c, &on, -1.0);
            let felt = e.rows().map(|row| -slot.mass * dot(mu, p, c, row));
            let mut inflow = e.response.inflow;
            for (x, nu) in inflow.iter_mut().zip(e.response.own) {
                *x -= nu;
            }
            for (x, by) in inflow.iter_mut().zip(&e.response.by).skip(3) {
                *x += by[1] * felt[0] + by[3] * felt[1] + by[4] * felt[2];
            }
            let mut by_interval = memory.path() * inflow[3];
            if e.law.gap {
                if let Stage::Step(h) = w.at.stage {
                    add_wrench(zplus, p, c, &e.next_row, inflow[0] / h);
                    out.h -= inflow[0] * (e.next.gap - e.overlap()) / (h * h);
                    if e.left != 0.0 {
                        add_wrench(&mut out.x, p, c, &e.normal, -inflow[0] * e.left / h);
                    }
                } else {
                    add_sides(&mut out.x, p, c, &e.response.turn[0], inflow[0]);
                    if e.bounces {
                        let n = out.x.len() / 2;
                        let size = inflow[0] * e.restitution;
                        add_wrench(&mut out.x[n..], p, c, &e.normal, size);
                    } else {
                        let h = memory.interval;
                        add_wrench(&mut out.x, p, c, &e.normal, inflow[0] / h);
                        by_interval -= inflow[0] * e.here.gap / (h * h);
                    }
                }
            }
            if e.law.frictional {
                for i in 0..2 {
                    add_sides(&mut out.x, p, c, &e.response.turn[1 + i], inflow[1 + i]);
                    if w.at.steps() {
                        add_sides(zplus, p, c, &e.slide_turn[i], inflow[1 + i]);
                    }
                }
            }
            if memory.takes_coming(w) {
                out.h += by_interval;
            } else {
                out.h_prev += by_interval;
            }
            let bound = 0.5 * self.bound_rate(w, slot) * inflow[4];
            out.h += bound;
            out.h_prev += bound;
            for k in 0..out.p.len() {
                let mut sum = 0.0;
                self.by_parameter((w, memory), (e, index), k, |to, value| match to {
                    Entry::Inflow(i) => sum += inflow[i] * value,
                    Entry::Residual(row, i) => sum += mu[row + i] * value,
                });
                out.p[k] += sum;
            }
        }
    }
}
