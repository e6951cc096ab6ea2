//! Floors made of several solids: what slides over them does not feel where they join.

use super::{motion, none_failed, terrain};
use least_action::spatial::Vec3;

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

/// Two slabs of different widths, the second shifted sideways.
fn unequal(widths: [f64; 2], shift: f64) -> String {
    let slab = |name, x, y, width: f64| {
        let shape = format!("{{ box = [2.0, {width:?}, 0.2] }}");
        terrain(name, &shape, [x, y, -0.1], 0.0)
    };
    slab("a", -1.0, 0.0, widths[0]) + &slab("b", 1.0, shift, widths[1])
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
        ("narrow before wide", unequal([1.0, 2.0], 0.0)),
        ("wide before narrow", unequal([2.0, 1.0], 0.0)),
        ("shifted", unequal([1.0, 1.0], 0.01)),
        ("tiles", tiles(0.0)),
        ("tiles with gaps", tiles(1e-3)),
        ("treads", treads.into()),
    ]
}

/// Where what slides is at every knot, m.
fn slide(
    floor: &str,
    shape: &str,
    z: f64,
    (v, h, integrator): (f64, f64, &str),
) -> Result<Vec<Vec3>, String> {
    let steps = (1.2 / (v * h)).round().min(300.0);
    let text = format!(
        "time_step = {h}\nhorizon = {}\nintegrator = \"{integrator}\"\n{floor}\
         [mechanism.bodies.b]\nmass = 1.0\nshape = {{ box = [0.2, 0.2, 0.1] }}\nfree = true\n\
         contacts.c = {{ shape = {shape}, friction = 0.0 }}\n\
         [initial]\nb = {{ position = [-0.6, 0.1, {z}], velocity = [{v:?}, 0.0, 0.0] }}\n",
        steps * h
    );
    let (_, knots) = motion(&text)?;
    Ok(knots.iter().map(|poses| poses[0].x).collect())
}

/// What a fall or a climb by 1e-6 m, between solids that are not quite level, changes a position by, m: of a speed `v` the
/// share `g dz/v^2`.
fn by_height(v: f64, way: f64) -> f64 {
    2.0 * 9.81e-6 / (v * v) * way
}

/// Speed, m/s, time step, s, and integrator.
const RUNS: [(f64, f64, &str); 5] = [
    (3.0, 0.005, "maximal"),
    (3.0, 0.005, "minimal"),
    (1.0, 0.01, "maximal"),
    (2.7, 0.002, "maximal"),
    (10.0, 0.01, "maximal"),
];

#[test]
fn seams_do_not_stop_what_slides() {
    let mut failed = vec![];
    for (name, floor) in floors() {
        for (shape, z) in SHAPES {
            for at in RUNS {
                let case = format!("{name} {shape} {at:?}");
                match slide(&floor, shape, z, at) {
                    Err(e) => failed.push(format!("{case}: {e}")),
                    Ok(knots) => {
                        let n = knots.len();
                        let (end, way) = (knots[n - 1], at.0 * at.1 * (n - 1) as f64);
                        let off = end.x + 0.6 - way;
                        let most = 1e-6 + by_height(at.0, way);
                        if off.abs() > most || (end.z - z).abs() > 2e-6 {
                            failed.push(format!("{case}: {off:e} m, height {}", end.z));
                        }
                    }
                }
            }
        }
    }
    none_failed(&failed);
}

/// A hull with a flat bottom slides as far; its center of mass is not that of its points.
#[test]
fn seams_do_not_stop_hulls() {
    let mut failed = vec![];
    let alone = terrain("a", "{ box = [4.0, 2.0, 0.2] }", [0.0, 0.0, -0.1], 0.0);
    for at in [
        (3.0, 0.005, "maximal"),
        (1.0, 0.01, "maximal"),
        (2.0, 0.01, "minimal"),
    ] {
        let reference = slide(&alone, HULL, 0.05, at).expect("slides");
        let end = reference[reference.len() - 1];
        for (name, floor) in floors() {
            let off = slide(&floor, HULL, 0.05, at).map(|x| (x[x.len() - 1] - end).norm());
            let most = 2e-6 + by_height(at.0, 1.2);
            if !off.as_ref().is_ok_and(|off| *off < most) {
                failed.push(format!("{name} {at:?}: {off:?}"));
            }
        }
    }
    none_failed(&failed);
}

#[test]
fn balls_keep_their_speed() {
    let mut failed = vec![];
    for (name, floor) in floors() {
        let slow = [(0.3, 0.005, "maximal"), (0.3, 0.005, "minimal")];
        for at in RUNS.into_iter().chain(slow) {
            let (v, h, _) = at;
            let knots = slide(&floor, "{ sphere = 0.05 }", 0.05, at);
            let keeps = knots.map(|x| (x[x.len() - 1].x - x[x.len() - 2].x) / (h * v) - 1.0);
            if !keeps.as_ref().is_ok_and(|off| off.abs() < 1e-6) {
                failed.push(format!("{name} {at:?}: {keeps:?}"));
            }
        }
    }
    none_failed(&failed);
}

/// A kerb that is higher than its floor still stops what comes.
#[test]
fn a_kerb_stops_what_slides() {
    let mut failed = vec![];
    // so high that the cylinder does not tip over it
    for (height, (shape, z)) in [0.02, 0.08].into_iter().zip(SHAPES) {
        for at in RUNS {
            let knots = slide(&slabs(0.0, height, height), shape, z, at);
            let most = knots.map(|all| all.iter().map(|x| x.x).fold(f64::NEG_INFINITY, f64::max));
            if !most.as_ref().is_ok_and(|x| *x < 0.0) {
                failed.push(format!("{shape} {at:?}: {most:?}"));
            }
        }
    }
    none_failed(&failed);
}

/// Staggered bricks: edges that end in the middle of others.
fn bricks() -> String {
    let of = |(i, k): (i32, i32)| {
        let shift = if k % 2 == 0 { 0.0 } else { 0.1 };
        let at = [0.2 * f64::from(i) + shift, 0.1 * f64::from(k) + 0.1, -0.025];
        let name = format!("r{}{}", i + 6, k + 2);
        terrain(&name, "{ box = [0.2, 0.1, 0.05] }", at, 0.0)
    };
    let all = (-6..8).flat_map(|i| (-2..3).map(move |k| (i, k)));
    all.map(of).collect()
}

/// Edges between neighbors, which nothing reaches, do not stop what lies across them.
#[test]
fn staggered_bricks_do_not_stop_what_lies() {
    let (mut failed, floor) = (vec![], bricks());
    for shape in ["capsule", "cylinder"] {
        for across in [0.113, 0.127, 0.15] {
            for (v, h) in [(3.0, 0.005), (1.0, 0.01), (8.0, 0.01)] {
                let steps = (1.2_f64 / (v * h)).round();
                let text = format!(
                    "time_step = {h}\nhorizon = {}\n{floor}\
                     [mechanism.bodies.b]\nmass = 1.0\nshape = {{ box = [0.2, 0.2, 0.1] }}\nfree = true\n\
                     contacts.c = {{ shape = {{ {shape} = {{ radius = 0.05, length = 0.1 }} }}, friction = 0.0 }}\n\
                     [initial]\nb = {{ position = [-0.6, {across}, 0.05], velocity = [{v:?}, 0.0, 0.0], orientation = {{ rpy = [1.5707963267948966, 0.0, 0.0] }} }}\n",
                    steps * h
                );
                let off = motion(&text).map(|(_, knots)| {
                    let end = knots[knots.len() - 1][0].x;
                    (end - Vec3::new(v * h * steps - 0.6, across, 0.05)).norm()
                });
                if !off.as_ref().is_ok_and(|off| *off < 1e-6) {
                    failed.push(format!("{shape} {across} {v} {h}: {off:?}"));
                }
            }
        }
    }
    none_failed(&failed);
}

/// Slabs on bodies that fixed joints tie to the world, beside each other and beside terrain.
#[test]
fn balls_keep_their_speed_on_fixed_bodies() {
    let slab = |name: &str, x: f64| {
        format!(
            "[mechanism.bodies.{name}]\nmass = 5.0\ninertia = [1.0, 1.0, 1.0]\n\
             contacts.a = {{ shape = {{ box = [2.0, 2.0, 0.2] }}, position = [{x:?}, 0.0, -0.1], friction = 0.0, group = \"deck\", against = [\"ball\"] }}\n\
             [mechanism.joints.{name}]\nkind = \"fixed\"\nchild = \"{name}\"\n"
        )
    };
    let beside = terrain("t", "{ box = [2.0, 2.0, 0.2] }", [1.0, 0.0, -0.1], 0.0);
    let floors = [
        slab("z0", -1.0) + &slab("z1", 1.0),
        beside + &slab("z0", -1.0),
    ];
    let mut failed = vec![];
    for floor in &floors {
        for (v, h) in [
            (3.0, 0.005),
            (1.0, 0.01),
            (2.7, 0.002),
            (8.0, 0.01),
            (0.5, 0.01),
        ] {
            let steps = (1.2_f64 / (v * h)).round();
            let text = format!(
                "time_step = {h}\nhorizon = {}\n{floor}\
                 [mechanism.bodies.b]\nmass = 1.0\nshape = {{ sphere = 0.05 }}\nfree = true\n\
                 contacts.c = {{ friction = 0.0, group = \"ball\", against = [\"deck\", \"ground\"] }}\n\
                 [initial]\nb = {{ position = [-0.6, 0.1, 0.05], velocity = [{v:?}, 0.0, 0.0] }}\n",
                steps * h
            );
            let knots = motion(&text).map(|(_, knots)| knots);
            let keeps = knots.map(|x| {
                // behind the slabs
                let [a, b] = [2, 1].map(|back| &x[x.len() - back]);
                (b[b.len() - 1].x.x - a[a.len() - 1].x.x) / (h * v) - 1.0
            });
            if !keeps.as_ref().is_ok_and(|off| off.abs() < 1e-6) {
                failed.push(format!("{v} {h}: {keeps:?}"));
            }
        }
    }
    none_failed(&failed);
}
