//! State and control Jacobians of the step of a hinge chain with a motor in every hinge, in the joint chart.
//!
//! `cargo run --release --example jacobians -- [LINKS] [REPEATS] [maximal | minimal]`
//!
//! Prints the median times of `linearize`, of `linear_model`, and of `frame`, which feedback needs beside them.

#[path = "common/chain.rs"]
mod chain;

use least_action::dynamics::{Charts, Differentiable, LinearModel, Step};
use least_action::mechanism::JointKind;
use least_action::rollout::{RolloutStats, Trajectory};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(word) = args.get(3) {
        return Err(
            format!("unknown word `{word}`; expected LINKS, REPEATS, maximal or minimal").into(),
        );
    }
    let number = |i: usize, default| args.get(i).map_or(Ok(default), |a| a.parse::<usize>());
    let (n, repeats) = (number(0, 50)?, number(1, 200)?);
    let integrator = args.get(2).map_or("maximal", String::as_str);
    let (system, x0) = chain::hanging(n, JointKind::Revolute, true, integrator)?;
    let mut w = system.work();
    let mut t = Trajectory::new(&system, vec![0.01; 20], &x0);
    t.u.iter_mut()
        .enumerate()
        .for_each(|(i, u)| *u = (i as f64).sin());
    t.roll(&system, &mut w, &mut RolloutStats::default())?;
    let (at, after) = (t.knot(18), t.knot(19));
    let from = system.frame(&at, t.state(18), &t.p, None, &mut w)?;
    let to = system.frame(&after, t.state(19), &t.p, Some(&from), &mut w)?;
    let mut model = LinearModel::new(&system.dims());
    let mut times = [const { vec![] }; 3];
    for _ in 0..repeats {
        let start = Instant::now();
        let mut linear = system.linearize(&t.solved(&at), &mut w)?;
        let linearized = Instant::now();
        linear.linear_model(&from, &to, &mut model);
        let modelled = Instant::now();
        std::hint::black_box(system.frame(&at, t.state(18), &t.p, None, &mut w)?);
        let durations = [
            linearized - start,
            modelled - linearized,
            modelled.elapsed(),
        ];
        for (times, d) in times.iter_mut().zip(durations) {
            times.push(d.as_secs_f64() * 1e6);
        }
    }
    let [linearize, model, frame] = times.map(|mut t| {
        t.sort_by(f64::total_cmp);
        t.get(t.len() / 2).copied().unwrap_or_default()
    });
    println!(
        "{n} links: linearize {linearize:.1}, linear model {model:.1}, together {:.1} microseconds; frame {frame:.1}",
        linearize + model
    );
    Ok(())
}
