//! Quantities of one joint: coordinates, rates, and what its constraint exerts.

use super::super::assembly::add_wrench;
use super::super::interval::turn_direction;
use super::super::{Maximal, Work};
use super::{Pulled, Reaction, add};
use crate::dynamics::Seen;
use crate::mechanism::CoordinateId;
use crate::spatial::Vec3;

pub(super) fn pull_coordinate(
    w: &Work,
    (joint, direction): CoordinateId,
    g: f64,
    out: &mut Pulled,
) {
    let m = &w.model;
    let j = &m.joints[joint];
    let (a, b) = m.ends(j, &w.poses);
    let row = j.coordinate_row(direction, a, b, &w.relative[joint]);
    add_wrench(&mut out.inputs.x, j.parent, j.child, &row, g);
}

pub(super) fn pull_rate(w: &Work, (joint, direction): CoordinateId, g: f64, out: &mut Pulled) {
    let m = &w.model;
    let j = &m.joints[joint];
    let (a, b) = m.ends(j, &w.poses);
    let row = j.direction_row(direction, a, b, &w.relative[joint]);
    add_wrench(out.velocity, j.parent, j.child, &row, g);
    let ends = (a, b, &w.relative[joint]);
    turn_direction(j, direction, g, ends, &w.trial, &mut out.inputs.x);
}

impl Maximal {
    /// Direction and multiplier's place of the rows that make up the force, or the torque.
    fn reaction_rows(
        &self,
        joint: usize,
        kind: Reaction,
    ) -> impl Iterator<Item = (&Vec3, usize)> + '_ {
        let j = &self.mechanism.joints[joint];
        let own = match kind {
            Reaction::Force => 0..j.translation_rows,
            Reaction::Torque => j.translation_rows..j.rows(),
        };
        // a joint without rows has no place, nor any row to ask for it
        let first = self.slots[joint].map_or(0, |s| s.offset);
        own.map(move |i| (&j.constrained[i], first + i))
    }

    /// `sum e lambda`: the impulse of the force; half of it crossed with the relative rotation gives the torque's.
    fn multiplier(&self, y: &[f64], joint: usize, kind: Reaction) -> Vec3 {
        let rows = self.reaction_rows(joint, kind);
        rows.fold(Vec3::zeros(), |sum, (e, i)| sum + e * y[i])
    }

    /// Force or torque on the child along an axis of the parent, from the step's impulses. The rotation's constraint is
    /// the vector part `v` of `r = (r_w, v)`, so a multiplier `nu` exerts `(r_w nu + v x nu)/2`.
    pub(super) fn constraint_force(
        &self,
        w: &Work,
        seen: &Seen,
        joint: usize,
        kind: Reaction,
        axis: &Vec3,
    ) -> f64 {
        let share = 0.5 * (seen.at.h_prev + seen.at.h);
        let nu = self.multiplier(seen.y, joint, kind);
        let impulse = match kind {
            Reaction::Force => nu,
            Reaction::Torque => {
                let r = &w.relative[joint].r;
                (nu * r.w + r.imag().cross(&nu)) * 0.5
            }
        };
        axis.dot(&impulse) / share
    }

    pub(super) fn pull_constraint_force(
        &self,
        w: &Work,
        seen: &Seen,
        (joint, kind): (usize, Reaction),
        axis: &Vec3,
        out: &mut Pulled,
    ) {
        let share = 0.5 * (seen.at.h_prev + seen.at.h);
        let value = self.constraint_force(w, seen, joint, kind, axis);
        out.inputs.h -= 0.5 * value / share;
        out.inputs.h_prev -= 0.5 * value / share;
        let axis = axis / share;
        let r = &w.relative[joint].r;
        let (scalar, v) = (r.w, r.imag());
        let by_multiplier = match kind {
            Reaction::Force => axis,
            Reaction::Torque => (axis * scalar - v.cross(&axis)) * 0.5,
        };
        for (e, i) in self.reaction_rows(joint, kind) {
            out.y[i] += e.dot(&by_multiplier);
        }
        if kind == Reaction::Force {
            return;
        }
        // dv = ([v] + r_w)/2 R_off dphi_b + ([v] - r_w)/2 dphi_a, dr_w = v'/2 (dphi_a - R_off dphi_b)
        let nu = self.multiplier(seen.y, joint, kind);
        let (by_v, by_w) = (nu.cross(&axis) * 0.5, 0.5 * nu.dot(&axis));
        let j = &w.model.joints[joint];
        let (twist, even) = (by_v.cross(&v) - v * by_w, by_v * scalar);
        let on_child = j.offset_matrix.tr_mul(&(twist + even)) * 0.5;
        add(&mut out.inputs.x[6 * j.child + 3..], on_child.as_slice());
        if let Some(p) = j.parent {
            let on_parent = (by_v.cross(&v) + v * by_w - even) * 0.5;
            add(&mut out.inputs.x[6 * p + 3..], on_parent.as_slice());
        }
    }
}
