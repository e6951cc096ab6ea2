//! Recordings that a careless plot would trip over.

use super::samples::{cart_pole, channel, empty, five_bar, sliding_box, top};
use crate::format::recording::{Dot, Group, Iteration, Line, Pose, Recording};

/// The cart-pole at its first knot only.
pub(super) fn single_knot() -> Recording {
    let mut r = cart_pole();
    r.title = "One knot".to_owned();
    r.time.truncate(1);
    r.poses.truncate(1);
    r.convergence.truncate(1);
    r.channels.iter_mut().for_each(|c| c.values.truncate(1));
    r
}

/// Nothing changes.
pub(super) fn constant() -> Recording {
    let mut r = cart_pole();
    r.title = "At rest".to_owned();
    let first = r.poses[0].clone();
    r.poses.iter_mut().for_each(|p| p.clone_from(&first));
    for c in &mut r.channels {
        let first = c.values[0];
        c.values.fill(first);
    }
    r.convergence.iter_mut().for_each(|i| {
        *i = Iteration {
            iteration: i.iteration,
            ..Iteration::default()
        }
    });
    r
}

pub(super) fn all() -> Vec<(&'static str, Recording)> {
    vec![
        ("cart_pole", cart_pole()),
        ("five_bar", five_bar()),
        ("top", top()),
        ("sliding_box", sliding_box()),
        ("single", single_knot()),
        ("constant", constant()),
    ]
}

/// A channel of every group over the given times, and a body that moves by the same values.
fn of_values(title: &str, time: Vec<f64>, values: &[f64]) -> Recording {
    let mut r = empty(title);
    r.time = time;
    let groups = [
        (Group::Coordinate, "rad"),
        (Group::Rate, "rad/s"),
        (Group::Control, "N"),
        (Group::ConstraintForce, "N"),
        (Group::Energy, "J"),
        (Group::Other, ""),
    ];
    for (group, unit) in groups {
        let mut c = channel(&format!("{group:?} error"), unit, group, Vec::new());
        // Not through `channel`, which would turn what is not finite into gaps.
        c.values = values.iter().map(|v| Some(*v)).collect();
        (c.lower, c.upper) = (Some(f64::NEG_INFINITY), Some(f64::NAN));
        r.channels.push(c);
    }
    let pose = |v: &f64| {
        vec![Pose {
            position: [*v, 0.0, *v],
            orientation: [1.0, 0.0, 0.0, 0.0],
        }]
    };
    r.poses = values.iter().map(pose).collect();
    r.bodies = vec!["body".to_owned()];
    r.lines = vec![Line {
        body: Some(0),
        points: vec![[0.0; 3], [1.0, 0.0, 0.0]],
    }];
    let row = |(i, v): (usize, &f64)| Iteration {
        iteration: i as u64,
        objective: *v,
        violation: *v,
        optimality: -*v,
        ..Iteration::default()
    };
    r.convergence = values.iter().enumerate().map(row).collect();
    r
}

pub(super) fn odd() -> Vec<Recording> {
    let count = |n: usize| (0..n).map(|k| k as f64).collect::<Vec<_>>();
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let mut all = vec![
        empty(""),
        of_values("no values", count(5), &[]),
        of_values("no times", vec![], &[1.0, 2.0]),
        of_values("not finite", count(6), &[nan, inf, 1.0, -inf, 2.0, nan]),
        of_values("nothing finite", count(3), &[nan, inf, -inf]),
        of_values("largest", count(4), &[f64::MAX, f64::MIN, f64::MAX, 0.0]),
        of_values("huge", count(4), &[9e149, -9e149, 1e100, 0.0]),
        of_values("smallest", count(4), &[5e-324, -5e-324, 1e-310, 0.0]),
        of_values("tiny", count(4), &[1e-200, 3e-200, -1e-200, 0.0]),
        of_values("rounding", count(3), &[1.0, 1.0 + f64::EPSILON, 1.0]),
        of_values("far away", count(3), &[1e9, 1e9 + 1e-4, 1e9 - 2e-4]),
        of_values("times equal", vec![2.0; 4], &[1.0, 2.0, 3.0, 4.0]),
        of_values(
            "times backwards",
            vec![3.0, 1.0, 2.0, 0.0],
            &[1.0, 2.0, 3.0, 4.0],
        ),
        of_values(
            "times not finite",
            vec![nan, 1.0, inf, 2.0],
            &[1.0, 2.0, 3.0, 4.0],
        ),
        of_values(
            "times huge",
            vec![f64::MIN, 0.0, 1.0, f64::MAX],
            &[1.0, 2.0, 3.0, 4.0],
        ),
    ];
    let long: Vec<f64> = count(100_000);
    let noise: Vec<f64> = long
        .iter()
        .map(|k| (k * 12.9898).sin() * 43_758.545)
        .collect();
    all.push(of_values("many knots", long, &noise));

    let mut r = five_bar();
    r.title = "\u{0}\u{1b}\n<&\"'> \u{fffe} ".repeat(50);
    r.channels
        .iter_mut()
        .for_each(|c| (c.name, c.unit) = ("]]>& name".repeat(5000), "&<\n[".repeat(100)));
    r.bodies.truncate(1);
    all.push(r);

    let mut r = top();
    r.title = "poses missing and turned by nothing".to_owned();
    r.poses.truncate(5);
    r.poses[0].clear();
    r.poses[1][0].orientation = [0.0; 4];
    r.poses[2][0].orientation = [f64::NAN; 4];
    r.poses[3][0].position = [f64::INFINITY; 3];
    r.lines.push(Line {
        body: Some(99),
        points: vec![[0.0; 3]],
    });
    r.lines.push(Line {
        body: Some(0),
        points: vec![],
    });
    r.lines.push(Line {
        body: None,
        points: vec![[f64::NAN; 3], [1.0; 3]],
    });
    r.dots.push(Dot {
        body: Some(usize::MAX),
        point: [0.0; 3],
    });
    all.push(r);

    let mut r = sliding_box();
    r.title = "contacts that are not finite, of no body, and at no knot".to_owned();
    for (c, bad) in r.contacts.iter_mut().zip([f64::NAN, f64::INFINITY, 1e300]) {
        (c.friction, c.child, c.parent) = (bad, 7, Some(9));
        c.forces[3].force = [bad; 3];
        c.forces[4].point = [bad; 3];
        c.forces[5].knot = usize::MAX;
        r.ground[0].corners[0] = [bad; 3];
    }
    let mut empty = r.ground[0].clone();
    empty.corners.clear();
    r.ground.push(empty);
    (r.channels[1].values[50], r.channels[3].values[60]) = (Some(f64::MAX), Some(f64::NAN));
    r.channels.truncate(18);
    all.push(r);

    let mut r = cart_pole();
    r.title = "bodies without lines, a unit per channel".to_owned();
    (r.lines, r.dots) = (Vec::new(), Vec::new());
    for i in 0..40 {
        let mut c = r.channels[4].clone();
        (c.name, c.unit) = (format!("push {i}"), format!("unit {i}"));
        r.channels.push(c);
    }
    all.push(r);
    all
}
