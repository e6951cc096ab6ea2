//! Differential dynamic programming on users' dynamics: two swing-ups that other optimizers publish, by the direct method as
//! well, and four within bounds and with a goal from random guesses.
//!
//! `cargo run --release --example benchmarks -- [GUESSES] [--history]`
//!
//! Of the published ones Crocoddyl needs 133 and 371 iterations, 45 and 154 ms; IPOPT through CasADi 69 and 187 ms.

#[path = "common/planar.rs"]
mod planar;

use least_action::control::Problem;
use least_action::dynamics::{Explicit, Smooth};
use least_action::optimize::{Method, Solution, Solve, Status};
use std::time::Instant;

/// Solves of which the median time counts.
const RUNS: usize = 11;

fn solve<S: Smooth>(d: &Explicit<S>, p: &Problem, method: Method) -> Solution {
    let solve = Solve::new(d, p).with_method(method);
    solve.run().expect("no argmin error")
}

fn middle<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len() / 2).copied()
}

fn published<S: Smooth>(
    name: &str,
    (d, p): (&Explicit<S>, &Problem),
    method: Method,
    goal: f64,
    history: bool,
) {
    let mut s = solve(d, p, method);
    let runs = if history { 0 } else { RUNS };
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            s = solve(d, p, method);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name}, {}: {}, objective {:.7} (published {goal}), {} iterations, {} steps, {:.2} ms",
        method.name(),
        s.status.name(),
        s.objective,
        s.iterations,
        s.step_evaluations,
        middle(&times).unwrap_or(f64::NAN),
    );
    for r in s.history.iter().filter(|_| history) {
        println!(
            "{:5} {:.8} promised {:.2e} step {:.3e}",
            r.iteration, r.objective, r.optimality, r.step_length
        );
    }
}

fn from_random_guesses<S: Smooth>(name: &str, (d, mut p): (Explicit<S>, Problem), guesses: u64) {
    let (mut iterations, mut objectives) = (vec![], vec![]);
    let start = Instant::now();
    for seed in 0..guesses {
        planar::random_guess(&mut p, seed);
        let s = solve(&d, &p, Method::Ddp);
        if s.status == Status::Converged && s.violation < 1e-6 {
            objectives.push(s.objective);
        } else {
            println!("  guess {seed}: {} {}", s.status.name(), s.reason);
        }
        iterations.push(s.iterations);
    }
    let each = start.elapsed().as_secs_f64() * 1e3 / guesses as f64;
    iterations.sort_unstable();
    objectives.sort_by(f64::total_cmp);
    println!(
        "{name}: {} of {guesses} converged, objective {:.5} at best, {:.5} at the median; {} iterations at the median, {} at most; {each:.1} ms each",
        objectives.len(),
        objectives.first().unwrap_or(&f64::NAN),
        middle(&objectives).unwrap_or(f64::NAN),
        middle(&iterations).unwrap_or(0),
        iterations.last().unwrap_or(&0),
    );
}

fn main() {
    let guesses = std::env::args().nth(1).and_then(|a| a.parse().ok());
    let history = std::env::args().any(|a| a == "--history");
    let (cart_pole, acrobot) = (planar::cart_pole(), planar::acrobot());
    let (cart_pole, acrobot) = (Explicit::new(cart_pole), Explicit::new(acrobot));
    for method in [Method::Ddp, Method::Direct] {
        let p = planar::published_cart_pole(&cart_pole);
        published("cart-pole", (&cart_pole, &p), method, 1.0952744, history);
        let p = planar::published_acrobot(&acrobot);
        published("acrobot", (&acrobot, &p), method, 2.7419313, history);
    }
    let n = guesses.unwrap_or(100);
    from_random_guesses("pendulum", planar::swing_up_pendulum(), n);
    from_random_guesses("cart-pole", planar::swing_up_cart_pole(), n);
    from_random_guesses("acrobot", planar::swing_up_acrobot(), n);
    let double = planar::swing_up_double_pendulum();
    from_random_guesses("double pendulum", double, n);
}
