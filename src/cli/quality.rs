//! How well a solution's discretization holds: the energy balance along it, and where it ends at half of the time step.

use super::verdict::{of_bodies, warn_of_stiffness};
use super::{report, warn};
use least_action::control::ClosedLoop;
use least_action::dynamics::{Observe, StepFailure};
use least_action::format::Model;
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

/// Power of the time step with which the end must move less for a smaller step to be named. Errors fall with the first or second;
/// between them and none at all lies what the instants of impacts do.
const LEAST_POWER: f64 = 0.7;

/// Path of a body, in parts of the largest radius of gyration, that counts as rest: a robot that stands is not judged by shares of less.
const REST: f64 = 1e-2;

/// Share of the motion above which an error no longer falls with a power of the time step: the ends have little to do with each other.
const FAR: f64 = 0.2;

/// Most parts of a step in which the motion is simulated again to confirm a time step that is to be named. It takes up to three times
/// as many simulations; a smaller step is not named.
const MOST_CONFIRMED: f64 = 64.0;

/// How well a solution's discretization holds.
pub struct Quality {
    balance: Balance,
    /// How far the end moves at half of the time step; else why that is not known.
    moved: Result<Moved, String>,
    /// How far it moves on at a quarter of the time step, where it moves far at half.
    further: Option<Moved>,
    /// The longest path of any body, m, as [`Moved::distance`].
    motion: f64,
    /// Length of the intervals, s: the largest.
    time_step: f64,
    /// s
    duration: f64,
    /// What the controls do then, and the order of the error: a policy that acts more often is late by less, of first order.
    controls: &'static str,
    order: f64,
    /// Does a policy decide them?
    has_policy: bool,
    /// A time step that is small enough, confirmed by simulation, s; see [`Quality::confirmed_step`].
    fine: Result<f64, Unnamed>,
}

/// Why no time step is named that is small enough.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unnamed {
    /// This one is, or smaller ones were not simulated.
    Unknown,
    /// The end hardly moves less at smaller steps, or moves too far for an estimate.
    Erratic,
    /// The estimate is below a [`MOST_CONFIRMED`]th of the time step.
    TooSmall,
    /// The motion at the estimate, s, is not as close as estimated, or cannot be simulated.
    Unconfirmed(f64),
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
        let (longest, held) = (motion(model, t), model.controls == Controls::Held);
        let (halves, controls, order) = match model.policy.halved() {
            Some(policy) => {
                let quarters = policy.halved().unwrap_or_else(|| policy.clone());
                let closed = [policy, quarters].map(|p| ClosedLoop::new(&model.system, p));
                let halves = Halves::of(closed.each_ref(), model, decided, longest);
                (halves, "under the same policy", 1.0)
            }
            None => {
                let controls = if held {
                    "controls held"
                } else {
                    "controls interpolated"
                };
                (
                    Halves::of([&model.system; 2], model, t, longest),
                    controls,
                    2.0,
                )
            }
        };
        let Halves { moved, further } = match is_adaptive(model, t) {
            true => Halves {
                moved: Err("makes fewer substeps, and shows nothing of the time step; give their number, substeps = N".into()),
                further: None,
            },
            false => halves,
        };
        let mut out = Self {
            balance,
            moved,
            further,
            motion: longest,
            time_step: t.intervals.iter().fold(0.0, |m, h| h.max(m)),
            duration: t.intervals.iter().sum(),
            controls,
            order,
            has_policy: model.policy.halved().is_some(),
            fine: Err(Unnamed::Unknown),
        };
        out.fine = out.confirmed_step(|parts| match out.has_policy {
            true => halved_again(model, decided, parts),
            false => again([&model.system; 2], model, t, parts),
        });
        Some(out)
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
                "share": self.share(), "time_step": self.fine.ok(),
            }),
            Err(_) => Value::Null,
        };
    }

    /// The same to people.
    pub fn print(&self) {
        report::print_energy(&self.balance);
        match &self.moved {
            Ok(Moved { far, turned, .. }) => {
                let coarse = match self.share().filter(|s| *s > FINE) {
                    Some(share) => format!(": {} of the motion, {}", percent(share), self.advice()),
                    None => String::new(),
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
    pub fn warn(&self, model: &Model, t: &Trajectory) {
        if warn_of_energy(model, &self.balance) {
            warn_of_stiffness(model, t);
        }
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
        let moved = self.moved.as_ref().ok()?;
        (self.motion > 0.0).then(|| moved.distance / self.motion)
    }

    /// What to do about a coarse time step.
    fn advice(&self) -> String {
        let (h, percent) = (self.time_step, 100.0 * FINE);
        match self.fine {
            Ok(fine) => format!(
                "so the time step of {h} s is coarse; about {fine} s is needed for {percent} % with this plan (a plan that is solved again may need a smaller step)"
            ),
            Err(Unnamed::Erratic) => "and which time step is small enough is not known: the motion is unstable or its impacts move; play it back with feedback".to_owned(),
            Err(Unnamed::TooSmall) => format!(
                "so the time step of {h} s is coarse; one below {:.0e} s is needed for {percent} %",
                h / MOST_CONFIRMED
            ),
            Err(Unnamed::Unconfirmed(fine)) => format!(
                "so the time step of {h} s is coarse; {fine} s would do if errors kept falling as they do here, but a simulation did not confirm it"
            ),
            Err(Unnamed::Unknown) => format!("so the time step of {h} s is coarse; take a smaller one"),
        }
    }

    /// The estimated time step, if a simulation confirms it. The simulation divides each step by the largest power of two that is not beyond
    /// the estimate, and again by twice that. `at(parts)` is the distance between the ends of the two motions; it must be as small as the
    /// estimate predicts.
    ///
    /// The errors of an unstable motion grow with time, so that they may stop falling below a quarter of the step.
    fn confirmed_step(&self, at: impl Fn(usize) -> Option<f64>) -> Result<f64, Unnamed> {
        let (&Ok(Moved { distance: half, .. }), Some(quarter)) = (&self.moved, self.further) else {
            return Err(Unnamed::Unknown);
        };
        let quarter = quarter.distance;
        let (fine, power) = self.estimated_step(half, quarter)?;
        let ratio = self.time_step / fine;
        if ratio > MOST_CONFIRMED {
            return Err(Unnamed::TooSmall);
        }
        let parts = 1 << ratio.log2().floor() as usize;
        let distance = match parts {
            1 => Some(half),
            2 => Some(quarter),
            _ => at(parts),
        };
        let is_close =
            |distance: f64| distance / self.motion * (parts as f64 / ratio).powf(power) <= FINE;
        match distance.is_some_and(is_close) {
            true => Ok(fine),
            false => Err(Unnamed::Unconfirmed(fine)),
        }
    }

    /// The time step that is small enough if this one is not, rounded down to one digit, and the power with which the error falls: that
    /// which is seen between the distances at half and at quarter of the step, at most `order`.
    fn estimated_step(&self, half: f64, quarter: f64) -> Result<(f64, f64), Unnamed> {
        let share = half / self.motion;
        let power = (half / quarter).log2().min(self.order);
        if power < LEAST_POWER || share > FAR {
            return Err(Unnamed::Erratic);
        }
        let h = self.time_step * (FINE / share).powf(1.0 / power);
        let digit = 10f64.powf(h.log10().floor());
        let round = |digits: f64| (digits * digit * 1e12).round() / 1e12;
        let largest = (h / digit).floor();
        // one that the duration is a whole number of, where there is one
        let mut below = (1..=largest as u32)
            .rev()
            .map(|digits| round(digits.into()));
        let divides = |step: &f64| {
            let count = self.duration / step;
            (count - count.round()).abs() < 1e-9 * count
        };
        Ok((below.find(divides).unwrap_or(round(largest)), power))
    }
}

/// A share in percent, with two digits where it is small.
fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Warns if the energy error of the motion is large against the energy in play. Returns true if it is.
pub fn warn_of_energy(model: &Model, balance: &Balance) -> bool {
    let large = |balance: &Balance| {
        let (error, in_play) = (balance.largest_motion_error(), balance.in_play());
        (error > (LARGE * in_play).max(LEAST)).then_some((error, in_play))
    };
    let whole = large(balance).map(|found| (found, String::new()));
    let found = whole.or_else(|| {
        let parts = balance.parts();
        (parts.iter()).find_map(|(bodies, own)| Some((large(own)?, of_bodies(model, bodies))))
    });
    if let Some(((error, in_play), of)) = &found {
        // of shorter steps there are fewer automatic parts
        let finer = match model.system.choice().substeps() {
            Substeps::Auto => "a fixed number of substeps above the automatic one (substeps = N)",
            _ => "a smaller time step",
        };
        warn(format!(
            "the energy error of {error:.1e} J is large against the {in_play:.1e} J in play{of}; take {finer}"
        ));
    }
    found.is_some()
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

/// The longest path of a body, m, as [`Moved::distance`]; of what rests [`REST`] of its size.
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
    let sizes = bodies.iter().map(|b| REST * b.radius_of_gyration());
    paths.into_iter().chain(sizes).fold(0.0, f64::max)
}

/// Are steps made in parts whose length does not follow the time step?
fn is_adaptive(model: &Model, t: &Trajectory) -> bool {
    let parts = |k| model.system.parts_after(t.unknowns(k));
    model.system.choice().substeps() == Substeps::Auto && (0..t.steps()).any(|k| parts(k) > 1)
}

/// How far the end moves at half of the time step, and where it moves far, how far it moves on at a quarter.
struct Halves {
    moved: Result<Moved, String>,
    further: Option<Moved>,
}

impl Halves {
    /// Of a trajectory whose longest path is given, by what is simulated at half and at a quarter of the time step.
    fn of<D: Observe>(
        [half, quarter]: [&D; 2],
        model: &Model,
        t: &Trajectory,
        longest: f64,
    ) -> Self {
        let fine = match divided(half, model, t, 2) {
            Ok(fine) => fine,
            Err(why) => {
                return Self {
                    moved: Err(why),
                    further: None,
                };
            }
        };
        let moved = apart(model, t, &fine);
        let further = (moved.distance > FINE * longest)
            .then(|| divided(quarter, model, t, 4).ok())
            .flatten()
            .map(|finer| apart(model, &fine, &finer));
        Self {
            moved: Ok(moved),
            further,
        }
    }
}

/// How far the end moves between `parts` parts of every interval and twice as many.
fn again<D: Observe>(
    dynamics: [&D; 2],
    model: &Model,
    t: &Trajectory,
    parts: usize,
) -> Option<f64> {
    let coarse = divided(dynamics[0], model, t, parts).ok()?;
    let fine = divided(dynamics[1], model, t, 2 * parts).ok()?;
    Some(apart(model, &coarse, &fine).distance)
}

/// The same under the model's policy, which acts as many times in every interval; `parts` are a power of two.
fn halved_again(model: &Model, t: &Trajectory, parts: usize) -> Option<f64> {
    let mut policy = model.policy.halved()?;
    for _ in 1..parts.ilog2() {
        policy = policy.halved()?;
    }
    let finer = policy.halved()?;
    let closed = [policy, finer].map(|p| ClosedLoop::new(&model.system, p));
    again(closed.each_ref(), model, t, parts)
}

/// Simulates a trajectory again, with every interval divided into `parts`. The controls are the same; `dynamics` under a policy have the
/// same policy.
fn divided<D: Observe>(
    dynamics: &D,
    model: &Model,
    t: &Trajectory,
    parts: usize,
) -> Result<Trajectory, String> {
    let each = |h| std::iter::repeat_n(h / parts as f64, parts);
    let intervals = t.intervals.iter().flat_map(each).collect();
    let mut fine = Trajectory::new(dynamics, intervals, t.state(0));
    (fine.before, fine.p) = (t.before, t.p.clone());
    let nu = fine.control(0).len();
    for k in 0..fine.steps() {
        let (from, share) = (k / parts, (k % parts) as f64 / parts as f64);
        let own = &mut fine.u[k * nu..(k + 1) * nu];
        own.copy_from_slice(t.control(from));
        if model.controls == Controls::Linear && from + 1 < t.steps() {
            let next = own.iter_mut().zip(t.control(from + 1));
            next.for_each(|(u, next)| *u += share * (next - *u));
        }
    }
    fine.roll(dynamics, &mut dynamics.work(), &mut RolloutStats::default())
        .map_err(|e| match e.failure {
            StepFailure::Stopped => "was not simulated, since it was to stop".to_owned(),
            _ => format!("cannot be simulated: {e}"),
        })?;
    Ok(fine)
}

/// How far the ends of two trajectories are apart.
fn apart(model: &Model, a: &Trajectory, b: &Trajectory) -> Moved {
    let system = &model.system;
    let ends = [a, b].map(|t| system.poses(t.state(t.steps())));
    let bodies = system.mechanism().bodies.iter();
    let pairs = bodies.zip(ends[0].iter().zip(&ends[1]));
    let each = pairs.map(|(body, (a, b))| moved(body, a, b));
    each.fold(Moved::default(), |m, d| Moved {
        far: m.far.max(d.far),
        turned: m.turned.max(d.turned),
        distance: m.distance.max(d.distance),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A solution of 1 s in steps of 0.01 s whose end moves by these shares of its motion at half and at quarter of the step.
    fn quality(half: f64, quarter: Option<f64>) -> Quality {
        let moved = |distance| Moved {
            distance,
            ..Moved::default()
        };
        Quality {
            balance: Balance::default(),
            moved: Ok(moved(half)),
            further: quarter.map(moved),
            motion: 1.0,
            time_step: 0.01,
            duration: 1.0,
            controls: "controls held",
            order: 2.0,
            has_policy: false,
            fine: Err(Unnamed::Unknown),
        }
    }

    /// A step is named where what is simulated there is as close as the fall of the errors leads to, else the reason.
    #[test]
    fn steps_are_named_that_a_simulation_confirms() {
        let close = |parts: usize| Some(0.08 / (parts * parts) as f64);
        let far = |_| Some(0.02);
        let q = |half, quarter| quality(half, Some(quarter));
        // second order from 8 %: 0.01/sqrt(8), rounded down to what divides a second
        assert_eq!(
            q(0.08, 0.02).confirmed_step(far),
            Err(Unnamed::Unconfirmed(0.002))
        );
        assert_eq!(
            q(0.08, 0.02).confirmed_step(|_| None),
            Err(Unnamed::Unconfirmed(0.002))
        );
        assert_eq!(q(0.08, 0.02).confirmed_step(close), Ok(0.002));
        // at quarter it is simulated already
        assert_eq!(q(0.02, 0.005).confirmed_step(|_| None), Ok(0.005));
        // errors that hardly fall, or are beyond a fifth of the motion, or fall so slowly that the step is below 1/64
        assert_eq!(q(0.08, 0.07).confirmed_step(close), Err(Unnamed::Erratic));
        assert_eq!(q(0.3, 0.07).confirmed_step(close), Err(Unnamed::Erratic));
        assert_eq!(q(0.19, 0.116).confirmed_step(close), Err(Unnamed::TooSmall));
        assert_eq!(
            quality(0.08, None).confirmed_step(close),
            Err(Unnamed::Unknown)
        );
    }
}
