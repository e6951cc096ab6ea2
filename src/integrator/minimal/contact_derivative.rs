//! Derivatives of the step through contacts, limits and friction.
//!
//! The contact module is given displacements of bodies at the knot, where these lead at the end while velocities are held, and
//! what of the velocities comes of the knot alone; what comes of the joints' rates it answers to within the solve.

use super::Minimal;
use super::contact::{six, velocity, velocity_back};
use super::derivative::{Flow, Linear, add, over};
use super::forces::{to_body, to_world};
use super::stepping::Stepping;
use super::work::Work;
use crate::contact::{NewtonSystem, Side};
use crate::dynamics::{Certificate, Inputs, Outputs};
use crate::mechanism::{Actuator, Range, Vec6};
use crate::spatial::Vec3;

/// How what touches takes part in derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not at all.
    #[default]
    Off,
    /// It answers to velocities.
    Solved,
    /// Its unknowns are given, of equations that are not solved.
    Given,
}

/// Memory of pushes and pulls, six numbers a body.
#[derive(Default)]
pub(super) struct Touched {
    pub stage: Stage,
    inputs: Inputs,
    /// Where displacements lead, and velocities.
    end: Vec<f64>,
    velocities: Vec<f64>,
    /// Of the residual, for every body; with those of joints behind them, and of a solve.
    rows: Vec<f64>,
    rhs: Vec<f64>,
    out: Vec<f64>,
    /// What a solve leaves, which gears take up.
    left: Vec<f64>,
    /// Of equations: changes of the contacts' unknowns and of their law's rows, or adjoints of the latter and of the former.
    pub unknowns: Vec<f64>,
    pub law: Vec<f64>,
}

impl Touched {
    /// Memory where there are contacts.
    fn fit(&mut self, minimal: &Minimal) {
        if self.rows.is_empty() {
            let (n, dim) = (minimal.bodies(), minimal.dimension());
            let own = minimal.contacts.unknowns();
            self.inputs = Inputs {
                x: vec![0.0; 2 * n],
                p: vec![0.0; minimal.mechanism.parameters.len()],
                ..Inputs::default()
            };
            (self.end, self.velocities) = (vec![0.0; n], vec![0.0; n]);
            (self.rows, self.rhs) = (vec![0.0; n], vec![0.0; dim]);
            (self.out, self.left) = (vec![0.0; dim], vec![0.0; dim]);
            (self.unknowns, self.law) = (vec![0.0; own], vec![0.0; own]);
        }
    }
}

fn put(v: &mut [f64], body: usize, six: &Vec6) {
    v[6 * body..6 * body + 6].copy_from_slice(six.as_slice());
}

impl Minimal {
    /// Gaps, and the wrenches of impulses, where these and the trial are given.
    pub(super) fn touch_as_given(&self, contacts: &[f64], h: f64, w: &mut Work) {
        if self.contacts.is_empty() || contacts.is_empty() {
            return;
        }
        w.touching.memory.read(contacts, &self.contacts);
        self.touch_at(h, w);
    }

    /// The same of those at hand.
    pub(super) fn touch_at(&self, h: f64, w: &mut Work) {
        self.lead_touching(w, h);
        let mut rows = std::mem::take(&mut w.touching.rows);
        rows.fill(0.0);
        self.with_contacts(w, |contacts, view, memory| {
            contacts.evaluate(view, memory, &mut rows);
        });
        for (node, k) in self.nodes.iter().zip(&mut w.knot) {
            k.touch = to_world(&w.poses[node.body].r, &-six(&rows, node.body));
        }
        w.touching.rows = rows;
    }

    /// The contacts' part of the matrix at a solution, and how they answer.
    pub(super) fn linearize_contacts(&self, h: f64, w: &mut Work) {
        if self.contacts.is_empty() {
            return;
        }
        self.contacts.relax(&mut w.touching.memory);
        self.assemble_touching(w, h);
        w.touching.acts = self.contacts.answers(&w.touching.memory);
        self.with_contacts(w, |contacts, view, memory| contacts.respond(view, memory));
    }

    /// What is known of a step that was linearized.
    pub(super) fn certificate(&self, h: f64, w: &mut Work) -> Certificate {
        let mut rows = std::mem::take(&mut w.rows);
        self.residual_rows(w, h, &mut rows);
        // of a NaN no residual is small
        let residual = (rows.iter()).fold(0.0, |m: f64, r| if r.abs() <= m { m } else { r.abs() });
        w.rows = rows;
        let memory = &mut w.touching.memory;
        let (off_centre, beside) = (
            self.contacts.off_centre(memory),
            self.contacts.beside(memory),
        );
        let cut = |a: &Actuator| a.effort_limits != Range::OPEN;
        let is_on_path = !self.contacts.is_empty() || self.mechanism.actuators.iter().any(cut);
        Certificate {
            residual: residual.max(beside),
            kappa: if is_on_path {
                memory.path_of_derivatives()
            } else {
                0.0
            },
            has_gaps: self.contacts.has_gaps(),
            fallbacks: usize::from(w.touching.has_unknown_impulses),
            off_centre,
            ..Certificate::default()
        }
    }

    /// Of a step, or read-out, that is solved.
    pub(super) fn stage_of_solved(&self, w: &Work) -> Stage {
        match self.contacts.answers(&w.touching.memory) {
            true => Stage::Solved,
            false => Stage::Off,
        }
    }

    /// What displacements at the knot, and as rates behind it, are to contacts: adds what these change of the bodies' rows.
    pub(super) fn push_touching(&self, w: &mut Work, l: &mut Linear, d: &Inputs) {
        if l.touching.stage == Stage::Off {
            return;
        }
        let mut t = std::mem::take(&mut l.touching);
        t.fit(self);
        let h = l.at.h;
        let longer = over(d.h, h);
        for (i, node) in self.nodes.iter().enumerate() {
            let (b, to, flow) = (node.body, &w.trial[i], &l.flow[i]);
            let (r, law) = (&w.poses[b].r, &w.knot[i].law);
            put(&mut t.inputs.x, b, &to_body(r, &flow.z));
            let rates = flow.w[1];
            let mut v = velocity((r, law), to, h, &rates);
            let turning = law.from_chord(&to.omega, h, to.scalar);
            let omega = r.tr_mul(&turning);
            for c in 0..3 {
                v[c] -= to.velocity[c] * longer;
                v[3 + c] -= omega[c] * longer;
            }
            put(&mut t.velocities, b, &v);
            if h != 0.0 {
                // of what is solved, while velocities are held
                let moves = match t.stage {
                    Stage::Given => (rates.0 * h, rates.1 * h),
                    _ => (
                        to.velocity * d.h,
                        law.end_by_interval(&turning, h, to.scalar, d.h),
                    ),
                };
                let end = (flow.z.0 + moves.0, flow.z.1 + moves.1);
                put(&mut t.end, b, &to_body(&w.touching.next[b].r, &end));
            }
        }
        t.inputs.p.copy_from_slice(&d.p);
        (t.inputs.h, t.inputs.h_prev) = (d.h, d.h_prev);
        t.rows.fill(0.0);
        let stage = t.stage;
        self.with_contacts(w, |contacts, view, memory| {
            contacts.couple(view, memory);
            if stage == Stage::Given {
                let own = (&t.velocities[..], &t.unknowns[..]);
                let rows = (&mut t.rows[..], &mut t.law[..]);
                contacts.push_unsolved(view, memory, &t.inputs, (&t.end, own), rows);
            } else {
                contacts.push(view, memory, &t.inputs, &t.end, &mut t.rows);
                contacts.push_flow(memory, &t.velocities);
            }
        });
        for (i, node) in self.nodes.iter().enumerate() {
            let flow = &mut l.flow[i];
            add(
                &mut flow.change,
                &to_world(&w.poses[node.body].r, &six(&t.rows, node.body)),
            );
            // torques turn with their bodies
            flow.change.1 -= flow.z.1.cross(&w.knot[i].touch.1);
        }
        l.touching = t;
    }

    /// Solves for rates of displacement behind the knot, `linear.rho[1]`, and for the change of the contacts' unknowns.
    pub(super) fn solve_touching(&self, w: &mut Work, l: &mut Linear, out: &mut Outputs) {
        let t = &mut l.touching;
        let first = self.bodies();
        t.rhs[..first].fill(0.0);
        t.rhs[first..].copy_from_slice(&l.rows);
        let mut stepping = self.stepping(l.at.h, w);
        (self.contacts).solve_linearized(&mut stepping, Side::Push, &t.rhs, &mut t.out);
        if !self.gears.is_empty() {
            // the impulses are what the solution leaves
            let stepping = Stepping {
                exerts: true,
                ..stepping
            };
            t.left.copy_from_slice(&t.rhs);
            (self.contacts).leave(&stepping, Side::Push, &t.rhs, &t.out, &mut t.left);
            let (rows, answers) = (&mut t.left[first..], &mut w.border.answers);
            (self.gears).reduce(&w.model, rows, |gear, mu| answers[gear] = mu);
        }
        t.out.iter_mut().for_each(|v| *v = -*v);
        let each = l.rho[1].iter_mut().zip(&t.out[first..]);
        each.for_each(|(rho, by)| *rho += by);
        let own = self.beyond_rates_mut(&mut out.y).0;
        self.contacts.push_unknowns(&w.touching.memory, &t.out, own);
    }

    pub(super) fn stepping<'a>(&'a self, h: f64, w: &'a mut Work) -> Stepping<'a> {
        Stepping {
            system: self,
            w,
            h,
            by_ends: true,
            exerts: false,
        }
    }

    /// The transpose: from adjoints of rates of displacement, in `linear.rho[1]`, and of the contacts' unknowns, none of a
    /// read-out, multipliers into `linear.lambda`.
    pub(super) fn solve_touching_back(&self, w: &mut Work, l: &mut Linear, y: &[f64]) {
        let t = &mut l.touching;
        t.fit(self);
        let first = self.bodies();
        t.rhs[..first].fill(0.0);
        self.with_contacts(w, |contacts, view, memory| {
            contacts.couple(view, memory);
            contacts.pull_unknowns(memory, y, &mut t.rhs);
        });
        t.rhs[first..].copy_from_slice(&l.rho[1]);
        for (node, flow) in self.nodes.iter().zip(&l.flow) {
            // of a read-out
            let (x, turn) = &flow.w[1];
            if *x != Vec3::zeros() || *turn != Vec3::zeros() {
                let r = &w.poses[node.body].r;
                let own = six(&t.rhs, node.body) + to_body(r, &flow.w[1]);
                put(&mut t.rhs, node.body, &own);
            }
        }
        let mut stepping = self.stepping(l.at.h, w);
        (self.contacts).solve_linearized(&mut stepping, Side::Pull, &t.rhs, &mut t.out);
        self.certify_solve(l.at.h, w, &t.rhs, &t.out);
        for (to, lambda) in l.lambda.iter_mut().zip(&t.out[first..]) {
            *to = -lambda;
        }
    }

    /// [`Minimal::push_residual`] of equations whose unknowns are given: changes of contacts' unknowns, and of their law's rows.
    pub(super) fn push_given(
        &self,
        w: &mut Work,
        l: &mut Linear,
        d: &Inputs,
        unknowns: &[f64],
        law: &mut [f64],
    ) {
        let is_touching = self.stage_of_solved(w) == Stage::Solved;
        if is_touching {
            let t = &mut l.touching;
            t.fit(self);
            t.stage = Stage::Given;
            t.unknowns.copy_from_slice(unknowns);
        }
        self.push_residual(w, l, d);
        if is_touching {
            law.copy_from_slice(&l.touching.law);
            l.touching.stage = Stage::Off;
        }
    }

    /// Gaps at the end of the step, and what of contacts is differentiated where their unknowns are given.
    pub(super) fn hold_contacts(&self, w: &mut Work, law: &mut [f64]) {
        self.with_contacts(w, |contacts, view, memory| {
            contacts.leave_unsolved(view, memory, law);
            contacts.hold(view, memory);
        });
    }

    /// [`Minimal::pull_residual`] of equations whose unknowns are given: adds the adjoints of contacts' unknowns, from those of their
    /// law's rows, none where there are none.
    pub(super) fn pull_given(
        &self,
        w: &mut Work,
        l: &mut Linear,
        law: &[f64],
        out: &mut Inputs,
        unknowns: &mut [f64],
    ) {
        let is_touching = self.stage_of_solved(w) == Stage::Solved;
        if is_touching {
            let t = &mut l.touching;
            t.fit(self);
            t.stage = Stage::Given;
            t.law.fill(0.0);
            t.law[..law.len()].copy_from_slice(law);
            self.hold_contacts(w, &mut t.unknowns);
            t.unknowns.fill(0.0);
        }
        self.pull_residual(w, l, out);
        if is_touching {
            l.touching.stage = Stage::Off;
            for (to, by) in unknowns.iter_mut().zip(&l.touching.unknowns) {
                *to += by;
            }
        }
    }

    /// [`Minimal::certify_solve`] of what a recursion has left.
    pub(super) fn certify_recursion(&self, w: &mut Work, l: &Linear) {
        if w.certificate.is_none() {
            return;
        }
        let (mut rhs, mut x) = (vec![0.0; self.dimension()], vec![0.0; self.dimension()]);
        let first = self.bodies();
        for (node, moves) in self.nodes.iter().zip(&w.wrenches) {
            put(&mut x, node.body, &-to_body(&w.poses[node.body].r, moves));
        }
        rhs[first..].copy_from_slice(&l.rho[1]);
        (x[first..].iter_mut().zip(&l.lambda)).for_each(|(x, lambda)| *x = -lambda);
        self.certify_solve(l.at.h, w, &rhs, &x);
    }

    /// Where it was asked for, what a solve of a pull leaves of its right-hand side, relative.
    fn certify_solve(&self, h: f64, w: &mut Work, rhs: &[f64], x: &[f64]) {
        let Some(worst) = w.certificate else {
            return;
        };
        let mut left = rhs.to_vec();
        let stepping = self.stepping(h, w);
        if self.contacts.answers(stepping.contacts()) {
            (self.contacts).leave(&stepping, Side::Pull, rhs, x, &mut left);
        } else {
            stepping.leave(x, &mut left, true);
            stepping.settle(&mut left, true);
        }
        // of a NaN no residual is small
        let largest = |v: &[f64]| {
            let each = v
                .iter()
                .map(|v| if v.is_nan() { f64::INFINITY } else { v.abs() });
            each.fold(0.0, f64::max)
        };
        let size = largest(rhs);
        let relative = if size > 0.0 {
            largest(&left) / size
        } else {
            0.0
        };
        w.certificate = Some(worst.max(relative));
    }

    /// Adds the adjoints of displacements, and of parameters and intervals, by virtual displacements in `linear.flow.change`.
    pub(super) fn pull_touching(&self, w: &mut Work, l: &mut Linear, out: &mut Inputs) {
        if l.touching.stage == Stage::Off {
            return;
        }
        let mut t = std::mem::take(&mut l.touching);
        t.fit(self);
        let h = l.at.h;
        for (node, flow) in self.nodes.iter().zip(&l.flow) {
            put(
                &mut t.out,
                node.body,
                &to_body(&w.poses[node.body].r, &flow.change),
            );
        }
        t.inputs.clear();
        t.end.fill(0.0);
        t.velocities.fill(0.0);
        let (stage, first) = (t.stage, self.bodies());
        self.with_contacts(w, |contacts, view, memory| {
            let mu = &t.out[..first];
            if stage == Stage::Given {
                let own = (&mut t.velocities[..], &mut t.unknowns[..]);
                let all = (&mut t.inputs, own);
                contacts.pull_unsolved(view, memory, (mu, &t.law), &mut t.end, all);
            } else {
                contacts.pull(view, memory, mu, &mut t.end, &mut t.inputs);
                contacts.pull_flow(memory, &mut t.velocities);
            }
        });
        (out.p.iter_mut().zip(&t.inputs.p)).for_each(|(to, by)| *to += by);
        out.h_prev += t.inputs.h_prev;
        let mut longer = 0.0;
        for (i, node) in self.nodes.iter().enumerate() {
            let (b, to) = (node.body, &w.trial[i]);
            let (r, law) = (&w.poses[b].r, &w.knot[i].law);
            let flow: &mut Flow = &mut l.flow[i];
            add(&mut flow.z, &to_world(r, &six(&t.inputs.x, b)));
            let v = six(&t.velocities, b);
            add(&mut flow.w[1], &velocity_back((r, law), to, h, &v));
            let turning = law.from_chord(&to.omega, h, to.scalar);
            let omega = r.tr_mul(&turning);
            for c in 0..3 {
                longer -= v[c] * to.velocity[c] + v[3 + c] * omega[c];
            }
            if h != 0.0 {
                let end = to_world(&w.touching.next[b].r, &six(&t.end, b));
                add(&mut flow.z, &end);
                match stage {
                    Stage::Given => add(&mut flow.w[1], &(end.0 * h, end.1 * h)),
                    _ => {
                        let turns = law.end_by_interval_transposed(&turning, h, to.scalar, &end.1);
                        out.h += end.0.dot(&to.velocity) + turns;
                    }
                }
            }
        }
        if h != 0.0 {
            out.h += t.inputs.h + longer / h;
        }
        l.touching = t;
    }
}
