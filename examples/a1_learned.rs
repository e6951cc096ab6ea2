//! The quadruped of paper 000 (section 5.4) learns to walk: by the paper's random search and by other learners on episodes of ten
//! seconds, and by gradients on one and a half, alone or the mean of several, through relaxed contacts. The mean speed of the best so
//! far over the time that was simulated, where a sweep back counts as the rollout that it goes over; then how far what each found walks
//! in ten seconds.
//!
//! `cargo run --release --example a1_learned -- [FIGURE.svg or .png] [seconds] [seeds]`: some ten seconds for every 1000 simulated.

use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::optimize::Method;
use least_action::rollout::{RolloutStats, Trajectory};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

#[path = "common/learned.rs"]
mod learned;
use learned::{Learnt, Look, draw, learn};

/// What it walks at in the paper, m/s.
const OF_PAPER: f64 = 1.2;
/// What is tried: its name, the file, the method, and how many samples gradients are the mean of.
const TRIED: [(&str, &str, Method, usize); 5] = [
    ("search", "a1_walk", Method::Search, 1),
    ("ars", "a1_walk", Method::Ars, 1),
    ("cmaes", "a1_walk", Method::Cmaes, 1),
    ("gradient", "a1_walk_gradients", Method::PolicyGradient, 1),
    (
        "mean of two",
        "a1_walk_gradients",
        Method::PolicyGradient,
        2,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or("a1_learned.svg".into());
    let most = arguments.next().map_or(Ok(1000.0), |n| n.parse::<f64>())?;
    let seeds = arguments.next().map_or(Ok(5), |n| n.parse::<u64>())?;
    let far = load("a1_walk")?;
    let mut all: Vec<Learnt> = vec![];
    println!("metres in ten seconds after {most} s of simulation, of {seeds} seeds");
    for (name, file, method, samples) in TRIED {
        let begun = Instant::now();
        let mut model = load(file)?;
        let options = &mut model.options;
        options.samples = (method == Method::PolicyGradient).then_some(samples);
        // as few rollouts an iteration as the task's own search needs
        options.directions = (method == Method::Ars).then_some(4);
        options.sigma = match method {
            Method::Ars => Some(0.05),
            Method::Cmaes => Some(0.1),
            _ => options.sigma,
        };
        let horizon: f64 = model.problem.intervals.iter().sum();
        let rollouts = most / horizon;
        // of gradients each sample is swept back once
        let sweeps = model.options.samples.unwrap_or(0) as f64;
        let (mut curves, mut ends) = (vec![], vec![]);
        for seed in 1..=seeds {
            model.options.seed = Some(seed);
            let learning = learn(&model, method, rollouts, sweeps)?;
            curves.push(learning.curve(rollouts, |r| -r.objective / horizon));
            let found = &learning.solution.trajectory.p;
            ends.push(format!("{:6.2}", walked(&far, found)?));
        }
        let seconds = begun.elapsed().as_secs_f64() / seeds as f64;
        println!("{name:12} {}  {seconds:.0} s a seed", ends.join(" "));
        all.push((name, curves));
    }
    let speeds = all.iter().flat_map(|m| m.1.iter().flatten());
    let largest = speeds.fold(OF_PAPER, |most: f64, v| most.max(*v));
    let look = Look {
        caption: "A1 learns to walk: mean and range over seeds",
        x: ("time simulated [s], sweeps counted", most),
        y: "mean speed of the best so far [m/s]",
        y_label: &|v| format!("{v:.1}"),
        mark: Some((OF_PAPER, "the paper\u{2019}s")),
    };
    draw(&path, &look, || 0.0..largest * 1.05, &all)?;
    println!("wrote {path}");
    Ok(())
}

fn load(name: &str) -> Result<Model, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems");
    let path = folder.join(name).with_extension("toml");
    Ok(format::load(&path)?.build(&Overrides::default())?)
}

/// How far these gains walk in the ten seconds of the task, m; none where they fall.
fn walked(far: &Model, gains: &[f64]) -> Result<f64, Box<dyn Error>> {
    let system = far.extended();
    let mut w = system.work();
    let x0 = far.problem.start(&system, gains, &mut w)?;
    let mut t = Trajectory::new(&system, far.problem.intervals.clone(), &x0);
    t.p.copy_from_slice(gains);
    if t.roll(&system, &mut w, &mut RolloutStats::default())
        .is_err()
    {
        return Ok(f64::NAN);
    }
    let height = |k: usize| {
        let state = &t.state(k)[..far.system.dims().nx];
        far.system.poses(state)[0].x.z
    };
    if (0..=t.steps()).any(|k| height(k) <= 0.0) {
        return Ok(f64::NAN);
    }
    let mut e = far.problem.evaluation();
    far.problem.evaluate(&system, &t, &mut w, &mut e)?;
    Ok(-e.objective)
}
