//! Experiment 9a of paper 000: chains of 1 to 10 closed segments of four links, time per step and how well it goes.
//!
//! `cargo run --release --example segments -- [STEPS] [h=0.01] [tilt=0] [half=0.3927]`
//!
//! Every segment is a rhombus that starts open by `half` to either side, at rest in a straight chain at the angle `tilt` from the
//! vertical. It falls shut, through the flat position where its links may part in other ways. Prints, for each number of
//! segments, the time per step, Newton iterations per step (mean and most), steps whose matrix needed the pivoted
//! factorization, steps from singular positions, the largest gap of any joint (m or rad), the largest error of the energy, and
//! that over the largest exchange of energy. Fails if a gap exceeds 1e-6 or the error 1 % of the energy.

#[allow(dead_code, reason = "shared with tests")]
#[path = "common/segments.rs"]
mod segments;

use least_action::dynamics::Step;
use least_action::integrator::Mechanical;
use least_action::rollout::{RolloutStats, Trajectory, balance};
use std::f64::consts::FRAC_PI_8;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).collect::<Vec<_>>();
    let mut option = |name: &str, value: f64| match args.iter().position(|a| a.starts_with(name)) {
        Some(i) => args.remove(i)[name.len()..].parse(),
        None => Ok(value),
    };
    let h = option("h=", 0.01)?;
    let (tilt, half) = (option("tilt=", 0.0)?, option("half=", FRAC_PI_8)?);
    let steps: usize = args.first().map_or(Ok(1000), |a| a.parse())?;
    println!("{steps} steps of {h} s; microseconds, m or rad, J");
    println!(
        "segments  freedoms  time/step  /link  Newton  most  pivoted  singular      gap  energy error     share"
    );
    let (mut worst, mut most) = (0.0_f64, 0.0_f64);
    for n in 1..=10 {
        let (system, x0) = segments::tilted(n, half, tilt)?;
        let mut w = system.work();
        let mut t = Trajectory::new(&system, vec![h; steps], &x0);
        let mut stats = RolloutStats::default();
        let start = Instant::now();
        let rolled = t.roll(&system, &mut w, &mut stats);
        t.truncate(stats.steps);
        let steps = stats.steps;
        let each = 1e6 * start.elapsed().as_secs_f64() / steps as f64;
        let gap = (0..=steps)
            .map(|k| system.mechanism().violation(&system.poses(t.state(k))).0)
            .fold(0.0, f64::max);
        worst = worst.max(gap);
        let b = balance(&system, &t, &mut w)?;
        let share = b.largest_error() / b.largest_exchange();
        most = most.max(share);
        println!(
            "{n:8}  {:8}  {each:9.1}  {:5.2}  {:6.2}  {:4}  {:7}  {:8}  {gap:7.1e}  {:12.3e}  {share:8.1e}",
            system.mobility().degrees_of_freedom,
            each / (4 * n) as f64,
            stats.iterations as f64 / steps as f64,
            stats.most_iterations,
            stats.fallbacks,
            stats.treated,
            b.largest_error(),
        );
        rolled?;
    }
    if worst > 1e-6 || most > 0.01 {
        return Err(format!("a joint opened by {worst:.1e}, energy is off by {most:.1e}").into());
    }
    Ok(())
}
