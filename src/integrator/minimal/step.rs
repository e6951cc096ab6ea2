//! Newton's method for the joints' rates over an interval.

use super::Minimal;
use super::kinematics::turn;
use super::roots::Roots;
use super::work::{Moved, Work, wide};
use crate::dynamics::{Knot, Parameter, Start, Step, StepError, StepFailure, StepStats};
use crate::integrator::failure::explain;
use crate::integrator::parameter;
use crate::integrator::swing::most;
use crate::spatial::{Vec3, increment_scalar};
use nalgebra::DMatrix;

/// A correction that is no longer smaller than this part of the last one is rounding, where it is below [`ROUNDING`] of the rates.
const FALLS: f64 = 0.5;
const ROUNDING: f64 = 1e-9;
/// Corrections that fall by this with the factors of an iteration before are worth more than new ones, which cost about as much as
/// two such corrections.
const CHORD: f64 = 0.03;
/// A last correction below this, rad, needs no look at where it leads.
const SHORT: f64 = 1e-6;
/// Newton's steps are halved no further.
pub(super) const SHORTEST: f64 = 1e-4;

impl Minimal {
    pub(super) fn failure(
        &self,
        failure: StepFailure,
        at: &Knot,
        body: usize,
        residual: f64,
    ) -> StepError {
        let intervals = (at.h_prev, at.h);
        let body = &self.mechanism.bodies[body];
        let message = explain(
            failure,
            residual,
            intervals,
            (&body.rotation, self.options.finer_steps()),
        );
        StepError {
            failure,
            element: format!("body `{}`", body.name),
            time: at.t,
            residual,
            message,
        }
    }

    /// Everything that does not depend on the unknowns, of a step, or where `at.h` is 0 of a read-out: the rates of the instant.
    pub(super) fn prepare(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
    ) -> Result<(), StepError> {
        let backwards = !self.contacts.is_empty() && at.h.min(at.h_prev) < 0.0;
        if !at.h.is_finite() || !at.h_prev.is_finite() || backwards {
            return Err(self.failure(StepFailure::Interval, at, 0, f64::NAN));
        }
        if !x.iter().chain(u).all(|v| v.is_finite()) {
            return Err(self.failure(StepFailure::NotFinite, at, 0, f64::NAN));
        }
        w.positions.copy_from_slice(&x[..self.positions]);
        w.before.copy_from_slice(&x[self.positions..]);
        w.commanded.copy_from_slice(u);
        self.locate(x, w);
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            if node.turns == 2 && w.model.joints[node.joint].is_at_half_turn(&k.relative) {
                return Err(self.failure(StepFailure::HalfTurn, at, node.body, f64::NAN));
            }
        }
        let before = &x[self.positions..];
        if let Some(body) = self.lead(&w.knot, &w.axes, before, -at.h_prev, &mut w.past) {
            return Err(self.failure(StepFailure::Domain, at, body, f64::NAN));
        }
        wide!(self.momenta_before(w, -at.h_prev));
        self.push_forces(at, x, u, w);
        Ok(())
    }

    #[inline(always)]
    fn momenta_before(&self, w: &mut Work, h: f64) {
        for ((k, to), momenta) in w.knot.iter().zip(&w.past).zip(&mut w.momenta) {
            momenta[0] = (self.lagrangian).momentum(k.mass, (&k.inertia, &k.law), to, h);
        }
    }

    /// Solves the step that was prepared; `y` holds the unknowns of the step before.
    fn solve_prepared(
        &self,
        at: &Knot,
        x: &[f64],
        w: &mut Work,
        y: &[f64],
    ) -> Result<StepStats, StepError> {
        self.prepare_contacts(&at.step(), x, w);
        if !self.contacts.is_empty() {
            return self.solve_contacts(at, y, w);
        }
        if self.roots != Roots::default() {
            return self.find(at, x, w);
        }
        self.guess(&x[self.positions..], at.h, w);
        self.newton(at, w)
    }

    /// The rates of the interval before, where they lead inside the domain; else smaller ones.
    pub(super) fn guess(&self, before: &[f64], h: f64, w: &mut Work) {
        w.rates.copy_from_slice(before);
        w.geared.impulses.fill(0.0);
        for _ in 0..64 {
            self.close_trial(h, w);
            if self
                .lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial)
                .is_none()
                && fastest(w, h) <= 1.0
            {
                return;
            }
            for node in &self.nodes {
                w.rates[node.first + node.slides..node.directions().end]
                    .iter_mut()
                    .for_each(|r| *r *= 0.5);
            }
            self.halve_slides(&mut w.rates);
        }
    }

    /// Takes a part of Newton's step: a joint's rates follow the turn of its end.
    pub(super) fn take(&self, length: f64, h: f64, w: &mut Work) {
        self.take_freely(length, h, w);
        self.close_trial(h, w);
    }

    /// The same where gears hold to first order alone.
    pub(super) fn take_freely(&self, length: f64, h: f64, w: &mut Work) {
        wide!(self.take_along(length, h, w));
    }

    #[inline(always)]
    fn take_along(&self, length: f64, h: f64, w: &mut Work) {
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            let range = node.directions();
            let j = &w.model.joints[node.joint];
            let (own, by) = (&mut w.rates[range.clone()], &w.change[range]);
            let kept = &w.kept[node.directions()];
            for i in 0..node.slides {
                own[i] = kept[i] + length * by[i];
            }
            if node.turns == 0 {
                continue;
            }
            if node.turns == 1 {
                let (rate, i) = (kept[node.slides], node.slides);
                let scalar = increment_scalar(&Vec3::new(rate, 0.0, 0.0), h);
                own[i] = rate + length * scalar * by[i];
                continue;
            }
            if let ([x, y, z], [bx, by, bz], 3) = (kept, by, node.turns) {
                // a ball, whose directions are the axes of its parent
                let (spin, eta) = (Vec3::new(*x, *y, *z), Vec3::new(*bx, *by, *bz));
                let scalar = increment_scalar(&spin, h);
                let change = eta * scalar + eta.cross(&spin) * (0.5 * h);
                own.copy_from_slice((spin + change * length).as_slice());
                continue;
            }
            let spin = turn(j, node, &k.relative, kept);
            let scalar = increment_scalar(&spin, h);
            // where a third component follows, it is that at the end
            let end = (node.turns == 2).then(|| Self::turned(&k.relative, &spin, h));
            let eta = turn(j, node, &end.unwrap_or(k.relative), by);
            let change = eta * scalar + eta.cross(&spin) * (0.5 * h);
            for (i, d) in j.directions.iter().enumerate().skip(node.slides) {
                own[i] = kept[i] + length * d.unit.dot(&change);
            }
        }
    }

    /// Newton's method from the guess. Factors serve again as long as corrections fall by [`CHORD`]. Ends where the correction
    /// that would follow is below the tolerance (m/s, rad/s), as the last two tell, or rounding.
    pub(super) fn newton(&self, at: &Knot, w: &mut Work) -> Result<StepStats, StepError> {
        let (h, tolerance) = (at.h, self.options.tolerance);
        let mut stats = StepStats::default();
        let (mut last, mut is_fresh) = (f64::INFINITY, false);
        let fails = |failure, body, residual| Err(self.failure(failure, at, body, residual));
        loop {
            if stats.iterations == self.options.max_iterations {
                return fails(StepFailure::NotConverged, self.nodes[0].body, last);
            }
            stats.iterations += 1;
            if !is_fresh && let Err(body) = self.factor(w, h) {
                return fails(StepFailure::Singular, body, last);
            }
            let squares = !is_fresh;
            self.solve(w, h);
            let size = largest(&w.change);
            if size.is_nan() {
                return fails(StepFailure::NotFinite, self.nodes[0].body, last);
            }
            let ratio = size / last;
            // one correction tells nothing of the next
            let follows = match stats.iterations {
                1 => f64::INFINITY,
                // with factors of its own a correction is to the next as its square
                _ if squares => size * ratio * ratio.min(1.0),
                _ => size * ratio,
            };
            let is_rounding = ratio > FALLS && size < ROUNDING * (1.0 + largest(&w.rates));
            let is_last = size <= tolerance || follows <= tolerance || is_rounding;
            is_fresh = ratio < CHORD;
            w.kept.copy_from_slice(&w.rates);
            if is_last && h.abs() * size < SHORT {
                // it leads where the last trial led, to what is left
                self.take(1.0, h, w);
                stats.residual = size.min(follows);
                break;
            }
            let mut length = 1.0;
            let outside = loop {
                self.take(length, h, w);
                let outside = self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial);
                if outside.is_none() || length < SHORTEST {
                    break outside;
                }
                length *= 0.5;
            };
            if let Some(body) = outside {
                return fails(StepFailure::Domain, body, size);
            }
            if length < 1.0 {
                is_fresh = false;
            } else if is_last {
                stats.residual = size.min(follows);
                break;
            }
            last = size;
        }
        (stats.turned, stats.turn) = self.largest_turn(w, h);
        Ok(stats)
    }
}

impl Minimal {
    /// Largest turn of any body where the trial leads that its law takes for its chord.
    pub(super) fn largest_turn(&self, w: &Work, h: f64) -> (usize, f64) {
        let each = w.knot.iter().zip(&w.trial);
        let (node, turn) = most(each.map(|(k, to)| {
            let omega = k.law.from_chord(&to.omega, h, to.scalar);
            k.law.chord_turn(&omega, h)
        }));
        (self.nodes[node].body, turn)
    }

    /// The rates of the instant at the knot that was prepared: momenta are linear in them, so that one solve gives them.
    pub(super) fn read_rates(&self, at: &Knot, w: &mut Work) -> Result<StepStats, StepError> {
        w.rates.fill(0.0);
        w.geared.impulses.fill(0.0);
        for (to, k) in w.trial.iter_mut().zip(&w.knot) {
            *to = Moved {
                arms: k.arms,
                ..Moved::WORLD
            };
        }
        let fails = |failure, body| Err(self.failure(failure, at, body, f64::NAN));
        if let Err(body) = self.factor(w, 0.0) {
            return fails(StepFailure::Singular, body);
        }
        self.solve(w, 0.0);
        if !largest(&w.change).is_finite() {
            return fails(StepFailure::NotFinite, self.nodes[0].body);
        }
        w.rates.copy_from_slice(&w.change);
        self.lead(&w.knot, &w.axes, &w.rates, 0.0, &mut w.trial);
        Ok(StepStats {
            iterations: 1,
            ..StepStats::default()
        })
    }
}

/// The largest turn where the trial leads, by that which a step is looked for from.
fn fastest(w: &Work, h: f64) -> f64 {
    let each = w.knot.iter().zip(&w.trial);
    each.fold(0.0, |m, (k, to)| m.max(k.law.beyond_start(&to.omega, h)))
}

pub(super) fn largest(v: &[f64]) -> f64 {
    // a NaN must win
    v.iter().fold(0.0, |m, v| {
        if v.abs() > m || v.is_nan() {
            v.abs()
        } else {
            m
        }
    })
}

impl Step for Minimal {
    type Work = Work;

    fn dims(&self) -> crate::dynamics::Dims {
        Self::dims(self)
    }

    fn work(&self) -> Work {
        self.memory()
    }

    fn controls(&self) -> Vec<(String, String)> {
        self.mechanism.controls()
    }

    fn parameters(&self) -> Vec<Parameter> {
        crate::integrator::parameter::named_parameters(&self.mechanism)
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
        self.start_at(start, w, x)
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
        // joint coordinates are what they are, wherever the joints lie, but where gears tie them
        if self.gears.is_empty() {
            return Ok(DMatrix::zeros(2 * self.freedoms, p.len()));
        }
        self.start_by_parameters(start, w)
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
        self.start_by_coordinates(start, w)
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
        if at.h == 0.0 {
            return Err(self.failure(StepFailure::Interval, at, 0, f64::NAN));
        }
        self.prepare(at, x, u, w)?;
        let stats = self.solve_prepared(at, x, w, y)?;
        y[..self.freedoms].copy_from_slice(&w.rates);
        let (contacts, impulses) = self.beyond_rates_mut(y);
        impulses.copy_from_slice(&w.geared.impulses);
        w.touching.memory.write(contacts, &self.contacts);
        self.write_next(&w.model, w, x, at.h, next);
        Ok(stats)
    }

    fn soften(&self, w: &mut Work, kappa: f64) -> bool {
        w.touching.memory.soften(kappa);
        true
    }
}
