//! Shooting on a system of two lines, whose optima are known: parameters with and without controls, inequalities,
//! checkpoints.

use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::Start;
use least_action::dynamics::{
    Certificate, Charts, Differentiable, Dims, Equations, Inputs, Knot, KnotPoint, Observe,
    Outputs, Parameter, QuantityId, SolvedStep, Step, StepError, StepStats,
};
use least_action::optimize::shooting::Options;
use least_action::optimize::unconstrained::Solver;
use least_action::optimize::{Checkpoint, Checkpoints, Method, Solution, Solve, Status};
use least_action::without;
use nalgebra::DMatrix;
use std::cell::RefCell;
use std::time::Duration;

/// `x+ = x + h y`, `y = wind - decay x + u`, `x_0 = q + offset`.
struct Drift {
    nu: usize,
}

#[derive(Default)]
struct Work {
    h: f64,
    x: f64,
    decay: f64,
}

const WIND: usize = 0;
const DECAY: usize = 1;
const OFFSET: usize = 2;

// quantities: x, y, wind, then u
const X: QuantityId = QuantityId::new(0);
const Y: QuantityId = QuantityId::new(1);
const W: QuantityId = QuantityId::new(2);
const U: QuantityId = QuantityId::new(3);

impl Step for Drift {
    type Work = Work;

    without!(names, softening);

    fn dims(&self) -> Dims {
        Dims {
            nx: 1,
            nf: 1,
            ndx: 1,
            nu: self.nu,
            np: 3,
            ny: 1,
        }
    }

    fn work(&self) -> Work {
        Work::default()
    }

    fn parameters(&self) -> Vec<Parameter> {
        let named = [("wind", 0.0), ("decay", 0.0), ("offset", 0.0)];
        let parameter = |(name, value): (&str, f64)| Parameter {
            name: name.into(),
            unit: "1".into(),
            value,
        };
        named.map(parameter).to_vec()
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        _: &mut Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        x[0] = start.coordinates[0] + p[OFFSET];
        Ok(())
    }

    fn initial_by_parameters(
        &self,
        _: &Start,
        _: &[f64],
        _: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        Ok(DMatrix::from_row_slice(1, 3, &[0.0, 0.0, 1.0]))
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        _: &[f64],
        _: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        Ok(DMatrix::identity(1, 2 + start.rates.len()))
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        _: &mut Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        y[0] = p[WIND] - p[DECAY] * x[0] + u.iter().sum::<f64>();
        next[0] = x[0] + at.h * y[0];
        Ok(StepStats::default())
    }
}

impl Differentiable for Drift {
    without!(smoothing, keeping);

    fn linearize_in(&self, at: &SolvedStep, w: &mut Work) -> Result<Certificate, StepError> {
        (w.h, w.x, w.decay) = (at.at.h, at.x[0], at.p[DECAY]);
        Ok(Certificate::default())
    }

    fn push_in(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        let u: f64 = d.u.iter().sum();
        out.y[0] = d.p[WIND] - w.x * d.p[DECAY] - w.decay * d.x[0] + u;
        out.x[0] = d.x[0] + w.h * out.y[0];
    }

    fn pull_in(&self, w: &mut Work, adjoint: &Outputs, out: &mut Inputs) {
        out.clear();
        let y = adjoint.y[0] + w.h * adjoint.x[0];
        out.x[0] = adjoint.x[0] - w.decay * y;
        out.u.fill(y);
        (out.p[WIND], out.p[DECAY]) = (y, -w.x * y);
    }
}

impl Equations for Drift {}

impl Charts for Drift {
    without!(charts, model);
}

impl Observe for Drift {
    fn quantities(&self) -> Vec<(String, String)> {
        ["x", "y", "wind", "u"]
            .map(|n| (n.into(), "1".into()))
            .to_vec()
    }

    fn needs_unknowns(&self, quantity: QuantityId) -> bool {
        quantity == Y
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        _: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        for (q, o) in which.iter().zip(out) {
            *o = match *q {
                X => seen.x[0],
                Y => seen.y[0],
                W => seen.p[WIND],
                _ => seen.u[0],
            };
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        _: &KnotPoint,
        which: &[QuantityId],
        _: &mut Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        for (q, a) in which.iter().zip(adjoint) {
            match *q {
                X => out.x[0] += a,
                Y => y[0] += a,
                W => out.p[WIND] += a,
                _ => out.u[0] += a,
            }
        }
    }
}

fn constraint(quantity: QuantityId, relation: Relation, value: f64, when: When) -> Constraint {
    Constraint {
        quantity,
        relation,
        value,
        profile: None,
        when,
    }
}

/// Ten steps of 0.1 from `x = q`.
fn problem(drift: &Drift, q: f64) -> Problem {
    let mut p = Problem::new(drift, vec![0.1; 10], vec![q]);
    p.rates.clear();
    p
}

fn solve(drift: &Drift, problem: &Problem) -> Solution {
    let options = Options::default();
    let s = Solve::new(drift, problem)
        .with_options(options)
        .run()
        .expect("no argmin error");
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    s
}

fn near(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

/// The decay that halves x in a second: (1 - 0.1 d)^10 = 1/2.
#[test]
fn a_parameter_without_controls() {
    let drift = Drift { nu: 0 };
    let mut p = problem(&drift, 1.0);
    p.costs = vec![Cost::square(X, 0.5, 1.0, When::End)];
    p.parameters[DECAY] = 0.1;
    p.parameter_bounds[DECAY] = (0.0, f64::INFINITY);
    let s = solve(&drift, &p);
    near(
        s.trajectory.p[DECAY],
        10.0 * (1.0 - 0.5_f64.powf(0.1)),
        1e-4,
    );
    assert_eq!((s.trajectory.p[WIND], s.trajectory.p[OFFSET]), (0.0, 0.0));
    assert!(s.trajectory.u.is_empty());
    // a constraint does the same, more exactly
    p.costs = vec![Cost::square(W, 0.0, 1.0, When::End)];
    p.constraints = vec![constraint(X, Relation::Equal, 0.5, When::End)];
    let s = solve(&drift, &p);
    near(
        s.trajectory.p[DECAY],
        10.0 * (1.0 - 0.5_f64.powf(0.1)),
        1e-5,
    );
    // and a bound ends it
    p.constraints.clear();
    p.costs = vec![Cost::square(X, 0.5, 1.0, When::End)];
    p.parameter_bounds[DECAY] = (0.0, 0.4);
    let s = solve(&drift, &p);
    near(s.trajectory.p[DECAY], 0.4, 1e-6);
    assert!(s.violation <= 1e-6);
}

/// Where x starts is one of the decisions, through the derivative of the start.
#[test]
fn a_parameter_of_the_start_beside_controls() {
    let drift = Drift { nu: 1 };
    let mut p = problem(&drift, 1.0);
    p.costs = vec![
        Cost::square(X, 3.0, 1.0, When::Knot(0)),
        Cost::square(U, 0.0, 1.0, When::Running),
        Cost::square(X, 5.0, 1.0, When::End),
    ];
    p.parameter_bounds[OFFSET] = (-10.0, 10.0);
    let s = solve(&drift, &p);
    // the distance of 2 is shared by three equal springs in line
    near(s.trajectory.state(0)[0], 3.0 + 2.0 / 3.0, 1e-4);
    near(s.trajectory.state(10)[0], 5.0 - 2.0 / 3.0, 1e-4);
    near(s.trajectory.p[OFFSET], 2.0 + 2.0 / 3.0, 1e-4);
    s.trajectory
        .u
        .iter()
        .for_each(|u| near(*u, 2.0 / 3.0, 1e-3));
    near(s.objective, 2.0 / 3.0, 1e-7);
}

#[test]
fn without_free_parameters_nothing_is_decided_but_controls() {
    let drift = Drift { nu: 1 };
    let mut p = problem(&drift, 0.0);
    p.parameters[WIND] = 0.5;
    p.parameter_bounds[WIND] = (0.5, 0.5);
    p.costs = vec![Cost::square(U, 0.0, 1.0, When::Running)];
    p.constraints = vec![constraint(X, Relation::Equal, 2.0, When::End)];
    let s = solve(&drift, &p);
    assert_eq!(s.trajectory.p, [0.5, 0.0, 0.0]);
    s.trajectory.u.iter().for_each(|u| near(*u, 1.5, 1e-4));
}

/// Inequalities hold where they are pressed against, and only there.
#[test]
fn inequalities_at_any_knot() {
    let drift = Drift { nu: 1 };
    let mut p = problem(&drift, 0.0);
    p.costs = vec![Cost::square(U, 0.0, 1.0, When::Running)];
    // with room: nothing moves
    p.constraints = vec![
        constraint(X, Relation::Greater, -1.0, When::End),
        constraint(X, Relation::Less, 1.0, When::Range(0, 10)),
    ];
    near(solve(&drift, &p).objective, 0.0, 1e-12);
    // pressed: as if it were an equality
    p.constraints = vec![constraint(X, Relation::Greater, 2.0, When::End)];
    let s = solve(&drift, &p);
    near(s.objective, 2.0, 1e-5);
    near(s.trajectory.state(10)[0], 2.0, 1e-6);
    // up to 1 for the first half, 2 at the end: two speeds
    p.constraints
        .push(constraint(X, Relation::Less, 0.5, When::Range(0, 5)));
    let s = solve(&drift, &p);
    near(s.trajectory.state(5)[0], 0.5, 1e-6);
    s.trajectory.u[..5].iter().for_each(|u| near(*u, 1.0, 1e-3));
    s.trajectory.u[5..].iter().for_each(|u| near(*u, 3.0, 1e-3));
    near(s.objective, 2.5, 1e-5);
    // the same said of the wind, with a floor above which nothing pulls
    p.constraints = vec![
        constraint(W, Relation::Greater, 0.25, When::Running),
        constraint(X, Relation::Greater, 2.0, When::End),
    ];
    p.costs.push(Cost::square(W, 0.0, 100.0, When::End));
    p.parameter_bounds[WIND] = (-5.0, 5.0);
    let s = solve(&drift, &p);
    near(s.trajectory.p[WIND], 0.25, 1e-6);
    s.trajectory.u.iter().for_each(|u| near(*u, 1.75, 1e-3));
}

/// A multiplier that has grown too large is taken back: what it holds off must not count as solved.
#[test]
fn a_multiplier_with_room_is_no_solution() {
    let drift = Drift { nu: 1 };
    let mut p = problem(&drift, 0.0);
    p.costs = vec![Cost::square(U, 0.0, 1.0, When::Running)];
    p.constraints = vec![constraint(X, Relation::Greater, 2.0, When::End)];
    // a learner has no multipliers
    for method in Method::ALL.into_iter().filter(|m| !m.is_learner()) {
        let by_values = |s: Solver| s.is_derivative_free();
        if method.argmin_solver().is_some_and(by_values)
            || method.options().fits(&drift, &p).is_err()
        {
            continue;
        }
        let kept = kept(&drift, &p, method.options());
        let mut checkpoint = kept.last().expect("one at the end").clone();
        checkpoint.status = None;
        checkpoint.best = None;
        checkpoint.own = serde_json::Value::Null;
        checkpoint.multipliers.constraints = vec![5.0];
        let again = Checkpoints::new(Some(checkpoint), Duration::MAX, |_| Ok(()));
        let s = Solve::new(&drift, &p)
            .with_method(method)
            .with_checkpoint(again)
            .run()
            .expect("no argmin error");
        assert_eq!(s.status, Status::Converged, "{method:?}: {}", s.reason);
        near(s.objective, 2.0, 1e-5);
    }
}

/// Bounds and a constraint that hardly anything costs: shooting need not find the way, but that there is none it must
/// not say.
#[test]
fn what_is_not_shown_is_not_called_infeasible() {
    let drift = Drift { nu: 1 };
    for weight in [1.0, 1e-6, 1e-12] {
        let mut p = problem(&drift, 0.0);
        p.bounds = vec![(-1.5, 1.5)];
        p.costs = vec![Cost::square(U, 0.0, weight, When::Running)];
        p.constraints = vec![constraint(X, Relation::Greater, 1.0, When::End)];
        for method in Method::ALL {
            if method.options().fits(&drift, &p).is_err() {
                continue;
            }
            let s = Solve::new(&drift, &p).with_method(method).run();
            let s = s.expect("no argmin error");
            assert!(
                s.status != Status::Infeasible,
                "{method:?} {weight}: {}",
                s.reason
            );
        }
    }
}

/// Every checkpoint of a solve.
fn kept(
    drift: &Drift,
    p: &Problem,
    options: impl Into<least_action::optimize::Options>,
) -> Vec<Checkpoint> {
    let all = RefCell::new(vec![]);
    let checkpoints = Checkpoints::new(None, Duration::ZERO, |c| {
        all.borrow_mut().push(c);
        Ok(())
    });
    Solve::new(drift, p)
        .with_options(options)
        .with_checkpoint(checkpoints)
        .run()
        .expect("no argmin error");
    all.into_inner()
}

/// A problem with everything that a checkpoint keeps, which takes some iterations.
fn demanding(drift: &Drift) -> Problem {
    let mut p = problem(drift, 0.3);
    p.costs = vec![
        Cost::square(U, 0.0, 1.0, When::Running),
        Cost::square(X, 1.0, 2.0, When::Running),
        Cost::square(Y, 1.0, 0.5, When::Running),
    ];
    p.constraints = vec![
        constraint(X, Relation::Equal, 2.0, When::End),
        constraint(X, Relation::Less, 0.5, When::Range(0, 5)),
    ];
    p.bounds = vec![(-2.0, 2.5)];
    p.parameter_bounds = vec![(-1.0, 1.0), (-0.5, 3.0), (-0.1, 0.1)];
    p
}

#[test]
fn a_solve_goes_on_from_any_of_its_checkpoints() {
    let drift = Drift { nu: 1 };
    let p = demanding(&drift);
    let options = Options::default();
    let whole = solve(&drift, &p);
    let all = kept(&drift, &p, options);
    assert!(all.len() as u64 >= whole.iterations, "{}", all.len());
    for c in [&all[0], &all[all.len() / 2], &all[all.len() - 3]] {
        // through a file
        let text = serde_json::to_string(c).expect("writes");
        let read: Checkpoint = serde_json::from_str(&text).expect("reads");
        assert_eq!(*c, read);
        let before = read.iterations();
        let from = Checkpoints::new(Some(read), Duration::MAX, |_| Ok(()));
        let s = Solve::new(&drift, &p)
            .with_options(options)
            .with_checkpoint(from)
            .run()
            .expect("no argmin error");
        assert_eq!(s.status, Status::Converged, "{}", s.reason);
        // both are optimal to 1e-8 of the objective, by paths of their own
        near(s.objective, whole.objective, 1e-5);
        assert!(s.iterations > before && s.step_evaluations > c.step_evaluations);
        assert_eq!(s.history[..c.history.len()], c.history);
    }
    // what had converged ends at once
    let last = all.last().expect("one at the end");
    assert_eq!(last.status, Some(Status::Converged));
    let from = Checkpoints::new(Some(last.clone()), Duration::MAX, |_| Ok(()));
    let s = Solve::new(&drift, &p)
        .with_options(options)
        .with_checkpoint(from)
        .run()
        .expect("no argmin error");
    assert_eq!(s.status, Status::Converged);
    assert_eq!(
        (s.iterations, s.objective),
        (whole.iterations, whole.objective)
    );
    near(s.trajectory.u[3], whole.trajectory.u[3], 1e-12);
    // unless more is asked for
    let tighter = Options {
        optimality: 1e-13,
        ..options
    };
    let from = Checkpoints::new(Some(last.clone()), Duration::MAX, |_| Ok(()));
    let s = Solve::new(&drift, &p)
        .with_options(tighter)
        .with_checkpoint(from)
        .run()
        .expect("no argmin error");
    assert!(s.iterations >= whole.iterations && s.optimality <= 1e-13);
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let drift = Drift { nu: 1 };
    let p = demanding(&drift);
    let one = Options {
        max_iterations: 1,
        ..Options::default()
    };
    let mut c = kept(&drift, &p, one).pop().expect("one at the end");
    assert_eq!(c.status, Some(Status::MaxIterations));
    assert_eq!(c.fits(Method::Shooting, &p), Ok(()));
    assert!(
        c.fits(Method::Ddp, &p)
            .is_err_and(|e| e.contains("`shooting`"))
    );
    let mut longer = p.clone();
    longer.intervals.push(0.1);
    longer.guess.push(0.0);
    assert!(c.fits(Method::Shooting, &longer).is_err());
    c.point.controls[2] = f64::NAN;
    let e = c.fits(Method::Shooting, &p).expect_err("not finite");
    assert!(e.contains("not finite"), "{e}");
    let from = Checkpoints::new(Some(c), Duration::MAX, |_| Ok(()));
    assert!(
        Solve::new(&drift, &p)
            .with_options(one)
            .with_checkpoint(from)
            .run()
            .is_err()
    );
}
