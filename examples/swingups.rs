//! Robustness of differential dynamic programming: four swing-ups from random guesses.
//!
//! `cargo run --release --example swingups -- [GUESSES]`

#[path = "common/planar.rs"]
mod planar;

use argmin::core::observers::Observe as Observer;
use least_action::control::Problem;
use least_action::dynamics::{Explicit, Smooth};
use least_action::optimize::{IterationState, Status, ddp};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

struct Silent;
impl Observer<IterationState> for Silent {}

fn run<S: Smooth>(name: &str, (d, mut p): (Explicit<S>, Problem), guesses: u64) {
    let stop = AtomicBool::new(false);
    let (mut solved, mut iterations, mut objectives) = (0, vec![], vec![]);
    let start = Instant::now();
    for seed in 0..guesses {
        planar::random_guess(&mut p, seed);
        let s = ddp::solve(&d, &p, ddp::Options::default(), Silent, &stop).expect("ran");
        if s.status == Status::Converged && s.violation < 1e-6 {
            solved += 1;
            objectives.push(s.objective);
        } else if std::env::args().len() > 2 {
            println!(
                "  {seed}: {} {} objective {:.4} violation {:.2e} optimality {:.1e} it {}",
                s.status.name(),
                s.reason,
                s.objective,
                s.violation,
                s.optimality,
                s.iterations
            );
        }
        if std::env::args().nth(3).as_deref() == Some(&format!("{name}{seed}")) {
            for r in &s.history {
                println!(
                    "{:4} {:.6} v {:.2e} o {:.2e} l {:.3e} r {:.1e}",
                    r.iteration,
                    r.objective,
                    r.violation,
                    r.optimality,
                    r.step_length,
                    r.regularization
                );
            }
        }
        iterations.push(s.iterations);
    }
    iterations.sort_unstable();
    objectives.sort_by(f64::total_cmp);
    let middle = |n: usize| n / 2;
    println!(
        "{name}: {solved} of {guesses} converged; iterations median {}, most {}; objective best {:.4}, median {:.4}; {:.1} ms each",
        iterations[middle(iterations.len())],
        iterations[iterations.len() - 1],
        objectives.first().unwrap_or(&f64::NAN),
        objectives
            .get(middle(objectives.len()))
            .unwrap_or(&f64::NAN),
        start.elapsed().as_secs_f64() * 1e3 / guesses as f64
    );
}

fn main() {
    let guesses = std::env::args()
        .nth(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(100);
    run("pendulum", planar::swing_up_pendulum(), guesses);
    run("cart-pole", planar::swing_up_cart_pole(), guesses);
    run("acrobot", planar::swing_up_acrobot(), guesses);
    run(
        "double pendulum",
        planar::swing_up_double_pendulum(),
        guesses,
    );
}
