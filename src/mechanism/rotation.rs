//! Which rotation law a body has: as described, or as its inertia and its joints ask for.

use super::error::ModelError;
use super::joint::Joint;
use crate::spatial::{FreeLaw, Mat3, RotationLaw, Vec3};
use serde::{Deserialize, Serialize};

/// Relative differences of moments, and sines of angles between axes, up to which they are taken for equal. The laws hold for any inertia:
/// what is left of the axis' own chord is this part of the turn, and its share of the spin is the square of that. Files of robots
/// round angles to three digits, `rpy = "1.57 0 0"`, and moments of meshes differ in the third.
const EQUAL: f64 = 1e-2;

/// How a body turns over an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rotation {
    /// By the chord of its turn: its spin is off by a sixth of the square of its turn in a step, rad.
    Chord,
    /// Exact for three equal moments.
    Ball,
    /// Exact for spins about the axis of two equal moments, which follows its chord.
    Spin,
    /// The same about a named axis, body frame, as of blades.
    SpinAbout([f64; 3]),
    /// For bodies in flight, in maximal coordinates: exact for two equal moments and for spins about principal axes, at any speed.
    Free,
}

impl Rotation {
    /// The law of a body with this inertia.
    pub(super) fn build(self, name: &str, inertia: &Mat3) -> Result<RotationLaw, ModelError> {
        let error = |message: String, help: &str| {
            Err(ModelError::new(["bodies", name, "rotation"], message, help))
        };
        match self {
            Self::Chord => Ok(RotationLaw::Chord),
            Self::Ball if is_ball(inertia) => Ok(RotationLaw::Ball),
            Self::Ball => error(
                format!("body `{name}` has rotation = \"ball\", and its moments are not equal"),
                "give it three equal moments, or rotation = \"spin\" or \"chord\"",
            ),
            Self::Spin => match symmetry_axis(inertia) {
                Some(n) => Ok(RotationLaw::Spin(n)),
                None if is_ball(inertia) => Ok(RotationLaw::Ball),
                None => error(
                    format!(
                        "body `{name}` has rotation = \"spin\", and no two of its moments are equal"
                    ),
                    "name the axis it spins about, body frame: rotation = { spin_about = [0, 0, 1] }",
                ),
            },
            Self::Free => match FreeLaw::new(inertia) {
                Some(law) => Ok(RotationLaw::Free(law)),
                None => error(
                    format!(
                        "body `{name}` has rotation = \"free\", and its moments are not positive"
                    ),
                    "give it three positive principal moments, or another rotation",
                ),
            },
            Self::SpinAbout(axis) => match Vec3::from(axis).try_normalize(0.0) {
                Some(n) if n.iter().all(|v| v.is_finite()) => Ok(RotationLaw::Spin(n)),
                _ => error(
                    format!("body `{name}` has rotation = {{ spin_about = {axis:?} }}"),
                    "give three finite numbers that are not all zero, body frame",
                ),
            },
        }
    }
}

fn is_ball(inertia: &Mat3) -> bool {
    let mean = inertia.trace() / 3.0;
    (inertia - Mat3::from_diagonal_element(mean)).amax() <= EQUAL * mean
}

/// The axis of the third moment where two are equal and it is not.
fn symmetry_axis(inertia: &Mat3) -> Option<Vec3> {
    if is_ball(inertia) {
        return None;
    }
    let eigen = inertia.symmetric_eigen();
    let (moments, size) = (eigen.eigenvalues, inertia.amax());
    let difference = |i: usize| (moments[(i + 1) % 3] - moments[(i + 2) % 3]).abs();
    let axis = (0..3).min_by(|i, j| difference(*i).total_cmp(&difference(*j)))?;
    let is_equal = difference(axis) <= EQUAL * size;
    is_equal.then(|| eigen.eigenvectors.column(axis).normalize())
}

/// The default law of a body. It is `ball` for three equal moments, and `spin` for two, if the joints let the body spin about its axis of
/// symmetry while its center of mass stays at rest. A free body with two equal moments has it only if it `touches` others: in flight alone
/// it may as well tumble.
pub(super) fn default_law(
    body: usize,
    (mass, inertia): (f64, &Mat3),
    joints: &[Joint],
    touches: bool,
) -> RotationLaw {
    // anchors that are nearer to the center of mass add little to the inertia
    let near = (EQUAL * inertia.trace() / mass).sqrt();
    let mut held = joints.iter().flat_map(|j| {
        let child = (j.child == body).then_some((j.child_anchor, true));
        let parent = (j.parent == Some(body)).then_some((j.parent_anchor, false));
        child.into_iter().chain(parent).map(move |end| (j, end))
    });
    if let Some(n) = symmetry_axis(inertia) {
        if held.any(|(j, end)| lets_spin(j, end, near, Some(&n)) && (touches || !flies(j))) {
            return RotationLaw::Spin(n);
        }
    } else if is_ball(inertia) && held.any(|(j, end)| lets_spin(j, end, near, None)) {
        return RotationLaw::Ball;
    }
    RotationLaw::Chord
}

/// Does a joint leave all three slides?
fn flies(j: &Joint) -> bool {
    j.directions.iter().filter(|d| !d.freedom.turns()).count() == 3
}

/// May a body that a joint holds at `anchor` spin about an axis, or any where none is given, and stay where it is? An anchor that is `near`
/// the center of mass, m, is there.
fn lets_spin(j: &Joint, (anchor, is_child): (Vec3, bool), near: f64, axis: Option<&Vec3>) -> bool {
    let turns = || j.directions.iter().filter(|d| d.freedom.turns());
    if turns().count() == 0 {
        return false;
    }
    let is_free = flies(j);
    let size = anchor.norm();
    // if the anchor is not at the center of mass, the body spins about the line through both
    let axis = match (axis, is_free || size <= near) {
        (Some(n), true) => *n,
        (None, true) => return true,
        (Some(n), false) if anchor.cross(n).norm() > EQUAL * size => return false,
        (_, false) => anchor / size,
    };
    let along: f64 = turns()
        .map(|d| {
            let unit = match is_child {
                true => j.offset_matrix.tr_mul(&d.unit),
                false => d.unit,
            };
            unit.dot(&axis).powi(2)
        })
        .sum();
    along >= 1.0 - EQUAL * EQUAL
}
