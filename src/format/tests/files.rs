//! Recordings and the files made of them.

use super::*;
use crate::rollout::{RolloutStats, Trajectory};

fn recorded(m: &Model) -> recording::Recording {
    let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.u.copy_from_slice(&m.problem.guess);
    let mut w = m.system.work();
    t.roll(&m.system, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    record(m, &t, "simulated", &[]).expect("records")
}

#[test]
fn a_hanging_pole_pulls_with_its_weight() {
    let m = build(&changed("push = 0.01", "push = 0.0")).expect("good");
    let r = recorded(&m);
    let channel = |name: &str| r.channels.iter().find(|c| c.name == name).expect("exists");
    for k in [0, 1, 50, 99] {
        let at = |name| channel(name).values[k].expect("a value");
        assert!(
            (at("hinge force") - 0.2 * 9.81).abs() < 1e-9,
            "{k}: {}",
            at("hinge force")
        );
        assert!(
            (at("rail force") - 1.2 * 9.81).abs() < 1e-9,
            "{k}: {}",
            at("rail force")
        );
        assert!(at("hinge moment").abs() < 1e-9 && at("rail moment").abs() < 1e-9);
        assert!(at("energy error").abs() < 1e-9);
    }
    assert_eq!(channel("hinge force").values[100], None);
    assert_eq!(
        (channel("push").lower, channel("push").upper),
        (Some(-3.0), Some(3.0))
    );
    assert_eq!(channel("push").values[100], None);
    assert_eq!(channel("hinge rate").unit, "rad/s");
    // a box for the cart, a line for the pole, the rail
    let owners: Vec<_> = r.lines.iter().map(|l| l.body).collect();
    assert_eq!(owners, [Some(0), Some(1), None]);
}

/// A gear's gap is in its recording: none where it holds, what is missing where it does not.
#[test]
fn gaps_of_joints_and_gears_are_recorded() {
    let text = |offset: f64| {
        format!(
            "time_step = 0.01\nhorizon = 0.2\n[mechanism.bodies.a]\nmass = 1.0\ninertia = [0.1, 0.1, 0.1]\n\
             [mechanism.bodies.b]\nmass = 1.0\ninertia = [0.1, 0.1, 0.1]\n\
             [mechanism.joints.ja]\nkind = \"revolute\"\nchild = \"a\"\naxis = [0, 1, 0]\nchild_anchor = [0, 0, 0.4]\n\
             [mechanism.joints.jb]\nkind = \"prismatic\"\nchild = \"b\"\naxis = [1, 0, 0]\n\
             [mechanism.gears.rack]\njoint = \"jb\"\nof = \"ja\"\nratio = 0.3\noffset = {offset}\n\
             [initial]\nja = 0.7\n"
        )
    };
    let [m, other] = [0.1, 0.35].map(|o| build(&text(o)).expect("good"));
    let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.roll(
        &m.system,
        &mut m.system.work(),
        &mut RolloutStats::default(),
    )
    .expect("rolls");
    let gaps = |m: &Model, name: &str, unit: &str| {
        let r = record(m, &t, "simulated", &[]).expect("records");
        let c = r.channels.iter().find(|c| c.name == name).expect("exists");
        assert_eq!((c.group, c.unit.as_str()), (recording::Group::Gap, unit));
        let values: Vec<f64> = c.values.iter().map(|v| v.expect("a value")).collect();
        assert_eq!(values.len(), 21);
        values
    };
    for (name, unit) in [
        ("ja gap", "m or rad"),
        ("jb gap", "m or rad"),
        ("rack gap", "m"),
    ] {
        let largest = gaps(&m, name, unit).into_iter().fold(0.0, f64::max);
        assert!(largest < 1e-10, "{name}: {largest}");
    }
    // of a gear with another offset the difference is open
    for gap in gaps(&other, "rack gap", "m") {
        assert!((gap - 0.25).abs() < 1e-10, "{gap}");
    }
    assert!(m.system.violation(t.state(20)) < 1e-10);
    assert!((other.system.violation(t.state(20)) - 0.25).abs() < 1e-10);
}

/// A cantilever: a fixed joint carries a weight at a distance.
#[test]
fn a_fixed_joint_carries_a_moment() {
    let m = build(
        "time_step = 0.01\nhorizon = 0.1\n[mechanism.bodies.a]\nmass = 2.0\ninertia = [1.0, 1.0, 1.0]\n\
         [mechanism.joints.wall]\nkind = \"fixed\"\nchild = \"a\"\nchild_anchor = [-0.5, 0, 0]\n",
    )
    .expect("good");
    let r = recorded(&m);
    let moment = r
        .channels
        .iter()
        .find(|c| c.name == "wall moment")
        .expect("exists");
    for k in 0..10 {
        let v = moment.values[k].expect("a value");
        assert!((v - 2.0 * 9.81 * 0.5).abs() < 1e-8, "{v}");
    }
}

/// A coarse trajectory's controls start a finer one, a longer one and a coarser one; no controls act at its last row.
#[test]
fn controls_are_read_by_time() {
    let folder = folder("controls_by_time");
    let mut r = recorded(&sample());
    let push = r.channels.iter_mut().find(|c| c.name == "push");
    let push = push.expect("exists");
    assert_eq!(push.values[100], None);
    for (k, v) in push.values.iter_mut().enumerate().take(100) {
        *v = Some((k as f64).sin() / 3.0);
    }
    let own: Vec<f64> = push.values.iter().flatten().copied().collect();
    write_csv(&folder.join("run.csv"), &r).expect("writes");
    let played = |how: &str, step: &str, horizon: &str| {
        let text = changed("controls = { push = 0.01 }", "controls = \"run.csv\"")
            .replacen("time_step = 0.05 ", &format!("time_step = {step} "), 1)
            .replacen("horizon = 5.0 ", &format!("horizon = {horizon} "), 1);
        let text = format!("controls = \"{how}\"\n{text}");
        let path = folder.join("problem.toml");
        std::fs::write(&path, text).expect("writes");
        let model = load(&path).and_then(|d| d.build(&Overrides::default()));
        model.expect("good").problem.guess
    };
    let guess = |step: &str, horizon: &str| played("held", step, horizon);
    // linear ones are interpolated, and hold on from the last knot
    assert_eq!(played("linear", "0.05", "5.0"), own);
    assert_eq!(
        played("linear", "0.1", "5.0"),
        own.iter().step_by(2).copied().collect::<Vec<_>>()
    );
    let fine = played("linear", "0.025", "5.0");
    for (k, u) in fine.iter().enumerate() {
        let next = own[(k / 2 + k % 2).min(99)];
        assert!((u - 0.5 * (own[k / 2] + next)).abs() < 1e-12, "{k}: {u}");
    }
    assert_eq!(guess("0.05", "5.0"), own);
    let halved: Vec<f64> = own.iter().flat_map(|u| [*u, *u]).collect();
    assert_eq!(guess("0.025", "5.0"), halved);
    let longer = guess("0.05", "10.0");
    assert_eq!((&longer[..100], longer.len()), (&own[..], 200));
    assert!(longer[100..].iter().all(|u| *u == own[99]));
    assert_eq!(guess("0.05", "2.0"), own[..40]);
    // the impulse stays where a step spans several
    for (u, pair) in guess("0.1", "5.0").iter().zip(own.chunks_exact(2)) {
        assert!((u - 0.5 * (pair[0] + pair[1])).abs() < 1e-12);
    }
    // an empty control within is no end
    let text = std::fs::read_to_string(folder.join("run.csv")).expect("reads");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let gap = (own[7].to_string(), lines[8].clone());
    lines[8] = gap.1.replacen(&gap.0, "", 1);
    std::fs::write(folder.join("run.csv"), lines.join("\n")).expect("writes");
    let e = load(&folder.join("problem.toml")).and_then(|d| d.build(&Overrides::default()));
    let e = format!("{:#}", e.expect_err("a gap"));
    assert!(e.contains("line 9: `push` is ``"), "{e}");
    std::fs::remove_dir_all(&folder).expect("removes");
}

#[test]
fn recordings_read_back_to_the_same_bits() {
    let folder = folder("files");
    let m = sample();
    let r = recorded(&m);
    let json = folder.join("deep/run.json");
    write_json(&json, &r).expect("writes");
    assert_eq!(read_recording(&json).expect("reads"), r);
    // the controls of a run are a guess
    let table = folder.join("run.csv");
    let mut shaken = r.clone();
    let push = shaken
        .channels
        .iter_mut()
        .find(|c| c.name == "push")
        .expect("exists");
    for (k, v) in push.values.iter_mut().enumerate().take(100) {
        *v = Some((k as f64).sin() / 3.0);
    }
    let expected: Vec<f64> = push.values.iter().flatten().copied().collect();
    write_csv(&table, &shaken).expect("writes");
    let problem = folder.join("problem.toml");
    std::fs::write(
        &problem,
        changed("controls = { push = 0.01 }", "controls = \"run.csv\""),
    )
    .expect("writes");
    let guess = load(&problem)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("good")
        .problem
        .guess;
    assert_eq!(guess, expected);
    let mut rows = csv::Reader::from_path(&table).expect("reads");
    let header = rows.headers().expect("has one").clone();
    assert_eq!((&header[0], &header[1]), ("time [s]", "rail [m]"));
    let place = header
        .iter()
        .position(|h| h == "pole z [m]")
        .expect("has the pole");
    let last = rows.records().last().expect("has rows").expect("whole");
    assert_eq!(
        last[place].parse::<f64>().expect("a number"),
        r.poses[100][1].position[2]
    );
    // cut short, or of another shape
    std::fs::write(&json, b"{\"title\": \"x\"").expect("writes");
    assert!(
        read_recording(&json)
            .expect_err("cut")
            .to_string()
            .contains("run.json")
    );
    let mut short = r.clone();
    short.channels[0].values.pop();
    write_json(&json, &short).expect("writes");
    assert!(
        read_recording(&json)
            .expect_err("short")
            .message()
            .contains("channel `rail` has 100 values")
    );
    std::fs::remove_dir_all(&folder).expect("removes");
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = folder("atomic");
    let path = folder.join("a.txt");
    write_bytes(&path, b"old").expect("writes");
    write_bytes(&path, b"new").expect("writes");
    assert_eq!(std::fs::read(&path).expect("reads"), b"new");
    // a directory with something in it is in the way
    let blocked = folder.join("b");
    std::fs::create_dir_all(blocked.join("c")).expect("makes");
    let e = write_bytes(&blocked, b"x").expect_err("a directory");
    assert!(e.to_string().contains("cannot write the file"), "{e}");
    assert!(blocked.join("c").is_dir());
    // a file where a directory is needed
    assert!(write_bytes(&path.join("d"), b"x").is_err());
    let mut left: Vec<_> = std::fs::read_dir(&folder)
        .expect("lists")
        .flatten()
        .map(|e| e.file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a.txt", "b"]);
    std::fs::remove_dir_all(&folder).expect("removes");
}

const GEARED: &str = "bodies.a = { mass = 1.0, inertia = [1, 1, 1] }\nbodies.b = { mass = 1.0, inertia = [1, 1, 1] }\n\
    [joints.a]\nkind = \"revolute\"\nchild = \"a\"\naxis = [0, 0, 1]\n\
    [joints.b]\nkind = \"cylindrical\"\nchild = \"b\"\naxis = [1, 0, 0]\nparent_anchor = [0, 2, 0]\n\
    [gears.rack]\njoint = \"b.d\"\nof = \"a\"\nratio = 0.5\noffset = 0.1\n";

#[test]
fn gears_are_read_and_wrong_ones_named() {
    let m = build(GEARED).expect("good");
    assert_eq!(m.system.mobility().degrees_of_freedom, 2);
    assert_eq!(m.system.mobility().loops, 1);
    let d = m.system.mechanism().joint("b").expect("exists");
    let a = m.system.mechanism().joint("a").expect("exists");
    let gap = m.system.coordinate(&m.x0, d, 0) - 0.5 * m.system.coordinate(&m.x0, a, 0) - 0.1;
    assert!(gap.abs() < 1e-12, "{gap}");
    let error = |from: &str, to: &str| {
        let error = build(&GEARED.replace(from, to)).expect_err("wrong");
        format!("{error:#}")
    };
    let text = error("of = \"a\"", "of = \"aa\"");
    assert!(
        text.contains("gear `rack` refers to the unknown coordinate `aa`"),
        "{text}"
    );
    let text = error("ratio = 0.5", "rato = 0.5");
    assert!(text.contains("did you mean `ratio`"), "{text}");
    let text = error("axis = [0, 0, 1]", "axis = [0, 0, 1]\nfriction = -1");
    assert!(text.contains("friction of joint `a` is -1"), "{text}");
}

#[test]
fn ground_is_drawn_where_it_is_not_in_other_ground() {
    let text = r#"time_step = 0.01
horizon = 0.1
[mechanism.half_spaces.floor]
[mechanism.half_spaces.slope]
normal = [0.6, 0.0, 0.8]
[mechanism.bodies.box]
mass = 1.0
shape = { box = [0.2, 0.2, 0.2] }
free = true
contacts.corners = { friction = 0.5 }
[initial]
box = { position = [0.0, 0.0, 0.3] }
"#;
    let m = build(text).expect("good");
    let r = recorded(&m);
    assert_eq!(r.contacts.len(), 16);
    assert_eq!(
        r.channels
            .iter()
            .filter(|c| c.group == recording::Group::Contact)
            .count(),
        64
    );
    let heights = |g: &recording::Ground, n: [f64; 3]| -> Vec<f64> {
        let along = |c: &[f64; 3]| (0..3).map(|i| n[i] * c[i]).sum();
        g.corners.iter().map(along).collect()
    };
    let normals = [[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]];
    assert_eq!(r.ground.len(), 2);
    for (i, g) in r.ground.iter().enumerate() {
        assert!(g.corners.len() == 4 && (g.normal[2] - normals[i][2]).abs() < 1e-12);
        assert!(heights(g, normals[i]).iter().all(|h| h.abs() < 1e-12));
        let above = heights(g, normals[1 - i]);
        assert!(above.iter().all(|h| *h > -1e-12) && above.iter().any(|h| *h > 0.05));
    }
}

/// A box with a leg at each of four corners, and a foot that slides on the first.
const TORSO: &str = r#"time_step = 0.01
horizon = 0.1
[mechanism]
gravity = [0.0, 0.0, 0.0]
[mechanism.bodies.torso]
mass = 5.0
shape = { box = [0.6, 0.4, 0.1] }
free = true
LEGS
[mechanism.bodies.foot]
mass = 0.1
shape = { sphere = 0.03 }
[mechanism.joints.slide]
kind = "prismatic"
parent = "leg0"
child = "foot"
axis = [0.0, 0.0, -1.0]
parent_anchor = [0.0, 0.0, -0.2]
limits = [0.0, 0.3]
[initial]
slide = 0.1
"#;

fn torso() -> String {
    let leg = |i: i32| {
        let (x, y) = (
            0.3 * f64::from(1 - i % 2 * 2),
            0.2 * f64::from(1 - i / 2 * 2),
        );
        format!(
            "[mechanism.bodies.leg{i}]\nmass = 0.5\nshape = {{ capsule = {{ radius = 0.03, length = 0.3 }} }}\n\
             [mechanism.joints.hip{i}]\nkind = \"revolute\"\nparent = \"torso\"\nchild = \"leg{i}\"\naxis = [0, 1, 0]\n\
             parent_anchor = [{x:?}, {y:?}, 0.0]\nchild_anchor = [0.0, 0.0, 0.2]\n"
        )
    };
    TORSO.replace("LEGS", &(0..4).map(leg).collect::<String>())
}

#[test]
fn every_body_shows_its_shape_and_the_lines_between_its_joints() {
    let r = recorded(&build(&torso()).expect("good"));
    let of = |b| {
        let own = r.lines.iter().filter(move |l| l.body == Some(b));
        own.map(|l| l.points.len()).collect::<Vec<_>>()
    };
    // the torso, which has its hips on it: a box in one stroke
    assert_eq!(of(0), [17]);
    // the first leg: a line between its joints, and a capsule; the others hang from a joint beyond their shape
    assert_eq!(of(1)[..3], [2, 33, 33]);
    assert_eq!(of(2)[..3], [2, 33, 33]);
    assert_eq!(of(5), [33, 33, 33]);
    let (leg, foot) = (1, 5);
    let link = recording::Link {
        parent: leg,
        parent_point: [0.0, 0.0, -0.2],
        child: foot,
        child_point: [0.0, 0.0, 0.0],
    };
    assert_eq!(r.links, [link]);
    // limits are those of the coordinate
    let slide = r
        .channels
        .iter()
        .find(|c| c.name == "slide")
        .expect("exists");
    assert_eq!((slide.lower, slide.upper), (Some(0.0), Some(0.3)));
}

/// A toe that touches is drawn where it is; a shape that touches as it is is not drawn twice.
#[test]
fn what_touches_is_drawn() {
    let text = r#"
time_step = 0.01
horizon = 0.02
[mechanism.half_spaces.floor]
[mechanism.bodies.foot]
mass = 1.0
shape = { box = [0.1, 0.1, 0.4] }
free = true
[mechanism.bodies.foot.contacts.hull]
[mechanism.bodies.foot.contacts.toe]
shape = { sphere = 0.05 }
position = [0.0, 0.0, -0.3]
[initial.foot]
position = [0.0, 0.0, 1.0]
"#;
    let r = recorded(&build(text).expect("good"));
    let lengths: Vec<usize> = r.lines.iter().map(|l| l.points.len()).collect();
    assert_eq!(lengths, [17, 33, 33, 33]);
    let lowest = r
        .lines
        .iter()
        .flat_map(|l| &l.points)
        .fold(0.0, |m: f64, p| m.min(p[2]));
    assert!((lowest + 0.35).abs() < 1e-12, "{lowest}");
}

/// A tilted box that slides, lands on its corners and tumbles: friction that slips is all there may be, in every step.
#[test]
fn recorded_forces_obey_coulomb() {
    let text = r#"
time_step = 0.01
horizon = 1.0
[mechanism.half_spaces.floor]
[mechanism.bodies.box]
mass = 1.0
shape = { box = [0.2, 0.3, 0.4] }
free = true
contacts.corners = { friction = 0.3 }
[initial.box]
position = [0.0, 0.0, 0.4]
orientation = { rpy = [0.4, 0.3, 0.2] }
velocity = [2.0, 0.5, 0.0]
"#;
    let r = recorded(&build(text).expect("good"));
    let mut sliding = 0;
    for of in r.contacts.iter().map(|c| &c.name) {
        let values = |what: &str| {
            let name = format!("{what} of {of}");
            let channel = r.channels.iter().find(|c| c.name == name).expect("exists");
            channel.values.clone()
        };
        let [normal, friction, slip] = ["normal force", "friction", "slip"].map(values);
        for k in 1..r.time.len() {
            let at = |of: &[Option<f64>]| of[k].expect("a value");
            let (bound, friction, slip) = (0.3 * at(&normal), at(&friction), at(&slip));
            assert!(friction <= bound * (1.0 + 1e-6), "{of} at {k}");
            if bound > 1e-2 && slip > 1e-2 {
                sliding += 1;
                assert!(
                    (friction / bound - 1.0).abs() < 1e-3,
                    "{of} at {k}: {friction} of {bound} N at {slip} m/s"
                );
            }
        }
    }
    assert!(sliding > 20, "{sliding}");
}

#[test]
fn what_is_wanted_is_recorded() {
    use recording::{Goal, GoalKind};
    let text = format!(
        "{SAMPLE}\n[[constraints]]\nquantity = {{ position = {{ body = \"pole\", axis = \"x\" }} }}\nequals = 0.7\nat = {{ knot = 40 }}\n"
    );
    let r = recorded(&build(&text).expect("good"));
    let goals = |name: &str| -> Vec<Goal> {
        let channel = r.channels.iter().find(|c| c.name == name).expect("exists");
        channel.goals.clone()
    };
    let goal = |kind, value, first, last| Goal {
        kind,
        value,
        first,
        last,
    };
    let pi = std::f64::consts::PI;
    assert_eq!(
        goals("hinge"),
        [
            goal(GoalKind::Target, pi, 0, 99),
            goal(GoalKind::Equal, pi, 100, 100)
        ]
    );
    assert_eq!(goals("push"), [goal(GoalKind::Target, 0.0, 0, 99)]);
    assert_eq!(goals("hinge rate"), [goal(GoalKind::Equal, 0.0, 100, 100)]);
    assert_eq!(goals("rail"), []);
    // upright on the cart, wherever that is; and the point at its knot, which is free along z
    let upright = r.places.iter().find(|p| p.knot == 100).expect("a place");
    let cart = r.poses[100][0].position;
    assert_eq!((upright.kind, upright.body), (GoalKind::Equal, Some(1)));
    assert!((upright.point[0] - cart[0]).abs() < 1e-12 && (upright.point[2] - 0.5).abs() < 1e-12);
    let at = r.places.iter().find(|p| p.knot == 40).expect("a place");
    assert_eq!(at.point, [0.7, 0.0, r.poses[40][1].position[2]]);
    assert_eq!(at.orientation, None);
    // a longer or shorter run has other knots
    let short = Overrides {
        duration: Some(1.0),
        ..Overrides::default()
    };
    let m = parse(&text).expect("parses").build(&short).expect("good");
    let r = recorded(&m);
    assert!(r.places.iter().all(|p| p.knot <= 20));
}

#[test]
fn forces_that_redundant_rows_share_are_marked() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/five_bar_reach.toml");
    let short = Overrides {
        duration: Some(0.1),
        ..Overrides::default()
    };
    let m = load(&path).expect("reads").build(&short).expect("good");
    let r = recorded(&m);
    let forces = r.channels.iter();
    let forces: Vec<_> = forces
        .filter(|c| c.group == recording::Group::ConstraintForce)
        .collect();
    assert!(!forces.is_empty() && forces.iter().all(|c| c.not_unique));
    let file = folder("shared").join("run.csv");
    write_csv(&file, &r).expect("writes");
    let text = std::fs::read_to_string(&file).expect("reads");
    assert!(text.contains("left_elbow force [N, not unique]"));
    assert!(recorded(&sample()).channels.iter().all(|c| !c.not_unique));
}

#[test]
fn a_stop_carries_the_weight_that_rests_on_it() {
    let text = "time_step = 0.01\nhorizon = 0.1\n[mechanism]\ngravity = [0.0, 0.0, -10.0]\n\
         [mechanism.bodies.weight]\nmass = 2.0\ninertia = [0.1, 0.1, 0.1]\n\
         [mechanism.joints.lift]\nkind = \"prismatic\"\nchild = \"weight\"\naxis = [0, 0, 1]\nlimits = [-0.5, 1.0]\n\
         [mechanism.actuators.pull]\nbody = \"weight\"\nforce = [0, 0, 1]\n\
         [mechanism.actuators.twist]\nbody = \"weight\"\ntorque = [0, 1, 0]\n\
         [mechanism.actuators.share]\nbody = \"weight\"\nforce = [0, 0, 3]\n\
         [initial]\nlift = -0.5\n[[record]]\nquantity = { limit_force = \"lift\" }\n\
         [[costs]]\nquantity = { limit_force = \"lift\" }\ntarget = 20.0\nweight = 1.0\n";
    let r = recorded(&build(text).expect("good"));
    let of = |c: &&recording::Channel| c.group == recording::Group::LimitForce;
    let forces: Vec<_> = r.channels.iter().filter(of).collect();
    let [force] = forces[..] else {
        panic!("{} channels", forces.len());
    };
    assert_eq!(
        (force.name.as_str(), force.unit.as_str()),
        ("lift limit force", "N")
    );
    assert_eq!(force.interval, Some(recording::Interval::Before));
    assert_eq!(force.values[0], None);
    for (k, v) in force.values.iter().enumerate().skip(1) {
        assert!((v.expect("a force") - 20.0).abs() < 1e-4, "{k}: {v:?}");
    }
    assert_eq!(
        (force.goals[0].first, force.goals[0].last),
        (1, force.values.len() - 1)
    );
    // asked for once more it is the same column
    assert!((r.channels.iter()).all(|c| c.group != recording::Group::Other));
    let unit = |name: &str| {
        let channel = r.channels.iter().find(|c| c.name == name);
        channel.expect("exists").unit.clone()
    };
    assert_eq!(
        ["pull", "twist", "share"].map(unit),
        ["N", "N m", "1"].map(String::from)
    );
    let free = text.replace("limits = [-0.5, 1.0]\n", "");
    refused(
        &free,
        Some(26),
        &["`lift` has no limits", "limits = [lower, upper]"],
    );
    let end = format!("{text}at = \"end\"\n");
    refused(&end, Some(27), &["no value at the end"]);
}
