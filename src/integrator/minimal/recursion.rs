//! Newton's step by the articulated-body recursion.
//!
//! About the joint of a body, `P` is the wrench there by the displacement of the body at the joint: its own and, through their
//! joints, that of all bodies further out. With the joint's free directions `S` at the knot and `S+` at the trial,
//!
//! ```text
//! P <- D + sum over the bodies it holds of X' (P - P S+ (S' P S+ + K)^-1 S' P) X+,
//! ```
//!
//! where `X` shifts from a joint to the next one nearer to the world, `D` is the derivative of the body's momentum, and `K` what
//! dampers add. The residuals go inwards by the same pivots, the rates outwards.

use super::derivative::Linear;
use super::kinematics::{along, third, turn, turned_by};
use super::pivots::{Eliminated, eliminate, eliminate_hinge, give, invert, pivot, scale_answers};
use super::work::{Articulated, AtKnot, Axis, Moved, Work, wide};
use super::{Minimal, Node};
use crate::mechanism::{Mechanism, displaced_over};
use crate::spatial::{Quat, Vec3, left_log_jacobian, log, skew_times, times_skew};

impl Articulated {
    /// About a point from which `left` leads to the one it is about at the knot, where wrenches act, and `right` at the trial,
    /// where displacements do.
    #[inline(always)]
    pub(super) fn shift(&mut self, left: &Vec3, right: &Vec3) {
        self.ft -= times_skew(&self.ff, right);
        self.tt -= times_skew(&self.tf, right);
        self.tf += skew_times(left, &self.ff);
        self.tt += skew_times(left, &self.ft);
    }

    /// The same where displacements at the point it is about make forces alone, and turns nothing.
    #[inline(always)]
    fn shift_force(&mut self, left: &Vec3, right: &Vec3) {
        self.ft = -times_skew(&self.ff, right);
        self.tf = skew_times(left, &self.ff);
        self.tt = skew_times(left, &self.ft);
    }

    /// Takes off what an axis that is eliminated makes of it.
    #[inline(always)]
    pub(super) fn take_off(&mut self, a: &Axis) {
        self.ff -= a.wrench.0 * a.answer.0.transpose();
        self.ft -= a.wrench.0 * a.answer.1.transpose();
        self.tf -= a.wrench.1 * a.answer.0.transpose();
        self.tt -= a.wrench.1 * a.answer.1.transpose();
    }

    #[inline(always)]
    pub(super) fn add(&mut self, other: &Self) {
        self.ff += other.ff;
        self.ft += other.ft;
        self.tf += other.tf;
        self.tt += other.tt;
    }
}

impl Minimal {
    /// Momenta of the bodies over the interval of the trial less what is known, and what dampers between points take, as wrenches.
    pub(super) fn momenta_left(&self, w: &mut Work, h: f64) {
        wide!(self.momenta_less(w, h));
        if !self.dampers.is_empty() {
            self.damp_lines(w, h);
        }
    }

    #[inline(always)]
    fn momenta_less(&self, w: &mut Work, h: f64) {
        for ((k, to), out) in w.knot.iter().zip(&w.trial).zip(&mut w.wrenches) {
            let p = self
                .lagrangian
                .momentum(k.mass, (&k.inertia, &k.law), to, h);
            *out = (p.0 - k.base.0, p.1 - k.base.1);
        }
    }

    /// Eliminates the joints from the outermost inwards, at the trial.
    pub(super) fn factor(&self, w: &mut Work, h: f64) -> Result<(), usize> {
        w.touching.has_unknown_impulses = false;
        let mut inverses = std::mem::take(&mut w.inverses);
        let done = wide!(self.eliminate(w, h, &mut inverses));
        w.inverses = inverses;
        if done.is_err() {
            w.articulated.fill(Articulated::ZERO);
        }
        done?;
        self.factor_border(w, h)
    }

    #[inline(always)]
    fn eliminate(&self, w: &mut Work, h: f64, mut rest: &mut [f64]) -> Result<(), usize> {
        let acts = w.touching.acts;
        // of the outermost first, behind each other
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let mut p = Articulated::of_body(self.lagrangian, &w.knot[i], &w.trial[i], h);
            // zero again for the next time
            p.add(&std::mem::replace(&mut w.articulated[i], Articulated::ZERO));
            if acts {
                p.add(&w.touching.added[i]);
            }
            let n = node.count();
            let (inverse, left) = std::mem::take(&mut rest).split_at_mut(n * n);
            rest = left;
            let is_free = node.is_ball() && !acts && !w.knot[i].is_damped;
            w.balls[i].is_free = is_free;
            if n > 0 {
                self.turn_axes(w, i, h);
            }
            if is_free {
                w.balls[i].eliminate(&mut p).map_err(|()| node.body)?;
            } else if n == 1 && node.turns == 1 && !(acts && self.touches[i]) {
                let by = match w.knot[i].is_damped {
                    true => {
                        let d = &w.model.joints[node.joint].directions[0];
                        d.damping * node.damper.after(w.h_prev, h) * displaced_over(h)
                    }
                    false => 0.0,
                };
                let axis = &mut w.axes[node.first];
                eliminate_hinge(&mut p, axis, by, &mut inverse[0]).map_err(|()| node.body)?;
            } else if n > 0 {
                (self.eliminate_joint(w, i, h, &mut p, inverse)).map_err(|()| node.body)?;
            }
            if let Some(near) = node.near {
                // from the joint of what is nearer, by its center, to this one
                let left = w.knot[near].arms[1] + w.knot[i].arms[0];
                let right = w.trial[near].arms[1] + w.trial[i].arms[0];
                if is_free {
                    p.shift_force(&left, &right);
                } else {
                    p.shift(&left, &right);
                }
                w.articulated[near].add(&p);
            }
        }
        Ok(())
    }

    /// Eliminates the free directions of a joint from `p`.
    #[inline(never)]
    fn eliminate_joint(
        &self,
        w: &mut Work,
        i: usize,
        h: f64,
        p: &mut Articulated,
        inverse: &mut [f64],
    ) -> Result<(), ()> {
        wide!(self.eliminate_directions(w, i, h, p, inverse))
    }

    #[inline(always)]
    fn eliminate_directions(
        &self,
        w: &mut Work,
        i: usize,
        h: f64,
        p: &mut Articulated,
        inverse: &mut [f64],
    ) -> Result<(), ()> {
        let node = &self.nodes[i];
        let (n, acts) = (node.count(), w.touching.acts);
        pivot(p, node, &mut w.axes[node.directions()], inverse);
        if w.knot[i].is_damped {
            self.add_dampers(w, i, h, inverse);
        }
        if acts && self.touches[i] {
            let added = &w.touching.pivots[self.pivot_of[i]..];
            inverse.iter_mut().zip(added).for_each(|(p, a)| *p += a);
            let axes = w.axes[node.directions()].iter_mut();
            for (axis, by) in axes.zip(&w.touching.answers[node.first..]) {
                axis.answer.0 += by.0;
                axis.answer.1 += by.1;
            }
        }
        let axes = &mut w.axes[node.directions()];
        if acts && n > 1 {
            return eliminate(p, axes, inverse, &mut w.order[node.directions()]);
        }
        invert(inverse, n)?;
        scale_answers(axes, inverse);
        axes.iter().for_each(|a| p.take_off(a));
        Ok(())
    }

    /// A joint's free directions at the trial.
    #[inline(always)]
    pub(super) fn turn_axes(&self, w: &mut Work, i: usize, h: f64) {
        let (node, k, to) = (&self.nodes[i], &w.knot[i], &w.trial[i]);
        let j = &w.model.joints[node.joint];
        let world = Moved::WORLD;
        let by = match (node.reversed, node.near) {
            (true, _) => to,
            (false, Some(near)) => &w.trial[near],
            (false, None) => &world,
        };
        let axes = &mut w.axes[node.directions()];
        if let ([a, b, c], true) = (&mut *axes, node.is_ball()) {
            a.right = a.left + by.turned(&a.left, h) * h;
            b.right = b.left + by.turned(&b.left, h) * h;
            // axes of the parent, turned round where it is the body
            let third = a.right.cross(&b.right);
            c.right = if node.reversed { -third } else { third };
            return;
        }
        if node.turns != 2 {
            // fixed in the parent
            for axis in axes {
                axis.right = axis.left + by.turned(&axis.left, h) * h;
            }
            return;
        }
        let spin = turn(j, node, &k.relative, &w.rates[node.directions()]);
        let relative = Self::turned(&k.relative, &spin, h);
        for (r, (d, axis)) in j.directions.iter().zip(axes).enumerate() {
            let unit = if r < node.slides {
                d.unit
            } else {
                d.unit + third(j, node, &relative, &d.unit)
            };
            let unit = k.joint * unit;
            axis.right = unit + by.turned(&unit, h) * h;
        }
    }

    /// What dampers along a joint's directions add to its pivot: the derivative of their impulses by rates.
    pub(super) fn add_dampers(&self, w: &Work, i: usize, h: f64, pivot: &mut [f64]) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let (j, n) = (&w.model.joints[node.joint], node.count());
        let share = node.damper.after(w.h_prev, h);
        if share == 0.0 {
            return;
        }
        if node.turns < 2 {
            for (r, d) in j.directions.iter().enumerate() {
                pivot[r * n + r] += d.damping * share * displaced_over(h);
            }
            return;
        }
        let spin = &turn(j, node, &k.relative, &w.rates[node.directions()]);
        let inc = Self::turned(&Quat::identity(), spin, h);
        let by = left_log_jacobian(&log(&inc));
        let relative = Self::turned(&k.relative, spin, h);
        for (r, d) in j.directions.iter().enumerate() {
            let scale = d.damping * share * displaced_over(h);
            if r < node.slides {
                pivot[r * n + r] += scale;
                continue;
            }
            for (c, other) in j.directions.iter().enumerate().skip(node.slides) {
                let turn = other.unit + third(j, node, &relative, &other.unit);
                pivot[c * n + r] += scale * d.unit.dot(&(by * turn));
            }
        }
    }

    /// Newton's step of the joints' rates, with the factors at hand, into `w.change`: minus the inverse applied to the residual.
    pub(super) fn solve(&self, w: &mut Work, h: f64) {
        self.momenta_left(w, h);
        let mut rows = std::mem::take(&mut w.rows);
        for (row, base) in rows.iter_mut().zip(&w.base) {
            *row = -base;
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if w.knot[i].is_damped {
                self.damp(w, i, h, &mut rows[node.directions()]);
            }
        }
        self.take_impulses(w, &mut rows);
        self.substitute(w, &rows);
        w.geared.take_answers(&w.border.answers);
        w.rows = rows;
    }

    /// The residual along free directions; `w.wrenches` are then what the joints exert on what they hold, about themselves.
    pub(super) fn residual_rows(&self, w: &mut Work, h: f64, rows: &mut [f64]) {
        self.momenta_left(w, h);
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let (mut f, mut t) = w.wrenches[i];
            f -= k.touch.0;
            t += k.arms[1].cross(&f);
            t -= k.touch.1;
            w.wrenches[i] = (f, t);
            for (r, index) in node.directions().enumerate() {
                let on = if r < node.slides { &f } else { &t };
                rows[index] = w.axes[index].left.dot(on) - w.base[index];
            }
            if w.knot[i].is_damped {
                self.damp(w, i, h, &mut rows[node.directions()]);
            }
            if let Some(near) = node.near {
                let to = &mut w.wrenches[near];
                to.0 += f;
                to.1 += t + k.arms[0].cross(&f);
            }
        }
        self.take_impulses(w, rows);
    }

    /// What the joints exert in a step that is linearized, about themselves, into `w.wrenches`, where nothing touches; forces act
    /// for `half`. As the residual has it, of momenta that are known.
    pub(super) fn exert(&self, w: &mut Work, half: f64) {
        for ((k, [past, behind]), to) in w.knot.iter().zip(&w.momenta).zip(&mut w.wrenches) {
            let base = (past.0 + k.force.0 * half, past.1 + k.force.1 * half);
            *to = (behind.0 - base.0, behind.1 - base.1);
        }
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let (f, mut t) = w.wrenches[i];
            t += k.arms[1].cross(&f);
            w.wrenches[i].1 = t;
            if let Some(near) = node.near {
                let to = &mut w.wrenches[near];
                to.0 += f;
                to.1 += t + k.arms[0].cross(&f);
            }
        }
    }

    /// Minus the inverse applied to a residual, into `w.change`: of bodies in `w.wrenches`, and along free directions.
    pub(super) fn substitute(&self, w: &mut Work, rows: &[f64]) {
        self.substitute_tree(w, rows);
        if self.bordered() > 0 {
            self.tie(w);
        }
    }

    /// The same without what borders the matrix.
    pub(super) fn substitute_tree(&self, w: &mut Work, rows: &[f64]) {
        wide!(self.substitute_along(w, rows));
    }

    #[inline(always)]
    fn substitute_along(&self, w: &mut Work, rows: &[f64]) {
        let mut place = 0;
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let (mut f, mut t) = w.wrenches[i];
            t += k.arms[1].cross(&f);
            let n = node.count();
            let inverse = &w.inverses[place..place + n * n];
            place += n * n;
            let (axes, rows) = (&mut w.axes[node.directions()], &rows[node.directions()]);
            let ball = &mut w.balls[i];
            match n {
                0 => {}
                3 if ball.is_free => ball.inwards(&along(axes, rows), (&mut f, &mut t)),
                2.. if w.touching.acts => {
                    let mut on = [0.0; 6];
                    for (r, (axis, row)) in axes.iter().zip(rows).enumerate() {
                        let by = if r < node.slides { &f } else { &t };
                        on[r] = axis.left.dot(by) + row;
                    }
                    let order = &w.order[node.directions()];
                    Eliminated {
                        lu: inverse,
                        order,
                        transposed: false,
                    }
                    .inwards(axes, &mut on, (&mut f, &mut t));
                }
                1 => give::<1>(node.slides, axes, rows, inverse, (&mut f, &mut t)),
                2 => give::<2>(node.slides, axes, rows, inverse, (&mut f, &mut t)),
                3 => give::<3>(node.slides, axes, rows, inverse, (&mut f, &mut t)),
                4 => give::<4>(node.slides, axes, rows, inverse, (&mut f, &mut t)),
                5 => give::<5>(node.slides, axes, rows, inverse, (&mut f, &mut t)),
                _ => give::<6>(node.slides, axes, rows, inverse, (&mut f, &mut t)),
            }
            if let Some(near) = node.near {
                let to = &mut w.wrenches[near];
                to.0 += f;
                to.1 += t + k.arms[0].cross(&f);
            }
        }
        // displacements by the interval, of the bodies' centers, in the place of the wrenches
        for (i, node) in self.nodes.iter().enumerate() {
            let to = &w.trial[i];
            let (mut moved, mut turned) =
                node.near.map_or_else(Default::default, |n| w.wrenches[n]);
            moved += turned.cross(&to.arms[0]);
            let (at, spun) = (moved, turned);
            let n = node.count();
            place -= n * n;
            let (axes, out) = (&w.axes[node.directions()], &mut w.change[node.directions()]);
            if w.balls[i].is_free {
                turned = w.balls[i].outwards(&at);
                let by = turned - spun;
                for (axis, out) in axes.iter().zip(out) {
                    *out = axis.right.dot(&by);
                }
            } else {
                if n > 1 && w.touching.acts {
                    Eliminated {
                        lu: &w.inverses[place..place + n * n],
                        order: &w.order[node.directions()],
                        transposed: false,
                    }
                    .outwards(axes, (&at, &spun), out);
                } else {
                    for (axis, out) in axes.iter().zip(&mut *out) {
                        *out = -axis.rate - axis.answer.0.dot(&at) - axis.answer.1.dot(&spun);
                    }
                }
                for (r, (axis, rate)) in axes.iter().zip(out).enumerate() {
                    if r < node.slides {
                        moved += axis.right * *rate;
                    } else {
                        turned += axis.right * *rate;
                    }
                }
            }
            w.wrenches[i] = (moved + turned.cross(&to.arms[1]), turned);
        }
    }

    /// The same of a change of the residual along free directions, `linear.rows`, added to `linear.rho[1]`.
    pub(super) fn solve_rows(&self, w: &mut Work, l: &mut Linear) {
        w.wrenches.fill(Default::default());
        self.substitute(w, &l.rows);
        let each = l.rho[1].iter_mut().zip(&w.change);
        each.for_each(|(rho, by)| *rho += by);
    }

    /// Minus the transposed inverse applied to adjoints of rates of displacement, of bodies in `w.wrenches` and along free
    /// directions in `rho`, into `lambda`: the same recursion with both sides swapped. `w.wrenches` are then displacements of bodies
    /// by it.
    pub(super) fn solve_transposed_tree(&self, w: &mut Work, rho: &[f64], lambda: &mut [f64]) {
        wide!(self.substitute_back(w, rho, lambda));
    }

    #[inline(always)]
    fn substitute_back(&self, w: &mut Work, rho: &[f64], lambda: &mut [f64]) {
        let mut place = 0;
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let to = &w.trial[i];
            let (mut f, mut t) = w.wrenches[i];
            t += to.arms[1].cross(&f);
            let (at, about) = (f, t);
            let n = node.count();
            let axes = &mut w.axes[node.directions()];
            let mut on = [0.0; 6];
            let stiff = n > 1 && w.touching.acts;
            if w.balls[i].is_free {
                let mut along = Vec3::zeros();
                for (axis, rho) in axes.iter().zip(&rho[node.directions()]) {
                    along += axis.right * *rho;
                }
                w.balls[i].inwards_transposed(&along, (&mut f, &mut t));
            } else {
                for (r, (axis, rho)) in (axes.iter_mut().zip(&rho[node.directions()])).enumerate() {
                    let by = if r < node.slides { &at } else { &about };
                    axis.rate = rho + axis.right.dot(by);
                    on[r] = axis.rate;
                    if !stiff {
                        f -= axis.answer.0 * axis.rate;
                        t -= axis.answer.1 * axis.rate;
                    }
                }
            }
            if stiff {
                Eliminated {
                    lu: &w.inverses[place..place + n * n],
                    order: &w.order[node.directions()],
                    transposed: true,
                }
                .inwards(axes, &mut on, (&mut f, &mut t));
            }
            place += n * n;
            if let Some(near) = node.near {
                let wrench = &mut w.wrenches[near];
                wrench.0 += f;
                wrench.1 += t + to.arms[0].cross(&f);
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let k = &w.knot[i];
            let (mut moved, mut turned) =
                node.near.map_or_else(Default::default, |n| w.wrenches[n]);
            moved += turned.cross(&k.arms[0]);
            let n = node.count();
            place -= n * n;
            let lambda = &mut lambda[node.directions()];
            if w.balls[i].is_free {
                let spun = turned;
                turned = w.balls[i].outwards_transposed(&moved);
                let by = turned - spun;
                for (axis, to) in w.axes[node.directions()].iter().zip(lambda) {
                    *to = axis.left.dot(&by);
                }
                w.wrenches[i] = (moved + turned.cross(&k.arms[1]), turned);
                continue;
            }
            let inverse = &w.inverses[place..place + n * n];
            let mut left = [0.0; 6];
            let stiff = n > 1 && w.touching.acts;
            let axes = &w.axes[node.directions()];
            if stiff {
                let order = &w.order[node.directions()];
                Eliminated {
                    lu: inverse,
                    order,
                    transposed: true,
                }
                .outwards(axes, (&moved, &turned), &mut left);
            } else {
                for (left, axis) in left.iter_mut().zip(axes) {
                    *left = -axis.rate - axis.wrench.0.dot(&moved) - axis.wrench.1.dot(&turned);
                }
            }
            for (r, (axis, to)) in axes.iter().zip(lambda).enumerate() {
                let by: f64 = if stiff {
                    left[r]
                } else {
                    (0..n).map(|c| inverse[r * n + c] * left[c]).sum()
                };
                *to = by;
                if r < node.slides {
                    moved += axis.left * by;
                } else {
                    turned += axis.left * by;
                }
            }
            w.wrenches[i] = (moved + turned.cross(&k.arms[1]), turned);
        }
    }

    /// Adds to the residual of a joint the impulses of its dampers by the motion after the knot.
    pub(super) fn damp(&self, w: &Work, i: usize, h: f64, residual: &mut [f64]) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let share = node.damper.after(w.h_prev, h);
        if share == 0.0 {
            return;
        }
        self.damped(w, node, k, &w.rates, h, |r, damping, along| {
            residual[r] += damping * share * along;
        });
    }

    /// The displacement along each damped direction of a joint over an interval of these rates.
    pub(super) fn damped(
        &self,
        w: &Work,
        node: &Node,
        k: &AtKnot,
        rates: &[f64],
        h: f64,
        mut each: impl FnMut(usize, f64, f64),
    ) {
        let along = self.displacements(&w.model, node, k, rates, h);
        let directions = w.model.joints[node.joint].directions.iter();
        for (r, (d, along)) in directions.zip(along).enumerate() {
            if d.damping != 0.0 {
                each(r, d.damping, along);
            }
        }
    }

    /// The displacement along each free direction of a joint over an interval of these rates; the rate itself if `h` is 0.
    pub(super) fn displacements(
        &self,
        m: &Mechanism,
        node: &Node,
        k: &AtKnot,
        rates: &[f64],
        h: f64,
    ) -> [f64; 6] {
        let j = &m.joints[node.joint];
        let own = &rates[node.directions()];
        let turned = match node.turns {
            0 => Vec3::zeros(),
            1 => {
                let rate = own[node.slides];
                let along = if h == 0.0 { rate } else { turned_by(rate, h) };
                j.directions[node.slides].unit * along
            }
            _ => {
                let spin = turn(j, node, &k.relative, own);
                match h {
                    0.0 => spin,
                    _ => log(&Self::turned(&Quat::identity(), &spin, h)),
                }
            }
        };
        let mut out = [0.0; 6];
        for (r, d) in j.directions.iter().enumerate() {
            out[r] = if r < node.slides {
                displaced_over(h) * own[r]
            } else {
                d.unit.dot(&turned)
            };
        }
        out
    }
}
