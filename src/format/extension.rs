//! What a problem needs beside its system, and the system with it.

use super::decided::Sought;
use super::grid::{Grid, Phase};
use super::policy::Acting;
use super::problem::ProblemSpec;
use super::quantity::Wanted;
use super::{Model, Scenario};
use crate::control::{self, ClosedLoop, Duration, Formula, Policy, Scenarios, StartNumber, Sum};
use crate::dynamics::{Parameter, QuantityId, Remember, Step, StepError};
use crate::integrator::{Mechanical, System};
use crate::mechanism::Mechanism;
use crate::rollout::Trajectory;

/// The system of a problem under its policy, with the rates of its controls, the parameters that the problem adds, its sums
/// and formulas; of every scenario, side by side.
pub type Extended<'a> = Scenarios<One<'a>>;

/// That of one scenario.
type One<'a> = control::Extended<Remember<ClosedLoop<&'a System, Acting>>>;

/// A parameter that is to be no smaller, or no larger, than what varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Its place among all parameters.
    pub parameter: usize,
    /// 1 where it lies above what varies, -1 below.
    pub sign: f64,
    /// Formulas that must not be positive: what varies, less the parameter (the other way round below).
    pub less: Vec<QuantityId>,
}

/// What a problem needs beside its system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extension {
    /// With their bounds.
    pub parameters: Vec<(Parameter, (f64, f64))>,
    /// The first of them are these numbers of the start.
    pub start: Vec<StartNumber>,
    /// Numbers of the start that are those of parameters, by their places among all.
    pub ties: Vec<(StartNumber, usize)>,
    /// Those behind the numbers of the start are these durations: first interval, and the one behind the last.
    pub spans: Vec<(usize, usize)>,
    /// Sums along the way.
    pub sums: Vec<Sum>,
    /// Formulas of quantities.
    pub formulas: Vec<Formula>,
    /// What the last parameters bound.
    pub bounds: Vec<Bound>,
}

/// What the duration of a phase is called among the parameters.
fn duration(m: &Mechanism, phase: &Phase) -> String {
    let taken = m.parameters.iter().any(|p| p.name == phase.name);
    match taken {
        true => format!("duration of {}", phase.name),
        false => phase.name.clone(),
    }
}

/// Values of the parameters that a number of the start may be: those of the mechanism and of a policy, and durations.
pub(super) fn known(m: &Mechanism, spec: &ProblemSpec, grid: &Grid) -> Vec<(String, f64)> {
    let own = m.parameters.iter();
    let own = own.filter_map(|p| Some((p.name.clone(), m.get(*p.fields.first()?))));
    let gains = spec.policy.iter().flat_map(|p| &p.gains);
    let gains = gains.map(|(name, gain)| (name.clone(), gain.value));
    let phases = grid.phases.iter().filter(|p| p.bounds.is_some());
    let phases = phases.map(|p| (duration(m, p), p.duration));
    own.chain(gains).chain(phases).collect()
}

impl Extension {
    pub(super) fn new(m: &Mechanism, sought: Vec<Sought>, grid: &Grid) -> Self {
        let mut out = Self::default();
        for (number, parameter, bounds) in sought {
            out.start.push(number);
            out.parameters.push((parameter, bounds));
        }
        for p in &grid.phases {
            let value = p.duration;
            let Some(bounds) = p.bounds else { continue };
            out.spans.push((p.first, p.end));
            let parameter = Parameter {
                name: duration(m, p),
                unit: "s".into(),
                value,
            };
            out.parameters.push((parameter, bounds));
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

    /// With what costs and constraints need.
    pub(super) fn with(mut self, wanted: &mut Wanted) -> Self {
        let free = (f64::NEG_INFINITY, f64::INFINITY);
        for bound in &wanted.bounds {
            let (name, unit) = wanted.parameters[bound.parameter].clone();
            let value = 0.0;
            self.parameters
                .push((Parameter { name, unit, value }, free));
        }
        Self {
            sums: std::mem::take(&mut wanted.sums),
            formulas: std::mem::take(&mut wanted.formulas),
            bounds: std::mem::take(&mut wanted.bounds),
            ..self
        }
    }

    /// Is there anything in it?
    pub fn is_needed(&self) -> bool {
        let added = self.parameters.is_empty() && self.ties.is_empty();
        !(added && self.sums.is_empty() && self.formulas.is_empty())
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
        for (number, place) in &e.ties {
            out.tie_start(*number, *place);
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
        let each = self.models().into_iter().zip(self.decided(t));
        each.map(|(m, part)| {
            let closed = m.closed();
            closed.acted(&part, &mut closed.work())
        })
        .collect()
    }

    /// The same by its system under its policy ([`Model::closed`]), with the controls that the policy leaves open.
    pub fn decided(&self, t: &Trajectory) -> Vec<Trajectory> {
        let all = self.extended();
        let each = self.models().into_iter().enumerate();
        each.map(|(i, m)| {
            let parts = [all.state_of(i), all.controls_of(i), all.unknowns_of(i)];
            t.part(&m.closed(), parts)
        })
        .collect()
    }

    /// The system under its policy.
    pub fn closed(&self) -> ClosedLoop<&System, &Acting> {
        ClosedLoop::new(&self.system, &self.policy)
    }

    /// Each scenario, or the only one.
    fn models(&self) -> Vec<&Self> {
        match &self.scenarios[..] {
            [] => vec![self],
            all => all.iter().map(|s| &s.model).collect(),
        }
    }
}
