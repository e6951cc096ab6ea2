//! Knots: time steps, horizon, phases.

use super::Overrides;
use super::problem::{PhaseSpec, ProblemSpec};
use super::source::{FormatError, Source, short};
use crate::integrator::Controls;

/// More time steps than this are a mistake.
const MOST_STEPS: f64 = 1e7;

/// A part of the horizon.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phase {
    pub name: String,
    /// First and last knot.
    pub first: usize,
    pub end: usize,
    /// s, as given
    pub duration: f64,
    /// Of the duration, s, where it is to be found.
    pub bounds: Option<(f64, f64)>,
}

/// The knots.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// s
    pub step: f64,
    /// s
    pub intervals: Vec<f64>,
    /// One after the other; none where the horizon is one and given.
    pub phases: Vec<Phase>,
}

/// The knots that controls are given at, those that they are wanted at, and how they act between them.
#[derive(Clone, Copy)]
pub(super) struct Played<'a> {
    /// Of the file.
    pub own: &'a Grid,
    /// With what the command line says of step and horizon.
    pub grid: &'a Grid,
    pub how: Controls,
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
        if !spec.phases.is_empty() {
            return Self::of_phases(source, spec, over);
        }
        let Some(horizon) = over.duration.or(spec.horizon) else {
            return Err(source.error::<&str>(
                &[],
                "missing field `horizon` at the top level",
                "give horizon = .. (s), or [[phases]]",
            ));
        };
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
                    "the nearest horizons are {} s and {} s",
                    short(below * step),
                    short(above.max(below + 1.0) * step)
                ),
            ));
        }
        let steps = steps as usize;
        let free = spec.horizon_bounds.map(|b| {
            let bounds = durations(source, &["horizon_bounds"], b, horizon)?;
            Ok(Phase {
                name: "horizon".into(),
                first: 0,
                end: steps,
                duration: horizon,
                bounds: Some(bounds),
            })
        });
        Ok(Self {
            step,
            intervals: vec![step; steps],
            phases: free.transpose()?.into_iter().collect(),
        })
    }

    /// Phases one after the other.
    fn of_phases(
        source: &Source,
        spec: &ProblemSpec,
        over: &Overrides,
    ) -> Result<Self, FormatError> {
        if over.time_step.is_some() || over.duration.is_some() {
            return Err(FormatError::of_file(
                source.path(),
                "on the command line: the problem has phases with durations of their own",
                "change them in [[phases]]",
            ));
        }
        for (field, is_there) in [
            ("horizon", spec.horizon.is_some()),
            ("horizon_bounds", spec.horizon_bounds.is_some()),
        ] {
            if is_there {
                return Err(source.error(
                    &[field],
                    format!("{field} stands beside phases"),
                    "leave it out: the phases' durations make the horizon; `bounds` of a phase free it",
                ));
            }
        }
        let step = spec.time_step;
        if !(step > 0.0 && step.is_finite()) {
            let message = format!("time_step is {step} s");
            return Err(source.error(&["time_step"], message, "expected a positive number"));
        }
        let (mut intervals, mut phases) = (vec![], vec![]);
        for (i, p) in spec.phases.iter().enumerate() {
            let place = i.to_string();
            let err = |field: &str, message: String, help: &str| {
                source.error(&["phases", &place, field], message, help)
            };
            let PhaseSpec {
                name,
                duration,
                steps,
                bounds,
            } = p;
            if phases.iter().any(|p: &Phase| p.name == *name) || name == "horizon" {
                let message = format!("a phase is called `{name}`, as something else is");
                return Err(err("name", message, "give each phase a name of its own"));
            }
            if !(*duration > 0.0 && duration.is_finite()) {
                let message = format!("duration of phase `{name}` is {duration} s");
                return Err(err("duration", message, "expected a positive number"));
            }
            let count = match steps {
                Some(n) => *n,
                None => (duration / step).round().min(MOST_STEPS) as usize,
            };
            let is_whole = (count as f64 * step - duration).abs() <= 1e-9 * duration;
            if count == 0 || (steps.is_none() && !is_whole) {
                let message = format!(
                    "phase `{name}` lasts {duration} s, which is no whole number of time steps of {step} s"
                );
                return Err(err(
                    "duration",
                    message,
                    "give `steps`, or another duration",
                ));
            }
            let first = intervals.len();
            if first as f64 + count as f64 > MOST_STEPS {
                let message = format!("phase `{name}` has {count} time steps");
                return Err(err("steps", message, "expected at most 10 million in all"));
            }
            intervals.resize(first + count, duration / count as f64);
            let place = ["phases", place.as_str(), "bounds"];
            let bounds = bounds.map(|b| durations(source, &place, b, *duration));
            phases.push(Phase {
                name: name.clone(),
                first,
                end: intervals.len(),
                duration: *duration,
                bounds: bounds.transpose()?,
            });
        }
        Ok(Self {
            step,
            intervals,
            phases,
        })
    }

    /// s
    pub fn horizon(&self) -> f64 {
        self.times().pop().unwrap_or(0.0)
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.intervals.len()
    }

    /// Times of the knots, s.
    pub fn times(&self) -> Vec<f64> {
        let uniform = self.intervals.iter().all(|h| *h == self.step);
        let mut t = 0.0;
        let ends = self.intervals.iter().enumerate().map(|(k, h)| {
            t = if uniform {
                (k + 1) as f64 * self.step
            } else {
                t + h
            };
            t
        });
        std::iter::once(0.0).chain(ends).collect()
    }
}

/// Bounds of a duration, which it keeps at the start.
fn durations(
    source: &Source,
    place: &[&str],
    [lower, upper]: [f64; 2],
    value: f64,
) -> Result<(f64, f64), FormatError> {
    let is_range = lower > 0.0 && lower <= value && value <= upper && upper.is_finite();
    if is_range {
        return Ok((lower, upper));
    }
    Err(source.error(
        place,
        format!("a duration between {lower} s and {upper} s, which starts at {value} s"),
        "expected positive numbers, the smaller first, with the start between them",
    ))
}
