//! Constraints and potentials of a built mechanism besides its joints: gears and users' elements, how loops close over
//! them, and their validation.

use super::builder::MechanismBuilder;
use super::element::{
    Element, Hessian, HolonomicConstraint, Jacobian, Potential, VelocityConstraint,
};
use super::error::{ModelError, unknown_body};
use super::gear::Gear;
use super::joint::{Joint, Mat6, Vec6};
use super::{CoordinateId, Mechanism, Motion};
use crate::spatial::{Pose, Vec3};
use nalgebra::DMatrix;
use std::sync::Arc;

/// Most rows of a constraint, as of a block of the matrix.
const MOST_ROWS: usize = 64;

/// What a constraint demands.
#[derive(Clone, Debug)]
pub enum Law {
    /// Of two joint coordinates.
    Gear(Gear),
    /// `g(z) = 0`
    Holonomic(Arc<dyn HolonomicConstraint>),
    /// `A(z) V = 0`
    Velocity(Arc<dyn VelocityConstraint>),
}

/// A constraint that is no joint.
#[derive(Clone, Debug)]
pub struct AttachedConstraint {
    /// Name, unique among its kind.
    pub name: String,
    /// Indices of the bodies it acts on.
    pub bodies: Vec<usize>,
    /// Number of rows.
    pub rows: usize,
    /// What it demands.
    pub law: Law,
}

/// A potential and its bodies.
#[derive(Clone, Debug)]
pub struct AttachedPotential {
    /// Name, unique among potentials.
    pub name: String,
    /// Indices of the bodies it acts on.
    pub bodies: Vec<usize>,
    /// What acts on them.
    pub potential: Arc<dyn Potential>,
}

/// For which purpose the rows of a constraint are wanted. They are the same on the joints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// As wrenches of unit impulses, which are also the rows of the velocity constraint.
    Impulse,
    /// As the derivative of the value, off the joints too.
    Value,
}

impl AttachedPotential {
    /// The gradient by the displacements of its bodies.
    pub(crate) fn gradient(&self, poses: &[Pose], out: &mut [Vec6]) {
        let n = self.bodies.len();
        self.potential.gradient(poses, &mut Jacobian::new(n, out));
    }

    /// Its derivative, block (i, k) of body i by body k.
    pub(crate) fn hessian(&self, poses: &[Pose], out: &mut [Mat6]) {
        let n = self.bodies.len();
        self.potential.hessian(poses, &mut Hessian::new(n, out));
    }
}

impl AttachedConstraint {
    /// Does it constrain the configuration?
    pub fn is_holonomic(&self) -> bool {
        !matches!(self.law, Law::Velocity(_))
    }

    /// Table of a file and word for messages.
    pub fn kind(&self) -> (&'static str, &'static str) {
        match &self.law {
            Law::Gear(_) => ("gears", "gear"),
            Law::Holonomic(e) => Element::Holonomic(e.clone()).kind(),
            Law::Velocity(e) => Element::Velocity(e.clone()).kind(),
        }
    }

    /// Copies the poses of its bodies.
    #[inline]
    pub(crate) fn gather<'a>(&self, poses: &[Pose], out: &'a mut [Pose]) -> &'a [Pose] {
        for (o, b) in out.iter_mut().zip(&self.bodies) {
            *o = poses[*b];
        }
        &out[..self.bodies.len()]
    }

    /// The values `g` at the poses of its bodies; `near` gives the branch of a joint's angle. Zero for a velocity
    /// constraint.
    pub(crate) fn value(
        &self,
        joints: &[Joint],
        poses: &[Pose],
        near: impl Fn(CoordinateId) -> f64,
        g: &mut [f64],
    ) {
        match &self.law {
            Law::Gear(gear) => g[0] = gear.value(joints, poses, near),
            Law::Holonomic(e) => e.value(poses, g),
            Law::Velocity(_) => g.fill(0.0),
        }
    }

    /// Size of the numbers its value is the difference of, besides positions.
    pub(crate) fn size(&self, near: impl Fn(CoordinateId) -> f64) -> f64 {
        match &self.law {
            Law::Gear(gear) => gear.size(near),
            _ => 0.0,
        }
    }

    /// Its rows, one six-vector per row and body.
    pub(crate) fn jacobian(&self, joints: &[Joint], poses: &[Pose], which: Rows, out: &mut [Vec6]) {
        let out = &mut Jacobian::new(self.bodies.len(), out);
        match &self.law {
            Law::Gear(gear) => gear.jacobian(joints, poses, which, out),
            Law::Holonomic(e) => e.jacobian(poses, out),
            Law::Velocity(e) => e.jacobian(poses, out),
        }
    }

    /// Derivative of the wrenches of the impulses `lambda`: block (i, k) on body i by the displacement of body k.
    pub(crate) fn hessian(
        &self,
        joints: &[Joint],
        poses: &[Pose],
        lambda: &[f64],
        out: &mut [Mat6],
    ) {
        let out = &mut Hessian::new(self.bodies.len(), out);
        match &self.law {
            Law::Gear(gear) => gear.hessian(joints, poses, lambda[0], out),
            Law::Holonomic(e) => e.hessian(poses, lambda, out),
            Law::Velocity(e) => e.hessian(poses, lambda, out),
        }
    }

    /// `d(A V)/dz`, one six-vector per row and body: row i is `V' d(A' e_i)/dz`. `unit` and `blocks` are scratch.
    pub(crate) fn turn(
        &self,
        (joints, poses): (&[Joint], &[Pose]),
        velocity: impl Fn(usize) -> Vec6,
        (unit, blocks): (&mut [f64], &mut [Mat6]),
        out: &mut [Vec6],
    ) {
        let n = self.bodies.len();
        for (row, out) in out.chunks_exact_mut(n).enumerate() {
            let unit = &mut unit[..self.rows];
            unit.fill(0.0);
            unit[row] = 1.0;
            let blocks = &mut blocks[..n * n];
            self.hessian(joints, poses, unit, blocks);
            out.fill(Vec6::zeros());
            for (on, body) in self.bodies.iter().enumerate() {
                let v = velocity(*body);
                for (by, out) in out.iter_mut().enumerate() {
                    *out += blocks[on * n + by].tr_mul(&v);
                }
            }
        }
    }
}

impl Mechanism {
    /// May some rows of constraints follow from others?
    pub(crate) fn may_be_redundant(&self) -> bool {
        !(self.tree.chords.is_empty() && self.constraints.is_empty())
    }

    /// Constraints besides joints that the configuration obeys.
    pub(crate) fn holonomic(&self) -> impl Iterator<Item = &AttachedConstraint> {
        self.constraints.iter().filter(|c| c.is_holonomic())
    }

    /// What a row of those counted by [`Mechanism::loop_rows`] belongs to, in words for messages.
    pub(crate) fn closed_by(&self, row: usize) -> String {
        let chords = self.tree.chords.iter().map(|&c| {
            let j = &self.joints[c];
            (j.rows(), format!("the loop through joint `{}`", j.name))
        });
        let others = self
            .holonomic()
            .map(|c| (c.rows, format!("{} `{}`", c.kind().1, c.name)));
        let mut first = 0;
        for (rows, name) in chords.chain(others) {
            first += rows;
            if row < first {
                return name;
            }
        }
        "a constraint".into()
    }

    /// Rows of the joints that close loops and of the other holonomic constraints.
    pub(crate) fn loop_rows(&self) -> usize {
        let chords = self.tree.chords.iter().map(|&c| self.joints[c].rows());
        chords.sum::<usize>() + self.holonomic().map(|c| c.rows).sum::<usize>()
    }

    /// Writes the rows of constraints by a basis of the bodies' displacements into `out`, from row `at` on.
    fn write_rows<'a>(
        &self,
        constraints: impl Iterator<Item = &'a AttachedConstraint>,
        poses: &[Pose],
        basis: &DMatrix<f64>,
        mut at: usize,
        out: &mut DMatrix<f64>,
    ) {
        for c in constraints {
            let mut own = vec![Pose::identity(); c.bodies.len()];
            let mut rows = vec![Vec6::zeros(); c.rows * c.bodies.len()];
            let own = c.gather(poses, &mut own);
            c.jacobian(&self.joints, own, Rows::Impulse, &mut rows);
            for row in rows.chunks_exact(c.bodies.len()) {
                let mut line = nalgebra::DVector::zeros(basis.ncols());
                for (b, row) in c.bodies.iter().zip(row) {
                    line += basis.rows(6 * b, 6).tr_mul(row);
                }
                out.set_row(at, &line.transpose());
                at += 1;
            }
        }
    }

    /// Appends the holonomic constraints to the loops' Jacobian.
    pub(super) fn write_loop_rows(
        &self,
        poses: &[Pose],
        basis: &DMatrix<f64>,
        at: usize,
        out: &mut DMatrix<f64>,
    ) {
        self.write_rows(self.holonomic(), poses, basis, at, out);
    }

    /// `A` of the velocity constraints by a basis of the bodies' velocities.
    pub(crate) fn velocity_jacobian(&self, poses: &[Pose], basis: &DMatrix<f64>) -> DMatrix<f64> {
        let all = || self.constraints.iter().filter(|c| !c.is_holonomic());
        let mut out = DMatrix::zeros(all().map(|c| c.rows).sum(), basis.ncols());
        self.write_rows(all(), poses, basis, 0, &mut out);
        out
    }

    /// Are there velocity constraints?
    pub(crate) fn has_laws(&self) -> bool {
        self.constraints.iter().any(|c| !c.is_holonomic())
    }

    /// Rows of all that binds velocities, by a basis of the bodies' velocities: the loops' first.
    pub(crate) fn rate_jacobian(&self, poses: &[Pose], basis: &DMatrix<f64>) -> DMatrix<f64> {
        let loops = self.loop_jacobian(poses, basis);
        stacked(loops, &self.velocity_jacobian(poses, basis))
    }

    /// `A dV + dA V` of the velocity constraints, columns as in [`Mechanism::loop_rate_derivative`].
    pub(crate) fn law_rate_derivative(
        &self,
        poses: &[Pose],
        motion: &[Motion],
        moved: &DMatrix<f64>,
        change: &DMatrix<f64>,
    ) -> DMatrix<f64> {
        let mut out = self.velocity_jacobian(poses, change);
        let laws = self.constraints.iter().filter(|c| !c.is_holonomic());
        self.add_turns(laws, (poses, motion), moved, 0, &mut out);
        out
    }

    /// Adds `dG V` of the holonomic constraints to `out`, from row `at` on.
    pub(super) fn add_loop_turns(
        &self,
        poses: &[Pose],
        motion: &[Motion],
        moved: &DMatrix<f64>,
        at: usize,
        out: &mut DMatrix<f64>,
    ) {
        self.add_turns(self.holonomic(), (poses, motion), moved, at, out);
    }

    fn add_turns<'a>(
        &self,
        constraints: impl Iterator<Item = &'a AttachedConstraint>,
        (poses, motion): (&[Pose], &[Motion]),
        moved: &DMatrix<f64>,
        mut at: usize,
        out: &mut DMatrix<f64>,
    ) {
        for c in constraints {
            let n = c.bodies.len();
            let mut own = vec![Pose::identity(); n];
            let own = c.gather(poses, &mut own);
            let (mut unit, mut blocks) = (vec![0.0; c.rows], vec![Mat6::zeros(); n * n]);
            let mut turn = vec![Vec6::zeros(); c.rows * n];
            let velocity = |b: usize| {
                let (v, w): (Vec3, Vec3) = motion[b];
                Vec6::new(v.x, v.y, v.z, w.x, w.y, w.z)
            };
            c.turn(
                (&self.joints, own),
                velocity,
                (&mut unit, &mut blocks),
                &mut turn,
            );
            for row in turn.chunks_exact(n) {
                for (b, row) in c.bodies.iter().zip(row) {
                    let mut line = out.row_mut(at);
                    line += moved.rows(6 * b, 6).tr_mul(row).transpose();
                }
                at += 1;
            }
        }
    }

    /// Values of a holonomic constraint at tree coordinates `q` and their poses.
    pub(super) fn closing_value(
        &self,
        c: &AttachedConstraint,
        poses: &[Pose],
        q: &[f64],
    ) -> Vec<f64> {
        let mut own = vec![Pose::identity(); c.bodies.len()];
        let mut g = vec![0.0; c.rows];
        let near = |id| self.branch(id, q);
        c.value(&self.joints, c.gather(poses, &mut own), near, &mut g);
        g
    }

    /// The branch of a joint's angle at tree coordinates `q`: its own coordinate in the tree, else what a gear on the
    /// tree's coordinates demands, else the principal one.
    pub(crate) fn branch(&self, id: CoordinateId, q: &[f64]) -> f64 {
        let of = |id: CoordinateId| {
            let edge = self.tree.edges.iter().find(|e| e.joint == id.0);
            edge.map(|e| q[e.first + id.1])
        };
        let geared = || {
            self.constraints.iter().find_map(|c| match &c.law {
                Law::Gear(g) if g.follower == id => of(g.leader).map(|l| g.ratio * l + g.offset),
                Law::Gear(g) if g.leader == id => of(g.follower).map(|f| (f - g.offset) / g.ratio),
                _ => None,
            })
        };
        of(id).or_else(geared).unwrap_or(0.0)
    }

    /// Energy of users' potentials of some bodies, J.
    pub(crate) fn potential_energy_of(&self, own: impl Fn(usize) -> bool, poses: &[Pose]) -> f64 {
        self.potentials
            .iter()
            .filter(|p| p.bodies.iter().any(|b| own(*b)))
            .map(|p| {
                let own: Vec<Pose> = p.bodies.iter().map(|b| poses[*b]).collect();
                p.potential.energy(&own)
            })
            .sum()
    }
}

/// One matrix above another.
pub(crate) fn stacked(above: DMatrix<f64>, below: &DMatrix<f64>) -> DMatrix<f64> {
    let (n, m) = (above.nrows(), below.nrows());
    let mut out = above.resize_vertically(n + m, 0.0);
    out.rows_mut(n, m).copy_from(below);
    out
}

impl MechanismBuilder {
    /// Gears and users' elements of a mechanism whose bodies and joints are built.
    pub(super) fn attach(&self, m: &mut Mechanism) -> Result<(), ModelError> {
        for (name, gear) in &self.gears {
            let (gear, bodies) = gear.build(name, m)?;
            m.constraints.push(AttachedConstraint {
                name: name.clone(),
                bodies,
                rows: 1,
                law: Law::Gear(gear),
            });
        }
        for (name, spec) in &self.elements {
            let (kind, word) = spec.element.kind();
            let err = |message: String, help: &str| ModelError::new([kind, name], message, help);
            let mut bodies = vec![];
            for body in &spec.bodies {
                let index = self.bodies.get_index_of(body).ok_or_else(|| {
                    unknown_body([kind, name, "bodies"], name, body, &self.bodies)
                })?;
                if bodies.contains(&index) {
                    return Err(err(
                        format!("{word} `{name}` names body `{body}` twice"),
                        "name every body once",
                    ));
                }
                bodies.push(index);
            }
            let (expected, rows) = (spec.element.bodies(), spec.element.rows());
            if bodies.is_empty() || bodies.len() != expected {
                return Err(err(
                    format!(
                        "{word} `{name}` acts on {expected} bodies, {} are named",
                        bodies.len()
                    ),
                    "name its bodies, at least one, in the order in which it expects their poses",
                ));
            }
            if !(1..=MOST_ROWS).contains(&rows) {
                return Err(err(
                    format!("{word} `{name}` has {rows} rows"),
                    "give it 1 to 64 rows, or split it",
                ));
            }
            let name = name.clone();
            let law = match &spec.element {
                Element::Holonomic(e) => Law::Holonomic(e.clone()),
                Element::Velocity(e) => Law::Velocity(e.clone()),
                Element::Potential(e) => {
                    let potential = e.clone();
                    m.potentials.push(AttachedPotential {
                        name,
                        bodies,
                        potential,
                    });
                    continue;
                }
            };
            m.constraints.push(AttachedConstraint {
                name,
                bodies,
                rows,
                law,
            });
        }
        Ok(())
    }
}
