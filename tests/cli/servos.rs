//! Servos: what is stable passes, what grows because controls are held over a step fails, and what pumps on purpose passes.

use super::Folder;
use super::energy::{BOTH, is_done, simulate};
use serde_json::Value;

/// A mass (or moment of inertia) on one joint without gravity, driven to zero by a servo.
struct Servo {
    kind: &'static str,
    mass: f64,
    h: f64,
    /// `h kd/m`: the servo is stable below 2.
    z: f64,
    /// `h^2 kp/m`
    y: f64,
    start: f64,
}

impl Servo {
    fn text(&self) -> String {
        let Self {
            kind,
            mass,
            h,
            z,
            y,
            start,
        } = self;
        let (kp, kd) = (y * mass / (h * h), z * mass / h);
        let inertia = format!("inertia = [{mass:e}, {mass:e}, {mass:e}]");
        format!(
            r#"time_step = {h:e}
horizon = {:e}
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.car]
mass = {mass:e}
{inertia}
[mechanism.joints.x]
kind = "{kind}"
child = "car"
axis = [1.0, 0.0, 0.0]
[mechanism.actuators.u]
joint = "x"
[initial]
x = {start:e}
[policy.gains]
kp = {{ value = {kp:e}, fixed = true }}
kd = {{ value = {kd:e}, fixed = true }}
[[policy.loops]]
control = "u"
joint = "x"
kp = "kp"
kd = "kd"
reference = 0.0
[[costs]]
quantity = {{ joint = "x" }}
weight = 1.0
"#,
            200.0 * h
        )
    }
}

/// Gains on either side of the stability limit, of slides and hinges, light and heavy, by both integrators.
#[test]
fn servos_fail_where_they_are_unstable() {
    let folder = Folder::new("energy_servos");
    for (i, z) in [0.3, 1.0, 1.5, 1.8, 2.15, 2.5, 4.0, 20.0]
        .into_iter()
        .enumerate()
    {
        for (k, (mass, h)) in [(1e-3, 1e-3), (1.0, 0.01), (50.0, 0.05), (0.2, 0.01)]
            .into_iter()
            .enumerate()
        {
            let servo = Servo {
                kind: ["prismatic", "revolute"][(i + k) % 2],
                mass,
                h,
                z,
                y: z * [1e-4, 0.02, 0.1][(i + k) % 3],
                start: [0.1, -1.0, 1e-3][k % 3],
            };
            for integrator in BOTH {
                let v = simulate(&folder, &servo.text(), &["--integrator", integrator]);
                let what = format!("{integrator}, {}, z = {z}, m = {mass}, h = {h}", servo.kind);
                assert_eq!(is_done(&v), z < 2.0, "{what}: {}", v["failure"]);
            }
        }
    }
}

/// Two links under gravity with a servo in each joint, whose damping gains are `z` times the outer link's moment of inertia by `h`. The
/// arm is up to five times as easy to move as that link alone: it is stable below `z = 0.4`, and unstable above 2 in any pose.
#[test]
fn servos_of_an_arm_fail_where_they_are_unstable() {
    let folder = Folder::new("energy_arm");
    for (seed, z) in [0.1, 0.3, 0.2, 3.0, 5.0].into_iter().enumerate() {
        let (h, length) = ([0.01, 0.002][seed % 2], 0.4 + 0.1 * seed as f64);
        // of a link about its own end
        let own = length * length / 3.0;
        let (kd, kp) = (z * own / h, 0.02 * z * own / (h * h));
        let mut text = format!(
            "time_step = {h:e}\nhorizon = {:e}\n[mechanism]\n",
            200.0 * h
        );
        let mut loops = format!(
            "[policy.gains]\nkp = {{ value = {kp:e}, fixed = true }}\nkd = {{ value = {kd:e}, fixed = true }}\n"
        );
        for (name, parent, at) in [("upper", "world", 0.0), ("lower", "upper", -0.5 * length)] {
            text += &format!(
                "[mechanism.bodies.{name}]\nmass = 1.0\nshape = {{ box = [0.05, 0.05, {length:e}] }}\n\
                 [mechanism.joints.{name}]\nkind = \"revolute\"\nparent = \"{parent}\"\nchild = \"{name}\"\n\
                 axis = [0.0, 1.0, 0.0]\nparent_anchor = [0.0, 0.0, {at:e}]\nchild_anchor = [0.0, 0.0, {:e}]\n\
                 [mechanism.actuators.{name}]\njoint = \"{name}\"\n",
                0.5 * length
            );
            loops += &format!(
                "[[policy.loops]]\ncontrol = \"{name}\"\njoint = \"{name}\"\nkp = \"kp\"\nkd = \"kd\"\nreference = 0.3\n"
            );
        }
        text += &format!(
            "[initial]\nupper = 0.5\nlower = -0.4\n{loops}[[costs]]\nquantity = {{ joint = \"upper\" }}\nweight = 1.0\n"
        );
        for integrator in BOTH {
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            assert_eq!(
                is_done(&v),
                z < 2.0,
                "{integrator}, z = {z}: {}",
                v["failure"]
            );
        }
    }
}

/// Does the failure say that the gains of these actuators are unstable?
fn names(v: &Value, actuators: &[&str]) -> bool {
    let message = v["failure"]["message"].as_str().unwrap_or_default();
    let has = |name: &&str| message.contains(&format!("`{name}`"));
    message.contains("the gains of actuator") && actuators.iter().all(has)
}

/// Servos whose stiffness makes them unstable: a held control adds the negative damping `kp h/2`, which `kd` must exceed, `z > y/2`.
/// They grow by a factor of 100 or more in speed, in oscillations of 4 to 16 steps.
#[test]
fn stiff_servos_need_damping() {
    let folder = Folder::new("servos_stiff");
    for (i, y) in [0.2, 0.3, 0.5, 1.0, 2.0].into_iter().enumerate() {
        for (k, share) in [0.0, 0.25, 0.55, 0.75, 0.9].into_iter().enumerate() {
            let (mass, h) = [(1e-3, 1e-3), (1.0, 0.01), (50.0, 0.05), (0.2, 0.002)][(i + k) % 4];
            let servo = Servo {
                kind: ["prismatic", "revolute"][(i + k) % 2],
                mass,
                h,
                z: share * y,
                y,
                start: [0.1, -0.3, 1e-3][k % 3],
            };
            for integrator in BOTH {
                let v = simulate(&folder, &servo.text(), &["--integrator", integrator]);
                let what = format!("{integrator}, {}, y = {y}, z = {share} y", servo.kind);
                assert_eq!(is_done(&v), share > 0.5, "{what}: {}", v["failure"]);
                assert!(is_done(&v) || names(&v, &["u"]), "{what}: {}", v["failure"]);
            }
        }
    }
}

/// The same between stops, which take what held controls make, so that nothing grows: a warning names the gains where `kd < kp h/2`.
#[test]
fn servos_that_only_stops_bound_are_warned_of() {
    let folder = Folder::new("servos_stops");
    for (i, y) in [0.4, 0.7, 1.4, 2.5, 5.0].into_iter().enumerate() {
        for (k, share) in [0.0, 0.2, 0.7].into_iter().enumerate() {
            if share > 0.5 && y > 2.0 {
                // `h kd > 2 m`, or a stop that the next control avoids is in the rate that it sees
                continue;
            }
            let (mass, h) = [(0.01, 0.005), (1.0, 0.01), (20.0, 0.02)][(i + k) % 3];
            let servo = Servo {
                kind: ["prismatic", "revolute"][(i + k) % 2],
                mass,
                h,
                z: share * y,
                y,
                start: 0.15,
            };
            let stops = "axis = [1.0, 0.0, 0.0]\nlimits = [-0.2, 0.2]\n";
            let text = servo.text().replace("axis = [1.0, 0.0, 0.0]\n", stops);
            folder.write("case.toml", &text);
            for integrator in BOTH {
                let run = folder.run(&["simulate", "case.toml", "--integrator", integrator]);
                let what = format!("{integrator}, y = {y}, z = {share} y: {}", run.err);
                let is_named = run.err.contains("gains") && run.err.contains("`u`");
                assert_eq!(is_named, share < 0.5, "{what}");
                assert!(is_named || run.code == Some(0), "{what}");
            }
        }
    }
}

/// Two links with a servo in each joint.
fn arm(kp: f64, kd: f64, h: f64) -> String {
    format!(
        r#"time_step = {h:e}
horizon = 2.0
[mechanism]
[mechanism.bodies.a]
mass = 1.0
shape = {{ box = [0.05, 0.05, 0.4] }}
[mechanism.bodies.b]
mass = 0.5
shape = {{ box = [0.05, 0.05, 0.3] }}
[mechanism.joints.p]
kind = "revolute"
child = "a"
axis = [0.0, 1.0, 0.0]
child_anchor = [0.0, 0.0, 0.2]
[mechanism.joints.q]
kind = "revolute"
parent = "a"
child = "b"
axis = [0.0, 1.0, 0.0]
parent_anchor = [0.0, 0.0, -0.2]
child_anchor = [0.0, 0.0, 0.15]
[mechanism.actuators.f]
joint = "p"
[mechanism.actuators.g]
joint = "q"
[initial]
p = 0.3
q = -0.2
[policy.gains]
kp = {{ value = {kp}, fixed = true }}
kd = {{ value = {kd}, fixed = true }}
[[policy.loops]]
control = "f"
joint = "p"
kp = "kp"
kd = "kd"
reference = 0.0
[[policy.loops]]
control = "g"
joint = "q"
kp = "kp"
kd = "kd"
reference = 0.0
[[costs]]
quantity = {{ joint = "p" }}
weight = 1.0
"#
    )
}

/// The unstable servos of an arm end as a step that fails, if they do not end as a limit cycle: the cause is named all the same.
#[test]
fn failed_steps_of_unstable_arms_name_the_gains() {
    let folder = Folder::new("servos_arm");
    for (kp, kd, h) in [
        (100.0, 0.0, 0.01),
        (100.0, 0.0, 0.02),
        (300.0, 0.0, 0.01),
        (300.0, 0.0, 0.02),
        (20.0, 0.0, 0.01),
        (20.0, 0.0, 0.02),
        (100.0, 1.0, 0.02),
        (100.0, 3.0, 0.01),
        (1000.0, 0.0, 0.01),
    ] {
        let v = simulate(&folder, &arm(kp, kd, h), &["--integrator", "minimal"]);
        let what = format!("kp = {kp}, kd = {kd}, h = {h}");
        assert!(
            !is_done(&v) && names(&v, &["g"]),
            "{what}: {}",
            v["failure"]
        );
    }
    for (kp, kd, h) in [
        (100.0, 1.0, 0.01),
        (50.0, 0.5, 0.01),
        (20.0, 0.3, 0.02),
        (50.0, 0.5, 0.002),
        (300.0, 1.0, 0.002),
    ] {
        let v = simulate(&folder, &arm(kp, kd, h), &["--integrator", "minimal"]);
        let what = format!("kp = {kp}, kd = {kd}, h = {h}");
        assert!(is_done(&v), "{what}: {}", v["failure"]);
    }
}

/// A car of 1 kg with a policy of one loop, or with controls that are given, `extra`.
fn car(extra: &str, start: f64, steps: u32) -> String {
    format!(
        r#"time_step = 0.01
horizon = {}
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.car]
mass = 1.0
shape = {{ box = [0.1, 0.1, 0.1] }}
[mechanism.joints.x]
kind = "prismatic"
child = "car"
axis = [1.0, 0.0, 0.0]
[mechanism.actuators.u]
joint = "x"
[initial]
x = {start:?}
[[costs]]
quantity = {{ joint = "x" }}
weight = 1.0
{extra}"#,
        0.01 * f64::from(steps)
    )
}

/// What feeds energy on purpose is no explosion: moving references, also at resonance, laws that pump, and controls that are given.
#[test]
fn what_pumps_on_purpose_passes() {
    let folder = Folder::new("servos_pump");
    let looped = |kp: f64, kd: f64, reference: &str| {
        format!(
            "[[policy.loops]]\ncontrol = \"u\"\njoint = \"x\"\nkp = {kp:?}\nkd = {kd:?}\nreference = {reference}\n"
        )
    };
    let sine = |f: f64| format!("{{ sine = {{ amplitude = 0.1, frequency = {f:?} }} }}");
    let alternating: Vec<f64> = (0..200)
        .map(|k| 1.1_f64.powi(k) * [1.0, 1.0, -1.0, -1.0][k as usize % 4])
        .collect();
    let cases = [
        // a spring with just the damping that holding takes
        (looped(400.0, 2.1, "0.0"), 0.1),
        (looped(1600.0, 8.5, "0.0"), 0.1),
        // at resonance, from rest: 20 rad/s
        (looped(400.0, 2.1, &sine(3.183)), 0.0),
        (looped(400.0, 20.0, &sine(1.0)), 0.0),
        (looped(2500.0, 14.0, &sine(0.3)), 0.05),
        // negative damping grows by e^10 in speed, as the law says
        (looped(0.1, -5.0, "0.0"), 1e-3),
        (looped(100.0, -3.0, "0.0"), 1e-3),
        (looped(-9.0, 0.0, "0.0"), 1e-3),
        (
            format!("[guess]\ncontrols = {{ u = {alternating:?} }}\n"),
            0.0,
        ),
    ];
    for (extra, start) in cases {
        for integrator in BOTH {
            let text = car(&extra, start, 200);
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            assert!(is_done(&v), "{integrator}, {extra:.200}: {}", v["failure"]);
        }
    }
}

/// A body on a rail over the floor, and a leg that a servo holds.
fn hopper(leg: f64) -> String {
    format!(
        r#"time_step = 0.01
horizon = 2.0
[mechanism]
half_spaces.floor = {{}}
[mechanism.bodies.body]
mass = 5.0
shape = {{ box = [0.2, 0.2, 0.2] }}
[mechanism.bodies.leg]
mass = {leg:?}
shape = {{ capsule = {{ radius = 0.02, length = 0.3 }} }}
contacts.foot = {{ shape = {{ sphere = 0.02 }}, position = [0.0, 0.0, -0.15], friction = 0.8 }}
[mechanism.joints.rail]
kind = "prismatic"
child = "body"
axis = [0.0, 0.0, 1.0]
[mechanism.joints.knee]
kind = "prismatic"
parent = "body"
child = "leg"
axis = [0.0, 0.0, 1.0]
parent_anchor = [0.0, 0.0, -0.3]
limits = [-0.2, 0.2]
[mechanism.actuators.u]
joint = "knee"
[initial]
rail = 0.9
[[policy.loops]]
control = "u"
joint = "knee"
kp = 3000
kd = 100
reference = 0.0
"#
    )
}

/// Stops, friction, limits of effort and the ground bound what unstable gains do: `simulate` warns. Of stable gains it does not.
#[test]
fn bounded_motions_of_unstable_gains_are_told() {
    let folder = Folder::new("servos_bounded");
    let looped = |kd: f64| {
        format!(
            "[[policy.loops]]\ncontrol = \"u\"\njoint = \"x\"\nkp = 100\nkd = {kd:?}\nreference = 0.5\n"
        )
    };
    let joint = |extra: &str, kd: f64| {
        car(&looped(kd), 0.0, 300).replace("child = \"car\"", &format!("child = \"car\"\n{extra}"))
    };
    let limited = |most: f64, kd: f64| {
        let limits = format!(
            "joint = \"x\"\neffort_limits = [{:?}, {most:?}]\n[initial]",
            -most
        );
        car(&looped(kd), 0.0, 300).replace("joint = \"x\"\n[initial]", &limits)
    };
    let cases = [
        (joint("limits = [0.0, 1.0]", 210.0), true),
        (joint("friction = 5.0", 400.0), true),
        (limited(50.0, 250.0), true),
        (limited(5.0, 400.0), true),
        (limited(5.0, 300.0), true),
        (hopper(5e-3), true),
        (hopper(5e-4), true),
        (joint("limits = [0.0, 1.0]", 150.0), false),
        (joint("friction = 5.0", 150.0), false),
        (limited(50.0, 190.0), false),
        (limited(5.0, 150.0), false),
        (hopper(1.0), false),
    ];
    for (i, (text, unstable)) in cases.into_iter().enumerate() {
        for integrator in BOTH {
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            let warnings = v["warnings"].to_string();
            let told = warnings.contains("`u` alternates at every step");
            let fails = names(&v, &["u"]);
            assert_eq!(told || fails, unstable, "{i}, {integrator}: {v:#}");
            // limits of effort bound the energy as well
            assert!(!fails || !text.contains("effort_limits"), "{i}: {v:#}");
        }
    }
}
