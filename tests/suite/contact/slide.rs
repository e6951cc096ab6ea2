//! Sticking, sliding and rolling, on level and tilted ground.

use super::*;
use crate::common::G;
use least_action::spatial::exp;

pub const HALF: f64 = 0.05;
pub const PLATE: Shape = Shape::Box([0.5, 0.5, 2.0 * HALF]);

/// A rotation that tilts the vertical by `angle` towards a heading, both rad.
pub fn tilt(angle: f64, heading: f64) -> Vec3 {
    angle * Vec3::new(-heading.sin(), heading.cos(), 0.0)
}

/// Coordinates of a body lying on the ground, its center at `height`, and the way down.
pub fn lying(turn: Vec3, height: f64) -> (Vec3, [f64; 6], Vec3) {
    let normal = exp(&turn) * Vec3::z();
    let x = height * normal;
    let down = -Vec3::z() + normal * normal.z;
    let q = [x.x, x.y, x.z, turn.x, turn.y, turn.z];
    (normal, q, down.try_normalize(1e-9).unwrap_or(Vec3::x()))
}

pub fn rates(v: Vec3) -> [f64; 6] {
    [v.x, v.y, v.z, 0.0, 0.0, 0.0]
}

#[test]
fn a_block_sticks_within_the_cone_of_friction() {
    let mut creep = 0.0_f64;
    for warm in [false, true] {
        for (mu, heading, h) in [
            (0.2, 0.0, 0.01),
            (0.5, 0.0, 0.01),
            (0.5, 0.7, 0.01),
            (0.5, 2.0, 0.001),
            (0.5, 2.0, 0.05),
            (1.0, 1.2, 0.01),
        ] {
            let angle = f64::atan(mu) - 0.1_f64.to_radians();
            let (normal, q, down) = lying(tilt(angle, heading), HALF);
            let mut s = Sim::new(
                &on_ground(PLATE, 1.0, mu, normal),
                &q,
                &[0.0; 6],
                h,
                options(Cone::SecondOrder, warm),
            );
            assert!(s.lowest().abs() < 1e-15, "{}", s.lowest());
            s.run(1.0);
            let [_, v, w] = s.body();
            // kappa/(mu g h cos) rho/(1 - rho^2)
            let rho = angle.tan() / mu;
            let law = 1e-9 / (mu * angle.cos()) * rho / (1.0 - rho * rho);
            creep = creep.max(v.norm());
            assert!(
                v.norm() < 1e-6 && w.norm() < 1e-6,
                "{mu} {heading}: {v} {w}"
            );
            let error = (v.dot(&down) / law - 1.0).abs();
            assert!(error < 0.02, "{mu} {heading} {h}: {error}");
        }
    }
    println!("creep {creep:.2e} m/s");
}

#[test]
fn a_block_slides_beyond_the_cone_of_friction() {
    for (margin, tolerance) in [(0.1_f64, 1e-3), (5.0, 1e-5)] {
        let mut worst = 0.0_f64;
        for (mu, heading, h) in [
            (0.0, 0.4, 0.01),
            (0.2, 0.0, 0.01),
            (0.5, 0.7, 0.01),
            (0.5, 2.0, 0.001),
        ] {
            let angle = f64::atan(mu) + margin.to_radians();
            let (normal, q, down) = lying(tilt(angle, heading), HALF);
            let mut s = Sim::new(
                &on_ground(PLATE, 1.0, mu, normal),
                &q,
                &[0.0; 6],
                h,
                Options::default(),
            );
            s.run(1.0);
            // the last interval's velocity is that of its middle
            let exact = G * (angle.sin() - mu * angle.cos()) * (1.0 - 0.5 * h);
            let v = s.body()[1];
            worst = worst.max((v.dot(&down) / exact - 1.0).abs());
            assert!((v - down * v.dot(&down)).norm() < 1e-8, "{v}");
        }
        println!("sliding, margin {margin} degrees: relative error {worst:.1e}");
        assert!(worst < tolerance, "{margin}: {worst}");
    }
}

#[test]
fn the_stopping_distance_is_the_same_in_every_heading() {
    let (v0, mu) = (2.0, 0.5);
    let exact = v0 * v0 / (2.0 * mu * G);
    let distances: Vec<f64> = (0..12)
        .map(|i| {
            let heading = (15.0 * f64::from(i)).to_radians();
            let way = Vec3::new(heading.cos(), heading.sin(), 0.0);
            let (normal, q, _) = lying(Vec3::zeros(), HALF);
            let plate = on_ground(PLATE, 1.0, mu, normal);
            let mut s = Sim::new(
                &plate,
                &q,
                &rates(v0 * way),
                0.01,
                options(Cone::SecondOrder, i % 2 == 0),
            );
            s.run(0.6);
            let [x, v, w] = s.body();
            assert!(v.norm() < 1e-9 && w.norm() < 1e-9, "{v} {w}");
            let aside = (x - Vec3::z() * x.z - way * x.dot(&way)).norm();
            assert!(aside < 1e-9, "{aside}");
            x.dot(&way)
        })
        .collect();
    let worst = distances.iter().map(|d| (d / exact - 1.0).abs());
    let worst = worst.fold(0.0, f64::max);
    println!("stopping distance: relative error {worst:.1e}");
    assert!(worst < 1e-3, "{distances:?}");
    let spread = distances.iter().map(|d| (d - distances[0]).abs());
    assert!(spread.fold(0.0, f64::max) < 1e-8, "{distances:?}");
}

#[test]
fn a_sliding_sphere_rolls_at_five_sevenths() {
    let (v0, mu, radius, h) = (3.5, 0.3, 0.25, 0.001);
    let rolls_at = 2.0 * v0 / (7.0 * mu * G);
    for heading in [0.0, 0.5, 2.0_f64] {
        let way = Vec3::new(heading.cos(), heading.sin(), 0.0);
        let b = on_ground(Shape::Sphere(radius), 1.0, mu, Vec3::z());
        let mut s = Sim::new(
            &b,
            &[0.0, 0.0, radius, 0.0, 0.0, 0.0],
            &rates(v0 * way),
            h,
            Options::default(),
        );
        let mut slid = 0.0;
        for k in 0..600 {
            s.step();
            // friction holds it back by all it can
            if s.y[s.system.symbolic().dim() + 2] > 1e-3 {
                slid = f64::from(k + 1) * h;
            }
        }
        let [_, v, w] = s.body();
        assert!((slid - rolls_at).abs() <= 2.0 * h, "{slid} {rolls_at}");
        let error = (v.dot(&way) / (5.0 / 7.0 * v0) - 1.0).abs();
        println!("rolls from {slid:.4} s ({rolls_at:.4}), relative error {error:.1e}");
        assert!(error < 1e-5, "{error}");
        assert!((w.norm() * radius / v.norm() - 1.0).abs() < 1e-5);
        assert!((v - way * v.dot(&way)).norm() < 1e-9);
    }
}

#[test]
fn a_sphere_rolls_down_a_tilted_plane() {
    let (angle, radius, h) = (0.2, 0.25, 0.001);
    let (normal, q, down) = lying(tilt(angle, 0.9), radius);
    let b = on_ground(Shape::Sphere(radius), 2.0, 0.5, normal);
    let mut s = Sim::new(&b, &q, &[0.0; 6], h, Options::default());
    s.run(1.0);
    let exact = 5.0 / 7.0 * G * f64::sin(angle) * (1.0 - 0.5 * h);
    let error = (s.body()[1].dot(&down) / exact - 1.0).abs();
    println!("rolling down: relative error {error:.1e}");
    assert!(error < 1e-4, "{error}");
}
