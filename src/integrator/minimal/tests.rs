//! The same motion as in maximal coordinates.

use super::Minimal;
use crate::dynamics::{Knot, Start, Step};
use crate::integrator::{Maximal, Options};
use crate::mechanism::samples::{Source, tree};
use crate::mechanism::{JointKind, MechanismBuilder};

/// A tree of these joints, with springs and dampers on half of them; the damper between points of bodies is left out.
fn mixed(seed: u64, kinds: &[JointKind]) -> MechanismBuilder {
    let mut m = tree(seed, kinds);
    m.springs["line"].damping = 0.0;
    m
}

/// Largest difference of positions, m, and of rotations after so many steps.
fn apart(m: &MechanismBuilder, q: &[f64], rates: &[f64], intervals: &[f64]) -> f64 {
    let options = Options {
        tolerance: 1e-12,
        ..Options::default()
    };
    let build = || m.build().expect("valid");
    let maximal = Maximal::new(build(), q, options).expect("a tree");
    let minimal = Minimal::new(build(), options).expect("a tree");
    let (mut a, mut b) = (maximal.work(), minimal.work());
    let (da, db) = (Step::dims(&maximal), Step::dims(&minimal));
    let (mut xa, mut xb) = (vec![0.0; da.nx], vec![0.0; db.nx]);
    let start = Start::at_rates(q, rates);
    maximal
        .initial(&start, &[], &mut a, &mut xa)
        .expect("starts");
    minimal
        .initial(&start, &[], &mut b, &mut xb)
        .expect("starts");
    let (mut ya, mut yb) = (vec![0.0; da.ny], vec![0.0; db.ny]);
    let mut s = Source::new(7);
    let (mut t, mut h_prev, mut worst) = (0.0, 0.0, 0.0_f64);
    for (k, &h) in intervals.iter().enumerate() {
        let (at, u) = (Knot { k, t, h_prev, h }, s.vector(da.nu, 1.0));
        let (mut na, mut nb) = (xa.clone(), xb.clone());
        maximal
            .step(&at, &xa, &u, &[], &mut a, &mut na, &mut ya)
            .expect("steps");
        minimal
            .step(&at, &xb, &u, &[], &mut b, &mut nb, &mut yb)
            .expect("steps");
        (xa, xb, t, h_prev) = (na, nb, t + h, h);
        for (p, q) in crate::integrator::Mechanical::poses(&maximal, &xa)
            .iter()
            .zip(minimal.poses(&xb))
        {
            worst = worst.max((p.x - q.x).amax()).max((p.r - q.r).amax());
        }
    }
    worst
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
        let n = m.build().expect("valid").tree_ids().len();
        let (q, rates) = (s.vector(n, 0.6), s.vector(n, 1.0));
        let off = apart(&m, &q, &rates, &[0.01, 0.012, 0.01]);
        if off > 1e-10 {
            eprintln!("{seed} {kinds:?}: {off:.1e}");
        }
        worst = worst.max(off);
    }
    assert!(worst < 1e-10, "{worst:.1e}");
}
