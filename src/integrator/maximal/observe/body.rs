//! Quantities of one body.

use super::super::Work;
use super::super::assembly::vec3;
use super::{Pulled, add};
use crate::spatial::{Quat, Vec3, left_log_jacobian, log};

/// World velocity of a point along an axis.
pub(super) fn velocity(w: &Work, body: usize, point: &Vec3, axis: &Vec3) -> f64 {
    let (v, omega) = (vec3(&w.trial, 6 * body), vec3(&w.trial, 6 * body + 3));
    axis.dot(&(v + w.poses[body].r * omega.cross(point)))
}

pub(super) fn orientation(w: &Work, body: usize, target: &Quat, axis: &Vec3) -> f64 {
    axis.dot(&log(&(target.conjugate() * w.poses[body].q)))
}

pub(super) fn angular_velocity(w: &Work, body: usize, axis: &Vec3, in_body: bool) -> f64 {
    let omega = vec3(&w.trial, 6 * body + 3);
    if in_body {
        axis.dot(&omega)
    } else {
        axis.dot(&(w.poses[body].r * omega))
    }
}

pub(super) fn pull_position(w: &Work, body: usize, point: &Vec3, force: &Vec3, out: &mut Pulled) {
    let turn = point.cross(&w.poses[body].r.tr_mul(force));
    add(&mut out.inputs.x[6 * body..], force.as_slice());
    add(&mut out.inputs.x[6 * body + 3..], turn.as_slice());
}

pub(super) fn pull_velocity(w: &Work, body: usize, point: &Vec3, axis: &Vec3, out: &mut Pulled) {
    let local = w.poses[body].r.tr_mul(axis);
    let omega = vec3(&w.trial, 6 * body + 3);
    let spin = point.cross(&local);
    let turn = omega.cross(point).cross(&local);
    add(&mut out.velocity[6 * body..], axis.as_slice());
    add(&mut out.velocity[6 * body + 3..], spin.as_slice());
    add(&mut out.inputs.x[6 * body + 3..], turn.as_slice());
}

pub(super) fn pull_orientation(
    w: &Work,
    body: usize,
    target: &Quat,
    axis: &Vec3,
    out: &mut Pulled,
) {
    // d rho = Jr^-1(rho) dphi
    let rho = log(&(target.conjugate() * w.poses[body].q));
    let turn = left_log_jacobian(&rho) * axis;
    add(&mut out.inputs.x[6 * body + 3..], turn.as_slice());
}

pub(super) fn pull_angular_velocity(
    w: &Work,
    body: usize,
    axis: &Vec3,
    in_body: bool,
    out: &mut Pulled,
) {
    if in_body {
        add(&mut out.velocity[6 * body + 3..], axis.as_slice());
        return;
    }
    let local = w.poses[body].r.tr_mul(axis);
    let turn = vec3(&w.trial, 6 * body + 3).cross(&local);
    add(&mut out.velocity[6 * body + 3..], local.as_slice());
    add(&mut out.inputs.x[6 * body + 3..], turn.as_slice());
}
