//! From a trajectory to a recording.

use super::Model;
use super::goals;
use super::limits::Efforts;
use super::outline;
use super::recorded::Recorded;
use super::recording::{Channel, Group, Interval, Pose, Recording};
use super::touches::Touches;
use crate::dynamics::{Step, StepError};
use crate::integrator::{Controls, Mechanical, System};
use crate::mechanism::{KnotData, Law, Mechanism, Reaction, StepInterval};
use crate::optimize::Iteration;
use crate::rollout::{Balance, Trajectory, balance_with};
use crate::spatial;
use std::collections::HashSet;
use std::ops::ControlFlow;

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
    let go_on = &mut |_| ControlFlow::Continue(());
    let (mut recording, _) = record_every(model, trajectory, 1, go_on)?;
    recording.status = status.into();
    recording.convergence = history.to_vec();
    Ok(recording)
}

/// [`record`] of every so many knots and the last one, with the energy balance along all of them: reading them out takes
/// many times what simulating them does. `progress` sees every knot that was read, and may break off there: the recording
/// ends with the next knot that it keeps, the balance too.
///
/// # Errors
/// As [`record`].
pub fn record_every(
    model: &Model,
    trajectory: &Trajectory,
    every: usize,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<(Recording, Balance), StepError> {
    if trajectory.p != model.own_parameters() {
        let found = model.with_parameters(&trajectory.p)?;
        return record_every(&found, trajectory, every, progress);
    }
    let system = &model.system;
    let m = system.mechanism();
    let mut kept: Vec<usize> = vec![];
    let mut reactions = Reactions::new(m);
    let mut touches = Touches::default();
    let mut efforts = Efforts::new(m);
    let mut recorded = Recorded::new(model);
    let mut breaks = false;
    let energy = balance_with(system, trajectory, &mut system.work(), |at, data| {
        let keep = at.k.is_multiple_of(every) || at.k == trajectory.steps();
        let step = || {
            let next = (at.k < trajectory.steps()).then(|| trajectory.state(at.k + 1));
            next.map(|x| {
                let each = system.interval_velocities(x, at.h);
                let each = each.iter().flat_map(|(v, w)| v.iter().chain(w.iter()));
                StepInterval {
                    velocities: each.copied().collect(),
                    poses: system.poses(x),
                }
            })
        };
        touches.see(data, step, keep);
        efforts.see(data, keep);
        if keep {
            kept.push(at.k);
            reactions.see(data);
            recorded.see(trajectory, at, data);
        }
        breaks |= progress(at.k).is_break();
        match breaks && keep {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    let last = energy.kinetic.len() - 1;
    let cut;
    let trajectory = if last < trajectory.steps() {
        let mut part = trajectory.clone();
        part.truncate(last);
        cut = part;
        &cut
    } else {
        trajectory
    };
    let each = || kept.iter().map(|&k| system.poses(trajectory.state(k)));
    let poses: Vec<Vec<spatial::Pose>> = each().collect();
    let seen = Kept {
        system,
        controls: model.controls,
        t: trajectory,
        knots: &kept,
        poses: &poses,
        energy: &energy,
    };
    let mut channels = Channels::default();
    seen.coordinates(&mut channels);
    seen.controls(&mut channels);
    reactions.add_to(&mut channels, system);
    seen.gaps(&mut channels);
    let contacts = touches.add_to(&mut channels, m);
    efforts.add_to(&mut channels, m);
    seen.energies(&mut channels);
    for (name, unit, values) in recorded.columns() {
        // those of contacts, limits and friction are there already
        let data = |c: &Channel| {
            let own = matches!(
                c.group,
                Group::Contact | Group::LimitForce | Group::JointFriction
            );
            own && (&c.name, &c.unit) == (&name, &unit)
        };
        if channels.list.iter().any(data) {
            continue;
        }
        channels.add(name, &unit, Group::Other, values.into_iter());
    }
    seen.parts(&mut channels);
    goals::mark(&mut channels.list, model, trajectory.steps());
    let mut places = goals::places(model, trajectory);
    // from knots to those that are kept: what is wanted at one that is not is shown at the next
    let next = |k: usize| kept.partition_point(|own| *own < k).min(kept.len() - 1);
    let goals = channels.list.iter_mut().flat_map(|c| &mut c.goals);
    for goal in goals {
        goal.first = next(goal.first);
        goal.last = next(goal.last);
    }
    for place in &mut places {
        place.knot = next(place.knot);
    }
    let travel = |joint: usize| {
        let along = (0..kept.len()).map(|k| seen.coordinate(k, joint, 0));
        along.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), c| {
            (l.min(c), h.max(c))
        })
    };
    let lines = (model.draw.clone()).unwrap_or_else(|| outline::lines(m, travel));
    let pose = |p: &spatial::Pose| Pose {
        position: p.x.into(),
        orientation: [p.q.w, p.q.i, p.q.j, p.q.k],
    };
    let recording = Recording {
        title: model.title.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        status: String::new(),
        time: seen.time(),
        channels: channels.list,
        bodies: m.bodies.iter().map(|b| b.name.clone()).collect(),
        poses: poses.iter().map(|p| p.iter().map(pose).collect()).collect(),
        dots: outline::dots(m, &lines),
        places,
        links: match model.draw {
            None => outline::links(m),
            Some(_) => vec![],
        },
        lines,
        ground: outline::ground(m, &poses),
        contacts,
        visuals: model.visuals.clone(),
        convergence: vec![],
        parameters: system
            .parameters()
            .into_iter()
            .map(|p| (p.name, p.value))
            .collect(),
        mechanism: serde_json::to_value(&model.mechanism).unwrap_or_default(),
    };
    Ok((recording, energy))
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

/// Written times are whole numbers of these parts of a second, finer than any that is simulated.
const TICKS: f64 = 1e12;

/// The knots of a trajectory that a recording keeps.
struct Kept<'a> {
    system: &'a System,
    controls: Controls,
    t: &'a Trajectory,
    knots: &'a [usize],
    /// At these.
    poses: &'a [Vec<spatial::Pose>],
    /// At all knots.
    energy: &'a Balance,
}

impl Kept<'_> {
    fn time(&self) -> Vec<f64> {
        let mut times = vec![0.0];
        let mut t = 0.0;
        for h in &self.t.intervals {
            t += h;
            times.push(t);
        }
        // without the rounding of the sum
        let round = |t: f64| (t * TICKS).round() / TICKS;
        self.knots.iter().map(|&k| round(times[k])).collect()
    }

    /// A joint coordinate at the `i`-th of them.
    fn coordinate(&self, i: usize, joint: usize, direction: usize) -> f64 {
        let x = self.t.state(self.knots[i]);
        (self.system).coordinate_at(x, &self.poses[i], joint, direction)
    }

    /// In how many parts steps were made, where that differs.
    fn parts(&self, channels: &mut Channels) {
        let of = |k: usize| self.system.parts_after(self.t.unknowns(k)) as f64;
        let last = self.t.steps();
        if (0..last).all(|k| of(k) == 1.0) {
            return;
        }
        let values = self.knots.iter().map(|&k| (k < last).then(|| of(k)));
        let channel = channels.add("substeps".into(), "", Group::Other, values);
        channel.interval = Some(Interval::After);
    }

    fn coordinates(&self, channels: &mut Channels) {
        let m = self.system.mechanism();
        let ids: Vec<_> = m.coordinates().collect();
        let named = coordinate_names(m).into_iter();
        for ((name, unit, group), &(j, d)) in named.zip(ids.iter().chain(&ids)) {
            let joint = &m.joints[j];
            let value = |i: usize| match group {
                Group::Coordinate => self.coordinate(i, j, d),
                _ => {
                    let motion = &self.energy.velocities[self.knots[i]];
                    m.rate(joint, d, &self.poses[i], motion)
                }
            };
            let values = (0..self.knots.len()).map(|i| Some(value(i)));
            let channel = channels.add(name, &unit, group, values);
            if group == Group::Coordinate {
                let d = &joint.directions[d];
                channel.lower = Some(d.lower).filter(|l| l.is_finite());
                channel.upper = Some(d.upper).filter(|l| l.is_finite());
            }
        }
    }

    fn controls(&self, channels: &mut Channels) {
        let (m, t) = (self.system.mechanism(), self.t);
        for (i, a) in m.actuators.iter().enumerate() {
            let value = |&k: &usize| (k < t.steps()).then(|| t.control(k)[i]);
            let (unit, values) = (m.control_unit(i), self.knots.iter().map(value));
            let channel = channels.add(a.name.clone(), unit, Group::Control, values);
            // a control that is linear between knots is a value at its knot
            channel.interval = match self.controls {
                Controls::Held => Some(Interval::After),
                Controls::Linear => None,
            };
            channel.lower = a.bounds.map(|b| b.0).filter(|b| b.is_finite());
            channel.upper = a.bounds.map(|b| b.1).filter(|b| b.is_finite());
        }
    }

    /// What is open of every joint that constrains something, every gear and every user's constraint.
    fn gaps(&self, channels: &mut Channels) {
        let m = self.system.mechanism();
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
            let values = self.poses.iter().map(gap);
            channels.add(format!("{} gap", j.name), unit, Group::Gap, values);
        }
        for (index, c) in m.constraints.iter().enumerate() {
            let unit = match &c.law {
                Law::Gear(g) => m.joints[g.follower.0].directions[g.follower.1].unit_name(),
                Law::Holonomic(_) => "m or rad",
                Law::Velocity(_) => "m/s or rad/s",
            };
            // no interval lies before the first knot: there it is that at the knot itself
            let gap = |&k: &usize| {
                let before = self.system.poses(self.t.state(k.saturating_sub(1)));
                let h = k
                    .checked_sub(1)
                    .map_or(self.t.before, |k| self.t.intervals[k]);
                Some(self.system.gap(index, (&before, h), self.t.state(k)))
            };
            let values = self.knots.iter().map(gap);
            channels.add(format!("{} gap", c.name), unit, Group::Gap, values);
        }
    }

    fn energies(&self, channels: &mut Channels) {
        let b = self.energy;
        let curves: [(&str, &dyn Fn(usize) -> f64); 5] = [
            ("kinetic", &|k| b.kinetic[k]),
            ("potential", &|k| b.potential[k]),
            ("total", &|k| b.energy(k)),
            ("work", &|k| b.work(k)),
            ("energy error", &|k| b.error(k)),
        ];
        for (name, value) in curves {
            let values = self.knots.iter().map(|&k| Some(value(k)));
            channels.add(name.into(), "J", Group::Energy, values);
        }
    }
}

/// Sizes of the force and the moment on each joint's child, from the impulse that acts at the knot.
struct Reactions {
    /// By joint, of those that have rows.
    joints: Vec<(usize, [Vec<Option<f64>>; 2])>,
}

impl Reactions {
    fn new(m: &Mechanism) -> Self {
        let joints = (0..m.joints.len()).filter(|&j| m.joints[j].rows() > 0);
        Self {
            joints: joints.map(|j| (j, Default::default())).collect(),
        }
    }

    fn see(&mut self, data: &KnotData) {
        for (joint, sizes) in &mut self.joints {
            for (kind, list) in [Reaction::Force, Reaction::Torque].into_iter().zip(sizes) {
                list.push(data.reaction(*joint, kind).map(|f| f.norm()));
            }
        }
    }

    fn add_to(self, channels: &mut Channels, system: &System) {
        for (joint, [forces, moments]) in self.joints {
            let j = &system.mechanism().joints[joint];
            let unique = system.has_unique_forces(joint);
            let (translations, rotations) = j.kind.rows();
            for (what, unit, rows, values) in [
                ("force", "N", translations, forces),
                ("moment", "N m", rotations, moments),
            ] {
                if rows > 0 {
                    let name = format!("{} {what}", j.name);
                    let values = values.into_iter();
                    let channel = channels.add(name, unit, Group::ConstraintForce, values);
                    channel.interval = Some(Interval::After);
                    channel.not_unique = !unique;
                }
            }
        }
    }
}
