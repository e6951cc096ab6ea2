//! Experiment 8b of paper 000 with contacts at the spheres' surfaces: time and iterations per step of chains of spheres
//! dropped on the ground, straight and tilted by 0.1 rad.
//!
//! `cargo run --release --example spheres -- [STEPS]`

#[path = "common/spheres.rs"]
mod spheres;

use least_action::dynamics::{Knot, Step};
use least_action::integrator::Options;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps: usize = std::env::args().nth(1).map_or(Ok(500), |a| a.parse())?;
    let h = 0.01;
    println!("{steps} steps of {h} s");
    println!("start  friction  tilt  spheres  us/step  /sphere  median  mean  most  lowest gap");
    for warm in [false, true] {
        for (friction, tilt) in [(0.5, 0.0), (0.5, 0.1), (1.0, 0.0), (1.0, 0.1)] {
            for n in [1, 10, 40, 100] {
                let mut options = Options::default();
                options.contact.warm = warm;
                let (system, mut x) = spheres::dropped(n, friction, tilt, options)?;
                let (mut w, d) = (system.work(), system.dims());
                let (mut next, mut y) = (x.clone(), vec![0.0; d.ny]);
                let (mut iterations, mut lowest) = (vec![], f64::INFINITY);
                let mut seconds = 0.0;
                for k in 0..steps {
                    let at = Knot {
                        k,
                        t: k as f64 * h,
                        h_prev: if k == 0 { 0.0 } else { h },
                        h,
                    };
                    let start = Instant::now();
                    let s = system.step(&at, &x, &[], &[], &mut w, &mut next, &mut y)?;
                    seconds += start.elapsed().as_secs_f64();
                    iterations.push(s.iterations);
                    std::mem::swap(&mut x, &mut next);
                    for b in x.chunks_exact(13).take(n) {
                        lowest = f64::min(lowest, b[2] - 0.25);
                    }
                }
                let each = 1e6 * seconds / steps as f64;
                iterations.sort_unstable();
                println!(
                    "{:5}  {friction:8}  {tilt:4}  {n:7}  {each:7.1}  {:7.2}  {:6}  {:4.1}  {:4}  {lowest:.1e}",
                    if warm { "warm" } else { "cold" },
                    each / n as f64,
                    iterations[steps / 2],
                    iterations.iter().sum::<usize>() as f64 / steps as f64,
                    iterations[steps - 1],
                );
            }
        }
    }
    Ok(())
}
