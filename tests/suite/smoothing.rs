//! Optimal control through contact: derivatives relaxed at first find what those of hard contact do not.

use crate::common::touch::{HARD, Masses, Touch};
use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::Start;
use least_action::dynamics::{
    Charts, Differentiable, Explicit, LinearModel, Observe, QuantityId, Real, Remember, Smooth,
    SolvedStep, Step,
};
use least_action::format::{self, Overrides};
use least_action::optimize::ddp::{Options, Smoothing};
use least_action::optimize::{Checkpoint, Checkpoints, Solution, Solve, Status};
use least_action::rollout::{RolloutStats, Trajectory};
use nalgebra::{DMatrix, DVector};
use rand::{RngExt, SeedableRng};
use std::time::Duration;

fn solve<D: Observe>(d: &D, p: &Problem, smoothing: Option<Smoothing>) -> Solution {
    let options = Options {
        smoothing,
        ..Options::default()
    };
    Solve::new(d, p)
        .with_options(options)
        .run()
        .expect("no argmin error")
}

/// 1 kg on the floor, friction 0.1, to be pushed 1 m and left at rest.
fn block() -> (Masses, Problem) {
    let d = Masses {
        mass: vec![1.0],
        gravity: 0.0,
        drive: DMatrix::from_element(1, 1, 1.0),
        row: vec![1.0],
        touch: Touch::Friction(0.1 * 9.81),
    };
    let mut p = Problem::new(&d, vec![0.1; 10], vec![0.0]);
    p.rates = vec![0.0];
    let [x, v, push] = [0, 1, 2].map(QuantityId::new);
    p.costs = vec![
        Cost::square(x, 1.0, 1.0, When::Running),
        Cost::square(v, 0.0, 1.0, When::Running),
        Cost::square(push, 0.0, 0.01, When::Running),
        Cost::square(x, 1.0, 1.0, When::End),
        Cost::square(v, 0.0, 1.0, When::End),
    ];
    (d, p)
}

/// A driven mass 0.2 m behind another, which is to be 1 m further after a second.
fn pusher() -> (Masses, Problem) {
    let d = Masses {
        mass: vec![1.0, 1.0],
        gravity: 0.0,
        drive: DMatrix::from_column_slice(2, 1, &[1.0, 0.0]),
        row: vec![-1.0, 1.0],
        touch: Touch::Contact(0.0),
    };
    let mut p = Problem::new(&d, vec![0.05; 20], vec![-0.2, 0.0]);
    p.rates = vec![0.0, 0.0];
    let [pushed, push] = [1, 4].map(QuantityId::new);
    p.costs = vec![
        Cost::square(push, 0.0, 0.01, When::Running),
        Cost::square(pushed, 1.0, 10.0, When::End),
    ];
    (d, p)
}

/// A body with a foot of 0.2 kg that stands on the floor and a force between them: both are to be 0.3 m higher after half
/// a second.
fn hopper() -> (Masses, Problem) {
    let d = Masses {
        mass: vec![1.0, 0.2],
        gravity: 9.81,
        drive: DMatrix::from_column_slice(2, 1, &[1.0, -1.0]),
        row: vec![0.0, 1.0],
        touch: Touch::Contact(0.0),
    };
    let mut p = Problem::new(&d, vec![0.02; 25], vec![0.5, 0.0]);
    p.rates = vec![0.0, 0.0];
    let [body, foot, force] = [0, 1, 4].map(QuantityId::new);
    p.costs = vec![
        Cost::square(force, 0.0, 1e-4, When::Running),
        Cost::square(body, 0.8, 10.0, When::End),
        Cost::square(foot, 0.3, 10.0, When::End),
    ];
    (d, p)
}

/// Objective of controls on hard contact.
fn objective(d: &Masses, p: &Problem, u: &[f64]) -> f64 {
    let mut w = d.work();
    let x0 = p.start(d, &[], &mut w).expect("a start");
    let mut t = Trajectory::new(d, p.intervals.clone(), &x0);
    t.u.copy_from_slice(u);
    t.roll(d, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    let mut e = p.evaluation();
    p.evaluate(d, &t, &mut w, &mut e).expect("evaluated");
    e.objective
}

/// Solves with relaxed derivatives at first, and holds the solution against hard contact.
fn annealed(d: &Masses, p: &Problem, smoothing: Smoothing) -> Solution {
    let s = solve(d, p, Some(smoothing));
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    assert!((objective(d, p, &s.trajectory.u) - s.objective).abs() <= 1e-12 * s.objective);
    // the levels fall to the step's own
    assert_eq!(s.history[0].smoothing, smoothing.start);
    assert!(s.history.is_sorted_by(|a, b| a.smoothing >= b.smoothing));
    assert_eq!(s.smoothing, 0.0);
    println!("{:.6} in {} iterations", s.objective, s.iterations);
    s
}

/// Lowest objective that searches by single controls find, from several guesses.
fn searched(d: &Masses, p: &Problem) -> f64 {
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
    let mut lowest = f64::INFINITY;
    for _ in 0..10 {
        let mut u: Vec<f64> = p
            .guess
            .iter()
            .map(|_| rng.random_range(-4.0..8.0))
            .collect();
        let (mut best, mut size) = (objective(d, p, &u), 2.0);
        while size > 1e-3 {
            let before = best;
            for i in 0..u.len() {
                for step in [size, -size] {
                    u[i] += step;
                    let now = objective(d, p, &u);
                    if now < best {
                        best = now;
                    } else {
                        u[i] -= step;
                    }
                }
            }
            if before - best < 1e-6 {
                size *= 0.5;
            }
        }
        lowest = lowest.min(best);
    }
    lowest
}

#[test]
fn derivatives_are_those_of_the_chosen_path() {
    for (d, p) in [block(), pusher(), hopper()] {
        for kappa in [1e-2, 1e-4] {
            let (n, m) = (d.dims().nx, d.dims().nu);
            let x: Vec<f64> = (0..n).map(|i| 0.01 + 0.02 * i as f64).collect();
            let mut w = d.work();
            let t = Trajectory::new(&d, p.intervals.clone(), &x);
            let at = t.knot(0);
            let moved = |i: usize, by: f64| {
                let mut all = [x.clone(), vec![0.3; m]].concat();
                all[i] += by;
                let mut next = vec![0.0; n];
                d.solve(at.h, &all[..n], &all[n..], kappa, &mut next);
                DVector::from_vec(next)
            };
            let hard = SolvedStep {
                at,
                x: &x,
                u: &vec![0.3; m],
                p: &[],
                y: &[],
                next: &x,
            };
            d.smoothing(&mut w, kappa);
            let frame = d.frame(&at, &x, &[], None, &mut w).expect("a frame");
            let mut linear = d.linearize(&hard, &mut w).expect("regular");
            assert_eq!(linear.certificate().kappa, kappa);
            let mut model = LinearModel::new(&d.dims());
            linear.linear_model(&frame, &frame, &mut model);
            for i in 0..n + m {
                let slope = (moved(i, 1e-6) - moved(i, -1e-6)) / 2e-6;
                let own = if i < n {
                    model.a.column(i)
                } else {
                    model.b.column(i - n)
                };
                assert!((own - &slope).amax() < 1e-6, "{own} {slope}");
            }
            d.smoothing(&mut w, 0.0);
            let linear = d.linearize(&hard, &mut w).expect("regular");
            assert_eq!(linear.certificate().kappa, HARD);
        }
    }
}

/// Where the block slides all the time it is linear-quadratic, with a constant force.
#[test]
fn a_block_is_pushed() {
    let (d, p) = block();
    let stays = solve(&d, &p, None);
    assert!(stays.objective > 0.999, "{}", stays.objective);
    let s = annealed(&d, &p, Smoothing::default());
    let slides = Masses {
        gravity: 0.1 * 9.81,
        touch: Touch::Contact(1e9),
        ..d.clone()
    };
    let at = |i: usize, j: usize| {
        let mut u = vec![0.0; 10];
        for (k, u) in u.iter_mut().enumerate() {
            *u = f64::from(u8::from(k == i)) + f64::from(u8::from(k == j));
        }
        objective(&slides, &p, &u)
    };
    let none = 10;
    let (zero, of) = (at(none, none), |i| at(i, none));
    let h = DMatrix::from_fn(10, 10, |i, j| at(i, j) - of(i) - of(j) + zero);
    let g = DVector::from_fn(10, |i, _| of(i) - zero - 0.5 * h[(i, i)]);
    let u = h.clone().lu().solve(&-&g).expect("regular");
    let least = zero + 0.5 * g.dot(&u);
    assert!(
        (objective(&d, &p, u.as_slice()) - least).abs() < 1e-9,
        "it slides"
    );
    assert!((s.objective - least).abs() < 1e-6 * least, "{least}");
    let searched = searched(&d, &p);
    assert!(s.objective <= searched, "{searched}");
    assert!(searched < 1.01 * s.objective, "{searched}");
}

#[test]
fn a_contact_is_made() {
    let (d, p) = pusher();
    assert!(solve(&d, &p, None).objective > 4.999);
    let s = annealed(&d, &p, Smoothing::default());
    let searched = searched(&d, &p);
    assert!(
        s.objective <= 1.001 * searched,
        "{} {searched}",
        s.objective
    );
}

/// To ends that are prescribed. Hard derivatives know how to pull at the foot, not that pressing it down throws both up.
#[test]
fn a_foot_is_lifted() {
    let (d, mut p) = hopper();
    p.costs.truncate(1);
    for (place, value) in [(0, 0.8), (1, 0.3)] {
        p.constraints.push(Constraint {
            quantity: QuantityId::new(place),
            relation: Relation::Equal,
            value,
            profile: None,
            when: When::End,
        });
    }
    let pulls = solve(&d, &p, None);
    let s = annealed(&d, &p, Smoothing::default());
    assert!(s.violation <= 1e-6);
    assert!(s.objective < 0.2 * pulls.objective, "{}", pulls.objective);
    // with more than the weight of both
    assert!(s.trajectory.u.iter().any(|u| *u > 1.2 * 9.81));
}

/// Wrappers pass the level on.
#[test]
fn a_system_that_remembers_is_pushed() {
    let (d, mut p) = block();
    let remembers = Remember::new(&d, d.controls());
    // the change of the push
    let change = QuantityId::new(3);
    p.costs.push(Cost::square(change, 0.0, 1e-5, When::Running));
    let s = solve(&remembers, &p, Some(Smoothing::default()));
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    assert!(s.objective < 0.65, "{}", s.objective);
}

/// `x'' = u - sin x`
struct Pendulum;

impl Smooth for Pendulum {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        next[1] = x[1] + h * (u[0] - x[0].sin());
        next[0] = x[0] + h * next[1];
    }
}

#[test]
fn nothing_changes_without_contact() {
    let d = Explicit::new(Pendulum);
    let mut p = Problem::new(&d, vec![0.1; 40], vec![0.0]);
    p.rates = vec![0.0];
    p.costs = vec![Cost::square(d.control_quantity(0), 0.0, 0.1, When::Running)];
    p.constraints = vec![Constraint {
        quantity: QuantityId::new(0),
        relation: Relation::Equal,
        value: 3.0,
        profile: None,
        when: When::End,
    }];
    let (plain, smoothed) = (
        solve(&d, &p, None),
        solve(&d, &p, Some(Smoothing::default())),
    );
    assert_eq!(plain.status, Status::Converged);
    assert_eq!(plain.history, smoothed.history);
    assert_eq!(plain.trajectory, smoothed.trajectory);
    let counts = |s: &Solution| (s.step_evaluations, s.gradient_evaluations);
    assert_eq!(counts(&plain), counts(&smoothed));
}

/// A solve in pieces of one iteration, each from a file's text, takes the same steps.
#[test]
fn a_level_is_gone_on_with() {
    let each = [block(), pusher(), hopper()].into_iter();
    for ((d, mut p), forward) in each.flat_map(|s| [(s.clone(), false), (s, true)]) {
        let end = p.costs.pop().expect("a cost at the end");
        p.constraints.push(Constraint {
            quantity: end.quantity,
            relation: Relation::Equal,
            value: end.target,
            profile: None,
            when: When::End,
        });
        let smoothing = Some(Smoothing {
            factor: 0.3,
            forward,
            ..Smoothing::default()
        });
        let whole = solve(&d, &p, smoothing);
        let mut kept: Option<Checkpoint> = None;
        let pieces = loop {
            let mut text = String::new();
            let save = |now: Checkpoint| {
                text = serde_json::to_string(&now)?;
                Ok(())
            };
            let options = Options {
                smoothing,
                max_iterations: 1,
                ..Options::default()
            };
            let checkpoints = Checkpoints::new(kept, Duration::MAX, save);
            let s = Solve::new(&d, &p)
                .with_options(options)
                .with_checkpoint(checkpoints)
                .run()
                .expect("no argmin error");
            if s.status != Status::MaxIterations {
                break s;
            }
            assert!(s.iterations < 500);
            kept = Some(serde_json::from_str(&text).expect("a checkpoint"));
        };
        assert!(whole.history.iter().any(|i| i.smoothing > 0.0));
        assert_eq!(whole.status, pieces.status);
        assert_eq!(whole.history, pieces.history);
        assert_eq!(whole.trajectory, pieces.trajectory);
        assert_eq!(whole.smoothing, pieces.smoothing);
    }
}

/// Steps may be softened on the way; what is found is that of hard contact.
#[test]
fn softened_steps_become_hard() {
    let soft = Smoothing {
        end: 1e-9,
        forward: true,
        ..Smoothing::default()
    };
    for (d, p) in [block(), pusher(), hopper()] {
        let (relaxed, s) = (
            annealed(&d, &p, Smoothing::default()),
            annealed(&d, &p, soft),
        );
        assert!(s.objective < 1.01 * relaxed.objective);
    }
}

/// Stopped on the way, it tells what its controls are worth on hard contact.
#[test]
fn a_stopped_solve_is_told_on_hard_contact() {
    let (d, p) = hopper();
    let options = Options {
        smoothing: Some(Smoothing {
            forward: true,
            ..Smoothing::default()
        }),
        max_iterations: 2,
        ..Options::default()
    };
    let s = Solve::new(&d, &p)
        .with_options(options)
        .run()
        .expect("no argmin error");
    assert_eq!(s.status, Status::MaxIterations);
    assert!(s.history.iter().all(|i| i.smoothing == 0.1));
    assert_eq!(s.smoothing, 0.0);
    assert!((objective(&d, &p, &s.trajectory.u) - s.objective).abs() <= 1e-12 * s.objective);
}

/// Softened steps that are stopped, or lead to worse, do not cost the guess.
#[test]
fn a_guess_that_is_better_is_kept() {
    let (d, mut p) = pusher();
    p.guess = solve(&d, &p, Some(Smoothing::default())).trajectory.u;
    let guess = objective(&d, &p, &p.guess);
    let options = Options {
        smoothing: Some(Smoothing {
            start: 10.0,
            forward: true,
            ..Smoothing::default()
        }),
        max_iterations: 3,
        ..Options::default()
    };
    let s = Solve::new(&d, &p)
        .with_options(options)
        .run()
        .expect("no argmin error");
    assert_eq!((s.status, s.smoothing), (Status::MaxIterations, 0.0));
    assert!(s.history.iter().all(|i| i.softened));
    assert!(
        s.objective <= guess * (1.0 + 1e-12),
        "{} {guess}",
        s.objective
    );
}

/// Levels that are not above the steps' own parameter relax nothing.
#[test]
fn levels_end_where_steps_are() {
    for forward in [false, true] {
        let (d, p) = pusher();
        let levels = |start| {
            Some(Smoothing {
                start,
                end: 1e-3 * HARD,
                factor: 0.1,
                forward,
            })
        };
        let s = solve(&d, &p, levels(1e-3));
        let mut seen: Vec<f64> = s.history.iter().map(|i| i.smoothing).collect();
        seen.dedup();
        assert!(seen.iter().all(|&level| level == 0.0 || level >= HARD));
        assert_eq!(seen.last(), Some(&0.0));
        let (below, plain) = (solve(&d, &p, levels(0.1 * HARD)), solve(&d, &p, None));
        assert_eq!(below.history, plain.history);
        assert_eq!(below.trajectory, plain.trajectory);
    }
}

/// Derivatives of a softened step are exact, at a stop and beside it.
#[test]
fn softened_steps_have_their_derivatives() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/acrobot_stops.toml");
    let m = format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem");
    let (d, dims) = (&m.system, m.system.dims());
    let mut w = d.work();
    for (elbow, torque) in [(1.57, 10.0), (1.5, 10.0), (1.0, 1.0)] {
        let (mut x, p) = (vec![0.0; dims.nx], &m.problem.parameters);
        let from = Start::at_rates(&[0.3, elbow], &[0.5, 1.0]);
        d.initial(&from, p, &mut w, &mut x).expect("a start");
        let t = Trajectory::new(d, vec![0.05], &x);
        let (from, to) = (t.knot(0), t.knot(1));
        let mut ends = vec![];
        for kappa in [0.0, 1e-3] {
            assert!(d.soften(&mut w, kappa));
            let step = |u: f64, w: &mut _| {
                let (mut next, mut y) = (vec![0.0; dims.nx], vec![0.0; dims.ny]);
                d.step(&from, &x, &[u], p, w, &mut next, &mut y)
                    .expect("a step");
                (next, y)
            };
            let (next, y) = step(torque, &mut w);
            let frame = |at, x: &[f64], w: &mut _| d.frame(at, x, p, None, w).expect("a frame");
            let (a, b) = (frame(&from, &x, &mut w), frame(&to, &next, &mut w));
            let solved = SolvedStep {
                at: from,
                x: &x,
                u: &[torque],
                p,
                y: &y,
                next: &next,
            };
            let mut linear = d.linearize(&solved, &mut w).expect("linearized");
            let certificate = linear.certificate();
            assert!(certificate.kappa == kappa || kappa == 0.0 && certificate.kappa < 1e-9);
            let mut model = LinearModel::new(&dims);
            linear.linear_model(&a, &b, &mut model);
            let e = 1e-3;
            let mut moved = |u: f64| {
                let (to_next, _) = step(u, &mut w);
                let mut change = vec![0.0; dims.ndx];
                d.difference(&to, &next, p, &b, &to_next, &mut w, &mut change);
                change
            };
            let (up, down) = (moved(torque + e), moved(torque - e));
            if kappa > 0.0 {
                for ((up, down), by) in up.iter().zip(&down).zip(model.b.iter()) {
                    let seen = (up - down) / (2.0 * e);
                    assert!((seen - by).abs() < 1e-6 * (1.0 + by.abs()), "{seen} {by}");
                }
            }
            ends.push(next);
        }
        assert_ne!(ends[0], ends[1]);
        d.soften(&mut w, 0.0);
    }
}
