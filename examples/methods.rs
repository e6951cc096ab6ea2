//! Every method on the swing-ups and the arm: from the solution of differential dynamic programming with noise on the controls,
//! simulated without its feedback and with it, and from the problem's own guess. Prints a table.
//!
//! `cargo run --release --example methods -- [seconds a solve] [iterations] [problems, methods...]`

use least_action::dynamics::Dynamics;
use least_action::format::{self, Overrides};
use least_action::optimize::{Limits, Method, Solution, Solve, Status};
use least_action::rollout::RolloutStats;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::{Duration, Instant};

const PROBLEMS: [&str; 5] = [
    "pendulum_swingup",
    "cartpole_swingup",
    "acrobot_swingup",
    "double_pendulum_swingup",
    "spatial_arm_reach",
];

/// Standard deviation of the noise, relative to the root mean square of each control.
const NOISE: f64 = 0.05;

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
) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, or: u64| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    let limits = Limits {
        iterations: Some(number(1, 5000)),
        time: Some(Duration::from_secs(number(0, 10))),
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
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("problems")
            .join(name)
            .with_extension("toml");
        let model = format::load(&path)?.build(&Overrides::default())?;
        let best = Solve::new(&model.system, &model.problem)
            .with_options(model.options.of(Method::Ddp))
            .run()?;
        let mut open = model.problem.clone();
        open.guess_states.clear();
        open.guess = disturbed(&best.trajectory.u, &open.bounds);
        let mut closed = open.clone();
        closed.guess = kept_near(&model.system, &best, &open.guess, &open.bounds)?;
        for (from, problem) in [
            ("ddp + 5 %, its feedback", &closed),
            ("ddp + 5 %", &open),
            ("guess", &model.problem),
        ] {
            for method in Method::ALL {
                if !asked(method.name(), &is_method) {
                    continue;
                }
                let start = Instant::now();
                let solved = Solve::new(&model.system, problem)
                    .with_options(model.options.of(method))
                    .with_limits(limits)
                    .run();
                let seconds = start.elapsed().as_secs_f64();
                let before = format!("| {name} | {from} | {} |", method.name());
                match solved {
                    Ok(s) => {
                        let steps = model.problem.intervals.len() as u64;
                        let status = match s.status {
                            Status::Interrupted => "time limit",
                            other => other.name(),
                        };
                        println!(
                            "{before} {status} | {:.7} | {:.0e} | {} | {} | {seconds:.1} |",
                            s.objective,
                            s.violation,
                            s.iterations,
                            s.step_evaluations / steps
                        );
                        if !s.reason.is_empty() {
                            eprintln!("{before} {}", s.reason);
                        }
                    }
                    Err(e) => {
                        println!("{before} refused | | | | | |");
                        eprintln!("{before} {e}");
                    }
                }
            }
        }
    }
    Ok(())
}
