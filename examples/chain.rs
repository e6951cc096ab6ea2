//! Experiment 8a of paper 000: n hanging links, time per link and step.
//!
//! `cargo run --release --example chain -- [LINKS] [STEPS] [hinge | ball] [maximal | minimal | screw] [reverse [kept]] [h=0.01]`
//!
//! Under the weight of n links those at the pivot swing at about 3.5 sqrt(n g / l) rad/s; beyond some 300 links a step
//! of 0.01 s is too long for that, and `h=0.001` is needed.

#[path = "common/chain.rs"]
mod chain;

use least_action::dynamics::Step;
use least_action::mechanism::JointKind;
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (mut numbers, mut kind, mut integrator, mut h) =
        (vec![], JointKind::Revolute, "maximal", 0.01);
    let (mut reverse, mut kept) = (false, false);
    for arg in &args {
        match arg.as_str() {
            "hinge" => kind = JointKind::Revolute,
            "ball" => kind = JointKind::Spherical,
            "maximal" | "minimal" | "screw" => integrator = arg,
            "reverse" => reverse = true,
            "kept" => kept = true,
            word => match (word.strip_prefix("h="), word.parse::<usize>()) {
                (Some(step), _) => h = step.parse()?,
                (_, Ok(n)) if numbers.len() < 2 => numbers.push(n),
                _ => {
                    let words =
                        "LINKS, STEPS, hinge, ball, maximal, minimal, screw, reverse, kept, h=0.01";
                    return Err(format!("unknown word `{word}`; expected {words}").into());
                }
            },
        }
    }
    if kept && !reverse {
        return Err("`kept` is of reverse sweeps; add `reverse`".into());
    }
    let n = numbers.first().copied().unwrap_or(100);
    let steps = numbers.get(1).copied().unwrap_or(1000);
    let (system, x0) = chain::hanging(n, kind, false, integrator)?;
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
    if reverse {
        let last = match integrator {
            "minimal" | "screw" => system.dims().nf / 2 - 1,
            _ => 6 * (n - 1),
        };
        let mut sweep = Sweep::new(&system, &t);
        let mut back = |sweep: &mut Sweep| {
            let start = Instant::now();
            // the gradient of the last position of the tip, or of the last joint's coordinate
            let run = sweep.run(&system, &t, &mut w, |at, _, out, _| {
                if at.k == steps {
                    out.x[last] = 1.0;
                }
                Ok(())
            });
            run.map(|()| start.elapsed().as_secs_f64() / seconds)
        };
        println!(
            "reverse sweep: {:.3} of the forward rollout",
            back(&mut sweep)?
        );
        if kept {
            let mut kept = Sweep::new(&system, &t).with_cache(&system, 1 << 30);
            back(&mut kept)?;
            println!("again, with factors kept: {:.3}", back(&mut kept)?);
        }
    }
    Ok(())
}
