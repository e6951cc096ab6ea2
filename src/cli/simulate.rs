//! `simulate`: from the initial state with the guessed controls.

use super::gradient::control_name;
use super::progress::Progress;
use super::verdict::{OVERLAP, judge, warn_of_doubts, warn_of_overlap};
use super::{
    Failure, Integrator, animate, figure_format, model, positive, print_result, report, room,
    shown, stop_on_interrupt, write, write_trajectory,
};
use least_action::dynamics::{Dynamics, Step, StepError, StepFailure, stop_requested, unstopped};
use least_action::format::recording::Recording;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Mechanical, Substeps};
use least_action::plot::{Format, render_overview};
use least_action::rollout::{Balance, RolloutStats, Trajectory, balance_with};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// A problem or a mechanism
    file: PathBuf,
    /// Simulate this long, s
    #[arg(long, value_name = "S", value_parser = positive, allow_negative_numbers = true)]
    duration: Option<f64>,
    /// Time step, s
    #[arg(long, value_name = "H", value_parser = positive, allow_negative_numbers = true)]
    step: Option<f64>,
    #[command(flatten)]
    integrator: Integrator,
    /// Write and draw every N-th knot only, and the last one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Write the trajectory: .csv or .json
    #[arg(long, value_name = "TRAJECTORY")]
    out: Option<PathBuf>,
    /// Draw it: .svg or .png
    #[arg(long, value_name = "FIGURE")]
    plot: Option<PathBuf>,
    /// Show it in motion: .html, .glb, .gif or .png
    #[arg(long, value_name = "FILE")]
    animate: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Reads a trajectory out: its energy balance, and where it is to be written or drawn a recording of every so many knots.
/// A stop that is requested here cuts both short, one that ended the simulation does not. `last` becomes the last knot read.
fn read(
    model: &Model,
    t: &Trajectory,
    every: Option<usize>,
    last: &mut Option<usize>,
) -> Result<(Balance, Option<Recording>), StepError> {
    let mut progress = Progress::new("reading out", t.steps() as u64);
    let mut go_on = |k: usize| {
        *last = Some(k);
        progress.at(k as u64, String::new);
        match stop_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let mut found = || match every {
        Some(every) => {
            let (recording, balance) = format::record_every(model, t, every, &mut go_on)?;
            Ok((balance, Some(recording)))
        }
        None => {
            let system = &model.system;
            let balance = balance_with(system, t, &mut system.work(), |at, _| go_on(at.k))?;
            Ok((balance, None))
        }
    };
    let found = match stop_requested() {
        true => unstopped(found),
        false => found(),
    };
    progress.finish();
    found
}

/// Times that a motion is read after a knot that could not be. The knot before is the end then, which is read in another way and may fail,
/// too: each time twice as many knots are left out, a thousand in all.
const READINGS: u32 = 10;

/// [`read`] as far as the knots can be read. If one cannot, the run has failed there: the trajectory ends with the knot before, so
/// that the last state is reported.
fn read_as_far(
    model: &Model,
    t: &mut Trajectory,
    rolled: &mut Result<(), StepError>,
    every: Option<usize>,
) -> Result<(Balance, Option<Recording>), Failure> {
    for k in 0..READINGS {
        let mut last = None;
        let found = read(model, t, every, &mut last);
        let (Err(e), Some(last)) = (&found, last) else {
            return found.map_err(Failure::unsolved);
        };
        if rolled.is_ok() {
            *rolled = Err(e.clone());
        }
        t.truncate(last.saturating_sub((1 << k) - 1));
    }
    read(model, t, every, &mut None).map_err(Failure::unsolved)
}

/// What a simulation under a policy came to, of the system alone, as far as the policy sees. If it does not see a knot, the run has failed
/// there, and the knots before are reported.
fn alone(model: &Model, mut found: Rolled) -> Result<Rolled, Failure> {
    let mut left_out = 1;
    loop {
        let steps = found.trajectory.steps();
        match unstopped(|| model.alone(&found.trajectory)) {
            Ok(all) => {
                let Some(trajectory) = all.into_iter().next() else {
                    return Err(Failure::unsolved("there is no scenario"));
                };
                return Ok(Rolled {
                    trajectory,
                    ..found
                });
            }
            Err(e) if steps == 0 => return Err(Failure::unsolved(e)),
            Err(e) => {
                if found.rolled.is_ok() {
                    found.rolled = Err(e);
                }
                found.trajectory.truncate(steps.saturating_sub(left_out));
                left_out *= 2;
            }
        }
    }
}

/// Tells where guessed controls are outside of their bounds, which nothing keeps here.
fn note_bounds(model: &Model) {
    let all = model.problem.with_bounds(&model.problem.guess).enumerate();
    let mut outside = all.filter(|(_, (u, (l, h)))| *u < l || *u > h);
    if let Some((i, (u, (l, h)))) = outside.next() {
        let name = control_name(
            model,
            i % model.problem.bounds.len(),
            i / model.problem.bounds.len(),
        );
        let others = match outside.count() {
            0 => String::new(),
            n => format!(", as are {n} others"),
        };
        eprintln!(
            "note: the guess of {name} is {u}, outside of its bounds {l} and {h}{others}; it acts as it is, `solve` begins at the bound"
        );
    }
}

/// What a simulation came to.
struct Rolled {
    trajectory: Trajectory,
    rolled: Result<(), StepError>,
    stats: RolloutStats,
    seconds: f64,
}

/// Simulates with the guessed controls, as far as it goes.
fn roll<D: Dynamics>(system: &D, model: &Model, x0: &[f64]) -> Rolled {
    let mut t = Trajectory::new(system, model.problem.intervals.clone(), x0);
    t.u[..model.problem.guess.len()].copy_from_slice(&model.problem.guess);
    model.problem.set_intervals(&mut t);
    let (mut w, mut stats) = (system.work(), RolloutStats::default());
    let mut progress = Progress::new("simulating", t.steps() as u64);
    let start = Instant::now();
    let rolled = t.roll_with(system, &mut w, &mut stats, |k| {
        progress.at(k as u64, String::new);
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    progress.finish();
    if rolled.is_err() {
        t.truncate(stats.steps);
    }
    Rolled {
        trajectory: t,
        rolled,
        stats,
        seconds,
    }
}

/// Refuses paths that cannot be written, before anything is simulated; the format of the figure.
fn check_paths(a: &Arguments) -> Result<Option<Format>, Failure> {
    let figure = a.plot.as_deref().map(figure_format).transpose()?;
    let ends_in = |ending| move |path: &&PathBuf| path.extension().is_some_and(|e| e == ending);
    if let Some(path) = a
        .out
        .iter()
        .find(|p| !(ends_in("csv")(p) || ends_in("json")(p)))
    {
        return Err(Failure::input(format!(
            "`{}` is no trajectory; end its path in .csv or .json",
            path.display()
        )));
    }
    a.animate.as_deref().map(animate::format).transpose()?;
    let mut written = a.out.iter().chain(&a.plot).chain(&a.animate);
    written.try_for_each(|p| room(p))?;
    Ok(figure)
}

/// Simulates the model, under its policy if it has one, from its initial state.
fn simulate(model: &Model) -> Result<Rolled, Failure> {
    if model.is_plain {
        return Ok(roll(&model.system, model, &model.x0));
    }
    let extended = model.extended();
    let p = &model.problem.parameters;
    let x0 = model.problem.start(&extended, p, &mut extended.work());
    let x0 = x0.map_err(Failure::unsolved)?;
    alone(model, roll(&extended, model, &x0))
}

/// Writes what is asked for; the files' names.
fn write_files(
    a: &Arguments,
    figure: Option<Format>,
    recording: &Recording,
) -> Result<Vec<String>, Failure> {
    let mut files = vec![];
    if let Some(path) = &a.out {
        write_trajectory(path, recording)?;
        files.push(shown(path));
    }
    if let (Some(path), Some(format)) = (&a.plot, figure)
        && let Some(bytes) = render_overview(recording, format).map_err(Failure::input)?
    {
        files.push(shown(&write(path, &bytes)?));
    }
    if let Some(path) = &a.animate {
        files.push(shown(&animate::write_one(path, recording)?));
    }
    Ok(files)
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let overrides = a.integrator.over(Overrides {
        duration: a.duration,
        time_step: a.step,
        usual_substeps: Substeps::Auto,
        ..Overrides::default()
    });
    let figure = check_paths(a)?;
    stop_on_interrupt();
    let model = model(&a.file, &overrides)?;
    note_bounds(&model);
    let Rolled {
        trajectory: mut t,
        mut rolled,
        stats,
        seconds,
    } = simulate(&model)?;
    let is_written = a.out.is_some() || a.plot.is_some() || a.animate.is_some();
    let every = is_written.then_some(a.every as usize);
    let (balance, mut recording) = read_as_far(&model, &mut t, &mut rolled, every)?;
    let last = balance.kinetic.len() - 1;
    if last < t.steps() {
        t.truncate(last);
        rolled = Err(StepError::stopped(t.intervals.iter().sum()));
    }
    rolled = judge(&model, &t, &balance, rolled);
    let status = match &rolled {
        Ok(()) => "done",
        Err(e) if e.failure == StepFailure::Stopped => "interrupted",
        Err(_) => "failed",
    };
    let mut files = vec![];
    if let Some(recording) = &mut recording {
        recording.status = status.into();
        files = write_files(a, figure, recording)?;
    }
    let report = Report::of(&model, &t, &balance, stats, seconds)?;
    let doubts = warn_of_doubts(&model, &t, &balance, &stats, rolled.is_ok());
    warn_of_overlap(&model, report.penetration);
    if a.json {
        print_result(report.to_json(status, rolled.as_ref().err(), &files));
    } else {
        report.print(&files);
    }
    if stats.fallbacks > 0 {
        eprintln!(
            "note: {} factorizations needed {}",
            stats.fallbacks,
            model.system.matrix().fallback
        );
    }
    doubts.and(rolled).map_err(Failure::unsolved)
}

/// Results of a simulation, as printed and as JSON.
struct Report<'a> {
    model: &'a Model,
    t: &'a Trajectory,
    balance: &'a Balance,
    stats: RolloutStats,
    /// Of the simulation, s.
    seconds: f64,
    /// Largest violation of joints, and the largest in steps that were treated at singular positions, m or rad.
    violations: [f64; 2],
    /// Largest overlap at a knot, m.
    penetration: f64,
}

impl<'a> Report<'a> {
    fn of(
        model: &'a Model,
        t: &'a Trajectory,
        balance: &'a Balance,
        stats: RolloutStats,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let (system, mut penetration) = (&model.system, 0.0_f64);
        let mut w = system.work();
        for k in 0..=t.steps() {
            let deepest = system.penetration_with(&t.p, t.state(k), &mut w);
            penetration = penetration.max(deepest.map_err(Failure::unsolved)?);
        }
        let violations = report::constraint_violations(model, t, &stats);
        Ok(Self {
            model,
            t,
            balance,
            stats,
            seconds,
            violations: violations.map_err(Failure::unsolved)?,
            penetration,
        })
    }

    /// s
    fn duration(&self) -> f64 {
        // of no step it is 0, not -0
        self.t.intervals.iter().fold(0.0, |sum, h| sum + h)
    }

    /// The last knot that is not after a failure.
    fn knot_before(&self, failure: Option<&StepError>) -> usize {
        let (mut at, last) = (self.t.knot(0), self.t.steps());
        while at.k < last {
            let next = self.t.knot_after(&at);
            if failure.is_some_and(|e| next.t > e.time) {
                break;
            }
            at = next;
        }
        at.k
    }

    /// A count of all steps, by step.
    fn mean(&self, count: usize) -> f64 {
        count as f64 / self.t.steps().max(1) as f64
    }

    fn to_json(&self, status: &str, failure: Option<&StepError>, files: &[String]) -> Value {
        let (system, stats, balance) = (&self.model.system, &self.stats, self.balance);
        let last = self.knot_before(failure);
        let [violation, treated_violation] = self.violations;
        let parts = match system.choice().substeps() {
            Substeps::Equal(n) => n.get(),
            Substeps::One | Substeps::Auto => 1,
        };
        let mut value = json!({
            "status": status,
            "steps": self.t.steps(),
            "time_step": self.model.problem.intervals[0],
            "duration": self.t.knot(last).t,
            "integrator": system.choice().name(),
            "order": system.choice().order(),
            "substeps_mean": self.mean(parts * stats.parts),
            "substeps_max": parts * stats.most_parts,
            "wall_seconds": self.seconds,
            "newton_iterations_mean": self.mean(stats.iterations),
            "newton_iterations_max": stats.most_iterations,
            "max_constraint_violation": violation,
            "treated_steps": stats.treated,
            "max_treated_violation": treated_violation,
            "max_penetration": self.penetration,
            "steps_solved_to_rounding": stats.rounded,
            "energy_initial": balance.energy(0),
            "energy_final": balance.energy(last),
            "work": report::work(balance, last),
            "energy_error_max": balance.largest_error(),
            "final": report::final_state(self.model, self.t, balance, last),
            "files": files,
        });
        if let Some(e) = failure {
            value["failure"] = report::failure(e);
        }
        value
    }

    fn print(&self, files: &[String]) {
        let (m, stats) = (self.model.system.mechanism(), &self.stats);
        let [violation, treated_violation] = self.violations;
        println!(
            "{}: {} steps, {:.3} s simulated in {:.3} s, {:.2} Newton iterations a step",
            self.model.title,
            self.t.steps(),
            self.duration(),
            self.seconds,
            self.mean(stats.iterations),
        );
        if stats.most_parts > 1 {
            let (mean, most) = (self.mean(stats.parts), stats.most_parts);
            match self.model.system.choice().substeps() {
                Substeps::Auto => println!(
                    "adaptive substeps: {mean:.2} per step on average, at most {most}, for the fastest swing or turn"
                ),
                Substeps::One | Substeps::Equal(_) => println!(
                    "steps are split at impacts: {mean:.2} pieces per step on average, at most {most}"
                ),
            }
        }
        let who = if self.model.mechanism.gears.is_empty() {
            "joints"
        } else {
            "joints and gears"
        };
        println!("{who} violated by at most {violation:.1e} m or rad");
        if stats.treated > 0 {
            println!(
                "{} of the steps began at singular positions of loops; joints opened there by up to {treated_violation:.1e} m or rad",
                stats.treated
            );
        }
        if !m.contacts.is_empty() {
            let by = self.penetration;
            match by > OVERLAP {
                true => println!("bodies overlap by up to {by:.1e} m"),
                false => println!("nothing overlaps by more than {by:.1e} m"),
            }
        }
        report::print_energy(self.balance);
        for f in files {
            println!("wrote {f}");
        }
    }
}
