//! Every quantity's adjoints and its derivatives by the mechanism's numbers against differences, at velocities and
//! reactions of no particular motion: a quantity is a function of what is known, whatever integrator it comes from.

use super::*;
use crate::mechanism::samples::{Source, tree};
use crate::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, Freedom, HalfSpaceSpec, JointKind, JointSpec,
    MechanismBuilder, Surface, WrenchFrame,
    element_samples::{Line, Rubber},
};
use crate::spatial::exp;
use nalgebra::DVector;
use std::sync::Arc;

/// What is known, as numbers that may change.
#[derive(Clone)]
struct Situation {
    q: Vec<f64>,
    before: Vec<f64>,
    velocities: Vec<f64>,
    initial: Vec<f64>,
    controls: Vec<f64>,
    reactions: Vec<f64>,
    h_prev: f64,
    part: f64,
    h: f64,
}

impl Situation {
    fn new(m: &Mechanism, s: &mut Source, start: bool) -> Self {
        let (n, bodies) = (m.tree_ids().len(), 6 * m.bodies.len());
        let q = s.vector(n, 0.6);
        let step = s.vector(n, 0.1);
        Self {
            before: q.iter().zip(step).map(|(q, d)| q + d).collect(),
            q,
            velocities: s.vector(bodies, 1.0),
            initial: s.vector(bodies, 1.0),
            controls: s.vector(m.actuators.len(), 1.0),
            reactions: s.vector(m.reaction_count(), 1.0),
            h_prev: if start { 0.0 } else { 0.03 },
            part: 0.4,
            h: 0.02,
        }
    }

    /// With poses of a mechanism that may have other numbers than the one that is looked at.
    fn with<T>(&self, m: &Mechanism, posed: &Mechanism, f: impl FnOnce(&KnotData) -> T) -> T {
        let (poses, before) = (posed.forward(&self.q), posed.forward(&self.before));
        let mut windings = vec![0.0; m.joints.len()];
        for (&(j, i), q) in m.tree_ids().iter().zip(&self.q) {
            if m.joints[j].directions[i].freedom == Freedom::Angle {
                windings[j] = *q;
            }
        }
        f(&KnotData {
            mechanism: m,
            poses: &poses,
            velocities: &self.velocities,
            past: if self.h_prev == 0.0 {
                Past::Start(&self.initial)
            } else {
                Past::Poses(&before)
            },
            before: &[],
            windings: &windings,
            controls: &self.controls,
            reactions: &self.reactions,
            h_prev: self.h_prev,
            part: self.part,
            h: self.h,
        })
    }
}

fn derivative(e: f64, f: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (f(e) - f(-e)) - (f(2.0 * e) - f(-2.0 * e))) / (12.0 * e)
}

/// Trees that together hold every kind of joint, and bodies in contact with each other and with the ground.
fn mechanisms() -> Vec<Mechanism> {
    let mut out = vec![];
    for seed in 0..8_usize {
        let mut s = Source::new(seed as u64);
        let mut kinds = vec![JointKind::ALL[2 * seed], JointKind::ALL[2 * seed + 1]];
        kinds.extend((0..2).map(|_| JointKind::ALL[s.below(16)]));
        let rubber = Rubber(Line(s.vec3(), s.vec3()), 2.0, 0.3);
        let m = tree(seed as u64, &kinds).potential("rubber", &["b0", "b3"], Arc::new(rubber));
        // a control whose effort is cut, at some of the situations
        let cut = ActuatorSpec::wrench("b1", s.array3(), WrenchFrame::World, s.array3());
        let m = m.actuator("cut", cut.gain(1.3).effort_limits(-0.3, 0.4));
        out.push(m.build().expect("valid"));
    }
    let mut s = Source::new(20);
    let mut body = |surface| {
        let contact = ContactSpec::new(0.4)
            .shape(surface)
            .at((s.vec3() * 0.3).into())
            .group("bodies", &["ground", "bodies"]);
        BodySpec::new(1.5)
            .inertia([0.3, 0.4, 0.5])
            .free()
            .contact("c", contact)
    };
    let ground = HalfSpaceSpec {
        normal: [0.3, -0.2, 1.1],
        offset: -1.4,
        friction: Some(0.9),
        ..HalfSpaceSpec::default()
    };
    let touching = MechanismBuilder::new()
        .body("a", body(Surface::Sphere(0.13)))
        .body("b", body(Surface::Sphere(0.2)))
        .half_space("floor", ground);
    out.push(touching.build().expect("valid"));
    out
}

fn all(m: &Mechanism) -> Vec<Quantity> {
    let mut out = vec![];
    for (joint, direction) in m.coordinates() {
        out.extend([
            Quantity::Coordinate { joint, direction },
            Quantity::Rate { joint, direction },
            Quantity::IntervalRate { joint, direction },
            Quantity::LastRate {
                joint,
                direction,
                share: 0.3,
            },
            Quantity::LimitForce { joint, direction },
            Quantity::JointFriction { joint, direction },
            Quantity::SpringForce(ForceOf::Coordinate((joint, direction))),
            Quantity::DamperForce(ForceOf::Coordinate((joint, direction))),
        ]);
    }
    for s in 0..m.springs.len() {
        out.extend([
            Quantity::SpringForce(ForceOf::Spring(s)),
            Quantity::DamperForce(ForceOf::Spring(s)),
        ]);
    }
    let joints = (0..m.joints.len()).map(PowerOf::Joint);
    for of in joints.chain((0..m.springs.len()).map(PowerOf::Spring)) {
        out.extend([Quantity::SpringPower(of), Quantity::DamperPower(of)]);
    }
    out.extend((0..m.actuators.len()).map(Quantity::ControlPower));
    let (point, axis) = (Vec3::new(0.1, -0.3, 0.2), Vec3::new(0.6, 0.0, 0.8));
    let target = exp(&Vec3::new(0.3, -0.2, 0.5));
    for body in 0..m.bodies.len() {
        out.extend([
            Quantity::Position { body, point, axis },
            Quantity::Velocity { body, point, axis },
            Quantity::Orientation { body, target, axis },
        ]);
        out.extend([false, true].map(|in_body| Quantity::AngularVelocity {
            body,
            axis,
            in_body,
        }));
    }
    out.extend((0..m.actuators.len()).map(Quantity::Control));
    out.extend([
        Quantity::CenterOfMass(axis),
        Quantity::CenterOfMassVelocity(axis),
        Quantity::LinearMomentum(axis),
        Quantity::KineticEnergy,
        Quantity::PotentialEnergy,
        Quantity::Energy,
    ]);
    let about = [About::Origin, About::CenterOfMass];
    out.extend(about.map(|about| Quantity::AngularMomentum { axis, about }));
    for joint in 0..m.joints.len() {
        let kinds = [Reaction::Force, Reaction::Torque];
        out.extend(kinds.map(|kind| Quantity::Constraint { joint, kind, axis }));
    }
    for c in 0..m.contacts.len() {
        out.extend([
            Quantity::Gap(c),
            Quantity::NormalForce(c),
            Quantity::Friction(c),
            Quantity::Slip(c),
        ]);
    }
    out
}

#[test]
fn adjoints_match_differences() {
    for (seed, m) in mechanisms().iter().enumerate() {
        for start in [true, false] {
            let here = Situation::new(m, &mut Source::new(seed as u64), start);
            for quantity in all(m) {
                let (name, _) = quantity.name(m);
                let mut adjoint = Adjoint::new(m);
                here.with(m, m, |k| quantity.pull(k, 0.7, &mut adjoint));
                let compare =
                    |what: &str, exact: &[f64], change: &dyn Fn(&mut Situation, usize, f64)| {
                        for (i, exact) in exact.iter().enumerate() {
                            let numeric = derivative(1e-3, |e| {
                                let mut s = here.clone();
                                change(&mut s, i, e);
                                0.7 * s.with(m, m, |k| quantity.value(k))
                            });
                            let error = (exact - numeric).abs() / numeric.abs().max(1.0);
                            assert!(
                                error < 1e-7,
                                "{name} by {what} {i}, start {start}: {exact} {numeric}"
                            );
                        }
                    };
                let along = |q: &[f64], adjoint: &[f64]| {
                    let basis = m.tree_basis(&m.forward(q));
                    let d = basis.tr_mul(&DVector::from_column_slice(adjoint));
                    d.as_slice().to_vec()
                };
                // rates of the tree, which for several rotations are not those of the coordinates
                let move_along = |q: &mut [f64], i: usize, e: f64| {
                    let mut d = vec![0.0; q.len()];
                    d[i] = e;
                    m.move_coordinates(q, &d);
                };
                let by_poses = along(&here.q, &adjoint.poses);
                compare("q", &by_poses, &|s, i, e| move_along(&mut s.q, i, e));
                compare("velocity", &adjoint.velocities, &|s, i, e| {
                    s.velocities[i] += e
                });
                compare("control", &adjoint.controls, &|s, i, e| s.controls[i] += e);
                compare("reaction", &adjoint.reactions, &|s, i, e| {
                    s.reactions[i] += e
                });
                compare("h", &[adjoint.h * here.h], &|s, _, e| s.h *= 1.0 + e);
                if start {
                    compare("start", &adjoint.past, &|s, i, e| s.initial[i] += e);
                } else {
                    let past = along(&here.before, &adjoint.past);
                    compare("before", &past, &|s, i, e| move_along(&mut s.before, i, e));
                    let by = [adjoint.h_prev * here.h_prev];
                    compare("h_prev", &by, &|s, _, e| s.h_prev *= 1.0 + e);
                }
            }
        }
    }
}

#[test]
fn derivatives_by_the_mechanism_s_numbers_match_differences() {
    for (seed, m) in mechanisms().iter().enumerate() {
        for start in [true, false] {
            let here = Situation::new(m, &mut Source::new(seed as u64), start);
            for (path, field) in m.fields() {
                for quantity in all(m) {
                    let value = |e: f64| {
                        let mut other = m.clone();
                        other.set(field, m.get(field) + e);
                        here.with(&other, m, |k| quantity.value(k))
                    };
                    let numeric = derivative(1e-3, value);
                    let exact = here.with(m, m, |k| quantity.by_field(k, field));
                    let error = (exact - numeric).abs() / numeric.abs().max(1.0);
                    let name = quantity.name(m).0;
                    assert!(error < 1e-8, "{name} by {path}: {exact} {numeric}");
                }
            }
        }
    }
}

#[test]
fn reactions_stand_side_by_side() {
    for m in mechanisms() {
        let joints = (0..m.joints.len()).map(ReactionSource::Joint);
        let contacts = (0..m.contacts.len()).map(ReactionSource::Contact);
        let limits = (0..m.coordinates().count()).map(ReactionSource::Limit);
        let friction = (0..m.coordinates().count()).map(ReactionSource::Friction);
        let mut next = 0;
        for of in joints.chain(contacts).chain(limits).chain(friction) {
            let own = m.reactions(of);
            assert_eq!(own.start, next, "{of:?}");
            next = own.end;
        }
        assert_eq!(next, m.reaction_count());
    }
}

/// Of a hinge: with damping, without, and without where a parameter gives it.
#[test]
fn dampers_without_damping_need_no_velocities() {
    let hinge = |damping: f64, is_parameter: bool| {
        let joint = JointSpec::new(JointKind::Revolute, "a")
            .axis([0.0, 1.0, 0.0])
            .damping(damping);
        let m = MechanismBuilder::new()
            .body("a", BodySpec::new(1.0).inertia([1.0; 3]))
            .joint("hinge", joint);
        let m = match is_parameter {
            true => m.parameter("d", &["joints.hinge.damping"]),
            false => m,
        };
        m.build().expect("valid")
    };
    let force = Quantity::DamperForce(ForceOf::Coordinate((0, 0)));
    let needs = |m: &Mechanism| force.needs_of(m).velocities;
    assert!(needs(&hinge(0.3, false)) && needs(&hinge(0.0, true)));
    let m = hinge(0.0, false);
    assert!(!needs(&m) && force.needs().velocities);
    // whatever they are
    let mut here = Situation::new(&m, &mut Source::new(1), false);
    here.velocities.fill(f64::NAN);
    let value = here.with(&m, &m, |k| {
        let mut adjoint = Adjoint::new(&m);
        force.pull(k, 1.0, &mut adjoint);
        assert!(adjoint.velocities.iter().all(|v| *v == 0.0));
        assert_eq!(force.by_field(k, Field::Stiffness((0, 0))), 0.0);
        force.value(k)
    });
    assert_eq!(value, 0.0);
}
