//! Experiment 9a of paper 000: chains of 1 to 10 closed segments of four links, time per step and how well it goes.
//!
//! `cargo run --release --example segments -- [STEPS] [h=0.01]`
//!
//! Every segment is a rhombus that starts open by pi/8 to either side and falls shut, through the flat position where
//! its links may part in other ways. Prints, for each number of segments, the time per step, Newton iterations per step
//! (mean and most), steps whose matrix needed the pivoted factorization, the largest gap of any joint (m or rad) and the
//! largest error of the energy. Fails when a gap exceeds 1e-9.

#[allow(dead_code, reason = "shared with tests")]
#[path = "common/segments.rs"]
mod segments;

use least_action::dynamics::Step;
use least_action::integrator::Mechanical;
use least_action::rollout::{RolloutStats, Trajectory, balance};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).collect::<Vec<_>>();
    let mut h = 0.01;
    if let Some(i) = args.iter().position(|a| a.starts_with("h=")) {
        h = args.remove(i)["h=".len()..].parse()?;
    }
    let steps: usize = args.first().map_or(Ok(1000), |a| a.parse())?;
    println!("{steps} steps of {h} s; microseconds, m or rad, J");
    println!("segments  freedoms  time/step  /link  Newton  most  pivoted      gap  energy error");
    let mut worst = 0.0_f64;
    for n in 1..=10 {
        let (system, x0) = segments::hanging(n)?;
        let mut w = system.work();
        let mut t = Trajectory::new(&system, vec![h; steps], &x0);
        let mut stats = RolloutStats::default();
        let start = Instant::now();
        t.roll(&system, &mut w, &mut stats)?;
        let each = 1e6 * start.elapsed().as_secs_f64() / steps as f64;
        let gap = (0..=steps)
            .map(|k| system.mechanism().violation(&system.poses(t.state(k))).0)
            .fold(0.0, f64::max);
        worst = worst.max(gap);
        println!(
            "{n:8}  {:8}  {each:9.1}  {:5.2}  {:6.2}  {:4}  {:7}  {gap:7.1e}  {:12.3e}",
            system.mobility().degrees_of_freedom,
            each / (4 * n) as f64,
            stats.iterations as f64 / steps as f64,
            stats.most_iterations,
            stats.fallbacks,
            balance(&system, &t, &mut w)?.largest_error(),
        );
    }
    if worst > 1e-9 {
        return Err(format!("a joint opened by {worst:.1e}").into());
    }
    Ok(())
}
