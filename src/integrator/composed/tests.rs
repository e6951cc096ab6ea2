//! Orders, derivatives, energies and refusals of compositions.

use super::*;
use crate::dynamics::{Column, End, Observe, QuantityId, UnsolvedStep};
use crate::integrator::maximal::tests::{
    assert_close, derivative, difference, displaced, situation, systems,
};
use crate::integrator::{Maximal, Options};
use crate::mechanism::samples::Source;
use crate::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder,
    Shape,
};
use crate::rollout::{RolloutStats, Trajectory, balance};
use crate::spatial::Vec3;
use std::num::NonZeroUsize;

const BOTH: [Order; 2] = [Order::Four, Order::Six];

/// Two rods of 1 m and 1 kg, hanging from each other.
fn double_pendulum() -> MechanismBuilder {
    let rod = || BodySpec::new(1.0).inertia([1.0 / 12.0, 1.0 / 12.0, 1e-3]);
    let hinge = |child: &str| JointSpec::new(JointKind::Revolute, child).axis([0.0, 1.0, 0.0]);
    let (top, bottom) = ([0.0, 0.0, 0.5], [0.0, 0.0, -0.5]);
    MechanismBuilder::new()
        .body("upper", rod())
        .body("lower", rod())
        .joint("shoulder", hinge("upper").anchors([0.0; 3], top))
        .joint("elbow", hinge("lower").parent("upper").anchors(bottom, top))
}

fn composed(m: MechanismBuilder, q: &[f64], order: Order) -> Composed<Maximal> {
    let options = Options {
        tolerance: 1e-13,
        ..Options::default()
    };
    let inner = Maximal::new(m.build().expect("valid"), q, options).expect("closes");
    Composed::new(inner, order).expect("can be composed")
}

fn rolled(s: &Composed<Maximal>, x0: &[f64], u: &[f64], h: f64, seconds: f64) -> Trajectory {
    let steps = (seconds / h).round() as usize;
    let mut t = Trajectory::new(s, vec![h; steps], x0);
    t.u.chunks_exact_mut(u.len().max(1))
        .for_each(|own| own.copy_from_slice(u));
    t.roll(s, &mut s.work(), &mut RolloutStats::default())
        .expect("solved");
    t
}

/// Trees and loops that can be composed.
fn samples(order: Order) -> Vec<(Composed<Maximal>, Vec<f64>)> {
    let all = systems().into_iter();
    let all: Vec<_> = all
        .filter_map(|(s, x)| Some((Composed::new(s, order).ok()?, x)))
        .collect();
    assert!(all.len() > 8 && all.iter().any(|(s, _)| s.mechanism().has_loops()));
    all
}

/// A state of a composition: that of the inner integrator in motion, with the interval before it as the last share.
fn moving(
    s: &Composed<Maximal>,
    x: &[f64],
    start: bool,
) -> (Knot, Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut at, x, u, _) = situation(s.inner(), x, start);
    at.h_prev /= s.shares[0];
    let p = s.parameters().iter().map(|p| p.value).collect();
    (at, x, u, p, vec![0.0; s.dims.ny])
}

#[test]
fn shares_add_up_to_one_and_cancel_the_error_of_the_third_power() {
    for order in BOTH {
        let shares = order.shares();
        let power = |n: i32| shares.iter().map(|g| g.powi(n)).sum::<f64>();
        assert!((power(1) - 1.0).abs() < 1e-15 && power(3).abs() < 1e-14);
        assert!(order == Order::Four || power(5).abs() < 1e-14);
        assert!(shares.iter().eq(shares.iter().rev()));
        let backward = shares.iter().fold(0.0_f64, |m, g| m.min(*g));
        assert!((order.damping() + 0.5 / backward).abs() < 0.01);
    }
}

#[test]
fn errors_fall_with_the_fourth_and_the_sixth_power_of_the_time_step() {
    use std::f64::consts::FRAC_PI_2;
    let q = [FRAC_PI_2, 0.7 - FRAC_PI_2];
    let end = |order: Order, h: f64| {
        let s = composed(double_pendulum(), &q, order);
        let x0 = s.start(&q, &[0.0; 2], &[true; 2]).expect("a tree");
        let t = rolled(&s, &x0, &[], h, 2.0);
        s.poses(t.state(t.steps()))[1].point(&Vec3::new(0.0, 0.0, -0.5))
    };
    let exact = end(Order::Six, 0.0025);
    // errors of the tip at 0.02 and 0.01 s; the same double pendulum by a prototype
    for (order, expected) in BOTH.into_iter().zip([[2.9e-5, 1.8e-6], [1.2e-6, 1.8e-8]]) {
        for (h, expected) in [0.02, 0.01].into_iter().zip(expected) {
            let error = (end(order, h) - exact).norm();
            println!("{order:?} {h}: {error:.2e}");
            assert!(
                (0.5..2.0).contains(&(error / expected)),
                "{order:?} {h}: {error:.2e}"
            );
        }
    }
}

#[test]
fn push_matches_differences_of_the_step() {
    for order in BOTH {
        for (s, x) in samples(order) {
            if s.mechanism().has_loops() {
                continue;
            }
            for start in [true, false] {
                let (at, x, u, p, _) = moving(&s, &x, start);
                let d = s.dims();
                let solve = |at: &Knot, x: &[f64], u: &[f64], p: &[f64]| {
                    let (mut next, mut y) = (x.to_vec(), vec![0.0; d.ny]);
                    s.step(at, x, u, p, &mut s.work(), &mut next, &mut y)
                        .expect("solved");
                    (next, y)
                };
                let (next, y) = solve(&at, &x, &u, &p);
                let mut w = s.work();
                let solved = SolvedStep {
                    at,
                    x: &x,
                    u: &u,
                    p: &p,
                    y: &y,
                    next: &next,
                };
                s.linearize_in(&solved, &mut w).expect("regular");
                // along a direction of everything at once, then each interval alone
                let mut r = Source::new(4);
                let mut all = d.inputs();
                all.x = r.vector(d.nf, 1.0);
                all.u = r.vector(d.nu, 1.0);
                all.p = r.vector(d.np, 0.1);
                let by = |h_prev, h| Inputs {
                    h_prev,
                    h,
                    ..d.inputs()
                };
                for change in [all, by(0.0, 1.0), by(f64::from(u8::from(!start)), 0.0)] {
                    let mut out = d.outputs();
                    s.push_in(&mut w, &change, &mut out);
                    let numeric = derivative(1e-5, |e| {
                        let scaled = |v: &[f64]| v.iter().map(|v| e * v).collect::<Vec<_>>();
                        let plus = |v: &[f64], d: &[f64]| {
                            v.iter().zip(d).map(|(v, d)| v + e * d).collect::<Vec<_>>()
                        };
                        let at = Knot {
                            h_prev: at.h_prev + e * change.h_prev,
                            h: at.h + e * change.h,
                            ..at
                        };
                        let x = displaced(s.inner(), &x, &scaled(&change.x));
                        let (to, y) = solve(&at, &x, &plus(&u, &change.u), &plus(&p, &change.p));
                        let mut all = difference(s.inner(), &next, &to);
                        all.extend(y);
                        all
                    });
                    let exact: Vec<f64> = out.x.iter().chain(&out.y).copied().collect();
                    assert_close(&exact, &numeric, 2e-7, &format!("{order:?}, start {start}"));
                }
            }
        }
    }
}

#[test]
fn pull_is_the_transpose_of_push_and_linearizations_can_be_kept() {
    let equal = Order::Equal(NonZeroUsize::new(3).expect("not zero"));
    for (s, x) in samples(Order::Four).into_iter().chain(samples(equal)) {
        let (at, x, u, p, mut y) = moving(&s, &x, false);
        let (d, mut w, mut next) = (s.dims(), s.work(), x.clone());
        s.step(&at, &x, &u, &p, &mut w, &mut next, &mut y)
            .expect("solved");
        let solved = SolvedStep {
            at,
            x: &x,
            u: &u,
            p: &p,
            y: &y,
            next: &next,
        };
        let certificate = s.linearize_in(&solved, &mut w).expect("regular");
        assert!(certificate.residual < 1e-9, "{}", certificate.residual);
        let mut r = Source::new(5);
        let change = Inputs {
            x: r.vector(d.nf, 1.0),
            u: r.vector(d.nu, 1.0),
            p: r.vector(d.np, 1.0),
            h_prev: 0.3,
            h: -0.4,
        };
        let adjoint = Outputs {
            x: r.vector(d.nf, 1.0),
            y: r.vector(d.ny, 1.0),
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let products = |w: &mut ComposedWork<_>| {
            let (mut out, mut back) = (d.outputs(), d.inputs());
            s.push_in(w, &change, &mut out);
            s.pull_in(w, &adjoint, &mut back);
            let forward = dot(&out.x, &adjoint.x) + dot(&out.y, &adjoint.y);
            let own = dot(&back.x, &change.x) + dot(&back.u, &change.u) + dot(&back.p, &change.p);
            (forward, own + 0.3 * back.h_prev - 0.4 * back.h)
        };
        let (forward, reverse) = products(&mut w);
        assert!((forward - reverse).abs() < 1e-8 * forward.abs().max(1.0));
        let mut kept = vec![0.0; s.kept()];
        if s.keep_in(&w, &mut kept) {
            let mut other = s.work();
            assert!(s.restore_in(&solved, &kept, &mut other).expect("a state"));
            assert_eq!(products(&mut other), (forward, reverse));
        }
    }
}

#[test]
fn equations_hold_at_the_step_and_have_their_derivatives() {
    for (s, x) in samples(Order::Four).into_iter().take(3) {
        let (at, x, u, p, mut y) = moving(&s, &x, false);
        let (d, mut w, mut next) = (s.dims(), s.work(), x.clone());
        s.step(&at, &x, &u, &p, &mut w, &mut next, &mut y)
            .expect("solved");
        let of = |u: &[f64], y: &[f64]| {
            let (mut r, mut to) = (vec![0.0; d.ny], x.clone());
            let (x, p) = (&x[..], &p[..]);
            let seen = KnotPoint { at, x, u, p, y };
            let mut w = s.work();
            let step = UnsolvedStep {
                start: seen,
                end: None,
            };
            s.residual(&step, &mut w, &mut r).expect("a state");
            s.advance(&seen, &mut w, &mut to).expect("a state");
            r.extend(difference(s.inner(), &next, &to));
            r
        };
        assert!(of(&u, &y).iter().all(|r| r.abs() < 1e-9));
        let structure = s.structure(false);
        let mut values = vec![0.0; structure.entries().len()];
        let seen = KnotPoint {
            at,
            x: &x,
            u: &u,
            p: &p,
            y: &y,
        };
        let step = UnsolvedStep {
            start: seen,
            end: None,
        };
        s.derivatives(&step, &structure, &mut w, &mut values)
            .expect("a state");
        pulls_are_products(&s, s.work(), &step, &structure);
        let end = End {
            from: &next,
            state: &next,
        };
        let step = UnsolvedStep {
            end: Some(end),
            ..step
        };
        pulls_are_products(&s, s.work(), &step, &s.structure(true));
        let mut r = Source::new(6);
        let (du, dy) = (r.vector(d.nu, 1.0), r.vector(d.ny, 0.1));
        let plus = |v: &[f64], d: &[f64], e: f64| -> Vec<f64> {
            v.iter().zip(d).map(|(v, d)| v + e * d).collect()
        };
        let numeric = derivative(1e-4, |e| of(&plus(&u, &du, e), &plus(&y, &dy, e)));
        let mut exact = vec![0.0; d.ny + d.nf];
        let (controls, unknowns) = (d.nf, d.nf + d.nu + d.np);
        for (value, &(row, column)) in values.iter().zip(structure.entries()) {
            let change = match column {
                c if (controls..controls + d.nu).contains(&c) => du[c - controls],
                c if c >= unknowns + d.ny => 0.0,
                c if c >= unknowns => dy[c - unknowns],
                _ => 0.0,
            };
            exact[row] += value * change;
        }
        assert_close(&exact, &numeric, 1e-6, "equations");
    }
}

/// Pulls are products with the transposed derivatives.
pub(in crate::integrator) fn pulls_are_products<S: Equations>(
    s: &S,
    mut w: S::Work,
    step: &UnsolvedStep,
    structure: &crate::dynamics::Structure,
) {
    let d = s.dims();
    let mut r = Source::new(16);
    let mut adjoint = d.outputs();
    adjoint.x = r.vector(d.nf, 1.0);
    adjoint.y = r.vector(d.ny, 1.0);
    let mut values = vec![0.0; structure.entries().len()];
    s.derivatives(step, structure, &mut w, &mut values)
        .expect("a state");
    let mut expected = vec![0.0; Column::count(&d)];
    for (value, &(row, column)) in values.iter().zip(structure.entries()) {
        let own = row.checked_sub(d.ny);
        expected[column] += value * own.map_or_else(|| adjoint.y[row], |i| adjoint.x[i]);
    }
    let (mut out, mut y, mut end) = (d.inputs(), vec![0.0; d.ny], vec![1.0; d.nf]);
    s.pull_equations(step, &adjoint, &mut w, &mut out, &mut y, &mut end)
        .expect("a state");
    let mut pulled = [out.x, out.u, out.p, y].concat();
    pulled.extend([out.h_prev, out.h]);
    pulled.extend(end);
    for (i, (a, b)) in pulled.iter().zip(&expected).enumerate() {
        let (size, column) = (b.abs().max(1.0), Column::at(&d, i));
        assert!((a - b).abs() <= 1e-9 * size, "pull by {column:?}: {a} {b}");
    }
}

#[test]
fn quantities_have_their_adjoints_by_controls_unknowns_and_intervals() {
    let equal = Order::Equal(NonZeroUsize::new(3).expect("not zero"));
    for (s, x) in samples(Order::Four).into_iter().chain(samples(equal)) {
        let (at, x, u, p, _) = moving(&s, &x, false);
        let d = s.dims();
        let y = Source::new(3).vector(d.ny, 0.5);
        let which: Vec<_> = (0..s.outputs().len()).map(QuantityId::new).collect();
        let weights = Source::new(8).vector(which.len(), 1.0);
        let value = |at: Knot, u: &[f64], y: &[f64]| {
            let mut out = vec![0.0; which.len()];
            let (x, p) = (&x[..], &p[..]);
            s.observe_in(
                &KnotPoint { at, x, u, p, y },
                &which,
                &mut s.work(),
                &mut out,
            )
            .expect("a state");
            vec![out.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>()]
        };
        let (mut w, mut out) = (s.work(), vec![0.0; which.len()]);
        let seen = KnotPoint {
            at,
            x: &x,
            u: &u,
            p: &p,
            y: &y,
        };
        s.observe_in(&seen, &which, &mut w, &mut out)
            .expect("a state");
        let (mut back, mut back_y) = (d.inputs(), vec![0.0; d.ny]);
        s.observe_pull_in(&seen, &which, &mut w, &weights, &mut back, &mut back_y);
        let mut r = Source::new(9);
        let (du, dy) = (r.vector(d.nu, 1.0), r.vector(d.ny, 1.0));
        for (h_prev, h) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)] {
            let alone = h_prev + h > 0.0;
            let scale = if alone { 0.0 } else { 1.0 };
            let numeric = derivative(1e-5, |e| {
                let plus = |v: &[f64], d: &[f64]| -> Vec<f64> {
                    v.iter().zip(d).map(|(v, d)| v + scale * e * d).collect()
                };
                let at = Knot {
                    h_prev: at.h_prev + e * h_prev,
                    h: at.h + e * h,
                    ..at
                };
                value(at, &plus(&u, &du), &plus(&y, &dy))
            });
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let along = scale * (dot(&back.u, &du) + dot(&back_y, &dy));
            let exact = along + back.h_prev * h_prev + back.h * h;
            assert_close(&[exact], &numeric, 2e-7, "quantities");
        }
    }
}

#[test]
fn the_energy_balance_is_of_the_composition_s_order() {
    let m = || {
        double_pendulum()
            .joint(
                "elbow",
                JointSpec::new(JointKind::Revolute, "lower")
                    .parent("upper")
                    .axis([0.0, 1.0, 0.0])
                    .anchors([0.0, 0.0, -0.5], [0.0, 0.0, 0.5])
                    .damping(0.1),
            )
            .actuator("motor", ActuatorSpec::joint("shoulder"))
    };
    let q = [1.2, -0.4];
    for (order, least) in [(Order::Four, 12.0), (Order::Six, 40.0)] {
        let error = |h: f64| {
            let s = composed(m(), &q, order);
            let x0 = s.start(&q, &[0.5, -1.0], &[true; 2]).expect("a tree");
            let t = rolled(&s, &x0, &[0.8], h, 1.6);
            let b = balance(&s, &t, &mut s.work()).expect("read");
            let n = t.steps();
            assert!(b.dampers[n] < -0.01 && b.actuators[n].abs() > 0.1);
            b.largest_error()
        };
        let (coarse, fine) = (error(0.04), error(0.02));
        assert!(coarse / fine > least, "{order:?}: {coarse:.1e} {fine:.1e}");
    }
}

#[test]
fn what_cannot_be_stepped_backwards_is_refused() {
    let refused = |m: MechanismBuilder, q: &[f64], what: &str| {
        let inner = Maximal::new(m.build().expect("valid"), q, Options::default());
        let e = Composed::new(inner.expect("closes"), Order::Four).expect_err(what);
        let text = format!("{} {}", e.message, e.help);
        assert!(text.contains(what) && text.contains("order 2"), "{text}");
    };
    let hinge = |m: fn(JointSpec) -> JointSpec| {
        let spec = JointSpec::new(JointKind::Revolute, "rod").axis([0.0, 1.0, 0.0]);
        let rod = BodySpec::new(1.0).shape(Shape::Box([0.1, 0.1, 1.0]));
        let m = m(spec.anchors([0.0; 3], [0.0, 0.0, 0.5]));
        MechanismBuilder::new().body("rod", rod).joint("pivot", m)
    };
    refused(
        hinge(|j| j.friction(0.1)),
        &[0.0],
        "friction of joint `pivot`",
    );
    refused(
        hinge(|j| j.limits(-1.0, 1.0)),
        &[0.0],
        "limits of joint `pivot`",
    );
    let ball = BodySpec::new(1.0)
        .shape(Shape::Sphere(0.1))
        .free()
        .contact("ball", ContactSpec::new(0.3));
    let ground = HalfSpaceSpec {
        offset: -1.0,
        ..HalfSpaceSpec::default()
    };
    let touching = MechanismBuilder::new()
        .body("ball", ball)
        .half_space("floor", ground);
    refused(touching, &[0.0; 6], "contact `");
    // d/m of the rod about its center is about 12 d; the bound is 2 * 0.75 / 0.02
    let stiff = composed(hinge(|j| j.damping(20.0)), &[0.3], Order::Four);
    let x0 = stiff.start(&[0.3], &[0.0], &[true]).expect("a tree");
    let mut t = Trajectory::new(&stiff, vec![0.02; 3], &x0);
    let e = t
        .roll(&stiff, &mut stiff.work(), &mut RolloutStats::default())
        .expect_err("too stiff");
    let text = e.to_string();
    assert!(
        text.contains("joint `pivot`") && text.contains("at most 0.75"),
        "{text}"
    );
}
