//! States: how they are stored, made from joint coordinates, and read.

use super::kinematics::turn;
use super::work::Work;
use super::{Minimal, Node};
use crate::dynamics::{Start, StepError};
use crate::mechanism::{Mechanism, Motion};
use crate::spatial::{Mat3, Pose, Quat, Vec3, exp, left_log_jacobian, log};
use nalgebra::DMatrix;

impl Minimal {
    /// The state at a start: of a start in motion joints were displaced by `before rates` since then, slides and angles by
    /// that difference, balls by that rotation.
    pub(super) fn start_at(&self, start: &Start, w: &Work, x: &mut [f64]) -> Result<(), StepError> {
        let (q, rates) = (start.coordinates, start.rates);
        if q.len() != self.freedoms || rates.len() != self.freedoms {
            let (q, rates, n) = (q.len(), rates.len(), self.freedoms);
            return Err(StepError::of_size(
                "the start",
                format!("{q} coordinates and {rates} rates; give {n} of each"),
            ));
        }
        let (positions, stored) = x.split_at_mut(self.positions);
        stored.copy_from_slice(rates);
        for node in &self.nodes {
            let j = &w.model.joints[node.joint];
            let own = &q[node.directions()];
            positions[node.place..node.place + node.slides].copy_from_slice(&own[..node.slides]);
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => positions[place.start] = own[node.slides],
                _ => {
                    let r = j.relative_at(own).r;
                    positions[place].copy_from_slice(&[r.w, r.i, r.j, r.k]);
                }
            }
            if start.before != 0.0 && node.turns > 0 {
                self.interval_turn(w, node, start.before, &rates[node.directions()], q, stored)?;
            }
        }
        Ok(())
    }

    /// The rates of turns over an interval, at whose end the coordinates are `q`, that displace a joint by that much.
    fn interval_turn(
        &self,
        w: &Work,
        node: &Node,
        h: f64,
        rates: &[f64],
        q: &[f64],
        stored: &mut [f64],
    ) -> Result<(), StepError> {
        let j = &w.model.joints[node.joint];
        let now = j.relative_at(&q[node.directions()]).r;
        let turned = if node.turns == 2 {
            let then: Vec<f64> = rates.iter().map(|r| -h * r).collect();
            let back = exp(&turn(j, node, &now, &then));
            let mut old = (back * now).into_inner();
            // on the joint, where the interval begins
            let off = j.axis.dot(&old.imag());
            old.as_vector_mut()
                .fixed_rows_mut::<3>(0)
                .axpy(-off, &j.axis, 1.0);
            now * Quat::new_normalize(old).inverse()
        } else {
            exp(&(turn(j, node, &now, rates) * h))
        };
        if turned.w <= 0.0 {
            return Err(StepError {
                failure: crate::dynamics::StepFailure::Domain,
                element: format!("joint `{}`", j.name),
                time: 0.0,
                residual: f64::NAN,
                message: "it turned too far in the interval before; start slower, or with a shorter interval".into(),
            });
        }
        let omega = turned.imag() * (2.0 / h);
        let directions = j.directions.iter().zip(node.directions());
        for (d, index) in directions.skip(node.slides) {
            stored[index] = d.unit.dot(&omega);
        }
        Ok(())
    }

    /// Derivatives of the state at a start by coordinates, rates and the interval before.
    pub(super) fn start_by_coordinates(
        &self,
        start: &Start,
        w: &Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let n = self.freedoms;
        if start.before != 0.0 {
            return Err(StepError {
                failure: crate::dynamics::StepFailure::Unsupported,
                element: "the start".into(),
                time: 0.0,
                residual: f64::NAN,
                message: "derivatives of a start in motion are not offered in joint coordinates"
                    .into(),
            });
        }
        let mut out = DMatrix::identity(2 * n, 2 * n + 1);
        for node in self.nodes.iter().filter(|n| n.turns > 1) {
            let j = &w.model.joints[node.joint];
            let q = &start.coordinates[node.directions()];
            let rho = log(&j.relative_at(q).r);
            // the turn that follows a change of the rotation vector
            let by = left_log_jacobian(&rho)
                .try_inverse()
                .unwrap_or_else(Mat3::identity);
            for (c, b) in j.directions.iter().enumerate().skip(node.slides) {
                for (r, a) in j.directions.iter().enumerate().skip(node.slides) {
                    out[(node.first + r, node.first + c)] = a.unit.dot(&(by * b.unit));
                }
            }
        }
        Ok(out)
    }

    /// Poses of all bodies.
    pub fn poses(&self, x: &[f64]) -> Vec<Pose> {
        let mut w = self.memory();
        self.locate(x, &mut w);
        w.poses
    }

    /// Velocities of the interval `h` before the knot; of the instant where there is none.
    pub fn interval_velocities(&self, x: &[f64], h: f64) -> Vec<Motion> {
        let mut w = self.memory();
        self.locate(x, &mut w);
        // where it turned too far the rest is not read
        let _ = self.lead(&w.model, &w.knot, &x[self.positions..], -h, &mut w.trial);
        let mut out = vec![(Vec3::zeros(), Vec3::zeros()); w.poses.len()];
        for (node, moved) in self.nodes.iter().zip(&w.trial) {
            let r = &w.poses[node.body].r;
            out[node.body] = (moved.velocity, r.tr_mul(&moved.omega));
        }
        out
    }

    /// The state at the next knot, from the joints' rates over the interval.
    pub(super) fn write_next(&self, m: &Mechanism, w: &Work, x: &[f64], h: f64, next: &mut [f64]) {
        next[self.positions..].copy_from_slice(&w.rates);
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            let j = &m.joints[node.joint];
            let own = &w.rates[node.directions()];
            for i in 0..node.slides {
                next[node.place + i] = x[node.place + i] + h * own[i];
            }
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => {
                    let half = 0.5 * h * own[node.slides];
                    next[place.start] = x[place.start] + 2.0 * half.asin();
                }
                _ => {
                    let spin = turn(j, node, &k.relative, own);
                    let r = Self::turned(&k.relative, &spin, h).into_inner();
                    // unit by construction; one Newton step on the norm keeps rounding from adding up
                    let r = r * (1.5 - 0.5 * r.norm_squared());
                    next[place].copy_from_slice(&[r.w, r.i, r.j, r.k]);
                }
            }
        }
    }
}
