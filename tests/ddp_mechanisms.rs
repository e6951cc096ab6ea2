//! Differential dynamic programming on mechanisms in maximal coordinates.

use argmin::core::observers::Observe as Observer;
use least_action::control::Problem;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::ddp::{self, Options};
use least_action::optimize::{IterationState, Solution, Status};
use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct Silent;
impl Observer<IterationState> for Silent {}

fn load(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name);
    format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem")
}

fn solve(model: &Model, options: Options) -> Solution {
    let stop = AtomicBool::new(false);
    ddp::solve(&model.system, &model.problem, options, Silent, &stop).expect("no argmin error")
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

fn from_random_guesses(name: &str, objective: f64) {
    let mut model = load(name);
    let seeds = std::env::var("SEEDS").map_or(3, |s| s.parse().expect("a number"));
    let mut solved = 0;
    for seed in 0..seeds {
        random_guess(&mut model.problem, seed);
        let start = std::time::Instant::now();
        let s = solve(&model, Options::default());
        println!(
            "{name} {seed}: {} {} objective {:.5} violation {:.1e} {} iterations {:.0} ms",
            s.status.name(),
            s.reason,
            s.objective,
            s.violation,
            s.iterations,
            start.elapsed().as_secs_f64() * 1e3
        );
        if s.status == Status::Converged && s.violation < 1e-6 {
            solved += 1;
            assert!(s.objective < objective, "{seed}: {}", s.objective);
        }
    }
    assert_eq!(solved, seeds);
}

#[test]
fn cart_pole_swings_up() {
    from_random_guesses("cartpole_swingup.toml", 1.451);
}

#[test]
fn pendulum_swings_up() {
    from_random_guesses("pendulum_swingup.toml", 0.03);
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
