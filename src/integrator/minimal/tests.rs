//! The same motion as in maximal coordinates, and derivatives against differences.

use super::samples::{
    MOVING, Made, START, made, mixed, of_both_lagrangians, on_ground, options, systems, trees,
    values,
};
use super::{Lagrangian, Minimal};
use crate::dynamics::{
    Charts, Column, Differentiable, Equations, Frame, Inputs, Knot, KnotPoint, Observe, QuantityId,
    SolvedStep, Start, Step, Stored, UnsolvedStep,
};
use crate::dynamics::{End, LinearModel, Outputs, model_by_pushes};
use crate::integrator::checks::{Against, hold, input, some_adjoint};
use crate::integrator::composed::tests::pulls_are_products;
use crate::integrator::maximal::tests::{assert_close, derivative};
use crate::integrator::{Maximal, Mechanical};
use crate::mechanism::samples::{Source, four_bar};
use crate::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, MechanismBuilder, PerDirection, Shape,
};

fn moved(s: &Minimal, x: &[f64], d: &[f64]) -> Vec<f64> {
    let mut out = x.to_vec();
    assert!(s.displace(x, d, &mut out));
    out
}

fn apart(s: &Minimal, x: &[f64], to: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; s.dims().nf];
    s.separation(x, to, &mut out);
    out
}

/// A rounding, of numbers of size 1.
const ULP: f64 = f64::EPSILON;
/// How often a model is made of numbers that are rounded otherwise, to see what of it is rounding.
const ROUNDED: usize = 4;
/// Two ways to the same model may be so many times as far apart as these: each takes some hundred operations a joint, where these
/// round once. Seen are 81 at most, and 35 in the eighth worst of 240.
const ROUNDINGS: f64 = 200.0;

/// What rounding may be of: the worst conditioned samples through contact use up 0.7 to 1.5 of the tolerance, with either Lagrangian.
const CONDITIONED: f64 = 2.0;

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

#[test]
fn steps_are_those_of_maximal_coordinates() {
    let mut worst = 0.0_f64;
    for seed in 0..1000 {
        let mut s = Source::new(seed);
        let kinds: Vec<_> = (0..2 + s.below(5))
            .map(|_| JointKind::ALL[s.below(16)])
            .collect();
        let m = mixed(seed, &kinds);
        let build = || m.build().expect("valid");
        let n = build().tree_ids().len();
        let (q, rates) = (s.vector(n, 0.6), s.vector(n, 1.0));
        let minimal = Minimal::new(build(), &q, options()).expect("a tree");
        let maximal = Maximal::new(build(), &q, options()).expect("a tree");
        let intervals = [0.01, 0.012, 0.01];
        let (.., a) = made(&minimal, &q, &rates, &intervals);
        let (.., b) = made(&maximal, &q, &rates, &intervals);
        let each = minimal.poses(&a).into_iter().zip(maximal.poses(&b));
        let off = each.fold(0.0_f64, |m, (a, b)| {
            m.max((a.x - b.x).amax()).max((a.r - b.r).amax())
        });
        if off > 1e-10 {
            eprintln!("{seed} {kinds:?}: {off:.1e}");
        }
        worst = worst.max(off);
    }
    assert!(worst < 1e-10, "{worst:.1e}");
}

/// Everything that can be seen at a knot, reactions among it.
#[test]
fn quantities_are_those_of_maximal_coordinates() {
    for (s, q, rates) in trees().chain(on_ground(1e-4, true)) {
        let maximal = Maximal::new(s.mechanism().clone(), &q, s.options).expect("a tree");
        let maximal = maximal.with_outputs(s.outputs().to_vec());
        for intervals in [START, MOVING] {
            fn all<S: Mechanical + Observe>(s: &S, (at, x, u, y, _): &Made) -> Vec<f64> {
                let which: Vec<_> = (0..s.outputs().len()).map(QuantityId::new).collect();
                let p = values(s);
                let mut out = vec![0.0; which.len()];
                let at = *at;
                let seen = KnotPoint { at, x, u, p: &p, y };
                s.observe_in(&seen, &which, &mut s.work(), &mut out)
                    .expect("a state");
                out
            }
            let a = all(&s, &made(&s, &q, &rates, intervals));
            let b = all(&maximal, &made(&maximal, &q, &rates, intervals));
            for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                let what = &s.outputs()[i];
                assert!((a - b).abs() < 1e-8 * b.abs().max(1.0), "{what:?}: {a} {b}");
            }
        }
    }
}

/// Motions of a second from random starts of trees of mixed joints: after a hundred steps both are where the other is.
#[test]
fn motions_are_those_of_maximal_coordinates() {
    for (s, q, rates) in trees() {
        let maximal = Maximal::new(s.mechanism().clone(), &q, s.options).expect("a tree");
        let intervals = [0.01; 100];
        let (.., a) = made(&s, &q, &rates, &intervals);
        let (.., b) = made(&maximal, &q, &rates, &intervals);
        for (a, b) in s.poses(&a).into_iter().zip(maximal.poses(&b)) {
            let off = (a.x - b.x).amax().max((a.r - b.r).amax());
            assert!(off < 1e-8, "{off:.1e}");
        }
    }
}

/// The same on the ground, at stops and with friction in joints, from impacts to rest.
#[test]
fn contacts_are_those_of_maximal_coordinates() {
    for (s, q, rates) in on_ground(1e-9, true) {
        let maximal = Maximal::new(s.mechanism().clone(), &q, s.options).expect("a tree");
        for steps in [10, 40, 100] {
            let intervals = vec![0.01; steps];
            let (.., a) = made(&s, &q, &rates, &intervals);
            let (.., b) = made(&maximal, &q, &rates, &intervals);
            for (a, b) in s.poses(&a).into_iter().zip(maximal.poses(&b)) {
                let off = (a.x - b.x).amax().max((a.r - b.r).amax());
                assert!(off < 1e-8, "{steps}: {off:.1e}");
            }
        }
    }
}

/// Pushes, pulls and differences of steps, by everything that goes in.
#[test]
fn steps_have_their_derivatives() {
    for (s, q, rates) in of_both_lagrangians() {
        let p = values(&s);
        for intervals in [START, MOVING] {
            let (at, x, u, y, next) = made(&s, &q, &rates, intervals);
            let solved = SolvedStep {
                at,
                x: &x,
                u: &u,
                p: &p,
                y: &y,
                next: &next,
            };
            let outcome = |d: &Inputs| {
                let mut at = at;
                at.h += d.h;
                at.h_prev += d.h_prev;
                let (x, u, p) = (moved(&s, &x, &d.x), sum(&u, &d.u), sum(&p, &d.p));
                let (mut to, mut y) = (x.clone(), y.clone());
                s.step(&at, &x, &u, &p, &mut s.work(), &mut to, &mut y)
                    .expect("solved");
                [apart(&s, &next, &to), y].concat()
            };
            let last = s.dims().nf + s.dims().nu + s.dims().np + 1;
            let against = |i: usize| match i == last && at.h_prev == 0.0 {
                // before the start there is no interval
                true => Against::Nothing,
                false => Against::Differences,
            };
            let adjoint = some_adjoint(&s);
            // laws of contacts bend sooner
            let (exact, differences) = match s.contacts.is_empty() {
                true => (1e-11, (1e-4, 1e-7)),
                false => (1e-9, (1e-4, 1e-6)),
            };
            let exact = exact * CONDITIONED;
            hold(&s, &solved, &adjoint, against, exact, differences, outcome);
        }
    }
}

#[test]
fn observed_quantities_have_their_adjoints() {
    for (s, q, rates) in of_both_lagrangians() {
        let (d, p) = (s.dims(), values(&s));
        for intervals in [START, MOVING] {
            let (at, x, u, y, _) = made(&s, &q, &rates, intervals);
            // a force is a function of any unknowns
            let y = sum(&y, &Source::new(3).vector(d.ny, 0.3));
            let which: Vec<_> = (0..s.outputs().len()).map(QuantityId::new).collect();
            let adjoint = Source::new(8).vector(which.len(), 1.0);
            let weighed = |at: Knot, x: &[f64], u: &[f64], p: &[f64], y: &[f64]| {
                let mut out = vec![0.0; which.len()];
                let seen = KnotPoint { at, x, u, p, y };
                s.observe_in(&seen, &which, &mut s.work(), &mut out)
                    .expect("a state");
                vec![out.iter().zip(&adjoint).map(|(v, a)| v * a).sum::<f64>()]
            };
            let (mut out, mut w) = (vec![0.0; which.len()], s.work());
            let (x, u, p, y) = (&x[..], &u[..], &p[..], &y[..]);
            let seen = KnotPoint { at, x, u, p, y };
            s.observe_in(&seen, &which, &mut w, &mut out)
                .expect("a state");
            let (mut back, mut back_y) = (d.inputs(), vec![0.0; d.ny]);
            s.observe_pull_in(&seen, &which, &mut w, &adjoint, &mut back, &mut back_y);
            let inputs = d.nf + d.nu + d.np + if at.h_prev == 0.0 { 1 } else { 2 };
            for i in 0..inputs + d.ny {
                let by = |e: f64| {
                    let (mut d, mut y, mut at) = (d.inputs(), y.to_vec(), at);
                    match i.checked_sub(inputs) {
                        Some(i) => y[i] += e,
                        None => *input(&mut d, i) = e,
                    }
                    at.h += d.h;
                    at.h_prev += d.h_prev;
                    weighed(at, &moved(&s, x, &d.x), &sum(u, &d.u), &sum(p, &d.p), &y)
                };
                let exact = match i.checked_sub(inputs) {
                    Some(i) => back_y[i],
                    None => *input(&mut back, i),
                };
                let what = format!("input {i} of {inputs}, h_prev {}", at.h_prev);
                assert_close(&[exact], &derivative(1e-5, by), 2e-7, &what);
            }
        }
    }
}

/// The unsolved equations, at unknowns that do not solve them: what the structure leaves out is zero, all else as differences have it.
#[test]
fn equations_have_their_derivatives() {
    for (s, q, rates) in of_both_lagrangians() {
        let (d, p) = (s.dims(), values(&s));
        let (at, x, u, y, next) = made(&s, &q, &rates, MOVING);
        let y = sum(&y, &Source::new(21).vector(d.ny, 0.05));
        let from = moved(&s, &next, &Source::new(5).vector(d.nf, 0.1));
        let all = |at, x: &[f64], u: &[f64], p: &[f64], y: &[f64], state: &[f64]| {
            let start = KnotPoint { at, x, u, p, y };
            let (mut w, mut rows, mut to) = (s.work(), vec![0.0; d.ny], x.to_vec());
            let end = Some(End { from: &from, state });
            s.residual(&UnsolvedStep { start, end }, &mut w, &mut rows)
                .expect("a state");
            s.advance(&start, &mut w, &mut to).expect("a state");
            rows.extend(apart(&s, &from, &to));
            rows
        };
        let start = KnotPoint {
            at,
            x: &x,
            u: &u,
            p: &p,
            y: &y,
        };
        let end = End {
            from: &from,
            state: &next,
        };
        let here = UnsolvedStep {
            start,
            end: Some(end),
        };
        let structure = s.structure(true);
        let mut values = vec![0.0; structure.entries().len()];
        s.derivatives(&here, &structure, &mut s.work(), &mut values)
            .expect("a state");
        pulls_are_products(&s, s.work(), &here, &structure);
        let mut dense = nalgebra::DMatrix::zeros(d.ny + d.nf, Column::count(&d));
        for (value, &place) in values.iter().zip(structure.entries()) {
            dense[place] = *value;
        }
        for i in 0..Column::count(&d) {
            let by = |e: f64| {
                let (mut c, mut y, mut at) = (d.inputs(), y.clone(), at);
                let mut ended = vec![0.0; d.nf];
                match Column::at(&d, i) {
                    Column::Before => at.h_prev += e,
                    Column::After => at.h += e,
                    Column::State(i) => c.x[i] = e,
                    Column::Control(i) => c.u[i] = e,
                    Column::Parameter(i) => c.p[i] = e,
                    Column::Unknown(i) => y[i] += e,
                    Column::End(i) => ended[i] = e,
                }
                let end = moved(&s, &next, &ended);
                let (x, u, p) = (moved(&s, &x, &c.x), sum(&u, &c.u), sum(&p, &c.p));
                all(at, &x, &u, &p, &y, &end)
            };
            let column: Vec<f64> = dense.column(i).iter().copied().collect();
            let what = format!("{:?}", Column::at(&d, i));
            assert_close(&column, &derivative(1e-4, by), 2e-7, &what);
        }
    }
}

/// Moves and changes are inverse to each other; changes have their derivatives, in stored numbers, too.
#[test]
fn charts_are_charts() {
    for (s, q, rates) in systems() {
        let (d, mut r, mut w) = (s.dims(), Source::new(5), s.work());
        let (at, x, ..) = made(&s, &q, &rates, MOVING);
        let change = r.vector(d.nf, 0.4);
        let to = moved(&s, &x, &change);
        assert_close(&apart(&s, &x, &to), &change, 1e-12, "the way back");
        assert!(s.violation(&to) < 1e-12);
        let frame = Frame::Identity(d.ndx);
        let by = s
            .difference_by(&at, &x, &[], &frame, &to, &mut w)
            .expect("near");
        let weights = r.vector(d.nf, 1.0);
        let mut pulled = weights.clone();
        s.pull_separation(&x, &to, &mut pulled);
        for (i, pulled) in pulled.iter().enumerate() {
            let along = |e: f64| {
                let mut c = vec![0.0; d.nf];
                c[i] = e;
                apart(&s, &x, &moved(&s, &to, &c))
            };
            let numeric = derivative(1e-4, along);
            let own: Vec<f64> = by.column(i).iter().copied().collect();
            assert_close(&own, &numeric, 1e-9, "a difference");
            let product = numeric.iter().zip(&weights).map(|(a, b)| a * b).sum();
            assert_close(&[*pulled], &[product], 1e-9, "its adjoint");
            let mut c = vec![0.0; d.nf];
            c[i] = 1.0;
            let (mut stored, mut back) = (vec![0.0; d.nx], vec![0.0; d.nx]);
            s.stored_push(&to, &c, &mut stored);
            let numeric = derivative(1e-4, |e| {
                let c: Vec<f64> = c.iter().map(|c| e * c).collect();
                moved(&s, &to, &c)
            });
            assert_close(&stored, &numeric, 1e-9, "stored numbers");
            s.stored_pull(&to, &weights, &mut back);
            let product: f64 = back.iter().zip(&stored).map(|(a, b)| a * b).sum();
            assert!(
                (product - weights[i]).abs() < 1e-12,
                "{product} {}",
                weights[i]
            );
        }
    }
}

/// A start in motion is that of maximal coordinates, with its derivatives.
#[test]
fn starts_in_motion_lead_to_where_they_came_from() {
    for (s, q, rates) in trees() {
        let (d, p) = (s.dims(), values(&s));
        let n = q.len();
        let maximal = Maximal::new(s.mechanism().clone(), &q, s.options).expect("a tree");
        for before in [0.0, 0.03] {
            let state = |q: &[f64], rates: &[f64], before: f64| {
                let (mut x, coordinates) = (vec![0.0; d.nx], q);
                let start = Start {
                    coordinates,
                    rates,
                    before,
                };
                s.initial(&start, &p, &mut s.work(), &mut x)
                    .expect("starts");
                x
            };
            let x = state(&q, &rates, before);
            let start = Start {
                coordinates: &q,
                rates: &rates,
                before,
            };
            let mut other = vec![0.0; Step::dims(&maximal).nx];
            maximal
                .initial(&start, &p, &mut maximal.work(), &mut other)
                .expect("starts");
            let own = s.interval_velocities(&x, before).into_iter();
            for ((v, w), (a, b)) in own.zip(maximal.interval_velocities(&other, before)) {
                assert!((v - a).amax() < 1e-10 && (w - b).amax() < 1e-10);
            }
            let by = s
                .initial_by_coordinates(&start, &p, &mut s.work())
                .expect("starts");
            for i in 0..2 * n + usize::from(before != 0.0) {
                let along = |e: f64| {
                    let (mut q, mut rates, mut before) = (q.clone(), rates.clone(), before);
                    match i {
                        i if i < n => q[i] += e,
                        i if i < 2 * n => rates[i - n] += e,
                        _ => before += e,
                    }
                    apart(&s, &x, &state(&q, &rates, before))
                };
                let own: Vec<f64> = by.column(i).iter().copied().collect();
                assert_close(&own, &derivative(1e-4, along), 1e-7, &format!("start {i}"));
            }
        }
    }
}

/// Gradients of all that is seen after some steps, by start, controls and parameters.
fn gradient<S: Mechanical + Observe>(s: &S, q: &[f64], rates: &[f64], steps: usize) -> Vec<f64> {
    let (d, p, h) = (s.dims(), values(s), 0.01);
    let start = Start::at_rates(q, rates);
    let (mut w, mut states, mut unknowns) = (s.work(), vec![vec![0.0; d.nx]], vec![]);
    s.initial(&start, &p, &mut w, &mut states[0])
        .expect("starts");
    let u = Source::new(4).vector(d.nu, 0.5);
    let at = |k: usize| Knot {
        k,
        t: h * k as f64,
        h_prev: if k > 0 { h } else { 0.0 },
        h,
    };
    let mut y = vec![0.0; d.ny];
    for k in 0..steps {
        let mut next = states[k].clone();
        s.step(&at(k), &states[k], &u, &p, &mut w, &mut next, &mut y)
            .expect("steps");
        states.push(next);
        unknowns.push(y.clone());
    }
    let end = Knot {
        h: 0.0,
        ..at(steps)
    };
    let needs = |i: &usize| !s.needs_unknowns(QuantityId::new(*i));
    let which: Vec<_> = (0..s.outputs().len())
        .filter(needs)
        .map(QuantityId::new)
        .collect();
    let weights = Source::new(9).vector(which.len(), 1.0);
    let seen = KnotPoint {
        at: end,
        x: &states[steps],
        u: &u,
        p: &p,
        y: &[],
    };
    let mut out = vec![0.0; which.len()];
    s.observe_in(&seen, &which, &mut w, &mut out)
        .expect("a state");
    let mut back = d.inputs();
    s.observe_pull_in(&seen, &which, &mut w, &weights, &mut back, &mut []);
    let (mut du, mut dp) = (back.u.clone(), back.p.clone());
    let mut adjoint = Outputs {
        x: back.x.clone(),
        y: vec![0.0; d.ny],
    };
    for k in (0..steps).rev() {
        let solved = SolvedStep {
            at: at(k),
            x: &states[k],
            u: &u,
            p: &p,
            y: &unknowns[k],
            next: &states[k + 1],
        };
        s.linearize_in(&solved, &mut w).expect("regular");
        s.pull_in(&mut w, &adjoint, &mut back);
        (du, dp) = (sum(&du, &back.u), sum(&dp, &back.p));
        adjoint.x.copy_from_slice(&back.x);
    }
    let by = |m: nalgebra::DMatrix<f64>| -> Vec<f64> {
        let product = m.tr_mul(&nalgebra::DVector::from_column_slice(&adjoint.x));
        product.as_slice().to_vec()
    };
    let by_start = by(s
        .initial_by_coordinates(&start, &p, &mut w)
        .expect("starts"));
    let by_parameters = by(s.initial_by_parameters(&start, &p, &mut w).expect("starts"));
    [&by_start[..2 * q.len()], &du, &sum(&dp, &by_parameters)].concat()
}

#[test]
fn gradients_are_those_of_maximal_coordinates() {
    for (s, q, rates) in trees().chain(on_ground(1e-4, true)) {
        let maximal = Maximal::new(s.mechanism().clone(), &q, s.options).expect("a tree");
        let maximal = maximal.with_outputs(s.outputs().to_vec());
        let a = gradient(&s, &q, &rates, 20);
        let b = gradient(&maximal, &q, &rates, 20);
        assert_close(&a, &b, 1e-8, "gradient");
    }
}

/// The linear model is what pushes give.
#[test]
fn models_are_made_of_pushes() {
    for (s, q, rates) in of_both_lagrangians() {
        for intervals in [START, MOVING] {
            let (d, p, mut w) = (s.dims(), values(&s), s.work());
            let (at, x, u, y, next) = made(&s, &q, &rates, intervals);
            let solved = SolvedStep {
                at,
                x: &x,
                u: &u,
                p: &p,
                y: &y,
                next: &next,
            };
            let frame = s.frame(&at, &x, &p, None, &mut w).expect("a state");
            let after = Knot { h_prev: at.h, ..at };
            let to = s.frame(&after, &next, &p, None, &mut w).expect("a state");
            let (mut a, mut b) = (LinearModel::new(&d), LinearModel::new(&d));
            let mut linear = s.linearize(&solved, &mut w).expect("regular");
            linear.linear_model(&frame, &to, &mut a);
            model_by_pushes(&s, &mut w, &frame, &to, &mut b);
            // the same with every number rounded otherwise: how much of it is rounding
            let mut source = Source::new(3);
            let mut noise = [ULP; 3];
            for _ in 0..ROUNDED {
                let mut other = |v: &[f64]| -> Vec<f64> {
                    let by = source.vector(v.len(), ULP);
                    v.iter().zip(by).map(|(v, by)| v * (1.0 + by)).collect()
                };
                let (positions, before) = x.split_at(s.positions);
                let x = [positions, &other(before)].concat();
                let (p, y) = (other(&p), other(&y));
                let solved = SolvedStep {
                    x: &x,
                    p: &p,
                    y: &y,
                    ..solved
                };
                s.linearize(&solved, &mut w).expect("regular");
                let mut c = LinearModel::new(&d);
                model_by_pushes(&s, &mut w, &frame, &to, &mut c);
                for (noise, (b, c)) in
                    noise
                        .iter_mut()
                        .zip([(&b.a, &c.a), (&b.b, &c.b), (&b.p, &c.p)])
                {
                    *noise = noise.max((b - c).amax() / b.amax().max(1.0));
                }
            }
            for (noise, (a, b)) in noise.iter().zip([(&a.a, &b.a), (&a.b, &b.b), (&a.p, &b.p)]) {
                assert_close(a.as_slice(), b.as_slice(), ROUNDINGS * noise, "model");
            }
        }
    }
}

/// What joint coordinates do not describe is refused by its name.
#[test]
fn what_it_does_not_offer_is_named() {
    let refused = |m: MechanismBuilder, q: &[f64]| {
        let e = Minimal::new(m.build().expect("valid"), q, options()).expect_err("refused");
        assert!(e.help.contains("maximal"), "{e:?}");
        e.path.join(".")
    };
    let hinge = || mixed(1, &[JointKind::Revolute, JointKind::Revolute]);
    assert!(Minimal::new(hinge().build().expect("valid"), &[0.0; 2], options()).is_ok());
    assert_eq!(refused(four_bar(), &[0.4, 0.4, -0.4]), "joints.c");
    let mut m = hinge();
    let j = &mut m.joints["j1"];
    j.friction = Some(PerDirection::All(0.1));
    *j = j.clone().limits(-1.0, 1.0);
    assert!(Minimal::new(m.build().expect("valid"), &[0.0; 2], options()).is_ok());
    m.joints["j1"].restitution = Some(PerDirection::All(0.5));
    assert_eq!(refused(m, &[0.0; 2]), "joints.j1");
    let ground = |of: ContactSpec| {
        let m = hinge().half_space("ground", HalfSpaceSpec::default());
        let shape = Shape::Sphere(0.1);
        m.body(
            "ball",
            BodySpec::new(1.0).shape(shape).free().contact("skin", of),
        )
    };
    let q = [0.0; 8];
    let bouncing = ContactSpec::new(0.1).restitution(0.5);
    assert!(refused(ground(bouncing), &q).starts_with("contacts."));
    let mut m = ground(ContactSpec::new(0.1).group("all", &["all", "ground"]));
    let other = ContactSpec::new(0.1).group("all", &["all", "ground"]);
    let ball = BodySpec::new(1.0).shape(Shape::Sphere(0.1)).free();
    m = m.body("other", ball.contact("skin", other));
    assert!(refused(m, &[0.0; 14]).starts_with("contacts."));
}

/// The fastest swing is that of maximal coordinates.
#[test]
fn swings_are_those_of_maximal_coordinates() {
    for (s, q, rates) in trees() {
        let maximal = Maximal::new(s.mechanism().clone(), &q, s.options).expect("a tree");
        fn swing<S: Mechanical>(s: &S, (at, _, u, y, next): &Made) -> crate::integrator::Swing {
            let at = Knot {
                k: at.k + 1,
                t: at.t + at.h,
                h_prev: at.h,
                h: at.h,
            };
            let p = values(s);
            let seen = KnotPoint {
                at,
                x: next,
                u,
                p: &p,
                y,
            };
            s.swing(&seen, at.h, 0.0, &mut s.work()).expect("a state")
        }
        let intervals = [0.002; 8];
        let b = swing(&maximal, &made(&maximal, &q, &rates, &intervals));
        let split = made(&s, &q, &rates, &intervals);
        let a = swing(&s, &split);
        let s = s.with_lagrangian(Lagrangian::Screw);
        let screw = made(&s, &q, &rates, &intervals);
        for a in [a, swing(&s, &screw)] {
            // of forces a step apart, and by ten power iterations from different starts
            assert!((a.rate - b.rate).abs() < 0.1 * b.rate, "{a:?} {b:?}");
            assert!((a.bound - b.bound).abs() < 0.1 * b.bound, "{a:?} {b:?}");
        }
    }
}
