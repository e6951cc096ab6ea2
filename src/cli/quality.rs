//! How well a solution's discretization holds: the energy balance along it, and where it ends at half of the time step.

use super::report;
use least_action::dynamics::{Knot, KnotPoint, Step, StepError, StepFailure};
use least_action::format::Model;
use least_action::integrator::divided::{GROWTH, MOST as MOST_PARTS};
use least_action::integrator::{Mechanical, Substeps};
use least_action::rollout::{Balance, RolloutStats, Trajectory};
use serde_json::{Value, json};

/// An energy error above this share of the energies at play is worth a warning: a time step coarse enough to show.
const LARGE: f64 = 0.05;

/// Smallest energy error worth a warning, J: the last digit printed; below it what rests has nothing else at play.
const LEAST: f64 = 1e-6;

/// `h omega` of a swing above which it is coarse, and from which on it is unstable.
const COARSE: f64 = 1.0;
const UNSTABLE: f64 = 2.0;

/// How well a solution's discretization holds.
pub struct Quality {
    balance: Balance,
    /// How far bodies are at the end from where half of the time step leads them, m and rad; else why that is not known.
    moved: Result<(f64, f64), &'static str>,
    /// How far bodies come from where they start, m.
    reach: f64,
}

impl Quality {
    /// Of a trajectory of the model, with the trajectory's parameters, and of its energy balance; none where its first step
    /// failed. A request to stop leaves the half time step out.
    pub fn of(model: &Model, t: &Trajectory, balance: Balance) -> Option<Self> {
        if t.steps() == 0 && !model.problem.intervals.is_empty() {
            // the first step failed
            return None;
        }
        let found;
        let model = if t.p == model.own_parameters() {
            model
        } else {
            found = model.with_parameters(&t.p).ok()?;
            &found
        };
        Some(Self {
            balance,
            moved: halved(model, t),
            reach: reach(model, t),
        })
    }

    /// Adds its numbers, by the names that `simulate` has for them.
    pub fn add_to(&self, value: &mut Value) {
        let (b, last) = (&self.balance, self.balance.kinetic.len() - 1);
        value["energy_initial"] = json!(b.energy(0));
        value["energy_final"] = json!(b.energy(last));
        value["work"] = report::work(b, last);
        value["energy_error_max"] = json!(b.largest_error());
        value["half_step"] = match self.moved {
            Ok((far, turned)) => json!({ "position": far, "orientation": turned }),
            Err(_) => Value::Null,
        };
    }

    /// The same to people.
    pub fn print(&self) {
        report::print_energy(&self.balance);
        match self.moved {
            Ok((far, turned)) => println!(
                "at half of the time step, controls held, it ends {far:.1e} m and {turned:.1e} rad away"
            ),
            Err(why) => println!("at half of the time step, controls held, it {why}"),
        }
    }

    /// Says on standard error where the discretization is too coarse.
    pub fn warn(&self) {
        warn_of_energy(&self.balance);
        if let Some((far, _)) = self.moved.ok().filter(|m| m.0 > self.reach) {
            eprintln!(
                "warning: at half of the time step, controls held, it ends {far:.1e} m away, farther than it comes from where it starts ({:.1e} m): it holds for this time step alone; take a smaller one, or feedback",
                self.reach
            );
        }
    }
}

/// Warns on standard error if the energy error is large against the energy in play.
pub fn warn_of_energy(balance: &Balance) {
    let (error, in_play) = (balance.largest_error(), balance.in_play());
    if error > (LARGE * in_play).max(LEAST) {
        eprintln!(
            "warning: the energy error of {error:.1e} J is large against the {in_play:.1e} J in play; take a smaller time step"
        );
    }
}

/// Says on standard error where springs, and what is held under tension, swing too fast for the steps made.
pub fn warn_of_swings(
    model: &Model,
    t: &Trajectory,
    stats: &RolloutStats,
) -> Result<(), StepError> {
    let (system, mut w) = (&model.system, model.system.work());
    if stats.most_parts < MOST_PARTS && system.choice().substeps() == Substeps::Auto {
        // they have as many parts as they ask for
        return Ok(());
    }
    let mut swing = |at: &Knot, above: f64| {
        // of the step before
        let k = at.k;
        let y = k.checked_sub(1).map_or(&[][..], |k| t.unknowns(k));
        let before = KnotPoint {
            y,
            ..t.knot_point(at)
        };
        let weight = match k {
            0 => at.h,
            _ => {
                let start = t.knot(k - 1);
                0.5 * (start.h_prev + start.h)
            }
        };
        system.swing(&before, weight, above, &mut w)
    };
    // the largest `h omega` of any step, as far as the bound and its ratio to what was last estimated tell
    let (mut worst, mut ratio) = ((0.0, t.knot(0), 0.0), 1.0);
    let mut at = t.knot(0);
    for k in 0..t.steps() {
        let h = at.h / system.parts_after(t.unknowns(k)) as f64;
        let above = UNSTABLE / (h * f64::min(GROWTH * ratio, 1.0));
        let seen = swing(&at, above)?;
        if seen.bound > above {
            ratio = seen.rate / seen.bound;
        }
        let size = h * ratio * seen.bound;
        if size > worst.0 {
            worst = (size, at, h);
        }
        at = t.knot_after(&at);
    }
    let (size, at, h) = worst;
    if size <= COARSE {
        return Ok(());
    }
    let (swing, time) = (swing(&at, 0.0)?, at.t);
    let size = h * swing.rate;
    if size > COARSE {
        let body = &system.mechanism().bodies[swing.body].name;
        let far = if size > UNSTABLE {
            "unstable"
        } else {
            "coarse"
        };
        eprintln!(
            "warning: at t = {time:.3} s body `{body}` swings at {:.1} rad/s, under springs and what holds it, h omega = {size:.2}: results are {far} (coarse above 1, unstable from 2 on); take a smaller time step or `substeps = \"auto\"`",
            swing.rate
        );
    }
    Ok(())
}

/// How far any body comes from where it starts.
fn reach(model: &Model, t: &Trajectory) -> f64 {
    let start = model.system.poses(t.state(0));
    (1..=t.steps())
        .flat_map(|k| model.system.poses(t.state(k)).into_iter().zip(&start))
        .fold(0.0, |most, (p, s)| most.max((p.x - s.x).norm()))
}

/// Simulates with every interval in two, the controls held over both, and compares the ends.
fn halved(model: &Model, t: &Trajectory) -> Result<(f64, f64), &'static str> {
    let system = &model.system;
    let halves = t.intervals.iter().flat_map(|h| [0.5 * h; 2]).collect();
    let mut fine = Trajectory::new(system, halves, t.state(0));
    fine.before = t.before;
    let nu = fine.control(0).len();
    for k in 0..fine.steps() {
        fine.u[k * nu..(k + 1) * nu].copy_from_slice(t.control(k / 2));
    }
    fine.roll(system, &mut system.work(), &mut RolloutStats::default())
        .map_err(|e| match e.failure {
            StepFailure::Stopped => "was not simulated, since it was to stop",
            _ => "cannot be simulated",
        })?;
    let ends = [t, &fine].map(|t| system.poses(t.state(t.steps())));
    let pairs = ends[0].iter().zip(&ends[1]);
    let apart = pairs.map(|(a, b)| ((a.x - b.x).norm(), a.q.angle_to(&b.q)));
    Ok(apart.fold((0.0, 0.0), |m: (f64, f64), d| (m.0.max(d.0), m.1.max(d.1))))
}
