//! The augmented Lagrangian of a problem as a function of its controls, simulated and differentiated by a sweep.
//!
//! ```text
//! L = J + sum_i ( l_i c_i + rho/2 c_i^2 ) + sum_j ( max(0, m_j + b g_j)^2 - m_j^2 ) / (2 b)
//! ```
//!
//! with `c` the constraints at the end and `g` the bounds of the scaled controls (Nocedal and Wright, Numerical
//! Optimization, 2006, chapter 17). Controls are scaled by half their range.

use super::curvature::gauss_newton;
use crate::control::{Evaluation, Problem, Relation};
use crate::dynamics::{Observe, StepError};
use crate::rollout::{RolloutStats, Sweep, Trajectory};
use nalgebra::{Cholesky, DVector, Dyn};

/// A vector of scaled controls, or of the coordinates made from them.
pub(super) type Param = DVector<f64>;

/// Controls beyond which the curvature, whose factorization grows with their cube, is left out.
const LARGEST_CURVATURE: usize = 1500;

/// Scaled controls `reference + L^-T v`, with `L L'` the curvature at the reference.
pub(super) struct Coordinates {
    reference: Param,
    factor: Option<Cholesky<f64, Dyn>>,
}

impl Coordinates {
    /// Scaled controls at `v`.
    pub fn controls(&self, v: &Param) -> Param {
        let mut step = v.clone();
        if let Some(c) = &self.factor {
            c.l_dirty().tr_solve_lower_triangular_mut(&mut step);
        }
        step + &self.reference
    }

    /// Gradient by `v` from that by the scaled controls.
    pub fn gradient(&self, mut g: Param) -> Param {
        if let Some(c) = &self.factor {
            c.l_dirty().solve_lower_triangular_mut(&mut g);
        }
        g
    }
}

/// Multipliers, penalties, and the bounds of the scaled controls.
struct Lagrangian {
    penalty: f64,
    bound_penalty: f64,
    constraints: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    bounds: Vec<(f64, f64)>,
}

impl Lagrangian {
    /// `m + b g` of both bounds of the scaled control `i`; a bound acts where it is positive.
    fn pressure(&self, i: usize, v: f64) -> (f64, f64) {
        let (l, u) = self.bounds[i % self.bounds.len()];
        let b = self.bound_penalty;
        (
            (self.lower[i] + b * (l - v)).max(0.0),
            (self.upper[i] + b * (v - u)).max(0.0),
        )
    }
}

/// Is each constraint at each of its knots an equality?
fn relations(problem: &Problem, evaluation: &Evaluation) -> Vec<bool> {
    let layout = &evaluation.layout;
    (0..layout.knots())
        .flat_map(|k| &layout.stage(k).constraints)
        .map(|(i, _)| problem.constraints[*i].relation == Relation::Equal)
        .collect()
}

pub(super) struct Augmented<'a, D: Observe> {
    dynamics: &'a D,
    problem: &'a Problem,
    /// What one unit of a scaled control stands for.
    scale: Vec<f64>,
    lagrangian: Lagrangian,
    pub coordinates: Coordinates,
    work: D::Work,
    trajectory: Trajectory,
    sweep: Sweep,
    pub evaluation: Evaluation,
    multipliers: Vec<f64>,
    /// Is each constraint an equality?
    relations: Vec<bool>,
    /// The point last simulated, and its values.
    pub at: Param,
    pub value: f64,
    gradient: Option<Param>,
    pub failed: Option<StepError>,
    /// Stands for the value where the simulation fails: clearly worse than the start, yet not so large that the line
    /// search's interpolation breaks down.
    wall: f64,
    pub steps: u64,
    pub sweeps: u64,
}

impl<'a, D: Observe> Augmented<'a, D> {
    pub fn new(dynamics: &'a D, problem: &'a Problem, penalty: f64) -> Self {
        let mut work = dynamics.work();
        // a start that does not exist shows when it is simulated
        let x0 = problem
            .start(dynamics, &problem.parameters, &mut work)
            .unwrap_or_else(|_| vec![f64::NAN; dynamics.dims().nx]);
        let mut trajectory = Trajectory::new(dynamics, problem.intervals.clone(), &x0);
        trajectory.p.copy_from_slice(&problem.parameters);
        let evaluation = problem.evaluation();
        let count = evaluation.constraints.len();
        let half = |&(l, u): &(f64, f64)| {
            let w = 0.5 * (u - l);
            if w.is_finite() { w } else { 1.0 }
        };
        let scale: Vec<f64> = problem.bounds.iter().map(half).collect();
        let n = problem.guess.len();
        Self {
            dynamics,
            problem,
            lagrangian: Lagrangian {
                penalty,
                bound_penalty: 1.0,
                constraints: vec![0.0; count],
                lower: vec![0.0; n],
                upper: vec![0.0; n],
                bounds: problem
                    .bounds
                    .iter()
                    .zip(&scale)
                    .map(|((l, u), s)| (l / s, u / s))
                    .collect(),
            },
            scale,
            coordinates: Coordinates {
                reference: DVector::zeros(n),
                factor: None,
            },
            work,
            sweep: Sweep::new(dynamics, &trajectory),
            trajectory,
            relations: relations(problem, &evaluation),
            evaluation,
            multipliers: vec![0.0; count],
            at: DVector::from_element(n, f64::NAN),
            value: f64::NAN,
            gradient: None,
            failed: None,
            wall: f64::INFINITY,
            steps: 0,
            sweeps: 0,
        }
    }

    /// The problem's guess as scaled controls.
    pub fn guess(&self) -> Param {
        let scaled = self
            .problem
            .guess
            .iter()
            .zip(self.scale.iter().cycle())
            .map(|(u, s)| u / s);
        DVector::from_iterator(self.problem.guess.len(), scaled)
    }

    /// Weight of the constraints.
    pub fn penalty(&self) -> f64 {
        self.lagrangian.penalty
    }

    fn set_controls(&mut self, v: &Param) {
        let scaled = v.iter().zip(self.scale.iter().cycle()).map(|(v, s)| v * s);
        self.trajectory
            .u
            .iter_mut()
            .zip(scaled)
            .for_each(|(u, v)| *u = v);
    }

    /// Simulates and evaluates at the scaled controls `v`, unless that was the last point.
    pub fn roll(&mut self, v: &Param) {
        if self.at == *v {
            return;
        }
        self.set_controls(v);
        let mut stats = RolloutStats::default();
        self.failed = self
            .trajectory
            .roll(self.dynamics, &mut self.work, &mut stats)
            .and_then(|()| {
                self.problem.evaluate(
                    self.dynamics,
                    &self.trajectory,
                    &mut self.work,
                    &mut self.evaluation,
                )
            })
            .err();
        self.steps += stats.steps as u64;
        self.at.copy_from(v);
        self.forget();
    }

    /// The function changed, or the point: computes the value anew.
    fn forget(&mut self) {
        self.gradient = None;
        self.value = self.compute_value();
    }

    fn compute_value(&self) -> f64 {
        if self.failed.is_some() {
            return self.wall;
        }
        let a = &self.lagrangian;
        let mut value = self.evaluation.objective;
        for (i, l) in a.constraints.iter().enumerate() {
            let force = self.force(i);
            value += (force * force - l * l) / (2.0 * a.penalty);
        }
        for (i, v) in self.at.iter().enumerate() {
            let (lower, upper) = a.pressure(i, *v);
            let squares =
                lower * lower - a.lower[i] * a.lower[i] + upper * upper - a.upper[i] * a.upper[i];
            value += squares / (2.0 * a.bound_penalty);
        }
        if value.is_finite() { value } else { self.wall }
    }

    /// Multiplier of constraint `i` as its penalty changes it: `l + rho c`, not negative for inequalities.
    fn force(&self, i: usize) -> f64 {
        let a = &self.lagrangian;
        let force = a.constraints[i] + a.penalty * self.evaluation.constraints[i];
        if self.relations[i] {
            force
        } else {
            force.max(0.0)
        }
    }

    /// Gradient by the scaled controls at the point last simulated.
    pub fn gradient(&mut self) -> Result<Param, StepError> {
        if let Some(g) = &self.gradient {
            return Ok(g.clone());
        }
        if self.failed.is_some() {
            // the wall is flat
            return Ok(DVector::zeros(self.at.len()));
        }
        for i in 0..self.multipliers.len() {
            self.multipliers[i] = self.force(i);
        }
        self.sweeps += 1;
        let (problem, dynamics, trajectory) = (self.problem, self.dynamics, &self.trajectory);
        let (multipliers, evaluation) = (&self.multipliers, &mut self.evaluation);
        self.sweep
            .run(dynamics, trajectory, &mut self.work, |at, w, out, y| {
                problem.pull(dynamics, trajectory, multipliers, evaluation, at, w, out, y)
            })?;
        let scaled = self
            .sweep
            .u
            .iter()
            .zip(self.scale.iter().cycle())
            .map(|(g, s)| g * s);
        let mut g = DVector::from_iterator(self.at.len(), scaled);
        for (i, v) in self.at.iter().enumerate() {
            let (lower, upper) = self.lagrangian.pressure(i, *v);
            g[i] += upper - lower;
        }
        self.gradient = Some(g.clone());
        Ok(g)
    }

    /// Largest violation at the point last simulated, in the units of constraints and controls.
    pub fn violation(&self) -> f64 {
        self.problem
            .violation(&self.evaluation, &self.trajectory.u, &self.trajectory.p)
    }

    /// Names what is violated by more than `tolerance` at the point last simulated, and by how much.
    pub fn violated(&self, tolerance: f64) -> String {
        self.problem
            .violated(self.dynamics, &self.evaluation, &self.trajectory, tolerance)
            .join(", ")
    }

    /// What the curvature still promises to gain, `1/2 g' H^-1 g`, relative to the size of the function: the measure of
    /// optimality. Independent of units and scaling.
    pub fn promise(&mut self, tolerance: f64) -> Result<f64, StepError> {
        let gradient = self.gradient()?;
        let promised = 0.5 * self.coordinates.gradient(gradient).norm_squared();
        let violation = self.violation().max(tolerance);
        let size =
            self.evaluation.objective.abs() + 0.5 * self.lagrangian.penalty * violation * violation;
        Ok(promised / size)
    }

    /// First-order update of the multipliers, then penalties times `growth`.
    pub fn update(&mut self, growth: f64) {
        for i in 0..self.multipliers.len() {
            self.lagrangian.constraints[i] = self.force(i);
        }
        let a = &mut self.lagrangian;
        for (i, v) in self.at.iter().enumerate() {
            (a.lower[i], a.upper[i]) = a.pressure(i, *v);
        }
        a.penalty *= growth;
        a.bound_penalty *= growth;
        self.forget();
        self.raise_wall();
    }

    /// Sets the scale of the bounds' penalty by the curvature of the objective, and the height of the wall, at the
    /// point last simulated.
    pub fn calibrate(&mut self) {
        if let Some(h) = self.curvature(0.0) {
            let mut diagonal: Vec<f64> = h.diagonal().iter().copied().collect();
            diagonal.sort_by(f64::total_cmp);
            let median = diagonal[diagonal.len() / 2];
            if median > 0.0 && median.is_finite() {
                self.lagrangian.bound_penalty = 10.0 * median;
            }
        }
        self.forget();
        self.raise_wall();
    }

    /// The wall must stand above the function, which grows with the penalties.
    fn raise_wall(&mut self) {
        self.wall = 10.0 * (1.0 + self.value.abs());
    }

    /// Gauss-Newton curvature by the scaled controls of the objective and of the constraints with their penalty.
    fn curvature(&mut self, penalty: f64) -> Option<nalgebra::DMatrix<f64>> {
        let n = self.at.len();
        if n == 0 || n > LARGEST_CURVATURE || self.failed.is_some() {
            return None;
        }
        let mut h = gauss_newton(
            self.dynamics,
            self.problem,
            &self.trajectory,
            penalty,
            &mut self.work,
        )
        .ok()?;
        for (i, s) in self.scale.iter().cycle().take(n).enumerate() {
            h.row_mut(i).scale_mut(*s);
            h.column_mut(i).scale_mut(*s);
        }
        Some(h)
    }

    /// Takes the point last simulated as the origin of new coordinates, scaled by the curvature there.
    pub fn recenter(&mut self) {
        let factor = self.curvature(self.lagrangian.penalty).and_then(|mut h| {
            // controls that nothing costs still need a scale
            let floor = 1e-6 * h.diagonal().max().max(1e-12);
            for (i, v) in self.at.iter().enumerate() {
                let (lower, upper) = self.lagrangian.pressure(i, *v);
                let active = lower > 0.0 || upper > 0.0;
                h[(i, i)] += floor
                    + if active {
                        self.lagrangian.bound_penalty
                    } else {
                        0.0
                    };
            }
            h.cholesky()
        });
        self.coordinates = Coordinates {
            reference: self.at.clone(),
            factor,
        };
    }

    /// The trajectory of the scaled controls `v`, as far as it can be simulated.
    pub fn into_trajectory(mut self, v: &Param) -> Trajectory {
        self.set_controls(v);
        let mut stats = RolloutStats::default();
        if self
            .trajectory
            .roll(self.dynamics, &mut self.work, &mut stats)
            .is_err()
        {
            self.trajectory.truncate(stats.steps);
        }
        self.trajectory
    }
}
