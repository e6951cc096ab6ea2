//! Contacts in the step's equations and matrix: everything known at the knot, the residual, the blocks.

use super::cone::Law;
use super::{Element, Layout, Memory, Source, View};
use crate::dynamics::Stage;
use crate::mechanism::{
    Ahead, Joint, Mechanism, Meeting, Relative, Row, Search, Vec6, friction_rows, normal_row,
};
use crate::mechanism::{add_wrench, dot, vec3};
use crate::spatial::{Mat3, Pose, Vec3, increment_jacobian_transposed};

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
fn limit_row(joint: &Joint, i: usize, upper: bool, (a, b): (&Pose, &Pose), rel: &Relative) -> Row {
    let row = joint.direction_row(i, a, b, rel);
    if upper { -row } else { row }
}

/// `(R(h w) - 1) c/h`: how a point of a body moves with the rotation over an interval, body frame at its start.
fn turned(c: &Vec3, omega: &Vec3, h: f64, scalar: f64) -> Vec3 {
    let half = omega * 0.5;
    let across = half.cross(c);
    (across * scalar + half.cross(&across) * h) * 2.0
}

/// Acceleration along a row that the forces alone give.
fn free_acceleration(
    m: &Mechanism,
    inverse_inertia: &[Mat3],
    force: &[f64],
    (parent, child): (Option<usize>, usize),
    row: &Row,
) -> f64 {
    let of = |b: usize, f: &Vec3, t: &Vec3| {
        f.dot(&vec3(force, 6 * b)) / m.bodies[b].mass
            + t.dot(&(inverse_inertia[b] * vec3(force, 6 * b + 3)))
    };
    of(child, &row.force, &row.child_torque)
        + parent.map_or(0.0, |p| of(p, &-row.force, &row.parent_torque))
}

/// Approach, in multiples of what gravity gives a body within a step, up to which it does not bounce but rests.
const RESTING: f64 = 2.0;

/// Parent and child part of a row.
pub(super) fn both(row: &Row) -> [Vec6; 2] {
    [row.parent(), row.child()]
}

/// Overlap, m, that is pushed out in one step: with 1 cm/s in one of 0.01 s. It is far above what resting bodies have, so
/// that derivatives there see one law.
pub(super) const OVERLAP: f64 = 1e-4;
/// Part of what is deeper that a step leaves.
const LEFT: f64 = 0.9;

impl Element {
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
    /// Wrenches at the knot, the laws, and what a bounce adds.
    pub(crate) fn prepare(&self, w: &View, memory: &mut Memory) {
        if self.is_empty() {
            return;
        }
        let (m, c, at) = (w.model, memory, w.at);
        c.interval = match at.stage {
            Stage::Step(h) => h,
            Stage::Readout => at.h_prev,
        };
        c.kappa = (self.path * c.interval).max(c.softness);
        c.levelled = false;
        c.idle = c.interval == 0.0;
        c.spent = 0;
        let floor = 4.0 * f64::EPSILON / c.interval;
        let mut search = Search::default();
        let ahead = match at.stage {
            Stage::Step(h) => Ahead {
                velocities: w.before,
                h,
            },
            Stage::Readout => Ahead::NONE,
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
                    e.held = m.meeting_of(contact, w.poses, &ahead, &mut search);
                    e.here = m.touch_of(contact, &e.held, w.poses);
                    e.normal = normal_row(&e.here, a, b);
                    e.tangents = friction_rows(&e.here, a, b);
                    e.floor = floor * e.here.point.amax();
                    e.noise = e.floor;
                    e.arm = m.arm(contact);
                    e.bounce = 0.0;
                    e.left = match at.stage {
                        // where nothing is searched for, what meets does not change
                        Stage::Step(_) if e.here.gap < -OVERLAP && e.held != Meeting::Surfaces => {
                            LEFT
                        }
                        _ => 0.0,
                    };
                    let restitution = m.restitution(contact);
                    if let (true, Stage::Step(h)) = (restitution > 0.0, at.stage) {
                        let (p, c) = (slot.parent, slot.child);
                        let approach = -dot(w.before, p, c, &e.normal);
                        let pushed = at.half()
                            * free_acceleration(m, w.inverse_inertia, w.force, (p, c), &e.normal);
                        let gap = e.here.gap / h;
                        // below that speed it rests
                        let slow = RESTING * self.gravity * h;
                        if approach > slow && gap - approach + pushed < 0.0 {
                            e.bounce = gap + restitution * approach;
                        }
                    }
                }
                Source::Friction(j, i) => {
                    let joint = &m.joints[j];
                    e.law = Law {
                        gap: false,
                        frictional: true,
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
        }
    }

    /// Gaps and sliding velocities at the trial unknowns; the impulses' wrenches leave the residual.
    pub(crate) fn evaluate(&self, w: &View, memory: &mut Memory, residual: &mut [f64]) {
        if self.is_empty() || memory.idle {
            return;
        }
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
                    e.gap = (e.next.gap - e.overlap()) / h - e.bounce;
                    if let Some(arm) = &e.arm {
                        // by the increment, whose rounding is that of a velocity: where more corners hold a body than
                        // are needed, rounding of gaps becomes impulses by `g/s`
                        let (v, omega) = (vec3(y, 6 * child), vec3(y, 6 * child + 3));
                        let moved = v + w.poses[child].r * turned(arm, &omega, h, w.scalar[child]);
                        e.gap = e.here.gap / h + e.here.normal.dot(&moved) - e.bounce;
                        let size = v.amax() + omega.amax() * arm.amax() + (e.here.gap / h).abs();
                        e.noise = ROUNDINGS * f64::EPSILON * size;
                    }
                } else {
                    e.gap = e.here.gap / c.interval + dot(y, parent, child, &e.normal);
                }
                add_wrench(residual, parent, child, &e.normal, -slot.mass * e.local.g);
            }
            if e.law.frictional {
                for (i, row) in e.tangents.iter().enumerate() {
                    e.local.eta[i] = dot(y, parent, child, row);
                    let size = -slot.mass * e.local.b[i];
                    add_wrench(residual, parent, child, row, size);
                }
            }
        }
    }

    /// The blocks of the bodies gain `m_c [N; B]' S [N+; B]`.
    pub(crate) fn assemble(&self, w: &View, memory: &mut Memory, values: &mut [f64]) {
        if self.is_empty() || memory.idle {
            return;
        }
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
                        increment_jacobian_transposed(&omega, h, w.scalar[body], t) / h
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
            e.linearize(sides);
            let (l, normal) = (&e.linear, both(&e.normal));
            let tangents = e.tangents.each_ref().map(both);
            let gather = |side: usize| {
                let along = [tangents[0][side], tangents[1][side]];
                let of = |s: [f64; 2]| along[0] * s[0] + along[1] * s[1];
                [
                    (normal[side] + of(l.drag)) * (slot.mass * l.normal),
                    of([l.slide[0][0], l.slide[1][0]]) * slot.mass,
                    of([l.slide[0][1], l.slide[1][1]]) * slot.mass,
                ]
            };
            let mut add = |block: usize, on: &[Vec6; 3], by: usize| {
                let by = [e.by_velocity[by], tangents[0][by], tangents[1][by]];
                let block = values[block..block + 36].as_chunks_mut::<6>().0;
                for (k, column) in block.iter_mut().enumerate() {
                    for (i, v) in column.iter_mut().enumerate() {
                        *v += on[0][i] * by[0][k] + on[1][i] * by[1][k] + on[2][i] * by[2][k];
                    }
                }
            };
            let on_child = gather(1);
            add(slot.own[1], &on_child, 1);
            if let Some((pc, cp)) = slot.pair {
                let on_parent = gather(0);
                add(slot.own[0], &on_parent, 0);
                add(pc, &on_parent, 1);
                add(cp, &on_child, 0);
            }
        }
    }
}
