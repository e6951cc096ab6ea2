//! The fastest swing about a knot: of springs, and of what joints hold under tension.
//!
//! With the forces `F` of an interval as given, the step's change of velocity by a displacement `dz` is
//! `dv = h P M^-1 (dF/dz) dz`, `P` the projection onto the joints' tangent: a mode of `-P M^-1 dF/dz` with the eigenvalue
//! `omega^2` is stable while `h omega < 2`. What turns `F` with `z` is a joint's impulse, whose direction and lever turn with the
//! bodies, beside springs and efforts.
//!
//! Where a [bound](swing::bound) alarms, the factors of the step's matrix give the mode itself by power iteration.

use super::linear::six;
use super::{Maximal, Work};
use crate::dynamics::{KnotPoint, Place, Stage, StepError};
use crate::integrator::{mechanical::Swing, swing};
use crate::mechanism::Row;

/// Twice the kinetic energy of a body, of six velocities each.
pub(super) fn energy_of(w: &Work, v: &[f64], b: usize) -> f64 {
    let (body, six) = (&w.model.bodies[b], six(v, b));
    let (x, turn) = (six.fixed_rows::<3>(0), six.fixed_rows::<3>(3));
    body.mass * x.norm_squared() + turn.dot(&(body.inertia * turn))
}

impl Maximal {
    /// [`Mechanical::swing`](crate::integrator::Mechanical::swing) of the mechanism as it is applied.
    pub(super) fn fastest_swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut Work,
    ) -> Result<Swing, StepError> {
        // between two intervals of that length the impulses are those given
        let h = weight;
        let place = Place {
            t: seen.at.t,
            h_prev: h,
            stage: Stage::Step(h),
        };
        self.prepare(place, seen.x, seen.u, w)?;
        w.contacts.set_aside();
        let n = 6 * self.body_count();
        w.newton.trial[..n].copy_from_slice(&w.knot.before);
        match seen.y.get(n..self.symbolic.dim()) {
            Some(impulses) => w.newton.trial[n..].copy_from_slice(impulses),
            None => w.newton.trial[n..].fill(0.0),
        }
        let (_, turn) = w.model.largest_chord_turn(&w.knot.before, 1.0);
        let bound = Swing {
            turn,
            ..self.bound(h, w)
        };
        if bound.rate <= above {
            return Ok(bound);
        }
        let mut dampings = std::mem::take(&mut w.dampings);
        swing::scale_dampers(&mut w.model, &mut dampings);
        let found = self.power_iteration(h, w);
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

    /// The bound, with the impulses of an interval `h` in `w.newton.trial`.
    fn bound(&self, h: f64, w: &mut Work) -> Swing {
        let squares = &mut w.newton.scratch[..self.body_count()];
        let (rows, trial, joints) = (&w.knot.rows, &w.newton.trial, &w.model.joints);
        let exerted = |joint: usize| {
            let s = self.slots[joint]?;
            let rows = rows[s.first_row..s.first_row + joints[joint].rows()].iter();
            let each = rows.zip(&trial[s.offset..]);
            Some(each.fold(Row::ZERO, |sum, (row, impulse)| sum + *row * (impulse / h)))
        };
        let efforts = w.knot.control.iter().copied();
        let poses = &w.knot.poses;
        swing::bound(
            &w.model,
            &w.inverse_inertia,
            poses,
            efforts,
            squares,
            exerted,
        )
    }

    fn energy_along(&self, w: &Work, v: &[f64]) -> f64 {
        (0..self.body_count()).map(|b| energy_of(w, v, b)).sum()
    }

    /// The mode itself, at the unknowns in `w.newton.trial`.
    fn power_iteration(&self, h: f64, w: &mut Work) -> Option<Swing> {
        let n = 6 * self.body_count();
        self.evaluate(w);
        self.assemble_and_keep(w, false);
        self.try_factor(w).ok()?;
        self.turn_elements(w);
        w.adjoint.coupled = false;
        let mut d = std::mem::take(&mut w.observation.inputs);
        let (mut rhs, mut out) = (
            std::mem::take(&mut w.newton.delta),
            std::mem::take(&mut w.newton.y),
        );
        d.clear();
        // as much energy in every freedom of every body
        for (b, body) in w.model.bodies.iter().enumerate() {
            for i in 0..6 {
                let size = if i < 3 {
                    body.mass
                } else {
                    1.0 / w.inverse_inertia[b][(i - 3, i - 3)]
                };
                d.x[6 * b + i] = swing::spread(6 * b + i) / size.sqrt();
            }
        }
        let mut found = None;
        for _ in 0..swing::ITERATIONS {
            let before = self.energy_along(w, &d.x);
            self.change_bodies(w, &d, &mut rhs);
            // displacements along the joints: their rows alone project
            rhs[n..].fill(0.0);
            self.solve_once(w, &rhs, &mut out, false);
            let after = self.energy_along(w, &out);
            if !(after.is_finite() && after > 0.0 && before > 0.0) {
                break;
            }
            let square = (after / before).sqrt() / h;
            let (body, _) = swing::most((0..self.body_count()).map(|b| energy_of(w, &out, b)));
            found = Some(Swing {
                rate: square.sqrt(),
                bound: square.sqrt(),
                body,
                turn: 0.0,
            });
            let scale = 1.0 / after.sqrt();
            for (x, v) in d.x[..n].iter_mut().zip(&out) {
                *x = scale * v;
            }
        }
        d.clear();
        w.observation.inputs = d;
        (w.newton.delta, w.newton.y) = (rhs, out);
        found
    }
}
