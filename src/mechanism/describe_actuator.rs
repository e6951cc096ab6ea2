//! The description of a control.

use super::describe_body::BodySpec;
use super::error::{ModelError, finite, nearest, unknown_body};
use super::joint::Joint;
use super::range::Range;
use super::spring::{Actuator, Drive};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// In which frame a wrench's force stays.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WrenchFrame {
    /// Fixed in the world.
    #[default]
    World,
    /// Turns with the body.
    Body,
}

/// A control: along a free direction of a `joint`, or a wrench on a `body`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// What a unit of the control exerts, N or N m; a factor of the wrench.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub gain: f64,
    /// Smallest and largest control; what optimizers keep to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Smallest and largest effort, N or N m (of a wrench: multiple of it); `inf` where a side is open. What is exerted is
    /// `gain` times the control, cut at these limits within the step, whatever is commanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort_limits: Option<Range>,
}

impl Default for ActuatorSpec {
    fn default() -> Self {
        Self {
            joint: None,
            direction: None,
            body: None,
            force: [0.0; 3],
            frame: WrenchFrame::World,
            point: [0.0; 3],
            torque: [0.0; 3],
            gain: 1.0,
            bounds: None,
            effort_limits: None,
        }
    }
}

fn one() -> f64 {
    1.0
}

fn is_one(v: &f64) -> bool {
    *v == 1.0
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

    /// What a unit of the control exerts.
    pub fn gain(mut self, gain: f64) -> Self {
        self.gain = gain;
        self
    }

    /// Smallest and largest control.
    pub fn bounds(mut self, lower: f64, upper: f64) -> Self {
        self.bounds = Some([lower, upper]);
        self
    }

    /// Smallest and largest effort; infinite where a side is open.
    pub fn effort_limits(mut self, lower: f64, upper: f64) -> Self {
        self.effort_limits = Some(Range::new(lower, upper));
        self
    }

    pub(super) fn build(
        &self,
        name: &str,
        bodies: &IndexMap<String, BodySpec>,
        joints: &[Joint],
        places: &HashMap<&str, usize>,
    ) -> Result<Actuator, ModelError> {
        let err = |field: &str, message: String, help: String| {
            ModelError::new(["actuators", name, field], message, help)
        };
        let drive = match (&self.joint, &self.body) {
            (Some(joint), None) => {
                let index = places.get(joint.as_str()).copied().ok_or_else(|| {
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
                    point: bodies[index].about_center(self.point),
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
                    "expected [smallest, largest], the first below the second; -inf or inf where a side is open"
                        .into(),
                ));
            }
        };
        if !self.gain.is_finite() {
            return Err(err(
                "gain",
                format!("gain of actuator `{name}` is {}", self.gain),
                "expected a finite number".into(),
            ));
        }
        if let Some(r) = self.effort_limits.filter(|r| !r.is_valid()) {
            return Err(err(
                "effort_limits",
                format!(
                    "effort_limits of actuator `{name}` are [{}, {}]",
                    r.lower, r.upper
                ),
                "expected [smallest, largest], the first below the second; -inf or inf where a side is open"
                    .into(),
            ));
        }
        Ok(Actuator {
            name: name.to_owned(),
            drive,
            gain: self.gain,
            bounds,
            effort_limits: self.effort_limits.unwrap_or(Range::OPEN),
        })
    }
}
