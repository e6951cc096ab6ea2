//! Costs and constraints: from the names of a file to the outputs of a mechanism.

use super::problem::{AxisSpec, CostSpec, FrameSpec, Numbers, ProblemSpec, Quantity, ReactionSpec};
use super::source::{FormatError, Source, nearest};
use crate::control::{Constraint, Cost, Relation, When};
use crate::dynamics::QuantityId;
use crate::integrator::{Mechanical, System};
use crate::mechanism::{self, Mechanism, Reaction};
use crate::spatial::{Quat, Vec3};

/// Something named in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Named {
    Output(mechanism::Quantity),
    ControlRate(usize),
}

/// Turns names into outputs, each of them once.
pub(super) struct Quantities<'a> {
    source: &'a Source,
    mechanism: &'a Mechanism,
    /// Time steps of the horizon as the file gives it.
    steps: usize,
    named: Vec<Named>,
}

/// Costs and constraints, with what they refer to.
pub(super) struct Wanted {
    pub costs: Vec<Cost>,
    pub constraints: Vec<Constraint>,
    /// Quantities of the mechanism; those from place `outputs.len()` on are the rates of the controls.
    pub outputs: Vec<mechanism::Quantity>,
    /// Are there rates of controls among the quantities of costs and constraints?
    pub remembers: bool,
    /// Quantities that are written only.
    pub recorded: Vec<QuantityId>,
}

/// Place of a value in the file: a list's name, the index in it.
type Place<'a> = [&'a str; 2];

impl<'a> Quantities<'a> {
    pub fn new(source: &'a Source, mechanism: &'a Mechanism, steps: usize) -> Self {
        Self {
            source,
            mechanism,
            steps,
            named: vec![],
        }
    }

    /// Costs and constraints with their outputs.
    pub fn wanted(mut self, spec: &ProblemSpec) -> Result<Wanted, FormatError> {
        let (mut costs, mut constraints) = (vec![], vec![]);
        for (i, c) in spec.costs.iter().enumerate() {
            let i = i.to_string();
            let place = ["costs", i.as_str()];
            if !(c.weight >= 0.0 && c.weight.is_finite()) {
                let message = format!("weight of a cost is {}", c.weight);
                let help = "expected a number that is not negative";
                return Err(self.err(place, "weight", message, help));
            }
            self.when(place, c.at)?;
            let names = self.indices(place, &c.quantity, c.at, c.at.is_along())?;
            let targets = self.values(place, "target", &c.target, names.len())?;
            for (name, target) in names.into_iter().zip(targets) {
                costs.push((name, target, c));
            }
        }
        for (i, c) in spec.constraints.iter().enumerate() {
            let i = i.to_string();
            let place = ["constraints", i.as_str()];
            let given: Vec<_> = [
                ("equals", Relation::Equal, &c.equals),
                ("less", Relation::Less, &c.less),
                ("greater", Relation::Greater, &c.greater),
            ]
            .into_iter()
            .filter_map(|(field, relation, v)| v.as_ref().map(|v| (field, relation, v)))
            .collect();
            let (field, relation, v) = match given[..] {
                [one] => one,
                [] => {
                    let help = "add one of equals = .., less = .., greater = ..";
                    let message = "a constraint compares its quantity with nothing".into();
                    return Err(self.err(place, "", message, help));
                }
                [(a, ..), (b, ..), ..] => {
                    let message = format!("a constraint has {a} and {b}");
                    let help = "give one of equals, less, greater; a second constraint for another";
                    return Err(self.err(place, b, message, help));
                }
            };
            self.when(place, c.at)?;
            let names = self.indices(place, &c.quantity, c.at, false)?;
            let values = self.values(place, field, v, names.len())?;
            for (name, value) in names.into_iter().zip(values) {
                constraints.push((name, relation, value, c.at));
            }
        }
        let asked = self.named.len();
        let mut recorded = vec![];
        for (i, r) in spec.record.iter().enumerate() {
            let i = i.to_string();
            // where a quantity has no value a file has a gap
            let all = self.indices(["record", &i], &r.quantity, When::Running, true)?;
            recorded.extend(all);
        }
        Ok(self.sorted(costs, constraints, recorded, asked))
    }

    /// Puts the rates of controls behind the outputs of the mechanism: one for each control, as
    /// [`crate::dynamics::Remember`] lists them. What is wanted refers to names by index, costs and constraints to the
    /// first `asked`.
    fn sorted(
        self,
        costs: Vec<(usize, f64, &CostSpec)>,
        constraints: Vec<(usize, Relation, f64, When)>,
        recorded: Vec<usize>,
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
        for (place, n) in places.iter_mut().zip(&self.named) {
            if let Named::ControlRate(i) = n {
                *place = outputs.len() + i;
            }
        }
        let quantity = |name: usize| QuantityId::new(places[name]);
        let cost = |(name, target, c): (usize, f64, &CostSpec)| Cost {
            quantity: quantity(name),
            target,
            profile: None,
            weight: c.weight,
            when: c.at,
            form: c.form,
        };
        let constraint = |(name, relation, value, when)| Constraint {
            quantity: quantity(name),
            relation,
            value,
            profile: None,
            when,
        };
        let asked = &mut self.named[..asked].iter();
        Wanted {
            costs: costs.into_iter().map(cost).collect(),
            constraints: constraints.into_iter().map(constraint).collect(),
            remembers: asked.any(|n| matches!(n, Named::ControlRate(_))),
            recorded: recorded.into_iter().map(quantity).collect(),
            outputs,
        }
    }

    /// An error at a field of a cost or a constraint; inner names are joined by dots.
    fn err(
        &self,
        place: Place,
        field: &str,
        message: String,
        help: impl Into<String>,
    ) -> FormatError {
        let inner = field.split('.').filter(|f| !f.is_empty());
        let path: Vec<&str> = place.iter().copied().chain(inner).collect();
        self.source.error(&path, message, help)
    }

    /// Refuses knots that the horizon does not have.
    fn when(&self, place: Place, at: When) -> Result<(), FormatError> {
        let n = self.steps;
        let message = match at {
            When::Knot(k) if k > n => format!("there is no knot {k}"),
            When::Range(first, last) if first > last => {
                format!("the range from {first} to {last} holds no knot")
            }
            When::Range(_, last) if last > n => format!("there is no knot {last}"),
            _ => return Ok(()),
        };
        let help = format!("the horizon's knots are 0 to {n}; a range goes up");
        Err(self.err(place, "at", message, help))
    }

    /// One number for each component.
    fn values(
        &self,
        place: Place,
        field: &str,
        values: &Numbers,
        components: usize,
    ) -> Result<Vec<f64>, FormatError> {
        let of = if place[0] == "costs" {
            "a cost"
        } else {
            "a constraint"
        };
        if let Some(v) = values.as_slice().iter().find(|v| !v.is_finite()) {
            let message = format!("{field} of {of} is {v}");
            return Err(self.err(place, field, message, "expected a finite number"));
        }
        match values {
            Numbers::One(v) => Ok(vec![*v; components]),
            Numbers::List(v) if v.len() == components => Ok(v.clone()),
            Numbers::List(v) => {
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
        }
    }

    /// Indices of the names of a quantity's components. `along`: it is not looked at where no interval follows.
    fn indices(
        &mut self,
        place: Place,
        q: &Quantity,
        at: When,
        along: bool,
    ) -> Result<Vec<usize>, FormatError> {
        let end = !along && at.holds(self.steps, self.steps);
        let named = self.named(place, q, end)?;
        let index = |n: Named| {
            let known = self.named.iter().position(|o| *o == n);
            known.unwrap_or_else(|| {
                self.named.push(n);
                self.named.len() - 1
            })
        };
        Ok(named.into_iter().map(index).collect())
    }

    fn named(&self, place: Place, q: &Quantity, end: bool) -> Result<Vec<Named>, FormatError> {
        let one = |o: mechanism::Quantity| Ok(vec![Named::Output(o)]);
        let each =
            |field: &str, axis: &Option<AxisSpec>, make: &dyn Fn(Vec3) -> mechanism::Quantity| {
                let axes = self.axes(place, field, axis)?;
                Ok(axes.into_iter().map(|a| Named::Output(make(a))).collect())
            };
        match q {
            Quantity::Joint(name) => {
                let (joint, direction) = self.coordinate(place, "joint", name)?;
                one(mechanism::Quantity::Coordinate { joint, direction })
            }
            Quantity::JointRate(name) => {
                let (joint, direction) = self.coordinate(place, "joint_rate", name)?;
                one(mechanism::Quantity::Rate { joint, direction })
            }
            Quantity::IntervalRate(name) => {
                let (joint, direction) = self.coordinate(place, "interval_rate", name)?;
                one(mechanism::Quantity::IntervalRate { joint, direction })
            }
            Quantity::Control(name) => one(mechanism::Quantity::Control(
                self.control(place, "control", name, end)?,
            )),
            Quantity::ControlRate(name) => {
                let i = self.control(place, "control_rate", name, end)?;
                Ok(vec![Named::ControlRate(i)])
            }
            Quantity::Position(p) => {
                let body = self.body(place, "position", &p.body)?;
                let point = self.point(place, "position", &p.point)?;
                each("position", &p.axis, &|axis| mechanism::Quantity::Position {
                    body,
                    point,
                    axis,
                })
            }
            Quantity::Velocity(p) => {
                let body = self.body(place, "velocity", &p.body)?;
                let point = self.point(place, "velocity", &p.point)?;
                each("velocity", &p.axis, &|axis| mechanism::Quantity::Velocity {
                    body,
                    point,
                    axis,
                })
            }
            Quantity::Orientation(o) => {
                let body = self.body(place, "orientation", &o.body)?;
                let target = match &o.target {
                    None => Quat::identity(),
                    Some(t) => t.quat().ok_or_else(|| {
                        let message = format!("target orientation of `{}` is no rotation", o.body);
                        let help = "give rpy in rad, or a quaternion w, x, y, z";
                        self.err(place, "quantity.orientation.target", message, help)
                    })?,
                };
                each("orientation", &o.axis, &|axis| {
                    mechanism::Quantity::Orientation { body, target, axis }
                })
            }
            Quantity::AngularVelocity(s) => {
                let body = self.body(place, "angular_velocity", &s.body)?;
                let in_body = s.frame == FrameSpec::Body;
                each("angular_velocity", &s.axis, &|axis| {
                    mechanism::Quantity::AngularVelocity {
                        body,
                        axis,
                        in_body,
                    }
                })
            }
            Quantity::CenterOfMass(d) => each(
                "center_of_mass",
                &d.axis,
                &mechanism::Quantity::CenterOfMass,
            ),
            Quantity::CenterOfMassVelocity(d) => each(
                "center_of_mass_velocity",
                &d.axis,
                &mechanism::Quantity::CenterOfMassVelocity,
            ),
            Quantity::LinearMomentum(d) => each(
                "linear_momentum",
                &d.axis,
                &mechanism::Quantity::LinearMomentum,
            ),
            Quantity::AngularMomentum(d) => each("angular_momentum", &d.axis, &|axis| {
                mechanism::Quantity::AngularMomentum {
                    axis,
                    about: d.about,
                }
            }),
            Quantity::KineticEnergy => one(mechanism::Quantity::KineticEnergy),
            Quantity::PotentialEnergy => one(mechanism::Quantity::PotentialEnergy),
            Quantity::Energy => one(mechanism::Quantity::Energy),
            Quantity::ConstraintForce(r) => {
                self.reaction(place, "constraint_force", r, Reaction::Force, end)
            }
            Quantity::ConstraintTorque(r) => {
                self.reaction(place, "constraint_torque", r, Reaction::Torque, end)
            }
            Quantity::LimitForce(name) => self.limit_force(place, name, end),
            Quantity::JointFriction(name) => self.joint_friction(place, name, end),
            Quantity::ContactGap(name) => {
                self.contact(place, "contact_gap", name, mechanism::Quantity::Gap, end)
            }
            Quantity::ContactForce(name) => self.contact(
                place,
                "contact_force",
                name,
                mechanism::Quantity::NormalForce,
                end,
            ),
            Quantity::ContactFriction(name) => self.contact(
                place,
                "contact_friction",
                name,
                mechanism::Quantity::Friction,
                end,
            ),
            Quantity::ContactSlip(name) => {
                self.contact(place, "contact_slip", name, mechanism::Quantity::Slip, end)
            }
        }
    }

    fn contact(
        &self,
        place: Place,
        field: &str,
        name: &str,
        output: fn(usize) -> mechanism::Quantity,
        end: bool,
    ) -> Result<Vec<Named>, FormatError> {
        let names = || self.mechanism.contacts.iter().map(|c| c.name.as_str());
        let at = format!("quantity.{field}");
        let contact = names().position(|n| n == name).ok_or_else(|| {
            let message = format!("unknown contact `{name}`");
            self.err(place, &at, message, nearest(name, names()))
        })?;
        let output = output(contact);
        if end && output.needs().reactions {
            let message = "a contact force has no value at the end".into();
            let help = "it is the impulse of the interval behind its knot; look at a knot before";
            return Err(self.err(place, &at, message, help));
        }
        Ok(vec![Named::Output(output)])
    }

    fn limit_force(&self, place: Place, name: &str, end: bool) -> Result<Vec<Named>, FormatError> {
        let (joint, direction) = self.coordinate(place, "limit_force", name)?;
        let at = "quantity.limit_force";
        if !self.mechanism.joints[joint].directions[direction].is_limited() {
            let message = format!("`{name}` has no limits");
            let help = "give its joint `limits = [lower, upper]`, or name a joint that has them";
            return Err(self.err(place, at, message, help));
        }
        if end {
            let message = "a limit's force has no value at the end".into();
            let help = "it is the impulse of the interval behind its knot; look at a knot before";
            return Err(self.err(place, at, message, help));
        }
        Ok(vec![Named::Output(mechanism::Quantity::LimitForce {
            joint,
            direction,
        })])
    }

    fn joint_friction(
        &self,
        place: Place,
        name: &str,
        end: bool,
    ) -> Result<Vec<Named>, FormatError> {
        let (joint, direction) = self.coordinate(place, "joint_friction", name)?;
        let at = "quantity.joint_friction";
        if self.mechanism.joints[joint].directions[direction].friction == 0.0 {
            let message = format!("`{name}` has no friction");
            let help = "give its joint `friction`, or name a joint that has it";
            return Err(self.err(place, at, message, help));
        }
        if end {
            let message = "a joint's friction has no value at the end".into();
            let help = "it is the impulse of the interval behind its knot; look at a knot before";
            return Err(self.err(place, at, message, help));
        }
        Ok(vec![Named::Output(mechanism::Quantity::JointFriction {
            joint,
            direction,
        })])
    }

    fn reaction(
        &self,
        place: Place,
        field: &str,
        r: &ReactionSpec,
        kind: Reaction,
        end: bool,
    ) -> Result<Vec<Named>, FormatError> {
        let m = self.mechanism;
        let at = format!("quantity.{field}.joint");
        let joint = m.joint(&r.joint).ok_or_else(|| {
            let names = m.joints.iter().map(|j| j.name.as_str());
            let message = format!("unknown joint `{}`", r.joint);
            self.err(place, &at, message, nearest(&r.joint, names))
        })?;
        let (forces, torques) = m.joints[joint].kind.rows();
        let (rows, what) = match kind {
            Reaction::Force => (forces, "force"),
            Reaction::Torque => (torques, "torque"),
        };
        if rows == 0 {
            let message = format!("joint `{}` transmits no constraint {what}", r.joint);
            let help = format!(
                "a joint of kind `{}` leaves it free; choose another",
                m.joints[joint].kind.name()
            );
            return Err(self.err(place, &at, message, help));
        }
        if end {
            let message = format!("a constraint {what} has no value at the end");
            let help = "it is the impulse of the interval behind its knot; look at a knot before";
            return Err(self.err(place, "quantity", message, help));
        }
        let axes = self.axes(place, field, &r.axis)?;
        Ok(axes
            .into_iter()
            .map(|axis| Named::Output(mechanism::Quantity::Constraint { joint, kind, axis }))
            .collect())
    }

    fn control(
        &self,
        place: Place,
        field: &str,
        name: &str,
        end: bool,
    ) -> Result<usize, FormatError> {
        let names = || self.mechanism.actuators.iter().map(|a| a.name.as_str());
        let at = format!("quantity.{field}");
        if end {
            let message = "no control acts at the end".into();
            return Err(self.err(place, &at, message, "look at knots before the end"));
        }
        names().position(|n| n == name).ok_or_else(|| {
            let message = format!("unknown control `{name}`");
            self.err(place, &at, message, nearest(name, names()))
        })
    }

    fn coordinate(
        &self,
        place: Place,
        field: &str,
        name: &str,
    ) -> Result<(usize, usize), FormatError> {
        let m = self.mechanism;
        if let Some(id) = m.coordinates().find(|id| m.coordinate_name(*id) == name) {
            return Ok(id);
        }
        let at = format!("quantity.{field}");
        if let Some(joint) = m.joint(name) {
            let names: Vec<String> = (0..m.joints[joint].directions.len())
                .map(|i| m.coordinate_name((joint, i)))
                .collect();
            let message = format!(
                "joint `{name}` has {} coordinates, expected the name of one",
                names.len()
            );
            let help = if names.is_empty() {
                "it does not move; choose another joint".into()
            } else {
                format!("name one of: `{}`", names.join("`, `"))
            };
            return Err(self.err(place, &at, message, help));
        }
        let names: Vec<String> = m.coordinates().map(|id| m.coordinate_name(id)).collect();
        let help = nearest(name, names.iter().map(String::as_str));
        Err(self.err(place, &at, format!("unknown joint `{name}`"), help))
    }

    fn body(&self, place: Place, field: &str, name: &str) -> Result<usize, FormatError> {
        self.mechanism.body(name).ok_or_else(|| {
            let names = self.mechanism.bodies.iter().map(|b| b.name.as_str());
            let at = format!("quantity.{field}.body");
            let message = format!("unknown body `{name}`");
            self.err(place, &at, message, nearest(name, names))
        })
    }

    fn point(&self, place: Place, field: &str, point: &[f64; 3]) -> Result<Vec3, FormatError> {
        if point.iter().all(|v| v.is_finite()) {
            return Ok((*point).into());
        }
        let at = format!("quantity.{field}.point");
        let message = format!("point is {point:?}");
        Err(self.err(place, &at, message, "expected finite numbers, m"))
    }

    /// The axis given, or all three.
    fn axes(
        &self,
        place: Place,
        field: &str,
        axis: &Option<AxisSpec>,
    ) -> Result<Vec<Vec3>, FormatError> {
        let (found, shown) = match axis {
            None => return Ok(vec![Vec3::x(), Vec3::y(), Vec3::z()]),
            Some(AxisSpec::Name(name)) => (
                match name.as_str() {
                    "x" => Some(Vec3::x()),
                    "y" => Some(Vec3::y()),
                    "z" => Some(Vec3::z()),
                    _ => None,
                },
                format!("`{name}`"),
            ),
            Some(AxisSpec::Vector(v)) => (
                Vec3::from(*v)
                    .try_normalize(1e-9)
                    .filter(|a| a.iter().all(|v| v.is_finite())),
                format!("{v:?}"),
            ),
        };
        found.map(|a| vec![a]).ok_or_else(|| {
            let at = format!("quantity.{field}.axis");
            let message = format!("axis {shown} has no direction");
            let help = "expected \"x\", \"y\", \"z\" or a vector of non-zero length";
            self.err(place, &at, message, help)
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
