//! The description of a problem as it stands in a TOML file. Values are checked when the model is built.

pub use super::contact::{ConeSpec, ContactMethodSpec};
pub use super::describe_quantity::{
    About, DirectionSpec, FrameSpec, MomentumSpec, OrientationSpec, PointSpec, Quantity,
    ReactionSpec, SpinSpec,
};
use crate::control::{Form, When};
use crate::integrator::Choice;
use crate::mechanism::{
    ActuatorSpec, BodySpec, GearSpec, HalfSpaceSpec, JointSpec, MechanismBuilder, Orientation,
    SpringSpec,
};
use crate::optimize::{Method, Options, ddp, shooting, unconstrained};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Implements `Deserialize` by the form of the value. Unlike serde's untagged enums this keeps the place of an error
/// within the value.
macro_rules! forms {
    ($type:ident, $expecting:literal $(, number $number:ident)? $(, list $list:ident)? $(, text $text:ident)?
        $(, table $table:ident)?
        $(, switch $switch:ident)?) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Forms;
                impl<'de> serde::de::Visitor<'de> for Forms {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    $(
                        fn visit_f64<E>(self, v: f64) -> Result<$type, E> {
                            Ok($type::$number(v))
                        }

                        fn visit_i64<E>(self, v: i64) -> Result<$type, E> {
                            Ok($type::$number(v as f64))
                        }

                        fn visit_u64<E>(self, v: u64) -> Result<$type, E> {
                            Ok($type::$number(v as f64))
                        }
                    )?
                    $(
                        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut a: A) -> Result<$type, A::Error> {
                            let d = serde::de::value::SeqAccessDeserializer::new(&mut a);
                            let list = Deserialize::deserialize(d).map($type::$list)?;
                            let mut more = 0;
                            while a.next_element::<serde::de::IgnoredAny>()?.is_some() {
                                more += 1;
                            }
                            match more {
                                0 => Ok(list),
                                _ => Err(serde::de::Error::custom(format!("a list that is {more} too long, expected {}", $expecting))),
                            }
                        }
                    )?
                    $(
                        fn visit_str<E>(self, v: &str) -> Result<$type, E> {
                            Ok($type::$text(v.to_owned()))
                        }
                    )?
                    $(
                        fn visit_bool<E>(self, v: bool) -> Result<$type, E> {
                            Ok($type::$switch(v))
                        }
                    )?
                    $(
                        fn visit_map<A: serde::de::MapAccess<'de>>(self, a: A) -> Result<$type, A::Error> {
                            Deserialize::deserialize(serde::de::value::MapAccessDeserializer::new(a)).map($type::$table)
                        }
                    )?
                }
                d.deserialize_any(Forms)
            }
        }
    };
}

/// A trajectory wanted of a mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemSpec {
    /// For figures and reports; the file's name unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// s
    pub time_step: f64,
    /// s, a whole number of time steps
    pub horizon: f64,
    /// How the mechanism moves.
    #[serde(default)]
    pub integrator: IntegratorSpec,
    /// How its steps solve for contacts, joint limits and friction.
    #[serde(default)]
    pub contact: ContactMethodSpec,
    /// What moves.
    pub mechanism: MechanismSpec,
    /// Where it starts, by joint or free body; those left out start at zero, or at the limit nearest to it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub initial: IndexMap<String, InitialSpec>,
    /// Numbers of the mechanism to differentiate by and to find, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: IndexMap<String, ParameterSpec>,
    /// Where the method starts.
    #[serde(default)]
    pub guess: GuessSpec,
    /// What is to be small.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostSpec>,
    /// What must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<ConstraintSpec>,
    /// What is written beside coordinates, controls, forces and energies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub record: Vec<RecordSpec>,
    /// How it is solved.
    #[serde(default)]
    pub method: MethodSpec,
    /// Line work instead of the automatic one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawSpec>,
}

/// How a mechanism moves: the name of an integrator, or `auto` for the one taken unless told, or its name and order.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum IntegratorSpec {
    /// Of second order.
    Name(String),
    /// Of the order given.
    Table(IntegratorTable),
}
forms!(IntegratorSpec, "the name of an integrator, or a table of its name and order", text Name, table Table);

/// Name and order of an integrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegratorTable {
    /// Name, or `auto` for the one taken unless told.
    pub name: String,
    /// Order of the error in the time step, under controls that stay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
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

/// Where a joint or a free body starts; a number or a list stands for its coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum InitialSpec {
    /// The joint's only coordinate, m or rad.
    Number(f64),
    /// One per coordinate, m or rad.
    List(Vec<f64>),
    /// With rates and more.
    Table(Box<InitialTable>),
}
forms!(InitialSpec, "a number, a list with one number per coordinate, or a table",
    number Number, list List, table Table);

/// Where a joint or a free body starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitialTable {
    /// Coordinates, m or rad; they stay as they are when loops are closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinate: Option<Numbers>,
    /// Coordinates from which loops are closed, m or rad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<Numbers>,
    /// m/s or rad/s
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Numbers>,
    /// Of a free body's centre of mass in the world, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[f64; 3]>,
    /// Of a free body in the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// Of a free body's centre of mass in the world, m/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub velocity: Option<[f64; 3]>,
    /// Of a free body, body frame, rad/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub angular_velocity: Option<[f64; 3]>,
}

/// Controls from which the method starts, and which are simulated; states it may start from besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuessSpec {
    /// Zero where nothing is said.
    #[serde(default)]
    pub controls: ControlsSpec,
    /// Added to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSpec>,
    /// States from which `ddp` starts; they need not follow from the controls. Those that do unless told; `shooting` and
    /// `simulate` know no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<StatesSpec>,
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
/// by its times: held from each row to the next and from the last on, their mean where a time step spans several. Rows
/// of a file without a column `time` are the time steps.
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
    /// What it starts from; the mechanism's own value unless told.
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
    /// What is weighed.
    pub quantity: Quantity,
    /// In the quantity's unit; a list where the quantity has three components.
    #[serde(default = "zero")]
    pub target: Numbers,
    /// Not negative.
    pub weight: f64,
    /// Along the way, at the end, at a knot or from one to another.
    #[serde(default = "running")]
    pub at: When,
    /// `square` or `linear`; a linear cost `weight (quantity - target)` is for what cannot fall below its target, as an
    /// energy.
    #[serde(default)]
    pub form: Form,
}

fn zero() -> Numbers {
    Numbers::One(0.0)
}

fn running() -> When {
    When::Running
}

/// `quantity = equals`, `quantity <= less` or `quantity >= greater`: one of the three, in the quantity's unit, a list
/// where the quantity has three components.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConstraintSpec {
    /// What is held.
    pub quantity: Quantity,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Numbers>,
    /// What it does not exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less: Option<Numbers>,
    /// What it does not fall below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greater: Option<Numbers>,
    /// At the end, along the way, at a knot or from one to another.
    #[serde(default = "end")]
    pub at: When,
}

fn end() -> When {
    When::End
}

/// A quantity with a column of its own in the trajectory's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// What is written.
    pub quantity: Quantity,
}

/// How a problem is solved; what is left out has the method's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MethodSpec {
    /// `ddp`, `shooting`, or one of argmin's solvers: `lbfgs`, `newton-cg`, `trust-region`, `gauss-newton`, `nelder-mead`,
    /// `particle-swarm`.
    #[serde(default = "ddp")]
    pub name: String,
    /// Largest violation of a constraint or a bound, in their units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// What the curvature still promises to gain, relative to the objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimality: Option<f64>,
    /// Iterations at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<f64>,
    /// Of `shooting` and `lbfgs`: pairs of steps and gradients that are remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// Of `particle-swarm`: where its random numbers begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Of `particle-swarm`: particles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<usize>,
    /// Of `ddp`: derivatives through contact are relaxed at first, and with `forward` the steps, too, from one parameter of
    /// the central path to the next, before they are those of hard contact. They are so from the beginning where this is
    /// `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<SmoothingSpec>,
}

/// Whether derivatives through contact are relaxed at first, and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum SmoothingSpec {
    /// As by default, or not at all.
    Switch(bool),
    /// By these levels.
    Levels(ddp::Smoothing),
}
forms!(SmoothingSpec, "a table such as { start = 1e-1 }, or false", table Levels, switch Switch);

fn ddp() -> String {
    Method::ALL[0].name().into()
}

impl Default for MethodSpec {
    fn default() -> Self {
        Self {
            name: ddp(),
            tolerance: None,
            optimality: None,
            max_iterations: None,
            memory: None,
            seed: None,
            population: None,
            penalty: None,
            smoothing: None,
        }
    }
}

impl MethodSpec {
    /// Settings of a method.
    pub fn of(&self, method: Method) -> Options {
        match method.argmin_solver() {
            Some(solver) => self.unconstrained(solver).into(),
            None if method == Method::Shooting => self.shooting().into(),
            None => self.ddp().into(),
        }
    }

    /// What is set that is no setting of a method, and whose it is.
    pub fn foreign(&self, method: Method) -> Vec<(&'static str, Method)> {
        let swarm = [Method::ParticleSwarm];
        let owned: [(_, &[Method], _); 4] = [
            (
                "memory",
                &[Method::Shooting, Method::Lbfgs],
                self.memory.is_some(),
            ),
            ("seed", &swarm, self.seed.is_some()),
            ("population", &swarm, self.population.is_some()),
            ("smoothing", &[Method::Ddp], self.smoothing.is_some()),
        ];
        owned
            .into_iter()
            .filter(|(_, owners, set)| *set && !owners.contains(&method))
            .map(|(field, owners, _)| (field, owners[0]))
            .collect()
    }

    /// Settings of differential dynamic programming.
    pub fn ddp(&self) -> ddp::Options {
        let default = ddp::Options::default();
        ddp::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            penalty: self.penalty.unwrap_or(default.penalty),
            smoothing: match self.smoothing {
                None | Some(SmoothingSpec::Switch(true)) => default.smoothing,
                Some(SmoothingSpec::Switch(false)) => None,
                Some(SmoothingSpec::Levels(levels)) => Some(levels),
            },
        }
    }

    /// Settings of single shooting.
    pub fn shooting(&self) -> shooting::Options {
        let default = shooting::Options::default();
        shooting::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            memory: self.memory.unwrap_or(default.memory),
            penalty: self.penalty.unwrap_or(default.penalty),
        }
    }

    /// Settings of one of argmin's solvers.
    pub fn unconstrained(&self, solver: unconstrained::Solver) -> unconstrained::Options {
        let default = unconstrained::Options::of(solver);
        unconstrained::Options {
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            optimality: self.optimality.unwrap_or(default.optimality),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            penalty: self.penalty.unwrap_or(default.penalty),
            memory: self.memory.unwrap_or(default.memory),
            seed: self.seed.unwrap_or(default.seed),
            population: self.population.unwrap_or(default.population),
            ..default
        }
    }
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
    /// For figures and reports; the file's name unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// m/s^2; along -z unless told.
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
    /// Controls by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actuators: IndexMap<String, ActuatorSpec>,
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
            actuators: self.actuators.clone(),
            ..MechanismBuilder::default()
        }
    }
}
