//! Works of blows that go through light bodies, as `simulate` reports them.

use super::energy::{BOTH, is_done, simulate};
use super::{Folder, number};

/// Time step, s; block and rod, kg; length of the rod, m, and friction of its tip; friction of the knee, N m, and its stiffness, N m/rad;
/// its limits, rad; height and place of the block, m, and their rates, m/s; angle of the knee, rad.
const STRUCK: [[f64; 14]; 9] = [
    [
        2e-3, 19.0, 8.04e-3, 0.29, 0.557, 0.377, 7.39, 0.947, 1.3, 0.146, 0.278, -0.984, -0.69, 1.1,
    ],
    [
        1e-3, 8.66, 9.1e-3, 0.156, 0.76, 3.41e-3, 17.0, 0.728, 0.909, 0.124, 0.122, -0.181, -1.47,
        0.772,
    ],
    [
        1e-3, 14.2, 9.25e-3, 0.166, 1.46, 0.0381, 7.17, 0.302, 0.801, 0.155, 0.0901, -0.944,
        -0.773, 0.468,
    ],
    [
        0.02, 8.24, 6.74e-3, 0.267, 0.84, 1.54, 1.1, 1.1, 1.57, 0.064, 0.286, -1.18, -0.494, 1.36,
    ],
    [
        5e-3, 18.0, 0.0124, 0.392, 1.16, 1.02e-3, 13.7, 0.623, 1.14, 0.264, 0.32, 0.298, -1.01,
        0.874,
    ],
    [
        0.02, 18.6, 7.38e-3, 0.384, 0.704, 1.32e-3, 1.59, -1.13, -0.529, 0.302, 0.269, -1.82,
        -0.328, -0.849,
    ],
    [
        0.02, 10.6, 0.0478, 0.172, 1.16, 0.306, 5.22, 0.372, 0.709, 0.165, 0.0948, 0.778, -1.38,
        0.497,
    ],
    [
        0.02, 19.0, 0.0445, 0.183, 1.36, 0.0606, 4.2, 0.27, 0.89, 0.173, 0.113, 0.334, -0.118, 0.51,
    ],
    [
        0.01, 14.6, 0.0181, 0.157, 0.549, 1.68, 2.04, 1.11, 1.4, 0.0578, 0.168, -0.989, -1.07, 1.28,
    ],
];

/// Something strikes, the run is done without an energy warning, and the energy error is below 0.2 % of the energy at the start.
fn assert_balanced(folder: &Folder, text: &str, arguments: &[&str], what: &str) {
    let v = simulate(folder, text, arguments);
    assert!(is_done(&v), "{arguments:?}, {what}: {}", v["failure"]);
    let warnings = v["warnings"].to_string();
    assert!(
        !warnings.contains("energy error"),
        "{arguments:?}, {what}: {warnings}"
    );
    let [before, after, error] =
        ["energy_initial", "energy_final", "energy_error_max"].map(|of| number(&v, of));
    assert!(
        after < 0.9 * before,
        "{arguments:?}, {what}: it strikes nothing"
    );
    assert!(
        error < 0.002 * before,
        "{arguments:?}, {what}: {error:e} of {before} J"
    );
}

/// A block in a plane stands on a light rod, which a spring of the knee presses onto the floor; then the rod's tip strikes the wall, or the
/// knee its limit. The block stops at once, through the floor. Works were wrong by up to three times the energy.
#[test]
fn blows_go_through_light_rods_that_stand() {
    let folder = Folder::new("blows_rods");
    for struck in STRUCK {
        let [
            h,
            block,
            rod,
            length,
            friction,
            knee_friction,
            stiffness,
            ..,
        ] = struck;
        let [lower, upper, z, x, vz, vx, knee] = [7, 8, 9, 10, 11, 12, 13].map(|i| struck[i]);
        let half = 0.5 * length;
        let text = format!(
            r#"time_step = {h:e}
horizon = 0.5
[mechanism.half_spaces.floor]
[mechanism.half_spaces.wall]
normal = [1.0, 0.0, 0.0]
[mechanism.bodies.block]
mass = {block}
shape = {{ box = [0.1, 0.1, 0.1] }}
[mechanism.bodies.rod]
mass = {rod}
shape = {{ box = [0.01, 0.01, {length}] }}
contacts.tip = {{ shape = {{ sphere = 0.005 }}, position = [0.0, 0.0, -{half}], friction = {friction} }}
[mechanism.joints.slide]
kind = "planar"
child = "block"
axis = [0.0, 1.0, 0.0]
[mechanism.joints.knee]
kind = "revolute"
parent = "block"
child = "rod"
axis = [0.0, 1.0, 0.0]
child_anchor = [0.0, 0.0, {half}]
friction = {knee_friction}
limits = [{lower}, {upper}]
stiffness = {stiffness}
[initial]
slide = {{ coordinate = [{z}, {x}], rate = [{vz}, {vx}] }}
knee = {knee}
"#
        );
        for integrator in BOTH {
            let what = format!("h = {h}, {rod} and {block} kg");
            assert_balanced(&folder, &text, &["--integrator", integrator], &what);
        }
    }
}

/// A hammer falls onto the stop above a light foot that stands on the floor, in the first step or later, and bounces or not. Works were wrong by up
/// to the whole energy.
#[test]
fn blows_of_hammers_go_through_standing_feet() {
    let folder = Folder::new("blows_hammers");
    for (hammer, foot, h, restitution, stiffness) in [
        (5.0, 0.02, 0.01, 0.8, 500.0),
        (5.0, 0.02, 0.004, 0.8, 500.0),
        (12.0, 0.01, 0.004, 0.5, 300.0),
        (2.0, 0.05, 0.01, 0.3, 200.0),
        (5.0, 0.005, 0.002, 0.9, 1000.0),
        (20.0, 0.02, 0.005, 0.0, 800.0),
        (5.0, 0.02, 0.01, 0.0, 500.0),
    ] {
        let text = format!(
            r#"time_step = {h:e}
horizon = 2.0
[mechanism.half_spaces.floor]
[mechanism.bodies.hammer]
mass = {hammer}
shape = {{ sphere = 0.1 }}
[mechanism.bodies.foot]
mass = {foot}
shape = {{ sphere = 0.02 }}
contacts.skin = {{ friction = 0.5 }}
[mechanism.joints.rail]
kind = "prismatic"
child = "hammer"
axis = [0.0, 0.0, 1.0]
[mechanism.joints.leg]
kind = "prismatic"
parent = "hammer"
child = "foot"
axis = [0.0, 0.0, -1.0]
parent_anchor = [0.0, 0.0, -0.2]
stiffness = {stiffness}
limits = [-0.03, 0.2]
restitution = {restitution}
[initial]
rail = {{ coordinate = 0.2, rate = -2.0 }}
leg = {{ coordinate = -0.02, rate = -2.0 }}
"#
        );
        // bounces are those of `maximal`
        let offered = if restitution > 0.0 { &BOTH[1..] } else { &BOTH };
        for integrator in offered {
            for substeps in [&[][..], &["--substeps", "1"]] {
                let arguments = [&["--integrator", *integrator], substeps].concat();
                let what = format!("{hammer} and {foot} kg, h = {h}");
                assert_balanced(&folder, &text, &arguments, &what);
            }
        }
    }
}

/// A pad that an actuator or a spring presses reaches the floor, within the first step or later. It loses what the push did, and the
/// weight: without rotation and with constant forces works are exact, however light the pad.
#[test]
fn pressed_pads_land_exactly() {
    let folder = Folder::new("blows_pads");
    for (pad, push, gap, h) in [
        (0.01, 10.0, 1e-3, 0.005),
        (0.001, 50.0, 2e-3, 0.01),
        (0.1, 20.0, 0.02, 0.002),
        (0.005, 100.0, 5e-3, 0.001),
        (1.0, 0.0, 0.1, 0.01),
    ] {
        let text = format!(
            r#"time_step = {h:e}
horizon = 0.2
[mechanism.half_spaces.floor]
[mechanism.bodies.pad]
mass = {pad}
shape = {{ sphere = 0.01 }}
contacts.skin = {{ friction = 0.5 }}
[mechanism.joints.rail]
kind = "prismatic"
child = "pad"
axis = [0.0, 0.0, 1.0]
[mechanism.actuators.push]
joint = "rail"
[initial]
rail = {}
[guess]
controls = {{ push = -{push} }}
"#,
            0.01 + gap
        );
        for integrator in BOTH {
            for substeps in [&[][..], &["--substeps", "1"]] {
                let arguments = [&["--integrator", integrator], substeps].concat();
                let v = simulate(&folder, &text, &arguments);
                let what = format!("{arguments:?}, {pad} kg, {push} N, h = {h}");
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let spent = (push + 9.81 * pad) * gap;
                let impacts = number(&v["work"], "impacts");
                assert!(
                    (impacts + spent).abs() < 1e-6 * spent,
                    "{what}: {impacts} J"
                );
                let error = number(&v, "energy_error_max");
                assert!(error < 1e-6 * spent, "{what}: {error:e} of {spent} J");
            }
        }
    }
}
