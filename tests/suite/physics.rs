//! Motions against closed forms and independent references.

use crate::common::*;
use crate::cranks::{cranks, cranks_at};
use least_action::dynamics::Step;
use least_action::integrator::Mechanical;
use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder, Shape};
use least_action::rollout::{RolloutStats, Trajectory, balance};
use least_action::spatial::Vec3;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

#[test]
fn point_pendulum_has_the_exact_period() {
    let (s, x0) = start(
        &pendulum(BodySpec::new(1.0).inertia([1e-9; 3]), 1.0),
        &[-FRAC_PI_2],
        &[0.0],
    );
    let run = |h: f64| {
        let t = fall(&s, &x0, 10.1, h);
        let v = balance(&s, &t, &mut s.work()).expect("read").velocities;
        let angle: Vec<f64> = (0..=t.steps())
            .map(|k| s.coordinate(t.state(k), 0, 0))
            .collect();
        let rate: Vec<f64> = v.iter().map(|v| v[0].1.y).collect();
        let zero = crossings(&times(&t), &angle, &rate);
        let end = t.state((10.0 / h).round() as usize);
        // nine passes at T/4 + i T/2
        assert_eq!(zero.len(), 9);
        [(zero[8] - zero[0]) / 4.0, end[0], end[2]]
    };
    let exact = [2.367_841_947_576_237, 0.275_087_462_576, -0.961_419_205_099];
    let r = [0.004, 0.002, 0.001].map(run);
    for i in 0..3 {
        let e = r.map(|r| r[i] - exact[i]);
        let extrapolated = (4.0 * r[2][i] - r[1][i]) / 3.0 - exact[i];
        println!(
            "pendulum {i}: errors {}, extrapolated {extrapolated:.2e}",
            list(&e)
        );
        for k in 0..2 {
            assert!((e[k] / e[k + 1] - 4.0).abs() < 0.2, "{i} {e:?}");
        }
        assert!(extrapolated.abs() < 1e-6, "{i} {extrapolated}");
    }
}

/// Accelerations of [`double_pendulum`] in absolute angles (first, second, their rates).
fn double_pendulum_law(x: &[f64; 4]) -> [f64; 4] {
    let [a, b, va, vb] = *x;
    let j = 0.02 / 12.0;
    let (c, s) = ((a - b).cos(), (a - b).sin());
    let (m11, m12, m22) = (2.0 + j, c, 1.0 + j);
    let (f1, f2) = (-s * vb * vb - 2.0 * G * a.sin(), s * va * va - G * b.sin());
    let det = m11 * m22 - m12 * m12;
    [
        va,
        vb,
        (m22 * f1 - m12 * f2) / det,
        (m11 * f2 - m12 * f1) / det,
    ]
}

#[test]
fn double_pendulum_is_second_order() {
    let (s, x0) = start(&double_pendulum(), &[FRAC_PI_2, 0.0], &[0.0, 0.0]);
    let exact = runge_kutta(
        |_, x| double_pendulum_law(x),
        [FRAC_PI_2, FRAC_PI_2, 0.0, 0.0],
        1.0,
        20_000,
    );
    let (mut angles, mut energy) = (vec![], vec![]);
    for h in [0.02, 0.01, 0.005, 0.0025] {
        let t = fall(&s, &x0, 1.0, h);
        let q = s.tree_coordinates(t.state(t.steps()));
        angles.push((q[0] - exact[0]).hypot(q[0] + q[1] - exact[1]));
        energy.push(
            balance(&s, &t, &mut s.work())
                .expect("read")
                .largest_error(),
        );
    }
    assert_second_order("double pendulum", &angles);
    assert_second_order("its energy", &energy);
}

/// Second order with intervals that alternate between 0.6 h and 1.4 h.
#[test]
fn uneven_intervals_are_second_order() {
    let (s, x0) = start(&double_pendulum(), &[FRAC_PI_2, 0.0], &[0.0, 0.0]);
    let exact = runge_kutta(
        |_, x| double_pendulum_law(x),
        [FRAC_PI_2, FRAC_PI_2, 0.0, 0.0],
        1.0,
        20_000,
    );
    let (mut angles, mut energy) = (vec![], vec![]);
    for n in [50, 100, 200, 400] {
        let h = 1.0 / n as f64;
        let intervals = (0..n)
            .map(|k| if k % 2 == 0 { 0.6 * h } else { 1.4 * h })
            .collect();
        let t = roll(&s, &x0, intervals, |_| vec![]).expect("solved");
        let q = s.tree_coordinates(t.state(t.steps()));
        angles.push((q[0] - exact[0]).hypot(q[0] + q[1] - exact[1]));
        energy.push(
            balance(&s, &t, &mut s.work())
                .expect("read")
                .largest_error(),
        );
    }
    assert_second_order("uneven intervals", &angles);
    assert_second_order("their energy", &energy);
}

/// Kinetic energy 1/2 M a'^2 and potential V of [`four_bar`] at the crank's angle `a` from upright.
fn four_bar_energies(a: f64) -> (f64, f64) {
    let [l1, l2, l3, l4] = FOUR_BAR;
    // the coupler's ends P = crank tip, Q = rocker tip: |Q - P| = l2, |Q - D| = l3
    let p = [l1 * a.sin(), l1 * a.cos()];
    let d = [l4 - p[0], -p[1]];
    let r2 = d[0] * d[0] + d[1] * d[1];
    let along = (l2 * l2 - l3 * l3 + r2) / (2.0 * r2);
    let height = (l2 * l2 / r2 - along * along).sqrt();
    let q = [
        p[0] + along * d[0] - height * d[1],
        p[1] + along * d[1] + height * d[0],
    ];
    // per unit a': P' = l1 (cos a, -sin a); Q' = w3 x (Q - D) and (Q' - P').(Q - P) = 0
    let dp = [l1 * a.cos(), -l1 * a.sin()];
    let (u, v) = ([q[0] - l4, q[1]], [q[0] - p[0], q[1] - p[1]]);
    let turned = [u[1], -u[0]];
    let w3 = (dp[0] * v[0] + dp[1] * v[1]) / (turned[0] * v[0] + turned[1] * v[1]);
    let dq = [w3 * turned[0], w3 * turned[1]];
    let w2 = ((dq[0] - dp[0]) * v[1] - (dq[1] - dp[1]) * v[0]) / (l2 * l2);
    let middle = [0.5 * (dp[0] + dq[0]), 0.5 * (dp[1] + dq[1])];
    // boxes of 1 kg/m, 0.05 m wide
    let j = |l: f64| l / 12.0 * (l * l + 0.0025);
    let m = (j(l1) + 0.25 * l1.powi(3))
        + (j(l3) + 0.25 * l3.powi(3)) * w3 * w3
        + j(l2) * w2 * w2
        + l2 * (middle[0] * middle[0] + middle[1] * middle[1]);
    let potential = G * (l1 * 0.5 * p[1] + l2 * 0.5 * (p[1] + q[1]) + l3 * 0.5 * q[1]);
    (m, potential)
}

#[test]
fn four_bar_is_second_order() {
    let law = |_: f64, x: &[f64; 2]| {
        let e = 1e-4;
        let central = |f: &dyn Fn(f64) -> f64| {
            (8.0 * (f(x[0] + e) - f(x[0] - e)) - (f(x[0] + 2.0 * e) - f(x[0] - 2.0 * e)))
                / (12.0 * e)
        };
        let (m, _) = four_bar_energies(x[0]);
        let (dm, dv) = (
            central(&|a| four_bar_energies(a).0),
            central(&|a| four_bar_energies(a).1),
        );
        [x[1], -(0.5 * dm * x[1] * x[1] + dv) / m]
    };
    let (a0, rate) = (0.3, 2.0);
    let exact = runge_kutta(law, [a0, rate], 1.0, 4000);
    // the tree is crank, rocker, coupler; the rocker leans right, the coupler is nearly level
    let guess = [a0, 0.3, 1.2];
    let builder = four_bar();
    let s = system(&builder, &guess);
    assert_eq!(s.mobility().degrees_of_freedom, 1);
    assert_eq!(s.mobility().redundant_rows, 3);
    let x0 = s
        .start(&guess, &[rate, 0.0, 0.0], &[true, false, false])
        .expect("closes");
    // the rates that were given do not close the loop: scale to the crank's
    let closed = s
        .mechanism()
        .tree_rates(&s.poses(&x0), &s.interval_velocities(&x0, 0.0));
    let scaled: Vec<f64> = closed.iter().map(|r| r * rate / closed[0]).collect();
    let q0 = s.tree_coordinates(&x0);
    let x0 = s
        .start(&q0, &scaled, &[true, false, false])
        .expect("closes");
    let energy0 = {
        let t = Trajectory::new(&s, vec![], &x0);
        balance(&s, &t, &mut s.work()).expect("read").energy(0)
    };
    let (m, v) = four_bar_energies(a0);
    assert!(
        (energy0 - (0.5 * m * rate * rate + v)).abs() < 1e-10,
        "{energy0} {}",
        0.5 * m * rate * rate + v
    );
    let (mut angle, mut energy) = (vec![], vec![]);
    for h in [0.02, 0.01, 0.005, 0.0025] {
        let t = fall(&s, &x0, 1.0, h);
        angle.push((s.coordinate(t.state(t.steps()), 0, 0) - exact[0]).abs());
        energy.push(
            balance(&s, &t, &mut s.work())
                .expect("read")
                .largest_error(),
        );
        let gap = (0..=t.steps())
            .map(|k| s.mechanism().violation(&s.poses(t.state(k))).0)
            .fold(0.0, f64::max);
        assert!(gap < 1e-11, "{gap:e}");
    }
    assert_second_order("four-bar", &angle);
    assert_second_order("its energy", &energy);
}

#[test]
fn driven_damped_ball_chain_is_second_order() {
    let q = [0.2, 0.5, -0.1, 0.3, -0.2, 0.1, 0.0, 0.4, 0.2];
    let (s, x0) = start(
        &ball_chain(),
        &q,
        &[0.5, -0.3, 0.8, 0.1, 0.4, -0.6, 0.3, 0.2, -0.5],
    );
    // ends at zero, as the last knot has no control
    let u = |t: f64| vec![2.0 * (TAU * t).sin(), 1.5 * (PI * t).sin()];
    let tip = Vec3::new(0.1, 0.15, -0.4);
    let run = |h: f64| {
        let t = roll(&s, &x0, even(1.0, h), u).expect("solved");
        let end = t.state(t.steps());
        (
            s.poses(end)[2].point(&tip),
            balance(&s, &t, &mut s.work()).expect("read"),
        )
    };
    let (fine, finer) = (run(1.0 / 800.0).0, run(1.0 / 1600.0).0);
    let exact = (finer * 4.0 - fine) / 3.0;
    let runs = [0.02, 0.01, 0.005].map(run);
    assert_second_order("ball chain", &runs.each_ref().map(|r| (r.0 - exact).norm()));
    assert_second_order(
        "its energy balance",
        &runs.each_ref().map(|r| r.1.largest_error()),
    );
    let b = &runs[2].1;
    let last = b.kinetic.len() - 1;
    println!(
        "work {:.3} J, dampers {:.3} J",
        b.actuators[last], b.dampers[last]
    );
    // the balance is not trivial
    assert!(b.dampers[last] < -0.1 && b.actuators[last].abs() > 0.1);
}

/// IFToMM A02 with two loops. The first tip starts at the top: with the angle `th` from the horizontal,
/// 3 th'' = -3.5 g cos th from th = pi/2, and of the two directions the one that ends at x > 0 is th' = SIGN rad/s.
#[test]
fn double_four_bar_passes_its_singular_positions() {
    let law = |_: f64, x: &[f64; 2]| [x[1], -3.5 / 3.0 * G * x[0].cos()];
    let tip = [0.328_458_111_5, 0.944_518_538_2];
    let reference = |sign: f64| {
        let [th, rate] = runge_kutta(law, [FRAC_PI_2, sign], 10.0, 100_000);
        [th.cos(), th.sin(), -rate * th.sin(), rate * th.cos(), th]
    };
    let sign = -1.0;
    let r = reference(sign);
    println!("reference {r:.10?}; the other way {:.6?}", reference(-sign));
    assert!((r[0] - tip[0]).abs() < 1e-8 && (r[1] - tip[1]).abs() < 1e-8);
    assert!((r[2] - 1.423_051_470).abs() < 1e-8 && (r[3] + 0.494_868_845).abs() < 1e-8);
    // the crank's coordinate is counted from upright, clockwise seen from -y: pi/2 - th
    let (q, turns) = cranks_at(2, 0.0);
    let rates: Vec<f64> = turns.iter().map(|t| -sign * t).collect();
    let (s, x0) = start(&cranks(2), &q, &rates);
    assert_eq!(s.mobility().degrees_of_freedom, 1);
    let mut errors = vec![];
    for (h, limit, energy_limit) in [(0.01, 2e-3, 0.1), (0.001, 1e-4, 1e-3)] {
        let t = fall(&s, &x0, 10.0, h);
        let b = balance(&s, &t, &mut s.work()).expect("read");
        assert!((b.energy(0) - 35.835).abs() < 1e-9, "{}", b.energy(0));
        let end = s.poses(t.state(t.steps()))[0].point(&Vec3::new(0.0, 0.0, 0.5));
        let error = (end.x - tip[0]).hypot(end.z - tip[1]);
        let winding = s.coordinate(t.state(t.steps()), 0, 0);
        let passes = (0..t.steps())
            .filter(|&k| s.poses(t.state(k))[0].x.z * s.poses(t.state(k + 1))[0].x.z < 0.0)
            .count();
        println!(
            "double four-bar h {h}: tip {error:.3e} m, energy {:.3e} J, passes {passes}, angle {winding:.6}",
            b.largest_error()
        );
        assert!(passes > 4);
        assert!((winding - (FRAC_PI_2 - r[4])).abs() < 0.01);
        assert!(error < limit, "h {h}: tip {error:e}");
        assert!(
            b.largest_error() < energy_limit,
            "h {h}: energy {:e}",
            b.largest_error()
        );
        // all cranks stay parallel: no branching
        for k in 0..=t.steps() {
            let p = s.poses(t.state(k));
            assert!(
                (p[1].x - p[0].x - Vec3::x()).norm() < 1e-6
                    && (p[2].x - p[0].x - Vec3::x() * 2.0).norm() < 1e-6,
                "{k}"
            );
        }
        errors.push(error);
    }
}

#[test]
fn damped_box_pendulum_follows_the_reference() {
    let mut builder = box_pendulum();
    builder.joints["hinge"] = builder.joints["hinge"].clone().damping(0.5);
    let (s, x0) = start(&builder, &[FRAC_PI_2], &[0.0]);
    let inertia = 1.01 / 12.0 + 0.25;
    let law = |_: f64, x: &[f64; 2]| [x[1], (-0.5 * G * x[0].sin() - 0.5 * x[1]) / inertia];
    let (mut angle, mut energy) = (vec![], vec![]);
    for h in [0.05, 0.025, 0.0125, 0.00625] {
        let t = fall(&s, &x0, 10.0, h);
        let mut worst = 0.0_f64;
        let (mut x, mut now) = ([FRAC_PI_2, 0.0], 0.0);
        for k in 0..=t.steps() {
            let at = t.knot(k).t;
            if k > 0 {
                x = runge_kutta(law, x, at - now, 20);
                now = at;
            }
            worst = worst.max((s.coordinate(t.state(k), 0, 0) - x[0]).abs());
        }
        angle.push(worst);
        let b = balance(&s, &t, &mut s.work()).expect("read");
        energy.push(b.largest_error());
        // nearly all of the 4.9 J is gone after 10 s
        assert!(b.dampers[t.steps()] < -4.8);
        assert!(b.dampers.windows(2).all(|w| w[1] <= w[0]));
    }
    assert!(angle[0] < 0.012 && energy[0] < 0.035);
    assert_second_order("damped pendulum", &angle);
    assert_second_order("its energy balance", &energy);
}

/// The rate read at the last knot of a rollout under a constant force, against the one read there when the rollout goes
/// on: the impulse of the second half of the last interval belongs to it.
#[test]
fn last_rate_is_that_of_the_motion() {
    let (s, x0) = start(&cart_pole(), &[0.0, 0.3], &[0.0, 0.0]);
    let rate = |seconds: f64| {
        let t = roll(&s, &x0, even(seconds, 0.01), |_| vec![3.0]).expect("solved");
        s.knot_velocities(&t.knot_point(&t.knot(100)), &mut s.work())
            .expect("read")[0]
            .0
            .x
    };
    let (last, inner) = (rate(1.0), rate(1.01));
    println!("last knot {last:.6} m/s, inner {inner:.6}");
    assert!((last - inner).abs() < 1e-6);
}

/// Over the top several times, against a spring that counts the turns.
#[test]
fn angles_unwind() {
    for direction in [1.0, -1.0] {
        let mut builder = box_pendulum();
        builder.joints["hinge"] = builder.joints["hinge"].clone().spring(0.3, 0.0);
        let (s, x0) = start(&builder, &[0.5], &[direction * 14.0]);
        let inertia = 1.01 / 12.0 + 0.25;
        let law = |_: f64, x: &[f64; 2]| [x[1], (-0.5 * G * x[0].sin() - 0.3 * x[0]) / inertia];
        let exact = runge_kutta(law, [0.5, direction * 14.0], 1.6, 20_000)[0];
        let mut errors = vec![];
        for h in [0.01, 0.005, 0.0025] {
            let t = fall(&s, &x0, 1.6, h);
            let angle: Vec<f64> = (0..=t.steps())
                .map(|k| s.coordinate(t.state(k), 0, 0))
                .collect();
            let jump = angle
                .windows(2)
                .map(|a| (a[1] - a[0]).abs())
                .fold(0.0, f64::max);
            assert!(jump < 20.0 * h, "{jump}");
            let largest = angle.iter().map(|a| a.abs()).fold(0.0, f64::max);
            println!(
                "winding {largest:.2}, end {:.5} ({exact:.5})",
                angle[t.steps()]
            );
            assert!(largest > 2.0 * TAU);
            errors.push((angle[t.steps()] - exact).abs());
        }
        assert_second_order("wound spring", &errors);
    }
}

/// A mass on a spring between point and ground swings at sqrt(k/m), and is unstable beyond h omega = 2.
#[test]
fn the_fastest_spring_is_named_with_its_frequency() {
    let m = MechanismBuilder::new()
        .body("mass", BodySpec::new(2.0).shape(Shape::Sphere(0.1)))
        .joint(
            "rail",
            JointSpec::new(JointKind::Prismatic, "mass")
                .axis([1.0, 0.0, 0.0])
                .spring(800.0, 0.0),
        );
    let s = system(&m, &[0.1]);
    let x = s.start(&[0.1], &[0.0], &[true]).expect("a tree");
    let (name, omega) = s.fastest_spring(&x).expect("a spring");
    assert_eq!(name, "joint `rail`");
    assert!((omega - 20.0).abs() < 1e-12, "{omega}");
    let largest = |h: f64| {
        let mut t = Trajectory::new(&s, vec![h; 400], &x);
        t.roll(&s, &mut s.work(), &mut RolloutStats::default())
            .expect("solved");
        (0..=400)
            .map(|k| s.coordinate(t.state(k), 0, 0).abs())
            .fold(0.0, f64::max)
    };
    assert!(largest(1.9 / omega) < 1.0);
    assert!(largest(2.1 / omega) > 1e3);
}
