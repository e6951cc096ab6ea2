//! Quantities of a state that costs, constraints, figures and files may see, with their derivatives.

use super::assembly::{add_wrench, dot, vec3};
use super::{Maximal, Work};
use crate::dynamics::{Inputs, Knot, Seen, StepError};
use crate::mechanism::{Coupling, Freedom, Joint, Vec6};
use crate::spatial::Vec3;

/// Something to observe at a knot. Velocities and rates are those at the knot, second order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// A joint coordinate, angles unwound.
    Coordinate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// Its rate.
    Rate {
        /// Index of the joint.
        joint: usize,
        /// Free direction of the joint.
        direction: usize,
    },
    /// A control.
    Control(usize),
    /// World position of a point of a body along an axis, m.
    Position {
        /// Index of the body.
        body: usize,
        /// In the body frame, from the centre of mass, m.
        point: Vec3,
        /// Unit vector in the world.
        axis: Vec3,
    },
    /// World velocity of a point of a body along an axis, m/s.
    Velocity {
        /// Index of the body.
        body: usize,
        /// In the body frame, from the centre of mass, m.
        point: Vec3,
        /// Unit vector in the world.
        axis: Vec3,
    },
}

impl Output {
    /// Does its value need the velocities at the knot?
    fn moves(&self) -> bool {
        matches!(self, Self::Rate { .. } | Self::Velocity { .. })
    }
}

impl Maximal {
    /// Name and unit of an output.
    pub fn output_name(&self, output: &Output) -> (String, String) {
        let m = &self.mechanism;
        let along = |axis: &Vec3| match axis.iamax() {
            _ if axis.amax() < 1.0 => "along an axis",
            0 => "x",
            1 => "y",
            _ => "z",
        };
        match *output {
            Output::Coordinate { joint, direction } => (
                m.coordinate_name((joint, direction)),
                m.joints[joint].directions[direction].unit_name().into(),
            ),
            Output::Rate { joint, direction } => (
                format!("{} rate", m.coordinate_name((joint, direction))),
                format!("{}/s", m.joints[joint].directions[direction].unit_name()),
            ),
            Output::Control(i) => (m.actuators[i].name.clone(), self.control_unit(i).into()),
            Output::Position { body, axis, .. } => (
                format!("position of {} {}", m.bodies[body].name, along(&axis)),
                "m".into(),
            ),
            Output::Velocity { body, axis, .. } => (
                format!("velocity of {} {}", m.bodies[body].name, along(&axis)),
                "m/s".into(),
            ),
        }
    }

    /// Unit of a control.
    pub fn control_unit(&self, i: usize) -> &'static str {
        match self.mechanism.actuators[i].drive {
            crate::mechanism::Drive::Joint { joint, direction } => {
                self.mechanism.joints[joint].directions[direction].force_unit()
            }
            // the control scales a wrench
            crate::mechanism::Drive::Wrench { .. } => "1",
        }
    }

    pub(super) fn observe_at(
        &self,
        seen: &Seen,
        which: &[usize],
        w: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let (at, x, u) = (&seen.at, seen.x, seen.u);
        if which.iter().any(|&i| self.outputs[i].moves()) {
            self.readout(at, x, u, w)?;
        } else {
            self.prepare(&Knot { h: 0.0, ..*at }, x, u, w)?;
        }
        let m = &w.model;
        for (&i, out) in which.iter().zip(out) {
            *out = match self.outputs[i] {
                Output::Coordinate { joint, direction } => {
                    let winding = self.winding(x, joint);
                    m.joints[joint].coordinate(direction, &w.relative[joint], winding)
                }
                Output::Rate { joint, direction } => {
                    let j = &m.joints[joint];
                    let (a, b) = m.ends(j, &w.poses);
                    let row = j.direction_row(direction, a, b, &w.relative[joint]);
                    dot(&w.trial, j.parent, j.child, &row)
                }
                Output::Control(i) => u[i],
                Output::Position { body, point, axis } => axis.dot(&w.poses[body].point(&point)),
                Output::Velocity { body, point, axis } => {
                    let (v, omega) = (vec3(&w.trial, 6 * body), vec3(&w.trial, 6 * body + 3));
                    axis.dot(&(v + w.poses[body].r * omega.cross(&point)))
                }
            };
        }
        Ok(())
    }

    /// Adjoints at the knot that [`Maximal::observe_at`] was last called for: its poses, velocities and factors are in `w`.
    pub(super) fn observe_pull_at(
        &self,
        _seen: &Seen,
        which: &[usize],
        w: &mut Work,
        adjoint: &[f64],
        out: &mut Inputs,
        _y: &mut [f64],
    ) {
        let (m, n) = (&w.model, 6 * self.body_count());
        // adjoints of the velocities at the knot
        let mut readout = std::mem::take(&mut w.readout);
        readout.y.fill(0.0);
        let velocity = &mut readout.y[..n];
        for (&i, &g) in which.iter().zip(adjoint) {
            match self.outputs[i] {
                Output::Coordinate { joint, direction } => {
                    let j = &m.joints[joint];
                    let (a, b) = m.ends(j, &w.poses);
                    let row = j.coordinate_row(direction, a, b, &w.relative[joint]);
                    add_wrench(&mut out.x, j.parent, j.child, &row, g);
                }
                Output::Rate { joint, direction } => {
                    let j = &m.joints[joint];
                    let (a, b) = m.ends(j, &w.poses);
                    let row = j.direction_row(direction, a, b, &w.relative[joint]);
                    add_wrench(velocity, j.parent, j.child, &row, g);
                    let mut turn = Coupling::default();
                    let unit = j.directions[direction].unit * g;
                    if j.directions[direction].freedom == Freedom::Slide {
                        j.add_force_derivative(&unit, a, b, &w.relative[joint], &mut turn);
                    } else {
                        Joint::add_torque_derivative(&unit, a, b, &mut turn);
                    }
                    let motion = |b: usize| Vec6::from_column_slice(&w.trial[6 * b..6 * b + 6]);
                    let vb = motion(j.child);
                    let (mut on_a, mut on_b) = (turn.ba.0.tr_mul(&vb), turn.bb.0.tr_mul(&vb));
                    if let Some(p) = j.parent {
                        let va = motion(p);
                        on_a += turn.aa.0.tr_mul(&va);
                        on_b += turn.ab.0.tr_mul(&va);
                        add(&mut out.x[6 * p..], on_a.as_slice());
                    }
                    add(&mut out.x[6 * j.child..], on_b.as_slice());
                }
                Output::Control(i) => out.u[i] += g,
                Output::Position { body, point, axis } => {
                    let force = axis * g;
                    add(&mut out.x[6 * body..], force.as_slice());
                    let turn = point.cross(&w.poses[body].r.tr_mul(&force));
                    add(&mut out.x[6 * body + 3..], turn.as_slice());
                }
                Output::Velocity { body, point, axis } => {
                    let local = w.poses[body].r.tr_mul(&(axis * g));
                    let omega = vec3(&w.trial, 6 * body + 3);
                    add(&mut velocity[6 * body..], (axis * g).as_slice());
                    add(
                        &mut velocity[6 * body + 3..],
                        point.cross(&local).as_slice(),
                    );
                    let turn = omega.cross(&point).cross(&local);
                    add(&mut out.x[6 * body + 3..], turn.as_slice());
                }
            }
        }
        if velocity.iter().any(|v| *v != 0.0) {
            // the read-out left its solution and its factors
            let mut d = std::mem::take(&mut w.observed);
            self.pull_through(w, &readout, &mut d);
            add(&mut out.x, &d.x);
            add(&mut out.u, &d.u);
            add(&mut out.p, &d.p);
            out.h_prev += d.h_prev;
            w.observed = d;
        }
        w.readout = readout;
    }
}

fn add(out: &mut [f64], d: &[f64]) {
    for (o, d) in out.iter_mut().zip(d) {
        *o += d;
    }
}
