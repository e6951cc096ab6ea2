//! Quantities and their adjoints, on the sample mechanisms of the step's tests.

use super::tests::{assert_close, derivative, named, situation, system, systems};
use super::*;
use crate::dynamics::{
    Charts, Differentiable, Knot, KnotPoint, LinearModel, Observe, QuantityId, SolvedStep, Step,
};
use crate::integrator::Mechanical;
use crate::mechanism::JointKind;
use crate::mechanism::samples::{Source, four_bar, tree};
use crate::spatial::Vec3;

/// Memory in which a linear model was made, as an optimizer does before it observes the next knot.
fn modelled(s: &Maximal, at: Knot, x: &[f64], u: &[f64], mut y: Vec<f64>) -> Work {
    let (p, mut w, mut next) = (&s.nominal, s.work(), x.to_vec());
    s.step(&at, x, u, p, &mut w, &mut next, &mut y)
        .expect("a step");
    let after = Knot {
        k: at.k + 1,
        t: at.t + at.h,
        h_prev: at.h,
        h: at.h,
    };
    let from = s.frame(&at, x, p, None, &mut w).expect("a state");
    let to = s
        .frame(&after, &next, p, Some(&from), &mut w)
        .expect("a state");
    let (u, y, next) = (u, &y[..], &next[..]);
    s.linearize_in(
        &SolvedStep {
            at,
            x,
            u,
            p,
            y,
            next,
        },
        &mut w,
    )
    .expect("regular");
    let mut model = LinearModel::new(&s.dims());
    s.linear_model_in(&mut w, &from, &to, &mut model);
    w
}

/// Values along the joints, and their adjoints against differences in the joint chart; by unknowns, intervals and parameters, too.
#[test]
fn observed_quantities_have_their_adjoints() {
    for (s, x) in systems() {
        let dims = s.dims();
        for start in [true, false] {
            let (at, x, u, y) = situation(&s, &x, start);
            let mut w = modelled(&s, at, &x, &u, y);
            let which: Vec<_> = (0..s.outputs.len()).map(QuantityId::new).collect();
            let p = &s.nominal;
            // a force is a function of any unknowns
            let y = Source::new(3).vector(dims.ny, 0.5);
            let adjoint = Source::new(8).vector(which.len(), 1.0);
            let weighed = |at: Knot, x: &[f64], u: &[f64], p: &[f64], y: &[f64]| {
                let mut out = vec![0.0; which.len()];
                let seen = KnotPoint { at, x, u, p, y };
                s.observe_in(&seen, &which, &mut s.work(), &mut out)
                    .expect("a state");
                vec![out.iter().zip(&adjoint).map(|(v, a)| v * a).sum::<f64>()]
            };
            let mut out = vec![0.0; which.len()];
            let seen = KnotPoint {
                at,
                x: &x,
                u: &u,
                p,
                y: &y,
            };
            s.observe_in(&seen, &which, &mut w, &mut out)
                .expect("a state");
            let (mut back, mut back_y) = (dims.inputs(), vec![0.0; dims.ny]);
            s.observe_pull_in(&seen, &which, &mut w, &adjoint, &mut back, &mut back_y);
            let frame = s.frame(&at, &x, p, None, &mut s.work()).expect("a state");
            let mut exact: Vec<f64> = frame
                .embed()
                .tr_mul(&nalgebra::DVector::from_column_slice(&back.x))
                .as_slice()
                .to_vec();
            exact.extend(back.u.iter().chain(&back.p).chain(&back_y));
            exact.push(back.h);
            if !start {
                // before the start there is no interval
                exact.push(back.h_prev);
            }
            let controls = dims.ndx + dims.nu;
            let (parameters, unknowns) = (controls + dims.np, controls + dims.np + dims.ny);
            for (i, exact) in exact.into_iter().enumerate() {
                let name = named(&s, i, controls);
                if s.mobility.redundant_rows > 0 && name.contains("anchor") {
                    // moved alone it tears the loop open
                    continue;
                }
                let by = |e: f64| {
                    let (mut at, mut u, mut y, mut p) = (at, u.clone(), y.clone(), p.clone());
                    let (mut c, mut moved) = (vec![0.0; dims.ndx], x.clone());
                    match i {
                        i if i < dims.ndx => c[i] = e,
                        i if i < controls => u[i - dims.ndx] += e,
                        i if i < parameters => p[i - controls] += e,
                        i if i < unknowns => y[i - parameters] += e,
                        i if i == unknowns => at.h += e,
                        _ => at.h_prev += e,
                    }
                    if i < dims.ndx {
                        s.retract(&at, &x, &p, &frame, &c, &mut s.work(), &mut moved)
                            .expect("near");
                    }
                    weighed(at, &moved, &u, &p, &y)
                };
                let e = if i < unknowns { 1e-4 } else { 1e-5 };
                assert_close(
                    &[exact],
                    &derivative(e, by),
                    2e-7,
                    &format!("{i} ({name}), start {start}"),
                );
            }
        }
    }
}

/// A parameter gathers what its fields contribute.
#[test]
fn a_parameter_of_several_numbers_adds_them_up() {
    let kinds = [JointKind::Prismatic, JointKind::Cylindrical];
    let mechanism = tree(3, &kinds)
        .parameter("weight", &["bodies.b0.mass", "bodies.b1.mass"])
        .parameter("down", &["gravity.z"])
        .build()
        .expect("valid");
    let n = mechanism.tree_ids().len();
    let (s, x) = system(mechanism, vec![0.3; n], vec![0.2; n]);
    let axis = Vec3::z();
    let s = s.with_outputs(vec![
        Quantity::PotentialEnergy,
        Quantity::CenterOfMass(axis),
    ]);
    let (at, x, u, _) = situation(&s, &x, false);
    let which = [0, 1].map(QuantityId::new);
    let observe = |p: &[f64], pull: bool| {
        let (mut w, mut out, mut d) = (s.work(), vec![0.0; 2], s.dims().inputs());
        let seen = KnotPoint {
            at,
            x: &x,
            u: &u,
            p,
            y: &[],
        };
        s.observe_in(&seen, &which, &mut w, &mut out)
            .expect("a state");
        if pull {
            s.observe_pull_in(&seen, &which, &mut w, &[1.0, -0.5], &mut d, &mut []);
        }
        (vec![out[0] - 0.5 * out[1]], d.p)
    };
    let (_, exact) = observe(&s.nominal, true);
    for i in 0..2 {
        let by = |e: f64| {
            let mut p = s.nominal.clone();
            p[i] += e;
            observe(&p, false).0
        };
        assert_close(&exact[i..=i], &derivative(1e-3, by), 1e-9, "parameter");
    }
}

#[test]
fn forces_have_no_value_at_the_end_and_none_in_a_planar_loop() {
    let four = four_bar().build().expect("valid");
    let (s, x) = system(four, vec![0.4, 0.4, -0.4], vec![0.0; 3]);
    assert!(!s.has_unique_forces(0));
    let force = s
        .outputs
        .iter()
        .position(|o| o.needs().reactions)
        .map(QuantityId::new)
        .expect("there are forces");
    assert!(s.needs_unknowns(force) && !s.needs_unknowns(QuantityId::new(0)));
    let (at, x, u, _) = situation(&s, &x, false);
    let seen = KnotPoint {
        at: Knot { h: 0.0, ..at },
        x: &x,
        u: &u,
        p: &[],
        y: &[],
    };
    let e = s.observe_in(&seen, &[force], &mut s.work(), &mut [0.0]);
    let e = e.expect_err("no interval follows");
    assert!(e.to_string().contains("no value at the last knot"), "{e}");
    let beyond = QuantityId::new(s.outputs.len());
    let e = s.observe_in(&seen, &[beyond], &mut s.work(), &mut [0.0]);
    let e = e.expect_err("there is none");
    assert!(e.to_string().contains("rates of controls"), "{e}");
    let free = tree(0, &[JointKind::Revolute, JointKind::Spherical]);
    let free = free.build().expect("valid");
    assert!(!free.in_loop(0) && !free.in_loop(1));
}
