//! Small problems in files whose answers are known: phases that share a duration, scenarios with controls of their own, fuel,
//! the smallest peak, a recorded reference with an outlier, feedback that an earlier solve wrote.

use least_action::control::{Cost, Objective, Problem, When};
use least_action::dynamics::{Observe, Step};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::optimize::{Method, Options, Solution, Solve, Status};
use least_action::rollout::{RolloutStats, Trajectory};
use std::path::{Path, PathBuf};

/// A cart on a rail without gravity along it, 2 kg.
const CART: &str = r#"
[mechanism.bodies.cart]
mass = 2.0
shape = { box = [0.4, 0.2, 0.1] }
[mechanism.joints.rail]
kind = "prismatic"
child = "cart"
axis = [1.0, 0.0, 0.0]
[mechanism.actuators.push]
joint = "rail"
"#;

fn build(text: &str) -> Model {
    let document = format::parse(text, folder().join("case.toml"));
    let built = document.and_then(|d| d.build(&Overrides::default()));
    built.unwrap_or_else(|e| panic!("{e:#}"))
}

/// Where files that problems refer to are left.
fn folder() -> PathBuf {
    let name = format!("least-action-small-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&path).expect("a temporary directory");
    path
}

fn solve(m: &Model, options: impl Into<Options>) -> Solution {
    let all = m.extended();
    let solve = Solve::new(&all, &m.problem).with_options(options);
    solve.run().expect("no argmin error")
}

fn solved(m: &Model) -> Solution {
    let s = solve(m, m.options.ddp());
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    s
}

fn parameter(m: &Model, s: &Solution, name: &str) -> f64 {
    let all = m.parameters();
    let place = all.iter().position(|p| p.name == name).expect(name);
    s.trajectory.p[place]
}

/// What is at rest at both ends and `d` apart takes `integral F^2 = 12 m^2 d^2/T^3` at least. With the time weighed by `w`,
/// half of the square of the force by `a` in one phase and `b` in the other, and the same duration of both,
/// `T^4 = 9 m^2 (a d1^2 + b d2^2)/w`.
#[test]
fn phases_share_a_duration() {
    let text = format!(
        r#"time_step = 0.01
quadrature = "trapezoidal"
phases = [{{ name = "out", duration = 1.5, steps = 40, bounds = [0.5, 5.0] }}, {{ name = "back", duration = 1.0, steps = 40, bounds = [0.5, 5.0] }}]
{CART}
[[costs]]
quantity = "time"
form = "linear"
weight = 20.0
at = "end"
[[costs]]
quantity = {{ control = "push" }}
weight = 2.0
at = {{ phase = "out" }}
[[costs]]
quantity = {{ control = "push" }}
weight = 1.0
at = {{ phase = "back" }}
[[constraints]]
quantity = {{ sum = {{ terms = [{{ of = {{ parameter = "out" }} }}, {{ of = {{ parameter = "back" }}, times = -1.0 }}] }} }}
equals = 0.0
[[constraints]]
quantity = {{ joint = "rail" }}
equals = 1.0
at = {{ end_of = "out" }}
[[constraints]]
quantity = {{ joint_rate = "rail" }}
equals = 0.0
at = {{ end_of = "out" }}
[[constraints]]
quantity = {{ joint = "rail" }}
equals = -1.0
[[constraints]]
quantity = {{ joint_rate = "rail" }}
equals = 0.0
"#
    );
    let m = build(&text);
    let s = solved(&m);
    let [out, back] = ["out", "back"].map(|name| parameter(&m, &s, name));
    assert!((out - back).abs() < 1e-6, "{out} {back}");
    let expected = (9.0_f64 * 4.0 * (2.0 + 4.0) / 20.0).powf(0.25);
    assert!((out / expected - 1.0).abs() < 2e-3, "{out} {expected}");
}

/// Two carts, each with a force of its own, arrive at the same time: `T^4 = 9 d^2 (m1^2 + m2^2)/w`.
#[test]
fn scenarios_with_controls_of_their_own_share_the_time() {
    let text = format!(
        r#"time_step = 0.025
horizon = 1.0
horizon_bounds = [0.5, 5.0]
quadrature = "trapezoidal"
own_controls = true
{CART}
[[scenarios]]
name = "light"
set = {{ "bodies.cart.mass" = 1.0 }}
[[scenarios]]
name = "heavy"
set = {{ "bodies.cart.mass" = 3.0 }}
[[costs]]
quantity = "time"
form = "linear"
weight = 10.0
at = "end"
[[costs]]
quantity = {{ control = "push" }}
weight = 1.0
[[constraints]]
quantity = {{ joint = "rail" }}
equals = 1.0
[[constraints]]
quantity = {{ joint_rate = "rail" }}
equals = 0.0
"#
    );
    let m = build(&text);
    let s = solved(&m);
    let time = parameter(&m, &s, "horizon");
    let expected = (9.0_f64 * (1.0 + 9.0) / 10.0).powf(0.25);
    assert!((time / expected - 1.0).abs() < 2e-3, "{time} {expected}");
    let each = m.alone(&s.trajectory).expect("observed");
    // the same motion takes three times the force
    for k in 0..each[0].steps() {
        let (light, heavy) = (each[0].control(k)[0], each[1].control(k)[0]);
        assert!((heavy - 3.0 * light).abs() < 1e-3, "{k}: {light} {heavy}");
    }
}

/// The least `integral |F|` with `|F| <= 1 N` is all, nothing, all: `2 t1` N s with `d = t1 (T - t1)/m`.
#[test]
fn fuel_is_burnt_at_the_ends() {
    let text = format!(
        r#"time_step = 0.02
horizon = 2.0
{}
[[costs]]
quantity = {{ control = "push" }}
weight = 1.0
form = "absolute"
[[constraints]]
quantity = {{ joint = "rail" }}
equals = 0.375
[[constraints]]
quantity = {{ joint_rate = "rail" }}
equals = 0.0
[method]
max_iterations = 800
"#,
        CART.replace(
            "joint = \"rail\"\n",
            "joint = \"rail\"\nbounds = [-1.0, 1.0]\n"
        )
    );
    let m = build(&text);
    let s = solve(&m, m.options.ddp());
    assert!(s.status.is_solved(), "{}", s.reason);
    // 0.75 = t1 (2 - t1)
    let fuel = 2.0 * 0.5;
    assert!((s.objective / fuel - 1.0).abs() < 0.02, "{}", s.objective);
    let burns = |k: usize| s.trajectory.control(k)[0];
    assert!(burns(10) > 0.99 && burns(90) < -0.99);
    assert!((40..60).all(|k| burns(k).abs() < 0.02));
}

/// The gradient of a quantity at the end by the controls: of a linear system, its response.
fn response(m: &Model, name: &str) -> Vec<f64> {
    let quantity = m.system.quantity(name).expect(name);
    let problem = Problem {
        costs: vec![Cost::linear(quantity, 1.0, When::End)],
        constraints: vec![],
        parameters: vec![],
        parameter_bounds: vec![],
        ..m.problem.clone()
    };
    let objective = Objective::new(&m.system, problem).expect("fits");
    let g = objective.value_and_gradient(&objective.guess(), &mut objective.work());
    g.expect("swept").controls
}

/// The smallest peak of a force that brings the cart from rest to rest. What is linear in the controls, `a'u = 1, b'u = 0`,
/// takes at least `1 / min over t of |a + t b|_1`, which duality says can be had.
#[test]
fn the_smallest_peak_is_found() {
    let text = format!(
        r#"time_step = 0.02
horizon = 1.0
{CART}
[guess]
controls = {{ push = 0.1 }}
[[costs]]
quantity = {{ largest = {{ of = {{ control = "push" }}, size = true }} }}
form = "linear"
weight = 1.0
[[constraints]]
quantity = {{ joint = "rail" }}
equals = 1.0
[[constraints]]
quantity = {{ joint_rate = "rail" }}
equals = 0.0
"#
    );
    let m = build(&text);
    let (a, b) = (response(&m, "rail"), response(&m, "rail rate"));
    let least = a.iter().zip(&b).filter(|(_, b)| **b != 0.0).map(|(x, y)| {
        let t = -x / y;
        a.iter()
            .zip(&b)
            .map(|(a, b)| (a + t * b).abs())
            .sum::<f64>()
    });
    let peak = 1.0 / least.fold(f64::INFINITY, f64::min);
    let s = solve(&m, m.options.ddp());
    assert!(s.status.is_solved(), "{}", s.reason);
    let found = parameter(&m, &s, "largest size of push");
    assert!((found / peak - 1.0).abs() < 1e-3, "{found} {peak}");
    let largest = s.trajectory.u.iter().fold(0.0_f64, |m, u| m.max(u.abs()));
    assert!((largest / found - 1.0).abs() < 1e-5, "{largest} {found}");

    // methods that lose their way along the peaks' kinks do not say that there is none
    for method in [
        Method::Shooting,
        Method::MultipleShooting,
        Method::NewtonCg,
        Method::TrustRegion,
        Method::Lbfgs,
    ] {
        let s = solve(&m, m.options.of(method));
        let said = format!("{method:?}: {:?} {}", s.status, s.reason);
        assert!(s.status != Status::Infeasible, "{said}");
        let found = parameter(&m, &s, "largest size of push");
        assert!(
            !s.status.is_solved() || (found / peak - 1.0).abs() < 1e-3,
            "{said}"
        );
    }
}

/// A reference was recorded with one outlier. Under Huber's cost it pulls as much as what is `delta` off. All here is linear but
/// the cost of that one knot, so that the tracks with outlier, without, and under Huber's cost lie on one line, as their pulls
/// on it do: `x_huber - x_clean = (delta - r_clean)/(r_square - r_clean) (x_square - x_clean)`, residuals `r` at the knot.
#[test]
fn an_outlier_pulls_no_more_than_huber_allows() {
    let (delta, at, far) = (0.05, 25, 2.0);
    let reference = |k: usize| 0.15 * (1.0 - (std::f64::consts::TAU * 0.02 * k as f64).cos());
    let write = |name: &str, outlier: f64| {
        let mut text = String::from("time [s],place [m]\n");
        for k in 0..=50 {
            let more = if k == at { outlier } else { 0.0 };
            text += &format!("{},{}\n", 0.02 * k as f64, reference(k) + more);
        }
        std::fs::write(folder().join(name), text).expect("written");
    };
    write("clean.csv", 0.0);
    write("outlier.csv", far);
    let track = |file: &str, form: &str| {
        let text = format!(
            r#"time_step = 0.02
horizon = 1.0
{CART}
[policy]
feed_forward = true
[[policy.loops]]
control = "push"
joint = "rail"
kp = 5.0
kd = 1.0
reference = {{ csv = {{ file = "clean.csv", column = "place" }} }}
[[costs]]
quantity = {{ joint = "rail" }}
target = {{ csv = {{ file = "{file}", column = "place" }} }}
form = {form}
weight = 100.0
[[costs]]
quantity = {{ control = "push" }}
weight = 1e-3
[method]
optimality = 1e-13
"#
        );
        let m = build(&text);
        let s = solved(&m);
        let t = m.alone(&s.trajectory).expect("observed").remove(0);
        let x = (0..=50).map(|k| m.system.coordinate(t.state(k), 0, 0));
        let x: Vec<f64> = x.collect();
        // what acted is the loop and what was decided beside it
        let rates = (0..=50).map(|k| {
            let velocities = m
                .system
                .knot_velocities(&t.knot_point(&t.knot(k)), &mut m.system.work());
            velocities.expect("read")[0].0.x
        });
        let rates: Vec<f64> = rates.collect();
        for k in 1..50 {
            let rate = rates[k];
            let wanted = (reference(k + 1) - reference(k - 1)) / 0.04;
            let law = 5.0 * (reference(k) - x[k]) + (wanted - rate);
            let acted = t.control(k)[0] - s.trajectory.control(k)[0];
            assert!((acted - law).abs() < 1e-9, "{k}: {acted} {law}");
        }
        x
    };
    let clean = track("clean.csv", "\"square\"");
    let square = track("outlier.csv", "\"square\"");
    let huber = track("outlier.csv", &format!("{{ huber = {delta} }}"));
    let others = (0..50).filter(|k| *k != at);
    let most = others.map(|k| (huber[k] - reference(k)).abs());
    assert!(most.fold(0.0, f64::max) < delta);
    let r_clean = reference(at) - clean[at];
    let r_square = reference(at) + far - square[at];
    let part = (delta - r_clean) / (r_square - r_clean);
    assert!(part < 0.1, "{part}");
    for k in 0..=50 {
        let (a, b) = (huber[k] - clean[k], part * (square[k] - clean[k]));
        assert!((a - b).abs() < 1e-6, "{k}: {a} {b}");
    }
}

/// The feedback that a solve wrote brings a pendulum up that starts elsewhere and is heavier; the controls alone do not.
#[test]
fn feedback_of_a_file_carries_a_plan_out() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/pendulum_swingup.toml");
    let plan = std::fs::read_to_string(path).expect("shipped");
    let m = build(&plan);
    // feedback by the state of the system alone
    let solve = Solve::new(&m.system, &m.problem).with_options(m.options.ddp());
    let s = solve.run().expect("no argmin error");
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    let gains = format::feedback(&m, &s)
        .expect("observed")
        .expect("ddp has gains");
    format::write_json(&folder().join("gains.json"), &gains).expect("written");
    let up = std::f64::consts::PI;
    // where the pendulum ends under the plan, with feedback or without
    let ends = |start: f64, mass: f64, feedback: bool| {
        let mut text = plan
            .replace("hinge = 0.0 ", &format!("hinge = {start} "))
            .replace("mass = 1.0\n", &format!("mass = {mass}\n"));
        assert!(start == 0.0 || text != plan);
        if feedback {
            text += "\n[policy]\nfeedback = \"gains.json\"\n";
        }
        let mut other = build(&text);
        if !feedback {
            other.problem.guess.clone_from(&s.trajectory.u);
        }
        let system = other.extended();
        let mut w = system.work();
        let p = &other.problem;
        let x0 = p.start(&system, &p.parameters, &mut w).expect("starts");
        let mut t = Trajectory::new(&system, p.intervals.clone(), &x0);
        t.u.copy_from_slice(&p.guess);
        t.roll(&system, &mut w, &mut RolloutStats::default())
            .expect("simulated");
        let alone = other.alone(&t).expect("observed").remove(0);
        other.system.coordinate(alone.state(alone.steps()), 0, 0)
    };
    // undisturbed both are the plan
    assert!((ends(0.0, 1.0, true) - up).abs() < 1e-6);
    assert!((ends(0.0, 1.0, false) - up).abs() < 1e-6);
    let (closed, open) = (ends(0.05, 1.01, true), ends(0.05, 1.01, false));
    assert!(
        (closed - up).abs() < 0.1 * (open - up).abs(),
        "{closed} {open}"
    );
}

/// With a small penalty a cart keeps the energy that a cost wants of it: the sum is stationary there, the violation is not.
#[test]
fn a_cost_that_pulls_is_not_taken_for_infeasible() {
    let text = |penalty: f64| {
        format!(
            r#"time_step = 0.05
horizon = 1.0
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.cart]
mass = 1000.0
inertia = [1.0, 1.0, 1.0]
[mechanism.joints.rail]
kind = "prismatic"
child = "cart"
axis = [1.0, 0.0, 0.0]
[mechanism.actuators.push]
joint = "rail"
bounds = [-600, 600]
[initial]
rail = {{ rate = 0.5 }}
[[costs]]
quantity = {{ joint_rate = "rail" }}
target = 20.0
weight = 1.0
at = "end"
[[costs]]
quantity = {{ control = "push" }}
weight = 1e-12
[[constraints]]
quantity = "kinetic_energy"
equals = 0.0
[method]
penalty = {penalty:e}
"#
        )
    };
    let stands = build(&text(1.0));
    assert_eq!(
        solve(&stands, stands.options.ddp()).status,
        Status::Converged
    );
    let pulled = build(&text(1e-9));
    for method in [Method::Ddp, Method::NewtonCg, Method::Shooting] {
        let s = solve(&pulled, pulled.options.of(method));
        assert_eq!(s.status, Status::Diverged, "{method:?}: {}", s.reason);
    }
}
