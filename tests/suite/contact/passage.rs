//! Bodies that move farther in a step than what they hit is thick.

use super::{motion, terrain};
use least_action::mechanism::Mechanism;
use least_action::spatial::Pose;

/// Shapes of 5 cm, and how far they reach along x.
const SHAPES: [(&str, f64); 5] = [
    ("{ box = [0.05, 0.05, 0.05] }", 0.025),
    ("{ sphere = 0.025 }", 0.025),
    ("{ capsule = { radius = 0.02, length = 0.01 } }", 0.02),
    ("{ cylinder = { radius = 0.025, length = 0.05 } }", 0.025),
    (
        "{ hull = [[-0.025, 0, 0], [0.025, 0, 0], [0, -0.025, 0], [0, 0.025, 0], [0, 0, -0.025], [0, 0, 0.025]] }",
        0.025,
    ),
];

/// What may overlap at a knot, m.
const OVERLAP: f64 = 1e-8;

/// Time step, s.
const H: f64 = 0.01;

const WALL: &str = "{ box = [0.02, 1.0, 1.0] }";

fn file(
    integrator: &str,
    terrain: &str,
    bodies: &[(&str, [f64; 3], [f64; 3], [f64; 3])],
) -> String {
    let mut text = format!(
        "time_step = {H}\nhorizon = 0.2\nintegrator = \"{integrator}\"\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n{terrain}"
    );
    for (i, (shape, ..)) in bodies.iter().enumerate() {
        text += &format!(
            "[mechanism.bodies.b{i}]\nmass = 1.0\nshape = {shape}\nfree = true\n\
             contacts.c = {{ friction = 0.5, group = \"all\", against = [\"ground\", \"all\"] }}\n"
        );
    }
    text += "[initial]\n";
    for (i, (_, x, v, w)) in bodies.iter().enumerate() {
        text +=
            &format!("b{i} = {{ position = {x:?}, velocity = {v:?}, angular_velocity = {w:?} }}\n");
    }
    text
}

/// The least gap of all contacts at all knots, m.
fn least_gap(m: &Mechanism, knots: &[Vec<Pose>]) -> f64 {
    let gap = |poses: &Vec<Pose>| {
        let gaps = m.contacts.iter().map(|c| m.touch(c, poses).gap);
        gaps.fold(f64::INFINITY, f64::min)
    };
    knots.iter().map(gap).fold(f64::INFINITY, f64::min)
}

#[test]
fn nothing_passes_a_thin_wall() {
    for integrator in ["maximal", "minimal"] {
        for (shape, half) in SHAPES {
            for step in [0.01, 0.02, 0.03, 0.05, 0.1] {
                for phase in 0..8 {
                    let from = -(0.01 + half) - step * (5.0 + f64::from(phase) / 8.0);
                    let body = (shape, [from, 0.01, 0.013], [step / H, 0.0, 0.0], [0.0; 3]);
                    let text = file(integrator, &terrain("wall", WALL, [0.0; 3], 0.5), &[body]);
                    let (_, knots) = motion(&text);
                    let most = knots
                        .iter()
                        .map(|p| p[0].x.x)
                        .fold(f64::NEG_INFINITY, f64::max);
                    let over = most + 0.01 + half;
                    assert!(
                        over < OVERLAP,
                        "{integrator} {shape} {step} {phase}: {over:e}"
                    );
                    // a hull may tip over its vertex; the rest stop at the wall
                    assert!(
                        over > -0.026,
                        "{integrator} {shape} {step} {phase}: {over:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_spins_does_not_pass_a_thin_wall() {
    for (shape, _) in SHAPES {
        for phase in 0..8 {
            let from = -0.06 - 0.05 * (3.0 + f64::from(phase) / 8.0);
            let body = (shape, [from, 0.0, 0.0], [5.0, 0.3, 0.2], [3.0, 17.0, -11.0]);
            let text = file("maximal", &terrain("wall", WALL, [0.0; 3], 0.5), &[body]);
            let (_, knots) = motion(&text);
            let most = knots
                .iter()
                .map(|p| p[0].x.x)
                .fold(f64::NEG_INFINITY, f64::max);
            assert!(most < -0.01, "{shape} {phase}: {most}");
        }
    }
}

#[test]
fn bodies_do_not_pass_each_other() {
    for (first, reach) in SHAPES {
        for (second, other) in SHAPES {
            for step in [0.02, 0.05, 0.1] {
                for phase in 0..4 {
                    let apart = reach + other + step * (4.0 + f64::from(phase) / 4.0);
                    let v = 0.5 * step / H;
                    let bodies = [
                        (first, [-0.5 * apart, 0.0, 0.0], [v, 0.0, 0.0], [0.0; 3]),
                        (second, [0.5 * apart, 0.0, 0.0], [-v, 0.0, 0.0], [0.0; 3]),
                    ];
                    let (m, knots) = motion(&file("maximal", "", &bodies));
                    let end = knots.last().expect("knots");
                    let between = end[1].x.x - end[0].x.x;
                    let case = format!("{first} {second} {step} {phase}");
                    assert!(between > 0.0, "{case}: {between}");
                    let gap = least_gap(&m, &knots);
                    assert!(gap > -OVERLAP, "{case}: {gap:e}");
                }
            }
        }
    }
}

#[test]
fn what_falls_on_a_thin_table_rests_on_it() {
    for integrator in ["maximal", "minimal"] {
        for (shape, half) in [SHAPES[0], SHAPES[1], SHAPES[3]] {
            for h in [0.004, 0.01, 0.02] {
                let table = terrain("table", "{ box = [2.0, 2.0, 0.02] }", [0.0; 3], 0.5);
                let text = format!(
                    "time_step = {h}\nhorizon = 1.0\nintegrator = \"{integrator}\"\n{table}\
                     [mechanism.bodies.b]\nmass = 1.0\nshape = {shape}\nfree = true\n\
                     contacts.c = {{ friction = 0.5 }}\n\
                     [initial]\nb = {{ position = [0.01, 0.013, 1.0] }}\n"
                );
                let (_, knots) = motion(&text);
                let z = knots.last().expect("knots")[0].x.z;
                assert!(
                    (z - 0.01 - half).abs() < 1e-6,
                    "{integrator} {shape} {h}: {z}"
                );
            }
        }
    }
}
