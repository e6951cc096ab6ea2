//! A problem with its states simulated away, as argmin's problem, for argmin's solvers and for one's own.

use super::augmented::{Augmented, Param, squares};
use super::checkpoint::Point;
use super::shooting;
use crate::control::Problem;
use crate::dynamics::{Observe, StepError};
use crate::rollout::Trajectory;
use argmin::core::{CostFunction, Error, Gradient, Hessian, Jacobian, Operator};
use nalgebra::{DMatrix, DVector};
use std::cell::{Cell, RefCell};

/// A rollout that fails is worth so many times what the guess is. argmin's interpolating line searches end with an error
/// where a value is infinite, and with one that is merely huge they contract to nothing at once; this much contracts to about
/// a hundredth. Conventional.
const FAILED: f64 = 100.0;

/// A problem as a function of its decisions alone: of the controls, knot by knot, and behind them the free parameters
/// (`nu N + nq`), the states simulated.
///
/// The decisions are scaled: a control `u = s v` by half the range of its bounds, or one without them; a parameter cannot
/// leave its bounds, `p = m + s sin v` between two, `p = l + s (sqrt(v^2 + 1) - 1)` above one, `p = s v` without, with its
/// size `s`, at least one. [`Reduced::point`] unscales, [`Reduced::decisions`] scales.
///
/// The function is the augmented Lagrangian (Nocedal and Wright, *Numerical Optimization*, 2006, (17.36), (17.57))
///
/// ```text
/// L(v) = J + sum_i ( f_i^2 - l_i^2 ) / (2 r) + sum_j ( e_j^2 - m_j^2 ) / (2 b)
/// ```
///
/// with `f = l + r c` of every constraint at every of its knots and `e = max(0, m + b g)` of every bound of a control, beyond
/// which it is by `g` (scaled); inequalities have `f = max(0, l + r c)`. At first all multipliers are zero:
/// [`Reduced::update`] moves them between minimizations. Without constraints and bounds of controls `L` is the objective.
///
/// - [`CostFunction`]: `L`. Decisions whose rollout fails are worth a hundred times the guess, and have no gradient: no
///   error that would lose the iterate.
/// - [`Gradient`]: one reverse sweep.
/// - [`Hessian`]: Gauss and Newton's, dense, of squares and of what acts of constraints and bounds, without the dynamics'
///   curvature; products with it, by a linear rollout and a sweep, are [`Reduced::hessian_product`].
/// - [`Operator`], [`Jacobian`]: residuals with `1/2 |r|^2 = L` plus what the multipliers add, and their derivatives:
///   knot by knot `sqrt(weight h) (q - target)` of each cost and `f / sqrt(r)` of each constraint, then `e / sqrt(b)` of each
///   bound. They refuse costs that are no squares.
///
/// A reference is a problem, too, so that what was found can be asked of it afterwards. What argmin counts are calls: of
/// those in a row at the same decisions one is simulated.
///
/// ```
/// use argmin::core::{Executor, State};
/// use argmin::solver::{gradientdescent::SteepestDescent, linesearch::MoreThuenteLineSearch};
/// # use least_action::control::{Cost, Problem, When};
/// # use least_action::dynamics::{Explicit, Observe, Real, Smooth};
/// use least_action::optimize::Reduced;
/// # /// x+ = x + h u
/// # struct Integrator;
/// # impl Smooth for Integrator {
/// #     fn states(&self) -> usize { 1 }
/// #     fn controls(&self) -> usize { 1 }
/// #     fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
/// #         next[0] = x[0] + h * u[0];
/// #     }
/// # }
/// # let system = Explicit::new(Integrator);
/// # let mut problem = Problem::new(&system, vec![0.5; 2], vec![1.0]);
/// # problem.rates.clear();
/// # let x = system.quantity("x0").ok_or("no quantity `x0`")?;
/// # problem.costs = vec![Cost::square(x, 0.0, 1.0, When::End)];
/// let reduced = Reduced::new(&system, &problem)?;
/// let solver = SteepestDescent::new(MoreThuenteLineSearch::new());
/// let found = Executor::new(&reduced, solver)
///     .configure(|state| state.param(reduced.guess()).max_iters(20))
///     .run()?;
/// let best = found.state.get_best_param().ok_or("nothing found")?;
/// assert!(reduced.trajectory(best)?.state(2)[0].abs() < 1e-3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reduced<'a, D: Observe> {
    function: RefCell<Augmented<'a, D>>,
    /// What a rollout that fails is worth.
    failed: Cell<f64>,
    /// Values that may still be asked for.
    left: Cell<u64>,
    /// The least value since it was last forgotten, and where.
    best: RefCell<Option<(f64, Param)>>,
    squares: Result<(), String>,
    size: usize,
}

impl<'a, D: Observe> Reduced<'a, D> {
    /// Of a problem, its penalties scaled at its guess.
    ///
    /// # Errors
    /// When the problem does not fit the system ([`Problem::check`]), or its guess cannot be simulated or linearized.
    pub fn new(system: &'a D, problem: &'a Problem) -> Result<Self, Error> {
        problem.check(system)?;
        let mut function = Augmented::new(system, problem, shooting::Options::default().penalty);
        function.roll(&function.guess());
        if let Some(e) = function.failed.take() {
            return Err(Error::new(e).context("the guess cannot be simulated"));
        }
        function.calibrate()?;
        let reduced = Self::of(function, squares(system, problem));
        reduced.rate_failures();
        Ok(reduced)
    }

    /// Of a function that will be rolled out where it is needed first.
    pub(super) fn of(function: Augmented<'a, D>, squares: Result<(), String>) -> Self {
        Self {
            size: function.guess().len(),
            function: RefCell::new(function),
            failed: Cell::new(f64::MAX),
            left: Cell::new(u64::MAX),
            best: RefCell::new(None),
            squares,
        }
    }

    /// Runs something on the function.
    pub(super) fn with<T>(&self, run: impl FnOnce(&mut Augmented<'a, D>) -> T) -> T {
        run(&mut self.function.borrow_mut())
    }

    /// What fails from now on is worse than the present point, and no better than what failed before.
    pub(super) fn rate_failures(&self) {
        let value = self.with(|f| f.value().abs());
        let worth = FAILED * if value > 0.0 { value } else { 1.0 };
        let before = Some(self.failed.get()).filter(|f| *f < f64::MAX);
        self.failed.set(before.map_or(worth, |b| b.max(worth)));
    }

    /// Lets so many values be asked for, beyond which they are errors, and forgets the best.
    pub(super) fn allow(&self, values: u64) {
        self.left.set(values);
        self.best.take();
    }

    /// The least value since then, and where.
    pub(super) fn best(&self) -> Option<(f64, Param)> {
        self.best.borrow().clone()
    }

    /// Counts a value.
    fn count(&self) -> Result<(), Error> {
        let left = self.left.get().checked_sub(1);
        let left = left.ok_or_else(|| Error::msg("no more values are to be computed"))?;
        self.left.set(left);
        Ok(())
    }

    /// A value that was asked for where nothing can be simulated.
    pub(super) fn failure(&self) -> Result<f64, Error> {
        self.count()?;
        Ok(self.failed.get())
    }

    /// Residuals of that value.
    pub(super) fn failed_residuals(&self, value: f64) -> Param {
        let n = self.with(|f| f.residuals().len());
        DVector::from_element(n, (2.0 * value / n as f64).sqrt())
    }

    /// The function, infinite where the rollout fails.
    pub(super) fn value_of(&self, decisions: &Param) -> Result<f64, Error> {
        self.at(decisions, |f| Ok(f.value()))
    }

    /// The problem's guess, scaled.
    pub fn guess(&self) -> DVector<f64> {
        self.with(|f| f.guess())
    }

    /// Controls and parameters of decisions of the right number.
    ///
    /// # Errors
    /// Another number of decisions.
    pub fn point(&self, decisions: &DVector<f64>) -> Result<Point, Error> {
        self.fits(decisions)?;
        Ok(self.with(|f| f.point(decisions)))
    }

    /// The decisions of a point.
    ///
    /// # Errors
    /// Controls or parameters of another number than the problem's.
    pub fn decisions(&self, point: &Point) -> Result<DVector<f64>, Error> {
        let own = self.with(|f| f.point(&f.guess()));
        let sizes = |p: &Point| (p.controls.len(), p.parameters.len());
        if sizes(&own) != sizes(point) {
            let ((u, p), (got_u, got_p)) = (sizes(&own), sizes(point));
            return Err(Error::msg(format!(
                "a point of {got_u} controls and {got_p} parameters; expected {u} and {p}"
            )));
        }
        Ok(self.with(|f| f.decisions_of(point)))
    }

    /// The trajectory of decisions.
    ///
    /// # Errors
    /// A step on the way, or another number of decisions.
    pub fn trajectory(&self, decisions: &DVector<f64>) -> Result<Trajectory, Error> {
        self.at(decisions, |f| match f.failed.clone() {
            Some(e) => Err(e.into()),
            None => Ok(f.path().trajectory.clone()),
        })
    }

    /// The objective, without multipliers and penalties; infinite where the rollout fails.
    ///
    /// # Errors
    /// Another number of decisions.
    pub fn objective(&self, decisions: &DVector<f64>) -> Result<f64, Error> {
        self.at(decisions, |f| {
            let failed = f.failed.is_some();
            let objective = f.path().evaluation.objective;
            Ok(if failed { f64::INFINITY } else { objective })
        })
    }

    /// Largest violation of a constraint or bound, in their units; infinite where the rollout fails.
    ///
    /// # Errors
    /// Another number of decisions.
    pub fn violation(&self, decisions: &DVector<f64>) -> Result<f64, Error> {
        self.at(decisions, |f| {
            let failed = f.failed.is_some();
            Ok(if failed { f64::INFINITY } else { f.violation() })
        })
    }

    /// First-order update of the multipliers, `l <- f`, `m <- e`, at decisions that minimize the function; then penalties
    /// times `growth`, 1 or more (ten where the violation did not fall to a quarter is common).
    ///
    /// # Errors
    /// A rollout that fails, `growth` that is no number from 1 on, or another number of decisions.
    pub fn update(&self, decisions: &DVector<f64>, growth: f64) -> Result<(), Error> {
        if !(growth >= 1.0 && growth.is_finite()) {
            let message = format!("penalties grow by {growth}; expected a number from 1 on");
            return Err(Error::msg(message));
        }
        self.at(decisions, |f| match f.failed.clone() {
            Some(e) => Err(Error::new(e)),
            None => {
                f.update(growth);
                Ok(())
            }
        })?;
        self.best.take();
        self.rate_failures();
        Ok(())
    }

    /// `H d` with the Gauss-Newton Hessian, which is not formed; zero where the rollout fails.
    ///
    /// # Errors
    /// A step that cannot be linearized, or another number of decisions.
    pub fn hessian_product(
        &self,
        decisions: &DVector<f64>,
        d: &DVector<f64>,
    ) -> Result<DVector<f64>, Error> {
        self.fits(d)?;
        self.at(decisions, |f| {
            if !f.value().is_finite() {
                return Ok(DVector::zeros(d.len()));
            }
            f.gradient()?;
            Ok(f.product(d))
        })
    }

    fn fits(&self, decisions: &DVector<f64>) -> Result<(), Error> {
        let (got, n) = (decisions.len(), self.size);
        if got != n {
            let e = StepError::of_size("decisions", format!("{got} numbers; give {n}"));
            return Err(e.into());
        }
        Ok(())
    }

    fn at<T>(
        &self,
        decisions: &Param,
        run: impl FnOnce(&mut Augmented<'a, D>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.fits(decisions)?;
        self.with(|f| {
            f.visit(decisions);
            run(f)
        })
    }

    /// The Jacobian, and behind the rows of the residuals one for each free parameter with the root of its own curvature, of
    /// residuals that are zero: a parameter at its bound would have none, and Gauss and Newton's step no end.
    pub(super) fn bent_jacobian(&self, v: &DVector<f64>) -> Result<DMatrix<f64>, Error> {
        let j = self.jacobian(v)?;
        let bent: Vec<f64> = self.with(|f| f.bend().to_vec());
        let (m, n) = j.shape();
        let mut j = j.resize_vertically(m + bent.len(), 0.0);
        for (i, c) in bent.iter().enumerate() {
            j[(m + i, n - bent.len() + i)] = c.sqrt();
        }
        Ok(j)
    }

    pub(super) fn has_residuals(&self) -> Result<(), Error> {
        self.squares.clone().map_err(Error::msg)
    }
}

impl<D: Observe> CostFunction for Reduced<'_, D> {
    type Param = DVector<f64>;
    type Output = f64;

    fn cost(&self, v: &DVector<f64>) -> Result<f64, Error> {
        self.count()?;
        let value = self.at(v, |f| Ok(f.value()))?;
        if !value.is_finite() {
            return Ok(self.failed.get());
        }
        let mut best = self.best.borrow_mut();
        if best.as_ref().is_none_or(|(least, _)| value < *least) {
            *best = Some((value, v.clone()));
        }
        Ok(value)
    }
}

impl<D: Observe> Gradient for Reduced<'_, D> {
    type Param = DVector<f64>;
    type Gradient = DVector<f64>;

    fn gradient(&self, v: &DVector<f64>) -> Result<DVector<f64>, Error> {
        self.at(v, |f| match f.value().is_finite() {
            true => Ok(f.gradient()?),
            false => Ok(DVector::zeros(v.len())),
        })
    }
}

impl<D: Observe> Hessian for Reduced<'_, D> {
    type Param = DVector<f64>;
    type Hessian = DMatrix<f64>;

    fn hessian(&self, v: &DVector<f64>) -> Result<DMatrix<f64>, Error> {
        self.at(v, |f| {
            let n = v.len();
            let mut out = DMatrix::zeros(n, n);
            if !f.value().is_finite() {
                return Ok(out);
            }
            f.gradient()?;
            let mut unit = DVector::zeros(n);
            for j in 0..n {
                unit[j] = 1.0;
                out.set_column(j, &f.product(&unit));
                unit[j] = 0.0;
            }
            // rounding alone parts it from its transpose
            Ok(0.5 * (&out + out.transpose()))
        })
    }
}

impl<D: Observe> Operator for Reduced<'_, D> {
    type Param = DVector<f64>;
    type Output = DVector<f64>;

    /// The residuals; of decisions whose rollout fails all the same number, so that half their square is what these are
    /// worth.
    fn apply(&self, v: &DVector<f64>) -> Result<DVector<f64>, Error> {
        self.has_residuals()?;
        let value = self.cost(v)?;
        match self.at(v, |f| Ok(f.value().is_finite().then(|| f.residuals())))? {
            Some(r) => Ok(r),
            None => Ok(self.failed_residuals(value)),
        }
    }
}

impl<D: Observe> Jacobian for Reduced<'_, D> {
    type Param = DVector<f64>;
    type Jacobian = DMatrix<f64>;

    fn jacobian(&self, v: &DVector<f64>) -> Result<DMatrix<f64>, Error> {
        self.has_residuals()?;
        self.at(v, |f| match f.value().is_finite() {
            true => Ok(f.jacobian()?),
            false => Ok(DMatrix::zeros(f.residuals().len(), v.len())),
        })
    }
}

/// A reference is what it refers to.
macro_rules! by_reference {
    ($($role:ident, $output:ident, $type:ty, $method:ident;)*) => {
        $(
            impl<D: Observe> $role for &Reduced<'_, D> {
                type Param = DVector<f64>;
                type $output = $type;

                fn $method(&self, v: &DVector<f64>) -> Result<$type, Error> {
                    (**self).$method(v)
                }
            }
        )*
    };
}
by_reference! {
    CostFunction, Output, f64, cost;
    Gradient, Gradient, DVector<f64>, gradient;
    Hessian, Hessian, DMatrix<f64>, hessian;
    Operator, Output, DVector<f64>, apply;
    Jacobian, Jacobian, DMatrix<f64>, jacobian;
}
