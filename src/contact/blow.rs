//! Blows: what bounces, and when.

use super::cone::Law;
use super::{BLOW, Element, IMPULSES, Layout, Memory, Moment, Slot, Source, UNKNOWNS, View};
use crate::mechanism::{Field, Mechanism, dot};

/// Approach, in multiples of what gravity gives a body within an interval, up to which it does not bounce but rests.
const RESTING: f64 = 2.0;

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
        RESTING * self.gravity * interval / size
    }

    /// Tells whether an element may bounce. In a read-out what is about to is not yet touched.
    pub(super) fn expect_blow(&self, w: &View, moment: Moment, e: &mut Element, slot: &Slot) {
        let of = self.restitution(w.model, slot);
        match moment {
            // what bounces was told
            Moment::Blow(_) => e.restitution = of,
            Moment::Behind => (e.restitution, e.bounces) = (0.0, false),
            Moment::Plain => {
                (e.restitution, e.bounces) = (0.0, false);
                if of == 0.0 {
                    return;
                }
                let interval = w.at.before().unwrap_or_else(|| w.at.h());
                let approach = -dot(w.before, slot.parent, slot.child, &e.normal);
                if approach > self.resting(w.model, slot, interval) {
                    e.restitution = of;
                    if !w.at.steps() {
                        e.law = Law {
                            gap: false,
                            frictional: false,
                            ..e.law
                        };
                    }
                }
            }
        }
    }

    /// Of a step that was solved: does anything that touched come too near to rest? It is to bounce instead.
    pub(crate) fn strikes(&self, memory: &mut Memory) -> bool {
        if !self.elastic || memory.moment != Moment::Plain {
            return false;
        }
        let mut any = false;
        for e in &mut memory.elements {
            e.bounces = e.restitution > 0.0 && e.local.g > e.local.s;
            any |= e.bounces;
        }
        any
    }

    /// The same of a step whose unknowns are given.
    pub(crate) fn struck(&self, memory: &mut Memory, y: &[f64]) -> bool {
        let own = &y[self.blows()];
        let each = memory.elements.iter_mut().zip(own.chunks_exact(BLOW));
        each.fold(false, |any, (e, own)| {
            e.bounces = own[0] != 0.0;
            any || e.bounces
        })
    }

    /// Writes what the read-out and the blow did; zeros where there is no blow.
    pub(crate) fn write_blow(&self, done: Option<[&Memory; 2]>, y: &mut [f64]) {
        let y = &mut y[self.blows()];
        y.fill(0.0);
        let Some([read, blow]) = done else { return };
        for memory in [read, blow].into_iter().filter(|m| !m.idle) {
            for (e, y) in memory.elements.iter().zip(y.chunks_exact_mut(BLOW)) {
                for (y, impulse) in y[1..].iter_mut().zip(e.local.impulses()) {
                    *y += impulse;
                }
            }
        }
        for (e, y) in blow.elements.iter().zip(y.chunks_exact_mut(BLOW)) {
            y[0] = f64::from(u8::from(e.bounces));
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
    /// Solves the blow before an interval of length `h`, of what bounces according to the step, with its smoothing.
    pub(crate) fn blow(&mut self, step: &Self, h: f64) {
        self.moment = Moment::Blow(h);
        self.follow(step);
        for (own, e) in self.elements.iter_mut().zip(&step.elements) {
            own.bounces = e.bounces;
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

    /// As smooth as another step.
    pub(crate) fn follow(&mut self, step: &Self) {
        (self.softness, self.smoothing) = (step.softness, step.smoothing);
    }

    /// From here on the step is the one behind a blow, or not.
    pub(crate) fn set_behind(&mut self, behind: bool) {
        self.moment = if behind {
            Moment::Behind
        } else {
            Moment::Plain
        };
    }
}
