//! The files that the documentation shows.

use super::*;
use crate::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder, Shape};

const PAGES: [(&str, &str); 2] = [
    ("files.md", include_str!("../../../docs/files.md")),
    ("README.md", include_str!("../../../README.md")),
];

/// The fenced blocks of TOML: the words behind `toml`, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut out = vec![];
    for fence in page.split("```toml").skip(1) {
        let (words, rest) = fence.split_once('\n').expect("a fence is a line");
        let (block, _) = rest.split_once("\n```").expect("a fence ends");
        out.push((words.trim(), block));
    }
    out
}

/// A file without one of its tables.
fn without(text: &str, table: &str) -> String {
    let header = format!("\n[{table}]");
    let (before, rest) = text.split_once(&header).expect("the table is there");
    let after = rest.find("\n[").map_or("", |i| &rest[i..]);
    format!("{before}\n{after}")
}

/// A robot that has what the page names.
fn robot() -> String {
    let link = |name: &str, mass: f64| {
        let shape = "<collision><geometry><sphere radius=\"0.02\"/></geometry></collision>";
        let inertia = "<inertia ixx=\"1\" ixy=\"0\" ixz=\"0\" iyy=\"1\" iyz=\"0\" izz=\"1\"/>";
        format!(
            "<link name=\"{name}\"><inertial><mass value=\"{mass}\"/>{inertia}</inertial>{shape}</link>"
        )
    };
    let joint = |name: &str, kind: &str, parent: &str, child: &str| {
        format!(
            "<joint name=\"{name}\" type=\"{kind}\"><parent link=\"{parent}\"/><child link=\"{child}\"/></joint>"
        )
    };
    let links = ["trunk", "FR_calf", "FR_foot", "FL_foot"]
        .map(|l| link(l, 1.0))
        .concat();
    let joints = joint("FR_hip", "continuous", "trunk", "FR_calf")
        + &joint("FR_sole", "fixed", "FR_calf", "FR_foot")
        + &joint("FL_hip", "continuous", "trunk", "FL_foot");
    format!("<robot name=\"robot\">{links}{joints}</robot>")
}

/// A whole file stands alone; a part is added to the whole file before it, or replaces a table of it.
#[test]
fn files_that_are_shown_load() {
    for (page, text) in PAGES {
        let mut whole = "";
        let mut seen = 0;
        for (words, block) in blocks(text) {
            if words == "robot" {
                let folder = folder("robot");
                std::fs::write(folder.join("robot.urdf"), robot()).expect("a writable folder");
                let read = Document::new(&folder.join("problem.toml"), block);
                let built = read.and_then(|d| d.build(&Overrides::default()));
                assert!(built.is_ok(), "{page}: {:?} in\n{block}", built.err());
                continue;
            }
            let file = match words.split_once(' ') {
                _ if words.is_empty() => {
                    whole = block;
                    block.to_owned()
                }
                None if words == "part" => format!("{whole}\n\n{block}\n"),
                Some(("instead", table)) => format!("{}\n\n{block}\n", without(whole, table)),
                _ => panic!("{page}: a block of `toml {words}`"),
            };
            let built = build(&file);
            assert!(built.is_ok(), "{page}: {:?} in\n{file}", built.err());
            seen += 1;
        }
        assert!(seen > 0, "{page} shows no file");
    }
}

/// The page's table of joints is that of the code.
#[test]
fn the_table_of_joints_is_right() {
    let (_, page) = PAGES[0];
    for kind in JointKind::ALL {
        let start = format!("| `{}` |", kind.name());
        let row = page.lines().find(|l| l.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("no row of `{}`", kind.name()));
        let shown: Vec<&str> = (row.split('|').nth(2).unwrap_or_default().split('`'))
            .skip(1)
            .step_by(2)
            .collect();
        let mechanism = MechanismBuilder::new()
            .body("a", BodySpec::new(1.0).shape(Shape::Sphere(0.1)))
            .joint("j", JointSpec::new(kind, "a").axis([0.0, 0.0, 1.0]))
            .build()
            .expect("good");
        let directions = &mechanism.joints[0].directions;
        let names: Vec<&str> = directions.iter().map(|d| d.name).collect();
        assert_eq!(shown, names, "{}", kind.name());
    }
}
