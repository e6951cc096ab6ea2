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
