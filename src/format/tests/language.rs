//! What problems can say beyond costs of quantities: starts that are parameters, extremes, sums along the way.

use super::*;
use crate::control::{Objective, ObjectiveGradient, Point};

/// A damped, driven pendulum whose start is what its motor follows.
const STANCE: &str = r#"time_step = 0.02
horizon = 0.4
[mechanism.bodies.rod]
mass = 1.0
shape = { box = [0.05, 0.05, 0.6] }
[mechanism.joints.hinge]
kind = "revolute"
child = "rod"
axis = [0, 1, 0]
child_anchor = [0, 0, 0.3]
damping = 0.1
limits = [-1.0, 1.0]
stiffness = 2.0
[mechanism.actuators.motor]
joint = "hinge"
[policy.gains]
stance = { value = 0.4, bounds = [-0.5, 0.9] }
speed = { value = 0.7 }
[[policy.loops]]
control = "motor"
joint = "hinge"
kp = 20.0
kd = 1.0
reference = "stance"
[initial]
hinge = { coordinate = "stance", rate = "speed" }
[[costs]]
quantity = { joint = "hinge" }
weight = 3.0
[[costs]]
quantity = { control = "motor" }
weight = 0.2
"#;

/// Value and gradient at a point a little off the guess.
fn gradient(m: &Model) -> (Point, ObjectiveGradient) {
    let objective = Objective::new(m.extended(), &m.problem).expect("fits");
    let mut at = objective.guess();
    let decided = at.controls.iter_mut().enumerate();
    decided.for_each(|(i, u)| *u += 0.3 * (i as f64).sin());
    let g = objective.value_and_gradient(&at, &mut objective.work());
    (at.clone(), g.expect("swept"))
}

/// The gradient by parameters against differences.
fn check(m: &Model) {
    let (at, g) = gradient(m);
    let objective = Objective::new(m.extended(), &m.problem).expect("fits");
    let mut w = objective.work();
    let largest = g.parameters.iter().fold(1e-3_f64, |m, g| m.max(g.abs()));
    for i in m.problem.free_parameters() {
        let mut along = |e: f64| {
            let mut moved = at.clone();
            moved.parameters[i] += e;
            objective.value(&moved, &mut w).expect("rolls")
        };
        let d = 1e-4;
        let numeric =
            (8.0 * (along(d) - along(-d)) - (along(2.0 * d) - along(-2.0 * d))) / (12.0 * d);
        let error = (g.parameters[i] - numeric).abs();
        assert!(error < 1e-7 * largest, "{i}: {} {numeric}", g.parameters[i]);
    }
}

#[test]
fn a_start_may_be_a_parameter() {
    let m = build(STANCE).expect("good");
    let hinge = |m: &Model| m.system.coordinate(&m.x0, 0, 0);
    assert!((hinge(&m) - 0.4).abs() < 1e-12);
    check(&m);
    // a number of the mechanism that acts besides; short, as a list, and beside another number that is free
    let rest = STANCE.replace(
        "{ coordinate = \"stance\", rate = \"speed\" }",
        "{ coordinate = [\"relaxed\"], rate = 0.3 }",
    ) + "[parameters.relaxed]\nof = \"joints.hinge.rest\"\nvalue = 0.2\nbounds = [-0.9, 0.9]\n";
    let m = build(&rest).expect("good");
    assert!((hinge(&m) - 0.2).abs() < 1e-12);
    check(&m);
    let short = STANCE.replace(
        "{ coordinate = \"stance\", rate = \"speed\" }",
        "\"stance\"",
    );
    assert!((hinge(&build(&short).expect("good")) - 0.4).abs() < 1e-12);
    let shared = STANCE.replace(
        "{ coordinate = \"stance\", rate = \"speed\" }",
        "{ rate = \"initial hinge\", coordinate = 0.25, free = { coordinate = [-0.5, 0.5] } }",
    );
    let m = build(&shared).expect("good");
    assert_eq!(m.problem.rates, [0.25]);
    check(&m);
}

#[test]
fn a_start_that_is_no_parameter_is_refused() {
    let given = "{ coordinate = \"stance\", rate = \"speed\" }";
    for (start, words) in [
        (
            "\"stanc\"",
            ["unknown parameter `stanc`", "did you mean `stance`"],
        ),
        (
            "{ coordinate = \"stance\", free = { coordinate = [-0.5, 0.5] } }",
            ["starts at `stance`, and is free", "one of both"],
        ),
        (
            "\"speed\"",
            [
                "`speed`, which may be between -inf and inf",
                "limits -1 and 1",
            ],
        ),
        (
            "[\"stance\", 0.0]",
            ["has 2 numbers, expected 1", "one number for each"],
        ),
    ] {
        let text = STANCE.replace(given, start);
        let e = format!("{:#}", build(&text).expect_err(start));
        let line = line_of(&text, &format!("hinge = {start}"));
        assert!(words.iter().all(|w| e.contains(w)), "{e}");
        assert!(
            e.starts_with(&format!("case.toml:{line}:")),
            "{e}, line {line}"
        );
    }
}

/// One problem said twice: costs along the way, and their integrals at the end.
#[test]
fn integrals_follow_the_problem_s_quadrature() {
    const PHASES: &str = r#"quadrature = "trapezoidal"
time_step = 0.02
phases = [{ name = "out", duration = 0.12, bounds = [0.05, 0.3] }, { name = "back", duration = 0.2, steps = 7, bounds = [0.1, 0.5] }]
"#;
    let base = STANCE.replace("time_step = 0.02\nhorizon = 0.4\n", PHASES);
    let base = &base[..base.find("[[costs]]").expect("there")];
    let base = base
        .replace("reference = \"stance\"", "reference = \"stance\"\n")
        .replace(
            "[policy.gains]",
            "[policy]\nfeed_forward = true\n[policy.gains]",
        );
    let quantities = [
        ("{ joint = \"hinge\" }", 0.2),
        ("{ joint_rate = \"hinge\" }", -0.1),
        ("{ control = \"motor\" }", 0.1),
        ("{ power = \"motor\" }", 0.0),
        (
            "{ constraint_force = { joint = \"hinge\", axis = \"z\" } }",
            5.0,
        ),
        // an integral of an integral, and of a mean
        (
            "{ integral = { of = { joint = \"hinge\" }, form = \"square\", over = { phase = \"out\" } } }",
            0.01,
        ),
        (
            "{ mean = { of = { joint_rate = \"hinge\" }, over = { phase = \"back\" } } }",
            0.3,
        ),
        (
            "{ integral = { of = { constraint_force = { joint = \"hinge\", axis = \"x\" } } } }",
            0.3,
        ),
    ];
    for (q, target) in quantities {
        for at in [
            "\"running\"",
            "{ range = [2, 8] }",
            "{ phase = \"out\" }",
            "{ phase = \"back\" }",
        ] {
            for form in ["\"square\"", "\"linear\"", "{ huber = 0.1 }"] {
                let direct = format!(
                    "{base}\n[[costs]]\nquantity = {q}\ntarget = {target}\nat = {at}\nform = {form}\nweight = 0.7\n"
                );
                let summed = format!(
                    "{base}\n[[costs]]\nquantity = {{ integral = {{ of = {q}, target = {target}, over = {at}, form = {form} }} }}\nat = \"end\"\nform = \"linear\"\nweight = 0.7\n"
                );
                let [a, b] = [direct, summed].map(|text| {
                    let m = build(&text).unwrap_or_else(|e| panic!("{q} {at}: {e:#}"));
                    gradient(&m).1
                });
                let what = format!("{q} {at} {form}");
                let size = a.objective.abs().max(1e-3);
                assert!(
                    (a.objective - b.objective).abs() < 1e-11 * size,
                    "{what}: {} {}",
                    a.objective,
                    b.objective
                );
                let all = |g: &ObjectiveGradient| [&g.controls[..], &g.parameters].concat();
                let (a, b) = (all(&a), all(&b));
                let largest = a.iter().fold(1e-3_f64, |m, g| m.max(g.abs()));
                for (a, b) in a.iter().zip(&b) {
                    assert!((a - b).abs() < 1e-9 * largest, "{what}: {a} {b}");
                }
            }
        }
    }
}

/// The mean over a phase is the integral by its duration, at the duration that is found, not the one at the start.
#[test]
fn means_are_by_the_durations_found() {
    let text = STANCE.replace(
        "time_step = 0.02\nhorizon = 0.4\n",
        "time_step = 0.02\nphases = [{ name = \"out\", duration = 0.12, bounds = [0.05, 0.3] }, { name = \"back\", duration = 0.2 }]\n",
    );
    let base = &text[..text.find("[[costs]]").expect("there")];
    for rule in ["left", "trapezoidal"] {
        let of = |what: &str| {
            let text = format!(
                "quadrature = \"{rule}\"\n{base}\n[[costs]]\nquantity = {{ {what} = {{ of = {{ joint = \"hinge\" }}, over = {{ phase = \"out\" }} }} }}\nform = \"linear\"\nat = \"end\"\nweight = 1.0\n"
            );
            let m = build(&text).expect("good");
            let objective = Objective::new(m.extended(), &m.problem).expect("fits");
            let mut at = objective.guess();
            let place = m.parameters().iter().position(|p| p.name == "out");
            at.parameters[place.expect("free")] = 0.17;
            objective.value(&at, &mut objective.work()).expect("rolls")
        };
        let (mean, integral) = (of("mean"), of("integral"));
        assert!(
            (mean * 0.17 - integral).abs() < 1e-14,
            "{rule}: {mean} {integral}"
        );
    }
}

#[test]
fn extremes_begin_at_the_guess_s_and_are_costs_only() {
    let cost = |q: &str, more: &str| {
        let text = &STANCE[..STANCE.find("[[costs]]").expect("there")];
        format!("{text}\n[[costs]]\nquantity = {q}\n{more}\n")
    };
    let linear = "form = \"linear\"\nweight = 1.0";
    let m = build(&cost(
        "{ largest = { of = { joint_rate = \"hinge\" }, size = true } }",
        linear,
    ))
    .expect("good");
    let objective = Objective::new(m.extended(), &m.problem).expect("fits");
    let mut w = objective.work();
    let value = objective.value(&objective.guess(), &mut w).expect("rolls");
    // the constraints hold at the guess, one of them exactly
    let all = &w.evaluation().constraints;
    assert_eq!(all.len(), 2 * 20);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(most.abs() < 1e-12, "{most}");
    assert_eq!(value, *m.problem.parameters.last().expect("the bound"));
    assert!(value > 0.5, "{value}");
    let names: Vec<String> = m.parameters().into_iter().map(|p| p.name).collect();
    assert_eq!(
        names.last().map(String::as_str),
        Some("largest size of hinge rate")
    );
    let smallest = "{ smallest = { of = { joint = \"hinge\" }, over = { range = [3, 20] } } }";
    build(&cost(smallest, "form = \"linear\"\nweight = -1.0")).expect("good");
    for (q, more, words) in [
        (
            "{ largest = { of = \"energy\" } }",
            "weight = 1.0",
            "not linear",
        ),
        (
            "{ largest = { of = \"energy\" } }",
            "form = \"linear\"\nweight = -1.0",
            "wrong way",
        ),
        (smallest, linear, "negative weight"),
        (
            "{ largest = { of = \"energy\" } }",
            "form = \"linear\"\nweight = 1.0\nat = { knot = 3 }",
            "counts once",
        ),
        (
            "{ smallest = { of = { joint = \"hinge\" }, size = true } }",
            "form = \"linear\"\nweight = -1.0",
            "no convex bound",
        ),
    ] {
        let e = format!("{:#}", build(&cost(q, more)).expect_err(q));
        assert!(e.contains(words), "{e}");
    }
}

/// Two pendulums under one policy.
fn scenarios(first: &str, second: &str, top: &str) -> String {
    let text = STANCE.replace(
        "quantity = { joint = \"hinge\" }\n",
        "name = \"place\"\nquantity = { joint = \"hinge\" }\n",
    );
    assert_ne!(text, STANCE);
    format!(
        "{top}\n{text}\n[[scenarios]]\nname = \"a\"\n{first}\n[[scenarios]]\nname = \"b\"\n{second}\n"
    )
}

#[test]
fn scenarios_have_targets_of_their_own() {
    let varying = "targets = { place = { sine = { amplitude = 0.3, frequency = 2.0 } } }";
    let both = build(&scenarios(
        "targets = { place = 0.3 }\nweight = 2.0",
        varying,
        "",
    ))
    .expect("good");
    let value = |m: &Model| {
        let objective = Objective::new(m.extended(), &m.problem).expect("fits");
        objective
            .value(&objective.guess(), &mut objective.work())
            .expect("rolls")
    };
    // each by itself
    let one = |target: &str| {
        let text = STANCE.replacen(
            "weight = 3.0",
            &format!("weight = 3.0\ntarget = {target}"),
            1,
        );
        value(&build(&text).expect("good"))
    };
    let expected = 2.0 * one("0.3") + one("{ sine = { amplitude = 0.3, frequency = 2.0 } }");
    let sum = value(&both);
    assert!(
        (sum - expected).abs() < 1e-12 * expected,
        "{sum} {expected}"
    );
    check(&both);
    let e = format!(
        "{:#}",
        build(&scenarios("targets = { plce = 0.3 }", "", "")).expect_err("unknown")
    );
    assert!(
        e.contains("no cost or constraint is called `plce`") && e.contains("`place`"),
        "{e}"
    );
}

#[test]
fn scenarios_are_disturbed_the_same_way_every_time() {
    let start = STANCE.replace("{ coordinate = \"stance\", rate = \"speed\" }", "0.1");
    let noisy = |noise: &str| {
        let more = format!(
            "{start}\n[[scenarios]]\nname = \"a\"\n[[scenarios]]\nname = \"b\"\nnoise = {noise}\n"
        );
        build(&more)
    };
    let m = noisy("{ seed = 3, coordinates = { hinge = 0.05 }, controls = { motor = 0.2 } }")
        .expect("good");
    let q = &m.problem.coordinates;
    assert!(
        q[0] == 0.1 && (q[1] - 0.1).abs() > 1e-3 && (q[1] - 0.1).abs() < 0.25,
        "{q:?}"
    );
    assert_eq!(m.problem.rates, [0.0; 2]);
    let again = noisy("{ seed = 3, coordinates = { hinge = 0.05 } }").expect("good");
    assert_eq!(again.problem.coordinates, m.problem.coordinates);
    let other = noisy("{ seed = 4, coordinates = { hinge = 0.05 } }").expect("good");
    assert_ne!(other.problem.coordinates, m.problem.coordinates);
    check(&m);
    // at the same start the first control differs by the noise
    let acted = |m: &Model| {
        let objective = Objective::new(m.extended(), &m.problem).expect("fits");
        let mut w = objective.work();
        objective.value(&objective.guess(), &mut w).expect("rolls");
        m.alone(w.trajectory()).expect("observed").remove(1)
    };
    let (noise, calm) = (acted(&m), acted(&again));
    let first = noise.control(0)[0] - calm.control(0)[0];
    assert!(first.abs() > 1e-6, "{first}");
    for (noise, words) in [
        (
            "{ coordinates = { hing = 0.1 } }",
            "noise of `hing`, which is unknown",
        ),
        (
            "{ controls = { motor = -0.1 } }",
            "noise of `motor` is -0.1",
        ),
    ] {
        let e = format!("{:#}", noisy(noise).expect_err(noise));
        assert!(e.contains(words), "{e}");
    }
    let tied = scenarios("", "noise = { coordinates = { hinge = 0.1 } }", "");
    let e = format!("{:#}", build(&tied).expect_err("a parameter decides"));
    assert!(e.contains("whose start is a parameter"), "{e}");
}

/// The worst cost begins at the larger of those of two problems of their own, by either rule.
#[test]
fn the_worst_case_is_by_the_problem_s_quadrature() {
    for rule in ["left", "trapezoidal"] {
        let rule = format!("quadrature = \"{rule}\"");
        let heavy = "set = { \"bodies.rod.mass\" = 2.0 }";
        let m = build(&scenarios("", heavy, &format!("worst_case = true\n{rule}"))).expect("good");
        let worst = *m.problem.parameters.last().expect("the worst cost");
        let each = ["mass = 1.0", "mass = 2.0"].map(|mass| {
            // the inertia stays
            let text = STANCE.replace("mass = 1.0\nshape = { box = [0.05, 0.05, 0.6] }", &format!("{mass}\ninertia = [0.030208333333333334, 0.030208333333333334, 0.0004166666666666667]"));
            let m = build(&format!("{rule}\n{text}")).expect("good");
            let objective = Objective::new(m.extended(), &m.problem).expect("fits");
            objective.value(&objective.guess(), &mut objective.work()).expect("rolls")
        });
        let largest = each[0].max(each[1]);
        assert!(
            (worst / largest - 1.0).abs() < 1e-12,
            "{rule}: {worst} {each:?}"
        );
    }
}
