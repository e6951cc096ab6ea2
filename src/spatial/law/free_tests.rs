//! The law of free bodies against differences, a precise reference, and closed forms.

use super::super::RotationLaw;
use super::super::tests::{jacobian, slope};
use super::*;
use crate::spatial::rotation;

fn inertias() -> [Mat3; 4] {
    [
        Mat3::from_diagonal_element(0.7),
        Mat3::from_diagonal(&Vec3::new(1.0, 1.0, 1.7)),
        Mat3::from_diagonal(&Vec3::new(1.0, 2.0, 3.0)),
        Mat3::new(1.0, 0.1, 0.2, 0.1, 2.0, -0.1, 0.2, -0.1, 2.5),
    ]
}

fn law(inertia: &Mat3) -> FreeLaw {
    FreeLaw::new(inertia).expect("positive moments")
}

/// Turns up to 2.3 rad, to where series begin, and none.
fn each(mut see: impl FnMut(&FreeLaw, Mat3, Vec3, f64)) {
    let w = Vec3::new(0.35, -0.8, 0.5);
    for j in inertias() {
        for k in [1.7, 1.0, 0.3, 2e-3, 1e-3, 7e-4, 1e-6, 0.0] {
            for h in [1.0, -1.0, 1.3] {
                see(&law(&j), j, w * k, h);
            }
        }
    }
}

#[test]
fn derivatives_match_differences() {
    each(|f, j, w, h| {
        let turn = f.increment(&w, h);
        assert!((turn.norm() - 1.0).abs() < 1e-15);
        let away = |w: &Vec3, h: f64| log(&(turn.inverse() * f.increment(w, h)));
        let k = f.jacobian(&w, h);
        assert!((jacobian(&w, |w| away(w, h)) - k).amax() < 1e-10);
        assert!((slope(|d| away(&w, h + d)) - f.end_rate(&w, h)).amax() < 1e-10);
        let by_w = f.momentum_jacobian(&w, h);
        assert!((jacobian(&w, |w| f.momentum(w, h)) - by_w).amax() < 1e-10);
        let by_h = slope(|d| f.momentum(&w, h + d));
        assert!((by_h - f.momentum_rate(&w, h)).amax() < 1e-10);
        let back = f.velocity_of_momentum(&f.momentum(&w, h), h);
        assert!((back - w).amax() < 1e-14, "{j} {w} {h} {back}");
    });
}

#[test]
fn the_way_back_turns_back() {
    each(|f, _, w, h| {
        let (turn, back) = (f.increment(&w, h), f.increment(&w, -h));
        assert!((back.inverse().coords - turn.coords).amax() < 1e-15);
        let p = turn * f.momentum(&w, -h) - f.momentum(&w, h);
        assert!(p.amax() < 1e-14);
        let found = f.velocity(&turn, h, None);
        assert!((found - w).amax() < 1e-13, "{w} {h} {found}");
        // several turns of a step are told from where they are looked for
        let fast = w.try_normalize(1e-3).map(|n| n * 9.0);
        let Some(fast) = fast else { return };
        let near = fast * 1.01;
        let found = f.velocity(&f.increment(&fast, h), h, Some(&near));
        assert!((found - fast).amax() < 1e-12, "{fast} {h} {found}");
    });
}

#[test]
fn changes_by_the_end_match_differences() {
    each(|f, j, w, h| {
        let own = RotationLaw::Free(*f);
        let s = own.scalar(&w, h);
        let omega = own.chord_velocity(&w, h, s);
        let turn = own.increment(&w, h, s);
        let turned = |phi: &Vec3| exp(&(phi * h)) * turn;
        let by_end = |phi: &Vec3| own.velocity_by_end(&omega, h, s, phi);
        let ends = jacobian(&Vec3::zeros(), |phi| own.velocity(&turned(phi), h, None));
        let t = Vec3::new(-0.2, 0.9, 0.5);
        assert!((by_end(&t) - ends * t).amax() < 1e-10);
        let back = own.velocity_by_end_transposed(&omega, h, s, &t);
        assert!((back - ends.tr_mul(&t)).amax() < 1e-10);
        assert!((own.end_by_velocity(&omega, h, s, &by_end(&t)) - t).amax() < 1e-13);
        let again = own.end_by_velocity_transposed(&omega, h, s, &back);
        assert!((again - t).amax() < 1e-13);
        let momenta = jacobian(&Vec3::zeros(), |phi| {
            own.momentum(&own.velocity(&turned(phi), h, None), &j, h, s)
        });
        let by_turn = own.turn_jacobian(&omega, &j, h, s).expect("it has one");
        assert!((momenta - by_turn).amax() < 1e-10);
    });
}

/// Attitude and angular velocity after `time`, by Runge and Kutta's method of fourth order in small steps.
fn reference(j: &Mat3, w: Vec3, time: f64, steps: usize) -> (Quat, Vec3) {
    let inverse = j.try_inverse().expect("positive definite");
    let rate = |q: &Quaternion<f64>, w: &Vec3| {
        (
            *q * Quaternion::from_imag(*w) * 0.5,
            inverse * (j * w).cross(w),
        )
    };
    let (mut q, mut w, h) = (Quaternion::identity(), w, time / steps as f64);
    for _ in 0..steps {
        let (a, p) = rate(&q, &w);
        let (b, r) = rate(&(q + a * (0.5 * h)), &(w + p * (0.5 * h)));
        let (c, s) = rate(&(q + b * (0.5 * h)), &(w + r * (0.5 * h)));
        let (d, t) = rate(&(q + c * h), &(w + s * h));
        q += (a + (b + c) * 2.0 + d) * (h / 6.0);
        w += (p + (r + s) * 2.0 + t) * (h / 6.0);
    }
    (Quat::new_normalize(q), w)
}

/// Attitude and momentum after steps from the angular velocity `w`.
fn fly(f: &FreeLaw, j: &Mat3, w: Vec3, h: f64, steps: usize) -> (Quat, Vec3) {
    let (mut p, mut q) = (j * w, Quat::identity());
    for _ in 0..steps {
        let w = f.velocity_of_momentum(&p, h);
        q *= f.increment(&w, h);
        p = f.momentum(&w, -h);
    }
    (q, p)
}

fn angle(a: &Quat, b: &Quat) -> f64 {
    log(&(a.inverse() * b)).norm()
}

/// Two equal moments, one rad a step and more: exact; so are spins about principal axes.
#[test]
fn symmetric_bodies_and_principal_spins_are_exact() {
    let j = Mat3::from_diagonal(&Vec3::new(1.0, 1.0, 2.0));
    let w = Vec3::new(0.6, 0.0, 0.8);
    for h in [1.0, 4.0] {
        let steps = (2000.0 / h) as usize;
        let (q, p) = fly(&law(&j), &j, w, h, steps);
        let (time, whole) = (h * steps as f64, (j * w).norm());
        // it turns about its momentum by |J w|/J_1, and about its axis by the rest
        let about_p = (j * w) / whole * (whole * time);
        let about_z = Vec3::z() * (0.8 * (1.0 - 2.0) * time);
        let exact = exp(&about_p) * exp(&about_z);
        assert!(angle(&q, &exact) < 1e-12 * time, "{}", angle(&q, &exact));
        assert!((q * p - j * w).amax() < 1e-12);
    }
    let j = Mat3::from_diagonal(&Vec3::new(1.0, 2.0, 3.0));
    for axis in [Vec3::x(), Vec3::y(), Vec3::z()] {
        let (q, _) = fly(&law(&j), &j, axis * 5.0, 0.7, 1);
        assert!(angle(&q, &exp(&(axis * 3.5))) < 1e-14);
    }
}

/// J = (1, 2, 3) tumbling at 5 rad/s: order two, the momentum exact, no drift of the energy, and an error that the law itself
/// estimates.
#[test]
fn tumbling_is_of_second_order() {
    let j = Mat3::from_diagonal(&Vec3::new(1.0, 2.0, 3.0));
    let f = law(&j);
    for w in [
        Vec3::new(1.0, 5.0, 0.3),
        Vec3::new(1.3, 2.7, 4.0),
        Vec3::new(4.0, -1.0, 2.5),
    ] {
        let exact = reference(&j, w, 2.0, 20_000).0;
        let error = |h: f64, n: usize| angle(&fly(&f, &j, w, h, n).0, &exact);
        let (coarse, fine) = (error(0.1, 20), error(0.05, 40));
        println!("{coarse:e} {fine:e}");
        assert!(coarse < 6e-2);
        assert!((coarse / fine - 4.0).abs() < 0.25, "{}", coarse / fine);
        let estimate = f.chord_turn(&w, 0.1).powi(2) / 6.0 * w.norm() * 2.0;
        let share = coarse / estimate;
        assert!((0.1..2.0).contains(&share), "{share}");
    }
    let w = Vec3::new(1.0, 5.0, 0.3);
    let (mut p, mut q, h) = (j * w, Quat::identity(), 0.05);
    let energy = |p: &Vec3| 0.5 * p.component_div(&j.diagonal()).dot(p);
    let (start, mut most, mut last) = (energy(&p), 0.0_f64, 0.0_f64);
    for k in 0..400 {
        let w = f.velocity_of_momentum(&p, h);
        q *= f.increment(&w, h);
        p = f.momentum(&w, -h);
        let off = (energy(&p) / start - 1.0).abs();
        most = if k < 200 { most.max(off) } else { most };
        last = if k < 200 { last } else { last.max(off) };
    }
    assert!((q * p - j * w).amax() < 1e-12);
    assert!(most < 5e-3 && last < 1.05 * most, "{most:e} {last:e}");
}

#[test]
fn the_law_turns_with_its_body() {
    let r = rotation(&exp(&Vec3::new(0.4, 1.0, -0.3)));
    each(|f, _, w, h| {
        let p = r * f.momentum(&w, h);
        assert!((p - f.turned(&r).momentum(&(r * w), h)).amax() < 1e-14);
    });
    assert!(FreeLaw::new(&Mat3::from_diagonal(&Vec3::new(1.0, 0.0, 1.0))).is_none());
    assert!(FreeLaw::new(&Mat3::from_diagonal_element(f64::NAN)).is_none());
}
