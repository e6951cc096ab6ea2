//! Parameters of a problem.

use super::*;

fn with(parameters: &str) -> String {
    SAMPLE
        .replace("child = \"pole\"", "child = \"pole\"\ndamping = 0.3")
        .replace("[initial] ", &format!("{parameters}\n[initial] "))
}

#[test]
fn parameters_start_from_the_mechanism_or_from_their_value() {
    let m = build(&with(
        "[parameters.friction]\nof = \"joints.hinge.damping\"\n\
         [parameters.weight]\nof = [\"bodies.cart.mass\", \"bodies.pole.mass\"]\nvalue = 0.5\nbounds = [0.1, 2.0]\n\
         [parameters.down]\nof = \"gravity.z\"\nfixed = true\n\
         [parameters.length]\nof = \"joints.hinge.child_anchor.z\"\nvalue = 0.6",
    ))
    .expect("good");
    let p = &m.problem;
    assert_eq!(p.parameters, [0.3, 0.5, -9.81, 0.6]);
    let expected = [
        (0.0, f64::INFINITY),
        (0.1, 2.0),
        (-9.81, -9.81),
        (f64::NEG_INFINITY, f64::INFINITY),
    ];
    assert_eq!(p.parameter_bounds, expected);
    assert_eq!(p.free_parameters(), [0, 1, 3]);
    let named: Vec<_> = m.system.parameters();
    let shown: Vec<_> = named
        .iter()
        .map(|p| (p.name.as_str(), p.unit.as_str()))
        .collect();
    let expected = [
        ("friction", "N m s/rad"),
        ("weight", "kg"),
        ("down", "m/s^2"),
        ("length", "m"),
    ];
    assert_eq!(shown, expected);
    // what is simulated and written has the values
    let built = m.system.mechanism();
    assert_eq!((built.bodies[0].mass, built.bodies[1].mass), (0.5, 0.5));
    assert_eq!(m.system.poses(&m.x0)[1].x.as_slice(), [0.0, 0.0, -0.6]);
    let written = m.mechanism.build().expect("good");
    assert_eq!(written.bodies[1].mass, 0.5);
    assert_eq!(written.bodies[1].inertia, built.bodies[1].inertia);
    assert_eq!(written.joints[1].child_anchor.z, 0.6);
    // masses stay above zero without being told
    let m = build(&with("[parameters.weight]\nof = \"bodies.pole.mass\"")).expect("good");
    let (lower, upper) = m.problem.parameter_bounds[0];
    assert!(lower > 0.0 && lower < 1e-5 && upper == f64::INFINITY);
    // a file without parameters has none
    assert!(sample().problem.parameters.is_empty());
}

/// Ratio and offset of a gear: declared, given their values, and written with those found.
#[test]
fn gears_have_parameters() {
    let gear =
        "[mechanism.gears.belt]\njoint = \"hinge\"\nof = \"rail\"\nratio = 2.0\noffset = 0.1\n";
    let text = |of: &str| {
        let text = with(&format!("{gear}[parameters.p]\nof = \"gears.belt.{of}\n"));
        text.replace("rail = 0.0", "rail = { guess = 0.0 }")
    };
    let m = build(&text("ratio\"\nvalue = -0.5")).expect("good");
    assert_eq!(m.system.parameters()[0].unit, "rad/m");
    assert_eq!(m.system.mechanism().gear(0).ratio, -0.5);
    let start = m.system.tree_coordinates(&m.x0);
    assert!((start[1] + 0.5 * start[0] - 0.1).abs() < 1e-12, "{start:?}");
    let other = m.with_parameters(&[3.0]).expect("good");
    assert_eq!(other.mechanism.gears["belt"].ratio, 3.0);
    assert_eq!(other.system.mechanism().gear(0).ratio, 3.0);
    let start = other.system.tree_coordinates(&other.x0);
    assert!((start[1] - 3.0 * start[0] - 0.1).abs() < 1e-12, "{start:?}");
    let e = m.with_parameters(&[0.0]).expect_err("no ratio");
    assert!(e.to_string().contains("parameter `p`"), "{e}");
    let m = build(&text("offset\"")).expect("good");
    assert_eq!(
        (
            m.problem.parameters[0],
            m.system.parameters()[0].unit.as_str()
        ),
        (0.1, "rad")
    );
    for (wrong, words) in [
        (
            "ratio\"\nvalue = 0.0",
            ["parameter `p` is 0", "other than zero"],
        ),
        (
            "ratio\"\nbounds = [0.0, 3.0]",
            ["may fall to 0", "other than zero"],
        ),
        (
            "ratio\"\nvalue = -1.0\nbounds = [-3.0, 0.0]",
            ["may rise to 0", "other than zero"],
        ),
    ] {
        let text = text(wrong);
        let e = build(&text).expect_err("means nothing").to_string();
        let help = build(&text).expect_err("means nothing").help().to_owned();
        assert!(
            e.contains(words[0]) && help.contains(words[1]),
            "{e}; {help}"
        );
    }
}

#[test]
fn parameters_that_mean_nothing_are_refused() {
    for (text, at, words) in [
        (
            "of = \"joints.hinge.dampng\"",
            "of",
            [
                "`joints.hinge.dampng` is no number",
                "did you mean `joints.hinge.damping`",
            ],
        ),
        (
            "of = [\"gravity.z\",\n\"gravity.w\"]",
            "\"gravity.w",
            ["`gravity.w` is no number", "`gravity."],
        ),
        ("of = []", "of", ["sets nothing", "joints.hinge.damping"]),
        (
            "of = \"joints.hinge.friction\"",
            "of",
            [
                "parameter `a` is 0",
                "expected a positive number: give it a start, value = ..",
            ],
        ),
        (
            "of = \"joints.hinge.limits.lower\"",
            "of",
            [
                "parameter `a` is -inf",
                "expected a finite number: give it a start, value = ..",
            ],
        ),
        (
            "of = 3.0",
            "of",
            ["a name or a list of names", "parameters.a.of"],
        ),
        (
            "value = 1.0",
            "[parameters.a]",
            ["missing field `of`", "parameters.a"],
        ),
        (
            "of = \"gravity.z\"\nvlue = 1.0",
            "vlue",
            ["unknown field `vlue`", "did you mean `value`"],
        ),
        (
            "of = \"joints.hinge.damping\"\nvalue = -1.0",
            "value",
            ["parameter `a` is -1", "not negative"],
        ),
        (
            "of = \"bodies.pole.mass\"\nvalue = 0.0",
            "value",
            ["parameter `a` is 0", "positive"],
        ),
        (
            "of = \"bodies.pole.mass\"\nvalue = nan",
            "value",
            ["parameter `a` is NaN", "finite"],
        ),
        (
            "of = \"bodies.pole.mass\"\nbounds = [2.0, 1.0]",
            "bounds",
            ["are 2 and 1", "smaller number first"],
        ),
        (
            "of = \"bodies.pole.mass\"\nbounds = [0.0, 1.0]",
            "bounds",
            ["may fall to 0", "positive"],
        ),
        (
            "of = \"bodies.pole.mass\"\nbounds = [1.0, 2.0]",
            "bounds",
            ["starts at 0.2, outside 1 to 2", "within"],
        ),
        (
            "of = \"bodies.pole.mass\"\nvalue = 5.0\nbounds = [1.0, 2.0]",
            "value",
            ["starts at 5", "within"],
        ),
        (
            "of = [\"bodies.pole.mass\", \"bodies.cart.mass\"]",
            "of",
            [
                "`bodies.pole.mass` is 0.2 and `bodies.cart.mass` is 1",
                "value = ..",
            ],
        ),
        (
            "of = \"bodies.pole.mass\"\n[parameters.b]\nof = \"bodies.pole.mass\"",
            "[parameters.b]",
            ["`bodies.pole.mass` has two parameters", "one of them"],
        ),
        (
            "of = \"bodies.pole.inertia.xx\"\nvalue = 3.0",
            "[parameters.a]",
            ["triangle inequality", "pole"],
        ),
    ] {
        let text = with(&format!("[parameters.a]\n{text}"));
        let table = text.find("[parameters.a]").expect("given");
        let at = table + text[table..].find(at).expect("in the table");
        let line = text[..at].matches('\n').count() + 1;
        refused(&text, Some(line), &words);
    }
}

/// The path of a parameter stands in the problem, wherever the mechanism is.
#[test]
fn a_path_into_another_file_is_found_in_the_problem() {
    let folder = folder("parameters_elsewhere");
    let problem = folder.join("problem.toml");
    let text = "time_step = 0.1\nhorizon = 1.0\nmechanism = \"other.toml\"\n\
                [parameters.m]\nof = \"bodies.b.mass\"\n";
    std::fs::write(&problem, text).expect("writes");
    let other = "[bodies.a]\nfree = true\nmass = 1.0\ninertia = [1.0, 1.0, 1.0]\n";
    std::fs::write(folder.join("other.toml"), other).expect("writes");
    let e = load(&problem)
        .and_then(|d| d.build(&Overrides::default()))
        .expect_err("there is no body b");
    assert_eq!(
        (e.path(), e.position().map(|p| p.0)),
        (problem.as_path(), Some(5)),
        "{e:#}"
    );
    std::fs::write(&problem, text.replace("bodies.b", "bodies.a")).expect("writes");
    let m = load(&problem)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("good");
    assert_eq!(m.problem.parameters, [1.0]);
    std::fs::remove_dir_all(&folder).expect("removes");
}
