//! Contacts, limits, and how steps solve for them.

use super::problem::{ConeSpec, ContactMethodSpec, ImpactsSpec};
use super::*;
use crate::mechanism::Range;

/// A box that slides on a rail above a floor.
const SLIDER: &str = r#"time_step = 0.01
horizon = 0.1
[contact]
cone = "linearized"
directions = 6
impacts = "aligned"
kappa = 1e-8
warm_start = false
max_iterations = 500
[mechanism.half_spaces.floor]
normal = [0, 0, 2]
offset = -0.5
friction = 0.5
[mechanism.bodies.block]
mass = 1.0
shape = { box = [0.2, 0.2, 0.2] }
[mechanism.bodies.block.contacts.corners]
friction = 0.5
[mechanism.bodies.block.contacts.tip]
shape = { sphere = 0.05 }
position = [0.3, 0.0, 0.0]
restitution = 0.25
[mechanism.joints.rail]
kind = "prismatic"
child = "block"
axis = [1, 0, 0]
friction = 0.1
limits = [-inf, 2]
[mechanism.joints.arm]
kind = "cylindrical"
parent = "block"
child = "wheel"
axis = [0, 1, 0]
limits = { d = [-0.5, 0.5], angle = [0.1, 7.0] }
restitution = [0.3, 0.4]
[mechanism.bodies.wheel]
mass = 1.0
shape = { sphere = 0.1 }
[mechanism.actuators.push]
joint = "rail"
gain = 2.0
effort_limits = [-4.0, inf]
[initial]
rail = 2.0
arm = [0.0, 6.5]
[method]
smoothing = { start = 1e-1 }
"#;

/// The slider with a line changed is refused at that line.
#[track_caller]
fn wrong(from: &str, to: &str, words: &[&str]) {
    assert!(SLIDER.contains(from), "{from}");
    let text = SLIDER.replacen(from, to, 1);
    refused(&text, Some(line_of(&text, to)), words);
}

#[test]
fn contacts_limits_and_their_settings_are_read() {
    let d = parse(SLIDER).expect("good");
    let spec = d.problem().expect("a problem").clone();
    let set = ContactMethodSpec {
        cone: ConeSpec::Linearized,
        directions: Some(6),
        impacts: Some(ImpactsSpec::Aligned),
        kappa: 1e-8,
        warm_start: false,
        max_iterations: 500,
    };
    assert_eq!(spec.contact, set);
    assert!(spec.method.smoothing.is_some());
    let m = d.build(&Overrides::default()).expect("good");
    let built = m.system.mechanism();
    // the corners, and one of the ball
    assert_eq!(built.contacts.len(), 9);
    assert_eq!(built.contacts[0].name, "block.corners --- on floor");
    assert_eq!(built.contacts[8].name, "block.tip on floor");
    assert_eq!(built.friction(&built.contacts[0]), 0.5);
    assert_eq!(built.friction(&built.contacts[8]), 0.0);
    assert_eq!(built.restitution(&built.contacts[8]), 0.25);
    assert_eq!(built.half_spaces[0].normal.as_slice(), [0.0, 0.0, 1.0]);
    let limits = |j: usize, i: usize| {
        let d = &built.joints[j].directions[i];
        (d.lower, d.upper)
    };
    assert_eq!(limits(0, 0), (f64::NEG_INFINITY, 2.0));
    assert_eq!(limits(1, 0), (-0.5, 0.5));
    assert_eq!(limits(1, 1), (0.1, 7.0));
    let restitution = |j: usize| -> Vec<f64> {
        let each = built.joints[j].directions.iter();
        each.map(|d| d.restitution).collect()
    };
    assert_eq!(
        (restitution(0), restitution(1)),
        (vec![0.0], vec![0.3, 0.4])
    );
    assert_eq!(
        built.actuators[0].effort_limits,
        Range::new(-4.0, f64::INFINITY)
    );
    // open sides survive both forms
    let text = serde_json::to_string(&spec).expect("writes");
    assert_eq!(spec, serde_json::from_str(&text).expect("reads"));
    let text = toml::to_string(&spec).expect("writes");
    assert_eq!(spec, toml::from_str(&text).expect("reads"));
    // what is not said
    let plain: ProblemSpec = toml::from_str(SAMPLE).expect("good");
    assert_eq!(plain.contact, ContactMethodSpec::default());
    assert_eq!(plain.contact.kappa, 1e-9);
}

#[test]
fn a_mechanism_alone_has_half_spaces() {
    let m = build(
        "half_spaces.floor = {}\n[bodies.ball]\nmass = 1.0\nshape = { sphere = 0.1 }\nfree = true\n\
         contacts.skin = { friction = 0.3 }\n",
    )
    .expect("good");
    let built = m.system.mechanism();
    assert_eq!(built.contacts.len(), 1);
    assert_eq!(built.contacts[0].name, "ball.skin on floor");
}

#[test]
fn wrong_contacts_are_named() {
    wrong(
        "restitution = 0.25",
        "restitution = 1.5",
        &[
            "restitution of contact `tip` of body `block` is 1.5",
            "0 to 1",
        ],
    );
    wrong(
        "position = [0.3, 0.0, 0.0]",
        "positon = [0.3, 0.0, 0.0]",
        &[
            "unknown field `positon` in `mechanism.bodies.block.contacts.tip`",
            "did you mean `position`",
        ],
    );
    wrong(
        "shape = { sphere = 0.05 }",
        "shape = { sphere = -0.05 }",
        &["contact `tip` of body `block`", "positive"],
    );
    wrong(
        "normal = [0, 0, 2]",
        "normal = [0, 0, 0]",
        &["half-space `floor`", "not zero"],
    );
    wrong(
        "normal = [0, 0, 2]",
        "normal = [0, 0]",
        &["mechanism.half_spaces.floor.normal"],
    );
    wrong(
        "offset = -0.5",
        "ofset = -0.5",
        &["unknown field `ofset`", "did you mean `offset`"],
    );
    wrong(
        "[mechanism.half_spaces.floor]",
        "[mechanism.half_space.floor]",
        &["unknown field `half_space`", "did you mean `half_spaces`"],
    );
    wrong(
        "friction = 0.5\n[mechanism.bodies.block]",
        "friction = -0.5\n[mechanism.bodies.block]",
        &["friction of half-space `floor` is -0.5"],
    );
}

#[test]
fn wrong_limits_are_named() {
    for given in ["[2, -2]", "[1, 1]", "[nan, 1]", "[-inf, inf]"] {
        wrong(
            "limits = [-inf, 2]",
            &format!("limits = {given}"),
            &["limits of joint `rail` are [", "the first below the second"],
        );
    }
    for given in ["[1]", "3.0", "[0, 1, 2]", "\"far\"", "[[0, 1]]"] {
        wrong(
            "limits = [-inf, 2]",
            &format!("limits = {given}"),
            &["mechanism.joints.rail.limits"],
        );
    }
    wrong(
        "limits = { d = [-0.5, 0.5], angle = [0.1, 7.0] }",
        "limits = [-0.5, 0.5]",
        &[
            "joint `arm` has 2 free directions",
            "limits = { d = [smallest, largest] }",
            "d, angle",
        ],
    );
    wrong(
        "limits = { d = [-0.5, 0.5], angle = [0.1, 7.0] }",
        "limits = { d = [-0.5, 0.5], angel = [0.1, 7.0] }",
        &["no free direction `angel`", "did you mean `angle`"],
    );
    wrong(
        "effort_limits = [-4.0, inf]",
        "effort_limits = [4.0, -4.0]",
        &["effort_limits of actuator `push` are [4, -4]"],
    );
    // components of a rotation vector
    let ball = |limits: &str| {
        format!(
            "[bodies.a]\nmass = 1.0\nshape = {{ sphere = 0.1 }}\n[joints.j]\nchild = \"a\"\n{limits}\n"
        )
    };
    let text = ball("kind = \"spherical\"\nlimits = { rx = [-1, 1] }");
    refused(
        &text,
        Some(7),
        &[
            "direction `rx` of joint `j`",
            "jumps at half a turn",
            "one rotation",
        ],
    );
    let text = ball("kind = \"fixed\"\nlimits = [-1, 1]");
    refused(
        &text,
        Some(7),
        &["joint `j` of kind `fixed` has no free direction"],
    );
}

#[test]
fn what_starts_beyond_a_limit_is_refused() {
    wrong(
        "rail = 2.0",
        "rail = 2.1",
        &[
            "`rail` starts at 2.1",
            "above its upper limit 2 m",
            "-inf to 2 m",
        ],
    );
    wrong(
        "arm = [0.0, 6.5]",
        "arm = [0.0, 7.5]",
        &["`arm.angle` starts at 7.5", "above its upper limit 7 rad"],
    );
    wrong(
        "arm = [0.0, 6.5]",
        "arm = [-0.6, 6.5]",
        &["`arm.d` starts at -0.6", "below its lower"],
    );
    let far =
        format!("{SLIDER}\n[[constraints]]\nquantity = {{ joint = \"rail\" }}\nequals = 2.5\n");
    let error = build(&far).expect_err("beyond");
    assert!(
        error
            .to_string()
            .contains("`rail` = 2.5 is beyond its limits -inf and 2"),
        "{error}"
    );
    // what is left out starts as near to zero as may be
    let m = build(&SLIDER.replace("arm = [0.0, 6.5]\n", "")).expect("good");
    assert_eq!(m.system.coordinate(&m.x0, 1, 1), 0.1);
}

#[test]
fn what_starts_in_something_else_is_refused() {
    let text = |z: f64| {
        format!(
            "time_step = 0.01\nhorizon = 0.1\n[mechanism.half_spaces.floor]\n\
             [mechanism.bodies.ball]\nmass = 1.0\nshape = {{ sphere = 0.1 }}\nfree = true\n\
             contacts.skin = {{ friction = 0.5 }}\n[initial.ball]\nposition = [0, 0, {z}]\n"
        )
    };
    build(&text(0.1)).expect("at rest on the floor");
    let message = format!("{:?}", build(&text(0.07)).expect_err("in the floor"));
    for part in ["`ball.skin on floor`", "overlap by 3.000e-2 m", "groups"] {
        assert!(message.contains(part), "{message}");
    }
}

/// Two balls on a floor, one above the other, as wide apart as told.
fn balls(more: &str, gap: f64) -> String {
    format!(
        "bodies.low = {{ mass = 1.0, shape = {{ sphere = 0.1 }}, contacts.skin = {{ friction = 0.5, against = [\"bodies\", \"ground\"] }} }}\n\
         bodies.high = {{ mass = 1.0, shape = {{ sphere = 0.1 }}, contacts.skin = {{ friction = 0.3 }} }}\n\
         joints.one = {{ kind = \"prismatic\", child = \"low\", axis = [0, 0, 1] }}\n\
         joints.two = {{ kind = \"prismatic\", child = \"high\", axis = [0, 0, 1], parent_anchor = [0, 0, {}] }}\n\
         half_spaces.floor = {{ offset = -0.1, friction = 0.2 }}\n{more}",
        0.2 + gap
    )
}

#[test]
fn pairs_have_a_friction_of_their_own() {
    let friction = |more: &str| {
        let model = build(&balls(more, 0.01)).expect("a mechanism");
        let m = model.system.mechanism();
        let of = |name: &str| {
            let c = m.contacts.iter().find(|c| c.name == name);
            m.friction(c.unwrap_or_else(|| panic!("{name}")))
        };
        [
            "low.skin on floor",
            "high.skin on floor",
            "low.skin with high.skin",
        ]
        .map(of)
    };
    let mean = |a: f64, b: f64| 2.0 * a * b / (a + b);
    let own = [mean(0.5, 0.2), mean(0.3, 0.2), mean(0.5, 0.3)];
    assert_eq!(friction(""), own);
    let pair = |of: &str| format!("friction_pairs.p = {{ between = {of}, friction = 0.05 }}\n");
    let cases = [
        ("[\"low.skin\", \"floor\"]", [0.05, own[1], own[2]]),
        ("[\"floor\", \"low\"]", [0.05, own[1], own[2]]),
        ("[\"high\", \"floor\"]", [own[0], 0.05, own[2]]),
        ("[\"high.skin\", \"low.skin\"]", [own[0], own[1], 0.05]),
        ("[\"low\", \"high\"]", [own[0], own[1], 0.05]),
    ];
    for (of, expected) in cases {
        assert_eq!(friction(&pair(of)), expected, "{of}");
    }
    // of two that match, the last
    let second = "friction_pairs.q = { between = [\"low\", \"floor\"], friction = 0.7 }\n";
    let both = pair("[\"low\", \"floor\"]") + second;
    assert_eq!(friction(&both)[0], 0.7);
    for (more, words) in [
        (pair("[\"low.skim\", \"floor\"]"), "did you mean `low.skin`"),
        (pair("[\"floor\", \"floor\"]"), "no contact exists between"),
        (
            pair("[\"low\", \"floor\"]").replace("0.05", "-1"),
            "not negative",
        ),
        (
            "excluded_pairs = [[\"low\", \"flor\"]]".into(),
            "did you mean `floor`",
        ),
    ] {
        let message = format!("{:?}", build(&balls(&more, 0.01)).expect_err(&more));
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_mechanism_that_overlaps_is_refused_where_it_moves_and_a_pair_can_be_excluded() {
    let check = |more: &str, gap: f64| {
        let document = parse(&balls(more, gap)).expect("a mechanism");
        // what is only described need not start
        let model = document.build(&Overrides::default()).expect("a mechanism");
        let names: Vec<String> = (model.system.mechanism().contacts.iter())
            .map(|c| c.name.clone())
            .collect();
        (document.check_start(&model), names)
    };
    assert!(check("", 0.01).0.is_ok());
    let message = format!("{:?}", check("", -0.05).0.expect_err("they overlap"));
    for part in [
        "`low.skin with high.skin`",
        "overlap by 5.000e-2 m",
        "excluded_pairs",
        "[initial]",
    ] {
        assert!(message.contains(part), "{message}");
    }
    for pair in [
        "[\"low\", \"high\"]",
        "[\"high.skin\", \"low\"]",
        "[\"high.skin\", \"low.skin\"]",
    ] {
        let (start, names) = check(&format!("excluded_pairs = [{pair}]\n"), -0.05);
        assert!(start.is_ok(), "{pair}");
        assert_eq!(names, ["low.skin on floor", "high.skin on floor"]);
    }
    let (_, names) = check("excluded_pairs = [[\"floor\", \"high\"]]\n", 0.01);
    assert_eq!(names, ["low.skin on floor", "low.skin with high.skin"]);
    // what then touches nothing stays as it is
    let pairs = "excluded_pairs = [[\"floor\", \"high\"], [\"low\", \"high\"]]\n";
    let (start, names) = check(pairs, -0.05);
    assert!(start.is_ok());
    assert_eq!(names, ["low.skin on floor"]);
    let twice = build(&balls("excluded_pairs = [[\"low\", \"low\"]]\n", 0.01));
    let message = format!("{:?}", twice.expect_err("one side"));
    assert!(message.contains("names `low` twice"), "{message}");
}

#[test]
fn wrong_settings_are_named() {
    wrong(
        "directions = 6",
        "directions = 5",
        &["directions is 5", "even number from 4 to 16"],
    );
    wrong("directions = 6", "directions = 2", &["directions is 2"]);
    wrong(
        "directions = 6",
        "directions = 6.5",
        &["contact.directions", "whole number"],
    );
    wrong(
        "impacts = \"aligned\"",
        "impacts = \"aligend\"",
        &["contact.impacts", "did you mean `aligned`?"],
    );
    wrong("kappa = 1e-8", "kappa = 0.0", &["kappa is 0", "positive"]);
    wrong("kappa = 1e-8", "kappa = 1e10", &["up to 1 m/s"]);
    wrong(
        "max_iterations = 500",
        "max_iterations = 0",
        &["max_iterations is 0", "one step may take"],
    );
    wrong(
        "kappa = 1e-8",
        "kapa = 1e-8",
        &["unknown field `kapa` in `contact`", "did you mean `kappa`"],
    );
    wrong(
        "cone = \"linearized\"",
        "cone = \"linear\"",
        &["`linear`", "did you mean `linearized`"],
    );
    wrong(
        "smoothing = { start = 1e-1 }",
        "smoothing = { start = -1.0 }",
        &["smoothing", "positive"],
    );
    let text = SLIDER.replace("cone = \"linearized\"\n", "");
    refused(
        &text,
        Some(line_of(&text, "directions")),
        &[
            "a second-order cone has no directions",
            "cone = \"linearized\"",
        ],
    );
}

#[test]
fn restitution_of_limits_is_from_zero_to_one_and_has_limits() {
    for (given, word) in [
        ("[0.3, 1.4]", "1.4"),
        ("[-0.1, 0.4]", "-0.1"),
        ("[0.3]", "2 free directions"),
    ] {
        let to = format!("restitution = {given}");
        wrong("restitution = [0.3, 0.4]", &to, &["restitution", word]);
    }
    wrong(
        "limits = { d = [-0.5, 0.5], angle = [0.1, 7.0] }\nrestitution = [0.3, 0.4]",
        "restitution = 0.5",
        &["no limits to bounce off"],
    );
}

#[test]
fn contact_quantities_find_their_contacts() {
    let text = |q: &str| format!("{SLIDER}[[costs]]\nquantity = {q}\nweight = 1.0\n");
    for q in [
        "contact_gap",
        "contact_force",
        "contact_friction",
        "contact_slip",
    ] {
        let near = text(&format!("{{ {q} = \"block.tip on flor\" }}"));
        refused(
            &near,
            Some(line_of(&near, "quantity")),
            &[
                "unknown contact `block.tip on flor`",
                "did you mean `block.tip on floor`",
            ],
        );
    }
    let end = text("{ contact_force = \"block.tip on floor\" }") + "at = \"end\"\n";
    refused(
        &end,
        Some(line_of(&end, "quantity")),
        &["a contact force has no value at the end"],
    );
}

#[test]
fn lists_that_are_too_long_are_refused() {
    let axis = "[[costs]]\nquantity = { position = { body = \"block\", axis = [1, 0, 0, 5] } }\nweight = 1.0\n";
    let text = format!("{SLIDER}{axis}");
    refused(
        &text,
        Some(line_of(&text, "quantity")),
        &["1 too long", "a list of three numbers"],
    );
}

/// The same names in Rust make the same mechanism.
#[test]
fn limits_and_contacts_in_rust_are_those_of_the_file() {
    use crate::mechanism::{
        ActuatorSpec, BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, PerDirection,
        Shape,
    };
    let tip = ContactSpec::new(0.0)
        .shape(Shape::Sphere(0.05))
        .at([0.3, 0.0, 0.0])
        .restitution(0.25);
    let block = BodySpec::new(1.0)
        .shape(Shape::Box([0.2; 3]))
        .contact("corners", ContactSpec::new(0.5))
        .contact("tip", tip);
    let floor = HalfSpaceSpec {
        normal: [0.0, 0.0, 2.0],
        offset: -0.5,
        friction: Some(0.5),
        ..HalfSpaceSpec::default()
    };
    let rail = JointSpec::new(JointKind::Prismatic, "block")
        .axis([1.0, 0.0, 0.0])
        .friction(0.1)
        .limits(f64::NEG_INFINITY, 2.0);
    let arm = JointSpec::new(JointKind::Cylindrical, "wheel")
        .parent("block")
        .axis([0.0, 1.0, 0.0])
        .limits_of("d", -0.5, 0.5)
        .limits_of("angle", 0.1, 7.0);
    let arm = JointSpec {
        restitution: Some(PerDirection::Each(vec![0.3, 0.4])),
        ..arm
    };
    let push = ActuatorSpec::joint("rail")
        .gain(2.0)
        .effort_limits(-4.0, f64::INFINITY);
    let built = MechanismBuilder::new()
        .body("block", block)
        .body("wheel", BodySpec::new(1.0).shape(Shape::Sphere(0.1)))
        .half_space("floor", floor)
        .joint("rail", rail)
        .joint("arm", arm)
        .actuator("push", push);
    assert_eq!(parse(SLIDER).expect("good").mechanism(), &built);
}
