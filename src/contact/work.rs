//! Work of contacts, limits and joint friction.
//!
//! At a knot the momenta of the intervals before and after it balance the impulses that act there,
//!
//! ```text
//! M (b - a) = G- + G+ + D + J,
//! ```
//!
//! `a` and `b` the velocities of these intervals, as far as the joints allow them at the knot, `G-` and `G+` the impulses of forces
//! over half of either interval, `D` those of dampers and `J` those of what touches. The kinetic energy changes by the product of
//! each with `(a + b)/2`. A force over an interval works along its displacement instead, `G- . a + G+ . b`: to second order whatever
//! happens at the knot, and as potential energies change. So that the sum is exact where something strikes, what touches has the
//! rest
//!
//! ```text
//! J . (a + b)/2 + (G- - G+) . x/2,     x = M^-1 J' the change of the velocities by impulses J' of blows.
//! ```
//!
//! Velocities read at the knot, `v`, add the same of the half before it, from `a` to `v`, with `G+ = 0`. The energy error is then
//! `G- . (v - a - x)/2` less its value at the start. What has stood since the start only holds, and is no blow: a light leg that is
//! pushed against the ground would be thrown far by its push in half a step. Of all else `J' = J`, so that the error is that of
//! the free motion, and constant forces do exactly their work whatever they drive against what.
//!
//! The energy check needs the error of the motion itself. An element that was loaded at the knot before, too, holds what forces press
//! onto it: it acts as a constraint. With `x'` the part of `x` by such elements, the error of the motion within these constraints is
//! `G- . (v - a - x + x')/2`. A light foot of the mass `m` that a joint presses onto the ground by the force `u` does not move, so
//! `-G- . x'/2 = (h u)^2/8m` is in the error of the free motion alone. Whether springs, dampers, friction of joints or actuators
//! press, makes no difference. Friction of joints is bounded, thus a force: it is always part of `x'`.
//!
//! A blow goes through what is held or stands, too, where most of the impulse is then that of the blow. There such an element
//! keeps the impulses by time of the last knot without a blow, and the rest is part of the blow.

use super::blow::PLACE;
use super::exchange::TOUCHES;
use super::{BLOW, Element, IMPULSES, Layout, Memory, Slot, UNKNOWNS, View};
use crate::mechanism::{Mechanism, Meeting, Row, dot, vec3};

/// Impulse by the contact's mass, m/s, from which something stands: a thousandth of what gravity gives in a step of 0.1 ms, and far above
/// what the central path leaves at open gaps.
const LOADED: f64 = 1e-6;
/// Knots that a blow without restitution takes: one closes the gap, the next stops what is left of the approach.
const BLOW_KNOTS: usize = 2;

/// Work done at a knot, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ContactWork {
    /// By friction.
    pub friction: f64,
    /// Along normals: by impacts.
    pub impacts: f64,
}

impl std::ops::AddAssign for ContactWork {
    fn add_assign(&mut self, other: Self) {
        self.friction += other.friction;
        self.impacts += other.impacts;
    }
}

/// What impulses at a knot change, velocities six a body.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Work of what touches, with the mean of the velocities.
    pub work: ContactWork,
    /// Mean of the velocities before and after them.
    pub mean: Vec<f64>,
    /// Change of the velocities by all impulses.
    pub change: Vec<f64>,
    /// The part of it by blows.
    pub blow: Vec<f64>,
    /// The part of that by elements which were loaded at the knot before, too, and by friction of joints.
    pub held: Vec<f64>,
    /// Product of the impulses of forces and dampers with the change by blows, J.
    pub others_on_blow: f64,
    /// The same with the part of it that is held, J.
    pub others_on_held: f64,
}

/// How long elements have been loaded, from knot to knot of a trajectory; empty at its start.
#[derive(Clone, Debug, Default)]
pub struct Loads(Vec<Load>);

/// How long an element has been loaded.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// At each knot since the start, and nothing else for long.
    stands: bool,
    /// At this many knots in sequence.
    knots: usize,
    /// Its impulses by the time that they stand for, m/s^2, at the last knot without a blow.
    rates: [f64; 3],
}

impl Load {
    const NONE: Self = Self {
        stands: false,
        knots: 0,
        rates: [0.0; 3],
    };

    /// What the element's impulses at the next knot count as, unless it begins to be loaded.
    fn role(&self) -> Option<Role> {
        match self.stands {
            true => Some(Role::Stands),
            false => (self.knots >= BLOW_KNOTS).then_some(Role::Held),
        }
    }

    /// Goes on to the next knot, with new rates unless there is a blow.
    fn add(&mut self, loaded: bool, rates: Option<[f64; 3]>) {
        if !loaded {
            *self = Self::NONE;
            return;
        }
        self.knots += 1;
        self.rates = rates.unwrap_or(self.rates);
    }
}

/// Work of what touches at a knot.
#[derive(Clone, Debug, Default)]
pub struct KnotWork {
    /// From the interval before to the velocities that are read.
    pub before: Exchange,
    /// From the interval before to the one after; none at the end.
    pub whole: Option<Exchange>,
}

/// Work at a knot in the making. An integrator replaces its rows, wrenches on bodies, by the changes of velocities that they cause
/// within the joints, after [`Layout::begin_work`] and before [`Layout::end_work`].
pub(crate) struct KnotBooks {
    /// Momenta before the knot, blows until the velocities that are read, and the part of them that is held; unless it is the last
    /// knot, momenta after it and the same of the whole knot.
    pub rows: Vec<Vec<f64>>,
    /// Impulses of each element, normal and tangents, until the velocities that are read, and of the whole knot.
    impulses: [Vec<[f64; 3]>; 2],
    /// What blows of the whole knot act on at other places than the step: elements there, and impulses, which are not among those above.
    struck: Vec<Struck>,
    /// Wrenches on the bodies, by [`Role`].
    wrenches: [[Vec<f64>; 3]; 2],
}

/// The number of an element, what it is where a blow acts on it, and the impulses there.
type Struck = (usize, Element, [f64; 3]);

/// What the impulse of an element counts as.
#[derive(Clone, Copy)]
enum Role {
    /// A blow.
    Blow,
    /// A blow in the works, a constraint in the energy check.
    Held,
    /// It stands: no blow.
    Stands,
}

/// What an element's impulse at a knot counts as.
#[derive(Clone, Copy)]
struct Share {
    role: Role,
    /// The impulses by time that count as that, m/s^2, where the rest is a blow.
    rates: Option<[f64; 3]>,
}

/// Rows of an exchange: momenta, blows, and the part of them that is held.
const ROWS: usize = 3;

/// Momenta of bodies that move with these velocities over an interval, at its start; at its end where that is negative.
fn momenta(m: &Mechanism, v: &[f64], h: f64, out: &mut [f64]) {
    for (b, body) in m.bodies.iter().enumerate() {
        let (linear, omega) = (vec3(v, 6 * b) * body.mass, vec3(v, 6 * b + 3));
        let scalar = body.rotation.scalar(&omega, h);
        let angular = body.rotation.momentum(&omega, &body.inertia, h, scalar);
        out[6 * b..6 * b + 3].copy_from_slice(linear.as_slice());
        out[6 * b + 3..6 * b + 6].copy_from_slice(angular.as_slice());
    }
}

/// Half of the sum, and the difference, of two velocities.
fn mean_and_change(a: &[f64], b: &[f64]) -> [Vec<f64>; 2] {
    let each = || a.iter().zip(b);
    [
        each().map(|(a, b)| 0.5 * (a + b)).collect(),
        each().map(|(a, b)| b - a).collect(),
    ]
}

/// Product of wrenches with velocities, J.
fn product(wrenches: &[f64], v: impl Iterator<Item = f64>) -> f64 {
    wrenches.iter().zip(v).map(|(f, v)| f * v).sum()
}

impl Layout {
    /// Adds the wrenches of the impulses at hand.
    pub(crate) fn add_impulses(&self, memory: &Memory, rows: &mut [f64]) {
        if memory.idle {
            return;
        }
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            e.add_impulses(slot, e.local.impulses(), 1.0, rows);
        }
    }

    /// The impulses of an element, normal and tangents, until the instant of the read-out, and those of the whole knot, blows
    /// included.
    fn parts(&self, memory: &Memory, (i, e): (usize, &Element), y: &[f64]) -> [[f64; 3]; 2] {
        let read = if memory.idle {
            [0.0; 3]
        } else {
            e.local.impulses()
        };
        if y.is_empty() {
            return [read; 2];
        }
        let own = &y[self.rows + UNKNOWNS * i..];
        let mut all = IMPULSES.map(|place| own[place]);
        if let Some(blow) = y[self.blows()].chunks_exact(BLOW).nth(i) {
            all.iter_mut().zip(&blow[1..]).for_each(|(a, b)| *a += b);
        }
        [read, all]
    }

    /// Takes blows on other places than those of the step out of the impulses of the whole knot.
    fn struck_elsewhere(
        &self,
        w: &View,
        memory: &Memory,
        y: &[f64],
        [read, whole]: &mut [Vec<[f64; 3]>; 2],
    ) -> Vec<Struck> {
        let Some(blows) = y.get(self.blows()) else {
            return vec![];
        };
        let mut struck = vec![];
        for (i, own) in blows.chunks_exact(BLOW).enumerate() {
            let (e, held) = (&memory.elements[i], Meeting::decoded(own[PLACE]));
            let contact = self.slots[i].contact(w);
            if let Some(contact) = contact
                && own[PLACE] != 0.0
                && held != e.held
                && w.model.has_parts(contact, &held)
            {
                // the read-out before the blow is no part of it
                let size = [0, 1, 2].map(|k| own[k + 1] - read[i][k]);
                let each = whole[i].iter_mut().zip(size);
                each.for_each(|(all, own)| *all -= own);
                let mut there = *e;
                there.set_meeting(w, contact, held, memory.gap_floor());
                struck.push((i, there, size));
            }
        }
        struck
    }

    /// Begins the work of what touches at a knot, after the velocities there were read. `y` are the unknowns of the step from the knot,
    /// empty at the last one, `velocities` those over its interval `h`, and `dim` the length of rows. At the start of a
    /// trajectory `loads` is empty; it then keeps which elements are loaded.
    pub(crate) fn begin_work(
        &self,
        w: &View,
        memory: &Memory,
        (y, velocities, h): (&[f64], &[f64], f64),
        dim: usize,
        loads: &mut Loads,
    ) -> KnotBooks {
        let each = memory.elements.iter().enumerate();
        let parts: Vec<_> = each.map(|e| self.parts(memory, e, y)).collect();
        let mut impulses = [0, 1].map(|k| parts.iter().map(|p| p[k]).collect::<Vec<_>>());
        // the impulses are those of forces over half of either interval
        let after = if y.is_empty() { 0.0 } else { h };
        let times = [0.5 * w.at.h_prev, 0.5 * (w.at.h_prev + after)];
        let shares = self.shares(memory, &impulses[1], times[1], loads);
        let struck = self.struck_elsewhere(w, memory, y, &mut impulses);
        let mut rows = vec![vec![0.0; dim]; if y.is_empty() { ROWS } else { 2 * ROWS }];
        let mut wrenches = [0, 1].map(|k| self.wrenches(memory, &impulses[k], (&shares, times[k])));
        for (i, e, size) in &struck {
            let out = &mut wrenches[1][Role::Blow as usize];
            e.add_impulses(&self.slots[*i], *size, 1.0, out);
        }
        for (exchange, [blows, held, _]) in rows.chunks_exact_mut(ROWS).zip(&wrenches) {
            let all = blows.iter().zip(held).map(|(blow, held)| blow + held);
            exchange[1]
                .iter_mut()
                .zip(all)
                .for_each(|(row, all)| *row = all);
            exchange[2][..held.len()].copy_from_slice(held);
        }
        momenta(w.model, w.before, -w.at.h_prev, &mut rows[0]);
        if let Some(row) = rows.get_mut(ROWS) {
            momenta(w.model, velocities, h, row);
        }
        KnotBooks {
            rows,
            impulses,
            struck,
            wrenches,
        }
    }

    /// What each element's impulses at the knot, which stand for this time, count as; takes up which are loaded.
    fn shares(
        &self,
        memory: &Memory,
        impulses: &[[f64; 3]],
        time: f64,
        Loads(loads): &mut Loads,
    ) -> Vec<Share> {
        if loads.len() != impulses.len() {
            // what is open at the start comes to touch within the step
            let start = |(e, slot): (&Element, &Slot)| Load {
                stands: !slot.is_friction() && e.here.gap < TOUCHES,
                ..Load::NONE
            };
            *loads = memory.elements.iter().zip(&self.slots).map(start).collect();
        }
        // beside what is held, what stands is held, too: either alone would throw a body that both press
        if loads.iter().any(|l| matches!(l.role(), Some(Role::Held))) {
            loads.iter_mut().for_each(|load| load.stands = false);
        }
        // friction of joints has no normal impulse
        let loaded = |own: &[f64; 3]| own[0] > LOADED;
        let mut each = impulses.iter().zip(&*loads);
        let is_blow = each.any(|(own, load)| loaded(own) && load.role().is_none());
        let is_free = loads.iter().all(|load| load.role().is_none());
        let share = |((slot, own), load): ((&Slot, &[f64; 3]), &mut Load)| {
            let (loaded, role) = (loaded(own), load.role());
            let rates = (is_blow && role.is_some()).then_some(load.rates);
            let by_time = || own.map(|own| own / time);
            load.add(loaded, (!is_blow && time > 0.0).then(by_time));
            let role = match role {
                _ if slot.is_friction() => Role::Held,
                Some(role) if loaded || is_blow => role,
                None if is_free && load.knots == BLOW_KNOTS => Role::Held,
                _ => Role::Blow,
            };
            Share { role, rates }
        };
        let each = self.slots.iter().zip(impulses);
        each.zip(loads.iter_mut()).map(share).collect()
    }

    /// Wrenches on the bodies of the elements' impulses, which stand for this time, by role.
    fn wrenches(
        &self,
        memory: &Memory,
        impulses: &[[f64; 3]],
        (shares, time): (&[Share], f64),
    ) -> [Vec<f64>; 3] {
        let mut out = [0, 1, 2].map(|_| vec![0.0; 6 * self.sizes.len()]);
        let each = memory.elements.iter().zip(&self.slots);
        for ((e, slot), (all, share)) in each.zip(impulses.iter().zip(shares)) {
            let own = share.rates.map_or(*all, |rates| rates.map(|r| r * time));
            e.add_impulses(slot, own, 1.0, &mut out[share.role as usize]);
            let rest = [0, 1, 2].map(|i| all[i] - own[i]);
            if rest != [0.0; 3] {
                e.add_impulses(slot, rest, 1.0, &mut out[Role::Blow as usize]);
            }
        }
        out
    }

    /// Ends with the rows solved for.
    ///
    /// Impulses of forces and dampers times the change by blows are `J' (b - a) - J x`, because the map from impulses to changes of
    /// velocities is symmetric.
    pub(crate) fn end_work(&self, w: &View, memory: &Memory, books: KnotBooks) -> KnotWork {
        let n = 6 * w.poses.len();
        let rows: Vec<_> = books.rows.iter().map(|row| &row[..n]).collect();
        let exchange = |k: usize, after: &[f64]| {
            let [mean, change] = mean_and_change(rows[0], after);
            let [blow, own] = [1, 2].map(|i| rows[ROWS * k + i].to_vec());
            let [blows, held, stands] = &books.wrenches[k];
            let struck = if k == 0 { &[] } else { &books.struck[..] };
            let rest: Vec<f64> = change.iter().zip(&blow).map(|(c, b)| c - b).collect();
            let on = |wrenches: &[f64], v: &[f64]| product(wrenches, v.iter().copied());
            Exchange {
                work: self.work(memory, &books.impulses[k], struck, &mean),
                others_on_blow: on(blows, &rest) + on(held, &rest) - on(stands, &blow),
                others_on_held: on(held, &rest) - on(stands, &own),
                mean,
                change,
                blow,
                held: own,
            }
        };
        KnotWork {
            before: exchange(0, &w.trial[..n]),
            whole: rows.get(ROWS).map(|after| exchange(1, after)),
        }
    }

    /// Work of impulses along velocities.
    ///
    /// How simultaneous impulses share what they do to each other is not determined. Where a blow would turn the slip that
    /// friction then stops, the mean has friction drive what it only holds back; as friction never gives energy, what it
    /// would give is counted as spent by the blows of the same instant, up to all that they spend.
    fn work(
        &self,
        memory: &Memory,
        impulses: &[[f64; 3]],
        struck: &[Struck],
        mean: &[f64],
    ) -> ContactWork {
        let (mut out, mut given) = (ContactWork::default(), 0.0);
        let all = memory.elements.iter().zip(&self.slots).zip(impulses);
        let all = all.map(|((e, slot), own)| (e, slot, own));
        let more = struck.iter().map(|(i, e, own)| (e, &self.slots[*i], own));
        for (e, slot, own) in all.chain(more) {
            let work = |row: &Row, size: f64| match size {
                0.0 => 0.0,
                _ => slot.mass * size * dot(mean, slot.parent, slot.child, row),
            };
            out.impacts += work(&e.normal, own[0]);
            let friction = work(&e.tangents[0], own[1]) + work(&e.tangents[1], own[2]);
            given += friction.max(0.0);
            out.friction += friction;
        }
        let spent = given.min(-out.impacts).max(0.0);
        out.friction -= spent;
        out.impacts += spent;
        out
    }
}
