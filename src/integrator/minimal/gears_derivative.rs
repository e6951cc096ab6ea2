//! What moves gears, and states on them: derivatives of the step, of equations and of starts, and the chart.
//!
//! Where a change `dq` of the knot leaves the gears, or their ratios and offsets change, followers are displaced by the end so that
//! gears hold there: `dc = a dc_of + da c_of + db`, the roots' rates of displacement being zero. The solve adds displacements that
//! keep gears as they are.

use super::Minimal;
use super::derivative::Linear;
use super::gears::{Geared, Gears, by_rate};
use super::work::Work;
use crate::dynamics::{Chart, End, Frame, Inputs, Knot, LinearModel, Outputs, Start};
use crate::mechanism::{Field, Mechanism};
use nalgebra::DMatrix;
use std::any::Any;
use std::sync::Arc;

/// Visits gears whose ratio (else offset) is a parameter, with that.
fn each_tuned(m: &Mechanism, mut each: impl FnMut(usize, usize, bool)) {
    for (i, p) in m.parameters.iter().enumerate() {
        for field in &p.fields {
            match field {
                Field::GearRatio(g) => each(i, *g, true),
                Field::GearOffset(g) => each(i, *g, false),
                _ => {}
            }
        }
    }
}

impl Gears {
    /// Change of what is demanded of every gear's follower by one of parameters, into `tuned`.
    fn tune(&self, m: &Mechanism, dp: &[f64], tuned: &mut [(f64, f64)]) {
        tuned.fill((0.0, 0.0));
        each_tuned(m, |i, g, of_ratio| {
            let to = &mut tuned[g];
            *(if of_ratio { &mut to.0 } else { &mut to.1 }) += dp[i];
        });
    }
}

impl Geared {
    /// Adjoints of the impulses, and of rates of displacement behind the knot as they reach these directly.
    pub fn begin_pull(&mut self, impulses: &[f64], ends: &[f64]) {
        self.adjoint.copy_from_slice(impulses);
        self.end_at(ends);
    }

    /// The latter alone.
    pub fn end_at(&mut self, ends: &[f64]) {
        if !self.adjoint.is_empty() {
            self.ends.copy_from_slice(ends);
        }
    }
}

impl Minimal {
    /// Rates of displacement that bring followers onto the gears, into `linear.rho[1]`: those that come before the solve.
    pub(super) fn lift(&self, w: &mut Work, l: &mut Linear, d: &Inputs) {
        l.rho[1].fill(0.0);
        if self.gears.is_empty() {
            return;
        }
        let (h, rho) = (l.at.h, &mut l.rho[1]);
        let mut tuned = std::mem::take(&mut w.geared.tuned);
        self.gears.tune(&w.model, &d.p, &mut tuned);
        for link in &self.gears.links {
            let (ratio, offset) = tuned[link.gear];
            let of = match h {
                0.0 => rho[link.of],
                _ => d.x[link.of] + h * rho[link.of],
            };
            // of the leader the gear is divided by the ratio
            let leader = self.at_end(w, self.gears.ties[link.gear].leader, h);
            let more = ratio * leader + if h == 0.0 { 0.0 } else { offset };
            let a = link.relation(&w.model).0;
            let end = a * of + if link.leads { -a * more } else { more };
            rho[link.coordinate] = match h {
                0.0 => end,
                _ => (end - d.x[link.coordinate]) / h,
            };
        }
        w.geared.tuned = tuned;
    }

    /// The transpose, of what a residual says of these, in `linear.rho[1]`, and what else does, in `geared.ends`.
    pub(super) fn lift_back(&self, w: &mut Work, l: &Linear, out: &mut Inputs) {
        if self.gears.is_empty() {
            return;
        }
        let h = l.at.h;
        let mut g = std::mem::take(&mut w.geared);
        g.tuned.fill((0.0, 0.0));
        // what others follow
        g.along.fill(0.0);
        let (per, is_step) = if h == 0.0 { (1.0, 0.0) } else { (1.0 / h, 1.0) };
        for link in self.gears.links.iter().rev() {
            let own = per * (g.ends[link.coordinate] + l.rho[1][link.coordinate]);
            let by = own + g.along[link.coordinate];
            let a = link.relation(&w.model).0;
            g.along[link.of] += a * by;
            let by_more = if link.leads { -a * by } else { by };
            let leader = self.at_end(w, self.gears.ties[link.gear].leader, h);
            let to = &mut g.tuned[link.gear];
            to.0 += by_more * leader;
            to.1 += by_more * is_step;
            out.x[link.coordinate] -= own * is_step;
        }
        for &root in &self.gears.free {
            out.x[root] += g.along[root] * is_step;
        }
        each_tuned(&w.model, |i, gear, of_ratio| {
            let (ratio, offset) = g.tuned[gear];
            out.p[i] += if of_ratio { ratio } else { offset };
        });
        w.geared = g;
    }

    /// Changes of the impulses of a step that is solved.
    pub(super) fn push_impulses(&self, w: &Work, out: &mut Outputs) {
        let answers = &w.border.answers[..self.gears.count()];
        (self.beyond_rates_mut(&mut out.y).1).copy_from_slice(answers);
    }

    /// Where a geared coordinate is at the end of a step, which is that of the trial where no other is given.
    fn ending(&self, w: &Work, coordinate: usize, h: f64, end: Option<&End>) -> f64 {
        match end {
            Some(end) => end.state[self.gears.places[coordinate].0],
            None => self.at_end(w, coordinate, h),
        }
    }

    /// Values of the gears at the end of a step, m or rad.
    pub(super) fn leave_gears(&self, w: &Work, h: f64, end: Option<&End>, rows: &mut [f64]) {
        for ((gear, tie), row) in self.gears.ties.iter().enumerate().zip(rows) {
            let g = w.model.gear(gear);
            let [c, of] = [tie.follower, tie.leader].map(|c| self.ending(w, c, h, end));
            *row = c - g.ratio * of - g.offset;
        }
    }

    /// Adds to a change of the residual, `linear.rows`, that of the impulses; changes of the gears' values into `law`, by `ended` of the
    /// end where it is a variable.
    pub(super) fn push_gears(
        &self,
        w: &mut Work,
        l: &mut Linear,
        (d, impulses): (&Inputs, &[f64]),
        (end, ended): (Option<&End>, &[f64]),
        law: &mut [f64],
    ) {
        if self.gears.is_empty() {
            return;
        }
        let (m, h, g) = (&w.model, l.at.h, &mut w.geared);
        self.gears.add_along(m, impulses, -1.0, &mut l.rows);
        if end.is_some() {
            g.along.copy_from_slice(&ended[..self.freedoms]);
        } else {
            for ((to, rho), dq) in g.along.iter_mut().zip(&l.rho[1]).zip(&d.x) {
                *to = dq + h * rho;
            }
        }
        self.gears.across(m, &g.along, |row, by| law[row] = by);
        self.gears.tune(m, &d.p, &mut g.tuned);
        for (gear, row) in law.iter_mut().enumerate() {
            let (ratio, offset) = w.geared.tuned[gear];
            let leader = self.gears.ties[gear].leader;
            *row -= ratio * self.ending(w, leader, h, end) + offset;
        }
    }

    /// The transpose, of adjoints of the gears' values: adds to what reaches the end, else rates of displacement, `linear.rho[1]`, and
    /// the inputs; those of the impulses into `impulses`.
    pub(super) fn pull_gears(
        &self,
        w: &mut Work,
        l: &mut Linear,
        (law, out): (&[f64], &mut Inputs),
        (end, ended): (Option<&End>, &mut [f64]),
        impulses: &mut [f64],
    ) {
        if self.gears.is_empty() {
            return;
        }
        let (m, h, g) = (&w.model, l.at.h, &mut w.geared);
        (self.gears).across(m, &l.lambda, |gear, by| impulses[gear] = -by);
        g.along.fill(0.0);
        self.gears.add_along(m, law, 1.0, &mut g.along);
        if end.is_some() {
            let each = ended.iter_mut().zip(&g.along);
            each.for_each(|(to, by)| *to += by);
        } else {
            let each = l.rho[1].iter_mut().zip(&mut out.x).zip(&g.along);
            each.for_each(|((rho, x), by)| {
                *rho += h * by;
                *x += by;
            });
        }
        each_tuned(m, |i, gear, of_ratio| {
            let leader = self.gears.ties[gear].leader;
            let by = match of_ratio {
                true => self.ending(w, leader, h, end),
                false => 1.0,
            };
            out.p[i] -= by * law[gear];
        });
    }

    /// Coordinates and rates of a start, on the gears.
    pub(super) fn geared_start(
        &self,
        m: &Mechanism,
        q: &[f64],
        rates: &[f64],
    ) -> (Vec<f64>, Vec<f64>) {
        let (mut q, mut rates) = (q.to_vec(), rates.to_vec());
        self.gears.close(m, &mut q);
        self.gears.level(m, &mut rates);
        (q, rates)
    }

    /// Rates on the gears nearest to these, by kinetic energy at coordinates.
    pub(super) fn nearest_rates(&self, q: &[f64], rates: &[f64]) -> Vec<f64> {
        let m = &self.mechanism;
        let tangents = self.tangents_on_gears(m);
        let mass = m.mass_matrix(&m.tree_basis(&m.forward(q)));
        let weighted = tangents.tr_mul(&mass);
        let impulses = &weighted * nalgebra::DVector::from_column_slice(rates);
        match (weighted * &tangents).cholesky() {
            Some(c) => (tangents * c.solve(&impulses)).as_slice().to_vec(),
            None => rates.to_vec(),
        }
    }

    /// Changes of all coordinates by those of the roots.
    fn tangents_on_gears(&self, m: &Mechanism) -> DMatrix<f64> {
        let mut by = vec![1.0; self.freedoms];
        self.gears.level(m, &mut by);
        let mut out = DMatrix::zeros(self.freedoms, self.gears.free.len());
        for ((i, root), by) in self.gears.root.iter().enumerate().zip(&by) {
            out[(i, *root)] = *by;
        }
        out
    }

    /// Derivatives of the state at a start by the parameters, where these set gears: the roots stay. `rates` are those of the state,
    /// `earlier` the coordinates an interval before it, if there is one.
    pub(super) fn start_by_gears(
        &self,
        start: &Start,
        rates: &[f64],
        earlier: Option<&[f64]>,
        w: &Work,
    ) -> DMatrix<f64> {
        let (n, h, m) = (self.freedoms, start.before, &w.model);
        let (q, _) = self.geared_start(m, start.coordinates, start.rates);
        let mut out = DMatrix::zeros(2 * n, m.parameters.len());
        let mut tuned = vec![(0.0, 0.0); self.gears.count()];
        for i in 0..m.parameters.len() {
            let mut dp = vec![0.0; m.parameters.len()];
            dp[i] = 1.0;
            self.gears.tune(m, &dp, &mut tuned);
            let follow = |at: &[f64], by_offset: f64| {
                let mut change = vec![0.0; n];
                for link in &self.gears.links {
                    let (ratio, offset) = tuned[link.gear];
                    let leader = at[self.gears.ties[link.gear].leader];
                    let more = ratio * leader + by_offset * offset;
                    let a = link.relation(m).0;
                    let more = if link.leads { -a * more } else { more };
                    change[link.coordinate] = a * change[link.of] + more;
                }
                change
            };
            let now = follow(&q, 1.0);
            let moved: Vec<f64> = match earlier {
                None => follow(rates, 0.0),
                Some(old) => {
                    let each = now.iter().zip(follow(old, 1.0)).enumerate();
                    let by = |c: usize| h * by_rate(rates[c], self.gears.places[c].1, h);
                    each.map(|(c, (now, then))| (now - then) / by(c)).collect()
                }
            };
            out.view_mut((0, i), (n, 1)).copy_from_slice(&now);
            out.view_mut((n, i), (n, 1)).copy_from_slice(&moved);
        }
        out
    }
}

/// The joint chart of states on the gears: coordinates and rates of the roots.
#[derive(Clone, Debug, Default)]
struct GearChart {
    /// Of every direction, the root's place among them; these.
    root: Vec<usize>,
    free: Vec<usize>,
    /// How far every number of the free chart moves by its root's.
    factors: Vec<f64>,
}

impl GearChart {
    fn of(frame: &Frame) -> Option<&Self> {
        match frame {
            Frame::Chart(chart) => {
                let chart: &dyn Any = chart.as_ref();
                chart.downcast_ref()
            }
            // of a part of the state
            Frame::Parts(parts) => Self::of(parts.first()?),
            _ => None,
        }
    }

    /// Every number of the free chart with that of the joint chart.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (n, count) = (self.root.len(), self.free.len());
        let each = move |(i, r): (usize, &usize)| (i, *r);
        let rates = move |(i, r): (usize, &usize)| (n + i, count + *r);
        let all = self.root.iter().enumerate();
        all.clone().map(each).chain(all.map(rates))
    }

    /// Every number of the joint chart with that of the free chart.
    fn roots(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (n, all) = (self.root.len(), self.free.iter().copied());
        all.clone().chain(all.map(move |i| n + i)).enumerate()
    }
}

impl Chart for GearChart {
    fn dims(&self) -> (usize, usize) {
        (2 * self.root.len(), 2 * self.free.len())
    }

    fn embed(&self, joint: &[f64], free: &mut [f64]) {
        for (i, r) in self.pairs() {
            free[i] = self.factors[i] * joint[r];
        }
    }

    fn embed_transposed(&self, free: &mut [f64], joint: &mut [f64]) {
        joint.fill(0.0);
        for (i, r) in self.pairs() {
            joint[r] += self.factors[i] * free[i];
        }
    }

    fn project(&self, free: &mut [f64], joint: &mut [f64]) {
        for (r, i) in self.roots() {
            joint[r] = free[i];
        }
    }
}

impl Minimal {
    /// [`crate::dynamics::Charts::frame_in`] where there are gears.
    pub(super) fn gear_frame(&self, at: &Knot, x: &[f64], m: &Mechanism, out: &mut Frame) {
        let n = self.freedoms;
        let set = |chart: &mut GearChart| {
            let (positions, rates) = chart.factors.split_at_mut(n);
            positions.fill(1.0);
            self.gears.level(m, positions);
            let own = &x[self.positions..];
            self.gears.rates_by_roots(m, at.h_prev, own, rates);
        };
        if let Some(chart) = out.chart_mut::<GearChart>() {
            return set(chart);
        }
        let mut chart = GearChart {
            root: self.gears.root.clone(),
            free: self.gears.free.clone(),
            factors: vec![0.0; 2 * n],
        };
        set(&mut chart);
        *out = Frame::Chart(Arc::new(chart));
    }

    /// Moves a state by a change of the joint chart, on the gears of the model; not finite where one does not reach so far.
    pub(super) fn move_on_gears(
        &self,
        at: &Knot,
        x: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut Work,
        out: &mut [f64],
    ) {
        let mut free = std::mem::take(&mut w.inputs.x);
        match frame {
            Frame::Chart(chart) => chart.embed(d, &mut free),
            // of another system
            _ => free.fill(f64::NAN),
        }
        self.move_state(x, &free, out);
        free.fill(0.0);
        w.inputs.x = free;
        (self.gears).close_state(&w.model, at.h_prev, self.positions, out);
    }

    /// Changes of all coordinates by those of the chart, at the knot and at the knot before.
    pub(super) fn gear_tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        let chart = GearChart::of(frame)?;
        let (n, count) = (chart.root.len(), chart.free.len());
        let mut out = DMatrix::zeros(n, count);
        for (i, r) in chart.pairs().take(n) {
            out[(i, r)] = chart.factors[i];
        }
        Some([out.clone(), out])
    }
}

/// A linear model of the free chart in the joint one.
pub(super) fn fold(free: &LinearModel, from: &Frame, to: &Frame, out: &mut LinearModel) {
    let (Some(own), Some(next)) = (GearChart::of(from), GearChart::of(to)) else {
        let project = to.project();
        out.a.copy_from(&(&project * &free.a * from.embed()));
        out.b.copy_from(&(&project * &free.b));
        out.p.copy_from(&(&project * &free.p));
        return;
    };
    out.a.fill(0.0);
    for (i, column) in own.pairs() {
        for (row, r) in next.roots() {
            out.a[(row, column)] += own.factors[i] * free.a[(r, i)];
        }
    }
    for (row, r) in next.roots() {
        out.b.row_mut(row).copy_from(&free.b.row(r));
        out.p.row_mut(row).copy_from(&free.p.row(r));
    }
}
