//! Forces of springs and dampers, and power: of springs, dampers and controls, positive where they give energy to the bodies.
//!
//! At a knot a damper acts on the second-order rate there, `-d rate`; over a step the integrator takes the displacement.

use super::{Adjoint, ForceOf, KnotData, PowerOf, joint, unit};
use crate::mechanism::wrench::{add_six, add_wrench, dot};
use crate::mechanism::{
    CoordinateId, Coupling, Drive, Field, Freedom, Joint, Mechanism, Row, Spring,
};
use crate::spatial::Pose;

/// A spring between points, with the poses of its ends.
fn line<'a>(k: &KnotData<'a>, spring: usize) -> (&'a Spring, &'a Pose, &'a Pose) {
    let s = &k.mechanism.springs[spring];
    (s, k.mechanism.pose(k.poses, s.parent), &k.poses[s.child])
}

/// How much longer it is than relaxed, and how fast it grows.
fn stretch(k: &KnotData, spring: usize) -> f64 {
    let (s, a, b) = line(k, spring);
    s.length(a, b) - s.rest
}

fn growth(k: &KnotData, spring: usize) -> f64 {
    let (s, a, b) = line(k, spring);
    dot(k.velocities, s.parent, s.child, &s.length_row(a, b))
}

/// Adds `g` times the derivatives of the growth.
fn pull_growth(k: &KnotData, spring: usize, g: f64, out: &mut Adjoint) {
    let (s, a, b) = line(k, spring);
    add_wrench(
        &mut out.velocities,
        s.parent,
        s.child,
        &s.length_row(a, b),
        g,
    );
    let mut turn = Coupling::default();
    s.add_derivative(0.0, g, a, b, &mut turn);
    pull_turn(k, &turn, (s.parent, s.child), out);
}

fn growth_by(k: &KnotData, spring: usize, field: Field) -> f64 {
    let (s, a, b) = line(k, spring);
    let (component, parent) = match field {
        Field::SpringParentAnchor(of, i) if of == spring => (i, true),
        Field::SpringChildAnchor(of, i) if of == spring => (i, false),
        _ => return 0.0,
    };
    let row = s.wrench_by_anchor(&unit(component), parent, 0.0, 1.0, a, b);
    dot(k.velocities, s.parent, s.child, &row)
}

fn stretch_by(k: &KnotData, spring: usize, field: Field) -> f64 {
    let (s, a, b) = line(k, spring);
    match field {
        Field::SpringRest(of) if of == spring => -1.0,
        Field::SpringParentAnchor(of, i) if of == spring => {
            s.length_by_anchor(&unit(i), true, a, b)
        }
        Field::SpringChildAnchor(of, i) if of == spring => {
            s.length_by_anchor(&unit(i), false, a, b)
        }
        _ => 0.0,
    }
}

/// Adds what a wrench that turns with the configuration does at the velocities.
fn pull_turn(
    k: &KnotData,
    turn: &Coupling,
    (parent, child): (Option<usize>, usize),
    out: &mut Adjoint,
) {
    let [on_a, on_b] = turn.transposed_times(k.velocities, parent, child);
    if let Some(p) = parent {
        add_six(&mut out.poses, p, &on_a, 1.0);
    }
    add_six(&mut out.poses, child, &on_b, 1.0);
}

fn offset(k: &KnotData, (j, i): CoordinateId) -> f64 {
    k.coordinate(j, i) - k.mechanism.joints[j].directions[i].rest
}

pub(super) fn spring(k: &KnotData, of: ForceOf) -> f64 {
    match of {
        ForceOf::Coordinate((j, i)) => {
            -k.mechanism.joints[j].directions[i].stiffness * offset(k, (j, i))
        }
        ForceOf::Spring(s) => -k.mechanism.springs[s].stiffness * stretch(k, s),
    }
}

pub(super) fn pull_spring(k: &KnotData, of: ForceOf, g: f64, out: &mut Adjoint) {
    match of {
        ForceOf::Coordinate((j, i)) => {
            let stiffness = k.mechanism.joints[j].directions[i].stiffness;
            joint::pull_coordinate(k, (j, i), -stiffness * g, out);
        }
        ForceOf::Spring(s) => {
            let (own, a, b) = line(k, s);
            let (row, g) = (own.length_row(a, b), -own.stiffness * g);
            add_wrench(&mut out.poses, own.parent, own.child, &row, g);
        }
    }
}

pub(super) fn spring_by(k: &KnotData, of: ForceOf, field: Field) -> f64 {
    match (of, field) {
        (ForceOf::Coordinate(id), Field::Stiffness(own)) if own == id => -offset(k, id),
        (ForceOf::Coordinate((j, i)), _) => {
            let d = &k.mechanism.joints[j].directions[i];
            match field {
                Field::Rest(own) if own == (j, i) => d.stiffness,
                _ => -d.stiffness * joint::coordinate_by(k, j, i, field),
            }
        }
        (ForceOf::Spring(s), Field::SpringStiffness(own)) if own == s => -stretch(k, s),
        (ForceOf::Spring(s), _) => -k.mechanism.springs[s].stiffness * stretch_by(k, s, field),
    }
}

/// N s/m or N m s/rad.
pub(super) fn damping(m: &Mechanism, of: ForceOf) -> f64 {
    match of {
        ForceOf::Coordinate((j, i)) => m.joints[j].directions[i].damping,
        ForceOf::Spring(s) => m.springs[s].damping,
    }
}

/// Where there is no damping velocities need not be known.
pub(super) fn damper(k: &KnotData, of: ForceOf) -> f64 {
    let damping = damping(k.mechanism, of);
    if damping == 0.0 {
        return 0.0;
    }
    let rate = match of {
        ForceOf::Coordinate((j, i)) => joint::rate(k, j, i),
        ForceOf::Spring(s) => growth(k, s),
    };
    -damping * rate
}

pub(super) fn pull_damper(k: &KnotData, of: ForceOf, g: f64, out: &mut Adjoint) {
    let damping = damping(k.mechanism, of);
    if damping == 0.0 {
        return;
    }
    match of {
        ForceOf::Coordinate((j, i)) => joint::pull_rate(k, (j, i), -damping * g, out),
        ForceOf::Spring(s) => pull_growth(k, s, -damping * g, out),
    }
}

pub(super) fn damper_by(k: &KnotData, of: ForceOf, field: Field) -> f64 {
    match (of, field) {
        (ForceOf::Coordinate((j, i)), Field::Damping(own)) if own == (j, i) => {
            return -joint::rate(k, j, i);
        }
        (ForceOf::Spring(s), Field::SpringDamping(own)) if own == s => return -growth(k, s),
        _ => {}
    }
    let damping = damping(k.mechanism, of);
    if damping == 0.0 {
        return 0.0;
    }
    let by = match of {
        ForceOf::Coordinate((j, i)) => joint::rate_by(k, j, i, field),
        ForceOf::Spring(s) => growth_by(k, s, field),
    };
    -damping * by
}

/// The wrenches of a joint's springs.
fn springs_of<'a>(k: &KnotData<'a>, index: usize) -> (&'a Joint, [Row; 2], &'a Pose, &'a Pose) {
    let j = &k.mechanism.joints[index];
    let (a, b, rel) = k.ends(j);
    (j, j.spring_wrench(&rel, k.windings[index], a, b), a, b)
}

pub(super) fn spring_power(k: &KnotData, of: PowerOf) -> f64 {
    match of {
        PowerOf::Joint(index) => {
            let (j, rows, ..) = springs_of(k, index);
            let each = rows
                .iter()
                .map(|row| dot(k.velocities, j.parent, j.child, row));
            each.sum()
        }
        PowerOf::Spring(s) => spring(k, ForceOf::Spring(s)) * growth(k, s),
    }
}

pub(super) fn pull_spring_power(k: &KnotData, of: PowerOf, g: f64, out: &mut Adjoint) {
    match of {
        PowerOf::Joint(index) => {
            let (j, rows, a, b) = springs_of(k, index);
            for row in &rows {
                add_wrench(&mut out.velocities, j.parent, j.child, row, g);
            }
            let mut turn = Coupling::default();
            j.add_spring_derivative(k.windings[index], g, a, b, &mut turn);
            pull_turn(k, &turn, (j.parent, j.child), out);
        }
        PowerOf::Spring(s) => {
            let force = ForceOf::Spring(s);
            pull_spring(k, force, g * growth(k, s), out);
            pull_growth(k, s, g * spring(k, force), out);
        }
    }
}

pub(super) fn spring_power_by(k: &KnotData, of: PowerOf, field: Field) -> f64 {
    match of {
        PowerOf::Joint(index) => {
            let j = &k.mechanism.joints[index];
            let (a, b, rel) = k.ends(j);
            let directions = 0..j.directions.len();
            let each = directions.map(|i| {
                let force = ForceOf::Coordinate((index, i));
                let row = j.coordinate_row(i, a, b, &rel);
                let rate = dot(k.velocities, j.parent, j.child, &row);
                // anchors move what slides only, whose rate is that of its coordinate
                let by_anchor = match j.directions[i].freedom {
                    Freedom::Slide => spring(k, force) * joint::rate_by(k, index, i, field),
                    _ => 0.0,
                };
                spring_by(k, force, field) * rate + by_anchor
            });
            each.sum()
        }
        PowerOf::Spring(s) => {
            let force = ForceOf::Spring(s);
            spring_by(k, force, field) * growth(k, s) + spring(k, force) * growth_by(k, s, field)
        }
    }
}

/// What dampers of an element act along.
fn dampers(k: &KnotData, of: PowerOf) -> impl Iterator<Item = ForceOf> + use<> {
    let (joint, spring, count) = match of {
        PowerOf::Joint(j) => (j, None, k.mechanism.joints[j].directions.len()),
        PowerOf::Spring(s) => (0, Some(s), 1),
    };
    (0..count).map(move |i| spring.map_or(ForceOf::Coordinate((joint, i)), ForceOf::Spring))
}

/// Damping, rate.
fn damped(k: &KnotData, of: ForceOf) -> (f64, f64) {
    match of {
        ForceOf::Coordinate((j, i)) => (
            k.mechanism.joints[j].directions[i].damping,
            joint::rate(k, j, i),
        ),
        ForceOf::Spring(s) => (k.mechanism.springs[s].damping, growth(k, s)),
    }
}

pub(super) fn damper_power(k: &KnotData, of: PowerOf) -> f64 {
    let each = dampers(k, of).map(|of| damped(k, of));
    each.map(|(damping, rate)| -damping * rate * rate).sum()
}

pub(super) fn pull_damper_power(k: &KnotData, of: PowerOf, g: f64, out: &mut Adjoint) {
    for of in dampers(k, of) {
        // the force is proportional to the rate
        let rate = damped(k, of).1;
        pull_damper(k, of, 2.0 * rate * g, out);
    }
}

pub(super) fn damper_power_by(k: &KnotData, of: PowerOf, field: Field) -> f64 {
    let each = dampers(k, of).map(|of| {
        let (damping, rate) = damped(k, of);
        let is_own = match (of, field) {
            (ForceOf::Coordinate(id), Field::Damping(own)) => own == id,
            (ForceOf::Spring(s), Field::SpringDamping(own)) => own == s,
            _ => false,
        };
        match (is_own, of) {
            (true, _) => -rate * rate,
            (_, ForceOf::Coordinate((j, i))) => {
                -2.0 * damping * rate * joint::rate_by(k, j, i, field)
            }
            (_, ForceOf::Spring(s)) => -2.0 * damping * rate * growth_by(k, s, field),
        }
    });
    each.sum()
}

/// The rate along which a control acts, by its gain.
fn driven_rate(k: &KnotData, control: usize) -> f64 {
    let (m, c) = (k.mechanism, &k.mechanism.actuators[control]);
    let (parent, child) = m.driven(c);
    let row = c.unit_row(&m.joints, (m.pose(k.poses, parent), &k.poses[child]));
    dot(k.velocities, parent, child, &row)
}

pub(super) fn control_power(k: &KnotData, control: usize) -> f64 {
    let c = &k.mechanism.actuators[control];
    c.gain * c.exerted(k.controls[control]).0 * driven_rate(k, control)
}

pub(super) fn pull_control_power(k: &KnotData, control: usize, g: f64, out: &mut Adjoint) {
    let (m, c) = (k.mechanism, &k.mechanism.actuators[control]);
    let (u, slope) = c.exerted(k.controls[control]);
    let (parent, child) = m.driven(c);
    let poses = (m.pose(k.poses, parent), &k.poses[child]);
    let row = c.row(&m.joints, poses);
    out.controls[control] += g * slope * dot(k.velocities, parent, child, &row);
    add_wrench(&mut out.velocities, parent, child, &row, g * u);
    let mut turn = Coupling::default();
    c.add_derivative(g * u, &m.joints, poses, &mut turn);
    pull_turn(k, &turn, (parent, child), out);
}

pub(super) fn control_power_by(k: &KnotData, control: usize, field: Field) -> f64 {
    let c = &k.mechanism.actuators[control];
    let u = k.controls[control];
    let (exerted, slope) = c.exerted(u);
    match (field, &c.drive) {
        (Field::Gain(own), _) if own == control => slope * u * driven_rate(k, control),
        (Field::LowerEffort(own) | Field::UpperEffort(own), _) if own == control => {
            let is_upper = matches!(field, Field::UpperEffort(_));
            c.effort_by_limit(u, is_upper, 0.0) * driven_rate(k, control)
        }
        (_, &Drive::Joint { joint, direction }) => {
            c.gain * exerted * joint::rate_by(k, joint, direction, field)
        }
        _ => 0.0,
    }
}
