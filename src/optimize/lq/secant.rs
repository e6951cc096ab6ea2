//! What Gauss and Newton's curvature lacks, learnt from the derivatives of successive paths.
//!
//! The Hessian of the Lagrangian has, beside `sum weight row' row`, the curvature of the dynamics and of the quantities,
//! `sum_j p_j d2 f_j + sum_i g_i d2 q_i`, with `p` the adjoint of the next state and `g` the slope of a quantity's cost.
//! It falls apart into one block a knot. After a step `s` of a knot its block `B` is to satisfy
//!
//! ```text
//! B s = y = (F_new - F_old)' p + sum_i g_i (row_new - row_old)
//! ```
//!
//! Each block is small and sees a step in every iteration, so that the symmetric rank-one update learns it within a few
//! (partitioned updates: Griewank and Toint, Numer. Math. 39, 1982; structured ones: Dennis, Gay, Welsch, ACM TOMS 7,
//! 1981).

use super::dense::{dot, gemv, gemv_transposed};
use super::model::Sizes;

/// Blocks of curvature, w x w a knot, the last included.
#[derive(Clone, Debug)]
pub struct Secant {
    /// Is it part of the model now?
    pub used: bool,
    /// Is it worth the effort? Far from a solution it is not.
    pub learning: bool,
    learnt: bool,
    blocks: Vec<f64>,
    /// w a knot: the step that led to the path; zero where none did.
    pub step: Vec<f64>,
    y: Vec<f64>,
    /// Derivatives at the path before.
    f: Vec<f64>,
    has_previous: bool,
    adjoint: Vec<f64>,
    next: Vec<f64>,
    r: Vec<f64>,
    sizes: Sizes,
}

impl Secant {
    /// Allocates nothing before it learns.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            used: false,
            learning: false,
            learnt: false,
            blocks: vec![],
            step: vec![],
            y: vec![],
            f: vec![],
            has_previous: false,
            adjoint: vec![0.0; sizes.n],
            next: vec![0.0; sizes.n],
            r: vec![0.0; sizes.w()],
            sizes,
        }
    }

    pub fn block(&self, k: usize) -> &[f64] {
        let size = self.sizes.w() * self.sizes.w();
        &self.blocks[k * size..(k + 1) * size]
    }

    /// All blocks, if anything has been learnt.
    pub fn blocks(&self) -> &[f64] {
        if self.learnt { &self.blocks } else { &[] }
    }

    /// Goes on with blocks that were learnt, or none; the next model is the first that is seen, if it is `learning`.
    pub fn restore(&mut self, blocks: &[f64], learning: bool) {
        if !blocks.is_empty() {
            self.blocks = blocks.to_vec();
        }
        self.learnt = !blocks.is_empty();
        (self.learning, self.has_previous) = (learning, false);
    }

    /// What was learnt is of other derivatives.
    pub fn reset(&mut self) {
        self.blocks.fill(0.0);
        self.step.fill(0.0);
        (self.learnt, self.has_previous, self.used) = (false, false, false);
    }

    /// Has anything been learnt?
    pub fn is_learnt(&self) -> bool {
        self.learnt
    }

    /// A new model will be written over `f`.
    pub fn begin(&mut self, f: &mut Vec<f64>) {
        if self.learning {
            self.make_room(f.len());
            std::mem::swap(f, &mut self.f);
            self.y.fill(0.0);
        }
    }

    fn make_room(&mut self, f: usize) {
        let (w, knots) = (self.sizes.w(), self.sizes.steps + 1);
        self.blocks.resize(knots * w * w, 0.0);
        self.step.resize(knots * w, 0.0);
        self.y.resize(knots * w, 0.0);
        self.f.resize(f, 0.0);
    }

    /// The model, whose derivatives are `f`, stays as it is.
    pub fn stay(&mut self, f: &[f64]) {
        self.has_previous = self.learning;
        if self.learning {
            self.make_room(f.len());
            self.step.fill(0.0);
        }
    }

    /// Differences of gradients, which [`add_row_difference`] writes while it learns: w a knot.
    pub fn differences(&mut self) -> &mut [f64] {
        &mut self.y
    }

    /// Learns from the new model.
    pub fn update(&mut self, f: &[f64], l: &[f64]) {
        let (sizes, w, n) = (self.sizes, self.sizes.w(), self.sizes.n);
        if !self.learning {
            self.has_previous = false;
            return;
        }
        let moved = self.step.iter().any(|s| *s != 0.0);
        if self.has_previous && moved {
            self.learnt = true;
            self.adjoint
                .copy_from_slice(&l[sizes.steps * w..sizes.steps * w + n]);
            for k in (0..=sizes.steps).rev() {
                if k < sizes.steps {
                    let all = k * n * w..(k + 1) * n * w;
                    let (new, old) = (&f[all.clone()], &self.f[all]);
                    let y = &mut self.y[k * w..(k + 1) * w];
                    // of a system without motion there are none
                    let width = n.max(1);
                    let columns = new.chunks_exact(width).zip(old.chunks_exact(width));
                    for (y, (new, old)) in y.iter_mut().zip(columns) {
                        let change = new.iter().zip(old).zip(&self.adjoint);
                        *y += change.map(|((n, o), a)| (n - o) * a).sum::<f64>();
                    }
                    self.next.copy_from_slice(&l[k * w..k * w + n]);
                    gemv_transposed(n, &new[..n * n], &self.adjoint, &mut self.next);
                    self.adjoint.copy_from_slice(&self.next);
                }
                self.rank_one(k);
            }
        }
        self.has_previous = true;
        self.step.fill(0.0);
    }

    fn rank_one(&mut self, k: usize) {
        let w = self.sizes.w();
        let b = &mut self.blocks[k * w * w..(k + 1) * w * w];
        let (s, y) = (&self.step[k * w..(k + 1) * w], &self.y[k * w..(k + 1) * w]);
        // r = y - B s
        self.r.fill(0.0);
        gemv(w, b, s, &mut self.r);
        for (r, y) in self.r.iter_mut().zip(y) {
            *r = y - *r;
        }
        let denominator = dot(&self.r, s);
        let size = (dot(&self.r, &self.r) * dot(s, s)).sqrt();
        if size == 0.0 || denominator.abs() <= SKIP * size {
            return;
        }
        for (column, rj) in b.chunks_exact_mut(w.max(1)).zip(&self.r) {
            for (b, ri) in column.iter_mut().zip(&self.r) {
                *b += ri * rj / denominator;
            }
        }
    }
}

/// Updates that would divide by less are left out (Nocedal and Wright, (6.26), who take 1e-8). More skips updates
/// that would be large by rounding or kinks; conventional.
const SKIP: f64 = 1e-3;

/// Adds what a quantity's row changed by, times the slope of its cost, to the difference of gradients of its knot.
pub fn add_row_difference(y: &mut [f64], old: &[f64], slope: f64, row: &[f64]) {
    for ((y, old), row) in y.iter_mut().zip(old).zip(row) {
        *y += slope * (row - old);
    }
}
