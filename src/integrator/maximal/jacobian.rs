//! The linear model of a tree's step in the joint chart, row by row.
//!
//! Only the rows of the next coordinates need to be found: the other half of the next state is the knot the step starts
//! from. The row of a coordinate is a right-hand side on two bodies; one solve with `K'` gives its multipliers `mu` of
//! the bodies' momenta. In place of the velocities one may take `z+` as the unknown, and then nothing but the momenta
//! depends on the inputs (the constraints hold for `z+` alone): with `E = dz+/dV`, `C = dz+/dz`,
//!
//! ```text
//! dr/dz |z+ = -(dp+/dV) E^-1 C + (dp-/dV) Bv^-1 Bz - couplings,     dr/dz- = -(dp-/dV) Bv^-1
//! ```
//!
//! are blocks on pairs of bodies, and the impulses' multipliers are not needed. The products with the tree's tangents
//! add wrenches towards the root ([`Screws`]). Several rows go side by side, as lanes.

use super::assembly::vec3;
use super::chart::{Back, RateRow, Screws, rate_rows, seed};
use super::{Maximal, Work};
use crate::dynamics::{Frame, LinearModel};
use crate::mechanism::{Coupling, Mat6, Row};
use crate::spatial::Pose;
use crate::spatial::{Mat3, Vec3};

/// Rows side by side.
const LANES: usize = 8;

/// A 3 x 3 block of a linear map from one list of six numbers a body to another, row by row.
#[derive(Clone, Copy, Debug)]
struct Quarter {
    to: usize,
    from: usize,
    entries: [[f64; 3]; 3],
}

/// A linear map made of quarters.
#[derive(Clone, Debug, Default)]
struct Quarters(Vec<Quarter>);

impl Quarters {
    /// Adds the transpose of a block; its result's torques turned by `r`. Quarters of zeros are left out.
    fn push_transposed(&mut self, to: usize, from: usize, block: &Mat6, r: &Mat3) {
        for (i, j) in [(0, 0), (0, 3), (3, 0), (3, 3)] {
            let quarter = block.fixed_view::<3, 3>(j, i).transpose();
            if quarter.iter().all(|q| *q == 0.0) {
                continue;
            }
            let quarter = if i == 3 { r * quarter } else { quarter };
            self.0.push(Quarter {
                to: 6 * to + i,
                from: 6 * from + j,
                entries: std::array::from_fn(|i| std::array::from_fn(|j| quarter[(i, j)])),
            });
        }
    }

    /// The product with every lane.
    #[inline(always)]
    fn multiply<const W: usize>(&self, x: &[[f64; W]], out: &mut [[f64; W]]) {
        out.as_flattened_mut().fill(0.0);
        for q in &self.0 {
            let x: &[[f64; W]; 3] = x[q.from..].first_chunk().expect("three numbers");
            let out: &mut [[f64; W]; 3] = out[q.to..].first_chunk_mut().expect("three numbers");
            for (out, q) in out.iter_mut().zip(&q.entries) {
                for l in 0..W {
                    out[l] += q[0] * x[0][l] + q[1] * x[1][l] + q[2] * x[2][l];
                }
            }
        }
    }
}

/// Memory of the linear model.
pub(super) struct Jacobian {
    here: Screws,
    /// At the knot before; at the start unused.
    before: Screws,
    poses: Vec<Pose>,
    rows: Vec<RateRow>,
    /// Per body, what its own multipliers have to do with its configurations at the knot and before (at the start: with
    /// its velocities).
    own: Vec<Mat6>,
    old: Vec<Mat6>,
    by_here: Quarters,
    by_old: Quarters,
    /// Lanes of the solve, and of wrenches.
    mu: Vec<f64>,
    wrench: Vec<f64>,
    wrench_old: Vec<f64>,
    /// A row in the free and in the joint chart.
    free: Vec<f64>,
    joint: Vec<f64>,
}

impl Maximal {
    fn jacobian(&self) -> Jacobian {
        let (n, d) = (self.body_count(), self.dims());
        let screws = Screws::new(&self.mechanism);
        let lanes = vec![0.0; 6 * n * LANES];
        Jacobian {
            here: screws.clone(),
            before: screws,
            poses: vec![Pose::identity(); n],
            rows: Vec::with_capacity(d.ndx / 2),
            own: vec![Mat6::zeros(); n],
            old: vec![Mat6::zeros(); n],
            by_here: Quarters::default(),
            by_old: Quarters::default(),
            mu: vec![0.0; d.ny * LANES],
            wrench: lanes.clone(),
            wrench_old: lanes,
            free: vec![0.0; d.nf],
            joint: vec![0.0; d.ndx],
        }
    }

    /// The linear model of the step last linearized.
    pub(super) fn tree_model(&self, w: &mut Work, from: &Frame, out: &mut LinearModel) {
        self.couple(w);
        let mut jacobian = match w.jacobian.take() {
            Some(j) => j,
            None => Box::new(self.jacobian()),
        };
        self.gather(w, &mut jacobian);
        let dof = jacobian.rows.len();
        let mut first = 0;
        while first < dof {
            first += match dof - first {
                1..=2 => self.lanes::<2>(w, &mut jacobian, from, first, out),
                3..=4 => self.lanes::<4>(w, &mut jacobian, from, first, out),
                _ => self.lanes::<LANES>(w, &mut jacobian, from, first, out),
            };
        }
        self.by_parameters(w, &jacobian.rows, out);
        w.jacobian = Some(jacobian);
    }

    /// What all rows share: tangents, and the blocks of `dr/dz`, `dr/dz-`.
    fn gather(&self, w: &Work, s: &mut Jacobian) {
        let (m, h, before) = (&w.model, w.knot.at.h(), w.knot.at.before());
        s.here.set(m, &w.knot.poses);
        s.rows.clear();
        s.rows.extend(rate_rows(m, &w.end.poses));
        for (b, body) in m.bodies.iter().enumerate() {
            let (omega, old) = (
                vec3(&w.newton.trial, 6 * b + 3),
                vec3(&w.knot.before, 6 * b + 3),
            );
            let (j, inertia, law) = (w.end.scalar[b], &body.inertia, &body.rotation);
            let carried = w.end.poses[b].r.tr_mul(&w.knot.poses[b].r);
            let end = law
                .jacobian(&omega, h, j)
                .try_inverse()
                .unwrap_or_else(Mat3::zeros);
            let by_end = law.momentum_jacobian(&omega, inertia, h, j) * end * carried;
            let by_old = law.momentum_jacobian(&old, inertia, -w.knot.at.h_prev, w.knot.scalar[b]);
            let pair = |lin: f64, rot: &Mat3| {
                let mut block = Mat6::identity() * lin;
                block.fixed_view_mut::<3, 3>(3, 3).copy_from(rot);
                block
            };
            let Some(hp) = before else {
                s.own[b] = pair(body.mass / h, &by_end);
                s.old[b] = pair(body.mass, &by_old);
                continue;
            };
            let back = Back::new(law, &old, hp, w.knot.scalar[b]);
            let by_before = by_old * back.inverse;
            s.own[b] = pair(
                body.mass / h + body.mass / hp,
                &(by_end - by_before * back.turn),
            );
            s.old[b] = pair(-body.mass / hp, &by_before);
            s.poses[b] = Self::pose_before(w, b);
        }
        if before.is_some() {
            s.before.set(m, &s.poses);
        } else {
            s.poses.copy_from_slice(&w.knot.poses);
        }
        s.by_here.0.clear();
        s.by_old.0.clear();
        let here = |b: usize| &w.knot.poses[b].r;
        for ((a, b), c) in Self::coupled(m).zip(&w.adjoint.couplings) {
            add_coupling(&mut s.own, &mut s.by_here, here, (a, b), c);
        }
        for (d, state) in self.damped.iter().zip(&w.knot.damping) {
            let size = -d.damping(m);
            // an interval of no length damps nothing
            let old = before.map_or(0.0, |_| size * d.law.before());
            let after = size * d.after(&w.knot.at);
            let ends = (d.parent, d.child);
            let mut c = Coupling::default();
            c.add_outer(old, &state.wrench, &state.before_end);
            c.add_outer(after, &state.wrench, &state.after_start);
            add_coupling(&mut s.own, &mut s.by_here, here, ends, &c);
            if before.is_some() {
                let there = |b: usize| &s.poses[b].r;
                let mut c = Coupling::default();
                c.add_outer(old, &state.wrench, &state.before_start);
                add_coupling(&mut s.old, &mut s.by_old, there, ends, &c);
            }
        }
        for b in 0..m.bodies.len() {
            s.by_here.push_transposed(b, b, &s.own[b], here(b));
            s.by_old.push_transposed(b, b, &s.old[b], &s.poses[b].r);
        }
    }

    /// Rows `first` on, as many as there are lanes or rows left; returns how many.
    fn lanes<const W: usize>(
        &self,
        w: &Work,
        s: &mut Jacobian,
        from: &Frame,
        first: usize,
        out: &mut LinearModel,
    ) -> usize {
        let (h, n) = (w.knot.at.h(), 6 * self.body_count());
        let dof = s.rows.len();
        let count = W.min(dof - first);
        let mu = &mut s.mu.as_chunks_mut::<W>().0[..self.symbolic.dim()];
        let wrench = &mut s.wrench.as_chunks_mut::<W>().0[..n];
        let old = &mut s.wrench_old.as_chunks_mut::<W>().0[..n];
        mu.as_flattened_mut().fill(0.0);
        let end = |b: usize, t: &Vec3| {
            let omega = vec3(&w.newton.trial, 6 * b + 3);
            (w.model.bodies[b].rotation).jacobian_transposed(&omega, h, w.end.scalar[b], t)
        };
        for (lane, row) in s.rows[first..first + count].iter().enumerate() {
            seed(mu, lane, row, end, h);
        }
        self.symbolic.solve_transposed_lanes(&w.matrix.values, mu);
        s.by_here.multiply(mu, wrench);
        s.by_old.multiply(mu, old);
        let half = w.knot.at.half();
        for (i, row) in w.knot.control_rows.iter().enumerate() {
            let (a, b) = w.model.driven(&w.model.actuators[i]);
            let half = half * w.knot.control_slope[i];
            let by = row_times(row, a, b, mu);
            for (lane, by) in by.iter().enumerate().take(count) {
                out.b[(first + lane, i)] = half * by;
                out.b[(dof + first + lane, i)] = half * by / h;
            }
        }
        if let Some(hp) = w.knot.at.before() {
            // the upper and the lower half of a column
            let a = out.a.as_mut_slice();
            let halves = |i: usize| {
                let upper = 2 * dof * i + first;
                [upper..upper + count, upper + dof..upper + dof + count]
            };
            s.before.reduce(old, |i, g| {
                let [upper, lower] = halves(dof + i);
                let start = halves(i)[0].start;
                for (l, g) in g.iter().enumerate().take(count) {
                    a[start + l] = *g;
                    a[upper.start + l] = -hp * g;
                    a[lower.start + l] = -hp / h * g;
                }
            });
            s.here.reduce(wrench, |i, g| {
                let [upper, lower] = halves(i);
                for (l, g) in g.iter().enumerate().take(count) {
                    a[upper.start + l] += g;
                    a[lower.start + l] = a[upper.start + l] / h;
                }
            });
            for i in first..first + count {
                out.a[(dof + i, i)] -= 1.0 / h;
            }
        } else {
            for lane in 0..count {
                let (z, v) = s.free.split_at_mut(n);
                for (free, wrench) in [(z, &*wrench), (v, &*old)] {
                    free.iter_mut().zip(wrench).for_each(|(f, g)| *f = g[lane]);
                    for (b, pose) in w.knot.poses.iter().enumerate() {
                        let torque = pose.r.tr_mul(&vec3(free, 6 * b + 3));
                        free[6 * b + 3..6 * b + 6].copy_from_slice(torque.as_slice());
                    }
                }
                from.embed_transposed(&mut s.free, &mut s.joint);
                let row = first + lane;
                for (i, by) in s.joint.iter().enumerate() {
                    let own = if row == i { 1.0 } else { 0.0 };
                    out.a[(row, i)] = *by;
                    out.a[(dof + row, i)] = (by - own) / h;
                }
            }
        }
        count
    }

    /// Columns of the parameters.
    fn by_parameters(&self, w: &mut Work, rows: &[RateRow], out: &mut LinearModel) {
        let (mut d, mut change) = (
            std::mem::take(&mut w.observation.inputs),
            std::mem::take(&mut w.observation.readout),
        );
        let h = w.knot.at.h();
        for i in 0..self.nominal.len() {
            d.clear();
            d.p[i] = 1.0;
            self.push_through(w, &d, &mut change);
            for (k, r) in rows.iter().enumerate() {
                let by = super::assembly::dot(&change.x, r.parent, r.child, &r.row);
                out.p[(k, i)] = by;
                out.p[(rows.len() + k, i)] = by / h;
            }
        }
        // read-outs pull what they find in it
        change.x.fill(0.0);
        (w.observation.inputs, w.observation.readout) = (d, change);
    }
}

/// A coupling's blocks between bodies become quarters, those on a body join its own.
fn add_coupling<'a>(
    own: &mut [Mat6],
    quarters: &mut Quarters,
    rotation: impl Fn(usize) -> &'a Mat3,
    (a, b): (Option<usize>, usize),
    c: &Coupling,
) {
    own[b] += c.bb.0;
    if let Some(a) = a {
        own[a] += c.aa.0;
        quarters.push_transposed(a, b, &c.ba.0, rotation(a));
        quarters.push_transposed(b, a, &c.ab.0, rotation(b));
    }
}

/// A wrench's product with every lane of six numbers a body.
fn row_times<const W: usize>(row: &Row, a: Option<usize>, b: usize, x: &[[f64; W]]) -> [f64; W] {
    let mut sum = [0.0; W];
    let mut add = |body: usize, wrench: &crate::mechanism::Vec6| {
        for (k, f) in wrench.iter().enumerate() {
            for (sum, x) in sum.iter_mut().zip(&x[6 * body + k]) {
                *sum += f * x;
            }
        }
    };
    add(b, &row.child());
    if let Some(a) = a {
        add(a, &row.parent());
    }
    sum
}
