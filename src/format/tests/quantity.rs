//! Quantities, constraints and where they hold.

use super::*;
use crate::control::{Cost, Objective, Relation, When};
use crate::dynamics::{Inputs, Observe, QuantityId};
use crate::mechanism::{self, About, Reaction};
use crate::optimize::Solve;
use crate::rollout::{RolloutStats, Sweep, Trajectory};
use crate::spatial::Vec3;

/// A free body above a driven, damped two-link arm, weighed and held in every way there is.
const EVERYTHING: &str = r#"time_step = 0.02
horizon = 0.2
[mechanism.bodies.upper]
mass = 1.0
shape = { box = [0.1, 0.08, 0.6] }
[mechanism.bodies.lower]
mass = 0.7
shape = { box = [0.08, 0.1, 0.5] }
[mechanism.bodies.kite]
mass = 0.3
shape = { box = [0.3, 0.2, 0.1] }
free = true
[mechanism.joints.shoulder]
kind = "spherical"
child = "upper"
child_anchor = [0.0, 0.02, 0.3]
damping = 0.1
stiffness = 2.0
[mechanism.joints.elbow]
kind = "revolute"
parent = "upper"
child = "lower"
axis = [0, 1, 0]
parent_anchor = [0.0, 0.0, -0.3]
child_anchor = [0.0, 0.0, 0.25]
[mechanism.actuators.motor]
joint = "elbow"
[mechanism.actuators.wind]
body = "kite"
force = [0.5, 0.1, 3.0]
point = [0.05, 0.02, 0.0]
[initial]
elbow = { coordinate = 0.4, rate = 1.0 }
shoulder = [0.2, -0.3, 0.1]
[initial.kite]
position = [0.0, 0.5, 1.0]
angular_velocity = [1.0, 2.0, -1.0]
[guess]
controls = { motor = [0.1, 0.4, -0.3, 0.2, 0.5, -0.1, 0.3, 0.2, 0.1, -0.4], wind = 1.2 }
"#;

fn with(quantity: &str, more: &str) -> String {
    format!("{EVERYTHING}[[costs]]\nquantity = {quantity}\nweight = 0.7\n{more}\n")
}

const QUANTITIES: [&str; 31] = [
    "{ joint = \"elbow\" }",
    "{ joint_rate = \"shoulder.ry\" }",
    "{ control = \"motor\" }",
    "{ control_rate = \"motor\" }",
    "{ position = { body = \"lower\", point = [0.0, 0.0, -0.25] } }",
    "{ velocity = { body = \"lower\", axis = [0.6, 0.0, 0.8] } }",
    "{ orientation = { body = \"kite\", target = { rpy = [0.3, 0.2, 0.1] } } }",
    "{ angular_velocity = { body = \"upper\" } }",
    "{ angular_velocity = { body = \"kite\", axis = \"z\", frame = \"body\" } }",
    "{ center_of_mass = { axis = \"z\" } }",
    "{ center_of_mass_velocity = {} }",
    "{ linear_momentum = { axis = \"x\" } }",
    "{ angular_momentum = { about = \"center_of_mass\" } }",
    "\"kinetic_energy\"",
    "\"potential_energy\"",
    "\"energy\"",
    "{ constraint_force = { joint = \"shoulder\" } }",
    "{ constraint_torque = { joint = \"elbow\", axis = \"x\" } }",
    "{ spring_force = \"shoulder.rx\" }",
    "{ damper_force = \"shoulder.ry\" }",
    "{ spring_power = \"shoulder\" }",
    "{ damper_power = \"shoulder\" }",
    "{ power = \"motor\" }",
    "{ power = \"wind\" }",
    "{ integral = { of = { joint_rate = \"elbow\" }, form = \"square\" } }",
    "{ integral = { of = { constraint_force = { joint = \"elbow\", axis = \"z\" } }, over = { range = [2, 6] } } }",
    "{ mean = { of = { control = \"motor\" }, form = \"absolute\", target = 0.05 } }",
    "{ value_at = { of = { joint = \"elbow\" }, at = { knot = 4 } } }",
    "{ sum = { terms = [{ of = \"energy\", times = 0.3 }, { of = { joint = \"elbow\" } }], plus = 1.0 } }",
    "{ ratio = { of = { integral = { of = \"kinetic_energy\" } }, by = { sum = { terms = [{ of = \"time\" }], plus = 1.0 } } } }",
    "{ ratio = { of = { control = \"motor\" }, by = { position = { body = \"lower\", axis = \"z\" } } } }",
];

/// The objective's gradient by controls and by the start's free chart, and its value along a change of the controls.
fn gradient<D: Observe>(m: &Model, system: &D) -> (Vec<f64>, Vec<f64>) {
    let mut w = system.work();
    let x0 = m.problem.start(system, &m.problem.parameters, &mut w);
    let mut t = Trajectory::new(system, m.problem.intervals.clone(), &x0.expect("a start"));
    let mut e = m.problem.evaluation();
    let mut roll = |u: &[f64], t: &mut Trajectory| {
        t.u.copy_from_slice(u);
        t.roll(system, &mut w, &mut RolloutStats::default())
            .expect("rolls");
        m.problem
            .evaluate(system, t, &mut w, &mut e)
            .expect("observed");
        e.objective
    };
    let mut numeric = vec![];
    for i in 0..m.problem.guess.len() {
        let mut along = |d: f64| {
            let mut u = m.problem.guess.clone();
            u[i] += d;
            roll(&u, &mut t)
        };
        let d = 1e-3;
        numeric
            .push((8.0 * (along(d) - along(-d)) - (along(2.0 * d) - along(-2.0 * d))) / (12.0 * d));
    }
    roll(&m.problem.guess, &mut t);
    let mut sweep = Sweep::new(system, &t);
    sweep
        .run(
            system,
            &t,
            &mut w,
            |at, w, out: &mut Inputs, y: &mut [f64]| {
                m.problem.pull(system, &t, &[], &mut e, at, w, out, y)
            },
        )
        .expect("regular");
    (sweep.u, numeric)
}

/// A quantity added after loading is seen; what was asked before, rates of controls among it, stays what it was.
#[test]
fn quantities_are_added_after_loading() {
    let text = with("{ control_rate = \"motor\" }", "target = 0.1");
    let model = || build(&text).expect("good");
    let (more, new) = {
        let old = model();
        let rise = mechanism::Quantity::Position {
            body: 0,
            point: Vec3::zeros(),
            axis: Vec3::z(),
        };
        old.observing(vec![rise; 2])
    };
    let first = model().system.outputs().len();
    assert_eq!(new, [first, first + 1].map(QuantityId::new));
    let objective = |m: &Model| {
        let of = Objective::new(m.extended(), &m.problem).expect("fits");
        of.value(&of.guess(), &mut of.work()).expect("rolls")
    };
    assert_eq!(objective(&more), objective(&model()));
    let mut weighed = more;
    weighed.problem.costs = vec![Cost::square(new[1], 0.0, 2.0, When::Knot(0))];
    let height = weighed.system.poses(&weighed.x0)[0].x.z;
    assert!(height.abs() > 1e-3);
    assert!((objective(&weighed) - height * height).abs() < 1e-12);
}

#[test]
fn every_quantity_loads_and_has_its_gradient() {
    for q in QUANTITIES {
        let m = build(&with(q, "target = 0.1")).unwrap_or_else(|e| panic!("{q}: {e:#}"));
        let (exact, numeric) = if !m.is_plain {
            gradient(&m, &m.extended())
        } else {
            gradient(&m, &m.system)
        };
        let scale = numeric.iter().fold(1e-6_f64, |m, v| m.max(v.abs()));
        for (a, b) in exact.iter().zip(&numeric) {
            assert!((a - b).abs() < 1e-6 * scale, "{q}: {exact:?} {numeric:?}");
        }
    }
}

#[test]
fn a_quantity_without_axis_has_three_components() {
    let text = with(
        "{ orientation = { body = \"kite\" } }",
        "target = [0.1, 0.2, 0.3]\nat = { range = [2, 7] }",
    );
    let m = build(&text).expect("good");
    let targets: Vec<f64> = m.problem.costs.iter().map(|c| c.target).collect();
    assert_eq!(targets, [0.1, 0.2, 0.3]);
    assert!(m.problem.costs.iter().all(|c| c.when == When::Range(2, 7)));
    let axes = [Vec3::x(), Vec3::y(), Vec3::z()];
    for (o, expected) in m.system.outputs().iter().zip(axes) {
        assert!(matches!(o, mechanism::Quantity::Orientation { axis, .. } if *axis == expected));
    }
    let few = text.replace("[0.1, 0.2, 0.3]\nat", "[0.1, 0.2]\nat");
    let words = ["has 2 numbers", "its quantity has 3", "x, y, z"];
    refused(&few, Some(line_of(&few, "target = [0.1, 0.2]\n")), &words);
    let many = with("\"energy\"", "target = [1.0, 2.0]");
    refused(
        &many,
        Some(line_of(&many, "target = [1")),
        &["give one number"],
    );
}

/// The README's problem as it stands there, and more.
fn lift(more: &str) -> Model {
    let readme = include_str!("../../../README.md");
    let block = readme
        .split("```toml")
        .nth(1)
        .and_then(|t| t.split("```").next());
    let text = block.expect("the README has a problem");
    build(&format!("{text}{more}")).expect("the README's problem is good")
}

/// The README's problem converges by both methods, to the same.
#[test]
fn the_readme_s_problem_is_solved() {
    let m = lift("");
    let by_ddp = Solve::new(&m.system, &m.problem)
        .with_options(m.options.ddp())
        .run();
    let options = m.options.shooting();
    let by_shooting = Solve::new(&m.system, &m.problem)
        .with_options(options)
        .run();
    let (a, b) = (by_ddp.expect("solved"), by_shooting.expect("solved"));
    for s in [&a, &b] {
        assert_eq!(s.status, crate::optimize::Status::Converged, "{}", s.reason);
        assert!(s.violation <= 1e-6, "{}", s.violation);
    }
    assert!((a.objective / b.objective - 1.0).abs() < 1e-4);
}

/// A problem with control rates is solved like any other, and smoothly.
#[test]
fn control_rates_are_weighed() {
    let rates = "[[costs]]\nquantity = { control_rate = \"motor\" }\nweight = 0.01\n";
    let (plain, smooth) = (lift(""), lift(rates));
    assert!(!plain.remembers && smooth.remembers);
    let remember = smooth.extended();
    let by_plain = Solve::new(&plain.system, &plain.problem)
        .with_options(plain.options.ddp())
        .run();
    let by_smooth = Solve::new(&remember, &smooth.problem)
        .with_options(smooth.options.ddp())
        .run();
    let rough = |t: &Trajectory| -> f64 { t.u.windows(2).map(|u| (u[1] - u[0]).powi(2)).sum() };
    let (a, b) = (by_plain.expect("solved"), by_smooth.expect("solved"));
    for s in [&a, &b] {
        assert_eq!(s.status, crate::optimize::Status::Converged, "{}", s.reason);
    }
    let own = b.trajectory.of_system(&smooth.system);
    let (before, after) = (rough(&a.trajectory), rough(&own));
    assert!(after < 0.8 * before, "{before} {after}");
    record(&smooth, &own, "converged", &[]).expect("records");
}

#[test]
fn names_and_units_of_quantities() {
    let text = format!(
        "{}{}",
        with(
            "{ angular_momentum = { axis = \"y\", about = \"center_of_mass\" } }",
            ""
        ),
        "[[constraints]]\nquantity = { constraint_torque = { joint = \"elbow\", axis = \"z\" } }\nless = 3.0\nat = \"running\"\n\
         [[constraints]]\nquantity = { control_rate = \"wind\" }\ngreater = -4.0\nat = { knot = 3 }\n",
    );
    let m = build(&text).expect("good");
    let about = About::CenterOfMass;
    let axis = Vec3::y();
    assert_eq!(
        m.system.outputs(),
        [
            mechanism::Quantity::AngularMomentum { axis, about },
            mechanism::Quantity::Constraint {
                joint: 1,
                kind: Reaction::Torque,
                axis: Vec3::z()
            }
        ]
    );
    assert!(m.remembers);
    let names = m.extended().quantities();
    let expected = [
        ("angular momentum y about the center of mass", "N m s"),
        ("elbow constraint torque z", "N m"),
        ("motor rate", "N m/s"),
        ("wind rate", "1/s"),
    ];
    assert_eq!(names, expected.map(|(n, u)| (n.to_owned(), u.to_owned())));
    let c = &m.problem.constraints;
    assert_eq!(
        (c[0].quantity.index(), c[0].relation, c[0].value),
        (1, Relation::Less, 3.0)
    );
    assert_eq!((c[0].when, c[1].when), (When::Running, When::Knot(3)));
    assert_eq!(
        (c[1].quantity.index(), c[1].relation),
        (3, Relation::Greater)
    );
    // a constraint of the sample holds at the end by default
    let plain = build(&changed("equals = 0.0\nat = \"end\"", "less = 0.5")).expect("good");
    assert_eq!(plain.problem.constraints[1].when, When::End);
    assert_eq!(plain.problem.constraints[1].relation, Relation::Less);
}

#[test]
fn a_hanging_arm_s_forces() {
    // at rest the shoulder carries both links; the elbow, seen from the turned upper link, the lower one
    let text = with("{ constraint_force = { joint = \"shoulder\" } }", "")
        .replace(
            "elbow = { coordinate = 0.4, rate = 1.0 }\nshoulder = [0.2, -0.3, 0.1]\n",
            "",
        )
        .replace(
            "child_anchor = [0.0, 0.02, 0.3]",
            "child_anchor = [0.0, 0.0, 0.3]",
        )
        .replace(
            "motor = [0.1, 0.4, -0.3, 0.2, 0.5, -0.1, 0.3, 0.2, 0.1, -0.4]",
            "motor = 0.0",
        );
    let m = build(&text).expect("good");
    let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.u.copy_from_slice(&m.problem.guess);
    let mut w = m.system.work();
    t.roll(&m.system, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    let which = [0, 1, 2].map(QuantityId::new);
    for k in [0, 1, 9] {
        let mut force = [0.0; 3];
        let at = t.knot(k);
        m.system
            .observe(&t.knot_point(&at), &which, &mut w, &mut force)
            .expect("a force");
        let expected = [0.0, 0.0, 1.7 * 9.81];
        assert!(
            force
                .iter()
                .zip(expected)
                .all(|(f, e)| (f - e).abs() < 1e-8),
            "{force:?}"
        );
    }
}

#[test]
fn constraints_compare_with_one_value_at_knots_there_are() {
    let at = "equals = 0.0\nat = \"end\"";
    for (to, words) in [
        (
            "at = \"end\" # nothing",
            vec!["compares its quantity with nothing", "equals = .."],
        ),
        (
            "equals = 0.0\nless = 1.0",
            vec!["has equals and less", "second constraint"],
        ),
        ("less = nan", vec!["less of a constraint is NaN"]),
        (
            "equals = 0.0\nat = { knot = 101 }",
            vec!["no knot 101", "0 to 100"],
        ),
        (
            "equals = 0.0\nat = { range = [9, 3] }",
            vec!["from 9 to 3", "holds no knot"],
        ),
        (
            "equals = 0.0\nat = { range = [9, 300] }",
            vec!["no knot 300"],
        ),
        (
            "equals = 0.0\nat = { knt = 3 }",
            vec!["`knt`", "did you mean `knot`"],
        ),
        ("equals = 0.0\nat = { knot = -3 }", vec!["not negative"]),
        (
            "equals = 0.0\nat = { range = [1] }",
            vec!["constraints.1.at"],
        ),
    ] {
        let text = changed(at, to);
        let e = format!("{:#}", build(&text).expect_err(to));
        for w in words {
            assert!(e.contains(w), "{to}: {e}");
        }
        assert!(e.starts_with("case.toml:"), "{e}");
    }
    for good in [
        "{ knot = 100 }",
        "{ range = [0, 100] }",
        "\"running\"",
        "\"end\"",
    ] {
        build(&changed(at, &format!("equals = 0.0\nat = {good}"))).expect(good);
    }
}

#[test]
fn quantities_that_mean_nothing_are_refused() {
    for (q, words) in [
        (
            "{ orientation = { body = \"kit\" } }",
            ["unknown body `kit`", "did you mean `kite`"],
        ),
        (
            "{ orientation = { body = \"kite\", target = { quaternion = [0, 0, 0, 0] } } }",
            ["is no rotation", "rpy"],
        ),
        (
            "{ angular_velocity = { body = \"kite\", frame = \"earth\" } }",
            ["`earth`", "world"],
        ),
        (
            "{ center_of_mass = { axis = \"up\" } }",
            ["axis `up`", "no direction"],
        ),
        (
            "{ angular_momentum = { about = \"com\" } }",
            ["`com`", "center_of_mass"],
        ),
        ("\"enrgy\"", ["`enrgy`", "did you mean `energy`"]),
        (
            "{ constraint_force = { joint = \"elbw\" } }",
            ["unknown joint `elbw`", "did you mean `elbow`"],
        ),
        (
            "{ constraint_torque = { joint = \"shoulder\" } }",
            ["transmits no constraint torque", "spherical"],
        ),
        (
            "{ control_rate = \"mtor\" }",
            ["unknown control `mtor`", "did you mean `motor`"],
        ),
        (
            "{ spring_force = \"elbow\" }",
            ["`elbow` has no spring", "stiffness"],
        ),
        (
            "{ damper_power = \"elbow\" }",
            ["`elbow` has no damper", "damping"],
        ),
        (
            "{ spring_power = \"sholder\" }",
            ["unknown joint or spring `sholder`", "shoulder"],
        ),
        (
            "{ power = \"mtor\" }",
            ["unknown control `mtor`", "did you mean `motor`"],
        ),
        (
            "{ sum = { terms = [{ of = { largest = { of = \"energy\" } } }] } }",
            [
                "has no place here",
                "hold the quantity itself along the way",
            ],
        ),
    ] {
        let text = with(q, "");
        refused(&text, Some(line_of(&text, q)), &words);
    }
    for q in [
        "{ constraint_force = { joint = \"elbow\" } }",
        "{ control_rate = \"motor\" }",
        "{ control = \"motor\" }",
    ] {
        for at in ["\"end\"", "{ knot = 10 }"] {
            let text = with(q, &format!("at = {at}"));
            let e = format!("{:#}", build(&text).expect_err("no interval follows"));
            assert!(e.contains("at the end"), "{e}");
        }
        // running costs leave the last knot out
        build(&with(q, "at = { range = [3, 10] }")).expect("good");
    }
}

/// The four-bar's planar joints share their forces out of the plane in any way.
#[test]
fn forces_that_are_not_unique_are_refused() {
    let text = format!(
        "{}[[constraints]]\nquantity = {{ constraint_force = {{ joint = \"b\" }} }}\nless = 5.0\nat = \"running\"\n",
        super::start::LOOP
    );
    let words = [
        "joint `b` are not unique",
        "3 constraint rows follow from others",
    ];
    refused(&text, Some(line_of(&text, "quantity")), &words);
}

#[test]
fn what_is_asked_for_is_recorded() {
    let text = with(
        "\"energy\"",
        "[[record]]\nquantity = { control_rate = \"motor\" }\n\
         [[record]]\nquantity = { constraint_force = { joint = \"elbow\", axis = \"z\" } }\n\
         [[record]]\nquantity = { center_of_mass = {} }\n\
         [[record]]\nquantity = \"energy\"",
    );
    let m = build(&text).expect("good");
    // not of a cost
    assert!(!m.remembers);
    let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.u.copy_from_slice(&m.problem.guess);
    let mut w = m.system.work();
    t.roll(&m.system, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    let r = record(&m, &t, "simulated", &[]).expect("records");
    let channel = |name: &str| {
        let found = r.channels.iter().find(|c| c.name == name);
        found.unwrap_or_else(|| panic!("there is no {name}"))
    };
    let rates = channel("motor rate");
    assert_eq!(rates.unit, "N m/s");
    let rate = rates.values[1].expect("a value");
    assert!((rate - 0.3 / 0.02).abs() < 1e-9, "{rate}");
    assert_eq!((rates.values[0], rates.values[10]), (Some(0.0), None));
    let force = channel("elbow constraint force z");
    assert!(force.values[9].is_some() && force.values[10].is_none());
    for axis in ["x", "y", "z"] {
        assert!(channel(&format!("center of mass {axis}")).values[10].is_some());
    }
    // the energy that is always written
    let (asked, own) = (channel("energy"), channel("total"));
    for (a, b) in asked.values.iter().zip(&own.values) {
        let (a, b) = (a.expect("a value"), b.expect("a value"));
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    let wrong = with("\"energy\"", "[[record]]\nquantity = { joint = \"elbw\" }");
    let words = ["unknown joint `elbw`", "did you mean `elbow`"];
    refused(&wrong, Some(line_of(&wrong, "elbw")), &words);
}
