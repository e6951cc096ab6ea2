//! Models with other values of their parameters, and what is recorded of them.

use super::*;
use crate::rollout::{RolloutStats, Trajectory};

/// The sample with parameters of every sort.
fn tuned() -> Model {
    let mut document = parse(SAMPLE).expect("good");
    let of = |paths: &[&str]| paths.iter().map(|p| (*p).to_owned()).collect();
    let parameters = &mut document.builder.parameters;
    parameters.insert("masses".into(), of(&["bodies.pole.mass"]));
    parameters.insert("inertia".into(), of(&["bodies.cart.inertia.yy"]));
    parameters.insert("damping".into(), of(&["joints.hinge.damping"]));
    parameters.insert("arm".into(), of(&["joints.hinge.child_anchor.z"]));
    parameters.insert("gain".into(), of(&["actuators.push.gain"]));
    document.build(&Overrides::default()).expect("good")
}

const VALUES: [f64; 5] = [0.35, 0.02, 0.125, 0.75, 2.0];

fn rolled(m: &Model, p: &[f64]) -> Trajectory {
    let mut w = m.system.work();
    let x0 = m.problem.start(&m.system, p, &mut w).expect("starts");
    let mut t = Trajectory::new(&m.system, vec![0.05; 20], &x0);
    t.u.copy_from_slice(&m.problem.guess[..20]);
    t.p.copy_from_slice(p);
    t.roll(&m.system, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    t
}

#[test]
fn a_model_with_other_parameters_moves_alike() {
    let m = tuned();
    let other = m.with_parameters(&VALUES).expect("good");
    let mechanism = other.system.mechanism();
    assert_eq!(mechanism.bodies[1].mass, 0.35);
    assert_eq!(
        mechanism.bodies[1].inertia,
        m.system.mechanism().bodies[1].inertia
    );
    assert_eq!(mechanism.bodies[0].inertia[(1, 1)], 0.02);
    assert_eq!(mechanism.joints[1].directions[0].damping, 0.125);
    assert_eq!(mechanism.actuators[0].gain, 2.0);
    assert_eq!(other.problem.parameters, VALUES);
    let named = other.system.parameters();
    assert!(named.iter().map(|p| p.value).eq(VALUES));
    // built with the values or given them: the same motion
    let (a, b) = (rolled(&m, &VALUES), rolled(&other, &VALUES));
    let far = a.x.iter().zip(&b.x).map(|(a, b)| (a - b).abs());
    assert!(far.fold(0.0, f64::max) < 1e-12);
    // what means nothing is refused
    let mut wrong = VALUES;
    wrong[0] = -1.0;
    let e = m.with_parameters(&wrong).expect_err("a negative mass");
    assert!(e.to_string().contains("masses"), "{e}");
}

#[test]
fn what_is_recorded_has_the_parameters_found() {
    let m = tuned();
    let t = rolled(&m, &VALUES);
    let r = record(&m, &t, "converged", &[]).expect("records");
    let named: Vec<_> = r.parameters.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let names = ["masses", "inertia", "damping", "arm", "gain"];
    assert!(named.into_iter().eq(names.into_iter().zip(VALUES)));
    // the mechanism written is a file from which the same motion follows
    let builder: MechanismBuilder = serde_json::from_value(r.mechanism.clone()).expect("reads");
    let again = builder.build().expect("good");
    assert_eq!(again.bodies[1].mass, 0.35);
    assert_eq!(again.joints[1].child_anchor.z, 0.75);
    // energies are those of the new masses
    let error = r.channels.iter().find(|c| c.name == "energy error");
    let energy = r.channels.iter().find(|c| c.name == "potential");
    let at =
        |c: Option<&recording::Channel>, k: usize| c.and_then(|c| c.values[k]).expect("a value");
    let drop = -0.35 * 9.81 * 0.75;
    assert!((at(energy, 0) - drop).abs() < 1e-9, "{}", at(energy, 0));
    assert!(at(error, 20).abs() < 1e-3, "{}", at(error, 20));
    // through the file
    let place = folder("parameters").join("t.json");
    write_json(&place, &r).expect("writes");
    assert_eq!(read_recording(&place).expect("reads"), r);
    // with those it was built with nothing is built again
    let t = rolled(&m, &m.problem.parameters);
    let r = record(&m, &t, "converged", &[]).expect("records");
    assert_eq!(r.parameters["masses"], 0.2);
}

#[test]
fn the_fingerprint_is_that_of_what_is_solved() {
    let m = sample();
    let same = build(&changed("push = 0.01", "push = 0.02")).expect("good");
    assert_eq!(m.fingerprint(), same.fingerprint());
    for (from, to) in [
        ("mass = 0.2", "mass = 0.3"),
        ("horizon = 5.0", "horizon = 4.0"),
        ("weight = 0.1\n", "weight = 0.2\n"),
        ("[-3.0, 3.0]", "[-3.0, 4.0]"),
    ] {
        let other = build(&changed(from, to)).expect("good");
        assert!(m.fingerprint() != other.fingerprint(), "{to}");
    }
}

/// A body keeps its rotation law where its moments are no longer what that law is for: the motion found is the motion written.
#[test]
fn laws_of_rotation_stay_as_moments_change() {
    for (rotation, moments) in [
        ("\"ball\"", "[0.02, 0.02, 0.02]"),
        ("\"spin\"", "[0.02, 0.02, 0.03]"),
        ("\"chord\"", "[0.02, 0.02, 0.03]"),
    ] {
        let text = format!(
            "time_step = 0.05\nhorizon = 1.0\n[mechanism.bodies.body]\nmass = 1.0\ninertia = {moments}\n\
             free = true\nrotation = {rotation}\n[initial]\nbody = {{ angular_velocity = [2.0, 3.0, 9.0] }}\n\
             [parameters.moment]\nof = \"bodies.body.inertia.xx\"\n"
        );
        let m = build(&text).expect("good");
        let other = m.with_parameters(&[0.025]).expect("good");
        let law = |m: &Model| m.system.mechanism().bodies[0].rotation;
        assert_eq!(law(&m), law(&other));
        let flown = |m: &Model| {
            let mut w = m.system.work();
            let x0 = m.problem.start(&m.system, &[0.025], &mut w);
            let mut t = Trajectory::new(&m.system, vec![0.05; 20], &x0.expect("starts"));
            t.p.copy_from_slice(&[0.025]);
            t.roll(&m.system, &mut w, &mut RolloutStats::default())
                .expect("rolls");
            t.x
        };
        let (a, b) = (flown(&m), flown(&other));
        let far = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
        assert!(far.fold(0.0, f64::max) < 1e-12, "{rotation}");
    }
}
