//! Ends of cylinders that come down: how far any part of a rim enters what it lands on, with both integrators.

use super::motion;
use least_action::mechanism::{Mechanism, Surface};
use least_action::spatial::Pose;

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

/// The same of faces, on which rims are rounded by 1e-4 of their radius.
const ON_FACES: f64 = 5e-5;

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
    let mut failed = vec![];
    let (mut worst, mut overlaps) = (0.0_f64, 0);
    for seed in 0..seeds {
        let integrator = ["maximal", "minimal"][seed / 4 % 2];
        let case = format!("{seed} {integrator}");
        match motion(&thrown(seed, ground, integrator, joint)) {
            Err(e) => failed.push(format!("{case}: {e}")),
            Ok((m, knots)) => {
                let all = knots.iter().map(|poses| lowest(&m, poses));
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
fn ends_sink_little_into_a_box() {
    // one turns too fast for a step of 0.02 s
    none_sinks((100, 1), SLAB, None, ON_FACES);
}

#[test]
fn ends_sink_little_into_a_hull() {
    none_sinks((50, 0), WEDGE, None, ON_FACES);
}

#[test]
fn no_end_sinks_where_a_joint_holds_another() {
    // one sinks by 1.1e-9 m
    none_sinks((50, 1), GROUND, Some("spherical"), 1e-9);
}
