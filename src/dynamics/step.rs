//! A step, solved.

use super::{Dims, Knot, Parameter, StepError, StepStats};
use nalgebra::DMatrix;

/// What a state follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start<'a> {
    /// Coordinates, m and rad.
    pub coordinates: &'a [f64],
    /// Their rates, 1/s.
    pub rates: &'a [f64],
    /// Length of the interval that the rates are of, s: 0 where they are those of the instant. Of a start in motion joints were
    /// displaced by `before rates` since then: slides and angles by that difference, balls by that rotation in the
    /// parent's frame. Integrators that compose steps take of the interval the last step's part.
    pub before: f64,
}

impl<'a> Start<'a> {
    /// With the rates of the instant.
    pub fn at_rates(coordinates: &'a [f64], rates: &'a [f64]) -> Self {
        Self {
            coordinates,
            rates,
            before: 0.0,
        }
    }
}

/// A system that steps.
pub trait Step: Sync {
    /// Matrices and factors. Nothing allocates after it is made.
    type Work: Send;

    /// Sizes.
    fn dims(&self) -> Dims;

    /// Memory for one thread.
    fn work(&self) -> Self::Work;

    /// Name and unit of the controls, `nu` of them.
    fn controls(&self) -> Vec<(String, String)>;

    /// Name, unit and value of the parameters, `np` of them.
    fn parameters(&self) -> Vec<Parameter>;

    /// The state at a start. What a parameter moves (an anchor, say) moves at given coordinates.
    ///
    /// # Errors
    /// When there is no such state, e.g. loops that do not close, or another number of coordinates.
    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError>;

    /// Derivative of [`Step::initial`] by the parameters, nf x np.
    ///
    /// # Errors
    /// As [`Step::initial`].
    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError>;

    /// Derivative of [`Step::initial`] by the coordinates, behind them by their rates, and last by the interval before: nf
    /// rows.
    ///
    /// # Errors
    /// As [`Step::initial`].
    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError>;

    /// Solves a step. `y` holds the previous step's unknowns on entry (zeros at the start) as a guess for the
    /// impulses, and this step's on return.
    ///
    /// # Errors
    /// When there is no solution or it was not found; `next` and `y` are then not to be used.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, what goes in and what comes out"
    )]
    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError>;

    /// Steps, what is seen of them and linearizations are from here on those of contact on the central path at `kappa`,
    /// m^2/s^2 (0, as at first: at the system's own parameter, the least there is): smooth over velocities of about
    /// `sqrt(kappa)`. False where that cannot be had.
    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool;
}

/// [`Step::initial`] of a system whose state is the coordinates followed by the rates, of whatever interval they are.
///
/// # Errors
/// When there are not as many coordinates and rates as numbers of a state.
pub fn start_of_coordinates(start: &Start, x: &mut [f64]) -> Result<(), StepError> {
    let (q, rates) = (start.coordinates, start.rates);
    if q.len() + rates.len() != x.len() {
        let (q, rates, x) = (q.len(), rates.len(), x.len());
        return Err(StepError::of_size(
            "the start",
            format!("{q} coordinates and {rates} rates; give {x} numbers in all"),
        ));
    }
    let (first, last) = x.split_at_mut(q.len());
    first.copy_from_slice(q);
    last.copy_from_slice(rates);
    Ok(())
}
