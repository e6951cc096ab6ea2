//! Divided steps: their number, their motion, their derivatives.

use super::{Divided, MOST};
use crate::dynamics::{Knot, KnotPoint, QuantityId, SolvedStep, Step, StepStats};
use crate::integrator::checks::{Against, hold, some_adjoint};
use crate::integrator::maximal::tests::{difference, displaced, systems};
use crate::integrator::{Maximal, Mechanical, Minimal, Options};
use crate::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder};
use crate::rollout::{RolloutStats, Trajectory, balance};

/// Ten 1 kg bodies on ball joints 0.2 m apart, of the moment of inertia `j`, at `angle` from hanging.
fn chain(j: f64, angle: f64) -> (Maximal, Vec<f64>) {
    let mut m = MechanismBuilder::new();
    for i in 0..10_usize {
        let parent = i.checked_sub(1).map_or("world".into(), |p| format!("b{p}"));
        let top = if i == 0 { 0.0 } else { -0.1 };
        let joint = JointSpec::new(JointKind::Spherical, &format!("b{i}"))
            .parent(&parent)
            .anchors([0.0, 0.0, top], [0.0, 0.0, 0.1]);
        m = m
            .body(&format!("b{i}"), BodySpec::new(1.0).inertia([j; 3]))
            .joint(&format!("j{i}"), joint);
    }
    let mut q = vec![0.0; 30];
    q[1] = angle;
    let s = Maximal::new(m.build().expect("valid"), &q, Options::default()).expect("a tree");
    let x = s.start(&q, &[0.0; 30], &[true; 30]).expect("a tree");
    (s, x)
}

fn hang(s: Maximal, x: &[f64], h: f64, seconds: f64) -> (f64, RolloutStats) {
    let s = Divided::new(s);
    let x = s.whole(x.to_vec());
    let mut t = Trajectory::new(&s, vec![h; (seconds / h).round() as usize], &x);
    let (mut w, mut stats) = (s.work(), RolloutStats::default());
    t.roll(&s, &mut w, &mut stats).expect("solved");
    (
        balance(&s, &t, &mut w).expect("read").largest_error(),
        stats,
    )
}

/// Of some 60 J that are in play. The number of parts follows the fastest whip, and is kept after it.
#[test]
fn chains_of_light_bodies_swing() {
    for (j, limit) in [(1e-3, 3.5), (1e-4, 14.0), (1e-5, 16.0)] {
        let (s, x) = chain(j, 1.2);
        let (error, stats) = hang(s, &x, 0.01, 4.0);
        let mean = stats.parts as f64 / stats.steps as f64;
        println!(
            "J {j:e}: energy {error:.2e} J, {mean:.2} parts, most {}",
            stats.most_parts
        );
        assert!(error < 1.0, "J {j:e}: {error:e}");
        // they are chaotic: rounding decides how fast the fastest whip is
        assert!(mean < limit && stats.most_parts < MOST, "J {j:e}: {mean}");
    }
}

/// A joint with two turns comes to half a turn where one of the parts would begin: it has other parts.
#[test]
fn parts_begin_beside_half_a_turn() {
    let joint = JointSpec::new(JointKind::Orbital, "body").axis([0.0, 0.0, 1.0]);
    let m = MechanismBuilder::new()
        .body("body", BodySpec::new(1.0).inertia([0.1, 0.2, 0.3]))
        .joint("joint", joint);
    let m = m.build().expect("a body on a joint");
    for rate in [60.0, 110.0, 200.0] {
        let spin = |start: f64| {
            let q = [start, 0.0];
            let s = Minimal::new(m.clone(), &q, Options::default()).expect("a tree");
            let x = s
                .start(&q, &[rate, 0.0], &[true; 2])
                .expect("beside half a turn");
            let s = Divided::new(s);
            let x = s.whole(x);
            let mut t = Trajectory::new(&s, vec![0.01], &x);
            let (mut w, mut stats) = (s.work(), RolloutStats::default());
            t.roll(&s, &mut w, &mut stats).expect("other parts");
            let end = t.state(1);
            (2.0 * end[1].atan2(end[0]) - start, stats.most_parts)
        };
        let (turn, parts) = spin(0.0);
        assert!(parts > 1 && parts.is_power_of_two(), "{rate}: {parts}");
        let (same, more) = spin(std::f64::consts::PI - 0.5 * turn);
        assert_eq!(more, parts + 1, "{rate}");
        let off = (same - turn).rem_euclid(2.0 * std::f64::consts::PI);
        assert!(
            off.min(2.0 * std::f64::consts::PI - off) < 0.01 * turn,
            "{rate}: {same}, {turn}"
        );
    }
}

/// What hangs at rest has modes that a linear analysis knows: plain steps are stable up to `h omega = 2`.
#[test]
fn the_fastest_swing_is_where_plain_steps_become_unstable() {
    for j in [1e-3, 1e-4, 1e-5] {
        let (s, x) = chain(j, 0.0);
        let mut w = s.work();
        let (mut next, mut y) = (x.clone(), vec![0.0; s.dims().ny]);
        let at = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h: 1e-3,
        };
        s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y)
            .expect("rests");
        let seen = |above: f64, w: &mut _| {
            let at = Knot { h_prev: 1e-3, ..at };
            let seen = KnotPoint {
                at,
                x: &next,
                u: &[],
                p: &[],
                y: &y,
            };
            // the first step's forces act for half of its interval
            s.swing(&seen, 0.5 * at.h, above, w).expect("a state").rate
        };
        let (bound, found) = (seen(f64::INFINITY, &mut w), seen(0.0, &mut w));
        // a small disturbance grows or does not
        let grows = |size: f64| {
            let h = size / found;
            let (s, x) = chain(j, 1e-6);
            let mut t = Trajectory::new(&s, vec![h; 600], &x);
            if t.roll(&s, &mut s.work(), &mut RolloutStats::default())
                .is_err()
            {
                return true;
            }
            let p = s.poses(t.state(600));
            p.iter().any(|p| p.x.x.hypot(p.x.y) > 1e-4)
        };
        println!("J {j:e}: bound {bound:.1}, found {found:.1} rad/s");
        assert!(bound > found, "J {j:e}");
        assert!(!grows(1.8), "J {j:e}: stable up to h omega = 2");
        assert!(grows(2.3), "J {j:e}: unstable from there on");
    }
}

/// Steps of a system in any number of parts, by way of the memory.
struct Forced<'a>(&'a Divided<Maximal>, usize);

impl Forced<'_> {
    fn step(&self, at: &Knot, x: &[f64], u: &[f64], p: &[f64]) -> (Vec<f64>, Vec<f64>, StepStats) {
        let (s, n) = (self.0, self.1);
        let (mut w, mut next, mut y) = (s.work(), x.to_vec(), vec![0.0; s.dims().ny]);
        let seen = KnotPoint {
            at: *at,
            x,
            u,
            p,
            y: &[],
        };
        let d = &s.inner_dims;
        let (stats, _) =
            (s.run((n, None, false), &seen, &mut w, &mut next[..d.nx])).expect("solved");
        next[d.nx] = 1.0 / n as f64;
        y[..d.ny].copy_from_slice(&w.unknowns[0]);
        y[d.ny..2 * d.ny].copy_from_slice(&w.unknowns[n - 1]);
        y[2 * d.ny] = n as f64;
        let last = Divided::<Maximal>::part(at, s.split(x).1, n, n - 1);
        y[2 * d.ny + 1] = 0.5 * (last.h_prev + last.h);
        y[2 * d.ny + 2] = 1.0;
        (next, y, stats)
    }
}

/// Two steps, of three and of two parts, and the derivatives of the second, from a state whose interval is a third.
#[test]
fn derivatives_match_differences_and_each_other() {
    for (inner, x) in systems().into_iter().take(10) {
        let loops = inner.mechanism().has_loops();
        let s = Divided::new(inner);
        let x = s.whole(x);
        let (dims, nx) = (s.dims(), s.inner_dims.nx);
        let p: Vec<f64> = s.parameters().iter().map(|p| p.value).collect();
        let names: Vec<_> = s.parameters().into_iter().map(|p| p.name).collect();
        let u = vec![0.3; dims.nu];
        let start = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h: 0.02,
        };
        let (x, ..) = Forced(&s, 3).step(&start, &x, &u, &p);
        let at = Knot {
            k: 1,
            t: 0.02,
            h_prev: 0.02,
            h: 0.016,
        };
        let two = Forced(&s, 2);
        let (next, y, stats) = two.step(&at, &x, &u, &p);
        assert_eq!((stats.parts, s.parts_after(&y)), (2, 2));
        let solved = SolvedStep {
            at,
            x: &x,
            u: &u,
            p: &p,
            y: &y,
            next: &next,
        };
        let mut adjoint = some_adjoint(&s);
        if loops {
            // idle impulses of redundant rows are not unique
            let (n, ny) = (6 * s.mechanism().bodies.len(), s.inner_dims.ny);
            adjoint.y[n..ny].fill(0.0);
            adjoint.y[ny + n..2 * ny].fill(0.0);
        }
        let against = |i: usize| {
            let name = i.checked_sub(dims.nf + dims.nu).and_then(|i| names.get(i));
            match name {
                _ if !loops => Against::Differences,
                Some(name) if name.contains("anchor") => Against::Nothing,
                _ => Against::Pull,
            }
        };
        hold(&s, &solved, &adjoint, against, 1e-8, (1e-4, 5e-7), |d| {
            let (mut at, mut u, mut p) = (at, u.clone(), p.clone());
            u.iter_mut().zip(&d.u).for_each(|(u, d)| *u += d);
            p.iter_mut().zip(&d.p).for_each(|(p, d)| *p += d);
            at.h += d.h;
            at.h_prev += d.h_prev;
            let mut moved = displaced(s.inner(), &x[..nx], &d.x);
            moved.push(x[nx]);
            let (n, y, _) = two.step(&at, &moved, &u, &p);
            let mut all = difference(s.inner(), &next[..nx], &n[..nx]);
            all.extend(y);
            all
        });
    }
}

/// Quantities at a knot, with parts of different lengths before and behind it, and their adjoints.
#[test]
fn quantities_see_the_parts_that_meet_at_the_knot() {
    let (inner, x) = systems().swap_remove(3);
    let outputs = inner.outputs().to_vec();
    let s = Divided::new(inner).with_outputs(outputs);
    let p: Vec<f64> = s.parameters().iter().map(|p| p.value).collect();
    let u = vec![0.3; s.dims().nu];
    let start = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h: 0.02,
    };
    let (x, ..) = Forced(&s, 4).step(&start, &s.whole(x), &u, &p);
    let at = Knot {
        k: 1,
        t: 0.02,
        h_prev: 0.02,
        h: 0.02,
    };
    let (_, y, _) = Forced(&s, 2).step(&at, &x, &u, &p);
    let which: Vec<QuantityId> = (0..s.outputs().len()).map(QuantityId::new).collect();
    let mut seen = vec![0.0; which.len()];
    let mut w = s.work();
    let whole = KnotPoint {
        at,
        x: &x,
        u: &u,
        p: &p,
        y: &y,
    };
    crate::dynamics::Observe::observe_in(&s, &whole, &which, &mut w, &mut seen).expect("seen");
    let n = s.inner_dims;
    let part = KnotPoint {
        at: Knot {
            h_prev: 0.005,
            h: 0.01,
            ..at
        },
        x: &x[..n.nx],
        y: &y[..n.ny],
        ..whole
    };
    let mut own = vec![0.0; which.len()];
    let inner = s.inner();
    crate::dynamics::Observe::observe_in(inner, &part, &which, &mut inner.work(), &mut own)
        .expect("seen");
    assert_eq!(seen, own);
}
