//! Policies: from the names of a file to what computes controls.

use super::describe_policy::{LoopSpec, NetworkSpec, NumberSpec, PolicySpec, ReferenceSpec};
use super::gains::{self, Feedback};
use super::grid::{Grid, Played};
use super::quantity::{Named, Quantities};
use super::signal;
use super::source::{FormatError, Source, nearest};
use super::wanted;
use crate::control::{
    Disturbed, Input, Network, Open, Policy, PolicyRows, Reference, Schedule, ScheduleKnot, Track,
    Tracking, Tunable,
};
use crate::dynamics::{Knot, Parameter, QuantityId, StepError};
use crate::integrator::Controls;
use crate::mechanism::{Mechanism, Quantity};
use crate::optimize::Method;
use nalgebra::DMatrix;
use std::path::Path;

/// What computes the controls of a file's mechanism.
#[derive(Clone, Debug)]
pub enum Acting {
    /// Nothing: they are decided.
    Open(Open),
    /// Proportional-derivative control.
    Tracking(Tracking),
    /// A neural network.
    Network(Network),
    /// Linear feedback along a trajectory.
    Schedule(Schedule),
    /// Any of these, with disturbances added.
    Disturbed(Disturbed<Box<Self>>),
}

/// The policy that it is.
macro_rules! of {
    ($self:ident, $p:ident => $call:expr) => {
        match $self {
            Self::Open($p) => $call,
            Self::Tracking($p) => $call,
            Self::Network($p) => $call,
            Self::Schedule($p) => $call,
            Self::Disturbed($p) => $call,
        }
    };
}

impl Acting {
    /// The same for intervals in two; none where nothing acts, or by the states of a plan's knots.
    pub fn halved(&self) -> Option<Self> {
        match self {
            Self::Tracking(t) => Some(Self::Tracking(t.halved())),
            Self::Network(n) => Some(Self::Network(n.clone())),
            _ => None,
        }
    }
}

impl Acting {
    /// Is it feedback to references that stand still?
    pub fn stands(&self) -> bool {
        matches!(self, Self::Tracking(t) if t.stands())
    }
}

impl Policy for Acting {
    fn sees(&self) -> &[QuantityId] {
        of!(self, p => p.sees())
    }

    fn open(&self) -> usize {
        of!(self, p => p.open())
    }

    fn is_open(&self) -> bool {
        of!(self, p => p.is_open())
    }

    fn parameters(&self) -> Vec<Parameter> {
        of!(self, p => p.parameters())
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        of!(self, p => p.act(at, seen, open, own, out))
    }

    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        of!(self, p => p.differentiate(at, seen, open, own, by))
    }
}

impl Quantities<'_> {
    /// What a policy sees, by names.
    pub(super) fn sights(&mut self, spec: &PolicySpec) -> Result<Vec<usize>, FormatError> {
        let mut out = vec![];
        let given = [
            ("loops", !spec.loops.is_empty()),
            ("network", spec.network.is_some()),
            ("feedback", spec.feedback.is_some()),
            ("controls", spec.controls.is_some()),
        ];
        let given: Vec<&str> = given.iter().filter(|g| g.1).map(|g| g.0).collect();
        if given.len() != 1 {
            let (message, field) = match given[..] {
                [] => ("a policy says nothing of how it acts".to_owned(), ""),
                [a, b, ..] => (format!("a policy has {a} and {b}"), b),
                [_] => Default::default(),
            };
            let help = "give one of loops, network, feedback, controls";
            return Err(self.err(["policy", field], "", message, help));
        }
        for (i, l) in spec.loops.iter().enumerate() {
            let i = format!("loops.{i}");
            let (joint, direction) =
                self.coordinate_named(["policy", ""], &format!("{i}.joint"), &l.joint)?;
            out.push(self.index(Named::Output(Quantity::Coordinate { joint, direction })));
            out.push(self.index(Named::Output(self.policy_rate(joint, direction))));
        }
        for (i, s) in spec.network.iter().flat_map(|n| &n.sees).enumerate() {
            let i = format!("network.sees.{i}");
            let place = ["policy", i.as_str()];
            let names = self.names(place, &s.quantity, true)?;
            let [name] = names[..] else {
                let message = "a quantity with three components has no place here".into();
                return Err(self.err(place, "quantity", message, "give it an axis"));
            };
            // velocities at a knot depend on the control there unless it is held
            let held = self.controls == Controls::Held;
            let sees = |o: Quantity| match o {
                Quantity::Control(_) | Quantity::ControlPower(_) => false,
                o => !o.needs().reactions && (held || !o.needs().velocities),
            };
            if !matches!(self.named[name], Named::Output(o) if sees(o)) {
                let message = "a policy cannot see what its own control changes at the knot, as controls, forces and, unless controls are held, velocities there, or what is made of other quantities".into();
                let help = "give joints, positions, orientations, and interval_rate for rates";
                return Err(self.err(place, "quantity", message, help));
            }
            out.push(name);
        }
        if spec.feedback.is_some() {
            let ids = self.mechanism.tree_ids();
            for &(joint, direction) in &ids {
                out.push(self.index(Named::Output(Quantity::Coordinate { joint, direction })));
            }
            // what cannot be read is reported where the gains are taken
            let file = spec.feedback.as_deref();
            let found = file.and_then(|file| read_feedback(self.source, file).ok());
            let part = match self.controls {
                Controls::Held => found.map_or(1.0, |found| found.part),
                // steps are not made in parts
                Controls::Linear => gains::VARIES,
            };
            for &id in &ids {
                out.push(self.index(Named::Output(gains::rate_seen(id, part))));
            }
            if self.controls == Controls::Held {
                for i in 0..self.mechanism.actuators.len() {
                    out.push(self.index(Named::Output(Quantity::PreviousControl(i))));
                }
            }
        }
        Ok(out)
    }

    /// The rate that a loop of a policy sees. A held control does not change the velocity at its own knot, so a loop sees that
    /// velocity, which is of second order. A control that changes it acts on the rate of the interval before the knot.
    fn policy_rate(&self, joint: usize, direction: usize) -> Quantity {
        match self.controls {
            Controls::Held => Quantity::Rate { joint, direction },
            Controls::Linear => Quantity::IntervalRate { joint, direction },
        }
    }
}

/// Reads a file of feedback, named relative to that of the problem.
fn read_feedback(source: &Source, file: &str) -> Result<Feedback, String> {
    let path = source.path().parent().unwrap_or(Path::new("")).join(file);
    let read = std::fs::read_to_string(&path).map_err(|e| e.to_string());
    let found = read.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    let found = found.map(Feedback::with_part);
    found.map_err(|e| format!("cannot read `{}`: {e}", path.display()))
}

/// A policy with the bounds of its parameters.
pub(super) struct Built {
    pub acting: Acting,
    pub bounds: Vec<(f64, f64)>,
}

/// The policy of a file, which sees the quantities `ids` of a system.
pub(super) fn build(
    source: &Source,
    spec: Option<&PolicySpec>,
    ids: &[QuantityId],
    system: &crate::integrator::System,
    played: Played,
) -> Result<Built, FormatError> {
    use crate::integrator::Mechanical;
    let m = system.mechanism();
    let Some(spec) = spec else {
        return Ok(Built {
            acting: Acting::Open(Open(m.actuators.len())),
            bounds: vec![],
        });
    };
    let refused = |field: &str, e: crate::control::PolicyError| {
        source.error(
            &["policy", field],
            e.to_string(),
            "see the manual's page on files",
        )
    };
    let mut b = Builder {
        source,
        m,
        held: system.previous_controls().unwrap_or(0..0).len(),
        spec,
        grid: played.grid,
        parameters: vec![],
        bounds: vec![],
    };
    b.gains()?;
    if !spec.gains.is_empty() && spec.loops.is_empty() && spec.network.is_none() {
        let message = "gains are of loops, and there are none";
        return Err(source.error(
            &["policy", "gains"],
            message,
            "leave them out; numbers of the mechanism are [parameters]",
        ));
    }
    let acting = if let Some(network) = &spec.network {
        let network = b.network(network, ids, system)?;
        b.bounds = network
            .parameters()
            .iter()
            .map(|_| (f64::NEG_INFINITY, f64::INFINITY))
            .collect();
        Acting::Network(network)
    } else if let Some(file) = &spec.feedback {
        Acting::Schedule(b.schedule(file, ids)?)
    } else if let Some(controls) = &spec.controls {
        let u = wanted::controls(source, m, (controls, "policy"), played)?;
        let none = || DMatrix::zeros(m.actuators.len(), 0);
        let knots = u.chunks_exact(m.actuators.len().max(1));
        let knots = knots.map(|u| ScheduleKnot {
            controls: u.to_vec(),
            seen: vec![],
            gains: none(),
        });
        let schedule = Schedule::new(vec![], knots.collect(), spec.feed_forward);
        Acting::Schedule(schedule.map_err(|e| refused("controls", e))?)
    } else {
        let loops = (0..spec.loops.len()).map(|i| b.track(i, ids));
        let loops = loops.collect::<Result<Vec<_>, _>>()?;
        let tracking = Tracking::new(system, loops, b.parameters.clone(), spec.feed_forward);
        let tracking = tracking.map_err(|e| refused("loops", e))?;
        Acting::Tracking(tracking.with_times(played.grid.times()))
    };
    Ok(Built {
        acting,
        bounds: b.bounds,
    })
}

struct Builder<'a> {
    source: &'a Source,
    m: &'a Mechanism,
    /// Number of previous controls in a state.
    held: usize,
    spec: &'a PolicySpec,
    grid: &'a Grid,
    parameters: Vec<Parameter>,
    bounds: Vec<(f64, f64)>,
}

impl Builder<'_> {
    fn gains(&mut self) -> Result<(), FormatError> {
        for (name, g) in &self.spec.gains {
            let err = |field: &str, message: String, help: &str| {
                self.source
                    .error(&["policy", "gains", name, field], message, help)
            };
            let [l, u] = g.bounds.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
            if l.is_nan() || u.is_nan() || l > u {
                let message = format!("bounds of gain `{name}` are {l} and {u}");
                return Err(err(
                    "bounds",
                    message,
                    "expected the smaller number first; inf where there is none",
                ));
            }
            if !(g.value.is_finite() && l <= g.value && g.value <= u) {
                let message = format!("gain `{name}` starts at {}, outside {l} to {u}", g.value);
                return Err(err(
                    "value",
                    message,
                    "give a finite value within the bounds",
                ));
            }
            if self.m.parameters.iter().any(|p| p.name == *name) {
                let message = format!("a gain is called `{name}`, as a parameter is");
                return Err(err("value", message, "give it a name of its own"));
            }
            self.parameters.push(Parameter {
                name: name.clone(),
                unit: "1".into(),
                value: g.value,
            });
            self.bounds
                .push(if g.fixed { (g.value, g.value) } else { (l, u) });
        }
        Ok(())
    }

    fn number(&self, place: &[&str], n: &NumberSpec) -> Result<Tunable, FormatError> {
        match n {
            NumberSpec::Given(v) if v.is_finite() => Ok(Tunable::Fixed(*v)),
            NumberSpec::Given(v) => Err(self.source.error(
                place,
                format!("a number of a policy is {v}"),
                "expected a finite number",
            )),
            NumberSpec::Named(name) => {
                let names = || self.spec.gains.keys().map(String::as_str);
                let found = names().position(|n| n == name);
                found.map(Tunable::Parameter).ok_or_else(|| {
                    let message = format!("unknown gain `{name}`");
                    self.source.error(place, message, nearest(name, names()))
                })
            }
        }
    }

    fn control(&self, place: &[&str], name: &str) -> Result<usize, FormatError> {
        let names = || self.m.actuators.iter().map(|a| a.name.as_str());
        names().position(|n| n == name).ok_or_else(|| {
            let message = format!("unknown control `{name}`");
            self.source.error(place, message, nearest(name, names()))
        })
    }

    fn track(&mut self, i: usize, ids: &[QuantityId]) -> Result<Track, FormatError> {
        let place = i.to_string();
        let l: &LoopSpec = &self.spec.loops[i];
        let at = |field: &'static str| ["policy", "loops", &place, field];
        if let Some(limit) = l.limit.filter(|v| !(*v > 0.0 && v.is_finite())) {
            let message = format!("limit of a loop is {limit}");
            return Err(self
                .source
                .error(&at("limit"), message, "expected a positive number"));
        }
        Ok(Track {
            control: self.control(&at("control"), &l.control)?,
            coordinate: ids[2 * i],
            rate: ids[2 * i + 1],
            kp: self.number(&at("kp"), &l.kp)?,
            kd: self.number(&at("kd"), &l.kd)?,
            reference: self.reference(&at("reference"), &l.joint, &l.reference)?,
            follows_rate: !l.damped,
            limit: l.limit,
        })
    }

    fn reference(
        &self,
        place: &[&str],
        own: &str,
        r: &ReferenceSpec,
    ) -> Result<Vec<Reference>, FormatError> {
        let constant = |n: &NumberSpec| Ok(vec![Reference::Constant(self.number(place, n)?)]);
        let table = match r {
            ReferenceSpec::Constant(v) => return constant(&NumberSpec::Given(*v)),
            ReferenceSpec::Named(name) => return constant(&NumberSpec::Named(name.clone())),
            ReferenceSpec::Table(t) => t,
        };
        let mut out = vec![];
        if let Some(offset) = &table.offset {
            out.push(Reference::Constant(self.number(place, offset)?));
        }
        if let Some(s) = &table.sine {
            out.push(Reference::Sine {
                amplitude: self.number(place, &s.amplitude)?,
                frequency: self.number(place, &s.frequency)?,
                unit: s.frequency_unit,
                phase: self.number(place, &s.phase)?,
            });
        }
        if let Some(signal) = table.recorded() {
            let (folder, times) = (
                self.source.path().parent().unwrap_or(Path::new("")),
                self.grid.times(),
            );
            let values = signal::values(&signal, folder, Some(own), &times);
            let values =
                values.map_err(|(message, help)| self.source.error(place, message, help))?;
            let n = times.len();
            let rate = |k: usize| {
                let (a, b) = (k.saturating_sub(1), (k + 1).min(n - 1));
                if a == b {
                    0.0
                } else {
                    (values[b] - values[a]) / (times[b] - times[a])
                }
            };
            out.push(Reference::Recorded {
                rates: (0..n).map(rate).collect(),
                values,
            });
        }
        if out.is_empty() {
            let help = "give one of offset, sine, spline, csv, or several that add up";
            return Err(self.source.error(place, "a reference says nothing", help));
        }
        Ok(out)
    }

    fn network(
        &self,
        spec: &NetworkSpec,
        ids: &[QuantityId],
        system: &crate::integrator::System,
    ) -> Result<Network, FormatError> {
        let err = |field: &str, message: String, help: &str| {
            self.source
                .error(&["policy", "network", field], message, help)
        };
        if self.spec.feed_forward || !self.spec.gains.is_empty() {
            let message = "gains and feed_forward are of loops; a network has neither".into();
            return Err(err("layers", message, "leave them out"));
        }
        let mut scale = vec![];
        for a in &self.m.actuators {
            let of_bounds = a
                .bounds
                .map(|(l, u)| l.abs().max(u.abs()))
                .filter(|b| b.is_finite());
            let Some(limit) = spec.limit.or(of_bounds) else {
                let message = format!("control `{}` has no bounds", a.name);
                return Err(err(
                    "limit",
                    message,
                    "give the largest size of what the network exerts",
                ));
            };
            scale.push(limit);
        }
        let inputs = spec
            .sees
            .iter()
            .zip(ids)
            .map(|(s, quantity)| match s.angle {
                true => Input::SineCosine(*quantity),
                false => Input::Scaled {
                    quantity: *quantity,
                    offset: 0.0,
                    scale: s.scale,
                },
            });
        if let Some(s) = spec
            .sees
            .iter()
            .find(|s| !(s.scale > 0.0 && s.scale.is_finite()))
        {
            return Err(err(
                "sees",
                format!("a scale is {}", s.scale),
                "expected a positive number",
            ));
        }
        Network::new(system, inputs.collect(), &spec.layers, scale, spec.seed)
            .map_err(|e| err("layers", e.to_string(), "see the manual's page on files"))
    }

    /// Names of coordinates and rates of the tree, as a file of feedback has them.
    fn state_names(&self) -> Vec<String> {
        let ids = self.m.tree_ids();
        let coordinates = ids
            .iter()
            .map(|&(joint, direction)| Quantity::Coordinate { joint, direction });
        let rates = ids
            .iter()
            .map(|&(joint, direction)| Quantity::IntervalRate { joint, direction });
        let previous = (0..self.held).map(Quantity::PreviousControl);
        let all = coordinates.chain(rates).chain(previous);
        all.map(|q| q.name(self.m).0).collect()
    }

    fn schedule(&self, file: &str, ids: &[QuantityId]) -> Result<Schedule, FormatError> {
        let err =
            |message: String, help: &str| self.source.error(&["policy", "feedback"], message, help);
        if !self.spec.gains.is_empty() {
            let message = "gains are of loops; feedback from a file has its own".into();
            return Err(err(message, "leave them out"));
        }
        let turns = |j: &crate::mechanism::Joint| {
            let angles = j.directions.iter();
            angles
                .filter(|d| d.freedom != crate::mechanism::Freedom::Slide)
                .count()
                > 1
        };
        if self.m.has_loops() || self.m.joints.iter().any(turns) {
            let message = "feedback from a file is by the coordinates of a tree whose joints have one angle each".into();
            return Err(err(
                message,
                "in Rust, `Solution::feedback` serves any mechanism",
            ));
        }
        let found = read_feedback(self.source, file).map_err(|message| {
            let help = format!(
                "give the path of a gains.json that `solve --method {}` wrote, relative to this file",
                Method::ALL[0].name()
            );
            err(message, &help)
        })?;
        let rows = found.knots.iter().flat_map(|k| &k.gains);
        let fits = rows.clone().all(|row| row.len() == ids.len());
        let states: Vec<&str> = found.states.iter().map(|s| s.name.as_str()).collect();
        let expected: Vec<String> = self.state_names();
        if !fits || states != expected {
            let message = format!(
                "`{file}` is feedback by {} ({} numbers)",
                states.join(", "),
                found.coordinates.len()
            );
            let help = format!("expected by {}, and nothing else", expected.join(", "));
            return Err(err(message, &help));
        }
        let times = self.grid.times();
        let apart = |(k, t): (&super::gains::FeedbackKnot, &f64)| (k.time - t).abs();
        let off = found
            .knots
            .iter()
            .zip(&times)
            .map(apart)
            .fold(0.0, f64::max);
        if off > 1e-9 * self.grid.horizon() {
            let message =
                format!("the knots of `{file}` are up to {off} s off those of this problem");
            return Err(err(message, "solve with the same time step first"));
        }
        let names: Vec<&str> = found.controls.iter().map(|c| c.name.as_str()).collect();
        if names.iter().ne(self.m.actuators.iter().map(|a| &a.name)) {
            let message = format!("`{file}` has the controls {}", names.join(", "));
            return Err(err(message, "give one of this mechanism"));
        }
        let knots = found.knots.into_iter().map(|k| {
            let all: Vec<f64> = k.gains.iter().flatten().copied().collect();
            ScheduleKnot {
                gains: nalgebra::DMatrix::from_row_slice(k.gains.len(), ids.len(), &all),
                controls: k.controls,
                seen: k.state,
            }
        });
        Schedule::new(ids.to_vec(), knots.collect(), self.spec.feed_forward)
            .map_err(|e| err(e.to_string(), "give one of this mechanism"))
    }
}
