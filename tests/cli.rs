//! The command as a user runs it: what it prints where, what it writes, how it exits.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const NAN: f64 = f64::NAN;

/// An empty directory of its own for a test, where the command runs.
struct Folder(PathBuf);

struct Run {
    code: Option<i32>,
    out: String,
    /// Without line breaks and the marks at their edges.
    err: String,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // it may not have been there
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("makes the folder");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("writes");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("UTF-8")
    }

    /// Everything in the folder, sorted.
    fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("lists");
        let name = |e: std::io::Result<std::fs::DirEntry>| {
            e.expect("lists").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_least-action"));
        c.current_dir(&self.0).args(arguments);
        c
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&self.command(arguments).output().expect("runs"))
    }

    /// Runs, expecting success and one JSON object alone on standard output.
    fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments).ended(0).json()
    }

    /// A table: its columns, and its rows as numbers, NaN where a cell is empty.
    fn table(&self, name: &str) -> (Vec<String>, Vec<Vec<f64>>) {
        let text = self.text(name);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader
            .headers()
            .expect("a header")
            .iter()
            .map(str::to_owned)
            .collect();
        let number = |s: &str| {
            if s.is_empty() {
                NAN
            } else {
                s.parse().expect("a number")
            }
        };
        let row =
            |r: csv::Result<csv::StringRecord>| r.expect("a row").iter().map(number).collect();
        (columns, reader.records().map(row).collect())
    }
}

impl Run {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let err = text(&output.stderr);
        assert!(!err.contains("panicked"), "{err}");
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: err
                .replace('│', " ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }

    fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).expect("one JSON value");
        assert!(value.is_object(), "{value}");
        value
    }

    fn says(&self, words: &[&str]) {
        for w in words {
            assert!(self.err.contains(w), "`{w}` is missing in\n{}", self.err);
        }
    }

    /// Refused: status 2, nothing on standard output, and these words on the other.
    fn refused(self, words: &[&str]) {
        let run = self.ended(2);
        assert_eq!(run.out, "");
        run.says(words);
    }
}

fn problem(name: &str) -> String {
    format!("{}/problems/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn problem_text(name: &str) -> String {
    std::fs::read_to_string(problem(name)).expect("reads")
}

/// The problem's text with every `from` replaced.
fn changed(name: &str, from: &str, to: &str) -> String {
    let text = problem_text(name);
    assert!(text.contains(from), "`{from}` is not in {name}");
    text.replace(from, to)
}

fn number(v: &Value, name: &str) -> f64 {
    v[name]
        .as_f64()
        .unwrap_or_else(|| panic!("`{name}` is no number in {v:#}"))
}

fn numbers(v: &Value) -> Vec<f64> {
    let list = v.as_array().unwrap_or_else(|| panic!("no list: {v}"));
    list.iter().map(|n| n.as_f64().expect("a number")).collect()
}

fn names(v: &Value) -> Vec<&str> {
    let list = v.as_array().unwrap_or_else(|| panic!("no list: {v}"));
    list.iter().map(|n| n.as_str().expect("a name")).collect()
}

fn keys(v: &Value) -> Vec<&str> {
    v.as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

fn is_svg(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.trim_start().starts_with("<svg") && text.trim_end().ends_with("</svg>")
}

fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82")
}

// simulate

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
        assert_eq!(v["integrator"], "maximal");
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
fn simulate_refuses_what_it_cannot_do() {
    let folder = Folder::new("simulate_refused");
    let file = problem("double_pendulum");
    let run = |more: &[&str]| folder.run(&[&["simulate", &file, "--json"], more].concat());
    run(&["--integrator", "verlet"]).refused(&["not available in this version", "use `maximal`"]);
    run(&["--integrator", "euler"]).refused(&["unknown integrator", "maximal"]);
    run(&["--step", "-0.1"]).refused(&["--step", "expected a positive number"]);
    run(&["--step", "nan"]).refused(&["--step", "expected a positive number"]);
    run(&["--duration", "inf"]).refused(&["--duration", "expected a positive number"]);
    run(&["--step", "0.03"]).refused(&["whole number of time steps"]);
    run(&["--out", "t.txt"]).refused(&["a trajectory is .csv or .json", "t.txt"]);
    run(&["--plot", "t.pdf"]).refused(&["figures are .svg or .png", "t.pdf"]);
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
    let file = ["simulate", "wild.toml"];
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

// describe

#[test]
fn describe_counts_right() {
    let folder = Folder::new("describe");
    for (name, bodies, joints, dof, loops, redundant, controls, mass) in [
        ("pendulum_swingup", 1, 1, 1, 0, 0, vec!["motor"], 1.0),
        ("cartpole_swingup", 2, 2, 2, 0, 0, vec!["push"], 1.2),
        ("double_pendulum", 2, 2, 2, 0, 0, vec![], 2.0),
        ("spinning_top", 1, 1, 3, 0, 0, vec![], 0.5),
        ("five_bar_reach", 4, 5, 2, 1, 3, vec!["left", "right"], 1.0),
        ("double_four_bar", 5, 7, 1, 2, 6, vec![], 5.0),
    ] {
        let v = folder.json(&["describe", &problem(name), "--json"]);
        assert_eq!(names(&v["bodies"]).len(), bodies, "{name}");
        assert_eq!(v["joints"].as_array().map(Vec::len), Some(joints), "{name}");
        assert_eq!(v["degrees_of_freedom"], dof, "{name}");
        assert_eq!(v["loops"], loops, "{name}");
        assert_eq!(v["redundant_rows"], redundant, "{name}");
        assert_eq!(names(&v["controls"]), controls, "{name}");
        assert!((number(&v, "mass") - mass).abs() < 1e-12, "{name}");
        assert_eq!(
            (&v["contacts"], &v["parameters"]),
            (&Value::Array(vec![]), &Value::Array(vec![]))
        );
        // the same to people
        let text = folder.run(&["describe", &problem(name)]).ended(0);
        assert!(
            text.out
                .contains(&format!("degrees of freedom {dof}, loops {loops}")),
            "{}",
            text.out
        );
        for body in names(&v["bodies"]) {
            assert!(text.out.contains(body), "{body}: {}", text.out);
        }
        assert_eq!(text.err, "");
    }
    let v = folder.json(&["describe", &problem("cartpole_swingup"), "--json"]);
    let joint = |i: usize| {
        (
            v["joints"][i]["name"].as_str(),
            v["joints"][i]["kind"].as_str(),
        )
    };
    assert_eq!(joint(0), (Some("rail"), Some("prismatic")));
    assert_eq!(joint(1), (Some("hinge"), Some("revolute")));
    assert_eq!(names(&v["joints"][0]["coordinates"]).len(), 1);
    let v = folder.json(&["describe", &problem("spinning_top"), "--json"]);
    assert_eq!(v["joints"][0]["kind"], "spherical");
    assert_eq!(names(&v["joints"][0]["coordinates"]).len(), 3);
}

// gradient

#[test]
fn gradients_agree_with_differences() {
    let folder = Folder::new("gradient");
    // at rest the five-bar's guess costs nothing
    let five = changed(
        "five_bar_reach",
        "left = 0.0, right = 0.0",
        "left = 0.05, right = -0.04",
    );
    let tip = "[[costs]]\nquantity = { position = { body = \"left_arm\", axis = \"y\" } }\nat = \"end\"\nweight = 1.0\n";
    let five = five.replace("horizon = 1.0 ", "horizon = 0.4 ") + tip;
    folder.write("five_bar.toml", &five);
    for (name, controls, dof, coordinates) in [
        (
            problem("cartpole_swingup"),
            vec![("push", 100)],
            2,
            vec!["rail", "hinge"],
        ),
        (
            problem("pendulum_swingup"),
            vec![("motor", 50)],
            1,
            vec!["hinge"],
        ),
        (
            "five_bar.toml".into(),
            vec![("left", 20), ("right", 20)],
            2,
            vec![],
        ),
    ] {
        let v = folder.json(&["gradient", &name, "--check", "--json"]);
        assert_eq!(
            keys(&v["check"]),
            ["controls", "initial_coordinates", "initial_rates"]
        );
        for group in keys(&v["check"]) {
            let error = number(&v["check"], group);
            assert!((0.0..=1e-6).contains(&error), "{name}: {group} {error}");
        }
        assert!(number(&v, "objective").is_finite());
        assert!(number(&v, "rollout_seconds") > 0.0 && number(&v, "gradient_seconds") > 0.0);
        assert!(number(&v, "linear_residual") < 1e-9, "{v:#}");
        assert!(v.get("smoothing").is_some());
        assert_eq!(keys(&v["gradient"]["parameters"]), [""; 0]);
        for (control, knots) in &controls {
            assert_eq!(
                numbers(&v["gradient"]["controls"][control]).len(),
                *knots,
                "{name}"
            );
        }
        assert_eq!(keys(&v["gradient"]["controls"]).len(), controls.len());
        for of in ["coordinates", "rates"] {
            let g = &v["gradient"]["initial_state"][of];
            assert_eq!(keys(g).len(), dof, "{name}");
            assert!(coordinates.is_empty() || keys(g) == coordinates, "{name}");
            keys(g)
                .iter()
                .for_each(|k| assert!(number(g, k).is_finite()));
        }
        let without = folder.json(&["gradient", &name, "--json"]);
        assert_eq!(without.get("check"), None);
        assert_eq!(without["gradient"], v["gradient"]);
    }
    folder.write(
        "wild.toml",
        &changed("pendulum_swingup", "motor = 0.1 }", "motor = 40.0 }"),
    );
    let run = folder.run(&["gradient", "wild.toml", "--json"]).ended(1);
    assert!(number(&run.json()["failure"], "time") > 0.0);
    run.says(&["bob", "residual", "time step"]);
    let text = folder
        .run(&["gradient", &problem("pendulum_swingup"), "--check"])
        .ended(0);
    for words in ["objective", "motor", "hinge", "central differences"] {
        assert!(text.out.contains(words), "{}", text.out);
    }
    folder
        .run(&["gradient", &problem("double_pendulum")])
        .refused(&["double_pendulum.toml", "[[costs]]"]);
    assert_eq!(folder.list(), ["five_bar.toml", "wild.toml"]);
}

// solve

const FIGURES: [&str; 7] = [
    "coordinates",
    "rates",
    "controls",
    "constraint_forces",
    "energy",
    "convergence",
    "motion",
];

/// The files that a solve must leave, whole and readable.
fn solved_files(folder: &Folder, out: &str, v: &Value, ending: &str) {
    let mut expected: Vec<String> = ["trajectory.csv", "trajectory.json", "convergence.csv"]
        .iter()
        .map(|f| format!("{out}/{f}"))
        .collect();
    expected.extend(FIGURES.iter().map(|f| format!("{out}/{f}.{ending}")));
    assert_eq!(names(&v["files"]), expected);
    for f in &expected {
        let bytes = folder.read(f);
        assert!(!bytes.is_empty(), "{f} is empty");
        match ending {
            _ if f.ends_with(".svg") => assert!(is_svg(&bytes), "{f}"),
            _ if f.ends_with(".png") => assert!(is_png(&bytes), "{f}"),
            _ => {}
        }
    }
    let (columns, rows) = folder.table(&format!("{out}/convergence.csv"));
    assert_eq!(
        columns,
        [
            "iteration",
            "objective",
            "violation",
            "optimality",
            "step_length",
            "regularization"
        ]
    );
    let iterations = v["iterations"].as_u64().expect("a count");
    assert_eq!(rows.len() as u64, iterations + 1);
    let recording: Value =
        serde_json::from_str(&folder.text(&format!("{out}/trajectory.json"))).expect("JSON");
    assert_eq!(recording["status"], v["status"]);
    let knots = numbers(&recording["time"]).len();
    assert_eq!(
        folder.table(&format!("{out}/trajectory.csv")).1.len(),
        knots
    );
}

#[test]
fn solve_reaches_the_target() {
    let folder = Folder::new("solve");
    let v = folder.json(&["solve", &problem("five_bar_reach"), "--json"]);
    assert_eq!(v["status"], "converged");
    assert_eq!(v["method"], "shooting");
    assert!(number(&v, "constraint_violation") < 1e-6);
    assert!(number(&v, "optimality") <= 1e-4);
    assert!(number(&v, "objective") > 0.0);
    assert!(number(&v, "wall_seconds") > 0.0);
    assert_eq!(keys(&v["parameters"]), [""; 0]);
    let count = |name: &str| v[name].as_u64().expect("a count");
    assert!(count("iterations") >= 1);
    assert!(count("step_evaluations") > 50 * count("iterations") / 2);
    assert!(count("gradient_evaluations") >= count("iterations"));
    let out = "out/five_bar_reach";
    solved_files(&folder, out, &v, "svg");
    let (columns, rows) = folder.table(&format!("{out}/trajectory.csv"));
    assert_eq!(rows.len(), 51);
    let of =
        |name: &str, k: usize| rows[k][columns.iter().position(|c| c == name).expect("the column")];
    // the tip, 0.15 m along the arm's x axis
    let [w, x, y, z] = ["w", "x", "y", "z"].map(|q| of(&format!("left_arm q{q}"), 50));
    let tip_x = of("left_arm x [m]", 50) + 0.15 * (1.0 - 2.0 * (y * y + z * z));
    let tip_y = of("left_arm y [m]", 50) + 0.15 * 2.0 * (x * y + w * z);
    assert!(
        (tip_x - 0.15).abs() < 1e-6 && (tip_y - 0.25).abs() < 1e-6,
        "{tip_x} {tip_y}"
    );
    assert!(of("left_motor rate [rad/s]", 50).abs() < 1e-6);
    for k in 0..50 {
        assert!(
            of("left [N m]", k).abs() <= 2.0 + 1e-6 && of("right [N m]", k).abs() <= 2.0 + 1e-6
        );
    }
    assert!(of("left [N m]", 50).is_nan());

    // bit for bit, whatever the threads
    for (threads, out) in [("1", "one"), ("2", "two")] {
        let run = [
            "solve",
            &problem("five_bar_reach"),
            "--threads",
            threads,
            "--out",
            out,
        ];
        let run = folder.run(&run).ended(0);
        assert!(
            run.out.contains("converged") && run.out.contains(&format!("{out}/trajectory.csv"))
        );
        run.says(&["Five-bar reach", "single shooting"]);
        for f in [
            "trajectory.csv",
            "trajectory.json",
            "convergence.csv",
            "motion.svg",
        ] {
            let same = folder.read(&format!("{out}/{f}"))
                == folder.read(&format!("out/five_bar_reach/{f}"));
            assert!(same, "{f} differs with {threads} threads");
        }
    }
}

#[test]
fn solve_keeps_what_it_has_when_iterations_run_out() {
    let folder = Folder::new("solve_two_iterations");
    let file = problem("five_bar_reach");
    let run = folder
        .run(&[
            "solve",
            &file,
            "--json",
            "--max-iterations",
            "2",
            "--png",
            "--out",
            "a/b",
        ])
        .ended(1);
    let v = run.json();
    assert_eq!(v["status"], "max_iterations");
    assert_eq!(v["iterations"], 2);
    assert!(number(&v, "constraint_violation") > 1e-6);
    assert!(
        v["reason"]
            .as_str()
            .is_some_and(|r| r.contains("2 iterations")),
        "{v:#}"
    );
    run.says(&["not solved (max_iterations)", "2 iterations"]);
    solved_files(&folder, "a/b", &v, "png");
    // the guess alone
    let v = folder
        .run(&["solve", &file, "--json", "--max-iterations", "0"])
        .ended(1)
        .json();
    assert_eq!(
        (v["status"].as_str(), v["iterations"].as_u64()),
        (Some("max_iterations"), Some(0))
    );
}

#[test]
#[cfg(unix)]
fn solve_keeps_the_best_when_interrupted() {
    let folder = Folder::new("solve_interrupted");
    let text = changed(
        "cartpole_swingup",
        "tolerance = 1e-6",
        "tolerance = 1e-13\noptimality = 1e-14",
    );
    folder.write("slow.toml", &text);
    let mut command = folder.command(&["solve", "slow.toml", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    // it tells how far it is once a second
    let told = lines.find(|l| l.as_ref().is_ok_and(|l| l.contains(" after 1 s")));
    assert!(told.is_some(), "it ended before");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill runs").success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let mut output = child.wait_with_output().expect("ends");
    output.stderr = rest.join("\n").into_bytes();
    let run = Run::of(&output).ended(1);
    let v = run.json();
    assert_eq!(v["status"], "interrupted");
    assert!(v["iterations"].as_u64().is_some_and(|n| n > 0), "{v:#}");
    run.says(&["not solved (interrupted)"]);
    solved_files(&folder, "out/slow", &v, "svg");
    folder.run(&["plot", "out/slow/trajectory.json"]).ended(0);
}

#[test]
fn solve_says_why_it_cannot() {
    let folder = Folder::new("solve_infeasible");
    let file = problem("double_pendulum");
    folder.run(&["solve", &file]).refused(&[
        "double_pendulum.toml",
        "nothing to solve",
        "[[costs]]",
        "simulate",
    ]);
    let five = problem("five_bar_reach");
    folder.run(&["solve", &five, "--method", "ddp"]).refused(&[
        "--method",
        "not available in this version",
        "`shooting`",
    ]);
    folder
        .run(&["solve", &five, "--method", "magic"])
        .refused(&["--method", "unknown method", "`shooting`"]);
    folder
        .run(&["solve", &five, "--threads", "0"])
        .refused(&["--threads"]);
    assert_eq!(folder.list(), [""; 0]);

    // a file may ask for a method to come: all but solving works, and solving by another
    let later = changed("five_bar_reach", "name = \"shooting\"", "name = \"ddp\"");
    folder.write("later.toml", &later);
    folder.run(&["describe", "later.toml"]).ended(0);
    folder.run(&["simulate", "later.toml"]).ended(0);
    folder.run(&["solve", "later.toml"]).refused(&[
        "`ddp` is not available in this version",
        "--method shooting",
    ]);
    assert_eq!(folder.list(), ["later.toml"]);
    folder
        .run(&["solve", "later.toml", "--method", "shooting"])
        .ended(0);

    // the arms reach half a metre
    let text = changed("five_bar_reach", "equals = 0.25", "equals = 1.0");
    let text = text.replace("horizon = 1.0 ", "horizon = 0.2 ");
    folder.write("far.toml", &text);
    let run = folder.run(&["solve", "far.toml", "--json"]).ended(1);
    let v = run.json();
    println!("{v:#}");
    assert_eq!(v["status"], "infeasible");
    assert!(number(&v, "constraint_violation") > 0.4, "{v:#}");
    assert!(
        v["reason"]
            .as_str()
            .is_some_and(|r| r.contains("position of left_arm y = 1")),
        "{v:#}"
    );
    run.says(&["not solved (infeasible)", "stay violated"]);
    solved_files(&folder, "out/far", &v, "svg");

    // a guess that cannot be simulated
    let text = changed("pendulum_swingup", "{ motor = 0.1 }", "{ motor = 40.0 }");
    folder.write("wild.toml", &text);
    let run = folder.run(&["solve", "wild.toml", "--json"]).ended(1);
    let v = run.json();
    assert_eq!(v["status"], "diverged");
    assert!(
        v["reason"]
            .as_str()
            .is_some_and(|r| r.contains("the guess cannot be simulated")),
        "{v:#}"
    );
    run.says(&["not solved (diverged)", "bob"]);
    assert!(folder.table("out/wild/trajectory.csv").1.len() > 1);
    // nothing converged, so there is no table of it
    assert!(!folder.path("out/wild/convergence.csv").exists());
}

#[test]
fn solve_into_a_place_that_is_taken() {
    let folder = Folder::new("solve_out");
    let file = problem("five_bar_reach");
    folder.write("stone", "kept");
    for out in ["stone", "stone/inside"] {
        folder.run(&["solve", &file, "--out", out]).refused(&[
            "cannot make the directory",
            out,
            "--out",
        ]);
    }
    folder.write("out", "kept");
    folder
        .run(&["solve", &file])
        .refused(&["cannot make the directory", "out/five_bar_reach"]);
    assert_eq!(folder.list(), ["out", "stone"]);
    assert_eq!(
        (folder.text("stone"), folder.text("out")),
        ("kept".into(), "kept".into())
    );
}

#[test]
fn solve_draws_its_guess_from_the_seed() {
    let folder = Folder::new("solve_seed");
    let text = changed(
        "five_bar_reach",
        "controls = { left = 0.0, right = 0.0 }",
        "noise = { scale = 0.01, seed = 3 }",
    );
    folder.write("noisy.toml", &text);
    let mut guesses = vec![];
    for seed in [&[][..], &["--seed", "3"], &["--seed", "4"]] {
        let run = ["solve", "noisy.toml", "--max-iterations", "0"];
        folder.run(&[&run[..], seed].concat()).ended(1);
        guesses.push(folder.read("out/noisy/trajectory.csv"));
    }
    assert!(guesses[0] == guesses[1] && guesses[1] != guesses[2]);
}

// plot

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

// broken files

/// Each of the commands refuses the text of a file, says where and what, and writes nothing.
fn broken(name: &str, text: &str, place: Option<&str>, words: &[&str]) {
    let folder = Folder::new(&format!("broken_{name}"));
    folder.write("case.toml", text);
    let place = place.map(|fragment| {
        let before = text
            .find(fragment)
            .unwrap_or_else(|| panic!("`{fragment}` is not there"));
        format!("case.toml:{}:", text[..before].matches('\n').count() + 1)
    });
    let words: Vec<&str> = words
        .iter()
        .copied()
        .chain([place.as_deref().unwrap_or("case.toml")])
        .collect();
    let out = ["--out", "out/run.csv"];
    for (command, more) in [
        ("describe", &[][..]),
        ("simulate", &out),
        ("solve", &[]),
        ("gradient", &["--json"]),
    ] {
        folder
            .run(&[&[command, "case.toml"], more].concat())
            .refused(&words);
    }
    assert_eq!(folder.list(), ["case.toml"]);
}

#[test]
fn broken_files_are_refused() {
    let cart = |name: &str, from: &str, to: &str, words: &[&str]| {
        let text = problem_text("cartpole_swingup").replacen(from, to, 1);
        assert_ne!(text, problem_text("cartpole_swingup"), "`{from}`");
        broken(name, &text, Some(to.lines().last().unwrap_or(to)), words);
    };
    cart(
        "unknown_body",
        "parent = \"cart\"",
        "parent = \"crat\"",
        &["unknown body `crat`", "did you mean `cart`"],
    );
    cart(
        "misspelled",
        "mass = 0.2",
        "mas = 0.2",
        &["unknown field `mas`", "pole", "did you mean `mass`"],
    );
    cart(
        "type",
        "mass = 0.2",
        "mass = \"heavy\"",
        &["mechanism.bodies.pole.mass", "expected a number"],
    );
    cart(
        "negative",
        "mass = 0.2",
        "mass = -0.2",
        &["mass of body `pole` is -0.2", "positive"],
    );
    cart(
        "nan",
        "mass = 0.2",
        "mass = nan",
        &["mass of body `pole` is NaN", "positive"],
    );
    cart(
        "triangle",
        "inertia = [1e-6, 1e-6, 1e-6]",
        "inertia = [1.0, 1.0, 5.0]",
        &["`pole`", "triangle inequality"],
    );
    cart(
        "itself",
        "child = \"pole\"",
        "child = 'cart'",
        &["`hinge`", "ties body `cart` to itself"],
    );
    cart(
        "horizon",
        "horizon = 5.0 ",
        "horizon = 5.02 ",
        &["whole number of time steps", "5.05"],
    );
    cart(
        "bounds",
        "bounds = [-3.0, 3.0]",
        "bounds = [3.0, -3.0]",
        &["actuator `push`"],
    );
    cart(
        "joint",
        "{ joint = \"hinge\" }",
        "{ joint = \"hnge\" }",
        &["unknown joint `hnge`", "did you mean `hinge`"],
    );
    cart(
        "twice",
        "mass = 0.2",
        "mass = 0.2\nmass = 0.3",
        &["`mass` is given twice"],
    );
    cart(
        "weight",
        "weight = 0.01",
        "weight = -0.25",
        &["weight", "-0.25"],
    );
    cart(
        "axis",
        "axis = [0.0, 1.0, 0.0]",
        "axis = [0.0, 0.0, 0.0]",
        &["hinge", "axis"],
    );
    cart(
        "control",
        "controls = { push = 0.01 }",
        "controls = { push = nan }",
        &["push", "NaN"],
    );
    cart("prose", "[initial]", "this is prose", &["not valid TOML"]);
    cart(
        "kind",
        "kind = \"prismatic\"",
        "kind = \"rail\"",
        &["`rail`", "prismatic"],
    );

    let lonely = changed(
        "cartpole_swingup",
        "[mechanism.actuators.push]",
        "[mechanism.bodies.stone]\nmass = 1.0\ninertia = [1.0, 1.0, 1.0]\n\n[mechanism.actuators.push]",
    );
    broken(
        "lonely",
        &lonely,
        Some("[mechanism.bodies.stone]"),
        &["`stone` is tied to nothing", "free = true"],
    );
    let short = changed(
        "five_bar_reach",
        "parent_anchor = [0.15, 0.0, 0.0]\nchild_anchor = [-0.1",
        "parent_anchor = [5.0, 0.0, 0.0]\nchild_anchor = [-0.1",
    );
    broken("open_loop", &short, None, &["tip"]);
    broken("empty", "", None, &["empty"]);
    broken(
        "garbage",
        "\u{1}\u{2}%%%\n",
        Some("\u{1}"),
        &["not valid TOML"],
    );
    broken("urdf", "<robot name=\"a\"/>", None, &["URDF"]);
    broken(
        "neither",
        "title = \"x\"\n",
        None,
        &["neither a problem nor a mechanism", "[mechanism]"],
    );
}

#[test]
fn files_that_are_not_there() {
    let folder = Folder::new("absent");
    std::fs::create_dir(folder.path("folder")).expect("makes a folder");
    for command in ["describe", "simulate", "solve", "gradient"] {
        folder.run(&[command, "absent.toml"]).refused(&[
            "absent.toml",
            "cannot read the file",
            "check the path",
        ]);
        folder
            .run(&[command, "folder"])
            .refused(&["folder", "directory"]);
        folder.run(&[command]).refused(&["<FILE>", "Usage"]);
    }
    folder.run(&[]).refused(&["Usage", "simulate", "solve"]);
    folder.run(&["simulat"]).refused(&["simulat", "Usage"]);
    assert_eq!(folder.list(), ["folder"]);
}

#[test]
fn help_names_the_options_and_their_units() {
    let folder = Folder::new("help");
    let help = |arguments: &[&str]| {
        let run = folder.run(arguments).ended(0);
        assert_eq!(run.err, "");
        run.out
    };
    for (command, words) in [
        (
            "simulate",
            vec![
                "--duration <S>",
                "--step <H>",
                "--integrator",
                "--out",
                "--plot",
                "--json",
                ", s",
                ".csv or .json",
                ".svg or .png",
            ],
        ),
        (
            "solve",
            vec![
                "--method",
                "--out",
                "out/<problem name>",
                "--seed",
                "--threads",
                "--max-iterations",
                "--json",
            ],
        ),
        ("gradient", vec!["--check", "--json", "central differences"]),
        (
            "plot",
            vec!["--out", "--what", "constraint_forces", ".json"],
        ),
        ("describe", vec!["--json"]),
    ] {
        assert!(help(&["--help"]).contains(command));
        let text = help(&[command, "--help"]);
        for w in words {
            assert!(text.contains(w), "{command}: `{w}` is missing in\n{text}");
        }
    }
    assert_eq!(
        help(&["--version"]).trim(),
        concat!("least-action ", env!("CARGO_PKG_VERSION"))
    );
}

/// `least-action describe FILE | head -1`, and a reader of the messages that goes away.
#[test]
fn a_reader_that_goes_away_is_no_accident() {
    let folder = Folder::new("pipe");
    let mut c = folder.command(&["solve", &problem("five_bar_reach"), "--max-iterations", "2"]);
    let mut child = c
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().expect("ends").code(), Some(1));
    assert!(folder.path("out/five_bar_reach/motion.svg").exists());
}
