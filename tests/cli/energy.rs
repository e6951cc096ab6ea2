//! The energy check of `simulate`: right motion passes, explosions fail, and what a failed step reports.

use super::{Folder, number};
use serde_json::Value;

pub(super) const BOTH: [&str; 2] = ["minimal", "maximal"];

/// Runs a file by an integrator; 0 where it is done, 1 where it failed.
pub(super) fn simulate(folder: &Folder, text: &str, arguments: &[&str]) -> Value {
    folder.write("case.toml", text);
    let run = folder.run(&[&["simulate", "case.toml", "--json"], arguments].concat());
    let value = run.json();
    let expected = match value["status"].as_str() {
        Some("done") => 0,
        Some("failed") => 1,
        other => panic!("status {other:?}"),
    };
    run.ended(expected);
    value
}

pub(super) fn is_done(v: &Value) -> bool {
    if v["status"] == "failed" {
        assert!(v["failure"]["time"].is_number(), "{v:#}");
        assert!(v["failure"]["element"].is_string(), "{v:#}");
        assert!(v["final"]["bodies"].is_object(), "{v:#}");
    }
    v["status"] == "done"
}

/// Springs in plain steps on either side of `h omega = 2`, released or in motion, with and without a damper. In automatic
/// substeps all of them run.
#[test]
fn springs_fail_where_they_are_unstable() {
    let folder = Folder::new("energy_springs");
    for (i, size) in [0.3, 0.8, 1.2, 2.05, 2.3, 4.0].into_iter().enumerate() {
        for (k, h) in [0.001, 0.01, 0.03].into_iter().enumerate() {
            let mass = [1e-2, 1.0, 20.0][(i + k) % 3];
            let stiffness = mass * size * size / (h * h);
            // a damper does not move the limit
            let damping = [0.0, 0.1, 50.0][(i + 2 * k) % 3] * mass / h;
            let (at, rate) = [(0.1, 0.0), (0.0, 2.0)][(i + k) % 2];
            let is_strong = damping * h > mass;
            let text = format!(
                r#"time_step = {h:e}
horizon = {:e}
[mechanism]
[mechanism.bodies.bob]
mass = {mass:e}
inertia = [{mass:e}, {mass:e}, {mass:e}]
[mechanism.joints.x]
kind = "prismatic"
child = "bob"
axis = [0.3, 0.0, 1.0]
stiffness = {stiffness:e}
damping = {damping:e}
[initial]
x = {{ coordinate = {at}, rate = {rate} }}
"#,
                // a strong damper lets it grow slowly
                if is_strong { 2000.0 * h } else { 200.0 * h }
            );
            for integrator in BOTH {
                let what = format!("{integrator}, h omega = {size}, h = {h}, d = {damping}");
                let by = ["--integrator", integrator];
                let v = simulate(&folder, &text, &[&by[..], &["--substeps", "1"]].concat());
                assert_eq!(is_done(&v), size < 2.0, "{what}: {v:#}");
                let v = simulate(&folder, &text, &[&by[..], &["--substeps", "auto"]].concat());
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let parts = number(&v, "substeps_max");
                assert!(
                    parts >= size && parts <= 4.0 * size.max(1.0),
                    "{what}: {parts}"
                );
            }
        }
    }
}

/// Two free bodies on a hinge, without gravity: nothing changes their energy but the error of the step.
#[test]
fn free_flight_keeps_its_energy() {
    let folder = Folder::new("energy_flight");
    for (i, h) in [2e-3, 1e-3, 5e-3, 1e-2, 2e-3, 1e-4].into_iter().enumerate() {
        let (mass, spin) = ([30.0, 1.0, 1e-2][i % 3], [1.0, 5.0, 0.1][(i / 2) % 3]);
        let text = format!(
            r#"time_step = {h:e}
horizon = {:e}
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.a]
mass = {mass:e}
inertia = [{:e}, {:e}, {:e}]
free = true
[mechanism.bodies.b]
mass = {mass:e}
inertia = [{:e}, {:e}, {:e}]
[mechanism.joints.hinge]
kind = "revolute"
parent = "a"
child = "b"
axis = [0.0, 0.3, 1.0]
parent_anchor = [0.5, 0.0, 0.0]
child_anchor = [-0.5, 0.0, 0.0]
[initial.a]
position = [0.0, 0.0, 0.0]
velocity = [1.0, 0.0, 0.0]
angular_velocity = [0.1, 0.0, {spin}]
[initial.hinge]
coordinate = 0.3
rate = {spin}
"#,
            250.0 * h,
            mass / 30.0,
            mass / 15.0,
            mass / 10.0,
            mass / 30.0,
            mass / 15.0,
            mass / 10.0,
        );
        for integrator in BOTH {
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            assert!(is_done(&v), "{integrator}, h = {h}: {}", v["failure"]);
            let error = number(&v, "energy_error_max") / number(&v, "energy_initial");
            assert!(error < 1e-2, "{integrator}, h = {h}: {error:e}");
        }
    }
}

/// A constant force drives a slide against its stop: in the end the force has worked over the whole way, whenever within a
/// step the slide meets the stop, and the stop has taken all of it.
#[test]
fn actuators_work_over_the_way_where_something_strikes() {
    let folder = Folder::new("energy_strike");
    for i in 0..10 {
        let (way, force) = (0.1 + 0.0137 * f64::from(i), 7.0);
        let h = [0.01, 0.004][i as usize % 2];
        let text = format!(
            r#"time_step = {h:e}
horizon = 0.6
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.car]
mass = 2.0
inertia = [1.0, 1.0, 1.0]
[mechanism.joints.x]
kind = "prismatic"
child = "car"
axis = [1.0, 0.0, 0.0]
limits = [0.0, inf]
[mechanism.actuators.u]
joint = "x"
[initial]
x = {way:e}
[guess]
controls = {{ u = -{force} }}
[[costs]]
quantity = {{ joint = "x" }}
weight = 1.0
"#
        );
        for integrator in BOTH {
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            let what = format!("{integrator}, {way} m, h = {h}");
            assert!(is_done(&v), "{what}: {}", v["failure"]);
            let (work, expected) = (number(&v["work"], "actuators"), force * way);
            assert!(
                (work - expected).abs() < 1e-8,
                "{what}: {work} of {expected}"
            );
            let all: f64 = ["actuators", "dampers", "friction", "impacts"]
                .map(|of| number(&v["work"], of))
                .iter()
                .sum();
            let left = number(&v, "energy_final") - number(&v, "energy_initial") - all;
            assert!(left.abs() < 1e-8, "{what}: {left:e} J");
        }
    }
}

/// What fails on the way reports when, which element, the residual, and the last state.
#[test]
fn a_failed_step_reports_where_it_got() {
    let folder = Folder::new("energy_failed_step");
    // it is spun up to where a step has no solution
    let spun = r#"time_step = 0.01
horizon = 2.0
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.rotor]
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[mechanism.joints.x]
kind = "revolute"
child = "rotor"
axis = [1.0, 0.0, 0.0]
[mechanism.actuators.u]
joint = "x"
[guess]
controls = { u = 20.0 }
[[costs]]
quantity = { joint = "x" }
weight = 1.0
"#;
    for integrator in BOTH {
        let v = simulate(
            &folder,
            spun,
            &["--integrator", integrator, "--substeps", "1"],
        );
        assert!(!is_done(&v), "{integrator}");
        let failure = &v["failure"];
        let (time, steps) = (number(failure, "time"), number(&v, "steps"));
        assert!((time - 0.01 * steps).abs() < 1e-9 && steps > 10.0, "{v:#}");
        assert!(failure.get("residual").is_some(), "{failure}");
        let element = failure["element"].as_str().expect("a name");
        assert!(element.contains("rotor"), "{element}");
        let rate = super::numbers(&v["final"]["joints"]["x"]["rates"])[0];
        assert!(rate > 50.0, "{rate}");
    }
}

/// The stiff flyball governor (IFToMM A05): two arms with balls of 5 kg turn with a shaft; springs with strong dampers connect their
/// middles to a slider on it.
fn governor(stiffness: f64, damping: f64, h: f64) -> String {
    let mut text = format!(
        r#"time_step = {h:e}
horizon = 0.5
[mechanism]
[mechanism.bodies.shaft]
mass = 0.3
inertia = [0.025, 0.025, 5e-6]
[mechanism.bodies.slider]
mass = 3.0
inertia = [0.005, 0.005, 0.005]
[mechanism.joints.spin]
kind = "revolute"
child = "shaft"
axis = [0.0, 0.0, 1.0]
child_anchor = [0.0, 0.0, -0.5]
[mechanism.joints.slide]
kind = "prismatic"
parent = "shaft"
child = "slider"
axis = [0.0, 0.0, 1.0]
parent_anchor = [0.0, 0.0, -0.5]
"#
    );
    for (name, side) in [("right", 0.05), ("left", -0.05)] {
        text += &format!(
            r#"[mechanism.bodies.{name}]
mass = 5.3
center_of_mass = [0.0, 0.0, -0.9716981132]
inertia = [0.0957556, 0.0957556, 5e-6]
[mechanism.joints.{name}]
kind = "revolute"
parent = "shaft"
child = "{name}"
axis = [0.0, 1.0, 0.0]
parent_anchor = [{side}, 0.0, 0.5]
[mechanism.springs.{name}]
parent = "slider"
child = "{name}"
parent_anchor = [{side}, 0.0, 0.0]
child_anchor = [0.0, 0.0, -0.5]
stiffness = {stiffness:e}
rest = 0.5
damping = {damping:e}
"#
        );
    }
    text + "[initial]\nslide = 0.5\nright = -1.0471975511965976\nleft = 1.0471975511965976\n\
            spin = { coordinate = 0.0, rate = 6.283185307179586 }\n"
}

/// The springs swing at up to 562 rad/s without their dampers. Whatever these are, automatic substeps resolve that; the place of the
/// slider is that of plain steps of 1e-4 s.
#[test]
fn the_stiff_governor_runs_in_automatic_substeps() {
    let folder = Folder::new("energy_governor");
    for (i, (stiffness, damping)) in [
        (1.0, 1.0),
        (1.0, 0.1),
        (1.0, 4.0),
        (4.0, 1.0),
        (4.0, 4.0),
        (0.25, 1.0),
    ]
    .into_iter()
    .enumerate()
    {
        let h = [0.01, 0.004][i % 2];
        let text = governor(8e5 * stiffness, 4e4 * damping, h);
        for integrator in BOTH {
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            let what = format!("{integrator}, {stiffness}, {damping}, h = {h}");
            assert!(is_done(&v), "{what}: {}", v["failure"]);
            // the estimate of the swing is within a tenth
            let (parts, size) = (number(&v, "substeps_max"), 562.0 * stiffness.sqrt() * h);
            assert!(
                parts > 0.85 * size && parts < 4.0 * size,
                "{what}: {parts} parts"
            );
            assert!(number(&v, "energy_error_max") < 0.02, "{what}");
            if (stiffness, damping) == (1.0, 1.0) {
                let at = super::numbers(&v["final"]["joints"]["slide"]["coordinates"])[0];
                assert!((at - 0.7432493).abs() < 5e-5, "{what}: {at}");
            }
        }
    }
}

/// What hits a wall or a table without gravity loses exactly what friction and impacts take, by the contacts that acted.
#[test]
fn impacts_take_what_is_lost() {
    let folder = Folder::new("energy_impacts");
    let shapes = [
        "{ box = [0.05, 0.05, 0.05] }",
        "{ sphere = 0.025 }",
        "{ capsule = { radius = 0.02, length = 0.03 } }",
        "{ cylinder = { radius = 0.025, length = 0.05 } }",
        "{ hull = [[-0.025, 0, 0], [0.025, 0, 0], [0, -0.025, 0], [0, 0.025, 0], [0, 0, -0.025], [0, 0, 0.025]] }",
    ];
    for shape in shapes {
        for (speed, spin) in [(3.0, 0.0), (8.0, 0.0), (5.0, 6.0)] {
            for integrator in ["minimal", "maximal"] {
                folder.write(
                    "wall.toml",
                    &format!(
                        "time_step = 0.01\nhorizon = 0.6\nintegrator = \"{integrator}\"\n[mechanism]\ngravity = [0, 0, 0]\n\
                         [mechanism.terrain.wall]\nshape = {{ box = [0.5, 4.0, 4.0] }}\nposition = [1.25, 0.0, 0.0]\nfriction = 0.3\n\
                         [mechanism.bodies.b]\nmass = 0.2\nshape = {{ sphere = 0.025 }}\nfree = true\n\
                         contacts.hull = {{ shape = {shape}, friction = 0.3 }}\n\
                         [initial.b]\nposition = [0.013, 0.0, 0.0]\nvelocity = [{speed:?}, 1.0, 0.0]\n\
                         angular_velocity = [0.0, {spin:?}, 0.0]\n"
                    ),
                );
                let v = folder.json(&["simulate", "wall.toml", "--json"]);
                let what = format!("{shape}, {speed} m/s, {spin} rad/s, {integrator}");
                assert_eq!(v["status"], "done", "{what}");
                let (before, after) = (number(&v, "energy_initial"), number(&v, "energy_final"));
                assert!(after < 0.7 * before, "{what}: it hits nothing");
                let error = number(&v, "energy_error_max");
                assert!(error < 1e-6 * before, "{what}: {error:e} J");
                for kind in ["friction", "impacts"] {
                    let work = number(&v["work"], kind);
                    assert!(work < 1e-9, "{what}: {kind} does {work} J");
                }
            }
        }
    }
}

/// A leg that stands on the ground carries a body, which its actuator pushes up and lets down. The ground only holds the leg, however
/// far the push would throw it in half a step if it were free: by up to 2 J, which counted as work of the contact.
#[test]
fn the_ground_does_no_work_on_light_legs_that_are_pushed() {
    let folder = Folder::new("energy_legs");
    for (i, (mass, light, h)) in [
        (5.0, 0.02, 0.005),
        (5.0, 0.005, 0.004),
        (12.0, 0.05, 0.01),
        (2.0, 0.02, 0.002),
        (1.0, 0.2, 0.005),
    ]
    .into_iter()
    .enumerate()
    {
        let (n, weight) = (60, mass * 9.81);
        let push = |k: usize| {
            let phase = 2.0 * std::f64::consts::PI * k as f64 / 40.0;
            -weight * (1.0 + 0.5 * phase.cos())
        };
        let controls: Vec<f64> = (0..n).map(push).collect();
        for hold in ["held", "linear"] {
            let text = format!(
                r#"controls = "{hold}"
time_step = {h:e}
horizon = {:e}
[mechanism]
[mechanism.half_spaces.ground]
[mechanism.bodies.hip]
mass = {mass}
inertia = [1.0, 1.0, 1.0]
[mechanism.bodies.leg]
mass = {light}
inertia = [1e-4, 1e-4, 1e-4]
contacts.foot = {{ shape = "point", position = [0.0, 0.0, -0.2], friction = 0.5 }}
[mechanism.joints.height]
kind = "prismatic"
child = "hip"
axis = [0.0, 0.0, 1.0]
[mechanism.joints.leg]
kind = "prismatic"
parent = "hip"
child = "leg"
axis = [0.0, 0.0, 1.0]
[mechanism.actuators.push]
joint = "leg"
[initial]
height = 0.2
[guess]
controls = {{ push = {controls:?} }}
[[costs]]
quantity = {{ joint = "height" }}
weight = 1.0
"#,
                h * n as f64
            );
            for integrator in BOTH {
                let v = simulate(&folder, &text, &["--integrator", integrator]);
                let what = format!("{integrator}, {hold}, {mass} and {light} kg, h = {h}, {i}");
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let impacts = number(&v["work"], "impacts");
                assert!(impacts.abs() < 1e-6, "{what}: impacts do {impacts} J");
                // the error is that of the body's own motion
                let error = number(&v, "energy_error_max");
                let own = h * h / 8.0 * mass * 9.81 * 9.81;
                assert!(error < own, "{what}: {error:e} of {own:e} J");
            }
        }
    }
}

/// A car with a light bumper on a strong implicit damper runs into a wall. No force acts but those of the damper and the wall: the
/// works add up to the change of the energy, to rounding, in steps with the impact, too.
#[test]
fn dampers_absorb_their_share_of_an_impact() {
    let folder = Folder::new("energy_bumper");
    for (i, (light, damping, h)) in [
        (0.01, 50.0, 0.01),
        (0.01, 5.0, 0.002),
        (0.3, 20.0, 0.01),
        (1e-3, 200.0, 0.005),
        (0.1, 1.0, 0.001),
    ]
    .into_iter()
    .enumerate()
    {
        for implicit in [true, false] {
            if !implicit && damping * h > light {
                continue;
            }
            let text = format!(
                r#"time_step = {h:e}
horizon = 0.4
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.half_spaces.wall]
normal = [-1.0, 0.0, 0.0]
offset = -0.51
[mechanism.bodies.car]
mass = 2.0
inertia = [1.0, 1.0, 1.0]
[mechanism.bodies.bumper]
mass = {light}
inertia = [1e-3, 1e-3, 1e-3]
contacts.front = {{ shape = "point", position = [0.1, 0.0, 0.0], friction = 0.5 }}
[mechanism.joints.road]
kind = "prismatic"
child = "car"
axis = [1.0, 0.0, 0.0]
[mechanism.joints.bumper]
kind = "prismatic"
parent = "car"
child = "bumper"
axis = [1.0, 0.0, 0.0]
damping = {damping}
implicit = {implicit}
[initial]
road = {{ coordinate = 0.0, rate = 3.0 }}
"#
            );
            for integrator in BOTH {
                let v = simulate(
                    &folder,
                    &text,
                    &["--integrator", integrator, "--substeps", "1"],
                );
                let what = format!("{integrator}, {light} kg, {damping}, h = {h}, {implicit}, {i}");
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let work = |of| number(&v["work"], of);
                assert!(work("impacts") < -0.1 * light, "{what}: it hits nothing");
                assert!(work("dampers") < -0.1, "{what}: {}", work("dampers"));
                let error = number(&v, "energy_error_max");
                assert!(error < 1e-9, "{what}: {error:e} J");
            }
        }
    }
}

/// Works add up to rounding where what dampers slow bounces off a limit.
#[test]
fn dampers_work_until_a_blow_and_after_it() {
    let folder = Folder::new("energy_rebound");
    for impacts in ["knots", "aligned"] {
        for (implicit, damping) in [(false, 5.0), (true, 5.0), (true, 50.0), (true, 300.0)] {
            for (h, start) in [(0.01, 0.025), (0.004, 0.011), (0.02, 0.05)] {
                let text = format!(
                    "time_step = {h:e}\nhorizon = 0.4\n[contact]\nimpacts = \"{impacts}\"\n[mechanism]\n\
                     gravity = [0.0, 0.0, 0.0]\n[mechanism.bodies.bob]\nmass = 1.0\nshape = {{ sphere = 0.1 }}\n\
                     [mechanism.joints.x]\nkind = \"prismatic\"\nchild = \"bob\"\naxis = [1.0, 0.0, 0.0]\n\
                     damping = {damping}\nimplicit = {implicit}\nlimits = [0.0, 10.0]\nrestitution = 0.5\n\
                     [initial]\nx = {{ coordinate = {start}, rate = -20.0 }}\n"
                );
                let v = simulate(&folder, &text, &["--integrator", "maximal"]);
                let what = format!("{impacts}, {damping}, h = {h}, implicit = {implicit}");
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let work = |of| number(&v["work"], of);
                assert!(work("impacts") < -1.0, "{what}: it hits nothing");
                let error = number(&v, "energy_error_max");
                assert!(error < 1e-9, "{what}: {error:e} J");
            }
        }
    }
}

/// A mass on a rail over a light foot, which a joint presses onto the ground.
fn pressed(foot: f64, joint: &str, h: f64) -> String {
    format!(
        r#"time_step = {h:e}
horizon = 0.6
[mechanism.half_spaces.floor]
[mechanism.bodies.mass]
mass = 8.0
shape = {{ box = [0.2, 0.2, 0.2] }}
[mechanism.bodies.foot]
mass = {foot}
shape = {{ sphere = 0.03 }}
contacts.hull = {{ friction = 0.5 }}
[mechanism.joints.rail]
kind = "prismatic"
child = "mass"
axis = [0.0, 0.0, 1.0]
[mechanism.joints.leg]
kind = "prismatic"
parent = "mass"
child = "foot"
axis = [0.0, 0.0, 1.0]
parent_anchor = [0.0, 0.0, -0.5]
{joint}
[initial]
rail = {{ coordinate = 0.6 }}
"#
    )
}

/// A light foot that springs, dampers and friction of a joint press onto the ground does not move, however far they would throw it in
/// half a step: it is done, without a warning, and its energy is that at a fifth of the step.
#[test]
fn light_feet_that_joints_press_are_right() {
    let folder = Folder::new("energy_pressed");
    for (foot, joint, h) in [
        (0.005, "stiffness = 2000.0\ndamping = 20.0", 0.002),
        (0.005, "stiffness = 2000.0\ndamping = 20.0", 0.001),
        (0.01, "stiffness = 4000.0\ndamping = 10.0", 0.002),
        (0.002, "stiffness = 1500.0\ndamping = 40.0", 0.001),
        (0.02, "stiffness = 3000.0\nfriction = 30.0", 0.004),
        (0.01, "stiffness = 2000.0", 0.002),
    ] {
        for integrator in BOTH {
            let run = |h: f64| {
                let v = simulate(
                    &folder,
                    &pressed(foot, joint, h),
                    &["--integrator", integrator],
                );
                let what = format!("{integrator}, {foot} kg, {joint:?}, h = {h}");
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let warnings = v["warnings"].to_string();
                assert!(!warnings.contains("energy error"), "{what}: {warnings}");
                v
            };
            let (coarse, fine) = (run(h), run(0.2 * h));
            let ends = [&coarse, &fine].map(|v| number(v, "energy_final"));
            let start = number(&coarse, "energy_initial");
            assert!(
                (ends[0] - ends[1]).abs() < 0.01 * start,
                "{integrator}, {foot} kg, {joint:?}, h = {h}: {ends:?} of {start} J"
            );
        }
    }
}

/// A spring that is too stiff for the step is still a failure on the same foot: `h omega = 2.2` of the mass against the ground, and far
/// more of the foot.
#[test]
fn springs_too_stiff_for_light_feet_fail() {
    let folder = Folder::new("energy_pressed_unstable");
    for h in [0.002, 0.005] {
        let stiffness = 8.0 * (2.2_f64 / h).powi(2);
        let joint = format!("stiffness = {stiffness:e}");
        for integrator in BOTH {
            let text = pressed(0.005, &joint, h);
            let v = simulate(
                &folder,
                &text,
                &["--integrator", integrator, "--substeps", "1"],
            );
            assert!(!is_done(&v), "{integrator}, h = {h}");
        }
    }
}

/// So it is where the foot stays loaded while the mass swings up: 1e5 N press it, and the mass starts 2 to 5 % below its equilibrium. It
/// fails at the knot after it has thrown the foot; below `h omega = 2` the same motion is done.
#[test]
fn springs_too_stiff_on_loaded_feet_fail() {
    let folder = Folder::new("energy_loaded_unstable");
    let (press, h) = (1e5, 0.005_f64);
    for (size, below, fails_at) in [
        (1.9_f64, 0.05, None),
        (1.98, 0.05, None),
        (2.05, 0.05, Some(10)),
        (2.1, 0.02, Some(10)),
    ] {
        let stiffness = 8.0 * (size / h).powi(2);
        let leg = (press + 8.0 * 9.81) / stiffness * (1.0 + below);
        let plain = pressed(0.005, &format!("stiffness = {stiffness:e}"), h);
        let started = format!(
            "[mechanism.actuators.press]\njoint = \"rail\"\nbounds = [-1e6, 1e6]\n\
             [guess]\ncontrols = {{ press = {:e} }}\n\
             [initial]\nleg = {{ coordinate = {leg:e} }}\nrail = {{ coordinate = {:e} }}\n",
            -press,
            0.53 - leg
        );
        let text = plain.replace("[initial]\nrail = { coordinate = 0.6 }\n", &started);
        for integrator in BOTH {
            let v = simulate(
                &folder,
                &text.replace("horizon = 0.6", "horizon = 0.05"),
                &["--integrator", integrator, "--substeps", "1"],
            );
            let failed = v["failure"]["time"].as_f64();
            let step = failed.map(|t| (t / h).round() as usize);
            assert_eq!(step, fails_at, "{integrator}, h omega = {size}: {v:#}");
            assert_eq!(is_done(&v), fails_at.is_none(), "{integrator}, {size}");
        }
    }
}

/// A force against a stiff implicit damper: rates at knots are those of the motion, `F/d`, however stiff it is, and what is right does not fail.
#[test]
fn implicit_dampers_show_the_rates_of_the_motion() {
    let folder = Folder::new("energy_implicit");
    for (i, stiffness) in [0.3, 2.5, 5.0, 20.0, 80.0].into_iter().enumerate() {
        for (k, h) in [0.002, 0.01, 0.05].into_iter().enumerate() {
            let (mass, rate) = ([1e-2, 1.0, 2.0][(i + k) % 3], [0.2, -3.0][i % 2]);
            let damping = stiffness * mass / h;
            // on a slide, with stops or without, or along a line
            let damper = match k {
                0 => format!("damping = {damping:e}\nimplicit = true\n"),
                1 => format!("damping = {damping:e}\nimplicit = true\nlimits = [-1e2, 1e2]\n"),
                _ => format!(
                    "[mechanism.springs.line]\nchild = \"bob\"\nparent_anchor = [-9.0, 0.0, 0.0]\n\
                     damping = {damping:e}\nimplicit = true\n"
                ),
            };
            let after = |steps: u32, push: f64, rate: f64, integrator| {
                let text = format!(
                    "time_step = {h:e}\nhorizon = {:e}\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n[mechanism.bodies.bob]\n\
                     mass = {mass:e}\nshape = {{ sphere = 0.1 }}\n[mechanism.joints.x]\nkind = \"prismatic\"\nchild = \"bob\"\n\
                     axis = [1.0, 0.0, 0.0]\n{damper}[mechanism.actuators.push]\njoint = \"x\"\n\
                     [initial]\nx = {{ coordinate = 0.0, rate = {rate:e} }}\n\
                     [guess]\ncontrols = {{ push = {push:e} }}\n[[costs]]\nquantity = {{ joint = \"x\" }}\nweight = 1.0\n",
                    f64::from(steps) * h
                );
                let v = simulate(&folder, &text, &["--integrator", integrator]);
                let what = format!("{integrator}, h d/m = {stiffness}, {h} s, {steps} steps");
                assert!(is_done(&v), "{what}: {}", v["failure"]);
                let found = super::numbers(&v["final"]["joints"]["x"]["rates"])[0];
                (-number(&v["work"], "dampers"), found, what)
            };
            for integrator in BOTH {
                for (steps, start) in [(200, 0.0), (3, rate)] {
                    let (_, found, what) = after(steps, damping * rate, start, integrator);
                    assert!((found / rate - 1.0).abs() < 1e-6, "{what}: {found} m/s");
                }
                // it decays, and all of its energy is the damper's
                for steps in [1, 2, 5] {
                    let (taken, found, what) = after(steps, 0.0, rate, integrator);
                    let left = 1.0 / (1.0 + 0.5 * stiffness).powi(2);
                    let left = left / (1.0 + stiffness).powi(steps as i32 - 1);
                    assert!((found - rate * left).abs() < 1e-8, "{what}: {found} m/s");
                    let lost = 0.5 * mass * rate * rate * (1.0 - left * left);
                    assert!((taken / lost - 1.0).abs() < 1e-6, "{what}: {taken} J");
                }
            }
        }
    }
}

/// A stiff spring that an implicit damper holds back has an energy error of first order; friction in its joint adds none.
#[test]
fn friction_beside_implicit_dampers_adds_no_energy_error() {
    let folder = Folder::new("energy_friction");
    for (i, (kind, start)) in [
        ("\"revolute\"\naxis = [0, 0, 1]", "0.3"),
        (
            "\"revolute\"\naxis = [0, 0, 1]",
            "{ coordinate = 0.3, rate = 30.0 }",
        ),
        ("\"spherical\"", "[0.3, -0.2, 0.1]"),
    ]
    .into_iter()
    .enumerate()
    {
        let error = |friction: f64, h: f64| {
            let text = format!(
                "time_step = {h}\nhorizon = 0.1\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n[mechanism.bodies.b]\nmass = 0.1\n\
                 inertia = [1e-4, 1.2e-4, 0.9e-4]\n[mechanism.joints.j]\nkind = {kind}\nchild = \"b\"\nstiffness = 9.0\n\
                 damping = 0.42\nimplicit = true\nfriction = {friction}\n[initial]\nj = {start}\n"
            );
            let v = simulate(&folder, &text, &["--integrator", BOTH[i % 2]]);
            assert!(
                is_done(&v),
                "{kind}, {start}, {friction}, {h}: {}",
                v["failure"]
            );
            number(&v, "energy_error_max")
        };
        for h in [0.01, 0.005] {
            // works are counted at knots where there is friction
            let own = error(1e-6, h);
            for friction in [0.01, 0.2, 0.7] {
                let with = error(friction, h);
                assert!(
                    with < 1.05 * own,
                    "{kind}, {start}, {friction}, {h}: {with} J, {own} J"
                );
            }
        }
    }
}

/// A leg that lands on a light foot, held back by an implicit damper or by friction, does not make the blow a work of what its spring or motor
/// would throw: `(h^2/8) F^2/m` is 20 to 700 J here. What friction locks lands dead, and loses all of its kinetic energy.
#[test]
fn landings_on_light_feet_have_their_own_work() {
    let folder = Folder::new("energy_landing");
    let landing = |trunk: f64, foot: f64, h: f64, leg: &str, start: [f64; 3], integrator: &str| {
        let [length, height, rate] = start;
        let text = format!(
            "time_step = {h}\nhorizon = 0.3\n[mechanism.half_spaces.floor]\n[mechanism.bodies.trunk]\nmass = {trunk}\n\
             shape = {{ box = [0.2, 0.2, 0.2] }}\n[mechanism.joints.rail]\nkind = \"prismatic\"\nchild = \"trunk\"\n\
             axis = [0, 0, 1]\n[mechanism.bodies.foot]\nmass = {foot}\nshape = {{ sphere = 0.03 }}\n\
             contacts.c = {{ friction = 0.5 }}\n[mechanism.joints.leg]\nkind = \"prismatic\"\nparent = \"trunk\"\n\
             child = \"foot\"\naxis = [0, 0, -1]\nparent_anchor = [0, 0, -0.1]\n{leg}\n[initial]\nleg = {length}\n\
             rail = {{ coordinate = {height}, rate = {rate} }}\n"
        );
        let v = simulate(&folder, &text, &["--integrator", integrator]);
        assert!(is_done(&v), "{leg}, {integrator}: {}", v["failure"]);
        v
    };
    let damper = |k: f64, d: f64| {
        format!("stiffness = {k}\nrest = 0.3\ndamping = {d}\nimplicit = true\nlimits = [0.1, 0.35]")
    };
    let held = |f: f64, d: f64| {
        format!(
            "damping = {d}\nimplicit = true\n[mechanism.actuators.a]\njoint = \"leg\"\n[guess]\ncontrols = {{ a = {f} }}"
        )
    };
    for (i, (trunk, foot, h, leg, start)) in [
        (
            1.0,
            0.02,
            0.01,
            damper(3089.0, 322.0),
            [0.28199, 0.43704, -0.112],
        ),
        (
            1.0,
            0.02,
            0.005,
            damper(3089.0, 322.0),
            [0.28199, 0.43704, -0.112],
        ),
        (
            10.0,
            0.01,
            0.005,
            damper(165_720.0, 17_438.0),
            [0.27079, 0.44564, -0.645],
        ),
        (3.0, 0.05, 0.002, damper(2e4, 900.0), [0.28, 0.45, -0.5]),
        (
            5.0,
            0.01,
            0.01,
            held(1317.0, 1606.0),
            [0.27082, 0.42719, -0.18],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let v = landing(trunk, foot, h, &leg, start, BOTH[i % 2]);
        let works = ["actuators", "dampers", "friction", "impacts"];
        let moved: f64 = works.iter().map(|w| number(&v["work"], w).abs()).sum();
        let error = number(&v, "energy_error_max");
        assert!(error < 0.1 * moved, "{leg}: {error} of {moved} J");
        let impacts = number(&v["work"], "impacts");
        assert!(
            impacts < 0.0 && -impacts < 0.4 * moved,
            "{leg}: {impacts} of {moved} J"
        );
    }
    for (i, (foot, h, friction)) in [
        (0.01, 0.005, 705.0),
        (0.01, 0.01, 705.0),
        (0.02, 0.01, 900.0),
        (0.05, 0.01, 600.0),
        (0.2, 0.005, 2e3),
    ]
    .into_iter()
    .enumerate()
    {
        let leg = format!("stiffness = 24874.0\nrest = 0.3\nfriction = {friction}");
        let v = landing(1.0, foot, h, &leg, [0.2782, 0.43674, -0.113], BOTH[i % 2]);
        let lost = number(&v, "energy_final") - number(&v, "energy_initial");
        let impacts = number(&v["work"], "impacts");
        assert!(
            lost < -0.1 && (impacts / lost - 1.0).abs() < 1e-6,
            "{leg}: {impacts} J of {lost} J"
        );
    }
}

/// A constant push is exact whatever friction it works against, and however often that reverses.
#[test]
fn pushes_against_friction_are_exact() {
    let folder = Folder::new("energy_push");
    for (i, (push, friction, period)) in [
        (10.0, 5.0, 20),
        (10.0, 0.5, 7),
        (3.0, 2.9, 11),
        (20.0, 8.0, 3),
        (1.0, 0.01, 30),
    ]
    .into_iter()
    .enumerate()
    {
        let each = (0..200).map(|k| if k / period % 2 == 0 { push } else { -push });
        let text = format!(
            "time_step = 0.01\nhorizon = 2.0\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n[mechanism.bodies.b]\nmass = 0.05\n\
             inertia = [0.005, 0.005, 0.005]\n[mechanism.joints.j]\nkind = \"prismatic\"\nchild = \"b\"\naxis = [0, 0, 1]\n\
             friction = {friction}\n[mechanism.actuators.a]\njoint = \"j\"\n[guess]\ncontrols = {{ a = {:?} }}\n",
            each.collect::<Vec<f64>>()
        );
        let v = simulate(&folder, &text, &["--integrator", BOTH[i % 2]]);
        let error = number(&v, "energy_error_max") / number(&v["work"], "friction").abs();
        assert!(
            is_done(&v) && error < 1e-11,
            "{push}, {friction}, {period}: {error}"
        );
    }
}

/// An explosion is reported with the state at which it shows, and with what was gained.
#[test]
fn an_explosion_is_reported_where_it_shows() {
    let folder = Folder::new("energy_explosion");
    for (i, size) in [2.2, 2.6, 3.5].into_iter().enumerate() {
        let text = format!(
            "time_step = 0.01\nhorizon = 2.0\n[mechanism]\n[mechanism.bodies.bob]\nmass = 1.0\nshape = {{ sphere = 0.1 }}\n\
             [mechanism.joints.x]\nkind = \"prismatic\"\nchild = \"bob\"\naxis = [1.0, 0.0, 0.0]\nstiffness = {:e}\n\
             [initial]\nx = 0.1\n",
            size * size * 1e4
        );
        let v = simulate(
            &folder,
            &text,
            &["--substeps", "1", "--integrator", BOTH[i % 2]],
        );
        assert!(!is_done(&v), "{size}");
        let at = super::numbers(&v["final"]["joints"]["x"]["coordinates"])[0];
        // it grows by a factor of 2.4 to 10 in a step
        assert!(at.abs() < 10.0, "{size}: {at} m");
        let (gained, time) = (
            number(&v["failure"], "residual"),
            number(&v["failure"], "time"),
        );
        assert!(gained > 1.0 && time < 0.3, "{size}: {gained} J at {time} s");
        // all of the same knot
        assert!((number(&v, "duration") - time).abs() < 1e-9, "{v:#}");
        let error = number(&v, "energy_final") - number(&v, "energy_initial");
        assert!((error - gained).abs() < 1e-6 * gained, "{v:#}");
    }
}
