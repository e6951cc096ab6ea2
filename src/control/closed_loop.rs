//! A system under a policy, which is a system again. Its parameters are those of the system followed by those of the
//! policy (gains); its controls are those that the policy leaves open, such as a feed-forward part. Every optimizer
//! takes it unchanged.
//!
//! The loop owns the system, which stays within reach as [`ClosedLoop::dynamics`]. Bounds of a problem, and so those of
//! actuators, are on the open controls alone: what a policy asks for is not clamped, as that has no derivative where it
//! acts. Constrain the system's controls, which are quantities, or let the policy saturate smoothly.

mod equations;

use super::policy::{Planned, Policy, PolicyRows};
use super::{add, dot};
use crate::dynamics::{
    Certificate, Charts, Differentiable, Dims, Frame, Inputs, Knot, KnotPoint, LinearModel,
    Observe, Outputs, Parameter, Part, QuantityId, SolvedStep, Start, Step, StepError, StepFailure,
    StepStats, Stored,
};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;

/// A system under a policy.
#[derive(Clone, Debug)]
pub struct ClosedLoop<D, P> {
    /// The system.
    pub dynamics: D,
    /// The policy.
    pub policy: P,
    inner: Dims,
    open: usize,
    own: usize,
    compares: usize,
}

/// Memory of a closed loop.
pub struct ClosedLoopWork<W> {
    inner: W,
    /// No control: what the policy sees does not depend on it.
    idle: Vec<f64>,
    /// Quantities, then the change of the joint chart from a plan.
    seen: Vec<f64>,
    /// Derivative of that change by the state.
    by_state: Option<DMatrix<f64>>,
    u: Vec<f64>,
    rows: PolicyRows,
    /// Derivatives of each control by the system's state, parameters and interval before.
    chain: Vec<Inputs>,
    inputs: Inputs,
    part: Part,
    /// The system's own model, the controls' derivatives by the joint chart, and one row of them in both charts.
    model: LinearModel,
    feedback: DMatrix<f64>,
    row: Vec<f64>,
    joint: Vec<f64>,
}

impl<W> ClosedLoopWork<W> {
    /// The system's own memory.
    pub fn system(&mut self) -> &mut W {
        &mut self.inner
    }
}

impl<D: Observe, P: Policy> ClosedLoop<D, P> {
    /// Closes the loop around a system, which it takes.
    pub fn new(dynamics: D, policy: P) -> Self {
        Self {
            inner: dynamics.dims(),
            open: policy.open(),
            own: policy.parameters().len(),
            compares: policy.compares(),
            dynamics,
            policy,
        }
    }

    /// The controls of the system at a knot, into `out`.
    ///
    /// # Errors
    /// As the policy fails, or what it sees cannot be observed.
    pub fn controls_at(
        &self,
        seen: &KnotPoint,
        w: &mut ClosedLoopWork<D::Work>,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.act(seen, w)?;
        out.copy_from_slice(&w.u);
        Ok(())
    }

    /// The trajectory of the system alone, under the controls that the policy gave it, that at the last knot included: for
    /// energies, figures and files, which know no policies.
    ///
    /// # Errors
    /// As [`ClosedLoop::controls_at`], and when the trajectory is of another system.
    pub fn acted(
        &self,
        t: &Trajectory,
        w: &mut ClosedLoopWork<D::Work>,
    ) -> Result<Trajectory, StepError> {
        t.fits(self)?;
        let (n, nu) = (t.steps() + 1, self.inner.nu);
        let mut controls = vec![0.0; n * nu];
        let mut at = t.knot(0);
        for k in 0..n {
            self.controls_at(&t.knot_point(&at), w, &mut controls[k * nu..(k + 1) * nu])?;
            at = t.knot_after(&at);
        }
        let mut out = t.of_system(&self.dynamics);
        out.set_controls(controls, nu);
        Ok(out)
    }

    /// The system's parameters, and the policy's.
    fn split<'a>(&self, p: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        p.split_at(self.inner.np)
    }

    /// What the system sees under controls of its own.
    fn within<'a>(&self, seen: &KnotPoint<'a>, u: &'a [f64], y: &'a [f64]) -> KnotPoint<'a> {
        let p = self.split(seen.p).0;
        KnotPoint { u, p, y, ..*seen }
    }

    /// The policy's plan at a knot, if it has one.
    fn planned(&self, at: &Knot) -> Result<Option<Planned<'_>>, StepError> {
        let d = &self.inner;
        let plan = self.policy.planned(at).filter(|_| self.compares > 0);
        let fits = |p: &Planned| {
            let sizes = (p.x.len(), p.u.len(), p.p.len(), self.compares);
            sizes == (d.nx, d.nu, d.np, d.ndx)
        };
        if plan.as_ref().is_none_or(fits) {
            return Ok(plan);
        }
        Err(StepError {
            failure: StepFailure::Frame,
            element: "policy".into(),
            time: at.t,
            residual: f64::NAN,
            message: "its plan is one of another system; give one of this system".into(),
        })
    }

    /// Computes the system's controls.
    fn act(&self, seen: &KnotPoint, w: &mut ClosedLoopWork<D::Work>) -> Result<(), StepError> {
        if self.policy.is_open() {
            w.u.copy_from_slice(seen.u);
            return Ok(());
        }
        let own = self.split(seen.p).1;
        let before = self.within(seen, &w.idle, &[]);
        let (quantities, change) = w.seen.split_at_mut(self.policy.sees().len());
        match self.planned(&seen.at)? {
            Some(q) => {
                let (w, to) = (&mut w.inner, seen.x);
                self.dynamics
                    .difference(&q.at, q.x, q.p, q.frame, to, w, change);
            }
            None => change.fill(0.0),
        }
        // last: an adjoint may follow
        self.dynamics
            .observe_in(&before, self.policy.sees(), &mut w.inner, quantities)?;
        self.policy.act(&seen.at, &w.seen, seen.u, own, &mut w.u)
    }

    /// Computes them with their derivatives. Those of a policy that is none are there from the beginning.
    fn differentiate(
        &self,
        seen: &KnotPoint,
        w: &mut ClosedLoopWork<D::Work>,
    ) -> Result<(), StepError> {
        if self.policy.is_open() {
            return self.act(seen, w);
        }
        let dynamics = &self.dynamics;
        let plan = self.planned(&seen.at)?;
        let by =
            plan.map(|q| dynamics.difference_by(&q.at, q.x, q.p, q.frame, seen.x, &mut w.inner));
        w.by_state = by.transpose()?;
        self.act(seen, w)?;
        let own = self.split(seen.p).1;
        let rows = &mut w.rows;
        for m in [&mut rows.seen, &mut rows.open, &mut rows.own] {
            m.fill(0.0);
        }
        self.policy
            .differentiate(&seen.at, &w.seen, seen.u, own, rows)?;
        let before = self.within(seen, &w.idle, &[]);
        let which = self.policy.sees();
        for (i, chain) in w.chain.iter_mut().enumerate() {
            chain.clear();
            // the values seen have served; their place holds the row
            w.seen
                .iter_mut()
                .zip(rows.seen.row(i).iter())
                .for_each(|(s, r)| *s = *r);
            let (quantities, change) = w.seen.split_at(which.len());
            self.dynamics
                .observe_pull_in(&before, which, &mut w.inner, quantities, chain, &mut []);
            for (j, by) in w.by_state.iter().flat_map(DMatrix::column_iter).enumerate() {
                chain.x[j] += dot(by.iter(), change);
            }
        }
        Ok(())
    }

    /// Adds what comes through the policy to adjoints of the inputs.
    fn pull_policy(&self, w: &ClosedLoopWork<D::Work>, out: &mut Inputs) {
        let (rows, np) = (&w.rows, self.inner.np);
        if self.policy.is_open() {
            add(&mut out.u, 1.0, w.inputs.u.iter());
            return;
        }
        for (i, g) in w.inputs.u.iter().enumerate() {
            let chain = &w.chain[i];
            add(&mut out.x, *g, chain.x.iter());
            add(&mut out.p[..np], *g, chain.p.iter());
            add(&mut out.p[np..], *g, rows.own.row(i).iter());
            add(&mut out.u, *g, rows.open.row(i).iter());
            out.h_prev += g * chain.h_prev;
        }
    }
}

/// What a policy and a step see at the knot.
fn at_knot<'a>(at: &Knot, x: &'a [f64], u: &'a [f64], p: &'a [f64]) -> KnotPoint<'a> {
    KnotPoint {
        at: *at,
        x,
        u,
        p,
        y: &[],
    }
}

/// Methods that are the system's, which takes its own of the parameters and of the memory.
macro_rules! of_system {
    ($($name:ident($($a:ident: $ta:ty),*; p $(, $b:ident: $tb:ty)*; w $(, $c:ident: $tc:ty)?) -> $to:ty;)*) => {$(
        fn $name(
            &self,
            $($a: $ta,)*
            p: &[f64],
            $($b: $tb,)*
            w: &mut Self::Work,
            $($c: $tc,)?
        ) -> $to {
            let p = self.split(p).0;
            self.dynamics.$name($($a,)* p, $($b,)* &mut w.inner, $($c)?)
        }
    )*};
}

impl<D: Observe, P: Policy> Step for ClosedLoop<D, P> {
    type Work = ClosedLoopWork<D::Work>;

    fn dims(&self) -> Dims {
        Dims {
            nu: self.open,
            np: self.inner.np + self.own,
            ..self.inner
        }
    }

    fn work(&self) -> Self::Work {
        let (d, own) = (self.inner, self.own);
        let open = match self.policy.is_open() {
            true => DMatrix::identity(d.nu, self.open),
            false => DMatrix::zeros(d.nu, self.open),
        };
        ClosedLoopWork {
            inner: self.dynamics.work(),
            idle: vec![0.0; d.nu],
            seen: vec![0.0; self.policy.sees().len() + self.compares],
            by_state: None,
            u: vec![0.0; d.nu],
            rows: PolicyRows {
                seen: DMatrix::zeros(d.nu, self.policy.sees().len() + self.compares),
                open,
                own: DMatrix::zeros(d.nu, own),
            },
            chain: vec![d.inputs(); d.nu],
            inputs: d.inputs(),
            part: Part::default(),
            model: LinearModel::new(&d),
            feedback: DMatrix::zeros(d.nu, d.ndx),
            row: vec![0.0; d.nf],
            joint: vec![0.0; d.ndx],
        }
    }

    fn controls(&self) -> Vec<(String, String)> {
        let names = |i| (format!("open {i}"), "1".into());
        match self.open {
            all if all == self.inner.nu => self.dynamics.controls(),
            some => (0..some).map(names).collect(),
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut out = self.dynamics.parameters();
        out.extend(self.policy.parameters());
        out
    }

    of_system! {
        initial(start: &Start; p; w, x: &mut [f64]) -> Result<(), StepError>;
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let p = self.split(p).0;
        let by = self
            .dynamics
            .initial_by_parameters(start, p, &mut w.inner)?;
        Ok(by.resize_horizontally(self.inner.np + self.own, 0.0))
    }

    of_system! {
        initial_by_coordinates(start: &Start; p; w) -> Result<DMatrix<f64>, StepError>;
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
        self.act(&at_knot(at, x, u, p), w)?;
        let p = self.split(p).0;
        self.dynamics.step(at, x, &w.u, p, &mut w.inner, next, y)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        self.dynamics.soften(&mut w.inner, kappa)
    }
}

impl<D: Observe, P: Policy> ClosedLoop<D, P> {
    /// The system's own part of a step, under its own controls.
    fn solved<'a>(&self, at: &SolvedStep<'a>, u: &'a [f64]) -> SolvedStep<'a> {
        let p = self.split(at.p).0;
        SolvedStep { u, p, ..*at }
    }
}

/// What of a closed loop's linearization is kept behind the system's: its controls and their derivatives.
impl<W> ClosedLoopWork<W> {
    fn own(&self) -> impl Iterator<Item = &f64> {
        fn by(c: &Inputs) -> impl Iterator<Item = &f64> {
            c.x.iter().chain(&c.p).chain([&c.h_prev])
        }
        let rows = self.rows.open.iter().chain(&self.rows.own);
        self.u
            .iter()
            .chain(rows)
            .chain(self.chain.iter().flat_map(by))
    }

    fn own_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        fn by(c: &mut Inputs) -> impl Iterator<Item = &mut f64> {
            c.x.iter_mut().chain(&mut c.p).chain([&mut c.h_prev])
        }
        let rows = self.rows.open.iter_mut().chain(&mut self.rows.own);
        let by = self.chain.iter_mut().flat_map(by);
        self.u.iter_mut().chain(rows).chain(by)
    }
}

impl<D: Observe, P: Policy> Differentiable for ClosedLoop<D, P> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.differentiate(&at_knot(&at.at, at.x, at.u, at.p), w)?;
        let solved = self.solved(at, &w.u);
        self.dynamics.linearize_in(&solved, &mut w.inner)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        self.dynamics.smoothing(&mut w.inner, kappa);
    }

    fn kept(&self) -> usize {
        let d = &self.inner;
        match self.dynamics.kept() {
            0 => 0,
            n => n + d.nu * (1 + self.open + self.own + d.nf + d.np + 1),
        }
    }

    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        let (system, own) = kept.split_at_mut(self.dynamics.kept());
        for (kept, v) in own.iter_mut().zip(w.own()) {
            *kept = *v;
        }
        self.dynamics.keep_in(&w.inner, system)
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError> {
        let (system, own) = kept.split_at(self.dynamics.kept());
        for (v, kept) in w.own_mut().zip(own) {
            *v = *kept;
        }
        let solved = self.solved(at, &w.u);
        self.dynamics.restore_in(&solved, system, &mut w.inner)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        let (rows, inner, np) = (&w.rows, &mut w.inputs, self.inner.np);
        inner.x.copy_from_slice(&d.x);
        inner.p.copy_from_slice(&d.p[..np]);
        (inner.h_prev, inner.h) = (d.h_prev, d.h);
        for (i, u) in inner.u.iter_mut().enumerate() {
            let chain = &w.chain[i];
            *u = dot(chain.x.iter(), &d.x)
                + dot(chain.p.iter(), &d.p[..np])
                + dot(rows.own.row(i).iter(), &d.p[np..])
                + dot(rows.open.row(i).iter(), &d.u)
                + chain.h_prev * d.h_prev;
        }
        self.dynamics.push_in(&mut w.inner, &w.inputs, out);
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        self.dynamics.pull_in(&mut w.inner, adjoint, &mut w.inputs);
        let inner = &w.inputs;
        out.clear();
        out.x.copy_from_slice(&inner.x);
        out.p[..self.inner.np].copy_from_slice(&inner.p);
        (out.h_prev, out.h) = (inner.h_prev, inner.h);
        self.pull_policy(w, out);
    }
}

impl<D: Observe, P: Policy> Charts for ClosedLoop<D, P> {
    fn has_identity_frames(&self) -> bool {
        self.dynamics.has_identity_frames()
    }

    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        self.dynamics.by_interval(at, x, out);
    }

    of_system! {
        frame_in(at: &Knot, x: &[f64]; p, previous: Option<&Frame>; w, out: &mut Frame) -> Result<(), StepError>;
        retract(at: &Knot, x: &[f64]; p, frame: &Frame, d: &[f64]; w, out: &mut [f64]) -> Result<(), StepError>;
        difference(at: &Knot, x: &[f64]; p, frame: &Frame, to: &[f64]; w, out: &mut [f64]) -> ();
        difference_by(at: &Knot, x: &[f64]; p, frame: &Frame, to: &[f64]; w) -> Result<DMatrix<f64>, StepError>;
    }

    /// The system's, with what comes through its controls.
    fn linear_model_in(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        let model = &mut w.model;
        self.dynamics.linear_model_in(&mut w.inner, from, to, model);
        let np = self.inner.np;
        out.p.columns_mut(0, np).copy_from(&model.p);
        for (i, chain) in w.chain.iter().enumerate() {
            w.row.copy_from_slice(&chain.x);
            from.embed_transposed(&mut w.row, &mut w.joint);
            let mut row = w.feedback.row_mut(i);
            row.iter_mut().zip(&w.joint).for_each(|(f, j)| *f = *j);
            let by = model.b.column(i);
            for (j, d) in chain.p.iter().enumerate() {
                out.p.column_mut(j).axpy(*d, &by, 1.0);
            }
        }
        out.a.copy_from(&model.a);
        out.a.gemm(1.0, &model.b, &w.feedback, 1.0);
        out.b.gemm(1.0, &model.b, &w.rows.open, 0.0);
        out.p
            .columns_mut(np, self.own)
            .gemm(1.0, &model.b, &w.rows.own, 0.0);
    }
}

impl<D: Observe, P: Policy> Observe for ClosedLoop<D, P> {
    fn quantities(&self) -> Vec<(String, String)> {
        self.dynamics.quantities()
    }

    fn needs_unknowns(&self, quantity: QuantityId) -> bool {
        self.dynamics.needs_unknowns(quantity)
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        // the derivatives now: an adjoint may be asked for next
        self.differentiate(seen, w)?;
        let inner = self.within(seen, &w.u, seen.y);
        self.dynamics.observe_in(&inner, which, &mut w.inner, out)
    }

    fn observe_pull_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        let inner = self.within(seen, &w.u, seen.y);
        w.inputs.clear();
        self.dynamics
            .observe_pull_in(&inner, which, &mut w.inner, adjoint, &mut w.inputs, y);
        add(&mut out.x, 1.0, w.inputs.x.iter());
        add(&mut out.p, 1.0, w.inputs.p.iter());
        out.h_prev += w.inputs.h_prev;
        out.h += w.inputs.h;
        self.pull_policy(w, out);
    }
}

impl<D: Observe + Stored, P: Policy> Stored for ClosedLoop<D, P> {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        self.dynamics.stored_push(x, free, stored);
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        self.dynamics.stored_pull(x, free, stored);
    }
}
