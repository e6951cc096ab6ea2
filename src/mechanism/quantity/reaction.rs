//! What constraints, limits and friction of joints exert: the impulse of the step from the knot over half of the two intervals that
//! meet there.

use super::{Adjoint, KnotData, Reaction, ReactionSource, add};
use crate::mechanism::CoordinateId;
use crate::spatial::Vec3;

/// Direction and multiplier's place of the rows that make up the force, or the torque.
fn rows<'a>(
    k: &KnotData<'a>,
    joint: usize,
    kind: Reaction,
) -> impl Iterator<Item = (&'a Vec3, usize)> {
    let j = &k.mechanism.joints[joint];
    let own = match kind {
        Reaction::Force => 0..j.translation_rows,
        Reaction::Torque => j.translation_rows..j.rows(),
    };
    let first = k.mechanism.reactions(ReactionSource::Joint(joint)).start;
    own.map(move |i| (&j.constrained[i], first + i))
}

/// `sum e lambda`: the impulse of the force; half of it crossed with the relative rotation gives the torque's.
fn multiplier(k: &KnotData, joint: usize, kind: Reaction) -> Vec3 {
    rows(k, joint, kind).fold(Vec3::zeros(), |sum, (e, i)| sum + e * k.reactions[i])
}

/// Force or torque on the child in the parent's frame. The rotation's constraint is the vector part `v` of `r = (r_w, v)`,
/// so a multiplier `nu` exerts `(r_w nu + v x nu)/2`.
pub(super) fn exerted(k: &KnotData, joint: usize, kind: Reaction) -> Vec3 {
    let nu = multiplier(k, joint, kind);
    let impulse = match kind {
        Reaction::Force => nu,
        Reaction::Torque => {
            let r = k.ends(&k.mechanism.joints[joint]).2.r;
            (nu * r.w + r.imag().cross(&nu)) * 0.5
        }
    };
    impulse / k.share()
}

pub(super) fn constraint(k: &KnotData, joint: usize, kind: Reaction, axis: &Vec3) -> f64 {
    axis.dot(&exerted(k, joint, kind))
}

pub(super) fn pull_constraint(
    k: &KnotData,
    (joint, kind): (usize, Reaction),
    axis: &Vec3,
    out: &mut Adjoint,
) {
    let share = k.share();
    pull_share(k, constraint(k, joint, kind, axis), out);
    let axis = axis / share;
    let j = &k.mechanism.joints[joint];
    let r = k.ends(j).2.r;
    let (scalar, v) = (r.w, r.imag());
    let by_multiplier = match kind {
        Reaction::Force => axis,
        Reaction::Torque => (axis * scalar - v.cross(&axis)) * 0.5,
    };
    for (e, i) in rows(k, joint, kind) {
        out.reactions[i] += e.dot(&by_multiplier);
    }
    if kind == Reaction::Force {
        return;
    }
    // dv = ([v] + r_w)/2 R_off dphi_b + ([v] - r_w)/2 dphi_a, dr_w = v'/2 (dphi_a - R_off dphi_b)
    let nu = multiplier(k, joint, kind);
    let (by_v, by_w) = (nu.cross(&axis) * 0.5, 0.5 * nu.dot(&axis));
    let (twist, even) = (by_v.cross(&v) - v * by_w, by_v * scalar);
    let on_child = j.offset_matrix.tr_mul(&(twist + even)) * 0.5;
    add(&mut out.poses[6 * j.child + 3..], on_child.as_slice());
    if let Some(p) = j.parent {
        let on_parent = (by_v.cross(&v) + v * by_w - even) * 0.5;
        add(&mut out.poses[6 * p + 3..], on_parent.as_slice());
    }
}

/// The derivative of an impulse over the mean interval by the intervals, `value` being that quotient.
pub(super) fn pull_share(k: &KnotData, value: f64, out: &mut Adjoint) {
    let by_interval = 0.5 * value / k.share();
    out.h -= by_interval;
    out.h_prev -= by_interval;
}

/// Place of what exerts an effort along a coordinate.
fn place(k: &KnotData, of: fn(usize) -> ReactionSource, id: CoordinateId) -> usize {
    let joints = k.mechanism.joints[..id.0].iter();
    let before: usize = joints.map(|j| j.directions.len()).sum();
    k.mechanism.reactions(of(before + id.1)).start
}

/// Of limits or friction along a coordinate.
pub(super) fn effort(k: &KnotData, of: fn(usize) -> ReactionSource, id: CoordinateId) -> f64 {
    k.reactions[place(k, of, id)] / k.share()
}

pub(super) fn pull_effort(
    k: &KnotData,
    of: fn(usize) -> ReactionSource,
    id: CoordinateId,
    g: f64,
    out: &mut Adjoint,
) {
    pull_share(k, g * effort(k, of, id), out);
    out.reactions[place(k, of, id)] += g / k.share();
}
