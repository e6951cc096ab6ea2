//! Which joints form the spanning tree, and what the coordinates and rates of joints mean.

use super::{Folder, numbers};
use serde_json::Value;

/// A parallelogram of a crank, a coupler and a rocker, upright, its joints in any order. `closes` names a joint that is marked.
fn four_bar(order: &[&str], closes: &str, initial: &str) -> String {
    let mut text = "time_step = 1e-3\nhorizon = 0.1\n[mechanism]\n".to_owned();
    for (name, center, inertia) in [
        ("crank", "[0.0, 0.0, 0.1]", "[0.01, 0.01, 0.001]"),
        ("coupler", "[0.1, 0.0, 0.0]", "[0.001, 0.01, 0.01]"),
        ("rocker", "[0.0, 0.0, -0.1]", "[0.01, 0.01, 0.001]"),
    ] {
        text += &format!(
            "[mechanism.bodies.{name}]\nmass = 1.0\ncenter_of_mass = {center}\ninertia = {inertia}\n"
        );
    }
    for name in order {
        let (kind, ends) = match *name {
            "a" => ("revolute", "child = \"crank\""),
            "b" => (
                "revolute",
                "parent = \"crank\"\nchild = \"coupler\"\nparent_anchor = [0.0, 0.0, 0.2]",
            ),
            "c" => (
                "revolute",
                "parent = \"coupler\"\nchild = \"rocker\"\nparent_anchor = [0.2, 0.0, 0.0]",
            ),
            _ => (
                "spherical",
                "child = \"rocker\"\nparent_anchor = [0.2, 0.0, 0.0]\nchild_anchor = [0.0, 0.0, -0.2]",
            ),
        };
        text += &format!("[mechanism.joints.{name}]\nkind = \"{kind}\"\n{ends}\n");
        if kind == "revolute" {
            text += "axis = [0.0, 1.0, 0.0]\n";
        }
        if *name == closes {
            text += "closes = true\n";
        }
    }
    format!("{text}[initial]\n{initial}\n")
}

fn closing(v: &Value) -> Vec<&str> {
    let joints = v["joints"].as_array().expect("a list").iter();
    let closing = joints.filter(|j| j["closes_loop"] == true);
    closing
        .map(|j| j["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn the_order_of_the_file_or_a_mark_decides_which_joint_closes_a_loop() {
    let folder = Folder::new("joints_tree");
    for (order, mark, expected) in [
        ("abcd", "", "d"),
        ("abdc", "", "c"),
        ("dcba", "", "a"),
        ("adcb", "", "b"),
        ("abcd", "c", "c"),
        ("abcd", "b", "b"),
        ("dabc", "d", "d"),
        ("dcab", "a", "a"),
    ] {
        let order: Vec<String> = order.chars().map(String::from).collect();
        let order: Vec<&str> = order.iter().map(String::as_str).collect();
        folder.write("case.toml", &four_bar(&order, mark, ""));
        let v = folder.json(&["describe", "case.toml", "--json"]);
        assert_eq!(closing(&v), [expected], "{order:?} {mark}");
        folder.run(&["simulate", "case.toml", "--json"]).ended(0);
    }
}

#[test]
fn rates_of_the_tree_start_a_loop() {
    let folder = Folder::new("joints_rates");
    let order = ["a", "b", "c", "d"];
    // of any joint of the tree: the bars stay parallel
    for initial in [
        "a = { coordinate = 0.3, rate = 2.0 }",
        "a = 0.3\nb = { guess = -0.3, rate = -2.0 }",
        "a = 0.3\nc = { guess = 0.3, rate = 2.0 }",
        "a = { coordinate = 0.3, rate = 2.0 }\nb = { coordinate = -0.3, rate = -2.0 }\nc = { coordinate = 0.3, rate = 2.0 }",
    ] {
        folder.write("case.toml", &four_bar(&order, "", initial));
        let v = folder.json(&["simulate", "case.toml", "--duration", "1e-3", "--json"]);
        let rate = |joint: &str| numbers(&v["final"]["joints"][joint]["rates"])[0];
        for (joint, expected) in [("a", 2.0), ("b", -2.0), ("c", 2.0)] {
            let off = rate(joint) - expected;
            assert!(off.abs() < 0.05, "{initial}: {joint} {}", rate(joint));
        }
    }
    folder.write(
        "case.toml",
        &four_bar(&order, "", "a = 0.3\nd = { rate = [0.0, 2.0, 0.0] }"),
    );
    folder
        .run(&["simulate", "case.toml"])
        .refused(&["joint `d` closes a loop", "set joints of the tree"]);
    // without the mark it would connect the body
    folder.write("case.toml", &four_bar(&["a", "b", "c"], "c", ""));
    folder.run(&["simulate", "case.toml"]).refused(&[
        "joint `c` is to close a loop",
        "`rocker`",
        "remove closes = true",
    ]);
}

/// A free body stays free where joints connect it to the world as well.
#[test]
fn free_bodies_are_of_the_tree() {
    let folder = Folder::new("joints_free");
    let text = r#"time_step = 1e-3
horizon = 0.01
[mechanism]
[mechanism.bodies.trunk]
mass = 1.0
inertia = [0.1, 0.1, 0.1]
free = true
[mechanism.bodies.hand]
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[mechanism.joints.handle]
kind = "spherical"
child = "hand"
parent_anchor = [0.5, 0.0, 1.0]
[mechanism.joints.arm]
kind = "spherical"
parent = "trunk"
child = "hand"
parent_anchor = [0.5, 0.0, 0.0]
[initial]
trunk = { position = [0.0, 0.0, 1.0] }
"#;
    folder.write("case.toml", text);
    let v = folder.json(&["describe", "case.toml", "--json"]);
    assert_eq!(closing(&v), ["arm"]);
    folder.run(&["simulate", "case.toml"]).ended(0);
}

/// The rate of a ball joint is the child's angular velocity as seen from the parent, in the parent's axes; `angular_velocity` of
/// the final state is in the body's.
#[test]
fn rates_of_ball_joints_are_angular_velocities_in_the_parents_frame() {
    let folder = Folder::new("joints_ball");
    for (coordinate, rate) in [
        ([0.5, 0.3, 0.0], [1.0, 0.0, 0.0]),
        ([0.5, 0.3, 0.0], [0.2, -0.7, 0.4]),
        ([0.0, 0.0, 2.0], [0.0, 1.0, 0.0]),
        ([-1.2, 0.4, 0.9], [0.3, 0.3, 1.0]),
        ([0.0, 0.0, 0.0], [0.5, -0.5, 0.5]),
    ] {
        let text = format!(
            r#"time_step = 1e-4
horizon = 1e-4
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.ball]
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[mechanism.joints.b]
kind = "spherical"
child = "ball"
orientation = {{ rpy = [0.0, 0.0, 1.5707963267948966] }}
[initial]
b = {{ coordinate = {coordinate:?}, rate = {rate:?} }}
"#
        );
        folder.write("case.toml", &text);
        for integrator in ["minimal", "maximal"] {
            let v = folder.json(&[
                "simulate",
                "case.toml",
                "--integrator",
                integrator,
                "--json",
            ]);
            let ball = &v["final"]["bodies"]["ball"];
            let (w, x) = (
                numbers(&ball["angular_velocity"]),
                numbers(&ball["orientation"]),
            );
            // of the body's frame to the world's, which is the parent's: w + 2 s (v x w) + 2 v x (v x w)
            let cross = |a: &[f64], b: &[f64]| -> Vec<f64> {
                let at =
                    |i: usize| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
                (0..3).map(at).collect()
            };
            let once = cross(&x[1..], &w);
            let twice = cross(&x[1..], &once);
            let rates = numbers(&v["final"]["joints"]["b"]["rates"]);
            for (i, rate) in rate.iter().enumerate() {
                let seen = w[i] + 2.0 * (x[0] * once[i] + twice[i]);
                assert!((seen - rate).abs() < 1e-9, "{coordinate:?}: {seen} {rate}");
                assert!((rates[i] - rate).abs() < 1e-9, "{rates:?}");
            }
        }
    }
}

/// A parallelogram without gravity that a damper brings to rest stays there: works of rounding are no jump of the loop.
#[test]
fn loops_come_to_rest() {
    let folder = Folder::new("joints_rest");
    let bar = |name: &str, parent: &str, length: f64, [at, own]: [f64; 2], damping: f64| {
        format!(
            "[mechanism.bodies.{name}]\nmass = 1.0\nshape = {{ box = [{length:?}, 0.02, 0.02] }}\n\
             [mechanism.joints.{name}]\nkind = \"revolute\"\nparent = \"{parent}\"\nchild = \"{name}\"\naxis = [0.0, 1.0, 0.0]\n\
             parent_anchor = [{at:?}, 0.0, 0.0]\nchild_anchor = [{own:?}, 0.0, 0.0]\ndamping = {damping:?}\n"
        )
    };
    for h in [0.02, 0.01, 0.005, 0.002, 0.001] {
        for damping in [0.5, 2.0] {
            let text = [
                format!("time_step = {h:?}\nhorizon = 8.0\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n"),
                bar("left", "world", 0.3, [0.0, -0.15], damping),
                bar("top", "left", 0.6, [0.15, -0.3], 0.0),
                bar("right", "world", 0.3, [0.6, -0.15], 0.0),
                "[mechanism.joints.close]\nkind = \"revolute\"\nparent = \"top\"\nchild = \"right\"\naxis = [0.0, 1.0, 0.0]\n\
                 parent_anchor = [0.3, 0.0, 0.0]\nchild_anchor = [0.15, 0.0, 0.0]\ncloses = true\n\
                 [initial]\nleft = { coordinate = 0.9, rate = 1.0 }\ntop = -0.9\nright = 0.9\n"
                    .to_owned(),
            ];
            folder.write("loop.toml", &text.concat());
            let v = folder.run(&["simulate", "loop.toml", "--json"]).json();
            assert_eq!(v["status"], "done", "{h} s, {damping}: {}", v["failure"]);
        }
    }
}
