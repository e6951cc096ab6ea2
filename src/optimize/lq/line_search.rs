//! The line search: backtracking, by interpolation, to sufficient decrease: a step brings a part of what is predicted.

use crate::dynamics::stop_requested;

/// Change of a merit below which it is that of rounding, relative to the merit: some fifty times the machine's epsilon,
/// as sums over the knots round more than once.
pub const ROUNDING: f64 = 1e-14;
/// Largest part of a step to try next (Dennis and Schnabel 1983, algorithm A6.3.1).
pub const MAX_CONTRACTION: f64 = 0.5;
/// Beyond this length a step is not shortened by more than that: far from its start what was observed says little. The
/// value is conventional; it trades rollouts for longer steps.
const LONG_STEP: f64 = 0.2;

/// A merit along a step as a model says: `m(a) = before + a slope + a^2/2 curvature`.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub before: f64,
    pub slope: f64,
    pub curvature: f64,
    /// Part of the predicted change that a step must bring.
    pub sufficient_decrease: f64,
    /// Smallest part of a step to try next; [`MAX_CONTRACTION`] for halves whatever was observed.
    pub min_contraction: f64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LineSearch {
    /// A step of this length decreases the merit sufficiently, and its change.
    Accepted(f64, f64),
    /// None does; the curvature last observed, infinite where the step cannot be made.
    Failed(f64),
    /// Asked to stop.
    Stopped,
}

impl Line {
    /// Sufficient decrease: is the change by a step of this length a given part of what is predicted?
    fn is_sufficient(&self, length: f64, change: f64) -> bool {
        let predicted = length * self.slope + 0.5 * length * length * self.curvature;
        change <= self.sufficient_decrease * predicted.min(0.0) + ROUNDING * self.before.abs()
    }

    /// Curvature of the merit that a change shows.
    pub fn observed_curvature(&self, length: f64, change: f64) -> f64 {
        2.0 * (change - length * self.slope) / (length * length)
    }

    /// Tries lengths from the first to the shortest; `change` is that of the merit, infinite where the step cannot be made.
    pub fn search(
        &self,
        first: f64,
        shortest: f64,
        mut change: impl FnMut(f64) -> f64,
    ) -> LineSearch {
        let (mut length, mut observed) = (first, f64::INFINITY);
        while length >= shortest {
            if stop_requested() {
                return LineSearch::Stopped;
            }
            let change = change(length);
            if self.is_sufficient(length, change) {
                return LineSearch::Accepted(length, change);
            }
            observed = self.observed_curvature(length, change);
            let best = if observed.is_finite() {
                -self.slope / observed
            } else {
                length
            };
            let least = if length > LONG_STEP {
                MAX_CONTRACTION
            } else {
                self.min_contraction
            };
            length = if length > 1.0 {
                1.0
            } else {
                best.clamp(least * length, MAX_CONTRACTION * length)
            };
        }
        // a step that a stop broke off did not fail
        if stop_requested() {
            LineSearch::Stopped
        } else {
            LineSearch::Failed(observed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sufficient_step_is_found_and_no_other_taken() {
        // m(a) = (a - 0.3)^2: the whole step overshoots
        let m = |a: f64| (a - 0.3).powi(2) - 0.09;
        let line = Line {
            before: 0.09,
            slope: -0.6,
            curvature: 0.6,
            sufficient_decrease: 0.05,
            min_contraction: 0.1,
        };
        let LineSearch::Accepted(length, change) = line.search(1.0, 1e-3, m) else {
            panic!("a descent is there");
        };
        assert!(length < 0.6 && change < 0.0 && change == m(length));
        assert!((line.observed_curvature(length, change) - 2.0).abs() < 1e-12);
        // what only rises has none, and what cannot be made neither
        let rises = |a: f64| a;
        assert!(matches!(line.search(2.0, 1e-3, rises), LineSearch::Failed(b) if b > 0.0));
        let none = |_: f64| f64::INFINITY;
        assert_eq!(
            line.search(1.0, 1e-3, none),
            LineSearch::Failed(f64::INFINITY)
        );
    }
}
