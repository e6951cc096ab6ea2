//! The command line: parses, calls the library, reports. What it says to people goes to standard error, results to
//! standard output.

/// As in the standard library, except that a reader who goes away, as `head` does, does not end the work.
macro_rules! println {
    ($($text:tt)*) => { $crate::cli::put(std::io::stdout(), format_args!($($text)*)) };
}

/// The same to people.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::cli::put(std::io::stderr(), format_args!($($text)*)) };
}

mod animate;
mod check;
mod describe;
mod gradient;
mod kinks;
mod method;
mod plot;
mod progress;
mod quality;
mod report;
mod schema;
mod simulate;
mod solve;
mod verdict;

use clap::{Parser, Subcommand};
use least_action::dynamics::request_stop;
use least_action::format::recording::Recording;
use least_action::format::{self, Document, FormatError, Model, Overrides};
use least_action::integrator::{Choice, Controls, Substeps};
use least_action::plot::Format;
use progress::Progress;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulates mechanisms and optimizes their motion with a variational integrator.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a problem or a mechanism from its initial state with the guessed controls
    Simulate(simulate::Arguments),
    /// Find the optimal trajectory of a problem; writes it with its figures
    Solve(solve::Arguments),
    /// The gradient of a problem's objective at its guess, and how long it takes
    Gradient(gradient::Arguments),
    /// Draw a trajectory that was written
    Plot(plot::Arguments),
    /// Show trajectories that were written in motion: a page, a glTF scene or a film
    Animate(animate::Arguments),
    /// Say what a file holds: bodies, joints, degrees of freedom, loops
    Describe(describe::Arguments),
    /// Print the JSON schema of problem files
    Schema,
}

fn put(mut to: impl std::io::Write, line: std::fmt::Arguments) {
    // there is nobody left to tell
    let _ = writeln!(to, "{line}");
}

/// Why a command did not do what it was asked.
enum Failure {
    /// Bad input; nothing was written. Exit status 2.
    Input(miette::Report),
    /// It ran; why the result is not what was wanted. Exit status 1.
    Unsolved(String),
}

impl From<FormatError> for Failure {
    fn from(e: FormatError) -> Self {
        Self::Input(e.into())
    }
}

impl Failure {
    /// What is wrong, and behind the last semicolon the remedy.
    fn input(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        Self::Input(match text.rsplit_once("; ") {
            Some((what, remedy)) => miette::miette!(help = remedy, "{what}"),
            None => miette::miette!("{text}"),
        })
    }

    /// The computation could not go on; says why.
    fn unsolved(message: impl std::fmt::Display) -> Self {
        Self::Unsolved(message.to_string())
    }

    fn status(&self) -> u8 {
        match self {
            Self::Unsolved(_) => 1,
            Self::Input(_) => 2,
        }
    }

    /// Tells people, and says it as JSON: message, remedy, and the place in the file where there is one.
    fn tell(&self) -> serde_json::Value {
        match self {
            Self::Unsolved(message) => {
                eprintln!("{message}");
                json!({ "status": "failed", "message": message })
            }
            Self::Input(report) => {
                eprintln!("{report:?}");
                let help = report.help().map(|h| h.to_string());
                let mut value = bad_input(&report.to_string(), help.as_deref());
                if let Some(e) = report.downcast_ref::<FormatError>() {
                    let place = e.position();
                    value["message"] = e.message().into();
                    value["help"] = e.help().into();
                    value["file"] = shown(e.path()).into();
                    value["line"] = place.map(|p| p.0).into();
                    value["column"] = place.map(|p| p.1).into();
                }
                value
            }
        }
    }
}

/// Parses the arguments and runs the command.
pub fn run() -> ExitCode {
    // a command line that cannot be parsed is answered as JSON, too
    let json = std::env::args_os().any(|a| a == "--json");
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(e) if e.use_stderr() => {
            // there is nobody left to tell
            let _ = e.print();
            if json {
                let text = e.to_string();
                let (message, help) = text.split_once("\n\n").unwrap_or((&text, ""));
                let message = message.trim_start_matches("error: ");
                print_json(&bad_input(message, Some(help.trim())));
            }
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    let result = match command {
        Command::Simulate(a) => simulate::run(&a),
        Command::Solve(a) => solve::run(&a),
        Command::Gradient(a) => gradient::run(&a),
        Command::Plot(a) => plot::run(&a),
        Command::Animate(a) => animate::run(&a),
        Command::Describe(a) => describe::run(&a),
        Command::Schema => schema::run(),
    };
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    let said = failure.tell();
    if json && !ANSWERED.load(Ordering::Relaxed) {
        print_result(said);
    }
    ExitCode::from(failure.status())
}

/// What could not be done, and how it can; whoever knows the place in a file adds it.
fn bad_input(message: &str, help: Option<&str>) -> serde_json::Value {
    json!({
        "status": "bad_input", "message": message, "help": help,
        "file": null, "line": null, "column": null,
    })
}

/// Warnings of the command so far.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(vec![]);

/// Warns on standard error. The JSON object of the command holds the warning, too.
fn warn(text: String) {
    eprintln!("warning: {text}");
    if let Ok(mut all) = WARNINGS.lock() {
        all.push(text);
    }
}

/// What helps where a model's steps are too long.
fn finer_steps(model: &Model) -> &'static str {
    let is_divided = model.system.choice().substeps() == Substeps::Auto;
    least_action::integrator::finer_steps(!is_divided && model.controls == Controls::Held)
}

/// Was the JSON object of the command printed? There is exactly one.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Reads a file, and tells what of a robot's was left out or done otherwise.
fn load(file: &Path) -> Result<Document, Failure> {
    let document = format::load(file)?;
    for remark in document.remarks() {
        eprintln!("{}: {remark}", document.mechanism_path().display());
    }
    Ok(document)
}

/// Reads a file and makes it ready to move from its start.
fn model(file: &Path, overrides: &Overrides) -> Result<Model, Failure> {
    let document = load(file)?;
    let model = document.build(overrides)?;
    document.check_start(&model)?;
    Ok(model)
}

/// The figure format that a path's ending asks for.
fn figure_format(path: &Path) -> Result<Format, Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => Ok(Format::Svg),
        Some("png") => Ok(Format::Png),
        _ => Err(Failure::input(format!(
            "`{}` is no figure; end its path in .svg or .png",
            path.display()
        ))),
    }
}

/// Refuses a place where no file can be put, before anything is computed or written.
fn room(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::input(format!(
            "`{shown}` is a directory; give the path of a file"
        )));
    }
    match path.ancestors().skip(1).find(|p| p.exists()) {
        Some(above) if !above.is_dir() => Err(Failure::input(format!(
            "cannot write `{shown}`: `{}` is not a directory; choose another place",
            above.display()
        ))),
        _ => Ok(()),
    }
}

/// Lets Ctrl-C ask what runs to end with what it has; a second one ends the program at once.
fn stop_on_interrupt() {
    // there is a handler already: it does the same
    let _ = ctrlc::set_handler(|| {
        if request_stop() {
            std::process::exit(130);
        }
    });
}

/// Prints the result of a computation as one JSON object, with the warnings.
fn print_result(mut value: serde_json::Value) {
    let warnings = WARNINGS.lock().map_or(vec![], |all| all.clone());
    value["warnings"] = warnings.into();
    print_json(&value);
}

/// Prints one JSON object on standard output.
fn print_json(value: &serde_json::Value) {
    ANSWERED.store(true, Ordering::Relaxed);
    println!("{value:#}");
}

/// A number on the command line that must be positive and finite.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v > 0.0 && v.is_finite() => Ok(v),
        _ => Err("expected a positive number".into()),
    }
}

/// How the mechanism moves.
#[derive(clap::Args)]
struct Integrator {
    /// How the mechanism moves; the file says it otherwise
    #[arg(long = "integrator", value_name = "NAME", value_parser = integrator)]
    name: Option<String>,
    /// Order of the integrator's error in the time step, under controls that stay the same
    #[arg(long, value_name = "N", value_parser = order)]
    order: Option<usize>,
    /// Make every step in so many equal parts, or `auto`: in as many as its fastest swings ask for
    #[arg(long, value_name = "N", value_parser = substeps)]
    substeps: Option<Substeps>,
}

impl Integrator {
    /// What the command line says instead of the file, with these.
    fn over(&self, overrides: Overrides) -> Overrides {
        Overrides {
            integrator: self.name.clone(),
            order: self.order,
            substeps: self.substeps,
            ..overrides
        }
    }
}

fn integrator(text: &str) -> Result<String, String> {
    match Choice::new(text, None) {
        Ok(_) => Ok(text.into()),
        Err(e) => Err(e.to_string()),
    }
}

fn substeps(text: &str) -> Result<Substeps, String> {
    Substeps::named(text).map_err(|e| e.to_string())
}

fn order(text: &str) -> Result<usize, String> {
    let order = text.parse().map_err(|_| "expected a whole number")?;
    match Choice::new("auto", Some(order)) {
        Ok(_) => Ok(order),
        Err(e) => Err(e.help),
    }
}

/// A path shown relative to where the user stands.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Writes all bytes or leaves what was there.
fn write(path: &Path, bytes: &[u8]) -> Result<PathBuf, Failure> {
    format::write_bytes(path, bytes)?;
    Ok(path.to_owned())
}

/// Bytes of a number in a file, about, for the progress.
const BYTES: u64 = 19;
const MEGABYTE: u64 = 1 << 20;

/// Writes a trajectory as its path's ending says, .csv or .json, and shows how far it is.
fn write_trajectory(path: &Path, recording: &Recording) -> Result<(), Failure> {
    let columns = 1 + recording.channels.len() + 7 * recording.bodies.len();
    let total = (recording.time.len() * columns) as u64 * BYTES / MEGABYTE;
    let mut progress = Progress::new("writing MB", total.max(1));
    let mut tell = |bytes: u64| progress.at(bytes / MEGABYTE, String::new);
    if path.extension().is_some_and(|e| e == "csv") {
        format::write_csv_with(path, recording, &mut tell)?;
    } else {
        format::write_json_with(path, recording, &mut tell)?;
    }
    progress.finish();
    Ok(())
}

/// A unit behind its number; nothing for a number without one.
fn unit(name: &str) -> String {
    match name {
        "1" => String::new(),
        name => format!(" {name}"),
    }
}

/// A number for people: fixed where that shows it, else scientific.
fn number(v: f64) -> String {
    if v == 0.0 || (1e-3..1e7).contains(&v.abs()) {
        format!("{v:.6}")
    } else {
        format!("{v:.5e}")
    }
}
