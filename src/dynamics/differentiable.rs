//! The derivatives of a step.

use super::{Certificate, Charts, Frame, Knot, KnotPoint, LinearModel, Step, StepError};

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

/// A step with everything that went in and came out.
#[derive(Clone, Copy, Debug)]
pub struct SolvedStep<'a> {
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

impl<'a> SolvedStep<'a> {
    /// What is seen where it starts.
    pub fn start(&self) -> KnotPoint<'a> {
        KnotPoint {
            at: self.at,
            x: self.x,
            u: self.u,
            p: self.p,
            y: self.y,
        }
    }
}

/// A system whose steps can be differentiated.
///
/// [`Differentiable::linearize`] is what a caller uses: the [`Linearization`] that it returns borrows the memory, so that
/// it cannot be asked after the memory serves something else. The methods ending in `_in` are what an implementation
/// provides; between linearizing and asking, nothing else happens to the memory.
pub trait Differentiable: Step {
    /// Assembles and factors the step's equations at their solution; the products then refer to it.
    ///
    /// # Errors
    /// When the matrix is singular.
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError>;

    /// Change of the outputs by a change of the inputs, of the step last linearized.
    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs);

    /// Adjoints of the inputs from adjoints of the outputs, of the step last linearized.
    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs);

    /// Linearizations from here on are those of contact on the central path at `kappa`, m^2/s^2 (0, as at first: at the
    /// parameter of the step itself, which makes them exact). Steps stay as they are. A larger one tells of contacts that
    /// are not made and friction that is not overcome; [`Certificate::kappa`] says which was used.
    fn smoothing(&self, w: &mut Self::Work, kappa: f64);

    /// How many numbers hold what is dear in a linearization; 0 when it cannot be kept.
    fn kept(&self) -> usize;

    /// Keeps the linearization that `w` holds; false when it cannot be kept.
    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool;

    /// Brings back the linearization of a step; false when it has to be made again, as for one kept at another
    /// [`Differentiable::smoothing`].
    ///
    /// # Errors
    /// As [`Differentiable::linearize_in`].
    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError>;

    /// The linearization of a solved step.
    ///
    /// # Errors
    /// When the step's matrix is singular.
    fn linearize<'a>(
        &'a self,
        at: &SolvedStep,
        w: &'a mut Self::Work,
    ) -> Result<Linearization<'a, Self>, StepError> {
        Ok(Linearization {
            certificate: self.linearize_in(at, w)?,
            is_restored: false,
            system: self,
            work: w,
        })
    }

    /// [`Differentiable::linearize`] of a step whose linearization was kept, with its certificate: brought back where
    /// that can be done, else made again.
    ///
    /// # Errors
    /// As [`Differentiable::linearize`].
    fn restore<'a>(
        &'a self,
        at: &SolvedStep,
        (kept, certificate): (&[f64], Certificate),
        w: &'a mut Self::Work,
    ) -> Result<Linearization<'a, Self>, StepError> {
        let is_restored = self.restore_in(at, kept, w)?;
        Ok(Linearization {
            certificate: match is_restored {
                true => certificate,
                false => self.linearize_in(at, w)?,
            },
            is_restored,
            system: self,
            work: w,
        })
    }
}

/// A step linearized: its matrix, factored, in the memory that this borrows.
pub struct Linearization<'a, D: Differentiable + ?Sized> {
    system: &'a D,
    work: &'a mut D::Work,
    certificate: Certificate,
    is_restored: bool,
}

impl<D: Differentiable + ?Sized> Linearization<'_, D> {
    /// How good it is.
    pub fn certificate(&self) -> Certificate {
        self.certificate
    }

    /// Was it brought back rather than made?
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// Change of the outputs by a change of the inputs.
    pub fn push(&mut self, d: &Inputs, out: &mut Outputs) {
        self.system.push_in(self.work, d, out);
    }

    /// Adjoints of the inputs from adjoints of the outputs.
    pub fn pull(&mut self, adjoint: &Outputs, out: &mut Inputs) {
        self.system.pull_in(self.work, adjoint, out);
    }

    /// Keeps it for [`Differentiable::restore`], in [`Differentiable::kept`] numbers; false when it cannot be kept.
    pub fn keep(&self, kept: &mut [f64]) -> bool {
        self.system.keep_in(self.work, kept)
    }
}

impl<D: Charts + ?Sized> Linearization<'_, D> {
    /// The step in the joint chart, from one frame to the next.
    pub fn linear_model(&mut self, from: &Frame, to: &Frame, out: &mut LinearModel) {
        self.system.linear_model_in(self.work, from, to, out);
    }
}
