//! Contacts in the step's equations and matrix: everything known at the knot, the residual, the blocks.

use super::cone::Law;
use super::{Element, Layout, Memory, Moment, Slot, Source, View};
use crate::dynamics::Stage;
use crate::mechanism::{
    Ahead, Contact, Joint, Meeting, Relative, Row, Search, Vec6, friction_rows, normal_row,
};
use crate::mechanism::{add_wrench, dot, vec3};
use crate::spatial::{Pose, Vec3, wide};

/// What an element acts on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Acts {
    /// A body, against the world or another one.
    OnBody(usize),
    /// A joint.
    OnJoint(usize),
}

/// An element that adds to a matrix.
pub(crate) struct Adds<'a>(&'a Element, &'a Slot);

impl Adds<'_> {
    /// Of a side (parent, child) the wrenches and the rows of velocities that these answer to, whose products the block is the
    /// sum of.
    #[inline(always)]
    pub fn side(&self, side: usize) -> [[Vec6; 3]; 2] {
        [self.0.wrenches(self.1, side), self.0.rates(side)]
    }
}

impl Slot {
    fn acts(&self) -> Acts {
        match self.source {
            Source::Contact(_) => Acts::OnBody(self.child),
            Source::Friction(j, _) | Source::Limit(j, ..) => Acts::OnJoint(j),
        }
    }
}

/// Product of a row, given for parent and child, with six numbers of each body.
pub(super) fn along(v: &[f64], parent: Option<usize>, child: usize, row: &[Vec6; 2]) -> f64 {
    let of = |b: usize, r: &Vec6| {
        let v = &v[6 * b..6 * b + 6];
        r.iter().zip(v).map(|(r, v)| r * v).sum::<f64>()
    };
    of(child, &row[1]) + parent.map_or(0.0, |p| of(p, &row[0]))
}

/// How far a coordinate is from its limit.
pub(super) fn limit_gap(joint: &Joint, i: usize, upper: bool, rel: &Relative, near: f64) -> f64 {
    let (d, value) = (&joint.directions[i], joint.coordinate(i, rel, near));
    if upper {
        d.upper - value
    } else {
        value - d.lower
    }
}

/// Its derivative.
pub(super) fn limit_row(
    joint: &Joint,
    i: usize,
    upper: bool,
    (a, b): (&Pose, &Pose),
    rel: &Relative,
) -> Row {
    let row = joint.direction_row(i, a, b, rel);
    if upper { -row } else { row }
}

/// `(R - 1) c/h`: how a point of a body moves with the rotation over an interval, body frame at its start; `omega` is twice the
/// vector part of that rotation, by the interval.
fn turned(c: &Vec3, omega: &Vec3, h: f64, scalar: f64) -> Vec3 {
    let half = omega * 0.5;
    let across = half.cross(c);
    (across * scalar + half.cross(&across) * h) * 2.0
}

/// Parent and child part of a row.
pub(super) fn both(row: &Row) -> [Vec6; 2] {
    [row.parent(), row.child()]
}

/// Sum of the sizes of the terms of a row times the velocities.
pub(super) fn along_absolute(v: &[f64], parent: Option<usize>, child: usize, row: &Row) -> f64 {
    let [a, b] = both(row).map(|r| r.abs());
    let v = |body: usize| Vec6::from_column_slice(&v[6 * body..6 * body + 6]).abs();
    b.dot(&v(child)) + parent.map_or(0.0, |p| a.dot(&v(p)))
}

/// Overlap, m, that is pushed out in one step: with 1 cm/s in one of 0.01 s. It is far above what resting bodies have, so
/// that derivatives there see one law.
pub(super) const OVERLAP: f64 = 1e-4;
/// Depth, m, of a place of bodies that overlap by less, from which on it is beside them: what solids that lie level to each other differ by is
/// smaller.
const BESIDE: f64 = 1e-6;
/// Part of what is deeper that a step leaves.
const LEFT: f64 = 0.9;

impl Element {
    /// Wrenches on a side, `m_c [N; B]' S`, by what flows in.
    #[inline(always)]
    fn wrenches(&self, slot: &Slot, side: usize) -> [Vec6; 3] {
        let of_side = |row: &Row| match side {
            0 => row.parent(),
            _ => row.child(),
        };
        let (l, normal) = (&self.linear, of_side(&self.normal));
        let along = [of_side(&self.tangents[0]), of_side(&self.tangents[1])];
        let of = |s: [f64; 2]| along[0] * s[0] + along[1] * s[1];
        [
            (normal + of(l.drag)) * (slot.mass * l.normal),
            of([l.slide[0][0], l.slide[1][0]]) * slot.mass,
            of([l.slide[0][1], l.slide[1][1]]) * slot.mass,
        ]
    }

    /// Adds `scale` times the wrenches of impulses, normal and tangents, to rows of bodies.
    #[inline(always)]
    pub(super) fn add_impulses(&self, slot: &Slot, sizes: [f64; 3], scale: f64, rows: &mut [f64]) {
        if sizes == [0.0; 3] {
            return;
        }
        let ([t, s], [g, a, b]) = (&self.tangents, sizes);
        let mut sum = self.normal * g;
        // at the start friction of joints is no part of the read-out, but acts in the step
        if (a, b) != (0.0, 0.0) {
            sum = sum + *t * a + *s * b;
        }
        add_wrench(rows, slot.parent, slot.child, &sum, scale * slot.mass);
    }

    /// What flows in by the velocities of a side, `[N+; B+]`.
    #[inline(always)]
    fn rates(&self, side: usize) -> [Vec6; 3] {
        let slides = &self.slide_by_velocity;
        [self.by_velocity[side], slides[0][side], slides[1][side]]
    }

    /// What meets at a contact from the knot on, and where that is there; `floor` is what rounding leaves of a gap, by the interval and the
    /// place.
    pub(super) fn set_meeting(&mut self, w: &View, contact: &Contact, held: Meeting, floor: f64) {
        let (m, b) = (w.model, &w.poses[contact.child]);
        let a = m.pose(w.poses, contact.parent);
        self.held = held;
        self.here = m.touch_of(contact, &held, w.poses);
        self.normal = normal_row(&self.here, a, b);
        self.tangents = friction_rows(&self.here, contact.frame_axis(&self.here), a, b);
        self.floor = floor * self.here.point.amax();
        self.noise = self.floor;
        self.arm = m.arm(contact, &held);
        // where nothing is searched for, what meets does not change; a point fixed on a rim is as deep as that was
        // what is held in exchange may be below the other beside it, while the bodies are apart
        let may_change = || {
            m.is_searched(contact)
                && self.arm.is_none()
                && (held == self.found || m.overlaps(contact, w.poses, OVERLAP))
        };
        self.left = match w.at.stage {
            Stage::Step(_) if self.here.gap < -OVERLAP && may_change() => LEFT,
            _ => 0.0,
        };
    }

    /// What a step leaves of an overlap, as a gap, m.
    pub(super) fn overlap(&self) -> f64 {
        if self.left == 0.0 {
            0.0
        } else {
            self.left * (self.here.gap + OVERLAP)
        }
    }
}

/// Roundings of a gap's increment, of products and sums of three numbers each, by the largest.
const ROUNDINGS: f64 = 16.0;

impl Layout {
    /// Wrenches at the knot, the laws, and what may bounce.
    pub(crate) fn prepare(&self, w: &View, memory: &mut Memory) {
        if self.is_empty() {
            return;
        }
        let (m, c, at) = (w.model, memory, w.at);
        c.interval = match (c.moment, at.stage) {
            (Moment::Blow(h), _) | (_, Stage::Step(h)) => h,
            (_, Stage::Readout(_)) => at.h_prev,
        };
        c.kappa = (self.path * c.interval).max(c.softness);
        let near = c.near();
        c.levelled = false;
        c.idle = c.interval == 0.0;
        c.spent = 0;
        let floor = c.gap_floor();
        let mut search = Search::default();
        // what meets in a read-out is that of the step from there, whose impulses act on the same places
        let (Stage::Step(h) | Stage::Readout(h)) = at.stage;
        let ahead = Ahead {
            velocities: w.before,
            h,
        };
        for (e, slot) in c.elements.iter_mut().zip(&self.slots) {
            let b = &w.poses[slot.child];
            let a = m.pose(w.poses, slot.parent);
            match slot.source {
                Source::Contact(i) => {
                    let contact = &m.contacts[i];
                    let mu = m.friction(contact);
                    e.law = Law {
                        gap: true,
                        frictional: mu > 0.0,
                        mu,
                        bound: 0.0,
                    };
                    e.found = m.meeting_of(contact, w.poses, &ahead, &mut search);
                    e.set_meeting(w, contact, e.found, floor);
                    // what is found for the end of a step may be beside the bodies at the knot, below the other but not in it: what
                    // overlaps at the end is exchanged
                    let at = (w.poses, &ahead);
                    if e.here.gap < -BESIDE && !m.overlaps(contact, w.poses, BESIDE)
                        || m.is_beside(contact, &e.found, at, BESIDE, &mut search)
                    {
                        e.found = Meeting::Apart;
                        e.set_meeting(w, contact, e.found, floor);
                    }
                    match c.moment {
                        Moment::Blow(_) if e.kept.is_coded() && m.has_parts(contact, &e.kept) => {
                            e.set_meeting(w, contact, e.kept, floor);
                        }
                        Moment::Blow(_) => {}
                        Moment::Plain | Moment::AfterBlow => e.kept = e.found,
                    }
                }
                Source::Friction(j, i) => {
                    let joint = &m.joints[j];
                    e.law = Law {
                        gap: false,
                        // what it may exert acts over intervals
                        frictional: at.half() > 0.0,
                        mu: 0.0,
                        bound: joint.directions[i].friction * at.half() / slot.mass,
                    };
                    e.tangents = [joint.direction_row(i, a, b, &w.relative[j]), Row::ZERO];
                }
                Source::Limit(j, i, upper) => {
                    let joint = &m.joints[j];
                    e.law = Law {
                        gap: true,
                        frictional: false,
                        mu: 0.0,
                        bound: 0.0,
                    };
                    let near = w.winding(j);
                    e.here.gap = limit_gap(joint, i, upper, &w.relative[j], near);
                    e.floor = floor * (e.here.gap.abs() + 1.0);
                    e.noise = e.floor;
                    e.normal = limit_row(joint, i, upper, (a, b), &w.relative[j]);
                }
            }
            if self.elastic {
                self.expect_blow(w, (c.moment, near), e, slot);
            }
        }
    }

    /// Gaps and sliding velocities at the trial unknowns; the impulses' wrenches leave the residual.
    pub(crate) fn evaluate(&self, w: &View, memory: &mut Memory, residual: &mut [f64]) {
        if !(self.is_empty() || memory.idle) {
            wide!(self.evaluate_all(w, memory, residual));
        }
    }

    #[inline(always)]
    fn evaluate_all(&self, w: &View, memory: &mut Memory, residual: &mut [f64]) {
        let (m, c, stage, y) = (w.model, memory, w.at.stage, w.trial);
        for (e, slot) in c.elements.iter_mut().zip(&self.slots) {
            let (parent, child) = (slot.parent, slot.child);
            if e.law.gap {
                if let Stage::Step(h) = stage {
                    match slot.source {
                        Source::Contact(i) => {
                            e.next = m.touch_of(&m.contacts[i], &e.held, w.next);
                        }
                        Source::Limit(j, i, upper) => {
                            let joint = &m.joints[j];
                            let (a, b) = m.ends(joint, w.next);
                            let near = w.winding(j);
                            let rel = joint.relative(a, b);
                            e.next.gap = limit_gap(joint, i, upper, &rel, near);
                        }
                        Source::Friction(..) => {}
                    }
                    e.gap = (e.next.gap - e.overlap()) / h;
                    if let Some(arm) = &e.arm {
                        // by the increment, whose rounding is that of a velocity: where more corners hold a body than
                        // are needed, rounding of gaps becomes impulses by `g/s`
                        let (v, omega) = (vec3(y, 6 * child), vec3(y, 6 * child + 3));
                        let (law, scalar) = (&m.bodies[child].rotation, w.scalar[child]);
                        let chord = law.chord_velocity(&omega, h, scalar);
                        let moved = v + w.poses[child].r * turned(arm, &chord, h, scalar);
                        e.gap = e.here.gap / h + e.here.normal.dot(&moved);
                        let size = v.amax() + omega.amax() * arm.amax() + (e.here.gap / h).abs();
                        e.noise = ROUNDINGS * f64::EPSILON * size;
                    }
                } else {
                    let kept = if e.bounces {
                        e.restitution * dot(w.before, parent, child, &e.normal)
                    } else {
                        e.here.gap / c.interval
                    };
                    e.gap = kept + dot(y, parent, child, &e.normal);
                }
            }
            if e.law.frictional {
                self.slide(w, e, slot);
            }
            e.add_impulses(slot, e.local.impulses(), -1.0, residual);
        }
    }

    /// The sliding velocity, where the contact at the end is known.
    #[inline(always)]
    pub(super) fn slide(&self, w: &View, e: &mut Element, slot: &Slot) {
        e.slides = self.sliding_rows(w, (e, slot));
        let along = |row: &Row| dot(w.trial, slot.parent, slot.child, row);
        e.local.eta = [along(&e.slides[0]), along(&e.slides[1])];
        if self.pyramid.is_some() {
            let size = |row| along_absolute(w.trial, slot.parent, slot.child, row);
            let size = size(&e.slides[0]).max(size(&e.slides[1]));
            e.slip_noise = ROUNDINGS * f64::EPSILON * size;
        }
    }

    /// The rows of the sliding velocity: means of both ends of an interval.
    #[inline(always)]
    pub(super) fn sliding_rows(&self, w: &View, (e, slot): (&Element, &Slot)) -> [Row; 2] {
        if !w.at.steps() {
            return e.tangents;
        }
        let (a, b) = (w.model.pose(w.next, slot.parent), &w.next[slot.child]);
        match slot.source {
            Source::Contact(i) => {
                let axis = w.model.contacts[i].frame_axis(&e.here);
                let [t, s] = friction_rows(&e.next, axis, a, b);
                [(e.tangents[0] + t) * 0.5, (e.tangents[1] + s) * 0.5]
            }
            Source::Friction(j, i) => {
                let joint = &w.model.joints[j];
                let end = joint.direction_row(i, a, b, &joint.relative(a, b));
                [(e.tangents[0] + end) * 0.5, Row::ZERO]
            }
            Source::Limit(..) => [Row::ZERO; 2],
        }
    }

    /// How the sliding velocity turns with the configuration at the end.
    pub(super) fn turn_slide(&self, w: &View, e: &mut Element, slot: &Slot) {
        let turns = self.rates_turn([1, 2], w.model, w.next, (&e.next, e), slot, w.trial);
        for (to, by) in e
            .slide_turn
            .iter_mut()
            .flatten()
            .zip(turns.iter().flatten())
        {
            *to = by * 0.5;
        }
    }

    /// The blocks of the bodies gain `m_c [N; B]' S [N+; B+]`.
    pub(crate) fn assemble(&self, w: &View, memory: &mut Memory, values: &mut [f64]) {
        self.linearize(w, memory);
        if !memory.idle {
            wide!(self.add_blocks(memory, values));
        }
    }

    #[inline(always)]
    fn add_blocks(&self, memory: &Memory, values: &mut [f64]) {
        let mut add = |block: usize, on: &[Vec6; 3], by: &[Vec6; 3]| {
            let block = values[block..block + 36].as_chunks_mut::<6>().0;
            for (k, column) in block.iter_mut().enumerate() {
                for (i, v) in column.iter_mut().enumerate() {
                    *v += on[0][i] * by[0][k] + on[1][i] * by[1][k] + on[2][i] * by[2][k];
                }
            }
        };
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            let (on_child, by_child) = (e.wrenches(slot, 1), e.rates(1));
            add(slot.own[1], &on_child, &by_child);
            if let Some((pc, cp)) = slot.pair {
                let (on_parent, by_parent) = (e.wrenches(slot, 0), e.rates(0));
                add(slot.own[0], &on_parent, &by_parent);
                add(pc, &on_parent, &by_child);
                add(cp, &on_child, &by_parent);
            }
        }
    }

    /// The same to whoever keeps another matrix: what an element acts on, and what it adds. Elements whose impulses are unknowns add
    /// nothing.
    #[inline(always)]
    pub(crate) fn add_to(&self, memory: &Memory, mut each: impl FnMut(Acts, &Adds)) {
        if memory.idle {
            return;
        }
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            if !e.is_unknown {
                each(slot.acts(), &Adds(e, slot));
            }
        }
    }

    /// How gaps and sliding velocities answer to velocities, and the law there.
    pub(crate) fn linearize(&self, w: &View, memory: &mut Memory) {
        if !(self.is_empty() || memory.idle) {
            wide!(self.linearize_all(w, memory));
        }
    }

    #[inline(always)]
    fn linearize_all(&self, w: &View, memory: &mut Memory) {
        let (m, c, stage, y) = (w.model, memory, w.at.stage, w.trial);
        for (e, sides, slot) in c.each(self) {
            if e.law.gap {
                e.by_velocity = if let Stage::Step(h) = stage {
                    let (a, b) = (m.pose(w.next, slot.parent), &w.next[slot.child]);
                    let row = match slot.source {
                        Source::Limit(j, i, upper) => {
                            let joint = &m.joints[j];
                            limit_row(joint, i, upper, (a, b), &joint.relative(a, b))
                        }
                        _ => normal_row(&e.next, a, b),
                    };
                    e.next_row = row;
                    let turn = |body: usize, t: &Vec3| {
                        let omega = vec3(y, 6 * body + 3);
                        let law = &m.bodies[body].rotation;
                        law.jacobian_transposed(&omega, h, w.scalar[body], t) / h
                    };
                    let six = |f: Vec3, t: Vec3| Vec6::new(f.x, f.y, f.z, t.x, t.y, t.z);
                    [
                        slot.parent.map_or_else(Vec6::zeros, |p| {
                            six(-row.force, turn(p, &row.parent_torque))
                        }),
                        six(row.force, turn(slot.child, &row.child_torque)),
                    ]
                } else {
                    both(&e.normal)
                };
            }
            if e.law.frictional {
                e.slide_by_velocity = [both(&e.slides[0]), both(&e.slides[1])];
                if let Stage::Step(h) = stage {
                    self.turn_slide(w, e, slot);
                    let carry = |body: usize, by: &Vec6| {
                        let (x, phi) = (by.fixed_rows::<3>(0), by.fixed_rows::<3>(3));
                        let omega = vec3(y, 6 * body + 3);
                        let phi = phi.into_owned();
                        let law = &m.bodies[body].rotation;
                        let t = law.jacobian_transposed(&omega, h, w.scalar[body], &phi);
                        Vec6::new(h * x[0], h * x[1], h * x[2], t.x, t.y, t.z)
                    };
                    for (by, turn) in e.slide_by_velocity.iter_mut().zip(&e.slide_turn) {
                        if let Some(p) = slot.parent {
                            by[0] += carry(p, &turn[0]);
                        }
                        by[1] += carry(slot.child, &turn[1]);
                    }
                }
            }
            e.linearize(sides);
        }
    }
}
