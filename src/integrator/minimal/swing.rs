//! The fastest swing about a knot: of springs, and of what joints hold under tension, which turns with the bodies.
//!
//! With what acts for a while `h` held, momenta among it, a displacement of the knot changes the residual by its own geometry alone
//! (and by springs); what the factors make of that is the change of the rates, `h omega^2` times the displacement in a mode.

use super::Minimal;
use super::work::Work;
use crate::dynamics::{Knot, KnotPoint, StepError};
use crate::integrator::{mechanical::Swing, swing};
use crate::mechanism::Row;
use crate::spatial::{Mat3, Vec3};

impl Minimal {
    /// [`Mechanical::swing`](crate::integrator::Mechanical::swing) of the mechanism as it is applied. What the joints exert is that of
    /// one iteration of the step between two intervals `h`.
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
        self.prepare(&at, seen.x, seen.u, w)?;
        let turns = w.knot.iter().zip(&w.past);
        let turn = swing::most(turns.map(|(k, to)| k.law.chord_turn(&to.omega, 1.0))).1;
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
            Swing { turn, ..found }
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
                ..found
            },
            _ => bound,
        })
    }

    /// The mode itself, at the rates in `w.rates`.
    fn power_iteration(&self, at: &Knot, x: &[f64], w: &mut Work) -> Option<Swing> {
        let mut l = Self::lend(w);
        let mut d = std::mem::take(&mut w.inputs);
        self.couple(w);
        l.at = *at;
        self.differentiate(x, w, &mut l);
        l.holds_momenta = true;
        d.clear();
        for (i, d) in d.x[..self.freedoms].iter_mut().enumerate() {
            *d = swing::spread(i);
        }
        self.gears.level(&w.model, &mut d.x);
        let mut found = None;
        if self.factor(w, at.h).is_ok() {
            for _ in 0..swing::ITERATIONS {
                l.rho[1].fill(0.0);
                self.push_residual(w, &mut l, &d);
                let before = self.energies(w, l.flow.iter().map(|f| f.z)).sum::<f64>();
                self.solve_rows(w, &mut l);
                let after = self.energies(w, w.wrenches.iter().copied()).sum::<f64>();
                if !(after.is_finite() && after > 0.0 && before > 0.0) {
                    break;
                }
                let square = (after / before).sqrt() / at.h;
                let (node, _) = swing::most(self.energies(w, w.wrenches.iter().copied()));
                found = Some(Swing {
                    rate: square.sqrt(),
                    bound: square.sqrt(),
                    body: self.nodes[node].body,
                    turn: 0.0,
                });
                let scale = 1.0 / after.sqrt();
                for (d, rho) in d.x.iter_mut().zip(&l.rho[1]) {
                    *d = scale * rho;
                }
            }
        }
        l.holds_momenta = false;
        d.clear();
        (w.linear, w.inputs) = (Some(l), d);
        found
    }

    /// Twice the kinetic energy of each body at velocities, world axes.
    pub(super) fn energies<'a>(
        &self,
        w: &'a Work,
        velocities: impl Iterator<Item = (Vec3, Vec3)> + 'a,
    ) -> impl Iterator<Item = f64> + 'a {
        let each = w.knot.iter().zip(velocities);
        each.map(|(k, (v, turn))| k.mass * v.norm_squared() + turn.dot(&(k.inertia * turn)))
    }
}
