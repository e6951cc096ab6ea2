//! Inputs at the edge of what is legal: nothing panics, nothing hangs.

use crate::common::*;
use crate::cranks::{cranks, cranks_at};
use least_action::control::{Cost, Problem, When};
use least_action::dynamics::{Charts, Frame, Knot, QuantityId, Step, StepFailure};
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::Quantity;
use least_action::mechanism::{
    ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, Shape,
};
use least_action::optimize::{Iteration, Solve, Status, shooting};
use least_action::rollout::{RolloutStats, Trajectory, balance};
use least_action::spatial::Vec3;

/// A body held by two joints of a kind, pushed along x.
fn held_twice(kind: JointKind) -> MechanismBuilder {
    let joint = |x: f64| {
        JointSpec::new(kind, "plate")
            .axis(Y)
            .anchors([x, 0.3, 0.7], [x, 0.3, 0.7])
    };
    MechanismBuilder::new()
        .body(
            "plate",
            BodySpec::new(1.0).shape(Shape::Box([0.4, 0.2, 0.1])),
        )
        .joint("left", joint(-0.2))
        .joint("right", joint(0.2))
        .actuator(
            "push",
            ActuatorSpec::wrench("plate", [1.0, 0.0, 0.0], Default::default(), [0.0; 3]),
        )
}

#[test]
fn a_first_step_that_fails_leaves_a_start_to_read() {
    let (s, x0) = start(&cart_pole(), &[0.0; 2], &[0.0, 1e6]);
    let mut t = Trajectory::new(&s, vec![0.05; 3], &x0);
    let mut stats = RolloutStats::default();
    t.roll(&s, &mut s.work(), &mut stats).expect_err("too fast");
    t.truncate(stats.steps);
    assert_eq!((t.steps(), t.control(0).len()), (0, 1));
    let b = balance(&s, &t, &mut s.work()).expect("read");
    assert!(b.energy(0).is_finite());
}

#[test]
fn mechanisms_that_cannot_move_are_solved() {
    for (kind, q, redundant) in [
        (JointKind::Fixed, &[][..], 6),
        (JointKind::Revolute, &[0.0], 4),
    ] {
        let builder = held_twice(kind);
        let s = Maximal::new(builder.build().expect("valid"), q, Options::default())
            .expect("closes")
            .with_outputs(vec![
                Quantity::Control(0),
                Quantity::Velocity {
                    body: 0,
                    point: Vec3::zeros(),
                    axis: Vec3::x(),
                },
            ]);
        assert_eq!(s.mobility().degrees_of_freedom, 0);
        assert_eq!(s.mobility().redundant_rows, redundant);
        assert_eq!(s.dims().ndx, 0);
        let cost = |place, target| Cost::square(QuantityId::new(place), target, 1.0, When::Running);
        let problem = Problem {
            costs: vec![cost(0, 1.0), cost(1, 0.0)],
            ..Problem::new(&s, vec![0.05; 10], q.to_vec())
        };
        let found = Solve::new(&s, &problem)
            .with_options(shooting::Options::default())
            .run()
            .expect("argmin runs");
        assert_eq!(found.status, Status::Converged, "{}", found.reason);
        assert!(found.trajectory.u.iter().all(|u| (u - 1.0).abs() < 1e-3));
        let last: &Iteration = found.history.last().expect("a guess");
        assert!(last.objective < 1e-6);
    }
}

#[test]
fn loops_from_a_guess_beyond_numbers_are_refused() {
    let e = Maximal::new(
        four_bar().build().expect("valid"),
        &[0.3, 1e300, 1.2],
        Options::default(),
    )
    .expect_err("cannot close");
    assert!(e.to_string().contains("does not close"), "{e}");
}

/// Their determinant is zero in floating point.
#[test]
fn tiny_inertias_are_inverted() {
    for moment in [1e-12, 1e-120, 1e-200] {
        let bob = BodySpec::new(1.0).inertia([moment; 3]);
        let (s, _) = start(&pendulum(bob, 1.0), &[0.3], &[0.0]);
        assert_eq!(s.mobility().degrees_of_freedom, 1);
    }
}

#[test]
fn frames_of_another_system_are_refused() {
    let at = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h: 0.01,
    };
    let q = [0.3, 0.3, 1.2];
    let s = system(&four_bar(), &q);
    let x = s.start(&q, &[0.0; 3], &[false; 3]).expect("closes");
    let frame_of = |s: &Maximal, x: &[f64]| {
        s.frame(&at, x, &[], None, &mut s.work())
            .expect("a state of its own")
    };
    let (tree, tree_x) = start(&box_pendulum(), &[0.3], &[0.0]);
    let (q, turns) = cranks_at(2, 0.0);
    let (loops, loops_x) = start(&cranks(2), &q, &turns);
    let (mut w, mut moved, mut d) = (s.work(), x.clone(), [0.0; 2]);
    for frame in [
        Frame::Identity(2),
        frame_of(&tree, &tree_x),
        frame_of(&loops, &loops_x),
    ] {
        let framed = s.frame(&at, &x, &[], Some(&frame), &mut w);
        let retracted = s.retract(&at, &x, &[], &frame, &d, &mut w, &mut moved);
        for e in [framed.map(drop), retracted].map(|r| r.expect_err("another system's")) {
            assert_eq!(e.failure, StepFailure::Frame, "{e}");
            assert!(e.message.contains("`Charts::frame`"), "{e}");
        }
        let mut gone = d;
        s.difference(&at, &x, &[], &frame, &x, &mut w, &mut gone);
        assert!(gone.iter().all(|d| d.is_nan()));
    }
    let own = frame_of(&s, &x);
    s.frame(&at, &x, &[], Some(&own), &mut w).expect("its own");
    s.retract(&at, &x, &[], &own, &d, &mut w, &mut moved)
        .expect("its own");
    s.difference(&at, &x, &[], &own, &x, &mut w, &mut d);
    assert!(d.iter().all(|d| d.abs() < 1e-12));
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
