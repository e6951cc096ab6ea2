//! Contacts, joint limits and joint friction in the step: what each stage of the step adds for them.
//!
//! Their impulses act at the knot, along `N(z)'` and `B(z)'`; gaps are taken at the successor. With the scaled unknowns
//! of [`cone`], the bodies' rows lose `m_c (N' g + B' b)`, and Newton's matrix gains
//! `m_c [N; B]' S [N+; B]` with `N+ = (d phi(z+)/dV)/h`: the unknowns of a contact are eliminated into the blocks of its
//! bodies. At a knot (`h = 0`) the gap over the interval before stands in: `s = phi(z)/h- + N v`.
//!
//! Mechanisms without them pay for one comparison a stage.

mod cone;
mod derivative;
#[cfg(test)]
mod derivative_tests;
mod interior;
mod parameter;
mod seen;
#[cfg(test)]
mod tests;
mod work;

pub use work::ContactWork;

use super::assembly::{add_wrench, compliance, dot, vec3};
use super::{DampedState, Maximal, Work};
use crate::block::Symbolic;
use crate::mechanism::{Joint, Mechanism, Relative, Row, Touch, Vec6, friction_rows, normal_row};
use crate::spatial::{Mat3, Pose, Vec3, increment_jacobian_transposed};
use cone::{Law, Linear, Local, Target};
use derivative::Response;

/// Numbers of a contact among the unknowns: `s, g, psi, b`.
const UNKNOWNS: usize = 5;

/// The set of friction impulses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cone {
    /// The circular cone: the same in every heading.
    #[default]
    SecondOrder,
    /// The papers' pyramid in it, of so many directions (even, 4 to 16) in the contact's own tangent plane.
    Linearized(usize),
}

/// Settings of contacts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactOptions {
    /// Where friction impulses lie.
    pub cone: Cone,
    /// The central path's parameter is `kappa = central_path g h`, m/s: a body rests `kappa/g` above the ground.
    pub central_path: f64,
    /// Start from the impulses of the step before, which are then part of the state.
    pub warm: bool,
}

impl Default for ContactOptions {
    fn default() -> Self {
        Self {
            cone: Cone::SecondOrder,
            central_path: 1e-9,
            warm: true,
        }
    }
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A contact, by its index.
    Touch(usize),
    /// Coulomb friction of a joint's direction.
    Rub(usize, usize),
    /// A limit of a joint's coordinate: the upper one, or the lower.
    Limit(usize, usize, bool),
}

/// An element in the matrix of the step.
#[derive(Clone, Debug)]
struct Slot {
    source: Source,
    parent: Option<usize>,
    child: usize,
    /// Blocks parent-child and child-parent.
    pair: Option<(usize, usize)>,
    /// Scales its impulses: kg, for rotations kg m^2.
    mass: f64,
}

/// The elements of a mechanism.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    slots: Vec<Slot>,
    /// Size of gravity, or 9.81 where there is none, m/s^2; `central_path` times it.
    gravity: f64,
    path: f64,
    /// Radius of gyration of every body, m: turns its angular velocities into velocities.
    sizes: Vec<f64>,
    /// Smallest mass, kg.
    lightest: f64,
}

/// An element at a knot and at the trial unknowns.
#[derive(Clone, Copy, Debug)]
struct Element {
    law: Law,
    /// Wrenches of unit impulses: along the normal, along the two tangents.
    normal: Row,
    tangents: [Row; 2],
    /// The contact at the knot.
    here: Touch,
    /// `phi/h` at the unknowns last evaluated, and the contact there.
    gap: f64,
    next: Touch,
    /// `N+` by the velocities of parent and child.
    by_velocity: [Vec6; 2],
    /// Added to the gap's rate for a bounce, m/s.
    bounce: f64,
    local: Local,
    linear: Linear,
    target: Target,
    direction: Local,
    /// Derivative of the gap at the successor.
    next_row: Row,
    response: Response,
    /// The affine direction, and one that may be returned to.
    affine: Local,
    spare: Local,
}

/// What is computed for the elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    elements: Vec<Element>,
    /// The central path's parameter, m^2/s^2.
    kappa: f64,
    /// Derivative of the forward parameter by the interval; the larger one that linearizations use, if any.
    path: f64,
    smoothing: f64,
    /// Length by which gaps are divided, s.
    interval: f64,
    /// Nothing touches at the start, where there is no interval before.
    idle: bool,
    /// The derivatives by the configuration are those of the last linearization.
    coupled: bool,
    /// Copy of a Newton direction, and a right-hand side.
    spare: Vec<f64>,
    rhs: Vec<f64>,
}

const NOWHERE: Touch = Touch {
    gap: 0.0,
    normal: Vec3::new(0.0, 0.0, 0.0),
    point: Vec3::new(0.0, 0.0, 0.0),
};

/// Edges of the graph that contacts between bodies ask for.
pub(super) fn edges(m: &Mechanism) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = |j: usize| (m.joints[j].parent, m.joints[j].child);
    let rub = rubbing(m).map(move |(j, _)| ends(j));
    let limit = limited(m).map(move |(j, ..)| ends(j));
    let touch = m.contacts.iter().map(|c| (c.parent, c.child));
    touch
        .chain(rub)
        .chain(limit)
        .filter_map(|(p, c)| p.map(|p| (p, c)))
}

/// Joint directions with Coulomb friction.
fn rubbing(m: &Mechanism) -> impl Iterator<Item = (usize, usize)> + '_ {
    m.coordinates()
        .filter(|&(j, i)| m.joints[j].directions[i].friction > 0.0)
}

/// Limits of joints: joint, direction, whether the upper one.
fn limited(m: &Mechanism) -> impl Iterator<Item = (usize, usize, bool)> + '_ {
    m.coordinates().flat_map(|(j, i)| {
        let d = &m.joints[j].directions[i];
        let sides = [(d.lower, false), (d.upper, true)];
        let closed = sides.into_iter().filter(|(bound, _)| bound.is_finite());
        closed.map(move |(_, upper)| (j, i, upper))
    })
}

impl Layout {
    pub(super) fn new(
        m: &Mechanism,
        symbolic: &Symbolic,
        options: &ContactOptions,
        (inverse_inertia, poses): (&[Mat3], &[Pose]),
    ) -> Self {
        let slot = |r, c| {
            symbolic
                .slot(r, c)
                .expect("an edge of the graph has its block")
        };
        let pair = |p: Option<usize>, c| p.map(|p| (slot(p, c), slot(c, p)));
        let touch = m.contacts.iter().enumerate().map(|(i, c)| Slot {
            source: Source::Touch(i),
            parent: c.parent,
            child: c.child,
            pair: pair(c.parent, c.child),
            mass: c.effective_mass,
        });
        let of_joint = |source, j: usize, i| {
            let joint = &m.joints[j];
            let (a, b) = m.ends(joint, poses);
            let row = joint.direction_row(i, a, b, &joint.relative(a, b));
            Slot {
                source,
                parent: joint.parent,
                child: joint.child,
                pair: pair(joint.parent, joint.child),
                mass: 1.0 / compliance(m, inverse_inertia, (joint.parent, joint.child), &row),
            }
        };
        let rub = rubbing(m).map(|(j, i)| of_joint(Source::Rub(j, i), j, i));
        let limit = limited(m).map(|(j, i, up)| of_joint(Source::Limit(j, i, up), j, i));
        let slots: Vec<_> = touch.chain(rub).chain(limit).collect();
        let gravity = match m.gravity.norm() {
            0.0 => 9.81,
            g => g,
        };
        Self {
            slots,
            gravity,
            path: options.central_path * gravity,
            sizes: m
                .bodies
                .iter()
                .map(|b| (b.inertia.trace() / (3.0 * b.mass)).sqrt())
                .collect(),
            lightest: m
                .bodies
                .iter()
                .map(|b| b.mass)
                .fold(f64::INFINITY, f64::min),
        }
    }

    /// Are there none?
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Numbers among the unknowns.
    pub(super) fn unknowns(&self) -> usize {
        UNKNOWNS * self.slots.len()
    }

    pub(super) fn memory(&self, dim: usize) -> Memory {
        let element = Element {
            law: Law {
                gap: false,
                rubs: false,
                mu: 0.0,
                bound: 0.0,
            },
            normal: DampedState::ZERO,
            tangents: [DampedState::ZERO; 2],
            here: NOWHERE,
            gap: 0.0,
            next: NOWHERE,
            by_velocity: [Vec6::zeros(); 2],
            bounce: 0.0,
            local: Local::default(),
            linear: Linear::default(),
            target: Target::default(),
            direction: Local::default(),
            next_row: DampedState::ZERO,
            response: Response::default(),
            affine: Local::default(),
            spare: Local::default(),
        };
        Memory {
            elements: vec![element; self.slots.len()],
            kappa: 0.0,
            path: self.path,
            smoothing: 0.0,
            interval: 1.0,
            idle: false,
            coupled: false,
            spare: vec![0.0; if self.slots.is_empty() { 0 } else { dim }],
            rhs: vec![0.0; if self.slots.is_empty() { 0 } else { dim }],
        }
    }
}

impl Memory {
    /// Takes the unknowns of a step.
    pub(super) fn read(&mut self, y: &[f64]) {
        for (e, y) in self.elements.iter_mut().zip(y.chunks_exact(UNKNOWNS)) {
            e.local = Local {
                s: y[0],
                g: y[1],
                psi: y[2],
                b: [y[3], y[4]],
                eta: e.local.eta,
            };
        }
    }

    /// Central-path parameter of the linearizations to come, m^2/s^2; zero is the step's own.
    pub(super) fn relax(&mut self, kappa: f64) {
        self.smoothing = kappa;
    }

    /// What effort limits are rounded by, beside their range, squared.
    pub(super) fn relaxed(&self) -> f64 {
        self.smoothing
    }

    /// Derivative of the path's parameter in use by the interval.
    fn path(&self) -> f64 {
        if self.smoothing > self.kappa {
            0.0
        } else {
            self.path
        }
    }

    /// Writes them.
    pub(super) fn write(&self, y: &mut [f64]) {
        for (e, y) in self.elements.iter().zip(y.chunks_exact_mut(UNKNOWNS)) {
            let l = &e.local;
            y.copy_from_slice(&[l.s, l.g, l.psi, l.b[0], l.b[1]]);
        }
    }
}

/// Product of a row, given for parent and child, with six numbers of each body.
fn along(v: &[f64], parent: Option<usize>, child: usize, row: &[Vec6; 2]) -> f64 {
    let of = |b: usize, r: &Vec6| {
        let v = &v[6 * b..6 * b + 6];
        r.iter().zip(v).map(|(r, v)| r * v).sum::<f64>()
    };
    of(child, &row[1]) + parent.map_or(0.0, |p| of(p, &row[0]))
}

/// How far a coordinate is from its limit.
fn limit_gap(joint: &Joint, i: usize, upper: bool, rel: &Relative, near: f64) -> f64 {
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

/// Parent and child part of a row.
fn sides(row: &Row) -> [Vec6; 2] {
    [row.parent(), row.child()]
}

impl Maximal {
    /// Name of an element.
    pub(super) fn contact_name(&self, element: usize) -> String {
        let m = &self.mechanism;
        match self.contacts.slots[element].source {
            Source::Touch(i) => format!("contact `{}`", m.contacts[i].name),
            Source::Rub(j, i) => format!("friction of joint `{}`", m.coordinate_name((j, i))),
            Source::Limit(j, i, upper) => {
                let side = if upper { "upper" } else { "lower" };
                format!("{side} limit of joint `{}`", m.coordinate_name((j, i)))
            }
        }
    }

    /// Wrenches at the knot, the laws, and what a bounce adds.
    pub(super) fn prepare_contacts(&self, w: &mut Work) {
        if self.contacts.is_empty() {
            return;
        }
        let (m, c, at) = (&w.model, &mut w.contacts, w.at);
        c.interval = if at.h > 0.0 { at.h } else { at.h_prev };
        c.kappa = self.contacts.path * c.interval;
        c.idle = c.interval == 0.0;
        for (e, slot) in c.elements.iter_mut().zip(&self.contacts.slots) {
            let b = &w.poses[slot.child];
            let a = m.pose(&w.poses, slot.parent);
            match slot.source {
                Source::Touch(i) => {
                    let contact = &m.contacts[i];
                    let mu = m.friction(contact);
                    e.law = Law {
                        gap: true,
                        rubs: mu > 0.0,
                        mu,
                        bound: 0.0,
                    };
                    e.here = m.touch(contact, &w.poses);
                    e.normal = normal_row(&e.here, a, b);
                    e.tangents = friction_rows(&e.here, a, b);
                    e.bounce = 0.0;
                    let restitution = m.restitution(contact);
                    if restitution > 0.0 && at.h > 0.0 {
                        let (p, c) = (slot.parent, slot.child);
                        let approach = -dot(&w.before, p, c, &e.normal);
                        let pushed = 0.5
                            * (at.h_prev + at.h)
                            * free_acceleration(m, &w.inverse_inertia, &w.force, (p, c), &e.normal);
                        let gap = e.here.gap / at.h;
                        // below that speed it rests
                        let slow = 2.0 * self.contacts.gravity * at.h;
                        if approach > slow && gap - approach + pushed < 0.0 {
                            e.bounce = gap + restitution * approach;
                        }
                    }
                }
                Source::Rub(j, i) => {
                    let joint = &m.joints[j];
                    let half = 0.5 * (at.h_prev + at.h);
                    e.law = Law {
                        gap: false,
                        rubs: true,
                        mu: 0.0,
                        bound: joint.directions[i].friction * half / slot.mass,
                    };
                    e.tangents = [
                        joint.direction_row(i, a, b, &w.relative[j]),
                        DampedState::ZERO,
                    ];
                }
                Source::Limit(j, i, upper) => {
                    let joint = &m.joints[j];
                    e.law = Law {
                        gap: true,
                        rubs: false,
                        mu: 0.0,
                        bound: 0.0,
                    };
                    let near = self.winding_of[j].map_or(0.0, |i| w.winding[i]);
                    e.here.gap = limit_gap(joint, i, upper, &w.relative[j], near);
                    e.normal = limit_row(joint, i, upper, (a, b), &w.relative[j]);
                }
            }
        }
    }

    /// Gaps and sliding velocities at the trial unknowns; the impulses' wrenches leave the residual.
    pub(super) fn evaluate_contacts(&self, w: &mut Work) {
        if self.contacts.is_empty() || w.contacts.idle {
            return;
        }
        let (m, c, h, y) = (&w.model, &mut w.contacts, w.at.h, &w.trial);
        for (e, slot) in c.elements.iter_mut().zip(&self.contacts.slots) {
            let (parent, child) = (slot.parent, slot.child);
            if e.law.gap {
                if h > 0.0 {
                    match slot.source {
                        Source::Touch(i) => e.next = m.touch(&m.contacts[i], &w.next),
                        Source::Limit(j, i, upper) => {
                            let joint = &m.joints[j];
                            let (a, b) = m.ends(joint, &w.next);
                            let near = self.winding_of[j].map_or(0.0, |i| w.winding[i]);
                            let rel = joint.relative(a, b);
                            e.next.gap = limit_gap(joint, i, upper, &rel, near);
                        }
                        Source::Rub(..) => {}
                    }
                    e.gap = e.next.gap / h - e.bounce;
                } else {
                    e.gap = e.here.gap / c.interval + dot(y, parent, child, &e.normal);
                }
                add_wrench(
                    &mut w.residual,
                    parent,
                    child,
                    &e.normal,
                    -slot.mass * e.local.g,
                );
            }
            if e.law.rubs {
                for (i, row) in e.tangents.iter().enumerate() {
                    e.local.eta[i] = dot(y, parent, child, row);
                    let size = -slot.mass * e.local.b[i];
                    add_wrench(&mut w.residual, parent, child, row, size);
                }
            }
        }
    }

    /// The blocks of the bodies gain `m_c [N; B]' S [N+; B]`.
    pub(super) fn assemble_contacts(&self, w: &mut Work) {
        if self.contacts.is_empty() || w.contacts.idle {
            return;
        }
        let (m, c, h, y) = (&w.model, &mut w.contacts, w.at.h, &w.trial);
        for (e, slot) in c.elements.iter_mut().zip(&self.contacts.slots) {
            let ground = slot.parent.is_none();
            if e.law.gap {
                e.by_velocity = if h > 0.0 {
                    let (a, b) = (m.pose(&w.next, slot.parent), &w.next[slot.child]);
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
                    sides(&e.normal)
                };
            }
            e.linear = e.law.linearize(&e.local);
            let (l, normal) = (&e.linear, sides(&e.normal));
            let tangents = e.tangents.each_ref().map(sides);
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
                let block = w.values[block..block + 36].as_chunks_mut::<6>().0;
                for (k, column) in block.iter_mut().enumerate() {
                    for (i, v) in column.iter_mut().enumerate() {
                        *v += on[0][i] * by[0][k] + on[1][i] * by[1][k] + on[2][i] * by[2][k];
                    }
                }
            };
            let on_child = gather(1);
            add(self.bodies[slot.child], &on_child, 1);
            if let (false, Some(p), Some((pc, cp))) = (ground, slot.parent, slot.pair) {
                let on_parent = gather(0);
                add(self.bodies[p], &on_parent, 0);
                add(pc, &on_parent, 1);
                add(cp, &on_child, 0);
            }
        }
    }
}
