//! Quantities that a problem asks to be written.

use super::Model;
use crate::dynamics::{Observe, StepError};
use crate::integrator::{Mechanical, SystemWork};
use crate::mechanism::Quantity;
use crate::rollout::Trajectory;

/// Name, unit, and a value for each knot that has one.
pub(super) type Column = (String, String, Vec<Option<f64>>);

/// The columns of a trajectory.
///
/// # Errors
/// When a quantity cannot be observed.
pub(super) fn quantities(
    model: &Model,
    t: &Trajectory,
    w: &mut SystemWork,
) -> Result<Vec<Column>, StepError> {
    let system = &model.system;
    let (own, n) = (system.outputs().len(), t.steps());
    let names = model.remember().quantities();
    let mut columns: Vec<Column> = vec![];
    for &quantity in &model.recorded {
        let (name, unit) = names[quantity.index()].clone();
        columns.push((name, unit, Vec::with_capacity(n + 1)));
    }
    if columns.is_empty() {
        return Ok(columns);
    }
    let mut at = t.knot(0);
    for k in 0..=n {
        for (&quantity, (.., values)) in model.recorded.iter().zip(&mut columns) {
            let rate = quantity.index().checked_sub(own);
            let control = matches!(
                system.outputs().get(quantity.index()),
                Some(Quantity::Control(_))
            );
            let gap = k == n && (rate.is_some() || control || system.needs_unknowns(quantity));
            values.push(match rate {
                _ if gap => None,
                Some(_) if k == 0 => Some(0.0),
                Some(i) => Some((t.control(k)[i] - t.control(k - 1)[i]) / at.h_prev),
                None => {
                    let mut value = [0.0];
                    system.observe(&t.knot_point(&at), &[quantity], w, &mut value)?;
                    Some(value[0])
                }
            });
        }
        at = t.knot_after(&at);
    }
    Ok(columns)
}
