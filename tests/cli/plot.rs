//! `plot`.

use super::solve::FIGURES;
use super::*;

#[test]
fn plot_draws_what_is_named() {
    let folder = Folder::new("plot");
    folder
        .run(&[
            "simulate",
            &problem("five_bar_reach"),
            "--duration",
            "0.2",
            "--out",
            "run.json",
        ])
        .ended(0);
    let run = folder.run(&["plot", "run.json"]).ended(0);
    assert_eq!(run.out.trim(), "wrote run.svg");
    assert!(is_svg(&folder.read("run.svg")));
    folder
        .run(&["plot", "run.json", "--what", "motion", "--out", "m.png"])
        .ended(0);
    assert!(is_png(&folder.read("m.png")));
    folder
        .run(&[
            "plot",
            "run.json",
            "--what",
            "controls,energy",
            "--out",
            "some.svg",
        ])
        .ended(0);
    let svg = folder.text("some_energy.svg");
    assert!(
        svg.contains("Energy") && svg.contains("J"),
        "no unit on the axis"
    );
    folder
        .run(&["plot", "run.json", "--what", "all", "--out", "all.png"])
        .ended(0);
    // there is no convergence to draw of a simulation
    let of = |prefix: &str| {
        folder
            .list()
            .into_iter()
            .filter(|n| n.starts_with(prefix))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("some"), ["some_controls.svg", "some_energy.svg"]);
    let mut figures: Vec<String> = FIGURES
        .iter()
        .filter(|f| **f != "convergence")
        .map(|f| format!("all_{f}.png"))
        .collect();
    figures.sort();
    assert_eq!(of("all"), figures);
    let written = folder.list();

    folder
        .run(&["plot", "run.json", "--what", "speed"])
        .refused(&["speed", "coordinates", "constraint_forces", "motion"]);
    folder
        .run(&["plot", "run.json", "--what", "controls,speed"])
        .refused(&["speed"]);
    folder
        .run(&["plot", "run.json", "--what", "convergence"])
        .refused(&["run.json", "convergence"]);
    folder
        .run(&["plot", "run.json", "--out", "x.gif"])
        .refused(&["`x.gif` is no figure", ".svg or .png"]);
    folder
        .run(&["plot", "absent.json"])
        .refused(&["absent.json", "cannot read the file"]);
    folder.run(&["plot", "."]).refused(&["directory"]);
    assert_eq!(folder.list(), written);

    let whole = folder.text("run.json");
    folder.write("half.json", &whole[..whole.len() / 2]);
    folder
        .run(&["plot", "half.json"])
        .refused(&["half.json", "not a trajectory", "simulate"]);
    folder.write("other.json", "{\"title\": 3}");
    folder
        .run(&["plot", "other.json"])
        .refused(&["other.json", "not a trajectory"]);
    let mut short: Value = serde_json::from_str(&whole).expect("JSON");
    short["channels"][0]["values"]
        .as_array_mut()
        .expect("values")
        .pop();
    folder.write("short.json", &short.to_string());
    folder
        .run(&["plot", "short.json"])
        .refused(&["short.json", "values, expected 11"]);
    folder.write("empty.json", "");
    folder.run(&["plot", "empty.json"]).refused(&["empty.json"]);
    folder.write("run.csv", "time [s]\n0\n");
    folder
        .run(&["plot", "run.csv"])
        .refused(&["run.csv", "expected a trajectory"]);
    assert!(
        folder
            .list()
            .iter()
            .all(|n| !n.ends_with(".svg") || n == "run.svg" || n.starts_with("some"))
    );
}

#[test]
fn contacts_are_recorded_and_drawn() {
    let folder = Folder::new("contacts");
    let run = |out: &str| {
        let file = problem("box_drop");
        let all = ["simulate", &file, "--duration", "0.4", "--out", out];
        folder.run(&all).ended(0);
    };
    run("run.csv");
    let (columns, rows) = folder.table("run.csv");
    let column = |name: &str| {
        let found = columns.iter().position(|c| c == name);
        let i = found.unwrap_or_else(|| panic!("no column `{name}` in {columns:?}"));
        rows.iter().map(move |r| r[i])
    };
    let of = "of box.corners --- on floor";
    let gaps: Vec<f64> = column(&format!("gap {of} [m]")).collect();
    assert!((gaps[0] - 0.4).abs() < 1e-12);
    // a quarter of the weight; the force of a step stands where the step ends, so there is none at the first knot
    let forces: Vec<f64> = column(&format!("normal force {of} [N]")).collect();
    assert!(forces[0].is_nan() && (forces[forces.len() - 1] - 9.81 / 4.0).abs() < 1e-6);
    let first = forces.iter().position(|f| *f > 1.0).expect("an impact");
    assert!(gaps[first].abs() < 1e-6 && gaps[first - 1] > 1e-2);
    for name in [format!("friction {of} [N]"), format!("slip {of} [m/s]")] {
        assert_eq!(column(&name).len(), gaps.len());
    }
    assert_eq!(
        columns.iter().filter(|c| c.starts_with("gap of")).count(),
        8
    );

    run("run.json");
    let drawn = ["plot", "run.json", "--what", "contacts", "--out", "c.svg"];
    folder.run(&drawn).ended(0);
    let svg = folder.text("c.svg");
    for text in [
        "4 of 8 touch",
        "normal force [N]",
        "gap [m]",
        "slip [m/s]",
        "sticks or rolls",
    ] {
        assert!(svg.contains(text), "no `{text}`");
    }
    let mut odd: Value = serde_json::from_str(&folder.text("run.json")).expect("JSON");
    odd["contacts"][0]["forces"][0]["knot"] = 1000.into();
    folder.write("odd.json", &odd.to_string());
    folder
        .run(&["plot", "odd.json"])
        .refused(&["odd.json", "force at knot 1000"]);
    // there is nothing of the kind without contacts
    let pendulum = problem("double_pendulum");
    let all = [
        "simulate",
        &pendulum,
        "--duration",
        "0.1",
        "--out",
        "p.json",
    ];
    folder.run(&all).ended(0);
    folder
        .run(&["plot", "p.json", "--what", "contacts"])
        .refused(&["p.json", "contacts"]);
}
