//! Quantities that a problem asks to be written.

use super::Model;
use crate::dynamics::{Knot, Observe};
use crate::integrator::Mechanical;
use crate::mechanism::{KnotData, Quantity};
use crate::rollout::Trajectory;

/// Name, unit, and a value for each knot that has one.
pub(super) type Column = (String, String, Vec<Option<f64>>);

/// What a column shows.
enum Shown {
    Quantity(Quantity),
    /// Rate of a control.
    Rate(usize),
}

/// The columns of a trajectory.
pub(super) struct Recorded(Vec<(Shown, Column)>);

impl Recorded {
    pub fn new(model: &Model) -> Self {
        if model.recorded.is_empty() {
            return Self(vec![]);
        }
        let outputs = model.system.outputs();
        let names = model.extended().quantities();
        let column = |i: usize| {
            let shown = match outputs.get(i) {
                Some(output) => Shown::Quantity(*output),
                None => Shown::Rate(i - outputs.len()),
            };
            let (name, unit) = names[i].clone();
            (shown, (name, unit, vec![]))
        };
        Self(model.recorded.iter().map(|q| column(q.index())).collect())
    }

    /// Keeps a knot.
    pub fn see(&mut self, t: &Trajectory, at: &Knot, data: &KnotData) {
        let (k, ends) = (at.k, at.k == t.steps());
        for (shown, (.., values)) in &mut self.0 {
            values.push(match shown {
                Shown::Rate(_) | Shown::Quantity(Quantity::Control(_)) if ends => None,
                Shown::Rate(_) if k == 0 => Some(0.0),
                Shown::Rate(i) => Some((t.control(k)[*i] - t.control(k - 1)[*i]) / at.h_prev),
                Shown::Quantity(q) if q.needs().reactions && data.reactions.is_empty() => None,
                Shown::Quantity(q) => Some(q.value(data)),
            });
        }
    }

    pub fn columns(self) -> impl Iterator<Item = Column> {
        self.0.into_iter().map(|(_, column)| column)
    }
}
