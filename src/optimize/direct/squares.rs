//! What costs add to a knot's second derivatives beside those of their quantities: products of the quantities' gradients.
//!
//! A cost `s(h) f(q)`, with the share `s` of its knot, has the second derivatives
//!
//! ```text
//! s f'' dq dq' + f' (ds dq' + dq ds') + s f' d2q
//! ```
//!
//! of which only the last is a matter of differences: with slopes `s f'` that are held, quantities that are linear in what is
//! moved, as controls and the coordinates of a slide are, have none. The first two are exact, from one row a quantity.

use super::knot::{Here, Local, Shared};
use crate::dynamics::{Observe, StepError};

/// A place of the lower triangle that a quantity's products reach, and where it is among the entries.
#[derive(Clone, Copy)]
pub struct Product {
    pub row: usize,
    pub column: usize,
    pub entry: usize,
}

/// What the Lagrangian is made of at a knot, by the quantities observed there.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Its slopes.
    pub slopes: Vec<f64>,
    /// Second derivatives of the costs.
    curvatures: Vec<f64>,
    /// Derivatives of the slopes by the intervals before and behind the knot.
    by_h_prev: Vec<f64>,
    by_h: Vec<f64>,
    /// Gradients of the quantities by the knot's own variables, one after the other, and of a slope.
    rows: Vec<f64>,
    by_times: Vec<f64>,
}

impl Weights {
    fn clear(&mut self, count: usize) {
        let lists = [
            &mut self.slopes,
            &mut self.curvatures,
            &mut self.by_h_prev,
            &mut self.by_h,
        ];
        for list in lists {
            list.clear();
            list.resize(count, 0.0);
        }
    }

    fn are_squares(&self) -> bool {
        let lists = [&self.curvatures, &self.by_h_prev, &self.by_h];
        lists.into_iter().flatten().any(|v| *v != 0.0)
    }
}

impl<D: Observe> Shared<'_, D> {
    /// The weights at a point, with the rows of the quantities where products of these count.
    pub fn weigh(
        &self,
        here: &Here,
        (l, w): (&mut Local, &mut D::Work),
        (objective, constraints): (f64, &[f64]),
        out: &mut Weights,
    ) -> Result<(), StepError> {
        let stage = self.layout.stage(here.at.k);
        out.clear(stage.which.len());
        if stage.which.is_empty() {
            return Ok(());
        }
        for (&(i, place), y) in stage.constraints.iter().zip(constraints) {
            out.slopes[place] += y * self.problem.constraints[i].sign();
        }
        if stage.costs.iter().all(|(i, _)| self.held[*i].is_some()) {
            return Ok(());
        }
        let width = self.width(here.next.is_some());
        out.rows.resize(stage.which.len() * width, 0.0);
        let at = self.quantity_rows(here, l, w, width, &mut out.rows)?;
        for &(i, place) in stage.costs.iter().filter(|(i, _)| self.held[*i].is_none()) {
            let c = &self.problem.costs[i];
            let distance = l.values[place] - self.problem.target(c, at.k);
            let (_, slope, _) = c.form.at(c.weight, distance);
            let curvature = c.form.second_derivative(c.weight, distance);
            let share = self.problem.quadrature.share(c.when, &at);
            out.slopes[place] += objective * share.weight * slope;
            out.curvatures[place] += objective * share.weight * curvature;
            out.by_h_prev[place] += objective * share.by_h_prev * slope;
            out.by_h[place] += objective * share.by_h * slope;
        }
        Ok(())
    }

    /// Adds the products to the entries.
    pub fn add_products(
        &self,
        here: &Here,
        weights: &mut Weights,
        products: &[Vec<Product>],
        out: &mut [f64],
    ) {
        if !weights.are_squares() {
            return;
        }
        let width = self.width(here.next.is_some());
        let first = self.own(here.next.is_some()) - self.free.len();
        let t = &mut weights.by_times;
        t.clear();
        t.resize(width, 0.0);
        for (place, products) in products.iter().enumerate() {
            let g = &weights.rows[place * width..(place + 1) * width];
            t[first..first + self.free.len()].fill(0.0);
            for (j, before, after) in self.times(here.at.k) {
                t[first + j] += before * weights.by_h_prev[place] + after * weights.by_h[place];
            }
            let curvature = weights.curvatures[place];
            for p in products {
                let (i, j) = (p.row, p.column);
                out[p.entry] += curvature * g[i] * g[j] + t[i] * g[j] + g[i] * t[j];
            }
        }
    }
}
