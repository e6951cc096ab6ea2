//! The charts of a state.

use super::{Differentiable, Dims, Frame, Knot, StepError};
use nalgebra::DMatrix;

/// The linearized step in the joint chart: `dx+ = a dx + b du + p dp`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearModel {
    /// ndx x ndx
    pub a: DMatrix<f64>,
    /// ndx x nu
    pub b: DMatrix<f64>,
    /// ndx x np
    pub p: DMatrix<f64>,
}

impl LinearModel {
    /// Zeros.
    pub fn new(dims: &Dims) -> Self {
        Self {
            a: DMatrix::zeros(dims.ndx, dims.ndx),
            b: DMatrix::zeros(dims.ndx, dims.nu),
            p: DMatrix::zeros(dims.ndx, dims.np),
        }
    }
}

/// A system whose states have charts; see the [module](super).
pub trait Charts: Differentiable {
    /// [`Charts::frame`] into `out`, whose memory serves again where it was a frame of the system that nobody shares.
    ///
    /// # Errors
    /// As [`Charts::frame`]; `out` is then not to be used.
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
        out: &mut Frame,
    ) -> Result<(), StepError>;

    /// The frame at a state; `previous` is the frame of the knot before, when one walks along a path.
    ///
    /// # Errors
    /// When the state, or the frame before, is not one of the system.
    fn frame(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
    ) -> Result<Frame, StepError> {
        let mut out = Frame::default();
        self.frame_in(at, x, p, previous, w, &mut out)?;
        Ok(out)
    }

    /// Is every frame the identity? Who keeps one per knot then need not ask for them.
    fn has_identity_frames(&self) -> bool;

    /// Moves a state by `d` of the joint chart (its frame is given) and keeps it a state of the system.
    ///
    /// # Errors
    /// When that state does not exist, e.g. loops cannot be closed so far away, or the frame is not one of the system.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, what goes in and what comes out"
    )]
    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError>;

    /// The change of the joint chart that leads from `x` to `to`, to first order; NaN where there is none.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, what goes in and what comes out"
    )]
    fn difference(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
        out: &mut [f64],
    );

    /// A change of the state, in the free chart, that goes with a longer interval before its knot so that it stays one of the
    /// system: `dx = out dh`. Of states that do not refer to that interval it is none.
    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]);

    /// Derivative of [`Charts::difference`] by the state that it leads to (free chart), ndx x nf;
    /// [`super::difference_by_moves`] serves any system.
    ///
    /// # Errors
    /// As [`Charts::frame`] and [`Charts::retract`], at that state.
    fn difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError>;

    /// The step last linearized in the joint chart, from one frame to the next; [`super::model_by_pushes`] serves any
    /// system. Callers use [`super::Linearization::linear_model`].
    fn linear_model_in(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel);
}
