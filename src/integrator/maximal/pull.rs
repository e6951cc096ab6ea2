//! Adjoints of the step's inputs from those of its outputs: one solve with the transposed matrix, then products.

use super::assembly::{add_wrench, dot, vec3};
use super::linear::{add_six, six};
use super::{Maximal, Work};
use crate::contact::Side;
use crate::dynamics::{Inputs, Outputs};
use crate::mechanism::Pair;
use crate::spatial::Vec3;

/// Adjoints on their way: of the residual (the multiplier), and of the configurations at the knots after and before.
struct Flow {
    mu: Vec<f64>,
    zplus: Vec<f64>,
    zminus: Vec<f64>,
}

/// The six numbers of parent and child; none of the world.
fn pair_of(v: &[f64], parent: Option<usize>, child: usize) -> Pair {
    let of = |b: usize| (vec3(v, 6 * b), vec3(v, 6 * b + 3));
    [parent.map_or_else(Default::default, of), of(child)]
}

/// Adds a gradient by the displacements of two bodies.
#[inline(always)]
fn add_pair(out: &mut [f64], (parent, child): (Option<usize>, usize), pair: &Pair, scale: f64) {
    let mut add = |body: usize, (x, phi): &(Vec3, Vec3)| {
        for i in 0..3 {
            out[6 * body + i] += scale * x[i];
            out[6 * body + 3 + i] += scale * phi[i];
        }
    };
    add(child, &pair[1]);
    if let Some(p) = parent {
        add(p, &pair[0]);
    }
}

/// Largest size; a NaN wins.
fn largest(v: impl Iterator<Item = f64>) -> f64 {
    v.fold(0.0, |m: f64, v| {
        if v.is_nan() {
            f64::INFINITY
        } else {
            m.max(v.abs())
        }
    })
}

impl Maximal {
    /// Adjoints of the inputs from those of the outputs, of a step or a read-out.
    pub(super) fn pull_step(&self, w: &mut Work, adjoint: &Outputs, out: &mut Inputs) {
        let mut rhs = std::mem::take(&mut w.newton.delta);
        let mut flow = Flow {
            mu: std::mem::take(&mut w.adjoint.mu),
            zplus: std::mem::take(&mut w.adjoint.zplus),
            zminus: std::mem::take(&mut w.adjoint.zminus),
        };
        self.gather_adjoints(w, adjoint, &mut flow.zplus, &mut rhs);
        self.solve_linearized(w, Side::Pull, &rhs, &mut flow.mu);
        self.certify_solve(w, &rhs, &mut flow.mu);
        flow.mu.iter_mut().for_each(|v| *v = -*v);
        self.pull_inputs(w, &mut flow, out);
        w.newton.delta = rhs;
        (w.adjoint.mu, w.adjoint.zplus, w.adjoint.zminus) = (flow.mu, flow.zplus, flow.zminus);
    }

    /// Adjoints of the inputs and of the unknowns from those of the next state and of the residual, `mu`, of a step that need
    /// not be solved. `contacts` adds what contacts contribute: to those of the end's poses, of the inputs, and of the unknowns.
    pub(super) fn pull_unsolved(
        &self,
        w: &mut Work,
        next: &[f64],
        mu: &[f64],
        (out, y): (&mut Inputs, &mut [f64]),
        contacts: impl FnOnce(&mut Work, &mut [f64], (&mut Inputs, &mut [f64])),
    ) {
        let mut flow = Flow {
            mu: std::mem::take(&mut w.adjoint.mu),
            zplus: std::mem::take(&mut w.adjoint.zplus),
            zminus: std::mem::take(&mut w.adjoint.zminus),
        };
        let (zplus, velocities) = next.split_at(6 * self.body_count());
        flow.mu.copy_from_slice(mu);
        flow.zplus.copy_from_slice(zplus);
        self.pull_bodies(w, &mut flow, out);
        y.fill(0.0);
        contacts(w, &mut flow.zplus, (&mut *out, &mut *y));
        self.pull_trial(w, &flow, velocities, y);
        self.pull_motion(w, &flow, out);
        (w.adjoint.mu, w.adjoint.zplus, w.adjoint.zminus) = (flow.mu, flow.zplus, flow.zminus);
    }

    /// Adds the adjoints of the unknowns: of velocities as given, through the momenta and through `z+`; of impulses along their rows.
    fn pull_trial(&self, w: &Work, flow: &Flow, velocities: &[f64], y: &mut [f64]) {
        let (m, h) = (&w.model, w.knot.at.h());
        for (b, body) in m.bodies.iter().enumerate() {
            let (omega, s) = (vec3(&w.newton.trial, 6 * b + 3), w.end.scalar[b]);
            let [_, (linear, angular)] = pair_of(&flow.mu, None, b);
            let [_, (x, turn)] = pair_of(&flow.zplus, None, b);
            let v = linear * body.mass + x * h;
            let law = &body.rotation;
            let spin = law.momentum_jacobian_transposed(&omega, &body.inertia, h, s, &angular)
                + law.jacobian_transposed(&omega, h, s, &turn);
            for i in 0..3 {
                y[6 * b + i] += velocities[6 * b + i] + v[i];
                y[6 * b + 3 + i] += velocities[6 * b + 3 + i] + spin[i];
            }
        }
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            let rows = &w.knot.rows[s.first_row..s.first_row + j.rows()];
            for (y, row) in y[s.offset..].iter_mut().zip(rows) {
                *y -= dot(&flow.mu, j.parent, j.child, row);
            }
        }
        self.pull_element_trial(w, &flow.mu, y);
    }

    /// Every input's adjoint is `mu' dr/d(input)` plus what goes straight into `z+`.
    fn pull_inputs(&self, w: &mut Work, flow: &mut Flow, out: &mut Inputs) {
        self.pull_bodies(w, flow, out);
        let view = self.view(w);
        self.contacts
            .pull(&view, &w.contacts, &flow.mu, &mut flow.zplus, out);
        self.pull_motion(w, flow, out);
    }

    /// What reaches them by forces and joints.
    fn pull_bodies(&self, w: &mut Work, flow: &mut Flow, out: &mut Inputs) {
        out.x.fill(0.0);
        (out.h, out.h_prev) = (0.0, 0.0);
        self.pull_joints(w, flow, out);
        self.pull_elements(w, &flow.mu, &mut flow.zplus, out);
        self.pull_dampers(w, flow, out);
        self.pull_wrenches(w, &flow.mu, out);
        self.pull_numbers(w, &flow.mu, out);
    }

    /// The adjoints of the unknowns: as given, and through the next state and the contacts.
    fn gather_adjoints(&self, w: &mut Work, adjoint: &Outputs, zplus: &mut [f64], rhs: &mut [f64]) {
        let (n, h) = (6 * self.body_count(), w.knot.at.h());
        rhs[n..].copy_from_slice(&adjoint.y[n..self.symbolic.dim()]);
        zplus.copy_from_slice(&adjoint.x[..n]);
        for b in 0..self.body_count() {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            let turn = vec3(zplus, 6 * b + 3);
            let law = &w.model.bodies[b].rotation;
            let kt = law.jacobian_transposed(&omega, h, w.end.scalar[b], &turn);
            let own = 6 * b..6 * b + 6;
            let (x, y) = (
                &adjoint.x[n + 6 * b..n + 6 * b + 6],
                &adjoint.y[own.clone()],
            );
            let (z, rhs) = (&zplus[own.clone()], &mut rhs[own]);
            for i in 0..3 {
                rhs[i] = y[i] + x[i] + h * z[i];
                rhs[3 + i] = y[3 + i] + x[3 + i] + kt[i];
            }
        }
        self.couple_contacts(w);
        self.contacts
            .pull_unknowns(&mut w.contacts, &adjoint.y[self.symbolic.dim()..], rhs);
    }

    /// Where it was asked for, the relative residual of the solve, and one more correction by it: what that changes of a
    /// gradient is the error that its solves leave.
    fn certify_solve(&self, w: &mut Work, rhs: &[f64], mu: &mut [f64]) {
        let Some(worst) = w.adjoint.certificate else {
            return;
        };
        let mut left = std::mem::take(&mut w.newton.scratch);
        let through_contacts = self.contacts.answers(&w.contacts);
        if through_contacts {
            self.left_of_pull(w, rhs, mu, &mut left);
        } else {
            left.copy_from_slice(rhs);
            self.symbolic
                .subtract_product_transposed(&w.matrix.original, mu, &mut left);
        }
        let rest = largest(left.iter().copied());
        let size = largest(rhs.iter().copied());
        let relative = if size > 0.0 { rest / size } else { 0.0 };
        let relative = if relative.is_nan() {
            f64::INFINITY
        } else {
            relative
        };
        let (rest, mut more) = (left.clone(), vec![0.0; mu.len()]);
        w.newton.scratch = left;
        let answers = self.contacts.answered(&w.contacts);
        self.solve_linearized(w, Side::Pull, &rest, &mut more);
        if through_contacts {
            self.contacts.answer_also(&mut w.contacts, &answers);
        }
        mu.iter_mut().zip(more).for_each(|(mu, d)| *mu += d);
        w.adjoint.certificate = Some(worst.max(relative));
    }

    /// Impulses that turn with the configuration, and the joints' rows.
    fn pull_joints(&self, w: &Work, flow: &mut Flow, out: &mut Inputs) {
        let (m, mu) = (&w.model, &flow.mu);
        for (index, j) in m.joints.iter().enumerate() {
            let Some(s) = &self.slots[index] else {
                continue;
            };
            let own = s.offset..s.offset + j.rows();
            let ends = m.ends(j, &w.knot.poses);
            let bodies = (j.parent, j.child);
            let pull = |lambda: &[f64], v: &[f64]| {
                let pair = pair_of(v, j.parent, j.child);
                j.pull_wrench(lambda, &pair, ends, &w.knot.relative[index])
            };
            let turned = pull(&w.newton.trial[own.clone()], mu);
            add_pair(&mut out.x, bodies, &turned, -1.0);
            if w.matrix.softness != 0.0 && w.knot.at.steps() {
                let each = own.clone().enumerate();
                out.h += each.map(|(i, k)| mu[k] * self.given(w, s, i)).sum::<f64>();
            }
            if w.knot.at.steps() {
                let rows = &w.end.rows[s.first_row..];
                // rows that are closed elsewhere have no multipliers, and are not there
                for (row, mu) in rows.iter().zip(&mu[own]).filter(|(_, mu)| **mu != 0.0) {
                    add_wrench(&mut flow.zplus, j.parent, j.child, row, *mu);
                }
            } else {
                // how the velocity constraints turn with the configuration
                add_pair(&mut out.x, bodies, &pull(&mu[own], &w.newton.trial), 1.0);
            }
        }
    }

    /// Displacements of the dampers over both intervals.
    fn pull_dampers(&self, w: &Work, flow: &mut Flow, out: &mut Inputs) {
        if !self.damped.is_empty() {
            flow.zminus.fill(0.0);
        }
        for (e, s) in self.damped.iter().zip(&w.knot.damping) {
            let (a, b) = (e.parent, e.child);
            let size = e.damping(&w.model) * dot(&flow.mu, a, b, &s.wrench);
            let (before, after) = (e.law.before() * size, e.after(&w.knot.at) * size);
            add_wrench(&mut flow.zminus, a, b, &s.before_start, before);
            add_wrench(&mut out.x, a, b, &s.before_end, before);
            add_wrench(&mut out.x, a, b, &s.after_start, after);
            let [by_before, by_after] = e.after_by_intervals(&w.knot.at);
            out.h_prev += by_before * size * s.after;
            out.h += by_after * size * s.after;
            if w.knot.at.steps() {
                add_wrench(&mut flow.zplus, a, b, &s.after_end, after);
            }
        }
    }

    /// Wrenches of springs, dampers and actuators that turn with the configuration.
    fn pull_wrenches(&self, w: &Work, mu: &[f64], out: &mut Inputs) {
        let m = &w.model;
        let elements = m.joints.len() + m.springs.len();
        for (element, (a, b)) in Self::coupled(m).enumerate().take(elements) {
            let Some(c) = self.applied(w, element) else {
                continue;
            };
            let mb = six(mu, b);
            let mut to_b = c.bb.0.tr_mul(&mb);
            if let Some(a) = a {
                let ma = six(mu, a);
                to_b += c.ab.0.tr_mul(&ma);
                add_six(&mut out.x, a, &-(c.ba.0.tr_mul(&mb) + c.aa.0.tr_mul(&ma)));
            }
            add_six(&mut out.x, b, &-to_b);
        }
        let half = w.knot.at.half();
        for (c, u) in m.actuators.iter().zip(&w.knot.control) {
            let (parent, child) = m.driven(c);
            let ends = (m.pose(&w.knot.poses, parent), &w.knot.poses[child]);
            let pair = pair_of(mu, parent, child);
            let turned = c.pull_wrench(half * u, &m.joints, &pair, ends);
            add_pair(&mut out.x, (parent, child), &turned, -1.0);
        }
    }

    /// Controls, parameters, and the intervals as weights of the forces.
    fn pull_numbers(&self, w: &Work, mu: &[f64], out: &mut Inputs) {
        let (m, half) = (&w.model, w.knot.at.half());
        for (i, (row, du)) in w.knot.control_rows.iter().zip(&mut out.u).enumerate() {
            let (a, b) = m.driven(&m.actuators[i]);
            *du = -half * w.knot.control_slope[i] * dot(mu, a, b, row);
        }
        for (i, dp) in out.p.iter_mut().enumerate() {
            *dp = self.pull_parameter(w, i, mu);
        }
        let force: f64 = w.knot.force.iter().zip(mu).map(|(f, m)| f * m).sum();
        out.h_prev -= 0.5 * force;
        if w.knot.at.steps() {
            out.h -= 0.5 * force;
        }
    }

    /// What reaches the state and the intervals by the momenta and by the configurations at both neighbours.
    fn pull_motion(&self, w: &Work, flow: &Flow, out: &mut Inputs) {
        let (n, h, hp) = (6 * self.body_count(), w.knot.at.h(), w.knot.at.h_prev);
        for (b, body) in w.model.bodies.iter().enumerate() {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            let old = vec3(&w.knot.before, 6 * b + 3);
            let (s, sp) = (w.end.scalar[b], w.knot.scalar[b]);
            let (j, law) = (&body.inertia, &body.rotation);
            let (ml, ma) = (vec3(&flow.mu, 6 * b), vec3(&flow.mu, 6 * b + 3));
            let (x, turn) = (vec3(&flow.zplus, 6 * b), vec3(&flow.zplus, 6 * b + 3));
            if w.knot.at.steps() {
                out.h += x.dot(&vec3(&w.newton.trial, 6 * b))
                    + law.end_by_interval_transposed(&omega, h, s, &turn)
                    + ma.dot(&law.momentum_rate(&omega, j, h, s));
            }
            out.h_prev += ma.dot(&law.momentum_rate(&old, j, -hp, sp));
            // the transpose of `carried`
            let phi = w.knot.poses[b].r.tr_mul(&(w.end.poses[b].r * turn));
            let v = ml * -body.mass;
            let dw = -law.momentum_jacobian_transposed(&old, j, -hp, sp, &ma);
            let (dz, dv) = out.x.split_at_mut(n);
            let (dz, dv) = (&mut dz[6 * b..6 * b + 6], &mut dv[6 * b..6 * b + 6]);
            for i in 0..3 {
                dz[i] += x[i];
                dz[3 + i] += phi[i];
                dv[i] += v[i];
                dv[3 + i] += dw[i];
            }
            if !self.damped.is_empty() {
                Self::pull_back(w, b, n, &flow.zminus, out);
            }
        }
    }
}
