//! Random mechanisms and states for the tests of this crate.

use super::*;
use crate::spatial::exp;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded source of random numbers.
pub(crate) struct Source(Xoshiro256PlusPlus);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [-1, 1].
    pub fn unit(&mut self) -> f64 {
        self.0.random_range(-1.0..=1.0)
    }

    pub fn vec3(&mut self) -> Vec3 {
        Vec3::from_fn(|_, _| self.unit())
    }

    pub fn array3(&mut self) -> [f64; 3] {
        self.vec3().into()
    }

    pub fn vector(&mut self, n: usize, scale: f64) -> Vec<f64> {
        (0..n).map(|_| scale * self.unit()).collect()
    }

    pub fn pose(&mut self) -> Pose {
        Pose::new(self.vec3(), exp(&self.vec3()))
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }
}

fn random_body(s: &mut Source) -> BodySpec {
    let mut positive = || 0.2 + 0.5 * (1.0 + s.unit());
    let shape = Shape::Box([positive(), positive(), positive()]);
    let mass = 0.5 + positive();
    // turned, so that no moment is special
    let r = exp(&s.vec3()).to_rotation_matrix();
    let j = r * shape.inertia(mass) * r.transpose();
    let j = (j + j.transpose()) * 0.5;
    BodySpec::new(mass).inertia_matrix(std::array::from_fn(|i| std::array::from_fn(|k| j[(i, k)])))
}

fn random_joint(s: &mut Source, kind: JointKind, parent: &str, child: &str) -> JointSpec {
    JointSpec::new(kind, child)
        .parent(parent)
        .axis(s.array3())
        .anchors(s.array3(), s.array3())
        .orientation(Orientation::Rpy(s.array3()))
}

/// A random tree with the joints given, springs and dampers on half of them, a spring between points, and actuators
/// on every free direction of the first three joints and on a body.
pub(crate) fn tree(seed: u64, kinds: &[JointKind]) -> MechanismBuilder {
    let mut s = Source::new(seed);
    let mut m = MechanismBuilder::new();
    for (i, kind) in kinds.iter().enumerate() {
        let name = format!("b{i}");
        m = m.body(&name, random_body(&mut s));
        let parent = if i == 0 {
            "world".to_owned()
        } else {
            format!("b{}", s.below(i))
        };
        let mut joint = random_joint(&mut s, *kind, &parent, &name);
        if i % 2 == 0 && kind.rows() != (3, 3) {
            joint = joint.spring(3.0, 0.2).damping(0.7);
        }
        m = m.joint(&format!("j{i}"), joint);
    }
    let last = format!("b{}", kinds.len() - 1);
    m = m.spring(
        "line",
        SpringSpec {
            parent: if kinds.len() > 2 { "b0" } else { "world" }.into(),
            child: last.clone(),
            parent_anchor: s.array3(),
            child_anchor: s.array3(),
            stiffness: 2.0,
            rest: 0.4,
            damping: 0.3,
            implicit: false,
        },
    );
    for (j, joint) in m
        .clone()
        .build()
        .expect("valid")
        .joints
        .iter()
        .enumerate()
        .take(3)
    {
        for d in &joint.directions {
            m = m.actuator(
                &format!("u{j}{}", d.name),
                ActuatorSpec::joint(&joint.name).direction(d.name),
            );
        }
    }
    let wrench = ActuatorSpec::wrench(&last, s.array3(), WrenchFrame::Body, s.array3());
    let point = ActuatorSpec {
        point: s.array3(),
        ..ActuatorSpec::wrench(&last, s.array3(), WrenchFrame::World, [0.0; 3])
    };
    m.actuator("wrench", wrench).actuator("push", point)
}

/// A planar four-bar of unit bars (the crank, the coupler, the rocker) with a spring, a damper and a motor; three
/// redundant rows.
pub(crate) fn four_bar() -> MechanismBuilder {
    let bar = || BodySpec::new(1.0).shape(Shape::Box([0.05, 0.08, 1.0]));
    let y = [0.0, 1.0, 0.0];
    let (top, bottom) = ([0.0, 0.0, 0.5], [0.0, 0.0, -0.5]);
    MechanismBuilder::new()
        .body("crank", bar())
        .body(
            "coupler",
            BodySpec::new(1.5).shape(Shape::Box([1.2, 0.08, 0.05])),
        )
        .body("rocker", bar())
        .joint(
            "a",
            JointSpec::new(JointKind::Revolute, "crank")
                .axis(y)
                .anchors([0.0; 3], bottom),
        )
        .joint(
            "b",
            JointSpec::new(JointKind::Revolute, "coupler")
                .parent("crank")
                .axis(y)
                .anchors(top, [-0.6, 0.0, 0.0])
                .spring(0.4, 0.1),
        )
        .joint(
            "c",
            JointSpec::new(JointKind::Revolute, "rocker")
                .parent("coupler")
                .axis(y)
                .anchors([0.6, 0.0, 0.0], top)
                .damping(0.2)
                .closes(),
        )
        .joint(
            "d",
            JointSpec::new(JointKind::Revolute, "rocker")
                .axis(y)
                .anchors([1.0, 0.0, 0.0], bottom),
        )
        .actuator("motor", ActuatorSpec::joint("a"))
}

/// A spatial loop of five links on spherical, orbital and revolute joints, free to move.
pub(crate) fn spatial_loop() -> MechanismBuilder {
    use JointKind::{Cylindrical, Orbital, Revolute, Spherical};
    let mut s = Source::new(11);
    let mut m = MechanismBuilder::new();
    for i in 0..4 {
        m = m.body(&format!("b{i}"), random_body(&mut s));
    }
    let half = |k: f64| [0.0, 0.0, k];
    let kinds = [Revolute, Spherical, Orbital, Spherical];
    for (i, kind) in kinds.into_iter().enumerate() {
        let parent = if i == 0 {
            "world".into()
        } else {
            format!("b{}", i - 1)
        };
        let anchor = if i == 0 { [0.0; 3] } else { half(0.5) };
        let mut j = JointSpec::new(kind, &format!("b{i}"))
            .parent(&parent)
            .axis([0.2, 1.0, 0.1])
            .anchors(anchor, half(-0.5));
        // the tree has a branch to either side
        j.closes = i == 2;
        m = m.joint(&format!("j{i}"), j);
    }
    m.joint(
        "close",
        JointSpec::new(Cylindrical, "b3")
            .axis([1.0, 0.0, 0.3])
            .anchors([1.0, 0.3, 0.2], half(0.5)),
    )
    .actuator("motor", ActuatorSpec::joint("j0"))
}
