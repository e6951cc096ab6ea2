//! Single shooting: controls and free parameters are the unknowns, the states follow by simulation, gradients by the
//! reverse sweep.
//!
//! Constraints at any knot and bounds enter by an augmented Lagrangian. Each round of it is minimized by Newton's method
//! with the Gauss-Newton curvature, which L-BFGS corrects by what the exact gradients showed on the way; between rounds
//! the multipliers move, and the penalty grows where the violation did not fall to a quarter.
//!
//! Sensitivities of a swing-up span many orders of magnitude: along a straight line of controls the states soon leave
//! their linear prediction, costs and constraints at the end with them, and only tiny steps are accepted. A trial is
//! therefore simulated with the curvature's own feedback `K_k` about the prediction,
//!
//! ```text
//! u_k = u_ref + a d_k + K_k (dx_k - a s_k)
//! ```
//!
//! with `d` the direction, `s` the response of the states to it, `dx` the change found, `a` the length. To first order
//! nothing changes, and what is found are controls again, where the next gradient is taken.

use super::augmented::{Augmented, Param};
use super::checkpoint::{Checkpoint, Incumbent};
use super::driver::{Algorithm, Found};
use super::lq::{Line, LineSearch, MAX_CONTRACTION, ROUNDING};
use super::rounds::{Decided, Rounds};
use super::{Method, SolveState, Status};
use crate::control::Problem;
use crate::dynamics::Observe;
use crate::rollout::Trajectory;
use argmin::core::Error;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// Reduction that the curvature still predicts, `1/2 g' H^-1 g`, relative to the objective and half the penalty times
    /// the square of the violation, or of the tolerance.
    pub optimality: f64,
    /// Iterations of all rounds; a solve that goes on may make as many again.
    pub max_iterations: u64,
    /// Pairs that L-BFGS remembers.
    pub memory: usize,
    /// First penalty weight of the constraints, relative to the objective by half the square of the violation at the
    /// guess.
    pub penalty: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 5000,
            memory: 10,
            penalty: 0.1,
        }
    }
}

// Where no reason is given beside what a constant trades, its value is conventional, not derived.

/// Most that feedback may have bent a step, relative to its slope, and how far the curvature observed may be from Gauss
/// and Newton's, for L-BFGS to learn from it: beyond, pairs tell of kinks and of feedback. Narrower, less is learnt.
const MAX_DEVIATION: f64 = 0.01;
const CREDIBLE: std::ops::Range<f64> = 0.01..100.0;
/// First damping, relative to the curvature (Marquardt 1963 starts at 1e-2), and below which it is none.
const FIRST_DAMPING: f64 = 1e-3;
const MIN_DAMPING: f64 = 1e-6;
/// By what damping grows where a line search fails (Marquardt 1963), and where it ends below [`SHORT_STEP`]; by what it
/// falls above [`LONG_STEP`].
const GROWTH_IF_FAILED: f64 = 10.0;
const GROWTH_IF_SHORT: f64 = 4.0;
const DECREASE_IF_LONG: f64 = 0.2;
const SHORT_STEP: f64 = 0.1;
const LONG_STEP: f64 = 0.3;

/// Pairs of changes of the decisions and of the gradient: what L-BFGS knows of the curvature that Gauss and Newton's
/// lacks.
struct LimitedMemory {
    most: usize,
    pairs: VecDeque<(Param, Param)>,
}

impl LimitedMemory {
    /// Learns from a step `s` and the change `y` of the gradient, where they tell of the curvature: not where the step
    /// is bent, the function not convex, or both far from the Gauss-Newton curvature `along` the step.
    fn update(&mut self, s: Param, y: Param, along: f64, deviation: f64) {
        let ratio = s.dot(&y) / along;
        if !(deviation < MAX_DEVIATION && CREDIBLE.contains(&ratio)) {
            return self.pairs.clear();
        }
        self.pairs.push_back((s, y));
        if self.pairs.len() > self.most {
            self.pairs.pop_front();
        }
    }

    /// The quasi-Newton direction of descent (Nocedal and Wright, algorithm 7.4); `newton` applies the inverse that it
    /// starts from.
    fn direction(&self, g: &Param, newton: impl FnOnce(&Param) -> Param) -> Param {
        let mut q = -g;
        let mut along = Vec::with_capacity(self.pairs.len());
        for (s, y) in self.pairs.iter().rev() {
            let a = s.dot(&q) / s.dot(y);
            q.axpy(-a, y, 1.0);
            along.push(a);
        }
        let mut d = newton(&q);
        for ((s, y), a) in self.pairs.iter().zip(along.into_iter().rev()) {
            d.axpy(a - y.dot(&d) / s.dot(y), s, 1.0);
        }
        d
    }
}

/// The method: the function of a round, the search for its minimum, and the rounds.
pub(super) struct Shooting<'a, D: Observe> {
    function: Augmented<'a, D>,
    search: QuasiNewton,
    rounds: Rounds,
}

/// L-BFGS iterations.
struct QuasiNewton {
    memory: LimitedMemory,
    /// Of the curvature.
    damping: f64,
}

/// What a checkpoint keeps of this method alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Saved {
    /// The iterate as it is searched: unscaled and scaled again it may differ by rounding.
    decisions: Vec<f64>,
    pairs: Vec<(Vec<f64>, Vec<f64>)>,
    damping: f64,
    failures: u32,
    first_penalty: f64,
}

/// How a line search ended.
enum Search {
    /// With this length, and with a gain beyond rounding or not.
    Moved(f64, bool),
    Failed,
    Interrupted,
}

impl<'a, D: Observe> Shooting<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, options: Options) -> Self {
        Self {
            function: Augmented::new(dynamics, problem, options.penalty),
            search: QuasiNewton {
                memory: LimitedMemory {
                    most: options.memory,
                    pairs: VecDeque::new(),
                },
                damping: 0.0,
            },
            rounds: Rounds::new(options.tolerance, options.optimality),
        }
    }

    /// Goes on where a solve stood.
    fn resume(&mut self, c: &Checkpoint) {
        let n = self.function.guess().len();
        let kept = c.own::<Saved>().filter(|k| k.decisions.len() == n);
        let own = kept.as_ref().map(|k| (&k.decisions[..], k.first_penalty));
        self.rounds.resume(c, own, &mut self.function);
        if let Some(kept) = kept {
            let pairs = kept.pairs.into_iter();
            self.search.memory.pairs = pairs
                .filter(|(s, y)| s.len() == n && y.len() == n)
                .map(|(s, y)| (s.into(), y.into()))
                .collect();
            (self.search.damping, self.rounds.failures) = (kept.damping, kept.failures);
        }
    }
}

impl QuasiNewton {
    /// After an iteration: where it gained nothing first without memory and with damping; what was learnt with another
    /// penalty is of another curvature.
    fn adapt(&mut self, to: Decided) {
        if to.failed {
            self.damping = (GROWTH_IF_FAILED * self.damping).max(FIRST_DAMPING);
        }
        if to.failed || to.slow {
            self.memory.pairs.clear();
        }
    }

    /// Searches along the quasi-Newton direction, and moves.
    fn search<D: Observe>(&mut self, p: &mut Augmented<D>) -> Result<Search, Error> {
        let gradient = p.gradient()?;
        if self.damping > 0.0 {
            p.damp(self.damping);
        }
        let mut d = self.memory.direction(&gradient, |q| p.newton(q));
        if gradient.dot(&d) >= 0.0 {
            self.memory.pairs.clear();
            d = -p.newton(&gradient);
        }
        let slope = gradient.dot(&d);
        let response = p.response(&d);
        let line = Line {
            before: p.value(),
            slope,
            curvature: 0.0,
            sufficient_decrease: SUFFICIENT_DECREASE,
            // the quasi-Newton model's second derivative is not known
            min_contraction: MAX_CONTRACTION,
        };
        // what cannot be simulated is too far
        let change = |length: f64| {
            let value = p.try_step(&d, &response, length);
            value.map_or(f64::INFINITY, |v| v - line.before)
        };
        let (length, change) = match line.search(1.0, MIN_LENGTH, change) {
            LineSearch::Accepted(length, change) => (length, change),
            LineSearch::Failed(_) => return Ok(Search::Failed),
            LineSearch::Stopped => return Ok(Search::Interrupted),
        };
        let before = p.decisions().clone();
        // where feedback bent the step the two gradients differ by more than the curvature along it
        p.accept();
        let s = p.decisions() - before;
        let deviation = p.curvature_along(&(&s - &d * length)) / (length * length * slope.abs());
        let along = p.curvature_along(&s);
        self.memory
            .update(s, p.gradient()? - gradient, along, deviation);
        if length > LONG_STEP {
            self.damping *= DECREASE_IF_LONG;
            if self.damping < MIN_DAMPING {
                self.damping = 0.0;
            }
        } else if length < SHORT_STEP {
            self.damping = (GROWTH_IF_SHORT * self.damping).max(FIRST_DAMPING);
        }
        Ok(Search::Moved(
            length,
            change < -ROUNDING * line.before.abs(),
        ))
    }
}

/// Sufficient decrease: part of the slope's prediction that a step must keep (Nocedal and Wright, section 3.1).
const SUFFICIENT_DECREASE: f64 = 1e-4;

/// Length below which a line search has failed: thirteen halvings. More cost rollouts, and damping turns the
/// direction, too.
const MIN_LENGTH: f64 = 1e-4;

impl<D: Observe> Algorithm for Shooting<'_, D> {
    fn method(&self) -> Method {
        Method::Shooting
    }

    fn tolerances(&self) -> (f64, f64) {
        (self.rounds.violation, self.rounds.optimality)
    }

    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error> {
        if let Some(c) = &from {
            self.resume(c);
        }
        self.rounds.begin(&mut self.function, from.as_ref(), state)
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let (p, rounds) = (&mut self.function, &mut self.rounds);
        let (length, gained) = match self.search.search(p)? {
            Search::Interrupted => {
                state.end(Status::Interrupted, "");
                return Ok(());
            }
            Search::Moved(length, gained) => (length, gained),
            Search::Failed => (0.0, false),
        };
        p.gradient()?;
        let optimality = p.optimality(rounds.violation)?;
        self.search
            .adapt(rounds.decide(p, state, optimality, gained, false));
        rounds.record(p, state, optimality, length);
        p.gradient()?;
        Ok(())
    }

    fn counts(&self) -> (u64, u64) {
        (self.function.steps, self.function.sweeps)
    }

    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        self.function.simulated(&kept.point)
    }

    fn checkpoint(&self) -> Checkpoint {
        let (search, rounds) = (&self.search, &self.rounds);
        let of = |v: &Param| v.as_slice().to_vec();
        let pairs = search.memory.pairs.iter();
        Checkpoint {
            own: Checkpoint::owned(rounds.iterate.as_ref().map(|v| Saved {
                decisions: of(v),
                pairs: pairs.map(|(s, y)| (of(s), of(y))).collect(),
                damping: search.damping,
                failures: rounds.failures,
                first_penalty: self.function.lagrangian.first_penalty,
            })),
            ..rounds.checkpoint(&self.function)
        }
    }

    fn finish(&mut self, state: &SolveState, _: bool) -> Result<Found, Error> {
        self.rounds.finish(&mut self.function, state)
    }
}
