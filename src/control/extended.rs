//! A system with what a problem needs beside it: numbers to decide, a start that is decided, sums along the way, and
//! formulas of quantities.

use super::cost::{Cost, Quadrature, When};
use crate::dynamics::{
    Certificate, Charts, Differentiable, Dims, Frame, Inputs, Knot, KnotPoint, LinearModel,
    Observe, Outputs, Parameter, QuantityId, Rows, SolvedStep, Step, StepError, StepStats, Stored,
    blocks,
};
use nalgebra::DMatrix;

/// A number at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartNumber {
    /// A coordinate, by its place.
    Coordinate(usize),
    /// Its rate.
    Rate(usize),
}

/// A sum of terms over knots: a state that begins at zero,
///
/// ```text
/// s_(k+1) = s_k + sum over terms that hold at k of share_k term(quantity_k)
/// ```
///
/// Terms along the way are multiplied by the interval behind their knot (an integral), those at one knot are taken once
/// (the value that a quantity had there). See [`Cost`] for what a term is; profiles are those of [`Extended::with_profiles`].
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// Name and unit.
    pub name: (String, String),
    /// What is summed; at the last knot nothing is.
    pub terms: Vec<Cost>,
}

/// A function of quantities at a knot: a sum of terms, divided by another where there is one. Nothing by nothing, as a
/// mean where no time has passed, is zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// Name and unit.
    pub name: (String, String),
    /// See [`Cost`]; at which knots they hold is not looked at.
    pub terms: Vec<Cost>,
    /// Added to them.
    pub constant: f64,
    /// What the sum is divided by; nothing where there are none.
    pub over: Vec<Cost>,
}

/// `weight quantity`, as a term.
pub fn times(weight: f64, quantity: QuantityId) -> Cost {
    Cost::linear(quantity, weight, When::End)
}

impl Formula {
    fn value(&self, at: Seen) -> f64 {
        match self.parts(at) {
            (0.0, 0.0) => 0.0,
            (above, below) => above / below,
        }
    }

    fn parts(&self, at: Seen) -> (f64, f64) {
        let sum = |terms: &[Cost]| terms.iter().map(|t| term(t, at).0).sum::<f64>();
        let below = if self.over.is_empty() {
            1.0
        } else {
            sum(&self.over)
        };
        (self.constant + sum(&self.terms), below)
    }

    /// Adds `g` times the derivatives by the quantities.
    fn pull(&self, at: Seen, g: f64, adjoint: &mut [f64]) {
        let (above, below) = self.parts(at);
        if (above, below) == (0.0, 0.0) {
            return;
        }
        for t in &self.terms {
            adjoint[t.quantity.index()] += g / below * term(t, at).1;
        }
        for t in &self.over {
            adjoint[t.quantity.index()] -= g * above / (below * below) * term(t, at).1;
        }
    }
}

/// What terms see: the values of all quantities, the profiles, and the knot.
#[derive(Clone, Copy)]
struct Seen<'a> {
    table: &'a [f64],
    profiles: &'a [Vec<f64>],
    k: usize,
}

/// Value and slope of a term.
fn term(t: &Cost, at: Seen) -> (f64, f64) {
    let varies = t.profile.and_then(|i| at.profiles.get(i)?.get(at.k));
    let target = t.target + varies.unwrap_or(&0.0);
    let (value, slope, _) = t.form.at(t.weight, at.table[t.quantity.index()] - target);
    (value, slope)
}

/// A system extended. Behind its parameters come those that are added, behind its quantities all parameters, then the
/// sums, then the formulas; sums are numbers of the state. See the methods that add them.
#[derive(Clone, Debug)]
pub struct Extended<D> {
    system: D,
    inner: Dims,
    /// Quantities of the system.
    own: usize,
    steps: usize,
    parameters: Vec<Parameter>,
    start: Vec<(StartNumber, usize)>,
    sums: Vec<Sum>,
    formulas: Vec<Formula>,
    profiles: Vec<Vec<f64>>,
    /// Of each formula: the quantities of the system that it needs, ascending, and the formulas up to itself.
    needs: Vec<(Vec<QuantityId>, Vec<usize>)>,
}

/// Memory of [`Extended`].
#[derive(Debug)]
pub struct ExtendedWork<W> {
    system: W,
    inputs: Inputs,
    outputs: Outputs,
    model: LinearModel,
    /// Values of all quantities, as far as they were asked for, and their adjoints.
    table: Vec<f64>,
    adjoint: Vec<f64>,
    /// Quantities of the system that are looked at, and their values or adjoints.
    which: Vec<QuantityId>,
    values: Vec<f64>,
    /// Formulas that are looked at.
    formulas: Vec<usize>,
    /// Derivatives of what each sum grows by: by the system's state, controls, parameters (all), intervals; by unknowns.
    growth: Vec<(Inputs, Vec<f64>)>,
    q: Vec<f64>,
    rates: Vec<f64>,
    free: Vec<f64>,
    joint: Vec<f64>,
    rows: Rows,
}

impl<W> ExtendedWork<W> {
    /// The system's own memory.
    pub fn system(&mut self) -> &mut W {
        &mut self.system
    }
}

impl<D: Observe> Extended<D> {
    /// A system, of which trajectories of so many steps are wanted, as it is.
    pub fn new(system: D, steps: usize) -> Self {
        Self {
            inner: system.dims(),
            own: system.quantities().len(),
            system,
            steps,
            parameters: vec![],
            start: vec![],
            sums: vec![],
            formulas: vec![],
            profiles: vec![],
            needs: vec![],
        }
    }

    /// What varies of the targets of terms, a number a knot each, as [`super::Problem::profiles`].
    #[must_use]
    pub fn with_profiles(self, profiles: Vec<Vec<f64>>) -> Self {
        Self { profiles, ..self }
    }

    /// The system.
    pub fn system(&self) -> &D {
        &self.system
    }

    /// Adds a parameter that the system does not know: a duration, a bound on something that varies. Returns its place
    /// among all parameters. Parameters come before sums, and these before formulas, as they are listed.
    pub fn add_parameter(&mut self, parameter: Parameter) -> usize {
        self.parameters.push(parameter);
        self.inner.np + self.parameters.len() - 1
    }

    /// How many parameters the system has itself: the place of the first that is added.
    pub fn inner_parameters(&self) -> usize {
        self.inner.np
    }

    /// Adds a parameter that is a number at the start; `value` is where it stands. Returns its place among all.
    pub fn add_start(&mut self, number: StartNumber, parameter: Parameter) -> usize {
        let place = self.add_parameter(parameter);
        self.start.push((number, place));
        place
    }

    /// Adds a sum of terms on quantities of the system and parameters. Its quantity is [`Extended::sum`] of the place
    /// returned.
    pub fn add_sum(&mut self, sum: Sum) -> usize {
        self.sums.push(sum);
        self.sums.len() - 1
    }

    /// Adds a formula of quantities listed before it; its quantity is [`Extended::formula`] of the place returned.
    pub fn add_formula(&mut self, formula: Formula) -> usize {
        self.formulas.push(formula);
        self.needs = self.closure();
        self.formulas.len() - 1
    }

    /// The quantity that is a parameter, by its place among all.
    pub fn parameter(&self, place: usize) -> QuantityId {
        QuantityId::new(self.own + place)
    }

    /// The quantity that is a sum.
    pub fn sum(&self, place: usize) -> QuantityId {
        QuantityId::new(self.first_sum() + place)
    }

    /// The quantity that is a formula.
    pub fn formula(&self, place: usize) -> QuantityId {
        QuantityId::new(self.first_sum() + self.sums.len() + place)
    }

    fn first_sum(&self) -> usize {
        self.own + self.inner.np + self.parameters.len()
    }

    fn first_formula(&self) -> usize {
        self.first_sum() + self.sums.len()
    }

    /// What each formula needs.
    fn closure(&self) -> Vec<(Vec<QuantityId>, Vec<usize>)> {
        let mut out: Vec<(Vec<QuantityId>, Vec<usize>)> = vec![];
        for (i, f) in self.formulas.iter().enumerate() {
            let (mut which, mut formulas) = (vec![], vec![i]);
            for q in f.terms.iter().chain(&f.over).map(|t| t.quantity) {
                if q.index() < self.own {
                    which.push(q);
                } else if let Some(other) = q.index().checked_sub(self.first_formula())
                    && let Some((w, f)) = out.get(other)
                {
                    which.extend(w);
                    formulas.extend(f);
                }
            }
            which.sort_unstable();
            which.dedup();
            formulas.sort_unstable();
            formulas.dedup();
            out.push((which, formulas));
        }
        out
    }

    /// Fills the table with what `which` needs.
    fn look(
        &self,
        seen: &KnotPoint,
        which: impl Iterator<Item = QuantityId> + Clone,
        w: &mut ExtendedWork<D::Work>,
    ) -> Result<(), StepError> {
        w.which.clear();
        w.formulas.clear();
        for q in which {
            if q.index() < self.own {
                w.which.push(q);
            } else if let Some(f) = q.index().checked_sub(self.first_formula()) {
                w.which.extend(&self.needs[f].0);
                w.formulas.extend(&self.needs[f].1);
            }
        }
        w.which.sort_unstable();
        w.which.dedup();
        w.formulas.sort_unstable();
        w.formulas.dedup();
        w.values.resize(w.which.len(), 0.0);
        if !w.which.is_empty() {
            let own = self.knot_point(seen);
            self.system
                .observe_in(&own, &w.which, &mut w.system, &mut w.values)?;
        }
        for (q, v) in w.which.iter().zip(&w.values) {
            w.table[q.index()] = *v;
        }
        let known = seen.p.iter().chain(&seen.x[self.inner.nx..]);
        for (t, v) in w.table[self.own..].iter_mut().zip(known) {
            *t = *v;
        }
        for &f in &w.formulas {
            let at = self.seen(&w.table, seen.at.k);
            w.table[self.first_formula() + f] = self.formulas[f].value(at);
        }
        Ok(())
    }

    /// Adjoints of state, controls, parameters and unknowns from those in the table of adjoints, which is cleared.
    fn pull_table(
        &self,
        seen: &KnotPoint,
        w: &mut ExtendedWork<D::Work>,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        self.pull_formulas(seen.at.k, w);
        for (v, q) in w.values.iter_mut().zip(&w.which) {
            *v = std::mem::take(&mut w.adjoint[q.index()]);
        }
        if w.values.iter().any(|v| *v != 0.0) {
            let own = self.knot_point(seen);
            w.inputs.clear();
            self.system
                .observe_pull_in(&own, &w.which, &mut w.system, &w.values, &mut w.inputs, y);
            self.add_inner(&w.inputs, out);
        }
        let sums = out.x[self.inner.nf..].iter_mut();
        for (o, a) in out.p.iter_mut().chain(sums).zip(&mut w.adjoint[self.own..]) {
            *o += std::mem::take(a);
        }
    }

    fn seen<'s>(&'s self, table: &'s [f64], k: usize) -> Seen<'s> {
        Seen {
            table,
            profiles: &self.profiles,
            k,
        }
    }

    /// From adjoints of formulas to those of what they are made of.
    fn pull_formulas(&self, k: usize, w: &mut ExtendedWork<D::Work>) {
        for &f in w.formulas.iter().rev() {
            let g = std::mem::take(&mut w.adjoint[self.first_formula() + f]);
            if g != 0.0 {
                self.formulas[f].pull(self.seen(&w.table, k), g, &mut w.adjoint);
            }
        }
    }

    /// Adds inputs of the system to those of the whole.
    fn add_inner(&self, inner: &Inputs, out: &mut Inputs) {
        let pairs = [
            (&mut out.x, &inner.x),
            (&mut out.u, &inner.u),
            (&mut out.p, &inner.p),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
        }
        out.h_prev += inner.h_prev;
        out.h += inner.h;
    }

    fn knot_point<'s>(&self, seen: &KnotPoint<'s>) -> KnotPoint<'s> {
        KnotPoint {
            x: &seen.x[..self.inner.nx],
            p: &seen.p[..self.inner.np],
            ..*seen
        }
    }

    fn solved<'s>(&self, at: &SolvedStep<'s>) -> SolvedStep<'s> {
        let n = self.inner.nx;
        SolvedStep {
            x: &at.x[..n],
            p: &at.p[..self.inner.np],
            next: &at.next[..n],
            ..*at
        }
    }

    /// The system's own part of a frame.
    fn frame_of<'f>(&self, frame: &'f Frame) -> &'f Frame {
        match frame {
            Frame::Parts(parts) if !self.sums.is_empty() => parts.first().unwrap_or(frame),
            whole => whole,
        }
    }

    /// Terms of sums that hold at a knot.
    fn due(&self, at: &Knot) -> impl Iterator<Item = (usize, &Cost)> + Clone {
        let (k, n) = (at.k, self.steps);
        let all = self.sums.iter().enumerate();
        all.flat_map(|(i, s)| s.terms.iter().map(move |t| (i, t)))
            .filter(move |(_, t)| t.when.holds(k, n))
    }

    /// Derivatives of what the sums grow by in a step.
    fn differentiate_sums(
        &self,
        at: &SolvedStep,
        w: &mut ExtendedWork<D::Work>,
    ) -> Result<(), StepError> {
        let seen = point(at);
        let mut growth = std::mem::take(&mut w.growth);
        for (by, y) in &mut growth {
            by.clear();
            y.fill(0.0);
        }
        for (i, t) in self.due(&at.at) {
            // one after the other: an adjoint follows what was looked at last
            self.look(&seen, std::iter::once(t.quantity), w)?;
            let share = Quadrature::Left.share(t.when, &at.at);
            let (value, slope) = term(t, self.seen(&w.table, at.at.k));
            w.adjoint[t.quantity.index()] = share.weight * slope;
            let (by, y) = &mut growth[i];
            self.pull_table(&seen, w, by, y);
            by.h += share.by_h * value;
        }
        w.growth = growth;
        Ok(())
    }

    /// Coordinates and rates with those that parameters decide.
    fn decided(&self, q: &[f64], rates: &[f64], p: &[f64], w: &mut ExtendedWork<D::Work>) {
        w.q.clear();
        w.q.extend(q);
        w.rates.clear();
        w.rates.extend(rates);
        for &(number, place) in &self.start {
            let slot = match number {
                StartNumber::Coordinate(i) => w.q.get_mut(i),
                StartNumber::Rate(i) => w.rates.get_mut(i),
            };
            if let Some(slot) = slot {
                *slot = p[place];
            }
        }
    }
}

fn point<'a>(at: &SolvedStep<'a>) -> KnotPoint<'a> {
    KnotPoint {
        at: at.at,
        x: at.x,
        u: at.u,
        p: at.p,
        y: at.y,
    }
}

impl<D: Observe> Step for Extended<D> {
    type Work = ExtendedWork<D::Work>;

    fn dims(&self) -> Dims {
        let (d, n) = (self.inner, self.sums.len());
        Dims {
            nx: d.nx + n,
            nf: d.nf + n,
            ndx: d.ndx + n,
            np: d.np + self.parameters.len(),
            ..d
        }
    }

    fn work(&self) -> Self::Work {
        let d = self.inner;
        let all = self.first_formula() + self.formulas.len();
        let by = Inputs {
            p: vec![0.0; self.dims().np],
            x: vec![0.0; self.dims().nf],
            ..d.inputs()
        };
        ExtendedWork {
            system: self.system.work(),
            inputs: d.inputs(),
            outputs: d.outputs(),
            model: LinearModel::new(&d),
            table: vec![0.0; all],
            adjoint: vec![0.0; all],
            which: Vec::with_capacity(self.own),
            values: Vec::with_capacity(self.own),
            formulas: Vec::with_capacity(self.formulas.len()),
            growth: vec![(by, vec![0.0; d.ny]); self.sums.len()],
            q: vec![],
            rates: vec![],
            free: vec![0.0; d.nf],
            joint: vec![0.0; d.ndx],
            rows: Rows::new(&d, 0),
        }
    }

    fn controls(&self) -> Vec<(String, String)> {
        self.system.controls()
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut all = self.system.parameters();
        all.extend(self.parameters.iter().cloned());
        all
    }

    fn initial(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let (own, sums) = x.split_at_mut(self.inner.nx);
        sums.fill(0.0);
        self.decided(q, rates, p, w);
        let p = &p[..self.inner.np];
        self.system.initial(&w.q, &w.rates, p, &mut w.system, own)
    }

    fn initial_by_parameters(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.decided(q, rates, p, w);
        let d = self.dims();
        let p = &p[..self.inner.np];
        let (q, rates, work) = (&w.q, &w.rates, &mut w.system);
        let own = self.system.initial_by_parameters(q, rates, p, work)?;
        let mut out = own.resize(d.nf, d.np, 0.0);
        if !self.start.is_empty() {
            let by = self.system.initial_by_coordinates(q, rates, p, work)?;
            for &(number, place) in &self.start {
                let column = match number {
                    StartNumber::Coordinate(i) => i,
                    StartNumber::Rate(i) => q.len() + i,
                };
                let to = &mut out.column_mut(place);
                to.rows_mut(0, self.inner.nf).copy_from(&by.column(column));
            }
        }
        Ok(out)
    }

    fn initial_by_coordinates(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.decided(q, rates, p, w);
        let (p, work) = (&p[..self.inner.np], &mut w.system);
        let own = self
            .system
            .initial_by_coordinates(&w.q, &w.rates, p, work)?;
        let mut out = own.resize_vertically(self.dims().nf, 0.0);
        for &(number, _) in &self.start {
            let column = match number {
                StartNumber::Coordinate(i) => i,
                StartNumber::Rate(i) => q.len() + i,
            };
            out.column_mut(column).fill(0.0);
        }
        Ok(out)
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
        let n = self.inner.nx;
        let own = &p[..self.inner.np];
        let stats = self
            .system
            .step(at, &x[..n], u, own, &mut w.system, &mut next[..n], y)?;
        next[n..].copy_from_slice(&x[n..]);
        if !self.sums.is_empty() {
            let seen = KnotPoint {
                at: *at,
                x,
                u,
                p,
                y,
            };
            let terms = self.due(at);
            self.look(&seen, terms.clone().map(|(_, t)| t.quantity), w)?;
            for (i, t) in terms {
                let share = Quadrature::Left.share(t.when, at).weight;
                next[n + i] += share * term(t, self.seen(&w.table, at.k)).0;
            }
        }
        Ok(stats)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        self.system.soften(&mut w.system, kappa)
    }
}

impl<D: Observe> Differentiable for Extended<D> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.differentiate_sums(at, w)?;
        self.system.linearize_in(&self.solved(at), &mut w.system)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        self.system.smoothing(&mut w.system, kappa);
    }

    fn kept(&self) -> usize {
        self.system.kept()
    }

    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        self.system.keep_in(&w.system, kept)
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError> {
        self.differentiate_sums(at, w)?;
        self.system
            .restore_in(&self.solved(at), kept, &mut w.system)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        let n = self.inner.nf;
        let own = &mut w.inputs;
        own.x.copy_from_slice(&d.x[..n]);
        own.u.copy_from_slice(&d.u);
        own.p.copy_from_slice(&d.p[..self.inner.np]);
        (own.h_prev, own.h) = (d.h_prev, d.h);
        self.system.push_in(&mut w.system, own, &mut w.outputs);
        out.x[..n].copy_from_slice(&w.outputs.x);
        out.y.copy_from_slice(&w.outputs.y);
        for (i, (by, y)) in w.growth.iter().enumerate() {
            let pairs = [
                (&by.x, &d.x),
                (&by.u, &d.u),
                (&by.p, &d.p),
                (y, &w.outputs.y),
            ];
            let products = pairs.iter().map(|(a, b)| super::dot(a.iter(), b));
            out.x[n + i] = d.x[n + i] + products.sum::<f64>() + by.h_prev * d.h_prev + by.h * d.h;
        }
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        let n = self.inner.nf;
        w.outputs.x.copy_from_slice(&adjoint.x[..n]);
        w.outputs.y.copy_from_slice(&adjoint.y);
        for ((_, y), a) in w.growth.iter().zip(&adjoint.x[n..]) {
            super::add(&mut w.outputs.y, *a, y.iter());
        }
        w.inputs.clear();
        self.system
            .pull_in(&mut w.system, &w.outputs, &mut w.inputs);
        out.clear();
        self.add_inner(&w.inputs, out);
        for (i, ((by, _), a)) in w.growth.iter().zip(&adjoint.x[n..]).enumerate() {
            super::add(&mut out.x, *a, by.x.iter());
            super::add(&mut out.u, *a, by.u.iter());
            super::add(&mut out.p, *a, by.p.iter());
            out.h_prev += a * by.h_prev;
            out.h += a * by.h;
            out.x[n + i] += a;
        }
    }
}

impl<D: Observe> Charts for Extended<D> {
    fn frame(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
    ) -> Result<Frame, StepError> {
        let previous = previous.map(|f| self.frame_of(f));
        let (x, p) = (&x[..self.inner.nx], &p[..self.inner.np]);
        let own = self.system.frame(at, x, p, previous, &mut w.system)?;
        Ok(match self.sums.len() {
            0 => own,
            n => Frame::Parts(vec![own, Frame::Identity(n)]),
        })
    }

    fn has_identity_frames(&self) -> bool {
        self.system.has_identity_frames()
    }

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
        let i = self.inner;
        let (own, sums) = out.split_at_mut(i.nx);
        for ((o, x), d) in sums.iter_mut().zip(&x[i.nx..]).zip(&d[i.ndx..]) {
            *o = x + d;
        }
        let (x, p, d) = (&x[..i.nx], &p[..i.np], &d[..i.ndx]);
        let frame = self.frame_of(frame);
        self.system.retract(at, x, p, frame, d, &mut w.system, own)
    }

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
        let i = self.inner;
        let (own, sums) = out.split_at_mut(i.ndx);
        for ((o, x), to) in sums.iter_mut().zip(&x[i.nx..]).zip(&to[i.nx..]) {
            *o = to - x;
        }
        let (x, p, to) = (&x[..i.nx], &p[..i.np], &to[..i.nx]);
        let frame = self.frame_of(frame);
        self.system
            .difference(at, x, p, frame, to, &mut w.system, own);
    }

    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        let (own, sums) = out.split_at_mut(self.inner.nf);
        sums.fill(0.0);
        self.system.by_interval(at, &x[..self.inner.nx], own);
    }

    fn difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let i = self.inner;
        let (x, p, to) = (&x[..i.nx], &p[..i.np], &to[..i.nx]);
        let frame = self.frame_of(frame);
        let own = self
            .system
            .difference_by(at, x, p, frame, to, &mut w.system)?;
        let n = self.sums.len();
        Ok(blocks([own, DMatrix::identity(n, n)].into_iter()))
    }

    /// The system's; the rows of the sums are adjoints of what they grow by.
    fn linear_model_in(&self, w: &mut Self::Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        let d = self.inner;
        let (from, to) = (self.frame_of(from), self.frame_of(to));
        self.system
            .linear_model_in(&mut w.system, from, to, &mut w.model);
        for m in [&mut out.a, &mut out.b, &mut out.p] {
            m.fill(0.0);
        }
        out.a.view_mut((0, 0), (d.ndx, d.ndx)).copy_from(&w.model.a);
        out.b.view_mut((0, 0), (d.ndx, d.nu)).copy_from(&w.model.b);
        out.p.view_mut((0, 0), (d.ndx, d.np)).copy_from(&w.model.p);
        for (i, (by, y)) in w.growth.iter().enumerate() {
            w.inputs.clear();
            if y.iter().any(|y| *y != 0.0) {
                w.outputs.x.fill(0.0);
                w.outputs.y.copy_from_slice(y);
                self.system
                    .pull_in(&mut w.system, &w.outputs, &mut w.inputs);
            }
            let row = d.ndx + i;
            for ((f, own), through) in w.free.iter_mut().zip(&by.x).zip(&w.inputs.x) {
                *f = own + through;
            }
            from.embed_transposed(&mut w.free, &mut w.joint);
            for (j, v) in w.joint.iter().enumerate() {
                out.a[(row, j)] = *v;
            }
            out.a[(row, row)] += 1.0;
            for (j, (own, through)) in by.u.iter().zip(&w.inputs.u).enumerate() {
                out.b[(row, j)] = own + through;
            }
            for (j, own) in by.p.iter().enumerate() {
                out.p[(row, j)] = own + w.inputs.p.get(j).copied().unwrap_or(0.0);
            }
        }
    }
}

impl<D: Observe> Observe for Extended<D> {
    fn quantities(&self) -> Vec<(String, String)> {
        let parameters = self.parameters().into_iter().map(|p| (p.name, p.unit));
        let sums = self.sums.iter().map(|s| s.name.clone());
        let formulas = self.formulas.iter().map(|f| f.name.clone());
        let mut all = self.system.quantities();
        all.extend(parameters.chain(sums).chain(formulas));
        all
    }

    fn needs_unknowns(&self, quantity: QuantityId) -> bool {
        let q = quantity.index();
        match q.checked_sub(self.first_formula()) {
            Some(f) => {
                let mut needs = self.needs[f].0.iter();
                needs.any(|q| self.system.needs_unknowns(*q))
            }
            None => q < self.own && self.system.needs_unknowns(quantity),
        }
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        self.look(seen, which.iter().copied(), w)?;
        for (o, q) in out.iter_mut().zip(which) {
            *o = w.table[q.index()];
        }
        Ok(())
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
        for (q, a) in which.iter().zip(adjoint) {
            w.adjoint[q.index()] += a;
        }
        self.pull_table(seen, w, out, y);
    }

    /// Rows of the system's quantities once, and of the others what follows from them.
    fn observe_rows_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut Rows,
    ) {
        if w.rows.x.nrows() != w.which.len() {
            w.rows = Rows::new(&self.inner, w.which.len());
        }
        if !w.which.is_empty() {
            let own = self.knot_point(seen);
            self.system
                .observe_rows_in(&own, &w.which, &mut w.system, &mut w.rows);
        }
        for m in [&mut out.x, &mut out.u, &mut out.p, &mut out.y] {
            m.fill(0.0);
        }
        out.h_prev.fill(0.0);
        out.h.fill(0.0);
        for (i, q) in which.iter().enumerate() {
            w.adjoint[q.index()] = 1.0;
            self.pull_formulas(seen.at.k, w);
            for (k, q) in w.which.iter().enumerate() {
                let a = std::mem::take(&mut w.adjoint[q.index()]);
                if a == 0.0 {
                    continue;
                }
                for (to, from) in [
                    (&mut out.x, &w.rows.x),
                    (&mut out.u, &w.rows.u),
                    (&mut out.p, &w.rows.p),
                    (&mut out.y, &w.rows.y),
                ] {
                    for j in 0..from.ncols().min(to.ncols()) {
                        to[(i, j)] += a * from[(k, j)];
                    }
                }
                out.h_prev[i] += a * w.rows.h_prev[k];
                out.h[i] += a * w.rows.h[k];
            }
            let np = out.p.ncols();
            for (j, a) in w.adjoint[self.own..self.first_formula()]
                .iter_mut()
                .enumerate()
            {
                let a = std::mem::take(a);
                match j.checked_sub(np) {
                    None => out.p[(i, j)] += a,
                    Some(sum) => out.x[(i, self.inner.nf + sum)] += a,
                }
            }
        }
    }
}

impl<D: Observe + Stored> Stored for Extended<D> {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        let d = self.inner;
        stored[d.nx..].copy_from_slice(&free[d.nf..]);
        self.system
            .stored_push(&x[..d.nx], &free[..d.nf], &mut stored[..d.nx]);
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        let d = self.inner;
        stored[d.nx..].copy_from_slice(&free[d.nf..]);
        self.system
            .stored_pull(&x[..d.nx], &free[..d.nf], &mut stored[..d.nx]);
    }
}
