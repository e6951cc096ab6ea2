//! Knots and the guess of a problem.

use super::Overrides;
use super::problem::{ControlsSpec, ProblemSpec};
use super::source::{FormatError, Source, nearest};
use crate::mechanism::Mechanism;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;

/// More time steps than this are a mistake.
const MOST_STEPS: f64 = 1e7;

/// Evenly spaced knots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    /// s
    pub step: f64,
    /// Number of steps.
    pub steps: usize,
}

impl Grid {
    /// Horizon and time step, the command line's before the file's.
    pub fn new(source: &Source, spec: &ProblemSpec, over: &Overrides) -> Result<Self, FormatError> {
        // what the command line says is not a place in the file
        let err = |field: &str, overridden: bool, message: String, help: String| {
            if overridden {
                FormatError::of_file(
                    source.path(),
                    format!("on the command line: {message}"),
                    help,
                )
            } else {
                source.error(&[field], message, help)
            }
        };
        let step = over.time_step.unwrap_or(spec.time_step);
        let horizon = over.duration.unwrap_or(spec.horizon);
        for (field, value, overridden) in [
            ("time_step", step, over.time_step.is_some()),
            ("horizon", horizon, over.duration.is_some()),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                let message = format!("{field} is {value} s");
                return Err(err(
                    field,
                    overridden,
                    message,
                    "expected a positive number".into(),
                ));
            }
        }
        let overridden = over.time_step.is_some() || over.duration.is_some();
        let ratio = horizon / step;
        let steps = ratio.round().max(1.0);
        if steps > MOST_STEPS {
            return Err(err(
                "time_step",
                overridden,
                format!(
                    "{steps:e} time steps of {step} s make up the horizon, expected at most 10 million"
                ),
                "take a larger time step or a shorter horizon".into(),
            ));
        }
        if (steps * step - horizon).abs() > 1e-9 * horizon {
            let (below, above) = (ratio.floor().max(1.0), ratio.ceil());
            return Err(err(
                "horizon",
                overridden,
                format!("horizon {horizon} s is not a whole number of time steps of {step} s"),
                format!(
                    "the nearest horizons are {:.9} s and {:.9} s",
                    below * step,
                    above.max(below + 1.0) * step
                ),
            ));
        }
        Ok(Self {
            step,
            steps: steps as usize,
        })
    }

    /// The knot of `self` that controls at knot `k` of another grid; the last holds on behind the end.
    fn knot_at(&self, k: usize, other: &Self) -> usize {
        let k = (k as f64 * other.step / self.step * (1.0 + 1e-12)).floor() as usize;
        k.min(self.steps - 1)
    }
}

/// Controls to start from, `nu` a knot. The file gives them on the grid `grids.0`; they are held from knot to knot
/// where the command line asks for `grids.1` instead.
pub(super) fn guess(
    source: &Source,
    m: &Mechanism,
    spec: &ProblemSpec,
    grids: (&Grid, &Grid),
    seed: Option<u64>,
) -> Result<Vec<f64>, FormatError> {
    let (own, grid) = grids;
    let nu = m.actuators.len();
    let mut columns: Vec<Vec<f64>> = vec![vec![]; nu];
    match &spec.guess.controls {
        ControlsSpec::Table(table) => {
            for (name, values) in table {
                let names = || m.actuators.iter().map(|a| a.name.as_str());
                let path = ["guess", "controls", name];
                let i = names().position(|n| n == name).ok_or_else(|| {
                    source.name_error(
                        &path,
                        format!("unknown control `{name}`"),
                        nearest(name, names()),
                    )
                })?;
                let v = values.as_slice();
                if matches!(values, super::problem::Numbers::List(_)) && v.len() != own.steps {
                    let message = format!(
                        "control `{name}` has {} numbers, the horizon has {} time steps",
                        v.len(),
                        own.steps
                    );
                    return Err(source.error(
                        &path,
                        message,
                        "give one number for each time step, or a constant",
                    ));
                }
                if let Some(v) = v.iter().find(|v| !v.is_finite()) {
                    let message = format!("control `{name}` is {v}");
                    return Err(source.error(&path, message, "expected finite numbers"));
                }
                columns[i] = v.to_vec();
            }
        }
        ControlsSpec::File(file) => {
            let path = source.path().parent().unwrap_or(Path::new("")).join(file);
            columns = read_controls(&path, m, own.steps)
                .map_err(|(message, help)| source.error(&["guess", "controls"], message, help))?;
        }
    }
    let mut u = Vec::with_capacity(grid.steps * nu);
    for k in 0..grid.steps {
        let knot = own.knot_at(k, grid);
        u.extend(columns.iter().map(|c| match c.as_slice() {
            [] => 0.0,
            [constant] => *constant,
            values => values[knot],
        }));
    }
    if let Some(noise) = spec.guess.noise {
        if !noise.scale.is_finite() {
            let message = format!("scale of the noise is {}", noise.scale);
            return Err(source.error(
                &["guess", "noise", "scale"],
                message,
                "expected a finite number",
            ));
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.unwrap_or(noise.seed));
        for u in &mut u {
            let v: f64 = StandardNormal.sample(&mut random);
            *u += noise.scale * v;
        }
    }
    Ok(u)
}

/// A column's name without its unit: `push` of `push [N]`.
pub(super) fn bare(header: &str) -> String {
    let name = header.rsplit_once(" [").filter(|(_, u)| u.ends_with(']'));
    name.map_or(header, |(n, _)| n).trim().to_owned()
}

/// Columns of the controls from a CSV file as we write it. Errors are messages and remedies.
fn read_controls(
    path: &Path,
    m: &Mechanism,
    steps: usize,
) -> Result<Vec<Vec<f64>>, (String, String)> {
    let shown = path.display();
    let fail = |e: csv::Error| {
        (
            format!("cannot read `{shown}`: {e}"),
            "give the path of a CSV file, relative to this one".to_owned(),
        )
    };
    let mut reader = csv::Reader::from_path(path).map_err(fail)?;
    let header = reader.headers().map_err(fail)?.clone();
    let names: Vec<String> = header.iter().map(bare).collect();
    let mut places = vec![];
    for (written, a) in super::output::control_names(m).iter().zip(&m.actuators) {
        let at = |name: &str| names.iter().position(|n| n == name);
        places.push(at(written).or_else(|| at(&a.name)).ok_or_else(|| {
            let help = nearest(&a.name, names.iter().map(String::as_str));
            (
                format!("`{shown}` has no column for the control `{}`", a.name),
                help,
            )
        })?);
    }
    let mut columns = vec![vec![]; places.len()];
    let mut rows = 0;
    for record in reader.records() {
        let record = record.map_err(fail)?;
        rows += 1;
        // no control acts at the last knot
        if rows > steps {
            continue;
        }
        for ((column, place), a) in columns.iter_mut().zip(&places).zip(&m.actuators) {
            let text = record.get(*place).unwrap_or_default().trim();
            column.push(
                text.parse::<f64>()
                    .ok()
                    .filter(|v| v.is_finite())
                    .ok_or_else(|| {
                        let message = format!(
                            "`{shown}`, line {}: control `{}` is `{text}`",
                            rows + 1,
                            a.name
                        );
                        (message, "expected a finite number".to_owned())
                    })?,
            );
        }
    }
    if rows != steps && rows != steps + 1 {
        return Err((
            format!("`{shown}` has {rows} rows, the horizon has {steps} time steps"),
            "give one row for each time step; one more for the end may follow".into(),
        ));
    }
    Ok(columns)
}
