//! Trees, and steps of theirs, for tests.

use super::{Lagrangian, Minimal};
use crate::dynamics::{Knot, Start, Step};
use crate::integrator::maximal::contact_tests::scenes;
use crate::integrator::maximal::tests::{all_outputs, tuned};
use crate::integrator::{Mechanical, Options};
use crate::mechanism::element_samples::{Line, Rubber};
use crate::mechanism::samples::{Source, tree};
use crate::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, CoordinateId, ForceOf, Freedom, GearSpec, HalfSpaceSpec,
    JointKind, JointSpec, Mechanism, MechanismBuilder, PowerOf, Quantity, Shape, SpringSpec,
};
use crate::spatial::Vec3;
use std::sync::Arc;

/// A tree of these joints, with springs and dampers on half of them, every third joint declared from the outside inwards; the
/// damper between points of bodies is left out.
pub(super) fn mixed(seed: u64, kinds: &[JointKind]) -> MechanismBuilder {
    let mut m = tree(seed, kinds);
    m.springs["line"].damping = 0.0;
    for i in 0..kinds.len() {
        let j = &mut m.joints[format!("j{i}").as_str()];
        if (seed as usize + i).is_multiple_of(3) && j.parent != "world" {
            std::mem::swap(&mut j.parent, &mut j.child);
        }
    }
    m
}

pub(super) fn options() -> Options {
    Options {
        tolerance: 1e-13,
        ..Options::default()
    }
}

/// An integrator, coordinates and rates of a start.
pub(super) type Sample = (Minimal, Vec<f64>, Vec<f64>);

/// Dampers between points, some of them springs, too: of the world and a body, of neighbours and across branches, every other one
/// implicit.
pub(super) fn damped(mut m: MechanismBuilder, seed: u64) -> MechanismBuilder {
    let mut s = Source::new(seed + 55);
    let bodies: Vec<String> = m.bodies.keys().cloned().collect();
    let last = &bodies[bodies.len() - 1];
    let (a, b) = (s.below(bodies.len()), s.below(bodies.len() - 1));
    let other = if b < a { b } else { b + 1 };
    let ends = [
        ("world", last),
        (&bodies[0], &bodies[1]),
        (&bodies[a], &bodies[other]),
    ];
    for (i, (parent, child)) in ends.into_iter().enumerate() {
        let spring = SpringSpec {
            parent: parent.into(),
            child: child.into(),
            parent_anchor: s.array3(),
            child_anchor: s.array3(),
            stiffness: if i == 1 { 0.0 } else { 1.5 },
            rest: 0.3,
            damping: 0.6 + 0.3 * s.unit(),
            implicit: (seed as usize + i).is_multiple_of(2),
        };
        m = m.spring(&format!("d{i}"), spring);
    }
    m
}

/// Trees with dampers between points, some of them with gears as well, all numbers parameters but anchors of joints where gears are.
pub(super) fn damped_systems() -> Vec<Sample> {
    use JointKind::{Cylindrical, Prismatic, Revolute};
    let each = (0..6).map(|seed: usize| {
        let mut s = Source::new(seed as u64 + 600);
        let mut kinds = vec![Revolute, Prismatic, Cylindrical];
        kinds.extend((0..3).map(|_| JointKind::ALL[s.below(16)]));
        for i in (1..kinds.len()).rev() {
            kinds.swap(i, s.below(i + 1));
        }
        let builder = damped(mixed(seed as u64, &kinds), seed as u64);
        let mechanism = match seed % 3 {
            0 => tuned_but_anchors(geared(builder, seed as u64, 2)),
            _ => tuned(builder),
        };
        let n = mechanism.tree_ids().len();
        let (q, rates) = (s.vector(n, 0.5), s.vector(n, 0.5));
        let system = Minimal::new(mechanism, &q, options()).expect("a tree");
        let outputs = all_outputs(&system);
        (with_dampers_seen(system.with_outputs(outputs)), q, rates)
    });
    each.collect()
}

/// With forces and powers of what acts between points observed, too.
fn with_dampers_seen(system: Minimal) -> Minimal {
    let mut outputs = system.outputs.clone();
    for s in 0..system.mechanism().springs.len() {
        let (force, power) = (ForceOf::Spring(s), PowerOf::Spring(s));
        outputs.extend([Quantity::SpringForce(force), Quantity::DamperForce(force)]);
        outputs.extend([Quantity::SpringPower(power), Quantity::DamperPower(power)]);
    }
    system.with_outputs(outputs)
}

/// The robot and the geared leg with dampers between points.
pub(super) fn damped_touching(central_path: f64, warm: bool) -> Vec<Sample> {
    let damper = |parent: &str, child: &str, at: [f64; 3]| SpringSpec {
        parent: parent.into(),
        child: child.into(),
        parent_anchor: at,
        child_anchor: [0.02, 0.0, -0.1],
        stiffness: 5.0,
        rest: 0.2,
        damping: 3.0,
        implicit: false,
    };
    let (robot, q, rates) = robot();
    let robot = robot
        .spring("strut", damper("trunk", "shank", [0.15, 0.0, 0.1]))
        .spring("rope", damper("world", "arm", [0.3, 0.2, 1.4]))
        .spring(
            "band",
            SpringSpec {
                implicit: true,
                ..damper("shank", "tail", [0.0, 0.05, 0.0])
            },
        );
    let (leg, leg_q, leg_rates) = leg();
    let leg = leg
        .spring("strut", damper("trunk", "shank", [0.15, 0.0, 0.1]))
        .spring("rope", damper("world", "toe", [0.3, 0.2, 1.4]));
    [
        (tuned(robot), q, rates),
        (tuned_but_anchors(leg), leg_q, leg_rates),
    ]
    .map(|(m, q, rates)| {
        let (system, q, rates) = touched(m, q, rates, contact_options(central_path, warm));
        (with_dampers_seen(system), q, rates)
    })
    .into()
}

/// All trees that touch nothing.
pub(super) fn trees() -> impl Iterator<Item = Sample> {
    let all = systems().into_iter().chain(geared_systems());
    all.chain(damped_systems())
}

/// All that touch something.
pub(super) fn on_ground(central_path: f64, warm: bool) -> impl Iterator<Item = Sample> {
    let all = touching(central_path, warm).into_iter();
    let all = all.chain(geared_touching(central_path, warm));
    all.chain(damped_touching(central_path, warm))
}

/// Trees that together hold every kind of joint, all numbers parameters.
pub(super) fn systems() -> Vec<Sample> {
    let each = (0..8).map(|seed: usize| {
        let mut s = Source::new(seed as u64);
        let mut kinds = vec![JointKind::ALL[2 * seed], JointKind::ALL[2 * seed + 1]];
        kinds.extend((0..3).map(|_| JointKind::ALL[s.below(16)]));
        let mut builder = mixed(seed as u64, &kinds);
        if seed % 2 == 1 {
            builder.joints.values_mut().for_each(|j| j.implicit = true);
        }
        if seed == 2 {
            let line = Line(Vec3::new(0.1, 0.2, 0.0), Vec3::new(0.0, 0.3, 0.1));
            let rubber = Rubber(line, 3.0, 0.4);
            builder = builder.potential("rubber", &["b0", "b3"], Arc::new(rubber));
        }
        let mechanism = tuned(builder);
        let n = mechanism.tree_ids().len();
        let (q, rates) = (s.vector(n, 0.6), s.vector(n, 0.5));
        let system = Minimal::new(mechanism, &q, options()).expect("a tree");
        let outputs = all_outputs(&system);
        (system.with_outputs(outputs), q, rates)
    });
    each.collect()
}

/// Gears between coordinates of a tree, each of one with one that is geared before or that is the first, in either role.
pub(super) fn geared(mut m: MechanismBuilder, seed: u64, most: usize) -> MechanismBuilder {
    let built = m.build().expect("valid");
    let is_single =
        |id: &CoordinateId| built.joints[id.0].directions[id.1].freedom != Freedom::Turn;
    let ids: Vec<_> = built.coordinates().filter(is_single).collect();
    let mut s = Source::new(seed + 77);
    let mut names: Vec<_> = ids.iter().map(|id| built.coordinate_name(*id)).collect();
    for i in (1..names.len()).rev() {
        names.swap(i, s.below(i + 1));
    }
    for i in 1..names.len().min(most + 1) {
        let (mut joint, mut of) = (names[i].clone(), names[s.below(i)].clone());
        if s.below(2) == 0 {
            std::mem::swap(&mut joint, &mut of);
        }
        let ratio = [0.7, -1.3, 1.6, -0.5][s.below(4)] + 0.1 * s.unit();
        let gear = GearSpec::new(&joint, &of, ratio).offset(0.3 * s.unit());
        m = m.gear(&format!("g{i}"), gear);
    }
    m
}

/// Trees with gears, all numbers parameters but the anchors, of which gears of slides have no derivative.
pub(super) fn geared_systems() -> Vec<Sample> {
    use JointKind::{Cylindrical, Prismatic, Revolute};
    let each = (0..6).map(|seed: usize| {
        let mut s = Source::new(seed as u64 + 300);
        let mut kinds = vec![Revolute, Prismatic, Cylindrical, Revolute];
        kinds.extend((0..3).map(|_| JointKind::ALL[s.below(16)]));
        for i in (1..kinds.len()).rev() {
            kinds.swap(i, s.below(i + 1));
        }
        let mut builder = geared(mixed(seed as u64, &kinds), seed as u64, 1 + seed % 4);
        if seed % 2 == 1 {
            builder.joints.values_mut().for_each(|j| j.implicit = true);
        }
        let mechanism = tuned_but_anchors(builder);
        let n = mechanism.tree_ids().len();
        let (q, rates) = (s.vector(n, 0.5), s.vector(n, 0.5));
        let system = Minimal::new(mechanism, &q, options()).expect("a tree");
        let outputs = all_outputs(&system);
        (system.with_outputs(outputs), q, rates)
    });
    each.collect()
}

fn tuned_but_anchors(mut builder: MechanismBuilder) -> Mechanism {
    let built = builder.build().expect("valid");
    for (path, field) in built.fields() {
        let is_good = field.positive().is_none() || built.get(field) > 0.0;
        if is_good && !(path.starts_with("joints") && path.contains("anchor")) {
            builder = builder.parameter(&path, &[&path]);
        }
    }
    builder.build().expect("valid")
}

/// A leg whose knee and ankle are geared to the hip, and a toe that slides with them: on the ground, at stops, with friction.
pub(super) fn geared_touching(central_path: f64, warm: bool) -> Vec<Sample> {
    let (leg, q, rates) = leg();
    let mechanism = tuned_but_anchors(leg);
    let system = Minimal::new(mechanism, &q, contact_options(central_path, warm)).expect("a tree");
    let outputs = all_outputs(&system);
    vec![(system.with_outputs(outputs), q, rates)]
}

fn leg() -> (MechanismBuilder, Vec<f64>, Vec<f64>) {
    let link = |mass: f64| BodySpec::new(mass).shape(Shape::Box([0.08, 0.1, 0.3]));
    let hinge = |child: &str, parent: &str| {
        JointSpec::new(JointKind::Revolute, child)
            .parent(parent)
            .axis([0.0, 1.0, 0.1])
            .anchors([0.0, 0.0, -0.15], [0.0, 0.0, 0.15])
    };
    let foot = ContactSpec::new(0.5).shape(Shape::Sphere(0.05));
    let corners = ContactSpec::new(0.3);
    let trunk = BodySpec::new(3.0).shape(Shape::Box([0.5, 0.3, 0.2]));
    let toe = JointSpec::new(JointKind::Prismatic, "toe")
        .parent("foot")
        .axis([1.0, 0.0, 0.2])
        .anchors([0.1, 0.0, 0.0], [0.0, 0.0, 0.0]);
    let leg = MechanismBuilder::new()
        .half_space("slope", HalfSpaceSpec::default())
        .body("trunk", trunk.contact("corners", corners).free())
        .body("thigh", link(0.8))
        .body("shank", link(0.4))
        .body(
            "foot",
            link(0.3).contact("heel", foot.at([0.0, 0.0, -0.15])),
        )
        .body("toe", link(0.2))
        .joint("hip", hinge("thigh", "trunk").friction(0.1).damping(0.2))
        .joint("knee", hinge("shank", "thigh").limits(-0.5, 0.4))
        .joint("ankle", hinge("foot", "shank").friction(0.05))
        .joint("toe", toe)
        .gear("knee", GearSpec::new("knee", "hip", -1.4).offset(0.1))
        .gear("ankle", GearSpec::new("knee", "ankle", -1.8))
        .gear("toe", GearSpec::new("toe", "ankle", 0.2))
        .actuator("bend", ActuatorSpec::joint("hip").effort_limits(-3.0, 3.0));
    let n = leg.build().expect("valid").tree_ids().len();
    let mut source = Source::new(4);
    let (mut q, mut rates) = (source.vector(n, 0.1), source.vector(n, 0.5));
    (q[2], rates[2]) = (0.95, -1.0);
    (leg, q, rates)
}

/// The central path at which contacts are smooth over what differences change.
pub(super) const SMOOTH: f64 = 0.05;

/// A robot whose limbs touch a slope and their limits, with friction in joints.
fn robot() -> (MechanismBuilder, Vec<f64>, Vec<f64>) {
    let slope = HalfSpaceSpec {
        normal: [0.1, 0.05, 1.0],
        friction: Some(0.6),
        ..HalfSpaceSpec::default()
    };
    let contact = |mu| ContactSpec::new(mu);
    let foot = |at| contact(0.5).shape(Shape::Sphere(0.05)).at(at);
    let link = |mass: f64| BodySpec::new(mass).shape(Shape::Box([0.08, 0.1, 0.4]));
    let trunk = BodySpec::new(3.0).shape(Shape::Box([0.5, 0.3, 0.2]));
    let hang = |kind, child: &str, at| {
        JointSpec::new(kind, child)
            .parent("trunk")
            .axis([0.1, 1.0, 0.0])
            .anchors(at, [0.0, 0.0, 0.2])
    };
    let mut knee = JointSpec::new(JointKind::Revolute, "shank")
        .parent("thigh")
        .axis([0.0, 1.0, 0.0])
        .friction(0.2)
        .damping(0.1)
        .limits(-0.6, 0.3)
        .anchors([0.0, 0.0, -0.2], [0.0, 0.0, 0.2]);
    std::mem::swap(&mut knee.parent, &mut knee.child);
    std::mem::swap(&mut knee.parent_anchor, &mut knee.child_anchor);
    let robot = MechanismBuilder::new()
        .half_space("slope", slope)
        .body("trunk", trunk.contact("corners", contact(0.3)).free())
        .body("thigh", link(0.8))
        .body("shank", link(0.4).contact("foot", foot([0.0, 0.0, -0.2])))
        .body("arm", link(0.5).contact("all", contact(0.2)))
        .body("tail", link(0.3).contact("tip", foot([0.0, 0.0, -0.2])))
        .joint(
            "hip",
            hang(JointKind::Spherical, "thigh", [0.2, 0.1, -0.1]).damping(0.3),
        )
        .joint("knee", knee)
        .joint(
            "shoulder",
            hang(JointKind::Orbital, "arm", [-0.2, 0.1, 0.0])
                .friction(0.1)
                .damping(0.3),
        )
        .joint(
            "rail",
            hang(JointKind::Prismatic, "tail", [0.0, -0.2, 0.0])
                .damping(0.2)
                .limits(-0.05, 0.05),
        )
        .actuator("bend", ActuatorSpec::joint("knee").effort_limits(-3.0, 3.0));
    let mut source = Source::new(3);
    let n = robot.build().expect("valid").tree_ids().len();
    let (mut q, mut rates) = (source.vector(n, 0.1), source.vector(n, 0.5));
    (q[2], rates[2]) = (0.75, -1.0);
    (robot, q, rates)
}

/// Trees that touch the ground, wheels by their rotation laws among them, their limits, and have friction in joints, where their path ends at `central_path`.
pub(super) fn touching(central_path: f64, warm: bool) -> Vec<Sample> {
    let (robot, q, rates) = robot();
    let mut all = vec![(tuned(robot), q, rates)];
    for (name, builder, q, rates, ..) in scenes() {
        let wanted = name.contains("machine") || name.contains("fast") && !name.contains("capsule");
        if wanted && !name.contains("bouncing") {
            all.push((tuned(builder), q, rates));
        }
    }
    let options = contact_options(central_path, warm);
    let each = all.into_iter();
    each.map(|(m, q, rates)| touched(m, q, rates, options))
        .collect()
}

/// With all that can be observed of what touches.
fn touched(m: Mechanism, q: Vec<f64>, rates: Vec<f64>, options: Options) -> Sample {
    let system = Minimal::new(m, &q, options).expect("a tree");
    let mut outputs = all_outputs(&system);
    for c in 0..system.mechanism().contacts.len() {
        outputs.extend([
            Quantity::Gap(c),
            Quantity::NormalForce(c),
            Quantity::Friction(c),
        ]);
    }
    for (joint, direction) in system.mechanism().coordinates() {
        outputs.push(Quantity::LimitForce { joint, direction });
        outputs.push(Quantity::JointFriction { joint, direction });
    }
    (system.with_outputs(outputs), q, rates)
}

/// All of these, by either discrete Lagrangian, contacts smooth.
pub(super) fn of_both_lagrangians() -> impl Iterator<Item = Sample> {
    let each = [Lagrangian::Split, Lagrangian::Screw].into_iter();
    each.flat_map(|of| {
        let all = trees().chain(on_ground(SMOOTH, false));
        all.map(move |(s, q, rates)| (s.with_lagrangian(of), q, rates))
    })
}

pub(super) fn contact_options(central_path: f64, warm: bool) -> Options {
    let mut options = options();
    options.contact.central_path = central_path;
    (options.contact.warm, options.contact.centred) = (warm, 1e-10);
    // rounding of gaps is more than that of a step without
    options.tolerance = 1e-11;
    options
}

/// A step from the start, or after some with uneven intervals: knot, state, control, and its unknowns and next state.
pub(super) type Made = (Knot, Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>);

pub(super) fn made<S: Mechanical>(s: &S, q: &[f64], rates: &[f64], intervals: &[f64]) -> Made {
    let d = s.dims();
    let (mut w, p) = (s.work(), values(s));
    let (mut x, mut y) = (vec![0.0; d.nx], vec![0.0; d.ny]);
    s.initial(&Start::at_rates(q, rates), &p, &mut w, &mut x)
        .expect("starts");
    let u = Source::new(1).vector(d.nu, 0.5);
    let mut at = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h: 0.0,
    };
    let mut next = x.clone();
    for (k, &h) in intervals.iter().enumerate() {
        if k > 0 {
            x.copy_from_slice(&next);
            at = Knot {
                k,
                t: at.t + at.h,
                h_prev: at.h,
                h,
            };
        }
        at.h = h;
        s.step(&at, &x, &u, &p, &mut w, &mut next, &mut y)
            .expect("steps");
    }
    (at, x, u, y, next)
}

pub(super) fn values(s: &impl Step) -> Vec<f64> {
    s.parameters().iter().map(|p| p.value).collect()
}

pub(super) const START: &[f64] = &[0.02];
pub(super) const MOVING: &[f64] = &[0.02, 0.016, 0.022, 0.02];
