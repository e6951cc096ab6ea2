//! The fastest swing about a knot: of springs, and of what joints hold under tension.
//!
//! With the forces `F` of an interval as given, the step's change of velocity by a displacement `dz` is
//! `dv = h P M^-1 (dF/dz) dz`, `P` the projection onto the joints' tangent: a mode of `-P M^-1 dF/dz` with the eigenvalue
//! `omega^2` is stable while `h omega < 2`. What turns `F` with `z` is a joint's impulse, whose direction and lever turn with the
//! bodies, beside springs and efforts.
//!
//! For a body alone, `omega^2` is at most the sum over its joints of the force times its lever (and the torque), over the
//! smallest moment of inertia, and for springs of their stiffness times `row M^-1 row'`. That needs no solve and is 1.3 to 6
//! times too large, the more the lighter the body: where it alarms, the factors of the step's matrix give the mode itself by
//! power iteration.

use super::linear::six;
use super::{Maximal, Work};
use crate::dynamics::{KnotPoint, Place, Stage, StepError};
use crate::integrator::mechanical::Swing;
use crate::mechanism::{Row, compliance};
use crate::spatial::{Mat3, Vec3};

/// Power iterations: the largest eigenvalue within a tenth, since the quotient is quadratic in what its vector is off.
const ITERATIONS: usize = 10;

/// No eigenvalue of a symmetric matrix is larger (Gershgorin).
fn largest(m: &Mat3) -> f64 {
    let rows = m.row_iter().map(|r| r.abs().sum());
    rows.fold(0.0, f64::max)
}

/// Twice the kinetic energy of a body, of six velocities each.
fn energy_of(w: &Work, v: &[f64], b: usize) -> f64 {
    let (body, six) = (&w.model.bodies[b], six(v, b));
    let (x, turn) = (six.fixed_rows::<3>(0), six.fixed_rows::<3>(3));
    body.mass * x.norm_squared() + turn.dot(&(body.inertia * turn))
}

/// The largest and its index; a NaN is none.
fn most(each: impl Iterator<Item = f64>) -> (usize, f64) {
    each.enumerate().fold(
        (0, 0.0),
        |best, own| if own.1 > best.1 { own } else { best },
    )
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
        let bound = self.bound(h, w);
        if bound.rate <= above {
            return Ok(bound);
        }
        let found = self.power_iteration(h, w);
        Ok(match found {
            // matrices that cannot be factored leave the bound
            Some(found) if found.rate <= bound.rate => Swing {
                bound: bound.rate,
                ..found
            },
            _ => bound,
        })
    }

    /// The bound, with the impulses of an interval `h` in `w.newton.trial`.
    fn bound(&self, h: f64, w: &mut Work) -> Swing {
        let (m, inverse) = (&w.model, &w.inverse_inertia);
        let squares = &mut w.newton.scratch[..self.body_count()];
        squares.fill(0.0);
        for (j, s) in m.joints.iter().zip(&self.slots) {
            let Some(s) = s else { continue };
            let rows = &w.knot.rows[s.first_row..s.first_row + j.rows()];
            let (mut force, mut torques) = (Vec3::zeros(), [Vec3::zeros(); 2]);
            for (row, impulse) in rows.iter().zip(&w.newton.trial[s.offset..]) {
                let size = impulse / h;
                force += row.force * size;
                torques[0] += row.parent_torque * size;
                torques[1] += row.child_torque * size;
            }
            let size = force.norm();
            let ends = [
                (j.parent, &j.parent_anchor, &torques[0]),
                (Some(j.child), &j.child_anchor, &torques[1]),
            ];
            for (body, anchor, torque) in ends {
                let Some(b) = body else { continue };
                squares[b] += (size * anchor.norm() + torque.norm()) * largest(&inverse[b]);
            }
        }
        for (i, c) in m.actuators.iter().enumerate() {
            let (row, effort) = (&w.knot.control_rows[i], w.knot.control[i].abs());
            let (parent, child) = m.driven(c);
            squares[child] += effort * row.child_torque.norm() * largest(&inverse[child]);
            if let Some(p) = parent {
                squares[p] += effort * row.parent_torque.norm() * largest(&inverse[p]);
            }
        }
        let mut stiff = |parent: Option<usize>, child: usize, row: &Row, stiffness: f64| {
            let square = stiffness * compliance(m, inverse, (parent, child), row);
            squares[child] += square;
            if let Some(p) = parent {
                squares[p] += square;
            }
        };
        for (index, j) in m.joints.iter().enumerate().filter(|(_, j)| j.has_springs()) {
            let (a, b) = m.ends(j, &w.knot.poses);
            for (i, d) in j.directions.iter().enumerate() {
                if d.stiffness > 0.0 {
                    let row = j.direction_row(i, a, b, &w.knot.relative[index]);
                    stiff(j.parent, j.child, &row, d.stiffness);
                }
            }
        }
        for s in &m.springs {
            let row = s.length_row(m.pose(&w.knot.poses, s.parent), &w.knot.poses[s.child]);
            stiff(s.parent, s.child, &row, s.stiffness);
        }
        let (body, square) = most(squares.iter().copied());
        Swing {
            rate: square.sqrt(),
            bound: square.sqrt(),
            body,
        }
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
        // as much energy in every freedom of every body; the golden ratio's multiples spread evenly
        for (b, body) in w.model.bodies.iter().enumerate() {
            for i in 0..6 {
                let spread = (0.618_033_988_749_895 * (6 * b + i + 1) as f64).fract() - 0.5;
                let size = if i < 3 {
                    body.mass
                } else {
                    1.0 / w.inverse_inertia[b][(i - 3, i - 3)]
                };
                d.x[6 * b + i] = spread / size.sqrt();
            }
        }
        let mut found = None;
        for _ in 0..ITERATIONS {
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
            let (body, _) = most((0..self.body_count()).map(|b| energy_of(w, &out, b)));
            found = Some(Swing {
                rate: square.sqrt(),
                bound: square.sqrt(),
                body,
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
