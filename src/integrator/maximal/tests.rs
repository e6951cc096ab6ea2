//! Random mechanisms of every kind of joint, with and without loops, and what tests of the step need.

use super::*;
use crate::dynamics::Step;
use crate::integrator::Mechanical;
use crate::mechanism::samples::{Source, four_bar, spatial_loop, tree};
use crate::mechanism::{About, JointKind, MechanismBuilder, Reaction};
use crate::spatial::{Pose, Vec3, exp};

pub(super) const H: f64 = 0.02;

/// Trees that together hold every kind of joint, and two loops.
pub(in crate::integrator) fn systems() -> Vec<(Maximal, Vec<f64>)> {
    let mut out = vec![];
    for seed in 0..8 {
        let mut kinds = vec![JointKind::ALL[2 * seed], JointKind::ALL[2 * seed + 1]];
        let mut s = Source::new(seed as u64);
        kinds.extend((0..3).map(|_| JointKind::ALL[s.below(16)]));
        let mechanism = tuned(tree(seed as u64, &kinds));
        let n = mechanism.tree_ids().len();
        out.push(system(mechanism, s.vector(n, 0.6), s.vector(n, 0.5)));
    }
    let mut m = tree(
        3,
        &[
            JointKind::Revolute,
            JointKind::Spherical,
            JointKind::Orbital,
        ],
    );
    m.springs["line"].implicit = true;
    let implicit = tuned(m);
    let n = implicit.tree_ids().len();
    out.push(system(
        implicit,
        vec![0.3; n],
        Source::new(3).vector(n, 0.5),
    ));
    let four = tuned(four_bar());
    out.push(system(four, vec![0.4, 0.4, -0.4], vec![1.0, 1.0, -1.0]));
    let spatial = tuned(spatial_loop());
    let n = spatial.tree_ids().len();
    out.push(system(spatial, vec![0.3; n], Source::new(9).vector(n, 0.5)));
    out.extend(super::elements_tests::systems());
    out
}

/// With every number a parameter that can be made smaller and larger.
pub(in crate::integrator) fn tuned(mut builder: MechanismBuilder) -> Mechanism {
    let built = builder.build().expect("valid");
    for (path, field) in built.fields() {
        if field.positive().is_none() || built.get(field) > 0.0 {
            builder = builder.parameter(&path, &[&path]);
        }
    }
    builder.build().expect("valid")
}

pub(super) fn system(mechanism: Mechanism, q: Vec<f64>, rates: Vec<f64>) -> (Maximal, Vec<f64>) {
    let maximal = Maximal::new(
        mechanism,
        &q,
        Options {
            tolerance: 1e-13,
            ..Options::default()
        },
    )
    .expect("closes");
    let outputs = all_outputs(&maximal);
    let maximal = maximal.with_outputs(outputs);
    let x = maximal
        .start(&q, &rates, &vec![false; q.len()])
        .expect("closes");
    (maximal, x)
}

/// The impulse of a gear, or of another constraint of one row, among the unknowns of a step.
pub(in crate::integrator) fn impulse_of(s: &Maximal, y: &[f64], constraint: usize) -> f64 {
    y[s.elements.offset(constraint)]
}

pub(in crate::integrator) fn all_outputs(s: &impl Mechanical) -> Vec<Quantity> {
    let mut out = vec![];
    for (joint, direction) in s.mechanism().coordinates() {
        out.push(Quantity::Coordinate { joint, direction });
        out.push(Quantity::Rate { joint, direction });
        out.push(Quantity::IntervalRate { joint, direction });
    }
    let (point, axis) = (Vec3::new(0.1, -0.3, 0.2), Vec3::new(0.6, 0.0, 0.8));
    for body in 0..s.mechanism().bodies.len() {
        out.push(Quantity::Position { body, point, axis });
        out.push(Quantity::Velocity { body, point, axis });
    }
    out.extend((0..s.mechanism().actuators.len()).map(Quantity::Control));
    let target = exp(&Vec3::new(0.3, -0.2, 0.5));
    for body in 0..s.mechanism().bodies.len() {
        out.push(Quantity::Orientation { body, target, axis });
        for in_body in [false, true] {
            out.push(Quantity::AngularVelocity {
                body,
                axis,
                in_body,
            });
        }
    }
    out.push(Quantity::CenterOfMass(axis));
    out.push(Quantity::CenterOfMassVelocity(axis));
    out.push(Quantity::LinearMomentum(axis));
    for about in [About::Origin, About::CenterOfMass] {
        out.push(Quantity::AngularMomentum { axis, about });
    }
    out.extend([
        Quantity::KineticEnergy,
        Quantity::PotentialEnergy,
        Quantity::Energy,
    ]);
    for joint in 0..s.mechanism().joints.len() {
        for kind in [Reaction::Force, Reaction::Torque] {
            out.push(Quantity::Constraint { joint, kind, axis });
        }
    }
    out
}

/// A knot, with state, control and the unknowns of the step before.
pub(in crate::integrator) type Situation = (Knot, Vec<f64>, Vec<f64>, Vec<f64>);

/// A state in motion: some steps after the start, with uneven intervals.
pub(super) fn moving(s: &Maximal, x: &[f64]) -> Situation {
    let d = s.dims();
    let (mut w, mut x) = (s.work(), x.to_vec());
    let (mut next, mut y) = (x.clone(), vec![0.0; d.ny]);
    let u = Source::new(1).vector(d.nu, 0.5);
    let mut at = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h: H,
    };
    for h in [H, 0.8 * H, 1.1 * H, H] {
        at.h = h;
        s.step(&at, &x, &u, &s.nominal, &mut w, &mut next, &mut y)
            .expect("solved");
        x.copy_from_slice(&next);
        at = Knot {
            k: at.k + 1,
            t: at.t + h,
            h_prev: h,
            h,
        };
    }
    (at, x, u, y)
}

/// The start, with a control, or a state in motion.
pub(in crate::integrator) fn situation(s: &Maximal, x: &[f64], start: bool) -> Situation {
    if !start {
        return moving(s, x);
    }
    let at = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h: H,
    };
    (
        at,
        x.to_vec(),
        vec![0.3; s.dims().nu],
        vec![0.0; s.dims().ny],
    )
}

/// The start, a state in motion, and steps backwards: from that state, and forwards again from where they lead.
pub(super) fn situations(s: &Maximal, x: &[f64]) -> [Situation; 4] {
    let (at, x1, u, y) = moving(s, x);
    let back = Knot { h: -0.7 * H, ..at };
    let (mut x2, mut y2) = (x1.clone(), y.clone());
    s.step(&back, &x1, &u, &s.nominal, &mut s.work(), &mut x2, &mut y2)
        .expect("solved");
    let again = Knot {
        k: at.k + 1,
        t: at.t - 0.7 * H,
        h_prev: -0.7 * H,
        h: 0.9 * H,
    };
    [
        situation(s, x, true),
        (at, x1.clone(), u.clone(), y.clone()),
        (back, x1, u.clone(), y),
        (again, x2, u, y2),
    ]
}

/// A state moved in the free chart.
pub(in crate::integrator) fn displaced(s: &Maximal, x: &[f64], d: &[f64]) -> Vec<f64> {
    let n = s.body_count();
    let mut poses = s.poses(x);
    let mut motion = s.interval_velocities(x, 0.0);
    for b in 0..n {
        let at = |k: usize| Vec3::from_column_slice(&d[k..k + 3]);
        poses[b] = Pose::new(poses[b].x + at(6 * b), poses[b].q * exp(&at(6 * b + 3)));
        motion[b].0 += at(6 * (n + b));
        motion[b].1 += at(6 * (n + b) + 3);
    }
    s.state(&poses, &motion, &x[13 * n..])
}

/// The free chart's difference of two states.
pub(in crate::integrator) fn difference(s: &Maximal, x: &[f64], to: &[f64]) -> Vec<f64> {
    let n = s.body_count();
    let mut d = vec![0.0; 12 * n];
    for (b, (p, q)) in s.poses(x).iter().zip(s.poses(to)).enumerate() {
        d[6 * b..6 * b + 3].copy_from_slice((q.x - p.x).as_slice());
        d[6 * b + 3..6 * b + 6]
            .copy_from_slice(crate::spatial::log(&(p.q.conjugate() * q.q)).as_slice());
        for i in 0..6 {
            d[6 * (n + b) + i] = to[13 * b + 7 + i] - x[13 * b + 7 + i];
        }
    }
    d
}

/// Fourth-order difference of a vector function of a number.
pub(in crate::integrator) fn derivative(e: f64, f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let (p, m, pp, mm) = (f(e), f(-e), f(2.0 * e), f(-2.0 * e));
    (0..p.len())
        .map(|i| (8.0 * (p[i] - m[i]) - (pp[i] - mm[i])) / (12.0 * e))
        .collect()
}

pub(in crate::integrator) fn assert_close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    let scale = b.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * scale,
            "{what} [{i}]: {a} {b} (scale {scale})"
        );
    }
}

/// Name of the parameter among all inputs.
pub(super) fn named(s: &Maximal, i: usize, controls: usize) -> &str {
    let p = i.checked_sub(controls);
    p.and_then(|p| s.mechanism.parameters.get(p))
        .map_or("", |p| &p.name)
}
