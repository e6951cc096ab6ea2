//! Time steps that are too coarse for a motion: what `simulate` warns of, and what automatic substeps divide.

use super::*;

/// 50 kg below two light links.
const LOADED: &str = r#"time_step = 0.01
horizon = 0.5
[mechanism]
gravity = [0.0, 0.0, -9.81]
[mechanism.bodies.link]
mass = 0.1
inertia = [1e-4, 1e-4, 1e-4]
[mechanism.bodies.second]
mass = 0.1
inertia = [1e-4, 1e-4, 1e-4]
[mechanism.bodies.load]
mass = 50.0
inertia = [1.0, 1.0, 1.0]
[mechanism.joints.top]
kind = "spherical"
child = "link"
child_anchor = [0.0, 0.0, 0.1]
[mechanism.joints.middle]
kind = "spherical"
parent = "link"
child = "second"
parent_anchor = [0.0, 0.0, -0.1]
child_anchor = [0.0, 0.0, 0.1]
[mechanism.joints.bottom]
kind = "spherical"
parent = "second"
child = "load"
parent_anchor = [0.0, 0.0, -0.1]
child_anchor = [0.0, 0.0, 0.1]
[initial]
top = [0.3, 0.0, 0.0]
"#;

/// A rod of 2 kg and 1 m on a hinge with stops or without, `J = 2/3 kg m^2`: `h d/J` is 0.15 and 15.
#[test]
fn stiff_dampers_that_are_explicit_are_warned_of() {
    let folder = Folder::new("simulate_stiff_dampers");
    for (damping, implicit, stop, warned) in [
        (10, false, true, false),
        (1000, false, true, true),
        (1000, true, true, false),
        (1000, false, false, true),
    ] {
        let limits = if stop { "limits = [-1.5, 1.5]" } else { "" };
        folder.write(
            "rod.toml",
            &format!(
                "time_step = 0.01\nhorizon = 0.2\n[mechanism]\ngravity = [0, 0, -9.81]\n\
                 [mechanism.bodies.rod]\nmass = 2.0\ninertia = [0.166666667, 0.166666667, 0.01]\n\
                 [mechanism.joints.hinge]\nkind = \"revolute\"\nchild = \"rod\"\naxis = [0, 1, 0]\n\
                 child_anchor = [0, 0, 0.5]\ndamping = {damping}\nimplicit = {implicit}\n{limits}\n\
                 [initial]\nhinge = 1.0\n"
            ),
        );
        let run = folder.run(&["simulate", "rod.toml"]);
        let words = "the damper of joint `hinge` is too stiff for its steps: h d/m = 15.0";
        assert_eq!(run.err.contains(words), warned, "{}", run.err);
        assert_eq!(run.err.contains("implicit = true"), warned, "{}", run.err);
    }
    // of a line between free bodies, m = 0.5 kg
    for (damping, implicit, warned) in [(500, false, true), (500, true, false), (50, false, false)]
    {
        folder.write(
            "line.toml",
            &format!(
                "time_step = 0.01\nhorizon = 0.2\n[mechanism]\n[mechanism.bodies.a]\nmass = 1.0\nshape = {{ sphere = 0.1 }}\n\
                 free = true\n[mechanism.bodies.b]\nmass = 1.0\nshape = {{ sphere = 0.1 }}\nfree = true\n\
                 [mechanism.springs.line]\nparent = \"a\"\nchild = \"b\"\ndamping = {damping}\nimplicit = {implicit}\n\
                 [initial]\nb = {{ position = [1.0, 0.0, 0.0], velocity = [0.1, 0.0, 0.0] }}\n"
            ),
        );
        let run = folder.run(&["simulate", "line.toml"]);
        let words = "the damper of spring `line` is too stiff for its steps: h d/m = 10.0";
        assert_eq!(run.err.contains(words), warned, "{}", run.err);
    }
}

/// What swings too fast under the tension of joints is warned of, where steps are not divided. Between two links of 0.2 m, which are
/// 0.055 kg at the joint, 500 N swing it at `sqrt(2 500 / (0.2 0.055)) = 300` rad/s.
#[test]
fn light_links_under_tension_are_warned_of() {
    let folder = Folder::new("simulate_tension");
    folder.write("loaded.toml", LOADED);
    let plain = folder.run(&["simulate", "loaded.toml", "--substeps", "1"]);
    let warned = "body `link` swings at 302.0 rad/s";
    assert!(plain.err.contains(warned), "{}", plain.err);
    assert!(plain.err.contains("unstable") && plain.err.contains("substeps = \"auto\""));
    let divided = folder.run(&["simulate", "loaded.toml"]).ended(0);
    assert!(!divided.err.contains("warning"), "{}", divided.err);
    let light = LOADED.replace("mass = 50.0", "mass = 2.0");
    folder.write("light.toml", &light);
    let quiet = folder.run(&["simulate", "light.toml", "--substeps", "1"]);
    assert!(!quiet.err.contains("swings"), "{}", quiet.err);
}

/// A body with the law `chord` that turns too far in a step is named in a warning, and automatic substeps avoid it. Bodies whose spin is
/// exact need neither.
#[test]
fn large_turns_are_told() {
    let folder = Folder::new("simulate_turns");
    let file = |rotation: &str| {
        format!(
            r#"
title = "a brick turns"
time_step = 0.03
horizon = 0.6
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.brick]
mass = 2.0
inertia = [0.01, 0.02, 0.025]
free = true
{rotation}
[initial]
brick = {{ angular_velocity = [0.0, 0.0, 30.0] }}
"#
        )
    };
    folder.write("brick.toml", &file(""));
    folder.write(
        "spins.toml",
        &file("rotation = { spin_about = [0.0, 0.0, 1.0] }"),
    );
    let coarse = folder.run(&["simulate", "brick.toml", "--substeps", "1"]);
    let coarse = coarse.ended(0);
    coarse.says(&[
        "body `brick` turned by 1.06",
        "18.8 %",
        "substeps = \"auto\"",
    ]);
    // as JSON it is the same
    let told = folder.json(&["simulate", "brick.toml", "--substeps", "1", "--json"]);
    let warnings = told["warnings"].as_array().expect("a list");
    let said: Vec<&str> = warnings.iter().filter_map(|w| w.as_str()).collect();
    assert!(
        said.len() == 1 && coarse.err.contains(said[0]) && said[0].contains("turned by 1.06"),
        "{said:?}"
    );
    let quiet = folder.json(&["simulate", "brick.toml", "--json"]);
    assert_eq!(quiet["warnings"].as_array().map(Vec::len), Some(0));
    // faster than 256 parts take: automatic substeps are on already, and no remedy
    let fast = file("").replace("0.0, 0.0, 30.0", "0.0, 0.0, 8000.0");
    folder.write("fast.toml", &fast);
    let fast = folder.json(&["simulate", "fast.toml", "--json"]);
    let warning = fast["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("turned by") && !warning.contains("substeps"),
        "{warning}"
    );
    let divided = folder.run(&["simulate", "brick.toml"]).ended(0);
    assert!(!divided.err.contains("turned by"), "{}", divided.err);
    assert!(divided.out.contains("4.00 per step"), "{}", divided.out);
    let exact = folder.run(&["simulate", "spins.toml", "--substeps", "1"]);
    let exact = exact.ended(0);
    assert!(!exact.err.contains("turned by"), "{}", exact.err);
}

/// Free bodies whose first step would turn them beyond what it can resolve are divided, alike with either integrator.
#[test]
fn fast_free_bodies_start() {
    let folder = Folder::new("simulate_fast");
    for (inertia, rates) in [
        ("[1.0, 2.0, 3.0]", [9.3, 5.6, 16.8]),
        ("[1.0, 2.0, 3.0]", [60.0, 0.0, 30.0]),
        ("[1.0, 1.0, 1.5]", [0.0, 40.0, 20.0]),
        ("[1.0, 1.0, 1.0]", [0.0, 45.0, 5.0]),
        ("[0.1, 2.0, 2.05]", [80.0, 1.0, -1.0]),
    ] {
        let parts = ["minimal", "maximal"].map(|integrator| {
            folder.write(
                "body.toml",
                &format!(
                    "time_step = 0.1\nhorizon = 1.0\nintegrator = \"{integrator}\"\n[mechanism]\ngravity = [0, 0, 0]\n\
                     [mechanism.bodies.b]\nmass = 1.0\ninertia = {inertia}\nfree = true\n\
                     [initial]\nb = {{ angular_velocity = {rates:?} }}\n"
                ),
            );
            let v = folder.json(&["simulate", "body.toml", "--json"]);
            assert_eq!(v["status"], "done", "{inertia} {rates:?} {integrator}");
            number(&v, "substeps_mean")
        });
        assert_eq!(parts[0], parts[1], "{inertia} {rates:?}");
    }
}

/// Wheels and propellers turn exactly at up to 3 rad a step from the first step on, with either integrator; what follows its chord is
/// divided.
#[test]
fn fast_wheels_start() {
    let folder = Folder::new("simulate_wheels");
    for (inertia, rate) in [
        (
            "shape = { cylinder = { radius = 0.1, length = 0.02 } }",
            150.0,
        ),
        (
            "shape = { cylinder = { radius = 0.1, length = 0.02 } }",
            200.0,
        ),
        (
            "shape = { cylinder = { radius = 0.1, length = 0.02 } }",
            -280.0,
        ),
        ("shape = { sphere = 0.1 }", 250.0),
        ("inertia = [1e-4, 5e-3, 5.05e-3]", 180.0),
    ] {
        for integrator in ["minimal", "maximal"] {
            folder.write(
                "wheel.toml",
                &format!(
                    "time_step = 0.01\nhorizon = 0.5\nintegrator = \"{integrator}\"\n[mechanism.bodies.wheel]\nmass = 1.0\n{inertia}\n\
                     [mechanism.joints.axle]\nkind = \"revolute\"\nchild = \"wheel\"\naxis = [0, 0, 1]\n\
                     [initial]\naxle = {{ coordinate = 0.0, rate = {rate:?} }}\n"
                ),
            );
            let v = folder.json(&["simulate", "wheel.toml", "--json"]);
            let what = format!("{inertia}, {rate} rad/s, {integrator}");
            assert_eq!(v["status"], "done", "{what}");
            let angle = numbers(&v["final"]["joints"]["axle"]["coordinates"])[0];
            // a body that is no wheel is off by a share of a few percent where its steps are divided
            let allowed = if inertia.starts_with("inertia") {
                0.05
            } else {
                1e-9
            };
            let error = (angle / (0.5 * rate) - 1.0).abs();
            assert!(error < allowed, "{what}: {angle} rad, {error:e}");
        }
    }
}

/// What spins fast on a contact with friction is warned of where steps are not divided: friction acts along the mean of both ends of a
/// step. A ball has no edge that goes around. A coin that rolls in a circle is slow, and the point it rolls on goes around.
#[test]
fn fast_spins_on_friction_are_told() {
    let folder = Folder::new("simulate_spins");
    let file = |shape: &str, height: f64, rate: f64, friction: f64| {
        format!(
            "time_step = 0.01\nhorizon = 0.05\n[mechanism.half_spaces.floor]\n\
             [mechanism.bodies.b]\nmass = 1.0\nshape = {{ {shape} }}\nfree = true\nrotation = \"ball\"\n\
             contacts.hull = {{ friction = {friction:?} }}\n\
             [initial]\nb = {{ position = [0, 0, {height}], angular_velocity = [0, 0, {rate}] }}\n"
        )
    };
    let (cube, ball) = ("box = [0.2, 0.2, 0.2]", "sphere = 0.1");
    for (shape, rate, friction, substeps, told) in [
        (cube, 100.0, 0.5, "1", Some("around body `b` by 1.0")),
        (cube, 100.0, 0.5, "4", None),
        (cube, 400.0, 0.5, "4", Some("around body `b` by 1.0")),
        (cube, 100.0, 0.5, "auto", None),
        (cube, 100.0, 0.0, "1", None),
        (cube, 30.0, 0.5, "1", None),
        (ball, 100.0, 0.5, "1", None),
    ] {
        for integrator in ["minimal", "maximal"] {
            folder.write("spin.toml", &file(shape, 0.1, rate, friction));
            let v = folder.json(&[
                "simulate",
                "spin.toml",
                "--json",
                "--substeps",
                substeps,
                "--integrator",
                integrator,
            ]);
            let what = format!("{integrator}, {shape}, {rate} rad/s, {friction}, {substeps}");
            assert_eq!(v["status"], "done", "{what}");
            let warnings = v["warnings"].to_string();
            match told {
                Some(told) => assert!(warnings.contains(told), "{what}: {warnings}"),
                None => assert!(!warnings.contains("goes around"), "{what}: {warnings}"),
            }
        }
    }
}

/// A step that is too long advises substeps, and not automatic ones, which `direct` refuses.
#[test]
fn steps_of_direct_advise_what_it_takes() {
    let folder = Folder::new("simulate_direct");
    folder.write(
        "fast.toml",
        "time_step = 0.1\nhorizon = 1.0\n[mechanism]\ngravity = [0, 0, 0]\n\
         [mechanism.bodies.b]\nmass = 1.0\ninertia = [1.0, 2.0, 3.0]\nfree = true\n\
         [mechanism.actuators.push]\nbody = \"b\"\nforce = [1.0, 0.0, 0.0]\nbounds = [-1.0, 1.0]\n\
         [initial]\nb = { angular_velocity = [9.3, 5.6, 30.8] }\n[method]\nname = \"direct\"\n\
         [[constraints]]\nquantity = { position = { body = \"b\", axis = \"x\" } }\nequals = 0.1\n",
    );
    let run = folder.run(&["solve", "fast.toml"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.err
            .contains("body `b`: the body turns too fast for its step")
            && run.err.contains("take a smaller time step, or substeps")
            && !run.err.contains("auto"),
        "{}",
        run.err
    );
}
