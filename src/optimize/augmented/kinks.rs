//! The function's model with all its kinks, where parameters alone are found.

use super::{Augmented, Param};
use crate::dynamics::{Observe, StepError};
use crate::optimize::lq::{Hinges, Weights};

/// Part of the tolerance to which multipliers of the model are complementary: what they leave is then lost beside what
/// constraints are not linear.
const ACCURACY: f64 = 1e-3;

/// Passes of these: the maps of the parameters bend as the multipliers press, which moves the program's solution. What falls by
/// [`CONTRACTION`] at least in each is at [`ACCURACY`] within so many; where it does not, the model holds nowhere.
const MAX_PASSES: usize = 30;
const CONTRACTION: f64 = 0.5;

/// A step, and by how much the function falls along it in its model.
pub(in crate::optimize) struct Promise {
    pub step: Param,
    pub gain: f64,
}

impl<D: Observe> Augmented<'_, D> {
    /// With this model, for problems of parameters alone: controls knot by knot have Riccati's recursion instead, which holds what acts
    /// as it is.
    pub fn with_kinks(self) -> Self {
        Self {
            has_kinks: !self.model.has_stages(),
            ..self
        }
    }

    /// The change of the scaled decisions that is best by the model, damped as [`Hinges::minimize`]; `None` where the model is
    /// not of numbers.
    ///
    /// # Errors
    /// When a step cannot be linearized.
    pub fn promise(&mut self, damping: f64) -> Result<Option<Promise>, StepError> {
        let (multipliers, penalty) = self.weights();
        let by = Weights {
            multipliers: &multipliers,
            penalty,
        };
        let best = self.hinges()?.minimize(by, damping);
        Ok(best.map(|best| Promise {
            step: Param::from_vec(best.d),
            gain: best.gain,
        }))
    }

    /// Multipliers of the problem's own model at the present point instead of the first-order update (Newton's method for the
    /// conditions of optimality, with the function as its merit); then penalties times `growth`. False, and nothing changes,
    /// where there is no such model at hand, or none obeys the constraints to first order.
    ///
    /// # Errors
    /// When a step cannot be linearized.
    pub fn update_by_model(&mut self, tolerance: f64, growth: f64) -> Result<bool, StepError> {
        if !self.has_kinks || !self.linearized || self.lagrangian.multipliers.is_empty() {
            return Ok(false);
        }
        let before = self.lagrangian.multipliers.clone();
        let mut last = f64::INFINITY;
        for _ in 0..MAX_PASSES {
            let (multipliers, penalty) = self.weights();
            let from = Weights {
                multipliers: &multipliers,
                penalty,
            };
            let found = self.hinges()?.multipliers(from, ACCURACY * tolerance);
            let Some(found) = found else {
                self.lagrangian.multipliers = before;
                self.reevaluate();
                return Ok(false);
            };
            let both = || found.iter().zip(&multipliers);
            let change = both().fold(0.0, |most: f64, (l, before)| most.max((l - before).abs()));
            self.lagrangian.multipliers = found;
            self.reevaluate();
            if change <= ACCURACY * tolerance * penalty || change > CONTRACTION * last {
                break;
            }
            last = change;
        }
        self.lagrangian.penalty *= growth;
        self.bound_multipliers
            .update(&self.current.decisions, growth);
        self.reevaluate();
        Ok(true)
    }

    fn weights(&self) -> (Vec<f64>, f64) {
        (self.lagrangian.multipliers.clone(), self.lagrangian.penalty)
    }

    /// The model at the present point: the last while the point and the function stay.
    pub(super) fn hinges(&mut self) -> Result<&Hinges, StepError> {
        self.gradient()?;
        if self.hinges.is_none() {
            let made = self.make_hinges()?;
            self.hinges = Some(made);
        }
        Ok(self.hinges.get_or_insert_default())
    }

    fn make_hinges(&mut self) -> Result<Hinges, StepError> {
        let of = (self.dynamics, self.problem);
        let (all_l, all_h) = (self.model.l.clone(), self.model.h.clone());
        let alone = self.lagrangian.without_constraints();
        let (path, workers) = (&mut self.current.path, &mut self.workers);
        self.model.reweigh(of, &alone, path, workers)?;
        let mut g = std::mem::replace(&mut self.model.l, all_l);
        let mut h = std::mem::replace(&mut self.model.h, all_h);
        let (n, by_scale) = (g.len(), &self.by_scale);
        g.iter_mut().zip(by_scale).for_each(|(g, s)| *g *= s);
        let mut costs = Vec::with_capacity(n);
        for (j, column) in h.chunks_exact_mut(n.max(1)).enumerate() {
            let both = column.iter_mut().zip(by_scale);
            both.for_each(|(h, s)| *h *= s * by_scale[j]);
            costs.push(column[j]);
            column[j] += self.by_bounds[j];
        }
        let evaluation = &self.current.path.evaluation;
        let (layout, c) = (&evaluation.layout, evaluation.constraints.clone());
        let mut rows = Vec::with_capacity(c.len() * n);
        for k in 0..layout.knots() {
            for &(i, place) in &layout.stage(k).constraints {
                let sign = self.problem.constraints[i].sign();
                let row = self.model.row_by_parameters(layout, k, place).iter();
                rows.extend(row.zip(by_scale).map(|(r, s)| sign * r * s));
            }
        }
        let equal = (0..c.len()).map(|i| self.lagrangian.is_equality(i));
        Ok(Hinges {
            g,
            h,
            costs,
            rows,
            equal: equal.collect(),
            c,
        })
    }
}
