//! Contacts as a user meets them: starts that overlap, robots that stand and touch themselves, impacts, policies beside a floor.

use super::energy::BOTH;
use super::*;

/// What is half within a table, a step or another body is refused at the start, and so is what is within it as a whole.
#[test]
fn buried_bodies_are_refused() {
    let folder = Folder::new("contacts_buried");
    let world = "[mechanism.terrain.table]\nfriction = 0.5\nshape = { box = [1.0, 1.0, 0.1] }\n";
    let body = "[mechanism.bodies.table]\nmass = 10.0\nshape = { box = [1.0, 1.0, 0.1] }\nfree = true\n\
                contacts.skin = { against = [\"bodies\"] }\n";
    for (table, shape, z) in [
        // the table's top is at 0.05 m
        (world, "box = [0.2, 0.2, 0.02]", 0.05),
        (world, "box = [0.2, 0.2, 0.2]", 0.0),
        (world, "box = [0.2, 0.2, 0.02]", 0.0),
        (world, "cylinder = { radius = 0.1, length = 0.02 }", 0.048),
        (world, "cylinder = { radius = 0.02, length = 0.2 }", 0.08),
        (world, "box = [0.05, 0.3, 0.02]", 0.05),
        (body, "box = [0.05, 0.05, 0.05]", 0.045),
        (body, "box = [1.0, 1.0, 0.1]", 0.0),
        (body, "capsule = { radius = 0.02, length = 0.2 }", 0.02),
    ] {
        let of_bodies = if table == body {
            "\"bodies\""
        } else {
            "\"ground\""
        };
        folder.write(
            "start.toml",
            &format!(
                "time_step = 0.01\nhorizon = 0.1\n[mechanism]\n{table}[mechanism.bodies.a]\nmass = 1.0\nshape = {{ {shape} }}\n\
                 free = true\ncontacts.skin = {{ against = [{of_bodies}] }}\n[initial]\na = {{ position = [0.0, 0.0, {z:?}] }}\n"
            ),
        );
        // contacts between bodies are of maximal coordinates alone
        for integrator in &BOTH[usize::from(table == body)..] {
            let run = folder.run(&["simulate", "start.toml", "--integrator", integrator]);
            let run = run.ended(2);
            let says = run.err.contains("overlap by") && run.err.contains("at the start");
            assert!(says, "{shape} at {z}: {}", run.err);
        }
    }
}

/// What starts within a height field is refused, however deep, beside its border or far from it.
#[test]
fn starts_within_height_fields_are_refused() {
    let folder = Folder::new("contacts_fields");
    let heights = "[[0.0, 0.02, 0.0], [0.03, 0.0, 0.01], [0.0, 0.02, 0.0]]";
    for (x, z) in [(0.0, -0.03), (0.1, -0.5), (0.0, -3.0), (0.38, -1.0)] {
        for shape in [
            "{ sphere = 0.05 }",
            "{ box = [0.1, 0.1, 0.1] }",
            "{ capsule = { radius = 0.05, length = 0.1 } }",
        ] {
            let text = format!(
                "time_step = 0.01\nhorizon = 0.1\n[mechanism.terrain.rough]\nposition = [-0.4, -0.4, 0.0]\n\
                 shape = {{ heights = {{ heights = {heights}, spacing = [0.4, 0.4] }} }}\nfriction = 0.5\n\
                 [mechanism.bodies.b]\nmass = 1.0\nfree = true\nshape = {shape}\ncontacts.skin = {{}}\n\
                 [initial.b]\nposition = [{x:?}, 0.03, {z:?}]\n"
            );
            folder.write("start.toml", &text);
            let run = folder.run(&["simulate", "start.toml"]).ended(2);
            let says = run.err.contains("overlap by") && run.err.contains("at the start");
            assert!(says, "{shape} at {x}, {z}: {}", run.err);
        }
    }
}

/// Contacts are against the ground alone by default: what then passes through each other is a warning, and no warning is what collides, hangs
/// on a joint, or stays away.
#[test]
fn bodies_that_pass_through_each_other_are_warned_of() {
    let folder = Folder::new("contacts_passing");
    let both = "contacts.skin = { friction = 0.5, against = [\"ground\", \"bodies\"] }";
    let ground = "contacts.skin = { friction = 0.5 }";
    let ball = "shape = { sphere = 0.1 }";
    for (shape, contact, [x, z], warned) in [
        (
            "shape = { box = [0.2, 0.2, 0.2] }",
            ground,
            [0.0, 0.35],
            true,
        ),
        (ball, ground, [0.0, 0.5], true),
        (
            "shape = { cylinder = { radius = 0.1, length = 0.2 } }",
            ground,
            [0.05, 0.4],
            true,
        ),
        (
            "shape = { capsule = { radius = 0.1, length = 0.01 } }",
            ground,
            [0.0, 0.6],
            true,
        ),
        (ball, ground, [0.5, 0.5], false),
        (ball, both, [0.01, 0.5], false),
        (
            "shape = { box = [0.2, 0.2, 0.2] }",
            both,
            [0.0, 0.35],
            false,
        ),
    ] {
        let body = |name: &str, x: f64, z: f64| {
            format!(
                "[mechanism.bodies.{name}]\nmass = 1.0\n{shape}\nfree = true\n{contact}\n[initial.{name}]\n\
                 position = [{x:?}, 0.0, {z:?}]\n"
            )
        };
        folder.write(
            "two.toml",
            &format!(
                "time_step = 0.01\nhorizon = 1.0\n[mechanism]\n[mechanism.half_spaces.floor]\n{}{}",
                body("low", 0.0, 0.11),
                body("high", x, z)
            ),
        );
        let v = folder.json(&["simulate", "two.toml", "--json"]);
        let warnings = v["warnings"].as_array().expect("a list").iter();
        let mut texts = warnings.map(|w| w.as_str().expect("text"));
        let passing = texts.any(|w| w.contains("`low` and `high` pass through each other"));
        assert_eq!(passing, warned, "{shape} {contact} {x} {z}: {v:#}");
    }
}

/// A can that comes down on the edge of a box: one step has a solution that would throw it at 27 m/s, with 600 J where 1.2 J are in play. It is
/// not taken: with automatic substeps the motion is that of half the step, and nothing overlaps.
#[test]
fn solutions_that_throw_bodies_are_not_taken() {
    let folder = Folder::new("contacts_thrown");
    folder.write(
        "can.toml",
        r#"
time_step = 0.01
horizon = 0.2
[mechanism.half_spaces.floor]
[mechanism.terrain.ground]
shape = { box = [0.20248784237095674, 0.2985812767294983, 0.11464966400194124] }
position = [0.0, 0.0, 0.05732483200097062]
friction = 0.5
[mechanism.bodies.can]
mass = 1.0
shape = { cylinder = { radius = 0.05037998301269828, length = 0.11274311121746106 } }
free = true
contacts.c = { friction = 0.3 }
[initial.can]
position = [0.07711420399065337, -0.026211614960656913, 0.2102532020812399]
orientation = { rpy = [1.281556032198146, -0.09799277910421203, 0.06687925153683949] }
velocity = [0.4928815750839719, 0.2928744990815326, -1.3101720074351966]
angular_velocity = [-6.775513885835629, -1.0245676348546553, -7.619269902833407]
"#,
    );
    let run = |integrator: &str, h: &str| {
        folder.json(&[
            "simulate",
            "can.toml",
            "--json",
            "--integrator",
            integrator,
            "--step",
            h,
        ])
    };
    for integrator in BOTH {
        for h in ["0.01", "0.005"] {
            let v = run(integrator, h);
            let what = format!("{integrator}, {h} s");
            assert_eq!(v["status"], "done", "{what}: {}", v["failure"]);
            assert!(number(&v["work"], "impacts") < 0.0, "{what}");
            let ends = [number(&v, "energy_initial"), number(&v, "energy_final")];
            assert!(ends[1] < ends[0], "{what}: {ends:?} J");
            let deep = number(&v, "max_penetration");
            assert!(deep < 1e-9, "{what}: {deep:e} m");
        }
    }
}

/// Impacts at their instants go together with substeps: a ball that falls by 0.9 m with e = 0.6 is where it should be after its bounce, and a
/// box that spins loses energy.
#[test]
fn aligned_impacts_and_substeps_go_together() {
    let folder = Folder::new("contacts_aligned");
    let file = |body: &str| {
        format!(
            "time_step = 0.02\nhorizon = 0.8\n[contact]\nimpacts = \"aligned\"\n[mechanism.half_spaces.floor]\n\
             [mechanism.bodies.b]\nmass = 1.0\nfree = true\n{body}"
        )
    };
    let ball = "shape = { sphere = 0.1 }\ncontacts.c = { restitution = 0.6 }\n[initial.b]\nposition = [0, 0, 1.0]\n";
    let cube = "shape = { box = [0.2, 0.3, 0.1] }\ncontacts.c = { friction = 0.3, restitution = 0.6 }\n\
                [initial.b]\nposition = [0, 0, 0.5]\nangular_velocity = [0.0, 30.0, 1.0]\n";
    let falls = (2.0_f64 * 0.9 / 9.81).sqrt();
    let since = 0.8 - falls;
    let height = 0.1 + (0.6 * 9.81 * falls - 0.5 * 9.81 * since) * since;
    for substeps in ["1", "2", "3", "auto"] {
        let run = |text: String| {
            folder.write("b.toml", &text);
            let args = ["simulate", "b.toml", "--json", "--substeps", substeps];
            let v = folder.json(&args);
            assert_eq!(v["status"], "done", "{substeps}");
            v
        };
        let v = run(file(ball));
        let z = numbers(&v["final"]["bodies"]["b"]["position"])[2];
        assert!((z - height).abs() < 1e-9, "{substeps}: {z} of {height}");
        let v = run(file(cube));
        let ends = [number(&v, "energy_initial"), number(&v, "energy_final")];
        assert!(ends[1] < ends[0], "{substeps}: {ends:?}");
    }
}

/// A body without contacts falls through ground, and is warned of.
#[test]
fn ground_that_nothing_touches_is_warned_of() {
    let folder = Folder::new("contacts_none");
    let slab = "[mechanism.terrain.floor]\nshape = { box = [4.0, 4.0, 0.2] }\nfriction = 0.5\n";
    for ground in ["[mechanism.half_spaces.floor]\n", slab] {
        for (contacts, warned) in [("", true), ("contacts.hull = {}\n", false)] {
            folder.write(
                "box.toml",
                &format!(
                    "time_step = 0.01\nhorizon = 0.1\n{ground}[mechanism.bodies.box]\nmass = 1.0\nfree = true\nshape = {{ box = [0.1, 0.1, 0.1] }}\n\
                     {contacts}[initial.box]\nposition = [0.0, 0.0, 1.0]\n"
                ),
            );
            let v = folder.json(&["simulate", "box.toml", "--json"]);
            let warnings = v["warnings"].to_string();
            let told = warnings.contains("nothing touches `floor`");
            assert_eq!(told, warned, "{ground}{contacts}: {warnings}");
        }
    }
}

/// Loops see the velocities at knots whether or not the mechanism has contacts or joint friction: a floor out of reach, and friction that
/// hardly acts, change nothing.
#[test]
fn contacts_out_of_reach_change_no_policy() {
    let folder = Folder::new("contacts_policy");
    for (kp, kd, h) in [
        (50.0, 0.5, 0.01),
        (50.0, 0.7, 0.01),
        (20.0, 0.3, 0.02),
        (100.0, 0.5, 0.005),
        (10.0, 0.1, 0.01),
    ] {
        for integrator in BOTH {
            let ends = [
                ("", ""),
                ("[mechanism.half_spaces.floor]\noffset = -10.0\n", ""),
                ("", "friction = 1e-9\n"),
            ];
            let ends = ends.map(|(floor, friction)| {
                folder.write("arm.toml", &arm(kp, kd, h, (floor, friction)));
                let v =
                    folder.json(&["simulate", "arm.toml", "--json", "--integrator", integrator]);
                let of = |joint: &str| numbers(&v["final"]["joints"][joint]["coordinates"])[0];
                [of("p"), of("q")]
            });
            for other in &ends[1..] {
                let apart = (0..2).map(|i| (ends[0][i] - other[i]).abs());
                let apart = apart.fold(0.0, f64::max);
                assert!(apart < 1e-6, "{kp} {kd} {h} {integrator}: {ends:?}");
            }
        }
    }
}

/// An arm with two links under a policy.
fn arm(kp: f64, kd: f64, h: f64, (floor, friction): (&str, &str)) -> String {
    let link = |name: &str, joint: &str, parent: &str, at: f64| {
        format!(
            "[mechanism.bodies.{name}]\nmass = 0.7\nshape = {{ box = [0.05, 0.05, 0.35] }}\n\
             contacts.tip = {{ shape = {{ sphere = 0.03 }}, position = [0.0, 0.0, -0.17] }}\n\
             [mechanism.joints.{joint}]\nkind = \"revolute\"\n{parent}child = \"{name}\"\naxis = [0.0, 1.0, 0.0]\n\
             parent_anchor = [0.0, 0.0, {at:?}]\nchild_anchor = [0.0, 0.0, 0.17]\n{friction}\
             [mechanism.actuators.{joint}]\njoint = \"{joint}\"\n\
             [[policy.loops]]\ncontrol = \"{joint}\"\njoint = \"{joint}\"\nkp = \"kp\"\nkd = \"kd\"\nreference = 0.0\n"
        )
    };
    // without a floor there is nothing to touch
    let links = [
        link("a", "p", "", 0.7),
        link("b", "q", "parent = \"a\"\n", -0.17),
    ]
    .concat();
    let links = if floor.is_empty() {
        let all = links.lines().filter(|l| !l.starts_with("contacts"));
        all.collect::<Vec<_>>().join("\n")
    } else {
        links
    };
    format!(
        "time_step = {h:?}\nhorizon = 2.0\n[mechanism]\ngravity = [0.0, 0.0, -9.81]\n{floor}{links}\n\
         [initial]\np = 0.3\nq = -0.2\n[policy.gains]\nkp = {{ value = {kp:?}, fixed = true }}\n\
         kd = {{ value = {kd:?}, fixed = true }}\n[[costs]]\nquantity = {{ joint = \"p\" }}\nweight = 1.0\n"
    )
}

/// A leg that stands under the efforts of its start, which would throw a light shank far if the foot did not hold it: with one step an
/// interval the first step is found from the impulses that hold what touches.
#[test]
fn a_leg_with_a_light_shank_stands() {
    let folder = Folder::new("simulate_leg");
    let file = |shank: f64, h: f64, hip: f64| {
        let knee = -2.0 * hip;
        let height = 0.2 * hip.cos() + 0.2 * (hip + knee).cos() + 0.02;
        format!(
            "time_step = {h}\nhorizon = 0.5\n[mechanism]\ngravity = [0.0, 0.0, -9.81]\n[mechanism.half_spaces.floor]\n\
             [mechanism.bodies.trunk]\nmass = 5.0\nshape = {{ box = [0.3, 0.2, 0.1] }}\n\
             [mechanism.bodies.thigh]\nmass = 0.1\ninertia = [4e-4, 4e-4, 1e-5]\n\
             [mechanism.bodies.shank]\nmass = {shank:?}\ninertia = [{across:?}, {across:?}, {along:?}]\n\
             contacts.foot = {{ position = [0.0, 0.0, -0.1], shape = {{ sphere = 0.02 }}, friction = 1.0 }}\n\
             [mechanism.joints.rail]\nkind = \"prismatic\"\nchild = \"trunk\"\naxis = [0.0, 0.0, 1.0]\n\
             [mechanism.joints.hip]\nkind = \"revolute\"\nparent = \"trunk\"\nchild = \"thigh\"\naxis = [0.0, 1.0, 0.0]\n\
             child_anchor = [0.0, 0.0, 0.1]\n\
             [mechanism.joints.knee]\nkind = \"revolute\"\nparent = \"thigh\"\nchild = \"shank\"\naxis = [0.0, 1.0, 0.0]\n\
             parent_anchor = [0.0, 0.0, -0.1]\nchild_anchor = [0.0, 0.0, 0.1]\n\
             [mechanism.actuators.hip]\njoint = \"hip\"\n[mechanism.actuators.knee]\njoint = \"knee\"\n\
             [initial]\nrail = {height:?}\nhip = {hip:?}\nknee = {knee:?}\n[guess]\nstatic = true\n",
            across = 3.4e-3 * shank,
            along = 1e-4 * shank,
        )
    };
    for (shank, h, hip) in [
        (0.1, 0.05, -0.8),
        (0.02, 0.05, -0.8),
        (0.005, 0.05, -0.8),
        (0.005, 0.02, -0.4),
        (0.001, 0.01, -1.1),
    ] {
        folder.write("leg.toml", &file(shank, h, hip));
        for integrator in ["minimal", "maximal"] {
            let what = format!("{shank} kg, {h} s, {integrator}");
            let v = folder.json(&[
                "simulate",
                "leg.toml",
                "--substeps",
                "1",
                "--integrator",
                integrator,
                "--json",
            ]);
            assert_eq!(v["status"], "done", "{what}: {v:#}");
            // it stands like a pole: what rounding begins grows
            let rate = numbers(&v["final"]["joints"]["knee"]["rates"])[0];
            assert!(rate.abs() < 1e-4, "{what}: {rate:e}");
        }
    }
}

/// The hand of an arm comes to lie against the trunk that the world holds, whether the trunk's mask or its own says so.
#[test]
fn hands_do_not_pass_through_what_the_world_holds() {
    let folder = Folder::new("simulate_held");
    let link = |name: &str, shape: &str, z: f64| {
        format!(
            "<link name=\"{name}\"><inertial><origin xyz=\"0 0 {z}\"/><mass value=\"1\"/>\
             <inertia ixx=\"0.01\" ixy=\"0\" ixz=\"0\" iyy=\"0.01\" iyz=\"0\" izz=\"0.01\"/></inertial>{shape}</link>"
        )
    };
    let shape = |geometry: &str, z: f64| {
        format!("<collision><origin xyz=\"0 0 {z}\"/><geometry>{geometry}</geometry></collision>")
    };
    let joint = |name: &str, parent: &str, child: &str, at: &str| {
        format!(
            "<joint name=\"{name}\" type=\"continuous\"><parent link=\"{parent}\"/><child link=\"{child}\"/>\
             <origin xyz=\"{at}\"/><axis xyz=\"0 1 0\"/><dynamics damping=\"1.0\"/></joint>"
        )
    };
    let robot = [
        "<robot name=\"r\">".to_owned(),
        link("trunk", &shape("<box size=\"0.2 0.2 1.0\"/>", 0.0), 0.0),
        link("upper", &shape("<sphere radius=\"0.05\"/>", 0.0), -0.2),
        link("hand", &shape("<sphere radius=\"0.05\"/>", -0.1), -0.1),
        joint("shoulder", "trunk", "upper", "0.14 0 0.5"),
        joint("elbow", "upper", "hand", "0 0 -0.4"),
        "</robot>".to_owned(),
    ];
    folder.write("robot.urdf", &robot.concat());
    for groups in [
        "self_contacts.robot = {}",
        "self_contacts = { hands = { links = [\"hand\"], against = [\"rest\"] }, rest = { against = [] } }",
        "self_contacts = { hands = { links = [\"hand\"], against = [] }, rest = { against = [\"hands\"] } }",
    ] {
        folder.write(
            "robot.toml",
            &format!(
                "time_step = 0.01\nhorizon = 3.0\nmechanism = \"robot.urdf\"\n[import]\ngravity = [-9.81, 0.0, 0.0]\n\
                 {groups}\n[initial]\nshoulder = -0.8\n"
            ),
        );
        let v = folder.json(&["simulate", "robot.toml", "--json"]);
        assert_eq!(v["status"], "done", "{groups}");
        // of the hand's center of mass, which is that of its sphere
        let x = numbers(&v["final"]["bodies"]["hand"]["position"])[0];
        assert!((x - 0.15).abs() < 1e-6, "{groups}: {x}");
    }
}

/// A quadruped whose controls hold its pose stays in it at every time step: its first step, from rest on four feet, is solved.
#[test]
fn a_quadruped_at_rest_stays_at_rest() {
    let folder = Folder::new("contacts_at_rest");
    folder.write("a1.toml", &problem_text("a1"));
    let text = problem_text("a1_stand");
    for h in ["0.01", "0.02", "0.025", "0.05", "0.1"] {
        folder.write(
            "rest.toml",
            &text.replacen("time_step = 0.02", &format!("time_step = {h}"), 1),
        );
        for integrator in BOTH {
            let args = [
                "simulate",
                "rest.toml",
                "--integrator",
                integrator,
                "--json",
            ];
            let v = folder.json(&args);
            assert_eq!(v["status"], "done", "{h} {integrator}");
            let z = numbers(&v["final"]["bodies"]["trunk"]["position"])[2];
            // controls without feedback hold the pose to a tenth of a millimeter of its feet
            assert!((z - 0.1422).abs() < 1e-3, "{h} {integrator}: {z}");
            assert!(number(&v, "max_penetration") < 1e-9, "{h} {integrator}");
        }
    }
}

/// A hopper that nothing holds falls over and turns fast. Substeps follow its turns; where a given number of them does not, the failure
/// names a body and its turn, not contacts that are open.
#[test]
fn a_fall_that_is_too_fast_for_its_steps_names_the_turn() {
    let folder = Folder::new("contacts_falls");
    let link = |name: &str, mass: f64, inertia: f64, at: &str, shape: &str| {
        format!(
            "<link name=\"{name}\"><inertial><origin xyz=\"{at}\"/><mass value=\"{mass}\"/>\
             <inertia ixx=\"{inertia}\" ixy=\"0\" ixz=\"0\" iyy=\"{inertia}\" iyz=\"0\" izz=\"{inertia}\"/></inertial>{shape}</link>"
        )
    };
    let joint = |name: &str, kind: &str, parent: &str, child: &str, place: &str| {
        format!(
            "<joint name=\"{name}\" type=\"{kind}\"><parent link=\"{parent}\"/><child link=\"{child}\"/>\
             <origin {place}/><axis xyz=\"0 -1 0\"/></joint>"
        )
    };
    let ball = |z: f64| {
        format!(
            "<collision><origin xyz=\"0 0 {z}\"/><geometry><sphere radius=\"0.03\"/></geometry></collision>"
        )
    };
    let drive = |joint: &str| {
        format!(
            "<transmission name=\"{joint}\"><joint name=\"{joint}\"/><actuator name=\"{joint}\"/></transmission>"
        )
    };
    let robot = [
        "<robot name=\"hopper\"><link name=\"world\"/>".to_owned(),
        link("torso", 1.0, 0.013, "0 0 0", ""),
        link("leg", 0.2, 0.01, "-0.2 0 0", ""),
        link(
            "foot",
            0.1,
            0.005,
            "0 0 -0.05",
            &(ball(-0.15) + &ball(0.05)),
        ),
        joint(
            "base",
            "planar",
            "world",
            "torso",
            "xyz=\"0 0 0\" rpy=\"0 -1.570796326790 0\"",
        ),
        joint("knee", "continuous", "torso", "leg", "xyz=\"-0.2 0 0\""),
        joint("ankle", "continuous", "leg", "foot", "xyz=\"-0.4 0 0\""),
        drive("knee"),
        drive("ankle"),
        "</robot>".to_owned(),
    ];
    folder.write("hopper.urdf", &robot.concat());
    let mut failed = 0;
    for h in ["0.01", "0.02", "0.025", "0.05", "0.1"] {
        folder.write(
            "falls.toml",
            &format!(
                "time_step = {h}\nhorizon = 2.0\nmechanism = \"hopper.urdf\"\n[import]\ncontacts = [\"foot\"]\nfriction = 1.0\n\
                 half_spaces.floor = {{ friction = 1.0 }}\n[initial]\nbase = [0.6131, 0.0, 0.3]\nknee = -0.5\nankle = 0.2\n\
                 [guess]\nstatic = true\n"
            ),
        );
        for integrator in BOTH {
            let run = folder.run(&[
                "simulate",
                "falls.toml",
                "--integrator",
                integrator,
                "--json",
            ]);
            assert_eq!(run.ended(0).json()["status"], "done", "{h} {integrator}");
            let args = [
                "simulate",
                "falls.toml",
                "--integrator",
                integrator,
                "--substeps",
                "1",
                "--json",
            ];
            let v = folder.run(&args).json();
            if v["status"] != "done" {
                failed += 1;
                let failure = v["failure"].to_string();
                let names = ["body `", "turns by", "take a smaller time step"];
                assert!(
                    names.iter().all(|n| failure.contains(n)),
                    "{h} {integrator}: {failure}"
                );
            }
        }
    }
    assert!(failed > 0);
}

/// Thin rods that fly at the edges of boxes, some by more than their diameter in a step, and spin after they strike: what is beyond the plane of the
/// first touch by the rod's other end must not pass through.
#[test]
fn thrown_rods_stay_out_of_boxes() {
    let folder = Folder::new("contacts_rods");
    for (h, sides, turned, radius, speed, rod) in [
        (
            0.005,
            [0.3, 0.3, 0.05],
            [0.94, -0.182, 1.701],
            0.003,
            5.0,
            [2.504, 1.262, -1.676],
        ),
        (
            0.01,
            [0.3, 0.3, 0.05],
            [2.953, -0.594, 0.667],
            0.003,
            2.0,
            [1.391, -1.019, -2.223],
        ),
        (
            0.01,
            [0.2, 0.2, 0.004],
            [2.568, 2.599, -1.509],
            0.003,
            10.0,
            [-1.385, -2.565, 1.394],
        ),
        (
            0.005,
            [0.2, 0.2, 0.004],
            [2.544, 0.56, -1.353],
            0.02,
            10.0,
            [1.64, 0.545, 2.18],
        ),
        (
            0.01,
            [0.1, 0.1, 0.1],
            [-2.915, 1.171, -2.48],
            0.003,
            1.0,
            [0.731, 1.004, 0.511],
        ),
        (
            0.01,
            [0.3, 0.3, 0.05],
            [0.72, -1.588, 2.31],
            0.003,
            10.0,
            [0.62, -0.933, -1.182],
        ),
    ] {
        folder.write(
            "rod.toml",
            &format!(
                "time_step = {h:?}\nhorizon = {:?}\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n[mechanism.terrain.block]\n\
                 shape = {{ box = {sides:?} }}\norientation = {{ rpy = {turned:?} }}\nfriction = 0.4\n[mechanism.bodies.rod]\n\
                 mass = 0.2\ninertia = [0.0015, 0.0015, 0.00002]\nfree = true\n\
                 contacts.c = {{ shape = {{ capsule = {{ radius = {radius:?}, length = 0.3 }} }}, friction = 0.4 }}\n[initial]\n\
                 rod = {{ position = [-0.4, 0.01, 0.003], velocity = [{speed:?}, 0.0, 0.0], orientation = {{ rpy = {rod:?} }} }}\n",
                (0.8_f64 / speed / h).round() * h
            ),
        );
        for integrator in BOTH {
            let v = folder.json(&["simulate", "rod.toml", "--json", "--integrator", integrator]);
            let what = format!("{integrator}, {sides:?}, {speed} m/s");
            assert_eq!(v["status"], "done", "{what}: {}", v["failure"]);
            let deep = number(&v, "max_penetration");
            assert!(deep < 1e-9, "{what}: {deep:e} m");
            assert!(
                number(&v, "energy_final") < number(&v, "energy_initial"),
                "{what}"
            );
        }
    }
}

/// A trunk on a rail falls onto a leg of two links that are nearly as long as each other. The foot sticks, and the leg folds until the foot
/// comes to the hip: forces grow without bounds there, and a step that ends beyond throws the trunk, at any time step, unless it is made in
/// parts. Contacts only take energy.
#[test]
fn legs_that_fold_gain_nothing() {
    let folder = Folder::new("contacts_folding");
    for (i, h) in [0.001, 0.002, 0.003, 0.005, 0.01].into_iter().enumerate() {
        for (lengths, masses, angle, friction) in [
            ([0.2, 0.2], [9.0, 0.6, 0.06], 1.2_f64, 2.0),
            ([0.209, 0.195], [9.0, 0.6, 0.06], 0.5, 0.6),
            ([0.2, 0.19], [5.0, 0.5, 0.05], 0.8, 1.0),
            ([0.2, 0.19], [5.0, 0.5, 0.05], 1.2, 2.0),
            ([0.2, 0.19], [9.0, 0.6, 0.06], 0.5, 0.6),
        ] {
            let ([thigh, shank], [m, m1, m2]) = (lengths, masses);
            let height = (thigh + shank) * angle.cos() + 0.011;
            folder.write(
                "leg.toml",
                &format!(
                    "time_step = {h:?}\nhorizon = 0.6\n[mechanism.half_spaces.floor]\nfriction = {friction:?}\n\
                     [mechanism.bodies.trunk]\nmass = {m:?}\nshape = {{ box = [0.2, 0.2, 0.1] }}\n\
                     [mechanism.bodies.thigh]\nmass = {m1:?}\nshape = {{ box = [0.03, 0.03, {thigh:?}] }}\n\
                     [mechanism.bodies.shank]\nmass = {m2:?}\nshape = {{ box = [0.02, 0.02, {shank:?}] }}\n\
                     contacts.foot = {{ shape = {{ sphere = 0.01 }}, position = [0.0, 0.0, {:?}], friction = {friction:?} }}\n\
                     [mechanism.joints.rail]\nkind = \"prismatic\"\nchild = \"trunk\"\naxis = [0.0, 0.0, 1.0]\n\
                     [mechanism.joints.hip]\nkind = \"revolute\"\nparent = \"trunk\"\nchild = \"thigh\"\naxis = [0.0, 1.0, 0.0]\n\
                     child_anchor = [0.0, 0.0, {:?}]\n\
                     [mechanism.joints.knee]\nkind = \"revolute\"\nparent = \"thigh\"\nchild = \"shank\"\naxis = [0.0, 1.0, 0.0]\n\
                     parent_anchor = [0.0, 0.0, {:?}]\nchild_anchor = [0.0, 0.0, {:?}]\n\
                     [initial]\nrail = {height:?}\nhip = {:?}\nknee = {:?}\n",
                    0.01 - 0.5 * shank,
                    0.5 * thigh,
                    -0.5 * thigh,
                    0.5 * shank,
                    -angle,
                    2.0 * angle
                ),
            );
            let integrator = BOTH[i % 2];
            let run = folder.run(&["simulate", "leg.toml", "--json", "--integrator", integrator]);
            let what = format!(
                "{integrator}, {h} s, {lengths:?} m, {angle} rad: {}",
                run.err
            );
            assert!(
                !run.err.contains("contacts, friction and dampers gave"),
                "{what}"
            );
            let v = run.ended(0).json();
            assert!(
                number(&v, "energy_final") < number(&v, "energy_initial"),
                "{what}"
            );
        }
    }
}
