//! What of a linearization is worth keeping for later sweeps over the same step: the factors and the joints' rows at the
//! next knot. The rest is computed again, which is cheap beside them.

use super::{Maximal, Work};
use crate::dynamics::{SolvedStep, StepError};
use crate::spatial::Vec3;

/// Numbers of a row.
const ROW: usize = 9;

impl Maximal {
    /// Numbers to keep. Elements besides joints, and contacts, have more to a linearization: nothing is kept then.
    pub(super) fn kept_len(&self) -> usize {
        if !self.elements.is_empty() || !self.contacts.is_empty() {
            return 0;
        }
        let matrices = if self.mechanism.may_be_redundant() {
            2
        } else {
            1
        };
        matrices * self.symbolic.values_len() + ROW * self.rows
    }

    pub(super) fn keep_linearized(&self, w: &Work, kept: &mut [f64]) -> bool {
        let (values, rest) = kept.split_at_mut(self.symbolic.values_len());
        let (rows, original) = rest.split_at_mut(ROW * self.rows);
        values.copy_from_slice(&w.matrix.values);
        for (kept, row) in rows.as_chunks_mut::<ROW>().0.iter_mut().zip(&w.end.rows) {
            kept[..3].copy_from_slice(row.force.as_slice());
            kept[3..6].copy_from_slice(row.parent_torque.as_slice());
            kept[6..].copy_from_slice(row.child_torque.as_slice());
        }
        if w.model.may_be_redundant() {
            original.copy_from_slice(&w.matrix.original);
        }
        !w.matrix.uses_fallback
    }

    /// Not possible, and nothing done, when the residuals of a tree's solves are asked for: they need the matrix.
    pub(super) fn restore_linearized(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Work,
    ) -> Result<bool, StepError> {
        if w.adjoint.certificate.is_some() && !w.model.may_be_redundant() {
            return Ok(false);
        }
        self.evaluate_as_solved(at, w)?;
        let (values, rest) = kept.split_at(self.symbolic.values_len());
        let (rows, original) = rest.split_at(ROW * self.rows);
        w.matrix.values.copy_from_slice(values);
        for (kept, row) in rows.as_chunks::<ROW>().0.iter().zip(&mut w.end.rows) {
            row.force = Vec3::from_column_slice(&kept[..3]);
            row.parent_torque = Vec3::from_column_slice(&kept[3..6]);
            row.child_torque = Vec3::from_column_slice(&kept[6..]);
        }
        if w.model.may_be_redundant() {
            w.matrix.original.copy_from_slice(original);
        }
        (w.matrix.uses_fallback, w.adjoint.coupled) = (false, false);
        Ok(true)
    }
}
