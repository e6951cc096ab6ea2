//! Several systems side by side that share decisions.

use crate::dynamics::{
    Certificate, Differentiable, Dims, Frame, Inputs, Knot, KnotPoint, LinearModel, Observe,
    Outputs, Parameter, Part, QuantityId, Rows, SolvedStep, Start, Step, StepError, StepFailure,
    StepStats, Stoppable,
};
use nalgebra::DMatrix;
use std::ops::Range;

/// Numbers of a system's state from which a step takes some 10 microseconds, beside which little is lost by handing one over to
/// another thread.
const LARGE: usize = 60;

/// Systems side by side as one: what is decided serves all of them, whatever else tells them apart (masses, starts,
/// targets). States, unknowns, coordinates at the start and quantities are those of one system after the other;
/// parameters are shared, and so are the controls, unless every system has its own.
#[derive(Clone, Debug)]
pub struct Scenarios<D> {
    systems: Vec<D>,
    names: Vec<String>,
    sizes: Vec<Dims>,
    /// Coordinates at the start of each.
    coordinates: Vec<usize>,
    quantities: Vec<usize>,
    shares_controls: bool,
}

/// Memory of [`Scenarios`].
#[derive(Debug)]
pub struct ScenariosWork<W> {
    each: Vec<Own<W>>,
    /// The quantities that are looked at, in the order of the systems, with their places.
    places: Vec<(usize, usize)>,
}

impl<W> ScenariosWork<W> {
    /// The memory of system `i`.
    pub fn system(&mut self, i: usize) -> &mut W {
        &mut self.each[i].system
    }
}

/// Of one system.
#[derive(Debug)]
struct Own<W> {
    system: W,
    inputs: Inputs,
    outputs: Outputs,
    model: LinearModel,
    next: Vec<f64>,
    y: Vec<f64>,
    which: Vec<QuantityId>,
    values: Vec<f64>,
    rows: Rows,
    part: Part,
}

/// Systems that do not fit together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ScenariosError(String);

/// Places of one system in what is listed one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    x: usize,
    f: usize,
    j: usize,
    u: usize,
    y: usize,
    q: usize,
}

impl<D: Observe> Scenarios<D> {
    /// Of systems with their names, and the number of coordinates that each takes at the start.
    ///
    /// # Errors
    /// When there is none, or their parameters or, where they share them, their controls differ in number.
    pub fn new(
        systems: Vec<(String, D, usize)>,
        shares_controls: bool,
    ) -> Result<Self, ScenariosError> {
        let sizes: Vec<Dims> = systems.iter().map(|(_, s, _)| s.dims()).collect();
        let Some(first) = sizes.first() else {
            return Err(ScenariosError(
                "there is no scenario; give one at least".into(),
            ));
        };
        for (other, (name, ..)) in sizes.iter().zip(&systems) {
            let differs = other.nu != first.nu && shares_controls;
            if other.np != first.np || differs {
                return Err(ScenariosError(format!(
                    "scenario `{name}` has {} controls and {} parameters, the first {} and {}; give all the same",
                    other.nu, other.np, first.nu, first.np
                )));
            }
        }
        let mut out = Self {
            quantities: systems
                .iter()
                .map(|(_, s, _)| s.quantities().len())
                .collect(),
            coordinates: systems.iter().map(|(.., n)| *n).collect(),
            systems: vec![],
            names: vec![],
            sizes,
            shares_controls,
        };
        for (name, system, _) in systems {
            out.systems.push(system);
            out.names.push(name);
        }
        Ok(out)
    }

    /// The systems.
    pub fn systems(&self) -> &[D] {
        &self.systems
    }

    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A quantity of system `i`.
    pub fn quantity_of(&self, i: usize, quantity: QuantityId) -> QuantityId {
        let before: usize = self.quantities[..i].iter().sum();
        QuantityId::new(before + quantity.index())
    }

    /// Where system `i` stands in a state.
    pub fn state_of(&self, i: usize) -> Range<usize> {
        let first = self.places(i).x;
        first..first + self.sizes[i].nx
    }

    /// Where the controls of system `i` stand among all.
    pub fn controls_of(&self, i: usize) -> Range<usize> {
        let first = self.places(i).u;
        first..first + self.sizes[i].nu
    }

    /// Where the unknowns of system `i` stand among all.
    pub fn unknowns_of(&self, i: usize) -> Range<usize> {
        let first = self.places(i).y;
        first..first + self.sizes[i].ny
    }

    /// Of which system a quantity is, and which of its own.
    fn owner(&self, quantity: QuantityId) -> (usize, QuantityId) {
        let mut left = quantity.index();
        for (i, n) in self.quantities.iter().enumerate() {
            match left.checked_sub(*n) {
                None => return (i, QuantityId::new(left)),
                Some(rest) => left = rest,
            }
        }
        // not one of these
        (self.quantities.len() - 1, quantity)
    }

    fn places(&self, i: usize) -> Places {
        let shares = self.shares_controls;
        let mut all = Places::default();
        for (d, n) in self.sizes[..i].iter().zip(&self.coordinates) {
            all = Places {
                x: all.x + d.nx,
                f: all.f + d.nf,
                j: all.j + d.ndx,
                u: all.u + if shares { 0 } else { d.nu },
                y: all.y + d.ny,
                q: all.q + n,
            };
        }
        all
    }

    /// Every system with its memory, sizes and places.
    fn each<'s, 'w>(
        &'s self,
        w: &'w mut ScenariosWork<D::Work>,
    ) -> impl Iterator<Item = (&'s D, &'w mut Own<D::Work>, Dims, Places)> {
        let all = self.systems.iter().zip(&mut w.each).zip(&self.sizes);
        all.enumerate()
            .map(|(i, ((system, own), d))| (system, own, *d, self.places(i)))
    }

    /// What every system from `first` on does, on the threads of the pool that this one is of, where all are large; of those that
    /// fail the first says why.
    fn on_each<T: Send>(
        &self,
        first: usize,
        w: &mut [Own<D::Work>],
        one: &(impl Fn(usize, &D, &mut Own<D::Work>) -> Result<T, StepError> + Sync),
        and: &(impl Fn(T, T) -> T + Sync),
    ) -> Result<T, StepError> {
        let (own, rest) = (w.split_first_mut()).expect("there is a scenario at least");
        let mut here = || one(first, &self.systems[first], own).map_err(self.named(first));
        if rest.is_empty() {
            return here();
        }
        let mut others = || self.on_each(first + 1, rest, one, and);
        let are_large = self.sizes.iter().all(|d| d.nx >= LARGE);
        if are_large && rayon::current_thread_index().is_some() {
            let stoppable = Stoppable::here();
            let (here, others) = rayon::join(|| stoppable.run(here), || stoppable.run(others));
            return Ok(and(here?, others?));
        }
        let here = here()?;
        Ok(and(here, others()?))
    }

    fn seen<'a>(d: &Dims, at: Places, seen: &KnotPoint<'a>) -> KnotPoint<'a> {
        KnotPoint {
            at: seen.at,
            x: &seen.x[at.x..at.x + d.nx],
            u: &seen.u[at.u..at.u + d.nu],
            p: seen.p,
            y: if seen.y.is_empty() {
                seen.y
            } else {
                &seen.y[at.y..at.y + d.ny]
            },
        }
    }

    fn solved<'a>(d: &Dims, at: Places, s: &SolvedStep<'a>) -> SolvedStep<'a> {
        SolvedStep {
            at: s.at,
            x: &s.x[at.x..at.x + d.nx],
            u: &s.u[at.u..at.u + d.nu],
            p: s.p,
            y: &s.y[at.y..at.y + d.ny],
            next: &s.next[at.x..at.x + d.nx],
        }
    }

    /// The frame of one system.
    fn frame_of(frame: &Frame, i: usize) -> &Frame {
        match frame {
            Frame::Parts(parts) => parts.get(i).unwrap_or(frame),
            whole => whole,
        }
    }

    /// The start of a scenario.
    fn start<'a>(&self, i: usize, all: &Start<'a>) -> Result<Start<'a>, StepError> {
        let (first, n) = (self.places(i).q, self.coordinates[i]);
        let own = first..first + n;
        let (q, rates) = (all.coordinates, all.rates);
        match (q.get(own.clone()), rates.get(own)) {
            (Some(coordinates), Some(rates)) => Ok(Start {
                coordinates,
                rates,
                ..*all
            }),
            _ => Err(StepError {
                failure: StepFailure::Size,
                element: "the start".into(),
                time: 0.0,
                residual: f64::NAN,
                message: format!(
                    "{} coordinates and {} rates; give those of every scenario, {} in all",
                    q.len(),
                    rates.len(),
                    self.coordinates.iter().sum::<usize>()
                ),
            }),
        }
    }

    /// What failed, with the name of its scenario.
    fn named(&self, i: usize) -> impl Fn(StepError) -> StepError + '_ {
        move |e| StepError {
            // one system alone has no name
            element: match self.names[i].as_str() {
                "" => e.element,
                name => format!("{name}: {}", e.element),
            },
            ..e
        }
    }
}

impl<D: Observe> Step for Scenarios<D> {
    type Work = ScenariosWork<D::Work>;

    fn dims(&self) -> Dims {
        let sum = |of: fn(&Dims) -> usize| self.sizes.iter().map(of).sum();
        Dims {
            nx: sum(|d| d.nx),
            nf: sum(|d| d.nf),
            ndx: sum(|d| d.ndx),
            nu: if self.shares_controls {
                self.sizes[0].nu
            } else {
                sum(|d| d.nu)
            },
            np: self.sizes[0].np,
            ny: sum(|d| d.ny),
        }
    }

    fn work(&self) -> Self::Work {
        let one = |(s, d): (&D, &Dims)| Own {
            system: s.work(),
            inputs: d.inputs(),
            outputs: d.outputs(),
            model: LinearModel::new(d),
            next: vec![0.0; d.nx],
            y: vec![0.0; d.ny],
            which: vec![],
            values: vec![],
            rows: Rows::new(d, 0),
            part: Part::default(),
        };
        ScenariosWork {
            each: self.systems.iter().zip(&self.sizes).map(one).collect(),
            places: vec![],
        }
    }

    fn controls(&self) -> Vec<(String, String)> {
        if self.shares_controls {
            return self.systems[0].controls();
        }
        self.listed(|s| s.controls())
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.systems[0].parameters()
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        for (i, (s, w, d, at)) in self.each(w).enumerate() {
            let start = self.start(i, start)?;
            let own = &mut x[at.x..at.x + d.nx];
            s.initial(&start, p, &mut w.system, own)
                .map_err(self.named(i))?;
        }
        Ok(())
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let all = self.dims();
        let mut out = DMatrix::zeros(all.nf, all.np);
        for (i, (s, w, d, at)) in self.each(w).enumerate() {
            let start = self.start(i, start)?;
            let own = s.initial_by_parameters(&start, p, &mut w.system)?;
            out.rows_mut(at.f, d.nf).copy_from(&own);
        }
        Ok(out)
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let all = start.coordinates.len();
        let mut out = DMatrix::zeros(self.dims().nf, 2 * all + 1);
        for (i, (s, w, d, at)) in self.each(w).enumerate() {
            let own = self.start(i, start)?;
            let by = s.initial_by_coordinates(&own, p, &mut w.system)?;
            let n = own.coordinates.len();
            for (to, from, count) in [(at.q, 0, n), (all + at.q, n, n), (2 * all, 2 * n, 1)] {
                out.view_mut((at.f, to), (d.nf, count))
                    .copy_from(&by.columns(from, count));
            }
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
        let before = &*y;
        let one = |i: usize, s: &D, w: &mut Own<D::Work>| {
            let (d, own) = (&self.sizes[i], self.places(i));
            w.y.copy_from_slice(&before[own.y..own.y + d.ny]);
            let (x, u) = (&x[own.x..own.x + d.nx], &u[own.u..own.u + d.nu]);
            s.step(at, x, u, p, &mut w.system, &mut w.next, &mut w.y)
        };
        let stats = self.on_each(0, &mut w.each, &one, &|a, b| {
            let both = StepStats {
                residual: a.residual.max(b.residual),
                rounded: a.rounded.max(b.rounded),
                ..a.and(&b)
            };
            both.turning_most(&a)
        })?;
        for (_, w, d, own) in self.each(w) {
            next[own.x..own.x + d.nx].copy_from_slice(&w.next);
            y[own.y..own.y + d.ny].copy_from_slice(&w.y);
        }
        Ok(stats)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        let each = self.each(w);
        each.fold(true, |all, (s, w, ..)| {
            s.soften(&mut w.system, kappa) && all
        })
    }
}

impl<D: Observe> Scenarios<D> {
    /// Lists of names one after the other, with the names of the scenarios.
    fn listed(&self, of: impl Fn(&D) -> Vec<(String, String)>) -> Vec<(String, String)> {
        if let [only] = &self.systems[..] {
            return of(only);
        }
        let all = self.systems.iter().zip(&self.names);
        all.flat_map(|(s, scenario)| {
            let own = of(s).into_iter();
            own.map(move |(name, unit)| (format!("{scenario}: {name}"), unit))
        })
        .collect()
    }
}

impl<D: Observe> Differentiable for Scenarios<D> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        let one = |i: usize, s: &D, w: &mut Own<D::Work>| {
            let solved = Self::solved(&self.sizes[i], self.places(i), at);
            s.linearize_in(&solved, &mut w.system)
        };
        self.on_each(0, &mut w.each, &one, &|a, b| a.and(&b))
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        for (s, w, ..) in self.each(w) {
            s.smoothing(&mut w.system, kappa);
        }
    }

    fn kept(&self) -> usize {
        let each = || self.systems.iter().map(D::kept);
        // all of them or none
        if each().any(|n| n == 0) {
            0
        } else {
            each().sum()
        }
    }

    fn keep_in(&self, w: &Self::Work, kept: &mut [f64]) -> bool {
        let mut rest = kept;
        for (s, w) in self.systems.iter().zip(&w.each) {
            let (own, after) = rest.split_at_mut(s.kept());
            if !s.keep_in(&w.system, own) {
                return false;
            }
            rest = after;
        }
        true
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut Self::Work,
    ) -> Result<bool, StepError> {
        let mut rest = kept;
        for (s, w, d, places) in self.each(w) {
            let (own, after) = rest.split_at(s.kept());
            if !s.restore_in(&Self::solved(&d, places, at), own, &mut w.system)? {
                return Ok(false);
            }
            rest = after;
        }
        Ok(true)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        let one = |i: usize, s: &D, w: &mut Own<D::Work>| {
            let (n, at) = (&self.sizes[i], self.places(i));
            w.inputs.x.copy_from_slice(&d.x[at.f..at.f + n.nf]);
            w.inputs.u.copy_from_slice(&d.u[at.u..at.u + n.nu]);
            w.inputs.p.copy_from_slice(&d.p);
            (w.inputs.h_prev, w.inputs.h) = (d.h_prev, d.h);
            s.push_in(&mut w.system, &w.inputs, &mut w.outputs);
            Ok(())
        };
        let pushed = self.on_each(0, &mut w.each, &one, &|(), ()| ());
        pushed.expect("a push does not fail");
        for (_, w, n, at) in self.each(w) {
            out.x[at.f..at.f + n.nf].copy_from_slice(&w.outputs.x);
            out.y[at.y..at.y + n.ny].copy_from_slice(&w.outputs.y);
        }
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        out.clear();
        for (s, w, n, at) in self.each(w) {
            w.outputs.x.copy_from_slice(&adjoint.x[at.f..at.f + n.nf]);
            w.outputs.y.copy_from_slice(&adjoint.y[at.y..at.y + n.ny]);
            w.inputs.clear();
            s.pull_in(&mut w.system, &w.outputs, &mut w.inputs);
            add_own(&w.inputs, &n, at, out);
        }
    }
}

/// Adds inputs of one system to those of all.
fn add_own(own: &Inputs, n: &Dims, at: Places, out: &mut Inputs) {
    super::add(&mut out.x[at.f..at.f + n.nf], 1.0, own.x.iter());
    super::add(&mut out.u[at.u..at.u + n.nu], 1.0, own.u.iter());
    super::add(&mut out.p, 1.0, own.p.iter());
    out.h_prev += own.h_prev;
    out.h += own.h;
}

mod charts;
mod equations;
mod observed;
