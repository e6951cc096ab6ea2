//! The faces of an extended system.

use super::{Extended, ExtendedWork, StartNumber, term};
use crate::control::{add, dot};
use crate::dynamics::{
    Certificate, Charts, Differentiable, Dims, Frame, Inputs, Knot, KnotPoint, LinearModel,
    Observe, Outputs, Parameter, Part, QuantityId, Rows, SolvedStep, Start, Step, StepError,
    StepStats, Stored, blocks,
};
use nalgebra::DMatrix;

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
            by_h_prev: 0.0,
            growth: vec![(by, vec![0.0; d.ny]); self.sums.len()],
            q: vec![],
            rates: vec![],
            free: vec![0.0; d.nf],
            joint: vec![0.0; d.ndx],
            rows: Rows::new(&d, 0),
            part: Part::default(),
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
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let (own, sums) = x.split_at_mut(self.inner.nx);
        sums.fill(0.0);
        let start = self.decided(start, p, (&mut w.q, &mut w.rates))?;
        let p = &p[..self.inner.np];
        self.system.initial(&start, p, &mut w.system, own)
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let start = self.decided(start, p, (&mut w.q, &mut w.rates))?;
        let d = self.dims();
        let p = &p[..self.inner.np];
        let work = &mut w.system;
        let own = self.system.initial_by_parameters(&start, p, work)?;
        let mut out = own.resize(d.nf, d.np, 0.0);
        if !self.start.is_empty() {
            let by = self.system.initial_by_coordinates(&start, p, work)?;
            for &(number, place) in &self.start {
                let column = match number {
                    StartNumber::Coordinate(i) => i,
                    StartNumber::Rate(i) => start.coordinates.len() + i,
                };
                // beside what a parameter of the system does itself
                let mut to = out.column_mut(place);
                let mut own = to.rows_mut(0, self.inner.nf);
                own += by.column(column);
            }
        }
        Ok(out)
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let start = self.decided(start, p, (&mut w.q, &mut w.rates))?;
        let (p, work) = (&p[..self.inner.np], &mut w.system);
        let own = self.system.initial_by_coordinates(&start, p, work)?;
        let mut out = own.resize_vertically(self.dims().nf, 0.0);
        for &(number, _) in &self.start {
            let column = match number {
                StartNumber::Coordinate(i) => i,
                StartNumber::Rate(i) => start.coordinates.len() + i,
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
            self.look_at_terms(&seen, w)?;
            for (i, t, share) in self.due(at) {
                next[n + i] += share.weight * term(t, self.seen(&w.table, at)).0;
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
            let products = pairs.iter().map(|(a, b)| dot(a.iter(), b));
            out.x[n + i] = d.x[n + i] + products.sum::<f64>() + by.h_prev * d.h_prev + by.h * d.h;
        }
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        let n = self.inner.nf;
        w.outputs.x.copy_from_slice(&adjoint.x[..n]);
        w.outputs.y.copy_from_slice(&adjoint.y);
        for ((_, y), a) in w.growth.iter().zip(&adjoint.x[n..]) {
            add(&mut w.outputs.y, *a, y.iter());
        }
        w.inputs.clear();
        self.system
            .pull_in(&mut w.system, &w.outputs, &mut w.inputs);
        out.clear();
        self.add_inner(&w.inputs, out);
        for (i, ((by, _), a)) in w.growth.iter().zip(&adjoint.x[n..]).enumerate() {
            add(&mut out.x, *a, by.x.iter());
            add(&mut out.u, *a, by.u.iter());
            add(&mut out.p, *a, by.p.iter());
            out.h_prev += a * by.h_prev;
            out.h += a * by.h;
            out.x[n + i] += a;
        }
    }
}

impl<D: Observe> Charts for Extended<D> {
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut Self::Work,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        let previous = previous.map(|f| self.frame_of(f));
        let (x, p) = (&x[..self.inner.nx], &p[..self.inner.np]);
        let mut own = |out: &mut Frame| {
            let w = &mut w.system;
            self.system.frame_in(at, x, p, previous, w, out)
        };
        if self.sums.is_empty() {
            return own(out);
        }
        out.fill_parts(2, |i, part| {
            if i == 0 {
                return own(part);
            }
            *part = Frame::Identity(self.sums.len());
            Ok(())
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
            // sums of what is made of sums
            for (j, own) in by.x[d.nf..].iter().enumerate() {
                out.a[(row, d.ndx + j)] = *own;
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
                let always = self.needs[f]
                    .which
                    .iter()
                    .filter(|(_, when)| when.is_none());
                let mut always = always.map(|(q, _)| *q);
                always.any(|q| self.system.needs_unknowns(q))
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
            self.pull_formulas(&seen.at, w);
            out.h_prev[i] += std::mem::take(&mut w.by_h_prev);
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
