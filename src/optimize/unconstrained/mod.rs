//! argmin's own solvers of unconstrained problems on a problem with its states simulated away ([`super::Reduced`]), with
//! rounds of multipliers around them.
//!
//! They know no constraints and no bounds: both enter by an augmented Lagrangian, as in shooting, and the rounds are the same;
//! only the swarm keeps to a box, which the bounds of all decisions make. Parameters never leave their bounds.
//!
//! One iteration here is one of the solver's. Whether it converged is decided outside, by the optimality of
//! [`Options::optimality`] at its point, for solvers that use values alone as well: argmin's trust region reports nothing,
//! others report by absolute differences of costs. `lbfgs`, `newton-cg`, `trust-region` and `gauss-newton` work in variables
//! in which the curvature at the beginning of the round is the identity. Trials of the last three are simulated with the
//! feedback of shooting, and each iteration begins from its iterate anew. Those of `lbfgs`, whose memory spans iterations, are
//! open-loop: where a system is unstable a small change of early controls carries it far from where its linear model holds,
//! and steps become short.

mod inner;
mod variables;

use super::augmented::{Augmented, Param, squares};
use super::checkpoint::{Checkpoint, Incumbent};
use super::driver::{Algorithm, Found};
use super::lq::ROUNDING;
use super::reduced::Reduced;
use super::rounds::{Decided, Rounds};
use super::{Iteration, Method, SolveState, Status};
use crate::control::Problem;
use crate::dynamics::{Observe, stop_requested};
use crate::rollout::Trajectory;
use argmin::core::{Error, Hessian};
use inner::{Inner, Stepped, inner};
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use variables::{Transformed, Variables};

/// Which of argmin's solvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// `LBFGS` with More and Thuente's line search (Nocedal and Wright 2006, algorithm 7.5).
    Lbfgs,
    /// `NewtonCG`, backtracking (algorithm 7.1).
    NewtonCg,
    /// `TrustRegion` with `Steihaug`'s steps (algorithms 4.1, 7.2).
    TrustRegion,
    /// `GaussNewtonLS`, backtracking (section 10.3); costs must be squares.
    GaussNewton,
    /// `NelderMead`, by values alone, for a handful of decisions (section 9.5).
    NelderMead,
    /// `ParticleSwarm`, by values alone, for a handful of decisions within bounds (SPSO 2011: Zambrano-Bigiarini et al., CEC
    /// 2013).
    ParticleSwarm,
}

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Which of argmin's solvers.
    pub solver: Solver,
    /// Largest violation of a constraint or a bound, in their units.
    pub tolerance: f64,
    /// As [`super::shooting::Options::optimality`].
    pub optimality: f64,
    /// Iterations of all rounds; a solve that goes on may make as many again.
    pub max_iterations: u64,
    /// As [`super::shooting::Options::penalty`].
    pub penalty: f64,
    /// Pairs that L-BFGS remembers.
    pub memory: usize,
    /// Of the swarm.
    pub seed: u64,
    /// Particles of the swarm.
    pub population: usize,
}

impl Options {
    /// As they are by default.
    pub fn of(solver: Solver) -> Self {
        Self {
            solver,
            tolerance: 1e-6,
            optimality: 1e-8,
            max_iterations: 5000,
            penalty: 0.1,
            memory: 10,
            seed: 0,
            population: 40,
        }
    }
}

/// Decisions that solvers which use values alone take at most: a simplex stalls from about so many on, and a swarm needs ever
/// more particles. Conventional.
pub const MOST_DECISIONS: usize = 20;

/// Values that an iteration may ask for beside a population's: argmin's line searches have no limit of their own. As L-BFGS-B
/// allows a line search (Zhu, Byrd, Lu and Nocedal, ACM TOMS 23, 1997).
const MOST_VALUES: u64 = 20;

/// Iterations without gain after which a swarm has ended. Conventional.
const PATIENCE: u64 = 50;

/// Newton-CG ends conjugate gradients at `|r|^2 <= |g|/2`, which is a relative residual of `e` where `|g| = 1/(2 e^2)`: the
/// function is scaled to it, for `e = 1e-3`, below which the step is Newton's for every purpose.
const NEWTON_GRADIENT: f64 = 5e5;

impl Solver {
    /// Does it use values alone?
    pub fn is_derivative_free(self) -> bool {
        matches!(self, Self::NelderMead | Self::ParticleSwarm)
    }

    /// The method.
    pub fn method(self) -> Method {
        match self {
            Self::Lbfgs => Method::Lbfgs,
            Self::NewtonCg => Method::NewtonCg,
            Self::TrustRegion => Method::TrustRegion,
            Self::GaussNewton => Method::GaussNewton,
            Self::NelderMead => Method::NelderMead,
            Self::ParticleSwarm => Method::ParticleSwarm,
        }
    }

    /// Does an iteration know nothing of those before but, perhaps, the size of a step? It can then be another one around each
    /// iterate.
    fn begins_anew(self) -> bool {
        matches!(self, Self::NewtonCg | Self::GaussNewton | Self::TrustRegion)
    }
}

impl Options {
    /// Can the solver take the problem?
    ///
    /// # Errors
    /// Why not, and what does.
    pub(super) fn fits<D: Observe>(&self, dynamics: &D, problem: &Problem) -> Result<(), String> {
        let method = self.solver.method().name();
        if self.solver == Solver::GaussNewton {
            return squares(dynamics, problem)
                .map_err(|why| format!("{method} needs squares: {why}; take newton-cg or ddp"));
        }
        if !self.solver.is_derivative_free() {
            return Ok(());
        }
        let free = problem.free_parameters();
        let n = problem.guess.len() + free.len();
        if n > MOST_DECISIONS {
            return Err(format!(
                "{method} is for up to {MOST_DECISIONS} decisions, and here are {n} ({} controls over all knots, {} parameters); take ddp, or decide on the gains of a policy instead of controls",
                problem.guess.len(),
                free.len()
            ));
        }
        if self.solver != Solver::ParticleSwarm {
            return Ok(());
        }
        let open = |(l, u): &(f64, f64)| !(l.is_finite() && u.is_finite());
        if let Some(i) = problem.bounds.iter().position(open) {
            return Err(format!(
                "{method} searches within bounds, and control {i} has none on a side; give them, or take nelder-mead"
            ));
        }
        let unbounded = free.iter().find(|i| open(&problem.parameter_bounds[**i]));
        if let Some(&i) = unbounded {
            let all = dynamics.parameters();
            let name = all.get(i).map_or("", |p| &p.name);
            return Err(format!(
                "{method} searches within bounds, and parameter `{name}` has none on a side; give them, or take nelder-mead"
            ));
        }
        Ok(())
    }
}

/// The method: the function of a round, argmin's solver on it, and the rounds.
pub(super) struct Unconstrained<'a, D: Observe> {
    reduced: Rc<Reduced<'a, D>>,
    rounds: Rounds,
    options: Options,
    /// What steps, once it has begun, and in which variables.
    running: Option<Running<'a, D>>,
    /// How often one has begun: each swarm is another one.
    begun: u64,
    /// At the iterate, while function and iterate stay.
    optimality: Option<f64>,
    /// Of the trust region that a solve goes on with.
    radius: Option<f64>,
}

struct Running<'a, D: Observe> {
    solver: Box<dyn Inner<'a, D> + 'a>,
    variables: Rc<Variables>,
    /// Of solvers that use values alone: the value when it last fell by what counts, how many iterations ago, and if it did
    /// since the solver began.
    value: f64,
    idle: u64,
    gained: bool,
    /// It did not move, and goes on from there.
    stays: bool,
}

/// What a checkpoint keeps of this method alone. `newton-cg`, `gauss-newton` and `trust-region` go on as if they had not been
/// stopped; the others begin anew at the iterate: L-BFGS without memory, a simplex of its first size, another swarm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Saved {
    decisions: Vec<f64>,
    failures: u32,
    first_penalty: f64,
    begun: u64,
    radius: Option<f64>,
}

impl<'a, D: Observe> Unconstrained<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, options: Options) -> Self {
        let function = Augmented::new(dynamics, problem, options.penalty);
        Self {
            reduced: Rc::new(Reduced::of(function, squares(dynamics, problem))),
            rounds: Rounds {
                by_values: options.solver.is_derivative_free(),
                ..Rounds::new(options.tolerance, options.optimality)
            },
            options,
            running: None,
            begun: 0,
            optimality: None,
            radius: None,
        }
    }

    fn problem(&self, by: &Rc<Variables>) -> Transformed<'a, D> {
        Transformed {
            reduced: self.reduced.clone(),
            by: by.clone(),
        }
    }

    /// The solver, begun at the iterate if none runs; one that has no memory always.
    fn running(&mut self, at: &Param) -> Result<Running<'a, D>, Error> {
        let kind = self.options.solver;
        let begun = match self.running.take() {
            Some(running) if !kind.begins_anew() || running.stays => return Ok(running),
            other => other,
        };
        let mut running = match begun {
            // around each iterate other variables: a trust region is a ball in the curvature there, and fits nowhere in that
            // of where the round began
            Some(running) => Running {
                variables: self.variables(at)?,
                ..running
            },
            None => self.fresh(at)?,
        };
        let by = Rc::make_mut(&mut running.variables);
        let start = match kind.is_derivative_free() {
            true => at.clone(),
            false => Param::zeros(at.len()),
        };
        let size = match kind {
            // whose line search takes the slope of half the square for that of the norm: right where the norm is one
            Solver::GaussNewton => 1.0 / self.reduced.with(|f| f.residuals().norm_squared()),
            Solver::NewtonCg => {
                let g = self.reduced.with(|f| f.gradient())?;
                NEWTON_GRADIENT / by.gradient(g).norm()
            }
            _ => by.scale,
        };
        if size.is_finite() {
            by.scale = size;
        }
        let problem = self.problem(&running.variables);
        running.solver.begin(&problem, start)?;
        Ok(running)
    }

    /// Variables around the iterate, in which the function is as large as one.
    fn variables(&self, at: &Param) -> Result<Rc<Variables>, Error> {
        let kind = self.options.solver;
        let size = self.reduced.with(|f| f.size(self.options.tolerance));
        let scale = if size > 0.0 { 1.0 / size } else { 1.0 };
        if kind.is_derivative_free() {
            let none = Param::zeros(at.len());
            return Ok(Rc::new(Variables::new(none, scale)));
        }
        let mut by = Variables::whitened(at.clone(), self.reduced.hessian(at)?, scale);
        if by.is_singular() && self.reduced.has_residuals().is_ok() {
            by = by.whitened_by_rows(self.reduced.bent_jacobian(at)?);
        }
        Ok(Rc::new(if kind.begins_anew() { by.curved() } else { by }))
    }

    /// A solver in variables of its own.
    fn fresh(&mut self, at: &Param) -> Result<Running<'a, D>, Error> {
        let (value, bounds) = self.reduced.with(|f| (f.value(), f.bounds()));
        let seed = self.options.seed.wrapping_add(self.begun);
        self.begun += 1;
        Ok(Running {
            solver: inner(&self.options, at, bounds, seed, self.radius.take())?,
            variables: self.variables(at)?,
            value,
            idle: 0,
            gained: false,
            stays: false,
        })
    }

    /// An iteration of the solver from the iterate; where it stands then, in decisions.
    fn step(&mut self, at: &Param) -> Result<Stepped, Error> {
        let mut running = self.running(at)?;
        let problem = self.problem(&running.variables);
        let Stepped { at, ended } = running.solver.step(&problem)?;
        let at = running.variables.decisions(&at, &self.reduced)?;
        let at = at.ok_or_else(|| Error::msg("it ended where nothing can be simulated"))?;
        self.running = Some(running);
        Ok(Stepped { at, ended })
    }

    /// Where an iteration from `at`, of the value `before`, led, and whether it ended the solver: to the solver's point, or if
    /// it gave none to the best that it tried, or nowhere.
    fn moved(&mut self, at: &Param, before: f64) -> (Param, bool) {
        // once to begin, and once to go on
        let population = 2 * self.options.population.max(at.len() + 1) as u64;
        self.reduced.allow(MOST_VALUES + population);
        let stepped = self.step(at);
        if let Ok(Stepped { at: to, ended }) = &stepped {
            if to == at || self.reduced.with(|f| f.visit(to)) < before {
                return (to.clone(), *ended);
            }
            // a swarm may begin with worse than there was
            if self.options.solver.is_derivative_free() {
                return (at.clone(), *ended);
            }
        }
        match self.reduced.best() {
            Some((value, to)) if value < before => (to, true),
            _ => (at.clone(), true),
        }
    }

    /// Decides after an iteration of a solver that looks at gradients.
    fn decide(
        &mut self,
        state: &mut SolveState,
        (at, to): (&Param, &Param),
        before: f64,
        ended: bool,
    ) -> Result<(), Error> {
        // a trust region becomes smaller where nothing was gained, and L-BFGS forgets; all else would be tried as it was
        let kind = self.options.solver;
        let hopeless = matches!(kind, Solver::NewtonCg | Solver::GaussNewton);
        let (rounds, known) = (&mut self.rounds, self.optimality.filter(|_| at == to));
        let (optimality, decided) = self.reduced.with(|f| -> Result<_, Error> {
            let gained = f.visit(to) - before < -ROUNDING * before.abs();
            let optimality = match known {
                Some(known) => known,
                None => f.optimality(rounds.violation)?,
            };
            let decided = rounds.decide(f, state, optimality, gained, hopeless);
            rounds.record(f, state, optimality, (to - at).norm());
            Ok((optimality, decided))
        })?;
        self.optimality = Some(optimality).filter(|_| !decided.is_new);
        if let Some(running) = &mut self.running {
            running.stays = at == to;
        }
        if ended || decided.is_new || (decided.failed && kind != Solver::TrustRegion) {
            self.running = None;
        }
        if decided.is_new {
            self.reduced.rate_failures();
        }
        Ok(())
    }

    /// Decides after an iteration of a solver that looks at values alone: those in a row that gain nothing mean nothing until
    /// it ends.
    fn decide_by_values(
        &mut self,
        state: &mut SolveState,
        (at, to): (&Param, &Param),
        ended: bool,
    ) -> Result<(), Error> {
        let rounds = &mut self.rounds;
        let optimality = match self.optimality.filter(|_| at == to) {
            Some(known) => known,
            None => self.reduced.with(|f| {
                f.visit(to);
                f.optimality(rounds.violation)
            })?,
        };
        self.optimality = Some(optimality);
        let (mut ended, mut gained) = (ended, false);
        if let Some(running) = &mut self.running {
            let value = self.reduced.value_of(to)?;
            let least = self.options.optimality / running.variables.scale;
            running.idle += 1;
            if running.value - value > least {
                (running.value, running.idle, running.gained) = (value, 0, true);
            }
            ended |= self.options.solver == Solver::ParticleSwarm && running.idle >= PATIENCE;
            gained = running.gained;
        }
        let same = state.iterate.clone().zip(state.last().cloned());
        if !ended
            && optimality > rounds.tolerance
            && let Some((t, row)) = same.filter(|_| at == to)
        {
            // nothing to simulate for
            let row = Iteration {
                step_length: 0.0,
                ..row
            };
            state.record(&t, row, true);
            return Ok(());
        }
        let decided = self.reduced.with(|f| {
            f.visit(to);
            if f.violation() > rounds.violation {
                // the round is over, not the solve: the multipliers can do more
                rounds.failures = 0;
            }
            let decided = match ended || optimality <= rounds.tolerance {
                true => rounds.decide(f, state, optimality, gained, true),
                false => Decided::default(),
            };
            rounds.record(f, state, optimality, (to - at).norm());
            decided
        });
        if ended || decided.is_new {
            self.running = None;
        }
        if decided.is_new {
            self.optimality = None;
            self.reduced.rate_failures();
        }
        Ok(())
    }
}

impl<D: Observe> Algorithm for Unconstrained<'_, D> {
    fn method(&self) -> Method {
        self.options.solver.method()
    }

    fn tolerances(&self) -> (f64, f64) {
        (self.rounds.violation, self.rounds.optimality)
    }

    fn begin(&mut self, from: Option<Checkpoint>, state: &mut SolveState) -> Result<(), Error> {
        let rounds = &mut self.rounds;
        let kept: Option<Saved> = from.as_ref().and_then(Checkpoint::own);
        if let Some(kept) = &kept {
            (rounds.failures, self.begun, self.radius) = (kept.failures, kept.begun, kept.radius);
        }
        self.reduced.with(|f| {
            if let Some(c) = &from {
                let own = kept.as_ref().map(|k| (&k.decisions[..], k.first_penalty));
                rounds.resume(c, own, f);
            }
            rounds.begin(f, from.as_ref(), state)
        })?;
        self.reduced.rate_failures();
        Ok(())
    }

    fn advance(&mut self, state: &mut SolveState) -> Result<(), Error> {
        let Some(at) = self.rounds.iterate.clone() else {
            return Ok(());
        };
        let before = self.reduced.value_of(&at)?;
        let (to, ended) = self.moved(&at, before);
        if stop_requested() {
            state.end(Status::Interrupted, "");
            return Ok(());
        }
        if self.options.solver.is_derivative_free() {
            self.decide_by_values(state, (&at, &to), ended)
        } else {
            self.decide(state, (&at, &to), before, ended)
        }
    }

    fn counts(&self) -> (u64, u64) {
        self.reduced.with(|f| (f.steps, f.sweeps))
    }

    fn simulated(&mut self, kept: &Incumbent) -> Option<Trajectory> {
        self.reduced.with(|f| f.simulated(&kept.point))
    }

    fn checkpoint(&self) -> Checkpoint {
        let rounds = &self.rounds;
        self.reduced.with(|f| Checkpoint {
            own: Checkpoint::owned(rounds.iterate.as_ref().map(|v| Saved {
                decisions: v.as_slice().to_vec(),
                failures: rounds.failures,
                first_penalty: f.lagrangian.first_penalty,
                begun: self.begun,
                radius: self.running.as_ref().and_then(|r| r.solver.radius()),
            })),
            ..rounds.checkpoint(f)
        })
    }

    fn finish(&mut self, state: &SolveState, _: bool) -> Result<Found, Error> {
        let rounds = &self.rounds;
        self.reduced.with(|f| rounds.finish(f, state))
    }
}
