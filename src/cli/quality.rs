//! How well a solution's discretization holds: the energy balance along it, and where it ends at half of the time step.

use super::{finer_steps, report, warn};
use least_action::control::ClosedLoop;
use least_action::dynamics::{Knot, KnotPoint, Observe, Step, StepError, StepFailure};
use least_action::format::Model;
use least_action::integrator::divided::{GROWTH, MOST as MOST_PARTS};
use least_action::integrator::{Controls, Mechanical, Substeps};
use least_action::mechanism::Body;
use least_action::rollout::{Balance, RolloutStats, Trajectory};
use least_action::spatial::Pose;
use serde_json::{Value, json};

/// An energy error above this share of the energies at play is worth a warning: a time step coarse enough to show.
const LARGE: f64 = 0.05;

/// Smallest energy error worth a warning, J: the last digit printed; below it what rests has nothing else at play.
const LEAST: f64 = 1e-6;

/// How far the end may move at half of the time step, as a share of the motion, before the time step counts as coarse.
const FINE: f64 = 0.01;

/// `h omega` of a swing above which it is coarse, and from which on it is unstable.
const COARSE: f64 = 1.0;
const UNSTABLE: f64 = 2.0;

/// How well a solution's discretization holds.
pub struct Quality {
    balance: Balance,
    /// How far the end moves at half of the time step; else why that is not known.
    moved: Result<Moved, &'static str>,
    /// The longest path of any body, m, as [`Moved::distance`].
    motion: f64,
    /// Length of the intervals, s: the largest.
    time_step: f64,
    /// What the controls do then, and the order of the error: a policy that acts more often is late by less, of first order.
    controls: &'static str,
    order: f64,
    /// Does a policy decide them?
    has_policy: bool,
}

impl Quality {
    /// Of a trajectory of the model, with the trajectory's parameters, and of its energy balance; none where its first step
    /// failed. `decided` is the same under the model's policy. A request to stop leaves the half time step out.
    pub fn of(
        model: &Model,
        t: &Trajectory,
        decided: &Trajectory,
        balance: Balance,
    ) -> Option<Self> {
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
        let (moved, controls, order) = match model.policy.halved() {
            Some(policy) => {
                let closed = ClosedLoop::new(&model.system, policy);
                let moved = halved(&closed, model, decided);
                (moved, "under the same policy", 1.0)
            }
            None => {
                let controls = match model.controls {
                    Controls::Held => "controls held",
                    Controls::Linear => "controls interpolated",
                };
                (halved(&model.system, model, t), controls, 2.0)
            }
        };
        Some(Self {
            balance,
            moved,
            motion: motion(model, t),
            time_step: t.intervals.iter().fold(0.0, |m, h| h.max(m)),
            controls,
            order,
            has_policy: model.policy.halved().is_some(),
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
            Ok(Moved { far, turned, .. }) => json!({
                "position": far, "orientation": turned,
                "share": self.share(), "time_step": self.fine_step(),
            }),
            Err(_) => Value::Null,
        };
    }

    /// The same to people.
    pub fn print(&self) {
        report::print_energy(&self.balance);
        match self.moved {
            Ok(Moved { far, turned, .. }) => {
                let coarse = match (self.share(), self.fine_step()) {
                    (Some(share), Some(h)) => format!(
                        ": {} of the motion, so the time step of {} s is coarse; about {h} s is needed for {} %",
                        percent(share),
                        self.time_step,
                        100.0 * FINE
                    ),
                    _ => String::new(),
                };
                println!(
                    "at half of the time step, {}, it ends {far:.1e} m and {turned:.1e} rad away{coarse}",
                    self.controls
                );
            }
            Err(why) => println!("at half of the time step, {}, it {why}", self.controls),
        }
    }

    /// Warns where the discretization is too coarse.
    pub fn warn(&self) {
        warn_of_energy(&self.balance);
        if self.share().is_some_and(|share| share > 1.0) {
            warn(format!(
                "at half of the time step, {}, the end moves by more than the whole motion: the result holds for this time step alone; take a smaller one{}",
                self.controls,
                if self.has_policy { "" } else { ", or feedback" }
            ));
        }
    }

    /// How far the end moves at half of the time step, as a share of the motion; nothing if that is not known, or nothing moves.
    fn share(&self) -> Option<f64> {
        let moved = self.moved.ok()?;
        (self.motion > 0.0).then(|| moved.distance / self.motion)
    }

    /// The time step that is small enough if this one is not: the error falls to [`FINE`] with its power `order`. Rounded down to one
    /// digit.
    fn fine_step(&self) -> Option<f64> {
        let share = self.share().filter(|s| *s > FINE)?;
        let h = self.time_step * (FINE / share).powf(1.0 / self.order);
        let digit = 10f64.powf(h.log10().floor());
        Some(((h / digit).floor() * digit * 1e12).round() / 1e12)
    }
}

/// A share in percent, with two digits where it is small.
fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Warns if the energy error is large against the energy in play.
pub fn warn_of_energy(balance: &Balance) {
    let (error, in_play) = (balance.largest_error(), balance.in_play());
    if error > (LARGE * in_play).max(LEAST) {
        warn(format!(
            "the energy error of {error:.1e} J is large against the {in_play:.1e} J in play; take a smaller time step"
        ));
    }
}

/// Warns where springs, and what is held under tension, swing too fast for the steps made.
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
        warn(format!(
            "at t = {time:.3} s body `{body}` swings at {:.1} rad/s, under springs and what holds it, h omega = {size:.2}: results are {far} (coarse above 1, unstable from 2 on); take {}",
            swing.rate,
            finer_steps(model)
        ));
    }
    Ok(())
}

/// How far bodies are from other poses.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    /// Largest displacement of a center of mass, m.
    far: f64,
    /// Largest turn, rad.
    turned: f64,
    /// Largest sum of both for one body, m: a turn counts with the radius of gyration.
    distance: f64,
}

/// How far a body is from another pose.
fn moved(body: &Body, a: &Pose, b: &Pose) -> Moved {
    let (far, turned) = ((b.x - a.x).norm(), a.q.angle_to(&b.q));
    Moved {
        far,
        turned,
        distance: far + turned * body.radius_of_gyration(),
    }
}

/// The longest path of a body, m, as [`Moved::distance`].
fn motion(model: &Model, t: &Trajectory) -> f64 {
    let bodies = &model.system.mechanism().bodies;
    let mut poses = model.system.poses(t.state(0));
    let mut paths = vec![0.0; poses.len()];
    for k in 1..=t.steps() {
        let next = model.system.poses(t.state(k));
        for (i, path) in paths.iter_mut().enumerate() {
            *path += moved(&bodies[i], &poses[i], &next[i]).distance;
        }
        poses = next;
    }
    paths.into_iter().fold(0.0, f64::max)
}

/// Simulates with every interval in two, under the same controls, or the same policy if `dynamics` are under one, and compares the ends.
fn halved<D: Observe>(dynamics: &D, model: &Model, t: &Trajectory) -> Result<Moved, &'static str> {
    let system = &model.system;
    let halves = t.intervals.iter().flat_map(|h| [0.5 * h; 2]).collect();
    let mut fine = Trajectory::new(dynamics, halves, t.state(0));
    (fine.before, fine.p) = (t.before, t.p.clone());
    let nu = fine.control(0).len();
    for k in 0..fine.steps() {
        let own = &mut fine.u[k * nu..(k + 1) * nu];
        own.copy_from_slice(t.control(k / 2));
        if model.controls == Controls::Linear && k % 2 == 1 && k / 2 + 1 < t.steps() {
            let next = own.iter_mut().zip(t.control(k / 2 + 1));
            next.for_each(|(u, next)| *u = 0.5 * (*u + next));
        }
    }
    fine.roll(dynamics, &mut dynamics.work(), &mut RolloutStats::default())
        .map_err(|e| match e.failure {
            StepFailure::Stopped => "was not simulated, since it was to stop",
            _ => "cannot be simulated",
        })?;
    let ends = [t, &fine].map(|t| system.poses(t.state(t.steps())));
    let bodies = system.mechanism().bodies.iter();
    let pairs = bodies.zip(ends[0].iter().zip(&ends[1]));
    let apart = pairs.map(|(body, (a, b))| moved(body, a, b));
    Ok(apart.fold(Moved::default(), |m, d| Moved {
        far: m.far.max(d.far),
        turned: m.turned.max(d.turned),
        distance: m.distance.max(d.distance),
    }))
}
