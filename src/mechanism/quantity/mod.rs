//! What can be seen of a mechanism at a knot, with its derivatives: functions of poses, velocities, controls, reactions and
//! the intervals that meet there, whatever integrator they come from.
//!
//! A quantity is one arm of [`Quantity::value`], [`Quantity::pull`] and [`Quantity::by_field`], which call one file for
//! each kind of thing that is looked at.

mod body;
mod contact;
mod force;
mod joint;
mod name;
mod reaction;
#[cfg(test)]
mod tests;
mod whole;

pub use contact::{Acting, Contacting, StepInterval, contacting};

use super::wrench::vec3;
use super::{CoordinateId, Field, Joint, Mechanism, Relative};
use crate::spatial::{Pose, Quat, Vec3};
use std::ops::Range;

/// Something to observe at a knot. Velocities, rates, momenta and energies are those at the knot, second order. Axes
/// are unit vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
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
    /// enters. Of a step made in parts the interval is that of the last part.
    IntervalRate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// Its increment over the last `share` of the step before the knot, by the length of that. If it is not that of the last part, it is
    /// known to second order in smooth motion alone.
    LastRate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
        /// Above 0, up to 1.
        share: f64,
    },
    /// A control.
    Control(usize),
    /// The control of the knot before, where the system holds its controls; else zero, as at the start.
    PreviousControl(usize),
    /// World position of a point of a body along an axis, m.
    Position {
        /// Index of the body.
        body: usize,
        /// In the body frame, from the center of mass, m.
        point: Vec3,
        /// In the world.
        axis: Vec3,
    },
    /// World velocity of a point of a body along an axis, m/s.
    Velocity {
        /// Index of the body.
        body: usize,
        /// In the body frame, from the center of mass, m.
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
    /// Position of the center of mass of all bodies along an axis of the world, `axis . sum m x / sum m`, m.
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
    /// the last knot, nor where rows are redundant (see [`Mechanism::has_unique_forces`]).
    Constraint {
        /// Index of the joint.
        joint: usize,
        /// Force or torque.
        kind: Reaction,
        /// In the parent's frame.
        axis: Vec3,
    },
    /// What the limits of a joint's direction exert along it on the child, at the lower limit positive: as
    /// [`Quantity::Constraint`], N or N m.
    LimitForce {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// What the friction of a joint's direction exerts along it on the child: as [`Quantity::Constraint`], N or N m.
    JointFriction {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// What a spring exerts along a joint's coordinate on the child, `-stiffness (q - rest)`, or along the line between its
    /// points, there positive where it pushes them apart, N or N m.
    SpringForce(ForceOf),
    /// The same of a damper, `-damping rate`, N or N m.
    DamperForce(ForceOf),
    /// Power of a joint's springs, or of a spring between points: positive where they give back what they stored, W.
    SpringPower(PowerOf),
    /// Power of dampers, never positive, W.
    DamperPower(PowerOf),
    /// Power of a control, W.
    ControlPower(usize),
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
    /// The center of mass of all bodies.
    CenterOfMass,
}

/// Whose spring or damper exerts a force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForceOf {
    /// A joint's along a free direction.
    Coordinate(CoordinateId),
    /// That between two points, by its index.
    Spring(usize),
}

/// Whose springs or dampers have a power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOf {
    /// All of a joint.
    Joint(usize),
    /// That between two points, by its index.
    Spring(usize),
}

/// What a constraint exerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// N
    Force,
    /// N m
    Torque,
}

/// A mechanism at a knot: all that quantities are functions of. Lists of velocities hold six numbers a body: velocity in the world, angular
/// velocity in the body.
#[derive(Clone, Copy, Debug)]
pub struct KnotData<'a> {
    /// With the parameters that hold.
    pub mechanism: &'a Mechanism,
    /// Of all bodies.
    pub poses: &'a [Pose],
    /// At the knot, second order; anything where nothing [`Needs`] them.
    pub velocities: &'a [f64],
    /// The knot before.
    pub past: Past<'a>,
    /// Over the interval before the knot, six a body; at the start those given there. Empty where nothing moves.
    pub before: &'a [f64],
    /// Unwound angle of each joint, 0 where it has none.
    pub windings: &'a [f64],
    /// Controls that act.
    pub controls: &'a [f64],
    /// Impulses of the step from the knot, N s or N m s, in the order of [`Mechanism::reactions`]; empty where no step
    /// follows.
    pub reactions: &'a [f64],
    /// Length of the interval before the knot, s; 0 at the start. In a step made in parts it is that of the last part, as `past` and
    /// `before` are.
    pub h_prev: f64,
    /// Share of the step before the knot that this part is; 1 if it has no parts.
    pub part: f64,
    /// Length of the interval after it, s; 0 at the end.
    pub h: f64,
}

/// What of the [`KnotData`] quantities need beside poses, controls and intervals, which cost little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Velocities at the knot.
    pub velocities: bool,
    /// Poses at the knot before.
    pub past: bool,
    /// Reactions of the step from the knot.
    pub reactions: bool,
}

impl Needs {
    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self {
            velocities: self.velocities || other.velocities,
            past: self.past || other.past,
            reactions: self.reactions || other.reactions,
        }
    }
}

/// What an increment over the interval before a knot is seen by.
#[derive(Clone, Copy, Debug)]
pub enum Past<'a> {
    /// At the start, where no interval lies before: the velocities of the start.
    Start(&'a [f64]),
    /// Poses at the knot before; anything where nothing [`Needs`] them.
    Poses(&'a [Pose]),
}

/// Adjoints of [`KnotData`]. Lists by poses (displacement in the world, rotation in the body) and by velocities hold
/// six numbers a body.
#[derive(Clone, Debug, Default)]
pub struct Adjoint {
    /// By the poses.
    pub poses: Vec<f64>,
    /// By the velocities at the knot.
    pub velocities: Vec<f64>,
    /// By the poses at the knot before; at the start, by the velocities of the start.
    pub past: Vec<f64>,
    /// By the rates of the tree's coordinates at the knot, where the integrator reads these.
    pub rates: Vec<f64>,
    /// By the controls.
    pub controls: Vec<f64>,
    /// By the reactions.
    pub reactions: Vec<f64>,
    /// By the interval before.
    pub h_prev: f64,
    /// By the interval after.
    pub h: f64,
    scratch: whole::Scratch,
}

impl Adjoint {
    /// Zeros.
    pub fn new(m: &Mechanism) -> Self {
        let list = || vec![0.0; 6 * m.bodies.len()];
        Self {
            poses: list(),
            velocities: list(),
            past: list(),
            rates: vec![0.0; m.tree.coordinates],
            controls: vec![0.0; m.actuators.len()],
            reactions: vec![0.0; m.reaction_count()],
            h_prev: 0.0,
            h: 0.0,
            scratch: whole::Scratch::new(m),
        }
    }

    /// Sets everything to zero.
    pub fn clear(&mut self) {
        for list in [
            &mut self.poses,
            &mut self.velocities,
            &mut self.past,
            &mut self.rates,
            &mut self.controls,
            &mut self.reactions,
        ] {
            list.fill(0.0);
        }
        (self.h_prev, self.h) = (0.0, 0.0);
    }
}

/// Whose reactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactionSource {
    /// The constraint of a joint: a multiplier for each of its rows.
    Joint(usize),
    /// A contact: along the normal, then along the two tangents.
    Contact(usize),
    /// The limits of the `i`th of [`Mechanism::coordinates`]: one effort, at the lower limit positive.
    Limit(usize),
    /// Its friction: one effort, along the coordinate positive.
    Friction(usize),
}

impl Mechanism {
    /// Where the reactions of something stand among all: joints' rows, then three for each contact, then one for each
    /// coordinate's limits, then one for its friction.
    pub fn reactions(&self, of: ReactionSource) -> Range<usize> {
        let rows = |n: usize| self.joints[..n].iter().map(Joint::rows).sum::<usize>();
        let joints = self.joints.len();
        let (first, count) = match of {
            ReactionSource::Joint(j) => (rows(j), self.joints[j].rows()),
            ReactionSource::Contact(c) => (rows(joints) + 3 * c, 3),
            ReactionSource::Limit(i) => (rows(joints) + 3 * self.contacts.len() + i, 1),
            ReactionSource::Friction(i) => {
                let limits = self.reactions(ReactionSource::Limit(self.coordinates().count()));
                (limits.start + i, 1)
            }
        };
        first..first + count
    }

    /// How many numbers the reactions are.
    pub fn reaction_count(&self) -> usize {
        self.reactions(ReactionSource::Friction(self.coordinates().count()))
            .start
    }

    /// Does the motion determine the constraint forces of a joint? Not where it is part of a loop and rows of constraints
    /// follow from others, `redundant_rows` of them: these share their force in any way.
    pub fn has_unique_forces(&self, joint: usize, redundant_rows: usize) -> bool {
        redundant_rows == 0 || !self.in_loop(joint)
    }
}

impl<'a> KnotData<'a> {
    /// The poses of a joint's parent and child, and its relative pose.
    fn ends(&self, j: &Joint) -> (&'a Pose, &'a Pose, Relative) {
        let (a, b) = self.mechanism.ends(j, self.poses);
        (a, b, j.relative(a, b))
    }

    /// Velocity and angular velocity of a body.
    pub(crate) fn motion(&self, body: usize) -> (Vec3, Vec3) {
        let at = |i| vec3(self.velocities, 6 * body + i);
        (at(0), at(3))
    }

    /// Half of the intervals that meet at the knot, s.
    fn share(&self) -> f64 {
        0.5 * (self.h_prev + self.h)
    }

    /// Force or torque of a joint's constraint on its child, in the parent's frame, N or N m; none where no step follows.
    pub fn reaction(&self, joint: usize, kind: Reaction) -> Option<Vec3> {
        (!self.reactions.is_empty()).then(|| reaction::exerted(self, joint, kind))
    }

    /// A coordinate, angles unwound.
    fn coordinate(&self, joint: usize, direction: usize) -> f64 {
        let j = &self.mechanism.joints[joint];
        let (.., rel) = self.ends(j);
        j.coordinate(direction, &rel, self.windings[joint])
    }
}

impl Quantity {
    /// What its value needs.
    pub fn needs(&self) -> Needs {
        let velocities = matches!(
            self,
            Self::Rate { .. }
                | Self::LastRate { .. }
                | Self::Velocity { .. }
                | Self::AngularVelocity { .. }
                | Self::CenterOfMassVelocity(_)
                | Self::LinearMomentum(_)
                | Self::AngularMomentum { .. }
                | Self::KineticEnergy
                | Self::Energy
                | Self::DamperForce(_)
                | Self::SpringPower(_)
                | Self::DamperPower(_)
                | Self::ControlPower(_)
                | Self::Slip(_)
        );
        let reactions = matches!(
            self,
            Self::Constraint { .. }
                | Self::LimitForce { .. }
                | Self::JointFriction { .. }
                | Self::NormalForce(_)
                | Self::Friction(_)
        );
        Needs {
            velocities,
            past: matches!(self, Self::IntervalRate { .. } | Self::LastRate { .. }),
            reactions,
        }
    }

    /// What it needs of a mechanism: what [`Quantity::needs`] says, but that dampers without damping, which no parameter gives them,
    /// exert nothing at any velocity.
    pub fn needs_of(&self, m: &Mechanism) -> Needs {
        let needs = self.needs();
        let Self::DamperForce(of) = *self else {
            return needs;
        };
        let own = match of {
            ForceOf::Coordinate(id) => Field::Damping(id),
            ForceOf::Spring(s) => Field::SpringDamping(s),
        };
        let varies = m.parameters.iter().any(|p| p.fields.contains(&own));
        Needs {
            velocities: varies || force::damping(m, of) != 0.0,
            ..needs
        }
    }

    /// Value, from what is known of the knot. What it [needs](Quantity::needs_of) must be there.
    pub fn value(&self, k: &KnotData) -> f64 {
        match *self {
            Self::Coordinate { joint, direction } => k.coordinate(joint, direction),
            Self::Rate { joint, direction } => joint::rate(k, joint, direction),
            Self::IntervalRate { joint, direction } => {
                joint::interval_rate(k, (joint, direction), k.part)
            }
            Self::LastRate {
                joint,
                direction,
                share,
            } => joint::interval_rate(k, (joint, direction), share),
            Self::Control(i) => k.controls[i],
            // systems that hold their controls read it from their state
            Self::PreviousControl(_) => 0.0,
            Self::Position { body, point, axis } => axis.dot(&k.poses[body].point(&point)),
            Self::Velocity { body, point, axis } => body::velocity(k, body, &point, &axis),
            Self::Orientation { body, target, axis } => body::orientation(k, body, &target, &axis),
            Self::AngularVelocity {
                body,
                axis,
                in_body,
            } => body::angular_velocity(k, body, &axis, in_body),
            Self::CenterOfMass(axis) => axis.dot(&whole::center_of_mass(k)),
            Self::CenterOfMassVelocity(axis) => {
                axis.dot(&whole::linear_momentum(k)) / k.mechanism.mass()
            }
            Self::LinearMomentum(axis) => axis.dot(&whole::linear_momentum(k)),
            Self::AngularMomentum { axis, about } => axis.dot(&whole::angular_momentum(k, about)),
            Self::KineticEnergy => whole::kinetic_energy(k),
            Self::PotentialEnergy => whole::potential_energy(k),
            Self::Energy => whole::kinetic_energy(k) + whole::potential_energy(k),
            Self::Constraint { joint, kind, axis } => reaction::constraint(k, joint, kind, &axis),
            Self::LimitForce { joint, direction } => {
                reaction::effort(k, ReactionSource::Limit, (joint, direction))
            }
            Self::JointFriction { joint, direction } => {
                reaction::effort(k, ReactionSource::Friction, (joint, direction))
            }
            Self::SpringForce(of) => force::spring(k, of),
            Self::DamperForce(of) => force::damper(k, of),
            Self::SpringPower(of) => force::spring_power(k, of),
            Self::DamperPower(of) => force::damper_power(k, of),
            Self::ControlPower(i) => force::control_power(k, i),
            Self::Gap(c) => contact::gap(k, c),
            Self::NormalForce(c) => contact::forces(k, c)[0],
            Self::Friction(c) => contact::friction(k, c),
            Self::Slip(c) => contact::slip(k, c),
        }
    }

    /// Adds `g` times the derivatives of the value, parameters apart.
    pub fn pull(&self, k: &KnotData, g: f64, out: &mut Adjoint) {
        match *self {
            Self::Coordinate { joint, direction } => {
                joint::pull_coordinate(k, (joint, direction), g, out);
            }
            Self::Rate { joint, direction } => joint::pull_rate(k, (joint, direction), g, out),
            Self::IntervalRate { joint, direction } => {
                joint::pull_interval_rate(k, (joint, direction), k.part, g, out);
            }
            Self::LastRate {
                joint,
                direction,
                share,
            } => joint::pull_interval_rate(k, (joint, direction), share, g, out),
            Self::Control(i) => out.controls[i] += g,
            Self::PreviousControl(_) => {}
            Self::Position { body, point, axis } => {
                body::pull_position(k, body, &point, &(axis * g), out);
            }
            Self::Velocity { body, point, axis } => {
                body::pull_velocity(k, body, &point, &(axis * g), out);
            }
            Self::Orientation { body, target, axis } => {
                body::pull_orientation(k, body, &target, &(axis * g), out);
            }
            Self::AngularVelocity {
                body,
                axis,
                in_body,
            } => body::pull_angular_velocity(k, body, &(axis * g), in_body, out),
            Self::CenterOfMass(axis) => whole::pull_center_of_mass(k, &(axis * g), out),
            Self::CenterOfMassVelocity(axis) => {
                whole::pull_linear_momentum(k, &(axis * (g / k.mechanism.mass())), out);
            }
            Self::LinearMomentum(axis) => whole::pull_linear_momentum(k, &(axis * g), out),
            Self::AngularMomentum { axis, about } => {
                whole::pull_angular_momentum(k, &(axis * g), about, out);
            }
            Self::KineticEnergy => whole::pull_kinetic_energy(k, g, out),
            Self::PotentialEnergy => whole::pull_potential_energy(k, g, out),
            Self::Energy => {
                whole::pull_kinetic_energy(k, g, out);
                whole::pull_potential_energy(k, g, out);
            }
            Self::Constraint { joint, kind, axis } => {
                reaction::pull_constraint(k, (joint, kind), &(axis * g), out);
            }
            Self::LimitForce { joint, direction } => {
                reaction::pull_effort(k, ReactionSource::Limit, (joint, direction), g, out);
            }
            Self::JointFriction { joint, direction } => {
                reaction::pull_effort(k, ReactionSource::Friction, (joint, direction), g, out);
            }
            Self::SpringForce(of) => force::pull_spring(k, of, g, out),
            Self::DamperForce(of) => force::pull_damper(k, of, g, out),
            Self::SpringPower(of) => force::pull_spring_power(k, of, g, out),
            Self::DamperPower(of) => force::pull_damper_power(k, of, g, out),
            Self::ControlPower(i) => force::pull_control_power(k, i, g, out),
            Self::Gap(c) => contact::pull_gap(k, c, g, out),
            Self::NormalForce(c) => contact::pull_normal_force(k, c, g, out),
            Self::Friction(c) => contact::pull_friction(k, c, g, out),
            Self::Slip(c) => contact::pull_slip(k, c, g, out),
        }
    }

    /// Derivative of the value by a number of the mechanism, all else that is known held.
    pub fn by_field(&self, k: &KnotData, field: Field) -> f64 {
        match *self {
            Self::Coordinate { joint, direction } => {
                joint::coordinate_by(k, joint, direction, field)
            }
            Self::Rate { joint, direction } => joint::rate_by(k, joint, direction, field),
            Self::IntervalRate { joint, direction } => {
                joint::interval_rate_by(k, (joint, direction), k.part, field)
            }
            Self::LastRate {
                joint,
                direction,
                share,
            } => joint::interval_rate_by(k, (joint, direction), share, field),
            Self::CenterOfMass(axis) => whole::center_of_mass_by(k, &axis, field),
            Self::CenterOfMassVelocity(axis) => whole::drift_by(k, &axis, field),
            Self::LinearMomentum(axis) => whole::linear_momentum_by(k, &axis, field),
            Self::AngularMomentum { axis, about } => {
                whole::angular_momentum_by(k, &axis, about, field)
            }
            Self::KineticEnergy => whole::kinetic_energy_by(k, field),
            Self::PotentialEnergy => whole::potential_energy_by(k, field),
            Self::Energy => {
                whole::kinetic_energy_by(k, field) + whole::potential_energy_by(k, field)
            }
            Self::SpringForce(of) => force::spring_by(k, of, field),
            Self::DamperForce(of) => force::damper_by(k, of, field),
            Self::SpringPower(of) => force::spring_power_by(k, of, field),
            Self::DamperPower(of) => force::damper_power_by(k, of, field),
            Self::ControlPower(i) => force::control_power_by(k, i, field),
            Self::Gap(c) => contact::gap_by(k, c, field),
            Self::Slip(c) => contact::slip_by(k, c, field),
            // at given reactions the forces are what they are
            Self::Constraint { .. }
            | Self::LimitForce { .. }
            | Self::JointFriction { .. }
            | Self::NormalForce(_)
            | Self::Friction(_)
            | Self::Control(_)
            | Self::PreviousControl(_)
            | Self::Position { .. }
            | Self::Velocity { .. }
            | Self::Orientation { .. }
            | Self::AngularVelocity { .. } => 0.0,
        }
    }
}

fn add(out: &mut [f64], d: &[f64]) {
    for (o, d) in out.iter_mut().zip(d) {
        *o += d;
    }
}

fn unit(k: usize) -> Vec3 {
    Vec3::from_fn(|i, _| f64::from(u8::from(i == k)))
}
