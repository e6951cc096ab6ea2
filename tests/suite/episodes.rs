//! Episodes: their derivatives by policies against differences, windows, ends, batches, energy; and learners on them.

use crate::common::{Source, Y};
use least_action::control::{
    Adjoints, ClosedLoop, Cost, Distribution, Draw, Drawn, End, Environment, Episodes, Loop,
    Objective, Pd, Point, Problem, When,
};
use least_action::dynamics::{
    Explicit, Observe, Parameter, QuantityId, Real, Smooth, Step, StepError,
};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{
    ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, Quantity, Shape,
};
use least_action::optimize::learn::{Settings, gradient};
use least_action::optimize::{Method, Solve, Status};
use least_action::rollout;
use std::num::NonZeroUsize;

/// A mass in a double well under a spring-damper whose gains are parameters; its costs are on its states alone.
struct Well;

impl Smooth for Well {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn parameters(&self) -> Vec<Parameter> {
        ["stiffness", "damping"]
            .map(|name| Parameter {
                name: name.into(),
                unit: "1".into(),
                value: 0.7,
            })
            .to_vec()
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
        let one = T::from(1.0);
        next[1] = x[1] + h * (x[0] * (one - x[0] * x[0]) - p[0] * x[0] - p[1] * x[1] + u[0]);
        next[0] = x[0] + h * next[1];
    }
}

const STEPS: usize = 24;

/// With another cost at every knot.
fn well() -> (Explicit<Well>, Problem) {
    let d = Explicit::new(Well);
    let mut r = Source::new(5);
    let knots = 0..=STEPS;
    let cost = |k: usize| {
        let which = QuantityId::new(k % 2);
        Cost::square(which, 0.4 * r.unit(), 1.0 + 0.5 * r.unit(), When::Knot(k))
    };
    let problem = Problem {
        costs: knots.map(cost).collect(),
        guess: Source::new(6).vector(STEPS, 0.3),
        ..Problem::new(&d, vec![0.2; STEPS], vec![0.9, -0.2])
    };
    (d, problem)
}

fn nonzero(n: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(n)
}

/// Truncated gradients are the sums of those of the windows, each a problem of its own that starts from the state reached;
/// one window is the gradient itself.
#[test]
fn windows_start_from_the_states_reached() {
    let (d, problem) = well();
    let objective = Objective::new(&d, &problem).expect("fits");
    let (point, mut w) = (objective.guess(), objective.work());
    let exact = objective.value_and_gradient(&point, &mut w).expect("rolls");
    let t = w.trajectory().clone();
    for window in [1, 5, 8, STEPS, 3 * STEPS] {
        let cut = objective.clone().with_window(nonzero(window));
        let cut = cut.value_and_gradient(&point, &mut w).expect("rolls");
        assert_eq!(cut.objective, exact.objective);
        let (mut parameters, mut controls) = (vec![0.0; 2], vec![]);
        for first in (0..STEPS).step_by(window) {
            let steps = window.min(STEPS - first);
            let costs = problem.costs.iter().enumerate();
            let own = costs.filter(|(k, _)| (first + 1..=first + steps).contains(k));
            let own = own.map(|(k, c)| Cost {
                when: When::Knot(k - first),
                ..*c
            });
            let part = Problem {
                state: Some(t.state(first).to_vec()),
                costs: own.collect(),
                guess: problem.guess[first..first + steps].to_vec(),
                ..Problem::new(&d, vec![0.2; steps], vec![0.0, 0.0])
            };
            let part = Objective::new(&d, part).expect("fits");
            let g = part.value_and_gradient(&part.guess(), &mut part.work());
            let g = g.expect("rolls");
            parameters
                .iter_mut()
                .zip(&g.parameters)
                .for_each(|(s, g)| *s += g);
            controls.extend(g.controls);
        }
        let pairs = cut.parameters.iter().zip(&parameters);
        for (a, b) in pairs.chain(cut.controls.iter().zip(&controls)) {
            assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{window}: {a} {b}");
        }
        if window < STEPS {
            let off = cut.parameters[0] - exact.parameters[0];
            assert!(off.abs() > 1e-2 * exact.parameters[0].abs(), "{off}");
        } else {
            assert_eq!(cut, exact);
        }
    }
}

/// Stepped from outside, an environment gives the problem's costs and, window by window, its gradient; observations' adjoints
/// carry what one window owes the next.
#[test]
fn an_environment_is_its_problem() {
    let (d, problem) = well();
    let objective = Objective::new(&d, &problem).expect("fits");
    let exact = objective
        .value_and_gradient(&objective.guess(), &mut objective.work())
        .expect("rolls");
    let states = vec![QuantityId::new(0), QuantityId::new(1)];
    let environment = Environment::new(objective, states).expect("fits");
    let mut e = environment.episode();
    assert!(e.is_over() && e.step(&[0.0]).is_err());
    e.reset(0).expect("starts");
    let (mut total, mut seen) = (0.0, e.observations().to_vec());
    for u in &problem.guess {
        total += e.step(&[*u]).expect("steps");
        seen.extend(e.observations());
    }
    assert!(e.is_over() && e.step(&[0.0]).is_err());
    assert_eq!(seen, e.trajectory().x);
    assert!((total + exact.objective).abs() < 1e-12 * exact.objective);
    // from the last window to the first
    let (mut controls, mut parameters, mut behind) = (vec![], vec![0.0; 2], vec![0.0; 2]);
    for first in (0..STEPS).step_by(7).rev() {
        let steps = 7.min(STEPS - first);
        let mut observations = vec![0.0; 2 * (steps + 1)];
        observations[2 * steps..].copy_from_slice(&behind);
        let adjoints = Adjoints {
            rewards: &vec![-1.0; steps],
            observations: &observations,
        };
        let by = e.pull(first..first + steps, &adjoints).expect("pulls");
        controls.splice(0..0, by.controls);
        parameters
            .iter_mut()
            .zip(&by.parameters)
            .for_each(|(s, g)| *s += g);
        behind = by.start;
    }
    let pairs = controls.iter().zip(&exact.controls);
    let pairs = pairs.chain(parameters.iter().zip(&exact.parameters));
    for (a, b) in pairs.chain(behind.iter().zip(&exact.by_start)) {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{a} {b}");
    }
    // what does not fit is refused in words
    for (window, rewards, words) in [
        (0..STEPS + 1, 0, "of 24 made"),
        (3..3, 0, "of 24 made"),
        (0..4, 3, "3 numbers; give 4"),
    ] {
        let adjoints = Adjoints {
            rewards: &vec![1.0; rewards],
            observations: &[],
        };
        let said = e.pull(window, &adjoints).expect_err("refused").to_string();
        assert!(said.contains(words), "{said}");
    }
}

fn model(text: &str) -> Model {
    format::parse(text, "episodes.toml")
        .and_then(|d| d.build(&Overrides::default()))
        .unwrap_or_else(|e| panic!("{e:#}"))
}

/// A ball above the ground that a network pushes up and down; it ends when it is thrown too high.
fn bouncer(above: f64) -> Model {
    model(&format!(
        r#"
        time_step = 0.02
        horizon = 0.8
        [mechanism.half_spaces.floor]
        [mechanism.bodies.ball]
        mass = 1.0
        shape = {{ sphere = 0.1 }}
        contacts.skin = {{ friction = 0.5 }}
        [mechanism.joints.lift]
        kind = "prismatic"
        child = "ball"
        axis = [0.0, 0.0, 1.0]
        [mechanism.actuators.push]
        joint = "lift"
        bounds = [-40.0, 40.0]
        [initial]
        lift = 0.3
        [policy.network]
        sees = [{{ quantity = {{ joint = "lift" }} }}, {{ quantity = {{ interval_rate = "lift" }} }}]
        layers = [4]
        seed = 2
        [episodes]
        count = 3
        seed = 4
        [episodes.starts.lift]
        coordinate = {{ uniform = [0.15, 0.4] }}
        rate = {{ normal = [0.0, 0.5] }}
        [[episodes.ends]]
        quantity = {{ joint = "lift" }}
        above = {above:?}
        cost = 3.0
        rest = 2.0
        [[costs]]
        quantity = {{ joint = "lift" }}
        target = 0.5
        weight = 10.0
        [[costs]]
        quantity = {{ control = "push" }}
        weight = 0.01
        [[costs]]
        quantity = {{ interval_rate = "lift" }}
        weight = 1.0
        at = "end"
        "#
    ))
}

/// The return of an episode by the weights of a network, through contact and with an end inside, against differences; over the
/// whole horizon, and truncated.
#[test]
fn gradients_of_episodes() {
    for (above, push, ends) in [(9.0, 0.0, false), (0.55, 1.0, true)] {
        let m = bouncer(above);
        let system = m.extended();
        let objective = Objective::new(&system, &m.problem).expect("fits");
        let mut w = objective.work();
        let mut point = objective.guess();
        // weights that do something; the bias of the output lifts
        let noise = Source::new(3).vector(point.parameters.len(), 0.3);
        point
            .parameters
            .iter_mut()
            .zip(noise)
            .for_each(|(p, n)| *p += n);
        *point.parameters.last_mut().expect("weights") += push;
        let mut contacts = 0;
        for seed in 4..7 {
            point.seed = Some(seed);
            let g = objective.value_and_gradient(&point, &mut w).expect("rolls");
            assert_eq!(w.ended().is_some(), ends, "{seed}");
            let knots = w.ended().map_or(40, |e| e.knot);
            if ends {
                assert!((2..40).contains(&knots), "{knots}");
            }
            let height = |k: usize| m.system.poses(w.trajectory().state(k))[0].x.z;
            let touches = |k: &usize| height(*k) < 0.1 + 1e-6;
            contacts += (0..=knots).filter(touches).count();
            let largest = g.parameters.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            assert!(largest > 1e-3);
            for i in 0..point.parameters.len() {
                let mut at = |e: f64| {
                    let mut p = point.clone();
                    p.parameters[i] += e;
                    let value = objective.value(&p, &mut w).expect("rolls");
                    assert_eq!(w.ended().map_or(40, |e| e.knot), knots);
                    value
                };
                let e = 1e-5;
                let difference = (at(e) - at(-e)) / (2.0 * e);
                let off = (g.parameters[i] - difference).abs();
                assert!(
                    off < 1e-5 * largest,
                    "{seed} {i}: {} {difference}",
                    g.parameters[i]
                );
            }
        }
        assert!(ends || contacts > 10, "{contacts}");
    }
}

/// x+ = x + h (1 + u)
#[derive(Debug)]
struct Line;

impl Smooth for Line {
    fn states(&self) -> usize {
        1
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
        next[0] = x[0] + h * (T::from(1.0) + u[0]);
    }
}

fn line() -> (Explicit<Line>, Problem) {
    let d = Explicit::new(Line);
    let x = QuantityId::new(0);
    let episodes = Episodes {
        draws: vec![Draw {
            number: Drawn::Coordinate(0),
            from: Distribution::Uniform(0.0, 0.1),
        }],
        ends: vec![End {
            quantity: x,
            lower: -1.0,
            upper: 1.0,
            cost: 5.0,
            rest: 3.0,
        }],
        count: 4,
        seed: 1,
    };
    let problem = Problem {
        rates: vec![],
        costs: vec![
            Cost::linear(x, 2.0, When::Running),
            Cost::square(x, 0.0, 100.0, When::End),
        ],
        episodes: Some(episodes),
        ..Problem::new(&d, vec![0.25; 8], vec![0.0])
    };
    (d, problem)
}

/// What an episode that ends costs, by hand: the sum until then, the end, and the rest of the horizon.
#[test]
fn a_fall_ends_a_rollout_with_its_value() {
    let (d, problem) = line();
    let objective = Objective::new(&d, &problem).expect("fits");
    let (mut point, mut w) = (objective.guess(), objective.work());
    // 0, 1/4, .. and from 1.25 on beyond
    let value = objective.value(&point, &mut w).expect("rolls");
    let ended = w.ended().expect("ended");
    assert_eq!((ended.knot, ended.end, w.stats().steps), (5, 0, 5));
    let along = 2.0 * 0.25 * (0.25 + 0.5 + 0.75 + 1.0);
    assert!(
        (value - (along + 5.0 + 3.0 * 0.75)).abs() < 1e-12,
        "{value}"
    );
    // stepwise the same, with nothing behind
    let environment = Environment::new(objective.clone(), vec![QuantityId::new(0)]);
    let environment = environment.expect("fits");
    let mut e = environment.episode();
    e.reset(2).expect("starts");
    let mut total = 0.0;
    while !e.is_over() {
        total += e.step(&[0.0]).expect("steps");
    }
    point.seed = Some(2);
    let value = objective.value(&point, &mut w).expect("rolls");
    assert!((total + value).abs() < 1e-12, "{total} {value}");
    assert_eq!(e.ended(), w.ended());
    // the control that is never reached is worth nothing, those before act on the sum alone
    let g = objective.value_and_gradient(&point, &mut w).expect("rolls");
    let last = w.ended().expect("ended").knot;
    for (k, g) in g.controls.iter().enumerate() {
        let behind = last.saturating_sub(k + 1) as f64;
        assert!((g - 2.0 * 0.25 * 0.25 * behind).abs() < 1e-12, "{k}: {g}");
    }
    // held, it ends nowhere, and the end of the horizon counts
    point.controls = vec![-1.0; 8];
    point.start = Some(vec![0.5]);
    let value = objective.value(&point, &mut w).expect("rolls");
    assert!((value - (2.0 * 0.5 * 2.0 + 50.0 * 0.25)).abs() < 1e-12);
    assert_eq!(w.ended(), None);
}

#[test]
fn episodes_that_do_not_fit_are_refused_in_words() {
    type Change = fn(&mut Problem);
    let said = |change: Change| {
        let (d, mut problem) = line();
        change(&mut problem);
        Objective::new(&d, problem)
            .expect_err("refused")
            .to_string()
    };
    fn episodes(p: &mut Problem) -> &mut Episodes {
        p.episodes.as_mut().expect("episodes")
    }
    let cases: [(Change, &str); 6] = [
        (|p| episodes(p).count = 0, "the mean of 0 of them"),
        (
            |p| episodes(p).draws[0].number = Drawn::Rate(0),
            "no rate 0 to draw; the problem has 0",
        ),
        (
            |p| episodes(p).draws[0].from = Distribution::Uniform(1.0, 0.0),
            "the smaller first",
        ),
        (
            |p| {
                let draw = episodes(p).draws[0];
                episodes(p).draws.push(draw);
            },
            "drawn twice",
        ),
        (|p| p.state = Some(vec![0.0]), "a state met in motion"),
        (
            |p| episodes(p).ends[0].quantity = QuantityId::new(7),
            "ends[0]: there is no quantity 7",
        ),
    ];
    for (change, words) in cases {
        let said = said(change);
        assert!(
            said.starts_with("episodes: ") && said.contains(words),
            "{said}"
        );
    }
    let (d, problem) = line();
    for method in Method::ALL.into_iter().filter(|m| !m.is_learner()) {
        let said = Solve::new(&d, &problem).with_method(method).run();
        let said = said.expect_err("refused").to_string();
        assert!(
            said.contains("the problem has episodes; take one of `search`"),
            "{said}"
        );
    }
}

/// Batches: the same bits for any number of threads, one by one and together, with trajectories or without.
#[test]
fn batches_are_their_episodes() {
    let m = bouncer(0.5);
    let system = m.extended();
    let objective = Objective::new(&system, &m.problem).expect("fits");
    let point = objective.guess();
    let environment = Environment::new(objective, vec![]).expect("fits");
    let seeds: Vec<u64> = (0..12).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let batch = || environment.batch(&point, &seeds);
        let batch = pool.expect("a pool").install(batch);
        let each = batch.results.into_iter();
        each.map(|o| o.expect("rolls")).collect::<Vec<_>>()
    };
    let one = run(1);
    assert_eq!((&one, &one), (&run(2), &run(3)));
    let kept = environment.trajectories(&point, &seeds);
    for (o, kept) in one.iter().zip(kept.results) {
        let (again, t) = kept.expect("rolls");
        assert_eq!((*o, o.steps), (again, t.steps()));
    }
    let rewards: Vec<u64> = one.iter().map(|o| o.reward.to_bits()).collect();
    let mut sorted = rewards.clone();
    sorted.sort_unstable();
    sorted.dedup();
    // every seed is another episode
    assert_eq!(sorted.len(), seeds.len());
}

/// The policy's effort is work: with the controls that acted the energy of a closed loop balances, to second order.
#[test]
fn closed_loops_balance_their_energy() -> Result<(), StepError> {
    let joint = |child: &str, anchors| {
        let joint = JointSpec::new(JointKind::Revolute, child)
            .axis(Y)
            .damping(0.1);
        joint.anchors([0.0; 3], anchors)
    };
    let m = MechanismBuilder::new()
        .body(
            "bar",
            BodySpec::new(1.0).shape(Shape::Box([0.05, 0.05, 0.5])),
        )
        .joint("hinge", joint("bar", [0.0, 0.0, 0.25]))
        .actuator("motor", ActuatorSpec::joint("hinge"))
        .build()
        .expect("a pendulum");
    let (joint, direction) = (0, 0);
    let outputs = vec![
        Quantity::Coordinate { joint, direction },
        Quantity::IntervalRate { joint, direction },
    ];
    let system = Maximal::new(m, &[0.3], Options::default()).expect("builds");
    let tracking = Loop {
        control: 0,
        coordinate: QuantityId::new(0),
        rate: QuantityId::new(1),
        gains: (30.0, 2.0),
        reference: Box::new(|t| (2.0 * t).sin()),
        rate_reference: Box::new(|t| 2.0 * (2.0 * t).cos()),
    };
    let system = system.with_outputs(outputs);
    let policy = Pd::new(&system, vec![tracking], false).expect("fits");
    let closed = ClosedLoop::new(system, policy);
    let error = |steps: usize| -> Result<(f64, f64), StepError> {
        let problem = Problem::new(&closed, vec![2.0 / steps as f64; steps], vec![0.3]);
        let objective = Objective::new(&closed, &problem).expect("fits");
        let mut w = objective.work();
        objective.value(&objective.guess(), &mut w)?;
        let t = closed.acted(w.trajectory(), &mut closed.work())?;
        let balance = rollout::balance(&closed.dynamics, &t, &mut closed.dynamics.work())?;
        let done = balance.actuators[steps] - balance.actuators[0];
        Ok((balance.largest_error(), done.abs()))
    };
    let (coarse, done) = error(100)?;
    let (fine, _) = error(200)?;
    println!("{coarse:.2e} {fine:.2e} of {done:.2e} J done");
    assert!(done > 0.1 && coarse < 2.1e-2 * done, "{coarse} {done}");
    assert!((3.0..5.0).contains(&(coarse / fine)), "{coarse} {fine}");
    Ok(())
}

fn load(name: &str) -> Model {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("problems");
    format::load(&path.join(name).with_extension("toml"))
        .and_then(|d| d.build(&Overrides::default()))
        .unwrap_or_else(|e| panic!("{e:#}"))
}

/// Relaxed, truncated and perturbed gradients are told as such, and learn.
#[test]
fn what_gradients_were_used_is_told() {
    let m = bouncer(9.0);
    let settings = Settings {
        max_iterations: 8,
        ..Settings::default()
    };
    let base = gradient::Options {
        settings,
        batch: 4,
        step: 0.05,
        ..gradient::Options::default()
    };
    let relaxed = gradient::Options {
        smoothing: 1e-2,
        window: nonzero(10),
        ..base
    };
    let perturbed = gradient::Options {
        samples: 3,
        sigma: 0.1,
        ..base
    };
    for (options, words, kappa) in [
        (base, "exact gradients over the whole horizon", 0.0),
        (
            relaxed,
            "gradients relaxed to 1e-2 m^2/s^2 over windows of 10 steps",
            1e-2,
        ),
        (
            perturbed,
            "exact gradients over the whole horizon, the mean at 3 decisions perturbed by 0.1",
            0.0,
        ),
    ] {
        let s = Solve::new(&m.extended(), &m.problem)
            .with_options(options)
            .run()
            .expect("solves");
        assert_eq!(s.status, Status::Completed);
        assert!(s.reason.contains(words), "{}", s.reason);
        assert_eq!(s.smoothing, kappa);
        assert!(s.objective < s.history[0].objective, "{words}");
        let rows = &s.history[1..];
        assert!(rows.iter().all(|r| r.gradient_largest >= r.gradient_mean));
        assert!(
            rows.iter()
                .all(|r| r.gradient_mean.is_some_and(|g| g > 0.0))
        );
        let each = 4 * options.samples as u64 + 3;
        assert_eq!(rows[7].rollouts, Some(3 + 8 * each));
        assert_eq!(s.gradient_evaluations, 8 * 4 * options.samples as u64);
    }
}

/// How many of held-out starts a policy takes to the top and holds there: the angle within 0.1 rad of upright, the rate within
/// 0.2 rad/s at the end.
fn upright(m: &Model, parameters: &[f64], seeds: std::ops::Range<u64>) -> usize {
    let system = m.extended();
    let objective = Objective::new(&system, &m.problem).expect("fits");
    let point = Point {
        parameters: parameters.to_vec(),
        ..objective.guess()
    };
    let environment = Environment::new(objective, vec![]).expect("fits");
    let seeds: Vec<u64> = seeds.collect();
    let all = environment.trajectories(&point, &seeds);
    let [angle, rate] =
        ["hinge", "hinge interval rate"].map(|name| system.quantity(name).expect("a quantity"));
    let mut w = system.work();
    let good = all.succeeded().filter(|(_, (_, t))| {
        let (at, mut seen) = (t.knot(t.steps()), [0.0; 2]);
        system
            .observe(&t.knot_point(&at), &[angle, rate], &mut w, &mut seen)
            .expect("seen");
        let off = (seen[0].cos() + 1.0, seen[1].abs());
        off.0 < 1.0 - 0.1_f64.cos() && off.1 < 0.2
    });
    good.count()
}

/// A network trained by back-propagation takes all of a hundred starts that it was not trained on to the top, and holds there.
#[test]
fn a_network_swings_a_pendulum_up_from_any_start() {
    let m = load("pendulum_network");
    let settings = m.options.policy_gradient();
    let system = m.extended();
    let s = Solve::new(&system, &m.problem)
        .with_options(settings)
        .run()
        .expect("solves");
    assert_eq!(s.status, Status::Completed, "{}", s.reason);
    assert!(
        s.reason.contains("over windows of 30 steps"),
        "{}",
        s.reason
    );
    const HELD_OUT: std::ops::Range<u64> = 1_000..1_100;
    let before = upright(&m, &m.problem.parameters, HELD_OUT);
    let after = upright(&m, &s.trajectory.p, HELD_OUT);
    println!("{before}, then {after} of 100; objective {}", s.objective);
    assert!(before < 10, "{before}");
    assert_eq!(after, 100);
    // the effort has its limit whatever the network asks for
    let bound = 3.0;
    let alone = m.alone(&s.trajectory).expect("acts");
    assert!(alone[0].u.iter().all(|u| u.abs() <= bound));
}

/// Every learner, and gradients of the policy, balance the cart-pole from nothing on the same episodes.
#[test]
fn gains_of_a_cart_pole_are_learnt() {
    let mut m = load("cartpole_learned");
    for method in Method::ALL.into_iter().filter(|m| m.is_learner()) {
        // about four hundred rollouts each
        m.options.max_iterations = Some(match method {
            Method::Search => 60,
            Method::PolicyGradient => 30,
            _ => 6,
        });
        let s = Solve::new(&m.extended(), &m.problem)
            .with_options(m.options.of(method))
            .run()
            .expect("solves");
        let (first, last) = (s.history[0].objective, s.objective);
        println!("{}: {first} to {last}", method.name());
        assert_eq!(s.status, Status::Completed, "{}", s.reason);
        assert!(last < first, "{}", method.name());
    }
}
