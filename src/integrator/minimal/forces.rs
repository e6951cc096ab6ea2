//! What acts at a knot: gravity, springs and actuators on bodies, springs, dampers and actuators along joints.

use super::Minimal;
use super::local::spring_efforts;
use super::work::Work;
use crate::dynamics::Knot;
use crate::mechanism::{Coupling, Drive, Mat6, Row, Vec6};
use crate::spatial::Vec3;

impl Minimal {
    /// Forces, at a knot that is located, and with them everything that does not depend on the unknowns.
    pub(super) fn push_forces(&self, at: &Knot, x: &[f64], u: &[f64], w: &mut Work) {
        let half = 0.5 * (at.h_prev + at.h);
        w.h_prev = at.h_prev;
        for k in &mut w.knot {
            k.force = (w.model.gravity * k.mass, Vec3::zeros());
        }
        self.push_joints(x, w);
        self.push_points(u, w);
        self.push_potentials(w);
        let mut base = std::mem::take(&mut w.base);
        for (base, effort) in base.iter_mut().zip(&w.efforts) {
            *base = half * effort;
        }
        self.damp_before(at, x, w, &mut base);
        w.base = base;
        for (k, [past, _]) in w.knot.iter_mut().zip(&w.momenta) {
            k.base = (past.0 + k.force.0 * half, past.1 + k.force.1 * half);
        }
        self.damp_lines_before(at, w);
    }

    /// Efforts of springs along joints.
    fn push_joints(&self, x: &[f64], w: &mut Work) {
        let mut efforts = std::mem::take(&mut w.efforts);
        efforts.fill(0.0);
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            if k.is_sprung {
                let j = &w.model.joints[node.joint];
                let own = &mut efforts[node.directions()];
                let at = (&x[node.place..], self.winding_of(node, x));
                spring_efforts(j, node, k, at, |i, effort| own[i] += effort);
            }
        }
        w.efforts = efforts;
    }

    /// Impulses of dampers for the interval before.
    fn damp_before(&self, at: &Knot, x: &[f64], w: &Work, base: &mut [f64]) {
        if at.h_prev == 0.0 {
            return;
        }
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            if k.is_damped {
                let (own, share) = (&mut base[node.directions()], node.damper.before());
                let before = &x[self.positions..];
                self.damped(w, node, k, before, at.h_prev, |r, damping, along| {
                    own[r] -= damping * share * along;
                });
            }
        }
    }

    /// The unwound angle of a joint that has one.
    pub(super) fn winding_of(&self, node: &super::Node, x: &[f64]) -> f64 {
        if node.turns == 1 {
            x[node.turn().start]
        } else {
            0.0
        }
    }

    /// Place of a driven direction among all.
    pub(super) fn driven_direction(&self, joint: usize, direction: usize) -> usize {
        self.nodes[self.node_of_joint[joint]].first + direction
    }

    /// Wrenches of springs between points, and of actuators.
    fn push_points(&self, u: &[f64], w: &mut Work) {
        let m = &w.model;
        for s in &m.springs {
            let row = s.spring_wrench(m.pose(&w.poses, s.parent), &w.poses[s.child]);
            each_end(
                self,
                w.poses.as_slice(),
                (s.parent, s.child),
                &row,
                |n, f, t| {
                    w.knot[n].force.0 += f;
                    w.knot[n].force.1 += t;
                },
            );
        }
        for (i, (a, u)) in m.actuators.iter().zip(u).enumerate() {
            let (effort, slope) = a.exerted(*u);
            w.controls[i] = (effort, slope);
            if w.relaxed > 0.0 {
                w.controls[i].1 = a.relaxed_slope(*u, w.relaxed);
            }
            if let Drive::Joint { joint, direction } = a.drive {
                w.efforts[self.driven_direction(joint, direction)] += a.gain * effort;
                continue;
            }
            let (parent, child) = m.driven(a);
            let row = a.row(&m.joints, (m.pose(&w.poses, parent), &w.poses[child]));
            each_end(
                self,
                w.poses.as_slice(),
                (parent, child),
                &row,
                |n, f, t| {
                    w.knot[n].force.0 += f * effort;
                    w.knot[n].force.1 += t * effort;
                },
            );
        }
    }

    /// Wrenches of potentials.
    fn push_potentials(&self, w: &mut Work) {
        for p in &w.model.potentials {
            let n = p.bodies.len();
            w.gathered.clear();
            w.gathered.extend(p.bodies.iter().map(|b| w.poses[*b]));
            w.gradient.resize(n, Vec6::zeros());
            p.gradient(&w.gathered, &mut w.gradient[..n]);
            for (b, six) in p.bodies.iter().zip(&w.gradient) {
                let (force, torque) = to_world(&w.poses[*b].r, six);
                let on = &mut w.knot[self.node_of[*b]].force;
                on.0 -= force;
                on.1 -= torque;
            }
        }
    }

    /// How the wrenches of springs, actuators and potentials on bodies change with these.
    pub(super) fn couple(&self, w: &mut Work) {
        let m = &w.model;
        let node = |b: usize| self.node_of[b];
        w.couplings.clear();
        let mut add = |parent: Option<usize>, child: usize, c: &Coupling| {
            let child = node(child);
            w.couplings.push((child, child, c.bb.0));
            if let Some(parent) = parent.map(node) {
                w.couplings.push((child, parent, c.ba.0));
                w.couplings.push((parent, child, c.ab.0));
                w.couplings.push((parent, parent, c.aa.0));
            }
        };
        for s in &m.springs {
            let mut c = Coupling::default();
            let (a, b) = (m.pose(&w.poses, s.parent), &w.poses[s.child]);
            s.add_derivative(1.0, 0.0, a, b, &mut c);
            add(s.parent, s.child, &c);
        }
        for (a, (effort, _)) in m.actuators.iter().zip(&w.controls) {
            if matches!(a.drive, Drive::Wrench { .. }) {
                let mut c = Coupling::default();
                let (parent, child) = m.driven(a);
                let ends = (m.pose(&w.poses, parent), &w.poses[child]);
                a.add_derivative(*effort, &m.joints, ends, &mut c);
                add(parent, child, &c);
            }
        }
        for p in &m.potentials {
            let n = p.bodies.len();
            w.gathered.clear();
            w.gathered.extend(p.bodies.iter().map(|b| w.poses[*b]));
            w.hessian.resize(n * n, Mat6::zeros());
            p.hessian(&w.gathered, &mut w.hessian[..n * n]);
            for (i, on) in p.bodies.iter().enumerate() {
                for (k, by) in p.bodies.iter().enumerate() {
                    w.couplings
                        .push((node(*on), node(*by), -w.hessian[i * n + k]));
                }
            }
        }
    }
}

/// A wrench on each of its bodies, by their nodes, world axes.
pub(super) fn each_end(
    minimal: &Minimal,
    poses: &[crate::spatial::Pose],
    (parent, child): (Option<usize>, usize),
    row: &Row,
    mut each: impl FnMut(usize, Vec3, Vec3),
) {
    let of = |body: usize| minimal.node_of[body];
    each(of(child), row.force, poses[child].r * row.child_torque);
    if let Some(parent) = parent {
        each(of(parent), -row.force, poses[parent].r * row.parent_torque);
    }
}

/// Six numbers of a body: linear in the world, angular in the body, of a pair in the world, and the way back.
#[inline(always)]
pub(super) fn to_body(r: &crate::spatial::Mat3, (x, phi): &(Vec3, Vec3)) -> Vec6 {
    let phi = r.tr_mul(phi);
    Vec6::new(x.x, x.y, x.z, phi.x, phi.y, phi.z)
}

#[inline(always)]
pub(super) fn to_world(r: &crate::spatial::Mat3, v: &Vec6) -> (Vec3, Vec3) {
    let (x, phi) = (Vec3::new(v[0], v[1], v[2]), Vec3::new(v[3], v[4], v[5]));
    (x, r * phi)
}
