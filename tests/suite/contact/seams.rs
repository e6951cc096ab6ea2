//! Floors made of several solids: what slides over them does not feel where they join.

use super::{motion, terrain};
use least_action::spatial::Pose;

const HULL: &str = "{ hull = [[-0.1, -0.1, -0.05], [0.1, -0.1, -0.05], [0.1, 0.1, -0.05], [-0.1, 0.1, -0.05], [-0.05, 0, 0.07], [0.05, 0, 0.07], [0.13, 0, 0.01]] }";

/// Shapes and the heights of their centers when they lie on the floor.
const SHAPES: [(&str, f64); 3] = [
    ("{ box = [0.3, 0.2, 0.1] }", 0.05),
    ("{ cylinder = { radius = 0.05, length = 0.1 } }", 0.05),
    ("{ sphere = 0.05 }", 0.05),
];

/// Two slabs with a gap; the second is higher and thicker by so much.
fn slabs(gap: f64, higher: f64, thicker: f64) -> String {
    let second = 0.2 + thicker;
    terrain(
        "a",
        "{ box = [2.0, 2.0, 0.2] }",
        [-1.0 - 0.5 * gap, 0.0, -0.1],
        0.0,
    ) + &terrain(
        "b",
        &format!("{{ box = [2.0, 2.0, {second:?}] }}"),
        [1.0 + 0.5 * gap, 0.0, higher - 0.5 * second],
        0.0,
    )
}

fn tiles(gap: f64) -> String {
    let place = |i: i32, along: f64| f64::from(i) * (0.3 + gap) + along;
    let of = |(i, k): (i32, i32)| {
        let at = [place(i, 0.02), place(k, 0.05), -0.1];
        let name = format!("t{}{}", i + 3, k + 1);
        terrain(&name, "{ box = [0.3, 0.3, 0.2] }", at, 0.0)
    };
    let all = (-3..5).flat_map(|i| (-1..2).map(move |k| (i, k)));
    all.map(of).collect()
}

fn floors() -> Vec<(&'static str, String)> {
    let treads = "[mechanism.terrain.s]\nshape = { steps = { edges = [[-1.2, 0.0], [-0.5, 0.0], [0.1, 0.0], [0.4, 0.0]], end = 2.0, width = 2.0 } }\nfriction = 0.0\n";
    vec![
        ("two slabs", slabs(0.0, 0.0, 0.0)),
        ("a gap of a millimeter", slabs(1e-3, 0.0, 0.0)),
        ("lower by 1e-6 m", slabs(0.0, -1e-6, 0.0)),
        ("higher by 1e-6 m", slabs(0.0, 1e-6, 0.0)),
        ("apart by 1e-6 m", slabs(1e-6, 0.0, 0.0)),
        ("thicker", slabs(0.0, 0.0, 0.1)),
        ("tiles", tiles(0.0)),
        ("tiles with gaps", tiles(1e-3)),
        ("treads", treads.into()),
    ]
}

fn slide(floor: &str, shape: &str, z: f64, (v, h, integrator): (f64, f64, &str)) -> Vec<Vec<Pose>> {
    let steps = (1.2 / (v * h)).round().min(300.0);
    let text = format!(
        "time_step = {h}\nhorizon = {}\nintegrator = \"{integrator}\"\n{floor}\
         [mechanism.bodies.b]\nmass = 1.0\nshape = {shape}\nfree = true\n\
         contacts.c = {{ friction = 0.0 }}\n\
         [initial]\nb = {{ position = [-0.6, 0.1, {z}], velocity = [{v:?}, 0.0, 0.0] }}\n",
        steps * h
    );
    motion(&text).1
}

#[test]
fn seams_do_not_stop_what_slides() {
    for (name, floor) in floors() {
        for (shape, z) in SHAPES {
            for at in [
                (3.0, 0.005, "maximal"),
                (3.0, 0.005, "minimal"),
                (1.0, 0.01, "maximal"),
                (2.7, 0.002, "maximal"),
                (10.0, 0.01, "maximal"),
            ] {
                let knots = slide(&floor, shape, z, at);
                let (n, (v, h, _)) = (knots.len(), at);
                let end = &knots[n - 1][0];
                let off = end.x.x + 0.6 - v * h * (n - 1) as f64;
                assert!(off.abs() < 1e-6, "{name} {shape} {at:?}: {off:e}");
                assert!(
                    (end.x.z - z).abs() < 2e-6,
                    "{name} {shape} {at:?}: {}",
                    end.x.z
                );
            }
        }
    }
}

/// A hull with a flat bottom slides as far; its center of mass is not that of its points.
#[test]
fn seams_do_not_stop_hulls() {
    let alone = terrain("a", "{ box = [4.0, 2.0, 0.2] }", [0.0, 0.0, -0.1], 0.0);
    for at in [(3.0, 0.005, "maximal"), (1.0, 0.01, "maximal")] {
        let reference = slide(&alone, HULL, 0.05, at);
        let n = reference.len();
        for (name, floor) in floors() {
            let knots = slide(&floor, HULL, 0.05, at);
            let off = (knots[n - 1][0].x - reference[n - 1][0].x).norm();
            assert!(off < 4e-6, "{name} {at:?}: {off:e}");
        }
    }
}

#[test]
fn balls_keep_their_speed() {
    for (name, floor) in floors() {
        for (v, h) in [(3.0, 0.005), (1.0, 0.01), (2.7, 0.002), (0.3, 0.005)] {
            let knots = slide(&floor, "{ sphere = 0.05 }", 0.05, (v, h, "maximal"));
            let n = knots.len();
            let end = (knots[n - 1][0].x.x - knots[n - 2][0].x.x) / h;
            assert!((end / v - 1.0).abs() < 1e-6, "{name} {v} {h}: {end}");
        }
    }
}

/// A kerb that is higher than its floor still stops what comes.
#[test]
fn a_kerb_stops_what_slides() {
    for (shape, z) in SHAPES.into_iter().take(2) {
        let knots = slide(&slabs(0.0, 0.02, 0.02), shape, z, (3.0, 0.005, "maximal"));
        let x = knots
            .iter()
            .map(|p| p[0].x.x)
            .fold(f64::NEG_INFINITY, f64::max);
        assert!(x < 0.0, "{shape}: {x}");
    }
}
