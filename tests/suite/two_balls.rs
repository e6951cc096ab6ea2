//! One ball driven into another: gradients by the controls, through the blow.

use crate::problems::load;
use crate::statistics::hold;
use least_action::control::{Objective, Point};
use least_action::dynamics::{Observe, QuantityId};
use least_action::format::Model;
use least_action::optimize::{Solve, Status};

/// Force above which the balls touch, N: what the central path leaves of an open contact is far below, a blow far above.
const TOUCHES: f64 = 1e-3;

/// Objective, gradient by the controls, and at which steps the balls touch, under this push.
fn under(m: &Model, push: impl Fn(usize) -> f64) -> (f64, Vec<f64>, Vec<usize>) {
    let objective = Objective::new(&m.system, &m.problem).expect("fits");
    let mut w = objective.work();
    let at = Point {
        controls: (0..m.problem.intervals.len()).map(push).collect(),
        ..objective.guess()
    };
    let g = objective.value_and_gradient(&at, &mut w).expect("swept");
    let t = w.trajectory().clone();
    let force: [QuantityId; 1] = [m.recorded[0]];
    let touches = |k: &usize| {
        let mut value = [0.0];
        let seen = t.knot(*k);
        let seen = t.knot_point(&seen);
        let force = m.system.observe(&seen, &force, w.system(), &mut value);
        force.expect("observed");
        value[0] > TOUCHES
    };
    let steps = (0..t.steps()).filter(touches).collect();
    (g.objective, g.controls, steps)
}

/// Wherever the contact holds its pattern the gradient is that of differences; where it does not, the pushes between which
/// it changes are told, and there are some.
#[test]
fn gradients_go_through_the_blow() {
    let m = load("two_balls");
    let (e, steps) = (1e-5, m.problem.intervals.len());
    let (mut compared, mut last) = (0, vec![]);
    let mut changes = vec![];
    for i in 0..=40 {
        let push = 1.0 + 0.05 * f64::from(i);
        let (_, g, pattern) = under(&m, |_| push);
        if i > 0 && pattern != last {
            changes.push(format!(
                "{:.2} to {push:.2} N: {last:?} to {pattern:?}",
                push - 0.05
            ));
        }
        let largest = g.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        for k in (0..steps).step_by(7) {
            let moved = |by: f64| under(&m, |j| if j == k { push + by } else { push });
            let ((ahead, _, a), (behind, _, b)) = (moved(e), moved(-e));
            if a != pattern || b != pattern {
                changes.push(format!("at {push:.2} N by control {k}"));
                continue;
            }
            let difference = (ahead - behind) / (2.0 * e);
            compared += 1;
            assert!(
                (g[k] - difference).abs() < 1e-6 * largest,
                "control {k} under {push} N: {} {difference}",
                g[k]
            );
        }
        last = pattern;
    }
    println!("the contact changes from\n{}", changes.join("\n"));
    // the later the blow the fewer the pushes that share its knot
    assert!(
        compared > 300 && changes.len() > 5,
        "{compared} {changes:?}"
    );
}

/// The second ball is brought to its place by the blow alone.
#[test]
fn a_blow_is_found() {
    let m = load("two_balls");
    let s = Solve::new(&m.system, &m.problem).run().expect("solves");
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    hold("two_balls by ddp", &s, 1e-8);
}
