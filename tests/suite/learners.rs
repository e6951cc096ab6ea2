//! Learners: what they reach, that they reach the same bits whatever the threads and the interruptions, and what failed.

use least_action::control::{Cost, Problem, When};
use least_action::dynamics::{Explicit, Parameter, QuantityId, Real, Smooth};
use least_action::format::{self, Model, Overrides};
use least_action::optimize::learn::{Decide, Settings, ars, cmaes, gradient, mppi, search};
use least_action::optimize::{
    Checkpoint, Checkpoints, Limits, Method, Options, Remedy, Solution, Solve, Status, shooting,
    solve,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A mass on a line with friction that is a parameter, pushed by a control.
struct Mass;

impl Smooth for Mass {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter {
            name: "friction".into(),
            unit: "1/s".into(),
            value: 1.0,
        }]
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
        next[1] = x[1] + h * (u[0] - p[0] * x[1]);
        next[0] = x[0] + h * next[1];
    }
}

const STEPS: usize = 15;

/// From 0 to 1 in 1.5 s, with little effort; the optimum is a linear-quadratic one.
fn mass() -> (Explicit<Mass>, Problem) {
    let d = Explicit::new(Mass);
    let problem = Problem {
        costs: vec![
            Cost::square(QuantityId::new(0), 1.0, 10.0, When::End),
            Cost::square(QuantityId::new(1), 0.0, 1.0, When::End),
            Cost::square(d.control_quantity(0), 0.0, 0.1, When::Running),
        ],
        bounds: vec![(-5.0, 5.0)],
        ..Problem::new(&d, vec![0.1; STEPS], vec![0.0, 0.0])
    };
    (d, problem)
}

fn load(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
        .with_extension("toml");
    format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem")
}

fn settings(max_iterations: u64) -> Settings {
    Settings {
        max_iterations,
        seed: 3,
        ..Settings::default()
    }
}

/// Each learner, with so many iterations and what else is set.
fn learners(settings: Settings) -> [Options; 5] {
    [
        search::Options {
            settings,
            ..search::Options::default()
        }
        .into(),
        ars::Options {
            settings,
            directions: 8,
            top: 4,
            ..ars::Options::default()
        }
        .into(),
        cmaes::Options {
            settings,
            ..cmaes::Options::default()
        }
        .into(),
        mppi::Options {
            settings,
            population: 16,
            ..mppi::Options::default()
        }
        .into(),
        gradient::Options {
            settings,
            samples: 12,
            ..gradient::Options::default()
        }
        .into(),
    ]
}

/// All numbers of a solution that runs must share, as bits.
fn bits(s: &Solution) -> Vec<u64> {
    let rows = s.history.iter().flat_map(|i| {
        let counts = [
            i.iteration,
            i.failures.unwrap_or(0),
            i.rollouts.unwrap_or(0),
        ];
        let mean = i.mean.unwrap_or(f64::NAN);
        let gradient = i.gradient_mean.unwrap_or(f64::NAN);
        let largest = i.gradient_largest.unwrap_or(f64::NAN);
        let numbers = [i.objective, i.violation, i.optimality, i.step_length, mean];
        let numbers = numbers.into_iter().chain([gradient, largest]);
        counts.into_iter().chain(numbers.map(f64::to_bits))
    });
    let t = &s.trajectory;
    let numbers = t.x.iter().chain(&t.u).chain(&t.p).map(|v| v.to_bits());
    rows.chain(numbers)
        .chain([s.objective.to_bits(), s.violation.to_bits()])
        .chain([s.step_evaluations, s.iterations])
        .collect()
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// How far each may stay above the optimum, relative to what there is to gain.
#[test]
fn learners_come_near_a_known_optimum() {
    let (d, problem) = mass();
    let best = solve(&d, &problem).expect("solves");
    assert_eq!(best.status, Status::Converged);
    let options: [(Options, f64); 5] = [
        (
            search::Options {
                settings: settings(3000),
                ..search::Options::default()
            }
            .into(),
            1e-2,
        ),
        (
            ars::Options {
                settings: settings(300),
                ..ars::Options::default()
            }
            .into(),
            1e-2,
        ),
        (
            cmaes::Options {
                settings: settings(300),
                ..cmaes::Options::default()
            }
            .into(),
            1e-9,
        ),
        (
            mppi::Options {
                settings: settings(300),
                ..mppi::Options::default()
            }
            .into(),
            1e-2,
        ),
        (
            gradient::Options {
                settings: settings(300),
                ..gradient::Options::default()
            }
            .into(),
            1e-3,
        ),
    ];
    for (options, part) in options {
        let method = options.method().name();
        let s = Solve::new(&d, &problem).with_options(options).run();
        let s = s.expect("solves");
        let gap = (s.objective - best.objective) / (s.history[0].objective - best.objective);
        println!("{method}: {gap:.3e} after {} steps", s.step_evaluations);
        assert_eq!(s.status, Status::Completed, "{method}: {}", s.reason);
        assert!(s.status.is_solved());
        assert!((-1e-12..part).contains(&gap), "{method}: {gap}");
        assert_eq!(s.iterations + 1, s.history.len() as u64);
        // the best never gets worse, and is what is handed back
        assert!(
            s.history
                .windows(2)
                .all(|w| w[1].objective <= w[0].objective)
        );
        let last = s.history.last().expect("a row");
        assert_eq!(last.objective, s.objective);
        assert_eq!(
            last.rollouts.map(|r| r * STEPS as u64),
            Some(s.step_evaluations)
        );
        assert_eq!((last.failures, s.failed.len()), (Some(0), 0));
        assert!(last.mean.is_some_and(|m| m >= s.objective));
    }
}

/// The swing-up of a mechanism by ten knots of a spline: at the goal but for what the penalty leaves.
#[test]
fn a_pendulum_swings_up_by_a_spline() {
    let m = load("pendulum_swingup");
    let known = solve(&m.system, &m.problem).expect("solves");
    let settings = Settings {
        splines: Some(10),
        ..settings(300)
    };
    let options = cmaes::Options {
        settings,
        ..cmaes::Options::default()
    };
    let s = Solve::new(&m.system, &m.problem)
        .with_options(options)
        .run();
    let s = s.expect("solves");
    println!(
        "{} violated by {:.1e}; by ddp {}",
        s.objective, s.violation, known.objective
    );
    assert_eq!(s.status, Status::Completed);
    assert!(s.reason.contains("still violated: "), "{}", s.reason);
    assert!(s.violation < 1e-2, "{}", s.violation);
    // other swings, and fewer freedoms
    assert!(s.objective < 2.5 * known.objective, "{}", s.objective);
    assert!(s.trajectory.u.iter().all(|u| (-3.0..=3.0).contains(u)));
}

/// A ball that bounces once on a fan's jet, which is to be at a height at the end: intervals are split at the bounce, by every
/// learner, which ends near what shooting finds.
#[test]
fn learners_split_steps_at_impacts() {
    const BALL: &str = r#"
        time_step = 0.02
        horizon = 0.6
        [contact]
        impacts = "aligned"
        [mechanism]
        gravity = [0.0, 0.0, -9.81]
        [mechanism.half_spaces.floor]
        [mechanism.bodies.ball]
        mass = 1.0
        shape = { sphere = 0.1 }
        contacts.skin = { restitution = 0.8 }
        [mechanism.joints.lift]
        kind = "prismatic"
        child = "ball"
        axis = [0.0, 0.0, 1.0]
        [mechanism.actuators.fan]
        joint = "lift"
        bounds = [-5.0, 5.0]
        [initial]
        lift = { coordinate = 0.6 }
        [[costs]]
        quantity = { position = { body = "ball", axis = "z" } }
        target = 0.6
        weight = 100.0
        at = "end"
        [[costs]]
        quantity = { control = "fan" }
        weight = 0.02
    "#;
    let m = format::parse(BALL, "ball.toml").and_then(|d| d.build(&Overrides::default()));
    let m = m.unwrap_or_else(|e| panic!("{e:#}"));
    let by_shooting = shooting::Options::default();
    let known = Solve::new(&m.system, &m.problem)
        .with_options(by_shooting)
        .run();
    let known = known.expect("solves");
    assert!(known.status.is_solved(), "{}", known.reason);
    // an iteration of the first is one rollout
    let first = learners(settings(3000)).into_iter().take(1);
    for options in first.chain(learners(settings(100)).into_iter().skip(1)) {
        let method = options.method().name();
        let s = Solve::new(&m.system, &m.problem)
            .with_options(options)
            .run();
        let s = s.expect("solves");
        let gap = (s.objective - known.objective) / (s.history[0].objective - known.objective);
        println!(
            "{method}: {} of {}, {gap:.1e}",
            s.objective, known.objective
        );
        assert_eq!(
            (s.status, s.failed.len()),
            (Status::Completed, 0),
            "{method}"
        );
        assert!((-1e-2..0.1).contains(&gap), "{method}: {gap}");
    }
}

/// Parameters of a mechanism, some of which end at their bounds, which are kept to the last bit.
#[test]
fn dampers_are_tuned_within_their_bounds() {
    let mut m = load("damper_tuning");
    m.problem.intervals.truncate(100);
    let known = solve(&m.system, &m.problem).expect("solves");
    let options = cmaes::Options {
        settings: settings(150),
        ..cmaes::Options::default()
    };
    let s = Solve::new(&m.system, &m.problem)
        .with_options(options)
        .run();
    let s = s.expect("solves");
    println!("{} by cmaes, {} by ddp", s.objective, known.objective);
    assert!(s.objective < s.history[0].objective);
    assert!(
        s.objective < known.objective * (1.0 + 1e-4),
        "{}",
        s.objective
    );
    for (p, (l, h)) in s.trajectory.p.iter().zip(&m.problem.parameter_bounds) {
        assert!((l..=h).contains(&p), "{p} {l} {h}");
    }
}

#[test]
fn threads_change_no_bit() {
    let m = load("pendulum_swingup");
    let settings = Settings {
        splines: Some(8),
        ..settings(6)
    };
    for options in learners(settings) {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let solve = || {
                Solve::new(&m.system, &m.problem)
                    .with_options(options)
                    .run()
            };
            pool.expect("a pool").install(solve).expect("solves")
        };
        let one = run(1);
        assert!(one.step_evaluations > 6 * 50);
        assert_eq!(bits(&one), bits(&run(2)), "{}", options.method().name());
        assert_eq!(bits(&one), bits(&run(3)), "{}", options.method().name());
    }
}

/// In pieces of two iterations, with a file between them; then a budget that is spent, and a larger one.
#[test]
fn what_is_gone_on_with_ends_the_same() {
    let mut m = load("pendulum_swingup");
    // some rollouts fail
    m.problem.bounds = vec![(-300.0, 300.0)];
    const BUDGET: u64 = 9;
    let with_budget = |n| {
        learners(Settings {
            splines: Some(8),
            ..settings(n)
        })
    };
    for (options, half) in with_budget(BUDGET).into_iter().zip(with_budget(BUDGET / 2)) {
        let method = options.method().name();
        let file = file(&format!("learner_{method}.json"));
        let run = |options: Options, most: Option<u64>, kept: Option<Checkpoint>| {
            let save = |now: Checkpoint| Ok(format::write_json(&file, &now)?);
            let limits = Limits {
                iterations: most,
                ..Limits::default()
            };
            Solve::new(&m.system, &m.problem)
                .with_options(options)
                .with_limits(limits)
                .with_checkpoint(Checkpoints::new(kept, Duration::MAX, save))
                .run()
                .expect("solves")
        };
        let read = || format::read_checkpoint(&file).expect("a checkpoint");
        let whole = run(options, None, None);
        assert_eq!(
            (whole.status, whole.iterations),
            (Status::Completed, BUDGET)
        );
        let mut s = run(options, Some(2), None);
        let mut pieces = 1;
        while s.status == Status::MaxIterations {
            assert_eq!(s.remedy, Some(Remedy::Resume));
            s = run(options, Some(2), Some(read()));
            pieces += 1;
        }
        assert_eq!((s.status, pieces), (Status::Completed, 5), "{method}");
        assert_eq!(bits(&s), bits(&whole), "{method}");
        assert_eq!(s.failed, whole.failed);
        // nothing is left to do
        let again = run(options, None, Some(read()));
        assert_eq!(bits(&again), bits(&whole), "{method}");
        // a smaller budget, spent, and the rest
        let first = run(half, None, None);
        assert_eq!(
            (first.status, first.iterations, first.remedy),
            (Status::Completed, BUDGET / 2, Some(Remedy::Resume))
        );
        assert!(!read().has_ended());
        assert_eq!(bits(&run(options, None, Some(read()))), bits(&whole));
    }
}

/// A motor strong enough to turn the pendulum by more than half a turn in a step, which has no solution then.
#[test]
fn failures_are_counted_with_their_reasons() {
    let mut m = load("pendulum_swingup");
    m.problem.bounds = vec![(-2000.0, 2000.0)];
    // `search` goes too slowly to fail, gradients lead back
    for options in learners(settings(5)).into_iter().skip(1).take(3) {
        let method = options.method().name();
        let s = Solve::new(&m.system, &m.problem)
            .with_options(options)
            .run();
        let s = s.expect("solves");
        let counted: u64 = s.failed.iter().map(|f| f.count).sum();
        let rows: u64 = s.history.iter().filter_map(|i| i.failures).sum();
        println!("{method}: {:?}", s.failed);
        assert!(counted > 0 && counted == rows, "{method}");
        assert!(
            s.failed
                .iter()
                .all(|f| !f.kind.is_empty() && f.first.contains(" s"))
        );
        // the guess is worth something, and stays
        assert_eq!(s.status, Status::Completed, "{method}");
        assert!(s.objective.is_finite());
        assert!(s.reason.contains("rollouts failed: "), "{}", s.reason);
    }
}

/// Where every rollout fails nothing was completed.
#[test]
fn what_never_succeeds_has_diverged() {
    let (d, mut problem) = mass();
    problem.guess = vec![1e300; STEPS];
    problem.bounds = vec![(f64::NEG_INFINITY, f64::INFINITY)];
    problem.parameter_bounds = vec![(0.0, 2.0)];
    problem.costs = vec![Cost::square(QuantityId::new(0), 1.0, 1e300, When::End)];
    let only = Settings {
        decide: Decide::Parameters,
        ..settings(3)
    };
    for options in learners(only) {
        let s = Solve::new(&d, &problem).with_options(options).run();
        let s = s.expect("solves");
        assert_eq!((s.status, s.iterations), (Status::Diverged, 3));
        assert!(s.reason.contains("rollouts failed: "), "{}", s.reason);
        assert!(!s.status.is_solved() && s.objective.is_infinite());
        assert!(s.history.iter().all(|i| i.mean.is_none()));
    }
}

#[test]
fn what_is_decided_is_what_was_asked_for() {
    let (d, mut problem) = mass();
    problem.parameter_bounds = vec![(0.2, 1.5)];
    problem.guess = (0..STEPS).map(|k| 1.0 + 0.1 * k as f64).collect();
    let run = |decide, problem: &Problem| {
        let settings = Settings {
            decide,
            ..settings(20)
        };
        let options = cmaes::Options {
            settings,
            ..cmaes::Options::default()
        };
        Solve::new(&d, problem).with_options(options).run()
    };
    let controls = run(Decide::Controls, &problem).expect("solves").trajectory;
    assert!(controls.p == [1.0] && controls.u != problem.guess);
    let parameters = run(Decide::Parameters, &problem)
        .expect("solves")
        .trajectory;
    assert!(parameters.p != [1.0] && parameters.u == problem.guess);
    assert!((0.2..=1.5).contains(&parameters.p[0]));
    let all = run(Decide::All, &problem).expect("solves").trajectory;
    assert!(all.p != [1.0] && all.u != problem.guess);
    // what there is not cannot be decided
    problem.parameter_bounds = vec![(1.0, 1.0)];
    let said = run(Decide::Parameters, &problem).expect_err("nothing to decide");
    let said = said.to_string();
    assert!(
        said.contains("decide is `parameters`") && said.contains("no free parameters"),
        "{said}"
    );
    let many = Settings {
        splines: Some(STEPS + 1),
        ..settings(5)
    };
    for options in learners(many) {
        let said = Solve::new(&d, &problem).with_options(options).run();
        let said = said.expect_err("too many knots").to_string();
        assert!(
            said.contains("splines is 16") && said.contains("at most 15"),
            "{said}"
        );
    }
}

/// Another seed is another curve; the same seed the same.
#[test]
fn seeds_are_seeds() {
    let (d, problem) = mass();
    for method in Method::ALL.into_iter().filter(|m| m.is_learner()) {
        let run = |seed| {
            let with = |s: Settings| Settings {
                seed,
                max_iterations: 5,
                ..s
            };
            let options: Options = match method.options() {
                Options::Search(o) => search::Options {
                    settings: with(o.settings),
                    ..o
                }
                .into(),
                Options::Ars(o) => ars::Options {
                    settings: with(o.settings),
                    ..o
                }
                .into(),
                Options::Cmaes(o) => cmaes::Options {
                    settings: with(o.settings),
                    ..o
                }
                .into(),
                Options::Mppi(o) => mppi::Options {
                    settings: with(o.settings),
                    ..o
                }
                .into(),
                Options::PolicyGradient(o) => gradient::Options {
                    settings: with(o.settings),
                    samples: 2,
                    ..o
                }
                .into(),
                other => other,
            };
            bits(
                &Solve::new(&d, &problem)
                    .with_options(options)
                    .run()
                    .expect("solves"),
            )
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
