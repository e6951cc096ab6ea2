//! The seam between mechanics and optimization. Optimizers and rollouts know these traits and nothing of mechanisms;
//! an integrator, or a user's own few lines, implements them.
//!
//! Two charts describe a small change of a state. The *free* chart has one number per stored degree (for a maximal
//! integrator twelve per body: displacement, then velocity); [`Dynamics::push`] and [`Dynamics::pull`] use it, and the
//! reverse sweep runs in it. The *joint* chart is the tangent of what the joints allow, 2 n_dof numbers (coordinates,
//! then rates); [`Dynamics::frame`] connects the two, and linear models for feedback live in it. Dynamics without
//! constraints use one chart for both, the default.
//!
//! There are three faces, and a method asks for no more than it needs: [`Dynamics`], a step solved; [`Equations`], a step
//! unsolved; [`Observe`], what costs, constraints, figures and files may see.

mod certificate;
mod dual;
mod equations;
mod frame;
mod remember;
mod smooth;
mod stage;
mod stop;

pub use certificate::Certificate;
pub use dual::{Dual, Real};
pub use equations::{Equations, Structure};
pub use frame::{Chart, Frame, difference_by_moves, model_by_pushes};
pub use remember::{Remember, RememberWork};
pub use smooth::{Explicit, Smooth, SmoothWork};
pub(crate) use stage::{Place, Stage};
pub use stop::{clear_stop, request_stop, stop_requested};

use nalgebra::DMatrix;

/// The knot a step starts from, with the two intervals that meet there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// Index.
    pub k: usize,
    /// s
    pub t: f64,
    /// Length of the interval before the knot, s; 0 at the start.
    pub h_prev: f64,
    /// Length of the interval after it, s; 0 at the end.
    pub h: f64,
}

/// Sizes of the slices that cross the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Numbers stored for a state.
    pub nx: usize,
    /// Free chart of a state.
    pub nf: usize,
    /// Joint chart of a state, 2 n_dof.
    pub ndx: usize,
    /// Controls.
    pub nu: usize,
    /// Parameters.
    pub np: usize,
    /// Unknowns of a step: velocities and impulses.
    pub ny: usize,
}

/// A number of a system that one may differentiate by and optimize.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// What the system was built with.
    pub value: f64,
}

/// What a step cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepStats {
    /// Newton iterations.
    pub iterations: usize,
    /// Largest residual left, N s, N m s, m or half rad.
    pub residual: f64,
    /// A general sparse factorization had to stand in for the block one.
    pub fallbacks: usize,
    /// Largest h |w| of any body; trust in a large step ends near 1.
    pub turn: f64,
    /// 1 where contacts were solved only as far as rounding allows: to its floor, or at a parameter of the central path
    /// up to 1e4 times larger.
    pub rounded: usize,
    /// Starts of the contacts' iteration beyond the first: one where a warm start was given up for a cold one, more where
    /// the central path had to be followed around its turns.
    pub restarts: usize,
}

impl StepStats {
    /// A further attempt at the same step.
    pub fn and(&self, next: &Self) -> Self {
        Self {
            iterations: self.iterations + next.iterations,
            fallbacks: self.fallbacks + next.fallbacks,
            restarts: self.restarts + next.restarts,
            ..*next
        }
    }
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFailure {
    /// A body turns too far within one interval for the discrete momentum to have a solution.
    Domain,
    /// Newton's method did not reach the tolerance.
    NotConverged,
    /// The step's matrix is singular.
    Singular,
    /// The state or control was not finite.
    NotFinite,
    /// An interval was zero or not finite; or negative, which contacts, limits and friction do not allow.
    Interval,
    /// A parameter has a value without meaning, as a negative mass.
    Parameter,
    /// A frame is not one of the system's.
    Frame,
    /// The system does not offer what was asked for.
    Unsupported,
    /// The iterations that a step may take were used up.
    Budget,
    /// A stop was requested.
    Stopped,
}

/// A step that could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("step at t = {time:.6} s failed at {element}: {message} (residual {residual:.3e})")]
pub struct StepError {
    /// What happened.
    pub failure: StepFailure,
    /// The body or joint with the largest residual.
    pub element: String,
    /// s
    pub time: f64,
    /// Largest residual.
    pub residual: f64,
    /// What was expected, and the remedy.
    pub message: String,
}

/// A change of a step's inputs, or adjoints of them. States in the free chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// State.
    pub x: Vec<f64>,
    /// Control.
    pub u: Vec<f64>,
    /// Parameters.
    pub p: Vec<f64>,
    /// Interval before the knot.
    pub h_prev: f64,
    /// Interval after the knot.
    pub h: f64,
}

/// A change of a step's outputs, or adjoints of them. States in the free chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Next state.
    pub x: Vec<f64>,
    /// Unknowns of the step; its velocities are also part of the next state, their adjoints add.
    pub y: Vec<f64>,
}

impl Inputs {
    /// Sets everything to zero.
    pub fn clear(&mut self) {
        self.x.fill(0.0);
        self.u.fill(0.0);
        self.p.fill(0.0);
        (self.h_prev, self.h) = (0.0, 0.0);
    }

    /// Adds other inputs.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.x, &other.x),
            (&mut self.u, &other.u),
            (&mut self.p, &other.p),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
        }
        self.h_prev += other.h_prev;
        self.h += other.h;
    }
}

impl Dims {
    /// Zero inputs.
    pub fn inputs(&self) -> Inputs {
        Inputs {
            x: vec![0.0; self.nf],
            u: vec![0.0; self.nu],
            p: vec![0.0; self.np],
            h_prev: 0.0,
            h: 0.0,
        }
    }

    /// Zero outputs.
    pub fn outputs(&self) -> Outputs {
        Outputs {
            x: vec![0.0; self.nf],
            y: vec![0.0; self.ny],
        }
    }
}

/// A step with everything that went in and came out.
#[derive(Clone, Copy, Debug)]
pub struct Solved<'a> {
    /// Where.
    pub at: Knot,
    /// State at the knot.
    pub x: &'a [f64],
    /// Control at the knot.
    pub u: &'a [f64],
    /// Parameters.
    pub p: &'a [f64],
    /// Unknowns of the step.
    pub y: &'a [f64],
    /// State at the next knot.
    pub next: &'a [f64],
}

/// What can be seen at a knot.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Where.
    pub at: Knot,
    /// State at the knot.
    pub x: &'a [f64],
    /// Control that acts there (at the end, the last).
    pub u: &'a [f64],
    /// Parameters.
    pub p: &'a [f64],
    /// Unknowns of the step from the knot; empty at the end.
    pub y: &'a [f64],
}

/// The linearized step in the joint chart: `dx+ = a dx + b du + p dp`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearModel {
    /// ndx x ndx
    pub a: DMatrix<f64>,
    /// ndx x nu
    pub b: DMatrix<f64>,
    /// ndx x np
    pub p: DMatrix<f64>,
}

impl LinearModel {
    /// Zeros.
    pub fn new(dims: &Dims) -> Self {
        Self {
            a: DMatrix::zeros(dims.ndx, dims.ndx),
            b: DMatrix::zeros(dims.ndx, dims.nu),
            p: DMatrix::zeros(dims.ndx, dims.np),
        }
    }
}

/// A discrete-time system that can be stepped and differentiated.
pub trait Dynamics: Sync {
    /// Matrices and factors. Nothing allocates after it is made.
    type Work: Send;

    /// Sizes.
    fn dims(&self) -> Dims;

    /// Memory for one thread.
    fn work(&self) -> Self::Work;

    /// Name and unit of the controls, `nu` of them.
    fn controls(&self) -> Vec<(String, String)> {
        let named = |i| (format!("u{i}"), "1".into());
        (0..self.dims().nu).map(named).collect()
    }

    /// Name, unit and value of the parameters, `np` of them.
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }

    /// The state at rest or in motion at one instant, from coordinates `q` and their rates. What a parameter moves (an
    /// anchor, say) moves at given coordinates. By default a state is the coordinates followed by the rates.
    ///
    /// # Errors
    /// When there is no such state, e.g. loops that do not close.
    fn initial(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let _ = (p, w);
        x[..q.len()].copy_from_slice(q);
        x[q.len()..].copy_from_slice(rates);
        Ok(())
    }

    /// Derivative of [`Dynamics::initial`] by the parameters, nf x np.
    ///
    /// # Errors
    /// As [`Dynamics::initial`].
    fn initial_by_parameters(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let _ = (q, rates, p, w);
        let dims = self.dims();
        Ok(DMatrix::zeros(dims.nf, dims.np))
    }

    /// Solves a step. `y` holds the previous step's unknowns on entry (zeros at the start) as a guess for the
    /// impulses, and this step's on return.
    ///
    /// # Errors
    /// When there is no solution or it was not found; `next` and `y` are then not to be used.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, what goes in and what comes out"
    )]
    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError>;

    /// Assembles and factors the step's equations at their solution; `push` and `pull` then refer to it.
    ///
    /// # Errors
    /// When the matrix is singular.
    fn linearize(&self, at: &Solved, w: &mut Self::Work) -> Result<Certificate, StepError>;

    /// Linearizations from here on are those of contact on the central path at `kappa`, m^2/s^2 (0, as at first: at the
    /// parameter of the step itself, which makes them exact). Steps stay as they are. A larger one tells of contacts that
    /// are not made and friction that is not overcome; [`Certificate::kappa`] says which was used. By default there is
    /// no contact.
    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        let _ = (w, kappa);
    }

    /// Steps, what is seen of them and linearizations are from here on those of contact on the central path at `kappa`,
    /// m^2/s^2 (0, as at first: at the system's own parameter, the least there is): smooth over velocities of about
    /// `sqrt(kappa)`. False where that cannot be had, as by default.
    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        let _ = (w, kappa);
        false
    }

    /// How many numbers hold what is dear in a linearization; 0, the default, when it cannot be kept.
    fn kept(&self) -> usize {
        0
    }

    /// Keeps the linearization that `w` holds; false when it cannot be kept.
    fn keep(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        let _ = (w, kept);
        false
    }

    /// Brings back the linearization of a step in place of [`Dynamics::linearize`]; false when that has to be called, as
    /// for one kept at another [`Dynamics::smoothing`].
    ///
    /// # Errors
    /// As [`Dynamics::linearize`].
    fn restore(&self, at: &Solved, kept: &[f64], w: &mut Self::Work) -> Result<bool, StepError> {
        let _ = (at, kept, w);
        Ok(false)
    }

    /// Change of the outputs by a change of the inputs.
    fn push(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs);

    /// Adjoints of the inputs from adjoints of the outputs.
    fn pull(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs);

    /// The frame at a state; `previous` is the frame of the knot before, when one walks along a path.
    ///
    /// # Errors
    /// When the state, or the frame before, is not one of the system.
    fn frame(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
    ) -> Result<Frame, StepError> {
        let _ = (at, x, p, previous, w);
        Ok(Frame::Identity(self.dims().nf))
    }

    /// Is every frame the identity, as by default? Who keeps one per knot then need not ask for them.
    fn has_identity_frames(&self) -> bool {
        false
    }

    /// Moves a state by `d` of the joint chart (its frame is given) and keeps it a state of the system.
    ///
    /// # Errors
    /// When that state does not exist, e.g. loops cannot be closed so far away, or the frame is not one of the system.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, what goes in and what comes out"
    )]
    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let _ = (at, p, frame, w);
        for ((o, x), d) in out.iter_mut().zip(x).zip(d) {
            *o = x + d;
        }
        Ok(())
    }

    /// The change of the joint chart that leads from `x` to `to`, to first order; NaN where there is none.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, what goes in and what comes out"
    )]
    fn difference(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
        out: &mut [f64],
    ) {
        let _ = (at, p, frame, w);
        for ((o, x), to) in out.iter_mut().zip(x).zip(to) {
            *o = to - x;
        }
    }

    /// Derivative of [`Dynamics::difference`] by the state that it leads to (free chart), ndx x nf; by default
    /// [`difference_by_moves`].
    ///
    /// # Errors
    /// As [`Dynamics::frame`] and [`Dynamics::retract`], at that state.
    fn difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        difference_by_moves(self, at, x, p, frame, to, w)
    }

    /// The step last linearized in the joint chart, from one frame to the next.
    fn linear_model(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        model_by_pushes(self, w, from, to, out);
    }
}

/// Derivatives of several quantities, one row each: by state (free chart), control, parameters and unknowns.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// rows x nf
    pub x: DMatrix<f64>,
    /// rows x nu
    pub u: DMatrix<f64>,
    /// rows x np
    pub p: DMatrix<f64>,
    /// rows x ny
    pub y: DMatrix<f64>,
}

impl Rows {
    /// Zeros.
    pub fn new(dims: &Dims, rows: usize) -> Self {
        let zeros = |n| DMatrix::zeros(rows, n);
        Self {
            x: zeros(dims.nf),
            u: zeros(dims.nu),
            p: zeros(dims.np),
            y: zeros(dims.ny),
        }
    }
}

/// What costs, constraints, figures and files may see of a system, by index into one list.
pub trait Observe: Dynamics {
    /// Name and unit of every quantity.
    fn quantities(&self) -> Vec<(String, String)>;

    /// Does the quantity depend on the unknowns of the step, as a joint's force does? It then has no value at the end.
    fn needs_unknowns(&self, quantity: usize) -> bool {
        let _ = quantity;
        false
    }

    /// Values of the quantities listed in `which`.
    ///
    /// # Errors
    /// When a quantity has no value at this state.
    fn observe(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError>;

    /// Adds to the adjoints of state, control, parameters and unknowns (`y`, as long as those seen) those of the
    /// quantities in `which`. Call it right after [`Observe::observe`] with the same arguments.
    fn observe_pull(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    );

    /// Derivatives of the quantities in `which`, one row each. Call it right after [`Observe::observe`].
    fn observe_rows(&self, seen: &Seen, which: &[usize], w: &mut Self::Work, out: &mut Rows) {
        let dims = self.dims();
        let (mut inputs, mut y) = (dims.inputs(), vec![0.0; seen.y.len()]);
        let mut adjoint = vec![0.0; which.len()];
        for i in 0..which.len() {
            inputs.clear();
            y.fill(0.0);
            adjoint[i] = 1.0;
            self.observe_pull(seen, which, w, &adjoint, &mut inputs, &mut y);
            adjoint[i] = 0.0;
            let set = |m: &mut DMatrix<f64>, v: &[f64]| {
                m.row_mut(i).iter_mut().zip(v).for_each(|(m, v)| *m = *v);
            };
            set(&mut out.x, &inputs.x);
            set(&mut out.u, &inputs.u);
            set(&mut out.p, &inputs.p);
            set(&mut out.y, &y);
        }
    }
}
