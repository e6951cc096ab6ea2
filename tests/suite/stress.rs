//! Where steps are large and configurations singular.

use crate::cranks::{self, Run};
use least_action::dynamics::{Knot, Step};
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
};
use least_action::spatial::{Vec3, increment_scalar, momentum as discrete_momentum};

/// Energy is as good as in runs without a knot near flat, joints are closed but behind treated steps, cranks do not part.
fn passes(what: &str, r: &Run, limit: f64) {
    println!(
        "{what}: energy {:.3e} J, gap {:.1e} m, where treated {:.1e} m, spread {:.1e} m, treated {}",
        r.energy[0], r.gap[0], r.gap[1], r.spread, r.stats.treated
    );
    assert!(r.failure.is_none(), "{what}: {:?}", r.failure);
    assert!(r.energy[0] < limit, "{what}: {:e}", r.energy[0]);
    assert!(r.gap[0] < 1e-9, "{what}: gap {:e}", r.gap[0]);
    assert!(r.gap[1] < 1e-4, "{what}: gap {:e}", r.gap[1]);
    assert!(r.spread < 1e-3, "{what}: spread {:e}", r.spread);
}

#[test]
fn parallelograms_pass_flat_positions_at_any_distance() {
    let mut treated = 0;
    for distance in [0.0, 1e-10, 1e-7, 1e-5, 1e-3] {
        let h = 0.01;
        let start = cranks::landing(2, (0.0, 1.0), h, distance).expect("lands");
        let r = cranks::run(2, (start, 1.0), h, 500).expect("reads");
        passes(&format!("two at {distance:e}"), &r, 0.06);
        treated += r.stats.treated;
    }
    assert!(treated > 1);
    let start = cranks::landing(8, (1.5, 0.0), 0.005, 1e-9).expect("lands");
    let r = cranks::run(8, (start, 0.0), 0.005, 400).expect("reads");
    passes("eight", &r, 0.02);
    assert!(r.stats.treated > 0);
}

#[test]
#[ignore = "some minutes"]
fn no_step_size_parts_parallelograms() {
    for (what, r, limit) in cranks::sweep(300) {
        passes(&what, &r, limit);
    }
    for h in [0.02, 0.01, 0.005] {
        let limit = 0.12 * (h / 0.01_f64).powi(2);
        for (what, r, limit) in cranks::landings(2, (0.0, 1.0), h, (10.0 / h) as usize, limit) {
            passes(&what, &r, limit);
        }
    }
    for (what, r, limit) in cranks::landings(40, (1.5, 0.0), 0.005, 2000, 0.075) {
        passes(&what, &r, limit);
    }
}

/// The angular momentum about the origin over the last interval, which the discrete motion keeps: `Q(z+) p-(w)`.
fn angular_momentum(s: &Maximal, x: &[f64], h: f64) -> Vec3 {
    let motion = s.interval_velocities(x);
    let bodies = s.mechanism().bodies.iter().zip(s.poses(x)).zip(motion);
    bodies
        .map(|((b, pose), (v, w))| {
            let own = discrete_momentum(&w, &b.inertia, -h, increment_scalar(&w, h));
            pose.x.cross(&(v * b.mass)) + pose.r * own
        })
        .sum()
}

/// Largest change of the angular momentum, relative, at a tolerance of 1e-10.
fn drift(builder: &MechanismBuilder, q: &[f64], rates: &[f64], h: f64, steps: usize) -> f64 {
    let s = Maximal::new(builder.build().expect("valid"), q, Options::default()).expect("closes");
    let mut x = s.start(q, rates, &vec![true; q.len()]).expect("closes");
    let (mut w, mut y, mut next) = (s.work(), vec![0.0; s.dims().ny], x.clone());
    let mut at = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h,
    };
    let (mut first, mut worst) = (Vec3::zeros(), 0.0_f64);
    for k in 0..steps {
        s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y)
            .expect("solved");
        std::mem::swap(&mut x, &mut next);
        at = Knot {
            k: k + 1,
            t: at.t + h,
            h_prev: h,
            h,
        };
        if k == 0 {
            first = angular_momentum(&s, &x, h);
        } else if k % 500 == 499 {
            let l = angular_momentum(&s, &x, h);
            worst = worst.max((l - first).norm() / first.norm());
        }
    }
    worst
}

/// Newton's method leaves a residual of one sign at every step.
#[test]
fn angular_momentum_is_kept_to_rounding() {
    let nut = || {
        BodySpec::new(1.0)
            .shape(Shape::Sphere(0.1))
            .inertia([1.0, 2.0, 3.0])
            .free()
    };
    let alone = MechanismBuilder::new().gravity([0.0; 3]).body("nut", nut());
    let above = MechanismBuilder::new()
        .gravity([0.0; 3])
        .half_space("floor", HalfSpaceSpec::default())
        .body("nut", nut().contact("all", ContactSpec::new(0.5)));
    let rod = || BodySpec::new(1.0).shape(Shape::Box([0.1, 0.1, 1.0]));
    let pin = JointSpec::new(JointKind::Revolute, "second").parent("first");
    let pin = pin
        .axis([0.0, 1.0, 0.0])
        .anchors([0.0, 0.0, -0.5], [0.0, 0.0, 0.5]);
    let pinned = MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("first", rod().free())
        .body("second", rod())
        .joint("pin", pin);
    let q = [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0];
    let (slow, fast) = (
        [0.0, 0.0, 0.0, 1e-3, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 5.0, 0.3],
    );
    for (what, builder, rates, h, steps, limit) in [
        ("slow", &alone, &slow[..], 1e-3, 100_000, 1e-12),
        ("fast", &alone, &fast, 1e-2, 100_000, 1e-12),
        ("slow above a floor", &above, &slow, 1e-3, 100_000, 1e-12),
        ("fast above a floor", &above, &fast, 1e-2, 20_000, 1e-12),
        (
            "pinned",
            &pinned,
            &[0.0, 0.0, 0.0, 1.0, 2.0, 0.3, 3.0],
            1e-2,
            20_000,
            5e-12,
        ),
    ] {
        let found = drift(builder, &q[..rates.len()], rates, h, steps);
        println!("{what}: {found:.2e} of the angular momentum after {steps} steps");
        assert!(found < limit, "{what}: {found:e}");
    }
}
