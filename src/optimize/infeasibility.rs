//! How a solve ends whose constraints stay violated.

use super::{Remedy, SolveState, Status};
use crate::control::Problem;
use crate::dynamics::Observe;

/// Part of the merit below which a predicted reduction is nothing: the point is a stationary one, and a violation that
/// fell by less did not fall. Conventional: a thousandth is far above rounding and far below a step that helps.
pub(super) const STATIONARY: f64 = 1e-3;

/// Part of the weighted violation that decisions may take away to first order at the end of a solve, where constraints are said
/// to be infeasible: at most a tenth, where a whole is Farkas' own limit. Ends out of reach gave 1e-8 to
/// 6e-3 by all methods; one within reach that was given up 2.
const WITHIN_REACH: f64 = 0.1;

/// Why a solve ends that found no better than what it had left.
pub(super) const NO_LONGER_FEASIBLE: &str = "further steps no longer keep the constraints";

/// What is known of constraints that stay violated.
pub(super) struct Infeasibility {
    /// In words.
    pub violated: String,
    /// The worst of them, and since which iteration it is, if it was seen.
    pub worst: Option<(String, u64)>,
    /// Those that no decision changes to first order.
    pub without_gradient: Vec<String>,
    /// To what the penalty grew.
    pub penalty: f64,
    /// Is there anything to decide?
    pub has_decisions: bool,
    /// Do derivatives not see what contacts that are not made would change, or friction that is not overcome?
    pub blind: bool,
    /// Largest of them now.
    pub violation: f64,
    /// See [`super::lq::within_reach`].
    pub within_reach: f64,
    /// Where the optimizer's derivatives of contact start that tell more, m^2/s^2, if any do.
    pub smoothing: Option<f64>,
}

/// The constraint that is violated most, by the name of its quantity, and since which iteration it is.
pub(super) fn worst<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    state: &SolveState,
) -> Option<(String, u64)> {
    let (i, since) = state.worst?;
    let quantity = problem.constraints.get(i)?.quantity.index();
    let name = dynamics.quantities().into_iter().nth(quantity)?.0;
    Some((name, since))
}

impl Infeasibility {
    /// Ends the solve. Infeasible only where the linearized constraints show it, at a point to which gradients led; of
    /// systems with contacts they show it for those that are made on the way, and for no others.
    pub fn end(self, state: &mut SolveState) {
        let mut violated = self.violated;
        if let Some((name, since)) = self.worst {
            violated += &format!(" (the worst, {name}, is so since iteration {since})");
        }
        let first = state.history.first().map_or(0.0, |i| i.violation);
        let fell = !self.blind && self.violation < (1.0 - STATIONARY) * first;
        let reason = if self.without_gradient.is_empty() || !self.has_decisions || fell {
            let stay = format!(
                "these stay violated although the penalty grew to {:.0e}: {violated}",
                self.penalty
            );
            if !self.has_decisions || !self.blind && self.within_reach <= WITHIN_REACH {
                let reason = format!(
                    "{stay}; nothing near meets them: are they within reach, from another guess perhaps?"
                );
                return state.end(Status::Infeasible, reason);
            }
            if !self.blind {
                let reason = format!(
                    "{stay}; to first order they are within reach: start from another guess, scale the costs, or take another method"
                );
                return state.end(Status::Diverged, reason);
            }
            format!(
                "{stay}; where contacts, limits or friction act otherwise they may be met: start from another guess or take a smaller time step"
            )
        } else {
            let guess = if self.blind {
                "contact that is not made and friction that is not overcome have no derivative: start from a guess that makes contact and moves"
            } else {
                "start from a guess at which it does"
            };
            format!(
                "violated: {violated}; no control or parameter changes {} to first order; {guess}",
                self.without_gradient.join(", ")
            )
        };
        let start = self.smoothing.filter(|_| self.blind);
        state.remedy = start.map(|start| Remedy::Smoothing { start });
        state.end(Status::Diverged, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimize::Iteration;

    fn infeasibility() -> Infeasibility {
        Infeasibility {
            violated: "x >= 1 at the end by 5e-1".into(),
            worst: Some(("x".into(), 3)),
            without_gradient: vec![],
            penalty: 1e10,
            has_decisions: true,
            blind: false,
            violation: 0.5,
            within_reach: 0.0,
            smoothing: Some(0.1),
        }
    }

    fn ended(of: Infeasibility, first: f64) -> (Status, String, Option<Remedy>) {
        let guess = Iteration {
            violation: first,
            ..Iteration::default()
        };
        let mut state = SolveState::default();
        state.history.push(guess);
        of.end(&mut state);
        let (status, reason) = state.ended.expect("it ended");
        (status, reason, state.remedy)
    }

    #[test]
    fn infeasible_is_what_is_shown() {
        let (status, reason, remedy) = ended(infeasibility(), 1.0);
        assert_eq!((status, remedy), (Status::Infeasible, None));
        assert!(
            reason.contains("x >= 1")
                && reason.contains("1e10")
                && reason.contains("since iteration 3"),
            "{reason}"
        );
        // contacts that are not made on the way show nothing, unless there is nothing to decide
        let mut contacts = infeasibility();
        contacts.blind = true;
        let (status, _, remedy) = ended(contacts, 1.0);
        let smoothing = Some(Remedy::Smoothing { start: 0.1 });
        assert_eq!((status, remedy), (Status::Diverged, smoothing));
        let mut fixed = infeasibility();
        (fixed.blind, fixed.has_decisions) = (true, false);
        assert_eq!(ended(fixed, 1.0).0, Status::Infeasible);
        // what the linearized constraints allow is not shown to be infeasible
        let mut reached = infeasibility();
        reached.within_reach = 2.0;
        let (status, reason, _) = ended(reached, 1.0);
        assert_eq!(status, Status::Diverged);
        assert!(reason.contains("within reach: start"), "{reason}");
        // nor does a gradient that vanishes where the guess was no worse
        let mut flat = infeasibility();
        flat.without_gradient = vec!["x".into()];
        let (status, reason, _) = ended(flat, 0.5);
        assert_eq!(status, Status::Diverged);
        assert!(reason.contains("first order"), "{reason}");
    }
}
