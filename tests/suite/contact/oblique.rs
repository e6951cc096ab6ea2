//! Oblique impacts: friction has the lever that it has when surfaces touch, whatever the gap was at the knot before.

use super::{motion, none_failed};

/// Radius of the inertia of what is thrown, that of a ball, m.
const RADIUS: f64 = 0.025;

/// Coefficient of friction.
const FRICTION: f64 = 0.9;

/// Walls with their surface at x = -0.25 m: of the world, and bodies that do not turn or are heavy; with the part of the momentum along x
/// that the impact of 1 kg takes.
const WALLS: [(&str, &str, f64); 6] = [
    (
        "half-space",
        "[mechanism.half_spaces.wall]\nnormal = [-1.0, 0.0, 0.0]\noffset = 0.25\nfriction = 0.9\n",
        1.0,
    ),
    (
        "thin wall",
        "[mechanism.terrain.wall]\nshape = { box = [0.02, 4.0, 4.0] }\nposition = [-0.24, 0.0, 0.0]\nfriction = 0.9\n",
        1.0,
    ),
    (
        "thick wall",
        "[mechanism.terrain.wall]\nshape = { box = [0.5, 4.0, 4.0] }\nfriction = 0.9\n",
        1.0,
    ),
    (
        "heavy body",
        "[mechanism.bodies.wall]\nmass = 1e7\nshape = { box = [0.5, 4.0, 4.0] }\nfree = true\ncontacts.c = { friction = 0.9, group = \"all\", against = [\"all\"] }\n",
        1.0,
    ),
    (
        "fixed body",
        "[mechanism.bodies.wall]\nmass = 1.0\nshape = { box = [0.5, 4.0, 4.0] }\ncontacts.c = { friction = 0.9, group = \"all\", against = [\"all\"] }\n[mechanism.joints.hold]\nkind = \"fixed\"\nchild = \"wall\"\n",
        1.0,
    ),
    (
        "sliding body",
        "[mechanism.bodies.wall]\nmass = 1.0\nshape = { box = [0.5, 4.0, 4.0] }\ncontacts.c = { friction = 0.9, group = \"all\", against = [\"all\"] }\n[mechanism.joints.hold]\nkind = \"prismatic\"\nchild = \"wall\"\naxis = [1.0, 0.0, 0.0]\n",
        0.5,
    ),
];

/// How 1 kg of a shape that reaches so far along x leaves a wall: its speed along the wall and its rate about z.
fn leaves(
    (integrator, h): (&str, f64),
    wall: &str,
    (shape, reach): (&str, f64),
    ([speed, along], phase): ([f64; 2], f64),
) -> Result<[f64; 2], String> {
    let from = -0.25 - reach - speed * h * (3.0 + phase);
    let text = format!(
        "time_step = {h}\nhorizon = {:?}\nintegrator = \"{integrator}\"\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n{wall}\
         [mechanism.bodies.b]\nmass = 1.0\nshape = {{ sphere = {RADIUS} }}\nfree = true\n\
         contacts.c = {{ shape = {shape}, friction = {FRICTION}, group = \"all\", against = [\"ground\", \"all\"] }}\n\
         [initial]\nb = {{ position = [{from:?}, 0.0, 0.0], velocity = [{speed:?}, {along:?}, 0.0] }}\n",
        10.0 * h
    );
    let (m, knots) = motion(&text)?;
    let body = (m.bodies.iter().position(|b| b.name == "b")).ok_or("no body")?;
    let [before, end] = [2, 1].map(|k| knots[knots.len() - k][body]);
    let turn = end.r * before.r.transpose();
    Ok([
        (end.x.y - before.x.y) / h,
        turn[(1, 0)].atan2(turn[(0, 0)]) / h,
    ])
}

/// All walls, integrators, time steps, speeds, and phases of the impact within a step, at a ratio of the speeds along the wall and toward it.
fn each(
    ratio: f64,
    shapes: &[(&str, f64)],
    check: impl Fn([f64; 2], [f64; 2], f64) -> Result<(), String>,
) {
    let mut failed = vec![];
    for (name, wall, part) in WALLS {
        for integrator in ["maximal", "minimal"] {
            if integrator == "minimal" && wall.contains("bodies") {
                // it has no contacts between bodies
                continue;
            }
            for shape in shapes {
                for (speed, h) in [(0.5, 0.01), (3.0, 0.01), (12.0, 0.01), (3.0, 0.002)] {
                    for phase in [0.0, 0.25, 0.5, 0.75] {
                        let (speeds, case) = ([speed, ratio * speed], (integrator, h));
                        let found = leaves(case, wall, *shape, (speeds, phase));
                        if let Err(e) = found.and_then(|found| check(found, speeds, part)) {
                            let shape = shape.0;
                            failed.push(format!(
                                "{name} {integrator} {h} {shape} {speed} {phase}: {e}"
                            ));
                        }
                    }
                }
            }
        }
    }
    none_failed(&failed);
}

/// What rolls along the wall: `v' = v/(1 + k)` with the inertia `k m r^2`, 5/7 of a ball.
#[test]
fn round_bodies_roll_along_walls() {
    let shapes = [
        ("{ sphere = 0.025 }", 0.025),
        ("{ cylinder = { radius = 0.025, length = 0.05 } }", 0.025),
        ("{ capsule = { radius = 0.02, length = 0.01 } }", 0.02),
    ];
    for shape in shapes {
        let radius = shape.1;
        let k = 0.4 * (RADIUS / radius).powi(2);
        each(0.5, &[shape], |[v, w], [_, along], _| {
            let ratios = [v / along, -w * radius / along].map(|r| r * (1.0 + k));
            let is_right = ratios.iter().all(|r| (r - 1.0).abs() < 1e-6);
            is_right
                .then_some(())
                .ok_or_else(|| format!("{ratios:?} of rolling"))
        });
    }
}

/// Friction on a point has no lever about it, and that on a face that lies on the wall does not tip a cube: they stop, or slide as the
/// momentum toward the wall lets them, and do not turn.
#[test]
fn points_and_faces_do_not_turn() {
    let shapes = [("\"point\"", 0.0), ("{ box = [0.05, 0.05, 0.05] }", 0.025)];
    for ratio in [0.3, 2.0] {
        each(ratio, &shapes, |[v, w], [speed, along], part| {
            let expected = (along - FRICTION * part * speed).max(0.0);
            let errors = [(v - expected) / along, w * RADIUS / along];
            let is_right = errors.iter().all(|e| e.abs() < 1e-4);
            is_right.then_some(()).ok_or_else(|| format!("{errors:?}"))
        });
    }
}
