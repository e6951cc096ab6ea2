//! States: how they are stored, made from joint coordinates, and read.

use super::assembly::{compliance, pose, vec3};
use super::tangent::velocities_between;
use super::{Maximal, Work};
use crate::dynamics::{Knot, StepError};
use crate::mechanism::{CoordinateId, Mechanism, ModelError, Motion, Rows, Vec6, least_squares};
use crate::spatial::Pose;
use nalgebra::DMatrix;

/// Velocities of all bodies: at a knot, or of the interval before it.
pub type Velocities = Vec<Motion>;

impl Maximal {
    /// Index of a coordinate among the unwound angles of the state.
    pub(super) fn winding(&self, x: &[f64], joint: usize) -> f64 {
        self.winding_of[joint].map_or(0.0, |i| x[13 * self.body_count() + i])
    }

    /// The state at the start: tree coordinates `q`, which are moved onto the loops, and rates of the tree, of which
    /// the part that keeps the loops closed and obeys the velocity constraints is taken (nearest by kinetic energy).
    /// `held` marks the coordinates that should stay as they are.
    ///
    /// # Errors
    /// When the loops do not close.
    pub fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
        self.start_of(&self.mechanism, q, rates, held)
    }

    /// The same of the mechanism with other parameters.
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
    pub(crate) fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        let winding = self.winding_near(&self.mechanism, poses, q, x);
        let velocities = velocities_between(poses, &self.poses(x), h);
        self.state(poses, &velocities, &winding)
    }

    /// Poses of all bodies.
    pub fn poses(&self, x: &[f64]) -> Vec<Pose> {
        x[..13 * self.body_count()]
            .chunks_exact(13)
            .map(pose)
            .collect()
    }

    /// Velocities of the interval before the knot.
    pub fn interval_velocities(&self, x: &[f64]) -> Velocities {
        x[..13 * self.body_count()]
            .chunks_exact(13)
            .map(|s| (vec3(s, 7), vec3(s, 10)))
            .collect()
    }

    /// Velocities at the knot, second order (physics of the step with `h = 0`), with the control that acts there.
    ///
    /// # Errors
    /// When the state is not finite or its constraints are singular.
    pub fn knot_velocities(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
    ) -> Result<Velocities, StepError> {
        self.readout(at, x, u, w)?;
        Ok((0..self.body_count())
            .map(|b| (vec3(&w.trial, 6 * b), vec3(&w.trial, 6 * b + 3)))
            .collect())
    }

    /// Value of a joint coordinate of the state, angles unwound.
    pub fn coordinate(&self, x: &[f64], joint: usize, direction: usize) -> f64 {
        self.coordinate_of(&self.mechanism, x, (joint, direction))
    }

    fn coordinate_of(&self, m: &Mechanism, x: &[f64], (joint, direction): CoordinateId) -> f64 {
        let j = &m.joints[joint];
        let world = Pose::identity();
        let a = j.parent.map_or(world, |p| pose(&x[13 * p..]));
        let b = pose(&x[13 * j.child..]);
        j.coordinate(direction, &j.relative(&a, &b), self.winding(x, joint))
    }

    /// All coordinates of the spanning tree.
    pub fn tree_coordinates(&self, x: &[f64]) -> Vec<f64> {
        self.tree_coordinates_of(&self.mechanism, x)
    }

    /// The same of the mechanism with other parameters.
    pub(super) fn tree_coordinates_of(&self, m: &Mechanism, x: &[f64]) -> Vec<f64> {
        let ids = m.tree_ids();
        ids.iter().map(|&id| self.coordinate_of(m, x, id)).collect()
    }
}

/// How well the constraints are met.
impl Maximal {
    /// Largest violation of a joint, a gear or a user's holonomic constraint at a state, m or rad.
    pub fn violation(&self, x: &[f64]) -> f64 {
        let (m, poses) = (&self.mechanism, self.poses(x));
        let all = m.constraints.iter().enumerate();
        all.filter(|(_, c)| c.is_holonomic())
            .map(|(i, _)| self.gap(i, &poses, x))
            .fold(m.violation(&poses).0, f64::max)
    }

    /// How far a gear or a user's constraint is from being met at a state, its largest row: `|g(z)|`, m or rad; of a
    /// velocity constraint `|1/2 (A(before) + A(z)) v-|`, m/s or rad/s, over the interval from the poses `before`.
    pub(crate) fn gap(&self, constraint: usize, before: &[Pose], x: &[f64]) -> f64 {
        let (m, c) = (&self.mechanism, &self.mechanism.constraints[constraint]);
        let n = c.bodies.len();
        let (poses, motion) = (self.poses(x), self.interval_velocities(x));
        let mut own = vec![Pose::identity(); n];
        let mut g = vec![0.0; c.rows];
        if c.is_holonomic() {
            let near = |(j, _): CoordinateId| self.winding(x, j);
            c.value(&m.joints, c.gather(&poses, &mut own), near, &mut g);
        } else {
            let mut rows = vec![Vec6::zeros(); c.rows * n];
            for poses in [before, &poses] {
                let at = c.gather(poses, &mut own);
                c.jacobian(&m.joints, at, Rows::Value, &mut rows);
                for (g, row) in g.iter_mut().zip(rows.chunks_exact(n)) {
                    for (row, &b) in row.iter().zip(&c.bodies) {
                        let (v, w) = motion[b];
                        *g += 0.5 * row.dot(&Vec6::new(v.x, v.y, v.z, w.x, w.y, w.z));
                    }
                }
            }
        }
        g.iter().fold(0.0, |m, g| m.max(g.abs()))
    }
}

/// What must be known to choose a time step.
impl Maximal {
    /// The spring with the highest frequency at a state, by name, and that frequency if only its two bodies moved,
    /// rad/s. The explicit treatment of springs wants `h omega` below 1 and is unstable from 2 on.
    pub fn fastest_spring(&self, x: &[f64]) -> Option<(String, f64)> {
        let (m, poses) = (&self.mechanism, self.poses(x));
        let inverse = &self.inverse_inertia;
        let joints = m.joints.iter().flat_map(|j| {
            let (a, b) = m.ends(j, &poses);
            let rel = j.relative(a, b);
            let own = j
                .directions
                .iter()
                .enumerate()
                .filter(|(_, d)| d.stiffness > 0.0);
            own.map(move |(i, d)| {
                let row = j.direction_row(i, a, b, &rel);
                (
                    format!("joint `{}`", j.name),
                    d.stiffness * compliance(m, inverse, (j.parent, j.child), &row),
                )
            })
            .collect::<Vec<_>>()
        });
        let lines = m.springs.iter().filter(|s| s.stiffness > 0.0).map(|s| {
            let row = s.length_row(m.pose(&poses, s.parent), &poses[s.child]);
            (
                format!("spring `{}`", s.name),
                s.stiffness * compliance(m, inverse, (s.parent, s.child), &row),
            )
        });
        let fastest = joints.chain(lines).max_by(|a, b| a.1.total_cmp(&b.1));
        fastest.map(|(name, square)| (name, square.sqrt()))
    }
}

/// What the energy balance needs to know.
impl Maximal {
    /// Unwound angle of a joint that has one, else 0.
    pub fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
        self.winding(x, joint)
    }

    /// Power of the controls at a configuration and velocities, W.
    pub fn control_power(&self, poses: &[Pose], velocities: &[Motion], u: &[f64]) -> f64 {
        let m = &self.mechanism;
        let power = m.actuators.iter().zip(u).map(|(c, u)| {
            let (parent, child) = m.driven(c);
            let row = c.row(&m.joints, (m.pose(poses, parent), &poses[child]));
            let (v, w) = &velocities[child];
            let on_parent = parent.map_or(0.0, |p| {
                let (v, w) = &velocities[p];
                row.parent_torque.dot(w) - row.force.dot(v)
            });
            c.exerted(*u).0 * (row.force.dot(v) + row.child_torque.dot(w) + on_parent)
        });
        power.sum()
    }

    /// Sums a function of (damping, displacement) over all dampers, between two configurations.
    pub fn damped_displacements(
        &self,
        from: &[Pose],
        to: &[Pose],
        f: impl Fn(f64, f64) -> f64,
    ) -> f64 {
        let m = &self.mechanism;
        self.damped
            .iter()
            .map(|d| f(d.damping(m), d.displacement(m, from, to).0))
            .sum()
    }
}
