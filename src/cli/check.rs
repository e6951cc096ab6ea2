//! `gradient --check`: the gradients of the objective and of every constraint held against central differences.
//!
//! With `F(e)` a function at a decision moved by `e`, `f(e) = (F(e) - F(-e)) / 2e` is wrong by `c e^2` (truncation) and
//! `r / e` (rounding of `F`). Three steps a factor of ten apart tell both: `a = |f(e1) - f(e2)|` is the truncation at
//! `e1`, `b = |f(e2) - f(e3)|` the rounding at `e3`, so that the errors are
//!
//! ```text
//! at e1: a + b/100,    at e2: a/99 + b/10,    at e3: a/9900 + b
//! ```
//!
//! and the least of the three counts. A derivative farther from its difference than [`MARGIN`] times that is wrong, unless
//! the function has a kink within the step: contacts or limits that open or close, or slide or stick, on one side
//! only, or derivatives from both sides that differ by the same whatever the step. There differences are no derivative.
//! Points fixed on rims and features that meet change by small parts, with a jump: within a piece, over [`WITHIN`], a
//! derivative must still agree.

use super::gradient::Functions;
use super::kinks;
use super::progress::Progress;
use least_action::dynamics::{Observe, StepError, StepFailure, Stoppable};
use least_action::format::{self, recording::Recording};
use least_action::integrator::Mechanical;
use least_action::mechanism::{Body, Joint};
use least_action::rollout::Trajectory;
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Mutex;

/// Difference steps, a factor of ten apart.
const STEPS: [f64; 3] = [1e-4, 1e-5, 1e-6];
/// Estimates come from one sample of the rounding each, which may be small by chance: one in some 500 is off by this.
const MARGIN: f64 = 30.0;
/// Rounding of a function's value, at least: that of some tens of operations of its size.
const ROUNDING: f64 = 64.0 * f64::EPSILON;
/// What linear solves and the end of the central path leave of a derivative, as a share of the group's largest: some 1e-9
/// to 1e-8 on the problems that come with this; a wrong factor of 1e-6 is still seen.
const EXACT: f64 = 1e-7;
/// The same of a group that vanishes, as a share of the function's largest derivative by anything: sums that cancel.
const CANCELS: f64 = 1e-10;
/// A group whose estimate is more than this share of its largest derivative is looked at for a kink: the central path
/// rounds corners off, so that differences across one are uncertain rather than wrong.
const BLUNT: f64 = 1e-2;
/// What sticks or rests only crawls along the central path, at some 1e-8 m/s where it ends: slower than this share of the
/// problem's speeds it stands still, and smaller derivatives of it count as zero. These have no scale of their own here:
/// that of the speeds would let errors pass where something is fast.
const CRAWL: f64 = 1e-7;
/// What rests on several points creeps otherwise on those that a difference leaves it, by a few times that: where neither
/// derivative nor difference comes to this, nothing is told of it.
const CREEP: f64 = 10.0 * CRAWL;
/// Steps that stay within a piece of a function, where longer ones cross several; and how well differences are known by them, as
/// a share of the group's largest: rounding leaves no more digits.
const WITHIN: [f64; 3] = [1e-7, 1e-8, 1e-9];
const ROUGH: f64 = 1e-3;
/// Derivatives from both sides whose difference changes by less than this factor from step to step meet in a kink: of a
/// smooth function it falls by 10, of rounding it rises by 10.
const PERSISTS: f64 = 2.0;

/// A function's derivative by one decision, from differences.
#[derive(Clone, Copy)]
struct Difference {
    /// Central, by step.
    central: [f64; 3],
    /// From ahead minus from behind, by step; zero where only one side has a meaning.
    sides: [f64; 3],
}

impl Difference {
    /// The step that errs least, and by how much.
    fn best(&self) -> (usize, f64) {
        let [f1, f2, f3] = self.central;
        let (a, b) = ((f1 - f2).abs(), (f2 - f3).abs());
        let errors = [a + b / 100.0, a / 99.0 + b / 10.0, a / 9900.0 + b];
        let best = (0..3).min_by(|i, j| errors[*i].total_cmp(&errors[*j]));
        best.map_or((1, errors[1]), |i| (i, errors[i]))
    }

    /// How far a right derivative may be from the difference: `typical` is the error that differences of the group make,
    /// `value` the function's, `allowed` what the derivative itself may err by.
    fn estimate(&self, typical: f64, value: f64, allowed: f64) -> f64 {
        let (step, error) = self.best();
        let rounding = ROUNDING * value.abs() / STEPS[step];
        MARGIN * error.max(typical) + rounding + allowed
    }

    /// Do the derivatives from both sides differ by the same whatever the step?
    fn has_kink(&self) -> bool {
        let [_, s2, s3] = self.sides;
        let ratio = (s3 / s2).abs();
        ratio < PERSISTS && ratio > 1.0 / PERSISTS
    }

    /// Is `g` between the derivatives from both sides at a step?
    fn reaches(&self, g: f64, step: usize, error: f64) -> bool {
        (g - self.central[step]).abs() <= 0.5 * self.sides[step].abs() * (1.0 + 1e-6) + error
    }
}

/// What is found of a function's derivatives by a group of decisions.
struct Verdict {
    of: String,
    group: &'static str,
    by: &'static str,
    verdict: &'static str,
    /// Largest difference, the estimate of the differences' own error there, and the largest derivative.
    error: f64,
    estimate: f64,
    largest: f64,
    /// The decision with the largest error.
    component: Option<String>,
    /// Knot of a kink, and what changes there.
    kink: Option<(Option<usize>, String)>,
}

impl Verdict {
    fn json(&self) -> Value {
        let kink = self.kink.as_ref();
        json!({
            "of": self.of, "by": self.by, "group": self.group, "verdict": self.verdict,
            "error": self.error, "estimate": self.estimate, "largest": self.largest,
            "component": self.component,
            "knot": kink.and_then(|k| k.0),
            "kink": kink.map(|k| &k.1),
        })
    }
}

/// Relative errors per group as before there were verdicts, and the verdicts.
pub struct Check {
    pub relative: Map<String, Value>,
    verdicts: Vec<Verdict>,
}

/// Below which speed something stands still, m/s, or rad/s where it turns: [`CRAWL`] of the fastest along the rollout, or
/// of what falls by a body's size, which a problem that rests has as well.
fn crawl<D: Observe>(functions: &Functions<D>, t: &Trajectory) -> f64 {
    let system = &functions.subject.model.system;
    let (m, own) = (system.mechanism(), t.of_system(system));
    let motions = (0..=own.steps()).flat_map(|k| {
        let h = k.checked_sub(1).map_or(own.before, |k| own.intervals[k]);
        system.interval_velocities(own.state(k), h)
    });
    let fastest = motions.fold(0.0_f64, |m, (v, w)| m.max(v.norm()).max(w.norm()));
    let sizes = m.bodies.iter().map(Body::radius_of_gyration);
    CRAWL * fastest.max((m.gravity_scale() * sizes.fold(0.0, f64::max)).sqrt())
}

impl Check {
    pub fn json(&self) -> Value {
        self.verdicts.iter().map(Verdict::json).collect()
    }

    /// The verdict on the objective's derivatives by every group, `none` where a group has no decisions: a relative error
    /// says something of them only where they agree or are wrong.
    pub fn of_objective(&self) -> Value {
        let objective = self.verdicts.first().map(|v| &v.of);
        let mut of = Map::new();
        for group in self.relative.keys() {
            let own = |v: &&Verdict| Some(&v.of) == objective && v.group == group;
            let verdict = self.verdicts.iter().find(own).map_or("none", |v| v.verdict);
            of.insert(group.clone(), json!(verdict));
        }
        of.into()
    }

    /// Says what is wrong, if something is.
    pub fn wrong(&self) -> Option<String> {
        let wrong = self.verdicts.iter().filter(|v| v.verdict == "wrong");
        let lines: Vec<String> = wrong
            .map(|v| {
                format!(
                    "the derivative of {} by {} is off by {:.1e}, differences err by {:.1e}",
                    v.of,
                    v.component.as_deref().unwrap_or(v.by),
                    v.error,
                    v.estimate
                )
            })
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The verdicts to people.
    pub fn print(&self) {
        println!(
            "compared with central differences: largest error, the differences' own, largest derivative"
        );
        let mut of = "";
        for v in &self.verdicts {
            if v.of != of {
                println!("  of {}", v.of);
                of = &v.of;
            }
            let kink = match &v.kink {
                Some((_, what)) => format!(": {what}"),
                None if v.verdict == "zero" => ", from both: it says nothing".into(),
                None => String::new(),
            };
            println!(
                "    by {:<20} {:.1e}  {:.1e}  {:.1e}  {}{kink}",
                v.by, v.error, v.estimate, v.largest, v.verdict
            );
        }
    }
}

/// The start with a decision moved by so much, to be simulated.
type Move<'a, W> = dyn Fn(usize, f64, &mut W) -> Result<Trajectory, StepError> + Sync + 'a;

/// A group of decisions: their names, their exact derivatives per function, and what moving one does.
struct Group<'a, D: Observe> {
    name: &'static str,
    label: &'static str,
    components: Vec<String>,
    /// By function, then decision.
    exact: Vec<Vec<f64>>,
    moved: Box<Move<'a, D::Work>>,
}

/// Progress that several threads make.
struct Counted(Mutex<(u64, Progress)>);

impl Counted {
    fn one_more(&self) {
        if let Ok(mut own) = self.0.lock() {
            own.0 += 1;
            let done = own.0;
            own.1.at(done, String::new);
        }
    }
}

/// Values at `+e` and `-e`. At a bound of a parameter's domain only one of them exists: then that step and its value.
enum Sides<T> {
    Both([T; 2]),
    One(f64, T),
}

fn both_sides<T>(
    mut by: impl FnMut(f64) -> Result<T, StepError>,
    e: f64,
) -> Result<Sides<T>, StepError> {
    let is_outside = |f: &StepError| f.failure == StepFailure::Parameter;
    match (by(e), by(-e)) {
        (Ok(plus), Ok(minus)) => Ok(Sides::Both([plus, minus])),
        (Ok(plus), Err(f)) if is_outside(&f) => Ok(Sides::One(e, plus)),
        (Err(f), Ok(minus)) if is_outside(&f) => Ok(Sides::One(-e, minus)),
        (Err(f), _) | (_, Err(f)) => Err(f),
    }
}

/// All functions' differences by decision `i` at every step.
fn differences<D: Observe>(
    functions: &Functions<D>,
    group: &Group<D>,
    i: usize,
    here: &[f64],
    progress: &Counted,
) -> Result<Vec<Difference>, StepError> {
    let mut w = functions.subject.system.work();
    let mut by = |e: f64| {
        let mut t = (group.moved)(i, e, &mut w)?;
        functions.values(&mut t, &mut w)
    };
    let empty = Difference {
        central: [0.0; 3],
        sides: [0.0; 3],
    };
    let mut out = vec![empty; here.len()];
    for (step, e) in STEPS.into_iter().enumerate() {
        match both_sides(&mut by, e)? {
            Sides::Both([plus, minus]) => {
                for ((d, at), (a, b)) in out.iter_mut().zip(here).zip(plus.iter().zip(&minus)) {
                    d.central[step] = (a - b) / (2.0 * e);
                    d.sides[step] = (a - 2.0 * at + b) / e;
                }
            }
            // to the same order from one side
            Sides::One(e, own) => {
                let twice = by(2.0 * e)?;
                for ((d, at), (a, b)) in out.iter_mut().zip(here).zip(own.iter().zip(&twice)) {
                    d.central[step] = (4.0 * a - b - 3.0 * at) / (2.0 * e);
                }
            }
        }
        progress.one_more();
    }
    Ok(out)
}

/// Compares every function's derivatives.
pub fn check<D: Observe>(functions: &Functions<D>) -> Result<Check, StepError> {
    let subject = functions.subject;
    let groups = groups(functions);
    let mut start = functions.start.clone();
    let here = functions.values(&mut start, &mut subject.system.work())?;
    let crawl = crawl(functions, &start);
    let count: usize = groups.iter().map(|g| g.components.len()).sum();
    let progress = Progress::new("checking", (STEPS.len() * count) as u64);
    let progress = Counted(Mutex::new((0, progress)));
    let stoppable = Stoppable::here();
    let mut out = Check {
        relative: Map::new(),
        verdicts: vec![],
    };
    for group in &groups {
        // by decision, then function
        let found: Vec<Vec<Difference>> = (0..group.components.len())
            .into_par_iter()
            .map(|i| stoppable.run(|| differences(functions, group, i, &here, &progress)))
            .collect::<Result<_, StepError>>()?;
        for (f, name) in functions.names.iter().enumerate() {
            let own: Vec<Difference> = found.iter().map(|d| d[f]).collect();
            let exact = &group.exact[f];
            if f == 0 {
                let error = relative(here[0], exact, &own);
                out.relative.insert(group.name.into(), json!(error));
            }
            if !own.is_empty() {
                let verdict = verdict(functions, group, (f, name), (here[f], crawl), &own)?;
                out.verdicts.push(verdict);
            }
        }
    }
    // function by function
    out.verdicts
        .sort_by_key(|v| functions.names.iter().position(|n| *n == v.of));
    Ok(out)
}

/// The groups of decisions.
fn groups<'a, D: Observe>(functions: &'a Functions<'a, D>) -> Vec<Group<'a, D>> {
    let (subject, frame, names) = (functions.subject, functions.frame, functions.independent);
    let (system, problem) = (subject.system, &subject.model.problem);
    let start = &functions.start;
    let (dof, ndx) = (names.names.len(), system.dims().ndx);
    let at = start.knot(0);
    let state = move |offset: usize| {
        move |i: usize, e: f64, w: &mut D::Work| {
            let mut d = vec![0.0; ndx];
            for k in 0..dof {
                d[offset + k] = e * names.chart[(k, i)];
            }
            let (mut t, mut x) = (start.clone(), subject.x0.clone());
            let p = &problem.parameters;
            system.retract(&at, &subject.x0, p, frame, &d, w, &mut x)?;
            t.x[..x.len()].copy_from_slice(&x);
            Ok(t)
        }
    };
    // by a change relative to its value: parameters differ in unit and size
    let sizes: Vec<f64> = problem
        .parameters
        .iter()
        .map(|p| if *p == 0.0 { 1.0 } else { p.abs() })
        .collect();
    let gradients = &functions.gradients;
    let by_size: Vec<Vec<f64>> = gradients
        .iter()
        .map(|g| {
            g.parameters
                .iter()
                .zip(&sizes)
                .map(|(g, s)| g * s)
                .collect()
        })
        .collect();
    let controls = system.controls();
    let nu = controls.len().max(1);
    let control = |i: usize| format!("{} at knot {}", controls[i % nu].0, i / nu);
    let named = system.parameters().into_iter().map(|p| p.name);
    vec![
        Group {
            name: "controls",
            label: "the controls",
            components: (0..problem.guess.len()).map(control).collect(),
            exact: gradients.iter().map(|g| g.controls.clone()).collect(),
            moved: Box::new(move |i, e, _| {
                let mut t = start.clone();
                t.u[i] += e;
                Ok(t)
            }),
        },
        Group {
            name: "initial_coordinates",
            label: "initial coordinates",
            components: names.names.clone(),
            exact: (gradients.iter())
                .map(|g| g.coordinates.as_slice().to_vec())
                .collect(),
            moved: Box::new(state(0)),
        },
        Group {
            name: "initial_rates",
            label: "initial rates",
            components: names.names.iter().map(|n| format!("rate of {n}")).collect(),
            exact: (gradients.iter())
                .map(|g| g.rates.as_slice().to_vec())
                .collect(),
            moved: Box::new(state(dof)),
        },
        Group {
            name: "parameters",
            label: "parameters",
            components: named.collect(),
            exact: by_size,
            moved: Box::new(move |i, e, w| {
                let mut t = start.clone();
                t.p[i] += e * sizes[i];
                problem.set_intervals(&mut t);
                let x0 = problem.start(system, &t.p, w)?;
                t.x[..x0.len()].copy_from_slice(&x0);
                Ok(t)
            }),
        },
    ]
}

/// Largest error of a group over its largest entry (or 1e-8 of the function), the best of the difference steps.
fn relative(value: f64, exact: &[f64], found: &[Difference]) -> f64 {
    let mut best = f64::INFINITY;
    for step in 0..STEPS.len() {
        let at = found.iter().map(|d| d.central[step]);
        let scale = at.clone().fold(1e-8 * value.abs(), |m, f| m.max(f.abs()));
        let error = exact
            .iter()
            .zip(at)
            .fold(0.0_f64, |m, (g, f)| m.max((g - f).abs()));
        best = best.min(if error == 0.0 { 0.0 } else { error / scale });
    }
    best
}

/// What is to be said of a function's derivatives by a group.
fn verdict<D: Observe>(
    functions: &Functions<D>,
    group: &Group<D>,
    (f, name): (usize, &str),
    (value, crawl): (f64, f64),
    found: &[Difference],
) -> Result<Verdict, StepError> {
    let exact = &group.exact[f];
    let mut own: Vec<f64> = found.iter().map(|d| d.best().1).collect();
    own.sort_unstable_by(f64::total_cmp);
    // a decision's own estimate may be small by chance, but hardly that of half of the group
    let typical = own.get(own.len() / 2).copied().unwrap_or(0.0);
    let by = &functions.gradients[f];
    let all = by.controls.iter().chain(by.coordinates.iter());
    let all = all.chain(by.rates.iter()).chain(&by.parameters);
    let steepest = all.fold(0.0_f64, |m, g| m.max(g.abs()));
    let m = functions.subject.model.system.mechanism();
    let limited = |j: &Joint| (j.directions.iter()).any(|d| d.is_limited() || d.friction > 0.0);
    let crawls = !m.contacts.is_empty() || m.joints.iter().any(limited);
    let largest = exact.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
    let allowed = EXACT * largest + CANCELS * steepest + if crawls { CRAWL } else { 0.0 };
    let judged = |i: usize| {
        let (step, _) = found[i].best();
        let estimate = found[i].estimate(typical, value, allowed);
        ((exact[i] - found[i].central[step]).abs(), estimate)
    };
    let excess = |i: &usize| {
        let (error, estimate) = judged(*i);
        // what is no number is wrong
        if error.is_nan() {
            f64::INFINITY
        } else {
            error - estimate
        }
    };
    let mut out = Verdict {
        of: name.to_owned(),
        group: group.name,
        by: group.label,
        verdict: "agrees",
        error: 0.0,
        estimate: 0.0,
        largest,
        component: None,
        kink: None,
    };
    let wrong: Vec<usize> = (0..exact.len()).filter(|i| excess(i) > 0.0).collect();
    let most = |i: &usize, j: &usize| judged(*i).0.total_cmp(&judged(*j).0);
    let Some(worst) = (0..exact.len()).max_by(most) else {
        return Ok(out);
    };
    let say = |out: &mut Verdict, i: usize, verdict: &'static str| {
        (out.error, out.estimate) = judged(i);
        out.component = Some(group.components[i].clone());
        out.verdict = verdict;
    };
    let nothing = largest == 0.0 && judged(worst).0 == 0.0;
    say(&mut out, worst, if nothing { "zero" } else { "agrees" });
    for &i in &wrong {
        let (step, _) = found[i].best();
        let mut kink = None;
        let reaches = found[i].reaches(exact[i], step, judged(i).1);
        if reaches || agrees_within(functions, group, (f, i), ROUGH * largest + allowed)? {
            kink = changes(functions, group, i, (STEPS[step], crawl))?
                .map(|(k, what)| (Some(k), what));
            if kink.is_none() && found[i].has_kink() {
                kink = Some((None, "derivatives from both sides differ".to_owned()));
            }
        }
        if kink.is_none() {
            let size = exact[i].abs().max(found[i].central[step].abs());
            if crawls && size < CREEP {
                if out.kink.is_none() {
                    say(&mut out, i, "too small to tell");
                }
                continue;
            }
            out.kink = None;
            say(&mut out, i, "wrong");
            return Ok(out);
        }
        if out.kink.is_none() {
            out.kink = kink;
            say(&mut out, i, "kink");
        }
    }
    // the least certain: is it one with a kink near by?
    let vague = |i: &usize, j: &usize| judged(*i).1.total_cmp(&judged(*j).1);
    let vaguest = (0..exact.len()).max_by(vague).unwrap_or(worst);
    let estimate = judged(vaguest).1;
    if wrong.is_empty() && largest > 0.0 && estimate > BLUNT * largest {
        if let Some((knot, what)) = changes(functions, group, vaguest, (STEPS[0], crawl))? {
            out.kink = Some((Some(knot), what));
            say(&mut out, vaguest, "kink");
        } else if largest < estimate {
            say(&mut out, vaguest, "too small to tell");
        }
    }
    Ok(out)
}

/// Where functions jump from piece to piece no derivative lies between those from both sides: does it agree with a difference
/// within the piece, on one side at least, to `far`?
fn agrees_within<D: Observe>(
    functions: &Functions<D>,
    group: &Group<D>,
    (f, i): (usize, usize),
    far: f64,
) -> Result<bool, StepError> {
    let mut w = functions.subject.system.work();
    let mut value = |e: f64| -> Result<f64, StepError> {
        let mut t = (group.moved)(i, e, &mut w)?;
        Ok(functions.values(&mut t, &mut w)?[f])
    };
    let here = value(0.0)?;
    for e in WITHIN {
        let slopes = match both_sides(&mut value, e)? {
            Sides::Both([a, b]) => [0.5 * (a - b), a - here, here - b].map(|d| d / e),
            Sides::One(e, own) => [(own - here) / e; 3],
        };
        let off = |d: f64| (d - group.exact[f][i]).abs();
        if slopes.into_iter().any(|d| off(d) <= far) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first knot at which something touches, rests or sticks on one side of the step `e` alone.
fn changes<D: Observe>(
    functions: &Functions<D>,
    group: &Group<D>,
    i: usize,
    (e, crawl): (f64, f64),
) -> Result<Option<(usize, String)>, StepError> {
    let model = functions.subject.model;
    let mut w = functions.subject.system.work();
    let mut recorded = |e: f64| -> Result<Recording, StepError> {
        let mut t = (group.moved)(i, e, &mut w)?;
        functions.values(&mut t, &mut w)?;
        let own = match model.is_plain {
            true => t,
            // of several scenarios the first
            false => model.alone(&t)?.swap_remove(0),
        };
        format::record(model, &own, "simulated", &[])
    };
    let here = recorded(0.0)?;
    // at a bound of a parameter's domain there is one side only
    let sides = match both_sides(&mut recorded, e)? {
        Sides::Both([plus, minus]) => [plus, minus, here],
        Sides::One(_, own) => [own, here.clone(), here],
    };
    // what rests is nearer than the difference step moves it
    let [.., near] = STEPS;
    Ok(kinks::first_change(model, &sides, (crawl, 0.1 * near)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences of a function at a point.
    fn differences_of(f: impl Fn(f64) -> f64) -> Difference {
        Difference {
            central: STEPS.map(|e| (f(e) - f(-e)) / (2.0 * e)),
            sides: STEPS.map(|e| (f(e) - 2.0 * f(0.0) + f(-e)) / e),
        }
    }

    #[test]
    fn estimates_hold_and_see_a_factor_of_a_millionth() {
        for x in [-2.0, -0.7, 0.1, 0.9, 1.3, 2.4] {
            for frequency in [1.0, 3.0, 10.0] {
                let d = differences_of(|e| (frequency * (x + e)).sin());
                let g = frequency * (frequency * x).cos();
                let off = |g: f64| (g - d.central[d.best().0]).abs();
                let estimate = d.estimate(0.0, (frequency * x).sin(), EXACT * g.abs());
                assert!(off(g) < estimate, "{x} {frequency}: {} {estimate}", off(g));
                let wrong = off(g * (1.0 + 1e-6));
                assert!(wrong > estimate, "{x} {frequency}: {wrong} {estimate}");
                assert!(!d.has_kink(), "{x} {frequency}: {:?}", d.sides);
            }
        }
    }

    #[test]
    fn corners_are_kinks() {
        let d = differences_of(|e| (0.3 + e).sin() + 2.0 * e.abs());
        assert!(d.has_kink());
        let (step, error) = d.best();
        let slope = 0.3_f64.cos();
        for (g, between) in [
            (slope - 2.0, true),
            (slope + 2.0, true),
            (slope, true),
            (slope + 2.1, false),
        ] {
            assert_eq!(d.reaches(g, step, error), between, "{g}");
        }
    }
}
