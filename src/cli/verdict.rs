//! Whether a simulated motion can be right, and what it is warned of.

use super::quality::warn_of_energy;
use super::{finer_steps, warn};
use least_action::control::Policy;
use least_action::dynamics::{Knot, KnotPoint, Step, StepError, StepFailure};
use least_action::format::Model;
use least_action::integrator::divided::{GROWTH, MOST as MOST_PARTS};
use least_action::integrator::{Mechanical, Substeps};
use least_action::mechanism::COARSE_SPIN;
use least_action::rollout::{Balance, Cause, RolloutStats, Trajectory, Unexplained};
use least_action::spatial::{COARSE_TURN, RotationLaw};

/// Overlap, m, from which on a motion is warned of: steps leave 1e-9 m.
pub const OVERLAP: f64 = 1e-6;

/// `h omega` of a swing above which it is coarse, and from which on it is unstable.
const COARSE: f64 = 1.0;
const UNSTABLE: f64 = 2.0;

/// Bodies that a message names at most.
const NAMED: usize = 3;

/// Bodies whose energy counts alone, in a message.
pub fn of_bodies(model: &Model, bodies: &[usize]) -> String {
    let all = &model.system.mechanism().bodies;
    let names: Vec<String> = (bodies.iter().take(NAMED))
        .map(|b| format!("`{}`", all[*b].name))
        .collect();
    let more = match bodies.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" of {}{more}", names.join(", "))
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
    let of = found.part.map_or(String::new(), |part| {
        of_bodies(model, &balance.parts()[part].0)
    });
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
                "the steps {verb} {:.3e} J, {than} than the work done explains and more than half of the {in_play:.3e} J in play{of}; {remedy}",
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
            "controls that are held over a step made {made:.3e} J, where {in_play:.3e} J were in play; {}: {SERVO}; {SMALLER}",
            gains(since)
        ),
    };
    let residual = match found.cause {
        Cause::Error { error: own, .. }
        | Cause::Gain { gain: own, .. }
        | Cause::Held { made: own, .. } => own,
        Cause::NotFinite | Cause::Speed | Cause::Reversals { .. } => energy,
    };
    StepError {
        failure: StepFailure::Energy,
        element: "the energy".into(),
        time,
        residual,
        message,
    }
}

/// What helps against unstable gains. Substeps do not: a policy acts once in a time step.
const SMALLER: &str = "take smaller gains or a smaller time step";

/// Which gains are stable.
const SERVO: &str = "a servo on a mass m is stable if kd > kp h/2 and h kd < 2 m, roughly";

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
pub fn judge(
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
fn warn_of_feedback(model: &Model, t: &Trajectory, balance: &Balance) {
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
    } else if let Some(found) = balance.bounded_feedback()
        && let Cause::Held { made, in_play, .. } = found.cause
    {
        warn(format!(
            "controls that are held over a step made {made:.3e} J, where {in_play:.3e} J were in play, and stops, contacts or friction took it: the gains of {} are unstable at this time step; {SERVO}; {SMALLER}",
            drivers(model, balance, 0, found.knot)
        ));
    }
}

/// Pairs of colliders at knots that are looked at for bodies that pass through each other: a second at most.
const LOOKED_AT: usize = 2_000_000;

/// Warns of bodies that pass through each other because their contacts are not against each other.
fn warn_of_passing(model: &Model, t: &Trajectory) {
    let (system, m, last) = (&model.system, model.system.mechanism(), t.steps());
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

/// Warns where springs, and what is held under tension, swing too fast for the steps made, and where bodies spin too fast for their
/// friction.
fn warn_of_swings(model: &Model, t: &Trajectory, stats: &RolloutStats) -> Result<(), StepError> {
    let system = &model.system;
    if stats.most_parts < MOST_PARTS && system.choice().substeps() == Substeps::Auto {
        // they have as many parts as they ask for
        return Ok(());
    }
    let mut w = system.work();
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
    // the largest angle by which a contact goes around a body, its time and the body
    let mut spun = (COARSE_SPIN, 0.0, None);
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
        if h * seen.spin.1 > spun.0 {
            spun = (h * seen.spin.1, at.t, Some(seen.spin.0));
        }
        at = t.knot_after(&at);
    }
    let bodies = &system.mechanism().bodies;
    if let (turn, time, Some(body)) = spun {
        warn(format!(
            "at t = {time:.3} s a contact with friction goes around body `{}` by {turn:.2} rad in a step (coarse above {COARSE_SPIN}): friction has too little torque against a spin, and a rim that rolls may stop; take {}",
            bodies[body].name,
            finer_steps(model)
        ));
    }
    let (size, at, h) = worst;
    if size <= COARSE {
        return Ok(());
    }
    let (swing, time) = (swing(&at, 0.0)?, at.t);
    let size = h * swing.rate;
    if size > COARSE {
        let body = &bodies[swing.body].name;
        let far = if size > UNSTABLE {
            "unstable"
        } else {
            "coarse"
        };
        warn(format!(
            "at t = {time:.3} s body `{body}` swings at {:.1} rad/s, under springs and what holds it, h omega = {size:.2}: results are {far} (coarse above 1, unstable from 2 on); take {}",
            swing.rate / system.longest_share(),
            finer_steps(model)
        ));
    }
    Ok(())
}

/// Warns of contacts that gave energy, though not enough for a failure.
fn warn_of_gain(model: &Model, t: &Trajectory, balance: &Balance) {
    let found = balance.noticeable_gain();
    if let Some((knot, Cause::Gain { gain, in_play })) = found.map(|f| (f.knot, f.cause)) {
        let m = model.system.mechanism();
        let bounces = m
            .contacts
            .iter()
            .any(|c| m.restitution(c) > 0.0 && m.friction(c) > 0.0);
        let law = match bounces {
            true => {
                "; restitution and friction together may add energy in a blow, at any time step"
            }
            false => "",
        };
        warn(format!(
            "at t = {:.4} s contacts, friction and dampers gave {gain:.1e} J where {in_play:.1e} J were in play, and they can only take some: the motion from there on is doubtful; take {}{law}",
            t.knot(knot).t,
            finer_steps(model)
        ));
    }
}

/// Knots at most at which the stiffest damper is searched for: it changes with the configuration, slowly.
const SEARCHED: usize = 25;
/// `h d c` of a damper above which a rate changes its sign in every step.
const RINGING: f64 = 2.0;

/// Warns of springs and dampers that are too stiff for the steps of a plan.
pub fn warn_of_stiffness(model: &Model, t: &Trajectory) {
    // where a swing cannot be found, the energy and half of the time step tell
    let _ = warn_of_swings(model, t, &RolloutStats::default());
    warn_of_dampers(model, t);
}

/// Warns of a damper that is too stiff for its steps: rates ring after every sudden change, and the energy at knots is wrong.
fn warn_of_dampers(model: &Model, t: &Trajectory) {
    let (system, m) = (&model.system, model.system.mechanism());
    // what a loop or a gear holds back moves less than by itself: only where something strikes is that worth a doubt
    if m.has_loops() && !m.may_touch() {
        return;
    }
    let every = t.steps().div_ceil(SEARCHED).max(1);
    let each = (0..t.steps()).step_by(every).filter_map(|k| {
        let parts = match system.choice().substeps() {
            Substeps::Equal(n) => n.get(),
            _ => system.parts_after(t.unknowns(k)),
        };
        let h = t.intervals[k].abs() / parts as f64;
        let poses = system.poses(t.state(k));
        let (damper, rate) = m.stiffest_explicit_damper(&poses, RINGING / h)?;
        Some((damper, h * rate))
    });
    let Some((damper, ratio)) = each.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return;
    };
    if ratio > RINGING {
        warn(format!(
            "the damper of {} is too stiff for its steps: h d/m = {ratio:.1} (m the effective mass or inertia along it); above 2 its rate alternates from step to step after a start in motion, a sudden force or an impact, and energies are wrong; give it implicit = true, or take {}",
            m.damper_name(damper),
            finer_steps(model)
        ));
    }
}

/// Warns of a body that turned far in a step: what that does to its spin, and what helps.
fn warn_of_turns(model: &Model, stats: &RolloutStats) {
    if stats.turn <= COARSE_TURN {
        return;
    }
    let body = &model.system.mechanism().bodies[stats.turned];
    let error = 100.0 * stats.turn.powi(2) / 6.0;
    if matches!(body.rotation, RotationLaw::Free(_)) {
        warn(format!(
            "body `{}` tumbles, and its spin is off by about {error:.1} %; take {}",
            body.name,
            finer_steps(model)
        ));
        return;
    }
    let fix = match body.rotation {
        RotationLaw::Chord => {
            "; or give the body rotation = { spin_about = axis } if it spins about one, or \"free\" if it flies"
        }
        _ => "",
    };
    warn(format!(
        "body `{}` turned by {:.2} rad in one step, and its spin is off by a sixth of the square, {error:.1} %; take {}{fix}",
        body.name,
        stats.turn,
        finer_steps(model)
    ));
}

/// Warns of what makes a simulation doubtful though it was not failed.
///
/// # Errors
/// When a knot's swing cannot be found.
pub fn warn_of_doubts(
    model: &Model,
    t: &Trajectory,
    balance: &Balance,
    stats: &RolloutStats,
    is_done: bool,
) -> Result<(), StepError> {
    let swings = warn_of_swings(model, t, stats);
    warn_of_dampers(model, t);
    warn_of_turns(model, stats);
    warn_of_no_contacts(model);
    warn_of_passing(model, t);
    if is_done {
        warn_of_feedback(model, t, balance);
        warn_of_gain(model, t, balance);
    }
    warn_of_energy(model, balance);
    swings
}

/// Warns of bodies that overlap.
pub fn warn_of_overlap(model: &Model, by: f64) {
    if by > OVERLAP {
        warn(format!(
            "bodies overlap by up to {by:.1e} m: what a step left is pushed out over the next ones; take {}",
            finer_steps(model)
        ));
    }
}
