//! The augmented Lagrangian of the constraints (Nocedal and Wright, *Numerical Optimization*, 2006, chapter 17):
//!
//! ```text
//! L = J + sum_i ( f_i^2 - l_i^2 ) / (2 r_i),    f_i = l_i + r_i c_i   (inequalities: not below zero)
//! ```

use super::path::Path;
use crate::control::{Evaluation, Layout, Problem, Relation};
use crate::optimize::checkpoint::Multipliers;

/// Optimality asked of the first round at most: its multipliers are far off, and more would be wasted. As the factor below
/// it is conventional; Nocedal and Wright, algorithm 17.4, tighten with the penalty instead.
pub const FIRST_TOLERANCE: f64 = 1e-2;
/// By what it falls from round to round, until it is that of the solve.
pub const TOLERANCE_REDUCTION: f64 = 0.1;
/// A round that leaves more than this part of the violation makes the penalty larger by the factor [`PENALTY_GROWTH`] (Nocedal
/// and Wright, framework 17.3; a quarter is Powell's, ten conventional).
pub const SLOW: f64 = 0.25;
pub const PENALTY_GROWTH: f64 = 10.0;

/// Multiplier and penalty of every constraint at every of its knots.
#[derive(Clone, Debug)]
pub struct Lagrangian {
    pub multipliers: Vec<f64>,
    pub penalty: f64,
    /// In the first round.
    pub first_penalty: f64,
    equal: Vec<bool>,
    scaled: bool,
}

impl Lagrangian {
    pub fn new(problem: &Problem, evaluation: &Evaluation, penalty: f64) -> Self {
        let layout = &evaluation.layout;
        let stages = (0..layout.knots()).flat_map(|k| &layout.stage(k).constraints);
        let equal: Vec<bool> = stages
            .map(|(i, _)| problem.constraints[*i].relation == Relation::Equal)
            .collect();
        Self {
            multipliers: vec![0.0; equal.len()],
            penalty,
            first_penalty: penalty,
            equal,
            scaled: false,
        }
    }

    /// For a checkpoint.
    pub fn to_checkpoint(&self) -> Multipliers {
        Multipliers {
            constraints: self.multipliers.clone(),
            penalty: self.penalty,
            // no other weighs anything here
            bound_penalty: 1.0,
            ..Multipliers::default()
        }
    }

    /// From a checkpoint.
    pub fn restore(&mut self, kept: &Multipliers) {
        self.multipliers.copy_from_slice(&kept.constraints);
        (self.penalty, self.first_penalty) = (kept.penalty, kept.penalty);
        self.scaled = true;
    }

    /// One in which no constraint weighs anything.
    pub fn without_constraints(&self) -> Self {
        let count = self.multipliers.len();
        Self {
            multipliers: vec![0.0; count],
            penalty: 0.0,
            // an equality adds even nothing
            equal: vec![false; count],
            ..*self
        }
    }

    /// As before the first round.
    pub fn restart(&mut self) {
        self.multipliers.fill(0.0);
        self.penalty = self.first_penalty;
    }

    pub fn is_equality(&self, i: usize) -> bool {
        self.equal[i]
    }

    /// Has `L` no kinks, as inequalities have where they begin to act?
    pub fn is_smooth(&self) -> bool {
        self.equal.iter().all(|e| *e)
    }

    /// Scales the penalty by a simulated guess, the first time.
    pub fn scale_penalty(&mut self, problem: &Problem, guess: &Evaluation) {
        if self.scaled {
            return;
        }
        if let Some(scale) = problem.penalty_scale(guess) {
            self.penalty *= scale;
            self.first_penalty = self.penalty;
            self.scaled = true;
        }
    }

    /// First-order estimate of the multiplier of constraint `i` at the value `c`: the derivative of `L` by it.
    pub fn estimate(&self, i: usize, c: f64) -> f64 {
        let estimate = self.multipliers[i] + self.penalty * c;
        if self.equal[i] {
            estimate
        } else {
            estimate.max(0.0)
        }
    }

    /// Complementarity: the sum of multiplier times slack over the inequalities, zero at an optimum.
    pub fn complementarity(&self, path: &Path) -> f64 {
        let constraints = path.evaluation.constraints.iter().enumerate();
        let inequalities = constraints.filter(|(i, _)| !self.equal[*i]);
        inequalities.fold(0.0, |sum, (i, c)| {
            sum + self.estimate(i, *c) * (-c).max(0.0)
        })
    }

    /// Sum of multiplier times violation: by how much `L` would fall to first order if all constraints came to hold.
    pub fn pressure(&self, path: &Path) -> f64 {
        let constraints = path.evaluation.constraints.iter().enumerate();
        constraints.map(|(i, c)| self.estimate(i, *c) * c).sum()
    }

    /// `L` of a path.
    pub fn value(&self, path: &Path) -> f64 {
        let constraints = path.evaluation.constraints.iter().enumerate();
        let terms = constraints.map(|(i, c)| {
            let (estimate, l) = (self.estimate(i, *c), self.multipliers[i]);
            (estimate * estimate - l * l) / (2.0 * self.penalty)
        });
        path.evaluation.objective + terms.sum::<f64>()
    }

    /// Multipliers of the knots so many steps later; those of constraints that do not hold there, as of those at the end,
    /// stay.
    pub fn shift(&mut self, layout: &Layout, steps: usize) {
        for k in 0..layout.knots().saturating_sub(steps) {
            let (own, later) = (layout.constraints(k).start, layout.constraints(k + steps));
            for (j, &(i, _)) in layout.stage(k).constraints.iter().enumerate() {
                let mut there = layout.stage(k + steps).constraints.iter();
                if let Some(from) = there.position(|(of, _)| *of == i) {
                    self.multipliers[own + j] = self.multipliers[later.start + from];
                }
            }
        }
    }

    /// First-order update of the multipliers, then the penalty times `growth`.
    pub fn update(&mut self, path: &Path, growth: f64) {
        for (i, c) in path.evaluation.constraints.iter().enumerate() {
            self.multipliers[i] = self.estimate(i, *c);
        }
        self.penalty *= growth;
    }
}
