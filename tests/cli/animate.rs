//! `animate`.

use super::*;

fn recorded(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder
        .run(&[
            "simulate",
            &problem("five_bar_reach"),
            "--duration",
            "0.1",
            "--out",
            "run.json",
        ])
        .ended(0);
    folder
}

#[test]
fn animate_writes_what_its_ending_says() {
    let folder = recorded("animate");
    let run = folder.run(&["animate", "run.json"]).ended(0);
    assert_eq!(run.out.trim(), "wrote run.html");
    let page = folder.text("run.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Five-bar"));
    folder
        .run(&["animate", "run.json", "--out", "some/run.glb"])
        .ended(0);
    assert!(folder.read("some/run.glb").starts_with(b"glTF"));
    // the same name twice
    folder
        .run(&["animate", "run.json", "run.json", "--out", "both.html"])
        .ended(0);
    assert!(folder.text("both.html").contains("run 2"));
}

#[test]
fn animations_come_with_what_is_computed() {
    let folder = Folder::new("animate_at_once");
    folder
        .run(&[
            "simulate",
            &problem("box_drop"),
            "--duration",
            "0.05",
            "--animate",
            "box.glb",
        ])
        .ended(0);
    assert_eq!(folder.list(), ["box.glb"]);
    folder
        .run(&[
            "solve",
            &problem("pendulum_swingup"),
            "--max-iterations",
            "1",
            "--animate",
            "--out",
            "solved",
        ])
        .says(&[]);
    assert!(folder.text("solved/motion.html").contains("</html>"));
}

#[test]
fn what_is_no_animation_is_refused() {
    let folder = recorded("animate_refused");
    folder
        .run(&["animate", "run.json", "--out", "run.mp4"])
        .refused(&["run.mp4", "no animation", ".html, .glb, .gif or .png"]);
    folder
        .run(&["simulate", &problem("box_drop"), "--animate", "run.svg"])
        .refused(&["run.svg", ".html"]);
    folder
        .run(&["animate", "none.json"])
        .refused(&["none.json"]);
    folder.write("other.json", "{}");
    folder
        .run(&["animate", "other.json"])
        .refused(&["other.json", "not a trajectory", "expected"]);
    folder.run(&["animate"]).refused(&["TRAJECTORY"]);
    // poses that are no places
    let mut value: Value = serde_json::from_slice(&folder.read("run.json")).expect("JSON");
    value["poses"][3][1]["orientation"] = serde_json::json!([0.0, 0.0, 0.0, 0.0]);
    folder.write("bad.json", &value.to_string());
    folder
        .run(&["animate", "bad.json"])
        .refused(&["bad.json", "knot 3", "no rotation", "write"]);
    assert!(!folder.list().iter().any(|f| f.ends_with("html")));
}

/// A rod on a hinge, as a robot's file.
const ROD: &str = r#"<robot name="rod">
  <link name="base"/>
  <link name="rod">
    <inertial><origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>
    <visual><origin xyz="0 0 -0.5"/><geometry><box size="0.1 0.1 1"/></geometry></visual>
  </link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
</robot>
"#;

/// From a robot's own file to a page.
#[test]
fn robots_in_urdf_move_in_a_page() {
    let folder = Folder::new("animate_urdf");
    folder.write("rod.urdf", ROD);
    let problem =
        "time_step = 0.01\nhorizon = 0.2\nmechanism = \"rod.urdf\"\n[initial]\nhinge = 1.0\n";
    folder.write("case.toml", problem);
    folder.run(&["describe", "rod.urdf"]).ended(0);
    folder
        .run(&["simulate", "case.toml", "--out", "run.json"])
        .ended(0);
    folder
        .run(&["animate", "run.json", "--out", "run.html"])
        .ended(0);
    let page = folder.text("run.html");
    assert!(page.contains("rod") && page.contains("webgl"), "no page");
}
