//! `solve` by a learner.

use super::*;
use std::time::{Duration, Instant};

/// The pendulum by a learner with these settings.
fn learnt(settings: &str) -> String {
    changed("pendulum_swingup", "name = \"ddp\"", settings)
}

#[test]
fn a_budget_that_is_spent_is_a_success() {
    let folder = Folder::new("learner_completes");
    let file = problem("pendulum_swingup");
    let arguments = |n| {
        [
            "solve",
            &file,
            "--method",
            "cmaes",
            "--max-iterations",
            n,
            "--json",
        ]
    };
    let v = folder.json(&arguments("4"));
    assert_eq!(
        (&v["status"], &v["method"]),
        (&"completed".into(), &"cmaes".into())
    );
    assert_eq!(
        (&v["iterations"], &v["gradient_evaluations"]),
        (&4.into(), &0.into())
    );
    assert!(v["optimality"].is_null());
    assert!(
        v["reason"]
            .as_str()
            .is_some_and(|r| r.contains("all 4 iterations were made; still violated: "))
    );
    assert_eq!(v["failed_rollouts"], serde_json::json!({}));
    solve::solved_files(&folder, "out/pendulum_swingup", &v, "svg");
    // one rollout of the guess, then generations of 4 + 3 ln 50, in fours
    let (columns, rows) = folder.table("out/pendulum_swingup/convergence.csv");
    let column = |name: &str| columns.iter().position(|c| c == name).expect("the column");
    let rollouts: Vec<f64> = rows.iter().map(|r| r[column("rollouts")]).collect();
    assert_eq!(rollouts, [1.0, 17.0, 33.0, 49.0, 65.0]);
    assert!(rows.iter().all(|r| r[column("failures")] == 0.0));
    assert!(rows[1..].iter().all(|r| r[column("mean")].is_finite()));
    // a larger budget goes on to where it leads at once
    let steps = number(&v, "step_evaluations");
    let mut more = arguments("9").to_vec();
    more.push("--resume");
    let on = folder.json(&more);
    assert_eq!(
        (&on["status"], &on["iterations"]),
        (&"completed".into(), &9.into())
    );
    assert!(number(&on, "step_evaluations") > steps);
    let mut anew = arguments("9").to_vec();
    anew.extend(["--out", "anew"]);
    folder.json(&anew);
    for f in ["trajectory.csv", "convergence.csv"] {
        let of = |place: &str| folder.read(&format!("{place}/{f}"));
        assert!(of("out/pendulum_swingup") == of("anew"), "{f} differs");
    }
    let run = folder.run(&["solve", &file, "--method", "mppi", "--max-iterations", "2"]);
    let run = run.ended(0);
    assert!(
        run.out.contains("completed after 2 iterations"),
        "{}",
        run.out
    );
    run.says(&["model predictive path integral control"]);
}

/// Killed without a chance to tidy up, and on from its last checkpoint: the same bytes as without.
#[test]
#[cfg(unix)]
fn a_learner_that_was_killed_ends_the_same() {
    let folder = Folder::new("learner_killed");
    let endless = "name = \"cmaes\"\nsplines = 12\nmax_iterations = 1000000000\nseed = 4";
    folder.write("p.toml", &learnt(endless));
    let mut child = folder
        .command(&["solve", "p.toml", "--out", "killed"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let begun = Instant::now();
    while !folder.path("killed/checkpoint.json").exists() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("SIGKILL");
    assert_eq!(child.wait().expect("ends").code(), None);
    assert!(!folder.path("killed/trajectory.csv").exists());
    let kept: Value = serde_json::from_str(&folder.text("killed/checkpoint.json")).expect("JSON");
    let made = kept["history"].as_array().expect("a history").len() - 1;
    assert!(made > 0);
    let budget = (made + 20).to_string();
    let solve = |more: &[&str]| {
        let mut a = vec!["solve", "p.toml", "--max-iterations", &budget, "--json"];
        a.extend(more);
        folder.json(&a)
    };
    let v = solve(&["--out", "killed", "--resume"]);
    assert_eq!(
        (&v["status"], &v["iterations"]),
        (&"completed".into(), &(made + 20).into())
    );
    let whole = solve(&["--out", "whole", "--threads", "1"]);
    for field in [
        "objective",
        "step_evaluations",
        "parameters",
        "failed_rollouts",
    ] {
        assert_eq!(v[field], whole[field]);
    }
    for f in ["trajectory.csv", "convergence.csv"] {
        let of = |place: &str| folder.read(&format!("{place}/{f}"));
        assert!(of("whole") == of("killed"), "{f} differs");
    }
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new("learner_refused");
    let refused = |settings: &str, words: &[&str]| {
        folder.write("p.toml", &learnt(settings));
        folder.run(&["solve", "p.toml"]).refused(words);
        assert_eq!(folder.list(), ["p.toml"]);
    };
    refused(
        "name = \"mppi\"\npopulation = 1",
        &["p.toml:", "population is 1", "at least 2"],
    );
    refused(
        "name = \"ars\"\ndirections = 4\ntop = 5",
        &["top is 5", "at most 4"],
    );
    refused("name = \"cmaes\"\nsigma = 0", &["sigma is 0", "positive"]);
    refused(
        "name = \"search\"\npenalty = -1.0",
        &["penalty is -1", "positive"],
    );
    refused(
        "name = \"search\"\npopulation = 8",
        &["population is a setting of `cmaes`, `mppi`, `particle-swarm`, not of `search`"],
    );
    refused(
        "name = \"ddp\"\nseed = 1",
        &[
            "seed is a setting of `search`, `ars`, `cmaes`, `mppi`, `policy-gradient`, `particle-swarm`, `direct`, not of `ddp`",
        ],
    );
    refused(
        "name = \"ars\"\noptimality = 1e-3",
        &["optimality is a setting of", "not of `ars`"],
    );
    refused(
        "name = \"ars\"\nmemory = 4",
        &["memory is a setting of `shooting`, `lbfgs`, `direct`, not of `ars`"],
    );
    refused(
        "name = \"mppi\"\ndecide = \"parameters\"",
        &["mppi", "no free parameters"],
    );
    refused(
        "name = \"mppi\"\ndecide = \"gains\"",
        &["p.toml:", "gains", "parameters"],
    );
    refused(
        "name = \"cmaes\"\nsplines = 51",
        &["splines is 51", "at most 50"],
    );
}

/// The seed of the command line is that of the learner; `all` leaves learners out that the file does not name.
#[test]
fn seeds_and_all() {
    let folder = Folder::new("learner_seeds");
    let of = |settings: &str, out: &str, more: &[&str]| {
        folder.write("p.toml", &learnt(settings));
        let mut a = vec!["solve", "p.toml", "--out", out];
        a.extend(more);
        folder.run(&a).ended(0);
        folder.read(&format!("{out}/trajectory.csv"))
    };
    let few = "name = \"mppi\"\nmax_iterations = 2";
    let two = of(&format!("{few}\nseed = 2"), "a", &[]);
    assert!(two == of(few, "b", &["--seed", "2"]));
    assert!(two == of(&format!("{few}\nseed = 1"), "c", &["--seed", "2"]));
    assert!(two != of(few, "d", &[]));
    folder.write("p.toml", &learnt("name = \"ars\"\nmax_iterations = 1"));
    let run = folder.run(&[
        "solve", "p.toml", "--method", "all", "--out", "all", "--json",
    ]);
    let run = run.ended(0);
    run.says(&["all leaves the learners search, cmaes, mppi, policy-gradient aside"]);
    let v = run.json();
    let all = v["methods"].as_array().expect("a list");
    let methods: Vec<&str> = all.iter().filter_map(|m| m["method"].as_str()).collect();
    let others = ["lbfgs", "newton-cg", "trust-region", "gauss-newton"];
    let expected: Vec<&str> = ["ddp", "shooting", "multiple-shooting"]
        .into_iter()
        .chain(others)
        .chain(["ars", "direct"])
        .collect();
    assert_eq!(methods, expected);
}
