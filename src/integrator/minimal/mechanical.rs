//! The mechanical face: the data of a knot, and their adjoints.
//!
//! Velocities at a knot are those that the step over no interval leads to: momenta of the interval before, and half of its forces.
//! What a joint exerts is the wrench that all beyond it needs; its constraint has the part along what the joint does not leave
//! free.

use super::contact_derivative::Stage;
use super::derivative::Flow;
use super::kinematics::third;
use super::work::Work;
use super::{Minimal, Node};
use crate::contact::{KnotWork, Loads};
use crate::dynamics::{Frame, Inputs, Knot, KnotPoint, Place, Start, Step, StepError};
use crate::integrator::mechanical::{MatrixSize, Mechanical, Swing, VelocityChange, observable};
use crate::integrator::parameter;
use crate::integrator::reading::Reading;
use crate::mechanism::{
    Adjoint, Joint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Past, Quantity,
    Relative,
};
use crate::spatial::{Mat3, Pose, Vec3, increment};
use nalgebra::DMatrix;

/// Memory of what is observed at a knot.
pub(super) struct Observation {
    /// Six a body.
    velocities: Vec<f64>,
    before: Vec<f64>,
    /// Poses at the knot before.
    past: Vec<Pose>,
    windings: Vec<f64>,
    pub reactions: Vec<f64>,
    /// What the joints exert, about themselves, by their nodes.
    wrenches: Vec<(Vec3, Vec3)>,
    acts: bool,
    /// Were velocities read?
    is_read: bool,
    /// Is the read-out linearized, and could it be?
    pub is_linear: bool,
    is_regular: bool,
    adjoint: Adjoint,
}

impl Observation {
    /// Without memory, to stand in for one in use.
    fn empty() -> Self {
        Self {
            velocities: vec![],
            before: vec![],
            past: vec![],
            windings: vec![],
            reactions: vec![],
            wrenches: vec![],
            acts: false,
            is_read: false,
            is_linear: false,
            is_regular: false,
            adjoint: Adjoint::default(),
        }
    }

    pub fn new(m: &Mechanism) -> Self {
        let n = m.bodies.len();
        Self {
            velocities: vec![0.0; 6 * n],
            before: vec![0.0; 6 * n],
            past: vec![Pose::identity(); n],
            windings: vec![0.0; m.joints.len()],
            reactions: vec![0.0; m.reaction_count()],
            wrenches: vec![(Vec3::zeros(), Vec3::zeros()); n],
            acts: false,
            is_read: false,
            is_linear: false,
            is_regular: false,
            adjoint: Adjoint::new(m),
        }
    }
}

/// The torque of springs on several rotations along the axis that these leave out, which is not the constraint's.
fn spring_torque(j: &Joint, r: &crate::spatial::Quat) -> Vec3 {
    let relative = Relative {
        arm: j.parent_anchor,
        r: *r,
    };
    j.spring_force(&relative, 0.0).1
}

/// A rotation's multipliers from the torque on the child, parent's frame: `nu` of `(w nu + v x nu)/2`, and its derivative's
/// transpose by the torque and by `(w, v)`.
fn multiplier(node: &Node, r: &crate::spatial::Quat, torque: &Vec3) -> Vec3 {
    match node.turns {
        0 => torque * 2.0,
        1 => (torque * r.w - r.imag().cross(torque)) * 2.0,
        _ => torque * (2.0 / r.w),
    }
}

fn multiplier_pull(
    node: &Node,
    r: &crate::spatial::Quat,
    torque: &Vec3,
    by: &Vec3,
) -> (Vec3, f64, Vec3) {
    let (w, v) = (r.w, r.imag());
    match node.turns {
        0 => (by * 2.0, 0.0, Vec3::zeros()),
        1 => (
            (by * w + v.cross(by)) * 2.0,
            2.0 * by.dot(torque),
            by.cross(torque) * 2.0,
        ),
        _ => {
            let scaled = by * (2.0 / w);
            (scaled, -scaled.dot(torque) / w, Vec3::zeros())
        }
    }
}

/// Adjoints of a body's displacement and turn, or of its motion, world axes.
fn six(v: &[f64], b: usize, r: &Mat3) -> (Vec3, Vec3) {
    let v = &v[6 * b..6 * b + 6];
    let (x, turn) = (Vec3::new(v[0], v[1], v[2]), Vec3::new(v[3], v[4], v[5]));
    (x, r * turn)
}

impl Minimal {
    /// A knot as read-outs see it: forces of the interval before alone.
    fn read(at: &Knot) -> Knot {
        Knot { h: 0.0, ..*at }
    }

    /// Impulses of the joints' constraints in the step of these unknowns.
    fn react(&self, seen: &KnotPoint, w: &mut Work) -> Result<(), StepError> {
        self.follow(&seen.at, (seen.x, seen.u, seen.y), seen.y, w)?;
        self.react_at(0.5 * (seen.at.h_prev + seen.at.h), seen.at.h, w);
        let reactions = &mut w.observation.reactions;
        (self.contacts).reactions(&w.model, |unknown, place, scale| {
            reactions[place] += scale * seen.y[unknown];
        });
        Ok(())
    }

    /// The same of a step that was evaluated, whose forces act for `half`.
    pub(super) fn react_at(&self, half: f64, h: f64, w: &mut Work) {
        let mut rows = std::mem::take(&mut w.rows);
        self.residual_rows(w, h, &mut rows);
        w.rows = rows;
        let mut o = std::mem::replace(&mut w.observation, Observation::empty());
        o.wrenches.copy_from_slice(&w.wrenches);
        o.reactions.fill(0.0);
        for (i, node) in self.nodes.iter().enumerate() {
            let j = &w.model.joints[node.joint];
            let (force, torque) = self.seen_by_parent(&w.poses, &o, i, j);
            let torque = torque - self.of_springs(j, node, &w.knot[i].relative) * half;
            let nu = multiplier(node, &w.knot[i].relative, &torque);
            let places = self.reactions_of[node.joint].clone();
            for ((k, e), place) in j.constrained.iter().enumerate().zip(places) {
                let on = if k < j.translation_rows { &force } else { &nu };
                o.reactions[place] = e.dot(on);
            }
        }
        w.observation = o;
    }

    /// What a joint exerts on its child, in its parent's frame.
    fn seen_by_parent(&self, poses: &[Pose], o: &Observation, i: usize, j: &Joint) -> (Vec3, Vec3) {
        let sign = if self.nodes[i].reversed { -1.0 } else { 1.0 };
        let (f, t) = &o.wrenches[i];
        let of = |v: &Vec3| sign * j.parent.map_or(*v, |p| poses[p].r.tr_mul(v));
        (of(f), of(t))
    }

    fn of_springs(&self, j: &Joint, node: &Node, r: &crate::spatial::Quat) -> Vec3 {
        if node.turns == 2 && j.has_springs() {
            spring_torque(j, r)
        } else {
            Vec3::zeros()
        }
    }

    /// Adds what adjoints of the reactions come to.
    fn pull_reactions(
        &self,
        seen: &KnotPoint,
        w: &mut Work,
        adjoint: &Adjoint,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        // the knot was evaluated before, for its reactions
        if self
            .evaluate_at(&seen.at, (seen.x, seen.u, seen.y), seen.y, w)
            .is_err()
        {
            return;
        }
        let half = 0.5 * (seen.at.h_prev + seen.at.h);
        let mut l = Self::lend(w);
        l.flow.fill(Flow::ZERO);
        l.lambda.fill(0.0);
        l.seeds.clear();
        let mut by_half = 0.0;
        for (i, node) in self.nodes.iter().enumerate() {
            let j = &w.model.joints[node.joint];
            let places = self.reactions_of[node.joint].clone();
            let (mut on_force, mut on_nu) = (Vec3::zeros(), Vec3::zeros());
            for ((k, e), place) in j.constrained.iter().enumerate().zip(places) {
                let by = e * adjoint.reactions[place];
                if k < j.translation_rows {
                    on_force += by;
                } else {
                    on_nu += by;
                }
            }
            let r = &w.knot[i].relative;
            let (_, torque) = self.seen_by_parent(&w.poses, &w.observation, i, j);
            let springs = self.of_springs(j, node, r);
            let (on_torque, by_w, by_v) =
                multiplier_pull(node, r, &(torque - springs * half), &on_nu);
            by_half -= springs.dot(&on_torque);
            // the joint's own turn
            let relative = Relative {
                arm: j.parent_anchor,
                r: *r,
            };
            let by_springs = (node.turns == 2)
                .then(|| j.spring_torque_derivative(&relative))
                .flatten();
            let v = r.imag();
            let mut on_eta = (by_v * r.w + v.cross(&by_v) - v * by_w) * 0.5;
            if let Some(by) = by_springs {
                on_eta -= by.tr_mul(&on_torque) * half;
                for (tuned, dp) in w.model.parameters.iter().zip(&mut out.p) {
                    let each = tuned.fields.iter();
                    *dp -= half
                        * each
                            .map(|f| self.spring_torque_by(w, i, *f).dot(&on_torque))
                            .sum::<f64>();
                }
            }
            for (k, d) in j.directions.iter().enumerate().skip(node.slides) {
                let eta = d.unit + third(j, node, r, &d.unit);
                out.x[node.first + k] += eta.dot(&on_eta);
            }
            let sign = if node.reversed { -1.0 } else { 1.0 };
            let of = |v: Vec3| sign * j.parent.map_or(v, |p| w.poses[p].r * v);
            let seed = (of(on_force), of(on_torque));
            if let Some(p) = j.parent {
                let (f, t) = &w.observation.wrenches[i];
                l.flow[self.node_of[p]].z.1 -= f.cross(&seed.0) + t.cross(&seed.1);
            }
            l.seeds.push(seed);
        }
        (self.contacts).reactions(&w.model, |unknown, place, scale| {
            y[unknown] += scale * adjoint.reactions[place];
        });
        self.pull_given(w, &mut l, &[], out, self.beyond_rates_mut(y).0);
        out.h_prev += 0.5 * by_half;
        out.h += 0.5 * by_half;
        self.pull_unknowns(w, &l, out, y);
        l.seeds.clear();
        w.linear = Some(l);
        // what was read out is evaluated again where more is asked of it
        let again = KnotPoint { y: &[], ..*seen };
        let needs = Needs {
            velocities: true,
            ..Needs::default()
        };
        let acts = w.observation.acts;
        // it was evaluated before
        let _ = self.read_knot(&again, &seen.readout(), needs, w);
        w.observation.acts = acts;
    }

    /// Evaluates a knot that is read out so.
    fn read_knot(
        &self,
        seen: &KnotPoint,
        place: &Place,
        needs: Needs,
        w: &mut Work,
    ) -> Result<(), StepError> {
        parameter::apply(&self.mechanism, seen.p, &mut w.parameters, &mut w.model)?;
        let acts = needs.reactions && seen.at.h != 0.0 && seen.y.len() == self.dims().ny;
        let at = Self::read(&seen.at);
        if acts {
            self.react(seen, w)?;
            // the state is the same, forces act for less
            w.knot.iter_mut().for_each(|k| k.touch = Default::default());
            self.push_forces(&at, seen.x, seen.u, w);
        } else {
            self.prepare(&at, seen.x, seen.u, w)?;
        }
        if needs.velocities {
            self.prepare_contacts(place, seen.x, w);
            // impulses of the step from here act on the same points
            self.take_places(seen.y, w);
            self.read_out(&at, seen.y, w)?;
        } else {
            w.trial.fill(super::work::Moved::WORLD);
            w.rates.fill(0.0);
        }
        let o = &mut w.observation;
        (o.acts, o.is_read, o.is_linear) = (acts, needs.velocities, false);
        let put = |to: &mut [f64], node: &Node, m: &super::work::Moved, omega: &Vec3| {
            let turned = w.poses[node.body].r.tr_mul(omega);
            let at = 6 * node.body;
            to[at..at + 3].copy_from_slice(m.velocity.as_slice());
            to[at + 3..at + 6].copy_from_slice(turned.as_slice());
        };
        for (i, node) in self.nodes.iter().enumerate() {
            let past = &w.past[i];
            let law = &w.knot[i].law;
            let omega = law.from_chord(&past.omega, -seen.at.h_prev, past.scalar);
            put(&mut o.before, node, past, &omega);
            if needs.velocities {
                // of the instant
                put(&mut o.velocities, node, &w.trial[i], &w.trial[i].omega);
            }
            o.windings[node.joint] = self.winding_of(node, seen.x);
            if needs.past {
                let (h, pose, m) = (seen.at.h_prev, &w.poses[node.body], &w.past[i]);
                let back = increment(&m.omega, -h, m.scalar);
                o.past[node.body] = Pose::new(pose.x - m.velocity * h, back * pose.q);
            }
        }
        Ok(())
    }

    /// Adjoints of poses alone: the joints' free directions at the knot say what moves them.
    fn pull_poses(&self, w: &mut Work, poses: &[f64], out: &mut Inputs) {
        let wrenches = &mut w.wrenches;
        for (to, node) in wrenches.iter_mut().zip(&self.nodes) {
            *to = six(poses, node.body, &w.poses[node.body].r);
        }
        let arms = |i: usize| &w.knot[i].arms;
        let anchors = !w.parameters.is_empty();
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (f, mut t) = wrenches[i];
            t += arms(i)[1].cross(&f);
            for (r, index) in node.directions().enumerate() {
                let on = if r < node.slides { &f } else { &t };
                out.x[index] += w.axes[index].left.dot(on);
            }
            if anchors {
                for (p, dp) in w.model.parameters.iter().zip(&mut out.p) {
                    for field in &p.fields {
                        if let Some((_, along)) = self.by_anchor(&w.model, &w.poses, i, *field) {
                            *dp += along.dot(&f);
                        }
                    }
                }
            }
            if let Some(near) = node.near {
                wrenches[near].0 += f;
                wrenches[near].1 += t + arms(i)[0].cross(&f);
            }
        }
    }

    /// Adjoints of poses and of motion, through the read-out.
    fn pull_motion(&self, seen: &KnotPoint, w: &mut Work, adjoint: &Adjoint, out: &mut Inputs) {
        let mut l = Self::lend(w);
        if !w.observation.is_linear {
            // it is as it was evaluated
            self.couple(w);
            l.at = Self::read(&seen.at);
            if self.stage_of_solved(w) != Stage::Off {
                self.touch_at(0.0, w);
                self.linearize_contacts(0.0, w);
            }
            self.differentiate(seen.x, w, &mut l);
            // without contacts the factors are those that it was read with
            let kept = w.observation.is_read && self.contacts.is_empty();
            w.observation.is_regular = kept || self.factor_touching(w, 0.0).is_ok();
            w.observation.is_linear = true;
        }
        l.flow.fill(Flow::ZERO);
        let mut moves = false;
        for (flow, (i, node)) in l.flow.iter_mut().zip(self.nodes.iter().enumerate()) {
            let (b, r) = (node.body, &w.poses[node.body].r);
            flow.z = six(&adjoint.poses, b, r);
            flow.w[1] = six(&adjoint.velocities, b, r);
            moves |= flow.w[1] != Default::default();
            if seen.at.h_prev == 0.0 {
                flow.w[0] = six(&adjoint.past, b, r);
            } else if adjoint.past[6 * b..6 * b + 6].iter().any(|v| *v != 0.0) {
                let m = &w.past[i];
                let then = increment(&m.omega, -seen.at.h_prev, m.scalar) * w.poses[b].q;
                let z = six(&adjoint.past, b, &crate::spatial::rotation(&then));
                flow.z.0 += z.0;
                flow.z.1 += z.1;
                flow.w[0] = (z.0 * -seen.at.h_prev, z.1 * -seen.at.h_prev);
            }
        }
        l.lambda.fill(0.0);
        moves |= adjoint.rates.iter().any(|r| *r != 0.0);
        self.seed_rates(&adjoint.rates, &mut l, &mut out.x);
        w.geared.end_at(&l.rho[1]);
        let solves = moves && w.observation.is_regular;
        if solves {
            l.touching.stage = self.stage_of_solved(w);
        }
        if l.touching.stage != Stage::Off {
            self.solve_touching_back(w, &mut l, &[]);
        } else if solves {
            for (to, flow) in w.wrenches.iter_mut().zip(&l.flow) {
                *to = flow.w[1];
            }
            let l = &mut *l;
            self.solve_transposed(w, &l.rho[1], &mut l.lambda);
        }
        self.pull_residual(w, &mut l, out);
        l.touching.stage = Stage::Off;
        self.lift_back(w, &l, out);
        w.linear = Some(l);
    }
}

impl Mechanical for Minimal {
    fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    fn mobility(&self) -> Mobility {
        Mobility {
            degrees_of_freedom: self.freedoms - self.gears.count(),
            loops: self.gears.count(),
            redundant_rows: 0,
        }
    }

    fn outputs(&self) -> &[Quantity] {
        &self.outputs
    }

    fn with_outputs(mut self, outputs: Vec<Quantity>) -> Self {
        self.outputs = outputs;
        self
    }

    // all coordinates are independent but those that gears tie
    fn holding(self, _: &[f64], preferred: &[bool]) -> Self {
        let gears = super::gears::Gears::new(&self.mechanism, &self.nodes, preferred);
        Self { gears, ..self }
    }

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        let new = Self::new(mechanism, q, self.options)?.with_roots(self.roots)?;
        let new = new.with_lagrangian(self.lagrangian);
        let new = new.with_outputs(self.outputs.clone());
        let held = self.gears.held();
        Ok(new.holding(q, &held))
    }

    fn mechanism_with<'a>(
        &'a self,
        p: &[f64],
        w: &'a mut Work,
    ) -> Result<&'a Mechanism, StepError> {
        parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
        Ok(&w.model)
    }

    fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
        let mut x = vec![0.0; self.positions + self.freedoms];
        let (mut closed, mut rates) = (q.to_vec(), rates.to_vec());
        if !self.gears.is_empty() && (q.len(), rates.len()) == (self.freedoms, self.freedoms) {
            self.mechanism.close(&mut closed, held)?;
            rates = self.nearest_rates(&closed, &rates);
        }
        let (q, rates) = (&closed, &rates);
        let started = self.start_at(&Start::at_rates(q, rates), &self.memory(), &mut x);
        let wrong = |e: StepError| ModelError::new(["joints"], e.message, "give one of each");
        started.map_err(wrong)?;
        Ok(x)
    }

    fn state_after(&self, x: &[f64], _: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        self.state_behind(x, q, h)
    }

    fn poses(&self, x: &[f64]) -> Vec<Pose> {
        self.poses_of(x)
    }

    fn interval_velocities(&self, x: &[f64], h: f64) -> Vec<Motion> {
        let mut w = self.memory();
        self.locate(x, &mut w);
        // where it turned too far the rest is not read
        let _ = self.lead(&w.knot, &w.axes, &x[self.positions..], -h, &mut w.past);
        let mut out = vec![(Vec3::zeros(), Vec3::zeros()); w.poses.len()];
        for ((node, k), moved) in self.nodes.iter().zip(&w.knot).zip(&w.past) {
            let r = &w.poses[node.body].r;
            let omega = k.law.from_chord(&moved.omega, -h, moved.scalar);
            out[node.body] = (moved.velocity, r.tr_mul(&omega));
        }
        out
    }

    fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
        self.winding_of(&self.nodes[self.node_of_joint[joint]], x)
    }

    fn evaluate_knot(&self, seen: &KnotPoint, needs: Needs, w: &mut Work) -> Result<(), StepError> {
        self.read_knot(seen, &seen.readout(), needs, w)
    }

    fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a Work) -> KnotData<'a> {
        let o = &w.observation;
        KnotData {
            mechanism: &w.model,
            poses: &w.poses,
            velocities: &o.velocities,
            past: match seen.at.h_prev {
                0.0 => Past::Start(&o.before),
                _ => Past::Poses(&o.past),
            },
            before: &o.before,
            windings: &o.windings,
            controls: seen.u,
            reactions: if o.acts { &o.reactions } else { &[] },
            h_prev: seen.at.h_prev,
            part: 1.0,
            h: seen.at.h,
        }
    }

    fn reading(&self, seen: &KnotPoint, quantity: &Quantity) -> Option<Reading> {
        self.read_directly(seen, quantity)
    }

    fn joint_rate(&self, quantity: &Quantity, w: &Work) -> Option<(usize, f64)> {
        let Quantity::Rate { joint, direction } = *quantity else {
            return None;
        };
        let index = self.nodes[self.node_of_joint[joint]].first + direction;
        Some((index, w.rates[index]))
    }

    fn adjoint<'a>(&self, w: &'a mut Work) -> &'a mut Adjoint {
        &mut w.observation.adjoint
    }

    fn pull_knot(
        &self,
        seen: &KnotPoint,
        w: &mut Work,
        adjoint: &Adjoint,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        for (to, by) in out.u.iter_mut().zip(&adjoint.controls) {
            *to += by;
        }
        out.h_prev += adjoint.h_prev;
        out.h += adjoint.h;
        if [&adjoint.velocities, &adjoint.past, &adjoint.rates]
            .iter()
            .all(|a| a.iter().all(|v| *v == 0.0))
        {
            self.pull_poses(w, &adjoint.poses, out);
        } else {
            self.pull_motion(seen, w, adjoint, out);
        }
        if w.observation.acts && adjoint.reactions.iter().any(|v| *v != 0.0) {
            self.pull_reactions(seen, w, adjoint, out, y);
        }
    }

    fn contact_work(
        &self,
        seen: &KnotPoint,
        loads: &mut Loads,
        w: &mut Work,
    ) -> Result<Option<KnotWork>, StepError> {
        self.work_of_contacts(seen, loads, w)
    }

    fn gave_way(&self, _: &KnotPoint, _: &mut Work) -> Result<bool, StepError> {
        Ok(false)
    }

    fn tensions(&self) -> usize {
        self.mechanism.reaction_count()
    }

    fn write_tensions(&self, at: &Knot, w: &mut Work, out: &mut [f64]) {
        self.tensions_of(at, w, out);
    }

    fn limit_iterations(&self, w: &mut Work, most: usize) {
        w.touching.memory.limit_iterations(most);
    }

    fn swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut Work,
    ) -> Result<Swing, StepError> {
        parameter::apply(&self.mechanism, seen.p, &mut w.parameters, &mut w.model)?;
        self.fastest_swing(seen, weight, above, w)
    }

    fn add_velocity_changes(&self, w: &Work, groups: &[usize], out: &mut [VelocityChange]) -> bool {
        for ((node, before), after) in self.nodes.iter().zip(&w.past).zip(&w.trial) {
            let r = &w.poses[node.body].r;
            let motion = |m: &super::work::Moved| (m.velocity, r.tr_mul(&m.omega));
            let body = &w.model.bodies[node.body];
            out[groups[node.body]].add(body, &motion(before), &motion(after));
        }
        let touched = self.contacts.touched(&w.touching.memory);
        touched.for_each(|b| out[groups[b]].touches = true);
        true
    }

    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        self.gear_tangents(frame)
    }

    fn chart_coordinates(&self) -> Option<&[usize]> {
        Some(&self.gears.free)
    }

    fn certify(&self, w: &mut Work) {
        w.certificate = Some(0.0);
    }

    fn linear_residual(&self, w: &Work) -> Option<f64> {
        w.certificate
    }

    fn matrix(&self) -> MatrixSize {
        MatrixSize {
            unknowns: Step::dims(self).ny,
            fill_in: 0,
            fallback: "impulses of stiff contacts, limits and friction as unknowns of their own, because the recursion was singular",
        }
    }
}

observable!(Minimal);
