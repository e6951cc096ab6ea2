//! Random boxes, chains and walkers dropped on tilted ground: how the steps are solved.
//!
//! `cargo run --release --example drops -- [DROPS [FIRST SEED]]`

#[path = "common/drops.rs"]
mod drops;

use drops::{Drop, Kind, Outcome, Summary, outcomes};
use least_action::integrator::maximal::Cone;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse());
    let count: u64 = numbers.next().unwrap_or(Ok(1000))?;
    let first: u64 = numbers.next().unwrap_or(Ok(0))?;
    let all = outcomes(first..first + count, Cone::SecondOrder);
    println!("                {}", Summary::HEAD);
    for kind in [Kind::Box, Kind::Chain, Kind::Walker] {
        for warm in [false, true] {
            let some = |o: &&Outcome| o.kind == kind && o.warm == warm;
            let start = if warm { "warm" } else { "cold" };
            let kind = format!("{kind:?}").to_lowercase();
            println!(
                "{kind:6}  {start}    {}",
                Summary::of(all.iter().filter(some))
            );
        }
    }
    println!("all             {}", Summary::of(all.iter()));
    for (seed, o) in (first..).zip(&all) {
        if let Some(e) = &o.failure {
            let d = Drop::new(seed, Cone::SecondOrder);
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
                e.residual,
            );
        }
    }
    Ok(())
}
