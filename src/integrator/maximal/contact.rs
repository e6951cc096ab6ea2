//! Contacts, joint limits and joint friction as part of the step.

use super::assembly::vec3;
use super::work::{AtEnd, AtKnot};
use super::{Maximal, Work};
use crate::contact::{Failed, Memory, NewtonSystem, Side, Solver, View};
use crate::dynamics::{Inputs, StepError, StepStats};
use crate::mechanism::{Actuator, Mechanism, Range};
use crate::spatial::RotationLaw;

/// What refined solves leave of a right-hand side, relative, from which the blocks have lost too many digits: common are
/// 1e-14, and a gradient of many steps wants six.
const STALLED: f64 = 1e-10;

/// A step in its memory.
struct Stepping<'a> {
    system: &'a Maximal,
    w: &'a mut Work,
}

impl NewtonSystem for Stepping<'_> {
    fn view(&self) -> View<'_> {
        self.system.view(self.w)
    }

    fn contacts(&self) -> &Memory {
        &self.w.contacts
    }

    fn contacts_mut(&mut self) -> &mut Memory {
        &mut self.w.contacts
    }

    fn trial(&mut self) -> &mut [f64] {
        &mut self.w.newton.trial
    }

    fn begin(&mut self, out: &mut [f64]) -> bool {
        let (w, n) = (&*self.w, 6 * self.system.body_count());
        let (half, force) = (w.knot.at.half(), &w.knot.force);
        out[..n].copy_from_slice(&w.knot.before);
        out[n..].fill(0.0);
        for (b, body) in w.model.bodies.iter().enumerate() {
            let turn = w.inverse_inertia[b] * vec3(force, 6 * b + 3) * half;
            for i in 0..3 {
                out[6 * b + i] += half * force[6 * b + i] / body.mass;
                out[6 * b + 3 + i] += turn[i];
            }
            if let RotationLaw::Free(law) = &body.rotation {
                let momentum = vec3(&w.knot.base, 6 * b + 3) + vec3(force, 6 * b + 3) * half;
                let omega = law.velocity_of_momentum(&momentum, w.knot.at.h());
                out[6 * b + 3..6 * b + 6].copy_from_slice(omega.as_slice());
            }
        }
        true
    }

    fn begin_jointly(&mut self, out: &mut [f64]) -> bool {
        let (s, w) = (self.system, &mut *self.w);
        let n = 6 * s.body_count();
        if out.len() == n {
            return false;
        }
        s.start_from_old_velocities(w);
        w.newton.trial[n..].fill(0.0);
        let idle = w.contacts.replace_idle(true);
        s.evaluate(w);
        s.assemble_and_keep(w, false);
        let mut done = s.try_factor(w).is_ok();
        if done {
            s.newton_direction(w, false);
            let each = w.newton.trial.iter().zip(&w.newton.delta);
            for (o, (t, d)) in out.iter_mut().zip(each) {
                *o = t - d;
                done &= o.is_finite();
            }
        }
        w.contacts.replace_idle(idle);
        done
    }

    fn begin_at(&mut self, y: &[f64], out: &mut [f64]) -> bool {
        let n = 6 * self.system.body_count();
        let known = y[..n].iter().any(|v| *v != 0.0);
        let velocities = if known { &y[..n] } else { self.view().before };
        out[..n].copy_from_slice(velocities);
        out[n..].copy_from_slice(&y[n..]);
        known
    }

    fn residual(&self) -> &[f64] {
        &self.w.newton.residual
    }

    fn worst(&self) -> [(f64, usize); 2] {
        let (view, rows) = (self.view(), &self.w.newton.residual);
        let mut bodies = (0.0_f64, 0);
        let each = view.model.bodies.iter().zip(self.system.contacts.sizes());
        for (b, (body, size)) in each.enumerate() {
            for i in 0..6 {
                let unit = if i < 3 { 1.0 } else { 1.0 / size };
                let r = (rows[6 * b + i] * unit / body.mass).abs();
                if r > bodies.0 || r.is_nan() {
                    bodies = (r, 6 * b + i);
                }
            }
        }
        let (n, length) = (6 * view.poses.len(), view.at.scale());
        let mut constraints = (0.0, n);
        for (i, r) in rows.iter().enumerate().skip(n) {
            if r.abs() / length > constraints.0 || r.is_nan() {
                constraints = (r.abs() / length, i);
            }
        }
        [bodies, constraints]
    }

    fn evaluate(&mut self) -> (f64, usize, f64) {
        self.system.evaluate(self.w)
    }

    fn assemble(&mut self, keep: bool) {
        self.system.assemble_and_keep(self.w, keep);
    }

    fn factor(&mut self, pivots: Option<usize>) -> Result<(), Failed> {
        match pivots {
            Some(row) => self.system.factor_with_pivots(self.w, row),
            None => self.system.try_factor(self.w),
        }
    }

    fn solve(&mut self, rhs: &[f64], out: &mut [f64], transposed: bool) {
        self.system.solve_once(self.w, rhs, out, transposed);
    }

    fn has_pivots(&self) -> bool {
        self.w.matrix.uses_fallback
    }

    fn leave(&self, x: &[f64], rows: &mut [f64], transposed: bool) {
        let (symbolic, bare) = (&self.system.symbolic, self.w.contacts.bare());
        if transposed {
            symbolic.subtract_product_transposed(bare, x, rows);
        } else {
            symbolic.subtract_product(bare, x, rows);
        }
    }
}

impl Maximal {
    pub(super) fn view<'a>(&'a self, w: &'a Work) -> View<'a> {
        let moving = (&w.knot, &w.end, &w.newton.trial[..]);
        self.view_of(&w.model, moving)
    }

    fn view_of<'a>(
        &'a self,
        model: &'a Mechanism,
        (knot, end, trial): (&'a AtKnot, &'a AtEnd, &'a [f64]),
    ) -> View<'a> {
        View {
            model,
            at: knot.at,
            poses: &knot.poses,
            next: &end.poses,
            scalar: &end.scalar,
            relative: &knot.relative,
            windings: (&self.winding_of, &knot.winding),
            before: &knot.before,
            trial,
        }
    }

    /// The step as contacts see it, what is computed for them, the residual and the matrix.
    pub(super) fn split<'a>(
        &'a self,
        w: &'a mut Work,
    ) -> (View<'a>, &'a mut Memory, &'a mut [f64], &'a mut [f64]) {
        let moving = (&w.knot, &w.end, &w.newton.trial[..]);
        let view = self.view_of(&w.model, moving);
        let (residual, values) = (&mut w.newton.residual, &mut w.matrix.values);
        (view, &mut w.contacts, residual, values)
    }

    /// Everything of the contacts that is known at the knot.
    pub(super) fn prepare_contacts(&self, w: &mut Work) {
        let (view, memory, ..) = self.split(w);
        self.contacts.prepare(&view, memory);
    }

    /// Takes the points of rims that a step ended with, from its unknowns, where it was prepared anew.
    pub(super) fn take_places(&self, y: &[f64], w: &mut Work) {
        let (view, memory, ..) = self.split(w);
        self.contacts.take_places(&view, memory, y);
    }

    /// Does anything bounce at the knot of the step that was solved?
    pub(super) fn strikes(&self, w: &mut Work) -> bool {
        let (view, memory, ..) = self.split(w);
        self.contacts.strikes(&view, memory)
    }

    /// Their part of the residual.
    pub(super) fn evaluate_contacts(&self, w: &mut Work) {
        let (view, memory, residual, _) = self.split(w);
        self.contacts.evaluate(&view, memory, residual);
    }

    /// Their blocks; with `keep` the matrix is kept without them.
    pub(super) fn assemble_contacts(&self, w: &mut Work, keep: bool) {
        let (view, memory, _, values) = self.split(w);
        if keep && !self.contacts.is_empty() {
            memory.keep(values);
        }
        self.contacts.assemble(&view, memory, values);
    }

    /// Solves the step; `y` holds the unknowns of the step before.
    pub(super) fn solve_contacts(&self, w: &mut Work, y: &[f64]) -> Result<StepStats, StepError> {
        let done = self.with_solver(w, |solver| solver.solve(y));
        done.map_err(|f| self.failed(f, w))
    }

    /// The same for the read-out of velocities at a knot, from where `y` are the unknowns of a step, if it is known; leaves the matrix
    /// there factored.
    pub(super) fn readout_contacts(&self, w: &mut Work, y: &[f64]) -> Result<(), StepError> {
        let done = self.with_solver(w, |solver| solver.read_out(y));
        done.map_err(|f| self.failed(f, w))?;
        self.assemble(w);
        // the velocities are known; whoever solves with factors that failed gets no numbers
        let _ = self.try_factor(w);
        Ok(())
    }

    /// Solves with the step's matrix, linearized, for the multipliers of a pull or minus the change of the unknowns of a
    /// push; `b` of a push is without the impulses of contacts.
    pub(super) fn solve_linearized(&self, w: &mut Work, side: Side, b: &[f64], out: &mut [f64]) {
        if self.contacts.answers(&w.contacts) {
            let mut solve = |w: &mut Work| {
                let mut stepping = Stepping { system: self, w };
                self.contacts.solve_linearized(&mut stepping, side, b, out)
            };
            let left = solve(w);
            if !(left <= STALLED || w.matrix.uses_fallback) {
                self.assemble(w);
                if self.factor_with_pivots(w, 0).is_ok() {
                    solve(w);
                }
            }
        } else {
            self.solve(w, b, out, side == Side::Pull);
        }
    }

    /// What a solve of a pull through contacts leaves of its right-hand side.
    pub(super) fn left_of_pull(&self, w: &mut Work, rhs: &[f64], mu: &[f64], left: &mut [f64]) {
        let stepping = Stepping { system: self, w };
        self.contacts.leave(&stepping, Side::Pull, rhs, mu, left);
    }

    fn with_solver<T>(&self, w: &mut Work, f: impl Fn(&mut Solver<Stepping>) -> T) -> T {
        let mut stepping = Stepping { system: self, w };
        let (tolerance, most) = (self.options.tolerance, self.options.max_iterations);
        f(&mut Solver::new(
            &self.contacts,
            &mut stepping,
            tolerance,
            most,
        ))
    }

    /// Central-path parameter that derivatives are taken at, m^2/s^2; zero where nothing is on a path.
    pub(super) fn path_of_derivatives(&self, w: &Work) -> f64 {
        let cut = |a: &Actuator| a.effort_limits != Range::OPEN;
        if self.contacts.is_empty() && !self.mechanism.actuators.iter().any(cut) {
            return 0.0;
        }
        w.contacts.path_of_derivatives()
    }

    /// The contacts of a read-out, for pulls through it.
    pub(super) fn linearize_readout(&self, w: &mut Work) {
        if self.contacts.relaxes(&w.contacts) {
            self.contacts.relax(&mut w.contacts);
            self.assemble(w);
            if self.factor(w).is_err() {
                // seen by whoever uses the gradient: it is not finite
                w.matrix.values.fill(f64::NAN);
            }
        }
        self.respond_contacts(w);
    }

    /// Responses of the contacts' unknowns at the point that was linearized.
    pub(super) fn respond_contacts(&self, w: &mut Work) {
        let (view, memory, ..) = self.split(w);
        self.contacts.respond(&view, memory);
    }

    /// Derivatives of their wrenches and rates by the configuration at the knot.
    pub(super) fn couple_contacts(&self, w: &mut Work) {
        let (view, memory, ..) = self.split(w);
        self.contacts.couple(&view, memory);
    }

    /// Adds their `dr`; `zplus` is the change of the next configuration that does not come through the velocities.
    pub(super) fn push_contacts(&self, w: &mut Work, d: &Inputs, zplus: &[f64], r: &mut [f64]) {
        let (view, memory, ..) = self.split(w);
        self.contacts.push(&view, memory, d, zplus, r);
    }
}
