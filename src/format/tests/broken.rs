//! Files that are refused, at the right line, in words that help.

use super::*;

#[test]
fn names_that_are_not_known_come_with_a_suggestion() {
    breaks(
        "parent = \"cart\"",
        "parent = \"crat\"",
        &["unknown body `crat`", "did you mean `cart`"],
    );
    breaks(
        "mass = 0.2",
        "mas = 0.2",
        &[
            "unknown field `mas` in `mechanism.bodies.pole`",
            "did you mean `mass`",
        ],
    );
    breaks(
        "time_step = 0.05",
        "time_stp = 0.05",
        &["unknown field `time_stp`", "did you mean `time_step`"],
    );
    breaks(
        "kind = \"revolute\"",
        "kind = \"revolut\"",
        &["`revolut`", "did you mean `revolute`"],
    );
    breaks(
        "quantity = { joint = \"hinge\" }",
        "quantity = { joint = \"hnge\" }",
        &["unknown joint `hnge`", "did you mean `hinge`"],
    );
    breaks(
        "quantity = { control = \"push\" }",
        "quantity = { control = \"pusch\" }",
        &["unknown control `pusch`", "did you mean `push`"],
    );
    breaks(
        "quantity = { control",
        "quantity = { contrl",
        &["contrl", "did you mean `control`"],
    );
    breaks(
        "controls = { push = 0.01 }",
        "controls = { pull = 0.01 }",
        &["unknown control `pull`"],
    );
    breaks(
        "name = \"shooting\"",
        "name = \"shoting\"",
        &["unknown method `shoting`", "did you mean `shooting`"],
    );
    breaks(METHOD, "smoothing = { begin = 1.0 }", &["begin", "start"]);
    breaks(
        "tolerance = 1e-6",
        "smoothing = { start = 1.0 }",
        &[
            "smoothing is a setting of `ddp`, `multiple-shooting`, `policy-gradient`, not of `shooting`",
        ],
    );
    breaks(
        "name = \"shooting\"",
        "memory = 5\nname = \"ddp\"",
        &["memory is a setting of `shooting`, `lbfgs`, `direct`, not of `ddp`"],
    );
    breaks(
        "tolerance = 1e-6",
        "population = 5",
        &["population is a setting of ", "`particle-swarm`"],
    );
    breaks(
        "integrator = \"maximal\"",
        "integrator = \"verlet\"",
        &["not available in this version"],
    );
    breaks(
        "hinge = 0.0",
        "hing = 0.0",
        &["unknown joint or free body `hing`", "did you mean `hinge`"],
    );
    breaks(
        "joint = \"rail\"",
        "joint = \"rial\"",
        &["unknown joint `rial`", "did you mean `rail`"],
    );
    breaks("at = \"end\"", "at = \"strat\"", &["`strat`", "end"]);
}

#[test]
fn wrong_values_are_found() {
    breaks(
        "mass = 0.2",
        "mass = \"heavy\"",
        &["mechanism.bodies.pole.mass", "expected a number"],
    );
    breaks(
        "mass = 0.2",
        "mass = -0.2",
        &["mass of body `pole` is -0.2", "positive"],
    );
    breaks("mass = 0.2", "mass = inf", &["mass of body `pole` is inf"]);
    breaks("mass = 0.2", "mass = nan", &["mass of body `pole` is NaN"]);
    breaks(
        "mass = 0.2",
        "mass = 99999999999999999999999",
        &["mechanism.bodies.pole.mass"],
    );
    breaks(
        "inertia = [1e-6, 1e-6, 1e-6]",
        "inertia = [1.0, 1.0, 5.0]",
        &["triangle inequality"],
    );
    breaks(
        "child = \"pole\"",
        "child = 'cart'",
        &["ties body `cart` to itself"],
    );
    breaks(
        METHOD,
        "smoothing = { factor = 1.0 }",
        &["by the factor 1", "below 1"],
    );
    breaks(
        "bounds = [-3.0, 3.0]",
        "bounds = [3.0, -3.0]",
        &["bounds of actuator `push`"],
    );
    breaks(
        "horizon = 5.0",
        "horizon = 5.02",
        &["whole number of time steps", "5 s and 5.05 s"],
    );
    breaks(
        "time_step = 0.05",
        "time_step = -0.05",
        &["time_step is -0.05"],
    );
    breaks("time_step = 0.05", "time_step = 1e-8", &["10 million"]);
    breaks(
        "weight = 0.01",
        "weight = -1.0",
        &["weight of a cost is -1"],
    );
    breaks(
        "hinge = 0.0",
        "hinge = [0.0, 1.0]",
        &["coordinate of joint `hinge` has 2 numbers, expected 1"],
    );
    breaks(
        "hinge = 0.0",
        "hinge = nan",
        &["coordinate of `hinge` is NaN"],
    );
    breaks(
        "hinge = 0.0",
        "hinge = { coordinate = 0.0, rte = 1.0 }",
        &["unknown field `rte`", "did you mean `rate`"],
    );
    breaks(
        "hinge = 0.0",
        "hinge = true",
        &["initial.hinge", "a number, the name of a parameter"],
    );
    breaks(
        "hinge = 0.0",
        "hinge = \"up\"",
        &["`hinge` starts at the unknown parameter `up`"],
    );
    breaks(
        "controls = { push = 0.01 }",
        "controls = { push = [1.0, 2.0] }",
        &["2 numbers", "100 time steps"],
    );
    breaks("tolerance = 1e-6", "tolerance = 0.0", &["tolerance is 0"]);
    breaks(
        "quantity = { control = \"push\" }\nweight = 0.1",
        "quantity = { control = \"push\" }\nat = \"end\"\nweight = 0.1",
        &["no control acts at the end"],
    );
    // reported where it is repeated
    let twice = changed("mass = 0.2", "mass = 0.2\nmass = 0.3");
    refused(
        &twice,
        Some(line_of(&twice, "mass = 0.3")),
        &["duplicate key", "`mass` is given twice"],
    );
}

#[test]
fn missing_things_are_named() {
    let text = changed("child = \"pole\"\n", "");
    refused(
        &text,
        Some(line_of(&text, "[mechanism.joints.hinge]")),
        &["missing field `child`", "mechanism.joints.hinge"],
    );
    refused(
        &changed("horizon = 5.0 ", "# "),
        None,
        &["missing field `horizon`", "top level"],
    );
    let text = changed(
        "[mechanism.actuators.push]",
        "[mechanism.bodies.stone]\nmass = 1.0\ninertia = [1.0, 1.0, 1.0]\n\n[mechanism.actuators.push]",
    );
    refused(
        &text,
        Some(line_of(&text, "[mechanism.bodies.stone]")),
        &["body `stone` is tied to nothing", "free = true"],
    );
    let text = changed("weight = 0.1\n", "");
    refused(
        &text,
        Some(line_of(&text, "[[costs]]\nquantity = { control")),
        &["missing field `weight`"],
    );
    refused(
        "titel = \"x\"\n",
        None,
        &["neither a problem nor a mechanism"],
    );
    refused(
        "title = \"x\"\n[bodis.a]\nmass = 1.0\n",
        Some(2),
        &["did you mean `bodies`"],
    );
}

/// A field of another table is refused with the table that has it.
#[test]
fn misplaced_fields_are_refused() {
    let mechanism = "[bodies.bob]\nmass = 1.0\nshape = { sphere = 0.1 }\nfree = true\n";
    for field in [
        "[initial]",
        "time_step = 0.01",
        "[[costs]]",
        "controls = \"held\"",
    ] {
        refused(
            &format!("{field}\n{mechanism}"),
            Some(1),
            &["is a field of a problem", "[mechanism.bodies.NAME]"],
        );
    }
    let sample = changed("", "");
    for field in ["substeps = 4", "order = 4", "tolerance = 1e-8"] {
        refused(
            &format!("{field}\n{sample}"),
            Some(1),
            &["is a field of `integrator`", "substeps = 4 }"],
        );
    }
    // a name may be meant for anything
    refused(
        &format!("name = \"x\"\n{sample}"),
        Some(1),
        &["unknown field `name`"],
    );
}

#[test]
fn what_is_not_toml_is_refused() {
    refused(
        "title = \"x\"\nthis is prose\n",
        Some(2),
        &["not valid TOML"],
    );
    refused("", None, &["case.toml", "empty"]);
    refused(" \n# nothing\n", None, &["neither"]);
    refused("<robot name=\"a\"/>", Some(1), &["no links"]);
    let folder = folder("broken");
    let of = |path: &Path| format!("{:#}", load(path).expect_err("this is no file"));
    assert!(of(&folder).contains("directory"));
    let missing = of(&folder.join("missing.toml"));
    assert!(
        missing.contains("missing.toml") && missing.contains("No such file"),
        "{missing}"
    );
    let latin = folder.join("latin.toml");
    std::fs::write(&latin, b"a = 1\nb = \"\xe9\"\n").expect("writes");
    assert!(of(&latin).contains("line 2 is not UTF-8"));
    let problem = folder.join("problem.toml");
    let text = "time_step = 0.1\nhorizon = 1.0\nmechanism = \"other.toml\"\n";
    std::fs::write(&problem, text).expect("writes");
    let e = load(&problem).expect_err("there is no mechanism file");
    assert_eq!(e.position(), Some((3, 13)), "{e:#}");
    assert!(e.message().contains("does not exist"));
    // an error of the mechanism points into its own file
    let other = folder.join("other.toml");
    let body = "[bodies.a]\nfree = true\nmass = -1.0\ninertia = [1.0, 1.0, 1.0]\n";
    std::fs::write(&other, body).expect("writes");
    let e = load(&problem)
        .and_then(|d| d.build(&Overrides::default()))
        .expect_err("negative mass");
    assert_eq!(
        (e.path(), e.position()),
        (other.as_path(), Some((3, 8))),
        "{e:#}"
    );
    std::fs::write(&other, body.replace("-1.0", "1.0")).expect("writes");
    let m = load(&problem)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("good");
    assert_eq!(
        (
            m.name.as_str(),
            m.title.as_str(),
            m.problem.coordinates.len()
        ),
        ("problem", "problem", 6)
    );
    // the mechanism alone: ten seconds
    let m = load(&other)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("good");
    assert_eq!(
        (m.problem.intervals.len(), m.problem.costs.len()),
        (1000, 0)
    );
    std::fs::remove_dir_all(&folder).expect("removes");
}

#[cfg(feature = "cli")]
#[test]
fn the_report_shows_the_line() {
    let e = build(&changed("mass = 0.2", "mass = -0.2")).expect_err("negative mass");
    let mut shown = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
    handler.render_report(&mut shown, &e).expect("renders");
    assert!(shown.contains("case.toml:14:8"), "{shown}");
    assert!(
        shown.contains("mass = -0.2") && shown.contains("every body needs mass"),
        "{shown}"
    );
}

/// Places inside of values that may have several forms.
#[test]
fn errors_inside_of_nested_values_are_found() {
    let point = |p: &str| {
        changed(
            "quantity = { joint = \"hinge\" }",
            &format!("quantity = {{ position = {{ {p} }} }}"),
        )
    };
    for (p, words) in [
        (
            "body = \"pole\", axs = \"x\"",
            ["unknown field `axs`", "did you mean `axis`"],
        ),
        (
            "body = \"pol\", axis = \"x\"",
            ["unknown body `pol`", "did you mean `pole`"],
        ),
        ("axis = \"x\"", ["missing field `body`", "costs.0.quantity"]),
        (
            "body = \"pole\", axis = [0, 0, 0]",
            ["axis [0.0, 0.0, 0.0]", "no direction"],
        ),
        ("body = \"pole\", axis = [0, 0]", ["costs.0.quantity", "3"]),
        (
            "body = \"pole\", axis = \"x\", point = [inf, 0, 0]",
            ["point", "finite"],
        ),
    ] {
        let text = point(p);
        refused(&text, Some(line_of(&text, p)), &words);
    }
    breaks(
        "shape = { box = [0.4, 0.2, 0.1] }",
        "shape = { box = [0.4, 0.2] }",
        &["mechanism.bodies.cart.shape", "list of length 3"],
    );
    breaks(
        "shape = { box",
        "shape = { bax",
        &["`bax`", "did you mean `box`"],
    );
    breaks(
        "shape = { box = [0.4",
        "shape = { box = [-0.4",
        &["not positive"],
    );
    breaks(
        "inertia = [1e-6, 1e-6, 1e-6]",
        "inertia = [1e-6, 1e-6]",
        &["three rows"],
    );
}
