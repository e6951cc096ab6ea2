//! Rigid bodies and the inertia of simple shapes.

use super::contact::Surface;
use crate::spatial::{Mat3, RotationLaw, Vec3};
use serde::{Deserialize, Serialize};

/// A rigid body. All its quantities refer to its center of mass.
#[derive(Clone, Debug)]
pub struct Body {
    /// Name, unique among bodies.
    pub name: String,
    /// kg
    pub mass: f64,
    /// Inertia about the center of mass, body frame, kg m^2.
    pub inertia: Mat3,
    /// Origin of the frame in which the body is described, from the center of mass, body frame, m.
    pub origin: Vec3,
    /// Declared free: its floating joint has its name.
    pub free: bool,
    /// What it looks like, if it was given a shape.
    pub shape: Option<Shape>,
    /// How it turns over an interval.
    pub rotation: RotationLaw,
}

impl Body {
    /// Mean radius of gyration, m: turns angular velocities into velocities.
    pub fn radius_of_gyration(&self) -> f64 {
        (self.inertia.trace() / (3.0 * self.mass)).sqrt()
    }
}

/// A homogeneous shape about its center of mass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Edge lengths along x, y, z, m.
    Box([f64; 3]),
    /// Radius, m.
    Sphere(f64),
    /// Axis along z.
    Cylinder {
        /// m
        radius: f64,
        /// m
        length: f64,
    },
    /// Axis along z; `length` is that of the cylindrical part.
    Capsule {
        /// m
        radius: f64,
        /// m
        length: f64,
    },
}

impl Shape {
    /// Are all lengths positive and finite?
    pub fn is_valid(&self) -> bool {
        Surface::from(*self).is_valid()
    }

    /// m^3
    pub fn volume(&self) -> f64 {
        use std::f64::consts::PI;
        match *self {
            Self::Box([a, b, c]) => a * b * c,
            Self::Sphere(r) => 4.0 / 3.0 * PI * r.powi(3),
            Self::Cylinder { radius, length } => PI * radius * radius * length,
            Self::Capsule { radius, length } => {
                PI * radius * radius * (length + 4.0 / 3.0 * radius)
            }
        }
    }

    /// Inertia of the shape with the given mass, kg m^2.
    pub fn inertia(&self, mass: f64) -> Mat3 {
        let diagonal = match *self {
            Self::Box([a, b, c]) => {
                Vec3::new(b * b + c * c, a * a + c * c, a * a + b * b) * (mass / 12.0)
            }
            Self::Sphere(r) => Vec3::repeat(0.4 * mass * r * r),
            Self::Cylinder { radius, length } => cylinder_inertia(mass, radius, length),
            Self::Capsule { radius: r, length } => {
                let ends = mass * 4.0 / 3.0 * r / (length + 4.0 / 3.0 * r);
                // two half spheres, their centers of mass 3/8 r beyond the cylinder's ends
                let along = 0.4 * ends * r * r;
                let across = ends * (0.4 * r * r + 0.25 * length * length + 0.375 * length * r);
                cylinder_inertia(mass - ends, r, length) + Vec3::new(across, across, along)
            }
        };
        Mat3::from_diagonal(&diagonal)
    }
}

fn cylinder_inertia(mass: f64, r: f64, l: f64) -> Vec3 {
    let across = mass * (r * r / 4.0 + l * l / 12.0);
    Vec3::new(across, across, mass * r * r / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Volume, center and second moments by summing over a grid.
    fn by_grid(inside: impl Fn(&Vec3) -> bool, half: f64, n: usize) -> (f64, Mat3) {
        let d = 2.0 * half / n as f64;
        let (mut volume, mut inertia) = (0.0, Mat3::zeros());
        let at = |i: usize| -half + (i as f64 + 0.5) * d;
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    let p = Vec3::new(at(i), at(j), at(k));
                    if inside(&p) {
                        volume += d * d * d;
                        inertia +=
                            (Mat3::identity() * p.norm_squared() - p * p.transpose()) * (d * d * d);
                    }
                }
            }
        }
        (volume, inertia / volume)
    }

    #[test]
    fn inertias_match_a_sum_over_the_volume() {
        let (r, l) = (0.4, 0.88);
        let radial = |p: &Vec3| p.x.hypot(p.y);
        type Inside = Box<dyn Fn(&Vec3) -> bool>;
        let cases: [(Shape, Inside); 4] = [
            (
                Shape::Box([1.0, 0.6, 0.28]),
                Box::new(|p| p.x.abs() < 0.5 && p.y.abs() < 0.3 && p.z.abs() < 0.14),
            ),
            (Shape::Sphere(0.7), Box::new(|p| p.norm() < 0.7)),
            (
                Shape::Cylinder {
                    radius: r,
                    length: l,
                },
                Box::new(move |p| radial(p) < r && p.z.abs() < l / 2.0),
            ),
            (
                Shape::Capsule {
                    radius: r,
                    length: l,
                },
                Box::new(move |p| radial(p).hypot((p.z.abs() - l / 2.0).max(0.0)) < r),
            ),
        ];
        for (shape, inside) in cases {
            let (volume, inertia) = by_grid(inside, 0.9, 90);
            assert!((shape.volume() / volume - 1.0).abs() < 0.01, "{shape:?}");
            let error = (shape.inertia(1.0) - inertia).amax() / inertia.amax();
            assert!(error < 0.01, "{shape:?} {error}");
        }
    }
}
