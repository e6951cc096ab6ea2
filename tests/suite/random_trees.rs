//! Random trees over a floor move for a second at a time step of 0.01 s with default settings, with both integrators alike.

use crate::trees::{BOTH, Outcome, STEP, Shapes, Tree};
use least_action::integrator::Substeps;
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
};
use rayon::prelude::*;

/// Deepest overlap of spheres, boxes and capsules, m.
const DEEPEST: f64 = 1e-9;
/// Iterations of a step. Those of [`SEEDS`] take 374 at most.
const MOST: usize = 500;
/// Trees that need little time. 17, 85 and 91 failed as read-outs in maximal coordinates, whose starts tore light bodies off their
/// joints; 68 gained energy in joint coordinates, whose substeps missed it; 76 took 4065 iterations after it was solved to rounding. Stiff
/// joint friction and limits took the digits of light bodies from the factors in maximal coordinates: 1127 and 1384 took 5038 and 4480
/// iterations, and 1135 failed. 2520 gained energy: its fastest swing was not estimated again while its bodies turned. 5468 gained more
/// energy than was in play: limits spun a limb up to 1.2 rad within one part. 5125 had four parts in joint coordinates and one in maximal
/// ones: no force had a lever. 20136 failed: bodies swung faster than 64 parts take.
const SEEDS: [u64; 18] = [
    9, 13, 17, 18, 20, 23, 27, 68, 76, 85, 91, 1127, 1135, 1384, 2520, 5125, 5468, 20136,
];

/// What is wrong with how a tree moved.
fn fault(o: &Outcome) -> Option<String> {
    match (&o.failure, o.grew) {
        (Some(e), _) => Some(e.to_string()),
        (None, Some(knot)) => Some(format!("energy changed at knot {knot}: {:?} J", o.energy)),
        _ => (o.deepest > DEEPEST).then(|| format!("{:e} m deep", o.deepest)),
    }
}

/// Rounding may decide whether a step is divided, and the motions part: in one of these.
const DIFFER: usize = 1;

#[test]
fn random_trees_move() {
    let differing = SEEDS.into_par_iter().filter(|&seed| {
        let tree = Tree::new(seed);
        let outcomes = BOTH.map(|name| {
            let o = tree.run(name);
            let what = format!("tree {seed}, {name}");
            assert_eq!(fault(&o), None, "{what}");
            let most = o.stats.most_iterations;
            assert!(most <= MOST, "{what}: {most} iterations");
            o
        });
        outcomes[0].stats.parts != outcomes[1].stats.parts
    });
    let differing: Vec<u64> = differing.collect();
    assert!(differing.len() <= DIFFER, "substeps differ: {differing:?}");
}

/// Trees whose fastest swing was missed, with cylinders or without. An impact had raised its bound, so that it was not estimated again (60517
/// gained 5.2 kJ). Tensions grew within a step (80515 gained 13 J, 80073 1.6 kJ, 81104 121 J with two parts where eight are needed).
/// Or 8 and 16 parts took turns, which drives stiff springs (60255 gained 69 J).
const SWINGING: [(u64, Shapes); 5] = [
    (60517, Shapes::Without),
    (60255, Shapes::Without),
    (80515, Shapes::WithCylinders),
    (80073, Shapes::WithCylinders),
    (81104, Shapes::WithCylinders),
];
/// Largest energy error of these, in parts of the largest energy exchanged; they have 0.4 to 10 %.
const ERROR: f64 = 0.2;

#[test]
fn the_fastest_swing_is_followed() {
    SWINGING.into_par_iter().for_each(|(seed, shapes)| {
        let tree = Tree::of(seed, shapes);
        let outcomes = BOTH.map(|name| {
            let o = tree.run(name);
            assert_eq!(fault(&o), None, "tree {seed}, {name}");
            let [error, exchanged] = o.energy;
            assert!(error < ERROR * exchanged, "tree {seed}, {name}: {error} J");
            o
        });
        let parts = outcomes.each_ref().map(|o| o.stats.parts);
        assert_eq!(parts[0], parts[1], "tree {seed}: substeps");
    });
}

/// Trees that much friction jams. Block factors of the read-out at 0.4 s lost the digits of a light body (61200, `maximal`, residual 0.3 m/s).
/// No start and no central path led to velocities at a knot (80477, `maximal`), or to a step (80199, `minimal`, 1271 iterations).
const JAMMED: [(u64, Shapes); 3] = [
    (61200, Shapes::Without),
    (80199, Shapes::WithCylinders),
    (80477, Shapes::WithCylinders),
];

#[test]
fn jams_are_solved_by_bounds_of_friction() {
    let both = JAMMED
        .into_par_iter()
        .flat_map(|tree| BOTH.map(|name| (tree, name)));
    both.for_each(|((seed, shapes), name)| {
        let o = Tree::of(seed, shapes).run(name);
        assert_eq!(fault(&o), None, "tree {seed}, {name}");
        let most = o.stats.most_iterations;
        assert!(most <= MOST, "tree {seed}, {name}: {most} iterations");
    });
}

/// Trees whose sliding contacts turn their direction near the end of the central path: the cones stop every start, and curves around that
/// took 5906 to 7065 iterations. Friction that follows the sliding velocity takes 79 to 441.
const TURNING: [u64; 2] = [2242, 2282];

#[test]
fn sliding_that_turns_takes_few_iterations() {
    for seed in TURNING {
        let tree = Tree::new(seed);
        for name in BOTH {
            let o = tree.run(name);
            assert_eq!(fault(&o), None, "tree {seed}, {name}");
            let most = o.stats.most_iterations;
            assert!(most <= MOST, "tree {seed}, {name}: {most} iterations");
        }
    }
}

/// A heavy box that drops from a height onto a light ball and a light rod on oblique rails.
fn rails(height: f64) -> Tree {
    let rail = |child, axis, anchors: [[f64; 3]; 2]| {
        let joint = JointSpec::new(JointKind::Prismatic, child).parent("box");
        joint.axis(axis).anchors(anchors[0], anchors[1])
    };
    let to_ball = [[0.0, -0.01, -0.13], [-0.1, -0.03, -0.04]];
    let to_rod = [[0.07, 0.04, 0.08], [0.09, 0.1, -0.02]];
    let body = |mass, shape| BodySpec::new(mass).shape(shape);
    let skin = |friction| ContactSpec::new(friction);
    let rod = Shape::Capsule {
        radius: 0.054,
        length: 0.215,
    };
    let builder = MechanismBuilder::new()
        .half_space("floor", HalfSpaceSpec::default())
        .body("box", body(8.9, Shape::Box([0.26, 0.13, 0.13])).free())
        .body(
            "ball",
            body(0.03, Shape::Sphere(0.14)).contact("skin", skin(0.84)),
        )
        .body("rod", body(0.14, rod).contact("skin", skin(0.3)))
        .joint("to_ball", rail("ball", [0.5, 0.5, -0.71], to_ball))
        .joint(
            "to_rod",
            rail("rod", [0.66, 0.26, -0.7], to_rod).damping(0.12),
        );
    let probe = builder.build().expect("rails over a floor");
    let ids = probe.tree_ids().into_iter();
    let up =
        |(joint, direction): (usize, usize)| direction == 2 && probe.joints[joint].name == "box";
    let q: Vec<f64> = ids.map(|id| if up(id) { height } else { 0.0 }).collect();
    let rates = vec![0.0; q.len()];
    Tree { builder, q, rates }
}

/// The impact spins the box up from 10 to 40 rad/s within a step. In 13 of 40 drops a part of a step came to 47 times its energy, with either
/// integrator: contacts took energy by the mean of the velocities.
#[test]
fn impacts_on_rails_do_not_throw() {
    for height in [1.54, 1.64, 1.7, 1.76, 1.86] {
        for name in BOTH {
            let o = rails(height).run_with(name, (STEP, 80), Substeps::Auto);
            assert_eq!(fault(&o), None, "{height} m, {name}");
        }
    }
}

/// The goal is one failure in a thousand trees; half of them have cylinders. `cargo test --release --test suite a_hundred -- --ignored --nocapture` runs this test;
/// `cargo run --release --example trees -- all 600 1000` runs 600 trees from seed 1000, and prints how each ended, its substeps, and the
/// most iterations of a solve.
#[test]
#[ignore = "some minutes"]
fn a_hundred_random_trees_move() {
    let count = 100;
    let all: Vec<_> = (0..count)
        .into_par_iter()
        .map(|seed| {
            let shapes = [Shapes::Without, Shapes::WithCylinders][seed as usize % 2];
            let tree = Tree::of(seed, shapes);
            BOTH.map(|name| tree.run(name))
        })
        .collect();
    for (i, name) in BOTH.into_iter().enumerate() {
        let faults: Vec<_> = (0..count)
            .zip(&all)
            .filter_map(|(seed, o)| fault(&o[i]).map(|what| format!("tree {seed}: {what}")))
            .collect();
        let most = all.iter().map(|o| o[i].stats.most_iterations).max();
        println!("{name}: {faults:#?}, {most:?} iterations at most");
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        assert!(most <= Some(MOST), "{name}: {most:?} iterations");
    }
    let differ = all
        .iter()
        .filter(|o| o[0].stats.parts != o[1].stats.parts)
        .count();
    println!("{differ} of {count} differ in substeps");
    assert!(differ <= 5, "{differ}");
}
