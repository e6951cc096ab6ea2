//! Following solutions around their turns.
//!
//! With much friction the central path `H(y, kappa) = 0` need not fall monotonically: it may turn back in `kappa`, and
//! Newton's method towards a smaller `kappa` finds nothing there. As a curve in `(y, kappa)` it goes on (Sard's theorem:
//! for almost all data it has no branches), and is followed by its length, with the tangent as predictor and Newton's
//! method across it as corrector (Keller 1977, pseudo-arclength continuation). Both take the factors of the step's matrix,
//! bordered by one row and column. Where the curve leaves the step's domain, friction grows from little to all of it along
//! another curve, whose beginning is nearly that of a convex problem.
//!
//! Length is measured in `ln s`, `ln g`, `ln psi`, `b/u0` and the logarithm of the parameter: no unit and no scale matters.

use super::super::step::may_retry;
use super::super::{Maximal, Work};
use super::element::Sides;
use super::{Element, Memory};
use crate::dynamics::{StepError, StepFailure, StepStats};

/// Where the central path is entered, m^2/s^2: higher where no solution is found.
const STARTS: [f64; 3] = [1.0, 1e2, 1e4];
/// Levels on which friction grows, m^2/s^2, and the share of it that it begins with.
const LEVELS: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5];
const LITTLE: f64 = 0.01;
/// Where a curve is left that leads away from its goal, by the value it began with.
const AWAY: f64 = 1e6;
/// Points on a curve, corrections of one, and the shortest and longest piece between two.
const MOST_POINTS: usize = 400;
const MOST_CORRECTIONS: usize = 6;
const SHORTEST: f64 = 1e-6;
const LONGEST: f64 = 4.0;
/// Part of the way to the boundary of the cones that a prediction, and a correction, may go.
const PREDICTED: f64 = 0.7;
const CORRECTED: f64 = 0.9;
/// Last change of a point on the curve, and the least part of a correction worth going on.
const NEAR: f64 = 1e-3;
const LEAST: f64 = 0.05;

/// What changes along a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Parameter {
    /// The central path's `kappa`.
    Path,
    /// A share of all friction, at this `kappa`.
    Friction(f64),
}

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
struct Point {
    parameter: Parameter,
    value: f64,
    /// Change of its logarithm along the tangent.
    sense: f64,
    /// How far the next point may be.
    length: f64,
}

impl Point {
    /// The central path from `value` down.
    fn down(value: f64) -> Self {
        Self {
            parameter: Parameter::Path,
            value,
            sense: -1.0,
            length: 1.0,
        }
    }

    /// Friction from little up.
    fn rough(kappa: f64) -> Self {
        Self {
            parameter: Parameter::Friction(kappa),
            value: LITTLE,
            sense: 1.0,
            length: 0.1,
        }
    }

    fn kappa(&self) -> f64 {
        match self.parameter {
            Parameter::Path => self.value,
            Parameter::Friction(kappa) => kappa,
        }
    }
}

impl Element {
    /// The direction in the coordinates that lengths are measured in.
    fn relative(&self) -> [f64; 5] {
        let (l, d, law) = (&self.local, &self.direction, &self.law);
        let mut out = [0.0; 5];
        if law.gap {
            (out[0], out[1]) = (d.s / l.s, d.g / l.g);
        }
        if law.rubs {
            let u0 = law.bound_at(l);
            out[2] = d.psi / l.psi;
            for i in 0..2 {
                out[3 + i] = (d.b[i] - l.b[i] * out[1]) / u0;
            }
        }
        out
    }

    /// Takes a share of all friction; false where a pyramid does not hold the friction impulse then.
    fn rub(&mut self, sides: Sides, share: f64) -> bool {
        self.law.mu = self.whole.mu * share;
        self.law.bound = self.whole.bound * share;
        sides.is_none_or(|(pyramid, f)| pyramid.close(&self.law, &self.local, f))
    }
}

impl Memory {
    /// The direction's part along the tangent kept, and its squared length.
    fn measure(&self) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for e in &self.elements {
            for (d, t) in e.relative().into_iter().zip(e.tangent) {
                sums.0 += d * t;
                sums.1 += d * d;
            }
        }
        sums
    }
}

impl Maximal {
    /// Makes the parameter hold; false where the iterate is not inside the cones then.
    fn put(&self, w: &mut Work, at: &Point) -> bool {
        match at.parameter {
            Parameter::Path => true,
            Parameter::Friction(_) => self.rub(w, at.value),
        }
    }

    fn rub(&self, w: &mut Work, share: f64) -> bool {
        let each = w.contacts.each(&self.contacts);
        each.fold(true, |inside, (e, sides, _)| e.rub(sides, share) && inside)
    }

    /// Leads the iterate to `kappa` along curves.
    pub(super) fn go_around(
        &self,
        w: &mut Work,
        kappa: f64,
        stats: &mut StepStats,
    ) -> Result<(), StepError> {
        let mut failed = None;
        for value in STARTS {
            self.cold_start(w, value);
            match self.go_from(w, Point::down(value), kappa, stats) {
                Ok(true) => return Ok(()),
                // it would be the same curve from higher up
                Ok(false) => break,
                Err(error) if may_retry(&error) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        for e in &mut w.contacts.elements {
            e.whole = e.law;
        }
        for level in LEVELS {
            self.put(w, &Point::rough(level));
            self.cold_start(w, 1.0);
            let mut done = self.go_from(w, Point::rough(level), 1.0, stats);
            self.rub(w, 1.0);
            if let Ok(true) = done {
                done = self.go_from(w, Point::down(level), kappa, stats);
            }
            match done {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if may_retry(&error) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| self.failure(StepFailure::NotConverged, w, 0, f64::NAN)))
    }

    /// Along the curve through the solution that the iterate is near to, until its parameter is `goal`: the iterate is
    /// the solution there, unless the curve leads elsewhere.
    fn go_from(
        &self,
        w: &mut Work,
        mut at: Point,
        goal: f64,
        stats: &mut StepStats,
    ) -> Result<bool, StepError> {
        self.settle(w, at.kappa(), stats)?;
        let start = at.value;
        for e in &mut w.contacts.elements {
            e.tangent = [0.0; 5];
        }
        for _ in 0..MOST_POINTS {
            self.find_tangent(w, &mut at)?;
            let left = (goal / at.value).ln();
            if left.abs() > (goal / start).ln().abs() + AWAY.ln() {
                break;
            }
            // kept, should the next not be found
            w.newton.y.copy_from_slice(&w.newton.trial);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.affine = e.local;
                if let Some((_, f)) = sides {
                    f.affine = f.at;
                }
            }
            let reach = self.reach(w, at.sense);
            let mut step = at.length.min(PREDICTED * reach);
            let arrives = left * at.sense > 0.0 && step * at.sense.abs() >= left.abs();
            if arrives {
                step = left / at.sense;
            }
            self.advance_by(w, step * at.sense);
            let mut next = Point {
                value: at.value * (step * at.sense).exp(),
                ..at
            };
            let corrected = if arrives {
                Some(0)
            } else {
                self.correct(w, &mut next)?
            };
            if let Some(n) = corrected {
                if arrives || left * (goal / next.value).ln() < 0.0 {
                    next.value = goal;
                    let inside = self.put(w, &next);
                    if inside && self.settle(w, next.kappa(), stats).is_ok() {
                        return Ok(true);
                    }
                } else {
                    let growth = if n <= 3 { 2.0 } else { 1.0 };
                    next.length = (growth * step).min(LONGEST);
                    at = next;
                    continue;
                }
            }
            at.length = 0.5 * step;
            if at.length < SHORTEST {
                break;
            }
            w.newton.trial.copy_from_slice(&w.newton.y);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.local = e.affine;
                if let Some((_, f)) = sides {
                    f.at = f.affine;
                }
            }
            self.put(w, &at);
        }
        Ok(false)
    }

    /// Newton's method at one point.
    fn settle(&self, w: &mut Work, kappa: f64, stats: &mut StepStats) -> Result<(), StepError> {
        let (done, s) = match self.follow(w, kappa, 0.9) {
            Ok(s) => (Ok(()), s),
            Err((error, s)) => (Err(error), s),
        };
        *stats = stats.and(&s);
        done
    }

    /// The tangent at a point, as the direction by the logarithm of the parameter, and by length as what is kept.
    fn find_tangent(&self, w: &mut Work, at: &mut Point) -> Result<(), StepError> {
        let (residual, row, _) = self.evaluate(w);
        self.spend(w, row, residual)?;
        self.assemble_and_keep(w, true);
        self.factor(w)?;
        self.rise(w, at);
        let (along, square) = w.contacts.measure();
        at.sense = (along + at.sense).signum() / (1.0 + square).sqrt();
        for e in &mut w.contacts.elements {
            e.tangent = e.relative().map(|d| d * at.sense);
        }
        Ok(())
    }

    /// The direction by the logarithm of the parameter.
    fn rise(&self, w: &mut Work, at: &Point) {
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            let (products, bound) = match at.parameter {
                Parameter::Path => (at.value, 0.0),
                Parameter::Friction(_) => (0.0, e.law.bound_at(&e.local)),
            };
            e.target = e.target_of(sides, 0.0, products, bound);
        }
        self.direct(w, false, true);
    }

    /// How far the direction may be followed, `scale` times.
    fn reach(&self, w: &mut Work, scale: f64) -> f64 {
        let each = w.contacts.each(&self.contacts);
        each.map(|(e, sides, _)| e.reach(sides, scale))
            .fold(f64::INFINITY, f64::min)
    }

    /// Moves along the direction.
    fn advance_by(&self, w: &mut Work, length: f64) {
        for (t, d) in w.newton.trial.iter_mut().zip(&w.newton.delta) {
            *t -= length * d;
        }
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            e.advance(sides, length);
        }
    }

    /// Newton's method across the tangent; how many iterations it took, if it found the curve.
    fn correct(&self, w: &mut Work, at: &mut Point) -> Result<Option<usize>, StepError> {
        for n in 1..=MOST_CORRECTIONS {
            if !self.put(w, at) || self.outside_domain(w).is_some() {
                return Ok(None);
            }
            let (residual, row, _) = self.evaluate(w);
            self.spend(w, row, residual)?;
            self.assemble_and_keep(w, true);
            if self.factor(w).is_err() {
                return Ok(None);
            }
            self.rise(w, at);
            let (rise, _) = w.contacts.measure();
            w.contacts.spare.copy_from_slice(&w.newton.delta);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.spare = e.direction;
                if let Some((_, f)) = sides {
                    f.spare = f.direction;
                }
            }
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.aim(sides, at.kappa(), false);
            }
            self.direct(w, true, true);
            let (along, _) = w.contacts.measure();
            // nothing along the tangent in all
            let change = -along / (rise + at.sense);
            for (d, t) in w.newton.delta.iter_mut().zip(&w.contacts.spare) {
                *d += change * t;
            }
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.direction = e.direction.moved(&e.spare, change);
                if let Some((_, f)) = sides {
                    f.direction = f.direction.moved(&f.spare, change);
                }
            }
            let (_, square) = w.contacts.measure();
            let size = square.sqrt().max(change.abs());
            let part = (CORRECTED * self.reach(w, 1.0)).min(1.0);
            let part = part.min(1.0 / change.abs());
            if !size.is_finite() || part < LEAST {
                return Ok(None);
            }
            self.advance_by(w, part);
            at.value *= (part * change).exp();
            if part == 1.0 && size < NEAR {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }
}
