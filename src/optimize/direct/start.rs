//! Where a program starts, if parameters decide that: the separation of the first state from the start.

use super::plan::Plan;
use crate::dynamics::{Observe, StepError};

/// Second derivatives are central differences over this change, relative to a parameter's size where that is above 1; see
/// the knots' one.
const DIFFERENCE: f64 = 1e-5;

/// The start of a plan.
pub struct Start<'a, 'b, D: Observe>(pub &'a Plan<'b, D>);

/// Every component by itself.
pub fn unit_weights(n: usize) -> impl Iterator<Item = Vec<f64>> {
    (0..n).map(move |i| {
        let mut unit = vec![0.0; n];
        unit[i] = 1.0;
        unit
    })
}

impl<D: Observe> Start<'_, '_, D> {
    /// Its separation from the state that the first one's moves begin at.
    pub fn apart(&self, p: &[f64], w: &mut D::Work) -> Result<Vec<f64>, StepError> {
        let plan = self.0;
        let x0 = plan.problem.start(plan.dynamics, p, w)?;
        let mut apart = vec![0.0; plan.dims.nf];
        let first = plan.trajectory.state(0);
        plan.dynamics.separation(first, &x0, &mut apart);
        Ok(apart)
    }

    /// Derivatives of its weighed sums by the parameters that are decided, one sum after the other.
    pub fn slopes(
        &self,
        p: &[f64],
        weights: impl Iterator<Item = Vec<f64>>,
        w: &mut D::Work,
    ) -> Result<Vec<f64>, StepError> {
        let plan = self.0;
        let x0 = plan.problem.start(plan.dynamics, p, w)?;
        let by = (plan.problem).start_by_parameters(plan.dynamics, p, w)?;
        let first = plan.trajectory.state(0);
        let mut out = vec![];
        for mut v in weights {
            plan.dynamics.pull_separation(first, &x0, &mut v);
            out.extend(plan.free.iter().map(|i| {
                let column = by.column(*i);
                v.iter().zip(column.iter()).map(|(v, b)| v * b).sum::<f64>()
            }));
        }
        Ok(out)
    }

    /// Places of its second derivatives among the parameters: of the lower triangle.
    pub fn lower(&self) -> impl Iterator<Item = (usize, usize)> + use<D> {
        let count = if self.0.start_moves {
            self.0.free.len()
        } else {
            0
        };
        (0..count).flat_map(|a| (0..=a).map(move |b| (a, b)))
    }

    /// Its second derivatives, weighed.
    pub fn curve(
        &self,
        p: &[f64],
        weights: &[f64],
        w: &mut D::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let (plan, count) = (self.0, self.0.free.len());
        let mut by = vec![0.0; count * count];
        let mut p = p.to_vec();
        for (a, &i) in plan.free.iter().enumerate() {
            let change = DIFFERENCE * p[i].abs().max(1.0);
            let (lower, upper) = plan.problem.parameter_bounds[i];
            let kept = p[i];
            let middle = kept.min(upper - change).max(lower + change);
            for sign in [1.0, -1.0] {
                p[i] = middle + sign * change;
                let slopes = self.slopes(&p, std::iter::once(weights.to_vec()), w)?;
                for (by, s) in by[a * count..].iter_mut().zip(&slopes) {
                    *by += sign * s / (2.0 * change);
                }
            }
            p[i] = kept;
        }
        for (to, (a, b)) in out.iter_mut().zip(self.lower()) {
            *to = 0.5 * (by[a * count + b] + by[b * count + a]);
        }
        Ok(())
    }
}
