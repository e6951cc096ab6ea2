//! One solve by one method: progress, checkpoints, files, and what is told of it.

use super::progress::Progress;
use super::quality::Quality;
use super::{Failure, animate, number, shown, unit, warn, write, write_trajectory};
use argmin::core::observers::Observe as Observer;
use argmin::core::{Error, KV};
use least_action::dynamics::{Observe, Step, unstopped};
use least_action::format::{self, Model};
use least_action::optimize::{
    Bound, Checkpoint, Checkpoints, Iteration, Method, Options, Remedy, Solution, Solve,
    SolveState, Status,
};
use least_action::plot::{Figure, Format, render};
use least_action::rollout::{Balance, Trajectory};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest time between two checkpoints.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_secs(2);

/// What is drawn of a solution.
#[derive(Clone, Copy)]
pub struct Pictures {
    pub figures: Format,
    /// Is there an animation, too?
    pub animation: bool,
}

/// The system as the problem needs it, solved.
fn solved(
    m: &Model,
    options: Options,
    checkpoints: Checkpoints,
    shown: Shown,
) -> Result<Solved, Error> {
    fn on<D: Observe>(
        d: &D,
        m: &Model,
        options: Options,
        checkpoints: Checkpoints,
        shown: Shown,
    ) -> Result<Solution, Error> {
        Solve::new(d, &m.problem)
            .with_options(options)
            .with_checkpoint(checkpoints)
            .with_observer(shown)
            .run()
    }
    let solution = if m.is_plain {
        on(&m.system, m, options, checkpoints, shown)?
    } else {
        on(&m.extended(), m, options, checkpoints, shown)?
    };
    let (parameters, bounds) = (
        solution.trajectory.p.clone(),
        solution.parameters_at_bounds(&m.problem),
    );
    let (mut scenarios, mut costs) = (vec![], vec![]);
    let mut decided = vec![];
    let solution = match m.is_plain {
        true => {
            decided.push(solution.trajectory.clone());
            solution
        }
        false => {
            decided = m.decided(&solution.trajectory);
            let each = m.alone(&solution.trajectory)?;
            let first = each.first().cloned();
            if each.len() > 1 {
                scenarios = each;
                if solution.objective.is_finite() {
                    costs = m.costs(&solution.trajectory)?;
                }
            }
            alone(m, solution, first)
        }
    };
    Ok(Solved {
        costs,
        parameters,
        bounds,
        solution,
        scenarios,
        decided,
    })
}

/// A solution, and what is the problem's beside its system's.
struct Solved {
    /// Of the system alone, the first where there are several.
    solution: Solution,
    /// Trajectories of all scenarios, where there are several.
    scenarios: Vec<Trajectory>,
    /// The trajectory of each scenario, or of the only one, under its policy.
    decided: Vec<Trajectory>,
    /// What each of these costs.
    costs: Vec<f64>,
    /// All parameters, with the bounds that they ended at.
    parameters: Vec<f64>,
    bounds: Vec<Option<Bound>>,
}

/// A solution of the extended system as one of the system alone. Its feedback is by the state, and by the controls before
/// where their rates matter; what it says of sums is left out.
fn alone(m: &Model, mut s: Solution, trajectory: Option<Trajectory>) -> Solution {
    let controls = if m.remembers { m.system.dims().nu } else { 0 };
    let columns = m.system.dims().ndx + controls;
    if m.problem.bounds.is_empty() || !m.scenarios.is_empty() {
        // the policy is the feedback; of several scenarios it is by the states of all
        s.gains = None;
    }
    if let Some(gains) = &mut s.gains {
        let all = std::mem::take(&mut gains.feedback).into_iter();
        gains.feedback = all.map(|g| g.columns(0, columns).into_owned()).collect();
    }
    Solution {
        trajectory: trajectory.unwrap_or_else(|| s.trajectory.of_system(&m.system)),
        ..s
    }
}

/// Shows every iteration.
struct Shown {
    progress: Progress,
    /// When it began, and of learners how many rollouts there were then.
    start: Instant,
    rollouts: Option<u64>,
    /// [`Method::measures`]
    measures: (&'static str, &'static str),
}

impl Shown {
    fn new(method: Method, most: u64) -> Self {
        Self {
            progress: Progress::new("solving", most),
            start: Instant::now(),
            rollouts: None,
            measures: method.measures(),
        }
    }

    /// An iteration of a learner: the best so far, and the mean of the iteration.
    fn learnt(now: &Iteration, rollouts: u64, since: Instant) -> String {
        let mean = now.mean.map_or("none".into(), |m| format!("{m:.6}"));
        let gradients = match (now.gradient_mean, now.gradient_largest, now.clipped) {
            (Some(mean), Some(largest), Some(clipped)) => {
                let kind = match now.smoothing > 0.0 {
                    true => "relaxed",
                    false => "exact",
                };
                format!("  {kind} gradients {mean:.1e}, largest {largest:.1e}, {clipped} clipped")
            }
            _ => String::new(),
        };
        format!(
            "objective {:.6}  mean {mean}  violation {:.1e}  failed {}  rollouts/s {:.0}{gradients}",
            now.objective,
            now.violation,
            now.failures.unwrap_or(0),
            rollouts as f64 / since.elapsed().as_secs_f64(),
        )
    }
}

impl Observer<SolveState> for Shown {
    fn observe_iter(&mut self, state: &SolveState, _: &KV) -> Result<(), Error> {
        let Some(now) = state.last() else {
            return Ok(());
        };
        if let Some(all) = now.rollouts {
            let before = *self.rollouts.get_or_insert(all);
            let start = self.start;
            let show = || Self::learnt(now, all - before, start);
            self.progress.at(now.iteration, show);
            return Ok(());
        }
        let made = argmin::core::State::get_iter(state) + 1;
        self.progress.at(made, || {
            // the level, where derivatives through contact are relaxed, or the steps softened
            let smoothing = match (now.smoothing, now.softened) {
                (0.0, _) => String::new(),
                (level, false) => format!("  smoothing {level:.0e}"),
                (level, true) => format!("  softened to {level:.0e}"),
            };
            let (optimality, regularization) = self.measures;
            format!(
                "objective {:.6}  violation {:.1e}  {optimality} {:.1e}  step {:.1e}  {regularization} {:.0e}{smoothing}",
                now.objective, now.violation, now.optimality, now.step_length, now.regularization,
            )
        });
        Ok(())
    }

    fn observe_final(&mut self, _: &SolveState) -> Result<(), Error> {
        self.progress.finish();
        Ok(())
    }
}

/// What a method found, and the files it is in.
pub struct Outcome {
    pub method: Method,
    pub solution: Solution,
    pub seconds: f64,
    pub out: PathBuf,
    pub files: Vec<PathBuf>,
    /// Of the only scenario, or of each by its name.
    quality: Vec<(String, Quality)>,
    /// Of each scenario, where there are several.
    costs: Vec<f64>,
    parameters: Map<String, Value>,
    values: Vec<f64>,
    /// The parameters that ended at a bound.
    at_bounds: Map<String, Value>,
    /// Standard deviations, where the method tells them.
    deviations: Map<String, Value>,
}

/// Standard deviations of the parameters that were found, by their names; null where they are not determined.
fn deviations(solution: &Solution, names: impl Iterator<Item = String>) -> Map<String, Value> {
    let Some(covariance) = &solution.covariance else {
        return Map::new();
    };
    let names: Vec<String> = names.collect();
    let each = covariance
        .parameters
        .iter()
        .zip(covariance.standard_deviations());
    each.filter_map(|(p, s)| Some((names.get(*p)?.clone(), json!(s))))
        .collect()
}

/// Where a method keeps its checkpoint.
pub fn checkpoint_path(out: &Path) -> PathBuf {
    out.join("checkpoint.json")
}

/// The checkpoint to go on from, refused if it is one of something else.
pub fn checkpoint(method: Method, model: &Model, out: &Path) -> Result<Checkpoint, Failure> {
    let path = checkpoint_path(out);
    if !path.exists() {
        return Err(Failure::input(format!(
            "there is no checkpoint `{}` to go on from; solve without --resume first, or say with --out where it is",
            path.display()
        )));
    }
    let found = format::read_checkpoint(&path)?;
    let refused = |why: &str| {
        Failure::input(format!(
            "cannot go on from `{}`: {why}; solve anew, without --resume, which replaces it, or choose another --out",
            path.display()
        ))
    };
    // the method first: it says best what to do
    if found.method != method.name() {
        return Err(refused(&format!(
            "it was written by the method `{0}`, not by `{1}` (go on with --method {0})",
            found.method,
            method.name()
        )));
    }
    if found.problem != model.fingerprint() {
        return Err(refused("the problem has changed since it was written"));
    }
    let fits = found.fits(method, &model.problem);
    fits.map_err(|e| refused(&e)).map(|()| found)
}

/// Solves and writes everything into `out`.
pub fn run(
    method: Method,
    model: &Model,
    resume: Option<Checkpoint>,
    out: &Path,
    pictures: Pictures,
) -> Result<Outcome, Failure> {
    tell(method, model, resume.is_some());
    let start = Instant::now();
    let options = model.options.of(method);
    let shown = Shown::new(method, options.max_iterations());
    let (place, problem) = (checkpoint_path(out), model.fingerprint());
    let mut told = false;
    let save = |now: Checkpoint| {
        let now = Checkpoint {
            problem: problem.clone(),
            ..now
        };
        if let Err(e) = format::write_json(&place, &now)
            && !std::mem::replace(&mut told, true)
        {
            warn(format!("no checkpoint is kept: {e}"));
        }
        Ok(())
    };
    let checkpoints = Checkpoints::new(resume, BETWEEN_CHECKPOINTS, save);
    let found = solved(model, options, checkpoints, shown).map_err(Failure::unsolved)?;
    let solution = found.solution;
    let seconds = start.elapsed().as_secs_f64();
    let (mut files, balances) = unstopped(|| match &found.scenarios[..] {
        [] => written(model, &solution, out, pictures).map(|(files, one)| (files, vec![one])),
        all => written_each(model, &solution, all, out, pictures),
    })?;
    files.extend(place.exists().then_some(place));
    let names = model.parameters().into_iter().map(|p| p.name);
    let values = found.parameters.iter().map(|v| json!(v));
    let bounds = found.bounds;
    let at = |(name, bound): (String, Option<Bound>)| Some((name, json!(bound?)));
    Ok(Outcome {
        method,
        quality: qualities(
            model,
            &solution.trajectory,
            &found.scenarios,
            &found.decided,
            balances,
        ),
        costs: found.costs,
        at_bounds: names.clone().zip(bounds).filter_map(at).collect(),
        deviations: deviations(&solution, names.clone()),
        parameters: names.zip(values).collect(),
        values: found.parameters,
        solution,
        seconds,
        out: out.to_owned(),
        files,
    })
}

/// How well the discretization of each scenario holds, or of the only one.
fn qualities(
    model: &Model,
    only: &Trajectory,
    each: &[Trajectory],
    decided: &[Trajectory],
    balances: Vec<Balance>,
) -> Vec<(String, Quality)> {
    let several = model.scenarios.iter().zip(each);
    let mut all: Vec<_> = several.map(|(s, t)| (&*s.name, &s.model, t)).collect();
    if all.is_empty() {
        all.push(("", model, only));
    }
    let found =
        all.into_iter()
            .zip(decided)
            .zip(balances)
            .filter_map(|(((name, m, t), decided), b)| {
                let quality = Quality::of(m, t, decided, b).inspect(|q| q.warn(m, t))?;
                Some((name.to_owned(), quality))
            });
    found.collect()
}

/// Tells people what begins, and what of the file is left aside.
fn tell(method: Method, model: &Model, resumes: bool) {
    eprintln!(
        "{} {} by {}, {} unknown controls{}",
        if resumes { "going on with" } else { "solving" },
        model.title,
        method.title(),
        model.problem.guess.len(),
        match model.problem.free_parameters().len() {
            0 => String::new(),
            1 => " and 1 unknown parameter".into(),
            n => format!(" and {n} unknown parameters"),
        }
    );
    if !(method.takes_states() || model.problem.guess_states.is_empty()) {
        eprintln!(
            "note: {} simulates from the start and leaves the states of [guess] aside; --method {} takes them",
            method.title(),
            Method::Ddp.name()
        );
    }
    for (field, owners) in model.options.foreign(method) {
        let owners: Vec<&str> = owners.iter().map(|m| m.name()).collect();
        eprintln!(
            "note: {field} in [method] is a setting of {}; {} leaves it aside",
            owners.join(", "),
            method.name()
        );
    }
}

/// Writes trajectory, gains, history and figures; returns where, and the energy balance that was read for them.
fn written(
    model: &Model,
    solution: &Solution,
    out: &Path,
    pictures: Pictures,
) -> Result<(Vec<PathBuf>, Balance), Failure> {
    let t = &solution.trajectory;
    let mut progress = Progress::new("reading out", t.steps() as u64);
    let mut go_on = |k: usize| {
        progress.at(k as u64, String::new);
        ControlFlow::Continue(())
    };
    let (mut recording, balance) =
        format::record_every(model, t, 1, &mut go_on).map_err(Failure::unsolved)?;
    progress.finish();
    recording.status = solution.status.name().into();
    recording.convergence.clone_from(&solution.history);
    let mut files = vec![out.join("trajectory.csv"), out.join("trajectory.json")];
    for path in &files {
        write_trajectory(path, &recording)?;
    }
    let gains = out.join("gains.json");
    if let Some(feedback) = format::feedback(model, solution).map_err(Failure::unsolved)? {
        format::write_json(&gains, &feedback)?;
        files.push(gains);
    } else {
        // those of an earlier solve belong to another trajectory
        let _ = std::fs::remove_file(gains);
    }
    if !solution.history.is_empty() {
        let table = convergence(&solution.history)?;
        files.push(write(&out.join("convergence.csv"), &table)?);
    }
    for figure in Figure::ALL {
        if let Some(bytes) = render(&recording, figure, pictures.figures).map_err(Failure::input)? {
            let name = format!("{}.{}", figure.name(), pictures.figures.extension());
            files.push(write(&out.join(name), &bytes)?);
        }
    }
    if pictures.animation {
        files.push(animate::write_one(&out.join("motion.html"), &recording)?);
    }
    Ok((files, balance))
}

/// Writes every scenario into a directory of its name; returns where, and the balances.
fn written_each(
    model: &Model,
    solution: &Solution,
    each: &[Trajectory],
    out: &Path,
    pictures: Pictures,
) -> Result<(Vec<PathBuf>, Vec<Balance>), Failure> {
    let (mut files, mut balances) = (vec![], vec![]);
    for (scenario, trajectory) in model.scenarios.iter().zip(each) {
        let own = Solution {
            trajectory: trajectory.clone(),
            gains: None,
            ..solution.clone()
        };
        let place = out.join(&scenario.name);
        std::fs::create_dir_all(&place).map_err(|e| {
            Failure::unsolved(format!(
                "cannot make the directory `{}`: {e}",
                place.display()
            ))
        })?;
        let (written, balance) = written(&scenario.model, &own, &place, pictures)?;
        files.extend(written);
        balances.push(balance);
    }
    Ok((files, balances))
}

/// The history as CSV.
fn convergence(history: &[Iteration]) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(vec![]);
    for row in history {
        writer.serialize(row).map_err(Failure::input)?;
    }
    writer.into_inner().map_err(Failure::input)
}

impl Outcome {
    pub fn is_solved(&self) -> bool {
        self.solution.status.is_solved()
    }

    /// Why it is no solution.
    pub fn reason(&self) -> String {
        let s = &self.solution;
        format!("not solved ({}): {}", s.status.name(), self.advice())
    }

    /// Why it ended so, and what may help.
    fn advice(&self) -> String {
        let s = &self.solution;
        let help = match s.remedy {
            None => String::new(),
            Some(Remedy::Resume) if s.status == Status::Completed => {
                "; --resume with more --max-iterations goes on from here".into()
            }
            Some(Remedy::Resume) => "; --resume goes on from here".into(),
            Some(Remedy::Smoothing { start }) => {
                let set = match self.method {
                    Method::Ddp => "set".into(),
                    _ => format!("take the method {} with", Method::Ddp.name()),
                };
                format!(", or {set} smoothing = {{ start = {start:e} }} in [method]")
            }
            Some(Remedy::OtherSmoothing) => {
                "; other smoothing in [method] may lead lower: another start, forward = true, or false".into()
            }
        };
        format!("{}{help}", s.reason)
    }

    pub fn json(&self) -> Value {
        let s = &self.solution;
        let mut value = json!({
            "status": s.status.name(),
            "reason": self.advice(),
            "remarks": s.remarks,
            "method": self.method.name(),
            "objective": s.objective,
            "constraint_violation": s.violation,
            "optimality": s.optimality,
            "smoothing": s.smoothing,
            "iterations": s.iterations,
            "step_evaluations": s.step_evaluations,
            "gradient_evaluations": s.gradient_evaluations,
            "wall_seconds": self.seconds,
            "parameters": self.parameters,
            "parameters_at_bounds": self.at_bounds,
            "standard_deviations": self.deviations,
            "failed_rollouts": s.failed.iter().map(|f| (f.kind.clone(), json!(f.count))).collect::<Map<_, _>>(),
            "files": self.files.iter().map(|f| shown(f)).collect::<Vec<_>>(),
        });
        if let Some((_, first)) = self.quality.first() {
            first.add_to(&mut value);
        }
        let each = self
            .quality
            .iter()
            .zip(&self.costs)
            .map(|((name, q), cost)| {
                let mut own = json!({ "name": name, "cost": cost });
                q.add_to(&mut own);
                own
            });
        if !self.costs.is_empty() {
            value["scenarios"] = each.collect();
        }
        value
    }

    /// Tells people about one method's solution.
    pub fn print(&self, model: &Model) {
        let s = &self.solution;
        println!(
            "{}: {} after {} iterations, {:.2} s",
            model.title,
            s.status.name(),
            s.iterations,
            self.seconds
        );
        if s.objective.is_finite() && !s.optimality.is_finite() {
            println!(
                "objective {}, violation {:.1e}; {} steps computed",
                number(s.objective),
                s.violation,
                s.step_evaluations,
            );
        } else if s.objective.is_finite() {
            println!(
                "objective {}, violation {:.1e}, {} {:.1e}; {} steps and {} gradients computed",
                number(s.objective),
                s.violation,
                self.method.measures().0,
                s.optimality,
                s.step_evaluations,
                s.gradient_evaluations
            );
        } else {
            println!("no objective: the guess was not simulated to the end");
        }
        if self.is_solved() && !s.reason.is_empty() {
            println!("{}", self.advice());
        }
        if s.smoothing > 0.0 {
            println!(
                "promised by derivatives through contact that are relaxed to {:.0e} m^2/s^2",
                s.smoothing
            );
        }
        for remark in &s.remarks {
            println!("{remark}");
        }
        for (i, (name, quality)) in self.quality.iter().enumerate() {
            if let Some(cost) = self.costs.get(i) {
                println!("scenario {name}: cost {}", number(*cost));
            }
            quality.print();
        }
        self.print_parameters(model, "");
        println!("trajectory and figures in {}:", self.out.display());
        for f in &self.files {
            println!("  {}", shown(f));
        }
    }

    /// How well a parameter is determined, in words.
    fn deviation(&self, name: &str) -> String {
        match self.deviations.get(name) {
            None => String::new(),
            Some(value) => match value.as_f64() {
                Some(s) => format!("  standard deviation {}", number(s)),
                None => "  not determined by what is recorded".into(),
            },
        }
    }

    fn print_parameters(&self, model: &Model, of: &str) {
        let parameters = model.parameters();
        if !parameters.is_empty() {
            println!("parameters{of}");
        }
        for (p, value) in parameters.iter().zip(&self.values) {
            let bound = match self.at_bounds.get(&p.name).and_then(Value::as_str) {
                Some(bound) => format!("  at its {bound} bound"),
                None => self.deviation(&p.name),
            };
            println!(
                "  {:<24} {:>14}{}{bound}",
                p.name,
                number(*value),
                unit(&p.unit)
            );
        }
    }
}

/// Tells people how the methods compare.
pub fn print_table(model: &Model, all: &[Outcome]) {
    println!("{}", model.title);
    println!(
        "{:<20} {:<15} {:>14} {:>10} {:>10} {:>12} {:>9}",
        "method", "status", "objective", "violation", "iterations", "steps", "seconds"
    );
    for solved in all {
        let s = &solved.solution;
        println!(
            "{:<20} {:<15} {:>14} {:>10.1e} {:>10} {:>12} {:>9.2}",
            solved.method.name(),
            s.status.name(),
            if s.objective.is_finite() {
                number(s.objective)
            } else {
                "none".into()
            },
            s.violation,
            s.iterations,
            s.step_evaluations,
            solved.seconds
        );
    }
    for solved in all {
        solved.print_parameters(model, &format!(" found by {}", solved.method.name()));
    }
    for solved in all {
        println!("trajectory and figures in {}", solved.out.display());
    }
}
