//! Policies: the controls of a system computed from what is seen of it.

use super::{add, dot};
use crate::dynamics::{Frame, Knot, Observe, Parameter, QuantityId, StepError, hand_on};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use std::sync::Arc;

/// A policy `u = f(s, v, g, t)` for the controls `u` of a system: `s` is what it sees (that must not depend on the
/// control that is about to act), `v` controls that it leaves open, `g` parameters of its own. What is seen are
/// quantities, and behind them, for who follows a plan, the change of the joint chart from the plan's state to the
/// present one.
pub trait Policy: Sync {
    /// The quantities of the system that it sees.
    fn sees(&self) -> &[QuantityId];

    /// How many numbers of the joint chart are seen behind the quantities: the system's `ndx`, or 0, the default.
    fn compares(&self) -> usize {
        0
    }

    /// The plan at a knot, which [`Policy::compares`] is about; where there is none, no change is seen.
    fn planned(&self, at: &Knot) -> Option<Planned<'_>> {
        let _ = at;
        None
    }

    /// Number of controls left open.
    fn open(&self) -> usize;

    /// Are these the system's controls, one by one, and is that all?
    fn is_open(&self) -> bool {
        false
    }

    /// Gains and the like.
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }

    /// The system's controls, into `out`.
    ///
    /// # Errors
    /// What the policy cannot act by, which ends the rollout: [`StepError::of_callback`].
    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError>;

    /// Their derivatives at the same place, into `by`, which holds zeros.
    ///
    /// # Errors
    /// As [`Policy::act`].
    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError>;
}

/// Policies that are shared, as systems are.
macro_rules! shared {
    ($($pointer:ty $(where $bound:ident)?),*) => {$(
        hand_on! { Policy for $pointer $(where $bound)?:
            fn sees() -> &[QuantityId];
            fn compares() -> usize;
            fn planned(at: &Knot) -> Option<Planned<'_>>;
            fn open() -> usize;
            fn is_open() -> bool;
            fn parameters() -> Vec<Parameter>;
            fn act(at: &Knot, seen: &[f64], open: &[f64], own: &[f64], out: &mut [f64]) -> Result<(), StepError>;
            fn differentiate(at: &Knot, seen: &[f64], open: &[f64], own: &[f64], by: &mut PolicyRows) -> Result<(), StepError>;
        }
    )*};
}

shared!(&D, Box<D>, Arc<D> where Send);

/// A plan's state, with the knot, parameters and frame that give its joint chart ([`crate::dynamics::Dynamics`]). They
/// are the plan's own also where the present ones differ.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// Where.
    pub at: Knot,
    /// State.
    pub x: &'a [f64],
    /// Controls.
    pub u: &'a [f64],
    /// The system's parameters.
    pub p: &'a [f64],
    /// Frame of the state.
    pub frame: &'a Frame,
}

/// A policy that does not fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub(super) String);

/// No policy: all controls stay open.
#[derive(Clone, Copy, Debug)]
pub struct Open(
    /// How many there are.
    pub usize,
);

impl Policy for Open {
    fn sees(&self) -> &[QuantityId] {
        &[]
    }

    fn open(&self) -> usize {
        self.0
    }

    fn is_open(&self) -> bool {
        true
    }

    fn act(
        &self,
        _: &Knot,
        _: &[f64],
        open: &[f64],
        _: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        out.copy_from_slice(open);
        Ok(())
    }

    fn differentiate(
        &self,
        _: &Knot,
        _: &[f64],
        _: &[f64],
        _: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        by.open.fill_with_identity();
        Ok(())
    }
}

/// Derivatives of the system's controls, one row each.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRows {
    /// By what is seen.
    pub seen: DMatrix<f64>,
    /// By the open controls.
    pub open: DMatrix<f64>,
    /// By the policy's own parameters.
    pub own: DMatrix<f64>,
}

/// A signal over time, with nothing to differentiate.
pub type Signal = Box<dyn Fn(f64) -> f64 + Send + Sync>;

/// A proportional-derivative law for one control,
/// `u = kp (reference(t) - q) + kd (rate_reference(t) - rate) + feed-forward`.
pub struct Loop {
    /// Index of the system's control.
    pub control: usize,
    /// Quantity `q`.
    pub coordinate: QuantityId,
    /// Quantity `rate`; of a mechanism the rate over the interval just past, as a sampled controller sees it.
    pub rate: QuantityId,
    /// Gains `kp`, `kd`: the policy's parameters, loop by loop.
    pub gains: (f64, f64),
    /// What `q` is to follow.
    pub reference: Signal,
    /// What the rate is to follow.
    pub rate_reference: Signal,
}

/// The unit of a quotient: `N m` by `rad/s` is `N m s/rad`.
fn quotient(of: &str, by: &str) -> String {
    let (by, over) = by.split_once('/').unwrap_or((by, "1"));
    let factors = [of, over].into_iter().filter(|f| *f != "1");
    let above = factors.collect::<Vec<_>>().join(" ");
    match (above.as_str(), by) {
        ("", "1") => "1".into(),
        (_, "1") => above,
        ("", _) => format!("1/{by}"),
        _ => format!("{above}/{by}"),
    }
}

/// Proportional-derivative control: one [`Loop`] for each control that has one; feed-forward controls may stay open.
pub struct Pd {
    loops: Vec<Loop>,
    open: usize,
    sees: Vec<QuantityId>,
    parameters: Vec<Parameter>,
}

impl Pd {
    /// For a system. With `feed_forward` the open controls are added, as many as the system has; else there are none.
    /// The gains are parameters named by their controls, as `kp of motor`, in units of the control by those of the
    /// quantity.
    ///
    /// # Errors
    /// When a loop refers to a control or a quantity that the system does not have.
    pub fn new(
        system: &impl Observe,
        loops: Vec<Loop>,
        feed_forward: bool,
    ) -> Result<Self, PolicyError> {
        let (controls, quantities) = (system.controls(), system.quantities());
        let none = |what: &str, i: usize, of: usize| {
            PolicyError(format!("there is no {what} {i}; the system has {of}"))
        };
        let mut parameters = vec![];
        for l in &loops {
            let control = controls.get(l.control);
            let (name, of) = control.ok_or(none("control", l.control, controls.len()))?;
            let gains = [("kp", l.coordinate, l.gains.0), ("kd", l.rate, l.gains.1)];
            for (kind, quantity, value) in gains {
                let seen = quantities.get(quantity.index());
                let (_, by) = seen.ok_or(none("quantity", quantity.index(), quantities.len()))?;
                parameters.push(Parameter {
                    name: format!("{kind} of {name}"),
                    unit: quotient(of, by),
                    value,
                });
            }
        }
        Ok(Self {
            open: if feed_forward { controls.len() } else { 0 },
            sees: loops.iter().flat_map(|l| [l.coordinate, l.rate]).collect(),
            loops,
            parameters,
        })
    }

    /// What is left of `q` and its rate.
    fn errors(l: &Loop, t: f64, seen: &[f64]) -> [f64; 2] {
        [(l.reference)(t) - seen[0], (l.rate_reference)(t) - seen[1]]
    }
}

impl Policy for Pd {
    fn sees(&self) -> &[QuantityId] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        out.fill(0.0);
        add(out, 1.0, open.iter());
        let pairs = seen.chunks_exact(2).zip(own.chunks_exact(2));
        for (l, (seen, gains)) in self.loops.iter().zip(pairs) {
            out[l.control] += dot(gains.iter(), &Self::errors(l, at.t, seen));
        }
        Ok(())
    }

    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        _: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        by.open.fill_with_identity();
        for (i, l) in self.loops.iter().enumerate() {
            let errors = Self::errors(l, at.t, &seen[2 * i..2 * i + 2]);
            for k in 0..2 {
                by.seen[(l.control, 2 * i + k)] -= own[2 * i + k];
                by.own[(l.control, 2 * i + k)] += errors[k];
            }
        }
        Ok(())
    }
}

/// Linear feedback around a plan, `u = u_k + K_k d`, as differential dynamic programming finds it
/// ([`crate::optimize::Solution::feedback`]): `d`, `ndx` numbers, leads from the plan's state to the present one in the
/// joint chart at the plan's knot ([`crate::dynamics::Charts::difference`]). Behind its end the plan's last controls
/// hold on, without feedback.
#[derive(Clone, Debug)]
pub struct LinearFeedback {
    plan: Trajectory,
    gains: Vec<DMatrix<f64>>,
    frames: Vec<Frame>,
    open: usize,
}

impl LinearFeedback {
    /// `K_k`, nu x ndx, one a step of the plan; a frame for each, or one in all where they are the identity.
    ///
    /// # Errors
    /// When the sizes do not fit, or there is no step.
    pub fn new(
        plan: Trajectory,
        gains: Vec<DMatrix<f64>>,
        frames: Vec<Frame>,
    ) -> Result<Self, PolicyError> {
        let (steps, nu) = (plan.steps(), plan.control(0).len());
        let columns = gains.first().map_or(0, DMatrix::ncols);
        let refused = |why: String| Err(PolicyError(why));
        if steps == 0 || gains.len() != steps {
            let got = gains.len();
            return refused(format!(
                "{got} gains for a plan of {steps} steps; give one a step"
            ));
        }
        if gains.iter().any(|g| g.shape() != (nu, columns)) {
            return refused(format!(
                "every gain must have {nu} rows and as many columns"
            ));
        }
        if frames.len() != 1 && frames.len() < steps {
            let got = frames.len();
            return refused(format!("{got} frames for {steps} steps; give one for each"));
        }
        Ok(Self {
            plan,
            gains,
            frames,
            open: 0,
        })
    }

    /// Leaves controls open, as many as the system has, that are added to what the feedback says.
    pub fn with_feed_forward(mut self) -> Self {
        self.open = self.plan.control(0).len();
        self
    }

    /// The step of the plan that serves at a knot.
    fn step(&self, at: &Knot) -> usize {
        at.k.min(self.gains.len() - 1)
    }
}

impl Policy for LinearFeedback {
    fn sees(&self) -> &[QuantityId] {
        &[]
    }

    fn compares(&self) -> usize {
        self.gains[0].ncols()
    }

    fn planned(&self, at: &Knot) -> Option<Planned<'_>> {
        if at.k >= self.gains.len() {
            return None;
        }
        let k = self.step(at);
        Some(Planned {
            at: self.plan.knot_at(k),
            x: self.plan.state(k),
            u: self.plan.control(k),
            p: &self.plan.p,
            frame: &self.frames[k.min(self.frames.len() - 1)],
        })
    }

    fn open(&self) -> usize {
        self.open
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        _: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let k = self.step(at);
        out.fill(0.0);
        add(out, 1.0, open.iter());
        add(out, 1.0, self.plan.control(k).iter());
        for (out, row) in out.iter_mut().zip(self.gains[k].row_iter()) {
            *out += dot(row.iter(), seen);
        }
        Ok(())
    }

    fn differentiate(
        &self,
        at: &Knot,
        _: &[f64],
        _: &[f64],
        _: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        by.open.fill_with_identity();
        if at.k < self.gains.len() {
            by.seen += &self.gains[self.step(at)];
        }
        Ok(())
    }
}

/// A law written by the user: `law(knot, seen, open, own, u, rows)` computes the controls `u`, and their derivatives
/// where `rows` asks for them; what it fails with ends the rollout.
pub struct Law<F> {
    /// The quantities seen.
    pub sees: Vec<QuantityId>,
    /// Number of open controls.
    pub open: usize,
    /// The law's own parameters.
    pub parameters: Vec<Parameter>,
    /// Controls of the system.
    pub controls: usize,
    /// The law.
    pub law: F,
}

impl<F> Policy for Law<F>
where
    F: Fn(
            &Knot,
            &[f64],
            &[f64],
            &[f64],
            &mut [f64],
            Option<&mut PolicyRows>,
        ) -> Result<(), StepError>
        + Sync,
{
    fn sees(&self) -> &[QuantityId] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        (self.law)(at, seen, open, own, out, None)
    }

    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        let mut u = vec![0.0; self.controls];
        (self.law)(at, seen, open, own, &mut u, Some(by))
    }
}
