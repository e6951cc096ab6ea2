//! Swing-ups of a cart-pole and an acrobot with a user's dynamics, as other optimizers publish them.

#[path = "common/planar.rs"]
mod planar;

use argmin::core::observers::Observe as Observer;
use least_action::control::Problem;
use least_action::dynamics::{Explicit, Smooth};
use least_action::optimize::{IterationState, Solution, ddp};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

struct Silent;
impl Observer<IterationState> for Silent {}

fn run<S: Smooth>(name: &str, d: &Explicit<S>, p: &Problem, goal: f64) {
    let stop = AtomicBool::new(false);
    let mut times = vec![];
    let mut last: Option<Solution> = None;
    for _ in 0..11 {
        let start = Instant::now();
        last = Some(ddp::solve(d, p, ddp::Options::default(), Silent, &stop).expect("solved"));
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let s = last.expect("ran");
    println!(
        "{name}: {} {} objective {:.6} (goal {goal}), optimality {:.1e}, {} iterations, {} steps, {} models, {:.2} ms ({:.3} us per knot and iteration)",
        s.status.name(),
        s.reason,
        s.objective,
        s.optimality,
        s.iterations,
        s.step_evaluations,
        s.gradient_evaluations,
        times[5],
        times[5] * 1e3 / (s.iterations as f64 * p.intervals.len() as f64)
    );
    if std::env::args().len() > 1 {
        for r in &s.history {
            println!(
                "{:4} {:.8} {:.2e} {:.3e} {:.1e}",
                r.iteration, r.objective, r.optimality, r.step_length, r.regularization
            );
        }
    }
}

fn main() {
    let d = Explicit::new(planar::cart_pole());
    run("cart-pole", &d, &planar::published_cart_pole(&d), 1.09527);
    let d = Explicit::new(planar::acrobot());
    run("acrobot", &d, &planar::published_acrobot(&d), 2.74193);
}
