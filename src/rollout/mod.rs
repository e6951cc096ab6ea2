//! Trajectories: a system simulated over a sequence of knots, the reverse sweep over one, batches over threads, and
//! the energy and momentum of a mechanism along one.

mod alternation;
mod cache;
mod energy;
mod feedback;
mod growth;
mod sweep;

pub use alternation::Alternation;
pub use energy::{Apart, Balance, balance, balance_with, momentum};
pub use growth::{Cause, Unexplained};
pub use sweep::Sweep;

use crate::dynamics::{
    Dynamics, Knot, KnotPoint, SolvedStep, StepError, StepStats, Stoppable, stop_requested,
};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// States at N + 1 knots, with the controls and unknowns of the N steps between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Time of the first knot, s.
    pub time: f64,
    /// Length of the interval before the first knot, s, that the velocities of a state met in motion are of; 0 where they
    /// are those of the instant.
    pub before: f64,
    /// Lengths of the intervals, s.
    pub intervals: Vec<f64>,
    /// States, `nx` each.
    pub x: Vec<f64>,
    /// Controls, `nu` each; the last knot has none, but the first has one even where no step follows.
    pub u: Vec<f64>,
    /// Unknowns of the steps, `ny` each.
    pub y: Vec<f64>,
    /// Parameters.
    pub p: Vec<f64>,
    nx: usize,
    nu: usize,
    ny: usize,
}

/// What a rollout cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RolloutStats {
    /// Steps made.
    pub steps: usize,
    /// Newton iterations of all of them.
    pub iterations: usize,
    /// Most iterations of one.
    pub most_iterations: usize,
    /// Largest residual.
    pub residual: f64,
    /// Factorizations that another method had to stand in for.
    pub fallbacks: usize,
    /// Largest h |w| of any body, as far as its rotation law takes it for its chord.
    pub turn: f64,
    /// Which body that is.
    pub turned: usize,
    /// Steps whose contacts were solved only as far as rounding allows.
    pub rounded: usize,
    /// Steps at singular positions, whose joints gave way.
    pub treated: usize,
    /// Parts that the steps were made in, of all together.
    pub parts: usize,
    /// Most parts of one.
    pub most_parts: usize,
}

impl RolloutStats {
    fn add(&mut self, s: &StepStats) {
        self.steps += 1;
        self.iterations += s.iterations;
        self.most_iterations = self.most_iterations.max(s.longest());
        self.residual = self.residual.max(s.residual);
        self.fallbacks += s.fallbacks;
        if s.turn > self.turn {
            (self.turn, self.turned) = (s.turn, s.turned);
        }
        self.rounded += s.rounded;
        self.treated += s.treated;
        self.parts += s.parts.max(1);
        self.most_parts = self.most_parts.max(s.parts.max(1));
    }
}

impl Trajectory {
    /// Room for a trajectory from `x0` with controls zero and the parameters that the system was built with. An `x0` of
    /// another length than the system's states is refused by [`Trajectory::roll`].
    pub fn new<D: Dynamics>(dynamics: &D, intervals: Vec<f64>, x0: &[f64]) -> Self {
        let (d, n) = (dynamics.dims(), intervals.len());
        let mut x = x0.to_vec();
        x.resize(x0.len() + n * d.nx, 0.0);
        Self {
            time: 0.0,
            before: 0.0,
            intervals,
            x,
            u: vec![0.0; n.max(1) * d.nu],
            y: vec![0.0; n * d.ny],
            p: dynamics.parameters().iter().map(|p| p.value).collect(),
            nx: d.nx,
            nu: d.nu,
            ny: d.ny,
        }
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.intervals.len()
    }

    /// Knot `k` with the intervals that meet there.
    pub fn knot(&self, k: usize) -> Knot {
        Knot {
            t: self.intervals[..k].iter().fold(self.time, |t, h| t + h),
            ..self.knot_at(k)
        }
    }

    /// State at knot `k`.
    pub fn state(&self, k: usize) -> &[f64] {
        &self.x[k * self.nx..(k + 1) * self.nx]
    }

    /// Control that acts at knot `k`. At the end it is that of the last step, unless a policy gave one: reading velocities
    /// there to second order needs the force of the interval's second half.
    pub fn control(&self, k: usize) -> &[f64] {
        let has_end = self.u.len() > self.steps().max(1) * self.nu;
        let k = if has_end {
            k
        } else {
            k.min(self.steps().saturating_sub(1))
        };
        &self.u[k * self.nu..(k + 1) * self.nu]
    }

    /// The knot behind `at`.
    pub fn knot_after(&self, at: &Knot) -> Knot {
        Knot {
            t: at.t + at.h,
            ..self.knot_at(at.k + 1)
        }
    }

    /// What can be seen at a knot.
    pub fn knot_point(&self, at: &Knot) -> KnotPoint<'_> {
        let k = at.k;
        KnotPoint {
            at: *at,
            x: self.state(k),
            u: self.control(k),
            p: &self.p,
            y: if k < self.steps() {
                self.unknowns(k)
            } else {
                &[]
            },
        }
    }

    /// The step from a knot, solved.
    pub fn solved(&self, at: &Knot) -> SolvedStep<'_> {
        let k = at.k;
        SolvedStep {
            at: *at,
            x: self.state(k),
            u: self.control(k),
            p: &self.p,
            y: self.unknowns(k),
            next: self.state(k + 1),
        }
    }

    /// Unknowns of the step from knot `k`.
    pub fn unknowns(&self, k: usize) -> &[f64] {
        &self.y[k * self.ny..(k + 1) * self.ny]
    }

    /// The trajectory of a system whose states and parameters are the first numbers of these, as that which
    /// [`crate::dynamics::Remember`] or [`crate::control::Extended`] extends.
    pub fn of_system<D: Dynamics>(&self, system: &D) -> Self {
        let d = system.dims();
        let states = self.x.chunks_exact(self.nx);
        Self {
            x: states.flat_map(|x| &x[..d.nx]).copied().collect(),
            p: self.p[..d.np].to_vec(),
            nx: d.nx,
            ..self.clone()
        }
    }

    /// The trajectory of a system whose states, controls and unknowns are these numbers of those of a knot here, and whose
    /// parameters are the first of these.
    pub(crate) fn part<D: Dynamics>(
        &self,
        system: &D,
        [states, controls, unknowns]: [std::ops::Range<usize>; 3],
    ) -> Self {
        let d = system.dims();
        let cut = |all: &[f64], n: usize, of: std::ops::Range<usize>, own: usize| -> Vec<f64> {
            let of = of.start..of.start + own.min(of.len());
            let knots = all.chunks_exact(n.max(1));
            knots.flat_map(|x| &x[of.clone()]).copied().collect()
        };
        Self {
            time: self.time,
            before: self.before,
            intervals: self.intervals.clone(),
            x: cut(&self.x, self.nx, states, d.nx),
            nu: controls.len(),
            u: cut(&self.u, self.nu, controls.clone(), controls.len()),
            y: cut(&self.y, self.ny, unknowns, d.ny),
            p: self.p[..d.np].to_vec(),
            nx: d.nx,
            ny: d.ny,
        }
    }

    /// Puts other controls in place of those that were decided: those that acted under a policy, `nu` a knot, the last
    /// included.
    pub(crate) fn set_controls(&mut self, u: Vec<f64>, nu: usize) {
        (self.u, self.nu) = (u, nu);
    }

    /// Keeps the first `steps` steps.
    pub fn truncate(&mut self, steps: usize) {
        self.intervals.truncate(steps);
        self.x.truncate((steps + 1) * self.nx);
        self.u.truncate(steps.max(1) * self.nu);
        self.y.truncate(steps * self.ny);
    }

    /// Is every list as long as the system asks for?
    ///
    /// # Errors
    /// [`StepFailure::Size`](crate::dynamics::StepFailure::Size), with the list that is not.
    pub fn fits<D: Dynamics>(&self, dynamics: &D) -> Result<(), StepError> {
        let (d, n) = (dynamics.dims(), self.steps());
        let controls = if self.u.len() == (n + 1) * d.nu {
            n + 1
        } else {
            n.max(1)
        } * d.nu;
        let lists = [
            ("states", self.x.len(), (n + 1) * d.nx, self.nx == d.nx),
            ("controls", self.u.len(), controls, self.nu == d.nu),
            ("unknowns", self.y.len(), n * d.ny, self.ny == d.ny),
            ("parameters", self.p.len(), d.np, true),
        ];
        match lists
            .iter()
            .find(|(_, got, expected, is_own)| got != expected || !is_own)
        {
            None => Ok(()),
            Some((what, got, expected, _)) => Err(StepError::of_size(
                *what,
                format!("{got} numbers for {n} steps; this system asks for {expected}"),
            )),
        }
    }

    /// Simulates from the first state with the controls stored. Allocates nothing.
    ///
    /// # Errors
    /// A list of another length than the system's, or the step that failed, or before which a stop was requested; the
    /// statistics count the steps before it, which are kept.
    pub fn roll<D: Dynamics>(
        &mut self,
        dynamics: &D,
        w: &mut D::Work,
        stats: &mut RolloutStats,
    ) -> Result<(), StepError> {
        self.roll_with(dynamics, w, stats, |_| ControlFlow::Continue(()))
    }

    /// [`Trajectory::roll`] that reports every knot reached, where it may be told to break off.
    ///
    /// # Errors
    /// As [`Trajectory::roll`]; [`StepFailure::Stopped`](crate::dynamics::StepFailure::Stopped) where it was broken off.
    pub fn roll_with<D: Dynamics>(
        &mut self,
        dynamics: &D,
        w: &mut D::Work,
        stats: &mut RolloutStats,
        mut progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), StepError> {
        let progress = |seen: &KnotPoint, _: &mut D::Work| Ok(progress(seen.at.k));
        let steps = self.roll_steps(dynamics, w, stats, |_, _, _, _, _| Ok(()), progress)?;
        match steps < self.steps() {
            true => Err(StepError::stopped(self.knot(steps).t)),
            false => Ok(()),
        }
    }

    /// [`Trajectory::roll`] that shows every knot reached behind the first, before the step from there: without unknowns,
    /// and under the control that is stored. Where it is told to break off it has ended. Returns how many steps were made;
    /// what lies behind them is left as it was. Allocates nothing.
    ///
    /// # Errors
    /// As [`Trajectory::roll`], and what `visit` fails with.
    pub fn roll_until<D: Dynamics>(
        &mut self,
        dynamics: &D,
        w: &mut D::Work,
        stats: &mut RolloutStats,
        visit: impl FnMut(&KnotPoint, &mut D::Work) -> Result<ControlFlow<()>, StepError>,
    ) -> Result<usize, StepError> {
        self.roll_steps(dynamics, w, stats, |_, _, _, _, _| Ok(()), visit)
    }

    /// [`Trajectory::roll`] with controls that are changed on the way: `control` sees a knot, its state and the
    /// parameters before the step from there.
    ///
    /// # Errors
    /// As [`Trajectory::roll`], and what `control` fails with.
    pub fn roll_under<D: Dynamics>(
        &mut self,
        dynamics: &D,
        w: &mut D::Work,
        stats: &mut RolloutStats,
        control: impl FnMut(&Knot, &[f64], &[f64], &mut D::Work, &mut [f64]) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let on = |_: &KnotPoint, _: &mut D::Work| Ok(ControlFlow::Continue(()));
        self.roll_steps(dynamics, w, stats, control, on).map(|_| ())
    }

    fn roll_steps<D: Dynamics>(
        &mut self,
        dynamics: &D,
        w: &mut D::Work,
        stats: &mut RolloutStats,
        mut control: impl FnMut(
            &Knot,
            &[f64],
            &[f64],
            &mut D::Work,
            &mut [f64],
        ) -> Result<(), StepError>,
        mut visit: impl FnMut(&KnotPoint, &mut D::Work) -> Result<ControlFlow<()>, StepError>,
    ) -> Result<usize, StepError> {
        *stats = RolloutStats::default();
        self.fits(dynamics)?;
        let mut at = self.knot(0);
        for k in 0..self.steps() {
            if stop_requested() {
                return Err(StepError::stopped(at.t));
            }
            let (nx, nu) = (self.nx, self.nu);
            let u = &mut self.u[k * nu..(k + 1) * nu];
            control(&at, &self.x[k * nx..(k + 1) * nx], &self.p, w, u)?;
            stats.add(&self.step(dynamics, &at, w)?);
            at = self.knot_after(&at);
            if visit(&self.reached(&at), w)?.is_break() {
                break;
            }
        }
        Ok(at.k)
    }

    /// What can be seen at a knot before the step from there is made.
    pub fn reached(&self, at: &Knot) -> KnotPoint<'_> {
        KnotPoint {
            y: &[],
            ..self.knot_point(at)
        }
    }

    /// Makes the step from a knot, with the control stored there, from the unknowns of the step before. Lists must fit
    /// ([`Trajectory::fits`]).
    ///
    /// # Errors
    /// When the step fails.
    pub(crate) fn step<D: Dynamics>(
        &mut self,
        dynamics: &D,
        at: &Knot,
        w: &mut D::Work,
    ) -> Result<StepStats, StepError> {
        let k = at.k;
        let (old, new) = self.x[k * self.nx..].split_at_mut(self.nx);
        let (before, y) = self.y.split_at_mut(k * self.ny);
        let y = &mut y[..self.ny];
        match k {
            // the first step knows no impulses to start from
            0 => y.fill(0.0),
            _ => y.copy_from_slice(&before[(k - 1) * self.ny..]),
        }
        let u = &self.u[k * self.nu..(k + 1) * self.nu];
        dynamics.step(at, old, u, &self.p, w, &mut new[..self.nx], y)
    }
}

impl Trajectory {
    /// [`Trajectory::knot`] without its time.
    pub(crate) fn knot_at(&self, k: usize) -> Knot {
        Knot {
            k,
            t: 0.0,
            h_prev: match k {
                0 => self.before,
                _ => self.interval(k - 1),
            },
            h: self.interval(k),
        }
    }

    /// Zero behind the trajectory.
    fn interval(&self, k: usize) -> f64 {
        self.intervals.get(k).copied().unwrap_or(0.0)
    }
}

/// Simulates many trajectories over the threads of the current rayon pool. Each is the same bits whatever the number
/// of threads.
pub fn batch<D: Dynamics>(
    dynamics: &D,
    trajectories: &mut [Trajectory],
) -> Vec<Result<RolloutStats, StepError>> {
    let stoppable = Stoppable::here();
    trajectories
        .par_iter_mut()
        .map_init(
            || dynamics.work(),
            |w, t| {
                let mut stats = RolloutStats::default();
                let rolled = stoppable.run(|| t.roll(dynamics, w, &mut stats));
                rolled.map(|()| stats)
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_keep_the_worst_and_the_sum() {
        let step = |iterations, residual, turn| StepStats {
            iterations,
            residual,
            turn,
            turned: iterations,
            most: 0,
            fallbacks: 1,
            restarts: 0,
            rounded: 1,
            treated: 1,
            touched: 0,
            parts: iterations,
        };
        let mut all = RolloutStats::default();
        for s in [
            step(3, 1e-12, 0.1),
            step(5, 1e-10, 0.3),
            step(2, 1e-11, 0.2),
        ] {
            all.add(&s);
        }
        assert_eq!((all.steps, all.iterations, all.most_iterations), (3, 10, 5));
        assert_eq!((all.residual, all.turn, all.turned), (1e-10, 0.3, 5));
        assert_eq!((all.fallbacks, all.rounded, all.treated), (3, 3, 3));
        assert_eq!((all.parts, all.most_parts), (10, 5));
    }
}
