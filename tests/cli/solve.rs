//! `solve`.

use super::*;

/// Those of a mechanism without contacts.
pub(crate) const FIGURES: [&str; 7] = [
    "coordinates",
    "rates",
    "controls",
    "constraint_forces",
    "energy",
    "convergence",
    "motion",
];

/// The files that a solve must leave, whole and readable.
pub(crate) fn solved_files(folder: &Folder, out: &str, v: &Value, ending: &str) {
    let by_ddp = v["method"] == "ddp";
    let gains = by_ddp.then_some("gains.json");
    let mut expected: Vec<String> = ["trajectory.csv", "trajectory.json"]
        .into_iter()
        .chain(gains)
        .chain(["convergence.csv"])
        .map(|f| format!("{out}/{f}"))
        .collect();
    assert_eq!(folder.path(&format!("{out}/gains.json")).exists(), by_ddp);
    expected.extend(FIGURES.iter().map(|f| format!("{out}/{f}.{ending}")));
    expected.push(format!("{out}/checkpoint.json"));
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
            "regularization",
            "smoothing",
            "softened",
            "mean",
            "failures",
            "rollouts",
            "gradient_mean",
            "gradient_largest",
            "clipped",
            "complementarity"
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

fn names_of(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list");
    list.iter()
        .map(|n| n["name"].as_str().expect("a name"))
        .collect()
}

/// The feedback written by a solve, its shapes and numbers checked.
fn gains(folder: &Folder, out: &str, steps: usize, controls: &[&str], columns: usize) -> Value {
    let text = folder.text(&format!("{out}/gains.json"));
    let g: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        g["law"]
            .as_str()
            .expect("a law")
            .contains("u = controls + gains d")
    );
    assert_eq!(names_of(&g["controls"]), controls);
    assert_eq!(names_of(&g["coordinates"]).len(), columns);
    let knots = g["knots"].as_array().expect("knots");
    assert_eq!(knots.len(), steps);
    let mut largest = 0.0_f64;
    for k in knots {
        assert!(number(k, "time").is_finite());
        assert_eq!(numbers(&k["controls"]).len(), controls.len());
        assert_eq!(numbers(&k["state"]).len(), names_of(&g["states"]).len());
        let rows = k["gains"].as_array().expect("rows");
        assert_eq!(rows.len(), controls.len());
        for row in rows {
            let row = numbers(row);
            assert_eq!(row.len(), columns);
            // what is not finite would be null, and no number
            largest = row.iter().fold(largest, |m, v| m.max(v.abs()));
        }
    }
    assert!(largest > 0.0 && largest.is_finite());
    g
}

/// A tree's feedback is on its joint coordinates by name; where controls are remembered, on them, too. A method without
/// gains leaves none of an earlier one behind.
#[test]
fn gains_say_what_they_act_on() {
    let folder = Folder::new("gains");
    let file = problem("pendulum_swingup");
    let v = folder.json(&["solve", &file, "--out", "p", "--json"]);
    let steps = folder.table("p/trajectory.csv").1.len() - 1;
    let g = gains(&folder, "p", steps, &["motor"], 3);
    assert_eq!(g["coordinates"], g["states"]);
    assert_eq!(g["coordinates"][0]["unit"], "rad");
    assert_eq!(g["coordinates"][1]["unit"], "rad/s");
    assert_eq!(g["controls"][0]["unit"], "N m");
    solved_files(&folder, "p", &v, "svg");
    let v = folder.json(&[
        "solve", &file, "--out", "p", "--json", "--method", "shooting",
    ]);
    solved_files(&folder, "p", &v, "svg");
    let smooth = problem_text("pendulum_swingup")
        + "\n[[costs]]\nquantity = { control_rate = \"motor\" }\nweight = 1e-4\n";
    folder.write("smooth.toml", &smooth);
    folder.json(&["solve", "smooth.toml", "--json"]);
    let g = gains(&folder, "out/smooth", steps, &["motor"], 3);
    assert_eq!(names_of(&g["coordinates"])[2], "motor before");
}

#[test]
fn solve_reaches_the_target() {
    let folder = Folder::new("solve");
    let v = folder.json(&["solve", &problem("five_bar_reach"), "--json"]);
    assert_eq!(v["status"], "converged");
    assert_eq!(v["method"], "ddp");
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
    // the feedback, on the two freedoms of the loop
    let g = gains(&folder, out, 50, &["left", "right"], 6);
    let tangent = g["knots"][50 - 1]["tangent"].as_array().expect("a basis");
    assert_eq!(2 * tangent.len() + 2, names_of(&g["states"]).len());
    for (c, of_left) in numbers(&g["knots"][7]["controls"])
        .iter()
        .zip(["left", "right"])
    {
        assert_eq!(*c, of(&format!("{of_left} [N m]"), 7));
    }

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
        run.says(&["Five-bar reach", "differential dynamic programming"]);
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
    run.says(&[
        "not solved (max_iterations)",
        "2 iterations",
        "still violated: ",
        "by ",
        "--resume",
    ]);
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
        "name = \"ddp\"",
        "name = \"shooting\"\ntolerance = 1e-13\noptimality = 1e-14",
    );
    // a thousand steps take seconds
    let text = text.replace("time_step = 0.05 ", "time_step = 0.005");
    folder.write("slow.toml", &text);
    let mut command = folder.command(&["solve", "slow.toml", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // it tells how far it is once a second
    let run = interrupted(command, " after ").ended(1);
    let v = run.json();
    assert_eq!(v["status"], "interrupted");
    assert!(v["iterations"].as_u64().is_some_and(|n| n > 0), "{v:#}");
    run.says(&["not solved (interrupted)"]);
    solved_files(&folder, "out/slow", &v, "svg");
    folder.run(&["plot", "out/slow/trajectory.json"]).ended(0);
    // and goes on where it was
    let more = [
        "solve",
        "slow.toml",
        "--resume",
        "--max-iterations",
        "3",
        "--json",
    ];
    let run = folder.run(&more).ended(1);
    run.says(&["going on with"]);
    let after = run.json();
    assert_eq!(after["status"], "max_iterations");
    assert_eq!(
        after["iterations"].as_u64(),
        v["iterations"].as_u64().map(|n| n + 3)
    );
    solved_files(&folder, "out/slow", &after, "svg");
}

#[test]
fn solve_goes_on_from_its_checkpoint() {
    let folder = Folder::new("solve_resume");
    let file = problem("five_bar_reach");
    folder.run(&["solve", &file, "--resume"]).refused(&[
        "no checkpoint",
        "checkpoint.json",
        "without --resume",
    ]);
    assert_eq!(folder.list(), [""; 0]);
    let whole = folder.json(&["solve", &file, "--out", "whole", "--json"]);
    let mut v = folder
        .run(&["solve", &file, "--max-iterations", "3", "--json"])
        .ended(1)
        .json();
    assert_eq!(v["iterations"], 3);
    v = folder.json(&["solve", &file, "--resume", "--json"]);
    assert_eq!(v["status"], "converged");
    // as if it had not been stopped
    for same in ["objective", "iterations", "step_evaluations"] {
        assert_eq!(v[same], whole[same], "{same}");
    }
    assert_eq!(keys(&v), keys(&whole));
    solved_files(&folder, "out/five_bar_reach", &v, "svg");
    // what had converged ends at once, with the same
    let again = folder.json(&["solve", &file, "--resume", "--json"]);
    for same in [
        "status",
        "objective",
        "iterations",
        "step_evaluations",
        "files",
    ] {
        assert_eq!(again[same], v[same], "{same}");
    }
    // another problem of the same name, and something that is no checkpoint
    let place = "out/five_bar_reach/checkpoint.json";
    let kept = folder.text(place);
    let text = changed("five_bar_reach", "equals = 0.25", "equals = 0.24");
    folder.write("five_bar_reach.toml", &text);
    folder
        .run(&["solve", "five_bar_reach.toml", "--resume"])
        .refused(&["the problem has changed", "without --resume"]);
    folder.write(
        place,
        &kept.replace("\"method\":\"ddp\"", "\"method\":\"shooting\""),
    );
    folder
        .run(&["solve", &file, "--resume"])
        .refused(&["written by the method `shooting`", "--method shooting"]);
    folder.write(place, &kept[..kept.len() / 2]);
    folder
        .run(&["solve", &file, "--resume"])
        .refused(&["this is not a checkpoint", "without --resume"]);
    // anew it is replaced
    folder.run(&["solve", &file]).ended(0);
    folder.run(&["solve", &file, "--resume"]).ended(0);
}

#[test]
fn solve_by_every_method() {
    let folder = Folder::new("solve_all");
    let file = problem("five_bar_reach");
    let v = folder.json(&["solve", &file, "--method", "all", "--json"]);
    assert_eq!(keys(&v), ["methods", "warnings"]);
    let methods = v["methods"].as_array().expect("a list");
    let listed: Vec<_> = methods.iter().map(|m| m["method"].as_str()).collect();
    // those for a handful of decisions are left out
    let gradients = [
        "ddp",
        "shooting",
        "multiple-shooting",
        "lbfgs",
        "newton-cg",
        "trust-region",
        "gauss-newton",
        "direct",
    ];
    assert_eq!(listed, gradients.map(Some));
    for m in methods {
        let name = m["method"].as_str().expect("a name");
        assert_eq!(m["status"], "converged", "{m:#}");
        for f in names(&m["files"]) {
            assert!(f.starts_with(&format!("out/five_bar_reach/{name}/")), "{f}");
            assert!(folder.path(f).exists(), "{f}");
        }
    }
    // as a table, from where they are
    let run = folder
        .run(&["solve", &file, "--method", "all", "--resume"])
        .ended(0);
    for words in [
        "method",
        "status",
        "objective",
        "violation",
        "iterations",
        "steps",
        "seconds",
        "shooting",
        "converged",
    ] {
        assert!(run.out.contains(words), "{words}: {}", run.out);
    }
    // none solves it
    let run = folder
        .run(&["solve", &file, "--method", "all", "--max-iterations", "1"])
        .ended(1);
    assert!(run.out.contains("max_iterations"), "{}", run.out);
    run.says(&["not solved (max_iterations)"]);
    folder
        .run(&[
            "solve", &file, "--method", "all", "--resume", "--out", "none",
        ])
        .refused(&["no checkpoint", "without --resume"]);
    assert!(!folder.path("none").exists());
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

/// `ddp` closes the gaps of states that no control leads to; shooting says that it leaves them aside, and does.
#[test]
fn solve_starts_from_guessed_states() {
    let folder = Folder::new("solve_states");
    let guess = "controls = { motor = 0.1 }";
    let states = "\nstates = [{ time = 3.0, joints = { hinge = 3.141592653589793 } }]";
    let straight = changed("pendulum_swingup", guess, &(guess.to_owned() + states));
    folder.write("plain.toml", &problem_text("pendulum_swingup"));
    folder.write("straight.toml", &straight);
    let solve = |file: &str, more: &[&str]| {
        let run = folder.run(&[&["solve", file, "--json"], more].concat());
        (run.json(), run)
    };
    let (v, run) = solve("straight.toml", &["--out", "straight"]);
    assert_eq!(
        (v["status"].as_str(), run.code),
        (Some("converged"), Some(0))
    );
    assert!(number(&v, "constraint_violation") < 1e-6);
    assert!((number(&v, "objective") - 0.018242).abs() < 1e-4, "{v:#}");
    assert!(!run.err.contains("aside"), "{}", run.err);
    let (plain, _) = solve("plain.toml", &["--out", "plain"]);
    assert!(v["iterations"] != plain["iterations"], "{v:#}");
    // from the solution itself it is not far
    let guess_file = "controls = \"straight/trajectory.csv\"\nstates = \"straight/trajectory.csv\"";
    folder.write(
        "again.toml",
        &changed("pendulum_swingup", guess, guess_file),
    );
    let (again, _) = solve("again.toml", &["--out", "again"]);
    assert_eq!(again["status"], "converged");
    assert!(
        number(&again, "iterations") < number(&v, "iterations"),
        "{again:#}"
    );

    let shooting = |file: &str, out: &str| {
        solve(
            file,
            &[
                "--method",
                "shooting",
                "--max-iterations",
                "2",
                "--out",
                out,
            ],
        )
        .1
    };
    shooting("straight.toml", "a").says(&["single shooting", "aside", "--method ddp"]);
    assert!(!shooting("plain.toml", "b").err.contains("aside"));
    assert_eq!(
        folder.read("a/trajectory.csv"),
        folder.read("b/trajectory.csv")
    );
}

/// A pendulum on its tip, which leaves the tip the faster the smaller the time step: what stands for a coarse one does
/// not for half of it, and energy is kept by neither.
#[test]
fn what_holds_for_its_time_step_alone_is_warned_of() {
    let folder = Folder::new("solve_coarse");
    let text = |step: f64| {
        format!(
            "time_step = {step}\nhorizon = 5.12\n[mechanism]\ngravity = [0, 0, 9.81]\n\
             [mechanism.bodies.bob]\nmass = 1.0\ninertia = [1e-3, 1e-3, 1e-3]\n\
             [mechanism.joints.hinge]\nkind = \"revolute\"\nchild = \"bob\"\naxis = [0, 1, 0]\nchild_anchor = [0, 0, 1]\n\
             [mechanism.actuators.motor]\njoint = \"hinge\"\n[initial]\nhinge = 1e-7\n\
             [[costs]]\nquantity = {{ control = \"motor\" }}\nweight = 1.0\n"
        )
    };
    folder.write("coarse.toml", &text(0.64));
    folder.write("fine.toml", &text(0.01));
    let alone = "holds for this time step alone";
    let energy = "the energy error of";
    let run = folder.run(&["solve", "coarse.toml", "--json"]).ended(0);
    run.says(&[alone, energy, "take a smaller"]);
    // the numbers behind it
    let v = run.json();
    assert!(number(&v["half_step"], "position") > 0.01, "{v:#}");
    assert!(number(&v, "energy_error_max") > 0.0);
    let run = folder.run(&["solve", "fine.toml", "--json"]).ended(0);
    assert!(
        !run.err.contains(alone) && !run.err.contains(energy),
        "{}",
        run.err
    );
}

/// What is written of it, gains among that, and simulated at half of its time step, begins in motion, too.
#[test]
fn solve_from_a_start_in_motion() {
    let folder = Folder::new("solve_in_motion");
    let text = include_str!("../pendulum_in_motion.toml");
    folder.write("motion.toml", text);
    let rates = "initial_rates = \"interval\"\n";
    assert!(text.contains(rates));
    folder.write("instant.toml", &text.replace(rates, ""));
    let moved = |file: &str| {
        let v = folder.run(&["solve", file, "--json"]).ended(0).json();
        assert_eq!(v["status"], "converged");
        number(&v["half_step"], "position")
    };
    let (motion, instant) = (moved("motion.toml"), moved("instant.toml"));
    assert!(folder.path("out/motion/gains.json").exists());
    assert!(motion < 3.0 * instant, "{motion:.1e} {instant:.1e}");
}

/// A guess of states beside controls that end in a step without solution, at several steps, controls and levels of smoothing: the optimum is
/// that without softened steps.
#[test]
fn solve_from_a_guess_that_cannot_be_simulated() {
    let folder = Folder::new("solve_failing_guess");
    let solved = |(step, motor, start, forward): (f64, f64, f64, bool)| {
        let text = format!(
            "time_step = {step}\nhorizon = 1.0\n[mechanism.half_spaces.floor]\n\
             [mechanism.bodies.arm]\nmass = 0.1\nshape = {{ sphere = 0.05 }}\ncontacts.skin = {{ friction = 0.5 }}\n\
             [mechanism.joints.shoulder]\nkind = \"revolute\"\nchild = \"arm\"\naxis = [0, 1, 0]\nparent_anchor = [0, 0, 1]\nchild_anchor = [0, 0, 0.3]\n\
             [mechanism.actuators.motor]\njoint = \"shoulder\"\n\
             [guess]\ncontrols = {{ motor = {motor} }}\nstates = [{{ time = 1.0, joints = {{ shoulder = 1.5 }} }}]\n\
             [[costs]]\nquantity = {{ control = \"motor\" }}\nweight = 1e-2\n\
             [[constraints]]\nquantity = {{ joint = \"shoulder\" }}\nequals = 1.5\n\
             [method]\nsmoothing = {{ start = {start:e}, forward = {forward} }}\n"
        );
        folder.write("arm.toml", &text);
        let v = folder.run(&["solve", "arm.toml", "--json"]).ended(0).json();
        assert_eq!(v["status"], "converged", "{v:#}");
        number(&v, "objective")
    };
    for step in [0.05, 0.025] {
        let expected = solved((step, 0.1, 1e-1, false));
        for (motor, start) in [(1.0, 1e-1), (2.0, 1.0), (-1.5, 1e-2)] {
            let found = solved((step, motor, start, true));
            assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
        }
    }
}

/// A state of the guess in which the body is so fast that no step leads on is left out, alone, and reported.
#[test]
fn solve_leaves_out_states_that_lead_nowhere() {
    let folder = Folder::new("solve_left_out");
    let remarks = |push: f64| {
        let pushes: Vec<String> = (0..100)
            .map(|k| match k {
                20 => format!("{push:?}"),
                25 => format!("{:?}", -push),
                _ => "0.0".into(),
            })
            .collect();
        let pushes = pushes.join(", ");
        let text = format!(
            "time_step = 0.01\nhorizon = 1.0\nintegrator = {{ name = \"maximal\" }}\n\
             [mechanism.bodies.arm]\nmass = 0.1\nshape = {{ sphere = 0.05 }}\n\
             [mechanism.joints.shoulder]\nkind = \"revolute\"\nchild = \"arm\"\naxis = [0, 1, 0]\nparent_anchor = [0, 0, 1]\nchild_anchor = [0, 0, 0.3]\n\
             [mechanism.actuators.motor]\njoint = \"shoulder\"\n\
             [guess]\ncontrols = {{ motor = [{pushes}] }}\n\
             states = [{{ time = 0.19, joints = {{ shoulder = 0.0 }} }}, {{ time = 0.2, joints = {{ shoulder = 1.3 }} }}, {{ time = 1.0, joints = {{ shoulder = 1.3 }} }}]\n\
             [[costs]]\nquantity = {{ control = \"motor\" }}\nweight = 1e-2\n\
             [[constraints]]\nquantity = {{ joint = \"shoulder\" }}\nequals = 0.5\n"
        );
        folder.write("arm.toml", &text);
        let run = folder.run(&["solve", "arm.toml", "--json", "--max-iterations", "2"]);
        run.json()["remarks"].clone()
    };
    let one = remarks(37.0).to_string();
    assert!(one.contains("1 of 100, the first at 0.200000 s"), "{one}");
    assert!(one.contains("the body turns too fast"), "{one}");
    assert_eq!(remarks(1.0), serde_json::json!([]));
}

/// A pendulum that is lifted and comes to rest, with `[policy]` or decided controls.
fn lifted(policy: &str) -> String {
    format!(
        "time_step = 0.05\nhorizon = 1.0\n[mechanism.bodies.arm]\nmass = 1.0\nshape = {{ box = [0.05, 0.05, 0.6] }}\n\
         [mechanism.joints.s]\nkind = \"revolute\"\nchild = \"arm\"\naxis = [0.0, 1.0, 0.0]\n\
         child_anchor = [0.0, 0.0, 0.3]\ndamping = 0.05\n[mechanism.actuators.u]\njoint = \"s\"\n\
         [initial]\ns = 0.1\n{policy}[[costs]]\nquantity = {{ control = \"u\" }}\nweight = 0.01\n\
         [[constraints]]\nquantity = {{ joint = \"s\" }}\nequals = 2.0\n\
         [[constraints]]\nquantity = {{ joint_rate = \"s\" }}\nequals = 0.0\n"
    )
}

/// Gains act on the rate over the part of a step that the plan has, in however many parts the steps are made.
#[test]
fn feedback_brings_plans_back_in_substeps() {
    let folder = Folder::new("solve_feedback");
    folder.write("plan.toml", &lifted(""));
    for (planned, made) in [("1", ["1", "2", "4", "8"]), ("2", ["2", "1", "4", "8"])] {
        let solved = ["solve", "plan.toml", "--substeps", planned];
        folder.run(&solved).ended(0);
        let end = |policy: &str, substeps: &str| {
            folder.write("replay.toml", &lifted(policy));
            let v = folder.json(&["simulate", "replay.toml", "--json", "--substeps", substeps]);
            let joint = &v["final"]["joints"]["s"];
            let [angle, rate] = ["coordinates", "rates"].map(|of| super::numbers(&joint[of])[0]);
            (angle - 2.0).abs().max(rate.abs())
        };
        // files without the part say it in their law
        let gains = folder.text("out/plan/gains.json");
        assert_eq!(gains.contains("\"part\":0.5,"), planned == "2");
        folder.write("out/plan/gains.json", &gains.replace("\"part\":0.5,", ""));
        let open = "[guess]\ncontrols = \"out/plan/trajectory.csv\"\n";
        let closed = "[policy]\nfeedback = \"out/plan/gains.json\"\n";
        for substeps in made {
            let [open, closed] = [open, closed].map(|policy| end(policy, substeps));
            let what = format!("in {planned}, then in {substeps}: {open:.1e}, {closed:.1e}");
            if substeps == planned {
                assert!(open < 1e-6 && closed < 1e-6, "{what}");
            } else {
                assert!(open > 1e-4 && closed < 0.7 * open, "{what}");
            }
        }
    }
}
