//! Users' dynamics: derivatives of step, start and quantities against central differences.

use least_action::control::{ClosedLoop, Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::Start;
use least_action::dynamics::{
    Charts, Differentiable, Dual, Explicit, Inputs, Knot, KnotPoint, LinearModel, Observe, Outputs,
    Parameter, QuantityId, Real, Rows, Smooth, SolvedStep, Step,
};
use least_action::optimize::{Solve, Status, ddp, shooting};
use least_action::rollout::{RolloutStats, Trajectory};
use std::f64::consts::PI;

/// Uses every function of [`Real`], with more inputs than are differentiated at once.
struct Everything;

impl Smooth for Everything {
    fn states(&self) -> usize {
        5
    }

    fn controls(&self) -> usize {
        3
    }

    fn parameters(&self) -> Vec<Parameter> {
        let named = |i: usize| Parameter {
            name: format!("p{i}"),
            unit: "1".into(),
            value: 0.4 + 0.1 * i as f64,
        };
        (0..2).map(named).collect()
    }

    fn step<T: Real>(&self, t: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
        next[0] = x[0] + h * (x[1].sin() * u[0] + p[0] * t);
        next[1] = (x[1] * x[2]).tan() - (u[1] - 0.5).abs() / (x[2] * x[2] + 1.0);
        next[2] = x[2].exp() * p[1] - h * (x[3] + 3.0).ln();
        next[3] = (x[3] * x[3] + u[2].powi(2) + 1.0).sqrt() + x[4].atan2(x[0] + 2.0);
        next[4] = -x[4].tanh() + u[0].powi(0) * 2.0;
        next[4] += x[0];
        next[4] -= p[0] * x[1].cos();
        next[4] *= p[1];
        next[4] /= u[1] + 4.0;
    }

    fn initial<T: Real>(&self, q: &[T], rates: &[T], p: &[T], x: &mut [T]) {
        for (x, v) in x.iter_mut().zip(q.iter().chain(rates)) {
            *x = p[0] * p[1] * *v;
        }
    }

    fn outputs(&self) -> Vec<(String, String)> {
        vec![("a".into(), "m".into()), ("b".into(), "s".into())]
    }

    fn observe<T: Real>(&self, _t: f64, x: &[T], u: &[T], p: &[T], out: &mut [T]) {
        out[0] = x[0] * u[1] * p[1];
        out[1] = x[4].sin() + p[0];
    }
}

const AT: Knot = Knot {
    k: 3,
    t: 0.7,
    h_prev: 0.1,
    h: 0.1,
};
const EPS: f64 = 1e-6;

/// x, u, p, h in a row.
fn point() -> Vec<f64> {
    vec![0.3, -0.2, 0.5, 0.1, 0.7, 0.4, -0.3, 0.2, 0.4, 0.5, 0.1]
}

fn step(d: &Explicit<Everything>, v: &[f64]) -> Vec<f64> {
    let (mut w, mut next) = (d.work(), vec![0.0; 5]);
    let at = Knot { h: v[10], ..AT };
    d.step(
        &at,
        &v[..5],
        &v[5..8],
        &v[8..10],
        &mut w,
        &mut next,
        &mut [],
    )
    .expect("a step");
    next
}

fn differences(f: impl Fn(&[f64]) -> Vec<f64>, i: usize) -> Vec<f64> {
    let (mut up, mut down) = (point(), point());
    up[i] += EPS;
    down[i] -= EPS;
    let pairs = f(&up).into_iter().zip(f(&down));
    pairs.map(|(u, d)| (u - d) / (2.0 * EPS)).collect()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-8, "{a} {b}");
}

#[test]
fn step_derivatives_match_differences() {
    let (d, v) = (Explicit::new(Everything), point());
    let (dims, mut w) = (d.dims(), d.work());
    let next = step(&d, &v);
    let at = SolvedStep {
        at: AT,
        x: &v[..5],
        u: &v[5..8],
        p: &v[8..10],
        y: &[],
        next: &next,
    };
    let frame = d.frame(&AT, at.x, at.p, None, &mut w).expect("a frame");
    let mut linear = d.linearize(&at, &mut w).expect("linearized");
    let mut model = LinearModel::new(&dims);
    linear.linear_model(&frame, &frame, &mut model);
    for i in 0..11 {
        let expected = differences(|v| step(&d, v), i);
        let mut change = dims.inputs();
        let Inputs { x, u, p, h, .. } = &mut change;
        let place = x.iter_mut().chain(u).chain(p).chain([h]).nth(i);
        *place.expect("an input") = 1.0;
        let mut out = dims.outputs();
        linear.push(&change, &mut out);
        for (r, e) in expected.iter().enumerate() {
            close(out.x[r], *e);
            let mut adjoint: Outputs = dims.outputs();
            adjoint.x[r] = 1.0;
            let mut back = dims.inputs();
            linear.pull(&adjoint, &mut back);
            let all = back.x.iter().chain(&back.u).chain(&back.p).chain([&back.h]);
            close(*all.clone().nth(i).expect("an input"), *e);
            match i {
                0..5 => close(model.a[(r, i)], *e),
                5..8 => close(model.b[(r, i - 5)], *e),
                8..10 => close(model.p[(r, i - 8)], *e),
                _ => {}
            }
        }
    }
}

#[test]
fn quantities_and_starts_match_differences() {
    let (d, v) = (Explicit::new(Everything), point());
    let mut w = d.work();
    let which = [1, 6, 8, 9].map(QuantityId::new);
    let observe = |v: &[f64]| {
        let (mut w, mut out) = (d.work(), vec![0.0; 4]);
        d.observe(&knot_point(v), &which, &mut w, &mut out)
            .expect("observed");
        out
    };
    let mut rows = Rows::new(&d.dims(), 4);
    d.observe_rows_in(&knot_point(&v), &which, &mut w, &mut rows);
    let from = Start::at_rates(&[0.3, 0.4, 0.5], &[0.6, 0.7]);
    let start = d
        .initial_by_parameters(&from, &v[8..10], &mut w)
        .expect("a start");
    let begin = |v: &[f64]| {
        let mut x = vec![0.0; 5];
        d.initial(&from, &v[8..10], &mut d.work(), &mut x)
            .expect("a start");
        x
    };
    for i in 0..10 {
        for (r, e) in differences(observe, i).into_iter().enumerate() {
            let by = match i {
                0..5 => rows.x[(r, i)],
                5..8 => rows.u[(r, i - 5)],
                _ => rows.p[(r, i - 8)],
            };
            close(by, e);
            let (mut adjoint, mut back) = (vec![0.0; 4], d.dims().inputs());
            adjoint[r] = 1.0;
            d.observe_pull_in(
                &knot_point(&v),
                &which,
                &mut w,
                &adjoint,
                &mut back,
                &mut [],
            );
            let all = back.x.iter().chain(&back.u).chain(&back.p);
            close(*all.clone().nth(i).expect("an input"), e);
        }
        if i >= 8 {
            for (r, e) in differences(begin, i).into_iter().enumerate() {
                close(start[(r, i - 8)], e);
            }
        }
    }
    assert_eq!(d.quantities().len(), 10);
    assert_eq!(d.quantities()[d.output_quantity(0).index()].0, "a");
}

fn knot_point(v: &[f64]) -> KnotPoint<'_> {
    KnotPoint {
        at: AT,
        x: &v[..5],
        u: &v[5..8],
        p: &v[8..10],
        y: &[],
    }
}

/// Nested, the second derivatives come out: of `x^3 sin y`.
#[test]
fn nested_numbers_carry_second_derivatives() {
    type Second = Dual<Dual<f64, 2>, 2>;
    let lift = |v: f64, i: usize| Second::variable(Dual::variable(v, i), i);
    let (x, y) = (0.7, 0.4);
    let f = lift(x, 0).powi(3) * lift(y, 1).sin();
    close(f.by[0].by[0], 6.0 * x * y.sin());
    close(f.by[0].by[1], 3.0 * x * x * y.cos());
    close(f.by[1].by[1], -x.powi(3) * y.sin());
}

/// Formulas that leave the numbers are reported, not passed on.
#[test]
fn what_is_not_finite_is_an_error() {
    let d = Explicit::new(Everything);
    let mut v = point();
    v[3] = -4.0;
    let (mut w, mut next) = (d.work(), vec![0.0; 5]);
    let e = d
        .step(
            &AT,
            &v[..5],
            &v[5..8],
            &v[8..10],
            &mut w,
            &mut next,
            &mut [],
        )
        .expect_err("ln of a negative number");
    assert_eq!(e.element, "number 2");
}

/// A pendulum of 1 kg at 1 m in three lines, semi-implicit Euler: x = (angle from hanging, its rate), u = torque.
struct Pendulum;

impl Smooth for Pendulum {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        let acceleration = u[0] - x[0].sin() * 9.81;
        next[1] = x[1] + h * acceleration;
        next[0] = x[0] + h * next[1];
    }
}

/// It swings up to the same objective by every optimizer, and from a start beside that under the feedback found.
#[test]
fn a_three_line_pendulum_is_solved_by_every_optimizer() {
    let d = Explicit::new(Pendulum);
    let mut p = Problem::new(&d, vec![0.05; 60], vec![0.0]);
    p.bounds = vec![(-6.0, 6.0)];
    p.guess.fill(0.1);
    p.costs
        .push(Cost::square(d.control_quantity(0), 0.0, 0.1, When::Running));
    for (place, value) in [PI, 0.0].into_iter().enumerate() {
        p.constraints.push(Constraint {
            quantity: QuantityId::new(place),
            relation: Relation::Equal,
            value,
            profile: None,
            when: When::End,
        });
    }
    let solutions = [
        Solve::new(&d, &p)
            .with_options(ddp::Options::default())
            .run(),
        Solve::new(&d, &p)
            .with_options(shooting::Options::default())
            .run(),
    ];
    let mut feedback = None;
    let objectives = solutions.map(|s| {
        let s = s.expect("no argmin error");
        feedback = feedback.take().or(s.feedback());
        println!("{} {} {}", s.status.name(), s.objective, s.iterations);
        assert_eq!(s.status, Status::Converged, "{}", s.reason);
        assert!(s.violation < 1e-6);
        s.objective
    });
    let [by_ddp, by_shooting] = objectives;
    assert!((by_ddp - by_shooting).abs() < 1e-4 * by_ddp);
    let closed = ClosedLoop::new(d, feedback.expect("gains"));
    let mut t = Trajectory::new(&closed, p.intervals, &[0.05, 0.0]);
    t.roll(&closed, &mut closed.work(), &mut RolloutStats::default())
        .expect("simulated");
    let end = t.state(60);
    println!("from 0.05 rad to {end:?}");
    assert!((end[0] - PI).abs() < 1e-2 && end[1].abs() < 1e-2);
}
