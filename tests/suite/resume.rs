//! A solve that is stopped, kept in a file and gone on with takes the same steps as one that is not.

use least_action::dynamics::Step;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{Checkpoint, Checkpoints, Solution, Solve, Status, ddp, shooting};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn load(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
        .with_extension("toml");
    format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem")
}

type By = fn(&Model, u64, Checkpoints) -> Solution;

fn by_ddp(m: &Model, most: u64, checkpoints: Checkpoints) -> Solution {
    let options = ddp::Options {
        max_iterations: most,
        ..m.options.ddp()
    };
    Solve::new(&m.system, &m.problem)
        .with_options(options)
        .with_checkpoint(checkpoints)
        .run()
        .expect("no argmin error")
}

pub fn by_segments(m: &Model, most: u64, checkpoints: Checkpoints) -> Solution {
    let options = ddp::Options {
        max_iterations: most,
        ..m.options.multiple_shooting()
    };
    Solve::new(&m.system, &m.problem)
        .with_options(options)
        .with_checkpoint(checkpoints)
        .run()
        .expect("no argmin error")
}

fn by_shooting(m: &Model, most: u64, checkpoints: Checkpoints) -> Solution {
    let options = shooting::Options {
        max_iterations: most,
        ..m.options.shooting()
    };
    Solve::new(&m.system, &m.problem)
        .with_options(options)
        .with_checkpoint(checkpoints)
        .run()
        .expect("no argmin error")
}

/// One run, and one in pieces of so many iterations with a file between them.
fn in_pieces(m: &Model, solve: By, most: u64, file: &Path) -> [Solution; 2] {
    let whole = solve(m, 5000, Checkpoints::default());
    let mut kept: Option<Checkpoint> = None;
    let mut size = 0;
    let pieces = loop {
        let save = |now: Checkpoint| Ok(format::write_json(file, &now)?);
        let s = solve(m, most, Checkpoints::new(kept, Duration::MAX, save));
        if s.status != Status::MaxIterations || s.iterations > whole.iterations {
            break s;
        }
        size = size.max(std::fs::metadata(file).expect("a file").len());
        kept = Some(format::read_checkpoint(file).expect("a checkpoint"));
    };
    println!(
        "{}: {} and {} iterations, {size} bytes",
        m.title, whole.iterations, pieces.iterations
    );
    [whole, pieces]
}

fn same(name: &str, most: u64) {
    let m = load(name);
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let all = [
        ("ddp", by_ddp as By),
        ("shooting", by_shooting),
        ("multiple-shooting", by_segments),
    ];
    for (method, solve) in all {
        let file = place.join(format!("resume_{name}_{method}.json"));
        let [whole, pieces] = in_pieces(&m, solve, most, &file);
        assert_eq!(whole.status, Status::Converged, "{}", whole.reason);
        assert_eq!(pieces.status, Status::Converged, "{}", pieces.reason);
        assert_eq!(whole.history, pieces.history, "{name} by {method}");
        assert_eq!(whole.trajectory.u, pieces.trajectory.u);
        assert_eq!(whole.trajectory.p, pieces.trajectory.p);
        let counts = |s: &Solution| (s.step_evaluations, s.gradient_evaluations);
        assert_eq!(counts(&whole), counts(&pieces));
    }
}

#[test]
fn cart_pole() {
    same("cartpole_swingup", 20);
}

#[test]
fn acrobot() {
    same("acrobot_swingup", 20);
}

/// In every iteration anew; with frames, a loop, inequalities.
#[test]
fn spatial_arm() {
    same("spatial_arm_reach", 1);
}

/// Free parameters.
#[test]
fn dampers() {
    same("damper_tuning", 2);
}

/// States given as a guess, which leave gaps.
#[test]
fn cart_pole_from_states() {
    let mut m = load("cartpole_swingup");
    let x0 = m
        .problem
        .start(&m.system, &m.problem.parameters, &mut m.system.work())
        .expect("a start");
    m.problem.guess_states = x0.repeat(m.problem.intervals.len() + 1);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("resume_states.json");
    let [whole, pieces] = in_pieces(&m, by_ddp, 1, &file);
    assert_eq!(whole.status, Status::Converged, "{}", whole.reason);
    assert_eq!(whole.history, pieces.history);
}

/// Levels that the file names anew are gone through from the first, from the point that was kept.
#[test]
fn other_levels() {
    let m = load("block_push");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("resume_levels.json");
    let solve = |start, most, kept| {
        let save = |now: Checkpoint| Ok(format::write_json(&file, &now)?);
        let smoothing = ddp::Smoothing {
            start,
            ..ddp::Smoothing::default()
        };
        let options = ddp::Options {
            max_iterations: most,
            smoothing: Some(smoothing),
            ..m.options.ddp()
        };
        Solve::new(&m.system, &m.problem)
            .with_options(options)
            .with_checkpoint(Checkpoints::new(kept, Duration::MAX, save))
            .run()
            .expect("no argmin error")
    };
    let first = solve(1e-2, 3, None);
    let at = first.history.len();
    let kept = format::read_checkpoint(&file).expect("a checkpoint");
    for (start, expected) in [(1e-2, first.history[at - 1].smoothing), (1.0, 1.0)] {
        let again = solve(start, 500, Some(kept.clone()));
        assert_eq!(again.history[..at], first.history);
        assert_eq!(again.history[at].smoothing, expected);
        assert_eq!(again.status, Status::Converged, "{}", again.reason);
    }
}

/// Steps softened on the way, since those on hard contact led nowhere.
#[test]
fn ball_kick() {
    let m = load("ball_kick");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("resume_ball_kick.json");
    let [whole, pieces] = in_pieces(&m, by_ddp, 60, &file);
    assert_eq!(whole.status, pieces.status, "{}", whole.reason);
    assert_eq!(whole.history, pieces.history);
    assert_eq!(whole.trajectory.u, pieces.trajectory.u);
}
