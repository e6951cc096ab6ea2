//! Rates over the interval just past: what a sampled controller sees. No force of the knot enters, hence no control.

use super::assembly::{add_wrench, dot, vec3};
use super::{Maximal, Work};
use crate::dynamics::Inputs;
use crate::mechanism::{Coupling, Freedom, Joint, Relative, Row, Vec6};
use crate::spatial::{Pose, increment, increment_jacobian};

impl Maximal {
    /// Pose at the knot before.
    pub(super) fn pose_before(w: &Work, b: usize) -> Pose {
        let (v, omega) = (vec3(&w.before, 6 * b), vec3(&w.before, 6 * b + 3));
        let back = increment(&omega, -w.at.h_prev, w.scalar_prev[b]);
        Pose::new(w.poses[b].x - v * w.at.h_prev, w.poses[b].q * back)
    }

    /// Adds the adjoints of a displacement of the body one knot back to those of its state and of the interval.
    pub(super) fn pull_back(w: &Work, b: usize, n: usize, zminus: &[f64], out: &mut Inputs) {
        let (h, s) = (w.at.h_prev, w.scalar_prev[b]);
        let (v, omega) = (vec3(&w.before, 6 * b), vec3(&w.before, 6 * b + 3));
        let (x, phi) = (vec3(zminus, 6 * b), vec3(zminus, 6 * b + 3));
        let back = increment(&omega, h, s);
        let turn = back.inverse_transform_vector(&phi);
        let spin = increment_jacobian(&omega, -h, s).tr_mul(&phi);
        for i in 0..3 {
            out.x[6 * b + i] += x[i];
            out.x[6 * b + 3 + i] += turn[i];
            out.x[n + 6 * b + i] -= h * x[i];
            out.x[n + 6 * b + 3 + i] += spin[i];
        }
        out.h_prev -= x.dot(&v) + phi.dot(&omega) / s;
    }

    /// The joint's ends and relative pose one knot back.
    pub(super) fn ends_before(j: &Joint, w: &Work) -> (Pose, Pose, Relative) {
        let a = j
            .parent
            .map_or(Pose::identity(), |p| Self::pose_before(w, p));
        let b = Self::pose_before(w, j.child);
        (a, b, j.relative(&a, &b))
    }

    /// Displacement over the interval before the knot, by its length; at the start the rate of the state's velocities.
    pub(super) fn interval_rate(&self, w: &Work, joint: usize, direction: usize) -> f64 {
        let j = &w.model.joints[joint];
        let Some(h) = w.at.before() else {
            let (a, b) = w.model.ends(j, &w.poses);
            let row = j.direction_row(direction, a, b, &w.relative[joint]);
            return dot(&w.before, j.parent, j.child, &row);
        };
        let (.., old) = Self::ends_before(j, w);
        j.displacement(direction, &old, &w.relative[joint]) / h
    }

    /// Its adjoints; `zminus` is scratch of six numbers a body.
    pub(super) fn pull_interval_rate(
        &self,
        w: &Work,
        (joint, direction): (usize, usize),
        g: f64,
        zminus: &mut [f64],
        out: &mut Inputs,
    ) {
        let (n, j) = (6 * self.body_count(), &w.model.joints[joint]);
        let (a, b) = w.model.ends(j, &w.poses);
        let rel = &w.relative[joint];
        let Some(h) = w.at.before() else {
            let row = j.direction_row(direction, a, b, rel);
            add_wrench(&mut out.x[n..], j.parent, j.child, &row, g);
            turn_direction(j, direction, g, (a, b, rel), &w.before, &mut out.x);
            return;
        };
        let (a0, b0, old) = Self::ends_before(j, w);
        let end = j.displacement_end_row(direction, &old, rel, a, b);
        let start: Row = j.displacement_start_row(direction, &old, rel, &a0, &b0);
        add_wrench(&mut out.x, j.parent, j.child, &end, g / h);
        let bodies = [Some(j.child), j.parent];
        for body in bodies.into_iter().flatten() {
            zminus[6 * body..6 * body + 6].fill(0.0);
        }
        add_wrench(zminus, j.parent, j.child, &start, g / h);
        for body in bodies.into_iter().flatten() {
            Self::pull_back(w, body, n, zminus, out);
        }
        out.h_prev -= g * j.displacement(direction, &old, rel) / (h * h);
    }
}

/// Adds to `x` the derivative of `g` times the rate along a direction by the configuration, at the velocities `motion`.
pub(super) fn turn_direction(
    j: &Joint,
    direction: usize,
    g: f64,
    (a, b, rel): (&Pose, &Pose, &Relative),
    motion: &[f64],
    x: &mut [f64],
) {
    let mut turn = Coupling::default();
    let unit = j.directions[direction].unit * g;
    if j.directions[direction].freedom == Freedom::Slide {
        j.add_force_derivative(&unit, a, b, rel, &mut turn);
    } else {
        Joint::add_torque_derivative(&unit, a, b, &mut turn);
    }
    let six = |b: usize| Vec6::from_column_slice(&motion[6 * b..6 * b + 6]);
    let vb = six(j.child);
    let (mut on_a, mut on_b) = (turn.ba.0.tr_mul(&vb), turn.bb.0.tr_mul(&vb));
    if let Some(p) = j.parent {
        let va = six(p);
        on_a += turn.aa.0.tr_mul(&va);
        on_b += turn.ab.0.tr_mul(&va);
        x[6 * p..6 * p + 6]
            .iter_mut()
            .zip(on_a.iter())
            .for_each(|(x, d)| *x += d);
    }
    let c = 6 * j.child;
    x[c..c + 6]
        .iter_mut()
        .zip(on_b.iter())
        .for_each(|(x, d)| *x += d);
}
