//! Every problem of `problems/` that has costs, read, built and solved.
//!
//! `cargo bench --bench solve -- [FILTER]`
//!
//! A sample is one whole solve from the file's guess; there are few. Items are iterations. Says so when a solve does not converge.

use divan::Bencher;
use divan::counter::ItemsCount;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{Solution, Solve, Status};
use std::path::{Path, PathBuf};

fn main() {
    divan::main();
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("problems")
}

/// Names of the problems with costs.
fn problems() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory())
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| format::load(&path).expect("valid"))
        .filter(|d| d.problem().is_some_and(|p| !p.costs.is_empty()))
        .map(|d| d.name())
        .collect();
    names.sort();
    names
}

fn read(name: &str) -> Model {
    let path = directory().join(name).with_extension("toml");
    let document = format::load(&path).expect("valid");
    document.build(&Overrides::default()).expect("valid")
}

fn run(model: &Model) -> Solution {
    Solve::new(&model.system, &model.problem)
        .with_options(model.options.ddp())
        .run()
        .expect("solved")
}

#[divan::bench(args = problems(), sample_count = 3, sample_size = 1)]
fn solve(bencher: Bencher, name: &str) {
    let found = run(&read(name));
    if found.status != Status::Converged {
        eprintln!("{name} is not solved: {}", found.reason);
    }
    bencher
        .counter(ItemsCount::new(found.iterations))
        .bench_local(|| run(&read(name)));
}
