//! Gears in joint coordinates: the motion, the impulses and the optima of maximal coordinates.

use super::Minimal;
use super::samples::{MOVING, START, geared, geared_systems, made, mixed, options, values};
use crate::dynamics::{Charts, Knot, Start, Step};
use crate::integrator::maximal::tests::{assert_close, derivative, impulse_of};
use crate::integrator::{Maximal, Mechanical};
use crate::mechanism::element_samples::{Line, Rod};
use crate::mechanism::samples::{Source, tree};
use crate::mechanism::{GearSpec, JointKind, MechanismBuilder};
use crate::spatial::Vec3;
use std::sync::Arc;

/// Poses, and impulses of gears, of both integrators after some steps: how far apart they are.
fn apart(builder: &MechanismBuilder, seed: u64, intervals: &[f64]) -> (f64, f64) {
    let build = || builder.build().expect("valid");
    let n = build().tree_ids().len();
    let mut s = Source::new(seed + 40);
    let (q, rates) = (s.vector(n, 0.5), s.vector(n, 0.8));
    let minimal = Minimal::new(build(), &q, options()).expect("a tree");
    let maximal = Maximal::new(build(), &q, options()).expect("a tree");
    let (.., y, a) = made(&minimal, &q, &rates, intervals);
    let (.., z, b) = made(&maximal, &q, &rates, intervals);
    assert!(minimal.violation(&a) < 1e-12, "{}", minimal.violation(&a));
    let each = minimal.poses(&a).into_iter().zip(maximal.poses(&b));
    let poses = each.fold(0.0_f64, |m, (a, b)| {
        m.max((a.x - b.x).amax()).max((a.r - b.r).amax())
    });
    let count = minimal.gears.count();
    let own = &y[y.len() - count..];
    let impulses = own.iter().enumerate().fold(0.0_f64, |m, (g, own)| {
        m.max((own - impulse_of(&maximal, &z, g)).abs())
    });
    (poses, impulses)
}

fn random(seed: u64, most: usize) -> MechanismBuilder {
    use JointKind::{Cylindrical, Prismatic, Revolute};
    let mut s = Source::new(seed);
    let kinds: Vec<_> = (0..4 + s.below(4))
        .map(|i| match i % 2 {
            0 => [Revolute, Prismatic, Cylindrical][s.below(3)],
            _ => JointKind::ALL[s.below(16)],
        })
        .collect();
    geared(mixed(seed, &kinds), seed, most)
}

#[test]
fn geared_steps_are_those_of_maximal_coordinates() {
    let mut worst = (0.0_f64, 0.0_f64);
    for seed in 0..100 {
        let (poses, impulses) = apart(&random(seed, 1 + seed as usize % 5), seed, START);
        if poses > 1e-10 || impulses > 1e-9 {
            eprintln!("{seed}: {poses:.1e} {impulses:.1e}");
        }
        worst = (worst.0.max(poses), worst.1.max(impulses));
    }
    assert!(worst.0 < 1e-10 && worst.1 < 1e-9, "{worst:?}");
}

#[test]
fn geared_motions_are_those_of_maximal_coordinates() {
    let mut worst = (0.0_f64, 0.0_f64);
    for seed in 0..20 {
        let builder = random(seed + 500, 1 + seed as usize % 5);
        let (poses, impulses) = apart(&builder, seed, &[0.01; 100]);
        if poses > 1e-8 || impulses > 1e-8 {
            eprintln!("{seed}: {poses:.1e} {impulses:.1e}");
        }
        worst = (worst.0.max(poses), worst.1.max(impulses));
    }
    assert!(worst.0 < 1e-8 && worst.1 < 1e-8, "{worst:?}");
}

/// Retractions stay on the gears and are undone by differences; frames say how states move.
#[test]
fn charts_keep_gears_closed() {
    for (s, q, rates) in geared_systems() {
        let (d, p, mut r, mut w) = (s.dims(), values(&s), Source::new(5), s.work());
        for intervals in [START, MOVING] {
            let (at, x, ..) = made(&s, &q, &rates, intervals);
            let frame = s.frame(&at, &x, &p, None, &mut w).expect("a state");
            let change = r.vector(d.ndx, 0.2);
            let (mut to, mut back) = (x.clone(), vec![0.0; d.ndx]);
            let retract = |d: &[f64], out: &mut [f64]| {
                s.retract(&at, &x, &p, &frame, d, &mut s.work(), out)
                    .expect("near");
            };
            retract(&change, &mut to);
            assert!(s.violation(&to) < 1e-12);
            // an interval before as well
            let before = |x: &[f64], i: usize| {
                let (place, slides) = s.gears.places[i];
                let w = x[s.positions + i];
                match (at.h_prev, slides) {
                    (0.0, _) => w,
                    (h, true) => x[place] - h * w,
                    (h, false) => x[place] - 2.0 * (0.5 * h * w).asin(),
                }
            };
            for (gear, tie) in s.gears.ties.iter().enumerate() {
                let g = s.mechanism().gear(gear);
                let off = before(&to, tie.follower) - g.ratio * before(&to, tie.leader);
                let demanded = if at.h_prev == 0.0 { 0.0 } else { g.offset };
                assert!((off - demanded).abs() < 1e-12, "{off} {demanded}");
            }
            let embed = frame.embed();
            for i in 0..d.ndx {
                let numeric = derivative(1e-4, |e| {
                    let (mut d, mut to) = (vec![0.0; change.len()], x.clone());
                    d[i] = e;
                    retract(&d, &mut to);
                    let mut free = vec![0.0; s.dims().nf];
                    s.change_between(&x, &to, &mut free);
                    free
                });
                let own: Vec<f64> = embed.column(i).iter().copied().collect();
                assert_close(&own, &numeric, 1e-7, "a column");
            }
            s.difference(&at, &x, &p, &frame, &to, &mut s.work(), &mut back);
            let turns = s.joints().any(|(node, _)| node.turns == 2);
            let exact = if turns { 1e-11 } else { 1e-12 };
            assert_close(&back, &change, exact, "the way back");
        }
    }
}

/// The state at a start follows parameters of gears, as that of maximal coordinates does.
#[test]
fn starts_follow_gears() {
    for (s, q, rates) in geared_systems() {
        let (d, p) = (s.dims(), values(&s));
        for before in [0.0, 0.02] {
            let start = Start {
                coordinates: &q,
                rates: &rates,
                before,
            };
            let state = |p: &[f64]| {
                let mut x = vec![0.0; d.nx];
                s.initial(&start, p, &mut s.work(), &mut x).expect("starts");
                x
            };
            let x = state(&p);
            let by = s
                .initial_by_parameters(&start, &p, &mut s.work())
                .expect("starts");
            for i in 0..d.np {
                let numeric = derivative(1e-4, |e| {
                    let (mut p, mut out) = (p.clone(), vec![0.0; d.nf]);
                    p[i] += e;
                    s.change_between(&x, &state(&p), &mut out);
                    out
                });
                let own: Vec<f64> = by.column(i).iter().copied().collect();
                assert_close(&own, &numeric, 1e-7, &format!("parameter {i}"));
            }
        }
    }
}

/// Second order, and energy that does not drift, of a chain with a rack, unforced and undamped.
#[test]
fn geared_motions_are_of_second_order_and_keep_energy() {
    use JointKind::{Cylindrical, Prismatic, Revolute};
    let mut m = tree(12, &[Revolute, Prismatic, Cylindrical, Revolute])
        .gear("rack", GearSpec::new("j1", "j0", 0.4))
        .gear("turns", GearSpec::new("j3", "j2.angle", -1.3))
        .gear("far", GearSpec::new("j2.angle", "j0", 0.8).offset(0.1));
    m.springs["line"].damping = 0.0;
    for j in m.joints.values_mut() {
        j.damping = None;
    }
    m.actuators.clear();
    let m = m.build().expect("valid");
    let mut r = Source::new(2);
    let n = m.tree_ids().len();
    let (q, rates) = (r.vector(n, 0.4), r.vector(n, 0.6));
    let s = Minimal::new(m, &q, options()).expect("a tree");
    let end = |steps: usize| {
        let intervals = vec![0.4 / steps as f64; steps];
        let (.., x) = made(&s, &q, &rates, &intervals);
        s.poses(&x)
    };
    let exact = end(1600);
    let off = |steps: usize| {
        let each = end(steps).into_iter().zip(&exact);
        each.fold(0.0_f64, |m, (a, b)| m.max((a.x - b.x).amax()))
    };
    let order = (off(25) / off(100)).log2() / 2.0;
    assert!((order - 2.0).abs() < 0.1, "{order}");
    // at knots, over twenty seconds
    let (d, h, mut w) = (s.dims(), 0.01, s.work());
    let (mut x, mut next, mut y) = (vec![0.0; d.nx], vec![0.0; d.nx], vec![0.0; d.ny]);
    s.initial(&Start::at_rates(&q, &rates), &[], &mut w, &mut x)
        .expect("starts");
    let (mut first, mut late) = (vec![], vec![]);
    for k in 0..2000 {
        let at = Knot {
            k,
            t: h * k as f64,
            h_prev: if k > 0 { h } else { 0.0 },
            h,
        };
        s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y)
            .expect("steps");
        x.copy_from_slice(&next);
        let seen = crate::dynamics::KnotPoint {
            at: Knot {
                k: k + 1,
                t: at.t + h,
                h_prev: h,
                h: 0.0,
            },
            x: &x,
            u: &[],
            p: &[],
            y: &[],
        };
        let motion = s.knot_velocities(&seen, &mut w).expect("a state");
        let m = s.mechanism();
        let rates = m.tree_rates(&s.poses(&x), &motion);
        for (gear, tie) in s.gears.ties.iter().enumerate() {
            let off = rates[tie.follower] - m.gear(gear).ratio * rates[tie.leader];
            assert!(off.abs() < 1e-9, "{off}");
        }
        let stored = m.stored_energy(&s.poses(&x), |j| s.winding_angle(&x, j));
        let e = stored + m.kinetic_energy(&motion);
        if k < 500 { &mut first } else { &mut late }.push(e);
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let spread = first
        .iter()
        .fold(0.0_f64, |m, e| m.max((e - mean(&first)).abs()));
    let drift = (mean(&late[1000..]) - mean(&first)).abs();
    assert!(
        spread < 0.02 && drift < 0.2 * spread,
        "{drift:.1e} {spread:.1e}"
    );
}

/// A cycle of gears is refused by name; users' constraints are, too.
#[test]
fn redundant_gears_are_named() {
    let chain = || mixed(1, &[JointKind::Revolute; 4]);
    let build = |m: MechanismBuilder| Minimal::new(m.build().expect("valid"), &[0.0; 4], options());
    let tied = chain()
        .gear("a", GearSpec::new("j1", "j0", 2.0))
        .gear("b", GearSpec::new("j2", "j1", 3.0));
    assert!(build(tied.clone()).is_ok());
    assert!(Minimal::suits(&tied.clone().build().expect("valid")).is_ok());
    let line = Line(Vec3::new(0.1, 0.2, 0.0), Vec3::new(0.0, 0.3, 0.1));
    let rod = chain().constraint("rod", &["b0", "b2"], Arc::new(Rod(line, 1.2)));
    let e = build(rod).expect_err("refused");
    assert_eq!(e.path.last().map(String::as_str), Some("rod"));
    let e = build(tied.gear("c", GearSpec::new("j2", "j0", 6.0))).expect_err("refused");
    assert_eq!(e.path, ["gears", "c"]);
    assert!(e.help.contains("maximal"), "{e:?}");
}
