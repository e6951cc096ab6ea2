//! Multiple shooting: gaps that a guess leaves, segments that are joined, what is told of a solve that was cut short.

use crate::methods::load;
use crate::resume::by_segments;
use least_action::dynamics::{Observe, Step};
use least_action::format::Model;
use least_action::optimize::{Checkpoint, Checkpoints, Solution, Solve, Status, ddp};
use least_action::rollout::{RolloutStats, Trajectory};
use std::num::NonZeroUsize;
use std::time::Duration;

fn in_segments(m: &Model, segments: usize) -> ddp::Options {
    ddp::Options {
        segments: NonZeroUsize::new(segments),
        ..m.options.multiple_shooting()
    }
}

fn solve(m: &Model, options: ddp::Options) -> Solution {
    let solve = Solve::new(&m.system, &m.problem).with_options(options);
    solve.run().expect("no argmin error")
}

/// The states follow from each other, and end where they are to.
fn holds(m: &Model, s: &Solution) {
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    let mut w = m.system.work();
    let mut t = Trajectory::new(
        &m.system,
        m.problem.intervals.clone(),
        s.trajectory.state(0),
    );
    t.u.copy_from_slice(&s.trajectory.u);
    let mut stats = RolloutStats::default();
    t.roll(&m.system, &mut w, &mut stats).expect("simulated");
    let ids: Vec<_> = m.problem.constraints.iter().map(|c| c.quantity).collect();
    let mut values = vec![0.0; ids.len()];
    let seen = t.knot_point(&t.knot(t.steps()));
    let observed = m.system.observe(&seen, &ids, &mut w, &mut values);
    observed.expect("observed");
    for (c, v) in m.problem.constraints.iter().zip(&values) {
        assert!((v - c.value).abs() < 1e-6, "{v} {}", c.value);
    }
}

/// Two poses in turns are a guess for the states, however many segments there are.
#[test]
fn gaps_of_a_guess_are_closed() {
    let mut m = load("double_pendulum_swingup").expect("a problem");
    let start = |q: &[f64], m: &Model| {
        let mut at = m.problem.clone();
        at.coordinates.copy_from_slice(q);
        let p = &m.problem.parameters;
        let x = at.start(&m.system, p, &mut m.system.work());
        x.expect("a start")
    };
    let poses = [start(&[0.3, 0.2], &m), start(&[0.1, -0.2], &m)];
    let knots = m.problem.intervals.len() + 1;
    m.problem.guess_states = (0..knots).flat_map(|k| poses[k % 2].clone()).collect();
    for segments in [1, 2, 5, 20, usize::MAX] {
        holds(&m, &solve(&m, in_segments(&m, segments)));
    }
}

/// A solve may go on in other segments than it began with.
#[test]
fn segments_change_on_the_way() {
    let m = load("cartpole_swingup").expect("a problem");
    let mut kept: Option<Checkpoint> = None;
    let save = |c: Checkpoint| {
        kept = Some(c);
        Ok(())
    };
    let s = by_segments(&m, 5, Checkpoints::new(None, Duration::MAX, save));
    assert_eq!(s.status, Status::MaxIterations);
    let kept = kept.expect("a checkpoint");
    assert!(!kept.point.states.is_empty(), "it has gaps");
    let on = Solve::new(&m.system, &m.problem)
        .with_options(in_segments(&m, 7))
        .with_checkpoint(Checkpoints::new(Some(kept), Duration::MAX, |_| Ok(())));
    holds(&m, &on.run().expect("no argmin error"));
}

/// What was reached when a limit came is simulated, and no worse than the guess.
#[test]
fn a_solve_that_was_cut_short_returns_what_it_reached() {
    let m = load("acrobot_swingup").expect("a problem");
    let cut = ddp::Options {
        max_iterations: 20,
        ..in_segments(&m, 20)
    };
    let s = solve(&m, cut);
    assert_eq!(s.status, Status::MaxIterations);
    let first = &s.history[0];
    assert!(s.violation < first.violation, "{}", s.violation);
    assert!(!s.reason.contains("gaps"), "{}", s.reason);
    let t = &s.trajectory;
    let (mut w, mut next) = (m.system.work(), t.clone());
    let mut stats = RolloutStats::default();
    next.roll(&m.system, &mut w, &mut stats).expect("simulated");
    let apart = next.x.iter().zip(&t.x).map(|(a, b)| (a - b).abs());
    assert!(apart.fold(0.0, f64::max) < 1e-9);
}
