//! Shipped plans, played back under their own convention by another integrator: steps of order 6 at a tenth of the time step for
//! held controls, steps that are twenty times as fine for controls that are linear between knots. The plan is off by the error of its
//! own time step, which falls with its square.

use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Controls, Mechanical, Substeps};
use least_action::optimize::Solve;
use least_action::rollout::{RolloutStats, Trajectory};
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

/// The plan's controls in parts of its intervals.
fn played(m: &Model, plan: &Trajectory, parts: usize, controls: Controls) -> Trajectory {
    let intervals = plan
        .intervals
        .iter()
        .flat_map(|h| vec![h / parts as f64; parts]);
    let mut t = Trajectory::new(&m.system, intervals.collect(), &m.x0);
    let parameters = t.p.len();
    t.p.copy_from_slice(&plan.p[..parameters]);
    let nu = plan.control(0).len();
    for (j, u) in t.u.chunks_exact_mut(nu).enumerate() {
        let (k, within) = (j / parts, (j % parts) as f64 / parts as f64);
        let next = plan.control((k + 1).min(plan.steps() - 1));
        for (u, (a, b)) in u.iter_mut().zip(plan.control(k).iter().zip(next)) {
            *u = match controls {
                Controls::Held => *a,
                Controls::Linear => a + within * (b - a),
            };
        }
    }
    let mut w = m.system.work();
    t.roll(&m.system, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    t
}

/// How far two trajectories of systems of the same mechanism end from each other, m and rad.
fn apart(a: (&Model, &Trajectory), b: (&Model, &Trajectory)) -> f64 {
    let [a, b] = [a, b].map(|(m, t)| m.system.poses(t.state(t.steps())));
    let off = |(a, b): (&least_action::spatial::Pose, &least_action::spatial::Pose)| {
        (a.x - b.x).norm().max(a.q.angle_to(&b.q))
    };
    a.iter().zip(&b).map(off).fold(0.0, f64::max)
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

/// Holds a plan's error at its time step, and at a half and a quarter of it under the same controls, against a reference.
fn check(name: &str, controls: Controls, own: &Overrides, reference: (usize, usize)) {
    let own = model(name, controls, own);
    let (order, parts) = reference;
    let other = model(name, controls, &plain(order));
    let plan = solved(&own);
    let reference = played(&other, &plan, parts, controls);
    let [plan_off, coarse, fine] = [1, 2, 4].map(|parts| {
        let t = played(&own, &plan, parts, controls);
        apart((&own, &t), (&other, &reference))
    });
    let order = own.system.choice().order();
    let (ratio, expected) = (coarse / fine, 2f64.powi(order as i32));
    println!("{name}: {plan_off:.2e} {coarse:.2e} {fine:.2e}, ratio {ratio:.2} for order {order}");
    assert!(plan_off < 0.3, "{name}: {plan_off:.1e}");
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
        check(name, Controls::Held, &Overrides::default(), (6, 10));
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
        check(name, Controls::Linear, &own, (2, 40));
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
