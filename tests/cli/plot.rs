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
        .refused(&["figures are .svg or .png", "x.gif"]);
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
