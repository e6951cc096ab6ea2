//! What of a linearization is worth keeping for later sweeps over the same step: factors, motion of the bodies, momenta and their
//! derivatives, and what takes logarithms, or poses where these are asked for. It is read from memory in one pass; what fewer
//! operations make than reading takes is made again, to the same bits: linear momenta, weights, turns of hinges and balls.
//!
//! What only a new factorization would need (inertias, impulses of the residual) is not brought back.

use super::derivative::{Linear, Six};
use super::local::{Local, spring_derivative};
use super::momentum::{Blocks, Lagrangian};
use super::pivots::Ball;
use super::work::{Articulated, Moved, Work, wide};
use super::{Minimal, Node};
use crate::dynamics::{SolvedStep, StepError};
use crate::integrator::parameter;
use crate::mechanism::Drive;
use crate::spatial::{Mat3, Quat, Vec3, rotation};
use nalgebra::Quaternion;

/// Numbers of what is kept.
const VECTOR: usize = 3;
const MATRIX: usize = 9;
const ROTATION: usize = 4;
/// Of a body that moves.
const MOTION: usize = 1 + 6 * VECTOR;
/// Of an axis the free direction at both ends; wrench and answer.
const FREE: usize = 2 * VECTOR;
const AXIS: usize = 4 * VECTOR;
/// Of a ball by itself.
const BALL: usize = 3 * MATRIX;
/// Arms, and motion on both sides.
const BODY: usize = 2 * VECTOR + 2 * MOTION;
/// Where translation and turn are apart: angular momenta, and their derivatives.
const APART: usize = 2 * (VECTOR + MATRIX);
const LOCAL: usize = 3 * MATRIX + VECTOR;

/// Numbers written one behind the other.
struct Writer<'a>(&'a mut [f64]);

impl Writer<'_> {
    fn put(&mut self, numbers: &[f64]) {
        let (own, rest) = std::mem::take(&mut self.0).split_at_mut(numbers.len());
        own.copy_from_slice(numbers);
        self.0 = rest;
    }

    fn keep<T: Kept>(&mut self, what: &T) {
        what.put(self);
    }
}

/// The same read.
struct Reader<'a>(&'a [f64]);

impl<'a> Reader<'a> {
    /// NaN where there are too few: nothing wrong is to go unseen.
    #[inline(always)]
    fn chunk<const N: usize>(&mut self) -> &'a [f64; N] {
        let Some((own, rest)) = self.0.split_first_chunk() else {
            return const { &[f64::NAN; N] };
        };
        self.0 = rest;
        own
    }

    /// The next of them, of which there are as many as the compiler knows.
    #[inline(always)]
    fn part<const N: usize>(&mut self) -> Self {
        Self(self.chunk::<N>())
    }

    #[inline(always)]
    fn slice(&mut self, to: &mut [f64]) {
        for to in to {
            [*to] = *self.chunk();
        }
    }

    #[inline(always)]
    fn take<T: Kept>(&mut self, to: &mut T) {
        to.take(self);
    }
}

/// What is kept as numbers. It is read into its place: what is made first and then moved there goes through memory twice.
trait Kept {
    fn put(&self, to: &mut Writer);
    fn take(&mut self, from: &mut Reader);
}

impl Kept for f64 {
    fn put(&self, to: &mut Writer) {
        to.put(&[*self]);
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        [*self] = *from.chunk();
    }
}

impl Kept for Vec3 {
    fn put(&self, to: &mut Writer) {
        to.put(self.as_slice());
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        (self.as_mut_slice()).copy_from_slice(from.chunk::<VECTOR>());
    }
}

impl Kept for Mat3 {
    fn put(&self, to: &mut Writer) {
        to.put(self.as_slice());
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        (self.as_mut_slice()).copy_from_slice(from.chunk::<MATRIX>());
    }
}

impl Kept for Quat {
    fn put(&self, to: &mut Writer) {
        to.put(self.coords.as_slice());
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        let [x, y, z, w] = *from.chunk::<ROTATION>();
        *self = Self::new_unchecked(Quaternion::new(w, x, y, z));
    }
}

impl<A: Kept, B: Kept> Kept for (A, B) {
    fn put(&self, to: &mut Writer) {
        to.keep(&self.0);
        to.keep(&self.1);
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        from.take(&mut self.0);
        from.take(&mut self.1);
    }
}

impl<T: Kept> Kept for [T; 2] {
    fn put(&self, to: &mut Writer) {
        self.iter().for_each(|own| to.keep(own));
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        self.iter_mut().for_each(|own| from.take(own));
    }
}

impl Kept for Moved {
    fn put(&self, to: &mut Writer) {
        to.keep(&self.scalar);
        to.keep(&self.omega);
        to.keep(&self.velocity);
        to.keep(&self.arms);
        to.keep(&self.drifts);
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        from.take(&mut self.scalar);
        from.take(&mut self.omega);
        from.take(&mut self.velocity);
        from.take(&mut self.arms);
        from.take(&mut self.drifts);
    }
}

impl Kept for Articulated {
    fn put(&self, to: &mut Writer) {
        for m in [&self.ff, &self.ft, &self.tf, &self.tt] {
            to.keep(m);
        }
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        for m in [&mut self.ff, &mut self.ft, &mut self.tf, &mut self.tt] {
            from.take(m);
        }
    }
}

impl Kept for Ball {
    fn put(&self, to: &mut Writer) {
        for m in [&self.ft, &self.inverse, &self.answer] {
            to.keep(m);
        }
    }

    #[inline(always)]
    fn take(&mut self, from: &mut Reader) {
        for m in [&mut self.ft, &mut self.inverse, &mut self.answer] {
            from.take(m);
        }
    }
}

impl Local {
    fn put(&self, is_damped: bool, to: &mut Writer) {
        for m in [&self.by_end, &self.inverse, &self.by_knot] {
            to.keep(m);
        }
        to.keep(&self.omega);
        if is_damped {
            to.keep(&self.damped_by_end);
            to.keep(&self.damped_by_knot);
        }
    }

    fn take(&mut self, is_damped: bool, from: &mut Reader) {
        for m in [&mut self.by_end, &mut self.inverse, &mut self.by_knot] {
            from.take(m);
        }
        from.take(&mut self.omega);
        if is_damped {
            from.take(&mut self.damped_by_end);
            from.take(&mut self.damped_by_knot);
        }
    }
}

/// Is what moves a joint's ends dear?
fn is_dear(node: &Node, is_damped: bool) -> bool {
    node.turns == 2 || (node.turns == 3 && is_damped)
}

impl Minimal {
    /// Does anything act between points of bodies? Else forces are weights.
    fn acts_between_points(&self) -> bool {
        let m = &self.mechanism;
        let is_point = |d: &Drive| !matches!(d, Drive::Joint { .. });
        !m.springs.is_empty()
            || !m.potentials.is_empty()
            || m.actuators.iter().any(|a| is_point(&a.drive))
    }

    fn has_parameters(&self) -> bool {
        !self.mechanism.parameters.is_empty()
    }

    /// Do derivatives ask where bodies are?
    fn asks_poses(&self) -> bool {
        self.has_parameters() || self.acts_between_points()
    }

    fn asks_relative(&self, node: &Node) -> bool {
        self.has_parameters() || node.turns == 2
    }

    /// Numbers to keep, of the parameters that make most. What touches, gears and dampers between points have more to a
    /// linearization: nothing is kept then.
    pub(super) fn kept_len(&self) -> usize {
        if !self.contacts.is_empty() || self.bordered() > 0 {
            return 0;
        }
        self.nodes.iter().map(|node| self.kept_of(node)).sum()
    }

    fn kept_of(&self, node: &Node) -> usize {
        let (n, j) = (node.count(), &self.mechanism.joints[node.joint]);
        let tuned = self.has_parameters();
        let (is_sprung, is_damped) = (tuned || j.has_springs(), tuned || j.has_dampers());
        let factors = match node.is_ball() && !is_damped {
            true => BALL,
            false => n * AXIS + n * n,
        };
        let momenta = match self.lagrangian {
            Lagrangian::Split => APART,
            Lagrangian::Screw => 2 * (2 * VECTOR + 4 * MATRIX),
        };
        let of = |has: bool, numbers: usize| if has { numbers } else { 0 };
        // free directions and efforts
        let along = n * (FREE + 1);
        BODY + momenta
            + along
            + factors
            + of(self.acts_between_points(), 2 * VECTOR)
            + of(self.asks_poses(), VECTOR + ROTATION)
            + of(self.asks_relative(node), ROTATION)
            + of(node.turns == 2, MATRIX + 4 * VECTOR * n)
            + of(node.turns > 1 && is_sprung, MATRIX)
            + of(is_dear(node, is_damped), 2 * LOCAL)
            + of(is_dear(node, is_damped) && is_damped, 4 * MATRIX)
    }

    /// Not of what is relaxed, which is no derivative of the step.
    pub(super) fn keep_linearized(&self, w: &Work, kept: &mut [f64]) -> bool {
        let (Some(l), true) = (&w.linear, self.kept_len() > 0) else {
            return false;
        };
        if w.relaxed > 0.0 {
            return false;
        }
        let mut to = Writer(kept);
        let mut place = w.inverses.len();
        for i in 0..self.nodes.len() {
            self.keep_node(w, l, (i, &mut place), &mut to);
        }
        true
    }

    fn keep_node(&self, w: &Work, l: &Linear, (i, place): (usize, &mut usize), to: &mut Writer) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let n = node.count();
        to.keep(&k.arms);
        to.keep(&w.past[i]);
        to.keep(&w.trial[i]);
        let axes = &w.axes[node.directions()];
        axes.iter()
            .for_each(|axis| to.keep(&(axis.left, axis.right)));
        *place -= n * n;
        if w.balls[i].is_free {
            to.keep(&w.balls[i]);
        } else {
            axes.iter()
                .for_each(|axis| to.keep(&(axis.wrench, axis.answer)));
            to.put(&w.inverses[*place..*place + n * n]);
        }
        for (p, by) in w.momenta[i].iter().zip(&l.momenta[i]) {
            match &by.coupled {
                None => to.keep(&(p.1, by.turn)),
                Some(all) => to.keep(&(*p, *all)),
            }
        }
        to.put(&w.efforts[node.directions()]);
        if self.acts_between_points() {
            to.keep(&k.force);
        }
        if self.asks_poses() {
            let pose = &w.poses[node.body];
            to.keep(&(pose.x, pose.q));
        }
        if self.asks_relative(node) {
            to.keep(&k.relative);
        }
        if node.turns == 2 {
            to.keep(&k.joint);
            l.ends[node.directions()].iter().for_each(|e| to.keep(e));
        }
        if node.turns > 1 && k.is_sprung {
            to.keep(&l.springs[i]);
        }
        if is_dear(node, k.is_damped) {
            l.locals[i].iter().for_each(|own| own.put(k.is_damped, to));
        }
    }

    /// Not possible, and nothing done, where the residuals of solves are asked for, which need more, and where derivatives are
    /// relaxed.
    pub(super) fn restore_linearized(
        &self,
        s: &SolvedStep,
        kept: &[f64],
        w: &mut Work,
    ) -> Result<bool, StepError> {
        if w.certificate.is_some() || w.relaxed > 0.0 || kept.is_empty() {
            return Ok(false);
        }
        parameter::apply(&self.mechanism, s.p, &mut w.parameters, &mut w.model)?;
        w.positions.copy_from_slice(&s.x[..self.positions]);
        w.before.copy_from_slice(&s.x[self.positions..]);
        w.rates.copy_from_slice(&s.y[..self.freedoms]);
        w.commanded.copy_from_slice(s.u);
        let each = w.controls.iter_mut().zip(&w.model.actuators).zip(s.u);
        each.for_each(|((control, a), u)| *control = a.exerted(*u));
        let mut l = Self::lend(w);
        (l.at, l.has_ends) = (s.at, false);
        w.h_prev = s.at.h_prev;
        wide!(self.take_nodes(w, &mut l, Reader(kept)));
        w.linear = Some(l);
        self.couple(w);
        Ok(true)
    }

    #[inline(always)]
    fn take_nodes(&self, w: &mut Work, l: &mut Linear, mut from: Reader) {
        let mut place = w.inverses.len();
        let (by_points, poses) = (self.acts_between_points(), self.asks_poses());
        for (i, node) in self.nodes.iter().enumerate() {
            self.take_motion(w, i, &mut from);
            let n = node.count();
            let axes = &mut w.axes[node.directions()];
            for axis in &mut *axes {
                let mut from = from.part::<FREE>();
                from.take(&mut axis.left);
                from.take(&mut axis.right);
            }
            place -= n * n;
            let ball = &mut w.balls[i];
            ball.is_free = node.is_ball() && !w.knot[i].is_damped;
            if ball.is_free {
                from.part::<BALL>().take(ball);
            } else {
                for axis in axes {
                    let mut from = from.part::<AXIS>();
                    from.take(&mut axis.wrench);
                    from.take(&mut axis.answer);
                }
                from.slice(&mut w.inverses[place..place + n * n]);
            }
            self.take_momenta(w, l, i, &mut from);
            from.slice(&mut w.efforts[node.directions()]);
            let k = &mut w.knot[i];
            if by_points {
                from.take(&mut k.force);
            } else {
                k.force.0 = w.model.gravity * k.mass;
                k.force.1 = Vec3::zeros();
            }
            if poses {
                let pose = &mut w.poses[node.body];
                from.take(&mut pose.x);
                from.take(&mut pose.q);
                pose.r = rotation(&pose.q);
            }
            if self.asks_relative(node) {
                from.take(&mut k.relative);
            }
            if node.turns == 2 {
                from.take(&mut k.joint);
                let ends = &mut l.ends[node.directions()];
                ends.iter_mut().for_each(|ends| from.take(ends));
            }
            self.take_joint(w, l, i, &mut from);
        }
    }

    #[inline(always)]
    fn take_motion(&self, w: &mut Work, i: usize, from: &mut Reader) {
        let (node, k) = (&self.nodes[i], &mut w.knot[i]);
        let j = &w.model.joints[node.joint];
        (k.is_sprung, k.is_damped) = (j.has_springs(), j.has_dampers());
        k.mass = w.model.bodies[node.body].mass;
        let mut from = from.part::<BODY>();
        from.take(&mut k.arms);
        from.take(&mut w.past[i]);
        from.take(&mut w.trial[i]);
    }

    #[inline(always)]
    fn take_momenta(&self, w: &mut Work, l: &mut Linear, i: usize, from: &mut Reader) {
        let mass = w.knot[i].mass;
        let ([p, next], [by, by_next]) = (&mut w.momenta[i], &mut l.momenta[i]);
        match self.lagrangian {
            Lagrangian::Split => {
                let mut from = from.part::<APART>();
                let mut take = |p: &mut Six, by: &mut Blocks, to: &Moved| {
                    p.0 = to.velocity * mass;
                    from.take(&mut p.1);
                    from.take(&mut by.turn);
                    (by.mass, by.coupled) = (mass, None);
                };
                take(p, by, &w.past[i]);
                take(next, by_next, &w.trial[i]);
            }
            Lagrangian::Screw => {
                let mut take = |p: &mut Six, by: &mut Blocks| {
                    from.take(p);
                    let mut all = Articulated::ZERO;
                    from.take(&mut all);
                    *by = Blocks::coupled(all);
                };
                take(p, by);
                take(next, by_next);
            }
        }
    }

    #[inline(always)]
    fn take_joint(&self, w: &Work, l: &mut Linear, i: usize, from: &mut Reader) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let j = &w.model.joints[node.joint];
        if k.is_sprung {
            match node.turns {
                0 | 1 => l.springs[i] = spring_derivative(j, node, k),
                _ => from.take(&mut l.springs[i]),
            }
        }
        let [past, behind] = &mut l.locals[i];
        if is_dear(node, k.is_damped) {
            past.take(k.is_damped, from);
            behind.take(k.is_damped, from);
        } else {
            let (own, r) = (node.directions(), &k.relative);
            past.update(j, node, r, &w.before[own.clone()], -l.at.h_prev);
            behind.update(j, node, r, &w.rates[own], l.at.h);
        }
    }
}
