//! `gradient`: the objective's gradient at the guess by the reverse sweep, and its check by central differences.

use super::progress::Progress;
use super::{Failure, Integrator, model, print_json, report};
use least_action::control::Problem;
use least_action::dynamics::{Certificate, Frame, Observe, StepError, StepFailure};
use least_action::format::{Model, Overrides};
use least_action::integrator::{Mechanical, System, SystemWork};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Mutex;
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

/// What is differentiated: the model's system, or where the problem asks for rates of controls the one that remembers
/// them.
struct Subject<'a, D: Observe> {
    model: &'a Model,
    system: &'a D,
    /// State at the start. A control remembered there is zero: no rate sees it, as no interval lies before it.
    x0: Vec<f64>,
    /// The mechanism's memory within the system's.
    inner: fn(&mut D::Work) -> &mut SystemWork,
}

/// The initial state's independent coordinates: names, and the joint chart's change per unit of each.
struct Independent {
    names: Vec<String>,
    /// dof x dof
    chart: DMatrix<f64>,
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

struct Gradient {
    objective: f64,
    controls: Vec<f64>,
    coordinates: DVector<f64>,
    rates: DVector<f64>,
    parameters: Vec<f64>,
    rollout_seconds: f64,
    cost_seconds: f64,
    gradient_seconds: f64,
    residual: f64,
    certificate: Certificate,
}

fn objective<D: Observe>(
    system: &D,
    problem: &Problem,
    t: &mut Trajectory,
    w: &mut D::Work,
) -> Result<f64, StepError> {
    let mut evaluation = problem.evaluation();
    t.roll(system, w, &mut RolloutStats::default())?;
    problem.evaluate(system, t, w, &mut evaluation)?;
    Ok(evaluation.objective)
}

fn gradient<D: Observe>(
    subject: &Subject<D>,
    frame: &Frame,
    names: &Independent,
) -> Result<Gradient, StepError> {
    let (system, problem) = (subject.system, &subject.model.problem);
    let mut w = system.work();
    let mut t = Trajectory::new(system, problem.intervals.clone(), &subject.x0);
    t.u.copy_from_slice(&problem.guess);
    let mut evaluation = problem.evaluation();
    let mut stats = RolloutStats::default();
    let start = Instant::now();
    t.roll(system, &mut w, &mut stats)?;
    let rollout_seconds = start.elapsed().as_secs_f64();
    // the costs' values and their adjoints at every knot, then the sweep alone
    let start = Instant::now();
    problem.evaluate(system, &t, &mut w, &mut evaluation)?;
    let objective = evaluation.objective;
    let mut sweep = Sweep::new(system, &t);
    let dims = system.dims();
    let mut local = vec![(dims.inputs(), vec![0.0; dims.ny]); t.steps() + 1];
    let mut at = t.knot(0);
    for (k, (out, y)) in local.iter_mut().enumerate() {
        if k == t.steps() {
            y.clear();
        }
        problem.pull(system, &t, &[], &mut evaluation, &at, &mut w, out, y)?;
        at = t.knot_after(&at);
    }
    let cost_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    sweep.run(system, &t, &mut w, |at, _, out, y| {
        out.clone_from(&local[at.k].0);
        y.copy_from_slice(&local[at.k].1);
        Ok(())
    })?;
    let gradient_seconds = start.elapsed().as_secs_f64();
    // once more, not timed, for the residuals of its linear solves
    subject.model.system.certify((subject.inner)(&mut w));
    sweep.run(system, &t, &mut w, |at, _, out, y| {
        out.clone_from(&local[at.k].0);
        y.copy_from_slice(&local[at.k].1);
        Ok(())
    })?;
    let certificate = sweep.certificate;
    let parameters = problem.by_parameters(system, &t.p, &sweep, &mut w)?;
    let mut joint = DVector::zeros(system.dims().ndx);
    frame.embed_transposed(&mut sweep.x0, joint.as_mut_slice());
    let dof = names.chart.nrows();
    Ok(Gradient {
        objective,
        controls: sweep.u,
        coordinates: names.chart.tr_mul(&joint.rows(0, dof)),
        rates: names.chart.tr_mul(&joint.rows(dof, dof)),
        parameters,
        rollout_seconds,
        cost_seconds,
        gradient_seconds,
        certificate,
        residual: (subject.model.system)
            .linear_residual((subject.inner)(&mut w))
            .unwrap_or(f64::NAN),
    })
}

impl Gradient {
    /// Why it is not to be trusted, if so.
    fn refusal(&self) -> Option<String> {
        let parts = [
            &self.controls[..],
            self.coordinates.as_slice(),
            self.rates.as_slice(),
            &self.parameters,
        ];
        if parts.iter().any(|p| p.iter().any(|g| !g.is_finite())) {
            return Some(
                "it is not finite; a read-out or a factorization failed, take a smaller time step"
                    .into(),
            );
        }
        if self.residual.is_nan() || self.residual > 1e-6 {
            return Some(format!(
                "the linear solves leave {:.1e} of their right-hand sides; take a larger kappa in [contact], or a smaller time step",
                self.residual
            ));
        }
        self.certificate.refusal()
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

/// Largest error of a group over its largest entry (or 1e-8 of the objective), the best of three difference steps.
fn compare(
    objective: f64,
    exact: &[f64],
    progress: &Counted,
    by: impl Fn(usize, f64) -> Result<f64, StepError> + Sync,
) -> Result<f64, StepError> {
    let difference = |i: usize, e: f64| {
        let ahead = by(i, e)?;
        let d = match by(i, -e) {
            Ok(behind) => ahead - behind,
            // a parameter at the edge of what has a meaning: to the same order from one side
            Err(f) if f.failure == StepFailure::Parameter => {
                4.0 * ahead - by(i, 2.0 * e)? - 3.0 * by(i, 0.0)?
            }
            Err(f) => return Err(f),
        };
        progress.one_more();
        Ok(d / (2.0 * e))
    };
    let mut best = f64::INFINITY;
    for e in STEPS {
        let differences: Vec<f64> = (0..exact.len())
            .into_par_iter()
            .map(|i| difference(i, e))
            .collect::<Result<_, StepError>>()?;
        let scale = differences
            .iter()
            .fold(1e-8 * objective.abs(), |m, f| m.max(f.abs()));
        let error = exact
            .iter()
            .zip(&differences)
            .fold(0.0_f64, |m, (g, f)| m.max((g - f).abs()));
        best = best.min(if error == 0.0 { 0.0 } else { error / scale });
    }
    Ok(best)
}

/// Difference steps.
const STEPS: [f64; 3] = [1e-4, 1e-5, 1e-6];

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

fn check<D: Observe>(
    subject: &Subject<D>,
    frame: &Frame,
    names: &Independent,
    g: &Gradient,
) -> Result<Value, StepError> {
    let (system, problem) = (subject.system, &subject.model.problem);
    let start = Trajectory::new(system, problem.intervals.clone(), &subject.x0);
    let at = start.knot(0);
    let (dof, ndx) = (names.chart.nrows(), system.dims().ndx);
    let moved = |d: &[f64], change: Option<(usize, f64)>| {
        let (mut t, mut w) = (start.clone(), system.work());
        t.u.copy_from_slice(&problem.guess);
        if let Some((i, e)) = change {
            t.u[i] += e;
        } else {
            let mut x = subject.x0.clone();
            system.retract(
                &at,
                &subject.x0,
                &problem.parameters,
                frame,
                d,
                &mut w,
                &mut x,
            )?;
            t.x[..x.len()].copy_from_slice(&x);
        }
        objective(system, problem, &mut t, &mut w)
    };
    let state = |offset: usize| {
        move |i: usize, e: f64| {
            let mut d = vec![0.0; ndx];
            for k in 0..dof {
                d[offset + k] = e * names.chart[(k, i)];
            }
            moved(&d, None)
        }
    };
    // by a change relative to its value: parameters differ in unit and size
    let sizes: Vec<f64> = problem
        .parameters
        .iter()
        .map(|p| if *p == 0.0 { 1.0 } else { p.abs() })
        .collect();
    let parameter = |i: usize, e: f64| {
        let (mut t, mut w) = (start.clone(), system.work());
        t.u.copy_from_slice(&problem.guess);
        t.p[i] += e * sizes[i];
        let x0 = problem.start(system, &t.p, &mut w)?;
        t.x[..x0.len()].copy_from_slice(&x0);
        objective(system, problem, &mut t, &mut w)
    };
    let by_size: Vec<f64> = g
        .parameters
        .iter()
        .zip(&sizes)
        .map(|(g, s)| g * s)
        .collect();
    let (controls, q, rates) = (&g.controls, g.coordinates.as_slice(), g.rates.as_slice());
    let count = STEPS.len() * (controls.len() + 2 * dof + by_size.len());
    let progress = Counted(Mutex::new((0, Progress::new("checking", count as u64))));
    let mut out = Map::new();
    let mut add = |group: &str, error: f64| out.insert(group.into(), json!(error));
    let of = g.objective;
    add(
        "controls",
        compare(of, controls, &progress, |i, e| moved(&[], Some((i, e))))?,
    );
    add("initial_coordinates", compare(of, q, &progress, state(0))?);
    add("initial_rates", compare(of, rates, &progress, state(dof))?);
    add("parameters", compare(of, &by_size, &progress, parameter)?);
    Ok(Value::Object(out))
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let model = model(&a.file, &a.integrator.over(Overrides::default()))?;
    if model.problem.costs.is_empty() {
        return Err(Failure::input(format!(
            "{}: there are no [[costs]] to differentiate",
            a.file.display()
        )));
    }
    let x0 = model.x0.clone();
    if model.remembers {
        let zeros = std::iter::repeat_n(0.0, model.system.mechanism().actuators.len());
        return differentiate(
            a,
            &Subject {
                model: &model,
                system: &model.remember(),
                x0: x0.into_iter().chain(zeros).collect(),
                inner: |w| w.system(),
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
            print_json(&json!({ "failure": report::failure(&e) }));
        }
        Failure::unsolved(e)
    };
    let at = Trajectory::new(system, model.problem.intervals.clone(), &subject.x0).knot(0);
    let p = &model.problem.parameters;
    let frame = system.frame(&at, &subject.x0, p, None, &mut system.work());
    let frame = frame.map_err(failed)?;
    let names = independent(&model.system, &frame);
    let g = gradient(subject, &frame, &names).map_err(failed)?;
    let check = if a.check {
        Some(check(subject, &frame, &names, &g).map_err(failed)?)
    } else {
        None
    };
    let m = model.system.mechanism();
    let nu = m.actuators.len();
    let by_name = |values: &DVector<f64>| -> Map<String, Value> {
        names
            .names
            .iter()
            .cloned()
            .zip(values.iter().map(|v| json!(v)))
            .collect()
    };
    let controls: Map<String, Value> = m
        .actuators
        .iter()
        .enumerate()
        .map(|(i, c)| {
            (
                c.name.clone(),
                g.controls
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
        let pairs = named.iter().zip(&g.parameters);
        let parameters: Map<String, Value> =
            pairs.map(|(p, v)| (p.name.clone(), json!(v))).collect();
        let mut value = json!({
            "objective": g.objective,
            "gradient": {
                "controls": controls,
                "initial_state": { "coordinates": by_name(&g.coordinates), "rates": by_name(&g.rates) },
                "parameters": parameters,
            },
            "rollout_seconds": g.rollout_seconds,
            "cost_seconds": g.cost_seconds,
            "gradient_seconds": g.gradient_seconds,
            "smoothing": Value::Null,
            "linear_residual": g.residual,
            "certificate": {
                "step_residual": g.certificate.residual,
                "kappa": g.certificate.kappa,
                "smallest_pivot": g.certificate.smallest_pivot,
                "off_centre": g.certificate.off_centre,
                "refused": g.refusal(),
            },
        });
        if let Some(check) = check {
            value["check"] = check;
        }
        print_json(&value);
        return g.verdict();
    }
    println!("objective {:.9}", g.objective);
    println!(
        "rollout {:.3} ms, costs and their derivatives {:.3} ms, reverse sweep {:.3} ms",
        1e3 * g.rollout_seconds,
        1e3 * g.cost_seconds,
        1e3 * g.gradient_seconds
    );
    println!("by the controls, largest component");
    for (i, c) in m.actuators.iter().enumerate() {
        let largest = g
            .controls
            .iter()
            .skip(i)
            .step_by(nu)
            .fold(0.0_f64, |m, v| if v.abs() > m.abs() { *v } else { m });
        println!("  {:<24} {largest:+.9e}", c.name);
    }
    println!(
        "by the initial coordinates and rates{}",
        if m.has_loops() {
            " (independent ones; the loops follow)"
        } else {
            ""
        }
    );
    for (i, n) in names.names.iter().enumerate() {
        println!("  {n:<24} {:+.9e}  {:+.9e}", g.coordinates[i], g.rates[i]);
    }
    if !named.is_empty() {
        println!("by the parameters");
    }
    for (p, v) in named.iter().zip(&g.parameters) {
        println!("  {:<24} {v:+.9e}", p.name);
    }
    if let Some(Value::Object(groups)) = check {
        println!("largest relative difference from central differences");
        for (group, error) in groups {
            println!("  {group:<24} {:.1e}", error.as_f64().unwrap_or(f64::NAN));
        }
    }
    g.verdict()
}
