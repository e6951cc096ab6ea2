//! Costs and constraints: from the names of a file to the outputs of a mechanism.

use super::composite::{Extreme, Made, WORST};
use super::extension::Bound;
use super::grid::Grid;
use super::problem::{At, ConstraintSpec, Goal, ProblemSpec, Quantity};
use super::signal;
use super::source::{FormatError, Source, nearest};
use super::table::Complaint;
use crate::control::{Constraint, Cost, Form, Formula, Quadrature, Relation, Sum, When};
use crate::dynamics::QuantityId;
use crate::integrator::{Controls, Mechanical, System};
use crate::mechanism::{self, Mechanism};
use std::path::Path;

/// Until the places of quantities are known.
const NONE: QuantityId = QuantityId::new(0);

/// Something named in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Named {
    Output(mechanism::Quantity),
    ControlRate(usize),
    Parameter(usize),
    Sum(usize),
    Formula(usize),
}

/// Turns names into quantities, each of them once.
pub(super) struct Quantities<'a> {
    pub source: &'a Source,
    pub mechanism: &'a Mechanism,
    /// Time steps of the horizon as the file gives it.
    pub steps: usize,
    grid: &'a Grid,
    /// The knots that are simulated: the command line's before the file's.
    over: &'a Grid,
    /// Are all quantities along the way summed by the interval after their knot?
    pub is_left: bool,
    /// Are controls held between knots?
    pub controls: Controls,
    /// Controls that are decided.
    pub open: usize,
    /// Name and unit of those of the mechanism, then of those of the policy and those that the problem adds.
    pub parameters: Vec<(String, String)>,
    pub named: Vec<Named>,
    pub sums: Vec<Made>,
    pub formulas: Vec<Made>,
    profiles: Vec<Vec<f64>>,
}

/// Costs and constraints, with what they refer to.
pub(super) struct Wanted {
    pub costs: Vec<Cost>,
    pub constraints: Vec<Constraint>,
    /// Quantities of the mechanism; those from place `outputs.len()` on are the rates of the controls, behind them the
    /// parameters, the sums and the formulas.
    pub outputs: Vec<mechanism::Quantity>,
    /// Are there rates of controls among the quantities of costs and constraints?
    pub remembers: bool,
    /// Quantities that are written only.
    pub recorded: Vec<QuantityId>,
    /// What the policy sees.
    pub sights: Vec<QuantityId>,
    /// What may end an episode.
    pub watched: Vec<QuantityId>,
    pub sums: Vec<Sum>,
    pub formulas: Vec<Formula>,
    /// Is a parameter looked at?
    pub sees_parameters: bool,
    /// What varies of targets and limits.
    pub profiles: Vec<Vec<f64>>,
    /// Name and unit of all parameters, the last of which bound what varies.
    pub parameters: Vec<(String, String)>,
    /// What these bound.
    pub bounds: Vec<Bound>,
}

/// Costs and constraints by names, and the parameters that bound what varies.
type Asked = (Vec<(usize, Cost)>, Vec<(usize, Constraint)>, Vec<Extreme>);

/// Place of a value in the file: a list's name, the index in it.
pub(super) type Place<'a> = [&'a str; 2];

/// A target or limit of each component of a quantity, and what varies of it.
type Wish = (Vec<f64>, Option<usize>);

impl<'a> Quantities<'a> {
    pub fn new(
        source: &'a Source,
        mechanism: &'a Mechanism,
        (grid, over): (&'a Grid, &'a Grid),
        parameters: Vec<(String, String)>,
        open: usize,
    ) -> Self {
        Self {
            is_left: false,
            controls: Controls::default(),
            open,
            source,
            mechanism,
            steps: grid.steps(),
            grid,
            over,
            parameters,
            named: vec![],
            sums: vec![],
            formulas: vec![],
            profiles: vec![],
        }
    }

    /// Costs and constraints with their quantities.
    pub fn wanted(mut self, spec: &ProblemSpec) -> Result<Wanted, FormatError> {
        self.is_left = spec.sums_left();
        self.controls = spec.controls;
        let sights = match &spec.policy {
            Some(policy) => self.sights(policy)?,
            None => vec![],
        };
        let (mut costs, mut constraints, mut extremes) = (vec![], vec![], vec![]);
        for (i, c) in spec.costs.iter().enumerate() {
            let i = i.to_string();
            let place = ["costs", i.as_str()];
            if !((c.weight >= 0.0 || c.form == Form::Linear) && c.weight.is_finite()) {
                let message = format!("weight of a cost is {}", c.weight);
                let help = "expected a number that is not negative; a linear cost may have any: the quantity is then to be large";
                return Err(self.err(place, "weight", message, help));
            }
            if let Form::Huber(delta) = c.form
                && !(delta > 0.0 && delta.is_finite())
            {
                let message = format!("Huber's distance is {delta}");
                let help = "expected a positive number, in the quantity's unit";
                return Err(self.err(place, "form", message, help));
            }
            if let Some(extreme) = self.extreme(place, c)? {
                let less = extreme.less.iter();
                let below = Constraint::new(NONE, Relation::Less, 0.0, extreme.when);
                constraints.extend(less.map(|name| (*name, below)));
                let Goal::One(target) = c.target else {
                    continue;
                };
                let cost = Cost {
                    target,
                    ..Cost::linear(NONE, c.weight, When::End)
                };
                costs.push((extreme.bound, cost));
                extremes.push(extreme);
                continue;
            }
            let when = self.when(place, "at", &c.at)?;
            let end = !when.is_along() && when.holds(self.steps, self.steps);
            let names = self.names(place, &c.quantity, end)?;
            let (targets, profile) = self.values(place, "target", &c.target, &names)?;
            for (name, target) in names.into_iter().zip(targets) {
                let (weight, form) = (c.weight, c.form);
                let (when, quadrature) = self.counted(name, when);
                costs.push((
                    name,
                    Cost {
                        profile,
                        form,
                        quadrature,
                        ..Cost::square(NONE, target, weight, when)
                    },
                ));
            }
        }
        for (i, c) in spec.constraints.iter().enumerate() {
            let i = i.to_string();
            let place = ["constraints", i.as_str()];
            let when = self.when(place, "at", &c.at)?;
            let names = self.names(place, &c.quantity, when.holds(self.steps, self.steps))?;
            for (relation, wish) in self.relations(place, c, &names)? {
                let (values, profile) = wish;
                for (name, value) in names.iter().zip(values) {
                    let constraint = Constraint::new(NONE, relation, value, when);
                    constraints.push((
                        *name,
                        Constraint {
                            profile,
                            ..constraint
                        },
                    ));
                }
            }
            if let Some(other) = &c.same_as {
                let of = other.quantity.as_ref().unwrap_or(&c.quantity);
                let others = self.names(place, of, false)?;
                if others.len() != names.len()
                    || !(other.times.is_finite() && other.plus.is_finite())
                {
                    let message = "what a quantity is to repeat is another number of components, or no number".into();
                    let help = "give both an axis, or neither; finite numbers for times and plus";
                    return Err(self.err(place, "same_as", message, help));
                }
                for (name, theirs) in names.iter().zip(others) {
                    let by = (theirs, other.times, &other.at);
                    let difference = self.difference(place, *name, by)?;
                    let equal = Constraint::new(NONE, Relation::Equal, other.plus, when);
                    constraints.push((difference, equal));
                }
            }
        }
        if spec.worst_case {
            let title = (WORST.to_owned(), "1".to_owned());
            let bound = self.add_parameter(["worst_case", ""], title)?;
            let less = self.less_worst(std::mem::take(&mut costs), bound);
            let when = When::End;
            constraints.push((less, Constraint::new(NONE, Relation::Less, 0.0, when)));
            costs.push((bound, Cost::linear(NONE, 1.0, when)));
            extremes.push(Extreme {
                bound,
                sign: 1.0,
                less: vec![less],
                when,
            });
        }
        let watched = match &spec.episodes {
            Some(episodes) => self.watched(episodes)?,
            None => vec![],
        };
        let asked = self.named.len();
        let mut recorded = vec![];
        for (i, r) in spec.record.iter().enumerate() {
            let i = i.to_string();
            let place = ["record", i.as_str()];
            // where a quantity has no value a file has a gap
            for name in self.names(place, &r.quantity, false)? {
                if !matches!(self.named[name], Named::Output(_) | Named::ControlRate(_)) {
                    let message =
                        "time, parameters and what is made of other quantities are not recorded"
                            .into();
                    let help = "record what it is made of; time is the first column already";
                    return Err(self.err(place, "quantity", message, help));
                }
                recorded.push(name);
            }
        }
        let lists: [&[usize]; 3] = [&recorded, &sights, &watched];
        Ok(self.sorted((costs, constraints, extremes), lists, asked))
    }

    /// Where a quantity counts in a sum along the way, and by which rule.
    pub(super) fn counted(&self, name: usize, when: When) -> (When, Quadrature) {
        let holds = self.controls == Controls::Held && self.is_held(name);
        if self.is_left || holds || !when.is_along() {
            return (when, Quadrature::Left);
        }
        // forces have no value at the last knot
        let rule = Quadrature::Trapezoidal;
        let at_end = rule.counts(when, self.steps, self.steps) && self.is_force(name);
        match when.knots(self.steps).filter(|_| at_end) {
            Some((first, _)) => (When::Range(first, self.steps - 1), Quadrature::Open),
            None => (when, rule),
        }
    }

    /// How a constraint compares its quantity.
    fn relations(
        &mut self,
        place: Place,
        c: &ConstraintSpec,
        named: &[usize],
    ) -> Result<Vec<(Relation, Wish)>, FormatError> {
        let given: Vec<_> = [
            ("equals", Relation::Equal, &c.equals),
            ("less", Relation::Less, &c.less),
            ("greater", Relation::Greater, &c.greater),
        ]
        .into_iter()
        .filter_map(|(field, relation, v)| v.as_ref().map(|v| (field, relation, v)))
        .collect();
        if given.is_empty() && c.same_as.is_none() {
            let help = "add equals = .., less = .., greater = .., or same_as = { at = .. }";
            let message = "a constraint compares its quantity with nothing".into();
            return Err(self.err(place, "", message, help));
        }
        let equality = c.equals.is_some() || c.same_as.is_some();
        let other = given.iter().find(|(field, ..)| *field != "equals");
        let both = c.equals.is_some() && c.same_as.is_some();
        if let Some((field, ..)) = other
            .filter(|_| equality)
            .or(given.first().filter(|_| both))
        {
            let first = if c.equals.is_some() {
                "equals"
            } else {
                "same_as"
            };
            let second = if both { "same_as" } else { *field };
            let message = format!("a constraint has {first} and {second}");
            let help = "give one of equals and same_as, or less, greater or both; a second constraint for another";
            return Err(self.err(place, second, message, help));
        }
        let mut out = vec![];
        for (field, relation, v) in given {
            out.push((relation, self.values(place, field, v, named)?));
        }
        Ok(out)
    }

    /// Puts the rates of controls behind the outputs of the mechanism: one for each control, as
    /// [`crate::dynamics::Remember`] lists them, and behind them what [`crate::control::Extended`] does. What is wanted
    /// refers to names by index, costs and constraints to the first `asked`.
    fn sorted(
        self,
        (costs, constraints, extremes): Asked,
        [recorded, sights, watched]: [&[usize]; 3],
        asked: usize,
    ) -> Wanted {
        let mut outputs = vec![];
        let mut places = vec![];
        for n in &self.named {
            places.push(outputs.len());
            if let Named::Output(o) = n {
                outputs.push(*o);
            }
        }
        let parameters = outputs.len() + self.open;
        let sums = parameters + self.parameters.len();
        let formulas = sums + self.sums.len();
        for (place, n) in places.iter_mut().zip(&self.named) {
            match n {
                Named::Output(_) => (),
                Named::ControlRate(i) => *place = outputs.len() + i,
                Named::Parameter(i) => *place = parameters + i,
                Named::Sum(i) => *place = sums + i,
                Named::Formula(i) => *place = formulas + i,
            }
        }
        let quantity = |name: usize| QuantityId::new(places[name]);
        let cost = |(name, c): (usize, Cost)| Cost {
            quantity: quantity(name),
            ..c
        };
        let constraint = |(name, c): (usize, Constraint)| Constraint {
            quantity: quantity(name),
            ..c
        };
        let asked = || self.named[..asked].iter();
        let extreme = |e: Extreme| Bound {
            parameter: places[e.bound] - parameters,
            sign: e.sign,
            less: e.less.into_iter().map(quantity).collect(),
        };
        Wanted {
            bounds: extremes.into_iter().map(extreme).collect(),
            costs: costs.into_iter().map(cost).collect(),
            constraints: constraints.into_iter().map(constraint).collect(),
            remembers: asked().any(|n| matches!(n, Named::ControlRate(_))),
            sees_parameters: asked().any(|n| matches!(n, Named::Parameter(_))),
            recorded: recorded.iter().map(|n| quantity(*n)).collect(),
            sights: sights.iter().map(|n| quantity(*n)).collect(),
            watched: watched.iter().map(|n| quantity(*n)).collect(),
            sums: self.sums.iter().map(|s| s.sum(quantity)).collect(),
            formulas: self.formulas.iter().map(|f| f.formula(quantity)).collect(),
            profiles: self.profiles,
            parameters: self.parameters,
            outputs,
        }
    }

    /// An error at a field of a cost or a constraint; inner names are joined by dots.
    pub(super) fn err(
        &self,
        place: Place,
        field: &str,
        message: String,
        help: impl Into<String>,
    ) -> FormatError {
        let parts = place.iter().copied().chain([field]);
        let path: Vec<&str> = parts
            .flat_map(|f| f.split('.'))
            .filter(|f| !f.is_empty())
            .collect();
        self.source.error(&path, message, help)
    }

    /// The knots that are meant.
    pub(super) fn when(&self, place: Place, field: &str, at: &At) -> Result<When, FormatError> {
        let n = self.steps;
        let phase = |name: &str| {
            let phases = &self.grid.phases;
            phases.iter().find(|p| p.name == name).ok_or_else(|| {
                let names = phases.iter().map(|p| p.name.as_str());
                let message = format!("unknown phase `{name}`");
                self.err(place, field, message, nearest(name, names))
            })
        };
        let message = match at {
            At::Running => return Ok(When::Running),
            At::Start => return Ok(When::Knot(0)),
            At::End => return Ok(When::End),
            At::Phase(name) => {
                let p = phase(name)?;
                return Ok(When::Range(p.first, p.end - 1));
            }
            At::StartOf(name) => return Ok(When::Knot(phase(name)?.first)),
            At::EndOf(name) => {
                let end = phase(name)?.end;
                return Ok(if end == n { When::End } else { When::Knot(end) });
            }
            At::Knot(k) if *k > n => format!("there is no knot {k}"),
            At::Range(first, last) if first > last => {
                format!("the range from {first} to {last} holds no knot")
            }
            At::Range(_, last) if *last > n => format!("there is no knot {last}"),
            At::Knot(k) => return Ok(When::Knot(*k)),
            At::Range(first, last) => return Ok(When::Range(*first, *last)),
        };
        let help = format!("the horizon's knots are 0 to {n}; a range goes up");
        Err(self.err(place, field, message, help))
    }

    /// One number for each component, and what varies of all.
    fn values(
        &mut self,
        place: Place,
        field: &str,
        values: &Goal,
        named: &[usize],
    ) -> Result<Wish, FormatError> {
        let components = named.len();
        let of = if place[0] == "costs" {
            "a cost"
        } else {
            "a constraint"
        };
        let list = match values {
            Goal::One(v) => std::slice::from_ref(v),
            Goal::List(v) => v,
            Goal::Varying(signal) => {
                let folder = self.source.path().parent().unwrap_or(Path::new(""));
                let own = match named {
                    [one] => Some(self.title(*one).0),
                    _ => None,
                };
                let err = |(message, help): Complaint| {
                    self.err(place, field, format!("{field} of {of}: {message}"), help)
                };
                if signal.knots.is_some() && self.over != self.grid {
                    return Err(err((
                        "`knots` has a number for each knot of the file, and the command line asks for other knots".into(),
                        "change time_step and horizon in the file, or give the numbers over time: spline or csv".into(),
                    )));
                }
                // a function of time has a value at any knot
                let times = self.over.times();
                let profile =
                    signal::values(signal, folder, own.as_deref(), &times).map_err(err)?;
                self.profiles.push(profile);
                return Ok((vec![0.0; components], Some(self.profiles.len() - 1)));
            }
        };
        if let Some(v) = list.iter().find(|v| !v.is_finite()) {
            let message = format!("{field} of {of} is {v}");
            return Err(self.err(place, field, message, "expected a finite number"));
        }
        match values {
            Goal::List(v) if v.len() != components => {
                let message = format!(
                    "{field} of {of} has {} numbers, its quantity has {components}",
                    v.len()
                );
                let help = match components {
                    1 => "give one number, or leave the quantity's axis out",
                    _ => "give one number for each of x, y, z, or one for all",
                };
                Err(self.err(place, field, message, help))
            }
            Goal::List(v) => Ok((v.clone(), None)),
            _ => Ok((vec![list[0]; components], None)),
        }
    }

    /// Indices of the names of a quantity's components. `end`: it is looked at where no interval follows.
    pub(super) fn names(
        &mut self,
        place: Place,
        q: &Quantity,
        end: bool,
    ) -> Result<Vec<usize>, FormatError> {
        if let Some(made) = self.composite(place, q, end)? {
            return Ok(vec![made]);
        }
        let named = self.named(place, q, end)?;
        Ok(named.into_iter().map(|n| self.index(n)).collect())
    }

    /// The index of something named.
    pub(super) fn index(&mut self, n: Named) -> usize {
        let known = self.named.iter().position(|o| *o == n);
        known.unwrap_or_else(|| {
            self.named.push(n);
            self.named.len() - 1
        })
    }
}

/// Refuses forces that the equations do not determine.
pub(super) fn unique(
    source: &Source,
    spec: &ProblemSpec,
    system: &System,
) -> Result<(), FormatError> {
    let costs = spec.costs.iter().map(|c| &c.quantity).enumerate();
    let constraints = spec.constraints.iter().map(|c| &c.quantity).enumerate();
    let recorded = spec.record.iter().map(|r| &r.quantity).enumerate();
    let all = costs
        .map(|c| ("costs", c))
        .chain(constraints.map(|c| ("constraints", c)))
        .chain(recorded.map(|r| ("record", r)));
    for (list, (i, quantity)) in all {
        let (Quantity::ConstraintForce(r) | Quantity::ConstraintTorque(r)) = quantity else {
            continue;
        };
        let joint = system.mechanism().joint(&r.joint);
        if joint.is_some_and(|j| !system.has_unique_forces(j)) {
            let i = i.to_string();
            return Err(source.error(
                &[list, &i, "quantity"],
                format!(
                    "the constraint forces of joint `{}` are not unique: it is part of a loop, and {} constraint rows follow from others",
                    r.joint,
                    system.mobility().redundant_rows
                ),
                "free the loop's joints until `describe` shows no redundant rows, or choose a joint outside of loops",
            ));
        }
    }
    Ok(())
}
