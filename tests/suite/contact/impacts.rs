//! Impacts: momentum between bodies is kept, whatever friction does; restitution.

use super::*;
use crate::common::G;
use least_action::dynamics::KnotPoint;
use least_action::format::{Overrides, parse};
use least_action::integrator::Mechanical;
use least_action::rollout::{RolloutStats, Trajectory, balance, momentum};

/// Two free bodies without gravity, the second flying at the first with spin; by how much linear and angular momentum
/// change relative to their size, and how often they touch.
fn collide(a: Shape, b: Shape, restitution: f64, cone: Cone) -> (f64, usize) {
    let body = |mass: f64, shape| {
        let contact = ContactSpec::new(0.6)
            .restitution(restitution)
            .group("all", &["all"]);
        BodySpec::new(mass)
            .shape(shape)
            .free()
            .contact("all", contact)
    };
    let bodies = MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("a", body(1.0, a))
        .body("b", body(0.4, b));
    let q = [
        0.0, 0.0, 0.0, 0.2, 0.1, 0.3, 1.0, 0.13, 0.08, -0.3, 0.5, 0.1,
    ];
    let rates = [
        0.1, 0.0, 0.2, 1.0, -2.0, 0.5, -3.0, 0.2, 0.1, 2.0, 1.0, -3.0,
    ];
    let mut s = Sim::new(&bodies, &q, &rates, 0.005, options(cone, true));
    let (mut first, mut worst, mut touches) = (None, 0.0_f64, 0);
    for _ in 0..200 {
        let seen = KnotPoint {
            at: s.knot(),
            x: &s.x,
            u: &[],
            p: &[],
            y: &[],
        };
        let v = s
            .system
            .knot_velocities(&seen, &mut s.w)
            .expect("velocities");
        let (p, l) = momentum(s.system.mechanism(), &s.system.poses(&s.x), &v);
        let (p0, l0) = *first.get_or_insert((p, l));
        worst = worst
            .max((p - p0).norm() / p0.norm())
            .max((l - l0).norm() / l0.norm());
        s.step();
        assert!(s.lowest() > -1e-9);
        touches += usize::from(s.impulses().any(|i| i > 1e-3));
    }
    (worst, touches)
}

#[test]
fn impacts_with_friction_keep_momentum() {
    let capsule = Shape::Capsule {
        radius: 0.12,
        length: 0.4,
    };
    let pairs = [
        (Shape::Sphere(0.25), Shape::Sphere(0.2)),
        (Shape::Sphere(0.25), capsule),
        (capsule, capsule),
        (Shape::Box([0.4, 0.5, 0.3]), Shape::Sphere(0.2)),
    ];
    for (a, b) in pairs {
        for restitution in [0.0, 0.5] {
            for cone in [Cone::SecondOrder, Cone::Linearized(4), Cone::Linearized(8)] {
                let (change, touches) = collide(a, b, restitution, cone);
                assert!(touches > 0, "{a:?} and {b:?} never meet");
                // the rows of every step are solved to 1e-10 m/s
                let steps = if cone == Cone::SecondOrder {
                    1
                } else {
                    touches
                };
                assert!(
                    change < 1e-10 * steps as f64,
                    "{a:?} and {b:?}, {cone:?}: {change:.1e}"
                );
            }
        }
    }
}

/// A ball that falls on the ground leaves it at the given share of its speed; a slow one stays.
#[test]
fn restitution_is_the_ratio_of_speeds() {
    for (restitution, speed) in [(0.0, 3.0), (0.5, 3.0), (1.0, 3.0), (0.9, 0.01)] {
        let ball = BodySpec::new(2.0)
            .shape(Shape::Sphere(0.1))
            .free()
            .contact("all", ContactSpec::new(0.0).restitution(restitution));
        let above = MechanismBuilder::new()
            .body("ball", ball)
            .half_space("floor", HalfSpaceSpec::default());
        let q = [0.0, 0.0, 0.1 + 0.05 * speed, 0.0, 0.0, 0.0];
        let rates = [0.0, 0.0, -speed, 0.0, 0.0, 0.0];
        let mut s = Sim::new(&above, &q, &rates, 0.005, Options::default());
        let mut before = -speed;
        let mut ratio = None;
        for k in 0..40 {
            s.step();
            assert!(s.lowest() >= 0.0);
            let [_, v, _] = s.body();
            if ratio.is_none() && v.z > before + 2.0 * G * s.h {
                // at the knot itself: half an interval of gravity after the one before, and before the one behind
                let half = 0.5 * G * s.h;
                let fallen = if k == 0 { 0.0 } else { half };
                ratio = Some((v.z + half) / -(before - fallen));
            }
            before = v.z;
        }
        if speed > 1.0 && restitution > 0.0 {
            let ratio = ratio.expect("an impact");
            assert!((ratio - restitution).abs() < 1e-6, "{ratio} {restitution}");
        } else {
            assert!(before.abs() < 1e-9, "it stays: {before}");
        }
    }
}

/// A club that wedges a ball against the ground: its blow spins the ball about the grip of friction, which stops a slip
/// that is not yet there at the knot before.
const CLUB: &str = r#"
title = "Club"
time_step = 0.005
horizon = 1.2

[mechanism.half_spaces.floor]

[mechanism.bodies.club]
mass = 1.0
shape = { capsule = { radius = 0.03, length = 0.6 } }
[mechanism.bodies.club.contacts.head]
shape = { sphere = 0.06 }
position = [0.0, 0.0, -0.35]
friction = 0.3
group = "club"
against = ["ball"]

[mechanism.joints.grip]
kind = "revolute"
child = "club"
axis = [0.0, 1.0, 0.0]
parent_anchor = [0.0, 0.0, 0.85]
child_anchor = [0.0, 0.0, 0.35]

[mechanism.actuators.wrist]
joint = "grip"

[mechanism.bodies.ball]
mass = 0.2
shape = { sphere = 0.06 }
free = true
[mechanism.bodies.ball.contacts.hull]
friction = 0.5
group = "ball"
against = ["ground", "club"]

[initial.ball]
position = [-0.2, 0.0, 0.061]
"#;

#[test]
fn friction_gives_no_energy_where_blows_turn_the_slip() {
    let document = parse(CLUB, "club.toml").expect("parsed");
    let model = document.build(&Overrides::default()).expect("valid");
    let system = &model.system;
    let mut t = Trajectory::new(system, model.problem.intervals.clone(), &model.x0);
    t.u.fill(10.0);
    let mut w = system.work();
    t.roll(system, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    let b = balance(system, &t, &mut w).expect("read");
    // by discretization alone: 10 J without the blows' share
    let most = b.friction.iter().copied().fold(0.0, f64::max);
    assert!(most < 0.1, "friction gave {most:.1e} J");
    let [friction, impacts] = [&b.friction, &b.impacts].map(|w| w[w.len() - 1]);
    assert!(friction < 5e-3 && impacts < -1.0, "{friction} {impacts}");
}
