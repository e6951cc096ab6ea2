//! The objective as a function: gradients by every way in, batches, and what does not fit.

use crate::common::Source;
use crate::common::case::{chain, costs, system};
use least_action::control::{Cost, Objective, Point, Problem, ProblemError, When};
use least_action::dynamics::{QuantityId, Start, Step, StepFailure, Stored};
use least_action::integrator::{Maximal, Mechanical};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};

const STEPS: usize = 12;

fn swing() -> (Maximal, Problem) {
    let m = chain().parameter("load", &["bodies.bar2.mass"]).parameter(
        "reach",
        &["joints.j1.parent_anchor.z", "joints.j2.parent_anchor.z"],
    );
    let q = [0.9, -0.4, 0.7];
    let s = system(&m, &q);
    let n = s.outputs().len();
    let mut r = Source::new(21);
    let problem = Problem {
        rates: vec![0.5, -1.0, 0.3],
        costs: costs(n, &mut r),
        guess: r.vector(3 * STEPS, 0.5),
        ..Problem::new(&s, vec![0.02; STEPS], q.to_vec())
    };
    (s, problem)
}

/// Central difference of fourth order.
fn slope(f: impl Fn(f64) -> f64, e: f64) -> f64 {
    (8.0 * (f(e) - f(-e)) - (f(2.0 * e) - f(-2.0 * e))) / (12.0 * e)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn moved(x: &[f64], e: f64, d: &[f64]) -> Vec<f64> {
    x.iter().zip(d).map(|(x, d)| x + e * d).collect()
}

#[test]
fn the_gradient_is_that_of_every_way_in() {
    let (s, problem) = swing();
    let objective = Objective::new(&s, &problem).expect("fits");
    let mut work = objective.work();
    let at = objective.guess();
    let g = objective
        .value_and_gradient(&at, &mut work)
        .expect("solved");
    let value = |p: &Point| objective.value(p, &mut objective.work()).expect("solved");
    assert_eq!(g.objective, value(&at));
    let close = |exact: f64, f: &dyn Fn(f64) -> f64, what: &str| {
        let numeric = slope(f, 1e-4);
        let error = (exact - numeric).abs();
        assert!(
            error < 1e-7 * numeric.abs().max(1e-2),
            "{what}: {exact} {numeric}"
        );
    };
    let mut r = Source::new(22);
    for round in 0..3 {
        let (du, dp) = (r.vector(3 * STEPS, 1.0), r.vector(2, 0.1));
        close(
            dot(&g.controls, &du),
            &|e| {
                let controls = moved(&at.controls, e, &du);
                value(&Point {
                    controls,
                    ..at.clone()
                })
            },
            &format!("controls {round}"),
        );
        close(
            dot(&g.parameters, &dp),
            &|e| {
                let parameters = moved(&at.parameters, e, &dp);
                value(&Point {
                    parameters,
                    ..at.clone()
                })
            },
            &format!("parameters {round}"),
        );
    }
    // from a start of its own, by parameters, and by its stored numbers, quaternions kept at length one
    let own = Point {
        start: Some(g.start.clone()),
        ..at
    };
    let g = objective
        .value_and_gradient(&own, &mut work)
        .expect("solved");
    assert_eq!(g.objective, value(&own));
    let dp = [0.1, 0.0];
    close(
        dot(&g.parameters, &dp),
        &|e| {
            let parameters = moved(&own.parameters, e, &dp);
            value(&Point {
                parameters,
                ..own.clone()
            })
        },
        "parameters at a start of its own",
    );
    let by_stored = objective.by_stored_start(&g);
    // three bodies and three unwound angles, which follow from the poses
    assert_eq!((by_stored.len(), g.by_start.len()), (42, 36));
    assert_eq!(by_stored[39..], [0.0; 3]);
    for body in 0..3 {
        let d = r.vector(13, 0.3);
        let along = |e: f64| {
            let mut x = g.start.clone();
            let part = &mut x[13 * body..13 * body + 13];
            part.iter_mut().zip(&d).for_each(|(x, d)| *x += e * d);
            let length = part[3..7].iter().map(|q| q * q).sum::<f64>().sqrt();
            part[3..7].iter_mut().for_each(|q| *q /= length);
            x
        };
        let exact = dot(&by_stored[13 * body..13 * body + 13], &d);
        close(
            exact,
            &|e| {
                let start = Some(along(e));
                value(&Point {
                    start,
                    ..own.clone()
                })
            },
            &format!("start of body {body}"),
        );
    }
    // the two products are each other's transposes, and the first is a difference
    let (free, adjoint) = (r.vector(36, 1.0), r.vector(36, 1.0));
    let (mut stored, mut back) = (vec![0.0; 42], vec![0.0; 42]);
    s.stored_push(&g.start, &free, &mut stored);
    s.stored_pull(&g.start, &adjoint, &mut back);
    assert!((dot(&back, &stored) - dot(&adjoint, &free)).abs() < 1e-12);
}

/// The bits of a whole batch are the same for one thread and for two; what fails is counted and harms nothing else.
#[test]
fn batches_are_the_same_bits_and_count_what_fails() {
    let (s, problem) = swing();
    let objective = Objective::new(&s, problem).expect("fits");
    let mut r = Source::new(23);
    let mut points: Vec<Point> = (0..9)
        .map(|_| Point {
            controls: r.vector(3 * STEPS, 1.0),
            ..objective.guess()
        })
        .collect();
    points[2].controls[5] = f64::NAN;
    points[4].controls.pop();
    points[5].start = Some(vec![0.0; 3]);
    points[7].parameters[0] = -1.0;
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads")
            .install(|| objective.values_and_gradients(&points))
    };
    let (one, two) = (with(1), with(2));
    assert_eq!(one.failed(), 4);
    use StepFailure::{NotFinite, Parameter, Size};
    assert_eq!(
        one.failures(),
        [(NotFinite, 1, 2), (Size, 2, 4), (Parameter, 1, 7)]
    );
    assert_eq!(one.succeeded().count(), 5);
    for (i, (a, b)) in one.results.iter().zip(&two.results).enumerate() {
        match (a, b) {
            (Ok(a), Ok(b)) => assert_eq!(a, b, "{i}"),
            (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
            _ => panic!("{i}: {a:?} {b:?}"),
        }
    }
    let values = objective.values(&points);
    for (i, g) in one.succeeded() {
        assert_eq!(values.results[i], Ok(g.objective));
    }
    // each is what it is alone
    let alone = objective.value_and_gradient(&points[8], &mut objective.work());
    assert_eq!(alone, one.results[8]);
}

#[test]
fn wrong_lengths_are_errors() {
    let (s, problem) = swing();
    let (mut w, mut stats) = (s.work(), RolloutStats::default());
    let x0 = problem.start(&s, &problem.parameters, &mut w);
    let x0 = x0.expect("a start");
    let good = Trajectory::new(&s, problem.intervals.clone(), &x0);
    type Spoil = fn(&mut Trajectory);
    let spoiled: [(&str, Spoil); 5] = [
        ("states", |t| t.x.truncate(20)),
        ("controls", |t| t.u.push(0.0)),
        ("unknowns", |t| t.y.clear()),
        ("parameters", |t| t.p.push(1.0)),
        ("states", |t| t.intervals.push(0.02)),
    ];
    for (what, spoil) in spoiled {
        let mut t = good.clone();
        spoil(&mut t);
        let e = t.roll(&s, &mut w, &mut stats).expect_err(what);
        assert_eq!((e.failure, e.element.as_str()), (StepFailure::Size, what));
        let run = Sweep::new(&s, &good).run(&s, &t, &mut w, |_, _, _, _| Ok(()));
        assert_eq!(run.expect_err(what).failure, StepFailure::Size);
    }
    // a start too short, and a sweep over more steps than it was made for
    let mut short = Trajectory::new(&s, vec![0.02; 3], &x0[..30]);
    let e = short.roll(&s, &mut w, &mut stats).expect_err("too short");
    assert_eq!(e.failure, StepFailure::Size);
    let mut longer = Trajectory::new(&s, vec![0.02; STEPS + 1], &x0);
    longer.roll(&s, &mut w, &mut stats).expect("rolls");
    let run = Sweep::new(&s, &good).run(&s, &longer, &mut w, |_, _, _, _| Ok(()));
    assert!(
        run.expect_err("longer")
            .to_string()
            .contains("room for 12 steps")
    );
    let start = |q: &[f64], rates: &[f64], p: &[f64], w: &mut _| {
        let from = Start::at_rates(q, rates);
        let e = s.initial(&from, p, w, &mut x0.clone());
        let by = s.initial_by_parameters(&from, p, w);
        let (e, by) = (e.expect_err("refused"), by.expect_err("refused"));
        assert_eq!(
            (e.failure, by.failure),
            (StepFailure::Size, StepFailure::Size)
        );
    };
    start(&[0.1; 2], &[0.0; 3], &problem.parameters, &mut w);
    start(&[0.1; 3], &[0.0; 4], &problem.parameters, &mut w);
    start(&[0.1; 3], &[0.0; 3], &[1.0], &mut w);
}

#[test]
fn a_problem_that_does_not_fit_is_refused_before_it_is_solved() {
    let (s, mut problem) = swing();
    let beyond = QuantityId::new(s.outputs().len());
    problem.costs = vec![Cost::square(QuantityId::new(0), 0.0, 1.0, When::End); 2];
    problem.costs[1].quantity = beyond;
    let e: ProblemError = Objective::new(&s, &problem).expect_err("refused");
    assert!(e.to_string().starts_with("costs[1]: "), "{e}");
}
