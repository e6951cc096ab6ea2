//! Dampers along the line between a point of one body and one of another, or of the world.
//!
//! With `l` the distance of the points, m, and `c` the damping, N s/m, the damper's impulse at a knot `k` pushes the points apart by
//!
//! ```text
//! T = -c (b (l_k - l_k-1) + a (l_k+1 - l_k)),     a and b as in DamperLaw,
//! ```
//!
//! N s, along the line at the knot: the wrench on the bodies is `T` times the derivative `l'` of `l_k` by their displacements. In a read-out
//! the rate of `l` at the knot takes the place of `l_k+1 - l_k`. By rates of displacement `W` after the
//! knot the residual, which has `-T l'(z_k)`, changes by `l'(z_k) (c a h l'(z_k+1) . W)`, of rank one: the recursion's matrix is
//! bordered by it ([`border`](super::border)).

use super::Minimal;
use super::contact::six;
use super::derivative::{Flow, Linear, Six, add, pull_share, share_change};
use super::forces::{to_body, to_world};
use super::parameters::Effect;
use super::work::{Moved, Work};
use crate::dynamics::{Inputs, Knot};
use crate::mechanism::{Coupling, DamperLaw, Field, Mat6, Mechanism, Row, Spring, displaced_over};
use crate::spatial::{Pose, Vec3, increment};

/// A spring that damps, or may come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Damper {
    pub spring: usize,
    /// Of the parent, if that is a body, and of the child.
    nodes: [Option<usize>; 2],
    law: DamperLaw,
}

impl Damper {
    /// Its ends at bodies, with their nodes.
    fn ends(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let each = self.nodes.into_iter().enumerate();
        each.filter_map(|(end, node)| node.map(|n| (end, n)))
    }

    /// Product of a row with the motion of its ends.
    fn rate(&self, row: &[Six; 2], moved: &[Moved]) -> f64 {
        let each = self.ends();
        let each = each.map(|(end, n)| dot(&row[end], &(moved[n].velocity, moved[n].omega)));
        each.sum()
    }
}

/// A damper in a step.
#[derive(Clone, Copy)]
pub(super) struct Damped {
    /// How much longer it became over the intervals before and after the knot, m; its rate, m/s, in a read-out.
    grown: [f64; 2],
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
    /// In a read-out: derivatives of the rate by displacements of both ends, world axes.
    drifts: [Six; 2],
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
            drifts: Default::default(),
        }
    }

    /// The impulse by which it pulls its ends together, N s.
    fn tension(&self) -> f64 {
        self.scale[0] * self.grown[0] + self.scale[1] * self.grown[1]
    }
}

/// How one end's wrench changes with a displacement of one.
fn block(c: &Coupling, on: usize, by: usize) -> &Mat6 {
    match (on, by) {
        (0, 0) => &c.aa.0,
        (0, _) => &c.ab.0,
        (_, 0) => &c.ba.0,
        _ => &c.bb.0,
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
        law: DamperLaw::new(s.implicit),
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

/// A row by displacements of both ends, world axes.
fn by_ends(row: &Row, a: &Pose, b: &Pose) -> [Six; 2] {
    [
        (-row.force, a.r * row.parent_torque),
        (row.force, b.r * row.child_torque),
    ]
}

/// Length, and its derivative by displacements of both ends, world axes.
fn measure(s: &Spring, a: &Pose, b: &Pose) -> (f64, [Six; 2]) {
    (s.length(a, b), by_ends(&s.length_row(a, b), a, b))
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
        let h_prev = at.h_prev;
        for (i, d) in self.dampers.iter().enumerate() {
            let (m, is_led) = (&w.model, h_prev != 0.0);
            let s = &m.springs[d.spring];
            let (here, row) = measure(s, m.pose(&w.poses, s.parent), &w.poses[s.child]);
            let [a, b] = self.ends_after(w, d, &w.past, -h_prev);
            let (there, row_before) = measure(s, &a, &b);
            let of = &mut w.damped[i];
            of.grown[0] = if is_led { here - there } else { 0.0 };
            of.shares[0] = d.law.before();
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
            let m = &w.model;
            let s = &m.springs[d.spring];
            let here = s.length(m.pose(&w.poses, s.parent), &w.poses[s.child]);
            let [a, b] = self.ends_after(w, d, &w.trial, h);
            let (there, row) = measure(s, &a, &b);
            let of = &mut w.damped[i];
            of.grown[1] = match h {
                0.0 => d.rate(&row, &w.trial),
                _ => there - here,
            };
            of.shares[1] = d.law.after(w.h_prev, h);
            of.scale[1] = s.damping * of.shares[1];
            (of.rows[2], of.by_rate) = (row, of.scale[1] * displaced_over(h));
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
            if h == 0.0 && d.law.is_implicit() {
                let mut unit = Coupling::default();
                s.add_derivative(0.0, 1.0, a, b, &mut unit);
                let r = |n: usize| &w.poses[self.nodes[n].body].r;
                for (end, n) in d.ends() {
                    let each = d.ends().map(|(on, k)| {
                        let moved = to_body(r(k), &(w.trial[k].velocity, w.trial[k].omega));
                        block(&unit, on, end).tr_mul(&moved)
                    });
                    of.drifts[end] = to_world(r(n), &each.sum());
                }
            }
        }
    }

    /// How the dampers' part of the residual changes with displacements in `linear.flow`; and that part itself.
    pub(super) fn push_dampers(&self, w: &Work, l: &mut Linear, inputs: &Inputs) {
        let (h_prev, h) = (l.at.h_prev, l.at.h);
        let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
        for (d, of) in self.dampers.iter().zip(&w.damped) {
            let damping = w.model.springs[d.spring].damping;
            let change = damping * share_change(d.law, &l.at, inputs);
            let (size, mut by) = (of.tension(), change * of.grown[1]);
            for (end, n) in d.ends() {
                let Flow { z, w: rates, .. } = &l.flow[n];
                let [before, here, after] = of.rows.map(|row| row[end]);
                let at = |row: &Six, over: f64, rate: &Six| dot(row, z) + over * dot(row, rate);
                let here = dot(&here, z);
                by += of.scale[0] * (here - at(&before, -h_prev, &rates[0]));
                by += of.scale[1]
                    * match h {
                        0.0 => at(&of.drifts[end], 0.0, &rates[1]) + dot(&after, &rates[1]),
                        _ => at(&after, h, &rates[1]) - here,
                    };
            }
            for (end, n) in d.ends() {
                let (f, t) = of.rows[1][end];
                let mut change = (f * by, t * by);
                for (other, k) in d.ends() {
                    let z = to_body(rotation(k), &l.flow[k].z);
                    add(
                        &mut change,
                        &to_world(rotation(n), &(block(&of.turns, end, other) * z)),
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
    pub(super) fn pull_dampers(&self, w: &Work, l: &mut Linear, out: &mut Inputs) {
        let (h_prev, h) = (l.at.h_prev, l.at.h);
        let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
        for (d, of) in self.dampers.iter().zip(&w.damped) {
            let each = d
                .ends()
                .map(|(end, n)| dot(&of.rows[1][end], &l.flow[n].change));
            let (size, by) = (of.tension(), each.sum::<f64>());
            let [old, new] = of.scale.map(|scale| scale * by);
            let damping = w.model.springs[d.spring].damping;
            pull_share(d.law, &l.at, damping * of.grown[1] * by, out);
            for (end, n) in d.ends() {
                let [before, here, after] = of.rows.map(|row| row[end]);
                let (mut z, led) = match h {
                    0.0 => (times(&here, old), &of.drifts[end]),
                    _ => (times(&here, old - new), &after),
                };
                add(&mut z, &times(&before, -old));
                add(&mut z, &times(led, new));
                for (other, k) in d.ends() {
                    let virtual_ = to_body(rotation(k), &l.flow[k].change);
                    let by = block(&of.turns, other, end).tr_mul(&virtual_);
                    add(&mut z, &to_world(rotation(n), &by));
                }
                let own = &mut l.flow[n];
                let wrench = times(&here, size);
                z.1 += wrench.1.cross(&own.change.1);
                add(&mut own.z, &z);
                add(&mut own.w[0], &times(&before, old * h_prev));
                add(&mut own.w[1], &times(&after, new * displaced_over(h)));
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
            let after = match at.h {
                0.0 => {
                    let line = s.wrench_by_anchor(e, parent, 0.0, 1.0, a, b);
                    d.rate(&by_ends(&line, a, b), trial)
                }
                h => led(trial, h) - here,
            };
            let longer = of.scale[0] * (here - led(past, -at.h_prev)) + of.scale[1] * after;
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
