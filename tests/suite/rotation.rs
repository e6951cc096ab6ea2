//! Spinning bodies by their rotation laws: rolling balls, wheels, tops, gimbals and propellers, whose turns by a step are large.

use crate::common::{G, even, list};
use crate::trees::BOTH;
use least_action::dynamics::Step;
use least_action::integrator::{Choice, Mechanical, Options, System};
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Rotation, Shape,
};
use least_action::rollout::{RolloutStats, Trajectory, balance, momentum};
use least_action::spatial::{Vec3, log};

/// A mechanism with its start.
struct Case {
    builder: MechanismBuilder,
    q: Vec<f64>,
    rates: Vec<f64>,
}

impl Case {
    /// Solved so closely that what the tolerance leaves does not add up.
    fn system(&self, integrator: &str, order: usize) -> System {
        let options = Options {
            tolerance: 1e-13,
            ..Options::default()
        };
        let choice = Choice::new(integrator, Some(order)).expect("an integrator");
        let mechanism = self.builder.build().expect("a mechanism");
        System::new(choice, mechanism, &self.q, options).expect("a system")
    }

    fn roll(&self, s: &System, h: f64, seconds: f64) -> Trajectory {
        let x = s.start(&self.q, &self.rates, &vec![true; self.q.len()]);
        let mut t = Trajectory::new(s, even(seconds, h), &x.expect("a start"));
        t.roll(s, &mut s.work(), &mut RolloutStats::default())
            .unwrap_or_else(|e| panic!("{integrator:?}: {e}", integrator = s.choice()));
        t
    }

    /// Errors of attitude of a body at the end, at these steps, against `reference`, of order 6.
    fn errors(&self, integrator: &str, body: usize, steps: &[f64], seconds: f64) -> Vec<f64> {
        let smallest = steps.iter().fold(f64::INFINITY, |m, h| h.min(m));
        let end = |order, h| {
            let s = self.system(integrator, order);
            let t = self.roll(&s, h, seconds);
            s.poses(t.state(t.steps()))[body].q
        };
        let reference = end(6, 0.25 * smallest);
        let of = |h: &f64| log(&(reference.inverse() * end(2, *h))).norm();
        steps.iter().map(of).collect()
    }
}

fn assert_order_two(what: &str, errors: &[f64]) {
    println!("{what}: {}", list(errors));
    for pair in errors.windows(2) {
        let ratio = pair[0] / pair[1];
        assert!((3.5..4.6).contains(&ratio), "{what} {errors:?}");
    }
}

/// A ball on a plane that is tilted by an angle, gravity turned instead.
fn ball(radius: f64, angle: f64) -> Case {
    let skin = ContactSpec::new(5.0).shape(Shape::Sphere(radius));
    let body = BodySpec::new(0.7)
        .shape(Shape::Sphere(radius))
        .free()
        .contact("skin", skin);
    let builder = MechanismBuilder::new()
        .gravity([G * angle.sin(), 0.0, -G * angle.cos()])
        .half_space("plane", HalfSpaceSpec::default())
        .body("ball", body);
    Case {
        builder,
        q: vec![0.0, 0.0, radius, 0.0, 0.0, 0.0],
        rates: vec![0.0; 6],
    }
}

/// A ball that rolls down moves by `5/14 g sin(angle) t^2`, to a ten-thousandth where it turns by one radian per step.
#[test]
fn balls_roll_down() {
    let angle = std::f64::consts::FRAC_PI_4;
    let exact = 5.0 / 14.0 * G * angle.sin();
    for integrator in BOTH {
        for (turn, h) in [
            (0.3, 0.01),
            (0.6, 0.005),
            (1.0, 0.01),
            (1.0, 0.02),
            (1.5, 0.01),
        ] {
            // 2 exact is the speed after a second
            let radius = 2.0 * exact * h / turn;
            let case = ball(radius, angle);
            let s = case.system(integrator, 2);
            let t = case.roll(&s, h, 1.0);
            let x = s.poses(t.state(t.steps()))[0].x;
            let error = x.x / exact - 1.0;
            println!("{integrator}: {turn} rad per step of {h} s: {error:.1e}");
            assert!(error.abs() < 1e-4 && (x.z - radius).abs() < 1e-5 * radius);
            let b = balance(&s, &t, &mut s.work()).expect("read");
            assert!(b.largest_error() < 1e-4 * 0.7 * G * exact);
        }
    }
    // what its chord makes of it
    let mut chord = ball(2.0 * exact * 0.01, angle);
    let body = chord.builder.bodies["ball"].clone();
    chord.builder = chord.builder.body("ball", body.rotation(Rotation::Chord));
    let s = chord.system("maximal", 2);
    let t = chord.roll(&s, 0.01, 1.0);
    let error = s.poses(t.state(t.steps()))[0].x.x / exact - 1.0;
    assert!(error > 0.01, "{error}");
}

/// A wheel spins as fast as it was started, and speeds up as its torque says, exactly.
#[test]
fn wheels_on_axles_are_exact() {
    let wheel = BodySpec::new(2.0).shape(Shape::Cylinder {
        radius: 0.3,
        length: 0.05,
    });
    let gyro = BodySpec::new(2.0).inertia([0.07, 0.05, 0.05]);
    let ball = BodySpec::new(1.0).shape(Shape::Sphere(0.2));
    let z = [0.0, 0.0, 1.0];
    let blades = BodySpec::new(0.1)
        .inertia([1e-3, 1e-5, 1.005e-3])
        .rotation(Rotation::SpinAbout(z));
    for integrator in BOTH {
        for (kind, body, axis, turn) in [
            (JointKind::Revolute, &wheel, z, 0.3),
            (JointKind::Revolute, &wheel, z, 1.0),
            (JointKind::Cylindrical, &wheel, z, 1.8),
            (JointKind::Revolute, &gyro, [1.0, 0.0, 0.0], 2.4),
            (JointKind::Revolute, &ball, [0.0, 0.6, 0.8], 1.0),
            (JointKind::Revolute, &blades, z, 1.8),
        ] {
            let h = 0.01;
            let joint = JointSpec::new(kind, "wheel").axis(axis);
            let builder = MechanismBuilder::new()
                .gravity([0.0; 3])
                .body("wheel", body.clone())
                .joint("axle", joint);
            let own = builder.build().expect("a wheel");
            let n = own.tree_ids().len();
            let mut rates = vec![0.0; n];
            rates[n - 1] = turn / h;
            let q = vec![0.0; n];
            let case = Case { builder, q, rates };
            let s = case.system(integrator, 2);
            let t = case.roll(&s, h, 1.0);
            let angle = s.coordinate(t.state(t.steps()), 0, n - 1);
            let error = angle / (turn * 100.0) - 1.0;
            println!("{integrator} {turn}: {error:.1e}");
            assert!(error.abs() < 1e-11);
            let b = balance(&s, &t, &mut s.work()).expect("read");
            assert!(b.largest_error() < 1e-10 * b.energy(0));
        }
    }
}

/// A heavy top on its tip, of this spin.
fn top(spin: f64, tilt: f64, radius: f64) -> Case {
    let body = BodySpec::new(0.5).shape(Shape::Cylinder {
        radius,
        length: 0.02,
    });
    let tip = JointSpec::new(JointKind::Spherical, "top").anchors([0.0; 3], [0.0, 0.0, -0.08]);
    Case {
        builder: MechanismBuilder::new()
            .gravity([0.0, 0.0, -G])
            .body("top", body)
            .joint("tip", tip),
        q: vec![0.0, tilt, 0.0],
        rates: vec![spin * tilt.sin(), 0.0, spin * tilt.cos()],
    }
}

/// Fast tops: second order, and 4e-4 at a millisecond, where their chords are off by a radian.
#[test]
fn tops_precess() {
    for integrator in BOTH {
        for (spin, tilt, radius) in [
            (150.0, 0.3, 0.06),
            (150.0, 0.6, 0.05),
            (120.0, 0.3, 0.06),
            (200.0, 0.2, 0.04),
            (300.0, 0.5, 0.06),
        ] {
            let case = top(spin, tilt, radius);
            let errors = case.errors(integrator, 0, &[2e-3, 1e-3, 5e-4], 1.0);
            assert_order_two(&format!("{integrator} top {spin} rad/s"), &errors);
            assert!(errors[1] < 4e-4, "{errors:?}");
        }
    }
}

/// A rotor in two gimbals.
fn gimbals(spin: f64) -> Case {
    let ring = |inertia| BodySpec::new(0.3).inertia(inertia);
    let rotor = BodySpec::new(1.0).shape(Shape::Cylinder {
        radius: 0.05,
        length: 0.02,
    });
    let on = |child: &str, parent: &str, axis| {
        JointSpec::new(JointKind::Revolute, child)
            .parent(parent)
            .axis(axis)
    };
    let outer = JointSpec::new(JointKind::Revolute, "outer").axis([0.0, 0.0, 1.0]);
    Case {
        builder: MechanismBuilder::new()
            .gravity([0.0; 3])
            .body("outer", ring([1e-3, 1.8e-3, 1e-3]))
            .body("inner", ring([8e-4, 7e-4, 1.4e-3]))
            .body("rotor", rotor)
            .joint("yaw", outer)
            .joint("pitch", on("inner", "outer", [0.0, 1.0, 0.0]))
            .joint("spin", on("rotor", "inner", [0.0, 0.0, 1.0])),
        q: vec![0.0, 0.9, 0.0],
        rates: vec![1.0, 2.0, spin],
    }
}

#[test]
fn gyroscopes_in_gimbals_nod() {
    for integrator in BOTH {
        for spin in [100.0, 200.0, 300.0, -300.0, 600.0] {
            let errors = gimbals(spin).errors(integrator, 1, &[1e-3, 5e-4, 2.5e-4], 0.5);
            assert_order_two(&format!("{integrator} gimbals {spin} rad/s"), &errors);
            assert!(errors[0] < 1e-2, "{errors:?}");
        }
    }
}

/// A frame that flies with four propellers, which turn by so much in a step.
fn quadrotor(rate: f64, blades: bool) -> Case {
    let mut builder = MechanismBuilder::new().gravity([0.0; 3]).body(
        "frame",
        BodySpec::new(0.5)
            .inertia([0.0023, 0.0023, 0.004])
            .rotation(Rotation::Spin)
            .free(),
    );
    for (i, (x, y)) in [(0.17, 0.0), (0.0, 0.17), (-0.17, 0.0), (0.0, -0.17)]
        .iter()
        .enumerate()
    {
        let name = format!("rotor{i}");
        let rotor = if blades {
            BodySpec::new(0.01)
                .inertia([2e-5, 2.1e-5, 4e-5])
                .rotation(Rotation::SpinAbout([0.0, 0.0, 1.0]))
        } else {
            BodySpec::new(0.01).inertia([2e-5, 2e-5, 4e-5])
        };
        let shaft = JointSpec::new(JointKind::Revolute, &name)
            .parent("frame")
            .axis([0.0, 0.0, 1.0])
            .anchors([*x, *y, 0.02], [0.0; 3]);
        builder = builder
            .body(&name, rotor)
            .joint(&format!("shaft{i}"), shaft);
    }
    let mut rates = vec![0.0; 10];
    let mut shafts = [rate, -rate, rate, -1.1 * rate].into_iter();
    let m = builder.build().expect("a quadrotor");
    for ((joint, i), r) in m.tree_ids().iter().zip(&mut rates) {
        let j = &m.joints[*joint];
        match (j.parent, i) {
            (Some(_), _) => *r = shafts.next().expect("four"),
            (None, 3) => *r = 0.7,
            (None, 4) => *r = -1.3,
            _ => {}
        }
    }
    Case {
        builder,
        q: vec![0.0; 10],
        rates,
    }
}

/// Propellers at up to 1.98 rad per step, where steps of their chords have no root.
#[test]
fn propellers_turn_far_in_a_step() {
    let h = 1e-3;
    for integrator in BOTH {
        for (turn, blades) in [
            (0.5, false),
            (1.0, false),
            (1.5, true),
            (1.8, false),
            (1.8, true),
        ] {
            let case = quadrotor(turn / h, blades);
            let frame = case.builder.build().expect("built").bodies;
            let frame = frame.iter().position(|b| b.name == "frame").expect("there");
            let errors = case.errors(integrator, frame, &[h, 0.5 * h], 1.0);
            println!("{integrator} {turn} {blades}: {}", list(&errors));
            assert!(
                errors[0] < 5e-5 && errors[1] < 0.3 * errors[0],
                "{errors:?}"
            );
        }
    }
}

/// A body in flight keeps its momentum to rounding, and its energy without trend, whatever its law.
#[test]
fn momentum_and_energy_stay() {
    let named = Rotation::SpinAbout([0.36, 0.48, 0.8]);
    for integrator in BOTH {
        for (inertia, rotation, w) in [
            ([1.0, 1.0, 1.0], None, [3.0, -20.0, 40.0]),
            ([1.0, 1.0, 1.7], Some(Rotation::Spin), [0.5, 0.3, 60.0]),
            ([1.0, 1.0, 1.7], Some(Rotation::Spin), [9.0, 3.0, 30.0]),
            ([1.0, 2.0, 2.0], Some(Rotation::Spin), [90.0, 3.0, 2.0]),
            ([1.0, 1.8, 2.5], Some(named), [3.0, 5.0, 9.0]),
        ] {
            let mut body = BodySpec::new(1.0).inertia(inertia).free();
            body.rotation = rotation;
            let builder = MechanismBuilder::new().gravity([0.0; 3]).body("body", body);
            let rates = [&[0.1, 0.2, 0.3], &w[..]].concat();
            let q = vec![0.0; 6];
            let case = Case { builder, q, rates };
            let s = case.system(integrator, 2);
            let t = case.roll(&s, 0.01, 20.0);
            let b = balance(&s, &t, &mut s.work()).expect("read");
            let turning = |k: usize| -> Vec3 {
                momentum(s.mechanism(), &s.poses(t.state(k)), &b.velocities[k]).1
            };
            let (first, n) = (turning(0), t.steps());
            let drift = (0..=n).map(|k| (turning(k) - first).norm() / first.norm());
            let drift = drift.fold(0.0, f64::max);
            let half = |from: usize, to: usize| {
                let each = (from..to).map(|k| (b.energy(k) / b.energy(0) - 1.0).abs());
                each.fold(0.0, f64::max)
            };
            let energy = [half(0, n / 2), half(n / 2, n + 1)];
            println!(
                "{integrator} {inertia:?}: momentum {drift:.1e}, energy {}",
                list(&energy)
            );
            assert!(drift < 1e-11);
            assert!(energy[1] < 1.05 * energy[0] + 1e-11 && energy[0] < 0.05);
        }
    }
}
