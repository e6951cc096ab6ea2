//! How a step solves for contacts, joint limits and friction.

use super::problem::ProblemSpec;
use super::source::{FormatError, Source};
use crate::integrator::{Cone, ContactOptions, Impacts, Options};
use serde::{Deserialize, Serialize};

/// The set in which friction forces lie.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ConeSpec {
    /// The circular cone: the same in every heading.
    #[default]
    SecondOrder,
    /// A pyramid in it.
    Linearized,
}

/// When what has a restitution bounces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImpactsSpec {
    /// At the knot before it would touch. The derivative of a step is then not that of the motion.
    Knots,
    /// At the instant: intervals are split there.
    Aligned,
}

/// How a step solves for contacts, joint limits and friction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContactMethodSpec {
    /// `second_order` or `linearized`.
    #[serde(default)]
    pub cone: ConeSpec,
    /// Edges of the pyramid of a `linearized` cone, even, 4 to 16; 8 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directions: Option<usize>,
    /// `knots` or `aligned`. Unless told impacts are at knots, and derivatives through elastic ones are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impacts: Option<ImpactsSpec>,
    /// Where the central path ends, m/s: its parameter is then this times g times the time step.
    #[serde(default = "kappa")]
    pub kappa: f64,
    /// Start from the impulses of the step before.
    #[serde(default = "yes")]
    pub warm_start: bool,
    /// Iterations of one solve at most, over all its starts; the step fails, or is divided, where it would need more.
    #[serde(default = "max_iterations")]
    pub max_iterations: usize,
}

fn kappa() -> f64 {
    1e-9
}

fn max_iterations() -> usize {
    ContactOptions::MAX_ITERATIONS
}

fn yes() -> bool {
    true
}

impl Default for ContactMethodSpec {
    fn default() -> Self {
        Self {
            cone: ConeSpec::default(),
            directions: None,
            impacts: None,
            kappa: kappa(),
            warm_start: yes(),
            max_iterations: max_iterations(),
        }
    }
}

/// A millimetre a step, or a newton second: beyond, nothing is solved.
const LOOSEST: f64 = 1e-3;

impl ContactMethodSpec {
    /// Edges of a linearized cone by default.
    pub const DIRECTIONS: usize = 8;

    /// Refuses numbers without a meaning.
    pub(super) fn check(&self, source: &Source) -> Result<(), FormatError> {
        if !(self.kappa > 0.0 && self.kappa <= 1.0) {
            return Err(source.error(
                &["contact", "kappa"],
                format!("kappa is {}", self.kappa),
                "expected a positive number up to 1 m/s: contacts rest kappa times the time step above each other",
            ));
        }
        if self.max_iterations == 0 {
            return Err(source.error(
                &["contact", "max_iterations"],
                "max_iterations is 0",
                "expected how many iterations one step may take, e.g. 10000",
            ));
        }
        let Some(n) = self.directions else {
            return Ok(());
        };
        let (message, help) = if !(4..=16).contains(&n) || n % 2 == 1 {
            (
                format!("directions is {n}"),
                "expected an even number from 4 to 16",
            )
        } else if self.cone == ConeSpec::SecondOrder {
            (
                "a second-order cone has no directions".into(),
                "remove it, or say cone = \"linearized\"",
            )
        } else {
            return Ok(());
        };
        Err(source.error(&["contact", "directions"], message, help))
    }
}

/// Refuses a tolerance without a meaning.
pub(super) fn check_tolerance(spec: &ProblemSpec, source: &Source) -> Result<(), FormatError> {
    match spec.integrator.tolerance() {
        Some(t) if !(t > 0.0 && t <= LOOSEST) => Err(source.error(
            &["integrator", "tolerance"],
            format!("tolerance is {t}"),
            "expected a positive number up to 1e-3, the residual at which a step is solved, e.g. 1e-12",
        )),
        _ => Ok(()),
    }
}

/// Settings of the integrator that a problem asks for.
pub(super) fn integrator_options(spec: &ProblemSpec) -> Options {
    let c = &spec.contact;
    let cone = match c.cone {
        ConeSpec::SecondOrder => Cone::SecondOrder,
        ConeSpec::Linearized => {
            Cone::Linearized(c.directions.unwrap_or(ContactMethodSpec::DIRECTIONS))
        }
    };
    let default = Options::default();
    Options {
        tolerance: spec.integrator.tolerance().unwrap_or(default.tolerance),
        contact: ContactOptions {
            impacts: c.impacts.map(|impacts| match impacts {
                ImpactsSpec::Knots => Impacts::Knots,
                ImpactsSpec::Aligned => Impacts::Aligned,
            }),
            cone,
            central_path: c.kappa,
            warm: c.warm_start,
            max_iterations: c.max_iterations,
            ..ContactOptions::default()
        },
        controls: spec.controls,
        ..default
    }
}
