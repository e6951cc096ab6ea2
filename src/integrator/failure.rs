//! What a step that failed tells its user.

use crate::contact::{Layout, Memory, View};
use crate::dynamics::{StepError, StepFailure};
use crate::spatial::{COARSE_TURN, RotationLaw};

/// Of a state that is not one of the frame's.
pub(super) const FOREIGN: &str =
    "the frame belongs to another system; take it from this one's `Charts::frame`";

/// Of a start at which a joint with two turns is at half a turn.
pub(super) fn starts_at_half_turn(joint: &str) -> StepError {
    StepError {
        failure: StepFailure::HalfTurn,
        element: format!("joint {joint}"),
        time: 0.0,
        residual: f64::NAN,
        message:
            "it starts at half a turn, where its two rates do not tell its motion; start elsewhere"
                .into(),
    }
}

/// The bounds of a body's turn in an interval by its rotation law.
pub(super) fn turn_bounds(law: &RotationLaw, h: f64) -> String {
    let name = law.name();
    let Some((bound, tilt)) = law.domain() else {
        return format!("with rotation = \"{name}\", its speed must be a finite number");
    };
    let across = tilt.map_or(String::new(), |tilt| {
        format!(
            ", and across its axis of spin below {tilt:.3}, that is {:.3} rad/s",
            tilt / h
        )
    });
    format!(
        "with rotation = \"{name}\", h |w| must stay below {bound:.3}, that is {:.3} rad/s{across}",
        bound / h
    )
}

/// Why a step with contacts, or the velocities at its knot, were not solved: the message, and the body whose turn is the cause, as far as
/// the velocities of its state tell. At a coarse turn contacts may ask for more than the rotation law has.
pub(super) fn explain_contacts(
    failure: StepFailure,
    view: &View,
    (contacts, memory): (&Layout, &Memory),
    finer: &str,
) -> Option<(Option<usize>, String)> {
    let (when, or) = match failure {
        StepFailure::NotConverged => ("", ""),
        StepFailure::Budget => (
            " when the iterations that it may take were used up",
            ", or raise max_iterations of its contacts",
        ),
        _ => return None,
    };
    let h = view.at.h();
    let (body, turn) = view.model.largest_chord_turn(view.before, h);
    if turn > COARSE_TURN {
        let bounds = turn_bounds(&view.model.bodies[body].rotation, h);
        let message = format!(
            "the body turns by {turn:.2} rad in its step, too far for the contacts, limits and friction there, which were not solved: expected less than {COARSE_TURN} rad ({bounds}); take {finer}"
        );
        return Some((Some(body), message));
    }
    let what = match view.at.steps() {
        true => "the equations of the step",
        false => "the equations of the velocities at the knot",
    };
    let loaded = contacts.most_loaded(memory).map_or(String::new(), |i| {
        format!(
            " (the largest force is that of {})",
            contacts.name(view.model, i)
        )
    });
    let message = format!(
        "{what}, with its contacts, limits and friction, were not solved to the tolerance{when}{loaded}; take {finer}, a larger kappa or less friction{or}; if it is the first step, check the initial state"
    );
    Some((None, message))
}

/// What went wrong in a step between intervals `(before, after)`, and the remedy. `law` is that of the body that failed, `finer` what
/// helps where a step is too long.
pub(super) fn explain(
    failure: StepFailure,
    residual: f64,
    (before, after): (f64, f64),
    (law, finer): (&RotationLaw, &str),
) -> String {
    match failure {
        StepFailure::Domain => {
            let h = after.abs().max(before.abs());
            return format!(
                "the body turns too fast for its step: {}; take {finer}",
                turn_bounds(law, h)
            );
        }
        StepFailure::HalfTurn => {
            "its joint with two turns is at half a turn, where two rates do not tell its motion; take another time step, or the integrator `maximal`"
        }
        StepFailure::NotConverged | StepFailure::Budget => {
            return format!(
                "Newton's method did not reach the tolerance; take {finer}; or check forces and the initial state"
            );
        }
        // bodies that turn too fast leave no numbers to factor
        StepFailure::Singular if residual.is_nan() => {
            "the state leads to numbers that are not finite; take a smaller time step, or check speeds and efforts"
        }
        StepFailure::Singular => {
            "the step's matrix is singular; check for massless or over-constrained parts"
        }
        StepFailure::Interval if after.min(before) < 0.0 => {
            "contacts, limits and friction cannot be stepped backwards: give positive intervals"
        }
        StepFailure::Interval => "an interval is zero or not finite; check the time steps",
        StepFailure::Parameter => "a parameter has a value without meaning; give it bounds",
        StepFailure::Frame => FOREIGN,
        StepFailure::Size => "a list has another length than the system's",
        StepFailure::Branch => {
            return format!(
                "the loop of this joint closed in another way than its motion leads to: its impulses did {residual:.2e} J of work in one step; take {finer}"
            );
        }
        StepFailure::Stopped
        | StepFailure::Callback
        | StepFailure::Energy
        | StepFailure::Unsupported => "a step was broken off",
        StepFailure::NotFinite => "the state or a control is not a finite number",
    }
    .into()
}
