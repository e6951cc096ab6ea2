//! Random boxes, chains and walkers dropped on tilted ground: how the steps are solved.
//!
//! `cargo run --release --example drops -- [undamped] [divided] [minimal | maximal] [DROPS [FIRST SEED [SPEED]]]`: thrown downwards by so many
//! m/s, without dampers in joints, with steps in as many parts as they ask for, in these coordinates

#[path = "common/drops.rs"]
mod drops;

use drops::{Drop, Kind, Outcome, Setup, Summary, outcomes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut said = |word: &str| arguments.next_if(|a| a == word).is_some();
    let setup = Setup {
        undamped: said("undamped"),
        divided: said("divided"),
        integrator: ["minimal", "maximal"].into_iter().find(|name| said(name)),
        ..Setup::default()
    };
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |a| a.parse());
    let (count, first, speed) = (number(1000)?, number(0)?, number(0)?);
    let all = outcomes(first..first + count, &setup, speed as f64);
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
            let d = Drop::new(seed, &setup, speed as f64);
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
