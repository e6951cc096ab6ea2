//! The description of a mechanism, in Rust and in TOML with the same names, and its validation.

use super::body::{Body, Shape};
use super::joint::{Joint, JointKind};
use super::kinematics::Tree;
use super::spring::{Actuator, Drive, Spring};
use super::{Freedom, Mechanism};
use crate::spatial::{Mat3, Quat, Vec3};
use indexmap::IndexMap;
use nalgebra::Quaternion;
use serde::{Deserialize, Serialize};

/// What is wrong with a description: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}: {message}; {help}", .path.join("."))]
pub struct ModelError {
    /// The element as a path of names, as in the file: `joints`, `hinge`, `child`.
    pub path: Vec<String>,
    /// What was found and what was expected.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl ModelError {
    pub(crate) fn new<'a>(
        path: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into_iter().map(|s| s.as_ref().to_owned()).collect(),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Moments about the centre of mass, kg m^2: principal, or the full matrix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected inertia = [xx, yy, zz] or three rows of three numbers"
)]
pub enum Inertia {
    /// xx, yy, zz
    Principal([f64; 3]),
    /// Rows.
    Full([[f64; 3]; 3]),
}

/// A number for the joint's only free direction, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, or a list with one number per free direction of the joint"
)]
pub enum PerDirection {
    /// The same for every free direction.
    All(f64),
    /// One for each.
    Each(Vec<f64>),
}

/// An orientation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Orientation {
    /// Roll, pitch, yaw about fixed x, y, z, rad.
    Rpy([f64; 3]),
    /// w, x, y, z; need not be normalized.
    Quaternion([f64; 4]),
}

impl Orientation {
    /// As a unit quaternion; `None` if it is zero or not finite.
    pub fn quat(&self) -> Option<Quat> {
        match *self {
            Self::Rpy([r, p, y]) => [r, p, y]
                .iter()
                .all(|a| a.is_finite())
                .then(|| Quat::from_euler_angles(r, p, y)),
            Self::Quaternion([w, x, y, z]) => {
                Quat::try_new(Quaternion::new(w, x, y, z), 1e-6).filter(|q| q.w.is_finite())
            }
        }
    }
}

/// A body: `mass` with `inertia` or `shape`, or a `shape` with a `density`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodySpec {
    /// kg
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// kg/m^3, instead of the mass
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<f64>,
    /// Instead of a shape, or beside it when the shape is only to be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inertia: Option<Inertia>,
    /// Gives the inertia where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Flies freely: six coordinates of its own, under its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
}

impl BodySpec {
    /// A body of the given mass (kg); add an inertia or a shape.
    pub fn new(mass: f64) -> Self {
        Self {
            mass: Some(mass),
            ..Self::default()
        }
    }

    /// Principal moments about the centre of mass, kg m^2.
    pub fn inertia(mut self, principal: [f64; 3]) -> Self {
        self.inertia = Some(Inertia::Principal(principal));
        self
    }

    /// The full matrix, rows.
    pub fn inertia_matrix(mut self, rows: [[f64; 3]; 3]) -> Self {
        self.inertia = Some(Inertia::Full(rows));
        self
    }

    /// A homogeneous shape.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Nothing holds the body.
    pub fn free(mut self) -> Self {
        self.free = true;
        self
    }

    fn build(&self, name: &str) -> Result<Body, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["bodies", name, field], message, help)
        };
        if let Some(shape) = &self.shape
            && !shape.is_valid()
        {
            return Err(err(
                "shape",
                format!("body `{name}` has a shape with a length that is not positive"),
                "lengths are in m and positive",
            ));
        }
        let mass = match (self.mass, self.density, &self.shape) {
            (Some(m), None, _) => m,
            (None, Some(d), Some(s)) => d * s.volume(),
            (Some(_), Some(_), _) => {
                return Err(err(
                    "density",
                    format!("body `{name}` has a mass and a density"),
                    "give one of them",
                ));
            }
            (None, Some(_), None) => {
                return Err(err(
                    "density",
                    format!("body `{name}` has a density but no shape"),
                    "add a shape, or give mass and inertia",
                ));
            }
            (None, None, _) => {
                return Err(err(
                    "mass",
                    format!("body `{name}` has no mass"),
                    "add mass = ... (kg), or a density (kg/m^3) beside the shape",
                ));
            }
        };
        if !(mass > 0.0 && mass.is_finite()) {
            return Err(err(
                if self.mass.is_some() {
                    "mass"
                } else {
                    "density"
                },
                format!("mass of body `{name}` is {mass}, expected a positive number"),
                "every body needs mass, in kg",
            ));
        }
        let inertia = match (&self.inertia, &self.shape) {
            (Some(Inertia::Principal(d)), _) => Mat3::from_diagonal(&Vec3::from(*d)),
            (Some(Inertia::Full(rows)), _) => Mat3::from_fn(|i, j| rows[i][j]),
            (None, Some(s)) => s.inertia(mass),
            (None, None) => {
                return Err(err(
                    "mass",
                    format!("body `{name}` has neither inertia nor shape"),
                    "add inertia = [xx, yy, zz] or a shape",
                ));
            }
        };
        let size = inertia.amax();
        if (inertia - inertia.transpose()).amax() > 1e-9 * size || !size.is_finite() {
            return Err(err(
                "inertia",
                format!("inertia of body `{name}` is not symmetric"),
                "give a symmetric matrix about the centre of mass",
            ));
        }
        let m = inertia.symmetric_eigenvalues();
        // the factor exists where the moments are positive beyond rounding
        if m.min() <= 0.0 || inertia.cholesky().is_none() {
            return Err(err(
                "inertia",
                format!(
                    "inertia of body `{name}` has the principal moment {:e}, expected positive ones",
                    m.min()
                ),
                "moments are in kg m^2; a point mass needs a small positive inertia such as 1e-6",
            ));
        }
        if 2.0 * m.max() > m.sum() * (1.0 + 1e-9) {
            return Err(err(
                "inertia",
                format!(
                    "inertia of body `{name}` breaks the triangle inequality: the largest principal moment {:e} exceeds the sum of the others {:e}",
                    m.max(),
                    m.sum() - m.max()
                ),
                "no mass distribution has these moments; check units and the point they refer to",
            ));
        }
        Ok(Body {
            name: name.to_owned(),
            mass,
            inertia,
            shape: self.shape,
        })
    }
}

/// A joint. `parent` left out is the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointSpec {
    /// Which of the sixteen.
    pub kind: JointKind,
    /// Name of a body, or `world`.
    #[serde(default = "world", skip_serializing_if = "is_world")]
    pub parent: String,
    /// Name of a body.
    pub child: String,
    /// In the parent's frame; needed by kinds with one or two rows of a constraint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    /// From the parent's centre of mass, m.
    #[serde(default)]
    pub parent_anchor: [f64; 3],
    /// From the child's centre of mass, m.
    #[serde(default)]
    pub child_anchor: [f64; 3],
    /// Of the child in the parent at coordinates zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// N/m or N m/rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stiffness: Option<PerDirection>,
    /// Coordinate at which the spring is relaxed, m or rad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<PerDirection>,
    /// N s/m or N m s/rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<PerDirection>,
    /// All of the damper's impulse over an interval acts at its start, where the step solves for it: first order, for
    /// very stiff dampers. The default gives half of it to each end and is second order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
}

fn world() -> String {
    "world".into()
}

fn is_world(name: &str) -> bool {
    name == "world"
}

impl JointSpec {
    /// A joint of the given kind between the world and a child.
    pub fn new(kind: JointKind, child: &str) -> Self {
        Self {
            kind,
            parent: world(),
            child: child.into(),
            axis: None,
            parent_anchor: [0.0; 3],
            child_anchor: [0.0; 3],
            orientation: None,
            stiffness: None,
            rest: None,
            damping: None,
            implicit: false,
        }
    }

    /// The parent body.
    pub fn parent(mut self, name: &str) -> Self {
        self.parent = name.into();
        self
    }

    /// The axis, in the parent's frame.
    pub fn axis(mut self, axis: [f64; 3]) -> Self {
        self.axis = Some(axis);
        self
    }

    /// Anchors from the parent's and the child's centres of mass, m.
    pub fn anchors(mut self, parent: [f64; 3], child: [f64; 3]) -> Self {
        (self.parent_anchor, self.child_anchor) = (parent, child);
        self
    }

    /// Orientation of the child in the parent at coordinates zero.
    pub fn orientation(mut self, orientation: Orientation) -> Self {
        self.orientation = Some(orientation);
        self
    }

    /// A spring on every free direction.
    pub fn spring(mut self, stiffness: f64, rest: f64) -> Self {
        self.stiffness = Some(PerDirection::All(stiffness));
        self.rest = Some(PerDirection::All(rest));
        self
    }

    /// A damper on every free direction.
    pub fn damping(mut self, damping: f64) -> Self {
        self.damping = Some(PerDirection::All(damping));
        self
    }

    fn build(&self, name: &str, bodies: &IndexMap<String, BodySpec>) -> Result<Joint, ModelError> {
        let err = |field: &str, message: String, help: String| {
            ModelError::new(["joints", name, field], message, help)
        };
        let (parent, child) = ends("joints", name, &self.parent, &self.child, bodies)?;
        let axis = match self.axis {
            Some(a) => Vec3::from(a)
                .try_normalize(1e-9)
                .filter(|a| a.amax().is_finite())
                .ok_or_else(|| {
                    err(
                        "axis",
                        format!("axis of joint `{name}` has no direction: {a:?}"),
                        "give a vector of non-zero length in the parent's frame".into(),
                    )
                })?,
            None if self.kind.has_axis() => {
                return Err(err(
                    "kind",
                    format!(
                        "joint `{name}` of kind `{}` needs an axis",
                        self.kind.name()
                    ),
                    "add axis = [x, y, z] in the parent's frame".into(),
                ));
            }
            None => Vec3::z(),
        };
        let offset = match &self.orientation {
            Some(o) => o.quat().ok_or_else(|| {
                err(
                    "orientation",
                    format!("orientation of joint `{name}` is not a rotation"),
                    "give rpy in rad, or a quaternion w, x, y, z".into(),
                )
            })?,
            None => Quat::identity(),
        };
        for (field, anchor) in [
            ("parent_anchor", self.parent_anchor),
            ("child_anchor", self.child_anchor),
        ] {
            finite("joints", name, field, &anchor)?;
        }
        let mut joint = Joint::new(
            name.to_owned(),
            self.kind,
            (parent, child),
            axis,
            (self.parent_anchor.into(), self.child_anchor.into()),
            offset,
        );
        joint.implicit = self.implicit;
        let n = joint.directions.len();
        let numbers = |field: &str, value: &Option<PerDirection>, negative: bool| {
            let values = match value {
                None => vec![0.0; n],
                Some(_) if n == 0 => {
                    return Err(err(
                        field,
                        format!(
                            "joint `{name}` of kind `{}` has no free direction",
                            self.kind.name()
                        ),
                        format!("remove {field}, or choose another kind"),
                    ));
                }
                Some(PerDirection::All(v)) => vec![*v; n],
                Some(PerDirection::Each(v)) if v.len() == n => v.clone(),
                Some(PerDirection::Each(v)) => {
                    return Err(err(
                        field,
                        format!(
                            "joint `{name}` has {n} free directions, {field} has {} numbers",
                            v.len()
                        ),
                        "give one number, or one per free direction".into(),
                    ));
                }
            };
            match values
                .iter()
                .find(|v| !v.is_finite() || (!negative && **v < 0.0))
            {
                Some(v) => Err(err(
                    field,
                    format!("{field} of joint `{name}` is {v}"),
                    "expected a finite number that is not negative".into(),
                )),
                None => Ok(values),
            }
        };
        let stiffness = numbers("stiffness", &self.stiffness, false)?;
        let rest = numbers("rest", &self.rest, true)?;
        let damping = numbers("damping", &self.damping, false)?;
        for (i, d) in joint.directions.iter_mut().enumerate() {
            (d.stiffness, d.rest, d.damping) = (stiffness[i], rest[i], damping[i]);
        }
        Ok(joint)
    }
}

/// A spring and damper along the line between points of two bodies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpringSpec {
    /// Name of a body, or `world`.
    #[serde(default = "world", skip_serializing_if = "is_world")]
    pub parent: String,
    /// Name of a body.
    pub child: String,
    /// From the parent's centre of mass, m.
    #[serde(default)]
    pub parent_anchor: [f64; 3],
    /// From the child's centre of mass, m.
    #[serde(default)]
    pub child_anchor: [f64; 3],
    /// N/m
    #[serde(default)]
    pub stiffness: f64,
    /// Length at which the spring is relaxed, m.
    #[serde(default)]
    pub rest: f64,
    /// N s/m
    #[serde(default)]
    pub damping: f64,
}

/// In which frame a wrench's force stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrenchFrame {
    /// Fixed in the world.
    #[default]
    World,
    /// Turns with the body.
    Body,
}

/// A control: along a free direction of a `joint`, or a wrench on a `body`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActuatorSpec {
    /// Name of a joint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<String>,
    /// Free direction of the joint; needed where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// Name of a body, instead of a joint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Force per unit of control.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub force: [f64; 3],
    /// Frame of the force.
    #[serde(default)]
    pub frame: WrenchFrame,
    /// Where the force acts, body frame, m.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub point: [f64; 3],
    /// Torque per unit of control, body frame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub torque: [f64; 3],
    /// Smallest and largest control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
}

fn is_zero(v: &[f64; 3]) -> bool {
    *v == [0.0; 3]
}

impl ActuatorSpec {
    /// A force or torque on a joint with one free direction.
    pub fn joint(name: &str) -> Self {
        Self {
            joint: Some(name.into()),
            ..Self::default()
        }
    }

    /// A force (N per unit, fixed in the given frame) on a point of a body and a torque (N m per unit, body frame).
    pub fn wrench(body: &str, force: [f64; 3], frame: WrenchFrame, torque: [f64; 3]) -> Self {
        Self {
            body: Some(body.into()),
            force,
            frame,
            torque,
            ..Self::default()
        }
    }

    /// Which free direction of the joint.
    pub fn direction(mut self, name: &str) -> Self {
        self.direction = Some(name.into());
        self
    }

    /// Smallest and largest control.
    pub fn bounds(mut self, lower: f64, upper: f64) -> Self {
        self.bounds = Some([lower, upper]);
        self
    }

    fn build(
        &self,
        name: &str,
        bodies: &IndexMap<String, BodySpec>,
        joints: &[Joint],
    ) -> Result<Actuator, ModelError> {
        let err = |field: &str, message: String, help: String| {
            ModelError::new(["actuators", name, field], message, help)
        };
        let drive = match (&self.joint, &self.body) {
            (Some(joint), None) => {
                let index = joints
                    .iter()
                    .position(|j| j.name == *joint)
                    .ok_or_else(|| {
                        err(
                            "joint",
                            format!("actuator `{name}` refers to the unknown joint `{joint}`"),
                            nearest(joint, joints.iter().map(|j| j.name.as_str())),
                        )
                    })?;
                let free = &joints[index].directions;
                let names = || free.iter().map(|d| d.name).collect::<Vec<_>>().join(", ");
                let direction = match &self.direction {
                    Some(d) => free.iter().position(|f| f.name == d).ok_or_else(|| {
                        err(
                            "direction",
                            format!("joint `{joint}` has no free direction `{d}`"),
                            format!("its free directions: {}", names()),
                        )
                    })?,
                    None if free.len() == 1 => 0,
                    None => {
                        return Err(err(
                            "joint",
                            format!(
                                "joint `{joint}` has {} free directions, actuator `{name}` needs one",
                                free.len()
                            ),
                            if free.is_empty() {
                                "choose another joint".into()
                            } else {
                                format!("add direction = one of {}", names())
                            },
                        ));
                    }
                };
                if !is_zero(&self.force) || !is_zero(&self.torque) || !is_zero(&self.point) {
                    return Err(err(
                        "joint",
                        format!("actuator `{name}` on a joint takes no force, point or torque"),
                        "remove them, or drive a body instead".into(),
                    ));
                }
                Drive::Joint {
                    joint: index,
                    direction,
                }
            }
            (None, Some(body)) => {
                let index = bodies
                    .get_index_of(body)
                    .ok_or_else(|| unknown_body(["actuators", name, "body"], name, body, bodies))?;
                for (field, v) in [
                    ("force", self.force),
                    ("torque", self.torque),
                    ("point", self.point),
                ] {
                    finite("actuators", name, field, &v)?;
                }
                if is_zero(&self.force) && is_zero(&self.torque) {
                    return Err(err(
                        "body",
                        format!("actuator `{name}` exerts nothing on body `{body}`"),
                        "add force = [x, y, z] or torque = [x, y, z], per unit of control".into(),
                    ));
                }
                Drive::Wrench {
                    body: index,
                    force: self.force.into(),
                    in_body: self.frame == WrenchFrame::Body,
                    point: self.point.into(),
                    torque: self.torque.into(),
                }
            }
            _ => {
                return Err(ModelError::new(
                    ["actuators", name],
                    format!("actuator `{name}` needs a joint or a body, and not both"),
                    "add joint = \"...\", or body = \"...\" with force or torque",
                ));
            }
        };
        let bounds = match self.bounds {
            // infinite bounds are one-sided limits
            Some([l, u]) if l < u => Some((l, u)),
            None => None,
            Some(b) => {
                return Err(err(
                    "bounds",
                    format!("bounds of actuator `{name}` are {b:?}"),
                    "expected [smallest, largest]".into(),
                ));
            }
        };
        Ok(Actuator {
            name: name.to_owned(),
            drive,
            bounds,
        })
    }
}

/// A mechanism being described; the fields are those of the TOML form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanismBuilder {
    /// m/s^2; along -z unless told.
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
    /// Controls by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actuators: IndexMap<String, ActuatorSpec>,
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
            actuators: IndexMap::new(),
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

    /// Adds a control.
    pub fn actuator(mut self, name: &str, actuator: ActuatorSpec) -> Self {
        self.actuators.insert(name.into(), actuator);
        self
    }

    /// Checks everything and builds.
    ///
    /// # Errors
    /// The first element that is wrong, by name, with what was expected.
    pub fn build(&self) -> Result<Mechanism, ModelError> {
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
            let zero = (Vec3::zeros(), Vec3::zeros());
            joints.push(Joint::new(
                name.clone(),
                JointKind::Floating,
                (None, child),
                Vec3::z(),
                zero,
                Quat::identity(),
            ));
        }
        let (tree, lost) = Tree::new(bodies.len(), &joints);
        if let Some(&b) = lost.first() {
            let name = &bodies[b].name;
            return Err(ModelError::new(
                ["bodies", name],
                format!("body `{name}` is tied to nothing: no joints lead from it to the world"),
                "add a joint, or say free = true if it is to fly",
            ));
        }
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
                parent_anchor: s.parent_anchor.into(),
                child_anchor: s.child_anchor.into(),
                stiffness: s.stiffness,
                rest: s.rest,
                damping: s.damping,
            });
        }
        let actuators = self
            .actuators
            .iter()
            .map(|(name, a)| a.build(name, &self.bodies, &joints))
            .collect::<Result<_, _>>()?;
        Ok(Mechanism {
            bodies,
            joints,
            springs,
            actuators,
            gravity: self.gravity.into(),
            tree,
        })
    }
}

fn finite(kind: &str, name: &str, field: &str, v: &[f64; 3]) -> Result<(), ModelError> {
    if v.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    Err(ModelError::new(
        [kind, name, field],
        format!("{field} of `{name}` is not finite: {v:?}"),
        "give three finite numbers",
    ))
}

/// Parent and child by name.
fn ends(
    kind: &str,
    name: &str,
    parent: &str,
    child: &str,
    bodies: &IndexMap<String, BodySpec>,
) -> Result<(Option<usize>, usize), ModelError> {
    let find = |field: &str, body: &str| {
        bodies
            .get_index_of(body)
            .ok_or_else(|| unknown_body([kind, name, field], name, body, bodies))
    };
    if is_world(child) {
        return Err(ModelError::new(
            [kind, name, "child"],
            format!("child of `{name}` is the world"),
            "make the world the parent and the body the child",
        ));
    }
    let parent = if is_world(parent) {
        None
    } else {
        Some(find("parent", parent)?)
    };
    let child = find("child", child)?;
    if parent == Some(child) {
        return Err(ModelError::new(
            [kind, name, "child"],
            format!(
                "`{name}` ties body `{}` to itself",
                bodies.get_index(child).map_or("", |b| b.0)
            ),
            "parent and child must differ",
        ));
    }
    Ok((parent, child))
}

fn unknown_body(
    path: [&str; 3],
    name: &str,
    body: &str,
    bodies: &IndexMap<String, BodySpec>,
) -> ModelError {
    ModelError::new(
        path,
        format!("`{name}` refers to the unknown body `{body}`"),
        nearest(body, bodies.keys().map(String::as_str)),
    )
}

/// A remedy that names the closest valid name, and the others.
pub(crate) fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str> + Clone) -> String {
    let list = valid.clone().collect::<Vec<_>>().join("`, `");
    if list.is_empty() {
        return "there is none to refer to".into();
    }
    match valid
        .map(|v| (strsim::jaro_winkler(name, v), v))
        .max_by(|a, b| a.0.total_cmp(&b.0))
    {
        Some((score, best)) if score > 0.7 => {
            format!("did you mean `{best}`? valid names: `{list}`")
        }
        _ => format!("valid names: `{list}`"),
    }
}

impl Freedom {
    /// Does the direction turn?
    pub fn turns(self) -> bool {
        self != Self::Slide
    }
}
