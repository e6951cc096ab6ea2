//! Rollouts of a policy, from the start alone or in segments.
//!
//! Where the horizon is in segments (multiple shooting: Bock and Plitt, IFAC 1984), the states at their first knots are
//! decisions of their own. They go where the linear model leads, `x + a dx`, and each segment is simulated from there, under
//! the policy's feedback (Giftthaler et al., IROS 2018, there iLQR-GNMS(M)). Between the end of a segment and the
//! beginning of the next gaps remain, of the second order in the step, which the next model closes to the first.

use super::engine::Engine;
use super::saved::Globalization;
use crate::dynamics::{Knot, Observe, StepError, stop_requested};
use crate::optimize::Iteration;
use crate::optimize::lq::dense;
use crate::optimize::state::Best;
use argmin::core::Error;

/// Where states begin that a rollout goes on from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Joints {
    /// Beside the end of the step before, by `1 - a` of the gap that was there.
    Shrunk,
    /// Where the model leads, if a segment begins there; else as above.
    Free,
    /// At the end of the step before.
    Closed,
}

/// Does a segment begin at knot `k`, of so many over so many steps? The first begins at the start.
fn begins(k: usize, segments: usize, steps: usize) -> bool {
    let segments = segments.min(steps);
    let of = |k: usize| k * segments / steps.max(1);
    (1..steps).contains(&k) && of(k) > of(k - 1)
}

/// The largest number of a gap; not finite where one is not.
fn largest(gap: &[f64]) -> f64 {
    let most = gap.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    if gap.iter().any(|g| g.is_nan()) {
        f64::NAN
    } else {
        most
    }
}

impl<D: Observe> Engine<'_, D> {
    /// Is the horizon in segments whose first states are decisions?
    pub fn has_segments(&self) -> bool {
        self.segments > 1 && !self.search.joined
    }

    /// Keeps where the policy leads by the model, which segments begin from.
    pub fn predict(&mut self) {
        if !self.has_segments() {
            return;
        }
        let n = self.model.sizes.n;
        self.predicted.resize(self.path.knots.len() * n, 0.0);
        let to = &mut self.predicted;
        self.model
            .rollout_of(&self.policy, &mut self.scratch, |k, w| {
                to[k * n..(k + 1) * n].copy_from_slice(&w[..n]);
            });
    }

    /// Joins the segments: simulates from the start alone, now and from here on. False where there are none, where that cannot
    /// be, or where the path that it leads to has no policy.
    pub fn join(&mut self) -> Result<bool, Error> {
        if !self.has_segments() || !self.close() {
            return Ok(false);
        }
        std::mem::swap(&mut self.path, &mut self.trial);
        self.predicted.clear();
        self.search = Globalization {
            joined: true,
            ..Globalization::default()
        };
        self.update_model()?;
        Ok(self.find_policy())
    }

    /// Makes the trial the path without its gaps, under the policy's feedback; false where that cannot be simulated.
    fn close(&mut self) -> bool {
        let rolled = self.roll_with(0.0, Joints::Closed);
        rolled.is_ok() && self.trial.evaluation.objective.is_finite()
    }

    /// What a path with gaps is worth without them, where it has some and can be simulated.
    pub fn closed(&mut self) -> Option<Best> {
        if !self.path.has_gaps || !self.close() {
            return None;
        }
        let row = Iteration {
            objective: self.trial.evaluation.objective,
            violation: self.trial.violation(&self.problem),
            optimality: f64::INFINITY,
            smoothing: self.level,
            softened: self.is_soft(),
            ..Iteration::default()
        };
        let trajectory = self.trial.trajectory.clone();
        Some(Best { trajectory, row })
    }

    /// Rolls the policy out from the path into the trial: `u + a k + K (x' - x, a dp)`.
    pub fn roll(&mut self, length: f64) -> Result<(), StepError> {
        let joints = if self.has_segments() && length > 0.0 {
            Joints::Free
        } else {
            Joints::Shrunk
        };
        self.roll_with(length, joints)
    }

    fn roll_with(&mut self, length: f64, joints: Joints) -> Result<(), StepError> {
        let sizes = self.model.sizes;
        let (n, m, steps) = (sizes.n, sizes.m, sizes.steps);
        let nx = self.dynamics.dims().nx;
        let ny = self.dynamics.dims().ny;
        let (old, new) = (&self.path.trajectory, &mut self.trial.trajectory);
        new.p.copy_from_slice(&old.p);
        self.s.fill(0.0);
        for (i, &p) in self.model.free.iter().enumerate() {
            let (l, h) = self.problem.parameter_bounds[p];
            new.p[p] = (old.p[p] + length * self.policy.dp[i]).max(l).min(h);
            self.s[n + i] = new.p[p] - old.p[p];
        }
        self.trial.retime(&self.problem);
        let new = &mut self.trial.trajectory;
        new.x[..nx].copy_from_slice(&old.x[..nx]);
        if let Some(state) = &self.problem.state {
            new.x[..nx].copy_from_slice(state);
        } else if sizes.q > 0 {
            let start = self.problem.start(self.dynamics, &new.p, &mut self.work)?;
            new.x[..nx].copy_from_slice(&start);
        }
        let has_gaps = match joints {
            Joints::Shrunk => self.path.has_gaps && length < 1.0,
            Joints::Free => true,
            Joints::Closed => false,
        };
        self.trial.has_gaps = has_gaps;
        self.trial.gap = 0.0;
        for k in 0..steps {
            let (old, new) = (&self.path.trajectory, &mut self.trial.trajectory);
            let at = &self.trial.knots[k];
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            // a start that is given is the same, unless it moved
            let follows = sizes.q > 0 && self.problem.state.is_none();
            if k > 0 || follows || self.start_moved {
                self.dynamics.difference(
                    &self.path.knots[k],
                    old.state(k),
                    &old.p,
                    self.model.frame(k),
                    &new.x[k * nx..(k + 1) * nx],
                    &mut self.work,
                    &mut self.dx,
                );
                self.s[..n].copy_from_slice(&self.dx);
            }
            let u = &mut new.u[k * m..(k + 1) * m];
            let feedforward = &self.policy.feedforward[k * m..(k + 1) * m];
            for ((u, o), f) in u.iter_mut().zip(old.control(k)).zip(feedforward) {
                *u = o + length * f;
            }
            dense::gemv(m, self.policy.feedback(k), &self.s, u);
            for (u, (l, h)) in u.iter_mut().zip(&self.problem.bounds) {
                *u = u.max(*l).min(*h);
            }
            let (x, next) = new.x[k * nx..].split_at_mut(nx);
            let (before, y) = new.y.split_at_mut(k * ny);
            let y = &mut y[..ny];
            match k {
                0 => y.fill(0.0),
                _ => y.copy_from_slice(&before[(k - 1) * ny..]),
            }
            self.steps += 1;
            let next = &mut next[..nx];
            self.dynamics
                .step(at, x, u, &new.p, &mut self.work, next, y)?;
            if has_gaps {
                self.trial.ends[k * nx..(k + 1) * nx].copy_from_slice(next);
                match joints {
                    Joints::Free if begins(k + 1, self.segments, steps) => {
                        self.begin_segment(k + 1, length)?;
                    }
                    _ if self.path.has_gaps && length < 1.0 => self.shrink_gap(k, length)?,
                    _ => (),
                }
            }
        }
        self.trial
            .evaluate(self.dynamics, &self.problem, &mut self.work)
    }

    /// Puts the state behind step `k` of the trial beside its end, by what is left of the gap.
    fn shrink_gap(&mut self, k: usize, length: f64) -> Result<(), StepError> {
        let (n, nx) = (self.model.sizes.n, self.dynamics.dims().nx);
        let gap = &self.model.gap[k * n..(k + 1) * n];
        for (s, g) in self.shift.iter_mut().zip(gap) {
            *s = -(1.0 - length) * g;
        }
        let after = &self.trial.knots[k + 1];
        let new = &mut self.trial.trajectory;
        let end = &self.trial.ends[k * nx..(k + 1) * nx];
        let made;
        let frame = if self.dynamics.has_identity_frames() {
            self.model.frame(k + 1)
        } else {
            let near = Some(self.model.frame(k + 1));
            made = self
                .dynamics
                .frame(after, end, &new.p, near, &mut self.work)?;
            &made
        };
        let next = &mut new.x[(k + 1) * nx..(k + 2) * nx];
        self.trial.gap += largest(&self.shift);
        self.dynamics
            .retract(after, end, &new.p, frame, &self.shift, &mut self.work, next)
    }

    /// Puts the state at knot `k` of the trial where the model leads, and adds its gap.
    fn begin_segment(&mut self, k: usize, length: f64) -> Result<(), StepError> {
        let (n, nx) = (self.model.sizes.n, self.dynamics.dims().nx);
        let moved = &self.predicted[k * n..(k + 1) * n];
        for (s, d) in self.shift.iter_mut().zip(moved) {
            *s = length * d;
        }
        let at: &Knot = &self.trial.knots[k];
        let (old, new) = (&self.path.trajectory, &mut self.trial.trajectory);
        let (p, work) = (&new.p, &mut self.work);
        let state = &mut new.x[k * nx..(k + 1) * nx];
        let frame = self.model.frame(k);
        self.dynamics
            .retract(at, old.state(k), p, frame, &self.shift, work, state)?;
        let made;
        let frame = if self.dynamics.has_identity_frames() {
            frame
        } else {
            made = self.dynamics.frame(at, state, p, Some(frame), work)?;
            &made
        };
        let end = &self.trial.ends[(k - 1) * nx..k * nx];
        self.dynamics
            .difference(at, state, p, frame, end, work, &mut self.dx);
        self.trial.gap += largest(&self.dx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn segments_begin_evenly() {
        let of = |segments, steps| -> Vec<usize> {
            (0..=steps)
                .filter(|&k| begins(k, segments, steps))
                .collect()
        };
        assert_eq!(of(1, 10), [0; 0]);
        assert_eq!(of(2, 10), [5]);
        assert_eq!(of(3, 10), [4, 7]);
        assert_eq!(of(10, 10), (1..10).collect::<Vec<_>>());
        // no more than steps
        assert_eq!(of(usize::MAX, 3), [1, 2]);
        assert_eq!(of(4, 0), [0; 0]);
    }
}
