//! The law as equations of its own, unsolved: for methods whose unknowns are all states and impulses at once.
//!
//! Rows of a contact, in the order of its unknowns `s, g, psi, b`:
//!
//! ```text
//! s - phi(z+)/h,    s g - kappa,    u0 psi + b . eta - kappa,    u0 eta + psi b
//! ```
//!
//! What a law lacks is zero: `psi` and `b` of a limit, `s` and `g` of friction in a joint. With `psi >= 0` the rows keep `b` in
//! the cone. The configuration `z+` is the end of the step, which is a variable there ([`View::next`]).

use super::assembly::{both, limit_gap};
use super::derivative::{Response, add_sides};
use super::{Cone, Element, Layout, Memory, Slot, Source, UNKNOWNS, View};
use crate::dynamics::{ContactUnknowns, Inputs, Stage};
use crate::mechanism::{Field, Joint, Mechanism, add_wrench, dot, friction_rows, normal_row};

/// Sliding speed at a unit rate that is none, m/s.
const IMMOBILE: f64 = 1e-10;

impl Layout {
    /// Are the equations offered?
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn check_equations(&self, m: &Mechanism) -> Result<(), String> {
        if self.options.cone != Cone::SecondOrder && !self.is_empty() {
            return Err("contacts have a linearized cone; set `cone = \"second_order\"`".into());
        }
        if let Some(c) = m.contacts.iter().find(|c| m.restitution(c) != 0.0) {
            return Err(format!(
                "contact `{}` bounces; leave its restitution out",
                c.name
            ));
        }
        let bounces = |j: &&Joint| j.directions.iter().any(|d| d.restitution != 0.0);
        m.joints.iter().find(bounces).map_or(Ok(()), |j| {
            Err(format!(
                "joint `{}` bounces off its limits; leave its restitution out",
                j.name
            ))
        })
    }

    /// Rows of the stored points of rims. They come after those of the contact law, and each has its own unknown.
    pub(crate) fn own_rows(&self) -> std::ops::Range<usize> {
        self.rim_points()
    }

    /// The same among those of contacts.
    fn own_places(&self) -> std::ops::Range<usize> {
        let all = self.rim_points();
        all.start - self.rows..all.end - self.rows
    }

    /// Parent and child of every element.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Option<usize>, usize)> + '_ {
        self.slots.iter().map(|s| (s.parent, s.child))
    }

    /// The unknowns of every element among those of the step.
    pub(crate) fn places<'a>(
        &'a self,
        m: &'a Mechanism,
    ) -> impl Iterator<Item = ContactUnknowns> + 'a {
        let first = (self.rows..).step_by(UNKNOWNS);
        // whatever the position, a plane mechanism stays in its plane
        let count = m.tree_ids().len();
        let positions = [0.618_033_988_749_895, 0.754_877_666_246_693].map(|ratio: f64| {
            let q = (0..count).map(|i| ((i + 1) as f64 * ratio).fract() - 0.5);
            let poses = m.forward(&q.collect::<Vec<f64>>());
            let basis = m.tree_basis(&poses);
            (poses, basis)
        });
        self.slots.iter().zip(first).map(move |(s, first)| {
            let (has_gap, has_friction) = match s.source {
                Source::Contact(i) => (true, m.friction(&m.contacts[i]) > 0.0),
                Source::Friction(..) => (false, true),
                Source::Limit(..) => (true, false),
            };
            let slides = match s.source {
                Source::Contact(i) => [0, 1].map(|along| {
                    positions.iter().any(|(poses, basis)| {
                        let (a, b) = (m.pose(poses, s.parent), &poses[s.child]);
                        let (c, touch) = (&m.contacts[i], m.touch(&m.contacts[i], poses));
                        let row = friction_rows(&touch, c.frame_axis(&touch), a, b)[along];
                        let mut speeds = basis.column_iter().map(|v| {
                            let v: Vec<f64> = v.iter().copied().collect();
                            dot(&v, s.parent, s.child, &row).abs()
                        });
                        speeds.any(|v| v > IMMOBILE)
                    })
                }),
                Source::Friction(..) => [true, false],
                Source::Limit(..) => [false; 2],
            };
            let coefficient = match s.source {
                Source::Contact(i) => {
                    let c = &m.contacts[i];
                    let mut varies = m.parameters.iter().map(|p| m.friction_by(c, &p.fields));
                    varies.all(|by| by == 0.0).then(|| m.friction(c))
                }
                Source::Friction(..) | Source::Limit(..) => None,
            };
            let bound = match s.source {
                Source::Friction(j, i) => {
                    let field = Field::JointFriction((j, i));
                    let is_tuned = m.parameters.iter().any(|p| p.fields.contains(&field));
                    (!is_tuned).then(|| m.joints[j].directions[i].friction / s.mass)
                }
                Source::Contact(_) | Source::Limit(..) => None,
            };
            ContactUnknowns {
                first,
                has_gap,
                has_friction,
                slides,
                coefficient,
                bound,
                share: 1.0,
                is_within: false,
            }
        })
    }

    /// Gaps at the end of the step, and the law's rows behind those of the bodies.
    pub(crate) fn leave_unsolved(&self, w: &View, memory: &mut Memory, rows: &mut [f64]) {
        let Stage::Step(h) = w.at.stage else { return };
        let kappa = memory.kappa;
        let elements = memory.elements.iter_mut().zip(&self.slots);
        for ((e, slot), rows) in elements.zip(rows.chunks_exact_mut(UNKNOWNS)) {
            self.meet(w, e, slot);
            let l = &e.local;
            rows[..2].copy_from_slice(&match e.law.gap {
                true => [l.s - e.next.gap / h, l.s * l.g - kappa],
                false => [l.s, l.g],
            });
            rows[2..].copy_from_slice(&match e.law.frictional {
                true => {
                    let u0 = e.law.bound_at(l);
                    let product = u0 * l.psi + l.b[0] * l.eta[0] + l.b[1] * l.eta[1];
                    let along = |i: usize| u0 * l.eta[i] + l.psi * l.b[i];
                    [product - kappa, along(0), along(1)]
                }
                false => [l.psi, l.b[0], l.b[1]],
            });
        }
        // points of rims are those found at the knot, whose numbers are zero
        rows[self.own_places()].copy_from_slice(&memory.places);
    }

    /// Writes the unknowns that are on the central path, for the gaps at the end and the velocities.
    pub(crate) fn center(&self, w: &View, memory: &mut Memory, y: &mut [f64]) {
        let Stage::Step(h) = w.at.stage else { return };
        let kappa = memory.kappa;
        for (e, slot) in memory.elements.iter_mut().zip(&self.slots) {
            self.meet(w, e, slot);
            e.local = e.law.start(e.next.gap / h, 0.0, e.local.eta, kappa);
        }
        memory.write(y, self);
    }

    /// The gap where the step ends, its derivative there, and the sliding velocity.
    fn meet(&self, w: &View, e: &mut Element, slot: &Slot) {
        let (m, b) = (w.model, &w.next[slot.child]);
        let a = m.pose(w.next, slot.parent);
        match slot.source {
            Source::Contact(i) => {
                e.next = m.touch_of(&m.contacts[i], &e.held, w.next);
                e.next_row = normal_row(&e.next, a, b);
                // a plan's knots have no overlaps in the end
                e.left = 0.0;
            }
            Source::Limit(j, i, upper) => {
                let joint = &m.joints[j];
                let rel = joint.relative(a, b);
                e.next.gap = limit_gap(joint, i, upper, &rel, w.winding(j));
                let row = joint.coordinate_row(i, a, b, &rel);
                e.next_row = if upper { -row } else { row };
            }
            Source::Friction(..) => {}
        }
        if e.law.frictional {
            self.slide(w, e, slot);
        }
    }

    /// Makes ready for derivatives of the rows: impulses and velocities are given, and answer to nothing.
    pub(crate) fn hold(&self, w: &View, memory: &mut Memory) {
        if self.is_empty() {
            return;
        }
        memory.coupled = false;
        for (e, slot) in memory.elements.iter_mut().zip(&self.slots) {
            e.response = Response::default();
            e.by_velocity = Default::default();
            if e.law.frictional {
                // the end does not come through the velocities
                e.slide_by_velocity = e.slides.each_ref().map(both);
                self.turn_slide(w, e, slot);
            }
        }
        self.couple(w, memory);
    }

    /// Adds to the change of the step's rows, and writes that of the law's, what comes of the inputs, of the end of the step (`end`, six
    /// a body), of velocities and of the contacts' unknowns.
    pub(crate) fn push_unsolved(
        &self,
        w: &View,
        memory: &mut Memory,
        d: &Inputs,
        (end, (velocities, dy)): (&[f64], (&[f64], &[f64])),
        (core, own): (&mut [f64], &mut [f64]),
    ) {
        if self.is_empty() {
            return;
        }
        self.push(w, memory, d, end, core);
        let places = self.own_places();
        own[places.clone()].copy_from_slice(&dy[places]);
        let elements = memory.elements.iter().zip(&self.slots);
        let both = own
            .chunks_exact_mut(UNKNOWNS)
            .zip(dy.chunks_exact(UNKNOWNS));
        for ((e, slot), (rows, d)) in elements.zip(both) {
            let flow = e.flow(slot, velocities);
            let (l, [gap, t, b, path, bound]) = (&e.local, e.response.inflow);
            let deta = [t + flow[1], b + flow[2]];
            for (row, impulse) in e.rows().into_iter().zip([d[1], d[3], d[4]]) {
                add_wrench(core, slot.parent, slot.child, row, -slot.mass * impulse);
            }
            rows[..2].copy_from_slice(&match e.law.gap {
                true => [d[0] - gap, l.s * d[1] + l.g * d[0] - path],
                false => [d[0], d[1]],
            });
            rows[2..].copy_from_slice(&match e.law.frictional {
                true => {
                    let (u0, mu) = (e.law.bound_at(l), e.law.mu);
                    let du0 = mu * d[1] + bound;
                    let mut product = du0 * l.psi + u0 * d[2] - path;
                    for i in 0..2 {
                        product += d[3 + i] * l.eta[i] + l.b[i] * deta[i];
                    }
                    let along =
                        |i: usize| du0 * l.eta[i] + u0 * deta[i] + d[2] * l.b[i] + l.psi * d[3 + i];
                    [product, along(0), along(1)]
                }
                false => [d[2], d[3], d[4]],
            });
        }
    }

    /// Adds the adjoints of the inputs, of the end, of velocities and of the contacts' unknowns, from those of the step's and the law's
    /// rows.
    pub(crate) fn pull_unsolved(
        &self,
        w: &View,
        memory: &mut Memory,
        (mu, own): (&[f64], &[f64]),
        end: &mut [f64],
        (out, (velocities, y)): (&mut Inputs, (&mut [f64], &mut [f64])),
    ) {
        if self.is_empty() {
            return;
        }
        let places = self.own_places();
        let given = own[places.clone()].iter();
        (y[places].iter_mut().zip(given)).for_each(|(y, nu)| *y += nu);
        let elements = memory.elements.iter_mut().zip(&self.slots);
        let both = own.chunks_exact(UNKNOWNS).zip(y.chunks_exact_mut(UNKNOWNS));
        for ((e, slot), (nu, y)) in elements.zip(both) {
            let (p, c) = (slot.parent, slot.child);
            let l = &e.local;
            let mut inflow = [0.0; 5];
            match e.law.gap {
                true => {
                    y[0] += nu[0] + nu[1] * l.g;
                    y[1] += nu[1] * l.s;
                    inflow[0] = -nu[0];
                    inflow[3] = -nu[1];
                }
                false => {
                    y[0] += nu[0];
                    y[1] += nu[1];
                }
            }
            if e.law.frictional {
                let u0 = e.law.bound_at(l);
                inflow[3] -= nu[2];
                inflow[4] = nu[2] * l.psi;
                y[2] += nu[2] * u0;
                for i in 0..2 {
                    inflow[1 + i] = nu[2] * l.b[i] + nu[3 + i] * u0;
                    inflow[4] += nu[3 + i] * l.eta[i];
                    y[2] += nu[3 + i] * l.b[i];
                    y[3 + i] += nu[2] * l.eta[i] + nu[3 + i] * l.psi;
                    add_sides(velocities, p, c, &e.slide_by_velocity[i], inflow[1 + i]);
                }
                y[1] += e.law.mu * inflow[4];
            } else {
                (0..3).for_each(|i| y[2 + i] += nu[2 + i]);
            }
            for (row, at) in e.rows().into_iter().zip([1, 3, 4]) {
                y[at] -= slot.mass * dot(mu, p, c, row);
            }
            e.response.inflow = inflow;
        }
        self.pull(w, memory, mu, end, out);
    }
}
