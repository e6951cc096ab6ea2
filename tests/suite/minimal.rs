//! Joint coordinates from outside: whole motions, orders, optimizers.

use crate::common::{Source, even, line, roll};
use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Choice, Mechanical, Options, Order, Substeps, System};
use least_action::mechanism::{
    ActuatorSpec, BodySpec, GearSpec, JointKind, JointSpec, Mechanism, MechanismBuilder, Shape,
};
use least_action::optimize::{Method, Solution, Solve};
use least_action::spatial::Pose;
use std::path::Path;

fn choice(name: &str) -> Choice {
    Choice::new(name, None).expect("an integrator")
}

/// By how much the wrist turns as the base slides, where a gear ties them, rad/m.
const RATIO: f64 = 1.5;

/// An arm that branches on a base that slides and turns: springs, dampers, one of them across, a ball, a universal joint; and a gear
/// between its ends.
fn branching(is_geared: bool) -> Mechanism {
    let link = || {
        // thick enough for the spring of the ball to be slow beside the time step
        BodySpec::new(1.0).shape(Shape::Box([0.3, 0.3, 0.6]))
    };
    let hang = |kind, parent: &str, child: &str| {
        JointSpec::new(kind, child)
            .parent(parent)
            .axis([0.0, 1.0, 0.0])
            .anchors([0.0, 0.0, -0.3], [0.0, 0.0, 0.3])
    };
    let m = MechanismBuilder::new()
        .body("base", link())
        .body("left", link())
        .body("right", link())
        .body("hand", link())
        .joint(
            "rail",
            JointSpec::new(JointKind::Cylindrical, "base")
                .axis([1.0, 0.0, 0.0])
                .damping(0.1),
        )
        .joint(
            "ball",
            hang(JointKind::Spherical, "base", "left").spring(2.0, 0.1),
        )
        .joint("fork", hang(JointKind::Orbital, "base", "right"))
        .joint(
            "wrist",
            hang(JointKind::Revolute, "right", "hand").spring(1.0, 0.3),
        )
        .spring("strut", line(&mut Source::new(2), "left", "hand"))
        .actuator("push", ActuatorSpec::joint("rail").direction("d"));
    let m = match is_geared {
        true => m.gear("rack", GearSpec::new("wrist", "rail.d", RATIO)),
        false => m,
    };
    m.build().expect("valid")
}

/// Where a second leads, under a control, of states that are in motion.
fn after_a_second(is_geared: bool, choice: Choice, h: f64) -> Vec<Pose> {
    let m = branching(is_geared);
    let names: Vec<_> = (m.tree_ids().iter())
        .map(|id| m.coordinate_name(*id))
        .collect();
    let n = names.len();
    let mut q: Vec<f64> = (0..n).map(|i| 0.3 * (1.7 * i as f64).sin()).collect();
    let mut rates: Vec<f64> = (0..n).map(|i| (0.9 * i as f64).cos()).collect();
    if is_geared {
        let of = |name: &str| names.iter().position(|n| n == name).expect("a coordinate");
        for v in [&mut q, &mut rates] {
            v[of("wrist")] = RATIO * v[of("rail.d")];
        }
    }
    let system = System::new(choice, m, &q, Options::default()).expect("a tree");
    let x = system.start(&q, &rates, &vec![true; n]).expect("a state");
    let t = roll(&system, &x, even(1.0, h), |_| vec![0.4]).expect("solved");
    system.poses(t.state(t.steps()))
}

fn apart(a: &[Pose], b: &[Pose]) -> f64 {
    let each = a.iter().zip(b);
    each.fold(0.0, |m, (a, b)| {
        m.max((a.x - b.x).amax()).max((a.r - b.r).amax())
    })
}

/// The same motion, by single steps, by compositions and in parts, which take backward steps and starts within.
#[test]
fn motions_are_those_of_maximal_coordinates() {
    let own: [fn(Choice) -> Choice; 4] = [
        |c| c,
        |c| c.composed(Order::Four),
        |c| c.in_parts(Substeps::named("3").expect("a number")),
        |c| c.divided(),
    ];
    for (of, is_geared) in own.iter().flat_map(|of| [(of, false), (of, true)]) {
        let a = after_a_second(is_geared, of(choice("minimal")), 0.01);
        let b = after_a_second(is_geared, of(choice("maximal")), 0.01);
        let off = apart(&a, &b);
        let name = of(choice("minimal"));
        assert!(off < 1e-8, "{name}, geared {is_geared}: {off:.1e}");
    }
}

#[test]
fn errors_fall_with_their_order() {
    let fine = after_a_second(false, choice("minimal").composed(Order::Six), 0.00125);
    for (choice, order) in [
        (choice("minimal"), 2.0),
        (choice("minimal").composed(Order::Four), 4.0),
        (choice("screw"), 2.0),
        (choice("screw").composed(Order::Four), 4.0),
    ] {
        let off = [0.005, 0.0025].map(|h| apart(&after_a_second(false, choice, h), &fine));
        let slope = (off[0] / off[1]).log2();
        assert!(
            (slope - order).abs() < 0.1 * order / 2.0,
            "{slope} of {order}"
        );
    }
}

fn with(name: &str, integrator: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
        .with_extension("toml");
    let overrides = Overrides {
        integrator: Some(integrator.into()),
        ..Overrides::default()
    };
    format::load(&path)
        .and_then(|d| d.build(&overrides))
        .expect("a problem without loops")
}

fn solved(m: &Model) -> Solution {
    let options = m.options.ddp();
    // extended where something is decided beside the controls
    let solution = if m.problem.parameter_bounds.is_empty() {
        let solve = Solve::new(&m.system, &m.problem);
        solve.with_options(options).run()
    } else {
        let system = m.extended();
        let solve = Solve::new(&system, &m.problem);
        solve.with_options(options).run()
    };
    solution.expect("no argmin error")
}

/// Shipped problems without loops have the same optimum, two through contact among them.
#[test]
fn optima_are_those_of_maximal_coordinates() {
    for name in [
        "acrobot_swingup",
        "block_push",
        "cartpole_swingup",
        "double_pendulum_swingup",
        "quadrotor_waypoints",
        "spatial_arm_reach",
        "throw",
    ] {
        let (a, b) = (
            solved(&with(name, "minimal")),
            solved(&with(name, "maximal")),
        );
        assert!(a.status.is_solved(), "{name}: {}", a.reason);
        assert!(b.status.is_solved(), "{name}: {}", b.reason);
        let off = (a.objective - b.objective).abs() / b.objective.abs();
        assert!(off < 1e-6, "{name}: {} {}", a.objective, b.objective);
    }
}

/// An arm whose wrist follows its elbow, with a finger on a rack at the wrist, has the same optimum, too, and one with dampers between
/// points whose thin forearm hangs from a ball.
#[test]
fn optima_of_gears_and_dampers_are_those_of_maximal_coordinates() {
    let damped = include_str!("../damped_arm.toml");
    let free = damped.replace("damping = 1.0", "damping = 0.0");
    for (name, text, most) in [
        ("geared_arm", include_str!("../geared_arm.toml"), 100),
        ("damped_arm", damped, 100),
        ("damped_arm without dampers", &free, 15),
    ] {
        for method in [Method::Ddp, Method::Direct] {
            let [a, b] = ["minimal", "maximal"].map(|integrator| {
                let overrides = Overrides {
                    integrator: Some(integrator.into()),
                    ..Overrides::default()
                };
                let m = format::parse(text, "arm.toml").and_then(|d| d.build(&overrides));
                let m = m.expect("a problem");
                let solve = Solve::new(&m.system, &m.problem).with_method(method);
                solve.run().expect("no argmin error")
            });
            let what = format!("{name} by {}", method.name());
            for found in [&a, &b] {
                assert!(found.status.is_solved(), "{what}: {}", found.reason);
            }
            let off = (a.objective - b.objective).abs() / b.objective.abs();
            assert!(off < 1e-6, "{what}: {} {}", a.objective, b.objective);
            let is_direct = method == Method::Direct;
            assert!(
                !is_direct || a.iterations <= most,
                "{what}: {}",
                a.iterations
            );
        }
    }
}

/// What touches does so in the same way: where it ends, and what friction and impacts took.
#[test]
fn contacts_are_those_of_maximal_coordinates() {
    for (name, seconds, within) in [
        ("box_drop", 2.0, 1e-9),
        ("sphere_chain", 2.0, 1e-7),
        ("tumbling_boxes", 0.6, 1e-7),
    ] {
        let ends = ["minimal", "maximal"].map(|integrator| {
            let m = with(name, integrator);
            let s = &m.system;
            let x0 = m.problem.start(s, &[], &mut s.work()).expect("a start");
            let t = roll(s, &x0, even(seconds, 0.005), |_| vec![]).expect("solved");
            s.poses(t.state(t.steps()))
        });
        let off = apart(&ends[0], &ends[1]);
        assert!(off < within, "{name}: {off:.1e}");
    }
}

/// A chain whose links are light under what hangs on them runs in parts.
#[test]
fn chains_run_in_parts() {
    let mut m = MechanismBuilder::new();
    for i in 0..10 {
        let (name, parent) = (format!("b{i}"), format!("b{}", i.max(1) - 1));
        let body = BodySpec::new(1.0).shape(Shape::Sphere(0.02));
        let (parent, anchor) = match i {
            0 => ("world", [0.0; 3]),
            _ => (parent.as_str(), [0.0, 0.0, -0.05]),
        };
        let joint = JointSpec::new(JointKind::Revolute, &name)
            .parent(parent)
            .axis([0.0, 1.0, 0.0])
            .anchors(anchor, [0.0, 0.0, 0.05]);
        m = m.body(&name, body).joint(&format!("j{i}"), joint);
    }
    let m = m.build().expect("valid");
    let mut q = vec![0.0; 10];
    q[0] = 1.2;
    let system = System::new(choice("minimal").divided(), m, &q, Options::default());
    let system = system.expect("a tree");
    let x = system.start(&q, &[0.0; 10], &[true; 10]).expect("a state");
    let t = roll(&system, &x, even(2.0, 0.01), |_| vec![]).expect("solved");
    let parts = (0..t.steps()).map(|k| system.parts_after(t.unknowns(k)));
    assert!(parts.max() > Some(1));
    assert!(system.dims().ny > 0);
}
