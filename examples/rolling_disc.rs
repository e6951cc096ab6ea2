//! A thin disc rolls without slipping along a circle, leaning inwards.
//!
//! `cargo run --release --example rolling_disc`
//!
//! With the axis of the disc at the angle b from the vertical, the precession W, and A, C the moments of inertia about
//! a diameter and the axis, the disc rolls steadily if its spin n about the axis obeys (Routh, *Advanced Rigid
//! Dynamics*, art. 244; Neimark and Fufaev, *Dynamics of Nonholonomic Systems*)
//!
//! ```text
//! (C + m r^2) n W sin(b) - A W^2 sin(b) cos(b) + m g r cos(b) = 0
//! ```

#[path = "common/disc.rs"]
mod disc;

use least_action::dynamics::Step;
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{
    BodySpec, MechanismBuilder, check_constraint, check_velocity_constraint, random_poses,
};
use least_action::rollout::{RolloutStats, Trajectory, balance};
use least_action::spatial::Vec3;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mass, radius, g) = (1.5, 0.25, 9.81);
    let (along, about) = (0.25 * mass * radius * radius, 0.5 * mass * radius * radius);
    let disc = disc::Disc { radius };
    for seed in 0..10 {
        let poses = random_poses(1, seed);
        check_constraint(&disc, &poses)?;
        check_velocity_constraint(&disc::NoSlip(disc), &poses)?;
    }
    let mechanism = MechanismBuilder::new()
        .gravity([0.0, 0.0, -g])
        .body(
            "disc",
            BodySpec::new(mass).inertia([along, along, about]).free(),
        )
        .constraint("touch", &["disc"], Arc::new(disc))
        .velocity_constraint("roll", &["disc"], Arc::new(disc::NoSlip(disc)))
        .build()?;

    let (tilt, precession) = (1.2_f64, 2.0);
    let (sin, cos) = tilt.sin_cos();
    let spin = (along * precession * precession * sin * cos - mass * g * radius * cos)
        / ((about + mass * radius * radius) * precession * sin);
    // the axis leans towards x: turned about y by the tilt; up in the disc's plane is then (-cos, 0, sin)
    let up = Vec3::new(-cos, 0.0, sin);
    let axis = Vec3::new(sin, 0.0, cos);
    let omega = axis * spin + up * (precession * sin);
    let v = (omega * radius).cross(&up);
    let q = [0.0, 0.0, radius * sin, 0.0, tilt, 0.0];
    let rates = [v.x, v.y, v.z, omega.x, omega.y, omega.z];
    let system = Maximal::new(mechanism, &q, Options::default())?;
    let x0 = system.start(&q, &rates, &[true; 6])?;
    let (h, steps) = (0.001, 6000);
    let mut t = Trajectory::new(&system, vec![h; steps], &x0);
    let mut w = system.work();
    t.roll(&system, &mut w, &mut RolloutStats::default())?;

    println!(
        "{} degrees of freedom; steady rolling: spin {spin:.4} rad/s, precession {precession} rad/s",
        system.mobility().degrees_of_freedom
    );
    println!("   t [s]   tilt [rad]   heading [rad]   exact [rad]");
    let (mut turned, mut last) = (0.0, 0.0);
    for k in 0..=steps {
        let d = system.poses(t.state(k))[0].r * Vec3::z();
        let heading = d.y.atan2(d.x);
        let tau = std::f64::consts::TAU;
        turned += heading - last - tau * ((heading - last) / tau).round();
        last = heading;
        if k % 600 == 0 {
            let now = h * k as f64;
            println!(
                "{now:8.2} {:12.6} {turned:15.6} {:13.6}",
                d.z.acos(),
                precession * now
            );
        }
    }
    let energy = balance(&system, &t, &mut w)?;
    let slip = (0..=steps).map(|k| {
        let (pose, (v, w)) = (system.poses(t.state(k))[0], energy.velocities[k][0]);
        let d = pose.r * Vec3::z();
        let up = (Vec3::z() - d * d.z).normalize();
        (v - (pose.r * w).cross(&up) * radius).norm()
    });
    println!(
        "largest error of the energy {:.1e} J of {:.2} J, largest slip at a knot {:.1e} m/s",
        energy.largest_error(),
        energy.energy(0),
        slip.fold(0.0, f64::max)
    );
    Ok(())
}
