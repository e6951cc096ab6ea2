//! A solver of argmin's that is none of our methods, on a problem of ours: nonlinear conjugate gradients tune the springs and
//! dampers of a chain of three links.
//!
//! `cargo run --release --example argmin`

use argmin::core::{Executor, State};
use argmin::solver::conjugategradient::NonlinearConjugateGradient;
use argmin::solver::conjugategradient::beta::PolakRibierePlus;
use argmin::solver::linesearch::MoreThuenteLineSearch;
use least_action::dynamics::Step;
use least_action::format::{self, Overrides};
use least_action::optimize::Reduced;
use std::path::Path;

/// Iterations.
const MOST: u64 = 30;

/// Tunes `problems/damper_tuning.toml`; the objective of its guess, and what was found, by name.
#[allow(clippy::type_complexity, reason = "an example")]
pub fn tune() -> Result<(f64, f64, Vec<(String, f64)>), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/damper_tuning.toml");
    let model = format::load(&file)?.build(&Overrides::default())?;

    // the plugging itself
    let reduced = Reduced::new(&model.system, &model.problem)?;
    let search = MoreThuenteLineSearch::new();
    let solver = NonlinearConjugateGradient::new(search, PolakRibierePlus::new());
    let found = Executor::new(&reduced, solver)
        .configure(|state| state.param(reduced.guess()).max_iters(MOST))
        .run()?;
    let best = found.state.get_best_param().ok_or("nothing was found")?;
    let objective = reduced.objective(best)?;
    let values = reduced.point(best)?.parameters;

    let names = model.system.parameters().into_iter().map(|p| p.name);
    let guess = reduced.objective(&reduced.guess())?;
    Ok((guess, objective, names.zip(values).collect()))
}

#[allow(dead_code, reason = "a test runs the same")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (guess, objective, found) = tune()?;
    println!("energy over time {guess:.4} J s, tuned {objective:.4} J s, with");
    for (name, value) in found {
        println!("{name:>16} {value:8.4}");
    }
    Ok(())
}
