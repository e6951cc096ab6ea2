//! Smallest and largest values, of which either may be open.

use serde::{Deserialize, Serialize};

/// Smallest and largest value. A side that is infinite is open: `inf` in TOML, which JSON writes as `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "[Option<f64>; 2]", into = "[f64; 2]")]
#[schemars(with = "[f64; 2]")]
pub struct Range {
    /// The smallest.
    pub lower: f64,
    /// The largest.
    pub upper: f64,
}

impl Range {
    /// No smallest and no largest value.
    pub const OPEN: Self = Self {
        lower: f64::NEG_INFINITY,
        upper: f64::INFINITY,
    };

    /// From the smallest to the largest.
    pub fn new(lower: f64, upper: f64) -> Self {
        Self { lower, upper }
    }

    /// Are the sides numbers in their order, and at least one of them finite?
    pub(super) fn is_valid(&self) -> bool {
        self.lower < self.upper && *self != Self::OPEN
    }
}

impl From<[Option<f64>; 2]> for Range {
    fn from([lower, upper]: [Option<f64>; 2]) -> Self {
        Self {
            lower: lower.unwrap_or(Self::OPEN.lower),
            upper: upper.unwrap_or(Self::OPEN.upper),
        }
    }
}

impl From<Range> for [f64; 2] {
    fn from(r: Range) -> Self {
        [r.lower, r.upper]
    }
}
