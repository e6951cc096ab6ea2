//! Derivatives of the step by one recursion inwards and one outwards, in either direction.
//!
//! A change of the knot displaces bodies by `Z` (world axes, `(dx, phi)`), a change of either neighbour by `Z + h W`: `W` are rates
//! of displacement, which exist where `h` is 0, too. Along the tree, with `a` the arm from a body to a joint and from there on,
//! `a+` where the interval leads it, `b = (a+ - a)/h`, and `s`, `s+` a free direction at both ends,
//!
//! ```text
//! dx' = dx + phi x a + s dq,     W' = W + W_phi x a+ + phi x b + s+ rho + (s+ - s)/h dq.
//! ```
//!
//! Momenta `p` change by `phi x p + D (W - (phi x v, 0)) - p dh/h` ([`momentum`](super::momentum)), and the residual along a free
//! direction, `s . F` or `s . T` of the wrench of all bodies further out, by its own turn as well. `rho` of the interval behind the knot
//! is what the factors give, so that nothing of the next knot enters what they are applied to; rates, and coordinates at the next knot,
//! follow joint by joint ([`Local`]).

use super::Minimal;
use super::contact::Singular;
use super::contact_derivative::{Stage, Touched};
use super::forces::{to_body, to_world};
use super::kinematics::turn;
use super::local::{Local, spring_derivative, third_by_turn, third_drift};
use super::momentum::Blocks;
use super::parameters::Effect;
use super::work::{Moved, Work, wide};
use crate::dynamics::{
    Certificate, Differentiable, Inputs, Knot, Outputs, SolvedStep, StepError, StepFailure,
};
use crate::integrator::parameter;
use crate::mechanism::{DamperLaw, Drive, displaced_over};
use crate::spatial::{Mat3, Vec3};

/// Before the knot, and behind it.
pub(super) const SIDES: [usize; 2] = [0, 1];

pub(super) type Six = (Vec3, Vec3);

/// Memory of a linearized step.
pub(super) struct Linear {
    pub at: Knot,
    /// Along each free direction, of both sides: it at the end, and by how much it moves there, by the interval.
    pub ends: Vec<[(Vec3, Vec3); 2]>,
    /// Are these found of all joints?
    pub has_ends: bool,
    pub locals: Vec<[Local; 2]>,
    /// By turns at the knot, of springs.
    pub springs: Vec<Mat3>,
    /// Derivative of the momenta by rates of displacement.
    pub momenta: Vec<[Blocks; 2]>,
    pub flow: Vec<Flow>,
    /// Of the joints' free directions: rates of displacement of both sides, right-hand sides and multipliers.
    pub rho: [Vec<f64>; 2],
    pub rows: Vec<f64>,
    pub lambda: Vec<f64>,
    /// What else displaces a joint virtually, all six directions; empty where nothing does.
    pub seeds: Vec<Six>,
    /// Adjoint of each arm, at the knot, where there are parameters.
    pub arms: Vec<[Vec3; 2]>,
    /// Are momenta held, of displacements of the knot alone?
    pub holds_momenta: bool,
    pub touching: Touched,
}

/// Of a body, on the way: displacement or its adjoint at the knot, and as rates on both sides; the residual's wrench and its change.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub z: Six,
    pub w: [Six; 2],
    pub arms: [Vec3; 2],
    pub wrench: Six,
    pub change: Six,
}

impl Flow {
    pub const ZERO: Self = {
        let none = (Vec3::new(0.0, 0.0, 0.0), Vec3::new(0.0, 0.0, 0.0));
        Self {
            z: none,
            w: [none; 2],
            arms: [none.0; 2],
            wrench: none,
            change: none,
        }
    };
}

impl Linear {
    pub fn new(n: usize, freedoms: usize) -> Self {
        let zero = Vec3::zeros();
        Self {
            at: Knot {
                k: 0,
                t: 0.0,
                h_prev: 0.0,
                h: 0.0,
            },
            ends: vec![[(zero, zero); 2]; freedoms],
            has_ends: false,
            locals: vec![[Local::NONE; 2]; n],
            springs: vec![Mat3::zeros(); n],
            momenta: vec![[Blocks::ZERO; 2]; n],
            flow: vec![Flow::ZERO; n],
            rho: [vec![0.0; freedoms], vec![0.0; freedoms]],
            rows: vec![0.0; freedoms],
            lambda: vec![0.0; freedoms],
            seeds: vec![],
            arms: vec![[zero; 2]; n],
            holds_momenta: false,
            touching: Touched::default(),
        }
    }
}

/// The transpose of [`Moved::turned`].
#[inline(always)]
pub(super) fn turned_back(to: &Moved, f: &Vec3, h: f64) -> Vec3 {
    let across = to.omega.cross(f);
    to.omega.cross(&across) * (0.5 * h) - across * to.scalar
}

/// Up to three numbers as a vector.
#[inline(always)]
pub(super) fn short(v: &[f64]) -> Vec3 {
    Vec3::from_fn(|i, _| v.get(i).copied().unwrap_or(0.0))
}

#[inline(always)]
pub(super) fn add(to: &mut Six, d: &Six) {
    to.0 += d.0;
    to.1 += d.1;
}

impl Minimal {
    /// The memory of what is linearized, which who takes it gives back.
    pub(super) fn lend(w: &mut Work) -> Box<Linear> {
        w.linear
            .take()
            .expect("every function that takes it puts it back before it returns")
    }

    /// Everything at a knot and at the unknowns given, with the factors.
    pub(super) fn linearize_at(
        &self,
        at: &Knot,
        (x, u, y): (&[f64], &[f64], &[f64]),
        w: &mut Work,
    ) -> Result<(), StepError> {
        self.evaluate_at(at, (x, u, y), y, w)?;
        self.linearize_contacts(at.h, w);
        self.factor_touching(w, at.h).map_err(|singular| {
            let body = match singular {
                Singular::Joint(body) => body,
                Singular::Impulses => self.nodes[0].body,
            };
            // the residual of the step shows whether its state is finite
            let residual = self.certificate(at.h, w).residual;
            self.failure(StepFailure::Singular, at, body, residual)
        })
    }

    /// The same without the factors; `places` are the unknowns that say which points of rims are held, none those found at the knot.
    pub(super) fn evaluate_at(
        &self,
        at: &Knot,
        step: (&[f64], &[f64], &[f64]),
        places: &[f64],
        w: &mut Work,
    ) -> Result<(), StepError> {
        self.follow(at, step, places, w)?;
        self.couple(w);
        let mut linear = Self::lend(w);
        linear.at = *at;
        self.differentiate(step.0, w, &mut linear);
        w.linear = Some(linear);
        Ok(())
    }

    /// Where a step leads that is known, and what touches there, without derivatives.
    pub(super) fn follow(
        &self,
        at: &Knot,
        (x, u, y): (&[f64], &[f64], &[f64]),
        places: &[f64],
        w: &mut Work,
    ) -> Result<(), StepError> {
        self.prepare(at, x, u, w)?;
        self.prepare_contacts(&at.step(), x, w);
        self.take_places(places, w);
        let (contacts, impulses) = self.beyond_rates(y);
        w.rates.copy_from_slice(&y[..self.freedoms]);
        w.geared.impulses.copy_from_slice(impulses);
        if let Some(body) = self.lead(&w.knot, &w.axes, &w.rates, at.h, &mut w.trial) {
            return Err(self.failure(StepFailure::Domain, at, body, f64::NAN));
        }
        self.touch_as_given(contacts, at.h, w);
        Ok(())
    }

    pub(super) fn differentiate(&self, x: &[f64], w: &mut Work, l: &mut Linear) {
        self.differentiate_dampers(w, l.at.h);
        wide!(self.differentiate_bodies(x, w, l));
        l.has_ends = false;
    }

    #[inline(always)]
    fn differentiate_bodies(&self, x: &[f64], w: &mut Work, l: &mut Linear) {
        let sides = [-l.at.h_prev, l.at.h];
        for (i, node) in self.nodes.iter().enumerate() {
            let (k, j) = (&w.knot[i], &w.model.joints[node.joint]);
            let to = &w.trial[i];
            w.momenta[i][1] = (self.lagrangian).momentum(k.mass, (&k.inertia, &k.law), to, l.at.h);
            if k.is_sprung {
                l.springs[i] = spring_derivative(j, node, k);
            }
            for side in SIDES {
                let (to, rates) = match side {
                    0 => (&w.past[i], &x[self.positions..]),
                    _ => (&w.trial[i], &w.rates[..]),
                };
                let (own, h) = (&rates[node.directions()], sides[side]);
                (self.lagrangian).differentiate(k, to, h, &mut l.momenta[i][side]);
                l.locals[i][side].update(j, node, &k.relative, own, h);
            }
            if node.turns == 2 {
                self.find_ends(w, l, i);
            }
        }
    }

    /// Where free directions are at both ends, of all joints. Pulls need it of those alone whose directions turn by themselves.
    pub(super) fn find_all_ends(&self, w: &Work, l: &mut Linear) {
        if !std::mem::replace(&mut l.has_ends, true) {
            (0..self.nodes.len()).for_each(|i| self.find_ends(w, l, i));
        }
    }

    #[inline(never)]
    fn find_ends(&self, w: &Work, l: &mut Linear, i: usize) {
        let sides = [-l.at.h_prev, l.at.h];
        let node = &self.nodes[i];
        let (k, j) = (&w.knot[i], &w.model.joints[node.joint]);
        for side in SIDES {
            let (moved, rates) = match side {
                0 => (&w.past, &w.before),
                _ => (&w.trial, &w.rates),
            };
            let (own, h) = (&rates[node.directions()], sides[side]);
            let holds = self.holds(moved, i);
            for index in node.directions() {
                let mut unit = w.axes[index].left;
                let mut drift = Vec3::zeros();
                if node.turns == 2 && index >= node.first + node.slides {
                    let d = &j.directions[index - node.first].unit;
                    let omega = turn(j, node, &k.relative, own);
                    drift = k.joint * third_drift(j, node, &k.relative, &omega, h, d);
                    unit += drift * h;
                }
                drift += holds.turned(&unit, h);
                // where it is at the knot is known; from there it drifts
                l.ends[index][side] = (w.axes[index].left + drift * h, drift);
            }
        }
    }

    /// The motion of what a joint's free directions are fixed in.
    #[inline(always)]
    pub(super) fn holds<'a>(&self, moved: &'a [Moved], i: usize) -> &'a Moved {
        let node = &self.nodes[i];
        match (node.reversed, node.near) {
            (true, _) => &moved[i],
            (false, Some(near)) => &moved[near],
            (false, None) => &Moved::WORLD,
        }
    }

    /// Change of the residual along free directions by that of the inputs and of rates of displacement behind the knot, into
    /// `linear.rows`. Rates before it go into `linear.rho[0]`.
    pub(super) fn push_residual(&self, w: &mut Work, l: &mut Linear, d: &Inputs) {
        let (at, half) = (l.at, 0.5 * (l.at.h_prev + l.at.h));
        let longer_half = 0.5 * (d.h_prev + d.h);
        let longer = longer(&at, d);
        let sides = [-at.h_prev, at.h];
        self.find_all_ends(w, l);
        l.rows.fill(0.0);
        for f in &mut l.flow {
            *f = Flow::ZERO;
        }
        let (flow, rows) = (&mut l.flow, &mut l.rows);
        for (i, dp) in d.p.iter().enumerate().filter(|(_, dp)| **dp != 0.0) {
            let ends = (&w.past[..], &w.trial[..]);
            self.by_parameter(w, &at, ends, i, |effect| match effect {
                Effect::Body(n, f, t) => add(&mut flow[n].change, &(f * *dp, t * *dp)),
                Effect::Joint(r, by) => rows[r] += by * dp,
                Effect::Arm(n, side, by) => flow[n].arms[side] += by * *dp,
            });
        }
        self.push_controls(w, &d.u, half, flow, rows);
        // outwards
        for (i, node) in self.nodes.iter().enumerate() {
            let k = &w.knot[i];
            let q = &d.x[node.directions()];
            let near = node.near.map_or(Flow::ZERO, |n| l.flow[n]);
            let own = &mut l.flow[i];
            let given = own.arms;
            let axes = &w.axes[node.directions()];
            let mut phi = near.z.1;
            for (axis, q) in axes.iter().zip(q).skip(node.slides) {
                phi += axis.left * *q;
            }
            own.arms[0] += near.z.1.cross(&k.arms[0]);
            own.arms[1] += phi.cross(&k.arms[1]);
            let mut along = Vec3::zeros();
            for (axis, q) in axes.iter().zip(q).take(node.slides) {
                along += axis.left * *q;
            }
            own.arms[usize::from(node.reversed)] += along;
            own.z = (near.z.0 + own.arms[0] + own.arms[1], phi);
            let rates = &d.x[self.freedoms..][node.directions()];
            let turns = node.slides..node.count();
            for side in SIDES {
                let moved = [&w.past, &w.trial][side];
                let (to, h) = (&moved[i], sides[side]);
                let rho = &mut l.rho[side][node.directions()];
                if side == 0 {
                    let before = &w.before[node.directions()];
                    for (r, rho) in rho.iter_mut().enumerate().take(node.slides) {
                        *rho = rates[r] + before[r] * longer[0];
                    }
                    let local = &l.locals[i][0];
                    let of = |v: &[f64]| short(&v[turns.clone()]);
                    let ends = local.ends(&of(rates), &of(q), longer[0]);
                    for (rho, e) in rho[turns.clone()].iter_mut().zip(ends.iter()) {
                        *rho = *e;
                    }
                }
                let inner = near.w[side];
                let by = node.near.map_or(&Moved::WORLD, |n| &moved[n]);
                let (mut x, mut turned) = inner;
                x += inner.1.cross(&to.arms[0]) + near.z.1.cross(&to.drifts[0]);
                x += by.turned(&given[0], h) + to.turned(&given[1], h);
                let ends = &l.ends[node.directions()];
                for (r, ((end, rho), q)) in ends.iter().zip(rho.iter()).zip(q).enumerate() {
                    let moves = end[side].0 * *rho + end[side].1 * *q;
                    if r < node.slides {
                        x += moves;
                    } else {
                        turned += moves;
                    }
                }
                x += turned.cross(&to.arms[1]) + phi.cross(&to.drifts[1]);
                if !l.holds_momenta {
                    own.w[side] = (x, turned);
                }
            }
        }
        self.push_couplings(w, &mut l.flow, half);
        self.push_dampers(w, l, d);
        self.push_touching(w, l, d);
        // inwards
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let near_phi = node.near.map_or(Vec3::zeros(), |n| l.flow[n].z.1);
            let own = &mut l.flow[i];
            let phi = own.z.1;
            let mut f = own.wrench.0 - k.force.0 * half - k.touch.0;
            let mut t = own.wrench.1 - k.force.1 * half - k.touch.1;
            let (mut df, mut dt) = own.change;
            df -= k.force.0 * longer_half;
            dt -= k.force.1 * longer_half;
            for side in SIDES {
                let sign = if side == 0 { -1.0 } else { 1.0 };
                let (p, v) = (&w.momenta[i][side], &[&w.past, &w.trial][side][i].velocity);
                f += p.0 * sign;
                t += p.1 * sign;
                let dp = l.momenta[i][side].change(v, p, &phi, &own.w[side]);
                df += (dp.0 - p.0 * longer[side]) * sign;
                dt += (dp.1 - p.1 * longer[side]) * sign;
            }
            t += k.arms[1].cross(&f);
            dt += own.arms[1].cross(&f) + k.arms[1].cross(&df);
            let j = &w.model.joints[node.joint];
            let q = &d.x[node.directions()];
            let holds = if node.reversed { phi } else { near_phi };
            let eta = self.eta(w, i, q);
            for (r, index) in node.directions().enumerate() {
                let axis = &w.axes[index].left;
                let mut turned = holds.cross(axis);
                if node.turns == 2 && r >= node.slides {
                    let unit = &j.directions[r].unit;
                    turned += k.joint * third_by_turn(j, node, &k.relative, unit, &eta);
                }
                let (on, by) = if r < node.slides {
                    (&f, &df)
                } else {
                    (&t, &dt)
                };
                l.rows[index] += turned.dot(on) + axis.dot(by) - longer_half * w.efforts[index];
            }
            self.push_joint(w, l, i, d, half);
            if let Some(near) = node.near {
                let arms = l.flow[i].arms;
                let to = &mut l.flow[near];
                to.wrench.0 += f;
                to.wrench.1 += t + k.arms[0].cross(&f);
                to.change.0 += df;
                to.change.1 += dt + arms[0].cross(&f) + k.arms[0].cross(&df);
            }
        }
    }

    /// The turn of a joint's relative rotation by changes of its coordinates, in its parent's frame.
    fn eta(&self, w: &Work, i: usize, q: &[f64]) -> Vec3 {
        let node = &self.nodes[i];
        if node.turns == 2 {
            turn(&w.model.joints[node.joint], node, &w.knot[i].relative, q)
        } else {
            Vec3::zeros()
        }
    }

    /// Efforts that a joint's own coordinates change: of springs and dampers.
    fn push_joint(&self, w: &Work, l: &mut Linear, i: usize, inputs: &Inputs, half: f64) {
        let node = &self.nodes[i];
        let q = &inputs.x[node.directions()];
        let j = &w.model.joints[node.joint];
        let own = node.directions();
        let turns = own.start + node.slides..own.end;
        let springs = match w.knot[i].is_sprung {
            true => l.springs[i] * short(&q[node.slides..]),
            false => Vec3::zeros(),
        };
        for (r, d) in j.directions.iter().enumerate() {
            let by_q = if r < node.slides {
                -d.stiffness * q[r]
            } else {
                springs[r - node.slides]
            };
            l.rows[own.start + r] -= half * by_q;
        }
        if !w.knot[i].is_damped {
            return;
        }
        for side in SIDES {
            let (share, h) = damping(node.damper, &l.at, side);
            let local = &l.locals[i][side];
            let turned = local.damped_by_end * short(&l.rho[side][turns.clone()])
                + local.damped_by_knot * short(&q[node.slides..]);
            for (r, d) in j.directions.iter().enumerate() {
                let moved = if r < node.slides {
                    h * l.rho[side][own.start + r]
                } else {
                    turned[r - node.slides]
                };
                l.rows[own.start + r] += d.damping * share * moved;
            }
        }
        let change = share_change(node.damper, &l.at, inputs);
        if change != 0.0 {
            let along = self.displacements(&w.model, node, &w.knot[i], &w.rates, l.at.h);
            for ((row, d), along) in l.rows[own].iter_mut().zip(&j.directions).zip(along) {
                *row += d.damping * change * along;
            }
        }
    }

    fn push_controls(&self, w: &Work, du: &[f64], half: f64, flow: &mut [Flow], rows: &mut [f64]) {
        let m = &w.model;
        for ((a, du), (_, slope)) in m.actuators.iter().zip(du).zip(&w.controls) {
            let size = -half * slope * du;
            if let Drive::Joint { joint, direction } = a.drive {
                rows[self.driven_direction(joint, direction)] += a.gain * size;
            } else if *du != 0.0 {
                self.each_wrench(w, a, |n, f, t| {
                    add(&mut flow[n].change, &(f * size, t * size))
                });
            }
        }
    }

    /// The wrench of a unit of an actuator's control on bodies.
    pub(super) fn each_wrench(
        &self,
        w: &Work,
        a: &crate::mechanism::Actuator,
        each: impl FnMut(usize, Vec3, Vec3),
    ) {
        let m = &w.model;
        let (parent, child) = m.driven(a);
        let row = a.row(&m.joints, (m.pose(&w.poses, parent), &w.poses[child]));
        super::forces::each_end(self, &w.poses, (parent, child), &row, each);
    }

    /// How forces on bodies change with these.
    fn push_couplings(&self, w: &Work, flow: &mut [Flow], half: f64) {
        for (on, by, block) in &w.couplings {
            let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
            let z = to_body(rotation(*by), &flow[*by].z);
            let change = to_world(rotation(*on), &(block * z * -half));
            add(&mut flow[*on].change, &change);
        }
        // torques turn with their bodies
        for (f, k) in flow.iter_mut().zip(&w.knot) {
            f.change.1 -= f.z.1.cross(&k.force.1) * half;
        }
    }

    /// Rates of displacement behind the knot become unknowns and coordinates at the next knot: their changes.
    pub(super) fn push_ends(&self, w: &Work, l: &Linear, d: &Inputs, out: &mut Outputs) {
        let (h, n) = (l.at.h, self.freedoms);
        let longer = longer(&l.at, d)[1];
        for (i, node) in self.nodes.iter().enumerate() {
            let own = node.directions();
            let turns = own.start + node.slides..own.end;
            let rho = &l.rho[1];
            let rates = l.locals[i][1].rates(
                &short(&rho[turns.clone()]),
                &short(&d.x[turns.clone()]),
                longer,
            );
            for (r, index) in own.enumerate() {
                out.y[index] = if r < node.slides {
                    rho[index] - w.rates[index] * longer
                } else {
                    rates[r - node.slides]
                };
                out.x[index] = d.x[index] + h * rho[index];
                out.x[n + index] = out.y[index];
            }
        }
    }

    /// The transpose: adjoints of rates of displacement, into `linear.rho[1]`, and what reaches inputs directly.
    pub(super) fn pull_ends(&self, w: &Work, l: &mut Linear, adjoint: &Outputs, out: &mut Inputs) {
        wide!(self.pull_joint_ends(w, l, adjoint, out));
    }

    #[inline(always)]
    fn pull_joint_ends(&self, w: &Work, l: &mut Linear, adjoint: &Outputs, out: &mut Inputs) {
        let (h, n) = (l.at.h, self.freedoms);
        let mut longer = 0.0;
        for (i, node) in self.nodes.iter().enumerate() {
            let mut rates = Vec3::zeros();
            for (r, index) in node.directions().enumerate() {
                let y = adjoint.x[n + index] + adjoint.y[index];
                l.rho[1][index] = h * adjoint.x[index];
                out.x[index] += adjoint.x[index];
                if r < node.slides {
                    l.rho[1][index] += y;
                    longer -= y * w.rates[index];
                } else {
                    rates[r - node.slides] = y;
                }
            }
            let (rho, knot, by) = l.locals[i][1].rates_transposed(node.turns, &rates);
            longer += by;
            for (r, index) in node.directions().enumerate().skip(node.slides) {
                l.rho[1][index] += rho[r - node.slides];
                out.x[index] += knot[r - node.slides];
            }
        }
        out.h += over(longer, h);
    }
}

/// `dh/h` of both intervals.
fn longer(at: &Knot, d: &Inputs) -> [f64; 2] {
    [over(d.h_prev, at.h_prev), over(d.h, at.h)]
}

/// A quotient by an interval; where there is none nothing changes with it.
pub(super) fn over(d: f64, h: f64) -> f64 {
    if h == 0.0 { 0.0 } else { d / h }
}

/// The share of dampers over an interval, with its sign, and the interval as it is led over.
pub(super) fn damping(law: DamperLaw, at: &Knot, side: usize) -> (f64, f64) {
    match side {
        // at a start nothing was moved
        0 if at.h_prev == 0.0 => (0.0, 0.0),
        // what was moved before the knot is led back over
        0 => (-law.before(), -at.h_prev),
        _ => (law.after(at.h_prev, at.h), displaced_over(at.h)),
    }
}

/// How the share over the interval after a knot changes with the intervals.
pub(super) fn share_change(law: DamperLaw, at: &Knot, d: &Inputs) -> f64 {
    let [by_before, by_after] = law.after_by_intervals(at.h_prev, at.h);
    by_before * d.h_prev + by_after * d.h
}

/// The transpose of [`share_change`].
pub(super) fn pull_share(law: DamperLaw, at: &Knot, by: f64, out: &mut Inputs) {
    let [by_before, by_after] = law.after_by_intervals(at.h_prev, at.h);
    out.h_prev += by_before * by;
    out.h += by_after * by;
}

impl Differentiable for Minimal {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Work) -> Result<Certificate, StepError> {
        parameter::apply(&self.mechanism, at.p, &mut w.parameters, &mut w.model)?;
        self.linearize_at(&at.at, (at.x, at.u, at.y), w)?;
        Ok(self.certificate(at.at.h, w))
    }

    fn push_in(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        let mut l = Self::lend(w);
        self.lift(w, &mut l, d);
        l.touching.stage = self.stage_of_solved(w);
        self.push_residual(w, &mut l, d);
        if l.touching.stage == Stage::Off {
            self.solve_rows(w, &mut l);
        } else {
            self.solve_touching(w, &mut l, out);
        }
        l.touching.stage = Stage::Off;
        self.push_impulses(w, out);
        self.push_ends(w, &l, d, out);
        w.linear = Some(l);
    }

    fn pull_in(&self, w: &mut Work, adjoint: &Outputs, out: &mut Inputs) {
        let mut l = Self::lend(w);
        out.clear();
        for flow in &mut l.flow {
            (flow.z, flow.w) = Default::default();
        }
        self.pull_ends(w, &mut l, adjoint, out);
        let (contacts, impulses) = self.beyond_rates(&adjoint.y);
        w.geared.begin_pull(impulses, &l.rho[1]);
        l.touching.stage = self.stage_of_solved(w);
        if l.touching.stage == Stage::Off {
            w.wrenches.fill(Default::default());
            let l = &mut *l;
            self.solve_transposed(w, &l.rho[1], &mut l.lambda);
            self.certify_recursion(w, l);
        } else {
            self.solve_touching_back(w, &mut l, contacts);
        }
        self.pull_residual(w, &mut l, out);
        l.touching.stage = Stage::Off;
        self.lift_back(w, &l, out);
        w.linear = Some(l);
    }

    fn smoothing(&self, w: &mut Work, kappa: f64) {
        w.relaxed = kappa;
        w.touching.memory.relax(kappa);
    }

    fn kept(&self) -> usize {
        self.kept_len()
    }

    fn keep_in(&self, w: &Work, kept: &mut [f64]) -> bool {
        self.keep_linearized(w, kept)
    }

    fn restore_in(&self, at: &SolvedStep, kept: &[f64], w: &mut Work) -> Result<bool, StepError> {
        self.restore_linearized(at, kept, w)
    }
}
