//! argmin's solvers: a problem reduced to its decisions with all its derivatives, and the methods on it.

use crate::methods;
use crate::problems::load;
use argmin::core::{CostFunction, Gradient, Hessian, Jacobian, Operator};
use least_action::control::{Constraint, Cost, Form, Problem, Relation, When};
use least_action::dynamics::{Explicit, Parameter, QuantityId, Real, Smooth};
use least_action::format::{Model, Overrides};
use least_action::integrator::Controls;
use least_action::optimize::unconstrained::{Options, Solver};
use least_action::optimize::{
    Checkpoint, Checkpoints, Limits, Method, Reduced, Solution, Solve, Status,
};
use nalgebra::{DMatrix, DVector};
use std::time::Duration;

/// A pendulum with a drag to be found, driven in two ways.
struct Pendulum;

impl Smooth for Pendulum {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        2
    }

    fn parameters(&self) -> Vec<Parameter> {
        let named = [("drag", 0.3), ("push", 0.2)];
        let parameter = |(name, value): (&str, f64)| Parameter {
            name: name.into(),
            unit: "1".into(),
            value,
        };
        named.map(parameter).to_vec()
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
        next[1] = x[1] + h * (u[0] - u[1] * 0.3 - x[0].sin() * 9.81 - p[0] * x[1] + p[1]);
        next[0] = x[0] + h * next[1];
    }
}

const X: QuantityId = QuantityId::new(0);
const RATE: QuantityId = QuantityId::new(1);

/// Squares of states, controls and what both make; constraints that act and one that does not; a control beyond its bound.
fn demanding(d: &Explicit<Pendulum>) -> Problem {
    let u = |i| d.control_quantity(i);
    let mut p = Problem::new(d, vec![0.1, 0.05, 0.1, 0.2, 0.1], vec![0.4, -0.2]);
    p.rates.clear();
    p.costs = vec![
        Cost::square(X, 1.0, 0.7, When::Running),
        Cost::square(u(0), 0.1, 0.3, When::Running),
        Cost::square(u(1), -0.2, 0.4, When::Running),
        Cost::square(RATE, 0.5, 2.0, When::End),
        Cost::square(X, 0.0, 0.9, When::Knot(2)),
    ];
    let constraint = |quantity, relation, value, when| Constraint {
        quantity,
        relation,
        value,
        profile: None,
        when,
    };
    p.constraints = vec![
        constraint(X, Relation::Equal, 0.6, When::End),
        constraint(RATE, Relation::Greater, 1.0, When::End),
        constraint(RATE, Relation::Less, 0.1, When::Range(1, 3)),
        constraint(X, Relation::Less, 50.0, When::Running),
    ];
    p.bounds = vec![(-2.0, 3.0), (f64::NEG_INFINITY, f64::INFINITY)];
    p.parameter_bounds = vec![(0.0, 1.0), (f64::NEG_INFINITY, f64::INFINITY)];
    p.guess = vec![0.5, -0.1, 3.4, 0.2, -2.3, 0.0, 0.1, 0.3, 0.7, -0.4];
    p
}

/// Central differences of a function of the decisions.
fn differences(at: &DVector<f64>, f: impl Fn(&DVector<f64>) -> DVector<f64>) -> DMatrix<f64> {
    let h = 1e-5;
    let columns: Vec<_> = (0..at.len())
        .map(|i| {
            let mut e = DVector::zeros(at.len());
            e[i] = h;
            (f(&(at + &e)) - f(&(at - &e))) / (2.0 * h)
        })
        .collect();
    DMatrix::from_columns(&columns)
}

/// After one update the multipliers are not zero, and every term has all its parts.
#[test]
fn derivatives_of_a_reduced_problem() {
    let d = Explicit::new(Pendulum);
    let p = demanding(&d);
    let reduced = Reduced::new(&d, &p).expect("a problem");
    let v = reduced.guess();
    assert_eq!(v.len(), 12);
    for round in 0..2 {
        let value = |v: &DVector<f64>| reduced.cost(v).expect("a value");
        let residuals = |v: &DVector<f64>| reduced.apply(v).expect("residuals");
        let g = reduced.gradient(&v).expect("a gradient");
        let by = differences(&v, |v| DVector::from_element(1, value(v)));
        assert!((by.transpose() - &g).amax() < 1e-6 * g.amax(), "{by} {g}");
        let j = reduced.jacobian(&v).expect("a Jacobian");
        let by = differences(&v, residuals);
        assert!((by - &j).amax() < 1e-6 * j.amax());
        // half their square is the function but for a constant
        let r = residuals(&v);
        let other = &v * 1.01;
        let square = 0.5 * (residuals(&other).norm_squared() - r.norm_squared());
        let change = value(&other) - value(&v);
        assert!((square - change).abs() < 1e-12 * value(&v).abs());
        assert!((j.tr_mul(&r) - &g).amax() < 1e-12 * g.amax());
        // Gauss and Newton's, but for what bends the scale of the drag, whose gradient decides if it presses
        let h = reduced.hessian(&v).expect("a Hessian");
        let mut squares = j.tr_mul(&j);
        let bent = h[(10, 10)] - squares[(10, 10)];
        assert!(bent >= -1e-12 * h.amax());
        squares[(10, 10)] += bent;
        assert!((&h - squares).amax() < 1e-12 * h.amax());
        let x = DVector::from_fn(12, |i, _| (i as f64).cos());
        let product = reduced.hessian_product(&v, &x).expect("a product");
        assert!((&h * x - product).amax() < 1e-12 * h.amax());
        if round == 0 {
            reduced.update(&v, 3.0).expect("multipliers");
        }
    }
    // unscaled and scaled again
    let point = reduced.point(&v).expect("a point");
    assert!((point.controls[2] - 3.4).abs() < 1e-12 && (point.parameters[0] - 0.3).abs() < 1e-12);
    assert!((reduced.decisions(&point).expect("of its size") - &v).amax() < 1e-12);
    let t = reduced.trajectory(&v).expect("simulated");
    assert!((t.u[4] + 2.3).abs() < 1e-12);
    assert!(reduced.violation(&v).expect("simulated") >= 0.3);
}

#[test]
fn what_does_not_fit_a_reduced_problem_is_said() {
    let d = Explicit::new(Pendulum);
    let mut p = demanding(&d);
    let reduced = Reduced::new(&d, &p).expect("a problem");
    let said = |e: argmin::core::Error| format!("{e:#}");
    let short = DVector::zeros(3);
    assert!(
        reduced
            .cost(&short)
            .is_err_and(|e| said(e).contains("give 12"))
    );
    assert!(reduced.update(&reduced.guess(), 0.5).is_err());
    // what cannot be simulated is bad, not an error
    let far = DVector::from_element(12, 1e200);
    let bad = reduced.cost(&far).expect("a value");
    assert!(bad.is_finite() && bad > reduced.cost(&reduced.guess()).expect("a value"));
    assert_eq!(reduced.gradient(&far).expect("none").amax(), 0.0);
    let half = 0.5 * reduced.apply(&far).expect("residuals").norm_squared();
    assert!((half / bad - 1.0).abs() < 1e-12);
    // no squares, no residuals; all else is there
    p.costs[3].form = Form::Linear;
    let reduced = Reduced::new(&d, &p).expect("a problem");
    let v = reduced.guess();
    assert!(
        reduced
            .apply(&v)
            .is_err_and(|e| said(e).contains("cost 3, of x1, is no square"))
    );
    assert!(reduced.jacobian(&v).is_err());
    assert!(reduced.cost(&v).is_ok() && reduced.hessian(&v).is_ok());
    let run = |method| Solve::new(&d, &p).with_method(method).run();
    let refused = run(Method::GaussNewton);
    assert!(refused.is_err_and(|e| said(e).contains("cost 3, of x1, is no square")));
    // a simplex and a swarm are for a handful, a swarm within bounds
    p.parameter_bounds = vec![(0.3, 0.3), (0.0, f64::INFINITY)];
    let refused = run_of(&d, &p, Method::ParticleSwarm);
    assert!(refused.is_err_and(|e| e.contains("control 1 has none")));
    p.bounds[1] = (-1.0, 1.0);
    let refused = run_of(&d, &p, Method::ParticleSwarm);
    assert!(refused.is_err_and(|e| e.contains("parameter `push` has none")));
    let mut long = Problem::new(&d, vec![0.1; 30], vec![0.4, -0.2]);
    long.rates.clear();
    long.bounds = p.bounds.clone();
    let refused = run_of(&d, &long, Method::NelderMead);
    assert!(refused.is_err_and(|e| e.contains("60 (60 controls over all knots, 0 parameters)")));
}

fn run_of(d: &Explicit<Pendulum>, p: &Problem, method: Method) -> Result<Solution, String> {
    let solved = Solve::new(d, p).with_method(method).run();
    solved.map_err(|e| e.to_string())
}

/// Three forces within bounds that bring the pendulum to rest as far as it goes.
fn small(d: &Explicit<Pendulum>) -> Problem {
    let mut p = Problem::new(d, vec![0.2; 3], vec![0.4, -0.2]);
    p.rates.clear();
    p.costs = vec![
        Cost::square(X, 0.0, 1.0, When::Running),
        Cost::square(RATE, 0.0, 1.0, When::End),
        Cost::square(d.control_quantity(0), 0.0, 0.01, When::Running),
        Cost::square(d.control_quantity(1), 0.0, 1.0, When::Running),
    ];
    p.bounds = vec![(-1.0, 3.0), (-1.0, 1.0)];
    p.parameter_bounds = vec![(0.1, 0.5), (0.2, 0.2)];
    p
}

/// All methods find the same, a bound, a parameter at its end and a constraint included; those by values alone, too, and the
/// same bits of the same seed.
#[test]
fn every_method_on_a_handful_of_decisions() {
    let d = Explicit::new(Pendulum);
    let mut p = small(&d);
    for constrained in [false, true] {
        if constrained {
            p.constraints = vec![Constraint {
                quantity: X,
                relation: Relation::Equal,
                value: 0.1,
                profile: None,
                when: When::End,
            }];
        }
        let best = run_of(&d, &p, Method::Ddp).expect("solves");
        assert_eq!(best.status, Status::Converged);
        for method in Method::ALL.into_iter().filter(|m| !m.is_learner()) {
            if method.options().fits(&d, &p).is_err() {
                continue;
            }
            let s = run_of(&d, &p, method).expect("solves");
            let said = format!(
                "{method:?} {constrained}: {} {:?} {}",
                s.objective, s.status, s.reason
            );
            println!("{said}");
            if constrained && method == Method::ParticleSwarm {
                // which a swarm does not meet to the last digits; that they cannot be met it must not say
                assert!(
                    s.violation < 1e-2 && s.status != Status::Infeasible,
                    "{said}"
                );
                assert!(s.violation <= 1e-6 || !s.status.is_solved(), "{said}");
                continue;
            }
            assert!(s.status.is_solved() && s.violation <= 1e-6, "{said}");
            assert!(
                (s.objective / best.objective - 1.0).abs() < 1e-4,
                "{said}, {}",
                best.objective
            );
            if !matches!(method, Method::NelderMead | Method::ParticleSwarm) {
                assert_eq!(s.status, Status::Converged, "{said}");
            }
            if s.status == Status::Converged {
                assert!(s.optimality <= 1e-8, "{said}");
            }
        }
    }
    let swarm = |seed| {
        let options = Options {
            seed,
            max_iterations: 20,
            ..Options::of(Solver::ParticleSwarm)
        };
        let s = Solve::new(&d, &p).with_options(options).run();
        s.expect("solves").history
    };
    assert_eq!(swarm(3), swarm(3));
    assert_ne!(swarm(3), swarm(4));
}

/// What is kept of methods without a memory is all that they know.
#[test]
fn a_method_of_argmin_goes_on_from_its_checkpoint() {
    let d = Explicit::new(Pendulum);
    let p = demanding(&d);
    for method in Method::ALL
        .into_iter()
        .filter(|m| m.argmin_solver().is_some())
    {
        // twelve decisions and six constraints that act are too much for values alone
        if matches!(method, Method::NelderMead | Method::ParticleSwarm) {
            continue;
        }
        let mut kept: Vec<Checkpoint> = vec![];
        let checkpoints = Checkpoints::new(None, Duration::ZERO, |c| {
            kept.push(c);
            Ok(())
        });
        let solve = || Solve::new(&d, &p).with_method(method);
        let whole = solve().with_checkpoint(checkpoints).run().expect("solves");
        assert!(whole.status.is_solved(), "{method:?}: {}", whole.reason);
        let text = serde_json::to_string(&kept[kept.len() / 2]).expect("writes");
        let read: Checkpoint = serde_json::from_str(&text).expect("reads");
        let before = read.iterations();
        let from = Checkpoints::new(Some(read), Duration::MAX, |_| Ok(()));
        let s = solve().with_checkpoint(from).run().expect("solves");
        assert!(s.iterations > before);
        let exact = [Method::NewtonCg, Method::GaussNewton, Method::TrustRegion];
        if exact.contains(&method) {
            assert_eq!(s.history, whole.history, "{method:?}");
        } else {
            assert!(s.status.is_solved(), "{method:?}: {}", s.reason);
            let change = s.objective / whole.objective - 1.0;
            assert!(change.abs() < 1e-5, "{method:?}: {change:e}");
        }
    }
}

/// Second-order methods agree near a solution: with noise on its controls, where that can be simulated, and with what its
/// feedback makes of it. Methods that take states are given them.
fn agree(name: &str, takes_noise: bool) {
    agree_of(name, &methods::load(name).expect("a problem"), takes_noise);
}

fn agree_of(name: &str, m: &Model, takes_noise: bool) {
    let solve = |p: &Problem, method| {
        let options = m.options.of(method);
        let s = Solve::new(&m.system, p).with_options(options).run();
        s.expect("no argmin error")
    };
    let best = solve(&m.problem, Method::Ddp);
    let [open, closed] = methods::near(m, &best).expect("a guess");
    let second_order = [
        Method::Ddp,
        Method::Shooting,
        Method::MultipleShooting,
        Method::NewtonCg,
        Method::TrustRegion,
        Method::GaussNewton,
    ];
    for (near, is_open) in [(&open, true), (&closed, false)] {
        for method in second_order {
            if is_open && !takes_noise && !method.takes_states() {
                continue;
            }
            let s = solve(near, method);
            let said = format!(
                "{name}, {method:?}, {is_open}: {} {}",
                s.objective, s.reason
            );
            assert_eq!(s.status, Status::Converged, "{said}");
            assert!(s.violation <= 1e-6, "{said}");
            assert!((s.objective / best.objective - 1.0).abs() < 1e-4, "{said}");
        }
    }
}

#[test]
fn second_order_methods_agree_on_the_pendulum() {
    agree("pendulum_swingup", true);
}

#[test]
fn second_order_methods_agree_on_the_cartpole() {
    agree("cartpole_swingup", true);
}

#[test]
fn second_order_methods_agree_on_the_acrobot() {
    // held controls take multiple shooting more than a thousand iterations from states with noise
    let m = crate::replays::model("acrobot_swingup", Controls::Linear, &Overrides::default());
    agree_of("acrobot_swingup", &m, true);
}

/// Its curvature by the controls spans more than the digits of a number.
#[test]
fn second_order_methods_agree_on_the_double_pendulum() {
    agree("double_pendulum_swingup", false);
}

/// Noise takes its controls to another arm's pose.
#[test]
fn second_order_methods_agree_on_the_arm() {
    agree("spatial_arm_reach", false);
}

/// L-BFGS is open-loop; a limit is kept, and nothing is claimed that was not reached.
#[test]
fn limits_and_verdicts() {
    let m = load("cartpole_swingup");
    for method in Method::ALL {
        let solve = Solve::new(&m.system, &m.problem).with_method(method);
        if method.options().fits(&m.system, &m.problem).is_err() {
            assert!(solve.run().is_err());
            continue;
        }
        let limits = Limits {
            iterations: Some(4),
            ..Limits::default()
        };
        let s = solve.with_limits(limits).run().expect("no argmin error");
        assert_eq!(
            (s.status, s.iterations),
            (Status::MaxIterations, 4),
            "{method:?}"
        );
        assert_eq!(s.history.len(), 5);
        // a line search has its limit: the guess, and so many rollouts an iteration
        let n = m.problem.intervals.len() as u64;
        assert!(
            s.step_evaluations <= (2 + 4 * 102) * n,
            "{method:?}: {}",
            s.step_evaluations / n
        );
    }
}

/// The example of a solver that we do not list.
#[test]
fn another_solver_of_argmin() {
    let (guess, objective, found) = crate::plugged::tune().expect("tuned");
    let best = by_ddp("damper_tuning").objective;
    // another minimum, which is no worse
    assert!(objective < 0.5 * guess, "{guess} {objective} {found:?}");
    assert!(objective < best, "{objective} {best}");
}

fn by_ddp(name: &str) -> Solution {
    let m = load(name);
    let s = Solve::new(&m.system, &m.problem).with_options(m.options.of(Method::Ddp));
    s.run().expect("no argmin error")
}
