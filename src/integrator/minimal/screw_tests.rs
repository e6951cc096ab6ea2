//! Motions by the discrete Lagrangian on SE(3).

use super::samples::{made, options, systems, touching, values};
use super::work::Work;
use super::{Lagrangian, Minimal};
use crate::dynamics::{Knot, KnotPoint, Observe, QuantityId, Start, Step};
use crate::integrator::{Choice, Mechanical, System};
use crate::mechanism::samples::Source;
use crate::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Needs, Quantity,
    Rotation, Shape,
};
use crate::spatial::{Pose, Vec3, exp};

const BOTH: [Lagrangian; 2] = [Lagrangian::Split, Lagrangian::Screw];

fn built(m: &MechanismBuilder, q: &[f64], of: Lagrangian) -> Minimal {
    let m = Minimal::new(m.build().expect("valid"), q, options()).expect("a tree");
    m.with_lagrangian(of)
}

fn off(a: &[Pose], b: &[Pose]) -> f64 {
    let each = a.iter().zip(b);
    each.fold(0.0, |m, (a, b)| {
        m.max((a.x - b.x).amax()).max((a.r - b.r).amax())
    })
}

/// What is seen at every knot of a motion in equal steps.
fn seen<T>(
    s: &Minimal,
    q: &[f64],
    rates: &[f64],
    (h, steps): (f64, usize),
    mut see: impl FnMut(&Knot, &[f64]) -> T,
) -> Vec<T> {
    let (d, p, mut w) = (s.dims(), values(s), s.work());
    let (mut x, mut y) = (vec![0.0; d.nx], vec![0.0; d.ny]);
    s.initial(&Start::at_rates(q, rates), &p, &mut w, &mut x)
        .expect("starts");
    let u = vec![0.0; d.nu];
    let mut next = x.clone();
    let knots = (0..steps).map(|k| {
        let at = Knot {
            k,
            t: h * k as f64,
            h_prev: if k > 0 { h } else { 0.0 },
            h,
        };
        let out = see(&at, &x);
        s.step(&at, &x, &u, &p, &mut w, &mut next, &mut y)
            .expect("steps");
        x.copy_from_slice(&next);
        out
    });
    knots.collect()
}

fn spread(e: &[f64]) -> f64 {
    e.iter().fold(0.0, |m, e| m.max(e.abs()))
}

fn mean(e: &[f64]) -> f64 {
    e.iter().sum::<f64>() / e.len() as f64
}

/// The first and the last fifth.
fn ends(e: &[f64]) -> (&[f64], &[f64]) {
    let fifth = e.len() / 5;
    (&e[..fifth], &e[e.len() - fifth..])
}

/// The kinetic energy that is read out at a knot.
fn read(s: &Minimal, at: &Knot, x: &[f64], w: &mut Work) -> f64 {
    let (u, p, y) = (&[][..], &[][..], &[][..]);
    let needs = Needs {
        velocities: true,
        ..Needs::default()
    };
    let knot = KnotPoint {
        at: *at,
        x,
        u,
        p,
        y,
    };
    s.evaluate_knot(&knot, needs, w).expect("a state");
    let each = w.knot.iter().zip(&w.trial);
    let twice = each
        .map(|(k, to)| k.mass * to.velocity.norm_squared() + to.omega.dot(&(k.inertia * to.omega)));
    0.5 * twice.sum::<f64>()
}

/// Both make the same motion, but for an error of second order.
#[test]
fn lagrangians_differ_by_second_order() {
    let apart = [0.004, 0.002].map(|h| {
        let each = systems().into_iter().map(|(s, q, rates)| {
            let intervals = vec![h; (0.2 / h) as usize];
            let (.., a) = made(&s, &q, &rates, &intervals);
            let s = s.with_lagrangian(Lagrangian::Screw);
            let (.., b) = made(&s, &q, &rates, &intervals);
            off(&s.poses(&a), &s.poses(&b))
        });
        each.sum::<f64>()
    });
    let order = (apart[0] / apart[1]).log2();
    assert!((order - 2.0).abs() < 0.1, "{order}: {apart:?}");
    assert!(apart[0] > 1e-8, "{apart:?}");
}

/// A ball that spins about where it flies moves as a screw, which steps of any length make exactly; `maximal` with its chord does not.
#[test]
fn screws_are_exact() {
    let ball = BodySpec::new(2.0)
        .shape(Shape::Sphere(0.3))
        .rotation(Rotation::Chord)
        .free();
    let m = MechanismBuilder::new().gravity([0.0; 3]).body("ball", ball);
    let axis = Vec3::new(0.3, -0.8, 0.5).normalize();
    // turned about the axis that it turns about
    let q = [[0.1, 0.2, -0.3], (axis * 0.7).into()].concat();
    let (v, w) = (axis * 1.3, axis * 1.8);
    let rates = [v.as_slice(), w.as_slice()].concat();
    let intervals = [0.5, 0.1, 0.37, 0.5, 0.42];
    let errors = BOTH.map(|of| {
        let system = built(&m, &q, of);
        let x0 = system.start(&q, &[0.0; 6], &[]).expect("a state");
        let from = system.poses(&x0)[0];
        let (.., x) = made(&system, &q, &rates, &intervals);
        let t: f64 = intervals.iter().sum();
        let to = Pose::new(from.x + v * t, exp(&(w * t)) * from.q);
        off(&system.poses(&x), &[to])
    });
    println!("{errors:?}");
    assert!(errors[0] > 1e-2, "{errors:?}");
    assert!(errors[1] < 1e-12, "{errors:?}");
}

/// A tree that floats: linear and angular momentum stay, and the energy nearly.
#[test]
fn floating_trees_keep_their_momentum_and_energy() {
    let mut source = Source::new(12);
    let mut m = MechanismBuilder::new().gravity([0.0; 3]);
    let link = |s: &mut Source| {
        let size = [0.0; 3].map(|_| s.vector(1, 0.2)[0].abs() + 0.1);
        BodySpec::new(1.0 + s.vector(1, 0.5)[0]).shape(Shape::Box(size))
    };
    m = m.body("b0", link(&mut source).free());
    let kinds = [
        JointKind::Spherical,
        JointKind::Revolute,
        JointKind::Spherical,
        JointKind::Revolute,
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        let (name, near) = (format!("b{}", i + 1), format!("b{}", source.below(i + 1)));
        let mut at = || [0.0; 3].map(|_| source.vector(1, 0.3)[0]);
        let joint = JointSpec::new(kind, &name)
            .parent(&near)
            .axis([0.2, 1.0, 0.1])
            .anchors(at(), at());
        m = m
            .body(&name, link(&mut source))
            .joint(&format!("j{i}"), joint);
    }
    let n = m.build().expect("valid").tree_ids().len();
    let (q, rates) = (source.vector(n, 0.3), source.vector(n, 1.0));
    for of in BOTH {
        let s = built(&m, &q, of);
        let mut w = s.work();
        let all = seen(&s, &q, &rates, (0.01, 1000), |at, x| {
            let kinetic = read(&s, at, x, &mut w);
            let (mut linear, mut angular) = (Vec3::zeros(), Vec3::zeros());
            for (node, [(f, t), _]) in s.nodes.iter().zip(&w.momenta) {
                linear += f;
                angular += t + w.poses[node.body].x.cross(f);
            }
            (linear, angular, kinetic)
        });
        let first = all[0];
        assert!(first.0.norm() > 0.1 && first.1.norm() > 0.1, "{first:?}");
        let drift = all.iter().fold(0.0_f64, |m, (p, l, _)| {
            m.max((p - first.0).norm()).max((l - first.1).norm())
        });
        assert!(drift < 1e-10, "{of:?}: {drift:.1e}");
        let error: Vec<f64> = all.iter().map(|(.., e)| e - first.2).collect();
        println!(
            "{of:?}: momentum {drift:.1e}, energy {:.3} J, off {:.1e}",
            first.2,
            spread(&error)
        );
        assert!(spread(&error) < 0.01 * first.2, "{of:?}");
    }
}

/// A double pendulum's energy swings about no trend.
#[test]
fn energy_has_no_trend() {
    let bar = || BodySpec::new(1.0).shape(Shape::Box([0.05, 0.05, 1.0]));
    let hinge = |child: &str| JointSpec::new(JointKind::Revolute, child).axis([0.0, 1.0, 0.0]);
    let (top, bottom) = ([0.0, 0.0, 0.5], [0.0, 0.0, -0.5]);
    let m = MechanismBuilder::new()
        .body("upper", bar())
        .body("lower", bar())
        .joint("first", hinge("upper").anchors([0.0; 3], top))
        .joint(
            "second",
            hinge("lower").parent("upper").anchors(bottom, top),
        );
    let q = [std::f64::consts::FRAC_PI_2, 0.0];
    for of in BOTH {
        let s = built(&m, &q, of);
        let mut w = s.work();
        let energies = seen(&s, &q, &[0.0; 2], (0.01, 10_000), |at, x| {
            let kinetic = read(&s, at, x, &mut w);
            let each = w.knot.iter().zip(&s.nodes);
            let heights = each.map(|(k, n)| k.mass * w.poses[n.body].x.dot(&w.model.gravity));
            kinetic - heights.sum::<f64>()
        });
        let error: Vec<f64> = energies.iter().map(|e| e - energies[0]).collect();
        let (early, late) = ends(&error);
        println!(
            "{of:?}: off {:.3} J, mean {:.4}, {:.4}",
            spread(&error),
            mean(early),
            mean(late)
        );
        // as of `energy_has_no_trend` in maximal coordinates
        assert!(spread(&error) < 0.2, "{of:?}");
        assert!((mean(early) - mean(late)).abs() < 0.01, "{of:?}");
        assert!(spread(late) < 2.0 * spread(early), "{of:?}");
    }
}

/// A box that falls onto a corner comes to rest on a side.
#[test]
fn what_drops_comes_to_rest() {
    let shape = Shape::Box([0.4, 0.3, 0.2]);
    let skin = ContactSpec::new(0.5);
    let m = MechanismBuilder::new()
        .half_space("ground", HalfSpaceSpec::default())
        .body(
            "box",
            BodySpec::new(1.0).shape(shape).free().contact("skin", skin),
        );
    let q = [0.0, 0.0, 0.5, 0.4, 0.3, 0.2];
    let rates = [0.3, -0.2, 0.0, 1.0, -2.0, 0.5];
    for of in BOTH {
        let mut s = built(&m, &q, of);
        (s.options.tolerance, s.options.contact.central_path) = (1e-10, 1e-9);
        let poses = seen(&s, &q, &rates, (0.005, 600), |_, x| s.poses(x)[0]);
        let [last, before] = [poses[599], poses[598]];
        let rest = (last.x - before.x).amax().max((last.r - before.r).amax()) / 0.005;
        assert!(rest < 1e-6, "{of:?}: {rest:.1e}");
        let height = [0.2, 0.15, 0.1].map(|half| (last.x.z - half).abs());
        let height = height.into_iter().fold(1.0, f64::min);
        println!("{of:?}: {rest:.1e} m/s, {height:.1e} m");
        assert!(height < 1e-8, "{of:?}: {height:.1e}");
    }
}

/// Machines on the ground, at stops and with friction in joints: nothing penetrates.
#[test]
fn machines_touch_the_ground() {
    let mut count = 0;
    for (s, q, rates) in touching(1e-9, true) {
        let s = s.with_lagrangian(Lagrangian::Screw);
        let all = s.outputs().iter().enumerate();
        let gaps = all.filter(|(_, o)| matches!(o, Quantity::Gap(_)));
        let gaps: Vec<_> = gaps.map(|(i, _)| QuantityId::new(i)).collect();
        count += gaps.len();
        for steps in [10, 40, 100] {
            let (at, x, u, y, _) = made(&s, &q, &rates, &vec![0.01; steps]);
            let (p, mut out) = (values(&s), vec![0.0; gaps.len()]);
            let (x, u, p, y) = (&x[..], &u[..], &p[..], &y[..]);
            s.observe_in(
                &KnotPoint { at, x, u, p, y },
                &gaps,
                &mut s.work(),
                &mut out,
            )
            .expect("a state");
            assert!(out.iter().all(|gap| *gap > -1e-9), "{steps}: {out:?}");
        }
    }
    assert!(count > 0, "nothing touches");
}

/// It is taken by its name alone, and kept by what is rebuilt.
#[test]
fn lagrangians_are_chosen_and_kept() {
    for (s, q, _) in systems().into_iter().take(2) {
        let again = |s: &Minimal| s.rebuilt(s.mechanism().clone(), &q).expect("the same");
        assert_eq!(again(&s).lagrangian, Lagrangian::Split);
        let m = s.mechanism().clone();
        let screw = again(&s.with_lagrangian(Lagrangian::Screw));
        assert_eq!(again(&screw).lagrangian, Lagrangian::Screw);
        let of = |choice| System::new(choice, m.clone(), &q, options()).expect("a tree");
        let is = |s: &System, lagrangian| match s {
            System::Minimal(s) | System::Screw(s) => s.lagrangian == lagrangian,
            System::Held(s) => match s.inner() {
                System::Minimal(s) | System::Screw(s) => s.lagrangian == lagrangian,
                _ => false,
            },
            _ => false,
        };
        let own = of(Choice::default());
        assert!(own.choice().name() == "minimal" && is(&own, Lagrangian::Split));
        let named = of(Choice::new("screw", None).expect("an integrator"));
        assert!(named.choice().name() == "screw" && is(&named, Lagrangian::Screw));
        let again = named.rebuilt(m.clone(), &q).expect("the same");
        assert!(again.choice().name() == "screw" && is(&again, Lagrangian::Screw));
    }
}
