//! Guesses that hold a pose: against closed forms, and by the judgement of the step itself.

use super::start::LOOP;
use super::*;
use crate::integrator::Mechanical;
use crate::rollout::{RolloutStats, Trajectory};

/// Furthest that any coordinate gets from the start under the guess.
fn drift(m: &Model) -> f64 {
    let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.set_controls(m.problem.guess.clone(), m.problem.bounds.len());
    let mut stats = RolloutStats::default();
    t.roll(&m.system, &mut m.system.work(), &mut stats)
        .expect("simulated");
    let start = m.system.tree_coordinates(&m.x0);
    let knots = (0..=t.steps()).map(|k| m.system.tree_coordinates(t.state(k)));
    knots
        .flat_map(|q| q.into_iter().zip(start.clone()).map(|(a, b)| (a - b).abs()))
        .fold(0.0, f64::max)
}

const ARM: &str = r#"time_step = 0.01
horizon = 0.2
[mechanism.bodies.upper]
mass = 2.0
shape = { box = [0.05, 0.05, 0.6] }
[mechanism.bodies.lower]
mass = 1.0
shape = { box = [0.05, 0.05, 0.4] }
[mechanism.joints.shoulder]
kind = "revolute"
child = "upper"
axis = [0, 1, 0]
child_anchor = [0, 0, 0.3]
[mechanism.joints.elbow]
kind = "revolute"
parent = "upper"
child = "lower"
axis = [0, 1, 0]
parent_anchor = [0, 0, -0.3]
child_anchor = [0, 0, 0.2]
stiffness = 4.0
rest = 0.5
[mechanism.actuators.first]
joint = "shoulder"
bounds = [-20.0, 20.0]
[mechanism.actuators.second]
joint = "elbow"
[initial]
shoulder = 0.7
elbow = -0.4
[guess]
static = true
"#;

#[test]
fn an_arm_is_held_by_its_torques() {
    let m = build(ARM).expect("good");
    // gravity of what hangs from each joint, and the elbow's spring
    let (g, a, b) = (9.81_f64, 0.7_f64.sin(), 0.3_f64.sin());
    let elbow = 1.0 * g * 0.2 * b;
    let shoulder = 2.0 * g * 0.3 * a + 1.0 * g * (0.6 * a + 0.2 * b);
    let u = &m.problem.guess[..2];
    let expected = [shoulder, elbow + 4.0 * (-0.4 - 0.5)];
    for (u, e) in u.iter().zip(expected) {
        assert!((u - e).abs() < 1e-7, "{u} {e}");
    }
    assert!(drift(&m) < 1e-8, "{}", drift(&m));
    // another pose, in which only the guess is held
    let other = ARM.replace(
        "static = true",
        "static = { pose = { shoulder = 0.0, elbow = 0.0 } }",
    );
    let u = build(&other).expect("good").problem.guess;
    assert!(u[0].abs() < 1e-8 && (u[1] + 2.0).abs() < 1e-8, "{u:?}");
    // on top of controls that are given
    let more = ARM.replace(
        "static = true",
        "static = true\ncontrols = { first = 0.25 }",
    );
    let u = build(&more).expect("good").problem.guess;
    assert!((u[0] - shoulder - 0.25).abs() < 1e-7);
}

#[test]
fn a_loop_is_held_by_one_motor() {
    let motor = "[mechanism.actuators.motor]\njoint = \"a\"\n[guess]\nstatic = true\n[initial]";
    let at_rest = LOOP
        .replace("horizon = 1.0", "horizon = 0.2")
        .replace("a = { coordinate = 0.3, rate = 2.0 }", "a = 0.3")
        .replace("[initial]", motor);
    let m = build(&at_rest).expect("good");
    // crank, coupler and rocker, each of 1 kg: m g (1/2 + 1 + 1/2) sin
    let expected = -9.81 * 2.0 * 0.3_f64.sin();
    let u = m.problem.guess[0];
    assert!((u - expected).abs() < 1e-5, "{u} {expected}");
    assert!(drift(&m) < 1e-6, "{}", drift(&m));
}

/// A cube on a slope that falls in no direction of the contacts' tangents; pushed along the slope.
fn slope(friction: f64, bounds: &str) -> String {
    let (n, angle) = ([0.3_f64, 0.2], 0.4_f64);
    let size = n[0].hypot(n[1]);
    let up = [
        -n[0] / size * angle.cos(),
        -n[1] / size * angle.cos(),
        angle.sin(),
    ];
    let normal = [
        n[0] / size * angle.sin(),
        n[1] / size * angle.sin(),
        angle.cos(),
    ];
    format!(
        r#"time_step = 0.01
horizon = 0.5
[mechanism.bodies.cube]
mass = 3.0
shape = {{ sphere = 0.1 }}
free = true
contacts = {{ a = {{ shape = "point", position = [0.2, 0.0, 0.0], friction = {friction} }}, b = {{ shape = "point", position = [-0.1, 0.2, 0.0], friction = {friction} }}, c = {{ shape = "point", position = [-0.1, -0.2, 0.0], friction = {friction} }} }}
[mechanism.half_spaces.slope]
normal = {normal:?}
[mechanism.actuators.push]
body = "cube"
force = {up:?}
frame = "world"
{bounds}
[initial.cube]
position = [0.0, 0.0, 0.0]
orientation = {{ quaternion = {q:?} }}
[guess]
static = true
"#,
        q = turned(normal)
    )
}

/// The rotation that takes z to a unit vector by the shortest way, w, x, y, z.
fn turned(n: [f64; 3]) -> [f64; 4] {
    let w = (0.5 * (1.0 + n[2])).sqrt();
    [w, -n[1] / (2.0 * w), n[0] / (2.0 * w), 0.0]
}

#[test]
fn friction_holds_what_it_can() {
    let angle = 0.4_f64;
    // more than enough: nothing is to be done
    let m = build(&slope(0.5, "")).expect("holds");
    assert!(m.problem.guess[0].abs() < 1e-4, "{}", m.problem.guess[0]);
    assert!(drift(&m) < 1e-6, "{}", drift(&m));
    // too little: the rest is pushed, by the circular cone
    let mu = 0.25;
    let m = build(&slope(mu, "")).expect("holds");
    let rest = 3.0 * 9.81 * (angle.sin() - mu * angle.cos());
    assert!(
        (m.problem.guess[0] / rest - 1.0).abs() < 1e-4,
        "{} {rest}",
        m.problem.guess[0]
    );
    // and cannot be
    let bounds = format!("bounds = [-1.0, {}]", 0.5 * rest);
    let e = build(&slope(mu, &bounds)).expect_err("slides");
    let e = format!("{e:#}");
    assert!(
        e.contains("no controls hold the pose") && e.contains("`cube."),
        "{e}"
    );
}

#[test]
fn what_nothing_holds_is_told() {
    let weak = ARM.replace("[-20.0, 20.0]", "[-3.0, 3.0]");
    let e = build(&weak).expect_err("too weak");
    let text = format!("{e:#}");
    let left =
        2.0 * 9.81 * 0.3 * 0.7_f64.sin() + 9.81 * (0.6 * 0.7_f64.sin() + 0.2 * 0.3_f64.sin()) - 3.0;
    let told = format!("`shoulder` is left with {:.4e} N m", -left);
    assert!(text.contains(&told), "{text} {told}");
    let place = format!("case.toml:{}:", line_of(&weak, "static = true"));
    assert!(text.starts_with(&place), "{text}");
    let unknown = ARM.replace("static = true", "static = { pose = { shouldr = 0.0 } }");
    let e = format!("{:#}", build(&unknown).expect_err("unknown"));
    assert!(
        e.contains("unknown joint or free body `shouldr`") && e.contains("shoulder"),
        "{e}"
    );
    let policy =
        format!("{ARM}\n[[policy.loops]]\ncontrol = \"first\"\njoint = \"shoulder\"\nkp = 1.0\n");
    let e = format!("{:#}", build(&policy).expect_err("decided by a policy"));
    assert!(e.contains("the policy decides them"), "{e}");
}

/// The hopper's leg carries body and itself on the foot's contact, its hip nothing; a crouch that leans is held by no
/// controls, as its weight is beside the foot.
#[test]
fn a_hopper_stands_on_its_foot() {
    let file = include_str!("../../../problems/hopper_jump.toml");
    let given = "controls = { turn = 0.0, kick = 10.1043 }";
    assert!(file.contains(given));
    let standing = file.replace(given, "static = true");
    let m = build(&standing).expect("stands");
    let (turn, kick) = (m.problem.guess[0], m.problem.guess[1]);
    // the joint's friction of 0.1 N may help either way, and the least control takes it
    let weight = (1.0 + 0.03) * 9.81 - 0.1;
    assert!(
        turn.abs() < 1e-4 && (kick - weight).abs() < 1e-3,
        "{turn} {kick} {weight}"
    );
    assert!(drift(&m) < 1e-4, "{}", drift(&m));
    let hip = standing.replace("hip = 0.0\nslide = 0.5", "hip = 0.3\nslide = 0.52");
    assert_ne!(hip, standing);
    let e = format!("{:#}", build(&hip).expect_err("falls over"));
    assert!(e.contains("no controls hold the pose"), "{e}");
}
