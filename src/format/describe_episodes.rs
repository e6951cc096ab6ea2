//! The description of episodes: what is drawn of each, and what ends it.

use super::forms::forms;
use super::problem::Quantity;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Rollouts that a learner learns from, instead of the one from the start: each from a seed of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpisodesSpec {
    /// Of how many a value is the mean.
    #[serde(default = "count")]
    pub count: usize,
    /// The seed of the first; the others follow.
    #[serde(default)]
    pub seed: u64,
    /// What is drawn of the start, by joint.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub starts: IndexMap<String, DrawnStart>,
    /// What is drawn of the parameters, by name; those that are drawn are not found.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: IndexMap<String, DistributionSpec>,
    /// What ends an episode before its horizon does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<EndSpec>,
}

/// As many as keep the error of a mean at a quarter of what one episode differs from another; conventional.
fn count() -> usize {
    16
}

/// What is drawn of a joint's start; the rest is that of `[initial]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrawnStart {
    /// m or rad; a list with one for each coordinate where there are several
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinate: Option<DistributionSpecs>,
    /// m/s or rad/s; likewise
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<DistributionSpecs>,
}

/// How a number is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DistributionSpec {
    /// Anywhere between the two alike.
    Uniform([f64; 2]),
    /// Normally, by mean and standard deviation.
    Normal([f64; 2]),
}

/// How a number is drawn, or each of several.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum DistributionSpecs {
    /// Of the only one.
    One(DistributionSpec),
    /// Of each.
    Each(Vec<DistributionSpec>),
}
forms!(DistributionSpecs, "a table such as { uniform = [-1.0, 1.0] }, or a list of these", list Each, table One);

impl DistributionSpecs {
    /// All of them.
    pub fn as_slice(&self) -> &[DistributionSpec] {
        match self {
            Self::One(draw) => std::slice::from_ref(draw),
            Self::Each(draws) => draws,
        }
    }
}

/// A condition that ends an episode at the first knot behind the start where it holds. What is wanted from there on is not
/// asked; the episode costs `cost`, and `rest` for every second that is left of the horizon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSpec {
    /// Which; no force, and no more than one component.
    pub quantity: Quantity,
    /// It ends where the quantity is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// It ends where the quantity is larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// What ending costs.
    #[serde(default)]
    pub cost: f64,
    /// 1/s; what every second costs that is left.
    #[serde(default)]
    pub rest: f64,
}
