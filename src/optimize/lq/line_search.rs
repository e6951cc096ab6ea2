//! The line search: backtracking, by interpolation, to a step that brings a fair part of what is predicted.

use crate::dynamics::stop_requested;

/// Change of a merit below which it is that of rounding, relative to the merit.
pub const ROUNDING: f64 = 1e-14;
/// Largest part of a step to try next.
pub const MOST: f64 = 0.5;
/// Beyond this length a step is not shortened by more than that: far from its start what was seen says little.
const FAR: f64 = 0.2;

/// A merit along a step as a model says: `m(a) = before + a slope + a^2/2 bend`.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub before: f64,
    pub slope: f64,
    pub bend: f64,
    /// Part of the predicted change that a step must bring.
    pub fair: f64,
    /// Least part of a step to try next; [`MOST`] for halves whatever was seen.
    pub least: f64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Searched {
    /// A step of this length brings a fair change, and which.
    Fair(f64, f64),
    /// None does; the second derivative last seen, infinite where the step cannot be made.
    Failed(f64),
    /// Asked to stop.
    Stopped,
}

impl Line {
    /// Is the change by a step of this length a fair part of what is predicted?
    fn is_fair(&self, length: f64, change: f64) -> bool {
        let predicted = length * self.slope + 0.5 * length * length * self.bend;
        change <= self.fair * predicted.min(0.0) + ROUNDING * self.before.abs()
    }

    /// Second derivative of the merit, as a change shows it.
    pub fn bend_seen(&self, length: f64, change: f64) -> f64 {
        2.0 * (change - length * self.slope) / (length * length)
    }

    /// Tries lengths from the first to the shortest; `change` is that of the merit, infinite where the step cannot be made.
    pub fn search(
        &self,
        first: f64,
        shortest: f64,
        mut change: impl FnMut(f64) -> f64,
    ) -> Searched {
        let (mut length, mut seen) = (first, f64::INFINITY);
        while length >= shortest {
            if stop_requested() {
                return Searched::Stopped;
            }
            let change = change(length);
            if self.is_fair(length, change) {
                return Searched::Fair(length, change);
            }
            seen = self.bend_seen(length, change);
            let best = if seen.is_finite() {
                -self.slope / seen
            } else {
                length
            };
            let least = if length > FAR { MOST } else { self.least };
            length = if length > 1.0 {
                1.0
            } else {
                best.clamp(least * length, MOST * length)
            };
        }
        Searched::Failed(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_step_is_found_and_no_unfair_one_taken() {
        // m(a) = (a - 0.3)^2: the whole step overshoots
        let m = |a: f64| (a - 0.3).powi(2) - 0.09;
        let line = Line {
            before: 0.09,
            slope: -0.6,
            bend: 0.6,
            fair: 0.05,
            least: 0.1,
        };
        let Searched::Fair(length, change) = line.search(1.0, 1e-3, m) else {
            panic!("a descent is there");
        };
        assert!(length < 0.6 && change < 0.0 && change == m(length));
        assert!((line.bend_seen(length, change) - 2.0).abs() < 1e-12);
        // what only rises has none, and what cannot be made neither
        let rises = |a: f64| a;
        assert!(matches!(line.search(2.0, 1e-3, rises), Searched::Failed(b) if b > 0.0));
        let none = |_: f64| f64::INFINITY;
        assert_eq!(
            line.search(1.0, 1e-3, none),
            Searched::Failed(f64::INFINITY)
        );
    }
}
