//! Where mechanisms start.

use super::*;

pub(super) const LOOP: &str = r#"time_step = 0.01
horizon = 1.0
[mechanism.bodies]
crank = { mass = 1.0, shape = { box = [0.05, 0.05, 1.0] } }
coupler = { mass = 1.0, shape = { box = [1.2, 0.05, 0.05] } }
rocker = { mass = 1.0, shape = { box = [0.05, 0.05, 1.0] } }
[mechanism.joints.a]
kind = "revolute"
child = "crank"
axis = [0, 1, 0]
child_anchor = [0, 0, -0.5]
[mechanism.joints.b]
kind = "revolute"
parent = "crank"
child = "coupler"
axis = [0, 1, 0]
parent_anchor = [0, 0, 0.5]
child_anchor = [-0.6, 0, 0]
[mechanism.joints.c]
kind = "revolute"
child = "rocker"
axis = [0, 1, 0]
parent_anchor = [1.2, 0, 0]
child_anchor = [0, 0, -0.5]
[mechanism.joints.d]
kind = "revolute"
parent = "coupler"
child = "rocker"
axis = [0, 1, 0]
parent_anchor = [0.6, 0, 0]
child_anchor = [0, 0, 0.5]
[initial]
a = { coordinate = 0.3, rate = 2.0 }
b = { guess = -0.3 }
"#;

#[test]
fn loops_close_around_what_is_held() {
    let m = build(LOOP).expect("a parallelogram");
    // tree coordinates: a, c, then b or d; the bars stay parallel
    let at = |name: &str| {
        let j = m.system.mechanism().joint(name).expect("exists");
        m.system.coordinate(&m.x0, j, 0)
    };
    for (name, value) in [("a", 0.3), ("b", -0.3), ("c", 0.3), ("d", 0.3)] {
        assert!((at(name) - value).abs() < 1e-9, "{name} = {}", at(name));
    }
    let v = m.system.interval_velocities(&m.x0, 0.0);
    let [crank, coupler, rocker] = [v[0].1.y, v[1].1.y, v[2].1.y];
    assert!(
        (crank - 2.0).abs() < 1e-9 && coupler.abs() < 1e-9 && (rocker - 2.0).abs() < 1e-9,
        "{v:?}"
    );
    // a joint of a loop that is held where the loop cannot be closed
    let held = LOOP.replace("b = { guess = -0.3 }", "b = { coordinate = 0.1 }\nc = 0.3");
    let e = build(&held).expect_err("a and b are both held");
    assert!(format!("{e:#}").contains("does not hold at"), "{e:#}");
    // whichever joint closes the loop can only be checked
    let chord = m.system.mechanism().joints.iter().position(|j| {
        let index = m.system.mechanism().joint(&j.name);
        m.system
            .mechanism()
            .tree_ids()
            .iter()
            .all(|id| Some(id.0) != index)
    });
    let chord = m.system.mechanism().joints[chord.expect("a loop has one")]
        .name
        .clone();
    let value = at(&chord);
    assert!(
        build(&format!("{LOOP}{chord} = {value:?}\n").replace(
            "b = { guess = -0.3 }\n",
            if chord == "b" {
                ""
            } else {
                "b = { guess = -0.3 }\n"
            }
        ))
        .is_ok()
    );
    let wrong = format!("{LOOP}{chord} = 1.0\n");
    refused(
        &wrong,
        Some(line_of(&wrong, &format!("{chord} = 1.0"))),
        &[
            "closes a loop",
            "follows from the other joints",
            &format!("{value}")[..8],
        ],
    );
    // no position of these bars closes the loop
    let apart = LOOP.replace("parent_anchor = [1.2, 0, 0]", "parent_anchor = [9, 0, 0]");
    let e = build(&apart).expect_err("too far apart");
    let line = line_of(&apart, &format!("[mechanism.joints.{chord}]"));
    assert!(e.to_string().contains("does not close"), "{e:#}");
    assert_eq!(e.position().map(|p| p.0), Some(line), "{e:#}");
}

#[test]
fn a_free_body_starts_where_it_is_told() {
    let text = r#"time_step = 0.01
horizon = 1.0
mechanism.bodies.top = { mass = 1.0, shape = { box = [0.1, 0.2, 0.3] }, free = true }
[initial.top]
position = [1.0, 2.0, 3.0]
orientation = { rpy = [0.1, 0.2, 0.3] }
velocity = [4.0, 5.0, 6.0]
angular_velocity = [0.7, 0.8, 0.9]
[[costs]]
quantity = { joint = "top.z" }
weight = 1.0
[[costs]]
quantity = { position = { body = "top", point = [0.0, 0.0, 1.0], axis = "z" } }
weight = 1.0
"#;
    let m = build(text).expect("good");
    let x = &m.x0;
    let pose = m.system.poses(x)[0];
    let (v, w) = m.system.interval_velocities(x, 0.0)[0];
    let near = |a: &[f64], b: &[f64]| {
        assert!(
            a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12),
            "{a:?} {b:?}"
        )
    };
    near(pose.x.as_slice(), &[1.0, 2.0, 3.0]);
    let (r, p, y) = pose.q.euler_angles();
    near(&[r, p, y], &[0.1, 0.2, 0.3]);
    near(v.as_slice(), &[4.0, 5.0, 6.0]);
    near(w.as_slice(), &[0.7, 0.8, 0.9]);
    let several = text.replace("top.z", "top");
    refused(
        &several,
        Some(10),
        &["has 6 coordinates", "`top.x`, `top.y`"],
    );
    refused(
        &text.replace("axis = \"z\"", "axis = \"up\""),
        Some(13),
        &["has no direction"],
    );
    refused(
        &format!("{text}[draw.lines]\nball = [[[0,0,0],[1,0,0]]]\n"),
        Some(16),
        &["unknown body `ball`"],
    );
    let drawn = build(&format!(
        "{text}[draw.lines]\ntop = [[[0,0,0],[1,0,0]]]\nworld = [[[0,0,0],[0,1,0]]]\n"
    ))
    .expect("good");
    let bodies: Vec<_> = drawn.draw.expect("given").iter().map(|l| l.body).collect();
    assert_eq!(bodies, [Some(0), None]);
}

/// A body said to be free that a joint holds, too: its floating joint closes a loop that constrains nothing.
#[test]
fn a_free_body_with_a_joint_starts() {
    let text = r#"[bodies.a]
free = true
mass = 1.0
inertia = [1.0, 1.0, 1.0]
[joints.pin]
kind = "revolute"
child = "a"
axis = [0, 1, 0]
"#;
    let m = build(text).expect("good");
    assert_eq!(m.system.mobility().degrees_of_freedom, 1);
    let problem = format!(
        "time_step = 0.01\nhorizon = 1.0\ninitial.pin = {{ rate = 2.0 }}\n{}",
        text.replace("[bodies.a]", "[mechanism.bodies.a]")
            .replace("[joints", "[mechanism.joints")
    );
    let m = build(&problem).expect("good");
    let (_, w) = m.system.interval_velocities(&m.x0, 0.0)[0];
    assert!((w.y - 2.0).abs() < 1e-12, "{w}");
}
