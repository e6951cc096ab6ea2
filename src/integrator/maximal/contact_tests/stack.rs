//! Boxes on boxes: stacks that stay, boxes that fall on each other.

use super::Run;
use crate::integrator::{Mechanical, Options};
use crate::mechanism::samples::Source;
use crate::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, Hull, MechanismBuilder, Shape, Surface, TerrainShape,
    TerrainSpec,
};

const EDGE: f64 = 0.2;

fn boxes(n: usize, shape: Shape) -> MechanismBuilder {
    let contact = ContactSpec::new(0.5).group("boxes", &["boxes", "ground"]);
    (0..n).fold(
        MechanismBuilder::new().half_space("ground", HalfSpaceSpec::default()),
        |m, i| {
            let body = BodySpec::new(1.0).shape(shape).free();
            m.body(&format!("box {i}"), body.contact("all", contact.clone()))
        },
    )
}

impl Run {
    /// Least gap at the knot.
    pub fn lowest(&self) -> f64 {
        let (m, poses) = (self.system.mechanism(), self.system.poses(&self.x));
        let gaps = m.contacts.iter().map(|c| m.touch(c, &poses).gap);
        gaps.fold(f64::INFINITY, f64::min)
    }

    /// Largest component of a velocity in the interval past, m/s and rad/s.
    pub fn fastest(&self) -> f64 {
        let n = 6 * self.system.mechanism().bodies.len();
        self.y[..n].iter().fold(0.0, |m, v| v.abs().max(m))
    }

    /// Kinetic energy of the interval past and potential energy at its end, J.
    pub fn energy(&self) -> f64 {
        let (m, poses) = (self.system.mechanism(), self.system.poses(&self.x));
        let each = m.bodies.iter().zip(&poses).zip(self.y.chunks_exact(6));
        each.map(|((b, p), v)| {
            let (v, w) = (crate::mechanism::vec3(v, 0), crate::mechanism::vec3(v, 3));
            0.5 * (b.mass * v.norm_squared() + w.dot(&(b.inertia * w)))
                - b.mass * m.gravity.dot(&p.x)
        })
        .sum()
    }
}

/// How far a stack of ten moves in ten seconds, its last speed, least gap, and most iterations of a step.
fn stacked(place: impl Fn(usize) -> [f64; 3]) -> (f64, f64, f64, usize) {
    let n = 10;
    let q: Vec<f64> = (0..n)
        .flat_map(|i| {
            let [x, y, turn] = place(i);
            [x, y, EDGE * (i as f64 + 0.5), 0.0, 0.0, turn]
        })
        .collect();
    let m = boxes(n, Shape::Box([EDGE; 3]));
    let mut run = Run::new(&m, &q, &vec![0.0; 6 * n], 0.01, Options::default());
    let start = run.system.poses(&run.x);
    let (mut lowest, mut most) = (f64::INFINITY, 0);
    let began = std::time::Instant::now();
    for _ in 0..1000 {
        run.step();
        lowest = lowest.min(run.lowest());
        most = most.max(run.stats.iterations);
    }
    let end = run.system.poses(&run.x);
    let moved = |(a, b): (&crate::spatial::Pose, &crate::spatial::Pose)| (a.x - b.x).amax();
    let moved = start.iter().zip(&end).map(moved).fold(0.0, f64::max);
    let speed = run.fastest();
    println!(
        "moved {moved:.1e} m, {speed:.1e} m/s, least gap {lowest:.1e} m, {most} iterations, {:?}",
        began.elapsed()
    );
    (moved, speed, lowest, most)
}

#[test]
fn a_stack_of_ten_stays() {
    let exactly = stacked(|_| [0.0; 3]);
    let s = &mut Source::new(3);
    let roughly: Vec<[f64; 3]> = (0..10)
        .map(|_| {
            let [x, y, turn] = s.array3();
            [0.01 * x, 0.01 * y, 0.2 * turn]
        })
        .collect();
    let roughly = stacked(|i| roughly[i]);
    for (moved, speed, lowest, _) in [exactly, roughly] {
        assert!(speed < 1e-6 && lowest > 0.0 && moved < 1e-6);
    }
}

/// What bodies that fall on each other and on steps come to, over all knots.
#[derive(Debug, Default)]
pub(super) struct Falls {
    /// Deepest overlap, m: of what runs over an edge within one step.
    pub deepest: f64,
    /// Knots with an overlap, of so many.
    pub overlaps: usize,
    pub knots: usize,
    /// Most energy that a step adds, J.
    pub gained: f64,
    /// Falls with a step that was not solved.
    pub unsolved: usize,
}

pub(super) fn fall(m: impl Fn() -> MechanismBuilder, n: usize, seeds: u64) -> Falls {
    fall_at(0.01, m, n, seeds)
}

/// Drops `n` bodies from random poses, once for each seed, with the time step `h` in seconds.
pub(super) fn fall_at(h: f64, m: impl Fn() -> MechanismBuilder, n: usize, seeds: u64) -> Falls {
    let mut out = Falls::default();
    for seed in 0..seeds {
        let s = &mut Source::new(seed);
        let q: Vec<f64> = (0..n)
            .flat_map(|i| {
                let ([x, y, _], [a, b, c]) = (s.array3(), s.array3());
                [0.1 * x, 0.1 * y, 0.6 + 0.4 * i as f64, a, b, c]
            })
            .collect();
        let rates: Vec<f64> = (0..6 * n).map(|_| s.array3()[0]).collect();
        let mut run = Run::new(&m(), &q, &rates, h, Options::default());
        let mut before = f64::INFINITY;
        for k in 0..(3.0 / h).round() as usize {
            if let Err(e) = run.try_step() {
                println!("seed {seed} step {k}: {e}");
                out.unsolved += 1;
                break;
            }
            let depth = -run.lowest();
            out.overlaps += usize::from(depth > 1e-9);
            out.knots += 1;
            out.deepest = out.deepest.max(depth);
            let energy = run.energy();
            if k > 1 {
                out.gained = out.gained.max(energy - before);
            }
            before = energy;
        }
    }
    println!("{out:?}");
    out
}

fn mixed() -> MechanismBuilder {
    let contact = || ContactSpec::new(0.5).group("boxes", &["boxes", "ground"]);
    let steps = TerrainShape::Steps {
        edges: vec![[-3.0, 0.0], [-0.3, 0.1], [0.0, 0.2], [0.3, 0.1]],
        end: 3.0,
        width: 6.0,
        depth: 0.5,
    };
    let wedge = [
        [-0.1, -0.1, -0.05],
        [0.15, -0.1, -0.05],
        [0.15, 0.1, -0.05],
        [-0.1, 0.1, -0.05],
        [-0.1, -0.1, 0.1],
        [-0.1, 0.1, 0.1],
    ];
    let hull = Surface::Hull(Hull::new(&wedge).expect("a wedge"));
    let own = |shape: Shape| {
        BodySpec::new(1.0)
            .shape(shape)
            .free()
            .contact("all", contact())
    };
    let wedge = BodySpec::new(1.0)
        .inertia([0.01, 0.012, 0.014])
        .free()
        .contact("all", contact().shape(hull));
    MechanismBuilder::new()
        .terrain("steps", TerrainSpec::new(steps, 0.5))
        .body("box", own(Shape::Box([0.2, 0.25, 0.15])))
        .body(
            "capsule",
            own(Shape::Capsule {
                radius: 0.06,
                length: 0.2,
            }),
        )
        .body("wedge", wedge)
        .body("ball", own(Shape::Sphere(0.08)))
}

/// Falls at up to 5 m/s, 5 cm a step.
#[test]
fn boxes_that_fall_on_each_other() {
    let all = fall(|| boxes(4, Shape::Box([0.2, 0.25, 0.15])), 4, 40);
    assert!(all.unsolved == 0 && all.gained < 1e-9, "{all:?}");
    assert!(all.deepest < 0.03 && all.overlaps * 100 < all.knots);
}

/// Weaker than boxes alone: 1.6 % of the knots have an overlap, 0.04 J are gained at worst, and one fall of 40 has a step that is
/// not solved.
#[test]
fn all_shapes_fall_on_each_other_and_on_steps() {
    let all = fall(mixed, 4, 40);
    assert!(all.unsolved <= 1 && all.gained < 0.1, "{all:?}");
    assert!(all.deepest < 0.05 && all.overlaps * 50 < all.knots);
}
