//! Gradients by parameters of the mechanism, through many steps, against central differences.

use crate::knife_edge;

use crate::common::case::{Case, chain, costs, five_bar, system};
use crate::common::{Source, Y};
use least_action::control::Problem;
use least_action::dynamics::{Start, Step};
use least_action::integrator::{Aligned, ContactOptions, Impacts, Maximal, Mechanical, Options};
use least_action::mechanism::Quantity;
use least_action::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, GearSpec, HalfSpaceSpec, JointKind, JointSpec,
    MechanismBuilder, Shape, Surface, TerrainShape, TerrainSpec,
};
use std::sync::Arc;

/// Every number of a planar mechanism that may change without leaving the plane y = 0.
fn tuned(mut m: MechanismBuilder) -> MechanismBuilder {
    let built = m.build().expect("valid");
    for (path, _) in built.fields() {
        let ending = path.rsplit('.').next().unwrap_or_default();
        let out_of_plane = path.contains("inertia") && ending != "yy" || ending == "y";
        let zero = ["stiffness", "damping"].iter().any(|f| path.contains(f))
            && built.get(built.field("", &path).expect("listed")) == 0.0;
        if !out_of_plane && !zero {
            m = m.parameter(&path, &[&path]);
        }
    }
    m
}

#[test]
fn every_parameter_of_a_chain_through_500_steps() {
    let q = [0.9, -0.4, 0.7];
    let system = system(&tuned(chain()), &q);
    let mut r = Source::new(3);
    let nu = system.dims().nu;
    let problem = Problem {
        rates: vec![0.5, -1.0, 0.3],
        costs: costs(system.outputs().len(), &mut r),
        guess: r.vector(500 * nu, 0.5),
        ..Problem::new(&system, vec![0.01; 500], q.to_vec())
    };
    Case { system, problem }.check(1e-6);
}

/// Tree coordinates at which the loops close, from a guess by joint.
fn closed(m: &MechanismBuilder, guess: &[(&str, f64)]) -> Vec<f64> {
    let built = m.build().expect("valid");
    let of = |(joint, _): (usize, usize)| {
        let found = guess.iter().find(|(n, _)| *n == built.joints[joint].name);
        found.map_or(0.0, |g| g.1)
    };
    let mut q: Vec<f64> = built.tree_ids().into_iter().map(of).collect();
    let held = vec![false; q.len()];
    built.close(&mut q, &held).expect("closes");
    q
}

/// Some rates that keep the loops closed and obey the velocity constraints.
fn closed_rates(s: &Maximal, q: &[f64], r: &mut Source) -> Vec<f64> {
    let start = s
        .start(q, &r.vector(q.len(), 0.6), &vec![false; q.len()])
        .expect("closes");
    let m = s.mechanism();
    m.tree_rates(&s.poses(&start), &s.interval_velocities(&start, 0.0))
}

/// Gears of a joint of the tree with a rack, and of the joint that closes the five-bar with a wheel.
#[test]
fn ratios_and_offsets_of_gears() {
    let mut rail = JointSpec::new(JointKind::Prismatic, "rack").axis([1.0, 0.0, 0.0]);
    rail.parent_anchor = [0.0, 0.0, -0.5];
    let m = five_bar()
        .body("rack", BodySpec::new(0.4).inertia([0.01; 3]))
        .body("wheel", BodySpec::new(0.3).inertia([0.05; 3]))
        .joint("rail", rail)
        .joint("hub", JointSpec::new(JointKind::Revolute, "wheel").axis(Y))
        .gear("rack", GearSpec::new("rail", "left_foot", 0.3).offset(0.05))
        .gear("belt", GearSpec::new("hub", "tip", -1.7).offset(0.4))
        .gear(
            "back",
            GearSpec::new("right_foot", "rail", -1.1).offset(0.2),
        );
    let paths = [
        "gears.rack.ratio",
        "gears.rack.offset",
        "gears.belt.ratio",
        "gears.belt.offset",
        "gears.back.ratio",
        "gears.back.offset",
        "joints.tip.child_anchor.z",
        "bodies.wheel.inertia.yy",
    ];
    let m = paths.iter().fold(m, |m, path| m.parameter(path, &[path]));
    let guess = [("left_foot", -0.3), ("left_knee", 0.9), ("right_foot", 0.3)];
    let q = closed(&m, &guess);
    let system = system(&m, &q);
    assert_eq!(system.mobility().degrees_of_freedom, 1);
    let units: Vec<String> = system.parameters().into_iter().map(|p| p.unit).collect();
    assert_eq!(units[..6], ["m/rad", "m", "1", "rad", "rad/m", "rad"]);
    let mut r = Source::new(8);
    let nu = system.dims().nu;
    let problem = Problem {
        rates: closed_rates(&system, &q, &mut r),
        costs: costs(system.outputs().len(), &mut r),
        guess: r.vector(60 * nu, 0.3),
        ..Problem::new(&system, vec![0.01; 60], q)
    };
    Case { system, problem }.check(1e-6);
}

/// Anchors beside a knife edge, without and with a gear: the start obeys the velocity constraint whatever they are.
#[test]
fn anchors_beside_a_velocity_constraint() {
    let plane = JointSpec::new(JointKind::PlanarAxis, "skate")
        .axis([0.0, 0.0, 1.0])
        .anchors([0.1, 0.2, 0.0], [0.15, -0.1, 0.05]);
    let shoulder = JointSpec::new(JointKind::Revolute, "arm")
        .parent("skate")
        .axis([0.0, 0.0, 1.0])
        .anchors([0.2, 0.05, 0.0], [-0.3, 0.02, 0.0])
        .spring(2.0, 0.3)
        .damping(0.2);
    let m = MechanismBuilder::new()
        .gravity([1.0, 0.5, -9.81])
        .body("skate", BodySpec::new(2.0).inertia([0.1; 3]))
        .body("arm", BodySpec::new(0.7).shape(Shape::Box([0.6, 0.1, 0.1])))
        .joint("plane", plane)
        .joint("shoulder", shoulder)
        .actuator("motor", ActuatorSpec::joint("shoulder"))
        .velocity_constraint("edge", &["skate"], Arc::new(knife_edge::KnifeEdge));
    let mut paths = vec![
        "joints.plane.parent_anchor.x",
        "joints.plane.child_anchor.x",
        "joints.plane.child_anchor.y",
        "joints.shoulder.parent_anchor.x",
        "joints.shoulder.child_anchor.y",
        "bodies.skate.mass",
    ];
    let declared = |m: &MechanismBuilder, paths: &[&'static str]| {
        let m = m.clone();
        paths.iter().fold(m, |m, path| m.parameter(path, &[path]))
    };
    let plain = declared(&m, &paths);
    let belt = GearSpec::new("shoulder", "plane.angle", 0.8).offset(0.1);
    paths.extend(["gears.belt.ratio", "gears.belt.offset"]);
    let geared = declared(&m.gear("belt", belt), &paths);
    for (m, freedoms) in [(plain, 4), (geared, 3)] {
        let q = closed(&m, &[("plane", 0.4), ("shoulder", 0.42)]);
        let system = system(&m, &q);
        assert_eq!(system.mobility().degrees_of_freedom, freedoms);
        let mut r = Source::new(9);
        let nu = system.dims().nu;
        // not lawful: as many as must follow
        let problem = Problem {
            rates: r.vector(q.len(), 0.8),
            costs: costs(system.outputs().len(), &mut r),
            guess: r.vector(80 * nu, 0.5),
            ..Problem::new(&system, vec![0.01; 80], q)
        };
        for change in [0.0, 0.07] {
            let p: Vec<f64> = problem.parameters.iter().map(|p| p + change).collect();
            let x = problem
                .start(&system, &p, &mut system.work())
                .expect("closes");
            let (pose, (v, _)) = (system.poses(&x)[0], system.interval_velocities(&x, 0.0)[0]);
            let slip = (pose.r * least_action::spatial::Vec3::y()).dot(&v);
            assert!(slip.abs() < 1e-12 && v.norm() > 0.1, "{change}: {slip} {v}");
        }
        Case { system, problem }.check(1e-6);
    }
}

#[test]
fn every_parameter_of_a_loop() {
    // symmetric: the feet 0.4 apart, knees outwards
    let q = [-0.3, 0.9];
    let guess = [q[0], q[1], 0.3, -0.9];
    let m = tuned(five_bar());
    let names = ["left_foot", "left_knee", "right_foot", "right_knee"];
    let closed = closed(&m, &names.into_iter().zip(guess).collect::<Vec<_>>());
    let system = system(&m, &closed);
    assert_eq!(system.mobility().degrees_of_freedom, 2);
    // rates that keep the loop closed
    let mut r = Source::new(5);
    let rates = closed_rates(&system, &closed, &mut r);
    let nu = system.dims().nu;
    let problem = Problem {
        rates,
        costs: costs(system.outputs().len(), &mut r),
        guess: r.vector(60 * nu, 0.3),
        ..Problem::new(&system, vec![0.01; 60], closed)
    };
    Case { system, problem }.check(1e-6);
}

/// A slider with friction that is driven, its effort cut at times, against a stop; a hinge that hangs on it.
fn machine() -> MechanismBuilder {
    let slide = JointSpec::new(JointKind::Prismatic, "cart").axis([1.0, 0.0, 0.0]);
    let hinge = JointSpec::new(JointKind::Revolute, "bar")
        .parent("cart")
        .axis(Y)
        .anchors([0.0; 3], [0.0, 0.0, 0.25]);
    let bar = BodySpec::new(0.5).shape(Shape::Box([0.05, 0.05, 0.5]));
    MechanismBuilder::new()
        .body("cart", BodySpec::new(1.0).inertia([0.1; 3]))
        .body("bar", bar)
        .joint("slide", slide.friction(0.7).limits(-0.3, 0.1))
        .joint("hinge", hinge.friction(0.05).limits(-1.0, 0.6))
        .actuator(
            "push",
            ActuatorSpec::joint("slide").effort_limits(-6.0, 4.0),
        )
}

/// A ball thrown onto a floor.
fn ball(friction: f64, restitution: f64) -> MechanismBuilder {
    let contact = ContactSpec::new(friction).restitution(restitution);
    let ball = BodySpec::new(1.0).shape(Shape::Sphere(0.2));
    MechanismBuilder::new()
        .body("ball", ball.free().contact("skin", contact))
        .half_space("floor", HalfSpaceSpec::default())
}

/// Through contact at a parameter of the central path at which differences are smooth.
fn hard(m: MechanismBuilder, paths: &[&str], q: &[f64], kappa: f64) -> Maximal {
    let m = paths.iter().fold(m, |m, path| m.parameter(path, &[path]));
    let contact = ContactOptions {
        impacts: Some(Impacts::Knots),
        central_path: kappa,
        centred: 1e-8,
        ..ContactOptions::default()
    };
    let options = Options {
        tolerance: 1e-12,
        contact,
        ..Options::default()
    };
    let s = Maximal::new(m.build().expect("valid"), q, options).expect("a system");
    let mut outputs = vec![Quantity::KineticEnergy];
    for (joint, direction) in s.mechanism().coordinates() {
        outputs.push(Quantity::Coordinate { joint, direction });
        outputs.push(Quantity::Rate { joint, direction });
    }
    s.with_outputs(outputs)
}

/// A problem of so many steps with costs on everything.
fn throw(s: &Maximal, q: &[f64], rates: &[f64], steps: usize, u: impl Fn(usize) -> f64) -> Problem {
    let guess = (0..steps * s.dims().nu).map(u).collect();
    Problem {
        rates: rates.to_vec(),
        costs: costs(s.outputs().len(), &mut Source::new(4)),
        guess,
        ..Problem::new(s, vec![0.01; steps], q.to_vec())
    }
}

#[test]
fn friction_limits_and_efforts_of_joints() {
    let paths = [
        "joints.slide.friction",
        "joints.slide.limits.lower",
        "joints.slide.limits.upper",
        "joints.hinge.friction",
        "joints.hinge.limits.upper",
        "actuators.push.effort_limits.lower",
        "actuators.push.effort_limits.upper",
        "actuators.push.gain",
    ];
    let q = [-0.1, 0.4];
    let system = hard(machine(), &paths, &q, 1e-1);
    let units: Vec<String> = system.parameters().into_iter().map(|p| p.unit).collect();
    assert_eq!(units, ["N", "m", "m", "N m", "rad", "N", "N", "1"]);
    // to the upper stop, some time against it, and to the lower one
    let u = |k: usize| match k {
        0..20 => 3.0,
        20..50 => 5.0,
        _ => -7.0,
    };
    let problem = throw(&system, &q, &[0.3, 1.0], 90, u);
    // gaps at a stop are fractions of a millimetre
    Case { system, problem }.check_by(1e-6, [1e-4, 1e-5]);
}

#[test]
fn restitution_of_a_bouncing_ball() {
    let paths = [
        "contacts.ball.skin.restitution",
        "contacts.ball.skin.friction",
    ];
    let q = [0.0, 0.0, 0.5, 0.0, 0.0, 0.0];
    let system = hard(ball(0.3, 0.6), &paths, &q, 1e-6);
    // the steps in which it bounces stay the same
    let problem = throw(&system, &q, &[1.0, 0.2, -1.0, 0.0, 0.3, 0.0], 60, |_| 0.0);
    let aligned = Aligned::new(hard(ball(0.3, 0.6), &paths, &q, 1e-6));
    let split = problem.clone();
    Case { system, problem }.check(1e-6);
    // and those of the instants at which it does
    Case {
        system: aligned,
        problem: split,
    }
    .check(1e-6);
}

/// A ball that comes down on an inclined height field, and rolls over several of its triangles.
#[test]
fn radius_of_a_ball_on_a_height_field() {
    let slope = |i: usize, j: usize| 0.15 * i as f64 - 0.05 * j as f64;
    let heights = (0..9).map(|i| (0..9).map(|j| slope(i, j)).collect());
    let field = TerrainShape::Heights {
        heights: heights.collect(),
        spacing: [0.5, 0.4],
    };
    let skin = ContactSpec::new(0.4);
    let body = BodySpec::new(1.0).shape(Shape::Sphere(0.2)).free();
    let m = MechanismBuilder::new()
        .body("ball", body.contact("skin", skin))
        .terrain("field", TerrainSpec::new(field, 0.4).at([-2.0, -1.6, -0.4]));
    let q = [0.1, 0.05, 0.35, 0.0, 0.0, 0.0];
    let system = hard(m, &["contacts.ball.skin.radius"], &q, 1e-5);
    let rates = [0.8, 0.6, -0.5, 0.2, 0.3, 0.0];
    let problem = throw(&system, &q, &rates, 60, |_| 0.0);
    Case { system, problem }.check_by(1e-6, [1e-4, 1e-5]);
}

/// Friction at its bound 0 is not stationary.
#[test]
fn friction_that_is_zero() {
    let q = [0.0, 0.0, 0.2, 0.0, 0.0, 0.0];
    let system = hard(ball(0.0, 0.0), &["contacts.ball.skin.friction"], &q, 1e-9);
    let problem = throw(&system, &q, &[1.0, 0.5, 0.0, 0.0, 0.0, 0.0], 30, |_| 0.0);
    let case = Case { system, problem };
    let exact = case.gradient(&[0.0], &[]).0[0];
    let f = |e: f64| case.value(&[e], &[]);
    // without the value at zero, next to which the central path rounds
    let e = 1e-4;
    let difference = (8.0 * f(2.0 * e) - 5.0 * f(e) - 3.0 * f(3.0 * e)) / (2.0 * e);
    let error = (exact - difference).abs() / difference.abs();
    println!("{exact} {error:.1e}");
    assert!(error < 1e-5, "{exact} {difference}");
}

/// What a mechanism does not have becomes a parameter with a value that has a meaning, and not without.
#[test]
fn numbers_that_were_not_there() {
    let m = machine().body("leg", BodySpec::new(1.0).inertia([0.1; 3]));
    let leg = JointSpec::new(JointKind::Cylindrical, "leg").axis(Y);
    let motor = ActuatorSpec::joint("hinge");
    let m = m.joint("hip", leg).actuator("turn", motor);
    let contact = ContactSpec::new(0.3).shape(Surface::Point);
    let skin = BodySpec::new(1.0).inertia([0.1; 3]).free();
    let m = m
        .body("ball", skin.contact("skin", contact))
        .half_space("floor", HalfSpaceSpec::default());
    let built = m.build().expect("valid");
    let listed = built.fields();
    for (path, value) in [
        ("joints.hip.friction.angle", 0.1),
        ("joints.hip.limits.lower.angle", -0.5),
        ("joints.hip.limits.upper.d", 0.5),
        ("actuators.turn.effort_limits.upper", 3.0),
        ("contacts.ball.skin.restitution", 0.5),
    ] {
        assert!(!listed.iter().any(|(p, _)| p == path), "{path}");
        let field = built.field("p", path).expect("known");
        let tuned = m.clone().parameter("p", &[path]);
        let e = tuned.build().expect_err("means nothing").to_string();
        assert!(e.contains("parameter `p`") && e.contains(path), "{e}");
        let mut other = m.clone();
        other.set(&built, field, value);
        let other = other.parameter("p", &[path]).build().expect("valid");
        assert_eq!(other.get(field), value, "{path}");
        assert!(other.fields().iter().any(|(p, _)| p == path), "{path}");
    }
    // a range whose sides are the wrong way around
    let s = hard(machine(), &["joints.slide.limits.upper"], &[0.0; 2], 1e-3);
    let e = s
        .initial(
            &Start::at_rates(&[0.0; 2], &[0.0; 2]),
            &[-0.5],
            &mut s.work(),
            &mut vec![0.0; s.dims().nx],
        )
        .expect_err("no range")
        .to_string();
    assert!(
        e.contains("limits.upper") && e.contains("[-0.3, -0.5]"),
        "{e}"
    );
}

/// Overlaps are those of the surfaces that the parameters make.
#[test]
fn overlaps_of_a_ball_that_grows() {
    let q = [0.0, 0.0, 0.25, 0.0, 0.0, 0.0];
    let s = hard(ball(0.0, 0.0), &["contacts.ball.skin.radius"], &q, 1e-9);
    let (mut w, mut x) = (s.work(), vec![0.0; s.dims().nx]);
    let from = Start::at_rates(&q, &[0.0; 6]);
    s.initial(&from, &[0.2], &mut w, &mut x).expect("starts");
    let mut deep = |radius: f64| s.penetration_with(&[radius], &x, &mut w);
    assert!((deep(0.3).expect("a ball") - 0.05).abs() < 1e-15);
    assert_eq!(deep(0.2).expect("a ball"), 0.0);
    assert!(deep(-1.0).is_err());
    assert_eq!(s.penetration(&x), 0.0);
}
