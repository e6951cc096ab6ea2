//! Starts whose rates are those of the interval before: knots of a motion that went on before.

use least_action::control::Objective;
use least_action::dynamics::Step;
use least_action::format::{self, Overrides};
use least_action::integrator::Mechanical;
use least_action::rollout::{RolloutStats, Trajectory};

/// A cart-pole whose horizon and start are found, with a damper and a ball on its tip.
const TEXT: &str = r#"
title = "Cart-pole in motion"
time_step = 0.02
horizon = 0.4
horizon_bounds = [0.2, 1.0]
initial_rates = "interval"

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

#[test]
fn a_motion_goes_on_where_it_was() {
    let model = format::parse(TEXT, &Overrides::default()).expect("a problem");
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
    let from = least_action::dynamics::Start {
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
    assert!(off < 1e-11, "{off:.1e}");
}

#[test]
fn its_gradient_by_all_that_is_found() {
    let model = format::parse(TEXT, &Overrides::default()).expect("a problem");
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
