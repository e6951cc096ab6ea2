//! Quantities of the whole mechanism: center of mass, momenta, energies.

use super::{About, Adjoint, KnotData, add, joint, unit};
use crate::mechanism::wrench::{add_six, add_wrench};
use crate::mechanism::{Field, Mechanism, Vec6};
use crate::spatial::{Pose, Vec3};

/// Memory for the gradients of users' potentials.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    poses: Vec<Pose>,
    gradient: Vec<Vec6>,
}

impl Scratch {
    pub fn new(m: &Mechanism) -> Self {
        let bodies = m.potentials.iter().map(|p| p.bodies.len());
        let most = bodies.max().unwrap_or(0);
        Self {
            poses: vec![Pose::identity(); most],
            gradient: vec![Vec6::zeros(); most],
        }
    }
}

pub(super) fn center_of_mass(k: &KnotData) -> Vec3 {
    let bodies = k.mechanism.bodies.iter().zip(k.poses);
    let moment = bodies.fold(Vec3::zeros(), |sum, (b, p)| sum + p.x * b.mass);
    moment / k.mechanism.mass()
}

pub(super) fn pull_center_of_mass(k: &KnotData, axis: &Vec3, out: &mut Adjoint) {
    let mass = k.mechanism.mass();
    for (b, body) in k.mechanism.bodies.iter().enumerate() {
        let d = axis * (body.mass / mass);
        add(&mut out.poses[6 * b..], d.as_slice());
    }
}

pub(super) fn center_of_mass_by(k: &KnotData, axis: &Vec3, field: Field) -> f64 {
    match field {
        Field::Mass(b) => axis.dot(&(k.poses[b].x - center_of_mass(k))) / k.mechanism.mass(),
        _ => 0.0,
    }
}

pub(super) fn linear_momentum(k: &KnotData) -> Vec3 {
    let bodies = k.mechanism.bodies.iter().enumerate();
    bodies.fold(Vec3::zeros(), |sum, (b, body)| {
        sum + k.motion(b).0 * body.mass
    })
}

pub(super) fn pull_linear_momentum(k: &KnotData, axis: &Vec3, out: &mut Adjoint) {
    for (b, body) in k.mechanism.bodies.iter().enumerate() {
        add(&mut out.velocities[6 * b..], (axis * body.mass).as_slice());
    }
}

pub(super) fn linear_momentum_by(k: &KnotData, axis: &Vec3, field: Field) -> f64 {
    match field {
        Field::Mass(b) => axis.dot(&k.motion(b).0),
        _ => 0.0,
    }
}

/// Velocity of the center of mass.
fn drift(k: &KnotData) -> Vec3 {
    linear_momentum(k) / k.mechanism.mass()
}

pub(super) fn drift_by(k: &KnotData, axis: &Vec3, field: Field) -> f64 {
    match field {
        Field::Mass(b) => axis.dot(&(k.motion(b).0 - drift(k))) / k.mechanism.mass(),
        _ => 0.0,
    }
}

/// The point that an angular momentum refers to, and its velocity: only velocities relative to it count.
fn reference(k: &KnotData, about: About) -> (Vec3, Vec3) {
    match about {
        About::Origin => (Vec3::zeros(), Vec3::zeros()),
        About::CenterOfMass => (center_of_mass(k), drift(k)),
    }
}

pub(super) fn angular_momentum(k: &KnotData, about: About) -> Vec3 {
    let (o, _) = reference(k, about);
    let bodies = k.mechanism.bodies.iter().zip(k.poses).enumerate();
    bodies.fold(Vec3::zeros(), |sum, (b, (body, pose))| {
        let (v, omega) = k.motion(b);
        sum + (pose.x - o).cross(&(v * body.mass)) + pose.r * (body.inertia * omega)
    })
}

pub(super) fn pull_angular_momentum(k: &KnotData, axis: &Vec3, about: About, out: &mut Adjoint) {
    let (o, drift) = reference(k, about);
    for (b, (body, pose)) in k.mechanism.bodies.iter().zip(k.poses).enumerate() {
        let (v, omega) = k.motion(b);
        let local = pose.r.tr_mul(axis);
        let spin = body.inertia * omega;
        let linear = axis.cross(&(pose.x - o)) * body.mass;
        let shift = (v - drift).cross(axis) * body.mass;
        add(&mut out.velocities[6 * b..], linear.as_slice());
        add(
            &mut out.velocities[6 * b + 3..],
            (body.inertia * local).as_slice(),
        );
        add(&mut out.poses[6 * b..], shift.as_slice());
        add(&mut out.poses[6 * b + 3..], spin.cross(&local).as_slice());
    }
}

pub(super) fn angular_momentum_by(k: &KnotData, axis: &Vec3, about: About, field: Field) -> f64 {
    match field {
        Field::Mass(b) => {
            let (o, drift) = reference(k, about);
            let arm = k.poses[b].x - o;
            axis.dot(&arm.cross(&(k.motion(b).0 - drift)))
        }
        Field::Inertia(b, i, j) => {
            let local = k.poses[b].r.tr_mul(axis);
            inertia_by(i, j, &local, &k.motion(b).1)
        }
        _ => 0.0,
    }
}

/// `a' (dJ/d field) b` of a body's inertia.
fn inertia_by(i: usize, j: usize, a: &Vec3, b: &Vec3) -> f64 {
    if i == j {
        a[i] * b[i]
    } else {
        a[i] * b[j] + a[j] * b[i]
    }
}

pub(super) fn kinetic_energy(k: &KnotData) -> f64 {
    let bodies = k.mechanism.bodies.iter().enumerate();
    let twice: f64 = bodies
        .map(|(b, body)| {
            let (v, omega) = k.motion(b);
            body.mass * v.norm_squared() + omega.dot(&(body.inertia * omega))
        })
        .sum();
    0.5 * twice
}

pub(super) fn pull_kinetic_energy(k: &KnotData, g: f64, out: &mut Adjoint) {
    for (b, body) in k.mechanism.bodies.iter().enumerate() {
        let (v, omega) = k.motion(b);
        add(
            &mut out.velocities[6 * b..],
            (v * (body.mass * g)).as_slice(),
        );
        let spin = body.inertia * omega * g;
        add(&mut out.velocities[6 * b + 3..], spin.as_slice());
    }
}

pub(super) fn kinetic_energy_by(k: &KnotData, field: Field) -> f64 {
    match field {
        Field::Mass(b) => 0.5 * k.motion(b).0.norm_squared(),
        Field::Inertia(b, i, j) => {
            let (_, omega) = k.motion(b);
            0.5 * inertia_by(i, j, &omega, &omega)
        }
        _ => 0.0,
    }
}

pub(super) fn potential_energy(k: &KnotData) -> f64 {
    k.mechanism.stored_energy(k.poses, |j| k.windings[j])
}

/// Forces are minus the gradient.
pub(super) fn pull_potential_energy(k: &KnotData, g: f64, out: &mut Adjoint) {
    let (m, x) = (k.mechanism, &mut out.poses);
    for (b, body) in m.bodies.iter().enumerate() {
        add(&mut x[6 * b..], (m.gravity * (-g * body.mass)).as_slice());
    }
    for (index, j) in m.joints.iter().enumerate().filter(|(_, j)| j.has_springs()) {
        let (a, b, rel) = k.ends(j);
        // where a joint is not closed the springs' forces are not the gradient
        for (i, d) in j.directions.iter().enumerate() {
            if d.stiffness != 0.0 {
                let stretch = j.coordinate(i, &rel, k.windings[index]) - d.rest;
                let row = j.coordinate_row(i, a, b, &rel);
                add_wrench(x, j.parent, j.child, &row, g * d.stiffness * stretch);
            }
        }
    }
    for s in &m.springs {
        let row = s.spring_wrench(m.pose(k.poses, s.parent), &k.poses[s.child]);
        add_wrench(x, s.parent, s.child, &row, -g);
    }
    for p in &m.potentials {
        let n = p.bodies.len();
        let (poses, gradient) = (&mut out.scratch.poses, &mut out.scratch.gradient[..n]);
        for (own, b) in poses.iter_mut().zip(&p.bodies) {
            *own = k.poses[*b];
        }
        p.gradient(&poses[..n], gradient);
        for (b, d) in p.bodies.iter().zip(&*gradient) {
            add_six(x, *b, d, g);
        }
    }
}

pub(super) fn potential_energy_by(k: &KnotData, field: Field) -> f64 {
    let m = k.mechanism;
    // stretch of a joint's spring
    let stretch = |j: usize, i: usize| k.coordinate(j, i) - m.joints[j].directions[i].rest;
    let ends = |s: usize| {
        let s = &m.springs[s];
        (s, m.pose(k.poses, s.parent), &k.poses[s.child])
    };
    // stretch of a spring between points
    let line = |s: usize| {
        let (s, a, b) = ends(s);
        s.length(a, b) - s.rest
    };
    let by_anchor = |s: usize, i: usize, parent: bool| {
        let (spring, a, b) = ends(s);
        spring.stiffness * line(s) * spring.length_by_anchor(&unit(i), parent, a, b)
    };
    match field {
        Field::Mass(b) => -m.gravity.dot(&k.poses[b].x),
        Field::Gravity(i) => -m.mass() * center_of_mass(k)[i],
        Field::Stiffness((j, i)) => 0.5 * stretch(j, i).powi(2),
        Field::Rest((j, i)) => -m.joints[j].directions[i].stiffness * stretch(j, i),
        Field::ParentAnchor(j, _) | Field::ChildAnchor(j, _) => {
            let own = m.joints[j].directions.iter().enumerate();
            own.map(|(i, d)| match d.stiffness {
                0.0 => 0.0,
                s => s * stretch(j, i) * joint::coordinate_by(k, j, i, field),
            })
            .sum()
        }
        Field::SpringStiffness(s) => 0.5 * line(s).powi(2),
        Field::SpringRest(s) => -m.springs[s].stiffness * line(s),
        Field::SpringParentAnchor(s, i) => by_anchor(s, i, true),
        Field::SpringChildAnchor(s, i) => by_anchor(s, i, false),
        _ => 0.0,
    }
}
