//! The description of what has to do with time: phases, where along the way something is asked, what varies.

use super::forms::forms;
use serde::{Deserialize, Serialize};

/// A part of the horizon, with time steps and a duration of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// What costs and constraints call it.
    pub name: String,
    /// s, at the start where it is to be found
    pub duration: f64,
    /// Time steps; as many as `time_step` makes of the duration by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Smallest and largest duration, s: it is then found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
}

/// Where along the way something is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// At every knot but the last.
    Running,
    /// At the first knot.
    Start,
    /// At the last knot.
    End,
    /// At one knot, counted from 0.
    Knot(usize),
    /// From one knot to another, both included.
    Range(usize, usize),
    /// At every knot of a phase but its last.
    Phase(String),
    /// At the first knot of a phase.
    StartOf(String),
    /// At the last knot of a phase, which is the first of the next.
    EndOf(String),
}

/// Something that may vary with time: a number, a list with one number for each component of a quantity, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Goal {
    /// The same for every component.
    One(f64),
    /// One for each component.
    List(Vec<f64>),
    /// A function of time.
    Varying(Box<SignalSpec>),
}
forms!(Goal, "a number, a list of numbers, or a table such as { sine = { amplitude = 1.0, frequency = 0.5 } }",
    number One, list List, table Varying);

/// A function of time; what is given adds up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalSpec {
    /// A number that is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<f64>,
    /// `amplitude sin(2 pi frequency t + phase)`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sine: Option<SineSpec>,
    /// Times (s, ascending) and values, between which a natural cubic spline goes; before and behind them it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spline: Option<Vec<[f64; 2]>>,
    /// One number for each knot, the last included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knots: Option<Vec<f64>>,
    /// A column of a CSV file with times, between which it is interpolated linearly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<ColumnSpec>,
}

/// A sine over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SineSpec {
    /// In the quantity's unit.
    pub amplitude: f64,
    /// Hz
    pub frequency: f64,
    /// rad
    #[serde(default)]
    pub phase: f64,
}

/// A column of a CSV file: that of a name, or with the path alone that of the quantity itself.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ColumnSpec {
    /// Path relative to the problem's; it has a column `time`, and one of the quantity's name.
    File(String),
    /// With another name.
    Table(NamedColumn),
}
forms!(ColumnSpec, "the path of a CSV file, or a table { file, column }", text File, table Table);

impl ColumnSpec {
    /// The path, and the name of the column where it is not the quantity's.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self {
            Self::File(file) => (file, None),
            Self::Table(t) => (&t.file, Some(&t.column)),
        }
    }
}

/// A column of a CSV file by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedColumn {
    /// Path relative to the problem's; it has a column `time`.
    pub file: String,
    /// Name of the column, without its unit.
    pub column: String,
}
