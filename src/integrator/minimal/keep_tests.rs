//! What is kept of linearizations, and brought back.

use super::samples::{
    MOVING, Made, START, damped_systems, geared_systems, made, mixed, options, systems, touching,
    values,
};
use super::work::Work;
use super::{Lagrangian, Minimal};
use crate::dynamics::{
    Charts, Differentiable, Inputs, Knot, LinearModel, Outputs, Parameter, SolvedStep, Step,
};
use crate::integrator::Mechanical;
use crate::mechanism::JointKind;
use crate::mechanism::samples::Source;

const UNEVEN: &[f64] = &[0.01, 0.013, 0.02];

fn solved<'a>((at, x, u, y, next): &'a Made, p: &'a [f64]) -> SolvedStep<'a> {
    let at = *at;
    SolvedStep {
        at,
        x,
        u,
        p,
        y,
        next,
    }
}

/// Everything that can be asked of a linearization, to the bit.
fn answers(s: &Minimal, made: &SolvedStep, w: &mut Work) -> Vec<u64> {
    let (d, mut r) = (s.dims(), Source::new(5));
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
    let (mut out, mut back, mut model) = (d.outputs(), d.inputs(), LinearModel::new(&d));
    s.pull_in(w, &adjoint, &mut back);
    s.push_in(w, &change, &mut out);
    let after = Knot {
        h_prev: made.at.h,
        ..made.at
    };
    let mut frames = s.work();
    let frame = s.frame(&made.at, made.x, made.p, None, &mut frames);
    let to = s.frame(&after, made.next, made.p, None, &mut frames);
    let (frame, to) = (frame.expect("a state"), to.expect("a state"));
    s.linear_model_in(w, &frame, &to, &mut model);
    let ends = [back.h_prev, back.h];
    let all = [&back.x, &back.u, &back.p, &ends[..], &out.x, &out.y];
    let models = [model.a.as_slice(), model.b.as_slice(), model.p.as_slice()];
    let all = all
        .into_iter()
        .flatten()
        .chain(models.into_iter().flatten());
    all.map(|v| v.to_bits()).collect()
}

/// Trees with and without parameters, with and without what acts between points, springs and dampers.
fn trees() -> Vec<(Minimal, Vec<f64>, Vec<f64>)> {
    let mut all = systems();
    for seed in 0..48 {
        let mut s = Source::new(seed + 900);
        let kinds: Vec<_> = (0..2 + s.below(5))
            .map(|_| JointKind::ALL[s.below(16)])
            .collect();
        let mut m = mixed(seed, &kinds);
        if seed % 2 == 1 {
            m.springs.clear();
            let point = |name: &String| name == "wrench" || name == "push";
            m.actuators.retain(|name, _| !point(name));
        }
        if seed % 4 > 1 {
            m.joints.values_mut().for_each(|j| {
                (j.stiffness, j.damping) = (None, None);
            });
        }
        let m = m.build().expect("valid");
        let n = m.tree_ids().len();
        let (q, rates) = (s.vector(n, 0.6), s.vector(n, 0.8));
        all.push((Minimal::new(m, &q, options()).expect("a tree"), q, rates));
    }
    all
}

#[test]
fn what_is_brought_back_answers_to_the_bit() {
    for (s, q, rates) in trees() {
        for of in [Lagrangian::Split, Lagrangian::Screw] {
            let s = Minimal::new(s.mechanism().clone(), &q, s.options)
                .expect("a tree")
                .with_lagrangian(of);
            let p = values(&s);
            for (intervals, before) in [(START, UNEVEN), (MOVING, START), (MOVING, UNEVEN)] {
                let step = made(&s, &q, &rates, intervals);
                let step = solved(&step, &p);
                let (mut w, mut kept) = (s.work(), vec![f64::NAN; s.kept()]);
                s.linearize_in(&step, &mut w).expect("regular");
                assert!(s.keep_in(&w, &mut kept) && !kept.is_empty());
                let fresh = answers(&s, &step, &mut w);
                // in memory of another step, with other parameters, and in new memory
                let mut other = s.work();
                let apart = made(&s, &q, &rates, before);
                let tuned: Vec<_> = p.iter().map(|p| 1.1 * p).collect();
                (s.linearize_in(&solved(&apart, &tuned), &mut other)).expect("regular");
                answers(&s, &solved(&apart, &tuned), &mut other);
                for mut w in [other, s.work()] {
                    assert!(s.restore_in(&step, &kept, &mut w).expect("a state"));
                    let mut again = vec![f64::NAN; kept.len()];
                    assert!(s.keep_in(&w, &mut again));
                    let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&again), bits(&kept));
                    assert!(answers(&s, &step, &mut w) == fresh);
                    // and again, of what answered
                    assert!(answers(&s, &step, &mut w) == fresh);
                }
            }
        }
    }
}

/// All numbers that there is room for, where no parameter makes them fewer.
#[test]
fn there_is_room_for_what_is_kept() {
    for (s, q, rates) in trees() {
        let p = values(&s);
        let step = made(&s, &q, &rates, MOVING);
        let (mut w, mut kept) = (s.work(), vec![f64::NAN; s.kept()]);
        s.linearize_in(&solved(&step, &p), &mut w).expect("regular");
        assert!(s.keep_in(&w, &mut kept));
        let spare = kept.iter().filter(|v| v.is_nan()).count();
        assert!(spare == 0 || s.dims().np > 0, "{spare}");
    }
}

#[test]
fn what_is_not_kept_is_refused() {
    let none: &[Parameter] = &[];
    let others = geared_systems().into_iter().chain(damped_systems());
    for (s, ..) in touching(1e-4, true).into_iter().chain(others) {
        assert_eq!(s.kept(), 0);
        assert!(!s.keep_in(&s.work(), &mut []));
    }
    let (s, q, rates) = trees().swap_remove(20);
    assert_eq!(s.parameters(), none);
    let step = made(&s, &q, &rates, MOVING);
    let step = solved(&step, &[]);
    let (mut w, mut kept) = (s.work(), vec![0.0; s.kept()]);
    s.linearize_in(&step, &mut w).expect("regular");
    assert!(s.keep_in(&w, &mut kept));
    s.smoothing(&mut w, 1e-3);
    assert!(!s.keep_in(&w, &mut kept));
    assert!(!s.restore_in(&step, &kept, &mut w).expect("a state"));
    s.smoothing(&mut w, 0.0);
    assert!(s.restore_in(&step, &kept, &mut w).expect("a state"));
    s.certify(&mut w);
    assert!(!s.restore_in(&step, &kept, &mut w).expect("a state"));
}
