//! Light bodies between joints with limits, over a floor: robots whose hinges meet in one place, as files with one hinge a link
//! must write them. The mass matrix in joint coordinates barely depends on the light bodies, so neither may the solver.

use crate::trees::{BOTH, Source, Tree};
use least_action::integrator::{Mechanical, Substeps};
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
};

/// Deepest overlap, m.
const DEEPEST: f64 = 1e-9;
fn hinge(child: &str, parent: &str, axis: [f64; 3]) -> JointSpec {
    JointSpec::new(JointKind::Revolute, child)
        .parent(parent)
        .axis(axis)
}

fn light(mass: f64) -> BodySpec {
    // radius of gyration 3 cm
    BodySpec::new(mass).inertia([1e-3 * mass; 3])
}

fn start_above(builder: MechanismBuilder, mut q: Vec<f64>, height: f64) -> Tree {
    let builder = builder.half_space("floor", HalfSpaceSpec::default());
    let m = builder.build().expect("a robot");
    let free = m.tree_ids().iter().position(|(_, i)| *i == 2);
    let lowest = crate::drops::lowest(&m, &m.forward(&q));
    q[free.expect("a free base")] += height - lowest;
    let rates = vec![0.0; q.len()];
    Tree { builder, q, rates }
}

/// A base with one leg on two hinges, yaw and pitch, that meet in a light body.
fn leg(seed: u64, mass: f64) -> Tree {
    let s = &mut Source::new(seed);
    let foot = ContactSpec::new(0.7 * s.between(0.0, 1.0))
        .shape(Shape::Sphere(0.03))
        .at([0.0, 0.0, -0.2]);
    let base = BodySpec::new(10.0).shape(Shape::Box([0.4, 0.3, 0.1]));
    let yaw = hinge("between", "base", [0.0, 0.0, 1.0])
        .anchors([0.2, 0.1, 0.0], [0.0; 3])
        .limits(-s.between(0.1, 0.5), s.between(0.1, 0.5));
    let pitch = hinge("leg", "between", [0.0, 1.0, 0.0])
        .anchors([0.0; 3], [0.0, 0.0, 0.2])
        .limits(-s.between(0.2, 0.8), s.between(0.2, 0.8));
    let builder = MechanismBuilder::new()
        .body("base", base.free())
        .body("between", light(mass))
        .body(
            "leg",
            BodySpec::new(1.0)
                .inertia([0.01, 0.01, 0.001])
                .contact("foot", foot),
        )
        .joint("yaw", yaw)
        .joint("pitch", pitch);
    let tilt = [s.between(-0.3, 0.3), s.between(-0.3, 0.3)];
    let q = vec![0.0, 0.0, 0.0, tilt[0], tilt[1], 0.0, 0.0, 0.0];
    start_above(builder, q, 0.1)
}

/// A torso with arms, and legs whose hips have three hinges and whose ankles have two.
fn humanoid(seed: u64, mass: f64) -> Tree {
    let s = &mut Source::new(seed);
    let torso = BodySpec::new(s.between(15.0, 40.0)).shape(Shape::Box([0.2, 0.3, 0.5]));
    let mut builder = MechanismBuilder::new().body("torso", torso.free());
    let (x, y, z) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
    let is_box = s.between(0.0, 1.0) < 0.5;
    let link = |mass, length| BodySpec::new(mass).shape(Shape::Box([0.08, 0.08, length]));
    for (side, sign) in [("left", 1.0), ("right", -1.0)] {
        let named = |part: &str| format!("{side} {part}");
        let (thigh, shank) = (s.between(0.3, 0.45), s.between(0.3, 0.45));
        let mut foot = BodySpec::new(s.between(0.3, 1.0)).shape(Shape::Box([0.2, 0.08, 0.03]));
        let touch = ContactSpec::new(s.between(0.3, 1.0));
        if is_box {
            foot = foot.contact("sole", touch);
        } else {
            for (i, (x, y)) in [(0.1, 0.03), (0.1, -0.03), (-0.08, 0.0)].iter().enumerate() {
                let ball = touch.clone().shape(Shape::Sphere(0.01));
                foot = foot.contact(&format!("ball{i}"), ball.at([*x, *y, -0.02]));
            }
        }
        let hip = [0.0, 0.1 * sign, -0.25];
        let limits = |s: &mut Source, joint: JointSpec| {
            let joint = joint.limits(-s.between(0.2, 0.8), s.between(0.2, 0.8));
            joint.damping(s.between(0.0, 0.5))
        };
        let chain = [
            ("yaw", light(mass), "torso", z, hip, [0.0; 3]),
            ("roll", light(mass), "yaw", x, [0.0; 3], [0.0; 3]),
            (
                "thigh",
                link(5.0, thigh),
                "roll",
                y,
                [0.0; 3],
                [0.0, 0.0, 0.5 * thigh],
            ),
            (
                "shank",
                link(3.0, shank),
                "thigh",
                y,
                [0.0, 0.0, -0.5 * thigh],
                [0.0, 0.0, 0.5 * shank],
            ),
            (
                "ankle",
                light(mass),
                "shank",
                y,
                [0.0, 0.0, -0.5 * shank],
                [0.0; 3],
            ),
            ("foot", foot, "ankle", x, [0.0; 3], [-0.03, 0.0, 0.04]),
            (
                "shoulder",
                light(mass),
                "torso",
                y,
                [0.0, 0.2 * sign, 0.2],
                [0.0; 3],
            ),
            (
                "arm",
                link(2.0, 0.3),
                "shoulder",
                x,
                [0.0; 3],
                [0.0, 0.0, 0.15],
            ),
            (
                "hand",
                link(1.0, 0.25),
                "arm",
                y,
                [0.0, 0.0, -0.15],
                [0.0, 0.0, 0.12],
            ),
        ];
        for (part, body, parent, axis, at, own) in chain {
            let parent = if parent == "torso" {
                parent.into()
            } else {
                named(parent)
            };
            let joint = hinge(&named(part), &parent, axis).anchors(at, own);
            builder = builder
                .body(&named(part), body)
                .joint(&named(&format!("{part} hinge")), limits(s, joint));
        }
    }
    // the torso is free, and all joints are hinges
    let count = 6 + builder.joints.len();
    let q = (0..count).map(|i| if i < 6 { 0.0 } else { s.between(-0.15, 0.15) });
    let q = q.collect();
    start_above(builder, q, 0.05)
}

fn moves(what: &str, tree: &Tree, integrator: &str, steps: (f64, usize)) {
    let o = tree.run_with(integrator, steps, Substeps::Auto);
    let what = format!("{what}, {integrator}, h = {} s", steps.0);
    assert!(o.failure.is_none(), "{what}: {:?}", o.failure);
    assert_eq!(o.grew, None, "{what}: {:?} J", o.energy);
    assert!(o.deepest < DEEPEST, "{what}: {:e} m deep", o.deepest);
}

#[test]
fn limits_of_a_leg_with_a_light_body_between_its_hinges_hold() {
    for mass in [1e-6, 1e-5, 1e-4, 1e-3] {
        for seed in 0..6 {
            for integrator in BOTH {
                let tree = leg(seed, mass);
                let what = format!("seed {seed}, {mass} kg");
                let h = [2e-3, 5e-4, 5e-3][seed as usize % 3];
                moves(&what, &tree, integrator, (h, 400));
            }
        }
    }
}

#[test]
fn humanoids_with_light_links_fall_on_their_feet() {
    for (seed, mass) in (0..8).zip([1e-5, 1e-4, 1e-3, 5e-3].into_iter().cycle()) {
        for integrator in BOTH {
            let h = [2e-3, 5e-3, 1e-2][seed as usize % 3];
            let what = format!("humanoid {seed}, {mass} kg");
            moves(&what, &humanoid(seed, mass), integrator, (h, 100));
        }
    }
}

/// The inertia that scales the impulses of a limit is that of the leg, whatever the light body weighs: the motion follows.
#[test]
fn what_a_light_body_weighs_does_not_change_the_motion() {
    let ends = |mass| {
        let tree = leg(3, mass);
        BOTH.map(|integrator| {
            let s = tree.system(integrator, Substeps::One);
            let x = s
                .start(&tree.q, &tree.rates, &vec![true; tree.q.len()])
                .expect("starts");
            let mut t = least_action::rollout::Trajectory::new(&s, vec![2e-3; 75], &x);
            let mut stats = least_action::rollout::RolloutStats::default();
            let mut w = least_action::dynamics::Step::work(&s);
            t.roll(&s, &mut w, &mut stats).expect("rolls");
            let poses = s.poses(t.state(75));
            poses[2].x
        })
    };
    let heavy = ends(1e-5);
    for light in [1e-6, 3e-6] {
        for (a, b) in ends(light).iter().zip(&heavy) {
            assert!((a - b).norm() < 1e-5, "{light}: {a} {b}");
        }
    }
    assert!((heavy[0] - heavy[1]).norm() < 1e-7, "{heavy:?}");
}
