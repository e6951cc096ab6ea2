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

use super::element::Sides;
use super::start::Cold;
use super::{Element, Failed, Memory, NewtonSystem, Solver};
use crate::dynamics::StepFailure;

// As those of [`super::interior`], these trade iterations for curves that are lost, on the same drops, and change nothing of
// what a solved step is.

/// Where the central path is entered, m^2/s^2: higher where no solution is found, up to speeds of 100 m/s.
const STARTS: [f64; 3] = [1.0, 1e2, 1e4];
/// Levels on which friction grows, m^2/s^2, and the share of it that it begins with, which a convex problem's solution is
/// near to.
const LEVELS: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5];
const LITTLE: f64 = 0.01;
/// Where a curve is left that leads away from its goal, by the value it began with: a thousand times the speeds.
const AWAY: f64 = 1e6;
/// Points on a curve, corrections of one (Newton's method doubles its digits: who needs more is off the curve), and the
/// shortest and longest piece between two, in logarithms.
const MOST_POINTS: usize = 400;
const MOST_CORRECTIONS: usize = 6;
const SHORTEST: f64 = 1e-6;
const LONGEST: f64 = 4.0;
/// First piece of friction's curve, which turns soonest; the central path's is 1.
const ROUGH: f64 = 0.1;
/// Part of the way to the boundary of the cones that a prediction, and a correction, may go.
const PREDICTED: f64 = 0.7;
const CORRECTED: f64 = 0.9;
/// Last change of a point on the curve, whose next correction is its square, and the least part of a correction worth
/// going on. The tangent at the point takes the factors of its last correction. With 1e-3, and factors of the point itself, curves of
/// random trees took 260 iterations in place of 190, and led no more often to the end.
const NEAR: f64 = 1e-2;
const LEAST: f64 = 0.05;
/// Least part of the way to the boundary that Newton's method goes at a point.
const SETTLED: f64 = 0.9;
/// Corrections of a point up to which the next piece is twice as long.
const EASY: usize = 3;

/// No curve, and no bound of friction, led to the end.
pub(super) const NOWHERE: Failed = Failed {
    failure: StepFailure::NotConverged,
    row: 0,
    residual: f64::NAN,
};

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
            length: ROUGH,
        }
    }

    /// Change of the parameter's logarithm to the goal.
    fn left(&self, goal: f64) -> f64 {
        (goal / self.value).ln()
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
        if law.frictional {
            let u0 = law.bound_at(l);
            out[2] = d.psi / l.psi;
            for i in 0..2 {
                out[3 + i] = (d.b[i] - l.b[i] * out[1]) / u0;
            }
        }
        out
    }

    /// Takes a share of all friction; false where a pyramid does not hold the friction impulse then.
    fn take_share(&mut self, sides: Sides, share: f64) -> bool {
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

/// What a point on a curve leads to.
enum Next {
    /// A further point.
    Point(Point),
    /// The solution at the goal.
    Arrived,
    /// Nothing, so far: a shorter piece may.
    Nothing,
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Leads the iterate to `kappa` along the central path.
    pub(super) fn go_around(&mut self, kappa: f64) -> Result<(), Failed> {
        let mut failed = None;
        for value in STARTS {
            self.cold_start(Cold::Joints, value);
            match self.go_from(Point::down(value), kappa) {
                Ok(true) => return self.refuse_thrown(kappa),
                // it would be the same curve from higher up
                Ok(false) => break,
                Err(error) if error.may_retry() => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or(NOWHERE))
    }

    /// Leads the iterate to `kappa` along curves on which friction grows.
    pub(super) fn go_by_friction(&mut self, kappa: f64) -> Result<(), Failed> {
        let mut failed = None;
        for e in &mut self.step.contacts_mut().elements {
            e.whole = e.law;
        }
        for level in LEVELS {
            match self.go_on_level(level, kappa) {
                Ok(true) => return self.refuse_thrown(kappa),
                Ok(false) => {}
                Err(error) if error.may_retry() => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or(NOWHERE))
    }

    /// From little friction to all of it on a level, and from there down the central path.
    fn go_on_level(&mut self, level: f64, kappa: f64) -> Result<bool, Failed> {
        self.hold(&Point::rough(level));
        self.cold_start(Cold::Joints, 1.0);
        let done = self.go_from(Point::rough(level), 1.0);
        self.take_share(1.0);
        if let Ok(true) = done {
            return self.go_from(Point::down(level), kappa);
        }
        done
    }

    /// Along the curve through the solution that the iterate is near to, until its parameter is `goal`: the iterate is
    /// the solution there, unless the curve leads elsewhere.
    fn go_from(&mut self, mut at: Point, goal: f64) -> Result<bool, Failed> {
        self.settle(at.kappa())?;
        self.factor_point()?;
        let farthest = (goal / at.value).ln().abs() + AWAY.ln();
        for e in &mut self.step.contacts_mut().elements {
            e.tangent = [0.0; 5];
        }
        for _ in 0..MOST_POINTS {
            self.find_tangent(&mut at);
            if at.left(goal).abs() > farthest {
                break;
            }
            self.keep_point();
            match self.find_next(&mut at, goal)? {
                Next::Arrived => return Ok(true),
                Next::Point(next) => at = next,
                Next::Nothing if at.length < SHORTEST => break,
                Next::Nothing => {
                    self.go_back(&at);
                    self.factor_point()?;
                }
            }
        }
        Ok(false)
    }

    /// The next point: predicted along the tangent, corrected across it; at the goal, solved there. The length of the
    /// piece is halved where there is none.
    fn find_next(&mut self, at: &mut Point, goal: f64) -> Result<Next, Failed> {
        let left = at.left(goal);
        let mut step = at.length.min(PREDICTED * self.reach(at.sense));
        let arrives = left * at.sense > 0.0 && step * at.sense.abs() >= left.abs();
        if arrives {
            step = left / at.sense;
        }
        at.length = 0.5 * step;
        self.advance_by(step * at.sense);
        let mut next = Point {
            value: at.value * (step * at.sense).exp(),
            ..*at
        };
        let corrections = if arrives {
            0
        } else {
            match self.correct(&mut next)? {
                Some(corrections) => corrections,
                None => return Ok(Next::Nothing),
            }
        };
        if arrives || left * next.left(goal) < 0.0 {
            next.value = goal;
            return self.arrive(&next);
        }
        let growth = if corrections <= EASY { 2.0 } else { 1.0 };
        next.length = (growth * step).min(LONGEST);
        Ok(Next::Point(next))
    }

    /// The solution at the goal, near to which the iterate is.
    fn arrive(&mut self, at: &Point) -> Result<Next, Failed> {
        if !self.hold(at) {
            return Ok(Next::Nothing);
        }
        match self.settle(at.kappa()) {
            Ok(()) => Ok(Next::Arrived),
            Err(error) if error.may_retry() => Ok(Next::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Makes the parameter hold; false where the iterate is not inside the cones then.
    fn hold(&mut self, at: &Point) -> bool {
        match at.parameter {
            Parameter::Path => true,
            Parameter::Friction(_) => self.take_share(at.value),
        }
    }

    fn take_share(&mut self, share: f64) -> bool {
        let each = self.step.contacts_mut().each(self.layout);
        each.fold(true, |inside, (e, sides, _)| {
            e.take_share(sides, share) && inside
        })
    }

    /// Newton's method at one point.
    fn settle(&mut self, kappa: f64) -> Result<(), Failed> {
        self.follow(kappa, SETTLED)
    }

    /// The point is kept, should the next not be found.
    pub(super) fn keep_point(&mut self) {
        let mut point = std::mem::take(&mut self.step.contacts_mut().point);
        point.copy_from_slice(self.step.trial());
        self.step.contacts_mut().point = point;
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            e.point = e.local;
            if let Some((_, f)) = sides {
                f.point = f.at;
            }
        }
    }

    /// Back to the point that was kept.
    pub(super) fn return_to_point(&mut self) {
        let point = std::mem::take(&mut self.step.contacts_mut().point);
        self.step.trial().copy_from_slice(&point);
        self.step.contacts_mut().point = point;
        self.step.moved();
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            (e.local, e.follows) = (e.point, None);
            if let Some((_, f)) = sides {
                f.at = f.point;
            }
        }
    }

    /// The same with the parameter there.
    fn go_back(&mut self, at: &Point) {
        self.return_to_point();
        self.hold(at);
    }

    /// Evaluates and factors at a point.
    fn factor_point(&mut self) -> Result<(), Failed> {
        let (residual, row, _) = self.step.evaluate();
        self.spend(row, residual)?;
        self.step.assemble(true);
        (self.step.factor(None)).map_err(|failed| Failed { residual, ..failed })
    }

    /// The tangent at a point by the factors at hand, as the direction by the logarithm of the parameter, and by length as what is kept.
    fn find_tangent(&mut self, at: &mut Point) {
        self.rise(at);
        let c = self.step.contacts_mut();
        let (along, square) = c.measure();
        at.sense = (along + at.sense).signum() / (1.0 + square).sqrt();
        for e in &mut c.elements {
            e.tangent = e.relative().map(|d| d * at.sense);
        }
    }

    /// The direction by the logarithm of the parameter.
    fn rise(&mut self, at: &Point) {
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            let (products, bound) = match at.parameter {
                Parameter::Path => (at.value, 0.0),
                Parameter::Friction(_) => (0.0, e.law.bound_at(&e.local)),
            };
            e.target = e.target_of(sides, 0.0, products, bound);
        }
        self.direct(false, Some(0.0));
    }

    /// How far the direction may be followed, `scale` times.
    fn reach(&mut self, scale: f64) -> f64 {
        let each = self.step.contacts_mut().each(self.layout);
        each.map(|(e, sides, _)| e.reach(sides, scale))
            .fold(f64::INFINITY, f64::min)
    }

    /// Moves along the direction.
    fn advance_by(&mut self, length: f64) {
        let delta = std::mem::take(&mut self.step.contacts_mut().delta);
        for (t, d) in self.step.trial().iter_mut().zip(&delta) {
            *t -= length * d;
        }
        self.step.contacts_mut().delta = delta;
        self.step.moved();
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            e.advance(sides, length);
        }
    }

    /// Newton's method across the tangent; how many iterations it took, if it found the curve.
    fn correct(&mut self, at: &mut Point) -> Result<Option<usize>, Failed> {
        for n in 1..=MOST_CORRECTIONS {
            if !self.hold(at) || self.outside_domain().is_some() {
                return Ok(None);
            }
            let (residual, row, _) = self.step.evaluate();
            self.spend(row, residual)?;
            self.step.assemble(true);
            if self.step.factor(None).is_err() {
                return Ok(None);
            }
            let change = self.across(at);
            let (_, square) = self.step.contacts().measure();
            let size = square.sqrt().max(change.abs());
            let part = (CORRECTED * self.reach(1.0)).min(1.0);
            let part = part.min(1.0 / change.abs());
            if !size.is_finite() || part < LEAST {
                return Ok(None);
            }
            self.advance_by(part);
            at.value *= (part * change).exp();
            if part == 1.0 && size < NEAR {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// Newton's direction with nothing along the tangent in all; returns its change of the parameter's logarithm.
    fn across(&mut self, at: &Point) -> f64 {
        self.rise(at);
        let c = self.step.contacts_mut();
        let (rise, _) = c.measure();
        c.spare.copy_from_slice(&c.delta);
        for (e, sides, _) in c.each(self.layout) {
            e.spare = e.direction;
            if let Some((_, f)) = sides {
                f.spare = f.direction;
            }
        }
        for (e, sides, _) in c.each(self.layout) {
            e.aim(sides, at.kappa(), false);
        }
        self.direct(true, Some(0.0));
        let c = self.step.contacts_mut();
        let (along, _) = c.measure();
        let change = -along / (rise + at.sense);
        for (d, t) in c.delta.iter_mut().zip(&c.spare) {
            *d += change * t;
        }
        for (e, sides, _) in c.each(self.layout) {
            e.direction = e.direction.moved(&e.spare, change);
            if let Some((_, f)) = sides {
                f.direction = f.direction.moved(&f.spare, change);
            }
        }
        change
    }
}
