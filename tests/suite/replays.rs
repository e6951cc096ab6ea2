//! Shipped plans, played back under their own convention by another integrator: steps of order 6 at a tenth of the time step for
//! held controls, steps that are twenty times as fine for controls that are linear between knots. The plan is off by the error of its
//! own time step, which falls with its square.

use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Controls, Mechanical, Substeps};
use least_action::optimize::Solve;
use least_action::rollout::{RolloutStats, Trajectory};
use std::path::Path;

fn model(name: &str, controls: Controls, overrides: &Overrides) -> Model {
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
    t.p.copy_from_slice(&plan.p[..t.p.len()]);
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
    t.roll(
        &m.system,
        &mut m.system.work(),
        &mut RolloutStats::default(),
    )
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

/// The order of a plan's steps, and its error at its time step and at half of it, under the same controls.
fn errors(name: &str, controls: Controls) -> (usize, [f64; 2]) {
    let (own, parts, order) = match controls {
        Controls::Held => (Overrides::default(), 10, 6),
        // one part of second order: linear controls take no others
        Controls::Linear => (plain(2), 40, 2),
    };
    let own = model(name, controls, &own);
    let other = model(name, controls, &plain(order));
    let plan = solved(&own);
    let reference = played(&other, &plan, parts, controls);
    let errors = [1, 2].map(|parts| {
        let t = played(&own, &plan, parts, controls);
        apart((&own, &t), (&other, &reference))
    });
    (own.system.choice().order(), errors)
}

const PLANS: [&str; 5] = [
    "pendulum_swingup",
    "cartpole_swingup",
    "quadrotor_waypoints",
    "five_bar_reach",
    "spatial_arm_reach",
];

fn check(controls: Controls) {
    for name in PLANS {
        let (order, [coarse, fine]) = errors(name, controls);
        let (ratio, expected) = (coarse / fine, 2f64.powi(order as i32));
        println!("{name}: {coarse:.2e} {fine:.2e}, ratio {ratio:.2} for order {order}");
        assert!(coarse < 0.2, "{name}: {coarse:.1e}");
        assert!(
            (0.7..1.5).contains(&(ratio / expected)),
            "{name}: {coarse:.2e} {fine:.2e}, order {order}"
        );
    }
}

#[test]
fn plans_with_held_controls_end_where_they_say() {
    check(Controls::Held);
}

#[test]
fn plans_with_linear_controls_end_where_they_say() {
    check(Controls::Linear);
}

#[test]
fn controls_do_not_jump_at_the_ends_of_a_plan() {
    for controls in [Controls::Held, Controls::Linear] {
        for name in ["pendulum_swingup", "five_bar_reach", "spatial_arm_reach"] {
            let t = solved(&model(name, controls, &plain(2)));
            let n = t.steps();
            for i in 0..t.control(0).len() {
                let u = |k: usize| t.control(k)[i];
                let inner = (1..n - 2).map(|k| (u(k + 1) - 2.0 * u(k) + u(k - 1)).abs());
                let largest = inner.fold(0.0, f64::max);
                let size = (0..n).fold(0.0_f64, |m, k| m.max(u(k).abs()));
                // what is left of a linear extrapolation from inside
                for (end, a, b) in [(0, 1, 2), (n - 1, n - 2, n - 3)] {
                    let jump = (u(end) - 2.0 * u(a) + u(b)).abs();
                    assert!(
                        jump < 3.0 * largest + 0.02 * size,
                        "{name}, {controls:?}, control {i} at knot {end}: {jump:.2e}, {largest:.2e} inside"
                    );
                }
            }
        }
    }
}
