//! Random boxes, chains and walkers dropped on tilted ground.

use crate::drops::{Kind, Outcome, Setup, Summary, outcomes};
use least_action::dynamics::StepFailure;
use least_action::integrator::Cone;

/// Every failure has a name, nothing penetrates, and few drops are not solved throughout.
fn hold(outcomes: &[Outcome], unsolved: usize) {
    let s = Summary::of(outcomes.iter());
    println!("        {}\nall     {s}", Summary::HEAD);
    for (seed, o) in outcomes.iter().enumerate() {
        assert!(o.end.iter().all(|x| x.is_finite()), "drop {seed}");
        if let Some(e) = &o.failure {
            let named = [
                StepFailure::Domain,
                StepFailure::NotConverged,
                StepFailure::Singular,
                StepFailure::Budget,
            ];
            assert!(named.contains(&e.failure) && !e.element.is_empty(), "{e}");
        }
    }
    assert!(s.lowest > -1e-9, "{:e}", s.lowest);
    assert!(s.quantile(0.5) <= 9 && s.quantile(0.99) <= 20, "{s}");
    for kind in [Kind::Box, Kind::Chain, Kind::Walker] {
        let s = Summary::of(outcomes.iter().filter(|o| o.kind == kind));
        println!("{:6}  {s}", format!("{kind:?}"));
    }
    assert!(s.unsolved <= unsolved, "{} of {}", s.unsolved, s.drops);
}

/// What goes on as in the step before takes few iterations.
fn hold_warm(outcomes: &[Outcome]) {
    for kind in [Kind::Box, Kind::Chain, Kind::Walker] {
        let own = outcomes.iter().filter(|o| o.warm && o.kind == kind);
        assert!(Summary::of(own).quantile(0.5) <= 3, "{kind:?}");
    }
}

#[test]
fn random_drops_are_solved() {
    // a small box is to turn too far in one step (seed 245, h = 0.04 s): at 0.9 h it turns by 1.37 rad of the 1.41 there are
    let all = outcomes(0..300, &BODIES, 0.0);
    hold(&all, 1);
    hold_warm(&all);
    let divided = Setup {
        divided: true,
        ..BODIES
    };
    hold(&outcomes(0..300, &divided, 0.0), 0);
}

/// In maximal coordinates.
const BODIES: Setup = Setup {
    cone: Cone::SecondOrder,
    undamped: false,
    divided: false,
    integrator: Some("maximal"),
};

/// The same in joint coordinates, in which each contact adds to its body within the recursion.
const JOINTS: Setup = Setup {
    cone: Cone::SecondOrder,
    undamped: false,
    divided: false,
    integrator: Some("minimal"),
};

#[test]
fn random_drops_are_solved_in_joint_coordinates() {
    let all = outcomes(0..300, &JOINTS, 0.0);
    hold(&all, 1);
    hold_warm(&all);
    // two of 100 in maximal coordinates, too
    hold(&outcomes(0..100, &JOINTS, 14.0), 2);
    let pyramid = Setup {
        cone: Cone::Linearized(4),
        ..JOINTS
    };
    hold(&outcomes(0..100, &pyramid, 0.0), 1);
    let undamped = Setup {
        undamped: true,
        divided: true,
        ..JOINTS
    };
    hold(&outcomes(0..100, &undamped, 0.0), 0);
}

/// As from a height of 10 m: corners that hold a body more than once, and friction, meet large impulses.
fn fast_impacts(drops: u64, unsolved: usize) {
    let fast = outcomes(0..drops, &BODIES, 14.0);
    hold(&fast, unsolved);
    let boxes = fast.iter().filter(|o| o.kind == Kind::Box);
    assert_eq!(Summary::of(boxes).unsolved, 0);
}

fn with_linearized_cones(drops: u64, unsolved: usize) {
    for directions in [4, 8] {
        let setup = Setup {
            cone: Cone::Linearized(directions),
            ..BODIES
        };
        hold(&outcomes(0..drops, &setup, 0.0), unsolved);
    }
}

/// Links that nothing slows whip faster than the longer time steps resolve: these are divided.
fn undamped(drops: u64, unsolved: usize) {
    let setup = Setup {
        undamped: true,
        divided: true,
        ..BODIES
    };
    hold(&outcomes(0..drops, &setup, 0.0), unsolved);
}

#[test]
fn undamped_drops_are_solved_in_parts() {
    undamped(200, 0);
}

#[test]
fn fast_impacts_are_solved() {
    // joints that whip by more than the time step resolves, after impacts at 14 m/s
    fast_impacts(100, 2);
}

/// `cargo test --release --test suite -- --ignored --nocapture`, some minutes.
#[test]
#[ignore = "long"]
fn ten_thousand_random_drops_are_solved() {
    // 99.8 %
    hold(&outcomes(0..10_000, &BODIES, 0.0), 20);
    hold(&outcomes(0..10_000, &JOINTS, 0.0), 20);
    let divided = Setup {
        divided: true,
        ..BODIES
    };
    hold(&outcomes(0..10_000, &divided, 0.0), 0);
    undamped(3000, 6);
    fast_impacts(300, 5);
    // a box turns too far in one step (seed 245, h = 0.04 s)
    with_linearized_cones(300, 1);
}

#[test]
fn drops_are_the_same_on_any_number_of_threads() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        let all = pool.install(|| outcomes(0..16, &BODIES, 0.0));
        let bits = |o: &Outcome| o.end.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        all.iter().map(bits).collect::<Vec<_>>()
    };
    let alone = run(1);
    assert!(alone == run(2) && alone == run(5));
}

#[test]
fn random_drops_with_linearized_cones_are_solved() {
    with_linearized_cones(100, 0);
}
