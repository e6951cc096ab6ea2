//! The description of what can be observed, in costs and constraints.

use super::describe_time::At;
use super::problem::AxisSpec;
use crate::control::Form;
pub use crate::mechanism::About;
use crate::mechanism::Orientation;
use serde::{Deserialize, Serialize};

/// Something that can be observed; joints with several coordinates name one, as `ball.rx`. Velocities, rates, momenta
/// and energies are those at the knot, second order. What has an `axis` is three quantities where none is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// A joint coordinate, m or rad.
    Joint(String),
    /// Its rate, m/s or rad/s.
    JointRate(String),
    /// Its increment over the interval before the knot by the interval, m/s or rad/s. The rate at a knot is the mean of
    /// those of two intervals and does not see what alternates from one to the next; this does.
    IntervalRate(String),
    /// A control, N or N m.
    Control(String),
    /// Change of a control from the knot before over the interval between, N/s or N m/s; zero at the first knot.
    ControlRate(String),
    /// World position of a point of a body along an axis, m.
    Position(PointSpec),
    /// World velocity of a point of a body along an axis, m/s.
    Velocity(PointSpec),
    /// Component of the rotation vector from a target orientation to that of a body, rad.
    Orientation(OrientationSpec),
    /// Angular velocity of a body about an axis, rad/s.
    AngularVelocity(SpinSpec),
    /// Position of the center of mass of all bodies along an axis of the world, m.
    CenterOfMass(DirectionSpec),
    /// Its velocity, m/s.
    CenterOfMassVelocity(DirectionSpec),
    /// Linear momentum of all bodies along an axis of the world, N s.
    LinearMomentum(DirectionSpec),
    /// Angular momentum of all bodies about an axis of the world, N m s.
    AngularMomentum(MomentumSpec),
    /// Kinetic energy of all bodies, J.
    KineticEnergy,
    /// Potential energy of gravity and springs, J.
    PotentialEnergy,
    /// Kinetic and potential energy, J.
    Energy,
    /// Force of a joint's constraint on its child along an axis of its parent, N.
    ConstraintForce(ReactionSpec),
    /// Torque of a joint's constraint on its child about an axis of its parent, N m.
    ConstraintTorque(ReactionSpec),
    /// Force or torque that a joint's limits exert along a coordinate, positive at the lower limit, N or N m.
    LimitForce(String),
    /// Force or torque that a joint's friction exerts along a coordinate, N or N m.
    JointFriction(String),
    /// What a spring exerts: of a joint along a coordinate, or by its name along the line between its points, where it is
    /// positive if it pushes them apart, N or N m.
    SpringForce(String),
    /// The same of a damper, N or N m.
    DamperForce(String),
    /// Power of all springs of a joint, or of a spring between points; positive where they give energy back, W.
    SpringPower(String),
    /// Power of the dampers there, never positive, W.
    DamperPower(String),
    /// Power of a control, W.
    Power(String),
    /// Signed distance of a contact, m.
    ContactGap(String),
    /// Normal force of a contact, N.
    ContactForce(String),
    /// Size of the friction force of a contact, N.
    ContactFriction(String),
    /// Size of the velocity with which a contact slides, m/s.
    ContactSlip(String),
    /// A parameter of `[parameters]`, a decided number of the start (`initial hinge`, `initial hinge rate`), a duration
    /// (`horizon`, or a phase's).
    Parameter(String),
    /// Time passed since the start, s.
    Time,
    /// The sum of a quantity along the way up to the knot, each times the interval behind its own.
    Integral(Box<IntegralSpec>),
    /// That, divided by the time over which it goes.
    Mean(Box<IntegralSpec>),
    /// What a quantity was at an earlier knot.
    ValueAt(Box<ValueSpec>),
    /// Quantities with weights, added up.
    Sum(SumSpec),
    /// One quantity divided by another: cost of transport, mean power.
    Ratio(Box<RatioSpec>),
    /// The largest value along the way, as a linear cost with a positive weight.
    Largest(Box<ExtremeSpec>),
    /// The smallest value along the way, as a linear cost with a negative weight: it is to be large.
    Smallest(Box<ExtremeSpec>),
}

/// What is to be small, or large, wherever it is looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtremeSpec {
    /// A quantity with one component.
    pub of: Quantity,
    /// Its size is meant, whatever the sign.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub size: bool,
    /// Along the whole way, or over a phase or a range.
    #[serde(default = "running")]
    pub over: At,
}

/// What is integrated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegralSpec {
    /// A quantity with one component.
    pub of: Quantity,
    /// What is integrated is its distance from here.
    #[serde(default)]
    pub target: f64,
    /// Itself (`linear`), half its square (`square`), its size (`absolute`).
    #[serde(default = "linear")]
    pub form: Form,
    /// Along the whole way, or over a phase or a range.
    #[serde(default = "running")]
    pub over: At,
}

/// A quantity at an earlier knot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueSpec {
    /// A quantity with one component.
    pub of: Quantity,
    /// One knot.
    pub at: At,
}

/// A weighted sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SumSpec {
    /// What is added up.
    pub terms: Vec<TermSpec>,
    /// A number beside them.
    #[serde(default)]
    pub plus: f64,
}

/// A quantity with a weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TermSpec {
    /// A quantity with one component.
    pub of: Quantity,
    /// Its weight.
    #[serde(default = "one")]
    pub times: f64,
}

/// A quotient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatioSpec {
    /// A quantity with one component.
    pub of: Quantity,
    /// What it is divided by.
    pub by: Quantity,
}

fn linear() -> Form {
    Form::Linear
}

fn running() -> At {
    At::Running
}

fn one() -> f64 {
    1.0
}

/// A point of a body, seen along an axis of the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// Name.
    pub body: String,
    /// From the center of mass, body frame, m.
    #[serde(default)]
    pub point: [f64; 3],
    /// In the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<AxisSpec>,
}

/// The rotation of a body from a target: components of `log(target^-1 q)`, unique below half a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrientationSpec {
    /// Name.
    pub body: String,
    /// In the world; the world's own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Orientation>,
    /// In the target's frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<AxisSpec>,
}

/// How a body turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpinSpec {
    /// Name.
    pub body: String,
    /// In the frame below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<AxisSpec>,
    /// Whose axis it is.
    #[serde(default)]
    pub frame: FrameSpec,
}

/// What an axis is fixed to.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FrameSpec {
    /// The world.
    #[default]
    World,
    /// The body.
    Body,
}

/// An axis of the world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionSpec {
    /// In the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<AxisSpec>,
}

/// An axis of the world, and the point it goes through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MomentumSpec {
    /// In the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<AxisSpec>,
    /// The point.
    #[serde(default)]
    pub about: About,
}

/// What a joint transmits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReactionSpec {
    /// Name.
    pub joint: String,
    /// In the parent's frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<AxisSpec>,
}
