//! Experiment 8a of paper 000: n hanging links, time per link and step.
//!
//! `cargo run --release --example chain -- [LINKS] [STEPS] [hinge | ball] [reverse] [h=0.01]`
//!
//! Under the weight of n links those at the pivot swing at about 3.5 sqrt(n g / l) rad/s; beyond some 300 links a step
//! of 0.01 s is too long for that, and `h=0.001` is needed.

use least_action::dynamics::Dynamics;
use least_action::integrator::{Maximal, Options};
use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder, Shape};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use std::time::Instant;

/// A chain of `n` cylinders of 1 m and 1 kg, in line.
fn chain(n: usize, kind: JointKind) -> MechanismBuilder {
    let mut m = MechanismBuilder::new();
    for i in 0..n {
        let link = BodySpec::new(1.0).shape(Shape::Cylinder {
            radius: 0.05,
            length: 1.0,
        });
        let (parent, anchor) = match i {
            0 => ("world".to_owned(), [0.0; 3]),
            _ => (format!("link{}", i - 1), [0.0, 0.0, -0.5]),
        };
        let joint = JointSpec::new(kind, &format!("link{i}"))
            .parent(&parent)
            .axis([0.0, 1.0, 0.0])
            .anchors(anchor, [0.0, 0.0, 0.5]);
        m = m
            .body(&format!("link{i}"), link)
            .joint(&format!("joint{i}"), joint);
    }
    m
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default| args.get(i).map_or(Ok(default), |a| a.parse::<usize>());
    let (n, steps) = (number(0, 100)?, number(1, 1000)?);
    let ball = args.iter().any(|a| a == "ball");
    let kind = if ball {
        JointKind::Spherical
    } else {
        JointKind::Revolute
    };
    let mechanism = chain(n, kind).build()?;
    let coordinates = mechanism.tree_ids().len();
    let mut q = vec![0.0; coordinates];
    // a ball joint's second coordinate turns about y
    q[usize::from(ball)] = std::f64::consts::FRAC_PI_4;
    let h = args
        .iter()
        .find_map(|a| a.strip_prefix("h="))
        .map_or(Ok(0.01), str::parse)?;
    let system = Maximal::new(mechanism, &q, Options::default())?;
    let x0 = system.initial(&q, &vec![0.0; coordinates], &vec![true; coordinates])?;
    let mut w = system.work();
    let mut t = Trajectory::new(&system, vec![h; steps], &x0);
    let mut stats = RolloutStats::default();
    let start = Instant::now();
    t.roll(&system, &mut w, &mut stats)?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{n} links, {steps} steps: {:.1} microseconds a step, {:.3} a link; {:.2} Newton iterations a step",
        1e6 * seconds / steps as f64,
        1e6 * seconds / (steps * n) as f64,
        stats.iterations as f64 / steps as f64
    );
    if args.iter().any(|a| a == "reverse") {
        let mut sweep = Sweep::new(&system, &t);
        let start = Instant::now();
        // the gradient of the last position of the tip
        sweep.run(&system, &t, &mut w, |k, _, _, out| {
            if k == steps {
                let tip = 6 * (n - 1);
                out.x[tip] = 1.0;
            }
            Ok(())
        })?;
        let back = start.elapsed().as_secs_f64();
        println!(
            "reverse sweep: {:.3} of the forward rollout",
            back / seconds
        );
    }
    Ok(())
}
