//! `describe`, and the schema.

use super::*;

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
    assert_eq!(v.get("fields"), None);
    let v = folder.json(&[
        "describe",
        &problem("cartpole_swingup"),
        "--fields",
        "--json",
    ]);
    let fields = v["fields"].as_array().expect("a list");
    let mass = fields.iter().find(|f| f["path"] == "bodies.pole.mass");
    let mass = mass.expect("the mass");
    assert_eq!(
        (mass["unit"].as_str(), mass["value"].as_f64()),
        (Some("kg"), Some(0.2))
    );
    let text = folder
        .run(&["describe", &problem("cartpole_swingup"), "--fields"])
        .ended(0);
    assert!(text.out.contains("joints.hinge.damping"), "{}", text.out);
    let v = folder.json(&["describe", &problem("spinning_top"), "--json"]);
    assert_eq!(v["joints"][0]["kind"], "spherical");
    assert_eq!(names(&v["joints"][0]["coordinates"]).len(), 3);
}

#[test]
fn describe_says_what_closes_loops_and_what_is_wanted() {
    let folder = Folder::new("describe_wanted");
    let v = folder.json(&["describe", &problem("five_bar_reach"), "--json"]);
    let joints = v["joints"].as_array().expect("a list");
    let closing = joints.iter().filter(|j| j["closes_loop"] == true);
    assert_eq!(closing.map(|j| &j["name"]).collect::<Vec<_>>(), ["tip"]);
    assert_eq!(
        (number(&v, "horizon"), number(&v, "time_step")),
        (1.0, 0.02)
    );
    assert_eq!(v["steps"], 50);
    assert_eq!(v["costs"].as_array().map(Vec::len), Some(2));
    assert_eq!(v["costs"][0]["quantity"]["control"], "left");
    assert_eq!(v["constraints"][0]["equals"], 0.15);
    assert_eq!(v["passed_over"][0]["name"], "minimal");
    let why = v["passed_over"][0]["why"].as_str();
    assert!(why.is_some_and(|w| w.starts_with("joint `tip` closes a loop")));
    let text = folder
        .run(&["describe", &problem("five_bar_reach")])
        .ended(0)
        .out;
    for part in [
        "tip                  revolute from left_arm to right_arm, closes a loop",
        "integrator maximal\n  not `minimal`: joint `tip` closes a loop",
        "horizon 1 s, 50 time steps of 0.02 s",
        "running              0.01/2 |{ control = left } - 0.0|^2",
        "{ joint_rate = left_motor } = 0.0",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches(", closes a loop").count(), 1, "{text}");
    // numbers without a unit have none
    let text = folder
        .run(&["describe", &problem("block_push"), "--fields"])
        .ended(0)
        .out;
    assert!(!text.lines().any(|l| l.ends_with(" 1 1")), "{text}");
}

#[test]
fn describe_lists_contacts_and_limits() {
    let folder = Folder::new("describe_contacts");
    for (name, bodies, dof, contacts, first) in [
        ("box_drop", 1, 6, 8, "box.corners --- on floor"),
        ("sphere_chain", 10, 33, 10, "ball1.skin on floor"),
        ("tumbling_boxes", 3, 18, 48, "small.corners --- on floor"),
        ("block_push", 1, 6, 8, "block.corners --- on floor"),
        ("hopper_jump", 3, 5, 2, "body.skin on floor"),
        ("acrobot_stops", 2, 2, 0, ""),
    ] {
        let v = folder.json(&["describe", &problem(name), "--json"]);
        assert_eq!(names(&v["bodies"]).len(), bodies, "{name}");
        assert_eq!(v["degrees_of_freedom"], dof, "{name}");
        assert_eq!(v["loops"], 0, "{name}");
        let list = v["contacts"].as_array().expect("a list");
        assert_eq!(list.len(), contacts, "{name}");
        if contacts > 0 {
            assert_eq!(list[0]["name"], first, "{name}");
            assert!(number(&list[0], "friction") > 0.0, "{name}");
            assert_eq!(list[0]["bodies"].as_array().map(Vec::len), Some(1));
        }
        let text = folder.run(&["describe", &problem(name)]).ended(0);
        for c in list {
            let c = c["name"].as_str().expect("a name");
            assert!(text.out.contains(c), "{c}: {}", text.out);
        }
    }
    let v = folder.json(&["describe", &problem("hopper_jump"), "--json"]);
    assert_eq!(names(&v["friction"]), ["slide"]);
    assert_eq!(v["half_spaces"][0]["name"], "floor");
    let slide = &v["joints"][2];
    assert_eq!(slide["name"], "slide");
    assert_eq!(numbers(&slide["limits"][0]), [0.25, 1.0]);
    assert_eq!(v["joints"][1]["limits"][0], Value::Null);
    let text = folder.run(&["describe", &problem("hopper_jump")]).ended(0);
    for part in [
        "d = 0.5000 m in [0.25, 1] with friction 0.1 N",
        "normal 0.0000 0.0000 1.0000",
        "friction 0.5",
    ] {
        assert!(text.out.contains(part), "{part}: {}", text.out);
    }
}

/// Every key of a file is one that the schema knows, at its place.
fn known(file: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").expect("a definition");
        return known(file, &root["$defs"][name], root, at);
    }
    for either in ["anyOf", "oneOf"] {
        if let Some(list) = schema[either].as_array() {
            let tried: Vec<_> = list.iter().map(|s| known(file, s, root, at)).collect();
            if tried.iter().all(Result::is_err) {
                return Err(format!("{at}: {file} is none of {tried:?}"));
            }
            return Ok(());
        }
    }
    let types = match &schema["type"] {
        Value::String(t) => vec![t.as_str()],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let kind = match file {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        _ => "number",
    };
    let is = |t: &&str| *t == kind || (*t == "integer" && kind == "number");
    if !types.is_empty() && !types.iter().any(is) {
        return Err(format!("{at}: {file} is no {types:?}"));
    }
    if let (Some(list), Some(text)) = (schema["enum"].as_array(), file.as_str())
        && !list.iter().any(|v| v == text)
    {
        return Err(format!("{at}: {text} is none of {list:?}"));
    }
    if let (Some(of), Some(text)) = (schema["const"].as_str(), file.as_str())
        && of != text
    {
        return Err(format!("{at}: {text} is not {of}"));
    }
    match file {
        Value::Object(table) => {
            for (key, value) in table {
                let own = &schema["properties"][key];
                let own = match (own, &schema["additionalProperties"]) {
                    (Value::Null, other @ Value::Object(_)) => other,
                    (Value::Null, _) => return Err(format!("{at}: unknown field {key}")),
                    _ => own,
                };
                known(value, own, root, &format!("{at}.{key}"))?;
            }
            for required in schema["required"].as_array().into_iter().flatten() {
                let name = required.as_str().expect("a name");
                if !table.contains_key(name) {
                    return Err(format!("{at}: {name} is missing"));
                }
            }
        }
        Value::Array(list) => {
            for (i, v) in list.iter().enumerate() {
                known(v, &schema["items"], root, &format!("{at}[{i}]"))?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[test]
fn the_schema_knows_every_field() {
    let folder = Folder::new("schema");
    let schema = folder.json(&["schema"]);
    assert!(
        schema["$schema"]
            .as_str()
            .is_some_and(|s| s.contains("json-schema.org"))
    );
    let top = keys(&schema["properties"]);
    for field in [
        "title",
        "time_step",
        "horizon",
        "integrator",
        "mechanism",
        "initial",
        "guess",
        "costs",
        "constraints",
        "method",
        "draw",
    ] {
        assert!(top.contains(&field), "{field}");
        assert!(
            schema["properties"][field]
                .to_string()
                .contains("\"description\""),
            "{field}"
        );
    }
    assert_eq!(
        schema["required"],
        serde_json::json!(["time_step", "mechanism"])
    );
    assert_eq!(schema["additionalProperties"], false);
    let mut file: Value = toml::from_str(&problem_text("pendulum_swingup")).expect("TOML");
    file["guess"]["states"] = serde_json::json!([{ "time": 1.0, "joints": { "hinge": 1.5 } }]);
    known(&file, &schema, &schema, "states").expect("known");
    file["guess"]["states"][0]["times"] = 1.0.into();
    assert!(known(&file, &schema, &schema, "states").is_err());
    let mut seen = 0;
    for entry in
        std::fs::read_dir(format!("{}/problems", env!("CARGO_MANIFEST_DIR"))).expect("lists")
    {
        let path = entry.expect("lists").path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("reads");
        let file: Value = toml::from_str(&text).expect("TOML");
        // what the program takes the schema knows
        let taken = folder.run(&["describe", &path.display().to_string()]);
        if file.get("mechanism").is_none() || taken.code != Some(0) {
            continue;
        }
        seen += 1;
        known(&file, &schema, &schema, &path.display().to_string()).expect("known");
        // and what is not known is found out
        let mut wrong = file.clone();
        wrong["horizont"] = 1.0.into();
        assert!(known(&wrong, &schema, &schema, "").is_err());
        let mut wrong = file;
        wrong["time_step"] = "soon".into();
        assert!(known(&wrong, &schema, &schema, "").is_err());
    }
    assert!(seen >= 6, "{seen}");
    assert_eq!(folder.list(), [""; 0]);
}
