//! Pairs of violation and barrier function that a new iterate has to improve on.

use serde::{Deserialize, Serialize};

/// Part of the violation by which a point has to be better than one of the filter; and by which the barrier function has
/// to be.
pub const MARGINS: (f64, f64) = (1e-5, 1e-8);

/// The filter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Filter {
    entries: Vec<(f64, f64)>,
}

impl Filter {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Is a point better than each in one of both?
    pub fn accepts(&self, (violation, value): (f64, f64)) -> bool {
        self.entries
            .iter()
            .all(|(v, f)| at_most(violation, *v) || at_most(value, *f))
    }

    /// Refuses from here on what is not better than this point.
    pub fn add(&mut self, (violation, value): (f64, f64)) {
        let entry = ((1.0 - MARGINS.0) * violation, value - MARGINS.1 * violation);
        self.insert(entry);
    }

    /// [`Filter::add`] without margins.
    pub fn insert(&mut self, entry: (f64, f64)) {
        self.entries.retain(|(v, f)| *v < entry.0 || *f < entry.1);
        self.entries.push(entry);
    }
}

/// `a <= b` but for rounding.
pub fn at_most(a: f64, b: f64) -> bool {
    a - b <= 10.0 * f64::EPSILON * b.abs()
}
