//! Parameters from what was recorded, and gains from what is wanted, by Levenberg and Marquardt's method.

use crate::common::Source;
use crate::problems::load;
use crate::statistics::hold;
use least_action::control::{Form, Objective, Problem};
use least_action::dynamics::Observe;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{Method, Reduced, Solution, Solve, Status};
use std::path::PathBuf;

/// What moved when the record was taken: masses of upper arm and forearm, kg; damping of yaw, shoulder and elbow, N m s/rad. In the
/// order of the problem's parameters.
const TRUE: [f64; 5] = [1.4, 0.8, 0.25, 0.35, 0.12];
/// Standard deviation of the noise by an angle's range.
const NOISE: f64 = 0.01;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
}

/// A number of unit variance (Box and Muller).
fn normal(s: &mut Source) -> f64 {
    let (a, b) = (0.5 * (1.0 + s.unit()), std::f64::consts::PI * s.unit());
    (-2.0 * (1.0 - a).max(f64::MIN_POSITIVE).ln()).sqrt() * b.cos()
}

/// The angles as they were, a list each.
fn motion(m: &Model) -> Vec<Vec<f64>> {
    let system = m.extended();
    let objective = Objective::new(&system, &m.problem).expect("fits");
    let mut w = objective.work();
    let mut point = objective.guess();
    point.parameters.copy_from_slice(&TRUE);
    objective.value(&point, &mut w).expect("simulated");
    let e = w.evaluation();
    let of = |i: usize| {
        let each = 0..m.problem.intervals.len();
        let values = each.map(|k| {
            let (_, place) = e.layout.stage(k).costs[i];
            e.values[e.layout.values(k)][place]
        });
        values.collect()
    };
    (0..m.problem.costs.len()).map(of).collect()
}

/// The record with noise; the last knot has no share in the costs.
fn recorded(m: &Model, seed: u64) -> Vec<Vec<f64>> {
    let mut source = Source::new(seed);
    let mut all = motion(m);
    for angle in &mut all {
        let (low, high) = angle
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
                (l.min(*v), h.max(*v))
            });
        for v in angle.iter_mut() {
            *v += NOISE * (high - low) * normal(&mut source);
        }
        angle.push(0.0);
    }
    all
}

fn with_record(m: &Model, record: Vec<Vec<f64>>) -> Problem {
    let mut p = m.problem.clone();
    for (cost, own) in m.problem.costs.iter().zip(record) {
        p.profiles[cost.profile.expect("recorded")] = own;
    }
    p
}

fn solved<D: Observe>(d: &D, p: &Problem) -> Solution {
    let solve = Solve::new(d, p).with_method(Method::LevenbergMarquardt);
    let s = solve.run().expect("no error of argmin");
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    s
}

/// Largest relative error of the parameters.
fn error(s: &Solution) -> f64 {
    let each = s.trajectory.p.iter().zip(TRUE);
    each.fold(0.0, |m: f64, (p, t)| m.max((p / t - 1.0).abs()))
}

#[test]
fn masses_and_damping_are_found_from_noisy_records() {
    let m = load("arm_identification");
    let system = m.extended();
    let mut scatter = 0.0;
    for seed in [1, 2, 3] {
        let s = solved(&system, &with_record(&m, recorded(&m, seed)));
        assert!(error(&s) < 0.01, "seed {seed}: {:?}", s.trajectory.p);
        let c = s.covariance.expect("squares");
        for ((p, t), sd) in s.trajectory.p.iter().zip(TRUE).zip(c.standard_deviations()) {
            assert!(sd < 0.01 * t, "{sd} of {t}");
            scatter += ((p - t) / sd).powi(2) / 15.0;
        }
    }
    // 15 numbers of unit variance, not all independent: chi squared of 15 is within 4.6 and 32.8 in 99 of 100 cases
    assert!((4.6 / 15.0..32.8 / 15.0).contains(&scatter), "{scatter}");
}

/// The record that is shipped is the one of the first seed, as it is written; `RECORD=1` writes it anew.
#[test]
fn the_shipped_record_is_found_anew() {
    let m = load("arm_identification");
    let file = path("arm_identification.csv");
    let mut text = std::fs::read_to_string(&file).expect("shipped");
    let record = recorded(&m, 1);
    if std::env::var_os("RECORD").is_some() {
        let rewrite = |(k, line): (usize, &str)| {
            let mut row: Vec<String> = line.split(',').map(str::to_owned).collect();
            for (own, to) in record.iter().zip(&mut row[1..]) {
                if let Some(v) = k.checked_sub(1).and_then(|k| own.get(k)) {
                    *to = format!("{v:.6}");
                }
            }
            row.join(",") + "\n"
        };
        text = text.lines().enumerate().map(rewrite).collect();
        std::fs::write(&file, &text).expect("written");
    }
    for (k, line) in text
        .lines()
        .skip(1)
        .take(m.problem.intervals.len())
        .enumerate()
    {
        let row: Vec<f64> = line
            .split(',')
            .map(|v| v.parse().expect("a number"))
            .collect();
        for (own, v) in record.iter().zip(&row[1..]) {
            assert!((own[k] - v).abs() < 1e-5, "line {k}");
        }
    }
    let s = solved(&m.extended(), &m.problem);
    hold("arm_identification by levenberg-marquardt", &s, 1e-8);
    assert!(error(&s) < 0.01, "{:?}", s.trajectory.p);
}

/// Samples that are wrong pull squares away, and Huber's form of them little.
#[test]
fn robust_costs_bear_wrong_samples() {
    let m = load("arm_identification");
    let system = m.extended();
    let mut record = recorded(&m, 1);
    let mut source = Source::new(9);
    for angle in &mut record {
        for _ in 0..24 {
            let k = source.below(m.problem.intervals.len());
            angle[k] += 1.0;
        }
    }
    let mut p = with_record(&m, record);
    let by_squares = error(&solved(&system, &p));
    for c in &mut p.costs {
        c.form = Form::Huber(0.02);
    }
    let robust = error(&solved(&system, &p));
    assert!(
        robust < 0.01 && by_squares > 2.0 * robust,
        "{robust} {by_squares}"
    );
}

/// Derivatives of the residuals, carried forward, against differences.
#[test]
fn the_jacobian_is_that_of_the_residuals() {
    use argmin::core::{Jacobian, Operator};
    let m = load("arm_identification");
    let system = m.extended();
    let reduced = Reduced::new(&system, &m.problem).expect("fits");
    let v = reduced.guess();
    let j = reduced.jacobian(&v).expect("linearized");
    for i in 0..v.len() {
        let by = |e: f64| {
            let mut moved = v.clone();
            moved[i] += e;
            reduced.apply(&moved).expect("simulated")
        };
        // to sixth order, from steps that leave the tolerance of the states far below
        let difference = |e: f64| (by(e) - by(-e)) / (2.0 * e);
        let better = |e: f64| (difference(e) * 4.0 - difference(2.0 * e)) / 3.0;
        let best = (better(4e-3) * 16.0 - better(8e-3)) / 15.0;
        let far = (j.column(i) - &best).amax();
        assert!(
            far < 1e-6 * best.amax(),
            "parameter {i}: {far} of {}",
            best.amax()
        );
    }
}

/// Numbers of a mechanism under costs that are no squares, and gains that serve three carts: where `ddp` ends it stays, and from
/// the common guess it finds no worse.
#[test]
fn tuning_agrees_with_ddp() {
    let m = load("damper_tuning");
    let system = m.extended();
    let ours = solved(&system, &m.problem);
    hold("damper_tuning by levenberg-marquardt", &ours, 1e-8);
    let theirs = Solve::new(&system, &m.problem).run().expect("solved");
    assert!(ours.objective < theirs.objective * (1.0 + 1e-6));
    let mut from_there = m.problem.clone();
    from_there.parameters.clone_from(&theirs.trajectory.p);
    let again = solved(&system, &from_there).objective;
    assert!((again / theirs.objective - 1.0).abs() < 1e-6, "{again}");
    let text = std::fs::read_to_string(path("cartpole_gains.toml")).expect("shipped");
    let summed = text.replace("worst_case = true", "");
    let m = format::parse(&summed, "gains.toml").and_then(|d| d.build(&Overrides::default()));
    let m = m.expect("a problem");
    let system = m.extended();
    let ours = solved(&system, &m.problem).objective;
    let theirs = Solve::new(&system, &m.problem)
        .run()
        .expect("solved")
        .objective;
    assert!((ours / theirs - 1.0).abs() < 1e-5, "{ours} {theirs}");
}
