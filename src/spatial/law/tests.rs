//! The laws against differences, their Lagrangians, and the motion.

use super::super::{exp, rotation};
use super::chord::momentum;
use super::exact::remainder;
use super::*;

fn diff(a: &Mat3, b: &Mat3) -> f64 {
    (a - b).amax()
}

/// Differences of sixth order of a vector function.
pub(super) fn jacobian(x: &Vec3, f: impl Fn(&Vec3) -> Vec3) -> Mat3 {
    Mat3::from_columns(&[0, 1, 2].map(|i| {
        let mut d = Vec3::zeros();
        d[i] = 1.0;
        slope(|t| f(&(x + d * t)))
    }))
}

/// Derivative at 0, to `1e-12` of what is of order one.
pub(super) fn slope(f: impl Fn(f64) -> Vec3) -> Vec3 {
    let t = 4e-3;
    let pair = |k: f64| (f(k * t) - f(-k * t)) / (2.0 * k * t);
    pair(1.0) * 1.5 - pair(2.0) * 0.6 + pair(3.0) * 0.1
}

fn inertias() -> [Mat3; 3] {
    [
        Mat3::from_diagonal_element(0.7),
        Mat3::from_diagonal(&Vec3::new(1.0, 1.0, 1.7)),
        Mat3::new(1.0, 0.1, 0.2, 0.1, 2.0, -0.1, 0.2, -0.1, 2.5),
    ]
}

fn laws() -> [RotationLaw; 4] {
    let tilted = Vec3::new(0.3, -0.5, 0.8).normalize();
    [
        RotationLaw::Chord,
        RotationLaw::Ball,
        RotationLaw::Spin(Vec3::z()),
        RotationLaw::Spin(tilted),
    ]
}

/// From half a turn to where series begin, to where they end, and to no turn at all.
fn turns() -> Vec<Vec3> {
    let w = Vec3::new(0.35, -0.8, 0.5);
    let mut out: Vec<Vec3> = [1.0, 0.3, 2e-3, 1e-3, 7e-4, 1e-6, 0.0]
        .map(|k| w * k)
        .to_vec();
    out.push(Vec3::new(0.0, 0.0, 0.9));
    out.push(Vec3::new(1e-9, 0.0, -0.9));
    out
}

fn each(mut see: impl FnMut(RotationLaw, Mat3, Vec3, f64)) {
    for law in laws() {
        for j in inertias() {
            for r in turns() {
                for h in [1.0, -1.0, 1.3] {
                    see(law, j, r, h);
                }
            }
        }
    }
    for r in [Vec3::new(0.3, 0.2, 2.8), Vec3::new(1.0, 1.0, 1.0)] {
        for law in &laws()[1..] {
            see(*law, inertias()[1], r, 1.0);
        }
    }
}

#[test]
fn kinematics_match_differences() {
    each(|law, _, w, h| {
        let s = law.scalar(&w, h);
        let dq = law.increment(&w, h, s);
        assert!((dq.norm() - 1.0).abs() < 1e-15);
        assert!((law.velocity(&dq, h, None) - w).amax() < 1e-15);
        let omega = law.chord_velocity(&w, h, s);
        assert!((law.from_chord(&omega, h, s) - w).amax() < 1e-15);
        assert!((increment(&omega, h, s).coords - dq.coords).amax() < 1e-15);
        let there = |w: &Vec3, h: f64| law.increment(w, h, law.scalar(w, h));
        let k = jacobian(&w, |w| log(&(dq.inverse() * there(w, h))));
        let own = law.jacobian(&w, h, s);
        assert!(diff(&k, &own) < 1e-11, "{law:?} {w} {h}");
        let t = Vec3::new(-0.2, 0.9, 0.5);
        assert!((own.tr_mul(&t) - law.jacobian_transposed(&w, h, s, &t)).amax() < 1e-15);
        let by_h = slope(|d| log(&(dq.inverse() * there(&w, h + d))));
        assert!((by_h - law.end_by_interval(&w, h, s, 1.0)).amax() < 1e-11);
        let by_end = |phi: &Vec3| law.velocity_by_end(&omega, h, s, phi);
        let ends = jacobian(&Vec3::zeros(), |phi| {
            law.velocity(&(exp(&(phi * h)) * dq), h, None)
        });
        assert!((by_end(&t) - ends * t).amax() < 1e-11, "{law:?} {w} {h}");
        let back = law.velocity_by_end_transposed(&omega, h, s, &t);
        assert!((back.dot(&w) - t.dot(&by_end(&w))).abs() < 1e-15);
        let again = |dw: &Vec3| law.end_by_velocity(&omega, h, s, dw);
        assert!((again(&by_end(&t)) - t).amax() < 1e-14, "{law:?} {w} {h}");
        assert!((law.end_by_velocity_transposed(&omega, h, s, &back) - t).amax() < 1e-14);
    });
}

#[test]
fn momenta_match_differences() {
    each(|law, j, w, h| {
        let p = |w: &Vec3, h: f64| law.momentum(w, &j, h, law.scalar(w, h));
        let s = law.scalar(&w, h);
        let omega = law.chord_velocity(&w, h, s);
        assert!((p(&w, h) - law.momentum_of_turn(&omega, &j, h, s)).amax() < 1e-15);
        let by_w = law.momentum_jacobian(&w, &j, h, s);
        let found = jacobian(&w, |w| p(w, h));
        assert!(
            diff(&found, &by_w) < 1e-11,
            "{law:?} {w} {h} {found} {by_w}"
        );
        let t = Vec3::new(-0.2, 0.9, 0.5);
        let back = law.momentum_jacobian_transposed(&w, &j, h, s, &t);
        assert!((by_w.tr_mul(&t) - back).amax() < 1e-14);
        let by_h = slope(|d| p(&w, h + d));
        assert!(
            (by_h - law.momentum_rate(&w, &j, h, s)).amax() < 1e-11,
            "{law:?} {w} {h}"
        );
        let dq = law.increment(&w, h, s);
        let of_end = jacobian(&Vec3::zeros(), |phi| {
            let q = exp(phi) * dq;
            law.momentum_of_turn(&(q.imag() * (2.0 / h)), &j, h, q.w)
        });
        if let Some(own) = law.turn_jacobian(&omega, &j, h, s) {
            assert!(diff(&(of_end * h), &own) < 1e-11, "{law:?} {w} {h}");
        }
    });
}

/// The momentum is the derivative of the Lagrangian in the module's comment.
#[test]
fn momenta_are_those_of_the_lagrangian() {
    each(|law, j, w, h| {
        let (c, rest) = remainder(&law, &j);
        let action = |q: &Quat| {
            let e = q.imag();
            let exact = match law {
                RotationLaw::Chord => 0.0,
                RotationLaw::Ball => 0.5 * c * log(q).norm_squared() / h,
                RotationLaw::Spin(n) => 2.0 * c * n.dot(&e).atan2(q.w).powi(2) / h,
                RotationLaw::Free(_) => unreachable!("not among these laws"),
            };
            exact + 2.0 / h * e.dot(&(rest * e))
        };
        let s = law.scalar(&w, h);
        let dq = law.increment(&w, h, s);
        // by a turn of the start, of the other sign
        let p = Vec3::from_fn(|i, _| {
            let mut phi = Vec3::zeros();
            phi[i] = 1.0;
            slope(|d| Vec3::x() * action(&(exp(&(phi * d)) * dq))).x
        });
        assert!(
            (p - law.momentum(&w, &j, h, s)).amax() < 1e-11,
            "{law:?} {w} {h}"
        );
    });
}

/// At no interval at all, as at a start, they are those of the continuous motion.
#[test]
fn momenta_of_an_instant_are_those_of_the_motion() {
    for law in laws() {
        for j in inertias() {
            let w = Vec3::new(3.0, -2.0, 40.0);
            let s = law.scalar(&w, 0.0);
            assert!((law.momentum(&w, &j, 0.0, s) - j * w).amax() < 1e-13);
            assert!(diff(&law.momentum_jacobian(&w, &j, 0.0, s), &j) < 1e-15);
            let rate = w.cross(&(j * w)) * 0.5;
            assert!((law.momentum_rate(&w, &j, 0.0, s) - rate).amax() < 1e-12);
            let turn = law.turn_jacobian(&w, &j, 0.0, s).unwrap_or(j);
            assert!(diff(&turn, &j) < 1e-15);
        }
    }
}

/// A spin about the axis of the law, and any of a ball, has the momentum of the motion; a chord's is off by a sixth of the
/// turn's square.
#[test]
fn spins_are_exact() {
    let (h, ball, top) = (0.01, inertias()[0], inertias()[1]);
    for turn in [0.1, 1.0, 1.8, 2.9] {
        let w = Vec3::new(0.3, -0.5, 0.8).normalize() * (turn / h);
        let p = |law: RotationLaw, w: &Vec3, j: &Mat3| law.momentum(w, j, h, law.scalar(w, h));
        let exact = |p: Vec3, q: Vec3| (p - q).norm() < 1e-14 * q.norm();
        assert!(exact(p(RotationLaw::Ball, &w, &ball), ball * w));
        let w = Vec3::z() * (turn / h);
        assert!(exact(p(RotationLaw::Spin(Vec3::z()), &w, &top), top * w));
    }
    let w = Vec3::z() * 10.0;
    let s = RotationLaw::Chord.scalar(&w, h);
    let turned = log(&increment(&w, h, s)).norm() / h;
    let real = momentum(&w, &top, h, s).norm() / top.m33;
    let error = (turned / real - 1.0) * 6.0 / (h * 10.0_f64).powi(2);
    assert!((error - 1.0).abs() < 0.02, "{error}");
}

#[test]
fn laws_turn_with_their_body() {
    let r = rotation(&exp(&Vec3::new(0.4, 1.0, -0.3)));
    each(|law, j, w, h| {
        let s = law.scalar(&w, h);
        let p = r * law.momentum(&w, &j, h, s);
        let turned = law
            .turned(&r)
            .momentum(&(r * w), &(r * j * r.transpose()), h, s);
        assert!((p - turned).amax() < 1e-14);
    });
}

/// physics: a torque-free body keeps its spatial momentum; the sign of the old momentum's gyroscopic term decides.
#[test]
fn torque_free_momentum_is_kept() {
    for law in laws() {
        torque_free(law);
    }
}

fn torque_free(law: RotationLaw) {
    let j = Mat3::from_diagonal(&Vec3::new(1.0, 2.0, 3.0));
    let (mut w, mut q, h) = (Vec3::new(1.0, 5.0, 0.3), Quat::identity(), 0.01);
    let spatial = |w: &Vec3, q: &Quat| q * law.momentum(w, &j, h, law.scalar(w, h));
    let start = spatial(&w, &q);
    for _ in 0..1000 {
        let s = law.scalar(&w, h);
        q *= law.increment(&w, h, s);
        let old = law.momentum(&w, &j, -h, s);
        for _ in 0..20 {
            let s = law.scalar(&w, h);
            let r = law.momentum(&w, &j, h, s) - old;
            let d = law
                .momentum_jacobian(&w, &j, h, s)
                .try_inverse()
                .expect("within the domain");
            w -= d * r;
        }
    }
    assert!((spatial(&w, &q) - start).norm() < 5e-13);
}

/// Where a step is looked for, the momentum grows with the turn: no second turn has the same.
#[test]
fn momenta_grow_within_the_domain() {
    let j = Mat3::from_diagonal(&Vec3::new(1.0, 1.0, 1.7));
    for law in [RotationLaw::Chord, RotationLaw::Spin(Vec3::z())] {
        for axis in [Vec3::x(), Vec3::z()] {
            let p = |t: f64| {
                let w = axis * t;
                law.momentum(&w, &j, 1.0, law.scalar(&w, 1.0)).dot(&axis)
            };
            let inside = (1..300).map(|i| 0.01 * f64::from(i));
            let inside: Vec<f64> = inside.filter(|t| law.contains(&(axis * *t), 1.0)).collect();
            assert!(inside.len() > 130);
            for t in inside {
                assert!(p(t) > p(t - 0.01), "{law:?} about {axis:?} at {t}");
            }
        }
    }
}
