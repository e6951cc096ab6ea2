//! The description of a problem as it stands in a TOML file. Values are checked when the model is built.

pub use super::contact::{ConeSpec, ContactMethodSpec, ImpactsSpec};
pub use super::describe_quantity::{
    About, DirectionSpec, ExtremeSpec, FrameSpec, IntegralSpec, MomentumSpec, OrientationSpec,
    PointSpec, Quantity, RatioSpec, ReactionSpec, SpinSpec, SumSpec, TermSpec, ValueSpec,
};
use super::forms::forms;
use crate::control::Form;
use crate::integrator::{Choice, ChoiceError, Controls, Substeps};
use crate::mechanism::{
    ActuatorSpec, BodySpec, FrictionPairSpec, GearSpec, HalfSpaceSpec, JointSpec, MechanismBuilder,
    MirrorSpec, SpringSpec, TerrainSpec,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use super::describe_episodes::{
    DistributionSpec, DistributionSpecs, DrawnStart, EndSpec, EpisodesSpec,
};
pub use super::describe_method::{MethodSpec, SmoothingSpec};
pub use super::describe_policy::*;
pub use super::describe_start::{
    FreeSpec, InitialRates, InitialSpec, InitialTable, Ranges, StartNumbers,
};
pub use super::describe_time::{At, ColumnSpec, Goal, PhaseSpec, SignalSpec, SineSpec};
pub use super::import::{Base, BodyChange, FixedJoints, ImportSpec, JointChange};

/// A trajectory wanted of a mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemSpec {
    /// For figures and reports; the file's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// s
    pub time_step: f64,
    /// s, a whole number of time steps; left out where there are phases
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// Smallest and largest horizon, s: it is then found, as the parameter `horizon`, and the time step with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon_bounds: Option<[f64; 2]>,
    /// Parts of the horizon one after the other, with durations of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSpec>,
    /// How the mechanism moves.
    #[serde(default)]
    pub integrator: IntegratorSpec,
    /// How its steps solve for contacts, joint limits and friction.
    #[serde(default)]
    pub contact: ContactMethodSpec,
    /// What moves.
    pub mechanism: MechanismSpec,
    /// How that is taken where it is a robot's file (URDF), and what is added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportSpec>,
    /// What rates at the start are of.
    #[serde(default)]
    pub initial_rates: InitialRates,
    /// Where it starts, by joint or free body; those left out start at zero, or at the limit nearest to it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub initial: IndexMap<String, InitialSpec>,
    /// Numbers of the mechanism to differentiate by and to find, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: IndexMap<String, ParameterSpec>,
    /// What computes the controls; without one they are decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
    /// Where the method starts.
    #[serde(default)]
    pub guess: GuessSpec,
    /// What is to be small.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostSpec>,
    /// How a control acts between knots.
    #[serde(default)]
    pub controls: Controls,
    /// How costs along the way are summed over the knots; by default to second order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quadrature: Option<QuadratureSpec>,
    /// What must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<ConstraintSpec>,
    /// What is written beside coordinates, controls, forces and energies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub record: Vec<RecordSpec>,
    /// Mechanisms and starts that differ, and share what is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<ScenarioSpec>,
    /// Rollouts that a learner learns from, where these are not one from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<EpisodesSpec>,
    /// The largest cost of any scenario is to be small, rather than the sum of all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worst_case: bool,
    /// Every scenario has controls of its own, and shares parameters alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_controls: bool,
    /// How it is solved.
    #[serde(default)]
    pub method: MethodSpec,
    /// Line work instead of the automatic one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawSpec>,
}

/// How costs along the way are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuadratureSpec {
    /// Each knot by the interval after it: of first order. The default of episodes that may end early, and of starts in motion, whose
    /// controls all act over one interval if the motion repeats itself.
    Left,
    /// To second order: half of both intervals that meet at a knot, and held controls by the interval that they act over.
    Trapezoidal,
}

impl ProblemSpec {
    /// Are costs along the way summed by the interval after their knot?
    pub fn sums_left(&self) -> bool {
        let ends = |e: &EpisodesSpec| !e.ends.is_empty();
        match self.quadrature {
            Some(rule) => rule == QuadratureSpec::Left,
            None => {
                self.initial_rates == InitialRates::Interval
                    || self.episodes.as_ref().is_some_and(ends)
            }
        }
    }
}

/// How a mechanism moves: the name of an integrator, or `auto` for the one taken by default, or a table of its settings.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum IntegratorSpec {
    /// Of second order.
    Name(String),
    /// With settings.
    Table(IntegratorTable),
}
forms!(IntegratorSpec, "the name of an integrator, or a table of its name and settings", text Name, table Table);

/// Name, order and accuracy of an integrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegratorTable {
    /// Name, or `auto` for the one taken by default.
    pub name: String,
    /// Order of the error in the time step, under controls that stay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
    /// Largest residual of a step that is accepted, N s, N m s, m and half rad, with contacts, limits or friction in joints m/s; 1e-10
    /// by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// In how many equal parts a step is made, or `auto`: in as many as its fastest swings ask for. One by default, but
    /// `auto` for `simulate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substeps: Option<SubstepsSpec>,
}

/// A number of equal parts, or `auto`.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum SubstepsSpec {
    /// A whole number.
    Count(f64),
    /// `auto`.
    Name(String),
}
forms!(SubstepsSpec, "a whole number of parts, or `auto`", number Count, text Name);

impl SubstepsSpec {
    /// What it says.
    pub(super) fn read(&self) -> Result<Substeps, ChoiceError> {
        match self {
            Self::Count(n) => Substeps::named(&n.to_string()),
            Self::Name(name) => Substeps::named(name),
        }
    }
}

impl Default for IntegratorSpec {
    fn default() -> Self {
        Self::Name(Choice::default().name().into())
    }
}

impl IntegratorSpec {
    /// Name.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Table(t) => &t.name,
        }
    }

    /// Largest residual, where one is given.
    pub fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Name(_) => None,
            Self::Table(t) => t.tolerance,
        }
    }

    /// In how many parts a step is made, where that is given.
    pub fn substeps(&self) -> Option<&SubstepsSpec> {
        match self {
            Self::Name(_) => None,
            Self::Table(t) => t.substeps.as_ref(),
        }
    }

    /// Order, where one is given.
    pub fn order(&self) -> Option<usize> {
        match self {
            Self::Name(_) => None,
            Self::Table(t) => t.order,
        }
    }
}

/// The mechanism, or the path of its file relative to the problem's.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum MechanismSpec {
    /// Path of a file.
    File(String),
    /// Written out.
    Inline(Box<MechanismBuilder>),
}
forms!(MechanismSpec, "a table, or the path of a mechanism file", text File, table Inline);

/// A number, or a list of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Numbers {
    /// One.
    One(f64),
    /// Several.
    List(Vec<f64>),
}
forms!(Numbers, "a number or a list of numbers", number One, list List);

impl Numbers {
    /// The numbers.
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::One(v) => std::slice::from_ref(v),
            Self::List(v) => v,
        }
    }
}

/// Controls from which the method starts, and which are simulated; states it may start from besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuessSpec {
    /// Zero where nothing is said.
    #[serde(default)]
    pub controls: ControlsSpec,
    /// Those that hold a pose are added to them: `true` for that of the start.
    #[serde(default, rename = "static", skip_serializing_if = "Option::is_none")]
    pub hold: Option<StaticSpec>,
    /// Added to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSpec>,
    /// States from which `ddp` starts; they need not follow from the controls. Those that do by default; `shooting` and
    /// `simulate` know no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<StatesSpec>,
}

/// A pose that is held.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum StaticSpec {
    /// That of the start; `false` holds none.
    Start(bool),
    /// Another one.
    Other(PoseSpec),
}
forms!(StaticSpec, "true, or a table such as { pose = { hinge = 1.0 } }", table Other, switch Start);

/// Where a mechanism is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoseSpec {
    /// Coordinates of joints and free bodies by name, m or rad; those left out are where they start, or follow where loops
    /// close.
    pub pose: IndexMap<String, Numbers>,
}

/// Joint coordinates at times, between which they are interpolated, or the path of a trajectory's CSV file.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum StatesSpec {
    /// Path relative to the problem's.
    File(String),
    /// At ascending times; at 0 the start holds.
    List(Vec<StateSpec>),
}
forms!(StatesSpec, "a list of tables { time, joints }, or the path of a trajectory's CSV file", list List, text File);

/// Where joints are guessed to be at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateSpec {
    /// s, after 0 and not after the horizon
    pub time: f64,
    /// Coordinates of joints and free bodies by name, m or rad. Those never given stay where they start, or follow where
    /// loops close.
    pub joints: IndexMap<String, Numbers>,
}

/// Controls by name (constant, or one per time step), or the path of a trajectory's CSV file with a column for each, read
/// by its times. At another time step they act as before: held ones from each row to the next and from the last on, with their
/// mean where a time step spans several; linear ones are interpolated. Rows of a file without a column `time` are the time steps.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ControlsSpec {
    /// Path relative to the problem's.
    File(String),
    /// By name, N or N m.
    Table(IndexMap<String, Numbers>),
}
forms!(ControlsSpec, "a table of controls, or the path of a CSV file", text File, table Table);

impl Default for ControlsSpec {
    fn default() -> Self {
        Self::Table(IndexMap::new())
    }
}

/// Normal noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseSpec {
    /// Standard deviation, N or N m.
    pub scale: f64,
    /// Of the random numbers.
    #[serde(default)]
    pub seed: u64,
}

/// A name, or a list of names.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Names {
    /// One.
    One(String),
    /// Several.
    List(Vec<String>),
}
forms!(Names, "a name or a list of names", list List, text One);

impl Names {
    /// The names.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(v) => std::slice::from_ref(v),
            Self::List(v) => v,
        }
    }
}

/// A parameter: numbers of the mechanism that are always equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterSpec {
    /// Paths of the numbers, as `joints.hinge.damping`; see [`crate::mechanism::Field`].
    pub of: Names,
    /// What it starts from; the mechanism's own value by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Smallest and largest value; where left out, whatever has a meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Differentiated by, but not changed by the method.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
}

/// `x`, `y`, `z` or a vector.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum AxisSpec {
    /// `x`, `y` or `z`
    Name(String),
    /// Need not be of unit length.
    Vector([f64; 3]),
}
forms!(AxisSpec, "\"x\", \"y\", \"z\" or a list of three numbers", list Vector, text Name);

/// `weight/2 (quantity - target)^2`, times the interval for running costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostSpec {
    /// By which scenarios give it other targets; several may share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is weighed.
    pub quantity: Quantity,
    /// In the quantity's unit; a list where the quantity has three components.
    #[serde(default = "zero")]
    pub target: Goal,
    /// Not negative, unless the form is linear: the quantity is then to be large.
    pub weight: f64,
    /// Along the way, at a knot, in a phase.
    #[serde(default = "running")]
    pub at: At,
    /// `square`; `linear`, `weight (quantity - target)`, as for an energy; `absolute`, `weight |quantity - target|`;
    /// `{ huber = delta }`, square up to that distance and absolute beyond.
    #[serde(default)]
    pub form: Form,
}

fn zero() -> Goal {
    Goal::One(0.0)
}

fn running() -> At {
    At::Running
}

/// `quantity = equals`, `quantity <= less`, `quantity >= greater` or the last two together, in the quantity's unit, a list
/// where the quantity has three components; or the same as a quantity at another knot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConstraintSpec {
    /// By which scenarios give it another value; several may share it, costs among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is held.
    pub quantity: Quantity,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Goal>,
    /// What it does not exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less: Option<Goal>,
    /// What it does not fall below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greater: Option<Goal>,
    /// What it repeats, as a gait does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<SameSpec>,
    /// At the end, along the way, at a knot, in a phase.
    #[serde(default = "end")]
    pub at: At,
}

fn end() -> At {
    At::End
}

/// `quantity = times other + plus`, with the other at an earlier knot: periodic, mirrored, or shifted by what is
/// travelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SameSpec {
    /// The other; the constraint's own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
    /// Where it is looked at: one knot.
    #[serde(default = "start")]
    pub at: At,
    /// By what it is multiplied.
    #[serde(default = "one")]
    pub times: f64,
    /// What is added, in the quantity's unit.
    #[serde(default)]
    pub plus: f64,
}

fn start() -> At {
    At::Start
}

fn one() -> f64 {
    1.0
}

/// A quantity with a column of its own in the trajectory's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// What is written.
    pub quantity: Quantity,
}

/// What tells a scenario apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSpec {
    /// Its name, and that of the directory of its results.
    pub name: String,
    /// Numbers of the mechanism by their paths, as `bodies.pole.mass`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub set: IndexMap<String, f64>,
    /// Joints and free bodies that start elsewhere than `[initial]` says.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub initial: IndexMap<String, InitialSpec>,
    /// Other targets of costs, and values of constraints, by their names.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub targets: IndexMap<String, Goal>,
    /// Disturbances of the start and the controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<DisturbanceSpec>,
    /// By what its costs are multiplied.
    #[serde(default = "one")]
    pub weight: f64,
}

/// Normal noise of a scenario, the same whenever it is simulated: standard deviations by the names of what is disturbed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DisturbanceSpec {
    /// Of the random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Of joints' coordinates at the start, m or rad.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub coordinates: IndexMap<String, f64>,
    /// Of their rates, m/s or rad/s.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rates: IndexMap<String, f64>,
    /// Added to controls, whoever decides them, anew at every knot, N or N m.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub controls: IndexMap<String, f64>,
}

/// Line work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrawSpec {
    /// Polylines by body (or `world`), in the body's frame, m.
    #[serde(default)]
    pub lines: IndexMap<String, Vec<Vec<[f64; 3]>>>,
}

/// A mechanism as a file of its own: the fields of [`MechanismBuilder`], and how to name and draw it. (Flattening the
/// builder in would lose the places of errors.)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MechanismFile {
    /// For figures and reports; the file's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// m/s^2; along -z by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gravity: Option<[f64; 3]>,
    /// Bodies by name.
    #[serde(default)]
    pub bodies: IndexMap<String, BodySpec>,
    /// Joints by name.
    #[serde(default)]
    pub joints: IndexMap<String, JointSpec>,
    /// Springs between points, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub springs: IndexMap<String, SpringSpec>,
    /// Joint coordinates that follow others, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub gears: IndexMap<String, GearSpec>,
    /// Half-spaces of the world that bodies may touch, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub half_spaces: IndexMap<String, HalfSpaceSpec>,
    /// Other solids of the world that bodies may touch, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub terrain: IndexMap<String, TerrainSpec>,
    /// Friction coefficients of the contacts between two sides, by a name of the pair.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub friction_pairs: IndexMap<String, FrictionPairSpec>,
    /// Pairs that do not collide, by the names of their two sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_pairs: Vec<[String; 2]>,
    /// Controls by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actuators: IndexMap<String, ActuatorSpec>,
    /// Parts that are repeated as mirror images, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub mirror: IndexMap<String, MirrorSpec>,
    /// Line work instead of the automatic one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawSpec>,
}

impl MechanismFile {
    /// The mechanism alone.
    pub fn builder(&self) -> MechanismBuilder {
        let gravity = self.gravity.unwrap_or(MechanismBuilder::new().gravity);
        MechanismBuilder {
            gravity,
            bodies: self.bodies.clone(),
            joints: self.joints.clone(),
            springs: self.springs.clone(),
            gears: self.gears.clone(),
            half_spaces: self.half_spaces.clone(),
            terrain: self.terrain.clone(),
            friction_pairs: self.friction_pairs.clone(),
            excluded_pairs: self.excluded_pairs.clone(),
            actuators: self.actuators.clone(),
            mirror: self.mirror.clone(),
            ..MechanismBuilder::default()
        }
    }
}
