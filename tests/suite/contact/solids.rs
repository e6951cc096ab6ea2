//! Boxes and hulls that fall on edges, corners and each other: none enters another, whatever the step.

use super::thin::energy;
use super::{bouncing, motion, none_failed, terrain};
use crate::common::Source;
use least_action::mechanism::{Collider, Mechanism, Surface};
use least_action::spatial::{Pose, Vec3};

/// What a shape may enter another by at a knot, m.
const DEEPEST: f64 = 1e-9;

/// Part of the energy at the start that a run may end with more than it began with: rounding.
const ROUNDING: f64 = 1e-9;

/// Drops of each kind: all shapes, steps and integrators, several times.
const DROPS: u64 = 96;

/// Corners of a collider in the world.
fn corners(c: &Collider, poses: &[Pose]) -> Vec<Vec3> {
    let local: Vec<Vec3> = match &c.surface {
        Surface::Box(edges) => {
            let half = Vec3::from(*edges) * 0.5;
            let sign = |i: usize, k: usize| if i >> k & 1 == 1 { half[k] } else { -half[k] };
            (0..8).map(|i| Vec3::from_fn(|k, _| sign(i, k))).collect()
        }
        Surface::Hull(hull) => {
            let points: Vec<[f64; 3]> = hull.clone().into();
            points.into_iter().map(Vec3::from).collect()
        }
        other => panic!("{other:?}"),
    };
    let pose = c.body.map_or(Pose::identity(), |body| poses[body]);
    let place = |p: Vec3| pose.point(&(c.position + c.orientation * p));
    local.into_iter().map(place).collect()
}

/// How far two polytopes are apart: along the best of the products of their corners' differences, among which are all normals of faces and
/// all products of edges, m.
fn apart(a: &[Vec3], b: &[Vec3]) -> f64 {
    let middle = |s: &[Vec3]| s.iter().sum::<Vec3>() / s.len() as f64;
    let reach = |s: &[Vec3]| {
        let from = s.iter().map(|p| (p - middle(s)).norm());
        from.fold(0.0, f64::max)
    };
    let span = (middle(b) - middle(a)).norm() - reach(a) - reach(b);
    if span > 0.0 {
        return span;
    }
    let differences = |s: &[Vec3]| {
        let pairs = (0..s.len()).flat_map(|i| (0..i).map(move |k| (i, k)));
        let all = pairs.map(|(i, k)| s[i] - s[k]);
        all.collect::<Vec<Vec3>>()
    };
    let mut all = differences(a);
    all.extend(differences(b));
    let mut most = f64::NEG_INFINITY;
    for (i, u) in all.iter().enumerate() {
        for v in &all[..i] {
            let Some(n) = u.cross(v).try_normalize(1e-7 * u.norm() * v.norm()) else {
                continue;
            };
            let ends = |s: &[Vec3]| {
                let along = s.iter().map(|p| n.dot(p));
                along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), h| {
                    (low.min(h), high.max(h))
                })
            };
            let ((low, high), (from, to)) = (ends(a), ends(b));
            most = most.max(from - high).max(low - to);
        }
    }
    most
}

/// The least distance of any two solids, or of one and the floor, m.
fn least(m: &Mechanism, poses: &[Pose]) -> f64 {
    let all: Vec<Vec<Vec3>> = m.colliders.iter().map(|c| corners(c, poses)).collect();
    let floor = all.iter().flatten().map(|p| p.z);
    let pairs = (0..all.len()).flat_map(|i| (0..i).map(move |k| (i, k)));
    let between = pairs.map(|(i, k)| apart(&all[i], &all[k]));
    floor.chain(between).fold(f64::INFINITY, f64::min)
}

/// A shape and how far it reaches.
fn solid(s: &mut Source, kind: usize) -> (String, f64) {
    let mut size = |from: f64, to: f64| from + 0.5 * (to - from) * (1.0 + s.unit());
    let edges = match kind {
        0 => [size(0.06, 0.25), size(0.06, 0.25), size(0.06, 0.25)],
        // plates, and boards
        1 => [size(0.1, 0.3), size(0.1, 0.3), size(0.01, 0.03)],
        2 => [size(0.1, 0.3), size(0.01, 0.03), size(0.01, 0.03)],
        _ => [size(0.1, 0.3), size(0.1, 0.3), size(0.1, 0.3)],
    };
    let half = Vec3::from(edges) * 0.5;
    let points: &[[f64; 3]] = match kind {
        0..=2 => return (format!("box = {edges:?}"), half.norm()),
        3 => &[
            [0.75, 0.75, 0.75],
            [0.75, -0.75, -0.75],
            [-0.75, 0.75, -0.75],
            [-0.75, -0.75, 0.75],
        ],
        4 => &[
            [1.0, 0.0, 0.0],
            [-1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.0, 0.0, -1.0],
        ],
        _ => &[
            [-1.0, -0.7, -0.7],
            [1.0, -0.7, -0.7],
            [0.0, 1.4, -0.7],
            [-1.0, -0.7, 0.7],
            [1.0, -0.7, 0.7],
            [0.0, 1.4, 0.7],
        ],
    };
    let points: Vec<Vec3> = points
        .iter()
        .map(|p| Vec3::from(*p).component_mul(&half))
        .collect();
    let reach = points.iter().map(Vec3::norm).fold(0.0, f64::max);
    let list: Vec<String> = points
        .iter()
        .map(|p| format!("{:?}", [p.x, p.y, p.z]))
        .collect();
    (format!("hull = [{}]", list.join(", ")), reach)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Onto {
    /// Edges and corners of a box of the world, level or tilted.
    Fixed,
    /// A free box or plate on the floor.
    Lying,
    /// Another free solid that falls, too.
    Falling,
}

/// A solid that falls on another, and its time step.
fn scene(onto: Onto, seed: u64) -> (String, f64) {
    let s = &mut Source::new(1000 * onto as u64 + seed);
    let h: f64 = [0.002, 0.005, 0.01, 0.02][seed as usize % 4];
    // rates of a tree with two roots are those of the maximal coordinates alone
    let integrator = match onto {
        Onto::Fixed => ["maximal", "minimal"][seed as usize / 4 % 2],
        _ => "maximal",
    };
    let friction = [0.0, 0.3, 1.0][s.below(3)];
    let mut text = format!(
        "time_step = {h}\nhorizon = {}\nintegrator = \"{integrator}\"\n[mechanism.half_spaces.floor]\nfriction = {friction:?}\n",
        (0.7 / h).round() * h
    );
    let body = |name: &str, shape: &str, mass: f64| {
        let inertia = [0.8e-2 * mass, 0.9e-2 * mass, 1e-2 * mass];
        format!(
            "[mechanism.bodies.{name}]\nmass = {mass:?}\ninertia = {inertia:?}\nfree = true\n\
             contacts.c = {{ friction = {friction:?}, group = \"all\", against = [\"all\", \"ground\"], shape = {{ {shape} }} }}\n"
        )
    };
    let state = |name: &str, [x, v, w]: [[f64; 3]; 3], rpy: [f64; 3]| {
        format!(
            "{name} = {{ position = {x:?}, velocity = {v:?}, angular_velocity = {w:?}, orientation = {{ rpy = {rpy:?} }} }}\n"
        )
    };
    let motion = |s: &mut Source| {
        let ([a, b, c], w) = (s.array3(), s.array3());
        [[0.7 * a, 0.7 * b, c - 1.0], w.map(|w| 8.0 * w)]
    };
    let (shape, reach) = solid(s, seed as usize % 6);
    text += &body("b", &shape, 1.0 + 0.8 * s.unit());
    let mut initial = "[initial]\n".to_owned();
    let ([x, y, _], [tilt, roll, yaw]) = (s.array3(), s.array3());
    let (beside, top) = match onto {
        Onto::Fixed => {
            let e = [0.25 + 0.15 * x, 0.25 + 0.15 * y, 0.2];
            let shape = format!("{{ box = {e:?} }}");
            let tilted = seed.is_multiple_of(3);
            let up = if tilted { 0.3 } else { 0.1 };
            let block = terrain("block", &shape, [0.0, 0.0, up], friction);
            let rpy = if tilted {
                [0.6 * tilt, 0.6 * roll, 3.0 * yaw]
            } else {
                [0.0; 3]
            };
            text += &format!("{block}orientation = {{ rpy = {rpy:?} }}\n");
            let [p, q, _] = s.array3();
            ([0.5 * e[0] * (1.0 + 0.3 * p), 0.65 * e[1] * q], 2.0 * up)
        }
        Onto::Lying => {
            let e = [0.25 + 0.1 * x, 0.25 + 0.1 * y, [0.02, 0.2][s.below(2)]];
            text += &body("other", &format!("box = {e:?}"), 1.0 + 0.8 * s.unit());
            let at = [0.0, 0.0, 0.5 * e[2] + 1e-4];
            initial += &state("other", [at, [0.0; 3], [0.0; 3]], [0.0; 3]);
            let [p, q, _] = s.array3();
            ([0.6 * e[0] * p, 0.6 * e[1] * q], e[2])
        }
        Onto::Falling => {
            let kind = s.below(6);
            let (shape, reach) = solid(s, kind);
            text += &body("other", &shape, 1.0 + 0.8 * s.unit());
            let [v, w] = motion(s);
            let at = [0.0, 0.0, reach + 0.03];
            initial += &state("other", [at, v, w], s.array3().map(|a| 3.0 * a));
            ([0.1 * x, 0.1 * y], 2.0 * reach + 0.03)
        }
    };
    let [v, w] = motion(s);
    let at = [beside[0], beside[1], top + reach + 0.02];
    let turn = [3.0, 3.0, 0.3][s.below(3)];
    initial += &state("b", [at, v, w], s.array3().map(|a| turn * a));
    (text + &initial, h)
}

/// What is wrong with a drop whose bodies are at least so far apart at all knots: an overlap of more than 1e-9 m, or more energy at the end
/// than at the start.
pub(super) fn wrong(m: &Mechanism, knots: &[Vec<Pose>], h: f64, least: f64) -> Option<String> {
    if least < -DEEPEST {
        return Some(format!("{least:e} m"));
    }
    let n = knots.len();
    let ends = [&knots[..2], &knots[n - 2..]].map(|k| energy(m, [&k[0], &k[1]], h));
    (ends[1] > ends[0] * (1.0 + ROUNDING)).then(|| format!("{ends:?} J"))
}

/// None of the drops overlaps by more than 1e-9 m at a knot, none has a step that is not solved, and impacts and friction take energy.
fn none_enters(onto: Onto, bounces: bool) {
    let (mut failed, mut worst) = (vec![], 0.0_f64);
    for seed in 0..DROPS {
        let (mut text, h) = scene(onto, seed);
        if bounces {
            text = bouncing(&text, seed);
        }
        let (m, knots) = match motion(&text) {
            Ok(motion) => motion,
            Err(e) => {
                failed.push(format!("{seed}: {e}"));
                continue;
            }
        };
        let all = knots.iter().map(|poses| least(&m, poses));
        let least = all.fold(f64::INFINITY, f64::min);
        worst = worst.max(-least);
        failed.extend(wrong(&m, &knots, h, least).map(|why| format!("{seed}: {why}")));
    }
    println!("{onto:?}: deepest {worst:e}");
    none_failed(&failed);
}

#[test]
fn nothing_enters_edges_and_corners_of_the_world() {
    none_enters(Onto::Fixed, false);
}

#[test]
fn nothing_enters_what_lies_on_the_floor() {
    none_enters(Onto::Lying, false);
}

#[test]
fn nothing_enters_what_falls_too() {
    none_enters(Onto::Falling, false);
}

#[test]
fn what_bounces_does_not_enter_either() {
    for onto in [Onto::Fixed, Onto::Lying, Onto::Falling] {
        none_enters(onto, true);
    }
}
