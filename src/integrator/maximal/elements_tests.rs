//! Gears and users' elements: systems for the tests of the step's derivatives, and what they do.

use super::tests::system;
use super::*;
use crate::integrator::Mechanical;
use crate::mechanism::element_samples::{Keels, Line, Rod, Rubber, Skate};
use crate::mechanism::samples::{Source, four_bar, tree};
use crate::mechanism::{
    BodySpec, GearSpec, JointKind, JointSpec, MechanismBuilder, Rotation, Shape,
};
use crate::rollout::{RolloutStats, Trajectory, balance};
use crate::spatial::{Pose, Vec3};
use std::sync::Arc;

fn line() -> Line {
    Line(Vec3::new(0.2, -0.3, 0.4), Vec3::new(-0.1, 0.5, 0.2))
}

/// Mechanisms with every element, alone and together.
pub(super) fn systems() -> Vec<(Maximal, Vec<f64>)> {
    use JointKind::{Cylindrical, Floating, Orbital, Prismatic, Revolute};
    let keels = || Arc::new(Keels([Vec3::x(), Vec3::new(0.0, 0.6, 0.8)]));
    let rubber = || Arc::new(Rubber(line(), 6.0, 0.7));
    let potential =
        tree(30, &[Orbital, Floating, Revolute]).potential("p", &["b0", "b2"], rubber());
    let velocity = tree(31, &[Floating, Revolute, Floating])
        .velocity_constraint("skate", &["b1"], Arc::new(Skate))
        .velocity_constraint("keels", &["b0", "b2"], keels());
    let rod = tree(32, &[Floating, Revolute, Cylindrical]).constraint(
        "rod",
        &["b0", "b2"],
        Arc::new(Rod(line(), 1.5)),
    );
    let gears = tree(33, &[Revolute, Cylindrical, Prismatic, Revolute])
        .gear("turns", GearSpec::new("j3", "j0", -1.7).offset(0.2))
        .gear("rack", GearSpec::new("j2", "j1.angle", 0.4));
    let all = tree(34, &[Cylindrical, Floating, Revolute, Orbital])
        .constraint("rod", &["b1", "b3"], Arc::new(Rod(line(), 1.2)))
        .gear("screw", GearSpec::new("j0.d", "j0.angle", 0.3))
        .velocity_constraint("skate", &["b2"], Arc::new(Skate))
        .velocity_constraint("keels", &["b0", "b1"], keels())
        .potential("p", &["b0", "b2"], rubber());
    let mut out = vec![];
    for (i, m) in [potential, velocity, rod, gears, all]
        .into_iter()
        .enumerate()
    {
        let m = m.build().expect("valid");
        let (n, mut s) = (m.tree_ids().len(), Source::new(40 + i as u64));
        out.push(system(m, s.vector(n, 0.5), s.vector(n, 0.4)));
    }
    out.push(geared_four_bar());
    out
}

/// A wheel that follows the joint which closes a four-bar.
fn geared_four_bar() -> (Maximal, Vec<f64>) {
    let wheel = JointSpec::new(JointKind::Revolute, "wheel").axis([0.0, 1.0, 0.0]);
    let m = four_bar()
        .body("wheel", BodySpec::new(0.5).shape(Shape::Sphere(0.2)))
        .joint("w", wheel)
        .gear("belt", GearSpec::new("w", "c", 3.0).offset(0.1));
    let m = m.build().expect("valid");
    system(m, vec![0.4, 0.4, 0.1, -0.4], vec![1.0, 1.0, 0.0, -1.0])
}

fn roll(s: &Maximal, x: &[f64], h: f64, n: usize, u: &[f64]) -> Trajectory {
    let mut t = Trajectory::new(s, vec![h; n], x);
    for k in 0..n {
        t.u[k * u.len()..(k + 1) * u.len()].copy_from_slice(u);
    }
    t.roll(s, &mut s.work(), &mut RolloutStats::default())
        .expect("solved");
    t
}

/// A rod of 1 m and 1 kg that hangs from its upper end.
fn bar() -> BodySpec {
    BodySpec::new(1.0).shape(Shape::Box([0.1, 0.06, 1.0]))
}

#[test]
fn mobility_counts_gears_and_constraints() {
    let count = |s: &Maximal| {
        let m = s.mobility();
        (m.degrees_of_freedom, m.loops, m.redundant_rows)
    };
    let systems = systems();
    let counted: Vec<_> = systems.iter().map(|(s, _)| count(s)).collect();
    // orbital 2, floating 6, revolute 1, cylindrical 2, prismatic 1
    assert_eq!(
        counted,
        [
            (9, 0, 0),
            (13, 0, 0),
            (8, 1, 0),
            (3, 2, 0),
            (9, 2, 0),
            (1, 2, 3)
        ]
    );
    // two hinges side by side on one axis tie what a gear of ratio 1 ties again
    let hinge = |b: &str| JointSpec::new(JointKind::Revolute, b).axis([0.0, 1.0, 0.0]);
    let m = MechanismBuilder::new()
        .body("a", bar())
        .body("b", bar())
        .joint("ja", hinge("a"))
        .joint("jb", hinge("b"))
        .joint("weld", JointSpec::new(JointKind::Fixed, "b").parent("a"))
        .gear("again", GearSpec::new("jb", "ja", 1.0));
    let (s, x) = system(m.build().expect("valid"), vec![0.2; 2], vec![1.0; 2]);
    assert_eq!(count(&s), (1, 2, 6));
    let t = roll(&s, &x, 0.01, 100, &[]);
    let turned = s.coordinate(t.state(100), 0, 0) - 0.2;
    assert!((turned - 1.0).abs() < 1e-4, "{turned}");
}

/// Over a hundred turns of the leader, far from the principal branch of every angle, torques and masses included.
#[test]
fn a_gear_keeps_its_ratio_over_many_turns_and_transmits() {
    let axis = [0.3, 1.0, -0.2];
    let hinge = |b: &str, at: [f64; 3]| {
        JointSpec::new(JointKind::Revolute, b)
            .axis(axis)
            .anchors(at, [0.0; 3])
    };
    let disc = |i: f64| BodySpec::new(1.0).inertia([i; 3]);
    let (ratio, offset) = (-2.5, 0.7);
    let m = MechanismBuilder::new()
        .body("a", disc(0.3))
        .body("b", disc(0.04))
        .joint("ja", hinge("a", [0.0; 3]))
        .joint("jb", hinge("b", [1.0, 0.0, 0.0]))
        .gear("gear", GearSpec::new("jb", "ja", ratio).offset(offset))
        .actuator("motor", crate::mechanism::ActuatorSpec::joint("ja"))
        .build()
        .expect("valid");
    let (s, x) = system(m, vec![0.4, 0.0], vec![0.0; 2]);
    let (steps, h, torque) = (10_000, 0.001, 4.4);
    // the read-out at the start closes the gear, whatever the coordinates given were
    let t = roll(&s, &x, h, steps, &[torque]);
    let mut worst = 0.0_f64;
    for k in 0..=steps {
        let (a, b) = (
            s.coordinate(t.state(k), 0, 0),
            s.coordinate(t.state(k), 1, 0),
        );
        worst = worst.max((b - ratio * a - offset).abs());
    }
    assert!(worst < 1e-9, "{worst}");
    // (I_a + ratio^2 I_b) acceleration = torque
    let a0 = s.coordinate(&x, 0, 0);
    let turned = s.coordinate(t.state(steps), 0, 0) - a0;
    let expected = 0.5 * torque / (0.3 + ratio * ratio * 0.04) * (h * steps as f64).powi(2);
    assert!(turned > 50.0 * std::f64::consts::TAU, "{turned}");
    // up to h w = 0.2, of which the discrete momentum has 1 - (h w)^2/6
    assert!(
        (turned / expected - 1.0).abs() < 5e-3,
        "{turned} {expected}"
    );
}

/// The gear on the joint that closes a loop stays closed while everything moves, energy kept.
#[test]
fn a_gear_on_a_chord_stays_closed() {
    let (s, x) = geared_four_bar();
    let t = roll(&s, &x, 0.01, 300, &[0.8]);
    let m = s.mechanism();
    let (w, c) = (m.joint("w").expect("there"), m.joint("c").expect("there"));
    for k in 0..=300 {
        let x = t.state(k);
        let gap = s.coordinate(x, w, 0) - 3.0 * s.coordinate(x, c, 0) - 0.1;
        assert!(gap.abs() < 1e-9, "{k}: {gap}");
    }
    let b = balance(&s, &t, &mut s.work()).expect("read");
    assert!(b.largest_error() < 5e-2, "{}", b.largest_error());
}

/// Gaps of gears and users' constraints: none along a motion; a skate pushed sideways misses by that speed.
#[test]
fn gaps_are_what_is_not_met() {
    for (i, (s, x)) in systems().into_iter().enumerate() {
        let t = roll(&s, &x, 0.01, 10, &vec![0.1; s.dims().nu]);
        for (c, constraint) in s.mechanism().constraints.iter().enumerate() {
            for k in 0..=10 {
                let before = s.poses(t.state(usize::saturating_sub(k, 1)));
                let gap = s.gap(c, (&before, 0.0), t.state(k));
                assert!(gap < 1e-8, "{i}, {}, {k}: {gap}", constraint.name);
            }
        }
    }
    let (s, mut x) = systems().swap_remove(1);
    let m = s.mechanism();
    let skate = m.constraints.iter().position(|c| c.name == "skate");
    let b = m.body("b1").expect("there");
    let poses = s.poses(&x);
    let side = poses[b].r * Vec3::y() * 0.3;
    (0..3).for_each(|k| x[13 * b + 7 + k] += side[k]);
    let gap = s.gap(skate.expect("there"), (&poses, 0.0), &x);
    assert!((gap - 0.3).abs() < 1e-12, "{gap}");
}

/// Halving the interval quarters the error of the energy, dampers and controls included.
#[test]
fn energy_is_balanced_to_second_order() {
    for (i, (s, x)) in systems().into_iter().enumerate() {
        let u = vec![0.1; s.dims().nu];
        let errors = [0.01, 0.005].map(|h| {
            let t = roll(&s, &x, h, (0.5 / h) as usize, &u);
            balance(&s, &t, &mut s.work())
                .expect("read")
                .largest_error()
        });
        let ratio = errors[0] / errors[1];
        assert!((3.0..5.5).contains(&ratio), "{i}: {errors:?}");
    }
}

#[test]
fn a_users_spring_is_the_built_in_one() {
    let spring = crate::mechanism::SpringSpec {
        parent: "b0".into(),
        child: "b2".into(),
        parent_anchor: line().0.into(),
        child_anchor: line().1.into(),
        stiffness: 6.0,
        rest: 0.7,
        damping: 0.0,
        implicit: false,
    };
    let kinds = [JointKind::Orbital, JointKind::Floating, JointKind::Revolute];
    let built_in = tree(30, &kinds).spring("s", spring).build().expect("valid");
    let users = tree(30, &kinds)
        .potential("p", &["b0", "b2"], Arc::new(Rubber(line(), 6.0, 0.7)))
        .build()
        .expect("valid");
    let n = users.tree_ids().len();
    let [a, b] = [built_in, users].map(|m| {
        let (s, x) = system(m, vec![0.3; n], vec![0.5; n]);
        let t = roll(&s, &x, 0.01, 100, &vec![0.2; s.dims().nu]);
        let energy = balance(&s, &t, &mut s.work()).expect("read");
        (t.state(100).to_vec(), energy.potential[100])
    });
    for (a, b) in a.0.iter().zip(&b.0) {
        assert!((a - b).abs() < 1e-10, "{a} {b}");
    }
    assert!((a.1 - b.1).abs() < 1e-10);
}

/// The last of the five spherical joints of a chain, as three rows of a user.
#[test]
fn a_users_ball_joint_is_the_built_in_one() {
    /// `R_0'(x_1 + R_1 p_1 - x_0) - p_0 = 0` written in the world: `x_1 + R_1 p_1 - x_0 - R_0 p_0 = 0`.
    #[derive(Debug)]
    struct Ball(Vec3, Vec3);
    impl crate::mechanism::HolonomicConstraint for Ball {
        fn bodies(&self) -> usize {
            2
        }
        fn rows(&self) -> usize {
            3
        }
        fn value(&self, poses: &[Pose], g: &mut [f64]) {
            let d = poses[1].point(&self.1) - poses[0].point(&self.0);
            g.copy_from_slice(d.as_slice());
        }
        fn jacobian(&self, poses: &[Pose], out: &mut crate::mechanism::Jacobian) {
            for i in 0..3 {
                let e = Vec3::ith(i, 1.0);
                out.add(i, 0, &-e, &-self.0.cross(&poses[0].r.tr_mul(&e)));
                out.add(i, 1, &e, &self.1.cross(&poses[1].r.tr_mul(&e)));
            }
        }
        fn hessian(&self, poses: &[Pose], l: &[f64], out: &mut crate::mechanism::Hessian) {
            use crate::mechanism::Part::Angular;
            let l = Vec3::from_column_slice(l);
            for (b, (p, s)) in [(self.0, -1.0), (self.1, 1.0)].iter().enumerate() {
                let local = poses[b].r.tr_mul(&l) * *s;
                let block = crate::spatial::skew(p) * crate::spatial::skew(&local);
                out.add((b, Angular), (b, Angular), &block);
            }
        }
    }
    let (top, bottom) = (Vec3::new(0.0, 0.0, 0.5), Vec3::new(0.0, 0.0, -0.5));
    let ball = Ball(bottom, top);
    crate::mechanism::check_constraint(&ball, &crate::mechanism::random_poses(2, 1))
        .expect("right");
    // a joint that lets a bar spin decides its law otherwise
    let bar = || bar().rotation(Rotation::Chord);
    let chain = || {
        MechanismBuilder::new()
            .body("a", bar())
            .body("b", bar())
            .joint(
                "pivot",
                JointSpec::new(JointKind::Spherical, "a").anchors([0.0; 3], top.into()),
            )
    };
    let joint = chain().joint(
        "ball",
        JointSpec::new(JointKind::Spherical, "b")
            .parent("a")
            .anchors(bottom.into(), top.into()),
    );
    let free = JointSpec::new(JointKind::Floating, "b");
    let user = chain()
        .joint("free", free)
        .constraint("ball", &["a", "b"], Arc::new(ball));
    let (s, x) = system(
        joint.build().expect("valid"),
        vec![0.5, -0.3, 0.2, 0.4, 0.6, -0.2],
        vec![1.0, 0.5, 0.3, -0.4, 0.2, 2.0],
    );
    let user = user.build().expect("valid");
    // its tree coordinates are those of the same poses
    let q = user.tree_coordinates(&s.poses(&x), &[0.0; 9]);
    let rates = user.tree_rates(&s.poses(&x), &s.interval_velocities(&x, 0.0));
    let (other, y) = system(user, q, rates);
    assert_eq!(other.mobility().degrees_of_freedom, 6);
    let (a, b) = (
        roll(&s, &x, 0.01, 200, &[]).state(200).to_vec(),
        roll(&other, &y, 0.01, 200, &[]).state(200).to_vec(),
    );
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

#[test]
fn what_cannot_be_met_or_integrated_is_named() {
    let two = || {
        let hinge = |b: &str| JointSpec::new(JointKind::Revolute, b).axis([0.0, 1.0, 0.0]);
        MechanismBuilder::new()
            .body("a", bar())
            .body("b", bar())
            .joint("ja", hinge("a"))
            .joint("jb", hinge("b").anchors([1.0, 0.0, 0.0], [0.0; 3]))
    };
    let rod = Arc::new(Rod(Line(Vec3::zeros(), Vec3::zeros()), 3.0));
    let m = two()
        .constraint("rod", &["a", "b"], rod)
        .build()
        .expect("valid");
    let error = Maximal::new(m, &[0.0; 2], Options::default()).expect_err("too long");
    assert_eq!(error.path, ["constraints", "rod"]);
    assert!(
        error
            .message
            .starts_with("constraint `rod` cannot be met: "),
        "{error}"
    );
    // a step that fails at a gear says so
    let m = two()
        .gear("g", GearSpec::new("jb", "ja", 2.0))
        .build()
        .expect("valid");
    let s = Maximal::new(m, &[0.0; 2], Options::default()).expect("closes");
    assert_eq!(s.element(s.dims().ny - 1), "gear `g`");
}

/// Old velocities that break the constraint are projected by the first step, and rates by the start.
#[test]
fn velocity_constraints_project_rates_at_the_start() {
    let m = MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("sledge", bar().free())
        .velocity_constraint("skate", &["sledge"], Arc::new(Skate))
        .build()
        .expect("valid");
    let q = [0.0; 6];
    let (s, x) = system(m, q.to_vec(), vec![1.0, 2.0, 0.0, 0.0, 0.0, 0.5]);
    let (v, w) = s.interval_velocities(&x, 0.0)[0];
    assert!((v - Vec3::x()).amax() < 1e-14 && (w.z - 0.5).abs() < 1e-14);
    let mut x = x;
    x[8] = 2.0;
    let t = roll(&s, &x, 0.01, 1, &[]);
    let (v, _) = s.interval_velocities(t.state(1), 0.0)[0];
    let heading = 0.5 * 0.01 * 0.5_f64;
    assert!((v.y / v.x - heading.tan()).abs() < 1e-4, "{v}");
}
