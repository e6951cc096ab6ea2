//! The description of a joint, and of a spring between points.

use super::describe_body::BodySpec;
use super::error::{ModelError, ends, finite, is_world, nearest};
use super::joint::{Joint, JointKind};
use super::range::Range;
use super::{CoordinateId, Direction, Freedom, Mechanism};
use crate::spatial::{Quat, Vec3};
use indexmap::IndexMap;
use nalgebra::Quaternion;
use serde::{Deserialize, Serialize};

/// A number for the joint's only free direction, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// `[smallest, largest]` for the joint's only free direction, or a table of these by the directions' names.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Limits {
    /// Of the only free direction.
    Only(Range),
    /// By the name of the direction, as `{ d = [0.0, 1.0] }`; those left out have none.
    Named(IndexMap<String, Range>),
}

// unlike serde's untagged enums this keeps the place of an error within the value
/// What helps where a limit is asked for of a component of a rotation vector.
const ONE_ROTATION: &str =
    "limit angles of joints with one rotation; a chain of them turns about several axes";

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> serde::de::Visitor<'de> for Forms {
            type Value = Limits;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list [smallest, largest], or a table of these by free direction")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut a: A) -> Result<Limits, A::Error> {
                let d = serde::de::value::SeqAccessDeserializer::new(&mut a);
                let range = Range::deserialize(d)?;
                match a.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(Limits::Only(range)),
                    Some(_) => Err(serde::de::Error::invalid_length(3, &self)),
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, a: A) -> Result<Limits, A::Error> {
                let d = serde::de::value::MapAccessDeserializer::new(a);
                IndexMap::deserialize(d).map(Limits::Named)
            }
        }
        d.deserialize_any(Forms)
    }
}

/// An orientation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// A joint. `parent` left out is the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// From the origin of the parent's frame, m. The origin is its center of mass by default; `center_of_mass` changes it.
    #[serde(default)]
    pub parent_anchor: [f64; 3],
    /// From the origin of the child's frame, m.
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
    /// Coulomb friction: the largest force or torque with which a direction resists, N or N m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friction: Option<PerDirection>,
    /// Hard stops: smallest and largest coordinate, m or rad; `inf` where a side is open. Angles count whole turns. The
    /// components of two or three rotations have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Ratio of rates after and before a limit is hit, 0 to 1; zero by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restitution: Option<PerDirection>,
    /// The damper acts at a knot as a force against the rate after it, for which the step solves: first order, for very stiff dampers.
    /// The default gives half of its impulse over an interval to each end and is second order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// Closes a loop: its coordinates follow from those of the other joints. By default the joints that the file lists first
    /// form the spanning tree, and a joint between bodies that these connect already closes a loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closes: bool,
}

fn world() -> String {
    "world".into()
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
            friction: None,
            limits: None,
            restitution: None,
            implicit: false,
            closes: false,
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

    /// Anchors from the parent's and the child's centers of mass, m.
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

    /// Coulomb friction on every free direction, N or N m.
    pub fn friction(mut self, friction: f64) -> Self {
        self.friction = Some(PerDirection::All(friction));
        self
    }

    /// Hard stops of the only free direction, m or rad; infinite where a side is open.
    pub fn limits(mut self, lower: f64, upper: f64) -> Self {
        self.limits = Some(Limits::Only(Range::new(lower, upper)));
        self
    }

    /// Hard stops of a free direction by its name.
    pub fn limits_of(mut self, direction: &str, lower: f64, upper: f64) -> Self {
        let mut named = match self.limits.take() {
            Some(Limits::Named(named)) => named,
            _ => IndexMap::new(),
        };
        named.insert(direction.into(), Range::new(lower, upper));
        self.limits = Some(Limits::Named(named));
        self
    }

    /// Ratio of rates after and before a limit of any free direction is hit.
    pub fn restitution(mut self, restitution: f64) -> Self {
        self.restitution = Some(PerDirection::All(restitution));
        self
    }

    /// Closes a loop: never a joint of the spanning tree.
    pub fn closes(mut self) -> Self {
        self.closes = true;
        self
    }

    /// The description's place of the limits of a direction of the joint `m` has.
    pub(super) fn limits_mut(&mut self, m: &Mechanism, (j, i): CoordinateId) -> &mut Range {
        let directions = &m.joints[j].directions;
        if directions.len() == 1 && !matches!(self.limits, Some(Limits::Named(_))) {
            self.limits.get_or_insert(Limits::Only(Range::OPEN));
        }
        match self
            .limits
            .get_or_insert_with(|| Limits::Named(IndexMap::new()))
        {
            Limits::Only(range) => range,
            Limits::Named(named) => named
                .entry(directions[i].name.to_owned())
                .or_insert(Range::OPEN),
        }
    }

    /// Puts the limits on the joint's directions.
    fn set_limits(&self, joint: &mut Joint) -> Result<(), ModelError> {
        let (name, n) = (joint.name.clone(), joint.directions.len());
        let err = |at: &[&str], message: String, help: String| {
            let path = ["joints", &name, "limits"].into_iter();
            ModelError::new(path.chain(at.iter().copied()), message, help)
        };
        let names: Vec<&str> = joint.directions.iter().map(|d| d.name).collect();
        let given: Vec<(usize, Range, Vec<&str>)> = match &self.limits {
            None => return Ok(()),
            Some(_) if n == 0 => {
                let kind = self.kind.name();
                return Err(err(
                    &[],
                    format!("joint `{name}` of kind `{kind}` has no free direction"),
                    "remove limits, or choose another kind".into(),
                ));
            }
            Some(Limits::Only(r)) if n == 1 => vec![(0, *r, vec![])],
            Some(Limits::Only(_)) => {
                let turns = |i: usize| joint.directions[i].freedom == Freedom::Turn;
                let Some(first) = (0..n).find(|i| !turns(*i)) else {
                    return Err(err(
                        &[],
                        format!("joint `{name}` turns about any axis"),
                        ONE_ROTATION.into(),
                    ));
                };
                return Err(err(
                    &[],
                    format!(
                        "joint `{name}` has {n} free directions, its limits do not say which they are of"
                    ),
                    format!(
                        "give limits = {{ {} = [smallest, largest] }}; its free directions: {}",
                        names[first],
                        names.join(", ")
                    ),
                ));
            }
            Some(Limits::Named(named)) => named
                .iter()
                .map(|(direction, r)| {
                    let i = names.iter().position(|d| d == direction).ok_or_else(|| {
                        err(
                            &[direction],
                            format!("joint `{name}` has no free direction `{direction}`"),
                            nearest(direction, names.iter().copied()),
                        )
                    })?;
                    Ok((i, *r, vec![direction.as_str()]))
                })
                .collect::<Result<_, _>>()?,
        };
        for (i, range, at) in given {
            let d = &mut joint.directions[i];
            if d.freedom == Freedom::Turn {
                return Err(err(
                    &at,
                    format!(
                        "direction `{}` of joint `{name}` is a component of a rotation vector, which jumps at half a turn: a limit has no meaning there",
                        d.name
                    ),
                    ONE_ROTATION.into(),
                ));
            }
            if !range.is_valid() {
                let [lower, upper]: [f64; 2] = range.into();
                return Err(err(
                    &at,
                    format!("limits of joint `{name}` are [{lower}, {upper}]"),
                    "expected [smallest, largest], the first below the second; -inf or inf where a side is open"
                        .into(),
                ));
            }
            (d.lower, d.upper) = (range.lower, range.upper);
        }
        Ok(())
    }

    pub(super) fn build(
        &self,
        name: &str,
        bodies: &IndexMap<String, BodySpec>,
    ) -> Result<Joint, ModelError> {
        let err = |field: &str, message: String, help: String| {
            ModelError::new(["joints", name, field], message, help)
        };
        let (parent, child) = ends("joints", name, &self.parent, &self.child, bodies)?;
        let axis = match self.axis {
            Some(a) => Vec3::from(a)
                .try_normalize(1e-9)
                // a component that is infinite leaves NaN, which no maximum shows
                .filter(|a| a.iter().all(|v| v.is_finite()))
                .ok_or_else(|| {
                    err(
                        "axis",
                        format!("axis of joint `{name}` has no direction: {a:?}"),
                        "give a finite vector of non-zero length in the parent's frame".into(),
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
            (
                parent.map_or(self.parent_anchor.into(), |p| {
                    bodies[p].about_center(self.parent_anchor)
                }),
                bodies[child].about_center(self.child_anchor),
            ),
            offset,
        );
        (joint.implicit, joint.closes) = (self.implicit, self.closes);
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
        let friction = numbers("friction", &self.friction, false)?;
        for (i, d) in joint.directions.iter_mut().enumerate() {
            (d.stiffness, d.rest, d.damping) = (stiffness[i], rest[i], damping[i]);
            d.friction = friction[i];
        }
        self.set_limits(&mut joint)?;
        let restitution = numbers("restitution", &self.restitution, false)?;
        for (d, restitution) in joint.directions.iter_mut().zip(restitution) {
            d.restitution = restitution;
        }
        if let Some(d) = joint.directions.iter().find(|d| d.restitution > 1.0) {
            return Err(err(
                "restitution",
                format!("restitution of joint `{name}` is {}", d.restitution),
                "expected a number from 0 to 1".into(),
            ));
        }
        if self.restitution.is_some() && !joint.directions.iter().any(Direction::is_limited) {
            return Err(err(
                "restitution",
                format!("joint `{name}` has restitution, but no limits to bounce off"),
                "give limits = [smallest, largest], or remove restitution".into(),
            ));
        }
        Ok(joint)
    }
}

/// A spring and damper along the line between points of two bodies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpringSpec {
    /// Name of a body, or `world`.
    #[serde(default = "world", skip_serializing_if = "is_world")]
    pub parent: String,
    /// Name of a body.
    pub child: String,
    /// From the parent's center of mass, m.
    #[serde(default)]
    pub parent_anchor: [f64; 3],
    /// From the child's center of mass, m.
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
    /// As of [`JointSpec::implicit`], for very stiff dampers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
}
