//! The step, its matrix and its derivatives, on random mechanisms of every kind of joint, with and without loops.

use super::tests::*;
use super::*;
use crate::dynamics::{Charts, Differentiable, KnotPoint, LinearModel, Step};
use crate::integrator::Mechanical;
use crate::mechanism::samples::Source;
use crate::mechanism::{Freedom, MechanismBuilder};
use crate::spatial::Pose;
use nalgebra::DMatrix;

#[test]
fn the_matrix_is_the_derivative_of_the_residual() {
    for (s, x) in systems() {
        for start in [true, false] {
            let (at, x, u, mut y) = situation(&s, &x, start);
            if start {
                // any unknowns will do, zeros would hide terms
                y.fill(0.1);
            }
            let back = Knot { h: -0.7 * H, ..at };
            for place in [at.step(), at.readout(), back.step()] {
                let mut w = s.work();
                s.prepare(place, &x, &u, &mut w).expect("in the domain");
                w.newton.trial.copy_from_slice(&y);
                s.evaluate(&mut w);
                s.assemble(&mut w);
                let matrix = if s.mechanism.may_be_redundant() {
                    w.matrix.original.clone()
                } else {
                    w.matrix.values.clone()
                };
                let ny = y.len();
                for i in 0..ny {
                    let mut unit = vec![0.0; ny];
                    unit[i] = 1.0;
                    let mut column = vec![0.0; ny];
                    s.symbolic.multiply(&matrix, &unit, &mut column);
                    let w = std::cell::RefCell::new(s.work());
                    let d = derivative(1e-3, |e| {
                        let w = &mut w.borrow_mut();
                        s.prepare(place, &x, &u, w).expect("in the domain");
                        w.newton.trial.copy_from_slice(&y);
                        w.newton.trial[i] += e;
                        s.evaluate(w);
                        w.newton.residual.clone()
                    });
                    assert_close(&column, &d, 1e-9, "matrix");
                }
            }
        }
    }
}

/// The free chart of a tree's step, column by column, states off the joints included.
#[test]
fn push_matches_differences_of_the_step_on_trees() {
    for (s, x) in systems()
        .into_iter()
        .filter(|(s, _)| !s.mechanism.has_loops())
    {
        for (at, x, u, _) in situations(&s, &x) {
            let dims = s.dims();
            let solve = |at: &Knot, x: &[f64], u: &[f64], p: &[f64]| {
                let (mut next, mut y) = (x.to_vec(), vec![0.0; dims.ny]);
                s.step(at, x, u, p, &mut s.work(), &mut next, &mut y)
                    .expect("solved");
                (next, y)
            };
            let (next, y) = solve(&at, &x, &u, &s.nominal);
            let mut w = s.work();
            s.linearize_in(
                &SolvedStep {
                    at,
                    x: &x,
                    u: &u,
                    p: &s.nominal,
                    y: &y,
                    next: &next,
                },
                &mut w,
            )
            .expect("regular");
            let (mut d, mut out) = (dims.inputs(), dims.outputs());
            let (controls, parameters) = (dims.nf + dims.nu, dims.nf + dims.nu + dims.np);
            for i in 0..parameters + 2 {
                d.clear();
                let by = |e: f64| {
                    let (mut at, mut u, mut c) = (at, u.clone(), vec![0.0; dims.nf]);
                    let mut p = s.nominal.clone();
                    match i {
                        i if i < dims.nf => c[i] = e,
                        i if i < controls => u[i - dims.nf] += e,
                        i if i < parameters => p[i - controls] += e,
                        i if i == parameters => at.h += e,
                        _ => at.h_prev += e,
                    }
                    let (n, y) = solve(&at, &displaced(&s, &x, &c), &u, &p);
                    let mut all = difference(&s, &next, &n);
                    all.extend(y);
                    all
                };
                match i {
                    i if i < dims.nf => d.x[i] = 1.0,
                    i if i < controls => d.u[i - dims.nf] = 1.0,
                    i if i < parameters => d.p[i - controls] = 1.0,
                    i if i == parameters => d.h = 1.0,
                    _ => d.h_prev = 1.0,
                }
                s.push_in(&mut w, &d, &mut out);
                let mut all = out.x.clone();
                all.extend(&out.y);
                assert_close(
                    &all,
                    &derivative(1e-4, by),
                    2e-7,
                    &format!("input {i} ({}), {at:?}", named(&s, i, controls)),
                );
            }
        }
    }
}

/// In the joint chart, trees and loops alike, along the manifold.
#[test]
fn the_linear_model_matches_differences_along_the_joints() {
    for (s, x) in systems() {
        for (at, x, u, y0) in situations(&s, &x) {
            let dims = s.dims();
            let p = &s.nominal;
            let solve = |x: &[f64], u: &[f64], p: &[f64]| {
                let (mut next, mut y) = (x.to_vec(), y0.clone());
                s.step(&at, x, u, p, &mut s.work(), &mut next, &mut y)
                    .expect("solved");
                (next, y)
            };
            let (next, y) = solve(&x, &u, p);
            let after = Knot {
                k: at.k + 1,
                t: at.t + at.h,
                h_prev: at.h,
                h: at.h,
            };
            let mut w = s.work();
            let frame = s.frame(&at, &x, p, None, &mut w).expect("a state");
            let frame_next = s
                .frame(&after, &next, p, Some(&frame), &mut w)
                .expect("a state");
            let identity = frame.project() * frame.embed();
            assert!((identity - nalgebra::DMatrix::identity(dims.ndx, dims.ndx)).amax() < 1e-9);
            s.linearize_in(
                &SolvedStep {
                    at,
                    x: &x,
                    u: &u,
                    p: &s.nominal,
                    y: &y,
                    next: &next,
                },
                &mut w,
            )
            .expect("regular");
            let mut model = LinearModel::new(&dims);
            s.linear_model_in(&mut w, &frame, &frame_next, &mut model);
            // trees have a way of their own
            let mut pushed = LinearModel::new(&dims);
            crate::dynamics::model_by_pushes(&s, &mut w, &frame, &frame_next, &mut pushed);
            assert_close(model.a.as_slice(), pushed.a.as_slice(), 1e-9, "by state");
            assert_close(model.b.as_slice(), pushed.b.as_slice(), 1e-9, "by control");
            assert_close(
                model.p.as_slice(),
                pushed.p.as_slice(),
                1e-9,
                "by parameters",
            );
            for i in 0..dims.ndx + dims.nu + dims.np {
                if named(&s, i, dims.ndx + dims.nu).contains("anchor") {
                    // leads off the joints as they were
                    continue;
                }
                let by = |e: f64| {
                    let (mut u, mut c, mut moved) = (u.clone(), vec![0.0; dims.ndx], x.clone());
                    let mut q = p.clone();
                    if i < dims.ndx {
                        c[i] = e;
                    } else if i < dims.ndx + dims.nu {
                        u[i - dims.ndx] += e;
                    } else {
                        q[i - dims.ndx - dims.nu] += e;
                    }
                    s.retract(&at, &x, p, &frame, &c, &mut s.work(), &mut moved)
                        .expect("near");
                    let (n, _) = solve(&moved, &u, &q);
                    let mut d = vec![0.0; dims.ndx];
                    s.difference(&after, &next, p, &frame_next, &n, &mut s.work(), &mut d);
                    d
                };
                let column = if i < dims.ndx {
                    model.a.column(i)
                } else if i < dims.ndx + dims.nu {
                    model.b.column(i - dims.ndx)
                } else {
                    model.p.column(i - dims.ndx - dims.nu)
                };
                let column: Vec<f64> = column.iter().copied().collect();
                assert_close(
                    &column,
                    &derivative(1e-4, by),
                    1e-6,
                    &format!("{i}, {at:?}"),
                );
            }
        }
    }
}

/// Knots in the other order, by negative intervals: the map is symmetric, dampers included.
#[test]
fn steps_backwards_return_to_the_start() {
    for (s, x) in systems() {
        let u = Source::new(1).vector(s.dims().nu, 0.5);
        if s.mechanism.springs.iter().any(|s| s.implicit) {
            // not the same in both directions
            continue;
        }
        let forth = [H, 0.8 * H, 1.1 * H, H];
        let back = forth.iter().rev().map(|h| -h);
        let (mut w, mut next, mut here) = (s.work(), x.clone(), x.clone());
        let mut y = vec![0.0; s.dims().ny];
        let (mut h_prev, mut t) = (0.0, 0.0);
        let mut knots = vec![];
        for (k, h) in forth.into_iter().chain(back).enumerate() {
            knots.push(here.clone());
            let at = Knot { k, t, h_prev, h };
            s.step(&at, &here, &u, &s.nominal, &mut w, &mut next, &mut y)
                .expect("solved");
            here.copy_from_slice(&next);
            (h_prev, t) = (h, t + h);
        }
        knots.push(here);
        for k in 0..4 {
            for (a, b) in s.poses(&knots[k]).iter().zip(s.poses(&knots[8 - k])) {
                let turn = crate::spatial::log(&(a.q.conjugate() * b.q));
                let off = (a.x - b.x).amax().max(turn.amax());
                assert!(off < 1e-10, "knot {k}: {off}");
            }
            let moved = difference(&s, &knots[0], &knots[4]);
            assert!(moved.iter().any(|d| d.abs() > 1e-3));
        }
    }
}

/// Contacts push only one way in time, and no step has no length.
#[test]
fn intervals_without_a_meaning_are_refused() {
    use crate::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, Shape};
    let ball = BodySpec::new(1.0).shape(Shape::Sphere(0.1)).free();
    let free = MechanismBuilder::new().body("ball", ball.clone());
    let floor = MechanismBuilder::new()
        .half_space("ground", HalfSpaceSpec::default())
        .body("ball", ball.contact("ball", ContactSpec::new(0.5)));
    for (builder, backwards) in [(free, true), (floor, false)] {
        let m = builder.build().expect("valid");
        let q = [0.0, 0.0, 0.5, 0.0, 0.0, 0.0];
        let s = Maximal::new(m, &q, Options::default()).expect("a system");
        let x = s.start(&q, &[0.1; 6], &[true; 6]).expect("a state");
        let step = |h_prev: f64, h: f64| {
            let at = Knot {
                k: 1,
                t: 0.0,
                h_prev,
                h,
            };
            let (mut next, mut y) = (x.clone(), vec![0.0; s.dims().ny]);
            s.step(&at, &x, &[], &[], &mut s.work(), &mut next, &mut y)
        };
        for (h_prev, h) in [(0.01, 0.0), (f64::NAN, 0.01), (0.01, f64::INFINITY)] {
            let e = step(h_prev, h).expect_err("no interval");
            assert_eq!(e.failure, StepFailure::Interval);
            assert!(e.message.contains("zero or not finite"), "{e}");
        }
        for (h_prev, h) in [(0.01, -0.01), (-0.01, 0.01)] {
            match step(h_prev, h) {
                Ok(_) => assert!(backwards),
                Err(e) => {
                    assert!(!backwards && e.failure == StepFailure::Interval, "{e}");
                    assert!(e.message.contains("cannot be stepped backwards"), "{e}");
                }
            }
        }
    }
}

#[test]
fn pull_is_the_transpose_of_push() {
    for (s, x) in systems() {
        let dims = s.dims();
        for (at, x, u, y0) in situations(&s, &x) {
            let (mut next, mut y, mut w) = (x.clone(), y0, s.work());
            s.step(&at, &x, &u, &s.nominal, &mut w, &mut next, &mut y)
                .expect("solved");
            s.linearize_in(
                &SolvedStep {
                    at,
                    x: &x,
                    u: &u,
                    p: &s.nominal,
                    y: &y,
                    next: &next,
                },
                &mut w,
            )
            .expect("regular");
            let mut r = Source::new(17);
            let d = Inputs {
                x: r.vector(dims.nf, 1.0),
                u: r.vector(dims.nu, 1.0),
                p: r.vector(dims.np, 1.0),
                h_prev: r.unit(),
                h: r.unit(),
            };
            let adjoint = Outputs {
                x: r.vector(dims.nf, 1.0),
                y: r.vector(dims.ny, 1.0),
            };
            let (mut out, mut back) = (dims.outputs(), dims.inputs());
            // off the joints a loop's step is not a function: only its tangents are pushed
            let d = if s.mechanism.has_loops() {
                let frame = s
                    .frame(&at, &x, &s.nominal, None, &mut s.work())
                    .expect("a state");
                let c = nalgebra::DVector::from_vec(r.vector(dims.ndx, 1.0));
                Inputs {
                    x: (frame.embed() * c).as_slice().to_vec(),
                    ..d
                }
            } else {
                d
            };
            // an anchor moved alone tears a redundant loop open
            let mut d = d;
            for (dp, p) in d.p.iter_mut().zip(&s.mechanism.parameters) {
                if s.mobility.redundant_rows > 0 && p.name.contains("anchor") {
                    *dp = 0.0;
                }
            }
            // redundant impulses are not unique and neither are their derivatives
            let adjoint = if s.mobility.redundant_rows > 0 {
                Outputs {
                    y: vec![0.0; dims.ny],
                    ..adjoint
                }
            } else {
                adjoint
            };
            s.push_in(&mut w, &d, &mut out);
            s.pull_in(&mut w, &adjoint, &mut back);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let size =
                |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>();
            let left = dot(&adjoint.x, &out.x) + dot(&adjoint.y, &out.y);
            let right = dot(&back.x, &d.x)
                + dot(&back.u, &d.u)
                + dot(&back.p, &d.p)
                + back.h * d.h
                + back.h_prev * d.h_prev;
            let scale = size(&adjoint.x, &out.x) + size(&back.x, &d.x) + size(&back.p, &d.p) + 1.0;
            assert!(
                (left - right).abs() < 1e-12 * scale,
                "{left} {right} {scale}"
            );
        }
    }
}

#[test]
fn the_readout_keeps_the_joints_and_starts_with_the_given_velocities() {
    for (s, x) in systems() {
        let at = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h: H,
        };
        let u = vec![0.7; s.dims().nu];
        let given = s.interval_velocities(&x, 0.0);
        let seen = |at, x, u| KnotPoint {
            at,
            x,
            u,
            p: &s.nominal,
            y: &[],
        };
        let read = s
            .knot_velocities(&seen(at, &x, &u), &mut s.work())
            .expect("a state");
        for ((v, w), (rv, rw)) in given.iter().zip(&read) {
            assert!((v - rv).amax().max((w - rw).amax()) < 1e-10);
        }
        let (at, x, u, _) = moving(&s, &x);
        let mut w = s.work();
        s.knot_velocities(&seen(at, &x, &u), &mut w)
            .expect("a state");
        s.evaluate(&mut w);
        let largest = w
            .newton
            .residual
            .iter()
            .fold(0.0_f64, |m, r| m.max(r.abs()));
        assert!(largest < 1e-12, "{largest}");
    }
}

/// Anchors move the start; where they tear a redundant loop open there is none.
#[test]
fn the_start_moves_with_the_anchors() {
    for (s, x) in systems() {
        let (m, dims) = (s.mechanism(), s.dims());
        let q = s.tree_coordinates(&x);
        let rates = m.tree_rates(&s.poses(&x), &s.interval_velocities(&x, 0.0));
        let from = Start::at_rates(&q, &rates);
        let start = |p: &[f64]| {
            let mut out = x.clone();
            s.initial(&from, p, &mut s.work(), &mut out).map(|()| out)
        };
        let x0 = start(&s.nominal).expect("as built");
        assert!(difference(&s, &x, &x0).iter().all(|d| d.abs() < 1e-9));
        let exact = s
            .initial_by_parameters(&from, &s.nominal, &mut s.work())
            .expect("as built");
        let mut tested = 0;
        for i in 0..dims.np {
            let moved = |e: f64| {
                let mut p = s.nominal.clone();
                p[i] += e;
                start(&p)
            };
            if [1e-4, -1e-4].iter().any(|e| moved(*e).is_err()) {
                assert!(s.mobility.redundant_rows > 0);
                continue;
            }
            tested += 1;
            let by = |e: f64| difference(&s, &x0, &moved(e).expect("closes"));
            let column: Vec<f64> = exact.column(i).iter().copied().collect();
            assert_close(&column, &derivative(1e-4, by), 1e-7, named(&s, i, 0));
        }
        assert!(tested > 30 || dims.np == 0, "{tested}");
    }
}

/// A start in motion is a knot behind which the coordinates were what the rates say an interval ago; its derivatives by
/// coordinates, rates, interval and parameters.
#[test]
fn a_start_in_motion_was_where_its_rates_say() {
    for (s, x) in systems() {
        let (m, dims) = (s.mechanism(), s.dims());
        let q = s.tree_coordinates(&x);
        let rates = m.tree_rates(&s.poses(&x), &s.interval_velocities(&x, 0.0));
        let (n, h) = (q.len(), 0.02);
        let numbers: Vec<f64> = q.iter().chain(&rates).copied().chain([h]).collect();
        let start = |v: &[f64], p: &[f64]| {
            let from = Start {
                coordinates: &v[..n],
                rates: &v[n..2 * n],
                before: v[2 * n],
            };
            let mut out = x.clone();
            let made = s.initial(&from, p, &mut s.work(), &mut out);
            made.map(|()| out)
        };
        let p = &s.nominal;
        let x0 = start(&numbers, p).expect("a start");
        // the same poses as a start at rates, and before it those of the coordinates before
        let rest = |q: &[f64]| {
            let mut out = x.clone();
            s.initial(&Start::at_rates(q, &rates), p, &mut s.work(), &mut out)
                .expect("a start");
            s.poses(&out)
        };
        // slides and angles by differences; of two and three rotations what `interval_rate` says, below
        let moved: Vec<f64> = rates.iter().map(|r| h * r).collect();
        let old = m.earlier(&q, &moved).expect("near").q;
        let velocities = s.interval_velocities(&x0, 0.0);
        let both = rest(&q).into_iter().zip(rest(&old)).zip(&velocities);
        for (((now, then), (v, w)), body) in both.zip(&m.bodies) {
            let law = &body.rotation;
            let back = law.increment(w, -h, law.scalar(w, h));
            assert!((now.x - v * h - then.x).amax() < 1e-12);
            assert!((then.q.inverse() * now.q * back).imag().amax() < 1e-12);
        }
        if !m.has_loops() {
            let new = rest(&q);
            let then = m.forward(&m.earlier(&q, &moved).expect("near").q);
            for (k, (joint, i)) in m.tree_ids().into_iter().enumerate() {
                let j = &m.joints[joint];
                let relative = |poses: &[Pose]| {
                    let (a, b) = m.ends(j, poses);
                    j.relative(a, b)
                };
                let since = j.displacement(i, &relative(&then), &relative(&new));
                assert!((since - moved[k]).abs() < 1e-13, "{} {i}", j.name);
            }
        }
        let from = Start {
            coordinates: &q,
            rates: &rates,
            before: h,
        };
        let close = |exact: &DMatrix<f64>, i: usize, by: &dyn Fn(f64) -> Vec<f64>| {
            let column: Vec<f64> = exact.column(i).iter().copied().collect();
            // loops close to 1e-10 m, and velocities are differences over an interval
            let what = format!("{i} of {n}");
            assert_close(&column, &derivative(1e-3, by), 1e-6, &what);
        };
        // what follows of a ball that a loop holds in part, follows along tangents: exact in its velocity alone
        let turns = |k: &usize| {
            let (joint, i) = m.tree_ids()[*k];
            m.joints[joint].directions[i].freedom == Freedom::Turn
        };
        if m.has_loops() && (0..n).filter(turns).any(|k| !s.held[k]) {
            continue;
        }
        let exact = s
            .initial_by_coordinates(&from, p, &mut s.work())
            .expect("a start");
        assert_eq!(exact.shape(), (dims.nf, 2 * n + 1));
        for i in 0..=2 * n {
            close(&exact, i, &|e| {
                let mut v = numbers.clone();
                v[i] += e;
                difference(&s, &x0, &start(&v, p).expect("closes"))
            });
        }
        let exact = s
            .initial_by_parameters(&from, p, &mut s.work())
            .expect("a start");
        for i in 0..dims.np {
            let moved = |e: f64| {
                let mut p = p.clone();
                p[i] += e;
                start(&numbers, &p)
            };
            if [2e-3, -2e-3].iter().all(|e| moved(*e).is_ok()) {
                close(&exact, i, &|e| {
                    difference(&s, &x0, &moved(e).expect("closes"))
                });
            }
        }
    }
}
