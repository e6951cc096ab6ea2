//! The description of where a mechanism starts.

use super::describe_policy::NumberSpec;
use super::forms::forms;
use super::problem::Numbers;
use crate::mechanism::Orientation;
use serde::{Deserialize, Serialize};

/// Numbers of the start, each given or the value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum StartNumbers {
    /// One.
    One(f64),
    /// Name of a parameter: of `[parameters]`, a gain of `[policy]`, a free duration, another number of the start that is
    /// free.
    Named(String),
    /// Several.
    List(Vec<NumberSpec>),
}
forms!(StartNumbers, "a number, the name of a parameter, or a list of these", number One, list List, text Named);

impl StartNumbers {
    /// One by one.
    pub fn list(&self) -> Vec<NumberSpec> {
        match self {
            Self::One(v) => vec![NumberSpec::Given(*v)],
            Self::Named(name) => vec![NumberSpec::Named(name.clone())],
            Self::List(list) => list.clone(),
        }
    }
}

impl From<Numbers> for StartNumbers {
    fn from(numbers: Numbers) -> Self {
        match numbers {
            Numbers::One(v) => Self::One(v),
            Numbers::List(v) => Self::List(v.into_iter().map(NumberSpec::Given).collect()),
        }
    }
}

/// What the rates at the start are of.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum InitialRates {
    /// The instant.
    #[default]
    Instant,
    /// The interval before, as long as the first one: the start is a knot of a motion that went on before, as it is where
    /// the motion is to repeat itself. They are then the quantity `interval_rate`, and exact; of order 4 and 6 of the last of
    /// the steps that compose it.
    Interval,
}

/// Where a joint or a free body starts; a number, a name or a list stands for its coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum InitialSpec {
    /// The joint's only coordinate, m or rad.
    Number(f64),
    /// The same, that of a parameter.
    Named(String),
    /// One per coordinate, m or rad, or names of parameters.
    List(Vec<NumberSpec>),
    /// With rates and more.
    Table(Box<InitialTable>),
}
forms!(InitialSpec, "a number, the name of a parameter, a list with one number per coordinate, or a table",
    number Number, list List, text Named, table Table);

/// Where a joint or a free body starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitialTable {
    /// Coordinates, m or rad, or names of parameters; they stay as they are when loops are closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinate: Option<StartNumbers>,
    /// Coordinates from which loops are closed, m or rad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<Numbers>,
    /// m/s or rad/s, or names of parameters
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<StartNumbers>,
    /// What of both is to be found, from there on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<FreeSpec>,
    /// Position of a free body's origin in the world, m. The origin is its center of mass by default; `center_of_mass` changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[f64; 3]>,
    /// Of a free body in the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// Of the same point, m/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub velocity: Option<[f64; 3]>,
    /// Of a free body, body frame, rad/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub angular_velocity: Option<[f64; 3]>,
}

/// Bounds within which a joint's start is found: two numbers, or a pair for each coordinate. Equal ones hold it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeSpec {
    /// m or rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinate: Option<Ranges>,
    /// m/s or rad/s
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Ranges>,
}

/// A range, or a range for each coordinate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Ranges {
    /// Of the only coordinate.
    One([f64; 2]),
    /// Of each.
    Each(Vec<[f64; 2]>),
}

impl Ranges {
    /// The ranges.
    pub fn as_slice(&self) -> &[[f64; 2]] {
        match self {
            Self::One(v) => std::slice::from_ref(v),
            Self::Each(v) => v,
        }
    }
}
