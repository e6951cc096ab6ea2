//! Levenberg and Marquardt's method: parameters from what is to be small, or from what was recorded.
//!
//! With the residuals `r` and their derivatives `J` by the decisions ([`super::Reduced`]) an iteration solves
//!
//! ```text
//! ( J'J + lambda diag(J'J) ) d = -J'r
//! ```
//!
//! and takes `d` where the function falls by enough of what its model promises; `lambda` falls where it does as promised and
//! grows where it does not, until the step is shorter (Marquardt, SIAM J. Appl. Math. 11, 1963; the update is Nielsen's,
//! IMM-REP-1999-05). Costs that are no squares have the curvature of the square that touches them
//! ([`crate::control::Form::at`]), so that robust ones are reweighted from iteration to iteration. Parameters keep their bounds.
//!
//! Constraints enter by rounds of an augmented Lagrangian, as in [`super::shooting`]. Its model has all its kinks: with a few
//! decisions the derivatives of every constraint at every knot are known, and with them where each begins and ends to act along
//! a step. Between rounds the multipliers are those of the problem's own model, a quadratic program, where that has a solution:
//! rounds then end after a step each, and the method is Newton's on the conditions of optimality.
//!
//! Tuning of gains and identification are the same call: what is wanted is a target, and so is what was recorded. Controls are
//! those of a policy, or given; `J` is carried forward along the trajectory, which takes a solve for each parameter a step, and the
//! solution tells how well it is determined: its [`super::Covariance`].

use super::augmented::{Augmented, Promise};
use super::checkpoint::{Checkpoint, Incumbent};
use super::driver::{Algorithm, Found};
use super::lq::ROUNDING;
use super::rounds::Rounds;
use super::{Method, SolveState, Status};
use crate::control::Problem;
use crate::dynamics::{Observe, stop_requested};
use crate::rollout::Trajectory;
use argmin::core::Error;
use serde::{Deserialize, Serialize};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// As [`super::shooting::Options::optimality`].
    pub optimality: f64,
    /// Iterations of all rounds; a solve that goes on may make as many again.
    pub max_iterations: u64,
    /// As [`super::shooting::Options::penalty`].
    pub penalty: f64,
    /// First damping, relative to the curvature by each decision, constraints' left out where costs are curved.
    pub damping: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 5000,
            penalty: 0.1,
            // between Marquardt's 1e-2 and the 1e-3 of Nielsen's report for fair guesses
            damping: 1e-3,
        }
    }
}

/// Part of the promised gain from which on a step is taken (Nielsen takes any gain; this much is above rounding).
const SUFFICIENT: f64 = 1e-4;
/// By what damping falls at most where a step gained all that was promised, and by what it grows first where one gained nothing
/// (Nielsen, equation 2.4).
const DECREASE: f64 = 1.0 / 3.0;
const GROWTH: f64 = 2.0;
/// How long a step is at most after one that gained nothing, beside that one. Nielsen tries every damping, and where damping was
/// small several in a row are all but the same step, each a rollout.
const SHORTER: f64 = 0.9;
/// Part of the function below which a gain counts as none: several such in a row end a round, where kinks of constraints or of
/// costs keep steps short. Conventional: a thousandth of the first round's [`super::lq::FIRST_TOLERANCE`].
const SLOW_GAIN: f64 = 1e-5;
/// Damping beyond which a step is a vanishing part of one along the gradient: then none gains.
pub(super) const MOST_DAMPING: f64 = 1e12;
/// Damping below which it is none: growth starts from there.
const LEAST_DAMPING: f64 = 1e-12;

/// The method.
pub(super) struct LevenbergMarquardt<'a, D: Observe> {
    function: Augmented<'a, D>,
    rounds: Rounds,
    search: Search,
    /// As it was at the iterate last recorded: an iteration that is broken off has not begun.
    recorded: Search,
}

/// What is carried from iteration to iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Search {
    damping: f64,
    /// Of the damping, where the next step gains nothing.
    growth: f64,
}

/// What a checkpoint keeps of this method alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Saved {
    decisions: Vec<f64>,
    search: Search,
    failures: u32,
    first_penalty: f64,
}

/// How an iteration ended.
enum Step {
    /// With a gain beyond rounding or not.
    Moved {
        gained: bool,
    },
    Failed,
    Interrupted,
}

impl Options {
    /// Can the method take the problem?
    ///
    /// # Errors
    /// Why not, and what does.
    pub(super) fn fits(&self, problem: &Problem) -> Result<(), String> {
        match problem.guess.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{} finds parameters, and controls are decided here; give these ([policy] controls in a file), or take ddp",
                Method::LevenbergMarquardt.name()
            )),
        }
    }
}

impl<'a, D: Observe> LevenbergMarquardt<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, options: Options) -> Self {
        let search = Search {
            damping: options.damping,
            growth: GROWTH,
        };
        Self {
            function: Augmented::new(dynamics, problem, options.penalty).with_kinks(),
            rounds: Rounds::new(options.tolerance, options.optimality),
            search,
            recorded: search,
        }
    }
}

impl Search {
    /// Damps until a step gains.
    fn step<D: Observe>(&mut self, p: &mut Augmented<D>) -> Result<Step, Error> {
        let before = p.value();
        // without constraints there is no next round to come to
        let slow = match p.lagrangian.multipliers.is_empty() {
            true => ROUNDING,
            false => SLOW_GAIN,
        };
        let mut longest = f64::INFINITY;
        while self.damping <= MOST_DAMPING {
            let Some(Promise { step, gain }) = p.promise(self.damping)? else {
                return Ok(Step::Failed);
            };
            // what is less is lost in the sums that the value is made of
            if gain <= ROUNDING * before.abs() {
                return Ok(Step::Failed);
            }
            // the model is cheap beside a rollout
            if step.norm() > longest {
                self.grow();
                continue;
            }
            // what cannot be simulated is too far
            let value = p.try_step(&step, &[], 1.0).unwrap_or(f64::INFINITY);
            if stop_requested() {
                return Ok(Step::Interrupted);
            }
            let ratio = (before - value) / gain;
            if ratio > SUFFICIENT {
                p.accept();
                let factor = 1.0 - (2.0 * ratio - 1.0).powi(3);
                self.damping *= factor.max(DECREASE);
                self.growth = GROWTH;
                return Ok(Step::Moved {
                    gained: before - value > slow * before.abs(),
                });
            }
            longest = SHORTER * step.norm();
            self.grow();
        }
        Ok(Step::Failed)
    }

    fn grow(&mut self) {
        self.damping = self.growth * self.damping.max(LEAST_DAMPING);
        self.growth *= GROWTH;
    }
}

impl<D: Observe> Algorithm for LevenbergMarquardt<'_, D> {
    fn method(&self) -> Method {
        Method::LevenbergMarquardt
    }

    fn tolerances(&self) -> (f64, f64) {
        (self.rounds.violation, self.rounds.optimality)
    }

    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error> {
        if let Some(c) = &from {
            let n = self.function.guess().len();
            let kept = c.own::<Saved>().filter(|k| k.decisions.len() == n);
            let own = kept.as_ref().map(|k| (&k.decisions[..], k.first_penalty));
            self.rounds.resume(c, own, &mut self.function);
            if let Some(kept) = kept {
                (self.search, self.recorded) = (kept.search, kept.search);
                self.rounds.failures = kept.failures;
            }
        }
        self.rounds.begin(&mut self.function, from.as_ref(), state)
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let (p, rounds) = (&mut self.function, &mut self.rounds);
        let (moved, gained) = match self.search.step(p)? {
            Step::Interrupted => {
                state.end(Status::Interrupted, "");
                return Ok(());
            }
            Step::Moved { gained } => (true, gained),
            Step::Failed => (false, false),
        };
        let optimality = p.optimality(rounds.violation)?;
        // with all damping tried, another iteration here is the same
        let decided = rounds.decide(p, state, optimality, gained, !moved);
        if decided.failed || decided.is_new {
            self.search = Search {
                damping: self.search.damping.min(Options::default().damping),
                growth: GROWTH,
            };
        }
        rounds.record(p, state, optimality, if moved { 1.0 } else { 0.0 });
        self.recorded = self.search;
        Ok(())
    }

    fn counts(&self) -> (u64, u64) {
        (self.function.steps, self.function.sweeps)
    }

    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        self.function.simulated(&kept.point)
    }

    fn checkpoint(&self) -> Checkpoint {
        let rounds = &self.rounds;
        Checkpoint {
            own: Checkpoint::owned(rounds.iterate.as_ref().map(|v| Saved {
                decisions: v.as_slice().to_vec(),
                search: self.recorded,
                failures: rounds.failures,
                first_penalty: self.function.lagrangian.first_penalty,
            })),
            ..rounds.checkpoint(&self.function)
        }
    }

    fn finish(&mut self, state: &SolveState, hurried: bool) -> Result<Found, Error> {
        let found = self.rounds.finish(&mut self.function, state)?;
        // what is not a minimum has no such law
        let converged = matches!(state.ended, Some((Status::Converged, _)));
        let covariance = match converged && !hurried {
            true => self.function.covariance(&found.trajectory).ok().flatten(),
            false => None,
        };
        Ok(Found {
            covariance,
            ..found
        })
    }
}
