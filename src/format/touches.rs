//! What happens at contacts, for a recording.

use super::output::Channels;
use super::recording::{Contact, Force, Group, Interval, LEAST_FORCE};
use crate::mechanism::{
    Acting, Contacting, KnotData, Mechanism, Quantity, StepInterval, contacting,
};

/// All contacts at the knots that are kept.
#[derive(Default)]
pub(super) struct Touches {
    /// At the knot, and at the knot before, whose step ends at it; none is before the first.
    knots: Vec<(Vec<Contacting>, Option<Vec<Contacting>>)>,
    /// At the knot last seen.
    last: Option<Vec<Contacting>>,
    /// Largest normal force at any knot, N.
    largest: f64,
}

impl Touches {
    /// Sees the next knot, which is kept or not, and the step from it.
    pub fn see(&mut self, data: &KnotData, step: impl Fn() -> Option<StepInterval>, kept: bool) {
        if data.mechanism.contacts.is_empty() {
            return;
        }
        let now = contacting(data, step().as_ref());
        let forces = now.iter().filter_map(|c| c.step);
        self.largest = forces.fold(self.largest, |m, f| m.max(f.normal));
        let before = self.last.replace(now.clone());
        if kept {
            self.knots.push((now, before));
        }
    }

    /// Adds four channels per contact, and tells where forces act: each, like the slip that friction acts against, at the
    /// knot where its step ends, and closes the gap.
    pub fn add_to(self, channels: &mut Channels, m: &Mechanism) -> Vec<Contact> {
        let knots = &self.knots;
        let least = LEAST_FORCE * self.largest;
        let mut contacts = vec![];
        for (i, c) in m.contacts.iter().enumerate() {
            // of the step that ends at the knot
            let step = |k: usize| -> Option<Acting> { knots[k].1.as_ref()?[i].step };
            let mut add =
                |output: Quantity, of_step: bool, value: &dyn Fn(usize) -> Option<f64>| {
                    let (name, unit) = output.name(m);
                    let values = (0..knots.len()).map(value);
                    let channel = channels.add(name, &unit, Group::Contact, values);
                    channel.interval = of_step.then_some(Interval::Before);
                };
            add(Quantity::Gap(i), false, &|k| Some(knots[k].0[i].touch.gap));
            add(Quantity::NormalForce(i), true, &|k| {
                step(k).map(|f| f.normal)
            });
            add(Quantity::Friction(i), true, &|k| {
                step(k).map(|f| f.friction)
            });
            add(Quantity::Slip(i), true, &|k| step(k).map(|f| f.slip));
            let acting = |knot: usize| {
                let step = step(knot)?;
                // what is searched for may be another at the next knot
                let before = knots[knot].1.as_ref().map(|all| &all[i]);
                let at = before.filter(|_| m.is_searched(c));
                let at = at.unwrap_or(&knots[knot].0[i]);
                (step.normal > least).then(|| Force {
                    knot,
                    point: at.touch.point.into(),
                    force: step.force.into(),
                })
            };
            let met = |knot: usize| -> Option<String> { knots[knot].1.as_ref()?[i].meets.clone() };
            contacts.push(Contact {
                name: c.name.clone(),
                parent: c.parent,
                child: c.child,
                friction: m.friction(c),
                forces: (0..knots.len()).filter_map(acting).collect(),
                meets: (0..knots.len()).map(met).collect(),
            });
        }
        contacts
    }
}
