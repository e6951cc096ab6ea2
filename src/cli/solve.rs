//! `solve`: finds the optimal trajectory, writes it with its figures.

use super::progress::Progress;
use super::{Failure, number, print_json, shown, write};
use argmin::core::observers::Observe;
use argmin::core::{Error, KV};
use least_action::format::{self, Overrides};
use least_action::optimize::{Iteration, Status, shooting};
use least_action::plot::{Figure, Format, render};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// A problem
    file: PathBuf,
    /// How it is solved; the file says it otherwise
    #[arg(long, value_name = "NAME", value_parser = method)]
    method: Option<String>,
    /// Where everything is written [default: out/<problem name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of the guess's noise
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Threads; the result does not depend on them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Iterations at most
    #[arg(long, value_name = "N")]
    max_iterations: Option<u64>,
    /// Figures as .png instead of .svg
    #[arg(long)]
    png: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn method(text: &str) -> Result<String, String> {
    match text {
        "shooting" => Ok(text.into()),
        "ddp" | "multiple-shooting" | "direct" | "gauss-newton" | "search" | "ars" | "cmaes"
        | "mppi" => Err("not available in this version; use `shooting`".into()),
        _ => Err("unknown method; use `shooting`".into()),
    }
}

/// Set by Ctrl-C: the solve ends with its best iterate.
static STOP: AtomicBool = AtomicBool::new(false);

/// Shows every iteration.
struct Observer(Progress);

impl Observe<shooting::ShootingState> for Observer {
    fn observe_iter(&mut self, state: &shooting::ShootingState, kv: &KV) -> Result<(), Error> {
        let value = |name: &str| {
            kv.get(name)
                .and_then(argmin::core::KvValue::get_float)
                .unwrap_or(f64::NAN)
        };
        self.0.at(state.iter + 1, || {
            format!(
                "objective {:.6}  violation {:.1e}  promised gain {:.1e}  step {:.1e}  penalty {:.0e}",
                value("objective"),
                value("violation"),
                value("optimality"),
                value("step_length"),
                value("regularization"),
            )
        });
        Ok(())
    }

    fn observe_final(&mut self, _: &shooting::ShootingState) -> Result<(), Error> {
        self.0.finish();
        Ok(())
    }
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let overrides = Overrides {
        seed: a.seed,
        ..Overrides::default()
    };
    let document = format::load(&a.file)?;
    if a.method.is_none() {
        document.solvable()?;
    }
    let mut model = document.build(&overrides)?;
    if model.problem.bounds.is_empty()
        || (model.problem.costs.is_empty() && model.problem.constraints.is_empty())
    {
        return Err(Failure::input(format!(
            "{}: nothing to solve: a problem needs [mechanism.actuators], and [[costs]] or [[constraints]]; to watch it move, use `simulate`",
            a.file.display()
        )));
    }
    if let Some(n) = a.max_iterations {
        model.options.max_iterations = n;
    }
    if let Some(n) = a.threads {
        // the pool exists already only if something was computed before, and then the result is the same
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(n as usize)
            .build_global();
    }
    let out = a
        .out
        .clone()
        .unwrap_or_else(|| Path::new("out").join(&model.name));
    std::fs::create_dir_all(&out).map_err(|e| {
        Failure::input(format!(
            "cannot make the directory `{}`: {e}; choose another with --out",
            out.display()
        ))
    })?;
    // a second Ctrl-C ends the program at once
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    eprintln!(
        "solving {} by single shooting, {} unknown controls",
        model.title,
        model.problem.guess.len()
    );
    let start = Instant::now();
    let observer = Observer(Progress::new("solving", model.options.max_iterations));
    let solution = shooting::solve(
        &model.system,
        &model.problem,
        model.options,
        observer,
        &STOP,
    )
    .map_err(Failure::unsolved)?;
    let seconds = start.elapsed().as_secs_f64();
    let recording = format::record(
        &model,
        &solution.trajectory,
        solution.status.name(),
        &solution.history,
    )
    .map_err(Failure::unsolved)?;
    let mut files = vec![out.join("trajectory.csv"), out.join("trajectory.json")];
    format::write_csv(&files[0], &recording)?;
    format::write_json(&files[1], &recording)?;
    if !solution.history.is_empty() {
        let table = convergence(&solution.history)?;
        files.push(write(&out.join("convergence.csv"), &table)?);
    }
    let (kind, ending) = if a.png {
        (Format::Png, "png")
    } else {
        (Format::Svg, "svg")
    };
    for figure in Figure::ALL {
        if let Some(bytes) = render(&recording, figure, kind).map_err(Failure::input)? {
            files.push(write(
                &out.join(format!("{}.{ending}", figure.name())),
                &bytes,
            )?);
        }
    }
    let status = solution.status.name();
    if a.json {
        print_json(&json!({
            "status": status,
            "reason": solution.reason,
            "method": "shooting",
            "objective": solution.objective,
            "constraint_violation": solution.violation,
            "optimality": solution.optimality,
            "iterations": solution.iterations,
            "step_evaluations": solution.step_evaluations,
            "gradient_evaluations": solution.gradient_evaluations,
            "wall_seconds": seconds,
            "parameters": {},
            "files": files.iter().map(|f| shown(f)).collect::<Vec<_>>(),
        }));
    } else {
        println!(
            "{}: {status} after {} iterations, {seconds:.2} s",
            model.title, solution.iterations
        );
        println!(
            "objective {}, violation {:.1e}, promised gain {:.1e}; {} steps and {} gradients computed",
            number(solution.objective),
            solution.violation,
            solution.optimality,
            solution.step_evaluations,
            solution.gradient_evaluations
        );
        println!("trajectory and figures in {}:", out.display());
        for f in &files {
            println!("  {}", shown(f));
        }
    }
    if solution.status == Status::Converged {
        return Ok(());
    }
    Err(Failure::unsolved(format!(
        "not solved ({status}): {}",
        solution.reason
    )))
}

/// The history as CSV.
fn convergence(history: &[Iteration]) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(vec![]);
    for row in history {
        writer.serialize(row).map_err(Failure::input)?;
    }
    writer.into_inner().map_err(Failure::input)
}
