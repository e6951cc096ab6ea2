//! Steps from a singular position, where loops are flat, and steps that close a loop in another way.
//!
//! At a flat position a row of the joints' Jacobian vanishes along a direction `u`, and the closure reads
//! `u (u/2 - s) = 0`, with `s` the distance from flat. Two branches of closed configurations meet there. The motion continues on
//! its branch, because another one would take momentum away from it. Two things go wrong in a step.
//!
//! **The impulses have no direction.** From a knot at the distance `s` they are of the size `1/s`:
//!
//! ```text
//! rho = |d lambda| / |M^-1/2 G' lambda|,    d_r^2 = the row's own G M^-1 G'
//! ```
//!
//! is 1 to 3 in regular motion, 0.64 n in a chain of n links that hangs between two pins, and `1/s` here. Such a step is accurate
//! until `rho` approaches the inverse of the tolerance. Beyond [`DOUBTFUL`] times [`SINGULAR`] it is solved again from zero impulses,
//! with compliant joints,
//!
//! ```text
//! g(z+)_r + c h k_r lambda_r = 0,    k_r = the row's own G M^-1 G' of the mechanism as it was built
//! ```
//!
//! and the next step closes them again. The compliance loses the momentum of one interval along the singular direction, of the
//! energy `(h F)^2 / 2m`. It is therefore the last resort. Such a step has derivatives as any other. The
//! constants `k_r` keep those exact.
//!
//! **Newton's method finds the other branch.** If the end of the step is near flat, the error of the first iterate is
//! amplified by `1/s`. Impulses of ideal joints do no work, except for the discretization, and a step that leaves its branch
//! loses what a plastic impact loses:
//!
//! ```text
//! W = (V- + V+)/2 . G' lambda,    |W| / (1/2 |V+ - V-|^2_M)  =  O(h |w|) in regular motion, 1 in a jump
//! ```
//!
//! Such a step, and one that ends near flat, is solved again from a start that closes the loops on the branch of the knot.
//! If both jump, joints are compliant if the knot is near flat; otherwise the step fails with [`StepFailure::Branch`].

use super::{JointSlots, Maximal, Work};
use crate::dynamics::{SolvedStep, StepError, StepFailure, StepStats};
use crate::integrator::swing::energy;
use crate::mechanism::add_wrench;
use crate::spatial::Vec3;

/// `c`: joints open by about `c` times what the impulses would do over the interval. A hundredth opens them ten times as far
/// and a ten-thousandth works as well.
pub(super) const SOFTNESS: f64 = 1e-3;
/// `rho` from which impulses are in doubt, for a few bodies and for each of many: 100 and 1e4 judge alike, and a chain
/// pulled straight has 0.64 for each of its links.
const DOUBTFUL: f64 = 1000.0;
const DOUBTFUL_EACH: f64 = 10.0;
/// Factor on that limit above which a knot is singular. Closures are solved to 1e-15 and the regularization is 1e-9 of the diagonal,
/// beside pivots of the size `s h |w|`: at `rho` = 1e6 both leave a digit of the impulse or more, which Newton's method refines.
/// Of 140 runs of chains (1 to 10 segments, 14 step sizes) 10 have a compliant step at a factor of 100, 4 at 1000, and 2 at 1e4; the sum
/// of their energy errors is 8.6, 7.8, and 9.5 J.
const SINGULAR: f64 = 1000.0;
/// The same for the read-out, whose pivots are of the size `s^2` beside the regularization.
pub(super) const SINGULAR_READOUT: f64 = 10.0;
/// Share of the impulses' momentum that belongs to the doubtful part of them from which that does more than idle.
const IDLE: f64 = 1e-3;
/// Work of the impulses from which a step may have left its branch: relative to the energy of the change of velocity (at
/// most 0.3 in regular motion at steps far too coarse), and to the kinetic energy.
const JUMP: f64 = 0.5;
const JUMP_OF_ENERGY: f64 = 1e-3;
/// Work, relative to the kinetic energy, from which a step that no other start improves fails.
const WRONG: f64 = 1e-2;
/// Displacement in a step that is rest, m: works of such motion are rounding, whatever their ratios.
const REST: f64 = 1e-11;
/// Relative step of the difference along the velocities: its error is of third order in the turn of a step.
const ALONG: f64 = 1e-4;
/// Iterations with the matrix of the knot that close the start: each leaves `h |w|` of the gap.
const CLOSING: usize = 4;

/// Work of the joints' impulses over a step, and what it is compared with, J.
#[derive(Clone, Copy, Debug)]
struct ImpulseWork {
    work: f64,
    /// `1/2 |V+ - V-|^2_M`.
    change: f64,
    /// `1/2 |M^-1 G' lambda|^2_M`: the energy of the change of velocity by the joints alone.
    constraint: f64,
    /// The larger kinetic energy of the two intervals, and that of rest by [`REST`] at least.
    kinetic: f64,
}

impl ImpulseWork {
    /// Did the step leave its branch? A NaN did.
    fn jumps(&self) -> bool {
        let regular = self.work <= JUMP * self.change.max(self.constraint)
            || self.work <= JUMP_OF_ENERGY * self.kinetic;
        !regular
    }

    fn is_wrong(&self) -> bool {
        self.work > WRONG * self.kinetic || self.work.is_nan()
    }
}

impl Maximal {
    /// Sum of `d^2 lambda^2` and `|M^-1/2 G' lambda|^2` of impulses `lambda` of joints and elements, at the knot.
    fn sizes(&self, w: &mut Work, lambda: &[f64]) -> (f64, f64) {
        let n = 6 * self.body_count();
        let mut momenta = std::mem::take(&mut w.newton.scratch);
        momenta[..n].fill(0.0);
        let mut own = 0.0;
        let m = &w.model;
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            for i in 0..j.rows() {
                let (row, l) = (&w.knot.rows[s.first_row + i], lambda[s.offset + i]);
                own += w.matrix.own[s.first_row + i] * l * l;
                add_wrench(&mut momenta, j.parent, j.child, row, l);
            }
        }
        own += self.element_impulses(w, lambda, &mut momenta);
        let mut all = 0.0;
        for (b, body) in m.bodies.iter().enumerate() {
            let p = Vec3::from_column_slice(&momenta[6 * b..6 * b + 3]);
            let l = Vec3::from_column_slice(&momenta[6 * b + 3..6 * b + 6]);
            all += p.norm_squared() / body.mass + l.dot(&(w.inverse_inertia[b] * l));
        }
        w.newton.scratch = momenta;
        (own, all)
    }

    /// Does `rho` of the impulses exceed the limit [`DOUBTFUL`] by this factor?
    pub(super) fn doubts(&self, w: &mut Work, times: f64) -> bool {
        let trial = std::mem::take(&mut w.newton.trial);
        let (own, all) = self.sizes(w, &trial);
        w.newton.trial = trial;
        let most = times * DOUBTFUL.max(DOUBTFUL_EACH * self.body_count() as f64);
        own > most * most * all
    }

    /// Work of the impulses of the step found, whose momenta [`Maximal::doubts`] left in `w.newton.scratch`.
    fn impulse_work(&self, w: &Work) -> ImpulseWork {
        let mut out = ImpulseWork {
            work: 0.0,
            change: 0.0,
            constraint: 0.0,
            kinetic: 0.0,
        };
        let (mut before, mut after) = (0.0, 0.0);
        let n = 6 * self.body_count();
        let moved = w.knot.before.iter().zip(&w.newton.trial[..n]);
        let moved = moved.zip(&w.newton.scratch[..n]);
        out.work = moved
            .map(|((v, u), p)| 0.5 * (v + u) * p)
            .sum::<f64>()
            .abs();
        for (b, body) in w.model.bodies.iter().enumerate() {
            let of = |v: &[f64]| {
                let (x, turn) = (
                    Vec3::from_column_slice(&v[6 * b..6 * b + 3]),
                    Vec3::from_column_slice(&v[6 * b + 3..6 * b + 6]),
                );
                (x, turn)
            };
            let energy = |(x, turn): (Vec3, Vec3)| {
                0.5 * (body.mass * x.norm_squared() + turn.dot(&(body.inertia * turn)))
            };
            let (old, new) = (of(&w.knot.before), of(&w.newton.trial));
            before += energy(old);
            after += energy(new);
            out.change += energy((new.0 - old.0, new.1 - old.1));
            let (p, l) = of(&w.newton.scratch);
            out.constraint +=
                0.5 * (p.norm_squared() / body.mass + l.dot(&(w.inverse_inertia[b] * l)));
        }
        let mass: f64 = w.model.bodies.iter().map(|b| b.mass).sum();
        let rest = 0.5 * mass * (REST / w.knot.at.h()).powi(2);
        out.kinetic = before.max(after).max(rest);
        out
    }

    /// Are the step's impulses those of a singular position? Idle ones of redundant rows are not, and are taken out.
    ///
    /// # Errors
    /// When the step's matrix has no factors.
    pub(super) fn is_singular(&self, w: &mut Work) -> Result<bool, StepError> {
        if !self.doubts(w, 1.0) {
            return Ok(false);
        }
        // y = K^-1 [0; eps lambda]: what the regularization makes of them
        self.assemble(w);
        self.factor(w)?;
        let (mut idle, mut rhs) = (
            std::mem::take(&mut w.newton.y),
            std::mem::take(&mut w.newton.delta),
        );
        self.regularized(w, &mut rhs);
        self.solve_once(w, &rhs, &mut idle, false);
        let (_, carried) = self.sizes(w, &idle);
        let trial = std::mem::take(&mut w.newton.trial);
        let (_, whole) = self.sizes(w, &trial);
        w.newton.trial = trial;
        let n = 6 * self.body_count();
        // a NaN is no idle impulse
        let idles = carried <= IDLE * IDLE * whole;
        if idles {
            for (t, i) in w.newton.trial[n..].iter_mut().zip(&idle[n..]) {
                *t -= i;
            }
        }
        (w.newton.y, w.newton.delta) = (idle, rhs);
        Ok(self.doubts(w, SINGULAR))
    }

    /// `[0; eps lambda]`.
    fn regularized(&self, w: &Work, out: &mut [f64]) {
        out.fill(0.0);
        let lambda = &w.newton.trial;
        let epsilon = w.matrix.regularization * w.knot.at.scale();
        for (j, s) in w.model.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            for i in 0..j.rows() {
                out[s.offset + i] = epsilon * w.matrix.own[s.first_row + i] * lambda[s.offset + i];
            }
        }
        self.regularized_elements(w, out);
    }

    /// Solves a step again if its impulses are those of a singular position, if it left its branch, or if it was not solved; `y`
    /// holds the unknowns of the step before.
    pub(super) fn treat_singular(
        &self,
        w: &mut Work,
        y: &mut [f64],
        plain: Result<StepStats, StepError>,
    ) -> Result<StepStats, StepError> {
        let stats = match &plain {
            Ok(stats) if self.is_singular(w)? => *stats,
            // only loops have branches; a velocity constraint does work if the initial rates violate it
            Ok(stats) if self.contacts.is_empty() && w.model.has_loops() => {
                let work = self.impulse_work(w);
                if !work.jumps() && !w.newton.ends_flat {
                    return plain;
                }
                match self.choose_branch(w, *stats, work) {
                    // near flat, compliant joints lose less than a jump does
                    Err(_) if self.doubts(w, 1.0) => *stats,
                    chosen => return chosen,
                }
            }
            Ok(_) => return plain,
            Err(e) if e.failure == StepFailure::Stopped => return plain,
            Err(_) => {
                if let Some(closed) = self.solve_from_closed(w)
                    && !self.impulse_work(w).jumps()
                {
                    return Ok(closed);
                }
                StepStats::default()
            }
        };
        // impulses of the step before are large here, too
        y[6 * self.body_count()..self.symbolic.dim()].fill(0.0);
        w.matrix.softness = SOFTNESS;
        match (self.attempt(w, y), plain) {
            (Ok(soft), _) => {
                self.doubts(w, SINGULAR);
                let work = self.impulse_work(w);
                let in_motion = w.knot.at.h_prev != 0.0 && self.contacts.is_empty();
                if in_motion && work.jumps() && work.is_wrong() {
                    return Err(self.left_branch(w, work));
                }
                Ok(StepStats {
                    treated: 1,
                    ..stats.and(&soft)
                })
            }
            // the first says most of why
            (Err(soft), plain) => Err(plain.err().unwrap_or(soft)),
        }
    }

    /// Solves the step again from a closed start. Of the two solutions the one is used whose velocities are nearer to the tangent of
    /// the constraints at its end. On another branch that tangent is turned by an angle that does not depend on `s`, while the work
    /// and the impulses of the two solutions differ only in the order of `s`.
    fn choose_branch(
        &self,
        w: &mut Work,
        stats: StepStats,
        work: ImpulseWork,
    ) -> Result<StepStats, StepError> {
        w.newton.kept.copy_from_slice(&w.newton.trial);
        let first = self.off_tangent(w);
        let closed = self.solve_from_closed(w);
        let closed = closed.map(|closed| (closed, self.impulse_work(w)));
        let (stats, work) = match closed {
            Some((closed, own)) if self.off_tangent(w) < first => (stats.and(&closed), own),
            _ => {
                w.newton.trial.copy_from_slice(&w.newton.kept);
                self.evaluate(w);
                (stats, work)
            }
        };
        if work.jumps() && work.is_wrong() {
            return Err(self.left_branch(w, work));
        }
        Ok(stats)
    }

    /// Energy of the change of velocity, along the joints' impulses, that makes the velocities of a solution tangent to the
    /// constraints at its end, J. Infinite if it cannot be found.
    fn off_tangent(&self, w: &mut Work) -> f64 {
        let n = 6 * self.body_count();
        self.evaluate(w);
        self.assemble_and_keep(w, false);
        if self.try_factor(w).is_err() {
            return f64::INFINITY;
        }
        w.newton.y.copy_from_slice(&w.newton.trial);
        // h G(z+) V+ by a difference along the velocities
        for (k, sign) in [(1.0 + ALONG, 1.0), (1.0 - ALONG, -1.0)] {
            for (t, v) in w.newton.trial[..n].iter_mut().zip(&w.newton.y) {
                *t = k * v;
            }
            self.evaluate(w);
            let rows = w.newton.residual[n..].iter().zip(&mut w.newton.delta[n..]);
            for (r, d) in rows {
                *d = if sign > 0.0 {
                    *r
                } else {
                    0.5 * (*d - r) / ALONG
                };
            }
        }
        w.newton.residual[..n].fill(0.0);
        w.newton.residual[n..].copy_from_slice(&w.newton.delta[n..]);
        self.newton_direction(w, false);
        let energy: f64 = (0..self.body_count())
            .map(|b| energy(&w.model, &w.newton.delta, b))
            .sum();
        w.newton.trial.copy_from_slice(&w.newton.y);
        self.evaluate(w);
        if energy.is_nan() {
            f64::INFINITY
        } else {
            0.5 * energy
        }
    }

    /// Solves the step from a start that closes the loops on the branch of the knot: Newton's iterates with the matrix of the
    /// knot, whose pivots are far from singular if the end's are not.
    fn solve_from_closed(&self, w: &mut Work) -> Option<StepStats> {
        if !self.contacts.is_empty() {
            return None;
        }
        let n = 6 * self.body_count();
        // at rest the end is the knot
        w.newton.trial.fill(0.0);
        self.evaluate(w);
        self.assemble_and_keep(w, false);
        self.try_factor(w).ok()?;
        self.start_from_old_velocities(w);
        w.newton.trial[n..].fill(0.0);
        for _ in 0..CLOSING {
            self.evaluate(w);
            self.newton_direction(w, false);
            for (t, d) in w.newton.trial.iter_mut().zip(&w.newton.delta) {
                *t -= d;
            }
            if self.outside_domain(w).is_some() {
                return None;
            }
        }
        let stats = self.newton(w).ok()?;
        (!self.doubts(w, SINGULAR)).then_some(stats)
    }

    /// The failure of a step that left its branch. It names the joint of the largest impulse, in units of velocity.
    fn left_branch(&self, w: &Work, work: ImpulseWork) -> StepError {
        let mut most = (0.0, 6 * self.body_count());
        for (j, s) in w.model.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            for i in 0..j.rows() {
                let size = w.matrix.own[s.first_row + i].sqrt() * w.newton.trial[s.offset + i];
                if size.abs() > most.0 {
                    most = (size.abs(), s.offset + i);
                }
            }
        }
        self.failure(StepFailure::Branch, w, most.1, work.work)
    }

    /// How far a joint's row that gives way does so by the interval.
    pub(super) fn given(&self, w: &Work, s: &JointSlots, i: usize) -> f64 {
        w.matrix.softness * self.compliances[s.first_row + i] * w.newton.trial[s.offset + i]
    }

    /// Evaluates a solved step, after its impact if it has one. The joints were compliant if the compliant equations have the smaller
    /// residual. Returns the residual, and how far the blow is off its central path.
    pub(super) fn evaluate_as_solved(
        &self,
        at: &SolvedStep,
        w: &mut Work,
    ) -> Result<(f64, f64), StepError> {
        self.contacts.recall(&mut w.contacts, at.y);
        self.prepare(at.at.step(), at.x, at.u, w)?;
        Self::forget_blow(w);
        if self.contacts.struck(&mut w.contacts, at.y) {
            self.strike(&at.at, at.x, at.u, w)?;
        }
        let off_centre = self.linearize_blow(w);
        self.take_places(at.y, w);
        let (core, contacts) = at.y.split_at(w.newton.trial.len());
        w.newton.trial.copy_from_slice(core);
        w.contacts.read(contacts, &self.contacts);
        let (plain, _, floor) = self.evaluate(w);
        if !w.model.may_be_redundant() || plain <= self.options.tolerance.max(floor) {
            return Ok((plain, off_centre));
        }
        w.matrix.softness = SOFTNESS;
        let (soft, ..) = self.evaluate(w);
        if soft < plain {
            return Ok((soft, off_centre));
        }
        w.matrix.softness = 0.0;
        Ok((self.evaluate(w).0, off_centre))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::{ImpulseWork, SOFTNESS, Work};
    use crate::dynamics::{Differentiable, Knot, SolvedStep, Step};
    use crate::integrator::checks::{Against, hold, some_adjoint};
    use crate::integrator::{Maximal, Mechanical};

    /// Any step can be one whose joints give way.
    fn soft(s: &Maximal, at: &Knot, x: &[f64], u: &[f64], p: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut w, mut next, mut y) = (s.work(), x.to_vec(), vec![0.0; s.dims().ny]);
        s.apply(p, &mut w).expect("has a meaning");
        s.prepare(at.step(), x, u, &mut w).expect("in the domain");
        w.matrix.softness = SOFTNESS;
        s.attempt(&mut w, &y).expect("solved");
        y.copy_from_slice(&w.newton.trial);
        s.write_next(&w, &mut next);
        (next, y)
    }

    #[test]
    fn derivatives_of_steps_whose_joints_give_way_match_differences() {
        for (s, x) in systems() {
            if !s.mechanism().has_loops() {
                continue;
            }
            let (at, x, u, _) = moving(&s, &x);
            let p = &s.nominal;
            let (next, y) = soft(&s, &at, &x, &u, p);
            let mut w = s.work();
            let solved = SolvedStep {
                at,
                x: &x,
                u: &u,
                p,
                y: &y,
                next: &next,
            };
            let certificate = s.linearize_in(&solved, &mut w).expect("regular");
            assert_eq!(w.matrix.softness, SOFTNESS, "told from the unknowns");
            assert!(certificate.residual < 1e-12);
            // idle impulses of redundant rows are not unique
            let mut adjoint = some_adjoint(&s);
            adjoint.y[6 * s.body_count()..].fill(0.0);
            let against = |_| Against::Differences;
            hold(&s, &solved, &adjoint, against, 1e-8, (1e-4, 2e-7), |d| {
                let (mut at, mut u, mut p) = (at, u.clone(), p.clone());
                u.iter_mut().zip(&d.u).for_each(|(u, d)| *u += d);
                p.iter_mut().zip(&d.p).for_each(|(p, d)| *p += d);
                at.h += d.h;
                at.h_prev += d.h_prev;
                let (n, y) = soft(&s, &at, &displaced(&s, &x, &d.x), &u, &p);
                let mut all = difference(&s, &next, &n);
                all.extend(&y[..6 * s.body_count()]);
                all
            });
        }
    }

    #[test]
    fn a_step_that_loses_what_an_impact_loses_is_a_jump() {
        let work = |work, change, kinetic| ImpulseWork {
            work,
            change,
            constraint: 0.0,
            kinetic,
        };
        assert!(!work(0.2, 1.0, 10.0).jumps());
        assert!(work(0.9, 1.0, 10.0).jumps());
        // too little to matter, and at rest
        assert!(!work(0.9e-4, 1e-4, 10.0).jumps());
        assert!(!work(0.0, 0.0, 0.0).jumps());
        assert!(work(f64::NAN, 1.0, 10.0).jumps());
        assert!(work(0.9, 1.0, 10.0).is_wrong());
        assert!(!work(0.09, 0.1, 10.0).is_wrong());
        assert!(work(f64::NAN, 1.0, 10.0).is_wrong());
    }

    /// Three redundant rows, and impulses in them that do nothing.
    #[test]
    fn idle_impulses_are_taken_out_and_treat_nothing() {
        let (s, x) = systems()
            .into_iter()
            .find(|(s, _)| s.mechanism().has_loops())
            .expect("one");
        let (at, x, u, mut y) = moving(&s, &x);
        let (mut w, mut next) = (s.work(), x.clone());
        let step = |w: &mut Work, y: &mut [f64], next: &mut [f64]| {
            let stats = s.step(&at, &x, &u, &s.nominal, w, next, y);
            (stats.expect("solved").treated, w.newton.trial.clone())
        };
        let mut regular = y.clone();
        let (_, plain) = step(&mut w, &mut regular, &mut next);
        let reached = next.clone();
        // along the null space: the part of random impulses that the regularized matrix keeps
        s.prepare(at.step(), &x, &u, &mut w).expect("in the domain");
        w.newton.trial.copy_from_slice(&plain);
        s.evaluate(&mut w);
        s.assemble(&mut w);
        s.factor(&mut w).expect("regular");
        let n = 6 * s.body_count();
        let mut rhs = vec![0.0; plain.len()];
        for (i, r) in rhs.iter_mut().enumerate().skip(n) {
            *r = (1.7 * i as f64).sin();
        }
        let mut idle = vec![0.0; plain.len()];
        s.solve_once(&mut w, &rhs, &mut idle, false);
        let size = idle[n..].iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for (y, i) in y[n..].iter_mut().zip(&idle[n..]) {
            *y += 1e5 * i / size;
        }
        let (treated, cleaned) = step(&mut w, &mut y, &mut next);
        assert_eq!(treated, 0);
        assert!(cleaned[n..].iter().all(|l| l.abs() < 1e3), "{cleaned:?}");
        assert_close(&next, &reached, 1e-9, "motion");
    }
}
