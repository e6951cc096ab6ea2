//! Held controls against closed forms, against steps that start anew at every knot, and against differences.

use super::*;
use crate::dynamics::{Column, Differentiable, Equations, Observe, QuantityId, UnsolvedStep};
use crate::integrator::composed::tests::pulls_are_products;
use crate::integrator::maximal::tests::{all_outputs, assert_close, derivative, systems};
use crate::integrator::{Choice, Maximal, Mechanical, Minimal, Options, System};
use crate::mechanism::samples::Source;
use crate::mechanism::{
    ActuatorSpec, BodySpec, Freedom, JointKind, JointSpec, MechanismBuilder, Motion, Quantity,
    Shape,
};
use crate::rollout::{RolloutStats, Trajectory, balance};

const INTERVALS: [f64; 4] = [0.02, 0.016, 0.022, 0.018];

/// Every tree of the samples, with either integrator, all numbers parameters.
fn with_trees(mut check: impl FnMut(&str, &dyn Fn() -> System)) {
    let options = Options {
        tolerance: 1e-13,
        ..Options::default()
    };
    for (i, (s, x)) in systems().into_iter().enumerate() {
        let m = s.mechanism();
        if m.has_loops() || m.actuators.is_empty() {
            continue;
        }
        let q = s.tree_coordinates(&x);
        for name in ["maximal", "minimal"] {
            let choice = Choice::new(name, None).expect("known");
            if name == "minimal" && Minimal::suits(m).is_err() {
                continue;
            }
            let make = || System::new(choice, m.clone(), &q, options).expect("a tree");
            check(&format!("tree {i}, {name}"), &make);
        }
    }
}

/// A trajectory under controls that differ from knot to knot.
fn rolled(s: &System, q: &[f64]) -> Trajectory {
    let mut r = Source::new(7);
    let x0 = s
        .start(q, &r.vector(q.len(), 0.5), &vec![true; q.len()])
        .expect("a tree");
    let mut t = Trajectory::new(s, INTERVALS.to_vec(), &x0);
    t.u = r.vector(t.u.len(), 2.0);
    t.roll(s, &mut s.work(), &mut RolloutStats::default())
        .expect("solved");
    t
}

/// Coordinates of the start.
fn start_of(s: &System) -> Vec<f64> {
    Source::new(3).vector(s.mechanism().tree_ids().len(), 0.5)
}

#[test]
fn each_interval_is_that_of_a_step_from_the_velocities_at_its_knot() {
    let mut count = 0;
    with_trees(|what, make| {
        let s = make();
        let (q, m) = (start_of(&s), s.mechanism());
        let turns = |j: &crate::mechanism::Joint| {
            let each = j.directions.iter();
            each.filter(|d| d.freedom == Freedom::Turn).count()
        };
        if m.joints.iter().any(|j| turns(j) == 2) {
            // a start takes other rates of joints with two turns than quantities tell
            return;
        }
        let rates = (m.coordinates()).map(|(joint, direction)| Quantity::Rate { joint, direction });
        let outputs: Vec<_> = rates.collect();
        let which: Vec<_> = (0..outputs.len()).map(QuantityId::new).collect();
        let s = make().with_outputs(outputs);
        let t = rolled(&s, &q);
        let mut w = s.work();
        for k in 1..t.steps() {
            let at = t.knot(k);
            let mut rates = vec![0.0; which.len()];
            s.observe_in(&t.knot_point(&at), &which, &mut w, &mut rates)
                .expect("a state");
            let anew = s
                .start(
                    &s.tree_coordinates(t.state(k)),
                    &rates,
                    &vec![true; rates.len()],
                )
                .expect("a tree");
            let mut one = Trajectory::new(&s, vec![at.h], &anew);
            one.u.copy_from_slice(t.control(k));
            one.roll(&s, &mut w, &mut RolloutStats::default())
                .expect("solved");
            let ends = [one.state(1), t.state(k + 1)].map(|x| s.poses(x));
            for (a, b) in ends[0].iter().zip(&ends[1]) {
                let off = (a.x - b.x).norm() + a.q.angle_to(&b.q);
                assert!(off < 1e-11, "{what}, knot {k}: {off:.1e}");
                count += 1;
            }
        }
    });
    assert!(count > 30, "{count}");
}

/// A free change of a state.
fn moved(s: &System, x: &[f64], d: &[f64]) -> Vec<f64> {
    let mut out = x.to_vec();
    assert!(s.displace(x, d, &mut out));
    out
}

fn plus(v: &[f64], d: &[f64], e: f64) -> Vec<f64> {
    v.iter().zip(d).map(|(v, d)| v + e * d).collect()
}

/// Directions of everything at once, and of the previous control and each interval alone.
fn directions(s: &System) -> Vec<Inputs> {
    let (d, mut r) = (s.dims(), Source::new(4));
    let mut all = d.inputs();
    all.x = r.vector(d.nf, 1.0);
    all.u = r.vector(d.nu, 1.0);
    all.p = r.vector(d.np, 0.1);
    (all.h_prev, all.h) = (0.3, -0.4);
    let mut previous = d.inputs();
    previous.x[d.nf - d.nu..].copy_from_slice(&r.vector(d.nu, 1.0));
    let interval = |h_prev, h| Inputs {
        h_prev,
        h,
        ..d.inputs()
    };
    vec![all, previous, interval(1.0, 0.0), interval(0.0, 1.0)]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn product(a: &Inputs, b: &Inputs) -> f64 {
    dot(&a.x, &b.x) + dot(&a.u, &b.u) + dot(&a.p, &b.p) + a.h_prev * b.h_prev + a.h * b.h
}

#[test]
fn derivatives_of_the_step_match_differences() {
    with_trees(|what, make| {
        let s = make();
        let (t, d, mut w) = (rolled(&s, &start_of(&s)), s.dims(), s.work());
        let at = t.knot(2);
        let solved = t.solved(&at);
        s.linearize_in(&solved, &mut w).expect("regular");
        let step = |c: &Inputs, e: f64| {
            let at = Knot {
                h_prev: at.h_prev + e * c.h_prev,
                h: at.h + e * c.h,
                ..at
            };
            let scaled: Vec<f64> = c.x.iter().map(|v| e * v).collect();
            let (x, u) = (moved(&s, solved.x, &scaled), plus(solved.u, &c.u, e));
            let (p, mut y) = (plus(solved.p, &c.p, e), solved.y.to_vec());
            let mut next = x.clone();
            s.step(&at, &x, &u, &p, &mut s.work(), &mut next, &mut y)
                .expect("solved");
            let mut apart = vec![0.0; d.nf];
            s.separation(solved.next, &next, &mut apart);
            apart
        };
        let mut r = Source::new(5);
        let adjoint = Outputs {
            x: r.vector(d.nf, 1.0),
            y: vec![0.0; d.ny],
        };
        let (mut pulled, mut out) = (d.inputs(), d.outputs());
        s.pull_in(&mut w, &adjoint, &mut pulled);
        for (i, c) in directions(&s).iter().enumerate() {
            s.push_in(&mut w, c, &mut out);
            let numeric = derivative(1e-4, |e| step(c, e));
            assert_close(&out.x, &numeric, 1e-7, &format!("{what}, direction {i}"));
            let (forward, reverse) = (dot(&out.x, &adjoint.x), product(&pulled, c));
            assert!(
                (forward - reverse).abs() < 1e-8 * forward.abs().max(1.0),
                "{what}, direction {i}: {forward} {reverse}"
            );
        }
    });
}

#[test]
fn linear_models_are_made_of_pushes() {
    with_trees(|what, make| {
        let s = make();
        let (t, d, mut w) = (rolled(&s, &start_of(&s)), s.dims(), s.work());
        let at = t.knot(2);
        let from = s.frame(&at, t.state(2), &t.p, None, &mut w);
        let from = from.expect("a frame");
        let to = s.frame(&t.knot(3), t.state(3), &t.p, Some(&from), &mut w);
        let to = to.expect("a frame");
        let (mut own, mut pushes) = (LinearModel::new(&d), LinearModel::new(&d));
        s.linearize_in(&t.solved(&at), &mut w).expect("regular");
        s.linear_model_in(&mut w, &from, &to, &mut own);
        crate::dynamics::model_by_pushes(&s, &mut w, &from, &to, &mut pushes);
        for (a, b) in [(own.a, pushes.a), (own.b, pushes.b), (own.p, pushes.p)] {
            let scale = b.amax().max(1.0);
            assert!(
                (&a - &b).amax() < 1e-9 * scale,
                "{what}: {}",
                (a - b).amax()
            );
        }
    });
}

#[test]
fn equations_have_their_derivatives() {
    with_trees(|what, make| {
        let s = make();
        let (t, d, mut w) = (rolled(&s, &start_of(&s)), s.dims(), s.work());
        let at = t.knot(2);
        let seen = t.knot_point(&at);
        let residual = |c: &Inputs, e: f64| {
            let at = Knot {
                h_prev: at.h_prev + e * c.h_prev,
                h: at.h + e * c.h,
                ..at
            };
            let scaled: Vec<f64> = c.x.iter().map(|v| e * v).collect();
            let (x, u, p) = (
                moved(&s, seen.x, &scaled),
                plus(seen.u, &c.u, e),
                plus(seen.p, &c.p, e),
            );
            let start = KnotPoint {
                at,
                x: &x,
                u: &u,
                p: &p,
                y: seen.y,
            };
            let (mut r, mut next) = (vec![0.0; d.ny], x.clone());
            let step = UnsolvedStep { start, end: None };
            let mut w = s.work();
            s.residual(&step, &mut w, &mut r).expect("a state");
            s.advance(&start, &mut w, &mut next).expect("a state");
            let mut apart = vec![0.0; d.nf];
            s.separation(t.state(3), &next, &mut apart);
            r.extend(apart);
            r
        };
        let step = UnsolvedStep {
            start: seen,
            end: None,
        };
        let structure = s.structure(false);
        let mut values = vec![0.0; structure.entries().len()];
        s.derivatives(&step, &structure, &mut w, &mut values)
            .expect("a state");
        for (i, c) in directions(&s).iter().enumerate() {
            let mut exact = vec![0.0; d.ny + d.nf];
            for (value, &(row, column)) in values.iter().zip(structure.entries()) {
                exact[row] += value
                    * match Column::at(&d, column) {
                        Column::State(i) => c.x[i],
                        Column::Control(i) => c.u[i],
                        Column::Parameter(i) => c.p[i],
                        Column::Before => c.h_prev,
                        Column::After => c.h,
                        Column::Unknown(_) | Column::End(_) => 0.0,
                    };
            }
            let numeric = derivative(1e-4, |e| residual(c, e));
            assert_close(&exact, &numeric, 1e-6, &format!("{what}, direction {i}"));
        }
        pulls_are_products(&s, s.work(), &step, &structure);
    });
}

#[test]
fn quantities_have_their_adjoints() {
    with_trees(|what, make| {
        let s = make();
        let nu = s.dims().nu;
        let mut outputs = all_outputs(&s);
        outputs.extend(
            (0..nu).flat_map(|i| [Quantity::ControlPower(i), Quantity::PreviousControl(i)]),
        );
        let s = s.with_outputs(outputs);
        let (t, d, mut w) = (rolled(&s, &start_of(&s)), s.dims(), s.work());
        let which: Vec<_> = (0..s.outputs().len()).map(QuantityId::new).collect();
        let at = t.knot(2);
        let seen = t.knot_point(&at);
        let values = |c: &Inputs, e: f64| {
            let at = Knot {
                h_prev: at.h_prev + e * c.h_prev,
                h: at.h + e * c.h,
                ..at
            };
            let scaled: Vec<f64> = c.x.iter().map(|v| e * v).collect();
            let (x, u, p) = (
                moved(&s, seen.x, &scaled),
                plus(seen.u, &c.u, e),
                plus(seen.p, &c.p, e),
            );
            let seen = KnotPoint {
                at,
                x: &x,
                u: &u,
                p: &p,
                y: seen.y,
            };
            let mut out = vec![0.0; which.len()];
            s.observe_in(&seen, &which, &mut s.work(), &mut out)
                .expect("a state");
            out
        };
        for (j, q) in s.outputs().iter().enumerate() {
            let mut out = vec![0.0; which.len()];
            s.observe_in(&seen, &which, &mut w, &mut out)
                .expect("a state");
            let mut weights = vec![0.0; which.len()];
            weights[j] = 1.0;
            let (mut back, mut y) = (d.inputs(), vec![0.0; d.ny]);
            s.observe_pull_in(&seen, &which, &mut w, &weights, &mut back, &mut y);
            for (i, c) in directions(&s).iter().enumerate() {
                let numeric = derivative(1e-4, |e| vec![values(c, e)[j]]);
                let exact = product(&back, c);
                assert_close(
                    &[exact],
                    &numeric,
                    1e-6,
                    &format!("{what}, {q:?}, direction {i}"),
                );
            }
        }
    });
}

/// A mass of 1 kg on a slide with a motor.
fn cart(limits: Option<f64>) -> MechanismBuilder {
    let motor = ActuatorSpec::joint("slide");
    let motor = match limits {
        Some(l) => motor.effort_limits(-l, l),
        None => motor,
    };
    MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("cart", BodySpec::new(1.0).shape(Shape::Box([0.1; 3])))
        .joint(
            "slide",
            JointSpec::new(JointKind::Prismatic, "cart").axis([1.0, 0.0, 0.0]),
        )
        .actuator("motor", motor)
}

const FORCES: [f64; 10] = [1.0, -2.0, 3.0, 0.0, 1.0, 5.0, -4.0, 2.0, 1.0, 0.0];

/// Place and velocity of the cart after the forces, each over an interval.
fn pushed(choice: Choice, m: MechanismBuilder, h: f64) -> (f64, f64, f64) {
    let s = System::new(
        choice,
        m.build().expect("valid"),
        &[0.0],
        Options::default(),
    );
    let s = s.expect("a tree");
    let x0 = s.start(&[0.0], &[0.0], &[true]).expect("a tree");
    let mut t = Trajectory::new(&s, vec![h; FORCES.len()], &x0);
    t.u.copy_from_slice(&FORCES);
    t.roll(&s, &mut s.work(), &mut RolloutStats::default())
        .expect("solved");
    let n = t.steps();
    let motion: Vec<Motion> = s
        .knot_velocities(&t.knot_point(&t.knot(n)), &mut s.work())
        .expect("read");
    let work = balance(&s, &t, &mut s.work()).expect("read").actuators[n];
    (s.poses(t.state(n))[0].x.x, motion[0].0.x, work)
}

#[test]
fn a_cart_moves_as_under_forces_that_are_held() {
    for name in ["maximal", "minimal"] {
        for substeps in ["1", "2", "4", "16", "auto"] {
            for order in [2, 4, 6] {
                if order > 2 && substeps == "auto" {
                    continue;
                }
                for limit in [None, Some(2.5)] {
                    for h in [0.1, 0.03] {
                        let substeps = crate::integrator::Substeps::named(substeps).expect("known");
                        let choice = Choice::new(name, Some(order)).expect("known");
                        let (x, v, work) = pushed(choice.in_parts(substeps), cart(limit), h);
                        let (mut place, mut speed) = (0.0, 0.0);
                        for f in FORCES {
                            let f = limit.map_or(f, |l: f64| f.clamp(-l, l));
                            place += h * speed + 0.5 * h * h * f;
                            speed += h * f;
                        }
                        // corners of effort limits are rounded over a millionth of the range
                        let tolerance = if limit.is_some() { 1e-5 } else { 1e-12 };
                        let off = [x - place, v - speed, work - 0.5 * speed * speed];
                        assert!(
                            off.iter().all(|o| o.abs() < tolerance),
                            "{name}, order {order}, {substeps:?}, {limit:?}, {h}: {off:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_system_without_controls_holds_none() {
    let m = cart(None);
    let free = MechanismBuilder {
        actuators: Default::default(),
        ..m
    };
    let s = System::new(
        Choice::new("maximal", None).expect("known"),
        free.build().expect("valid"),
        &[0.0],
        Options::default(),
    );
    assert!(s.expect("a tree").previous_controls().is_none());
    let bare = Maximal::new(
        cart(None).build().expect("valid"),
        &[0.0],
        Options::default(),
    );
    assert!(bare.expect("a tree").previous_controls().is_none());
}
