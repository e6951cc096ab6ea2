//! Quantities of the whole mechanism: centre of mass, momenta, energies.

use super::super::assembly::{add_wrench, vec3};
use super::super::{Maximal, Work};
use super::{About, Pulled, add};
use crate::spatial::Vec3;

fn velocity(w: &Work, b: usize) -> (Vec3, Vec3) {
    (vec3(&w.trial, 6 * b), vec3(&w.trial, 6 * b + 3))
}

pub(super) fn center_of_mass(w: &Work) -> Vec3 {
    let bodies = w.model.bodies.iter().zip(&w.poses);
    let moment = bodies.fold(Vec3::zeros(), |sum, (b, p)| sum + p.x * b.mass);
    moment / w.model.mass()
}

pub(super) fn linear_momentum(w: &Work) -> Vec3 {
    let bodies = w.model.bodies.iter().enumerate();
    bodies.fold(Vec3::zeros(), |sum, (b, body)| {
        sum + velocity(w, b).0 * body.mass
    })
}

/// The point that an angular momentum refers to.
pub(super) fn reference(w: &Work, about: About) -> Vec3 {
    match about {
        About::Origin => Vec3::zeros(),
        About::CenterOfMass => center_of_mass(w),
    }
}

pub(super) fn angular_momentum(w: &Work, about: About) -> Vec3 {
    let o = reference(w, about);
    let bodies = w.model.bodies.iter().zip(&w.poses).enumerate();
    bodies.fold(Vec3::zeros(), |sum, (b, (body, pose))| {
        let (v, omega) = velocity(w, b);
        sum + (pose.x - o).cross(&(v * body.mass)) + pose.r * (body.inertia * omega)
    })
}

pub(super) fn kinetic_energy(w: &Work) -> f64 {
    let bodies = w.model.bodies.iter().enumerate();
    let twice: f64 = bodies
        .map(|(b, body)| {
            let (v, omega) = velocity(w, b);
            body.mass * v.norm_squared() + omega.dot(&(body.inertia * omega))
        })
        .sum();
    0.5 * twice
}

impl Maximal {
    pub(super) fn potential_energy(&self, w: &Work) -> f64 {
        w.model
            .stored_energy(&w.poses, |joint| self.winding_in(w, joint))
    }
}

pub(super) fn pull_center_of_mass(w: &Work, axis: &Vec3, out: &mut Pulled) {
    let mass = w.model.mass();
    for (b, body) in w.model.bodies.iter().enumerate() {
        let d = axis * (body.mass / mass);
        add(&mut out.inputs.x[6 * b..], d.as_slice());
    }
}

pub(super) fn pull_linear_momentum(w: &Work, axis: &Vec3, out: &mut Pulled) {
    for (b, body) in w.model.bodies.iter().enumerate() {
        add(&mut out.velocity[6 * b..], (axis * body.mass).as_slice());
    }
}

pub(super) fn pull_angular_momentum(w: &Work, axis: &Vec3, about: About, out: &mut Pulled) {
    let o = reference(w, about);
    // the point moves with the centre of mass: only velocities relative to it count
    let drift = match about {
        About::Origin => Vec3::zeros(),
        About::CenterOfMass => linear_momentum(w) / w.model.mass(),
    };
    for (b, (body, pose)) in w.model.bodies.iter().zip(&w.poses).enumerate() {
        let (v, omega) = velocity(w, b);
        let local = pose.r.tr_mul(axis);
        let spin = body.inertia * omega;
        let linear = axis.cross(&(pose.x - o)) * body.mass;
        let shift = (v - drift).cross(axis) * body.mass;
        add(&mut out.velocity[6 * b..], linear.as_slice());
        add(
            &mut out.velocity[6 * b + 3..],
            (body.inertia * local).as_slice(),
        );
        add(&mut out.inputs.x[6 * b..], shift.as_slice());
        add(
            &mut out.inputs.x[6 * b + 3..],
            spin.cross(&local).as_slice(),
        );
    }
}

pub(super) fn pull_kinetic_energy(w: &Work, g: f64, out: &mut Pulled) {
    for (b, body) in w.model.bodies.iter().enumerate() {
        let (v, omega) = velocity(w, b);
        add(&mut out.velocity[6 * b..], (v * (body.mass * g)).as_slice());
        let spin = body.inertia * omega * g;
        add(&mut out.velocity[6 * b + 3..], spin.as_slice());
    }
}

/// The forces at the knot without the controls' are minus the gradient.
pub(super) fn pull_potential_energy(w: &Work, g: f64, out: &mut Pulled) {
    let m = &w.model;
    for (x, f) in out.inputs.x.iter_mut().zip(&w.force) {
        *x -= g * f;
    }
    for ((actuator, row), u) in m.actuators.iter().zip(&w.control_rows).zip(&w.control) {
        let (parent, child) = m.driven(actuator);
        add_wrench(&mut out.inputs.x, parent, child, row, g * u);
    }
}
