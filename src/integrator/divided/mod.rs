//! Steps divided into as many equal parts as their fastest swings ask for.
//!
//! Forces act at knots, explicitly, those that hold joints together along directions that turn as well: what swings at
//! `omega` is stable while `h omega < 2`. Under a tension `F` a light body on an arm `r` swings at `sqrt(F r/J)`, far above
//! what one would expect of the mechanism. Before a step the fastest swing is bounded, and estimated where the bound
//! alarms ([`Mechanical::swing`]), from the impulses of the step before; the step then has the smallest number of parts, a
//! power of two, for which `h omega` of a part is below one, no body turns by more than [`COARSE_TURN`] that its rotation law
//! takes for its chord, and no contact with friction goes around a body by more than [`COARSE_SPIN`]. One that fails is made again with twice as many, up to
//! [`MOST`]; one in which a body turned by more than that, because it was struck or stopped, with as many as its turn asks for;
//! one whose fastest swing is too fast by then, because tensions grew, with as many as that asks for; one without contacts whose accelerations
//! grow from one part to the next by so much that the energy jumps, with as many as that asks for (`course`). Where a joint
//! with two turns is at half a turn as a part begins, the step has one part more. If nothing touches, the number falls only after it was
//! larger than needed for a while, because each change of it changes the conserved energy.
//!
//! A state is the inner integrator's, with the velocities of the last part, and behind it the share of the interval that this
//! part was. The unknowns of a step are those of its first and of its last part, their number, for how long forces
//! acted in the last, the bound and its ratio to the swing when that was last estimated (it is again where the bound
//! grows or falls, or bodies have turned), the number that is kept and for how many steps half of it would do, how the motion of each group of bodies went, and the [tensions](Mechanical::tensions) of the last. What is between follows from the first by the steps themselves. Derivatives are those of the parts, one after another, with their number
//! held. The control of the knot acts in all of them.

mod course;
mod derivative;
mod mechanical;
#[cfg(test)]
mod tests;

use self::course::{Course, Courses, Hysteresis, least_kinetic, times_of_jump};
use super::mechanical::{Mechanical, Swing, VelocityChange};
use super::within::{charts_within, start_within, step_within};
use crate::dynamics::{
    Certificate, Charts, Differentiable, Dims, Equations, Frame, Inputs, Knot, KnotPoint,
    LinearModel, Outputs, Parameter, SolvedStep, Start, Step, StepError, StepFailure, StepStats,
    Stored, model_by_pushes,
};
use crate::mechanism::{COARSE_SPIN, Mechanism};
use crate::spatial::COARSE_TURN;
use nalgebra::DMatrix;

/// `h omega` of a part up to which it is not divided further: stable up to 2, coarse above 1, and the tension that the next
/// step finds may be larger than that of the step before.
const STABLE: f64 = 1.0;
/// How fast the share of the swing in its bound is forgotten, by the angle, rad, that bodies with the law `chord` turn: levers and directions of forces turn
/// with them. A tree that swung at `h omega = 2.3` for four steps, after one of 0.7 16 steps before, gained energy at a share that was
/// kept until the bound grew.
const FORGETTING: f64 = 1.0;
/// Least ratio of a swing to its bound that is kept. Smaller ratios, down to zero, occur at positions where forces have no lever along what
/// the joints leave free: rounding would decide when such a swing is estimated again.
const LEAST_RATIO: f64 = 0.01;
/// Relative difference of lengths that is rounding.
const SAME: f64 = 1e-9;
/// How much larger a swing may be than the bound says by the last estimate, before it is estimated again, and how much smaller the bound:
/// an impact may raise the bound without the swing.
pub const GROWTH: f64 = 1.5;
/// `h omega` of a part up to which parts may be longer than those before. Where the length changes, a swing gains or loses a part of order
/// `(h omega)^2` of its energy: a body on a spring of 850 N m, alternating between 8 and 16 parts, gained 69 J in a second.
const LENGTHENS: f64 = 0.5;
/// `h omega` of a part within a step from which the step is made again in smaller ones: more than [`STABLE`], because tensions come and go,
/// and near the limit 2. A tree whose swing rose from 0.5 to 2.3 within a step of 16 parts gained 4 of 15 J.
const UNSTABLE: f64 = 1.5;
/// Parts between two estimates of the swing within a step. Steps in one or two parts are not checked: the next one estimates the swing if its
/// bound grew. An estimate costs about as much as a part; with many light bodies it costs more.
const CHECKED: usize = 4;
/// How much larger a swing may be within a step than the bound says by the last estimate: it rose five times in such trees.
const SURGE: f64 = 8.0;
/// Numbers of a step's own among its unknowns, besides two for each group of bodies and the control.
const OWN: usize = 6;
/// Parts at most: bodies that swing at 25 600 rad/s, at a time step of 0.01 s. Bodies of 10 g that hold heavy ones swing at up to
/// 18 000 rad/s: with 64 parts, 2 of 600 random trees failed in their first step.
pub const MOST: usize = 256;
/// Iterations of a part's solve with contacts after which smaller parts are tried first. Most solves take fewer than 20, and central paths
/// around what stops them 150 to 400; of random trees, steps that took thousands were solved in half of them or a quarter. With 200, steps
/// of jams were divided 256 times before their path was followed.
const EARLY: usize = 500;

/// An integrator's steps, divided.
#[derive(Debug)]
pub struct Divided<S> {
    /// Boxed, so that a type of all integrators can hold itself.
    inner: Box<S>,
    dims: Dims,
    inner_dims: Dims,
    /// [`Mechanism::groups`](crate::mechanism::Mechanism::groups), and the mass of each, kg.
    groups: Vec<usize>,
    masses: Vec<f64>,
    /// Is a group more than a free body?
    swings: Vec<bool>,
    /// Does a group have actuators?
    driven: Vec<bool>,
    /// Does a group have implicit dampers? What these slow comes to rest within less than a part: such a change asks for no parts.
    damped: Vec<bool>,
}

/// What the last estimate of the fastest swing found.
#[derive(Clone, Copy)]
struct Estimate {
    /// Of the swing to its bound.
    ratio: f64,
    /// The bound, rad/s.
    bound: f64,
}

impl Estimate {
    fn of(swing: &Swing) -> Self {
        Self {
            ratio: (swing.rate / swing.bound).max(LEAST_RATIO),
            bound: swing.bound,
        }
    }

    /// May the fastest swing become unstable within a step in `n` parts? A swing may be [`SURGE`] times as fast as its bound and this ratio
    /// predict.
    fn may_surge(&self, n: usize, at: &Knot, swing: &Swing) -> bool {
        let bound = at.h.abs() * swing.bound;
        bound > STABLE && bound * (SURGE * self.ratio).min(1.0) / n as f64 > UNSTABLE
    }
}

/// Memory of one thread.
pub struct DividedWork<W> {
    /// For everything at a knot, and for steps.
    own: W,
    /// Linearizations of the parts, as many as any step had.
    parts: Vec<W>,
    /// How many are those of the step last linearized, and the share of the interval before that its state has.
    linearized: usize,
    share: f64,
    /// What memory of further parts is to be told.
    smoothing: f64,
    softness: f64,
    certified: bool,
    /// States between the parts, and their unknowns.
    between: Vec<Vec<f64>>,
    unknowns: Vec<Vec<f64>>,
    /// Unknowns of the step before, for another attempt.
    guess: Vec<f64>,
    courses: Courses,
    /// A change or an adjoint on its way through the parts.
    inputs: Inputs,
    outputs: Outputs,
}

/// May a step that failed so be solved in parts?
fn may_divide(failure: StepFailure) -> bool {
    use StepFailure::{Branch, Budget, Domain, NotConverged, Singular};
    matches!(failure, Branch | Domain | NotConverged | Singular | Budget)
}

/// May a step have failed so because its iterations were limited? One that a body's turn stopped before reports that.
fn is_cut(failure: StepFailure) -> bool {
    matches!(failure, StepFailure::Budget | StepFailure::Domain)
}

impl<S: Mechanical> Divided<S> {
    /// Divides an integrator's steps.
    pub fn new(inner: S) -> Self {
        let (inner_dims, m) = (inner.dims(), inner.mechanism());
        let groups = m.groups();
        let mut masses = vec![0.0; groups.iter().max().map_or(0, |last| last + 1)];
        for (body, group) in m.bodies.iter().zip(&groups) {
            masses[*group] += body.mass;
        }
        let mark = |bodies: &mut dyn Iterator<Item = usize>| Mechanism::mark(&groups, bodies);
        let joined = m.joints.iter().filter(|j| !j.frees).map(|j| j.child);
        let sprung = m.springs.iter().map(|s| s.child);
        let attached = m.potentials.iter().flat_map(|p| &p.bodies);
        let slowed = m.joints.iter().filter(|j| j.implicit && j.has_dampers());
        let lines = m.springs.iter().filter(|s| s.implicit && s.damping != 0.0);
        let swings = mark(&mut joined.chain(sprung).chain(attached.copied()));
        let driven = mark(&mut m.actuators.iter().map(|a| m.driven(a).1));
        let damped = mark(&mut slowed.map(|j| j.child).chain(lines.map(|s| s.child)));
        Self {
            dims: Dims {
                nx: inner_dims.nx + 1,
                ny: 2 * (inner_dims.ny + masses.len()) + OWN + inner_dims.nu + inner.tensions(),
                ..inner_dims
            },
            swings,
            driven,
            damped,
            groups,
            masses,
            inner: Box::new(inner),
            inner_dims,
        }
    }

    /// The inner integrator's state, and the share of the interval before that its velocities are of.
    fn split<'a>(&self, x: &'a [f64]) -> (&'a [f64], f64) {
        let (inner, share) = x.split_at(self.inner_dims.nx);
        (inner, share[0])
    }

    /// Number of parts of a solved step; 1 where it is not known.
    fn count(&self, y: &[f64]) -> usize {
        y.get(2 * self.inner_dims.ny)
            .map_or(1, |n| *n as usize)
            .max(1)
    }

    /// The last estimate of the fastest swing that a step's unknowns hold; none before the first step.
    fn estimate(&self, y: &[f64]) -> Estimate {
        let (ratio, bound) = (y[2 * self.inner_dims.ny + 2], y[2 * self.inner_dims.ny + 3]);
        Estimate {
            ratio: if ratio == 0.0 { 1.0 } else { ratio },
            bound,
        }
    }

    /// The number of parts that a step's unknowns keep; 1 before the first step.
    fn kept_parts(&self, y: &[f64]) -> Hysteresis {
        let (parts, steps) = (y[2 * self.inner_dims.ny + 4], y[2 * self.inner_dims.ny + 5]);
        Hysteresis {
            parts: (parts as usize).max(1),
            steps: steps as usize,
        }
    }

    /// How the motion of each group went until the end of a step, as its unknowns have it.
    fn resume(&self, y: &[f64], u: &[f64], courses: &mut Courses) {
        let own = &y[2 * self.inner_dims.ny..][..self.own()];
        let (each, control) = own[OWN..].split_at(2 * self.masses.len());
        for (course, [kinetic, acceleration]) in courses.each.iter_mut().zip(each.as_chunks().0) {
            *course = Course {
                kinetic: *kinetic,
                acceleration: *acceleration,
                touched: false,
            };
        }
        courses.jump = 0.0;
        courses.control_changes = control != u;
    }

    /// How many numbers of a step's own are among its unknowns: [`OWN`], two of each group of bodies, and the control.
    fn own(&self) -> usize {
        OWN + 2 * self.masses.len() + self.inner_dims.nu
    }

    /// For how long forces acted in the last part of a step, s: half of the intervals that meet where it starts.
    fn weight(&self, y: &[f64]) -> f64 {
        y.get(2 * self.inner_dims.ny + 1).copied().unwrap_or(0.0)
    }

    /// The knot of a part of a step in `n`, with its intervals; `share` is that of the last part of the step before.
    fn part(at: &Knot, share: f64, n: usize, i: usize) -> Knot {
        let h = at.h / n as f64;
        Knot {
            k: at.k,
            t: at.t + i as f64 * h,
            h_prev: if i == 0 { share * at.h_prev } else { h },
            h,
        }
    }

    /// Unknowns and tensions of the last part of a step.
    fn before(&self, y: &[f64], out: &mut [f64]) {
        let ny = self.inner_dims.ny;
        let (of_last, tensions) = out.split_at_mut(ny);
        of_last.copy_from_slice(&y[ny..2 * ny]);
        tensions.copy_from_slice(&y[2 * ny + self.own()..]);
    }

    /// Writes the unknowns of a step in `n` parts under the control `u`, from those of the parts; `last` is the knot of the last part.
    fn write_unknowns(
        &self,
        last: &Knot,
        u: &[f64],
        (n, found, kept): (usize, Estimate, Hysteresis),
        w: &DividedWork<S::Work>,
        y: &mut [f64],
    ) {
        let (ny, parts) = (self.inner_dims.ny, &w.unknowns);
        let (of_last, tensions) = parts[n - 1].split_at(ny);
        y[..ny].copy_from_slice(&parts[0][..ny]);
        y[ny..2 * ny].copy_from_slice(of_last);
        let (own, after) = y[2 * ny..].split_at_mut(self.own());
        after.copy_from_slice(tensions);
        let (each, control) = own[OWN..].split_at_mut(2 * self.masses.len());
        for (to, course) in each.as_chunks_mut().0.iter_mut().zip(&w.courses.each) {
            *to = [course.kinetic, course.acceleration];
        }
        control.copy_from_slice(u);
        y[2 * ny] = n as f64;
        y[2 * ny + 1] = 0.5 * (last.h_prev + last.h);
        (y[2 * ny + 2], y[2 * ny + 3]) = (found.ratio, found.bound);
        (y[2 * ny + 4], y[2 * ny + 5]) = (kept.parts as f64, kept.steps as f64);
    }

    /// What is seen at the knot, as the inner integrator sees it.
    fn first<'a>(&self, seen: &KnotPoint<'a>) -> KnotPoint<'a> {
        let (x, share) = self.split(seen.x);
        KnotPoint {
            at: Self::part(&seen.at, share, self.count(seen.y), 0),
            x,
            y: seen.y.get(..self.inner_dims.ny).unwrap_or(&[]),
            ..*seen
        }
    }

    /// How many parts of a step from a knot the unknowns of the one before, `seen.y`, ask for, whose forces acted so long.
    fn asked(
        &self,
        seen: &KnotPoint,
        weight: f64,
        known: &mut Estimate,
        w: &mut S::Work,
    ) -> Result<(usize, Swing), StepError> {
        let h = seen.at.h.abs();
        // of none before they are zero, at any weight
        let mut weight = if weight == 0.0 { h } else { weight };
        let limit = STABLE / h;
        let mut above = limit / (GROWTH * known.ratio).min(1.0);
        let swing = loop {
            match self.inner.swing(seen, weight, above, w) {
                // rates of a start may be too fast for an interval as long as the step
                Err(e) if may_divide(e.failure) && weight * MOST as f64 > h => weight *= 0.5,
                Ok(s) if limit < s.bound && s.bound <= above && s.bound * GROWTH < known.bound => {
                    above = limit;
                }
                found => break found?,
            }
        };
        // of a swing that was not estimated the bound is enough
        let mut rate = 0.0;
        if swing.bound > above {
            rate = swing.rate;
            *known = Estimate::of(&swing);
        } else {
            known.ratio = (known.ratio * (FORGETTING * h * swing.turn).exp()).min(1.0);
        }
        let turns = (swing.turn / COARSE_TURN).max(swing.spin.1 / COARSE_SPIN);
        let before = seen.at.h_prev.abs();
        let is_enough = |n: usize| {
            let is_longer = before > 0.0 && h / n as f64 > before * (1.0 + SAME);
            let most = if is_longer { LENGTHENS } else { STABLE };
            h * (rate / most).max(turns) <= n as f64
        };
        let mut n = 1;
        while n < MOST && !is_enough(n) {
            n *= 2;
        }
        Ok((n, Swing { rate, ..swing }))
    }

    /// The same by the state at its start; `w.guess` holds the unknowns of the last part before it.
    fn asked_before(
        &self,
        seen: &KnotPoint,
        weight: f64,
        known: &mut Estimate,
        w: &mut DividedWork<S::Work>,
    ) -> Result<(usize, Swing), StepError> {
        let (x, share) = self.split(seen.x);
        let before = KnotPoint {
            at: Self::part(&seen.at, share, 1, 0),
            x,
            y: &w.guess,
            ..*seen
        };
        self.asked(&before, weight, known, &mut w.own)
    }

    /// The same of a step that was made, by the state at its end and the unknowns of its last part.
    fn asked_after(
        &self,
        last: &Knot,
        made: KnotPoint,
        known: &mut Estimate,
        w: &mut S::Work,
    ) -> Result<(usize, Swing), StepError> {
        let at = Knot {
            h_prev: last.h,
            ..made.at
        };
        let weight = 0.5 * (last.h_prev + last.h);
        self.asked(&KnotPoint { at, ..made }, weight, known, w)
    }

    /// Parts that keep `h omega` of the swing below [`STABLE`].
    fn stable_parts(at: &Knot, swing: &Swing) -> usize {
        let parts = (at.h.abs() * swing.rate / STABLE).ceil();
        (parts.clamp(1.0, MOST as f64) as usize).next_power_of_two()
    }

    /// At least so many times as many parts as `n`.
    fn more_parts(n: usize, times: f64) -> usize {
        let times = times.ceil().min(MOST as f64) as usize;
        (n * times.next_power_of_two()).min(MOST)
    }

    /// Parts that the largest turn in a step made in `n` parts asks for.
    fn parts_of_turn(n: usize, made: &StepStats) -> usize {
        Self::more_parts(n, made.turn / COARSE_TURN)
    }

    /// The failure of a step whose fastest swing is too fast for the most parts says so.
    fn name_swing(&self, at: &Knot, swing: &Swing, e: StepError) -> StepError {
        let share = self.inner.longest_share();
        let fastest = MOST as f64 * STABLE / at.h.abs();
        if swing.rate <= fastest || !may_divide(e.failure) {
            return e;
        }
        let body = &self.inner.mechanism().bodies[swing.body].name;
        StepError {
            element: format!("body `{body}`"),
            message: format!(
                "it swings at {:.0} rad/s, under springs and what holds it, which is too fast for {MOST} substeps: expected at most {:.0} rad/s; take a smaller time step, softer springs or a heavier body",
                swing.rate / share,
                fastest / share
            ),
            ..e
        }
    }

    /// How many parts the fastest swing asks for within a step in `n`, after a part of it: `n` if that is slow enough. `made` has the knot of
    /// the part, the state that it led to, and its unknowns and tensions.
    fn parts_within(
        &self,
        n: usize,
        made: &KnotPoint,
        known: &mut Estimate,
        w: &mut S::Work,
    ) -> usize {
        let (at, h) = (&made.at, made.at.h);
        let after = Knot {
            t: at.t + h,
            h_prev: h,
            ..*at
        };
        let weight = 0.5 * (at.h_prev + h);
        let seen = KnotPoint { at: after, ..*made };
        let above = UNSTABLE / (h.abs() * (SURGE * known.ratio).min(1.0));
        // what cannot be estimated here fails in the next part
        let Ok(swing) = self.inner.swing(&seen, weight, above, w) else {
            return n;
        };
        if swing.bound <= above {
            return n;
        }
        *known = Estimate::of(&swing);
        let size = h.abs() * swing.rate;
        if size <= UNSTABLE {
            return n;
        }
        Self::more_parts(n, size / STABLE)
    }

    /// Makes a step in so many parts. `w.guess` holds the unknowns of the part before; those of the parts and the states
    /// between them are left in the memory. With an estimate of the swing it ends where that asks for more parts, and returns their number.
    fn run(
        &self,
        (n, mut known, is_watched): (usize, Option<&mut Estimate>, bool),
        seen: &KnotPoint,
        w: &mut DividedWork<S::Work>,
        next: &mut [f64],
    ) -> Result<(StepStats, usize), StepError> {
        let (x, share) = self.split(seen.x);
        self.grow(n, w);
        let mut stats = StepStats::default();
        for i in 0..n {
            let (before, after) = w.between.split_at_mut(i);
            let x = before.last().map_or(x, |x| x);
            let next = if i + 1 == n {
                &mut *next
            } else {
                &mut after[0]
            };
            let (past, own) = w.unknowns.split_at_mut(i);
            let y = &mut own[0][..self.inner_dims.ny];
            y.copy_from_slice(&past.last().unwrap_or(&w.guess)[..self.inner_dims.ny]);
            let at = Self::part(&seen.at, share, n, i);
            let one = self
                .inner
                .step(&at, x, seen.u, seen.p, &mut w.own, next, y)?;
            stats = stats.then(&one);
            let times = self.goes_on((&at, seen.at.h), &one, &w.own, &mut w.courses);
            if is_watched && times > 1.0 {
                let asked = Self::more_parts(1, times * (seen.at.h / at.h_prev).abs());
                if asked > n {
                    return Ok((stats, asked));
                }
            }
            let is_last = i + 1 == n;
            let checks = (i + 1).is_multiple_of(CHECKED);
            let known = known.as_deref_mut().filter(|_| checks);
            if known.is_some() || is_last {
                let tensions = &mut own[0][self.inner_dims.ny..];
                self.inner.write_tensions(&at, &mut w.own, tensions);
            }
            if let Some(known) = known {
                let made = KnotPoint {
                    at,
                    x: next,
                    y: &own[0],
                    ..*seen
                };
                let asked = self.parts_within(n, &made, known, &mut w.own);
                if asked > n {
                    return Ok((stats, asked));
                }
            }
        }
        stats.parts = n;
        Ok((stats, n))
    }

    /// Notes how a part of a step `h` went, and returns by how many times more parts it asks for.
    fn goes_on(
        &self,
        (at, h): (&Knot, f64),
        made: &StepStats,
        own: &S::Work,
        courses: &mut Courses,
    ) -> f64 {
        let (inner, changes) = (&self.inner, &mut courses.changes);
        changes.fill(VelocityChange::default());
        if !inner.add_velocity_changes(own, &self.groups, changes) {
            return 1.0;
        }
        let gravity = inner.mechanism().gravity.norm();
        // the last solve of a blow does not tell what touched in those before
        let all = made.touched > 0 && (made.most > 0 || !changes.iter().any(|c| c.touches));
        let groups = courses.each.iter_mut().zip(changes).zip(&self.masses);
        let mut most: f64 = 0.0;
        for (group, ((course, change), mass)) in groups.enumerate() {
            course.touched |= all || change.touches;
            // a control that changes is exact in any number of parts
            let is_pushed = courses.control_changes && self.driven[group];
            if all || change.touches || is_pushed || self.damped[group] {
                course.passes(change);
            } else {
                most = most.max(course.goes_on(at, change, least_kinetic(*mass, gravity, h)));
            }
        }
        courses.control_changes = false;
        courses.jump = courses.jump.max(most);
        times_of_jump(most)
    }

    /// What is kept after a step in `n` parts: the number, if nothing touched, or if something swings of which nothing touched.
    fn kept_after(
        &self,
        kept: Hysteresis,
        n: usize,
        stats: &StepStats,
        courses: &Courses,
    ) -> Hysteresis {
        let mut groups = self.swings.iter().zip(&courses.each);
        let is_known = courses.each.iter().any(|course| course.touched);
        let apart = is_known && groups.any(|(swings, own)| *swings && !own.touched);
        match stats.touched == 0 || apart {
            true => kept.made(n, courses),
            false => Hysteresis::NONE,
        }
    }

    /// Makes room for so many parts.
    fn grow(&self, n: usize, w: &mut DividedWork<S::Work>) {
        while w.unknowns.len() < n {
            let own = self.inner_dims.ny + self.inner.tensions();
            w.unknowns.push(vec![0.0; own]);
            w.between.push(vec![0.0; self.inner_dims.nx]);
        }
    }
}

impl<S: Mechanical> Step for Divided<S> {
    type Work = DividedWork<S::Work>;

    step_within!();
    start_within!();

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let (inner, own) = x.split_at_mut(self.inner_dims.nx);
        // velocities of the whole interval before
        own.fill(1.0);
        self.inner.initial(start, p, &mut w.own, inner)
    }

    fn work(&self) -> Self::Work {
        let d = &self.inner_dims;
        let mut w = DividedWork {
            own: self.inner.work(),
            parts: vec![],
            linearized: 0,
            share: 1.0,
            smoothing: 0.0,
            softness: 0.0,
            certified: false,
            between: vec![],
            unknowns: vec![],
            guess: vec![0.0; d.ny + self.inner.tensions()],
            courses: Courses::of(self.masses.len()),
            inputs: d.inputs(),
            outputs: d.outputs(),
        };
        self.grow(1, &mut w);
        w
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        let (d, (_, share)) = (&self.inner_dims, self.split(x));
        self.before(y, &mut w.guess);
        let seen = KnotPoint {
            at: *at,
            x,
            u,
            p,
            y: &[],
        };
        let mut known = self.estimate(y);
        let (asked, mut swing) = self.asked_before(&seen, self.weight(y), &mut known, w)?;
        let kept = self.kept_parts(y).asked(asked);
        let mut n = kept.parts;
        let (out, last) = next.split_at_mut(d.nx);
        let mut first = None;
        // if no number of parts is solved early, all are tried with as many iterations as contacts may have
        let (fewest, mut early, mut cut) = (n, EARLY, false);
        let (mut coarser, stable) = (n, Self::stable_parts(at, &swing));
        // the number that a joint at half a turn moved, and its failure
        let (mut moved, mut half_turn) = (0, None);
        let stats = loop {
            self.inner.limit_iterations(&mut w.own, early);
            let checks = early == EARLY && n < MOST && known.may_surge(n, at, &swing);
            self.resume(y, u, &mut w.courses);
            let watched = early == EARLY && 2 * n <= MOST;
            let made = self.run((n, checks.then_some(&mut known), watched), &seen, w, out);
            self.inner.limit_iterations(&mut w.own, usize::MAX);
            match made {
                Ok((_, more)) if more > n => (n, cut) = (more, true),
                Ok((stats, _)) => {
                    // at the start nothing is known of impulses before the step is made
                    let unknown = at.before().is_none() && first.is_none();
                    let (asked, found) = if unknown {
                        // forces may have had no lever at the start
                        known.ratio = 1.0;
                        let last = Self::part(at, share, n, n - 1);
                        let y = &w.unknowns[n - 1];
                        self.asked_after(
                            &last,
                            KnotPoint { x: out, y, ..seen },
                            &mut known,
                            &mut w.own,
                        )?
                    } else {
                        (n, swing)
                    };
                    swing = found;
                    // an impact may spin a body up within the step; if more parts are not solved, the first number of parts is used
                    let turned = Self::parts_of_turn(n, &stats);
                    if early == EARLY && first.is_none() && turned > n.max(asked) {
                        (n, cut) = (turned, true);
                    } else if asked <= n {
                        break stats;
                    } else {
                        n = asked;
                    }
                }
                // of one part more or less none begins where one did, but for the first
                Err(e) if e.failure == StepFailure::HalfTurn && moved != n => {
                    n = if n < MOST { n + 1 } else { n - 1 };
                    moved = n;
                    half_turn.get_or_insert(e);
                }
                Err(e) if may_divide(e.failure) && coarser == fewest && 2 * n <= MOST => {
                    n *= 2;
                    cut |= is_cut(e.failure);
                    // the first says most of why
                    first.get_or_insert(e);
                }
                Err(e) if early == EARLY && may_divide(e.failure) && (cut || is_cut(e.failure)) => {
                    (n, early, first) = (fewest, usize::MAX, None);
                }
                // fewer parts than turns ask for are less exact, but may have a solution
                Err(e) if may_divide(e.failure) && coarser > stable => {
                    coarser /= 2;
                    (n, early) = (coarser, usize::MAX);
                    first.get_or_insert(e);
                }
                Err(e) => {
                    return Err(self.name_swing(at, &swing, first.or(half_turn).unwrap_or(e)));
                }
            }
        };
        last[0] = 1.0 / n as f64;
        let of_last = Self::part(at, share, n, n - 1);
        let kept = self.kept_after(kept, n, &stats, &w.courses);
        self.write_unknowns(&of_last, u, (n, known, kept), w, y);
        Ok(stats)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        w.softness = kappa;
        let mut all = true;
        for w in w.parts.iter_mut().chain([&mut w.own]) {
            all &= self.inner.soften(w, kappa);
        }
        all
    }
}

impl<S: Mechanical> Differentiable for Divided<S> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.linearize_parts(at, w)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        w.smoothing = kappa;
        for w in w.parts.iter_mut().chain([&mut w.own]) {
            self.inner.smoothing(w, kappa);
        }
    }

    /// Parts differ in number from step to step.
    fn kept(&self) -> usize {
        0
    }

    fn keep_in(&self, _: &Self::Work, _: &mut [f64]) -> bool {
        false
    }

    fn restore_in(&self, _: &SolvedStep, _: &[f64], _: &mut Self::Work) -> Result<bool, StepError> {
        Ok(false)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        self.push_parts(w, d, out);
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        self.pull_parts(w, adjoint, out);
    }
}

impl<S: Mechanical> Divided<S> {
    /// A knot as the inner integrator sees it, of a state there.
    fn knot(&self, at: &Knot, x: &[f64]) -> Knot {
        let (_, share) = self.split(x);
        Knot {
            h_prev: share * at.h_prev,
            ..*at
        }
    }
}

charts_within!(Divided<S: Mechanical>);

/// How many parts a step has is found by solving it: there are no equations of it unsolved.
impl<S: Mechanical> Equations for Divided<S> {
    fn check_equations(&self) -> Result<(), String> {
        Err("adaptive substeps are found by solving the step, and this method does not solve steps; give a number of substeps".into())
    }
}
