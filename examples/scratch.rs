use argmin::core::observers::Observe;
use least_action::format::{self, Overrides};
use least_action::optimize::{IterationState, ddp};
use std::path::Path;
use std::sync::atomic::AtomicBool;
struct Silent;
impl Observe<IterationState> for Silent {}
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let seeds: u64 = std::env::args().nth(2).map_or(1, |s| s.parse().unwrap());
    let mut good = 0;
    for seed in 0..seeds {
        let mut model = format::load(Path::new(&file))
            .unwrap()
            .build(&Overrides {
                seed: Some(seed),
                ..Default::default()
            })
            .unwrap();
        if seeds > 1 {
            use rand::SeedableRng;
            use rand_distr::{Distribution, StandardNormal};
            let mut r = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
            for (i, u) in model.problem.guess.iter_mut().enumerate() {
                let b = model.problem.bounds[i % model.problem.bounds.len()];
                let v: f64 = StandardNormal.sample(&mut r);
                *u = v * 0.1 * (b.1 - b.0);
            }
        }
        let t = std::time::Instant::now();
        let s = ddp::solve(
            &model.system,
            &model.problem,
            ddp::Options::default(),
            Silent,
            &AtomicBool::new(false),
        )
        .unwrap();
        good += u32::from(s.status.name() == "converged" && s.violation < 1e-6);
        println!(
            "{seed} {} {} obj {:.6} viol {:.1e} opt {:.1e} it {} steps {} {:.2}s",
            s.status.name(),
            s.reason,
            s.objective,
            s.violation,
            s.optimality,
            s.iterations,
            s.step_evaluations,
            t.elapsed().as_secs_f64()
        );
    }
    println!("{good} of {seeds}");
}
