//! Derivatives of a composition: those of its stages, one after another; and its unsolved equations.

use super::{Composed, ComposedWork};
use crate::dynamics::{
    Certificate, Column, ContactUnknowns, Equations, Inputs, KnotPoint, Outputs, SolvedStep, Start,
    StepError, Structure, UnsolvedStep,
};
use crate::integrator::mechanical::Mechanical;
use nalgebra::DMatrix;
use std::collections::BTreeSet;

impl<S: Mechanical> Composed<S> {
    /// A stage as a solved step of the inner integrator.
    fn solved<'a>(&self, at: &SolvedStep<'a>, between: &'a [Vec<f64>], i: usize) -> SolvedStep<'a> {
        SolvedStep {
            at: self.stage(&at.at, i),
            x: between[..i].last().map_or(at.x, |x| x),
            y: self.unknowns(at.y, i),
            next: between.get(i).map_or(at.next, |x| x),
            ..*at
        }
    }

    /// Finds the states between the stages of a solved step.
    fn between(&self, at: &SolvedStep, w: &mut ComposedWork<S::Work>) -> Result<(), StepError> {
        let ComposedWork { own, between, .. } = w;
        self.visit(&at.start(), own, between, |_, _, _| Ok(()))
    }

    pub(super) fn linearize_stages(
        &self,
        at: &SolvedStep,
        w: &mut ComposedWork<S::Work>,
    ) -> Result<Certificate, StepError> {
        self.between(at, w)?;
        let mut worst: Option<Certificate> = None;
        for (i, stage) in w.stages.iter_mut().enumerate() {
            let own = self
                .inner
                .linearize_in(&self.solved(at, &w.between, i), stage)?;
            worst = Some(worst.map_or(own, |w| w.and(&own)));
        }
        Ok(worst.unwrap_or_default())
    }

    pub(super) fn restore_stages(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut ComposedWork<S::Work>,
    ) -> Result<bool, StepError> {
        self.between(at, w)?;
        let n = self.inner.kept();
        for (i, stage) in w.stages.iter_mut().enumerate() {
            let own = &kept[n * i..n * (i + 1)];
            let solved = self.solved(at, &w.between, i);
            if !self.inner.restore_in(&solved, own, stage)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Share of the interval that a stage's interval before it is of, and whether that is the step's own (else the one
    /// before the knot).
    fn before(&self, i: usize) -> (f64, bool) {
        match i {
            0 => (self.last_share(), false),
            _ => (self.shares[i - 1], true),
        }
    }

    /// Share of the last stage, whose velocities a state has.
    pub(super) fn last_share(&self) -> f64 {
        self.shares[self.shares.len() - 1]
    }

    /// A start as the last stage of the interval before leads to it.
    pub(super) fn last_stage<'a>(&self, start: &Start<'a>) -> Start<'a> {
        Start {
            before: start.before * self.last_share(),
            ..*start
        }
    }

    pub(super) fn push_stages(&self, w: &mut ComposedWork<S::Work>, d: &Inputs, out: &mut Outputs) {
        let ComposedWork {
            stages,
            inputs,
            outputs,
            ..
        } = w;
        inputs.x.copy_from_slice(&d.x);
        inputs.u.copy_from_slice(&d.u);
        inputs.p.copy_from_slice(&d.p);
        let n = self.inner_dims.ny;
        for (i, stage) in stages.iter_mut().enumerate() {
            let (share, own) = self.before(i);
            inputs.h_prev = share * if own { d.h } else { d.h_prev };
            inputs.h = self.shares[i] * d.h;
            self.inner.push_in(stage, inputs, outputs);
            out.y[n * i..n * (i + 1)].copy_from_slice(&outputs.y);
            inputs.x.copy_from_slice(&outputs.x);
        }
        out.x.copy_from_slice(&inputs.x);
    }

    pub(super) fn pull_stages(
        &self,
        w: &mut ComposedWork<S::Work>,
        adjoint: &Outputs,
        out: &mut Inputs,
    ) {
        let ComposedWork {
            stages,
            inputs,
            outputs,
            ..
        } = w;
        out.clear();
        outputs.x.copy_from_slice(&adjoint.x);
        let n = self.inner_dims.ny;
        for (i, stage) in stages.iter_mut().enumerate().rev() {
            outputs.y.copy_from_slice(&adjoint.y[n * i..n * (i + 1)]);
            self.inner.pull_in(stage, outputs, inputs);
            out.u.iter_mut().zip(&inputs.u).for_each(|(o, d)| *o += d);
            out.p.iter_mut().zip(&inputs.p).for_each(|(o, d)| *o += d);
            let (share, own) = self.before(i);
            let before = if own { &mut out.h } else { &mut out.h_prev };
            *before += share * inputs.h_prev;
            out.h += self.shares[i] * inputs.h;
            outputs.x.copy_from_slice(&inputs.x);
        }
        out.x.copy_from_slice(&outputs.x);
    }
}

/// The stages' equations below each other. A stage sees the unknowns of those before it through its state.
impl<S: Mechanical> Composed<S> {
    /// Visits the parts of a step that need not be solved, each with its share of `out`. Only the last part has the step's end.
    fn visit_unsolved(
        &self,
        at: &UnsolvedStep,
        w: &mut ComposedWork<S::Work>,
        out: &mut [f64],
        mut each: impl FnMut(&UnsolvedStep, &mut S::Work, &mut [f64]) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let n = self.inner_dims.ny;
        let last = self.shares.len() - 1;
        let ComposedWork { own, between, .. } = w;
        self.visit(&at.start, own, between, |i, here, w| {
            let step = UnsolvedStep {
                start: *here,
                end: at.end.filter(|_| i == last),
            };
            each(&step, w, &mut out[n * i..n * (i + 1)])
        })
    }
}

impl<S: Mechanical> Equations for Composed<S> {
    fn check_equations(&self) -> Result<(), String> {
        self.inner.check_equations()
    }

    fn structure(&self, has_end: bool) -> Structure {
        let (d, n) = (&self.dims, self.inner_dims.ny);
        let last = self.shares.len() - 1;
        let structures = [false, has_end].map(|has_end| self.inner.structure(has_end));
        let mut columns = vec![vec![]; Column::count(d)];
        // the columns that every component of the state before a stage depends on
        let mut by: Vec<BTreeSet<usize>> = (0..d.nf).map(|i| [i].into()).collect();
        for i in 0..=last {
            let mut next = vec![BTreeSet::new(); d.nf];
            for &(row, column) in structures[usize::from(i == last)].entries() {
                let own = match Column::at(&self.inner_dims, column) {
                    Column::State(c) => by[c].clone(),
                    other => [self.column(i, other).0.place(d)].into(),
                };
                match row.checked_sub(n) {
                    None => own.iter().for_each(|c| columns[*c].push(n * i + row)),
                    Some(component) => next[component].extend(own),
                }
            }
            by = next;
        }
        for (component, own) in by.iter().enumerate() {
            own.iter().for_each(|c| columns[*c].push(d.ny + component));
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        self.inner.displace(x, d, out)
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        self.inner.separation(x, to, out);
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        self.inner.pull_separation(x, to, adjoint);
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        let (n, own) = (self.inner_dims.ny, self.inner.contact_unknowns());
        let parts = self.shares.iter().enumerate();
        parts
            .flat_map(|(i, share)| {
                own.iter().map(move |c| ContactUnknowns {
                    first: n * i + c.first,
                    share: share * c.share,
                    is_within: c.is_within || i > 0,
                    ..*c
                })
            })
            .collect()
    }

    fn set_central_path(&self, w: &mut Self::Work, kappa: f64) {
        self.inner.set_central_path(&mut w.own, kappa);
    }

    fn center(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        self.visit_unsolved(at, w, y, |step, w, y| self.inner.center(step, w, y))
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        // of the last part
        let first = self.dims.ny - self.inner_dims.ny;
        let inner = self.inner.copies().into_iter();
        inner.map(|(i, unknown)| (i, first + unknown)).collect()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        let n = self.inner_dims.ny;
        let parts = self.shares.iter().enumerate();
        parts
            .flat_map(|(i, share)| {
                let own = self.inner.domain(share * h).into_iter();
                own.map(move |(y, size)| (i * n + y, size))
            })
            .collect()
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut Self::Work,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        self.visit_unsolved(at, w, r, |step, w, r| self.inner.residual(step, w, r))
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        let last = self.shares.len() - 1;
        let ComposedWork { own, between, .. } = w;
        self.visit(at, own, between, |i, here, w| match i {
            _ if i == last => self.inner.advance(here, w, next),
            _ => Ok(()),
        })
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        let (d, n) = (&self.inner_dims, self.inner_dims.ny);
        let last = self.shares.len() - 1;
        let structures = [false, at.end.is_some()].map(|has_end| self.inner.structure(has_end));
        let columns = Column::count(&self.dims);
        let mut all = DMatrix::zeros(self.dims.ny + d.nf, columns);
        // what every column does to the state before a stage
        let mut by = DMatrix::identity(d.nf, columns);
        let ComposedWork { own, between, .. } = w;
        self.visit(&at.start, own, between, |i, here, w| {
            let inner = &structures[usize::from(i == last)];
            let mut own_values = vec![0.0; inner.entries().len()];
            let step = UnsolvedStep {
                start: *here,
                end: at.end.filter(|_| i == last),
            };
            self.inner.derivatives(&step, inner, w, &mut own_values)?;
            let mut part = DMatrix::zeros(n + d.nf, columns);
            for (&(row, column), value) in inner.entries().iter().zip(&own_values) {
                match Column::at(d, column) {
                    Column::State(column) => {
                        for c in 0..columns {
                            part[(row, c)] += value * by[(column, c)];
                        }
                    }
                    own => {
                        let (column, share) = self.column(i, own);
                        part[(row, column.place(&self.dims))] += share * value;
                    }
                }
            }
            all.rows_mut(n * i, n).copy_from(&part.rows(0, n));
            by = part.rows(n, d.nf).into_owned();
            Ok(())
        })?;
        all.rows_mut(self.dims.ny, d.nf).copy_from(&by);
        for (value, place) in values.iter_mut().zip(structure.entries()) {
            *value = all[*place];
        }
        Ok(())
    }

    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut Self::Work,
        out: &mut Inputs,
        y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        let n = self.inner_dims.ny;
        let last = self.shares.len() - 1;
        let ComposedWork { own, between, .. } = w;
        // the states between, then backwards
        self.visit(&at.start, own, between, |_, _, _| Ok(()))?;
        let mut none = vec![0.0; end.len()];
        let mut inputs = self.inner_dims.inputs();
        let mut outer = self.inner_dims.outputs();
        outer.x.copy_from_slice(&adjoint.x);
        out.clear();
        for i in (0..=last).rev() {
            let stage = n * i..n * (i + 1);
            outer.y.copy_from_slice(&adjoint.y[stage.clone()]);
            let start = KnotPoint {
                at: self.stage(&at.start.at, i),
                x: i.checked_sub(1).map_or(at.start.x, |i| &between[i]),
                y: self.unknowns(at.start.y, i),
                ..at.start
            };
            let here = UnsolvedStep {
                start,
                end: at.end.filter(|_| i == last),
            };
            let (y, end) = (&mut y[stage], if i == last { &mut *end } else { &mut none });
            self.inner
                .pull_equations(&here, &outer, own, &mut inputs, y, end)?;
            outer.x.copy_from_slice(&inputs.x);
            let add = |to: &mut [f64], from: &[f64]| {
                to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
            };
            add(&mut out.u, &inputs.u);
            add(&mut out.p, &inputs.p);
            for (is_before, value) in [(true, inputs.h_prev), (false, inputs.h)] {
                let (share, is_within) = self.interval(i, is_before);
                *(if is_within {
                    &mut out.h
                } else {
                    &mut out.h_prev
                }) += share * value;
            }
        }
        out.x.copy_from_slice(&outer.x);
        Ok(())
    }
}

impl<S: Mechanical> Composed<S> {
    /// The column that a column of stage `i` belongs to, if it is no state's, and its share.
    fn column(&self, i: usize, own: Column) -> (Column, f64) {
        match own {
            Column::Unknown(j) => (Column::Unknown(j + self.inner_dims.ny * i), 1.0),
            Column::Before | Column::After => {
                let (share, is_within) = self.interval(i, own == Column::Before);
                (
                    if is_within {
                        Column::After
                    } else {
                        Column::Before
                    },
                    share,
                )
            }
            other => (other, 1.0),
        }
    }

    /// The interval before or after stage `i`: its share, and whether of the interval that is stepped over.
    fn interval(&self, i: usize, is_before: bool) -> (f64, bool) {
        if is_before {
            self.before(i)
        } else {
            (self.shares[i], true)
        }
    }
}
