//! The function of shooting and its derivatives.

use super::*;
use crate::control::{Constraint, Cost, Relation, When};
use crate::dynamics::{Explicit, Parameter, QuantityId, Real, Smooth};

/// A cart in a wind, with a fraction of its velocity lost at every step.
struct Cart;

impl Smooth for Cart {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        2
    }

    fn parameters(&self) -> Vec<Parameter> {
        let named = [("wind", 0.2), ("offset", -0.1)];
        let parameter = |(name, value): (&str, f64)| Parameter {
            name: name.into(),
            unit: "1".into(),
            value,
        };
        named.map(parameter).to_vec()
    }

    fn initial<T: Real>(&self, q: &[T], rates: &[T], p: &[T], x: &mut [T]) {
        x[0] = p[1] + q[0];
        x[1] = rates[0];
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
        next[0] = x[0] + h * x[1];
        next[1] = x[1] * 0.9 + h * (u[0] - u[1] * 0.3 + p[0]);
    }

    fn outputs(&self) -> Vec<(String, String)> {
        vec![("sum".into(), "1".into())]
    }

    fn observe<T: Real>(&self, _: f64, x: &[T], u: &[T], p: &[T], out: &mut [T]) {
        out[0] = x[0] + p[0] + u[1];
    }
}

/// Where everything is linear the value is its expansion, gradients differ by the curvature, and Riccati's recursion
/// undoes it: parameters, the start, and the end's dependence on the last control included.
#[test]
fn gradient_and_curvature_are_those_of_the_value() {
    let d = Explicit::new(Cart);
    let mut p = Problem::new(&d, vec![0.1, 0.2, 0.1, 0.3], vec![0.7]);
    p.bounds = vec![(-4.0, 4.0), (f64::NEG_INFINITY, f64::INFINITY)];
    p.parameter_bounds = vec![(f64::NEG_INFINITY, f64::INFINITY); 2];
    p.costs = vec![
        Cost::square(QuantityId::new(0), 1.0, 0.3, When::Running),
        Cost::square(QuantityId::new(2), 0.0, 0.2, When::Running),
        Cost::square(QuantityId::new(3), 0.1, 0.4, When::Running),
        Cost::square(QuantityId::new(4), 0.5, 2.0, When::End),
        Cost::square(QuantityId::new(4), 0.0, 0.7, When::Knot(1)),
    ];
    p.constraints = vec![Constraint::new(
        QuantityId::new(1),
        Relation::Equal,
        0.4,
        When::End,
    )];
    let mut f = Augmented::new(&d, &p, 3.0);
    let v = f.guess();
    f.roll(&v);
    let (value, g) = (f.value(), f.gradient().expect("linearized"));
    let before = f.path().trajectory.clone();
    for i in 0..v.len() {
        let mut e = DVector::zeros(v.len());
        e[i] = 1.0;
        f.roll(&(&v + &e));
        let (moved, column) = (f.value(), f.gradient().expect("linearized") - &g);
        let after = f.path().trajectory.clone();
        f.roll(&v);
        f.gradient().expect("linearized");
        assert!(
            (moved - value - g[i] - 0.5 * column[i]).abs() < 1e-12,
            "{i}"
        );
        assert!((f.curvature_along(&e) - column[i]).abs() < 1e-12, "{i}");
        assert!((f.newton(&column) - &e).amax() < 1e-9, "{i}");
        let response = f.response(&e);
        for k in 0..=before.steps() {
            for j in 0..2 {
                let change = after.state(k)[j] - before.state(k)[j];
                assert!((change - response[2 * k + j]).abs() < 1e-12, "{i} {k}");
            }
        }
    }
}

/// A pendulum with a motor that pulls all the time, and nothing to decide but its numbers.
struct Pulled;

impl Smooth for Pulled {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        0
    }

    fn parameters(&self) -> Vec<Parameter> {
        let named = [("pull", 0.4), ("weight", 1.3)];
        let parameter = |(name, value): (&str, f64)| Parameter {
            name: name.into(),
            unit: "1".into(),
            value,
        };
        named.map(parameter).to_vec()
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], _: &[T], p: &[T], next: &mut [T]) {
        next[1] = x[1] + h * (p[0] - p[1] * x[0].sin());
        next[0] = x[0] + h * next[1];
    }
}

/// It should swing to one half, and may not beyond a third, at thirty knots; and at the end as fast as it is told.
fn pulled(d: &Explicit<Pulled>) -> Problem {
    let mut p = Problem::new(d, vec![0.1; 30], vec![0.1, 0.0]);
    p.parameter_bounds = vec![(0.0, 2.0), (0.1, 5.0)];
    p.costs = vec![Cost::square(QuantityId::new(0), 0.5, 1.0, When::Running)];
    let limit =
        |q, relation, value, when| Constraint::new(QuantityId::new(q), relation, value, when);
    p.constraints = vec![
        limit(0, Relation::Less, 0.33, When::Running),
        limit(0, Relation::Greater, -0.2, When::Running),
        limit(1, Relation::Equal, 0.05, When::End),
    ];
    p
}

/// Rows of the constraints are their derivatives, by differences, and with what acts they make the gradient.
#[test]
fn rows_of_the_model_with_kinks_are_derivatives() {
    let d = Explicit::new(Pulled);
    let p = pulled(&d);
    let mut f = Augmented::new(&d, &p, 3.0);
    let v = f.guess();
    f.roll(&v);
    let gradient = f.gradient().expect("linearized");
    let kinks = f.hinges().expect("linearized").clone();
    assert_eq!(kinks.c, f.path().evaluation.constraints);
    assert_eq!(kinks.equal.iter().filter(|e| **e).count(), 1);
    assert!(kinks.c.iter().any(|c| *c > 0.0) && kinks.c.iter().any(|c| *c < 0.0));
    for j in 0..2 {
        let mut at = |e: f64| {
            let mut moved = v.clone();
            moved[j] += e;
            f.roll(&moved);
            let e = &f.path().evaluation;
            (e.objective, DVector::from_column_slice(&e.constraints))
        };
        let e = 1e-4;
        let (up, down) = (at(e), at(-e));
        let differences = (up.1 - down.1) / (2.0 * e);
        for (i, difference) in differences.iter().enumerate() {
            let row = kinks.rows[2 * i + j];
            assert!(
                (row - difference).abs() < 1e-6,
                "{j} {i}: {row} {difference}"
            );
        }
        let slope = (up.0 - down.0) / (2.0 * e);
        assert!((kinks.g[j] - slope).abs() < 1e-6, "{} {slope}", kinks.g[j]);
        let acting = kinks.c.iter().enumerate();
        let pressed = acting.map(|(i, c)| f.lagrangian.estimate(i, *c) * kinks.rows[2 * i + j]);
        let sum = kinks.g[j] + pressed.sum::<f64>();
        assert!(
            (sum - gradient[j]).abs() < 1e-12 * sum.abs().max(1.0),
            "{sum}"
        );
    }
}

/// With the model's own multipliers its best step obeys the constraints to first order, from the same sweep.
#[test]
fn multipliers_of_the_model_make_its_step_obey() {
    let d = Explicit::new(Pulled);
    let p = pulled(&d);
    let mut f = Augmented::new(&d, &p, 3.0).with_kinks();
    let v = f.guess();
    f.roll(&v);
    let before = f.promise(0.0).expect("linearized").expect("numbers");
    let sweeps = f.sweeps;
    assert!(f.update_by_model(1e-6, 1.0).expect("linearized"));
    let after = f.promise(0.0).expect("linearized").expect("numbers");
    assert_eq!(f.sweeps, sweeps);
    let kinks = f.hinges().expect("linearized");
    let furthest = |step: &Param| {
        let each = kinks.rows.chunks_exact(2).zip(&kinks.c).zip(&kinks.equal);
        each.fold(0.0, |most: f64, ((row, c), equal)| {
            let c = c + row[0] * step[0] + row[1] * step[1];
            most.max(if *equal { c.abs() } else { c })
        })
    };
    let (before, after) = (furthest(&before.step), furthest(&after.step));
    assert!(before > 1e-3 && after < 1e-6, "{before} {after}");
}
