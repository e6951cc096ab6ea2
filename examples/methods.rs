//! Every method on the swing-ups and the arm, from the problem's own guess and from the solution of differential dynamic
//! programming with noise on its controls: simulated without its feedback (its states given to methods that take states), and
//! with it. Prints the tables of `docs/methods.md`.
//!
//! `cargo run --release --example methods -- [seconds a solve] [iterations] [problems, methods...]`

use least_action::control::Problem;
use least_action::dynamics::Dynamics;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{Limits, Method, Solution, Solve, Status};
use least_action::rollout::RolloutStats;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const PROBLEMS: [&str; 5] = [
    "pendulum_swingup",
    "cartpole_swingup",
    "acrobot_swingup",
    "double_pendulum_swingup",
    "spatial_arm_reach",
];

/// Standard deviation of the noise, relative to the root mean square of each control.
const NOISE: f64 = 0.05;

/// A problem of `problems/`.
pub fn load(name: &str) -> Outcome<Model> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
        .with_extension("toml");
    Ok(format::load(&path)?.build(&Overrides::default())?)
}

/// The controls with noise, within their bounds.
fn disturbed(controls: &[f64], bounds: &[(f64, f64)]) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let (m, knots) = (bounds.len(), controls.len() / bounds.len().max(1));
    let mut square = vec![0.0; m];
    for (i, u) in controls.iter().enumerate() {
        square[i % m] += u * u / knots as f64;
    }
    let mut one = |(i, u): (usize, &f64)| {
        let noise: f64 = StandardNormal.sample(&mut random);
        let (l, h) = bounds[i % m];
        (u + NOISE * square[i % m].sqrt() * noise).clamp(l, h)
    };
    controls.iter().enumerate().map(&mut one).collect()
}

/// The controls that the solution's feedback makes of these.
fn kept_near<D: Dynamics>(
    system: &D,
    best: &Solution,
    controls: &[f64],
    bounds: &[(f64, f64)],
) -> Outcome<Vec<f64>> {
    let Some(gains) = &best.gains else {
        return Ok(controls.to_vec());
    };
    let (old, mut t) = (&best.trajectory, best.trajectory.clone());
    t.u.copy_from_slice(controls);
    let mut d = vec![0.0; system.dims().ndx];
    let (mut w, mut stats) = (system.work(), RolloutStats::default());
    t.roll_under(system, &mut w, &mut stats, |at, x, p, w, u| {
        let frame = gains.frame(at.k);
        system.difference(at, old.state(at.k), p, frame, x, w, &mut d);
        for (i, (u, (l, h))) in u.iter_mut().zip(bounds).enumerate() {
            let row = gains.feedback[at.k].row(i);
            let answer = row.iter().zip(&d);
            *u = (*u + answer.map(|(k, d)| k * d).sum::<f64>()).clamp(*l, *h);
        }
        Ok(())
    })?;
    Ok(t.u)
}

/// The problem with guesses near a solution: noise on its controls, beside its states; and what its feedback makes of that.
pub fn near(model: &Model, best: &Solution) -> Outcome<[Problem; 2]> {
    let mut open = model.problem.clone();
    open.guess = disturbed(&best.trajectory.u, &open.bounds);
    open.guess_states.clone_from(&best.trajectory.x);
    let mut closed = open.clone();
    closed.guess = kept_near(&model.system, best, &open.guess, &open.bounds)?;
    closed.guess_states.clear();
    Ok([open, closed])
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, or: u64| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    let limits = Limits {
        iterations: Some(number(1, 5000)),
        time: Some(Duration::from_secs(number(0, 20))),
    };
    let asked = |name: &str, among: &dyn Fn(&str) -> bool| {
        let mut named = arguments.iter().skip(2).filter(|a| among(a)).peekable();
        named.peek().is_none() || named.any(|a| a == name)
    };
    let is_problem = |a: &str| PROBLEMS.contains(&a);
    let is_method = |a: &str| Method::named(a).is_some();
    println!(
        "| problem | from | method | status | objective | violation | iterations | rollouts | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for name in PROBLEMS.into_iter().filter(|n| asked(n, &is_problem)) {
        let model = load(name)?;
        let best = Solve::new(&model.system, &model.problem)
            .with_options(model.options.of(Method::Ddp))
            .run()?;
        let [open, closed] = near(&model, &best)?;
        for (from, problem) in [
            ("guess", &model.problem),
            ("ddp + 5 %", &open),
            ("ddp + 5 %, feedback", &closed),
        ] {
            for method in Method::ALL {
                // noise on a guess tells nothing of learners
                let tells = from == "guess" || !method.is_learner();
                let options = model.options.of(method);
                if !tells
                    || !asked(method.name(), &is_method)
                    || options.fits(&model.system, problem).is_err()
                {
                    continue;
                }
                let start = Instant::now();
                let solve = Solve::new(&model.system, problem).with_options(options);
                let s = solve.with_limits(limits).run()?;
                let seconds = start.elapsed().as_secs_f64();
                let status = match s.status {
                    Status::Interrupted => "time limit",
                    other => other.name(),
                };
                let before = format!("| {name} | {from} | {} |", method.name());
                let (rollouts, made) = (
                    s.step_evaluations / model.problem.intervals.len() as u64,
                    s.iterations,
                );
                match s.objective.is_finite() {
                    true => println!(
                        "{before} {status} | {:.6} | {:.0e} | {made} | {rollouts} | {seconds:.1} |",
                        s.objective, s.violation
                    ),
                    false => {
                        println!("{before} {status} | | | {made} | {rollouts} | {seconds:.1} |")
                    }
                }
                if !s.reason.is_empty() {
                    eprintln!("{before} {}", s.reason);
                }
            }
        }
    }
    Ok(())
}
