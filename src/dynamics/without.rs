//! What a system of a few lines does not have, said in a word.

/// States that a system does not have something, in the `impl` of the role that asks for it:
///
/// | in | words |
/// |---|---|
/// | [`Step`](crate::dynamics::Step) | `names` (controls are called `u0`, `u1` ..), `parameters`, `start` (of its own: a state is the coordinates followed by the rates), `softening` |
/// | [`Differentiable`](crate::dynamics::Differentiable) | `smoothing`, `keeping` (of linearizations) |
/// | [`Charts`](crate::dynamics::Charts) | `charts` (one serves for both), `model` (linear models are made by pushes) |
/// | [`Observe`](crate::dynamics::Observe) | `unknowns` (in its quantities) |
///
/// ```
/// use least_action::dynamics::{
///     Certificate, Charts, Differentiable, Dims, Equations, Inputs, Knot, Outputs, SolvedStep, Step, StepError, StepStats,
/// };
/// use least_action::without;
///
/// /// x+ = x + h u
/// struct Integrator;
///
/// impl Step for Integrator {
///     type Work = f64; // the interval last linearized
///
///     without!(names, parameters, start, softening);
///
///     fn dims(&self) -> Dims {
///         Dims { nx: 1, nf: 1, ndx: 1, nu: 1, np: 0, ny: 0 }
///     }
///
///     fn work(&self) -> f64 {
///         0.0
///     }
///
///     fn step(
///         &self, at: &Knot, x: &[f64], u: &[f64], _: &[f64], _: &mut f64, next: &mut [f64], _: &mut [f64],
///     ) -> Result<StepStats, StepError> {
///         next[0] = x[0] + at.h * u[0];
///         Ok(StepStats::default())
///     }
/// }
///
/// impl Differentiable for Integrator {
///     without!(smoothing, keeping);
///
///     fn linearize_in(&self, at: &SolvedStep, h: &mut f64) -> Result<Certificate, StepError> {
///         *h = at.at.h;
///         Ok(Certificate::default())
///     }
///
///     fn push_in(&self, h: &mut f64, d: &Inputs, out: &mut Outputs) {
///         out.x[0] = d.x[0] + *h * d.u[0];
///     }
///
///     fn pull_in(&self, h: &mut f64, adjoint: &Outputs, out: &mut Inputs) {
///         out.clear();
///         (out.x[0], out.u[0]) = (adjoint.x[0], *h * adjoint.x[0]);
///     }
/// }
///
/// impl Equations for Integrator {}
///
/// impl Charts for Integrator {
///     without!(charts, model);
/// }
/// # use least_action::rollout::{RolloutStats, Trajectory};
/// let mut t = Trajectory::new(&Integrator, vec![0.1; 3], &[1.0]);
/// t.u.copy_from_slice(&[1.0, 2.0, 3.0]);
/// t.roll(&Integrator, &mut 0.0, &mut RolloutStats::default())?;
/// assert!((t.state(3)[0] - 1.6).abs() < 1e-15);
/// # Ok::<(), StepError>(())
/// ```
#[macro_export]
macro_rules! without {
    (@names) => {
        fn controls(&self) -> Vec<(String, String)> {
            let named = |i| (format!("u{i}"), "1".into());
            (0..self.dims().nu).map(named).collect()
        }
    };
    (@parameters) => {
        fn parameters(&self) -> Vec<$crate::dynamics::Parameter> {
            vec![]
        }

        fn initial_by_parameters(
            &self,
            _: &$crate::dynamics::Start,
            _: &[f64],
            _: &mut Self::Work,
        ) -> Result<$crate::nalgebra::DMatrix<f64>, $crate::dynamics::StepError> {
            Ok($crate::nalgebra::DMatrix::zeros(self.dims().nf, 0))
        }
    };
    (@start) => {
        fn initial(
            &self,
            start: &$crate::dynamics::Start,
            _: &[f64],
            _: &mut Self::Work,
            x: &mut [f64],
        ) -> Result<(), $crate::dynamics::StepError> {
            $crate::dynamics::start_of_coordinates(start, x)
        }

        fn initial_by_coordinates(
            &self,
            _: &$crate::dynamics::Start,
            _: &[f64],
            _: &mut Self::Work,
        ) -> Result<$crate::nalgebra::DMatrix<f64>, $crate::dynamics::StepError> {
            let n = self.dims().nf;
            Ok($crate::nalgebra::DMatrix::identity(n, n + 1))
        }
    };
    (@softening) => {
        fn soften(&self, _: &mut Self::Work, _: f64) -> bool {
            false
        }
    };
    (@smoothing) => {
        fn smoothing(&self, _: &mut Self::Work, _: f64) {}
    };
    (@keeping) => {
        fn kept(&self) -> usize {
            0
        }

        fn keep_in(&self, _: &Self::Work, _: &mut [f64]) -> bool {
            false
        }

        fn restore_in(
            &self,
            _: &$crate::dynamics::SolvedStep,
            _: &[f64],
            _: &mut Self::Work,
        ) -> Result<bool, $crate::dynamics::StepError> {
            Ok(false)
        }
    };
    (@charts) => {
        fn frame_in(
            &self,
            _: &$crate::dynamics::Knot,
            _: &[f64],
            _: &[f64],
            _: Option<&$crate::dynamics::Frame>,
            _: &mut Self::Work,
            out: &mut $crate::dynamics::Frame,
        ) -> Result<(), $crate::dynamics::StepError> {
            let dims = $crate::dynamics::Step::dims(self);
            *out = $crate::dynamics::Frame::Identity(dims.nf);
            Ok(())
        }

        fn has_identity_frames(&self) -> bool {
            true
        }

        fn retract(
            &self,
            _: &$crate::dynamics::Knot,
            x: &[f64],
            _: &[f64],
            _: &$crate::dynamics::Frame,
            d: &[f64],
            _: &mut Self::Work,
            out: &mut [f64],
        ) -> Result<(), $crate::dynamics::StepError> {
            for ((o, x), d) in out.iter_mut().zip(x).zip(d) {
                *o = x + d;
            }
            Ok(())
        }

        fn difference(
            &self,
            _: &$crate::dynamics::Knot,
            x: &[f64],
            _: &[f64],
            _: &$crate::dynamics::Frame,
            to: &[f64],
            _: &mut Self::Work,
            out: &mut [f64],
        ) {
            for ((o, x), to) in out.iter_mut().zip(x).zip(to) {
                *o = to - x;
            }
        }

        fn by_interval(&self, _: &$crate::dynamics::Knot, _: &[f64], out: &mut [f64]) {
            out.fill(0.0);
        }

        fn difference_by(
            &self,
            _: &$crate::dynamics::Knot,
            x: &[f64],
            _: &[f64],
            _: &$crate::dynamics::Frame,
            _: &[f64],
            _: &mut Self::Work,
        ) -> Result<$crate::nalgebra::DMatrix<f64>, $crate::dynamics::StepError> {
            Ok($crate::nalgebra::DMatrix::identity(x.len(), x.len()))
        }
    };
    (@model) => {
        fn linear_model_in(
            &self,
            w: &mut Self::Work,
            from: &$crate::dynamics::Frame,
            to: &$crate::dynamics::Frame,
            out: &mut $crate::dynamics::LinearModel,
        ) {
            $crate::dynamics::model_by_pushes(self, w, from, to, out);
        }
    };
    (@unknowns) => {
        fn needs_unknowns(&self, _: $crate::dynamics::QuantityId) -> bool {
            false
        }
    };
    ($($what:ident),+ $(,)?) => {
        $($crate::without!(@$what);)+
    };
}
