#[path = "common/drops.rs"]
mod drops;
use drops::Drop;
use rayon::prelude::*;
fn main() {
    let list = std::env::args().nth(1).unwrap();
    let seeds: Vec<u64> = std::fs::read_to_string(list)
        .unwrap()
        .split_whitespace()
        .map(|s| s.parse().unwrap())
        .collect();
    let all: Vec<_> = seeds.par_iter().map(|&s| (s, Drop::new(s, Default::default()).run())).collect();
    let mut bad = 0;
    for (seed, o) in &all {
        if let Some(e) = &o.failure {
            bad += 1;
            let d = Drop::new(*seed, Default::default());
            println!(
                "seed {seed}: {:?} of {:.3} m, {:.3} kg, friction {:.2}, h {:.4} s, {}: step {}, {:?} at {}, residual {:.1e}",
                d.kind,
                d.size,
                d.mass,
                d.friction,
                d.h,
                if d.warm { "warm" } else { "cold" },
                o.stats.len(),
                e.failure,
                e.element,
                e.residual
            );
        }
    }
    println!("{bad} of {}", all.len());
}
