//! Borders of height fields: walls that go down without end.

use super::none_failed;
use super::rough::{Rough, Thrown, knots, none_enters};
use crate::common::Source;
use least_action::spatial::{Pose, Vec3};

/// A body of 1 kg without friction that moves in free fall or without gravity.
fn scene(
    (gravity, ground): (f64, &str),
    (shape, restitution): (&str, f64),
    (position, turn, velocity): (Vec3, [f64; 4], Vec3),
    (h, steps): (f64, usize),
) -> Vec<(Pose, Vec3)> {
    let text = format!(
        "time_step = {h:?}\nhorizon = {:?}\n[mechanism]\ngravity = [0.0, 0.0, {gravity:?}]\n{ground}\
         [mechanism.bodies.b]\nmass = 1.0\nfree = true\nshape = {shape}\n\
         contacts.c = {{ friction = 0.0, restitution = {restitution:?} }}\n\
         [initial.b]\nposition = {:?}\nvelocity = {:?}\n\
         orientation = {{ quaternion = {turn:?} }}\n",
        h * steps as f64,
        position.as_slice(),
        velocity.as_slice(),
    );
    knots(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Not turned, and with the axis of z along x.
const UPRIGHT: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
const LYING: [f64; 4] = [1.0, 0.0, 1.0, 0.0];

/// Level ground at a height, of 4 by 4 cells of 20 cm, from a place on: its text.
fn level(name: &str, x: f64, height: f64) -> String {
    let heights = vec![vec![0.0; 5]; 5];
    format!(
        "[mechanism.terrain.{name}]\nfriction = 0.0\nposition = [{x:?}, -0.4, {height:?}]\n\
         shape = {{ heights = {{ heights = {heights:?}, spacing = [0.2, 0.2] }} }}\n"
    )
}

/// What moves horizontally against a side of the field rests on it, or goes back at the ratio of speeds that restitution gives.
#[test]
fn sides_stop_what_comes() {
    let shapes = [
        ("{ sphere = 0.1 }", 0.1),
        ("{ capsule = { radius = 0.05, length = 0.3 } }", 0.05),
        ("{ box = [0.2, 0.3, 0.1] }", 0.1),
        ("{ cylinder = { radius = 0.1, length = 0.2 } }", 0.1),
    ];
    let mut failed = vec![];
    for (shape, half) in shapes {
        for restitution in [0.0, 0.5] {
            for h in [0.002, 0.01] {
                for speed in [0.3, 2.0] {
                    let (from, steps) = (Vec3::new(half + 0.05, 0.03, -0.7), (0.4 / h) as usize);
                    let v = Vec3::x() * -speed;
                    let ground = level("field", -0.8, 0.0);
                    let ends = scene(
                        (0.0, &ground),
                        (shape, restitution),
                        (from, UPRIGHT, v),
                        (h, steps),
                    );
                    let (pose, velocity) = &ends[steps];
                    let off = velocity.x - restitution * speed;
                    let nearest = ends.iter().map(|(p, _)| p.x.x - half);
                    let nearest = nearest.fold(f64::INFINITY, f64::min);
                    let beside = (pose.x - from).yz().norm();
                    if off.abs() > 1e-4 || nearest < -1e-9 || beside > 1e-9 {
                        failed.push(format!(
                            "{shape} {restitution} {h} {speed}: {off} {nearest} {beside}"
                        ));
                    }
                }
            }
        }
    }
    none_failed(&failed);
}

/// Without friction, what hits a side of many cells keeps its velocity along it, however it is turned.
#[test]
fn sides_of_many_cells_are_planes() {
    let heights = vec![vec![0.0; 41]; 2];
    let ground = format!(
        "[mechanism.terrain.field]\nfriction = 0.0\nposition = [-0.5, -1.0, 0.0]\n\
         shape = {{ heights = {{ heights = {heights:?}, spacing = [0.5, 0.05] }} }}\n"
    );
    let s = &mut Source::new(5);
    for _ in 0..8 {
        for shape in [
            "{ box = [0.2, 0.3, 0.1] }",
            "{ cylinder = { radius = 0.1, length = 0.2 } }",
            "{ capsule = { radius = 0.05, length = 0.3 } }",
        ] {
            let turn = nalgebra::UnitQuaternion::new(Vec3::from(s.array3()) * 3.0);
            let turn = [turn.w, turn.i, turn.j, turn.k];
            let (from, v) = (Vec3::new(0.22, 0.013, -1.0), Vec3::new(-1.0, 0.5, 0.2));
            let ends = scene((0.0, &ground), (shape, 0.0), (from, turn, v), (0.005, 60));
            let off = (ends[60].1 - v).yz().norm();
            assert!(off < 1e-5, "{shape} {turn:?}: {off}");
        }
    }
}

/// A ball that meets a vertical edge of the field goes on along the tangent: the normal is that from the edge to its center.
#[test]
fn vertical_edges_are_round_for_balls() {
    let (radius, speed, h) = (0.1, 1.0, 1e-3);
    for (out, along) in [(0.8, 0.6), (0.6, 0.8), (0.96, 0.28)] {
        // at the edge of x = 0, y = 0.4 after 20 steps
        let from = Vec3::new(radius * out + 0.02, 0.4 + radius * along, -0.3);
        let ground = level("field", -0.8, 0.0);
        let v = Vec3::x() * -speed;
        let ends = scene(
            (0.0, &ground),
            ("{ sphere = 0.1 }", 0.0),
            (from, UPRIGHT, v),
            (h, 40),
        );
        let expected = v + Vec3::new(out, along, 0.0) * (speed * out);
        let found = ends[40].1;
        // the normal is that at the knot before, and turns while the ball passes
        assert!(
            (found - expected).norm() < 0.02,
            "{out}: {found} {expected}"
        );
    }
}

/// What slides or rolls from a floor onto a field at its height, from one field to the next, or from a field onto a box keeps its speed.
#[test]
fn flush_borders_stop_nothing() {
    let floor = "[mechanism.half_spaces.floor]\nnormal = [0.0, 0.0, 1.0]\n";
    let slab = "[mechanism.terrain.slab]\nfriction = 0.0\nposition = [-0.4, 0.0, -0.2]\n\
                shape = { box = [0.8, 0.8, 0.4] }\n";
    let fields = [
        floor.to_owned() + &level("field", 0.0, 0.0),
        level("first", -0.8, 0.0) + &level("second", 0.0, 0.0),
        slab.to_owned() + &level("field", 0.0, 0.0),
    ];
    let shapes = [
        ("{ sphere = 0.1 }", 0.1, UPRIGHT),
        ("{ capsule = { radius = 0.05, length = 0.3 } }", 0.05, LYING),
        ("{ box = [0.2, 0.3, 0.1] }", 0.05, UPRIGHT),
        (
            "{ cylinder = { radius = 0.1, length = 0.06 } }",
            0.03,
            UPRIGHT,
        ),
    ];
    let mut failed = vec![];
    for (k, ground) in fields.iter().enumerate() {
        for (shape, height, turn) in shapes {
            for (speed, h) in [(1.0, 0.01), (-1.0, 0.01), (0.7, 0.005), (-3.0, 0.002)] {
                let from = Vec3::new(-0.3_f64.copysign(speed), 0.013, height);
                let steps = (0.6 / (speed.abs() * h)) as usize;
                let v = Vec3::x() * speed;
                let ends = scene((-9.81, ground), (shape, 0.0), (from, turn, v), (h, steps));
                let off = (ends[steps].0.x - from - v * (h * steps as f64)).norm();
                // corners and rims that stop exactly in the plane of a wall are pushed by the softness of its contact
                let may = if turn == UPRIGHT && height < 0.1 {
                    1e-5
                } else {
                    1e-6
                };
                if off > may {
                    failed.push(format!("{k} {shape} {speed} {h}: {off} m"));
                }
            }
        }
    }
    none_failed(&failed);
}

/// A throw at a border of rough ground, from above, from beside or at a corner: its file, the ground, the body and the time step.
fn thrown(s: &mut Source, kind: usize, place: usize) -> (String, Rough, Thrown, f64) {
    let edges = Vec3::from(s.array3()).abs();
    let body = match kind {
        0 => Thrown::Capsule(0.02 + 0.08 * edges.x, 0.0),
        1 => Thrown::Capsule(0.02 + 0.03 * edges.x, 0.1 + 0.2 * edges.y),
        2 => Thrown::Cylinder(0.03 + 0.07 * edges.x, 0.02),
        3 => Thrown::Cylinder(0.03 + 0.04 * edges.x, 0.15),
        4 => Thrown::Box(edges * 0.08 + Vec3::repeat(0.02)),
        _ => Thrown::Box(Vec3::new(0.05 + 0.1 * edges.x, 0.05 + 0.1 * edges.y, 0.01)),
    };
    let cell = [0.1, 0.2][s.below(2)];
    let slope = [0.0, 0.3][s.below(2)];
    let ground = Rough::new(s, cell, slope);
    let h = [0.002, 0.005, 0.01][s.below(3)];
    let (half, reach) = (0.5 * ground.width(), body.reach());
    let random = Vec3::from(s.array3());
    let top = 0.5 * slope * cell;
    let (at, velocity) = match place {
        0 => (
            Vec3::new(0.5 * random.x * reach, 0.5 * random.y, top + reach + 0.02),
            Vec3::from(s.array3()) * 0.5,
        ),
        1 => (
            Vec3::new(reach + 0.005, 0.5 * random.y, random.z * reach),
            Vec3::new(-1.2 + 0.9 * random.x, 0.5 * random.y, 0.5 + 0.5 * random.z),
        ),
        _ => (
            Vec3::new(0.8 * reach, half + 0.8 * reach, random.z * reach),
            Vec3::new(-0.8 + 0.5 * random.x, -0.8 + 0.5 * random.y, 0.5),
        ),
    };
    let turn = nalgebra::UnitQuaternion::new(Vec3::from(s.array3()) * 3.0);
    let (friction, restitution) = ([0.0, 0.4][s.below(2)], [0.0, 0.0, 0.4][s.below(3)]);
    let text = format!(
        "time_step = {h}\nhorizon = 0.5\n\
         integrator = {{ name = \"maximal\", substeps = \"auto\" }}\n{}\
         [mechanism.bodies.b]\nmass = 1.0\nfree = true\nshape = {}\n\
         contacts.c = {{ friction = {friction:?}, restitution = {restitution:?} }}\n\
         [initial.b]\nposition = [{:?}, {:?}, {:?}]\nvelocity = {:?}\nangular_velocity = {:?}\n\
         orientation = {{ quaternion = {:?} }}\n",
        ground.text(friction),
        body.text(),
        at.x + half,
        at.y,
        at.z,
        velocity.as_slice(),
        (Vec3::from(s.array3()) * 5.0).as_slice(),
        [turn.w, turn.i, turn.j, turn.k],
    );
    (text, ground, body, h)
}

/// Balls, capsules, coins, cans, boxes and plates that are thrown at borders enter neither the ground nor its sides, nor do they gain energy.
#[test]
fn borders_hold_what_is_thrown_at_them() {
    none_enters(0..90, |seed| {
        let (kind, place) = (seed as usize % 6, seed as usize / 6 % 3);
        thrown(&mut Source::new(seed), kind, place)
    });
}

/// What stands on a floor in the plane of a side of a field, with no gap, stays.
#[test]
fn sides_without_a_gap_move_nothing() {
    let shapes = [
        "{ box = [0.2, 0.2, 0.2] }",
        "{ cylinder = { radius = 0.1, length = 0.2 } }",
        "{ sphere = 0.1 }",
    ];
    let ground = "[mechanism.half_spaces.floor]\n".to_owned() + &level("field", 0.0, 0.3);
    for shape in shapes {
        for y in [0.0, -0.5] {
            for h in [0.001, 0.005] {
                let from = Vec3::new(-0.1, y, 0.1);
                let shape = shape.to_owned() + "\ninertia = [0.01, 0.01, 0.01]";
                let still = (from, UPRIGHT, Vec3::zeros());
                let ends = scene((-9.81, &ground), (&shape, 0.0), still, (h, 100));
                let off = ends.iter().map(|(pose, _)| (pose.x - from).norm());
                let off = off.fold(0.0, f64::max);
                // the softness of the contact pushes at 2e-5 m/s
                assert!(off < 1e-4, "{shape} {y} {h}: {off}");
            }
        }
    }
}

/// What lies at rest on ridges has no velocity at the last knot, from which no step follows.
#[test]
fn velocities_at_the_last_knot_are_those_of_what_rests() {
    let heights = [0.0, 0.1, 0.0, 0.1, 0.0].map(|z| vec![z; 5]);
    let ground = format!(
        "[mechanism.terrain.field]\nfriction = 0.5\nposition = [-0.4, -0.4, 0.0]\n\
         shape = {{ heights = {{ heights = {heights:?}, spacing = [0.2, 0.2] }} }}\n"
    );
    let post = "[mechanism.terrain.post]\nfriction = 0.5\nposition = [-0.02, 0.01, 0.1]\n\
                shape = { heights = { heights = [[0.0, 0.0], [0.0, 0.0]], spacing = [0.04, 0.04] } }\n";
    let shapes = [
        (
            &ground[..],
            LYING,
            "{ capsule = { radius = 0.03, length = 0.6 } }",
            0.03,
        ),
        (
            &ground,
            LYING,
            "{ cylinder = { radius = 0.03, length = 0.6 } }",
            0.03,
        ),
        (&ground, LYING, "{ box = [0.1, 0.1, 0.6] }", 0.05),
        (
            post,
            UPRIGHT,
            "{ cylinder = { radius = 0.1, length = 0.1 } }",
            0.05,
        ),
        (post, UPRIGHT, "{ box = [0.2, 0.2, 0.1] }", 0.05),
    ];
    for (ground, turn, shape, height) in shapes {
        let shape = format!("{shape}\ninertia = [0.01, 0.01, 0.01]");
        let text = format!(
            "time_step = 0.01\nhorizon = 0.1\n[mechanism]\n{ground}\
             [mechanism.bodies.b]\nmass = 1.0\nfree = true\nshape = {shape}\n\
             contacts.c = {{ friction = 0.5 }}\n\
             [initial.b]\nposition = [0.0, 0.03, {:?}]\n\
             orientation = {{ quaternion = {turn:?} }}\n",
            0.1 + height,
        );
        let knots = knots(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (pose, velocity) in &knots {
            assert!(velocity.norm() < 1e-4, "{shape}: {velocity} at {}", pose.x);
        }
    }
}
