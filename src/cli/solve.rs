//! `solve`: finds the optimal trajectory, writes it with its figures.

use super::method::{
    Outcome, Pictures, checkpoint, checkpoint_path, print_table, run as run_method,
};
use super::{Failure, Integrator, print_result, stop_on_interrupt};
use least_action::dynamics::stop_requested;
use least_action::format::{FormatError, Model, Overrides};
use least_action::optimize::{Checkpoint, Method};
use least_action::plot::Format;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// A problem
    file: PathBuf,
    /// How it is solved, `all` for a table of every method but the learners that the file does not name; the file says it
    /// otherwise
    #[arg(long, value_name = "NAME", value_parser = method)]
    method: Option<String>,
    /// Where everything is written; with --method all in a directory for each [default: out/<problem name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    integrator: Integrator,
    /// Seed of the guess's noise, and of a learner or a swarm
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Threads; the result does not depend on them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Iterations at most, in this run; of learners in all runs that go on from each other
    #[arg(long, value_name = "N")]
    max_iterations: Option<u64>,
    /// Go on from the checkpoint that the last run left in its directory, as after Ctrl-C
    #[arg(long)]
    resume: bool,
    /// Figures as .png instead of .svg
    #[arg(long)]
    png: bool,
    /// Write an animation beside the figures, motion.html
    #[arg(long)]
    animate: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn method(text: &str) -> Result<String, String> {
    let names = Method::names();
    match text {
        _ if text == "all" || names.contains(&text) => Ok(text.into()),
        _ => Err(format!(
            "unknown method; use `{}` or `all`",
            names.join("`, `")
        )),
    }
}

/// A method, where it writes, and what it goes on from.
type Task = (Method, PathBuf, Option<Checkpoint>);

/// The methods that a name asks for. Learners take many rollouts, and no two of their seeds compare: of `all` they are
/// part only where the file names them.
fn chosen<'a>(name: &'a str, model: &'a Model) -> impl Iterator<Item = Method> + 'a {
    let of_all = |m: &Method| !m.is_learner() || m.name() == model.options.name;
    let asked = move |m: &Method| match name {
        "all" => of_all(m),
        name => m.name() == name,
    };
    Method::ALL.into_iter().filter(asked)
}

/// What is to be done. Nothing is written before all of it is known to be possible.
fn tasks(a: &Arguments, name: &str, model: &Model) -> Result<Vec<Task>, Failure> {
    let out = a
        .out
        .clone()
        .unwrap_or_else(|| Path::new("out").join(&model.name));
    let all = name == "all";
    let of = |m: Method| if all { out.join(m.name()) } else { out.clone() };
    let mut chosen: Vec<(Method, PathBuf)> = vec![];
    for method in self::chosen(name, model) {
        let options = model.options.of(method);
        let fits = match model.is_plain {
            true => options.fits(&model.system, &model.problem),
            false => options.fits(&model.extended(), &model.problem),
        };
        match fits {
            Ok(()) => chosen.push((method, of(method))),
            Err(why) if all => eprintln!("note: {why}"),
            Err(why) => return Err(Failure::input(format!("{}: {why}", method.name()))),
        }
    }
    let started = chosen.iter().any(|(_, o)| checkpoint_path(o).exists());
    let mut tasks = vec![];
    for (method, out) in chosen {
        // of several methods the last run may not have come to all
        let resumes = a.resume && (!all || !started || checkpoint_path(&out).exists());
        let from = resumes.then(|| checkpoint(method, model, &out));
        tasks.push((method, out, from.transpose()?));
    }
    for (_, out, _) in &tasks {
        std::fs::create_dir_all(out).map_err(|e| {
            Failure::input(format!(
                "cannot make the directory `{}`: {e}; choose another with --out",
                out.display()
            ))
        })?;
    }
    Ok(tasks)
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let overrides = a.integrator.over(Overrides {
        seed: a.seed,
        ..Overrides::default()
    });
    let document = super::load(&a.file)?;
    let name = a.method.as_deref().unwrap_or(document.method_name());
    let mut model = document.build(&overrides)?;
    let problem = &model.problem;
    if (problem.bounds.is_empty() && problem.free_parameters().is_empty())
        || (problem.costs.is_empty() && problem.constraints.is_empty())
    {
        return Err(FormatError::of_file(
            &a.file,
            "nothing to solve: a problem needs [mechanism.actuators] or [parameters], and [[costs]] or [[constraints]]",
            "add them; to watch it move, use `simulate`",
        )
        .into());
    }
    if let Some(n) = a.max_iterations {
        model.options.max_iterations = Some(n);
    }
    let is_random =
        |m: Method| m.is_learner() || matches!(m, Method::ParticleSwarm | Method::Direct);
    if chosen(name, &model).any(is_random) {
        model.options.seed = a.seed.or(model.options.seed);
    }
    for method in chosen(name, &model) {
        let fits = model.options.of(method).check();
        fits.map_err(|e| Failure::input(format!("{}: {e}", method.name())))?;
    }
    if name == "all" {
        let left: Vec<&str> = (Method::ALL.into_iter())
            .filter(|m| m.is_learner() && !chosen(name, &model).any(|c| c == *m))
            .map(Method::name)
            .collect();
        eprintln!(
            "note: all leaves the learners {} aside; --method NAME runs one",
            left.join(", ")
        );
    }
    // this thread is one of them: work handed over waits for a thread to wake, which costs short iterations a tenth. The pool
    // exists already only if something was computed before, and then the result is the same
    let _ = rayon::ThreadPoolBuilder::new()
        .num_threads(a.threads.unwrap_or(0) as usize)
        .use_current_thread()
        .build_global();
    let tasks = tasks(a, name, &model)?;
    stop_on_interrupt();
    let pictures = Pictures {
        figures: if a.png { Format::Png } else { Format::Svg },
        animation: a.animate,
    };
    let mut done: Vec<Outcome> = vec![];
    for (method, out, from) in tasks {
        if stop_requested() && !done.is_empty() {
            break;
        }
        done.push(run_method(method, &model, from, &out, pictures)?);
    }
    match (name, &done[..]) {
        ("all", _) if a.json => {
            print_result(json!({ "methods": done.iter().map(Outcome::json).collect::<Vec<_>>() }));
        }
        ("all", _) => print_table(&model, &done),
        (_, all) => all.iter().for_each(|solved| {
            if a.json {
                print_result(solved.json());
            } else {
                solved.print(&model);
            }
        }),
    }
    if done.iter().any(Outcome::is_solved) {
        return Ok(());
    }
    let reasons: Vec<String> = done.iter().map(Outcome::reason).collect();
    Err(Failure::unsolved(reasons.join("\n")))
}
