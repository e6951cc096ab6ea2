//! Robots refused.

use super::tests::{ARM, problem, read};
use crate::format::{Overrides, load, parse};

/// A change of the arm's file, what stands on the line that the error points to, and words of it.
type Broken = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const BROKEN: [Broken; 56] = [
    ("</robot>", "", "<?xml", &["not valid XML"]),
    (
        "<robot name=\"arm\">",
        "<robot name=\"arm>",
        "<material",
        &["not valid XML"],
    ),
    (
        "<parent link=\"base\"/>",
        "<parent link=\"base\">",
        "</joint>",
        &["not valid XML"],
    ),
    (
        "<robot name=\"arm\">",
        "<robot name=\"arm\" name=\"b\">",
        "<robot",
        &["not valid XML", "name"],
    ),
    (
        "rgba=\"0 0 0.8 1\"",
        "rgba=\"0 0 0.8\"",
        "rgba",
        &["3 numbers", "expected 4"],
    ),
    (
        "rgba=\"0 0 0.8 1\"",
        "rgba=\"0 0 blue 1\"",
        "rgba",
        &["`blue`, no number"],
    ),
    (
        "<link name=\"upper\">",
        "<link>",
        "<link>",
        &["no attribute `name`"],
    ),
    (
        "<link name=\"upper\">",
        "<link name=\"\">",
        "name=\"\"",
        &["name of", "is empty"],
    ),
    (
        "<link name=\"upper\">",
        "<link name=\"base\">",
        "<link name=\"base\">",
        &["second link", "another name"],
    ),
    (
        "<link name=\"upper\">",
        "<link nam=\"upper\">",
        "<link nam",
        &["no attribute `name`", "it has `nam`"],
    ),
    (
        "<mass value=\"2\"/>",
        "",
        "<inertial>",
        &["has no <mass>", "add <mass"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mas value=\"2\"/>",
        "<inertial>",
        &["did you mean <mass> where it says <mas>"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass/>",
        "<mass/>",
        &["no attribute `value`"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"-2\"/>",
        "-2",
        &["mass of <link name=\"upper\"> is -2"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"2,5\"/>",
        "2,5",
        &["`2,5`, no number", "have a point"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"2 kg\"/>",
        "2 kg",
        &["`2 kg`, no number"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"nan\"/>",
        "nan",
        &["no number"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"1e999\"/>",
        "1e999",
        &["finite"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"0\"/>",
        "<link name=\"upper\">",
        &["no mass, and moves", "<inertial>"],
    ),
    (
        "<mass value=\"2\"/>",
        "<mass value=\"2\"/><mass value=\"2\"/>",
        "<mass value",
        &["second <mass>", "keep one"],
    ),
    (
        "ixx=\"0.02\" ixy",
        "ixy",
        "<inertia ixy",
        &["no attribute `ixx`"],
    ),
    (
        "ixx=\"0.02\"",
        "ixx=\"-0.02\"",
        "<inertia ixx=\"-0.02\"",
        &["body `upper`", "principal moment"],
    ),
    (
        "ixx=\"0.02\"",
        "ixx=\"0.2\"",
        "<inertia ixx=\"0.2\"",
        &["triangle inequality"],
    ),
    ("ixx=\"0.02\"", "ixx=\"zero\"", "zero", &["ixx", "`zero`"]),
    (
        "xyz=\"0.1 0 0.2\"",
        "xyz=\"0.1 0\"",
        "0.1 0\"",
        &["2 numbers", "expected 3"],
    ),
    (
        "rpy=\"0 0 0.5\"",
        "rpy=\"0 0 90deg\"",
        "90deg",
        &["rpy", "`90deg`"],
    ),
    (
        "xyz=\"0.1 0 0.2\"",
        "xyz=\"\"",
        "xyz=\"\"",
        &["xyz", "is empty"],
    ),
    (
        "radius=\"0.05\"",
        "radius=\"0\"",
        "radius=\"0\"",
        &["radius", "is 0", "positive length"],
    ),
    (
        "radius=\"0.05\" ",
        "",
        "<cylinder length",
        &["no attribute `radius`", "it has `length`"],
    ),
    (
        "<geometry><cylinder radius=\"0.05\" length=\"0.4\"/></geometry>",
        "",
        "<collision>",
        &["no <geometry>"],
    ),
    (
        "<cylinder radius=\"0.05\" length=\"0.4\"/>",
        "",
        "<geometry></geometry>",
        &["0 shapes", "give one of <box>"],
    ),
    (
        "<cylinder radius=\"0.05\" length=\"0.4\"/>",
        "<box size=\"1 1 1\"/><sphere radius=\"1\"/>",
        "<box",
        &["2 shapes"],
    ),
    (
        "<cylinder radius=\"0.05\" length=\"0.4\"/>",
        "<box size=\"1 -1 1\"/>",
        "<box",
        &["an edge of -1 m"],
    ),
    (
        "<cylinder radius=\"0.05\" length=\"0.4\"/>",
        "<box size=\"1 1\"/>",
        "<box",
        &["2 numbers"],
    ),
    (
        "<cylinder radius=\"0.05\" length=\"0.4\"/>",
        "<mesh/>",
        "<mesh/>",
        &["no attribute `filename`"],
    ),
    (
        "<cylinder radius=\"0.05\" length=\"0.4\"/>",
        "<mesh filename=\"a.stl\" scale=\"1\"/>",
        "<mesh",
        &["scale", "1 numbers"],
    ),
    (
        "type=\"revolute\"",
        "",
        "<joint name=\"shoulder\"",
        &["no attribute `type`"],
    ),
    (
        "type=\"revolute\"",
        "type=\"hinge\"",
        "type=\"hinge\"",
        &["is `hinge`", "valid names: `revolute`"],
    ),
    (
        "type=\"revolute\"",
        "type=\"revolut\"",
        "type=\"revolut\"",
        &["did you mean `revolute`"],
    ),
    (
        "<parent link=\"base\"/>",
        "",
        "<joint name=\"shoulder\"",
        &["no <parent>"],
    ),
    (
        "<parent link=\"base\"/>",
        "<parent link=\"bas\"/>",
        "link=\"bas\"",
        &["unknown link `bas`", "did you mean `base`"],
    ),
    (
        "<parent link=\"base\"/>",
        "<parent name=\"base\"/>",
        "<parent name",
        &["no attribute `link`", "it has `name`"],
    ),
    (
        "<child link=\"upper\"/>",
        "<child link=\"base\"/>",
        "<child link=\"base\"/>",
        &["joins `base` to itself"],
    ),
    (
        "<child link=\"lower\"/>",
        "<child link=\"tool\"/>",
        "<child link=\"tool\"/>",
        &["child of two joints, `elbow` and `flange`"],
    ),
    (
        "<child link=\"lower\"/>",
        "<child link=\"base\"/>",
        "<joint name=\"elbow\"",
        &["close a ring", "root `lower`"],
    ),
    (
        "<parent link=\"upper\"/>",
        "<parent link=\"tool\"/>",
        "<joint name=\"elbow\"",
        &["close a ring"],
    ),
    (
        "name=\"elbow\"",
        "name=\"shoulder\"",
        "name=\"shoulder\" type=\"continuous\"",
        &["second joint", "another name"],
    ),
    (
        "xyz=\"0 2 0\"",
        "xyz=\"0 0 0\"",
        "0 0 0",
        &["axis of", "no direction"],
    ),
    (
        "xyz=\"0 2 0\"",
        "xyz=\"y\"",
        "xyz=\"y\"",
        &["`y`, no number"],
    ),
    (
        "lower=\"-1.5\" upper=\"1.0\"",
        "lower=\"1.5\" upper=\"1.0\"",
        "<limit",
        &["limits of", "lower below upper"],
    ),
    (
        "effort=\"40\"",
        "effort=\"-40\"",
        "effort=\"-40\"",
        &["effort", "not negative"],
    ),
    (
        "damping=\"0.2\"",
        "damping=\"-0.2\"",
        "damping=\"-0.2\"",
        &["damping", "not negative"],
    ),
    (
        "mimic joint=\"elbow\"",
        "mimic joint=\"elbo\"",
        "elbo",
        &["unknown joint `elbo`", "did you mean `elbow`"],
    ),
    (
        "mimic joint=\"elbow\"",
        "mimic joint=\"grip\"",
        "<mimic",
        &["cannot mimic"],
    ),
    (
        "multiplier=\"0.01\"",
        "multiplier=\"0\"",
        "multiplier=\"0\"",
        &["multiplier", "is 0"],
    ),
    (
        "<mechanicalReduction>50<",
        "<mechanicalReduction>1:50<",
        "1:50",
        &["mechanicalReduction", "`1:50`"],
    ),
];

#[test]
fn broken_robots_are_refused() {
    for (from, to, place, words) in BROKEN {
        let text = ARM.replacen(from, to, 1);
        assert_ne!(text, ARM, "`{from}`");
        let refused = read(&text).and_then(|d| d.build(&Overrides::default()));
        let error = refused
            .map(|_| ())
            .expect_err(&format!("`{from}` as `{to}`"));
        let said = format!("{error:#}");
        let (line, _) = error
            .position()
            .unwrap_or_else(|| panic!("no place: {said}"));
        let shown = text.lines().nth(line - 1).unwrap_or_default();
        assert!(shown.contains(place), "`{to}`: {said}\npoints to `{shown}`");
        assert!(said.starts_with("arm.urdf:"), "{said}");
        for word in words {
            assert!(said.contains(word), "`{to}`: `{word}` is not in: {said}");
        }
        assert!(!error.help().is_empty(), "no remedy: {said}");
    }
}

#[test]
fn broken_files_and_imports_are_refused() {
    for (text, words) in [
        ("", &["empty", "<robot"][..]),
        ("<mujoco/>", &["<mujoco>", "MJCF is not read"]),
        ("<sdf/>", &["<sdf>", "expected <robot"]),
        ("<robot name=\"a\"/>", &["no links"]),
        (
            "<robot xmlns:xacro=\"http://wiki.ros.org/xacro\"/>",
            &["no links", "expand it"],
        ),
        (
            "<robot name=\"a\"><link name=\"l\"/></robot>",
            &["nothing of this robot moves"],
        ),
        (
            "<robot name=\"a\"><link name=\"l\"/><link name=\"k\"/></robot>",
            &["`l` and `k`", "one root link"],
        ),
    ] {
        let said = format!("{:#}", read(text).unwrap_err());
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
    }
    for (k, (import, place, words)) in [
        (
            "[import]\nbase = \"fre\"",
            5,
            &["unknown name `fre`", "did you mean `free`"][..],
        ),
        (
            "[import]\ncontacts = [\"uper\"]\nhalf_spaces.floor = {}",
            5,
            &["unknown link `uper`", "did you mean `upper`"],
        ),
        (
            "[import]\ncontacts = [\"lower\"]\nhalf_spaces.floor = {}",
            5,
            &["no collision shape", "feet.lower"],
        ),
        (
            "[import]\ncontacts = [\"base\"]\nhalf_spaces.floor = {}",
            5,
            &["`base` has no collision shape"],
        ),
        (
            "[import]\ncontrols = [\"grip\"]",
            5,
            &["drives `grip`", "valid names"],
        ),
        (
            "[import.joints.elbo]\ndamping = 1.0",
            4,
            &["`elbo` is no joint", "did you mean `elbow`"],
        ),
        (
            "[import.bodies.tool]\nmass = 1.0",
            4,
            &["`tool` is no body", "valid names"],
        ),
        (
            "[import.feet.base.toe]\nshape = \"point\"",
            4,
            &["`base` is no link that moves"],
        ),
        (
            "[import.half_spaces.floor]\nnormal = [0.0, 0.0, 0.0]",
            5,
            &["normal of half-space `floor`"],
        ),
        ("[import]\nfloor = true", 5, &["unknown field `floor`"]),
        ("[import.bodies.upper]\nmass = -1.0", 5, &["mass of body `upper`"]),
        (
            "[import]\ncontacts = [\"upper\"]\nhalf_spaces.floor = {}\n[import.feet.upper.upper]\nshape = \"point\"",
            7,
            &["the name of another contact", "another name"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (folder, document) = problem(&format!("broken{k}"), import);
        let error = document
            .and_then(|d| d.build(&Overrides::default()))
            .map(|_| ())
            .expect_err(import);
        let said = format!("{error:#}");
        assert!(said.contains(&format!("problem.toml:{place}:")), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
    // what is wrong in the robot's file stands there, whatever else of the body is told beside it
    let (folder, _) = problem("placed", "[import.bodies.upper]\nmass = 3.0");
    let wrong = ARM.replacen("ixx=\"0.02\"", "ixx=\"-0.02\"", 1);
    std::fs::write(folder.join("arm.urdf"), wrong).unwrap();
    let read = load(&folder.join("problem.toml"));
    let error = read.and_then(|d| d.build(&Overrides::default()).map(|_| ()));
    let said = format!("{:#}", error.unwrap_err());
    assert!(said.contains("arm.urdf:11:"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
    let text = "time_step = 0.01\nhorizon = 0.1\n[import]\nbase = \"free\"\n[mechanism.bodies.b]\nmass = 1.0\nshape = { sphere = 1.0 }\nfree = true\n";
    let said = format!("{:#}", parse(text, "p.toml").unwrap_err());
    assert!(
        said.contains("p.toml:3") && said.contains("is in TOML"),
        "{said}"
    );
}
