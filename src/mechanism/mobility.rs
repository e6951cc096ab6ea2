//! Degrees of freedom, redundant rows, and the tangent space of a mechanism whose loops stay closed.

use super::rank::decompose;
use super::{Mechanism, ModelError};
use crate::spatial::Pose;
use nalgebra::{DMatrix, DVector};

/// Singular values below this part of the largest count as zero where freedoms are counted: larger than
/// [`super::RANK`], since the position is one in general and not one that was asked for.
const MOBILITY: f64 = 1e-8;
/// To reach a position in general: how far along the first free motion, m or rad, and how unevenly along the others.
const MIX: f64 = 0.1;
const UNEVEN: f64 = 0.37;

/// How a mechanism can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mobility {
    /// Independent motions at a position in general.
    pub degrees_of_freedom: usize,
    /// Independent loops, those through the ground included; a gear or a user's holonomic constraint counts as one.
    pub loops: usize,
    /// Constraint rows that follow from the others.
    pub redundant_rows: usize,
}

impl Mechanism {
    /// Mobility near the tree coordinates `q`, which close the loops. Singular positions count as those around them.
    ///
    /// # Errors
    /// When the loops do not close.
    pub fn mobility(&self, q: &[f64]) -> Result<Mobility, ModelError> {
        let n = self.tree.coordinates;
        let rows = self.loop_rows();
        let loops = self.tree.chords.len() + self.holonomic().count();
        let mut rank = 0;
        if loops > 0 {
            let mut q = q.to_vec();
            let free = vec![false; n];
            // a position in general is reached by a step that mixes all free motions
            for _ in 0..3 {
                let poses = self.close(&mut q, &free)?;
                let jacobian = self.loop_jacobian(&poses, &self.tree_basis(&poses));
                let (null, found) = null_space(&jacobian, None);
                rank = rank.max(found);
                let mix = DVector::from_fn(null.ncols(), |i, _| MIX / (1.0 + UNEVEN * i as f64));
                self.move_coordinates(&mut q, (null * mix).as_slice());
            }
        }
        Ok(Mobility {
            degrees_of_freedom: n - rank,
            loops,
            redundant_rows: rows - rank,
        })
    }

    /// Is a joint part of a loop: do other joints, gears or users' constraints tie its two bodies together, through the
    /// ground perhaps?
    pub fn in_loop(&self, joint: usize) -> bool {
        let node = |body: Option<usize>| body.map_or(0, |b| b + 1);
        let mut ties = vec![vec![]; self.bodies.len() + 1];
        for (i, j) in self.joints.iter().enumerate() {
            if i != joint && j.rows() > 0 {
                ties[node(j.parent)].push(j.child + 1);
                ties[j.child + 1].push(node(j.parent));
            }
        }
        for c in &self.constraints {
            // an element may hold its bodies against the ground, too
            for b in &c.bodies {
                ties[0].push(b + 1);
                ties[b + 1].push(0);
            }
        }
        let j = &self.joints[joint];
        let mut reached = vec![false; ties.len()];
        let mut queue = vec![node(j.parent)];
        while let Some(at) = queue.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                queue.extend(&ties[at]);
            }
        }
        reached[j.child + 1]
    }

    /// Basis `Z` of the tree's tangents that keep the loops closed, `dof` columns. With loops `Z' N' M N Z = I`;
    /// without it is the identity. `previous` aligns it with the basis of a neighbouring configuration.
    pub(crate) fn closed_basis(
        &self,
        poses: &[Pose],
        basis: &DMatrix<f64>,
        dof: usize,
        previous: Option<&DMatrix<f64>>,
    ) -> DMatrix<f64> {
        if !self.has_loops() {
            return DMatrix::identity(dof, dof);
        }
        if dof == 0 {
            return DMatrix::zeros(basis.ncols(), 0);
        }
        let null = null_space(&self.loop_jacobian(poses, basis), Some(dof)).0;
        let mass = self.mass_matrix(basis);
        let gram = null.tr_mul(&(&mass * &null));
        // a positive definite matrix restricted to independent columns
        let z = match gram.cholesky() {
            Some(c) => c
                .l()
                .solve_lower_triangular(&null.transpose())
                .map_or(null, |z| z.transpose()),
            None => null,
        };
        // N_k <- N_k U V' from the SVD of N_k' M N_(k-1): the rotation nearest to the previous basis
        match previous {
            Some(p) => match decompose(z.tr_mul(&(&mass * p))) {
                Some(svd) => z * svd.u * svd.v_t,
                None => z,
            },
            None => z,
        }
    }

    /// `N' M N` for a basis `N` with six rows per body.
    pub(crate) fn mass_matrix(&self, basis: &DMatrix<f64>) -> DMatrix<f64> {
        basis.tr_mul(&self.mass_times_columns(basis))
    }

    /// `M N`.
    pub(crate) fn mass_times_columns(&self, basis: &DMatrix<f64>) -> DMatrix<f64> {
        let mut out = basis.clone();
        for (from, mut to) in basis.column_iter().zip(out.column_iter_mut()) {
            self.mass_times(from.as_slice(), to.as_mut_slice());
        }
        out
    }
}

/// Null space of `a` by singular values, and the rank found; `dimension` overrides the rank found.
pub(super) fn null_space(a: &DMatrix<f64>, dimension: Option<usize>) -> (DMatrix<f64>, usize) {
    let n = a.ncols();
    // rows of zeros give all n right singular vectors
    let square = a.clone().resize_vertically(a.nrows().max(n), 0.0);
    let Some(svd) = decompose(square) else {
        return (DMatrix::identity(n, dimension.unwrap_or(n)), 0);
    };
    let floor = MOBILITY * svd.singular_values.max();
    let rank = svd.singular_values.iter().filter(|s| **s > floor).count();
    let first = n.saturating_sub(dimension.unwrap_or(n - rank));
    let columns: Vec<_> = (first..n).map(|i| svd.v_t.row(i).transpose()).collect();
    let null = if columns.is_empty() {
        DMatrix::zeros(n, 0)
    } else {
        DMatrix::from_columns(&columns)
    };
    (null, rank)
}
