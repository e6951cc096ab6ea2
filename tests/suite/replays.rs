//! Shipped plans, played back under their own convention by an independent integrator: a Runge-Kutta method of order 8 on the
//! equations of motion in joint coordinates; the mechanism gives the kinematics. The quadrotor's coordinates turn in space; its reference is a composition of order 6 at a
//! tenth of the time step. The plan is off by the error of its own time step, which falls with its square.

use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Controls, Mechanical, Substeps};
use least_action::mechanism::{Drive, Mechanism};
use least_action::optimize::Solve;
use least_action::rollout::{RolloutStats, Trajectory};
use least_action::spatial::Pose;
use nalgebra::{DMatrix, DVector};
use std::path::Path;

pub fn model(name: &str, controls: Controls, overrides: &Overrides) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name);
    let path = path.with_extension("toml");
    let text = std::fs::read_to_string(&path).expect("a shipped problem");
    let top = match controls {
        Controls::Held => "",
        Controls::Linear => "controls = \"linear\"\n",
    };
    format::parse(&format!("{top}{text}"), &path)
        .and_then(|d| d.build(overrides))
        .expect("a shipped problem")
}

/// The plan's control at a fraction of interval `k`.
fn control(plan: &Trajectory, k: usize, fraction: f64, controls: Controls) -> DVector<f64> {
    let next = match controls {
        Controls::Held => k,
        Controls::Linear => (k + 1).min(plan.steps() - 1),
    };
    let [a, b] = [k, next].map(|k| DVector::from_column_slice(plan.control(k)));
    &a + (b - &a) * fraction
}

/// Where the plan's controls lead with its intervals in parts.
fn played(m: &Model, plan: &Trajectory, parts: usize, controls: Controls) -> Vec<Pose> {
    let intervals = plan
        .intervals
        .iter()
        .flat_map(|h| vec![h / parts as f64; parts]);
    let mut t = Trajectory::new(&m.system, intervals.collect(), &m.x0);
    let parameters = t.p.len();
    t.p.copy_from_slice(&plan.p[..parameters]);
    let nu = plan.control(0).len();
    for (j, u) in t.u.chunks_exact_mut(nu).enumerate() {
        let fraction = (j % parts) as f64 / parts as f64;
        u.copy_from_slice(control(plan, j / parts, fraction, controls).as_slice());
    }
    let mut w = m.system.work();
    t.roll(&m.system, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    m.system.poses(t.state(t.steps()))
}

/// Accelerations `q''` in joint coordinates, if each joint has one coordinate. The velocities of the bodies are `N q'`, their mass
/// matrix is `M`, and `f` are weights and gyroscopic torques; `J q' = 0` keeps loops closed, with the multipliers `l`; `B u` are efforts
/// of actuators, and `D q'` of dampers:
///
/// ```text
/// N'(M (N q'' + dN/dt q') - f) + J'l = B u - D q',     J q'' + dJ/dt q' = 0
/// ```
fn accelerations(
    m: &Mechanism,
    (q, rates): (&DVector<f64>, &DVector<f64>),
    u: &DVector<f64>,
) -> DVector<f64> {
    assert!(m.springs.is_empty() && m.constraints.is_empty());
    /// Step of the central differences that give `dN/dt` and `dJ/dt`, s. A longer one loses by its square, a shorter one by rounding.
    const TIME: f64 = 1e-5;
    let at = |time: f64| {
        let poses = m.forward((q + rates * time).as_slice());
        let basis = m.tree_basis(&poses);
        let rows = m.loop_jacobian(&poses, &basis);
        (basis, rows)
    };
    let ((basis, rows), before, after) = (at(0.0), at(-TIME), at(TIME));
    let by_time = |a: &DMatrix<f64>, b: &DMatrix<f64>| (b - a) * rates / (2.0 * TIME);
    let velocities = &basis * rates;
    let mut mass = DMatrix::zeros(basis.nrows(), basis.nrows());
    let mut forces = DVector::zeros(basis.nrows());
    for (i, b) in m.bodies.iter().enumerate() {
        let (x, turn) = (6 * i, 6 * i + 3);
        mass.view_mut((x, x), (3, 3)).fill_diagonal(b.mass);
        mass.view_mut((turn, turn), (3, 3)).copy_from(&b.inertia);
        let w = velocities.fixed_rows::<3>(turn).into_owned();
        let gyroscopic = (b.inertia * w).cross(&w);
        forces.rows_mut(x, 3).copy_from(&(m.gravity * b.mass));
        forces.rows_mut(turn, 3).copy_from(&gyroscopic);
    }
    let mut efforts = basis.tr_mul(&(forces - &mass * by_time(&before.0, &after.0)));
    for (i, &(joint, direction)) in m.tree_ids().iter().enumerate() {
        efforts[i] -= m.joints[joint].directions[direction].damping * rates[i];
        for (a, u) in m.actuators.iter().zip(u) {
            let Drive::Joint {
                joint: j,
                direction: d,
            } = a.drive
            else {
                panic!("an actuator of a body")
            };
            if (j, d) == (joint, direction) {
                efforts[i] += a.gain * u;
            }
        }
    }
    let (n, loops) = (q.len(), rows.nrows());
    let mut left = DMatrix::zeros(n + loops, n + loops);
    let own = basis.tr_mul(&(mass * &basis));
    left.view_mut((0, 0), (n, n)).copy_from(&own);
    left.view_mut((n, 0), (loops, n)).copy_from(&rows);
    left.view_mut((0, n), (n, loops))
        .copy_from(&rows.transpose());
    let mut right = efforts.resize_vertically(n + loops, 0.0);
    let opening = by_time(&before.1, &after.1);
    right.rows_mut(n, loops).copy_from(&-opening);
    // loops in a plane have redundant rows, whose singular values are zero to rounding
    let all = left.svd(true, true).solve(&right, 1e-9).expect("factors");
    all.rows(0, n).into_owned()
}

/// A step of an explicit Runge-Kutta method of order 8: midpoint rules with 2, 4, 6 and 8 substeps, extrapolated (Hairer, Norsett and
/// Wanner, *Solving Ordinary Differential Equations I*, II.9).
fn advance(
    law: impl Fn(f64, &DVector<f64>) -> DVector<f64>,
    h: f64,
    x: &DVector<f64>,
) -> DVector<f64> {
    const SUBSTEPS: [i32; 4] = [2, 4, 6, 8];
    let weighted = |n: i32| {
        let part = h / f64::from(n);
        let (mut a, mut b) = (x.clone(), x + law(0.0, x) * part);
        for i in 1..n {
            let next = a + law(f64::from(i) * part, &b) * (2.0 * part);
            (a, b) = (b, next);
        }
        let others = SUBSTEPS.iter().filter(|m| **m != n);
        let weight: f64 = others
            .map(|m| f64::from(n * n) / f64::from(n * n - m * m))
            .product();
        b * weight
    };
    SUBSTEPS.into_iter().map(weighted).sum()
}

/// Where the plan's controls lead by the equations of motion. Each step is an interval, because controls have kinks at knots; two
/// steps for each change the end by less than 1e-8.
fn integrated(m: &Model, plan: &Trajectory, controls: Controls) -> Vec<Pose> {
    let (s, mechanism) = (&m.system, m.system.mechanism());
    let q = s.tree_coordinates(&m.x0);
    let rates = mechanism.tree_rates(&s.poses(&m.x0), &s.interval_velocities(&m.x0, 0.0));
    let n = q.len();
    let mut x = DVector::from_vec([q, rates].concat());
    for (k, h) in plan.intervals.iter().enumerate() {
        let law = |t: f64, x: &DVector<f64>| {
            let (q, rates) = (x.rows(0, n).into_owned(), x.rows(n, n).into_owned());
            let u = control(plan, k, t / h, controls);
            let rates_by_time = accelerations(mechanism, (&q, &rates), &u);
            DVector::from_iterator(2 * n, rates.iter().chain(&rates_by_time).copied())
        };
        x = advance(law, *h, &x);
    }
    mechanism.forward(&x.as_slice()[..n])
}

/// How far bodies are apart, m and rad.
fn apart(a: &[Pose], b: &[Pose]) -> f64 {
    let off = |(a, b): (&Pose, &Pose)| (a.x - b.x).norm().max(a.q.angle_to(&b.q));
    a.iter().zip(b).map(off).fold(0.0, f64::max)
}

/// Steps of an order, in one part.
fn plain(order: usize) -> Overrides {
    Overrides {
        order: Some(order),
        substeps: Some(Substeps::One),
        ..Overrides::default()
    }
}

fn solved(m: &Model) -> Trajectory {
    let options = m.options.ddp();
    let solve = Solve::new(&m.system, &m.problem).with_options(options);
    let solution = solve.run().expect("no argmin error");
    assert!(
        solution.status.is_solved(),
        "{}: {}",
        m.title,
        solution.reason
    );
    solution.trajectory
}

/// Checks a plan's error at its time step, and how it falls from a half to a quarter of it under the same controls.
fn check(
    name: &str,
    controls: Controls,
    own: &Overrides,
    reference: impl Fn(&Model, &Trajectory) -> Vec<Pose>,
) {
    let own = model(name, controls, own);
    let plan = solved(&own);
    let end = reference(&own, &plan);
    let [plan_off, coarse, fine] =
        [1, 2, 4].map(|parts| apart(&played(&own, &plan, parts, controls), &end));
    let order = own.system.choice().order();
    let (ratio, expected) = (coarse / fine, 2f64.powi(order as i32));
    println!("{name}: {plan_off:.2e} {coarse:.2e} {fine:.2e}, ratio {ratio:.2} for order {order}");
    let limit = 0.3_f64.min(1.5 * expected * coarse);
    assert!(
        plan_off < limit,
        "{name}: {plan_off:.1e}, limit {limit:.1e}"
    );
    assert!(
        (0.7..1.5).contains(&(ratio / expected)),
        "{name}: {coarse:.2e} {fine:.2e}, order {order}"
    );
}

#[test]
fn plans_with_held_controls_end_where_they_say() {
    for name in [
        "cartpole_swingup",
        "acrobot_swingup",
        "quadrotor_waypoints",
        "five_bar_reach",
        "spatial_arm_reach",
    ] {
        check(name, Controls::Held, &Overrides::default(), |m, plan| {
            if name == "quadrotor_waypoints" {
                let other = model(name, Controls::Held, &plain(6));
                return played(&other, plan, 10, Controls::Held);
            }
            integrated(m, plan, Controls::Held)
        });
    }
}

/// In one part of second order, as linear controls are, at time steps that are fine enough for that.
#[test]
fn plans_with_linear_controls_end_where_they_say() {
    for (name, time_step) in [
        ("pendulum_swingup", 0.005),
        ("pendulum_swingup", 0.004),
        ("cartpole_swingup", 0.025),
        ("acrobot_swingup", 0.02),
        ("double_pendulum_swingup", 0.01),
        ("five_bar_reach", 0.02),
        ("five_bar_reach", 0.01),
    ] {
        let own = Overrides {
            time_step: Some(time_step),
            ..plain(2)
        };
        check(name, Controls::Linear, &own, |m, plan| {
            integrated(m, plan, Controls::Linear)
        });
    }
}

#[test]
fn controls_do_not_jump_at_the_ends_of_a_plan() {
    let mut failed = vec![];
    for controls in [Controls::Held, Controls::Linear] {
        for (name, checked) in [
            ("pendulum_swingup", 1),
            ("cartpole_swingup", 1),
            ("acrobot_swingup", 1),
            ("five_bar_reach", 2),
            // its wrists are so light that within the first and the last step they take up the rates that are best
            ("spatial_arm_reach", 3),
        ] {
            let t = solved(&model(name, controls, &plain(2)));
            let n = t.steps();
            for i in 0..checked {
                let u = |k: usize| t.control(k)[i];
                let inner = (2..n - 2).map(|k| (u(k + 1) - 2.0 * u(k) + u(k - 1)).abs());
                let largest = inner.fold(0.0, f64::max);
                let size = (0..n).fold(0.0_f64, |m, k| m.max(u(k).abs()));
                // what is left of a linear extrapolation from inside; the first and the last control act over other parts of an
                // interval than those between, which shifts them along their slope
                for (end, a, b) in [(0, 1, 2), (n - 1, n - 2, n - 3)] {
                    let jump = (u(end) - 2.0 * u(a) + u(b)).abs();
                    let slope = (u(a) - u(b)).abs();
                    if jump >= 3.0 * largest + slope + 0.01 * size {
                        failed.push(format!(
                            "{name}, {controls:?}, control {i} at knot {end}: {jump:.2e}, {largest:.2e} inside"
                        ));
                    }
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
