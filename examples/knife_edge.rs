//! A knife edge on an inclined plane spins freely and does not slide down.
//!
//! `cargo run --release --example knife_edge`
//!
//! Started at rest with the spin w it follows, with x down the slope of angle a (Neimark and Fufaev, *Dynamics of
//! Nonholonomic Systems*, 1972; Bloch, *Nonholonomic Mechanics and Control*, section 1.6):
//!
//! ```text
//! x = g sin(a) / (2 w^2) sin^2(w t),   y = g sin(a) / (2 w^2) (w t - sin(2 w t) / 2)
//! ```
//!
//! a cycloid that wanders across the slope and comes back to the height at which it started.

#[path = "common/knife_edge.rs"]
mod knife_edge;

use least_action::dynamics::Step;
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder};
use least_action::rollout::{RolloutStats, Trajectory, balance};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (slope, spin, h) = (0.3_f64, 2.0, 0.01);
    let (down, normal) = (9.81 * slope.sin(), 9.81 * slope.cos());
    let mechanism = MechanismBuilder::new()
        .gravity([down, 0.0, -normal])
        .body("skate", BodySpec::new(2.0).inertia([0.1, 0.1, 0.1]))
        .joint(
            "plane",
            JointSpec::new(JointKind::PlanarAxis, "skate").axis([0.0, 0.0, 1.0]),
        )
        .velocity_constraint("edge", &["skate"], Arc::new(knife_edge::KnifeEdge))
        .build()?;
    let system = Maximal::new(mechanism, &[0.0; 3], Options::default())?;
    let x0 = system.start(&[0.0; 3], &[0.0, 0.0, spin], &[true; 3])?;
    let steps = 3000;
    let mut t = Trajectory::new(&system, vec![h; steps], &x0);
    let mut w = system.work();
    t.roll(&system, &mut w, &mut RolloutStats::default())?;

    let size = down / (2.0 * spin * spin);
    println!("   t [s]     x [m]   exact      y [m]   exact");
    for k in (0..=steps).step_by(300) {
        let (x, turn) = (t.state(k), spin * h * k as f64);
        let exact = [
            size * turn.sin().powi(2),
            size * (turn - 0.5 * (2.0 * turn).sin()),
        ];
        println!(
            "{:8.2} {:9.5} {:9.5} {:9.5} {:9.5}",
            h * k as f64,
            x[0],
            exact[0],
            x[1],
            exact[1]
        );
    }
    let energy = balance(&system, &t, &mut w)?;
    println!(
        "largest error of the energy in {:.0} s: {:.1e} J",
        h * steps as f64,
        energy.largest_error()
    );
    Ok(())
}
