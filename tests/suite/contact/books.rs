//! The works of what touches add up to the change of energy, whatever the intervals.

use least_action::dynamics::Step;
use least_action::format::{self, Overrides};
use least_action::rollout::{RolloutStats, Trajectory, balance};

/// A body of a shape that flies, turning, at a wall, without gravity.
fn thrown(integrator: &str, shape: &str, (speed, spin): (f64, f64)) -> String {
    format!(
        "time_step = 0.01\nhorizon = 0.1\nintegrator = \"{integrator}\"\n[mechanism]\ngravity = [0, 0, 0]\n\
         [mechanism.terrain.wall]\nshape = {{ box = [0.5, 4.0, 4.0] }}\nposition = [0.65, 0.0, 0.0]\nfriction = 0.3\n\
         [mechanism.bodies.b]\nmass = 0.2\nshape = {{ sphere = 0.025 }}\nfree = true\n\
         contacts.hull = {{ shape = {shape}, friction = 0.3 }}\n\
         [initial.b]\nposition = [0.013, 0.0, 0.0]\norientation = {{ rpy = [0.1, 0.2, 0.3] }}\n\
         velocity = [{speed:?}, 1.0, 0.2]\nangular_velocity = [3.0, {spin:?}, -5.0]\n"
    )
}

/// No force acts but those of the wall. What touches it in a step does so in the read-out at the step's start, however long the
/// interval before was.
#[test]
fn unequal_intervals_keep_the_books() {
    let shapes = [
        "{ box = [0.05, 0.05, 0.05] }",
        "{ box = [0.04, 0.08, 0.03] }",
        "{ capsule = { radius = 0.02, length = 0.03 } }",
        "{ hull = [[-0.025, 0, 0], [0.025, 0, 0], [0, -0.025, 0], [0, 0.025, 0], [0, 0, -0.025], [0, 0, 0.025]] }",
    ];
    // of a step in parts: one, four, sixteen
    let patterns: [&[f64]; 3] = [
        &[0.01, 0.0025, 0.0025, 0.0025, 0.0025],
        &[0.016, 0.001, 0.001],
        &[0.003, 0.012, 0.0006],
    ];
    let mut hits = 0;
    for shape in shapes {
        for motion in [(3.0, 9.0), (5.0, 25.0), (2.0, -30.0)] {
            for integrator in ["minimal", "maximal"] {
                for (i, pattern) in patterns.iter().enumerate() {
                    let text = thrown(integrator, shape, motion);
                    let document = format::parse(&text, "wall.toml").expect("a file");
                    let model = document.build(&Overrides::default()).expect("a model");
                    let (s, p) = (&model.system, &model.problem);
                    let extended = model.extended();
                    let x0 = p.start(&extended, &p.parameters, &mut extended.work());
                    let x0 = x0.expect("a start");
                    let intervals: Vec<f64> = pattern.iter().copied().cycle().take(60).collect();
                    let mut t = Trajectory::new(s, intervals, &x0[..s.dims().nx]);
                    let (mut w, mut stats) = (s.work(), RolloutStats::default());
                    let what = format!("{integrator}, {shape}, {motion:?}, {i}");
                    let rolled = t.roll(s, &mut w, &mut stats);
                    rolled.unwrap_or_else(|e| panic!("{what}: {e}"));
                    let b = balance(s, &t, &mut w).expect("read");
                    let (before, after) = (b.energy(0), b.energy(t.steps()));
                    hits += usize::from(after < 0.9 * before);
                    let error = b.largest_error();
                    assert!(error < 1e-6 * before, "{what}: {error:e} of {before} J");
                    let most = b.impacts.iter().fold(0.0_f64, |m, w| m.max(*w));
                    assert!(most < 1e-9, "{what}: impacts do {most:e} J");
                }
            }
        }
    }
    assert!(hits > 60, "{hits} of 72 hit the wall");
}
