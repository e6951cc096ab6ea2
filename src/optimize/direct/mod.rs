//! Direct transcription: the step's equations as constraints of a nonlinear program, no step solved inside (discrete
//! mechanics and optimal control: Junge, Marsden and Ober-Bloebaum 2005), in the coordinates of the integrator.
//!
//! ```text
//! minimize  sum_k cost_k(x_k, u_k, y_k, p)
//! where     x_0 = start(p),   r(y_k; x_k, u_k, p) = 0,   x_(k+1) = next(x_k, y_k),   constraints and bounds of the problem
//! ```
//!
//! Variables are the states `x` (moves in the free chart, retracted after every step), the unknowns `y` of the steps
//! (velocities and impulses), the controls, and the parameters that are decided, durations among them. The equations and
//! their derivatives are those of [`crate::dynamics::Equations`]; [`super::nlp`] solves the program. Its Hessian is made of
//! differences of analytic products with the transposed Jacobian, knot by knot, several columns at a time where they share
//! no row (Curtis, Powell and Reid 1974). Of the system of a Newton step only what the joints leave free is left
//! ([`nlp::Program::determined`]).
//!
//! ```
//! use least_action::control::{Constraint, Cost, Problem, Relation, When};
//! use least_action::dynamics::{Explicit, Observe, Real, Smooth};
//! use least_action::optimize::{Method, Solve};
//!
//! /// A unit mass pushed along a line.
//! struct Mass;
//!
//! impl Smooth for Mass {
//!     fn states(&self) -> usize { 2 }
//!     fn controls(&self) -> usize { 1 }
//!     fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
//!         next[1] = x[1] + h * u[0];
//!         next[0] = x[0] + h * next[1];
//!     }
//! }
//!
//! // from 0 to rest at 1 within a second, least effort
//! let mass = Explicit::new(Mass);
//! let mut problem = Problem::new(&mass, vec![0.1; 10], vec![0.0, 0.0]);
//! problem.costs.push(Cost::square(mass.control_quantity(0), 0.0, 1.0, When::Running));
//! for (name, value) in [("x0", 1.0), ("x1", 0.0)] {
//!     let quantity = mass.quantity(name).ok_or_else(|| argmin::core::Error::msg("a name"))?;
//!     problem.constraints.push(Constraint::new(quantity, Relation::Equal, value, When::End));
//! }
//! let found = Solve::new(&mass, &problem).with_method(Method::Direct).run()?;
//! // pushes fall on a line: 6 (1 - 2 t) in the limit of small steps
//! assert!((found.trajectory.u[0] + found.trajectory.u[9]).abs() < 1e-8);
//! # Ok::<(), argmin::core::Error>(())
//! ```

mod algorithm;
mod attempt;
mod contacts;
mod curved;
mod determined;
mod engine;
mod knot;
mod plan;
mod probe;
mod start;
mod transcription;

pub(super) use algorithm::Direct;
pub use transcription::Transcription;

use super::nlp;
use crate::control::Problem;
use crate::dynamics::{End, Equations, KnotPoint, Observe, StepError, UnsolvedStep};
use crate::rollout::Trajectory;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Of the program's solver.
    pub nlp: nlp::Options,
    /// Standard deviation of what is added to the coordinates of a guess that is the start at every knot. A symmetric guess
    /// may lie on a saddle.
    pub noise: f64,
    /// Of that noise. With contacts, noise that leads nowhere is drawn again.
    pub seed: u64,
    /// Guesses to start from, of this and the following seeds; side by side. The best is kept.
    pub starts: usize,
    /// What touches nothing stays at least this far from it, m: feet that swing would skim the ground.
    pub margin: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nlp: nlp::Options::default(),
            noise: 0.02,
            seed: 0,
            starts: 1,
            margin: 1e-5,
        }
    }
}

impl Options {
    /// Are they settings that a solve can end with?
    ///
    /// # Errors
    /// Which is not, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in [
            ("tolerance", self.nlp.violation),
            ("optimality", self.nlp.tolerance),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("{name} is {value}; expected a positive number"));
            }
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            let noise = self.noise;
            return Err(format!("noise is {noise}; expected a number of at least 0"));
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            let margin = self.margin;
            return Err(format!(
                "margin is {margin} m; expected a number of at least 0"
            ));
        }
        if self.starts == 0 {
            return Err("starts is 0; expected at least 1".into());
        }
        Ok(())
    }
}

/// Where there are contacts, a guess has noise of rates (1/s), impulses (N s) and controls (N, N m) as well: so many times
/// that of coordinates.
const RATES: f64 = 5.0;
const IMPULSES: f64 = 5.0;
const CONTROLS: f64 = 50.0;

/// The guess: the problem's states, or the start at every knot with noise of the joint chart; its controls; unknowns zero.
/// With contacts all of these have noise.
///
/// # Errors
/// When the start does not exist.
pub fn guess<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    options: &Options,
) -> Result<Trajectory, StepError> {
    let (d, mut w) = (dynamics.dims(), dynamics.work());
    let x0 = problem.start(dynamics, &problem.parameters, &mut w)?;
    let mut t = Trajectory::new(dynamics, problem.intervals.clone(), &x0);
    t.p.copy_from_slice(&problem.parameters);
    problem.set_intervals(&mut t);
    t.u[..problem.guess.len()].copy_from_slice(&problem.guess);
    if !problem.guess_states.is_empty() {
        t.x[d.nx..].copy_from_slice(&problem.guess_states[d.nx..]);
        return Ok(t);
    }
    let has_contacts = !dynamics.contact_unknowns().is_empty();
    let coordinates = options.noise;
    let rates = if has_contacts {
        RATES * options.noise
    } else {
        0.0
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let (mut change, mut x) = (vec![0.0; d.ndx], x0.clone());
    let frame = dynamics.frame(&t.knot(0), &x0, &t.p, None, &mut w)?;
    for k in 1..=t.steps() {
        for (i, c) in change.iter_mut().enumerate() {
            let draw: f64 = StandardNormal.sample(&mut random);
            *c = draw * if i < d.ndx / 2 { coordinates } else { rates };
        }
        // where the noise leads nowhere the start stays
        let moved = dynamics.retract(&t.knot(0), &x0, &t.p, &frame, &change, &mut w, &mut x);
        let to = &mut t.x[k * d.nx..(k + 1) * d.nx];
        to.copy_from_slice(if moved.is_ok() { &x } else { &x0 });
    }
    if has_contacts {
        for y in &mut t.y {
            let draw: f64 = StandardNormal.sample(&mut random);
            *y = IMPULSES * options.noise * draw;
        }
        for (u, (lower, upper)) in t.u.iter_mut().zip(problem.bounds.iter().cycle()) {
            let draw: f64 = StandardNormal.sample(&mut random);
            *u = (*u + CONTROLS * options.noise * draw)
                .max(*lower)
                .min(*upper);
        }
    }
    Ok(t)
}

/// How well steps follow a plan, each solved from a knot of the plan with the plan's unknowns as its guess.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resimulated {
    /// The largest separation of the plan's next state from where a step ends, m and rad: of velocities what they come to over
    /// the interval.
    pub apart: f64,
    /// The deepest overlap where a step ends, m; of joints beyond their limits m or rad.
    pub overlap: f64,
}

/// Solves the steps of a plan.
///
/// # Errors
/// Of the first step that cannot be solved.
pub fn resimulated<D: Equations>(dynamics: &D, t: &Trajectory) -> Result<Resimulated, StepError> {
    let (d, mut w) = (dynamics.dims(), dynamics.work());
    let contacts = dynamics.contact_unknowns();
    // what a step's unknowns are copied into
    let velocities = dynamics.copies();
    let (mut next, mut apart) = (t.state(0).to_vec(), vec![0.0; d.nf]);
    let mut rows = vec![0.0; d.ny];
    let mut out = Resimulated::default();
    for k in 0..t.steps() {
        let mut y = t.unknowns(k).to_vec();
        let (at, x, u, p) = (t.knot(k), t.state(k), t.control(k), &t.p);
        dynamics.step(&at, x, u, p, &mut w, &mut next, &mut y)?;
        dynamics.separation(t.state(k + 1), &next, &mut apart);
        for (i, _) in &velocities {
            apart[*i] *= at.h;
        }
        out.apart = apart.iter().fold(out.apart, |l, d| l.max(d.abs()));
        if contacts.is_empty() {
            continue;
        }
        let step = UnsolvedStep {
            start: KnotPoint { at, x, u, p, y: &y },
            end: Some(End {
                from: &next,
                state: &next,
            }),
        };
        dynamics.residual(&step, &mut w, &mut rows)?;
        for c in contacts.iter().filter(|c| c.has_gap) {
            // the row of a gap's unknown is what that is off by
            let gap = (y[c.first] - rows[c.first]) * c.share * at.h;
            out.overlap = out.overlap.max(-gap);
        }
    }
    Ok(out)
}
