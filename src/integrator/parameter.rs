//! A mechanism with other values of its parameters.

use crate::dynamics::{Parameter, StepError, StepFailure};
use crate::mechanism::{Mechanism, NamedParameter};

/// The parameters of a mechanism, with the values that it was built with.
pub(super) fn named_parameters(m: &Mechanism) -> Vec<Parameter> {
    let each = m.parameters.iter().zip(nominal(m));
    each.map(|(p, value)| Parameter {
        name: p.name.clone(),
        unit: p.fields.first().map_or("", |f| m.field_unit(*f)).into(),
        value,
    })
    .collect()
}

/// Their values.
pub(super) fn nominal(m: &Mechanism) -> Vec<f64> {
    let of = |p: &NamedParameter| p.fields.first().map_or(0.0, |f| m.get(*f));
    m.parameters.iter().map(of).collect()
}

/// Gives `to`, a copy of a mechanism, the parameters `p`, unless they are its own (`last`) already. Is anything changed?
///
/// # Errors
/// When there is another number of them, or a value has no meaning.
pub(super) fn apply(
    from: &Mechanism,
    p: &[f64],
    last: &mut [f64],
    to: &mut Mechanism,
) -> Result<bool, StepError> {
    if last == p {
        return Ok(false);
    }
    if p.len() != last.len() {
        let (got, n) = (p.len(), last.len());
        return Err(StepError::of_size(
            "the parameters",
            format!("{got} values; give {n}"),
        ));
    }
    // what is refused must be refused again
    last.fill(f64::NAN);
    for (tuned, value) in from.parameters.iter().zip(p) {
        for field in &tuned.fields {
            if field.refuses(*value).is_some() {
                return Err(parameter_error(&tuned.name, *value));
            }
            to.set(*field, *value);
        }
    }
    if let Some((tuned, [lower, upper])) = from
        .parameter_fields()
        .find_map(|(tuned, field)| Some((tuned, to.disordered(field)?)))
    {
        return Err(StepError {
            message: format!(
                "it makes the range [{lower}, {upper}], whose smallest value is not below the largest; give the parameter bounds"
            ),
            ..parameter_error(&tuned.name, f64::NAN)
        });
    }
    if let Some(body) = (to.bodies.iter()).find(|b| b.inertia.cholesky().is_none()) {
        return Err(StepError {
            failure: StepFailure::Parameter,
            element: format!("body `{}`", body.name),
            time: 0.0,
            residual: f64::NAN,
            message: "its inertia is not positive definite; bound the parameters that set it"
                .into(),
        });
    }
    last.copy_from_slice(p);
    Ok(true)
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
