//! Parameters: how they are set, and the derivatives of the step and of the start by them.

use super::{Maximal, Work};
use crate::dynamics::{Parameter, StepError, StepFailure};
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
        // what is refused must be refused again
        w.parameters.fill(f64::NAN);
        let m = &mut w.model;
        for (tuned, value) in self.mechanism.parameters.iter().zip(p) {
            for field in &tuned.fields {
                let allowed = match field.positive() {
                    Some(true) => *value > 0.0,
                    Some(false) => *value >= 0.0,
                    None => true,
                };
                if !(allowed && value.is_finite()) {
                    return Err(parameter_error(&tuned.name, *value));
                }
                m.set(*field, *value);
            }
        }
        for (body, inverse) in m.bodies.iter().zip(&mut w.inverse_inertia) {
            let Some(c) = body.inertia.cholesky() else {
                return Err(StepError {
                    failure: StepFailure::Parameter,
                    element: format!("body `{}`", body.name),
                    time: 0.0,
                    residual: f64::NAN,
                    message:
                        "its inertia is not positive definite; bound the parameters that set it"
                            .into(),
                });
            };
            *inverse = c.inverse();
        }
        w.parameters.copy_from_slice(p);
        Ok(())
    }
}

fn parameter_error(name: &str, value: f64) -> StepError {
    StepError {
        failure: StepFailure::Parameter,
        element: format!("parameter `{name}`"),
        time: 0.0,
        residual: f64::NAN,
        message: format!("its value {value} has no meaning; give the parameter bounds"),
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
