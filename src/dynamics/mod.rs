//! The seam between mechanics and optimization. Optimizers and rollouts know these traits and nothing of mechanisms;
//! an integrator, or a user's own few lines, implements them.
//!
//! A system's faces, of which a method asks for no more than it needs:
//!
//! | face | what it offers |
//! |---|---|
//! | [`Step`] | a step, solved |
//! | [`Differentiable`] | its derivatives, by products with vectors |
//! | [`Charts`] | small changes of a state that the joints allow, and linear models of them |
//! | [`Dynamics`] | these three together |
//! | [`Equations`] | a step, unsolved |
//! | [`Observe`] | what costs, constraints, figures and files may see |
//! | [`Stored`] | the numbers that a state is stored in, as a chart |
//!
//! Nothing in the first three has a default: a wrapper that forgets a method does not compile. A system of a few lines
//! states what it does not have by [`without`](crate::without), or is a [`Smooth`] formula. References, boxes and `Arc`s of systems are
//! systems.
//!
//! Two charts describe a small change of a state. The *free* chart has one number per stored degree (for a maximal
//! integrator twelve per body: displacement, then velocity); [`Linearization::push`] and [`Linearization::pull`] use it,
//! and the reverse sweep runs in it. The *joint* chart is the tangent of what the joints allow, 2 n_dof numbers
//! (coordinates, then rates); [`Charts::frame`] connects the two, and linear models for feedback live in it. Dynamics
//! without constraints use one chart for both.

mod certificate;
mod charts;
mod differentiable;
mod dual;
mod equations;
mod frame;
mod observe;
mod remember;
mod shared;
mod smooth;
mod stage;
mod step;
mod stop;
mod stored;
mod without;

pub use certificate::Certificate;
pub use charts::{Charts, LinearModel};
pub use differentiable::{Differentiable, Inputs, Linearization, Outputs, SolvedStep};
pub use dual::{Dual, Real};
pub(crate) use equations::Part;
pub use equations::{Column, ContactUnknowns, End, Equations, Structure, UnsolvedStep};
pub(crate) use frame::blocks;
pub use frame::{Chart, DenseFrame, Frame, difference_by_moves, model_by_pushes};
pub use observe::{KnotPoint, Observe, Observed, QuantityId, Rows};
pub use remember::{Remember, RememberWork};
pub(crate) use shared::hand_on;
pub use smooth::{Explicit, Smooth, SmoothWork};
pub(crate) use stage::{Place, Stage};
pub use step::{Start, Step, start_of_coordinates};
pub use stop::{Stoppable, clear_stop, request_stop, stop_requested, unstopped};
pub use stored::Stored;

/// A discrete-time system that can be stepped and differentiated, has charts and tells its equations. Who has the four roles
/// has this one.
pub trait Dynamics: Charts + Equations {}

impl<D: Charts + Equations + ?Sized> Dynamics for D {}

/// The knot a step starts from, with the two intervals that meet there. Their lengths are negative in the backward steps of
/// a composition, which systems without contacts may offer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// Index.
    pub k: usize,
    /// s
    pub t: f64,
    /// Length of the interval before the knot, s; 0 at the start.
    pub h_prev: f64,
    /// Length of the interval after it, s; 0 at the end.
    pub h: f64,
}

/// Sizes of the slices that cross the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Numbers stored for a state.
    pub nx: usize,
    /// Free chart of a state.
    pub nf: usize,
    /// Joint chart of a state, 2 n_dof.
    pub ndx: usize,
    /// Controls.
    pub nu: usize,
    /// Parameters.
    pub np: usize,
    /// Unknowns of a step: velocities and impulses.
    pub ny: usize,
}

/// A number of a system that one may differentiate by and optimize.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// What the system was built with.
    pub value: f64,
}

/// What a step cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepStats {
    /// Newton iterations.
    pub iterations: usize,
    /// Largest residual left, N s, N m s, m or half rad.
    pub residual: f64,
    /// Factorizations that another method had to stand in for.
    pub fallbacks: usize,
    /// Largest h |w| of any body, as far as its rotation law takes it for its chord: its spin is off by a sixth of the square.
    pub turn: f64,
    /// Which body that is, counted as the system has them.
    pub turned: usize,
    /// 1 where contacts were solved only as far as rounding allows: to its floor, or at a parameter of the central path
    /// up to 1e4 times larger.
    pub rounded: usize,
    /// Starts of the contacts' iteration beyond the first: one where a warm start was given up for a cold one, more where
    /// the central path had to be followed around its turns.
    pub restarts: usize,
    /// 1 if the step begins at a singular position of a loop and was solved in another way for that.
    pub treated: usize,
    /// 1 if a contact, a limit or dry friction acted in it.
    pub touched: usize,
    /// Iterations of its longest solve, where there were several: of the parts of a divided step, and before and after an impact.
    /// Else 0, see [`StepStats::longest`].
    pub most: usize,
    /// In how many parts the step was made, where it was divided; else 0 or 1.
    pub parts: usize,
}

impl StepStats {
    /// A further attempt at the same step.
    pub fn and(&self, next: &Self) -> Self {
        Self {
            iterations: self.iterations + next.iterations,
            most: self.longest().max(next.longest()),
            fallbacks: self.fallbacks + next.fallbacks,
            restarts: self.restarts + next.restarts,
            treated: self.treated.max(next.treated),
            touched: self.touched.max(next.touched),
            ..*next
        }
    }

    /// Iterations of its longest solve.
    pub fn longest(&self) -> usize {
        if self.most == 0 {
            self.iterations
        } else {
            self.most
        }
    }

    /// The part of a step that follows.
    pub fn then(&self, next: &Self) -> Self {
        Self {
            residual: self.residual.max(next.residual),
            ..self.and(next)
        }
        .turning_most(self)
    }

    /// With the turn of the other, if that is larger.
    pub fn turning_most(self, other: &Self) -> Self {
        if other.turn > self.turn {
            Self {
                turn: other.turn,
                turned: other.turned,
                ..self
            }
        } else {
            self
        }
    }
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFailure {
    /// A body turns too far within one interval for the discrete momentum to have a solution.
    Domain,
    /// A joint with two turns is at half a turn, where its two rates do not tell its motion.
    HalfTurn,
    /// Newton's method did not reach the tolerance.
    NotConverged,
    /// The step's matrix is singular.
    Singular,
    /// The state or control was not finite.
    NotFinite,
    /// An interval was zero or not finite; or negative, which contacts, limits and friction do not allow.
    Interval,
    /// A parameter has a value without meaning, as a negative mass.
    Parameter,
    /// A frame is not one of the system's.
    Frame,
    /// A list has another length than the system's.
    Size,
    /// The system does not offer what was asked for.
    Unsupported,
    /// The iterations that a step may take were used up.
    Budget,
    /// A stop was requested.
    Stopped,
    /// Energy grew by more than work explains.
    Energy,
    /// A loop closed in another way than its motion leads to.
    Branch,
    /// A policy or another function of a user's said so.
    Callback,
}

impl StepFailure {
    /// For people and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Domain => "turned too far",
            Self::HalfTurn => "at half a turn",
            Self::NotConverged => "not converged",
            Self::Singular => "singular",
            Self::NotFinite => "not finite",
            Self::Interval => "wrong interval",
            Self::Parameter => "wrong parameter",
            Self::Frame => "wrong frame",
            Self::Size => "wrong size",
            Self::Unsupported => "unsupported",
            Self::Budget => "budget used up",
            Self::Stopped => "stopped",
            Self::Energy => "energy grew",
            Self::Branch => "loop jumped",
            Self::Callback => "refused",
        }
    }
}

/// A step that could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.words())]
pub struct StepError {
    /// What happened.
    pub failure: StepFailure,
    /// The body or joint with the largest residual.
    pub element: String,
    /// s
    pub time: f64,
    /// Largest residual; NaN if it is not known.
    pub residual: f64,
    /// What was expected, and the remedy.
    pub message: String,
}

impl StepError {
    fn words(&self) -> String {
        let (time, element, message) = (self.time, &self.element, &self.message);
        match self.failure {
            StepFailure::Stopped => format!("interrupted at t = {time:.6} s; {message}"),
            StepFailure::Callback => format!("at t = {time:.6} s {element} failed: {message}"),
            StepFailure::Unsupported => format!("step at t = {time:.6} s: {element}: {message}"),
            _ => {
                let words = format!("step at t = {time:.6} s failed at {element}: {message}");
                match self.residual.is_nan() {
                    // it is not known
                    true => words,
                    false => format!("{words} (residual {:.3e})", self.residual),
                }
            }
        }
    }

    /// What a policy or another function of a user's failed with, by its name.
    pub fn of_callback(
        element: impl Into<String>,
        time: f64,
        message: impl std::fmt::Display,
    ) -> Self {
        Self {
            failure: StepFailure::Callback,
            element: element.into(),
            time,
            residual: f64::NAN,
            message: message.to_string(),
        }
    }

    /// A rollout that was asked to stop before the step at a time.
    pub fn stopped(time: f64) -> Self {
        Self {
            failure: StepFailure::Stopped,
            element: "the rollout".into(),
            time,
            residual: 0.0,
            message: "what was computed so far is kept".into(),
        }
    }

    /// What has another length than the system asks for.
    pub(crate) fn of_size(element: impl Into<String>, message: String) -> Self {
        Self {
            failure: StepFailure::Size,
            element: element.into(),
            time: 0.0,
            residual: f64::NAN,
            message,
        }
    }
}

impl Dims {
    /// Zero inputs.
    pub fn inputs(&self) -> Inputs {
        Inputs {
            x: vec![0.0; self.nf],
            u: vec![0.0; self.nu],
            p: vec![0.0; self.np],
            h_prev: 0.0,
            h: 0.0,
        }
    }

    /// Zero outputs.
    pub fn outputs(&self) -> Outputs {
        Outputs {
            x: vec![0.0; self.nf],
            y: vec![0.0; self.ny],
        }
    }
}
