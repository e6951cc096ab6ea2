//! The shipped problems are solved, and at the cost in iterations that is on record: a silent slowdown fails here.

use least_action::dynamics::{Dynamics, Observe};
use least_action::format::{self, Model, Overrides};
use least_action::optimize::Status;
use least_action::optimize::shooting::{self, ShootingState, Solution};
use least_action::rollout::{RolloutStats, Trajectory};
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct Silent;
impl argmin::core::observers::Observe<ShootingState> for Silent {}

fn load(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name);
    format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem")
}

/// Solves and verifies the solution by a simulation of its own: constraints, bounds, objective.
fn solved(name: &str) -> Solution {
    let model = load(name);
    let (system, problem) = (&model.system, &model.problem);
    let stop = AtomicBool::new(false);
    let solution = shooting::solve(system, problem, model.options.shooting(), Silent, &stop)
        .expect("no argmin error");
    assert_eq!(solution.status, Status::Converged, "{}", solution.reason);
    let mut t = Trajectory::new(system, problem.intervals.clone(), &model.x0);
    t.u.copy_from_slice(&solution.trajectory.u);
    let mut w = system.work();
    t.roll(system, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    let n = t.steps();
    for c in &problem.constraints {
        let mut value = [0.0];
        system
            .observe(&t.seen(&t.knot(n)), &[c.quantity], &mut w, &mut value)
            .expect("observed");
        assert!((value[0] - c.value).abs() < 1e-6, "{name}: {value:?}");
    }
    for (u, (low, high)) in t.u.iter().zip(problem.bounds.iter().cycle()) {
        assert!((low - 1e-6..=high + 1e-6).contains(u), "{name}: {u}");
    }
    let mut evaluation = problem.evaluation();
    problem
        .evaluate(system, &t, &mut w, &mut evaluation)
        .expect("evaluated");
    assert!((evaluation.objective / solution.objective - 1.0).abs() < 1e-9);
    solution
}

/// What is kept on record.
fn record(s: &Solution) -> serde_json::Value {
    serde_json::json!({
        "objective": format!("{:.4e}", s.objective),
        "iterations": s.iterations,
        "step_evaluations": s.step_evaluations,
        "gradient_evaluations": s.gradient_evaluations,
    })
}

#[test]
fn cartpole_swingup() {
    let s = solved("cartpole_swingup.toml");
    // ALTRO reports 1.539 for its own discretization
    assert!((s.objective - 1.45056).abs() < 1e-5, "{}", s.objective);
    insta::assert_json_snapshot!(record(&s));
}

#[test]
fn pendulum_swingup() {
    insta::assert_json_snapshot!(record(&solved("pendulum_swingup.toml")));
}

#[test]
fn five_bar_reach() {
    insta::assert_json_snapshot!(record(&solved("five_bar_reach.toml")));
}

/// An end point beyond the bars' reach is said to be infeasible.
#[test]
fn what_cannot_be_reached_is_infeasible() {
    let mut model = load("five_bar_reach.toml");
    model.problem.constraints[1].value = 1.0;
    model.problem.constraints.truncate(2);
    let stop = AtomicBool::new(false);
    let s = shooting::solve(
        &model.system,
        &model.problem,
        model.options.shooting(),
        Silent,
        &stop,
    )
    .expect("no argmin error");
    assert_eq!(s.status, Status::Infeasible, "{}", s.reason);
    assert!(s.reason.contains("position of left_arm"), "{}", s.reason);
    assert!(s.violation > 0.3);
}

/// Asked to stop, a solve keeps its best iterate.
#[test]
fn a_stopped_solve_is_interrupted() {
    let model = load("cartpole_swingup.toml");
    let stop = AtomicBool::new(true);
    let s = shooting::solve(
        &model.system,
        &model.problem,
        model.options.shooting(),
        Silent,
        &stop,
    )
    .expect("no argmin error");
    assert_eq!(s.status, Status::Interrupted);
    assert_eq!(s.trajectory.steps(), model.problem.intervals.len());
}
