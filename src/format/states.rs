//! `[guess] states`: joint coordinates at times, and the states of a trajectory through them.
//!
//! Coordinates are interpolated linearly between the times given, from those of the start at 0; after the last time they
//! stay. The velocities of an interval are those that lead from its first configuration to its last,
//!
//! ```text
//! v = (x_k - x_(k-1)) / h        [m/s]
//! w = (2/h) vec(q_(k-1)^-1 q_k)  [rad/s]
//! ```
//!
//! so that the states agree with each other in position, whatever the controls. Where loops close, the coordinates that
//! were not given follow.

use super::grid::Grid;
use super::problem::{StateSpec, StatesSpec};
use super::source::{FormatError, Source, nearest, short};
use super::table::{Complaint, Table};
use crate::integrator::{Mechanical, System};
use crate::mechanism::Mechanism;
use crate::spatial::Pose;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};
use std::path::Path;

/// One coordinate of the tree over time: ascending times in s, values in m or rad.
type Curve = Vec<(f64, f64)>;

/// What is wrong.
struct Fault {
    /// Within `[guess] states`.
    place: Vec<String>,
    /// The name at the place, not its value.
    is_name: bool,
    message: String,
    help: String,
}

impl From<(String, String)> for Fault {
    fn from((message, help): (String, String)) -> Self {
        Self {
            place: vec![],
            is_name: false,
            message,
            help,
        }
    }
}

/// The states of every knot of `grid`, one behind the other, from the coordinates `q` and the state `x0` of the start.
/// `horizon` is the file's own, s.
///
/// # Errors
/// When joints, times or numbers mean nothing, loops do not close, or something turns too far within a step.
pub(super) fn states(
    source: &Source,
    spec: &StatesSpec,
    system: &System,
    (q, x0): (&[f64], &[f64]),
    (horizon, grid): (f64, &Grid),
) -> Result<Vec<f64>, FormatError> {
    let m = system.mechanism();
    let curves = match spec {
        StatesSpec::List(list) => listed(m, list, q, horizon),
        StatesSpec::File(file) => {
            let path = source.path().parent().unwrap_or(Path::new("")).join(file);
            recorded(m, &path).map_err(Fault::from)
        }
    };
    let error = |f: Fault| {
        let path = ["guess", "states"].map(str::to_owned).into_iter();
        let path: Vec<String> = path.chain(f.place).collect();
        if f.is_name {
            source.name_error(&path, f.message, f.help)
        } else {
            source.error(&path, f.message, f.help)
        }
    };
    let curves = curves.map_err(error)?;
    // of a list what was given stays; all of a recording closes its loops by itself, up to interpolation
    let held: Vec<bool> = match spec {
        StatesSpec::List(_) => curves.iter().map(|c| c.len() > 1).collect(),
        StatesSpec::File(_) => vec![false; curves.len()],
    };
    let (mut out, mut q, mut x) = (x0.to_vec(), q.to_vec(), x0.to_vec());
    let times = grid.times();
    for (k, h) in (1..).zip(&grid.intervals) {
        let t = times[k];
        let earlier = q.clone();
        for (q, curve) in q.iter_mut().zip(&curves).filter(|(_, c)| c.len() > 1) {
            *q = at(curve, t);
        }
        let poses = m.close_held(&mut q, &held).map_err(|e| {
            let message = format!(
                "the states guessed are out of reach at {} s: {}",
                short(t),
                e.message
            );
            error(
                (
                    message,
                    "give fewer joints, the others follow; or times and coordinates within reach"
                        .into(),
                )
                    .into(),
            )
        })?;
        if let Some(name) = turned(m, (&earlier, &q), (&system.poses(&x), &poses)) {
            let message = format!(
                "the states guessed turn {name} by more than pi/2 within the time step that ends at {} s",
                short(t)
            );
            let help = "give the turn more time, or take a smaller time step".to_owned();
            return Err(error((message, help).into()));
        }
        x = system.state_after(&x, &poses, &q, *h);
        out.extend_from_slice(&x);
    }
    Ok(out)
}

/// What turns farther within a step than its discrete momentum allows.
fn turned(m: &Mechanism, q: (&[f64], &[f64]), poses: (&[Pose], &[Pose])) -> Option<String> {
    let ids = m.tree_ids();
    let far = |i: &usize| {
        let (j, d) = ids[*i];
        let turns = m.joints[j].directions[d].freedom.turns();
        turns && (q.1[*i] - q.0[*i]).abs() >= FRAC_PI_2
    };
    let joint = (0..ids.len()).find(far);
    let joint = joint.map(|i| format!("`{}`", m.coordinate_name(ids[i])));
    let mut bodies = poses.0.iter().zip(poses.1);
    let body = || {
        let far = bodies.position(|(a, b)| (a.q.conjugate() * b.q).w.abs() <= FRAC_1_SQRT_2);
        far.map(|b| format!("body `{}`", m.bodies[b].name))
    };
    joint.or_else(body)
}

/// A curve's value.
fn at(curve: &Curve, t: f64) -> f64 {
    let next = curve.partition_point(|(time, _)| *time <= t);
    match (next.checked_sub(1).map(|i| curve[i]), curve.get(next)) {
        (Some((t0, v0)), Some((t1, v1))) => v0 + (v1 - v0) * (t - t0) / (t1 - t0),
        (Some((_, v)), None) => v,
        (None, first) => first.map_or(0.0, |(_, v)| *v),
    }
}

/// Curves of a list of times with joints, from the start's coordinates on.
fn listed(m: &Mechanism, list: &[StateSpec], q: &[f64], horizon: f64) -> Result<Vec<Curve>, Fault> {
    let mut curves: Vec<Curve> = q.iter().map(|q| vec![(0.0, *q)]).collect();
    let ids = m.tree_ids();
    let mut last = 0.0;
    for (n, state) in list.iter().enumerate() {
        let fault = |place: &[&str], message: String, help: String| {
            let place = place.iter().map(|p| (*p).to_owned());
            Fault {
                place: std::iter::once(n.to_string()).chain(place).collect(),
                is_name: false,
                message,
                help,
            }
        };
        let t = state.time;
        // nor is what is not a number
        if !(t > last && t <= horizon * (1.0 + 1e-9)) {
            return Err(fault(
                &["time"],
                format!("the time of guessed state {} is {t} s", n + 1),
                format!(
                    "expected ascending times after 0, where [initial] holds, and up to the horizon of {horizon} s: here after {last} s"
                ),
            ));
        }
        last = t;
        for (name, numbers) in &state.joints {
            let place = ["joints", name.as_str()];
            let Some(index) = m.joint(name) else {
                let names = m.joints.iter().map(|j| j.name.as_str());
                let message = format!("unknown joint or free body `{name}`");
                return Err(Fault {
                    is_name: true,
                    ..fault(&place, message, nearest(name, names))
                });
            };
            let (values, n) = (numbers.as_slice(), m.joints[index].directions.len());
            let first = ids.iter().position(|id| *id == (index, 0));
            let Some(first) = first else {
                let (message, help) = if n == 0 {
                    (format!("joint `{name}` does not move"), "leave it out")
                } else {
                    let message = format!("joint `{name}` closes a loop: its coordinates follow");
                    (message, "give those of the other joints")
                };
                return Err(fault(&place, message, help.into()));
            };
            if values.len() != n {
                let names: Vec<_> = (0..n).map(|i| m.coordinate_name((index, i))).collect();
                return Err(fault(
                    &place,
                    format!("`{name}` has {} numbers, expected {n}", values.len()),
                    format!("give one number for each of: {}", names.join(", ")),
                ));
            }
            if let Some(v) = values.iter().find(|v| !v.is_finite()) {
                let message = format!("a coordinate of `{name}` is {v}");
                return Err(fault(&place, message, "expected finite numbers".into()));
            }
            for (curve, v) in curves[first..first + n].iter_mut().zip(values) {
                curve.push((t, *v));
            }
        }
    }
    Ok(curves)
}

/// Curves of a trajectory's CSV file. Errors are messages and remedies.
fn recorded(m: &Mechanism, path: &Path) -> Result<Vec<Curve>, Complaint> {
    let table = Table::read(path)?;
    let times = table.times()?;
    if times.len() < 2 {
        return Err((
            format!("`{}` has {} rows", path.display(), times.len()),
            "expected one for each of at least two times".into(),
        ));
    }
    let mut curves = vec![];
    for id in m.tree_ids() {
        let column = table.column(&m.coordinate_name(id))?;
        let values = (0..table.len()).map(|row| table.number(row, column));
        let values = values.collect::<Result<Vec<f64>, _>>()?;
        curves.push(times.iter().copied().zip(values).collect());
    }
    Ok(curves)
}
