//! Robots read.

use crate::dynamics::Step;
use crate::format::{Document, FormatError, Overrides, load, parse};
use crate::integrator::Mechanical;
use crate::mechanism::Surface;
use crate::spatial::{Mat3, Pose, Vec3};
use std::path::PathBuf;

/// A base that carries an arm of two links with a tool, driven by a motor with a gear, and a finger that follows.
pub(super) const ARM: &str = r#"<?xml version="1.0"?>
<robot name="arm">
  <material name="blue"><color rgba="0 0 0.8 1"/></material>
  <link name="base">
    <inertial><mass value="5"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
  </link>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0.2" rpy="0 0 0.5"/>
      <mass value="2"/>
      <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.025"/>
    </inertial>
    <collision>
      <origin xyz="0 0 0.2" rpy="1 0 0"/>
      <geometry><cylinder radius="0.05" length="0.4"/></geometry>
    </collision>
  </link>
  <link name="lower">
    <inertial>
      <origin xyz="0 0 0.15"/>
      <mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.002"/>
    </inertial>
  </link>
  <link name="tool">
    <inertial>
      <origin xyz="0.01 0.02 0.03"/>
      <mass value="0.5"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.0015"/>
    </inertial>
    <visual><geometry><sphere radius="0.02"/></geometry><material name="blue"/></visual>
    <collision><geometry><sphere radius="0.02"/></geometry></collision>
  </link>
  <link name="finger">
    <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.3" rpy="0.3 0 0"/>
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 2 0"/>
    <limit lower="-1.5" upper="1.0" effort="40" velocity="3"/>
    <dynamics damping="0.2" friction="0.1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <origin xyz="0 0 0.4" rpy="0 0.2 0"/>
    <parent link="upper"/>
    <child link="lower"/>
    <axis xyz="1 0 0"/>
  </joint>
  <joint name="flange" type="fixed">
    <origin xyz="0 0.05 0.3" rpy="0 0 1"/>
    <parent link="lower"/>
    <child link="tool"/>
  </joint>
  <joint name="grip" type="prismatic">
    <origin xyz="0 0 0.05"/>
    <parent link="tool"/>
    <child link="finger"/>
    <axis xyz="0 1 0"/>
    <limit lower="-0.1" upper="0.1" effort="5" velocity="1"/>
    <mimic joint="elbow" multiplier="0.01" offset="0.002"/>
  </joint>
  <transmission name="drive">
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="shoulder"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    <actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator>
  </transmission>
  <gazebo reference="upper"/>
</robot>
"#;

pub(super) fn read(text: &str) -> Result<Document, FormatError> {
    parse(text, "arm.urdf")
}

/// A problem of the arm in a folder of its own.
pub(super) fn problem(name: &str, import: &str) -> (PathBuf, Result<Document, FormatError>) {
    let folder =
        std::env::temp_dir().join(format!("least_action_urdf_{}_{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("arm.urdf"), ARM).unwrap();
    let text = format!("mechanism = \"arm.urdf\"\ntime_step = 0.01\nhorizon = 0.1\n{import}");
    let file = folder.join("problem.toml");
    std::fs::write(&file, text).unwrap();
    let read = load(&file);
    (folder, read)
}

#[test]
fn links_become_bodies_in_their_own_frames() {
    let document = read(ARM).unwrap();
    let model = document.build(&Overrides::default()).unwrap();
    let m = model.system.mechanism();
    let names: Vec<&str> = m.bodies.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["upper", "lower", "finger"]);
    assert_eq!(model.title, "arm");
    // the tool is a part of the lower arm
    let lower = &m.bodies[1];
    assert_eq!(lower.mass, 1.5);
    let turn = |a: f64| *nalgebra::Rotation3::from_axis_angle(&Vec3::z_axis(), a).matrix();
    let of_tool = Vec3::new(0.0, 0.05, 0.3) + turn(1.0) * Vec3::new(0.01, 0.02, 0.03);
    let center = (Vec3::new(0.0, 0.0, 0.15) + of_tool * 0.5) / 1.5;
    assert!((lower.origin + center).norm() < 1e-15);
    let steiner =
        |mass: f64, d: Vec3| (Mat3::identity() * d.norm_squared() - d * d.transpose()) * mass;
    let tool = Mat3::from_diagonal(&Vec3::new(0.001, 0.002, 0.0015));
    let expected = Mat3::from_diagonal(&Vec3::new(0.01, 0.01, 0.002))
        + steiner(1.0, Vec3::new(0.0, 0.0, 0.15) - center)
        + turn(1.0) * tool * turn(1.0).transpose()
        + steiner(0.5, of_tool - center);
    assert!((lower.inertia - expected).amax() < 1e-15);
    // inertias are turned into the link's axes
    let own = Mat3::new(0.02, 0.001, 0.0, 0.001, 0.03, 0.0, 0.0, 0.0, 0.025);
    let upper = turn(0.5) * own * turn(0.5).transpose();
    assert!((m.bodies[0].inertia - upper).amax() < 1e-15);
    // limits, damping, friction, the gear and the motor
    let d = &m.joints[0].directions[0];
    assert_eq!(
        (d.lower, d.upper, d.damping, d.friction),
        (-1.5, 1.0, 0.2, 0.1)
    );
    assert!(!m.joints[1].directions[0].is_limited());
    let gear = &model.mechanism.gears["grip"];
    assert_eq!(
        (gear.of.as_str(), gear.ratio, gear.offset),
        ("elbow", 0.01, 0.002)
    );
    let motor = &model.mechanism.actuators["motor"];
    assert_eq!((motor.gain, motor.bounds), (50.0, Some([-0.8, 0.8])));
    let said = document.remarks().join("\n");
    for word in [
        "link `base` (5 kg) is held",
        "limits of speed (2 joints)",
        "<gazebo> in <robot>",
    ] {
        assert!(said.contains(word), "{said}");
    }
}

/// Frames of links along the tree, by the definition of the format.
#[test]
fn poses_are_those_of_the_frames() {
    let model = read(ARM).unwrap().build(&Overrides::default()).unwrap();
    let system = &model.system;
    let (shoulder, elbow) = (0.4, -0.7);
    let mut q = vec![shoulder, elbow, 0.002 + 0.01 * elbow];
    q.resize(3, 0.0);
    let x = system.start(&q, &[0.0; 3], &[true; 3]).unwrap();
    let poses = system.poses(&x);
    let rpy = |r: f64, p: f64, y: f64| nalgebra::UnitQuaternion::from_euler_angles(r, p, y);
    let about = |axis: Vec3, a: f64| crate::spatial::exp(&(axis * a));
    let then =
        |a: &Pose, x: [f64; 3], q: crate::spatial::Quat| Pose::new(a.point(&x.into()), a.q * q);
    let world = Pose::identity();
    let upper = then(
        &world,
        [0.0, 0.0, 0.3],
        rpy(0.3, 0.0, 0.0) * about(Vec3::y(), shoulder),
    );
    let lower = then(
        &upper,
        [0.0, 0.0, 0.4],
        rpy(0.0, 0.2, 0.0) * about(Vec3::x(), elbow),
    );
    let tool = then(&lower, [0.0, 0.05, 0.3], rpy(0.0, 0.0, 1.0));
    let finger = then(&tool, [0.0, q[2], 0.05], rpy(0.0, 0.0, 0.0));
    let m = system.mechanism();
    for (body, expected) in [upper, lower, finger].iter().enumerate() {
        let origin = poses[body].point(&m.bodies[body].origin);
        assert!((origin - expected.x).norm() < 1e-14, "{body}");
        assert!(poses[body].q.angle_to(&expected.q) < 1e-7, "{body}");
    }
}

#[test]
fn problems_say_more_beside_it() {
    let import = "[import]\nbase = \"free\"\ncontacts = [\"upper\", \"tool\"]\nfriction = 0.7\nspeed_limits = true\n\
        controls = [\"elbow\"]\nhalf_spaces.floor = {}\njoints.elbow = { damping = 0.3 }\n\
        feet.lower.heel = { shape = \"point\", position = [0.0, 0.0, 0.1] }\nbodies.finger = { mass = 0.2 }\n\
        [initial.base]\nposition = [0.0, 0.0, 2.0]\n";
    let (folder, document) = problem("more", import);
    let model = document.unwrap().build(&Overrides::default()).unwrap();
    let m = model.system.mechanism();
    assert_eq!(m.bodies[0].name, "base");
    assert!(m.bodies[0].free);
    let names: Vec<&str> = m.colliders.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["upper.upper", "lower.tool", "lower.heel"]);
    assert!(m.colliders.iter().all(|c| c.friction == 0.7));
    let lower = &m.bodies[2];
    assert!((m.colliders[2].position - lower.origin - Vec3::new(0.0, 0.0, 0.1)).norm() < 1e-15);
    assert!((m.colliders[1].position - lower.origin - Vec3::new(0.0, 0.05, 0.3)).norm() < 1e-15);
    assert!(matches!(m.colliders[0].surface, Surface::Cylinder { .. }));
    assert_eq!(
        m.joints
            .iter()
            .find(|j| j.name == "elbow")
            .unwrap()
            .directions[0]
            .damping,
        0.3
    );
    assert_eq!(m.actuators.len(), 1);
    assert_eq!(m.bodies[3].mass, 0.2);
    // two joints with limits of speed, on both sides, along the way and at the end
    assert_eq!(model.problem.constraints.len(), 8);
    // a free body is placed by its frame
    assert!((model.system.poses(&model.x0)[0].x.z - 2.0).abs() < 1e-15);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn fixed_joints_may_stay() {
    let import = "[import]\nfixed_joints = \"keep\"\n";
    let (folder, document) = problem("keep", import);
    let model = document.unwrap().build(&Overrides::default()).unwrap();
    let names: Vec<&str> = model
        .system
        .mechanism()
        .bodies
        .iter()
        .map(|b| b.name.as_str())
        .collect();
    assert_eq!(names, ["base", "upper", "lower", "tool", "finger"]);
    let merged = read(ARM).unwrap().build(&Overrides::default()).unwrap();
    // the finger is where it was
    let last = |m: &crate::format::Model| m.system.poses(&m.x0).last().unwrap().x;
    assert!((last(&model) - last(&merged)).norm() < 1e-12);
    assert_eq!(model.system.dims().nu, merged.system.dims().nu);
    std::fs::remove_dir_all(folder).unwrap();
}

/// A cube of half a metre as STL and OBJ, and a ball of many corners.
#[test]
fn meshes_touch_by_their_hulls() {
    let (folder, _) = problem("mesh", "");
    let mut obj = String::new();
    for k in 0..8 {
        let at = |bit: usize| if k >> bit & 1 == 1 { 250.0 } else { -250.0 };
        obj += &format!("v {} {} {}\n", at(0), at(1), at(2));
    }
    for [a, b, c, d] in [
        [1, 3, 4, 2],
        [5, 6, 8, 7],
        [1, 2, 6, 5],
        [3, 7, 8, 4],
        [1, 5, 7, 3],
        [2, 4, 8, 6],
    ] {
        obj += &format!("f {a} {b} {c} {d}\n");
    }
    std::fs::create_dir_all(folder.join("meshes")).unwrap();
    std::fs::write(folder.join("meshes/cube.obj"), obj).unwrap();
    let mut ball = String::from("solid ball\n");
    let n = 20;
    let at = |i: usize, j: usize| {
        let (a, b) = (
            std::f64::consts::PI * i as f64 / n as f64,
            std::f64::consts::TAU * j as f64 / n as f64,
        );
        format!(
            "vertex {} {} {}\n",
            0.1 * a.sin() * b.cos(),
            0.1 * a.sin() * b.sin(),
            0.1 * a.cos()
        )
    };
    for i in 0..n {
        for j in 0..n {
            for corners in [
                [(i, j), (i + 1, j), (i + 1, j + 1)],
                [(i, j), (i + 1, j + 1), (i, j + 1)],
            ] {
                let corners: String = corners.iter().map(|(i, j)| at(*i, *j)).collect();
                ball += &format!("facet normal 0 0 1\nouter loop\n{corners}endloop\nendfacet\n");
            }
        }
    }
    std::fs::write(folder.join("ball.stl"), ball + "endsolid ball\n").unwrap();
    let text = ARM
        .replace(
            "<cylinder radius=\"0.05\" length=\"0.4\"/>",
            "<mesh filename=\"package://arm/meshes/cube.obj\" scale=\"0.001 0.001 0.001\"/>",
        )
        .replacen(
            "<collision><geometry><sphere radius=\"0.02\"/>",
            "<collision><geometry><mesh filename=\"ball.stl\"/>",
            1,
        );
    std::fs::write(folder.join("arm.urdf"), text).unwrap();
    let problem = "mechanism = \"arm.urdf\"\ntime_step = 0.01\nhorizon = 0.1\n[import]\nhalf_spaces.floor = { offset = -5.0 }\n";
    std::fs::write(folder.join("problem.toml"), problem).unwrap();
    let model = load(&folder.join("problem.toml"))
        .unwrap()
        .build(&Overrides::default())
        .unwrap();
    let m = model.system.mechanism();
    let corners = |c: usize| match &m.colliders[c].surface {
        Surface::Hull(hull) => Vec::<[f64; 3]>::from(hull.clone()),
        other => panic!("{other:?}"),
    };
    let cube = corners(0);
    assert_eq!(cube.len(), 8);
    assert!(cube.iter().flatten().all(|v| (v.abs() - 0.25).abs() < 1e-7));
    let ball = corners(1);
    // all but the few that leave out less than 0.1 % of the extents
    assert!((300..=382).contains(&ball.len()), "{}", ball.len());
    assert!(
        ball.iter()
            .all(|p| (Vec3::from(*p).norm() - 0.1).abs() < 1e-7)
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// A base that hangs on a link called as the ground, and a finger whose leader does not move.
#[test]
fn names_and_mimics_that_mean_nothing() {
    let text = ARM
        .replacen("<link name=\"base\">", "<link name=\"world\"/><joint name=\"foot\" type=\"fixed\"><origin xyz=\"0 0 1\"/><parent link=\"world\"/><child link=\"base\"/></joint><link name=\"base\">", 1)
        .replacen("name=\"elbow\" type=\"continuous\"", "name=\"elbow\" type=\"fixed\"", 1);
    let document = read(&text).unwrap();
    assert!(
        document
            .remarks()
            .iter()
            .any(|r| r.contains("one of them is fixed"))
    );
    let model = document.build(&Overrides::default()).unwrap();
    let m = model.system.mechanism();
    // the finger is a part of the upper arm, out by its offset
    assert_eq!(m.bodies.len(), 1);
    assert!((m.bodies[0].mass - 3.6).abs() < 1e-15);
    assert!(model.mechanism.gears.is_empty());
    let folder =
        std::env::temp_dir().join(format!("least_action_urdf_world_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("arm.urdf"), &text).unwrap();
    let problem =
        "mechanism = \"arm.urdf\"\ntime_step = 0.01\nhorizon = 0.1\nimport.base = \"free\"\n";
    let free = parse(problem, folder.join("problem.toml")).unwrap();
    let model = free.build(&Overrides::default()).unwrap();
    let m = model.system.mechanism();
    assert_eq!(m.bodies[0].name, "base");
    // in the frame of the first link, which is the root
    assert!((model.system.poses(&model.x0)[0].x.z - 1.0).abs() < 1e-15);
    std::fs::remove_dir_all(folder).unwrap();
}

/// As in a file of one arm of a robot, with the transmissions of all.
#[test]
fn transmissions_of_joints_that_are_not_there_are_listed() {
    let text = ARM.replacen(
        "<joint name=\"shoulder\"><h",
        "<joint name=\"shoulde\"><h",
        1,
    );
    let document = read(&text).unwrap();
    let said = document.remarks().join("\n");
    for word in ["drives `shoulde`", "left out", "did you mean `shoulder`"] {
        assert!(said.contains(word), "{said}");
    }
    let model = document.build(&Overrides::default()).unwrap();
    assert!(!model.mechanism.actuators.contains_key("motor"));
}

/// What is in the file and has no effect has a line.
#[test]
fn limits_that_bind_nothing_are_listed() {
    let text = ARM
        .replacen(
            "<axis xyz=\"1 0 0\"/>",
            "<axis xyz=\"1 0 0\"/><limit lower=\"-1\" upper=\"1\" effort=\"0\" velocity=\"0\"/>",
            1,
        )
        .replacen("lower=\"-1.5\" upper=\"1.0\"", "lower=\"0\" upper=\"0\"", 1)
        .replacen("<color rgba", "<texture filename=\"a.png\"/><color rgba", 1)
        .replacen(
            "<mechanicalReduction>",
            "<motorTorqueConstant>1</motorTorqueConstant><mechanicalReduction>",
            1,
        );
    let document = read(&text).unwrap();
    let said = document.remarks().join("\n");
    for word in [
        "limits of a continuous, planar or floating joint are not used",
        "limits from 0 to 0 are taken as none",
        "effort of 0 in <limit> is taken as no limit",
        "velocity of 0 in <limit> is taken as no limit",
        "<texture> in <material>",
        "<motorTorqueConstant> in <actuator>",
    ] {
        assert!(said.contains(word), "{said}");
    }
    assert!(said.lines().any(|l| l.starts_with("line ")));
}

/// Two motors of one name each drive their joint.
#[test]
fn actuators_of_one_name_are_told_apart() {
    let second = "<transmission name=\"other\"><joint name=\"elbow\"/><actuator name=\"motor\"/></transmission><gazebo";
    let text = ARM.replacen("<gazebo", second, 1);
    let document = read(&text).unwrap();
    let model = document.build(&Overrides::default()).unwrap();
    let names: Vec<_> = model.mechanism.actuators.keys().collect();
    assert_eq!(names, ["motor", "elbow"]);
    let said = document.remarks().join("\n");
    assert!(said.contains("has the name of another"), "{said}");
}

/// A follower that may not go where its leader's zero takes it: the leader starts where both may be.
#[test]
fn mimics_start_within_limits() {
    let text = ARM
        .replacen(
            "lower=\"-0.1\" upper=\"0.1\"",
            "lower=\"0\" upper=\"0.1\"",
            1,
        )
        .replacen("offset=\"0.002\"", "offset=\"-0.01\"", 1);
    let model = read(&text).unwrap().build(&Overrides::default()).unwrap();
    let (system, problem) = (&model.system, &model.problem);
    let x = problem
        .start(system, &problem.parameters, &mut system.work())
        .unwrap();
    let of = |name: &str| {
        let j = system.mechanism().joint(name).unwrap();
        system.coordinate(&x, j, 0)
    };
    assert!((of("elbow") - 1.0).abs() < 1e-12, "{}", of("elbow"));
    assert!(of("grip").abs() < 1e-12, "{}", of("grip"));
}

/// Simulators call the ground `world` without declaring it, and give elements prefixes.
#[test]
fn the_world_and_prefixes_need_not_be_declared() {
    let joint = "<joint name=\"foot\" type=\"KIND\"><origin xyz=\"0 0 1\"/><parent link=\"world\"/><child link=\"base\"/></joint><link name=\"base\">";
    let with = |kind: &str| {
        let joint = joint.replace("KIND", kind);
        ARM.replacen("<link name=\"base\">", &joint, 1)
    };
    let fixed = read(&with("fixed")).unwrap();
    let model = fixed.build(&Overrides::default()).unwrap();
    let poses = model.system.poses(&model.x0);
    let plain = read(ARM).unwrap().build(&Overrides::default()).unwrap();
    let lower = plain.system.poses(&plain.x0);
    for (pose, other) in poses.iter().zip(&lower) {
        assert!((pose.x - other.x - Vec3::z()).norm() < 1e-14);
    }
    let kinds = [
        ("continuous", 1),
        ("prismatic", 1),
        ("planar", 3),
        ("floating", 6),
    ];
    for (kind, count) in kinds {
        let model = read(&with(kind)).unwrap().build(&Overrides::default());
        let model = model.unwrap();
        let m = model.system.mechanism();
        assert_eq!(m.bodies[0].name, "base", "{kind}");
        let foot = m.joint("foot").expect(kind);
        assert_eq!(m.joints[foot].parent, None, "{kind}");
        assert_eq!(m.joints[foot].directions.len(), count, "{kind}");
    }
    // another name is still one that is not there
    let e = read(&with("fixed").replace("\"world\"", "\"wold\"")).unwrap_err();
    assert!(format!("{e:?}").contains("unknown link `wold`"), "{e:?}");
    let prefixed = ARM
        .replacen(
            "<collision>",
            "<collision><drake:props sim:of=\"1\"><drake:mu value=\"0.5\"/></drake:props>",
            1,
        )
        .replacen("<gazebo", "<drake:joint/><gazebo", 1);
    let document = read(&prefixed).unwrap();
    let model = document.build(&Overrides::default()).unwrap();
    assert_eq!(model.system.mechanism().bodies.len(), 3);
    let said = document.remarks().join("\n");
    assert!(said.contains("drake_props"), "{said}");
    // places are those of the file
    let broken = prefixed.replacen("<mass value=\"1\"/>", "<mass value=\"-1\"/>", 1);
    let e = format!("{:?}", read(&broken).unwrap_err());
    assert!(e.contains("mass"), "{e}");
}

/// Groups and masks of links that collide with each other.
#[test]
fn shapes_of_a_robot_collide_by_groups_and_masks() {
    let names = |import: &str| {
        let (folder, read) = problem("self", import);
        let found = read.and_then(|document| {
            let model = document.build(&Overrides::default())?;
            let contacts = &model.system.mechanism().contacts;
            let names: Vec<String> = contacts.iter().map(|c| c.name.clone()).collect();
            Ok(names)
        });
        std::fs::remove_dir_all(folder).unwrap();
        found
    };
    // what touches what, without the numbers of places
    let pairs = |import: &str| {
        let mut found: Vec<String> = (names(import).unwrap().iter())
            .map(|n| {
                n.trim_end_matches(|c: char| c.is_numeric() || c == ' ')
                    .to_owned()
            })
            .collect();
        found.dedup();
        found
    };
    // upper and lower (with the tool) are connected by a joint: a ball for the finger, which is not connected to upper
    let finger = "feet.finger.tip = { shape = { sphere = 0.01 }, position = [0.0, 0.2, 0.2], group = \"tips\", against = [GROUPS] }\n";
    let with =
        |groups: &str, more: &str| format!("[import]\n{}{more}", finger.replace("GROUPS", groups));
    let all = with("\"robot\"", "self_contacts.robot = {}\n");
    assert_eq!(pairs(&all), ["finger.tip with upper.upper"]);
    let none = with(
        "\"tools\"",
        "self_contacts.tools = { links = [\"tool\"] }\n",
    );
    assert!(
        names(&none).is_err(),
        "the finger is connected to the tool's body"
    );
    let grounded = with(
        "\"ground\"",
        "half_spaces.floor = { offset = -5.0 }\nself_contacts.robot = {}\n",
    );
    assert!(pairs(&grounded).iter().all(|n| n.contains("on floor")));
    // excluded by the names of links
    let excluded = with(
        "\"robot\", \"ground\"",
        "half_spaces.floor = { offset = -5.0 }\nself_contacts.robot = {}\nexcluded_pairs = [[\"upper\", \"finger\"]]\n",
    );
    assert!(pairs(&excluded).iter().all(|n| n.contains("on floor")));
    for (import, words) in [
        (
            "self_contacts.a = { links = [\"uper\"] }",
            "did you mean `upper`",
        ),
        (
            "self_contacts.a = { links = [\"lower\"] }",
            "has no collision shape",
        ),
        (
            "self_contacts.a = { against = [\"b\"] }",
            "unknown group `b`",
        ),
        (
            "self_contacts = { a = { links = [\"upper\"] }, b = { links = [\"upper\"] } }",
            "is in two groups",
        ),
        ("self_contacts = { a = {}, b = {} }", "both take all links"),
        (
            "self_contacts.a = {}\nexcluded_pairs = [[\"uper\", \"tool\"]]",
            "did you mean `upper`",
        ),
        // numbers are checked also where nothing uses them
        ("friction = -1.0", "a number of at least 0"),
        ("hull_vertices = 3", "a number from 4 to 2000"),
        ("hull_vertices = 2001", "a number from 4 to 2000"),
    ] {
        let e = format!("{:?}", names(&format!("[import]\n{import}\n")).unwrap_err());
        assert!(e.contains(words), "{import}: {e}");
    }
}
