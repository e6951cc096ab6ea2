//! Dampers along the line between a point of one body and one of another, or of the world.
//!
//! With `l` the distance of the points, m, and `c` the damping, N s/m, the damper's impulse at a knot `k` pushes the points apart by
//!
//! ```text
//! T = -c (s- (l_k - l_k-1) + s+ (l_k+1 - l_k)),     shares s-, s+ of 1/2, or 0 and 1 where it is implicit,
//! ```
//!
//! N s, in read-outs with `s-` of 1/2, along the line at the knot: the wrench on the bodies is `T` times the derivative `l'` of `l_k` by their displacements. Where
//! there is no interval before the knot, or behind it (a read-out), that share does not act. By rates of displacement `W` behind the
//! knot the residual, which has `-T l'(z_k)`, changes by `l'(z_k) (c s+ h l'(z_k+1) . W)`, of rank one: the recursion's matrix is
//! bordered by it ([`border`](super::border)). Dampers depend on lengths alone, so that intervals enter them by where they lead bodies,
//! and by nothing else.

use super::Minimal;
use super::contact::six;
use super::derivative::{Flow, Linear, Six, add};
use super::forces::{to_body, to_world};
use super::parameters::Effect;
use super::work::{Moved, Work};
use crate::dynamics::Knot;
use crate::mechanism::{Coupling, DamperShares, Field, Mat6, Mechanism, Row, Spring};
use crate::spatial::{Pose, Vec3, increment};

/// Are velocities read at the knot? Then no interval follows.
pub(super) fn is_read(at: &Knot) -> bool {
    at.h == 0.0
}

/// A spring that damps, or may come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Damper {
    pub spring: usize,
    /// Of the parent, if that is a body, and of the child.
    nodes: [Option<usize>; 2],
    pub shares: DamperShares,
}

impl Damper {
    /// Its ends at bodies, with their nodes.
    fn ends(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let each = self.nodes.into_iter().enumerate();
        each.filter_map(|(end, node)| node.map(|n| (end, n)))
    }
}

/// A damper in a step.
#[derive(Clone, Copy)]
pub(super) struct Damped {
    /// How much longer it became over the intervals before and after the knot, m, 0 where there is none.
    pub grown: [f64; 2],
    /// Of its impulses over them that act at the knot.
    shares: [f64; 2],
    /// What it exerts against that, N s/m.
    scale: [f64; 2],
    /// What it exerts by rates of displacement behind the knot along its line there, N s by m/s.
    by_rate: f64,
    /// That, and the row of that line, as the factors have them: factors that serve again are those of one matrix.
    factored: (f64, [Six; 2]),
    /// Derivatives of its length by displacements of its ends, world axes: at the knot before, at the knot and at the next one.
    rows: [[Six; 2]; 3],
    /// How its wrench in the residual changes with the bodies at the knot while its size is held, where that is linearized.
    turns: Coupling,
}

impl Damped {
    fn new() -> Self {
        Self {
            grown: [0.0; 2],
            shares: [0.0; 2],
            scale: [0.0; 2],
            by_rate: 0.0,
            factored: Default::default(),
            rows: Default::default(),
            turns: Coupling::default(),
        }
    }

    /// The impulse by which it pulls its ends together, N s.
    fn tension(&self) -> f64 {
        self.scale[0] * self.grown[0] + self.scale[1] * self.grown[1]
    }

    /// How one end's wrench changes with a displacement of one.
    fn block(&self, on: usize, by: usize) -> &Mat6 {
        let c = &self.turns;
        match (on, by) {
            (0, 0) => &c.aa.0,
            (0, _) => &c.ab.0,
            (_, 0) => &c.ba.0,
            _ => &c.bb.0,
        }
    }
}

/// Springs that damp between points.
pub(super) fn dampers(m: &Mechanism, node_of: &[usize]) -> Vec<Damper> {
    let each = m.springs.iter().enumerate();
    let damps =
        |(i, s): &(usize, &Spring)| s.damping != 0.0 || m.is_parameter(Field::SpringDamping(*i));
    let node = |b: usize| node_of.get(b).copied();
    let of = |(spring, s): (usize, &Spring)| Damper {
        spring,
        nodes: [s.parent.and_then(node), node(s.child)],
        shares: DamperShares::new(s.implicit),
    };
    each.filter(damps).map(of).collect()
}

/// Where a body is led from its pose at the knot over an interval.
fn led(pose: &Pose, to: &Moved, h: f64) -> Pose {
    let turned = increment(&to.omega, h, to.scalar) * pose.q;
    Pose::new(pose.x + to.velocity * h, turned)
}

fn dot(a: &Six, b: &Six) -> f64 {
    a.0.dot(&b.0) + a.1.dot(&b.1)
}

fn times(a: &Six, by: f64) -> Six {
    (a.0 * by, a.1 * by)
}

/// Length, and its derivative by displacements of both ends, world axes.
fn measure(s: &Spring, a: &Pose, b: &Pose) -> (f64, [Six; 2]) {
    let row = s.length_row(a, b);
    let ends = [
        (-row.force, a.r * row.parent_torque),
        (row.force, b.r * row.child_torque),
    ];
    (s.length(a, b), ends)
}

impl Minimal {
    pub(super) fn damped_memory(&self) -> Vec<Damped> {
        vec![Damped::new(); self.dampers.len()]
    }

    /// Poses of a damper's ends after a motion from the knot.
    fn ends_after(&self, w: &Work, d: &Damper, moved: &[Moved], h: f64) -> [Pose; 2] {
        d.nodes.map(|node| {
            let at = |n: usize| led(&w.poses[self.nodes[n].body], &moved[n], h);
            node.map_or_else(Pose::identity, at)
        })
    }

    /// What is known of dampers at a knot, whose impulses over the interval before it act on bodies.
    pub(super) fn damp_lines_before(&self, at: &Knot, w: &mut Work) {
        let (h_prev, is_read) = (at.h_prev, is_read(at));
        for (i, d) in self.dampers.iter().enumerate() {
            let (m, is_led) = (&w.model, h_prev != 0.0);
            let s = &m.springs[d.spring];
            let (here, row) = measure(s, m.pose(&w.poses, s.parent), &w.poses[s.child]);
            let [a, b] = self.ends_after(w, d, &w.past, -h_prev);
            let (there, row_before) = measure(s, &a, &b);
            let of = &mut w.damped[i];
            of.grown[0] = if is_led { here - there } else { 0.0 };
            of.shares[0] = if is_led {
                d.shares.before(is_read)
            } else {
                0.0
            };
            of.scale[0] = s.damping * of.shares[0];
            (of.rows[0], of.rows[1]) = (row_before, row);
            let pull = -of.scale[0] * of.grown[0];
            for (end, n) in d.ends() {
                add(&mut w.knot[n].base, &times(&row[end], pull));
            }
        }
    }

    /// What of dampers borders the matrix, at the trial.
    pub(super) fn factor_dampers(&self, w: &mut Work, h: f64) {
        self.displace_dampers(w, h);
        for of in &mut w.damped {
            of.factored = (of.by_rate, of.rows[2]);
        }
    }

    /// Where the trial leads dampers.
    pub(super) fn displace_dampers(&self, w: &mut Work, h: f64) {
        for (i, d) in self.dampers.iter().enumerate() {
            let (m, is_led) = (&w.model, h != 0.0);
            let s = &m.springs[d.spring];
            let here = s.length(m.pose(&w.poses, s.parent), &w.poses[s.child]);
            let [a, b] = self.ends_after(w, d, &w.trial, h);
            let (there, row) = measure(s, &a, &b);
            let of = &mut w.damped[i];
            of.grown[1] = if is_led { there - here } else { 0.0 };
            of.shares[1] = if is_led {
                d.shares.after(w.starts)
            } else {
                0.0
            };
            of.scale[1] = s.damping * of.shares[1];
            (of.rows[2], of.by_rate) = (row, of.scale[1] * h);
        }
    }

    /// Adds to wrenches of the residual, in `w.wrenches`, what dampers take over the interval of the trial.
    pub(super) fn damp_lines(&self, w: &mut Work, h: f64) {
        self.displace_dampers(w, h);
        for i in 0..self.dampers.len() {
            let pull = w.damped[i].scale[1] * w.damped[i].grown[1];
            self.exert_damper(w, i, pull);
        }
    }

    /// Adds so many times the unit impulse of a damper that pushes its ends apart to `w.wrenches`.
    pub(super) fn exert_damper(&self, w: &mut Work, i: usize, size: f64) {
        for (end, n) in self.dampers[i].ends() {
            add(&mut w.wrenches[n], &times(&w.damped[i].rows[1][end], size));
        }
    }

    /// By how much rates of displacement, of bodies in `w.wrenches`, change the impulses of dampers, as factored.
    pub(super) fn across_dampers(&self, w: &Work, mut each: impl FnMut(usize, f64)) {
        for (i, (d, of)) in self.dampers.iter().zip(&w.damped).enumerate() {
            let (by_rate, row) = &of.factored;
            let apart = d.ends().map(|(end, n)| dot(&row[end], &w.wrenches[n]));
            each(i, by_rate * apart.sum::<f64>());
        }
    }

    /// The transpose: adds to adjoints of rates of displacement in `w.wrenches`.
    pub(super) fn across_dampers_back(&self, w: &mut Work, by: &[f64]) {
        for ((d, of), by) in self.dampers.iter().zip(&w.damped).zip(by) {
            let (by_rate, row) = &of.factored;
            for (end, n) in d.ends() {
                add(&mut w.wrenches[n], &times(&row[end], by_rate * by));
            }
        }
    }

    /// Takes off rows of bodies the product of the dampers' part of the matrix and velocities `x` of bodies; or of its transpose, and
    /// of virtual displacements.
    pub(super) fn leave_dampers(
        &self,
        w: &Work,
        h: f64,
        x: &[f64],
        rows: &mut [f64],
        transposed: bool,
    ) {
        let body = |n: usize| self.nodes[n].body;
        for (d, of) in self.dampers.iter().zip(&w.damped) {
            // of a wrench at the knot, and of what is dual to velocities at the trial
            let numbers = |(end, n): (usize, usize), at_knot: bool| {
                let (f, t) = of.rows[if at_knot { 1 } else { 2 }][end];
                let t = if at_knot {
                    t
                } else {
                    w.trial[n].spun_back(&t, -0.5 * h)
                };
                to_body(&w.poses[body(n)].r, &(f, t))
            };
            let by = |at: (usize, usize)| numbers(at, transposed).dot(&six(x, body(at.1)));
            let size = of.by_rate * d.ends().map(by).sum::<f64>();
            for at in d.ends() {
                let own = rows[6 * body(at.1)..][..6].iter_mut();
                let on = numbers(at, !transposed);
                own.zip(&on).for_each(|(to, on)| *to -= size * on);
            }
        }
    }

    /// What of dampers is linearized, at the trial.
    pub(super) fn differentiate_dampers(&self, w: &mut Work, h: f64) {
        self.displace_dampers(w, h);
        for (d, of) in self.dampers.iter().zip(&mut w.damped) {
            let s = &w.model.springs[d.spring];
            let (a, b) = (w.model.pose(&w.poses, s.parent), &w.poses[s.child]);
            of.turns = Coupling::default();
            s.add_derivative(0.0, of.tension(), a, b, &mut of.turns);
        }
    }

    /// How the dampers' part of the residual changes with displacements in `linear.flow`; and that part itself.
    pub(super) fn push_dampers(&self, w: &Work, l: &mut Linear) {
        let (h_prev, h) = (l.at.h_prev, l.at.h);
        let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
        for (d, of) in self.dampers.iter().zip(&w.damped) {
            let (size, mut by) = (of.tension(), 0.0);
            for (end, n) in d.ends() {
                let Flow { z, w: rates, .. } = &l.flow[n];
                let [before, here, after] = of.rows.map(|row| row[end]);
                let at = |row: &Six, over: f64, rate: &Six| dot(row, z) + over * dot(row, rate);
                let here = dot(&here, z);
                by += of.scale[0] * (here - at(&before, -h_prev, &rates[0]));
                by += of.scale[1] * (at(&after, h, &rates[1]) - here);
            }
            for (end, n) in d.ends() {
                let (f, t) = of.rows[1][end];
                let mut change = (f * by, t * by);
                for (other, k) in d.ends() {
                    let z = to_body(rotation(k), &l.flow[k].z);
                    add(
                        &mut change,
                        &to_world(rotation(n), &(of.block(end, other) * z)),
                    );
                }
                let own = &mut l.flow[n];
                let wrench = (f * size, t * size);
                // torques turn with their bodies
                change.1 += own.z.1.cross(&wrench.1);
                add(&mut own.change, &change);
                add(&mut own.wrench, &wrench);
            }
        }
    }

    /// The transpose, by virtual displacements in `linear.flow.change`.
    pub(super) fn pull_dampers(&self, w: &Work, l: &mut Linear) {
        let (h_prev, h) = (l.at.h_prev, l.at.h);
        let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
        for (d, of) in self.dampers.iter().zip(&w.damped) {
            let each = d
                .ends()
                .map(|(end, n)| dot(&of.rows[1][end], &l.flow[n].change));
            let (size, by) = (of.tension(), each.sum::<f64>());
            let [old, new] = of.scale.map(|scale| scale * by);
            for (end, n) in d.ends() {
                let [before, here, after] = of.rows.map(|row| row[end]);
                let mut z = times(&here, old - new);
                add(&mut z, &times(&before, -old));
                add(&mut z, &times(&after, new));
                for (other, k) in d.ends() {
                    let virtual_ = to_body(rotation(k), &l.flow[k].change);
                    let by = of.block(other, end).tr_mul(&virtual_);
                    add(&mut z, &to_world(rotation(n), &by));
                }
                let own = &mut l.flow[n];
                let wrench = times(&here, size);
                z.1 += wrench.1.cross(&own.change.1);
                add(&mut own.z, &z);
                add(&mut own.w[0], &times(&before, old * h_prev));
                add(&mut own.w[1], &times(&after, new * h));
                add(&mut own.wrench, &wrench);
            }
        }
    }

    /// What the damping of a spring changes of the residual, per N s/m.
    pub(super) fn by_line_damping(&self, w: &Work, spring: usize, emit: &mut impl FnMut(Effect)) {
        for (d, of) in self.dampers_of(w, spring) {
            let moved = of.shares[0] * of.grown[0] + of.shares[1] * of.grown[1];
            for (end, n) in d.ends() {
                let (f, t) = of.rows[1][end];
                emit(Effect::Body(n, f * moved, t * moved));
            }
        }
    }

    /// The wrench of a spring's damper in the residual by one of its anchors, along `e`, where bodies move as `past` and `trial` tell.
    pub(super) fn by_line_anchor(
        &self,
        w: &Work,
        (spring, e, parent): (usize, &Vec3, bool),
        at: &Knot,
        (past, trial): (&[Moved], &[Moved]),
    ) -> Row {
        let (m, mut row) = (&w.model, Row::ZERO);
        for (d, of) in self.dampers_of(w, spring) {
            let s = &m.springs[spring];
            let (a, b) = (m.pose(&w.poses, s.parent), &w.poses[s.child]);
            let by = |a: &Pose, b: &Pose| s.length_by_anchor(e, parent, a, b);
            let led = |moved: &[Moved], h: f64| {
                let [a, b] = self.ends_after(w, d, moved, h);
                by(&a, &b)
            };
            let here = by(a, b);
            let longer = of.scale[0] * (here - led(past, -at.h_prev))
                + of.scale[1] * (led(trial, at.h) - here);
            row = row + s.length_row(a, b) * longer;
            row = row + s.wrench_by_anchor(e, parent, 0.0, of.tension(), a, b);
        }
        row
    }

    /// Of a spring none, or one.
    fn dampers_of<'a>(
        &'a self,
        w: &'a Work,
        spring: usize,
    ) -> impl Iterator<Item = (&'a Damper, &'a Damped)> {
        let each = self.dampers.iter().zip(&w.damped);
        each.filter(move |(d, _)| d.spring == spring)
    }
}
