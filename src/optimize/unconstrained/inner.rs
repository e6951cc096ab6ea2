//! Solvers of argmin's, stepped on a state of their own kind.

use super::variables::Transformed;
use super::{Options, Solver as Kind};
use crate::dynamics::Observe;
use crate::optimize::augmented::Param;
use crate::optimize::lq::ROUNDING;
use argmin::core::{Error, IterState, PopulationState, Problem, Solver, State, TerminationStatus};
use argmin::solver::gaussnewton::GaussNewtonLS;
use argmin::solver::linesearch::condition::ArmijoCondition;
use argmin::solver::linesearch::{BacktrackingLineSearch, MoreThuenteLineSearch};
use argmin::solver::neldermead::NelderMead;
use argmin::solver::newton::NewtonCG;
use argmin::solver::particleswarm::{Particle, ParticleSwarm};
use argmin::solver::quasinewton::LBFGS;
use argmin::solver::trustregion::{Steihaug, TrustRegion};
use nalgebra::DMatrix;
use rand_xoshiro_of_argmin::Xoshiro256PlusPlus;
use rand_xoshiro_of_argmin::rand_core::SeedableRng;

/// Sufficient decrease: part of the slope's prediction that a step must keep (Nocedal and Wright, section 3.1).
const SUFFICIENT_DECREASE: f64 = 1e-4;
/// By what a step becomes shorter that does not decrease sufficiently. Conventional.
const CONTRACTION: f64 = 0.5;
/// Iterations of conjugate gradients for each of Steihaug's steps. Whitened, a few are enough; more only where the curvature
/// has changed much since.
const MOST_CONJUGATE_GRADIENTS: u64 = 200;
/// Edge of the first simplex, scaled, so that half a range is one. Conventional: argmin's own examples and others take a tenth
/// to a twentieth of the size.
const EDGE: f64 = 0.1;
/// A state that is made from a point, and holds one.
trait Located: State {
    fn located(at: Param) -> Self;
    fn place(&self) -> Option<&Param>;
}

impl<G, J, H, R> Located for IterState<Param, G, J, H, R, f64> {
    fn located(at: Param) -> Self {
        Self::new().param(at)
    }

    fn place(&self) -> Option<&Param> {
        self.param.as_ref()
    }
}

/// A swarm chooses its start itself.
impl Located for PopulationState<Particle<Param, f64>, f64> {
    fn located(_: Param) -> Self {
        Self::new()
    }

    fn place(&self) -> Option<&Param> {
        self.individual.as_ref().map(|i| &i.position)
    }
}

/// What a solver's iteration came to.
pub struct Stepped {
    /// Where it stands.
    pub at: Param,
    /// It ended by itself.
    pub ended: bool,
}

/// One of argmin's solvers with its state.
pub trait Inner<'a, D: Observe> {
    /// Begins at a point.
    ///
    /// # Errors
    /// The solver's.
    fn begin(&mut self, on: &Transformed<'a, D>, at: Param) -> Result<(), Error>;

    /// Makes an iteration.
    ///
    /// # Errors
    /// The solver's; it is then to begin again.
    fn step(&mut self, on: &Transformed<'a, D>) -> Result<Stepped, Error>;

    /// Of a trust region.
    fn radius(&self) -> Option<f64>;
}

struct Stepper<S, I> {
    solver: S,
    state: Option<I>,
    radius: fn(&S) -> Option<f64>,
}

impl<'a, D, S, I> Inner<'a, D> for Stepper<S, I>
where
    D: Observe + 'a,
    S: Solver<Transformed<'a, D>, I>,
    I: Located,
{
    fn begin(&mut self, on: &Transformed<'a, D>, at: Param) -> Result<(), Error> {
        let problem = &mut Problem::new(on.clone());
        let (mut state, _) = self.solver.init(problem, I::located(at))?;
        state.update();
        self.state = Some(state);
        Ok(())
    }

    /// As argmin's executor does. The problem is a clone, since solvers lose it on errors.
    fn step(&mut self, on: &Transformed<'a, D>) -> Result<Stepped, Error> {
        let problem = &mut Problem::new(on.clone());
        let state = self.state.take();
        let state = state.ok_or_else(|| Error::msg("the solver did not begin"))?;
        let (mut state, _) = self.solver.next_iter(problem, state)?;
        state.update();
        state.increment_iter();
        // L-BFGS says so, and gives no point, where its line search failed
        let at = state.place().cloned();
        let at = at.ok_or_else(|| Error::msg("the solver found no step"))?;
        let ended =
            state.terminated() || self.solver.terminate(&state) != TerminationStatus::NotTerminated;
        self.state = Some(state);
        Ok(Stepped { at, ended })
    }

    fn radius(&self) -> Option<f64> {
        (self.radius)(&self.solver)
    }
}

fn stepped<'a, D, S, I>(solver: S) -> Box<dyn Inner<'a, D> + 'a>
where
    D: Observe + 'a,
    S: Solver<Transformed<'a, D>, I> + 'a,
    I: Located + 'a,
{
    Box::new(Stepper {
        solver,
        state: None::<I>,
        radius: |_| None,
    })
}

/// The trust region with its steps and its state.
type Region = TrustRegion<Steihaug<Param, f64>, f64>;
type RegionState = IterState<Param, Param, (), DMatrix<f64>, (), f64>;

/// Its radius, which argmin shows to serde alone.
fn radius(of: &Region) -> Option<f64> {
    serde_json::to_value(of).ok()?.get("radius")?.as_f64()
}

/// Halves steps until they decrease sufficiently: those of Newton's kind have their length already, and no gradients are
/// spent on the way.
fn backtracking() -> Result<BacktrackingLineSearch<Param, Param, ArmijoCondition<f64>, f64>, Error>
{
    let condition = ArmijoCondition::new(SUFFICIENT_DECREASE)?;
    BacktrackingLineSearch::new(condition).rho(CONTRACTION)
}

/// The solver of the settings, to begin at `at`; the `box_` is the swarm's, and `kept` a trust region's radius.
///
/// # Errors
/// Settings that argmin refuses.
pub fn inner<'a, D: Observe + 'a>(
    o: &Options,
    at: &Param,
    box_: (Param, Param),
    seed: u64,
    kept: Option<f64>,
) -> Result<Box<dyn Inner<'a, D> + 'a>, Error> {
    Ok(match o.solver {
        Kind::Lbfgs => {
            let solver: LBFGS<_, Param, Param, f64> =
                LBFGS::new(MoreThuenteLineSearch::new(), o.memory);
            // the driver tests convergence
            stepped(solver.with_tolerance_grad(0.0)?.with_tolerance_cost(0.0)?)
        }
        Kind::NewtonCg => stepped(NewtonCG::new(backtracking()?)),
        Kind::TrustRegion => {
            let steps = Steihaug::new().with_max_iters(MOST_CONJUGATE_GRADIENTS);
            let region = Region::new(steps);
            Box::new(Stepper {
                solver: match kept {
                    Some(radius) => region.with_radius(radius)?,
                    None => region,
                },
                state: None::<RegionState>,
                radius,
            })
        }
        Kind::GaussNewton => stepped(GaussNewtonLS::new(backtracking()?)),
        Kind::NelderMead => {
            let mut vertices = vec![at.clone()];
            for i in 0..at.len() {
                let mut v = at.clone();
                v[i] += EDGE;
                vertices.push(v);
            }
            // of a function about as large as one: as constraints hold to a part in a million by a part in 1e12 of it, nothing
            // less will do
            stepped(NelderMead::new(vertices).with_sd_tolerance(ROUNDING)?)
        }
        Kind::ParticleSwarm => {
            let random = Xoshiro256PlusPlus::seed_from_u64(seed);
            stepped(ParticleSwarm::new(box_, o.population).with_rng_generator(random))
        }
    })
}
