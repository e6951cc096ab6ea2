//! What a problem says beside a robot's file: `[import]`.

use super::problem::{At, ConstraintSpec, Goal, Names, Quantity};
use crate::mechanism::{
    ActuatorSpec, ContactSpec, FrictionPairSpec, GearSpec, HalfSpaceSpec, Inertia, Limits,
    PerDirection, SpringSpec, TerrainSpec,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// How a robot's file (URDF) is taken, and what is added to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportSpec {
    /// Is the root link held by the world?
    #[serde(default)]
    pub base: Base,
    /// Are links tied by fixed joints one body?
    #[serde(default)]
    pub fixed_joints: FixedJoints,
    /// Do the file's limits of position stop joints? Yes by default.
    #[serde(default = "yes")]
    pub limits: bool,
    /// Are the file's limits of speed constraints of the problem? The mechanics know none.
    #[serde(default)]
    pub speed_limits: bool,
    /// Links whose collision shapes touch half-spaces and terrain, or `all` (by default, where there are any), or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contacts: Option<Names>,
    /// Coulomb's coefficient of these contacts.
    #[serde(default)]
    pub friction: f64,
    /// Further contacts, by link and name, in the link's frame.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub feet: IndexMap<String, IndexMap<String, ContactSpec>>,
    /// Groups of links whose collision shapes collide with those of other links, by the name of the group.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub self_contacts: IndexMap<String, SelfContactSpec>,
    /// Vertices of the convex hull of a collision mesh at most. By default as many as it takes to be smaller than the mesh by 0.1 % of its
    /// extents at most, up to 1000, to 128 with self-contacts, and to 32 over height fields or if a foot bounces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hull_vertices: Option<usize>,
    /// What is driven: `transmissions` of the file (by default, where there are any), `joints` (all that move), `none`, or a
    /// list of joints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controls: Option<Names>,
    /// Other masses and inertias.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub bodies: IndexMap<String, BodyChange>,
    /// Other numbers of joints.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub joints: IndexMap<String, JointChange>,
    /// m/s^2; along -z by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gravity: Option<[f64; 3]>,
    /// Half-spaces of the world, by name; a floor is `half_spaces.floor = {}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub half_spaces: IndexMap<String, HalfSpaceSpec>,
    /// Other solids of the world.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub terrain: IndexMap<String, TerrainSpec>,
    /// Friction coefficients of the contacts between two sides, as of a mechanism.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub friction_pairs: IndexMap<String, FrictionPairSpec>,
    /// Pairs that do not collide, as of a mechanism; a link stands for all its collision shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_pairs: Vec<[String; 2]>,
    /// Springs between points, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub springs: IndexMap<String, SpringSpec>,
    /// Joint coordinates that follow others.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub gears: IndexMap<String, GearSpec>,
    /// Further controls, or others in place of the file's.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actuators: IndexMap<String, ActuatorSpec>,
}

fn yes() -> bool {
    true
}

impl ImportSpec {
    /// What is done by default: a fixed base, and the file's own limits.
    pub fn usual() -> Self {
        Self {
            limits: true,
            ..Self::default()
        }
    }
}

/// Links whose collision shapes collide with those of other links. Shapes of one body, and of bodies connected by a joint, do
/// not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelfContactSpec {
    /// The links of the group, or `all` (the default): all with a collision shape that are in no other group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Names>,
    /// The mask: groups that they collide with; by default their own. Two shapes collide if one names the other's group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Vec<String>>,
}

impl SelfContactSpec {
    /// Does it take the links that no other group has?
    pub(super) fn is_all(&self) -> bool {
        self.links
            .as_ref()
            .is_none_or(|l| matches!(l.as_slice(), [one] if one == "all"))
    }
}

/// Rates between what a file allows, at every knot.
pub(super) fn keep_speeds(speeds: &[(String, f64)]) -> impl Iterator<Item = ConstraintSpec> {
    let each = speeds.iter().flat_map(|s| [(s, At::Running), (s, At::End)]);
    each.map(|((joint, speed), at)| ConstraintSpec {
        name: None,
        quantity: Quantity::JointRate(joint.clone()),
        equals: None,
        less: Some(Goal::One(*speed)),
        greater: Some(Goal::One(-*speed)),
        same_as: None,
        at,
    })
}

/// Is the root link held?
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// By the world.
    #[default]
    Fixed,
    /// It flies: six coordinates under its name.
    Free,
}

/// What becomes of fixed joints.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FixedJoints {
    /// Both links are one body, under the name and in the frame of the first.
    #[default]
    Merge,
    /// Links with a mass stay bodies of their own, and the joint has a force.
    Keep,
}

/// Numbers of a body that are not those of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyChange {
    /// kg
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// About the center of mass, kg m^2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inertia: Option<Inertia>,
}

/// Numbers of a joint that are not those of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointChange {
    /// N/m or N m/rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stiffness: Option<PerDirection>,
    /// m or rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<PerDirection>,
    /// N s/m or N m s/rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<PerDirection>,
    /// For stiff dampers; see [`JointSpec::implicit`](crate::mechanism::JointSpec::implicit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implicit: Option<bool>,
    /// N or N m
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friction: Option<PerDirection>,
    /// m or rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}
