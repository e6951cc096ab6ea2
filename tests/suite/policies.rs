//! Systems under policies: derivatives against central differences, feedback that was found at work, gains as decisions.

mod wrapped;

use crate::common::case::{Case, chain, costs, five_bar, in_joints, system};
use crate::common::{Source, ball_chain};
use least_action::control::{
    ClosedLoop, Constraint, Cost, Law, LinearFeedback, Loop, Objective, Pd, PolicyRows, Problem,
    Relation, When,
};
use least_action::dynamics::{
    Charts, Frame, Knot, KnotPoint, Observe, Parameter, QuantityId, Remember, Step, StepError,
    StepFailure,
};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::mechanism::Quantity;
use least_action::optimize::{Solution, Solve, Status, ddp, shooting};
use least_action::rollout::{RolloutStats, Trajectory};
use nalgebra::{DMatrix, DVector};
use std::path::Path;

/// Gains, feed-forward and the mechanism's own numbers under proportional-derivative control, in either coordinates.
#[test]
fn gains_of_a_closed_loop() {
    let q = [0.9, -0.4, 0.7];
    let m = chain().parameter("load", &["bodies.bar2.mass"]).parameter(
        "reach",
        &["joints.j1.parent_anchor.z", "joints.j2.parent_anchor.z"],
    );
    gains_of(system(&m, &q), &q);
    gains_of(in_joints(&m, &q), &q);
}

fn gains_of<S: Mechanical + Observe>(inner: S, q: &[f64]) {
    let n = inner.outputs().len();
    let of = |joint: usize, which: usize| QuantityId::new(3 * joint + which);
    let loops = [0, 2].map(|i| Loop {
        control: i,
        coordinate: of(i, 0),
        rate: of(i, 2),
        gains: (6.0 + i as f64, 0.8),
        reference: Box::new(move |t| (t + i as f64).sin()),
        rate_reference: Box::new(move |t| (t + i as f64).cos()),
    });
    let policy = Pd::new(&inner, loops.into(), true).expect("fits");
    let system = ClosedLoop::new(inner, policy);
    assert_eq!((system.dims().nu, system.dims().np), (3, 6));
    let gains = system.parameters().split_off(2);
    let names = gains.iter().map(|p| (p.name.as_str(), p.unit.as_str()));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            ("kp of u0", "N m/rad"),
            ("kd of u0", "N m s/rad"),
            ("kp of u2", "N m/rad"),
            ("kd of u2", "N m s/rad"),
        ]
    );
    let mut r = Source::new(11);
    let problem = Problem {
        rates: vec![0.5, -1.0, 0.3],
        costs: costs(n, &mut r),
        guess: r.vector(3 * 200, 0.5),
        ..Problem::new(&system, vec![0.01; 200], q.to_vec())
    };
    Case { system, problem }.check(1e-6);
}

/// What quantities under a policy owe to the intervals around their knots.
#[test]
fn intervals_of_a_closed_loop() {
    let q = [0.9, -0.4, 0.7];
    let inner = system(&chain(), &q);
    let n = inner.outputs().len();
    let loops = Loop {
        control: 1,
        coordinate: QuantityId::new(3),
        rate: QuantityId::new(5),
        gains: (6.0, 0.8),
        // of no time, whose own share the intervals' would lack
        reference: Box::new(|_| 0.3),
        rate_reference: Box::new(|_| 0.1),
    };
    let policy = Pd::new(&inner, vec![loops], true).expect("fits");
    let system = ClosedLoop::new(inner, policy);
    let mut r = Source::new(13);
    let problem = Problem {
        rates: vec![0.5, -1.0, 0.3],
        costs: costs(n, &mut r),
        guess: r.vector(3 * 12, 0.5),
        ..Problem::new(&system, vec![0.02; 12], q.to_vec())
    };
    let at = |k: usize, e: f64| {
        let mut p = problem.clone();
        p.intervals[k] += e;
        let objective = Objective::new(&system, p).expect("fits");
        let (point, mut w) = (objective.guess(), objective.work());
        objective
            .value_and_gradient(&point, &mut w)
            .expect("simulated")
    };
    let by = at(0, 0.0).intervals;
    let largest = by.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
    for (k, by) in by.iter().enumerate() {
        let e = 1e-6;
        let difference = (at(k, e).objective - at(k, -e).objective) / (2.0 * e);
        let off = (by - difference).abs();
        assert!(off < 1e-6 * largest, "{k}: {by} {difference}");
    }
}

/// A law of the user's with derivatives of its own: an energy-like swing with saturation.
#[test]
fn a_law_of_the_users() {
    let q = [0.4, 0.1, -0.2];
    let inner = system(&chain(), &q);
    let n = inner.outputs().len();
    let law = |_: &Knot,
               s: &[f64],
               open: &[f64],
               g: &[f64],
               u: &mut [f64],
               by: Option<&mut PolicyRows>| {
        u.fill(0.0);
        u[1] = g[0] * (g[1] * s[1]).tanh() * s[0].cos() + open[0];
        if let Some(by) = by {
            let (t, c) = ((g[1] * s[1]).tanh(), s[0].cos());
            let slope = g[0] * (1.0 - t * t) * c;
            by.seen[(1, 0)] = -g[0] * t * s[0].sin();
            by.seen[(1, 1)] = slope * g[1];
            by.own[(1, 0)] = t * c;
            by.own[(1, 1)] = slope * s[1];
            by.open[(1, 0)] = 1.0;
        }
        Ok(())
    };
    let gain = |name: &str, value| Parameter {
        name: name.into(),
        unit: String::new(),
        value,
    };
    let policy = Law {
        sees: [0, 5].map(QuantityId::new).to_vec(),
        open: 1,
        parameters: vec![gain("size", 2.0), gain("slope", 1.5)],
        controls: 3,
        law,
    };
    let system = ClosedLoop::new(inner, policy);
    let mut r = Source::new(12);
    let problem = Problem {
        costs: costs(n, &mut r),
        guess: r.vector(200, 0.5),
        ..Problem::new(&system, vec![0.01; 200], q.to_vec())
    };
    Case { system, problem }.check(1e-6);
}

/// What a policy cannot act by ends the rollout in words, with the steps before it.
#[test]
fn a_policy_may_fail() {
    let q = [0.4, 0.1, -0.2];
    let inner = system(&chain(), &q);
    let law =
        |at: &Knot, _: &[f64], _: &[f64], _: &[f64], u: &mut [f64], _: Option<&mut PolicyRows>| {
            u.fill(0.0);
            match at.k {
                3 => Err(StepError::of_callback("my policy", at.t, "no sensor")),
                _ => Ok(()),
            }
        };
    let policy = Law {
        sees: vec![],
        open: 0,
        parameters: vec![],
        controls: 3,
        law,
    };
    let x0 = inner.start(&q, &[0.0; 3], &[true; 3]).expect("a start");
    let closed = ClosedLoop::new(inner, policy);
    let mut t = Trajectory::new(&closed, vec![0.01; 10], &x0);
    let mut stats = RolloutStats::default();
    let error = t
        .roll(&closed, &mut closed.work(), &mut stats)
        .expect_err("the policy fails");
    assert_eq!((error.failure, stats.steps), (StepFailure::Callback, 3));
    assert_eq!(
        error.to_string(),
        "at t = 0.030000 s my policy failed: no sensor"
    );
}

/// A plan rolled out from `q`, with random feedback around it.
fn feedback<D: Observe>(
    s: &D,
    q: &[f64],
    rates: &[f64],
    steps: usize,
    r: &mut Source,
) -> LinearFeedback {
    let (d, mut w) = (s.dims(), s.work());
    let start = Problem {
        rates: rates.to_vec(),
        ..Problem::new(s, vec![0.01; steps], q.to_vec())
    };
    let x0 = start.start(s, &start.parameters, &mut w).expect("closes");
    let mut plan = Trajectory::new(s, start.intervals, &x0);
    plan.u = r.vector(plan.u.len(), 0.3);
    plan.roll(s, &mut w, &mut RolloutStats::default())
        .expect("solved");
    let mut frames: Vec<Frame> = vec![];
    for k in 0..=steps {
        let at = plan.knot(k);
        let frame = s.frame(&at, plan.state(k), &plan.p, frames.last(), &mut w);
        frames.push(frame.expect("a frame"));
    }
    let mut gain = || DMatrix::from_iterator(d.nu, d.ndx, r.vector(d.nu * d.ndx, 1.0));
    let gains = (0..steps).map(|_| gain()).collect();
    LinearFeedback::new(plan, gains, frames).expect("fits")
}

/// Linear feedback from a start beside the plan and on behind its end, and through changes of the mechanism.
fn linear_feedback<D: Observe>(inner: D, q: &[f64], beside: &[f64], rates: &[f64]) {
    let n = inner.quantities().len();
    let mut r = Source::new(13);
    let policy = feedback(&inner, q, rates, 50, &mut r).with_feed_forward();
    let system = ClosedLoop::new(inner, policy);
    let problem = Problem {
        rates: rates.to_vec(),
        costs: costs(n, &mut r),
        guess: r.vector(60 * system.dims().nu, 0.5),
        ..Problem::new(&system, vec![0.01; 60], beside.to_vec())
    };
    Case { system, problem }.check(1e-6);
}

#[test]
fn linear_feedback_around_a_chain() {
    let m = chain()
        .parameter("load", &["bodies.bar2.mass"])
        .parameter("reach", &["joints.j1.parent_anchor.z"]);
    let q = [0.9, -0.4, 0.7];
    let (beside, rates) = ([1.1, -0.5, 0.6], [0.5, -1.0, 0.3]);
    linear_feedback(system(&m, &q), &q, &beside, &rates);
    linear_feedback(in_joints(&m, &q), &q, &beside, &rates);
}

/// Several free rotations: the charts at plan and state differ.
#[test]
fn linear_feedback_around_ball_joints() {
    let m = ball_chain()
        .parameter("load", &["bodies.b2.mass"])
        .parameter("reach", &["joints.j1.parent_anchor.x"]);
    let q = [0.2, -0.3, 0.4, 0.3, 0.1, -0.2, 0.5, 0.2, 0.1];
    let beside = q.map(|c| 1.2 * c);
    linear_feedback(system(&m, &q), &q, &beside, &[0.4; 9]);
}

/// Also where the system remembers its controls.
#[test]
fn linear_feedback_around_a_loop() {
    let m = five_bar()
        .parameter("load", &["bodies.left.mass"])
        .parameter("reach", &["joints.left_knee.parent_anchor.z"]);
    let built = m.build().expect("valid");
    let closed = |feet: [f64; 2]| {
        let guess = ["left_foot", "left_knee", "right_foot", "right_knee"];
        let value = [feet[0], feet[1], -feet[0], -feet[1]];
        let of = |joint: &str| guess.iter().position(|g| *g == joint);
        let ids = built.tree_ids().into_iter();
        let mut q: Vec<f64> = ids
            .map(|(j, _)| of(&built.joints[j].name).map_or(0.0, |i| value[i]))
            .collect();
        let held = vec![false; q.len()];
        built.close(&mut q, &held).expect("closes");
        q
    };
    let (q, beside) = (closed([-0.3, 0.9]), closed([-0.35, 1.0]));
    let (s, rest) = (system(&m, &q), vec![0.0; q.len()]);
    let remembering = Remember::new(&s, s.controls());
    linear_feedback(remembering, &q, &beside, &rest);
    linear_feedback(s, &q, &beside, &rest);
}

/// What a system does not have, and a plan of another system, are refused with words.
#[test]
fn what_does_not_fit_is_refused() {
    let follow = |control, coordinate| Loop {
        control,
        coordinate: QuantityId::new(coordinate),
        rate: QuantityId::new(2),
        gains: (1.0, 1.0),
        reference: Box::new(|_| 0.0),
        rate_reference: Box::new(|_| 0.0),
    };
    for (control, coordinate, says) in [(3, 0, "no control 3"), (0, 77, "no quantity 77")] {
        let s = system(&chain(), &[0.0; 3]);
        let refused = Pd::new(&s, vec![follow(control, coordinate)], false).err();
        let message = refused.expect("refused").to_string();
        assert!(message.contains(says), "{message}");
    }
    let q = [0.9, -0.4, 0.7];
    let other = system(&chain(), &q);
    let policy = feedback(&other, &q, &[0.0; 3], 5, &mut Source::new(1));
    let closed = ClosedLoop::new(system(&five_bar(), &[0.0; 4]), policy);
    let p = Problem::new(&closed, vec![0.01; 5], vec![-0.3, 0.9, 0.3, -0.9]);
    let mut w = closed.work();
    let x0 = p.start(&closed, &p.parameters, &mut w).expect("closes");
    let mut t = Trajectory::new(&closed, p.intervals, &x0);
    let failed = t.roll(&closed, &mut w, &mut RolloutStats::default());
    let message = failed.expect_err("another system").to_string();
    assert!(message.contains("another system"), "{message}");
    assert!(LinearFeedback::new(t, vec![], vec![]).is_err());
}

/// A shipped problem with its solution.
fn solved(name: &str) -> (Model, Solution) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems");
    let document = format::load(&folder.join(name).with_extension("toml")).expect("a problem");
    let model = document.build(&Overrides::default()).expect("valid");
    let options = model.options.ddp();
    let s = Solve::new(&model.system, &model.problem)
        .with_options(options)
        .run()
        .expect("solves");
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    (model, s)
}

/// The swing-up that was found, from a start beside its own: the feedback comes up where the controls alone do not.
#[test]
fn feedback_holds_a_swing_up() {
    let (model, s) = solved("cartpole_swingup");
    let (system, problem) = (model.system, model.problem);
    let steps = s.trajectory.steps();
    let disturbed = Problem {
        coordinates: vec![0.02, 0.02],
        rates: vec![0.02, -0.02],
        ..problem
    };
    let mut w = system.work();
    let p = &s.trajectory.p;
    let x0 = disturbed.start(&system, p, &mut w).expect("a start");
    let mut open = Trajectory::new(&system, disturbed.intervals.clone(), &x0);
    open.u.copy_from_slice(&s.trajectory.u);
    let mut stats = RolloutStats::default();
    open.roll(&system, &mut w, &mut stats).expect("simulated");
    let closed = ClosedLoop::new(system, s.feedback().expect("gains"));
    assert_eq!(closed.dims().nu, 0);
    let mut held = Trajectory::new(&closed, disturbed.intervals.clone(), &x0);
    let mut cw = closed.work();
    held.roll(&closed, &mut cw, &mut stats).expect("simulated");
    let system = &closed.dynamics;
    let end = s.trajectory.knot(steps);
    let frame = s.gains.as_ref().expect("gains").frame(steps);
    let mut off = |t: &Trajectory| {
        let (from, to) = (s.trajectory.state(steps), t.state(steps));
        let mut d = [0.0; 4];
        system.difference(&end, from, p, frame, to, &mut w, &mut d);
        d.iter().map(|d| d * d).sum::<f64>().sqrt()
    };
    let (held, open) = (off(&held), off(&open));
    println!("off at the end: {held:.2e} under feedback, {open:.2e} without");
    assert!(held < 0.1 * open, "{held} {open}");
}

/// Gains of a chain that is to settle at given angles with little torque, found by both optimizers.
#[test]
fn gains_are_decisions_of_both_optimizers() {
    let q = [0.4, -0.3, 0.2];
    let goal = [0.8, 0.3, -0.4];
    let inner = system(&chain(), &q);
    let loops = (0..3).map(|i| Loop {
        control: i,
        coordinate: QuantityId::new(3 * i),
        rate: QuantityId::new(3 * i + 2),
        gains: (5.0, 1.0),
        reference: Box::new(move |_| goal[i]),
        rate_reference: Box::new(|_| 0.0),
    });
    let policy = Pd::new(&inner, loops.collect(), false).expect("fits");
    let system = ClosedLoop::new(inner, policy);
    let mut p = Problem::new(&system, vec![0.02; 100], q.to_vec());
    p.parameter_bounds = vec![(0.1, 60.0); 6];
    for (i, goal) in goal.into_iter().enumerate() {
        let [angle, torque] = [3 * i, 9 + i].map(QuantityId::new);
        p.costs.push(Cost::square(angle, goal, 1.0, When::Running));
        p.costs.push(Cost::square(angle, goal, 5.0, When::End));
        // the controls that act are quantities, though none is open
        p.costs.push(Cost::square(torque, 0.0, 3e-3, When::Running));
    }
    p.constraints.push(Constraint {
        quantity: QuantityId::new(9),
        relation: Relation::Less,
        value: 2.0,
        profile: None,
        when: When::Running,
    });
    let by_ddp = Solve::new(&system, &p)
        .with_options(ddp::Options::default())
        .run()
        .expect("solves");
    let options = shooting::Options::default();
    let by_shooting = Solve::new(&system, &p)
        .with_options(options)
        .run()
        .expect("solves");
    for s in [&by_ddp, &by_shooting] {
        println!(
            "{} {}: objective {:.9}, {} iterations, gains {:.3?}",
            s.status.name(),
            s.reason,
            s.objective,
            s.iterations,
            s.trajectory.p
        );
        assert_eq!(s.status, Status::Converged, "{}", s.reason);
    }
    let difference = (by_ddp.objective - by_shooting.objective).abs();
    assert!(difference < 1e-4 * by_ddp.objective, "{difference}");
}

/// What `gains.json` says of its columns is what the gains act on: a small move along the chart shows in the states.
#[test]
fn the_file_says_what_the_gains_act_on() {
    for name in ["cartpole_swingup", "five_bar_reach"] {
        let (model, s) = solved(name);
        let file = format::feedback(&model, &s).expect("observed");
        let (file, t) = (file.expect("gains"), &s.trajectory);
        let gains = s.gains.as_ref().expect("gains");
        let ids = model.system.mechanism().tree_ids();
        let of = |make: fn(usize, usize) -> Quantity| ids.iter().map(move |&(j, i)| make(j, i));
        let rates = of(|joint, direction| Quantity::IntervalRate { joint, direction });
        let all = of(|joint, direction| Quantity::Coordinate { joint, direction }).chain(rates);
        let nu = model.system.dims().nu;
        let all = all.chain((0..nu).map(Quantity::PreviousControl));
        let system = model.system.with_outputs(all.collect());
        let (d, n, mut w) = (system.dims(), ids.len(), system.work());
        let (sees, chart) = (2 * n + nu, (d.ndx - nu) / 2);
        let which: Vec<_> = (0..sees).map(QuantityId::new).collect();
        let close = |a: DVector<f64>, b: DVector<f64>| assert!((&a - &b).amax() < 1e-8, "{a} {b}");
        for k in [0, 1, 20] {
            let (at, knot) = (t.knot(k), &file.knots[k]);
            let move_by = DVector::from_vec(Source::new(k as u64).vector(d.ndx, 1e-5));
            let (mut x, mut seen) = (vec![0.0; d.nx], vec![0.0; sees]);
            let (frame, by) = (gains.frame(k), move_by.as_slice());
            system
                .retract(&at, t.state(k), &t.p, frame, by, &mut w, &mut x)
                .expect("near");
            let moved = KnotPoint {
                x: &x,
                ..t.knot_point(&at)
            };
            system
                .observe(&moved, &which, &mut w, &mut seen)
                .expect("observed");
            let change = DVector::from_vec(seen) - DVector::from_column_slice(&knot.state);
            let Some(tangent) = &knot.tangent else {
                close(change, move_by);
                continue;
            };
            let matrix = |rows: &[Vec<f64>]| DMatrix::from_fn(n, chart, |i, j| rows[i][j]);
            let (q, rate) = (change.rows(0, n), change.rows(n, n));
            let (a, r) = (move_by.rows(0, chart), move_by.rows(chart, chart));
            close(q.into_owned(), matrix(tangent) * a);
            let before = matrix(knot.tangent_before.as_ref().expect("a basis"));
            match at.h_prev {
                0.0 => close(rate.into_owned(), before * r),
                h => close(q - rate * h, before * (a - r * h)),
            }
        }
    }
}
