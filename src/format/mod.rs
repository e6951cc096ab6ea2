//! Files: problems and mechanisms in, recordings of trajectories out.
//!
#![doc = include_str!("../../docs/files.md")]

mod build;
mod composite;
mod contact;
mod decided;
mod describe_episodes;
mod describe_method;
mod describe_policy;
mod describe_quantity;
mod describe_start;
mod describe_time;
mod episodes;
mod extension;
mod forms;
pub mod gains;
mod goals;
mod grid;
mod import;
mod initial;
mod learners;
mod limits;
mod model;
mod named;
mod noise;
pub(crate) mod outline;
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
mod urdf;
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

use crate::control::Problem;
use crate::dynamics::QuantityId;
use crate::integrator::{Controls, Substeps, System};
use crate::mechanism::{MechanismBuilder, ModelError};
use crate::optimize::Method;
use import::ImportSpec;
use problem::{DrawSpec, IntegratorTable, MechanismFile, MechanismSpec, MethodSpec, ProblemSpec};
use recording::{Line, Visual};
use schemars::JsonSchema;
use source::{Source, nearest};
use std::path::Path;

/// A file that was read and has the right form.
#[derive(Clone, Debug)]
pub struct Document {
    source: Source,
    content: Content,
    /// The file the mechanism is in, if that is another one, and how it says to draw it.
    mechanism: Option<(Source, Option<DrawSpec>)>,
    builder: MechanismBuilder,
    /// What of a robot's file was left out or done otherwise.
    remarks: Vec<String>,
    visuals: Vec<Visual>,
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
    /// In how many parts steps are made.
    pub substeps: Option<Substeps>,
    /// The same where neither that nor the file says it.
    pub usual_substeps: Substeps,
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
    /// How controls act between knots.
    pub controls: Controls,
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
    /// What a robot's file says that bodies look like.
    pub visuals: Vec<Visual>,
}

/// Reads a problem or a mechanism. A file with `mechanism` at its top level is a problem, one with `bodies` a
/// mechanism.
///
/// # Errors
/// When the file, or the mechanism file it refers to, cannot be read or has a wrong form.
pub fn load(path: &Path) -> Result<Document, FormatError> {
    Document::new(path, &Source::text(path)?)
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
    Document::new(path.as_ref(), text)
}

/// Names in a path that tell the element that an error is about: its kind and its own.
const ELEMENT: usize = 2;

impl Document {
    fn new(path: &Path, text: &str) -> Result<Self, FormatError> {
        let mut read = Self::read(path, text)?;
        // numbers of elements are those of what is written out
        read.builder = read.builder.mirrored().map_err(|e| read.model_error(&e))?;
        Ok(read)
    }

    /// Checks that a mechanism can start where it is: a problem was checked as it was built.
    ///
    /// # Errors
    /// If surfaces overlap.
    pub fn check_start(&self, model: &Model) -> Result<(), FormatError> {
        let help = "start it from a problem, whose [initial] can move the bodies apart, put them in groups that do not name each other, or add the pair to excluded_pairs";
        match initial::overlapping(&model.system, &model.x0) {
            Some((body, message)) if self.problem().is_none() => {
                Err(self.source.error(&["bodies", &body], message, help))
            }
            _ => Ok(()),
        }
    }

    fn read(path: &Path, text: &str) -> Result<Self, FormatError> {
        if urdf::is_xml(path, text) {
            let robot = urdf::read((path, text), (&ImportSpec::usual(), None))?;
            let file = MechanismFile {
                title: robot.title,
                ..MechanismFile::default()
            };
            return Ok(Self {
                source: robot.source,
                content: Content::Mechanism(Box::new(file)),
                mechanism: None,
                builder: robot.builder,
                remarks: robot.remarks,
                visuals: robot.visuals,
            });
        }
        let source = Source::parse(path, text)?;
        if source.keys().any(|k| k == "mechanism") {
            return Self::of_problem(source);
        }
        if source.keys().any(|k| k == "bodies") {
            let misplaced = |e| {
                Self::misplaced::<ProblemSpec, MechanismFile>(
                    &source,
                    "a field of a problem, and a file with `bodies` at its top level is a mechanism",
                    "to make it a problem, write [mechanism.bodies.NAME] for [bodies.NAME], and so on; or write a problem beside it, with mechanism = \"FILE\"",
                )
                .unwrap_or(e)
            };
            let file: MechanismFile = source.decode().map_err(misplaced)?;
            return Ok(Self {
                source,
                builder: file.builder(),
                content: Content::Mechanism(Box::new(file)),
                mechanism: None,
                remarks: vec![],
                visuals: vec![],
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

    /// The error of a field that the file, `Own`, does not have, but another table, `Other`, has. A `name` may be meant for anything.
    fn misplaced<Other: JsonSchema, Own: JsonSchema>(
        source: &Source,
        is: &str,
        help: &str,
    ) -> Option<FormatError> {
        let (other, own) = (schema::fields::<Other>(), schema::fields::<Own>());
        let has = |names: &[String], k: &str| names.iter().any(|n| n == k);
        let is_misplaced = |k: &&str| *k != "name" && has(&other, k) && !has(&own, k);
        let k = source.keys().find(is_misplaced)?;
        Some(source.name_error(&[k], format!("`{k}` is {is}"), help))
    }

    fn of_problem(source: Source) -> Result<Self, FormatError> {
        let misplaced = |e| {
            Self::misplaced::<IntegratorTable, ProblemSpec>(
                &source,
                "a field of `integrator`",
                "write it there: integrator = { name = \"auto\", substeps = 4 }",
            )
            .unwrap_or(e)
        };
        let mut spec: ProblemSpec = source.decode().map_err(misplaced)?;
        let inline = |spec: ProblemSpec, builder| Self {
            source: source.clone(),
            content: Content::Problem(Box::new(spec)),
            mechanism: None,
            builder,
            remarks: vec![],
            visuals: vec![],
        };
        let file = match &spec.mechanism {
            MechanismSpec::File(file) => file,
            MechanismSpec::Inline(builder) => {
                let builder = builder.as_ref().clone();
                Self::refuse_import(&source, &spec)?;
                return Ok(inline(spec, builder));
            }
        };
        let path = source.path().parent().unwrap_or(Path::new("")).join(file);
        if !path.exists() {
            return Err(source.error(
                &["mechanism"],
                format!("the mechanism file `{}` does not exist", path.display()),
                "give its path relative to this file",
            ));
        }
        let text = Source::text(&path)?;
        if urdf::is_xml(&path, &text) {
            let usual = ImportSpec::usual();
            let import = spec.import.as_ref().unwrap_or(&usual);
            let robot = urdf::read((&path, &text), (import, Some(&source)))?;
            if import.speed_limits {
                spec.constraints.extend(import::keep_speeds(&robot.speeds));
            }
            return Ok(Self {
                mechanism: Some((robot.source, None)),
                remarks: robot.remarks,
                visuals: robot.visuals,
                ..inline(spec, robot.builder)
            });
        }
        Self::refuse_import(&source, &spec)?;
        let other = Source::parse(&path, &text)?;
        if other.keys().any(|k| k == "mechanism") {
            return Err(source.error(
                &["mechanism"],
                format!("`{}` is a problem, expected a mechanism", path.display()),
                "give a file with `bodies` at its top level",
            ));
        }
        let file: MechanismFile = other.decode()?;
        let builder = file.builder();
        Ok(Self {
            mechanism: Some((other, file.draw)),
            ..inline(spec, builder)
        })
    }

    fn refuse_import(source: &Source, spec: &ProblemSpec) -> Result<(), FormatError> {
        match spec.import {
            None => Ok(()),
            Some(_) => Err(source.name_error(
                &["import"],
                "[import] is of robots in URDF, and the mechanism is in TOML",
                "say it in the mechanism itself",
            )),
        }
    }

    /// What of a robot's file was left out or done otherwise, a sentence each.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
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

    /// The file that the mechanism is in.
    pub fn mechanism_path(&self) -> &Path {
        let other = self.mechanism.as_ref();
        other.map_or(self.path(), |(source, _)| source.path())
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
    fn model_error(&self, e: &ModelError) -> FormatError {
        match (&self.mechanism, &self.content) {
            (Some((other, _)), _) => {
                let path: Vec<&str> = e.path.iter().map(String::as_str).collect();
                let told = self.source.known(&[&["import"], &path[..]].concat());
                // what was added to a robot stands in the problem, as far as that says anything of it
                if told > ELEMENT && told > other.known(&path) {
                    self.source.model(&["import"], e)
                } else {
                    other.model(&[], e)
                }
            }
            (None, Content::Problem(_)) => self.source.model(&["mechanism"], e),
            (None, Content::Mechanism(_)) => self.source.model(&[], e),
        }
    }

    /// Name of the method that the file asks for.
    pub fn method_name(&self) -> &str {
        self.problem()
            .map_or(Method::ALL[0].name(), |p| &p.method.name)
    }

    fn method(&self, spec: &MethodSpec) -> Result<(), FormatError> {
        let name = spec.name.as_str();
        let known = Method::names();
        if !known.contains(&name) {
            let message = format!("unknown method `{name}`");
            let help = nearest(name, known.into_iter());
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
        let is_gradient = name == Method::PolicyGradient.name();
        let level = matches!(
            spec.smoothing,
            None | Some(problem::SmoothingSpec::Switch(false) | problem::SmoothingSpec::Level(_))
        );
        if is_gradient && !level {
            return Err(self.source.error(
                &["method", "smoothing"],
                format!("smoothing of `{name}` is one parameter of the central path"),
                "give a number, e.g. smoothing = 1e-3 (m^2/s^2), or false",
            ));
        }
        if let Some(problem::SmoothingSpec::Level(level)) = spec.smoothing
            && !is_gradient
            && !(level > 0.0 && level.is_finite())
        {
            return Err(self.source.error(
                &["method", "smoothing"],
                format!("smoothing is {level}"),
                "expected a positive number, m^2/s^2; or levels, { start = .. }; or false",
            ));
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
                "levels fall from start to end (1e-5 by default): give a start that is not below it, or an end that is not above",
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
        for (field, value) in [
            ("memory", spec.memory),
            ("population", spec.population),
            ("segments", spec.segments),
        ] {
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
}
