//! The interior-point method for a step with contacts: Mehrotra's predictor-corrector with one step length, from a cold or
//! a warm start; where that stalls, [`super::path`] goes on.

use super::super::assembly::{add_wrench, dot, vec3};
use super::super::step::may_retry;
use super::super::{Maximal, Work};
use super::assembly::along;
use super::{Element, Slot};
use crate::dynamics::{Stage, StepError, StepFailure, StepStats, stop_requested};
use crate::mechanism::{Row, Vec6};
use crate::spatial::Vec3;

/// Largest deviation of a product from `kappa`, relative, of what is solved to rounding.
const USABLE: f64 = 1e-3;
/// A step length below which the path is left for its centre.
const SHORT: f64 = 0.1;
/// Iterations near the end that the block factors are given.
const PIVOTED: usize = 6;
/// Iterations after which some steps are halved, since Newton's method may cycle, and how many.
const PATIENCE: usize = 25;
const HALVED: usize = 15;
/// Least part of what gaps are off that products are led to.
const BEHIND: f64 = 0.01;
/// Stiffness `g/s` from which directions are refined.
const STIFF: f64 = 1e9;
/// How many times `kappa` a step may be solved at where rounding keeps it from the end of the path.
const SHORT_OF_IT: [f64; 3] = [10.0, 1e2, 1e4];
/// Sweeps of refinement.
const SWEEPS: usize = 3;

/// Takes the wrenches of changed impulses from the rows.
fn push(rhs: &mut [f64], e: &Element, slot: &Slot, change: [f64; 3]) {
    let rows = [&e.normal, &e.tangents[0], &e.tangents[1]];
    for (row, c) in rows.into_iter().zip(change) {
        if c != 0.0 {
            add_wrench(rhs, slot.parent, slot.child, row, -slot.mass * c);
        }
    }
}

/// Where an iterate stands.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Largest residual, m/s, and its row; elements count behind the rows.
    residual: f64,
    row: usize,
    /// Mean product, m^2/s^2.
    mean: f64,
    sum: f64,
    /// Largest deviation of a product from `kappa`.
    off: f64,
    done: bool,
    /// Done only as far as rounding allows.
    rounded: bool,
    /// Good enough where no more can be had.
    usable: bool,
    /// Largest product of a normal impulse with what its gap is off, m^2/s^2.
    ahead: f64,
    /// Largest `g/s`.
    stiffest: f64,
    /// The contacts are where rounding allows them to be; only rows of bodies and joints are left.
    settled: bool,
}

/// Sum of the sizes of the terms of a row times the velocities.
fn along_absolute(v: &[f64], parent: Option<usize>, child: usize, row: &Row) -> f64 {
    let [a, b] = super::assembly::both(row).map(|r| r.abs());
    let v = |body: usize| Vec6::from_column_slice(&v[6 * body..6 * body + 6]).abs();
    b.dot(&v(child)) + parent.map_or(0.0, |p| a.dot(&v(p)))
}

impl Maximal {
    /// Solves the step's equations with contacts; `y` holds the unknowns of the step before.
    pub(in super::super) fn solve_contacts(
        &self,
        w: &mut Work,
        y: &[f64],
    ) -> Result<StepStats, StepError> {
        let before = &y[self.symbolic.dim()..];
        let warm = self.options.contact.warm && before.iter().any(|v| *v != 0.0);
        let starts = [true, false].into_iter().skip(usize::from(!warm));
        self.solve_from(w, y, starts)
    }

    /// The same for the read-out of velocities at a knot; leaves the matrix there factored.
    pub(in super::super) fn readout_contacts(&self, w: &mut Work) -> Result<(), StepError> {
        self.solve_from(w, &[], [false].into_iter())?;
        self.assemble(w);
        self.factor(w)
    }

    /// Solves at the end of the central path; where rounding keeps the step from it, a little before.
    fn solve_from(
        &self,
        w: &mut Work,
        y: &[f64],
        starts: impl Iterator<Item = bool>,
    ) -> Result<StepStats, StepError> {
        let kappa = w.contacts.kappa;
        let mut stats = StepStats::default();
        let mut solved = self.solve_at(w, y, starts, kappa, &mut stats);
        for short in SHORT_OF_IT {
            let Err(error) = solved else {
                break;
            };
            if !may_retry(&error) {
                return Err(error);
            }
            let start = [false].into_iter();
            solved = match self.solve_at(w, y, start, short * kappa, &mut stats) {
                Ok(()) => {
                    stats.rounded = 1;
                    Ok(())
                }
                Err(last) if !may_retry(&last) => Err(last),
                Err(_) => Err(error),
            };
        }
        stats.iterations = w.contacts.spent;
        solved.map(|()| stats)
    }

    /// Counts an iteration of the step; fails where it may take no more.
    pub(super) fn spend(&self, w: &mut Work, row: usize, residual: f64) -> Result<(), StepError> {
        let spent = w.contacts.spent;
        if spent >= self.options.contact.max_iterations {
            return Err(self.failure(StepFailure::Budget, w, row, residual));
        }
        // ordinary steps run to their end: after a stop one still looks at what was computed
        if spent >= self.options.max_iterations && stop_requested() {
            return Err(self.failure(StepFailure::Stopped, w, row, residual));
        }
        w.contacts.spent += 1;
        Ok(())
    }

    /// Tries warm and cold starts in turn, then curves around what stopped them.
    fn solve_at(
        &self,
        w: &mut Work,
        y: &[f64],
        starts: impl Iterator<Item = bool>,
        kappa: f64,
        stats: &mut StepStats,
    ) -> Result<(), StepError> {
        let mut failed = None;
        for warm in starts {
            if warm {
                self.warm_start(w, y, kappa);
            } else {
                self.cold_start(w, 1.0);
            }
            match self.follow(w, kappa, 0.995) {
                Ok(s) => {
                    *stats = stats.and(&s);
                    return Ok(());
                }
                Err((error, s)) => {
                    *stats = stats.and(&s);
                    if !may_retry(&error) {
                        return Err(error);
                    }
                    failed = Some(error);
                }
            }
            stats.restarts += 1;
        }
        stats.restarts += 1;
        // the last start says most of why
        let around = self.go_around(w, kappa, stats);
        around.map_err(|error| match failed {
            Some(first) if may_retry(&error) => first,
            _ => error,
        })
    }

    /// Velocities from the forces alone; contacts on the central path at `nu`.
    pub(super) fn cold_start(&self, w: &mut Work, nu: f64) {
        let n = self.body_count();
        w.newton.trial[6 * n..].fill(0.0);
        let half = w.knot.at.half();
        for (b, body) in w.model.bodies.iter().enumerate() {
            let own = 6 * b..6 * b + 6;
            let turn = w.inverse_inertia[b] * vec3(&w.knot.force, 6 * b + 3) * half;
            w.newton.trial[own.clone()].copy_from_slice(&w.knot.before[own]);
            for i in 0..3 {
                w.newton.trial[6 * b + i] += half * w.knot.force[6 * b + i] / body.mass;
                w.newton.trial[6 * b + 3 + i] += turn[i];
            }
        }
        self.keep_in_domain(w);
        for e in &mut w.contacts.elements {
            e.local = super::Local::default();
        }
        // for the gaps and sliding velocities alone
        self.evaluate(w);
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            e.start(sides, nu);
        }
    }

    /// Starts inside the domain where an interval is longer than the one before.
    fn keep_in_domain(&self, w: &mut Work) {
        for b in 0..self.body_count() {
            let omega = &mut w.newton.trial[6 * b + 3..6 * b + 6];
            let turn = w.knot.at.h().abs() * Vec3::from_column_slice(omega).norm();
            if turn > 1.2 {
                omega.iter_mut().for_each(|o| *o *= 1.2 / turn);
            }
        }
    }

    /// Old velocities and impulses, as far up the central path as their residual asks for.
    fn warm_start(&self, w: &mut Work, y: &[f64], kappa: f64) {
        let (n, dim) = (6 * self.body_count(), self.symbolic.dim());
        w.newton.trial[..n].copy_from_slice(&w.knot.before);
        w.newton.trial[n..].copy_from_slice(&y[n..dim]);
        w.contacts.read(&y[dim..], &self.contacts);
        self.keep_in_domain(w);
        self.evaluate(w);
        let mut r = self.body_residual(w).0;
        for e in w.contacts.elements.iter().filter(|e| e.law.gap) {
            r = r.max(e.gap.min(e.local.g).abs());
        }
        let nu = (10.0 * r * r).min(10.0).max(kappa);
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            e.start(sides, nu);
        }
    }

    /// Largest residual of the bodies' rows as a velocity, m/s, and its row.
    pub(super) fn body_residual(&self, w: &Work) -> (f64, usize) {
        let mut worst = (0.0_f64, 0);
        for (b, (body, size)) in w.model.bodies.iter().zip(&self.contacts.sizes).enumerate() {
            for i in 0..6 {
                let unit = if i < 3 { 1.0 } else { 1.0 / size };
                let r = (w.newton.residual[6 * b + i] * unit / body.mass).abs();
                if r > worst.0 || r.is_nan() {
                    worst = (r, 6 * b + i);
                }
            }
        }
        worst
    }

    fn progress(&self, w: &Work, kappa: f64, floor: f64) -> Progress {
        let (n, c) = (6 * self.body_count(), &w.contacts);
        let (mut residual, mut row) = self.body_residual(w);
        let mut worse = |r: f64, at: usize| {
            if r > residual || r.is_nan() {
                (residual, row) = (r, at);
            }
        };
        // of a read-out they are velocities
        let length = match w.knot.at.stage {
            Stage::Step(h) => h,
            Stage::Readout => 1.0,
        };
        for (i, r) in w.newton.residual.iter().enumerate().skip(n) {
            worse(r.abs() / length, i);
        }
        let centre = self.options.contact.centred * kappa;
        let (mut sum, mut count, mut off, mut beyond) = (0.0, 0.0, 0.0_f64, 0.0_f64);
        let (mut apart, mut ahead, mut stiffest) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (i, (e, slot)) in c.elements.iter().zip(&self.contacts.slots).enumerate() {
            let (s, k, o) = e.products(c.sides(i, &self.contacts), 0.0, kappa);
            sum += s;
            count += k;
            off = off.max(o);
            // what rounding of the gap leaves of the product
            let mut rounding = e.floor * e.local.g;
            if e.law.rubs {
                // and rounding of the sliding velocity
                let speed = |row| along_absolute(&w.newton.trial, slot.parent, slot.child, row);
                let speed = speed(&e.tangents[0]).max(speed(&e.tangents[1]));
                rounding = rounding.max(4.0 * f64::EPSILON * e.law.bound_at(&e.local) * speed);
            }
            beyond = beyond.max(o - rounding);
            if e.law.gap {
                let r = (e.gap - e.local.s).abs();
                apart = apart.max(r);
                stiffest = stiffest.max(e.local.g / e.local.s);
                if r > e.noise {
                    ahead = ahead.max(r * e.local.g);
                }
                worse(r, w.newton.residual.len() + i);
            }
        }
        let centred = off <= centre;
        let tolerance = self.options.tolerance;
        let fits = residual <= tolerance;
        let rounded = residual <= tolerance.max(floor) && beyond <= centre;
        let mean = if count > 0.0 { sum / count } else { 0.0 };
        Progress {
            residual,
            row,
            mean,
            sum,
            off,
            done: rounded && sum.is_finite(),
            rounded: !(fits && centred),
            usable: residual <= tolerance.max(floor) && beyond <= USABLE * kappa,
            ahead,
            stiffest,
            settled: apart <= tolerance && beyond <= centre,
        }
    }

    /// Leads the iterate to the central path's point `kappa`. A step may go a part of the way to the boundary, never less
    /// than `slowest`.
    pub(super) fn follow(
        &self,
        w: &mut Work,
        kappa: f64,
        slowest: f64,
    ) -> Result<StepStats, (StepError, StepStats)> {
        let mut stats = StepStats::default();
        let (mut iterations, mut last, mut stalled, mut ending) = (0, 1.0_f64, 0, 0);
        let mut bounded = None;
        loop {
            let (_, _, floor) = self.evaluate(w);
            let floor = floor / self.contacts.lightest;
            let p = self.progress(w, kappa, floor);
            if p.done {
                stats.residual = p.residual;
                stats.rounded = usize::from(p.rounded);
                stats.turn = self.largest_turn(w);
                return Ok(stats);
            }
            let stuck = iterations >= self.options.max_iterations || stalled == 4;
            if stuck && p.usable {
                // as near as rounding lets it come
                stats.residual = p.residual;
                stats.rounded = 1;
                stats.turn = self.largest_turn(w);
                return Ok(stats);
            }
            if stuck || !p.residual.is_finite() || !p.sum.is_finite() {
                let (why, row) = match bounded {
                    Some(body) => (StepFailure::Domain, 6 * body + 3),
                    None => (StepFailure::NotConverged, p.row),
                };
                return Err((self.failure(why, w, row, p.residual), stats));
            }
            if let Err(error) = self.spend(w, p.row, p.residual) {
                return Err((error, stats));
            }
            iterations += 1;
            let near = p.mean <= 10.0 * kappa && p.off <= 10.0 * kappa;
            ending += usize::from(near);
            // stiff friction makes the factors lose digits, which the end feels
            let refined = w.model.may_be_redundant() || p.stiffest > STIFF;
            self.assemble_and_keep(w, refined);
            let factored = if ending > PIVOTED {
                // pivots hold what the blocks have lost
                self.factor_general(w, p.row.min(self.symbolic.dim() - 1))
            } else {
                self.factor(w)
            };
            if let Err(error) = factored {
                return Err((error, stats));
            }
            stats.fallbacks += usize::from(w.matrix.uses_fallback);
            let (mut target, mut corrected) = (Some(kappa), false);
            if p.settled {
                // rounding, which the law's stiffness turns into large changes of the impulses, is not chased
                target = None;
            } else if last < SHORT {
                target = Some((0.1 * p.mean).max(kappa));
            } else if !near {
                let reach = self
                    .contact_direction(w, Some(0.0), false, refined)
                    .min(1.0);
                let left = self.sum_along(w, reach);
                for (e, sides, _) in w.contacts.each(&self.contacts) {
                    e.affine = e.direction;
                    if let Some((_, f)) = sides {
                        f.affine = f.direction;
                    }
                }
                let sigma = (left / p.sum).clamp(0.0, 1.0).powi(3);
                target = Some((sigma * p.mean).max(kappa));
                corrected = true;
            }
            // products must not run ahead of the gaps: where more contacts hold a body than are needed, what gaps are off
            // becomes impulses by `g/s`
            let target = target.map(|t| t.max(BEHIND * p.ahead));
            let mut reach = self.contact_direction(w, target, corrected, refined);
            if corrected && reach < SHORT {
                // the correction can hurt
                w.contacts.spare.copy_from_slice(&w.newton.delta);
                for (e, sides, _) in w.contacts.each(&self.contacts) {
                    e.spare = e.direction;
                    if let Some((_, f)) = sides {
                        f.spare = f.direction;
                    }
                }
                let plain = target.map(|t| t.max(0.1 * p.mean));
                let plain = self.contact_direction(w, plain, false, refined);
                if plain > reach {
                    reach = plain;
                } else {
                    w.newton.delta.copy_from_slice(&w.contacts.spare);
                    for (e, sides, _) in w.contacts.each(&self.contacts) {
                        e.direction = e.spare;
                        if let Some((_, f)) = sides {
                            f.direction = f.spare;
                        }
                    }
                }
            }
            let part = if near {
                slowest.max(0.995)
            } else {
                slowest.max(1.0 - p.residual.max(p.mean.sqrt())).min(0.9995)
            };
            let mut length = (part * reach).min(1.0);
            if (PATIENCE..PATIENCE + HALVED).contains(&iterations) {
                length *= 0.5;
            }
            w.newton.y.copy_from_slice(&w.newton.trial);
            bounded = None;
            loop {
                for ((t, y), d) in w.newton.trial.iter_mut().zip(&w.newton.y).zip(&w.newton.delta) {
                    *t = y - length * d;
                }
                let Some(body) = self.outside_domain(w) else {
                    break;
                };
                length *= 0.5;
                bounded = Some(body);
                if length < 1e-12 {
                    let row = 6 * body + 3;
                    let error = self.failure(StepFailure::Domain, w, row, p.residual);
                    return Err((error, stats));
                }
            }
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.advance(sides, length);
            }
            last = length;
            stalled = if length < SHORT { stalled + 1 } else { 0 };
        }
    }

    /// The Newton direction towards products `target` (`None`: those there are), in `w.newton.delta` and the elements; returns how
    /// far it may be followed.
    fn contact_direction(
        &self,
        w: &mut Work,
        target: Option<f64>,
        corrected: bool,
        refined: bool,
    ) -> f64 {
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            match target {
                Some(target) => e.aim(sides, target, corrected),
                None => e.hold(sides),
            }
        }
        self.direct(w, true, refined)
    }

    /// The direction of the elements' targets and, if asked for, of the rows' residuals. Refined on the equations before
    /// contacts were eliminated into them: stiff contacts take the digits of what is beside them.
    pub(super) fn direct(&self, w: &mut Work, residual: bool, refined: bool) -> f64 {
        let mut rhs = std::mem::take(&mut w.contacts.rhs);
        let mut delta = std::mem::take(&mut w.newton.delta);
        let start = |rhs: &mut [f64], w: &Work| {
            if residual {
                rhs.copy_from_slice(&w.newton.residual);
            } else {
                rhs.fill(0.0);
            }
        };
        start(&mut rhs, w);
        for (e, slot) in w.contacts.elements.iter().zip(&self.contacts.slots) {
            push(&mut rhs, e, slot, e.target.c);
        }
        self.solve_once(w, &rhs, &mut delta, false);
        let mut reach = self.recover(w, &delta);
        if refined {
            let mut last = f64::INFINITY;
            for _ in 0..SWEEPS {
                start(&mut rhs, w);
                self.symbolic
                    .subtract_product(&w.contacts.bare, &delta, &mut rhs);
                for (e, slot) in w.contacts.elements.iter().zip(&self.contacts.slots) {
                    let d = &e.direction;
                    push(&mut rhs, e, slot, [d.g, d.b[0], d.b[1]]);
                }
                let left = rhs.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
                if left.is_nan() || left >= 0.5 * last {
                    break;
                }
                last = left;
                let mut more = std::mem::take(&mut w.newton.scratch);
                self.solve_once(w, &rhs, &mut more, false);
                delta.iter_mut().zip(&more).for_each(|(d, m)| *d += m);
                w.newton.scratch = more;
                reach = self.recover(w, &delta);
            }
        }
        (w.contacts.rhs, w.newton.delta) = (rhs, delta);
        reach
    }

    /// The elements' directions that go with a change of the velocities; returns how far they may be followed.
    fn recover(&self, w: &mut Work, delta: &[f64]) -> f64 {
        let mut reach = f64::INFINITY;
        for (e, sides, slot) in w.contacts.each(&self.contacts) {
            let (p, c) = (slot.parent, slot.child);
            let gap = if e.law.gap {
                -along(delta, p, c, &e.by_velocity)
            } else {
                0.0
            };
            let eta = if e.law.rubs {
                [0, 1].map(|i| -dot(delta, p, c, &e.tangents[i]))
            } else {
                [0.0; 2]
            };
            reach = reach.min(e.recover(sides, gap, eta));
        }
        reach
    }

    /// Sum of the products a step of the given length along the directions would leave.
    fn sum_along(&self, w: &Work, length: f64) -> f64 {
        let c = &w.contacts;
        let each = c.elements.iter().enumerate();
        each.map(|(i, e)| e.products(c.sides(i, &self.contacts), length, 0.0).0)
            .sum()
    }
}
