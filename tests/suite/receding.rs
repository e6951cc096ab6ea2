//! Receding-horizon control: against whole solves where one iteration is exact, along the plan's own dynamics, with
//! constraints, and where steps fail.

use crate::arm::{Followed, Run, follow as follow_arm};
use crate::common::Source;
use least_action::control::{
    Constraint, Cost, Duration, Objective, Problem, ProblemPart, Quadrature, Relation, When,
};
use least_action::dynamics::{Explicit, Knot, Observe, Real, Smooth, Step};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::optimize::receding::Options;
use least_action::optimize::{RecedingHorizon, Solve, Status};
use least_action::rollout::{RolloutStats, Trajectory};
use std::path::Path;

const H: f64 = 0.05;

/// 1 kg on a line, pushed: x = (place, rate).
struct Cart;

impl Smooth for Cart {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
        next[1] = x[1] + h * u[0];
        next[0] = x[0] + h * next[1];
    }
}

/// The knot `k` of a run with even intervals.
fn knot(k: usize, h: f64) -> Knot {
    Knot {
        k,
        t: k as f64 * h,
        h_prev: if k == 0 { 0.0 } else { h },
        h,
    }
}

/// Follows a profile over a window of so many steps.
fn follow(system: &Explicit<Cart>, steps: usize) -> Problem {
    let mut problem = Problem::new(system, vec![H; steps], vec![0.0]);
    let of = |name: &str| system.quantity(name).expect("a quantity");
    for (when, weight) in [(When::Running, 10.0), (When::End, 5.0)] {
        problem.costs.push(Cost {
            profile: Some(0),
            ..Cost::square(of("x0"), 0.0, weight, when)
        });
    }
    let effort = Cost::square(of("u0"), 0.0, 0.01, When::Running);
    problem.costs.push(effort);
    problem.profiles = vec![vec![0.0; steps + 1]];
    problem
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b);
    pairs.fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
}

/// Linear dynamics and squares: one iteration a tick is the solution of the window, wherever it goes and is pushed to; and
/// what the feedback makes of a push within a tick is what the solution from there on would.
#[test]
fn a_tick_solves_a_linear_window() {
    const STEPS: usize = 15;
    let system = Explicit::new(Cart);
    let problem = follow(&system, STEPS);
    let course: Vec<f64> = (0..60).map(|k| (2.0 * k as f64 * H).sin()).collect();
    let mut controller = RecedingHorizon::new(&system, problem.clone(), Options::default())
        .and_then(|c| c.with_profiles(vec![course.clone()]))
        .expect("fits");
    let solution = |x: &[f64], first: usize, steps: usize| {
        let target = |k: usize| course[k.min(course.len() - 1)];
        let whole = Problem {
            state: Some(x.to_vec()),
            intervals: vec![H; steps],
            guess: vec![0.0; steps],
            profiles: vec![(first..=first + steps).map(target).collect()],
            ..problem.clone()
        };
        let solved = Solve::new(&system, &whole).run().expect("solved");
        assert_eq!(solved.status, Status::Converged);
        solved
    };
    let (mut w, mut x, mut next) = (system.work(), vec![0.3, 0.0], vec![0.0; 2]);
    let mut r = Source::new(3);
    for k in (0..70).step_by(3) {
        let tick = controller.tick(&knot(k, H), &x);
        assert_eq!(tick.failure, None);
        let solved = solution(&x, k, STEPS);
        let off = largest_difference(&controller.plan().u, &solved.trajectory.u);
        assert!(off < 1e-7, "{k}: {off}");
        assert!((tick.objective - solved.objective).abs() <= 1e-9 * solved.objective);
        for j in k..k + 3 {
            let mut u = [0.0];
            controller.control(&knot(j, H), &x, &mut u);
            let rest = solution(&x, j, STEPS - (j - k));
            let off = (u[0] - rest.trajectory.u[0]).abs();
            assert!(off < 1e-7, "{k} + {}: {off}", j - k);
            system
                .step(&knot(j, H), &x, &u, &[], &mut w, &mut next, &mut [])
                .expect("a step");
            x.copy_from_slice(&next);
            x[1] += 0.1 * r.unit();
        }
    }
}

fn model(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("problems")
        .join(name)
        .with_extension("toml");
    let document = format::load(&path).expect("valid");
    document.build(&Overrides::default()).expect("valid")
}

/// The cart-pole's costs over a window, hanging.
fn cart_pole(steps: usize) -> (Model, Problem) {
    let model = model("cartpole_swingup");
    let mut problem = model.problem.clone();
    problem.intervals.truncate(steps);
    problem.guess.truncate(steps);
    problem.constraints.clear();
    (model, problem)
}

/// A trajectory cut at a knot goes on as it did, to the bit; derivatives from there are those of differences; and what was before
/// is no part of sums over it.
#[test]
fn a_state_met_in_motion_goes_on() {
    let (model, mut problem) = cart_pole(40);
    let system = &model.system;
    let mut w = system.work();
    let x = problem
        .start(system, &problem.parameters, &mut w)
        .expect("a start");
    let mut r = Source::new(5);
    let mut whole = Trajectory::new(system, problem.intervals.clone(), &x);
    whole.u = r.vector(40, 2.0);
    let mut stats = RolloutStats::default();
    whole.roll(system, &mut w, &mut stats).expect("simulated");
    let mut rest = Trajectory::new(system, vec![H; 25], whole.state(15));
    (rest.time, rest.before) = (whole.knot(15).t, H);
    rest.u.copy_from_slice(&whole.u[15..]);
    rest.roll(system, &mut w, &mut stats).expect("simulated");
    assert_eq!(
        rest.knot(25),
        Knot {
            k: 25,
            ..whole.knot(40)
        }
    );
    // but for the impulses that the first step starts from
    for k in 0..=25 {
        assert!(largest_difference(rest.state(k), whole.state(15 + k)) < 1e-9);
    }
    problem.state = Some(whole.state(15).to_vec());
    problem.before = H;
    problem.intervals = vec![H; 25];
    problem.guess = whole.u[15..].to_vec();
    for c in &mut problem.costs {
        c.quadrature = Quadrature::Trapezoidal;
    }
    let objective = Objective::new(system, &problem).expect("fits");
    let mut work = objective.work();
    let at = objective.guess();
    let found = objective.value_and_gradient(&at, &mut work);
    let by = found.expect("simulated").controls;
    for (k, by) in by.iter().enumerate() {
        let e = 1e-4;
        let mut value = |e: f64| {
            let mut moved = at.clone();
            moved.controls[k] += e;
            objective.value(&moved, &mut work).expect("simulated")
        };
        let difference = (value(e) - value(-e)) / (2.0 * e);
        let off = (by - difference).abs();
        assert!(off < 1e-6 * by.abs().max(1.0), "{k}: {by} {difference}");
    }
    // of a cost of one, the integral is the time
    let rail = problem.costs[0].quantity;
    problem.costs = vec![Cost {
        target: -1.0,
        quadrature: Quadrature::Trapezoidal,
        ..Cost::linear(rail, 1.0, When::Running)
    }];
    let objective = Objective::new(system, &problem).expect("fits");
    let mut work = objective.work();
    let value = objective.value(&at, &mut work).expect("simulated");
    let t = work.trajectory();
    let share = |k: usize| if k == 0 || k == 25 { 0.5 } else { 1.0 };
    let expected = (0..=25).map(|k| share(k) * H * (1.0 + system.coordinate(t.state(k), 0, 0)));
    assert!((value - expected.sum::<f64>()).abs() < 1e-12);
    for (state, before) in [(problem.state.clone(), -H), (None, f64::INFINITY)] {
        let wrong = Problem {
            state,
            before,
            ..problem.clone()
        };
        let refused = wrong.check(system).expect_err("no such start");
        assert_eq!(refused.part, ProblemPart::Before);
    }
}

/// The system that is as planned goes as planned: a state met in motion is the plan's to rounding, in maximal coordinates,
/// too, whose velocities are those of intervals.
#[test]
fn what_goes_as_planned_stays_the_plan() {
    let (model, problem) = cart_pole(40);
    let system = &model.system;
    let mut w = system.work();
    let mut x = problem
        .start(system, &problem.parameters, &mut w)
        .expect("a start");
    let mut controller = RecedingHorizon::new(system, problem, Options::default()).expect("fits");
    let (mut next, mut y) = (x.clone(), vec![0.0; system.dims().ny]);
    for k in 0..25 {
        let before = controller.plan().clone();
        let tick = controller.tick(&knot(k, H), &x);
        assert_eq!(tick.failure, None);
        let met = largest_difference(controller.plan().state(0), &x);
        assert_eq!(met, 0.0);
        if k > 0 {
            let off = largest_difference(before.state(1), &x);
            assert!(off < 1e-9, "{k}: {off}");
        }
        let mut u = vec![0.0; system.dims().nu];
        controller.control(&knot(k, H), &x, &mut u);
        assert_eq!(u, controller.plan().control(0));
        let p = &controller.plan().p;
        system
            .step(&knot(k, H), &x, &u, p, &mut w, &mut next, &mut y)
            .expect("a step");
        x.copy_from_slice(&next);
    }
    assert!(controller.plan().before == H && controller.plan().time > 1.19);
}

/// Ticks at one knot go on improving the plan, constraints and all, to what a whole solve finds.
#[test]
fn ticks_at_one_knot_converge() {
    let system = Explicit::new(Cart);
    let mut problem = follow(&system, 20);
    let place = system.quantity("x0").expect("a quantity");
    let speed = system.quantity("x1").expect("a quantity");
    problem.profiles[0].fill(1.0);
    problem.bounds = vec![(-4.0, 3.0)];
    let limit = Constraint::new(speed, Relation::Less, 1.2, When::Range(1, 20));
    let end = Constraint::new(place, Relation::Equal, 0.9, When::End);
    problem.constraints = vec![limit, end];
    let x = vec![0.1, 0.0];
    let whole = Problem {
        state: Some(x.clone()),
        ..problem.clone()
    };
    let solved = Solve::new(&system, &whole).run().expect("solved");
    assert_eq!(solved.status, Status::Converged, "{}", solved.reason);
    // the speed limit and a bound act
    let t = &solved.trajectory;
    assert!((0..=20).any(|k| (t.state(k)[1] - 1.2).abs() < 1e-6));
    assert!(t.u.iter().any(|u| (u - 3.0).abs() < 1e-9));
    let mut controller = RecedingHorizon::new(&system, problem, Options::default()).expect("fits");
    let ticks: Vec<_> = (0..60).map(|_| controller.tick(&knot(0, H), &x)).collect();
    let last = &ticks[59];
    assert!(last.violation < 1e-6 && last.violation < 1e-3 * ticks[0].violation);
    assert!((last.objective - solved.objective).abs() < 1e-5 * solved.objective);
    assert!(largest_difference(&controller.plan().u, &t.u) < 1e-3);
}

/// What changes between ticks: targets, weights, limits, bounds, parameters of the model.
#[test]
fn values_change_between_ticks() {
    let system = Explicit::new(Cart);
    let mut controller =
        RecedingHorizon::new(&system, follow(&system, 20), Options::default()).expect("fits");
    let x = [0.0, 0.0];
    controller.tick(&knot(0, H), &x);
    assert_eq!(controller.plan().control(0), [0.0]);
    controller.profile_mut(0).fill(1.0);
    controller.tick(&knot(0, H), &x);
    let pushed = controller.plan().control(0)[0];
    assert!(pushed > 1.0);
    controller.set_bounds(0, (-0.5, 0.5));
    controller.tick(&knot(0, H), &x);
    assert_eq!(controller.plan().control(0), [0.5]);
    controller.set_bounds(0, (-100.0, 100.0));
    controller.set_weight(2, 10.0);
    controller.tick(&knot(0, H), &x);
    assert!(controller.plan().control(0)[0] < 0.5 * pushed);
    for cost in [0, 1] {
        controller.set_target(cost, -2.0); // beside the profile's 1
    }
    controller.tick(&knot(0, H), &x);
    assert!(controller.plan().control(0)[0] < 0.0);
}

/// A tick that fails says so, and the plan goes on; the next one that can be made is made.
#[test]
fn failures_are_values() {
    let (model, problem) = cart_pole(30);
    let system = &model.system;
    let mut w = system.work();
    let x = problem
        .start(system, &problem.parameters, &mut w)
        .expect("a start");
    let mut controller = RecedingHorizon::new(system, problem, Options::default()).expect("fits");
    let nan = vec![f64::NAN; x.len()];
    let mut u = [f64::NAN];
    // before there is a plan: the guess
    let tick = controller.tick(&knot(0, H), &nan);
    assert!(tick.failure.is_some() && tick.objective == f64::INFINITY);
    controller.control(&knot(0, H), &nan, &mut u);
    assert_eq!(u, [0.01]);
    for _ in 0..20 {
        assert_eq!(controller.tick(&knot(0, H), &x).failure, None);
    }
    let plan = controller.plan().u.clone();
    let wrong = controller.tick(&knot(1, H), &x[1..]).failure;
    assert!(wrong.expect("too short").message.contains("give"));
    for k in 2..34 {
        let tick = controller.tick(&knot(k, H), &nan);
        assert!(tick.failure.is_some(), "{k}");
        controller.control(&knot(k, H), &nan, &mut u);
        assert_eq!(u[0], plan[k.min(plan.len() - 1)], "{k}");
    }
    let tick = controller.tick(&knot(34, H), &x);
    assert!(tick.failure.is_none() && tick.objective.is_finite());
    // time that goes back is a new run
    let tick = controller.tick(&knot(0, H), &x);
    assert!(tick.failure.is_none() && tick.objective.is_finite());
}

#[test]
fn what_cannot_be_shifted_is_refused() {
    let system = Explicit::new(Cart);
    let good = follow(&system, 5);
    let said = |problem: Problem, options: Options| {
        let refused = RecedingHorizon::new(&system, problem, options).err();
        refused.expect("refused").to_string()
    };
    let mut uneven = good.clone();
    uneven.intervals[2] = 0.1;
    assert!(said(uneven, Options::default()).contains("equal intervals"));
    let mut free = good.clone();
    free.durations.push(Duration {
        first: 0,
        end: 5,
        parameter: 0,
    });
    let refused = said(free, Options::default());
    assert!(refused.contains("durations"), "{refused}");
    let mut none = good.clone();
    none.intervals.clear();
    assert!(said(none, Options::default()).contains("no step"));
    let options = |f: fn(&mut Options)| {
        let mut o = Options::default();
        f(&mut o);
        o
    };
    let said = |o| said(good.clone(), o);
    assert!(said(options(|o| o.iterations = 0)).contains("iterations is 0"));
    assert!(said(options(|o| o.penalty = f64::NAN)).contains("penalty is NaN"));
    assert!(said(options(|o| o.smoothing = -1.0)).contains("smoothing is -1"));
    let controller = RecedingHorizon::new(&system, good.clone(), Options::default()).expect("fits");
    let refused = controller.with_profiles(vec![]).err().expect("refused");
    assert!(refused.to_string().contains("give 1"), "{refused}");
}

/// The arm's hand follows its ellipse: as planned, pushed, and a fifth heavier than its model; feedback between ticks helps.
#[test]
fn the_arm_follows_pushed_and_heavier_than_its_model() {
    let run = |masses: f64, push: f64, feedback: bool| {
        let found = follow_arm(Run {
            masses,
            push,
            feedback,
            seconds: 3.0,
            ..Run::default()
        });
        let found = found.expect("simulated");
        assert_eq!(found.failures, 0);
        assert_eq!(found.ticks.len(), 51);
        for ((hand, target), error) in found.hand.iter().zip(&found.target).zip(&found.error) {
            let off = largest_difference(hand, target);
            assert!(off <= *error && *error <= 2.0 * off);
        }
        found
    };
    // twice what was measured, in mm: 0.7, 2.4, 3.0; without feedback between ticks more than with it
    let error = |found: &Followed| 1e3 * found.rms_error();
    let right = error(&run(1.0, 0.0, true));
    let wrong = error(&run(1.2, 0.0, true));
    let pushed = error(&run(1.2, 40.0, true));
    let open = error(&run(1.2, 40.0, false));
    println!("{right:.2} {wrong:.2} {pushed:.2} {open:.2} mm");
    assert!(
        right < 1.6 && wrong < 4.8 && pushed < 5.8,
        "{right} {wrong} {pushed}"
    );
    assert!(open > 1.3 * pushed, "{open} {pushed}");
}
