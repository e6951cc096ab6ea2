//! States: how they are stored, made from joint coordinates, and read.

use super::Maximal;
use super::assembly::{pose, vec3};
use super::tangent::velocities_between;
use crate::mechanism::{CoordinateId, Mechanism, ModelError, Motion, least_squares};
use crate::spatial::Pose;
use nalgebra::DMatrix;

impl Maximal {
    /// Index of a coordinate among the unwound angles of the state.
    pub(super) fn winding(&self, x: &[f64], joint: usize) -> f64 {
        self.winding_of[joint].map_or(0.0, |i| x[13 * self.body_count() + i])
    }

    /// [`Mechanical::start`](crate::integrator::Mechanical::start) of the mechanism with other parameters.
    pub(super) fn start_of(
        &self,
        m: &Mechanism,
        q: &[f64],
        rates: &[f64],
        held: &[bool],
    ) -> Result<Vec<f64>, ModelError> {
        let mut q = q.to_vec();
        let poses = m.close(&mut q, held)?;
        let rates = Self::lawful_rates(m, &poses, rates);
        Ok(self.state(
            &poses,
            &m.velocities(&poses, &rates),
            &self.winding_at(m, &poses, &q),
        ))
    }

    /// Unwound angles: the tree's coordinates where they are angles, of the others the branch a gear demands, else the
    /// principal one.
    pub(super) fn winding_at(&self, m: &Mechanism, poses: &[Pose], q: &[f64]) -> Vec<f64> {
        let mut first = vec![None; m.joints.len()];
        for e in &m.tree.edges {
            first[e.joint] = Some(e.first);
        }
        let angle = |&(joint, i): &(usize, usize)| {
            first[joint].map_or_else(
                || {
                    let j = &m.joints[joint];
                    let (a, b) = m.ends(j, poses);
                    j.coordinate(i, &j.relative(a, b), m.branch((joint, i), q))
                },
                |k: usize| q[k + i],
            )
        };
        self.windings.iter().map(angle).collect()
    }

    /// The rates nearest to the given ones, by kinetic energy, that keep the loops closed.
    pub(super) fn closed_rates(m: &Mechanism, poses: &[Pose], rates: &[f64]) -> Vec<f64> {
        if !m.has_loops() {
            return rates.to_vec();
        }
        let basis = m.tree_basis(poses);
        Self::projected(m, &basis, &m.loop_jacobian(poses, &basis), rates)
    }

    /// The same, and that obey the velocity constraints.
    fn lawful_rates(m: &Mechanism, poses: &[Pose], rates: &[f64]) -> Vec<f64> {
        if !m.has_laws() {
            return Self::closed_rates(m, poses, rates);
        }
        let basis = m.tree_basis(poses);
        Self::projected(m, &basis, &m.rate_jacobian(poses, &basis), rates)
    }

    /// The rates nearest to the given ones, by kinetic energy, at which `jacobian` is zero.
    fn projected(
        m: &Mechanism,
        basis: &DMatrix<f64>,
        jacobian: &DMatrix<f64>,
        rates: &[f64],
    ) -> Vec<f64> {
        // r - M^-1 J' (J M^-1 J')^+ J r, with the rank that J has here: at a singular position it is lower
        let r = nalgebra::DVector::from_column_slice(rates);
        let Some(mass) = m.mass_matrix(basis).cholesky() else {
            return rates.to_vec();
        };
        let weighted = mass.solve(&jacobian.transpose());
        match least_squares(jacobian * &weighted, &(jacobian * &r)) {
            Some(nu) => (&r - weighted * nu).as_slice().to_vec(),
            None => rates.to_vec(),
        }
    }

    /// A state from its parts.
    pub fn state(&self, poses: &[Pose], velocities: &[Motion], winding: &[f64]) -> Vec<f64> {
        let mut x = Vec::with_capacity(13 * poses.len() + winding.len());
        for (p, (v, w)) in poses.iter().zip(velocities) {
            x.extend_from_slice(p.x.as_slice());
            x.extend_from_slice(&[p.q.w, p.q.i, p.q.j, p.q.k]);
            x.extend_from_slice(v.as_slice());
            x.extend_from_slice(w.as_slice());
        }
        x.extend_from_slice(winding);
        x
    }

    /// The state after an interval `h` that leads from the state `x` to the poses at tree coordinates `q`.
    pub(super) fn state_behind(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        let winding = self.winding_near(&self.mechanism, poses, q, x);
        let velocities = velocities_between(&self.mechanism, x, (poses, &self.poses_of(x)), h);
        self.state(poses, &velocities, &winding)
    }

    /// Poses of all bodies.
    pub(super) fn poses_of(&self, x: &[f64]) -> Vec<Pose> {
        x[..13 * self.body_count()]
            .chunks_exact(13)
            .map(pose)
            .collect()
    }

    /// Velocities of the interval before the knot.
    pub(super) fn velocities_of(&self, x: &[f64]) -> Vec<Motion> {
        x[..13 * self.body_count()]
            .chunks_exact(13)
            .map(|s| (vec3(s, 7), vec3(s, 10)))
            .collect()
    }

    fn coordinate_of(&self, m: &Mechanism, x: &[f64], (joint, direction): CoordinateId) -> f64 {
        let j = &m.joints[joint];
        let world = Pose::identity();
        let a = j.parent.map_or(world, |p| pose(&x[13 * p..]));
        let b = pose(&x[13 * j.child..]);
        j.coordinate(direction, &j.relative(&a, &b), self.winding(x, joint))
    }

    /// Coordinates of the spanning tree of the mechanism with other parameters.
    pub(super) fn tree_coordinates_of(&self, m: &Mechanism, x: &[f64]) -> Vec<f64> {
        let ids = m.tree_ids();
        ids.iter().map(|&id| self.coordinate_of(m, x, id)).collect()
    }
}
