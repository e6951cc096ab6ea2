//! Differential dynamic programming on mechanisms in maximal coordinates.

use least_action::control::Problem;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::ddp::Options;
use least_action::optimize::{Solution, Solve, Status};
use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rayon::prelude::*;
use std::path::Path;

fn load(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name);
    format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem")
}

fn solve(model: &Model, options: Options) -> Solution {
    Solve::new(&model.system, &model.problem)
        .with_options(options)
        .run()
        .expect("no argmin error")
}

/// Normal controls, a tenth of the bounds' range wide.
fn random_guess(p: &mut Problem, seed: u64) {
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    for (u, (l, h)) in p.guess.iter_mut().zip(p.bounds.iter().cycle()) {
        *u = Normal::new(0.0, 0.1 * (h - l))
            .expect("finite")
            .sample(&mut rng);
    }
}

/// Solves from seeded guesses, `SEEDS` of them (default 3), and asserts that 95 of 100 converge.
fn from_random_guesses(name: &str, objective: f64) {
    let seeds = std::env::var("SEEDS").map_or(3, |s| s.parse().expect("a number"));
    let solutions: Vec<Solution> = (0..seeds)
        .into_par_iter()
        .map(|seed| {
            let mut model = load(name);
            random_guess(&mut model.problem, seed);
            solve(&model, Options::default())
        })
        .collect();
    let solved = |s: &Solution| s.status == Status::Converged && s.violation < 1e-6;
    for (seed, s) in solutions.iter().enumerate() {
        println!(
            "{name} {seed}: {} {} objective {:.5} violation {:.1e} {} iterations",
            s.status.name(),
            s.reason,
            s.objective,
            s.violation,
            s.iterations,
        );
        assert!(
            !solved(s) || s.objective < objective,
            "{seed}: {}",
            s.objective
        );
    }
    let mut iterations: Vec<u64> = solutions.iter().map(|s| s.iterations).collect();
    iterations.sort_unstable();
    let count = solutions.iter().filter(|s| solved(s)).count();
    println!(
        "{name}: {count} of {} converged; {} iterations in the median, {} at most",
        solutions.len(),
        iterations[iterations.len() / 2],
        iterations[iterations.len() - 1],
    );
    assert!(100 * count >= 95 * solutions.len());
}

#[test]
fn cart_pole_swings_up() {
    from_random_guesses("cartpole_swingup.toml", 1.472);
}

#[test]
fn pendulum_swings_up() {
    from_random_guesses("pendulum_swingup.toml", 0.03);
}

/// One minimum from seeds 0 to 99, at 49.78628.
#[test]
fn acrobot_swings_up() {
    from_random_guesses("acrobot_swingup.toml", 49.787);
}

/// One minimum, at 11.30154.
#[test]
fn double_pendulum_swings_up() {
    from_random_guesses("double_pendulum_swingup.toml", 11.302);
}

/// A closed loop, its end point held at two values, to 1e-9; the feedback acts on the loop's one chart.
#[test]
fn a_closed_loop_reaches_its_goal() {
    let model = load("five_bar_reach.toml");
    let options = Options {
        tolerance: 1e-9,
        ..Options::default()
    };
    let s = solve(&model, options);
    println!(
        "five bar: {} {} objective {:.6} violation {:.1e} {} iterations",
        s.status.name(),
        s.reason,
        s.objective,
        s.violation,
        s.iterations
    );
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    assert!(s.violation <= 1e-9, "{}", s.violation);
    let gains = s.gains.expect("feedback");
    assert_eq!(gains.feedback[0].ncols(), gains.frame(0).embed().ncols());
}
