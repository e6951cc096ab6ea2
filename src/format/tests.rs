//! Good and broken files.

mod broken;
mod contact;
mod documented;
mod files;
mod hold;
mod kept;
mod language;
mod parameter;
mod parameters;
mod quantity;
mod start;
mod states;

use super::problem::{MechanismSpec, ProblemSpec};
use super::*;
use crate::dynamics::Step;
use crate::integrator::Mechanical;
use crate::mechanism;
use crate::optimize::ddp::Smoothing;
use std::path::PathBuf;

/// The sample of the interface's description, solvable by this version.
const SAMPLE: &str = r#"title = "Cart-pole swing-up"
time_step = 0.05            # s
horizon = 5.0               # s
integrator = "maximal"

[mechanism]                 # or: mechanism = "cartpole.toml" / "robots/a1.urdf"
gravity = [0.0, 0.0, -9.81]

[mechanism.bodies.cart]
mass = 1.0
shape = { box = [0.4, 0.2, 0.1] }          # gives the inertia; or inertia = [xx, yy, zz] / 3x3, about the center of mass

[mechanism.bodies.pole]
mass = 0.2
inertia = [1e-6, 1e-6, 1e-6]

[mechanism.joints.rail]
kind = "prismatic"
child = "cart"                             # parent = "world" is the default
axis = [1.0, 0.0, 0.0]

[mechanism.joints.hinge]
kind = "revolute"
parent = "cart"
child = "pole"
axis = [0.0, 1.0, 0.0]
child_anchor = [0.0, 0.0, 0.5]             # from the child's center of mass; parent_anchor likewise

[mechanism.actuators.push]
joint = "rail"
bounds = [-3.0, 3.0]                       # N

[initial]                                  # joint coordinates; rates default to zero
rail = 0.0
hinge = 0.0

[guess]
controls = { push = 0.01 }                 # constant; or a file, or noise = { scale, seed }

[[costs]]                                  # 1/2 weight |quantity - target|^2, times the interval for running costs
quantity = { joint = "hinge" }
target = 3.141592653589793
weight = 0.01

[[costs]]
quantity = { control = "push" }
weight = 0.1

[[constraints]]
quantity = { joint = "hinge" }
equals = 3.141592653589793
at = "end"

[[constraints]]
quantity = { joint_rate = "hinge" }
equals = 0.0
at = "end"

[method]
name = "shooting"
tolerance = 1e-6
"#;

/// What the sample says of its method.
const METHOD: &str = "name = \"shooting\"\ntolerance = 1e-6";

fn parse(text: &str) -> Result<Document, FormatError> {
    Document::new(Path::new("case.toml"), text)
}

fn build(text: &str) -> Result<Model, FormatError> {
    parse(text)?.build(&Overrides::default())
}

fn sample() -> Model {
    build(SAMPLE).expect("the sample is good")
}

/// The sample with a line changed; it must be there.
fn changed(from: &str, to: &str) -> String {
    assert!(SAMPLE.contains(from), "{from}");
    SAMPLE.replacen(from, to, 1)
}

/// The line in which a text stands, from 1.
fn line_of(text: &str, part: &str) -> usize {
    let at = text.find(part).expect("the text holds the part");
    text[..at].matches('\n').count() + 1
}

/// A directory of its own.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("least-action-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a temporary directory");
    path
}

/// `text` is refused, pointing at `line`, in words that hold all of `words`.
#[track_caller]
fn refused(text: &str, line: Option<usize>, words: &[&str]) {
    let e = build(text).expect_err("this file is broken");
    let said = format!("{e:#}");
    assert_eq!(e.position().map(|p| p.0), line, "{said}");
    for w in words {
        assert!(said.contains(w), "`{w}` is missing in: {said}");
    }
}

/// The sample with `from` replaced by `to` is refused at the line of `to`.
#[track_caller]
fn breaks(from: &str, to: &str, words: &[&str]) {
    let text = changed(from, to);
    refused(&text, Some(line_of(&text, to.trim_start())), words);
}

#[test]
fn the_sample_loads() {
    let m = sample();
    assert_eq!(m.title, "Cart-pole swing-up");
    assert_eq!(m.problem.coordinates, [0.0, 0.0]);
    assert_eq!(m.system.dims().nu, 1);
    assert_eq!(m.problem.intervals, [0.05; 100]);
    assert_eq!(m.problem.guess, [0.01; 100]);
    assert_eq!(m.problem.bounds, [(-3.0, 3.0)]);
    assert_eq!(m.options.ddp().tolerance, 1e-6);
    assert_eq!(m.options.ddp().smoothing, Some(Smoothing::default()));
    let hard = build(&changed(METHOD, "smoothing = false")).expect("built");
    assert_eq!(hard.options.ddp().smoothing, None);
    let relaxed = build(&changed(METHOD, "smoothing = { start = 1.0 }"));
    let levels = Smoothing {
        start: 1.0,
        ..Smoothing::default()
    };
    let options = relaxed.expect("it may be relaxed").options;
    assert_eq!(options.ddp().smoothing, Some(levels));
    // the hinge's coordinate serves a cost and a constraint
    let rate = mechanism::Quantity::Rate {
        joint: 1,
        direction: 0,
    };
    let angle = mechanism::Quantity::Coordinate {
        joint: 1,
        direction: 0,
    };
    assert_eq!(
        m.system.outputs(),
        [angle, mechanism::Quantity::Control(0), rate]
    );
    let quantities = |list: &[usize]| list.to_vec();
    assert_eq!(
        quantities(
            &m.problem
                .costs
                .iter()
                .map(|c| c.quantity.index())
                .collect::<Vec<_>>()
        ),
        [0, 1]
    );
    assert_eq!(
        quantities(
            &m.problem
                .constraints
                .iter()
                .map(|c| c.quantity.index())
                .collect::<Vec<_>>()
        ),
        [0, 2]
    );
    // the pole hangs from the cart
    let poses = m.system.poses(&m.x0);
    assert_eq!(poses[1].x.as_slice(), [0.0, 0.0, -0.5]);
}

#[test]
fn overrides_change_the_grid() {
    let d = parse(&changed(
        "controls = { push = 0.01 }",
        "controls = { push = 0.01 }\nnoise = { scale = 0.5, seed = 3 }",
    ))
    .expect("good");
    let build = |o: Overrides| d.build(&o).expect("good").problem;
    let own = build(Overrides::default());
    let fine = build(Overrides {
        duration: Some(1.0),
        time_step: Some(0.01),
        ..Overrides::default()
    });
    assert_eq!(fine.intervals.len(), 100);
    assert_eq!(fine.intervals[0], 0.01);
    // the same seed gives the same noise, another one another
    assert_eq!(own.guess, build(Overrides::default()).guess);
    let other = build(Overrides {
        seed: Some(4),
        ..Overrides::default()
    });
    assert_ne!(own.guess, other.guess);
    let spread = own.guess.iter().map(|u| (u - 0.01).powi(2)).sum::<f64>() / 100.0;
    assert!(
        (0.1..0.5).contains(&spread),
        "variance {spread}, expected about 0.25"
    );
    let wrong = d
        .build(&Overrides {
            duration: Some(0.12),
            ..Overrides::default()
        })
        .expect_err("0.12 / 0.05");
    assert!(wrong.to_string().contains("command line"), "{wrong}");
}

#[test]
fn an_integrator_is_a_name_or_a_table_and_the_command_line_comes_first() {
    let choice = |line: &str, o: &Overrides| {
        let text = changed("integrator = \"maximal\"", line);
        let model = parse(&text).expect("good").build(o);
        model.map(|m| m.system.choice()).map_err(|e| e.to_string())
    };
    let own = Overrides::default();
    let order = |line: &str| choice(line, &own).map(|c| c.order());
    assert_eq!(order("integrator = \"auto\""), Ok(2));
    assert_eq!(order("integrator = { name = \"maximal\" }"), Ok(2));
    assert_eq!(
        order("integrator = { name = \"maximal\", order = 4 }"),
        Ok(4)
    );
    let six = Overrides {
        order: Some(6),
        ..Overrides::default()
    };
    let four = "integrator = { name = \"maximal\", order = 4 }";
    assert_eq!(choice(four, &six).map(|c| c.order()), Ok(6));
    let e = order("integrator = { name = \"maximal\", order = 3 }").expect_err("there is none");
    assert!(e.contains("of order 3"), "{e}");
    let e = order("integrator = \"maximl\"").expect_err("there is none");
    assert!(e.contains("unknown integrator `maximl`"), "{e}");
}

#[test]
fn controls_given_per_step_are_held_on_a_finer_grid() {
    let text = changed("horizon = 5.0", "horizon = 0.15").replacen(
        "push = 0.01",
        "push = [1.0, 2.0, 3.0]",
        1,
    );
    let fine = Overrides {
        time_step: Some(0.025),
        duration: Some(0.2),
        ..Overrides::default()
    };
    let m = parse(&text).expect("good").build(&fine).expect("good");
    assert_eq!(m.problem.guess, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
}

/// Targets that are functions of time have values at the knots of the command line; a list of numbers for the file's knots has none.
#[test]
fn varying_targets_follow_the_time_step() {
    let with = |target: &str| {
        let text = changed(
            "controls = { push = 0.01 }",
            "controls = { push = 0.01 }\n[[costs]]\nquantity = { control = \"push\" }\nweight = 1.0",
        );
        parse(&text.replace("weight = 1.0", &format!("weight = 1.0\ntarget = {target}")))
    };
    let fine = Overrides {
        time_step: Some(0.025),
        duration: Some(1.0),
        ..Overrides::default()
    };
    let sine = with("{ sine = { amplitude = 0.5, frequency = 1.5 } }").expect("good");
    let profile = &sine.build(&fine).expect("good").problem.profiles[0];
    assert_eq!(profile.len(), 41);
    for (k, v) in profile.iter().enumerate() {
        let expected = 0.5 * (std::f64::consts::TAU * 1.5 * 0.025 * k as f64).sin();
        assert!((v - expected).abs() < 1e-12, "{k}: {v} {expected}");
    }
    let spline = with("{ spline = [[0.0, 0.0], [0.5, 1.0]] }").expect("good");
    let profile = &spline.build(&fine).expect("good").problem.profiles[0];
    assert!(
        (profile[10] - 0.5).abs() < 1e-12 && profile[40] == 1.0,
        "{profile:?}"
    );
    let own = sine.build(&Overrides::default()).expect("good");
    let numbers = vec!["0.1"; own.problem.intervals.len() + 1].join(", ");
    let list = with(&format!("{{ knots = [{numbers}] }}")).expect("good");
    assert!(list.build(&Overrides::default()).is_ok());
    let e = list.build(&fine).expect_err("other knots").to_string();
    assert!(e.contains("the command line asks for other knots"), "{e}");
}

#[test]
fn a_problem_survives_json() {
    let spec: ProblemSpec = toml::from_str(SAMPLE).expect("good");
    let text = serde_json::to_string(&spec).expect("writes");
    let back: ProblemSpec = serde_json::from_str(&text).expect("reads");
    assert_eq!(spec, back);
    let again: ProblemSpec =
        toml::from_str(&toml::to_string(&spec).expect("writes")).expect("reads");
    assert_eq!(spec, again);
    assert!(matches!(spec.mechanism, MechanismSpec::Inline(m) if m.bodies.len() == 2));
}
