//! A system with what a problem needs beside it: numbers to decide, a start that is decided, sums along the way, and
//! formulas of quantities.

mod equations;
mod roles;

use super::cost::{Cost, Quadrature, Share, When};
use crate::dynamics::{
    Dims, Frame, Inputs, Knot, KnotPoint, LinearModel, Observe, Outputs, Parameter, Part,
    QuantityId, Rows, SolvedStep, Start, StepError,
};

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
/// Terms along the way are multiplied by the share of their knot (an integral), those at one knot are taken once
/// (the value that a quantity had there). See [`Cost`] for what a term is; profiles are those of [`Extended::with_profiles`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// Name and unit.
    pub name: (String, String),
    /// What is summed; at the last knot nothing is. A trapezoidal term still lacks half of the interval before the knot at every
    /// knot: that half is [`Formula::pending`].
    pub terms: Vec<Cost>,
}

/// A function of quantities at a knot: a sum of terms, divided by another where there is one. Nothing by nothing, as a
/// mean where no time has passed, is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Formula {
    /// Name and unit.
    pub name: (String, String),
    /// See [`Cost`]; at which knots they hold is not looked at.
    pub terms: Vec<Cost>,
    /// Added to them.
    pub constant: f64,
    /// Added as well, each times half the interval before the knot where it holds along the way, a range up to the knot
    /// behind its last: beside a trapezoidal [`Sum`] of the same terms what makes it the integral up to the knot.
    pub pending: Vec<Cost>,
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
        let due = self.pending.iter().filter(|t| is_pending(t, at.at.k));
        let half: f64 = due.map(|t| term(t, at).0).sum();
        let above = self.constant + sum(&self.terms) + 0.5 * at.at.h_prev * half;
        (above, below)
    }

    /// Adds `g` times the derivatives by the quantities, and by the interval before the knot.
    fn pull(&self, at: Seen, g: f64, adjoint: &mut [f64], by_h_prev: &mut f64) {
        let (above, below) = self.parts(at);
        if (above, below) == (0.0, 0.0) {
            return;
        }
        for t in self.pending.iter().filter(|t| is_pending(t, at.at.k)) {
            let (value, slope) = term(t, at);
            *by_h_prev += 0.5 * g / below * value;
            adjoint[t.quantity.index()] += 0.5 * at.at.h_prev * g / below * slope;
        }
        for t in &self.terms {
            adjoint[t.quantity.index()] += g / below * term(t, at).1;
        }
        for t in &self.over {
            adjoint[t.quantity.index()] -= g * above / (below * below) * term(t, at).1;
        }
    }
}

/// Does half of the interval before knot `k` count for a term?
fn is_pending(term: &Cost, k: usize) -> bool {
    match term.when {
        When::Running => k > 0,
        When::Range(first, last) if term.quadrature == Quadrature::Open => first < k && k <= last,
        When::Range(first, last) => first < k && k <= last + 1,
        When::End | When::Knot(_) => false,
    }
}

/// What terms see: the values of all quantities, the profiles, and the knot.
#[derive(Clone, Copy)]
struct Seen<'a> {
    table: &'a [f64],
    profiles: &'a [Vec<f64>],
    at: Knot,
}

/// What a formula needs of the system, and where: at every knot unless it is [`Formula::pending`]; and the formulas up to
/// itself, ascending.
#[derive(Clone, Debug, Default)]
struct Needs {
    which: Vec<(QuantityId, Option<Cost>)>,
    formulas: Vec<usize>,
}

/// Value and slope of a term.
fn term(t: &Cost, at: Seen) -> (f64, f64) {
    let varies = t.profile.and_then(|i| at.profiles.get(i)?.get(at.at.k));
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
    /// Of each formula.
    needs: Vec<Needs>,
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
    /// Formulas that are looked at, and what their adjoints come to by the interval before the knot.
    formulas: Vec<usize>,
    by_h_prev: f64,
    /// Derivatives of what each sum grows by: by the system's state, controls, parameters (all), intervals; by unknowns.
    growth: Vec<(Inputs, Vec<f64>)>,
    q: Vec<f64>,
    rates: Vec<f64>,
    free: Vec<f64>,
    joint: Vec<f64>,
    rows: Rows,
    part: Part,
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

    /// Lets a number at the start be that of a parameter that is there, by its place among all: a gain that a policy begins
    /// from, or another number of the start. Several may be the same.
    pub fn tie_start(&mut self, number: StartNumber, place: usize) {
        self.start.push((number, place));
    }

    /// Adds a sum of terms on any quantities, of sums the values up to the knot. Its quantity is [`Extended::sum`] of the place
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
    fn closure(&self) -> Vec<Needs> {
        let mut out: Vec<Needs> = vec![];
        for (i, f) in self.formulas.iter().enumerate() {
            let mut own = Needs::default();
            let always = f.terms.iter().chain(&f.over).map(|t| (t.quantity, None));
            let pending = f.pending.iter().map(|t| (t.quantity, Some(*t)));
            for (q, when) in always.chain(pending) {
                if q.index() < self.own {
                    own.which.push((q, when));
                } else if let Some(other) = q.index().checked_sub(self.first_formula())
                    && let Some(other) = out.get(other)
                {
                    let theirs = other.which.iter().map(|&(q, own)| (q, own.or(when)));
                    own.which.extend(theirs);
                    own.formulas.extend(&other.formulas);
                }
            }
            own.formulas.push(i);
            own.formulas.sort_unstable();
            own.formulas.dedup();
            out.push(own);
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
                let needs = &self.needs[f];
                let here = |pending: &Option<Cost>| {
                    pending.as_ref().is_none_or(|t| is_pending(t, seen.at.k))
                };
                let due = needs.which.iter().filter(|(_, pending)| here(pending));
                w.which.extend(due.map(|(q, _)| *q));
                w.formulas.extend(&needs.formulas);
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
            let at = self.seen(&w.table, &seen.at);
            w.table[self.first_formula() + f] = self.formulas[f].value(at);
        }
        Ok(())
    }

    /// Fills it with what the sums grow by in a step from there.
    fn look_at_terms(
        &self,
        seen: &KnotPoint,
        w: &mut ExtendedWork<D::Work>,
    ) -> Result<(), StepError> {
        self.look(seen, self.due(&seen.at).map(|(_, t, _)| t.quantity), w)
    }

    /// Adjoints of state, controls, parameters and unknowns from those in the table of adjoints, which is cleared.
    fn pull_table(
        &self,
        seen: &KnotPoint,
        w: &mut ExtendedWork<D::Work>,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        self.pull_formulas(&seen.at, w);
        out.h_prev += std::mem::take(&mut w.by_h_prev);
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

    fn seen<'s>(&'s self, table: &'s [f64], at: &Knot) -> Seen<'s> {
        Seen {
            table,
            profiles: &self.profiles,
            at: *at,
        }
    }

    /// From adjoints of formulas to those of what they are made of.
    fn pull_formulas(&self, at: &Knot, w: &mut ExtendedWork<D::Work>) {
        for &f in w.formulas.iter().rev() {
            let g = std::mem::take(&mut w.adjoint[self.first_formula() + f]);
            if g != 0.0 {
                let seen = self.seen(&w.table, at);
                self.formulas[f].pull(seen, g, &mut w.adjoint, &mut w.by_h_prev);
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

    /// Terms of sums that count at a knot, with their shares.
    fn due(&self, at: &Knot) -> impl Iterator<Item = (usize, &Cost, Share)> + Clone {
        let (at, n) = (*at, self.steps);
        let all = self.sums.iter().enumerate();
        all.flat_map(|(i, s)| s.terms.iter().map(move |t| (i, t)))
            .filter(move |(_, t)| t.counts(at.k, n))
            .map(move |(i, t)| (i, t, t.share(&at)))
    }

    /// Derivatives of what the sums grow by in a step.
    fn differentiate_sums(
        &self,
        at: &SolvedStep,
        w: &mut ExtendedWork<D::Work>,
    ) -> Result<(), StepError> {
        let mut growth = std::mem::take(&mut w.growth);
        let made = self.grow(at, &mut growth, w);
        w.growth = growth;
        made
    }

    fn grow(
        &self,
        at: &SolvedStep,
        growth: &mut [(Inputs, Vec<f64>)],
        w: &mut ExtendedWork<D::Work>,
    ) -> Result<(), StepError> {
        let seen = point(at);
        for (by, y) in &mut *growth {
            by.clear();
            y.fill(0.0);
        }
        self.look_at_terms(&seen, w)?;
        for (i, t, share) in self.due(&at.at) {
            let (value, slope) = term(t, self.seen(&w.table, &at.at));
            w.adjoint[t.quantity.index()] = share.weight * slope;
            let (by, y) = &mut growth[i];
            self.pull_table(&seen, w, by, y);
            by.h += share.by_h * value;
            by.h_prev += share.by_h_prev * value;
        }
        Ok(())
    }

    /// Coordinates and rates with those that parameters decide.
    fn decided<'w>(
        &self,
        start: &Start,
        p: &[f64],
        (coordinates, rates): (&'w mut Vec<f64>, &'w mut Vec<f64>),
    ) -> Result<Start<'w>, StepError> {
        coordinates.clear();
        coordinates.extend(start.coordinates);
        rates.clear();
        rates.extend(start.rates);
        for &(number, place) in &self.start {
            let slot = match number {
                StartNumber::Coordinate(i) => coordinates.get_mut(i),
                StartNumber::Rate(i) => rates.get_mut(i),
            };
            let Some(slot) = slot else {
                let (q, rates) = (start.coordinates.len(), start.rates.len());
                let message = format!(
                    "{number:?} is to be found, and there are {q} coordinates and {rates} rates"
                );
                return Err(StepError::of_size("the start", message));
            };
            *slot = p[place];
        }
        Ok(Start {
            coordinates,
            rates,
            before: start.before,
        })
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
