//! Systems that are shared, and so can be held by several wrappers or by an object: references, boxes and `Arc`s.

use super::{
    Certificate, Charts, ContactUnknowns, Differentiable, Dims, Equations, Frame, Inputs, Knot,
    KnotPoint, LinearModel, Observe, Outputs, Parameter, QuantityId, Rows, SolvedStep, Start, Step,
    StepError, StepStats, Stored, Structure, UnsolvedStep,
};
use nalgebra::DMatrix;
use std::sync::Arc;

/// A role of what a pointer to `D` points to is one of the pointer's.
macro_rules! hand_on {
    ($role:ident for $pointer:ty $(where $bound:ident)?: $(type $work:ident;)? $(fn $name:ident($($a:ident: $of:ty),*) -> $to:ty;)*) => {
        impl<D: $role + ?Sized $(+ $bound)?> $role for $pointer {
            $(type $work = D::$work;)?

            $(fn $name(&self, $($a: $of),*) -> $to {
                (**self).$name($($a),*)
            })*
        }
    };
}

pub(crate) use hand_on;

/// All roles of what pointers point to.
macro_rules! shared {
    ($($pointer:ty $(where $bound:ident)?),*) => {$(
        hand_on! { Step for $pointer $(where $bound)?:
            type Work;
            fn dims() -> Dims;
            fn work() -> Self::Work;
            fn controls() -> Vec<(String, String)>;
            fn parameters() -> Vec<Parameter>;
            fn initial(start: &Start, p: &[f64], w: &mut Self::Work, x: &mut [f64]) -> Result<(), StepError>;
            fn initial_by_parameters(start: &Start, p: &[f64], w: &mut Self::Work) -> Result<DMatrix<f64>, StepError>;
            fn initial_by_coordinates(start: &Start, p: &[f64], w: &mut Self::Work) -> Result<DMatrix<f64>, StepError>;
            fn step(at: &Knot, x: &[f64], u: &[f64], p: &[f64], w: &mut Self::Work, next: &mut [f64], y: &mut [f64]) -> Result<StepStats, StepError>;
            fn soften(w: &mut Self::Work, kappa: f64) -> bool;
        }
        hand_on! { Differentiable for $pointer $(where $bound)?:
            fn linearize_in(at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError>;
            fn push_in(w: &mut Self::Work, d: &Inputs, out: &mut Outputs) -> ();
            fn pull_in(w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) -> ();
            fn smoothing(w: &mut Self::Work, kappa: f64) -> ();
            fn kept() -> usize;
            fn keep_in(w: &Self::Work, kept: &mut [f64]) -> bool;
            fn restore_in(at: &SolvedStep, kept: &[f64], w: &mut Self::Work) -> Result<bool, StepError>;
        }
        hand_on! { Charts for $pointer $(where $bound)?:
            fn frame_in(at: &Knot, x: &[f64], p: &[f64], previous: Option<&Frame>, w: &mut Self::Work, out: &mut Frame) -> Result<(), StepError>;
            fn has_identity_frames() -> bool;
            fn retract(at: &Knot, x: &[f64], p: &[f64], frame: &Frame, d: &[f64], w: &mut Self::Work, out: &mut [f64]) -> Result<(), StepError>;
            fn difference(at: &Knot, x: &[f64], p: &[f64], frame: &Frame, to: &[f64], w: &mut Self::Work, out: &mut [f64]) -> ();
            fn by_interval(at: &Knot, x: &[f64], out: &mut [f64]) -> ();
            fn difference_by(at: &Knot, x: &[f64], p: &[f64], frame: &Frame, to: &[f64], w: &mut Self::Work) -> Result<DMatrix<f64>, StepError>;
            fn linear_model_in(w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) -> ();
        }
        hand_on! { Equations for $pointer $(where $bound)?:
            fn check_equations() -> Result<(), String>;
            fn structure(has_end: bool) -> Structure;
            fn residual(at: &UnsolvedStep, w: &mut Self::Work, r: &mut [f64]) -> Result<(), StepError>;
            fn advance(at: &KnotPoint, w: &mut Self::Work, next: &mut [f64]) -> Result<(), StepError>;
            fn displace(x: &[f64], d: &[f64], out: &mut [f64]) -> bool;
            fn separation(x: &[f64], to: &[f64], out: &mut [f64]) -> ();
            fn pull_separation(x: &[f64], to: &[f64], adjoint: &mut [f64]) -> ();
            fn copies() -> Vec<(usize, usize)>;
            fn stays(at: &Knot) -> Vec<usize>;
            fn contact_unknowns() -> Vec<ContactUnknowns>;
            fn domain(h: f64) -> Vec<(usize, f64)>;
            fn set_central_path(w: &mut Self::Work, kappa: f64) -> ();
            fn center(at: &UnsolvedStep, w: &mut Self::Work, y: &mut [f64]) -> Result<(), StepError>;
            fn derivatives(at: &UnsolvedStep, structure: &Structure, w: &mut Self::Work, values: &mut [f64]) -> Result<(), StepError>;
            fn pull_equations(at: &UnsolvedStep, adjoint: &Outputs, w: &mut Self::Work, out: &mut Inputs, y: &mut [f64], end: &mut [f64]) -> Result<(), StepError>;
        }
        hand_on! { Observe for $pointer $(where $bound)?:
            fn quantities() -> Vec<(String, String)>;
            fn needs_unknowns(quantity: QuantityId) -> bool;
            fn observe_in(seen: &KnotPoint, which: &[QuantityId], w: &mut Self::Work, out: &mut [f64]) -> Result<(), StepError>;
            fn observe_pull_in(seen: &KnotPoint, which: &[QuantityId], w: &mut Self::Work, adjoint: &[f64], out: &mut Inputs, y: &mut [f64]) -> ();
            fn observe_rows_in(seen: &KnotPoint, which: &[QuantityId], w: &mut Self::Work, out: &mut Rows) -> ();
        }
        hand_on! { Stored for $pointer $(where $bound)?:
            fn stored_push(x: &[f64], free: &[f64], stored: &mut [f64]) -> ();
            fn stored_pull(x: &[f64], free: &[f64], stored: &mut [f64]) -> ();
        }
    )*};
}

shared!(&D, Box<D>, Arc<D> where Send);
