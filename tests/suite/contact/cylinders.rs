//! Ends of cylinders that come down: how far any part of a rim enters what it lands on, with both integrators.

use super::separation::separation;
use super::{bouncing, motion, terrain};
use least_action::mechanism::{Collider, Mechanism, Surface};
use least_action::spatial::Pose;
use std::f64::consts::FRAC_PI_2;

/// Numbers between -1 and 1, others for every seed.
struct Numbers(f64);

impl Numbers {
    fn next(&mut self, scale: f64) -> f64 {
        // Weyl's sequence, scrambled
        self.0 += 0.754_877_666_246_693;
        ((self.0 * 1e3).sin() * 1e4)
            .rem_euclid(2.0)
            .mul_add(scale, -scale)
    }

    fn three(&mut self, scale: f64) -> [f64; 3] {
        std::array::from_fn(|_| self.next(scale))
    }
}

/// The least height of all cylinders, exactly: `z - r |a x z| - l/2 |a.z|`, m.
fn lowest(m: &Mechanism, poses: &[Pose]) -> f64 {
    let of = |c: &least_action::mechanism::Collider| {
        let Surface::Cylinder { radius, length } = c.surface else {
            return f64::INFINITY;
        };
        let pose = &poses[c.body.expect("a body's")];
        let a = pose.r * c.orientation.column(2);
        pose.point(&c.position).z - radius * a.x.hypot(a.y) - 0.5 * length * a.z.abs()
    };
    m.colliders.iter().map(of).fold(f64::INFINITY, f64::min)
}

/// How far cylinders are apart from all that is not on the same body or joined to it, m: negative where they overlap.
fn apart(m: &Mechanism, poses: &[Pose]) -> f64 {
    let world = Pose::identity();
    let placed = |c: &Collider| c.body.map_or(world, |body| poses[body]);
    let is_round = |c: &Collider| matches!(c.surface, Surface::Cylinder { .. });
    let is_joined = |a: Option<usize>, b: Option<usize>| {
        let ends = m.joints.iter().map(|j| (j.parent, Some(j.child)));
        ends.into_iter().any(|e| e == (a, b) || e == (b, a))
    };
    let mut least = f64::INFINITY;
    for (i, a) in m.colliders.iter().enumerate() {
        for b in &m.colliders[..i] {
            let is_world = a.body.is_none() || b.body.is_none();
            let may_meet = a.body != b.body && (is_world || !is_joined(a.body, b.body));
            if may_meet && (is_round(a) || is_round(b)) {
                least = least.min(separation((a, &placed(a)), (b, &placed(b))));
            }
        }
    }
    least
}

/// What a shape may enter another by at a knot, m.
const DEEPEST: f64 = 1e-9;

const GROUND: &str = "[mechanism.half_spaces.ground]\n";
const SLAB: &str = "[mechanism.terrain.ground]\nshape = { box = [20.0, 20.0, 2.0] }\nposition = [0.0, 0.0, -1.0]\nfriction = 0.5\n";
const WEDGE: &str = "[mechanism.terrain.ground]\nshape = { hull = [[-9, -9, -2], [9, -9, -2], [0, 12, -2], [-9, -9, 0], [9, -9, 0], [0, 12, 0]] }\nfriction = 0.5\n";

/// A thrown cylinder, or two that a joint holds together.
fn thrown(seed: usize, ground: &str, integrator: &str, joint: Option<&str>) -> String {
    let s = &mut Numbers(seed as f64);
    let [radius, length] = [0.11 + s.next(0.09), 0.16 + s.next(0.14)];
    let h = [0.002, 0.005, 0.01, 0.02][seed % 4];
    let cylinder = format!("{{ cylinder = {{ radius = {radius}, length = {length} }} }}");
    let mut text = format!(
        "time_step = {h}\nhorizon = {}\nintegrator = \"{integrator}\"\n{ground}",
        150.0 * h
    );
    let body = |name: &str, free: &str| {
        format!(
            "[mechanism.bodies.{name}]\nmass = 1.0\nshape = {cylinder}\n{free}\
             contacts.c = {{ friction = {} }}\n",
            0.3 * (seed % 3) as f64
        )
    };
    text += &body("b", "free = true\n");
    if let Some(kind) = joint {
        text += &body("other", "");
        let at = 0.5 * length + 0.02;
        text += &format!(
            "[mechanism.joints.j]\nkind = \"{kind}\"\nparent = \"b\"\nchild = \"other\"\ndamping = 0.02\n\
             parent_anchor = [0.0, 0.0, {at}]\nchild_anchor = [0.0, 0.0, {}]\n",
            -at
        );
    }
    let turn = if seed.is_multiple_of(2) { 3.0 } else { 0.3 };
    text += &format!(
        "[initial]\nb = {{ position = [0.0, 0.0, {}], orientation = {{ rpy = {:?} }}, velocity = {:?}, angular_velocity = {:?} }}\n",
        if joint.is_some() { 1.0 } else { 0.45 },
        s.three(turn),
        s.three(1.0),
        s.three(5.0)
    );
    text
}

/// Of so many thrown cylinders all but `exceptions` are solved and do not enter the ground by more than `deepest` (m) at a knot.
fn none_sinks(
    (seeds, exceptions): (usize, usize),
    ground: &str,
    joint: Option<&str>,
    deepest: f64,
) {
    none_overlaps((seeds, exceptions), deepest, &|seed, integrator| {
        thrown(seed, ground, integrator, joint)
    });
}

/// Runs the scenes of all seeds. At most `exceptions` of them may fail, or have a cylinder that overlaps anything by more than `deepest` (m) at a knot.
fn none_overlaps(
    (seeds, exceptions): (usize, usize),
    deepest: f64,
    scene: &dyn Fn(usize, &str) -> String,
) {
    let mut failed = vec![];
    let (mut worst, mut overlaps) = (0.0_f64, 0);
    for seed in 0..seeds {
        let integrator = ["maximal", "minimal"][seed / 4 % 2];
        let case = format!("{seed} {integrator}");
        match motion(&scene(seed, integrator)) {
            Err(e) => failed.push(format!("{case}: {e}")),
            Ok((m, knots)) => {
                let grounded = !m.half_spaces.is_empty();
                let all = knots.iter().map(|poses| {
                    let floor = if grounded {
                        lowest(&m, poses)
                    } else {
                        f64::INFINITY
                    };
                    floor.min(apart(&m, poses))
                });
                let least = all.fold(f64::INFINITY, f64::min);
                worst = worst.max(-least);
                overlaps += usize::from(least < -1e-9);
                if least < -deepest {
                    failed.push(format!("{case}: {least:e}"));
                }
            }
        }
    }
    println!("{seeds}: deepest {worst:e}, {overlaps} deeper than 1e-9");
    assert!(failed.len() <= exceptions, "{failed:#?}");
}

#[test]
fn no_end_sinks_into_a_half_space() {
    // one sinks by 6e-6 m, and one has a step of 0.02 s that is not solved
    none_sinks((200, 2), GROUND, None, 1e-9);
}

#[test]
fn no_end_sinks_into_a_box() {
    // one turns too fast for a step of 0.02 s
    none_sinks((100, 1), SLAB, None, DEEPEST);
}

#[test]
fn no_end_sinks_into_a_hull() {
    none_sinks((50, 0), WEDGE, None, DEEPEST);
}

#[test]
fn no_end_sinks_where_a_joint_holds_another() {
    // one sinks by 1.1e-9 m
    none_sinks((50, 1), GROUND, Some("spherical"), 1e-9);
}

/// What a cylinder is thrown on.
#[derive(Clone, Copy)]
enum Target {
    /// The edge of a box.
    Edge,
    /// A free box.
    Body,
    /// A free cylinder that stands or lies on the floor.
    Cylinder,
}

/// A coin, a can or a rod, thrown on the edge of a box, on a free box or on a free cylinder.
fn thrown_on(target: Target, seed: usize, integrator: &str) -> String {
    let s = &mut Numbers(100.0 * seed as f64 + 7.0);
    let mut cylinder = |kind: usize| {
        let (radius, ratio) = match kind {
            0 => (0.1 + s.next(0.05), 0.28 + s.next(0.17)),
            1 => (0.1 + s.next(0.05), 1.6 + s.next(0.8)),
            _ => (0.02 + s.next(0.01), 13.0 + s.next(7.0)),
        };
        (radius, radius * ratio)
    };
    let (radius, length) = cylinder(seed % 3);
    let (other, long) = cylinder(seed / 3 % 3);
    let h = [0.002, 0.005, 0.01][seed / 3 % 3];
    let friction = 0.3 * (seed % 3) as f64;
    let contacts = format!(
        "free = true\ncontacts.c = {{ friction = {friction}, group = \"all\", against = [\"all\", \"ground\"] }}\n"
    );
    let shape = |radius: f64, length: f64| {
        format!("shape = {{ cylinder = {{ radius = {radius}, length = {length} }} }}\n")
    };
    let edges = [0.35 + s.next(0.2), 0.35 + s.next(0.2), 0.2 + s.next(0.1)];
    let solid = format!("{{ box = {edges:?} }}");
    let lies = seed.is_multiple_of(2);
    let (height, at) = match target {
        Target::Cylinder if lies => (2.0 * other, other),
        Target::Cylinder => (long, 0.5 * long),
        _ => (edges[2], 0.5 * edges[2]),
    };
    // rates of a tree with two roots are those of the maximal coordinates alone
    let integrator = if let Target::Edge = target {
        integrator
    } else {
        "maximal"
    };
    let mut text = format!(
        "time_step = {h}\nhorizon = {}\nintegrator = \"{integrator}\"\n[mechanism.half_spaces.floor]\n",
        100.0 * h
    );
    let mut initial = "[initial]\n".to_owned();
    let below = match target {
        Target::Edge => {
            text += &terrain("table", &solid, [0.0, 0.0, at], 0.5);
            None
        }
        Target::Body => Some(format!("shape = {solid}\n")),
        Target::Cylinder => Some(shape(other, long)),
    };
    if let Some(below) = below {
        text += &format!("[mechanism.bodies.other]\nmass = 1.5\n{below}{contacts}");
        let roll = if matches!(target, Target::Cylinder) && lies {
            FRAC_PI_2
        } else {
            0.0
        };
        initial += &format!(
            "other = {{ position = [0.0, 0.0, {}], orientation = {{ rpy = [{roll:?}, 0.0, {:?}] }} }}\n",
            at + 1e-4,
            s.next(1.5)
        );
    }
    text += &format!(
        "[mechanism.bodies.b]\nmass = 1.0\n{}{contacts}",
        shape(radius, length)
    );
    let turn = if seed % 5 < 3 { 3.0 } else { 0.3 };
    let beside = match target {
        Target::Cylinder => [s.next(other), s.next(other)],
        _ => [0.5 * edges[0] * (1.0 + s.next(0.3)), s.next(0.5 * edges[1])],
    };
    let up = height + radius.hypot(0.5 * length) + 0.02;
    initial += &format!(
        "b = {{ position = [{}, {}, {up}], orientation = {{ rpy = {:?} }}, velocity = {:?}, angular_velocity = {:?} }}\n",
        beside[0],
        beside[1],
        s.three(turn),
        s.three(1.0),
        s.three(5.0)
    );
    text + &initial
}

#[test]
fn no_cylinder_enters_the_edge_of_a_box() {
    none_overlaps((60, 0), DEEPEST, &|seed, integrator| {
        thrown_on(Target::Edge, seed, integrator)
    });
}

#[test]
fn no_cylinder_enters_a_free_box() {
    none_overlaps((60, 0), DEEPEST, &|seed, integrator| {
        thrown_on(Target::Body, seed, integrator)
    });
}

#[test]
fn no_cylinder_enters_another() {
    none_overlaps((60, 0), DEEPEST, &|seed, integrator| {
        thrown_on(Target::Cylinder, seed, integrator)
    });
}

#[test]
fn no_cylinder_that_bounces_enters_anything() {
    // one overlaps by 4e-9 m
    none_overlaps((60, 1), DEEPEST, &|seed, integrator| {
        bouncing(&thrown(seed, GROUND, integrator, None), seed as u64)
    });
    // under aligned impacts one on a box, and three on another cylinder that stands on the floor, have a step that is not solved
    for (target, exceptions) in [(Target::Edge, 0), (Target::Body, 1), (Target::Cylinder, 3)] {
        none_overlaps((60, exceptions), DEEPEST, &|seed, integrator| {
            bouncing(&thrown_on(target, seed, integrator), seed as u64)
        });
    }
}
