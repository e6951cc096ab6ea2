//! Rolling without slip is second order, by constraints and by friction, against the equations of a body that rolls.

use super::*;
use crate::common::{G, assert_second_order, fall, runge_kutta, start};
use crate::disc;
use least_action::rollout::{Trajectory, balance};
use least_action::spatial::{Mat3, Pose, Quat, exp};
use nalgebra::Quaternion;
use std::sync::Arc;

/// A body that rolls on the plane z = 0: how far it is from its centre of mass to where it touches, world frame, and the
/// rate of that as it turns.
type Arm<'a> = &'a dyn Fn(&Mat3, &Vec3) -> (Vec3, Vec3);

/// Position and rotation of a body that rolls for some seconds from rest but for its spin `w` (world frame). Of the moments
/// about the centre of mass, with `r` its arm, `v = r x w` and the force `m (v' - g)`:
///
/// ```text
/// J w' + w x J w = m r x (r' x w + r x w' - g)
/// ```
fn rolled(inertia: Mat3, mass: f64, arm: Arm, (turn, w): (Vec3, Vec3), seconds: f64) -> Pose {
    let q = exp(&turn);
    let up = arm(&q.to_rotation_matrix().into_inner(), &w).0;
    let y = [q.w, q.i, q.j, q.k, w.x, w.y, w.z, 0.0, 0.0, -up.z];
    let rates = |_: f64, y: &[f64; 10]| {
        let q = Quaternion::new(y[0], y[1], y[2], y[3]);
        let w = Vec3::new(y[4], y[5], y[6]);
        let r = Quat::new_normalize(q).to_rotation_matrix().into_inner();
        let (arm, rate) = arm(&r, &w);
        let j = r * inertia * r.transpose();
        let moment = arm.cross(&(rate.cross(&w) + Vec3::z() * G)) * mass - w.cross(&(j * w));
        let whole = j + (Mat3::identity() * arm.norm_squared() - arm * arm.transpose()) * mass;
        let wdot = whole.try_inverse().expect("positive") * moment;
        let qdot = Quaternion::from_imag(w) * q * 0.5;
        let v = arm.cross(&w);
        [
            qdot.w, qdot.i, qdot.j, qdot.k, wdot.x, wdot.y, wdot.z, v.x, v.y, v.z,
        ]
    };
    let y = runge_kutta(rates, y, seconds, (seconds / 1e-4).round() as usize);
    let q = Quat::new_normalize(Quaternion::new(y[0], y[1], y[2], y[3]));
    Pose::new(Vec3::new(y[7], y[8], y[9]), q)
}

/// Errors of the position at intervals that halve, and the largest error of the energy at 0.01 s.
fn errors(
    b: &MechanismBuilder,
    (q, rates): (&[f64], &[f64]),
    end: &Pose,
    seconds: f64,
) -> ([f64; 3], f64) {
    let (s, x) = start(b, q, rates);
    let mut energy = 0.0;
    let errors = [0.02, 0.01, 0.005].map(|h| {
        let t: Trajectory = fall(&s, &x, seconds, h);
        if h == 0.01 {
            let b = balance(&s, &t, &mut s.work()).expect("read");
            energy = (0..=t.steps())
                .map(|k| (b.energy(k) - b.energy(0)).abs())
                .fold(0.0, f64::max);
            println!(
                "energy {:.3} J, largest error {energy:.1e} J, with the work of friction {:.1e} J",
                b.energy(0),
                b.largest_error()
            );
        }
        (s.poses(t.state(t.steps()))[0].x - end.x).norm()
    });
    (errors, energy)
}

#[test]
fn a_disc_on_its_rim_wobbles_to_second_order() {
    let (mass, radius) = (1.0, 0.5);
    let (along, about) = (0.25 * mass * radius * radius, 0.5 * mass * radius * radius);
    let inertia = [along, along, about];
    let rim = disc::Disc { radius };
    let m = MechanismBuilder::new()
        .body("disc", BodySpec::new(mass).inertia(inertia).free())
        .constraint("touch", &["disc"], Arc::new(rim))
        .velocity_constraint("roll", &["disc"], Arc::new(disc::NoSlip(rim)));
    let arm = |r: &Mat3, w: &Vec3| {
        let d = r * Vec3::z();
        let rate = w.cross(&d);
        let (u, by) = (Vec3::z() - d * d.z, -rate * d.z - d * rate.z);
        let s = u.norm();
        let r = u * (-radius / s);
        (r, (by - u * (u.dot(&by) / (s * s))) * (-radius / s))
    };
    // its plane leans by 30 degrees
    let turn = Vec3::y() * 60.0_f64.to_radians();
    let r = exp(&turn).to_rotation_matrix().into_inner();
    let w = r * Vec3::z() * 4.0;
    let start = arm(&r, &w).0;
    let v = start.cross(&w);
    let q = [0.0, 0.0, -start.z, turn.x, turn.y, turn.z];
    let rates = [v.x, v.y, v.z, w.x, w.y, w.z];
    let end = rolled(
        Mat3::from_diagonal(&inertia.into()),
        mass,
        &arm,
        (turn, w),
        1.0,
    );
    let (errors, energy) = errors(&m, (&q, &rates), &end, 1.0);
    assert_second_order("disc", &errors);
    // of 7.25 J
    assert!(energy < 5e-4 * 7.25, "{energy}");
}

/// A ball whose centre of mass is not in its middle, held by friction alone.
#[test]
fn a_loaded_ball_that_friction_holds_rolls_to_second_order() {
    let (mass, radius, off) = (1.0, 0.25, 0.08);
    let inertia = [0.02, 0.03, 0.025];
    let ball = BodySpec::new(mass).inertia(inertia).free().contact(
        "ball",
        ContactSpec::new(1.5)
            .shape(Shape::Sphere(radius))
            .at([0.0, 0.0, off]),
    );
    let m = MechanismBuilder::new()
        .body("ball", ball)
        .half_space("floor", HalfSpaceSpec::default());
    let arm = |r: &Mat3, w: &Vec3| {
        let centre = r * Vec3::z() * off;
        (centre - Vec3::z() * radius, w.cross(&centre))
    };
    let (turn, w) = (Vec3::new(0.6, 0.3, 0.0), Vec3::new(-2.0, 3.0, 4.0));
    let r = exp(&turn).to_rotation_matrix().into_inner();
    let start = arm(&r, &w).0;
    let v = start.cross(&w);
    let q = [0.0, 0.0, -start.z, turn.x, turn.y, turn.z];
    let rates = [v.x, v.y, v.z, w.x, w.y, w.z];
    let end = rolled(
        Mat3::from_diagonal(&inertia.into()),
        mass,
        &arm,
        (turn, w),
        1.0,
    );
    let (errors, energy) = errors(&m, (&q, &rates), &end, 1.0);
    assert_second_order("loaded ball", &errors);
    assert!(energy < 5e-4 * 2.0, "{energy}");
}
