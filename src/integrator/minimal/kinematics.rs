//! Where joints lead bodies: poses at a knot, and motion over an interval, forwards or backwards, by one recursion outwards.

use super::work::wide;
use super::work::{AtKnot, Axis, Moved, Work, turned};
use super::{Minimal, Node};
use crate::mechanism::Joint;
use crate::spatial::{Mat3, Pose, Quat, Vec3, exp, increment, increment_scalar};
use nalgebra::Quaternion;

/// The turn of a joint at `rates`, in its parent's frame; with two free rotations the third component follows from the
/// constraint `e . vec(r) = 0`, which stays met over an interval as it does in an instant.
#[inline(always)]
pub(super) fn turn(j: &Joint, node: &Node, relative: &Quat, rates: &[f64]) -> Vec3 {
    if let (3, [.., x, y, z]) = (node.turns, rates) {
        // a ball's directions are the axes of its parent
        return Vec3::new(*x, *y, *z);
    }
    let turns = &j.directions[node.slides..];
    let mut out = Vec3::zeros();
    for (d, rate) in turns.iter().zip(&rates[node.slides..]) {
        out += d.unit * *rate;
    }
    out + third(j, node, relative, &out)
}

/// The angle that a single rotation at `rate` turns by over an interval.
#[inline(always)]
pub(super) fn turned_by(rate: f64, h: f64) -> f64 {
    2.0 * (0.5 * h * rate).asin()
}

/// The component along the axis that goes with a turn along the two normals.
#[inline(always)]
pub(super) fn third(j: &Joint, node: &Node, relative: &Quat, turn: &Vec3) -> Vec3 {
    if node.turns != 2 {
        return Vec3::zeros();
    }
    j.axis * (-j.axis.dot(&turn.cross(&relative.imag())) / relative.w)
}

/// How [`third`] of a turn along `unit` changes with the relative rotation, by `(dw, dv)` to where its scalar part is `w`.
#[inline(always)]
pub(super) fn third_change(
    j: &Joint,
    node: &Node,
    relative: &Quat,
    unit: &Vec3,
    (dw, dv): (f64, &Vec3),
    w: f64,
) -> Vec3 {
    if node.turns != 2 {
        return Vec3::zeros();
    }
    let ratio = j.axis.dot(&unit.cross(&relative.imag())) / relative.w;
    j.axis * ((ratio * dw - j.axis.dot(&unit.cross(dv))) / w)
}

/// The slide of a joint at `rates`, in its parent's frame.
#[inline(always)]
pub(super) fn slide(j: &Joint, node: &Node, rates: &[f64]) -> Vec3 {
    let mut out = Vec3::zeros();
    for (d, rate) in j.directions[..node.slides].iter().zip(rates) {
        out += d.unit * *rate;
    }
    out
}

/// The sum of free directions at the knot, each times its number.
#[inline(always)]
pub(super) fn along(axes: &[Axis], by: &[f64]) -> Vec3 {
    let mut out = Vec3::zeros();
    for (axis, by) in axes.iter().zip(by) {
        out += axis.left * *by;
    }
    out
}

impl Minimal {
    /// Relative rotation of a joint in a state.
    pub(super) fn relative(&self, j: &Joint, node: &Node, x: &[f64]) -> Quat {
        let turn = &x[node.turn()];
        match node.turns {
            0 => Quat::identity(),
            1 => exp(&(j.directions[node.slides].unit * turn[0])),
            _ => Quat::new_unchecked(Quaternion::new(turn[0], turn[1], turn[2], turn[3])),
        }
    }

    /// From the parent's center of mass to the child's anchor at a state, in the parent's frame.
    fn arm(j: &Joint, node: &Node, x: &[f64]) -> Vec3 {
        j.parent_anchor + slide(j, node, &x[node.place..])
    }

    /// Where a joint holds its body at a state, what is nearer to the world being where it is; its arms, and the frame of its turns.
    #[inline(always)]
    fn hold(
        j: &Joint,
        node: &Node,
        near: &Pose,
        relative: &Quat,
        x: &[f64],
    ) -> (Pose, [Vec3; 2], Mat3) {
        let arm = Self::arm(j, node, x);
        let q = if node.reversed {
            near.q * j.offset.conjugate() * relative.conjugate()
        } else {
            near.q * relative * j.offset
        };
        let mut pose = Pose::new(Vec3::zeros(), q);
        let (arms, joint) = if node.reversed {
            ([near.r * j.child_anchor, -(pose.r * arm)], -pose.r)
        } else {
            ([near.r * arm, -(pose.r * j.child_anchor)], near.r)
        };
        pose.x = near.x + arms[0] + arms[1];
        (pose, arms, joint)
    }

    /// Poses at a state, and everything of the joints there but momenta and forces.
    pub(super) fn locate(&self, x: &[f64], w: &mut Work) {
        wide!(self.locate_at(x, w));
    }

    #[inline(always)]
    fn locate_at(&self, x: &[f64], w: &mut Work) {
        let m = &w.model;
        for (node, k) in self.nodes.iter().zip(&mut w.knot) {
            let j = &m.joints[node.joint];
            let near = (node.near).map_or_else(Pose::identity, |n| w.poses[self.nodes[n].body]);
            k.touch = Default::default();
            (k.is_sprung, k.is_damped) = (j.has_springs(), j.has_dampers());
            k.relative = self.relative(j, node, x);
            let (pose, arms, joint) = Self::hold(j, node, &near, &k.relative, x);
            (k.arms, k.joint) = (arms, joint);
            w.poses[node.body] = pose;
            let body = &m.bodies[node.body];
            k.mass = body.mass;
            k.inertia = pose.r * body.inertia * pose.r.transpose();
            k.law = body.rotation.turned(&pose.r);
            let axes = &mut w.axes[node.directions()];
            for (r, (d, axis)) in j.directions.iter().zip(axes).enumerate() {
                axis.left = match r.checked_sub(node.slides) {
                    // a ball's directions are the axes of its parent
                    Some(turn) if node.turns == 3 => k.joint.column(turn).into(),
                    Some(_) => k.joint * (d.unit + third(j, node, &k.relative, &d.unit)),
                    None => k.joint * d.unit,
                };
            }
        }
    }

    /// Poses at a state of the mechanism as it was built.
    pub(super) fn poses_of(&self, x: &[f64]) -> Vec<Pose> {
        let mut out = vec![Pose::identity(); self.nodes.len()];
        for (node, j) in self.joints() {
            let near = (node.near).map_or_else(Pose::identity, |n| out[self.nodes[n].body]);
            let relative = self.relative(j, node, x);
            out[node.body] = Self::hold(j, node, &near, &relative, x).0;
        }
        out
    }

    /// Where `rates` along the joints' free directions at the knot, the `left` ones of `axes`, lead over an interval `h`, negative
    /// where it lies before. Returns the body that turns too far, if one does.
    pub(super) fn lead(
        &self,
        knot: &[AtKnot],
        axes: &[Axis],
        rates: &[f64],
        h: f64,
        out: &mut [Moved],
    ) -> Option<usize> {
        wide!(self.lead_to(knot, axes, rates, h, out))
    }

    #[inline(always)]
    fn lead_to(
        &self,
        knot: &[AtKnot],
        axes: &[Axis],
        rates: &[f64],
        h: f64,
        out: &mut [Moved],
    ) -> Option<usize> {
        for (i, (node, k)) in self.nodes.iter().zip(knot).enumerate() {
            let own = node.directions();
            let (slides, turns) = axes[own.clone()].split_at(node.slides);
            let (slide_rates, turn_rates) = rates[own].split_at(node.slides);
            let near = node.near.map_or(&Moved::WORLD, |n| &out[n]);
            let (mut scalar, mut omega) = (near.scalar, near.omega);
            if node.turns > 0 {
                let a = along(turns, turn_rates);
                let own = increment_scalar(&a, h);
                omega = a * near.scalar + near.omega * own + near.omega.cross(&a) * (0.5 * h);
                scalar = near.scalar * own - 0.25 * h * h * near.omega.dot(&a);
            }
            // a joint's own turn that is too far is no number, which is inside nothing
            if !k.law.contains_turn(&omega, h, scalar) {
                return Some(node.body);
            }
            let [first, second] = k.arms;
            let turn = (scalar, &omega);
            let mut drifts = [near.turned(&first, h), turned(turn, &second, h)];
            if node.slides > 0 {
                let along = along(slides, slide_rates);
                let (by, side) = match node.reversed {
                    true => (turn, 1),
                    false => ((near.scalar, &near.omega), 0),
                };
                drifts[side] += along + turned(by, &along, h) * h;
            }
            out[i] = Moved {
                scalar,
                omega,
                velocity: near.velocity + drifts[0] + drifts[1],
                arms: [first + drifts[0] * h, second + drifts[1] * h],
                drifts,
            };
        }
        None
    }

    /// The relative rotation that a turn over an interval leads to.
    #[inline(always)]
    pub(super) fn turned(relative: &Quat, turn: &Vec3, h: f64) -> Quat {
        increment(turn, h, increment_scalar(turn, h)) * relative
    }
}
