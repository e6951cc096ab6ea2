//! Blows: what bounces, and when.
//!
//! A step decides by itself: what touches though it comes near too fast bounces at the step's knot, and touches behind the
//! blow as everything does. Or it is told, for each of what has a restitution: that is for who splits steps at the
//! instants of impacts.

use super::assembly::{limit_gap, limit_row};
use super::cone::{Law, Local};
use super::thrown::kinetic;
use super::{BLOW, Element, IMPULSES, Layout, Memory, Moment, Slot, Source, UNKNOWNS, View};
use crate::dynamics::Inputs;
use crate::mechanism::{Field, Mechanism, Meeting, Row, add_wrench, dot, normal_row};
use crate::spatial::Pose;

/// Approach, in multiples of what gravity gives a body within an interval, up to which it does not bounce but rests.
const RESTING: f64 = 2.0;

/// Gravity, m/s^2, that stands for what presses where there is (almost) none: a thousandth of the earth's. It is far below what things
/// that are watched bounce with, and far above the rounding of what lies still.
const FAINT: f64 = 9.81e-3;

/// How what may bounce is treated at a knot and in the step from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touching {
    /// It touches, and does not bounce.
    Touches,
    /// It bounces at the knot, and does not touch in the step.
    Strikes,
    /// It does not touch.
    Open,
}

/// Part of the kinetic energy from which it matters that something stops that should bounce: as much as contacts may add before smaller parts are
/// tried.
const NOTICEABLE: f64 = 0.02;

/// The result of the step after a blow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterBlow {
    Nothing,
    /// More contacts must bounce in the blow.
    Strikes,
    /// A body that the blow accelerates stops at another contact without a bounce, and a noticeable energy is lost. In smaller parts of the step
    /// that contact has a blow of its own.
    Stops,
}

/// What an element did, among the unknowns: bounced as the step decided; else as it was told.
const BOUNCED: f64 = 1.0;
/// Where among the numbers of a blow the place is that it acted on.
pub(super) const PLACE: usize = BLOW - 1;

impl Touching {
    fn number(self) -> f64 {
        match self {
            Self::Strikes => 2.0,
            Self::Open => 3.0,
            Self::Touches => 4.0,
        }
    }

    fn of(number: f64) -> Option<Self> {
        let all = [Self::Strikes, Self::Open, Self::Touches];
        all.into_iter().find(|t| t.number() == number)
    }
}

/// Did an element bounce, by its number among the unknowns?
pub(super) fn bounced(number: f64) -> bool {
    number == BOUNCED || number == Touching::Strikes.number()
}

/// How a step treats contacts and limits with restitution.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Treatment of each element.
    pub how: &'a [Touching],
    /// Number of the place with which each element strikes. If it is zero, the place is found at the knot.
    pub struck: &'a [f64],
    /// Does the step start with the places in its guess?
    pub keeps: bool,
}

/// What of something that may bounce is known of a step.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// At the step's knot, m or rad.
    pub start: f64,
    /// At its end.
    pub end: f64,
    /// How fast it came near in the interval before the knot, m/s or rad/s.
    pub approach: f64,
    /// Was what met at the end exchanged for what was found at the knot?
    pub exchanged: bool,
}

impl Layout {
    /// Has anything of the mechanism a restitution?
    pub(super) fn is_elastic(m: &Mechanism) -> bool {
        let mut contacts = m.contacts.iter();
        let mut limits = m.joints.iter().flat_map(|j| &j.directions);
        contacts.any(|c| m.restitution(c) > 0.0)
            || limits.any(|d| d.restitution > 0.0 && d.is_limited())
    }

    fn restitution(&self, m: &Mechanism, slot: &Slot) -> f64 {
        match slot.source {
            Source::Contact(i) => m.restitution(&m.contacts[i]),
            Source::Limit(j, i, _) => m.joints[j].directions[i].restitution,
            Source::Friction(..) => 0.0,
        }
    }

    /// Its derivative by a parameter that sets these fields.
    pub(super) fn restitution_by(&self, m: &Mechanism, slot: &Slot, fields: &[Field]) -> f64 {
        match slot.source {
            Source::Contact(i) => m.restitution_by(&m.contacts[i], fields),
            Source::Limit(j, i, _) => {
                f64::from(u8::from(fields.contains(&Field::LimitRestitution((j, i)))))
            }
            Source::Friction(..) => 0.0,
        }
    }

    /// The approach from which an element bounces, m/s or rad/s, where the interval before was this long, s.
    fn resting(&self, m: &Mechanism, slot: &Slot, interval: f64) -> f64 {
        let size = match slot.source {
            Source::Limit(j, i, _) if m.joints[j].directions[i].freedom.turns() => {
                self.sizes[slot.child]
            }
            _ => 1.0,
        };
        RESTING * m.gravity.norm().max(FAINT) * interval / size
    }

    /// Tells whether an element may bounce. In a read-out what is about to is not yet touched; in a blow at its instant, told
    /// so, nothing takes part that is not as `near` as what rests.
    pub(super) fn expect_blow(
        &self,
        w: &View,
        (moment, near): (Moment, f64),
        e: &mut Element,
        slot: &Slot,
    ) {
        let of = self.restitution(w.model, slot);
        let open = match (moment, e.told) {
            (Moment::Blow(_), told) => {
                // what bounces was told
                e.restitution = of;
                let away = |t| t != Touching::Touches || e.here.gap > near;
                !e.bounces && told.is_some_and(away)
            }
            (moment, Some(told)) => {
                let strikes = told == Touching::Strikes;
                e.restitution = 0.0;
                e.bounces = strikes && w.at.steps() && moment == Moment::Plain;
                told != Touching::Touches
            }
            (Moment::AfterBlow, None) => {
                (e.restitution, e.bounces) = (0.0, false);
                false
            }
            (Moment::Plain, None) => {
                (e.restitution, e.bounces) = (self.bounce(w, w.before, slot, &e.normal), false);
                e.restitution > 0.0 && !w.at.steps()
            }
        };
        if open {
            e.law = Law {
                gap: false,
                frictional: false,
                ..e.law
            };
            e.local = Local::default();
        }
    }

    /// The restitution of an element that comes near along this row, at these velocities of bodies, too fast to rest; else zero.
    fn bounce(&self, w: &View, velocities: &[f64], slot: &Slot, normal: &Row) -> f64 {
        let of = self.restitution(w.model, slot);
        let interval = w.at.before().unwrap_or_else(|| w.at.h());
        let approach = -dot(velocities, slot.parent, slot.child, normal);
        if of > 0.0 && approach > self.resting(w.model, slot, interval) {
            of
        } else {
            0.0
        }
    }

    /// Of a step that was solved: does anything that touched come too near to rest? It is to bounce instead, where it touched.
    pub(crate) fn strikes(&self, w: &View, memory: &mut Memory) -> bool {
        if !self.elastic || memory.moment != Moment::Plain {
            return false;
        }
        let mut any = false;
        for (e, slot) in memory.elements.iter_mut().zip(&self.slots) {
            // other places may have been exchanged for those at the knot
            e.kept = e.held;
            e.bounces = e.local.g > e.local.s && self.bounce(w, w.before, slot, &e.normal) > 0.0;
            any |= e.bounces;
        }
        any
    }

    /// After a blow and its step are solved: which contacts stop a fast approach without a bounce, in the step or in the blow? A contact that
    /// also approached fast before the blow, at the velocities `before`, is added to the blow. Otherwise a plate that lands almost flat
    /// would stop at its second edge.
    pub(crate) fn strikes_after_blow(
        &self,
        w: &View,
        memory: &mut Memory,
        blow: &Memory,
        before: &[f64],
    ) -> AfterBlow {
        let near = blow.near();
        // its place, the velocity that it is stopped with, and was it fast before the blow?
        let stops = |e: &Element, struck: &Element, slot: &Slot| {
            let fast = |velocities| self.bounce(w, velocities, slot, &e.normal) > 0.0;
            let behind = e.local.g > e.local.s && fast(w.before);
            // what is open at the knot may be stopped by the blow itself
            let within = struck.here.gap > near && struck.local.g > struck.local.s;
            let speed = match (behind, within) {
                (true, _) => -dot(w.before, slot.parent, slot.child, &e.normal),
                // as far as the blow lets it come
                (false, true) => struck.local.g + struck.here.gap / blow.interval,
                (false, false) => return None,
            };
            let place = if behind { e.held } else { struck.held };
            let stops = !struck.bounces && self.restitution(w.model, slot) > 0.0;
            stops.then(|| (place, speed, fast(before)))
        };
        let each = memory.elements.iter().zip(&blow.elements).zip(&self.slots);
        let (mut any, mut lost) = (false, 0.0);
        for ((e, struck), slot) in each {
            match stops(e, struck, slot) {
                Some((.., true)) => any = true,
                Some((_, speed, false)) => {
                    let back = self.restitution(w.model, slot) * speed;
                    lost += 0.5 * slot.mass * back * back;
                }
                None => {}
            }
        }
        if !any {
            return if lost > NOTICEABLE * kinetic(w, w.before) {
                AfterBlow::Stops
            } else {
                AfterBlow::Nothing
            };
        }
        let each = memory.elements.iter_mut().zip(&blow.elements);
        for ((e, struck), slot) in each.zip(&self.slots) {
            let too = match stops(e, struck, slot) {
                Some((place, _, true)) => Some(place),
                _ => None,
            };
            (e.kept, e.bounces) = (too.unwrap_or(struck.kept), too.is_some() || struck.bounces);
        }
        AfterBlow::Strikes
    }

    /// The same of a step whose unknowns are given.
    pub(crate) fn struck(&self, memory: &mut Memory, y: &[f64]) -> bool {
        let own = &y[self.blows()];
        let each = memory.elements.iter_mut().zip(own.chunks_exact(BLOW));
        each.fold(false, |any, (e, own)| {
            e.bounces = bounced(own[0]);
            if own[PLACE] != 0.0 {
                e.kept = Meeting::decoded(own[PLACE]);
            }
            any || e.bounces
        })
    }

    /// Does something bounce at the knot of the step of these unknowns?
    pub(crate) fn bounces(&self, y: &[f64]) -> bool {
        let own = y.get(self.blows()).unwrap_or(&[]);
        own.chunks_exact(BLOW).any(|own| bounced(own[0]))
    }

    /// Something that bounces at a knot in the step of these unknowns, where derivatives of that are not asked for.
    pub(crate) fn bounces_unasked(&self, y: &[f64]) -> Option<usize> {
        if self.options.impacts.is_some() {
            return None;
        }
        let mut own = y[self.blows()].chunks_exact(BLOW);
        own.position(|own| own[0] == BOUNCED)
    }

    /// Tells the step prepared what of its elements strikes at its knot.
    pub(crate) fn tell_struck(&self, memory: &mut Memory, struck: &[f64]) {
        for (e, code) in memory.elements.iter_mut().zip(struck) {
            if *code != 0.0 && e.told == Some(Touching::Strikes) {
                e.kept = Meeting::decoded(*code);
            }
        }
    }

    /// What of an element met at the end of the step last solved, as a number; zero where that has none.
    pub(crate) fn place(&self, memory: &Memory, element: usize) -> f64 {
        let held = &memory.elements[element].held;
        if held.is_coded() { held.code() } else { 0.0 }
    }

    /// Tells what may bounce how it is treated; the rest touches.
    pub(crate) fn tell(&self, m: &Mechanism, memory: &mut Memory, how: &[Touching]) {
        for ((e, slot), how) in memory.elements.iter_mut().zip(&self.slots).zip(how) {
            let elastic = self.restitution(m, slot) > 0.0;
            e.told = Some(if elastic { *how } else { Touching::Touches });
        }
    }

    /// Is anything of the step prepared told to bounce?
    pub(crate) fn is_to_strike(&self, memory: &Memory) -> bool {
        memory.elements.iter().any(|e| e.bounces)
    }

    /// How elements were treated in the step of these unknowns.
    pub(crate) fn told(&self, y: &[f64], how: &mut [Touching]) {
        let own = y[self.blows()].chunks_exact(BLOW);
        for (how, own) in how.iter_mut().zip(own) {
            *how = Touching::of(own[0]).unwrap_or(Touching::Touches);
        }
    }

    /// Tells what the step of these unknowns was told; where there are none, steps decide.
    pub(crate) fn recall(&self, memory: &mut Memory, y: &[f64]) {
        if !self.elastic {
            return;
        }
        if y.is_empty() {
            return memory.elements.iter_mut().for_each(|e| e.told = None);
        }
        let own = y[self.blows()].chunks_exact(BLOW);
        for (e, own) in memory.elements.iter_mut().zip(own) {
            e.told = Touching::of(own[0]);
        }
    }

    /// Writes what the step was told, and what the read-out and the blow did; zeros where there is neither.
    pub(crate) fn write_blow(&self, step: &Memory, done: Option<[&Memory; 2]>, y: &mut [f64]) {
        let y = &mut y[self.blows()];
        y.fill(0.0);
        for (e, y) in step.elements.iter().zip(y.chunks_exact_mut(BLOW)) {
            y[0] = e.told.map_or(0.0, Touching::number);
        }
        let Some([read, blow]) = done else { return };
        for memory in [read, blow].into_iter().filter(|m| !m.idle) {
            for (e, y) in memory.elements.iter().zip(y.chunks_exact_mut(BLOW)) {
                for (y, impulse) in y[1..].iter_mut().zip(e.local.impulses()) {
                    *y += impulse;
                }
            }
        }
        for (e, y) in blow.elements.iter().zip(y.chunks_exact_mut(BLOW)) {
            if e.bounces && e.told.is_none() {
                y[0] = BOUNCED;
            }
            if e.kept.is_coded() {
                y[PLACE] = e.kept.code();
            }
        }
    }

    /// Lets touch what cannot bounce, and what rests at the knot of the step prepared: as near as what presses is, and too slow to
    /// bounce on.
    pub(crate) fn at_rest(&self, w: &View, memory: &Memory, how: &mut [Touching]) {
        let interval = w.at.before().unwrap_or_else(|| w.at.h());
        let near = memory.near().max(interval * memory.kappa.sqrt());
        let each = memory.elements.iter().zip(&self.slots).zip(how).enumerate();
        for (i, ((e, slot), how)) in each {
            let approach = dot(w.before, slot.parent, slot.child, &e.normal).abs();
            let rests = e.here.gap <= near && self.would_rest(w.model, i, approach, interval);
            if rests || self.restitution(w.model, slot) == 0.0 {
                *how = Touching::Touches;
            }
        }
    }

    /// Would what strikes at this approach, m/s or rad/s, fly for less than two intervals, s? It flies `2 e v/g`.
    pub(crate) fn would_rest(&self, m: &Mechanism, element: usize, v: f64, interval: f64) -> bool {
        let slot = &self.slots[element];
        2.0 * self.restitution(m, slot) * v < self.resting(m, slot, interval)
    }

    /// Gaps of an element at the ends of the step last solved, m or rad, and how fast it came near in the interval before.
    pub(crate) fn gap(&self, w: &View, memory: &Memory, element: usize) -> Gap {
        let (e, slot) = (&memory.elements[element], &self.slots[element]);
        let end = match slot.source {
            Source::Contact(i) => w.model.touch_of(&w.model.contacts[i], &e.held, w.next).gap,
            Source::Limit(j, i, upper) => {
                let joint = &w.model.joints[j];
                let (a, b) = w.model.ends(joint, w.next);
                limit_gap(joint, i, upper, &joint.relative(a, b), w.winding(j))
            }
            Source::Friction(..) => f64::INFINITY,
        };
        Gap {
            start: e.here.gap,
            end,
            approach: -dot(w.before, slot.parent, slot.child, &e.normal),
            exchanged: e.held != e.found,
        }
    }

    /// Adds the derivative of an element's gap at the end of the step, by the poses there and the parameters.
    pub(crate) fn gap_by(&self, w: &View, memory: &Memory, element: usize, out: &mut Inputs) {
        let (e, slot) = (&memory.elements[element], &self.slots[element]);
        let (m, p, c) = (w.model, slot.parent, slot.child);
        let ends = (m.pose(w.next, p), &w.next[c]);
        let row = match slot.source {
            Source::Contact(i) => {
                let touch = m.touch_of(&m.contacts[i], &e.held, w.next);
                normal_row(&touch, ends.0, ends.1)
            }
            Source::Limit(j, i, upper) => {
                let joint = &m.joints[j];
                limit_row(joint, i, upper, ends, &joint.relative(ends.0, ends.1))
            }
            Source::Friction(..) => Row::ZERO,
        };
        add_wrench(&mut out.x, p, c, &row, 1.0);
        for (out, parameter) in out.p.iter_mut().zip(&m.parameters) {
            for field in &parameter.fields {
                *out += self.gap_by_field(w, (e, slot), *field, w.next);
            }
        }
    }

    fn gap_by_field(
        &self,
        w: &View,
        (e, slot): (&Element, &Slot),
        field: Field,
        poses: &[Pose],
    ) -> f64 {
        let m = w.model;
        match slot.source {
            Source::Contact(i) => {
                let by = m.touch_by(&m.contacts[i], &e.held, poses, field);
                by.map_or(0.0, |t| t.gap)
            }
            Source::Limit(j, i, upper) => {
                let sign = if upper { -1.0 } else { 1.0 };
                let moved =
                    m.joints[j].coordinate_by_anchor((j, i), field, m.ends(&m.joints[j], poses));
                let bound = match field {
                    Field::UpperLimit(of) if upper && of == (j, i) => 1.0,
                    Field::LowerLimit(of) if !upper && of == (j, i) => -1.0,
                    _ => 0.0,
                };
                bound + sign * moved.unwrap_or(0.0)
            }
            Source::Friction(..) => 0.0,
        }
    }

    /// Adds impulses among the unknowns of a read-out to those of a blow.
    pub(crate) fn add_blow(&self, y: &[f64], blow: &mut [f64]) {
        let own = y[self.rows..].chunks_exact(UNKNOWNS);
        for (own, blow) in own.zip(blow.chunks_exact_mut(BLOW)) {
            for (blow, place) in blow[1..].iter_mut().zip(IMPULSES) {
                *blow += own[place];
            }
        }
    }

    /// The transpose: adds the adjoints of a blow among those of all unknowns to those of a read-out.
    pub(crate) fn pull_blow(&self, adjoint: &[f64], y: &mut [f64]) {
        let blow = adjoint[self.blows()].chunks_exact(BLOW);
        for (own, blow) in y[self.rows..].chunks_exact_mut(UNKNOWNS).zip(blow) {
            for (blow, place) in blow[1..].iter().zip(IMPULSES) {
                own[place] += blow;
            }
        }
    }
}

impl Memory {
    /// How near the central path holds what presses more than it gives way, m or rad: `s < sqrt(kappa)`.
    pub(super) fn near(&self) -> f64 {
        self.interval * self.kappa.sqrt()
    }

    /// Solves the blow before an interval of length `h`, of what bounces according to the step, with its smoothing.
    pub(crate) fn blow(&mut self, step: &Self, h: f64) {
        self.moment = Moment::Blow(h);
        self.follow(step);
        for (own, e) in self.elements.iter_mut().zip(&step.elements) {
            (own.bounces, own.kept) = (e.bounces, e.kept);
        }
    }

    /// Nothing touches until [`Memory::meet`]; returns what that takes.
    pub(crate) fn part(&mut self) -> bool {
        !std::mem::replace(&mut self.idle, true)
    }

    /// Touches again what touched before [`Memory::part`].
    pub(crate) fn meet(&mut self, touching: bool) {
        self.idle = !touching;
    }

    /// As smooth as another step, and told the same.
    pub(crate) fn follow(&mut self, step: &Self) {
        (self.softness, self.smoothing) = (step.softness, step.smoothing);
        for (own, e) in self.elements.iter_mut().zip(&step.elements) {
            own.told = e.told;
        }
    }

    /// Is the step to come the one after a blow?
    pub(crate) fn set_after_blow(&mut self, is_after: bool) {
        self.moment = if is_after {
            Moment::AfterBlow
        } else {
            Moment::Plain
        };
    }
}
