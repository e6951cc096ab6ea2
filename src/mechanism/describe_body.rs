//! The description of a body.

use super::body::{Body, Shape};
use super::describe_contact::ContactSpec;
use super::error::ModelError;
use super::rotation::Rotation;
use crate::spatial::{Mat3, RotationLaw, Vec3};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Moments about the center of mass, kg m^2: principal, or the full matrix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "expected inertia = [xx, yy, zz] or three rows of three numbers"
)]
pub enum Inertia {
    /// xx, yy, zz
    Principal([f64; 3]),
    /// Rows.
    Full([[f64; 3]; 3]),
}

/// A body: `mass` with `inertia` or `shape`, or a `shape` with a `density`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodySpec {
    /// kg
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// kg/m^3, instead of the mass
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<f64>,
    /// Instead of a shape, or beside it when the shape is only to be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inertia: Option<Inertia>,
    /// Where the center of mass lies in the body's own frame, m: anchors, contacts and points of the body are then given
    /// in that frame, and a free body's coordinates are those of its origin. The origin is the center of mass by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center_of_mass: Option<[f64; 3]>,
    /// Gives the inertia where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// How it turns over an interval: "chord", "ball", "spin", or { spin_about = axis }. By default "ball" or "spin" if its moments
    /// and its joints or contacts let it spin about an axis of symmetry, else "chord".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// Flies freely: six coordinates of its own, under its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
    /// What of it may touch, by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub contacts: IndexMap<String, ContactSpec>,
}

impl BodySpec {
    /// A body of the given mass (kg); add an inertia or a shape.
    pub fn new(mass: f64) -> Self {
        Self {
            mass: Some(mass),
            ..Self::default()
        }
    }

    /// Principal moments about the center of mass, kg m^2.
    pub fn inertia(mut self, principal: [f64; 3]) -> Self {
        self.inertia = Some(Inertia::Principal(principal));
        self
    }

    /// The full matrix, rows.
    pub fn inertia_matrix(mut self, rows: [[f64; 3]; 3]) -> Self {
        self.inertia = Some(Inertia::Full(rows));
        self
    }

    /// A homogeneous shape.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Where the center of mass lies in the body's own frame, m.
    pub fn center_of_mass(mut self, place: [f64; 3]) -> Self {
        self.center_of_mass = Some(place);
        self
    }

    /// From the center of mass to a point of the body's own frame.
    pub(super) fn about_center(&self, point: [f64; 3]) -> Vec3 {
        Vec3::from(point) - Vec3::from(self.center_of_mass.unwrap_or_default())
    }

    /// How it turns over an interval.
    pub fn rotation(mut self, rotation: Rotation) -> Self {
        self.rotation = Some(rotation);
        self
    }

    /// Adds something that may touch.
    pub fn contact(mut self, name: &str, contact: ContactSpec) -> Self {
        self.contacts.insert(name.into(), contact);
        self
    }

    /// Nothing holds the body.
    pub fn free(mut self) -> Self {
        self.free = true;
        self
    }

    pub(super) fn build(&self, name: &str) -> Result<Body, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["bodies", name, field], message, help)
        };
        if let Some(shape) = &self.shape
            && !shape.is_valid()
        {
            return Err(err(
                "shape",
                format!("body `{name}` has a shape with a length that is not positive"),
                "lengths are in m and positive",
            ));
        }
        let mass = match (self.mass, self.density, &self.shape) {
            (Some(m), None, _) => m,
            (None, Some(d), Some(s)) => d * s.volume(),
            (Some(_), Some(_), _) => {
                return Err(err(
                    "density",
                    format!("body `{name}` has a mass and a density"),
                    "give one of them",
                ));
            }
            (None, Some(_), None) => {
                return Err(err(
                    "density",
                    format!("body `{name}` has a density but no shape"),
                    "add a shape, or give mass and inertia",
                ));
            }
            (None, None, _) => {
                return Err(err(
                    "mass",
                    format!("body `{name}` has no mass"),
                    "add mass = ... (kg), or a density (kg/m^3) beside the shape",
                ));
            }
        };
        if !(mass > 0.0 && mass.is_finite()) {
            return Err(err(
                if self.mass.is_some() {
                    "mass"
                } else {
                    "density"
                },
                format!("mass of body `{name}` is {mass}, expected a positive number"),
                "every body needs mass, in kg",
            ));
        }
        if let Some(c) = self
            .center_of_mass
            .filter(|c| c.iter().any(|v| !v.is_finite()))
        {
            return Err(err(
                "center_of_mass",
                format!("center_of_mass of body `{name}` is {c:?}"),
                "give three finite numbers, m, in the body's own frame",
            ));
        }
        let inertia = match (&self.inertia, &self.shape) {
            (Some(Inertia::Principal(d)), _) => Mat3::from_diagonal(&Vec3::from(*d)),
            (Some(Inertia::Full(rows)), _) => Mat3::from_fn(|i, j| rows[i][j]),
            (None, Some(s)) => s.inertia(mass),
            (None, None) => {
                return Err(err(
                    "mass",
                    format!("body `{name}` has neither inertia nor shape"),
                    "add inertia = [xx, yy, zz] or a shape",
                ));
            }
        };
        let size = inertia.amax();
        if (inertia - inertia.transpose()).amax() > 1e-9 * size || !size.is_finite() {
            return Err(err(
                "inertia",
                format!("inertia of body `{name}` is not symmetric"),
                "give a symmetric matrix about the center of mass",
            ));
        }
        let m = inertia.symmetric_eigenvalues();
        // the factor exists where the moments are positive beyond rounding
        if m.min() <= 0.0 || inertia.cholesky().is_none() {
            return Err(err(
                "inertia",
                format!(
                    "inertia of body `{name}` has the principal moment {:e}, expected positive ones",
                    m.min()
                ),
                "moments are in kg m^2; a point mass needs a small positive inertia such as 1e-6",
            ));
        }
        if 2.0 * m.max() > m.sum() * (1.0 + 1e-9) {
            return Err(err(
                "inertia",
                format!(
                    "inertia of body `{name}` breaks the triangle inequality: the largest principal moment {:e} exceeds the sum of the others {:e}",
                    m.max(),
                    m.sum() - m.max()
                ),
                "no mass distribution has these moments; check units and the point they refer to",
            ));
        }
        let rotation = match self.rotation {
            Some(r) => r.build(name, &inertia)?,
            // the joints are to be asked
            None => RotationLaw::Chord,
        };
        Ok(Body {
            name: name.to_owned(),
            mass,
            inertia,
            origin: self.about_center([0.0; 3]),
            free: self.free,
            shape: self.shape,
            rotation,
        })
    }
}
