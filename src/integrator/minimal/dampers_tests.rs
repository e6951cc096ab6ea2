//! Dampers between points in joint coordinates: the motion of maximal coordinates, and what they take.

use super::Minimal;
use super::samples::{START, damped, geared, made, mixed, options};
use crate::dynamics::{Knot, KnotPoint, Start, Step};
use crate::integrator::{Maximal, Mechanical};
use crate::mechanism::samples::Source;
use crate::mechanism::{
    BodySpec, Field, JointKind, JointSpec, MechanismBuilder, Shape, SpringSpec,
};

/// How far apart poses of both integrators are after some steps.
fn apart(builder: &MechanismBuilder, seed: u64, intervals: &[f64]) -> f64 {
    let build = || builder.build().expect("valid");
    let n = build().tree_ids().len();
    let mut s = Source::new(seed + 40);
    let (q, rates) = (s.vector(n, 0.5), s.vector(n, 0.8));
    let minimal = Minimal::new(build(), &q, options()).expect("a tree");
    let maximal = Maximal::new(build(), &q, options()).expect("a tree");
    let (.., a) = made(&minimal, &q, &rates, intervals);
    let (.., b) = made(&maximal, &q, &rates, intervals);
    let each = minimal.poses(&a).into_iter().zip(maximal.poses(&b));
    each.fold(0.0_f64, |m, (a, b)| {
        m.max((a.x - b.x).amax()).max((a.r - b.r).amax())
    })
}

/// Every third with gears, every fifth with dampers that are a hundred times as strong.
fn random(seed: u64) -> MechanismBuilder {
    let mut s = Source::new(seed);
    let mut kinds = vec![JointKind::Revolute, JointKind::Cylindrical];
    kinds.extend((0..1 + s.below(4)).map(|_| JointKind::ALL[s.below(16)]));
    let mut m = damped(mixed(seed, &kinds), seed);
    if seed.is_multiple_of(5) {
        m.springs.values_mut().for_each(|s| s.damping *= 100.0);
    }
    match seed % 3 {
        0 => geared(m, seed, 2),
        _ => m,
    }
}

fn worst(seeds: std::ops::Range<u64>, intervals: &[f64], bound: f64) -> f64 {
    seeds.fold(0.0, |worst, seed| {
        let off = apart(&random(seed), seed, intervals);
        if off > bound {
            eprintln!("{seed}: {off:.1e}");
        }
        worst.max(off)
    })
}

#[test]
fn damped_steps_are_those_of_maximal_coordinates() {
    let first = worst(0..200, START, 1e-10);
    let next = worst(200..300, &[0.01, 0.012, 0.01], 1e-10);
    assert!(first < 1e-10 && next < 1e-10, "{first:.1e} {next:.1e}");
}

#[test]
fn damped_motions_are_those_of_maximal_coordinates() {
    let off = worst(500..530, &[0.01; 100], 1e-8);
    assert!(off < 1e-8, "{off:.1e}");
}

/// A parameter may make a spring damp that does not.
#[test]
fn springs_may_come_to_damp() {
    let mut m = mixed(7, &[JointKind::Revolute; 3]);
    let without = Minimal::new(m.build().expect("valid"), &[0.0; 3], options()).expect("a tree");
    assert!(without.dampers.is_empty());
    m = m.parameter("damp", &["springs.line.damping"]);
    let with = m.build().expect("valid");
    assert!(with.is_parameter(Field::SpringDamping(0)));
    let s = Minimal::new(with, &[0.0; 3], options()).expect("a tree");
    let (q, rates) = ([0.2, -0.4, 0.3], [1.0, -0.5, 0.7]);
    let step = |s: &Minimal, p: &[f64]| {
        let d = s.dims();
        let (mut w, mut x) = (s.work(), vec![0.0; d.nx]);
        let (mut next, mut y) = (x.clone(), vec![0.0; d.ny]);
        s.initial(&Start::at_rates(&q, &rates), p, &mut w, &mut x)
            .expect("starts");
        let at = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h: 0.02,
        };
        s.step(&at, &x, &vec![0.0; d.nu], p, &mut w, &mut next, &mut y)
            .expect("steps");
        next
    };
    let off = |a: &[f64], b: &[f64]| {
        let each = a.iter().zip(b);
        each.fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()))
    };
    let free = step(&without, &[]);
    assert!(off(&step(&s, &[0.0]), &free) < 1e-13);
    m.springs["line"].damping = 2.0;
    m.parameters.clear();
    let own = Minimal::new(m.build().expect("valid"), &[0.0; 3], options()).expect("a tree");
    let damped = step(&own, &[]);
    assert!(off(&step(&s, &[2.0]), &damped) < 1e-13);
    assert!(off(&damped, &free) > 1e-4);
}

/// An implicit damper far stiffer than its bodies are heavy holds its ends as far apart as they are, and no energy comes of it.
#[test]
fn stiff_dampers_hold() {
    let rod = |mass: f64| BodySpec::new(mass).shape(Shape::Box([0.1, 0.1, 1.0]));
    let hinge = |child: &str, parent: &str, top: f64| {
        JointSpec::new(JointKind::Revolute, child)
            .parent(parent)
            .axis([0.0, 1.0, 0.0])
            .anchors([0.0, 0.0, top], [0.0, 0.0, 0.5])
    };
    let damper = SpringSpec {
        parent: "world".into(),
        child: "b".into(),
        parent_anchor: [1.0, 0.0, 0.5],
        child_anchor: [0.0, 0.0, -0.5],
        stiffness: 0.0,
        rest: 0.0,
        damping: 1e6,
        implicit: true,
    };
    let m = MechanismBuilder::new()
        .body("a", rod(1.0))
        .body("b", rod(0.5))
        .joint("top", hinge("a", "world", 0.0))
        .joint("low", hinge("b", "a", -0.5))
        .spring("d", damper)
        .build()
        .expect("valid");
    let q = [0.4, 0.3];
    let s = Minimal::new(m, &q, options()).expect("a tree");
    let h = 0.01;
    let (_, x, ..) = made(&s, &q, &[0.0; 2], &[h]);
    let (.., end) = made(&s, &q, &[0.0; 2], &[h; 100]);
    let length = |x: &[f64]| {
        let (m, poses) = (s.mechanism(), s.poses(x));
        m.springs[0].length(m.pose(&poses, None), &poses[1])
    };
    let energy = |x: &[f64], k: usize| {
        let at = Knot {
            k,
            t: 0.0,
            h_prev: if k > 0 { h } else { 0.0 },
            h: 0.0,
        };
        let seen = KnotPoint {
            at,
            x,
            u: &[],
            p: &[],
            y: &[],
        };
        let motion = s.knot_velocities(&seen, &mut s.work()).expect("a state");
        let m = s.mechanism();
        let stored = m.stored_energy(&s.poses(x), |j| s.winding_angle(x, j));
        stored + m.kinetic_energy(&motion)
    };
    let (moved, gained) = (length(&end) - length(&x), energy(&end, 100) - energy(&x, 0));
    assert!(moved.abs() < 1e-4, "{moved}");
    assert!(gained < 0.05, "{gained}");
}
