//! The mechanical face: the data of a knot, and their adjoints.

use super::{Maximal, Work};
use crate::contact::{KnotWork, Loads};
use crate::dynamics::{Frame, Inputs, KnotPoint, Outputs, SolvedStep, StepError};
use crate::integrator::mechanical::{MatrixSize, Mechanical, Swing, VelocityChange, observable};
use crate::mechanism::{
    Adjoint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Past, Quantity, vec3,
};
use crate::spatial::Pose;
use nalgebra::DMatrix;

/// Memory of what is observed at a knot.
pub(super) struct Observation {
    /// Poses at the knot before.
    pub past: Vec<Pose>,
    /// Unwound angle of each joint.
    pub windings: Vec<f64>,
    pub reactions: Vec<f64>,
    /// Are the reactions those of the knot?
    pub acts: bool,
    pub adjoint: Adjoint,
    /// Adjoints on their way through the read-out.
    pub inputs: Inputs,
    pub readout: Outputs,
}

impl Maximal {
    /// Index among the unknowns of every reaction, the reaction, and what turns the one into the other.
    fn reactions(&self, mut each: impl FnMut(usize, usize, f64)) {
        let m = &self.mechanism;
        let mut place = 0;
        for (j, s) in m.joints.iter().zip(&self.slots) {
            // a joint without rows has no slots
            for i in 0..j.rows() {
                each(s.map_or(0, |s| s.offset) + i, place + i, 1.0);
            }
            place += j.rows();
        }
        self.contacts.reactions(m, each);
    }

    /// Replaces wrenches by the changes of velocities that they cause.
    fn solve_wrenches(&self, w: &mut Work, rows: &mut [f64]) {
        let dim = self.symbolic.dim();
        let mut change = vec![0.0; dim];
        // rows of zeros solve to zeros
        let each = rows.chunks_exact_mut(dim);
        for row in each.filter(|r| r.iter().any(|v| *v != 0.0)) {
            self.solve(w, row, &mut change, false);
            row.copy_from_slice(&change);
        }
    }
}

impl Mechanical for Maximal {
    fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    fn mobility(&self) -> Mobility {
        self.mobility
    }

    fn outputs(&self) -> &[Quantity] {
        &self.outputs
    }

    fn with_outputs(mut self, outputs: Vec<Quantity>) -> Self {
        self.outputs = outputs;
        self
    }

    fn holding(mut self, q: &[f64], preferred: &[bool]) -> Self {
        let freedoms = self.mobility.degrees_of_freedom;
        (self.held, self.held_rates) = Self::independent(&self.mechanism, q, freedoms, preferred);
        self
    }

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        let new = Self::new(mechanism, q, self.options)?;
        let new = new.with_outputs(self.outputs.clone());
        Ok(new.holding(q, &self.held))
    }

    fn mechanism_with<'a>(
        &'a self,
        p: &[f64],
        w: &'a mut Work,
    ) -> Result<&'a Mechanism, StepError> {
        self.apply(p, w)?;
        Ok(&w.model)
    }

    fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
        self.start_of(&self.mechanism, q, rates, held)
    }

    fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        self.state_behind(x, poses, q, h)
    }

    fn poses(&self, x: &[f64]) -> Vec<Pose> {
        self.poses_of(x)
    }

    fn interval_velocities(&self, x: &[f64], _: f64) -> Vec<Motion> {
        self.velocities_of(x)
    }

    fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
        self.winding(x, joint)
    }

    fn evaluate_knot(&self, seen: &KnotPoint, needs: Needs, w: &mut Work) -> Result<(), StepError> {
        let (at, x, u) = (seen.readout(), seen.x, seen.u);
        self.apply(seen.p, w)?;
        self.contacts.recall(&mut w.contacts, seen.y);
        if needs.velocities {
            self.readout(at, (x, u, seen.y), w)?;
        } else {
            self.read_state(at, x, u, w)?;
        }
        let mut observation = std::mem::replace(&mut w.observation, Observation::empty());
        for (joint, angle) in observation.windings.iter_mut().enumerate() {
            *angle = self.winding_in(w, joint);
        }
        if needs.past && at.before().is_some() {
            for (b, pose) in observation.past.iter_mut().enumerate() {
                *pose = Self::pose_before(w, b);
            }
        }
        observation.acts = needs.reactions && !seen.y.is_empty() && seen.at.after().is_some();
        if observation.acts {
            observation.reactions.fill(0.0);
            let reactions = &mut observation.reactions;
            self.reactions(|unknown, place, scale| reactions[place] += scale * seen.y[unknown]);
        }
        w.observation = observation;
        Ok(())
    }

    fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a Work) -> KnotData<'a> {
        let n = 6 * self.body_count();
        KnotData {
            mechanism: &w.model,
            poses: &w.knot.poses,
            velocities: &w.newton.trial[..n],
            past: if seen.at.before().is_none() {
                Past::Start(&w.knot.before)
            } else {
                Past::Poses(&w.observation.past)
            },
            before: &w.knot.before,
            windings: &w.observation.windings,
            controls: seen.u,
            reactions: if w.observation.acts {
                &w.observation.reactions
            } else {
                &[]
            },
            h_prev: seen.at.h_prev,
            part: 1.0,
            h: seen.at.h,
        }
    }

    fn adjoint<'a>(&self, w: &'a mut Work) -> &'a mut Adjoint {
        &mut w.observation.adjoint
    }

    fn pull_knot(
        &self,
        seen: &KnotPoint,
        w: &mut Work,
        adjoint: &Adjoint,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        let n = 6 * self.body_count();
        add(&mut out.x, &adjoint.poses);
        add(&mut out.u, &adjoint.controls);
        out.h_prev += adjoint.h_prev;
        out.h += adjoint.h;
        if seen.at.before().is_none() {
            add(&mut out.x[n..], &adjoint.past);
        } else {
            for (b, six) in adjoint.past.chunks_exact(6).enumerate() {
                if six.iter().any(|v| *v != 0.0) {
                    Self::pull_back(w, b, n, &adjoint.past, out);
                }
            }
        }
        if w.observation.acts {
            self.reactions(|unknown, place, scale| y[unknown] += scale * adjoint.reactions[place]);
        }
        if adjoint.velocities.iter().all(|v| *v == 0.0) {
            return;
        }
        // the read-out left its solution and its factors
        let mut observation = std::mem::replace(&mut w.observation, Observation::empty());
        observation.readout.y.fill(0.0);
        observation.readout.y[..n].copy_from_slice(&adjoint.velocities);
        self.turn_elements(w);
        self.linearize_readout(w);
        self.pull_step(w, &observation.readout, &mut observation.inputs);
        let d = &observation.inputs;
        add(&mut out.x, &d.x);
        add(&mut out.u, &d.u);
        add(&mut out.p, &d.p);
        out.h_prev += d.h_prev;
        w.observation = observation;
    }

    fn contact_work(
        &self,
        seen: &KnotPoint,
        loads: &mut Loads,
        w: &mut Work,
    ) -> Result<Option<KnotWork>, StepError> {
        if self.contacts.is_empty() {
            return Ok(None);
        }
        let dim = self.symbolic.dim();
        // velocities of the interval after the knot come first among the unknowns
        let step = (seen.y, seen.y, seen.at.h);
        let mut books = self
            .contacts
            .begin_work(&self.view(w), &w.contacts, step, dim, loads);
        let (touching, at) = (w.contacts.part(), w.knot.at);
        let mut factored = Ok(());
        if !books.blow.is_empty() {
            self.assemble(w);
            factored = self.factor(w);
            if factored.is_ok() {
                self.solve_wrenches(w, &mut books.blow);
                self.contacts.add_unstruck(&self.view(w), &mut books);
            }
        }
        if factored.is_ok() {
            // what the impulses change within the joints alone, without what dampers hold back after the interval before
            w.knot.at.h_prev = 0.0;
            self.assemble(w);
            factored = self.factor(w);
        }
        if factored.is_ok() {
            self.solve_wrenches(w, &mut books.rows);
        }
        w.contacts.meet(touching);
        w.knot.at = at;
        factored?;
        Ok(Some(self.contacts.end_work(
            &self.view(w),
            &w.contacts,
            books,
        )))
    }

    fn gave_way(&self, seen: &KnotPoint, w: &mut Work) -> Result<bool, StepError> {
        if !self.mechanism.may_be_redundant() {
            return Ok(false);
        }
        self.apply(seen.p, w)?;
        let solved = SolvedStep {
            at: seen.at,
            x: seen.x,
            u: seen.u,
            p: seen.p,
            y: seen.y,
            next: &[],
        };
        self.evaluate_as_solved(&solved, w)?;
        Ok(w.matrix.softness != 0.0)
    }

    fn limit_iterations(&self, w: &mut Work, most: usize) {
        w.contacts.limit_iterations(most);
    }

    fn swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut Work,
    ) -> Result<Swing, StepError> {
        self.apply(seen.p, w)?;
        self.fastest_swing(seen, weight, above, w)
    }

    fn add_velocity_changes(&self, w: &Work, groups: &[usize], out: &mut [VelocityChange]) -> bool {
        let motion = |of: &[f64], b: usize| (vec3(of, 6 * b), vec3(of, 6 * b + 3));
        for (b, body) in w.model.bodies.iter().enumerate() {
            let (before, after) = (motion(&w.knot.before, b), motion(&w.newton.trial, b));
            out[groups[b]].add(body, &before, &after);
        }
        let touched = self.contacts.touched(&w.contacts);
        touched.for_each(|b| out[groups[b]].touches = true);
        true
    }

    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        self.tangents_of(frame)
    }

    fn certify(&self, w: &mut Work) {
        w.adjoint.certificate = Some(0.0);
    }

    fn linear_residual(&self, w: &Work) -> Option<f64> {
        w.adjoint.certificate
    }

    fn matrix(&self) -> MatrixSize {
        MatrixSize {
            unknowns: self.symbolic.dim(),
            fill_in: self.symbolic.fill_in(),
            fallback: "the general sparse solver",
        }
    }
}

observable!(Maximal);

impl Observation {
    /// Without memory, to stand in for one in use.
    fn empty() -> Self {
        Self {
            past: vec![],
            windings: vec![],
            reactions: vec![],
            acts: false,
            adjoint: Adjoint::default(),
            inputs: Inputs::default(),
            readout: Outputs::default(),
        }
    }
}

fn add(out: &mut [f64], d: &[f64]) {
    for (o, d) in out.iter_mut().zip(d) {
        *o += d;
    }
}
