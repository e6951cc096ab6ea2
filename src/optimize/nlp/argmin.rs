//! The method as a solver of argmin's executor, with its observers and limits.

use super::solver::Solver;
use super::{Multipliers, Options, Program, Row, Solution, Status};
use argmin::core::{
    Error, IterState, KV, Problem, Solver as ArgminSolver, TerminationReason, TerminationStatus,
};
use std::convert::Infallible;

/// What argmin's observers see: variables, the objective, and the numbers of [`Row`] beside them.
pub type State = IterState<Vec<f64>, Infallible, Infallible, Infallible, Infallible, f64>;

/// A program that is being solved.
///
/// ```
/// use argmin::core::Executor;
/// use least_action::optimize::nlp::{InteriorPoint, Options, Program, Status, Undefined};
///
/// /// Minimize (x - 2)^2 where x <= 1.
/// struct Bounded;
///
/// impl Program for Bounded {
///     fn variables(&self) -> usize { 1 }
///     fn rows(&self) -> usize { 0 }
///     fn start(&self) -> Vec<f64> { vec![0.0] }
///     fn bounds(&self) -> Vec<(f64, f64)> { vec![(f64::NEG_INFINITY, 1.0)] }
///     fn row_bounds(&self) -> Vec<(f64, f64)> { vec![] }
///     fn jacobian(&self) -> Vec<(usize, usize)> { vec![] }
///     fn hessian(&self) -> Vec<(usize, usize)> { vec![(0, 0)] }
///     fn evaluate(&mut self, x: &[f64], _: &mut [f64]) -> Result<f64, Undefined> {
///         Ok((x[0] - 2.0).powi(2))
///     }
///     fn differentiate(&mut self, x: &[f64], by: &mut [f64], _: &mut [f64]) -> Result<(), Undefined> {
///         by[0] = 2.0 * (x[0] - 2.0);
///         Ok(())
///     }
///     fn curve(&mut self, _: &[f64], weight: f64, _: &[f64], h: &mut [f64]) -> Result<(), Undefined> {
///         h[0] = 2.0 * weight;
///         Ok(())
///     }
/// }
///
/// let mut program = Bounded;
/// let solver = InteriorPoint::new(&mut program, &Options::default(), None);
/// let result = Executor::new((), solver).timer(false).run()?;
/// let solution = result.solver.solution();
/// assert_eq!(solution.status, Status::Converged);
/// assert!((solution.objective - 1.0).abs() < 1e-6);
/// # Ok::<(), argmin::core::Error>(())
/// ```
pub struct InteriorPoint<'a> {
    program: &'a mut dyn Program,
    solver: Solver,
    multipliers: Option<Multipliers>,
    ended: Option<(Status, String)>,
}

impl<'a> InteriorPoint<'a> {
    /// From the program's start, and multipliers where they are known.
    pub fn new(
        program: &'a mut dyn Program,
        options: &Options,
        multipliers: Option<Multipliers>,
    ) -> Self {
        Self {
            solver: Solver::new(program, options, 0),
            program,
            multipliers,
            ended: None,
        }
    }

    /// What was found. Where the executor ended it, it was stopped.
    pub fn solution(self) -> Solution {
        let (status, reason) = self
            .ended
            .unwrap_or_else(|| (Status::Stopped, "stopped from outside".into()));
        self.solver.solution(self.program, status, reason)
    }

    fn told(&self, state: State) -> (State, Option<KV>) {
        let Some(row) = self.solver.history.last() else {
            return (state, None);
        };
        let x = self.solver.at.w[..self.solver.model.n].to_vec();
        (state.param(x).cost(row.objective), Some(numbers(row)))
    }
}

/// The numbers of an iteration by name.
fn numbers(row: &Row) -> KV {
    argmin::kv!(
        "violation" => row.violation;
        "optimality" => row.optimality;
        "complementarity" => row.complementarity;
        "mu" => row.mu;
        "regularization" => row.regularization;
        "step_length" => row.step_length;
    )
}

impl ArgminSolver<(), State> for InteriorPoint<'_> {
    fn name(&self) -> &str {
        "interior-point method"
    }

    fn init(&mut self, _: &mut Problem<()>, state: State) -> Result<(State, Option<KV>), Error> {
        let multipliers = self.multipliers.take();
        self.ended = self.solver.begin(self.program, multipliers.as_ref()).err();
        Ok(self.told(state))
    }

    fn next_iter(
        &mut self,
        _: &mut Problem<()>,
        state: State,
    ) -> Result<(State, Option<KV>), Error> {
        if self.ended.is_none() {
            self.ended = self.solver.next(self.program, &mut |_| true).err();
        }
        Ok(self.told(state))
    }

    fn terminate(&mut self, _: &State) -> TerminationStatus {
        match &self.ended {
            None => TerminationStatus::NotTerminated,
            Some((Status::Converged, _)) => {
                TerminationStatus::Terminated(TerminationReason::SolverConverged)
            }
            Some((status, _)) => {
                TerminationStatus::Terminated(TerminationReason::SolverExit(status.to_string()))
            }
        }
    }
}
