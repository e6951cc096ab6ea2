//! Broken files, files that are not there, help, and readers that go away.

use super::*;

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
        ("gradient", &[]),
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
    broken("urdf", "<robot name=\"a\"/>", Some("<robot"), &["no links"]);
    broken(
        "neither",
        "title = \"x\"\n",
        None,
        &["neither a problem nor a mechanism", "[mechanism]"],
    );
}

/// With `--json` bad input is one object with the message and its place; people are told all the same.
#[test]
fn bad_input_as_json() {
    let folder = Folder::new("bad_json");
    let text = changed("cartpole_swingup", "parent = \"cart\"", "parent = \"crat\"");
    folder.write("case.toml", &text);
    let line = text[..text.find("crat").expect("there")]
        .matches('\n')
        .count()
        + 1;
    for command in ["describe", "simulate", "solve", "gradient"] {
        let run = folder.run(&[command, "case.toml", "--json"]).ended(2);
        run.says(&["unknown body `crat`", "did you mean `cart`"]);
        let v = run.json();
        assert_eq!(v["status"], "bad_input");
        assert_eq!(v["file"], "case.toml");
        assert_eq!(v["line"], line);
        assert_eq!(v["column"], 10);
        let says = |key: &str, word: &str| {
            let text = v[key].as_str().expect("a text");
            assert!(text.contains(word), "{text}");
        };
        says("message", "unknown body `crat`");
        says("help", "did you mean `cart`");
        // where there is no file, no line, or not even a command line
        let v = folder
            .run(&[command, "absent.toml", "--json"])
            .ended(2)
            .json();
        assert_eq!(
            (&v["file"], &v["line"]),
            (&"absent.toml".into(), &Value::Null)
        );
        let v = folder
            .run(&[command, "case.toml", "--jsn", "--json"])
            .ended(2)
            .json();
        assert!(
            v["message"].as_str().is_some_and(|m| m.contains("--jsn")),
            "{v}"
        );
        let help = v["help"].as_str().expect("a remedy");
        assert!(help.contains("Usage"), "{help}");
        assert_eq!((&v["file"], &v["line"]), (&Value::Null, &Value::Null));
    }
    // of options that parse, and of files that do not do for the command
    let file = problem("double_pendulum");
    for (arguments, message, help, of_file) in [
        (
            ["simulate", "--out", "t.txt"],
            "`t.txt` is no trajectory",
            ".csv or .json",
            false,
        ),
        (
            ["simulate", "--plot", "t.pdf"],
            "`t.pdf` is no figure",
            ".svg or .png",
            false,
        ),
        (
            ["simulate", "--out", "."],
            "is no trajectory",
            ".csv or .json",
            false,
        ),
        (
            ["solve", "--out", "case.toml/x"],
            "cannot make the directory",
            "--out",
            false,
        ),
        (
            ["solve", "--out", "o"],
            "nothing to solve",
            "use `simulate`",
            true,
        ),
    ] {
        let [command, option, value] = arguments;
        let file = match command {
            "solve" if !of_file => problem("pendulum_swingup"),
            _ => file.clone(),
        };
        let v = folder
            .run(&[command, &file, option, value, "--json"])
            .ended(2)
            .json();
        assert!(
            v["message"].as_str().is_some_and(|m| m.contains(message)),
            "{v}"
        );
        assert!(v["help"].as_str().is_some_and(|m| m.contains(help)), "{v}");
        assert_eq!(v["file"].is_string(), of_file, "{v}");
    }
    assert_eq!(folder.list(), ["case.toml"]);
}

/// Two bodies on hinges, `[gears]` and `[initial]` to follow.
const GEARED: &str = r#"time_step = 0.01
horizon = 1.0

[mechanism.bodies.a]
mass = 1.0
inertia = [1.0, 1.0, 1.0]

[mechanism.bodies.b]
mass = 1.0
inertia = [1.0, 1.0, 1.0]

[mechanism.joints.one]
kind = "revolute"
child = "a"
axis = [0.0, 1.0, 0.0]

[mechanism.joints.two]
kind = "revolute"
child = "b"
axis = [0.0, 1.0, 0.0]

[mechanism.gears.belt]
joint = "one"
of = "two"
ratio = 2.0
"#;

#[test]
fn messages_say_what_was_expected_and_the_remedy() {
    // gears that contradict each other, or the start, are no loops
    let twice =
        "\n[mechanism.gears.chain]\njoint = \"one\"\nof = \"two\"\nratio = 2.0\noffset = 1.0\n";
    broken(
        "gears",
        &format!("{GEARED}{twice}"),
        Some("[mechanism.gears.chain]"),
        &[
            "gear `chain` cannot be met",
            "1.000e0 m or rad",
            "ratio and offset",
        ],
    );
    let start = |one: &str, two: &str| format!("{GEARED}\n[initial]\none = {one}\ntwo = {two}\n");
    broken(
        "geared_start",
        &start("1.0", "0.2"),
        Some("one = 1.0"),
        &[
            "gear `belt` does not hold at `one` = 1",
            "nearest found: 0.88",
            "guess = ..",
        ],
    );
    broken(
        "geared_rates",
        &start("{ rate = 1.0 }", "{ rate = 1.0 }"),
        Some("one = {"),
        &["gear `belt` does not hold at the rates given", "1.000e0"],
    );
    let cart = |name: &str, from: &str, to: &str, words: &[&str]| {
        broken(
            name,
            &changed("cartpole_swingup", from, to),
            Some(to),
            words,
        );
    };
    cart(
        "equal_bounds",
        "bounds = [-3.0, 3.0]",
        "bounds = [1, 1]",
        &[
            "bounds of actuator `push` are [1.0, 1.0]",
            "the first below the second",
        ],
    );
    let hinge = "quantity = { joint_rate = \"hinge\" }\nequals";
    let of = |text: &str| format!("quantity = {text}\nequals");
    cart(
        "two_keys",
        hinge,
        &of("{ joint_rate = \"hinge\", joint = \"hinge\" }"),
        &["several names, expected one", "keep one of the names"],
    );
    cart(
        "no_key",
        hinge,
        &of("{}"),
        &["this table is empty", "{ joint = \"NAME\" }"],
    );
    cart(
        "horizon_digits",
        "horizon = 5.0 ",
        "horizon = 0.73 ",
        &["the nearest horizons are 0.7 s and 0.75 s"],
    );
    cart(
        "light",
        "hinge = 0.0",
        "hinge = { rate = 1e200 }",
        &["rate of `hinge` is 1e200", "speed of light"],
    );
    broken(
        "bodies",
        "bodies = 3\n",
        Some("bodies"),
        &["`bodies`", "integer `3`, expected a table", "[bodies.NAME]"],
    );
    broken(
        "body",
        "time_step = 0.1\nhorizon = 1.0\n[mechanism]\nbodies.a = 3\n",
        Some("bodies.a"),
        &["integer `3`, expected a table", "[mechanism.bodies.a]"],
    );
    let levels = "smoothing = { start = 1e-7, end = 1e-3 }";
    broken(
        "levels",
        &changed("block_push", "smoothing = { start = 1e-1 }", levels),
        Some(levels),
        &["starts at 0.0000001 below its end 0.001", "levels fall"],
    );
    broken(
        "thrown",
        &changed(
            "block_push",
            "position = [0.0, 0.0, 0.1]",
            "position = [0.0, 0.0, 0.1], velocity = [1e200, 0.0, 0.0]",
        ),
        Some("velocity = [1e200"),
        &["velocity of `block` is [1e200", "speed of light"],
    );
}

/// What cannot be simulated has no objective, and none is shown.
#[test]
fn a_guess_that_fails_has_no_objective() {
    let folder = Folder::new("no_objective");
    let text = changed("cartpole_swingup", "push = 0.01", "push = 1e9");
    folder.write("case.toml", &text);
    let run = folder
        .run(&["solve", "case.toml", "--method", "shooting"])
        .ended(1);
    assert!(
        run.out.contains("no objective") && !run.out.contains("inf"),
        "{}",
        run.out
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
