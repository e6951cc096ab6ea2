//! Optimal control through contact: derivatives relaxed at first find what those of hard contact do not.

#[path = "common/touch.rs"]
mod touch;

use argmin::core::observers::Observe as Observer;
use least_action::control::{Constraint, Cost, Form, Problem, Relation, When};
use least_action::dynamics::Dynamics;
use least_action::optimize::ddp::{self, Options, Smoothing};
use least_action::optimize::{IterationState, Solution};
use least_action::rollout::{RolloutStats, Trajectory};
use nalgebra::DMatrix;
use std::sync::atomic::AtomicBool;
use touch::{Masses, Touch};

struct Silent;
impl Observer<IterationState> for Silent {}

fn solve(d: &Masses, p: &Problem, smoothing: Option<Smoothing>) -> Solution {
    let options = Options {
        smoothing,
        ..Options::default()
    };
    ddp::solve(d, p, options, Silent, &AtomicBool::new(false)).expect("no argmin error")
}

fn cost(quantity: usize, target: f64, weight: f64, when: When) -> Cost {
    Cost {
        quantity,
        target,
        weight,
        when,
        form: Form::Square,
    }
}

/// 1 kg on the floor, friction 0.1, to be pushed 1 m and left at rest.
fn block() -> (Masses, Problem) {
    let d = Masses {
        mass: vec![1.0],
        gravity: 0.0,
        drive: DMatrix::from_element(1, 1, 1.0),
        row: vec![1.0],
        touch: Touch::Friction(0.1 * 9.81),
    };
    let mut p = Problem::new(&d, vec![0.1; 10], vec![0.0]);
    p.rates = vec![0.0];
    p.costs = vec![
        cost(0, 1.0, 1.0, When::Running),
        cost(1, 0.0, 1.0, When::Running),
        cost(2, 0.0, 0.01, When::Running),
        cost(0, 1.0, 1.0, When::End),
        cost(1, 0.0, 1.0, When::End),
    ];
    (d, p)
}

/// A driven mass 0.2 m behind another, which is to be 1 m further after a second.
fn pusher() -> (Masses, Problem) {
    let d = Masses {
        mass: vec![1.0, 1.0],
        gravity: 0.0,
        drive: DMatrix::from_column_slice(2, 1, &[1.0, 0.0]),
        row: vec![-1.0, 1.0],
        touch: Touch::Contact(0.0),
    };
    let mut p = Problem::new(&d, vec![0.05; 20], vec![-0.2, 0.0]);
    p.rates = vec![0.0, 0.0];
    p.costs = vec![
        cost(4, 0.0, 0.01, When::Running),
        cost(1, 1.0, 10.0, When::End),
    ];
    (d, p)
}

/// A body on a massless spring-less leg with a foot of 0.2 kg that stands on the floor: both are to be 0.3 m higher after
/// half a second.
fn hopper() -> (Masses, Problem) {
    let d = Masses {
        mass: vec![1.0, 0.2],
        gravity: 9.81,
        drive: DMatrix::from_column_slice(2, 1, &[1.0, -1.0]),
        row: vec![0.0, 1.0],
        touch: Touch::Contact(0.0),
    };
    let mut p = Problem::new(&d, vec![0.02; 25], vec![0.5, 0.0]);
    p.rates = vec![0.0, 0.0];
    p.costs = vec![
        cost(4, 0.0, 1e-4, When::Running),
        cost(0, 0.8, 10.0, When::End),
        cost(1, 0.3, 10.0, When::End),
    ];
    (d, p)
}

/// Objective of controls on hard contact.
fn objective(d: &Masses, p: &Problem, u: &[f64]) -> f64 {
    let mut w = d.work();
    let x0 = p.start(d, &[], &mut w).expect("a start");
    let mut t = Trajectory::new(d, p.intervals.clone(), &x0);
    t.u.copy_from_slice(u);
    t.roll(d, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    let mut e = p.evaluation();
    p.evaluate(d, &t, &mut w, &mut e).expect("evaluated");
    e.objective
}

fn tell(name: &str, s: &Solution) {
    println!(
        "{name:<40} {:<14} {:.6} viol {:.1e} promise {:.1e} at {:.0e}: {} iterations, {} steps {}",
        s.status.name(),
        s.objective,
        s.violation,
        s.optimality,
        s.smoothing,
        s.iterations,
        s.step_evaluations,
        s.reason
    );
}

#[test]
#[ignore = "a study"]
fn study() {
    let verbose = std::env::var("V").is_ok();
    for (name, (d, mut p)) in [("block", block()), ("pusher", pusher()), ("hopper", hopper())] {
        for constrained in [false, true] {
            if constrained {
                for (q, v) in [
                    vec![(0, 1.0), (1, 0.0)],
                    vec![(1, 1.0)],
                    vec![(0, 0.8), (1, 0.3)],
                ][["block", "pusher", "hopper"].iter().position(|n| *n == name).unwrap()]
                .iter()
                .copied()
                {
                    p.constraints.push(Constraint {
                        quantity: q,
                        relation: Relation::Equal,
                        value: v,
                        when: When::End,
                    });
                }
            }
            tell(&format!("{name} {constrained} hard"), &solve(&d, &p, None));
            for start in [1.0, 1e-1, 1e-2, 1e-3, 1e-4] {
                for end in [1e-3, 1e-4, 1e-5, 1e-6, 1e-8] {
                    for factor in [0.1, 0.3, 0.5] {
                        if end > start {
                            continue;
                        }
                        let s = solve(&d, &p, Some(Smoothing { start, end, factor }));
                        tell(&format!("{name} {constrained} {start:.0e} {end:.0e} {factor}"), &s);
                        if verbose {
                            for i in &s.history {
                                println!("   {i:?}");
                            }
                            println!("{:.3?}", s.trajectory.u);
                        }
                    }
                }
            }
        }
    }
    let (d, p) = block();
    println!("{}", objective(&d, &p, &[0.0; 10]));
}
