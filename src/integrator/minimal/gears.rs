//! Gears: coordinates that follow others, `c_f = ratio c_l + offset`, slides or angles of joints with one rotation, unwound.
//!
//! Gears that share coordinates tie these to one, the root of their group, `c = a c_root + b`; a gear that adds nothing to others is
//! refused. Impulses `mu` (N s, N m s) act along coordinates, at the knot, and gears hold at the next one. Of rates of displacement
//! `rho` behind the knot that is `G rho = 0` with rows `G` of constants, 1 at the follower and `-ratio` at the leader, and the step's
//! matrix `K` is bordered,
//!
//! ```text
//! [K  -G'] [rho]     [residual]
//! [G   0 ] [mu ] = - [   0    ],     mu = -(G K^-1 G')^-1 G rho0,     rho = rho0 + K^-1 G' mu,
//! ```
//!
//! where `rho0` is what the recursion gives without gears: it also gives the columns `K^-1 G'`, so that a solve with `m` gears costs
//! O(n m). Every trial is brought onto the gears, the roots' coordinates staying, and so is every state, so that nothing drifts. What
//! moves gears themselves (a state off them, ratios, offsets) is a displacement of followers that comes before the solve
//! ([`gears_derivative`](super::gears_derivative)).

use super::work::Work;
use super::{Minimal, Node};
use crate::mechanism::{CoordinateId, Gear, Law, Mechanism, ModelError};
use crate::spatial::Vec3;
use nalgebra::DMatrix;
use std::f64::consts::PI;

/// A gear's coordinates, among all free directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie {
    pub follower: usize,
    pub leader: usize,
}

/// A coordinate that follows another, which is nearer to the root of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub coordinate: usize,
    pub of: usize,
    pub gear: usize,
    /// Is it the gear's leader?
    pub leads: bool,
}

impl Link {
    /// `a`, `b` of `c = a c_of + b`.
    pub fn relation(&self, m: &Mechanism) -> (f64, f64) {
        let g = m.gear(self.gear);
        match self.leads {
            false => (g.ratio, g.offset),
            true => (1.0 / g.ratio, -g.offset / g.ratio),
        }
    }
}

/// The gears of a mechanism and what they tie.
#[derive(Clone, Debug, Default)]
pub(super) struct Gears {
    /// In the order of the mechanism's constraints.
    pub ties: Vec<Tie>,
    /// From the roots outwards.
    pub links: Vec<Link>,
    /// Directions that are free, and of every direction the one among these that it follows.
    pub free: Vec<usize>,
    pub root: Vec<usize>,
    /// Of every direction: where it stands in the state, and does it slide?
    pub places: Vec<(usize, bool)>,
    /// Behind the last direction that is geared.
    pub end: usize,
}

/// Memory of gears.
#[derive(Default)]
pub(super) struct Geared {
    /// Of the trial, N s or N m s.
    pub impulses: Vec<f64>,
    /// Of the last solve.
    pub answers: Vec<f64>,
    /// Adjoints of impulses, which the next transposed solve takes.
    pub adjoint: Vec<f64>,
    /// Of rates of displacement behind the knot.
    pub ends: Vec<f64>,
    /// Columns `K^-1 G'`, along free directions and of bodies.
    columns: Vec<f64>,
    bodies: Vec<(Vec3, Vec3)>,
    /// Factors of `G K^-1 G'`, by columns, and the rows' order.
    lu: Vec<f64>,
    order: Vec<usize>,
    pub along: Vec<f64>,
    wrenches: Vec<(Vec3, Vec3)>,
    /// Changes, or adjoints, of ratios and offsets.
    pub tuned: Vec<(f64, f64)>,
}

impl Geared {
    pub fn new(minimal: &Minimal) -> Self {
        let (m, n) = (minimal.gears.count(), minimal.nodes.len());
        if m == 0 {
            return Self::default();
        }
        let (zero, freedoms) = ((Vec3::zeros(), Vec3::zeros()), minimal.freedoms);
        Self {
            impulses: vec![0.0; m],
            answers: vec![0.0; m],
            adjoint: vec![0.0; m],
            ends: vec![0.0; freedoms],
            columns: vec![0.0; m * freedoms],
            bodies: vec![zero; m * n],
            lu: vec![0.0; m * m],
            order: vec![0; m],
            along: vec![0.0; freedoms],
            wrenches: vec![zero; n],
            tuned: vec![(0.0, 0.0); m],
        }
    }
}

impl Geared {
    /// Impulses change by those of the last solve.
    pub fn take_answers(&mut self) {
        let each = self.impulses.iter_mut().zip(&self.answers);
        each.for_each(|(to, by)| *to += by);
    }
}

fn gears(m: &Mechanism) -> impl Iterator<Item = (&str, &Gear)> {
    m.constraints.iter().filter_map(|c| match &c.law {
        Law::Gear(g) => Some((c.name.as_str(), g)),
        _ => None,
    })
}

/// Where a coordinate of the tree stands among all.
fn direction(m: &Mechanism, (joint, i): CoordinateId) -> Option<usize> {
    let edge = m.tree.edges.iter().find(|e| e.joint == joint);
    edge.map(|e| e.first + i)
}

/// Refuses gears that follow from others, or contradict them.
pub(super) fn check(m: &Mechanism) -> Result<(), ModelError> {
    let mut group: Vec<usize> = (0..m.tree.coordinates).collect();
    for (name, g) in gears(m) {
        // of a joint that closes a loop is refused before
        let (Some(a), Some(b)) = (direction(m, g.follower), direction(m, g.leader)) else {
            continue;
        };
        let (a, b) = (group[a], group[b]);
        if a == b {
            return Err(ModelError::new(
                ["gears", name],
                format!(
                    "gear `{name}` ties coordinates that other gears tie already, which joint coordinates do not offer"
                ),
                "leave it out if it follows from the others, or take the integrator in maximal coordinates, `maximal`",
            ));
        }
        group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
    }
    Ok(())
}

/// The displacement over an interval at a rate, and the way back, not finite of half a turn and more.
fn moved(rate: f64, slides: bool, h: f64) -> f64 {
    match slides {
        true => h * rate,
        false => 2.0 * (0.5 * h * rate).asin(),
    }
}

fn rate_over(moved: f64, slides: bool, h: f64) -> f64 {
    match slides {
        true => moved / h,
        false if moved.abs() < PI => (0.5 * moved).sin() * 2.0 / h,
        false => f64::NAN,
    }
}

/// Change of the displacement by the interval, by that of the rate.
pub(super) fn by_rate(rate: f64, slides: bool, h: f64) -> f64 {
    match slides {
        true => 1.0,
        false => 1.0 / (1.0 - 0.25 * h * h * rate * rate).sqrt(),
    }
}

impl Gears {
    /// Of every group the coordinate is free that moves most, those preferred first.
    pub fn new(m: &Mechanism, nodes: &[Node], preferred: &[bool]) -> Self {
        let n = m.tree.coordinates;
        let mut places = vec![(0, false); n];
        for node in nodes {
            for (i, index) in node.directions().enumerate() {
                places[index] = (node.place + i, i < node.slides);
            }
        }
        let ties: Vec<Tie> = (gears(m))
            .filter_map(|(_, g)| {
                let (follower, leader) = (direction(m, g.follower)?, direction(m, g.leader)?);
                Some(Tie { follower, leader })
            })
            .collect();
        let mut out = Self {
            end: (ties.iter()).fold(0, |end, t| end.max(t.follower + 1).max(t.leader + 1)),
            free: vec![],
            root: vec![usize::MAX; n],
            links: vec![],
            places,
            ties,
        };
        for first in 0..n {
            if out.root[first] != usize::MAX {
                continue;
            }
            // how far each moves by the first
            let mut size = vec![(first, 1.0_f64)];
            for link in out.group(first) {
                let of = size.iter().find(|(c, _)| *c == link.of);
                let of = of.map_or(1.0, |(_, size)| *size);
                size.push((link.coordinate, of * link.relation(m).0.abs()));
            }
            let is_preferred = |c: usize| preferred.get(c).copied().unwrap_or(false);
            let best = size.iter().max_by(|(a, size_a), (b, size_b)| {
                let first = is_preferred(*a).cmp(&is_preferred(*b));
                first.then(size_a.total_cmp(size_b))
            });
            let root = best.map_or(first, |(c, _)| *c);
            let links = out.group(root);
            out.root[root] = root;
            links
                .iter()
                .for_each(|link| out.root[link.coordinate] = root);
            out.links.extend(links);
            out.free.push(root);
        }
        out.free.sort_unstable();
        for root in &mut out.root {
            // every root is free
            *root = out.free.partition_point(|f| *f < *root);
        }
        out
    }

    /// Which directions are free.
    pub fn held(&self) -> Vec<bool> {
        let mut out = vec![false; self.root.len()];
        self.free.iter().for_each(|i| out[*i] = true);
        out
    }

    /// What is tied to a coordinate, outwards.
    fn group(&self, root: usize) -> Vec<Link> {
        let mut out: Vec<Link> = vec![];
        let mut reached = vec![root];
        let mut next = 0;
        while let Some(&of) = reached.get(next) {
            next += 1;
            for (gear, tie) in self.ties.iter().enumerate() {
                let (coordinate, leads) = match *tie {
                    Tie { follower, leader } if leader == of => (follower, false),
                    Tie { follower, leader } if follower == of => (leader, true),
                    _ => continue,
                };
                if !reached.contains(&coordinate) {
                    reached.push(coordinate);
                    out.push(Link {
                        coordinate,
                        of,
                        gear,
                        leads,
                    });
                }
            }
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.ties.is_empty()
    }

    pub fn count(&self) -> usize {
        self.ties.len()
    }

    /// Brings coordinates onto the gears.
    pub fn close(&self, m: &Mechanism, q: &mut [f64]) {
        for link in &self.links {
            let (a, b) = link.relation(m);
            q[link.coordinate] = a * q[link.of] + b;
        }
    }

    /// Brings changes of coordinates, or rates of the instant, onto the gears.
    pub fn level(&self, m: &Mechanism, d: &mut [f64]) {
        for link in &self.links {
            d[link.coordinate] = link.relation(m).0 * d[link.of];
        }
    }

    /// The same, row by row of `rows` on.
    pub fn level_rows(&self, m: &Mechanism, first: usize, rows: &mut DMatrix<f64>) {
        for link in &self.links {
            let by = rows.row(first + link.of) * link.relation(m).0;
            rows.set_row(first + link.coordinate, &by);
        }
    }

    /// Brings a state onto the gears, its rates those of an interval `h` before it, or of the instant; not finite where that is too
    /// far.
    pub fn close_state(&self, m: &Mechanism, h: f64, positions: usize, x: &mut [f64]) {
        let (q, rates) = x.split_at_mut(positions);
        for link in &self.links {
            let (a, b) = link.relation(m);
            let ((place, slides), (of, of_slides)) =
                (self.places[link.coordinate], self.places[link.of]);
            q[place] = a * q[of] + b;
            rates[link.coordinate] = match h {
                0.0 => a * rates[link.of],
                _ => rate_over(a * moved(rates[link.of], of_slides, h), slides, h),
            };
        }
    }

    /// How far rates of geared coordinates change by those of their roots, `out[i]`, where the rates are those of `h`.
    pub fn rates_by_roots(&self, m: &Mechanism, h: f64, rates: &[f64], out: &mut [f64]) {
        out.fill(1.0);
        self.level(m, out);
        for link in &self.links {
            let root = self.free[self.root[link.coordinate]];
            let of = |c: usize| by_rate(rates[c], self.places[c].1, h);
            out[link.coordinate] *= of(root) / of(link.coordinate);
        }
    }

    /// Rates of an interval of another length over which all moves as far, by that length.
    pub fn by_interval(&self, h: f64, rates: &[f64], out: &mut [f64]) {
        for tie in self.ties.iter().filter(|_| h != 0.0) {
            for c in [tie.follower, tie.leader] {
                out[c] = -rates[c] / h;
            }
        }
    }

    /// Adds `G' mu`.
    pub fn add_along(&self, m: &Mechanism, mu: &[f64], scale: f64, rows: &mut [f64]) {
        for (gear, (tie, mu)) in self.ties.iter().zip(mu).enumerate() {
            rows[tie.follower] += scale * mu;
            rows[tie.leader] -= scale * m.gear(gear).ratio * mu;
        }
    }

    /// `G d`, gear by gear.
    pub fn across(&self, m: &Mechanism, d: &[f64], mut each: impl FnMut(usize, f64)) {
        for (gear, tie) in self.ties.iter().enumerate() {
            each(gear, d[tie.follower] - m.gear(gear).ratio * d[tie.leader]);
        }
    }

    /// Brings a residual to the roots, the impulses being those that leave nothing to followers.
    pub fn reduce(&self, m: &Mechanism, rows: &mut [f64], mut impulse: impl FnMut(usize, f64)) {
        for link in self.links.iter().rev() {
            let (row, ratio) = (rows[link.coordinate], m.gear(link.gear).ratio);
            let mu = if link.leads { -row / ratio } else { row };
            rows[link.of] += link.relation(m).0 * row;
            rows[link.coordinate] = 0.0;
            impulse(link.gear, mu);
        }
    }
}

/// Factors of a small matrix by columns, in place; is it regular?
fn decompose(a: &mut [f64], order: &mut [usize]) -> bool {
    let n = order.len();
    order.iter_mut().enumerate().for_each(|(i, o)| *o = i);
    for k in 0..n {
        let size = |r: &usize| a[k * n + r].abs();
        let pivot = (k..n)
            .max_by(|a, b| size(a).total_cmp(&size(b)))
            .unwrap_or(k);
        if !(a[k * n + pivot].abs() > 0.0 && a[k * n + pivot].is_finite()) {
            return false;
        }
        if pivot != k {
            order.swap(k, pivot);
            (0..n).for_each(|c| a.swap(c * n + k, c * n + pivot));
        }
        for r in k + 1..n {
            a[k * n + r] /= a[k * n + k];
            for c in k + 1..n {
                a[c * n + r] -= a[k * n + r] * a[c * n + k];
            }
        }
    }
    true
}

/// Solves with them, in place; `spare` is as long.
fn solve_small(lu: &[f64], order: &[usize], spare: &mut [f64], x: &mut [f64]) {
    let n = order.len();
    for (to, from) in spare.iter_mut().zip(order) {
        *to = x[*from];
    }
    for r in 0..n {
        let known: f64 = (0..r).map(|c| lu[c * n + r] * spare[c]).sum();
        spare[r] -= known;
    }
    for r in (0..n).rev() {
        let known: f64 = (r + 1..n).map(|c| lu[c * n + r] * spare[c]).sum();
        spare[r] = (spare[r] - known) / lu[r * n + r];
    }
    x[..n].copy_from_slice(spare);
}

/// The same with the transposed matrix.
fn solve_small_transposed(lu: &[f64], order: &[usize], spare: &mut [f64], x: &mut [f64]) {
    let n = order.len();
    for r in 0..n {
        let known: f64 = (0..r).map(|c| lu[r * n + c] * x[c]).sum();
        x[r] = (x[r] - known) / lu[r * n + r];
    }
    for r in (0..n).rev() {
        let known: f64 = (r + 1..n).map(|c| lu[r * n + c] * x[c]).sum();
        x[r] -= known;
    }
    for (from, to) in x.iter().zip(order) {
        spare[*to] = *from;
    }
    x[..n].copy_from_slice(spare);
}

impl Minimal {
    /// Of the unknowns, what contacts hold and the gears' impulses.
    pub(super) fn beyond_rates<'a>(&self, y: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        let behind = &y[self.freedoms..];
        behind.split_at(behind.len().saturating_sub(self.gears.count()))
    }

    pub(super) fn beyond_rates_mut<'a>(&self, y: &'a mut [f64]) -> (&'a mut [f64], &'a mut [f64]) {
        let behind = &mut y[self.freedoms..];
        let contacts = behind.len().saturating_sub(self.gears.count());
        behind.split_at_mut(contacts)
    }

    /// The columns `K^-1 G'` with the recursion's factors, and factors of `G K^-1 G'`.
    pub(super) fn factor_gears(&self, w: &mut Work) -> Result<(), usize> {
        if self.gears.is_empty() {
            return Ok(());
        }
        let (n, bodies, count) = (self.freedoms, self.nodes.len(), self.gears.count());
        let mut g = std::mem::take(&mut w.geared);
        std::mem::swap(&mut w.wrenches, &mut g.wrenches);
        for (i, tie) in self.gears.ties.iter().enumerate() {
            w.wrenches.fill(Default::default());
            g.along.fill(0.0);
            g.along[tie.follower] = -1.0;
            g.along[tie.leader] = w.model.gear(i).ratio;
            self.substitute_tree(w, &g.along);
            g.columns[i * n..][..n].copy_from_slice(&w.change);
            g.bodies[i * bodies..][..bodies].copy_from_slice(&w.wrenches);
            let own = &mut g.lu[i * count..][..count];
            (self.gears).across(&w.model, &w.change, |row, by| own[row] = by);
        }
        std::mem::swap(&mut w.wrenches, &mut g.wrenches);
        let is_regular = decompose(&mut g.lu, &mut g.order);
        w.geared = g;
        match is_regular {
            true => Ok(()),
            false => Err(self.nodes[0].body),
        }
    }

    /// Adds to a solve without gears, `w.change` and displacements of bodies in `w.wrenches`, what the gears' impulses do.
    pub(super) fn tie(&self, w: &mut Work) {
        let (n, bodies) = (self.freedoms, self.nodes.len());
        let g = &mut w.geared;
        (self.gears).across(&w.model, &w.change, |row, by| g.answers[row] = -by);
        let spare = &mut g.along[..self.gears.count()];
        solve_small(&g.lu, &g.order, spare, &mut g.answers);
        for (i, mu) in g.answers.iter().enumerate() {
            for (to, by) in w.change.iter_mut().zip(&g.columns[i * n..]) {
                *to += mu * by;
            }
            for (to, by) in w.wrenches.iter_mut().zip(&g.bodies[i * bodies..]) {
                to.0 += by.0 * *mu;
                to.1 += by.1 * *mu;
            }
        }
    }

    /// The transpose: adds to adjoints of rates of displacement, along free directions in `rho` and of bodies in `w.wrenches`, what
    /// multipliers of the gears' rows do. The adjoints of impulses are taken.
    fn tie_back(&self, w: &Work, g: &mut Geared, rho: &[f64]) {
        let (n, bodies) = (self.freedoms, self.nodes.len());
        for (i, (nu, by)) in g.answers.iter_mut().zip(&mut g.adjoint).enumerate() {
            let own = rho.iter().zip(&g.columns[i * n..]);
            *nu = -*by - own.map(|(a, b)| a * b).sum::<f64>();
            for (a, b) in w.wrenches.iter().zip(&g.bodies[i * bodies..]) {
                *nu -= a.0.dot(&b.0) + a.1.dot(&b.1);
            }
            *by = 0.0;
        }
        let spare = &mut g.along[..self.gears.count()];
        solve_small_transposed(&g.lu, &g.order, spare, &mut g.answers);
        g.along.copy_from_slice(rho);
        (self.gears).add_along(&w.model, &g.answers, 1.0, &mut g.along);
    }

    /// [`Minimal::solve_transposed_tree`] of the bordered matrix.
    pub(super) fn solve_transposed(&self, w: &mut Work, rho: &[f64], lambda: &mut [f64]) {
        if self.gears.is_empty() {
            return self.solve_transposed_tree(w, rho, lambda);
        }
        let mut g = std::mem::take(&mut w.geared);
        self.tie_back(w, &mut g, rho);
        self.solve_transposed_tree(w, &g.along, lambda);
        w.geared = g;
    }

    /// What multipliers of the gears' rows add along free directions, of the transposed solves of the next coordinates `rows`, by lanes.
    pub(super) fn tie_lanes<const LANES: usize>(
        &self,
        w: &mut Work,
        h: f64,
        rows: std::ops::Range<usize>,
        out: &mut [[f64; LANES]],
    ) {
        out.fill([0.0; LANES]);
        let (n, g) = (self.freedoms, &mut w.geared);
        for (lane, row) in rows.enumerate() {
            for (i, nu) in g.answers.iter_mut().enumerate() {
                *nu = -h * g.columns[i * n + row];
            }
            let spare = &mut g.along[..self.gears.count()];
            solve_small_transposed(&g.lu, &g.order, spare, &mut g.answers);
            for (gear, (tie, nu)) in self.gears.ties.iter().zip(&g.answers).enumerate() {
                out[tie.follower][lane] += nu;
                out[tie.leader][lane] -= w.model.gear(gear).ratio * nu;
            }
        }
    }

    /// Takes the gears' impulses off a residual.
    pub(super) fn take_impulses(&self, w: &Work, rows: &mut [f64]) {
        (self.gears).add_along(&w.model, &w.geared.impulses, -1.0, rows);
    }

    /// Where a geared coordinate is at the end of the trial, or its rate of the instant.
    pub(super) fn at_end(&self, w: &Work, coordinate: usize, h: f64) -> f64 {
        let (place, slides) = self.gears.places[coordinate];
        let rate = w.rates[coordinate];
        match h {
            0.0 => rate,
            _ => w.positions[place] + moved(rate, slides, h),
        }
    }

    /// Brings the trial's rates onto the gears; not finite where that is too far.
    pub(super) fn close_trial(&self, h: f64, w: &mut Work) {
        for link in &self.gears.links {
            let (a, b) = link.relation(&w.model);
            w.rates[link.coordinate] = match h {
                0.0 => a * w.rates[link.of],
                _ => {
                    let (place, slides) = self.gears.places[link.coordinate];
                    let end = a * self.at_end(w, link.of, h) + b;
                    rate_over(end - w.positions[place], slides, h)
                }
            };
        }
    }

    /// Halves rates of slides, which gears may tie to turns.
    pub(super) fn halve_slides(&self, rates: &mut [f64]) {
        if !self.gears.is_empty() {
            let each = rates.iter_mut().zip(&self.gears.places);
            each.filter(|(_, p)| p.1).for_each(|(r, _)| *r *= 0.5);
        }
    }
}
