//! Rims of cylinders that come down flat, and hulls of many vertices: which of their points carry them.
//!
//! The gap of an end above a plane is `phi = min over angles t of phi_t`, where `phi_t` is that of a point fixed on the rim. It has no
//! derivative where the end is flat, while every `phi_t` is as smooth as that of a corner of a box. A step holds four of these
//! points, found at its knot. Where its solution leaves the rim lower between them, its lowest point there becomes a contact, the
//! one that carries least is dropped, and the step is solved again: an exchange method of semi-infinite programming (Hettich,
//! Kortanek, Semi-infinite programming, 1993). What an inelastic impact does stays dissipative, since impulses act where the
//! gap closes.
//!
//! A hull of many vertices above a plane is the same with finitely many `phi_t`: a step holds some of its lowest vertices, and one that the
//! solution leaves below the plane becomes a contact.
//!
//! Of two bodies with faces, edges or rims it is a semi-infinite program of normals: bodies that no normal of two parts of theirs separates
//! overlap, and the parts that separate them best become a contact.
//!
//! With fixed steps, an exchange after which contacts add energy is taken back, those of the other bodies of the round with it: the overlap
//! is pushed out over the next steps. Where the step may be made in smaller parts, these are tried.
//!
//! Which points a step ended with is kept with its unknowns: derivatives, read-outs and works take place at the same ones.

use super::{Element, Failed, Layout, Memory, NewtonSystem, Slot, Solver, Source, Touching, View};
use crate::dynamics::{Stage, StepFailure};
use crate::mechanism::{Contact, Meeting, TURN};

/// How far the lowest point of a rim may be below a plane, m: half of what all shapes are held to.
const BELOW: f64 = 5e-10;
/// Angle, in parts of a turn (0.1 rad). If the lowest point is nearer than this to a point that is held, that point moves there. Two
/// points so close would have nearly equal rows, and the matrix of the step would be badly conditioned.
const NEAR: u16 = TURN / 64;
/// Exchanges in which points may move. After them points are only replaced, which always converges.
const MOVES: usize = 10;
/// Exchanges of a step at most: each about halves the angle to the true lowest point where two points beside it carry, and from a quarter
/// of a turn 12 of them lead to the spacing of stored angles.
const ROUNDS: usize = 30;

/// Gap up to which bodies count as touching where a read-out holds them, m: steps leave gaps far below it.
const TOUCHES: f64 = 1e-6;
/// Distance up to which two parts that touch make one place, m.
const NEARBY: f64 = 1e-4;
/// Parts of two bodies that a read-out compares at most: more than a body on a grid touches at a time.
const PLACES: usize = 8;

/// What a step holds again.
#[derive(Clone, Copy, Debug)]
enum Places {
    /// What its last solution held.
    Kept,
    /// What was found at the knot.
    Found,
}

impl Slot {
    /// Is it friction of a joint, which has no gap?
    pub(super) fn is_friction(&self) -> bool {
        matches!(self.source, Source::Friction(..))
    }

    /// The contact that an element is.
    pub(super) fn contact<'a>(&self, w: &View<'a>) -> Option<&'a Contact> {
        match self.source {
            Source::Contact(i) => Some(&w.model.contacts[i]),
            Source::Friction(..) | Source::Limit(..) => None,
        }
    }
}

impl Memory {
    /// What rounding leaves of a gap, by the interval and the place.
    pub(super) fn gap_floor(&self) -> f64 {
        4.0 * f64::EPSILON / self.interval
    }

    /// Writes the exchanged points at the end of the unknowns `y`, and zero for each point that is still the one found at the knot.
    pub(super) fn write_places(&self, y: &mut [f64], layout: &Layout) {
        let first = layout.rim_points().start - layout.rows;
        for (i, y) in layout.rims.iter().flatten().zip(&mut y[first..]) {
            let e = &self.elements[*i];
            *y = if e.held == e.found {
                0.0
            } else {
                e.held.code()
            };
        }
    }
}

impl Layout {
    /// Takes the points of rims that a step ended with, from all of its unknowns, where it was prepared anew; where there are none, those
    /// found at the knot stay, and a read-out looks for what touches there.
    pub(crate) fn take_places(&self, w: &View, memory: &mut Memory, y: &[f64]) {
        let floor = memory.gap_floor();
        let Some(places) = y.get(self.rim_points()) else {
            if let Stage::Readout(_) = w.at.stage {
                self.hold_touching(w, &mut memory.elements, floor);
            }
            return;
        };
        for (i, code) in self.rims.iter().flatten().zip(places) {
            let held = Meeting::decoded(*code);
            if let (true, Some(contact)) = (*code != 0.0, self.slots[*i].contact(w))
                && w.model.has_parts(contact, &held)
            {
                memory.elements[*i].set_meeting(w, contact, held, floor);
            }
        }
    }

    /// Holds bodies at a knot that touch where nothing was found that they would overlap in the step from there. What bounces is held by its
    /// blow.
    fn hold_touching(&self, w: &View, elements: &mut [Element], floor: f64) {
        for rim in &self.rims {
            let first = rim.first().and_then(|i| self.slots[*i].contact(w));
            let Some(pair) = first.filter(|c| w.model.restitution(c) == 0.0) else {
                continue;
            };
            let touches = |e: &Element| e.here.gap.abs() < TOUCHES;
            if rim.iter().any(|i| touches(&elements[*i])) {
                continue;
            }
            let mut known = [Meeting::Apart; PLACES];
            for k in 0..PLACES {
                let held = known
                    .into_iter()
                    .chain(rim.iter().map(|i| elements[*i].held));
                let held = held.filter(|held| *held != Meeting::Apart);
                let found = w.model.touching(pair, held, w.poses);
                let free = rim.iter().find(|i| elements[**i].held == Meeting::Apart);
                let (Some(found), Some(place)) = (found, free) else {
                    break;
                };
                known[k] = found;
                let touch = w.model.touch_of(pair, &found, w.poses);
                let is_near = |i: &usize| {
                    let e = &elements[*i];
                    e.held != Meeting::Apart && (e.here.point - touch.point).norm() < NEARBY
                };
                // one of several parts that meet at a place is enough
                if touch.gap > -TOUCHES
                    && !rim.iter().any(is_near)
                    && let Some(own) = self.slots[*place].contact(w)
                {
                    elements[*place].set_meeting(w, own, found, floor);
                }
            }
        }
    }

    /// Notes what the last solution held.
    fn keep_places(&self, elements: &mut [Element]) {
        for i in self.rims.iter().flatten() {
            elements[*i].kept = elements[*i].held;
        }
    }

    /// Holds what was noted, or what was found at the knot, again.
    fn restore_places(&self, w: &View, elements: &mut [Element], floor: f64, of: Places) {
        for i in self.rims.iter().flatten() {
            let e = &mut elements[*i];
            let held = match of {
                Places::Kept => e.kept,
                Places::Found => e.found,
            };
            if let (true, Some(contact)) = (e.held != held, self.slots[*i].contact(w)) {
                e.set_meeting(w, contact, held, floor);
            }
        }
    }

    /// Is a contact closed at the end of the step that is told not to touch?
    fn comes_through(&self, w: &View, e: &Element, i: usize) -> bool {
        let is_open = e.told.is_some_and(|told| told != Touching::Touches);
        let contact = self.slots[i].contact(w).filter(|_| is_open);
        contact.is_some_and(|c| w.model.touch_of(c, &e.held, w.next).gap < 0.0)
    }

    /// Makes contacts of the points of rims that are lowest at the end of the step and below what they meet. Are there any, and does anything
    /// overlap that nothing would hold?
    fn exchange(&self, w: &View, elements: &mut [Element], floor: f64, moves: bool) -> [bool; 2] {
        let (mut any, mut overlaps) = (false, false);
        for rim in &self.rims {
            // what is told not to touch comes through: who told it looks for the instant
            if rim.iter().any(|i| self.comes_through(w, &elements[*i], *i)) {
                continue;
            }
            let contact = rim.first().and_then(|i| self.slots[*i].contact(w));
            let mut held = rim.iter().map(|i| elements[*i].held);
            let lower =
                contact.and_then(|c| w.model.lower_point(c, &mut held, (w.poses, w.next), BELOW));
            let (Some(contact), Some(lower)) = (contact, lower) else {
                continue;
            };
            if lower == Meeting::Apart {
                overlaps = true;
                continue;
            }
            // what carries least; what holds nothing is none at first
            let carried = |i: usize| match elements[i].held {
                Meeting::Apart => f64::NEG_INFINITY,
                _ => elements[i].local.g,
            };
            let those = || rim.iter().copied();
            let angle = |i: usize| elements[i].held.angle_to(&lower);
            let near = those().filter_map(|i| Some((angle(i)?, i))).min();
            let moved = near.filter(|(by, _)| moves && *by < NEAR).map(|(_, i)| i);
            let may = |i: &usize| w.model.may_replace(contact, &elements[*i].held, &lower);
            let least = || {
                let those = those().filter(may);
                those.min_by(|i, k| carried(*i).total_cmp(&carried(*k)))
            };
            let chosen = moved.or_else(least);
            if let Some((i, own)) = chosen.and_then(|i| Some((i, self.slots[i].contact(w)?))) {
                elements[i].set_meeting(w, own, lower, floor);
                if moved.is_none() {
                    elements[i].local = Default::default();
                }
                any = true;
            }
        }
        [any, overlaps]
    }
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Changes what is held, seen from the step as it was last evaluated.
    pub(super) fn with_elements<T>(
        &mut self,
        f: impl FnOnce(&Layout, &View, &mut [Element], f64) -> T,
    ) -> T {
        let floor = self.step.contacts().gap_floor();
        let mut elements = std::mem::take(&mut self.step.contacts_mut().elements);
        let done = f(self.layout, &self.step.view(), &mut elements, floor);
        self.step.contacts_mut().elements = elements;
        done
    }

    /// Solves a step that is solved again until no rim is lower than the points that hold it. Where that fails, the step stays as it was.
    pub(super) fn hold_rims(&mut self, y: &[f64], warm: bool) -> Result<(), Failed> {
        if self.layout.rims.is_empty() || !self.step.view().at.steps() {
            return Ok(());
        }
        let spent = self.step.contacts().spent;
        let may_divide = self.step.contacts().may_divide();
        for round in 0..ROUNDS {
            let exchange = |layout: &Layout, w: &View, elements: &mut [Element], floor: f64| {
                layout.keep_places(elements);
                layout.exchange(w, elements, floor, round < MOVES)
            };
            let [any, overlaps] = self.with_elements(exchange);
            // shorter steps are tried before an overlap is accepted
            if overlaps && may_divide {
                return Err(Failed {
                    failure: StepFailure::Budget,
                    row: 0,
                    residual: self.stats.residual,
                });
            }
            if !any {
                return Ok(());
            }
            let kappa = self.step.contacts().kappa;
            let added = self.adds_energy(kappa);
            match self.solve_again() {
                // it is better to push an overlap out over several steps than to throw the body within one
                Ok(()) if !(may_divide || added) && self.adds_energy(kappa) => {
                    return self.hold_again(y, warm, spent);
                }
                Ok(()) => {}
                Err(error) if error.failure == StepFailure::Stopped => return Err(error),
                Err(error) if may_divide => {
                    return Err(Failed {
                        failure: StepFailure::Budget,
                        ..error
                    });
                }
                Err(_) => return self.hold_again(y, warm, spent),
            }
        }
        Ok(())
    }

    /// Solves the step with what its last solution held, because the next has none; else with what was found at the knot.
    fn hold_again(&mut self, y: &[f64], warm: bool, spent: usize) -> Result<(), Failed> {
        let mut solved = Ok(());
        for of in [Places::Kept, Places::Found] {
            self.with_elements(|layout, w, elements, floor| {
                layout.restore_places(w, elements, floor, of);
            });
            self.step.contacts_mut().spent = spent;
            solved = self.solve_path(y, warm);
            match &solved {
                Err(error) if error.failure != StepFailure::Stopped => {}
                _ => break,
            }
        }
        solved
    }
}
