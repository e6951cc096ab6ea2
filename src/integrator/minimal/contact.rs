//! Contacts, joint limits and joint friction as part of the step.
//!
//! The contact module works with velocities of bodies, linear in the world and angular in the body, and with wrenches dual to
//! them. Here these follow from the joints' rates: a rate of displacement `W` of a body (world axes, both parts) changes its
//! velocities by
//!
//! ```text
//! (dv, dw) = (W_x, Q' (s - h/2 [omega]) W_phi),
//! ```
//!
//! and wrenches go inwards to the joints' free directions. What a contact with the world adds to the matrix, it adds to its
//! body's 6 x 6 within the recursion; what limits and friction of a joint add is the joint's own, of its pivot.

use super::derivative::short;
use super::forces::{to_body, to_world};
use super::kinematics::slide;
use super::local::Local;
use super::stepping::Stepping;
use super::work::{Articulated, Moved, Work, wide};
use super::{Minimal, Node};
use crate::contact::{self, Acts, Failed, KnotWork, Loads, Memory, NewtonSystem, Solver, View};
use crate::dynamics::{Knot, KnotPoint, Place, StepError, StepFailure, StepStats};
use crate::integrator::failure::explain_contacts;
use crate::mechanism::{Relative, Vec6};
use crate::spatial::{Mat3, Pose, RotationLaw, Vec3, increment};

/// Roundings of a row of the residual, which sums momenta of bodies.
const ROUNDINGS: f64 = 8.0;

/// Angular velocity of a body per unit rate of a joint with two rotational coordinates, above which a failure is attributed to the singularity at half a
/// turn. It is reached within 0.001 rad of the singularity, where three digits of the rates are lost.
const NEAR_HALF_TURN: f64 = 1e3;

/// Memory of what touches.
pub(super) struct Touching {
    pub memory: Memory,
    /// Is it part of the matrix?
    pub acts: bool,
    /// Are the impulses of stiff contacts unknowns of their own, as last factored?
    pub has_unknown_impulses: bool,
    pub at: Place,
    /// Where the trial leads; scalar parts of the turns.
    pub next: Vec<Pose>,
    scalar: Vec<f64>,
    relative: Vec<Relative>,
    windings: Vec<f64>,
    /// Velocities of the interval before, six a body; unknowns of the trial: six a body that follow from the joints' rates behind
    /// them.
    pub before: Vec<f64>,
    pub trial: Vec<f64>,
    pub residual: Vec<f64>,
    pub rows: Vec<f64>,
    /// What rounding leaves of the residual, N s.
    pub floor: f64,
    /// What it adds to bodies, about their joints, to the pivots of joints, and to what displacements nearer to the world make along
    /// their directions.
    pub added: Vec<Articulated>,
    pub pivots: Vec<f64>,
    pub answers: Vec<(Vec3, Vec3)>,
}

impl Touching {
    pub fn new(minimal: &Minimal) -> Self {
        let m = &minimal.mechanism;
        let (n, dim) = (m.bodies.len(), minimal.dimension());
        let or_none = |count| {
            if minimal.contacts.is_empty() {
                0
            } else {
                count
            }
        };
        let relative = Relative {
            arm: Vec3::zeros(),
            r: crate::spatial::Quat::identity(),
        };
        let knot = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h: 0.0,
        };
        Self {
            memory: minimal.contacts.memory(dim, 0),
            acts: false,
            has_unknown_impulses: false,
            at: knot.readout(),
            next: vec![Pose::identity(); or_none(n)],
            scalar: vec![1.0; or_none(n)],
            relative: vec![relative; or_none(m.joints.len())],
            windings: vec![0.0; or_none(m.joints.len())],
            before: vec![0.0; or_none(6 * n)],
            trial: vec![0.0; or_none(dim)],
            residual: vec![0.0; or_none(dim)],
            rows: vec![0.0; or_none(6 * n)],
            floor: 0.0,
            added: vec![Articulated::ZERO; or_none(n)],
            answers: vec![Default::default(); or_none(minimal.freedoms)],
            pivots: vec![0.0; or_none(minimal.pivot_of.last().copied().unwrap_or(0))],
        }
    }
}

/// What of a matrix with contacts is singular.
#[derive(Clone, Copy, Debug)]
pub(super) enum Singular {
    /// The joint of this body.
    Joint(usize),
    /// The system of the impulses.
    Impulses,
}

/// Velocities of a body by its rate of displacement, and the way back of what is dual.
#[inline(always)]
pub(super) fn velocity(
    (r, law): (&Mat3, &RotationLaw),
    to: &Moved,
    h: f64,
    (x, phi): &(Vec3, Vec3),
) -> Vec6 {
    let spin = r.tr_mul(&law.velocity_by_end(&to.omega, h, to.scalar, phi));
    Vec6::new(x.x, x.y, x.z, spin.x, spin.y, spin.z)
}

#[inline(always)]
pub(super) fn velocity_back(
    (r, law): (&Mat3, &RotationLaw),
    to: &Moved,
    h: f64,
    v: &Vec6,
) -> (Vec3, Vec3) {
    let turn = r * Vec3::new(v[3], v[4], v[5]);
    let turn = law.velocity_by_end_transposed(&to.omega, h, to.scalar, &turn);
    (Vec3::new(v[0], v[1], v[2]), turn)
}

#[inline(always)]
pub(super) fn six(v: &[f64], b: usize) -> Vec6 {
    Vec6::from_column_slice(&v[6 * b..6 * b + 6])
}

impl Articulated {
    /// Adds the products of wrenches with the rows of velocities that they answer to.
    #[inline(always)]
    fn add_products(&mut self, [wrenches, rows]: &[[Vec6; 3]; 2]) {
        let parts = |all: &[Vec6; 3], at: usize| {
            let part = |v: &Vec6| Vec3::new(v[at], v[at + 1], v[at + 2]);
            [part(&all[0]), part(&all[1]), part(&all[2])]
        };
        let sum = |on: &[Vec3; 3], by: &[Vec3; 3]| {
            on[0] * by[0].transpose() + on[1] * by[1].transpose() + on[2] * by[2].transpose()
        };
        let (f, t) = (parts(wrenches, 0), parts(wrenches, 3));
        let (x, phi) = (parts(rows, 0), parts(rows, 3));
        self.ff += sum(&f, &x);
        self.ft += sum(&f, &phi);
        self.tf += sum(&t, &x);
        self.tt += sum(&t, &phi);
    }
}

impl Minimal {
    /// Numbers of all bodies' velocities.
    pub(super) fn bodies(&self) -> usize {
        6 * self.nodes.len()
    }

    /// These, and one for each free direction.
    pub(super) fn dimension(&self) -> usize {
        self.bodies() + self.freedoms
    }

    pub(super) fn view<'a>(&'a self, w: &'a Work) -> View<'a> {
        let t = &w.touching;
        View {
            model: &w.model,
            at: t.at,
            poses: &w.poses,
            next: &t.next,
            scalar: &t.scalar,
            relative: &t.relative,
            windings: (&self.windings, &t.windings),
            before: &t.before,
            trial: &t.trial,
        }
    }

    /// The step as contacts see it, and what is computed for them, which is lent.
    pub(super) fn with_contacts<T>(
        &self,
        w: &mut Work,
        f: impl FnOnce(&contact::Layout, &View, &mut Memory) -> T,
    ) -> T {
        let mut memory = std::mem::take(&mut w.touching.memory);
        let done = f(&self.contacts, &self.view(w), &mut memory);
        w.touching.memory = memory;
        done
    }

    /// Everything of contacts that is known at the knot that was prepared.
    pub(super) fn prepare_contacts(&self, at: &Place, x: &[f64], w: &mut Work) {
        w.touching.acts = false;
        if self.contacts.is_empty() {
            return;
        }
        let t = &mut w.touching;
        t.at = *at;
        let mut scale = 0.0;
        for (i, node) in self.nodes.iter().enumerate() {
            let (k, to) = (&w.knot[i], &w.past[i]);
            let j = &w.model.joints[node.joint];
            t.relative[node.joint] = Relative {
                arm: j.parent_anchor + slide(j, node, &x[node.place..]),
                r: k.relative,
            };
            t.windings[node.joint] = self.winding_of(node, x);
            let omega = k.law.from_chord(&to.omega, -at.h_prev, to.scalar);
            let spin = w.poses[node.body].r.tr_mul(&omega);
            put(&mut t.before, node.body, &to.velocity, &spin);
            scale += k.base.0.amax().max(k.base.1.amax());
        }
        t.floor = ROUNDINGS * f64::EPSILON * scale;
        self.with_contacts(w, |contacts, view, memory| contacts.prepare(view, memory));
    }

    /// Takes the points of rims that a step ended with, from its unknowns, where it was prepared anew.
    pub(super) fn take_places(&self, y: &[f64], w: &mut Work) {
        if !self.contacts.is_empty() {
            self.with_contacts(w, |contacts, view, memory| {
                contacts.take_places(view, memory, y);
            });
        }
    }

    /// Where the joints' rates lead bodies; not finite of one that turns too far.
    pub(super) fn lead_touching(&self, w: &mut Work, h: f64) {
        let outside = self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial);
        let first = self.bodies();
        w.touching.trial[first..].copy_from_slice(&w.rates);
        if let Some(body) = outside {
            w.touching.trial[6 * body..6 * body + 6].fill(f64::NAN);
            // nor is a residual there
            w.trial[self.node_of[body]].velocity.fill(f64::NAN);
            return;
        }
        wide!(self.lead_bodies(w, h));
    }

    #[inline(always)]
    fn lead_bodies(&self, w: &mut Work, h: f64) {
        for (node, (k, to)) in self.nodes.iter().zip(w.knot.iter().zip(&w.trial)) {
            let (b, pose) = (node.body, &w.poses[node.body]);
            let spin = pose.r.tr_mul(&k.law.from_chord(&to.omega, h, to.scalar));
            put(&mut w.touching.trial, b, &to.velocity, &spin);
            if h != 0.0 {
                let q = increment(&to.omega, h, to.scalar) * pose.q;
                w.touching.next[b] = Pose::new(pose.x + to.velocity * h, q);
                w.touching.scalar[b] = to.scalar;
            }
        }
    }

    /// Gaps and the residual where the trial leads.
    pub(super) fn evaluate_touching(&self, w: &mut Work, h: f64) {
        self.momenta_left(w, h);
        let mut residual = std::mem::take(&mut w.touching.residual);
        let (bodies, rows) = residual.split_at_mut(self.bodies());
        for (row, base) in rows.iter_mut().zip(&w.base) {
            *row = -base;
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if w.model.joints[node.joint].has_dampers() {
                self.damp(w, i, h, &mut rows[node.directions()]);
            }
            let b = node.body;
            let six = to_body(&w.poses[b].r, &w.wrenches[i]);
            bodies[6 * b..6 * b + 6].copy_from_slice(six.as_slice());
        }
        self.with_contacts(w, |contacts, view, memory| {
            contacts.evaluate(view, memory, bodies);
        });
        self.settle(w, &mut residual, None);
        let rows = &mut residual[self.bodies()..];
        let impulses = &mut w.geared.impulses;
        (self.gears).reduce(&w.model, rows, |gear, mu| impulses[gear] = mu);
        w.touching.residual = residual;
    }

    /// Brings rows of bodies inwards: wrenches to the joints' free directions at the knot, what is dual to velocities, over the
    /// interval `over`, to those at the trial.
    pub(super) fn settle(&self, w: &Work, rows: &mut [f64], over: Option<f64>) {
        wide!(self.brought_inwards(w, rows, over));
    }

    #[inline(always)]
    fn brought_inwards(&self, w: &Work, rows: &mut [f64], over: Option<f64>) {
        let (bodies, own) = rows.split_at_mut(self.bodies());
        for (i, node) in self.nodes.iter().enumerate() {
            let (r, v) = (&w.poses[node.body].r, six(bodies, node.body));
            let (f, t) = match over {
                None => to_world(r, &v),
                Some(h) => velocity_back((r, &w.knot[i].law), &w.trial[i], h, &v),
            };
            put(bodies, node.body, &f, &t);
        }
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let v = six(bodies, node.body);
            let (f, t) = (v.fixed_rows::<3>(0), v.fixed_rows::<3>(3));
            let arms = match over {
                None => &w.knot[i].arms,
                Some(_) => &w.trial[i].arms,
            };
            let t = t + arms[1].cross(&f);
            for (r, index) in node.directions().enumerate() {
                let axis = match over {
                    None => &w.axes[index].left,
                    Some(_) => &w.axes[index].right,
                };
                own[index] += if r < node.slides {
                    axis.dot(&f)
                } else {
                    axis.dot(&t)
                };
            }
            bodies[6 * node.body..6 * node.body + 6].fill(0.0);
            if let Some(near) = node.near {
                let t = t + arms[0].cross(&f);
                let to = &mut bodies[6 * self.nodes[near].body..][..6];
                for c in 0..3 {
                    to[c] += f[c];
                    to[3 + c] += t[c];
                }
            }
        }
    }

    /// Rows of bodies as wrenches in the world, or what is dual to velocities as what is to displacements.
    pub(super) fn take_rows(&self, w: &mut Work, h: f64, rows: &[f64], transposed: bool) {
        wide!(self.rows_taken(w, h, rows, transposed));
    }

    #[inline(always)]
    fn rows_taken(&self, w: &mut Work, h: f64, rows: &[f64], transposed: bool) {
        for (i, node) in self.nodes.iter().enumerate() {
            let (r, v) = (&w.poses[node.body].r, six(rows, node.body));
            w.wrenches[i] = match transposed {
                true => velocity_back((r, &w.knot[i].law), &w.trial[i], h, &v),
                false => to_world(r, &v),
            };
        }
    }

    /// Minus the change of the bodies' velocities by that of their places, and the way back of what is dual.
    pub(super) fn give_changes(&self, w: &Work, h: f64, out: &mut [f64], transposed: bool) {
        wide!(self.changes_given(w, h, out, transposed));
    }

    #[inline(always)]
    fn changes_given(&self, w: &Work, h: f64, out: &mut [f64], transposed: bool) {
        for (i, node) in self.nodes.iter().enumerate() {
            let (r, moves) = (&w.poses[node.body].r, &w.wrenches[i]);
            let v = match transposed {
                true => to_body(r, moves),
                false => velocity((r, &w.knot[i].law), &w.trial[i], h, moves),
            };
            let to = &mut out[6 * node.body..6 * node.body + 6];
            to.iter_mut().zip(v.iter()).for_each(|(to, v)| *to = -v);
        }
    }

    /// How contacts answer at the trial, and what they add to the matrix.
    pub(super) fn assemble_touching(&self, w: &mut Work, h: f64) {
        self.with_contacts(w, |contacts, view, memory| contacts.linearize(view, memory));
        for i in (0..self.nodes.len()).filter(|i| self.touches[*i]) {
            self.turn_axes(w, i, h);
        }
        self.collect_touching(w, h);
    }

    /// Factors the matrix as last assembled; with impulses apart if the recursion is singular with stiff contacts in it.
    pub(super) fn factor_touching(&self, w: &mut Work, h: f64) -> Result<(), Singular> {
        match self.factor(w, h) {
            Err(_) if w.touching.acts => self.factor_apart(w, h),
            done => done.map_err(Singular::Joint),
        }
    }

    /// Factors the recursion without stiff contacts, whose impulses become unknowns of their own beside it. Only where it is singular
    /// with them: where every solve with pivots selected this, one more of 200 random trees failed.
    fn factor_apart(&self, w: &mut Work, h: f64) -> Result<(), Singular> {
        self.contacts.separate_stiff(&mut w.touching.memory);
        self.collect_touching(w, h);
        self.factor(w, h).map_err(Singular::Joint)?;
        let mut memory = std::mem::take(&mut w.touching.memory);
        let mut stepping = self.stepping(h, w);
        let is_regular = (self.contacts).factor_impulses(&mut memory, |rows, out| {
            stepping.solve_once(rows, out, false);
        });
        w.touching.memory = memory;
        w.touching.has_unknown_impulses = is_regular;
        is_regular.then_some(()).ok_or(Singular::Impulses)
    }

    /// What contacts as last linearized add to the matrix.
    fn collect_touching(&self, w: &mut Work, h: f64) {
        let mut added = std::mem::take(&mut w.touching.added);
        let mut pivots = std::mem::take(&mut w.touching.pivots);
        let mut answers = std::mem::take(&mut w.touching.answers);
        added.fill(Articulated::ZERO);
        pivots.fill(0.0);
        answers.fill(Default::default());
        wide!(self.add_touching(w, h, (&mut added, &mut pivots, &mut answers)));
        (w.touching.added, w.touching.pivots) = (added, pivots);
        w.touching.answers = answers;
    }

    /// What contacts, limits and friction add: to bodies, to the pivots of joints, and to what displacements nearer to the world make.
    #[inline(always)]
    fn add_touching(
        &self,
        w: &Work,
        h: f64,
        (added, pivots, answers): (&mut [Articulated], &mut [f64], &mut [(Vec3, Vec3)]),
    ) {
        self.contacts.add_to(&w.touching.memory, |acts, of| {
            let j = match acts {
                Acts::OnBody(b) => return added[self.node_of[b]].add_products(&of.side(1)),
                Acts::OnJoint(j) => j,
            };
            let i = self.node_of_joint[j];
            let (node, k, to) = (&self.nodes[i], &w.knot[i], &w.trial[i]);
            let side = usize::from(!node.reversed);
            let r = &w.poses[node.body].r;
            let [wrenches, rates] = of.side(side);
            let near = node.near.map(|n| (n, of.side(1 - side)[1]));
            for (which, (on, by)) in wrenches.iter().zip(&rates).enumerate() {
                if *on == Vec6::zeros() {
                    // limits have no friction, and friction of a joint has no gap and one direction
                    continue;
                }
                // about the joint
                let ((f, mut t), (x, mut phi)) =
                    (to_world(r, on), velocity_back((r, &k.law), to, h, by));
                t += k.arms[1].cross(&f);
                phi += to.arms[1].cross(&x);
                // a gap is one of the joint's coordinates, but the sliding velocity, of rows at both ends, is not its rate alone
                let (mut along, mut turned) = (Vec3::zeros(), Vec3::zeros());
                if let (Some((n, rates)), 1..) = (&near, which) {
                    let near = (&w.poses[self.nodes[*n].body].r, &w.knot[*n].law);
                    let (at, about) = velocity_back(near, &w.trial[*n], h, &rates[which]);
                    (along, turned) = (x + at, phi + about - to.arms[0].cross(&at));
                }
                let n = node.count();
                let axes = &w.axes[node.directions()];
                let pivot = &mut pivots[self.pivot_of[i]..self.pivot_of[i + 1]];
                for (r, a) in axes.iter().enumerate() {
                    let on = a.left.dot(if r < node.slides { &f } else { &t });
                    let answer = &mut answers[node.first + r];
                    answer.0 += along * on;
                    answer.1 += turned * on;
                    for (c, b) in axes.iter().enumerate() {
                        let by = b.right.dot(if c < node.slides { &x } else { &phi });
                        pivot[c * n + r] += on * by;
                    }
                }
            }
        });
        // all that acts on a body at once: its torques and turns into the world, about its joint
        for (i, node) in self.nodes.iter().enumerate() {
            let own = &mut added[i];
            if own.ff == Mat3::zeros() {
                continue;
            }
            let (r, k, to) = (&w.poses[node.body].r, &w.knot[i], &w.trial[i]);
            let turn = |axis: usize| {
                let axis = r.column(axis).into_owned();
                k.law
                    .velocity_by_end_transposed(&to.omega, h, to.scalar, &axis)
            };
            let back = Mat3::from_rows(&[0, 1, 2].map(|axis| turn(axis).transpose()));
            own.ft *= back;
            own.tf = r * own.tf;
            own.tt = r * own.tt * back;
            own.shift(&k.arms[1], &to.arms[1]);
        }
    }

    fn with_solver<T>(
        &self,
        (h, by_ends): (f64, bool),
        w: &mut Work,
        f: impl FnOnce(&mut Solver<Stepping>) -> T,
    ) -> T {
        let (system, tolerance) = (self, self.options.tolerance);
        let most = self.options.max_iterations;
        let mut stepping = Stepping {
            system,
            w,
            h,
            by_ends,
            exerts: false,
        };
        f(&mut Solver::new(
            &self.contacts,
            &mut stepping,
            tolerance,
            most,
        ))
    }

    /// Solves the step that was prepared; `y` holds the unknowns of the step before.
    pub(super) fn solve_contacts(
        &self,
        at: &Knot,
        y: &[f64],
        w: &mut Work,
    ) -> Result<StepStats, StepError> {
        let done = self.with_solver((at.h, false), w, |solver| solver.solve(y));
        done.map_err(|f| self.failed(&f, at, w))
    }

    /// Solves for the velocities at the knot that was prepared, from where `y` are the unknowns of a step, if it is known.
    pub(super) fn read_out(
        &self,
        at: &Knot,
        y: &[f64],
        w: &mut Work,
    ) -> Result<StepStats, StepError> {
        if self.contacts.is_empty() || at.h_prev == 0.0 {
            return self.read_rates(at, w);
        }
        let done = self.with_solver((0.0, false), w, |solver| solver.read_out(y));
        done.map_err(|f| self.failed(&f, at, w))
    }

    /// Work at the knot that was read out last.
    pub(super) fn work_of_contacts(
        &self,
        seen: &KnotPoint,
        loads: &mut Loads,
        w: &mut Work,
    ) -> Result<Option<KnotWork>, StepError> {
        if self.contacts.is_empty() {
            return Ok(None);
        }
        let (mut after, dim) = (vec![0.0; self.bodies()], self.dimension());
        if !seen.y.is_empty() {
            let mut moved = vec![Moved::WORLD; self.nodes.len()];
            let rates = &seen.y[..self.freedoms];
            // a step that was solved lies within the domain
            let _ = self.lead(&w.knot, &w.axes, rates, seen.at.h, &mut moved);
            for ((node, k), to) in self.nodes.iter().zip(&w.knot).zip(&moved) {
                let omega = k.law.from_chord(&to.omega, seen.at.h, to.scalar);
                let spin = w.poses[node.body].r.tr_mul(&omega);
                put(&mut after, node.body, &to.velocity, &spin);
            }
        }
        let step = (seen.y, &after[..], seen.at.h);
        let memory = &w.touching.memory;
        let mut books = (self.contacts).begin_work(&self.view(w), memory, step, dim, loads);
        let singular = |body| self.failure(StepFailure::Singular, &seen.at, body, f64::NAN);
        (w.touching.acts, w.observation.is_linear) = (false, false);
        if !books.blow.is_empty() {
            self.factor(w, 0.0).map_err(singular)?;
            self.solve_wrenches(w, &mut books.blow);
            self.contacts.add_unstruck(&self.view(w), &mut books);
        }
        // what the impulses change within the joints alone, without what dampers hold back after the interval before
        let h_prev = std::mem::replace(&mut w.h_prev, 0.0);
        let factored = self.factor(w, 0.0);
        if factored.is_ok() {
            self.solve_wrenches(w, &mut books.rows);
        }
        w.h_prev = h_prev;
        factored.map_err(singular)?;
        let memory = &w.touching.memory;
        Ok(Some(self.contacts.end_work(&self.view(w), memory, books)))
    }

    /// Replaces wrenches by the changes of velocities that they cause at the knot.
    fn solve_wrenches(&self, w: &mut Work, rows: &mut [f64]) {
        let dim = self.dimension();
        let mut change = vec![0.0; dim];
        let mut stepping = self.stepping(0.0, w);
        // rows of zeros solve to zeros
        let each = rows.chunks_exact_mut(dim);
        for row in each.filter(|r| r.iter().any(|v| *v != 0.0)) {
            stepping.solve(row, &mut change, false);
            row.copy_from_slice(&change);
        }
    }

    /// Rates of displacement of a joint by a change of its rates, at the trial.
    pub(super) fn to_ends(&self, w: &Work, i: usize, h: f64, own: &mut [f64]) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let j = &w.model.joints[node.joint];
        let local = Local::new(j, node, &k.relative, &w.rates[node.directions()], h);
        let turns = &mut own[node.slides..];
        let ends = local.ends(&short(turns), &Vec3::zeros(), 0.0);
        turns
            .iter_mut()
            .zip(ends.iter())
            .for_each(|(to, e)| *to = *e);
    }

    /// The cause of a failure at a row of a joint with two turns that is nearly at half a turn.
    fn near_half_turn(&self, f: &Failed, at: &Knot, w: &Work) -> Option<StepError> {
        let index = f.row.checked_sub(self.bodies())?;
        let node = self
            .nodes
            .iter()
            .find(|n| n.directions().contains(&index))?;
        let is_near = node.turns == 2 && w.axes[index].left.norm() > NEAR_HALF_TURN;
        is_near.then(|| StepError {
            failure: f.failure,
            ..self.failure(StepFailure::HalfTurn, at, node.body, f.residual)
        })
    }

    fn failed(&self, f: &Failed, at: &Knot, w: &Work) -> StepError {
        let explained = explain_contacts(
            f.failure,
            &self.view(w),
            (&self.contacts, &w.touching.memory),
            self.options.finer_steps(),
        );
        if let Some((Some(body), message)) = explained {
            return StepError {
                message,
                ..self.failure(f.failure, at, body, f.residual)
            };
        }
        let named = |node: &Node| {
            let body = &self.mechanism.bodies[node.body];
            let joint = &self.mechanism.joints[node.joint].name;
            // a free body's own joint is not one that its user declared
            let is_free = body.free && body.name == *joint;
            format!("{} `{joint}`", if is_free { "body" } else { "joint" })
        };
        let (first, dim) = (self.bodies(), self.dimension());
        let failure = |body| {
            let error = self.failure(f.failure, at, body, f.residual);
            let message = explained.map(|(_, message)| message);
            StepError {
                message: message.unwrap_or_else(|| error.message.clone()),
                ..error
            }
        };
        if f.row < first {
            return failure(f.row / 6);
        }
        if let Some(error) = self.near_half_turn(f, at, w) {
            return error;
        }
        let mut error = failure(self.nodes[0].body);
        error.element = match f.row.checked_sub(dim) {
            Some(element) => self.contacts.name(&self.mechanism, element),
            None => {
                let index = f.row - first;
                let mut nodes = self.nodes.iter();
                let node = nodes.find(|n| n.directions().contains(&index));
                node.map_or_else(|| error.element.clone(), named)
            }
        };
        error
    }
}

#[inline(always)]
fn put(v: &mut [f64], body: usize, x: &Vec3, turn: &Vec3) {
    let own = &mut v[6 * body..6 * body + 6];
    own[..3].copy_from_slice(x.as_slice());
    own[3..].copy_from_slice(turn.as_slice());
}
