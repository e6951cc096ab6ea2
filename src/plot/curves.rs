//! From channels and the convergence history to panels of curves.

use super::Figure;
use super::axis::drawable;
use super::contacts;
use super::goal::Mark;
use super::noise::Sizes;
use super::panel::{Curve, Ink, Panel, Stack, decimate};
use super::rotation;
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
        _ => over_time(panels(recording, figure)),
    }
}

/// Names that are told of panels that are not drawn.
const TOLD: usize = 12;

/// A stack of what there is to see; panels of nothing but rounding are named below, unless there are no others.
pub(super) fn over_time(panels: Vec<Panel>) -> Option<Stack> {
    let (quiet, mut shown): (Vec<_>, Vec<_>) = panels.into_iter().partition(|p| p.quiet);
    let mut notes = vec![];
    if shown.is_empty() {
        shown = quiet;
        let curves = shown.iter_mut().flat_map(|p| &mut p.curves);
        let points = curves.flat_map(|c| c.points.iter_mut().flatten());
        points.for_each(|p| p.1 = 0.0);
    } else if !quiet.is_empty() {
        let names: Vec<_> = quiet
            .iter()
            .flat_map(|p| p.curves.iter().map(|c| c.name.as_str()))
            .collect();
        let more = match names.len().saturating_sub(TOLD) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let told = names[..names.len().min(TOLD)].join(", ");
        notes.push(format!("Not drawn, zero up to rounding: {told}{more}."));
    }
    if (shown.iter().flat_map(|p| &p.curves)).any(|c| c.name.ends_with(NOT_UNIQUE)) {
        notes
            .push("* One of many: redundant constraints share these forces in any way.".to_owned());
    }
    let mut stack = Stack::new(shown, "time [s]", false)?;
    stack.notes = notes;
    Some(stack)
}

/// Ends names of forces that are not unique.
const NOT_UNIQUE: &str = " *";

/// The panels of a figure over time, one per unit, in order of first appearance.
pub(super) fn panels(recording: &Recording, figure: Figure) -> Vec<Panel> {
    let is_error = |c: &Channel| {
        matches!(c.group, Group::Energy | Group::Other) && c.name.to_lowercase().contains("error")
    };
    let chosen = |c: &&Channel| match figure {
        Figure::Coordinates => c.group == Group::Coordinate,
        Figure::Rates => c.group == Group::Rate,
        Figure::Controls => c.group == Group::Control,
        Figure::ConstraintForces => {
            matches!(
                c.group,
                Group::ConstraintForce | Group::LimitForce | Group::JointFriction
            )
        }
        Figure::Energy => c.group == Group::Energy || is_error(c),
        Figure::Contacts | Figure::Convergence | Figure::Motion => false,
    };
    let chosen: Vec<&Channel> = recording.channels.iter().filter(chosen).collect();
    let sizes = Sizes::new(recording);
    let mut panels: Vec<(bool, Group, String, Panel)> = Vec::new();
    for (index, channel) in rotation::readable(&chosen).iter().enumerate() {
        let (error, group, unit) = (is_error(channel), channel.group, channel.unit.trim());
        let known = |p: &&mut (bool, Group, String, Panel)| {
            (p.0, p.1, p.2.as_str()) == (error, group, unit)
        };
        let panel = panels.iter_mut().find(known).map(|p| &mut p.3);
        // each panel has its legend; an error keeps clear of what it is an error of
        let place = match (error, &panel) {
            (true, _) => index,
            (false, Some(panel)) => panel.curves.len(),
            (false, None) => 0,
        };
        let curve = curve(&recording.time, channel, Ink::nth(place));
        let rounding = match error {
            // what others round to is what it shows
            true => 0.0,
            false => sizes.rounding(group, unit),
        };
        let values = channel.values.iter().filter_map(|v| v.and_then(drawable));
        let wanted = channel.goals.iter().map(|g| g.value);
        let quiet = values.chain(wanted).all(|v| v.abs() <= rounding);
        if let Some(panel) = panel {
            panel.curves.push(curve);
            panel.quiet &= quiet;
            continue;
        }
        let name = match error {
            true => "energy error",
            false => quantity(group, unit),
        };
        let label = match unit {
            "" => name.to_owned(),
            unit => format!("{name} [{unit}]"),
        };
        let panel = Panel {
            label,
            curves: vec![curve],
            angle: unit == "rad" && group == Group::Coordinate,
            symmetric: error,
            bound_name: (group == Group::Coordinate).then_some("limits"),
            quiet,
            ..Panel::default()
        };
        panels.push((error, group, unit.to_owned(), panel));
    }
    // Errors go below what they are errors of.
    panels.sort_by_key(|(error, ..)| *error);
    panels.into_iter().map(|(.., panel)| panel).collect()
}

fn quantity(group: Group, unit: &str) -> &'static str {
    match (group, unit) {
        (Group::Coordinate, "rad") => "angle",
        (Group::Coordinate, "m") => "position",
        (Group::Coordinate, "") => "quaternion",
        (Group::Coordinate, _) => "coordinate",
        (Group::Rate, "rad/s") => "angular rate",
        (Group::Rate, "m/s") => "velocity",
        (Group::Rate, _) => "rate",
        (Group::Energy, _) => "energy",
        (Group::LimitForce, "N") => "limit force",
        (Group::LimitForce, _) => "limit torque",
        (Group::JointFriction, _) => "joint friction",
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
        Group::Control if channel.interval.is_some() => steps(time, &channel.values),
        Group::Control => straight(time, &channel.values),
        _ => knots.map(|(t, v)| v.map(|v| (*t, v))).collect(),
    };
    let bounds = [channel.lower, channel.upper].map(|b| b.and_then(drawable));
    let mark = match channel.not_unique {
        true => NOT_UNIQUE,
        false => "",
    };
    Curve {
        name: channel.name.clone() + mark,
        ink,
        points: decimate(points),
        bounds,
        goals: (channel.goals.iter())
            .filter_map(|g| Mark::new(g, time))
            .collect(),
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

/// A control is linear between knots, and constant over the last interval.
fn straight(time: &[f64], values: &[Option<f64>]) -> Vec<Option<(f64, f64)>> {
    let known = values.iter().rposition(Option::is_some);
    let last = known.and_then(|k| values[k]);
    let knots = time.iter().zip(values).enumerate();
    knots
        .map(|(k, (t, v))| {
            let constant = known.is_some_and(|known| k == known + 1);
            let value = if constant { last } else { *v };
            value.map(|v| (*t, v))
        })
        .collect()
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
        goals: vec![],
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
    let mut residuals = vec![
        curve("violation", 1, logs(column(|i| i.violation))),
        curve("optimality", 2, logs(column(|i| i.optimality))),
    ];
    if history.iter().any(|i| i.complementarity.is_some()) {
        let own = column(|i| i.complementarity.unwrap_or(f64::NAN));
        residuals.push(curve("complementarity", 3, logs(own)));
    }
    let panels = vec![
        panel("objective", log, vec![curve("objective", 0, points)]),
        panel("residual", true, residuals),
    ];
    Stack::new(panels, "iteration", true)
}
