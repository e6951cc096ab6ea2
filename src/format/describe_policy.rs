//! The description of policies: what computes controls from what is seen.

use super::describe_quantity::Quantity;
use super::describe_time::{ColumnSpec, SignalSpec};
use super::forms::forms;
use super::problem::ControlsSpec;
use crate::control::Network;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// What computes controls from what is seen: one of `loops`, `network`, `feedback` and `controls`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// Numbers of the policy by name: to be found, unless they are fixed.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub gains: IndexMap<String, GainSpec>,
    /// Proportional-derivative control, one for each control that has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopSpec>,
    /// A neural network for all controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSpec>,
    /// Path of a `gains.json` as `solve` writes it: its linear feedback around its trajectory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Controls that are given, as those of a recorded motion; none is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controls: Option<ControlsSpec>,
    /// Controls are decided beside what the policy says, and added to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub feed_forward: bool,
}

impl PolicySpec {
    /// Names of the policy's parameters, for so many controls.
    pub(super) fn parameters(&self, controls: usize) -> Vec<String> {
        let Some(network) = &self.network else {
            return self.gains.keys().cloned().collect();
        };
        let inputs = network
            .sees
            .iter()
            .map(|s| if s.angle { 2 } else { 1 })
            .sum();
        let widths = std::iter::once(inputs).chain(network.layers.iter().copied());
        Network::names(&widths.chain([controls]).collect::<Vec<_>>())
    }
}

/// A number of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GainSpec {
    /// What it starts from.
    pub value: f64,
    /// Smallest and largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Differentiated by, but not changed by the method.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
}

/// A number, or the name of one of the policy's.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum NumberSpec {
    /// Given.
    Given(f64),
    /// One of `gains`; loops may share it.
    Named(String),
}
forms!(NumberSpec, "a number, or the name of one of [policy.gains]", number Given, text Named);

/// `u = kp (reference - coordinate) + kd (its rate - rate)`, with `limit` smoothly no larger than that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopSpec {
    /// Name of the control.
    pub control: String,
    /// Coordinate of a joint.
    pub joint: String,
    /// Proportional gain.
    pub kp: NumberSpec,
    /// Derivative gain.
    #[serde(default = "none")]
    pub kd: NumberSpec,
    /// What the coordinate is to follow.
    #[serde(default = "zero")]
    pub reference: ReferenceSpec,
    /// Is the rate to be zero rather than the reference's?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damped: bool,
    /// Largest size of what is exerted, N or N m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

fn none() -> NumberSpec {
    NumberSpec::Given(0.0)
}

fn zero() -> ReferenceSpec {
    ReferenceSpec::Constant(0.0)
}

/// A reference: a number, the name of a gain, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ReferenceSpec {
    /// m or rad
    Constant(f64),
    /// One of `gains`.
    Named(String),
    /// Over time.
    Table(Box<ReferenceTable>),
}
forms!(ReferenceSpec, "a number, the name of one of [policy.gains], or a table such as { sine = { amplitude = 0.3, frequency = 1.0 } }",
    number Constant, text Named, table Table);

/// A reference over time; what is given adds up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTable {
    /// m or rad
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<NumberSpec>,
    /// `amplitude sin(2 pi frequency t + phase)`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sine: Option<TunableSine>,
    /// Times (s, ascending) and values, between which a natural cubic spline goes; before and behind them it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spline: Option<Vec<[f64; 2]>>,
    /// A column of a CSV file with times, between which it is interpolated linearly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<ColumnSpec>,
}

impl ReferenceTable {
    /// What of it is given over time, without anything to find.
    pub fn recorded(&self) -> Option<SignalSpec> {
        let signal = SignalSpec {
            spline: self.spline.clone(),
            csv: self.csv.clone(),
            ..SignalSpec::default()
        };
        Some(signal).filter(|s| *s != SignalSpec::default())
    }
}

/// A sine whose numbers may be found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunableSine {
    /// m or rad
    pub amplitude: NumberSpec,
    /// Hz, or what `frequency_unit` says
    pub frequency: NumberSpec,
    /// What the frequency is counted in, Hz: gives a gain that learners draw the size of the others.
    #[serde(default = "one")]
    pub frequency_unit: f64,
    /// rad
    #[serde(default = "none")]
    pub phase: NumberSpec,
}

/// `tanh` layers from what is seen to all controls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// What it sees.
    pub sees: Vec<SightSpec>,
    /// Widths of the hidden layers.
    pub layers: Vec<usize>,
    /// Largest size of each control, N or N m; that of its bounds by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Of its first weights.
    #[serde(default)]
    pub seed: u64,
}

/// A quantity that a network sees; not a control or a force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SightSpec {
    /// With one component.
    pub quantity: Quantity,
    /// What it is divided by.
    #[serde(default = "one")]
    pub scale: f64,
    /// Sine and cosine of it are seen: an angle that may turn round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub angle: bool,
}

fn one() -> f64 {
    1.0
}
