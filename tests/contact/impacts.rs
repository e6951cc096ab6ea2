//! Impacts: momentum between bodies is kept, whatever friction does; restitution.

use least_action::dynamics::{Dynamics, Knot};
use least_action::integrator::{Maximal, Options};
use least_action::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};
use least_action::rollout::momentum;

/// Two free bodies without gravity, the second flying at the first with spin; by how much linear and angular momentum
/// change relative to their size, and how often they touch.
fn collide(a: Shape, b: Shape, restitution: f64) -> (f64, usize) {
    let body = |mass: f64, shape| {
        let contact = ContactSpec::new(0.6)
            .restitution(restitution)
            .group("all", &["all"]);
        BodySpec::new(mass)
            .shape(shape)
            .free()
            .contact("all", contact)
    };
    let mechanism = MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("a", body(1.0, a))
        .body("b", body(0.4, b))
        .build()
        .expect("a mechanism");
    let q = [
        0.0, 0.0, 0.0, 0.2, 0.1, 0.3, 1.0, 0.13, 0.08, -0.3, 0.5, 0.1,
    ];
    let rates = [
        0.1, 0.0, 0.2, 1.0, -2.0, 0.5, -3.0, 0.2, 0.1, 2.0, 1.0, -3.0,
    ];
    let system = Maximal::new(mechanism, &q, Options::default()).expect("a system");
    let (mut w, d, h) = (system.work(), system.dims(), 0.005);
    let mut x = vec![0.0; d.nx];
    system
        .initial(&q, &rates, &[], &mut w, &mut x)
        .expect("a start");
    let (mut y, mut next) = (vec![0.0; d.ny], x.clone());
    let (mut first, mut worst, mut touches) = (None, 0.0_f64, 0);
    for k in 0..200 {
        let at = Knot {
            k,
            t: k as f64 * h,
            h_prev: if k == 0 { 0.0 } else { h },
            h,
        };
        let v = system
            .knot_velocities(&at, &x, &[], &mut w)
            .expect("velocities");
        let (p, l) = momentum(system.mechanism(), &system.poses(&x), &v);
        let (p0, l0) = *first.get_or_insert((p, l));
        worst = worst
            .max((p - p0).norm() / p0.norm())
            .max((l - l0).norm() / l0.norm());
        system
            .step(&at, &x, &[], &[], &mut w, &mut next, &mut y)
            .unwrap_or_else(|e| panic!("{e}"));
        std::mem::swap(&mut x, &mut next);
        assert!(system.penetration(&x) < 1e-9);
        let contacts = y[12..].chunks_exact(5);
        touches += usize::from(contacts.into_iter().any(|c| c[1] > 1e-3));
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
            let (change, touches) = collide(a, b, restitution);
            assert!(touches > 0, "{a:?} and {b:?} never meet");
            assert!(change < 1e-10, "{a:?} and {b:?}: {change:.1e}");
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
        let mechanism = MechanismBuilder::new()
            .body("ball", ball)
            .half_space("floor", HalfSpaceSpec::default())
            .build()
            .expect("a mechanism");
        let q = [0.0, 0.0, 0.1 + 0.05 * speed, 0.0, 0.0, 0.0];
        let rates = [0.0, 0.0, -speed, 0.0, 0.0, 0.0];
        let system = Maximal::new(mechanism, &q, Options::default()).expect("a system");
        let (mut w, d, h) = (system.work(), system.dims(), 0.005);
        let mut x = vec![0.0; d.nx];
        system
            .initial(&q, &rates, &[], &mut w, &mut x)
            .expect("a start");
        let (mut y, mut next) = (vec![0.0; d.ny], x.clone());
        let mut before = -speed;
        let mut ratio = None;
        for k in 0..40 {
            let at = Knot {
                k,
                t: k as f64 * h,
                h_prev: if k == 0 { 0.0 } else { h },
                h,
            };
            system
                .step(&at, &x, &[], &[], &mut w, &mut next, &mut y)
                .unwrap_or_else(|e| panic!("{e}"));
            std::mem::swap(&mut x, &mut next);
            assert!(system.penetration(&x) == 0.0);
            let v = x[9];
            if ratio.is_none() && v > before + 2.0 * 9.81 * h {
                ratio = Some(v / -before);
            }
            before = v;
        }
        if speed > 1.0 && restitution > 0.0 {
            let ratio = ratio.expect("an impact");
            assert!((ratio - restitution).abs() < 1e-6, "{ratio} {restitution}");
        } else {
            assert!(before.abs() < 1e-9, "it stays: {before}");
        }
    }
}
