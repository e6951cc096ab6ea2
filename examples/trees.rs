//! Random trees over a floor, simulated for a second by both integrators: what fails and why, substeps, iterations.
//!
//! `cargo run --release --example trees -- [all | list] [cylinders] [minimal | maximal] [TREES [FIRST SEED]]`
//!
//! `all` prints a line for each tree and integrator as it ends, `list` those that fail or take many iterations, in order.

#[allow(dead_code, reason = "shared with tests")]
#[path = "common/drops.rs"]
mod drops;
#[allow(dead_code, reason = "shared with tests")]
#[path = "common/trees.rs"]
mod trees;

use rayon::prelude::*;
use std::collections::BTreeMap;
use trees::{BOTH, Outcome, Shapes, Tree};

/// Iterations of a step that no tree should take.
const MOST: usize = 500;

/// What is wrong with how a tree moved.
fn reason(o: &Outcome) -> Option<&'static str> {
    match (&o.failure, o.grew) {
        (Some(e), _) => Some(e.failure.name()),
        (None, Some(_)) => Some("energy grew"),
        _ => (o.stats.most_iterations > MOST).then_some("many iterations"),
    }
}

/// A line about a tree.
fn line(name: &str, seed: u64, o: &Outcome) -> String {
    let grew = o.grew.map(|knot| format!("energy grew at knot {knot}"));
    let error = o.failure.as_ref().map(ToString::to_string).or(grew);
    format!(
        "{name} {seed}: {}, step {}, energy {:.1e} of {:.1e} J, {:.1} substeps ({}), at most {} iterations; {}",
        reason(o).unwrap_or("done"),
        o.stats.steps,
        o.energy[0],
        o.energy[1],
        o.substeps(),
        o.stats.parts,
        o.stats.most_iterations,
        error.unwrap_or_default(),
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let all_lines = arguments.next_if(|a| a == "all").is_some();
    let list = arguments.next_if(|a| a == "list").is_some();
    let shapes = match arguments.next_if(|a| a == "cylinders") {
        Some(_) => Shapes::WithCylinders,
        None => Shapes::Without,
    };
    let only = arguments.next_if(|a| BOTH.contains(&a.as_str()));
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |a| a.parse());
    let (count, first) = (number(1000)?, number(0)?);
    let names: Vec<&str> = BOTH
        .into_iter()
        .filter(|n| only.as_ref().is_none_or(|o| o == n))
        .collect();
    let run = |seed| {
        let tree = Tree::of(seed, shapes);
        let run = |name: &&str| {
            let o = tree.run(name);
            if all_lines {
                println!("{}", line(name, seed, &o));
            }
            o
        };
        names.iter().map(run).collect::<Vec<Outcome>>()
    };
    let all: Vec<Vec<Outcome>> = (first..first + count).into_par_iter().map(run).collect();
    for (i, name) in names.iter().enumerate() {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut iterations, mut most, mut parts, mut steps, mut deepest) = (0, 0, 0, 0, 0.0_f64);
        for (seed, outcomes) in (first..).zip(&all) {
            let o = &outcomes[i];
            iterations += o.stats.iterations;
            most = most.max(o.stats.most_iterations);
            parts += o.stats.parts;
            steps += o.stats.steps;
            deepest = deepest.max(o.deepest);
            let Some(reason) = reason(o) else {
                continue;
            };
            *reasons.entry(reason).or_default() += 1;
            if list {
                println!("{}", line(name, seed, o));
            }
        }
        println!(
            "{name}: {count} trees, {reasons:?}; {steps} steps, {:.3} substeps and {:.2} iterations a step, {most} iterations at most, {deepest:.1e} m deep",
            parts as f64 / steps.max(1) as f64,
            iterations as f64 / steps.max(1) as f64,
        );
    }
    if names.len() == 2 {
        let mut differ = 0;
        for (seed, o) in (first..).zip(&all) {
            if o[0].stats.parts != o[1].stats.parts && o.iter().all(|o| o.failure.is_none()) {
                differ += 1;
                if list {
                    println!(
                        "{seed}: substeps {:.2} and {:.2}",
                        o[0].substeps(),
                        o[1].substeps()
                    );
                }
            }
        }
        println!("{differ} differ in substeps");
    }
    Ok(())
}
