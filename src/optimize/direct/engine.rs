//! The program of a plan and its solver, stage by stage: with contacts on a central path whose parameter falls, then with their
//! modes frozen, so that impulses are exactly zero where there are gaps.

use super::Options;
use super::transcription::{Saved as Base, Transcription};
use crate::control::Problem;
use crate::dynamics::{Observe, StepError};
use crate::optimize::Iteration;
use crate::optimize::nlp::{self, Program, Row, Status, saved, solver};
use crate::rollout::Trajectory;
use serde::{Deserialize, Serialize};

/// The central path's parameter at first, m^2/s^2: what makes of a gap over an interval a force of its order in whatever
/// touches at a few metres a second. It falls by a factor, so many times.
const START: f64 = 1.0;
const FALL: f64 = 0.2;
const LEVELS: usize = 13;
/// Levels are solved to a tolerance of their parameter, the first to this share of it: what is left before it is an optimum of
/// contacts as soft as that has none of the harder ones to go to (a biped's stride: 132 and 146 iterations of two seeds
/// instead of 358 and 316, and the gait from a third that stayed at a stand).
const FIRST_SHARE: f64 = 1e-2;
/// Iterations at a level; the next one may have more luck.
const MOST_AT_A_LEVEL: usize = 150;
/// With modes frozen. From there it is near, but impulses that corners share are not unique, and some blocks take more than 50.
const MOST_FROZEN: usize = 150;
/// Largest first parameter of the barrier of levels behind the first, and that with modes frozen.
const WARM: f64 = 1e-2;
const WARM_FROZEN: f64 = 1e-6;
/// How soft contacts are at least where velocities are read at a knot, on the path and then with modes frozen, m^2/s^2: what
/// touches or leaves just there makes a kink, at which solves stall if it is sharp before modes are known.
const READ: [f64; 4] = [1e-5, 1e-6, 1e-8, 0.0];
const STAGES: usize = LEVELS + READ.len();
/// With modes frozen some rows are those of directions in which a mechanism cannot move.
const REDUNDANCY: f64 = 1e-10;

/// The program and its solver.
pub struct Engine<'a, D: Observe> {
    pub program: Transcription<'a, D>,
    pub solver: solver::Solver,
    options: Options,
    stage: usize,
}

/// Where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    solver: saved::Saved,
    base: Base,
    stage: usize,
}

/// How it ended: the program's solver's status, and why.
pub type End = (Status, String);

impl<'a, D: Observe> Engine<'a, D> {
    /// At the start of the first stage.
    pub fn new(
        dynamics: &'a D,
        problem: &'a Problem,
        guess: Trajectory,
        options: Options,
    ) -> Result<Self, End> {
        let fails = |e: StepError| (Status::Undefined, format!("the start does not exist: {e}"));
        let mut program = Transcription::new(dynamics, problem, guess).map_err(fails)?;
        if program.has_contacts() {
            program.set_central_path(START, READ[0]);
            program.center().map_err(fails)?;
        }
        let solver = solver::Solver::new(&program, &options.nlp, 0);
        let mut out = Self {
            program,
            solver,
            options,
            stage: 0,
        };
        out.begin(None)?;
        Ok(out)
    }

    /// Begins a stage at the program's start.
    fn begin(&mut self, multipliers: Option<&nlp::Multipliers>) -> Result<(), End> {
        let options = self.options_here();
        self.solver = solver::Solver::new(&self.program, &options, 0);
        self.solver.begin(&mut self.program, multipliers)
    }

    /// Of contacts; zero where they are hard.
    pub fn kappa(&self) -> f64 {
        match self.program.has_contacts() && self.stage < LEVELS {
            true => START * FALL.powi(self.stage as i32),
            false => 0.0,
        }
    }

    pub fn is_last(&self) -> bool {
        !self.program.has_contacts() || self.stage + 1 == STAGES
    }

    /// Is it on the first, softest level of contacts?
    pub fn is_first(&self) -> bool {
        self.program.has_contacts() && self.stage == 0
    }

    /// Are constraints met as this stage wants them?
    pub fn holds(&self, r: &Row) -> bool {
        r.violation <= self.solver.options.violation
    }

    /// Are contacts on the central path?
    pub fn is_on_path(&self) -> bool {
        self.program.has_contacts() && !self.is_frozen()
    }

    /// Does a stage take fewer iterations than a solve may?
    pub fn gives_up(&self) -> bool {
        self.solver.options.max_iterations < self.options.nlp.max_iterations
    }

    /// Are the contacts' modes known?
    fn is_frozen(&self) -> bool {
        self.stage >= LEVELS
    }

    fn options_here(&self) -> nlp::Options {
        let nlp = self.options.nlp;
        if !self.program.has_contacts() {
            return nlp;
        }
        if self.is_frozen() {
            return nlp::Options {
                redundancy: REDUNDANCY,
                max_iterations: nlp.max_iterations.min(MOST_FROZEN),
                ..nlp.warm(WARM_FROZEN)
            };
        }
        let relative = self.kappa() / START;
        let share = if self.is_first() { FIRST_SHARE } else { 1.0 };
        let level = nlp::Options {
            tolerance: nlp.tolerance.max(relative * share),
            violation: nlp.violation.max(relative),
            max_iterations: nlp.max_iterations.min(MOST_AT_A_LEVEL),
            ..nlp
        };
        match self.stage {
            0 => level,
            _ => level.warm(relative.min(WARM)),
        }
    }

    /// Goes on with the next stage from where it stands.
    pub fn next_stage(&mut self) -> Result<(), End> {
        let multipliers = self.solver.multipliers();
        let next = self.stage + 1;
        let is_hard = next == LEVELS && !self.reads();
        self.enter(if is_hard { STAGES - 1 } else { next });
        self.begin(Some(&multipliers))
    }

    /// Does anything depend on how soft contacts are where velocities are read at knots?
    fn reads(&mut self) -> bool {
        let (kappa, program) = (self.kappa(), &mut self.program);
        let x = &self.solver.at.w[..program.variables()];
        let [soft, hard] = [READ[0], READ[3]].map(|read| {
            program.set_central_path(kappa, read);
            let mut rows = vec![0.0; program.rows()];
            program
                .evaluate(x, &mut rows)
                .ok()
                .map(|value| (value, rows))
        });
        soft.is_none() || soft != hard
    }

    /// Makes the program that of a stage, from where it stands.
    fn enter(&mut self, stage: usize) {
        let x = self.solver.at.w[..self.program.variables()].to_vec();
        let was_frozen = self.is_frozen();
        self.stage = stage;
        if self.is_frozen() && !was_frozen {
            let before = START * FALL.powi(LEVELS as i32 - 1);
            self.program.freeze(&x, before, self.options.margin);
        }
        self.program.restart(&x);
        self.program
            .set_central_path(self.kappa(), READ[stage.saturating_sub(LEVELS)]);
    }

    /// The plan, put back inside the bounds, which the method widens a little.
    pub fn trajectory(&self) -> Trajectory {
        let both = self.solver.at.w.iter().zip(&self.solver.model.bounds);
        let x: Vec<f64> = both.map(|(x, (l, u))| x.max(*l).min(*u)).collect();
        self.program.trajectory(&x)
    }

    /// A row of the solver's history as one of all methods.
    pub fn row(&self, r: &Row) -> Iteration {
        // a restoration has an objective and rows of its own
        let own = |value: f64| if r.is_restoring { f64::NAN } else { value };
        Iteration {
            objective: own(r.objective),
            violation: own(r.violation),
            optimality: own(r.optimality.max(r.complementarity)),
            step_length: r.step_length,
            regularization: r.regularization,
            smoothing: self.kappa(),
            softened: !self.is_last(),
            complementarity: Some(r.complementarity),
            ..Iteration::default()
        }
    }

    pub fn save(&self) -> Option<Saved> {
        Some(Saved {
            solver: self.solver.save()?,
            base: self.program.save(),
            stage: self.stage,
        })
    }

    /// Stands where that was, exactly in the first stage; at the begin of a later one its point is kept, its multipliers are
    /// found anew. False where it is not of this program.
    pub fn restore(&mut self, kept: Saved) -> Result<bool, End> {
        let undefined = |e: nlp::Undefined| (Status::Undefined, e.to_string());
        let is_known = kept.stage == 0 || self.program.has_contacts() && kept.stage < STAGES;
        if !(is_known && self.solver.fits(&kept.solver) && self.program.restore(kept.base)) {
            return Ok(false);
        }
        let resumed = self.solver.resume(&mut self.program, kept.solver);
        if kept.stage == 0 {
            resumed.map_err(undefined)?;
        } else {
            // the first stage's scales are not those of this one
            self.enter(kept.stage);
            self.begin(None)?;
        }
        Ok(true)
    }
}
