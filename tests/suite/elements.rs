//! Users' elements and gears through the public interface, against closed forms.

use crate::disc;
use crate::knife_edge;
use least_action::integrator::Mechanical;

use crate::common::*;
use least_action::mechanism::{
    BodySpec, Hessian, HolonomicConstraint, Jacobian, JointKind, JointSpec, MechanismBuilder, Part,
    check_constraint, check_velocity_constraint, random_poses,
};
use least_action::rollout::balance;
use least_action::spatial::{Vec3, skew};
use std::sync::Arc;

#[test]
fn the_examples_derivatives_are_right() {
    let disc = disc::Disc { radius: 0.25 };
    for seed in 0..20 {
        let poses = random_poses(1, seed);
        check_constraint(&disc, &poses).expect("right");
        check_velocity_constraint(&disc::NoSlip(disc), &poses).expect("right");
        check_velocity_constraint(&knife_edge::KnifeEdge, &poses).expect("right");
    }
}

/// A point of a body stays at the origin: `x + R p = 0`.
#[derive(Debug)]
struct Pivot(Vec3);

impl HolonomicConstraint for Pivot {
    fn bodies(&self) -> usize {
        1
    }

    fn rows(&self) -> usize {
        3
    }

    fn value(&self, poses: &[least_action::spatial::Pose], g: &mut [f64]) {
        g.copy_from_slice(poses[0].point(&self.0).as_slice());
    }

    fn jacobian(&self, poses: &[least_action::spatial::Pose], out: &mut Jacobian) {
        for i in 0..3 {
            let e = Vec3::ith(i, 1.0);
            out.add(i, 0, &e, &self.0.cross(&poses[0].r.tr_mul(&e)));
        }
    }

    fn hessian(&self, poses: &[least_action::spatial::Pose], lambda: &[f64], out: &mut Hessian) {
        let local = poses[0].r.tr_mul(&Vec3::from_column_slice(lambda));
        let block = skew(&self.0) * skew(&local);
        out.add((0, Part::Angular), (0, Part::Angular), &block);
    }
}

#[test]
fn a_spherical_pendulum_of_a_user_is_that_of_the_joint() {
    let top = Vec3::new(0.1, 0.0, 0.5);
    check_constraint(&Pivot(top), &random_poses(1, 4)).expect("right");
    let body = || BodySpec::new(1.3).inertia([0.1, 0.12, 0.03]);
    let joint = MechanismBuilder::new().body("bob", body()).joint(
        "pivot",
        JointSpec::new(JointKind::Spherical, "bob").anchors([0.0; 3], top.into()),
    );
    let (s, x) = start(&joint, &[0.4, 0.7, -0.2], &[1.0, 0.3, 2.0]);
    let user = MechanismBuilder::new()
        .body("bob", body().free())
        .constraint("pivot", &["bob"], Arc::new(Pivot(top)));
    let m = user.build().expect("valid");
    let poses = s.poses(&x);
    let q = m.tree_coordinates(&poses, &[0.0; 6]);
    let rates = m.tree_rates(&poses, &s.interval_velocities(&x, 0.0));
    let (other, y) = start(&user, &q, &rates);
    assert_eq!(other.mobility().degrees_of_freedom, 3);
    let (a, b) = (fall(&s, &x, 2.0, 0.01), fall(&other, &y, 2.0, 0.01));
    for k in 0..=200 {
        for (a, b) in a.state(k).iter().zip(b.state(k)) {
            assert!((a - b).abs() < 1e-10, "{k}: {a} {b}");
        }
    }
}

/// Neimark and Fufaev's knife edge on an incline: second order, and it does not slide down.
#[test]
fn a_knife_edge_on_an_incline_follows_its_cycloid() {
    let (slope, spin) = (0.3_f64, 2.0);
    let down = G * slope.sin();
    let m = MechanismBuilder::new()
        .gravity([down, 0.0, -G * slope.cos()])
        .body("skate", BodySpec::new(2.0).inertia([0.1; 3]))
        .joint(
            "plane",
            JointSpec::new(JointKind::PlanarAxis, "skate").axis([0.0, 0.0, 1.0]),
        )
        .velocity_constraint("edge", &["skate"], Arc::new(knife_edge::KnifeEdge));
    let (s, x) = start(&m, &[0.0; 3], &[0.0, 0.0, spin]);
    // at rest the edge takes nothing from the degrees of freedom
    assert_eq!(s.mobility().degrees_of_freedom, 3);
    let size = down / (2.0 * spin * spin);
    let error = |h: f64| {
        let t = fall(&s, &x, 5.0, h);
        let turn = spin * 5.0;
        let x = t.state(t.steps());
        let dx = x[0] - size * turn.sin().powi(2);
        let dy = x[1] - size * (turn - 0.5 * (2.0 * turn).sin());
        dx.hypot(dy)
    };
    let errors = [0.02, 0.01, 0.005].map(error);
    for slope in slopes(&errors) {
        assert!((1.9..2.1).contains(&slope), "{}", list(&errors));
    }
    let t = fall(&s, &x, 50.0, 0.01);
    let energy = balance(&s, &t, &mut least_action::dynamics::Step::work(&s)).expect("read");
    assert!(energy.largest_error() < 1e-3, "{}", energy.largest_error());
}

/// A disc that rolls steadily, leaning, keeps its tilt, its precession, its energy, and does not slip.
#[test]
fn a_disc_rolls_steadily() {
    let (mass, radius) = (1.5, 0.25);
    let (along, about) = (0.25 * mass * radius * radius, 0.5 * mass * radius * radius);
    let disc = disc::Disc { radius };
    let inertia = [along, along, about];
    let m = MechanismBuilder::new()
        .body("disc", BodySpec::new(mass).inertia(inertia).free())
        .constraint("touch", &["disc"], Arc::new(disc))
        .velocity_constraint("roll", &["disc"], Arc::new(disc::NoSlip(disc)));
    let (tilt, precession) = (1.2_f64, 2.0);
    let (sin, cos) = tilt.sin_cos();
    let spin = (along * precession * precession * sin * cos - mass * G * radius * cos)
        / ((about + mass * radius * radius) * precession * sin);
    let (up, axis) = (Vec3::new(-cos, 0.0, sin), Vec3::new(sin, 0.0, cos));
    let omega = axis * spin + up * (precession * sin);
    let v = (omega * radius).cross(&up);
    let q = [0.0, 0.0, radius * sin, 0.0, tilt, 0.0];
    let rates = [v.x, v.y, v.z, omega.x, omega.y, omega.z];
    let (s, x) = start(&m, &q, &rates);
    assert_eq!(s.mobility().degrees_of_freedom, 5);
    let steps = 2000;
    let t = fall(&s, &x, 2.0, 0.001);
    let d = s.poses(t.state(steps))[0].r * Vec3::z();
    assert!((d.z.acos() - tilt).abs() < 2e-5, "{}", d.z.acos());
    let turned = (d.y.atan2(d.x) - 4.0).rem_euclid(std::f64::consts::TAU);
    assert!(
        turned.min(std::f64::consts::TAU - turned) < 1e-4,
        "{turned}"
    );
    let energy = balance(&s, &t, &mut least_action::dynamics::Step::work(&s)).expect("read");
    assert!(energy.largest_error() < 1e-8, "{}", energy.largest_error());
    for k in 0..=steps {
        let (pose, (v, w)) = (s.poses(t.state(k))[0], energy.velocities[k][0]);
        let d = pose.r * Vec3::z();
        let up = (Vec3::z() - d * d.z).normalize();
        let slip = (v - (pose.r * w).cross(&up) * radius).norm();
        assert!(
            slip < 1e-9 && (pose.x.z - radius * up.z).abs() < 1e-11,
            "{k}: {slip}"
        );
    }
}
