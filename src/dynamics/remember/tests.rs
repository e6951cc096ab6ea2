//! A small system that remembers.

use super::*;
use crate::dynamics::Equations;
use crate::rollout::{RolloutStats, Trajectory};

/// A cart on a spring with two controls, semi-implicit Euler.
struct Cart;

impl Step for Cart {
    type Work = (f64, f64);

    crate::without!(names, parameters, start, softening);

    fn dims(&self) -> Dims {
        Dims {
            nx: 2,
            nf: 2,
            ndx: 2,
            nu: 2,
            np: 0,
            ny: 0,
        }
    }

    fn work(&self) -> Self::Work {
        (0.0, 0.0)
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        _: &[f64],
        _: &mut Self::Work,
        next: &mut [f64],
        _: &mut [f64],
    ) -> Result<StepStats, StepError> {
        next[1] = x[1] + at.h * (u[0] - 2.0 * u[1] - 3.0 * x[0]);
        next[0] = x[0] + at.h * next[1];
        Ok(StepStats::default())
    }
}

impl Differentiable for Cart {
    crate::without!(smoothing, keeping);

    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        *w = (at.at.h, at.u[0] - 2.0 * at.u[1] - 3.0 * at.x[0]);
        Ok(Certificate::default())
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        let h = w.0;
        out.x[1] = d.x[1] + h * (d.u[0] - 2.0 * d.u[1] - 3.0 * d.x[0]) + w.1 * d.h;
        out.x[0] = d.x[0] + h * out.x[1];
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        let h = w.0;
        let rate = adjoint.x[1] + h * adjoint.x[0];
        out.x[0] = adjoint.x[0] - 3.0 * h * rate;
        out.x[1] = rate;
        (out.u[0], out.u[1]) = (h * rate, -2.0 * h * rate);
    }
}

impl Equations for Cart {}

impl Charts for Cart {
    crate::without!(charts, model);
}

impl Observe for Cart {
    crate::without!(unknowns);

    fn quantities(&self) -> Vec<(String, String)> {
        vec![("x".into(), "m".into()), ("work".into(), "N m".into())]
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        _: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        for (q, out) in which.iter().zip(out) {
            *out = [seen.x[0], seen.x[0] * seen.u[0]][q.index()];
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        _: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
        _: &mut [f64],
    ) {
        for (q, g) in which.iter().zip(adjoint) {
            out.x[0] += g * [1.0, seen.u[0]][q.index()];
            out.u[0] += g * [0.0, seen.x[0]][q.index()];
        }
    }
}

fn remember(cart: &Cart) -> Remember<&Cart> {
    let names = [("push", "N"), ("pull", "1")];
    Remember::new(cart, names.map(|(n, u)| (n.into(), u.into())).to_vec())
}

const AT: Knot = Knot {
    k: 3,
    t: 0.0,
    h_prev: 0.2,
    h: 0.1,
};
const X: [f64; 4] = [0.3, -0.5, 2.0, 7.0];
const U: [f64; 2] = [1.0, -4.0];

#[test]
fn rates_stand_behind_the_system_s_own_quantities() {
    let cart = Cart;
    let s = remember(&cart);
    let names: Vec<_> = s.quantities();
    assert_eq!(names[2], ("push rate".into(), "N/s".into()));
    assert_eq!(names[3], ("pull rate".into(), "1/s".into()));
    // in any order, some twice
    let which = [3, 0, 2, 1, 3].map(QuantityId::new);
    let observe = |h_prev: f64, x: &[f64], u: &[f64]| {
        let (mut w, mut out) = (s.work(), vec![0.0; 5]);
        let at = Knot { h_prev, ..AT };
        let seen = KnotPoint {
            at,
            x,
            u,
            p: &[],
            y: &[],
        };
        s.observe_in(&seen, &which, &mut w, &mut out).expect("seen");
        out
    };
    assert_eq!(observe(0.2, &X, &U), [-55.0, 0.3, -5.0, 0.3, -55.0]);
    assert_eq!(observe(0.0, &X, &U), [0.0, 0.3, 0.0, 0.3, 0.0]);
    let adjoint = [0.3, -1.0, 0.7, 2.0, 0.1];
    let sum = |h_prev: f64, x: &[f64], u: &[f64]| -> f64 {
        let values = observe(h_prev, x, u);
        values.iter().zip(adjoint).map(|(v, a)| v * a).sum()
    };
    let (mut w, mut d) = (s.work(), s.dims().inputs());
    let (x, u) = (&X[..], &U[..]);
    let seen = KnotPoint {
        at: AT,
        x,
        u,
        p: &[],
        y: &[],
    };
    s.observe_pull_in(&seen, &which, &mut w, &adjoint, &mut d, &mut []);
    let e = 1e-5;
    let check = |exact: f64, by: &dyn Fn(f64) -> f64| {
        let numeric = (by(e) - by(-e)) / (2.0 * e);
        assert!(
            (exact - numeric).abs() < 1e-6 * (1.0 + numeric.abs()),
            "{exact} {numeric}"
        );
    };
    for i in 0..4 {
        check(d.x[i], &|e| {
            let mut x = X;
            x[i] += e;
            sum(0.2, &x, &U)
        });
    }
    for i in 0..2 {
        check(d.u[i], &|e| {
            let mut u = U;
            u[i] += e;
            sum(0.2, &X, &u)
        });
    }
    check(d.h_prev, &|e| sum(0.2 + e, &X, &U));
}

#[test]
fn the_control_is_handed_on() {
    let cart = Cart;
    let s = remember(&cart);
    let dims = s.dims();
    let mut w = s.work();
    let mut x = [1.0; 4];
    s.initial(&Start::at_rates(&[0.1], &[0.2]), &[], &mut w, &mut x)
        .expect("a start");
    assert_eq!(x, [0.1, 0.2, 0.0, 0.0]);
    let mut next = [0.0; 4];
    s.step(&AT, &X, &U, &[], &mut w, &mut next, &mut [])
        .expect("steps");
    assert_eq!(next[2..], U);
    let solved = SolvedStep {
        at: AT,
        x: &X,
        u: &U,
        p: &[],
        y: &[],
        next: &next,
    };
    s.linearize_in(&solved, &mut w).expect("linear");
    // the matrices are the pushes, and the pulls their transposes
    let frame = s.frame(&AT, &X, &[], None, &mut w).expect("a frame");
    let frame = s
        .frame(&AT, &X, &[], Some(&frame), &mut w)
        .expect("a frame");
    assert_eq!(frame.embed(), DMatrix::identity(4, 4));
    let mut model = LinearModel::new(&dims);
    s.linear_model_in(&mut w, &frame, &frame, &mut model);
    for i in 0..6 {
        let (mut d, mut out) = (dims.inputs(), dims.outputs());
        if i < 4 {
            d.x[i] = 1.0;
        } else {
            d.u[i - 4] = 1.0;
        }
        s.push_in(&mut w, &d, &mut out);
        let column = if i < 4 {
            model.a.column(i)
        } else {
            model.b.column(i - 4)
        };
        assert_eq!(column.as_slice(), out.x);
        for k in 0..4 {
            let (mut adjoint, mut back) = (dims.outputs(), dims.inputs());
            adjoint.x[k] = 1.0;
            s.pull_in(&mut w, &adjoint, &mut back);
            let entry = if i < 4 { back.x[i] } else { back.u[i - 4] };
            assert!((entry - out.x[k]).abs() < 1e-15);
        }
    }
    // there and back in the joint chart
    let d = [0.1, 0.2, 0.3, 0.4];
    let (mut moved, mut back) = ([0.0; 4], [0.0; 4]);
    s.retract(&AT, &X, &[], &frame, &d, &mut w, &mut moved)
        .expect("near");
    s.difference(&AT, &X, &[], &frame, &moved, &mut w, &mut back);
    assert!(d.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-15));
}

#[test]
fn its_trajectory_holds_the_system_s() {
    let cart = Cart;
    let s = remember(&cart);
    let mut with = Trajectory::new(&s, vec![0.1; 5], &[0.3, 0.0, 0.0, 0.0]);
    let mut without = Trajectory::new(&cart, vec![0.1; 5], &[0.3, 0.0]);
    let u: Vec<f64> = (0..10).map(|i| (i as f64).sin()).collect();
    with.u.copy_from_slice(&u);
    without.u.copy_from_slice(&u);
    let mut stats = RolloutStats::default();
    with.roll(&s, &mut s.work(), &mut stats).expect("rolls");
    without
        .roll(&cart, &mut cart.work(), &mut stats)
        .expect("rolls");
    assert_eq!(with.of_system(&cart), without);
    assert_eq!(with.state(3)[2..], u[4..6]);
}
