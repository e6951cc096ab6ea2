//! The fastest swing about a knot: of springs, and of what joints hold under tension. [`Turning`](swing::Turning) has the mode.

use super::{Maximal, Work};
use crate::dynamics::{KnotPoint, Place, Stage, StepError};
use crate::integrator::{mechanical::Swing, swing};
use crate::mechanism::{Row, vec3};

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
        let (before, poses) = (&w.knot.before, &w.knot.poses);
        let spin = w.model.spin_on_contacts(poses, seen.at.h.abs(), |b| {
            (vec3(before, 6 * b), poses[b].r * vec3(before, 6 * b + 3))
        });
        let bound = Swing {
            turn,
            spin,
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
                spin,
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

    /// The mode itself, with the impulses in `w.newton.trial`.
    fn power_iteration(&self, h: f64, w: &mut Work) -> Option<Swing> {
        let n = 6 * self.body_count();
        let mut turning = std::mem::take(&mut w.turning);
        let trial = &w.newton.trial;
        turning.collect(
            (&w.model, &w.knot.poses, h),
            |joint| self.winding_of[joint].map_or(0.0, |i| w.knot.winding[i]),
            |joint| {
                let s = self.slots[joint]?;
                Some(&trial[s.offset..s.offset + w.model.joints[joint].rows()])
            },
            w.knot.control.iter().copied(),
        );
        self.turn_elements(w);
        for (bodies, first, factor) in self.turning(&w.model, h) {
            let blocks = &w.elements.hessian[first..first + bodies.len().pow(2)];
            turning.add(bodies, -factor, blocks);
        }
        w.newton.trial[..n].fill(0.0);
        self.evaluate(w);
        self.assemble_and_keep(w, false);
        let found = match self.try_factor(w) {
            Ok(()) => turning.power_iteration(
                w,
                |w| (&w.model, &w.inverse_inertia),
                h,
                |w, wrench, velocity| {
                    let (mut rhs, mut out) = (
                        std::mem::take(&mut w.newton.delta),
                        std::mem::take(&mut w.newton.y),
                    );
                    rhs[..n].copy_from_slice(wrench);
                    // displacements along the joints: their rows alone project
                    rhs[n..].fill(0.0);
                    self.solve_once(w, &rhs, &mut out, false);
                    velocity.copy_from_slice(&out[..n]);
                    (w.newton.delta, w.newton.y) = (rhs, out);
                },
            ),
            Err(_) => None,
        };
        w.turning = turning;
        found
    }
}
