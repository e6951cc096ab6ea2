//! Quantities of one joint: coordinates, and their rates at the knot and over the interval before it.

use super::{Adjoint, KnotData, Past, unit};
use crate::mechanism::wrench::{add_six, add_wrench, dot, vec3};
use crate::mechanism::{CoordinateId, Coupling, Field, Freedom, Joint, Relative};
use crate::spatial::{Pose, Vec3};

pub(super) fn pull_coordinate(
    k: &KnotData,
    (joint, direction): CoordinateId,
    g: f64,
    out: &mut Adjoint,
) {
    let j = &k.mechanism.joints[joint];
    let (a, b, rel) = k.ends(j);
    let row = j.coordinate_row(direction, a, b, &rel);
    add_wrench(&mut out.poses, j.parent, j.child, &row, g);
}

pub(super) fn coordinate_by(k: &KnotData, joint: usize, direction: usize, field: Field) -> f64 {
    let j = &k.mechanism.joints[joint];
    let d = &j.directions[direction];
    if d.freedom != Freedom::Slide {
        return 0.0;
    }
    match field {
        Field::ParentAnchor(of, i) if of == joint => -d.unit[i],
        Field::ChildAnchor(of, i) if of == joint => {
            let (a, b, _) = k.ends(j);
            d.unit.dot(&j.arm_by_child_anchor(&unit(i), a, b))
        }
        _ => 0.0,
    }
}

pub(super) fn rate(k: &KnotData, joint: usize, direction: usize) -> f64 {
    rate_of(k, joint, direction, k.velocities)
}

fn rate_of(k: &KnotData, joint: usize, direction: usize, motion: &[f64]) -> f64 {
    let j = &k.mechanism.joints[joint];
    let (a, b, rel) = k.ends(j);
    let row = j.direction_row(direction, a, b, &rel);
    dot(motion, j.parent, j.child, &row)
}

pub(super) fn pull_rate(k: &KnotData, (joint, direction): CoordinateId, g: f64, out: &mut Adjoint) {
    let j = &k.mechanism.joints[joint];
    let ends = k.ends(j);
    let row = j.direction_row(direction, ends.0, ends.1, &ends.2);
    add_wrench(&mut out.velocities, j.parent, j.child, &row, g);
    turn(j, direction, g, ends, k.velocities, &mut out.poses);
}

/// Adds to `x` the derivative of `g` times the rate along a direction by the configuration, at the velocities `motion`.
fn turn(
    j: &Joint,
    direction: usize,
    g: f64,
    (a, b, rel): (&Pose, &Pose, Relative),
    motion: &[f64],
    x: &mut [f64],
) {
    let mut turn = Coupling::default();
    let unit = j.directions[direction].unit * g;
    j.add_direction_derivative(direction, &unit, (a, b), &rel, &mut turn);
    let [on_a, on_b] = turn.transposed_times(motion, j.parent, j.child);
    if let Some(p) = j.parent {
        add_six(x, p, &on_a, 1.0);
    }
    add_six(x, j.child, &on_b, 1.0);
}

/// The component of the child's anchor that a field is, if the direction slides: it alone moves a rate.
fn sliding(k: &KnotData, joint: usize, direction: usize, field: Field) -> Option<Vec3> {
    let d = &k.mechanism.joints[joint].directions[direction];
    match field {
        Field::ChildAnchor(of, i) if of == joint && d.freedom == Freedom::Slide => Some(unit(i)),
        _ => None,
    }
}

pub(super) fn rate_by(k: &KnotData, joint: usize, direction: usize, field: Field) -> f64 {
    sliding(k, joint, direction, field)
        .map_or(0.0, |e| sliding_rate(k, joint, direction, &e, k.velocities))
}

/// Change of a rate by a move `e` of the child's anchor.
fn sliding_rate(k: &KnotData, joint: usize, direction: usize, e: &Vec3, motion: &[f64]) -> f64 {
    let j = &k.mechanism.joints[joint];
    let ends = k.mechanism.ends(j, k.poses);
    let spin = |b: usize| vec3(motion, 6 * b + 3);
    j.rate_by_child_anchor(&j.directions[direction].unit, e, ends, spin)
}

/// Displacement over the last `share` of the interval before the knot, by its length; at the start the rate of the start's velocities.
///
/// Of a step made in parts only the last one, of the share `p`, is known. With its rate `r` and the rate `v` at the knot it is to second
/// order `v - (v - r) share/p`.
pub(super) fn interval_rate(k: &KnotData, (joint, direction): CoordinateId, share: f64) -> f64 {
    let (last, by_last) = (part_rate(k, joint, direction), by_last(k, share));
    if by_last == 1.0 {
        return last;
    }
    let here = rate(k, joint, direction);
    here - (here - last) * by_last
}

/// How an interval rate changes with that of the last part; the rest is the rate's at the knot.
fn by_last(k: &KnotData, share: f64) -> f64 {
    match k.past {
        Past::Start(_) => 1.0,
        Past::Poses(_) => share / k.part,
    }
}

fn part_rate(k: &KnotData, joint: usize, direction: usize) -> f64 {
    let j = &k.mechanism.joints[joint];
    match k.past {
        Past::Start(motion) => rate_of(k, joint, direction, motion),
        Past::Poses(before) => {
            let (a, b) = k.mechanism.ends(j, before);
            let (old, new) = (j.relative(a, b), k.ends(j).2);
            j.displacement(direction, &old, &new) / k.h_prev
        }
    }
}

pub(super) fn pull_interval_rate(
    k: &KnotData,
    (joint, direction): CoordinateId,
    share: f64,
    g: f64,
    out: &mut Adjoint,
) {
    let by_last = by_last(k, share);
    if by_last != 1.0 {
        pull_rate(k, (joint, direction), g * (1.0 - by_last), out);
    }
    let g = g * by_last;
    let j = &k.mechanism.joints[joint];
    let (a, b, rel) = k.ends(j);
    match k.past {
        Past::Start(motion) => {
            let row = j.direction_row(direction, a, b, &rel);
            add_wrench(&mut out.past, j.parent, j.child, &row, g);
            turn(j, direction, g, (a, b, rel), motion, &mut out.poses);
        }
        Past::Poses(before) => {
            let h = k.h_prev;
            let (a0, b0) = k.mechanism.ends(j, before);
            let old = j.relative(a0, b0);
            let end = j.displacement_end_row(direction, &old, &rel, a, b);
            let start = j.displacement_start_row(direction, &old, &rel, a0, b0);
            add_wrench(&mut out.poses, j.parent, j.child, &end, g / h);
            add_wrench(&mut out.past, j.parent, j.child, &start, g / h);
            out.h_prev -= g * j.displacement(direction, &old, &rel) / (h * h);
        }
    }
}

pub(super) fn interval_rate_by(
    k: &KnotData,
    (joint, direction): CoordinateId,
    share: f64,
    field: Field,
) -> f64 {
    let by_last = by_last(k, share);
    let here = match by_last {
        1.0 => 0.0,
        _ => rate_by(k, joint, direction, field),
    };
    here + by_last * (part_rate_by(k, joint, direction, field) - here)
}

fn part_rate_by(k: &KnotData, joint: usize, direction: usize, field: Field) -> f64 {
    let Some(e) = sliding(k, joint, direction, field) else {
        return 0.0;
    };
    let j = &k.mechanism.joints[joint];
    match k.past {
        Past::Start(motion) => sliding_rate(k, joint, direction, &e, motion),
        Past::Poses(before) => {
            let moved = |(a, b): (&Pose, &Pose)| j.arm_by_child_anchor(&e, a, b);
            let [new, old] = [k.poses, before].map(|p| moved(k.mechanism.ends(j, p)));
            j.directions[direction].unit.dot(&(new - old)) / k.h_prev
        }
    }
}
