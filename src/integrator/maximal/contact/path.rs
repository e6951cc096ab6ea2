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
use super::interior::trace;
use super::{Element, Memory};
use crate::dynamics::{StepError, StepFailure, StepStats};

/// Where the curve begins, and where it is left, m^2/s^2.
const STARTS: [f64; 4] = [1.0, 1e2, 1e4, 1e6];
const HIGHEST: f64 = 1e9;
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

/// A point of the curve.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// The path's parameter there, m^2/s^2.
    kappa: f64,
    /// Change of its logarithm along the tangent.
    sense: f64,
    /// How far the next point may be.
    length: f64,
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
    /// Leads the iterate to `kappa` along the curve through the solution at a large parameter, one way or the other.
    pub(super) fn go_around(
        &self,
        w: &mut Work,
        kappa: f64,
        stats: &mut StepStats,
    ) -> Result<(), StepError> {
        let mut failed = None;
        for start in STARTS {
            for sense in [-1.0, 1.0] {
                match self.go_from(w, start, sense, kappa, stats) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(error) => {
                        failed = failed.or(Some(error));
                    }
                }
            }
        }
        Err(failed.unwrap_or_else(|| self.failure(StepFailure::NotConverged, w, 0, f64::NAN)))
    }

    /// The same from one solution, with `kappa` falling (`sense = -1`) or rising at first.
    fn go_from(
        &self,
        w: &mut Work,
        start: f64,
        sense: f64,
        kappa: f64,
        stats: &mut StepStats,
    ) -> Result<bool, StepError> {
        self.cold_start(w, start);
        match self.follow(w, start, 0.9) {
            Ok(s) => *stats = stats.and(&s),
            Err((error, s)) => {
                *stats = stats.and(&s);
                return Err(error);
            }
        }
        for e in &mut w.contacts.elements {
            e.tangent = [0.0; 5];
        }
        let mut at = Point {
            kappa: start,
            sense,
            length: 1.0,
        };
        for _ in 0..MOST_POINTS {
            stats.iterations += 1;
            if let Err(e) = self.curve_tangent(w, &mut at) { if trace() { eprintln!("     T {e:?}"); } return Err(e); }
            if at.kappa > HIGHEST {
                return Ok(false);
            }
            // kept, should the next not be found
            w.y.copy_from_slice(&w.trial);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.affine = e.local;
                if let Some((_, f)) = sides {
                    f.affine = f.at;
                }
            }
            let down = if at.sense < 0.0 {
                (at.kappa / kappa).ln() / -at.sense
            } else {
                f64::INFINITY
            };
            let reach = self.reach(w, at.sense);
            let step = at.length.min(PREDICTED * reach).min(down);
            self.advance_by(w, step * at.sense);
            let mut next = at;
            next.kappa *= (step * at.sense).exp();
            if step == down {
                let followed = self.follow(w, kappa, 0.9);
                let (Ok(s) | Err((_, s))) = &followed;
                *stats = stats.and(s);
                if followed.is_ok() {
                    return Ok(true);
                }
            } else if let Some(n) = self.correct(w, &mut next) {
                stats.iterations += n;
                if trace() {
                    eprintln!("   point {at:?} step {step:.1e} reach {reach:.1e} n {n}");
                }
                let growth = if n <= 3 { 2.0 } else { 1.0 };
                next.length = (growth * step).min(LONGEST);
                at = next;
                continue;
            }
            if trace() {
                eprintln!("   point {at:?} step {step:.1e} reach {reach:.1e} FAIL");
            }
            at.length = 0.5 * step.abs();
            if at.length < SHORTEST {
                break;
            }
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

    /// The tangent at a point, as the direction by the logarithm of `kappa`, and by length as what is kept.
    fn curve_tangent(&self, w: &mut Work, at: &mut Point) -> Result<(), StepError> {
        self.evaluate(w);
        self.assemble_and_keep(w, true);
        self.factor(w)?;
        self.rise(w, at.kappa);
        let (along, square) = w.contacts.measure();
        at.sense = (along + at.sense).signum() / (1.0 + square).sqrt();
        for e in &mut w.contacts.elements {
            e.tangent = e.relative().map(|d| d * at.sense);
        }
        Ok(())
    }

    /// The direction of products that grow by `kappa`.
    fn rise(&self, w: &mut Work, kappa: f64) {
        for (e, sides, _) in w.contacts.each(&self.contacts) {
            e.target = e.answering(sides, 0.0, kappa, 0.0);
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
    fn correct(&self, w: &mut Work, at: &mut Point) -> Option<usize> {
        for n in 1..=MOST_CORRECTIONS {
            if self.outside_domain(w).is_some() {
                return None;
            }
            self.evaluate(w);
            self.assemble_and_keep(w, true);
            if let Err(e) = self.factor(w) { if trace() { eprintln!("     {e:?}"); } return None; }
            self.rise(w, at.kappa);
            let (rise, _) = w.contacts.measure();
            w.contacts.spare.copy_from_slice(&w.delta);
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.spare = e.direction;
                if let Some((_, f)) = sides {
                    f.spare = f.direction;
                }
            }
            for (e, sides, _) in w.contacts.each(&self.contacts) {
                e.aim(sides, at.kappa, false);
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
                eprintln!("      size {size:.1e} length {length:.2} change {change:.1e} kappa {:.1e}", at.kappa);
            }
            // a NaN ends it, too
            if !(size.is_finite() && length > LEAST) {
                return None;
            }
            self.advance_by(w, length);
            at.kappa *= (length * change).exp();
            if length == 1.0 && size < NEAR {
                return Some(n);
            }
        }
        None
    }
}
