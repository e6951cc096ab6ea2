//! `simulate`: from the initial state with the guessed controls.

use super::gradient::control_name;
use super::progress::Progress;
use super::quality::{warn_of_energy, warn_of_swings};
use super::{
    Failure, Integrator, animate, figure_format, finer_steps, model, positive, print_result,
    report, room, shown, stop_on_interrupt, warn, write, write_trajectory,
};
use least_action::control::Policy;
use least_action::dynamics::{Dynamics, Step, StepError, StepFailure, stop_requested, unstopped};
use least_action::format::recording::Recording;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Mechanical, Substeps};
use least_action::plot::render_overview;
use least_action::rollout::{Balance, Cause, RolloutStats, Trajectory, Unexplained, balance_with};
use least_action::spatial::{COARSE_TURN, RotationLaw};
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

/// The failure of a motion that cannot be right.
fn unexplained(model: &Model, balance: &Balance, time: f64, found: &Unexplained) -> StepError {
    let remedy = format!(
        "take {}; or check stiff springs and gains",
        finer_steps(model)
    );
    let (k, energy) = (found.knot, balance.energy(found.knot));
    let gains = |since: usize| {
        format!(
            "the gains of {} are unstable at this time step",
            drivers(model, balance, since, k)
        )
    };
    let message = match found.cause {
        Cause::NotFinite => format!("it is not a finite number; {remedy}"),
        Cause::Speed => format!("a body is faster than light, at {energy:.3e} J; {remedy}"),
        Cause::Error { error, in_play } => {
            let (verb, than) = if error > 0.0 {
                ("gained", "more")
            } else {
                ("lost", "less")
            };
            format!(
                "the steps {verb} {:.3e} J, {than} than the work done explains and more than half of the {in_play:.3e} J in play; {remedy}",
                error.abs()
            )
        }
        Cause::Gain { gain, in_play } => format!(
            "contacts, friction and dampers gave {gain:.3e} J where {in_play:.3e} J were in play, and they can only take some; {remedy}"
        ),
        Cause::Reversals { since } => format!(
            "it grew to {energy:.3e} J by actuators that reverse their motion in every step; {} (a damping gain d on a mass m needs h d < 2 m); {SMALLER}",
            gains(since)
        ),
        Cause::Held {
            since,
            made,
            in_play,
        } => format!(
            "controls that are held over a step made {made:.3e} J, where {in_play:.3e} J were in play; {}: a servo on a mass m is stable if kd > kp h/2 and h kd < 2 m, roughly; {SMALLER}",
            gains(since)
        ),
    };
    StepError {
        failure: StepFailure::Energy,
        element: "the energy".into(),
        time,
        residual: balance.error(k),
        message,
    }
}

/// What helps against unstable gains. Substeps do not: a policy acts once in a time step.
const SMALLER: &str = "take smaller gains or a smaller time step";

/// The actuators that drive a motion between two knots, by name.
fn drivers(model: &Model, balance: &Balance, from: usize, to: usize) -> String {
    let actuators = &model.system.mechanism().actuators;
    let names = balance.drivers(from, to).into_iter();
    let names: Vec<String> = names.map(|c| format!("`{}`", actuators[c].name)).collect();
    match &names[..] {
        [] => "the policy".into(),
        [name] => format!("actuator {name}"),
        [names @ .., last] => format!("actuators {} and {last}", names.join(", ")),
    }
}

/// Fails a run whose energy shows that its motion cannot be right. A step that fails after that fails for it.
fn judge(
    model: &Model,
    t: &Trajectory,
    balance: &Balance,
    rolled: Result<(), StepError>,
) -> Result<(), StepError> {
    let failed = rolled.as_ref().err();
    if failed.is_some_and(|e| e.failure == StepFailure::Stopped) {
        return rolled;
    }
    let mut found = vec![];
    // controls that are given are bounded, whatever they do
    if !model.policy.sees().is_empty() {
        found.push(balance.unstable_feedback(model.policy.stands()));
        if failed.is_some() {
            found.push(balance.unstable_feedback_at_end());
        }
    }
    found.push(balance.unexplained());
    let Some(found) = found.into_iter().flatten().min_by_key(|u| u.knot) else {
        return rolled;
    };
    let mut out = unexplained(model, balance, t.knot(found.knot).t, &found);
    if let Some(e) = failed {
        out.message += &format!(". At {:.4} s a step failed: {}", e.time, e.message);
    }
    Err(out)
}

/// Share of the weight below which changes of controls are rounding.
const ROUNDING: f64 = 1e-9;

/// Warns of feedback that is unstable at its time step, though something bounds the motion.
fn warn_of_alternation(model: &Model, t: &Trajectory) {
    if model.policy.sees().is_empty() {
        return;
    }
    // on earth, of the mechanism's weight, at an arm of a meter
    let m = model.system.mechanism();
    let rounding = ROUNDING * m.mass() * m.gravity_scale();
    if let Some(found) = t.alternation(rounding) {
        warn(format!(
            "control `{}` alternates at every step from {:.4} s to {:.4} s: its gains are unstable at this time step, or nearly, or its reference alternates; {SMALLER}",
            m.actuators[found.control].name,
            t.knot(found.from).t,
            t.knot(found.to).t,
        ));
    }
}

/// Pairs of colliders at knots that are looked at for bodies that pass through each other: a second at most.
const LOOKED_AT: usize = 2_000_000;

/// Warns of bodies that pass through each other because their contacts are not against each other.
fn warn_of_passing(model: &Model, t: &Trajectory, last: usize) {
    let (system, m) = (&model.system, model.system.mechanism());
    let pairs = m.loose_pairs();
    if pairs.is_empty() {
        return;
    }
    let every = (pairs.len() * last).div_ceil(LOOKED_AT).max(1);
    let passing = (0..=last).step_by(every).find_map(|k| {
        let found = m.passing(&pairs, &system.poses(t.state(k)));
        found.map(|names| (names, t.knot(k).t))
    });
    if let Some(([a, b], time)) = passing {
        warn(format!(
            "bodies `{a}` and `{b}` pass through each other, at {time:.4} s: their contacts are not against each other; if they are to collide, give both against = [\"ground\", \"bodies\"]"
        ));
    }
}

/// Warns if there is ground and nothing that could touch it.
fn warn_of_no_contacts(model: &Model) {
    let m = model.system.mechanism();
    let grounds = m.half_spaces.iter().map(|h| &h.name);
    let terrain = m.colliders.iter().filter(|c| c.body.is_none());
    let mut grounds = grounds.chain(terrain.map(|c| &c.name));
    let is_bare = m.colliders.iter().all(|c| c.body.is_none());
    if let (true, Some(ground)) = (is_bare, grounds.next()) {
        warn(format!(
            "nothing touches `{ground}`: no body has contacts; give those that are to touch it `contacts.hull = {{}}`, which takes their shape"
        ));
    }
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let overrides = a.integrator.over(Overrides {
        duration: a.duration,
        time_step: a.step,
        usual_substeps: Substeps::Auto,
        ..Overrides::default()
    });
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
    let written = a.out.iter().chain(&a.plot).chain(&a.animate);
    written.clone().try_for_each(|p| room(p))?;
    stop_on_interrupt();
    let model = model(&a.file, &overrides)?;
    let system = &model.system;
    note_bounds(&model);
    let Rolled {
        trajectory: mut t,
        mut rolled,
        stats,
        seconds,
    } = match model.is_plain {
        true => roll(system, &model, &model.x0),
        false => {
            let extended = model.extended();
            let p = &model.problem.parameters;
            let x0 = model.problem.start(&extended, p, &mut extended.work());
            alone(
                &model,
                roll(&extended, &model, &x0.map_err(Failure::unsolved)?),
            )?
        }
    };
    let mut w = system.work();
    let every = (written.count() > 0).then_some(a.every as usize);
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
    if let Some(recording) = &mut recording {
        recording.status = status.into();
    }
    let mut files = vec![];
    if let (Some(path), Some(recording)) = (&a.out, &recording) {
        write_trajectory(path, recording)?;
        files.push(shown(path));
    }
    if let (Some(path), Some(format), Some(recording)) = (&a.plot, figure, &recording)
        && let Some(bytes) = render_overview(recording, format).map_err(Failure::input)?
    {
        files.push(shown(&write(path, &bytes)?));
    }
    if let (Some(path), Some(recording)) = (&a.animate, &recording) {
        files.push(shown(&animate::write_one(path, recording)?));
    }
    let steps = t.steps();
    let duration = t.intervals.iter().fold(0.0, |sum, h| sum + h);
    let mut penetration = 0.0_f64;
    for k in 0..=last {
        let deepest = system.penetration_with(&t.p, t.state(k), &mut w);
        penetration = penetration.max(deepest.map_err(Failure::unsolved)?);
    }
    let [violation, treated_violation] =
        report::constraint_violations(&model, &t, &stats).map_err(Failure::unsolved)?;
    let parts = match system.choice().substeps() {
        Substeps::Equal(n) => n.get(),
        Substeps::One | Substeps::Auto => 1,
    };
    let swings = warn_of_swings(&model, &t, &stats);
    if stats.turn > COARSE_TURN {
        warn(turned(&model, &stats));
    }
    warn_of_no_contacts(&model);
    warn_of_passing(&model, &t, last);
    if rolled.is_ok() {
        warn_of_alternation(&model, &t);
    }
    warn_of_energy(&balance);
    if a.json {
        let mut value = json!({
            "status": status,
            "steps": steps,
            "time_step": model.problem.intervals[0],
            "duration": duration,
            "integrator": system.choice().name(),
            "order": system.choice().order(),
            "substeps_mean": (parts * stats.parts) as f64 / steps.max(1) as f64,
            "substeps_max": parts * stats.most_parts,
            "wall_seconds": seconds,
            "newton_iterations_mean": stats.iterations as f64 / steps.max(1) as f64,
            "newton_iterations_max": stats.most_iterations,
            "max_constraint_violation": violation,
            "treated_steps": stats.treated,
            "max_treated_violation": treated_violation,
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
        print_result(value);
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
        if stats.most_parts > 1 {
            println!(
                "adaptive substeps: {:.2} per step on average, at most {}, for the fastest swing or turn",
                stats.parts as f64 / steps.max(1) as f64,
                stats.most_parts
            );
        }
        println!("{who} violated by at most {violation:.1e} m or rad");
        if stats.treated > 0 {
            println!(
                "{} of the steps began at singular positions of loops; joints opened there by up to {treated_violation:.1e} m or rad",
                stats.treated
            );
        }
        if !system.mechanism().contacts.is_empty() {
            println!("nothing overlaps by more than {penetration:.1e} m");
        }
        report::print_energy(&balance);
        for f in &files {
            println!("wrote {f}");
        }
    }
    if stats.fallbacks > 0 {
        eprintln!(
            "note: {} factorizations needed {}",
            stats.fallbacks,
            system.matrix().fallback
        );
    }
    swings.and(rolled).map_err(Failure::unsolved)
}

/// How far a body turned in a step, what that does to its spin, and what helps.
fn turned(model: &Model, stats: &RolloutStats) -> String {
    let body = &model.system.mechanism().bodies[stats.turned];
    let error = 100.0 * stats.turn.powi(2) / 6.0;
    if matches!(body.rotation, RotationLaw::Free(_)) {
        return format!(
            "body `{}` tumbles, and its spin is off by about {error:.1} %; take {}",
            body.name,
            finer_steps(model)
        );
    }
    let fix = match body.rotation {
        RotationLaw::Chord => "; or give the body rotation = { spin_about = axis }",
        _ => "",
    };
    format!(
        "body `{}` turned by {:.2} rad in one step, and its spin is off by a sixth of the square, {error:.1} %; take {}{fix}",
        body.name,
        stats.turn,
        finer_steps(model)
    )
}
