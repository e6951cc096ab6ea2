//! Every problem of `problems/` that has costs, read, built and solved.
//!
//! `cargo bench --bench solve -- [FILTER]`
//!
//! A sample is one whole solve from the file's guess; there are few. Items are iterations. Says so when a solve does not converge.
//! `tick` is one tick of a horizon that recedes, an iteration, from a state a step further each time.

use divan::Bencher;
use divan::counter::ItemsCount;
use least_action::dynamics::{Knot, Step};
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{RecedingHorizon, Solution, Solve, Status, receding};
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

/// Knots of the windows.
const KNOTS: [(&str, usize); 2] = [("cartpole_swingup", 50), ("arm_mpc", 25)];

#[divan::bench(args = KNOTS.map(|k| k.0), sample_count = 300, sample_size = 1)]
fn tick(bencher: Bencher, name: &str) {
    let model = read(name);
    let (system, mut problem) = (&model.system, model.problem.clone());
    let d = system.dims();
    let knots = KNOTS.iter().find(|k| k.0 == name).map_or(0, |k| k.1);
    problem.intervals.truncate(knots);
    problem.guess.truncate(knots * d.nu);
    let h = problem.intervals[0];
    let mut work = system.work();
    let start = problem.start(system, &problem.parameters, &mut work);
    let mut x = start.expect("a start");
    let options = receding::Options::default();
    let controller = RecedingHorizon::new(system, problem, options).expect("fits");
    let controller = std::cell::RefCell::new(controller);
    let (mut next, mut y, mut u) = (x.clone(), vec![0.0; d.ny], vec![0.0; d.nu]);
    let mut k = 0;
    bencher
        .with_inputs(|| {
            let mut controller = controller.borrow_mut();
            let knot = |k: usize| Knot {
                k,
                t: k as f64 * h,
                h_prev: if k == 0 { 0.0 } else { h },
                h,
            };
            if k > 0 {
                let at = knot(k - 1);
                controller.control(&at, &x, &mut u);
                let p = &controller.plan().p;
                let made = system.step(&at, &x, &u, p, &mut work, &mut next, &mut y);
                made.expect("a step");
                x.copy_from_slice(&next);
            }
            k += 1;
            (knot(k - 1), x.clone())
        })
        .bench_local_values(|(at, x)| controller.borrow_mut().tick(&at, &x));
}
