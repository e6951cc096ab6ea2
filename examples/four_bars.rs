//! Parallelograms through their flat positions, where several motions are possible (IFToMM A02): energy and gaps for many
//! step sizes, and for steps that land at chosen distances from flat.
//!
//! `cargo run --release --example four_bars -- [COUNT=300]`
//!
//! Runs COUNT step sizes of two parallelograms, as many with the bars as parents, and a tenth as many of forty parallelograms.
//! Prints a line for every run whose energy is off by more than 0.12 J (h/0.01 s)^2 (chains of 40: 0.3 J, at least 0.05 J), that failed, or
//! whose cranks part, and the worst of all. Fails if there are any.

#[path = "common/cranks.rs"]
mod cranks;

use cranks::{Linkage, Run, landings, of_forty, of_two, sweep};
use std::error::Error;

/// How far cranks may part, m: joints that gave way let them by less, other branches by far more.
const PARTED: f64 = 1e-3;

/// Returns how many are bad.
fn report(title: &str, runs: &[(String, Run, f64)]) -> usize {
    println!("== {title}");
    let bad = runs.iter().filter(|(what, r, limit)| {
        let ok = r.failure.is_none() && r.energy[0] <= *limit && r.spread <= PARTED;
        if !ok {
            println!(
                "{what}: energy {:.3e} of {limit:.3e} J, spread {:.1e} m, {} steps{}",
                r.energy[0],
                r.spread,
                r.stats.steps,
                r.failure
                    .as_ref()
                    .map_or(String::new(), |e| format!(", {e}"))
            );
        }
        !ok
    });
    let bad = bad.count();
    let most = |f: &dyn Fn(&Run, f64) -> f64| {
        let each = runs.iter().map(|(_, r, limit)| f(r, *limit));
        each.fold(0.0, f64::max)
    };
    println!(
        "{bad} of {} bad, {} treated steps; worst energy {:.3} of the limit (off flat {:.3}), gap {:.1e} m, after compliant steps {:.1e} m, spread {:.1e} m",
        runs.len(),
        runs.iter().map(|(_, r, _)| r.stats.treated).sum::<usize>(),
        most(&|r, l| r.energy[0] / l),
        most(&|r, l| r.energy[1] / l),
        most(&|r, _| r.gap[0]),
        most(&|r, _| r.gap[1]),
        most(&|r, _| r.spread)
    );
    bad
}

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(300), |a| a.parse())?;
    let mut bad = 0;
    for bars_are_parents in [false, true] {
        let linkage = Linkage {
            parallelograms: 2,
            bars_are_parents,
        };
        let runs = sweep(linkage, (0.0, 1.0), count, of_two);
        bad += report(
            &format!("two, 10 s, bars are parents: {bars_are_parents}"),
            &runs,
        );
    }
    bad += report(
        "forty, 10 s",
        &sweep(40.into(), (1.5, 0.0), count / 10, of_forty),
    );
    for h in [0.02, 0.01, 0.005] {
        let limit = 0.12 * (h / 0.01_f64).powi(2);
        let runs = landings(2, (0.0, 1.0), h, (10.0 / h) as usize, limit);
        bad += report(&format!("two, landing near flat at h = {h} s"), &runs);
    }
    let runs = landings(40, (1.5, 0.0), 0.005, 2000, 0.075);
    bad += report("forty, landing near flat at h = 0.005 s", &runs);
    match bad {
        0 => Ok(()),
        n => Err(format!("{n} runs are bad").into()),
    }
}
