//! `gradient`: the objective's gradient at the guess by the reverse sweep, and its check by central differences.

use super::check::{Check, check};
use super::{Failure, Integrator, model, print_result, report};
use least_action::control::{Cost, Layout, Problem};
use least_action::dynamics::{Certificate, Frame, Observe, Step, StepError};
use least_action::format::{FormatError, Model, Overrides};
use least_action::integrator::{Mechanical, System, SystemWork};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use nalgebra::{DMatrix, DVector};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// A problem
    file: PathBuf,
    /// Compare with central differences
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    integrator: Integrator,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Part of its largest number by which rounding changes a gradient, above which it is none: four digits are what differences can
/// show through contact, and optimizers need fewer.
const LARGE_ERROR: f64 = 1e-4;

/// Part of the objective, and of what it would change by a unit of its quantities, that counts as no derivative.
const NOTHING: f64 = 1e-8;

/// Roundings of its numbers by which the start of a gradient's rollout is moved to see what they do.
const ROUNDINGS: f64 = 2.0;

/// What is differentiated: the model's system, or where the problem asks for rates of controls the one that remembers
/// them.
pub struct Subject<'a, D: Observe> {
    pub model: &'a Model,
    pub system: &'a D,
    /// State at the start. A control remembered there is zero: no rate sees it, as no interval lies before it.
    pub x0: Vec<f64>,
    /// The mechanism's memory within the system's.
    inner: fn(&mut D::Work) -> &mut SystemWork,
}

/// The initial state's independent coordinates: names, and the joint chart's change per unit of each.
pub struct Independent {
    pub names: Vec<String>,
    /// dof x dof
    pub chart: DMatrix<f64>,
}

/// With loops the coordinates depend on each other: picks as many of the tree's as there are freedoms, one by one the
/// one that the freedoms left over move most.
fn independent(system: &System, frame: &Frame) -> Independent {
    let m = system.mechanism();
    let names: Vec<String> = m
        .tree_ids()
        .iter()
        .map(|&id| m.coordinate_name(id))
        .collect();
    let dof = system.mobility().degrees_of_freedom;
    let basis = match system.tangents(frame) {
        Some([basis, _]) => basis,
        None => DMatrix::identity(dof, dof),
    };
    let mut left = basis.clone();
    let mut picked: Vec<usize> = vec![];
    for _ in 0..dof {
        let size = |i: &usize| left.row(*i).norm();
        let Some(best) = (0..left.nrows()).max_by(|a, b| size(a).total_cmp(&size(b))) else {
            break;
        };
        let row = left.row(best).normalize();
        left -= &left * row.transpose() * &row;
        picked.push(best);
    }
    picked.sort_unstable();
    let square = DMatrix::from_fn(dof, dof, |i, j| basis[(picked[i], j)]);
    Independent {
        names: picked.iter().map(|&i| names[i].clone()).collect(),
        chart: square
            .try_inverse()
            .unwrap_or_else(|| DMatrix::identity(dof, dof)),
    }
}

/// Derivatives of a function.
#[derive(Clone)]
pub struct Derivatives {
    pub controls: Vec<f64>,
    pub coordinates: DVector<f64>,
    pub rates: DVector<f64>,
    pub parameters: Vec<f64>,
}

impl Derivatives {
    fn groups(&self) -> [&[f64]; 4] {
        let (coordinates, rates) = (self.coordinates.as_slice(), self.rates.as_slice());
        [&self.controls, coordinates, rates, &self.parameters]
    }

    /// Largest difference to another of a group's numbers, as a part of its largest, which counts as `least` at least.
    fn difference(&self, other: &Self, least: f64) -> f64 {
        // what is no number is the largest
        let larger = |m: f64, x: f64| if x.is_nan() || x > m { x } else { m };
        let of = |(own, other): (&[f64], &[f64])| {
            let size = own.iter().fold(least, |m, g| m.max(g.abs()));
            let apart = own.iter().zip(other).map(|(g, o)| (g - o).abs());
            apart.fold(0.0, larger) / size.max(f64::MIN_POSITIVE)
        };
        self.groups()
            .into_iter()
            .zip(other.groups())
            .map(of)
            .fold(0.0, larger)
    }
}

struct Gradient {
    objective: f64,
    by: Derivatives,
    rollout_seconds: f64,
    cost_seconds: f64,
    gradient_seconds: f64,
    residual: f64,
    /// By how much of it rounding changes it: that of the start, and what linear solves leave.
    error: f64,
    certificate: Certificate,
    /// How many times larger a `kappa` of contacts would give one that is to be trusted, where this is not.
    would_do: Option<f64>,
}

/// What refused gradients are tried at: `kappa` so many times larger, up to contacts of a micrometre.
const SOFTER: [f64; 4] = [10.0, 100.0, 1e3, 1e4];

/// The functions to check, as functions of the decisions: the objective, then every constraint, over its knots with
/// weights that leave no error of one knot to cancel that of another.
pub struct Functions<'a, D: Observe> {
    pub subject: &'a Subject<'a, D>,
    pub frame: &'a Frame,
    pub independent: &'a Independent,
    /// The start with the guessed controls.
    pub start: Trajectory,
    pub names: Vec<String>,
    pub gradients: Vec<Derivatives>,
}

/// Weight of a constraint's value: between a half and three halves, and never the same (by multiples of the golden ratio).
fn weight(value: usize) -> f64 {
    0.5 + (value as f64 * 0.618_033_988_749_895).fract()
}

/// Constraint and place of every value of the constraints.
fn places(layout: &Layout) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..layout.knots()).flat_map(|k| {
        let own = layout.stage(k).constraints.iter();
        own.zip(layout.constraints(k)).map(|((i, _), n)| (*i, n))
    })
}

impl<'a, D: Observe> Functions<'a, D> {
    fn new(
        subject: &'a Subject<'a, D>,
        frame: &'a Frame,
        independent: &'a Independent,
        objective: &Derivatives,
    ) -> Result<Self, StepError> {
        let (system, problem) = (subject.system, &subject.model.problem);
        let quantities = system.quantities();
        let constraints = problem.constraints.iter().enumerate().map(|(i, c)| {
            let name = quantities.get(c.quantity.index()).map_or("", |q| &q.0);
            format!("constraint {} ({name})", i + 1)
        });
        let mut functions = Self {
            subject,
            frame,
            independent,
            start: started(subject, &subject.x0),
            names: std::iter::once("the objective".to_owned())
                .chain(constraints)
                .collect(),
            gradients: vec![objective.clone()],
        };
        let (mut t, mut w) = (functions.start.clone(), system.work());
        t.roll(system, &mut w, &mut RolloutStats::default())?;
        let alone = Problem {
            costs: vec![],
            ..problem.clone()
        };
        let mut evaluation = alone.evaluation();
        alone.evaluate(system, &t, &mut w, &mut evaluation)?;
        let mut sweep = Sweep::new(system, &t).with_cache(system, KEPT);
        for i in 0..alone.constraints.len() {
            let mut multipliers = vec![0.0; evaluation.constraints.len()];
            for (_, n) in places(&evaluation.layout).filter(|(of, _)| *of == i) {
                multipliers[n] = weight(n);
            }
            sweep.run(system, &t, &mut w, |at, w, out, y| {
                alone.pull(system, &t, &multipliers, &mut evaluation, at, w, out, y)
            })?;
            let by = derivatives(subject, frame, independent, &t, &sweep, &mut w)?;
            functions.gradients.push(by);
        }
        Ok(functions)
    }

    /// Simulates, and evaluates all of them.
    pub fn values(&self, t: &mut Trajectory, w: &mut D::Work) -> Result<Vec<f64>, StepError> {
        let (system, problem) = (self.subject.system, &self.subject.model.problem);
        let mut evaluation = problem.evaluation();
        t.roll(system, w, &mut RolloutStats::default())?;
        problem.evaluate(system, t, w, &mut evaluation)?;
        let mut out = vec![0.0; self.names.len()];
        out[0] = evaluation.objective;
        for (i, n) in places(&evaluation.layout) {
            out[1 + i] += weight(n) * evaluation.constraints[n];
        }
        Ok(out)
    }
}

/// Bytes of linearizations that are kept from one constraint to the next.
const KEPT: usize = 1 << 28;

/// The start with the guessed controls.
fn started<D: Observe>(subject: &Subject<D>, x0: &[f64]) -> Trajectory {
    let problem = &subject.model.problem;
    let mut t = Trajectory::new(subject.system, problem.intervals.clone(), x0);
    problem.set_intervals(&mut t);
    t.u.copy_from_slice(&problem.guess);
    t
}

/// A control at a knot.
pub fn control_name(model: &Model, control: usize, knot: usize) -> String {
    let m = model.system.mechanism();
    let name = m.actuators.get(control).map_or("", |a| &a.name);
    format!("{name} at knot {knot}")
}

/// What a sweep found, in the independent coordinates.
fn derivatives<D: Observe>(
    subject: &Subject<D>,
    frame: &Frame,
    names: &Independent,
    t: &Trajectory,
    sweep: &Sweep,
    w: &mut D::Work,
) -> Result<Derivatives, StepError> {
    let (system, problem) = (subject.system, &subject.model.problem);
    let parameters = problem.by_parameters(system, &t.p, sweep, w)?;
    let mut joint = DVector::zeros(system.dims().ndx);
    let mut x0 = sweep.x0.clone();
    frame.embed_transposed(&mut x0, joint.as_mut_slice());
    let dof = names.chart.nrows();
    Ok(Derivatives {
        controls: sweep.u.clone(),
        coordinates: names.chart.tr_mul(&joint.rows(0, dof)),
        rates: names.chart.tr_mul(&joint.rows(dof, dof)),
        parameters,
    })
}

/// The gradient; where it is not to be trusted, with the `kappa` at which it would be.
fn gradient<D: Observe>(
    subject: &Subject<D>,
    frame: &Frame,
    names: &Independent,
) -> Result<Gradient, StepError> {
    let mut found = gradient_at(subject, frame, names, 0.0)?;
    if found.refusal().is_some() && found.certificate.has_gaps {
        let kappa = found.certificate.kappa;
        found.would_do = SOFTER.into_iter().find(|times| {
            let softer = gradient_at(subject, frame, names, times * kappa);
            softer.is_ok_and(|g| g.refusal().is_none())
        });
    }
    Ok(found)
}

/// What costs would change by if their quantities did by a unit of each.
fn worth(problem: &Problem) -> f64 {
    let n = problem.intervals.len();
    let knots = |c: &Cost| -> f64 {
        let held = (0..=n).filter(|k| c.when.holds(*k, n));
        let of = |k: usize| match c.when.is_along() {
            true => problem.intervals.get(k).map_or(0.0, |h| h.abs()),
            false => 1.0,
        };
        held.map(of).sum()
    };
    problem
        .costs
        .iter()
        .map(|c| c.weight.abs() * knots(c))
        .sum()
}

/// The gradient of steps on the central path at `kappa`, m^2/s^2, if that is larger than their own.
fn gradient_at<D: Observe>(
    subject: &Subject<D>,
    frame: &Frame,
    names: &Independent,
    kappa: f64,
) -> Result<Gradient, StepError> {
    let (system, problem) = (subject.system, &subject.model.problem);
    let mut w = system.work();
    system.soften(&mut w, kappa);
    let mut t = started(subject, &subject.x0);
    let mut evaluation = problem.evaluation();
    let mut stats = RolloutStats::default();
    let start = Instant::now();
    t.roll(system, &mut w, &mut stats)?;
    let rollout_seconds = start.elapsed().as_secs_f64();
    // the costs' values and their adjoints at every knot, then the sweep alone
    let start = Instant::now();
    let mut sweep = Sweep::new(system, &t);
    let dims = system.dims();
    let mut costs = |t: &Trajectory, w: &mut D::Work| {
        problem.evaluate(system, t, w, &mut evaluation)?;
        let mut local = vec![(dims.inputs(), vec![0.0; dims.ny]); t.steps() + 1];
        let mut at = t.knot(0);
        for (k, (out, y)) in local.iter_mut().enumerate() {
            if k == t.steps() {
                y.clear();
            }
            problem.pull(system, t, &[], &mut evaluation, &at, w, out, y)?;
            at = t.knot_after(&at);
        }
        Ok((evaluation.objective, local))
    };
    let (objective, local) = costs(&t, &mut w)?;
    let cost_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    sweep.run(system, &t, &mut w, |at, _, out, y| {
        out.clone_from(&local[at.k].0);
        y.copy_from_slice(&local[at.k].1);
        Ok(())
    })?;
    let gradient_seconds = start.elapsed().as_secs_f64();
    let by = derivatives(subject, frame, names, &t, &sweep, &mut w)?;
    // once more, not timed: from a start moved by rounding, all linear solves corrected once more
    let moved = |(i, x): (usize, &f64)| {
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        x + sign * ROUNDINGS * f64::EPSILON * x.abs().max(1.0)
    };
    let x0: Vec<f64> = subject.x0.iter().enumerate().map(moved).collect();
    let mut t = started(subject, &x0);
    let mut again = || -> Result<Derivatives, StepError> {
        t.roll(system, &mut w, &mut stats)?;
        let (_, local) = costs(&t, &mut w)?;
        subject.model.system.certify((subject.inner)(&mut w));
        sweep.run(system, &t, &mut w, |at, _, out, y| {
            out.clone_from(&local[at.k].0);
            y.copy_from_slice(&local[at.k].1);
            Ok(())
        })?;
        derivatives(subject, frame, names, &t, &sweep, &mut w)
    };
    let least = NOTHING * (objective.abs() + worth(problem));
    let error = again().map_or(f64::INFINITY, |again| by.difference(&again, least));
    let certificate = sweep.certificate;
    Ok(Gradient {
        objective,
        error,
        by,
        rollout_seconds,
        cost_seconds,
        gradient_seconds,
        certificate,
        residual: (subject.model.system)
            .linear_residual((subject.inner)(&mut w))
            .unwrap_or(f64::NAN),
        would_do: None,
    })
}

impl Gradient {
    /// Why it is not to be trusted, if so.
    fn refusal(&self) -> Option<String> {
        if (self.by.groups().iter()).any(|p| p.iter().any(|g| !g.is_finite())) {
            return Some(
                "it is not finite; a read-out or a factorization failed, take a smaller time step"
                    .into(),
            );
        }
        if self.error == f64::INFINITY {
            let remedy = self.remedy();
            return Some(format!(
                "a start that differs by rounding leads to a step without solution; {remedy}"
            ));
        }
        if self.error.is_nan() || self.error > LARGE_ERROR {
            return Some(format!(
                "rounding changes it by {:.1e} of itself; {}",
                self.error,
                self.remedy()
            ));
        }
        self.certificate.refusal(&self.remedy())
    }

    fn remedy(&self) -> String {
        match self.would_do {
            Some(times) => format!("a kappa {times} times larger in [contact] would do"),
            None if self.certificate.has_gaps => {
                "take a larger kappa in [contact], or a smaller time step".into()
            }
            None => "take a shorter horizon, along which it grows, or a smaller time step".into(),
        }
    }

    fn verdict(&self) -> Result<(), Failure> {
        match self.refusal() {
            Some(reason) => Err(Failure::unsolved(format!(
                "the gradient is not to be trusted: {reason}"
            ))),
            None => Ok(()),
        }
    }
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let model = model(&a.file, &a.integrator.over(Overrides::default()))?;
    if model.problem.costs.is_empty() {
        return Err(FormatError::of_file(
            &a.file,
            "there are no [[costs]] to differentiate",
            "add the costs of what is wanted",
        )
        .into());
    }
    let x0 = model.x0.clone();
    if !model.is_plain {
        let system = model.extended();
        let start = model
            .problem
            .start(&system, &model.problem.parameters, &mut system.work());
        return differentiate(
            a,
            &Subject {
                model: &model,
                x0: start.map_err(Failure::unsolved)?,
                system: &system,
                inner: |w| w.system(0).system().system().system(),
            },
        );
    }
    differentiate(
        a,
        &Subject {
            model: &model,
            system: &model.system,
            x0,
            inner: |w| w,
        },
    )
}

fn differentiate<D: Observe>(a: &Arguments, subject: &Subject<D>) -> Result<(), Failure> {
    let (model, system) = (subject.model, subject.system);
    let failed = |e: StepError| {
        if a.json {
            print_result(json!({ "failure": report::failure(&e) }));
        }
        Failure::unsolved(e)
    };
    let at = started(subject, &subject.x0).knot(0);
    let p = &model.problem.parameters;
    let frame = system.frame(&at, &subject.x0, p, None, &mut system.work());
    let frame = frame.map_err(failed)?;
    let names = independent(&model.system, &frame);
    let g = gradient(subject, &frame, &names).map_err(failed)?;
    let check = if a.check {
        let functions = Functions::new(subject, &frame, &names, &g.by).map_err(failed)?;
        Some(check(&functions).map_err(failed)?)
    } else {
        None
    };
    let named_controls = system.controls();
    let nu = named_controls.len();
    let by_name = |values: &DVector<f64>| -> Map<String, Value> {
        names
            .names
            .iter()
            .cloned()
            .zip(values.iter().map(|v| json!(v)))
            .collect()
    };
    let controls: Map<String, Value> = named_controls
        .iter()
        .enumerate()
        .map(|(i, (name, _))| {
            (
                name.clone(),
                g.by.controls
                    .iter()
                    .skip(i)
                    .step_by(nu.max(1))
                    .copied()
                    .collect::<Vec<_>>()
                    .into(),
            )
        })
        .collect();
    let named = system.parameters();
    if a.json {
        let pairs = named.iter().zip(&g.by.parameters);
        let parameters: Map<String, Value> =
            pairs.map(|(p, v)| (p.name.clone(), json!(v))).collect();
        let mut value = json!({
            "objective": g.objective,
            "gradient": {
                "controls": controls,
                "initial_state": { "coordinates": by_name(&g.by.coordinates), "rates": by_name(&g.by.rates) },
                "parameters": parameters,
            },
            "rollout_seconds": g.rollout_seconds,
            "cost_seconds": g.cost_seconds,
            "gradient_seconds": g.gradient_seconds,
            "smoothing": Value::Null,
            "linear_residual": g.residual,
            "error": g.error,
            "certificate": {
                "step_residual": g.certificate.residual,
                "kappa": g.certificate.kappa,
                "smallest_pivot": g.certificate.smallest_pivot,
                "off_centre": g.certificate.off_centre,
                "refused": g.refusal(),
            },
        });
        if let Some(check) = &check {
            value["check"] = check.relative.clone().into();
            value["check_verdicts"] = check.of_objective();
            value["verdicts"] = check.json();
        }
        print_result(value);
        return verdict(&g, check.as_ref());
    }
    println!("objective {:.9}", g.objective);
    println!(
        "rollout {:.3} ms, costs and their derivatives {:.3} ms, reverse sweep {:.3} ms",
        1e3 * g.rollout_seconds,
        1e3 * g.cost_seconds,
        1e3 * g.gradient_seconds
    );
    println!("by the controls, largest component");
    for (i, (name, _)) in named_controls.iter().enumerate() {
        let largest =
            g.by.controls
                .iter()
                .skip(i)
                .step_by(nu)
                .fold(0.0_f64, |m, v| if v.abs() > m.abs() { *v } else { m });
        println!("  {:<24} {largest:+.9e}", name);
    }
    println!(
        "by the initial coordinates and rates{}",
        if model.system.mechanism().has_loops() {
            " (independent ones; the loops follow)"
        } else {
            ""
        }
    );
    for (i, n) in names.names.iter().enumerate() {
        println!(
            "  {n:<24} {:+.9e}  {:+.9e}",
            g.by.coordinates[i], g.by.rates[i]
        );
    }
    if !named.is_empty() {
        println!("by the parameters");
    }
    for (p, v) in named.iter().zip(&g.by.parameters) {
        println!("  {:<24} {v:+.9e}", p.name);
    }
    if let Some(check) = &check {
        check.print();
    }
    verdict(&g, check.as_ref())
}

/// Differences know better than the certificate, which then is a note.
fn verdict(g: &Gradient, check: Option<&Check>) -> Result<(), Failure> {
    let Some(check) = check else {
        return g.verdict();
    };
    if let Some(wrong) = check.wrong() {
        return Err(Failure::unsolved(wrong));
    }
    if let Some(reason) = g.refusal() {
        eprintln!("note: without the differences the gradient would not be trusted: {reason}");
    }
    Ok(())
}
