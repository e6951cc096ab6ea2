//! Gains that balance a cart-pole, learnt from nothing by every learner and by gradients of the policy, on the same episodes:
//! the return over the number of rollouts, its mean and its range over seeds.
//!
//! `cargo run --release --example cartpole_learned -- [FIGURE.svg or .png] [rollouts] [seeds]`

use least_action::format::problem::MethodSpec;
use least_action::format::{self, Overrides};
use least_action::optimize::Method;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

#[path = "common/learned.rs"]
mod learned;
use learned::{Learnt, Look, draw, learn};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or("cartpole_learned.svg".into());
    let most = arguments.next().map_or(Ok(2000), |n| n.parse::<u64>())?;
    let seeds = arguments.next().map_or(Ok(3), |n| n.parse::<u64>())?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/cartpole_learned.toml");
    let mut model = format::load(&file)?.build(&Overrides::default())?;
    // the rollouts are the limit, whatever number of iterations they make
    model.options.max_iterations = Some(most);
    let rollouts = most as f64;
    let mut all: Vec<Learnt> = vec![];
    println!("return after {most} rollouts, of {seeds} seeds");
    for method in Method::ALL.into_iter().filter(|m| m.is_learner()) {
        let begun = Instant::now();
        let mut curves = vec![];
        for seed in 1..=seeds {
            set(&mut model.options, method, seed);
            let learning = learn(&model, method, rollouts, 0.0)?;
            curves.push(learning.curve(rollouts, |r| r.objective));
        }
        let ends: Vec<String> = (curves.iter())
            .filter_map(|c: &Vec<f64>| c.last().map(|v| format!("{:9.4}", -v)))
            .collect();
        let seconds = begun.elapsed().as_secs_f64() / seeds as f64;
        println!(
            "{:16} {}  {seconds:.1} s a seed",
            method.name(),
            ends.join(" ")
        );
        all.push((method.name(), curves));
    }
    let costs = || all.iter().flat_map(|m| m.1.iter().flatten());
    let largest = costs().fold(0.0, |most: f64, v| most.max(*v));
    let least = costs().fold(f64::INFINITY, |least, v| least.min(*v));
    let look = Look {
        caption: "Cart-pole, learned: mean and range over seeds",
        x: ("rollouts", rollouts),
        y: "return of the best so far",
        y_label: &|v| format!("−{v}"),
        mark: None,
    };
    draw(
        &path,
        &look,
        || (largest * 1.1..least * 0.9).log_scale(),
        &all,
    )?;
    println!("wrote {path}");
    Ok(())
}

/// Settings for a few gains and few rollouts, where those that a method has by default are for more: small populations, and
/// for `search`, whose noise is in SI units, a noise of the gains' size.
fn set(options: &mut MethodSpec, method: Method, seed: u64) {
    options.seed = Some(seed);
    options.sigma = (method == Method::Search).then_some(5.0);
    options.population = (method == Method::Mppi).then_some(16);
    options.directions = (method == Method::Ars).then_some(8);
}
