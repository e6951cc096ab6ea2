//! The reverse sweep: the gradient of a function of a trajectory.

use super::Trajectory;
use super::cache::Cache;
use crate::dynamics::{Certificate, Dynamics, Inputs, Knot, Outputs, StepError, stop_requested};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Memory and result of a reverse sweep: the gradient of a function of a trajectory.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// By every control, `nu` a knot.
    pub u: Vec<f64>,
    /// By the parameters, the first state held.
    pub p: Vec<f64>,
    /// By the first state, free chart.
    pub x0: Vec<f64>,
    /// By every interval.
    pub intervals: Vec<f64>,
    /// By the interval before the first, the first state held.
    pub before: f64,
    /// The worst of the linearized steps.
    pub certificate: Certificate,
    adjoint: Outputs,
    inputs: Inputs,
    local: Inputs,
    cache: Cache,
}

impl Sweep {
    /// Room for a sweep over a trajectory.
    pub fn new<D: Dynamics>(dynamics: &D, trajectory: &Trajectory) -> Self {
        let d = dynamics.dims();
        Self {
            u: vec![0.0; trajectory.u.len()],
            p: vec![0.0; d.np],
            x0: vec![0.0; d.nf],
            intervals: vec![0.0; trajectory.steps()],
            before: 0.0,
            certificate: Certificate::default(),
            adjoint: d.outputs(),
            inputs: d.inputs(),
            local: d.inputs(),
            cache: Cache::default(),
        }
    }

    /// Stores the linearizations of the last steps, in at most `bytes` bytes of memory: the first sweep over a trajectory factors
    /// them, later ones (of other functions, such as each constraint) find the factors. A step that has changed since is
    /// factored again, so any trajectory of as many steps may follow.
    pub fn with_cache<D: Dynamics>(self, dynamics: &D, bytes: usize) -> Self {
        let cache = Cache::new(dynamics, self.intervals.len(), bytes);
        Self { cache, ..self }
    }

    /// Sweeps back over a trajectory: one factorization (unless it is kept) and one transposed solve a step. `local` adds to the adjoints
    /// of state, control, parameters, intervals and unknowns at knot `k` those of the function there. Allocates nothing.
    ///
    /// # Errors
    /// When the trajectory is of other sizes than the sweep or the system, a step's matrix is singular, a stop is
    /// requested, or as `local` fails.
    pub fn run<D: Dynamics>(
        &mut self,
        dynamics: &D,
        trajectory: &Trajectory,
        w: &mut D::Work,
        local: impl FnMut(&Knot, &mut D::Work, &mut Inputs, &mut [f64]) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let steps = 0..trajectory.steps();
        self.run_over(dynamics, trajectory, steps, None, w, local)
    }

    /// [`Sweep::run`] over some of the steps, as if the trajectory had no others: [`Sweep::x0`] is by the state that the
    /// first of them starts from, and of controls and intervals of other steps the derivative is zero.
    ///
    /// With a `window` the derivative is truncated: the steps are divided into windows of that many steps, and the initial state of each window
    /// counts as constant. At the knot between two windows, derivatives of the knot's function by the state belong to the earlier window, and
    /// those by the control to the later one. If one window contains all steps, the derivative is exact.
    ///
    /// # Errors
    /// As [`Sweep::run`].
    ///
    /// # Panics
    /// When there are no such steps.
    pub fn run_over<D: Dynamics>(
        &mut self,
        dynamics: &D,
        trajectory: &Trajectory,
        steps: Range<usize>,
        window: Option<NonZeroUsize>,
        w: &mut D::Work,
        mut local: impl FnMut(&Knot, &mut D::Work, &mut Inputs, &mut [f64]) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let (n, nu) = (trajectory.steps(), trajectory.nu);
        let Range { start, end } = steps;
        trajectory.fits(dynamics)?;
        if (self.u.len(), self.intervals.len()) != (trajectory.u.len(), n) {
            let made_for = self.intervals.len();
            return Err(StepError::of_size(
                "reverse sweep",
                format!(
                    "it has room for {made_for} steps, not for {n}; make one for this trajectory"
                ),
            ));
        }
        self.certificate = Certificate::default();
        self.intervals.fill(0.0);
        self.before = 0.0;
        self.p.fill(0.0);
        self.u.fill(0.0);
        let mut t = trajectory.time + trajectory.intervals[..end].iter().sum::<f64>();
        for k in (start..=end).rev() {
            if stop_requested() {
                return Err(StepError::stopped(t));
            }
            let at = Knot {
                t,
                ..trajectory.knot_at(k)
            };
            self.local.clear();
            self.adjoint.y.fill(0.0);
            let y = if k < end { self.adjoint.y.len() } else { 0 };
            local(&at, w, &mut self.local, &mut self.adjoint.y[..y])?;
            if k < end {
                // adjoint of x_(k+1) through the step
                let solved = trajectory.solved(&at);
                let mut linear = self.cache.linearize(dynamics, &solved, w)?;
                self.certificate = self.certificate.and(&linear.certificate());
                linear.pull(&self.adjoint, &mut self.inputs);
            } else {
                self.inputs.clear();
            }
            if window.is_some_and(|n| k > start && (k - start) % n == 0) {
                // a window begins here, from a state that is given
                self.inputs.x.fill(0.0);
            }
            self.inputs.add(&self.local);
            if k < end {
                self.intervals[k] += self.inputs.h;
            }
            std::mem::swap(&mut self.adjoint.x, &mut self.inputs.x);
            self.p
                .iter_mut()
                .zip(&self.inputs.p)
                .for_each(|(p, i)| *p += i);
            if k > 0 {
                self.intervals[k - 1] += self.inputs.h_prev;
                t -= trajectory.intervals[k - 1];
            } else {
                self.before = self.inputs.h_prev;
            }
            // the control at the end is that of the last step
            let own = k.min(n.saturating_sub(1)) * nu;
            if n > 0 {
                for (o, i) in self.u[own..own + nu].iter_mut().zip(&self.inputs.u) {
                    *o += i;
                }
            }
        }
        self.x0.copy_from_slice(&self.adjoint.x);
        Ok(())
    }
}
