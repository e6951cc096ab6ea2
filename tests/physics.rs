//! The integrator against closed forms, independent references and conservation laws.

mod common;

use common::*;
use least_action::dynamics::{Dynamics, StepFailure};
use least_action::integrator::Maximal;
use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder, Shape};
use least_action::rollout::{RolloutStats, Trajectory, balance, momentum};
use least_action::spatial::{Vec3, increment_scalar, momentum as discrete_momentum};
use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Times at which samples cross zero, by cubics through (value, rate) at both ends of an interval.
fn crossings(t: &[f64], value: &[f64], rate: &[f64]) -> Vec<f64> {
    let mut out = vec![];
    for k in 1..t.len() {
        if (value[k - 1] < 0.0) == (value[k] < 0.0) {
            continue;
        }
        let h = t[k] - t[k - 1];
        let (a, b, da, db) = (value[k - 1], value[k], h * rate[k - 1], h * rate[k]);
        let cubic = |s: f64| {
            let r = 1.0 - s;
            r * r * ((1.0 + 2.0 * s) * a + s * da) + s * s * ((1.0 + 2.0 * r) * b - r * db)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let mid = 0.5 * (low + high);
            if (cubic(mid) < 0.0) == (a < 0.0) {
                low = mid;
            } else {
                high = mid;
            }
        }
        out.push(t[k - 1] + h * low);
    }
    out
}

fn assert_second_order(what: &str, errors: &[f64]) {
    println!(
        "{what}: errors {}, slopes {:.3?}",
        list(errors),
        slopes(errors)
    );
    for s in slopes(errors) {
        assert!(
            (s - 2.0).abs() < 0.1,
            "{what}: slopes {:?} of {errors:?}",
            slopes(errors)
        );
    }
}

/// Knot times of a trajectory.
fn times(t: &Trajectory) -> Vec<f64> {
    (0..=t.steps()).map(|k| t.knot(k).t).collect()
}

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

#[test]
fn dzhanibekov_body_flips_on_time() {
    let m = MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("nut", BodySpec::new(1.0).inertia([1.0, 2.0, 3.0]).free());
    let (s, x0) = start(&m, &[0.0; 6], &[0.0, 0.0, 0.0, 1e-3, 1.0, 0.0]);
    let exact = [14.3657, 43.0971];
    let run = |h: f64| {
        let t = fall(&s, &x0, 50.0, h);
        let b = balance(&s, &t, &mut s.work()).expect("read");
        let w: Vec<Vec3> = b.velocities.iter().map(|v| v[0].1).collect();
        let value: Vec<f64> = w.iter().map(|w| w.y).collect();
        // Euler: 2 w2' = (3 - 1) w3 w1
        let rate: Vec<f64> = w.iter().map(|w| w.z * w.x).collect();
        let momenta: Vec<Vec3> = (0..=t.steps())
            .map(|k| momentum(s.mechanism(), &s.poses(t.state(k)), &b.velocities[k]).1)
            .collect();
        let drift = momenta
            .iter()
            .map(|l| (l - momenta[0]).norm())
            .fold(0.0, f64::max);
        (
            crossings(&times(&t), &value, &rate),
            b.largest_error(),
            drift,
        )
    };
    let runs = [0.08, 0.04, 0.02, 0.01].map(run);
    for (zero, energy, drift) in &runs {
        println!("nut: {zero:.5?}, energy {energy:.3e}, momentum {drift:.2e}");
        assert_eq!(zero.len(), 2);
        assert!(*drift < 1e-10);
        // the discrete body is integrable (Moser, Veselov): the energy of the read-out is kept, too
        assert!(*energy < 1e-10);
    }
    for (i, exact) in exact.into_iter().enumerate() {
        // the printed times are good to 5e-5 s
        let r: Vec<f64> = runs.iter().map(|r| r.0[i]).collect();
        let extrapolated = (4.0 * r[3] - r[2]) / 3.0;
        assert!((extrapolated - exact).abs() < 1e-4, "{extrapolated}");
        let e: Vec<f64> = r[..3].iter().map(|r| r - extrapolated).collect();
        assert_second_order("flip", &e);
    }
}

/// Largest change, over a rollout, of the linear and the angular momentum: of the read-out at the knots and of the
/// discrete momenta of the intervals.
fn momentum_drift(s: &Maximal, x0: &[f64], steps: usize) -> f64 {
    let t = fall(s, x0, 0.01 * steps as f64, 0.01);
    assert_eq!(t.steps(), steps);
    let (m, mut w) = (s.mechanism(), s.work());
    let mut start: Option<(Vec3, Vec3)> = None;
    let mut drift = 0.0_f64;
    for k in 0..=steps {
        let (at, x) = (t.knot(k), t.state(k));
        let poses = s.poses(x);
        let mut seen = vec![momentum(
            m,
            &poses,
            &s.knot_velocities(&at, x, t.control(k), &mut w)
                .expect("read"),
        )];
        if k > 0 {
            let interval = m
                .bodies
                .iter()
                .zip(&poses)
                .zip(s.interval_velocities(x))
                .fold(
                    (Vec3::zeros(), Vec3::zeros()),
                    |(p, l), ((b, pose), (v, w))| {
                        let h = at.h_prev;
                        let spin = discrete_momentum(&w, &b.inertia, -h, increment_scalar(&w, h));
                        (
                            p + v * b.mass,
                            l + pose.x.cross(&(v * b.mass)) + pose.r * spin,
                        )
                    },
                );
            seen.push(interval);
        }
        for (p, l) in seen {
            let (p0, l0) = *start.get_or_insert((p, l));
            drift = drift.max((p - p0).norm()).max((l - l0).norm());
        }
    }
    let (p0, l0) = start.expect("a knot");
    assert!(
        p0.norm() > 0.1 && l0.norm() > 0.1,
        "the test wants momentum"
    );
    drift
}

#[test]
fn floating_mechanisms_keep_their_momentum() {
    for seed in 0..16 {
        let mut s = Source::new(100 + seed);
        let mut kinds = vec![JointKind::ALL[seed as usize]];
        kinds.extend((0..3).map(|_| JointKind::ALL[s.below(16)]));
        let builder = floating_tree(seed, &kinds);
        let n = builder.build().expect("valid").tree_ids().len();
        let (system, x0) = start(&builder, &s.vector(n, 0.4), &s.vector(n, 0.5));
        let drift = momentum_drift(&system, &x0, 400);
        println!("{kinds:?}: {drift:.2e}");
        assert!(drift < 1e-10, "{kinds:?}: {drift:e}");
    }
    let builder = floating_loop();
    let m = builder.build().expect("valid");
    assert!(m.has_loops());
    let mut s = Source::new(77);
    let n = m.tree_ids().len();
    let q: Vec<f64> = m
        .tree_ids()
        .iter()
        .map(|&(j, _)| if m.joints[j].name == "b0" { 0.3 } else { 1.4 })
        .collect();
    let system = system(&builder, &q);
    let x0 = system
        .start(&q, &s.vector(n, 0.8), &vec![false; n])
        .expect("closes");
    let drift = momentum_drift(&system, &x0, 600);
    println!("loop: {drift:.2e}");
    assert!(drift < 1e-10, "{drift:e}");
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
        .tree_rates(&s.poses(&x0), &s.interval_velocities(&x0));
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
        s.knot_velocities(&t.knot(100), t.state(100), t.control(100), &mut s.work())
            .expect("read")[0]
            .0
            .x
    };
    let (last, inner) = (rate(1.0), rate(1.01));
    println!("last knot {last:.6} m/s, inner {inner:.6}");
    assert!((last - inner).abs() < 1e-6);
}

#[test]
fn energy_has_no_trend() {
    let (s, x0) = start(&double_pendulum(), &[FRAC_PI_2, 0.0], &[0.0, 0.0]);
    let t = fall(&s, &x0, 100.0, 0.01);
    let b = balance(&s, &t, &mut s.work()).expect("read");
    let error: Vec<f64> = (0..=t.steps()).map(|k| b.error(k)).collect();
    let fifth = error.len() / 5;
    let mean = |e: &[f64]| e.iter().sum::<f64>() / e.len() as f64;
    let spread = |e: &[f64]| e.iter().map(|e| e.abs()).fold(0.0, f64::max);
    let (first, last) = (&error[..fifth], &error[error.len() - fifth..]);
    println!(
        "energy: mean {:.2e}, {:.2e}, largest {:.3e}, {:.3e}, all {:.3e}",
        mean(first),
        mean(last),
        spread(first),
        spread(last),
        spread(&error)
    );
    // 0.12 J of a pendulum that swings through 39 J
    assert!(spread(&error) < 0.2);
    assert!((mean(first) - mean(last)).abs() < 0.01);
    assert!(spread(last) < 2.0 * spread(first));
}

/// A top of 1 kg on a ball joint `l` from its centre of mass, tilted, started in steady precession. Checks what is kept
/// and returns the errors of the precession's rate as h halves, the exact rate and the fast top's, m g l / (J3 w3).
fn top(l: f64) -> ([f64; 3], f64, f64) {
    let (j1, j3, tilt, spin) = (0.01, 0.004, 0.4_f64, 200.0);
    let builder = MechanismBuilder::new()
        .body("top", BodySpec::new(1.0).inertia([j1, j1, j3]))
        .joint(
            "point",
            JointSpec::new(JointKind::Spherical, "top").anchors([0.0; 3], [0.0, 0.0, -l]),
        );
    // about the point: j3 spin W - (j1 + m l^2) W^2 cos(tilt) = m g l, with the body-axis rate `spin` kept
    let (a, b, c) = ((j1 + l * l) * tilt.cos(), j3 * spin, G * l);
    let steady = (b - (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
    let axis = Vec3::new(tilt.sin(), 0.0, tilt.cos());
    let omega = Vec3::z() * steady + axis * (spin - steady * tilt.cos());
    let (s, x0) = start(&builder, &[0.0, tilt, 0.0], omega.as_slice());
    let errors = [0.002, 0.001, 0.0005].map(|h| {
        let t = fall(&s, &x0, 2.0, h);
        let b = balance(&s, &t, &mut s.work()).expect("read");
        let vertical0 = momentum(s.mechanism(), &s.poses(&x0), &b.velocities[0]).1.z;
        let (mut azimuth, mut spin_drift, mut vertical_drift, mut nod) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        for k in 0..=t.steps() {
            let poses = s.poses(t.state(k));
            let at = poses[0].x;
            let now = at.y.atan2(at.x);
            azimuth = now + TAU * ((azimuth - now) / TAU).round();
            let vertical = momentum(s.mechanism(), &poses, &b.velocities[k]).1.z;
            spin_drift = spin_drift.max((b.velocities[k][0].1.z - spin).abs());
            vertical_drift = vertical_drift.max((vertical - vertical0).abs());
            nod = nod.max((at.z / l - tilt.cos()).abs());
        }
        let rate = azimuth / 2.0;
        println!("top {l} m, h {h}: rate {rate:.6} ({steady:.6}), drift of spin {spin_drift:.1e}, of vertical momentum {vertical_drift:.1e}, nods {nod:.1e}");
        assert!(spin_drift < 1e-10 * spin, "{spin_drift:e}");
        assert!(vertical_drift < 1e-10, "{vertical_drift:e}");
        assert!(nod < 100.0 * h * h);
        (rate - steady).abs()
    });
    (errors, steady, c / b)
}

#[test]
fn spinning_top_precesses() {
    let (errors, ..) = top(0.2);
    assert_second_order("precession", &errors);
    // a faster top, by the ratio of spin energy to the weight's: its slow precession is m g l / (J3 w3) to 1 %
    let (errors, steady, slow) = top(0.05);
    assert!((steady / slow - 1.0).abs() < 0.01);
    assert!(errors.iter().all(|e| *e < 1e-4 * steady));
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

#[test]
fn hopeless_steps_fail_by_name() {
    let failure =
        |builder: &MechanismBuilder, q: &[f64], rates: &[f64], intervals: Vec<f64>, u: f64| {
            let (s, x0) = start(builder, q, rates);
            let nu = s.dims().nu;
            roll(&s, &x0, intervals, |_| vec![u; nu]).expect_err("no solution")
        };
    let free = MechanismBuilder::new()
        .body("other", BodySpec::new(1.0).shape(Shape::Sphere(0.1)).free())
        .body(
            "fast",
            BodySpec::new(1.0).shape(Shape::Box([0.3, 0.2, 0.1])).free(),
        );
    let spin = |w: f64| [[0.0; 9].as_slice(), &[0.0, 0.0, w]].concat();
    // the free body turns at 3 rad/s; the tenth interval is too long for that
    let mut intervals = vec![0.01; 20];
    intervals[9] = 0.6;
    let e = failure(&free, &[0.0; 12], &spin(3.0), intervals, 0.0);
    println!("{e}");
    assert_eq!(e.failure, StepFailure::Domain);
    assert!(e.element.contains("fast"), "{e}");
    assert!((e.time - 0.09).abs() < 1e-12, "{e}");
    // too fast from the start
    for w in [150.0, 1e3, 1e6] {
        let e = failure(&free, &[0.0; 12], &spin(w), vec![0.01; 5], 0.0);
        println!("{e}");
        assert_eq!(e.failure, StepFailure::Domain, "{e}");
        assert!(e.element.contains("fast"), "{e}");
    }
    // and on a joint
    for w in [200.0, 1e4] {
        let e = failure(&box_pendulum(), &[0.0], &[w], vec![0.01; 5], 0.0);
        println!("{e}");
        assert_eq!(e.failure, StepFailure::Domain, "{e}");
        assert!(e.element.contains("bob"), "{e}");
    }
    let (s, x0) = start(&box_pendulum(), &[0.0], &[10.0]);
    let e = roll(&s, &x0, vec![0.01, 0.01, 0.5], |_| vec![]).expect_err("too long");
    println!("{e}");
    assert_eq!(e.failure, StepFailure::Domain, "{e}");
    assert!(e.element.contains("bob"), "{e}");
    for u in [f64::NAN, f64::INFINITY] {
        let e = failure(&cart_pole(), &[0.0; 2], &[0.0; 2], vec![0.01; 5], u);
        assert_eq!(e.failure, StepFailure::NotFinite, "{e}");
    }
    // a state that is not finite, and intervals that are not
    let (s, mut x0) = start(&cart_pole(), &[0.0; 2], &[0.0; 2]);
    let keep = x0.clone();
    x0[15] = f64::NAN;
    assert_eq!(
        roll(&s, &x0, vec![0.01], |_| vec![0.0])
            .expect_err("NaN")
            .failure,
        StepFailure::NotFinite
    );
    for h in [f64::NAN, f64::INFINITY] {
        assert!(roll(&s, &keep, vec![0.01, h], |_| vec![1.0]).is_err());
    }
    // an absurd control is refused, too
    assert!(roll(&s, &keep, vec![0.01; 50], |_| vec![1e9]).is_err());
}

#[test]
fn failed_rollout_keeps_the_steps_before() {
    let (s, x0) = start(&box_pendulum(), &[1.0], &[0.0]);
    let mut intervals = vec![0.01; 30];
    intervals[20] = 50.0;
    let mut t = Trajectory::new(&s, intervals, &x0);
    let mut stats = Default::default();
    let e = t.roll(&s, &mut s.work(), &mut stats).expect_err("too long");
    println!("{e}");
    assert_eq!(stats.steps, 20);
    t.truncate(stats.steps);
    let good = fall(&s, &x0, 0.2, 0.01);
    assert_eq!(t.x, good.x);
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
