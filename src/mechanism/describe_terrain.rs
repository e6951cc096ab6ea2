//! The description of terrain: solids of the world that bodies may touch.

use super::builder::Orientation;
use super::contact::{Collider, Heights, Hull, Surface};
use super::error::ModelError;
use crate::spatial::{Mat3, Vec3, rotation};
use serde::{Deserialize, Serialize};

fn ground() -> String {
    "ground".into()
}

fn depth() -> f64 {
    1.0
}

/// What terrain is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TerrainShape {
    /// Edge lengths along x, y, z, m.
    Box([f64; 3]),
    /// The convex hull of points, m.
    Hull(Hull),
    /// A block of ground over a grid, with two triangles on top of each cell, which is cut from its corner with the least x and y to the
    /// opposite one. Its border has vertical walls.
    Heights {
        /// Height at `x = i spacing[0]`, `y = j spacing[1]`: the `j`-th of the `i`-th row, m.
        heights: Vec<Vec<f64>>,
        /// Along x and y, m.
        spacing: [f64; 2],
    },
    /// Treads along x, all as wide as `width` along y: stairs, kerbs, gaps.
    Steps {
        /// Where each tread begins and how high it is, `[x, z]`, m, ascending in x; it ends where the next begins.
        edges: Vec<[f64; 2]>,
        /// Where the last tread ends, m.
        end: f64,
        /// Along y, m.
        width: f64,
        /// How far it is solid below the lowest tread, m; 1 by default.
        #[serde(default = "depth")]
        depth: f64,
    },
}

/// A solid of the world that bodies may touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerrainSpec {
    /// What it is.
    pub shape: TerrainShape,
    /// Its place in the world, m.
    #[serde(default)]
    pub position: [f64; 3],
    /// Its orientation in the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// Coulomb friction coefficient.
    pub friction: f64,
    /// The group it is in; `ground` by default.
    #[serde(default = "ground")]
    pub group: String,
}

impl TerrainSpec {
    /// Terrain at the origin in the group `ground`.
    pub fn new(shape: TerrainShape, friction: f64) -> Self {
        Self {
            shape,
            position: [0.0; 3],
            orientation: None,
            friction,
            group: ground(),
        }
    }

    /// Its place in the world, m.
    pub fn at(mut self, position: [f64; 3]) -> Self {
        self.position = position;
        self
    }

    /// Its convex parts: surface and place in the terrain's frame.
    fn parts(&self) -> Result<Vec<(Surface, Vec3)>, (&'static str, String)> {
        let positive = |what: &'static str, of: &[f64]| {
            let bad = of.iter().find(|l| !(**l > 0.0 && l.is_finite()));
            bad.map_or(Ok(()), |l| Err((what, format!("a length of it is {l}"))))
        };
        match &self.shape {
            TerrainShape::Box(edges) => {
                positive("shape", edges)?;
                Ok(vec![(Surface::Box(*edges), Vec3::zeros())])
            }
            TerrainShape::Hull(hull) => Ok(vec![(Surface::Hull(hull.clone()), Vec3::zeros())]),
            TerrainShape::Heights { heights, spacing } => {
                let heights = Heights::new(heights, *spacing).map_err(|e| ("shape", e))?;
                Ok(vec![(Surface::Heights(heights), Vec3::zeros())])
            }
            TerrainShape::Steps {
                edges,
                end,
                width,
                depth,
            } => {
                positive("shape", &[*width, *depth])?;
                let lowest = edges.iter().map(|e| e[1]).fold(f64::INFINITY, f64::min);
                if !lowest.is_finite() {
                    let what = "it has no steps, or one whose height is not finite";
                    return Err(("shape", what.into()));
                }
                let ends = edges.iter().skip(1).map(|e| e[0]).chain([*end]);
                edges
                    .iter()
                    .zip(ends)
                    .map(|([x, z], end)| {
                        let (length, height) = (end - x, z - lowest + depth);
                        let ok = length > 0.0 && length.is_finite() && height.is_finite();
                        let middle = Vec3::new(0.5 * (x + end), 0.0, z - 0.5 * height);
                        let what = || format!("the step at x = {x} m ends at {end} m");
                        ok.then_some((Surface::Box([length, *width, height]), middle))
                            .ok_or_else(|| ("shape", what()))
                    })
                    .collect()
            }
        }
    }

    /// Colliders of the world.
    pub(super) fn build(&self, name: &str) -> Result<Vec<Collider>, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["terrain", name, field], message, help)
        };
        let parts = self.parts().map_err(|(field, message)| {
            err(
                field,
                format!("terrain `{name}`: {message}"),
                "lengths are in m and positive; edges of steps ascend in x up to `end`",
            )
        })?;
        if !(self.friction >= 0.0 && self.friction.is_finite()) {
            return Err(err(
                "friction",
                format!("friction of terrain `{name}` is {}", self.friction),
                "expected a finite number that is not negative",
            ));
        }
        if !self.position.iter().all(|x| x.is_finite()) {
            return Err(err(
                "position",
                format!("position of terrain `{name}` is {:?}", self.position),
                "give three finite numbers",
            ));
        }
        let orientation = match &self.orientation {
            Some(o) => rotation(&o.quat().ok_or_else(|| {
                err(
                    "orientation",
                    format!("orientation of terrain `{name}` is not a rotation"),
                    "give rpy = [..] or quaternion = [w, x, y, z], finite and not zero",
                )
            })?),
            None => Mat3::identity(),
        };
        let many = parts.len() > 1;
        let place = Vec3::from(self.position);
        let each = parts.into_iter().enumerate();
        Ok(each
            .map(|(i, (surface, middle))| Collider {
                name: if many {
                    format!("{name} {}", i + 1)
                } else {
                    name.into()
                },
                body: None,
                surface,
                position: place + orientation * middle,
                orientation,
                friction: self.friction,
                restitution: 0.0,
                seams: vec![],
                buried: vec![],
                by_lowest: false,
            })
            .collect())
    }
}
