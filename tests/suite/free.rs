//! Bodies in flight by `rotation = "free"`, and how fast a rolling disc may turn by each law.

use crate::common::case::{Case, costs};
use crate::common::{G, Source, even, list};
use crate::disc::{Disc, NoSlip};
use least_action::control::Problem;
use least_action::dynamics::{Knot, Step};
use least_action::integrator::{Choice, Maximal, Mechanical, Minimal, Options, System};
use least_action::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder,
    Rotation, Shape, WrenchFrame,
};
use least_action::rollout::{RolloutStats, Trajectory, balance, momentum};
use least_action::spatial::{Quat, Vec3, exp, log};
use std::sync::Arc;

fn options() -> Options {
    Options {
        tolerance: 1e-13,
        ..Options::default()
    }
}

fn system(builder: &MechanismBuilder, q: &[f64]) -> Maximal {
    Maximal::new(builder.build().expect("valid"), q, options()).expect("a system")
}

fn flying(inertia: [f64; 3], rotation: Rotation) -> MechanismBuilder {
    let body = BodySpec::new(1.0)
        .inertia(inertia)
        .free()
        .rotation(rotation);
    MechanismBuilder::new().gravity([0.0; 3]).body("body", body)
}

fn rolled(s: &Maximal, q: &[f64], rates: &[f64], h: f64, seconds: f64) -> Trajectory {
    let x = s.start(q, rates, &vec![true; q.len()]).expect("a start");
    let mut t = Trajectory::new(s, even(seconds, h), &x);
    t.roll(s, &mut s.work(), &mut RolloutStats::default())
        .expect("solved");
    t
}

/// Attitude after a flight with the angular velocity `w`, body frame.
fn flown(builder: &MechanismBuilder, w: [f64; 3], h: f64, seconds: f64) -> Quat {
    let s = system(builder, &[0.0; 6]);
    let rates = [&[0.1, 0.2, 0.3], &w[..]].concat();
    let t = rolled(&s, &[0.0; 6], &rates, h, seconds);
    s.poses(t.state(t.steps()))[0].q
}

fn off(a: &Quat, b: &Quat) -> f64 {
    log(&(a.inverse() * b)).norm()
}

/// Two equal moments at 1 rad a step, and at 4: exact to rounding.
#[test]
fn symmetric_bodies_fly_exactly() {
    let builder = flying([1.0, 1.0, 2.0], Rotation::Free);
    let w = Vec3::new(6.0, 0.0, 8.0);
    for h in [0.1, 0.4] {
        let q = flown(&builder, w.into(), h, 2.0);
        let p = Vec3::new(6.0, 0.0, 16.0);
        let exact = exp(&(p * 2.0)) * exp(&(Vec3::z() * -16.0));
        println!("{h}: {:.1e}", off(&q, &exact));
        assert!(off(&q, &exact) < 2e-12, "{}", off(&q, &exact));
    }
}

/// J = (1, 2, 3) tumbling at h = 0.1: 1e-2 after 2 s where the chord is off by 0.3 and more, order two, momentum to rounding, and
/// no drift of the energy in 20 s.
#[test]
fn bodies_tumble() {
    let (inertia, w) = ([1.0, 2.0, 3.0], [1.0, 5.0, 0.3]);
    let builder = flying(inertia, Rotation::Free);
    // of order 6, in small steps
    let choice = Choice::new("maximal", Some(6)).expect("an integrator");
    let s = System::new(
        choice,
        builder.build().expect("valid"),
        &[0.0; 6],
        options(),
    );
    let s = s.expect("a system");
    let rates = [&[0.1, 0.2, 0.3], &w[..]].concat();
    let x = s.start(&[0.0; 6], &rates, &[true; 6]).expect("a start");
    let mut t = Trajectory::new(&s, even(2.0, 2.5e-3), &x);
    t.roll(&s, &mut s.work(), &mut RolloutStats::default())
        .expect("solved");
    let exact = s.poses(t.state(t.steps()))[0].q;
    let errors = [0.1, 0.05, 0.025].map(|h| off(&exact, &flown(&builder, w, h, 2.0)));
    let chord = off(
        &exact,
        &flown(&flying(inertia, Rotation::Chord), w, 0.1, 2.0),
    );
    println!("free {}, chord {chord:.2e}", list(&errors));
    assert!(errors[0] < 1.5e-2 && chord > 20.0 * errors[0]);
    for pair in errors.windows(2) {
        assert!((3.7..4.3).contains(&(pair[0] / pair[1])), "{errors:?}");
    }
    let s = system(&builder, &[0.0; 6]);
    let t = rolled(&s, &[0.0; 6], &rates, 0.05, 20.0);
    let b = balance(&s, &t, &mut s.work()).expect("read");
    let turning = |k: usize| momentum(s.mechanism(), &s.poses(t.state(k)), &b.velocities[k]).1;
    let (first, n) = (turning(0), t.steps());
    let drift = (0..=n).map(|k| (turning(k) - first).norm() / first.norm());
    let drift = drift.fold(0.0, f64::max);
    let most = |from: usize, to: usize| {
        let each = (from..to).map(|k| (b.energy(k) / b.energy(0) - 1.0).abs());
        each.fold(0.0, f64::max)
    };
    let energy = [most(0, n / 2), most(n / 2, n + 1)];
    println!("momentum {drift:.1e}, energy {}", list(&energy));
    assert!(drift < 1e-12);
    assert!(energy[1] < 1.05 * energy[0] && energy[0] < 1e-2);
}

/// Far more than a turn in a step, with a torque: the momentum is still what it must be.
#[test]
fn there_is_no_bound_on_the_turn() {
    let builder = flying([1.0, 2.0, 3.0], Rotation::Free);
    for h in [1.0, 3.0, 10.0] {
        let s = system(&builder, &[0.0; 6]);
        let t = rolled(&s, &[0.0; 6], &[0.1, 0.2, 0.3, 1.0, 5.0, 0.3], h, 5.0 * h);
        let b = balance(&s, &t, &mut s.work()).expect("read");
        let turning = |k: usize| momentum(s.mechanism(), &s.poses(t.state(k)), &b.velocities[k]).1;
        assert!((turning(5) - turning(0)).norm() < 1e-10, "{h}");
    }
}

/// A brick that tumbles falls on the floor, bounces, and comes to rest where it does not overlap.
#[test]
fn bricks_fall_on_the_floor() {
    for restitution in [0.0, 0.5] {
        let skin = ContactSpec::new(0.4)
            .shape(Shape::Box([0.1, 0.2, 0.3]))
            .restitution(restitution);
        let body = BodySpec::new(1.0)
            .shape(Shape::Box([0.1, 0.2, 0.3]))
            .free()
            .rotation(Rotation::Free)
            .contact("skin", skin);
        let builder = MechanismBuilder::new()
            .gravity([0.0, 0.0, -G])
            .body("brick", body)
            .half_space("floor", HalfSpaceSpec::default());
        let q = [0.0, 0.0, 1.0, 0.1, 0.2, 0.3];
        let s = Maximal::new(builder.build().expect("valid"), &q, Options::default());
        let s = s.expect("a system");
        let rates = [0.5, 0.0, 0.0, 20.0, 15.0, -10.0];
        let t = rolled(&s, &q, &rates, 0.005, 3.0);
        let b = balance(&s, &t, &mut s.work()).expect("read");
        let depth = (0..=t.steps()).map(|k| {
            let poses = s.poses(t.state(k));
            let m = s.mechanism();
            let gaps = m.contacts.iter().map(|c| m.touch(c, &poses).gap);
            gaps.fold(f64::INFINITY, f64::min)
        });
        let (n, depth) = (t.steps(), depth.fold(f64::INFINITY, f64::min));
        let speed = b.velocities[n][0].1.norm();
        let z = s.poses(t.state(n))[0].x.z;
        println!(
            "{restitution}: depth {depth:.1e}, spin {speed:.1e}, rests at {z:.6}, error {:.1e} J",
            b.largest_error()
        );
        assert!(depth > -1e-6 && speed < 1e-3);
        assert!([0.05, 0.1, 0.15].iter().any(|half| (z - half).abs() < 1e-5));
        assert!(b.largest_error() < 0.05 * b.energy(0));
    }
}

/// A thrown body with torques and a force: gradients by controls and mass through a hundred steps, of one that tumbles by 0.3 rad a
/// step, and of one that spins about its axis of largest inertia by 4 rad a step.
#[test]
fn thrown_bodies_have_gradients() {
    for (inertia, spin) in [
        ([0.01, 0.02, 0.025], [6.0, 30.0, 3.0]),
        ([0.02, 0.021, 0.025], [8.0, 4.0, 400.0]),
    ] {
        let frame = WrenchFrame::Body;
        let body = BodySpec::new(1.3)
            .inertia(inertia)
            .free()
            .rotation(Rotation::Free);
        let builder = MechanismBuilder::new()
            .gravity([0.0, 0.0, -G])
            .body("body", body)
            .actuator(
                "push",
                ActuatorSpec::wrench("body", [0.3, 0.0, 1.0], frame, [0.01, 0.0, 0.02]),
            )
            .actuator(
                "turn",
                ActuatorSpec::wrench("body", [0.0; 3], frame, [0.0, 0.1, 0.0]),
            )
            .parameter("mass", &["bodies.body.mass"]);
        let mut r = Source::new(5);
        let q = vec![0.0, 0.0, 1.0, 0.2, -0.3, 0.1];
        let s = crate::common::case::system(&builder, &q);
        let problem = Problem {
            rates: [&[1.0, 0.3, 3.0], &spin[..]].concat(),
            costs: costs(s.outputs().len(), &mut r),
            guess: r.vector(100 * s.dims().nu, 0.2),
            ..Problem::new(&s, vec![0.01; 100], q)
        };
        Case { system: s, problem }.check(1e-6);
    }
}

/// What the law does not offer is refused by name.
#[test]
fn what_free_bodies_do_not_offer_is_named() {
    let builder = flying([1.0, 2.0, 3.0], Rotation::Free);
    let e = Minimal::new(builder.build().expect("valid"), &[0.0; 6], options());
    let e = e.expect_err("joint coordinates");
    let text = format!("{e}");
    assert!(text.contains("`body` has rotation = \"free\"") && text.contains("maximal"));
    // by default it is that
    let s = System::new(
        Choice::default(),
        builder.build().expect("valid"),
        &[0.0; 6],
        options(),
    );
    assert!(matches!(
        s,
        Ok(System::Maximal(_) | System::MaximalAligned(_))
    ));
    let path = "bodies.body.inertia.xx";
    let e = builder.parameter("moment", &[path]).build();
    let text = format!("{}", e.expect_err("no derivative"));
    assert!(
        text.contains("`body`") && text.contains("another rotation"),
        "{text}"
    );
}

/// Joints hold bodies of this law, too: a pendulum of second order.
#[test]
fn joints_hold_free_bodies() {
    let body = BodySpec::new(1.0)
        .inertia([0.02, 0.05, 0.04])
        .rotation(Rotation::Free);
    let pin = JointSpec::new(JointKind::Spherical, "bob").anchors([0.0; 3], [0.0, 0.0, 0.5]);
    let builder = MechanismBuilder::new()
        .gravity([0.0, 0.0, -G])
        .body("bob", body)
        .joint("pin", pin);
    let (q, rates) = ([0.7, 0.2, 0.0], [0.0, 2.0, 3.0]);
    let s = system(&builder, &q);
    let end = |h: f64| {
        let t = rolled(&s, &q, &rates, h, 1.0);
        s.poses(t.state(t.steps()))[0].q
    };
    let exact = end(3.125e-4);
    let errors = [0.02, 0.01, 0.005].map(|h| off(&exact, &end(h)));
    println!("pendulum {}", list(&errors));
    for pair in errors.windows(2) {
        assert!((3.5..4.6).contains(&(pair[0] / pair[1])), "{errors:?}");
    }
}

/// Errors of the attitude, and of the center relative to the radius of its circle, of a disc that rolls steadily for two seconds.
fn disc_errors(rotation: Option<Rotation>, h: f64) -> (f64, f64) {
    let (mass, radius, tilt, precession) = (1.5, 0.25, 1.2_f64, 2.0);
    let (along, about) = (0.25 * mass * radius * radius, 0.5 * mass * radius * radius);
    let (sin, cos) = tilt.sin_cos();
    let spin = (along * precession * precession * sin * cos - mass * G * radius * cos)
        / ((about + mass * radius * radius) * precession * sin);
    let mut body = BodySpec::new(mass).inertia([along, along, about]).free();
    body.rotation = rotation;
    let disc = Disc { radius };
    let builder = MechanismBuilder::new()
        .gravity([0.0, 0.0, -G])
        .body("disc", body)
        .constraint("touch", &["disc"], Arc::new(disc))
        .velocity_constraint("roll", &["disc"], Arc::new(NoSlip(disc)));
    let (up, axis) = (Vec3::new(-cos, 0.0, sin), Vec3::new(sin, 0.0, cos));
    let omega = axis * spin + up * (precession * sin);
    let v = (omega * radius).cross(&up);
    let q = [0.0, 0.0, radius * sin, 0.0, tilt, 0.0];
    let s = system(&builder, &q);
    let rates = [v.x, v.y, v.z, omega.x, omega.y, omega.z];
    let t = rolled(&s, &q, &rates, h, 2.0);
    let (first, last) = (s.poses(t.state(0))[0], s.poses(t.state(t.steps()))[0]);
    let turned = 2.0 * precession;
    let own = Vec3::z() * (2.0 * (spin - precession * cos));
    let exact = exp(&(Vec3::z() * turned)) * first.q * exp(&own);
    let (sine, cosine) = turned.sin_cos();
    let moved = (v * sine + Vec3::z().cross(&v) * (1.0 - cosine)) / precession;
    let circle = v.norm() / precession;
    (
        off(&exact, &last.q),
        (last.x - first.x - moved).norm() / circle,
    )
}

/// The disc turns by half a radian in the longest step. It is of second order by every law; `spin` and `free` lead the center
/// nearer to its circle.
#[test]
fn discs_roll_in_circles() {
    let laws = [
        ("default", None),
        ("chord", Some(Rotation::Chord)),
        ("spin", Some(Rotation::Spin)),
        ("free", Some(Rotation::Free)),
    ];
    for (name, rotation) in laws {
        let each = [0.1, 0.05, 0.025, 0.0125].map(|h| disc_errors(rotation, h));
        let (turns, places) = (each.map(|e| e.0), each.map(|e| e.1));
        println!(
            "{name}: attitude {}, center {}",
            list(&turns),
            list(&places)
        );
        for errors in [turns, places] {
            for pair in errors.windows(2).skip(1) {
                let ratio = pair[0] / pair[1];
                assert!((3.4..4.6).contains(&ratio), "{name} {errors:?}");
            }
        }
    }
}

/// Whoever turns too far for the law reads the bounds of that law.
#[test]
fn turns_too_far_name_the_law() {
    let about = Rotation::SpinAbout([0.0, 0.0, 1.0]);
    for (rotation, inertia, says) in [
        (Rotation::Chord, [1.0, 2.0, 3.0], ["\"chord\"", "1.414"]),
        (Rotation::Ball, [1.0; 3], ["\"ball\"", "3.000"]),
        (about, [1.0, 2.0, 3.0], ["\"spin\"", "1.414"]),
    ] {
        let s = system(&flying(inertia, rotation), &[0.0; 6]);
        let rates = [0.0, 0.0, 0.0, 400.0, 100.0, 0.0];
        let mut x = s.start(&[0.0; 6], &[0.0; 6], &[true; 6]).expect("a start");
        let d = s.dims();
        let at = Knot {
            k: 1,
            t: 0.01,
            h_prev: 0.01,
            h: 0.01,
        };
        x[7..13].copy_from_slice(&rates);
        let (mut next, mut y) = (x.clone(), vec![0.0; d.ny]);
        let e = s.step(&at, &x, &[], &[], &mut s.work(), &mut next, &mut y);
        let text = format!("{}", e.expect_err("too far"));
        assert!(says.iter().all(|s| text.contains(s)), "{text}");
    }
}
