//! The seam between mechanics and optimization. Optimizers and rollouts know these traits and nothing of mechanisms;
//! an integrator, or a user's own few lines, implements them.
//!
//! Two charts describe a small change of a state. The *free* chart has one number per stored degree (for a maximal
//! integrator twelve per body: displacement, then velocity); [`Dynamics::push`] and [`Dynamics::pull`] use it, and the
//! reverse sweep runs in it. The *joint* chart is the tangent of what the joints allow, 2 n_dof numbers (coordinates,
//! then rates); [`Dynamics::frame`] connects the two, and linear models for feedback live in it. Dynamics without
//! constraints use one chart for both, the default.

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
    /// Unknowns of a step: velocities and impulses.
    pub ny: usize,
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
    /// An interval was not positive.
    Interval,
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

/// How good a linearization is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certificate {
    /// Largest residual of the step's equations at the point that was linearized, N s, N m s, m or half rad.
    pub residual: f64,
    /// 1 where a general sparse factorization had to stand in for the block one.
    pub fallbacks: usize,
}

/// A change of a step's inputs, or adjoints of them. States in the free chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// State.
    pub x: Vec<f64>,
    /// Control.
    pub u: Vec<f64>,
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

impl Dims {
    /// Zero inputs.
    pub fn inputs(&self) -> Inputs {
        Inputs {
            x: vec![0.0; self.nf],
            u: vec![0.0; self.nu],
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
    /// Unknowns of the step.
    pub y: &'a [f64],
    /// State at the next knot.
    pub next: &'a [f64],
}

/// Connects the joint chart with the free one at a state: `embed` is nf x ndx, `project` its left inverse ndx x nf.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Columns: changes of the state in the free chart, per (coordinate, rate).
    pub embed: DMatrix<f64>,
    /// Rows: (coordinate, rate) of a change in the free chart.
    pub project: DMatrix<f64>,
    /// What the next frame along a path aligns itself with; empty where frames are unique.
    pub memory: DMatrix<f64>,
}

/// A discrete-time system that can be stepped and differentiated.
pub trait Dynamics: Sync {
    /// Matrices and factors. Nothing allocates after it is made.
    type Work: Send;

    /// Sizes.
    fn dims(&self) -> Dims;

    /// Memory for one thread.
    fn work(&self) -> Self::Work;

    /// Solves a step. `y` holds the previous step's unknowns on entry (zeros at the start) as a guess for the
    /// impulses, and this step's on return.
    ///
    /// # Errors
    /// When there is no solution or it was not found; `next` and `y` are then not to be used.
    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError>;

    /// Assembles and factors the step's equations at their solution; `push` and `pull` then refer to it.
    ///
    /// # Errors
    /// When the matrix is singular.
    fn linearize(&self, at: &Solved, w: &mut Self::Work) -> Result<Certificate, StepError>;

    /// Change of the outputs by a change of the inputs.
    fn push(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs);

    /// Adjoints of the inputs from adjoints of the outputs.
    fn pull(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs);

    /// The frame at a state; `previous` is the frame of the knot before, when one walks along a path.
    ///
    /// # Errors
    /// When the state is not one of the system.
    fn frame(&self, at: &Knot, x: &[f64], previous: Option<&Frame>) -> Result<Frame, StepError> {
        let _ = (at, x, previous);
        let n = self.dims().nf;
        Ok(Frame {
            embed: DMatrix::identity(n, n),
            project: DMatrix::identity(n, n),
            memory: DMatrix::zeros(0, 0),
        })
    }

    /// Moves a state by `d` of the joint chart (its frame is given) and keeps it a state of the system.
    ///
    /// # Errors
    /// When that state does not exist, e.g. loops cannot be closed so far away.
    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        frame: &Frame,
        d: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let _ = (at, frame);
        for ((o, x), d) in out.iter_mut().zip(x).zip(d) {
            *o = x + d;
        }
        Ok(())
    }

    /// The change of the joint chart that leads from `x` to `to`, to first order.
    fn difference(&self, at: &Knot, x: &[f64], frame: &Frame, to: &[f64], out: &mut [f64]) {
        let _ = (at, frame);
        for ((o, x), to) in out.iter_mut().zip(x).zip(to) {
            *o = to - x;
        }
    }

    /// `A` (ndx x ndx) and `B` (ndx x nu) of the linearized step in the joint chart, from one frame to the next.
    fn linear_model(
        &self,
        w: &mut Self::Work,
        from: &Frame,
        to: &Frame,
    ) -> (DMatrix<f64>, DMatrix<f64>) {
        let dims = self.dims();
        let (mut d, mut out) = (dims.inputs(), dims.outputs());
        let mut full = DMatrix::zeros(dims.nf, dims.ndx + dims.nu);
        for i in 0..dims.ndx + dims.nu {
            d.x.fill(0.0);
            d.u.fill(0.0);
            if i < dims.ndx {
                d.x.copy_from_slice(from.embed.column(i).as_slice());
            } else {
                d.u[i - dims.ndx] = 1.0;
            }
            self.push(w, &d, &mut out);
            full.column_mut(i).as_mut_slice().copy_from_slice(&out.x);
        }
        let joint = &to.project * full;
        (
            joint.columns(0, dims.ndx).into_owned(),
            joint.columns(dims.ndx, dims.nu).into_owned(),
        )
    }
}

/// What costs, constraints, figures and files may see of a system, by index into one list.
pub trait Observe: Dynamics {
    /// Name and unit of every quantity.
    fn quantities(&self) -> Vec<(String, String)>;

    /// Values of the quantities listed in `which` at a knot, with the control that acts there (at the end, the last).
    ///
    /// # Errors
    /// When a quantity has no value at this state.
    fn observe(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        which: &[usize],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError>;

    /// Adds to the adjoints of state and control those of the quantities in `which`. Call it right after
    /// [`Observe::observe`] with the same arguments.
    #[expect(
        clippy::too_many_arguments,
        reason = "a knot, a work space, and what goes in and out"
    )]
    fn observe_pull(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        which: &[usize],
        w: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
    );
}
