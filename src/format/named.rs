//! What of a mechanism a file names, as its quantities.

use super::problem::{AxisSpec, FrameSpec, Quantity, ReactionSpec};
use super::quantity::{Named, Place, Quantities};
use super::source::{FormatError, nearest};
use crate::mechanism::{self, Field, ForceOf, PowerOf, Reaction};
use crate::spatial::{Quat, Vec3};

/// What to do where an impulse is asked for at the last knot.
const NO_IMPULSE: &str = "it is the impulse of the interval after its knot, and the last knot has none; take a knot before it";

impl Quantities<'_> {
    pub(super) fn named(
        &self,
        place: Place,
        q: &Quantity,
        end: bool,
    ) -> Result<Vec<Named>, FormatError> {
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
                if self.open == 0 {
                    let message =
                        format!("`{name}` is what the policy makes of it, and has no rate");
                    let help = "weigh the control itself, or rates of joints";
                    return Err(self.err(place, "quantity.control_rate", message, help));
                }
                Ok(vec![Named::ControlRate(i)])
            }
            Quantity::Position(p) => {
                let body = self.body(place, "position", &p.body)?;
                let point = self.point(place, "position", body, &p.point)?;
                each("position", &p.axis, &|axis| mechanism::Quantity::Position {
                    body,
                    point,
                    axis,
                })
            }
            Quantity::Velocity(p) => {
                let body = self.body(place, "velocity", &p.body)?;
                let point = self.point(place, "velocity", body, &p.point)?;
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
            Quantity::SpringForce(name) => {
                let of = self.force_of(place, "spring_force", name)?;
                one(mechanism::Quantity::SpringForce(of))
            }
            Quantity::DamperForce(name) => {
                let of = self.force_of(place, "damper_force", name)?;
                one(mechanism::Quantity::DamperForce(of))
            }
            Quantity::SpringPower(name) => {
                let of = self.power_of(place, "spring_power", name)?;
                one(mechanism::Quantity::SpringPower(of))
            }
            Quantity::DamperPower(name) => {
                let of = self.power_of(place, "damper_power", name)?;
                one(mechanism::Quantity::DamperPower(of))
            }
            Quantity::Power(name) => one(mechanism::Quantity::ControlPower(
                self.control(place, "power", name, end)?,
            )),
            // see `composite`
            Quantity::Parameter(_)
            | Quantity::Time
            | Quantity::Integral(_)
            | Quantity::Mean(_)
            | Quantity::ValueAt(_)
            | Quantity::Sum(_)
            | Quantity::Ratio(_) => Ok(vec![]),
            Quantity::Largest(_) | Quantity::Smallest(_) => {
                let message =
                    "the largest or smallest value along the way has no place here".into();
                let help = "it is a cost; as a constraint, hold the quantity itself along the way";
                Err(self.err(place, "quantity", message, help))
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
            return Err(self.err(place, &at, message, NO_IMPULSE));
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
            return Err(self.err(place, at, message, NO_IMPULSE));
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
            return Err(self.err(place, at, message, NO_IMPULSE));
        }
        Ok(vec![Named::Output(mechanism::Quantity::JointFriction {
            joint,
            direction,
        })])
    }

    /// Whose spring or damper is meant: a coordinate's, or that between points.
    fn force_of(&self, place: Place, field: &str, name: &str) -> Result<ForceOf, FormatError> {
        let m = self.mechanism;
        let Some(spring) = self.spring(place, field, name)? else {
            let (joint, i) = self.coordinate(place, field, name)?;
            let d = &m.joints[joint].directions[i];
            let acts = match field {
                "spring_force" => {
                    d.stiffness != 0.0 || m.is_parameter(Field::Stiffness((joint, i)))
                }
                _ => d.damping != 0.0 || m.is_parameter(Field::Damping((joint, i))),
            };
            self.acts(place, field, name, acts)?;
            return Ok(ForceOf::Coordinate((joint, i)));
        };
        Ok(ForceOf::Spring(spring))
    }

    fn power_of(&self, place: Place, field: &str, name: &str) -> Result<PowerOf, FormatError> {
        let m = self.mechanism;
        if let Some(spring) = self.spring(place, field, name)? {
            return Ok(PowerOf::Spring(spring));
        }
        let joint = m.joint(name).ok_or_else(|| {
            let springs = m.springs.iter().map(|s| s.name.as_str());
            let names = m.joints.iter().map(|j| j.name.as_str()).chain(springs);
            let at = format!("quantity.{field}");
            let message = format!("unknown joint or spring `{name}`");
            self.err(place, &at, message, nearest(name, names))
        })?;
        let own = m.joints[joint].directions.iter().enumerate();
        let acts = match field {
            "spring_power" => own
                .clone()
                .any(|(i, d)| d.stiffness != 0.0 || m.is_parameter(Field::Stiffness((joint, i)))),
            _ => own
                .clone()
                .any(|(i, d)| d.damping != 0.0 || m.is_parameter(Field::Damping((joint, i)))),
        };
        self.acts(place, field, name, acts)?;
        Ok(PowerOf::Joint(joint))
    }

    /// A spring between points of that name, which no joint may have, too.
    fn spring(&self, place: Place, field: &str, name: &str) -> Result<Option<usize>, FormatError> {
        let m = self.mechanism;
        let found = m.springs.iter().position(|s| s.name == name);
        if found.is_some() && m.joint(name).is_some() {
            let message = format!("a joint and a spring are called `{name}`");
            let help = "give one of them another name";
            return Err(self.err(place, &format!("quantity.{field}"), message, help));
        }
        Ok(found)
    }

    /// Does a scenario set this number of a joint, which in another may be zero?
    fn is_set(&self, name: &str, number: &str) -> bool {
        let path = match name.split_once('.') {
            None => format!("joints.{name}.{number}"),
            Some((joint, direction)) => format!("joints.{joint}.{number}.{direction}"),
        };
        let scenarios = (0..).map(|k: usize| k.to_string());
        let mut there = scenarios.take_while(|k| self.source.has(&["scenarios", k.as_str()]));
        there.any(|k| {
            self.source
                .has(&["scenarios", k.as_str(), "set", path.as_str()])
        })
    }

    fn acts(&self, place: Place, field: &str, name: &str, acts: bool) -> Result<(), FormatError> {
        let (what, number) = match field {
            "spring_force" | "spring_power" => ("spring", "stiffness"),
            _ => ("damper", "damping"),
        };
        if acts || self.is_set(name, number) {
            return Ok(());
        }
        let message = format!("`{name}` has no {what}");
        let help = format!("give its joint `{number}`, or name a joint or a spring that has it");
        Err(self.err(place, &format!("quantity.{field}"), message, help))
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
            return Err(self.err(place, "quantity", message, NO_IMPULSE));
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
        self.coordinate_named(place, &format!("quantity.{field}"), name)
    }

    /// The coordinate of that name, which stands at `at` within `place`.
    pub(super) fn coordinate_named(
        &self,
        place: Place,
        at: &str,
        name: &str,
    ) -> Result<(usize, usize), FormatError> {
        let m = self.mechanism;
        if let Some(id) = m.coordinates().find(|id| m.coordinate_name(*id) == name) {
            return Ok(id);
        }
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
            return Err(self.err(place, at, message, help));
        }
        let names: Vec<String> = m.coordinates().map(|id| m.coordinate_name(id)).collect();
        let help = nearest(name, names.iter().map(String::as_str));
        Err(self.err(place, at, format!("unknown joint `{name}`"), help))
    }

    fn body(&self, place: Place, field: &str, name: &str) -> Result<usize, FormatError> {
        self.mechanism.body(name).ok_or_else(|| {
            let names = self.mechanism.bodies.iter().map(|b| b.name.as_str());
            let at = format!("quantity.{field}.body");
            let message = format!("unknown body `{name}`");
            self.err(place, &at, message, nearest(name, names))
        })
    }

    /// A point of a body's frame, from its center of mass.
    fn point(
        &self,
        place: Place,
        field: &str,
        body: usize,
        point: &[f64; 3],
    ) -> Result<Vec3, FormatError> {
        if point.iter().all(|v| v.is_finite()) {
            return Ok(self.mechanism.bodies[body].origin + Vec3::from(*point));
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
