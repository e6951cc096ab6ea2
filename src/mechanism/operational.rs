//! Compliances of the joint coordinates of the tree, from the operational-space inverse inertias of its bodies (Khatib 1987;
//! Kreutz-Delgado, Jain and Rodriguez 1992).
//!
//! Spatial vectors refer to one origin and to the world's axes: motions are `(v, w)`, wrenches `(f, n)`. With the motion subspace `S`
//! of the joint that connects a body to its inboard body, the inward pass collects articulated inertias and the outward pass
//! distributes the inverse:
//!
//! ```text
//! P = M + sum over children (P_c - P_c S_c K_c),        D = S' P S,   K = D^-1 S' P
//! W = (1 - S K) W_inboard (1 - S K)' + S D^-1 S',       (M^-1)_jj = D^-1 + K W_inboard K'
//! ```
//!
//! `W = J M^-1 J'` of a body, with `W = 0` of the world. Cost is linear in the number of bodies. Joints that close loops are left out.

use super::wrench::add_wrench;
use super::{Mat6, Mechanism, Spring};
use crate::spatial::{Mat3, Pose, Vec3, skew};
use nalgebra::{DVector, Matrix6xX};

/// Inertia of a body about the origin of the spatial vectors.
fn inertia_about(origin: &Vec3, pose: &Pose, mass: f64, inertia: &Mat3) -> Mat6 {
    let arm = skew(&(pose.x - origin));
    let mut out = Mat6::zeros();
    let mut set = |r, c, block: Mat3| out.fixed_view_mut::<3, 3>(r, c).copy_from(&block);
    set(0, 0, Mat3::identity() * mass);
    set(0, 3, arm * -mass);
    set(3, 0, arm * mass);
    set(
        3,
        3,
        pose.r * inertia * pose.r.transpose() - arm * arm * mass,
    );
    out
}

/// Coordinates up to which a dense mass matrix is used for dampers between points: its factorization is cubic. Dampers of larger
/// mechanisms are not judged.
const MOST_DENSE: usize = 120;

impl Mechanism {
    /// Diagonal of `M^-1` of the directions of every joint at a configuration, 1/kg or 1/(kg m^2): the rate along a coordinate by a
    /// unit impulse along it. Empty for a joint that closes a loop; none if an articulated inertia is singular.
    pub(crate) fn coordinate_compliances(&self, poses: &[Pose]) -> Option<Vec<Vec<f64>>> {
        // in the middle of all bodies, so that distances from it lose no digits
        let sum = poses.iter().fold(Vec3::zeros(), |sum, p| sum + p.x);
        let origin = sum / poses.len().max(1) as f64;
        let mut articulated: Vec<_> = (self.bodies.iter().zip(poses))
            .map(|(b, pose)| inertia_about(&origin, pose, b.mass, &b.inertia))
            .collect();
        // of every edge of the tree: S, D^-1 and K
        let mut factors = Vec::with_capacity(self.tree.edges.len());
        for e in self.tree.edges.iter().rev() {
            let j = &self.joints[e.joint];
            let (a, b) = self.ends(j, poses);
            let relative = j.relative(a, b);
            let at = a.point(&relative.arm) - origin;
            let count = j.directions.len();
            let mut subspace = Matrix6xX::zeros(count);
            for (i, mut column) in subspace.column_iter_mut().enumerate() {
                let mut rates = [0.0; 6];
                rates[i] = 1.0;
                let (slide, turn) = j.relative_motion(&relative, &rates[..count]);
                let turn = a.r * turn;
                let velocity = a.r * slide + at.cross(&turn);
                column.fixed_rows_mut::<3>(0).copy_from(&velocity);
                column.fixed_rows_mut::<3>(3).copy_from(&turn);
            }
            let (outboard, inboard) = match j.parent {
                Some(parent) if e.reversed => (parent, Some(j.child)),
                parent => (j.child, parent),
            };
            let p = articulated[outboard];
            let momenta = p * &subspace;
            let inverse = subspace.tr_mul(&momenta).try_inverse()?;
            let gains = &inverse * momenta.transpose();
            if let Some(inboard) = inboard {
                articulated[inboard] += p - momenta * &gains;
            }
            factors.push((outboard, inboard, subspace, inverse, gains));
        }
        let mut bodies = vec![Mat6::zeros(); self.bodies.len()];
        let mut out = vec![vec![]; self.joints.len()];
        let factors = factors.into_iter().rev();
        for (e, (outboard, inboard, subspace, inverse, gains)) in
            self.tree.edges.iter().zip(factors)
        {
            let near = inboard.map_or_else(Mat6::zeros, |b| bodies[b]);
            let own = &inverse + &gains * near * gains.transpose();
            let carried = Mat6::identity() - &subspace * &gains;
            bodies[outboard] =
                carried * near * carried.transpose() + &subspace * inverse * subspace.transpose();
            out[e.joint] = own.diagonal().as_slice().to_vec();
        }
        let is_regular = |m: &f64| *m > 0.0 && m.is_finite();
        let is_regular = out.iter().flatten().all(is_regular);
        is_regular.then_some(out)
    }

    /// The damper, if not implicit, that slows its displacement fastest, by its joint of the tree (`Ok`) or its spring (`Err`), and how fast if
    /// all bodies move, 1/s: its damping times the compliance `c` of the displacement. In a step of length `h` such a damper multiplies a rate
    /// by `(2 - h d c)/(2 + h d c)`. Loops and gears are left out, which hold back more. None if there is no damper, or none that comes to
    /// `least` if its two bodies moved alone.
    pub fn stiffest_explicit_damper(
        &self,
        poses: &[Pose],
        least: f64,
    ) -> Option<(Result<usize, usize>, f64)> {
        let joints = self.joints.iter().enumerate();
        let joints =
            joints.filter(|(_, j)| !j.implicit && j.directions.iter().any(|d| d.damping > 0.0));
        let mut all = vec![];
        if joints.clone().next().is_some()
            && let Some(compliances) = self.coordinate_compliances(poses)
        {
            for (index, j) in joints {
                let own = j.directions.iter().zip(&compliances[index]);
                all.extend(own.map(|(d, c)| (Ok(index), d.damping * c)));
            }
        }
        let springs = self.springs.iter().enumerate();
        let row = |s: &Spring| s.length_row(self.pose(poses, s.parent), &poses[s.child]);
        let springs = springs.filter(|(_, s)| {
            let alone = s.damping * self.gives((s.parent, s.child), &row(s));
            !s.implicit && alone > least
        });
        if springs.clone().next().is_some() && self.tree.coordinates <= MOST_DENSE {
            let basis = self.tree_basis(poses);
            let mass = self.mass_matrix(&basis).cholesky()?;
            for (index, s) in springs {
                let row = row(s);
                let mut wrench = vec![0.0; basis.nrows()];
                add_wrench(&mut wrench, s.parent, s.child, &row, 1.0);
                let along = basis.tr_mul(&DVector::from_vec(wrench));
                all.push((Err(index), s.damping * along.dot(&mass.solve(&along))));
            }
        }
        all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::JointKind;
    use super::super::samples::{Source, tree};

    /// Against the dense inverse of the mass matrix in joint coordinates.
    #[test]
    fn compliances_are_those_of_the_mass_matrix() {
        for seed in 0..24 {
            let mut s = Source::new(seed);
            let kinds: Vec<_> = (0..6).map(|_| JointKind::ALL[s.below(16)]).collect();
            let m = tree(seed, &kinds).build().expect("valid");
            let q = s.vector(m.tree.coordinates, 0.6);
            let poses = m.forward(&q);
            let dense = m.mass_matrix(&m.tree_basis(&poses)).try_inverse();
            let dense = dense.expect("regular");
            let found = m.coordinate_compliances(&poses).expect("regular");
            for e in &m.tree.edges {
                for (i, own) in found[e.joint].iter().enumerate() {
                    let exact = dense[(e.first + i, e.first + i)];
                    assert!((own - exact).abs() < 1e-9 * exact, "{own} {exact}");
                }
                assert_eq!(found[e.joint].len(), m.joints[e.joint].directions.len());
            }
        }
    }

    /// Of a rod of 2 kg and 1 m on a hinge at its end, `J = 2/3 kg m^2`.
    #[test]
    fn a_damper_is_as_stiff_as_what_it_moves_is_light() {
        use super::super::{BodySpec, JointSpec, MechanismBuilder};
        let hinge = |damping: f64, implicit: bool| {
            let joint = JointSpec::new(JointKind::Revolute, "rod").axis([0.0, 1.0, 0.0]);
            let mut joint = joint.anchors([0.0; 3], [0.0, 0.0, 0.5]).damping(damping);
            joint.implicit = implicit;
            let rod = BodySpec::new(2.0).inertia([1.0 / 6.0; 3]);
            let m = MechanismBuilder::new()
                .body("rod", rod)
                .joint("hinge", joint);
            let m = m.build().expect("valid");
            m.stiffest_explicit_damper(&m.forward(&[0.3]), 0.0)
        };
        let (joint, rate) = hinge(40.0, false).expect("a damper");
        assert_eq!(joint, Ok(0));
        assert!((rate - 60.0).abs() < 1e-10, "{rate}");
        assert_eq!(hinge(40.0, true), None);
        assert_eq!(hinge(0.0, false), None);
    }
}
