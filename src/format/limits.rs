//! What limits of joints exert, for a recording.

use super::output::Channels;
use super::recording::{Group, Interval};
use crate::dynamics::StepError;
use crate::integrator::{Mechanical, System, SystemWork};
use crate::mechanism::Quantity;
use crate::rollout::Trajectory;

/// Adds a channel for every coordinate with limits: what they exert over the step that ends at the knot, where the limit
/// is reached.
///
/// # Errors
/// When a knot cannot be read.
pub(super) fn limit_forces(
    channels: &mut Channels,
    system: &System,
    t: &Trajectory,
    w: &mut SystemWork,
) -> Result<(), StepError> {
    let m = system.mechanism();
    let limited = m
        .coordinates()
        .filter(|&(j, i)| m.joints[j].directions[i].is_limited());
    let forces: Vec<Quantity> = limited
        .map(|(joint, direction)| Quantity::LimitForce { joint, direction })
        .collect();
    let Some(needs) = forces.first().map(Quantity::needs) else {
        return Ok(());
    };
    // no step ends at the first knot
    let mut values = vec![vec![None]; forces.len()];
    let mut at = t.knot(0);
    for _ in 0..t.steps() {
        let seen = t.knot_point(&at);
        system.evaluate_knot(&seen, needs, w)?;
        let data = system.knot_data(&seen, w);
        for (force, values) in forces.iter().zip(&mut values) {
            values.push(Some(force.value(&data)));
        }
        at = t.knot_after(&at);
    }
    for (force, values) in forces.iter().zip(values) {
        let (name, unit) = force.name(m);
        let channel = channels.add(name, &unit, Group::LimitForce, values.into_iter());
        channel.interval = Some(Interval::Before);
    }
    Ok(())
}
