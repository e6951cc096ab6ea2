//! Small changes of states: coordinates, then rates, one chart for all.
//!
//! Slides and angles change by differences; a ball turns in its parent's frame, `r -> exp(d) r`. Of two free rotations the rotation
//! vector `nu`, normal to the joint's axis, moves by `Jl^-1(nu) turn(d)`, so that every change leads to a state.

use super::kinematics::{third, turn};
use super::work::Work;
use super::{Minimal, Node};
use crate::dynamics::{Charts, Frame, Knot, LinearModel, StepError, StepFailure, Stored};
use crate::integrator::parameter;
use crate::mechanism::Joint;
use crate::spatial::{Mat3, Quat, Vec3, exp, left_log_jacobian, log};
use nalgebra::{DMatrix, Matrix2, Quaternion, Vector2};

impl Minimal {
    /// Of two free rotations: by a turn of either normal, how far the rotation vector moves along both.
    fn by_turn(j: &Joint, node: &Node, nu: &Vec3, r: &Quat) -> Matrix2<f64> {
        let (by, turns) = (left_log_jacobian(nu), &j.directions[node.slides..]);
        Matrix2::from_fn(|row, column| {
            let unit = &turns[column].unit;
            turns[row]
                .unit
                .dot(&(by * (unit + third(j, node, r, unit))))
        })
    }

    /// The relative rotation that a change leads to.
    fn turned_by(j: &Joint, node: &Node, r: &Quat, d: &[f64]) -> Quat {
        let eta = turn(j, node, r, d);
        match node.turns {
            2 => {
                let nu = log(r);
                exp(&(nu + left_log_jacobian(&nu) * eta))
            }
            _ => exp(&eta) * r,
        }
    }

    /// Moves a state by a change.
    pub(super) fn move_state(&self, x: &[f64], d: &[f64], out: &mut [f64]) {
        for (node, j) in self.joints() {
            let own = &d[node.directions()];
            for (i, d) in own.iter().enumerate().take(node.slides) {
                out[node.place + i] = x[node.place + i] + d;
            }
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => out[place.start] = x[place.start] + own[node.slides],
                _ => {
                    let r = self.relative(j, node, x);
                    let r = Self::turned_by(j, node, &r, own);
                    let r = Quat::new_normalize(r.into_inner());
                    out[place].copy_from_slice(&[r.w, r.i, r.j, r.k]);
                }
            }
        }
        for i in 0..self.freedoms {
            let place = self.positions + i;
            out[place] = x[place] + d[self.freedoms + i];
        }
    }

    /// The change that leads from one state to another.
    pub(super) fn change_between(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        for (node, j) in self.joints() {
            let out = &mut out[node.directions()];
            for (i, out) in out.iter_mut().enumerate().take(node.slides) {
                *out = to[node.place + i] - x[node.place + i];
            }
            let (from, end) = (self.relative(j, node, x), self.relative(j, node, to));
            let turns = &j.directions[node.slides..];
            match node.turns {
                0 => {}
                1 => out[node.slides] = to[node.turn().start] - x[node.turn().start],
                2 => {
                    let (nu, apart) = (log(&from), log(&end) - log(&from));
                    let apart = Vector2::new(turns[0].unit.dot(&apart), turns[1].unit.dot(&apart));
                    let by = Self::by_turn(j, node, &nu, &from).try_inverse();
                    let d = by.map_or(Vector2::repeat(f64::NAN), |by| by * apart);
                    out[node.slides..].copy_from_slice(d.as_slice());
                }
                _ => {
                    let d = log(&(end * from.conjugate()));
                    for (out, axis) in out[node.slides..].iter_mut().zip(turns) {
                        *out = axis.unit.dot(&d);
                    }
                }
            }
        }
        for i in 0..self.freedoms {
            let place = self.positions + i;
            out[self.freedoms + i] = to[place] - x[place];
        }
    }

    /// Derivative of [`Minimal::change_between`] along the free rotations of a joint by those of the state led to.
    fn change_by_turns(&self, node: &Node, j: &Joint, x: &[f64], to: &[f64]) -> Mat3 {
        let mut out = Mat3::identity();
        let (from, end) = (self.relative(j, node, x), self.relative(j, node, to));
        let turns = &j.directions[node.slides..];
        if node.turns == 2 {
            let start = Self::by_turn(j, node, &log(&from), &from).try_inverse();
            let by = start.unwrap_or_else(|| Matrix2::repeat(f64::NAN))
                * Self::by_turn(j, node, &log(&end), &end);
            out.fixed_view_mut::<2, 2>(0, 0).copy_from(&by);
        } else if node.turns == 3 {
            let by = left_log_jacobian(&log(&(end * from.conjugate())));
            out = Mat3::from_fn(|r, c| turns[r].unit.dot(&(by * turns[c].unit)));
        }
        out
    }

    /// Applies it, or its transpose, to the coordinates of a change in place.
    pub(super) fn turn_change(&self, x: &[f64], to: &[f64], transposed: bool, d: &mut [f64]) {
        for (node, j) in self.joints().filter(|(node, _)| node.turns > 1) {
            let own = &mut d[node.directions()][node.slides..];
            let by = self.change_by_turns(node, j, x, to);
            let v = Vec3::from_fn(|i, _| own.get(i).copied().unwrap_or(0.0));
            let v = if transposed { by.tr_mul(&v) } else { by * v };
            own.iter_mut().zip(v.iter()).for_each(|(o, v)| *o = *v);
        }
    }

    /// Nodes with their joints, of which the mechanism's parameters change neither axes nor kinds.
    pub(super) fn joints(&self) -> impl Iterator<Item = (&Node, &Joint)> {
        let joint = |node: &Node| &self.mechanism.joints[node.joint];
        self.nodes.iter().map(move |n| (n, joint(n)))
    }
}

impl Charts for Minimal {
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        _: Option<&Frame>,
        w: &mut Work,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        if self.gears.is_empty() {
            *out = Frame::Identity(2 * self.freedoms);
            return Ok(());
        }
        parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
        self.gear_frame(at, x, &w.model, out);
        Ok(())
    }

    fn has_identity_frames(&self) -> bool {
        self.gears.is_empty()
    }

    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        if self.gears.is_empty() {
            self.move_state(x, d, out);
        } else {
            parameter::apply(&self.mechanism, p, &mut w.parameters, &mut w.model)?;
            self.move_on_gears(at, x, frame, d, w, out);
        }
        match out.iter().all(|v| v.is_finite()) {
            true => Ok(()),
            false => Err(self.failure(StepFailure::NotFinite, at, 0, f64::NAN)),
        }
    }

    fn difference(
        &self,
        _: &Knot,
        x: &[f64],
        _: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut Work,
        out: &mut [f64],
    ) {
        let mut free = std::mem::take(&mut w.inputs.x);
        self.change_between(x, to, &mut free);
        frame.project_into(&mut free, out);
        free.fill(0.0);
        w.inputs.x = free;
    }

    // rates are rates, of whatever interval; where gears tie slides to turns these move as far in a longer one
    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let rates = &mut out[self.freedoms..];
        (self.gears).by_interval(at.h_prev, &x[self.positions..], rates);
    }

    fn difference_by(
        &self,
        _: &Knot,
        x: &[f64],
        _: &[f64],
        frame: &Frame,
        to: &[f64],
        _: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let n = 2 * self.freedoms;
        let mut out = DMatrix::identity(n, n);
        for (node, j) in self.joints().filter(|(node, _)| node.turns > 1) {
            let (first, by) = (
                node.first + node.slides,
                self.change_by_turns(node, j, x, to),
            );
            let own = by.view((0, 0), (node.turns, node.turns));
            out.view_mut((first, first), own.shape()).copy_from(&own);
        }
        if !self.gears.is_empty() {
            out = frame.project() * out;
        }
        Ok(out)
    }

    fn linear_model_in(&self, w: &mut Work, from: &Frame, to: &Frame, out: &mut LinearModel) {
        self.jacobians(w, (from, to), out);
    }
}

impl Stored for Minimal {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        for (node, j) in self.joints() {
            let own = &free[node.directions()];
            stored[node.place..node.place + node.slides].copy_from_slice(&own[..node.slides]);
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => stored[place.start] = own[node.slides],
                _ => {
                    let r = self.relative(j, node, x);
                    let eta = turn(j, node, &r, own) * 0.5;
                    let dr = Quaternion::from_parts(0.0, eta) * r.into_inner();
                    stored[place].copy_from_slice(&[dr.w, dr.i, dr.j, dr.k]);
                }
            }
        }
        stored[self.positions..].copy_from_slice(&free[self.freedoms..]);
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        for (node, j) in self.joints() {
            let own = &free[node.directions()];
            stored[node.place..node.place + node.slides].copy_from_slice(&own[..node.slides]);
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => stored[place.start] = own[node.slides],
                _ => {
                    // a turn along the directions is twice what they see of `dr r*`
                    let r = self.relative(j, node, x).into_inner();
                    let turns = j.directions[node.slides..].iter().zip(&own[node.slides..]);
                    let g = turns.fold(Vec3::zeros(), |sum, (d, f)| sum + d.unit * *f);
                    let g = Quaternion::from_parts(0.0, g * 2.0) * r;
                    stored[place].copy_from_slice(&[g.w, g.i, g.j, g.k]);
                }
            }
        }
        stored[self.positions..].copy_from_slice(&free[self.freedoms..]);
    }
}
