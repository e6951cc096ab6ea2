//! Elements that users bring: holonomic constraints, velocity constraints and potentials of any bodies.
//!
//! An element sees the poses of its own bodies, in the order in which they were named when it was added to the
//! [`MechanismBuilder`](super::MechanismBuilder). A displacement of a body is `(dx, dphi)`: `dx` in the world frame, m,
//! and a rotation vector `dphi` in the body frame, `q -> q exp(dphi)`, rad. Along the same six numbers a wrench is a
//! force in the world frame, N, and a torque in the body frame, N m; velocities are `(v, w)`, world and body frame.
//!
//! [`check_constraint`](super::check_constraint) and its siblings hold an element's derivatives against finite
//! differences.
//!
//! ```
//! use least_action::mechanism::{
//!     HolonomicConstraint, Hessian, Jacobian, Part, check_constraint, random_poses,
//! };
//! use least_action::spatial::{Mat3, Pose, Vec3, skew};
//!
//! /// Keeps a point of a body on a sphere about the origin: (|x + R p|^2 - l^2) / (2 l) = 0, m.
//! #[derive(Debug)]
//! struct OnSphere { point: Vec3, radius: f64 }
//!
//! impl HolonomicConstraint for OnSphere {
//!     fn bodies(&self) -> usize { 1 }
//!     fn rows(&self) -> usize { 1 }
//!     fn value(&self, poses: &[Pose], g: &mut [f64]) {
//!         let d = poses[0].point(&self.point);
//!         g[0] = 0.5 * (d.norm_squared() / self.radius - self.radius);
//!     }
//!     fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
//!         let local = poses[0].r.tr_mul(&poses[0].point(&self.point)) / self.radius;
//!         // a force along the row acts at the point
//!         out.add(0, 0, &(poses[0].r * local), &self.point.cross(&local));
//!     }
//!     fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
//!         let (r, p) = (&poses[0].r, skew(&self.point));
//!         let local = r.tr_mul(&poses[0].point(&self.point));
//!         let scale = lambda[0] / self.radius;
//!         use Part::{Angular, Linear};
//!         // the force d = x + R p, dd = dx - R [p] dphi; the torque p x R'd, d(R'd) = R'dx + ([R'd] - [p]) dphi
//!         out.add((0, Linear), (0, Linear), &(Mat3::identity() * scale));
//!         out.add((0, Linear), (0, Angular), &(r * p * -scale));
//!         out.add((0, Angular), (0, Linear), &(p * r.transpose() * scale));
//!         out.add((0, Angular), (0, Angular), &(p * (skew(&local) - p) * scale));
//!     }
//! }
//!
//! let rod = OnSphere { point: Vec3::new(0.1, 0.0, 0.5), radius: 0.8 };
//! check_constraint(&rod, &random_poses(1, 0)).unwrap();
//! ```

use super::joint::{Mat6, Vec6};
use crate::spatial::{Mat3, Pose, Vec3};
use std::fmt::Debug;
use std::sync::Arc;

/// Half of a displacement or a wrench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Translation or force, world frame.
    Linear,
    /// Rotation or torque, body frame.
    Angular,
}

impl Part {
    fn first(self) -> usize {
        3 * usize::from(self == Self::Angular)
    }
}

/// Rows of a Jacobian by the displacements of an element's bodies; zero until written.
#[derive(Debug)]
pub struct Jacobian<'a> {
    bodies: usize,
    rows: &'a mut [Vec6],
}

impl<'a> Jacobian<'a> {
    /// All zero.
    pub(crate) fn new(bodies: usize, rows: &'a mut [Vec6]) -> Self {
        rows.fill(Vec6::zeros());
        Self { bodies, rows }
    }

    /// Adds to a row's entries for one body, by `dx` (world frame) and `dphi` (body frame).
    pub fn add(&mut self, row: usize, body: usize, by_dx: &Vec3, by_dphi: &Vec3) {
        let entry = &mut self.rows[row * self.bodies + body];
        for i in 0..3 {
            entry[i] += by_dx[i];
            entry[i + 3] += by_dphi[i];
        }
    }

    pub(crate) fn add_six(&mut self, row: usize, body: usize, six: &Vec6) {
        self.rows[row * self.bodies + body] += six;
    }
}

/// How the wrenches on an element's bodies change with their displacements; zero until written.
#[derive(Debug)]
pub struct Hessian<'a> {
    bodies: usize,
    blocks: &'a mut [Mat6],
}

impl<'a> Hessian<'a> {
    /// All zero.
    pub(crate) fn new(bodies: usize, blocks: &'a mut [Mat6]) -> Self {
        blocks.fill(Mat6::zeros());
        Self { bodies, blocks }
    }

    /// Adds the derivative of a part of the wrench `on` a body `by` a part of the displacement of a body.
    pub fn add(&mut self, on: (usize, Part), by: (usize, Part), block: &Mat3) {
        let mut part = self.blocks[on.0 * self.bodies + by.0]
            .fixed_view_mut::<3, 3>(on.1.first(), by.1.first());
        part += block;
    }

    pub(crate) fn add_block(&mut self, on: usize, by: usize, block: &Mat6) {
        self.blocks[on * self.bodies + by] += block;
    }
}

/// A holonomic constraint `g(z) = 0` on one or several bodies.
///
/// The step solves `g(z+) = 0` with impulses along `G(z)'`, as for joints. The value should be of the size of a
/// distance or an angle (m, rad): one tolerance serves all constraints. Rows may follow from those of joints.
pub trait HolonomicConstraint: Debug + Send + Sync {
    /// Number of bodies.
    fn bodies(&self) -> usize;

    /// Number of rows, 1 to 64.
    fn rows(&self) -> usize;

    /// The values `g`, one per row.
    fn value(&self, poses: &[Pose], g: &mut [f64]);

    /// The Jacobian `G` of the values by the displacements of the bodies.
    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian);

    /// The derivative of the wrenches `G(z)' lambda`, `lambda` held, by the displacements. (Contracted with velocities
    /// it is also the derivative of `G(z) V`.)
    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian);
}

/// A velocity constraint `A(z) V = 0` on one or several bodies, integrable or not: knife edges, rolling.
///
/// Over an interval it is `1/2 (A(z) + A(z+)) v+ = 0`, with impulses along `A(z)'`: symmetric in time, so that the
/// energy does not drift. (`A(z) v+ = 0` alone takes `(h w)^2 / 2` of its kinetic energy from a turning knife edge in
/// every step.) At a knot it is `A(z) v = 0`. It takes nothing from the degrees of freedom of the configuration.
pub trait VelocityConstraint: Debug + Send + Sync {
    /// Number of bodies.
    fn bodies(&self) -> usize;

    /// Number of rows, 1 to 64.
    fn rows(&self) -> usize;

    /// The rows of `A` by the velocities `(v, w)` of the bodies; `A V` should be of the size of m/s or rad/s.
    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian);

    /// The derivative of the wrenches `A(z)' lambda`, `lambda` held, by the displacements.
    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian);
}

/// A potential `V(z)` of one or several bodies, J. Its forces are minus the gradient, taken at the knots: explicit, so a
/// step wants `h omega` below 1 for the fastest oscillation it causes.
pub trait Potential: Debug + Send + Sync {
    /// Number of bodies.
    fn bodies(&self) -> usize;

    /// J
    fn energy(&self, poses: &[Pose]) -> f64;

    /// The gradient of the energy by the displacements: row 0.
    fn gradient(&self, poses: &[Pose], out: &mut Jacobian);

    /// The derivative of the gradient by the displacements.
    fn hessian(&self, poses: &[Pose], out: &mut Hessian);
}

/// Any element.
#[derive(Clone, Debug)]
pub enum Element {
    /// `g(z) = 0`
    Holonomic(Arc<dyn HolonomicConstraint>),
    /// `A(z) V = 0`
    Velocity(Arc<dyn VelocityConstraint>),
    /// `V(z)`
    Potential(Arc<dyn Potential>),
}

impl Element {
    /// What it is called in messages and paths.
    pub(super) fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::Holonomic(_) => ("constraints", "constraint"),
            Self::Velocity(_) => ("velocity_constraints", "velocity constraint"),
            Self::Potential(_) => ("potentials", "potential"),
        }
    }

    pub(super) fn bodies(&self) -> usize {
        match self {
            Self::Holonomic(e) => e.bodies(),
            Self::Velocity(e) => e.bodies(),
            Self::Potential(e) => e.bodies(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Holonomic(e) => e.rows(),
            Self::Velocity(e) => e.rows(),
            Self::Potential(_) => 1,
        }
    }
}

/// An element and the names of the bodies it acts on. Two are equal if they share one element.
#[derive(Clone, Debug)]
pub struct ElementSpec {
    /// Names, each once; the world is no body.
    pub bodies: Vec<String>,
    /// What acts on them.
    pub element: Element,
}

impl PartialEq for ElementSpec {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.element, &other.element) {
            (Element::Holonomic(a), Element::Holonomic(b)) => Arc::ptr_eq(a, b),
            (Element::Velocity(a), Element::Velocity(b)) => Arc::ptr_eq(a, b),
            (Element::Potential(a), Element::Potential(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same && self.bodies == other.bodies
    }
}
