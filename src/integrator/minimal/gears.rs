//! Gears: coordinates that follow others, `c_f = ratio c_l + offset`, slides or angles of joints with one rotation, unwound.
//!
//! Gears that share coordinates tie these to one, the root of their group, `c = a c_root + b`; a gear that adds nothing to others is
//! refused. Impulses `mu` (N s, N m s) act along coordinates, at the knot, and gears hold at the next one. Of rates of displacement
//! `rho` behind the knot that is `G rho = 0` with rows `G` of constants, 1 at the follower and `-ratio` at the leader, which border the
//! step's matrix ([`border`](super::border)). Every trial is brought onto the gears, the roots' coordinates staying, and so is every
//! state, so that nothing drifts. What moves gears themselves (a state off them, ratios, offsets) is a displacement of followers that
//! comes before the solve ([`gears_derivative`](super::gears_derivative)).

use super::work::Work;
use super::{Minimal, Node};
use crate::mechanism::{CoordinateId, Gear, Law, Mechanism, ModelError};
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
    /// Adjoints of impulses, which the next transposed solve takes.
    pub adjoint: Vec<f64>,
    /// Of rates of displacement behind the knot.
    pub ends: Vec<f64>,
    pub along: Vec<f64>,
    /// Changes, or adjoints, of ratios and offsets.
    pub tuned: Vec<(f64, f64)>,
}

impl Geared {
    pub fn new(minimal: &Minimal) -> Self {
        let (m, freedoms) = (minimal.gears.count(), minimal.freedoms);
        if m == 0 {
            return Self::default();
        }
        Self {
            impulses: vec![0.0; m],
            adjoint: vec![0.0; m],
            ends: vec![0.0; freedoms],
            along: vec![0.0; freedoms],
            tuned: vec![(0.0, 0.0); m],
        }
    }
}

impl Geared {
    /// Impulses change by those of the last solve.
    pub fn take_answers(&mut self, answers: &[f64]) {
        let each = self.impulses.iter_mut().zip(answers);
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
