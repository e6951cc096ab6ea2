//! Every problem of `problems/` that has something to find, solved by both methods, with snapshots of the statistics.

use argmin::core::observers::Observe as Observer;
use least_action::control::Relation;
use least_action::dynamics::{Dynamics, Observe};
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{IterationState, Solution, Status, ddp, shooting};
use least_action::rollout::{RolloutStats, Trajectory};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct Silent;
impl Observer<IterationState> for Silent {}

fn load(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
        .with_extension("toml");
    format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem")
}

fn by_ddp(m: &Model, stop: bool) -> Solution {
    let stop = AtomicBool::new(stop);
    let options = m.options.ddp();
    ddp::solve(&m.system, &m.problem, options, Silent, &stop).expect("no argmin error")
}

fn by_shooting(m: &Model, stop: bool) -> Solution {
    let stop = AtomicBool::new(stop);
    let options = m.options.shooting();
    shooting::solve(&m.system, &m.problem, options, Silent, &stop).expect("no argmin error")
}

/// Verifies a solution by a simulation of its own: constraints, bounds, objective.
fn verified(m: &Model, solution: &Solution) {
    assert_eq!(solution.status, Status::Converged, "{}", solution.reason);
    let (system, problem) = (&m.system, &m.problem);
    let mut w = system.work();
    let p = &solution.trajectory.p;
    let x0 = problem.start(system, p, &mut w).expect("a start");
    let mut t = Trajectory::new(system, problem.intervals.clone(), &x0);
    t.u.copy_from_slice(&solution.trajectory.u);
    t.p.copy_from_slice(p);
    t.roll(system, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    for c in &problem.constraints {
        for k in (0..=t.steps()).filter(|k| c.when.holds(*k, t.steps())) {
            let mut value = [0.0];
            system
                .observe(&t.seen(&t.knot(k)), &[c.quantity], &mut w, &mut value)
                .expect("observed");
            let met = match c.relation {
                Relation::Equal => (value[0] - c.value).abs() <= 1e-6,
                Relation::Less => value[0] <= c.value + 1e-6,
                Relation::Greater => value[0] >= c.value - 1e-6,
            };
            assert!(met, "{c:?} at knot {k}: {value:?}");
        }
    }
    let bounds = t.u.iter().zip(problem.bounds.iter().cycle());
    let bounds = bounds.chain(t.p.iter().zip(&problem.parameter_bounds));
    for (v, (low, high)) in bounds {
        assert!((low - 1e-6..=high + 1e-6).contains(v), "{v}");
    }
    let mut evaluation = problem.evaluation();
    problem
        .evaluate(system, &t, &mut w, &mut evaluation)
        .expect("evaluated");
    assert!((evaluation.objective / solution.objective - 1.0).abs() < 1e-9);
}

/// Statistics of a solve, as far as they are the same on every machine.
fn record(s: &Solution) -> Value {
    json!({
        "status": s.status.name(),
        "objective": format!("{:.6e}", s.objective),
        "iterations": s.iterations,
        "step_evaluations": s.step_evaluations,
        "gradient_evaluations": s.gradient_evaluations,
        "parameters": s.trajectory.p.iter().map(|p| format!("{p:.4}")).collect::<Vec<_>>(),
    })
}

fn both(name: &str) -> Value {
    let m = load(name);
    let (a, b) = (by_ddp(&m, false), by_shooting(&m, false));
    verified(&m, &a);
    verified(&m, &b);
    json!({ "ddp": record(&a), "shooting": record(&b) })
}

#[test]
fn cartpole_swingup() {
    insta::assert_json_snapshot!(both("cartpole_swingup"));
}

#[test]
fn pendulum_swingup() {
    insta::assert_json_snapshot!(both("pendulum_swingup"));
}

#[test]
fn five_bar_reach() {
    insta::assert_json_snapshot!(both("five_bar_reach"));
}

#[test]
fn acrobot_swingup() {
    insta::assert_json_snapshot!(both("acrobot_swingup"));
}

#[test]
fn double_pendulum_swingup() {
    insta::assert_json_snapshot!(both("double_pendulum_swingup"));
}

#[test]
fn quadrotor_waypoints() {
    insta::assert_json_snapshot!(both("quadrotor_waypoints"));
}

#[test]
fn spatial_arm_reach() {
    insta::assert_json_snapshot!(both("spatial_arm_reach"));
}

#[test]
fn damper_tuning() {
    insta::assert_json_snapshot!(both("damper_tuning"));
}

/// An end point beyond the bars' reach is said to be infeasible.
#[test]
fn what_cannot_be_reached_is_infeasible() {
    let mut m = load("five_bar_reach");
    m.problem.constraints[1].value = 1.0;
    m.problem.constraints.truncate(2);
    for s in [by_ddp(&m, false), by_shooting(&m, false)] {
        assert_eq!(s.status, Status::Infeasible, "{}", s.reason);
        assert!(s.reason.contains("position of left_arm"), "{}", s.reason);
        assert!(s.violation > 0.3);
    }
}

/// Asked to stop, a solve keeps its best iterate.
#[test]
fn a_stopped_solve_is_interrupted() {
    let m = load("cartpole_swingup");
    for s in [by_ddp(&m, true), by_shooting(&m, true)] {
        assert_eq!(s.status, Status::Interrupted);
        assert_eq!(s.trajectory.steps(), m.problem.intervals.len());
    }
}
