//! The description of what may touch: contacts on bodies, half-spaces of the world, and which of them meet.

use super::body::{Body, Shape};
use super::builder::{BodySpec, MechanismBuilder, Orientation};
use super::contact::{Collider, Contact, HalfSpace, Pair, Surface};
use super::error::{ModelError, finite};
use super::joint::Joint;
use crate::spatial::{Mat3, Vec3, rotation};
use serde::{Deserialize, Serialize};

/// What of a body touches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContactShape {
    /// A point.
    Point,
    /// As the shapes of bodies.
    #[serde(untagged)]
    Shape(Shape),
}

impl ContactShape {
    fn surface(self) -> Surface {
        match self {
            Self::Point => Surface::Point,
            Self::Shape(Shape::Sphere(r)) => Surface::Sphere(r),
            Self::Shape(Shape::Box(edges)) => Surface::Box(edges),
            Self::Shape(Shape::Capsule { radius, length }) => Surface::Capsule { radius, length },
            Self::Shape(Shape::Cylinder { radius, length }) => Surface::Cylinder { radius, length },
        }
    }
}

fn ground() -> String {
    "ground".into()
}

fn meets_ground() -> Vec<String> {
    vec![ground()]
}

/// A surface of a body that may touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContactSpec {
    /// What touches; the body's own shape unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ContactShape>,
    /// Its place, from the body's centre of mass, body frame, m.
    #[serde(default)]
    pub position: [f64; 3],
    /// Its orientation on the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// Coulomb friction coefficient; zero unless told.
    #[serde(default)]
    pub friction: f64,
    /// Ratio of speeds along the normal after and before an impact, 0 to 1; zero unless told. A law of impacts between
    /// rigid bodies at one step, not of elastic ones: what happens within a bounce is not resolved, and several contacts
    /// at once may gain or lose energy.
    #[serde(default)]
    pub restitution: f64,
    /// The group it is in; `bodies` unless told.
    #[serde(default = "bodies")]
    pub group: String,
    /// Groups it may touch; half-spaces are in `ground` unless told. Two colliders meet if one names the other's group.
    #[serde(default = "meets_ground")]
    pub against: Vec<String>,
}

fn bodies() -> String {
    "bodies".into()
}

impl Default for ContactSpec {
    fn default() -> Self {
        Self {
            shape: None,
            position: [0.0; 3],
            orientation: None,
            friction: 0.0,
            restitution: 0.0,
            group: bodies(),
            against: meets_ground(),
        }
    }
}

impl ContactSpec {
    /// The body's own shape, with a friction coefficient, against the ground.
    pub fn new(friction: f64) -> Self {
        Self {
            friction,
            ..Self::default()
        }
    }

    /// What touches, in place of the body's own shape.
    pub fn shape(mut self, shape: ContactShape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Place on the body, m.
    pub fn at(mut self, position: [f64; 3]) -> Self {
        self.position = position;
        self
    }

    /// The group it is in and those it may touch.
    pub fn group(mut self, group: &str, against: &[&str]) -> Self {
        self.group = group.into();
        self.against = against.iter().map(|g| (*g).to_owned()).collect();
        self
    }

    /// Ratio of speeds along the normal after and before an impact.
    pub fn restitution(mut self, restitution: f64) -> Self {
        self.restitution = restitution;
        self
    }

    fn build(
        &self,
        of: &str,
        name: &str,
        body: usize,
        own: Option<Shape>,
    ) -> Result<Collider, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["bodies", of, "contacts", name, field], message, help)
        };
        let Some(shape) = self.shape.or(own.map(ContactShape::Shape)) else {
            return Err(err(
                "shape",
                format!(
                    "contact `{name}` of body `{of}` has no shape, and its body has none either"
                ),
                "give shape = \"point\", { sphere = R }, { box = [A, B, C] }, { capsule = { radius, length } } or { cylinder = .. }",
            ));
        };
        if let ContactShape::Shape(s) = shape
            && !s.is_valid()
        {
            return Err(err(
                "shape",
                format!("contact `{name}` of body `{of}` has a length that is not positive"),
                "lengths are in m and positive",
            ));
        }
        if !(self.friction >= 0.0 && self.friction.is_finite()) {
            return Err(err(
                "friction",
                format!(
                    "friction of contact `{name}` of body `{of}` is {}",
                    self.friction
                ),
                "expected a finite number that is not negative",
            ));
        }
        if !(0.0..=1.0).contains(&self.restitution) {
            return Err(err(
                "restitution",
                format!(
                    "restitution of contact `{name}` of body `{of}` is {}",
                    self.restitution
                ),
                "expected a number from 0 to 1",
            ));
        }
        finite("contacts", name, "position", &self.position)?;
        let orientation = match &self.orientation {
            Some(o) => rotation(&o.quat().ok_or_else(|| {
                err(
                    "orientation",
                    format!("orientation of contact `{name}` of body `{of}` is not a rotation"),
                    "give rpy = [..] or quaternion = [w, x, y, z], finite and not zero",
                )
            })?),
            None => Mat3::identity(),
        };
        Ok(Collider {
            name: format!("{of}.{name}"),
            body,
            surface: shape.surface(),
            position: self.position.into(),
            orientation,
            friction: self.friction,
            restitution: self.restitution,
        })
    }
}

/// A half-space of the world, solid where `normal . x < offset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HalfSpaceSpec {
    /// Outward normal, of any length; along z unless told.
    #[serde(default = "up")]
    pub normal: [f64; 3],
    /// Distance of its surface from the origin along the normal, m.
    #[serde(default)]
    pub offset: f64,
    /// Coulomb friction coefficient; unless told, that of what touches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    /// The group it is in; `ground` unless told.
    #[serde(default = "ground")]
    pub group: String,
}

fn up() -> [f64; 3] {
    [0.0, 0.0, 1.0]
}

impl Default for HalfSpaceSpec {
    fn default() -> Self {
        Self {
            normal: up(),
            offset: 0.0,
            friction: None,
            group: ground(),
        }
    }
}

impl HalfSpaceSpec {
    fn build(&self, name: &str) -> Result<HalfSpace, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["half_spaces", name, field], message, help)
        };
        let normal = Vec3::from(self.normal);
        let length = normal.norm();
        if !(length > 0.0 && length.is_finite()) {
            return Err(err(
                "normal",
                format!("the normal of half-space `{name}` is {:?}", self.normal),
                "give a direction of finite length that is not zero",
            ));
        }
        if !self.offset.is_finite() {
            return Err(err(
                "offset",
                format!("the offset of half-space `{name}` is {}", self.offset),
                "give a finite distance in m",
            ));
        }
        if let Some(f) = self.friction
            && !(f >= 0.0 && f.is_finite())
        {
            return Err(err(
                "friction",
                format!("friction of half-space `{name}` is {f}"),
                "expected a finite number that is not negative",
            ));
        }
        Ok(HalfSpace {
            name: name.into(),
            normal: normal / length,
            offset: self.offset,
            friction: self.friction,
        })
    }
}

/// Half-spaces, colliders, and the contacts between them.
pub(super) type Touching = (Vec<HalfSpace>, Vec<Collider>, Vec<Contact>);

impl MechanismBuilder {
    /// Everything that may touch.
    pub(super) fn touching(
        &self,
        bodies: &[Body],
        joints: &[Joint],
    ) -> Result<Touching, ModelError> {
        let half_spaces = self
            .half_spaces
            .iter()
            .map(|(name, h)| h.build(name))
            .collect::<Result<Vec<_>, _>>()?;
        let (mut colliders, mut specs) = (vec![], vec![]);
        for (body, (of, spec)) in self.bodies.iter().enumerate() {
            let spec: &BodySpec = spec;
            for (name, c) in &spec.contacts {
                colliders.push(c.build(of, name, body, spec.shape)?);
                specs.push(c);
            }
        }
        let mut contacts = vec![];
        for (i, (c, spec)) in colliders.iter().zip(&specs).enumerate() {
            for (g, (ground, plane)) in half_spaces
                .iter()
                .zip(self.half_spaces.values())
                .enumerate()
            {
                if !spec.against.contains(&plane.group) {
                    continue;
                }
                let features = c.features();
                for (feature, (label, arm)) in features.iter().enumerate() {
                    let label = if features.len() == 1 {
                        String::new()
                    } else {
                        format!(" {label}")
                    };
                    contacts.push(Contact {
                        name: format!("{}{label} on {}", c.name, ground.name),
                        parent: None,
                        child: c.body,
                        pair: Pair::Ground {
                            half_space: g,
                            collider: i,
                            feature,
                        },
                        effective_mass: 1.0 / mobility(&bodies[c.body], arm),
                    });
                }
            }
        }
        let _ = joints;
        Ok((half_spaces, colliders, contacts))
    }
}

/// `N M^-1 N'` of a unit force at a place on a body, averaged over the force's directions, 1/kg.
fn mobility(b: &Body, arm: &Vec3) -> f64 {
    let inverse = b.inertia.try_inverse().unwrap_or_else(Mat3::zeros);
    let spread = Mat3::identity() * arm.norm_squared() - arm * arm.transpose();
    1.0 / b.mass + (inverse * spread).trace() / 3.0
}
