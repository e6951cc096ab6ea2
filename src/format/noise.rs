//! Disturbances of a scenario's start and controls.

use super::initial::Start;
use super::problem::DisturbanceSpec;
use super::source::{FormatError, Source, nearest};
use crate::mechanism::Mechanism;
use indexmap::IndexMap;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a scenario says of its disturbances, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Noise<'a> {
    pub source: &'a Source,
    pub spec: &'a DisturbanceSpec,
    /// Of the scenario in its list.
    pub place: &'a str,
}

impl Noise<'_> {
    fn err(
        &self,
        field: &str,
        name: &str,
        message: String,
        help: impl Into<String>,
    ) -> FormatError {
        let place = ["scenarios", self.place, "noise", field, name];
        self.source.error(&place, message, help)
    }

    /// Refuses names that are not among those there are, and what is no standard deviation.
    fn check<'n>(
        &self,
        field: &str,
        given: &IndexMap<String, f64>,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<(), FormatError> {
        for (name, deviation) in given {
            if !names.clone().any(|own| own == name) {
                let message = format!("noise of `{name}`, which is unknown");
                return Err(self.err(field, name, message, nearest(name, names)));
            }
            if !(*deviation >= 0.0 && deviation.is_finite()) {
                let message = format!("noise of `{name}` is {deviation}");
                let help = "expected a standard deviation that is not negative";
                return Err(self.err(field, name, message, help));
            }
        }
        Ok(())
    }

    /// Moves the start. Numbers are drawn for every coordinate, so that what is disturbed besides changes none.
    pub fn move_start(&self, m: &Mechanism, start: &mut Start) -> Result<(), FormatError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.spec.seed);
        let ids = m.tree_ids();
        let lists = [
            ("coordinates", &self.spec.coordinates),
            ("rates", &self.spec.rates),
        ];
        for (field, given) in lists {
            let names = ids.iter().map(|id| m.joints[id.0].name.as_str());
            self.check(field, given, names)?;
        }
        for (k, (joint, _)) in ids.iter().enumerate() {
            let name = &m.joints[*joint].name;
            for (field, given) in lists {
                let draw: f64 = StandardNormal.sample(&mut random);
                let Some(deviation) = given.get(name) else {
                    continue;
                };
                let is_rate = field == "rates";
                if start.is_decided(k, is_rate) {
                    let message = format!("noise of `{name}`, whose start is a parameter");
                    let help = "leave it out, or let the start be a number";
                    return Err(self.err(field, name, message, help));
                }
                let list = if is_rate {
                    &mut start.rates
                } else {
                    &mut start.q
                };
                list[k] += deviation * draw;
            }
        }
        Ok(())
    }

    /// What is added to the controls, knot after knot; nothing where none is disturbed.
    pub fn of_controls(
        &self,
        m: &Mechanism,
        steps: usize,
    ) -> Result<Option<Vec<f64>>, FormatError> {
        let names = m.actuators.iter().map(|a| a.name.as_str());
        let given = &self.spec.controls;
        self.check("controls", given, names)?;
        if given.is_empty() {
            return Ok(None);
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.spec.seed);
        // numbers of their own, not those of the start
        random.jump();
        let mut out = Vec::with_capacity(steps * m.actuators.len());
        for _ in 0..steps {
            for a in &m.actuators {
                let draw: f64 = StandardNormal.sample(&mut random);
                out.push(given.get(&a.name).map_or(0.0, |d| d * draw));
            }
        }
        Ok(Some(out))
    }
}
