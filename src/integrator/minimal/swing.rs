//! The fastest swing about a knot: of springs, and of what joints hold under tension. [`Turning`](swing::Turning) has the mode.
//!
//! The mode depends on the constraint forces of the joints. In maximal coordinates these are unknowns of the step; in joint coordinates
//! [`Minimal::tensions_of`] computes them from the rates after a step. Before the first step, one iteration without contacts, limits and
//! friction predicts them.

use super::Minimal;
use super::contact::six;
use super::forces::to_world;
use super::work::Work;
use crate::dynamics::{Knot, KnotPoint, Step, StepError};
use crate::integrator::{mechanical::Swing, swing};
use crate::mechanism::{Mat6, Row};
use crate::spatial::Mat3;

impl Minimal {
    /// [`Mechanical::swing`](crate::integrator::Mechanical::swing) of the mechanism as it is applied.
    pub(super) fn fastest_swing(
        &self,
        seen: &KnotPoint,
        h: f64,
        above: f64,
        w: &mut Work,
    ) -> Result<Swing, StepError> {
        let at = Knot {
            h_prev: h,
            h,
            ..seen.at
        };
        // at a start the state has the rates of the instant, which lead nowhere where no interval has such
        let start = Knot { h_prev: 0.0, ..at };
        let begins = seen.at.h_prev == 0.0;
        self.prepare(if begins { &start } else { &at }, seen.x, seen.u, w)?;
        if begins {
            self.push_forces(&at, seen.x, seen.u, w);
        }
        let turns = w.knot.iter().zip(&w.past);
        let turn = swing::most(turns.map(|(k, to)| k.law.chord_turn(&to.omega, 1.0))).1;
        let spin = w.model.spin_on_contacts(&w.poses, seen.at.h.abs(), |b| {
            let to = &w.past[self.node_of[b]];
            (to.velocity, to.omega)
        });
        let known = Step::dims(self).ny;
        match seen.y.get(known..).filter(|tensions| !tensions.is_empty()) {
            Some(tensions) => {
                w.observation.reactions.copy_from_slice(tensions);
                let (_, impulses) = self.beyond_rates(&seen.y[..known]);
                w.geared.impulses.copy_from_slice(impulses);
            }
            None => self.predict(seen, h, w),
        }
        for (inverse, body) in w.inverse_inertia.iter_mut().zip(&w.model.bodies) {
            *inverse = body.inertia.try_inverse().unwrap_or_else(Mat3::zeros);
        }
        let bound = {
            let (m, poses, reactions) = (&w.model, &w.poses, &w.observation.reactions);
            let exerted = |joint: usize| {
                let j = &m.joints[joint];
                let (a, b) = m.ends(j, poses);
                let relative = j.relative(a, b);
                let own = &reactions[self.reactions_of[joint].clone()];
                let each = own.iter().enumerate();
                Some(each.fold(Row::ZERO, |sum, (i, impulse)| {
                    sum + j.row(i, a, b, &relative) * (impulse / h)
                }))
            };
            let efforts = w.controls.iter().map(|c| c.0);
            let found = swing::bound(
                m,
                &w.inverse_inertia,
                poses,
                efforts,
                &mut w.scratch,
                exerted,
            );
            Swing {
                turn,
                spin,
                ..found
            }
        };
        if bound.rate <= above {
            return Ok(bound);
        }
        let mut dampings = std::mem::take(&mut w.dampings);
        swing::scale_dampers(&mut w.model, &mut dampings);
        let found = self.power_iteration(&at, seen.x, w);
        swing::restore_dampers(&mut w.model, &dampings);
        w.dampings = dampings;
        Ok(match found {
            // matrices that cannot be factored leave the bound
            Some(found) if found.rate <= bound.rate => Swing {
                bound: bound.rate,
                turn,
                spin,
                ..found
            },
            _ => bound,
        })
    }

    /// What joints exert in one iteration of the step between two intervals `h`.
    fn predict(&self, seen: &KnotPoint, h: f64, w: &mut Work) {
        self.guess(&seen.x[self.positions..], h, w);
        if self.factor(w, h).is_ok() {
            self.solve(w, h);
            w.kept.copy_from_slice(&w.rates);
            self.take(1.0, h, w);
            if (self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial)).is_some() {
                self.guess(&seen.x[self.positions..], h, w);
            }
        }
        self.react_at(h, h, w);
    }

    /// Impulses of the joints' constraints in the step made last, from the knot `at`, which the memory holds.
    pub(super) fn tensions_of(&self, at: &Knot, w: &mut Work, out: &mut [f64]) {
        if !self.contacts.is_empty() {
            let mut rows = std::mem::take(&mut w.touching.rows);
            rows.fill(0.0);
            (self.contacts).add_impulses(&w.touching.memory, &mut rows);
            for (node, k) in self.nodes.iter().zip(&mut w.knot) {
                k.touch = to_world(&w.poses[node.body].r, &six(&rows, node.body));
            }
            w.touching.rows = rows;
        }
        self.react_at(0.5 * (at.h_prev + at.h), at.h, w);
        out.copy_from_slice(&w.observation.reactions);
    }

    /// The mode itself, with what joints exert in `w.observation.reactions`.
    fn power_iteration(&self, at: &Knot, x: &[f64], w: &mut Work) -> Option<Swing> {
        let h = at.h;
        let mut turning = std::mem::take(&mut w.turning);
        let reactions = &w.observation.reactions;
        turning.collect(
            (&w.model, &w.poses, h),
            |joint| self.winding_of(&self.nodes[self.node_of_joint[joint]], x),
            |joint| Some(&reactions[self.reactions_of[joint].clone()]),
            w.controls.iter().map(|c| c.0),
        );
        let m = &w.model;
        for p in &m.potentials {
            let n = p.bodies.len();
            w.gathered.clear();
            w.gathered.extend(p.bodies.iter().map(|b| w.poses[*b]));
            w.hessian.resize(n * n, Mat6::zeros());
            p.hessian(&w.gathered, &mut w.hessian[..n * n]);
            turning.add(&p.bodies, -h, &w.hessian[..n * n]);
        }
        for (c, impulse) in m.constraints.iter().zip(&w.geared.impulses) {
            let n = c.bodies.len();
            w.gathered.clear();
            w.gathered.extend(c.bodies.iter().map(|b| w.poses[*b]));
            w.hessian.resize(n * n, Mat6::zeros());
            let blocks = &mut w.hessian[..n * n];
            c.hessian(&m.joints, &w.gathered, &[*impulse], blocks);
            turning.add(&c.bodies, 1.0, blocks);
        }
        w.touching.acts = false;
        w.rates.fill(0.0);
        // at rest no body turns too far
        let _ = self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial);
        let found = match self.factor(w, h) {
            Ok(()) => turning.power_iteration(
                w,
                |w| (&w.model, &w.inverse_inertia),
                h,
                |w, wrench, velocity| {
                    self.take_rows(w, h, wrench, false);
                    let mut rows = std::mem::take(&mut w.rows);
                    rows.fill(0.0);
                    self.substitute(w, &rows);
                    w.rows = rows;
                    self.give_changes(w, h, velocity, false);
                },
            ),
            Err(_) => None,
        };
        w.turning = turning;
        found
    }
}
