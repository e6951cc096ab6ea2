//! The guess of a problem's controls.

use super::grid::{Grid, Played};
use super::initial::Start;
use super::problem::{ControlsSpec, InitialSpec, InitialTable, Numbers, ProblemSpec, StaticSpec};
use super::signal;
use super::source::{FormatError, Source, nearest};
use super::table::{Complaint, Table};
use crate::integrator::{Controls, Mechanical, System};
use crate::mechanism::{Mechanism, ModelError};
use indexmap::IndexMap;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;
use std::path::Path;

/// Controls as they are described in a table of the file, `nu` a knot of the grid that they are wanted on. Lists are values at the knots
/// of the file's own grid, those of a trajectory go by its times.
pub(super) fn controls(
    source: &Source,
    m: &Mechanism,
    (spec, of): (&ControlsSpec, &str),
    Played { own, grid, how }: Played,
) -> Result<Vec<f64>, FormatError> {
    let nu = m.actuators.len();
    let mut given = vec![Given::constant(0.0); nu];
    match spec {
        ControlsSpec::Table(table) => {
            let names = || m.actuators.iter().map(|a| a.name.as_str());
            let places: HashMap<&str, usize> = names().zip(0..).collect();
            for (name, values) in table {
                let path = [of, "controls", name];
                let i = places.get(name.as_str()).copied().ok_or_else(|| {
                    source.name_error(
                        &path,
                        format!("unknown control `{name}`"),
                        nearest(name, names()),
                    )
                })?;
                let v = values.as_slice();
                if matches!(values, super::problem::Numbers::List(_)) && v.len() != own.steps() {
                    let message = format!(
                        "control `{name}` has {} numbers, the horizon has {} time steps",
                        v.len(),
                        own.steps()
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
                given[i] = match v {
                    [constant] => Given::constant(*constant),
                    values => Given(
                        own.times()
                            .into_iter()
                            .zip(values.iter().copied())
                            .collect(),
                    ),
                };
            }
        }
        ControlsSpec::File(file) => {
            let path = source.path().parent().unwrap_or(Path::new("")).join(file);
            given = read_controls(&path, m, own)
                .map_err(|(message, help)| source.error(&[of, "controls"], message, help))?;
        }
    }
    let mut u = Vec::with_capacity(grid.steps() * nu);
    for (from, h) in grid.times().into_iter().zip(&grid.intervals) {
        u.extend(given.iter().map(|c| match how {
            Controls::Held => c.mean(from, *h),
            Controls::Linear => c.at(from, *h),
        }));
    }
    Ok(u)
}

/// Controls to start from, `nu` a knot.
pub(super) fn guess(
    source: &Source,
    m: &Mechanism,
    spec: &ProblemSpec,
    played: Played,
    seed: Option<u64>,
) -> Result<Vec<f64>, FormatError> {
    let mut u = controls(source, m, (&spec.guess.controls, "guess"), played)?;
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

/// The controls that hold the pose that the guess names.
pub(super) fn held(
    source: &Source,
    system: &System,
    spec: &ProblemSpec,
    (x0, known): (&[f64], Vec<(String, f64)>),
) -> Result<Option<Vec<f64>>, FormatError> {
    let place = ["guess", "static"];
    let found = match &spec.guess.hold {
        None | Some(StaticSpec::Start(false)) => return Ok(None),
        _ if spec.policy.as_ref().is_some_and(|p| !p.feed_forward) => {
            let message = "a guess of controls, and the policy decides them";
            let help = "leave static out, or take feed_forward = true";
            return Err(source.error(&place, message, help));
        }
        Some(StaticSpec::Start(true)) => system.holding_controls(x0),
        Some(StaticSpec::Other(other)) => {
            let x = posed(source, system, spec, (&other.pose, known))?;
            system.holding_controls(&x)
        }
    };
    found.map(Some).map_err(|e| {
        let help = "give another pose, wider bounds, more friction; contacts hold what is nearer than 0.1 mm";
        source.error(&place, e.to_string(), help)
    })
}

/// The state at rest at the start's pose, but for these coordinates.
fn posed(
    source: &Source,
    system: &System,
    spec: &ProblemSpec,
    (pose, known): (&IndexMap<String, Numbers>, Vec<(String, f64)>),
) -> Result<Vec<f64>, FormatError> {
    let m = system.mechanism();
    let place = ["guess", "static", "pose"];
    let mut initial = spec.initial.clone();
    for (name, numbers) in pose {
        if m.joint(name).is_none() {
            let names = m.joints.iter().map(|j| j.name.as_str());
            let message = format!("unknown joint or free body `{name}`");
            let path = ["guess", "static", "pose", name];
            return Err(source.name_error(&path, message, nearest(name, names)));
        }
        let table = InitialTable {
            coordinate: Some(numbers.clone().into()),
            ..InitialTable::default()
        };
        let there = InitialSpec::Table(Box::new(table));
        initial.insert(name.clone(), there);
    }
    let here = |e: FormatError| source.error(&place, e.message(), e.help());
    let mut start = Start::new(m, source, &initial).map_err(here)?;
    let of_model = |e: &ModelError| source.error(&place, e.message.clone(), e.help.clone());
    start.tie(m, source, known).map_err(here)?;
    start.close(m, source, of_model).map_err(here)?;
    start.rates.fill(0.0);
    let x = system.start(&start.q, &start.rates, &start.held);
    let x = x.map_err(|e| of_model(&e))?;
    start.within(system, source, &x).map_err(here)?;
    Start::apart(system, source, &x).map_err(here)?;
    Ok(x)
}

/// Part of a step by which times may differ and still be the same.
const SAME_TIME: f64 = 1e-9;

/// A control as it is given: times, s, ascending, and values, N or N m; the last one holds from then on.
#[derive(Clone)]
struct Given(Vec<(f64, f64)>);

impl Given {
    fn constant(value: f64) -> Self {
        Self(vec![(0.0, value)])
    }

    /// The last of its times that is not after this one, else the first.
    fn row(&self, t: f64) -> usize {
        self.0.partition_point(|own| own.0 <= t).max(1) - 1
    }

    /// Its value for the knot of a step, if it is linear between its times; the very value where one of them is the knot's.
    fn at(&self, knot: f64, step: f64) -> f64 {
        let rounding = SAME_TIME * step;
        let (time, value) = self.0[self.row(knot + rounding)];
        if (time - knot).abs() <= rounding {
            return value;
        }
        signal::interpolated(&self.0, knot)
    }

    /// Its mean over a step from a knot on, if it is held from each of its times to the next, so that a longer step gets the same
    /// impulse; the very value where it does not change.
    fn mean(&self, knot: f64, step: f64) -> f64 {
        let (rounding, end) = (SAME_TIME * step, knot + step);
        let (first, last) = (self.row(knot + rounding), self.row(end - rounding));
        if first == last {
            return self.0[first].1;
        }
        let part = |i: usize| {
            let from = if i == first { knot } else { self.0[i].0 };
            let to = if i == last { end } else { self.0[i + 1].0 };
            self.0[i].1 * (to - from)
        };
        (first..=last).map(part).sum::<f64>() / step
    }
}

/// The controls of a CSV file as we write it, over its times; without a column of times, one row a step of `own`.
/// Errors are messages and remedies.
fn read_controls(path: &Path, m: &Mechanism, own: &Grid) -> Result<Vec<Given>, Complaint> {
    let table = Table::read(path)?;
    let shown = path.display();
    let (rows, steps) = (table.len(), own.steps());
    let times = if table.find("time").is_some() {
        table.times()?
    } else if rows == steps || rows == steps + 1 {
        own.times()[..rows].to_vec()
    } else {
        return Err((
            format!("`{shown}` has {rows} rows and no column `time`, the horizon has {steps} time steps"),
            "give a column `time [s]`, or one row for each time step; one more for the end may follow".into(),
        ));
    };
    let mut columns = vec![];
    for (written, a) in super::output::control_names(m).iter().zip(&m.actuators) {
        let column = match table.find(written) {
            Some(column) => column,
            None => table.column(&a.name)?,
        };
        columns.push(column);
    }
    // no control acts at the last knot
    let ends = |row: usize| columns.iter().all(|c| table.is_empty(row, *c));
    let count = if rows > 0 && !columns.is_empty() && ends(rows - 1) {
        rows - 1
    } else {
        rows
    };
    if count == 0 {
        return Err((
            format!("`{shown}` has no row with controls"),
            "expected one for each time step".into(),
        ));
    }
    let given = |column: usize| {
        let values = (0..count).map(|row| Ok((times[row], table.number(row, column)?)));
        Ok(Given(values.collect::<Result<_, Complaint>>()?))
    };
    columns.into_iter().map(given).collect()
}
