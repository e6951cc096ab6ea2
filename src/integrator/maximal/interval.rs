//! The knot before: its poses from a state, and their adjoints.

use super::assembly::vec3;
use super::{Maximal, Work};
use crate::dynamics::Inputs;
use crate::spatial::Pose;

impl Maximal {
    /// Pose at the knot before.
    pub(super) fn pose_before(w: &Work, b: usize) -> Pose {
        let (v, omega) = (vec3(&w.knot.before, 6 * b), vec3(&w.knot.before, 6 * b + 3));
        let law = &w.model.bodies[b].rotation;
        let back = law.increment(&omega, -w.knot.at.h_prev, w.knot.scalar[b]);
        Pose::new(
            w.knot.poses[b].x - v * w.knot.at.h_prev,
            w.knot.poses[b].q * back,
        )
    }

    /// Adds the adjoints of a displacement of the body one knot back to those of its state and of the interval.
    pub(super) fn pull_back(w: &Work, b: usize, n: usize, zminus: &[f64], out: &mut Inputs) {
        let (h, s) = (w.knot.at.h_prev, w.knot.scalar[b]);
        let (v, omega) = (vec3(&w.knot.before, 6 * b), vec3(&w.knot.before, 6 * b + 3));
        let (x, phi) = (vec3(zminus, 6 * b), vec3(zminus, 6 * b + 3));
        let law = &w.model.bodies[b].rotation;
        let back = law.increment(&omega, h, s);
        let turn = back.inverse_transform_vector(&phi);
        let spin = law.jacobian(&omega, -h, s).tr_mul(&phi);
        for i in 0..3 {
            out.x[6 * b + i] += x[i];
            out.x[6 * b + 3 + i] += turn[i];
            out.x[n + 6 * b + i] -= h * x[i];
            out.x[n + 6 * b + 3 + i] += spin[i];
        }
        out.h_prev -= x.dot(&v) + law.end_by_interval_transposed(&omega, -h, s, &phi);
    }
}
