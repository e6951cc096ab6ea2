//! The two applications of paper 000, section 5.4: gains of an exoskeleton for two patients, and a quadruped that walks.

use argmin::core::{CostFunction, Gradient};
use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::optimize::Reduced;
use least_action::rollout::{RolloutStats, Trajectory};
use nalgebra::DVector;
use std::path::Path;

/// A shipped problem with a line changed.
fn load(name: &str, from: &str, to: &str) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems");
    let path = folder.join(name).with_extension("toml");
    let text = std::fs::read_to_string(&path).expect("a shipped problem");
    assert!(text.contains(from), "{from}");
    let document = format::parse(&text.replacen(from, to, 1), path);
    let built = document.and_then(|d| d.build(&Overrides::default()));
    built.expect("a shipped problem")
}

/// Two loops, four freedoms; with the gains that the paper adapts the tracking error is what prototypes had, and its gradient
/// through 2000 steps of both patients is that of differences.
#[test]
fn gains_of_an_exoskeleton() {
    let m = load(
        "exoskeleton_gains",
        "time_step = 0.001",
        "time_step = 0.005",
    );
    let mobility = m.scenarios[0].model.system.mobility();
    assert_eq!((mobility.degrees_of_freedom, mobility.loops), (4, 2));
    let system = m.extended();
    let reduced = Reduced::new(&system, &m.problem).expect("it fits");
    let at = reduced.guess();
    let error = reduced.objective(&at).expect("simulated");
    assert!((error - 2.02).abs() < 2e-3, "{error}");
    let gradient = reduced.gradient(&at).expect("differentiated");
    assert_eq!(gradient.len(), 4);
    let value = |v: DVector<f64>| reduced.cost(&v).expect("simulated");
    for i in 0..4 {
        let slope = |by: f64| {
            let mut d = DVector::zeros(4);
            d[i] = by;
            (value(&at + &d) - value(&at - &d)) / (2.0 * by)
        };
        let difference = (4.0 * slope(1e-3) - slope(2e-3)) / 3.0;
        let off = (difference - gradient[i]).abs();
        assert!(
            off < 1e-7 * gradient.amax(),
            "{i}: {difference} {}",
            gradient[i]
        );
    }
}

/// With the gait at rest the robot comes down on its feet and stands, its sides mirror images of each other.
#[test]
fn a_quadruped_stands() {
    let m = load("a1_walk", "horizon = 10.0", "horizon = 0.5");
    let system = m.extended();
    let (mut w, p) = (system.work(), &m.problem.parameters);
    let x0 = m.problem.start(&system, p, &mut w).expect("a start");
    let mut t = Trajectory::new(&system, m.problem.intervals.clone(), &x0);
    t.p.copy_from_slice(p);
    t.roll(&system, &mut w, &mut RolloutStats::default())
        .expect("it stands");
    let mechanism = m.system.mechanism();
    let mass: f64 = mechanism.bodies.iter().map(|b| b.mass).sum();
    assert!((mass - 12.213).abs() < 1e-9, "{mass}");
    let poses = m.system.poses(&t.state(t.steps())[..m.system.dims().nx]);
    let of = |name: &str| {
        let body = mechanism.body(name).expect("a body");
        poses[body].point(&mechanism.bodies[body].origin)
    };
    let trunk = of("trunk");
    assert!((0.27..0.29).contains(&trunk.z), "{trunk}");
    for (right, left) in [("FR_calf", "FL_calf"), ("RR_thigh", "RL_thigh")] {
        let (right, left) = (of(right), of(left));
        assert!((right.z - left.z).abs() < 5e-3 && (right.x - left.x).abs() < 5e-3);
        assert!((right.y + left.y - 2.0 * trunk.y).abs() < 5e-3);
    }
}
