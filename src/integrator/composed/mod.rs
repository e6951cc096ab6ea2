//! Higher order by composition: a step is a symmetric sequence of another integrator's steps, some of them backwards.
//!
//! With `S(h)` a symmetric step of second order, `S(g_s h) ... S(g_2 h) S(g_1 h)` is of order 4 or 6 for the shares `g` of
//! [`Order`], which are the same read from either end and add up to one (Suzuki, *Phys. Lett. A* 146, 1990; Kahan and Li,
//! *Math. Comp.* 66, 1997; Hairer, Lubich, Wanner, *Geometric Numerical Integration*, V.3). A stage of the composition has
//! the intervals `g_(i-1) h` and `g_i h` before and after it, the first the last share of the step before: `g_s h-`. The
//! control of the knot acts in all stages: the order is that of motion under controls that stay the same. Held against a
//! control that is a function of time, sampled at knots, the error is of first order, where a step of order 2 takes it by
//! the trapezoidal rule.
//!
//! A state is the inner integrator's, with the velocities of the last stage; so are charts and quantities, with the
//! sub-intervals that meet at the knot, `g_s h-` and `g_1 h`. The unknowns are those of all stages, one after another:
//! the states between them follow by [`Equations::advance`].
//!
//! Contacts, limits and friction push only one way in time, hence cannot be stepped backwards; dampers can, as long as the
//! sub-step's factor is far from its pole. What cannot be composed is refused.
//! Equal parts go forward alone and take them all; in the unsolved equations each part has its own unknowns of contacts.

mod derivative;
mod mechanical;
#[cfg(test)]
pub(in crate::integrator) mod tests;

use super::mechanical::Mechanical;
use super::within::{charts_within, step_within};
use crate::dynamics::{
    Certificate, Charts, Differentiable, Dims, Equations, Frame, Inputs, Knot, KnotPoint,
    LinearModel, Outputs, Parameter, SolvedStep, Start, Step, StepError, StepFailure, StepStats,
    Stored, model_by_pushes,
};
use crate::mechanism::{Law, Mechanism, ModelError, Needs};
use nalgebra::DMatrix;
use std::num::NonZeroUsize;

/// Order of a composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Suzuki's five stages.
    Four,
    /// Kahan and Li's nine stages.
    Six,
    /// So many equal parts, of the order of the steps themselves, forwards all.
    Equal(NonZeroUsize),
}

/// The first half of Kahan and Li's shares.
const KAHAN_LI: [f64; 4] = [
    0.392_161_444_007_314_1,
    0.332_599_136_789_359_43,
    -0.706_246_172_557_639_4,
    0.082_213_596_293_550_8,
];

impl Order {
    /// As a number.
    pub fn number(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Six => 6,
            Self::Equal(_) => 2,
        }
    }

    /// Shares of a step's interval, stage by stage.
    fn shares(self) -> Vec<f64> {
        if let Self::Equal(n) = self {
            return vec![1.0 / n.get() as f64; n.get()];
        }
        let four = [1.0 / (4.0 - 4.0_f64.cbrt()); 2];
        let half: &[f64] = match self {
            Self::Four => &four,
            _ => &KAHAN_LI,
        };
        let middle = 1.0 - 2.0 * half.iter().sum::<f64>();
        let other = half.iter().rev();
        half.iter().chain([&middle]).chain(other).copied().collect()
    }

    /// Are there backward stages?
    fn goes_back(self) -> bool {
        !matches!(self, Self::Equal(_))
    }

    /// Largest `h d/(2 m)` of a damper `d` on an effective mass `m`. A sub-step's factor has a pole where that is one over
    /// the largest backward share: at 1.518 and 1.416; well before it, results are wrong without failing. Half of it.
    fn damping(self) -> f64 {
        match self {
            Self::Four => 0.75,
            Self::Six => 0.708,
            Self::Equal(_) => f64::INFINITY,
        }
    }
}

/// An integrator's steps composed to higher order.
#[derive(Debug)]
pub struct Composed<S> {
    /// Boxed, so that a type of all integrators can be a composition of itself.
    inner: Box<S>,
    order: Order,
    /// Shares of the interval, stage by stage.
    shares: Vec<f64>,
    dims: Dims,
    inner_dims: Dims,
    damps: bool,
}

/// Memory of one thread.
pub struct ComposedWork<W> {
    /// For everything at a knot, and for steps.
    own: W,
    /// Linearizations of the stages.
    stages: Vec<W>,
    /// States between the stages.
    between: Vec<Vec<f64>>,
    /// A change or an adjoint on its way through the stages.
    inputs: Inputs,
    outputs: Outputs,
}

impl<S: Mechanical> Composed<S> {
    /// Composes an integrator's steps.
    ///
    /// # Errors
    /// When the mechanism has what cannot be stepped backwards.
    pub fn new(inner: S, order: Order) -> Result<Self, ModelError> {
        if order.goes_back()
            && let Some(((table, name), what)) = one_way(inner.mechanism())
        {
            return Err(ModelError::new(
                [table, name.as_str()],
                format!(
                    "{what} cannot be stepped backwards, as order {} needs",
                    order.number()
                ),
                "take order 2",
            ));
        }
        let (shares, inner_dims) = (order.shares(), inner.dims());
        Ok(Self {
            dims: Dims {
                ny: shares.len() * inner_dims.ny,
                ..inner_dims
            },
            damps: order.goes_back() && inner.mechanism().may_damp(),
            inner: Box::new(inner),
            order,
            shares,
            inner_dims,
        })
    }

    /// Order of the error in the time step.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The knot of a stage, with its intervals.
    fn stage(&self, at: &Knot, i: usize) -> Knot {
        let last = self.shares[self.shares.len() - 1];
        let past: f64 = self.shares[..i].iter().sum();
        Knot {
            k: at.k,
            t: at.t + past * at.h,
            h_prev: match i {
                0 => last * at.h_prev,
                _ => self.shares[i - 1] * at.h,
            },
            h: self.shares[i] * at.h,
        }
    }

    /// The knot itself, as the inner integrator sees it.
    fn knot(&self, at: &Knot, _: &[f64]) -> Knot {
        self.stage(at, 0)
    }

    /// Unknowns of a stage; none where there are none of the step.
    fn unknowns<'a>(&self, y: &'a [f64], i: usize) -> &'a [f64] {
        let n = self.inner_dims.ny;
        y.get(n * i..n * (i + 1)).unwrap_or(&[])
    }

    /// What is seen at the knot, as the inner integrator sees it.
    fn first<'a>(&self, seen: &KnotPoint<'a>) -> KnotPoint<'a> {
        KnotPoint {
            at: self.stage(&seen.at, 0),
            y: self.unknowns(seen.y, 0),
            ..*seen
        }
    }

    /// Finds the states between the stages, and visits the stages with the memory given: what is seen at their starts.
    fn visit(
        &self,
        seen: &KnotPoint,
        w: &mut S::Work,
        between: &mut [Vec<f64>],
        mut each: impl FnMut(usize, &KnotPoint, &mut S::Work) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        for i in 0..self.shares.len() {
            let (before, after) = between.split_at_mut(i);
            let here = KnotPoint {
                at: self.stage(&seen.at, i),
                x: before.last().map_or(seen.x, |x| x),
                y: self.unknowns(seen.y, i),
                ..*seen
            };
            each(i, &here, w)?;
            if let Some(next) = after.first_mut() {
                self.inner.advance(&here, w, next)?;
            }
        }
        Ok(())
    }

    /// Refuses dampers that are too stiff for the backward stages.
    fn damped(&self, seen: &KnotPoint, w: &mut S::Work) -> Result<(), StepError> {
        if !self.damps {
            return Ok(());
        }
        self.inner.evaluate_knot(seen, Needs::default(), w)?;
        let data = self.inner.knot_data(seen, w);
        let Some((element, rate)) = data.mechanism.stiffest_damper(data.poses) else {
            return Ok(());
        };
        let (h, most) = (seen.at.h / self.shares[0], self.order.damping());
        let size = 0.5 * h.abs() * rate;
        if size <= most {
            return Ok(());
        }
        Err(StepError {
            failure: StepFailure::Unsupported,
            element: data.mechanism.damper_name(element),
            time: seen.at.t,
            residual: f64::NAN,
            message: format!(
                "its damper is too stiff for the backward stages of order {}: h d/(2 m) = {size:.3}, at most {most}; take a time step below {:.3e} s, or order 2",
                self.order.number(),
                most * 2.0 / rate
            ),
        })
    }
}

/// What of a mechanism cannot be stepped backwards, and where it stands.
fn one_way(m: &Mechanism) -> Option<((&'static str, String), String)> {
    let at = |table: &'static str, name: &str| (table, name.to_owned());
    if let Some(c) = m.contacts.first() {
        let body = &m.bodies[c.child].name;
        return Some((at("bodies", body), format!("contact `{}`", c.name)));
    }
    for j in &m.joints {
        let any = |f: &dyn Fn(&crate::mechanism::Direction) -> bool| j.directions.iter().any(f);
        let what = if any(&|d| d.is_limited()) {
            "limits"
        } else if any(&|d| d.friction > 0.0) {
            "friction"
        } else if j.implicit && j.has_dampers() {
            "the implicit damping"
        } else {
            continue;
        };
        return Some((
            at("joints", &j.name),
            format!("{what} of joint `{}`", j.name),
        ));
    }
    if let Some(s) = m.springs.iter().find(|s| s.implicit && s.damping > 0.0) {
        let what = format!("the implicit damping of spring `{}`", s.name);
        return Some((at("springs", &s.name), what));
    }
    let laws = m.constraints.iter();
    let law = laws
        .into_iter()
        .find(|c| matches!(c.law, Law::Velocity(_)))?;
    let what = format!("velocity constraint `{}`", law.name);
    Some((at("constraints", &law.name), what))
}

impl<S: Mechanical> Step for Composed<S> {
    type Work = ComposedWork<S::Work>;

    step_within!();

    fn work(&self) -> Self::Work {
        let (d, n) = (&self.inner_dims, self.shares.len());
        ComposedWork {
            own: self.inner.work(),
            stages: (0..n).map(|_| self.inner.work()).collect(),
            between: vec![vec![0.0; d.nx]; n - 1],
            inputs: d.inputs(),
            outputs: d.outputs(),
        }
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        self.inner
            .initial(&self.last_stage(start), p, &mut w.own, x)
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let start = self.last_stage(start);
        self.inner.initial_by_parameters(&start, p, &mut w.own)
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let last = self.last_stage(start);
        let mut by = self.inner.initial_by_coordinates(&last, p, &mut w.own)?;
        let mut by_before = by.column_mut(2 * start.coordinates.len());
        by_before *= self.last_share();
        Ok(by)
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        let own = &mut w.own;
        let at_first = self.stage(at, 0);
        let here = KnotPoint {
            at: at_first,
            x,
            u,
            p,
            y: &[],
        };
        self.damped(&here, own)?;
        let mut stats = StepStats::default();
        for i in 0..self.shares.len() {
            let (before, after) = w.between.split_at_mut(i);
            let x = before.last().map_or(x, |x| x);
            let next = after.first_mut().map_or(&mut *next, |x| x);
            let n = self.inner_dims.ny;
            // the same stage of the step before is the guess
            let y = &mut y[n * i..n * (i + 1)];
            let one = self.inner.step(&self.stage(at, i), x, u, p, own, next, y)?;
            stats = stats.then(&one);
        }
        Ok(stats)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        let mut all = true;
        for w in w.stages.iter_mut().chain([&mut w.own]) {
            all &= self.inner.soften(w, kappa);
        }
        all
    }
}

impl<S: Mechanical> Differentiable for Composed<S> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.linearize_stages(at, w)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        for w in w.stages.iter_mut().chain([&mut w.own]) {
            self.inner.smoothing(w, kappa);
        }
    }

    fn kept(&self) -> usize {
        self.shares.len() * self.inner.kept()
    }

    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        let n = self.inner.kept();
        let each = w.stages.iter().enumerate();
        n > 0
            && each.fold(true, |all, (i, w)| {
                self.inner.keep_in(w, &mut kept[n * i..n * (i + 1)]) && all
            })
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError> {
        self.restore_stages(at, kept, w)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        self.push_stages(w, d, out);
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        self.pull_stages(w, adjoint, out);
    }
}

charts_within!(Composed<S: Mechanical>);
