//! Split steps: closed forms of bouncing balls, derivatives of every kind, what strikes together, and how splitting ends.

use super::{Aligned, MOST, PIECES, TOUCHING};
use crate::dynamics::{
    Differentiable, Dual, Inputs, Knot, KnotPoint, Observe, QuantityId, Real, SolvedStep, Step,
    StepStats,
};
use crate::integrator::checks::{Against, hold, some_adjoint};
use crate::integrator::maximal::tests::{all_outputs, difference, displaced, tuned};
use crate::integrator::{Divided, Maximal, Mechanical, Options};
use crate::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder,
    Shape,
};
use crate::rollout::{RolloutStats, Trajectory, balance};

const G: f64 = 9.81;
const RADIUS: f64 = 0.1;

fn ball(restitution: f64) -> MechanismBuilder {
    let body = BodySpec::new(1.3)
        .shape(Shape::Sphere(RADIUS))
        .contact("skin", ContactSpec::new(0.4).restitution(restitution))
        .free();
    MechanismBuilder::new()
        .gravity([0.0, 0.0, -G])
        .half_space("floor", HalfSpaceSpec::default())
        .body("ball", body)
}

fn aligned(b: &MechanismBuilder, q: &[f64], rates: &[f64]) -> (Aligned<Maximal>, Vec<f64>) {
    let s = Maximal::new(b.build().expect("valid"), q, Options::default()).expect("a tree");
    let s = Aligned::new(s);
    let x = s.start(q, rates, &vec![true; q.len()]).expect("a tree");
    (s, x)
}

/// Steps of a system, one after another.
struct Walk<'a> {
    s: &'a Aligned<Maximal>,
    at: Knot,
    x: Vec<f64>,
    u: Vec<f64>,
    p: Vec<f64>,
    y: Vec<f64>,
}

impl<'a> Walk<'a> {
    fn new(s: &'a Aligned<Maximal>, x: &[f64], h: f64) -> Self {
        Self {
            at: Knot {
                k: 0,
                t: 0.0,
                h_prev: 0.0,
                h,
            },
            x: x.to_vec(),
            u: vec![0.3; s.dims().nu],
            p: s.parameters().iter().map(|p| p.value).collect(),
            y: vec![0.0; s.dims().ny],
            s,
        }
    }

    fn solve(&self, at: &Knot, x: &[f64], u: &[f64], p: &[f64]) -> (Vec<f64>, Vec<f64>, StepStats) {
        let (mut next, mut y) = (x.to_vec(), self.y.clone());
        let done = (self.s).step(at, x, u, p, &mut self.s.work(), &mut next, &mut y);
        let stats = done.unwrap_or_else(|e| panic!("{e}"));
        (next, y, stats)
    }

    /// Goes on; the number of pieces of the step.
    fn step(&mut self) -> usize {
        let (next, y, stats) = self.solve(&self.at, &self.x, &self.u, &self.p);
        (self.x, self.y) = (next, y);
        self.at = Knot {
            k: self.at.k + 1,
            t: self.at.t + self.at.h,
            h_prev: self.at.h,
            h: self.at.h,
        };
        stats.parts
    }

    /// Stops before the step that has so many pieces.
    fn until(&mut self, pieces: usize) -> bool {
        for _ in 0..300 {
            if self.solve(&self.at, &self.x, &self.u, &self.p).2.parts == pieces {
                return true;
            }
            self.step();
        }
        false
    }

    /// Holds the derivatives of the step to come.
    fn hold(&self, what: &str) {
        let s = self.s;
        let (next, y, stats) = self.solve(&self.at, &self.x, &self.u, &self.p);
        println!("{what}: step {}, {} pieces", self.at.k, stats.parts);
        let solved = SolvedStep {
            at: self.at,
            x: &self.x,
            u: &self.u,
            p: &self.p,
            y: &y,
            next: &next,
        };
        // not of the unknowns of contacts, which are stiff, the more so the shorter a piece is: the inner steps' tests have them
        let mut adjoint = some_adjoint(s);
        for piece in adjoint.y.chunks_exact_mut(s.inner_dims.ny).take(PIECES) {
            piece[s.inner().symbolic().dim()..].fill(0.0);
        }
        // impulses of stiff contacts have few digits
        let exact = 1e-5;
        hold(
            s,
            &solved,
            &adjoint,
            |_| Against::Differences,
            exact,
            (1e-5, 2e-6),
            |d: &Inputs| {
                let sum = |a: &[f64], d: &[f64]| -> Vec<f64> {
                    a.iter().zip(d).map(|(a, d)| a + d).collect()
                };
                let x = displaced(s.inner(), &self.x, &d.x);
                let (mut at, u, p) = (self.at, sum(&self.u, &d.u), sum(&self.p, &d.p));
                at.h += d.h;
                at.h_prev += d.h_prev;
                let (n, own, own_stats) = self.solve(&at, &x, &u, &p);
                assert_eq!(own_stats.parts, stats.parts);
                let mut all = difference(s.inner(), &next, &n);
                all.extend(own);
                all
            },
        );
    }
}

/// Height above rest of a ball that was thrown, after so many bounces.
fn height<T: Real>(z: T, v: T, e: f64, t: f64, bounces: usize) -> T {
    let mut speed = (v * v + z * (2.0 * G)).sqrt();
    let mut since = -((speed + v) / G) + t;
    for i in 0..bounces {
        speed = speed * e;
        if i + 1 < bounces {
            since -= speed * (2.0 / G);
        }
    }
    speed * since - since * since * (0.5 * G)
}

#[test]
fn balls_bounce_as_in_the_closed_form_and_so_do_their_derivatives() {
    for (e, seconds) in [(0.5_f64, 1.22_f64), (1.0, 2.6)] {
        for h in [0.01_f64, 0.001] {
            let (z, v) = (1.0, 0.1);
            let mut q = [0.0; 6];
            q[2] = z + RADIUS;
            let (s, x) = aligned(&ball(e), &q, &[0.0, 0.0, v, 0.0, 0.0, 0.0]);
            let steps = (seconds / h).round() as usize;
            let mut walk = Walk::new(&s, &x, h);
            // by height and by speed
            let (mut by, mut out) = ([s.dims().inputs(), s.dims().inputs()], s.dims().outputs());
            (by[0].x[2], by[1].x[8]) = (1.0, 1.0);
            let (mut w, mut bounces) = (s.work(), 0);
            for _ in 0..steps {
                let (at, x) = (walk.at, walk.x.clone());
                bounces += walk.step() - 1;
                let solved = SolvedStep {
                    at,
                    x: &x,
                    u: &[],
                    p: &[],
                    y: &walk.y,
                    next: &walk.x,
                };
                s.linearize_in(&solved, &mut w).expect("regular");
                for d in &mut by {
                    s.push_in(&mut w, d, &mut out);
                    d.x.copy_from_slice(&out.x);
                }
            }
            assert_eq!(bounces, 3);
            let exact = height(
                Dual::<f64, 2>::variable(z, 0),
                Dual::variable(v, 1),
                e,
                steps as f64 * h,
                3,
            );
            let found = [walk.x[2] - RADIUS, by[0].x[2], by[1].x[2]];
            let off = [
                exact.value - found[0],
                exact.by[0] - found[1],
                exact.by[1] - found[2],
            ];
            println!("e {e}, h {h}: {found:?}, off by {off:?}");
            assert!(off.iter().all(|o| o.abs() < 1e-9), "{off:?}");
        }
    }
}

/// Two links with friction in the upper hinge; the end of the lower one hits the floor.
fn arm() -> MechanismBuilder {
    let tip = ContactSpec::new(0.3)
        .shape(Shape::Sphere(0.05))
        .at([0.0, 0.02, -0.3])
        .restitution(0.6);
    let link = |mass: f64| BodySpec::new(mass).shape(Shape::Box([0.1, 0.12, 0.6]));
    let hinge = |child: &str, top: f64| {
        JointSpec::new(JointKind::Revolute, child)
            .axis([0.1, 1.0, 0.0])
            .anchors([0.0, 0.0, top], [0.0, 0.0, 0.3])
            .damping(0.05)
    };
    MechanismBuilder::new()
        .body("upper", link(1.0))
        .body("lower", link(0.7).contact("tip", tip))
        .joint("shoulder", hinge("upper", 1.0).friction(0.2))
        .joint("elbow", hinge("lower", -0.3).parent("upper"))
        .half_space("floor", HalfSpaceSpec::default())
}

/// A slider that hits its upper stop, and a hinge on it.
fn machine() -> MechanismBuilder {
    let body = |mass: f64| BodySpec::new(mass).shape(Shape::Box([0.2, 0.1, 0.3]));
    MechanismBuilder::new()
        .body("cart", body(1.0))
        .body("flap", body(0.4))
        .joint(
            "rail",
            JointSpec::new(JointKind::Prismatic, "cart")
                .axis([1.0, 0.0, 0.2])
                .limits(-0.2, 0.3)
                .restitution(0.7),
        )
        .joint(
            "hinge",
            JointSpec::new(JointKind::Revolute, "flap")
                .parent("cart")
                .axis([0.0, 1.0, 0.0])
                .anchors([0.05, 0.0, 0.1], [0.0, 0.0, 0.2])
                .limits(-0.6, 0.8)
                .restitution(0.5),
        )
        .actuator("motor", ActuatorSpec::joint("rail"))
}

/// A door between stops, without gravity.
fn door() -> MechanismBuilder {
    let door = BodySpec::new(2.0).shape(Shape::Box([0.8, 0.04, 1.0]));
    let hinge = JointSpec::new(JointKind::Revolute, "door")
        .axis([0.0, 0.0, 1.0])
        .limits(-0.05, 0.05)
        .restitution(0.9);
    MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("door", door)
        .joint("hinge", hinge)
}

/// A ball that flies, spins and slides, onto a box that lies on the floor.
fn drop() -> MechanismBuilder {
    let block = BodySpec::new(5.0)
        .shape(Shape::Box([0.8, 0.7, 0.3]))
        .contact("hull", ContactSpec::new(0.5))
        .free();
    ball(0.6).body("block", block)
}

/// Of steps that are split once and more often, of those that start anew behind them, and of those before; every number of
/// the mechanism is a parameter.
#[test]
fn derivatives_match_differences_and_each_other() {
    let walks =
        |what: &str, b: MechanismBuilder, q: &[f64], rates: &[f64], h: f64, pieces: &[usize]| {
            let m = tuned(b);
            let s = Aligned::new(Maximal::new(m, q, Options::default()).expect("a tree"));
            let x = s.start(q, rates, &vec![true; q.len()]).expect("a tree");
            let mut walk = Walk::new(&s, &x, h);
            walk.hold(what);
            for n in pieces {
                assert!(walk.until(*n), "{what}: no step of {n} pieces");
                walk.hold(what);
                walk.step();
                walk.hold(what);
            }
        };
    let (q, v) = (
        [0.1, 0.0, 0.4, 0.3, 0.2, 0.1],
        [1.0, 0.3, -0.5, 2.0, -3.0, 4.0],
    );
    walks("ball", ball(0.6), &q, &v, 0.01, &[2, 2]);
    walks("arm", arm(), &[0.3, 0.9], &[1.0, 2.0], 0.01, &[2, 2]);
    walks("stops", machine(), &[0.1, 0.2], &[2.0, 3.0], 0.02, &[2, 2]);
    walks("door", door(), &[0.0], &[6.0], 0.03, &[3]);
    let q = [0.1, 0.0, 0.83, 0.3, 0.2, 0.1, 0.0, 0.0, 0.15, 0.0, 0.0, 0.0];
    let v = [0.5, 0.3, -0.5, 2.0, -3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    walks("block", drop(), &q, &v, 0.01, &[2]);
}

/// What is at the floor at one instant bounces at that instant.
#[test]
fn what_meets_at_one_instant_strikes_in_one_blow() {
    let mut b = MechanismBuilder::new().half_space("floor", HalfSpaceSpec::default());
    for (i, e) in [0.5, 0.8, 0.5].into_iter().enumerate() {
        let body = BodySpec::new(1.0 + i as f64)
            .shape(Shape::Sphere(RADIUS))
            .contact("skin", ContactSpec::new(0.1).restitution(e))
            .free();
        b = b.body(&format!("ball{i}"), body);
    }
    let mut q = [0.0; 18];
    for i in 0..3 {
        (q[6 * i], q[6 * i + 2]) = (i as f64, 0.7 + RADIUS);
    }
    let (s, x) = aligned(&b, &q, &[0.0; 18]);
    let mut walk = Walk::new(&s, &x, 0.013);
    assert!(walk.until(2));
    let fall = (2.0 * G * 0.7_f64).sqrt();
    walk.step();
    let since = walk.at.t - fall / G;
    for (i, e) in [0.5, 0.8, 0.5].into_iter().enumerate() {
        let z = walk.x[13 * i + 2] - RADIUS;
        let expected = e * fall * since - 0.5 * G * since * since;
        assert!((z - expected).abs() < 1e-12, "{i}: {z} {expected}");
    }
}

/// Bounces ever shorter: an interval is split so often and no more, then what bounced rests, on its surface.
#[test]
fn splitting_ends_and_what_bounced_rests() {
    for (e, h) in [
        (0.9, 0.05),
        (0.5, 0.05),
        (0.5, 0.01),
        (0.05, 0.01),
        (1.0, 0.02),
    ] {
        let mut q = [0.0; 6];
        q[2] = RADIUS + 0.05;
        let (s, x) = aligned(&ball(e), &q, &[0.0; 6]);
        let mut walk = Walk::new(&s, &x, h);
        let (mut most, mut highest) = (0, q[2]);
        let mut last = 0;
        for k in 0..(4.0 / h) as usize {
            let pieces = walk.step();
            most = most.max(pieces);
            assert!(pieces <= MOST + 1);
            if pieces > 1 {
                last = k;
            }
            let z = walk.x[2];
            assert!(z - RADIUS > -TOUCHING, "e {e}: {z}");
            highest = f64::max(highest, z);
        }
        let speed = walk.x[9].abs();
        println!(
            "e {e}, h {h}: {most} pieces at most, the last split at step {last}, {speed:.1e} m/s"
        );
        assert!(highest <= q[2] + 1e-12, "e {e}: rises to {highest}");
        if e < 1.0 {
            // flies 2 v/g sum e^i
            let ends = (2.0_f64 * 0.05 / G).sqrt() * (1.0 + 2.0 * e / (1.0 - e));
            assert!((last as f64 * h) <= ends + h, "e {e}: {last}");
            assert!(speed < 1e-9 && walk.x[2] - RADIUS < 1e-8, "e {e}: {speed}");
        } else {
            assert!(last as f64 * h > 3.0);
        }
    }
}

/// A ball that starts at rest on the floor rests, whatever its restitution.
#[test]
fn what_rests_does_not_bounce() {
    for e in [0.3, 1.0] {
        let mut q = [0.0; 6];
        q[2] = RADIUS;
        let (s, x) = aligned(&ball(e), &q, &[0.0; 6]);
        let mut walk = Walk::new(&s, &x, 0.01);
        for _ in 0..100 {
            assert_eq!(walk.step(), 1);
            assert!((walk.x[2] - RADIUS).abs() < 1e-9 && walk.x[9].abs() < 1e-7);
        }
    }
}

/// Work of what strikes within steps is counted, that of actuators with the velocities before a blow and behind it.
#[test]
fn the_books_balance_over_split_steps() {
    let scenes = [
        ("arm", arm(), [1.0, 0.8], [0.0, 0.0], 0.0),
        ("machine", machine(), [0.1, 0.2], [2.0, 3.0], 4.0),
    ];
    for (what, b, q, rates, force) in scenes {
        let (s, x) = aligned(&b, &q, &rates);
        let errors = [0.01, 0.005].map(|h| {
            let mut t = Trajectory::new(&s, vec![h; (1.2 / h) as usize], &x);
            let (mut w, mut stats) = (s.work(), RolloutStats::default());
            let nu = s.dims().nu;
            t.set_controls(vec![force; t.steps() * nu], nu);
            t.roll(&s, &mut w, &mut stats).expect("solved");
            let b = balance(&s, &t, &mut w).expect("read");
            let (error, work) = (b.largest_error(), b.impacts[t.steps()]);
            println!("{what}, h {h}: error {error:.2e} J, impacts {work:.3e} J");
            assert!(work < -0.1 && stats.most_parts > 1);
            error
        });
        let order = (errors[0] / errors[1]).log2();
        assert!(errors[0] < 2e-2 && order > 1.6, "{what}: {errors:?}");
    }
}

/// Steps that are divided, of steps that are split.
#[test]
fn steps_in_parts_are_split_as_well() {
    let (e, z) = (0.5, 0.6);
    let mut q = [0.0; 6];
    q[2] = z + RADIUS;
    let (s, x) = aligned(&ball(e), &q, &[0.0; 6]);
    let s = Divided::new(s);
    let mut x = x;
    x.push(1.0);
    let h = 0.01;
    let mut t = Trajectory::new(&s, vec![h; 60], &x);
    let mut stats = RolloutStats::default();
    t.roll(&s, &mut s.work(), &mut stats).expect("solved");
    let exact = height(z, 0.0, e, 0.6, 1);
    assert!((t.state(60)[2] - RADIUS - exact).abs() < 1e-11);
}

/// Forces at a knot are over the pieces that meet there, whose lengths are unknowns.
#[test]
fn quantities_see_the_pieces_that_meet_at_the_knot() {
    let (s, x) = aligned(&arm(), &[0.3, 0.9], &[1.0, 2.0]);
    let outputs = all_outputs(s.inner());
    let s = s.with_outputs(outputs);
    let mut walk = Walk::new(&s, &x, 0.01);
    assert!(walk.until(2));
    let (_, y, _) = walk.solve(&walk.at, &walk.x, &walk.u, &walk.p);
    let which: Vec<QuantityId> = (0..s.outputs().len()).map(QuantityId::new).collect();
    let adjoint: Vec<f64> = (0..which.len()).map(|i| (0.3 * i as f64).sin()).collect();
    let mut w = s.work();
    let length = s.length(0);
    let mut see = |y: &[f64]| {
        let seen = KnotPoint {
            at: walk.at,
            x: &walk.x,
            u: &walk.u,
            p: &walk.p,
            y,
        };
        let mut out = vec![0.0; which.len()];
        s.observe_in(&seen, &which, &mut w, &mut out).expect("seen");
        let (mut inputs, mut own) = (s.dims().inputs(), vec![0.0; y.len()]);
        s.observe_pull_in(&seen, &which, &mut w, &adjoint, &mut inputs, &mut own);
        let sum: f64 = out.iter().zip(&adjoint).map(|(o, a)| o * a).sum();
        assert_eq!(inputs.h, 0.0);
        (sum, own[length])
    };
    let (_, pulled) = see(&y);
    let e = 1e-6;
    let mut at = |e: f64| {
        let mut y = y.clone();
        y[length] += e;
        see(&y).0
    };
    let by = (at(e) - at(-e)) / (2.0 * e);
    assert!(
        by.abs() > 1.0 && (by - pulled).abs() < 1e-6 * by.abs(),
        "{by} {pulled}"
    );
}

/// What the central path moves at, rad/s.
const SLOW: f64 = 1e-4;

/// A door that beats between its stops more often within an interval than it is split.
#[test]
fn an_interval_is_split_so_often_and_no_more() {
    let (s, x) = aligned(&door(), &[0.0], &[20.0]);
    let mut walk = Walk::new(&s, &x, 0.03);
    let mut rate = 20.0;
    for k in 0..20 {
        let pieces = walk.step();
        assert!(k > 0 || pieces == MOST + 1, "{pieces}");
        let angle = s.coordinate(&walk.x, 0, 0).abs();
        assert!(angle < 0.05 + 1e-9, "{k}: {angle}");
        let next = walk.x[12].abs();
        assert!(next <= rate + SLOW, "{k}: {next} {rate}");
        rate = next;
    }
    assert!(rate < SLOW, "it came to rest at a stop: {rate}");
}
