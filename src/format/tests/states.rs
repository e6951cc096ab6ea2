//! Guesses of states.

use super::start::LOOP;
use super::*;

fn with(states: &str) -> String {
    let controls = "controls = { push = 0.01 } ";
    changed(controls, &format!("states = {states}\n{controls}"))
}

/// Values of a joint's only coordinate along the guess.
fn along(m: &Model, joint: &str) -> Vec<f64> {
    let j = m.system.mechanism().joint(joint).expect("there");
    let nx = m.system.dims().nx;
    let states = m
        .problem
        .guess_states
        .chunks(m.problem.guess_states.len() / (m.problem.intervals.len() + 1));
    states
        .map(|x| m.system.coordinate(&x[..nx], j, 0))
        .collect()
}

#[test]
fn coordinates_run_straight_between_their_times() {
    let m = build(&with(
        "[{ time = 2.0, joints = { hinge = 4.0, rail = 0.5 } }, { time = 3.0, joints = { hinge = 3.5 } }]",
    ))
    .expect("good");
    let (s, nx) = (&m.system, m.system.dims().nx);
    let x = &m.problem.guess_states;
    assert_eq!(x.len(), 101 * nx);
    assert_eq!(x[..nx], m.x0);
    let (hinge, rail) = (along(&m, "hinge"), along(&m, "rail"));
    for k in 0..=100 {
        let t = 0.05 * k as f64;
        let expected = match t {
            t if t <= 2.0 => 2.0 * t,
            t if t <= 3.0 => 4.0 - 0.5 * (t - 2.0),
            _ => 3.5,
        };
        assert!((hinge[k] - expected).abs() < 1e-12, "{k}: {}", hinge[k]);
        // beyond its last time a coordinate stays, angles are unwound
        assert!(
            (rail[k] - 0.25 * t.min(2.0)).abs() < 1e-12,
            "{k}: {}",
            rail[k]
        );
        let state = &x[k * nx..(k + 1) * nx];
        assert!(s.violation(state) < 1e-12);
        // a state's velocities lead to it from the one before
        if k > 0 {
            let before = s.poses(&x[(k - 1) * nx..k * nx]);
            let pairs = s.poses(state).into_iter().zip(before);
            for ((now, old), (v, w)) in pairs.zip(s.interval_velocities(state, 0.05)) {
                assert!((old.x + v * 0.05 - now.x).norm() < 1e-12);
                let half = w * 0.025;
                let root = (1.0 - half.norm_squared()).sqrt();
                let turn = nalgebra::Quaternion::from_parts(root, half);
                let reached = old.q.into_inner() * turn;
                assert!((reached - now.q.into_inner()).norm() < 1e-12, "{k}");
            }
        }
    }
    // without them there are none, and they do not make another problem
    assert!(sample().problem.guess_states.is_empty());
    assert_eq!(m.fingerprint(), sample().fingerprint());
}

/// Where loops close the other joints follow; where controls are remembered each state has the one before.
#[test]
fn loops_close_and_controls_are_remembered() {
    let tail = "[guess]\nstates = [{ time = 1.0, joints = { a = 1.1 } }]\n";
    let m = build(&format!("{LOOP}{tail}")).expect("good");
    let nx = m.system.dims().nx;
    let a = along(&m, "a");
    for (k, x) in m.problem.guess_states.chunks_exact(nx).enumerate() {
        assert!(m.system.violation(x) < 1e-10, "{k}");
        assert!(
            (a[k] - 0.3 - 0.008 * k as f64).abs() < 1e-10,
            "{k}: {}",
            a[k]
        );
    }
    assert!((along(&m, "b")[100] + 1.1).abs() < 1e-9, "a parallelogram");

    let rates = "[[costs]]\nquantity = { control_rate = \"push\" }\nweight = 0.1\n\n[method]";
    let text = with("[{ time = 5.0, joints = { hinge = 3.0 } }]").replace("[method]", rates);
    let m = build(&text).expect("good");
    let nx = m.extended().dims().nx;
    assert_eq!(m.problem.guess_states.len(), 101 * nx);
    for (k, x) in m.problem.guess_states.chunks_exact(nx).enumerate() {
        assert_eq!(x[nx - 1], if k == 0 { 0.0 } else { 0.01 });
    }
    assert!((along(&m, "hinge")[50] - 1.5).abs() < 1e-12);
}

#[test]
fn a_recorded_trajectory_is_a_guess() {
    let m = sample();
    let mut t = crate::rollout::Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.u.iter_mut()
        .enumerate()
        .for_each(|(k, u)| *u = (0.3 * k as f64).sin());
    t.roll(
        &m.system,
        &mut m.system.work(),
        &mut crate::rollout::RolloutStats::default(),
    )
    .expect("rolls");
    let place = folder("states").join("t.csv");
    write_csv(&place, &record(&m, &t, "simulated", &[]).expect("records")).expect("writes");
    let file = |path: &Path| with(&format!("{:?}", path.display().to_string()));
    let guessed = build(&file(&place)).expect("good");
    let states = &guessed.problem.guess_states;
    assert_eq!(states.len(), t.x.len());
    let (nx, nu) = (m.x0.len(), m.problem.bounds.len());
    for (k, (a, b)) in states
        .chunks_exact(nx)
        .zip(t.x.chunks_exact(nx))
        .enumerate()
    {
        for (a, b) in a[..nx - nu].iter().zip(b) {
            // joints hold to 1e-10 m, of which the velocities see 1e-10/h
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
        // the previous controls are those of the guess
        let previous = k
            .checked_sub(1)
            .map_or(0.0, |k| guessed.problem.guess[k * nu]);
        assert_eq!(a[nx - nu], previous, "{k}");
    }
    // what is no such file
    let line = Some(line_of(&file(&place), "states = "));
    let broken = |name: &str, text: &str, words: &[&str]| {
        let place = folder("states").join(name);
        std::fs::write(&place, text).expect("writes");
        refused(&file(&place), line, words);
    };
    refused(
        &file(&place.with_extension("tsv")),
        line,
        &["cannot read", "simulate"],
    );
    broken(
        "a.csv",
        "time [s],rail [m]\n0,0\n1,1\n",
        &["no column `hinge`", "`rail`"],
    );
    broken("b.csv", "rail,hinge\n0,0\n", &["no column `time`"]);
    broken(
        "c.csv",
        "time,rail,hinge\n0,0,0\n",
        &["has 1 rows", "two times"],
    );
    broken(
        "d.csv",
        "time,rail,hinge\n0,0,0\n0,0,0\n",
        &["line 3: the time falls back to 0 s"],
    );
    broken(
        "e.csv",
        "time,rail,hinge\n0,0,0\n1,,0\n",
        &["line 3: `rail` is ``", "finite"],
    );
}

#[test]
fn wrong_states_are_refused() {
    for (states, words) in [
        (
            "[{ time = 0.0, joints = { hinge = 1.0 } }]",
            &["guessed state 1 is 0 s", "after 0"][..],
        ),
        (
            "[{ time = 5.1, joints = {} }]",
            &["is 5.1 s", "horizon of 5 s"],
        ),
        ("[{ time = nan, joints = {} }]", &["is NaN s", "ascending"]),
        (
            "[{ time = 2.0, joints = {} }, { time = 2.0, joints = {} }]",
            &["guessed state 2 is 2 s", "here after 2 s"],
        ),
        (
            "[{ time = 2.0, joints = { hing = 1.0 } }]",
            &["unknown joint or free body `hing`", "`hinge`"],
        ),
        (
            "[{ time = 2.0, joints = { hinge = [1.0, 2.0] } }]",
            &["has 2 numbers, expected 1"],
        ),
        (
            "[{ time = 2.0, joints = { hinge = inf } }]",
            &["`hinge` is inf", "finite"],
        ),
        (
            "[{ time = 0.1, joints = { hinge = 3.2 } }]",
            &["turn `hinge` by more than pi/2", "0.05 s"],
        ),
        ("[{ time = 2.0, joint = {} }]", &["joint"]),
        ("{ hinge = 1.0 }", &["list of tables { time, joints }"]),
    ] {
        let text = with(states);
        refused(&text, Some(line_of(&text, "states = ")), words);
    }
    // a joint that closes a loop, and a place that none reaches
    let on_loop = |states: &str| format!("{LOOP}[guess]\nstates = [{states}]\n");
    for (states, words) in [
        (
            "{ time = 1.0, joints = { d = 0.2 } }",
            &["joint `d` closes a loop", "other joints"][..],
        ),
        (
            "{ time = 1.0, joints = { c = 0.2, b = 0.5, a = 0.9 } }",
            &["out of reach at 0.01 s", "fewer joints"],
        ),
    ] {
        let text = on_loop(states);
        refused(&text, Some(line_of(&text, "states = ")), words);
    }
}
