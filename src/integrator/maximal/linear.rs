//! Derivatives of the step by the implicit function theorem, from the step's own assembly.
//!
//! With `r(y; s, u, h-, h) = 0` and `K = dr/dy` factored at the solution, forward `dy = -K^-1 dr`, and in reverse one
//! solve with `K'` gives the multiplier `mu` whose products with `-dr/d(input)` are the inputs' adjoints. The free
//! chart holds displacements `(dx, dphi)` of all bodies, six each, then velocity changes `(dv, dw)`, six each.

use super::assembly::{add_wrench, dot, vec3};
use super::{DampedElement, Maximal, Work};
use crate::contact::Side;
use crate::dynamics::{Certificate, Inputs, Outputs, SolvedStep, StepError, StepFailure};
use crate::mechanism::{Coupling, Joint, Mechanism, Vec6};
use crate::spatial::Vec3;

/// Between two configurations on either side of a singular one the smallest eigenvalue of the constraints' Schur
/// complement is negative; where it happens to cancel the regularization, this many times as much, and then as little,
/// does not.
const OTHER_REGULARIZATIONS: [f64; 2] = [1e3, 1e-6];
/// Correction by refinement, relative, up to which regularized factors stand for the matrix.
const CORRECTED: f64 = 1e-4;

/// Six numbers of a body as a vector.
pub(super) fn six(v: &[f64], body: usize) -> Vec6 {
    Vec6::from_column_slice(&v[6 * body..6 * body + 6])
}

/// Adds six numbers to those of a body.
pub(super) fn add_six(v: &mut [f64], body: usize, d: &Vec6) {
    for (v, d) in v[6 * body..6 * body + 6].iter_mut().zip(d.iter()) {
        *v += d;
    }
}

/// Are the six numbers of a body zero?
fn is_still(v: &[f64], body: usize) -> bool {
    v[6 * body..6 * body + 6].iter().all(|v| *v == 0.0)
}

impl Maximal {
    /// Assembles and factors at a solution.
    pub(super) fn linearize_at(
        &self,
        at: &SolvedStep,
        w: &mut Work,
    ) -> Result<Certificate, StepError> {
        if let Some(element) = self.contacts.bounces_unasked(at.y) {
            return Err(StepError {
                failure: StepFailure::Unsupported,
                element: self.contacts.name(&w.model, element),
                time: at.at.t,
                residual: f64::NAN,
                message: "it bounces, at a knot and not at the instant of the impact, so that the derivative of the step is not that of the motion; say impacts = \"aligned\" under [contact] for that, or impacts = \"knots\" for this one".into(),
            });
        }
        let (residual, blow_off_centre) = self.evaluate_as_solved(at, w)?;
        let off_centre = self.contacts.off_centre(&w.contacts).max(blow_off_centre);
        let residual = residual.max(self.contacts.beside(&mut w.contacts));
        self.contacts.relax(&mut w.contacts);
        self.assemble(w);
        self.factor(w)?;
        if w.model.may_be_redundant() {
            // where the regularization cancels a singular pivot, another one does not
            for change in OTHER_REGULARIZATIONS {
                if w.matrix.uses_fallback || self.correction(w) < CORRECTED {
                    break;
                }
                w.matrix.regularization *= change;
                self.assemble(w);
                self.factor(w)?;
            }
        }
        self.turn_elements(w);
        self.respond_contacts(w);
        w.adjoint.coupled = false;
        Ok(Certificate {
            residual,
            fallbacks: usize::from(w.matrix.uses_fallback),
            kappa: self.path_of_derivatives(w),
            has_gaps: self.contacts.has_gaps(),
            smallest_pivot: (w.adjoint.certificate.is_some() && !w.matrix.uses_fallback)
                .then(|| self.symbolic.smallest_pivot(&w.matrix.values)),
            off_centre,
        })
    }

    /// Relative size of the refinement's correction on a right-hand side without structure: how far the regularized
    /// factors are from the matrix.
    fn correction(&self, w: &mut Work) -> f64 {
        let (mut b, mut x) = (
            std::mem::take(&mut w.newton.delta),
            std::mem::take(&mut w.adjoint.mu),
        );
        let n = 6 * self.body_count();
        // rows of joints are smaller by the interval
        let rows = w.knot.at.scale();
        for (i, b) in b.iter_mut().enumerate() {
            // the golden ratio's multiples spread evenly
            let spread = (0.618_033_988_749_895 * (i + 1) as f64).fract() - 0.5;
            *b = spread * if i < n { 1.0 } else { rows };
        }
        self.solve(w, &b, &mut x, false);
        let ratio = self.corrected(w, &x);
        (w.newton.delta, w.adjoint.mu) = (b, x);
        ratio
    }

    /// Size of the correction that [`Self::refine`] made last, relative to the solution `x`.
    pub(super) fn corrected(&self, w: &Work, x: &[f64]) -> f64 {
        // velocities alone: redundant impulses are not unique
        let n = 6 * self.body_count();
        let largest = |v: &[f64]| v[..n].iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        largest(&w.newton.scratch) / largest(x)
    }

    /// Derivative of one element's wrenches at the knot by the configuration there: joints first, then springs, then
    /// actuators.
    fn coupling(&self, w: &Work, element: usize) -> Coupling {
        let mut out = self.applied(w, element).unwrap_or_default();
        if let Some(Some(s)) = self.slots.get(element) {
            let j = &w.model.joints[element];
            let (a, b) = w.model.ends(j, &w.knot.poses);
            let lambda = &w.newton.trial[s.offset..s.offset + j.rows()];
            j.add_wrench_derivative(lambda, 1.0, a, b, &mut out);
        }
        out
    }

    /// The part of [`Maximal::coupling`] that is not a constraint's: `None` for joints without springs and dampers.
    pub(super) fn applied(&self, w: &Work, element: usize) -> Option<Coupling> {
        let (m, half) = (&w.model, w.knot.at.half());
        if m.joints
            .get(element)
            .is_some_and(|j| !j.has_springs() && self.damped_by[element].is_empty())
        {
            return None;
        }
        let mut out = Coupling::default();
        // dampers: the direction of their impulse turns, its size held
        let impulse = |d: usize| {
            let (d, state) = (&self.damped[d], &w.knot.damping[d]);
            -d.damping(m) * (d.law.before() * state.before + d.after(&w.knot.at) * state.after)
        };
        let (joints, springs) = (m.joints.len(), m.springs.len());
        if element < joints {
            let j = &m.joints[element];
            let (a, b) = m.ends(j, &w.knot.poses);
            if j.has_springs() {
                let winding = self.winding_of[element].map_or(0.0, |i| w.knot.winding[i]);
                j.add_spring_derivative(winding, half, a, b, &mut out);
            }
            for d in self.damped_by[element].clone() {
                let DampedElement::Joint(_, i) = self.damped[d].element else {
                    continue;
                };
                let unit = j.directions[i].unit * impulse(d);
                if j.directions[i].freedom.turns() {
                    Joint::add_torque_derivative(&unit, a, b, &mut out);
                } else {
                    j.add_force_derivative(&unit, a, b, &w.knot.relative[element], &mut out);
                }
            }
        } else if element < joints + springs {
            let s = &m.springs[element - joints];
            let tension = self.damped_by[element].clone().map(impulse).sum();
            let ends = (m.pose(&w.knot.poses, s.parent), &w.knot.poses[s.child]);
            s.add_derivative(half, tension, ends.0, ends.1, &mut out);
        } else {
            let i = element - joints - springs;
            let (parent, child) = m.driven(&m.actuators[i]);
            let ends = (m.pose(&w.knot.poses, parent), &w.knot.poses[child]);
            m.actuators[i].add_derivative(half * w.knot.control[i], &m.joints, ends, &mut out);
        }
        Some(out)
    }

    /// Computes the couplings, which are kept for all that follows.
    pub(super) fn couple(&self, w: &mut Work) {
        if !w.adjoint.coupled {
            let mut couplings = std::mem::take(&mut w.adjoint.couplings);
            for (element, c) in couplings.iter_mut().enumerate() {
                *c = self.coupling(w, element);
            }
            (w.adjoint.couplings, w.adjoint.coupled) = (couplings, true);
        }
    }

    /// Parent and child of each coupling, in their order.
    pub(super) fn coupled(m: &Mechanism) -> impl Iterator<Item = (Option<usize>, usize)> + '_ {
        let joints = m.joints.iter().map(|j| (j.parent, j.child));
        let springs = m.springs.iter().map(|s| (s.parent, s.child));
        joints
            .chain(springs)
            .chain(m.actuators.iter().map(|c| m.driven(c)))
    }

    /// `out = d z- / d(z, v-, h-)`: change of the configuration one knot back.
    fn push_back(&self, w: &Work, d: &Inputs, out: &mut [f64]) {
        let (n, h) = (6 * self.body_count(), w.knot.at.h_prev);
        for b in 0..self.body_count() {
            let omega = vec3(&w.knot.before, 6 * b + 3);
            let (dx, dphi) = (vec3(&d.x, 6 * b), vec3(&d.x, 6 * b + 3));
            let (dv, dw) = (vec3(&d.x, n + 6 * b), vec3(&d.x, n + 6 * b + 3));
            let s = w.knot.scalar[b];
            let law = &w.model.bodies[b].rotation;
            let back = law.increment(&omega, h, s);
            let longer = law.end_by_interval(&omega, -h, s, d.h_prev);
            let x = dx - dv * h - vec3(&w.knot.before, 6 * b) * d.h_prev;
            let phi = back * dphi + law.jacobian(&omega, -h, s) * dw - longer;
            out[6 * b..6 * b + 3].copy_from_slice(x.as_slice());
            out[6 * b + 3..6 * b + 6].copy_from_slice(phi.as_slice());
        }
    }

    /// Derivative of the rotation part of `z+` by a turn at the knot: `R+' R`.
    #[inline(always)]
    fn carried(&self, w: &Work, b: usize, phi: &Vec3) -> Vec3 {
        w.end.poses[b].r.tr_mul(&(w.knot.poses[b].r * phi))
    }

    /// Change of the outputs by a change of the inputs, of a step or a read-out.
    pub(super) fn push_step(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        let mut r = std::mem::take(&mut w.adjoint.mu);
        self.change(w, d, &mut r);
        let core = &mut out.y[..self.symbolic.dim()];
        self.solve_linearized(w, Side::Push, &r, core);
        core.iter_mut().for_each(|y| *y = -*y);
        let (velocities, own) = out.y.split_at_mut(self.symbolic.dim());
        (self.contacts).push_unknowns(&w.contacts, velocities, own);
        self.change_of_next(w, &out.y, &mut out.x, 6 * self.body_count());
        w.adjoint.mu = r;
    }

    /// Change `dr` of the residual by a change of the inputs, unknowns held. Leaves in `w.adjoint.zplus` the change of the next
    /// configuration that does not come through the unknowns.
    pub(super) fn change(&self, w: &mut Work, d: &Inputs, r: &mut [f64]) {
        self.couple_contacts(w);
        self.change_bodies(w, d, r);
        let zplus = std::mem::take(&mut w.adjoint.zplus);
        self.push_contacts(w, d, &zplus, r);
        w.adjoint.zplus = zplus;
    }

    /// How the rows of a joint at the velocities of a read-out turn with the configuration.
    fn push_rates(w: &Work, j: &Joint, dx: &[f64], out: &mut [f64]) {
        let (a, b) = w.model.ends(j, &w.knot.poses);
        let of = |v: &[f64], body: usize| <[f64; 6]>::from(six(v, body));
        let at = |v| (j.parent.map_or([0.0; 6], |p| of(v, p)), of(v, j.child));
        let ((va, vb), (da, db)) = (at(&w.newton.trial), at(dx));
        let mut rows = [([0.0; 6], [0.0; 6]); 6];
        j.rate_derivative(a, b, &va, &vb, &mut rows);
        let times =
            |row: &[f64; 6], d: &[f64; 6]| row.iter().zip(d).map(|(r, d)| r * d).sum::<f64>();
        for (out, (by_a, by_b)) in out.iter_mut().zip(&rows) {
            *out = times(by_a, &da) + times(by_b, &db);
        }
    }

    /// [`Maximal::change`] without contacts.
    pub(super) fn change_bodies(&self, w: &mut Work, d: &Inputs, r: &mut [f64]) {
        let (h, half) = (w.knot.at.h(), w.knot.at.half());
        let n = 6 * self.body_count();
        // a read-out has no interval behind it
        let dh = if w.knot.at.steps() { d.h } else { 0.0 };
        let half_change = 0.5 * (d.h_prev + dh);
        self.couple(w);
        let m = &w.model;
        r.fill(0.0);
        let (mut zplus, mut zminus) = (
            std::mem::take(&mut w.adjoint.zplus),
            std::mem::take(&mut w.adjoint.zminus),
        );
        if !self.damped.is_empty() {
            self.push_back(w, d, &mut zminus);
        }
        // of a group of columns most bodies stay
        let moves_at_all = dh != 0.0 || d.h_prev != 0.0;
        // the part of dz+ that does not come through the velocities, and the momenta
        for (b, body) in m.bodies.iter().enumerate() {
            let (omega, old) = (
                vec3(&w.newton.trial, 6 * b + 3),
                vec3(&w.knot.before, 6 * b + 3),
            );
            let (s, law) = (w.end.scalar[b], &body.rotation);
            if !moves_at_all && is_still(&d.x, b) && is_still(&d.x[n..], b) {
                zplus[6 * b..6 * b + 6].fill(0.0);
                continue;
            }
            let x = vec3(&d.x, 6 * b) + vec3(&w.newton.trial, 6 * b) * dh;
            let phi =
                self.carried(w, b, &vec3(&d.x, 6 * b + 3)) + law.end_by_interval(&omega, h, s, dh);
            zplus[6 * b..6 * b + 3].copy_from_slice(x.as_slice());
            zplus[6 * b + 3..6 * b + 6].copy_from_slice(phi.as_slice());
            let (dv, dw) = (vec3(&d.x, n + 6 * b), vec3(&d.x, n + 6 * b + 3));
            let (j, hp, sp) = (&body.inertia, w.knot.at.h_prev, w.knot.scalar[b]);
            let lin = dv * -body.mass;
            let mut ang = -(law.momentum_jacobian(&old, j, -hp, sp) * dw);
            if dh != 0.0 {
                ang += law.momentum_rate(&omega, j, h, s) * dh;
            }
            if d.h_prev != 0.0 {
                ang += law.momentum_rate(&old, j, -hp, sp) * d.h_prev;
            }
            for i in 0..3 {
                r[6 * b + i] += lin[i] - half_change * w.knot.force[6 * b + i];
                r[6 * b + 3 + i] += ang[i] - half_change * w.knot.force[6 * b + 3 + i];
            }
        }
        let turning = Self::coupled(m).zip(&w.adjoint.couplings);
        for ((a, b), c) in turning
            .filter(|((a, b), _)| !is_still(&d.x, *b) || a.is_some_and(|a| !is_still(&d.x, a)))
        {
            let db = six(&d.x, b);
            let (mut on_b, mut on_a) = (c.bb.0 * db, c.ab.0 * db);
            if let Some(a) = a {
                let da = six(&d.x, a);
                on_b += c.ba.0 * da;
                on_a += c.aa.0 * da;
                add_six(r, a, &-on_a);
            }
            add_six(r, b, &-on_b);
        }
        for (i, (row, du)) in w.knot.control_rows.iter().zip(&d.u).enumerate() {
            let (a, b) = m.driven(&m.actuators[i]);
            add_wrench(r, a, b, row, -half * w.knot.control_slope[i] * du);
        }
        for (e, s) in self.damped.iter().zip(&w.knot.damping) {
            let (a, b) = (e.parent, e.child);
            let [by_before, by_after] = e.after_by_intervals(&w.knot.at);
            let mut change = e.law.before()
                * (dot(&zminus, a, b, &s.before_start) + dot(&d.x, a, b, &s.before_end))
                + (by_before * d.h_prev + by_after * dh) * s.after;
            let mut after = dot(&d.x, a, b, &s.after_start);
            if w.knot.at.steps() {
                after += dot(&zplus, a, b, &s.after_end);
            }
            change += e.after(&w.knot.at) * after;
            add_wrench(r, a, b, &s.wrench, e.damping(m) * change);
        }
        for (index, j) in m.joints.iter().enumerate() {
            let Some(s) = &self.slots[index] else {
                continue;
            };
            if !w.knot.at.steps() {
                Self::push_rates(w, j, &d.x, &mut r[s.offset..s.offset + j.rows()]);
                continue;
            }
            for i in 0..j.rows() {
                let given = self.given(w, s, i) * d.h;
                let row = &w.end.rows[s.first_row + i];
                r[s.offset + i] = dot(&zplus, j.parent, j.child, row) + given;
            }
        }
        for (i, dp) in d.p.iter().enumerate().filter(|(_, dp)| **dp != 0.0) {
            self.push_parameter(w, i, *dp, r);
        }
        self.push_elements(w, (&d.x, d.h), &zplus, r);
        (w.adjoint.zplus, w.adjoint.zminus) = (zplus, zminus);
    }
}
