//! How quantities depend on the mechanism's numbers at a given state and given velocities. What comes through the
//! velocities at the knot is part of the read-out's derivative.

use super::super::assembly::vec3;
use super::super::{Maximal, Work};
use super::{About, Output, whole};
use crate::mechanism::{Field, Freedom};
use crate::spatial::Vec3;

impl Maximal {
    /// Adds to the adjoints of the parameters those of the quantities in `which`.
    pub(super) fn pull_parameters(
        &self,
        w: &Work,
        which: &[usize],
        adjoint: &[f64],
        p: &mut [f64],
    ) {
        for (p, tuned) in p.iter_mut().zip(&self.mechanism.parameters) {
            for field in &tuned.fields {
                for (&i, &g) in which.iter().zip(adjoint) {
                    if g != 0.0 {
                        *p += g * self.output_by_field(w, &self.outputs[i], *field);
                    }
                }
            }
        }
    }

    /// Derivative of an output by a field.
    pub(super) fn output_by_field(&self, w: &Work, output: &Output, field: Field) -> f64 {
        match *output {
            Output::Coordinate { joint, direction } => {
                self.coordinate_by(w, joint, direction, field)
            }
            Output::Rate { joint, direction } => rate_by(w, joint, direction, field),
            Output::IntervalRate { joint, direction } => {
                interval_rate_by(w, joint, direction, field)
            }
            Output::CenterOfMass(axis) => match field {
                Field::Mass(b) => {
                    axis.dot(&(w.poses[b].x - whole::center_of_mass(w))) / w.model.mass()
                }
                _ => 0.0,
            },
            Output::CenterOfMassVelocity(axis) => match field {
                Field::Mass(b) => {
                    let mass = w.model.mass();
                    let drift = whole::linear_momentum(w) / mass;
                    axis.dot(&(vec3(&w.trial, 6 * b) - drift)) / mass
                }
                _ => 0.0,
            },
            Output::LinearMomentum(axis) => match field {
                Field::Mass(b) => axis.dot(&vec3(&w.trial, 6 * b)),
                _ => 0.0,
            },
            Output::AngularMomentum { axis, about } => angular_momentum_by(w, &axis, about, field),
            Output::KineticEnergy => kinetic_energy_by(w, field),
            Output::PotentialEnergy => self.potential_energy_by(w, field),
            Output::Energy => kinetic_energy_by(w, field) + self.potential_energy_by(w, field),
            Output::Gap(c) => self.gap_by(w, c, field),
            Output::Slip(c) => self.slip_by(w, c, field),
            // at given unknowns the forces are what they are
            Output::Constraint { .. }
            | Output::NormalForce(_)
            | Output::Friction(_)
            | Output::Control(_)
            | Output::Position { .. }
            | Output::Velocity { .. }
            | Output::Orientation { .. }
            | Output::AngularVelocity { .. } => 0.0,
        }
    }

    fn coordinate_by(&self, w: &Work, joint: usize, direction: usize, field: Field) -> f64 {
        let j = &w.model.joints[joint];
        let d = &j.directions[direction];
        if d.freedom != Freedom::Slide {
            return 0.0;
        }
        match field {
            Field::ParentAnchor(of, k) if of == joint => -d.unit[k],
            Field::ChildAnchor(of, k) if of == joint => {
                let (a, b) = w.model.ends(j, &w.poses);
                d.unit.dot(&j.arm_by_child_anchor(&unit(k), a, b))
            }
            _ => 0.0,
        }
    }

    fn potential_energy_by(&self, w: &Work, field: Field) -> f64 {
        let m = &w.model;
        // stretch of a joint's spring
        let stretch = |joint: usize, i: usize| {
            let j = &m.joints[joint];
            j.coordinate(i, &w.relative[joint], self.winding_in(w, joint)) - j.directions[i].rest
        };
        let ends = |s: usize| {
            let s = &m.springs[s];
            (s, m.pose(&w.poses, s.parent), &w.poses[s.child])
        };
        // stretch of a spring between points
        let line = |s: usize| {
            let (s, a, b) = ends(s);
            s.length(a, b) - s.rest
        };
        let by_anchor = |s: usize, k: usize, parent: bool| {
            let (spring, a, b) = ends(s);
            spring.stiffness * line(s) * spring.length_by_anchor(&unit(k), parent, a, b)
        };
        match field {
            Field::Mass(b) => -m.gravity.dot(&w.poses[b].x),
            Field::Gravity(k) => -m.mass() * whole::center_of_mass(w)[k],
            Field::Stiffness((j, i)) => 0.5 * stretch(j, i).powi(2),
            Field::Rest((j, i)) => -m.joints[j].directions[i].stiffness * stretch(j, i),
            Field::ParentAnchor(joint, _) | Field::ChildAnchor(joint, _) => {
                let own = m.joints[joint].directions.iter().enumerate();
                own.map(|(i, d)| match d.stiffness {
                    0.0 => 0.0,
                    k => k * stretch(joint, i) * self.coordinate_by(w, joint, i, field),
                })
                .sum()
            }
            Field::SpringStiffness(s) => 0.5 * line(s).powi(2),
            Field::SpringRest(s) => -m.springs[s].stiffness * line(s),
            Field::SpringParentAnchor(s, k) => by_anchor(s, k, true),
            Field::SpringChildAnchor(s, k) => by_anchor(s, k, false),
            _ => 0.0,
        }
    }
}

/// The component of the child's anchor that a field is, if the direction slides: it alone moves a rate.
fn sliding(w: &Work, joint: usize, direction: usize, field: Field) -> Option<Vec3> {
    let d = &w.model.joints[joint].directions[direction];
    match field {
        Field::ChildAnchor(of, k) if of == joint && d.freedom == Freedom::Slide => Some(unit(k)),
        _ => None,
    }
}

fn rate_by(w: &Work, joint: usize, direction: usize, field: Field) -> f64 {
    let Some(e) = sliding(w, joint, direction, field) else {
        return 0.0;
    };
    let j = &w.model.joints[joint];
    let spin = |b: usize| vec3(&w.trial, 6 * b + 3);
    let ends = w.model.ends(j, &w.poses);
    j.rate_by_child_anchor(&j.directions[direction].unit, &e, ends, spin)
}

fn interval_rate_by(w: &Work, joint: usize, direction: usize, field: Field) -> f64 {
    let Some(e) = sliding(w, joint, direction, field) else {
        return 0.0;
    };
    let j = &w.model.joints[joint];
    let d = &j.directions[direction].unit;
    let (a, b) = w.model.ends(j, &w.poses);
    if w.at.before().is_none() {
        let spin = |b: usize| vec3(&w.before, 6 * b + 3);
        return j.rate_by_child_anchor(d, &e, (a, b), spin);
    }
    let (a0, b0, _) = Maximal::ends_before(j, w);
    let moved = j.arm_by_child_anchor(&e, a, b) - j.arm_by_child_anchor(&e, &a0, &b0);
    d.dot(&moved) / w.at.h_prev
}

fn unit(k: usize) -> Vec3 {
    Vec3::from_fn(|i, _| f64::from(u8::from(i == k)))
}

/// `a' (dJ/d field) b` of a body's inertia.
fn inertia_by(i: usize, k: usize, a: &Vec3, b: &Vec3) -> f64 {
    if i == k {
        a[i] * b[i]
    } else {
        a[i] * b[k] + a[k] * b[i]
    }
}

fn kinetic_energy_by(w: &Work, field: Field) -> f64 {
    match field {
        Field::Mass(b) => 0.5 * vec3(&w.trial, 6 * b).norm_squared(),
        Field::Inertia(b, i, k) => {
            let omega = vec3(&w.trial, 6 * b + 3);
            0.5 * inertia_by(i, k, &omega, &omega)
        }
        _ => 0.0,
    }
}

fn angular_momentum_by(w: &Work, axis: &Vec3, about: About, field: Field) -> f64 {
    match field {
        Field::Mass(b) => {
            let drift = match about {
                About::Origin => Vec3::zeros(),
                About::CenterOfMass => whole::linear_momentum(w) / w.model.mass(),
            };
            let arm = w.poses[b].x - whole::reference(w, about);
            axis.dot(&arm.cross(&(vec3(&w.trial, 6 * b) - drift)))
        }
        Field::Inertia(b, i, k) => {
            let local = w.poses[b].r.tr_mul(axis);
            inertia_by(i, k, &local, &vec3(&w.trial, 6 * b + 3))
        }
        _ => 0.0,
    }
}
