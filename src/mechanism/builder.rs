//! The description of a mechanism, in Rust and in TOML with the same names, and its validation.

pub use super::describe_actuator::{ActuatorSpec, WrenchFrame};
pub use super::describe_body::{BodySpec, Inertia};
pub use super::describe_contact::{ContactSpec, HalfSpaceSpec};
pub use super::describe_joint::{JointSpec, Limits, Orientation, PerDirection, SpringSpec};
use super::describe_pairs::FrictionPairSpec;
use super::describe_terrain::TerrainSpec;
use super::element::{Element, ElementSpec, HolonomicConstraint, Potential, VelocityConstraint};
use super::error::{ModelError, ends, finite, is_world};
use super::gear::GearSpec;
use super::joint::{Joint, JointKind};
use super::kinematics::Tree;
use super::mirror::MirrorSpec;
use super::rotation::default_law;
use super::spring::Spring;
use super::{Freedom, Mechanism, NamedParameter};
use crate::spatial::{Quat, Vec3};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A mechanism being described; the fields are those of the TOML form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MechanismBuilder {
    /// m/s^2; along -z by default.
    #[serde(default = "earth")]
    pub gravity: [f64; 3],
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
    /// Friction coefficients of the contacts between two sides, by a name of the pair; they replace those of the sides. If
    /// several match a contact, the last one holds.
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
    /// Parameters by name: the paths of the numbers each one sets, as `joints.hinge.damping`; a problem's file declares
    /// them in its own table.
    #[serde(skip)]
    pub parameters: IndexMap<String, Vec<String>>,
    /// Users' constraints and potentials by name; code, which no file holds.
    #[serde(skip)]
    pub elements: IndexMap<String, ElementSpec>,
}

fn earth() -> [f64; 3] {
    [0.0, 0.0, -9.81]
}

impl Default for MechanismBuilder {
    fn default() -> Self {
        Self {
            gravity: earth(),
            bodies: IndexMap::new(),
            joints: IndexMap::new(),
            springs: IndexMap::new(),
            gears: IndexMap::new(),
            half_spaces: IndexMap::new(),
            terrain: IndexMap::new(),
            friction_pairs: IndexMap::new(),
            excluded_pairs: vec![],
            actuators: IndexMap::new(),
            mirror: IndexMap::new(),
            parameters: IndexMap::new(),
            elements: IndexMap::new(),
        }
    }
}

impl MechanismBuilder {
    /// Nothing but gravity along -z.
    pub fn new() -> Self {
        Self::default()
    }

    /// m/s^2
    pub fn gravity(mut self, gravity: [f64; 3]) -> Self {
        self.gravity = gravity;
        self
    }

    /// Adds a body.
    pub fn body(mut self, name: &str, body: BodySpec) -> Self {
        self.bodies.insert(name.into(), body);
        self
    }

    /// Adds a joint.
    pub fn joint(mut self, name: &str, joint: JointSpec) -> Self {
        self.joints.insert(name.into(), joint);
        self
    }

    /// Adds a spring between points.
    pub fn spring(mut self, name: &str, spring: SpringSpec) -> Self {
        self.springs.insert(name.into(), spring);
        self
    }

    /// Makes a joint coordinate follow another.
    pub fn gear(mut self, name: &str, gear: GearSpec) -> Self {
        self.gears.insert(name.into(), gear);
        self
    }

    /// Adds a half-space that bodies may touch.
    pub fn half_space(mut self, name: &str, half_space: HalfSpaceSpec) -> Self {
        self.half_spaces.insert(name.into(), half_space);
        self
    }

    /// Adds a solid of the world that bodies may touch.
    pub fn terrain(mut self, name: &str, terrain: TerrainSpec) -> Self {
        self.terrain.insert(name.into(), terrain);
        self
    }

    /// Sets the friction coefficient of the contacts between two sides: contacts (`BODY.NAME`), bodies, half-spaces or
    /// terrain.
    pub fn friction_pair(mut self, name: &str, between: [&str; 2], friction: f64) -> Self {
        let between = between.map(str::to_owned);
        let pair = FrictionPairSpec { between, friction };
        self.friction_pairs.insert(name.into(), pair);
        self
    }

    /// Excludes the contacts between two sides.
    pub fn excluded_pair(mut self, sides: [&str; 2]) -> Self {
        self.excluded_pairs.push(sides.map(str::to_owned));
        self
    }

    /// Adds a holonomic constraint on the bodies named, in the order in which it expects their poses.
    pub fn constraint(self, name: &str, bodies: &[&str], c: Arc<dyn HolonomicConstraint>) -> Self {
        self.element(name, bodies, Element::Holonomic(c))
    }

    /// Adds a velocity constraint on the bodies named.
    pub fn velocity_constraint(
        self,
        name: &str,
        bodies: &[&str],
        c: Arc<dyn VelocityConstraint>,
    ) -> Self {
        self.element(name, bodies, Element::Velocity(c))
    }

    /// Adds a potential of the bodies named.
    pub fn potential(self, name: &str, bodies: &[&str], p: Arc<dyn Potential>) -> Self {
        self.element(name, bodies, Element::Potential(p))
    }

    fn element(mut self, name: &str, bodies: &[&str], element: Element) -> Self {
        let bodies = bodies.iter().map(|b| (*b).to_owned()).collect();
        self.elements
            .insert(name.into(), ElementSpec { bodies, element });
        self
    }

    /// Adds a control.
    pub fn actuator(mut self, name: &str, actuator: ActuatorSpec) -> Self {
        self.actuators.insert(name.into(), actuator);
        self
    }

    /// Repeats parts as mirror images.
    pub fn mirror(mut self, name: &str, mirror: MirrorSpec) -> Self {
        self.mirror.insert(name.into(), mirror);
        self
    }

    /// Declares a parameter: the numbers at these paths, always equal (see [`super::Field`]).
    pub fn parameter(mut self, name: &str, of: &[&str]) -> Self {
        let of = of.iter().map(|s| (*s).to_owned()).collect();
        self.parameters.insert(name.into(), of);
        self
    }

    /// Checks everything and builds.
    ///
    /// # Errors
    /// The first element that is wrong, by name, with what was expected.
    pub fn build(&self) -> Result<Mechanism, ModelError> {
        if !self.mirror.is_empty() {
            return self.mirrored()?.build();
        }
        if self.bodies.is_empty() {
            return Err(ModelError::new(
                ["bodies"],
                "the mechanism has no bodies",
                "add [bodies.NAME] with mass and inertia or shape",
            ));
        }
        if !self.gravity.iter().all(|g| g.is_finite()) {
            return Err(ModelError::new(
                ["gravity"],
                "gravity is not finite",
                "give m/s^2 along x, y, z",
            ));
        }
        let mut bodies = vec![];
        for (name, body) in &self.bodies {
            if name.trim().is_empty() {
                return Err(ModelError::new(
                    ["bodies", name],
                    "a body without a name",
                    "give it one: [bodies.NAME]",
                ));
            }
            if is_world(name) {
                return Err(ModelError::new(
                    ["bodies", name],
                    "a body is named `world`",
                    "that is the name of the ground; choose another",
                ));
            }
            bodies.push(body.build(name)?);
        }
        let mut joints = vec![];
        for (name, joint) in &self.joints {
            joints.push(joint.build(name, &self.bodies)?);
        }
        for (child, (name, _)) in self.bodies.iter().enumerate().filter(|(_, (_, b))| b.free) {
            if self.joints.contains_key(name) {
                return Err(ModelError::new(
                    ["bodies", name, "free"],
                    format!("free body `{name}` shares its name with a joint"),
                    "its coordinates go by its name; rename one of them",
                ));
            }
            let anchors = (Vec3::zeros(), bodies[child].origin);
            let mut free = Joint::new(
                name.clone(),
                JointKind::Floating,
                (None, child),
                Vec3::z(),
                anchors,
                Quat::identity(),
            );
            free.frees = true;
            joints.push(free);
        }
        for (b, (body, spec)) in bodies.iter_mut().zip(self.bodies.values()).enumerate() {
            if spec.rotation.is_none() {
                let inertia = (body.mass, &body.inertia);
                body.rotation = default_law(b, inertia, &joints, !spec.contacts.is_empty());
            }
        }
        let (tree, lost) = Tree::new(bodies.len(), &joints);
        if let Some(&b) = lost.first() {
            let name = &bodies[b].name;
            let is_lost = |b: usize| lost.contains(&b);
            let mut closing = joints.iter().filter(|j| j.closes);
            if let Some((j, own)) =
                closing.find_map(
                    |j| match (j.parent.is_some_and(is_lost), is_lost(j.child)) {
                        (true, false) => j.parent.map(|p| (j, p)),
                        (false, true) => Some((j, j.child)),
                        _ => None,
                    },
                )
            {
                return Err(ModelError::new(
                    ["joints", &j.name, "closes"],
                    format!(
                        "joint `{}` is to close a loop, but no other joints lead from body `{}` to the world",
                        j.name, bodies[own].name
                    ),
                    "remove closes = true, or add the joint that connects the body",
                ));
            }
            return Err(ModelError::new(
                ["bodies", name],
                format!("body `{name}` is tied to nothing: no joints lead from it to the world"),
                "add a joint, or say free = true if it is to fly",
            ));
        }
        let about_center = |body: Option<usize>, point: [f64; 3]| {
            body.map_or(point.into(), |b| self.bodies[b].about_center(point))
        };
        let mut springs = vec![];
        for (name, s) in &self.springs {
            let (parent, child) = ends("springs", name, &s.parent, &s.child, &self.bodies)?;
            for (field, v) in [
                ("stiffness", s.stiffness),
                ("rest", s.rest),
                ("damping", s.damping),
            ] {
                if !(v >= 0.0 && v.is_finite()) {
                    return Err(ModelError::new(
                        ["springs", name, field],
                        format!("{field} of spring `{name}` is {v}"),
                        "expected a finite number that is not negative",
                    ));
                }
            }
            for (field, v) in [
                ("parent_anchor", s.parent_anchor),
                ("child_anchor", s.child_anchor),
            ] {
                finite("springs", name, field, &v)?;
            }
            springs.push(Spring {
                name: name.clone(),
                parent,
                child,
                parent_anchor: about_center(parent, s.parent_anchor),
                child_anchor: about_center(Some(child), s.child_anchor),
                stiffness: s.stiffness,
                rest: s.rest,
                damping: s.damping,
                implicit: s.implicit,
            });
        }
        let places = joints.iter().enumerate();
        let places = places.map(|(i, j)| (j.name.as_str(), i)).collect();
        let actuators = self
            .actuators
            .iter()
            .map(|(name, a)| a.build(name, &self.bodies, &joints, &places))
            .collect::<Result<_, _>>()?;
        let ((half_spaces, colliders, contacts, excluded), friction_pairs) =
            self.touching(&bodies, &joints)?;
        let mut mechanism = Mechanism {
            half_spaces,
            colliders,
            contacts,
            excluded,
            friction_pairs,
            bodies,
            joints,
            springs,
            actuators,
            constraints: vec![],
            potentials: vec![],
            gravity: self.gravity.into(),
            parameters: vec![],
            tree,
        };
        mechanism.leave_out_still();
        mechanism.note_planes();
        mechanism.note_seams();
        self.attach(&mut mechanism)?;
        for (name, paths) in &self.parameters {
            let fields = paths
                .iter()
                .map(|path| mechanism.field(name, path))
                .collect::<Result<Vec<_>, _>>()?;
            let Some(first) = fields.first() else {
                return Err(ModelError::new(
                    ["parameters", name],
                    format!("parameter `{name}` sets nothing"),
                    "name what it is the value of, as of = \"joints.hinge.damping\"",
                ));
            };
            let value = mechanism.get(*first);
            for (field, path) in fields.iter().zip(paths) {
                if let Some(expected) = field.refuses(value) {
                    return Err(ModelError::new(
                        ["parameters", name],
                        format!("parameter `{name}` sets `{path}`, which starts at {value}"),
                        format!("{expected}: give it one in the mechanism's description"),
                    ));
                }
                mechanism.refuse_geared(name, path, *field)?;
                if mechanism.is_parameter(*field) {
                    return Err(ModelError::new(
                        ["parameters", name],
                        format!("`{path}` has two parameters"),
                        "leave it to one of them",
                    ));
                }
                mechanism.set(*field, value);
            }
            mechanism.parameters.push(NamedParameter {
                name: name.clone(),
                fields,
            });
        }
        for (tuned, field) in mechanism.parameter_fields() {
            if let Some([lower, upper]) = mechanism.disordered(field) {
                return Err(ModelError::new(
                    ["parameters", &tuned.name],
                    format!(
                        "parameter `{}` makes the range [{lower}, {upper}]",
                        tuned.name
                    ),
                    "expected [smallest, largest], the first below the second",
                ));
            }
        }
        Ok(mechanism)
    }
}

impl Freedom {
    /// Does the direction turn?
    pub fn turns(self) -> bool {
        self != Self::Slide
    }
}
