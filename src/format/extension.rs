//! What a problem needs beside its system, and the system with it.

use super::composite::WORST;
use super::grid::Grid;
use super::initial::Sought;
use super::policy::Acting;
use super::{Model, Scenario};
use crate::control::{self, ClosedLoop, Duration, Formula, Policy, Scenarios, StartNumber, Sum};
use crate::dynamics::{Parameter, Remember, Step, StepError};
use crate::integrator::{Mechanical, System};
use crate::mechanism::Mechanism;
use crate::rollout::Trajectory;
use std::ops::Range;

/// The system of a problem under its policy, with the rates of its controls, the parameters that the problem adds, its sums
/// and formulas; of every scenario, side by side.
pub type Extended<'a> = Scenarios<One<'a>>;

/// That of one scenario.
type One<'a> = control::Extended<Remember<ClosedLoop<&'a System, Acting>>>;

/// What a problem needs beside its system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extension {
    /// With their bounds.
    pub parameters: Vec<(Parameter, (f64, f64))>,
    /// The first of them are these numbers of the start.
    pub start: Vec<StartNumber>,
    /// Those behind are these durations: first interval, and the one behind the last.
    pub spans: Vec<(usize, usize)>,
    /// Sums along the way.
    pub sums: Vec<Sum>,
    /// Formulas of quantities.
    pub formulas: Vec<Formula>,
}

impl Extension {
    pub(super) fn new(m: &Mechanism, sought: Vec<Sought>, grid: &Grid, has_worst: bool) -> Self {
        let mut out = Self::default();
        for (number, parameter, bounds) in sought {
            out.start.push(number);
            out.parameters.push((parameter, bounds));
        }
        for p in &grid.phases {
            let value = p.duration;
            let Some(bounds) = p.bounds else { continue };
            let taken = |name: &str| m.parameters.iter().any(|p| p.name == name);
            let name = match taken(&p.name) {
                true => format!("duration of {}", p.name),
                false => p.name.clone(),
            };
            out.spans.push((p.first, p.end));
            let parameter = Parameter {
                name,
                unit: "s".into(),
                value,
            };
            out.parameters.push((parameter, bounds));
        }
        if has_worst {
            let parameter = Parameter {
                name: WORST.into(),
                unit: "1".into(),
                value: 0.0,
            };
            let free = (f64::NEG_INFINITY, f64::INFINITY);
            out.parameters.push((parameter, free));
        }
        out
    }

    /// Name and unit of all parameters: those of the mechanism, of the policy, and of the problem.
    pub(super) fn named(&self, m: &Mechanism, policy: Vec<String>) -> Vec<(String, String)> {
        let own = m.parameters.iter().map(|p| {
            let unit = p
                .fields
                .first()
                .map_or("1".into(), |f| m.field_unit(*f).into());
            (p.name.clone(), unit)
        });
        let added = self.parameters.iter();
        let own = own.chain(policy.into_iter().map(|name| (name, "1".to_owned())));
        own.chain(added.map(|(p, _)| (p.name.clone(), p.unit.clone())))
            .collect()
    }

    pub(super) fn with(self, sums: Vec<Sum>, formulas: Vec<Formula>) -> Self {
        Self {
            sums,
            formulas,
            ..self
        }
    }

    /// Is there anything in it?
    pub fn is_needed(&self) -> bool {
        !(self.parameters.is_empty() && self.sums.is_empty() && self.formulas.is_empty())
    }

    /// The durations of a problem whose system has so many parameters itself.
    pub(super) fn durations(&self, own: usize) -> Vec<Duration> {
        let first = own + self.start.len();
        let spans = self.spans.iter().zip(first..);
        spans
            .map(|(&(first, end), parameter)| Duration {
                first,
                end,
                parameter,
            })
            .collect()
    }
}

impl Model {
    /// The system with all that the problem may refer to, which a problem that is not [`Model::is_plain`] is solved with;
    /// [`Model::alone`] then gives the trajectories of the systems alone.
    pub fn extended(&self) -> Extended<'_> {
        self.extended_with(&self.scenarios)
    }

    /// The same of these scenarios; of the model alone where there are none.
    pub(super) fn extended_with<'a>(&'a self, scenarios: &'a [Scenario]) -> Extended<'a> {
        let one = |name: &str, m: &'a Self| {
            (
                name.to_owned(),
                m.one(),
                m.system.mechanism().tree_ids().len(),
            )
        };
        let systems = match scenarios {
            [] => vec![one("", self)],
            all => all.iter().map(|s| one(&s.name, &s.model)).collect(),
        };
        let all = Scenarios::new(systems, !self.own_controls);
        all.expect("`several` refuses scenarios whose controls or parameters differ")
    }

    fn one(&self) -> One<'_> {
        let closed = ClosedLoop::new(&self.system, self.policy.clone());
        let names = closed.controls();
        let remember = Remember::new(closed, names);
        let mut out = control::Extended::new(remember, self.problem.intervals.len());
        let e = &self.extension;
        for (i, (parameter, _)) in e.parameters.iter().enumerate() {
            match e.start.get(i) {
                Some(number) => out.add_start(*number, parameter.clone()),
                None => out.add_parameter(parameter.clone()),
            };
        }
        for sum in &e.sums {
            out.add_sum(sum.clone());
        }
        for formula in &e.formulas {
            out.add_formula(formula.clone());
        }
        out.with_profiles(self.problem.profiles.clone())
    }

    /// Name, unit and value of all parameters: those of the mechanism, then those that the problem adds.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut all = self.system.parameters();
        all.extend(self.policy.parameters());
        all.extend(self.extension.parameters.iter().map(|(p, _)| p.clone()));
        all
    }

    /// The values of the problem's parameters that are the mechanism's.
    pub fn own_parameters(&self) -> &[f64] {
        &self.problem.parameters[..self.system.dims().np]
    }

    /// The trajectory of each scenario, or of the only one, by its system alone, from one of [`Model::extended`]: its part
    /// of states and parameters, with the controls that acted.
    ///
    /// # Errors
    /// When what the policy sees cannot be observed.
    pub fn alone(&self, t: &Trajectory) -> Result<Vec<Trajectory>, StepError> {
        let all = self.extended();
        let models = self.scenarios.iter().map(|s| &s.model);
        let models: Vec<&Self> = match self.scenarios.len() {
            0 => vec![self],
            _ => models.collect(),
        };
        let each = models.into_iter().enumerate();
        each.map(|(i, m)| {
            let parts = [all.state_of(i), all.controls_of(i), all.unknowns_of(i)];
            m.acted(t, parts)
        })
        .collect()
    }

    /// A part of a trajectory, of the system alone, with the controls that acted in place of those that were decided.
    fn acted(&self, t: &Trajectory, parts: [Range<usize>; 3]) -> Result<Trajectory, StepError> {
        if matches!(self.policy, Acting::Open(_)) {
            return Ok(t.part(&self.system, parts));
        }
        let closed = ClosedLoop::new(&self.system, &self.policy);
        closed.acted(&t.part(&closed, parts), &mut closed.work())
    }
}
