//! The verdict on constraints that stay violated.

use super::Status;

/// Part of the merit below which what the model predicts to gain is nothing: the point is a stationary one, and a violation that
/// fell by less did not fall.
pub(super) const STATIONARY: f64 = 1e-3;

/// What is known of constraints that stay violated.
pub(super) struct Infeasibility<'a> {
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

impl Infeasibility<'_> {
    /// Out of reach only where gradients that do not vanish, or a smooth way to where they do, show it; of systems that touch
    /// they show it for the contacts that are made on the way, and for no others.
    pub fn verdict(self) -> (Status, String) {
        let Self {
            violated, penalty, ..
        } = &self;
        let fell = !self.touches && self.now < (1.0 - STATIONARY) * self.before;
        if self.flat.is_empty() || !self.decides || fell {
            let stay = format!(
                "these stay violated although the penalty grew to {penalty:.0e}: {violated}"
            );
            if self.touches && self.decides {
                let reason = format!(
                    "{stay}; with other contacts they may be met: {}, or start from another guess",
                    self.remedy
                );
                return (Status::Diverged, reason);
            }
            return (
                Status::Infeasible,
                format!("{stay}; are they within reach?"),
            );
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

#[cfg(test)]
mod tests {
    use super::*;

    fn infeasibility() -> Infeasibility<'static> {
        Infeasibility {
            violated: "x >= 1 at the end by 5e-1".into(),
            flat: vec![],
            penalty: 1e10,
            decides: true,
            touches: false,
            before: 1.0,
            now: 0.5,
            remedy: "soften it",
        }
    }

    #[test]
    fn infeasible_is_what_is_shown() {
        let (status, reason) = infeasibility().verdict();
        assert_eq!(status, Status::Infeasible);
        assert!(
            reason.contains("x >= 1") && reason.contains("1e10"),
            "{reason}"
        );
        // contacts that are not made on the way show nothing, unless there is nothing to decide
        let mut touches = infeasibility();
        touches.touches = true;
        let (status, reason) = touches.verdict();
        assert_eq!(status, Status::Diverged);
        assert!(reason.contains("soften it"), "{reason}");
        let mut held = infeasibility();
        (held.touches, held.decides) = (true, false);
        assert_eq!(held.verdict().0, Status::Infeasible);
        // nor does a gradient that vanishes where the guess was no worse
        let mut flat = infeasibility();
        (flat.flat, flat.before) = (vec!["x".into()], 0.5);
        let (status, reason) = flat.verdict();
        assert_eq!(status, Status::Diverged);
        assert!(reason.contains("first order"), "{reason}");
    }
}
