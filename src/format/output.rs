//! From a trajectory to a recording.

use super::Model;
use super::goals;
use super::limits;
use super::outline;
use super::recorded;
use super::recording::{Channel, Group, Interval, Pose, Recording};
use super::touches;
use crate::dynamics::{Step, StepError};
use crate::integrator::{Mechanical, System, SystemWork};
use crate::mechanism::{Law, Mechanism, Needs, Reaction};
use crate::optimize::Iteration;
use crate::rollout::{Balance, Trajectory, balance};
use crate::spatial;
use std::collections::HashSet;

/// Everything there is to show of a trajectory of the model: coordinates and their rates, controls, constraint forces,
/// gaps of constraints, what contacts do, energies, poses and line work, of the mechanism with the trajectory's parameters. `status` says how the run ended.
///
/// # Errors
/// When the velocities at a knot cannot be read, or the parameters have no meaning.
pub fn record(
    model: &Model,
    trajectory: &Trajectory,
    status: &str,
    history: &[Iteration],
) -> Result<Recording, StepError> {
    if trajectory.p != model.problem.parameters {
        let found = model.with_parameters(&trajectory.p)?;
        return record(&found, trajectory, status, history);
    }
    let system = &model.system;
    let m = system.mechanism();
    let mut work = system.work();
    let energy = balance(system, trajectory, &mut work)?;
    let knots = trajectory.steps() + 1;
    let poses: Vec<Vec<spatial::Pose>> = (0..knots)
        .map(|k| system.poses(trajectory.state(k)))
        .collect();
    let mut time = Vec::with_capacity(knots);
    let mut t = 0.0;
    for k in 0..knots {
        time.push(t);
        t += trajectory.intervals.get(k).copied().unwrap_or(0.0);
    }
    let mut channels = Channels::default();
    coordinates(&mut channels, system, trajectory, &poses, &energy);
    controls(&mut channels, system, trajectory);
    constraint_forces(&mut channels, system, trajectory, &mut work)?;
    gaps(&mut channels, system, trajectory, &poses);
    let contacts = touches::contacts(&mut channels, system, trajectory, &mut work)?;
    limits::limit_forces(&mut channels, system, trajectory, &mut work)?;
    energies(&mut channels, &energy);
    for (name, unit, values) in recorded::quantities(model, trajectory, &mut work)? {
        // those of contacts and limits are there already
        let known = |c: &Channel| {
            let own = matches!(c.group, Group::Contact | Group::LimitForce);
            own && (&c.name, &c.unit) == (&name, &unit)
        };
        if channels.list.iter().any(known) {
            continue;
        }
        channels.add(name, &unit, Group::Other, values.into_iter());
    }
    not_unique(&mut channels, system);
    goals::mark(&mut channels.list, model, trajectory.steps());
    let travel = |joint: usize| {
        let along = (0..knots).map(|k| system.coordinate(trajectory.state(k), joint, 0));
        along.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), c| {
            (l.min(c), h.max(c))
        })
    };
    let lines = (model.draw.clone()).unwrap_or_else(|| outline::lines(m, travel));
    let pose = |p: &spatial::Pose| Pose {
        position: p.x.into(),
        orientation: [p.q.w, p.q.i, p.q.j, p.q.k],
    };
    Ok(Recording {
        title: model.title.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        status: status.into(),
        time,
        channels: channels.list,
        bodies: m.bodies.iter().map(|b| b.name.clone()).collect(),
        poses: poses.iter().map(|p| p.iter().map(pose).collect()).collect(),
        dots: outline::dots(m, &lines),
        places: goals::places(model, trajectory, &poses),
        links: match model.draw {
            None => outline::links(m),
            Some(_) => vec![],
        },
        lines,
        ground: outline::ground(m, &poses),
        contacts,
        convergence: history.to_vec(),
        parameters: system
            .parameters()
            .into_iter()
            .map(|p| (p.name, p.value))
            .collect(),
        mechanism: serde_json::to_value(&model.mechanism).unwrap_or_default(),
    })
}

/// Channels by unique names.
#[derive(Default)]
pub(super) struct Channels {
    list: Vec<Channel>,
    names: HashSet<String>,
}

impl Channels {
    pub(super) fn add(
        &mut self,
        name: String,
        unit: &str,
        group: Group,
        values: impl Iterator<Item = Option<f64>>,
    ) -> &mut Channel {
        let mut name = name;
        while !self.names.insert(name.clone()) {
            // joints, controls and energies may share a name
            name += match group {
                Group::Control => " control",
                Group::Energy => " energy",
                _ => " again",
            };
        }
        self.list.push(Channel {
            name,
            unit: unit.into(),
            group,
            values: values.map(|v| v.filter(|v| v.is_finite())).collect(),
            interval: None,
            not_unique: false,
            goals: vec![],
            lower: None,
            upper: None,
        });
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
}

/// Names of the controls' channels, as [`record`] writes them.
pub(super) fn control_names(m: &Mechanism) -> Vec<String> {
    let mut channels = Channels::default();
    coordinate_names(m)
        .into_iter()
        .for_each(|(name, unit, group)| {
            channels.add(name, &unit, group, std::iter::empty());
        });
    m.actuators
        .iter()
        .map(|a| {
            channels
                .add(a.name.clone(), "", Group::Control, std::iter::empty())
                .name
                .clone()
        })
        .collect()
}

/// Names, units and groups of coordinates, then of their rates.
fn coordinate_names(m: &Mechanism) -> Vec<(String, String, Group)> {
    let unit = |(j, i): (usize, usize)| m.joints[j].directions[i].unit_name();
    let positions = m.coordinates().map(|id| {
        (
            m.coordinate_name(id),
            unit(id).to_owned(),
            Group::Coordinate,
        )
    });
    let rates = m.coordinates().map(|id| {
        (
            format!("{} rate", m.coordinate_name(id)),
            format!("{}/s", unit(id)),
            Group::Rate,
        )
    });
    positions.chain(rates).collect()
}

fn coordinates(
    channels: &mut Channels,
    system: &System,
    t: &Trajectory,
    poses: &[Vec<spatial::Pose>],
    energy: &Balance,
) {
    let m = system.mechanism();
    let knots = t.steps() + 1;
    let ids: Vec<_> = m.coordinates().collect();
    for ((name, unit, group), (j, i)) in coordinate_names(m).into_iter().zip(ids.iter().chain(&ids))
    {
        let value = |k: usize| match group {
            Group::Coordinate => system.coordinate(t.state(k), *j, *i),
            _ => m.rate(&m.joints[*j], *i, &poses[k], &energy.velocities[k]),
        };
        let channel = channels.add(name, &unit, group, (0..knots).map(|k| Some(value(k))));
        if group == Group::Coordinate {
            let d = &m.joints[*j].directions[*i];
            channel.lower = Some(d.lower).filter(|l| l.is_finite());
            channel.upper = Some(d.upper).filter(|l| l.is_finite());
        }
    }
}

fn controls(channels: &mut Channels, system: &System, t: &Trajectory) {
    for (i, a) in system.mechanism().actuators.iter().enumerate() {
        let values = (0..=t.steps()).map(|k| (k < t.steps()).then(|| t.control(k)[i]));
        let channel = channels.add(
            a.name.clone(),
            system.mechanism().control_unit(i),
            Group::Control,
            values,
        );
        channel.interval = Some(Interval::After);
        channel.lower = a.bounds.map(|b| b.0).filter(|b| b.is_finite());
        channel.upper = a.bounds.map(|b| b.1).filter(|b| b.is_finite());
    }
}

/// Sizes of the force and the moment on each joint's child, from the impulse that acts at the knot.
///
/// # Errors
/// When a knot cannot be read.
fn constraint_forces(
    channels: &mut Channels,
    system: &System,
    t: &Trajectory,
    w: &mut SystemWork,
) -> Result<(), StepError> {
    let m = system.mechanism();
    let joints = || m.joints.iter().enumerate().filter(|(_, j)| j.rows() > 0);
    let mut sizes: Vec<[Vec<Option<f64>>; 2]> = vec![Default::default(); m.joints.len()];
    let needs = Needs {
        reactions: true,
        ..Needs::default()
    };
    let mut at = t.knot(0);
    for _ in 0..=t.steps() {
        let seen = t.knot_point(&at);
        system.evaluate_knot(&seen, needs, w)?;
        let data = system.knot_data(&seen, w);
        for (i, _) in joints() {
            let both = [Reaction::Force, Reaction::Torque].map(|kind| data.reaction(i, kind));
            for (list, force) in sizes[i].iter_mut().zip(both) {
                list.push(force.map(|f| f.norm()));
            }
        }
        at = t.knot_after(&at);
    }
    for (i, j) in joints() {
        let [forces, moments] = std::mem::take(&mut sizes[i]);
        let (translations, rotations) = j.kind.rows();
        for (what, unit, rows, values) in [
            ("force", "N", translations, forces),
            ("moment", "N m", rotations, moments),
        ] {
            if rows > 0 {
                let name = format!("{} {what}", j.name);
                channels
                    .add(name, unit, Group::ConstraintForce, values.into_iter())
                    .interval = Some(Interval::After);
            }
        }
    }
    Ok(())
}

/// Marks the forces that redundant constraints share in any way.
fn not_unique(channels: &mut Channels, system: &System) {
    for (index, j) in system.mechanism().joints.iter().enumerate() {
        let names = ["force", "moment"].map(|what| format!("{} {what}", j.name));
        let of = |c: &&mut Channel| c.group == Group::ConstraintForce && names.contains(&c.name);
        let unique = system.has_unique_forces(index);
        for channel in channels.list.iter_mut().filter(of) {
            channel.not_unique = !unique;
        }
    }
}

/// What is open of every joint that constrains something, every gear and every user's constraint.
fn gaps(channels: &mut Channels, system: &System, t: &Trajectory, poses: &[Vec<spatial::Pose>]) {
    let m = system.mechanism();
    for j in m.joints.iter().filter(|j| j.rows() > 0) {
        let unit = match j.kind.rows() {
            (_, 0) => "m",
            (0, _) => "rad",
            _ => "m or rad",
        };
        let gap = |poses: &Vec<spatial::Pose>| {
            let (a, b) = m.ends(j, poses);
            Some(j.violation(a, b))
        };
        channels.add(
            format!("{} gap", j.name),
            unit,
            Group::Gap,
            poses.iter().map(gap),
        );
    }
    for (index, c) in m.constraints.iter().enumerate() {
        let unit = match &c.law {
            Law::Gear(g) => m.joints[g.follower.0].directions[g.follower.1].unit_name(),
            Law::Holonomic(_) => "m or rad",
            Law::Velocity(_) => "m/s or rad/s",
        };
        // no interval lies before the first knot: there it is that at the knot itself
        let gap = |k: usize| Some(system.gap(index, &poses[k.saturating_sub(1)], t.state(k)));
        channels.add(
            format!("{} gap", c.name),
            unit,
            Group::Gap,
            (0..poses.len()).map(gap),
        );
    }
}

fn energies(channels: &mut Channels, b: &Balance) {
    let curves: [(&str, &dyn Fn(usize) -> f64); 5] = [
        ("kinetic", &|k| b.kinetic[k]),
        ("potential", &|k| b.potential[k]),
        ("total", &|k| b.energy(k)),
        ("work", &|k| b.work(k)),
        ("energy error", &|k| b.error(k)),
    ];
    for (name, value) in curves {
        channels.add(
            name.into(),
            "J",
            Group::Energy,
            (0..b.kinetic.len()).map(|k| Some(value(k))),
        );
    }
}
