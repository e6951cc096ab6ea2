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
                        *p += g * self.by_field(w, &self.outputs[i], *field);
                    }
                }
            }
        }
    }

    /// Derivative of an output by a field.
    pub(super) fn by_field(&self, w: &Work, output: &Output, field: Field) -> f64 {
        match *output {
            Output::Coordinate { joint, direction } => {
                self.coordinate_by(w, joint, direction, field)
            }
            Output::Rate { joint, direction } => rate_by(w, joint, direction, field),
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
            // at given unknowns the forces are what they are
            Output::Constraint { .. }
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
                d.unit.dot(&a.r.tr_mul(&b.r.column(k).into_owned()))
            }
            _ => 0.0,
        }
    }

    fn potential_energy_by(&self, w: &Work, field: Field) -> f64 {
        let m = &w.model;
        // stretch of a joint's spring
        let stretch = |joint: usize, i: usize| {
            let j = &m.joints[joint];
            let winding = self.winding_of[joint].map_or(0.0, |i| w.winding[i]);
            j.coordinate(i, &w.relative[joint], winding) - j.directions[i].rest
        };
        // stretch of a spring between points, and the derivative of its length by the child's end
        let line = |s: usize| {
            let s = &m.springs[s];
            let (a, b) = (m.pose(&w.poses, s.parent), &w.poses[s.child]);
            (s.length(a, b) - s.rest, s.length_row(a, b).force)
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
            Field::SpringStiffness(s) => 0.5 * line(s).0.powi(2),
            Field::SpringRest(s) => -m.springs[s].stiffness * line(s).0,
            Field::SpringParentAnchor(s, k) => {
                let (stretch, n) = line(s);
                let a = m.pose(&w.poses, m.springs[s].parent);
                -m.springs[s].stiffness * stretch * n.dot(&a.r.column(k))
            }
            Field::SpringChildAnchor(s, k) => {
                let (stretch, n) = line(s);
                let b = &w.poses[m.springs[s].child];
                m.springs[s].stiffness * stretch * n.dot(&b.r.column(k))
            }
            _ => 0.0,
        }
    }
}

/// A slide's rate is that of the child's anchor, seen from the parent.
fn rate_by(w: &Work, joint: usize, direction: usize, field: Field) -> f64 {
    let m = &w.model;
    let j = &m.joints[joint];
    let d = &j.directions[direction];
    let k = match field {
        Field::ChildAnchor(of, k) if of == joint && d.freedom == Freedom::Slide => k,
        _ => return 0.0,
    };
    let (a, b) = m.ends(j, &w.poses);
    let spin = |b: usize| vec3(&w.trial, 6 * b + 3);
    let force = a.r * d.unit;
    let mut unit = Vec3::zeros();
    unit[k] = 1.0;
    let on_child = unit.cross(&b.r.tr_mul(&force)).dot(&spin(j.child));
    let arm = a.r.tr_mul(&b.r.column(k).into_owned());
    let on_parent = j.parent.map_or(0.0, |p| d.unit.cross(&arm).dot(&spin(p)));
    on_child + on_parent
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
