//! Several scenarios: models side by side, and their problem together.

use super::composite::WORST;
use super::extension::Bound;
use super::noise::Noise;
use super::problem::{ProblemSpec, ScenarioSpec};
use super::source::{FormatError, nearest};
use super::{Document, Model, Overrides};
use crate::control::{Cost, Objective, Problem, When};
use crate::dynamics::{Observe, QuantityId, Step, StepError};
use crate::mechanism::MechanismBuilder;
use crate::rollout::Trajectory;

/// One of several scenarios.
#[derive(Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// By itself.
    pub model: Model,
}

impl Document {
    /// The model of several scenarios.
    pub(super) fn several(
        &self,
        spec: &ProblemSpec,
        overrides: &Overrides,
    ) -> Result<Model, FormatError> {
        let mut scenarios: Vec<Scenario> = vec![];
        for (i, s) in spec.scenarios.iter().enumerate() {
            let place = i.to_string();
            let err = |field: &str, message: String, help: &str| {
                self.source
                    .error(&["scenarios", &place, field], message, help)
            };
            let is_name = |c: char| c.is_alphanumeric() || "-_ .".contains(c);
            let taken = scenarios.iter().any(|other| other.name == s.name);
            if taken || s.name.is_empty() || s.name.starts_with('.') || !s.name.chars().all(is_name)
            {
                let message = format!("a scenario is called `{}`", s.name);
                let help = "give each a name of its own, of letters, digits, spaces, - and _: its results go to a directory of that name";
                return Err(err("name", message, help));
            }
            if !(s.weight >= 0.0 && s.weight.is_finite()) {
                let message = format!("weight of scenario `{}` is {}", s.name, s.weight);
                return Err(err(
                    "weight",
                    message,
                    "expected a number that is not negative",
                ));
            }
            let builder = self.set(s, &place)?;
            let own = self.weighed(spec, s, &place)?;
            scenarios.push(Scenario {
                name: s.name.clone(),
                model: self.one(&own, &builder, self.noise(s, &place), overrides)?,
            });
        }
        let free = |m: &Model| -> Vec<(String, (f64, f64))> {
            let added = m.extension.parameters.iter();
            added.map(|(p, bounds)| (p.name.clone(), *bounds)).collect()
        };
        let differs = |s: &&Scenario| free(&s.model) != free(&scenarios[0].model);
        if let Some(other) = scenarios.iter().find(differs) {
            return Err(self.source.error(
                &["scenarios"],
                format!(
                    "what is to be found of the start differs between the scenarios `{}` and `{}`",
                    scenarios[0].name, other.name
                ),
                "free the same numbers of the start within the same bounds in all of them",
            ));
        }
        let first = &spec.scenarios[0];
        let own = self.weighed(spec, first, "0")?;
        let noise = self.noise(first, "0");
        let mut all = self.one(&own, &self.set(first, "0")?, noise, overrides)?;
        all.problem = together(&scenarios, spec);
        all.is_plain = false;
        all.scenarios = scenarios;
        all.begin_bounds();
        Ok(all)
    }

    fn noise<'a>(&'a self, s: &'a ScenarioSpec, place: &'a str) -> Option<Noise<'a>> {
        let source = &self.source;
        let spec = s.noise.as_ref()?;
        Some(Noise {
            source,
            spec,
            place,
        })
    }

    /// What is asked of one scenario.
    fn weighed(
        &self,
        spec: &ProblemSpec,
        s: &ScenarioSpec,
        place: &str,
    ) -> Result<ProblemSpec, FormatError> {
        let mut own = spec.clone();
        own.initial.extend(s.initial.clone());
        own.costs.iter_mut().for_each(|c| c.weight *= s.weight);
        for (name, target) in &s.targets {
            let at = ["scenarios", place, "targets", name];
            let is_meant = |own: &Option<String>| own.as_ref() == Some(name);
            let mut found = false;
            for c in own.costs.iter_mut().filter(|c| is_meant(&c.name)) {
                (c.target, found) = (target.clone(), true);
            }
            for c in own.constraints.iter_mut().filter(|c| is_meant(&c.name)) {
                let sides = [&mut c.equals, &mut c.less, &mut c.greater];
                let mut given: Vec<_> = sides.into_iter().flatten().collect();
                let [side] = &mut given[..] else {
                    let message = format!("constraint `{name}` has no single value");
                    let help = "give it one of equals, less and greater; the other limit as a constraint of its own";
                    return Err(self.source.error(&at, message, help));
                };
                (**side, found) = (target.clone(), true);
            }
            if !found {
                let costs = spec.costs.iter().map(|c| &c.name);
                let constraints = spec.constraints.iter().map(|c| &c.name);
                let names = costs.chain(constraints).flatten().map(String::as_str);
                let message = format!("no cost or constraint is called `{name}`");
                let help = match names.clone().next() {
                    None => "give it a name = \"..\"".into(),
                    Some(_) => nearest(name, names),
                };
                return Err(self.source.error(&at, message, help));
            }
        }
        Ok(own)
    }

    /// The mechanism of a scenario.
    fn set(&self, s: &ScenarioSpec, place: &str) -> Result<MechanismBuilder, FormatError> {
        let mut builder = self.builder.clone();
        if s.set.is_empty() {
            return Ok(builder);
        }
        let built = builder.build().map_err(|e| self.model_error(&e))?;
        for (path, value) in &s.set {
            let at = ["scenarios", place, "set", path];
            let field = built.field(&s.name, path);
            let field = field.map_err(|e| self.source.error(&at, e.message, e.help))?;
            if let Some(expected) = field.refuses(*value) {
                let message = format!("`{path}` is {value} in scenario `{}`", s.name);
                return Err(self.source.error(&at, message, expected));
            }
            builder.set(&built, field, *value);
        }
        builder.build().map_err(|e| {
            self.source
                .error(&["scenarios", place, "set"], e.message, e.help)
        })?;
        Ok(builder)
    }
}

impl Model {
    /// What each scenario costs along a trajectory of [`Model::extended`], times its weight.
    ///
    /// # Errors
    /// When a quantity cannot be observed.
    pub fn costs(&self, t: &Trajectory) -> Result<Vec<f64>, StepError> {
        let system = self.extended();
        let mut w = system.work();
        let first = |i: usize| match i == self.scenarios.len() {
            true => usize::MAX,
            false => system.quantity_of(i, QuantityId::new(0)).index(),
        };
        let names = self.parameters();
        let is_worst = |b: &&Bound| names[b.parameter].name == WORST;
        let worst = self.extension.bounds.iter().find(is_worst);
        let each = (0..self.scenarios.len()).map(|i| {
            let costs = match worst {
                // a scenario's is this parameter and what its own differs from it by
                Some(b) => {
                    let own = b.less.iter().map(|q| system.quantity_of(i, *q));
                    own.map(|q| Cost::linear(q, 1.0, When::End)).collect()
                }
                None => {
                    let own = first(i)..first(i + 1);
                    let all = self.problem.costs.iter().copied();
                    all.filter(|c| own.contains(&c.quantity.index())).collect()
                }
            };
            let problem = Problem {
                costs,
                constraints: vec![],
                ..self.problem.clone()
            };
            let mut evaluation = problem.evaluation();
            problem.evaluate(&system, t, &mut w, &mut evaluation)?;
            Ok(evaluation.objective + worst.map_or(0.0, |b| t.p[b.parameter]))
        });
        each.collect()
    }

    /// Lets parameters that bound what varies begin at what the guess makes of it, where that can be simulated: from zero
    /// it would be all that is violated.
    pub(super) fn begin_bounds(&mut self) {
        // the worst cost comes last, and may speak of the others
        for place in 0..self.extension.bounds.len() {
            let bound = &self.extension.bounds[place];
            let system = self.extended();
            let Ok(objective) = Objective::new(&system, &self.problem) else {
                return;
            };
            let mut w = objective.work();
            if objective.value(&objective.guess(), &mut w).is_err() {
                return;
            }
            let count = self.scenarios.len().max(1);
            let mut less = vec![];
            for i in 0..count {
                less.extend(bound.less.iter().map(|q| system.quantity_of(i, *q)));
            }
            let (e, mut largest) = (w.evaluation(), f64::NEG_INFINITY);
            for k in 0..e.layout.knots() {
                let values = &e.constraints[e.layout.constraints(k)];
                for ((i, _), c) in e.layout.stage(k).constraints.iter().zip(values) {
                    if less.contains(&self.problem.constraints[*i].quantity) {
                        largest = largest.max(*c);
                    }
                }
            }
            if largest.is_finite() {
                self.problem.parameters[bound.parameter] += bound.sign * largest;
            }
        }
    }
}

/// The problem of all scenarios: coordinates, and where they are not shared controls, one scenario after the other.
fn together(scenarios: &[Scenario], spec: &ProblemSpec) -> Problem {
    let first = &scenarios[0].model;
    let own = |of: fn(&Problem) -> &Vec<f64>| -> Vec<f64> {
        let all = scenarios.iter().flat_map(|s| of(&s.model.problem));
        all.copied().collect()
    };
    let knots = first.problem.intervals.len();
    let states = scenarios
        .iter()
        .all(|s| !s.model.problem.guess_states.is_empty());
    let by_knot = |of: fn(&Problem) -> &Vec<f64>, knots: usize| -> Vec<f64> {
        let part = |k: usize| {
            scenarios.iter().flat_map(move |s| {
                let list = of(&s.model.problem);
                let n = list.len() / knots.max(1);
                list[k * n..(k + 1) * n].iter().copied()
            })
        };
        (0..knots).flat_map(part).collect()
    };
    let mut out = Problem {
        coordinates: own(|p| &p.coordinates),
        rates: own(|p| &p.rates),
        guess_states: if states {
            by_knot(|p| &p.guess_states, knots + 1)
        } else {
            vec![]
        },
        costs: vec![],
        constraints: vec![],
        profiles: vec![],
        ..first.problem.clone()
    };
    if spec.own_controls {
        out.guess = by_knot(|p| &p.guess, knots);
        let bounds = scenarios.iter().flat_map(|s| &s.model.problem.bounds);
        out.bounds = bounds.copied().collect();
    }
    let system = first.extended_with(scenarios);
    for (i, s) in scenarios.iter().enumerate() {
        let profiles = out.profiles.len();
        out.profiles
            .extend(s.model.problem.profiles.iter().cloned());
        for c in &s.model.problem.costs {
            let mut c = *c;
            c.quantity = system.quantity_of(i, c.quantity);
            c.profile = c.profile.map(|own| own + profiles);
            // what is the largest of all counts once
            if !spec.worst_case || i == 0 {
                out.costs.push(c);
            }
        }
        for c in &s.model.problem.constraints {
            let mut c = *c;
            c.quantity = system.quantity_of(i, c.quantity);
            c.profile = c.profile.map(|own| own + profiles);
            out.constraints.push(c);
        }
    }
    debug_assert!(
        out.costs
            .iter()
            .all(|c| c.quantity.index() < system.quantities().len())
    );
    out
}
