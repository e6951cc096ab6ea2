//! Newton's method for the step, and the read-out of velocities at a knot.

use super::assembly::{REGULARIZATION, vec3};
use super::singular::{SINGULAR_READOUT, SOFTNESS};
use super::{Maximal, Work};
use crate::contact::{AfterBlow, Told};
use crate::dynamics::{Knot, KnotPoint, Place, StepError, StepFailure, StepStats};
use crate::spatial::{RotationLaw, Vec3};

/// Residual below which the solution of Newton's step is refined where there are loops: before, the regularization's
/// error is small beside Newton's own.
const REFINED: f64 = 1e-5;
/// Part of a direction that refinement changed above which one sweep leaves an error that spoils Newton's method: its square.
const UNREFINED: f64 = 0.1;
/// Factor on a regularization that cancels an eigenvalue: that is a thousand times the new one, and rounding, at 1e-16 of the diagonal,
/// still a ten-thousandth of it.
const WEAKER: f64 = 1e-3;
/// What the factors of Newton's last step leave of a residual, in multiples of what that step left: twice for a quadratic, and
/// the rows of a residual differ in unit.
const LEFT: f64 = 4.0;
/// Part of rounding that does not add up over 1e5 steps.
const UNSEEN: f64 = 1e-2;
/// Newton's steps are halved no further.
const SHORTEST: f64 = 1e-4;

/// Ratio of the last correction of the bodies to the residual, both as displacements, above which the step ends near a flat
/// position. It is 1 to 10 in regular motion, and the inverse of the distance from flat near such a position.
const AMPLIFIED: f64 = 30.0;
/// Maximum number of iterations that reduce such a residual to rounding. Convergence is quadratic: one is the rule.
const SETTLING: usize = 3;

impl Maximal {
    /// Solves the step; see [`crate::dynamics::Step::step`].
    pub(super) fn solve_step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.contacts.recall(&mut w.contacts, &[]);
        self.prepare(at.step(), x, u, w)?;
        Self::forget_blow(w);
        let mut stats = self.solve_prepared(w, y)?;
        let mut strikes = self.strikes(w);
        while strikes {
            self.strike(at, x, u, w)?;
            stats = stats.and(&self.solve_prepared(w, y)?);
            // each time more does
            strikes = match self.strikes_after_blow(w) {
                AfterBlow::Nothing => false,
                AfterBlow::Strikes => true,
                AfterBlow::Stops if w.contacts.may_divide() => {
                    return Err(self.failure(StepFailure::Budget, w, 0, stats.residual));
                }
                AfterBlow::Stops => false,
            };
        }
        self.write_solution(w, next, y);
        Ok(stats)
    }

    /// Solves the step where it is told what bounces at its knot and what does not touch.
    pub(super) fn solve_told(
        &self,
        seen: &KnotPoint,
        told: &Told,
        w: &mut Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.contacts.tell(&w.model, &mut w.contacts, told.how);
        self.prepare(seen.at.step(), seen.x, seen.u, w)?;
        self.contacts.tell_struck(&mut w.contacts, told.struck);
        Self::forget_blow(w);
        if self.contacts.is_to_strike(&w.contacts) {
            self.strike(&seen.at, seen.x, seen.u, w)?;
        }
        if told.keeps {
            self.take_places(y, w);
        }
        let stats = self.solve_prepared(w, y)?;
        self.write_solution(w, next, y);
        Ok(stats)
    }

    fn write_solution(&self, w: &Work, next: &mut [f64], y: &mut [f64]) {
        let (core, contacts) = y.split_at_mut(w.newton.trial.len());
        core.copy_from_slice(&w.newton.trial);
        w.contacts.write(contacts, &self.contacts);
        self.write_blow(w, y);
        self.write_next(w, next);
    }

    /// Solves the step that was prepared.
    fn solve_prepared(&self, w: &mut Work, y: &mut [f64]) -> Result<StepStats, StepError> {
        let mut result = self.attempt(w, y);
        if w.model.may_be_redundant() {
            result = self.treat_singular(w, y, result);
        }
        result
    }

    pub(super) fn attempt(&self, w: &mut Work, y: &[f64]) -> Result<StepStats, StepError> {
        if self.contacts.is_empty() {
            self.newton_from_guess(w, y)
        } else {
            self.solve_contacts(w, y)
        }
    }

    /// Newton's method from the old velocities and the impulses of the step before.
    fn newton_from_guess(&self, w: &mut Work, y: &[f64]) -> Result<StepStats, StepError> {
        let n = 6 * self.body_count();
        w.newton.trial[n..].copy_from_slice(&y[n..]);
        self.start_from_old_velocities(w);
        self.newton(w)
    }

    /// The velocities of the interval before, inside the domain.
    pub(super) fn start_from_old_velocities(&self, w: &mut Work) {
        let n = 6 * self.body_count();
        w.newton.trial[..n].copy_from_slice(&w.knot.before);
        for b in 0..self.body_count() {
            let omega = &mut w.newton.trial[6 * b + 3..6 * b + 6];
            let law = &w.model.bodies[b].rotation;
            let beyond = law.beyond_start(&Vec3::from_column_slice(omega), w.knot.at.h());
            if beyond > 1.0 {
                // a longer interval than the one before: start inside the domain
                omega.iter_mut().for_each(|o| *o /= beyond);
            }
            self.coast(w, b);
        }
    }

    /// Starts a body from the velocity of its flight under the forces at the knot, where its law has that in closed form: from the old
    /// velocity of a fast turn Newton's method would not find it.
    fn coast(&self, w: &mut Work, b: usize) {
        let RotationLaw::Free(law) = &w.model.bodies[b].rotation else {
            return;
        };
        let (base, force) = (
            vec3(&w.knot.base, 6 * b + 3),
            vec3(&w.knot.force, 6 * b + 3),
        );
        let momentum = base + force * w.knot.at.half();
        let omega = law.velocity_of_momentum(&momentum, w.knot.at.h());
        w.newton.trial[6 * b + 3..6 * b + 6].copy_from_slice(omega.as_slice());
    }

    /// Solves `evaluate = 0` from `w.newton.trial`.
    pub(super) fn newton(&self, w: &mut Work) -> Result<StepStats, StepError> {
        let mut stats = StepStats::default();
        let tolerance = self.options.tolerance;
        let (mut norm, mut row, mut floor) = self.evaluate(w);
        // what a start leaves of a small residual, at every step, would add up
        while norm > tolerance.max(floor) || norm.is_nan() || stats.iterations == 0 && norm > floor
        {
            if stats.iterations == self.options.max_iterations {
                return Err(self.failure(StepFailure::NotConverged, w, row, norm));
            }
            stats.iterations += 1;
            let (before, refined) = (norm, w.model.may_be_redundant() && norm < REFINED);
            self.assemble_and_keep(w, refined);
            if let Err(f) = self.try_factor(w) {
                if norm <= tolerance {
                    break;
                }
                return Err(self.failed(f, w));
            }
            stats.fallbacks += usize::from(w.matrix.uses_fallback);
            self.newton_direction(w, refined);
            w.newton.y.copy_from_slice(&w.newton.trial);
            let mut length = 1.0;
            loop {
                for ((t, y), d) in w
                    .newton
                    .trial
                    .iter_mut()
                    .zip(&w.newton.y)
                    .zip(&w.newton.delta)
                {
                    *t = y - length * d;
                }
                if let Some(body) = self.outside_domain(w) {
                    length *= 0.5;
                    if length < SHORTEST {
                        return Err(self.failure(StepFailure::Domain, w, 6 * body + 3, norm));
                    }
                    continue;
                }
                let (trial, trial_row, trial_floor) = self.evaluate(w);
                // the residual mixes units, so only a clear increase is refused; NaN is
                if trial < 2.0 * norm || trial <= tolerance.max(trial_floor) {
                    (norm, row, floor) = (trial, trial_row, trial_floor);
                    break;
                }
                length *= 0.5;
                if length < SHORTEST {
                    return Err(self.failure(StepFailure::NotConverged, w, row, norm));
                }
            }
            // where the same factors are enough, and with `polish` take the residual to rounding
            let (rate, enough) = (LEFT * norm / before, tolerance.max(floor));
            if norm * rate.powi(2) <= enough && norm * rate.powi(3) <= UNSEEN * floor {
                for _ in 0..2 {
                    if norm > enough {
                        (norm, row, floor) = self.again(w, (norm, row, floor), refined);
                    }
                }
            }
        }
        stats.residual = norm;
        (stats.turned, stats.turn) = (w.model).largest_chord_turn(&w.newton.trial, w.knot.at.h());
        if stats.iterations > 0 {
            self.polish(w);
            if w.model.may_be_redundant() {
                self.settle(w, &mut stats);
            }
        }
        Ok(stats)
    }

    /// Continues Newton's method to rounding if the step ends near a flat position of a loop. There, an error in the velocities as large
    /// as the distance from flat leaves a residual below the tolerance. The correction of [`Self::polish`] reveals it: it is large
    /// compared with the residual.
    fn settle(&self, w: &mut Work, stats: &mut StepStats) {
        w.newton.ends_flat = self.is_amplified(w);
        if !w.newton.ends_flat {
            return;
        }
        let (mut norm, _, floor) = self.evaluate(w);
        for _ in 0..SETTLING {
            if norm <= floor {
                break;
            }
            w.newton.y.copy_from_slice(&w.newton.trial);
            self.assemble_and_keep(w, true);
            if self.try_factor(w).is_err() {
                break;
            }
            self.newton_direction(w, true);
            stats.iterations += 1;
            for (t, d) in w.newton.trial.iter_mut().zip(&w.newton.delta) {
                *t -= d;
            }
            let is_inside = self.outside_domain(w).is_none();
            let next = if is_inside {
                self.evaluate(w).0
            } else {
                f64::INFINITY
            };
            // a NaN is no improvement
            if next >= norm || next.is_nan() {
                w.newton.trial.copy_from_slice(&w.newton.y);
                self.evaluate(w);
                break;
            }
            norm = next;
        }
        stats.residual = norm;
    }

    /// Is the last Newton direction, as a displacement of the bodies, more than [`AMPLIFIED`] times its residual?
    fn is_amplified(&self, w: &Work) -> bool {
        let (n, h) = (6 * self.body_count(), w.knot.at.h().abs());
        let most = |all: &[f64]| all.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
        let mut residual = most(&w.newton.residual[n..]);
        for (b, body) in w.model.bodies.iter().enumerate() {
            let (p, l) = (
                vec3(&w.newton.residual, 6 * b),
                vec3(&w.newton.residual, 6 * b + 3),
            );
            let turn = (w.inverse_inertia[b] * l).norm();
            residual = residual.max(h * turn.max(p.norm() / body.mass));
        }
        h * most(&w.newton.delta[..n]) > AMPLIFIED * residual
    }

    /// One more step of Newton's method with the factors at hand; goes back where it does not halve the residual.
    fn again(&self, w: &mut Work, here: (f64, usize, f64), refined: bool) -> (f64, usize, f64) {
        self.newton_direction(w, refined);
        w.newton.y.copy_from_slice(&w.newton.trial);
        for (t, d) in w.newton.trial.iter_mut().zip(&w.newton.delta) {
            *t -= d;
        }
        if self.outside_domain(w).is_none() {
            let there = self.evaluate(w);
            if there.0 < 0.5 * here.0 {
                return there;
            }
        }
        w.newton.trial.copy_from_slice(&w.newton.y);
        self.evaluate(w)
    }

    /// Takes out what the tolerance left, with the factors at hand: it has one sign at every step, and momentum would drift by
    /// the sum of it.
    fn polish(&self, w: &mut Work) {
        self.newton_direction(w, false);
        let h = w.knot.at.h();
        for (t, d) in w.newton.trial.iter_mut().zip(&w.newton.delta) {
            *t -= d;
        }
        for b in 0..self.body_count() {
            (w.end.scalar[b], w.end.poses[b]) = Self::led(w, b, h);
        }
    }

    /// `w.newton.delta = K^-1 residual`.
    pub(super) fn newton_direction(&self, w: &mut Work, refined: bool) {
        let mut delta = std::mem::take(&mut w.newton.delta);
        let residual = std::mem::take(&mut w.newton.residual);
        self.solve_once(w, &residual, &mut delta, false);
        if refined {
            self.refine(w, &residual, &mut delta, false);
            if self.is_cancelled(w, &delta) {
                self.weaken(w, &residual, &mut delta);
            }
        }
        (w.newton.delta, w.newton.residual) = (delta, residual);
    }

    /// Does the regularization cancel an eigenvalue of the constraints' Schur complement? Refinement then changes a large part of
    /// the direction `delta`. If a loop moves from the angle `s` before its flat position to `s'` after it, the Schur complement has an eigenvalue
    /// proportional to `-s s'`. A chain of n loops has n such eigenvalues; the smallest is about `1/n^2` of the largest.
    fn is_cancelled(&self, w: &Work, delta: &[f64]) -> bool {
        w.matrix.regularization == REGULARIZATION
            && !w.matrix.uses_fallback
            && self.corrected(w, delta) > UNREFINED
    }

    /// Solves for the direction again, and all that follows of the step, with a regularization that is small beside such an eigenvalue.
    fn weaken(&self, w: &mut Work, residual: &[f64], delta: &mut [f64]) {
        w.matrix.regularization *= WEAKER;
        self.assemble_and_keep(w, true);
        if self.try_factor(w).is_err() {
            // seen by the residual
            delta.fill(f64::NAN);
            return;
        }
        self.solve_once(w, residual, delta, false);
        self.refine(w, residual, delta, false);
    }

    pub(super) fn outside_domain(&self, w: &Work) -> Option<usize> {
        let h = w.knot.at.h();
        // a NaN is outside, too
        (0..self.body_count()).find(|b| {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            !w.model.bodies[*b].rotation.contains(&omega, h)
        })
    }

    /// The state at the next knot, from the solution.
    pub(super) fn write_next(&self, w: &Work, next: &mut [f64]) {
        for (b, pose) in w.end.poses.iter().enumerate() {
            let out = &mut next[13 * b..13 * b + 13];
            out[..3].copy_from_slice(pose.x.as_slice());
            // unit by construction; one Newton step on the norm keeps rounding from adding up
            let q = pose.q.into_inner();
            let q = q * (1.5 - 0.5 * q.norm_squared());
            out[3..7].copy_from_slice(&[q.w, q.i, q.j, q.k]);
            out[7..].copy_from_slice(&w.newton.trial[6 * b..6 * b + 6]);
        }
        let angles = &mut next[13 * self.body_count()..];
        for ((i, angle), &(joint, direction)) in angles.iter_mut().enumerate().zip(&self.windings) {
            let j = &w.model.joints[joint];
            let (a, b) = w.model.ends(j, &w.end.poses);
            *angle = j.coordinate(direction, &j.relative(a, b), w.knot.winding[i]);
        }
    }

    /// Velocities at the knot, second order: the step's equations without the interval after it. What touches are the points of rims of
    /// the step from the knot whose unknowns are `y`, if it is known. They are left in `w.newton.trial`, six per
    /// body; `w.newton.trial` also holds the impulses that project them onto the joints, and the factors are those of the
    /// read-out's matrix.
    pub(super) fn readout(
        &self,
        at: Place,
        (x, u, y): (&[f64], &[f64], &[f64]),
        w: &mut Work,
    ) -> Result<(), StepError> {
        self.prepare(at, x, u, w)?;
        self.take_places(y, w);
        self.solve_readout(w, y)?;
        if w.model.may_be_redundant() && self.doubts(w, SINGULAR_READOUT) {
            w.matrix.softness = SOFTNESS;
            self.solve_readout(w, y)?;
        }
        Ok(())
    }

    fn solve_readout(&self, w: &mut Work, y: &[f64]) -> Result<(), StepError> {
        if !self.contacts.is_empty() && w.knot.at.before().is_some() {
            return self.readout_contacts(w, y);
        }
        let n = 6 * self.body_count();
        w.newton.trial[..n].copy_from_slice(&w.knot.before);
        w.newton.trial[n..].fill(0.0);
        self.evaluate(w);
        self.assemble(w);
        self.factor(w)?;
        // linear, with one matrix: one Newton step is exact, a second takes out the rounding of the first
        for second in [false, true] {
            if second {
                self.evaluate(w);
            }
            self.newton_direction(w, self.refines(w));
            for (t, d) in w.newton.trial.iter_mut().zip(&w.newton.delta) {
                *t -= d;
            }
        }
        Ok(())
    }
}
