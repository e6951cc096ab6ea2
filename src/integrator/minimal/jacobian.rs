//! The step's Jacobians by state and control, row by row: O(n) a row, several side by side.
//!
//! The row of a coordinate at the next knot is one solve with the transposed factors. With displacements of both neighbours in place
//! of rates (`z+`, `z-`) nothing but momenta depends on these, and of the multipliers' virtual displacements `Z` a body's wrenches
//! are fixed matrices: with `D+`, `D-` the derivatives of its momenta, `p+`, `p-` these,
//!
//! ```text
//! at the knot  -(D+/h + D-/h-)' Z + (p+ - p-) x Z - (0, v+ x f+ - v- x f-),     at the knot before  D-'/h- Z,
//! ```
//!
//! where `f+`, `f-` are the forces of `D+' Z`, `D-' Z`, and `v+`, `v-` velocities; they go inwards at the geometry of either knot. What
//! joints turn is of the residual's wrenches, as in [`derivative`](super::derivative). Coordinates at the knot before, and rates, follow
//! joint by joint.

use super::Minimal;
use super::derivative::{Linear, SIDES, Six};
use super::forces::{to_body, to_world};
use super::gears_derivative::fold;
use super::kinematics::third;
use super::lanes::{LANES, Numbers, Wide, add_times, scaled, write_rows};
use super::local::third_by_turn;
use super::momentum::Blocks;
use super::work::Work;
use crate::dynamics::{Differentiable, Dims, Frame, LinearModel};
use crate::mechanism::Drive;
use crate::spatial::{Vec3, skew, skew_times};
use nalgebra::SMatrix;
use pulp::{Arch, NullaryFnOnce};
use std::ops::Range;

/// Memory of the Jacobians.
pub(super) struct Jacobian {
    /// Of every body: what its virtual displacement says of that at the knot, and before.
    bodies: Vec<[Blocks; 2]>,
    /// Of every joint.
    joints: Vec<Exerting>,
    virtuals: Vec<[Wide; 2]>,
    knot: Vec<[Wide; 2]>,
    before: Vec<[Wide; 2]>,
    lambda: Vec<Numbers>,
    by_knot: Vec<Numbers>,
    by_before: Vec<Numbers>,
    /// Where gears are: what their rows' multipliers add along free directions, and the model of the free chart.
    geared: Vec<Numbers>,
    free: Option<LinearModel>,
}

/// What a joint exerts, about itself, and how what acts along its free directions changes with its own coordinates, at the knot and
/// before.
#[derive(Clone, Copy)]
struct Exerting {
    wrench: (Vec3, Vec3),
    knot: SMatrix<f64, 6, 6>,
    before: SMatrix<f64, 6, 6>,
}

impl Jacobian {
    fn new(minimal: &Minimal) -> Self {
        let (n, freedoms) = (minimal.nodes.len(), minimal.freedoms);
        let is_geared = !minimal.gears.is_empty();
        let zero = Vec3::zeros();
        let none = Exerting {
            wrench: (zero, zero),
            knot: SMatrix::zeros(),
            before: SMatrix::zeros(),
        };
        let (wide, numbers) = (vec![[Wide::ZERO; 2]; n], vec![[0.0; LANES]; freedoms]);
        Self {
            bodies: vec![[Blocks::ZERO; 2]; n],
            joints: vec![none; n],
            virtuals: wide.clone(),
            knot: wide.clone(),
            before: wide,
            lambda: numbers.clone(),
            by_knot: numbers.clone(),
            by_before: numbers.clone(),
            geared: if is_geared { numbers } else { vec![] },
            free: is_geared.then(|| {
                let d = minimal.dims();
                LinearModel::new(&Dims { ndx: d.nf, ..d })
            }),
        }
    }
}

/// What a body's virtual displacement says of that at the knot, and before, of momenta `p` whose derivatives these are, and of a
/// torque that turns with the body.
#[inline(always)]
fn by_neighbours(
    of: &[Blocks; 2],
    p: &[Six; 2],
    v: &[Vec3; 2],
    torque: &Vec3,
    (before, h): (f64, f64),
) -> [Blocks; 2] {
    let turned = skew(&(p[1].1 - p[0].1 - torque));
    let [past, behind] = of;
    if past.coupled.is_none() {
        let (mass, times) = (past.mass, 1.0 / h + 1.0 / before);
        let knot = turned - (behind.turn / h + past.turn / before).transpose();
        return [
            Blocks::apart(-mass * times, knot),
            Blocks::apart(mass / before, past.turn.transpose() / before),
        ];
    }
    let [past, behind] = of.each_ref().map(Blocks::transposed);
    let mut knot = behind.scaled(-1.0 / h);
    knot.add(&past.scaled(-1.0 / before));
    knot.tf += skew(&(p[1].0 - p[0].0));
    knot.tf += skew_times(&v[0], &past.ff) - skew_times(&v[1], &behind.ff);
    knot.tt += turned + skew_times(&v[0], &past.ft) - skew_times(&v[1], &behind.ft);
    [
        Blocks::coupled(knot),
        Blocks::coupled(past.scaled(1.0 / before)),
    ]
}

/// All rows, as many side by side as there are lanes or rows left. Not a closure, which the compiler may leave a function of its own,
/// without wide instructions.
struct AllRows<'a>(
    &'a Minimal,
    &'a mut Work,
    &'a Linear,
    &'a mut Jacobian,
    &'a mut LinearModel,
);

impl NullaryFnOnce for AllRows<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(minimal, w, l, s, out) = self;
        let mut first = 0;
        while first < minimal.freedoms {
            let rows = first..(first + LANES).min(minimal.freedoms);
            minimal.multipliers(w, l.at.h, s, rows.clone());
            minimal.wrenches(w, l, s);
            minimal.inwards(w, l, s);
            minimal.write(w, l, s, rows, out);
            first += LANES;
        }
        minimal.rates(l, out);
    }
}

impl Minimal {
    /// The linear model of the step last linearized.
    pub(super) fn jacobians(&self, w: &mut Work, frames: (&Frame, &Frame), out: &mut LinearModel) {
        let mut j = match w.jacobian.take() {
            Some(j) => j,
            None => Box::new(Jacobian::new(self)),
        };
        let mut free = j.free.take();
        let to = free.as_mut().unwrap_or(&mut *out);
        let mut l = Self::lend(w);
        // contacts and dampers between points answer to displacements of bodies, and there may be no knot before
        let is_of_tree = self.contacts.is_empty() && self.dampers.is_empty();
        if l.at.h_prev == 0.0 || !is_of_tree {
            w.linear = Some(l);
            self.rows_by_pulls(w, to);
            l = Self::lend(w);
        } else {
            self.gather(w, &l, &mut j);
            self.find_all_ends(w, &mut l);
            // the machine's wide instructions, in the same order on any
            Arch::new().dispatch(AllRows(self, w, &l, &mut j, to));
            self.by_parameters(w, &mut l, to);
        }
        if let Some(free) = &free {
            fold(free, frames.0, frames.1, out);
        }
        j.free = free;
        w.jacobian = Some(j);
        w.linear = Some(l);
    }

    /// Rows one after the other, where what is not of the tree takes part.
    fn rows_by_pulls(&self, w: &mut Work, out: &mut LinearModel) {
        let mut by = std::mem::take(&mut w.inputs);
        let mut adjoint = std::mem::take(&mut w.outputs);
        // the certificate is one of sweeps, whose adjoints these are not
        let certificate = w.certificate.take();
        adjoint.y.fill(0.0);
        for row in 0..self.freedoms {
            adjoint.x.fill(0.0);
            adjoint.x[row] = 1.0;
            self.pull_in(w, &adjoint, &mut by);
            for (to, by) in [
                (&mut out.a, &by.x),
                (&mut out.b, &by.u),
                (&mut out.p, &by.p),
            ] {
                to.row_mut(row)
                    .iter_mut()
                    .zip(by)
                    .for_each(|(to, by)| *to = *by);
            }
        }
        (w.inputs, w.outputs, w.certificate) = (by, adjoint, certificate);
        let l = Self::lend(w);
        self.rates(&l, out);
        w.linear = Some(l);
    }

    /// What all rows share.
    fn gather(&self, w: &mut Work, l: &Linear, s: &mut Jacobian) {
        let (h, before) = (l.at.h, l.at.h_prev);
        let half = 0.5 * (h + before);
        self.exert(w, half);
        for (i, (node, k)) in self.nodes.iter().zip(&w.knot).enumerate() {
            let (p, force) = (&w.momenta[i], k.force.1 * half);
            let velocities = [w.past[i].velocity, w.trial[i].velocity];
            s.bodies[i] = by_neighbours(&l.momenta[i], p, &velocities, &force, (before, h));
            let own = &mut s.joints[i];
            own.wrench = w.wrenches[i];
            let joint = &w.model.joints[node.joint];
            let at_knot = &mut own.knot;
            at_knot.fill(0.0);
            own.before.fill(0.0);
            let first = node.slides;
            if joint.has_springs() {
                for r in 0..node.count() {
                    for c in 0..node.count() {
                        at_knot[(r, c)] = -half
                            * match (r.checked_sub(first), c.checked_sub(first)) {
                                (Some(r), Some(c)) => l.springs[i][(r, c)],
                                (None, None) if r == c => -joint.directions[r].stiffness,
                                _ => 0.0,
                            };
                    }
                }
            }
            if joint.has_dampers() {
                for side in SIDES {
                    let (share, over) = super::derivative::damping(node.damper, &l.at, side);
                    if share == 0.0 {
                        continue;
                    }
                    let local = &l.locals[i][side];
                    for r in 0..node.count() {
                        let size = joint.directions[r].damping * share;
                        for c in 0..node.count() {
                            let (end, knot) = match (r.checked_sub(first), c.checked_sub(first)) {
                                (Some(r), Some(c)) => {
                                    let end = local.damped_by_end[(r, c)] / over;
                                    (end, local.damped_by_knot[(r, c)] - end)
                                }
                                (None, None) if r == c => (1.0, -1.0),
                                _ => (0.0, 0.0),
                            };
                            at_knot[(r, c)] += size * knot;
                            if side == 0 {
                                own.before[(r, c)] += size * end;
                            }
                        }
                    }
                }
            }
            if node.turns == 2 {
                // how its free directions turn by its own turns, of the torque that it exerts
                let seen = k.joint.tr_mul(&own.wrench.1);
                for c in first..node.count() {
                    let unit = &joint.directions[c].unit;
                    let eta = unit + third(joint, node, &k.relative, unit);
                    for r in first..node.count() {
                        let unit = &joint.directions[r].unit;
                        let by = third_by_turn(joint, node, &k.relative, unit, &eta);
                        own.knot[(r, c)] += by.dot(&seen);
                    }
                }
            }
        }
    }

    /// Multipliers of the rows, and the virtual displacements of the bodies by them.
    #[inline(always)]
    fn multipliers(&self, w: &mut Work, h: f64, s: &mut Jacobian, rows: Range<usize>) {
        s.knot.fill([Wide::ZERO; 2]);
        let mut place = 0;
        let last = rows.end.max(self.gears.end);
        if !self.gears.is_empty() {
            self.tie_lanes(w, h, rows.clone(), &mut s.geared);
        }
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let n = node.count();
            place += n * n;
            if node.first >= last {
                // none of the rows is of what it holds
                continue;
            }
            let to = &w.trial[i];
            let [mut f, mut t] = s.knot[i];
            t.add_cross(&to.arms[1], &f);
            let (at, about) = (f, t);
            let ball = &w.balls[i];
            if ball.is_free {
                t = Wide::ZERO;
            }
            for (r, index) in node.directions().enumerate() {
                let axis = &w.axes[index];
                let mut given = [0.0; LANES];
                if rows.contains(&index) {
                    given[index - rows.start] += h;
                }
                if let Some(by) = s.geared.get(index) {
                    add_times(&mut given, 1.0, by);
                }
                if ball.is_free {
                    t.add_along(&axis.right, &given);
                    continue;
                }
                let on = if r < node.slides { &at } else { &about };
                let mut rate = on.dot(&axis.right);
                add_times(&mut rate, 1.0, &given);
                let less = scaled(-1.0, &rate);
                f.add_along(&axis.answer.0, &less);
                t.add_along(&axis.answer.1, &less);
                s.lambda[index] = less;
            }
            if ball.is_free {
                // as of one solve
                let mut held = about;
                held.add(&t);
                f.add(&Wide::times(&-ball.answer.transpose(), &held));
                t = Wide::scaled(&t, -1.0);
                s.lambda[node.directions()].copy_from_slice(&held.0);
            }
            if let Some(near) = node.near {
                let [nf, nt] = &mut s.knot[near];
                nf.add(&f);
                nt.add(&t);
                nt.add_cross(&to.arms[0], &f);
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let k = &w.knot[i];
            let [mut x, mut turned] = node.near.map_or([Wide::ZERO; 2], |n| s.virtuals[n]);
            // x += turned x arm
            x.add_cross(&-k.arms[0], &turned);
            let n = node.count();
            place -= n * n;
            let ball = &w.balls[i];
            if ball.is_free {
                let mut by = Wide::times(&ball.ft.transpose(), &x);
                if node.first < last {
                    by.add(&Wide::from_rows(&s.lambda[node.directions()]));
                }
                let own = Wide::times(&-ball.inverse.transpose(), &by);
                let mut turns = own;
                turns.add(&Wide::scaled(&turned, -1.0));
                for index in node.directions() {
                    s.lambda[index] = turns.dot(&w.axes[index].left);
                }
                turned = own;
                x.add_cross(&-k.arms[1], &turned);
                s.virtuals[i] = [x, turned];
                continue;
            }
            let inverse = &w.inverses[place..place + n * n];
            let mut left = [[0.0; LANES]; 6];
            for (left, index) in left.iter_mut().zip(node.directions()) {
                let axis = &w.axes[index];
                let (by_x, by_turn) = (x.dot(&axis.wrench.0), turned.dot(&axis.wrench.1));
                let given = if node.first >= last {
                    [0.0; LANES]
                } else {
                    s.lambda[index]
                };
                for lane in 0..LANES {
                    left[lane] = given[lane] - by_x[lane] - by_turn[lane];
                }
            }
            for (r, index) in node.directions().enumerate() {
                let mut by = [0.0; LANES];
                for (c, left) in left.iter().enumerate().take(n) {
                    add_times(&mut by, inverse[r * n + c], left);
                }
                s.lambda[index] = by;
                let on = if r < node.slides { &mut x } else { &mut turned };
                on.add_along(&w.axes[index].left, &by);
            }
            x.add_cross(&-k.arms[1], &turned);
            s.virtuals[i] = [x, turned];
        }
    }

    /// What the virtual displacements say of those of the bodies, at the knot and before.
    #[inline(always)]
    fn wrenches(&self, w: &Work, l: &Linear, s: &mut Jacobian) {
        let (h, before) = (l.at.h, l.at.h_prev);
        for (i, virtuals) in s.virtuals.iter().enumerate() {
            let [by_knot, by_before] = &s.bodies[i];
            s.knot[i] = Wide::of_body(by_knot, virtuals);
            s.before[i] = Wide::of_body(by_before, virtuals);
        }
        let half = 0.5 * (h + before);
        for (on, by, block) in &w.couplings {
            let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
            for lane in 0..LANES {
                let [x, turned] = &s.virtuals[*on];
                let six = to_body(rotation(*on), &(x.lane(lane), turned.lane(lane)));
                let (x, turned) = to_world(rotation(*by), &(block.tr_mul(&six) * -half));
                for i in 0..3 {
                    s.knot[*by][0].0[i][lane] += x[i];
                    s.knot[*by][1].0[i][lane] += turned[i];
                }
            }
        }
    }

    /// Adjoints of coordinates at the knot and before.
    #[inline(always)]
    fn inwards(&self, w: &Work, l: &Linear, s: &mut Jacobian) {
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (k, own) = (&w.knot[i], &s.joints[i]);
            let (force, torque) = &own.wrench;
            let near_turn = node.near.map_or(Wide::ZERO, |n| s.virtuals[n][1]);
            let [zx, mut zphi] = s.knot[i];
            let mut near_phi = Wide::ZERO;
            let mut arms = [zx; 2];
            arms[0].add_cross(force, &near_turn);
            arms[1].add_cross(force, &s.virtuals[i][1]);
            for (r, index) in node.directions().enumerate() {
                let on = if r < node.slides { force } else { torque };
                let by = w.axes[index].left.cross(on);
                let to = if node.reversed {
                    &mut zphi
                } else {
                    &mut near_phi
                };
                to.add_along(&by, &s.lambda[index]);
            }
            zphi.add_cross(&k.arms[1], &arms[1]);
            near_phi.add_cross(&k.arms[0], &arms[0]);
            let [px, mut pphi] = s.before[i];
            let past = &w.past[i];
            pphi.add_cross(&past.arms[1], &px);
            for (r, index) in node.directions().enumerate() {
                let is_slide = r < node.slides;
                let on = if is_slide {
                    &arms[usize::from(node.reversed)]
                } else {
                    &zphi
                };
                let mut by_knot = on.dot(&w.axes[index].left);
                let on = if is_slide { &px } else { &pphi };
                let mut by_before = on.dot(&l.ends[index][0].0);
                for (c, other) in node.directions().enumerate() {
                    add_times(&mut by_knot, own.knot[(c, r)], &s.lambda[other]);
                    add_times(&mut by_before, own.before[(c, r)], &s.lambda[other]);
                }
                s.by_knot[index] = by_knot;
                s.by_before[index] = by_before;
            }
            if let Some(near) = node.near {
                let [nx, nphi] = &mut s.knot[near];
                nx.add(&zx);
                nphi.add(&zphi);
                nphi.add(&near_phi);
                let [nx, nphi] = &mut s.before[near];
                nx.add(&px);
                nphi.add(&pphi);
                nphi.add_cross(&past.arms[0], &px);
            }
        }
    }

    /// The rows in the chart: coordinates before follow from coordinates and rates, rates behind from coordinates at both ends.
    #[inline(always)]
    fn write(&self, w: &Work, l: &Linear, s: &Jacobian, rows: Range<usize>, out: &mut LinearModel) {
        let (n, h, before) = (self.freedoms, l.at.h, l.at.h_prev);
        for (i, node) in self.nodes.iter().enumerate() {
            let local = &l.locals[i][0];
            for (r, index) in node.directions().enumerate() {
                let mut knot = s.by_knot[index];
                let mut rate = [0.0; LANES];
                if let Some(r) = r.checked_sub(node.slides) {
                    let back = local.inverse * local.by_knot * before;
                    add_times(&mut knot, 1.0, &s.by_before[index]);
                    for c in 0..node.turns {
                        let other = &s.by_before[node.first + node.slides + c];
                        add_times(&mut knot, back[(c, r)], other);
                        add_times(&mut rate, -before * local.inverse[(c, r)], other);
                    }
                } else {
                    add_times(&mut knot, 1.0, &s.by_before[index]);
                    add_times(&mut rate, -before, &s.by_before[index]);
                }
                write_rows(out.a.as_mut_slice(), 2 * n, index, &rows, &knot);
                write_rows(out.a.as_mut_slice(), 2 * n, n + index, &rows, &rate);
            }
        }
        let half = 0.5 * (h + before);
        for (i, (a, (_, slope))) in w.model.actuators.iter().zip(&w.controls).enumerate() {
            let mut by = [0.0; LANES];
            if let Drive::Joint { joint, direction } = a.drive {
                let index = self.driven_direction(joint, direction);
                add_times(&mut by, a.gain, &s.lambda[index]);
            } else {
                self.each_wrench(w, a, |n, f, t| {
                    let [x, turned] = &s.virtuals[n];
                    add_times(&mut by, 1.0, &x.dot(&f));
                    add_times(&mut by, 1.0, &turned.dot(&t));
                });
            }
            let by = scaled(-half * slope, &by);
            write_rows(out.b.as_mut_slice(), 2 * n, i, &rows, &by);
        }
    }

    /// Rows of rates, of those of coordinates.
    #[inline(always)]
    fn rates(&self, l: &Linear, out: &mut LinearModel) {
        let (n, h) = (self.freedoms, l.at.h);
        if n == 0 {
            return;
        }
        let over = 1.0 / h;
        let all = [&mut out.a, &mut out.b, &mut out.p];
        let columns = all.map(|m| m.as_mut_slice().chunks_exact_mut(2 * n));
        for column in columns.into_iter().flatten() {
            let (coordinates, rates) = column.split_at_mut(n);
            for (node, l) in self.nodes.iter().zip(&l.locals) {
                let (first, by_end) = (node.first + node.slides, &l[1].by_end);
                for index in node.first..first {
                    rates[index] = over * coordinates[index];
                }
                for r in 0..node.turns {
                    let mut rate = 0.0;
                    for c in 0..node.turns {
                        rate += by_end[(r, c)] * coordinates[first + c];
                    }
                    rates[first + r] = over * rate;
                }
            }
        }
        for (node, l) in self.nodes.iter().zip(&l.locals) {
            let (first, local) = (node.first + node.slides, &l[1]);
            for index in node.first..first {
                out.a[(n + index, index)] -= over;
            }
            for r in 0..node.turns {
                for c in 0..node.turns {
                    let by = local.by_knot[(r, c)] - over * local.by_end[(r, c)];
                    out.a[(n + first + r, first + c)] += by;
                }
            }
        }
    }

    /// Columns of the parameters.
    fn by_parameters(&self, w: &mut Work, l: &mut Linear, out: &mut LinearModel) {
        let mut d = std::mem::take(&mut w.inputs);
        let mut change = std::mem::take(&mut w.outputs);
        for i in 0..w.parameters.len() {
            d.clear();
            d.p[i] = 1.0;
            self.lift(w, l, &d);
            self.push_residual(w, l, &d);
            self.solve_rows(w, l);
            self.push_ends(w, l, &d, &mut change);
            out.p.column_mut(i).copy_from_slice(&change.x);
        }
        d.clear();
        (w.inputs, w.outputs) = (d, change);
    }
}
