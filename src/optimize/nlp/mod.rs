//! Sparse nonlinear programs by a primal-dual interior-point method with a filter (Waechter and Biegler, Math. Program. 106,
//! 2006; the choice of the barrier parameter is that of Nocedal, Waechter and Waltz, SIAM J. Optim. 19, 2009).
//!
//! ```text
//! minimize f(x)   where   l <= x <= u,   a <= c(x) <= b
//! ```
//!
//! Equations are rows with `a = b`. With slacks `s` for the other rows and the barrier's parameter `mu`, an iteration solves
//!
//! ```text
//! | H + S + dw I    J' |  | dx |      | grad f + J' y - mu/(x - l) + mu/(u - x) |
//! |      J      -dc I |  | dy |  = - |                 c                       |
//! ```
//!
//! for all variables at once by [`crate::block::Symmetric`], after [`crate::block::Condensed`] has taken out what the program says
//! that its equations determine; the inertia tells whether the step descends; `dw` is raised
//! until it does, `dc` where rows depend on each other. Steps are accepted by a filter of violation and barrier function,
//! with second-order corrections; where none is acceptable, the restoration minimizes the violation alone, and what
//! it ends at is shown to be infeasible or left again.
//!
//! ```
//! use least_action::optimize::nlp::{self, Options, Program, Status, Undefined};
//!
//! /// Minimize x + y on the circle of radius 1.
//! struct Circle;
//!
//! impl Program for Circle {
//!     fn variables(&self) -> usize { 2 }
//!     fn rows(&self) -> usize { 1 }
//!     fn start(&self) -> Vec<f64> { vec![0.5, -0.2] }
//!     fn row_bounds(&self) -> Vec<(f64, f64)> { vec![(1.0, 1.0)] }
//!     fn jacobian(&self) -> Vec<(usize, usize)> { vec![(0, 0), (0, 1)] }
//!     fn hessian(&self) -> Vec<(usize, usize)> { vec![(0, 0), (1, 1)] }
//!     fn evaluate(&mut self, x: &[f64], rows: &mut [f64]) -> Result<f64, Undefined> {
//!         rows[0] = x[0] * x[0] + x[1] * x[1];
//!         Ok(x[0] + x[1])
//!     }
//!     fn differentiate(&mut self, x: &[f64], by: &mut [f64], jacobian: &mut [f64]) -> Result<(), Undefined> {
//!         by.fill(1.0);
//!         jacobian.copy_from_slice(&[2.0 * x[0], 2.0 * x[1]]);
//!         Ok(())
//!     }
//!     fn curve(&mut self, _: &[f64], _: f64, y: &[f64], hessian: &mut [f64]) -> Result<(), Undefined> {
//!         hessian.fill(2.0 * y[0]);
//!         Ok(())
//!     }
//! }
//!
//! let solution = nlp::solve(&mut Circle, &Options::default());
//! assert_eq!(solution.status, Status::Converged);
//! assert!((solution.objective + 2.0_f64.sqrt()).abs() < 1e-7);
//! ```

mod argmin;
mod barrier;
mod filter;
mod kkt;
mod model;
mod quasi_newton;
mod restoration;
pub(in crate::optimize) mod saved;
mod search;
pub(in crate::optimize) mod solver;

pub use self::argmin::{InteriorPoint, State};

use crate::block::Determined;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The program is not defined at a point: a step fails there, or a number is not finite. A shorter step is tried.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Undefined(
    /// Why.
    pub String,
);

/// A nonlinear program. Patterns list the places that may differ from zero; places that repeat add.
pub trait Program {
    /// Number of variables.
    fn variables(&self) -> usize;

    /// Number of rows of `c`.
    fn rows(&self) -> usize;

    /// The guess; bounds push it inside.
    fn start(&self) -> Vec<f64>;

    /// `l` and `u` of every variable, infinite where there is none. Equal ones hold a variable.
    fn bounds(&self) -> Vec<(f64, f64)> {
        vec![(f64::NEG_INFINITY, f64::INFINITY); self.variables()]
    }

    /// `a` and `b` of every row, infinite where there is none, equal for equations.
    fn row_bounds(&self) -> Vec<(f64, f64)>;

    /// Row and variable of every entry of `J`.
    fn jacobian(&self) -> Vec<(usize, usize)>;

    /// Places of one triangle of the Hessian.
    fn hessian(&self) -> Vec<(usize, usize)>;

    /// `f`, and `c` into `rows`.
    ///
    /// # Errors
    /// Where they have no value.
    fn evaluate(&mut self, x: &[f64], rows: &mut [f64]) -> Result<f64, Undefined>;

    /// The gradient of `f` and the entries of `J`.
    ///
    /// # Errors
    /// Where they have no value.
    fn differentiate(
        &mut self,
        x: &[f64],
        gradient: &mut [f64],
        jacobian: &mut [f64],
    ) -> Result<(), Undefined>;

    /// The entries of the Hessian of `weight f + y' c`, or of what takes its place.
    ///
    /// # Errors
    /// Where they have no value.
    fn curve(
        &mut self,
        x: &[f64],
        weight: f64,
        y: &[f64],
        hessian: &mut [f64],
    ) -> Result<(), Undefined>;

    /// A step was accepted: here a program whose variables are moves in the tangent of a manifold retracts them, and sets
    /// those to zero. They have no bounds. Where a row is then seen in another frame, so is its multiplier `y`. True where
    /// it did, as values may be others then.
    fn accept(&mut self, _x: &mut [f64], _y: &mut [f64]) -> bool {
        false
    }

    /// Is the iterate, with the slacks of the rows that are no equations, good enough for whoever asked for it?
    fn suffices(&mut self, _x: &[f64], _slacks: &[f64]) -> bool {
        false
    }

    /// What equations determine, so that the systems of steps can be made smaller ([`crate::block::Condensed`]): of
    /// variables and, behind them, rows. Either rows that are equations with variables that they determine, or variables
    /// without bounds with rows whose multipliers they determine. Those that do not hold are left out.
    fn determined(&self) -> Vec<Determined> {
        vec![]
    }

    /// A variable, for people.
    fn variable_name(&self, i: usize) -> String {
        format!("variable {i}")
    }

    /// A row, for people.
    fn row_name(&self, i: usize) -> String {
        format!("row {i}")
    }
}

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// All tolerances hold.
    Converged,
    /// The violation has a stationary point here that is none of its zeros.
    Infeasible,
    /// The limit of iterations was reached.
    MaxIterations,
    /// No step is acceptable and none restores feasibility; rounding, or derivatives that are wrong.
    Stalled,
    /// Variables or multipliers grow without end: the program is unbounded, or has no multipliers.
    Diverged,
    /// The program is not defined at its start.
    Undefined,
    /// [`Program::suffices`], or a request to stop.
    Stopped,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Infeasible => "infeasible",
            Self::MaxIterations => "max_iterations",
            Self::Stalled => "stalled",
            Self::Diverged => "diverged",
            Self::Undefined => "undefined",
            Self::Stopped => "stopped",
        })
    }
}

/// How the barrier's parameter falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Barrier {
    /// It is chosen in every iteration for the largest progress, until that is lacking: then it falls step by step.
    Adaptive,
    /// It falls where its problem is solved.
    Monotone,
}

/// What is taken for the Hessian of the Lagrangian.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Curvature {
    /// It itself: [`Program::curve`].
    #[default]
    Exact,
    /// That of the objective alone, which is Gauss's and Newton's where it is a sum of squares of what the program is linear
    /// in: [`Program::curve`] with multipliers of zero. Enough where the objective curves all that moves.
    GaussNewton,
    /// What gradients on the way tell, by limited-memory BFGS ([`Options::memory`]): no second derivatives are asked for.
    /// Systems of steps are then solved whole, whatever equations determine.
    #[serde(rename = "l-bfgs")]
    LimitedMemory,
}

/// Settings. Their defaults are Waechter's and Biegler's unless said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest error of optimality, rows and complementarity, relative to the multipliers' size and after scaling.
    pub tolerance: f64,
    /// Largest violation, unscaled (theirs is 1e-4).
    pub violation: f64,
    /// Iterations, restoration included.
    pub max_iterations: usize,
    /// How the barrier's parameter falls.
    pub barrier: Barrier,
    /// What is taken for the Hessian.
    pub curvature: Curvature,
    /// Steps that [`Curvature::LimitedMemory`] remembers.
    pub memory: usize,
    /// Where the barrier's parameter starts.
    pub start: f64,
    /// How far inside bounds the guess is pushed, relative to their size, and to their distance: less for a guess that is
    /// good ([`Options::warm`]).
    pub push: f64,
    /// Rows and objective are scaled so that no gradient at the start is larger.
    pub largest_gradient: f64,
    /// How far bounds are widened, so that they have an inside even where they meet; what is found is put back inside.
    pub widening: f64,
    /// `dc`, in any case, relative to the scaled rows: for rows that depend on each other everywhere.
    pub redundancy: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-8,
            violation: 1e-6,
            max_iterations: 3000,
            barrier: Barrier::Adaptive,
            curvature: Curvature::Exact,
            memory: 6,
            start: 0.1,
            push: 1e-2,
            largest_gradient: 100.0,
            widening: 1e-8,
            redundancy: 0.0,
        }
    }
}

impl Options {
    /// From a guess that is good up to a barrier's parameter of `mu`.
    #[must_use]
    pub fn warm(self, mu: f64) -> Self {
        Self {
            start: mu,
            push: self.push.min(mu),
            ..self
        }
    }
}

/// Multipliers: of the rows, of the lower and of the upper bounds, the latter at least 0. At an optimum
/// `grad f + J' rows - lower + upper = 0`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multipliers {
    /// Of the rows.
    pub rows: Vec<f64>,
    /// Of the lower bounds.
    pub lower: Vec<f64>,
    /// Of the upper bounds.
    pub upper: Vec<f64>,
}

/// One iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// Objective, unscaled.
    pub objective: f64,
    /// Largest violation of a row, unscaled.
    pub violation: f64,
    /// Error of the gradient of the Lagrangian, scaled.
    pub optimality: f64,
    /// Error of complementarity, scaled.
    pub complementarity: f64,
    /// The barrier's parameter.
    pub mu: f64,
    /// `dw`.
    pub regularization: f64,
    /// Length of the step taken, primal.
    pub step_length: f64,
    /// Made by the restoration.
    pub is_restoring: bool,
}

/// What a solve found.
#[derive(Clone, Debug)]
pub struct Solution {
    /// How it ended.
    pub status: Status,
    /// Why, in words; names the worst rows where they do not hold.
    pub reason: String,
    /// Variables.
    pub x: Vec<f64>,
    /// Multipliers.
    pub multipliers: Multipliers,
    /// Objective.
    pub objective: f64,
    /// Largest violation of a row or bound.
    pub violation: f64,
    /// Errors of optimality and complementarity, the larger one, scaled.
    pub optimality: f64,
    /// Iterations.
    pub iterations: usize,
    /// Factorizations, of which those made again for their inertia.
    pub factorizations: (usize, usize),
    /// The guess first.
    pub history: Vec<Row>,
}

/// Solves a program.
pub fn solve(program: &mut dyn Program, options: &Options) -> Solution {
    solve_from(program, options, None, &mut |_| true)
}

/// [`solve`] from multipliers, that see every iteration; false ends it.
pub fn solve_from(
    program: &mut dyn Program,
    options: &Options,
    multipliers: Option<&Multipliers>,
    observer: &mut dyn FnMut(&Row) -> bool,
) -> Solution {
    solver::Solver::new(program, options, 0).run(program, multipliers, observer)
}

/// Largest absolute value; NaN if there is one.
fn largest(v: &[f64]) -> f64 {
    v.iter()
        .map(|v| v.abs())
        .fold(0.0, |a, b| if a >= b || a.is_nan() { a } else { b })
}
