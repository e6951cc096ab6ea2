//! Bounds of decisions by multipliers.

use super::augmented::Param;

/// Multipliers of the bounds of the scaled decisions, and their penalty.
pub(super) struct BoundMultipliers {
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    pub penalty: f64,
    pub bounds: Vec<(f64, f64)>,
}

impl BoundMultipliers {
    /// `m + b g` of both bounds of the scaled decision `i`; a bound acts where it is positive.
    pub fn estimates(&self, i: usize, v: f64) -> (f64, f64) {
        let (l, u) = self.bounds[i];
        let b = self.penalty;
        (
            (self.lower[i] + b * (l - v)).max(0.0),
            (self.upper[i] + b * (v - u)).max(0.0),
        )
    }

    /// Their terms of the function.
    pub fn value(&self, at: &Param) -> f64 {
        let of = |(i, v): (usize, &f64)| {
            let (lower, upper) = self.estimates(i, *v);
            lower * lower - self.lower[i] * self.lower[i] + upper * upper
                - self.upper[i] * self.upper[i]
        };
        at.iter().enumerate().map(of).sum::<f64>() / (2.0 * self.penalty)
    }

    pub fn update(&mut self, at: &Param, growth: f64) {
        for (i, v) in at.iter().enumerate() {
            (self.lower[i], self.upper[i]) = self.estimates(i, *v);
        }
        self.penalty *= growth;
    }
}
