//! What problems can say, on those that are shipped: free time, free starts, periodicity, the worst of several scenarios.

use crate::problems::load;
use crate::statistics::hold;
use least_action::dynamics::Observe;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::optimize::{Bound, Solution, Solve, Status};
use std::path::Path;

fn solved(m: &Model) -> Solution {
    let s = Solve::new(&m.extended(), &m.problem)
        .with_options(m.options.ddp())
        .run()
        .expect("no argmin error");
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    s
}

fn shipped(name: &str) -> (Model, Solution) {
    let m = load(name);
    let s = solved(&m);
    hold(&format!("{name} by ddp"), &s, m.options.ddp().optimality);
    (m, s)
}

fn parameter(m: &Model, s: &Solution, name: &str) -> f64 {
    let all = m.parameters();
    let place = all.iter().position(|p| p.name == name).expect(name);
    s.trajectory.p[place]
}

/// The motor's bound by the bob's moment of inertia, and gravity by the length, 1/s^2.
const MOTOR: f64 = 3.0 / 0.25;
const GRAVITY: f64 = 9.81 / 0.5;

/// Angle and rate after a step under full torque of one sign (Runge and Kutta's method of order 4).
fn step((angle, rate): (f64, f64), sign: f64, h: f64) -> (f64, f64) {
    let by = |a: f64, r: f64| (r, sign * MOTOR - GRAVITY * a.sin());
    let a = by(angle, rate);
    let b = by(angle + 0.5 * h * a.0, rate + 0.5 * h * a.1);
    let c = by(angle + 0.5 * h * b.0, rate + 0.5 * h * b.1);
    let d = by(angle + h * c.0, rate + h * c.1);
    (
        angle + h / 6.0 * (a.0 + 2.0 * (b.0 + c.0) + d.0),
        rate + h / 6.0 * (a.1 + 2.0 * (b.1 + c.1) + d.1),
    )
}

/// Time under full torque of one sign until an angle is passed upwards, `h` backwards where negative.
fn until(mut x: (f64, f64), sign: f64, target: f64, h: f64) -> f64 {
    let mut t = 0.0;
    for _ in 0..100_000 {
        let next = step(x, sign, h);
        let passes = (x.0 - target) * (next.0 - target) <= 0.0 && x.1 > 0.0;
        if passes && t != 0.0 {
            // what is left of the step, by its constant rate
            return t + h * (target - x.0) / (next.0 - x.0);
        }
        (x, t) = (next, t + h);
    }
    f64::INFINITY
}

/// Time of the swing-up that goes back for `first` seconds, up, and brakes so that it ends at rest: along each arc
/// `rate^2/2 - GRAVITY cos - sign MOTOR angle` stays, which tells where it has to brake.
fn swing_up(first: f64) -> f64 {
    let pi = std::f64::consts::PI;
    let n = 4000;
    let back = (0..n).fold((0.0, 0.0), |x, _| step(x, -1.0, first / f64::from(n)));
    let energy = 0.5 * back.1 * back.1 - GRAVITY * back.0.cos() - MOTOR * back.0;
    let brakes = (GRAVITY + MOTOR * pi - energy) / (2.0 * MOTOR);
    if brakes >= pi {
        return f64::INFINITY;
    }
    first + until(back, 1.0, brakes, 1e-4) - until((pi, 0.0), -1.0, brakes, -1e-4)
}

#[test]
fn minimum_time_pendulum() {
    // the continuous optimum: the best of one family of arcs, by golden section
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut low, mut high) = (0.34, 0.40);
    for _ in 0..40 {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if swing_up(a) < swing_up(b) {
            high = b;
        } else {
            low = a;
        }
    }
    let optimum = swing_up(0.5 * (low + high));
    let (m, coarse) = shipped("minimum_time_pendulum");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/minimum_time_pendulum.toml");
    let finer = Overrides {
        time_step: Some(0.005),
        ..Overrides::default()
    };
    let document = format::load(&path).expect("shipped");
    let fine_model = document.build(&finer).expect("a finer one");
    let fine = solved(&fine_model);
    let error = |m: &Model, s: &Solution| (parameter(m, s, "horizon") / optimum - 1.0).abs();
    let (first, second) = (error(&m, &coarse), error(&fine_model, &fine));
    assert!(
        second < 1e-3 && second < first,
        "{first} {second} of {optimum}"
    );
    for s in [&coarse, &fine] {
        assert!(s.trajectory.u.iter().all(|u| u.abs() <= 3.0 + 1e-9));
        let between = s.trajectory.u.iter().filter(|u| u.abs() < 3.0 - 1e-6);
        // where it switches
        assert!(between.count() <= 3);
    }
}

/// Thrown as slowly as hits the target: `v^2 = g (sqrt(d^2 + h^2) + h)`, whatever the time step: the integrator is exact on
/// parabolas.
#[test]
fn throw() {
    let (m, s) = shipped("throw");
    let (far, up) = (37.0_f64, 1.5);
    let square = 9.81 * ((far + up * up).sqrt() + up);
    let of = |axis| parameter(&m, &s, &format!("initial ball.{axis} rate"));
    let v = [of("x"), of("y"), of("z")];
    let found: f64 = v.iter().map(|v| v * v).sum();
    assert!((found / square - 1.0).abs() < 1e-5, "{v:?}");
    assert!((v[1] / v[0] - 1.0 / 6.0).abs() < 1e-5);
}

#[test]
fn five_bar_periodic() {
    let (m, s) = shipped("five_bar_periodic");
    let (system, t) = (&m.system, &s.trajectory);
    let n = least_action::dynamics::Step::dims(system).nx;
    let first = &t.state(0)[..n];
    let last = &t.state(t.steps())[..n];
    for joint in 0..2 {
        let turned = system.coordinate(last, joint, 0) - system.coordinate(first, joint, 0);
        assert!((turned - std::f64::consts::TAU).abs() < 1e-6, "{turned}");
    }
    // the loop closes in the way of the start, too
    let poses = [first, last].map(|x| system.poses(x));
    for (a, b) in poses[0].iter().zip(&poses[1]) {
        assert!((a.x - b.x).norm() < 1e-6, "{} {}", a.x, b.x);
    }
}

/// In the worst case no scenario costs more than the bound found, and one at least as much.
#[test]
fn cartpole_gains() {
    let (m, s) = shipped("cartpole_gains");
    let worst = parameter(&m, &s, "worst cost");
    assert_eq!(worst, s.objective);
    assert_eq!(s.parameters_at_bounds(&m.problem), vec![None::<Bound>; 5]);
    let mut costs = vec![];
    let each = m.alone(&s.trajectory).expect("observed");
    for (scenario, t) in m.scenarios.iter().zip(&each) {
        // by themselves, of what acted: angle, place, push
        let system = &scenario.model.system;
        let mut w = least_action::dynamics::Step::work(system);
        let which: Vec<_> = ["hinge", "rail", "push"]
            .iter()
            .map(|n| system.quantity(n).expect(n))
            .collect();
        let (mut sum, mut at, mut seen) = (0.0, t.knot(0), [0.0; 3]);
        for _ in 0..=t.steps() {
            system
                .observe(&t.knot_point(&at), &which, &mut w, &mut seen)
                .expect("observed");
            // places by the trapezoidal rule, the held push by its interval
            sum += 0.25 * (at.h_prev + at.h) * (10.0 * seen[0].powi(2) + seen[1].powi(2));
            sum += 0.5 * at.h * 0.01 * seen[2].powi(2);
            at = t.knot_after(&at);
        }
        costs.push(sum);
    }
    let largest = costs.iter().copied().fold(0.0, f64::max);
    assert!((largest / worst - 1.0).abs() < 1e-5, "{costs:?} {worst}");
}
