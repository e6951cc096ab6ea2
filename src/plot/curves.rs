//! From channels and the convergence history to panels of curves.

use super::Figure;
use super::axis::drawable;
use super::contacts;
use super::panel::{Curve, Ink, Panel, Stack, decimate};
use crate::format::recording::{Channel, Group, Iteration, Recording};

/// The panels of a figure of curves; `None` when there is nothing to draw, or for [`Figure::Motion`].
pub(super) fn stack(recording: &Recording, figure: Figure) -> Option<Stack> {
    match figure {
        Figure::Motion => None,
        Figure::Convergence => convergence(&recording.convergence),
        Figure::Contacts => {
            let mut stack = Stack::new(contacts::panels(recording), "time [s]", false)?;
            if stack.panels.len() > 1 {
                stack.notes.push(contacts::NOTE.to_owned());
            }
            Some(stack)
        }
        _ => Stack::new(panels(recording, figure), "time [s]", false),
    }
}

/// The panels of a figure over time, one per unit, in order of first appearance.
pub(super) fn panels(recording: &Recording, figure: Figure) -> Vec<Panel> {
    let is_error = |c: &Channel| {
        matches!(c.group, Group::Energy | Group::Other) && c.name.to_lowercase().contains("error")
    };
    let chosen = |c: &&Channel| match figure {
        Figure::Coordinates => c.group == Group::Coordinate,
        Figure::Rates => c.group == Group::Rate,
        Figure::Controls => c.group == Group::Control,
        Figure::ConstraintForces => c.group == Group::ConstraintForce,
        Figure::Energy => c.group == Group::Energy || is_error(c),
        Figure::Contacts | Figure::Convergence | Figure::Motion => false,
    };
    let mut panels: Vec<(bool, String, Panel)> = Vec::new();
    for (index, channel) in recording.channels.iter().filter(chosen).enumerate() {
        let (error, unit) = (is_error(channel), channel.unit.trim());
        let curve = curve(&recording.time, channel, Ink::nth(index));
        match panels.iter_mut().find(|(e, u, _)| *e == error && u == unit) {
            Some((_, _, panel)) => panel.curves.push(curve),
            None => {
                let name = if error {
                    "energy error"
                } else {
                    quantity(channel.group, unit)
                };
                let label = if unit.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name} [{unit}]")
                };
                let angle = unit == "rad" && channel.group == Group::Coordinate;
                let panel = Panel {
                    label,
                    curves: vec![curve],
                    log: false,
                    angle,
                    symmetric: error,
                    ..Panel::default()
                };
                panels.push((error, unit.to_owned(), panel));
            }
        }
    }
    // Errors go below what they are errors of.
    panels.sort_by_key(|(error, ..)| *error);
    panels.into_iter().map(|(_, _, panel)| panel).collect()
}

fn quantity(group: Group, unit: &str) -> &'static str {
    match (group, unit) {
        (Group::Coordinate, "rad") => "angle",
        (Group::Coordinate, "m") => "position",
        (Group::Coordinate, _) => "coordinate",
        (Group::Rate, "rad/s") => "angular rate",
        (Group::Rate, "m/s") => "velocity",
        (Group::Rate, _) => "rate",
        (Group::Energy, _) => "energy",
        (_, "N") => "force",
        (Group::Control, "N m" | "N·m" | "Nm") => "torque",
        (_, "N m" | "N·m" | "Nm") => "moment",
        (Group::Control, _) => "control",
        _ => "value",
    }
}

fn curve(time: &[f64], channel: &Channel, ink: Ink) -> Curve {
    let knots = time.iter().zip(&channel.values);
    let points = match channel.group {
        Group::Control => steps(time, &channel.values),
        _ => knots.map(|(t, v)| v.map(|v| (*t, v))).collect(),
    };
    let bounds = [channel.lower, channel.upper].map(|b| b.and_then(drawable));
    Curve {
        name: channel.name.clone(),
        ink,
        points: decimate(points),
        bounds,
        dots: false,
    }
}

/// A control holds from its knot to the next.
fn steps(time: &[f64], values: &[Option<f64>]) -> Vec<Option<(f64, f64)>> {
    let mut points = Vec::with_capacity(2 * values.len());
    for (k, (from, value)) in time.iter().zip(values).enumerate() {
        match (value, time.get(k + 1)) {
            (Some(v), Some(to)) => points.extend([Some((*from, *v)), Some((*to, *v))]),
            (Some(v), None) => points.push(Some((*from, *v))),
            (None, _) => points.push(None),
        }
    }
    points
}

/// Zeros are drawn here on a logarithmic axis: below any rounding error.
const FLOOR: f64 = 1e-16;

fn convergence(history: &[Iteration]) -> Option<Stack> {
    let column = |value: fn(&Iteration) -> f64| -> Vec<(f64, f64)> {
        history
            .iter()
            .filter_map(|i| Some((i.iteration as f64, drawable(value(i))?)))
            .collect()
    };
    let few = history.len() <= 60;
    let curve = |name: &str, index: usize, points: Vec<Option<(f64, f64)>>| Curve {
        name: name.to_owned(),
        ink: Ink::nth(index),
        points: decimate(points),
        bounds: [None, None],
        dots: few,
    };
    let logs = |points: Vec<(f64, f64)>| -> Vec<Option<(f64, f64)>> {
        points
            .into_iter()
            .map(|(i, v)| (v >= 0.0).then(|| (i, v.max(FLOOR).log10())))
            .collect()
    };
    let panel = |label: &str, log: bool, curves: Vec<Curve>| Panel {
        label: label.to_owned(),
        curves,
        log,
        ..Panel::default()
    };
    let objective = column(|i| i.objective);
    let (least, most) = super::axis::extent(objective.iter().map(|p| p.1)).unwrap_or((0.0, 0.0));
    let log = least > FLOOR && most > 100.0 * least;
    let points = if log {
        logs(objective)
    } else {
        objective.into_iter().map(Some).collect()
    };
    let residuals = vec![
        curve("violation", 1, logs(column(|i| i.violation))),
        curve("optimality", 2, logs(column(|i| i.optimality))),
    ];
    let panels = vec![
        panel("objective", log, vec![curve("objective", 0, points)]),
        panel("residual", true, residuals),
    ];
    Stack::new(panels, "iteration", true)
}
