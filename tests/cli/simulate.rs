//! `simulate`.

use super::*;

/// What `simulate --json` must say about a problem of the repository.
struct Expected {
    name: &'static str,
    steps: u64,
    time_step: f64,
    /// Most Newton iterations of a step.
    newton: u64,
    /// J
    energy_error: f64,
    /// Whether no control or damper does work.
    conservative: bool,
}

#[test]
fn simulate_says_all_that_the_contract_names() {
    let folder = Folder::new("simulate_json");
    for e in [
        Expected {
            name: "double_pendulum",
            steps: 1000,
            time_step: 0.01,
            newton: 6,
            energy_error: 0.5,
            conservative: true,
        },
        Expected {
            name: "double_four_bar",
            steps: 1000,
            time_step: 0.01,
            newton: 15,
            energy_error: 0.1,
            conservative: true,
        },
        Expected {
            name: "spinning_top",
            steps: 1500,
            time_step: 0.002,
            newton: 6,
            energy_error: 2e-4,
            conservative: true,
        },
        Expected {
            name: "five_bar_reach",
            steps: 50,
            time_step: 0.02,
            newton: 10,
            energy_error: 0.2,
            conservative: true,
        },
    ] {
        let v = folder.json(&["simulate", &problem(e.name), "--json"]);
        println!("{v:#}");
        assert_eq!(v["status"], "done");
        assert_eq!(v["steps"], e.steps);
        // what suits: trees in joint coordinates
        let own = ["double_pendulum", "spinning_top"].contains(&e.name);
        let integrator = if own { "minimal" } else { "maximal" };
        assert_eq!(v["integrator"], integrator, "{}", e.name);
        assert_eq!(number(&v, "time_step"), e.time_step);
        let duration = e.steps as f64 * e.time_step;
        assert!((number(&v, "duration") - duration).abs() < 1e-9, "{v:#}");
        assert!(number(&v, "wall_seconds") > 0.0);
        let most = v["newton_iterations_max"].as_u64().expect("a count");
        let mean = number(&v, "newton_iterations_mean");
        assert!(
            (1..=e.newton).contains(&most),
            "{}: {most} iterations",
            e.name
        );
        // the five-bar's guess leaves it at rest, where some steps start converged
        assert!(
            (0.0..=most as f64).contains(&mean) && mean > 0.0,
            "{}: {mean} of {most}",
            e.name
        );
        let violation = number(&v, "max_constraint_violation");
        assert!((0.0..1e-9).contains(&violation), "{}: {violation}", e.name);
        assert_eq!(number(&v, "max_penetration"), 0.0);
        assert_eq!(
            keys(&v["work"]),
            ["actuators", "dampers", "friction", "impacts"]
        );
        let work: f64 = keys(&v["work"]).iter().map(|k| number(&v["work"], k)).sum();
        assert!(!e.conservative || work == 0.0, "{}: {work}", e.name);
        let error = number(&v, "energy_error_max");
        assert!(error < e.energy_error, "{}: {error} J", e.name);
        let change = number(&v, "energy_final") - number(&v, "energy_initial") - work;
        assert!(
            change.abs() <= error * (1.0 + 1e-9) + 1e-12,
            "{change} {error}"
        );
        assert_eq!(names(&v["files"]), [""; 0]);

        let described = folder.json(&["describe", &problem(e.name), "--json"]);
        assert_eq!(keys(&v["final"]["bodies"]), names(&described["bodies"]));
        for body in v["final"]["bodies"].as_object().expect("bodies").values() {
            assert_eq!(numbers(&body["position"]).len(), 3);
            assert_eq!(numbers(&body["velocity"]).len(), 3);
            assert_eq!(numbers(&body["angular_velocity"]).len(), 3);
            let size: f64 = numbers(&body["orientation"]).iter().map(|q| q * q).sum();
            assert!((size - 1.0).abs() < 1e-12, "{body}");
        }
        let joints = described["joints"].as_array().expect("joints");
        assert_eq!(
            v["final"]["joints"].as_object().map(|j| j.len()),
            Some(joints.len())
        );
        for joint in joints {
            let end = &v["final"]["joints"][joint["name"].as_str().expect("a name")];
            let count = names(&joint["coordinates"]).len();
            assert_eq!(numbers(&end["coordinates"]).len(), count, "{joint}");
            assert_eq!(numbers(&end["rates"]).len(), count, "{joint}");
        }
    }
    assert_eq!(folder.list(), [""; 0]);
}

#[test]
fn simulate_writes_what_it_is_asked_for() {
    let folder = Folder::new("simulate_files");
    let file = problem("double_pendulum");
    let half = ["--duration", "0.5", "--step", "0.02", "--json"];
    let run = |more: &[&str]| folder.json(&[&["simulate", &file], &half[..], more].concat());
    let v = run(&["--out", "new/t.csv", "--plot", "t.svg"]);
    assert_eq!(
        (v["steps"].as_u64(), number(&v, "time_step")),
        (Some(25), 0.02)
    );
    assert_eq!(names(&v["files"]), ["new/t.csv", "t.svg"]);
    let (columns, rows) = folder.table("new/t.csv");
    for c in [
        "time [s]",
        "shoulder [rad]",
        "elbow rate [rad/s]",
        "shoulder force [N]",
        "total [J]",
        "lower x [m]",
        "lower qw",
    ] {
        assert!(
            columns.iter().any(|x| x == c),
            "no column `{c}` in {columns:?}"
        );
    }
    assert_eq!(rows.len(), 26);
    assert!((rows[25][0] - 0.5).abs() < 1e-12);
    let column = |name: &str| columns.iter().position(|c| c == name).expect("the column");
    assert_eq!(
        rows[0][column("shoulder [rad]")],
        std::f64::consts::FRAC_PI_2
    );
    assert_eq!(
        rows[25][column("shoulder [rad]")],
        numbers(&v["final"]["joints"]["shoulder"]["coordinates"])[0]
    );
    assert_eq!(
        rows[25][column("lower x [m]")],
        numbers(&v["final"]["bodies"]["lower"]["position"])[0]
    );
    assert!(is_svg(&folder.read("t.svg")));

    let v = run(&["--out", "t.json", "--plot", "t.png"]);
    assert_eq!(names(&v["files"]), ["t.json", "t.png"]);
    assert!(is_png(&folder.read("t.png")));
    let recording: Value = serde_json::from_str(&folder.text("t.json")).expect("JSON");
    assert_eq!(numbers(&recording["time"]).len(), 26);
    assert_eq!(names(&recording["bodies"]), ["upper", "lower"]);
    assert_eq!(recording["status"], "done");
    for channel in recording["channels"].as_array().expect("channels") {
        assert_eq!(
            channel["values"].as_array().map(Vec::len),
            Some(26),
            "{channel}"
        );
    }
    folder
        .run(&["plot", "t.json", "--out", "again.png"])
        .ended(0);
    assert_eq!(folder.read("again.png"), folder.read("t.png"));
    assert_eq!(
        folder.list(),
        ["again.png", "new", "t.json", "t.png", "t.svg"]
    );
}

#[test]
fn a_higher_order_keeps_the_energy_better() {
    let folder = Folder::new("simulate_order");
    let file = problem("double_pendulum");
    let error = |order: &str| {
        let run = [
            "simulate",
            &file,
            "--integrator",
            "maximal",
            "--order",
            order,
        ];
        let v = folder.json(&[&run[..], &["--json"]].concat());
        assert_eq!(v["status"], "done");
        assert_eq!(v["integrator"], "maximal");
        assert_eq!(v["order"].to_string(), order);
        number(&v, "energy_error_max")
    };
    let (second, fourth, sixth) = (error("2"), error("4"), error("6"));
    println!("{second:.1e} {fourth:.1e} {sixth:.1e}");
    assert!(fourth < 0.1 * second && sixth < 0.1 * second);
    let hopper = problem("hopper_jump");
    folder
        .run(&["simulate", &hopper, "--order", "4"])
        .refused(&["cannot be stepped backwards", "take order 2"]);
}

/// Joint coordinates tell the same of the same motion.
#[test]
fn the_integrator_in_joint_coordinates_says_the_same() {
    let folder = Folder::new("simulate_minimal");
    let told = |integrator| {
        folder.json(&[
            "simulate",
            &problem("double_pendulum"),
            "--integrator",
            integrator,
            "--json",
        ])
    };
    let (a, b) = (told("auto"), told("maximal"));
    assert_eq!(a["integrator"], "minimal");
    for (key, within) in [("energy_initial", 1e-12), ("energy_final", 1e-6)] {
        assert!(
            (number(&a, key) - number(&b, key)).abs() < within,
            "{key}: {a:#}"
        );
    }
}

#[test]
fn simulate_refuses_what_it_cannot_do() {
    let folder = Folder::new("simulate_refused");
    let file = problem("double_pendulum");
    let run = |more: &[&str]| folder.run(&[&["simulate", &file], more].concat());
    run(&["--integrator", "verlet"]).refused(&["not available in this version", "use `maximal`"]);
    for (name, what) in [
        ("five_bar_reach", "closes a loop"),
        ("bounce_pass", "bounces"),
        ("stack", "is one between bodies"),
    ] {
        let other = folder.run(&["simulate", &problem(name), "--integrator", "minimal"]);
        other.refused(&[what, "take the integrator in maximal coordinates"]);
    }
    run(&["--integrator", "euler"]).refused(&["unknown integrator", "maximal"]);
    run(&["--order", "3"]).refused(&["--order", "expected order 2, 4 or 6"]);
    run(&["--step", "-0.1"]).refused(&["--step", "expected a positive number"]);
    run(&["--step", "nan"]).refused(&["--step", "expected a positive number"]);
    run(&["--duration", "inf"]).refused(&["--duration", "expected a positive number"]);
    run(&["--step", "0.03"]).refused(&["whole number of time steps"]);
    run(&["--out", "t.txt"]).refused(&["`t.txt` is no trajectory", ".csv or .json"]);
    run(&["--plot", "t.pdf"]).refused(&["`t.pdf` is no figure", ".svg or .png"]);
    run(&["--durations", "1"]).refused(&["--durations", "Usage"]);
    assert_eq!(folder.list(), [""; 0]);
    folder.write("stone", "");
    for option in [["--out", "stone/t.csv"], ["--plot", "stone/t.png"]] {
        run(&option).refused(&["stone"]);
    }
    // neither of two files is written when one cannot be
    run(&["--out", "t.csv", "--plot", "stone/t.png"]).refused(&["stone"]);
    run(&["--out", "stone/t.csv", "--plot", "t.png"]).refused(&["stone"]);
    assert_eq!(folder.list(), ["stone"]);
}

/// A push that lets the pendulum turn too fast for its time step.
#[test]
fn simulate_keeps_what_came_before_a_failure() {
    let folder = Folder::new("simulate_failure");
    let text = changed(
        "pendulum_swingup",
        "controls = { motor = 0.1 }",
        "controls = { motor = 40.0 }",
    );
    folder.write("wild.toml", &text);
    let file = ["simulate", "wild.toml", "--substeps", "1"];
    let run = folder
        .run(&[&file[..], &["--json", "--out", "t.json", "--plot", "t.svg"]].concat())
        .ended(1);
    let v = run.json();
    let steps = v["steps"].as_u64().expect("a count");
    assert_eq!(v["status"], "failed");
    assert!((1..50).contains(&steps), "{v:#}");
    let time = number(&v["failure"], "time");
    assert!(
        (time - steps as f64 * 0.06).abs() < 1e-9 && (time - number(&v, "duration")).abs() < 1e-9,
        "{v:#}"
    );
    assert!(
        names(&Value::from(vec![v["failure"]["element"].clone()]))[0].contains("bob"),
        "{v:#}"
    );
    assert!(number(&v["failure"], "residual") > 0.0);
    run.says(&["bob", "residual", "time step"]);
    let recording: Value = serde_json::from_str(&folder.text("t.json")).expect("JSON");
    assert_eq!(recording["status"], "failed");
    assert_eq!(numbers(&recording["time"]).len() as u64, steps + 1);
    assert!(is_svg(&folder.read("t.svg")));
    folder
        .run(&[&file[..], &["--out", "t.csv"]].concat())
        .ended(1);
    assert_eq!(folder.table("t.csv").1.len() as u64, steps + 1);
    folder.run(&["plot", "t.json", "--out", "p.png"]).ended(0);
    assert!(is_png(&folder.read("p.png")));
}

#[test]
fn a_failure_in_the_first_step_is_no_bad_input() {
    let folder = Folder::new("simulate_failure_at_once");
    let text = changed("spinning_top", "time_step = 0.002 ", "time_step = 0.5 ");
    folder.write("coarse.toml", &text);
    let run = folder
        .run(&[
            "simulate",
            "coarse.toml",
            "--substeps",
            "1",
            "--json",
            "--out",
            "t.csv",
            "--plot",
            "t.png",
        ])
        .ended(1);
    let v = run.json();
    assert_eq!(
        (v["status"].as_str(), v["steps"].as_u64()),
        (Some("failed"), Some(0))
    );
    assert!(number(&v, "duration").is_sign_positive());
    run.says(&["top", "time step"]);
    assert_eq!(folder.table("t.csv").1.len(), 1);
}

/// Nothing keeps the guess within bounds here, which is told.
#[test]
fn a_guess_outside_of_its_bounds_is_noted() {
    let folder = Folder::new("simulate_bounds");
    let text = changed("cartpole_swingup", "push = 0.01", "push = 5.0");
    folder.write("strong.toml", &text);
    let run = folder.run(&["simulate", "strong.toml"]).ended(0);
    run.says(&[
        "the guess of push at knot 0 is 5, outside of its bounds -3 and 3",
        "99 others",
    ]);
    let run = folder
        .run(&["simulate", &problem("cartpole_swingup")])
        .ended(0);
    assert!(!run.err.contains("bounds"), "{}", run.err);
}

/// `--every` leaves knots out of the files, not of the simulation.
#[test]
fn files_are_thinned() {
    let folder = Folder::new("every");
    let run = |more: &[&str]| {
        let file = problem("box_drop");
        let base = [
            "simulate",
            &file,
            "--duration",
            "0.25",
            "--step",
            "0.01",
            "--json",
        ];
        folder.json(&[&base[..], more].concat())
    };
    let v = run(&["--out", "all.csv"]);
    assert_eq!(v["steps"], 25);
    run(&["--out", "thin.csv", "--every", "10"]);
    let thin = run(&["--out", "thin.json", "--every", "10"]);
    assert_eq!((&thin["steps"], &thin["final"]), (&v["steps"], &v["final"]));
    let ((columns, all), (same, rows)) = (folder.table("all.csv"), folder.table("thin.csv"));
    assert_eq!(columns, same);
    assert_eq!(rows.len(), 4);
    for (row, k) in rows.iter().zip([0, 10, 20, 25]) {
        let equal = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        assert!(row.iter().zip(&all[k]).all(equal), "{k}");
    }
    folder
        .run(&["plot", "thin.json", "--what", "motion"])
        .ended(0);
    // what is wanted at a knot that is left out is shown at the next
    let file = problem("quadrotor_waypoints");
    folder.json(&[
        "simulate",
        &file,
        "--every",
        "7",
        "--out",
        "goals.json",
        "--json",
    ]);
    folder
        .run(&["plot", "goals.json", "--what", "all"])
        .ended(0);
    folder
        .run(&["simulate", &problem("box_drop"), "--every", "0"])
        .refused(&["--every", "0"]);
}

/// What takes long tells so, and Ctrl-C ends it with what was read until then.
#[cfg(unix)]
#[test]
fn an_interrupted_reading_keeps_what_it_has() {
    let folder = Folder::new("reading_out");
    let file = problem("tumbling_boxes");
    let long = ["--duration", "100", "--every", "3", "--out", "t.json"];
    let mut command = folder.command(&[&["simulate", &file, "--json"], &long[..]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = interrupted(command, "reading out").ended(1);
    run.says(&["interrupted", "is kept"]);
    let v = run.json();
    assert_eq!(v["status"], "interrupted");
    let steps = v["steps"].as_u64().expect("a count");
    assert!(
        steps > 0 && steps < 20_000 && steps.is_multiple_of(3),
        "{steps}"
    );
    let recording: Value = serde_json::from_str(&folder.text("t.json")).expect("JSON");
    assert_eq!(recording["status"], "interrupted");
    assert_eq!(numbers(&recording["time"]).len() as u64, steps / 3 + 1);
}

/// Ctrl-C ends a long simulation with what it has.
#[cfg(unix)]
#[test]
fn an_interrupted_simulation_keeps_what_it_has() {
    let folder = Folder::new("interrupted");
    let file = problem("double_pendulum");
    let mut command = folder.command(&[
        "simulate",
        &file,
        "--duration",
        "20000",
        "--out",
        "t.csv",
        "--json",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = interrupted(command, "simulating").ended(1);
    run.says(&["interrupted", "is kept"]);
    let v = run.json();
    assert_eq!(v["status"], "interrupted");
    let steps = v["steps"].as_u64().expect("a count");
    assert!(steps > 0);
    assert_eq!(folder.table("t.csv").1.len() as u64, steps + 1);
    assert_eq!(names(&v["files"]), ["t.csv"]);
}
