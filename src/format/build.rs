//! From a file that was read to what runs: every table checked and made ready.

use super::extension::Extension;
use super::grid::{Grid, Played};
use super::noise::Noise;
use super::policy::Acting;
use super::problem::{
    self, ImpactsSpec, InitialRates, IntegratorSpec, MechanismSpec, MethodSpec, ProblemSpec,
};
use super::quantity::{self, Quantities};
use super::recording::Line;
use super::source::nearest;
use super::{Content, Document, FormatError, Model, Overrides};
use super::{contact, episodes, extension, initial, parameters, policy, states, wanted};
use crate::control::{Disturbed, Policy, Problem};
use crate::dynamics::Step;
use crate::integrator::{Choice, Controls, Mechanical, Substeps, System};
use crate::mechanism::{Mechanism, MechanismBuilder};
use crate::optimize::Method;
use crate::spatial::Vec3;

/// Time step of a mechanism file, s.
const TIME_STEP: f64 = 0.01;
/// Horizon of a mechanism file, s.
const HORIZON: f64 = 10.0;

impl Document {
    /// Checks everything and makes it ready to run.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn build(&self, overrides: &Overrides) -> Result<Model, FormatError> {
        let none = ProblemSpec {
            title: None,
            time_step: TIME_STEP,
            horizon: Some(HORIZON),
            horizon_bounds: None,
            phases: vec![],
            integrator: IntegratorSpec::default(),
            mechanism: MechanismSpec::Inline(Box::default()),
            import: None,
            initial: indexmap::IndexMap::new(),
            parameters: indexmap::IndexMap::new(),
            scenarios: vec![],
            episodes: None,
            worst_case: false,
            own_controls: false,
            policy: None,
            guess: problem::GuessSpec::default(),
            costs: vec![],
            constraints: vec![],
            controls: Controls::default(),
            quadrature: None,
            initial_rates: InitialRates::default(),
            record: vec![],
            contact: problem::ContactMethodSpec::default(),
            method: MethodSpec::default(),
            draw: None,
        };
        let spec = self.problem().unwrap_or(&none);
        if spec.scenarios.is_empty() {
            if spec.worst_case || spec.own_controls {
                let field = if spec.worst_case {
                    "worst_case"
                } else {
                    "own_controls"
                };
                let message = format!("{field} is set, and there are no scenarios");
                return Err(self.source.error(&[field], message, "add [[scenarios]]"));
            }
            let mut model = self.one(spec, &self.builder, None, overrides)?;
            model.begin_bounds();
            return self.checked(model);
        }
        if spec.episodes.is_some() {
            let message = "there are scenarios and episodes";
            let help = "give [[scenarios]] alone, or [episodes], which draw parameters and starts";
            return Err(self.source.error(&["episodes"], message, help));
        }
        self.checked(self.several(spec, overrides)?)
    }

    /// Refuses what contradicts itself.
    fn checked(&self, model: Model) -> Result<Model, FormatError> {
        // the rest is checked where it is solved: what is simulated may end before a constraint's knot
        match model.problem.check_contradictions() {
            Ok(()) => Ok(model),
            Err(e) => Err(FormatError::of_file(
                self.source.path(),
                e.to_string(),
                "lists are counted from 0; components of a quantity, and both limits of a constraint, one by one",
            )),
        }
    }

    /// Makes the model of one scenario, or of the only one.
    pub(super) fn one(
        &self,
        spec: &ProblemSpec,
        builder: &MechanismBuilder,
        noise: Option<Noise>,
        overrides: &Overrides,
    ) -> Result<Model, FormatError> {
        let (built, builder, parameter_bounds) = self.parameters(spec, builder)?;
        let integrator = self.integrator(spec, overrides, !built.actuators.is_empty())?;
        self.method(&spec.method)?;
        spec.contact.check(&self.source)?;
        contact::check_tolerance(spec, &self.source)?;
        let own = Grid::new(&self.source, spec, &Overrides::default())?;
        let grid = Grid::new(&self.source, spec, overrides)?;
        let draw = self.draw(&built, spec)?;

        let mut start = initial::Start::new(&built, &self.source, &spec.initial)?;
        let known = extension::known(&built, spec, &grid);
        start.tie(&built, &self.source, known.clone())?;
        if let Some(noise) = noise {
            noise.move_start(&built, &mut start)?;
        }
        start.close(&built, &self.source, |e| self.model_error(e))?;
        if let Some(episodes) = &spec.episodes {
            if !episodes.ends.is_empty() && !spec.sums_left() {
                let message = "an episode that ends has no half of an interval to weigh";
                let help = "leave quadrature out, or the ends";
                return Err(self.source.error(&["quadrature"], message, help));
            }
            start.draw(
                episodes::starts(&self.source, &built, episodes)?,
                (&built, &self.source),
            )?;
        }
        let sought = start.sought(&built, &self.source)?;
        let extension = Extension::new(&built, sought, &grid);
        let nu = built.actuators.len();
        let of_policy = spec.policy.as_ref().map_or(vec![], |p| p.parameters(nu));
        let named = extension.named(&built, of_policy);
        for (i, (name, _)) in named.iter().enumerate() {
            if named[..i].iter().any(|(other, _)| other == name) {
                return Err(FormatError::of_file(
                    self.source.path(),
                    format!(
                        "two parameters are called `{name}`: of [parameters], [policy], a start or a duration to be found"
                    ),
                    "give one of them another name",
                ));
            }
        }
        let open = match &spec.policy {
            Some(policy) if !policy.feed_forward => 0,
            _ => nu,
        };
        let mut wanted = Quantities::new(&self.source, &built, (&own, &grid), named.clone(), open)
            .wanted(spec)?;
        initial::reachable(&built, &self.source, (&wanted.outputs, &wanted.constraints))?;
        let bounds = built
            .actuators
            .iter()
            .map(|a| a.bounds.unwrap_or((f64::NEG_INFINITY, f64::INFINITY)));
        let bounds: Vec<(f64, f64)> = bounds.collect();
        let played = Played {
            own: &own,
            grid: &grid,
            how: spec.controls,
        };
        let mut guess = wanted::guess(&self.source, &built, spec, played, overrides.seed)?;
        let options = contact::integrator_options(spec);
        let system = System::new(integrator, built, &start.q, options)
            .map_err(|e| self.model_error(&e))?
            .with_outputs(std::mem::take(&mut wanted.outputs));
        let system = start.holding(system, &self.source)?;
        let (policy, sights) = (spec.policy.as_ref(), &wanted.sights);
        let mut policy = policy::build(&self.source, policy, sights, &system, played)?;
        let disturbance = noise.map(|n| n.of_controls(system.mechanism(), grid.steps()));
        if let Some(disturbance) = disturbance.transpose()?.flatten() {
            let inner = Box::new(policy.acting);
            policy.acting = Acting::Disturbed(Disturbed::new(inner, disturbance, nu));
        }
        quantity::unique(&self.source, spec, &system)?;
        let x0 = system
            .start(&start.q, &start.rates, &start.held)
            .map_err(|e| self.model_error(&e))?;
        start.check(&system, &self.source, &x0)?;
        start.within(&system, &self.source, &x0)?;
        if self.problem().is_some() {
            // a mechanism alone starts nowhere
            initial::Start::apart(&system, &self.source, &x0)?;
        }
        if let Some(held) = wanted::held(&self.source, &system, spec, (&x0, known))? {
            let knots = guess.chunks_exact_mut(nu.max(1));
            knots.for_each(|u| u.iter_mut().zip(&held).for_each(|(u, held)| *u += held));
        }
        let x0 = match spec.initial_rates {
            InitialRates::Instant => x0,
            InitialRates::Interval => start
                .in_motion(&system, grid.intervals[0])
                .map_err(|e| self.source.error(&["initial_rates"], e.to_string(), ""))?,
        };
        let mut guess_states = vec![];
        if let Some(states) = &spec.guess.states {
            let (from, horizon) = ((&start.q[..], &x0[..]), own.horizon());
            guess_states = states::states(&self.source, states, &system, from, (horizon, &grid))?;
        }
        if let Some(own) = system.previous_controls().filter(|_| open > 0) {
            let states = guess_states.chunks_exact_mut(x0.len()).skip(1);
            for (x, u) in states.zip(guess.chunks_exact(nu)) {
                x[own.clone()].copy_from_slice(u);
            }
        }
        let mut extension = extension.with(&mut wanted);
        let of_policy = policy.acting.parameters();
        let all = system.parameters().into_iter().chain(of_policy);
        let mut parameters: Vec<f64> = all.map(|p| p.value).collect();
        let mut parameter_bounds = parameter_bounds;
        parameter_bounds.extend(policy.bounds);
        let mut bounds = bounds;
        if open == 0 {
            // the policy decides
            bounds.clear();
            guess.clear();
        }
        parameters.extend(extension.parameters.iter().map(|(p, _)| p.value));
        parameter_bounds.extend(extension.parameters.iter().map(|(_, b)| *b));
        let of_episodes = |episodes| {
            let bounds = parameter_bounds.iter().copied();
            let names = named.iter().map(|(name, _)| name.clone());
            let parameters: Vec<_> = names.zip(bounds).collect();
            let draws = start.drawn.clone();
            episodes::build(&self.source, episodes, draws, &wanted.watched, &parameters)
        };
        let episodes = spec.episodes.as_ref().map(of_episodes).transpose()?;
        extension.ties = start.ties(system.mechanism(), &self.source, &named, &parameter_bounds)?;
        let plain = spec.policy.is_none()
            && spec.scenarios.is_empty()
            && !(wanted.remembers || wanted.sees_parameters || extension.is_needed());
        if !(plain || guess_states.is_empty()) {
            // the system that is solved remembers the control of the knot before, at the first none
            let (nu, sums) = (bounds.len(), extension.sums.len());
            let before = std::iter::repeat_n(0.0, nu).chain(guess.iter().copied());
            let before: Vec<f64> = before.collect();
            let knots = guess_states.chunks_exact(x0.len()).enumerate();
            guess_states = knots
                .flat_map(|(k, x)| {
                    let behind = before[k * nu..(k + 1) * nu].iter().copied();
                    x.iter()
                        .copied()
                        .chain(behind)
                        .chain(std::iter::repeat_n(0.0, sums))
                })
                .collect();
        }
        let problem = Problem {
            durations: extension.durations(parameters.len() - extension.parameters.len()),
            intervals: grid.intervals.clone(),
            coordinates: start.q,
            rates: start.rates,
            parameters,
            parameter_bounds,
            guess_states,
            costs: wanted.costs,
            constraints: wanted.constraints,
            bounds,
            guess,
            profiles: wanted.profiles,
            state: None,
            before: match spec.initial_rates {
                InitialRates::Instant => 0.0,
                InitialRates::Interval => grid.intervals[0],
            },
            episodes,
        };
        let mut options = spec.method.clone();
        if Method::named(&options.name).is_some_and(Method::is_learner) {
            options.seed = overrides.seed.or(options.seed);
        }
        Ok(Model {
            extension,
            policy: policy.acting,
            scenarios: vec![],
            own_controls: spec.own_controls,
            controls: spec.controls,
            is_plain: plain,
            name: self.name(),
            title: self.title(),
            problem,
            x0,
            system,
            options,
            remembers: wanted.remembers,
            recorded: wanted.recorded,
            mechanism: builder,
            draw,
            visuals: self.visuals.clone(),
        })
    }

    /// The mechanism with the problem's parameters, its description with their values, and their bounds.
    fn parameters(
        &self,
        spec: &ProblemSpec,
        builder: &MechanismBuilder,
    ) -> Result<(Mechanism, MechanismBuilder, parameters::Bounds), FormatError> {
        let built = builder.build().map_err(|e| self.model_error(&e))?;
        let mut builder = builder.clone();
        if spec.parameters.is_empty() {
            return Ok((built, builder, vec![]));
        }
        let bounds = parameters::declare(&self.source, &built, &spec.parameters, &mut builder)?;
        // the mechanism was good before: whatever is wrong now came with the parameters
        let tuned = builder.build().map_err(|e| {
            let path = match e.path.first().map(String::as_str) {
                Some("parameters") => e.path.clone(),
                _ => vec!["parameters".into()],
            };
            self.source.error(&path, e.message, e.help)
        })?;
        Ok((tuned, builder, bounds))
    }

    /// The integrator that the command line or the file names.
    fn integrator(
        &self,
        problem: &ProblemSpec,
        overrides: &Overrides,
        has_actuators: bool,
    ) -> Result<Choice, FormatError> {
        let spec = &problem.integrator;
        let name = overrides.integrator.as_deref().unwrap_or(spec.name());
        let order = overrides.order.or(spec.order());
        let choice = Choice::new(name, order).map_err(|e| {
            let path: &[&str] = match (spec, e.of_order) {
                (IntegratorSpec::Name(_), _) => &["integrator"],
                (_, true) => &["integrator", "order"],
                (_, false) => &["integrator", "name"],
            };
            self.source.error(path, e.message, e.help)
        })?;
        let own = spec.substeps().map(|s| s.read()).transpose();
        let own = own.map_err(|e| {
            let path = ["integrator", "substeps"];
            self.source.error(&path, e.message, e.help)
        })?;
        let substeps = overrides.substeps.or(own);
        if problem.controls == Controls::Held {
            if problem.initial_rates == InitialRates::Interval && has_actuators {
                return Err(self.source.error(
                    &["initial_rates"],
                    "a start in motion has an interval before it, and held controls would need the control that acted there",
                    "give controls = \"linear\" beside it, or leave initial_rates out",
                ));
            }
            // feedback from a file acts on the rates of the steps that it was found for
            let replays = problem
                .policy
                .as_ref()
                .is_some_and(|p| p.feedback.is_some());
            let usual = match replays {
                true => Substeps::One,
                false => overrides.usual_substeps,
            };
            return Ok(choice.in_parts(substeps.unwrap_or(usual)));
        }
        self.check_linear(problem, choice, substeps)?;
        Ok(choice)
    }

    /// Refuses what does not follow controls that are linear between knots.
    fn check_linear(
        &self,
        problem: &ProblemSpec,
        choice: Choice,
        substeps: Option<Substeps>,
    ) -> Result<(), FormatError> {
        let refuse = |message: &str, other: &str| {
            let help = format!("leave `controls` out (held controls), or {other}");
            Err(self.source.error(&["controls"], message.to_owned(), help))
        };
        if choice.order() > 2 || substeps.is_some_and(|s| s != Substeps::One) {
            let message = "controls that are linear between knots take neither substeps nor order 4 or 6: a step does not know the control of the next knot";
            return refuse(message, "give order 2 without substeps");
        }
        if problem.contact.impacts == Some(ImpactsSpec::Aligned) {
            let message = "steps that are split at impacts hold their controls";
            return refuse(message, "give impacts = \"knots\"");
        }
        if problem.sums_left() && problem.initial_rates == InitialRates::Instant {
            let message = "quadrature = \"left\" weighs a control as held until the next knot, not as linear between knots";
            return refuse(message, "leave `quadrature` out");
        }
        Ok(())
    }

    /// The problem's line work, or else that of the mechanism's file.
    fn draw(&self, m: &Mechanism, spec: &ProblemSpec) -> Result<Option<Vec<Line>>, FormatError> {
        let (source, draw) = match (&spec.draw, &self.content, &self.mechanism) {
            (Some(d), ..) => (&self.source, d),
            (None, Content::Mechanism(file), _) => match &file.draw {
                Some(d) => (&self.source, d),
                None => return Ok(None),
            },
            (None, _, Some((other, Some(d)))) => (other, d),
            _ => return Ok(None),
        };
        let mut lines = vec![];
        for (name, polylines) in &draw.lines {
            let body = m.body(name);
            if body.is_none() && name != "world" {
                let names = m.bodies.iter().map(|b| b.name.as_str()).chain(["world"]);
                let message = format!("unknown body `{name}`");
                return Err(source.name_error(
                    &["draw", "lines", name],
                    message,
                    nearest(name, names),
                ));
            }
            for points in polylines {
                if points.iter().flatten().any(|v| !v.is_finite()) {
                    let message = format!("a line of `{name}` has a point that is not finite");
                    return Err(source.error(
                        &["draw", "lines", name],
                        message,
                        "give coordinates in m",
                    ));
                }
                let origin = body.map_or(Vec3::zeros(), |b| m.bodies[b].origin);
                let seen = points.iter().map(|p| (origin + Vec3::from(*p)).into());
                lines.push(Line {
                    body,
                    points: seen.collect(),
                });
            }
        }
        Ok(Some(lines))
    }
}
