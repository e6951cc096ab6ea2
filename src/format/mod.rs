//! Files: problems and mechanisms in, recordings of trajectories out.
//!
#![doc = include_str!("../../docs/files.md")]

mod composite;
mod contact;
mod decided;
mod describe_method;
mod describe_policy;
mod describe_quantity;
mod describe_start;
mod describe_time;
mod extension;
mod forms;
pub mod gains;
mod goals;
mod grid;
mod initial;
mod learners;
mod limits;
mod model;
mod named;
mod noise;
mod outline;
pub mod output;
mod parameters;
mod policy;
pub mod problem;
mod quantity;
mod recorded;
pub mod recording;
mod scenarios;
mod schema;
mod signal;
mod source;
mod states;
mod table;
#[cfg(test)]
mod tests;
mod touches;
mod wanted;
mod write;

pub use extension::{Extended, Extension};
pub use gains::feedback;
pub use output::{record, record_every};
pub use policy::Acting;
pub use scenarios::Scenario;
pub use schema::schema;
pub use source::{FormatError, short};
pub use write::{
    read_checkpoint, read_recording, write_bytes, write_csv, write_csv_with, write_json,
    write_json_with,
};

use crate::control::{Disturbed, Policy, Problem, Quadrature};
use crate::dynamics::{QuantityId, Step};
use crate::integrator::{Choice, Mechanical, System};
use crate::mechanism::{Mechanism, MechanismBuilder};
use crate::optimize::Method;
use grid::Grid;
use noise::Noise;
use problem::{DrawSpec, IntegratorSpec, MechanismFile, MechanismSpec, MethodSpec, ProblemSpec};
use quantity::Quantities;
use recording::Line;
use source::{Source, nearest};
use std::path::Path;

/// Time step of a mechanism file, s.
const TIME_STEP: f64 = 0.01;
/// Horizon of a mechanism file, s.
const HORIZON: f64 = 10.0;

/// A file that was read and has the right form.
#[derive(Clone, Debug)]
pub struct Document {
    source: Source,
    content: Content,
    /// The file the mechanism is in, if that is another one, and how it says to draw it.
    mechanism: Option<(Source, Option<DrawSpec>)>,
    builder: MechanismBuilder,
}

#[derive(Clone, Debug)]
enum Content {
    Problem(Box<ProblemSpec>),
    Mechanism(Box<MechanismFile>),
}

/// What the command line says instead of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Horizon, s.
    pub duration: Option<f64>,
    /// s
    pub time_step: Option<f64>,
    /// Of the guess's noise, and of a learner's.
    pub seed: Option<u64>,
    /// Name of the integrator.
    pub integrator: Option<String>,
    /// Its order.
    pub order: Option<usize>,
}

/// Everything a command needs to run.
#[derive(Debug)]
pub struct Model {
    /// The file's name without its ending.
    pub name: String,
    /// For figures.
    pub title: String,
    /// The mechanism and how it moves, with the outputs that costs and constraints refer to.
    pub system: System,
    /// What is wanted of it; without costs and constraints for a mechanism alone.
    pub problem: Problem,
    /// Costs or constraints refer to rates of controls, which are quantities of [`Model::extended`], not of the system
    /// alone.
    pub remembers: bool,
    /// What computes the controls.
    pub policy: Acting,
    /// What the problem needs beside the system; see [`Model::extended`].
    pub extension: Extension,
    /// Where there are several, each by itself; the model's own problem is then of all together, its system that of the
    /// first.
    pub scenarios: Vec<Scenario>,
    /// Every scenario has controls of its own.
    pub own_controls: bool,
    /// The system alone has all that the problem refers to.
    pub is_plain: bool,
    /// Quantities that are written beside what always is, of the same list as those of costs and constraints.
    pub recorded: Vec<QuantityId>,
    /// Settings of the method.
    pub options: MethodSpec,
    /// State at the start with the parameters as built, loops closed.
    pub x0: Vec<f64>,
    /// The mechanism as it was described, with the values of the problem's parameters.
    pub mechanism: MechanismBuilder,
    /// Line work the file gives instead of the automatic one.
    pub draw: Option<Vec<Line>>,
}

/// Reads a problem or a mechanism. A file with `mechanism` at its top level is a problem, one with `bodies` a
/// mechanism.
///
/// # Errors
/// When the file, or the mechanism file it refers to, cannot be read or has a wrong form.
pub fn load(path: &Path) -> Result<Document, FormatError> {
    Document::new(Source::read(path)?)
}

/// Reads a problem or a mechanism from text, as [`load`] does from a file. `path` is the file that it stands for: its
/// name is the model's, its folder is where files that it refers to are looked for, and messages tell it. It need not
/// exist.
///
/// # Errors
/// When the text, or the mechanism file it refers to, has a wrong form.
///
/// ```
/// use least_action::format::{Overrides, parse};
///
/// let text = r#"
///     [bodies.rod]
///     mass = 1.0
///     shape = { box = [0.05, 0.05, 1.0] }
///
///     [joints.pivot]
///     kind = "revolute"
///     child = "rod"
///     axis = [0.0, 1.0, 0.0]
///     child_anchor = [0.0, 0.0, 0.5]
/// "#;
/// let model = parse(text, "pendulum.toml")?.build(&Overrides::default())?;
/// assert_eq!(model.name, "pendulum");
/// let wrong = parse("[bodies.rod]\nmas = 1.0", "rod.toml").unwrap_err();
/// assert!(format!("{wrong:#}").starts_with("rod.toml:2:1: "), "{wrong:#}");
/// # Ok::<(), least_action::format::FormatError>(())
/// ```
pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Document, FormatError> {
    Document::new(Source::parse(path.as_ref(), text)?)
}

impl Document {
    fn new(source: Source) -> Result<Self, FormatError> {
        if source.keys().any(|k| k == "mechanism") {
            let spec: ProblemSpec = source.decode()?;
            let (mechanism, builder) = match &spec.mechanism {
                MechanismSpec::Inline(builder) => (None, builder.as_ref().clone()),
                MechanismSpec::File(file) => {
                    let path = source.path().parent().unwrap_or(Path::new("")).join(file);
                    if !path.exists() {
                        return Err(source.error(
                            &["mechanism"],
                            format!("the mechanism file `{}` does not exist", path.display()),
                            "give its path relative to this file",
                        ));
                    }
                    let other = Source::read(&path)?;
                    if other.keys().any(|k| k == "mechanism") {
                        return Err(source.error(
                            &["mechanism"],
                            format!("`{}` is a problem, expected a mechanism", path.display()),
                            "give a file with `bodies` at its top level",
                        ));
                    }
                    let file: MechanismFile = other.decode()?;
                    let builder = file.builder();
                    (Some((other, file.draw)), builder)
                }
            };
            return Ok(Self {
                source,
                content: Content::Problem(Box::new(spec)),
                mechanism,
                builder,
            });
        }
        if source.keys().any(|k| k == "bodies") {
            let file: MechanismFile = source.decode()?;
            return Ok(Self {
                source,
                builder: file.builder(),
                content: Content::Mechanism(Box::new(file)),
                mechanism: None,
            });
        }
        let near = |k: &&str| {
            ["mechanism", "bodies"]
                .iter()
                .any(|n| strsim::jaro_winkler(k, n) > 0.85)
        };
        let message = "this is neither a problem nor a mechanism: there is no `mechanism` and there are no `bodies` at the top level";
        let close = source.keys().find(near).map(str::to_owned);
        Err(match close {
            Some(k) => source.name_error(
                &[&k],
                message,
                nearest(&k, ["mechanism", "bodies"].into_iter()),
            ),
            None => FormatError::of_file(
                source.path(),
                message,
                "a problem has [mechanism], or mechanism = \"file.toml\"; a mechanism has [bodies.NAME]",
            ),
        })
    }

    /// The file's name without its ending.
    pub fn name(&self) -> String {
        let stem = self.source.path().file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// The title, or the name where there is none.
    pub fn title(&self) -> String {
        let title = match &self.content {
            Content::Problem(p) => p.title.clone(),
            Content::Mechanism(m) => m.title.clone(),
        };
        title.unwrap_or_else(|| self.name())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The problem as described; `None` for a mechanism alone.
    pub fn problem(&self) -> Option<&ProblemSpec> {
        match &self.content {
            Content::Problem(p) => Some(p),
            Content::Mechanism(_) => None,
        }
    }

    /// The mechanism as described.
    pub fn mechanism(&self) -> &MechanismBuilder {
        &self.builder
    }

    /// An error of the mechanism, in the file and table it stands in.
    fn model_error(&self, e: &crate::mechanism::ModelError) -> FormatError {
        match (&self.mechanism, &self.content) {
            (Some((other, _)), _) => other.model(&[], e),
            (None, Content::Problem(_)) => self.source.model(&["mechanism"], e),
            (None, Content::Mechanism(_)) => self.source.model(&[], e),
        }
    }

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
            initial: indexmap::IndexMap::new(),
            parameters: indexmap::IndexMap::new(),
            scenarios: vec![],
            worst_case: false,
            own_controls: false,
            policy: None,
            guess: problem::GuessSpec::default(),
            costs: vec![],
            constraints: vec![],
            quadrature: Quadrature::default(),
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
    fn one(
        &self,
        spec: &ProblemSpec,
        builder: &MechanismBuilder,
        noise: Option<Noise>,
        overrides: &Overrides,
    ) -> Result<Model, FormatError> {
        let (built, builder, parameter_bounds) = self.parameters(spec, builder)?;
        let integrator = self.integrator(&spec.integrator, overrides)?;
        self.method(&spec.method)?;
        spec.contact.check(&self.source)?;
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
        let mut wanted =
            Quantities::new(&self.source, &built, &own, named.clone(), open).wanted(spec)?;
        if overrides != &Overrides::default() && !wanted.profiles.is_empty() && own != grid {
            return Err(FormatError::of_file(
                self.source.path(),
                "on the command line: targets or limits of this problem vary along its own knots",
                "change time_step and horizon in the file",
            ));
        }
        initial::reachable(&built, &self.source, (&wanted.outputs, &wanted.constraints))?;
        let bounds = built
            .actuators
            .iter()
            .map(|a| a.bounds.unwrap_or((f64::NEG_INFINITY, f64::INFINITY)));
        let bounds: Vec<(f64, f64)> = bounds.collect();
        let mut guess = wanted::guess(&self.source, &built, spec, (&own, &grid), overrides.seed)?;
        let options = contact::integrator_options(spec);
        let system = System::new(integrator, built, &start.q, options)
            .map_err(|e| self.model_error(&e))?
            .with_outputs(std::mem::take(&mut wanted.outputs));
        let system = start.holding(system, &self.source)?;
        let (policy, sights) = (spec.policy.as_ref(), &wanted.sights);
        let mut policy = policy::build(&self.source, policy, sights, &system, &grid)?;
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
        let mut guess_states = vec![];
        if let Some(states) = &spec.guess.states {
            let (from, horizon) = ((&start.q[..], &x0[..]), own.horizon());
            guess_states = states::states(&self.source, states, &system, from, (horizon, &grid))?;
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
            quadrature: spec.quadrature,
            profiles: wanted.profiles,
            state: None,
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
        spec: &IntegratorSpec,
        overrides: &Overrides,
    ) -> Result<Choice, FormatError> {
        let name = overrides.integrator.as_deref().unwrap_or(spec.name());
        let order = overrides.order.or(spec.order());
        Choice::new(name, order).map_err(|e| {
            let path: &[&str] = match (spec, e.of_order) {
                (IntegratorSpec::Name(_), _) => &["integrator"],
                (_, true) => &["integrator", "order"],
                (_, false) => &["integrator", "name"],
            };
            self.source.error(path, e.message, e.help)
        })
    }

    /// Name of the method that the file asks for.
    pub fn method_name(&self) -> &str {
        self.problem()
            .map_or(Method::ALL[0].name(), |p| &p.method.name)
    }

    /// Is the method that the file names available in this version? Only solving needs it to be.
    ///
    /// # Errors
    /// When it is not.
    pub fn solvable(&self) -> Result<(), FormatError> {
        let (name, available) = (self.method_name(), Method::names());
        if available.contains(&name) {
            return Ok(());
        }
        Err(self.source.error(
            &["method", "name"],
            format!("method `{name}` is not available in this version"),
            format!(
                "use one of `{0}`, here or with --method {1}",
                available.join("`, `"),
                available[0]
            ),
        ))
    }

    fn method(&self, spec: &MethodSpec) -> Result<(), FormatError> {
        let name = spec.name.as_str();
        let known = Method::known_names();
        if !known.clone().any(|k| k == name) {
            let message = format!("unknown method `{name}`");
            let help = nearest(name, known);
            return Err(self.source.error(&["method", "name"], message, help));
        }
        let foreign = Method::named(name).map_or(vec![], |m| spec.foreign(m));
        if let Some((field, owners)) = foreign.first() {
            let listed: Vec<&str> = owners.iter().map(|m| m.name()).collect();
            return Err(self.source.error(
                &["method", field],
                format!(
                    "{field} is a setting of `{}`, not of `{name}`",
                    listed.join("`, `")
                ),
                format!(
                    "leave it out, or take name = \"{}\"",
                    listed.join("\" or \"")
                ),
            ));
        }
        if let Some(learner) = Method::named(name).filter(|m| m.is_learner())
            && let Err(e) = spec.of(learner).check()
        {
            // it begins with the setting's name, and ends with what was expected
            let (message, help) = e.split_once("; ").unwrap_or((&e, ""));
            let field = message.split(' ').next().unwrap_or_default();
            return Err(self.source.error(&["method", field], message, help));
        }
        for (field, value) in [
            ("tolerance", spec.tolerance),
            ("optimality", spec.optimality),
            ("penalty", spec.penalty),
        ] {
            if let Some(v) = value.filter(|v| !(*v > 0.0 && v.is_finite())) {
                return Err(self.source.error(
                    &["method", field],
                    format!("{field} is {v}"),
                    "expected a positive number",
                ));
            }
        }
        if let Some(problem::SmoothingSpec::Levels(s)) = spec.smoothing
            && s.start > 0.0
            && s.start < s.end
        {
            return Err(self.source.error(
                &["method", "smoothing"],
                format!(
                    "smoothing starts at {} below its end {}: there is no level in between",
                    s.start, s.end
                ),
                "levels fall from start to end (1e-5 unless told): give a start that is not below it, or an end that is not above",
            ));
        }
        if let Some(problem::SmoothingSpec::Levels(s)) = spec.smoothing
            && !s.is_valid()
        {
            return Err(self.source.error(
                &["method", "smoothing"],
                format!(
                    "levels from {} to {} by the factor {}",
                    s.start, s.end, s.factor
                ),
                "expected positive numbers, the factor below 1; e.g. smoothing = { start = 1e-1, end = 1e-5, factor = 0.1 }",
            ));
        }
        for (field, value) in [("memory", spec.memory), ("population", spec.population)] {
            if value == Some(0) {
                return Err(self.source.error(
                    &["method", field],
                    format!("{field} is 0"),
                    "expected at least 1",
                ));
            }
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
                lines.push(Line {
                    body,
                    points: points.clone(),
                });
            }
        }
        Ok(Some(lines))
    }
}
