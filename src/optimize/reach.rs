//! The verdict on constraints that stay violated.

use super::Status;

/// Part of the merit below which what the model promises is nothing: the point is a stationary one, and a violation that
/// fell by less did not fall.
pub(super) const STATIONARY: f64 = 1e-3;

/// What is known of constraints that stay violated.
pub(super) struct Unmet<'a> {
    /// In words.
    pub violated: String,
    /// Those that no decision changes to first order.
    pub flat: Vec<String>,
    /// To what the penalty grew.
    pub penalty: f64,
    /// Is there anything to decide?
    pub decides: bool,
    /// Has the system contact, limits or friction?
    pub touches: bool,
    /// Violation of the guess, and now.
    pub before: f64,
    pub now: f64,
    /// How contact is made to tell more.
    pub remedy: &'a str,
}

impl Unmet<'_> {
    /// Out of reach only where gradients that do not vanish, or a smooth way to where they do, show it.
    pub fn verdict(self) -> (Status, String) {
        let Self {
            violated, penalty, ..
        } = &self;
        let fell = !self.touches && self.now < (1.0 - STATIONARY) * self.before;
        if self.flat.is_empty() || !self.decides || fell {
            let reason = format!(
                "these stay violated although the penalty grew to {penalty:.0e}: {violated}; are they within reach?"
            );
            return (Status::Infeasible, reason);
        }
        let remedy = if self.touches {
            format!(
                "contact that is not made and friction that is not overcome have no derivative: {}, or start from a guess that makes contact",
                self.remedy
            )
        } else {
            "start from a guess at which it does".into()
        };
        let reason = format!(
            "violated: {violated}; no control or parameter changes {} to first order; {remedy}",
            self.flat.join(", ")
        );
        (Status::Diverged, reason)
    }
}
