//! What happens at contacts, for a recording.

use super::output::Channels;
use super::recording::{Contact, Force, Group, Interval};
use crate::dynamics::StepError;
use crate::integrator::{Mechanical, System, SystemWork};
use crate::mechanism::{Contacting, Quantity};
use crate::rollout::Trajectory;

/// Forces below this share of the largest are not of surfaces that touch.
const LEAST: f64 = 1e-6;

/// Adds four channels per contact, and tells where forces act: each, like the slip that
/// friction acts against, at the knot where its step ends, and closes the gap.
///
/// # Errors
/// When the velocities at a knot cannot be read.
pub(super) fn contacts(
    channels: &mut Channels,
    system: &System,
    t: &Trajectory,
    w: &mut SystemWork,
) -> Result<Vec<Contact>, StepError> {
    let m = system.mechanism();
    if m.contacts.is_empty() {
        return Ok(vec![]);
    }
    let mut knots: Vec<Vec<Contacting>> = Vec::with_capacity(t.steps() + 1);
    let mut at = t.knot(0);
    for _ in 0..=t.steps() {
        knots.push(system.contacting(&t.knot_point(&at), w)?);
        at = t.knot_after(&at);
    }
    let normal = |c: &Contacting| c.force.map(|f| f.0);
    let largest = knots.iter().flatten().filter_map(normal);
    let least = LEAST * largest.fold(0.0, f64::max);
    let mut contacts = vec![];
    for (i, c) in m.contacts.iter().enumerate() {
        // of the step that ends at the knot
        let before = |k: usize| k.checked_sub(1).and_then(|k| knots[k][i].force);
        let slip = |k: usize| k.checked_sub(1).map(|k| knots[k][i].slip);
        let mut add = |output: Quantity, of_step: bool, value: &dyn Fn(usize) -> Option<f64>| {
            let (name, unit) = output.name(m);
            let values = (0..knots.len()).map(value);
            let channel = channels.add(name, &unit, Group::Contact, values);
            channel.interval = of_step.then_some(Interval::Before);
        };
        add(Quantity::Gap(i), false, &|k| Some(knots[k][i].touch.gap));
        add(Quantity::NormalForce(i), true, &|k| before(k).map(|f| f.0));
        add(Quantity::Friction(i), true, &|k| before(k).map(|f| f.1));
        add(Quantity::Slip(i), true, &slip);
        let force = |knot: usize| {
            let (size, _, force) = before(knot)?;
            (size > least).then(|| Force {
                knot,
                point: knots[knot][i].touch.point.into(),
                force: force.into(),
            })
        };
        contacts.push(Contact {
            name: c.name.clone(),
            parent: c.parent,
            child: c.child,
            friction: m.friction(c),
            forces: (0..knots.len()).filter_map(force).collect(),
        });
    }
    Ok(contacts)
}
