//! What quantities are called, and their units.

use super::{About, ForceOf, PowerOf, Quantity, Reaction};
use crate::mechanism::Mechanism;
use crate::spatial::Vec3;

impl Quantity {
    /// Name and unit.
    pub fn name(&self, m: &Mechanism) -> (String, String) {
        let along = |axis: &Vec3| match axis.iamax() {
            _ if axis.amax() < 1.0 => "along an axis",
            i => ["x", "y", "z"][i],
        };
        let body = |i: usize| m.bodies[i].name.as_str();
        let coordinate = |joint: usize, i: usize| m.coordinate_name((joint, i));
        let unit = |joint: usize, i: usize| m.joints[joint].directions[i].unit_name();
        let contact = |c: usize| m.contacts[c].name.as_str();
        let (name, unit) = match *self {
            Self::Coordinate { joint, direction } => {
                (coordinate(joint, direction), unit(joint, direction))
            }
            Self::Rate { joint, direction } => {
                let name = format!("{} rate", coordinate(joint, direction));
                return (name, format!("{}/s", unit(joint, direction)));
            }
            Self::IntervalRate { joint, direction }
            | Self::LastRate {
                joint, direction, ..
            } => {
                let name = format!("{} interval rate", coordinate(joint, direction));
                return (name, format!("{}/s", unit(joint, direction)));
            }
            Self::Control(i) => (m.actuators[i].name.clone(), m.control_unit(i)),
            Self::PreviousControl(i) => {
                (format!("{} before", m.actuators[i].name), m.control_unit(i))
            }
            Self::Position { body: b, axis, .. } => {
                (format!("position of {} {}", body(b), along(&axis)), "m")
            }
            Self::Velocity { body: b, axis, .. } => {
                (format!("velocity of {} {}", body(b), along(&axis)), "m/s")
            }
            Self::Orientation { body: b, axis, .. } => (
                format!("orientation of {} {}", body(b), along(&axis)),
                "rad",
            ),
            Self::AngularVelocity {
                body: b,
                axis,
                in_body,
            } => {
                let frame = if in_body { " of its own" } else { "" };
                let name = format!("angular velocity of {} {}{frame}", body(b), along(&axis));
                (name, "rad/s")
            }
            Self::CenterOfMass(axis) => (format!("center of mass {}", along(&axis)), "m"),
            Self::CenterOfMassVelocity(axis) => {
                (format!("center of mass velocity {}", along(&axis)), "m/s")
            }
            Self::LinearMomentum(axis) => (format!("linear momentum {}", along(&axis)), "N s"),
            Self::AngularMomentum { axis, about } => {
                let about = match about {
                    About::Origin => "",
                    About::CenterOfMass => " about the center of mass",
                };
                (format!("angular momentum {}{about}", along(&axis)), "N m s")
            }
            Self::KineticEnergy => ("kinetic energy".into(), "J"),
            Self::PotentialEnergy => ("potential energy".into(), "J"),
            Self::Energy => ("energy".into(), "J"),
            Self::Constraint { joint, kind, axis } => {
                let (what, unit) = match kind {
                    Reaction::Force => ("force", "N"),
                    Reaction::Torque => ("torque", "N m"),
                };
                let name = &m.joints[joint].name;
                (format!("{name} constraint {what} {}", along(&axis)), unit)
            }
            Self::LimitForce { joint, direction } => {
                let d = &m.joints[joint].directions[direction];
                let what = if d.freedom.turns() { "torque" } else { "force" };
                let name = format!("{} limit {what}", coordinate(joint, direction));
                (name, d.force_unit())
            }
            Self::JointFriction { joint, direction } => {
                let d = &m.joints[joint].directions[direction];
                (
                    format!("{} friction", coordinate(joint, direction)),
                    d.force_unit(),
                )
            }
            Self::SpringForce(of) | Self::DamperForce(of) => {
                let kind = match self {
                    Self::SpringForce(_) => "spring",
                    _ => "damper",
                };
                let (name, is_torque) = match of {
                    ForceOf::Coordinate((j, i)) => {
                        (coordinate(j, i), m.joints[j].directions[i].freedom.turns())
                    }
                    ForceOf::Spring(s) => (m.springs[s].name.clone(), false),
                };
                let (what, unit) = match is_torque {
                    true => ("torque", "N m"),
                    false => ("force", "N"),
                };
                (format!("{name} {kind} {what}"), unit)
            }
            Self::SpringPower(of) | Self::DamperPower(of) => {
                let kind = match self {
                    Self::SpringPower(_) => "spring",
                    _ => "damper",
                };
                let name = match of {
                    PowerOf::Joint(j) => &m.joints[j].name,
                    PowerOf::Spring(s) => &m.springs[s].name,
                };
                (format!("{name} {kind} power"), "W")
            }
            Self::ControlPower(i) => (format!("{} power", m.actuators[i].name), "W"),
            Self::Gap(c) => (format!("gap of {}", contact(c)), "m"),
            Self::NormalForce(c) => (format!("normal force of {}", contact(c)), "N"),
            Self::Friction(c) => (format!("friction of {}", contact(c)), "N"),
            Self::Slip(c) => (format!("slip of {}", contact(c)), "m/s"),
        };
        (name, unit.into())
    }
}
