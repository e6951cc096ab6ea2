//! `simulate`: from the initial state with the guessed controls.

use super::progress::Progress;
use super::{
    Failure, Integrator, figure_format, model, positive, print_json, report, room, shown,
    stop_on_interrupt, write,
};
use least_action::dynamics::{Step, StepFailure, stop_requested};
use least_action::format::{self, Overrides};
use least_action::integrator::Mechanical;
use least_action::plot::render_overview;
use least_action::rollout::{RolloutStats, Trajectory};
use serde_json::json;
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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of a number in a file, about, for the progress.
const BYTES: u64 = 19;
const MEGABYTE: u64 = 1 << 20;

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let overrides = a.integrator.over(Overrides {
        duration: a.duration,
        time_step: a.step,
        ..Overrides::default()
    });
    let figure = a.plot.as_deref().map(figure_format).transpose()?;
    let csv = match &a.out {
        None => false,
        Some(path) => match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => true,
            Some("json") => false,
            _ => {
                return Err(Failure::input(format!(
                    "a trajectory is .csv or .json, not `{}`",
                    path.display()
                )));
            }
        },
    };
    a.out.iter().chain(&a.plot).try_for_each(|p| room(p))?;
    stop_on_interrupt();
    let model = model(&a.file, &overrides)?;
    let system = &model.system;
    let mut t = Trajectory::new(system, model.problem.intervals.clone(), &model.x0);
    t.u.copy_from_slice(&model.problem.guess);
    let (mut w, mut stats) = (system.work(), RolloutStats::default());
    let mut progress = Progress::new("simulating", t.steps() as u64);
    let start = Instant::now();
    let rolled = t.roll_with(system, &mut w, &mut stats, |k| {
        progress.at(k as u64, String::new);
        match stop_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    progress.finish();
    if rolled.is_err() {
        t.truncate(stats.steps);
    }
    let balance = report::energy(&model, &t).map_err(Failure::unsolved)?;
    let status = match &rolled {
        Ok(()) => "done",
        Err(e) if e.failure == StepFailure::Stopped => "interrupted",
        Err(_) => "failed",
    };
    let recording = if a.out.is_some() || a.plot.is_some() {
        let all = format::record(&model, &t, status, &[]).map_err(Failure::unsolved)?;
        Some(all.every(a.every as usize))
    } else {
        None
    };
    let mut files = vec![];
    if let (Some(path), Some(recording)) = (&a.out, &recording) {
        let numbers =
            recording.time.len() * (1 + recording.channels.len() + 7 * recording.bodies.len());
        let total = numbers as u64 * BYTES / MEGABYTE;
        let mut progress = Progress::new("writing", total.max(1));
        let mut tell = |bytes: u64| progress.at(bytes / MEGABYTE, || "MB".into());
        if csv {
            format::write_csv_with(path, recording, &mut tell)?;
        } else {
            format::write_json_with(path, recording, &mut tell)?;
        }
        progress.finish();
        files.push(shown(path));
    }
    if let (Some(path), Some(format), Some(recording)) = (&a.plot, figure, &recording)
        && let Some(bytes) = render_overview(recording, format).map_err(Failure::input)?
    {
        files.push(shown(&write(path, &bytes)?));
    }
    let (last, steps) = (t.steps(), stats.steps);
    let duration = t.intervals.iter().fold(0.0, |sum, h| sum + h);
    let mut penetration = 0.0_f64;
    for k in 0..=last {
        let deepest = system.penetration_with(&t.p, t.state(k), &mut w);
        penetration = penetration.max(deepest.map_err(Failure::unsolved)?);
    }
    let violation = report::constraint_violation(&model, &t);
    if a.json {
        let mut value = json!({
            "status": status,
            "steps": steps,
            "time_step": model.problem.intervals[0],
            "duration": duration,
            "integrator": system.choice().name(),
            "order": system.choice().order(),
            "wall_seconds": seconds,
            "newton_iterations_mean": stats.iterations as f64 / steps.max(1) as f64,
            "newton_iterations_max": stats.most_iterations,
            "max_constraint_violation": violation,
            "max_penetration": penetration,
            "steps_solved_to_rounding": stats.rounded,
            "energy_initial": balance.energy(0),
            "energy_final": balance.energy(last),
            "work": report::work(&balance, last),
            "energy_error_max": balance.largest_error(),
            "final": report::final_state(&model, &t, &balance),
            "files": files,
        });
        if let Err(e) = &rolled {
            value["failure"] = report::failure(e);
        }
        print_json(&value);
    } else {
        println!(
            "{}: {steps} steps, {duration:.3} s simulated in {seconds:.3} s, {:.2} Newton iterations a step",
            model.title,
            stats.iterations as f64 / steps.max(1) as f64,
        );
        let who = if model.mechanism.gears.is_empty() {
            "joints"
        } else {
            "joints and gears"
        };
        println!("{who} violated by at most {violation:.1e} m or rad");
        if !system.mechanism().contacts.is_empty() {
            println!("nothing overlaps by more than {penetration:.1e} m");
        }
        report::print_energy(&balance);
        for f in &files {
            println!("wrote {f}");
        }
    }
    let step = model.problem.intervals[0];
    if let Some((name, omega)) = system.fastest_spring(&model.x0)
        && step * omega > 1.0
    {
        eprintln!(
            "warning: the spring of {name} swings at {omega:.1} rad/s, h omega = {:.2}; results are coarse above 1 and unstable from 2 on, take a smaller time step",
            step * omega
        );
    }
    if stats.turn > 1.0 {
        eprintln!(
            "warning: a body turned by h |w| = {:.2} in one step; results are coarse above 1, take a smaller time step",
            stats.turn
        );
    }
    if stats.fallbacks > 0 {
        eprintln!(
            "note: {} factorizations needed the general sparse solver",
            stats.fallbacks
        );
    }
    rolled.map_err(Failure::unsolved)
}
