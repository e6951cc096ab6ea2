//! The joint chart: 2 n_dof coordinates of a small change of state, for trees and loops alike.
//!
//! A state has two configurations on the joints, `z_k` and `z_(k-1) = back(z_k, v-)`. With bases `N` of the joints'
//! tangents there, `dz_k = N_k a`, `dz_(k-1) = N_(k-1) b`; the chart's numbers are the coordinate `a` and the rate
//! `(a - b)/h-`. At the start, where `h- = 0`, the rate is that of the velocities themselves. For trees `N` comes from
//! the joint coordinates; for loops `N = N_tree Z` with `N' M N = I`, aligned along the path.

use super::Maximal;
use super::assembly::{pose, vec3};
use crate::dynamics::{DenseFrame, Frame, Knot, StepError, StepFailure};
use crate::mechanism::{Body, Mechanism, ModelError, Motion, least_squares};
use crate::spatial::{Mat3, Pose, RotationLaw, Vec3, log, right_log_jacobian};
use nalgebra::{DMatrix, DVector};

/// A configuration of the path with its tangents.
struct Tangent {
    poses: Vec<Pose>,
    q: Vec<f64>,
    /// Tree's basis, six rows per body.
    tree: DMatrix<f64>,
    /// Tangents of the tree that keep the loops closed.
    z: DMatrix<f64>,
}

impl Tangent {
    fn basis(&self) -> DMatrix<f64> {
        &self.tree * &self.z
    }
}

impl Maximal {
    fn tangent(
        &self,
        m: &Mechanism,
        poses: Vec<Pose>,
        near: &[f64],
        previous: Option<&DMatrix<f64>>,
    ) -> Tangent {
        let tree = m.tree_basis(&poses);
        let dof = self.mobility.degrees_of_freedom;
        let z = m.closed_basis(&poses, &tree, dof, previous);
        Tangent {
            q: m.tree_coordinates(&poses, near),
            poses,
            tree,
            z,
        }
    }

    /// A frame, where it is one of this system with its loops.
    fn own<'f>(&self, frame: &'f Frame, at: &Knot) -> Result<&'f DenseFrame, StepError> {
        let (d, coordinates) = (self.dims(), self.mechanism.tree.coordinates);
        match frame {
            Frame::Dense(own)
                if own.project.shape() == (d.ndx, d.nf)
                    && own.memory.shape() == (coordinates, d.ndx) =>
            {
                Ok(own)
            }
            _ => Err(StepError {
                failure: StepFailure::Frame,
                element: "frame".into(),
                time: at.t,
                residual: f64::NAN,
                message: crate::integrator::failure::FOREIGN.into(),
            }),
        }
    }

    /// Changes of the tree's coordinates by those of the chart, at the knot and at the knot before; none without loops.
    pub(super) fn tangents_of(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        let dof = self.mobility.degrees_of_freedom;
        match frame {
            Frame::Dense(own) if self.mechanism.has_loops() => {
                Some([0, dof].map(|first| own.memory.columns(first, dof).into_owned()))
            }
            // of a part of the state
            Frame::Parts(parts) => self.tangents_of(parts.first()?),
            _ => None,
        }
    }

    /// Left inverse `(N'MN)^-1 N'M` of a basis.
    fn projector(m: &Mechanism, basis: &DMatrix<f64>) -> DMatrix<f64> {
        let weighted = m.mass_times_columns(basis);
        let gram = basis.tr_mul(&weighted);
        match gram.cholesky() {
            Some(c) => c.solve(&weighted.transpose()),
            None => weighted.transpose(),
        }
    }

    /// Configuration at the knot before.
    pub(super) fn poses_before(&self, at: &Knot, x: &[f64]) -> Vec<Pose> {
        let bodies = x[..13 * self.body_count()].chunks_exact(13);
        let bodies = bodies.zip(&self.mechanism.bodies);
        bodies
            .map(|(s, b)| pose_before(&b.rotation, at, s))
            .collect()
    }

    /// `d velocities / d a` at the start: the velocities follow the configuration, and stay on the loops.
    fn start_velocity_derivative(&self, m: &Mechanism, x: &[f64], t: &Tangent) -> DMatrix<f64> {
        let rates = m.tree_rates(&t.poses, &self.velocities_of(x));
        let mut change = m.velocity_derivative(&t.poses, &rates) * &t.z;
        if m.has_loops() {
            // J_c drates = -(G_c dV + dG_c V), solved by the rates of least kinetic energy
            let motion = m.velocities(&t.poses, &rates);
            let jacobian = m.loop_jacobian(&t.poses, &t.tree);
            let drift = m.loop_rate_derivative(&t.poses, &motion, &t.basis(), &change);
            let mass = m.mass_matrix(&t.tree);
            let weighted = mass
                .clone()
                .cholesky()
                .map_or_else(|| jacobian.transpose(), |c| c.solve(&jacobian.transpose()));
            if let Some(nu) = least_squares(&jacobian * &weighted, &-drift) {
                change += &t.tree * (weighted * nu);
            }
        }
        change
    }

    /// [`crate::dynamics::Charts::frame`] of loops.
    pub(super) fn loop_frame(
        &self,
        at: &Knot,
        x: &[f64],
        previous: Option<&Frame>,
        m: &Mechanism,
    ) -> Result<Frame, StepError> {
        let (n, dof) = (6 * self.body_count(), self.mobility.degrees_of_freedom);
        let near = self.tree_coordinates_of(m, x);
        // the first half of a frame's memory is its basis at the knot, the second that of the knot before
        let previous = previous.map(|p| self.own(p, at)).transpose()?;
        let memory = previous.map(|own| own.memory.columns(0, dof).into_owned());
        let memory = memory.as_ref();
        let mut embed = DMatrix::zeros(2 * n, 2 * dof);
        let mut project = DMatrix::zeros(2 * dof, 2 * n);
        let (here, old_z);
        if let Some(h) = at.before() {
            let before = self.tangent(m, self.poses_before(at, x), &near, memory);
            here = self.tangent(m, self.poses_of(x), &near, Some(&before.z));
            let (basis, old) = (here.basis(), before.basis());
            let (left, left_old) = (Self::projector(m, &basis), Self::projector(m, &old));
            let (bz, bv, bv_inverse) = self.back_jacobians(at, x);
            // z_(k-1) = back(z_k, v-): dz_(k-1) = Bz dz_k + Bv dv-
            let by_b = times_blocks(&bv_inverse, &old);
            let by_a = -times_blocks(&bv_inverse, &times_blocks(&bz, &basis));
            embed.view_mut((0, 0), (n, dof)).copy_from(&basis);
            // (a, b) = (a, a - h rate)
            embed.view_mut((n, 0), (n, dof)).copy_from(&(by_a + &by_b));
            embed.view_mut((n, dof), (n, dof)).copy_from(&(by_b * -h));
            project.view_mut((0, 0), (dof, n)).copy_from(&left);
            let old_by_z = blocks_times(&left_old, &bz);
            let old_by_v = blocks_times(&left_old, &bv);
            project
                .view_mut((dof, 0), (dof, n))
                .copy_from(&((&left - old_by_z) / h));
            project
                .view_mut((dof, n), (dof, n))
                .copy_from(&(old_by_v * (-1.0 / h)));
            old_z = before.z;
        } else {
            here = self.tangent(m, self.poses_of(x), &near, memory);
            let basis = here.basis();
            let left = Self::projector(m, &basis);
            let follow = self.start_velocity_derivative(m, x, &here);
            embed.view_mut((0, 0), (n, dof)).copy_from(&basis);
            embed.view_mut((n, 0), (n, dof)).copy_from(&follow);
            embed.view_mut((n, dof), (n, dof)).copy_from(&basis);
            project.view_mut((0, 0), (dof, n)).copy_from(&left);
            project
                .view_mut((dof, 0), (dof, n))
                .copy_from(&-(&left * follow * &left));
            project.view_mut((dof, n), (dof, n)).copy_from(&left);
            old_z = here.z.clone();
        }
        let mut memory = DMatrix::zeros(here.z.nrows(), 2 * dof);
        memory.columns_mut(0, dof).copy_from(&here.z);
        memory.columns_mut(dof, dof).copy_from(&old_z);
        Ok(Frame::Dense(DenseFrame {
            embed,
            project,
            memory,
        }))
    }

    /// `Bz`, `Bv` and `Bv^-1`, 6 x 6 per body.
    fn back_jacobians(&self, at: &Knot, x: &[f64]) -> (Blocks, Blocks, Blocks) {
        let h = at.h_prev;
        let (mut bz, mut bv, mut inverse) = (vec![], vec![], vec![]);
        for ((_, w), body) in self
            .velocities_of(x)
            .into_iter()
            .zip(&self.mechanism.bodies)
        {
            let law = &body.rotation;
            let s = law.scalar(&w, h);
            let k = law.jacobian(&w, -h, s);
            let turn = *law.increment(&w, h, s).to_rotation_matrix().matrix();
            bz.push(pair(1.0, turn));
            bv.push(pair(-h, k));
            // det K = (h s^2)^3 (1 + ...) > 0 inside the domain of the increment
            inverse.push(pair(
                -1.0 / h,
                k.try_inverse().unwrap_or_else(nalgebra::Matrix3::zeros),
            ));
        }
        (bz, bv, inverse)
    }

    /// Moves along the tree's tangent `Z d` and closes the loops.
    fn moved(m: &Mechanism, t: &Tangent, d: &[f64]) -> Result<(Vec<Pose>, Vec<f64>), ModelError> {
        let mut q = t.q.clone();
        m.move_coordinates(&mut q, (&t.z * DVector::from_column_slice(d)).as_slice());
        let poses = m.close(&mut q, &vec![false; t.q.len()])?;
        Ok((poses, q))
    }

    pub(super) fn retract_at(
        &self,
        at: &Knot,
        x: &[f64],
        frame: &Frame,
        d: &[f64],
        m: &Mechanism,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let dof = self.mobility.degrees_of_freedom;
        let near = self.tree_coordinates_of(m, x);
        let (a, rate) = d.split_at(dof);
        let failed = |e: ModelError| StepError {
            failure: StepFailure::NotConverged,
            element: e.path.join("."),
            time: at.t,
            residual: f64::NAN,
            message: e.message,
        };
        if !m.has_loops() {
            self.retract_tree(at, x, (a, rate), m, out);
            return Ok(());
        }
        let memory = &self.own(frame, at)?.memory;
        let here = Tangent {
            z: memory.columns(0, dof).into_owned(),
            ..self.tangent(m, self.poses_of(x), &near, None)
        };
        let (poses, q) = Self::moved(m, &here, a).map_err(failed)?;
        let velocities: Vec<Motion> = if let Some(h) = at.before() {
            let before = self.tangent(m, self.poses_before(at, x), &near, None);
            let before = Tangent {
                z: memory.columns(dof, dof).into_owned(),
                ..before
            };
            let b: Vec<f64> = a.iter().zip(rate).map(|(a, r)| a - h * r).collect();
            let (old, _) = Self::moved(m, &before, &b).map_err(failed)?;
            velocities_between(m, x, (&poses, &old), h)
        } else {
            let mut rates = m.tree_rates(&here.poses, &self.velocities_of(x));
            let change = &here.z * DVector::from_column_slice(rate);
            rates
                .iter_mut()
                .zip(change.iter())
                .for_each(|(r, c)| *r += c);
            m.velocities(&poses, &Self::closed_rates(m, &poses, &rates))
        };
        let state = self.state(&poses, &velocities, &self.winding_near(m, &poses, &q, x));
        out.copy_from_slice(&state);
        Ok(())
    }

    /// Unwound angles of a neighbouring state.
    pub(super) fn winding_near(
        &self,
        m: &Mechanism,
        poses: &[Pose],
        q: &[f64],
        x: &[f64],
    ) -> Vec<f64> {
        let mut winding = self.winding_at(m, poses, q);
        for (value, &(joint, i)) in winding.iter_mut().zip(&self.windings) {
            let j = &m.joints[joint];
            let (a, b) = m.ends(j, poses);
            *value = j.coordinate(i, &j.relative(a, b), self.winding(x, joint));
        }
        winding
    }

    pub(super) fn difference_at(
        &self,
        at: &Knot,
        x: &[f64],
        frame: &Frame,
        m: &Mechanism,
        to: &[f64],
        out: &mut [f64],
    ) {
        if !m.has_loops() {
            return self.tree_difference(at, m, x, to, out);
        }
        let Ok(DenseFrame { project, .. }) = self.own(frame, at) else {
            return out.fill(f64::NAN);
        };
        let n = self.body_count();
        // displacements of both configurations, or of the velocities at the start, through the frame's projection
        let mut d = DVector::zeros(12 * n);
        let (here, there) = (self.poses_of(x), self.poses_of(to));
        let moved = |a: &Pose, b: &Pose| -> [f64; 6] {
            let (dx, phi): (Vec3, Vec3) = (b.x - a.x, log(&(a.q.conjugate() * b.q)));
            [dx.x, dx.y, dx.z, phi.x, phi.y, phi.z]
        };
        for b in 0..n {
            d.as_mut_slice()[6 * b..6 * b + 6].copy_from_slice(&moved(&here[b], &there[b]));
            for i in 0..6 {
                d[6 * (n + b) + i] = to[13 * b + 7 + i] - x[13 * b + 7 + i];
            }
        }
        let dof = self.mobility.degrees_of_freedom;
        let Some(h) = at.before() else {
            // parts of dv that only follow the configuration drop out by the projection
            out.copy_from_slice((project * d).as_slice());
            return;
        };
        let left = project.view((0, 0), (dof, 6 * n));
        let a = left * d.rows(0, 6 * n);
        let (old, older) = (self.poses_before(at, to), self.poses_before(at, x));
        let mut back = DVector::zeros(6 * n);
        for b in 0..n {
            back.as_mut_slice()[6 * b..6 * b + 6].copy_from_slice(&moved(&older[b], &old[b]));
        }
        let b = self.left_before(at, x, project) * back;
        for i in 0..dof {
            out[i] = a[i];
            out[dof + i] = (a[i] - b[i]) / h;
        }
    }

    /// Left inverse of the basis at the knot before, from a frame's: `project = [.., -L_(k-1) Bv / h]`.
    fn left_before(&self, at: &Knot, x: &[f64], project: &DMatrix<f64>) -> DMatrix<f64> {
        let (n, dof) = (6 * self.body_count(), self.mobility.degrees_of_freedom);
        let (_, _, inverse) = self.back_jacobians(at, x);
        let own = project.view((dof, n), (dof, n)).into_owned();
        blocks_times(&own, &inverse) * -at.h_prev
    }

    /// [`crate::dynamics::Charts::difference_by`] of loops.
    pub(super) fn loop_difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        frame: &Frame,
        to: &[f64],
    ) -> Result<DMatrix<f64>, StepError> {
        let project = &self.own(frame, at)?.project;
        let (n, dof) = (6 * self.body_count(), self.mobility.degrees_of_freedom);
        let turned = |from: &[Pose], to: &[Pose]| -> Blocks {
            let of = |(a, b): (&Pose, &Pose)| right_log_jacobian(&log(&(a.q.conjugate() * b.q)));
            from.iter().zip(to).map(|p| pair(1.0, of(p))).collect()
        };
        let here = turned(&self.poses_of(x), &self.poses_of(to));
        let by_z = blocks_times(&project.columns(0, n).into_owned(), &here);
        let mut out = project.clone();
        out.columns_mut(0, n).copy_from(&by_z);
        let Some(h) = at.before() else {
            return Ok(out);
        };
        let before = turned(&self.poses_before(at, x), &self.poses_before(at, to));
        let old = blocks_times(&self.left_before(at, x, project), &before);
        let (bz, bv, _) = self.back_jacobians(at, to);
        let rate_by_z = (by_z.rows(0, dof) - blocks_times(&old, &bz)) / h;
        out.view_mut((dof, 0), (dof, n)).copy_from(&rate_by_z);
        out.view_mut((dof, n), (dof, n))
            .copy_from(&(blocks_times(&old, &bv) / -h));
        Ok(out)
    }
}

/// Pose of a body at the knot before, from its thirteen numbers.
pub(super) fn pose_before(law: &RotationLaw, at: &Knot, s: &[f64]) -> Pose {
    let (p, v, w) = (pose(s), vec3(s, 7), vec3(s, 10));
    let scalar = law.scalar(&w, at.h_prev);
    let back = law.increment(&w, -at.h_prev, scalar);
    Pose::new(p.x - v * at.h_prev, p.q * back)
}

/// The velocities that lead from one configuration to another; `x` is the state near which they are looked for.
pub(super) fn velocities_between(
    m: &Mechanism,
    x: &[f64],
    (to, from): (&[Pose], &[Pose]),
    h: f64,
) -> Vec<Motion> {
    let between = |(((p, o), body), s): (((&Pose, &Pose), &Body), &[f64])| {
        let turn = o.q.conjugate() * p.q;
        let near = vec3(s, 10);
        (
            (p.x - o.x) / h,
            body.rotation.velocity(&turn, h, Some(&near)),
        )
    };
    let each = to.iter().zip(from).zip(&m.bodies);
    each.zip(x.chunks_exact(13)).map(between).collect()
}

type Blocks = Vec<crate::mechanism::Mat6>;

/// Of a body: a multiple of the displacement, a matrix times the rotation.
fn pair(lin: f64, rot: Mat3) -> crate::mechanism::Mat6 {
    let mut b = crate::mechanism::Mat6::identity() * lin;
    b.fixed_view_mut::<3, 3>(3, 3).copy_from(&rot);
    b
}

/// Block diagonal times a matrix with six rows per body.
fn times_blocks(blocks: &Blocks, m: &DMatrix<f64>) -> DMatrix<f64> {
    let mut out = m.clone();
    for (b, block) in blocks.iter().enumerate() {
        out.rows_mut(6 * b, 6)
            .copy_from(&(block * m.rows(6 * b, 6)));
    }
    out
}

/// A matrix with six columns per body times a block diagonal.
fn blocks_times(m: &DMatrix<f64>, blocks: &Blocks) -> DMatrix<f64> {
    let mut out = m.clone();
    for (b, block) in blocks.iter().enumerate() {
        out.columns_mut(6 * b, 6)
            .copy_from(&(m.columns(6 * b, 6) * block));
    }
    out
}
