//! Cylinders and capsules that roll obliquely over the edge of a table, meet side by side, and lie in piles.

use super::thin::energy;
use super::{motion, none_failed};
use crate::common::Source;
use least_action::spatial::{Pose, Vec3};
use std::f64::consts::FRAC_PI_2;

/// How deep what rolls over an edge, or lies in a pile, may enter another at a knot, m.
const DEEPEST: f64 = 1e-9;
/// Gravity of the files, m/s^2.
const GRAVITY: f64 = 9.81;

/// By how much the speeds after an impact may differ, m/s: the last kappa pushes bodies apart that have met, balls by 1e-5 m/s in 0.1 s.
const AFTER: f64 = 3e-5;

/// Half edges of the table, m.
const TABLE: [f64; 3] = [0.3, 1.0, 0.1];
/// Mass of a rod, kg.
const MASS: f64 = 0.5;

/// A capsule or a cylinder, m.
#[derive(Clone, Copy)]
struct Rod {
    radius: f64,
    length: f64,
    is_capsule: bool,
}

impl Rod {
    fn shape(&self) -> String {
        let kind = if self.is_capsule {
            "capsule"
        } else {
            "cylinder"
        };
        let (radius, length) = (self.radius, self.length);
        format!("{{ {kind} = {{ radius = {radius:?}, length = {length:?} }} }}")
    }
}

/// The largest of a function of a number that rises and then falls.
fn top(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..80 {
        let (p, q) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if f(p) < f(q) {
            low = p;
        } else {
            high = q;
        }
    }
    f(0.5 * (low + high))
}

/// How far a rod and a box are apart, m, the rod's pose in the box's frame. Of a capsule from the distance of its axis; of a cylinder
/// along the best of the normals of faces, ends, edges with the side, corners with the side, and edges with rims.
fn apart(half: &Vec3, rod: &Rod, pose: &Pose) -> f64 {
    let axis = Vec3::from(pose.r.column(2));
    let outside = |p: &Vec3| Vec3::from_fn(|k, _| (p[k].abs() - half[k]).max(0.0)).norm();
    if rod.is_capsule {
        let end = 0.5 * rod.length;
        return -top(-end, end, |s| -outside(&(pose.x + axis * s))) - rod.radius;
    }
    let by = |n: &Vec3| {
        n.dot(&pose.x)
            - half.dot(&n.abs())
            - rod.radius * n.cross(&axis).norm()
            - 0.5 * rod.length * n.dot(&axis).abs()
    };
    let mut best = f64::NEG_INFINITY;
    let mut ask = |n: Vec3| {
        if let Some(n) = n.try_normalize(1e-9) {
            best = best.max(by(&n)).max(by(&-n));
        }
    };
    ask(axis);
    for k in 0..3 {
        let e = Vec3::ith(k, 1.0);
        ask(e);
        ask(e.cross(&axis));
    }
    for corner in 0..8 {
        let sign = |k: usize| if corner >> k & 1 == 1 { 1.0 } else { -1.0 };
        let out = Vec3::from_fn(|k, _| half[k] * sign(k)) - pose.x;
        ask(out - axis * axis.dot(&out));
    }
    for k in 0..3 {
        let (u, v) = (Vec3::ith((k + 1) % 3, 1.0), Vec3::ith((k + 2) % 3, 1.0));
        let at = |angle: f64| by(&(u * angle.cos() + v * angle.sin()));
        let part = std::f64::consts::TAU / 64.0;
        for i in 0..64 {
            let middle = f64::from(i) * part;
            if at(middle) > best - 0.01 {
                best = best.max(top(middle - part, middle + part, at));
            }
        }
    }
    best
}

/// Every third rod also turns about the vertical as it rolls, and may stay on the table.
fn turns(seed: u64) -> bool {
    seed % 3 == 2
}

/// A rod that rolls over the edge of a table, its axis at some angle to the edge, with either integrator, or on a table that is free.
fn over_the_edge(seed: u64) -> (String, Rod, bool, f64) {
    let mut source = Source::new(seed);
    let mut share = || 0.5 + 0.5 * source.unit();
    let rod = Rod {
        radius: 0.02 + 0.02 * share(),
        length: 0.2 + 0.2 * share(),
        is_capsule: seed.is_multiple_of(2),
    };
    let h = [0.01, 0.005, 0.002][(seed / 2 % 3) as usize];
    let is_free = seed % 4 > 1;
    let integrator = if is_free || seed % 8 > 3 {
        "maximal"
    } else {
        "minimal"
    };
    let (angle, speed) = (0.08 + share(), 0.3 + 0.7 * share());
    // about the vertical, which is -y of the rod
    let turn = if turns(seed) {
        20.0 * share() - 10.0
    } else {
        0.0
    };
    let friction =
        "contacts.c = { friction = 0.5, group = \"all\", against = [\"all\", \"ground\"] }";
    let mut text = format!(
        "time_step = {h}\nhorizon = 0.8\nintegrator = \"{integrator}\"\n[mechanism.half_spaces.floor]\n"
    );
    text += &if is_free {
        format!(
            "[mechanism.bodies.table]\nmass = 20.0\nshape = {{ box = [0.6, 2.0, 0.2] }}\nfree = true\n{friction}\n\
             [initial.table]\nposition = [0.0, 0.0, 0.1]\n"
        )
    } else {
        super::terrain("table", "{ box = [0.6, 2.0, 0.2] }", [0.0, 0.0, 0.1], 0.5)
    };
    let (sin, cos) = angle.sin_cos();
    text += &format!(
        "[mechanism.bodies.rod]\nmass = {MASS}\nshape = {}\nfree = true\n{friction}\n\
         [initial.rod]\nposition = [{}, 0.0, {}]\norientation = {{ rpy = [{}, 0.0, {angle}] }}\n\
         velocity = [{}, {}, 0.0]\nangular_velocity = [0.0, {}, {}]\n",
        rod.shape(),
        0.3 - 0.2 * speed,
        0.2 + rod.radius,
        -FRAC_PI_2,
        speed * cos,
        speed * sin,
        -turn,
        speed / rod.radius
    );
    (text, rod, is_free, h)
}

#[test]
fn rods_roll_obliquely_over_an_edge() {
    let (mut failed, mut deepest, mut gained) = (vec![], 0.0_f64, 0.0_f64);
    for seed in 0..48 {
        let (text, rod, is_free, h) = over_the_edge(seed);
        let (m, knots) = match motion(&text) {
            Ok(found) => found,
            Err(e) => {
                failed.push(format!("{seed}: {e}"));
                continue;
            }
        };
        let index = |name: &str| m.bodies.iter().position(|b| b.name == name);
        let rod_is = index("rod").expect("a rod");
        let (mut least, mut crossed) = (f64::INFINITY, false);
        for poses in &knots {
            let table = if is_free {
                poses[index("table").expect("a table")]
            } else {
                Pose::new(Vec3::new(0.0, 0.0, 0.1), Default::default())
            };
            let own = &poses[rod_is];
            let local = Pose::new(
                table.r.tr_mul(&(own.x - table.x)),
                table.q.inverse() * own.q,
            );
            least = least.min(apart(&Vec3::from(TABLE), &rod, &local));
            crossed |= local.x.x > TABLE[0] && local.x.z < TABLE[2] + rod.radius - 1e-3;
        }
        // of energies in the middle of intervals, what the step itself leaves of a motion whose accelerations are some g
        let may = MASS * (GRAVITY * h).powi(2);
        let all = knots.windows(2).map(|k| energy(&m, [&k[0], &k[1]], h));
        let (mut lowest, mut rise) = (f64::INFINITY, 0.0_f64);
        for e in all {
            lowest = lowest.min(e);
            rise = rise.max(e - lowest);
        }
        (deepest, gained) = (deepest.max(-least), gained.max(rise / may));
        if least < -DEEPEST || rise > may || !(crossed || turns(seed)) {
            failed.push(format!(
                "{seed}: apart by {least:e} m, gains {rise:e} of {may:e} J, crosses: {crossed}"
            ));
        }
    }
    println!("deepest {deepest:e} m, gains {gained} of what they may");
    none_failed(&failed);
}

/// Two equal cylinders side by side, at rest and at 1 m/s against it, without restitution: they go on together. Turned in space, of
/// several lengths, exactly level or one shifted along the axis.
#[test]
fn level_cylinders_share_their_momentum() {
    let mut failed = vec![];
    for (i, h) in [0.01, 0.005, 0.002, 0.001, 0.0005].into_iter().enumerate() {
        for turn in [[0.0_f64; 3], [FRAC_PI_2, 0.0, 0.0], [0.3, 0.5, 0.7]] {
            for is_capsule in [false, true] {
                let rod = Rod {
                    radius: 0.1,
                    length: [0.3, 0.1, 1.0][i % 3],
                    is_capsule,
                };
                // the x axis of rpy angles
                let [_, pitch, yaw] = turn;
                let along = Vec3::new(
                    yaw.cos() * pitch.cos(),
                    yaw.sin() * pitch.cos(),
                    -pitch.sin(),
                );
                let from = along * -0.25;
                let body = |name: &str| {
                    format!(
                        "[mechanism.bodies.{name}]\nmass = 1.0\nshape = {}\nfree = true\n\
                         contacts.c = {{ friction = 0.3, group = \"all\", against = [\"all\"] }}\n",
                        rod.shape()
                    )
                };
                let text = format!(
                    "time_step = {h}\nhorizon = 0.1\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n{}{}\
                     [initial]\na = {{ position = {:?}, orientation = {{ rpy = {turn:?} }}, velocity = {:?} }}\n\
                     b = {{ position = [0.0, 0.0, 0.0], orientation = {{ rpy = {turn:?} }} }}\n",
                    body("a"),
                    body("b"),
                    from.as_slice(),
                    along.as_slice()
                );
                let case = format!("{h} {turn:?} {}", rod.shape());
                match motion(&text) {
                    Err(e) => failed.push(format!("{case}: {e}")),
                    Ok((_, knots)) => {
                        let [p, q] = [&knots[knots.len() - 2], &knots[knots.len() - 1]];
                        let speeds = [0, 1].map(|i| (q[i].x - p[i].x) / h - along * 0.5);
                        let turned = [0, 1].map(|i| (p[i].q.inverse() * q[i].q).angle() / h);
                        let worst = speeds.iter().map(Vec3::norm).fold(0.0, f64::max);
                        if worst > AFTER || turned[0].max(turned[1]) > 1e-6 {
                            failed.push(format!("{case}: off by {worst} m/s, {turned:?} rad/s"));
                        }
                    }
                }
            }
        }
    }
    none_failed(&failed);
}

/// Three logs on a floor, two above, one on top, all level, at rest or a little apart: they come to rest or fall apart, and enter nothing.
#[test]
fn piles_of_logs_fall_and_stand() {
    let mut failed = vec![];
    for (friction, gap, h) in [
        (0.8, 1e-3, 0.01),
        (0.8, 1e-4, 0.005),
        (0.3, 1e-3, 0.01),
        (0.3, 2e-4, 0.005),
        (0.0, 1e-3, 0.01),
    ] {
        let (radius, reach) = (0.1, 0.2 + gap);
        let mut text = format!("time_step = {h}\nhorizon = 0.5\n[mechanism.half_spaces.floor]\n");
        let mut initial = "[initial]\n".to_owned();
        let mut count = 0;
        for (row, n) in [(0.0, 3), (1.0, 2), (2.0, 1)] {
            for i in 0..n {
                let x = (f64::from(i) - 0.5 * f64::from(n - 1)) * reach;
                let z = radius + row * (0.75_f64.sqrt() * reach + gap);
                text += &format!(
                    "[mechanism.bodies.b{count}]\nmass = 1.0\nshape = {{ cylinder = {{ radius = {radius}, length = 0.5 }} }}\n\
                     free = true\ncontacts.c = {{ friction = {friction:?}, group = \"all\", against = [\"all\", \"ground\"] }}\n"
                );
                initial += &format!(
                    "b{count} = {{ position = [{x:?}, 0.0, {z:?}], orientation = {{ rpy = [1.5707963267948966, 0.0, 0.0] }} }}\n"
                );
                count += 1;
            }
        }
        let case = format!("friction {friction}, {gap} m, {h} s");
        match motion(&(text + &initial)) {
            Err(e) => failed.push(format!("{case}: {e}")),
            Ok((m, knots)) => {
                let mut least = f64::INFINITY;
                for poses in &knots {
                    for (i, p) in poses.iter().enumerate() {
                        least = least.min(p.x.z - radius);
                        let others = poses[..i].iter().map(|q| (p.x - q.x).xz().norm());
                        least = others.fold(least, |m, d| m.min(d - 2.0 * radius));
                    }
                }
                let of = |k: usize| energy(&m, [&knots[k], &knots[k + 1]], h);
                let (first, last) = (of(0), of(knots.len() - 2));
                // the axes stay level, so their distance is that of the logs
                if least < -DEEPEST || last > first {
                    failed.push(format!("{case}: apart by {least:e} m, {first} J, {last} J"));
                }
            }
        }
    }
    none_failed(&failed);
}
