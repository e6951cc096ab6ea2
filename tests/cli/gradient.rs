//! `gradient`: what it prints, what it refuses, what differences say of it.

use super::*;

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
            [
                "controls",
                "initial_coordinates",
                "initial_rates",
                "parameters"
            ]
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

/// A trunk on four legs, each of a hip and a knee with stops and dampers, that falls onto the floor and comes to rest.
fn quadruped() -> String {
    let mut text = "time_step = 0.01
        horizon = 2.0
        [mechanism.half_spaces.floor]
        friction = 0.6
        [mechanism.bodies.trunk]
        mass = 10.0
        shape = { box = [0.6, 0.3, 0.1] }
        free = true
        contacts.all = { friction = 0.6 }
        [initial.trunk]
        position = [0.0, 0.0, 0.55]
        velocity = [0.5, 0.1, 0.0]
        angular_velocity = [0.0, 0.2, 0.1]
        [[costs]]
        quantity = { position = { body = \"trunk\", axis = \"x\" } }
        weight = 1.0
        at = \"end\"
        [parameters.mass]
        of = \"bodies.trunk.mass\"
        "
    .to_owned();
    for (leg, [x, y]) in [[1, 1], [1, -1], [-1, 1], [-1, -1]].into_iter().enumerate() {
        let (x, y) = (0.25 * f64::from(x), 0.17 * f64::from(y));
        text += &format!(
            "[mechanism.bodies.thigh{leg}]
            mass = 0.8
            shape = {{ box = [0.05, 0.05, 0.25] }}
            [mechanism.bodies.shin{leg}]
            mass = 0.25
            shape = {{ box = [0.03, 0.03, 0.25] }}
            contacts.foot = {{ shape = {{ sphere = 0.02 }}, position = [0.0, 0.0, -0.125], friction = 0.6 }}
            [mechanism.joints.hip{leg}]
            kind = \"revolute\"
            parent = \"trunk\"
            child = \"thigh{leg}\"
            axis = [0.0, 1.0, 0.0]
            parent_anchor = [{x}, {y}, 0.0]
            child_anchor = [0.0, 0.0, 0.125]
            limits = [-1.0, 1.0]
            damping = 0.5
            [mechanism.joints.knee{leg}]
            kind = \"revolute\"
            parent = \"thigh{leg}\"
            child = \"shin{leg}\"
            axis = [0.0, 1.0, 0.0]
            parent_anchor = [0.0, 0.0, -0.125]
            child_anchor = [0.0, 0.0, 0.125]
            limits = [-1.2, 0.2]
            damping = 0.5
            "
        );
    }
    for leg in 0..4 {
        text += &format!(
            "[initial.hip{leg}]\ncoordinate = 0.4\n[initial.knee{leg}]\ncoordinate = -0.7\n"
        );
    }
    text
}

/// The default `kappa` serves, and what is told is the error of the gradient: of a cube that is thrown, a quadruped that
/// falls, a ball that is where it should be. What rounding decides is refused.
#[test]
fn gradients_tell_what_rounding_makes_of_them() {
    let folder = Folder::new("gradient_rounding");
    let cube = "horizon = 1.0
        [mechanism.half_spaces.floor]
        [mechanism.bodies.cube]
        mass = 1.0
        shape = { box = [0.4, 0.4, 0.4] }
        free = true
        contacts.all = { friction = 0.4 }
        [initial.cube]
        position = [0.0, 0.0, 0.6]
        orientation = { rpy = [0.2, 0.1, 0.3] }
        velocity = [2.0, 0.5, 0.0]
        angular_velocity = [1.0, 2.0, 0.5]
        [[costs]]
        quantity = { position = { body = \"cube\", axis = \"x\" } }
        weight = 1.0
        at = \"end\"
        ";
    for h in [0.02, 0.01, 0.005, 0.002] {
        folder.write("cube.toml", &format!("time_step = {h}\n{cube}"));
        let v = folder.json(&["gradient", "cube.toml", "--json"]);
        assert!(number(&v, "error") < 1e-6, "{h}: {}", v["error"]);
        assert!(v["certificate"]["refused"].is_null());
    }
    folder.write("quadruped.toml", &quadruped());
    let v = folder.json(&["gradient", "quadruped.toml", "--json"]);
    assert!(number(&v, "error") < 1e-4, "{}", v["error"]);
    // a target that is met costs nothing, and nothing is its derivative
    let met = "time_step = 0.01
        horizon = 0.1
        [mechanism]
        gravity = [0.0, 0.0, 0.0]
        [mechanism.bodies.ball]
        mass = 1.0
        shape = { sphere = 0.1 }
        free = true
        [[costs]]
        quantity = { position = { body = \"ball\", axis = \"x\" } }
        weight = 1.0
        at = \"end\"
        ";
    folder.write("met.toml", met);
    let v = folder.json(&["gradient", "met.toml", "--json"]);
    assert!(number(&v, "error") < 1e-6, "{}", v["error"]);
    // chaos over a minute
    let chaos = changed("double_pendulum", "horizon = ", "horizon = 60.0 # ");
    let cost = "[[costs]]\nquantity = { joint = \"shoulder\" }\nweight = 1.0\nat = \"end\"\n";
    folder.write("chaos.toml", &(chaos + cost));
    let run = folder.run(&["gradient", "chaos.toml"]).ended(1);
    assert!(
        run.err.contains("rounding changes it by") && run.err.contains("shorter horizon"),
        "{}",
        run.err
    );
}

/// Every group has a verdict, constraints as well; what rests on a corner is named, and is no error.
#[test]
fn gradients_have_verdicts() {
    let folder = Folder::new("verdicts");
    // nothing costs at the five-bar's guess, so that the constraints alone say something
    let five = changed("five_bar_reach", "horizon = 1.0 ", "horizon = 0.1 ");
    folder.write("five.toml", &five);
    let v = folder.json(&["gradient", "five.toml", "--check", "--json"]);
    let verdicts = v["verdicts"].as_array().expect("a list");
    // it has no parameters
    assert_eq!(verdicts.len(), 5 * 3);
    // rates at the end do not depend on where it starts
    let good = ["agrees", "too small to tell", "zero"];
    let is_good = |v: &Value| v["verdict"].as_str().is_some_and(|t| good.contains(&t));
    assert!(verdicts.iter().all(is_good), "{v:#}");
    let of = |of: &str, by: &str| {
        let found = verdicts
            .iter()
            .find(|v| v["of"].as_str().is_some_and(|t| t.starts_with(of)) && v["by"] == by);
        found.expect("is there")
    };
    assert_eq!(number(of("the objective", "the controls"), "largest"), 0.0);
    let tip = of("constraint 1 ", "the controls");
    assert!(number(tip, "largest") > 1e-4, "{tip}");
    assert!(number(tip, "error") <= number(tip, "estimate"), "{tip}");
    assert!(
        number(tip, "estimate") < 1e-6 * number(tip, "largest"),
        "{tip}"
    );
    // a resting block: differences cannot tell what they cannot see, and say so
    let run = folder
        .run(&["gradient", &problem("block_push"), "--check"])
        .ended(0);
    assert!(run.out.contains("too small to tell"), "{}", run.out);
    // tilted, it rests on two corners of four, and creeps
    let text = changed(
        "block_push",
        "[initial] ",
        "[[constraints]]\nquantity = { velocity = { body = \"block\", axis = \"x\" } }\nequals = 0.0\n\n[initial] ",
    );
    folder.write("rest.toml", &text);
    folder.run(&["gradient", "rest.toml", "--check"]).ended(0);
    // against a stop, whose stiffness must not take the gradient's digits
    let v = folder.json(&["gradient", &problem("acrobot_stops"), "--check", "--json"]);
    let verdicts = v["verdicts"].as_array().expect("a list");
    assert!(verdicts.iter().all(|v| v["verdict"] == "agrees"), "{v:#}");
    assert!(number(&v, "linear_residual") < 1e-9, "{v:#}");
    // pushed as hard as friction holds, it is on the corner between sticking and sliding
    let pushed = changed("block_push", "push = 0.0", "push = 0.981");
    folder.write("pushed.toml", &pushed);
    let v = folder.json(&["gradient", "pushed.toml", "--check", "--json"]);
    let verdicts = v["verdicts"].as_array().expect("a list");
    let kink = verdicts
        .iter()
        .find(|v| v["verdict"] == "kink" && v["by"] == "initial rates");
    let kink = kink.unwrap_or_else(|| panic!("no kink in {v:#}"));
    assert_eq!(kink["knot"], 1, "{kink}");
    // beside the relative errors it says which tell of the gradient
    let trusted = &v["check_verdicts"];
    assert_eq!(keys(trusted), keys(&v["check"]));
    assert!(
        (keys(trusted).iter()).any(|g| trusted[*g] != "agrees"),
        "{v:#}"
    );
    for own in verdicts.iter().filter(|v| v["of"] == "the objective") {
        assert_eq!(
            own["verdict"],
            trusted[own["group"].as_str().expect("a name")]
        );
    }
    let what = kink["kink"].as_str().expect("says what");
    for word in ["block.corners", "sliding", "sticking", "at knot 1"] {
        assert!(what.contains(word), "{what}");
    }
}

/// A bounce at a knot has a derivative that is not that of the motion: it is given when asked for by name. Aligned it is, and of
/// the other sign.
#[test]
fn gradients_through_elastic_impacts_are_asked_for() {
    let folder = Folder::new("gradient_impacts");
    let mut by_rate = vec![];
    for impacts in ["aligned", "knots"] {
        let text = changed("bounce_pass", "\"aligned\"\n", &format!("\"{impacts}\"\n"));
        let text = text.replace(
            "quantity = \"kinetic_energy\"",
            "quantity = \"potential_energy\"",
        );
        folder.write(
            "bounce.toml",
            &text.replace("at = \"start\"", "at = \"end\""),
        );
        let v = folder.json(&["gradient", "bounce.toml", "--check", "--json"]);
        let verdicts = v["verdicts"].as_array().expect("a list");
        let good = ["agrees", "zero", "too small to tell"];
        let is_good = |v: &Value| v["verdict"].as_str().is_some_and(|t| good.contains(&t));
        assert!(verdicts.iter().all(is_good), "{impacts}: {v:#}");
        let rates = &v["gradient"]["initial_state"]["rates"];
        by_rate.push(number(rates, "flight.n1"));
    }
    assert!(by_rate[0] < 0.0 && by_rate[1] > 0.0, "{by_rate:?}");
    let text = changed("bounce_pass", "impacts = \"aligned\"", "");
    folder.write("none.toml", &text);
    let run = folder.run(&["gradient", "none.toml"]).ended(1);
    for word in [
        "ball.skin on floor",
        "bounces",
        "impacts = \"aligned\"",
        "\"knots\"",
    ] {
        assert!(run.err.contains(word), "{}", run.err);
    }
    folder.run(&["simulate", "none.toml"]).ended(0);
}

/// A problem that weighs and bounds rates of controls is differentiated with the controls remembered; everything else
/// takes its file as any other.
#[test]
fn gradients_by_way_of_control_rates() {
    let folder = Folder::new("gradient_rates");
    let rates = "[[costs]]\nquantity = { control_rate = \"push\" }\nweight = 0.01\n\
         [[costs]]\nquantity = { control_rate = \"push\" }\ntarget = 3.0\nweight = 2.0\nat = { knot = 9 }\n\
         [parameters.load]\nof = \"bodies.pole.mass\"\n[parameters.reach]\nof = \"joints.hinge.child_anchor.z\"\n";
    let wavy = "controls = { push = 0.01 }\nnoise = { scale = 0.5, seed = 5 }";
    let plain = changed("cartpole_swingup", "controls = { push = 0.01 }", wavy);
    folder.write("rates.toml", &(plain.clone() + rates));
    folder.write("plain.toml", &plain);
    let v = folder.json(&["gradient", "rates.toml", "--check", "--json"]);
    for group in keys(&v["check"]) {
        let error = number(&v["check"], group);
        assert!((0.0..=1e-6).contains(&error), "{group} {error}");
    }
    assert!(number(&v, "linear_residual") < 1e-7, "{v:#}");
    let coordinates = &v["gradient"]["initial_state"]["coordinates"];
    assert_eq!(keys(coordinates), ["rail", "hinge"]);
    assert_eq!(keys(&v["gradient"]["parameters"]), ["load", "reach"]);
    // what the rates cost they cost at every knot
    let without = folder.json(&["gradient", "plain.toml", "--json"]);
    let by_control = |v: &Value| numbers(&v["gradient"]["controls"]["push"]);
    assert_eq!(by_control(&v).len(), 100);
    let pairs = by_control(&v).into_iter().zip(by_control(&without));
    for (k, (with, without)) in pairs.enumerate() {
        assert!((with - without).abs() > 1e-9, "{k}: {with} {without}");
    }
    assert!(number(&v, "objective") > number(&without, "objective"));
    let text = folder.run(&["gradient", "rates.toml"]).ended(0);
    assert!(text.out.contains("by the parameters"), "{}", text.out);
    // they change neither the mechanism nor how it moves
    for command in ["describe", "simulate"] {
        let of = |file: &str| folder.json(&[command, file, "--json"]);
        let (with, without) = (of("rates.toml"), of("plain.toml"));
        for key in ["controls", "joints", "degrees_of_freedom", "final", "steps"] {
            assert_eq!(with.get(key), without.get(key), "{command}: {key}");
        }
    }
    assert_eq!(folder.list(), ["plain.toml", "rates.toml"]);
}

/// A coin that comes to lie is held by points fixed on its rim, where that is lowest: they are others at other states, by a part of
/// a turn, and the check names them.
#[test]
fn points_fixed_on_a_rim_are_a_kink() {
    let folder = Folder::new("gradient_rim");
    let coin = r#"
        time_step = 0.01
        horizon = 0.4
        [mechanism.half_spaces.floor]
        [mechanism.bodies.coin]
        mass = 0.5
        shape = { cylinder = { radius = 0.1, length = 0.04 } }
        free = true
        contacts.rim = { friction = 0.3 }
        [initial.coin]
        position = [0.0, 0.0, 0.06]
        orientation = { rpy = [0.0, 0.1, 0.0] }
        angular_velocity = [2.0, 0.0, 1.0]
        [[costs]]
        quantity = { position = { body = "coin", axis = "x" } }
        weight = 1.0
        form = "linear"
        at = "end"
    "#;
    folder.write("lies.toml", coin);
    folder.write(
        "tips.toml",
        &coin.replace("[0.0, 0.1, 0.0]", "[0.0, 0.3, 0.0]"),
    );
    // a derivative was off by 1e4 there
    let v = folder.json(&["gradient", "lies.toml", "--check", "--json"]);
    let verdict = |v: &Value| v["verdict"].as_str().map(str::to_owned);
    let of = |v: &Value| -> Vec<_> {
        let all = v["verdicts"].as_array().expect("a list");
        all.iter().filter_map(verdict).collect()
    };
    assert!(of(&v).iter().all(|v| v != "wrong"), "{v:#}");
    let v = folder.json(&["gradient", "tips.toml", "--check", "--json"]);
    assert!(of(&v).iter().any(|v| v == "kink"), "{v:#}");
    assert!(v["verdicts"].to_string().contains("with rim at "), "{v:#}");
}
