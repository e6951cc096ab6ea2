//! What borders the recursion's matrix `K`: impulses `mu` that are solved for beside the rates of displacement `rho`, those of gears
//! ([`gears`](super::gears)) and changes of those of dampers between points ([`dampers`](super::dampers)),
//!
//! ```text
//! [K  -L] [rho]     [residual]
//! [R   E] [mu ] = - [   0    ],     mu = -(E + R K^-1 L)^-1 R rho0,     rho = rho0 + K^-1 L mu,
//! ```
//!
//! where `rho0` is what the recursion gives alone: it also gives the columns `K^-1 L`, so that `m` impulses cost `m` more passes in a
//! factorization, and O(n m) in a solve. Of a gear `L' = R` is its row along free directions, and `E` is 0. A damper's column is its
//! wrench on bodies at the knot, its row what displacements of bodies make it exert at the trial, and `E` is 1.

use super::Minimal;
use super::derivative::{Six, add};
use super::work::Work;
use crate::block::small::{lu_factor, lu_solve, lu_solve_transposed};
use std::ops::Range;

/// Memory of what is solved for beside the rates: of gears first, of dampers behind them.
#[derive(Default)]
pub(super) struct Border {
    /// Of the last solve.
    pub answers: Vec<f64>,
    /// Columns `K^-1 L`, along free directions and of bodies.
    columns: Vec<f64>,
    bodies: Vec<Six>,
    /// Factors of `E + R K^-1 L`, by columns, and the rows' order.
    lu: Vec<f64>,
    order: Vec<usize>,
    spare: Vec<f64>,
    along: Vec<f64>,
    wrenches: Vec<Six>,
}

impl Border {
    pub fn new(minimal: &Minimal) -> Self {
        let (m, n, freedoms) = (minimal.bordered(), minimal.nodes.len(), minimal.freedoms);
        if m == 0 {
            return Self::default();
        }
        Self {
            answers: vec![0.0; m],
            columns: vec![0.0; m * freedoms],
            bodies: vec![Default::default(); m * n],
            lu: vec![0.0; m * m],
            order: vec![0; m],
            spare: vec![0.0; m],
            along: vec![0.0; freedoms],
            wrenches: vec![Default::default(); n],
        }
    }
}

impl Minimal {
    /// How many impulses are solved for beside the rates.
    pub(super) fn bordered(&self) -> usize {
        self.gears.count() + self.dampers.len()
    }

    /// The columns `K^-1 L` with the recursion's factors, and factors of `E + R K^-1 L`.
    pub(super) fn factor_border(&self, w: &mut Work, h: f64) -> Result<(), usize> {
        let count = self.bordered();
        if count == 0 {
            return Ok(());
        }
        self.factor_dampers(w, h);
        let (n, bodies, gears) = (self.freedoms, self.nodes.len(), self.gears.count());
        let mut b = std::mem::take(&mut w.border);
        std::mem::swap(&mut w.wrenches, &mut b.wrenches);
        for i in 0..count {
            w.wrenches.fill(Default::default());
            b.along.fill(0.0);
            match self.gears.ties.get(i) {
                Some(tie) => {
                    b.along[tie.follower] = -1.0;
                    b.along[tie.leader] = w.model.gear(i).ratio;
                }
                None => self.exert_damper(w, i - gears, -1.0),
            }
            self.substitute_tree(w, &b.along);
            b.columns[i * n..][..n].copy_from_slice(&w.change);
            b.bodies[i * bodies..][..bodies].copy_from_slice(&w.wrenches);
            let own = &mut b.lu[i * count..][..count];
            self.across_border(w, |row, by| own[row] = by);
            if i >= gears {
                own[i] += 1.0;
            }
        }
        std::mem::swap(&mut w.wrenches, &mut b.wrenches);
        let is_regular = lu_factor(&mut b.lu, &mut b.order);
        w.border = b;
        match is_regular {
            true => Ok(()),
            false => Err(self.nodes[0].body),
        }
    }

    /// `R rho`, row by row, of rates of displacement in `w.change` and of bodies in `w.wrenches`.
    fn across_border(&self, w: &Work, mut each: impl FnMut(usize, f64)) {
        self.gears.across(&w.model, &w.change, &mut each);
        self.across_dampers(w, |row, by| each(self.gears.count() + row, by));
    }

    /// Adds to a solve by the recursion alone, `w.change` and displacements of bodies in `w.wrenches`, what the impulses do.
    pub(super) fn tie(&self, w: &mut Work) {
        let (n, bodies) = (self.freedoms, self.nodes.len());
        let mut b = std::mem::take(&mut w.border);
        self.across_border(w, |row, by| b.answers[row] = -by);
        lu_solve(&b.lu, &b.order, &mut b.spare, &mut b.answers);
        for (i, mu) in b.answers.iter().enumerate() {
            for (to, by) in w.change.iter_mut().zip(&b.columns[i * n..]) {
                *to += mu * by;
            }
            for (to, by) in w.wrenches.iter_mut().zip(&b.bodies[i * bodies..]) {
                add(to, &(by.0 * *mu, by.1 * *mu));
            }
        }
        w.border = b;
    }

    /// The transpose: adds to adjoints of rates of displacement, along free directions in `rho` and of bodies in `w.wrenches`, what
    /// multipliers of the rows do: to the former in `along`. The adjoints of gears' impulses are taken.
    fn tie_back(&self, w: &mut Work, b: &mut Border, rho: &[f64]) {
        let (n, bodies) = (self.freedoms, self.nodes.len());
        for (i, nu) in b.answers.iter_mut().enumerate() {
            let own = rho.iter().zip(&b.columns[i * n..]);
            let by = (w.geared.adjoint.get_mut(i)).map_or(0.0, std::mem::take);
            *nu = -by - own.map(|(a, b)| a * b).sum::<f64>();
            for (a, b) in w.wrenches.iter().zip(&b.bodies[i * bodies..]) {
                *nu -= a.0.dot(&b.0) + a.1.dot(&b.1);
            }
        }
        lu_solve_transposed(&b.lu, &b.order, &mut b.spare, &mut b.answers);
        b.along.copy_from_slice(rho);
        let (gears, dampers) = b.answers.split_at(self.gears.count());
        (self.gears).add_along(&w.model, gears, 1.0, &mut b.along);
        self.across_dampers_back(w, dampers);
    }

    /// [`Minimal::solve_transposed_tree`] of the bordered matrix.
    pub(super) fn solve_transposed(&self, w: &mut Work, rho: &[f64], lambda: &mut [f64]) {
        if self.bordered() == 0 {
            return self.solve_transposed_tree(w, rho, lambda);
        }
        let mut b = std::mem::take(&mut w.border);
        self.tie_back(w, &mut b, rho);
        self.solve_transposed_tree(w, &b.along, lambda);
        w.border = b;
    }

    /// What multipliers of the gears' rows add along free directions, of the transposed solves of the next coordinates `rows`, by
    /// lanes, where there are no dampers between points.
    pub(super) fn tie_lanes<const LANES: usize>(
        &self,
        w: &mut Work,
        h: f64,
        rows: Range<usize>,
        out: &mut [[f64; LANES]],
    ) {
        out.fill([0.0; LANES]);
        let (n, b) = (self.freedoms, &mut w.border);
        for (lane, row) in rows.enumerate() {
            for (i, nu) in b.answers.iter_mut().enumerate() {
                *nu = -h * b.columns[i * n + row];
            }
            lu_solve_transposed(&b.lu, &b.order, &mut b.spare, &mut b.answers);
            for (gear, (tie, nu)) in self.gears.ties.iter().zip(&b.answers).enumerate() {
                out[tie.follower][lane] += nu;
                out[tie.leader][lane] -= w.model.gear(gear).ratio * nu;
            }
        }
    }
}
