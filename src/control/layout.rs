//! What is asked of a problem's quantities, knot by knot, and their values.

use super::{Ended, Problem};
use crate::dynamics::QuantityId;

/// What is asked at a knot: the quantities to observe, and where costs and constraints find theirs among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Quantities, ascending.
    pub which: Vec<QuantityId>,
    /// Index of a cost, place in `which`.
    pub costs: Vec<(usize, usize)>,
    /// Index of a constraint, place in `which`.
    pub constraints: Vec<(usize, usize)>,
}

/// The stages of a problem: most knots share one.
#[derive(Clone, Debug)]
pub struct Layout {
    stages: Vec<Stage>,
    stage_of: Vec<usize>,
    first_value: Vec<usize>,
    first_constraint: Vec<usize>,
    timing: Vec<Option<Timing>>,
    /// Of the interval before the first.
    before: Option<Timing>,
}

/// An interval whose length is a part of a duration that is a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Index of the parameter.
    pub parameter: usize,
    /// The interval by the duration.
    pub share: f64,
}

impl Layout {
    /// Number of knots.
    pub fn knots(&self) -> usize {
        self.stage_of.len()
    }

    /// What is asked at knot `k`.
    pub fn stage(&self, k: usize) -> &Stage {
        &self.stages[self.stage_of[k]]
    }

    /// What sets the length of interval `k`; nothing where it is fixed.
    pub fn timing(&self, k: usize) -> Option<Timing> {
        self.timing.get(k).copied().flatten()
    }

    /// What sets the length of the interval before knot `k`.
    pub fn timing_before(&self, k: usize) -> Option<Timing> {
        match k.checked_sub(1) {
            Some(before) => self.timing(before),
            None => self.before,
        }
    }

    /// Places of knot `k`'s observed quantities in [`Evaluation::values`].
    pub fn values(&self, k: usize) -> std::ops::Range<usize> {
        self.first_value[k]..self.first_value[k + 1]
    }

    /// Places of knot `k`'s constraints in [`Evaluation::constraints`].
    pub fn constraints(&self, k: usize) -> std::ops::Range<usize> {
        self.first_constraint[k]..self.first_constraint[k + 1]
    }
}

/// Values of a problem's functions along a trajectory.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Which values belong to which knot.
    pub layout: Layout,
    /// Observed quantities, knot by knot.
    pub values: Vec<f64>,
    /// The objective.
    pub objective: f64,
    /// Each constraint at each of its knots, as [`Problem::constraint_at`]; zero behind the end of an episode.
    pub constraints: Vec<f64>,
    /// Where the episode ended before its horizon did.
    pub ended: Option<Ended>,
    pub(super) adjoint: Vec<f64>,
}

impl Problem {
    /// What is asked at each knot.
    pub fn layout(&self) -> Layout {
        let n = self.intervals.len();
        let mut out = Layout {
            stages: vec![],
            stage_of: vec![],
            first_value: vec![0],
            first_constraint: vec![0],
            timing: self.timing(),
            before: self.timing_before(),
        };
        for k in 0..=n {
            let costs = self.costs.iter().enumerate();
            let costs = costs
                .filter(|(_, c)| c.counts(k, n))
                .map(|(i, c)| (i, c.quantity));
            let constraints = self.constraints.iter().enumerate();
            let constraints = constraints
                .filter(|(_, c)| c.when.holds(k, n))
                .map(|(i, c)| (i, c.quantity));
            let both = costs.clone().chain(constraints.clone());
            let mut which: Vec<QuantityId> = both.map(|(_, q)| q).collect();
            which.sort_unstable();
            which.dedup();
            let place = |(i, q)| (i, which.partition_point(|w| *w < q));
            let stage = Stage {
                costs: costs.map(place).collect(),
                constraints: constraints.map(place).collect(),
                which,
            };
            out.first_value.push(out.first_value[k] + stage.which.len());
            out.first_constraint
                .push(out.first_constraint[k] + stage.constraints.len());
            let known = out.stages.iter().rposition(|s| *s == stage);
            out.stage_of.push(known.unwrap_or(out.stages.len()));
            if known.is_none() {
                out.stages.push(stage);
            }
        }
        out
    }

    /// Memory for evaluations.
    pub fn evaluation(&self) -> Evaluation {
        let layout = self.layout();
        let widest = layout.stages.iter().map(|s| s.which.len()).max();
        let last = layout.knots();
        Evaluation {
            values: vec![0.0; layout.first_value[last]],
            adjoint: vec![0.0; widest.unwrap_or(0)],
            objective: f64::INFINITY,
            ended: None,
            constraints: vec![0.0; layout.first_constraint[last]],
            layout,
        }
    }
}
