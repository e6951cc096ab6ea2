//! Starts whose rates are those of the interval before: knots of a motion that went on before.

use least_action::control::Objective;
use least_action::dynamics::{Start, Step};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Mechanical, System};
use least_action::optimize::{Method, Solve, Status};
use least_action::rollout::{RolloutStats, Trajectory, balance};

/// A cart-pole whose horizon and start are found, with a damper and a ball on its tip.
const TEXT: &str = r#"
title = "Cart-pole in motion"
time_step = 0.02
horizon = 0.4
horizon_bounds = [0.2, 1.0]
initial_rates = "interval"
controls = "linear"

[mechanism]
gravity = [0.0, 0.0, -9.81]

[mechanism.bodies.cart]
mass = 1.0
shape = { box = [0.4, 0.2, 0.1] }

[mechanism.bodies.pole]
mass = 0.3
inertia = [0.01, 0.02, 0.03]

[mechanism.bodies.tip]
mass = 0.2
inertia = [0.003, 0.002, 0.004]

[mechanism.joints.rail]
kind = "prismatic"
child = "cart"
axis = [1.0, 0.0, 0.0]

[mechanism.joints.hinge]
kind = "revolute"
parent = "cart"
child = "pole"
axis = [0.0, 1.0, 0.0]
child_anchor = [0.0, 0.0, 0.5]
damping = 0.05

[mechanism.joints.ball]
kind = "spherical"
parent = "pole"
child = "tip"
parent_anchor = [0.0, 0.0, -0.2]
child_anchor = [0.0, 0.0, 0.2]

[mechanism.actuators.push]
joint = "rail"

[initial]
rail = { coordinate = 0.1, rate = 0.3, free = { rate = [-5.0, 5.0] } }
hinge = { coordinate = 0.7, rate = -1.2, free = { coordinate = [-3.0, 3.0] } }
ball = { coordinate = [0.3, -0.4, 0.2], rate = [0.5, 0.7, -0.6], free = { coordinate = [[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]], rate = [[-5.0, 5.0], [-5.0, 5.0], [-5.0, 5.0]] } }

[guess]
controls = { push = 0.5 }

[[costs]]
quantity = { joint = "hinge" }
weight = 1.0

[[costs]]
quantity = { interval_rate = "rail" }
weight = 0.3

[[costs]]
quantity = { joint_rate = "hinge" }
weight = 0.2

[[costs]]
quantity = { position = { body = "tip", axis = "x" } }
weight = 2.0
at = "end"

[method]
name = "shooting"
"#;

fn model() -> Model {
    let document = format::parse(TEXT, "in_motion.toml").expect("TOML");
    document.build(&Overrides::default()).expect("a problem")
}

#[test]
fn a_motion_goes_on_where_it_was() {
    let model = model();
    let (s, p) = (&model.system, &model.problem);
    let h = p.intervals[0];
    let mut w = s.work();
    let x0 = p.start(
        &model.extended(),
        &p.parameters,
        &mut model.extended().work(),
    );
    let mut whole = Trajectory::new(s, p.intervals.clone(), &x0.expect("a start")[..s.dims().nx]);
    whole.before = h;
    let mut stats = RolloutStats::default();
    whole.roll(s, &mut w, &mut stats).expect("simulated");
    // what the start says was half way of a motion that is simulated from there backwards
    let coordinate = |k: usize, joint: usize, i: usize| s.coordinate(whole.state(k), joint, i);
    let k = 10;
    let (mut q, mut rates) = (vec![], vec![]);
    for (joint, i) in [(0, 0), (1, 0)] {
        q.push(coordinate(k, joint, i));
        rates.push((coordinate(k, joint, i) - coordinate(k - 1, joint, i)) / h);
    }
    // the ball's rates are the rotation since, in the parent's frame
    let ball = &s.mechanism().joints[2];
    let relative = |k: usize| {
        let poses = s.poses(whole.state(k));
        let (a, b) = s.mechanism().ends(ball, &poses);
        ball.relative(a, b)
    };
    for i in 0..3 {
        q.push(coordinate(k, 2, i));
        rates.push(ball.displacement(i, &relative(k - 1), &relative(k)) / h);
    }
    let from = Start {
        coordinates: &q,
        rates: &rates,
        before: h,
    };
    let mut x = vec![0.0; s.dims().nx];
    let parameters: Vec<f64> = s.parameters().iter().map(|p| p.value).collect();
    s.initial(&from, &parameters, &mut w, &mut x)
        .expect("a start");
    let pairs = x.iter().zip(whole.state(k));
    let off = pairs.fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
    // joints close to 1e-10 m, and velocities are differences over an interval
    assert!(off < 1e-8, "{off:.1e}");
    // nothing was done before the start, and energy balances to second order
    whole.u.copy_from_slice(&p.guess);
    whole.roll(s, &mut w, &mut stats).expect("simulated");
    let energy = balance(s, &whole, &mut w).expect("read");
    assert_eq!(energy.work(0), 0.0);
    assert!(
        energy.largest_exchange() > 0.3,
        "{}",
        energy.largest_exchange()
    );
    assert!(energy.largest_error() < 5e-3, "{}", energy.largest_error());
}

#[test]
fn its_gradient_by_all_that_is_found() {
    let model = model();
    let system = model.extended();
    let objective = Objective::new(&system, &model.problem).expect("fits");
    let (mut work, at) = (objective.work(), objective.guess());
    let found = objective.value_and_gradient(&at, &mut work);
    let by = found.expect("simulated").parameters;
    // a rate, a coordinate, six of the ball, and the horizon
    assert_eq!(by.len(), 9);
    for (i, by) in by.iter().enumerate() {
        let e = 1e-4;
        let mut value = |e: f64| {
            let mut moved = at.clone();
            moved.parameters[i] += e;
            objective.value(&moved, &mut work).expect("simulated")
        };
        let coarse = (value(2.0 * e) - value(-2.0 * e)) / (4.0 * e);
        let difference = (4.0 * (value(e) - value(-e)) / (2.0 * e) - coarse) / 3.0;
        let off = (by - difference).abs();
        assert!(off < 1e-8 * by.abs().max(1.0), "{i}: {by} {difference}");
    }
}

/// A pendulum that swings on, to a place and a time that are found: 2.587229 by shooting, which knows of the start only where it is.
#[test]
fn every_method_goes_on_from_it() {
    let text = include_str!("../pendulum_in_motion.toml");
    let guessed =
        format!("{text}\n[guess]\nstates = [{{ time = 1.0, joints = {{ hinge = 1.5 }} }}]\n");
    for (text, method) in [
        (text, Method::Shooting),
        (text, Method::Ddp),
        (text, Method::MultipleShooting),
        (text, Method::Direct),
        (&guessed, Method::Direct),
    ] {
        let document = format::parse(text, "pendulum.toml").expect("TOML");
        let model = document.build(&Overrides::default()).expect("a problem");
        let system = model.extended();
        let solve = Solve::new(&system, &model.problem).with_method(method);
        let found = solve.run().expect("fits");
        assert_eq!(
            found.status,
            Status::Converged,
            "{method:?}: {}",
            found.reason
        );
        let off = found.objective / 2.587_228_597 - 1.0;
        assert!(off.abs() < 1e-6, "{method:?}: {}", found.objective);
        // the interval before keeps its proportion to the first
        let t = &found.trajectory;
        assert!((t.before - t.intervals[0]).abs() < 1e-15, "{method:?}");
    }
}

/// Of composed steps it is the last of an interval that a start's rates are of.
#[test]
fn composed_steps_start_in_motion() {
    // starts in motion of a system whose controls are held: the previous one is part of the state
    let text = TEXT.replace("initial_rates = \"interval\"\ncontrols = \"linear\"\n", "");
    let document = format::parse(&text, "in_motion.toml").expect("TOML");
    let model = document.build(&Overrides::default()).expect("a problem");
    let p: Vec<f64> = model.system.parameters().iter().map(|p| p.value).collect();
    let higher = Overrides {
        order: Some(4),
        ..Overrides::default()
    };
    let composed = document.build(&higher).expect("a problem").system;
    let (problem, dims) = (&model.problem, composed.dims());
    let state = |system: &System, before: f64| {
        let from = Start {
            coordinates: &problem.coordinates,
            rates: &problem.rates,
            before,
        };
        let mut x = vec![0.0; dims.nx];
        system
            .initial(&from, &p, &mut system.work(), &mut x)
            .expect("a start");
        let by = system.initial_by_coordinates(&from, &p, &mut system.work());
        (x, by.expect("a start"))
    };
    // Suzuki's fractal: 1/(4 - 4^(1/3)) is the share of the last of five
    let share = 1.0 / (4.0 - 4.0_f64.cbrt());
    let h = 0.02;
    let ((x, by), (own, own_by)) = (state(&composed, h), state(&model.system, share * h));
    assert_eq!(x, own);
    let last = by.ncols() - 1;
    let off = (by.column(last) - own_by.column(last) * share).amax();
    assert!(off < 1e-12, "{off:.1e}");
    assert!(own_by.column(last).amax() > 1e-3);
}
