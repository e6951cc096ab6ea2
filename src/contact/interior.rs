//! The interior-point method for a step with contacts: Mehrotra's predictor-corrector with one step length, from a cold or
//! a warm start; [`super::attempts`] says which, and what follows where it stalls.

use super::assembly::along;
use super::progress::Progress;
use super::{Failed, Layout, NewtonSystem};
use crate::dynamics::{StepFailure, StepStats, stop_requested};

// These trade iterations for starts anew; none changes what a solved step is. They were
// found by trying, not derived, and what each is worth was not measured alone; examples/drops.rs counts what all cost.

/// A step length below which the path is left for its center, and how many of these in a row end a start: what is so near
/// the boundary of the cones goes on crawling along it.
const SHORT: f64 = 0.1;
const STALLED: usize = 4;
/// The shortest step length, where bodies are about to turn too far: far below what any of them still needs.
const SHORTEST: f64 = 1e-12;
/// Part of the mean product that is aimed at where a direction was short, as far as an interior-point step falls without
/// trouble.
const CENTRING: f64 = 0.1;
/// Products within so many times `kappa` are near the end of the path: a step or two before it.
const NEAR: f64 = 10.0;
/// Iterations near the end that the block factors are given.
const PIVOTED: usize = 6;
/// Iterations after which no direction is corrected to second order and some steps are halved, since Newton's method may cycle, and how
/// many: several times what a step commonly takes, and enough to leave a cycle. Corrections by directions that were cut short raised one
/// product again and again to 50 times the mean.
const PATIENCE: usize = 25;
const HALVED: usize = 15;
/// Iterations that a step is given in which what touches, sticks and slides does so as before, and the least part of a direction that
/// they follow: Newton's method then needs two or three, and what is stopped early changes. With 5 and a tenth walking takes 5 % fewer
/// iterations, and no less time.
const STAYS: usize = 4;
const STAYING: f64 = 0.3;
/// Iterations with friction that follows sliding, after the cones stopped a start. Newton's method needs fewer from nearby; with more it
/// may cycle. They come after those that the start took before, so that a start has at most these and `max_iterations` of the
/// integrator, [`GAINING`] times while it gains; as all others they count towards `max_iterations` of contacts, and towards those of a solve that could be divided.
const FREE: usize = 25;
/// Multiples of its iterations that a start has at most, while its residual or its products still fell by half within the last [`FLAT`].
const GAINING: usize = 2;
/// Least part of what gaps are off that products are led to: impulses `g/s` times that stay of the size of others.
const BEHIND: f64 = 0.01;
/// Share of the tolerance below which a start is taken as it is: bodies at rest cost nothing, and a thousand steps lose no more
/// than the tolerance of one.
const STILL: f64 = 1e-3;
/// Stiffness `g/s` from which directions are refined: from there on rounding by it is seen in a residual of 1e-7 of the
/// impulses.
const STIFF: f64 = 1e9;
/// The same of a limit or of joint friction, by what its bodies show alone, from which the matrix is factored with pivots: the blocks of
/// light bodies lost their digits, and full steps of Newton's method in maximal coordinates left a joint's rows as they were.
const MASKING: f64 = 1e12;
/// Sweeps of refinement: each finds what digits the factors have left.
const SWEEPS: usize = 3;
/// Part of its right-hand side that a direction may leave where a step stays as the one before: Newton's method gains fewer digits
/// in an iteration, and what it leaves is polished.
const LEFT: f64 = 1e-8;
/// The same of what is polished then.
const POLISHED: f64 = 1e-3;
/// A solve ends at rounding after `FLAT` iterations near the end of the path in which its residual did not halve, if at last no velocity
/// changed, and no gap differed from its slack, by more than `ROUNDING` times the largest velocity; or after as many in which all rows were
/// solved and the products did not come closer to the central path. Newton's method would have doubled the number of correct digits in
/// each. Light bodies beside large impulses change their velocities by more: in 64 parts of 10 ms, products of a limit went on in cycles of
/// 1 to 20 % of their parameter.
const FLAT: usize = 10;
const ROUNDING: f64 = 1e-10;
/// Least part of the way to the boundary of the cones that an iteration goes, in the middle and near the end of the path,
/// and the largest.
pub(super) const PART: f64 = 0.995;
const LARGEST_PART: f64 = 0.9995;

/// An iteration towards one point of the path.
struct Flow {
    kappa: f64,
    /// Least part of the way to the boundary that a step goes.
    slowest: f64,
    iterations: usize,
    /// Length of the last step, how many short ones there were in a row, and whether a body's turn shortened one of these.
    last: f64,
    stalled: usize,
    is_turn_bound: bool,
    /// Iterations near the end.
    ending: usize,
    /// Residual that linear rows would have, m/s.
    expected: f64,
    /// Are products near the end?
    near: bool,
    /// The part of a right-hand side that a direction may leave, and that where they are refined now.
    leaves: f64,
    refined: Option<f64>,
    /// The body whose turn bounded the last step.
    bounded: Option<usize>,
    /// The least residual since products are near the end, m/s, and iterations since it last fell by half.
    least: f64,
    flat: usize,
    /// The least residual and the least deviation of products, and iterations since one of them last fell by half.
    best: [f64; 2],
    idle: usize,
    /// The iteration from which friction of what slides went with the sliding velocity, so that the cones did not bound directions.
    slides: Option<usize>,
}

impl Flow {
    fn towards(kappa: f64, slowest: f64) -> Self {
        Self {
            kappa,
            slowest,
            iterations: 0,
            last: 1.0,
            stalled: 0,
            is_turn_bound: false,
            ending: 0,
            expected: f64::INFINITY,
            near: false,
            leaves: 0.0,
            refined: None,
            bounded: None,
            least: f64::INFINITY,
            flat: 0,
            best: [f64::INFINITY; 2],
            idle: 0,
            slides: None,
        }
    }
}

/// What products a direction leads to.
enum Aim {
    /// Those there are: rounding, which the law's stiffness turns into large changes of the impulses, is not chased.
    Held,
    /// The center at a parameter.
    Center(f64),
    /// The same, with the second-order correction of the affine direction.
    Corrected(f64),
}

/// Solves a step with contacts. The solution is left in the step's unknowns and in its contacts.
pub(crate) struct Solver<'a, S> {
    pub(super) layout: &'a Layout,
    pub(super) step: &'a mut S,
    /// Largest residual, m/s, and iterations of one start at most.
    pub(super) tolerance: f64,
    most: usize,
    /// Is no impulse of a step before known, as at a start?
    pub(super) begins: bool,
    /// Are velocities at a knot read out?
    pub(super) reads_out: bool,
    /// Is the matrix factored with pivots from here on, where the integrator can?
    pub(super) is_pivoted: bool,
    /// What the point kept by the starts has reached.
    pub(super) kept: Option<Progress>,
    pub(super) stats: StepStats,
}

impl<'a, S: NewtonSystem> Solver<'a, S> {
    pub(crate) fn new(layout: &'a Layout, step: &'a mut S, tolerance: f64, most: usize) -> Self {
        Self {
            layout,
            step,
            tolerance,
            most,
            begins: false,
            reads_out: false,
            is_pivoted: false,
            kept: None,
            stats: StepStats::default(),
        }
    }

    /// Solves the step; `y` holds the unknowns of the step before, those of the contacts behind.
    pub(crate) fn solve(&mut self, y: &[f64]) -> Result<StepStats, Failed> {
        let before = &y[self.layout.rows..self.layout.blows().start];
        self.begins = before.iter().all(|v| *v == 0.0);
        self.solve_from(y, self.layout.options.warm && !self.begins)
    }

    /// The same of the read-out of velocities at a knot. `y` has the unknowns of the step from there, where they are known: a read-out
    /// that fails from forces alone begins from its velocities and impulses.
    pub(crate) fn read_out(&mut self, y: &[f64]) -> Result<StepStats, Failed> {
        self.reads_out = true;
        self.solve_from(y, false)
    }

    /// Are these the unknowns of a step that was solved?
    pub(super) fn is_known(&self, y: &[f64]) -> bool {
        y.len() >= self.layout.blows().start && y.iter().any(|v| *v != 0.0)
    }

    /// Solves the step, again where other points of rims are found to carry.
    fn solve_from(&mut self, y: &[f64], warm: bool) -> Result<StepStats, Failed> {
        // another attempt at a step has as many
        self.step.contacts_mut().spent = 0;
        let mut solved = self.solve_path(y, warm);
        if solved.is_ok() {
            solved = if self.reads_out {
                self.leave_out(y)
            } else {
                self.hold_rims(y, warm)
            };
        }
        self.stats.iterations = self.step.contacts().spent;
        let mut touched = self.layout.touched(self.step.contacts());
        self.stats.touched = usize::from(touched.next().is_some());
        solved.map(|()| self.stats)
    }

    /// Solves from the velocities and impulses at hand, whose contacts are not quite those of the step.
    pub(super) fn solve_again(&mut self) -> Result<(), Failed> {
        let kappa = self.step.contacts().kappa;
        self.step.evaluate();
        self.warm(false, kappa);
        match self.follow_motion(kappa) {
            Err(error) if error.may_retry() => self.solve_path(&[], false),
            done => done,
        }
    }

    /// [`Solver::follow`] from a start; a solution that is none of the motion is not taken.
    pub(super) fn follow_motion(&mut self, kappa: f64) -> Result<(), Failed> {
        self.follow(kappa, PART)?;
        self.refuse_thrown(kappa)
    }

    /// Counts an iteration of the step; fails where it may take no more.
    pub(super) fn spend(&mut self, row: usize, residual: f64) -> Result<(), Failed> {
        let spent = self.step.contacts().spent;
        let failed = |failure| Failed {
            failure,
            row,
            residual,
        };
        let c = self.step.contacts();
        if spent >= self.layout.options.max_iterations.min(c.most) {
            return Err(failed(StepFailure::Budget));
        }
        // ordinary steps run to their end: after a stop one still looks at what was computed
        if spent >= self.most && stop_requested() {
            return Err(failed(StepFailure::Stopped));
        }
        self.step.contacts_mut().spent += 1;
        Ok(())
    }

    /// Newton's method at the end of the path itself, from the velocities and impulses of the step before: what touched and what slid
    /// does so in most steps that follow. False where it does not: what begins or ends touching is further from there than `s` or `g`
    /// can be followed.
    pub(super) fn stay(&mut self, y: &[f64], kappa: f64) -> Result<bool, Failed> {
        self.begin_before(y);
        let contacts = self.step.contacts_mut();
        let remains = (contacts.each(self.layout)).all(|(e, sides, _)| e.remain(sides, kappa));
        if !remains {
            return Ok(false);
        }
        let mut flow = Flow {
            leaves: LEFT,
            ..Flow::towards(kappa, PART)
        };
        loop {
            let (_, _, floor) = self.step.evaluate();
            let floor = floor / self.layout.lightest;
            let p = self.progress(kappa, floor);
            let starts = flow.iterations == 0 && p.residual > floor.max(STILL * self.tolerance);
            if p.done && !starts {
                self.arrived(&p);
                if flow.iterations > 0 {
                    flow.refined = flow.refined.map(|_| POLISHED);
                    self.polish(&flow);
                }
                return Ok(true);
            }
            if flow.iterations == STAYS || !(p.residual + p.sum).is_finite() {
                return Ok(false);
            }
            self.spend(p.row, p.residual)?;
            flow.iterations += 1;
            self.factor(&mut flow, &p)?;
            let reach = self.aim(&Aim::Center(kappa), flow.refined);
            if reach < STAYING {
                return Ok(false);
            }
            self.move_on(&mut flow, &p, reach)?;
        }
    }

    /// Leads the iterate to the central path's point `kappa`. A step may go a part of the way to the boundary, never less
    /// than `slowest`.
    pub(super) fn follow(&mut self, kappa: f64, slowest: f64) -> Result<(), Failed> {
        let mut flow = Flow::towards(kappa, slowest);
        loop {
            let (_, _, floor) = self.step.evaluate();
            let floor = floor / self.layout.lightest;
            let p = self.progress(kappa, floor);
            // what a start leaves of a small residual, at every step, would add up
            let starts = flow.iterations == 0 && p.residual > floor.max(STILL * self.tolerance);
            // curves have a point of their own
            let is_near = p.settled || (p.near && flow.slowest >= PART);
            if !is_near || p.residual < 0.5 * flow.least {
                (flow.least, flow.flat) = (p.residual, 0);
            } else {
                flow.flat += 1;
            }
            flow.idle += 1;
            for (best, now) in flow.best.iter_mut().zip([p.residual, p.off]) {
                if now < 0.5 * *best {
                    (*best, flow.idle) = (now, 0);
                }
            }
            // friction that turns with sliding does not help a body that turns too far
            let may_slide =
                flow.slides.is_none() && flow.slowest >= PART && !(p.usable || flow.is_turn_bound);
            if flow.stalled == STALLED && may_slide {
                self.keep_nearly(&p);
                if self.slide_freely(kappa) {
                    flow.slides = Some(flow.iterations);
                    (flow.stalled, flow.last) = (0, 1.0);
                    continue;
                }
            }
            if !(p.done && starts)
                && let Some(end) = self.end(&flow, &p)
            {
                if end.is_ok() && flow.iterations > 0 {
                    self.polish(&flow);
                }
                // curves have a point of their own
                if end.is_err() && flow.slowest >= PART {
                    self.keep_nearly(&p);
                }
                return end;
            }
            self.spend(p.row, p.residual)?;
            flow.iterations += 1;
            self.factor(&mut flow, &p)?;
            let reach = self.direction(&flow, &p);
            self.move_on(&mut flow, &p, reach)?;
        }
    }

    /// Takes out what the tolerance left of the rows, with the factors at hand: it has one sign at every step, and momentum would
    /// drift by the sum of it.
    fn polish(&mut self, flow: &Flow) {
        let reach = self.aim(&Aim::Held, flow.refined);
        let is_finite = self.step.contacts().delta.iter().all(|d| d.is_finite());
        if reach <= 1.0 || !is_finite {
            return;
        }
        let mut last = std::mem::take(&mut self.step.contacts_mut().last);
        last.copy_from_slice(self.step.trial());
        self.step.contacts_mut().last = last;
        self.set_along(1.0);
        if self.outside_domain().is_some() {
            self.set_along(0.0);
            self.step.evaluate();
            return;
        }
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            e.advance(sides, 1.0);
        }
        self.step.evaluate();
    }

    /// Keeps an iterate that is taken if no start leads to a better one.
    fn keep_nearly(&mut self, p: &Progress) {
        if p.nearly && self.kept.is_none_or(|kept| p.off < kept.off) {
            self.keep_point();
            self.kept = Some(*p);
        }
    }

    /// Takes the iterate that was kept, if any.
    pub(super) fn take_nearly(&mut self) -> bool {
        let Some(kept) = self.kept.take() else {
            return false;
        };
        self.return_to_point();
        self.step.evaluate();
        self.arrived(&kept);
        true
    }

    /// What an iteration ends with, if it ends.
    fn end(&mut self, flow: &Flow, p: &Progress) -> Option<Result<(), Failed>> {
        let most = flow.slides.map_or(self.most, |from| from + FREE);
        let gains = flow.idle < FLAT && flow.iterations < GAINING * most;
        let stuck = flow.iterations >= most && !gains || flow.stalled == STALLED;
        // as near as rounding lets it come
        if p.done || (stuck && p.usable) || self.is_rounding(flow, p) {
            self.arrived(p);
            return Some(Ok(()));
        }
        if !stuck && p.residual.is_finite() && p.sum.is_finite() {
            return None;
        }
        let (failure, row) = match flow.bounded {
            Some(body) => (StepFailure::Domain, 6 * body + 3),
            None => (StepFailure::NotConverged, p.row),
        };
        Some(Err(Failed {
            failure,
            row,
            residual: p.residual,
        }))
    }

    /// Is what is left rounding of rows and gaps, however small the inertias that turn it into velocities? Full steps of Newton's method
    /// neither lower the residual nor change the velocities by more than that. Or all rows are solved, and rounding of sliding velocities
    /// and gaps, times impulses, keeps products near the end of the path.
    fn is_rounding(&self, flow: &Flow, p: &Progress) -> bool {
        if flow.last < 1.0 {
            return false;
        }
        // curves have a point of their own
        if flow.idle >= FLAT && p.nearly && flow.slowest >= PART {
            return true;
        }
        if flow.flat < FLAT {
            return false;
        }
        let c = self.step.contacts();
        let most = |v: &[f64]| v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        // c.last is the iterate before
        let fastest = most(&c.last[..6 * self.step.view().poses.len()]);
        most(&c.delta) < ROUNDING * (1.0 + most(&c.last)) && p.apart < ROUNDING * (1.0 + fastest)
    }

    fn arrived(&mut self, p: &Progress) {
        self.stats.residual = p.residual;
        self.stats.rounded = usize::from(!p.done || p.rounded);
        let view = self.step.view();
        let turn = view.model.largest_chord_turn(view.trial, view.at.h());
        (self.stats.turned, self.stats.turn) = turn;
    }

    /// Assembles and factors; with pivots near the end, where blocks have lost what is left to find.
    fn factor(&mut self, flow: &mut Flow, p: &Progress) -> Result<(), Failed> {
        flow.near = p.mean <= NEAR * flow.kappa && p.off <= NEAR * flow.kappa;
        flow.ending += usize::from(flow.near);
        // rows of a read-out are linear in the velocities: what is left beside rounding the factors lost
        let is_linear = self.reads_out && flow.slides.is_none();
        self.is_pivoted |= is_linear && p.residual > flow.expected + p.allowed;
        // stiff friction makes the factors lose digits, which the end feels, and the general factors those of light bodies' rows
        let pivoted = flow.ending > PIVOTED || p.masking > MASKING || self.is_pivoted;
        let stiff = p.stiffest.max(p.masking) > STIFF;
        let refined = self.step.view().model.may_be_redundant() || stiff || pivoted;
        flow.refined = refined.then_some(flow.leaves);
        self.step.assemble(refined);
        let blame = p.row.min(self.step.residual().len() - 1);
        let pivots = pivoted.then_some(blame);
        // a matrix that is singular has no residual of its own
        let residual = p.residual;
        (self.step.factor(pivots)).map_err(|failed| Failed { residual, ..failed })?;
        self.stats.fallbacks += usize::from(self.step.has_pivots());
        Ok(())
    }

    /// The next direction; returns how far it may be followed.
    fn direction(&mut self, flow: &Flow, p: &Progress) -> f64 {
        // products must not run ahead of the gaps: where more contacts hold a body than are needed, what gaps are off
        // becomes impulses by `g/s`
        let behind = BEHIND * p.ahead;
        let towards = |target: f64| target.max(flow.kappa).max(behind);
        if p.settled {
            return self.aim(&Aim::Held, flow.refined);
        }
        if flow.last < SHORT || flow.iterations >= PATIENCE {
            return self.aim(&Aim::Center(towards(CENTRING * p.mean)), flow.refined);
        }
        if flow.near {
            return self.aim(&Aim::Center(towards(flow.kappa)), flow.refined);
        }
        let target = towards(self.centring(flow, p) * p.mean);
        let reach = self.aim(&Aim::Corrected(target), flow.refined);
        if reach < SHORT {
            return self.without_correction(flow, target.max(CENTRING * p.mean), reach);
        }
        reach
    }

    /// Mehrotra's centring from the affine direction, which is kept.
    fn centring(&mut self, flow: &Flow, p: &Progress) -> f64 {
        let reach = self.aim(&Aim::Center(0.0), flow.refined).min(1.0);
        let left = self.sum_along(reach);
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            e.affine = e.direction;
            if let Some((_, f)) = sides {
                f.affine = f.direction;
            }
        }
        (left / p.sum).clamp(0.0, 1.0).powi(3)
    }

    /// The correction can hurt: the direction without it, where that may be followed further.
    fn without_correction(&mut self, flow: &Flow, target: f64, reach: f64) -> f64 {
        let c = self.step.contacts_mut();
        c.spare.copy_from_slice(&c.delta);
        for (e, sides, _) in c.each(self.layout) {
            e.spare = e.direction;
            if let Some((_, f)) = sides {
                f.spare = f.direction;
            }
        }
        let plain = self.aim(&Aim::Center(target), flow.refined);
        if plain > reach {
            return plain;
        }
        let c = self.step.contacts_mut();
        c.delta.copy_from_slice(&c.spare);
        for (e, sides, _) in c.each(self.layout) {
            e.direction = e.spare;
            if let Some((_, f)) = sides {
                f.direction = f.spare;
            }
        }
        reach
    }

    /// A part of the way to the boundary of the cones, within the domain of the bodies' turns.
    fn move_on(&mut self, flow: &mut Flow, p: &Progress, reach: f64) -> Result<(), Failed> {
        let part = if flow.near {
            flow.slowest.max(PART)
        } else {
            let part = flow.slowest.max(1.0 - p.residual.max(p.mean.sqrt()));
            part.min(LARGEST_PART)
        };
        let mut length = (part * reach).min(1.0);
        if (PATIENCE..PATIENCE + HALVED).contains(&flow.iterations) {
            length *= 0.5;
        }
        let mut last = std::mem::take(&mut self.step.contacts_mut().last);
        last.copy_from_slice(self.step.trial());
        self.step.contacts_mut().last = last;
        flow.bounded = None;
        loop {
            self.set_along(length);
            let Some(body) = self.outside_domain() else {
                break;
            };
            length *= 0.5;
            flow.bounded = Some(body);
            if length < SHORTEST {
                return Err(Failed {
                    failure: StepFailure::Domain,
                    row: 6 * body + 3,
                    residual: p.residual,
                });
            }
        }
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            e.advance(sides, length);
        }
        flow.last = length;
        flow.expected = (1.0 - length) * p.residual;
        if length < SHORT {
            flow.stalled += 1;
            flow.is_turn_bound |= flow.bounded.is_some();
        } else {
            (flow.stalled, flow.is_turn_bound) = (0, false);
        }
        Ok(())
    }

    /// The unknowns that were kept, moved along the direction.
    fn set_along(&mut self, length: f64) {
        let c = self.step.contacts_mut();
        let (last, delta) = (std::mem::take(&mut c.last), std::mem::take(&mut c.delta));
        for ((t, y), d) in self.step.trial().iter_mut().zip(&last).zip(&delta) {
            *t = y - length * d;
        }
        let c = self.step.contacts_mut();
        (c.last, c.delta) = (last, delta);
        self.step.moved();
    }

    /// The Newton direction towards products, in `delta` and the elements; returns how far it may be followed.
    fn aim(&mut self, aim: &Aim, refined: Option<f64>) -> f64 {
        for (e, sides, _) in self.step.contacts_mut().each(self.layout) {
            match aim {
                Aim::Held => e.hold(sides),
                Aim::Center(target) => e.aim(sides, *target, false),
                Aim::Corrected(target) => e.aim(sides, *target, true),
            }
        }
        self.direct(true, refined)
    }

    /// The direction of the elements' targets and, if asked for, of the rows' residuals. Refined, but for a part of the right-hand
    /// side, on the equations before contacts were eliminated into them: stiff contacts take the digits of what is beside them.
    pub(super) fn direct(&mut self, residual: bool, refined: Option<f64>) -> f64 {
        let c = self.step.contacts_mut();
        let mut rhs = std::mem::take(&mut c.rhs);
        let mut delta = std::mem::take(&mut c.delta);
        let mut more = std::mem::take(&mut c.more);
        let start = |rhs: &mut [f64], step: &S| {
            if residual {
                rhs.copy_from_slice(step.residual());
            } else {
                rhs.fill(0.0);
            }
        };
        let largest = |rhs: &[f64]| rhs.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
        start(&mut rhs, self.step);
        for (e, slot) in self.step.contacts().elements.iter().zip(&self.layout.slots) {
            e.add_impulses(slot, e.target.c, -1.0, &mut rhs);
        }
        self.step.solve(&rhs, &mut delta, false);
        let pivots = self.step.has_pivots();
        let mut reach = self.recover(&delta, pivots.then_some(false));
        if let Some(part) = refined {
            let (enough, mut last) = (part * largest(&rhs), f64::INFINITY);
            for _ in 0..SWEEPS {
                start(&mut rhs, self.step);
                self.step.leave(&delta, &mut rhs, false);
                let elements = &self.step.contacts().elements;
                for (e, slot) in elements.iter().zip(&self.layout.slots) {
                    let d = &e.direction;
                    e.add_impulses(slot, d.impulses(), -1.0, &mut rhs);
                }
                self.step.settle(&mut rhs, false);
                let left = largest(&rhs);
                if left <= enough || left >= 0.5 * last {
                    break;
                }
                last = left;
                self.step.solve(&rhs, &mut more, false);
                delta.iter_mut().zip(&more).for_each(|(d, m)| *d += m);
                reach = self.recover(&delta, pivots.then_some(true));
            }
        }
        let c = self.step.contacts_mut();
        (c.rhs, c.delta, c.more) = (rhs, delta, more);
        reach
    }

    /// The elements' directions that go with a change of the velocities; returns how far they may be followed. If the matrix was factored
    /// with pivots, the impulses are those of its solution, which is the first, or `adds` to those before: by the velocities they would be
    /// off by rounding times `g/s`.
    fn recover(&mut self, delta: &[f64], adds: Option<bool>) -> f64 {
        let mut reach = f64::INFINITY;
        let memory = self.step.contacts_mut();
        if let Some(adds) = adds {
            memory.collect(adds);
        }
        let collected = std::mem::take(&mut memory.collected);
        let own = adds.map_or(&[][..], |_| &collected);
        let mut impulses = own.chunks_exact(3);
        for (e, sides, slot) in memory.each(self.layout) {
            let (p, c) = (slot.parent, slot.child);
            let gap = if e.law.gap {
                -along(delta, p, c, &e.by_velocity)
            } else {
                0.0
            };
            let eta = if e.law.frictional {
                let [first, second] = &e.slide_by_velocity;
                [-along(delta, p, c, first), -along(delta, p, c, second)]
            } else {
                [0.0; 2]
            };
            reach = reach.min(e.recover(sides, gap, eta, impulses.next()));
        }
        self.step.contacts_mut().collected = collected;
        reach
    }

    /// Sum of the products a step of the given length along the directions would leave.
    fn sum_along(&self, length: f64) -> f64 {
        let c = self.step.contacts();
        let each = c.elements.iter().enumerate();
        each.map(|(i, e)| e.products(c.sides(i, self.layout), length, 0.0).0)
            .sum()
    }
}
