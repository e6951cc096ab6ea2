//! What is wanted of a trajectory: costs, constraints, bounds. Knows only the seam.
//!
//! The objective is the sum of `weight/2 (quantity - target)^2`, multiplied by the knot's interval for running costs,
//! taken once for those at the end.

use crate::dynamics::{Inputs, Knot, Observe, StepError};
use crate::rollout::Trajectory;

/// Where along the trajectory a cost or a constraint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At every knot but the last.
    Running,
    /// At the last knot.
    End,
}

/// `weight/2 (quantity - target)^2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Index of the observed quantity.
    pub quantity: usize,
    /// In the quantity's unit.
    pub target: f64,
    /// Not negative.
    pub weight: f64,
    /// Where.
    pub when: When,
}

/// `quantity = equals` at the last knot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// Index of the observed quantity.
    pub quantity: usize,
    /// In the quantity's unit.
    pub equals: f64,
}

/// A trajectory wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Lengths of the intervals, s.
    pub intervals: Vec<f64>,
    /// State at the start.
    pub x0: Vec<f64>,
    /// Costs.
    pub costs: Vec<Cost>,
    /// Constraints at the end.
    pub constraints: Vec<Constraint>,
    /// Smallest and largest value of each control; infinite where there is none.
    pub bounds: Vec<(f64, f64)>,
    /// Controls to start from, `nu` a knot.
    pub guess: Vec<f64>,
}

/// Values of a problem's functions along a trajectory, and how to differentiate a combination of them.
#[derive(Clone, Debug)]
pub struct Evaluation {
    running: Vec<usize>,
    end: Vec<usize>,
    /// Observed quantities, knot by knot, those at the end behind.
    values: Vec<f64>,
    adjoint: Vec<f64>,
    /// The objective.
    pub objective: f64,
    /// `quantity - equals` of each constraint.
    pub constraints: Vec<f64>,
}

impl Problem {
    /// Memory for evaluations.
    pub fn evaluation(&self) -> Evaluation {
        let list = |indices: &mut dyn Iterator<Item = usize>| {
            let mut list: Vec<usize> = indices.collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        let of = |when: When| {
            self.costs
                .iter()
                .filter(move |c| c.when == when)
                .map(|c| c.quantity)
        };
        let running = list(&mut of(When::Running));
        let end = list(&mut of(When::End).chain(self.constraints.iter().map(|c| c.quantity)));
        Evaluation {
            values: vec![0.0; self.intervals.len() * running.len() + end.len()],
            adjoint: vec![0.0; running.len().max(end.len())],
            running,
            end,
            objective: f64::INFINITY,
            constraints: vec![0.0; self.constraints.len()],
        }
    }

    /// Evaluates along a trajectory.
    ///
    /// # Errors
    /// When a quantity cannot be observed.
    pub fn evaluate<D: Observe>(
        &self,
        dynamics: &D,
        t: &Trajectory,
        w: &mut D::Work,
        out: &mut Evaluation,
    ) -> Result<(), StepError> {
        let (n, width) = (t.steps(), out.running.len());
        out.objective = 0.0;
        let mut time = 0.0;
        for k in 0..=n {
            let at = Knot {
                t: time,
                ..t.knot_at(k)
            };
            let which = if k < n { &out.running } else { &out.end };
            if !which.is_empty() {
                let values = &mut out.values[k * width..k * width + which.len()];
                dynamics.observe(&at, t.state(k), t.control(k), which, w, values)?;
            }
            time += at.h;
        }
        for c in &self.costs {
            let half = 0.5 * c.weight;
            out.objective += match c.when {
                When::Running => {
                    let i = place(&out.running, c.quantity);
                    let square = |k: usize| (out.values[k * width + i] - c.target).powi(2);
                    half * (0..n).map(|k| t.intervals[k] * square(k)).sum::<f64>()
                }
                When::End => half * (out.end_value(n, c.quantity) - c.target).powi(2),
            };
        }
        for (i, c) in self.constraints.iter().enumerate() {
            out.constraints[i] = out.end_value(n, c.quantity) - c.equals;
        }
        Ok(())
    }

    /// Adjoints at knot `k` of `objective + sum multiplier_i constraint_i`; for [`crate::rollout::Sweep::run`].
    ///
    /// # Errors
    /// When a quantity cannot be observed.
    #[expect(
        clippy::too_many_arguments,
        reason = "the sweep's callback and the multipliers"
    )]
    pub fn pull<D: Observe>(
        &self,
        dynamics: &D,
        t: &Trajectory,
        multipliers: &[f64],
        evaluation: &mut Evaluation,
        at: &Knot,
        w: &mut D::Work,
        out: &mut Inputs,
    ) -> Result<(), StepError> {
        let (n, k) = (t.steps(), at.k);
        let e = evaluation;
        let (which, when) = if k < n {
            (&e.running, When::Running)
        } else {
            (&e.end, When::End)
        };
        if which.is_empty() {
            return Ok(());
        }
        let first = k * e.running.len();
        let values = &mut e.values[first..first + which.len()];
        e.adjoint.fill(0.0);
        for c in self.costs.iter().filter(|c| c.when == when) {
            let i = place(which, c.quantity);
            let error = values[i] - c.target;
            let weight = if k < n { c.weight * at.h } else { c.weight };
            e.adjoint[i] += weight * error;
            if k < n {
                out.h += 0.5 * c.weight * error * error;
            }
        }
        if k == n {
            for (c, m) in self.constraints.iter().zip(multipliers) {
                e.adjoint[place(which, c.quantity)] += m;
            }
        }
        let adjoint = &e.adjoint[..which.len()];
        let (x, u) = (t.state(k), t.control(k));
        dynamics.observe(at, x, u, which, w, values)?;
        dynamics.observe_pull(at, x, u, which, w, adjoint, out);
        Ok(())
    }

    /// Largest violation of a constraint or of a bound.
    pub fn violation(&self, constraints: &[f64], u: &[f64]) -> f64 {
        let equality = constraints.iter().fold(0.0_f64, |m, c| m.max(c.abs()));
        let bounds = u
            .chunks_exact(self.bounds.len().max(1))
            .flatten()
            .zip(self.bounds.iter().cycle());
        bounds.fold(equality, |m, (u, (l, h))| m.max(l - u).max(u - h))
    }
}

impl Evaluation {
    fn end_value(&self, n: usize, quantity: usize) -> f64 {
        self.values[n * self.running.len() + place(&self.end, quantity)]
    }
}

/// Where a quantity stands in a sorted list that holds it.
fn place(list: &[usize], quantity: usize) -> usize {
    list.binary_search(&quantity).unwrap_or_default()
}
