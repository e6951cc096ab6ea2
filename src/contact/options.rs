//! Settings of contacts.

use crate::mechanism::ModelError;

/// The set of friction impulses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cone {
    /// The circular cone: the same in every heading.
    #[default]
    SecondOrder,
    /// The papers' pyramid in it, of so many directions (even, 4 to 16) in the contact's own tangent plane.
    Linearized(usize),
}

/// When what has a restitution bounces. The motion differs by the instant of the impact within an interval; derivatives differ
/// in sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impacts {
    /// At the knot before it would touch: cheap, and the map of a step is a sawtooth of the instant, whose derivative is not that
    /// of the motion. Derivatives are given since this was asked for by name.
    Knots,
    /// At the instant: the interval is split there; see [`crate::integrator::aligned`].
    Aligned,
}

/// Settings of contacts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactOptions {
    /// When elastic impacts are. Unless told they are at knots, and derivatives through them are refused.
    pub impacts: Option<Impacts>,
    /// Where friction impulses lie.
    pub cone: Cone,
    /// Where the central path ends, m/s: its parameter is `kappa = central_path g h`, m^2/s^2. A ball or a cube at rest
    /// on its corners is `central_path h` above the ground, another box `4 m_c/m` times that. `g` is that of the
    /// mechanism as built, also where gravity is a parameter: the path does not move with it.
    pub central_path: f64,
    /// Largest deviation of a product from `kappa`, relative; a gradient wants the center, not its neighbourhood.
    pub centred: f64,
    /// Start from the impulses of the step before, which are then part of the state.
    pub warm: bool,
    /// Iterations of one solve at most, over all its starts, bounds of friction and curves; each assembles and factors
    /// the step's matrix once. A step that has none left fails as [`crate::dynamics::StepFailure::Budget`], or where a
    /// body turned too far before, as [`crate::dynamics::StepFailure::Domain`].
    pub max_iterations: usize,
}

impl ContactOptions {
    /// Iterations of one solve by default. Most steps take fewer than 20, curves up to thousands. With 500, 13 of 39 random trees that take more
    /// with `maximal` fail (two of them fail with more, too): some of their steps need as many in parts of every size, and read-outs have
    /// no parts.
    pub const MAX_ITERATIONS: usize = 10_000;

    /// # Errors
    /// Names a setting that has no meaning.
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        if let Cone::Linearized(n) = self.cone
            && (!(4..=16).contains(&n) || n % 2 == 1)
        {
            return Err(ModelError::new(
                ["contact", "directions"],
                format!("a linearized friction cone of {n} directions"),
                "expected an even number from 4 to 16",
            ));
        }
        let path = [("kappa", self.central_path), ("centred", self.centred)];
        match path.iter().find(|(_, v)| !(*v > 0.0 && v.is_finite())) {
            None => Ok(()),
            Some((name, v)) => Err(ModelError::new(
                ["contact", name],
                format!("{name} is {v}"),
                "expected a positive number",
            )),
        }
    }
}

impl Default for ContactOptions {
    fn default() -> Self {
        Self {
            impacts: None,
            cone: Cone::SecondOrder,
            central_path: 1e-9,
            centred: 1e-5,
            warm: true,
            max_iterations: Self::MAX_ITERATIONS,
        }
    }
}
