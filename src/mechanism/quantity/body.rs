//! Quantities of one body.

use super::{Adjoint, KnotData, add};
use crate::spatial::{Quat, Vec3, left_log_jacobian, log};

/// World velocity of a point along an axis.
pub(super) fn velocity(k: &KnotData, body: usize, point: &Vec3, axis: &Vec3) -> f64 {
    let (v, omega) = k.motion(body);
    axis.dot(&(v + k.poses[body].r * omega.cross(point)))
}

pub(super) fn orientation(k: &KnotData, body: usize, target: &Quat, axis: &Vec3) -> f64 {
    axis.dot(&log(&(target.conjugate() * k.poses[body].q)))
}

pub(super) fn angular_velocity(k: &KnotData, body: usize, axis: &Vec3, in_body: bool) -> f64 {
    let (_, omega) = k.motion(body);
    if in_body {
        axis.dot(&omega)
    } else {
        axis.dot(&(k.poses[body].r * omega))
    }
}

pub(super) fn pull_position(
    k: &KnotData,
    body: usize,
    point: &Vec3,
    force: &Vec3,
    out: &mut Adjoint,
) {
    let turn = point.cross(&k.poses[body].r.tr_mul(force));
    add(&mut out.poses[6 * body..], force.as_slice());
    add(&mut out.poses[6 * body + 3..], turn.as_slice());
}

pub(super) fn pull_velocity(
    k: &KnotData,
    body: usize,
    point: &Vec3,
    axis: &Vec3,
    out: &mut Adjoint,
) {
    let local = k.poses[body].r.tr_mul(axis);
    let (_, omega) = k.motion(body);
    let spin = point.cross(&local);
    let turn = omega.cross(point).cross(&local);
    add(&mut out.velocities[6 * body..], axis.as_slice());
    add(&mut out.velocities[6 * body + 3..], spin.as_slice());
    add(&mut out.poses[6 * body + 3..], turn.as_slice());
}

pub(super) fn pull_orientation(
    k: &KnotData,
    body: usize,
    target: &Quat,
    axis: &Vec3,
    out: &mut Adjoint,
) {
    // d rho = Jr^-1(rho) dphi
    let rho = log(&(target.conjugate() * k.poses[body].q));
    let turn = left_log_jacobian(&rho) * axis;
    add(&mut out.poses[6 * body + 3..], turn.as_slice());
}

pub(super) fn pull_angular_velocity(
    k: &KnotData,
    body: usize,
    axis: &Vec3,
    in_body: bool,
    out: &mut Adjoint,
) {
    if in_body {
        add(&mut out.velocities[6 * body + 3..], axis.as_slice());
        return;
    }
    let local = k.poses[body].r.tr_mul(axis);
    let turn = k.motion(body).1.cross(&local);
    add(&mut out.velocities[6 * body + 3..], local.as_slice());
    add(&mut out.poses[6 * body + 3..], turn.as_slice());
}
