//! Quantities of a state that costs, constraints, figures and files may see, with their derivatives.

mod body;
mod contact;
mod joint;
mod parameter;
#[cfg(test)]
mod tests;
mod whole;

pub(crate) use contact::Contacting;

use super::assembly::dot;
use super::{Maximal, Work};
use crate::dynamics::{Inputs, Seen, StepError, StepFailure};
use crate::spatial::{Quat, Vec3};

/// Something to observe at a knot. Velocities, rates, momenta and energies are those at the knot, second order. Axes
/// are unit vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// A joint coordinate, angles unwound.
    Coordinate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// Its rate.
    Rate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// Its increment over the interval before the knot, by the interval: what a sampled controller sees. No control
    /// enters.
    IntervalRate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// A control.
    Control(usize),
    /// World position of a point of a body along an axis, m.
    Position {
        /// Index of the body.
        body: usize,
        /// In the body frame, from the centre of mass, m.
        point: Vec3,
        /// In the world.
        axis: Vec3,
    },
    /// World velocity of a point of a body along an axis, m/s.
    Velocity {
        /// Index of the body.
        body: usize,
        /// In the body frame, from the centre of mass, m.
        point: Vec3,
        /// In the world.
        axis: Vec3,
    },
    /// Rotation of a body from a target: `axis . log(target^-1 q)`, rad. It jumps at half a turn from the target.
    Orientation {
        /// Index of the body.
        body: usize,
        /// Body to world.
        target: Quat,
        /// In the target's frame.
        axis: Vec3,
    },
    /// Angular velocity of a body about an axis, rad/s.
    AngularVelocity {
        /// Index of the body.
        body: usize,
        /// In the world, or in the body.
        axis: Vec3,
        /// Is the axis fixed to the body?
        in_body: bool,
    },
    /// Position of the centre of mass of all bodies along an axis of the world, `axis . sum m x / sum m`, m.
    CenterOfMass(Vec3),
    /// Its velocity, m/s.
    CenterOfMassVelocity(Vec3),
    /// Linear momentum of all bodies along an axis of the world, `axis . sum m v`, N s.
    LinearMomentum(Vec3),
    /// Angular momentum of all bodies about an axis of the world, `axis . sum (x - o) x m v + R J w`, N m s.
    AngularMomentum {
        /// In the world.
        axis: Vec3,
        /// The point `o`.
        about: About,
    },
    /// `1/2 sum m v'v + w'Jw`, J.
    KineticEnergy,
    /// Energy of gravity and springs, zero for gravity at the world's origin, J.
    PotentialEnergy,
    /// Kinetic and potential energy, J.
    Energy,
    /// What a joint's constraint exerts on its child, along an axis of the parent: the impulse of the step from the knot
    /// over half of the two intervals that meet there, N or N m. The force acts at the child's anchor. It has no value at
    /// the last knot, nor where rows are redundant (see [`Maximal::has_unique_forces`]).
    Constraint {
        /// Index of the joint.
        joint: usize,
        /// Force or torque.
        kind: Reaction,
        /// In the parent's frame.
        axis: Vec3,
    },
    /// Signed distance of a contact, by its index, m.
    Gap(usize),
    /// Normal force of a contact: the impulse at the knot over half of the two intervals that meet there, N. Like friction
    /// it has no value at the last knot.
    NormalForce(usize),
    /// Size of a contact's friction, N.
    Friction(usize),
    /// Speed with which the surfaces of a contact slide, m/s; it says something only where they touch.
    Slip(usize),
}

/// The point that an angular momentum refers to.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The world's origin.
    #[default]
    Origin,
    /// The centre of mass of all bodies.
    CenterOfMass,
}

/// What a constraint exerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// N
    Force,
    /// N m
    Torque,
}

impl Output {
    /// Does its value need the velocities at the knot?
    fn moves(&self) -> bool {
        matches!(
            self,
            Self::Rate { .. }
                | Self::Velocity { .. }
                | Self::AngularVelocity { .. }
                | Self::CenterOfMassVelocity(_)
                | Self::LinearMomentum(_)
                | Self::AngularMomentum { .. }
                | Self::KineticEnergy
                | Self::Energy
                | Self::Slip(_)
        )
    }

    /// Does its value need the unknowns of the step from the knot?
    pub(crate) fn needs_unknowns(&self) -> bool {
        matches!(
            self,
            Self::Constraint { .. } | Self::NormalForce(_) | Self::Friction(_)
        )
    }
}

/// Adjoints of what a quantity is computed from, at the knot: six numbers per body of displacements and velocities, and
/// those of the seam.
struct Pulled<'a> {
    velocity: &'a mut [f64],
    inputs: &'a mut Inputs,
    y: &'a mut [f64],
    /// Six numbers per body.
    scratch: &'a mut [f64],
}

impl Maximal {
    /// Name and unit of an output.
    pub fn output_name(&self, output: &Output) -> (String, String) {
        let m = &self.mechanism;
        let along = |axis: &Vec3| match axis.iamax() {
            _ if axis.amax() < 1.0 => "along an axis",
            i => ["x", "y", "z"][i],
        };
        let body = |i: usize| m.bodies[i].name.as_str();
        let (name, unit) = match *output {
            Output::Coordinate { joint, direction } => (
                m.coordinate_name((joint, direction)),
                m.joints[joint].directions[direction].unit_name(),
            ),
            Output::Rate { joint, direction } => {
                let name = m.coordinate_name((joint, direction));
                let unit = m.joints[joint].directions[direction].unit_name();
                return (format!("{name} rate"), format!("{unit}/s"));
            }
            Output::IntervalRate { joint, direction } => {
                let name = m.coordinate_name((joint, direction));
                let unit = m.joints[joint].directions[direction].unit_name();
                return (format!("{name} interval rate"), format!("{unit}/s"));
            }
            Output::Control(i) => (m.actuators[i].name.clone(), self.control_unit(i)),
            Output::Position { body: b, axis, .. } => {
                (format!("position of {} {}", body(b), along(&axis)), "m")
            }
            Output::Velocity { body: b, axis, .. } => {
                (format!("velocity of {} {}", body(b), along(&axis)), "m/s")
            }
            Output::Orientation { body: b, axis, .. } => (
                format!("orientation of {} {}", body(b), along(&axis)),
                "rad",
            ),
            Output::AngularVelocity {
                body: b,
                axis,
                in_body,
            } => {
                let frame = if in_body { " of its own" } else { "" };
                let name = format!("angular velocity of {} {}{frame}", body(b), along(&axis));
                (name, "rad/s")
            }
            Output::CenterOfMass(axis) => (format!("center of mass {}", along(&axis)), "m"),
            Output::CenterOfMassVelocity(axis) => {
                (format!("center of mass velocity {}", along(&axis)), "m/s")
            }
            Output::LinearMomentum(axis) => (format!("linear momentum {}", along(&axis)), "N s"),
            Output::AngularMomentum { axis, about } => {
                let about = match about {
                    About::Origin => "",
                    About::CenterOfMass => " about the center of mass",
                };
                (format!("angular momentum {}{about}", along(&axis)), "N m s")
            }
            Output::KineticEnergy => ("kinetic energy".into(), "J"),
            Output::PotentialEnergy => ("potential energy".into(), "J"),
            Output::Energy => ("energy".into(), "J"),
            Output::Constraint { joint, kind, axis } => {
                let (what, unit) = match kind {
                    Reaction::Force => ("force", "N"),
                    Reaction::Torque => ("torque", "N m"),
                };
                let name = &m.joints[joint].name;
                (format!("{name} constraint {what} {}", along(&axis)), unit)
            }
            Output::Gap(c) => (format!("gap of {}", m.contacts[c].name), "m"),
            Output::NormalForce(c) => (format!("normal force of {}", m.contacts[c].name), "N"),
            Output::Friction(c) => (format!("friction of {}", m.contacts[c].name), "N"),
            Output::Slip(c) => (format!("slip of {}", m.contacts[c].name), "m/s"),
        };
        (name, unit.into())
    }

    /// Unit of a control.
    pub fn control_unit(&self, i: usize) -> &'static str {
        match self.mechanism.actuators[i].drive {
            crate::mechanism::Drive::Joint { joint, direction } => {
                self.mechanism.joints[joint].directions[direction].force_unit()
            }
            // the control scales a wrench
            crate::mechanism::Drive::Wrench { .. } => "1",
        }
    }

    /// Does the motion determine the constraint forces of a joint? Not where it is part of a loop and rows of constraints
    /// follow from others: these share their force in any way.
    pub fn has_unique_forces(&self, joint: usize) -> bool {
        self.mobility.redundant_rows == 0 || !self.mechanism.in_loop(joint)
    }

    pub(super) fn observe_at(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let (at, x, u) = (&seen.at, seen.x, seen.u);
        if let Some(i) = which.iter().find(|i| **i >= self.outputs.len()) {
            return Err(self.no_output(seen, *i));
        }
        if which.iter().any(|&i| self.outputs[i].moves()) {
            self.readout(at, x, u, w)?;
        } else {
            self.prepare(at.readout(), x, u, w)?;
        }
        for (&i, out) in which.iter().zip(out) {
            *out = self.value(&self.outputs[i], seen, w)?;
        }
        Ok(())
    }

    /// Value of an output from what `w` holds of the knot.
    fn value(&self, output: &Output, seen: &Seen, w: &Work) -> Result<f64, StepError> {
        let m = &w.model;
        Ok(match *output {
            Output::Coordinate { joint, direction } => {
                let winding = self.winding(seen.x, joint);
                m.joints[joint].coordinate(direction, &w.relative[joint], winding)
            }
            Output::Rate { joint, direction } => {
                let j = &m.joints[joint];
                let (a, b) = m.ends(j, &w.poses);
                let row = j.direction_row(direction, a, b, &w.relative[joint]);
                dot(&w.trial, j.parent, j.child, &row)
            }
            Output::IntervalRate { joint, direction } => self.interval_rate(w, joint, direction),
            Output::Control(i) => seen.u[i],
            Output::Position { body, point, axis } => axis.dot(&w.poses[body].point(&point)),
            Output::Velocity { body, point, axis } => body::velocity(w, body, &point, &axis),
            Output::Orientation { body, target, axis } => {
                body::orientation(w, body, &target, &axis)
            }
            Output::AngularVelocity {
                body,
                axis,
                in_body,
            } => body::angular_velocity(w, body, &axis, in_body),
            Output::CenterOfMass(axis) => axis.dot(&whole::center_of_mass(w)),
            Output::CenterOfMassVelocity(axis) => axis.dot(&whole::linear_momentum(w)) / m.mass(),
            Output::LinearMomentum(axis) => axis.dot(&whole::linear_momentum(w)),
            Output::AngularMomentum { axis, about } => axis.dot(&whole::angular_momentum(w, about)),
            Output::KineticEnergy => whole::kinetic_energy(w),
            Output::PotentialEnergy => self.potential_energy(w),
            Output::Energy => whole::kinetic_energy(w) + self.potential_energy(w),
            Output::Constraint { joint, kind, axis } => {
                if seen.y.is_empty() || seen.at.after().is_none() {
                    return Err(self.no_interval(seen, joint));
                }
                self.constraint_force(w, seen, joint, kind, &axis)
            }
            Output::Gap(c) => self.contact_gap(w, c),
            Output::NormalForce(c) => {
                self.contact_interval(seen, c)?;
                self.contact_normal_force(seen, c)
            }
            Output::Friction(c) => {
                self.contact_interval(seen, c)?;
                self.contact_friction(seen, c)
            }
            Output::Slip(c) => self.slip(w, c),
        })
    }

    fn no_output(&self, seen: &Seen, quantity: usize) -> StepError {
        StepError {
            failure: StepFailure::NotFinite,
            element: format!("quantity {quantity}"),
            time: seen.at.t,
            residual: f64::NAN,
            message: format!(
                "there are {} outputs; rates of controls are quantities of the system that remembers them, `Remember`",
                self.outputs.len()
            ),
        }
    }

    fn no_interval(&self, seen: &Seen, joint: usize) -> StepError {
        StepError {
            failure: StepFailure::Interval,
            element: format!("joint `{}`", self.mechanism.joints[joint].name),
            time: seen.at.t,
            residual: f64::NAN,
            message: "a constraint force has no value at the last knot, where no interval follows; look at a knot before".into(),
        }
    }

    /// Adjoints at the knot that [`Maximal::observe_at`] was last called for: its poses, velocities and factors are in `w`.
    pub(super) fn observe_pull_at(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        let n = 6 * self.body_count();
        // adjoints of the velocities at the knot
        let mut readout = std::mem::take(&mut w.readout);
        let mut scratch = std::mem::take(&mut w.zminus);
        readout.y.fill(0.0);
        let mut pulled = Pulled {
            velocity: &mut readout.y[..n],
            inputs: out,
            y,
            scratch: &mut scratch,
        };
        for (&i, &g) in which.iter().zip(adjoint) {
            if g != 0.0 {
                self.pull_output(&self.outputs[i], g, seen, w, &mut pulled);
            }
        }
        w.zminus = scratch;
        if readout.y[..n].iter().any(|v| *v != 0.0) {
            // the read-out left its solution and its factors
            self.turn_elements(w);
            self.linearize_readout(w);
            let mut d = std::mem::take(&mut w.observed);
            self.pull_through(w, &readout, &mut d);
            add(&mut out.x, &d.x);
            add(&mut out.u, &d.u);
            add(&mut out.p, &d.p);
            out.h_prev += d.h_prev;
            w.observed = d;
        }
        w.readout = readout;
        self.pull_parameters(w, which, adjoint, &mut out.p);
    }

    /// Adds `g` times the derivative of an output, parameters apart.
    fn pull_output(&self, output: &Output, g: f64, seen: &Seen, w: &Work, out: &mut Pulled) {
        match *output {
            Output::Coordinate { joint, direction } => {
                joint::pull_coordinate(w, (joint, direction), g, out);
            }
            Output::Rate { joint, direction } => joint::pull_rate(w, (joint, direction), g, out),
            Output::IntervalRate { joint, direction } => {
                let id = (joint, direction);
                self.pull_interval_rate(w, id, g, out.scratch, out.inputs);
            }
            Output::Control(i) => out.inputs.u[i] += g,
            Output::Position { body, point, axis } => {
                body::pull_position(w, body, &point, &(axis * g), out);
            }
            Output::Velocity { body, point, axis } => {
                body::pull_velocity(w, body, &point, &(axis * g), out);
            }
            Output::Orientation { body, target, axis } => {
                body::pull_orientation(w, body, &target, &(axis * g), out);
            }
            Output::AngularVelocity {
                body,
                axis,
                in_body,
            } => body::pull_angular_velocity(w, body, &(axis * g), in_body, out),
            Output::CenterOfMass(axis) => whole::pull_center_of_mass(w, &(axis * g), out),
            Output::CenterOfMassVelocity(axis) => {
                whole::pull_linear_momentum(w, &(axis * (g / w.model.mass())), out);
            }
            Output::LinearMomentum(axis) => whole::pull_linear_momentum(w, &(axis * g), out),
            Output::AngularMomentum { axis, about } => {
                whole::pull_angular_momentum(w, &(axis * g), about, out);
            }
            Output::KineticEnergy => whole::pull_kinetic_energy(w, g, out),
            Output::PotentialEnergy => whole::pull_potential_energy(w, g, out),
            Output::Energy => {
                whole::pull_kinetic_energy(w, g, out);
                whole::pull_potential_energy(w, g, out);
            }
            Output::Constraint { joint, kind, axis } => {
                self.pull_constraint_force(w, seen, (joint, kind), &(axis * g), out);
            }
            Output::Gap(c) => self.pull_gap(w, c, g, out),
            Output::NormalForce(c) => self.pull_contact_force(seen, (c, false), g, out),
            Output::Friction(c) => self.pull_contact_force(seen, (c, true), g, out),
            Output::Slip(c) => self.pull_slip(w, c, g, out),
        }
    }
}

fn add(out: &mut [f64], d: &[f64]) {
    for (o, d) in out.iter_mut().zip(d) {
        *o += d;
    }
}
