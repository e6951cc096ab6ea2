//! Rolling without slip is second order, by constraints and by friction, against the equations of a body that rolls.

use super::*;
use crate::common::{G, assert_second_order, fall, list, runge_kutta, start};
use crate::disc;
use least_action::rollout::{Trajectory, balance};
use least_action::spatial::{Mat3, Pose, Quat, exp};
use nalgebra::Quaternion;
use std::sync::Arc;

/// A body that rolls on the plane z = 0: how far it is from its center of mass to where it touches, world frame, and the
/// rate of that as it turns.
type Arm<'a> = &'a dyn Fn(&Mat3, &Vec3) -> (Vec3, Vec3);

/// Position and rotation of a body that rolls for some seconds from rest but for its spin `w` (world frame). Of the moments
/// about the center of mass, with `r` its arm, `v = r x w` and the force `m (v' - g)`:
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

/// A disc of half a metre and 1 kg on its rim, its plane leaning by 30 degrees, that spins by 4 rad/s: 7.25 J.
const RADIUS: f64 = 0.5;
const INERTIA: [f64; 3] = [0.0625, 0.0625, 0.125];

/// Errors against where it ends after a second at intervals that halve, and of the energy. Its rim is by `half` below its middle:
///
/// ```text
/// arm = -R u/|u| - half d,   u = z - d (z.d)
/// ```
fn disc_on_its_rim(m: &MechanismBuilder, half: f64) -> ([f64; 3], f64) {
    let arm = |r: &Mat3, w: &Vec3| {
        let d = r * Vec3::z();
        let rate = w.cross(&d);
        let (u, by) = (Vec3::z() - d * d.z, -rate * d.z - d * rate.z);
        let s = u.norm();
        let turns = by / s - u * (u.dot(&by) / (s * s * s));
        (-u * (RADIUS / s) - d * half, -turns * RADIUS - rate * half)
    };
    let turn = Vec3::y() * 60.0_f64.to_radians();
    let r = exp(&turn).to_rotation_matrix().into_inner();
    let w = r * Vec3::z() * 4.0;
    let start = arm(&r, &w).0;
    let v = start.cross(&w);
    let q = [0.0, 0.0, -start.z, turn.x, turn.y, turn.z];
    let rates = [v.x, v.y, v.z, w.x, w.y, w.z];
    let inertia = Mat3::from_diagonal(&INERTIA.into());
    let end = rolled(inertia, 1.0, &arm, (turn, w), 1.0);
    errors(m, (&q, &rates), &end, 1.0)
}

#[test]
fn a_disc_on_its_rim_wobbles_to_second_order() {
    let rim = disc::Disc { radius: RADIUS };
    let m = MechanismBuilder::new()
        .body("disc", BodySpec::new(1.0).inertia(INERTIA).free())
        .constraint("touch", &["disc"], Arc::new(rim))
        .velocity_constraint("roll", &["disc"], Arc::new(disc::NoSlip(rim)));
    let (errors, energy) = disc_on_its_rim(&m, 0.0);
    assert_second_order("disc", &errors);
    assert!(energy < 5e-4 * 7.25, "{energy}");
}

/// The same held by friction alone, the rim that of a coin.
#[test]
fn a_disc_that_friction_holds_wobbles_to_second_order() {
    let length = 0.01;
    let coin = Shape::Cylinder {
        radius: RADIUS,
        length,
    };
    let disc = BodySpec::new(1.0)
        .inertia(INERTIA)
        .free()
        .contact("rim", ContactSpec::new(1.5).shape(coin));
    let m = MechanismBuilder::new()
        .body("disc", disc)
        .half_space("floor", HalfSpaceSpec::default());
    let (errors, energy) = disc_on_its_rim(&m, 0.5 * length);
    assert_second_order("disc on friction", &errors);
    assert!(energy < 5e-4 * 7.25, "{energy}");
}

/// A ball with its center of mass off its middle that spins fast and slides turns over: the tilt of its axis in time, by
/// Coulomb's friction at the lowest point, its direction smoothed below `still` m/s.
///
/// ```text
/// N = m (g - (w' x c + w x (w x c))_z),   F = N (e_z - mu u/|u|),   u = v + w x r,   J w' + w x J w = r x F
/// ```
struct Top {
    mass: f64,
    radius: f64,
    /// From the center of mass to the middle, along the axis.
    off: f64,
    /// Across the axis and along it.
    inertia: [f64; 2],
    friction: f64,
}

impl Top {
    /// Cosines of the tilt every `every` seconds, from a tilt of 0.1 rad and a spin about the vertical.
    fn tilts(&self, spin: f64, seconds: f64, every: f64) -> Vec<f64> {
        let still = 1e-5;
        let [across, along] = self.inertia;
        let inertia = Mat3::from_diagonal(&Vec3::new(across, across, along));
        let rates = |_: f64, y: &[f64; 10]| {
            let q = Quaternion::new(y[0], y[1], y[2], y[3]);
            let (w, v) = (Vec3::new(y[4], y[5], y[6]), Vec3::new(y[7], y[8], y[9]));
            let r = Quat::new_normalize(q).to_rotation_matrix().into_inner();
            let j = r * inertia * r.transpose();
            let inverse = j.try_inverse().expect("positive");
            let c = r * Vec3::z() * self.off;
            let arm = c - Vec3::z() * self.radius;
            let mut slip = v + w.cross(&arm);
            slip.z = 0.0;
            let force = Vec3::z() - slip * (self.friction / slip.norm().hypot(still));
            let lift = c.cross(&Vec3::z());
            let (by_force, own) = (inverse * arm.cross(&force), inverse * w.cross(&(j * w)));
            let rise = w.cross(&w.cross(&c)).z;
            let normal =
                self.mass * (G + own.dot(&lift) - rise) / (1.0 + self.mass * by_force.dot(&lift));
            let wdot = by_force * normal - own;
            let vdot = force * (normal / self.mass) - Vec3::z() * G;
            let qdot = Quaternion::from_imag(w) * q * 0.5;
            [
                qdot.w, qdot.i, qdot.j, qdot.k, wdot.x, wdot.y, wdot.z, vdot.x, vdot.y, vdot.z,
            ]
        };
        let q = exp(&(Vec3::y() * TILT));
        let w = Vec3::z() * spin;
        let v = self.falls(&w);
        let mut y = [q.w, q.i, q.j, q.k, w.x, w.y, w.z, v.x, v.y, v.z];
        let mut tilts = vec![TILT.cos()];
        for _ in 0..(seconds / every).round() as usize {
            y = runge_kutta(rates, y, every, (every / 1e-5).round() as usize);
            let q = Quat::new_normalize(Quaternion::new(y[0], y[1], y[2], y[3]));
            tilts.push((q * Vec3::z()).z);
        }
        tilts
    }

    /// Its middle at rest.
    fn falls(&self, w: &Vec3) -> Vec3 {
        -w.cross(&(exp(&(Vec3::y() * TILT)) * Vec3::z() * self.off))
    }

    fn simulated(&self, spin: f64, seconds: f64, (h, every): (f64, f64)) -> Vec<f64> {
        let [across, along] = self.inertia;
        let ball = ContactSpec::new(self.friction)
            .shape(Shape::Sphere(self.radius))
            .at([0.0, 0.0, self.off]);
        let body = BodySpec::new(self.mass)
            .inertia([across, across, along])
            .free()
            .contact("ball", ball);
        let m = MechanismBuilder::new()
            .body("top", body)
            .half_space("floor", HalfSpaceSpec::default());
        let w = Vec3::z() * spin;
        let v = self.falls(&w);
        let height = self.radius - self.off * TILT.cos();
        let q = [0.0, 0.0, height, 0.0, TILT, 0.0];
        let (s, x) = start(&m, &q, &[v.x, v.y, v.z, w.x, w.y, w.z]);
        let t: Trajectory = fall(&s, &x, seconds, h);
        let stride = (every / h).round() as usize;
        (0..=t.steps())
            .step_by(stride)
            .map(|k| (s.poses(t.state(k))[0].r * Vec3::z()).z)
            .collect()
    }
}

/// rad, at the start.
const TILT: f64 = 0.1;

#[test]
fn a_tippe_top_turns_over_in_time() {
    let top = Top {
        mass: 0.02,
        radius: 0.02,
        off: 0.006,
        inertia: [3.0e-6, 3.0e-6],
        friction: 0.3,
    };
    let (spin, seconds, every) = (150.0, 3.0, 0.02);
    let exact = top.tilts(spin, seconds, every);
    // its stem below, leaning by 30 degrees, and stays so
    let turned = exact.iter().position(|c| *c < -0.8).expect("it turns over");
    let errors = [0.002, 0.001, 0.0005, 0.00025].map(|h| {
        let tilts = top.simulated(spin, seconds, (h, every));
        let own = tilts.iter().position(|c| *c < -0.8).expect("it turns over");
        println!(
            "h {h}: over after {:.2} s, exactly {:.2} s",
            own as f64 * every,
            turned as f64 * every
        );
        let apart = exact.iter().zip(&tilts).map(|(a, b)| (a - b).abs());
        apart.fold(0.0, f64::max)
    });
    println!("errors of the cosine of the tilt {}", list(&errors));
    // first order in the direction of sliding friction
    for (e, limit) in errors.iter().zip([0.4, 0.2, 0.1, 0.05]) {
        assert!(*e < limit, "{errors:?}");
    }
}

/// A ball whose center of mass is not in its middle, held by friction alone.
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
        let center = r * Vec3::z() * off;
        (center - Vec3::z() * radius, w.cross(&center))
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
