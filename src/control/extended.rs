//! A system with what a problem needs beside it: numbers to decide, a start that is decided, sums along the way, and
//! formulas of quantities.

mod roles;

use super::cost::{Cost, Quadrature, When};
use crate::dynamics::{
    Dims, Frame, Inputs, Knot, KnotPoint, LinearModel, Observe, Outputs, Parameter, QuantityId,
    Rows, SolvedStep, StepError,
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
        Ok(())
    }

    /// Coordinates and rates with those that parameters decide.
    fn decided(
        &self,
        q: &[f64],
        rates: &[f64],
        p: &[f64],
        w: &mut ExtendedWork<D::Work>,
    ) -> Result<(), StepError> {
        w.q.clear();
        w.q.extend(q);
        w.rates.clear();
        w.rates.extend(rates);
        for &(number, place) in &self.start {
            let slot = match number {
                StartNumber::Coordinate(i) => w.q.get_mut(i),
                StartNumber::Rate(i) => w.rates.get_mut(i),
            };
            let Some(slot) = slot else {
                let (q, rates) = (q.len(), rates.len());
                let message = format!(
                    "{number:?} is to be found, and there are {q} coordinates and {rates} rates"
                );
                return Err(StepError::of_size("the start", message));
            };
            *slot = p[place];
        }
        Ok(())
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
