//! The same bits whatever the number of threads, of batches and of solves, and no allocation while stepping or sweeping.

use crate::disc;
use crate::knife_edge;

use crate::common::*;
use least_action::block::Fallback;
use least_action::control::{Cost, Problem, When};
use least_action::dynamics::{
    Charts, Differentiable, Knot, LinearModel, Observe, QuantityId, Remember, Step,
};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::{Composed, Cone, Maximal, Mechanical, Minimal, Options, Order};
use least_action::mechanism::{About, Quantity, Reaction};
use least_action::mechanism::{GearSpec, MechanismBuilder};
use least_action::optimize::{Limits, Method, RecedingHorizon, Solve, receding};
use least_action::rollout::{RolloutStats, Sweep, Trajectory, batch};
use least_action::spatial::{Quat, Vec3};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

/// Counts the allocations of each thread.
struct Counter;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // a thread that ends has no counter any more
    let _ = ALLOCATIONS.try_with(|c| c.set(c.get() + 1));
}

// SAFETY: passes everything to the system's allocator.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(p, layout, size) }
    }
}

#[global_allocator]
static COUNTER: Counter = Counter;

/// How often `f` allocated on this thread.
fn allocations(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    f();
    ALLOCATIONS.with(Cell::get) - before
}

type Started<S> = (&'static str, S, Vec<f64>, Vec<f64>);

/// A chain of five, a four-bar linkage, a damped tree and other elements, with a start.
fn builders() -> Vec<Started<MechanismBuilder>> {
    use least_action::mechanism::{BodySpec, Shape};
    let mut chain = MechanismBuilder::new();
    for i in 0..5 {
        let parent = if i == 0 {
            "world".to_owned()
        } else {
            format!("l{}", i - 1)
        };
        let anchor = if i == 0 { [0.0; 3] } else { [0.0, 0.0, -0.5] };
        chain = chain
            .body(
                &format!("l{i}"),
                BodySpec::new(1.0).shape(Shape::Cylinder {
                    radius: 0.05,
                    length: 1.0,
                }),
            )
            .joint(
                &format!("j{i}"),
                revolute(&format!("l{i}"))
                    .parent(&parent)
                    .anchors(anchor, [0.0, 0.0, 0.5]),
            );
    }
    let bar = four_bar().actuator("motor", least_action::mechanism::ActuatorSpec::joint("a"));
    let tree = damped_tree();
    let n = tree.build().expect("valid").tree_ids().len();
    // gears, a rolling disc: elements besides joints
    let disc = disc::Disc { radius: 0.3 };
    let wheel = |b: &str, x: f64| revolute(b).anchors([x, 0.0, 0.0], [0.0; 3]);
    let body = || BodySpec::new(1.0).inertia([0.1, 0.1, 0.2]);
    let elements = MechanismBuilder::new()
        .body("a", body())
        .body("b", body())
        .body("disc", body().free())
        .joint("ja", wheel("a", 0.0))
        .joint("jb", wheel("b", 1.0))
        .gear("gear", GearSpec::new("jb", "ja", -2.0))
        .constraint("touch", &["disc"], Arc::new(disc))
        .velocity_constraint("roll", &["disc"], Arc::new(disc::NoSlip(disc)))
        .body("skate", body().free())
        .velocity_constraint("edge", &["skate"], Arc::new(knife_edge::KnifeEdge));
    let mut rolls = vec![0.1, 0.2, 0.0, 0.0, 0.29, 0.1, 1.3, 0.0];
    rolls.extend([0.3; 6]);
    // fast enough not to fall
    let mut rates = vec![0.5, 0.5, 0.0, 0.0, 0.0, 9.0, 0.0, 2.5];
    rates.extend([0.5; 6]);
    vec![
        ("elements", elements, rolls, rates),
        ("chain", chain, vec![0.8, 0.0, 0.1, 0.0, -0.2], vec![0.0; 5]),
        ("four-bar", bar, vec![0.3, 0.3, 1.2], vec![1.0, 0.0, 0.0]),
        ("damped tree", tree, vec![0.2; n], vec![0.3; n]),
    ]
}

fn systems() -> Vec<Started<Maximal>> {
    let each = builders().into_iter();
    each.map(|(name, builder, q, rates)| (name, system(&builder, &q), q, rates))
        .collect()
}

/// The chain, one with a gear, and one with a damper between points, in joint coordinates.
fn trees() -> Vec<Started<Minimal>> {
    let mut all: Vec<_> = builders().into_iter().filter(|t| t.0 == "chain").collect();
    let (_, chain, q, rates) = all[0].clone();
    let mut r = Source::new(8);
    let damped = chain.clone().spring("line", line(&mut r, "l0", "l3"));
    all.push(("damped chain", damped, q.clone(), rates.clone()));
    let geared = chain.gear("gear", GearSpec::new("j3", "j1", -0.7));
    all.push(("geared chain", geared, q, rates));
    let each = all.into_iter();
    each.map(|(name, builder, q, rates)| {
        let m = builder.build().expect("valid");
        let s = Minimal::new(m, &q, Options::default()).expect("a tree");
        (name, s, q, rates)
    })
    .collect()
}

fn trajectory<S: Mechanical>(
    s: &S,
    q: &[f64],
    rates: &[f64],
    steps: usize,
    r: &mut Source,
) -> Trajectory {
    let moved =
        |v: &[f64], r: &mut Source| v.iter().map(|v| v + 0.05 * r.unit()).collect::<Vec<f64>>();
    let (q, rates) = (moved(q, r), moved(rates, r));
    let x0 = s.start(&q, &rates, &vec![false; q.len()]).expect("closes");
    let mut t = Trajectory::new(s, vec![0.01; steps], &x0);
    let n = t.u.len();
    t.u = r.vector(n, 1.0);
    t
}

fn bits(t: &Trajectory) -> Vec<u64> {
    t.x.iter().chain(&t.y).map(|v| v.to_bits()).collect()
}

#[test]
fn batches_do_not_depend_on_the_threads() {
    for (name, s, q, rates) in systems() {
        let mut r = Source::new(3);
        let start: Vec<Trajectory> = (0..16)
            .map(|_| trajectory(&s, &q, &rates, 150, &mut r))
            .collect();
        // one after the other, each with memory of its own
        let alone: Vec<Vec<u64>> = start
            .iter()
            .map(|t| {
                let mut t = t.clone();
                t.roll(&s, &mut s.work(), &mut RolloutStats::default())
                    .expect("solved");
                bits(&t)
            })
            .collect();
        assert_ne!(alone[0], alone[1]);
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads");
            let mut t = start.clone();
            let results = pool.install(|| batch(&s, &mut t));
            assert!(
                results
                    .iter()
                    .all(|r| r.as_ref().is_ok_and(|s| s.steps == 150))
            );
            for (i, (t, alone)) in t.iter().zip(&alone).enumerate() {
                assert!(
                    bits(t) == *alone,
                    "{name}: trajectory {i} on {threads} threads"
                );
            }
        }
    }
}

/// Knots are linearized by as many threads as there are; what a solve finds does not depend on them, to the bit.
#[test]
fn solves_do_not_depend_on_the_threads() {
    let model = shipped("cartpole_swingup");
    for method in [Method::Ddp, Method::Shooting] {
        let found = [1, 2, 5].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let limits = Limits {
                iterations: Some(25),
                ..Limits::default()
            };
            let solve = || {
                let solve = Solve::new(&model.system, &model.problem).with_method(method);
                solve.with_limits(limits).run().expect("no argmin error")
            };
            let found = pool.expect("threads").install(solve);
            assert!(found.iterations == 25, "{}", found.reason);
            let t = &found.trajectory;
            let bits: Vec<u64> = t.u.iter().chain(&t.x).map(|v| v.to_bits()).collect();
            (bits, found.objective.to_bits(), found.optimality.to_bits())
        });
        assert!(found[0] == found[1] && found[0] == found[2], "{method:?}");
    }
}

/// Adjoints that only write: the last poses and every tenth velocity.
fn sweep<S: Mechanical>(s: &S, t: &Trajectory, w: &mut S::Work, sweep: &mut Sweep) {
    let last = t.steps();
    sweep
        .run(s, t, w, |at, _, out, _| {
            let k = at.k;
            if k == last {
                out.x
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, x)| *x = 1.0 / (1.0 + i as f64));
            } else if k % 10 == 0 {
                *out.x.last_mut().expect("a velocity") = 0.3;
                out.u.iter_mut().for_each(|u| *u = 0.1);
            }
            Ok(())
        })
        .expect("regular");
}

#[test]
fn sweeps_repeat_to_the_bit() {
    sweeps_repeat(systems());
    sweeps_repeat(trees());
}

fn sweeps_repeat<S: Mechanical>(systems: Vec<Started<S>>) {
    for (name, s, q, rates) in systems {
        let mut t = trajectory(&s, &q, &rates, 120, &mut Source::new(6));
        t.roll(&s, &mut s.work(), &mut RolloutStats::default())
            .expect("solved");
        let bits = |g: &Sweep| {
            g.u.iter()
                .chain(&g.x0)
                .chain(&g.intervals)
                .map(|v| v.to_bits())
                .collect::<Vec<u64>>()
        };
        let mut first = Sweep::new(&s, &t);
        let mut w = s.work();
        sweep(&s, &t, &mut w, &mut first);
        assert!(first.x0.iter().any(|g| g.abs() > 1e-3));
        // the same memory again, and fresh memory
        let reference = bits(&first);
        sweep(&s, &t, &mut w, &mut first);
        assert!(bits(&first) == reference, "{name}");
        let mut fresh = Sweep::new(&s, &t);
        sweep(&s, &t, &mut s.work(), &mut fresh);
        assert!(bits(&fresh) == reference, "{name}");
        // factors kept for all steps, for some and for none
        for bytes in [1 << 30, 1 << 17, 0] {
            let mut kept = Sweep::new(&s, &t).with_cache(&s, bytes);
            for _ in 0..2 {
                sweep(&s, &t, &mut w, &mut kept);
                assert!(bits(&kept) == reference, "{name}, {bytes} bytes");
            }
            // another trajectory finds none of them
            let mut other = t.clone();
            other.u.iter_mut().for_each(|u| *u += 0.1);
            other.p.iter_mut().for_each(|p| *p *= 1.1);
            other
                .roll(&s, &mut w, &mut RolloutStats::default())
                .expect("solved");
            sweep(&s, &other, &mut w, &mut kept);
            sweep(&s, &other, &mut w, &mut first);
            assert!(bits(&kept) == bits(&first), "{name}, {bytes} bytes");
        }
    }
}

#[test]
fn stepping_and_sweeping_allocate_nothing() {
    // the counter counts
    assert!(allocations(|| drop(std::hint::black_box(vec![1.0; 10]))) > 0);
    steps_and_sweeps_allocate_nothing(systems());
    steps_and_sweeps_allocate_nothing(trees());
}

fn steps_and_sweeps_allocate_nothing<S: Mechanical>(systems: Vec<Started<S>>) {
    for (name, s, q, rates) in systems {
        let mut t = trajectory(&s, &q, &rates, 100, &mut Source::new(2));
        let (mut w, mut stats) = (s.work(), RolloutStats::default());
        let mut gradient = Sweep::new(&s, &t);
        for round in 0..2 {
            let rolled = allocations(|| t.roll(&s, &mut w, &mut stats).expect("solved"));
            let swept = allocations(|| sweep(&s, &t, &mut w, &mut gradient));
            println!("{name}, round {round}: {rolled} and {swept} allocations");
            assert!(
                round == 0 || (rolled, swept) == (0, 0),
                "{name}: {rolled}, {swept}"
            );
        }
    }
}

/// The same of steps that are composed of others.
#[test]
fn composed_steps_and_sweeps_allocate_nothing() {
    for order in [Order::Four, Order::Six] {
        for (name, s, q, rates) in systems() {
            // velocity constraints and implicit dampers only go forward
            let Ok(s) = Composed::new(s, order) else {
                assert!(["elements", "damped tree"].contains(&name), "{name}");
                continue;
            };
            let mut t = trajectory(&s, &q, &rates, 20, &mut Source::new(2));
            let (mut w, mut stats) = (s.work(), RolloutStats::default());
            let mut gradient = Sweep::new(&s, &t);
            for round in 0..2 {
                let rolled = allocations(|| t.roll(&s, &mut w, &mut stats).expect("solved"));
                let swept = allocations(|| sweep(&s, &t, &mut w, &mut gradient));
                assert!(
                    round == 0 || (rolled, swept) == (0, 0),
                    "{name}, order {}: {rolled}, {swept}",
                    order.number()
                );
            }
        }
    }
}

/// A box that falls on its edge, tips and slides, a ball that lands on it and rolls off, and a pendulum with friction that
/// swings from one limit to the other.
fn touching(cone: Cone, warm: bool) -> (Maximal, Vec<f64>) {
    use least_action::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};
    let free = |shape| {
        let skin = ContactSpec::new(0.4).group("all", &["all", "ground"]);
        let skin = skin.restitution(0.3);
        BodySpec::new(1.0).shape(shape).free().contact("skin", skin)
    };
    let slope = HalfSpaceSpec {
        normal: [0.1, 0.05, 1.0],
        ..HalfSpaceSpec::default()
    };
    let rod = BodySpec::new(1.0).shape(Shape::Box([0.05, 0.05, 1.0]));
    let pivot = revolute("rod")
        .anchors([5.0, 0.0, 1.0], [0.0, 0.0, 0.5])
        .friction(0.3)
        .limits(-0.4, 0.8);
    let m = MechanismBuilder::new()
        .half_space("slope", slope)
        .body("box", free(Shape::Box([0.4, 0.3, 0.2])))
        .body("ball", free(Shape::Sphere(0.1)))
        .body("rod", rod)
        .joint("pivot", pivot);
    let q = [
        0.0, 0.0, 0.4, 0.3, 0.2, 0.0, 0.05, 0.0, 0.9, 0.0, 0.0, 0.0, 0.7,
    ];
    let mut options = Options::default();
    (options.contact.cone, options.contact.warm) = (cone, warm);
    let s = Maximal::new(m.build().expect("valid"), &q, options).expect("a system");
    let x = s.start(&q, &[0.0; 13], &[true; 13]).expect("a state");
    (s, x)
}

/// The general factorization, to which few steps come.
#[test]
fn factorizations_with_pivots_allocate_nothing() {
    let mut source = Source::new(8);
    for (name, s, ..) in systems() {
        let symbolic = s.symbolic();
        let mut general = Fallback::new(symbolic).expect("enough memory");
        let values = source.vector(symbolic.values_len(), 1.0);
        let mut x = vec![1.0; symbolic.dim()];
        for round in 0..2 {
            let counted = allocations(|| {
                general.factor(symbolic, &values).expect("regular");
                general.solve(&mut x).expect("regular");
                general.solve_transposed(&mut x).expect("regular");
            });
            assert!(round == 0 || counted == 0, "{name}: {counted}");
        }
    }
}

#[test]
fn steps_with_contacts_allocate_nothing() {
    const STEPS: usize = 240;
    for cone in [Cone::SecondOrder, Cone::Linearized(6)] {
        for warm in [false, true] {
            let (s, x0) = touching(cone, warm);
            let mut w = s.work();
            for round in 0..2 {
                let (mut x, mut next) = (x0.clone(), x0.clone());
                let mut y = vec![0.0; s.dims().ny];
                for k in 0..STEPS {
                    let at = Knot {
                        k,
                        t: 0.005 * k as f64,
                        h_prev: if k == 0 { 0.0 } else { 0.005 },
                        h: 0.005,
                    };
                    let mut done = None;
                    let counted = allocations(|| {
                        done = s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y).ok();
                    });
                    assert!(done.is_some(), "{cone:?}, warm {warm}, step {k}");
                    assert!(
                        round == 0 || counted == 0,
                        "{cone:?}, warm {warm}, step {k}: {counted}"
                    );
                    std::mem::swap(&mut x, &mut next);
                }
                // what has fallen for 1.2 s would be faster
                let speed = |body: usize| x[13 * body + 9].abs();
                assert!(speed(0) < 5.0 && speed(1) < 5.0);
            }
        }
    }
}

/// Linear models of trees, the memory once made.
#[test]
fn linear_models_of_trees_allocate_nothing() {
    for (name, s, q, rates) in systems() {
        if s.mechanism().has_loops() {
            continue;
        }
        let mut t = trajectory(&s, &q, &rates, 4, &mut Source::new(2));
        let mut w = s.work();
        t.roll(&s, &mut w, &mut RolloutStats::default())
            .expect("solved");
        let mut model = LinearModel::new(&s.dims());
        for k in [0, 2] {
            let (at, after) = (t.knot(k), t.knot(k + 1));
            let from = s
                .frame(&at, t.state(k), &t.p, None, &mut w)
                .expect("a state");
            let to = s
                .frame(&after, t.state(k + 1), &t.p, Some(&from), &mut w)
                .expect("a state");
            for round in 0..2 {
                let counted = allocations(|| {
                    s.linearize(&t.solved(&at), &mut w)
                        .expect("regular")
                        .linear_model(&from, &to, &mut model);
                });
                assert!(round == 0 || counted == 0, "{name}: {counted}");
            }
        }
    }
}

fn shipped(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems");
    let read = format::load(&path.join(name).with_extension("toml"));
    let model = read.and_then(|d| d.build(&Overrides::default()));
    model.expect("a shipped problem")
}

/// Ticks of a horizon of at most thirty steps that recedes with the system on so many threads: how often each allocated on its own,
/// and the bits of the states met.
fn ticks(model: &Model, threads: usize) -> (Vec<usize>, Vec<u64>) {
    let (system, mut problem) = (&model.system, model.problem.clone());
    let (d, h) = (system.dims(), problem.intervals[0]);
    problem.intervals.truncate(30);
    problem.guess.truncate(30 * d.nu);
    let run = || {
        let mut w = system.work();
        let start = problem.start(system, &problem.parameters, &mut w);
        let mut x = start.expect("a start");
        let options = receding::Options::default();
        let controller = RecedingHorizon::new(system, problem.clone(), options);
        let mut controller = controller.expect("fits");
        let (mut next, mut y, mut u) = (x.clone(), vec![0.0; d.ny], vec![0.0; d.nu]);
        let (mut counts, mut met) = (vec![], vec![]);
        for k in 0..12 {
            let at = Knot {
                k,
                t: k as f64 * h,
                h_prev: if k == 0 { 0.0 } else { h },
                h,
            };
            counts.push(allocations(|| {
                let tick = controller.tick(&at, &x);
                assert_eq!(tick.failure, None);
                controller.control(&at, &x, &mut u);
            }));
            let p = &controller.plan().p;
            let stepped = system.step(&at, &x, &u, p, &mut w, &mut next, &mut y);
            stepped.expect("a step");
            x.copy_from_slice(&next);
            met.extend(x.iter().map(|v| v.to_bits()));
        }
        (counts, met)
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(run)
}

/// The memory once made: the first frame is that of a start, whose rates are those of the instant, and on its way to the target
/// the arm tries steps that fail, which say so.
#[test]
fn ticks_allocate_nothing_and_do_not_depend_on_the_threads() {
    for name in ["cartpole_swingup", "arm_mpc"] {
        let model = shipped(name);
        let (counts, met) = ticks(&model, 1);
        assert_eq!(counts[4..], [0; 8], "{name}: {counts:?}");
        for threads in [2, 5] {
            assert!(ticks(&model, threads).1 == met, "{name}");
        }
    }
}

/// Everything there is to observe of a mechanism.
fn all_outputs(s: &Maximal) -> Vec<Quantity> {
    let (axis, point) = (Vec3::new(0.6, 0.0, 0.8), Vec3::new(0.1, -0.3, 0.2));
    let mut outputs = vec![
        Quantity::CenterOfMass(axis),
        Quantity::CenterOfMassVelocity(axis),
        Quantity::LinearMomentum(axis),
        Quantity::KineticEnergy,
        Quantity::PotentialEnergy,
        Quantity::Energy,
    ];
    for about in [About::Origin, About::CenterOfMass] {
        outputs.push(Quantity::AngularMomentum { axis, about });
    }
    let m = s.mechanism();
    for (joint, direction) in m.coordinates() {
        outputs.push(Quantity::Coordinate { joint, direction });
        outputs.push(Quantity::Rate { joint, direction });
        outputs.push(Quantity::IntervalRate { joint, direction });
    }
    for body in 0..m.bodies.len() {
        let (target, in_body) = (Quat::identity(), false);
        outputs.extend([
            Quantity::Position { body, point, axis },
            Quantity::Velocity { body, point, axis },
            Quantity::Orientation { body, target, axis },
            Quantity::AngularVelocity {
                body,
                axis,
                in_body,
            },
        ]);
    }
    for joint in 0..m.joints.len() {
        for kind in [Reaction::Force, Reaction::Torque] {
            outputs.push(Quantity::Constraint { joint, kind, axis });
        }
    }
    outputs.extend((0..m.actuators.len()).map(Quantity::Control));
    outputs
}

/// Allocations while costs on every quantity are evaluated at every knot, and swept with their adjoints.
fn counted<D: Observe>(s: &D, t: &mut Trajectory) -> usize {
    let costs = (0..s.quantities().len())
        .map(|i| Cost::square(QuantityId::new(i), 0.1, 1.0, When::Running));
    let problem = Problem {
        costs: costs.collect(),
        ..Problem::new(s, t.intervals.clone(), vec![])
    };
    let (mut w, mut evaluation) = (s.work(), problem.evaluation());
    let mut gradient = Sweep::new(s, t);
    t.roll(s, &mut w, &mut RolloutStats::default())
        .expect("solved");
    allocations(|| {
        problem
            .evaluate(s, t, &mut w, &mut evaluation)
            .expect("observed");
        gradient
            .run(s, t, &mut w, |at, w, out, y| {
                problem.pull(s, t, &[], &mut evaluation, at, w, out, y)
            })
            .expect("regular");
    })
}

#[test]
fn observing_allocates_nothing() {
    for (name, s, q, rates) in systems() {
        let outputs = all_outputs(&s);
        let s = s.with_outputs(outputs);
        let mut t = trajectory(&s, &q, &rates, 50, &mut Source::new(2));
        assert_eq!(counted(&s, &mut t), 0, "{name}");
        let names = s.mechanism().actuators.iter();
        let names = names.map(|a| (a.name.clone(), "N".into())).collect();
        let remember = Remember::new(&s, names);
        let x0 = [t.state(0), &vec![0.0; s.dims().nu][..]].concat();
        let mut with = Trajectory::new(&remember, t.intervals.clone(), &x0);
        with.u.copy_from_slice(&t.u);
        assert_eq!(counted(&remember, &mut with), 0, "{name} that remembers");
        assert_eq!(with.of_system(&s), t);
    }
}
