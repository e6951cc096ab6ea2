//! Following the central path around its turns.
//!
//! With much friction the path `H(y, kappa) = 0` need not fall monotonically: it may turn back in `kappa`, and Newton's
//! method towards a smaller `kappa` then finds nothing. As a curve in `(y, kappa)` it goes on, though, from the one
//! solution at a large `kappa` (Sard's theorem: for almost all data it has no branches). It is followed by its length, with
//! the tangent as predictor and Newton's method on the hyperplane across it as corrector (Keller 1977, pseudo-arclength
//! continuation); both take the factors of the step's matrix, bordered by one row and column.
//!
//! Length is measured in logarithms of `s`, `g`, `psi` and `kappa`, and in `b/u0`: no unit, and no scale, matters.

use super::super::{Maximal, Work};
use super::cone::Law;
use super::interior::trace;
use super::{Element, Memory};
use crate::dynamics::{StepError, StepFailure, StepStats};

/// Where the curve begins, and where it is left, m^2/s^2.
const STARTS: [f64; 4] = [1.0, 1e2, 1e4, 1e6];
const HIGHEST: f64 = 1e9;
/// Share of friction that a curve begins with.
const LITTLE: f64 = 0.01;
/// Points on the curve, corrections of one, and the shortest and longest piece between two.
const MOST_POINTS: usize = 400;
const MOST_CORRECTIONS: usize = 6;
const SHORTEST: f64 = 1e-6;
const LONGEST: f64 = 4.0;
/// Part of the way to the boundary of the cones that a prediction may go.
const PREDICTED: f64 = 0.7;
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
    fn kappa(&self) -> f64 {
        match self.parameter {
            Parameter::Path => self.value,
            Parameter::Friction(kappa) => kappa,
        }
    }
}

impl Element {
    /// A change in the coordinates that lengths are measured in.
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
    /// Leads the iterate to `kappa`: along the central path through the solution at a large parameter, one way or the
    /// other, then from little friction to all of it.
    pub(super) fn go_around(
        &self,
        w: &mut Work,
        kappa: f64,
        stats: &mut StepStats,
    ) -> Result<(), StepError> {
        let mut failed = None;
        let mut keep = |r: Result<bool, StepError>| r.unwrap_or_else(|e| {
            failed.get_or_insert(e);
            false
        });
        for value in STARTS {
            for sense in [-1.0, 1.0] {
                let at = Point { parameter: Parameter::Path, value, sense, length: 1.0 };
                self.cold_start(w, value);
                if keep(self.go_from(w, at, kappa, stats)) {
                    return Ok(());
                }
            }
        }
        let whole: Vec<_> = w.contacts.elements.iter().map(|e| e.law).collect();
        for level in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6] {
            let at = Point { parameter: Parameter::Friction(level), value: LITTLE, sense: 1.0, length: 0.1 };
            self.rub(w, &whole, LITTLE);
            self.cold_start(w, 1.0);
            let mut done = keep(self.go_from(w, at, 1.0, stats));
            self.rub(w, &whole, 1.0);
            if done && level > kappa {
                let at = Point { parameter: Parameter::Path, value: level, sense: -1.0, length: 1.0 };
                done = keep(self.go_from(w, at, kappa, stats));
            }
            if done {
                return Ok(());
            }
        }
        Err(failed.unwrap_or_else(|| self.failure(StepFailure::NotConverged, w, 0, f64::NAN)))
    }

    /// Takes a share of the friction of `whole`.
    fn rub(&self, w: &mut Work, whole: &[Law], share: f64) {
        for (e, law) in w.contacts.elements.iter_mut().zip(whole) {
            (e.law.mu, e.law.bound) = (law.mu * share, law.bound * share);
        }
    }

    /// From a solution, which the iterate is near, to where the parameter is `goal`; no, where the curve leads elsewhere.
    fn go_from(
        &self,
        w: &mut Work,
        mut at: Point,
        goal: f64,
        stats: &mut StepStats,
    ) -> Result<bool, StepError> {
        self.settle(w, at.kappa(), stats)?;
        let whole: Vec<_> = w.contacts.elements.iter().map(|e| e.law).collect();
        let start = at.value;
        for e in &mut w.contacts.elements {
            e.tangent = [0.0; 5];
        }
        for _ in 0..MOST_POINTS {
            stats.iterations += 1;
            if let Err(e) = self.curve_tangent(w, &mut at) { if trace() { eprintln!("     T {e:?}"); } return Err(e); }
            if at.value > HIGHEST || at.parameter != Parameter::Path && at.value < 0.5 * start {
                break;
            }
            // kept, should the next not be found
            w.y.copy_from_slice(&w.trial);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.affine = e.local;
                if let Some((_, f)) = sides {
                    f.affine = f.at;
                }
            }
            let left = (goal / at.value).ln() / at.sense;
            let left = if left > 0.0 { left } else { f64::INFINITY };
            let reach = self.reach(w, at.sense);
            let step = at.length.min(PREDICTED * reach).min(left);
            self.advance_by(w, step * at.sense);
            let mut next = at;
            next.value *= (step * at.sense).exp();
            if step == left {
                next.value = goal;
                self.put(w, &next, &whole, start);
                if self.settle(w, next.kappa(), stats).is_ok() {
                    return Ok(true);
                }
            } else if let Some(n) = self.correct(w, &mut next, &whole, start) {
                stats.iterations += n;
                if trace() {
                    eprintln!("   point {at:?} step {step:.1e} reach {reach:.1e} n {n}");
                }
                if (goal / at.value).ln() * (goal / next.value).ln() < 0.0 {
                    // passed
                    next.value = goal;
                    self.put(w, &next, &whole, start);
                    if self.settle(w, next.kappa(), stats).is_ok() {
                        return Ok(true);
                    }
                } else {
                let growth = if n <= 3 { 2.0 } else { 1.0 };
                next.length = (growth * step).min(LONGEST);
                at = next;
                continue;
                }
            }
            if trace() {
                eprintln!("   point {at:?} step {step:.1e} reach {reach:.1e} FAIL");
            }
            at.length = 0.5 * step;
            if at.length < SHORTEST {
                break;
            }
            self.put(w, &at, &whole, start);
            w.trial.copy_from_slice(&w.y);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.local = e.affine;
                if let Some((_, f)) = sides {
                    f.at = f.affine;
                }
            }
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

    /// Makes the parameter hold.
    fn put(&self, w: &mut Work, at: &Point, whole: &[Law], start: f64) {
        if let Parameter::Friction(_) = at.parameter {
            self.rub(w, whole, at.value / start);
        }
    }

    /// The tangent at a point, as the direction by the logarithm of the parameter, and by length as what is kept.
    fn curve_tangent(&self, w: &mut Work, at: &mut Point) -> Result<(), StepError> {
        self.evaluate(w);
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
            e.target = e.answering(sides, 0.0, products, bound);
        }
        self.direct(w, false, true);
    }

    /// How far the direction may be followed, `scale` times.
    fn reach(&self, w: &mut Work, scale: f64) -> f64 {
        let mut reach = f64::INFINITY;
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            reach = reach.min(e.reach(sides, scale));
        }
        reach
    }

    /// Moves along the direction.
    fn advance_by(&self, w: &mut Work, length: f64) {
        for (t, d) in w.trial.iter_mut().zip(&w.delta) {
            *t -= length * d;
        }
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            e.advance(sides, length);
        }
    }

    /// Newton's method across the tangent; how many iterations it took.
    fn correct(&self, w: &mut Work, at: &mut Point, whole: &[Law], start: f64) -> Option<usize> {
        for n in 1..=MOST_CORRECTIONS {
            if self.outside_domain(w).is_some() {
                return None;
            }
            self.put(w, at, whole, start);
            self.evaluate(w);
            self.assemble_and_keep(w, true);
            if let Err(e) = self.factor(w) { if trace() { eprintln!("     {e:?}"); } return None; }
            self.rise(w, at);
            let (rise, _) = w.contacts.measure();
            w.contacts.spare.copy_from_slice(&w.delta);
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
            let change = -along / (rise + at.sense);
            for (d, t) in w.delta.iter_mut().zip(&w.contacts.spare) {
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
            let length = (0.9 * self.reach(w, 1.0)).min(1.0).min(1.0 / change.abs());
            if trace() {
                eprintln!("      size {size:.1e} length {length:.2} change {change:.1e} value {:.1e}", at.value);
            }
            // a NaN ends it, too
            if !(size.is_finite() && length > LEAST) {
                return None;
            }
            self.advance_by(w, length);
            at.value *= (length * change).exp();
            if length == 1.0 && size < NEAR {
                return Some(n);
            }
        }
        None
    }
}
