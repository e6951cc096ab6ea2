//! Height fields: what slides over their triangles feels bends alone, not where triangles join.

use super::{motion, none_failed};
use least_action::spatial::Vec3;

/// A field whose heights vary along x.
fn field(heights: &[f64], spacing: f64) -> String {
    let rows: Vec<_> = heights.iter().map(|z| vec![*z; 7]).collect();
    format!(
        "[mechanism.terrain.field]\nshape = {{ heights = {{ heights = {rows:?}, spacing = [{spacing:?}, 0.4] }} }}\n\
         position = [0.0, -1.2, 0.0]\nfriction = 0.0\n"
    )
}

/// Where what slides is at every knot, from `x = 0.317`, without friction.
fn slide(
    field: &str,
    shape: &str,
    from: (f64, f64),
    at: (f64, f64, &str),
) -> Result<Vec<Vec3>, String> {
    let (_, knots) = motion(&sliding(field, shape, "friction = 0.0", from, at))?;
    Ok(knots.iter().map(|poses| poses[0].x).collect())
}

/// What moves along x from `x = 0.317`.
fn sliding(
    ground: &str,
    shape: &str,
    touch: &str,
    (z, seconds): (f64, f64),
    (v, h, integrator): (f64, f64, &str),
) -> String {
    let steps = (seconds / h).round();
    format!(
        "time_step = {h}\nhorizon = {}\nintegrator = \"{integrator}\"\n{ground}\
         [mechanism.bodies.b]\nmass = 1.0\nshape = {{ sphere = 0.05 }}\nfree = true\n\
         contacts.c = {{ shape = {shape}, {touch} }}\n\
         [initial]\nb = {{ position = [0.317, 0.013, {z}], velocity = [{v:?}, 0.0, 0.0] }}\n",
        steps * h
    )
}

/// Speed, m/s, time step, s, and integrator.
const RUNS: [(f64, f64, &str); 5] = [
    (3.0, 0.01, "minimal"),
    (1.0, 0.01, "maximal"),
    (3.0, 0.001, "minimal"),
    (10.0, 0.01, "maximal"),
    (0.3, 0.005, "minimal"),
];

/// Seconds to go a way of at most 3 m.
fn time(v: f64) -> f64 {
    (3.0 / v).min(0.4)
}

/// Cells smaller and larger than balls, and ways of a step that end on edges.
#[test]
fn flat_fields_stop_nothing() {
    let shapes = [
        ("{ sphere = 0.05 }", 0.05),
        ("{ sphere = 0.01 }", 0.01),
        ("{ capsule = { radius = 0.03, length = 0.2 } }", 0.13),
        ("\"point\"", 0.0),
        ("{ box = [0.1, 0.1, 0.1] }", 0.05),
        ("{ cylinder = { radius = 0.05, length = 0.1 } }", 0.05),
    ];
    let mut failed = vec![];
    for spacing in [0.01, 0.02, 0.05, 0.07, 0.25] {
        let flat = field(&vec![0.0; (4.0 / spacing) as usize], spacing);
        for (shape, z) in shapes {
            for at in RUNS {
                let (v, h, _) = at;
                let knots = slide(&flat, shape, (z, time(v)), at);
                let off = knots.map(|x| {
                    let way = v * h * (x.len() - 1) as f64;
                    (x[x.len() - 1] - Vec3::new(0.317 + way, 0.013, z)).norm() / way
                });
                if !off.as_ref().is_ok_and(|off| *off < 1e-6) {
                    failed.push(format!("{spacing} {shape} {at:?}: {off:?}"));
                }
            }
        }
    }
    none_failed(&failed);
}

/// Balls that roll, and that rebound, move on flat fields as on a half-space.
#[test]
fn flat_fields_are_planes() {
    let plane = "[mechanism.half_spaces.ground]\nfriction = 0.0\n";
    let mut failed = vec![];
    for spacing in [0.02, 0.05, 0.25] {
        let flat = field(&vec![0.0; (4.0 / spacing) as usize], spacing);
        for (touch, z) in [
            ("friction = 0.5", 0.05),
            ("friction = 0.3, restitution = 0.5", 0.15),
        ] {
            // joint coordinates know no rebounds
            let runs = RUNS.map(|(v, h, integrator)| match z > 0.1 {
                true => (v, h, "maximal"),
                false => (v, h, integrator),
            });
            for at in runs {
                let of = |ground: &str| {
                    let shape = "{ sphere = 0.05 }";
                    motion(&sliding(ground, shape, touch, (z, time(at.0)), at)).map(|(_, k)| k)
                };
                let apart = of(&flat).and_then(|on_field| {
                    let pairs = on_field.into_iter().zip(of(plane)?);
                    let each = pairs.map(|(a, b)| (a[0].x - b[0].x).norm());
                    Ok(each.fold(0.0, f64::max))
                });
                if !apart.as_ref().is_ok_and(|apart| *apart < 1e-6) {
                    failed.push(format!("{spacing} {touch} {at:?}: {apart:?} m"));
                }
            }
        }
    }
    none_failed(&failed);
}

/// At a bend that rises by `delta` a ball keeps the share `cos delta` of its speed, but for the gravity of the step that meets it.
#[test]
fn a_ball_keeps_its_speed_along_a_slope() {
    let mut failed = vec![];
    for bend in [0.05_f64, 0.1, 0.2, 0.4, 0.8] {
        let slope = |x: f64| bend.tan() * (x - 1.0).max(0.0);
        for (spacing, radius) in [
            (0.05, 0.05),
            (0.2, 0.05),
            (1.0, 0.05),
            (0.1, 0.02),
            (0.02, 0.1),
        ] {
            let heights: Vec<f64> = (0..(3.0 / spacing) as usize)
                .map(|i| slope(i as f64 * spacing))
                .collect();
            let ground = field(&heights, spacing);
            for at in [
                (3.0, 0.01, "minimal"),
                (3.0, 0.002, "maximal"),
                (1.7, 0.01, "maximal"),
            ] {
                let (v, h, _) = at;
                let shape = format!("{{ sphere = {radius:?} }}");
                let speed = slide(&ground, &shape, (radius, 0.8 / v), at).map(|x| {
                    let [a, b] = [x[x.len() - 2], x[x.len() - 1]];
                    // and what the climb took
                    let kinetic = 0.5 * (b - a).norm_squared() / (h * h);
                    (2.0 * (kinetic + 9.81 * (0.5 * (a.z + b.z) - radius))).sqrt()
                });
                let expected = v * bend.cos();
                let off = speed.map(|s| s - expected);
                // second order above
                if !off
                    .as_ref()
                    .is_ok_and(|off| (-1.1 * 9.81 * h..2e-3).contains(off))
                {
                    failed.push(format!("{bend} {spacing} {radius} {at:?}: {off:?} m/s"));
                }
            }
        }
    }
    none_failed(&failed);
}

/// Rolling hills, valleys and steps of cells: a ball is at its radius from the ground, or more.
#[test]
fn balls_do_not_sink_into_fields() {
    type Ground = fn(f64) -> f64;
    let grounds: [(&str, Ground); 5] = [
        ("waves", |x| 0.1 * (1.0 - (3.0 * (x - 0.4).max(0.0)).cos())),
        ("a hill", |x| 0.3 * (-((x - 1.5) / 0.3).powi(2)).exp()),
        ("a ramp", |x| 0.6 * (x - 0.8).max(0.0)),
        ("a valley", |x| 0.4 * (x - 1.2).max(0.4 - x)),
        ("a ridge", |x| (0.1 - 0.5 * (x - 1.0).abs()).max(0.0)),
    ];
    let mut failed = vec![];
    for (name, ground) in grounds {
        for spacing in [0.05, 0.13, 0.25] {
            let heights: Vec<f64> = (0..(4.0 / spacing) as usize)
                .map(|i| ground(i as f64 * spacing))
                .collect();
            let text = field(&heights, spacing);
            for radius in [0.01, 0.05, 0.1] {
                for at in RUNS {
                    let shape = format!("{{ sphere = {radius:?} }}");
                    let z = 0.2 + radius;
                    let knots = slide(&text, &shape, (z, time(at.0)), at);
                    let deepest = knots.map(|x| {
                        let gaps = x.iter().map(|x| above(&heights, spacing, x) - radius);
                        gaps.fold(f64::INFINITY, f64::min)
                    });
                    if !deepest.as_ref().is_ok_and(|d| *d > -1e-9) {
                        failed.push(format!("{name} {spacing} {radius} {at:?}: {deepest:?}"));
                    }
                }
            }
        }
    }
    none_failed(&failed);
}

/// Distance of a place from a profile, negative below it, m.
fn above(heights: &[f64], spacing: f64, at: &Vec3) -> f64 {
    let y = nalgebra::Vector2::new(at.x, at.z);
    let mut least = f64::INFINITY;
    let mut below = false;
    for (i, ends) in heights.windows(2).enumerate() {
        let a = nalgebra::Vector2::new(i as f64 * spacing, ends[0]);
        let b = nalgebra::Vector2::new((i + 1) as f64 * spacing, ends[1]);
        let share = (b - a).dot(&(y - a)) / (b - a).norm_squared();
        least = least.min((y - a - (b - a) * share.clamp(0.0, 1.0)).norm());
        if (a.x..b.x).contains(&y.x) {
            below = y.y < a.y + (b.y - a.y) * (y.x - a.x) / spacing;
        }
    }
    if below { -least } else { least }
}
